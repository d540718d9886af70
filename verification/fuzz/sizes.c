/* Stacks and save areas of all sizes: coroutines on private stacks, on stacks of a pool with a limit and on share
 * stacks go deep and come back, as the input says. Every frame is filled with bytes of its own and compared whenever
 * control comes back to it: what is copied, trimmed or reused wrongly shows. Sizes, bounds, statistics of save areas
 * and pools are compared with what include/aco.h and aco/pool.h promise. */
#define _GNU_SOURCE
#include "aco.h"
#include "aco/pool.h"
#define FUZZ_NAME "sizes"
#include "fuzz.h"

enum {
    COROUTINES = 8,
    MAIN = COROUTINES,
    STACKS = 2,
    MOST_OF_POOL = 4,
    LEVELS = 8, /* frames on one stack */
    CHAIN = 4,  /* coroutines that resume each other */
    /* Below a frame there must be room for one of the interpreter's, and for what it calls; for an unwinder more. */
    RESERVE = UNDER_ASAN ? 48 << 10 : 3 << 10,
    UNWINDER = RESERVE + (UNDER_ASAN ? 64 << 10 : 24 << 10),
    SMALLEST = UNDER_ASAN ? 128 << 10 : 1
};

typedef struct actor {
    aco_t *co;
    int resumer, stack; /* stack: of `stacks`, or -1: private */
    int is_of_pool, is_libaco;
    int levels;
    size_t asked;       /* stack size */
    size_t saves, restores, deepest; /* the save area's statistics when it was last looked at; the largest frame */
} actor_t;

static actor_t actors[COROUTINES + 1];
static aco_share_stack_t *stacks[STACKS];
static aco_pool_t *pool;
static aco_t *main_co;
static int running = MAIN, chain, of_pool;
static unsigned serial;

static int fuzz_actor(void)
{
    return running;
}

