/* The API's promises (libaco's README, section API, and include/aco.h), one function each: threads, share stacks,
 * coroutines and the switch. Copying, statistics and aco_reset() are in copying.c, assertions in assertions.c, errors
 * in misuse.c. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "sanitizers.h"

#include <fenv.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static aco_t *main_co;

/* ---- Declarations ---- */

#define IS_TYPE(object, type)                                                                                          \
    _Static_assert(__builtin_types_compatible_p(__typeof__(object), type), #object " is a " #type)

/* Promise: the fields that libaco's users read exist with their types. */
IS_TYPE(((aco_t *)0)->main_co, aco_t *);
IS_TYPE(((aco_t *)0)->arg, void *);
IS_TYPE(((aco_t *)0)->is_end, char);
IS_TYPE(((aco_t *)0)->fp, aco_cofuncp_t);
IS_TYPE(((aco_t *)0)->save_stack, aco_save_stack_t);
IS_TYPE(((aco_t *)0)->share_stack, aco_share_stack_t *);
IS_TYPE(((aco_save_stack_t *)0)->ptr, void *);
IS_TYPE(((aco_save_stack_t *)0)->sz, size_t);
IS_TYPE(((aco_save_stack_t *)0)->valid_sz, size_t);
IS_TYPE(((aco_save_stack_t *)0)->max_cpsz, size_t);
IS_TYPE(((aco_save_stack_t *)0)->ct_save, size_t);
IS_TYPE(((aco_save_stack_t *)0)->ct_restore, size_t);
IS_TYPE(((aco_share_stack_t *)0)->ptr, void *);
IS_TYPE(((aco_share_stack_t *)0)->sz, size_t);
IS_TYPE(((aco_share_stack_t *)0)->owner, aco_t *);
IS_TYPE(((aco_share_stack_t *)0)->guard_page_enabled, char);

/* Promise: the calls have libaco's types, here as initialisers of pointers to them. */
static void calls_have_their_types(void)
{
    void (*thread_init)(aco_cofuncp_t) = aco_thread_init;
    aco_share_stack_t *(*share_stack_new)(size_t) = aco_share_stack_new;
    aco_share_stack_t *(*share_stack_new2)(size_t, char) = aco_share_stack_new2;
    void (*share_stack_destroy)(aco_share_stack_t *) = aco_share_stack_destroy;
    aco_t *(*create)(aco_t *, aco_share_stack_t *, size_t, aco_cofuncp_t, void *) = aco_create;
    void (*resume)(aco_t *) = aco_resume;
    void (*yield)(void) = aco_yield;
    aco_t *(*get_co)(void) = aco_get_co;
    void *(*get_arg)(void) = aco_get_arg;
    void (*exit_co)(void) = aco_exit;
    void (*destroy)(aco_t *) = aco_destroy;
    CHECK(thread_init && share_stack_new && share_stack_new2 && share_stack_destroy);
    CHECK(create && resume && yield && get_co && get_arg && exit_co && destroy);
}

/* Promise: ACO_VERSION_* name libaco's level 1.2.4, for the preprocessor too; ACORN_VERSION_* this library's. */
#if ACO_VERSION_MAJOR != 1 || ACO_VERSION_MINOR != 2 || ACO_VERSION_PATCH != 4
#error "the level of libaco's API"
#endif
static void versions(void)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", ACORN_VERSION_MAJOR, ACORN_VERSION_MINOR, ACORN_VERSION_PATCH);
    CHECK(strcmp(text, ACORN_VERSION_STRING) == 0);
}

/* ---- Share stacks ---- */

static const size_t some_sizes[] = {1,       2,       63,      64,      65,     127,     1024,    4032,
                                    4095,    4096,    4097,    4159,    4160,   8191,    8192,    8193,
                                    12287,   65535,   65536,   65537,   100000, 1 << 20, 1048577, (2 << 20) - 1,
                                    2 << 20, 5000000, 8 << 20, 67108863};

