/* Everything at once, for as long as is wanted: short-lived threads run coroutines of random sizes on private and share
 * stacks, hand them to each other, cancel some, and run schedulers full of tasks and generators, while signals
 * interrupt them all. Each coroutine computes a checksum in frames full of words of its own, and the same function
 * called without coroutines says what it must be. In the end nothing may be left: no coroutine, no stack in use, no
 * object in a slab, no memory.
 *
 * soak [seconds [seed]] */
#define _GNU_SOURCE
#include "aco.h"
#include "aco/generator.h"
#include "aco/pool.h"
#include "aco/scheduler.h"
#include "check.h"
#include "map_aligned.h"
#include "proc.h"
#include "random.h"
#include "sanitizers.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

enum {
    WORKERS = 3, MAILBOX = 48, SCALE = 24, TASKS = 24, SLAB = 2 << 20, MOST_SLABS = 4096,
    LEAST_STACK = UNDER_ASAN ? 512 << 10 : 64 << 10, /* signal handlers and the unwinder run there */
    COPYING = !UNDER_ASAN
};

static int64_t deadline; /* of the lap */
static uint64_t seeds;   /* atomic */
static long made, destroyed, cancelled, handed_on, signals, deferred, undone, sums, elements; /* atomic */

static void add(long *what, long n)
{
    __atomic_fetch_add(what, n, __ATOMIC_RELAXED);
}

static int is_over(void)
{
    return aco_now() >= deadline;
}

/* ---- The library's memory, in half of the laps counted here ---- */

static long mapped, allocated;
static void *slabs[MOST_SLABS];
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static void note_slab(const void *was, void *is)
{
    pthread_mutex_lock(&memory_lock);
    for (int i = 0; i < MOST_SLABS; i++)
        if (slabs[i] == was) {
            slabs[i] = is;
            break;
        }
    pthread_mutex_unlock(&memory_lock);
}

static void *map(size_t sz, size_t align, void *ctx)
{
    void *p = map_aligned(sz, align);
    (void)ctx;
    if (p && sz == SLAB && align == SLAB)
        note_slab(NULL, p);
    else if (p)
        add(&mapped, 1);
    return p;
}

static void unmap(void *p, size_t sz, void *ctx)
{
    (void)ctx;
    if (sz == SLAB && ((uintptr_t)p & (SLAB - 1)) == 0)
        note_slab(p, NULL);
    else
        add(&mapped, -1);
    munmap(p, sz);
}

static void *allocate(size_t sz, void *ctx)
{
    (void)ctx;
    add(&allocated, 1);
    return malloc(sz);
}

static void release(void *p, size_t sz, void *ctx)
{
    (void)ctx, (void)sz;
    add(&allocated, -1);
    free(p);
}

/* The beginning of a slab, as in src/base/slab.c. */
struct slab {
    void *pointers[6];
    uint32_t fresh, used;
};

/* ---- Signals ---- */

/* Overwrites what lies below the interrupted frame, as far as the ABI lets it. */
static void on_signal(int number)
{
    volatile char bytes[2000];
    (void)number;
    for (size_t i = 0; i < sizeof bytes; i += 8)
        bytes[i] = (char)i;
    add(&signals, 1);
}

