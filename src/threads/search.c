/* Which thread starts an item that was submitted: stealing, sleeping, waking.
 *
 * A thread without runnable tasks searches: it steals from others. If there is nothing, it says that it sleeps, stops
 * searching, and then looks at all queues once more. Whoever adds an item does so first and then wakes a thread that
 * sleeps, unless one searches. All of that is sequentially consistent. So if an item is added after the last look of a
 * searcher, the adder sees the searcher asleep and no longer searching; if before, the searcher sees the item. Each
 * added item wakes at most one thread, which wakes the next one when it has found something and more is left. Where it
 * has found many items it wakes one more: see wake_more(). A searcher leaves a lone item to the thread that has it, for
 * a while. It still counts as a searcher then; later it steals the item or finds it gone.
 *
 * Whoever makes the number of searchers 0 answers for the items that were added before, and have woken nobody: one that
 * has found something looks whether more is left, one that goes to sleep looks at all queues, and one that has counted
 * a searcher but found no sleeper to be it looks for sleepers again. */
#include "base/invariants.h"
#include "scheduler/spin.h"
#include "system/point.h"
#include "system/system.h"
#include "threads/deque.h"
#include "threads/search.h"
#include "threads/set.h"

#include <sched.h>

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;

void aco__threads_lock(void)
{
    ACO__LOCKED_BEGIN(&threads_lock);
    aco__system.pthread_mutex_lock(&threads_lock);
}

void aco__threads_unlock(void)
{
    aco__system.pthread_mutex_unlock(&threads_lock);
    ACO__LOCKED_END(&threads_lock);
}

void aco__threads_wait(aco_threads_t *threads)
{
    ACO__ASSERT_LOCKED(&threads_lock);
    aco__system.pthread_cond_wait(&threads->changed, &threads_lock);
}

void aco__threads_hold(aco_threads_t *threads)
{
    aco__threads_lock();
    threads->held++;
    aco__threads_unlock();
}

void aco__threads_release(aco_threads_t *threads)
{
    aco__threads_lock();
    ACO__ASSERT(threads->held > 0);
    threads->held--;
    aco__system.pthread_cond_broadcast(&threads->changed);
    aco__threads_unlock();
}

/* ---- fork() ---- */

static unsigned threads_forks;
static int threads_fork_error;
static void (*threads_in_child)(void);

static void threads_after_fork_in_child(void)
{
    threads_forks++;
    aco__threads_unlock();
    __atomic_load_n(&threads_in_child, __ATOMIC_ACQUIRE)();
}

static void threads_handle_forks(void)
{
    threads_fork_error = pthread_atfork(aco__threads_lock, aco__threads_unlock, threads_after_fork_in_child);
}

int aco__threads_handle_forks(void (*in_child)(void))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    __atomic_store_n(&threads_in_child, in_child, __ATOMIC_RELEASE); /* a fork at this moment finds no lock held */
    pthread_once(&once, threads_handle_forks);
    errno = threads_fork_error;
    return threads_fork_error ? -1 : (int)threads_forks;
}

int aco__threads_forked(const aco_threads_t *threads)
{
    return threads->forks != threads_forks;
}

/* ---- The threads of a set ---- */

aco__set_worker_t *aco__threads_self(void)
{
    return (aco__set_worker_t *)(void *)aco__worker();
}

static aco__set_worker_t *worker_at(const aco_threads_t *threads, int i)
{
    return __atomic_load_n(&threads->workers[i], __ATOMIC_ACQUIRE);
}

static int slots_of(const aco_threads_t *threads)
{
    return __atomic_load_n(&threads->slots, __ATOMIC_ACQUIRE);
}

void aco__threads_each(aco_threads_t *threads, void (*fn)(aco__set_worker_t *worker))
{
    for (int i = 0; i < slots_of(threads); i++)
        if (worker_at(threads, i))
            fn(worker_at(threads, i));
}

aco__set_worker_t *aco__threads_worker(aco_threads_t *threads, int number)
{
    return number >= 0 && number < slots_of(threads) ? worker_at(threads, number) : NULL;
}

