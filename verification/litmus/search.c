/* src/threads/search.c and deque.c: how threads sleep and are woken. The submitter never runs its items itself, so an
 * item that nobody is woken for makes the others wait for ever. */
#include "threads/deque.c"
#include "threads/search.c"

#include "fakes.c"

enum { WORKERS = 3, MOST = 2 };

static aco_threads_t *threads;
static uint32_t posted[WORKERS];
static int items, data[MOST], taken[MOST], count;

aco__worker_t *aco__worker(void)
{
    return &threads->workers[litmus_self()]->base;
}

void aco__answer_post(struct aco__tasks *scheduler, aco__post_t *post)
{
    (void)post;
    __atomic_fetch_or((uint32_t *)(void *)scheduler, 1, __ATOMIC_ACQ_REL);
}

static void begin_with(int workers, int submitted)
{
    threads = litmus_allocate(sizeof *threads + (size_t)workers * sizeof *threads->workers);
    threads->n = threads->slots = workers;
    memset(&threads_lock, 0, sizeof threads_lock);
    for (int i = 0; i < workers; i++) {
        aco__set_worker_t *worker = litmus_allocate(sizeof *worker);
        worker->threads = threads;
        worker->index = i;
        worker->base.scheduler = (struct aco__tasks *)(void *)&posted[i];
        posted[i] = 0;
        aco__deque_open(&worker->deque);
        threads->workers[i] = worker;
        aco__threads_open(worker);
    }
    items = submitted;
    count = 0;
    memset(data, 0, sizeof data);
    memset(taken, 0, sizeof taken);
}

static aco__item_t item_of(int i)
{
    aco__item_t item;
    memset(&item, 0, sizeof item);
    litmus_write(&data[i], 1);
    item.arg = &data[i];
    return item;
}

static void take(const aco__item_t *item)
{
    const int *at = item->arg;
    litmus_assert(litmus_read(at) == 1);
    litmus_assert(taken[at - data]++ == 0);
    count++;
}

/* As set.c's on_idle() and on_awake(), until `wanted` items have been found. */
static void find(int t, int wanted)
{
    aco__set_worker_t *worker = threads->workers[t];
    aco__item_t item;
    while (wanted) {
        if (aco__threads_take(worker, &item) || aco__threads_find(worker, &item)) {
            take(&item);
            wanted--;
            aco__threads_end_search(worker);
        } else if (aco__threads_may_sleep(worker)) {
            litmus_wait(&posted[t]);
            __atomic_exchange_n(&posted[t], 0, __ATOMIC_ACQ_REL);
            aco__threads_slept(worker);
        }
    }
}

static void submit(aco__set_worker_t *worker, int i)
{
    aco__item_t item = item_of(i);
    litmus_assert(aco__deque_push(&worker->deque, &item) == 0);
    aco__threads_wake_one(threads, worker);
}

/* One item, one thread that must find it. */
static void begin_one(void) { begin_with(2, 1); }
static void one(int t)
{
    if (t)
        find(t, 1);
    else
        submit(threads->workers[0], 0);
}

/* Two items, pushed at once and announced twice, for two threads that take one each. */
static void begin_two(void) { begin_with(3, 2); }
static void two(int t)
{
    if (t) {
        find(t, 1);
        return;
    }
    submit(threads->workers[0], 0);
    submit(threads->workers[0], 1);
}

/* From a thread that is not of the set. */
static void inject(int t)
{
    aco__item_t item;
    if (t) {
        find(t, 1);
        return;
    }
    item = item_of(0);
    litmus_assert(aco__threads_inject(threads, &item) == 0);
}

static void end(void)
{
    litmus_assert(count == items);
    litmus_assert(threads->searching == 0 && threads->sleeping == 0);
}

const litmus_case_t litmus_cases[] = {
    {"search.one", 2, begin_one, one, end},
    {"search.inject", 2, begin_one, inject, end},
    {"search.two", 3, begin_two, two, end},
    {0}};
