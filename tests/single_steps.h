/* Lets a thread rest at any instruction of some code while another thread does something: a race by plan. The thread
 * runs that code by single steps, with the trap flag set. */
#ifndef SINGLE_STEPS_H
#define SINGLE_STEPS_H

#include "check.h"
#include "sanitizers.h"

/* The thread sanitizer calls handlers later. */
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__i386__)) && !UNDER_TSAN
#define SINGLE_STEPS 1

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

enum { STEPS_TRAP_FLAG = 0x100, MOST_STEPS = 2000, LONGEST_REST_MS = 3 };

static struct {
    int rest_at, number, is_over;
    int rests; /* atomic */
    int goes_on[2]; /* a pipe: a byte ends the rest */
    struct sigaction before;
} steps;

static void on_step(int signal, siginfo_t *info, void *context)
{
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    (void)signal, (void)info;
    if (steps.number++ == steps.rest_at) {
        struct pollfd told = {steps.goes_on[0], POLLIN, 0};
        __atomic_store_n(&steps.rests, 1, __ATOMIC_RELEASE);
        (void)poll(&told, 1, LONGEST_REST_MS); /* not for ever: the other thread may have to wait for this one */
    }
    if (steps.number > steps.rest_at || steps.is_over)
        *flags &= ~(greg_t)STEPS_TRAP_FLAG;
    else
        *flags |= STEPS_TRAP_FLAG;
}

/* The code stands between these. */
static inline void begin_steps(void)
{
    raise(SIGTRAP);
}

static inline void end_steps(void)
{
    steps.is_over = 1;
    __atomic_store_n(&steps.rests, 1, __ATOMIC_RELEASE);
}

/* The other thread's: before it starts the thread, when it has, and when it has done its part. */
static inline void plan_rest(int at)
{
    struct sigaction trap = {0};
    trap.sa_sigaction = on_step;
    trap.sa_flags = SA_SIGINFO;
    if (at == 1) {
        CHECK_EQ(sigaction(SIGTRAP, &trap, &steps.before), 0);
        CHECK_EQ(pipe(steps.goes_on), 0);
    }
    steps.rest_at = at;
    steps.number = steps.is_over = steps.rests = 0;
}

static inline void await_rest(void)
{
    while (!__atomic_load_n(&steps.rests, __ATOMIC_ACQUIRE))
        sched_yield();
}

static inline void end_rest(void)
{
    CHECK_EQ(write(steps.goes_on[1], "g", 1), 1);
}

/* After the thread has ended: whether it rested. The last time it did not, because the code was over before. */
static inline int has_rested(void)
{
    char byte;
    CHECK_EQ(read(steps.goes_on[0], &byte, 1), 1);
    if (steps.number > steps.rest_at && steps.rest_at < MOST_STEPS)
        return 1;
    CHECK(steps.rest_at == 1 || (steps.rest_at > 20 && steps.rest_at < MOST_STEPS)); /* 1: an emulator without steps */
    CHECK_EQ(sigaction(SIGTRAP, &steps.before, NULL), 0);
    close(steps.goes_on[0]);
    close(steps.goes_on[1]);
    return 0;
}
#else
#define SINGLE_STEPS 0
#endif

#endif