/* Promises: final size >= 4096, >= asked; close to what was asked; with a guard page, whole pages. */
static void check_size(size_t asked, char guarded)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), step = guarded ? page : 64;
    aco_share_stack_t *stack = aco_share_stack_new2(asked, guarded);
    CHECK(stack != NULL);
    CHECK(stack->sz >= 4096);
    CHECK(stack->sz >= asked);
    CHECK(stack->sz < (asked < 4096 ? 4096 : asked) + step + page);
    CHECK(!guarded || stack->sz % page == 0);
    CHECK(!guarded || (uintptr_t)stack->ptr % page == 0);
    CHECK_EQ(stack->guard_page_enabled, guarded);
    CHECK(stack->owner == NULL);
    ((volatile char *)stack->ptr)[0] = 1;
    ((volatile char *)stack->ptr)[stack->sz - 1] = 1;
    aco_share_stack_destroy(stack);
}

static void share_stack_sizes(void)
{
    size_t step;
    for (size_t i = 0; i < sizeof some_sizes / sizeof *some_sizes; i++)
        for (char guarded = 0; guarded <= 1; guarded++)
            check_size(some_sizes[i], guarded);
    for (size_t asked = 1; asked < 300000; asked += step) {
        step = 1 + asked * 7 % 613;
        check_size(asked, (char)(asked / 3 % 2));
    }
}

static int is_of_two_mib(const aco_share_stack_t *stack)
{
    return stack->sz >= 2 << 20 && stack->sz <= (2 << 20) + (size_t)sysconf(_SC_PAGESIZE);
}

/* Promise: 0 asks for 2 MiB. aco_share_stack_new(sz) is aco_share_stack_new2(sz, 1). Any true value asks for a guard
 * page. */
static void share_stack_defaults(void)
{
    aco_share_stack_t *guarded = aco_share_stack_new2(0, 1), *unguarded = aco_share_stack_new2(0, 0);
    aco_share_stack_t *plain = aco_share_stack_new(0), *small = aco_share_stack_new(5000),
                      *truth = aco_share_stack_new2(1, 2), *of_page_and_byte = aco_share_stack_new(4097);
    CHECK(is_of_two_mib(guarded) && is_of_two_mib(unguarded) && is_of_two_mib(plain));
    if (sysconf(_SC_PAGESIZE) == 4096)
        CHECK_EQ(of_page_and_byte->sz, 8192); /* as libaco's */
    CHECK_EQ(plain->guard_page_enabled, 1);
    CHECK(small->sz >= 5000);
    CHECK_EQ(small->guard_page_enabled, 1);
    CHECK_EQ(truth->guard_page_enabled, 1);
    aco_share_stack_destroy(of_page_and_byte);
    aco_share_stack_destroy(truth);
    aco_share_stack_destroy(small);
    aco_share_stack_destroy(plain);
    aco_share_stack_destroy(unguarded);
    aco_share_stack_destroy(guarded);
}

static size_t room_seen;

static void look_at_room(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0); /* under ASan a local variable may be elsewhere */
    const aco_share_stack_t *stack = aco_get_co()->share_stack;
    CHECK(here > (uintptr_t)stack->ptr);
    room_seen = (size_t)(here - (uintptr_t)stack->ptr);
    aco_exit();
}

static void *looks_at_room(void *arg)
{
    look_at_room();
    return arg;
}

/* Promises: a coroutine has the bytes that were asked for, from `ptr` up, less what its entry function uses itself; its
 * outermost frame ends below ptr + sz, on both kinds of stacks. */
static void whole_stack_is_usable(void)
{
    for (int i = 0; i < 130; i++) { /* all positions of the stack's top */
        aco_share_stack_t *stack = aco_share_stack_new2(8192, (char)(i % 2));
        aco_t *co = aco_create(main_co, stack, 0, look_at_room, NULL);
        aco_resume(co);
        CHECK(room_seen < co->share_stack->sz && room_seen >= 8192);
        aco_destroy(co);
        aco_share_stack_destroy(stack);
        co = aco_new(looks_at_room, NULL, NULL);
        aco_resume(co);
        CHECK(room_seen < co->share_stack->sz && room_seen + 512 >= co->share_stack->sz);
        aco_destroy(co);
    }
}

