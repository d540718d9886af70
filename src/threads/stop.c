/* How a set is stopped: scopes that end first, so that a server accepts no more but answers; then all. By a call, or by
 * SIGINT and SIGTERM, for which a thread listens. */
#define _GNU_SOURCE
#include "base/invariants.h"
#include "os/clock.h"
#include "system/system.h"
#include "threads/search.h"
#include "threads/set.h"
#include "threads/stop.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int aco_threads_stop(aco_threads_t *threads)
{
    if (!threads)
        return aco__service_fail(EINVAL, "aco_threads_stop", "the set is NULL");
    aco__threads_hold(threads);
    __atomic_store_n(&threads->is_stopped, 1, __ATOMIC_SEQ_CST);
    aco__threads_each(threads, aco__threads_post_ends);
    aco__threads_release(threads);
    return 0;
}

int aco_threads_cancel(aco_threads_t *threads)
{
    if (!threads)
        return aco__service_fail(EINVAL, "aco_threads_cancel", "the set is NULL");
    __atomic_store_n(&threads->is_cancelled, 1, __ATOMIC_SEQ_CST);
    return aco_threads_stop(threads);
}

/* ---- Scopes ---- */

/* The scope stands in the list before it looks; the set is stopped before that is posted. So one of the two sees the
 * other. */
int aco_stop_begin_at(aco_stop_t *stop, int64_t deadline, const char *location)
{
    static const char call[] = "aco_stop_begin";
    aco__set_worker_t *worker = aco__threads_self();
    if (!stop)
        return aco__service_fail(EINVAL, call, "the scope is NULL");
    if (!worker)
        return aco__service_fail(EPERM, call, "the thread is in no set of threads");
    if (aco__may_move(stop))
        return aco__service_fail(EINVAL, call, "the scope is on a share stack");
    if (aco__mt_scope_begin(&stop->scope, deadline, 0, call, location) != 0)
        return -1;
    stop->aco__previous = NULL;
    stop->aco__next = worker->stops;
    if (stop->aco__next)
        stop->aco__next->aco__previous = stop;
    worker->stops = stop;
    if (__atomic_load_n(&worker->threads->is_stopped, __ATOMIC_SEQ_CST))
        aco__scope_end_early(&stop->scope, ECANCELED);
    return 0;
}

int aco_stop_end(aco_stop_t *stop)
{
    static const char call[] = "aco_stop_end";
    aco__set_worker_t *worker = aco__threads_self();
    if (!stop)
        return aco__service_fail(EINVAL, call, "the scope is NULL");
    if (aco__mt_scope_check(&stop->scope, call) != 0)
        return -1;
    ACO__ASSERT((stop->aco__previous ? stop->aco__previous->aco__next : worker->stops) == stop);
    ACO__ASSERT(!stop->aco__next || stop->aco__next->aco__previous == stop);
    *(stop->aco__previous ? &stop->aco__previous->aco__next : &worker->stops) = stop->aco__next;
    if (stop->aco__next)
        stop->aco__next->aco__previous = stop->aco__previous;
    aco__mt_scope_end(&stop->scope);
    return 0;
}

void aco__threads_end_stops(const aco__set_worker_t *worker)
{
    if (!__atomic_load_n(&worker->threads->is_stopped, __ATOMIC_SEQ_CST))
        return;
    ACO__NO_SWITCH_BEGIN(); /* tasks would end their scopes */
    for (aco_stop_t *stop = worker->stops; stop; stop = stop->aco__next)
        aco__scope_end_early(&stop->scope, ECANCELED);
    ACO__NO_SWITCH_END();
}

/* ---- SIGINT and SIGTERM ---- */

/* Not on the stack of the set's first thread: if that ends in a task, its stack has ended before. */
typedef struct aco__watcher {
    aco__listener_t base; /* first */
    aco_threads_t *threads;
    sigset_t signals;
    pthread_t thread;
    unsigned told; /* signals for which others woke the thread; and WATCHES: they may. Atomic */
    int is_over;
} watcher_t;

enum { TOLD_INT = 1, TOLD_TERM = 2, WATCHES = 4 };

static unsigned told_bit(int number)
{
    return number == SIGINT ? TOLD_INT : TOLD_TERM;
}

/* A signal that is sent for each bit says that the bit is to be read. */
static void tell_watcher(aco__listener_t *listener, int number, int32_t sender)
{
    watcher_t *watcher = (watcher_t *)(void *)listener;
    unsigned before = __atomic_fetch_or(&watcher->told, told_bit(number), __ATOMIC_SEQ_CST);
    (void)sender;
    if (before & WATCHES && !(before & told_bit(number)))
        aco__system.pthread_kill(watcher->thread, number);
}