static void let_signals_come(long microseconds)
{
    struct itimerval every = {{0, microseconds}, {0, microseconds}};
    struct sigaction action = {0};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

/* ---- Walkers: coroutines that compute a checksum ---- */

typedef struct walker {
    aco_t *co;
    uint64_t seed, sum;
    int by_itself; /* it is not a coroutine: nothing is yielded */
    long frames;   /* that are on its stack */
} walker_t;

static uint64_t new_seed(void)
{
    return mix(__atomic_add_fetch(&seeds, 1, __ATOMIC_RELAXED));
}

static void pauses(walker_t *w)
{
    if (!w->by_itself)
        CHECK(aco_yield_value(w) == w);
}

static void frame_gone(walker_t **w)
{
    (*w)->frames--;
}

/* Some frames deep, pausing in each; the words in them must stay what they are. */
static __attribute__((noinline)) uint64_t walk(walker_t *owner, random_t *r, uint64_t sum, unsigned depth)
{
    __attribute__((cleanup(frame_gone))) walker_t *w = owner;
    unsigned n = 1 + below(r, 120);
    uint64_t words[n], kept = sum;
    double fraction = (double)(sum >> 12);
    w->frames++;
    for (unsigned i = 0; i < n; i++)
        words[i] = mix(sum + i);
    for (unsigned times = 1 + below(r, 3); times > 0; times--) {
        pauses(w);
        if (depth)
            sum = walk(w, r, sum, depth - 1);
        sum = mix(sum ^ words[below(r, n)]);
    }
    for (unsigned i = 0; i < n; i++)
        CHECK(words[i] == mix(kept + i));
    CHECK(fraction == (double)(kept >> 12));
    return mix(sum);
}

static uint64_t walk_all(walker_t *w)
{
    random_t r = {w->seed};
    uint64_t sum = w->seed;
    for (unsigned i = 1 + below(&r, 4); i > 0; i--)
        sum = walk(w, &r, sum, below(&r, 5));
    return sum;
}

static void undo(void *arg)
{
    (void)arg;
    add(&undone, 1);
}

static void *walks(void *arg)
{
    walker_t *w = arg;
    if (w->seed & 1 && aco_defer(undo, NULL) == 0)
        add(&deferred, 1);
    w->sum = walk_all(w);
    CHECK_EQ(w->frames, 0);
    return w;
}

static void walks_for_libaco(void)
{
    walks(aco_get_arg());
    aco_exit();
}

/* ---- Making, resuming and ending them ---- */

static size_t a_stack_size(random_t *r)
{
    switch (below(r, 4)) {
    case 0: return 0;
    case 1: return LEAST_STACK;
    case 2: return LEAST_STACK + below(r, 1 << 20);
    default: return (size_t)LEAST_STACK << below(r, 4);
    }
}

/* Where: a pool, NULL or a share stack. NULL: it failed at the pool's limit. */
static walker_t *walker_new(random_t *r, aco_pool_t *pool, aco_share_stack_t *stack, aco_t *main_co)
{
    walker_t *w = calloc(1, sizeof *w);
    aco_options_t o = {0};
    w->seed = new_seed();
    if (stack) {
        o.stack = stack;
        o.save_size = below(r, 3) ? below(r, 3000) : 0;
    } else {
        o.pool = pool;
        o.stack_size = a_stack_size(r);
        o.flags = below(r, 16) == 0 ? ACO_NO_GUARD : 0;
    }
    o.flags |= below(r, 2) ? ACO_OWN_FP : 0;
    o.name = below(r, 8) == 0 ? "walker" : NULL;
    w->co = stack && below(r, 2) ? aco_create(main_co, stack, o.save_size, walks_for_libaco, w)
                                 : aco_new(walks, w, below(r, 3) || stack || pool ? &o : NULL);
    if (!w->co) {
        CHECK(pool && errno == EAGAIN);
        free(w);
        return NULL;
    }
    add(&made, 1);
    return w;
}

static void walker_free(walker_t *w)
{
    aco_destroy(w->co);
    add(&destroyed, 1);
    free(w);
}

/* Some steps; 0: it has ended, as it had to, and is no more. */
static int go_on(walker_t *w, unsigned steps)
{
    walker_t alone = {0};
    while (steps-- && !w->co->is_end) {
        void *back = aco_send(w->co, aco_state(w->co) == ACO_STATE_READY ? NULL : w);
        CHECK(back == w || w->co->is_end);
    }
    if (!w->co->is_end)
        return 1;
    alone.seed = w->seed;
    alone.by_itself = 1;
    CHECK(w->sum == walk_all(&alone));
    add(&sums, 1);
    walker_free(w);
    return 0;
}

static void give_up(walker_t *w)
{
    CHECK_EQ(aco_cancel(w->co), 0);
    CHECK_EQ(w->frames, 0);
    add(&cancelled, 1);
    walker_free(w);
}

/* ---- What a thread does ---- */

static walker_t *mailbox[MAILBOX];
static pthread_mutex_t mailbox_lock = PTHREAD_MUTEX_INITIALIZER;
static aco_pool_t *limited; /* a pool with a limit */

/* Takes one that another thread has suspended, goes on with it, and leaves it to the next. */
static void hand_on(random_t *r)
{
    unsigned slot = below(r, MAILBOX);
    walker_t *w;
    pthread_mutex_lock(&mailbox_lock);
    w = mailbox[slot];
    mailbox[slot] = NULL;
    pthread_mutex_unlock(&mailbox_lock);
    if (!w)
        w = walker_new(r, below(r, 4) ? NULL : limited, NULL, NULL);
    if (!w)
        return;
    if (below(r, 40) == 0) {
        give_up(w);
        return;
    }
    if (!go_on(w, 1 + below(r, 8)))
        return;
    add(&handed_on, 1);
    pthread_mutex_lock(&mailbox_lock);
    if (!mailbox[slot]) {
        mailbox[slot] = w;
        w = NULL;
    }
    pthread_mutex_unlock(&mailbox_lock);
    if (w)
        give_up(w);
}

/* Many that take turns on two share stacks. */
static void scale(random_t *r)
{
    aco_share_stack_t *stacks[2] = {aco_share_stack_new2(LEAST_STACK + below(r, 200000), 1),
                                    aco_share_stack_new2(LEAST_STACK * 2, 0)};
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    walker_t *all[SCALE] = {0};
    for (int i = 0; i < 1000; i++) {
        walker_t **w = &all[below(r, SCALE)];
        if (!*w)
            *w = walker_new(r, NULL, stacks[below(r, 2)], main_co);
        else if (below(r, 100) == 0)
            give_up(*w), *w = NULL;
        else if (!go_on(*w, 1 + below(r, 3)))
            *w = NULL;
    }
    for (int i = 0; i < SCALE; i++)
        if (all[i])
            give_up(all[i]);
    aco_destroy(main_co);
    aco_share_stack_destroy(stacks[0]);
    aco_share_stack_destroy(stacks[1]);
}

/* One coroutine resumes others. */
static void *leads(void *arg)
{
    random_t r = {new_seed()};
    walker_t *followers[3] = {0};
    for (int i = 0; i < 60; i++) {
        walker_t **w = &followers[below(&r, 3)];
        if (!*w)
            *w = walker_new(&r, NULL, NULL, NULL);
        else if (!go_on(*w, 1 + below(&r, 4)))
            *w = NULL;
        if (below(&r, 8) == 0)
            aco_yield();
    }
    for (int i = 0; i < 3; i++)
        if (followers[i])
            give_up(followers[i]);
    return arg;
}

static void nested(void)
{
    aco_t *leader = aco_new(leads, NULL, NULL);
    while (!leader->is_end)
        CHECK(aco_send(leader, NULL) != ACO_ERROR);
    aco_destroy(leader);
}

typedef struct exchange {
    aco_channel_t *channel;
    aco_mutex_t mutex;
    uint64_t sent, received;
    int senders;
} exchange_t;

static void *sender(void *arg)
{
    exchange_t *x = arg;
    walker_t alone = {.seed = new_seed(), .by_itself = 1};
    random_t r = {alone.seed};
    for (int i = 0; i < 20; i++) {
        uint64_t value = draw(&r) >> 8;
        if (below(&r, 30) == 0)
            aco_sleep(below(&r, 50000));
        aco_mutex_lock(&x->mutex);
        x->sent += value;
        aco_task_yield();
        CHECK_EQ(aco_mutex_unlock(&x->mutex), 0);
        CHECK_EQ(aco_channel_send(x->channel, &value), 0);
    }
    if (--x->senders == 0)
        CHECK_EQ(aco_channel_close(x->channel), 0);
    return x;
}

static void *receiver(void *arg)
{
    exchange_t *x = arg;
    uint64_t value;
    while (aco_channel_receive(x->channel, &value) == 0) {
        x->received += value;
        if (value % 16 == 0)
            aco_task_yield();
    }
    CHECK_EQ(errno, EPIPE);
    return x;
}

static void tasks(random_t *r)
{
    exchange_t x = {.senders = TASKS / 2};
    aco_t *all[TASKS];
    aco_options_t o = {.flags = ACO_OWN_FP, .stack_size = LEAST_STACK};
    x.channel = aco_channel_new(below(r, 4), sizeof(uint64_t));
    for (int i = 0; i < TASKS; i++)
        all[i] = aco_spawn(i % 2 ? sender : receiver, &x, UNDER_ASAN || below(r, 8) == 0 ? &o : NULL);
    CHECK_EQ(aco_run(), 0);
    for (int i = 0; i < TASKS; i++) {
        void *result;
        CHECK(aco_join(all[i], &result) == 0 && result == &x);
    }
    CHECK(x.sent == x.received);
    CHECK_EQ(aco_channel_destroy(x.channel), 0);
}

ACO_GENERATOR(counts, y, arg)
{
    for (uintptr_t i = 1; i <= (uintptr_t)arg; i++)
        aco_generate(y, (void *)i);
}

static void generates(random_t *r)
{
    aco_generator_t g;
    uintptr_t last = below(r, 300), stop = below(r, 400), sum = 0, n = 0;
    CHECK_EQ(aco_generator_open(&g, counts, (void *)last, NULL), 0);
    while (n < stop && aco_generator_next(&g)) {
        sum += (uintptr_t)g.value;
        n++;
    }
    CHECK(n == (last < stop ? last : stop) && sum == n * (n + 1) / 2);
    if (below(r, 2))
        aco_generator_close(&g);
    else
        aco_generator_drop(&g);
    add(&elements, (long)n);
}

static int visited(aco_t *co, void *arg)
{
    (void)co, (void)arg;
    return 1;
}

/* A thread's life is a few milliseconds. */
static void *lives(void *arg)
{
    random_t r = {new_seed()};
    for (int i = 0; i < 60; i++)
        switch (below(&r, 12)) {
        case 0:
            if (COPYING)
                scale(&r);
            break;
        case 1: nested(); break;
        case 2: tasks(&r); break;
        case 3: case 4: generates(&r); break;
        case 5: aco_pool_trim(below(&r, 2) ? NULL : limited); break;
        default: hand_on(&r);
        }
    return arg;
}

static void *works(void *arg)
{
    while (!is_over()) {
        pthread_t life;
        CHECK_EQ(pthread_create(&life, NULL, lives, NULL), 0);
        pthread_join(life, NULL);
    }
    return arg;
}

/* ---- A lap, and what is left of it ---- */

static void check_nothing_left(int counts_memory)
{
    aco_pool_stats_t stats;
    CHECK_EQ(aco_each(visited, NULL), 0);
    CHECK_EQ(aco_pool_destroy(limited), 0);
    aco_pool_trim(NULL);
    CHECK_EQ(aco_pool_stats(NULL, &stats), 0);
    CHECK_EQ(stats.in_use, 0);
    CHECK_EQ(made, destroyed);
    CHECK_EQ(deferred, undone);
    if (!counts_memory)
        return;
    CHECK_EQ(allocated, 0);
    for (int i = 0; i < MOST_SLABS; i++)
        if (slabs[i])
            CHECK_EQ(((const struct slab *)slabs[i])->used, 0);
}

static void lap(int64_t ns, int counts_memory)
{
    aco_pool_options_t o = {.most_stacks = 20, .idle_stacks = 8};
    pthread_t workers[WORKERS];
    pthread_attr_t small;
    limited = aco_pool_new(&o);
    deadline = aco_now() + ns;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 20); /* glibc keeps some of the stacks, 40 MB at most */
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQ(pthread_create(&workers[i], &small, works, NULL), 0);
    pthread_attr_destroy(&small);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    for (int i = 0; i < MAILBOX; i++) {
        if (mailbox[i])
            give_up(mailbox[i]);
        mailbox[i] = NULL;
    }
    check_nothing_left(counts_memory);
}

