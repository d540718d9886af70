/* Promises of measuring and trimming (include/aco/pool.h): how deep a stack went, what aco_stack_trim() and an idle scheduler give
 * back and what they must keep, and the counts by entry function, which are compared with a model of random programs.
 *
 * measure [seed]; ACORN_SEED replaces it. */
#define _GNU_SOURCE
#include "aco.h"
#include "aco/pool.h"
#include "aco/scheduler.h"
#include "check.h"
#include "child.h"
#include "lacking.h"
#include "random.h"
#include "refuses.h"
#include "sanitizers.h"

#ifndef ACO_CONFIG_NO_INLINE
#include "aco/in_stack_generator.h"
#endif

#include <stdint.h>
#include <string.h>

static size_t page;

/* Bytes that a function's frame may have below what it knows of; sanitizers surround everything. */
enum { SLACK = SANITIZED ? 8192 : 512 };

static size_t top_of(const aco_t *co)
{
    return (size_t)co->share_stack->aco__top;
}

static size_t live_bytes(const aco_t *co)
{
    return top_of(co) - (size_t)co->aco__self.sp;
}

/* ---- Going deep ---- */

static volatile size_t frame_size = 1000; /* not known when compiled: such frames the address sanitizer keeps elsewhere */

/* Calls nothing but itself, so that nothing below its last frame is touched. */
static __attribute__((noinline)) unsigned dive_to(size_t bottom, size_t *lowest)
{
    volatile unsigned char *p = __builtin_alloca(frame_size);
    unsigned sum = 0;
    p[0] = (unsigned char)bottom;
    *lowest = (size_t)p;
    if (*lowest > bottom)
        sum = dive_to(bottom, lowest);
    return sum + p[0];
}

/* `bytes` deeper than here, or a frame more. */
static __attribute__((noinline)) unsigned dive(size_t bytes, size_t *lowest)
{
    return dive_to((size_t)__builtin_frame_address(0) - bytes, lowest) + 1;
}

/* Known bytes for a frame, others for each seed; and how many of them have changed. */
static void fill(volatile unsigned char *bytes, unsigned size, unsigned seed)
{
    for (unsigned i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 2654435761u ^ seed);
}

static unsigned changed(const volatile unsigned char *bytes, unsigned size, unsigned seed)
{
    unsigned n = 0;
    for (unsigned i = 0; i < size; i++)
        n += bytes[i] != (unsigned char)(i * 2654435761u ^ seed);
    return n;
}

/* What is known of `co` must be what it used, or up to a page more. */
static void check_depth(const char *file, int line, const aco_t *co, size_t lowest)
{
    ptrdiff_t high_water = aco_stack_high_water(co);
    size_t used = top_of(co) - lowest;
    if (high_water >= 0 && (size_t)high_water >= used && (size_t)high_water <= used + page + SLACK)
        return;
    fprintf(stderr, "%s:%d: the high-water mark is %td, used were %zu\n", file, line, high_water, used);
    CHECK(!"the high-water mark");
}
#define CHECK_DEPTH(co, lowest) check_depth(__FILE__, __LINE__, co, lowest)

enum { UNWRITTEN = 256 }; /* the innermost frame's last bytes may be padding that nobody writes, and alone on their page */

/* The pages below the frames of `co`, which is not running, are gone. */
static void check_trimmed(const char *file, int line, const aco_t *co, size_t live)
{
    ptrdiff_t high_water = aco_stack_high_water(co);
    if (high_water + UNWRITTEN >= (ptrdiff_t)live && high_water > 0 && (size_t)high_water <= live + page + 512)
        return;
    fprintf(stderr, "%s:%d: the high-water mark is %td, live are %zu\n", file, line, high_water, live);
    CHECK(!"a trimmed stack");
}
#define CHECK_TRIMMED(co, live) check_trimmed(__FILE__, __LINE__, co, live)

typedef struct dives {
    size_t bytes[4], lowest;
    unsigned sum;
} dives_t;

/* A dive, and a yield after it, until there are no more. */
static void *diver(void *arg)
{
    dives_t *dives = arg;
    for (size_t i = 0; i < 4 && dives->bytes[i]; i++) {
        dives->sum += dive(dives->bytes[i], &dives->lowest);
        aco_yield();
    }
    return dives;
}

/* ---- High-water marks ---- */

/* Promises: at least what was touched, at most a page more; it stays while the coroutine is shallow, after it ended, and until
 * the stack is trimmed; a coroutine that takes the stack over has the mark of who had it before. */
static void depth_of(size_t stack_size, unsigned flags, aco_pool_t *pool)
{
    size_t most = stack_size ? stack_size : 256 << 10, lowest;
    dives_t dives = {{16000, most / 2, most - (32 << 10), 9000}, 0, 0};
    aco_options_t options = {0};
    aco_t *co;
    if (SANITIZED && most > 1 << 20) /* frames take several times as much there, and the kernel's time */
        dives.bytes[1] = dives.bytes[2] = 100 << 10;
    if (SANITIZED && most <= 1 << 20)
        dives.bytes[1] = dives.bytes[2] = most / 8;
    if (most < 64 << 10)
        memcpy(dives.bytes, (size_t[4]){3000, 4000, 5000, 3000}, sizeof dives.bytes);
    options.stack_size = stack_size;
    options.flags = flags;
    options.pool = pool;
    co = aco_new(diver, &dives, &options);
    CHECK(co != NULL);
    if (!co)
        return;
    CHECK_EQ(aco_stack_trim(co), 0); /* who had the stack before? */
    CHECK_TRIMMED(co, 0);
    aco_resume(co);
    CHECK_DEPTH(co, dives.lowest);
    aco_resume(co);
    CHECK_DEPTH(co, dives.lowest);
    aco_resume(co);
    CHECK_DEPTH(co, dives.lowest);
    lowest = dives.lowest;
    aco_resume(co); /* not so deep */
    CHECK_DEPTH(co, lowest);
    CHECK_EQ(aco_stack_trim(co), 0);
    CHECK_TRIMMED(co, live_bytes(co));
    aco_resume(co);
    CHECK(co->is_end);
    CHECK(aco_stack_high_water(co) <= (ptrdiff_t)(live_bytes(co) + 4 * page + 2 * SLACK));
    CHECK_EQ(aco_restart(co, diver, &dives), 0);
    aco_resume(co);
    aco_resume(co);
    CHECK_DEPTH(co, dives.lowest);
    lowest = dives.lowest;
    aco_resume(co);
    aco_resume(co);
    aco_resume(co);
    CHECK(co->is_end);
    CHECK(aco_stack_high_water(co) >= (ptrdiff_t)(top_of(co) - lowest));
    CHECK_EQ(aco_stack_trim(co), 0);
    CHECK_TRIMMED(co, 0);
    aco_destroy(co);
}

