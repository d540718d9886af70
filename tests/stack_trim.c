/* Promises of aco_stack_high_water() and aco_stack_trim() (include/aco/pool.h): how deep a stack went, what a trim and
 * an idle scheduler give back, what stays, what cannot be trimmed. Argument: seed (ACORN_SEED in the environment). */
#define _GNU_SOURCE
#include "stack_depth.h"
#include "aco/scheduler.h"
#include "child.h"
#include "lacking.h"
#include "random.h"
#include "fails.h"

#ifndef ACO_CONFIG_NO_INLINE
#include "aco/in_stack_generator.h"
#endif

#include <string.h>

static size_t page;

/* ---- Going deep ---- */

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

/* Promises: at least what was touched, at most a page more; it stays while the coroutine is shallow, after it ended,
 * and until the stack is trimmed; a coroutine that takes the stack over has the mark of who had it before. */
static void depth_of(size_t stack_size, unsigned flags, aco_pool_t *pool)
{
    size_t most = stack_size ? stack_size : ACO__PRIVATE_SIZE, lowest;
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
    unsigned size = 1 + (below(&walker->random, 4) ? below(&walker->random, 300) : below(&walker->random, 12000)),
             actions = 1 + below(&walker->random, 5);
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
    FAILS(aco_stack_trim(co), -1, EBUSY, trim_call, co, "is running");
    return NULL;
}

static void *trims(void *co)
{
    FAILS(aco_stack_trim(co), -1, EBUSY, trim_call, co, "is resuming another coroutine");
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

#if ACO__ON_ONE_STACK
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
    FAILS(aco_stack_trim(co), -1, EBUSY, trim_call, co, "is suspended in a generator's body");
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
    FAILS(aco_stack_trim(aco_get_co()), -1, EBUSY, trim_call, aco_get_co(), "is running");
    aco_destroy(co);
    return NULL;
}

static void refusals(void)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL), *co, *task;
    other_thread_t other;
    pthread_t thread;
    FAILS(aco_stack_trim(NULL), -1, EINVAL, trim_call, NULL, "the coroutine is NULL");
    FAILS(aco_stack_high_water(NULL), -1, EINVAL, mark_call, NULL, "the coroutine is NULL");
    FAILS(aco_stack_trim(main_co), -1, EINVAL, trim_call, main_co, "is a main coroutine");
    FAILS(aco_stack_high_water(main_co), -1, EINVAL, mark_call, main_co, "is a main coroutine");
    co = aco_new(trims_itself, NULL, NULL);
    aco_resume(co);
    CHECK_EQ(aco_restart(co, resumes_who_trims, NULL), 0);
    aco_resume(co);
    CHECK_EQ(aco_stack_trim(co), 0);
    aco_destroy(co);
    if (!SANITIZED) { /* the thread caches it: its memory is not used again */
        FAILS(aco_stack_trim(co), -1, ESRCH, trim_call, co, "was destroyed");
        FAILS(aco_stack_high_water(co), -1, ESRCH, mark_call, co, "was destroyed");
    }
    if (COPYING) {
        aco_share_stack_t *stack = aco_share_stack_new(0);
        aco_options_t options = {0};
        options.stack = stack;
        co = aco_new(ends, NULL, &options);
        FAILS(aco_stack_trim(co), -1, EINVAL, trim_call, co, "share stack");
        FAILS(aco_stack_high_water(co), -1, EINVAL, mark_call, co, "share stack");
        aco_resume(co);
        FAILS(aco_stack_trim(co), -1, EINVAL, trim_call, co, "share stack");
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
    FAILS(aco_stack_trim(other.task), -1, EPERM, trim_call, other.task, "is a task of another thread");
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

/* Promise: tasks that went deep and wait get their pages taken by aco_run() when it has nobody to run: some of them
 * every 100 ms. Live bytes stay. */
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

static void *parks_after_dive(void *arg)
{
    size_t lowest;
    dive(60000, &lowest);
    CHECK_EQ(aco_park("the end of the test"), 0);
    return arg;
}

/* Dives, and sleeps until its pages are gone. */
static void see_trim(void)
{
    sleeper_t s = {0};
    sleeper(&s);
    CHECK(s.after + 40000 <= s.deep);
}

static void *sees_trims(void *parked)
{
    enum { LOW = 50000 };
    see_trim(); /* the other is trimmed at the same time, or the next */
    see_trim();
    CHECK(aco_stack_high_water(parked) < LOW);
    ((volatile char *)((aco_t *)parked)->aco__self.sp)[-LOW] = 1;
    see_trim();
    see_trim();
    CHECK(aco_stack_high_water(parked) >= LOW);
    CHECK_EQ(aco_unpark(parked), 0);
    return NULL;
}

/* Promise: a stack is trimmed once in a wait. */
static void trimmed_once(void)
{
    aco_t *parked = aco_spawn(parks_after_dive, NULL, NULL), *seer = aco_spawn(sees_trims, parked, NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK(aco_join(parked, NULL) == 0 && aco_join(seer, NULL) == 0);
}

/* ---- An inner coroutine in the frame of its task ---- */

static void *sleeps_inside(void *unused)
{
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0); /* aco_run() trims before it waits */
    return unused;
}

/* Frames of some pages, below the inner coroutine's stack. */
static __attribute__((noinline)) void resume_below(aco_t *inner)
{
    volatile unsigned char frame[20000];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (unsigned char)i;
    aco_resume(inner);
    for (size_t i = 0; i < sizeof frame; i++)
        if (frame[i] != (unsigned char)i) {
            CHECK(!"a frame is as it was");
            return;
        }
}

static void *has_inner_in_frame(void *unused)
{
    char memory[64 << 10];
    aco_options_t options = {0};
    aco_t *inner;
    options.stack_memory = memory;
    options.stack_size = sizeof memory;
    inner = aco_new(sleeps_inside, NULL, &options);
    CHECK(inner != NULL);
    if (inner)
        resume_below(inner);
    aco_destroy(inner);
    return unused;
}

/* Promise: a trim takes no frames of a task whose inner coroutine waits on memory of the task's own stack. */
static void trim_and_inner(void)
{
    aco_options_t options = {0};
    aco_t *task;
    options.stack_size = 256 << 10;
    task = aco_spawn(has_inner_in_frame, NULL, &options);
    CHECK_EQ(aco_run_ready(&(int64_t){0}), 1);
    FAILS(aco_stack_trim(task), -1, EBUSY, trim_call, task, "is resuming another coroutine");
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
}

int main(int argc, char **argv)
{
    const char *env = getenv("ACORN_SEED");
    uint64_t seed = env ? strtoull(env, NULL, 0) : argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    printf("stack_trim: seed %llu\n", (unsigned long long)seed);
    page = (size_t)sysconf(_SC_PAGESIZE);
    aco_thread_init(NULL);
    CHECK_EQ(aco_stack_usage(none, NULL), 0); /* nothing was asked for */
    idle_trims(); /* first: a round looks at 64 blocks, of destroyed ones too */
    trimmed_once();
    trim_and_inner();
    high_water();
    high_water_of_who_runs();
    trim_at_each_depth();
    trim_keeps_frames(seed);
#ifndef ACO_CONFIG_NO_INLINE
    trim_and_generators();
#if ACO__ON_ONE_STACK
    trim_and_in_stack_generators();
#endif
#endif
    refusals();
    CHECK_EQ(aco_stack_usage(none, NULL), 0);
    return check_result("stack_trim");
}
