/* The switch on AArch64, AAPCS64, little or big endian, LP64. Contract and rules: ../detail/switch.h.
 * Source of the register roles: Procedure Call Standard for the Arm 64-bit Architecture (2024Q3), sections 6.1.1 to
 * 6.1.4.
 *
 * register               in the ABI      here
 * sp                     callee-saved    stored and loaded
 * x29                    callee-saved    stored and loaded: the frame pointer cannot be a clobber
 * x19                    callee-saved    a clobber; with clang stored and loaded: it is the base pointer of
 *                                        over-aligned frames with variable parts, and clang lets an asm clobber it
 *                                        there and crashes
 * x20-x28                callee-saved    clobbers: the compiler saves those that are live, and only those
 * x0                     scratch         the control block's address, carried across the switch
 * x1                     scratch         the thread record's address; the same on both sides
 * x2                     scratch         the resume address, on its way to memory
 * x3                     scratch         the value, carried across the switch
 * x4                     scratch         in a transfer, the control block of the coroutine that leaves; else a clobber
 * x9, x10                scratch         the stack pointer, on its way to or from memory; control words
 * x16                    scratch         the address to jump to: landing pads for calls accept branches through x16 too
 * x5-x8, x11-x15, x17    scratch         clobbers
 * x18                    scratch, or     a clobber; untouched where the platform reserves it
 *                        the platform's
 * x30                    scratch         a clobber
 * v8-v15, low halves     callee-saved    clobbers, like the rest of v0-v31; SVE's p0-p15 and FFR where it is compiled
 *                                        in
 * FPCR                   callee-saved    stored and loaded if `fp` is 1 and the coroutine has its own; else untouched
 * FPSR, NZCV             scratch         untouched; NZCV is a clobber
 * TPIDR_EL0, _RRO_EL0    thread pointer  untouched
 *
 * There is no red zone, except on macOS (128 bytes). The stack pointer is always a multiple of 16. Return addresses may
 * be signed: each function signs its own with its own stack pointer, and has the same stack pointer when it returns.
 * The address that a switch jumps to is unsigned in memory. Units built with BTI have a landing pad there. */
#ifndef ACO_ARCH_AARCH64_H
#define ACO_ARCH_AARCH64_H

/* The registers that cross, and operands by them (statements.h). */
#define ACO__FIRST "x0"
#define ACO__SECOND "x1"
#define ACO__THIRD "x2"
#define ACO__FOURTH "x3"
#define ACO__FIFTH "x4"
#define ACO__STACK_REGISTER "sp"
#define ACO__STACK_OPERAND "+k"
#define ACO__BLOCK(offset) "[x0,#" ACO__TEXT(offset) "]"
#define ACO__LEAVING(offset) "[x4,#" ACO__TEXT(offset) "]"
#define ACO__THREAD(offset) "[x1,#" ACO__TEXT(offset) "]"

#define ACO__FP_STATUS 0 /* the status bits are in another register */

/* A stack's top is 64-byte aligned. */
#define ACO__ENTRY_BELOW_TOP 16
#define ACO__RETURN_WORD 0

#ifdef __clang__
#define ACO__KEEP_BP(to) "stp x29,x19," to(ACO__BP) "\n\t"
#define ACO__RESUMER_BASE "ldr x19," ACO__THREAD(ACO__BASE) "\n\t"
#define ACO__RUNNING_BASE "ldr x9," ACO__THREAD(ACO__RUNNING) "\n\tldr x19,[x9,#" ACO__TEXT(ACO__BASE) "]\n\t"
#define ACO__CLOBBER_BASE
#else
#define ACO__KEEP_BP(to) "str x29," to(ACO__BP) "\n\t"
#define ACO__CLOBBER_BASE "x19",
#endif

#if defined(__APPLE__) || defined(_WIN32) || defined(__ANDROID__) || defined(__Fuchsia__)
#define ACO__CLOBBER_X18
#else
#define ACO__CLOBBER_X18 "x18",
#endif
#ifdef __ARM_FP /* without it (-mgeneral-regs-only) this unit has no value in these registers */
#define ACO__CLOBBER_FP                                                                                                \
    , "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",     \
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
#else
#define ACO__CLOBBER_FP
#endif
#ifdef __ARM_FEATURE_SVE
#define ACO__CLOBBER_SVE                                                                                               \
    , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15", "ffr"
#else
#define ACO__CLOBBER_SVE
#endif
#define ACO__CLOBBERS_OF_ALL                                                                                           \
    ACO__CLOBBER_BASE ACO__CLOBBER_X18 "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",  \
        "x17", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "memory", "cc" ACO__CLOBBER_FP    \
        ACO__CLOBBER_SVE

#ifdef __ARM_FEATURE_BTI_DEFAULT
#define ACO__LANDING_PAD "hint #36\n\t" /* bti j */
#else
#define ACO__LANDING_PAD
#endif

/* macOS: the thread pointer is the address of the system's per-thread values. Its lowest bits are the processor's
 * number, and are masked here. */
ACO__FORCE_INLINE uintptr_t aco__slot_value(uintptr_t offset)
{
    uintptr_t value;
    __asm__ volatile("mrs %0,tpidrro_el0\n\t"
                     "and %0,%0,#~7\n\t"
                     "ldr %0,[%0,%1]"
                     : "=&r"(value) : "r"(offset));
    return value;
}