static void high_water(void)
{
    static const size_t sizes[] = {0, 16 << 10, 64 << 10, 1 << 20, 8 << 20, 32 << 20, (8 << 20) + 1};
    aco_pool_t *pool = aco_pool_new(NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (SANITIZED && sizes[i] == 16 << 10)
            continue;
        depth_of(sizes[i], 0, NULL);
        depth_of(sizes[i], 0, pool);
        depth_of(sizes[i], ACO_NO_GUARD, NULL);
    }
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

/* Promise: the running coroutine, one that is resuming, and tasks have theirs too. */
static void *asks_itself(void *arg)
{
    dives_t *dives = arg;
    dives->sum += dive(60000, &dives->lowest);
    CHECK_DEPTH(aco_get_co(), dives->lowest);
    return NULL;
}

static void *asks_its_resumer(void *arg)
{
    aco_t *resumer = ((void **)arg)[0];
    dives_t *dives = ((void **)arg)[1];
    CHECK_DEPTH(resumer, dives->lowest);
    return NULL;
}

static void *resumer_that_is_asked(void *arg)
{
    dives_t *dives = arg;
    void *both[2] = {aco_get_co(), dives};
    aco_t *co = aco_new(asks_its_resumer, both, NULL);
    dives->sum += dive(60000, &dives->lowest);
    aco_resume(co);
    aco_destroy(co);
    return NULL;
}

static void *task_that_asks(void *arg)
{
    dives_t dives = {{0}, 0, 0};
    aco_t *co = aco_get_co();
    int i = *(int *)arg;
    CHECK_EQ(aco_task_yield(), 0);
    dive((size_t)(10 + i) * 4000, &dives.lowest);
    CHECK_EQ(aco_task_yield(), 0);
    CHECK_DEPTH(co, dives.lowest);
    return NULL;
}

static void *task_that_asks_another(void *task)
{
    aco_stack_trim(task);
    CHECK_TRIMMED(task, live_bytes(task));
    CHECK_EQ(aco_task_yield(), 0);
    CHECK(aco_stack_high_water(task) > 0);
    return NULL;
}

static void high_water_of_who_runs(void)
{
    dives_t dives = {{0}, 0, 0};
    aco_t *co = aco_new(asks_itself, &dives, NULL);
    aco_stack_trim(co);
    aco_resume(co);
    CHECK_DEPTH(co, dives.lowest);
    CHECK_EQ(aco_restart(co, resumer_that_is_asked, &dives), 0);
    aco_stack_trim(co);
    aco_resume(co);
    aco_destroy(co);
    for (int i = 0; i < 3; i++) {
        int arg = i;
        aco_t *task = aco_spawn(task_that_asks, &arg, NULL), *other = aco_spawn(task_that_asks_another, task, NULL);
        CHECK_EQ(aco_run(), 0);
        CHECK_EQ(aco_join(task, NULL), 0);
        CHECK_EQ(aco_join(other, NULL), 0);
    }
}

/* ---- Trimming ---- */

typedef struct walker {
    random_t random;
    unsigned left, wrong;
    int is_task;
    aco_t *co;
} walker_t;

/* Goes up and down at random through frames of up to some pages, each full of known bytes. */
static __attribute__((noinline)) double recurse(walker_t *walker, unsigned depth, double x)
{
    unsigned size = 1 + (below(&walker->random, 4) ? below(&walker->random, 300) : below(&walker->random, 12000)), actions = 1 + below(&walker->random, 5);
    unsigned seed = depth * 40503u ^ (unsigned)(uintptr_t)walker;
    volatile unsigned char *bytes = __builtin_alloca(size);
    double sum = x;
    size_t lowest;
    fill(bytes, size, seed);
    for (unsigned a = 0; a < actions && walker->left; a++) {
        unsigned what = below(&walker->random, 10);
        if (depth < 12 && what < 5) {
            sum += recurse(walker, depth + 1, x + 0.5) - (x + 0.5);
        } else {
            if (what == 9)
                dive(20000, &lowest);
            walker->left--;
            if (walker->is_task)
                aco_task_yield();
            else
                aco_yield();
        }
    }
    walker->wrong += changed(bytes, size, seed);
    walker->wrong += sum != x || x != depth * 0.5;
    return sum;
}

static void *wanderer(void *arg)
{
    walker_t *walker = arg;
    while (walker->left)
        recurse(walker, 0, 0.0);
    return arg;
}

/* Promise: a suspended coroutine's frames stay whole, whatever its depth, and it may go deep again. */
static void trim_keeps_frames(uint64_t seed)
{
    enum { MANY = 40, RESUMES = SANITIZED ? 1500 : 12000 };
    random_t random = {seed};
    walker_t walkers[MANY];
    unsigned ended = 0;
    for (unsigned i = 0; i < MANY; i++) {
        static const size_t sizes[] = {0, 512 << 10, 1 << 20, 16 << 20};
        aco_options_t options = {0};
        walkers[i] = (walker_t){{seed * MANY + i}, RESUMES / MANY, 0, 0, NULL};
        options.stack_size = sizes[below(&random, 4)];
        options.flags = below(&random, 2) ? ACO_NO_GUARD : 0;
        if (SANITIZED)
            options.stack_size = 1 << 20;
        walkers[i].co = aco_new(wanderer, &walkers[i], &options);
        CHECK_EQ(aco_stack_trim(walkers[i].co), 0);
    }
    while (ended < MANY) {
        walker_t *walker = &walkers[below(&random, MANY)];
        if (!walker->co)
            continue;
        aco_resume(walker->co);
        if (below(&random, 3) == 0) {
            CHECK_EQ(aco_stack_trim(walker->co), 0);
            CHECK_TRIMMED(walker->co, walker->co->is_end ? 0 : live_bytes(walker->co));
        }
        if (walker->co->is_end) {
            CHECK_EQ(walker->wrong, 0);
            CHECK(aco_result(walker->co) == walker);
            aco_destroy(walker->co);
            walker->co = NULL;
            ended++;
        }
    }
}

/* Promise: each step of a stack keeps what it must, to the byte: suspended at every depth around page boundaries. */
static __attribute__((noinline)) unsigned stand(unsigned size)
{
    volatile unsigned char *bytes = __builtin_alloca(size);
    size_t lowest;
    fill(bytes, size, size);
    aco_yield();
    dive(30000, &lowest);
    aco_yield();
    return changed(bytes, size, size);
}

static void *stander(void *arg)
{
    for (unsigned size = 1; size < 3 * 4096; size += 40)
        *(unsigned *)arg += stand(size);
    return NULL;
}

static void trim_at_each_depth(void)
{
    unsigned wrong = 0;
    aco_t *co = aco_new(stander, &wrong, NULL);
    do {
        aco_resume(co);
        CHECK_EQ(aco_stack_trim(co), 0);
        CHECK_TRIMMED(co, co->is_end ? 0 : live_bytes(co));
    } while (!co->is_end);
    CHECK_EQ(wrong, 0);
    aco_destroy(co);
}

/* ---- What cannot be trimmed ---- */

static const char trim_call[] = "aco_stack_trim", mark_call[] = "aco_stack_high_water";

static void *trims_itself(void *arg)
{
    aco_t *co = aco_get_co();
    (void)arg;
    REFUSES(aco_stack_trim(co), -1, EBUSY, trim_call, co, "is running");
    return NULL;
}

static void *trims(void *co)
{
    REFUSES(aco_stack_trim(co), -1, EBUSY, trim_call, co, "is resuming another coroutine");
    return NULL;
}

static void *resumes_who_trims(void *arg)
{
    aco_t *co = aco_new(trims, aco_get_co(), NULL);
    (void)arg;
    aco_resume(co);
    aco_destroy(co);
    return NULL;
}

static void *ends(void *arg)
{
    return arg;
}

#ifndef ACO_CONFIG_NO_INLINE
/* Frames of some pages in the generator: what a trim of its consumer's stack must not take. */
ACO_GENERATOR(deep_body, y, arg)
{
    volatile unsigned char bytes[20000];
    fill(bytes, sizeof bytes, 3);
    aco_generate(y, arg);
    aco_yield();
    *(unsigned *)arg += changed(bytes, sizeof bytes, 3);
    aco_generate(y, arg);
}

/* Yields twice: with the generator suspended, and in its body. */
static void *consumer(void *arg)
{
    aco_generator_t g;
    CHECK_EQ(aco_generator_open(&g, deep_body, arg, NULL), 0);
    CHECK_EQ(aco_generator_next(&g), 1);
    aco_yield();
    CHECK_EQ(aco_generator_next(&g), 1);
    CHECK_EQ(aco_generator_next(&g), 0);
    aco_generator_close(&g);
    return NULL;
}

#ifndef ACO__NO_IN_STACK
/* One on the consumer's stack: its frames are above the consumer's stack pointer, in whichever of the two that is. */
ACO_IN_STACK_GENERATOR(deep_body_in_stack, y, arg)
{
    volatile unsigned char bytes[20000];
    fill(bytes, sizeof bytes, 3);
    aco_generate_in_stack(y, arg);
    aco_yield();
    *(unsigned *)arg += changed(bytes, sizeof bytes, 3);
    aco_generate_in_stack(y, arg);
}

static __attribute__((noinline)) void *consumer_in_stack(void *arg)
{
    aco_in_stack_t g;
    aco_in_stack_open(&g, deep_body_in_stack, arg);
    CHECK_EQ(aco_in_stack_next(&g), 1);
    aco_yield();
    CHECK_EQ(aco_in_stack_next(&g), 1);
    CHECK_EQ(aco_in_stack_next(&g), 0);
    CHECK_EQ(aco_in_stack_close(&g), 0);
    return NULL;
}

static void trim_and_in_stack_generators(void)
{
    unsigned wrong = 0;
    aco_t *co = aco_new(consumer_in_stack, &wrong, NULL);
    do {
        aco_resume(co);
        CHECK_EQ(aco_stack_trim(co), 0);
    } while (!co->is_end);
    CHECK_EQ(wrong, 0);
    aco_destroy(co);
}
#endif

static void trim_and_generators(void)
{
    unsigned wrong = 0;
    size_t live;
    aco_t *co = aco_new(consumer, &wrong, NULL);
    aco_resume(co);
    CHECK_EQ(aco_stack_trim(co), 0);
    aco_resume(co);
    live = live_bytes(co);
    CHECK(live > co->share_stack->sz); /* the body's stack is another one */
    REFUSES(aco_stack_trim(co), -1, EBUSY, trim_call, co, "is suspended in a generator's body");
    aco_resume(co);
    CHECK(co->is_end);
    CHECK_EQ(wrong, 0);
    aco_destroy(co);
}
#endif

typedef struct other_thread {
    pthread_barrier_t barrier;
    aco_t *task, *co;
} other_thread_t;

static void *thread_with_task(void *arg)
{
    other_thread_t *other = arg;
    aco_thread_init(NULL);
    other->task = aco_spawn(ends, NULL, NULL);
    other->co = aco_new(ends, NULL, NULL);
    pthread_barrier_wait(&other->barrier);
    pthread_barrier_wait(&other->barrier);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(other->task, NULL), 0);
    CHECK_EQ(aco_stack_trim(other->co), 0);
    aco_resume(other->co);
    aco_destroy(other->co);
    return NULL;
}

