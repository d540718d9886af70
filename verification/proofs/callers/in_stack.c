/* An in-stack generator. */
#include "aco/in_stack_generator.h"

extern long next(void);
extern void put(long x);

ACO_IN_STACK_GENERATOR(counts, y, arg)
{
    long a = next(), b = next();
    for (long i = 0; i < (long)arg; i++) {
        aco_generate_in_stack(y, (void *)(a + i));
        b ^= i;
    }
    put(a + b);
}

long consumes_in_stack(long n)
{
    aco_in_stack_t generator;
    long a = next(), b = next(), c = next();
    aco_in_stack_open(&generator, counts, (void *)n);
    while (aco_in_stack_next(&generator) == 1)
        a += (long)generator.value, b ^= a, c += b;
    aco_in_stack_close(&generator);
    put(a + b);
    return c;
}

/* Its own memory is below the generator's frames: the call fails from the second time on. */
long moves_the_stack(long n)
{
    aco_in_stack_t generator;
    long a = next();
    aco_in_stack_open(&generator, counts, (void *)n);
    while (aco_in_stack_next(&generator) == 1)
        a += (long)__builtin_alloca((size_t)a);
    return a;
}
