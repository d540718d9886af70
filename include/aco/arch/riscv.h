/* The switch on RISC-V, little or big endian, RV64 and RV32, with or without F, D, Zfinx and V. Contract and rules: ../switch.h.
 * Source of the register roles: RISC-V ELF psABI 1.0, chapter 1 (Register Convention).
 *
 * register               in the ABI      here
 * sp                     callee-saved    stored and loaded
 * s0                     callee-saved    stored and loaded: the frame pointer cannot be a clobber
 * s1                     callee-saved    a clobber; with clang stored and loaded: it is the base pointer of over-aligned
 *                                        frames with variable parts, and clang lets an asm clobber it there and crashes
 * s2-s11                 callee-saved    clobbers: the compiler saves those that are live, and only those
 * a0                     scratch         the control block's address, carried across the switch
 * a1                     scratch         the thread record's address; the same on both sides
 * a2                     scratch         the way back, on its way to memory
 * a3                     scratch         the value passed, carried across the switch
 * a4                     scratch         in a transfer the block of the coroutine that leaves; else a clobber
 * t0                     scratch         control words
 * t1                     scratch         control words; where to go on: a jump through ra or t0 (x1, x5) is predicted as a
 *                                        return, and one through t2 (x7) looks for no landing pad
 * a5-a7, t2-t6           scratch         clobbers
 * ra                     scratch         a clobber
 * gp                     unallocatable   untouched
 * tp                     thread pointer  untouched
 * fs0-fs11               callee-saved    clobbers, like the rest of f0-f31; in ABIs without float arguments they are scratch
 * v0-v31, vl, vtype      scratch         clobbers where the vector unit is compiled in; with clang always
 * vxrm                   scratch         the same; vxsat is status
 * frm                    kept            kept apart when `fp` is 1; else common to all, as the user asked
 * fflags                 scratch         as they are
 *
 * There is no red zone, and the stack pointer is always a multiple of 16. Landing pads (Zicfilp) are unlabelled. */
#ifndef ACO_ARCH_RISCV_H
#define ACO_ARCH_RISCV_H

#if __riscv_xlen == 64
#define ACO__ARCH "riscv64"
#else
#define ACO__ARCH "riscv32"
#endif

#if defined(__riscv_shadow_stack)
#error "acorn: return addresses are kept on a shadow stack of the thread's (Zicfiss), which is not switched"
#elif defined(__riscv_landing_pad_func_sig)
#error "acorn: landing pads labelled by the function's type are not served: -mcf-branch-label-scheme=unlabeled"
#elif defined(__riscv_32e) || defined(__riscv_e)
#error "acorn: the base ISA E, of 16 registers, is not served"
#elif defined(__has_feature)
#if __has_feature(shadow_call_stack)
#error "acorn: -fsanitize=shadow-call-stack keeps return addresses on a stack of the thread's, which is not switched"
#endif
#endif

/* Operands: a field of the control block (a0), of the one that a transfer leaves or that is entered out of line (a4), of the
 * thread record (a1). Offsets asserted in src/core.c. */
#define ACO__BLOCK(offset) offset "(a0)"
#define ACO__LEAVING(offset) offset "(a4)"
#define ACO__ENTERED(offset) ACO__LEAVING(offset)
#define ACO__THREAD(offset) offset "(a1)"
#if __riscv_xlen == 64
#define ACO__LOAD "ld "
#define ACO__SAVE "sd "
#define ACO__SP "0"
#define ACO__PC "8"
#define ACO__BP "16"
#define ACO__BASE "24"
#define ACO__FRM "32"
#define ACO__STATE_BYTE "38"
#define ACO__RUNNING "40"
#else
#define ACO__LOAD "lw "
#define ACO__SAVE "sw "
#define ACO__SP "0"
#define ACO__PC "4"
#define ACO__BP "8"
#define ACO__BASE "12"
#define ACO__FRM "16"
#define ACO__STATE_BYTE "22"
#define ACO__RUNNING "24"
#endif

#define ACO__FP_STATUS 0 /* frm is read without it */

/* A stack's top is 64-byte aligned. */
#define ACO__ENTRY_BELOW_TOP 16
#define ACO__BEGINS_IN_ASSEMBLY

