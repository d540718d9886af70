/* Functions that switch and use the red zone: each of the ways in which the header could be wrong. check.py must flag
 * the functions that a compiler gave a red zone. Only compiled, never run. */
#define ACO_DEBUG 0
#include "aco.h"

uint64_t seeded_no_call(aco_t *co, uint64_t a, uint64_t b, unsigned n);
void seeded_tail_call(aco_t *co, uint64_t a, uint64_t b, uint64_t *out);
uint64_t seeded_array(aco_t *co, uint64_t a, unsigned i, unsigned j);
void seeded_nothing_below(aco_t *co);

/* No call at all. */
uint64_t seeded_no_call(aco_t *co, uint64_t a, uint64_t b, unsigned n)
{
    uint64_t c = a * 3, d = b * 5, e = a ^ b;
    for (unsigned i = 0; i < n; i++) {
        void *value = NULL;
        aco__switch_yield(aco__tls_ref(), co, &value, 0);
        c += d ^ e, d += e, e += i;
    }
    return a + b + c + d + e;
}

/* A call on the cold path, which becomes a tail call. */
void seeded_tail_call(aco_t *co, uint64_t a, uint64_t b, uint64_t *out)
{
    volatile uint64_t kept[4] = {a, b, a + b, a ^ b};
    void *value = NULL;
    uintptr_t word = aco__switch_yield(aco__tls_ref(), co, &value, 0);
    if (word & 1)
        aco__interrupted(word);
    else
        *out = kept[0] + kept[1] + kept[2] + kept[3];
}

/* An array, reached by an index. */
uint64_t seeded_array(aco_t *co, uint64_t a, unsigned i, unsigned j)
{
    volatile uint64_t array[8];
    void *value = NULL;
    for (unsigned k = 0; k < 8; k++)
        array[k] = a * k;
    aco__switch_resume(aco__tls_ref(), co, &value, 1);
    return array[i & 7] + array[j & 7];
}

/* Right by accident: nothing lives across the switch. Not flagged where the compiler makes no frame of any kind. */
void seeded_nothing_below(aco_t *co)
{
    void *value = NULL;
    aco__switch_yield(aco__tls_ref(), co, &value, 0);
}
