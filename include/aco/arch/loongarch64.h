/* The switch on LoongArch, LP64, with or without floating point, LSX and LASX. Contract and rules: ../switch.h.
 * Source of the register roles: Procedure Call Standard for the LoongArch Architecture (20250521), tables 1 and 2.
 *
 * register               in the ABI      here
 * sp                     callee-saved    stored and loaded
 * fp (r22)               callee-saved    stored and loaded: the frame pointer cannot be a clobber
 * s8 (r31)               callee-saved    a clobber; with clang stored and loaded: it is the base pointer of over-aligned
 *                                        frames with variable parts, and clang lets an asm clobber it there and crashes
 * s0-s7                  callee-saved    clobbers: the compiler saves those that are live, and only those
 * a0                     scratch         the control block's address, carried across the switch
 * a1                     scratch         the thread record's address; the same on both sides
 * a2                     scratch         the way back, on its way to memory
 * a3                     scratch         the value passed, carried across the switch
 * a4                     scratch         in a transfer the block of the coroutine that leaves; else a clobber
 * t0, t2                 scratch         control words
 * t1                     scratch         control words; where to go on: a jump through ra (r1) is predicted as a return
 * a5-a7, t3-t8           scratch         clobbers
 * ra                     scratch         a clobber
 * tp, r21                the platform's  untouched
 * fs0-fs7                callee-saved    clobbers, like the rest of f0-f31, the low parts of the vector registers, whose high
 *                                        parts are scratch: a clobber of the low part is one of the whole
 * fcc0-fcc7              scratch         clobbers
 * FCSR0, bits 0-4, 8-9   not told        trap enables and rounding mode; kept apart when `fp` is 1, as the C library's fenv.h
 *                                        has it; else common to all, as the user asked
 * FCSR0, the others      status          as they are
 *
 * There is no red zone, and the stack pointer is always a multiple of 16. */
#ifndef ACO_ARCH_LOONGARCH64_H
#define ACO_ARCH_LOONGARCH64_H

#define ACO__ARCH "loongarch64"

/* Operands: a field of the control block (a0), of the one that a transfer leaves or that is entered out of line (a4), of the
 * thread record (a1). Offsets asserted in src/core.c. */
#define ACO__BLOCK(offset) "$a0," offset
#define ACO__LEAVING(offset) "$a4," offset
#define ACO__ENTERED(offset) ACO__LEAVING(offset)
#define ACO__THREAD(offset) "$a1," offset
#define ACO__SP "0"
#define ACO__PC "8"
#define ACO__BP "16"
#define ACO__BASE "24"
#define ACO__FCSR "32"
#define ACO__STATE_BYTE "38"
#define ACO__RUNNING "40"

#define ACO__FP_STATUS (~0x31f) /* FCSR0 but for the bits that control */

/* A stack's top is 64-byte aligned. */
#define ACO__ENTRY_BELOW_TOP 16
#define ACO__BEGINS_IN_ASSEMBLY

#ifdef __clang__
#define ACO__KEEP_BASE(to) "st.d $s8," to(ACO__BASE) "\n\t"
#define ACO__RESUMER_BASE "ld.d $s8," ACO__THREAD(ACO__BASE) "\n\t"
#define ACO__RUNNING_BASE "ld.d $t0," ACO__THREAD(ACO__RUNNING) "\n\tld.d $s8,$t0," ACO__BASE "\n\t"
#define ACO__CLOBBER_BASE
#else
#define ACO__KEEP_BASE(to)
#define ACO__RESUMER_BASE
#define ACO__RUNNING_BASE
#define ACO__CLOBBER_BASE "$s8",
#endif

#if __loongarch_frlen /* without it no value lives there */
#define ACO__CLOBBER_FP                                                                                                \
    , "$f0", "$f1", "$f2", "$f3", "$f4", "$f5", "$f6", "$f7", "$f8", "$f9", "$f10", "$f11", "$f12", "$f13", "$f14",    \
        "$f15", "$f16", "$f17", "$f18", "$f19", "$f20", "$f21", "$f22", "$f23", "$f24", "$f25", "$f26", "$f27",        \
        "$f28", "$f29", "$f30", "$f31", "$fcc0", "$fcc1", "$fcc2", "$fcc3", "$fcc4", "$fcc5", "$fcc6", "$fcc7"