#ifdef __clang__
#define ACO__KEEP_BASE(to) ACO__SAVE "s1," to(ACO__BASE) "\n\t"
#define ACO__RESUMER_BASE ACO__LOAD "s1," ACO__THREAD(ACO__BASE) "\n\t"
#define ACO__RUNNING_BASE ACO__LOAD "t0," ACO__THREAD(ACO__RUNNING) "\n\t" ACO__LOAD "s1," ACO__BASE "(t0)\n\t"
#define ACO__CLOBBER_BASE
#else
#define ACO__KEEP_BASE(to)
#define ACO__RESUMER_BASE
#define ACO__RUNNING_BASE
#define ACO__CLOBBER_BASE "s1",
#endif

#ifdef __riscv_flen /* without it no value lives there */
#define ACO__CLOBBER_FP                                                                                                \
    , "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15", "f16",     \
        "f17", "f18", "f19", "f20", "f21", "f22", "f23", "f24", "f25", "f26", "f27", "f28", "f29", "f30", "f31"
#else
#define ACO__CLOBBER_FP
#endif
/* clang takes these names in every unit, so that a function with a target attribute is served too; gcc does not. */
#if defined(__riscv_v_elen) || defined(__clang__)
#define ACO__CLOBBER_VECTOR                                                                                            \
    , "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",     \
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "vl", \
        "vtype", "vxrm"
#else
#define ACO__CLOBBER_VECTOR
#endif
#define ACO__CLOBBERS_OF_ALL                                                                                           \
    ACO__CLOBBER_BASE "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6",  \
        "s7", "s8", "s9", "s10", "s11", "memory" ACO__CLOBBER_FP ACO__CLOBBER_VECTOR
#define ACO__CLOBBERS "a2", ACO__CLOBBERS_OF_ALL /* but for a4 */

#ifdef __riscv_landing_pad
#define ACO__ALIGN_PAD ".p2align 2\n"
#define ACO__LANDING_PAD "auipc zero,0\n\t" /* lpad 0, for assemblers that do not know it */
#else
#define ACO__ALIGN_PAD
#define ACO__LANDING_PAD
#endif

/* The thread record's address. */

ACO__FORCE_INLINE aco__where_t aco__where_in_tls(void)
{
    aco__where_t where;
    __asm__ volatile("la.tls.ie %0,aco__thread\n\t"
                     "add %0,%0,tp"
                     : "=r"(where));
    return where;
}

/* Store the leaving side; a2 holds the way back. */
#define ACO__STORE(to)                                                                                                 \
    ACO__SAVE "sp," to(ACO__SP) "\n\t"                                                                                 \
    ACO__SAVE "a2," to(ACO__PC) "\n\t"                                                                                 \
    ACO__SAVE "s0," to(ACO__BP) "\n\t" ACO__KEEP_BASE(to)

/* Load the arriving side and go there. Between the first and the last of these the unwinder has nothing to hold on to. */
#define ACO__LEAVE(from)                                                                                               \
    ACO__LOAD "t1," from(ACO__PC) "\n\t"                                                                               \
    ACO__LOAD "sp," from(ACO__SP) "\n\t"                                                                               \
    ACO__LOAD "s0," from(ACO__BP) "\n\t"                                                                               \
    "jr t1\n"

/* Environments of their own, if the coroutine has one: why it is done so stands in x86_64.h. */
#if defined(__riscv_flen) || defined(__riscv_zfinx)
#define ACO__HAS_FRM 1
#define ACO__FP_SWAP(to, from)                                                                                         \
    "lb t0," ACO__BLOCK(ACO__STATE_BYTE) "\n\t"                                                                        \
    "bltz t0,5f\n\t"                                                                                                   \
    "frrm t0\n\t"                                                                                                      \
    "sw t0," to(ACO__FRM) "\n\t"                                                                                       \
    "lw t1," from(ACO__FRM) "\n\t"                                                                                     \
    "bne t0,t1,4f\n"                                                                                                   \
    "5:\t"
#define ACO__FP_RARE(to, from)                                                                                         \
    "4:\tfsrm t1\n\t"                                                                                                  \
    "j 5b\n"
#else
#define ACO__FP_SWAP(to, from)
#define ACO__FP_RARE(to, from)
#endif
#define ACO__FP_NONE(to, from)

/* What crosses a switch, in its registers. */
#define ACO__IN_REGISTERS(statement)                                                                                   \
    do {                                                                                                               \
        register struct aco_s *aco__a0 __asm__("a0") = co;                                                             \
        register aco__where_t aco__a1 __asm__("a1") = where;                                                           \
        register void *aco__a3 __asm__("a3") = value;                                                                  \
        statement;                                                                                                     \
        co = ACO__HELD(aco__a0);                                                                                       \
        value = ACO__HELD(aco__a3);                                                                                    \
    } while (0)
