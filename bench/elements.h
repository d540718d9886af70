/* The elements that generators yield in programs of bench/native.h, and the sums to check: the numbers from N down to
 * 1, or the N = 2^discs - 1 moves of the Tower of Hanoi. A move is one number, made of the disc and two pegs. */
#ifndef BENCH_ELEMENTS_H
#define BENCH_ELEMENTS_H
#include "native.h"

/* A case's `made`; all samples share it. */
typedef struct elements {
    uintptr_t number; /* of elements, or of moves */
    int discs;
    uintptr_t sum;
} elements_t;

BENCH_INLINE uintptr_t hanoi_move(int disc, int from, int to)
{
    return (uintptr_t)disc + ((uintptr_t)from << 8) + ((uintptr_t)to << 16);
}

static __attribute__((noinline, unused)) uintptr_t hanoi_sum(int disc, int from, int to, int spare)
{
    if (disc == 0)
        return 0;
    return hanoi_sum(disc - 1, from, spare, to) + hanoi_move(disc, from, to) + hanoi_sum(disc - 1, spare, to, from);
}

BENCH_FUNCTION void *sequence_make(unsigned placement, size_t number)
{
    static elements_t made;
    made.number = number;
    made.sum = (uintptr_t)number * (number + 1) / 2;
    (void)placement; /* each of ELEMENTS_RUN's functions calls the producer of its own placement */
    return &made;
}

BENCH_FUNCTION void *hanoi_make(unsigned placement, size_t number)
{
    static elements_t made;
    int discs = 0;
    while (((size_t)1 << discs) - 1 < number)
        discs++;
    native_must(((size_t)1 << discs) - 1 == number, "no tower has this number of moves");
    made.number = number;
    made.discs = discs;
    made.sum = hanoi_sum(discs, 'a', 'b', 'c');
    (void)placement;
    return &made;
}

BENCH_INLINE void elements_check(const elements_t *e, uintptr_t sum)
{
    native_must(sum == e->sum, "other elements came");
}

/* Defines NAME##_PAD(), a case's measured function: it sums the elements of NAME##_body_PAD() with sum_of(). The
 * consumer and the producer have the same placement. */
#define ELEMENTS_RUN_AT(name, sum_of, pad)                                                                             \
    NATIVE_HOT(pad) uintptr_t name##_sum_##pad(const elements_t *e)                                                    \
    {                                                                                                                  \
        return sum_of(e, name##_body_##pad);                                                                           \
    }                                                                                                                  \
    static void name##_##pad(void *made, size_t rounds)                                                                \
    {                                                                                                                  \
        for (const elements_t *e = (const elements_t *)made; rounds; rounds--)                                         \
            elements_check(e, name##_sum_##pad(e));                                                                    \
    }
#define ELEMENTS_RUN(name, sum_of)                                                                                     \
    ELEMENTS_RUN_AT(name, sum_of, 0) ELEMENTS_RUN_AT(name, sum_of, 16)                                                 \
    ELEMENTS_RUN_AT(name, sum_of, 32) ELEMENTS_RUN_AT(name, sum_of, 48)

#endif
