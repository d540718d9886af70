/* The switch on s390x, ELF ABI. Contract and rules: ../switch.h.
 * Source of the register roles: ELF Application Binary Interface, s390x Supplement (1.6), sections 1.2.1 to 1.2.3.
 *
 * register               in the ABI      here
 * r15                    callee-saved    stored and loaded: the stack pointer
 * r11                    callee-saved    stored and loaded: the frame pointer cannot be a clobber
 * r12, r13               callee-saved    clobbers; with gcc kept in the register save area: its GOT pointer, refused as a
 *                                        clobber, and its literal pool's base, where a clobber goes unheeded
 * r7-r10                 callee-saved    clobbers: the compiler saves those that are live, and only those
 * r2                     scratch         the control block's address, carried across the switch
 * r3                     scratch         the thread record's address; the same on both sides
 * r4                     scratch         the way back, on its way to memory
 * r5                     scratch         the value passed, carried across the switch
 * r6                     callee-saved    in a transfer the block of the coroutine that leaves; else a clobber
 * r0, r1                 scratch         clobbers; control words; r1: where to go on
 * r14                    scratch         a clobber
 * f8-f15                 callee-saved    clobbers, like the rest of f0-f15; v0-v31 where they are compiled in
 * FPC                    masks, rounding kept apart when `fp` is 1; else common to all, as the user asked. Its flags and
 *                        callee-saved    data exception code are scratch
 * condition code         scratch         a clobber
 * a0, a1                 thread pointer  untouched
 * a2-a15                 scratch         no compiler keeps a value there
 *
 * There is no red zone, and the stack pointer is always a multiple of 8. The 160 bytes above it are the register save area,
 * which belongs to the function that is called. */
#ifndef ACO_ARCH_S390X_H
#define ACO_ARCH_S390X_H

#define ACO__ARCH "s390x"

/* Operands: a field of the control block (r2), of the one that a transfer leaves or that is entered out of line (r6), of the
 * thread record (r3). Offsets asserted in src/core.c. */
#define ACO__BLOCK(offset) offset "(%%r2)"
#define ACO__LEAVING(offset) offset "(%%r6)"
#define ACO__ENTERED(offset) ACO__LEAVING(offset)
#define ACO__THREAD(offset) offset "(%%r3)"
#define ACO__SP "0"
#define ACO__PC "8"
#define ACO__BP "16"
#define ACO__FPC "32"
#define ACO__STATE_BYTE "38"
#define ACO__RUNNING "40"

#define ACO__FP_STATUS 0x00ffff00u /* FPC's flags and data exception code */

/* A stack's top is 64-byte aligned. The first function saves registers above its stack pointer, also its return address. */
#define ACO__ENTRY_BELOW_TOP 160
#define ACO__RETURN_WORD 14
#define ACO__BEGINS_IN_ASSEMBLY

#ifdef __clang__
#define ACO__KEEP_FIXED
#define ACO__OWN_FIXED
#define ACO__CLOBBER_FIXED "r12", "r13",
#else
#define ACO__KEEP_FIXED "stmg %%r12,%%r13,96(%%r15)\n\t"
#define ACO__OWN_FIXED "lmg %%r12,%%r13,96(%%r15)\n\t"
#ifdef __PIC__
#define ACO__CLOBBER_FIXED
#else
#define ACO__CLOBBER_FIXED "r12",
#endif
#endif
#ifdef __VX__
#define ACO__CLOBBER_VECTORS                                                                                           \
    , "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
#else
#define ACO__CLOBBER_VECTORS
#endif
#define ACO__CLOBBERS_OF_ALL                                                                                           \
    ACO__CLOBBER_FIXED "r0", "r1", "r7", "r8", "r9", "r10", "r14", "memory", "cc", "f0", "f1", "f2", "f3", "f4", "f5", \
        "f6", "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15" ACO__CLOBBER_VECTORS
#define ACO__CLOBBERS "r4", ACO__CLOBBERS_OF_ALL /* but for r6 */

/* The thread record's address. */