/* Whether the worker's thread exists in this process: fork() keeps only its caller. */
static int is_here(const aco__set_worker_t *worker)
{
    return !aco__threads_forked(worker->threads) || worker == aco__threads_self();
}

int aco__threads_enter(aco__set_worker_t *worker)
{
    __atomic_fetch_add(&worker->posting, 1, __ATOMIC_SEQ_CST);
    return is_here(worker) && !__atomic_load_n(&worker->is_gone, __ATOMIC_SEQ_CST);
}

void aco__threads_leave(aco__set_worker_t *worker)
{
    ACO__ASSERT(__atomic_load_n(&worker->posting, __ATOMIC_RELAXED) > 0);
    __atomic_fetch_sub(&worker->posting, 1, __ATOMIC_SEQ_CST);
}

void aco__threads_close(aco__set_worker_t *worker)
{
    aco__store_then_load(&worker->is_gone, 1);
    while (__atomic_load_n(&worker->posting, __ATOMIC_SEQ_CST) && !aco__threads_forked(worker->threads))
        aco__system.sched_yield();
}

void aco__threads_post(aco__set_worker_t *worker, aco__post_t *post)
{
    if (aco__threads_enter(worker))
        aco__answer_post(worker->base.scheduler, post);
    aco__threads_leave(worker);
}

void aco__threads_wake(aco__set_worker_t *worker)
{
    aco__threads_post(worker, &worker->wake_post);
}

void aco__threads_post_ends(aco__set_worker_t *worker)
{
    aco__threads_post(worker, &worker->cancel_post);
}

/* ---- Waking ---- */

