/* The checker's own tests: programs of which the outcomes are known. run.py has how many each must have. */
#include "litmus.h"

#include <stdlib.h>
#include <string.h>

static uint32_t x, y, z;
static pthread_mutex_t mutex;
static uint64_t seen[LITMUS_THREADS];
static int data;

static void begin(void)
{
    memset(&mutex, 0, sizeof mutex);
    x = y = z = 0;
    data = 0;
    for (int i = 0; i < LITMUS_THREADS; i++)
        seen[i] = 0;
}

static void end(void)
{
    litmus_outcome(seen[0] | seen[1] << 8 | seen[2] << 16 | seen[3] << 24);
}

#define LOAD(p, order) __atomic_load_n(p, __ATOMIC_##order)
#define STORE(p, v, order) __atomic_store_n(p, v, __ATOMIC_##order)

/* Store buffering. */
#define SB(name, store, load)                        \
    static void sb_##name(int t)                     \
    {                                                \
        STORE(t ? &y : &x, 1, store);                \
        seen[t] = LOAD(t ? &x : &y, load);           \
    }
SB(relaxed, RELAXED, RELAXED)
SB(acquire, RELEASE, ACQUIRE)
SB(one, RELEASE, SEQ_CST)
SB(sc, SEQ_CST, SEQ_CST)

/* Message passing. */
#define MP(name, store, load)                        \
    static void mp_##name(int t)                     \
    {                                                \
        if (t == 0) {                                \
            STORE(&x, 1, RELAXED);                   \
            STORE(&y, 1, store);                     \
        } else {                                     \
            seen[1] = LOAD(&y, load) << 1;           \
            seen[1] |= LOAD(&x, RELAXED);            \
        }                                            \
    }
MP(relaxed, RELAXED, RELAXED)
MP(half, RELEASE, RELAXED)
MP(acquire, RELEASE, ACQUIRE)

/* Two readers see two stores in different orders. */
#define IRIW(name, store, load)                      \
    static void iriw_##name(int t)                   \
    {                                                \
        if (t < 2) {                                 \
            STORE(t ? &y : &x, 1, store);            \
        } else {                                     \
            seen[t] = LOAD(t == 2 ? &x : &y, load) << 1; \
            seen[t] |= LOAD(t == 2 ? &y : &x, load); \
        }                                            \
    }
IRIW(acquire, RELEASE, ACQUIRE)
IRIW(mixed, RELEASE, SEQ_CST)
IRIW(sc, SEQ_CST, SEQ_CST)

/* Load buffering: the checker has no loads of later stores. */
static void lb(int t)
{
    seen[t] = LOAD(t ? &y : &x, RELAXED);
    STORE(t ? &x : &y, 1, RELAXED);
}

/* Coherence: what one thread has read it does not read backwards. */
static void corr(int t)
{
    if (t == 0) {
        STORE(&x, 1, RELAXED);
        STORE(&x, 2, RELAXED);
    } else {
        seen[t] = LOAD(&x, RELAXED) << 2;
        seen[t] |= LOAD(&x, RELAXED);
    }
}

/* A chain over three threads. */
static void wrc(int t)
{
    if (t == 0) {
        STORE(&x, 1, RELAXED);
    } else if (t == 1) {
        seen[1] = LOAD(&x, RELAXED);
        STORE(&y, 1, RELEASE);
    } else {
        seen[2] = LOAD(&y, ACQUIRE) << 1;
        seen[2] |= LOAD(&x, RELAXED);
    }
}

/* A relaxed read-modify-write hands a release on. */
static void sequence(int t)
{
    if (t == 0) {
        STORE(&x, 1, RELAXED);
        STORE(&y, 1, RELEASE);
    } else if (t == 1) {
        __atomic_fetch_add(&y, 2, __ATOMIC_RELAXED);
    } else {
        seen[2] = LOAD(&y, ACQUIRE) << 1;
        seen[2] |= LOAD(&x, RELAXED);
    }
}

static void adds(int t)
{
    seen[t] = __atomic_fetch_add(&x, 1, __ATOMIC_RELAXED);
}

