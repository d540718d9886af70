/* The switch: one architecture's inline assembly behind one contract.
 *
 * Part of <aco.h>; not to be included by itself. Everything named aco__ is internal and may change.
 *
 * An architecture file (aco/arch/<arch>.h) provides, under these names:
 *
 *   ACO__ARCH                    its name, a string
 *   aco__tls_ref_read()          how the switches find the calling thread's aco__thread_t, which is thread-local, initial-exec:
 *                                its address, or what is cheaper. Computed anew on every call by a volatile asm: a coroutine
 *                                may come back on another thread, so no compiler may keep it (docs/switch.md, 8). Everything
 *                                asks aco__tls_ref(), below, for it
 *   aco__self_at(), aco__running_at()   if that is not an address: from there the thread record, and its `running`
 *   ACO__RESUME, ACO__YIELD, ACO__TRANSFER, ACO__EXIT, ACO__ENTER
 *                                the switches, as statements inside the functions below; the first three take the code that
 *                                exchanges floating-point control words and what stands behind the jump: ACO__FP_SWAP with
 *                                ACO__FP_SLOW, or ACO__FP_NONE with ACO__FP_NEVER.
 *                                ACO__LEAVING_REGISTER: where a transfer wants the block that it leaves
 *   aco__fp_read, aco__fp_load   the floating-point environment's control words; ACO__FP_STATUS: their status bits
 *   ACO__ARRIVAL_PARAMETERS, ACO__ARRIVAL_ABI
 *                                how a function that a switch enters from its beginning declares what crossed
 *   ACO__ENTRY_BELOW_TOP         how far below a stack's top an entry function finds its stack pointer
 *   ACO__RETURN_WORD             there, in words from the stack pointer up, stands its return address, if not at the stack
 *                                pointer itself
 *   ACO__ARGUMENTS_ROOM          bytes kept free at the stack pointer of a function with an in-stack generator, where what it
 *                                calls finds arguments that its compiler stores there without moving the stack pointer
 *   ACO__BEGINS_IN_ASSEMBLY      defined where aco__begin and aco__begin_entry are assembly: return addresses are passed in a
 *                                register, or parameters are not passed in those that cross
 *   ACO__ARRIVES_IN_ASSEMBLY     and where so is aco__arrive, the beginning of any other function that a switch enters: its
 *                                address is where the context has a frame pointer
 *   aco__slot_value()            under ACO__THREAD_SLOT: the word at this offset from the thread pointer
 *
 * All but x86's give registers' names and instructions, as arch/register_variables.h asks for them, and it makes the statements.
 *
 * Under ACO_CONFIG_DYNAMIC_TLS, which the library and all units must be compiled with, a function of the library finds the
 * record: for libraries that are loaded where static thread-local memory is not to be had (musl's dlopen()).
 * Under ACO__THREAD_SLOT, for systems without ELF's thread-local variables, a thread's record is allocated, its address stands
 * in a slot of the thread's block.
 * ACO__BOUNDS_KEEP, ACO__BOUNDS_BACK: around a switch, where the system wants to know the bounds of the running stack (teb.h);
 * else nothing.
 *
 * Without an architecture file: under ACO_CONFIG_UCONTEXT aco/arch/ucontext.h declares the functions at the end of this file, and
 * aco__tls_ref_read(), as the library's.
 *
 * Three registers cross every switch: the control block's address, aco__tls_ref(), and the value passed.
 *
 * Arrival. The switches return the word that the other side left in the first register: the control block's address of the
 * coroutine just left (resume) or of the one that now runs (yield, transfer). Its lowest bit is the arrival mark: "something
 * happened, call aco__interrupted() before anything else". The ordinary path never sets it and pays one test for it.
 *
 * Rules that every architecture file keeps (reasons and measurements in docs/switch.md):
 *   - it never writes below the stack pointer, and never pushes where there is a red zone, which belongs to the function
 *     around it
 *   - it declares clobbered, or saves by hand, every register that the ABI lets a caller keep across a call, and every one
 *     that a call would clobber
 *   - `jmp`, not `ret`, between stacks; a landing pad at the arrival label when the unit is built with them
 *   - nothing is reloaded through the new stack pointer to find the next one
 *   - when a coroutine arrives for the first time, `pc` is a function, `sp` is as the ABI wants it there, and the word
 *     ACO__RETURN_WORD above it is the return address aco__returned, on all architectures */
