/* Bugs inside coroutines, each across a switch, that tools must find; and what they must not report:
 *   seeded BUG KIND   does BUG in a coroutine of KIND
 *   seeded roots      ends while suspended coroutines hold the only pointers to memory
 *   seeded abandoned KIND   destroys suspended coroutines, private or on a share stack, that do
 *   seeded many       many coroutines on a share stack need little memory, and leave nothing poisoned
 *   seeded lives      coroutines of all kinds, made, switched, ended, cancelled, destroyed and made again */
#include <aco.h>
#include <aco/in_stack_generator.h>
#include <aco/pool.h>
#include <aco/scheduler.h>

#include "../check.h"
#include "../sanitizers.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define HERE __attribute__((noinline)) /* a frame that reports name */

/* ---- Kinds of coroutines ---- */

typedef void suspend_t(void *how);
typedef void body_t(suspend_t *suspend, void *how);

static body_t *body;

static void yields(void *unused)
{
    (void)unused;
    aco_yield();
}

static void has_next_turn(void *unused)
{
    (void)unused;
    aco_task_yield();
}

static void generates(void *y)
{
    aco_generate(y, NULL);
}

static void generates_in_stack(void *y)
{
    aco_generate_in_stack(y, NULL);
}

static void *native_entry(void *unused)
{
    (void)unused;
    body(yields, NULL);
    return NULL;
}

static void entry(void)
{
    body(yields, NULL);
    aco_exit();
}

static void *task_entry(void *unused)
{
    (void)unused;
    body(has_next_turn, NULL);
    return NULL;
}

ACO_GENERATOR(generator, y, arg)
{
    (void)arg;
    body(generates, y);
}

ACO_IN_STACK_GENERATOR(in_stack, y, arg)
{
    (void)arg;
    body(generates_in_stack, y);
}

static void *resume_to_end(void *co)
{
    while (!((aco_t *)co)->is_end)
        aco_resume(co);
    return NULL;
}

static void on_private(void)
{
    static const aco_options_t named = {.name = "teller"};
    aco_t *co = aco_new(native_entry, NULL, &named);
    resume_to_end(co);
    aco_destroy(co);
}

/* Two take turns on one stack: each of their frames is copied at each turn. */
static void on_share(void)
{
    aco_t *main_co, *co[2];
    aco_share_stack_t *stack;
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    stack = aco_share_stack_new(0);
    for (int i = 0; i < 2; i++)
        co[i] = aco_create(main_co, stack, 0, entry, NULL);
    while (!co[0]->is_end || !co[1]->is_end)
        for (int i = 0; i < 2; i++)
            if (!co[i]->is_end)
                aco_resume(co[i]);
    for (int i = 0; i < 2; i++)
        aco_destroy(co[i]);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}

static void in_generator(void)
{
    aco_generator_t g;
    CHECK(aco_generator_open(&g, generator, NULL, NULL) == 0);
    while (aco_generator_next(&g))
        ;
    aco_generator_close(&g);
}

static void in_stack_generator(void)
{
    aco_in_stack_t g;
    aco_in_stack_open(&g, in_stack, NULL);
    while (aco_in_stack_next(&g) > 0)
        ;
    aco_in_stack_close(&g);
}

static void as_task(void)
{
    static const aco_options_t detached = {.flags = ACO_DETACHED};
    for (int i = 0; i < 2; i++)
        CHECK(aco_spawn(task_entry, NULL, &detached) != NULL);
    CHECK_EQ(aco_run(), 0);
}

/* A coroutine that begins here and goes on on another thread. */
static void on_threads(void)
{
    pthread_t thread;
    aco_t *co = aco_new(native_entry, NULL, NULL);
    aco_resume(co);
    pthread_create(&thread, NULL, resume_to_end, co);
    pthread_join(thread, NULL);
    aco_destroy(co);
}

/* ---- Bugs ---- */

static volatile int sink;

HERE static void heap(suspend_t *suspend, void *how)
{
    int *volatile p = malloc(100 * sizeof *p), *volatile freed = p;
    memset(p, 1, 100 * sizeof *p);
    suspend(how);
    free(p);
    suspend(how);
    sink = freed[10];
}

HERE static void stack(suspend_t *suspend, void *how)
{
    volatile int array[10] = {0}, *p = array;
    suspend(how);
    p += sink + 10;
    *p = 1;
}

HERE static int *local_of_callee(void)
{
    int local = 1;
    int *volatile p = &local;
    return p;
}

HERE static void returned(suspend_t *suspend, void *how)
{
    int *p = local_of_callee();
    suspend(how);
    sink = *p;
}