/* Promise: aco_share_stack_destroy() gives the memory back, guard page included: a process has 65530 mappings by
 * default. */
static void destroyed_stacks_are_gone(void)
{
    unsigned char resident[3];
    for (int i = 0; i < 70000; i++) {
        aco_share_stack_t *stack = aco_share_stack_new2(4096, 1);
        void *at = stack->ptr;
        aco_share_stack_destroy(stack);
        if (i % 10000 == 0)
            CHECK(mincore(at, 4096, (void *)resident) == -1);
    }
}

/* ---- Coroutines: making ---- */

static void never_runs(void)
{
    CHECK(!"an entry function runs at the first resume only");
    aco_exit();
}

/* Promises: aco_create() with NULLs makes the main coroutine object; its fields. */
static void main_coroutine(void)
{
    CHECK(main_co != NULL);
    CHECK(aco_is_main_co(main_co) == 1);
    CHECK(main_co->main_co == NULL);
    CHECK(main_co->share_stack == NULL);
    CHECK(main_co->fp == NULL);
    CHECK(main_co->arg == NULL);
    CHECK_EQ(main_co->is_end, 0);
    CHECK(main_co->save_stack.ptr == NULL);
    CHECK_EQ(main_co->save_stack.sz, 0);
    CHECK_EQ(main_co->save_stack.ct_save, 0);
}

/* Promise: aco_get_co() in the main coroutine is its object, before any resume too, and NULL where there is none. */
static void get_co_in_main(void)
{
    CHECK(aco_get_co() == NULL);
    CHECK(aco_co() == NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    CHECK(aco_get_co() == main_co);
    CHECK(aco_co() == main_co);
    aco_destroy(main_co);
    CHECK(aco_get_co() == NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
}

/* Promises: the fields of a new coroutine; a save area of what was asked, none yet by default; nothing runs yet. */
static void new_coroutine(void)
{
    static const size_t asked[] = {0,   1,    8,    63,   64,   65,   72,    120,   152,   500,    904,
                                   905, 1000, 2047, 2048, 2049, 4096, 16383, 16384, 16385, 100000, 1 << 20};
    aco_share_stack_t *stack = aco_share_stack_new(0);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int arg;
        aco_t *co = aco_create(main_co, stack, asked[i], never_runs, &arg);
        CHECK(co->main_co == main_co);
        CHECK((co->share_stack == stack) == !UNDER_ASAN);
        CHECK(co->fp == never_runs);
        CHECK(co->arg == &arg);
        CHECK_EQ(co->is_end, 0);
        CHECK(aco_is_main_co(co) == 0);
        CHECK(co->save_stack.ptr != NULL);
        CHECK(co->save_stack.sz >= asked[i]);
        CHECK(co->save_stack.sz < asked[i] * 5 / 4 + 64);
        CHECK(asked[i] > 1024 || co->save_stack.ptr == (void *)(co + 1));
        CHECK_EQ(co->save_stack.valid_sz, 0);
        CHECK_EQ(co->save_stack.max_cpsz, 0);
        CHECK_EQ(co->save_stack.ct_save, 0);
        CHECK_EQ(co->save_stack.ct_restore, 0);
        CHECK(stack->owner == NULL);
        CHECK(aco_get_co() == main_co);
        memset(co->save_stack.ptr, 0x5a, co->save_stack.sz);
        aco_destroy(co);
    }
    aco_share_stack_destroy(stack);
}

/* Promise: aco_mem_new() returns memory that free() takes, for 0 bytes too. */
static void mem_new(void)
{
    for (size_t sz = 0; sz < 100000; sz = sz * 2 + 1) {
        char *p = aco_mem_new(sz);
        CHECK(p != NULL);
        memset(p, 1, sz);
        free(p);
    }
}

/* ---- The switch ---- */

static char order[64];
static size_t order_length;

static void note(char c)
{
    order[order_length++] = c;
    order[order_length] = 0;
}

static void three_steps(void)
{
    const char *names = aco_get_arg();
    note(names[0]);
    aco_yield();
    note(names[1]);
    aco_yield();
    note(names[2]);
    aco_exit();
}

/* Promises: the first resume starts fp, later ones go on after the yield; yield and exit return to the resumer; is_end
 * is 1 after aco_exit() and not before. */
static void resume_and_yield(void)
{
    aco_share_stack_t *one = aco_share_stack_new(0), *other = aco_share_stack_new2(0, 0);
    aco_t *a = aco_create(main_co, one, 0, three_steps, (void *)(uintptr_t)"abc");
    aco_t *b = aco_create(main_co, one, 0, three_steps, (void *)(uintptr_t)"ABC");
    aco_t *c = aco_create(main_co, other, 0, three_steps, (void *)(uintptr_t)"123");
    order_length = 0;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(a->is_end + b->is_end + c->is_end, 0);
        aco_resume(a);
        note('-');
        aco_resume(b);
        aco_resume(c);
        note('.');
    }
    CHECK(strcmp(order, "a-A1.b-B2.c-C3.") == 0);
    CHECK_EQ(a->is_end, 1);
    CHECK_EQ(b->is_end, 1);
    CHECK_EQ(c->is_end, 1);
    aco_destroy(a);
    aco_destroy(b);
    aco_destroy(c);
    aco_share_stack_destroy(one);
    aco_share_stack_destroy(other);
}

