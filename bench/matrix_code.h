/* The measured code for one placement: every function here begins MATRIX_PAD bytes behind the start of a cache line.
 * matrix.h includes this file once for each MATRIX_PAD. Placement changes speed by up to a third, so the samples go
 * through all. */
#define MATRIX_GLUE2(a, b) a##b
#define MATRIX_GLUE(a, b) MATRIX_GLUE2(a, b)
#define NAME(name) MATRIX_GLUE(name##_, MATRIX_PAD)
#define HOT static __attribute__((noinline, aligned(64), patchable_function_entry(MATRIX_PAD, MATRIX_PAD)))

#ifndef MATRIX_OWN_BODIES
HOT void NAME(flat_body)(sw_t *self)
{
    MATRIX_FOREVER
        sw_yield(self);
}

/* Calls itself until `depth` is 1, yields there, and returns. The values a to d live across the call, as a caller's
 * values do: the compiler keeps them in callee-saved registers, which the next level saves and restores. */
HOT uintptr_t NAME(descend)(sw_t *self, uintptr_t depth, uintptr_t x)
{
    uintptr_t a = bench_hide(x + 1), b = bench_hide(x ^ depth), c = bench_hide(a + b), d = bench_hide(x - c);
    if (depth > 1)
        x = MATRIX_DESCEND(NAME(descend), self, depth - 1, c);
    else
        sw_yield(self);
    return x + (a ^ b) + (c ^ d);
}

HOT void NAME(nested_body)(sw_t *self)
{
    uintptr_t x = 0;
    MATRIX_FOREVER
        x = NAME(descend)(self, matrix_depth, x);
    bench_sink(x);
}

HOT void NAME(value_body)(sw_t *self)
{
    uintptr_t sum = 0;
    MATRIX_FOREVER {
        sum += sw_receive(self);
        sw_reply(self, sum);
    }
}
#endif

HOT void NAME(run_one)(sw_t *co, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sw_resume(co);
}

HOT void NAME(run_many)(sw_t **order, size_t length, size_t n)
{
    for (; n; n--)
        for (size_t i = 0; i < length; i++)
            sw_resume(order[i]);
}

HOT void NAME(run_value)(sw_t *co, size_t n)
{
    uintptr_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += sw_send(co, i);
    bench_sink(sum);
}

#undef HOT
#undef NAME
#undef MATRIX_GLUE
#undef MATRIX_GLUE2
#undef MATRIX_PAD
