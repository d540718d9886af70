/* Hooks of calls that wait for child processes. A pidfd tells when one child has ended; that any child has, or that one
 * was stopped, no event tells. */
#include "libc/arguments.h"
#include "libc/hooked.h"
#include "libc/libc.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"

#include <signal.h>
#include <stdio.h>

const char aco__hooks_of_processes = 1;

/* -1 too if `pid` is for several children. */
static int open_pidfd(pid_t pid, int options)
{
    return options ? -1 : aco__system.pidfd_open(pid, 0);
}

ACO__SWITCHES static int await_change(int pidfd, aco__hook_wait_t *wait, const char *location)
{
    struct pollfd p = {pidfd, POLLIN, 0};
    int result;
    if (pidfd < 0)
        return aco__hook_nap(wait, location);
    result = aco__hook_poll(&p, 1, ACO_FOREVER, &wait->call, location);
    return result >= 0 ? HOOK_TRIES_AGAIN : result == HOOK_CANNOT_WAIT ? HOOK_BLOCKS : HOOK_GIVES_UP;
}

ACO__SWITCHES static pid_t wait_for(pid_t pid, int *status, int options, struct rusage *usage, const char *location)
{
    aco__hook_wait_t wait = {ACO_FOREVER, 1, aco__hook_call(HOOK_RESTARTS), 0, 0};
    int error = errno, pidfd = -1, action = HOOK_TRIES_AGAIN;
    pid_t child;
    aco__hook_spend(-1, location);
    child = aco__libc()->wait4(pid, status, options | WNOHANG, usage);
    if (child == 0)
        pidfd = open_pidfd(pid, options);
    while (child == 0 && action == HOOK_TRIES_AGAIN) {
        action = await_change(pidfd, &wait, location);
        if (action == HOOK_TRIES_AGAIN)
            child = aco__libc()->wait4(pid, status, options | WNOHANG, usage);
    }
    if (child == 0)
        child = action == HOOK_BLOCKS ? aco__libc()->wait4(pid, status, options, usage) : -1;
    if (pidfd >= 0) {
        int failure = errno;
        (void)aco__libc()->close(pidfd);
        errno = failure;
    }
    return (pid_t)aco__hook_result(child, error);
}

ACO__HOOK(pid_t, wait, (int *status))
{
    return aco__hooked() ? wait_for(-1, status, 0, NULL, "libc's wait()") : aco__libc()->wait(status);
}

ACO__HOOK(pid_t, waitpid, (pid_t pid, int *status, int options))
{
    return aco__hooked() && !(options & WNOHANG) ? wait_for(pid, status, options, NULL, "libc's waitpid()")
                                                 : aco__libc()->waitpid(pid, status, options);
}

ACO__HOOK(pid_t, wait4, (pid_t pid, int *status, int options, struct rusage *usage))
{
    return aco__hooked() && !(options & WNOHANG) ? wait_for(pid, status, options, usage, "libc's wait4()")
                                                 : aco__libc()->wait4(pid, status, options, usage);
}

/* ---- Commands of the shell: libc's calls, on a thread of the pool ---- */

typedef struct command_job {
    sigset_t mask; /* the caller's, which the command gets: the pool's threads block signals */
    int result, error;
    size_t sz;
    char command[];
} command_job_t;

static void *run_command(void *arg)
{
    command_job_t *job = arg;
    sigset_t mask;
    (void)pthread_sigmask(SIG_SETMASK, &job->mask, &mask);
    job->result = aco__libc()->system(job->command);
    job->error = errno;
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return job;
}

static void free_command_job(void *arg, void *result)
{
    (void)result;
    aco__service_free(arg, ((command_job_t *)arg)->sz);
}

/* As system(); HOOK_CANNOT_WAIT: libc is to do it, and block. */
ACO__SWITCHES static int have_run(const char *command, size_t length)
{
    static const char location[] = "libc's system()";
    size_t sz = sizeof(command_job_t) + length;
    command_job_t *job = aco__service_allocate(&sz, location);
    int error = errno, result;
    if (!job)
        return -1;
    job->sz = sz;
    memcpy(job->command, command, length);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &job->mask);
    switch (aco__hook_offload(ACO__WORK, run_command, job, NULL, free_command_job, location)) {
    case HOOK_BLOCKS:
        return HOOK_CANNOT_WAIT;
    case HOOK_GIVES_UP:
        return -1;
    default:
        break;
    }
    result = job->result;
    errno = result == -1 ? job->error : error;
    aco__service_free(job, job->sz);
    return result;
}

ACO__HOOK(int, system, (const char *command))
{
    size_t length = aco__hooked() ? aco__hook_text_size(command) : 0;
    int result = length ? have_run(command, length) : HOOK_CANNOT_WAIT;
    return result == HOOK_CANNOT_WAIT ? aco__libc()->system(command) : result;
}

static void *close_stream(void *stream)
{
    return (void *)(intptr_t)aco__libc()->pclose(stream);
}

static void keep_stream(void *stream, void *result)
{
    (void)stream;
    (void)result;
}

/* The stream is closed in any case: a caller whose scope ends, or has ended, leaves that to the pool. */
ACO__HOOK(int, pclose, (FILE * stream))
{
    int error = errno, action = HOOK_BLOCKS;
    void *result;
    if (aco__hooked())
        action = aco__hook_offload(ACO__MUST_RUN, close_stream, stream, &result, keep_stream, "libc's pclose()");
    if (action == HOOK_BLOCKS)
        return aco__libc()->pclose(stream);
    return action == HOOK_GIVES_UP ? -1 : (int)aco__hook_result((intptr_t)result, error);
}