#ifndef ACO_SWITCH_H
#define ACO_SWITCH_H

/* Options that cannot be served, by the exported functions neither: most have functions keep things on a second stack, of the
 * thread's, which is not switched. gcc's -fsplit-stack and -fsanitize=shadow-call-stack cannot be seen here. */
#if defined(__has_feature)
#if __has_feature(ptrauth_calls)
#error "acorn: function pointers are signed in this ABI (arm64e), which the switches do not know"
#endif
#if __has_feature(shadow_call_stack)
#error "acorn: -fsanitize=shadow-call-stack keeps return addresses on a stack of the thread's, which is not switched"
#endif
#if __has_feature(safe_stack)
#error "acorn: -fsanitize=safe-stack keeps variables on a stack of the thread's, which is not switched"
#endif
#endif
#ifdef __riscv_shadow_stack
#error "acorn: return addresses are kept on a shadow stack of the thread's (Zicfiss), which is not switched"
#endif

/* Around what stands between loading the stack pointer and jumping, where frames cannot be told: whoever unwinds from there finds
 * the end of the stack. Where the switch arrives right behind the jump, one instruction that never runs stands between: LLVM's
 * unwinder looks every frame up at the byte before the place where it goes on. */
#if defined(__ELF__) && defined(__GCC_HAVE_DWARF2_CFI_ASM) && !defined(ACO_CONFIG_NO_CFI)
#define ACO__NO_FRAME(return_address) ".cfi_remember_state\n\t.cfi_undefined " return_address "\n\t"
#define ACO__FRAME_AGAIN "\t.cfi_restore_state\n"
#else
#define ACO__NO_FRAME(return_address)
#define ACO__FRAME_AGAIN
#endif

#define ACO__FORCE_INLINE static inline __attribute__((always_inline, unused))

/* Where a side that does not run left off. First member of a control block and of a thread's record. */
typedef struct aco__context {
    void *sp;   /* stack pointer */
    void *pc;   /* where to go on */
    void *bp;   /* frame pointer: compilers refuse it as a clobber */
    void *base; /* base pointer of over-aligned frames, where a compiler mistakes a clobber of it */
} aco__context_t;

/* What a thread needs to switch; one per thread, at a fixed thread-local address. The assembly uses `resumer`,
 * `fp_control`, `fp_control2`, `fp_load_always` and `running` at the offsets asserted in src/core.c. */
typedef struct aco__thread {
    aco__context_t resumer;    /* who resumed the running coroutine, and where it shall go on */
    uint32_t fp_control;       /* the resumer's: MXCSR */
    uint16_t fp_control2;      /* the resumer's: x87 control word */
    int8_t fp_load_always;     /* this processor loads MXCSR faster than it can be compared; -1: it has none */
    uint8_t ready;             /* the fields for new coroutines are set */
    struct aco_s *running;     /* the running coroutine, NULL while none runs */
    struct aco_s *resuming;    /* the coroutine that resumed the running one; NULL: the thread's own flow of control did */
    struct aco_s *cached;       /* destroyed coroutines kept with their stacks, to be made again */
    uint32_t cached_count;
    uint32_t new_fp_control;   /* the environment that new coroutines start with */
    uint16_t new_fp_control2;
    uint16_t root_fp_control2;
    uint32_t root_fp_control;
    aco__context_t root;  /* the thread's own flow of control, while a coroutine that it resumed resumes another */
    const aco__context_t *unwind_parent; /* `resumer`, for unwinders; no context while it is not where the resumer's frames are */
    struct aco_s *main_co;     /* the thread's newest main coroutine object, or NULL */
    void (*last_word)(void);   /* what aco_thread_init() was given */
    struct aco__heap *heap;    /* where control blocks and save areas come from */
    struct aco__scratch *scratch;    /* what few threads need */
    struct aco__cancel *cancel; /* the innermost unwinding of a coroutine or generator that is ended */
    struct aco_s *task;        /* whose turn it is: the running task, or the next to run; NULL: no task is runnable */
    struct aco_s *last_task;   /* the one before it in the ring of runnable tasks, whose turn comes last */
    uint32_t tasks;            /* spawned and not ended */
    uint32_t slow_switch_tasks;   /* those of them that no inline switch may leave or enter */
    uint32_t measures;         /* aco_stack_measure() */
    uint32_t lock;             /* what the thread is about to do with the process lock */
    struct aco__scheduler *scheduler; /* the rest of it, NULL until a task is spawned */
    char message[248];         /* why the last refused call was refused */
#ifdef _WIN32
    struct aco__thread *next, **link; /* among those of all threads */
#endif
} __attribute__((aligned(64))) aco__thread_t;