#else
#define ACO__CLOBBER_FP
#endif
#define ACO__CLOBBERS_OF_ALL                                                                                           \
    ACO__CLOBBER_BASE "$ra", "$t0", "$t1", "$t2", "$t3", "$t4", "$t5", "$t6", "$t7", "$t8", "$a5", "$a6", "$a7", "$s0", \
        "$s1", "$s2", "$s3", "$s4", "$s5", "$s6", "$s7", "memory" ACO__CLOBBER_FP
#define ACO__CLOBBERS "$a2", ACO__CLOBBERS_OF_ALL /* but for a4 */

/* The thread record's address. */

ACO__FORCE_INLINE aco__where_t aco__where_in_tls(void)
{
    aco__where_t where;
    __asm__ volatile("la.tls.ie %0,aco__thread\n\t"
                     "add.d %0,%0,$tp"
                     : "=r"(where));
    return where;
}

/* Store the leaving side; a2 holds the way back. */
#define ACO__STORE(to)                                                                                                 \
    "st.d $sp," to(ACO__SP) "\n\t"                                                                                     \
    "st.d $a2," to(ACO__PC) "\n\t"                                                                                     \
    "st.d $fp," to(ACO__BP) "\n\t" ACO__KEEP_BASE(to)

/* Load the arriving side and go there. Between the first and the last of these the unwinder has nothing to hold on to. */
#define ACO__LEAVE(from)                                                                                               \
    "ld.d $t1," from(ACO__PC) "\n\t"                                                                                   \
    "ld.d $sp," from(ACO__SP) "\n\t"                                                                                   \
    "ld.d $fp," from(ACO__BP) "\n\t"                                                                                   \
    "jr $t1\n"

/* Environments of their own, if the coroutine has one: why it is done so stands in x86_64.h. The causes of the last operation
 * are cleared: one whose trap is enabled by the other side must not trap there. */
#if __loongarch_frlen
#define ACO__FP_SWAP(to, from)                                                                                         \
    "ld.b $t0," ACO__BLOCK(ACO__STATE_BYTE) "\n\t"                                                                     \
    "bltz $t0,5f\n\t"                                                                                                  \
    "movfcsr2gr $t0,$fcsr0\n\t"                                                                                        \
    "st.w $t0," to(ACO__FCSR) "\n\t"                                                                                   \
    "ld.w $t1," from(ACO__FCSR) "\n\t"                                                                                 \
    "xor $t2,$t0,$t1\n\t"                                                                                              \
    "andi $t2,$t2,0x31f\n\t"                                                                                           \
    "bnez $t2,4f\n"                                                                                                    \
    "5:\t"
#define ACO__FP_RARE(to, from)                                                                                         \
    "4:\txor $t0,$t0,$t2\n\t"                                                                                          \
    "bstrpick.d $t0,$t0,23,0\n\t"                                                                                      \
    "movgr2fcsr $fcsr0,$t0\n\t"                                                                                        \
    "b 5b\n"
#else
#define ACO__FP_SWAP(to, from)
#define ACO__FP_RARE(to, from)
#endif
#define ACO__FP_NONE(to, from)

/* What crosses a switch, in its registers. */
#define ACO__IN_REGISTERS(statement)                                                                                   \
    do {                                                                                                               \
        register struct aco_s *aco__a0 __asm__("$a0") = co;                                                            \
        register aco__where_t aco__a1 __asm__("$a1") = where;                                                          \
        register void *aco__a3 __asm__("$a3") = value;                                                                 \
        statement;                                                                                                     \
        co = ACO__HELD(aco__a0);                                                                                       \
        value = ACO__HELD(aco__a3);                                                                                    \
    } while (0)