ACO__FORCE_INLINE aco__where_t aco__where_in_tls(void)
{
    aco__where_t where, thread_pointer;
    __asm__ volatile("ear %1,%%a0\n\t"
                     "lgrl %0,aco__thread@indntpoff\n\t"
                     "sllg %1,%1,32\n\t"
                     "ear %1,%%a1\n\t"
                     "la %0,0(%0,%1)"
                     : "=&a"(where), "=&a"(thread_pointer));
    return where;
}

/* Store the leaving side; r4 holds the way back. */
#define ACO__STORE(to)                                                                                                 \
    "stg %%r15," to(ACO__SP) "\n\t"                                                                                    \
    "stg %%r4," to(ACO__PC) "\n\t"                                                                                     \
    "stg %%r11," to(ACO__BP) "\n\t" ACO__KEEP_FIXED

/* Load the arriving side and go there. Between the first and the last of these the unwinder has nothing to hold on to. */
#define ACO__LEAVE(from)                                                                                               \
    "lg %%r1," from(ACO__PC) "\n\t"                                                                                    \
    "lg %%r15," from(ACO__SP) "\n\t"                                                                                   \
    "lg %%r11," from(ACO__BP) "\n\t"                                                                                   \
    "br %%r1\n"

/* Environments of their own, if the coroutine has one: why it is done so stands in x86_64.h. */
#define ACO__FP_SWAP(to, from)                                                                                         \
    "tm " ACO__BLOCK(ACO__STATE_BYTE) ",128\n\t"                                                                       \
    "jne 5f\n\t"                                                                                                       \
    "efpc %%r0\n\t"                                                                                                    \
    "st %%r0," to(ACO__FPC) "\n\t"                                                                                     \
    "x %%r0," from(ACO__FPC) "\n\t"                                                                                    \
    "nilf %%r0,0xff0000ff\n\t"                                                                                         \
    "jne 4f\n"                                                                                                         \
    "5:\t"
#define ACO__FP_RARE(to, from)                                                                                         \
    "4:\tlfpc " from(ACO__FPC) "\n\t"                                                                                  \
    "j 5b\n"
#define ACO__FP_NONE(to, from)

/* What crosses a switch, in its registers. */
#define ACO__IN_REGISTERS(statement)                                                                                   \
    do {                                                                                                               \
        register struct aco_s *aco__r2 __asm__("r2") = co;                                                             \
        register aco__where_t aco__r3 __asm__("r3") = where;                                                           \
        register void *aco__r5 __asm__("r5") = value;                                                                  \
        statement;                                                                                                     \
        co = ACO__HELD(aco__r2);                                                                                       \
        value = ACO__HELD(aco__r5);                                                                                    \
    } while (0)
#define ACO__CROSSING "+r"(aco__r2), "+r"(aco__r3), "+r"(aco__r5)

/* At the jump: r2 = co, r3 = thread record, r5 = the value. At 1, from a coroutine's yield or end: the same, r2 perhaps with
 * the arrival mark; r11 and r15 are ours again. */
#define ACO__RESUME(fp_swap, fp_rare)                                                                                  \
    ACO__IN_REGISTERS(__asm__ volatile("larl %%r4,1f\n\t"                                                              \
                                       "stg %%r2," ACO__THREAD(ACO__RUNNING) "\n\t"                                    \
                                       ACO__STORE(ACO__THREAD)                                                         \
                                       fp_swap(ACO__THREAD, ACO__BLOCK)                                                \
                                       ACO__LEAVE(ACO__BLOCK)                                                          \
                                       fp_rare(ACO__THREAD, ACO__BLOCK)                                                \
                                       "1:\t" ACO__OWN_FIXED                                                           \
                                       : ACO__CROSSING : : "r6", ACO__CLOBBERS))

/* At the jump: r2 = co, r3 = thread record and r5 = the value, which the resumer finds there. At 1, from a resume: the same,
 * perhaps of another thread; r2 perhaps with the arrival mark. */
