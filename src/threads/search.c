/* Which thread starts an item that was submitted: stealing, sleeping, waking.
 *
 * A thread without runnable tasks searches: it steals from others. If there is nothing, it says that it sleeps, stops
 * searching, and then looks at all queues once more. Whoever adds an item does so first and then wakes a thread that
 * sleeps, unless one searches. All of that is sequentially consistent. So if an item is added after the last look of a
 * searcher, the adder sees the searcher asleep and no longer searching; if before, the searcher sees the item. Each
 * added item wakes at most one thread, which wakes the next one when it has found something and more is left. */
#include "threads/threads.h"

#include <sched.h>

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;

void aco__threads_lock(void)
{
    pthread_mutex_lock(&threads_lock);
}

void aco__threads_unlock(void)
{
    pthread_mutex_unlock(&threads_lock);
}

void aco__threads_wait(aco_threads_t *threads)
{
    pthread_cond_wait(&threads->changed, &threads_lock);
}

/* ---- fork() ---- */

static unsigned threads_forks;
static int threads_fork_error;
static void (*threads_in_child)(void);

static void threads_after_fork_in_child(void)
{
    threads_forks++;
    aco__threads_unlock();
    threads_in_child();
}

static void threads_handle_forks(void)
{
    threads_fork_error = pthread_atfork(aco__threads_lock, aco__threads_unlock, threads_after_fork_in_child);
}

int aco__threads_handle_forks(void (*in_child)(void))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    aco__threads_lock();
    threads_in_child = in_child;
    aco__threads_unlock();
    pthread_once(&once, threads_handle_forks);
    errno = threads_fork_error;
    return threads_fork_error ? -1 : (int)threads_forks;
}

int aco__threads_forked(const aco_threads_t *threads)
{
    return threads->forks != threads_forks;
}

/* ---- The threads of a set ---- */

aco__crew_t *aco__threads_self(void)
{
    return (aco__crew_t *)(void *)aco__worker();
}

static aco__crew_t *worker_at(aco_threads_t *threads, int i)
{
    return __atomic_load_n(&threads->workers[i], __ATOMIC_ACQUIRE);
}

static int slots_of(const aco_threads_t *threads)
{
    return __atomic_load_n(&threads->slots, __ATOMIC_ACQUIRE);
}

void aco__threads_each(aco_threads_t *threads, void (*fn)(aco__crew_t *worker))
{
    for (int i = 0; i < slots_of(threads); i++)
        if (worker_at(threads, i))
            fn(worker_at(threads, i));
}

aco__crew_t *aco__threads_worker(aco_threads_t *threads, int number)
{
    return number >= 0 && number < slots_of(threads) ? worker_at(threads, number) : NULL;
}

int aco__threads_enter(aco__crew_t *worker)
{
    __atomic_fetch_add(&worker->posting, 1, __ATOMIC_SEQ_CST);
    if (aco__threads_forked(worker->threads) && worker != aco__threads_self()) /* the child does not have it */
        return 0;
    return !__atomic_load_n(&worker->is_gone, __ATOMIC_SEQ_CST);
}

void aco__threads_leave(aco__crew_t *worker)
{
    __atomic_fetch_sub(&worker->posting, 1, __ATOMIC_SEQ_CST);
}

void aco__threads_close(aco__crew_t *worker)
{
    __atomic_store_n(&worker->is_gone, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&worker->posting, __ATOMIC_SEQ_CST) && !aco__threads_forked(worker->threads))
        sched_yield();
}

void aco__threads_post(aco__crew_t *worker, aco__post_t *post)
{
    if (aco__threads_enter(worker))
        aco__answer_post(worker->base.scheduler, post);
    aco__threads_leave(worker);
}

void aco__threads_wake(aco__crew_t *worker)
{
    aco__threads_post(worker, &worker->wake_post);
}

/* ---- Waking ---- */

