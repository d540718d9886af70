/* Signals as values, and a task that ends a scope when one comes.
 *
 * Several may listen for a signal, and the system gives it to one. So each listener has a signalfd and an eventfd:
 * whoever reads a signal from the one has it told to the other listeners, by the other (aco/detail/signals.h). The
 * program has an epoll descriptor of both. */
#define _GNU_SOURCE /* struct ucred, for sys/socket.h */
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/job_threads.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/detail/signals.h"
#include "aco/process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { SIGNALS = 64 };

typedef struct listener {
    aco__listener_t base;   /* first */
    int fd;                 /* the epoll descriptor */
    int signals, told;      /* the signalfd, the eventfd */
    struct {
        int is_pending;     /* atomic, like the next */
        int32_t sender;
    } pending[SIGNALS];     /* what others have taken */
    struct listener *next;
    size_t sz;              /* of this record, as allocated */
} listener_t;

enum { NUMBERS = 1024 };
/* Under the pool's lock. Bit fd % NUMBERS of `numbers`, which are atomic, says that there may be one with this
 * descriptor: few closes take the lock. In a simulation, which of them do must not depend on what was open before. */
static listener_t *listeners;
static unsigned numbers[NUMBERS / 32];

static unsigned *number_word(int fd)
{
    return &numbers[(unsigned)fd % NUMBERS / 32];
}

static unsigned number_bit(int fd)
{
    return 1u << ((unsigned)fd % 32);
}

/* The place of the listener in the list; *place is NULL: there is none. With the lock. */
static listener_t **place_of(int fd)
{
    listener_t **place = &listeners;
    while (*place && (*place)->fd != fd)
        place = &(*place)->next;
    return place;
}

/* With the lock. */
static void put_in_list(listener_t *listener)
{
    listener->next = listeners;
    listeners = listener;
    __atomic_fetch_or(number_word(listener->fd), number_bit(listener->fd), __ATOMIC_RELAXED);
}

static void take_out_of_list(const listener_t *listener)
{
    const listener_t *other;
    *place_of(listener->fd) = listener->next;
    other = listeners;
    while (other && (unsigned)other->fd % NUMBERS != (unsigned)listener->fd % NUMBERS)
        other = other->next;
    if (!other)
        __atomic_fetch_and(number_word(listener->fd), ~number_bit(listener->fd), __ATOMIC_RELAXED);
}

/* NULL: there is none. */
static listener_t *listener_of(int fd)
{
    listener_t *listener;
    if (fd < 0 || !(__atomic_load_n(number_word(fd), __ATOMIC_RELAXED) & number_bit(fd)))
        return NULL;
    aco__io_pool_lock();
    listener = *place_of(fd);
    aco__io_pool_unlock();
    return listener;
}

/* ---- Opening and closing ---- */

/* 0, or -1 and errno. */
static int make_set(sigset_t *set, uint64_t *bits, const int *signals, size_t n, const char *call)
{
    sigemptyset(set);
    *bits = 0;
    for (size_t i = 0; signals && i < n; i++) {
        if (signals[i] > SIGNALS || signals[i] == SIGKILL || signals[i] == SIGSTOP || sigaddset(set, signals[i]) != 0)
            return aco__service_fail(EINVAL, call, "no signal that can be blocked");
        *bits |= (uint64_t)1 << (signals[i] - 1);
    }
    return signals && n ? 0 : aco__service_fail(EINVAL, call, "no signals");
}

static void tell_listener(aco__listener_t *base, int signal, int32_t sender)
{
    static const uint64_t one = 1;
    listener_t *listener = (listener_t *)(void *)base;
    __atomic_store_n(&listener->pending[signal - 1].sender, sender, __ATOMIC_RELAXED);
    __atomic_store_n(&listener->pending[signal - 1].is_pending, 1, __ATOMIC_RELEASE);
    if (aco__system.write(listener->told, &one, sizeof one) < 0) {
        /* it is readable already */
    }
}

static void free_listener(listener_t *listener)
{
    if (listener->signals >= 0)
        aco__system.close(listener->signals);
    if (listener->told >= 0)
        aco__system.close(listener->told);
    aco__service_free(listener, listener->sz);
}

/* The descriptor is about to be closed. */
static void at_close(int fd)
{
    listener_t *listener = listener_of(fd);
    if (aco_likely(!listener))
        return;
    aco__io_pool_lock();
    take_out_of_list(listener);
    aco__io_pool_unlock();
    aco__listen_end(&listener->base);
    free_listener(listener);
}

/* The numbers of its descriptors may be those of other files by now. */
static void forget_listener(aco__listener_t *base)
{
    listener_t *listener = (listener_t *)(void *)base;
    aco__io_pool_lock();
    take_out_of_list(listener);
    aco__io_pool_unlock();
    aco__service_free(listener, listener->sz);
}

