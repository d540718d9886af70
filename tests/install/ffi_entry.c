/* The coroutine's side for ffi.py: compiled code that knows only the exported functions. */
#include "aco.h"

void entry(void)
{
    long *sum = aco_get_arg();
    for (long i = 1; i <= 1000; i++) {
        *sum += i;
        aco_yield();
    }
    aco_exit();
}
