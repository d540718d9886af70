/* The fallback: the switches of ../detail/switch.h as functions of the library, on the C library's getcontext(),
 * makecontext() and setcontext(); implemented in src/os/ucontext.c. For architectures without a switch of their own;
 * works on the others too.
 *
 * It requires only a stack that grows down. A library built this way exports these functions instead of the symbols by
 * which inline switches find the thread record: units that were compiled without the option do not link with it. */
#ifndef ACO_ARCH_UCONTEXT_H
#define ACO_ARCH_UCONTEXT_H

#ifndef __GLIBC__ /* musl declares them but does not define them */
#error "acorn: ACO_CONFIG_UCONTEXT needs getcontext(), makecontext() and setcontext() of the C library"
#endif

/* A stack's top is 64-byte aligned. */
#define ACO__ENTRY_BELOW_TOP 16
#define ACO__RETURN_WORD 0

#define ACO__ARRIVAL_ABI
#define ACO__ARRIVAL_PARAMETERS __attribute__((unused)) uintptr_t tagged, __attribute__((unused)) void *value

/* What aco__generator_begin finds at its stack pointer, and what it calls the function with. */
enum { ACO__START_FUNCTION = 0, ACO__START_RETURN = 1, ACO__START_ARGUMENT = 2, ACO__START_WORDS = 8 };
#define ACO__GENERATOR_PARAMETERS void *aco__sp, void *aco__pc, void *aco__bp, void *aco__base

ACO__BEGIN_C

ACO_API aco__tls_ref_t aco__tls_ref_read(void);
ACO_API uintptr_t aco__switch_resume(aco__tls_ref_t tls, struct aco_s *co, void **value_ref, int fp);
ACO_API uintptr_t aco__switch_yield(aco__tls_ref_t tls, struct aco_s *co, void **value_ref, int fp);
ACO_API uintptr_t aco__switch_transfer(aco__tls_ref_t tls, struct aco_s *from, struct aco_s *co, void **value_ref,
                                       int fp);
ACO_API __attribute__((noreturn)) void aco__switch_exit(aco__tls_ref_t tls, uintptr_t tagged, void *value);
ACO_API __attribute__((noreturn))
void aco__switch_enter(aco__tls_ref_t tls, struct aco_s *co, uintptr_t tagged, void *value);
/* For generators. There are no switches for in-stack generators. */
ACO_API void aco__switch_swap(aco__context_t *peer, void **value_ref);
ACO_API __attribute__((noreturn)) void aco__switch_swap_last(const aco__context_t *peer, void *value);

#ifndef ACO__FP_STATUS /* else x86.h has declared better ones */
#define ACO__FP_STATUS 0
/* For library code: the rounding direction. */
__attribute__((visibility("hidden"))) void aco__fp_read(uint32_t *control, uint16_t *control2);
__attribute__((visibility("hidden"))) void aco__fp_load(const uint32_t *control, const uint16_t *control2);
#endif

ACO__END_C

#endif
