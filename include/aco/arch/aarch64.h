/* The switch on AArch64, AAPCS64, little or big endian, LP64. Contract and rules: ../switch.h.
 * Source of the register roles: Procedure Call Standard for the Arm 64-bit Architecture (2024Q3), sections 6.1.1 to 6.1.4.
 *
 * register               in the ABI      here
 * sp                     callee-saved    stored and loaded
 * x29                    callee-saved    stored and loaded: the frame pointer cannot be a clobber
 * x19                    callee-saved    a clobber; with clang stored and loaded: it is the base pointer of over-aligned
 *                                        frames with variable parts, and clang lets an asm clobber it there and crashes
 * x20-x28                callee-saved    clobbers: the compiler saves those that are live, and only those
 * x0                     scratch         the control block's address, carried across the switch
 * x1                     scratch         the thread record's address; the same on both sides
 * x2                     scratch         the way back, on its way to memory
 * x3                     scratch         the value passed, carried across the switch
 * x4                     scratch         in a transfer the block of the coroutine that leaves; else a clobber
 * x9, x10                scratch         the stack pointer on its way; control words
 * x16                    scratch         where to go on: a landing pad for calls takes a branch through x16 too
 * x5-x8, x11-x15, x17    scratch         clobbers
 * x18                    scratch, or     a clobber; untouched where the platform reserves it
 *                        the platform's
 * x30                    scratch         a clobber
 * v8-v15, low halves     callee-saved    clobbers, like the rest of v0-v31; SVE's p0-p15 and FFR where it is compiled in
 * FPCR                   callee-saved    kept apart when `fp` is 1; else common to all, as the user asked
 * FPSR, NZCV             scratch         as they are; NZCV a clobber
 * TPIDR_EL0, _RRO_EL0    thread pointer  untouched
 *
 * There is no red zone (128 bytes on macOS), and the stack pointer is always a multiple of 16. Return addresses may be signed: each function
 * signs its own with its own stack pointer, and comes back to the same. What the switch jumps to is in memory unsigned; units
 * built with BTI have a landing pad there. */
#ifndef ACO_ARCH_AARCH64_H
#define ACO_ARCH_AARCH64_H

#define ACO__ARCH "aarch64"

/* Operands: a field of the control block (x0), of the one that a transfer leaves or that is entered out of line (x4), of the thread
 * record (x1). Offsets asserted in src/core.c. */
#define ACO__BLOCK(offset) "[x0,#" offset "]"
#define ACO__LEAVING(offset) "[x4,#" offset "]"
#define ACO__ENTERED(offset) ACO__LEAVING(offset)
#define ACO__THREAD(offset) "[x1,#" offset "]"
#define ACO__SP "0"
#define ACO__BP "16"
#define ACO__BASE "24"
#define ACO__FPCR "32"
#define ACO__STATE_BYTE "38"
#define ACO__RUNNING "40"

#define ACO__FP_STATUS 0 /* it is in another register */

/* A stack's top is 64-byte aligned. */
#define ACO__ENTRY_BELOW_TOP 16
#define ACO__BEGINS_IN_ASSEMBLY

#ifdef __clang__
#define ACO__KEEP_BP(to) "stp x29,x19," to(ACO__BP) "\n\t"
#define ACO__RESUMER_BASE "ldr x19," ACO__THREAD(ACO__BASE) "\n\t"
#define ACO__RUNNING_BASE "ldr x9," ACO__THREAD(ACO__RUNNING) "\n\tldr x19,[x9,#" ACO__BASE "]\n\t"
#define ACO__CLOBBER_BASE
#else
#define ACO__KEEP_BP(to) "str x29," to(ACO__BP) "\n\t"
#define ACO__RESUMER_BASE
#define ACO__RUNNING_BASE
#define ACO__CLOBBER_BASE "x19",
#endif

#if defined(__APPLE__) || defined(_WIN32) || defined(__ANDROID__) || defined(__Fuchsia__)
#define ACO__CLOBBER_X18
#else
#define ACO__CLOBBER_X18 "x18",
#endif
#ifdef __ARM_FP /* without it (-mgeneral-regs-only) no value of this unit lives there */
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
        "x17", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "memory", "cc" ACO__CLOBBER_FP ACO__CLOBBER_SVE
