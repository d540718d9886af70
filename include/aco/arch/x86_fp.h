/* The floating-point control words of x86-64 and i386, for library code: it may be compiled for any i386, and serves units
 * with SSE all the same. */
#ifndef ACO_ARCH_X86_FP_H
#define ACO_ARCH_X86_FP_H

#define ACO__FP_STATUS 0x3f /* MXCSR's status bits: nobody's across a call */

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
        *control = 0x1f80; /* what a processor with SSE starts with */
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