#define ACO__YIELD(fp_swap, fp_rare)                                                                                   \
    ACO__IN_REGISTERS(__asm__ volatile("larl %%r4,1f\n\t"                                                              \
                                       "mvghi " ACO__THREAD(ACO__RUNNING) ",0\n\t"                                     \
                                       ACO__STORE(ACO__BLOCK)                                                          \
                                       fp_swap(ACO__BLOCK, ACO__THREAD)                                                \
                                       ACO__LEAVE(ACO__THREAD)                                                         \
                                       fp_rare(ACO__BLOCK, ACO__THREAD)                                                \
                                       "1:\t" ACO__OWN_FIXED                                                           \
                                       : ACO__CROSSING : : "r6", ACO__CLOBBERS))

/* From coroutine to coroutine: what a yield stores, what a resume loads. At 1: as after a yield. */
#define ACO__TRANSFER(fp_swap, fp_rare)                                                                                \
    ACO__IN_REGISTERS(__asm__ volatile("larl %%r4,1f\n\t"                                                              \
                                       "stg %%r2," ACO__THREAD(ACO__RUNNING) "\n\t"                                    \
                                       ACO__STORE(ACO__LEAVING)                                                        \
                                       fp_swap(ACO__LEAVING, ACO__BLOCK)                                               \
                                       ACO__LEAVE(ACO__BLOCK)                                                          \
                                       fp_rare(ACO__LEAVING, ACO__BLOCK)                                               \
                                       "1:\t" ACO__OWN_FIXED                                                           \
                                       : ACO__CROSSING, "+r"(leaving) : : ACO__CLOBBERS))
#define ACO__LEAVING_REGISTER __asm__("r6")

/* Without a way back. */
#define ACO__EXIT                                                                                                      \
    do {                                                                                                               \
        register uintptr_t aco__r2 __asm__("r2") = word;                                                               \
        register aco__where_t aco__r3 __asm__("r3") = where;                                                           \
        register void *aco__r5 __asm__("r5") = value;                                                                  \
        __asm__ volatile("mvghi " ACO__THREAD(ACO__RUNNING) ",0\n\t"                                                   \
                         ACO__LEAVE(ACO__THREAD)                                                                       \
                         : : "r"(aco__r2), "r"(aco__r3), "r"(aco__r5) : "r1", "memory");                               \
    } while (0)
#define ACO__ENTER                                                                                                     \
    do {                                                                                                               \
        register struct aco_s *aco__r6 __asm__("r6") = co;                                                             \
        register uintptr_t aco__r2 __asm__("r2") = word;                                                               \
        register aco__where_t aco__r3 __asm__("r3") = where;                                                           \
        register void *aco__r5 __asm__("r5") = value;                                                                  \
        __asm__ volatile(ACO__LEAVE(ACO__ENTERED)                                                                      \
                         : : "r"(aco__r6), "r"(aco__r2), "r"(aco__r3), "r"(aco__r5) : "r1", "memory");                 \
    } while (0)

/* ---- Generators: the other side's context is in registers, and so is the way back ----
 *
 * At the jump and on arrival, label 1:
 *   r2    where the side that leaves goes on, 0 when it has ended; before, where the other side does
 *   r3    the leaving side's r11
 *   r4    the value passed
 *   r5    the leaving side's r15 (own stack)
 *   r6    nothing (own stack)
 * On one stack r5 and r6 take the consumer's r12 and r13 to the generator, which brings them back: the consumer's register save
 * area is overwritten meanwhile. An exchange of registers, since no memory is the generator's and the consumer's alike. */
#define ACO__PEER_BASE __asm__("r6")
#define ACO__PEER(declare_sp)                                                                                          \
    register void *aco__r2 __asm__("r2") = pc;                                                                         \
    register void *aco__r3 __asm__("r3") = bp;                                                                         \
    register void *aco__r4 __asm__("r4") = value;                                                                      \
    declare_sp
