/* Every unit of the library includes this first: the public header without the options of client code, attributes, and
 * what depends only on the compiler and the platform.
 *
 * Layers, lowest first: os, base, stack, hooks, coroutine, scheduler. A layer calls only itself and the layers below
 * it; tools/layers.py checks the object files. Where base or stack need a higher layer, they call it through
 * base/upcalls.h.
 *
 * Reach thread-local state only through aco__self(). Link-time optimisation may inline a function of this library into
 * a coroutine, and a compiler could keep a thread-local address there across a switch to another thread. */
#ifndef ACO_PLATFORM_H
#define ACO_PLATFORM_H

/* Options of client code; the library serves clients with any of them. But if it has only libaco's calls, it exports
 * the inline ones only under ACO_CONFIG_NO_INLINE. */
#undef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
#ifdef ACO_CONFIG_NO_INLINE
#undef ACO_CONFIG_NO_INLINE
#define ACO__EXPORTS
#endif
#undef ACO_DEBUG
#define ACO_DEBUG 0
/* The inline calls are declared as exported functions, and their bodies have other names: aco/detail/config.h. */
#define ACO__LIBRARY
#ifdef ACO_H
#error "a unit of the library includes os/platform.h first, which includes aco.h"
#endif

#if defined(_WIN32) && !defined(__USE_MINGW_ANSI_STDIO)
#define __USE_MINGW_ANSI_STDIO 1 /* %zu */
#endif
#include "aco.h"

/* The amalgamation for libaco's programs alone: no more than they need. Sanitizers need the rest. */
#if defined(ACO_CONFIG_LIBACO_ONLY) && defined(ACO__SANITIZED)
#undef ACO_CONFIG_LIBACO_ONLY
#endif

#include <errno.h>
#ifndef EDQUOT
#define EDQUOT 10069 /* Windows: internal, users never see it */
#endif

/* For functions of the library that programs do not see; and for data and what assembly defines. Where the library is
 * one unit, the functions are static: the compiler drops those that nothing calls. */
#ifdef _WIN32
#define ACO__HIDDEN
#define ACO__HIDDEN_EXTERN extern
#ifdef __clang__ /* clang before 22 knows only this name, with gnu_printf's meaning */
#define ACO__PRINTF printf
#else
#define ACO__PRINTF gnu_printf
#endif
#else
#define ACO__HIDDEN __attribute__((visibility("hidden")))
#define ACO__HIDDEN_EXTERN __attribute__((visibility("hidden"))) extern
#define ACO__PRINTF printf
#endif

/* 1: there are only libaco's calls, so no private stacks, tasks or transfers, and every failure is fatal. */
#ifndef ACO_CONFIG_LIBACO_ONLY
enum { ACO__LIBACO_ONLY = 0 };
#else
enum { ACO__LIBACO_ONLY = 1 };
#undef ACO__HIDDEN
#define ACO__HIDDEN static
#undef ACO_ERROR
#define ACO_ERROR NULL /* libaco's calls abort where others fail */
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

/* Only assembly calls the function, and link-time optimisation does not see such calls. */
#define ACO__NAMED_BY_ASSEMBLY __attribute__((used))

/* Runs when the library is loaded, before all constructors of programs: their priorities begin at 101. macOS knows no
 * priorities; there the library is ready when the static initialisers of the objects linked before it have run. */
#define ACO__AT_LOAD __attribute__((constructor(100)))
#ifndef __clang__ /* priorities below 101 are for libraries */
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
#elif __has_warning("-Wprio-ctor-dtor")
#pragma clang diagnostic ignored "-Wprio-ctor-dtor"
#endif

/* The library switches shadow stacks if it is compiled with -fcf-protection=full or =return. */
#if defined(__linux__) && defined(__x86_64__) && defined(__CET__) && !defined(ACO_CONFIG_UCONTEXT) && \
    !defined(ACO_CONFIG_LIBACO_ONLY)
#if __CET__ & 2
#define ACO__SHADOW_STACKS
#endif
#endif

/* Backtraces continue from a coroutine's first frame to its resumer's frames (coroutine/entry/assembly.h). */
#if defined(__ELF__) && !defined(ACO_CONFIG_UCONTEXT) && \
    (defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || defined(__loongarch__) || \
     defined(__powerpc64__) || defined(__s390x__) || (defined(__riscv) && __riscv_xlen == 64))
#define ACO__UNWINDS_TO_RESUMER
#endif

/* A sanitizer must not instrument this function: it switches, or tells the sanitizer about a switch. MemorySanitizer is
 * the exception. It instruments these functions too, because callees could not know otherwise which arguments are
 * initialised. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define ACO__NO_SANITIZE __attribute__((no_sanitize("memory")))
#define ACO__FOREIGN_ENTRY ACO__NO_SANITIZE
#endif
#endif
#if defined(ACO__NO_SANITIZE)
#elif defined(__clang__)
#define ACO__NO_SANITIZE __attribute__((disable_sanitizer_instrumentation, no_sanitize("address", "thread")))
#else
#define ACO__NO_SANITIZE __attribute__((no_sanitize("address"), no_sanitize("thread")))
#endif
/* A function with parameters that is entered by a switch or called by code without instrumentation. */
#ifndef ACO__FOREIGN_ENTRY
#define ACO__FOREIGN_ENTRY
#endif

/* A function of the program's run time that may be missing; its address is then NULL. macOS's linkers need a definition
 * of every name, so there all of them are missing. In aco.c a name may come twice. */
#ifdef __APPLE__
#define ACO__OPTIONAL(result, name, parameters) static result(*const name) parameters
#else
#define ACO__OPTIONAL(result, name, parameters) __attribute__((weak)) extern result name parameters
#endif

/* A store that no later sequentially consistent load of the thread overtakes. It is an exchange, because qemu (7.2, on
 * x86) lets AArch64's load-acquire overtake a store-release. For x86 compilers make the same of both. */
#define aco__store_then_load(at, value) ((void)__atomic_exchange_n(at, value, __ATOMIC_SEQ_CST))

/* Rounds up to a multiple of `to`, a power of two. */
static inline __attribute__((unused)) size_t aco__round_up(size_t sz, size_t to)
{
    return (sz + to - 1) & ~(to - 1);
}

/* Loads these control words unless the same ones are in force. It ignores the status bits, like the switch. */
static inline __attribute__((unused)) void aco__fp_change(const uint32_t *wanted, const uint16_t *wanted2)
{
    uint32_t control;
    uint16_t control2;
    aco__fp_read(&control, &control2);
    if (((control ^ *wanted) & ~(uint32_t)ACO__FP_STATUS) != 0 || control2 != *wanted2)
        aco__fp_load(wanted, wanted2);
}

#endif
