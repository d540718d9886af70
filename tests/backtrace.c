/* Promise: aco_backtrace() tells the frames of a coroutine in every state, the innermost first and no others: a
 * suspended one's without resuming it, on private and share stacks, with its frames there or in the save area, and
 * called by the root context, by coroutines on the same and on other stacks, and by tasks. It changes nothing that the
 * coroutines see. aco_backtrace_print() says the same as text. */
#define _GNU_SOURCE
#include "aco/backtrace.h"
#include "aco/scheduler.h"
#include "check.h"
#include "sanitizers.h"
#ifndef ACO_CONFIG_NO_INLINE
#include "aco/generator.h"
#endif

#include <errno.h>
#include <unistd.h>

#if defined(__ELF__) && !defined(__arm__) && !defined(ACO_CONFIG_UCONTEXT) && !(defined(__riscv) && __riscv_xlen == 32)
enum { WORKS = 1 };
#else
enum { WORKS = 0 };
#endif

#ifdef ACO_CONFIG_NO_INLINE /* a call that yields has a frame of its own, */
enum { CALLS = 1 };
#else
enum { CALLS = 0 };
#endif
enum { MOST = 32, DEPTH = CALLS + 3 }; /* and these coroutines are three functions deep */
static void *frames[MOST];
static int count;

/* Each function of this test begins at its address and is followed by others: a return address in it is above its
 * beginning, and at most this far. */
enum { LARGEST_FUNCTION = 4096 };

typedef void *(*function_t)(void *);

static int is_in(const void *address, function_t function)
{
    uintptr_t at = (uintptr_t)address, from;
    memcpy(&from, &function, sizeof from);
    return at > from && at < from + LARGEST_FUNCTION;
}

/* ---- Functions that suspend themselves at some depth ---- */

static void *outer(void *arg);
static void *middle(void *arg);
static void *inner(void *arg);

/* They are laid out far from each other, so that an address belongs to one of them only. `cold` keeps compilers from
 * moving a part of one elsewhere. */
#define FAR_FROM_OTHERS __attribute__((noinline, cold, aligned(4096)))

static int rounds;

static FAR_FROM_OTHERS void *inner(void *arg)
{
    volatile int kept = 7;
    void *value = aco_yield_value(arg);
    CHECK_EQ(kept, 7);
    rounds++;
    return value;
}

static FAR_FROM_OTHERS void *middle(void *arg)
{
    char live[600];
    void *value;
    memset(live, 3, sizeof live);
    __asm__ volatile("" : "+m"(live));
    value = inner(arg);
    __asm__ volatile("" : "+m"(live));
    CHECK_EQ(live[599], 3);
    return value;
}

static FAR_FROM_OTHERS void *outer(void *arg)
{
    void *value = arg;
    for (int i = 0; i < 3; i++) {
        value = middle(value);
        __asm__ volatile("");
    }
    return value;
}

static FAR_FROM_OTHERS void *end_of_functions(void *arg)
{
    return arg;
}

static void take(const aco_t *co)
{
    memset(frames, 0, sizeof frames);
    count = aco_backtrace(co, frames, MOST);
}

static void check_frames(void *const at[])
{
    CHECK(is_in(at[CALLS], inner));
    CHECK(is_in(at[CALLS + 1], middle));
    CHECK(is_in(at[CALLS + 2], outer));
}

static void check_suspended(const aco_t *co)
{
    take(co);
    CHECK_EQ(count, DEPTH);
    check_frames(frames);
    CHECK(frames[DEPTH] == NULL);
}

/* ---- By the root context ---- */

static void finish(aco_t *co)
{
    char a, b, c;
    rounds = 0;
    CHECK(aco_send(co, &a) == &a);
    check_suspended(co);
    CHECK(aco_send(co, &b) == &b);
    check_suspended(co);
    CHECK(aco_send(co, &c) == &c);
    CHECK(co->is_end);
    CHECK_EQ(rounds, 3);
    take(co);
    CHECK_EQ(count, 0);
    aco_destroy(co);
}

