/* Promises of ACO_SWITCHING_RETURNS (aco/returns.h): functions that return by pop and jump give what others give,
 * across switches too, and unwinders find their callers from the instruction after the pop. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"
#include "sanitizers.h"

#include <aco.h>
#include <aco/returns.h>
#include <aco/scheduler.h>

#include <signal.h>
#include <stdint.h>
#include <string.h>
#if defined(__linux__) && defined(__x86_64__) && !SANITIZED && ACO__HAS_ATTRIBUTE(function_return)
#define UNWINDS 1 /* a sanitizer keeps signals back, or stands in the way */
#include <unwind.h>
#else
#define UNWINDS 0
#endif

#define LAYER static ACO_SWITCHING_RETURNS __attribute__((noinline))

/* ---- Results ---- */

typedef struct pair {
    int64_t first, second;
} pair_t;
typedef struct many {
    int64_t value[9];
} many_t;

LAYER int64_t word(int64_t x)
{
    aco_task_yield();
    return x + 1;
}

LAYER double number(double x)
{
    aco_task_yield();
    return x / 2;
}

LAYER long double long_number(long double x)
{
    aco_task_yield();
    return x / 2;
}

LAYER pair_t two(int64_t x)
{
    aco_task_yield();
    return (pair_t){x, ~x};
}

LAYER many_t nine(int64_t x)
{
    many_t many;
    aco_task_yield();
    for (int i = 0; i < 9; i++)
        many.value[i] = x * i;
    return many;
}

LAYER int64_t deep(int64_t depth)
{
    if (depth == 0) {
        aco_task_yield();
        return 1;
    }
    return deep(depth - 1) + depth;
}

static void *use(void *arg)
{
    int64_t x = (int64_t)(intptr_t)arg;
    for (int i = 0; i < 100; i++, x += 7) {
        pair_t pair = two(x);
        many_t many = nine(x);
        CHECK_EQ(word(x), x + 1);
        CHECK(number((double)x) == (double)x / 2);
        CHECK(long_number((long double)x) == (long double)x / 2);
        CHECK_EQ(pair.first, x);
        CHECK_EQ(pair.second, ~x);
        CHECK_EQ(many.value[8], 8 * x);
        CHECK_EQ(deep(x % 30), 1 + x % 30 * (x % 30 + 1) / 2);
    }
    return NULL;
}

static void results(void)
{
    aco_t *tasks[10];
    for (int i = 0; i < 10; i++)
        CHECK((tasks[i] = aco_spawn(use, (void *)(intptr_t)(i * 1000), NULL)) != NULL);
    CHECK_EQ(aco_run(), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
}

/* ---- Unwinding: a trap after each instruction of some calls ---- */

#if UNWINDS
enum { TRAP_FLAG = 0x100, FRAMES = 64 };
static volatile int steps, wrong;
static volatile int is_on;

static __attribute__((noinline)) void caller(void);

typedef struct walk {
    int frames, found;
} walk_t;

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *arg)
{
    walk_t *walk = arg;
    void *function = _Unwind_FindEnclosingFunction((void *)(_Unwind_GetIP(context) - 1));
    walk->found |= function == (void *)(uintptr_t)caller;
    return ++walk->frames < FRAMES ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void on_step(int signal, siginfo_t *info, void *context)
{
    walk_t walk = {0, 0};
    (void)signal, (void)info, (void)context;
    if (!is_on)
        return;
    steps++;
    _Unwind_Backtrace(frame, &walk);
    if (!walk.found)
        wrong++;
}

LAYER int inner(int x)
{
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

LAYER int outer(int x)
{
    return inner(x) * 3;
}

static __attribute__((noinline)) void caller(void)
{
    volatile int result;
    is_on = 1;
    __asm__ volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" : : "i"(TRAP_FLAG) : "memory", "cc");
    result = outer(4);
    is_on = 0;
    __asm__ volatile("pushfq\n\tandq %0, (%%rsp)\n\tpopfq" : : "i"(~TRAP_FLAG) : "memory", "cc");
    CHECK_EQ(result, 15);
}

static void unwinding(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_step;
    action.sa_flags = SA_SIGINFO;
    CHECK_EQ(sigaction(SIGTRAP, &action, NULL), 0);
    caller();
    CHECK(steps > 10);
    CHECK_EQ(wrong, 0);
}
#endif

int main(void)
{
    aco_t *main_co;
#if UNWINDS
    unwinding();
#endif
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    results();
    aco_destroy(main_co);
    return check_result("returns");
}