static void *task_resumes_who_trims(void *arg)
{
    aco_t *co = aco_new(trims, aco_get_co(), NULL);
    (void)arg;
    aco_resume(co);
    REFUSES(aco_stack_trim(aco_get_co()), -1, EBUSY, trim_call, aco_get_co(), "is running");
    aco_destroy(co);
    return NULL;
}

static void refusals(void)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL), *co, *task;
    other_thread_t other;
    pthread_t thread;
    REFUSES(aco_stack_trim(NULL), -1, EINVAL, trim_call, NULL, "the coroutine is NULL");
    REFUSES(aco_stack_high_water(NULL), -1, EINVAL, mark_call, NULL, "the coroutine is NULL");
    REFUSES(aco_stack_trim(main_co), -1, EINVAL, trim_call, main_co, "is a main coroutine");
    REFUSES(aco_stack_high_water(main_co), -1, EINVAL, mark_call, main_co, "is a main coroutine");
    co = aco_new(trims_itself, NULL, NULL);
    aco_resume(co);
    CHECK_EQ(aco_restart(co, resumes_who_trims, NULL), 0);
    aco_resume(co);
    CHECK_EQ(aco_stack_trim(co), 0);
    aco_destroy(co);
    if (!SANITIZED) { /* kept among the thread's spares: its memory is not used again */
        REFUSES(aco_stack_trim(co), -1, ESRCH, trim_call, co, "was destroyed");
        REFUSES(aco_stack_high_water(co), -1, ESRCH, mark_call, co, "was destroyed");
    }
    if (COPYING) {
        aco_share_stack_t *stack = aco_share_stack_new(0);
        aco_options_t options = {0};
        options.stack = stack;
        co = aco_new(ends, NULL, &options);
        REFUSES(aco_stack_trim(co), -1, EINVAL, trim_call, co, "share stack");
        REFUSES(aco_stack_high_water(co), -1, EINVAL, mark_call, co, "share stack");
        aco_resume(co);
        REFUSES(aco_stack_trim(co), -1, EINVAL, trim_call, co, "share stack");
        aco_destroy(co);
        aco_share_stack_destroy(stack);
    }
    task = aco_spawn(task_resumes_who_trims, NULL, NULL);
    CHECK_EQ(aco_stack_trim(task), 0);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    pthread_barrier_init(&other.barrier, NULL, 2);
    pthread_create(&thread, NULL, thread_with_task, &other);
    pthread_barrier_wait(&other.barrier);
    REFUSES(aco_stack_trim(other.task), -1, EPERM, trim_call, other.task, "is a task of another thread");
    CHECK(aco_stack_high_water(other.task) >= 0); /* any thread */
    CHECK_EQ(aco_stack_trim(other.co), 0);        /* it may resume that one */
    pthread_barrier_wait(&other.barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&other.barrier);
    aco_destroy(main_co);
}