#define ACO__CROSSING "+r"(aco__a0), "+r"(aco__a1), "+r"(aco__a3)

/* At the jump: a0 = co, a1 = thread record, a3 = the value. At 1, from a coroutine's yield or end: the same, a0 perhaps with
 * the arrival mark; fp and sp are ours again. */
#define ACO__RESUME(fp_swap, fp_rare)                                                                                  \
    ACO__IN_REGISTERS(__asm__ volatile("la.pcrel $a2,1f\n\t"                                                           \
                                       "st.d $a0," ACO__THREAD(ACO__RUNNING) "\n\t"                                    \
                                       ACO__STORE(ACO__THREAD)                                                         \
                                       fp_swap(ACO__THREAD, ACO__BLOCK)                                                \
                                       ACO__LEAVE(ACO__BLOCK)                                                          \
                                       fp_rare(ACO__THREAD, ACO__BLOCK)                                                \
                                       "1:\t" ACO__RESUMER_BASE                                                        \
                                       : ACO__CROSSING : : "$a4", ACO__CLOBBERS))

/* At the jump: a0 = co, a1 = thread record and a3 = the value, which the resumer finds there. At 1, from a resume: the same,
 * perhaps of another thread; a0 perhaps with the arrival mark. */
#define ACO__YIELD(fp_swap, fp_rare)                                                                                   \
    ACO__IN_REGISTERS(__asm__ volatile("la.pcrel $a2,1f\n\t"                                                           \
                                       "st.d $zero," ACO__THREAD(ACO__RUNNING) "\n\t"                                  \
                                       ACO__STORE(ACO__BLOCK)                                                          \
                                       fp_swap(ACO__BLOCK, ACO__THREAD)                                                \
                                       ACO__LEAVE(ACO__THREAD)                                                         \
                                       fp_rare(ACO__BLOCK, ACO__THREAD)                                                \
                                       "1:\t" ACO__RUNNING_BASE                                                        \
                                       : ACO__CROSSING : : "$a4", ACO__CLOBBERS))

/* From coroutine to coroutine: what a yield stores, what a resume loads. At 1: as after a yield. */
#define ACO__TRANSFER(fp_swap, fp_rare)                                                                                \
    ACO__IN_REGISTERS(__asm__ volatile("la.pcrel $a2,1f\n\t"                                                           \
                                       "st.d $a0," ACO__THREAD(ACO__RUNNING) "\n\t"                                    \
                                       ACO__STORE(ACO__LEAVING)                                                        \
                                       fp_swap(ACO__LEAVING, ACO__BLOCK)                                               \
                                       ACO__LEAVE(ACO__BLOCK)                                                          \
                                       fp_rare(ACO__LEAVING, ACO__BLOCK)                                               \
                                       "1:\t" ACO__RUNNING_BASE                                                        \
                                       : ACO__CROSSING, "+r"(leaving) : : ACO__CLOBBERS))
#define ACO__LEAVING_REGISTER __asm__("$a4")

/* Without a way back. */
#define ACO__EXIT                                                                                                      \
    do {                                                                                                               \
        register uintptr_t aco__a0 __asm__("$a0") = word;                                                              \
        register aco__where_t aco__a1 __asm__("$a1") = where;                                                          \
        register void *aco__a3 __asm__("$a3") = value;                                                                 \
        __asm__ volatile("st.d $zero," ACO__THREAD(ACO__RUNNING) "\n\t"                                                \
                         ACO__LEAVE(ACO__THREAD)                                                                       \
                         : : "r"(aco__a0), "r"(aco__a1), "r"(aco__a3) : "memory");                                     \
    } while (0)
#define ACO__ENTER                                                                                                     \
    do {                                                                                                               \
        register struct aco_s *aco__a4 __asm__("$a4") = co;                                                            \
        register uintptr_t aco__a0 __asm__("$a0") = word;                                                              \
        register aco__where_t aco__a1 __asm__("$a1") = where;                                                          \
        register void *aco__a3 __asm__("$a3") = value;                                                                 \
        __asm__ volatile(ACO__LEAVE(ACO__ENTERED)                                                                      \
                         : : "r"(aco__a4), "r"(aco__a0), "r"(aco__a1), "r"(aco__a3) : "memory");                       \
    } while (0)

