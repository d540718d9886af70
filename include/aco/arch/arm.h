/* The switch on 32-bit Arm, AAPCS32, Arm and Thumb-2 instructions, with and without VFP. Contract and rules:
 * ../detail/switch.h. Source of the register roles: Procedure Call Standard for the Arm Architecture (2024Q3), sections
 * 6.1.1 and 6.1.2.
 *
 * register               in the ABI      here
 * sp (r13)               callee-saved    stored and loaded
 * r11, in Thumb code r7  callee-saved    stored and loaded: the frame pointer cannot be a clobber
 * r7, in Thumb code r11  callee-saved    a clobber; also loaded with the frame pointer: code of the other kind has its
 *                                        frame pointer there
 * r6                     callee-saved    a clobber; with clang stored and loaded: it is the base pointer of
 *                                        over-aligned frames with variable parts
 * r4                     callee-saved    in a transfer, the control block of the coroutine that leaves; else a clobber
 * r5                     callee-saved    the resume address, on its way to memory; then control words; then the address
 *                                        to jump to
 * r8, r10                callee-saved    clobbers: the compiler saves those that are live, and only those
 * r9                     callee-saved    the same; where the platform reserves it, it has one value on both sides
 * r0                     scratch         the control block's address, carried across the switch
 * r1                     scratch         the thread record's address; the same on both sides
 * r2                     scratch         the stack pointer, on its way to or from memory; control words
 * r3                     scratch         the value, carried across the switch
 * r12, r14 (lr)          scratch         clobbers
 * d8-d15 (s16-s31)       callee-saved    clobbers, like the rest of d0-d31, where VFP is compiled in
 * FPSCR control bits     callee-saved    stored and loaded if `fp` is 1 and the coroutine has its own; else untouched
 * FPSCR status, APSR     scratch         not kept; the flags are a clobber
 * TPIDRURO               thread pointer  untouched
 *
 * There is no red zone, and the stack pointer is a multiple of 8 at every switch. Bit 0 of a resume address is set for
 * Thumb code; `bx` selects the instruction set by it. Compile all units of a program with VFP, or all without. */
#ifndef ACO_ARCH_ARM_H
#define ACO_ARCH_ARM_H

#if defined(__thumb__) && !defined(__thumb2__)
#error "acorn: Thumb-1 code cannot switch; -marm can"
#endif
#ifdef __IWMMXT__
#error "acorn: the registers of iWMMXt are not kept"
#endif

/* The registers that cross, and operands by them (statements.h). */
#define ACO__FIRST "r0"
#define ACO__SECOND "r1"
#define ACO__THIRD "r2"
#define ACO__FOURTH "r3"
#define ACO__FIFTH "r4"
#define ACO__STACK_REGISTER "sp"
#define ACO__STACK_OPERAND "+k"
#define ACO__BLOCK "r0"
#define ACO__LEAVING "r4"
#define ACO__THREAD "r1"
#define ACO__FIELD(side, offset) "[" side ",#" ACO__TEXT(offset) "]"

#define ACO__FP_STATUS 0xf800009f /* NZCV, QC and the cumulative exception bits: no call preserves them */

/* A stack's top is 64-byte aligned. */
#define ACO__ENTRY_BELOW_TOP 8
#define ACO__RETURN_WORD 0

/* The frame pointer in this kind of code (Arm or Thumb) and in the other kind; the address of a label with bit 0. */
#ifdef __thumb__
#define ACO__FRAME_REGISTER "r7"
#define ACO__OTHER_FRAME "r11"
#define ACO__LABEL_ADDRESS(label) label "+1"
#else
#define ACO__FRAME_REGISTER "r11"
#define ACO__OTHER_FRAME "r7"
#define ACO__LABEL_ADDRESS(label) label
#endif

#ifdef __clang__
#define ACO__KEEP_BASE(to) "str r6," ACO__FIELD(to, ACO__BASE) "\n\t"
#define ACO__RESUMER_BASE "ldr r6," ACO__FIELD(ACO__THREAD, ACO__BASE) "\n\t"
#define ACO__RUNNING_BASE                                                                                              \
    "ldr r2," ACO__FIELD(ACO__THREAD, ACO__RUNNING) "\n\t"                                                             \
    "ldr r6," ACO__FIELD("r2", ACO__BASE) "\n\t"
#define ACO__CLOBBER_BASE
#else
#define ACO__CLOBBER_BASE "r6",
#endif

