/* Child processes: posix_spawnp(), pipes, and a pidfd that becomes readable when the child ends. The standard
 * descriptors. */
#define _GNU_SOURCE /* pipe2() */
#define _FILE_OFFSET_BITS 64
#include "base/invariants.h"
#include "io/descriptor.h"
#include "system/system.h"

#include "aco/detail/poller.h"
#include "aco/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Starting ---- */

static void close_if(int *fd)
{
    if (*fd >= 0)
        (void)aco_io_close(*fd);
    *fd = -1;
}

/* A pipe with numbers above the standard descriptors', which the child's ends are going to replace. ends[ours] is
 * owned. 0, or -1 and errno. */
static int open_pipe(int ends[2], int ours)
{
    if (aco__system.pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if (ends[i] <= 2) {
            int fd = aco__system.fcntl(ends[i], F_DUPFD_CLOEXEC, 3), error = errno;
            aco__system.close(ends[i]);
            ends[i] = fd;
            errno = error;
        }
    if (ends[0] >= 0 && ends[1] >= 0 && aco_io_adopt(ends[ours]) == 0)
        return 0;
    for (int i = 0; i < 2; i++)
        close_if(&ends[i]);
    return -1;
}

typedef struct starting {
    aco_process_t *process;
    int theirs[3]; /* the child's ends of the pipes, or -1 */
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
} starting_t;

/* 0, or -1 and errno. */
static int open_pipes(starting_t *s, unsigned flags)
{
    static const unsigned wanted[3] = {ACO_PROCESS_IN, ACO_PROCESS_OUT, ACO_PROCESS_ERR};
    int *const ours[3] = {&s->process->in, &s->process->out, &s->process->err};
    for (int i = 0; i < 3; i++) {
        int ends[2];
        if (!(flags & wanted[i]))
            continue;
        if (open_pipe(ends, i == 0) != 0)
            return -1;
        *ours[i] = ends[i == 0];
        s->theirs[i] = ends[i != 0];
    }
    return 0;
}

/* Returns an errno. */
static int prepare(starting_t *s, unsigned flags)
{
    sigset_t none, all;
    int error = 0;
    for (int i = 0; i < 3 && !error; i++)
        if (s->theirs[i] >= 0)
            error = posix_spawn_file_actions_adddup2(&s->actions, s->theirs[i], i);
    if (!error && flags & ACO_PROCESS_ERR_TO_OUT)
        error = posix_spawn_file_actions_adddup2(&s->actions, 1, 2);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&s->attributes, &none);
    posix_spawnattr_setsigdefault(&s->attributes, &all);
    posix_spawnattr_setflags(&s->attributes,
                             (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                     (flags & ACO_PROCESS_GROUP ? POSIX_SPAWN_SETPGROUP : 0)));
    return error;
}

/* Returns an errno. */
static int spawn(starting_t *s, const char *const argv[], unsigned flags, const char *const environment[])
{
    int error = posix_spawn_file_actions_init(&s->actions);
    if (error)
        return error;
    error = posix_spawnattr_init(&s->attributes);
    if (!error) {
        error = prepare(s, flags);
        if (!error)
            error = aco__system.posix_spawnp(&s->process->pid, argv[0], &s->actions, &s->attributes,
                                 (char *const *)(uintptr_t)argv,
                                 environment ? (char *const *)(uintptr_t)environment : environ);
        posix_spawnattr_destroy(&s->attributes);
    }
    posix_spawn_file_actions_destroy(&s->actions);
    return error;
}

/* By the pidfd where there is one: it means the child even if other code has waited for it, and another process has got
 * its number. 0, or -1 and errno. */
static int signal_child(const aco_process_t *process, int signal)
{
    enum { TO_GROUP = 4 }; /* PIDFD_SIGNAL_PROCESS_GROUP, since Linux 6.9 */
    int fd = process->aco__fd, is_group = process->aco__is_group;
    if (fd >= 0) {
        if (aco__system.pidfd_send_signal(fd, signal, NULL, is_group ? TO_GROUP : 0) == 0)
            return 0;
        if (errno != ENOSYS && !(errno == EINVAL && is_group && aco__system.pidfd_send_signal(fd, 0, NULL, 0) == 0))
            return -1;
    }
    return aco__system.kill(is_group ? -process->pid : process->pid, signal);
}

/* Kills the child and blocks until it is gone. */
static void destroy_child(aco_process_t *process)
{
    (void)signal_child(process, SIGKILL);
    while (aco__system.waitpid(process->pid, &process->status, 0) < 0 && errno == EINTR)
        ;
}

/* 0, or -1 and errno. */
static int watch_child(aco_process_t *process)
{
    process->aco__fd = aco__system.pidfd_open(process->pid, 0);
    if (process->aco__fd >= 0 && aco_io_adopt(process->aco__fd) == 0)
        return 0;
    int error = errno;
    close_if(&process->aco__fd);
    destroy_child(process);
    errno = error;
    return -1;
}

