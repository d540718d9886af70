/* Tasks in a ring that yield to each other; one of them measures. The loops are the same for Acorn's scheduler and for
 * a classic switch. For each placement RING(name, yield) makes name_PAD(), which measures (a `run` of native.h), and
 * name_body_PAD(), which the other tasks run. RING_LIVE(name, yield) does so with values that live across the yield.
 *
 * If only the loop's counter is live, an inline switch need not touch a task's stack: the counter is in the frame
 * pointer's register, which the switch saves in the control block. Four live values go onto the stack there, as in most
 * programs. A classic switch saves the same registers in both cases. */
#ifndef BENCH_RING_H
#define BENCH_RING_H
#include "native.h"

static size_t ring_others; /* number of tasks beside the one that measures */
static size_t ring_wanted; /* yields that every task makes in a run */
static size_t ring_passes; /* runs that the other tasks have begun, in all */
static int ring_stop;

#define RING_NO_VALUES(values)
#define RING_NO_WORK(values)
#define RING_VALUES(values) uintptr_t values[4] = {1, 2, 3, 4};
#define RING_WORK(values) __asm__ volatile("" : "+r"(values[0]), "+r"(values[1]), "+r"(values[2]), "+r"(values[3]));

/* Each round passes through every task once. So all other tasks begin a run of `rounds` yields in the first round, and
 * have made all of them when they begin the next run. */
#define RING_AT(name, yield, declare, work, pad)                                                                       \
    NATIVE_HOT(pad) void *name##_body_##pad(void *arg)                                                                 \
    {                                                                                                                  \
        declare(values)                                                                                                \
        for (; !ring_stop; ring_passes++)                                                                              \
            for (size_t n = ring_wanted; n; n--) {                                                                     \
                work(values)                                                                                           \
                yield();                                                                                               \
            }                                                                                                          \
        return arg;                                                                                                    \
    }                                                                                                                  \
    NATIVE_HOT(pad) void name##_##pad(__attribute__((unused)) void *made, size_t rounds)                               \
    {                                                                                                                  \
        const size_t before = ring_passes;                                                                             \
        declare(values)                                                                                                \
        ring_wanted = rounds;                                                                                          \
        for (; rounds; rounds--) {                                                                                     \
            work(values)                                                                                               \
            yield();                                                                                                   \
        }                                                                                                              \
        native_must(ring_passes - before == ring_others, "not every task had its turn");                               \
    }
#define RING_ALL(name, yield, declare, work)                                                                           \
    RING_AT(name, yield, declare, work, 0) RING_AT(name, yield, declare, work, 16)                                     \
    RING_AT(name, yield, declare, work, 32) RING_AT(name, yield, declare, work, 48)
#define RING(name, yield) RING_ALL(name, yield, RING_NO_VALUES, RING_NO_WORK)
#define RING_LIVE(name, yield) RING_ALL(name, yield, RING_VALUES, RING_WORK)

#endif