#define ACO__PEER_SP register void *aco__r5 __asm__("r5") = sp
#define ACO__PEER_FIXED register void *aco__r5 __asm__("r5") = peer->sp
#define ACO__SWAP(one, other) "lgr %%r0," one "\n\tlgr " one "," other "\n\tlgr " other ",%%r0\n\t"
#define ACO__EXCHANGE                                                                                                  \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile(ACO__KEEP_FIXED                                                                               \
                         "lgr %%r1,%%r2\n\t"                                                                           \
                         "larl %%r2,1f\n\t"                                                                            \
                         ACO__SWAP("%%r11", "%%r3") ACO__SWAP("%%r15", "%%r5")                                         \
                         "br %%r1\n"                                                                                   \
                         "1:\t" ACO__OWN_FIXED                                                                         \
                         : "+r"(aco__r2), "+r"(aco__r3), "+r"(aco__r5), "+r"(base), "+r"(aco__r4) : : ACO__CLOBBERS_OF_ALL); \
        pc = ACO__HELD(aco__r2);                                                                                       \
        bp = ACO__HELD(aco__r3);                                                                                       \
        sp = ACO__HELD(aco__r5);                                                                                       \
        value = ACO__HELD(aco__r4);                                                                                    \
    } while (0)

/* For the last time: nothing of the side that leaves is kept. */
#define ACO__EXCHANGE_LAST                                                                                             \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile("lgr %%r11,%%r3\n\t"                                                                          \
                         "lgr %%r15,%%r5\n\t"                                                                          \
                         "lgr %%r1,%%r2\n\t"                                                                           \
                         "lghi %%r2,0\n\t"                                                                             \
                         "br %%r1"                                                                                     \
                         : : "r"(aco__r2), "r"(aco__r3), "r"(aco__r5), "r"(base), "r"(aco__r4) : "r1", "memory");      \
    } while (0)

/* What reads or moves the stack pointer stands between ACO__SETTLE_STACKs (../generator.h), and for gcc it says so by an
 * operand. */
#ifdef __clang__
#define ACO__MOVES_STACK
#else
__extension__ register void *aco__stack_pointer __asm__("r15");
#define ACO__MOVES_STACK , "+r"(aco__stack_pointer)
#endif

/* The same on one stack: the generator's frames stand right below the consumer's, and r15 stays where it is, below both; in the
 * consumer 240 lower, as what it calls has its register save area and arguments there.
 * The consumer comes only while they are the innermost: while r15 is what it was when they were left (r5). Else r2 = 1. */
#define ACO__ARGUMENTS_ROOM 240
#define ACO__NESTED_RESUME                                                                                             \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_SP);                                                                                       \
        __asm__ volatile("cgr %%r15,%%r5\n\t"                                                                          \
                         "jne 2f\n\t"                                                                                  \
                         "aghi %%r15,240\n\t"                                                                          \
                         "lgr %%r1,%%r2\n\t"                                                                           \
                         "larl %%r2,1f\n\t"                                                                            \
                         ACO__SWAP("%%r11", "%%r3")                                                                    \
                         "lgr %%r5,%%r12\n\t"                                                                          \
                         "lgr %%r6,%%r13\n\t"                                                                          \
                         "br %%r1\n"                                                                                   \
                         "2:\tlghi %%r2,1\n\t"                                                                         \
                         "j 3f\n"                                                                                      \
                         "1:\taghi %%r15,-240\n\t"                                                                     \
                         "lgr %%r5,%%r15\n"                                                                            \
                         "3:"                                                                                          \
                         : "+r"(aco__r2), "+r"(aco__r3), "+r"(aco__r5), "+r"(base), "+r"(aco__r4) ACO__MOVES_STACK     \
                         : : ACO__CLOBBERS_OF_ALL);                                                                    \
        pc = ACO__HELD(aco__r2);                                                                                       \
        bp = ACO__HELD(aco__r3);                                                                                       \
        sp = ACO__HELD(aco__r5);                                                                                       \
        value = ACO__HELD(aco__r4);                                                                                    \
    } while (0)