#define ACO__CLOBBERS "x2", ACO__CLOBBERS_OF_ALL /* but for x4 */

#ifdef __ARM_FEATURE_BTI_DEFAULT
#define ACO__LANDING_PAD "hint #36\n\t" /* bti j */
#else
#define ACO__LANDING_PAD
#endif

/* macOS: the system's per-thread values stand where the thread pointer says, whose lowest bits are the processor's number. */
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
ACO__FORCE_INLINE aco__where_t aco__where_in_tls(void)
{
    aco__where_t where, thread_pointer;
    __asm__ volatile("adrp %0,:gottprel:aco__thread\n\t"
                     "ldr %0,[%0,#:gottprel_lo12:aco__thread]\n\t"
                     "mrs %1,tpidr_el0\n\t"
                     "add %0,%0,%1"
                     : "=&r"(where), "=&r"(thread_pointer));
    return where;
}

/* Store the leaving side; x2 holds the way back. */
#define ACO__STORE(to)                                                                                                 \
    "mov x9,sp\n\t"                                                                                                    \
    "stp x9,x2," to(ACO__SP) "\n\t" ACO__KEEP_BP(to)

/* Load the arriving side and go there. */
#define ACO__LEAVE(from)                                                                                               \
    "ldp x9,x16," from(ACO__SP) "\n\t"                                                                                 \
    "ldr x29," from(ACO__BP) "\n\t"                                                                                    \
    ACO__NO_FRAME("x30")                                                                                               \
    "mov sp,x9\n\t"                                                                                                    \
    "br x16\n"                                                                                                         \
    ACO__FRAME_AGAIN

/* Environments of their own, if the coroutine has one: why it is done so stands in x86_64.h. */
#define ACO__FP_SWAP(to, from)                                                                                         \
    "ldrsb w9," ACO__BLOCK(ACO__STATE_BYTE) "\n\t"                                                                     \
    "tbnz w9,#31,5f\n\t"                                                                                               \
    "mrs x9,fpcr\n\t"                                                                                                  \
    "str w9," to(ACO__FPCR) "\n\t"                                                                                     \
    "ldr w10," from(ACO__FPCR) "\n\t"                                                                                  \
    "cmp w9,w10\n\t"                                                                                                   \
    "b.ne 4f\n"                                                                                                        \
    "5:\t"
#define ACO__FP_RARE(to, from)                                                                                         \
    "4:\tmsr fpcr,x10\n\t"                                                                                             \
    "b 5b\n"
#define ACO__FP_NONE(to, from)

/* What crosses a switch, in its registers. */
#define ACO__IN_REGISTERS(statement)                                                                                   \
    do {                                                                                                               \
        register struct aco_s *aco__x0 __asm__("x0") = co;                                                             \
        register aco__where_t aco__x1 __asm__("x1") = where;                                                           \
        register void *aco__x3 __asm__("x3") = value;                                                                  \
        statement;                                                                                                     \
        co = ACO__HELD(aco__x0);                                                                                       \
        value = ACO__HELD(aco__x3);                                                                                    \
    } while (0)
#define ACO__CROSSING "+r"(aco__x0), "+r"(aco__x1), "+r"(aco__x3)

/* At the jump: x0 = co, x1 = thread record, x3 = the value. At 1, from a coroutine's yield or end: the same, x0 perhaps with
 * the arrival mark; x29 and sp are ours again. */
#define ACO__RESUME(fp_swap, fp_rare)                                                                                  \
    ACO__IN_REGISTERS(__asm__ volatile("adr x2,1f\n\t"                                                                 \
                                       "str x0," ACO__THREAD(ACO__RUNNING) "\n\t"                                      \
                                       ACO__STORE(ACO__THREAD)                                                         \
                                       fp_swap(ACO__THREAD, ACO__BLOCK)                                                \
                                       ACO__LEAVE(ACO__BLOCK)                                                          \
                                       fp_rare(ACO__THREAD, ACO__BLOCK)                                                \
                                       "1:\t" ACO__LANDING_PAD                                                         \
                                       ACO__RESUMER_BASE                                                               \
                                       : ACO__CROSSING : : "x4", ACO__CLOBBERS))