#ifdef __ARM_FP /* without it this unit has no value there, and the assembler rejects the instructions */
#define ACO__CLOBBER_FP                                                                                                \
    , "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15"
#else
#define ACO__CLOBBER_FP
#endif
#if defined(__ARM_NEON) || (defined(__ARM_FP) && !defined(__clang__)) /* clang warns if the registers do not exist */
#define ACO__CLOBBER_FP_HIGH                                                                                           \
    , "d16", "d17", "d18", "d19", "d20", "d21", "d22", "d23", "d24", "d25", "d26", "d27", "d28", "d29", "d30", "d31"
#else
#define ACO__CLOBBER_FP_HIGH
#endif
#define ACO__CLOBBERS_OF_ALL                                                                                           \
    ACO__CLOBBER_BASE ACO__OTHER_FRAME, "r5", "r8", "r9", "r10", "r12", "lr", "memory", "cc" ACO__CLOBBER_FP           \
        ACO__CLOBBER_FP_HIGH

/* The thread record's address. Its offset from the thread pointer is the same for all threads, so the compiler may keep
 * the offset. The literal stands beside the code that loads it, because a literal pool may be too far away. */
#if __ARM_ARCH >= 7 || defined(__ARM_ARCH_6K__) || defined(__ARM_ARCH_6KZ__) || defined(__ARM_ARCH_6ZK__)
#define ACO__TLS_REF aco__tls_ref_t tls
#define ACO__READ_TP "mrc p15,0,%0,c13,c0,3\n\t"
#define ACO__CLOBBERS_OF_READ_TP
#else /* a helper function; it changes only these registers */
#define ACO__TLS_REF register aco__tls_ref_t tls __asm__("r0")
#define ACO__READ_TP "bl __aeabi_read_tp\n\t"
#define ACO__CLOBBERS_OF_READ_TP : "r12", "lr", "cc"
#endif
#ifdef __thumb__
#define ACO__FROM_GOT                                                                                                  \
    "9:\tadd %0,pc\n\t"                                                                                                \
    "ldr %0,[%0]\n\t"
#define ACO__PC_AHEAD "4"
#else
#define ACO__FROM_GOT "9:\tldr %0,[pc,%0]\n\t"
#define ACO__PC_AHEAD "8"
#endif

ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref_read(void)
{
    ACO__TLS_REF;
    uintptr_t offset;
    __asm__("ldr %0,8f\n"
            ACO__FROM_GOT
            "b 7f\n\t"
            ".p2align 2\n"
            "8:\t.word aco__thread(gottpoff)+(8b-9b-" ACO__PC_AHEAD ")\n"
            "7:"
            : "=r"(offset));
    __asm__ volatile(ACO__READ_TP
                     "add %0,%0,%1"
                     : "=&r"(tls) : "r"(offset) ACO__CLOBBERS_OF_READ_TP);
    return tls;
}

#define ACO__STORE(to)                                                                                                 \
    "mov r2,sp\n\t"                                                                                                    \
    "stmia " to ",{r2,r5," ACO__FRAME_REGISTER "}\n\t" ACO__KEEP_BASE(to)

#define ACO__LEAVE(from)                                                                                               \
    "ldmia " from ",{r2,r5," ACO__FRAME_REGISTER "}\n\t"                                                               \
    "mov " ACO__OTHER_FRAME "," ACO__FRAME_REGISTER "\n\t"                                                             \
    "mov sp,r2\n\t"                                                                                                    \
    "bx r5\n"

#ifdef __ARM_FP
#define ACO__FP_SWAP(to, from)                                                                                         \
    "ldrsb r2," ACO__FIELD(ACO__BLOCK, ACO__STATE_BYTE) "\n\t"                                                         \
    "cmp r2,#0\n\t"                                                                                                    \
    "bpl 4f\n"                                                                                                         \
    "5:\t"
#define ACO__FP_SLOW(to, from)                                                                                         \
    "4:\tvmrs r2,fpscr\n\t"                                                                                            \
    "str r2," ACO__FIELD(to, ACO__FP_CONTROL) "\n\t"                                                                   \
    "ldr r5," ACO__FIELD(from, ACO__FP_CONTROL) "\n\t"                                                                 \
    "eor r2,r2,r5\n\t"                                                                                                 \
    "bic r2,r2,#0xf8000000\n\t"                                                                                        \
    "bics r2,r2,#0x9f\n\t"                                                                                             \
    "beq 5b\n\t"                                                                                                       \
    "vmsr fpscr,r5\n\t"                                                                                                \
    "b 5b\n"
