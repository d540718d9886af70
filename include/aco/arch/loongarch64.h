/* The switch on LoongArch, LP64, with or without floating point, LSX and LASX. Contract and rules: ../detail/switch.h.
 * Source of the register roles: Procedure Call Standard for the LoongArch Architecture (20250521), tables 1 and 2.
 *
 * register               in the ABI      here
 * sp                     callee-saved    stored and loaded
 * fp (r22)               callee-saved    stored and loaded: the frame pointer cannot be a clobber
 * s8 (r31)               callee-saved    a clobber; with clang stored and loaded: it is the base pointer of
 *                                        over-aligned frames with variable parts, and clang lets an asm clobber it
 *                                        there and crashes
 * s0-s7                  callee-saved    clobbers: the compiler saves those that are live, and only those
 * a0                     scratch         the control block's address, carried across the switch
 * a1                     scratch         the thread record's address; the same on both sides
 * a2                     scratch         the resume address, on its way to memory
 * a3                     scratch         the value, carried across the switch
 * a4                     scratch         in a transfer, the control block of the coroutine that leaves; else a clobber
 * t0, t2                 scratch         control words
 * t1                     scratch         control words; the address to jump to: a jump through ra (r1) is predicted as
 *                                        a return
 * a5-a7, t3-t8           scratch         clobbers
 * ra                     scratch         a clobber
 * tp, r21                reserved        untouched
 * fs0-fs7                callee-saved    clobbers, like the rest of f0-f31. These are the low parts of the vector
 *                                        registers; a clobber of the low part covers the scratch high part too
 * fcc0-fcc7              scratch         clobbers
 * FCSR0, bits 0-4, 8-9   unspecified     trap enables and rounding mode, part of the environment in fenv.h: stored and
 *                                        loaded if `fp` is 1 and the coroutine has its own; else untouched
 * FCSR0, the others      status          not kept; the causes are cleared when the control bits are loaded
 *
 * There is no red zone, and the stack pointer is always a multiple of 16. */
#ifndef ACO_ARCH_LOONGARCH64_H
#define ACO_ARCH_LOONGARCH64_H

/* The registers that cross, and operands by them (statements.h). */
#define ACO__FIRST "$a0"
#define ACO__SECOND "$a1"
#define ACO__THIRD "$a2"
#define ACO__FOURTH "$a3"
#define ACO__FIFTH "$a4"
#define ACO__STACK_REGISTER "$sp"
#define ACO__STACK_OPERAND "+r"
#define ACO__BLOCK(offset) "$a0," ACO__TEXT(offset)
#define ACO__LEAVING(offset) "$a4," ACO__TEXT(offset)
#define ACO__THREAD(offset) "$a1," ACO__TEXT(offset)

#define ACO__FP_STATUS (~0x31f) /* all bits of FCSR0 except the control bits */

/* A stack's top is 64-byte aligned. */
#define ACO__ENTRY_BELOW_TOP 16
#define ACO__RETURN_WORD 0

#ifdef __clang__
#define ACO__KEEP_BASE(to) "st.d $s8," to(ACO__BASE) "\n\t"
#define ACO__RESUMER_BASE "ld.d $s8," ACO__THREAD(ACO__BASE) "\n\t"
#define ACO__RUNNING_BASE "ld.d $t0," ACO__THREAD(ACO__RUNNING) "\n\tld.d $s8,$t0," ACO__TEXT(ACO__BASE) "\n\t"
#define ACO__CLOBBER_BASE
#else
#define ACO__CLOBBER_BASE "$s8",
#endif

#if __loongarch_frlen /* without it this unit has no value there */
#define ACO__CLOBBER_FP                                                                                                \
    , "$f0", "$f1", "$f2", "$f3", "$f4", "$f5", "$f6", "$f7", "$f8", "$f9", "$f10", "$f11", "$f12", "$f13", "$f14",    \
        "$f15", "$f16", "$f17", "$f18", "$f19", "$f20", "$f21", "$f22", "$f23", "$f24", "$f25", "$f26", "$f27",        \
        "$f28", "$f29", "$f30", "$f31", "$fcc0", "$fcc1", "$fcc2", "$fcc3", "$fcc4", "$fcc5", "$fcc6", "$fcc7"
#else
#define ACO__CLOBBER_FP
#endif
#define ACO__CLOBBERS_OF_ALL                                                                                           \
    ACO__CLOBBER_BASE "$ra", "$t0", "$t1", "$t2", "$t3", "$t4", "$t5", "$t6", "$t7", "$t8", "$a5", "$a6", "$a7", "$s0",\
        "$s1", "$s2", "$s3", "$s4", "$s5", "$s6", "$s7", "memory" ACO__CLOBBER_FP

/* The thread record's address. */
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref_read(void)
{
    aco__tls_ref_t tls;
    __asm__ volatile("la.tls.ie %0,aco__thread\n\t"
                     "add.d %0,%0,$tp"
                     : "=r"(tls));
    return tls;
}

