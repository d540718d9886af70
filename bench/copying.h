/* Coroutines that hold a known number of live bytes across every yield, for the benchmarks of copying. A program
 * defines two always-inline functions and then includes this file:
 *   copying_tag()      the running coroutine's own number
 *   copying_yield()    suspends the running coroutine
 * COPYING_HOLDER(96) then defines the entry function hold_96().
 *
 * The coroutine writes the bytes once, when it is entered, so a later full check finds every byte that any copy lost.
 * Each resume checks the first and the last word; while copying_check_all is set, it checks every word. */
#ifndef COPYING_H
#define COPYING_H
#include "bench.h"

static int copying_check_all;
static size_t copying_checked, copying_wrong;

static __attribute__((noinline, cold)) void copying_check_words(const uint64_t *live, size_t words, uint64_t tag)
{
    for (size_t i = 0; i < words; i++)
        copying_wrong += live[i] != tag + i;
    copying_checked++;
}

/* Every byte of the array is used here and may have changed. The operand is the memory and not a pointer, because a
 * pointer would take room in the frame. For the same reason COPYING_ADDRESS computes the address where it is needed:
 * the compiler must not keep it in the frame. */
#define COPYING_USE(array) __asm__ volatile("" : "+m"(array))
#define COPYING_ADDRESS(p, array) __asm__ volatile("lea %1,%0" : "=r"(p) : "m"(array))

#define COPYING_HOLDER(bytes)                                                                                          \
    static void hold_##bytes(void)                                                                                     \
    {                                                                                                                  \
        enum { WORDS = (bytes) / 8 };                                                                                  \
        uint64_t live[WORDS], first = copying_tag();                                                                   \
        for (size_t i = 0; i < WORDS; i++)                                                                             \
            live[i] = first + i;                                                                                       \
        COPYING_USE(live);                                                                                             \
        for (;;) {                                                                                                     \
            copying_yield();                                                                                           \
            COPYING_USE(live);                                                                                         \
            uint64_t tag = copying_tag();                                                                              \
            if (live[0] != tag || live[WORDS - 1] != tag + WORDS - 1)                                                  \
                copying_wrong++;                                                                                       \
            if (copying_check_all) {                                                                                   \
                const uint64_t *words;                                                                                 \
                COPYING_ADDRESS(words, live);                                                                          \
                copying_check_words(words, WORDS, tag);                                                                \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Ends the program unless all `n` coroutines were checked and every byte was right. */
BENCH_FUNCTION void copying_must_be_right(size_t n)
{
    if (copying_checked == n && copying_wrong == 0)
        return;
    fprintf(stderr, "bench: %zu of %zu coroutines checked, %zu words are wrong\n", copying_checked, n, copying_wrong);
    exit(1);
}

#endif