/* ---- Idle schedulers ---- */

typedef struct sleeper {
    unsigned wrong, rounds;
    size_t deep, after;
} sleeper_t;

/* Sleeps until its pages are gone, and not for ever. */
static void *sleeper(void *arg)
{
    sleeper_t *s = arg;
    volatile unsigned char bytes[3000];
    size_t lowest;
    fill(bytes, sizeof bytes, 5);
    dive(60000, &lowest);
    s->deep = (size_t)aco_stack_high_water(aco_get_co());
    do {
        CHECK_EQ(aco_sleep(30000000), 0);
        s->after = (size_t)aco_stack_high_water(aco_get_co());
    } while (s->after > s->deep - 40000 && ++s->rounds < 100);
    s->wrong += changed(bytes, sizeof bytes, 5);
    dive(60000, &lowest);
    CHECK_DEPTH(aco_get_co(), lowest);
    return NULL;
}

/* Promise: tasks that went deep and wait get their pages taken by aco_run() when it has nobody to run: some of them every 100
 * ms. Live bytes stay. */
static void idle_trims(void)
{
    enum { MANY = 20 };
    static sleeper_t sleepers[MANY];
    aco_t *tasks[MANY];
    for (int i = 0; i < MANY; i++)
        tasks[i] = aco_spawn(sleeper, &sleepers[i], NULL);
    CHECK_EQ(aco_run(), 0);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
        CHECK(sleepers[i].deep >= 60000);
        CHECK(sleepers[i].after + 40000 <= sleepers[i].deep);
        CHECK_EQ(sleepers[i].wrong, 0);
    }
}

/* ---- Measuring by entry function: a model ---- */

typedef struct model {
    const void *entry;
    int is_private;
    size_t made, alive, most_alive, stack_size, ended, deepest, depths, areas, switches, most_live, least_lives, most_lives;
} model_t;

enum { SLOTS = 24, ENTRIES = 3, STACKS = 3 };
/* How far below the stack pointer a transfer is measured, at most. */
#if (defined(__x86_64__) || defined(__i386__)) && !defined(_WIN32) && !defined(ACO_CONFIG_UCONTEXT)
enum { TRANSFER = 64 };
#else /* whose functions keep more registers */
enum { TRANSFER = 768 };
#endif

typedef struct slot {
    aco_t *co;
    model_t *model; /* while it is counted */
    random_t random;
    unsigned left;
    unsigned wrong;
} slot_t;

static slot_t slots[SLOTS];
static model_t models[ENTRIES][2];
static aco_share_stack_t *stacks[STACKS];
static slot_t *leaver, *transferred; /* who last yielded or ended; who last left for another one and was not yet looked at */
static unsigned nested;

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void begins(slot_t *slot, model_t *model)
{
    slot->model = model;
    model->made++;
    model->alive++;
    model->most_alive = most(model->most_alive, model->alive);
    model->stack_size = most(model->stack_size, slot->co->share_stack->sz);
}

static void was_left(slot_t *slot, size_t tolerance)
{
    model_t *model = slot->model;
    size_t live = live_bytes(slot->co);
    model->switches++;
    model->least_lives += live;
    model->most_lives += live + tolerance;
    if (model->most_live < live)
        model->most_live = live;
}

static void ended(slot_t *slot)
{
    model_t *model = slot->model;
    model->alive--;
    model->ended++;
    if (model->is_private) {
        size_t depth = (size_t)aco_stack_high_water(slot->co);
        model->deepest = most(model->deepest, depth);
        model->depths += depth;
    } else {
        model->areas += slot->co->save_stack.sz;
    }
    slot->model = NULL;
}

/* Whoever goes on after a switch. */
static void arrived(void)
{
    if (transferred)
        was_left(transferred, TRANSFER);
    transferred = NULL;
}

static void came_back(void)
{
    arrived();
    if (!leaver)
        return;
    if (leaver->co->is_end)
        ended(leaver);
    else
        was_left(leaver, 0);
    leaver = NULL;
}

static int may_run(const slot_t *slot)
{
    return slot->co && (aco_state(slot->co) == ACO_STATE_READY || aco_state(slot->co) == ACO_STATE_SUSPENDED);
}

static slot_t *any_that_may_run(random_t *r)
{
    for (int tries = 0; tries < 8; tries++) {
        slot_t *slot = &slots[below(r, SLOTS)];
        if (may_run(slot))
            return slot;
    }
    return NULL;
}

static __attribute__((noinline)) unsigned act(slot_t *slot, unsigned depth)
{
    unsigned size = 1 + below(&slot->random, 700), actions = 1 + below(&slot->random, 4), wrong = 0;
    volatile unsigned char *bytes = __builtin_alloca(size);
    fill(bytes, size, size);
    for (unsigned a = 0; a < actions && slot->left; a++) {
        unsigned what = below(&slot->random, 12);
        slot_t *other = what < 6 ? any_that_may_run(&slot->random) : NULL;
        if (what >= 9 && depth < 10) {
            wrong += act(slot, depth + 1);
            continue;
        }
        slot->left--;
        if (other && what < 3) {
            transferred = slot;
            if (aco_yield_to(other->co) != 0)
                slot->wrong++;
            arrived();
        } else if (other && what < 5 && nested < 4) {
            nested++;
            aco_resume(other->co);
            nested--;
            came_back();
        } else {
            leaver = slot;
            aco_yield();
            arrived();
        }
    }
    wrong += changed(bytes, size, size);
    return wrong;
}