#define ACO__NESTED_YIELD                                                                                              \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_FIXED);                                                                                    \
        __asm__ volatile(ACO__KEEP_FIXED                                                                               \
                         "lgr %%r1,%%r2\n\t"                                                                           \
                         "larl %%r2,1f\n\t"                                                                            \
                         ACO__SWAP("%%r11", "%%r3")                                                                    \
                         "lgr %%r12,%%r5\n\t"                                                                          \
                         "lgr %%r13,%%r6\n\t"                                                                          \
                         "br %%r1\n"                                                                                   \
                         "1:\t" ACO__OWN_FIXED                                                                         \
                         : "+r"(aco__r2), "+r"(aco__r3), "+r"(aco__r5), "+r"(base), "+r"(aco__r4) ACO__MOVES_STACK     \
                         : : ACO__CLOBBERS_OF_ALL);                                                                    \
        pc = ACO__HELD(aco__r2);                                                                                       \
        bp = ACO__HELD(aco__r3);                                                                                       \
        peer->sp = ACO__HELD(aco__r5);                                                                                 \
        value = ACO__HELD(aco__r4);                                                                                    \
    } while (0)
#define ACO__NESTED_LAST                                                                                               \
    do {                                                                                                               \
        ACO__PEER(ACO__PEER_FIXED);                                                                                    \
        __asm__ volatile("lgr %%r11,%%r3\n\t"                                                                          \
                         "lgr %%r12,%%r5\n\t"                                                                          \
                         "lgr %%r13,%%r6\n\t"                                                                          \
                         "lgr %%r1,%%r2\n\t"                                                                           \
                         "lghi %%r2,0\n\t"                                                                             \
                         "br %%r1"                                                                                     \
                         : : "r"(aco__r2), "r"(aco__r3), "r"(aco__r5), "r"(base), "r"(aco__r4) : "r1", "memory");      \
    } while (0)

/* Makes room for a generator below the consumer's frame: sp := the stack pointer - 432, which it becomes too; here := this
 * place, bp := r11, for the unwinder. Back: the stack pointer := outer. */
#define ACO__NESTED_BEGIN                                                                                              \
    __asm__ volatile("larl %2,1f\n"                                                                                    \
                     "1:\taghi %%r15,-432\n\t"                                                                         \
                     "lgr %0,%%r15\n\t"                                                                                \
                     "lgr %1,%%r11"                                                                                    \
                     : "=&r"(sp), "=&r"(bp), "=&r"(here) ACO__MOVES_STACK : : "memory", "cc")
#define ACO__NESTED_END(outer)                                                                                         \
    __asm__ volatile("lgr %%r15,%0" : "+r"(outer) ACO__MOVES_STACK : : "memory")
#define ACO__STACK_POINTER(sp, zero)                                                                                   \
    __asm__ volatile("lgr %0,%%r15\n\t"                                                                                \
                     "lghi %1,0"                                                                                       \
                     : "=&r"(sp), "=&r"(zero) ACO__MOVES_STACK)

/* How a generator's function is entered: by aco__generator_begin, on what stands at its stack pointer,
 *   176  its argument: the sixth parameter, which follows the register save area
 *   16   the register save area
 *    8   the return address, for r14
 *    0   the function                              <- r15, a multiple of 8; entered with 16 more */
#define ACO__GENERATOR_PARAMETERS                                                                                      \
    void *aco__pc, void *aco__bp, __attribute__((unused)) void *aco__value, void *aco__sp, void *aco__base
enum { ACO__START_FUNCTION = 0, ACO__START_RETURN = 1, ACO__START_ARGUMENT = 22, ACO__START_WORDS = 30 };

ACO__FORCE_INLINE void aco__fp_read(uint32_t *control, uint16_t *control2)
{
    __asm__ volatile("efpc %0" : "=d"(*control));
    *control2 = 0;
}

ACO__FORCE_INLINE void aco__fp_load(const uint32_t *control, const uint16_t *control2)
{
    (void)control2;
    __asm__ volatile("sfpc %0" : : "d"(*control));
}

/* A function that a switch enters from its beginning: what it finds in the registers that cross every switch. */
#define ACO__ARRIVAL_ABI
#define ACO__ARRIVAL_PARAMETERS                                                                                        \
    __attribute__((unused)) uintptr_t word, __attribute__((unused)) aco__where_t aco__arrival_where,                   \
        __attribute__((unused)) uintptr_t aco__way_back, __attribute__((unused)) void *value

#endif