/* ---- Generators: the other side's context is in registers, and so is the way back ----
 *
 * At the jump and on arrival, label 1:
 *   a0    where the side that leaves goes on, 0 when it has ended; before, where the other side does
 *   a1    the leaving side's fp
 *   a2    the value passed
 *   a3    the leaving side's sp (own stack)
 *   a4    the leaving side's s8: with clang perhaps a base pointer, which cannot be a clobber; one protocol for all
 * An exchange of registers, since no memory is the generator's and the consumer's alike. */
#define ACO__PEER_BASE __asm__("$a4")
#define ACO__PEER(declare_sp)                                                                                          \
    register void *aco__a0 __asm__("$a0") = pc;                                                                        \
    register void *aco__a1 __asm__("$a1") = bp;                                                                        \
    register void *aco__a2 __asm__("$a2") = value;                                                                     \
    declare_sp
#define ACO__PEER_SP register void *aco__a3 __asm__("$a3") = sp
#define ACO__SWAP(one, other) "move $t0," one "\n\tmove " one "," other "\n\tmove " other ",$t0\n\t"
#define ACO__EXCHANGE                                                                                                  \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile("move $t1,$a0\n\t"                                                                            \
                         "la.pcrel $a0,1f\n\t"                                                                         \
                         ACO__SWAP("$fp", "$a1") ACO__SWAP("$s8", "$a4") ACO__SWAP("$sp", "$a3")                       \
                         "jr $t1\n"                                                                                    \
                         "1:\t"                                                                                        \
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
        __asm__ volatile("move $fp,$a1\n\t"                                                                            \
                         "move $s8,$a4\n\t"                                                                            \
                         "move $sp,$a3\n\t"                                                                            \
                         "move $t1,$a0\n\t"                                                                            \
                         "li.w $a0,0\n\t"                                                                              \
                         "jr $t1"                                                                                      \
                         : : "r"(aco__a0), "r"(aco__a1), "r"(aco__a3), "r"(base), "r"(aco__a2) : "$t1", "memory");     \
    } while (0)

/* What reads or moves the stack pointer stands between ACO__SETTLE_STACKs (../generator.h), and for gcc it says so by an
 * operand. */
#ifdef __clang__
#define ACO__MOVES_STACK
#else
__extension__ register void *aco__stack_pointer __asm__("$sp");
#define ACO__MOVES_STACK , "+r"(aco__stack_pointer)
#endif

/* The same on one stack: the generator's frames stand right below the consumer's, and sp stays where it is, below both; in the
 * consumer 64 lower, as gcc stores its calls' arguments, from the ninth on, at sp without moving it.
 * The consumer comes only while they are the innermost: while sp is what it was when they were left (a3). Else a0 = 1. */
#define ACO__ARGUMENTS_ROOM 64
#define ACO__NESTED_RESUME                                                                                             \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile("bne $sp,$a3,2f\n\t"                                                                          \
                         "addi.d $sp,$sp,64\n\t"                                                                       \
                         "move $t1,$a0\n\t"                                                                            \
                         "la.pcrel $a0,1f\n\t"                                                                         \
                         ACO__SWAP("$fp", "$a1") ACO__SWAP("$s8", "$a4")                                               \
                         "jr $t1\n"                                                                                    \
                         "2:\tli.w $a0,1\n\t"                                                                          \
                         "b 3f\n"                                                                                      \
                         "1:\t"                                                                                        \
                         "addi.d $sp,$sp,-64\n\t"                                                                      \
                         "move $a3,$sp\n"                                                                              \
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
        __asm__ volatile("move $t1,$a0\n\t"                                                                            \
                         "la.pcrel $a0,1f\n\t"                                                                         \
                         ACO__SWAP("$fp", "$a1") ACO__SWAP("$s8", "$a4")                                               \
                         "jr $t1\n"                                                                                    \
                         "1:\t"                                                                                        \
                         : "+r"(aco__a0), "+r"(aco__a1), "+r"(base), "+r"(aco__a2) ACO__MOVES_STACK                    \
                         : : "$a3", ACO__CLOBBERS_OF_ALL);                                                             \
        pc = ACO__HELD(aco__a0);                                                                                       \
        bp = ACO__HELD(aco__a1);                                                                                       \
        value = ACO__HELD(aco__a2);                                                                                    \
    } while (0)