static int claim_sleeper(aco_threads_t *threads, aco__set_worker_t *worker)
{
    int is = 1;
    if (!worker || !__atomic_load_n(&worker->is_sleeping, __ATOMIC_SEQ_CST) ||
        !__atomic_compare_exchange_n(&worker->is_sleeping, &is, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return 0;
    __atomic_fetch_sub(&threads->sleeping, 1, __ATOMIC_SEQ_CST);
    return 1;
}

/* Claims one sleeper, near ones first; NULL if none sleeps. */
static aco__set_worker_t *claim_one(aco_threads_t *threads, const aco__set_worker_t *near)
{
    if (near && near->order)
        for (int i = 0; i < threads->n - 1; i++)
            if (claim_sleeper(threads, worker_at(threads, near->order[i])))
                return worker_at(threads, near->order[i]);
    for (int i = 0; i < slots_of(threads); i++)
        if (claim_sleeper(threads, worker_at(threads, i)))
            return worker_at(threads, i);
    return NULL;
}

/* Threads sleep, or did a moment ago. Wakes one, if fewer than `most` search. */
static ACO__COLD void wake_a_sleeper(aco_threads_t *threads, const aco__set_worker_t *near, unsigned most)
{
    enum { SPINS = 10 };
    aco__set_worker_t *sleeper;
    int spins = 0;
    while (__atomic_load_n(&threads->sleeping, __ATOMIC_SEQ_CST) && !aco__threads_forked(threads)) {
        unsigned now = __atomic_load_n(&threads->searching, __ATOMIC_SEQ_CST);
        if (now >= most ||
            !__atomic_compare_exchange_n(&threads->searching, &now, now + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return; /* they will look at all queues before they sleep */
        sleeper = claim_one(threads, near);
        if (sleeper) {
            aco__threads_wake(sleeper); /* it is the searcher now */
            return;
        }
        __atomic_fetch_sub(&threads->searching, 1, __ATOMIC_SEQ_CST);
        if (++spins > SPINS)
            aco__system.sched_yield(); /* a thread that is between the two steps of claim_sleeper() does not run */
    }
}

void aco__threads_wake_one(aco_threads_t *threads, const aco__set_worker_t *near)
{
    ACO__POINT();
    if (aco_unlikely(__atomic_load_n(&threads->sleeping, __ATOMIC_SEQ_CST) != 0))
        wake_a_sleeper(threads, near, 1);
}

/* The worker has found so many items in one place: wakes one more thread. It takes tens of microseconds until a woken
 * thread runs, and if each woke only the next one, a short program would be over before all had begun. But searchers
 * slow down the threads at whose deques they look. So at most about half of those that are awake may search, and there
 * must be enough items for each: docs/threads.md, "Beyond this machine". */
static void wake_more(const aco__set_worker_t *worker, size_t found)
{
    enum { ITEMS_EACH = 16 };
    aco_threads_t *threads = worker->threads;
    unsigned sleeping = __atomic_load_n(&threads->sleeping, __ATOMIC_SEQ_CST), most;
    if (!sleeping || found < ITEMS_EACH)
        return;
    most = ((unsigned)slots_of(threads) - sleeping) / 2 + 1;
    wake_a_sleeper(threads, worker, found / ITEMS_EACH < most ? (unsigned)(found / ITEMS_EACH) : most);
}

/* ---- Searching ---- */

static aco__node_t *take_injected(aco_threads_t *threads)
{
    aco__node_t *node = NULL;
    if (!__atomic_load_n(&threads->injected, __ATOMIC_SEQ_CST))
        return NULL;
    aco__threads_lock();
    node = threads->first;
    ACO__ASSERT(!node == !__atomic_load_n(&threads->injected, __ATOMIC_RELAXED));
    if (node) {
        threads->first = node->next;
        __atomic_fetch_sub(&threads->injected, 1, __ATOMIC_SEQ_CST);
    }
    aco__threads_unlock();
    return node;
}

static int open_node(aco__node_t *node, aco__item_t *item)
{
    if (!node)
        return 0;
    *item = node->item;
    aco__service_free(node, node->sz);
    return 1;
}

aco__node_t *aco__threads_sent(aco__set_worker_t *worker)
{
    if (!worker->first)
        worker->first = aco__threads_receive(worker);
    return worker->first;
}

int aco__threads_take(aco__set_worker_t *worker, aco__item_t *item)
{
    enum { ROUNDS_PER_INJECTED = 64 };
    if (aco_unlikely(++worker->rounds % ROUNDS_PER_INJECTED == 0) && open_node(take_injected(worker->threads), item))
        return 1;
    return aco__deque_pop(&worker->deque, item);
}

/* 0: they share their largest cache; 1: their node; 2: neither. */
static int distance_between(const aco__set_worker_t *a, const aco__set_worker_t *b)
{
    return a->place.node != b->place.node ? 2 : a->place.cache != b->place.cache;
}

void aco__threads_find_near(aco__set_worker_t *worker)
{
    const aco_threads_t *threads = worker->threads;
    int n = threads->n, count = 0, has_far = 0;
    for (int i = 0; i < n; i++)
        has_far |= distance_between(worker, threads->workers[i]);
    if (!has_far)
        return;
    worker->order_sz = (size_t)n * sizeof *worker->order;
    worker->order = aco__service_allocate(&worker->order_sz, "aco_threads_run");
    if (!worker->order) /* it can do without */
        return;
    for (int distance = 0; distance <= 2; distance++)
        for (int i = 1; i < n; i++) {
            int other = (worker->index + i) % n;
            if (distance_between(worker, threads->workers[other]) == distance)
                worker->order[count++] = (uint16_t)other;
        }
    ACO__ASSERT(count == n - 1);
}

/* At which thread the worker looks as the nth, from 1 on. */
static int nth_victim(const aco__set_worker_t *worker, int n, int slots)
{
    if (aco_likely(!worker->order))
        return (worker->index + n) % slots;
    return n < worker->threads->n ? worker->order[n - 1] : n;
}

/* Steals half of what the victim has, if that is at least so many items. The first one is for now, the others go to the
 * worker's own deque. */
static int steal_from(aco__set_worker_t *worker, aco__set_worker_t *victim, size_t least, aco__item_t *item)
{
    aco__item_t more;
    size_t count = aco__deque_count(&victim->deque), wanted = (count + 1) / 2, stolen = 1;
    if (count < least || aco__deque_steal(&victim->deque, item) <= 0)
        return 0;
    worker->found = count;
    if (wanted > THREADS_STOLEN)
        wanted = THREADS_STOLEN;
    for (; --wanted && aco__deque_has_room(&worker->deque) && aco__deque_steal(&victim->deque, &more) > 0; stolen++)
        (void)aco__deque_push(&worker->deque, &more);
    __atomic_store_n(&worker->stolen, worker->stolen + stolen, __ATOMIC_RELAXED);
    return 1;
}

static int is_anything_left(aco_threads_t *threads)
{
    if (__atomic_load_n(&threads->injected, __ATOMIC_SEQ_CST))
        return 1;
    for (int i = 0; i < slots_of(threads); i++)
        if (worker_at(threads, i) && aco__deque_count(&worker_at(threads, i)->deque))
            return 1;
    return 0;
}

/* Time for a thread to start what it submitted last: a task that submits one and then waits for it, as for an answer
 * through a channel, has it on its own thread. */
static void pause_for_submitter(void)
{
    enum { LEFT_NS = 5000 };
    int64_t end = aco_now() + LEFT_NS;
    if (ACO__HAS_POINTS()) { /* the clock may stand still */
        aco__system.sched_yield();
        return;
    }
    do
        aco__spin_pause();
    while (aco_now() < end);
}

int aco__threads_find(aco__set_worker_t *worker, aco__item_t *item)
{
    enum { ATTEMPTS = 4, LEAST_AT_FIRST = 2 };
    aco_threads_t *threads = worker->threads;
    int slots = slots_of(threads);
    if (aco__threads_forked(threads)) /* what others had is forgotten */
        return 0;
    if (!worker->is_searching) {
        worker->is_searching = 1;
        __atomic_fetch_add(&threads->searching, 1, __ATOMIC_SEQ_CST);
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (attempt == 1 && is_anything_left(threads))
            pause_for_submitter();
        if (open_node(take_injected(threads), item))
            return 1;
        for (int i = 1; i < slots; i++) {
            aco__set_worker_t *victim = worker_at(threads, nth_victim(worker, i, slots));
            if (victim && victim != worker && steal_from(worker, victim, attempt ? 1 : LEAST_AT_FIRST, item))
                return 1;
        }
    }
    return 0;
}

int aco_threads_stats(const aco_threads_t *threads, aco_threads_stats_t *stats)
{
    if (!threads || !stats)
        return aco__service_fail(EINVAL, "aco_threads_stats", threads ? "the statistics are NULL" : "the set is NULL");
    stats->queued = __atomic_load_n(&threads->injected, __ATOMIC_RELAXED);
    stats->stolen = 0;
    stats->sleeping = __atomic_load_n(&threads->sleeping, __ATOMIC_RELAXED);
    for (int i = 0; i < slots_of(threads); i++) {
        const aco__set_worker_t *worker = worker_at(threads, i);
        if (!worker)
            continue;
        stats->queued += aco__deque_count(&worker->deque);
        stats->stolen += __atomic_load_n(&worker->stolen, __ATOMIC_RELAXED);
    }
    return 0;
}

/* ---- Sleeping ---- */

static void stop_searching(aco__set_worker_t *worker)
{
    aco_threads_t *threads = worker->threads;
    ACO__ASSERT(__atomic_load_n(&threads->searching, __ATOMIC_RELAXED) > 0); /* it has been counted */
    worker->is_searching = 0;
    if (__atomic_fetch_sub(&threads->searching, 1, __ATOMIC_SEQ_CST) == 1 && is_anything_left(threads))
        aco__threads_wake_one(threads, worker); /* items added meanwhile have woken nobody */
    wake_more(worker, worker->found);
    worker->found = 0;
}

void aco__threads_end_search(aco__set_worker_t *worker)
{
    if (worker->is_searching)
        stop_searching(worker);
}

int aco__threads_may_sleep(aco__set_worker_t *worker)
{
    aco_threads_t *threads = worker->threads;
    if (aco__threads_forked(threads))
        return 1;
    ACO__ASSERT(!worker->is_registered && !__atomic_load_n(&worker->is_sleeping, __ATOMIC_RELAXED));
    __atomic_store_n(&worker->is_sleeping, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&threads->sleeping, 1, __ATOMIC_SEQ_CST);
    worker->is_registered = 1;
    ACO__POINT();
    if (worker->is_searching) {
        worker->is_searching = 0;
        __atomic_fetch_sub(&threads->searching, 1, __ATOMIC_SEQ_CST);
    }
    ACO__POINT();
    if (!is_anything_left(threads) && !aco__threads_has_sent(worker))
        return 1;
    aco__threads_slept(worker);
    return 0;
}

void aco__threads_slept(aco__set_worker_t *worker)
{
    if (!worker->is_registered)
        return;
    worker->is_registered = 0;
    if (!claim_sleeper(worker->threads, worker))
        worker->is_searching = 1; /* whoever woke it has counted that */
}

/* ---- Work from elsewhere ---- */

static aco__node_t *new_node(const aco__item_t *item)
{
    size_t sz = sizeof(aco__node_t);
    aco__node_t *node = aco__service_allocate(&sz, "aco_submit");
    if (node) {
        node->next = NULL;
        node->item = *item;
        node->sz = sz;
    }
    return node;
}

int aco__threads_inject(aco_threads_t *threads, const aco__item_t *item)
{
    aco__node_t *node;
    if (aco__threads_forked(threads)) { /* the calling thread is not of the set, so none of the set is here */
        errno = ECANCELED;
        return -1;
    }
    node = new_node(item);
    if (!node)
        return -1;
    aco__threads_lock();
    *(threads->first ? &threads->last->next : &threads->first) = node;
    threads->last = node;
    __atomic_fetch_add(&threads->injected, 1, __ATOMIC_SEQ_CST);
    threads->held++; /* the work may end the set */
    aco__threads_unlock();
    aco__threads_wake_one(threads, NULL);
    aco__threads_release(threads);
    return 0;
}

aco__set_worker_t *aco__threads_least_sent(aco_threads_t *threads)
{
    unsigned turn = __atomic_fetch_add(&threads->turn, 1, __ATOMIC_RELAXED), least = 0;
    aco__set_worker_t *found = NULL;
    for (int i = 0; i < threads->n; i++) { /* of several with as few, the one whose turn it is */
        aco__set_worker_t *worker = worker_at(threads, (int)((turn + (unsigned)i) % (unsigned)threads->n));
        unsigned sent = __atomic_load_n(&worker->sent, __ATOMIC_RELAXED);
        if (__atomic_load_n(&worker->is_gone, __ATOMIC_SEQ_CST) || !is_here(worker) || (found && sent >= least))
            continue;
        found = worker;
        least = sent;
    }
    return found;
}

int aco__threads_send(aco__set_worker_t *worker, const aco__item_t *item)
{
    aco__node_t *node = new_node(item), *next;
    if (!node)
        return -1;
    if (!aco__threads_enter(worker)) {
        aco__threads_leave(worker);
        aco__service_free(node, node->sz);
        errno = ESRCH;
        return -1;
    }
    __atomic_fetch_add(&worker->sent, 1, __ATOMIC_RELAXED);
    next = __atomic_load_n(&worker->inbox, __ATOMIC_RELAXED);
    do
        node->next = next;
    while (!__atomic_compare_exchange_n(&worker->inbox, &next, node, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    aco__answer_post(worker->base.scheduler, &worker->wake_post);
    aco__threads_leave(worker);
    return 0;
}

void aco__threads_open(aco__set_worker_t *worker)
{
    __atomic_store_n(&worker->is_gone, 0, __ATOMIC_SEQ_CST);
}

aco__node_t *aco__threads_receive(aco__set_worker_t *worker)
{
    aco__node_t *node = __atomic_exchange_n(&worker->inbox, NULL, __ATOMIC_SEQ_CST), *list = NULL;
    while (node) {
        aco__node_t *before = node->next;
        node->next = list;
        list = node;
        node = before;
    }
    return list;
}