/* At the jump: x0 = co, x1 = thread record and x3 = the value, which the resumer finds there. At 1, from a resume: the same,
 * perhaps of another thread; x0 perhaps with the arrival mark. */
#define ACO__YIELD(fp_swap, fp_rare)                                                                                   \
    ACO__IN_REGISTERS(__asm__ volatile("adr x2,1f\n\t"                                                                 \
                                       "str xzr," ACO__THREAD(ACO__RUNNING) "\n\t"                                     \
                                       ACO__STORE(ACO__BLOCK)                                                          \
                                       fp_swap(ACO__BLOCK, ACO__THREAD)                                                \
                                       ACO__LEAVE(ACO__THREAD)                                                         \
                                       fp_rare(ACO__BLOCK, ACO__THREAD)                                                \
                                       "1:\t" ACO__LANDING_PAD                                                         \
                                       ACO__RUNNING_BASE                                                               \
                                       : ACO__CROSSING : : "x4", ACO__CLOBBERS))

/* From coroutine to coroutine: what a yield stores, what a resume loads. At 1: as after a yield. */
#define ACO__TRANSFER(fp_swap, fp_rare)                                                                                \
    ACO__IN_REGISTERS(__asm__ volatile("adr x2,1f\n\t"                                                                 \
                                       "str x0," ACO__THREAD(ACO__RUNNING) "\n\t"                                      \
                                       ACO__STORE(ACO__LEAVING)                                                        \
                                       fp_swap(ACO__LEAVING, ACO__BLOCK)                                               \
                                       ACO__LEAVE(ACO__BLOCK)                                                          \
                                       fp_rare(ACO__LEAVING, ACO__BLOCK)                                               \
                                       "1:\t" ACO__LANDING_PAD                                                         \
                                       ACO__RUNNING_BASE                                                               \
                                       : ACO__CROSSING, "+r"(leaving) : : ACO__CLOBBERS))
#define ACO__LEAVING_REGISTER __asm__("x4")

/* Without a way back. */
#define ACO__EXIT                                                                                                      \
    do {                                                                                                               \
        register uintptr_t aco__x0 __asm__("x0") = word;                                                               \
        register aco__where_t aco__x1 __asm__("x1") = where;                                                           \
        register void *aco__x3 __asm__("x3") = value;                                                                  \
        __asm__ volatile("str xzr," ACO__THREAD(ACO__RUNNING) "\n\t"                                                   \
                         ACO__LEAVE(ACO__THREAD)                                                                       \
                         : : "r"(aco__x0), "r"(aco__x1), "r"(aco__x3) : "memory");                                     \
    } while (0)
#define ACO__ENTER                                                                                                     \
    do {                                                                                                               \
        register struct aco_s *aco__x4 __asm__("x4") = co;                                                             \
        register uintptr_t aco__x0 __asm__("x0") = word;                                                               \
        register aco__where_t aco__x1 __asm__("x1") = where;                                                           \
        register void *aco__x3 __asm__("x3") = value;                                                                  \
        __asm__ volatile(ACO__LEAVE(ACO__ENTERED)                                                                      \
                         : : "r"(aco__x4), "r"(aco__x0), "r"(aco__x1), "r"(aco__x3) : "memory");                       \
    } while (0)

/* ---- Generators: the other side's context is in registers, and so is the way back ----
 *
 * At the jump and on arrival, label 1:
 *   x0    where the side that leaves goes on, 0 when it has ended; before, where the other side does
 *   x1    the leaving side's x29
 *   x2    the value passed
 *   x3    the leaving side's sp (own stack)
 *   x4    the leaving side's x19: with clang perhaps a base pointer, which cannot be a clobber; one protocol for all
 * An exchange of registers, since no memory is the generator's and the consumer's alike. */