int aco_process_start(aco_process_t *process, const char *const argv[], unsigned flags,
                      const char *const environment[])
{
    static const char call[] = "aco_process_start";
    starting_t s = {process, {-1, -1, -1}, {0}, {0}};
    char reason[160];
    int error;
    if (process)
        *process = (aco_process_t){-1, -1, -1, -1, 0, -1, (flags & ACO_PROCESS_GROUP) != 0};
    if (!process || !argv || !argv[0])
        return aco__service_fail(EINVAL, call, "a pointer is NULL");
    if (flags & ~31u || (flags & ACO_PROCESS_ERR && flags & ACO_PROCESS_ERR_TO_OUT))
        return aco__service_fail(EINVAL, call, "flags");
    error = open_pipes(&s, flags) != 0 ? errno : spawn(&s, argv, flags, environment);
    for (int i = 0; i < 3; i++)
        if (s.theirs[i] >= 0)
            aco__system.close(s.theirs[i]);
    if (!error && watch_child(process) != 0)
        error = errno;
    if (!error)
        return 0;
    close_if(&process->in);
    close_if(&process->out);
    close_if(&process->err);
    snprintf(reason, sizeof reason, "%.60s: %s", argv[0], strerror(error));
    return aco__service_fail(error, call, reason);
}

/* ---- The child's end ---- */

void aco_process_close_input(aco_process_t *process)
{
    close_if(&process->in);
}

int aco_process_signal(aco_process_t *process, int signal)
{
    static const char call[] = "aco_process_signal";
    if (process->aco__fd < 0)
        return aco__service_fail(ESRCH, call, "the child has ended");
    if (signal_child(process, signal) == 0)
        return 0;
    return aco__service_fail(errno, call, strerror(errno));
}

int aco_process_wait_at(aco_process_t *process, const char *location)
{
    while (process->aco__fd >= 0) {
        pid_t pid = aco__system.waitpid(process->pid, &process->status, WNOHANG);
        if (pid == process->pid)
            close_if(&process->aco__fd);
        else if (pid < 0 && errno != EINTR)
            return aco__service_fail(errno, "aco_process_wait", strerror(errno));
        else if (aco_io_wait_readable_at(process->aco__fd, location) != 0 && process->aco__fd >= 0)
            return -1; /* and no other task has got the status meanwhile */
    }
    return 0;
}

ACO__SWITCHES static void end_child(aco_process_t *process, int64_t grace_ns, const char *location)
{
    aco_scope_t grace;
    if (aco_shield_begin_at(&grace, aco_after(grace_ns), location) == 0) {
        (void)signal_child(process, SIGTERM);
        (void)aco_process_wait_at(process, location);
        (void)aco_scope_end(&grace);
    }
    if (process->aco__fd < 0)
        return;
    (void)signal_child(process, SIGKILL);
    if (aco_shield_begin_at(&grace, ACO_FOREVER, location) == 0) {
        (void)aco_process_wait_at(process, location);
        (void)aco_scope_end(&grace);
    }
    if (process->aco__fd >= 0) { /* the caller cannot wait */
        destroy_child(process);
        close_if(&process->aco__fd);
    }
}

void aco_process_end_at(aco_process_t *process, int64_t grace_ns, const char *location)
{
    close_if(&process->in);
    if (process->aco__fd >= 0)
        end_child(process, grace_ns, location);
    close_if(&process->out);
    close_if(&process->err);
}

/* ---- Standard descriptors ---- */

static int is_shared_for_good(mode_t mode) /* a file, which needs no flag; a socket, which cannot be opened again */
{
    return S_ISREG(mode) || S_ISDIR(mode) || S_ISBLK(mode) || S_ISSOCK(mode);
}

int aco_io_standard(int number)
{
    static const char call[] = "aco_io_standard";
    aco__io_t *io = aco__io_get(call);
    char path[32];
    struct stat status;
    int flags = aco__system.fcntl(number, F_GETFL), fd = -1;
    if (!io)
        return -1;
    if (flags < 0 || aco__system.fstat(number, &status) != 0)
        return aco__io_fail(call, number);
    snprintf(path, sizeof path, "/proc/self/fd/%d", number);
    if (!is_shared_for_good(status.st_mode))
        fd = aco__system.open(path, (flags & O_ACCMODE) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        fd = aco__system.fcntl(number, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return aco__io_fail(call, number);
    if (S_ISREG(status.st_mode) ? aco__io_own(io, fd, 0, 0, call) == 0 : aco_io_adopt(fd) == 0)
        return fd;
    flags = errno;
    aco__system.close(fd);
    errno = flags;
    return -1;
}