static void *act_all(slot_t *slot)
{
    arrived();
    while (slot->left)
        slot->wrong += act(slot, 0);
    leaver = slot;
    return slot;
}

static void *entry_a(void *slot)
{
    return act_all(slot);
}

static void *entry_b(void *slot)
{
    void *result = act_all(slot);
    if (result != slot)
        abort();
    return result;
}

static void entry_c(void)
{
    act_all(aco_get_arg());
    aco_exit();
}

typedef struct looked_for {
    const void *entry;
    int is_private, found;
    aco_stack_usage_t usage;
    char name[ACO_NAME_SIZE];
} looked_for_t;

static int look(const aco_stack_usage_t *usage, void *arg)
{
    looked_for_t *looked_for = arg;
    const void *entry;
    memcpy(&entry, &usage->entry, sizeof entry);
    if (entry != looked_for->entry || usage->is_private != looked_for->is_private)
        return 0;
    looked_for->found++;
    looked_for->usage = *usage;
    snprintf(looked_for->name, sizeof looked_for->name, "%s", usage->name);
    looked_for->usage.name = "";
    return 0;
}

static looked_for_t usage_of(const void *entry, int is_private)
{
    looked_for_t looked_for = {entry, is_private, 0, {0}, ""};
    CHECK_EQ(aco_stack_usage(look, &looked_for), 0);
    CHECK(looked_for.found <= 1);
    return looked_for;
}

static const void *address(aco_function_t fn)
{
    const void *p;
    memcpy(&p, &fn, sizeof p);
    return p;
}

static size_t mean(size_t sum, size_t n)
{
    return n ? (sum + n / 2) / n : 0;
}

/* The advice as pool.h gives it, from the other fields. */
static aco_stack_advice_t advice_for(const aco_stack_usage_t *u)
{
    size_t on_private = u->is_private ? u->bytes : u->other_bytes, on_shared = u->is_private ? u->other_bytes : u->bytes;
    int saves = on_private > on_shared && (on_private - on_shared) * u->most_alive >= 1 << 20, copies_much = u->mean_live > 1000;
    if (!u->switches)
        return ACO_STACK_AS_IT_IS;
    if (u->is_private)
        return saves && !copies_much ? ACO_STACK_BETTER_SHARED : ACO_STACK_AS_IT_IS;
    return copies_much || !saves ? ACO_STACK_BETTER_PRIVATE : ACO_STACK_AS_IT_IS;
}

static void check_model(const model_t *m)
{
    looked_for_t found = usage_of(m->entry, m->is_private);
    const aco_stack_usage_t *u = &found.usage;
    const size_t block = offsetof(aco_t, main_co);
    CHECK_EQ(found.found, m->made != 0);
    if (!found.found)
        return;
    CHECK_EQ(u->made, m->made);
    CHECK_EQ(u->most_alive, m->most_alive);
    CHECK_EQ(u->stack_size, m->stack_size);
    CHECK_EQ(u->deepest, m->deepest);
    CHECK_EQ(u->mean_depth, m->is_private ? mean(m->depths, m->ended) : 0);
    CHECK_EQ(u->switches, m->switches);
    CHECK(u->most_live >= m->most_live && u->most_live <= m->most_live + TRANSFER);
    CHECK(u->mean_live >= mean(m->least_lives, m->switches) && u->mean_live <= mean(m->most_lives, m->switches));
    if (m->is_private) {
        CHECK_EQ((u->bytes - block) % page, 0);
        CHECK(u->bytes >= block + most(u->mean_depth, u->most_live));
        CHECK_EQ(u->other_bytes, sizeof(aco_t) + u->most_live);
    } else {
        CHECK_EQ(u->bytes, sizeof(aco_t) + (m->ended ? mean(m->areas, m->ended) : u->most_live));
        CHECK_EQ((u->other_bytes - block) % page, 0);
        CHECK(u->other_bytes > u->most_live);
    }
    CHECK_EQ(u->advice, advice_for(u));
}

static const aco_function_t functions[2] = {entry_a, entry_b};

static void make(slot_t *slot, random_t *r, aco_t *main_co)
{
    unsigned which = below(r, COPYING ? 5 : 2), entry = which < 4 ? which % 2 : 2;
    aco_options_t options = {0};
    slot->left = below(r, 30);
    slot->wrong = 0;
    slot->random.state = draw(r);
    if (entry == 2) {
        slot->co = aco_create(main_co, stacks[below(r, STACKS)], below(r, 5) * 60, entry_c, slot);
    } else {
        if (which >= 2)
            options.stack = stacks[below(r, STACKS)];
        else if (below(r, 2))
            options.stack_size = (size_t)4096 << (SANITIZED ? 6 : 4 + below(r, 4));
        if (below(r, 4) == 0)
            options.name = "with a name";
        if (which < 2 && below(r, 4) == 0)
            options.flags = ACO_NO_GUARD;
        slot->co = aco_new(functions[entry], slot, &options);
    }
    begins(slot, &models[entry][which < 2]);
}

static void make_again(slot_t *slot, random_t *r)
{
    int is_private = slot->co->share_stack->aco__private;
    slot->left = below(r, 30);
    if (slot->co->main_co && !is_private) {
        aco_reset(slot->co, entry_c, slot);
        begins(slot, &models[2][0]);
    } else {
        unsigned entry = below(r, 2);
        CHECK_EQ(aco_restart(slot->co, functions[entry], slot), 0);
        begins(slot, &models[entry][is_private]);
    }
}