#define ACO__PEER_BASE __asm__("x4")
#define ACO__PEER(declare_sp)                                                                                          \
    register void *aco__x0 __asm__("x0") = pc;                                                                         \
    register void *aco__x1 __asm__("x1") = bp;                                                                         \
    register void *aco__x2 __asm__("x2") = value;                                                                      \
    declare_sp
#define ACO__PEER_SP register void *aco__x3 __asm__("x3") = sp
#define ACO__SWAP(one, other) "mov x9," one "\n\tmov " one "," other "\n\tmov " other ",x9\n\t"
#define ACO__EXCHANGE                                                                                                  \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile("mov x16,x0\n\t"                                                                              \
                         "adr x0,1f\n\t"                                                                               \
                         ACO__SWAP("x19", "x4") ACO__NO_FRAME("x30") ACO__SWAP("x29", "x1") ACO__SWAP("sp", "x3")      \
                         "br x16\n"                                                                                    \
                         ACO__FRAME_AGAIN                                                                              \
                         "1:\t" ACO__LANDING_PAD                                                                       \
                         : "+r"(aco__x0), "+r"(aco__x1), "+r"(aco__x3), "+r"(base), "+r"(aco__x2) : : ACO__CLOBBERS_OF_ALL); \
        pc = ACO__HELD(aco__x0);                                                                                       \
        bp = ACO__HELD(aco__x1);                                                                                       \
        sp = ACO__HELD(aco__x3);                                                                                       \
        value = ACO__HELD(aco__x2);                                                                                    \
    } while (0)

/* For the last time: nothing of the side that leaves is kept. */
#define ACO__EXCHANGE_LAST                                                                                             \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile("mov x19,x4\n\t"                                                                              \
                         "mov x29,x1\n\t"                                                                              \
                         ACO__NO_FRAME("x30")                                                                          \
                         "mov sp,x3\n\t"                                                                               \
                         "mov x16,x0\n\t"                                                                              \
                         "mov x0,xzr\n\t"                                                                              \
                         "br x16\n"                                                                                    \
                         ACO__FRAME_AGAIN                                                                              \
                         : : "r"(aco__x0), "r"(aco__x1), "r"(aco__x3), "r"(base), "r"(aco__x2) : "x16", "memory");     \
    } while (0)

/* What reads or moves the stack pointer stands between ACO__SETTLE_STACKs (../generator.h), and for gcc it says so by an
 * operand. */
#ifdef __clang__
#define ACO__MOVES_STACK
#else
__extension__ register void *aco__stack_pointer __asm__("sp");
#define ACO__MOVES_STACK , "+k"(aco__stack_pointer)
#endif

/* The same on one stack: the generator's frames stand right below the consumer's, and sp stays where it is, below both; in the
 * consumer 64 lower, as gcc stores its calls' arguments, from the ninth on, at sp without moving it.
 * The consumer comes only while they are the innermost: while sp is what it was when they were left (x3). Else x0 = 1. */
#define ACO__ARGUMENTS_ROOM 64
#define ACO__NESTED_RESUME                                                                                             \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile("mov x9,sp\n\t"                                                                               \
                         "cmp x9,x3\n\t"                                                                               \
                         "b.ne 2f\n\t"                                                                                 \
                         "add sp,sp,#64\n\t"                                                                           \
                         "mov x16,x0\n\t"                                                                              \
                         "adr x0,1f\n\t"                                                                               \
                         ACO__SWAP("x19", "x4") ACO__NO_FRAME("x30") ACO__SWAP("x29", "x1")                            \
                         "br x16\n"                                                                                    \
                         ACO__FRAME_AGAIN                                                                              \
                         "2:\tmov x0,#1\n\t"                                                                           \
                         "b 3f\n"                                                                                      \
                         "1:\t" ACO__LANDING_PAD                                                                       \
                         "sub sp,sp,#64\n\t"                                                                           \
                         "mov x3,sp\n"                                                                                 \
                         "3:"                                                                                          \
                         : "+r"(aco__x0), "+r"(aco__x1), "+r"(aco__x3), "+r"(base), "+r"(aco__x2) ACO__MOVES_STACK : : ACO__CLOBBERS_OF_ALL); \
        pc = ACO__HELD(aco__x0);                                                                                       \
        bp = ACO__HELD(aco__x1);                                                                                       \
        sp = ACO__HELD(aco__x3);                                                                                       \
        value = ACO__HELD(aco__x2);                                                                                    \
    } while (0)