HERE static void uninitialised(suspend_t *suspend, void *how)
{
    volatile int never_set[4];
    suspend(how);
    if (never_set[2])
        sink = 1;
}

HERE static void overflow(suspend_t *suspend, void *how)
{
    volatile int large = INT32_MAX;
    suspend(how);
    sink = large + 1;
}

HERE static void leak(suspend_t *suspend, void *how)
{
    void *volatile p = malloc(77);
    memset(p, 1, 77);
    suspend(how);
    p = NULL;
}

static int balance;

static void *deposit(void *unused)
{
    (void)unused;
    balance++;
    return NULL;
}

HERE static void race(suspend_t *suspend, void *how)
{
    pthread_t thread;
    suspend(how);
    pthread_create(&thread, NULL, deposit, NULL);
    balance++;
    pthread_join(thread, NULL);
}

/* What they hold, by one pointer in the frame of each, is lost with them. */
static body_t holds;

HERE static void abandon(int shared)
{
    enum { MANY = 8 };
    aco_t *main_co, *co[MANY];
    aco_share_stack_t *given;
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    given = aco_share_stack_new(0);
    body = holds;
    for (int i = 0; i < MANY; i++) {
        co[i] = shared ? aco_create(main_co, given, 0, entry, NULL) : aco_new(native_entry, NULL, NULL);
        aco_resume(co[i]);
    }
    for (int i = 0; i < MANY; i++)
        aco_destroy(co[i]);
    aco_share_stack_destroy(given);
}

/* ---- No bugs ---- */

HERE static void holds(suspend_t *suspend, void *how)
{
    char *volatile p = malloc(77);
    memset(p, 1, 77);
    for (;;)
        suspend(how);
}

static void *holds_in_many_ways(void *given)
{
    *(void **)given = NULL; /* the block has it in the first register that it takes, and here */
    aco_set_slot(NULL, malloc(33));
    aco_defer(free, malloc(44));
    holds(yields, NULL);
    return NULL;
}

static void roots(void)
{
    static const aco_options_t tiny = {.stack_size = 4096};
    void *given = NULL;
    aco_t *main_co, *co[4];
    aco_share_stack_t *shared;
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    shared = aco_share_stack_new(0);
    body = holds;
    co[0] = aco_new(holds_in_many_ways, &given, NULL);
    co[1] = aco_new(holds_in_many_ways, &given, &tiny);
    co[2] = aco_create(main_co, shared, 0, entry, NULL);
    co[3] = aco_create(main_co, shared, 40000, entry, NULL);
    for (int i = 0; i < 8; i++)
        aco_resume(co[i % 4]);
}

/* Frames with arrays, each with something of its own, as deep as asked. */
HERE static int deep(int depth, suspend_t *suspend, void *how)
{
    volatile int array[16];
    int sum = 0;
    for (int i = 0; i < 16; i++)
        array[i] = depth;
    if (depth > 0)
        sum = deep(depth - 1, suspend, how);
    else
        suspend(how);
    for (int i = 0; i < 16; i++)
        sum += array[i];
    return sum;
}

static void goes_deep(suspend_t *suspend, void *how)
{
    for (int i = 1; i < 12; i++)
        CHECK_EQ(deep(i, suspend, how), 16 * i * (i + 1) / 2);
}

static void cut_short(void)
{
    static const aco_options_t pooled = {.stack_size = 16384};
    aco_t *co = aco_new(native_entry, NULL, &pooled);
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < round; i++)
            if (!co->is_end)
                aco_resume(co);
        if (round % 3 == 0) { /* its frames, and what is noted of them, stay until the stack serves again */
            aco_destroy(co);
            co = aco_new(native_entry, NULL, &pooled);
        } else {
            CHECK_EQ(aco_cancel(co), 0);
            CHECK_EQ(aco_restart(co, native_entry, NULL), 0);
        }
    }
    aco_destroy(co);
}

static void transfers(void)
{
    aco_t *co[2];
    for (int i = 0; i < 2; i++)
        co[i] = aco_new(native_entry, NULL, NULL);
    for (int i = 0; i < 6; i++)
        aco_resume(co[i % 2]);
    for (int i = 0; i < 2; i++)
        aco_destroy(co[i]);
}

static void resets(void)
{
    aco_t *main_co, *co;
    aco_share_stack_t *shared;
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    shared = aco_share_stack_new(0);
    co = aco_create(main_co, shared, 0, entry, NULL);
    for (int i = 0; i < 3; i++) {
        resume_to_end(co);
        aco_reset(co, entry, NULL);
    }
    aco_destroy(co);
    aco_share_stack_destroy(shared);
    aco_destroy(main_co);
}