/* What the process has: bytes of the heap, pages of addresses, mappings that the library has asked for. */
typedef struct holdings {
    size_t heap, pages;
    long mappings;
} holdings_t;

static holdings_t holdings(void)
{
    holdings_t now = {0, 0, mapped};
#if !SANITIZED && defined(__GLIBC__)
    now.heap = mallinfo2().uordblks;
    now.pages = proc_number("/proc/self/statm");
#endif
    return now;
}

/* Once each thread has lived, it stays as it is. */
static void check_growth(holdings_t then)
{
    holdings_t now = holdings();
    CHECK(now.heap <= then.heap + (64 << 10));
    CHECK(now.pages <= then.pages + (32 << 20) / 4096);
    CHECK(now.mappings <= then.mappings + WORKERS);
}

int main(int argc, char **argv)
{
    int64_t ns = (int64_t)(argc > 1 ? atoi(argv[1]) : 20) * 1000000000;
    int counts_memory, laps = 0;
    holdings_t then = {0, 0, 0};
    int64_t end = aco_now() + ns;
    seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)aco_now();
    counts_memory = (int)(seeds % 2);
    printf("soak: seed %llu\n", (unsigned long long)seeds);
    fflush(stdout);
    if (counts_memory) {
        const aco_allocator_t own = {map, unmap, allocate, release, NULL};
        CHECK_EQ(aco_set_allocator(&own), 0);
    }
    let_signals_come(1009);
    for (; laps < 8 || aco_now() < end; laps++) {
        lap(ns / 10, counts_memory);
        if (laps == 3)
            then = holdings();
    }
    let_signals_come(0);
    check_growth(then);
    printf("%d laps, %ld coroutines (%ld cancelled, %ld checksums), %ld times handed on, %ld elements, %ld signals\n",
           laps, made, cancelled, sums, handed_on, elements, signals);
    CHECK(sums > 0 && cancelled > 0 && handed_on > 0 && signals > 0);
    return check_result("soak");
}