__attribute__((format(printf, 1, 2))) OUTLINE void trace(const char *format, ...)
{
    va_list args;
    if (running != MAIN) /* a coroutine's stack may be too small for it */
        return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

/* How many bytes there are below the calling function's frame. */
static size_t room(int me)
{
    void *lo, *hi;
    char *here = __builtin_frame_address(0);
    if (me == MAIN)
        return 1 << 20;
    EXPECT(aco_stack_bounds(actors[me].co, &lo, &hi) == 0);
    EXPECT(UNDER_ASAN || (here > (char *)lo && here <= (char *)hi));
    return (size_t)(here - (char *)lo);
}

/* ---- Sizes ---- */

static size_t a_size(void)
{
    unsigned byte = next(), exponent = 12 + next() % 12;
    switch (byte % 8) {
    case 0: return 0;
    case 1: return (size_t)1 << exponent;
    case 2: return ((size_t)1 << exponent) + 1 + byte / 8;
    case 3: return ((size_t)1 << exponent) - 1 - byte / 8;
    case 4: return 1 + byte / 8;
    case 5: return (size_t)next() << exponent % 8;
    case 6: return ((size_t)8 << 20) + (size_t)next() * 4096 + byte / 8;
    default: return next() % 4 == 0 ? SIZE_MAX - byte : (size_t)next() * 1000;
    }
}

/* What a private stack must have when so much was asked for. */
static size_t least_size(size_t asked)
{
    return asked ? asked : ACO__PRIVATE_SIZE;
}

/* ---- Looking ---- */

/* The save area of a coroutine that was not destroyed. */
static void look_at_area(actor_t *a)
{
    const aco_save_stack_t *area = &a->co->save_stack;
    EXPECT(area->valid_sz <= area->sz && area->valid_sz <= area->max_cpsz);
    EXPECT(area->ct_save >= a->saves && area->ct_restore >= a->restores && area->ct_restore <= area->ct_save);
    EXPECT(area->max_cpsz <= (size_t)((char *)stacks[a->stack]->aco__top - (char *)stacks[a->stack]->ptr));
    EXPECT(!area->valid_sz || stacks[a->stack]->owner != a->co);
    a->saves = area->ct_save;
    a->restores = area->ct_restore;
}

OUTLINE void look(int k)
{
    actor_t *a = &actors[k];
    void *lo, *hi;
    aco_pool_stats_t stats;
    EXPECT(aco_stack_bounds(a->co, &lo, &hi) == 0);
    EXPECT((char *)hi - (char *)lo >= 4096);
    if (a->stack >= 0) {
        look_at_area(a);
        EXPECT(aco_stack_high_water(a->co) == -1 && errno == EINVAL);
        return;
    }
    EXPECT(a->co->share_stack->sz >= least_size(a->asked));
    EXPECT((size_t)((char *)hi - (char *)lo) + 4096 >= least_size(a->asked));
    if (aco_state(a->co) == ACO_STATE_SUSPENDED) {
        ptrdiff_t depth = aco_stack_high_water(a->co);
        EXPECT(depth >= (char *)hi - (char *)a->co->aco__self.sp - 4096 || UNDER_ASAN);
        EXPECT(depth <= (char *)hi - (char *)lo + 4096);
    }
    EXPECT(aco_pool_stats(pool, &stats) == 0);
    EXPECT(stats.in_use == (size_t)of_pool);
}

/* ---- Making and destroying ---- */

static void *entry(void *arg);
static void entry_libaco(void);

OUTLINE void make_stack(int i, unsigned how)
{
    size_t sz = a_size() % (3 << 20);
    if (sz && sz < SMALLEST)
        sz = SMALLEST;
    stacks[i] = aco_share_stack_new2(sz, how & 1);
    TRACE("share stack %d of %zu", i, sz);
    EXPECT(stacks[i]->sz >= (sz ? sz : ACO__SHARE_SIZE) && stacks[i]->sz >= 4096 && !stacks[i]->owner);
    EXPECT(!(how & 1) || stacks[i]->sz % 4096 == 0);
}

OUTLINE void op_new(void)
{
    int k = (int)(next() % COROUTINES);
    unsigned how = next();
    size_t sz = a_size(), save = how & 16 ? a_size() % 100000 : 0;
    aco_options_t o;
    actor_t *a = &actors[k];
    int on = how % 8 < 5 ? (int)(how & 1) : -1, wants_pool = on < 0 && (how & 64), is_full = 0;
    if (a->co)
        return;
    memset(&o, 0, sizeof o);
    if (!FUZZ_COPYING)
        on = -1;
    if (on >= 0 && !stacks[on])
        make_stack(on, how >> 3);
    memset(a, 0, sizeof *a);
    a->stack = on;
    if (on >= 0) {
        o.stack = stacks[on];
        o.save_size = save;
    } else {
        o.stack_size = sz && sz < SMALLEST ? (size_t)SMALLEST : sz;
        o.pool = wants_pool ? pool : NULL;
        o.flags = how & 32 ? ACO_NO_GUARD : 0;
        a->asked = o.stack_size;
        a->is_of_pool = wants_pool && !o.flags && (!o.stack_size || o.stack_size <= 8 << 20);
        is_full = a->is_of_pool && of_pool == MOST_OF_POOL;
    }
    TRACE("new %d: stack %d size %zu save %zu pool %d", k, on, o.stack_size, o.save_size, a->is_of_pool);
    errno = 0;
    if (on >= 0 && (how & 128) && main_co) {
        a->is_libaco = 1;
        a->co = aco_create(main_co, stacks[on], save, entry_libaco, a);
    } else {
        a->co = aco_new(entry, a, &o);
    }
    if (o.stack_size > SIZE_MAX / 4) {
        EXPECT(!a->co && errno == EINVAL);
    } else if (is_full) {
        EXPECT(!a->co && errno == EAGAIN);
    } else {
        EXPECT(a->co);
        of_pool += a->is_of_pool;
        EXPECT(on < 0 || a->co->save_stack.sz >= save);
        EXPECT(aco_state(a->co) == ACO_STATE_READY);
        look(k);
    }
}

static void destroy(int k)
{
    actor_t *a = &actors[k];
    aco_destroy(a->co);
    of_pool -= a->is_of_pool;
    a->co = NULL;
}

/* Whether its frames leave enough room for the unwinder. */
static int may_cancel(int k)
{
    void *lo, *hi;
    aco_t *co = actors[k].co;
    size_t left;
    EXPECT(aco_stack_bounds(co, &lo, &hi) == 0);
    left = (size_t)((char *)hi - (char *)lo);
    if (actors[k].stack >= 0)
        return left - co->save_stack.max_cpsz - actors[k].deepest > UNWINDER && left > 2 * UNWINDER &&
               co->save_stack.max_cpsz + actors[k].deepest < left;
    return aco_state(co) != ACO_STATE_SUSPENDED || (size_t)((char *)co->aco__self.sp - (char *)lo) > UNWINDER;
}

OUTLINE void op_destroy(void)
{
    int k = (int)(next() % COROUTINES);
    unsigned how = next();
    aco_state_t state;
    if (!actors[k].co || k == running)
        return;
    state = aco_state(actors[k].co);
    if (state == ACO_STATE_RESUMING)
        return;
    TRACE("destroy %d", k);
    if (how & 1 && running == MAIN && may_cancel(k)) {
        int levels = actors[k].levels;
        EXPECT_INT(aco_cancel, (actors[k].co), 0);
        EXPECT(state != ACO_STATE_SUSPENDED || levels == 0 || actors[k].levels == 0);
    }
    destroy(k);
}

OUTLINE void op_restart(void)
{
    int k = (int)(next() % COROUTINES);
    actor_t *a = &actors[k];
    aco_state_t state;
    if (!a->co)
        return;
    state = aco_state(a->co);
    if (a->is_libaco) {
        if (state == ACO_STATE_DONE || state == ACO_STATE_READY)
            aco_reset(a->co, entry_libaco, a);
        return;
    }
    EXPECT_INT(aco_restart, (a->co, entry, a), state == ACO_STATE_DONE || state == ACO_STATE_READY ? 0 : EBUSY);
}

OUTLINE void op_stack(void)
{
    int i = (int)(next() % STACKS);
    for (int k = 0; k < COROUTINES; k++)
        if (actors[k].co && actors[k].stack == i)
            return;
    if (stacks[i])
        aco_share_stack_destroy(stacks[i]);
    stacks[i] = NULL;
}

OUTLINE void op_trim(void)
{
    int k = (int)(next() % COROUTINES);
    aco_t *co = actors[k].co;
    if (!co) {
        aco_pool_trim(k & 1 ? pool : NULL);
        return;
    }
    if (actors[k].stack >= 0)
        EXPECT_INT(aco_stack_trim, (co), EINVAL);
    else
        EXPECT_INT(aco_stack_trim, (co),
                   aco_state(co) == ACO_STATE_RUNNING || aco_state(co) == ACO_STATE_RESUMING ? EBUSY : 0);
}

/* ---- Running ---- */

static void interpret(int me);

OUTLINE void op_resume(int me)
{
    int k = (int)(next() % COROUTINES);
    actor_t *a = &actors[k];
    aco_state_t state;
    if (!a->co || chain >= CHAIN || room(me) < RESERVE)
        return;
    state = aco_state(a->co);
    if (state != ACO_STATE_READY && state != ACO_STATE_SUSPENDED)
        return;
    TRACE("resume %d", k);
    a->resumer = me;
    running = k;
    chain++;
    if (a->is_libaco)
        aco_resume(a->co);
    else
        EXPECT(aco_send(a->co, NULL) == a);
    chain--;
    EXPECT(running == me);
    if (me == MAIN)
        look(k);
}

OUTLINE void op_yield(int me)
{
    if (me == MAIN)
        return;
    running = actors[me].resumer;
    if (actors[me].is_libaco)
        aco_yield();
    else
        EXPECT(aco_yield_value(&actors[me]) == NULL);
    EXPECT(running == me && aco_get_co() == actors[me].co);
}

/* The frame has ended, by return or because the coroutine is cancelled. */
static void leave(int *me)
{
    actors[*me].levels--;
}

/* A frame of so many bytes more, and of an address aligned in one of several ways. */
OUTLINE void dig(int me)
{
    actor_t *a = &actors[me];
    size_t left = room(me), most = left > RESERVE ? left - RESERVE : 0;
    unsigned byte = next(), how = next();
    size_t want = (size_t)byte << how % 15, sz = (want < most ? want : most) & ~(size_t)7;
    random_t filling = {++serial}, again = filling;
    if (me == MAIN || a->levels >= LEVELS || sz < 8)
        return;
    {
        __attribute__((cleanup(leave))) int owner = me;
        uint64_t *words = __builtin_alloca(sz);
        size_t n = sz / 8;
        if (sz > a->deepest)
            a->deepest = sz;
        a->levels++;
        for (size_t i = 0; i < n; i += 1 + i / 64)
            words[i] = draw(&filling);
        __asm__ volatile("" : : "r"(words) : "memory");
        if (how & 128)
            op_yield(me);
        interpret(me);
        for (size_t i = 0; i < n; i += 1 + i / 64)
            if (words[i] != draw(&again))
                fail(__LINE__, "word %zu of %zu is not what it was", i, n);
        EXPECT(owner == me);
    }
}

OUTLINE void op_look(void)
{
    int k = (int)(next() % COROUTINES);
    if (running == MAIN && actors[k].co)
        look(k);
}

/* 0: the interpreter returns. */
static int operate(int me)
{
    switch (next() % 16) {
    case 0: case 1: op_new(); break;
    case 2: op_stack(); break;
    case 3: case 4: case 5: op_resume(me); break;
    case 6: case 7: op_yield(me); break;
    case 8: case 9: case 10: dig(me); break;
    case 11: op_destroy(); break;
    case 12: op_restart(); break;
    case 13: op_trim(); break;
    case 14: op_look(); break;
    default: return me == MAIN;
    }
    return 1;
}

OUTLINE void interpret(int me)
{
    while (!is_over() && (me == MAIN || room(me) >= RESERVE) && operate(me)) {
    }
}

static int begin(const void *arg)
{
    int me = (int)((const actor_t *)arg - actors);
    EXPECT(me == running && aco_get_arg() == arg);
    actors[me].levels = 0;
    interpret(me);
    EXPECT(actors[me].levels == 0);
    running = actors[me].resumer;
    return me;
}

static void *entry(void *arg)
{
    begin(arg);
    return arg;
}

static void entry_libaco(void)
{
    begin(aco_get_arg());
    aco_exit();
}

static int visited(aco_t *co, void *arg)
{
    (void)co, (void)arg;
    return 1;
}

static void fuzz_input(void)
{
    static int is_prepared;
    aco_pool_options_t options;
    memset(&options, 0, sizeof options);
    options.most_stacks = MOST_OF_POOL;
    options.region_size = (size_t)64 << (10 + next() % 6);
    options.flags = next() % 4 == 1 ? ACO_POOL_CANARIES : next() % 4 == 2 ? ACO_POOL_MPROTECT : 0;
    options.idle_stacks = next() % 4;
    if (!is_prepared)
        aco_thread_init(NULL);
    is_prepared = 1;
    serial = 0;
    of_pool = 0;
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    pool = aco_pool_new(&options);
    EXPECT(pool);
    interpret(MAIN);
    for (int k = 0; k < COROUTINES; k++)
        if (actors[k].co)
            destroy(k);
    EXPECT(aco_each(visited, NULL) == 0);
    for (int i = 0; i < STACKS; i++) {
        if (stacks[i])
            aco_share_stack_destroy(stacks[i]);
        stacks[i] = NULL;
    }
    EXPECT_INT(aco_pool_destroy, (pool), 0);
    aco_destroy(main_co);
}