#define ACO__NESTED_YIELD                                                                                              \
    do {                                                                                                               \
        ACO__PEER();                                                                                                   \
        __asm__ volatile("mov x16,x0\n\t"                                                                              \
                         "adr x0,1f\n\t"                                                                               \
                         ACO__SWAP("x19", "x4") ACO__NO_FRAME("x30") ACO__SWAP("x29", "x1")                            \
                         "br x16\n"                                                                                    \
                         ACO__FRAME_AGAIN                                                                              \
                         "1:\t" ACO__LANDING_PAD                                                                       \
                         : "+r"(aco__x0), "+r"(aco__x1), "+r"(base), "+r"(aco__x2) ACO__MOVES_STACK : : "x3", ACO__CLOBBERS_OF_ALL); \
        pc = ACO__HELD(aco__x0);                                                                                       \
        bp = ACO__HELD(aco__x1);                                                                                       \
        value = ACO__HELD(aco__x2);                                                                                    \
    } while (0)
#define ACO__NESTED_LAST                                                                                               \
    do {                                                                                                               \
        ACO__PEER();                                                                                                   \
        __asm__ volatile("mov x19,x4\n\t"                                                                              \
                         "mov x29,x1\n\t"                                                                              \
                         ACO__NO_FRAME("x30")                                                                          \
                         "mov x16,x0\n\t"                                                                              \
                         "mov x0,xzr\n\t"                                                                              \
                         "br x16\n"                                                                                    \
                         ACO__FRAME_AGAIN                                                                              \
                         : : "r"(aco__x0), "r"(aco__x1), "r"(base), "r"(aco__x2) : "x16", "memory");                   \
    } while (0)

/* Makes room for a generator below the consumer's frame: sp := the stack pointer - 128 - 64, which it becomes too; here := this
 * place, bp := x29, for the unwinder. Back: the stack pointer := outer. */
#define ACO__NESTED_BEGIN                                                                                              \
    __asm__ volatile("adr %2,1f\n"                                                                                     \
                     "1:\tsub sp,sp,#192\n\t"                                                                          \
                     "mov %0,sp\n\t"                                                                                   \
                     "mov %1,x29"                                                                                      \
                     : "=&r"(sp), "=&r"(bp), "=&r"(here) ACO__MOVES_STACK : : "memory")
#define ACO__NESTED_END(outer)                                                                                         \
    __asm__ volatile("mov sp,%0" : "+r"(outer) ACO__MOVES_STACK : : "memory")
#define ACO__STACK_POINTER(sp, zero)                                                                                   \
    __asm__ volatile("mov %0,sp\n\t"                                                                                   \
                     "mov %1,xzr"                                                                                      \
                     : "=&r"(sp), "=&r"(zero) ACO__MOVES_STACK)

/* How a generator's function is entered: by aco__generator_begin, on what stands at its stack pointer,
 *   16   its argument, for x5
 *    8   the return address, for x30
 *    0   the function                            <- sp, a multiple of 16; entered with 32 more */
#define ACO__GENERATOR_PARAMETERS                                                                                      \
    void *aco__pc, void *aco__bp, __attribute__((unused)) void *aco__value, void *aco__sp, void *aco__base
enum { ACO__START_FUNCTION = 0, ACO__START_RETURN = 1, ACO__START_ARGUMENT = 2, ACO__START_WORDS = 6 };

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

/* A function that a switch enters from its beginning: what it finds in the registers that cross every switch. */
#define ACO__ARRIVAL_ABI
#define ACO__ARRIVAL_PARAMETERS                                                                                        \
    __attribute__((unused)) uintptr_t word, __attribute__((unused)) aco__where_t aco__arrival_where,                   \
        __attribute__((unused)) uintptr_t aco__way_back, __attribute__((unused)) void *value

#endif