static aco_t *seen_co[4];
static void *seen_arg[4];

static void look_at_self(void)
{
    for (int i = 0; i < 4; i++) {
        seen_co[i] = i % 2 ? aco_co() : aco_get_co();
        seen_arg[i] = aco_get_arg();
        CHECK(aco_get_co()->share_stack->owner == aco_get_co());
        CHECK(aco_get_arg() == aco_get_co()->arg);
        CHECK_EQ(aco_is_main_co(aco_get_co()), 0);
        aco_yield();
    }
    aco_exit();
}

/* Promises: aco_get_co() and aco_co() are the running coroutine, aco_get_arg() its `arg`, which the user may change; in
 * the main coroutine, and between resumes, aco_get_co() is the main coroutine object. */
static void getters(void)
{
    int args[4];
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, look_at_self, &args[0]);
    for (int i = 0; i < 4; i++) {
        co->arg = &args[i];
        CHECK(aco_get_co() == main_co);
        aco_resume(co);
        CHECK(seen_co[i] == co);
        CHECK(seen_arg[i] == &args[i]);
    }
    CHECK(aco_get_co() == main_co);
    aco_resume(co);
    CHECK(co->is_end);
    CHECK(aco_get_co() == main_co);
    aco_destroy(co);
    aco_share_stack_destroy(stack);
}

static __attribute__((noinline)) int yield_deep(int depth)
{
    volatile char fill[40];
    int sum;
    memset((void *)(uintptr_t)fill, depth, sizeof fill);
    if (depth == 0) {
        aco_yield();
        return fill[0];
    }
    sum = yield_deep(depth - 1) + 1;
    for (size_t i = 0; i < sizeof fill; i++)
        CHECK_EQ(fill[i], depth);
    return sum;
}

static void yield_from_depths(void)
{
    for (int depth = 0; depth < 60; depth++)
        CHECK_EQ(yield_deep(depth), depth);
    aco_exit();
}

/* Promise: a coroutine yields from any call depth and goes on there. */
static void yield_in_nested_calls(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, yield_from_depths, NULL),
          *other = aco_create(main_co, stack, 0, yield_from_depths, NULL);
    int resumes = 0;
    for (; !co->is_end; resumes++) {
        aco_resume(co);
        if (resumes % 3 == 0 && !other->is_end)
            aco_resume(other);
    }
    CHECK_EQ(resumes, 61);
    aco_destroy(other);
    aco_destroy(co);
    aco_share_stack_destroy(stack);
}