static int claim_sleeper(aco_threads_t *threads, aco__crew_t *worker)
{
    int is = 1;
    if (!worker || !__atomic_load_n(&worker->is_sleeping, __ATOMIC_SEQ_CST) ||
        !__atomic_compare_exchange_n(&worker->is_sleeping, &is, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return 0;
    __atomic_fetch_sub(&threads->sleeping, 1, __ATOMIC_SEQ_CST);
    return 1;
}

void aco__threads_wake_one(aco_threads_t *threads)
{
    while (__atomic_load_n(&threads->sleeping, __ATOMIC_SEQ_CST) && !aco__threads_forked(threads)) {
        unsigned none = 0;
        if (__atomic_load_n(&threads->searching, __ATOMIC_SEQ_CST) ||
            !__atomic_compare_exchange_n(&threads->searching, &none, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return; /* it will look at all queues before it sleeps */
        for (int i = 0; i < slots_of(threads); i++)
            if (claim_sleeper(threads, worker_at(threads, i))) {
                aco__threads_wake(worker_at(threads, i)); /* it is the searcher now */
                return;
            }
        __atomic_fetch_sub(&threads->searching, 1, __ATOMIC_SEQ_CST);
    }
}

/* ---- Searching ---- */

static aco__node_t *take_injected(aco_threads_t *threads)
{
    aco__node_t *node = NULL;
    if (!__atomic_load_n(&threads->injected, __ATOMIC_SEQ_CST))
        return NULL;
    aco__threads_lock();
    node = threads->first;
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
    aco__poller_free(node, node->sz);
    return 1;
}

static int has_inbox(const aco__crew_t *worker)
{
    return worker->first || __atomic_load_n(&worker->inbox, __ATOMIC_SEQ_CST);
}

static aco__node_t *take_sent(aco__crew_t *worker)
{
    aco__node_t *node = worker->first;
    if (!node)
        node = aco__threads_receive(worker, 0);
    if (node)
        worker->first = node->next;
    return node;
}

int aco__threads_take(aco__crew_t *worker, aco__item_t *item)
{
    enum { ROUNDS_PER_INJECTED = 64 };
    if (aco_unlikely(has_inbox(worker)) && open_node(take_sent(worker), item))
        return 1;
    if (aco_unlikely(++worker->rounds % ROUNDS_PER_INJECTED == 0) && open_node(take_injected(worker->threads), item))
        return 1;
    return aco__deque_pop(&worker->deque, item);
}

/* Steals half of what the victim has. The first item is for now, the others go to the worker's own deque. */
static int steal_from(aco__crew_t *worker, aco__crew_t *victim, aco__item_t *item)
{
    aco__item_t more;
    size_t wanted = (aco__deque_count(&victim->deque) + 1) / 2;
    int found = aco__deque_steal(&victim->deque, item);
    if (found <= 0)
        return 0;
    if (wanted > THREADS_STOLEN)
        wanted = THREADS_STOLEN;
    while (--wanted && aco__deque_has_room(&worker->deque) && aco__deque_steal(&victim->deque, &more) > 0)
        (void)aco__deque_push(&worker->deque, &more);
    return 1;
}

int aco__threads_find(aco__crew_t *worker, aco__item_t *item)
{
    enum { ATTEMPTS = 4 };
    aco_threads_t *threads = worker->threads;
    int slots = slots_of(threads);
    if (aco__threads_forked(threads)) /* what others had is forgotten */
        return 0;
    if (!worker->is_searching) {
        worker->is_searching = 1;
        __atomic_fetch_add(&threads->searching, 1, __ATOMIC_SEQ_CST);
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (open_node(take_injected(threads), item))
            return 1;
        for (int i = 1; i < slots; i++) {
            aco__crew_t *victim = worker_at(threads, (worker->index + i) % slots);
            if (victim && victim != worker && steal_from(worker, victim, item))
                return 1;
        }
    }
    return 0;
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

/* ---- Sleeping ---- */

static void stop_searching(aco__crew_t *worker)
{
    aco_threads_t *threads = worker->threads;
    worker->is_searching = 0;
    if (__atomic_fetch_sub(&threads->searching, 1, __ATOMIC_SEQ_CST) == 1 && is_anything_left(threads))
        aco__threads_wake_one(threads); /* items added meanwhile have woken nobody */
}

void aco__threads_end_search(aco__crew_t *worker)
{
    if (worker->is_searching)
        stop_searching(worker);
}

int aco__threads_may_sleep(aco__crew_t *worker)
{
    aco_threads_t *threads = worker->threads;
    if (aco__threads_forked(threads))
        return 1;
    __atomic_store_n(&worker->is_sleeping, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&threads->sleeping, 1, __ATOMIC_SEQ_CST);
    worker->is_registered = 1;
    if (worker->is_searching) {
        worker->is_searching = 0;
        __atomic_fetch_sub(&threads->searching, 1, __ATOMIC_SEQ_CST);
    }
    if (!is_anything_left(threads) && !has_inbox(worker))
        return 1;
    aco__threads_slept(worker);
    return 0;
}

void aco__threads_slept(aco__crew_t *worker)
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
    aco__node_t *node = aco__poller_allocate(&sz, "aco_submit");
    if (node) {
        node->next = NULL;
        node->item = *item;
        node->sz = sz;
    }
    return node;
}

int aco__threads_inject(aco_threads_t *threads, const aco__item_t *item)
{
    aco__node_t *node = new_node(item);
    if (!node)
        return -1;
    aco__threads_lock();
    *(threads->first ? &threads->last->next : &threads->first) = node;
    threads->last = node;
    __atomic_fetch_add(&threads->injected, 1, __ATOMIC_SEQ_CST);
    aco__threads_unlock();
    aco__threads_wake_one(threads);
    return 0;
}

static aco__node_t closed_inbox; /* `inbox` of a worker that is gone, or not there yet */

int aco__threads_send(aco__crew_t *worker, const aco__item_t *item)
{
    aco__node_t *node = new_node(item), *next;
    if (!node)
        return -1;
    next = __atomic_load_n(&worker->inbox, __ATOMIC_RELAXED);
    do {
        if (next == &closed_inbox) {
            aco__poller_free(node, node->sz);
            errno = ESRCH;
            return -1;
        }
        node->next = next;
    } while (!__atomic_compare_exchange_n(&worker->inbox, &next, node, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    aco__threads_wake(worker);
    return 0;
}

void aco__threads_open(aco__crew_t *worker)
{
    __atomic_store_n(&worker->inbox, NULL, __ATOMIC_SEQ_CST);
    __atomic_store_n(&worker->is_gone, 0, __ATOMIC_SEQ_CST); /* its first round looks at what was sent before this */
}

aco__node_t *aco__threads_receive(aco__crew_t *worker, int closes)
{
    aco__node_t *node = __atomic_load_n(&worker->inbox, __ATOMIC_RELAXED), *list = NULL;
    if (node == &closed_inbox)
        return NULL;
    node = __atomic_exchange_n(&worker->inbox, closes ? &closed_inbox : NULL, __ATOMIC_SEQ_CST);
    while (node) {
        aco__node_t *before = node->next;
        node->next = list;
        list = node;
        node = before;
    }
    return list;
}
