/* Sets of threads: how they begin, what aco_run() calls on each of them, and how they end.
 *
 * The end. Each thread counts as busy as long as it has tasks. Whoever submits work, or has run it, is busy: so once
 * nobody is, nobody can become busy, and the set is done. A thread that takes work counts itself before it runs it,
 * and until then the task that waits for the work is on a thread that is busy. */
#define _GNU_SOURCE
#include "base/invariants.h"
#include "base/reserved.h"
#include "system/system.h"
#include "threads/cpus.h"
#include "threads/deque.h"
#include "threads/search.h"
#include "threads/set.h"
#include "threads/stop.h"
#include "threads/submit.h"

#include <string.h>

/* ---- What aco_run() calls ---- */

static void fail_set(aco_threads_t *threads, int error)
{
    int none = 0;
    __atomic_compare_exchange_n(&threads->error, &none, error, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    if (!(threads->flags & ACO_THREADS_KEEP_GOING))
        (void)aco_threads_cancel(threads);
}

static void set_is_done(aco_threads_t *threads)
{
    __atomic_store_n(&threads->is_done, 1, __ATOMIC_SEQ_CST);
    aco__threads_each(threads, aco__threads_wake);
}

static void count(aco__set_worker_t *worker)
{
    if (aco_likely(worker->is_counted))
        return;
    __atomic_fetch_add(&worker->threads->busy, 1, __ATOMIC_SEQ_CST);
    worker->is_counted = 1;
}

static void uncount(aco__set_worker_t *worker)
{
    if (!worker->is_counted)
        return;
    ACO__ASSERT(__atomic_load_n(&worker->threads->busy, __ATOMIC_RELAXED) > 0); /* or the set never ends */
    worker->is_counted = 0;
    if (__atomic_fetch_sub(&worker->threads->busy, 1, __ATOMIC_SEQ_CST) == 1)
        set_is_done(worker->threads);
}

static aco__set_worker_t *worker_of(aco__worker_t *base)
{
    return (aco__set_worker_t *)(void *)base;
}

/* Those that are spawned later are cancelled in the next round. A round without such tasks costs nothing. */
static void cancel_tasks(aco__set_worker_t *worker)
{
    if (aco_unlikely(__atomic_load_n(&worker->threads->is_cancelled, __ATOMIC_SEQ_CST)))
        aco__scope_end_all(&worker->all, ECANCELED);
}

static void on_round(aco__worker_t *base)
{
    aco__set_worker_t *worker = worker_of(base);
    cancel_tasks(worker);
    if (aco__threads_start(worker, 0, 0) || aco__worker_tasks())
        count(worker);
}

static int on_idle(aco__worker_t *base)
{
    aco__set_worker_t *worker = worker_of(base);
    if (aco__worker_tasks())
        count(worker);
    do
        if (aco__threads_start(worker, 1, 1)) {
            count(worker);
            return 1;
        }
    while (!aco__threads_may_sleep(worker));
    return 0;
}

static void on_awake(aco__worker_t *base)
{
    aco__set_worker_t *worker = worker_of(base);
    aco__threads_slept(worker);
    if (worker->is_searching && aco__threads_start(worker, 1, 0)) /* now: tasks that can run may do so for long */
        count(worker);
}

static int on_no_tasks(aco__worker_t *base)
{
    aco__set_worker_t *worker = worker_of(base);
    if (aco__threads_forked(worker->threads))
        return 0;
    if (worker->leaves && aco__threads_start(worker, 0, 0)) {
        count(worker);
        return 1;
    }
    uncount(worker);
    return !worker->leaves && !__atomic_load_n(&worker->threads->is_done, __ATOMIC_SEQ_CST);
}

/* The thread takes no part any more. If it has tasks, they never run again. */
static void leave_set(aco__set_worker_t *worker)
{
    aco__threads_close(worker);
    aco__answer_forget(worker->base.scheduler, &worker->wake_post);
    aco__answer_forget(worker->base.scheduler, &worker->cancel_post);
    aco__threads_slept(worker);
    aco__threads_end_search(worker);
    aco__threads_abandon(worker);
    aco__threads_wake_one(worker->threads, worker); /* for what it had submitted */
    uncount(worker);
}

/* The thread leaves its slot, if it has one (else NULL), to the next that joins. The set may be gone afterwards. */
static void release_slot(aco_threads_t *threads, aco__set_worker_t *worker)
{
    aco__threads_lock();
    ACO__ASSERT(!worker || (worker->is_used && worker->index >= threads->n));
    if (worker)
        worker->is_used = 0;
    aco__threads_unlock();
    aco__threads_release(threads);
}

static void on_thread_end(aco__worker_t *base)
{
    aco__set_worker_t *worker = worker_of(base);
    leave_set(worker);
    if (worker->index >= worker->threads->n)
        release_slot(worker->threads, worker);
    else if (worker->index == 0)
        aco__threads_end_watch(worker->threads);
}

/* ---- Workers ---- */

static void woken(aco__thread_t *self, aco__post_t *post)
{
    (void)self;
    (void)post; /* the thread is awake: that is all */
}

static void cancelled(aco__thread_t *self, aco__post_t *post)
{
    aco__set_worker_t *worker = (aco__set_worker_t *)(void *)((char *)post - offsetof(aco__set_worker_t, cancel_post));
    (void)self;
    aco__threads_pass_ends(worker);
    aco__threads_end_stops(worker);
    cancel_tasks(worker);
}

/* A new worker in the slot, or one that has left it. NULL and errno without memory. */
static aco__set_worker_t *worker_in(aco_threads_t *threads, int slot, const char *call)
{
    aco__set_worker_t *worker = threads->workers[slot];
    size_t sz = sizeof *worker;
    if (!worker) {
        worker = aco__service_new(&sz, call);
        if (!worker)
            return NULL;
        if (aco__deque_open(&worker->deque) != 0) {
            aco__service_free(worker, sizeof *worker);
            return NULL;
        }
        worker->threads = threads;
        worker->index = slot;
        worker->place.node = worker->place.cache = -1;
        worker->is_gone = 1;
        worker->base.round = on_round;
        worker->base.idle = on_idle;
        worker->base.awake = on_awake;
        worker->base.stays = on_no_tasks;
        worker->base.scope_ended = aco__threads_group_ended;
        worker->base.thread_ends = on_thread_end;
        worker->wake_post.run = woken;
        worker->cancel_post.run = cancelled;
        __atomic_store_n(&threads->workers[slot], worker, __ATOMIC_RELEASE);
    }
    return worker;
}

/* A function has failed, and the set is cancelled. Other tasks of its thread may take their time, or not look at that:
 * then aco_threads_run() does not return the failure soon, or ever. */
static void report_failure(const aco__set_worker_t *worker)
{
    size_t others = aco__worker_tasks() - 1;
    if (others && !(worker->threads->flags & ACO_THREADS_KEEP_GOING))
        aco__service_warn("aco_threads_run", "the function has failed on thread %d: %s; %zu more task%s cancelled",
                          worker->index, strerror(worker->error), others, others == 1 ? " there is" : "s there are");
}

/* The first task of a thread. */
ACO__SWITCHES static void *run_root(void *arg)
{
    aco__set_worker_t *worker = arg;
    void *result;
    int error;
    if (worker->threads->go < 0) /* another thread could not be made */
        return NULL;
    cancel_tasks(worker);
    errno = 0;
    result = worker->fn(worker->arg);
    error = errno;
    if (result == ACO_ERROR) {
        worker->error = error ? error : EINVAL;
        fail_set(worker->threads, worker->error);
        report_failure(worker);
    }
    return NULL;
}

/* The calling thread becomes the worker, with a task for fn, unless that is NULL. 0, or -1 and errno. */
static int enter_set(aco__set_worker_t *worker, ACO__SWITCHES aco_function_t fn, void *arg, const char *call)
{
    aco_t *task = NULL;
    ACO__ASSERT(!worker->runs && !worker->groups && !worker->first && !worker->is_counted); /* as leave_set() left it */
    ACO__ASSERT(worker->is_gone && !worker->is_registered && !worker->is_searching);
    worker->error = 0;
    worker->leaves = 0;
    worker->stops = NULL;
    worker->rounds = worker->started = worker->begun = 0;
    worker->is_quick = 1;
    worker->fn = fn;
    worker->arg = arg;
    if (aco__worker_install(&worker->base, call) != 0)
        return -1;
    if (fn && !(task = aco_spawn(run_root, worker, NULL))) {
        int error = errno;
        aco__worker_close();
        aco__worker_remove(&worker->base, 0);
        errno = error;
        return -1;
    }
    if (task)
        (void)aco_detach(task);
    aco__threads_open(worker);
    return 0;
}

/* Runs the worker's tasks, and others' work. 0, or -1 and errno of aco_run(). */
static int run_worker(aco__set_worker_t *worker)
{
    int failed = aco_run(), error;
    aco__worker_close();
    if (!failed)
        failed = aco_run(); /* what was posted at the last moment */
    error = errno;
    if (failed)
        fail_set(worker->threads, error);
    leave_set(worker);
    aco__worker_remove(&worker->base, failed);
    errno = error;
    return failed;
}

/* ---- Threads ---- */

/* Says that the thread is ready, or that it is not; waits until all are. Whether all are. */
static int wait_for_all(aco_threads_t *threads, int is_ready)
{
    int go;
    aco__threads_lock();
    threads->waiting++;
    ACO__ASSERT(threads->waiting <= threads->n);
    if (!is_ready)
        threads->go = -1;
    else if (!threads->go && threads->waiting == threads->n)
        threads->go = 1;
    aco__system.pthread_cond_broadcast(&threads->changed);
    while (!threads->go)
        aco__threads_wait(threads);
    go = threads->go;
    aco__threads_unlock();
    return go > 0;
}

static void on_pin(aco__worker_t *base, int is_pinned)
{
    const aco__set_worker_t *worker = (aco__set_worker_t *)(void *)base;
    if (is_pinned)
        (void)aco__threads_pin(&worker->threads->allowed, worker->index);
    else
        aco__threads_unpin(&worker->threads->allowed);
}

/* Binds the calling thread to a processor of its own, if there is one. */
static void pin(aco__set_worker_t *worker)
{
    int processor =
        worker->index < worker->threads->processors ? aco__threads_pin(&worker->threads->allowed, worker->index) : -1;
    worker->place = aco__threads_place("", processor);
    worker->base.pin = processor >= 0 ? on_pin : NULL;
}

static void *thread_main(void *arg)
{
    aco__set_worker_t *worker = arg;
    aco_threads_t *threads = worker->threads;
    int is_ready;
    pin(worker);
    is_ready = enter_set(worker, threads->flags & ACO_THREADS_FIRST_ONLY ? NULL : threads->fn, threads->arg,
                         "aco_threads_run") == 0;
    if (!is_ready)
        fail_set(threads, errno);
    worker->is_counted = 1;
    if (wait_for_all(threads, is_ready) && threads->processors)
        aco__threads_find_near(worker);
    if (is_ready)
        (void)run_worker(worker);
    else
        uncount(worker);
    return NULL;
}

/* Starts the other threads. How many there are; less than wanted: errno tells why. */
static int start_threads(aco_threads_t *threads)
{
    for (int i = 1; i < threads->n; i++) {
        aco__set_worker_t *worker = worker_in(threads, i, "aco_threads_run");
        int error = worker ? aco__system.pthread_create(&worker->thread, NULL, thread_main, worker) : errno;
        if (error) {
            errno = error;
            return i;
        }
    }
    return threads->n;
}

/* ---- The calls ---- */

static void in_child(void)
{
    aco__set_worker_t *worker = aco__threads_self();
    if (!worker)
        return;
    worker->threads->first = NULL;
    worker->threads->injected = 0;
    aco__answer_forget(worker->base.scheduler, &worker->cancel_post); /* another thread was about to post it */
    cancelled(NULL, &worker->cancel_post);
    aco__threads_forget_others(worker);
}

static aco_threads_t *new_set(int n, ACO__SWITCHES aco_function_t fn, void *arg, const aco_threads_options_t *options,
                              const char *call)
{
    int forks = aco__threads_handle_forks(in_child);
    size_t slots = (size_t)n + THREADS_JOINED, sz = sizeof(aco_threads_t) + slots * sizeof(aco__set_worker_t *);
    aco_threads_t *threads = forks < 0 ? NULL : aco__service_allocate(&sz, call);
    if (!threads)
        return NULL;
    memset(threads, 0, sizeof *threads + slots * sizeof(aco__set_worker_t *));
    threads->n = threads->slots = n;
    threads->busy = (unsigned)n;
    threads->fn = fn;
    threads->arg = arg;
    threads->flags = options ? options->flags : 0;
    threads->drain_ns = options ? options->drain_ns : 0;
    threads->forks = (unsigned)forks;
    threads->sz = sz;
    pthread_cond_init(&threads->changed, NULL);
    return threads;
}

static void free_worker(aco__set_worker_t *worker)
{
    if (worker->order)
        aco__service_free(worker->order, worker->order_sz);
    aco__deque_free(&worker->deque);
    aco__service_free(worker, sizeof *worker);
}

static void free_set(aco_threads_t *threads)
{
    ACO__ASSERT(!threads->held);
    aco__threads_each(threads, free_worker);
    pthread_cond_destroy(&threads->changed);
    aco__service_free(threads, threads->sz);
}

/* Waits until the other threads, `made` with the calling one, have ended. */
static void join_all(aco_threads_t *threads, int made)
{
    for (int i = 1; i < made; i++)
        aco__system.pthread_join(threads->workers[i]->thread, NULL);
    aco__threads_lock();
    while (threads->held)
        aco__threads_wait(threads);
    aco__threads_unlock();
}

/* The calling thread is the first worker. 0, or an errno. */
static int run_set(aco_threads_t *threads, aco__set_worker_t *worker)
{
    int made, error;
    threads->processors = threads->flags & ACO_THREADS_PIN ? aco__threads_processors(&threads->allowed) : 0;
    made = start_threads(threads);
    error = made < threads->n ? errno : 0;
    pin(worker);
    if (!wait_for_all(threads, !error)) {
        set_is_done(threads);
        (void)aco_threads_cancel(threads); /* tasks that the thread had before */
    } else if (threads->processors)
        aco__threads_find_near(worker);
    if (run_worker(worker) != 0 && !error)
        error = errno;
    if (!aco__threads_forked(threads)) /* in a child, the others are not there */
        join_all(threads, made);
    if (worker->base.pin)
        aco__threads_unpin(&threads->allowed);
    return error ? error : threads->error;
}

static int fail_with(int error)
{
    errno = error;
    return -1;
}

static int start_set(aco_threads_t *threads, const char *call)
{
    aco__set_worker_t *worker = worker_in(threads, 0, call);
    int error;
    if (!worker || enter_set(worker, threads->fn, threads->arg, call) != 0) {
        error = errno;
        free_set(threads);
        return fail_with(error);
    }
    worker->is_counted = 1;
    error = threads->flags & ACO_THREADS_INTERRUPTIBLE ? aco__threads_run_watched(threads, worker, run_set)
                                                       : run_set(threads, worker);
    if (!aco__threads_forked(threads)) /* a child leaves it as it is */
        free_set(threads);
    return error ? fail_with(error) : 0;
}

int aco_threads_run(int n, aco_function_t fn, void *arg, const aco_threads_options_t *options)
{
    static const char call[] = "aco_threads_run";
    const unsigned all = ACO_THREADS_FIRST_ONLY | ACO_THREADS_PIN | ACO_THREADS_KEEP_GOING | ACO_THREADS_INTERRUPTIBLE;
    unsigned flags = options ? options->flags : 0;
    aco_threads_t *threads;
    int has_reserved = options && ACO__RESERVED_IS_SET(options), is_negative = options && options->drain_ns < 0;
    if (!fn || n < 0 || n > THREADS_MOST || flags & ~all || has_reserved || is_negative)
        return aco__service_fail(EINVAL, call,
                                 !fn            ? "the function is NULL"
                                 : flags & ~all ? "unknown flags"
                                 : has_reserved ? "a reserved option is not 0"
                                 : is_negative  ? "the time to drain is negative"
                                                : "not so many threads are possible");
    threads = new_set(n ? n : aco_threads_usable(), fn, arg, options, call);
    return threads ? start_set(threads, call) : -1;
}

static void uncount_late(aco_threads_t *threads)
{
    if (__atomic_fetch_sub(&threads->busy, 1, __ATOMIC_SEQ_CST) == 1)
        set_is_done(threads);
}

/* Counts one more thread as busy, unless the set is done. */
static int count_late(aco_threads_t *threads)
{
    unsigned busy = __atomic_load_n(&threads->busy, __ATOMIC_SEQ_CST);
    do
        if (!busy)
            return 0;
    while (!__atomic_compare_exchange_n(&threads->busy, &busy, busy + 1, 1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return 1;
}

/* A free slot, or NULL and errno. The set stays until release_slot(), in both cases. */
static aco__set_worker_t *take_slot(aco_threads_t *threads, const char *call)
{
    aco__set_worker_t *worker = NULL;
    int slot = threads->n, end = threads->n + THREADS_JOINED;
    aco__threads_lock();
    threads->held++;
    while (slot < end && threads->workers[slot] && threads->workers[slot]->is_used)
        slot++;
    if (slot == end) {
        aco__service_fail(EAGAIN, call, "too many threads have joined the set");
    } else if ((worker = worker_in(threads, slot, call)) != NULL) {
        worker->is_used = 1;
        if (slot >= threads->slots)
            __atomic_store_n(&threads->slots, slot + 1, __ATOMIC_RELEASE);
    }
    aco__threads_unlock();
    return worker;
}

int aco_threads_join(aco_threads_t *threads, aco_function_t fn, void *arg)
{
    static const char call[] = "aco_threads_join";
    aco__set_worker_t *worker;
    int error;
    if (!threads)
        return aco__service_fail(EINVAL, call, "the set is NULL");
    if (aco__threads_forked(threads) || !count_late(threads))
        return aco__service_fail(ESRCH, call, "the set has ended");
    worker = take_slot(threads, call);
    if (!worker || enter_set(worker, fn, arg, call) != 0) {
        error = errno;
        uncount_late(threads);
        release_slot(threads, worker);
        return fail_with(error);
    }
    worker->is_counted = 1;
    worker->leaves = fn != NULL;
    error = run_worker(worker) != 0 ? errno : worker->error;
    release_slot(threads, worker);
    return error ? fail_with(error) : 0;
}

/* ---- Questions ---- */

aco_threads_t *aco_threads_current(void)
{
    const aco__set_worker_t *worker = aco__threads_self();
    return worker ? worker->threads : NULL;
}

int aco_threads_index(void)
{
    const aco__set_worker_t *worker = aco__threads_self();
    return worker ? worker->index : -1;
}

int aco_threads_count(const aco_threads_t *threads)
{
    return threads ? threads->n : 0;
}