typedef uintptr_t aco__tls_ref_t;

#if defined(_WIN32) || defined(__APPLE__)
#define ACO__THREAD_SLOT
#elif defined(ACO_CONFIG_DYNAMIC_TLS) && !defined(ACO_CONFIG_UCONTEXT) /* whose record a function finds anyway */
#define ACO__THREAD_FOUND
#endif
#if defined(ACO__THREAD_SLOT) || defined(ACO__THREAD_FOUND) || defined(ACO_CONFIG_UCONTEXT)
#define ACO__TLS_REF_IS_ADDRESS
#endif

#ifndef ACO_CONFIG_NO_INLINE
#ifdef ACO__TLS_REF_IS_ADDRESS
#ifdef __cplusplus
extern "C" {
#endif
#ifdef ACO__THREAD_SLOT
extern ACO_API uintptr_t aco__thread_slot;       /* its offset; before it is known, that of one that is 0 */
ACO_API ACO__COLD aco__thread_t *aco__thread_new(void); /* the calling thread's, from now on; aborts without memory */
#elif defined(ACO__THREAD_FOUND)
ACO_API aco__thread_t *aco__thread_found(void); /* the calling thread's; not to be called twice in a compiler's mind */
#endif
#ifdef __cplusplus
}
#endif
#endif
#ifdef _WIN32
#include "teb.h"
#else
#define ACO__BOUNDS_KEEP
#define ACO__BOUNDS_BACK
#endif
#endif

/* What a register variable holds. Taken without the asm, gcc knows it for the variable's value, and drops a later store of it
 * to the same variable, in a loop, though calls in between have changed the register. */
#define ACO__HELD(variable)                                                                                            \
    __extension__({                                                                                                    \
        __typeof__(variable) aco__held = (variable);                                                                   \
        __asm__("" : "+r"(aco__held));                                                                                 \
        aco__held;                                                                                                     \
    })

/* Computes a variable's value here, not where it is put into a register that others follow: a call that gcc makes for it there, a
 * conversion or a thread-local address, would change the registers that have theirs already. */
#define ACO__COMPUTED(variable) __asm__("" : "+r"(variable))

#if (defined(__x86_64__) || defined(__i386__)) && !defined(ACO_CONFIG_NO_INLINE)
#include "arch/x86_fp.h"
#endif

#ifdef __FDPIC__
#error "acorn: function pointers are descriptors in this ABI (FDPIC), which the switches do not know"
#endif

#if defined(ACO_CONFIG_NO_INLINE)
/* the exported functions need no assembly here */
#elif defined(ACO_CONFIG_UCONTEXT)
#include "arch/ucontext.h"
#elif defined(__x86_64__) && !defined(__ILP32__) && (defined(__ELF__) || defined(_WIN32) || defined(__APPLE__))
#include "arch/x86_64.h"
#elif defined(__i386__) && defined(__ELF__)
#include "arch/i386.h"
#elif defined(__aarch64__) && !defined(__ILP32__) && (defined(__ELF__) || defined(__APPLE__))
#include "arch/aarch64.h"
#elif defined(__riscv) && __SIZEOF_POINTER__ * 8 == __riscv_xlen && defined(__ELF__)
#include "arch/riscv.h"
#elif defined(__arm__) && defined(__ELF__)
#include "arch/arm.h"
#elif defined(__powerpc64__) && defined(_CALL_ELF) && _CALL_ELF == 2 && defined(__LITTLE_ENDIAN__) && defined(__ELF__)
#include "arch/ppc64le.h"
#elif defined(__s390x__) && defined(__ELF__)
#include "arch/s390x.h"
#elif defined(__loongarch64) && defined(__ELF__)
#include "arch/loongarch64.h"
#else
#error "acorn: no switch for this architecture or object format; -DACO_CONFIG_UCONTEXT takes <ucontext.h>'s (docs/platforms.md)"
#endif

#ifdef ACO__FIRST
#include "arch/register_variables.h"
#endif

#ifndef ACO_CONFIG_NO_INLINE