#define ACO__STORE(to)                                                                                                 \
    "st.d $sp," to(ACO__SP) "\n\t"                                                                                     \
    "st.d $a2," to(ACO__PC) "\n\t"                                                                                     \
    "st.d $fp," to(ACO__BP) "\n\t" ACO__KEEP_BASE(to)

#define ACO__LEAVE(from)                                                                                               \
    "ld.d $t1," from(ACO__PC) "\n\t"                                                                                   \
    "ld.d $sp," from(ACO__SP) "\n\t"                                                                                   \
    ACO__NO_FRAME("1")                                                                                                 \
    "ld.d $fp," from(ACO__BP) "\n\t"                                                                                   \
    ACO__GO

/* Clears the causes of the last operation: a cause of this side must not trap where the other side enables its trap. */
#if __loongarch_frlen
#define ACO__FP_SWAP(to, from)                                                                                         \
    "ld.b $t0," ACO__BLOCK(ACO__STATE_BYTE) "\n\t"                                                                     \
    "bgez $t0,4f\n"                                                                                                    \
    "5:\t"
#define ACO__FP_SLOW(to, from)                                                                                         \
    "4:\tmovfcsr2gr $t0,$fcsr0\n\t"                                                                                    \
    "st.w $t0," to(ACO__FP_CONTROL) "\n\t"                                                                             \
    "ld.w $t1," from(ACO__FP_CONTROL) "\n\t"                                                                           \
    "xor $t2,$t0,$t1\n\t"                                                                                              \
    "andi $t2,$t2,0x31f\n\t"                                                                                           \
    "beqz $t2,5b\n\t"                                                                                                  \
    "xor $t0,$t0,$t2\n\t"                                                                                              \
    "bstrpick.d $t0,$t0,23,0\n\t"                                                                                      \
    "movgr2fcsr $fcsr0,$t0\n\t"                                                                                        \
    "b 5b\n"
#endif

#define ACO__RESUME_ADDRESS "la.pcrel $a2,1f\n\t"
#define ACO__RUNS "st.d $a0," ACO__THREAD(ACO__RUNNING) "\n\t"
#define ACO__NOTHING_RUNS "st.d $zero," ACO__THREAD(ACO__RUNNING) "\n\t"
#define ACO__ARRIVAL "1:\t"

/* ---- Generators ---- */
#define ACO__SWAP(one, other) "move $t0," one "\n\tmove " one "," other "\n\tmove " other ",$t0\n\t"
#define ACO__TO_PEER                                                                                                   \
    "move $t1,$a0\n\t"                                                                                                 \
    "la.pcrel $a0,1f\n\t"                                                                                              \
    ACO__NO_FRAME("1") ACO__SWAP("$fp", "$a1") ACO__SWAP("$s8", "$a4")
#define ACO__SWAP_SP ACO__SWAP("$sp", "$a3")
#define ACO__GO "jr $t1\n" ACO__FRAME_AGAIN

#define ACO__LAST_TO_PEER                                                                                              \
    ACO__NO_FRAME("1")                                                                                                 \
    "move $fp,$a1\n\t"                                                                                                 \
    "move $s8,$a4\n\t"
#define ACO__LOAD_SP "move $sp,$a3\n\t"
#define ACO__LAST_GO                                                                                                   \
    "move $t1,$a0\n\t"                                                                                                 \
    "li.w $a0,0\n\t"                                                                                                   \
    ACO__GO

/* In-stack generators. gcc stores the arguments of calls, from the ninth on, at sp without moving sp. */
#define ACO__ARGUMENTS_ROOM 128
#define ACO__IF_INNERMOST                                                                                              \
    "bne $sp,$a3,2f\n\t"                                                                                               \
    "addi.d $sp,$sp,128\n\t"
#define ACO__NOT_INNERMOST                                                                                             \
    "li.w $a0,1\n\t"                                                                                                   \
    "b 3f\n"
#define ACO__ROOM                                                                                                      \
    "addi.d $sp,$sp,-128\n\t"                                                                                          \
    "move $a3,$sp\n"
#define ACO__IN_STACK_ROOM                                                                                             \
    "la.pcrel %2,1f\n"                                                                                                 \
    "1:\taddi.d $sp,$sp,-256\n\t"                                                                                      \
    "move %0,$sp\n\t"                                                                                                  \
    "move %1,$fp"
#define ACO__READ_SP                                                                                                   \
    "move %0,$sp\n\t"                                                                                                  \
    "move %1,$zero"
#define ACO__WRITE_SP "move $sp,%0"

/* A generator's first stack pointer, and what aco__generator_begin finds there, in words:
 *   2   the argument, for a5
 *   1   the return address, for ra
 *   0   the function                            <- sp, a multiple of 16; the function begins with sp 32 bytes higher */
enum { ACO__START_ARGUMENT = 2, ACO__START_WORDS = 6 };

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

#endif
