/* A program that is run one instruction at a time: what the models of processors here (ibt.c, shadow_model.c) have in
 * common. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static unsigned long word_at(pid_t pid, unsigned long address)
{
    return (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, address, NULL);
}

/* Starts a program, with arguments; it waits before its first instruction. */
static pid_t load(char **arguments)
{
    int status;
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(arguments[0], arguments);
        fail(arguments[0]);
    }
    if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
        fail(arguments[0]);
    return pid;
}

/* Runs the program up to main(). The address main() returns to. */
static unsigned long enter(pid_t pid, unsigned long start)
{
    struct user_regs_struct regs;
    unsigned long bytes = word_at(pid, start), with_int3 = (bytes & ~0xfful) | 0xcc;
    int status;
    if (ptrace(PTRACE_POKETEXT, pid, start, with_int3) != 0 || ptrace(PTRACE_CONT, pid, NULL, NULL) != 0 ||
        waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, pid, NULL, &regs) != 0 ||
        regs.rip != start + 1)
        fail("main");
    regs.rip = start;
    if (ptrace(PTRACE_POKETEXT, pid, start, bytes) != 0 || ptrace(PTRACE_SETREGS, pid, NULL, &regs) != 0)
        fail("main");
    return word_at(pid, regs.rsp);
}