#ifndef ACO__RETURN_WORD
#define ACO__RETURN_WORD 0
#endif

ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref(void)
{
#if defined(ACO__THREAD_SLOT)
    aco__tls_ref_t tls = aco__slot_value(aco__thread_slot);
    return __builtin_expect(tls != 0, 1) ? tls : (aco__tls_ref_t)aco__thread_new();
#elif defined(ACO__THREAD_FOUND)
    return (aco__tls_ref_t)aco__thread_found();
#else
    return aco__tls_ref_read();
#endif
}

#if defined(ACO__TLS_REF_IS_ADDRESS) || !(defined(__x86_64__) || defined(__i386__)) /* there it is an offset */
ACO__FORCE_INLINE aco__thread_t *aco__self_at(aco__tls_ref_t tls)
{
    return (aco__thread_t *)tls;
}

ACO__FORCE_INLINE struct aco_s *aco__running_at(aco__tls_ref_t tls)
{
    return ((volatile aco__thread_t *)tls)->running;
}
#endif

ACO__FORCE_INLINE aco__thread_t *aco__self(void)
{
    return aco__self_at(aco__tls_ref());
}

ACO__FORCE_INLINE struct aco_s *aco__running(void)
{
    return aco__running_at(aco__tls_ref());
}
#endif

#if !defined(ACO_CONFIG_NO_INLINE) && !defined(ACO_CONFIG_UCONTEXT)

/* `where`: aco__tls_ref(), just now. `fp`, a compile-time 0 or 1: 1 keeps the floating-point control words of the two sides apart,
 * if the coroutine has its own. `passed`: the value that the other side gets, then the one that it sent. */

/* Leaves for `co`, which is suspended and has its frames in place; comes back when it yields or ends. */
ACO__FORCE_INLINE uintptr_t aco__switch_resume(aco__tls_ref_t tls, struct aco_s *co, void **value_ref, int fp)
{
    void *value = *value_ref;
    ACO__BOUNDS_KEEP;
    if (fp)
        ACO__RESUME(ACO__FP_SWAP, ACO__FP_SLOW);
    else
        ACO__RESUME(ACO__FP_NONE, ACO__FP_NEVER);
    ACO__BOUNDS_BACK;
    *value_ref = value;
    return (uintptr_t)co;
}

/* Leaves `co`, the running coroutine, for its resumer; comes back when it is resumed. */
ACO__FORCE_INLINE uintptr_t aco__switch_yield(aco__tls_ref_t tls, struct aco_s *co, void **value_ref, int fp)
{
    void *value = *value_ref;
    ACO__BOUNDS_KEEP;
    if (fp)
        ACO__YIELD(ACO__FP_SWAP, ACO__FP_SLOW);
    else
        ACO__YIELD(ACO__FP_NONE, ACO__FP_NEVER);
    ACO__BOUNDS_BACK;
    *value_ref = value;
    return (uintptr_t)co;
}

/* Leaves `from`, the running coroutine, for `co`, of the same kind where `fp` is 1, which runs in its place;
 * comes back when `from` is resumed. */
ACO__FORCE_INLINE uintptr_t aco__switch_transfer(aco__tls_ref_t tls, struct aco_s *from, struct aco_s *co, void **value_ref, int fp)
{
    void *value = *value_ref;
    ACO__BOUNDS_KEEP;
    register struct aco_s *leaving ACO__LEAVING_REGISTER = from;
    if (fp)
        ACO__TRANSFER(ACO__FP_SWAP, ACO__FP_SLOW);
    else
        ACO__TRANSFER(ACO__FP_NONE, ACO__FP_NEVER);
    ACO__BOUNDS_BACK;
    *value_ref = value;
    return (uintptr_t)co;
}

/* Leaves for the resumer and never comes back. */
ACO__FORCE_INLINE __attribute__((noreturn)) void aco__switch_exit(aco__tls_ref_t tls, uintptr_t tagged, void *value)
{
    ACO__EXIT;
    __builtin_unreachable();
}

/* Goes on in `co`, which aco__running() names already, and never comes back. */
ACO__FORCE_INLINE __attribute__((noreturn))
void aco__switch_enter(aco__tls_ref_t tls, struct aco_s *co, uintptr_t tagged, void *value)
{
    ACO__ENTER;
    __builtin_unreachable();
}

#endif

#endif
