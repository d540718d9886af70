/* How a set is stopped: scopes that end first, so that a server accepts no more but answers; then all. By a call, or by
 * SIGINT and SIGTERM, for which a thread waits. */
#define _GNU_SOURCE
#include "threads/threads.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static void post_end(aco__crew_t *worker)
{
    aco__threads_post(worker, &worker->cancel_post);
}

int aco_threads_stop(aco_threads_t *threads)
{
    if (!threads)
        return aco__poller_fail(EINVAL, "aco_threads_stop", "the set is NULL");
    aco__threads_hold(threads);
    __atomic_store_n(&threads->is_stopped, 1, __ATOMIC_SEQ_CST);
    aco__threads_each(threads, post_end);
    aco__threads_release(threads);
    return 0;
}

int aco_threads_cancel(aco_threads_t *threads)
{
    if (!threads)
        return aco__poller_fail(EINVAL, "aco_threads_cancel", "the set is NULL");
    __atomic_store_n(&threads->is_cancelled, 1, __ATOMIC_SEQ_CST);
    return aco_threads_stop(threads);
}

/* ---- Scopes ---- */

/* The scope stands in the list before it looks; the set is stopped before that is posted. So one of the two sees the
 * other. */
int aco_stop_begin_at(aco_stop_t *stop, int64_t deadline, const char *location)
{
    static const char call[] = "aco_stop_begin";
    aco__crew_t *worker = aco__threads_self();
    if (!stop)
        return aco__poller_fail(EINVAL, call, "the scope is NULL");
    if (!worker)
        return aco__poller_fail(EPERM, call, "the thread is in no set of threads");
    if (aco__poller_moves(stop))
        return aco__poller_fail(EINVAL, call, "the scope is on a share stack");
    if (aco__shared_scope_begin(&stop->scope, deadline, 0, call, location) != 0)
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
    aco__crew_t *worker = aco__threads_self();
    if (!stop)
        return aco__poller_fail(EINVAL, call, "the scope is NULL");
    if (aco__shared_scope_check(&stop->scope, call) != 0)
        return -1;
    *(stop->aco__previous ? &stop->aco__previous->aco__next : &worker->stops) = stop->aco__next;
    if (stop->aco__next)
        stop->aco__next->aco__previous = stop->aco__previous;
    aco__shared_scope_end(&stop->scope);
    return 0;
}

void aco__threads_end_stops(const aco__crew_t *worker)
{
    if (__atomic_load_n(&worker->threads->is_stopped, __ATOMIC_SEQ_CST))
        for (aco_stop_t *stop = worker->stops; stop; stop = stop->aco__next)
            aco__scope_end_early(&stop->scope, ECANCELED);
}

/* ---- SIGINT and SIGTERM ---- */

/* Not on the stack of the set's first thread: if that ends in a task, its stack has ended before. */
typedef struct aco__watcher {
    aco_threads_t *threads;
    pid_t process;
    sigset_t signals, before;
    pthread_t thread;
    int is_over;
} watcher_t;

#ifdef __APPLE__ /* has no sigtimedwait() */
static void await_signal_until(const sigset_t *signals, int64_t until)
{
    static const struct timespec pause = {0, 10 * ACO_MILLISECOND};
    sigset_t pending;
    int number;
    while (sigpending(&pending) == 0 && !sigismember(&pending, SIGINT) && !sigismember(&pending, SIGTERM)) {
        if (aco_now() >= until)
            return;
        aco__system.nanosleep(&pause, NULL);
    }
    sigwait(signals, &number);
}
#else
static void await_signal_until(const sigset_t *signals, int64_t until)
{
    int64_t left;
    while ((left = until - aco_now()) > 0) {
        const struct timespec time = {(time_t)(left / ACO_SECOND), (long)(left % ACO_SECOND)};
        if (sigtimedwait(signals, NULL, &time) > 0)
            return;
    }
}
#endif

static void cancel_watched(aco_threads_t *threads)
{
    int none = 0;
    __atomic_compare_exchange_n(&threads->error, &none, EINTR, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    (void)aco_threads_cancel(threads);
}

static void *watch_signals(void *arg)
{
    watcher_t *watcher = arg;
    int64_t drain_ns = watcher->threads->drain_ns, until = ACO_FOREVER;
    for (;;) {
        int number;
        if (until != ACO_FOREVER)
            await_signal_until(&watcher->signals, until);
        else if (sigwait(&watcher->signals, &number) != 0)
            return NULL;
        if (__atomic_load_n(&watcher->is_over, __ATOMIC_ACQUIRE))
            return NULL;
        if (drain_ns) {
            until = aco_after(drain_ns);
            drain_ns = 0;
            (void)aco_threads_stop(watcher->threads);
        } else {
            until = ACO_FOREVER;
            cancel_watched(watcher->threads);
        }
    }
}

/* 0, or an errno. */
static int begin_watch(aco_threads_t *threads)
{
    size_t sz = sizeof(watcher_t);
    watcher_t *watcher = aco__poller_allocate(&sz, "aco_threads_run");
    int error;
    if (!watcher)
        return errno;
    watcher->threads = threads;
    watcher->process = getpid();
    watcher->is_over = 0;
    sigemptyset(&watcher->signals);
    sigaddset(&watcher->signals, SIGINT);
    sigaddset(&watcher->signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &watcher->signals, &watcher->before); /* the threads that are made inherit it */
    error = pthread_create(&watcher->thread, NULL, watch_signals, watcher);
    if (!error) {
        threads->watcher = watcher;
        return 0;
    }
    pthread_sigmask(SIG_SETMASK, &watcher->before, NULL);
    aco__poller_free(watcher, sizeof *watcher);
    return error;
}

void aco__threads_end_watch(aco_threads_t *threads)
{
    watcher_t *watcher = threads->watcher;
    threads->watcher = NULL;
    if (!watcher)
        return;
    if (watcher->process == getpid()) { /* in a child its thread is not there */
        __atomic_store_n(&watcher->is_over, 1, __ATOMIC_RELEASE);
        pthread_kill(watcher->thread, SIGINT);
        pthread_join(watcher->thread, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &watcher->before, NULL);
    aco__poller_free(watcher, sizeof *watcher);
}

int aco__threads_run_watched(aco_threads_t *threads, aco__crew_t *worker,
                             int (*run)(aco_threads_t *threads, aco__crew_t *worker))
{
    int error = begin_watch(threads), failed;
    if (error)
        threads->go = -1;
    failed = run(threads, worker);
    aco__threads_end_watch(threads);
    return error ? error : failed;
}
