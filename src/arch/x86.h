/* What x86-64 and i386 have in common. Included by core.c. */
#include <stdint.h>

#define ACO__HAS_FP_LOAD_ALWAYS

/* 1 where ldmxcsr is cheaper than waiting for stmxcsr's result, as measured on AMD's Zen 5 (bench/lab/switch-check.c); -1 on an
 * i386 processor without SSE. */
static int8_t fp_load_always(void)
{
    static int8_t known = 2;
    int8_t answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == 2) {
        __builtin_cpu_init();
        answer = !__builtin_cpu_supports("sse") ? -1 : __builtin_cpu_is("amd") && __builtin_cpu_supports("avx2");
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer;
}