static void by_the_known_coroutine(void)
{
    aco_t *self = aco_get_co();
    int *count = aco_get_arg();
    for (int i = 0; i < 5; i++) {
        ++*count;
        aco_yield1(self);
        CHECK(aco_get_co() == self);
    }
    aco_exit1(self);
}

/* Promise: aco_yield1() and aco_exit1() do what aco_yield() and aco_exit() do. */
static void known_coroutine(void)
{
    int count = 0;
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, by_the_known_coroutine, &count);
    for (int i = 1; i <= 5; i++) {
        aco_resume(co);
        CHECK_EQ(count, i);
        CHECK_EQ(co->is_end, 0);
    }
    aco_resume(co);
    CHECK_EQ(co->is_end, 1);
    aco_destroy(co);
    aco_share_stack_destroy(stack);
}

static int cleaned;

static void clean(int *p)
{
    cleaned += *p;
}

static void exit_with_cleanup(void)
{
    __attribute__((cleanup(clean))) int one = 1;
    CHECK_EQ(one, 1);
    aco_exit();
}

/* Promise: nothing on the stack is unwound by aco_exit(); the stack has no owner then. */
static void exit_unwinds_nothing(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, exit_with_cleanup, NULL);
    aco_resume(co);
    CHECK_EQ(co->is_end, 1);
    CHECK_EQ(cleaned, 0);
    CHECK(stack->owner == NULL);
    aco_destroy(co);
    aco_share_stack_destroy(stack);
}

/* Promise: a stack's owner is the coroutine whose frames are on it, or NULL. */
static void owner(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *a = aco_create(main_co, stack, 0, three_steps, (void *)(uintptr_t)"xxx");
    aco_t *b = aco_create(main_co, stack, 0, three_steps, (void *)(uintptr_t)"yyy");
    order_length = 0;
    CHECK(stack->owner == NULL);
    aco_resume(a);
    CHECK(stack->owner == a);
    aco_resume(b);
    CHECK(stack->owner == b);
    aco_destroy(b);
    CHECK(stack->owner == NULL);
    aco_resume(a);
    CHECK(stack->owner == a);
    aco_resume(a);
    CHECK(a->is_end);
    CHECK(stack->owner == NULL);
    aco_destroy(a);
    aco_share_stack_destroy(stack);
}

/* Promise: aco_destroy() takes a coroutine in any state but running; its stack serves others then, one at the same
 * address included. */
static void destroy_in_every_state(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    for (int round = 0; round < 1000; round++) {
        aco_t *ready, *suspended, *saved, *ended, *again;
        order_length = 0;
        ready = aco_create(main_co, stack, 0, three_steps, (void *)(uintptr_t)"___");
        ended = aco_create(main_co, stack, 0, three_steps, (void *)(uintptr_t)"e_e");
        saved = aco_create(main_co, stack, 0, three_steps, (void *)(uintptr_t)"v__");
        suspended = aco_create(main_co, stack, 0, three_steps, (void *)(uintptr_t)"s__");
        while (!ended->is_end)
            aco_resume(ended);
        aco_resume(saved);
        aco_resume(suspended);
        CHECK(strcmp(order, "e_evs") == 0);
        CHECK(UNDER_ASAN || (saved->save_stack.valid_sz > 0 && stack->owner == suspended));
        aco_destroy(suspended);
        CHECK(stack->owner == NULL);
        again = aco_create(main_co, stack, 0, three_steps, (void *)(uintptr_t)"A__");
        CHECK(stack->owner == NULL);
        aco_resume(again); /* from its beginning, whatever its address */
        CHECK(strcmp(order, "e_evsA") == 0);
        aco_destroy(saved);
        aco_destroy(ended);
        aco_destroy(ready);
        aco_destroy(again);
    }
    aco_share_stack_destroy(stack);
}

static void ask_for_main(void)
{
    aco_t **seen = aco_get_arg();
    *seen = aco_get_co()->main_co;
    aco_exit();
}

