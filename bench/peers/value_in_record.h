/* Passes values through sw_t's member `value`, for contenders of the switch matrix that carry none. Include
 * this after sw_t, sw_resume() and sw_yield(). */
#ifndef BENCH_VALUE_IN_RECORD_H
#define BENCH_VALUE_IN_RECORD_H

BENCH_INLINE uintptr_t sw_send(sw_t *co, uintptr_t value)
{
    co->value = value;
    sw_resume(co);
    return co->value;
}

BENCH_INLINE uintptr_t sw_receive(sw_t *self)
{
    return self->value;
}

BENCH_INLINE void sw_reply(sw_t *self, uintptr_t value)
{
    self->value = value;
    sw_yield(self);
}

#endif