static void generators_dropped(void)
{
    aco_generator_t g;
    aco_in_stack_t h;
    CHECK(aco_generator_open(&g, generator, NULL, NULL) == 0);
    CHECK_EQ(aco_generator_next(&g), 1);
    aco_generator_drop(&g);
    aco_in_stack_open(&h, in_stack, NULL);
    CHECK_EQ(aco_in_stack_next(&h), 1);
    aco_in_stack_close(&h);
    CHECK_EQ(deep(20, has_next_turn, NULL), 16 * 20 * 21 / 2); /* where those frames were */
}

/* ---- By name ---- */

static const struct named {
    const char *name;
    body_t *body;
} bugs[] = {{"heap", heap},         {"stack", stack}, {"returned", returned}, {"uninitialised", uninitialised},
            {"overflow", overflow}, {"leak", leak},   {"race", race}};

static const struct kind {
    const char *name;
    void (*run)(void);
} kinds[] = {{"private", on_private},          {"share", on_share}, {"generator", in_generator},
             {"in-stack", in_stack_generator}, {"task", as_task},   {"threads", on_threads}};

enum { BUGS = sizeof bugs / sizeof *bugs, KINDS = sizeof kinds / sizeof *kinds };

static void lives(void)
{
    static void (*const more[])(void) = {cut_short, transfers, resets, generators_dropped};
    body = goes_deep;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < KINDS; i++)
            kinds[i].run();
        for (size_t i = 0; i < sizeof more / sizeof *more; i++)
            more[i]();
        aco_pool_trim(NULL);
    }
}

/* ---- Many on a share stack ---- */

#if UNDER_ASAN
void *__asan_region_is_poisoned(void *p, size_t sz);

static size_t resident(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*u %zu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static HERE int goes_down(int depth)
{
    volatile char frame[3000];
    frame[depth] = (char)depth;
    if (depth)
        return goes_down(depth - 1) + frame[depth];
    aco_yield();
    return frame[0];
}

static void goes_down_and_yields(void)
{
    goes_down((int)(intptr_t)aco_get_arg());
    aco_exit();
}

/* Makes coroutines that yield `depth` frames deep; every second one ends. Then destroys all. */
static void make_many(aco_t *main_co, aco_share_stack_t *stack, int depth, int looks)
{
    enum { MANY = 1000 };
    static aco_t *co[MANY];
    for (int i = 0; i < MANY; i++) {
        co[i] = aco_create(main_co, stack, 0, goes_down_and_yields, (void *)(intptr_t)depth);
        if (looks)
            CHECK(!__asan_region_is_poisoned(co[i]->share_stack->ptr, co[i]->share_stack->sz));
    }
    for (int i = 0; i < MANY; i++)
        aco_resume(co[i]);
    for (int i = 0; i < MANY; i += 2)
        aco_resume(co[i]);
    for (int i = 0; i < MANY; i++)
        aco_destroy(co[i]);
}

/* Promises: AddressSanitizer's shadow memory becomes resident for what a coroutine uses of its stack, not for the whole
 * stack: 256 KiB of shadow for 2 MiB. What coroutines leave behind is not poisoned for those that come next. */
static void many(void)
{
    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    size_t before = resident();
    for (int round = 0; round < 3; round++)
        make_many(main_co, stack, 0, 0);
    CHECK(resident() - before < (size_t)64 << 20);
    make_many(main_co, stack, 60, 0);
    make_many(main_co, stack, 0, 1);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}
#else
static void many(void)
{
}
#endif

int main(int argc, char **argv)
{
    if (argc == 3)
        for (int i = 0; i < BUGS; i++)
            for (int j = 0; j < KINDS; j++)
                if (strcmp(argv[1], bugs[i].name) == 0 && strcmp(argv[2], kinds[j].name) == 0) {
                    body = bugs[i].body;
                    kinds[j].run();
                    return 0;
                }
    if (argc == 3 && strcmp(argv[1], "abandoned") == 0) {
        abandon(strcmp(argv[2], "share") == 0);
        deep(20, has_next_turn, NULL); /* where its frames were */
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "roots") == 0)
        roots();
    else if (argc == 2 && strcmp(argv[1], "lives") == 0)
        lives();
    else if (argc == 2 && strcmp(argv[1], "many") == 0)
        many();
    else
        return 2;
    return check_result(argv[1]);
}
