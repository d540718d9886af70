/* Signals as values: a signalfd, and a task that ends a scope when one comes. */
#define _GNU_SOURCE /* struct ucred, for sys/socket.h */
#include "io/io.h"

#include "aco/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* 0, or -1 and errno. */
static int make_set(sigset_t *set, const int *signals, size_t n, const char *call)
{
    sigemptyset(set);
    for (size_t i = 0; i < n; i++)
        if (signals[i] == SIGKILL || signals[i] == SIGSTOP || sigaddset(set, signals[i]) != 0)
            return aco__poller_fail(EINVAL, call, "no signal that can be blocked");
    return n ? 0 : aco__poller_fail(EINVAL, call, "no signals");
}

/* An owned descriptor of these signals, which become blocked; `before`: what was. -1 and errno. */
static int open_signals(const int *signals, size_t n, sigset_t *before, const char *call)
{
    sigset_t set;
    aco__io_t *io = aco__io_get(call);
    int fd;
    if (!io || make_set(&set, signals, n, call) != 0)
        return -1;
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return aco__poller_fail(errno, call, strerror(errno));
    if (aco__io_own(io, fd, 0, 0, call) != 0) {
        aco__system.close(fd);
        errno = ENOMEM;
        return -1;
    }
    pthread_sigmask(SIG_BLOCK, &set, before);
    return fd;
}

int aco_signal_open(const int *signals, size_t n)
{
    return open_signals(signals, n, NULL, "aco_signal_open");
}

int aco_signal_wait_at(int fd, pid_t *sender, const char *location)
{
    struct signalfd_siginfo signal;
    ssize_t n = aco_io_read_at(fd, &signal, sizeof signal, location);
    if (n < 0)
        return -1;
    if (n != sizeof signal)
        return aco__poller_fail(EINVAL, "aco_signal_wait", "not a descriptor of aco_signal_open()");
    if (sender)
        *sender = (pid_t)signal.ssi_pid;
    return (int)signal.ssi_signo;
}

/* ---- A scope that a signal ends ---- */

static void unblock(const aco_interrupt_t *interrupt)
{
    sigset_t before;
    memcpy(&before, interrupt->aco__before, sizeof before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void *await_signal(void *arg)
{
    aco_interrupt_t *interrupt = arg;
    int signal = interrupt->aco__fd >= 0 ? aco_signal_wait(interrupt->aco__fd, NULL) : -1;
    if (signal < 0) /* aco_interrupt_end() has closed the descriptor */
        return NULL;
    interrupt->signal = signal;
    unblock(interrupt);
    (void)aco_scope_cancel(&interrupt->scope);
    return NULL;
}

int aco_interrupt_begin(aco_interrupt_t *interrupt, const int *signals, size_t n)
{
    static const char call[] = "aco_interrupt_begin";
    sigset_t before;
    int error;
    _Static_assert(sizeof before <= sizeof interrupt->aco__before, "there is room for it");
    if (aco_scope_begin_at(&interrupt->scope, ACO_FOREVER, call) != 0)
        return -1;
    interrupt->signal = 0;
    interrupt->aco__fd = open_signals(signals, n, &before, call);
    if (interrupt->aco__fd >= 0) {
        memcpy(interrupt->aco__before, &before, sizeof before);
        interrupt->aco__task = aco_spawn(await_signal, interrupt, NULL);
        if (interrupt->aco__task)
            return 0;
        error = errno;
        unblock(interrupt);
        (void)aco_io_close(interrupt->aco__fd);
        errno = error;
    }
    error = errno;
    (void)aco_scope_end(&interrupt->scope);
    errno = error;
    return -1;
}

int aco_interrupt_end(aco_interrupt_t *interrupt)
{
    static const char call[] = "aco_interrupt_end";
    aco_scope_t shield;
    if (aco_scope_end(&interrupt->scope) != 0)
        return -1;
    unblock(interrupt);
    (void)aco_io_close(interrupt->aco__fd);
    interrupt->aco__fd = -1;
    (void)aco_shield_begin_at(&shield, ACO_FOREVER, call);
    (void)aco_join_at(interrupt->aco__task, NULL, call);
    return aco_scope_end(&shield);
}