#define ACO__NESTED_LAST                                                                                               \
    do {                                                                                                               \
        ACO__PEER();                                                                                                   \
        __asm__ volatile("move $fp,$a1\n\t"                                                                            \
                         "move $s8,$a4\n\t"                                                                            \
                         "move $t1,$a0\n\t"                                                                            \
                         "li.w $a0,0\n\t"                                                                              \
                         "jr $t1"                                                                                      \
                         : : "r"(aco__a0), "r"(aco__a1), "r"(base), "r"(aco__a2) : "$t1", "memory");                   \
    } while (0)

/* Makes room for a generator below the consumer's frame: sp := the stack pointer - 128 - 64, which it becomes too; here := this
 * place, bp := fp, for the unwinder. Back: the stack pointer := outer. */
#define ACO__NESTED_BEGIN                                                                                              \
    __asm__ volatile("la.pcrel %2,1f\n"                                                                                \
                     "1:\taddi.d $sp,$sp,-192\n\t"                                                                     \
                     "move %0,$sp\n\t"                                                                                 \
                     "move %1,$fp"                                                                                     \
                     : "=&r"(sp), "=&r"(bp), "=&r"(here) ACO__MOVES_STACK : : "memory")
#define ACO__NESTED_END(outer)                                                                                         \
    __asm__ volatile("move $sp,%0" : "+r"(outer) ACO__MOVES_STACK : : "memory")
#define ACO__STACK_POINTER(sp, zero)                                                                                   \
    __asm__ volatile("move %0,$sp\n\t"                                                                                 \
                     "move %1,$zero"                                                                                   \
                     : "=&r"(sp), "=&r"(zero) ACO__MOVES_STACK)

/* How a generator's function is entered: by aco__generator_begin, on what stands at its stack pointer, in words,
 *   2   its argument, for a5
 *   1   the return address, for ra
 *   0   the function                            <- sp, a multiple of 16; entered with 32 bytes more */
#define ACO__GENERATOR_PARAMETERS                                                                                      \
    void *aco__pc, void *aco__bp, __attribute__((unused)) void *aco__value, void *aco__sp, void *aco__base
enum { ACO__START_FUNCTION = 0, ACO__START_RETURN = 1, ACO__START_ARGUMENT = 2, ACO__START_WORDS = 6 };

ACO__FORCE_INLINE void aco__fp_read(uint32_t *control, uint16_t *control2)
{
    uint32_t fcsr = 0;
#if __loongarch_frlen
    __asm__ volatile("movfcsr2gr %0,$fcsr0" : "=r"(fcsr));
#endif
    *control = fcsr;
    *control2 = 0;
}

ACO__FORCE_INLINE void aco__fp_load(const uint32_t *control, const uint16_t *control2)
{
    (void)control, (void)control2;
#if __loongarch_frlen
    __asm__ volatile("movgr2fcsr $fcsr0,%0" : : "r"(*control));
#endif
}

/* A function that a switch enters from its beginning: what it finds in the registers that cross every switch. */
#define ACO__ARRIVAL_ABI
#define ACO__ARRIVAL_PARAMETERS                                                                                        \
    __attribute__((unused)) uintptr_t word, __attribute__((unused)) aco__where_t aco__arrival_where,                   \
        __attribute__((unused)) uintptr_t aco__way_back, __attribute__((unused)) void *value

#endif
