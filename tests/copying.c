/* Copying stacks: when bytes are copied, the statistics, save areas that grow; aco_reset(). */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"

#include <stdint.h>
#include <string.h>

static aco_t *main_co;

typedef struct frame_plan {
    size_t bytes;  /* that the frame holds */
    int yields;
    int went_well; /* how often the bytes were found unchanged */
} frame_plan_t;

static __attribute__((noinline)) void hold(frame_plan_t *plan)
{
    volatile unsigned char *bytes = __builtin_alloca(plan->bytes);
    for (size_t i = 0; i < plan->bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + plan->bytes);
    for (int yields = 0; yields < plan->yields; yields++) {
        size_t good = 0;
        aco_yield();
        for (size_t i = 0; i < plan->bytes; i++)
            good += bytes[i] == (unsigned char)(i * 7 + plan->bytes);
        plan->went_well += good == plan->bytes;
    }
}

static void holder(void)
{
    frame_plan_t *plan = aco_get_arg();
    hold(plan);
    aco_exit();
}

/* Promise: a coroutine that comes back to a stack nobody used meanwhile is not copied: neither on a stack of its own,
 * nor on a shared one whose other coroutines have not been resumed. */
static void no_copying_without_need(void)
{
    frame_plan_t plan = {500, 100, 0};
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, holder, &plan), *idle = aco_create(main_co, stack, 0, holder, &plan);
    while (!co->is_end) {
        aco_resume(co);
        CHECK(co->is_end || stack->owner == co);
    }
    CHECK_EQ(plan.went_well, 100);
    CHECK_EQ(co->save_stack.ct_save, 0);
    CHECK_EQ(co->save_stack.ct_restore, 0);
    CHECK_EQ(co->save_stack.max_cpsz, 0);
    CHECK_EQ(co->save_stack.valid_sz, 0);
    aco_destroy(co);
    aco_destroy(idle);
    aco_share_stack_destroy(stack);
}

/* Bytes that a coroutine may have on its stack besides its own. */
#ifdef ACO_CONFIG_UCONTEXT
#include <ucontext.h>
enum { AROUND = 800 + sizeof(ucontext_t) + 1024 };
#else
enum { AROUND = 800 };
#endif

/* Promises: ct_save and ct_restore count the copies out and in, max_cpsz is the most bytes of one copy, valid_sz what
 * the save area holds now, sz never less. */
static void statistics(void)
{
    frame_plan_t small = {100, 10, 0}, large = {3000, 10, 0};
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *a = aco_create(main_co, stack, 0, holder, &small), *b = aco_create(main_co, stack, 0, holder, &large);
    for (size_t round = 0; round < 10; round++) {
        aco_resume(a);
        CHECK_EQ(a->save_stack.ct_save, round);
        CHECK_EQ(a->save_stack.ct_restore, round);
        CHECK_EQ(a->save_stack.valid_sz, 0);
        CHECK_EQ(b->save_stack.ct_save, round);
        CHECK(round == 0 || b->save_stack.valid_sz == b->save_stack.max_cpsz);
        aco_resume(b);
        CHECK_EQ(a->save_stack.ct_save, round + 1);
        CHECK_EQ(a->save_stack.valid_sz, a->save_stack.max_cpsz);
        CHECK_EQ(b->save_stack.ct_restore, round);
        CHECK_EQ(b->save_stack.valid_sz, 0);
    }
    CHECK(a->save_stack.max_cpsz >= 100 && a->save_stack.max_cpsz < 100 + AROUND);
    CHECK(b->save_stack.max_cpsz >= 3000 && b->save_stack.max_cpsz < 3000 + AROUND);
    CHECK(a->save_stack.sz >= a->save_stack.max_cpsz);
    CHECK(b->save_stack.sz >= b->save_stack.max_cpsz);
    aco_resume(b);
    CHECK(b->is_end && stack->owner == NULL);
    CHECK_EQ(b->save_stack.ct_save, 9);
    aco_resume(a); /* b has ended: nothing to save, a comes back */
    CHECK(a->is_end);
    CHECK_EQ(a->save_stack.ct_restore, 10);
    CHECK_EQ(b->save_stack.ct_save, 9);
    CHECK_EQ(small.went_well, 10);
    CHECK_EQ(large.went_well, 10);
    aco_destroy(a);
    aco_destroy(b);
    aco_share_stack_destroy(stack);
}

