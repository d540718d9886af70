/* Chooses the file of the architecture. switch.h says what such a file provides. */
#ifndef ACO_DETAIL_ARCH_H
#define ACO_DETAIL_ARCH_H

#include "coroutine.h"

ACO__CASTS_BEGIN

#if defined(__x86_64__) || defined(__i386__)
#include "../arch/x86.h"
#endif

#if defined(ACO_CONFIG_UCONTEXT)
#include "../arch/ucontext.h"
#elif defined(__x86_64__) && !defined(__ILP32__) && (defined(__ELF__) || defined(_WIN32) || defined(__APPLE__))
#include "../arch/x86_64.h"
#elif defined(__i386__) && defined(__ELF__)
#include "../arch/i386.h"
#elif defined(__aarch64__) && !defined(__ILP32__) && (defined(__ELF__) || defined(__APPLE__))
#include "../arch/aarch64.h"
#elif defined(__riscv) && __SIZEOF_POINTER__ * 8 == __riscv_xlen && defined(__ELF__)
#include "../arch/riscv.h"
#elif defined(__arm__) && defined(__ELF__)
#include "../arch/arm.h"
#elif defined(__powerpc64__) && defined(_CALL_ELF) && _CALL_ELF == 2 && defined(__LITTLE_ENDIAN__) && defined(__ELF__)
#include "../arch/ppc64le.h"
#elif defined(__s390x__) && defined(__ELF__)
#include "../arch/s390x.h"
#elif defined(__loongarch64) && defined(__ELF__)
#include "../arch/loongarch64.h"
#else
#error "acorn: no switch for this architecture or object format; -DACO_CONFIG_UCONTEXT takes <ucontext.h>'s"
#endif

#ifdef ACO__FIRST /* the architecture's file names registers and instructions: these are the statements */
#include "../arch/statements.h"
#endif

/* An operand of each statement that reads or moves the stack pointer. gcc combines its own adjustments of the stack
 * pointer across an asm without it. clang needs no operand; on Windows and under ACO_CONFIG_UCONTEXT nothing moves the
 * stack pointer. */
#if defined(__clang__) || defined(_WIN32) || defined(ACO_CONFIG_UCONTEXT)
#define ACO__MOVES_STACK
#else
__extension__ register void *aco__stack_pointer __asm__(ACO__STACK_REGISTER);
#define ACO__MOVES_STACK , ACO__STACK_OPERAND(aco__stack_pointer)
#endif

ACO__CASTS_END

#endif