static void of_private_stacks(const aco_options_t *options)
{
    aco_t *co = aco_new(outer, &rounds, options);
    void *few[2] = {NULL, NULL};
    take(co);
    CHECK_EQ(count, 1); /* ready */
    CHECK(is_in((char *)frames[0] + 1, outer));
    CHECK_EQ(aco_backtrace(co, NULL, 0), 0);
    CHECK(aco_send(co, NULL) == &rounds);
    for (int i = 0; i < 3; i++)
        check_suspended(co);
    CHECK_EQ(aco_backtrace(co, few, 1), 1);
    CHECK(few[0] == frames[0] && !few[1]);
    CHECK_EQ(aco_backtrace(co, frames, DEPTH), DEPTH);
    CHECK_EQ(aco_backtrace(co, NULL, 0), 0);
    finish(co);
}

static void of_share_stacks(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    const aco_options_t shared = {.stack = stack};
    aco_t *a = aco_new(outer, &rounds, &shared), *b = aco_new(outer, &count, &shared);
    CHECK(aco_send(a, NULL) == &rounds);
    check_suspended(a); /* its frames are there */
    CHECK(aco_send(b, NULL) == &count);
    check_suspended(a); /* in the save area */
    check_suspended(b);
    check_suspended(a);
    finish(b);
    finish(a);
    aco_share_stack_destroy(stack);
}

/* ---- By coroutines ---- */

static aco_t *walked;

static FAR_FROM_OTHERS void *walks(void *stack)
{
    void *mine[MOST], *other[MOST];
    int n;
    memset(mine, 0, sizeof mine);
    n = aco_backtrace(aco_get_co(), mine, MOST);
    CHECK_EQ(n, 1);
    CHECK(is_in(mine[0], walks));
    n = aco_backtrace(walked, other, MOST); /* an array on the stack of `walked`, perhaps */
    CHECK_EQ(n, DEPTH);
    check_frames(other);
    check_suspended(walked);
    return stack;
}

static void by_a_coroutine(aco_share_stack_t *stack, aco_share_stack_t *walkers)
{
    const aco_options_t of_walked = {.stack = stack}, of_walker = {.stack = walkers};
    aco_t *walker = aco_new(walks, stack, &of_walker);
    walked = aco_new(outer, &rounds, &of_walked);
    CHECK(aco_send(walked, NULL) == &rounds);
    CHECK(aco_send(walker, NULL) == stack);
    CHECK(walker->is_end);
    finish(walked);
    aco_destroy(walker);
}

/* The last two frames; functions of the library may come first. */
static int ends_with(function_t callee, function_t caller)
{
    return count >= 2 && count < MOST && is_in(frames[count - 2], callee) && is_in(frames[count - 1], caller);
}

/* A coroutine that has resumed another one, which walks it. */
static FAR_FROM_OTHERS void *walks_resumer(void *arg)
{
    take(walked);
    return arg;
}

static FAR_FROM_OTHERS void *resumes(void *co)
{
    void *value = aco_send(co, NULL);
    __asm__ volatile("");
    return value;
}

static FAR_FROM_OTHERS void *calls_resumes(void *co)
{
    void *value = resumes(co);
    __asm__ volatile("");
    return value;
}

static void of_a_resumer(void)
{
    aco_t *last = aco_new(walks_resumer, NULL, NULL), *between = aco_new(resumes, last, NULL);
    walked = aco_new(calls_resumes, between, NULL);
    aco_send(walked, NULL);
    CHECK(walked->is_end && between->is_end && last->is_end);
    CHECK(ends_with(resumes, calls_resumes));
    aco_destroy(walked);
    CHECK_EQ(aco_restart(last, walks_resumer, NULL), 0);
    walked = aco_new(calls_resumes, last, NULL); /* the direct resumer */
    aco_send(walked, NULL);
    CHECK(ends_with(resumes, calls_resumes));
    aco_destroy(last);
    aco_destroy(between);
    aco_destroy(walked);
}

/* One whose frames are saved while it resumes. */
static void *walks_evicted(void *arg)
{
    take(walked);
    CHECK_EQ(count, -1);
    CHECK_EQ(errno, EBUSY);
    return arg;
}

static void of_an_evicted_resumer(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    const aco_options_t shared = {.stack = stack};
    aco_t *last = aco_new(walks_evicted, NULL, &shared), *between = aco_new(resumes, last, NULL);
    walked = aco_new(calls_resumes, between, &shared);
    aco_send(walked, NULL);
    CHECK(walked->is_end && between->is_end && last->is_end);
    aco_destroy(last);
    aco_destroy(between);
    aco_destroy(walked);
    aco_share_stack_destroy(stack);
}

/* ---- Tasks ---- */

static FAR_FROM_OTHERS void *waits(void *arg)
{
    aco_park("this test");
    __asm__ volatile("");
    return arg;
}

