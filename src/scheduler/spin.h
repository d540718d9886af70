/* A short wait for another thread before a long one in the kernel. Waking a thread that sleeps costs the waker a system
 * call and the sleeper some 20 to 100 us; what a thread sees while it spins costs a few cache lines. But a thread that
 * spins keeps a processor from others, in vain if the other thread has nothing to say soon, or does not run.
 *
 * So a thread spins only where that would have paid, and did the last time. A chance is a sleep that another thread
 * ended soon. After a chance the thread spins before it sleeps. If it spins in vain, it lets chances pass before it
 * tries again: 1, 3, 7 and so on, up to 1023. Each time it spins with success halves that number. A thread that was
 * interrupted while it spun has spun in vain. */
#ifndef ACO_SPIN_H
#define ACO_SPIN_H

#include "os/platform.h"
#include "system/point.h"

enum {
    ACO__SPIN_NS = 100000,      /* about what a sleep and a wake cost where processors are virtual */
    ACO__SPIN_SOON = 4,         /* times that is soon */
    ACO__SPIN_PAUSES = 16,      /* between two looks at the clock */
    ACO__SPIN_LOOKS = 4096,     /* then it ends although the clock stands still */
    ACO__SPIN_MOST_LOST = 1023
};

typedef struct aco__spin {
    unsigned chances; /* since it last spun in vain */
    unsigned lost;    /* so many of them pass */
} aco__spin_t;

/* Tells the processor that this is a loop of waiting: another thread of the same core gets more of it. */
static inline void aco__spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
    __asm__ volatile("yield");
#else
    __asm__ volatile("");
#endif
}

static inline void aco__spin_failed(aco__spin_t *spin)
{
    spin->chances = 0;
    spin->lost = spin->lost < ACO__SPIN_MOST_LOST ? 2 * spin->lost + 1 : ACO__SPIN_MOST_LOST;
}

/* If it is likely to pay, waits until has_come(arg), which it returns, but no longer than until that time. `now` is the
 * time of `clock`. */
static inline int aco__spin_until(aco__spin_t *spin, int (*has_come)(const void *arg), const void *arg,
                                  int64_t (*clock)(void), int64_t now, int64_t until)
{
    int64_t end = now + ACO__SPIN_NS;
    int turns = 0;
    if (aco_likely(spin->chances <= spin->lost) || ACO__HAS_POINTS())
        return 0;
    do {
        for (int pauses = 0; pauses < ACO__SPIN_PAUSES; pauses++) {
            if (has_come(arg)) {
                if (clock() > end)
                    aco__spin_failed(spin);
                else
                    spin->lost /= 2;
                return 1;
            }
            aco__spin_pause();
        }
        now = clock();
    } while (now < end && now < until && ++turns < ACO__SPIN_LOOKS);
    if (now >= end || turns == ACO__SPIN_LOOKS)
        aco__spin_failed(spin);
    return 0;
}

/* Another thread has ended a sleep that began at `began` and ends at `now`. */
static inline void aco__spin_woken(aco__spin_t *spin, int64_t began, int64_t now)
{
    if (spin->chances <= spin->lost && now - began < ACO__SPIN_SOON * (int64_t)ACO__SPIN_NS)
        spin->chances++;
}

#endif
