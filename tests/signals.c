/* A storm of timer signals, handled on whatever stack is current, while coroutines switch. The handler fills a large
 * frame: live bytes below the stack pointer would change.
 *
 * signals [seconds]; ends when that time is over. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "sanitizers.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { STACKS = 6, COROUTINES = 24, HANDLER_FRAME = 4096 };

static aco_share_stack_t *stacks[STACKS];
static volatile sig_atomic_t handled, on_a_coroutine, on_main, handler_failures;

static int is_on_a_coroutine(const volatile void *p)
{
    for (int i = 0; i < STACKS; i++) {
        uintptr_t low = (uintptr_t)stacks[i]->ptr;
        if ((uintptr_t)p >= low && (uintptr_t)p < low + stacks[i]->sz + 60 * 64)
            return 1;
    }
    return 0;
}

static volatile sig_atomic_t storming;

/* The next signal comes 20 us after this one was handled: even after a slow handler the program runs before the next
 * one. */
static void next_signal(void)
{
    static const struct itimerval once = {{0, 0}, {0, 20}};
    if (storming)
        setitimer(ITIMER_REAL, &once, NULL);
}

static void handler(int number)
{
    volatile unsigned char frame[HANDLER_FRAME];
    (void)number;
    for (int i = 0; i < HANDLER_FRAME; i++)
        frame[i] = (unsigned char)(i ^ 0xa5);
    for (int i = 0; i < HANDLER_FRAME; i++)
        handler_failures += frame[i] != (unsigned char)(i ^ 0xa5);
    handled++;
    if (is_on_a_coroutine(frame))
        on_a_coroutine++;
    else
        on_main++;
    next_signal();
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct work {
    uint64_t sum;  /* what the coroutine adds up */
    unsigned step; /* its number */
    int stop;
} work_t;

static __attribute__((noinline)) uint64_t around_a_yield(unsigned step, uint64_t value)
{
    volatile uint64_t words[12];
    uint64_t wrong = 0;
    double half = (double)step * 0.5;
    for (unsigned i = 0; i < 12; i++)
        words[i] = value * (i + 1);
    aco_yield();
    for (unsigned i = 0; i < 12; i++)
        wrong += words[i] != value * (i + 1);
    return wrong + (half * 2 != (double)step);
}

static void coroutine(void)
{
    work_t *work = aco_get_arg();
    uint64_t value = work->step + 1, count = 0;
    while (!work->stop) {
        CHECK_EQ(around_a_yield(work->step, value), 0);
        if (UNDER_TSAN) /* which hands signals over at calls that it intercepts, and nowhere else */
            now();
        count++;
        work->sum += value;
        CHECK_EQ(work->sum, count * value);
    }
    aco_exit();
}

/* Promise: signals may be handled on a coroutine's stack, whether or not it is shared, at any instruction of a switch.
 * The first coroutines have a stack of their own, the others share the last two. */
static void storm(double seconds)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL), *co[COROUTINES];
    work_t work[COROUTINES];
    uint64_t rounds = 0, copies = 0;
    double end = now() + seconds;
    static const struct itimerval none;
    for (int i = 0; i < STACKS; i++)
        stacks[i] = aco_share_stack_new2(64 << 10, (char)(i % 2));
    for (unsigned i = 0; i < COROUTINES; i++) {
        work[i] = (work_t){0, i, 0};
        co[i] = aco_create(main_co, stacks[i < STACKS - 2 ? i : STACKS - 2 + i % 2], 0, coroutine, &work[i]);
    }
    storming = 1;
    next_signal();
    while ((rounds % 64 != 0 || now() < end) && check_failures < 20) {
        for (int i = 0; i < COROUTINES; i++)
            aco_resume(co[i]);
        for (int i = 0; i < 20; i++) /* more switches without copying, where the storm hits the switch itself */
            aco_resume(co[i % 4]);
        rounds++;
    }
    storming = 0;
    setitimer(ITIMER_REAL, &none, NULL);
    for (int i = 0; i < COROUTINES; i++) {
        work[i].stop = 1;
        aco_resume(co[i]);
        CHECK(co[i]->is_end);
        copies += co[i]->save_stack.ct_save;
        aco_destroy(co[i]);
    }
    for (int i = 0; i < STACKS; i++)
        aco_share_stack_destroy(stacks[i]);
    aco_destroy(main_co);
    printf("%llu rounds, %llu copies, %d signals: %d on coroutines' stacks, %d on the thread's\n",
           (unsigned long long)rounds, (unsigned long long)copies, (int)handled, (int)on_a_coroutine, (int)on_main);
    CHECK_EQ(handler_failures, 0);
    CHECK(copies > rounds);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 2;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    aco_thread_init(NULL);
    storm(seconds);
    CHECK(handled > 100 && on_a_coroutine > 10 && on_main > 10); /* there was a storm */
    return check_result("signals");
}