/* Promise: max_cpsz is the size to ask of aco_create(): the area never moves then. One that is too small grows. */
static void save_area_fits_or_grows(void)
{
    static const size_t sizes[] = {1, 8, 40, 100, 136, 500, 1000, 3000, 10000, 16000, 17000, 40000, 300000};
    aco_share_stack_t *stack = aco_share_stack_new(0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        frame_plan_t plan = {sizes[i], 4, 0}, plan2 = {sizes[i], 4, 0}, other_plan = {200, 100, 0};
        aco_t *other = aco_create(main_co, stack, 0, holder, &other_plan);
        aco_t *co = aco_create(main_co, stack, 0, holder, &plan), *fits;
        void *area;
        size_t room;
        while (!co->is_end) {
            aco_resume(co);
            aco_resume(other);
        }
        CHECK_EQ(plan.went_well, 4);
        CHECK(co->save_stack.max_cpsz >= sizes[i]);
        CHECK(co->save_stack.sz >= co->save_stack.max_cpsz);
        fits = aco_create(main_co, stack, co->save_stack.max_cpsz, holder, &plan2);
        area = fits->save_stack.ptr;
        room = fits->save_stack.sz;
        while (!fits->is_end) {
            aco_resume(fits);
            aco_resume(other);
        }
        CHECK_EQ(plan2.went_well, 4);
        CHECK(fits->save_stack.ptr == area);
        CHECK(fits->save_stack.sz == room);
        CHECK(fits->save_stack.max_cpsz == co->save_stack.max_cpsz);
        aco_destroy(fits);
        aco_destroy(co);
        aco_destroy(other);
        CHECK(other_plan.went_well >= 8);
    }
    aco_share_stack_destroy(stack);
}

/* Promise: frames that grow from yield to yield are kept whole, whatever the area's growth. */
static __attribute__((noinline)) unsigned deepen(unsigned depth, unsigned most)
{
    volatile unsigned words[25];
    unsigned wrong = 0;
    for (unsigned i = 0; i < 25; i++)
        words[i] = depth * 100 + i;
    aco_yield();
    if (depth < most)
        wrong = deepen(depth + 1, most);
    aco_yield();
    for (unsigned i = 0; i < 25; i++)
        wrong += words[i] != depth * 100 + i;
    return wrong;
}

static void deepener(void)
{
    unsigned *wrong = aco_get_arg();
    *wrong = deepen(1, *wrong);
    aco_exit();
}

static void growing_frames(void)
{
    enum { MANY = 20 };
    aco_share_stack_t *stack = aco_share_stack_new2(0, 0);
    aco_t *all[MANY];
    unsigned wrong[MANY], ended = 0;
    for (unsigned i = 0; i < MANY; i++) {
        wrong[i] = 10 + 13 * i; /* up to more than the slab's largest class */
        all[i] = aco_create(main_co, stack, 0, deepener, &wrong[i]);
    }
    while (ended < MANY) {
        ended = 0;
        for (unsigned i = 0; i < MANY; i++) {
            if (!all[i]->is_end)
                aco_resume(all[i]);
            ended += (unsigned)all[i]->is_end;
        }
    }
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_EQ(wrong[i], 0);
        aco_destroy(all[i]);
    }
    aco_share_stack_destroy(stack);
}

/* The word right below the first frame's return address holds nothing that an entry function still needs after it has
 * called: padding, or a register saved for a caller that it does not return to. */