#define ACO__CROSSING "+r"(aco__a0), "+r"(aco__a1), "+r"(aco__a3)

/* At the jump: a0 = co, a1 = thread record, a3 = the value. At 1, from a coroutine's yield or end: the same, a0 perhaps with
 * the arrival mark; s0 and sp are ours again. */
#define ACO__RESUME(fp_swap, fp_rare)                                                                                  \
    ACO__IN_REGISTERS(__asm__ volatile("lla a2,1f\n\t"                                                                 \
                                       ACO__SAVE "a0," ACO__THREAD(ACO__RUNNING) "\n\t"                                \
                                       ACO__STORE(ACO__THREAD)                                                         \
                                       fp_swap(ACO__THREAD, ACO__BLOCK)                                                \
                                       ACO__LEAVE(ACO__BLOCK)                                                          \
                                       fp_rare(ACO__THREAD, ACO__BLOCK)                                                \
                                       ACO__ALIGN_PAD "1:\t" ACO__LANDING_PAD                                          \
                                       ACO__RESUMER_BASE                                                               \
                                       : ACO__CROSSING : : "a4", ACO__CLOBBERS))

/* At the jump: a0 = co, a1 = thread record and a3 = the value, which the resumer finds there. At 1, from a resume: the same,
 * perhaps of another thread; a0 perhaps with the arrival mark. */
#define ACO__YIELD(fp_swap, fp_rare)                                                                                   \
    ACO__IN_REGISTERS(__asm__ volatile("lla a2,1f\n\t"                                                                 \
                                       ACO__SAVE "zero," ACO__THREAD(ACO__RUNNING) "\n\t"                              \
                                       ACO__STORE(ACO__BLOCK)                                                          \
                                       fp_swap(ACO__BLOCK, ACO__THREAD)                                                \
                                       ACO__LEAVE(ACO__THREAD)                                                         \
                                       fp_rare(ACO__BLOCK, ACO__THREAD)                                                \
                                       ACO__ALIGN_PAD "1:\t" ACO__LANDING_PAD                                          \
                                       ACO__RUNNING_BASE                                                               \
                                       : ACO__CROSSING : : "a4", ACO__CLOBBERS))

/* From coroutine to coroutine: what a yield stores, what a resume loads. At 1: as after a yield. */
#define ACO__TRANSFER(fp_swap, fp_rare)                                                                                \
    ACO__IN_REGISTERS(__asm__ volatile("lla a2,1f\n\t"                                                                 \
                                       ACO__SAVE "a0," ACO__THREAD(ACO__RUNNING) "\n\t"                                \
                                       ACO__STORE(ACO__LEAVING)                                                        \
                                       fp_swap(ACO__LEAVING, ACO__BLOCK)                                               \
                                       ACO__LEAVE(ACO__BLOCK)                                                          \
                                       fp_rare(ACO__LEAVING, ACO__BLOCK)                                               \
                                       ACO__ALIGN_PAD "1:\t" ACO__LANDING_PAD                                          \
                                       ACO__RUNNING_BASE                                                               \
                                       : ACO__CROSSING, "+r"(leaving) : : ACO__CLOBBERS))
#define ACO__LEAVING_REGISTER __asm__("a4")

/* Without a way back. */
#define ACO__EXIT                                                                                                      \
    do {                                                                                                               \
        register uintptr_t aco__a0 __asm__("a0") = word;                                                               \
        register aco__where_t aco__a1 __asm__("a1") = where;                                                           \
        register void *aco__a3 __asm__("a3") = value;                                                                  \
        __asm__ volatile(ACO__SAVE "zero," ACO__THREAD(ACO__RUNNING) "\n\t"                                            \
                         ACO__LEAVE(ACO__THREAD)                                                                       \
                         : : "r"(aco__a0), "r"(aco__a1), "r"(aco__a3) : "memory");                                     \
    } while (0)
#define ACO__ENTER                                                                                                     \
    do {                                                                                                               \
        register struct aco_s *aco__a4 __asm__("a4") = co;                                                             \
        register uintptr_t aco__a0 __asm__("a0") = word;                                                               \
        register aco__where_t aco__a1 __asm__("a1") = where;                                                           \
        register void *aco__a3 __asm__("a3") = value;                                                                  \
        __asm__ volatile(ACO__LEAVE(ACO__ENTERED)                                                                      \
                         : : "r"(aco__a4), "r"(aco__a0), "r"(aco__a1), "r"(aco__a3) : "memory");                       \
    } while (0)