static void counts_by_model(uint64_t seed)
{
    enum { OPERATIONS = SANITIZED ? 800 : 6000 };
    random_t random = {seed};
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    void (*c)(void) = entry_c;
    CHECK_EQ(aco_stack_measure(1), 0);
    for (int i = 0; i < 2; i++)
        for (int entry = 0; entry < ENTRIES; entry++)
            models[entry][i] = (model_t){.entry = entry < 2 ? address(functions[entry]) : *(const void **)(void *)&c, .is_private = i};
    for (int i = 0; i < STACKS; i++)
        stacks[i] = COPYING ? aco_share_stack_new2(i ? 64 << 10 : 1 << 20, i != 1) : NULL;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        slot_t *slot = &slots[below(&random, SLOTS)];
        unsigned what = below(&random, 100);
        if (!slot->co) {
            make(slot, &random, main_co);
        } else if (slot->co->is_end) {
            CHECK_EQ(slot->wrong, 0);
            if (what < 50) {
                make_again(slot, &random);
            } else {
                aco_destroy(slot->co);
                slot->co = NULL;
            }
        } else if (what < 3 && slot->model) {
            ended(slot);
            aco_destroy(slot->co);
            slot->co = NULL;
        } else if (what < 6 && aco_state(slot->co) == ACO_STATE_SUSPENDED) {
            CHECK_EQ(aco_cancel(slot->co), 0);
            ended(slot);
        } else {
            aco_resume(slot->co);
            came_back();
        }
        if (i % (OPERATIONS / 50) == 0)
            for (int entry = 0; entry < ENTRIES; entry++)
                check_model(&models[entry][0]), check_model(&models[entry][1]);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].co) {
            if (slots[i].model)
                ended(&slots[i]);
            aco_destroy(slots[i].co);
            slots[i].co = NULL;
        }
    for (int entry = 0; entry < ENTRIES; entry++)
        check_model(&models[entry][0]), check_model(&models[entry][1]);
    CHECK(models[0][1].made > 10 && models[1][1].made > 10 && models[0][1].switches > 100);
    CHECK(!COPYING || (models[0][0].made > 10 && models[2][0].made > 10 && models[2][0].switches > 100));
    for (int i = 0; COPYING && i < STACKS; i++)
        aco_share_stack_destroy(stacks[i]);
    aco_destroy(main_co);
    CHECK_EQ(aco_stack_measure(0), 0);
}

/* ---- Tasks ---- */

static void *yielding_task(void *arg)
{
    for (int i = 0; i < *(int *)arg; i++)
        aco_task_yield();
    return NULL;
}

static void *detached_task(void *arg)
{
    return yielding_task(arg);
}

