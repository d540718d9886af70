/* Acorn's generators, beside coroutines that yield each element and functions that call a callback for each element. */
#include "elements.h"

#include <aco.h>
#include <aco/in_stack_generator.h>

typedef void *(*coroutine_t)(void *);
typedef void (*callback_t)(void *context, uintptr_t element);
typedef void (*visit_t)(const elements_t *e, callback_t callback, void *context);

/* A generator's function, with one of native.h's placements. */
#define GENERATOR_AT(name, pad)                                                                                        \
    NATIVE_HOT(pad) aco_generator_function_t name##_body_##pad;                                                        \
    ACO_GENERATOR(name##_body_##pad, y, arg)
#define IN_STACK_GENERATOR_AT(name, pad)                                                                               \
    NATIVE_HOT(pad) aco_in_stack_function_t name##_body_##pad;                                                         \
    ACO_IN_STACK_GENERATOR(name##_body_##pad, y, arg)

/* ---- The sum of a sequence ---- */

#define SEQUENCES(pad)                                                                                                 \
    GENERATOR_AT(sequence, pad)                                                                                        \
    {                                                                                                                  \
        for (uintptr_t n = ((const elements_t *)arg)->number; n; n--)                                                  \
            aco_generate(y, (void *)n);                                                                                \
    }                                                                                                                  \
    IN_STACK_GENERATOR_AT(sequence_in_stack, pad)                                                                      \
    {                                                                                                                  \
        for (uintptr_t n = ((const elements_t *)arg)->number; n; n--)                                                  \
            aco_generate_in_stack(y, (void *)n);                                                                       \
    }                                                                                                                  \
    NATIVE_HOT(pad) void *sequence_yield_body_##pad(void *arg)                                                         \
    {                                                                                                                  \
        for (uintptr_t n = ((const elements_t *)arg)->number; n; n--)                                                  \
            aco_yield_value((void *)n);                                                                                \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    NATIVE_HOT(pad) void sequence_call_body_##pad(const elements_t *e, callback_t callback, void *context)             \
    {                                                                                                                  \
        for (uintptr_t n = e->number; n; n--)                                                                          \
            callback(context, n);                                                                                      \
    }
SEQUENCES(0) SEQUENCES(16) SEQUENCES(32) SEQUENCES(48)

/* ---- Hanoi: every level of the recursion yields ---- */

#define HANOI(prefix, yielder_t, yield, pad)                                                                           \
    NATIVE_HOT(pad) void prefix##_from_##pad(yielder_t y, int disc, int from, int to, int spare)                       \
    {                                                                                                                  \
        if (disc == 0)                                                                                                 \
            return;                                                                                                    \
        prefix##_from_##pad(y, disc - 1, from, spare, to);                                                             \
        yield(y, (void *)hanoi_move(disc, from, to));                                                                  \
        prefix##_from_##pad(y, disc - 1, spare, to, from);                                                             \
    }
#define YIELD_VALUE(y, value) ((void)(y), aco_yield_value(value))
#define HANOIS(pad)                                                                                                    \
    HANOI(hanoi, aco_yielder_t *, aco_generate, pad)                                                                   \
    HANOI(hanoi_in_stack, aco_in_stack_yielder_t *, aco_generate_in_stack, pad)                                        \
    HANOI(hanoi_yield, void *, YIELD_VALUE, pad)                                                                       \
    GENERATOR_AT(hanoi, pad)                                                                                           \
    {                                                                                                                  \
        hanoi_from_##pad(y, ((const elements_t *)arg)->discs, 'a', 'b', 'c');                                          \
    }                                                                                                                  \
    IN_STACK_GENERATOR_AT(hanoi_in_stack, pad)                                                                         \
    {                                                                                                                  \
        hanoi_in_stack_from_##pad(y, ((const elements_t *)arg)->discs, 'a', 'b', 'c');                                 \
    }                                                                                                                  \
    NATIVE_HOT(pad) void *hanoi_yield_body_##pad(void *arg)                                                            \
    {                                                                                                                  \
        hanoi_yield_from_##pad(NULL, ((const elements_t *)arg)->discs, 'a', 'b', 'c');                                 \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    NATIVE_HOT(pad) void hanoi_call_from_##pad(callback_t callback, void *context, int disc, int from, int to,         \
                                               int spare)                                                              \
    {                                                                                                                  \
        if (disc == 0)                                                                                                 \
            return;                                                                                                    \
        hanoi_call_from_##pad(callback, context, disc - 1, from, spare, to);                                           \
        callback(context, hanoi_move(disc, from, to));                                                                 \
        hanoi_call_from_##pad(callback, context, disc - 1, spare, to, from);                                           \
    }                                                                                                                  \
    NATIVE_HOT(pad) void hanoi_call_body_##pad(const elements_t *e, callback_t callback, void *context)                \
    {                                                                                                                  \
        hanoi_call_from_##pad(callback, context, e->discs, 'a', 'b', 'c');                                             \
    }
HANOIS(0) HANOIS(16) HANOIS(32) HANOIS(48)

/* ---- The consumers, the same for sequence and Hanoi ---- */

BENCH_INLINE uintptr_t sum_of_generator(const elements_t *e, aco_generator_function_t *body)
{
    uintptr_t sum = 0;
    aco_generator_t g;
    native_must(aco_generator_open(&g, body, (void *)(uintptr_t)e, NULL) == 0, "no generator");
    while (aco_generator_next(&g))
        sum += (uintptr_t)g.value;
    aco_generator_close(&g);
    return sum;
}

BENCH_INLINE uintptr_t sum_of_in_stack(const elements_t *e, aco_in_stack_function_t *body)
{
    uintptr_t sum = 0;
    aco_in_stack_t g;
    aco_in_stack_open(&g, body, (void *)(uintptr_t)e);
    while (aco_in_stack_next(&g) > 0)
        sum += (uintptr_t)g.value;
    native_must(aco_in_stack_close(&g) == 0, "the generator was not closed");
    return sum;
}

BENCH_INLINE uintptr_t sum_of_coroutine(const elements_t *e, coroutine_t body)
{
    uintptr_t sum = 0;
    aco_t *co = aco_new(body, (void *)(uintptr_t)e, NULL);
    native_must(co != NULL, aco_error_message());
    for (void *value = aco_send(co, NULL); !co->is_end; value = aco_send(co, NULL))
        sum += (uintptr_t)value;
    aco_destroy(co);
    return sum;
}

static __attribute__((noinline, aligned(64))) void add(void *context, uintptr_t element)
{
    *(uintptr_t *)context += element;
}

BENCH_INLINE uintptr_t sum_of_calls(const elements_t *e, visit_t body)
{
    uintptr_t sum = 0;
    callback_t callback = add;
    __asm__ volatile("" : "+r"(callback)); /* makes it a call by pointer */
    body(e, callback, &sum);
    return sum;
}

ELEMENTS_RUN(sequence, sum_of_generator)
ELEMENTS_RUN(sequence_in_stack, sum_of_in_stack)
ELEMENTS_RUN(sequence_yield, sum_of_coroutine)
ELEMENTS_RUN(sequence_call, sum_of_calls)
ELEMENTS_RUN(hanoi, sum_of_generator)
ELEMENTS_RUN(hanoi_in_stack, sum_of_in_stack)
ELEMENTS_RUN(hanoi_yield, sum_of_coroutine)
ELEMENTS_RUN(hanoi_call, sum_of_calls)

static const native_case_t cases[] = {
    {"sequence", sequence_make, NATIVE_ALL(sequence)},
    {"sequence_in_stack", sequence_make, NATIVE_ALL(sequence_in_stack)},
    {"sequence_yield", sequence_make, NATIVE_ALL(sequence_yield)},
    {"sequence_call", sequence_make, NATIVE_ALL(sequence_call)},
    {"hanoi", hanoi_make, NATIVE_ALL(hanoi)},
    {"hanoi_in_stack", hanoi_make, NATIVE_ALL(hanoi_in_stack)},
    {"hanoi_yield", hanoi_make, NATIVE_ALL(hanoi_yield)},
    {"hanoi_call", hanoi_make, NATIVE_ALL(hanoi_call)},
    {NULL, NULL, {NULL, NULL, NULL, NULL}},
};

int main(int argc, char **argv)
{
    return native_main(argc, argv, cases);
}
