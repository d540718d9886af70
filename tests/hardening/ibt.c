/* ibt MAIN PROGRAM: runs PROGRAM, linked with -no-pie and -z now, one instruction at a time and does what an x86-64
 * processor that tracks indirect branches does (CET IBT), which Linux leaves off in programs: after an indirect jump or
 * call without `notrack` the next instruction must be an endbr64. From main(), at the address MAIN, until it returns;
 * only jumps into the program's own code count, since what it is linked to need not have landing pads. Exit: the
 * program's status, or 3 after a missing landing pad, which is named on stderr. Source: Intel SDM volume 1,
 * Control-flow Enforcement Technology. */
#include "step.h"

static unsigned long begin, end; /* of the program's code */

static void find_code(pid_t pid)
{
    char name[64], line[512], execute;
    unsigned long from, to;
    FILE *maps;
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    if (!(maps = fopen(name, "r")))
        fail(name);
    while (!end && fgets(line, sizeof line, maps)) /* the program is mapped lowest */
        if (sscanf(line, "%lx-%lx %*c%*c%c", &from, &to, &execute) == 3 && execute == 'x')
            begin = from, end = to;
    fclose(maps);
}

/* Whether the instruction with these first bytes makes the processor wait for an endbr: FF /2 or FF /4 without the
 * prefix 3E. */
static int is_tracked(unsigned long bytes)
{
    static const unsigned char prefixes[] = {0x26, 0x2e, 0x36, 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3};
    while (memchr(prefixes, (int)(bytes & 0xff), sizeof prefixes))
        bytes >>= 8;
    if ((bytes & 0xf0) == 0x40) /* REX */
        bytes >>= 8;
    return (bytes & 0xff) == 0xff && ((bytes >> 11 & 7) == 2 || (bytes >> 11 & 7) == 4);
}

static int is_endbr(unsigned long bytes)
{
    return (bytes & 0xffffffff) == 0xfa1e0ff3;
}

int main(int argc, char **argv)
{
    struct user_regs_struct regs;
    unsigned long back, from = 0;
    int status, waits = 0, signal = 0;
    pid_t pid;
    if (argc != 3)
        return 2;
    pid = load(argv + 2);
    find_code(pid);
    back = enter(pid, strtoul(argv[1], NULL, 16));
    for (;;) {
        if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) != 0)
            fail("PTRACE_GETREGS");
        unsigned long bytes = word_at(pid, regs.rip);
        if (waits && regs.rip >= begin && regs.rip < end && !is_endbr(bytes)) {
            fprintf(stderr, "ibt: from %#lx to %#lx, where there is no landing pad\n", from, (unsigned long)regs.rip);
            kill(pid, SIGKILL);
            return 3;
        }
        waits = is_tracked(bytes);
        from = regs.rip;
        if (ptrace(regs.rip == back ? PTRACE_CONT : PTRACE_SINGLESTEP, pid, NULL, (void *)(long)signal) != 0 ||
            waitpid(pid, &status, 0) < 0)
            fail("PTRACE_SINGLESTEP");
        if (WIFEXITED(status))
            return WEXITSTATUS(status);
        if (WIFSIGNALED(status))
            return 128 + WTERMSIG(status);
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    }
}