/* The listener's descriptors: 0, or -1 and errno. */
static int open_descriptors(listener_t *listener, const sigset_t *set)
{
    struct epoll_event event = {EPOLLIN, {.u64 = 0}};
    listener->fd = listener->told = -1;
    listener->signals = aco__system.signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (listener->signals < 0 || (listener->told = aco__system.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return -1;
    listener->fd = aco__system.epoll_create1(EPOLL_CLOEXEC);
    return listener->fd >= 0 && aco__system.epoll_ctl(listener->fd, EPOLL_CTL_ADD, listener->signals, &event) == 0 &&
                   aco__system.epoll_ctl(listener->fd, EPOLL_CTL_ADD, listener->told, &event) == 0
               ? 0
               : -1;
}

/* An owned descriptor for signals, which become blocked. -1 and errno. */
static int open_signals(const int *signals, size_t n, int for_good, const char *call)
{
    sigset_t set;
    uint64_t bits;
    size_t sz = sizeof(listener_t);
    aco__io_t *io = aco__io_get(call);
    listener_t *listener = io && make_set(&set, &bits, signals, n, call) == 0 ? aco__service_new(&sz, call) : NULL;
    if (!listener)
        return -1;
    listener->sz = sz;
    listener->base.signals = bits;
    listener->base.told = tell_listener;
    listener->base.forgotten = forget_listener;
    if (open_descriptors(listener, &set) != 0 || aco__io_own(io, listener->fd, 0, 0, call) != 0) {
        int error = errno;
        if (listener->fd >= 0)
            aco__system.close(listener->fd);
        free_listener(listener);
        return aco__service_fail(error, call, strerror(error));
    }
    at_close(listener->fd); /* unknown to us, if there was one */
    __atomic_store_n(&aco__io_at_close, at_close, __ATOMIC_RELEASE);
    aco__listen(&listener->base, for_good);
    aco__io_pool_lock();
    put_in_list(listener);
    aco__io_pool_unlock();
    return listener->fd;
}

int aco_signal_open(const int *signals, size_t n)
{
    return open_signals(signals, n, 1, "aco_signal_open");
}

/* ---- Waiting ---- */

/* A signal that another listener has taken; 0: none. While there are more, the eventfd is readable. */
static int take_told(listener_t *listener, pid_t *sender)
{
    static const uint64_t one = 1;
    uint64_t count;
    int taken = 0;
    if (aco__system.read(listener->told, &count, sizeof count) < 0)
        return 0;
    for (int signal = 1; signal <= SIGNALS; signal++) {
        if (!__atomic_load_n(&listener->pending[signal - 1].is_pending, __ATOMIC_ACQUIRE))
            continue;
        if (taken) {
            if (aco__system.write(listener->told, &one, sizeof one) < 0) {
                /* it is readable already */
            }
            return taken;
        }
        taken = signal;
        *sender = (pid_t)__atomic_load_n(&listener->pending[signal - 1].sender, __ATOMIC_RELAXED);
        __atomic_store_n(&listener->pending[signal - 1].is_pending, 0, __ATOMIC_RELAXED);
    }
    return taken;
}

/* The next signal; 0: none yet. */
static int take_signal(listener_t *listener, pid_t *sender)
{
    struct signalfd_siginfo signal;
    int told = take_told(listener, sender);
    if (told)
        return told;
    if (aco__system.read(listener->signals, &signal, sizeof signal) != sizeof signal)
        return 0;
    *sender = (pid_t)signal.ssi_pid;
    (void)aco__listen_tell(&listener->base, (int)signal.ssi_signo, (int32_t)signal.ssi_pid);
    return (int)signal.ssi_signo;
}

int aco_signal_wait_at(int fd, pid_t *sender, const char *location)
{
    static const char call[] = "aco_signal_wait";
    pid_t from;
    aco__io_spend(call, location);
    for (;;) {
        listener_t *listener = listener_of(fd);
        int signal;
        if (!listener && aco__system.fcntl(fd, F_GETFD) < 0)
            return aco__io_fail(call, fd);
        if (!listener)
            return aco__service_fail(EINVAL, call, "not a descriptor of aco_signal_open()");
        signal = take_signal(listener, &from);
        if (signal && sender)
            *sender = from;
        if (signal)
            return signal;
        if (aco_io_wait_readable_at(fd, location) != 0)
            return -1;
    }
}

/* ---- A scope that a signal ends ---- */

/* Only aco_interrupt_end() ends its wait: it closes the descriptor. The task may be one of a set that is cancelled. */
ACO__SWITCHES static void *await_signal(void *arg)
{
    static const char place[] = "aco_interrupt_begin";
    aco_interrupt_t *interrupt = arg;
    aco_scope_t shield;
    int signal;
    (void)aco_shield_begin_at(&shield, ACO_FOREVER, place);
    signal = interrupt->aco__fd >= 0 ? aco_signal_wait_at(interrupt->aco__fd, NULL, place) : -1;
    (void)aco_scope_end(&shield);
    ACO__ASSERT(interrupt->scope.aco__task); /* aco_interrupt_end() waits for this task */
    if (signal < 0)
        return NULL;
    interrupt->signal = signal;
    (void)aco_io_close(interrupt->aco__fd);
    interrupt->aco__fd = -1;
    (void)aco_scope_cancel(&interrupt->scope);
    return NULL;
}

int aco_interrupt_begin(aco_interrupt_t *interrupt, const int *signals, size_t n)
{
    static const char call[] = "aco_interrupt_begin";
    int error;
    if (!interrupt)
        return aco__service_fail(EINVAL, call, "the interrupt is NULL");
    if (aco__may_move(interrupt))
        return aco__service_fail(EINVAL, call, "the interrupt is on a share stack");
    if (aco_scope_begin_at(&interrupt->scope, ACO_FOREVER, call) != 0)
        return -1;
    interrupt->signal = 0;
    interrupt->aco__fd = open_signals(signals, n, 0, call);
    if (interrupt->aco__fd >= 0) {
        interrupt->aco__task = aco_spawn(await_signal, interrupt, NULL);
        if (interrupt->aco__task)
            return 0;
        error = errno;
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
    int fd = interrupt->aco__fd;
    if (aco_shield_begin_at(&shield, ACO_FOREVER, call) != 0) /* an inner coroutine on a share stack: it cannot wait */
        return -1;
    if (shield.aco__outer == &interrupt->scope) {
        interrupt->aco__fd = -1;
        if (fd >= 0)
            (void)aco_io_close(fd);
        (void)aco_join_at(interrupt->aco__task, NULL, call);
    }
    (void)aco_scope_end(&shield);
    return aco_scope_end(&interrupt->scope);
}