/* Promise: `main_co` is the main coroutine object given to aco_create(), also where a thread has several. */
static void two_main_coroutines(void)
{
    aco_t *second = aco_create(NULL, NULL, 0, NULL, NULL), *seen = NULL;
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *a = aco_create(main_co, stack, 0, ask_for_main, &seen),
          *b = aco_create(second, stack, 0, ask_for_main, &seen);
    CHECK(second != main_co);
    aco_resume(a);
    CHECK(seen == main_co);
    aco_resume(b);
    CHECK(seen == second);
    aco_destroy(a);
    aco_destroy(b);
    aco_destroy(second);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
}

/* ---- The floating-point environment ---- */

static int rounding_at_entry, rounding_after_yield;

static void change_rounding(void)
{
    rounding_at_entry = fegetround();
    fesetround(FE_TOWARDZERO);
    aco_yield();
    rounding_after_yield = fegetround();
    fesetround(FE_DOWNWARD);
    aco_exit();
}

/* Promises: without ACO_CONFIG_SHARE_FPU_MXCSR_ENV a coroutine starts with the control words that aco_thread_init() saw
 * and keeps its own; with it, all share one set. */
static void floating_point_environment(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co;
    fesetround(FE_UPWARD);
    aco_thread_init(NULL);
    fesetround(FE_TONEAREST);
    co = aco_create(main_co, stack, 0, change_rounding, NULL);
    aco_resume(co);
#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
    CHECK_EQ(rounding_at_entry, FE_TONEAREST);
    CHECK_EQ(fegetround(), FE_TOWARDZERO);
    fesetround(FE_UPWARD);
    aco_resume(co);
    CHECK_EQ(rounding_after_yield, FE_UPWARD);
    CHECK_EQ(fegetround(), FE_DOWNWARD);
#else
    CHECK_EQ(rounding_at_entry, FE_UPWARD);
    CHECK_EQ(fegetround(), FE_TONEAREST);
    fesetround(FE_UPWARD);
    aco_resume(co);
    CHECK_EQ(rounding_after_yield, FE_TOWARDZERO);
    CHECK_EQ(fegetround(), FE_UPWARD);
#endif
    CHECK_EQ(co->is_end, 1);
    fesetround(FE_TONEAREST);
    aco_thread_init(NULL);
    aco_destroy(co);
    aco_share_stack_destroy(stack);
}

static void *change_rounding_of_new(void *arg)
{
    rounding_at_entry = fegetround();
    fesetround(FE_TOWARDZERO);
    aco_yield();
    rounding_after_yield = fegetround();
    fesetround(FE_DOWNWARD);
    return arg;
}

/* Promise: a coroutine of aco_new() shares its resumer's environment, first made or made again, unless it is made with
 * ACO_OWN_FP. */
static void floating_point_environment_of_new(unsigned flags)
{
    aco_options_t options = {.flags = flags};
    for (int i = 0; i < 3; i++) { /* the later ones come from the cache */
        aco_t *co = aco_new(change_rounding_of_new, NULL, flags ? &options : NULL);
        int own = flags == ACO_OWN_FP;
        fesetround(FE_UPWARD);
        aco_resume(co);
        CHECK_EQ(rounding_at_entry, own ? FE_TONEAREST : FE_UPWARD);
        CHECK_EQ(fegetround(), own ? FE_UPWARD : FE_TOWARDZERO);
        fesetround(FE_UPWARD);
        aco_resume(co);
        CHECK_EQ(rounding_after_yield, own ? FE_TOWARDZERO : FE_UPWARD);
        CHECK_EQ(fegetround(), own ? FE_UPWARD : FE_DOWNWARD);
        fesetround(FE_TONEAREST);
        aco_destroy(co);
    }
}

#if (defined(__x86_64__) || defined(__i386__)) && !defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
#define HAS_X87
enum { STATUS = 0x3f, FLUSH_TO_ZERO = 0x8000, ONE_PRECISION_BIT = 0x100 };

typedef struct words {
    uint32_t mxcsr; /* without the status bits */
    uint16_t x87;
} words_t;

