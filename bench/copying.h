/* Coroutines that hold a known number of live bytes across every yield, for the benchmarks of copying. A program defines
 *   copying_tag()      the running coroutine's own number
 *   copying_yield()    suspends it
 * always-inline, and then includes this file; COPYING_HOLDER(96) is then the entry function hold_96.
 *
 * Nothing rewrites the bytes after the first entry, so a byte that one copy loses is missed by the full check, however late.
 * Each resume checks the first and the last word; while copying_check_all is set, every word. */
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

/* Every byte of the array is used here and may have changed. An operand in memory, not a pointer: that would take room in the
 * frame itself. Nor may the compiler keep the array's address in the frame: where one is needed, it is made anew. */
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

/* Ends the program unless every one of `n` coroutines was checked and none missed a byte. */
BENCH_FUNCTION void copying_must_be_right(size_t n)
{
    if (copying_checked == n && copying_wrong == 0)
        return;
    fprintf(stderr, "bench: %zu of %zu coroutines checked, %zu words are wrong\n", copying_checked, n, copying_wrong);
    exit(1);
}

#endif