/* The thread record's address. Linkers turn the first two into constants in executables. */
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref_read(void)
{
    aco__tls_ref_t tls, thread_pointer;
    __asm__ volatile("adrp %0,:gottprel:aco__thread\n\t"
                     "ldr %0,[%0,#:gottprel_lo12:aco__thread]\n\t"
                     "mrs %1,tpidr_el0\n\t"
                     "add %0,%0,%1"
                     : "=&r"(tls), "=&r"(thread_pointer));
    return tls;
}

#define ACO__STORE(to)                                                                                                 \
    "mov x9,sp\n\t"                                                                                                    \
    "stp x9,x2," to(ACO__SP) "\n\t" ACO__KEEP_BP(to)

#define ACO__LEAVE(from)                                                                                               \
    "ldp x9,x16," from(ACO__SP) "\n\t"                                                                                 \
    "ldr x29," from(ACO__BP) "\n\t"                                                                                    \
    ACO__NO_FRAME("x30")                                                                                               \
    "mov sp,x9\n\t"                                                                                                    \
    ACO__GO

#define ACO__FP_SWAP(to, from)                                                                                         \
    "ldrsb w9," ACO__BLOCK(ACO__STATE_BYTE) "\n\t"                                                                     \
    "tbz w9,#31,4f\n"                                                                                                  \
    "5:\t"
#define ACO__FP_SLOW(to, from)                                                                                         \
    "4:\tmrs x9,fpcr\n\t"                                                                                              \
    "str w9," to(ACO__FP_CONTROL) "\n\t"                                                                               \
    "ldr w10," from(ACO__FP_CONTROL) "\n\t"                                                                            \
    "cmp w9,w10\n\t"                                                                                                   \
    "b.eq 5b\n\t"                                                                                                      \
    "msr fpcr,x10\n\t"                                                                                                 \
    "b 5b\n"

#define ACO__RESUME_ADDRESS "adr x2,1f\n\t"
#define ACO__RUNS "str x0," ACO__THREAD(ACO__RUNNING) "\n\t"
#define ACO__NOTHING_RUNS "str xzr," ACO__THREAD(ACO__RUNNING) "\n\t"
#define ACO__ARRIVAL "1:\t" ACO__LANDING_PAD

/* ---- Generators ---- */
#define ACO__SWAP(one, other) "mov x9," one "\n\tmov " one "," other "\n\tmov " other ",x9\n\t"
#define ACO__TO_PEER                                                                                                   \
    "mov x16,x0\n\t"                                                                                                   \
    "adr x0,1f\n\t"                                                                                                    \
    ACO__SWAP("x19", "x4") ACO__NO_FRAME("x30") ACO__SWAP("x29", "x1")
#define ACO__SWAP_SP ACO__SWAP("sp", "x3")
#define ACO__GO "br x16\n" ACO__FRAME_AGAIN

#define ACO__LAST_TO_PEER                                                                                              \
    "mov x19,x4\n\t"                                                                                                   \
    "mov x29,x1\n\t"                                                                                                   \
    ACO__NO_FRAME("x30")
#define ACO__LOAD_SP "mov sp,x3\n\t"
#define ACO__LAST_GO                                                                                                   \
    "mov x16,x0\n\t"                                                                                                   \
    "mov x0,xzr\n\t"                                                                                                   \
    ACO__GO

/* In-stack generators. gcc stores the arguments of calls, from the ninth on, at sp without moving sp. */
#define ACO__ARGUMENTS_ROOM 128
#define ACO__IF_INNERMOST                                                                                              \
    "mov x9,sp\n\t"                                                                                                    \
    "cmp x9,x3\n\t"                                                                                                    \
    "b.ne 2f\n\t"                                                                                                      \
    "add sp,sp,#128\n\t"
#define ACO__NOT_INNERMOST                                                                                             \
    "mov x0,#1\n\t"                                                                                                    \
    "b 3f\n"
#define ACO__ROOM                                                                                                      \
    "sub sp,sp,#128\n\t"                                                                                               \
    "mov x3,sp\n"
#define ACO__IN_STACK_ROOM                                                                                             \
    "adr %2,1f\n"                                                                                                      \
    "1:\tsub sp,sp,#256\n\t"                                                                                           \
    "mov %0,sp\n\t"                                                                                                    \
    "mov %1,x29"
#define ACO__READ_SP                                                                                                   \
    "mov %0,sp\n\t"                                                                                                    \
    "mov %1,xzr"
#define ACO__WRITE_SP "mov sp,%0"

/* A generator's first stack pointer, and what aco__generator_begin finds there:
 *   16   the argument, for x5
 *    8   the return address, for x30
 *    0   the function                            <- sp, a multiple of 16; the function begins with sp 32 higher */
enum { ACO__START_ARGUMENT = 2, ACO__START_WORDS = 6 };

ACO__FORCE_INLINE void aco__fp_read(uint32_t *control, uint16_t *control2)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0,fpcr" : "=r"(fpcr));
    *control = (uint32_t)fpcr;
    *control2 = 0;
}

ACO__FORCE_INLINE void aco__fp_load(const uint32_t *control, const uint16_t *control2)
{
    uint64_t fpcr = *control;
    (void)control2;
    __asm__ volatile("msr fpcr,%0" : : "r"(fpcr));
}

#endif
