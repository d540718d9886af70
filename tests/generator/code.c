/* Compiled by check.py, which looks at the code: names beginning with tight_, framed_ and seeded_ say for what. Not
 * run. */
#include "aco.h"
#include "aco/in_stack_generator.h"

#define NOINLINE __attribute__((noinline))

int opaque(const void *a, const void *b);

/* A tight loop: no memory is touched but the own frame, on either side. */
ACO_GENERATOR(tight_sequence, y, arg)
{
    for (uintptr_t n = (uintptr_t)arg; n; n--)
        aco_generate(y, (void *)n);
}

uintptr_t tight_sum(uintptr_t n);
NOINLINE uintptr_t tight_sum(uintptr_t n)
{
    uintptr_t sum = 0;
    aco_generator_t g;
    if (aco_generator_open(&g, tight_sequence, (void *)n, NULL) != 0)
        return 0;
    while (aco_generator_next(&g))
        sum += (uintptr_t)g.value;
    aco_generator_close(&g);
    return sum;
}

/* The consumer of an in-stack generator has a frame pointer, and addresses its frame by it alone. */
ACO_IN_STACK_GENERATOR(sequence_in_stack, y, arg)
{
    for (uintptr_t n = (uintptr_t)arg; n; n--)
        aco_generate_in_stack(y, (void *)n);
}

uintptr_t framed_sum(uintptr_t n);
NOINLINE uintptr_t framed_sum(uintptr_t n)
{
    uintptr_t sum = 0;
    aco_in_stack_t g;
    aco_in_stack_open(&g, sequence_in_stack, (void *)n);
    while (aco_in_stack_next(&g) > 0)
        sum += (uintptr_t)g.value;
    aco_in_stack_close(&g);
    return sum;
}

uintptr_t framed_arrays(uintptr_t n, const uintptr_t *p);
NOINLINE uintptr_t framed_arrays(uintptr_t n, const uintptr_t *p)
{
    uintptr_t a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], h = p[6], array[40];
    aco_in_stack_t g;
    opaque(array, p);
    aco_in_stack_open(&g, sequence_in_stack, (void *)n);
    while (aco_in_stack_next(&g) > 0) {
        a += b ^ (uintptr_t)g.value, b += c, c ^= d, d += e, e ^= f, f += h, h ^= array[a % 40];
        array[h % 40] = a;
        opaque(array, &g);
    }
    aco_in_stack_close(&g);
    return a + b + c + d + e + f + h + array[n % 40];
}

#ifdef SEEDED
/* As the header must not make it: no call on the cold path, so that the red zone may be used. */
void *seeded_leaf(aco_in_stack_yielder_t *y, uintptr_t n);
NOINLINE void *seeded_leaf(aco_in_stack_yielder_t *y, uintptr_t n)
{
    volatile uintptr_t kept[4];
    void *value = NULL;
    for (uintptr_t i = 0; i < 4; i++)
        kept[i] = n + i;
    aco__switch_in_stack_yield(&y->aco__peer, &value);
    return (void *)(kept[0] + kept[n % 4]);
}

/* A control block in the loop: the generator's record stands in memory. */
uintptr_t seeded_tight_sum(aco_generator_t *g);
NOINLINE uintptr_t seeded_tight_sum(aco_generator_t *g)
{
    uintptr_t sum = 0;
    while (aco_generator_next(g))
        sum += (uintptr_t)g->value;
    return sum;
}

/* An in-stack resume in a function that did not open: nothing makes it keep a frame pointer. */
uintptr_t seeded_framed_sum(aco_in_stack_t *g, const uintptr_t *p);
NOINLINE uintptr_t seeded_framed_sum(aco_in_stack_t *g, const uintptr_t *p)
{
    uintptr_t sum = 0, array[40];
    opaque(array, p);
    while (aco_in_stack_next(g) > 0)
        sum += (uintptr_t)g->value + array[sum % 40];
    return sum;
}
#endif

/* Wants what is static above. */
const void *code_uses(aco_generator_function_t **own, aco_in_stack_function_t **in_stack);
const void *code_uses(aco_generator_function_t **own, aco_in_stack_function_t **in_stack)
{
    *own = tight_sequence;
    *in_stack = sequence_in_stack;
    return own;
}
