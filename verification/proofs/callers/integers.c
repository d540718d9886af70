/* Callers of every switch, with integers alive across it: more than there are registers. */
#include "aco.h"
#include "aco/generator.h"
#include "aco/scheduler.h"

extern long next(void);
extern void put(long x);
long sink[16];

#define TAKE long a = next(), b = next(), c = next(), d = next(), e = next(), f = next(), g = next(), h = next()
#define GIVE                                                                                                           \
    do {                                                                                                               \
        sink[0] = a, sink[1] = b, sink[2] = c, sink[3] = d, sink[4] = e, sink[5] = f, sink[6] = g, sink[7] = h;        \
        put(a + b + c + d + e + f + g + h);                                                                            \
    } while (0)

void resume_once(aco_t *co)
{
    TAKE;
    aco_resume(co);
    GIVE;
}

long resume_and_return(aco_t *co, long x)
{
    aco_resume(co);
    return x;
}

long send_in_a_loop(aco_t *co, long n)
{
    TAKE;
    for (long i = 0; i < n; i++) {
        a += (long)aco_send(co, (void *)i);
        b ^= a << c, d += e * i, f -= g + h;
        sink[8] = i;
    }
    GIVE;
    return a;
}

void yield_in_a_loop(void)
{
    TAKE;
    for (long i = 0; i < a; i++) {
        aco_yield();
        b += i, c ^= b, d -= c, e += d * f, g ^= h;
    }
    GIVE;
}

void *yield_values(void *arg)
{
    long *x = arg;
    TAKE;
    while (*x) {
        void *came = aco_yield_value((void *)a);
        b += (long)came, c += b, d ^= c;
    }
    GIVE;
    return x;
}

int transfer(aco_t *to)
{
    TAKE;
    int refused = aco_yield_to(to);
    GIVE;
    return refused;
}

void ends(void)
{
    TAKE;
    aco_yield();
    GIVE;
    aco_exit();
}

int task(void)
{
    TAKE;
    int refused = aco_task_yield();
    GIVE;
    return refused;
}

int waits(aco_t *other)
{
    void *result = NULL;
    TAKE;
    if (aco_join(other, &result) != 0)
        return -1;
    a += (long)result;
    GIVE;
    return 0;
}

ACO_GENERATOR(numbers, y, arg)
{
    TAKE;
    for (long i = 0; i < (long)arg; i++) {
        aco_generate(y, (void *)(a + i));
        b += i, c ^= b, d -= c, e += d;
    }
    GIVE;
}

long consumes(long n)
{
    aco_generator_t generator;
    TAKE;
    if (aco_generator_open(&generator, numbers, (void *)n, NULL) != 0)
        return -1;
    while (aco_generator_next(&generator))
        a += (long)generator.value, b ^= a, c += b, d -= c;
    GIVE;
    return a;
}
