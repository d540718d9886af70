/* The compiler, the target and the program's options, each tested once: attributes, unsupported configurations, the
 * choices that the other headers depend on, and the default sizes of stacks. Everything named aco__ or ACO__ is
 * internal and may change. */
#ifndef ACO_DETAIL_CONFIG_H
#define ACO_DETAIL_CONFIG_H

#ifdef __has_feature
#define ACO__HAS_FEATURE(feature) __has_feature(feature)
#else
#define ACO__HAS_FEATURE(feature) 0
#endif
#ifdef __has_attribute
#define ACO__HAS_ATTRIBUTE(attribute) __has_attribute(attribute)
#else
#define ACO__HAS_ATTRIBUTE(attribute) 0
#endif

/* ---- Unsupported configurations, also for programs that only call the exported functions ------------------------- */

#if defined(_MSC_VER) && !defined(__clang__) /* clang-cl is untested */
#error "acorn: MSVC has neither GNU inline assembly nor GNU attributes: compile with mingw-w64's gcc or clang"
#endif
#if ACO__HAS_FEATURE(ptrauth_calls) || defined(__FDPIC__)
#error "acorn: in this ABI function pointers are signed (arm64e) or descriptors (FDPIC); switches need addresses"
#endif
/* gcc does not say that -fsanitize=shadow-call-stack or -fsplit-stack is on. */
#if ACO__HAS_FEATURE(shadow_call_stack) || ACO__HAS_FEATURE(safe_stack) || defined(__riscv_shadow_stack)
#error "acorn: the second stack of -fsanitize=shadow-call-stack, -fsanitize=safe-stack or Zicfiss is not switched"
#endif

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define ACO_API
#else
#define ACO_API __attribute__((visibility("default")))
#endif

#define ACO__COLD __attribute__((cold, noinline))
#define ACO__FORCE_INLINE static __inline__ __attribute__((always_inline, unused)) /* C89 knows no `inline` */
#define aco_likely(x) (__builtin_expect(!!(x), 1))
#define aco_unlikely(x) (__builtin_expect(!!(x), 0))
/* C++ passes a location's line in the upper 16 bits of the address of its file's name, where those are 0. */
#if defined(__LP64__) || defined(_WIN64)
#define ACO__LINE_SHIFT 48
#endif
#define ACO__TEXT_(x) #x
#define ACO__TEXT(x) ACO__TEXT_(x) /* what `x` expands to, as a string */

/* Between these two a user's warnings about casts are off: the headers are C, and are compiled as C++ too. */
#define ACO__CASTS_BEGIN _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wcast-qual\"") ACO__CXX_CASTS
#define ACO__CASTS_END _Pragma("GCC diagnostic pop")
#if !defined(__cplusplus)
#define ACO__CXX_CASTS
#elif defined(__clang__)
#define ACO__CXX_CASTS _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"")
#else
#define ACO__CXX_CASTS                                                                                                 \
    _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"") _Pragma("GCC diagnostic ignored \"-Wuseless-cast\"")
#endif

#ifdef __cplusplus
#define ACO__BEGIN_C extern "C" { ACO__CASTS_BEGIN
#define ACO__END_C ACO__CASTS_END }
#define ACO__POINTER(type, p) static_cast<type *>(p) /* in macros that users expand: a cast from void, or to it */
#else
#define ACO__BEGIN_C ACO__CASTS_BEGIN
#define ACO__END_C ACO__CASTS_END
#define ACO__POINTER(type, p) ((type *)(p))
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L
#define ACO__STATIC_ASSERT(condition, text) static_assert(condition, text)
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define ACO__STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#else /* older standards have none: the library, which is C11, asserts the same */
#define ACO__STATIC_ASSERT(condition, text) struct aco_s
#endif

/* ---- The program's options --------------------------------------------------------------------------------------- */

#ifndef ACO_DEBUG
#if defined(NDEBUG) || defined(__OPTIMIZE__)
#define ACO_DEBUG 0
#else
#define ACO_DEBUG 1
#endif
#endif

/* 1: this unit's switches test whether the coroutine has its own floating-point environment, and aco_create() gives it
 * one. 0: no coroutine has one. */
#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
#define ACO__OWN_FP 0
#else
#define ACO__OWN_FP 1
#endif

/* Only libaco's names are declared: for client code that wants no others. */
#if defined(ACO_CONFIG_LIBACO_ONLY) && !defined(ACO__LIBRARY)
#define ACO__LIBACO_NAMES
#endif

/* ACO__CALL declares a call of the API that has an inline body in a header; ACO__BODY_OF(name) defines that body. In a
 * program the call is this inline function. In the library's own units (src/) it is the exported function for other
 * languages, and the body is name_inline(): src/coroutine/exports.c and src/scheduler/task_exports.c define the
 * exported functions by it. Under ACO_CONFIG_NO_INLINE a program calls those. */
#ifdef ACO__LIBRARY
#define ACO__CALL ACO_API
#define ACO__BODY_OF(name) name##_inline
#elif defined(ACO_CONFIG_NO_INLINE)
#define ACO__CALL ACO_API
#else
#define ACO__CALL ACO__FORCE_INLINE
#define ACO__BODY_OF(name) name
#endif

/* ---- Choices ----------------------------------------------------------------------------------------------------- */

/* How a thread finds its record; thread.h explains the four ways. */
#if defined(_WIN32) || defined(__APPLE__)
#define ACO__THREAD_SLOT
#elif defined(ACO_CONFIG_UCONTEXT)
#define ACO__THREAD_FALLBACK
#elif defined(ACO_CONFIG_DYNAMIC_TLS)
#define ACO__THREAD_FOUND
#else
#define ACO__THREAD_TLS
#endif

/* Unwind directives around the code between loading the stack pointer and jumping. No frame can be found there, so they
 * make an unwinder see the end of the stack. If a switch arrives right after its jump, an instruction that never runs
 * stands between the two, because LLVM's unwinder looks a frame up at the byte before its resume address. */
#if defined(__ELF__) && defined(__GCC_HAVE_DWARF2_CFI_ASM) && !defined(ACO_CONFIG_NO_CFI)
#define ACO__NO_FRAME(return_address) ".cfi_remember_state\n\t.cfi_undefined " return_address "\n\t"
#define ACO__FRAME_AGAIN "\t.cfi_restore_state\n"
#else
#define ACO__NO_FRAME(return_address)
#define ACO__FRAME_AGAIN
#endif

/* An address in the calling function's frame. */
#if defined(__riscv) || defined(__loongarch__) /* there the frame pointer is where the caller's frame begins */
#define ACO__FRAME ((char *)__builtin_frame_address(0) - sizeof(void *))
#else
#define ACO__FRAME __builtin_frame_address(0)
#endif

/* The unit is compiled with a sanitizer. ACO__ONE_FRAME_ONLY: with one that must not see the frames of two functions
 * take turns on one stack. */
#if defined(__SANITIZE_THREAD__) || ACO__HAS_FEATURE(thread_sanitizer) || ACO__HAS_FEATURE(memory_sanitizer)
#define ACO__SANITIZED 1
#define ACO__ONE_FRAME_ONLY 1
#elif defined(__SANITIZE_ADDRESS__) || ACO__HAS_FEATURE(address_sanitizer) || defined(ACO_USE_ASAN)
#define ACO__SANITIZED 1
#endif

enum { /* default sizes in bytes; tests/documents.py knows who repeats them */
    ACO__PRIVATE_SIZE = 256 << 10,
    ACO__SHARE_SIZE = 2 << 20
};

#endif
