/* For ACORN_COVERAGE: processes that end by abort() or _exit() count too, as most that a death is tested in do. */
#define _GNU_SOURCE
#include <gcov.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void dump(int number)
{
    (void)number;
    __gcov_dump(); /* and abort() goes on as if there were no handler */
}

__attribute__((constructor)) static void prepare(void)
{
    signal(SIGABRT, dump);
}

/* In place of libc's, which has it by another name too; syscall() may be one that a test makes fail. */
void _exit(int status)
{
    __gcov_dump();
    _Exit(status);
}