static words_t get_words(void)
{
    words_t words = {0, 0};
#ifdef __SSE__
    __asm__ volatile("stmxcsr %0" : "=m"(words.mxcsr));
#endif
    __asm__ volatile("fnstcw %0" : "=m"(words.x87));
    words.mxcsr &= ~(uint32_t)STATUS;
    return words;
}

static void check_words(words_t wanted)
{
    words_t words = get_words();
    CHECK_EQ(words.mxcsr, wanted.mxcsr);
    CHECK_EQ(words.x87, wanted.x87);
}

typedef struct precise {
    aco_t *next;
    words_t words;
} precise_t;

static void *keeps_words(void *arg)
{
    const precise_t *own = arg;
#ifdef __SSE__
    __asm__ volatile("ldmxcsr %0" : : "m"(own->words.mxcsr));
#endif
    __asm__ volatile("fldcw %0" : : "m"(own->words.x87));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(aco_yield_to(own->next), 0);
        check_words(own->words);
    }
    return NULL;
}

/* Promise: MXCSR and the x87 control word belong to the environment, also where only one of them differs; whether the
 * library or the inline switch swaps it. */
static void each_word_is_swapped(aco_share_stack_t *stack, uint32_t mxcsr_bit, uint16_t x87_bit)
{
    const aco_options_t own = {.flags = ACO_OWN_FP, .stack = stack};
    words_t words = get_words();
    precise_t all[2] = {{NULL, words}, {NULL, {words.mxcsr ^ mxcsr_bit, words.x87 ^ x87_bit}}};
    aco_t *co[2];
    for (int i = 0; i < 2; i++)
        co[i] = aco_new(keeps_words, &all[i], &own);
    for (int i = 0; i < 2; i++)
        all[i].next = co[!i];
    for (int i = 0; i < 2; i++) {
        aco_resume(co[i]);
        check_words(words);
        CHECK_EQ(co[i]->is_end, 1);
    }
    for (int i = 0; i < 2; i++)
        aco_destroy(co[i]);
    if (stack)
        aco_share_stack_destroy(stack);
}

static void *sees_flags(void *unused)
{
    CHECK_EQ(fetestexcept(FE_ALL_EXCEPT), 0);
    return unused;
}

/* Promise: exceptions that a thread raised before aco_thread_init() are not raised in its new environments. */
static void flags_are_not_inherited(void)
{
    const aco_options_t own = {.flags = ACO_OWN_FP};
    aco_t *co;
    feraiseexcept(FE_DIVBYZERO);
    aco_thread_init(NULL);
    feclearexcept(FE_ALL_EXCEPT);
    co = aco_new(sees_flags, NULL, &own);
    fesetround(FE_UPWARD); /* an environment that is the same is not loaded */
    aco_resume(co);
    fesetround(FE_TONEAREST);
    aco_thread_init(NULL);
    aco_destroy(co);
}
#endif

int main(void)
{
    aco_thread_init(NULL);
    calls_have_their_types();
    versions();
    get_co_in_main();
    main_coroutine();
    share_stack_sizes();
    share_stack_defaults();
    whole_stack_is_usable();
    destroyed_stacks_are_gone();
    new_coroutine();
    mem_new();
    resume_and_yield();
    getters();
    yield_in_nested_calls();
    known_coroutine();
    exit_unwinds_nothing();
    if (!UNDER_ASAN)
        owner();
    destroy_in_every_state();
    two_main_coroutines();
    floating_point_environment();
    floating_point_environment_of_new(0);
    floating_point_environment_of_new(ACO_SHARED_FP);
#ifndef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
    floating_point_environment_of_new(ACO_OWN_FP);
#endif
#ifdef HAS_X87
    each_word_is_swapped(NULL, 0, ONE_PRECISION_BIT);
    each_word_is_swapped(aco_share_stack_new(0), 0, ONE_PRECISION_BIT);
#ifdef __SSE__
    each_word_is_swapped(NULL, FLUSH_TO_ZERO, 0);
    each_word_is_swapped(aco_share_stack_new(0), FLUSH_TO_ZERO, 0);
#endif
    flags_are_not_inherited();
#endif
    aco_destroy(main_co);
    return check_result("api");
}
