/* What x86-64 and i386 have in common: lists of clobbers, and the floating-point control words for library code. The
 * library may be compiled for any i386 and also serves units that are compiled with SSE. */
#ifndef ACO_ARCH_X86_H
#define ACO_ARCH_X86_H

#include "../detail/coroutine.h"

#define ACO__FP_STATUS 0x3f /* the status bits of MXCSR: no call preserves them */

#define ACO__MXCSR ACO__FP_CONTROL
#define ACO__X87CW ACO__FP_CONTROL2
#define ACO__FP_NONE(to, from)
#define ACO__FP_NEVER(to, from) "int3\n"

/* Lists of clobbers, for units that have these registers. Other units have no value there, and gcc rejects the names.
 * */
#ifdef __SSE__
#define ACO__IF_SSE(...) , __VA_ARGS__
#else
#define ACO__IF_SSE(...)
#endif
#if defined(__NO_80387__) || defined(_SOFT_FLOAT) /* gcc -mno-80387. clang does not define them and accepts the names */
#define ACO__IF_X87(...)
#else
#define ACO__IF_X87(...) , __VA_ARGS__
#endif
#ifdef __MMX__
#define ACO__IF_MMX(...) , __VA_ARGS__
#else
#define ACO__IF_MMX(...)
#endif

#ifdef __AVX__
#define ACO__CLEAR_UPPER "vzeroupper\n\t"
#else
#define ACO__CLEAR_UPPER
#endif
#if defined(__CET__) && (__CET__ & 1)
#define ACO__IF_LANDING_PADS(instruction) instruction
#else
#define ACO__IF_LANDING_PADS(instruction)
#endif

#ifdef __x86_64__
#define ACO__HAS_MXCSR 1
#else
#define ACO__HAS_MXCSR __builtin_cpu_supports("sse")
#endif

ACO__FORCE_INLINE void aco__fp_read(uint32_t *control, uint16_t *control2)
{
    if (ACO__HAS_MXCSR)
        __asm__ volatile("stmxcsr %0" : "=m"(*control));
    else
        *control = 0x1f80; /* the initial value on processors with SSE */
    __asm__ volatile("fnstcw %0" : "=m"(*control2));
}

ACO__FORCE_INLINE void aco__fp_load(const uint32_t *control, const uint16_t *control2)
{
    if (ACO__HAS_MXCSR)
        __asm__ volatile("ldmxcsr %0" : : "m"(*control));
    __asm__ volatile("fnclex\n\t"
                     "fldcw %0"
                     :
                     : "m"(*control2));
}

#endif