/* Promise: tasks are measured as coroutines are: joined, detached, ended before they are joined; also among others that are not. */
static void counts_of_tasks(void)
{
    enum { MANY = 10 };
    aco_t *tasks[MANY];
    int yields = 5;
    aco_options_t detached = {0};
    looked_for_t found;
    detached.flags = ACO_DETACHED;
    tasks[0] = aco_spawn(yielding_task, &yields, NULL); /* not measured */
    CHECK_EQ(aco_stack_measure(1), 0);
    for (int i = 1; i < MANY; i++) {
        tasks[i] = aco_spawn(yielding_task, &yields, NULL);
        CHECK(aco_spawn(detached_task, &yields, &detached) != NULL);
    }
    CHECK_EQ(aco_stack_measure(0), 0);
    CHECK_EQ(aco_run(), 0);
    found = usage_of(address(yielding_task), 1);
    CHECK_EQ(found.usage.made, MANY - 1);
    CHECK_EQ(found.usage.most_alive, MANY - 1);
    CHECK_EQ(found.usage.switches, (MANY - 1) * yields);
    CHECK(found.usage.deepest > 0 && found.usage.deepest <= 2 * page + 4 * SLACK);
    CHECK(found.usage.mean_live > 0 && found.usage.mean_live <= found.usage.most_live && found.usage.most_live <= found.usage.deepest + UNWRITTEN);
    found = usage_of(address(detached_task), 1);
    CHECK_EQ(found.usage.made, MANY - 1);
    CHECK_EQ(found.usage.most_alive, MANY - 1);
    CHECK_EQ(found.usage.switches, (MANY - 1) * yields);
    CHECK(found.usage.deepest > 0 && found.usage.mean_depth > 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    found = usage_of(address(yielding_task), 1);
    CHECK_EQ(found.usage.made, MANY - 1);
}

/* ---- What is measured when ---- */

static void *named(void *arg)
{
    aco_yield();
    return arg;
}

static void *named_later(void *arg)
{
    return named(arg);
}

static void *unmeasured(void *arg)
{
    return named(arg);
}

static void one(aco_function_t fn, const char *name, int destroy_suspended)
{
    aco_options_t options = {0};
    options.name = name;
    aco_t *co = aco_new(fn, NULL, &options);
    aco_resume(co);
    if (!destroy_suspended)
        aco_resume(co);
    aco_destroy(co);
}

/* Promise: the name is that of the last of them that has one and has ended or was destroyed; it may be given late. */
static void names(void)
{
    aco_t *co;
    aco_stack_measure(1);
    one(named, NULL, 0);
    CHECK(strcmp(usage_of(address(named), 1).name, "") == 0);
    one(named, "first", 0);
    CHECK(strcmp(usage_of(address(named), 1).name, "first") == 0);
    one(named, NULL, 0);
    CHECK(strcmp(usage_of(address(named), 1).name, "first") == 0);
    one(named, "a name that is longer than ACO_NAME_SIZE can take", 1);
    CHECK(strcmp(usage_of(address(named), 1).name, "a name that is longer than ACO_") == 0);
    co = aco_new(named_later, NULL, NULL);
    aco_set_name(co, "late");
    aco_resume(co);
    aco_resume(co);
    CHECK(strcmp(usage_of(address(named_later), 1).name, "late") == 0);
    aco_destroy(co);
    aco_stack_measure(0);
}

static void *measuring_thread(void *arg)
{
    aco_thread_init(NULL);
    one(unmeasured, NULL, 0);
    CHECK_EQ(usage_of(address(unmeasured), 1).found, 0); /* the other thread measures, this one does not */
    aco_stack_measure(1);
    one(unmeasured, arg, 0);
    CHECK_EQ(usage_of(address(unmeasured), 1).usage.made, 1);
    return NULL; /* and ends without switching it off */
}

static size_t in_use(void)
{
    aco_pool_stats_t stats = {0};
    CHECK_EQ(aco_pool_stats(NULL, &stats), 0);
    return stats.in_use;
}

/* Promises: by thread; for coroutines made from then on; off is off, and destroyed coroutines are kept with their stacks again. */
static void on_and_off(void)
{
    pthread_t thread;
    size_t before, switches;
    aco_t *co;
    looked_for_t found;
    aco_stack_measure(1);
    aco_stack_measure(1); /* twice is once */
    pthread_create(&thread, NULL, measuring_thread, NULL);
    pthread_join(thread, NULL);
    found = usage_of(address(named), 1);
    before = in_use();
    co = aco_new(named, NULL, NULL);
    CHECK_EQ(in_use(), before + 1);
    aco_stack_measure(0);
    aco_stack_measure(0);
    CHECK_EQ(usage_of(address(named), 1).usage.made, found.usage.made + 1);
    aco_resume(co); /* what was made while it was on is measured to its end */
    CHECK_EQ(usage_of(address(named), 1).usage.switches, found.usage.switches + 1);
    aco_resume(co);
    aco_destroy(co);
    CHECK_EQ(in_use(), before);
    switches = found.usage.switches + 1;
    one(named, "unmeasured", 0);
    found = usage_of(address(named), 1);
    CHECK_EQ(found.usage.switches, switches);
    CHECK(strcmp(found.name, "unmeasured") != 0);
    if (!SANITIZED) {
        CHECK_EQ(in_use(), before + 1); /* a spare */
        co = aco_new(named, NULL, NULL);
        CHECK_EQ(in_use(), before + 1);
        aco_destroy(co);
        CHECK_EQ(in_use(), before + 1);
        aco_stack_measure(1);
        CHECK_EQ(in_use(), before); /* spares would have another one's depth */
        aco_stack_measure(0);
    }
}

/* Promise: a coroutine is measured from its own beginning: what had its stack before does not count. */
static void *deep_one(void *arg)
{
    size_t lowest;
    dive(100000, &lowest);
    return arg;
}

static void *shallow_one(void *arg)
{
    return arg;
}

static void own_depth_only(void)
{
    one(deep_one, NULL, 1); /* a spare with many pages, and one that goes to the pool */
    aco_pool_trim(NULL);
    one(deep_one, NULL, 1);
    aco_stack_measure(1);
    one(deep_one, NULL, 1);
    one(shallow_one, NULL, 1);
    CHECK(usage_of(address(deep_one), 1).usage.deepest >= 100000);
    CHECK(usage_of(address(shallow_one), 1).usage.deepest <= 2 * page + SLACK);
    aco_stack_measure(0);
}

/* ---- Transfers between those who are measured and those who are not ---- */

static aco_t *transfer_target;

static void *transfers(void *arg)
{
    CHECK_EQ(aco_yield_to(transfer_target), 0);
    return arg;
}

static void *measured_transfers(void *arg)
{
    CHECK_EQ(aco_yield_to(transfer_target), 0);
    return arg;
}

static void *yields_once(void *arg)
{
    aco_yield();
    return arg;
}

static void from_measured(void)
{
    aco_t *from;
    transfer_target = aco_new(yields_once, NULL, NULL);
    aco_stack_measure(1);
    from = aco_new(measured_transfers, NULL, NULL);
    aco_stack_measure(0);
    aco_resume(from);
    aco_resume(transfer_target);
    aco_resume(from);
    CHECK(from->is_end && transfer_target->is_end);
    CHECK_EQ(usage_of(address(measured_transfers), 1).usage.switches, 1);
    CHECK(usage_of(address(measured_transfers), 1).usage.deepest > 0);
    CHECK_EQ(usage_of(address(yields_once), 1).found, 0);
    aco_destroy(from);
    aco_destroy(transfer_target);
}

static void *measured_target(void *arg)
{
    return yields_once(arg);
}

/* Promises: an unmeasured one is resumed, transfers to a measured one, and that one yields: this is not counted, the rest is. */
static void to_measured(void)
{
    aco_t *from = aco_new(transfers, NULL, NULL);
    aco_stack_measure(1);
    transfer_target = aco_new(measured_target, NULL, NULL);
    aco_stack_measure(0);
    aco_resume(from);
    CHECK_EQ(usage_of(address(measured_target), 1).usage.switches, SANITIZED); /* under a sanitizer every switch is seen */
    aco_resume(transfer_target);
    aco_resume(from);
    CHECK(usage_of(address(measured_target), 1).usage.deepest > 0);
    aco_destroy(from);
    aco_destroy(transfer_target);
}

/* ---- Never run ---- */

static void *never_run_1(void *arg)
{
    return yields_once(arg);
}

static void *never_run_2(void *arg)
{
    return yields_once(arg);
}

/* Promises: who was never left says nothing of its kind of stack; who is made as new with another function counts there. */
static void never_run(void)
{
    aco_t *co;
    looked_for_t found;
    aco_stack_measure(1);
    co = aco_new(never_run_1, NULL, NULL);
    found = usage_of(address(never_run_1), 1);
    CHECK(found.found == 1 && found.usage.made == 1 && found.usage.most_alive == 1 && found.usage.switches == 0);
    CHECK_EQ(found.usage.deepest, 0);
    CHECK_EQ(found.usage.advice, ACO_STACK_AS_IT_IS);
    CHECK_EQ(aco_restart(co, never_run_2, NULL), 0);
    CHECK_EQ(usage_of(address(never_run_2), 1).usage.made, 1);
    aco_destroy(co);
    co = aco_new(never_run_1, NULL, NULL);
    CHECK_EQ(aco_cancel(co), 0);
    CHECK_EQ(aco_restart(co, never_run_1, NULL), 0);
    CHECK_EQ(usage_of(address(never_run_1), 1).usage.made, 3);
    CHECK_EQ(usage_of(address(never_run_1), 1).usage.most_alive, 1);
    aco_destroy(co);
    aco_stack_measure(0);
}

/* ---- Advice ---- */

static void hold_and_yield(size_t bytes, int yields)
{
    volatile unsigned char *p = __builtin_alloca(bytes);
    p[0] = 1;
    for (int i = 0; i < yields; i++)
        aco_yield();
    p[0] = 2;
}

typedef struct holder {
    size_t bytes;
    int yields;
} holder_t;

static void *hold(void *arg)
{
    const holder_t *holder = arg;
    hold_and_yield(holder->bytes, holder->yields);
    return arg;
}

static void *few(void *arg)
{
    return hold(arg);
}

static void *too_few(void *arg)
{
    return hold(arg);
}

static void *enough(void *arg)
{
    return hold(arg);
}

static void *much_live(void *arg)
{
    return hold(arg);
}

/* `n` at once. */
static aco_stack_usage_t usage_of_many(aco_function_t fn, size_t n, holder_t *holder, aco_share_stack_t *stack)
{
    aco_t **all = malloc(n * sizeof *all);
    aco_options_t options = {0};
    aco_stack_usage_t u;
    options.stack = stack;
    for (size_t i = 0; i < n; i++) {
        all[i] = aco_new(fn, holder, &options);
        CHECK(all[i] != NULL);
    }
    for (int y = 0; y <= holder->yields; y++)
        for (size_t i = 0; i < n; i++)
            aco_resume(all[i]);
    for (size_t i = 0; i < n; i++)
        aco_destroy(all[i]);
    free(all);
    u = usage_of(address(fn), !stack).usage;
    CHECK_EQ(u.advice, advice_for(&u));
    return u;
}

static void advice(void)
{
    enum { MIB = 1 << 20, FEW = 24 }; /* so many that the mean of their pages is that of many more, whatever colours their stacks have */
    holder_t holder = {16, 2};
    size_t saved, n;
    aco_stack_usage_t u;
    aco_share_stack_t *stack = COPYING ? aco_share_stack_new(0) : NULL;
    int seen[2] = {0, 0};
    aco_stack_measure(1);
    u = usage_of_many(few, FEW, &holder, NULL);
    CHECK_EQ(u.advice, ACO_STACK_AS_IT_IS);
#ifndef __OPTIMIZE__
    if (u.mean_live > 900) { /* Power, Windows: such frames are hardly, or never, better shared */
        if (stack)
            aco_share_stack_destroy(stack);
        aco_stack_measure(0);
        return;
    }
#endif
    saved = u.bytes - u.other_bytes;
    n = (MIB + saved - 1) / saved;
    u = usage_of_many(too_few, n - 1, &holder, NULL); /* 1 MiB is not reached */
    CHECK_EQ(u.bytes - u.other_bytes, saved);
    CHECK_EQ(u.advice, ACO_STACK_AS_IT_IS);
    u = usage_of_many(enough, n, &holder, NULL);
    CHECK_EQ(u.bytes - u.other_bytes, saved);
    CHECK_EQ(u.advice, ACO_STACK_BETTER_SHARED);
    if (!SANITIZED) {
        usage_of_many(much_live, 4 * n, &holder, NULL); /* then the mean grows slowly to beyond 1000 bytes */
        for (holder = (holder_t){1900, 100}; u.mean_live < 1010; seen[u.mean_live > 1000]++) {
            u = usage_of_many(much_live, 1, &holder, NULL);
            CHECK_EQ(u.advice, u.mean_live <= 1000 ? ACO_STACK_BETTER_SHARED : ACO_STACK_AS_IT_IS);
        }
        CHECK(seen[0] && seen[1]);
    }
    if (COPYING) {
        holder = (holder_t){16, 2};
        u = usage_of_many(few, 1, &holder, stack);
        CHECK_EQ(u.advice, ACO_STACK_BETTER_PRIVATE); /* it saves too little */
        u = usage_of_many(enough, n + 40, &holder, stack);
        CHECK_EQ(u.advice, ACO_STACK_AS_IT_IS);
        holder = (holder_t){3000, 2};
        u = usage_of_many(too_few, n + 40, &holder, stack);
        CHECK_EQ(u.advice, ACO_STACK_BETTER_PRIVATE); /* it copies much */
        aco_share_stack_destroy(stack);
    }
    aco_stack_measure(0);
}

/* ---- The table, the visitor ---- */

static int count_usages(const aco_stack_usage_t *usage, void *arg)
{
    CHECK(usage->entry != NULL && usage->name != NULL && usage->made > 0 && usage->most_alive > 0 && usage->stack_size > 0);
    CHECK_EQ(usage->advice, advice_for(usage));
    return ++*(int *)arg == 1000;
}

static int stop_at_second(const aco_stack_usage_t *usage, void *arg)
{
    (void)usage;
    return ++*(int *)arg == 2 ? 77 : 0;
}

typedef struct line_check {
    FILE *file;
    int lines;
} line_check_t;

/* Of each entry a line, in the order of the visits. */
static int compare_line(const aco_stack_usage_t *usage, void *arg)
{
    static const char *const advices[] = {" -\n", " share stack\n", " private stack\n"};
    line_check_t *check = arg;
    char line[512] = "", number[32];
    void *entry;
    memcpy(&entry, &usage->entry, sizeof entry);
    CHECK(fgets(line, sizeof line, check->file) != NULL);
    snprintf(number, sizeof number, "%-18p ", entry);
    CHECK(strncmp(line, number, strlen(number)) == 0);
    snprintf(number, sizeof number, " %zu ", usage->switches);
    CHECK(strstr(line, number) != NULL);
    snprintf(number, sizeof number, " %zu ", usage->mean_live);
    CHECK(strstr(line, number) != NULL);
    CHECK(strstr(line, usage->is_private ? "private" : "share") != NULL);
    snprintf(number, sizeof number, "%.16s", usage->name);
    CHECK(strstr(line, number) != NULL);
    CHECK(strlen(line) > 20 && strcmp(line + strlen(line) - strlen(advices[usage->advice]), advices[usage->advice]) == 0);
    check->lines++;
    return 0;
}

static void report(void)
{
    FILE *file = tmpfile(), *readable = fopen("/dev/null", "r");
    line_check_t check = {file, 0};
    char line[512];
    int entries = 0, second = 0;
    CHECK_EQ(aco_stack_usage(count_usages, &entries), 0);
    CHECK(entries >= 8);
    CHECK_EQ(aco_stack_usage(stop_at_second, &second), 77);
    CHECK_EQ(second, 2);
    REFUSES(aco_stack_usage(NULL, NULL), -1, EINVAL, "aco_stack_usage", NULL, "the visitor is NULL");
    REFUSES(aco_stack_report(NULL), -1, EINVAL, "aco_stack_report", NULL, "the file is NULL");
    CHECK_EQ(aco_stack_report(file), 0);
    rewind(file);
    CHECK(fgets(line, sizeof line, file) && strstr(line, "entry function") && strstr(line, "cheaper on"));
    CHECK_EQ(aco_stack_usage(compare_line, &check), 0);
    CHECK_EQ(check.lines, entries);
    CHECK(fgets(line, sizeof line, file) == NULL);
#ifndef _WIN32 /* whose fprintf() does not notice */
    CHECK_EQ(aco_stack_report(readable), -1);
#endif
    fclose(readable);
    fclose(file);
}

static int none(const aco_stack_usage_t *usage, void *arg)
{
    (void)usage, (void)arg;
    return 1;
}

int main(int argc, char **argv)
{
    const char *env = getenv("ACORN_SEED");
    uint64_t seed = env ? strtoull(env, NULL, 0) : argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    printf("measure: seed %llu\n", (unsigned long long)seed);
    page = (size_t)sysconf(_SC_PAGESIZE);
    aco_thread_init(NULL);
    CHECK_EQ(aco_stack_usage(none, NULL), 0); /* nothing was asked for */
    idle_trims(); /* first: a round looks at 64 blocks, of destroyed ones too */
    high_water();
    high_water_of_who_runs();
    trim_at_each_depth();
    trim_keeps_frames(seed);
#ifndef ACO_CONFIG_NO_INLINE
    trim_and_generators();
#ifndef ACO__NO_IN_STACK
    trim_and_in_stack_generators();
#endif
#endif
    refusals();
    CHECK_EQ(aco_stack_usage(none, NULL), 0);
    counts_by_model(seed);
    counts_of_tasks();
    names();
    on_and_off();
    own_depth_only();
    from_measured();
    to_measured();
    never_run();
    if (SMALL_FRAMES) /* else stacks are never better shared */
        advice();
    report();
    return check_result("measure");
}