static FAR_FROM_OTHERS void *task(void *arg)
{
    void *value = waits(arg);
    __asm__ volatile("");
    return value;
}

static FAR_FROM_OTHERS void *walks_tasks(void *unused)
{
    aco_t *other = aco_spawn(task, NULL, NULL);
    take(other);
    CHECK_EQ(count, 1);
    CHECK(is_in((char *)frames[0] + 1, task));
    aco_task_yield();
    take(other);
    CHECK(ends_with(waits, task));
    count = aco_backtrace(aco_get_co(), frames, MOST);
    CHECK_EQ(count, 1);
    CHECK(is_in(frames[0], walks_tasks));
    CHECK_EQ(aco_unpark(other), 0);
    CHECK_EQ(aco_join(other, NULL), 0);
    return unused;
}

/* Of three tasks on a share stack at most one has its frames there. Looking at one changes nothing for the others. */
static FAR_FROM_OTHERS void *walks_tasks_on_share_stack(void *unused)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    const aco_options_t shared = {.stack = stack};
    aco_t *others[3];
    for (int i = 0; i < 3; i++)
        others[i] = aco_spawn(task, &others[i], &shared);
    take(others[2]);
    CHECK_EQ(count, 1);
    CHECK(is_in((char *)frames[0] + 1, task));
    aco_task_yield();
    for (int i = 0; i < 6; i++) {
        take(others[i % 3]);
        CHECK(ends_with(waits, task));
    }
    for (int i = 0; i < 3; i++) {
        void *result;
        CHECK_EQ(aco_unpark(others[i]), 0);
        CHECK_EQ(aco_join(others[i], &result), 0);
        CHECK(result == &others[i]);
    }
    aco_share_stack_destroy(stack);
    return unused;
}

/* The walker is on the stack itself: its frames are put aside meanwhile. */
static FAR_FROM_OTHERS void *walks_neighbour(void *other)
{
    volatile int before = 12345;
    take(other);
    CHECK(ends_with(waits, task));
    CHECK_EQ(before, 12345);
    return NULL;
}

static FAR_FROM_OTHERS void *spawns_neighbours(void *unused)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    const aco_options_t shared = {.stack = stack};
    aco_t *other = aco_spawn(task, NULL, &shared), *walker;
    aco_task_yield();
    walker = aco_spawn(walks_neighbour, other, &shared);
    CHECK_EQ(aco_join(walker, NULL), 0);
    CHECK_EQ(aco_unpark(other), 0);
    CHECK_EQ(aco_join(other, NULL), 0);
    aco_share_stack_destroy(stack);
    return unused;
}

static aco_t *resuming, *inside;

/* In the root context, while `inside` waits and its task with it. */
static int walks_when_idle(void *unused, int64_t timeout)
{
    (void)unused, (void)timeout;
    take(resuming);
    CHECK(ends_with(waits, task));
    take(inside);
    CHECK(ends_with(resumes, calls_resumes));
    CHECK_EQ(aco_unpark(resuming), 0);
    return 1;
}

static void of_tasks(void)
{
    aco_t *walkers[] = {aco_spawn(walks_tasks, NULL, NULL), aco_spawn(walks_tasks_on_share_stack, NULL, NULL),
                        aco_spawn(spawns_neighbours, NULL, NULL)};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(aco_run(), 0);
        CHECK_EQ(aco_join(walkers[i], NULL), 0);
    }
    inside = aco_new(task, NULL, NULL);
    resuming = aco_spawn(calls_resumes, inside, NULL);
    CHECK_EQ(aco_on_idle(walks_when_idle, NULL), 0);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
    CHECK_EQ(aco_join(resuming, NULL), 0);
    CHECK(inside->is_end);
    aco_destroy(inside);
}

/* ---- Generators ---- */

#ifndef ACO_CONFIG_NO_INLINE
ACO_GENERATOR(yields_inside, y, arg)
{
    aco_yield();
    aco_generate(y, arg);
}

static FAR_FROM_OTHERS void *consumes(void *arg)
{
    aco_generator_t g;
    CHECK_EQ(aco_generator_open(&g, yields_inside, &g, NULL), 0);
    CHECK(aco_generator_next(&g));
    aco_generator_close(&g);
    return arg;
}