static __attribute__((noinline)) void mark_top_word(int *wrong)
{
    volatile uintptr_t *word = (volatile uintptr_t *)aco_get_co()->share_stack->aco__top - 1;
    for (uintptr_t i = 0; i < 50; i++) {
        *word = (uintptr_t)wrong ^ i;
        aco_yield();
        *wrong += *word != ((uintptr_t)wrong ^ i);
    }
}

static void top_word_marker(void)
{
    mark_top_word(aco_get_arg());
    aco_exit();
}

/* Promise: saved bytes reach up to the first frame's last word. */
static void whole_stack_is_copied(void)
{
    int wrong[2] = {0, 0};
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *a = aco_create(main_co, stack, 0, top_word_marker, &wrong[0]),
          *b = aco_create(main_co, stack, 0, top_word_marker, &wrong[1]);
    while (!b->is_end) {
        aco_resume(a);
        aco_resume(b);
    }
    CHECK_EQ(wrong[0], 0);
    CHECK_EQ(wrong[1], 0);
    aco_destroy(a);
    aco_destroy(b);
    aco_share_stack_destroy(stack);
}

/* ---- aco_reset() ---- */

static void count_one(void)
{
    ++*(int *)aco_get_arg();
    aco_exit();
}

static void count_ten(void)
{
    *(int *)aco_get_arg() += 10;
    aco_yield();
    *(int *)aco_get_arg() += 10;
    aco_exit();
}

/* Promises: aco_reset() makes an ended coroutine as new, with another entry function and argument; it keeps its stack,
 * its main coroutine, its save area and its statistics. */
static void reset_of_ended(void)
{
    int ones = 0, tens = 0;
    frame_plan_t plan = {700, 3, 0}, other_plan = {100, 100, 0};
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, holder, &plan),
          *other = aco_create(main_co, stack, 0, holder, &other_plan);
    aco_save_stack_t before;
    while (!co->is_end) {
        aco_resume(co);
        aco_resume(other);
    }
    before = co->save_stack;
    CHECK(before.ct_save == 3 && before.max_cpsz >= 700);
    for (int i = 1; i <= 100; i++) {
        aco_reset(co, count_one, &ones);
        CHECK_EQ(co->is_end, 0);
        CHECK(co->fp == count_one);
        CHECK(co->arg == &ones);
        CHECK(co->main_co == main_co);
        CHECK(co->share_stack == stack);
        CHECK(co->save_stack.ptr == before.ptr);
        CHECK_EQ(co->save_stack.sz, before.sz);
        CHECK_EQ(co->save_stack.valid_sz, 0);
        CHECK_EQ(co->save_stack.max_cpsz, before.max_cpsz);
        CHECK_EQ(co->save_stack.ct_save, before.ct_save);
        CHECK_EQ(co->save_stack.ct_restore, before.ct_restore);
        aco_resume(co);
        CHECK_EQ(ones, i);
        CHECK_EQ(co->is_end, 1);
    }
    aco_reset(co, count_ten, &tens);
    aco_resume(co);
    CHECK_EQ(tens, 10);
    aco_resume(other);
    aco_resume(co);
    CHECK_EQ(tens, 20);
    CHECK_EQ(co->is_end, 1);
    CHECK_EQ(co->save_stack.ct_save, before.ct_save + 1);
    aco_destroy(co);
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

/* Promise: a coroutine that was never resumed can be reset too. */
static void reset_of_never_started(void)
{
    int ones = 0, tens = 0;
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, count_ten, &tens);
    aco_reset(co, count_one, &ones);
    CHECK(stack->owner == NULL);
    aco_reset(co, count_one, &ones);
    aco_resume(co);
    CHECK_EQ(ones, 1);
    CHECK_EQ(tens, 0);
    CHECK_EQ(co->is_end, 1);
    aco_destroy(co);
    aco_share_stack_destroy(stack);
}

int main(void)
{
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    no_copying_without_need();
    statistics();
    save_area_fits_or_grows();
    growing_frames();
    whole_stack_is_copied();
    reset_of_ended();
    reset_of_never_started();
    aco_destroy(main_co);
    return check_result("copying");
}
