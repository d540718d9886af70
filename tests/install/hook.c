/* A hooked task sleeps while another one runs: a program finds the hooks before libc, however it is linked. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* usleep() */
#endif
#include <aco/hook.h>
#include <stdio.h>
#include <unistd.h>

static int has_run;

static void *sleeps(void *unused)
{
    if (aco_hook_begin() != 0)
        fprintf(stderr, "%s\n", aco_error_message());
    else if (usleep(1000) == 0 && has_run)
        has_run++;
    return unused;
}

static void *runs(void *unused)
{
    has_run = 1;
    return unused;
}

int main(void)
{
    aco_options_t detached = {0};
    detached.flags = ACO_DETACHED;
    aco_spawn(sleeps, NULL, &detached);
    aco_spawn(runs, NULL, &detached);
    return aco_run() == 0 && has_run == 2 ? 0 : 1;
}
