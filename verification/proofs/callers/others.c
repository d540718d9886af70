/* Callers with values alive that are no integers, and with frames of other shapes. */
#include "aco.h"

extern double next_double(void);
extern float next_float(void);
extern long double next_long_double(void);
extern void use(void *p, ...); /* writes no more than 32 bytes there */
double sink_double[8];
float sink_float[8];
long double sink_long_double;

double doubles(aco_t *co)
{
    double a = next_double(), b = next_double(), c = next_double(), d = next_double();
    float e = next_float(), f = next_float();
    aco_resume(co);
    sink_double[0] = a, sink_double[1] = b, sink_double[2] = c, sink_double[3] = d;
    sink_float[0] = e, sink_float[1] = f;
    return a + b * c - d;
}

void doubles_in_a_loop(long n)
{
    double a = next_double(), b = next_double();
    for (long i = 0; i < n; i++) {
        aco_yield();
        a = a * b + (double)i;
        sink_double[3] = a;
    }
    sink_double[0] = a, sink_double[1] = b;
}

void long_doubles(void)
{
    long double a = next_long_double();
    aco_yield();
    sink_long_double = a;
}

typedef float vector __attribute__((vector_size(16)));
vector sink_vector, source_vector;

void vectors(aco_t *co)
{
    vector a = source_vector * source_vector;
    aco_send(co, NULL);
    sink_vector = a;
}

/* An over-aligned frame of variable size, with arguments on the stack. */
long over_aligned(aco_t *co, long n, long a, long b, long c, long d, long e, long f, long g)
{
    _Alignas(64) char line[32];
    char variable[n];
    use(line, variable, a, b, c, d, e, f, g);
    aco_resume(co);
    use(line, variable, a, b, c, d, e, f, g);
    aco_resume(co);
    return a + b + c + d + e + f + g;
}

long aligned(void)
{
    _Alignas(32) long line[4];
    use(line);
    aco_yield();
    return line[0];
}