#ifdef __APPLE__ /* has no sigtimedwait() */
static int await_signal(const sigset_t *signals, int64_t until, int32_t *sender)
{
    static const struct timespec pause = {0, 10 * ACO_MILLISECOND};
    sigset_t pending;
    int number;
    *sender = 0;
    while (until != ACO_FOREVER && aco__system.sigpending(&pending) == 0 && !sigismember(&pending, SIGINT) &&
           !sigismember(&pending, SIGTERM)) {
        if (aco_now() >= until)
            return 0;
        aco__system.nanosleep(&pause, NULL);
    }
    return sigwait(signals, &number) == 0 ? number : 0;
}
#else
/* The next signal, and who sent it; 0: the time has come. */
static int await_signal(const sigset_t *signals, int64_t until, int32_t *sender)
{
    siginfo_t info;
    int number = -1;
    while (number < 0) {
        int64_t left = until == ACO_FOREVER ? 0 : until - aco_now();
        const struct timespec time = aco__os_timespec(left);
        if (left <= 0 && until != ACO_FOREVER)
            return 0;
        number = until == ACO_FOREVER ? aco__system.sigwaitinfo(signals, &info)
                                      : aco__system.sigtimedwait(signals, &info, &time);
    }
    *sender = (int32_t)info.si_pid;
    return number;
}
#endif

/* The same. If the thread has taken it from the system, others are told. */
static int next_signal(watcher_t *watcher, int64_t until)
{
    int32_t sender;
    int number = await_signal(&watcher->signals, until, &sender);
    if (number && !(__atomic_fetch_and(&watcher->told, ~told_bit(number), __ATOMIC_SEQ_CST) & told_bit(number)))
        (void)aco__listen_tell(&watcher->base, number, sender);
    return number;
}

static void cancel_watched(aco_threads_t *threads)
{
    int none = 0;
    __atomic_compare_exchange_n(&threads->error, &none, EINTR, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    (void)aco_threads_cancel(threads);
}

/* The signal does what it would do without the set: as a rule, it ends the process. */
static void act_as_without(int number)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    aco__system.pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    aco__system.pthread_kill(pthread_self(), number);
    aco__system.pthread_sigmask(SIG_BLOCK, &one, NULL);
}

/* Cancelled tasks need not end: they may compute, wait in a shield, or not look at errors. So what follows on the
 * cancellation is the signal's own action: when another one comes; or, since two have come, after a while. */
static void *watch_signals(void *arg)
{
    watcher_t *watcher = arg;
    int64_t drain_ns = watcher->threads->drain_ns, until = ACO_FOREVER;
    int number, last = 0, is_cancelled = 0;
    for (;;) {
        number = next_signal(watcher, until);
        if (__atomic_load_n(&watcher->is_over, __ATOMIC_SEQ_CST))
            return NULL;
        if (is_cancelled) {
            until = ACO_FOREVER;
            act_as_without(number ? number : last);
        } else if (drain_ns && !last) {
            until = aco_after(drain_ns);
            last = number;
            (void)aco_threads_stop(watcher->threads);
        } else {
            until = last && number ? aco_after(THREADS_END_NS) : ACO_FOREVER;
            last = number ? number : last;
            is_cancelled = 1;
            cancel_watched(watcher->threads);
        }
    }
}

/* 0, or an errno. */
static int begin_watch(aco_threads_t *threads)
{
    size_t sz = sizeof(watcher_t);
    watcher_t *watcher = aco__service_new(&sz, "aco_threads_run");
    unsigned told;
    int error;
    if (!watcher)
        return errno;
    watcher->base.signals = (uint64_t)1 << (SIGINT - 1) | (uint64_t)1 << (SIGTERM - 1);
    watcher->base.told = tell_watcher;
    watcher->threads = threads;
    sigemptyset(&watcher->signals);
    sigaddset(&watcher->signals, SIGINT);
    sigaddset(&watcher->signals, SIGTERM);
    aco__listen(&watcher->base, 0); /* the threads that are made inherit what is blocked */
    error = aco__system.pthread_create(&watcher->thread, NULL, watch_signals, watcher);
    if (error) {
        aco__listen_end(&watcher->base);
        aco__service_free(watcher, sizeof *watcher);
        return error;
    }
    threads->watcher = watcher;
    told = __atomic_fetch_or(&watcher->told, WATCHES, __ATOMIC_SEQ_CST);
    if (told & TOLD_INT)
        aco__system.pthread_kill(watcher->thread, SIGINT);
    if (told & TOLD_TERM)
        /* NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread,cert-pos44-c): it takes it */
        aco__system.pthread_kill(watcher->thread, SIGTERM);
    return 0;
}

void aco__threads_end_watch(aco_threads_t *threads)
{
    watcher_t *watcher = threads->watcher;
    threads->watcher = NULL;
    if (!watcher)
        return;
    aco__listen_end(&watcher->base);
    if (watcher->base.process == (long)aco__system.getpid()) { /* in a child its thread is not there */
        __atomic_store_n(&watcher->is_over, 1, __ATOMIC_SEQ_CST);
        tell_watcher(&watcher->base, SIGINT, 0);
        aco__system.pthread_join(watcher->thread, NULL);
    }
    aco__service_free(watcher, sizeof *watcher);
}

int aco__threads_run_watched(aco_threads_t *threads, aco__set_worker_t *worker,
                             int (*run)(aco_threads_t *threads, aco__set_worker_t *worker))
{
    int error = begin_watch(threads), failed;
    if (error)
        threads->go = -1;
    failed = run(threads, worker);
    aco__threads_end_watch(threads);
    return error ? error : failed;
}