/* ---- Generators: the other side's context is in registers, and so is the way back ----
 *
 * At the jump and on arrival, label 1:
 *   a0    where the side that leaves goes on, 0 when it has ended; before, where the other side does
 *   a1    the leaving side's s0
 *   a2    the value passed
 *   a3    the leaving side's sp (own stack)
 *   a4    the leaving side's s1: with clang perhaps a base pointer, which cannot be a clobber; one protocol for all
 * An exchange of registers, since no memory is the generator's and the consumer's alike. */
#define ACO__PEER_BASE __asm__("a4")
#define ACO__PEER(declare_sp)                                                                                          \
    register void *aco__a0 __asm__("a0") = pc;                                                                         \
    register void *aco__a1 __asm__("a1") = bp;                                                                         \
    register void *aco__a2 __asm__("a2") = value;                                                                      \
    declare_sp
#define ACO__PEER_SP register void *aco__a3 __asm__("a3") = sp
#define ACO__SWAP(one, other) "mv t0," one "\n\tmv " one "," other "\n\tmv " other ",t0\n\t"
#define ACO__EXCHANGE                                                                                                  \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile("mv t1,a0\n\t"                                                                                \
                         "lla a0,1f\n\t"                                                                               \
                         ACO__SWAP("s0", "a1") ACO__SWAP("s1", "a4") ACO__SWAP("sp", "a3")                             \
                         "jr t1\n"                                                                                     \
                         ACO__ALIGN_PAD "1:\t" ACO__LANDING_PAD                                                        \
                         : "+r"(aco__a0), "+r"(aco__a1), "+r"(aco__a3), "+r"(base), "+r"(aco__a2) : : ACO__CLOBBERS_OF_ALL); \
        pc = ACO__HELD(aco__a0);                                                                                       \
        bp = ACO__HELD(aco__a1);                                                                                       \
        sp = ACO__HELD(aco__a3);                                                                                       \
        value = ACO__HELD(aco__a2);                                                                                    \
    } while (0)

/* For the last time: nothing of the side that leaves is kept. */
#define ACO__EXCHANGE_LAST                                                                                             \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile("mv s0,a1\n\t"                                                                                \
                         "mv s1,a4\n\t"                                                                                \
                         "mv sp,a3\n\t"                                                                                \
                         "mv t1,a0\n\t"                                                                                \
                         "li a0,0\n\t"                                                                                 \
                         "jr t1"                                                                                       \
                         : : "r"(aco__a0), "r"(aco__a1), "r"(aco__a3), "r"(base), "r"(aco__a2) : "t1", "memory");      \
    } while (0)

/* What reads or moves the stack pointer stands between ACO__SETTLE_STACKs (../generator.h), and for gcc it says so by an
 * operand. */
#ifdef __clang__
#define ACO__MOVES_STACK
#else
__extension__ register void *aco__stack_pointer __asm__("sp");
#define ACO__MOVES_STACK , "+r"(aco__stack_pointer)
#endif

/* The same on one stack: the generator's frames stand right below the consumer's, and sp stays where it is, below both; in the
 * consumer 64 lower, as gcc stores its calls' arguments, from the ninth on, at sp without moving it.
 * The consumer comes only while they are the innermost: while sp is what it was when they were left (a3). Else a0 = 1. */
#define ACO__ARGUMENTS_ROOM 64
#define ACO__NESTED_RESUME                                                                                             \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile("bne sp,a3,2f\n\t"                                                                            \
                         "addi sp,sp,64\n\t"                                                                           \
                         "mv t1,a0\n\t"                                                                                \
                         "lla a0,1f\n\t"                                                                               \
                         ACO__SWAP("s0", "a1") ACO__SWAP("s1", "a4")                                                   \
                         "jr t1\n"                                                                                     \
                         "2:\tli a0,1\n\t"                                                                             \
                         "j 3f\n"                                                                                      \
                         ACO__ALIGN_PAD "1:\t" ACO__LANDING_PAD                                                        \
                         "addi sp,sp,-64\n\t"                                                                          \
                         "mv a3,sp\n"                                                                                  \
                         "3:"                                                                                          \
                         : "+r"(aco__a0), "+r"(aco__a1), "+r"(aco__a3), "+r"(base), "+r"(aco__a2) ACO__MOVES_STACK     \
                         : : ACO__CLOBBERS_OF_ALL);                                                                    \
        pc = ACO__HELD(aco__a0);                                                                                       \
        bp = ACO__HELD(aco__a1);                                                                                       \
        sp = ACO__HELD(aco__a3);                                                                                       \
        value = ACO__HELD(aco__a2);                                                                                    \
    } while (0)