#endif

#define ACO__RESUME_ADDRESS "adr r5," ACO__LABEL_ADDRESS("1f") "\n\t"
#define ACO__RUNS "str r0," ACO__FIELD(ACO__THREAD, ACO__RUNNING) "\n\t"
#define ACO__NOTHING_RUNS                                                                                              \
    "mov r2,#0\n\t"                                                                                                    \
    "str r2," ACO__FIELD(ACO__THREAD, ACO__RUNNING) "\n\t"
/* It follows a jump. `adr` counts from a multiple of 4, but a Thumb function's section is aligned to 2 only, unless
 * something in it asks for more. */
#define ACO__ARRIVAL ".p2align 2\n1:\n\t"

/* ---- Generators ---- */
#define ACO__SWAP(one, other) "mov r12," one "\n\tmov " one "," other "\n\tmov " other ",r12\n\t"
#define ACO__TO_PEER                                                                                                   \
    "mov r5,r0\n\t"                                                                                                    \
    "adr r0," ACO__LABEL_ADDRESS("1f") "\n\t"                                                                          \
    "mov " ACO__OTHER_FRAME ",r1\n\t"                                                                                  \
    ACO__SWAP(ACO__FRAME_REGISTER, "r1") ACO__SWAP("r6", "r4")
#define ACO__SWAP_SP ACO__SWAP("sp", "r3")
#define ACO__GO "bx r5\n"

#define ACO__LAST_TO_PEER                                                                                              \
    "mov r11,r1\n\t"                                                                                                   \
    "mov r7,r1\n\t"                                                                                                    \
    "mov r6,r4\n\t"
#define ACO__LOAD_SP "mov sp,r3\n\t"
/* In a function that calls nothing, sp may be no multiple of 8. */
#define ACO__ALIGN_SP                                                                                                  \
    "mov r12,sp\n\t"                                                                                                   \
    "bic r12,r12,#7\n\t"                                                                                               \
    "mov sp,r12\n\t"
#define ACO__LAST_GO                                                                                                   \
    "mov r12,r0\n\t"                                                                                                   \
    "mov r0,#0\n\t"                                                                                                    \
    "bx r12"

/* In-stack generators. gcc stores the arguments of calls, from the fifth word on, at sp without moving sp. */
#define ACO__ARGUMENTS_ROOM 128
#define ACO__IF_INNERMOST                                                                                              \
    "cmp sp,r3\n\t"                                                                                                    \
    "bne 2f\n\t"                                                                                                       \
    "add sp,sp,#128\n\t"
#define ACO__NOT_INNERMOST                                                                                             \
    "mov r0,#1\n\t"                                                                                                    \
    "b 3f\n"
#define ACO__ROOM                                                                                                      \
    "sub sp,sp,#128\n\t"                                                                                               \
    "mov r3,sp\n"
#define ACO__IN_STACK_ROOM                                                                                             \
    "adr %2," ACO__LABEL_ADDRESS("1f") "\n\t"                                                                          \
    ".p2align 2\n1:\n\t"                                                                                               \
    "sub sp,sp,#256\n\t"                                                                                               \
    "mov %0,sp\n\t"                                                                                                    \
    "mov %1," ACO__FRAME_REGISTER
#define ACO__READ_SP                                                                                                   \
    "mov %0,sp\n\t"                                                                                                    \
    "mov %1,#0"
#define ACO__WRITE_SP "mov sp,%0"

/* A generator's first stack pointer, and what aco__generator_begin finds there:
 *   12   the argument
 *    8   one more parameter: the consumer's r4, put there by aco__generator_begin
 *    4   the return address, for lr
 *    0   the function                            <- sp, a multiple of 8; the function begins with sp 8 higher */
enum { ACO__START_ARGUMENT = 3, ACO__START_WORDS = 6 };

ACO__FORCE_INLINE void aco__fp_read(uint32_t *control, uint16_t *control2)
{
    *control = 0;
    *control2 = 0;
#ifdef __ARM_FP
    __asm__ volatile("vmrs %0,fpscr" : "=r"(*control));
#endif
}

ACO__FORCE_INLINE void aco__fp_load(const uint32_t *control, const uint16_t *control2)
{
    (void)control, (void)control2;
#ifdef __ARM_FP
    __asm__ volatile("vmsr fpscr,%0" : : "r"(*control));
#endif
}

#endif