static FAR_FROM_OTHERS void *calls_consumes(void *depth)
{
    uintptr_t left = (uintptr_t)depth;
    void *value = left ? calls_consumes((void *)(left - 1)) : consumes(&rounds);
    __asm__ volatile("");
    return value;
}

static void in_a_generator(void)
{
    aco_t *co = aco_new(calls_consumes, (void *)(uintptr_t)8, NULL);
    aco_send(co, NULL);
    take(co);
    CHECK(count >= 1 && count < 8); /* its consumer's frames are not there */
    aco_send(co, NULL);
    CHECK(co->is_end);
    aco_destroy(co);
}
#endif

/* ---- Text ---- */

static size_t lines_of(const aco_t *co, char *text, size_t sz)
{
    int ends[2];
    ssize_t length;
    size_t lines = 0;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(aco_backtrace_print(co, ends[1]), 0);
    close(ends[1]);
    length = read(ends[0], text, sz - 1);
    close(ends[0]);
    text[length > 0 ? length : 0] = '\0';
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    return lines;
}

/* The offset in each line is that of the call, or of the entry function: files are mapped at multiples of pages. */
static void check_offsets(const char *text, int before)
{
    for (int i = 0; (text = strchr(text, '#')) != NULL; i++, text++) {
        const char *plus = strstr(text, "+0x");
        if (plus && plus < strchr(text, '\n'))
            CHECK_EQ((strtoull(plus + 1, NULL, 16) + (unsigned)before - (uintptr_t)frames[i]) % 4096, 0);
    }
}

static void as_text(void)
{
    aco_t *co = aco_new(outer, &rounds, NULL);
    char text[4096], address[32];
    CHECK_EQ(lines_of(co, text, sizeof text), 1);
    take(co);
    check_offsets(text, 0);
    CHECK(aco_send(co, NULL) == &rounds);
    check_suspended(co);
    CHECK_EQ(lines_of(co, text, sizeof text), DEPTH);
    CHECK(strncmp(text, "#0 ", 3) == 0);
    check_offsets(text, 1);
    for (int i = 0; i < DEPTH; i++) {
        snprintf(address, sizeof address, " %p in ", frames[i]);
        CHECK(strstr(text, address) != NULL);
    }
    CHECK_EQ(aco_backtrace_print(co, -1), -1);
    CHECK_EQ(errno, EBADF);
    CHECK_EQ(aco_backtrace_print(NULL, 1), -1);
    CHECK_EQ(errno, EINVAL);
    finish(co);
}

/* ---- Errors ---- */

static void fails(const aco_t *co, void **to, int n, int error)
{
    errno = 0;
    CHECK_EQ(aco_backtrace(co, to, n), -1);
    CHECK_EQ(errno, error);
}

static void errors(void)
{
    aco_t *co = aco_new(outer, NULL, NULL), *main_co;
    aco_send(co, NULL);
    fails(NULL, frames, MOST, EINVAL);
    fails(co, frames, -1, EINVAL);
    fails(co, NULL, 1, EINVAL);
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    fails(main_co, frames, MOST, EINVAL);
    aco_destroy(main_co);
    CHECK_EQ(aco_cancel(co), 0);
    aco_destroy(co);
    fails(co, frames, MOST, ESRCH);
}

int main(void)
{
    const aco_options_t named = {.name = "named", .stack_size = 64 << 10};
    aco_share_stack_t *one, *two;
    CHECK(end_of_functions(NULL) == NULL);
    if (!WORKS) {
        aco_t *co = aco_new(outer, NULL, NULL);
        aco_send(co, NULL);
        fails(co, frames, MOST, ENOTSUP);
        CHECK_EQ(aco_cancel(co), 0);
        aco_destroy(co);
        return check_result("backtrace");
    }
    of_private_stacks(NULL);
    of_private_stacks(&named);
    of_share_stacks();
    one = aco_share_stack_new(0);
    two = aco_share_stack_new(0);
    by_a_coroutine(NULL, NULL);
    by_a_coroutine(one, NULL);
    by_a_coroutine(one, two);
    by_a_coroutine(one, one);
    by_a_coroutine(NULL, one);
    aco_share_stack_destroy(one);
    aco_share_stack_destroy(two);
    of_a_resumer();
    if (!UNDER_ASAN) /* it evicts none */
        of_an_evicted_resumer();
    of_tasks();
#ifndef ACO_CONFIG_NO_INLINE
    in_a_generator();
#endif
    as_text();
    errors();
    return check_result("backtrace");
}