static void swaps(int t)
{
    uint32_t none = 0;
    seen[t] = (uint64_t)__atomic_compare_exchange_n(&x, &none, (uint32_t)t + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    seen[t] |= (uint64_t)none << 1;
}

/* A counter under a lock. */
static void locks(int t)
{
    litmus_lock(&mutex);
    litmus_write(&data, litmus_read(&data) + 1);
    seen[t] = (uint64_t)litmus_read(&data);
    litmus_unlock(&mutex);
}

static void spins(int t)
{
    if (t == 0) {
        litmus_write(&data, 5);
        STORE(&x, 1, RELEASE);
    } else {
        while (!LOAD(&x, ACQUIRE))
            litmus_yield();
        seen[1] = (uint64_t)litmus_read(&data);
    }
}

/* Four threads, two at each of two variables. */
static void mix(int t)
{
    STORE(t & 1 ? &x : &y, (uint32_t)t + 1, SEQ_CST);
    __atomic_fetch_add(&z, 1, __ATOMIC_RELAXED);
    seen[t] = LOAD(t & 2 ? &x : &y, SEQ_CST) | LOAD(&z, RELAXED) << 4;
}

/* A program that the variable LITMUS_SEED chooses. */
static void chance(int t)
{
    static const int orders[] = {__ATOMIC_RELAXED, __ATOMIC_ACQUIRE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST};
    static const int store_orders[] = {__ATOMIC_RELAXED, __ATOMIC_RELEASE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST};
    const char *seed = getenv("LITMUS_SEED");
    unsigned random = (unsigned)(seed ? atoi(seed) : 1) * 2654435761u + (unsigned)t * 40503u;
    for (int i = 0; i < 3; i++) {
        uint32_t *at;
        random = random * 1664525u + 1013904223u;
        at = random >> 28 & 1 ? &x : &y;
        if (random >> 24 & 3)
            at = random >> 24 & 1 ? &x : &z;
        switch (random >> 20 & 3) {
        case 0:
            if (t == 2)
                __atomic_exchange_n(&x, (uint32_t)i + 1, store_orders[random >> 16 & 3]);
            else
                __atomic_store_n(t ? &y : &x, (uint32_t)i + 1, store_orders[random >> 16 & 3]);
            break;
        case 1: seen[t] = seen[t] << 3 | __atomic_fetch_add(&z, 1, orders[random >> 16 & 3]); break;
        default: seen[t] = seen[t] << 3 | __atomic_load_n(at, orders[random >> 16 & 3]); break;
        }
    }
}

static void end_chance(void)
{
    litmus_outcome(seen[0] | seen[1] << 9 | seen[2] << 18 | (uint64_t)x << 27 | (uint64_t)y << 30 | (uint64_t)z << 33);
}

static void race(int t)
{
    if (t == 0) {
        litmus_write(&data, 5);
        STORE(&x, 1, RELAXED);
    } else if (LOAD(&x, ACQUIRE)) {
        litmus_read(&data);
    }
}

static void lost(int t)
{
    if (t == 0) {
        STORE(&x, 1, RELEASE);
        if (LOAD(&y, ACQUIRE))
            STORE(&z, 1, RELEASE);
    } else {
        STORE(&y, 1, RELEASE);
        if (!LOAD(&x, ACQUIRE))
            litmus_wait(&z);
    }
}

const litmus_case_t litmus_cases[] = {
    {"sb.relaxed", 2, begin, sb_relaxed, end},
    {"sb.acquire", 2, begin, sb_acquire, end},
    {"sb.one", 2, begin, sb_one, end},
    {"sb.sc", 2, begin, sb_sc, end},
    {"mp.relaxed", 2, begin, mp_relaxed, end},
    {"mp.half", 2, begin, mp_half, end},
    {"mp.acquire", 2, begin, mp_acquire, end},
    {"iriw.acquire", 4, begin, iriw_acquire, end},
    {"iriw.mixed", 4, begin, iriw_mixed, end},
    {"iriw.sc", 4, begin, iriw_sc, end},
    {"lb", 2, begin, lb, end},
    {"corr", 2, begin, corr, end},
    {"wrc", 3, begin, wrc, end},
    {"sequence", 3, begin, sequence, end},
    {"adds", 4, begin, adds, end},
    {"swaps", 3, begin, swaps, end},
    {"locks", 3, begin, locks, end},
    {"spins", 2, begin, spins, end},
    {"mix", 3, begin, mix, end},
    {"chance", 3, begin, chance, end_chance},
    {"race", 2, begin, race, end},
    {"lost", 2, begin, lost, end},
    {0}};