#define ACO__NESTED_YIELD                                                                                              \
    do {                                                                                                               \
        ACO__PEER();                                                                                                   \
        __asm__ volatile("mv t1,a0\n\t"                                                                                \
                         "lla a0,1f\n\t"                                                                               \
                         ACO__SWAP("s0", "a1") ACO__SWAP("s1", "a4")                                                   \
                         "jr t1\n"                                                                                     \
                         ACO__ALIGN_PAD "1:\t" ACO__LANDING_PAD                                                        \
                         : "+r"(aco__a0), "+r"(aco__a1), "+r"(base), "+r"(aco__a2) ACO__MOVES_STACK                    \
                         : : "a3", ACO__CLOBBERS_OF_ALL);                                                              \
        pc = ACO__HELD(aco__a0);                                                                                       \
        bp = ACO__HELD(aco__a1);                                                                                       \
        value = ACO__HELD(aco__a2);                                                                                    \
    } while (0)
#define ACO__NESTED_LAST                                                                                               \
    do {                                                                                                               \
        ACO__PEER();                                                                                                   \
        __asm__ volatile("mv s0,a1\n\t"                                                                                \
                         "mv s1,a4\n\t"                                                                                \
                         "mv t1,a0\n\t"                                                                                \
                         "li a0,0\n\t"                                                                                 \
                         "jr t1"                                                                                       \
                         : : "r"(aco__a0), "r"(aco__a1), "r"(base), "r"(aco__a2) : "t1", "memory");                    \
    } while (0)

/* Makes room for a generator below the consumer's frame: sp := the stack pointer - 128 - 64, which it becomes too; here := this
 * place, bp := s0, for the unwinder. Back: the stack pointer := outer. */
#define ACO__NESTED_BEGIN                                                                                              \
    __asm__ volatile("lla %2,1f\n"                                                                                     \
                     "1:\taddi sp,sp,-192\n\t"                                                                         \
                     "mv %0,sp\n\t"                                                                                    \
                     "mv %1,s0"                                                                                        \
                     : "=&r"(sp), "=&r"(bp), "=&r"(here) ACO__MOVES_STACK : : "memory")
#define ACO__NESTED_END(outer)                                                                                         \
    __asm__ volatile("mv sp,%0" : "+r"(outer) ACO__MOVES_STACK : : "memory")
#define ACO__STACK_POINTER(sp, zero)                                                                                   \
    __asm__ volatile("mv %0,sp\n\t"                                                                                    \
                     "li %1,0"                                                                                         \
                     : "=&r"(sp), "=&r"(zero) ACO__MOVES_STACK)

/* How a generator's function is entered: by aco__generator_begin, on what stands at its stack pointer, in words,
 *   2   its argument, for a5
 *   1   the return address, for ra
 *   0   the function                            <- sp, a multiple of 16; entered with 32 bytes more */
#define ACO__GENERATOR_PARAMETERS                                                                                      \
    void *aco__pc, void *aco__bp, __attribute__((unused)) void *aco__value, void *aco__sp, void *aco__base
enum { ACO__START_FUNCTION = 0, ACO__START_RETURN = 1, ACO__START_ARGUMENT = 2, ACO__START_WORDS = 48 / sizeof(void *) };

ACO__FORCE_INLINE void aco__fp_read(uint32_t *control, uint16_t *control2)
{
    uintptr_t frm = 0;
#ifdef ACO__HAS_FRM
    __asm__ volatile("frrm %0" : "=r"(frm));
#endif
    *control = (uint32_t)frm;
    *control2 = 0;
}

ACO__FORCE_INLINE void aco__fp_load(const uint32_t *control, const uint16_t *control2)
{
    (void)control, (void)control2;
#ifdef ACO__HAS_FRM
    __asm__ volatile("fsrm %0" : : "r"((uintptr_t)*control));
#endif
}

/* A function that a switch enters from its beginning: what it finds in the registers that cross every switch. */
#define ACO__ARRIVAL_ABI
#define ACO__ARRIVAL_PARAMETERS                                                                                        \
    __attribute__((unused)) uintptr_t word, __attribute__((unused)) aco__where_t aco__arrival_where,                   \
        __attribute__((unused)) uintptr_t aco__way_back, __attribute__((unused)) void *value

#endif
