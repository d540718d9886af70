/* For ACORN_COVERAGE: processes that end by abort() or _exit() count too: most death tests end so. */
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

/* In place of libc's, which also has it under another name. */
void _exit(int status)
{
    __gcov_dump();
    _Exit(status);
}
