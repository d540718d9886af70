/* The switch on s390x, ELF ABI. Contract and rules: ../detail/switch.h.
 * Source of the register roles: ELF Application Binary Interface, s390x Supplement (1.6), sections 1.2.1 to 1.2.3.
 *
 * register               in the ABI      here
 * r15                    callee-saved    stored and loaded: the stack pointer
 * r11                    callee-saved    stored and loaded: the frame pointer cannot be a clobber
 * r12, r13               callee-saved    clobbers; with gcc kept in the register save area: r12 is its GOT pointer,
 *                                        which it rejects as a clobber; r13 is the base of its literal pool, for which
 *                                        it ignores the clobber
 * r7-r10                 callee-saved    clobbers: the compiler saves those that are live, and only those
 * r2                     scratch         the control block's address, carried across the switch
 * r3                     scratch         the thread record's address; the same on both sides
 * r4                     scratch         the resume address, on its way to memory
 * r5                     scratch         the value, carried across the switch
 * r6                     callee-saved    in a transfer, the control block of the coroutine that leaves; else a clobber
 * r0, r1                 scratch         clobbers; control words; in r1 the address to jump to
 * r14                    scratch         a clobber
 * f8-f15                 callee-saved    clobbers, like the rest of f0-f15; v0-v31 where they are compiled in
 * FPC                    masks, rounding stored and loaded if `fp` is 1 and the coroutine has its own; else untouched.
 *                        callee-saved    The flags and the data exception code are scratch
 * condition code         scratch         a clobber
 * a0, a1                 thread pointer  untouched
 * a2-a15                 scratch         no compiler keeps a value there
 *
 * There is no red zone, and the stack pointer is always a multiple of 8. The 160 bytes above it are the register save
 * area; it belongs to the function that is called. */
#ifndef ACO_ARCH_S390X_H
#define ACO_ARCH_S390X_H

/* The registers that cross, and operands by them (statements.h). */
#define ACO__FIRST "r2"
#define ACO__SECOND "r3"
#define ACO__THIRD "r4"
#define ACO__FOURTH "r5"
#define ACO__FIFTH "r6"
#define ACO__STACK_REGISTER "r15"
#define ACO__STACK_OPERAND "+r"
#define ACO__BLOCK(offset) ACO__TEXT(offset) "(%%r2)"
#define ACO__LEAVING(offset) ACO__TEXT(offset) "(%%r6)"
#define ACO__THREAD(offset) ACO__TEXT(offset) "(%%r3)"

#define ACO__FP_STATUS 0x00ffff00u /* FPC's flags and data exception code */

/* A stack's top is 64-byte aligned. The first function saves registers above its stack pointer, its return address
 * among them. */
#define ACO__ENTRY_BELOW_TOP 160
#define ACO__RETURN_WORD 14

/* r12 and r13 are kept in their words of the register save area at the stack pointer, which belongs to the functions
 * that this function calls. In a function without a frame it would be the caller's save area, with the caller's
 * registers. But each function that switches has a frame, because it calls (docs/switch.md, rule 3).
 * tools/platforms/objects.py checks that. */
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

/* The thread record's address. */
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref_read(void)
{
    aco__tls_ref_t tls, thread_pointer;
    __asm__ volatile("ear %1,%%a0\n\t"
                     "lgrl %0,aco__thread@indntpoff\n\t"
                     "sllg %1,%1,32\n\t"
                     "ear %1,%%a1\n\t"
                     "la %0,0(%0,%1)"
                     : "=&a"(tls), "=&a"(thread_pointer));
    return tls;
}

#define ACO__STORE(to)                                                                                                 \
    "stg %%r15," to(ACO__SP) "\n\t"                                                                                    \
    "stg %%r4," to(ACO__PC) "\n\t"                                                                                     \
    "stg %%r11," to(ACO__BP) "\n\t" ACO__KEEP_FIXED

#define ACO__LEAVE(from)                                                                                               \
    "lg %%r1," from(ACO__PC) "\n\t"                                                                                    \
    "lg %%r15," from(ACO__SP) "\n\t"                                                                                   \
    ACO__NO_FRAME("%%r14")                                                                                             \
    "lg %%r11," from(ACO__BP) "\n\t"                                                                                   \
    ACO__GO

#define ACO__FP_SWAP(to, from)                                                                                         \
    "tm " ACO__BLOCK(ACO__STATE_BYTE) ",128\n\t"                                                                       \
    "je 4f\n"                                                                                                          \
    "5:\t"
#define ACO__FP_SLOW(to, from)                                                                                         \
    "4:\tefpc %%r0\n\t"                                                                                                \
    "st %%r0," to(ACO__FP_CONTROL) "\n\t"                                                                              \
    "x %%r0," from(ACO__FP_CONTROL) "\n\t"                                                                             \
    "nilf %%r0,0xff0000ff\n\t"                                                                                         \
    "je 5b\n\t"                                                                                                        \
    "lfpc " from(ACO__FP_CONTROL) "\n\t"                                                                               \
    "j 5b\n"

#define ACO__RESUME_ADDRESS "larl %%r4,1f\n\t"
#define ACO__RUNS "stg %%r2," ACO__THREAD(ACO__RUNNING) "\n\t"
#define ACO__NOTHING_RUNS "mvghi " ACO__THREAD(ACO__RUNNING) ",0\n\t"
#define ACO__ARRIVAL "1:\t"

/* ---- Generators ----
 * The two sides swap no base pointer. For an in-stack generator, r5 and r6 carry the consumer's r12 and r13 to the
 * generator and back, because the consumer's register save area is overwritten meanwhile. */
#define ACO__SWAP(one, other) "lgr %%r0," one "\n\tlgr " one "," other "\n\tlgr " other ",%%r0\n\t"
#define ACO__TO_PEER                                                                                                   \
    "lgr %%r1,%%r2\n\t"                                                                                                \
    "larl %%r2,1f\n\t"                                                                                                 \
    ACO__NO_FRAME("%%r14") ACO__SWAP("%%r11", "%%r3")
#define ACO__SWAP_SP ACO__SWAP("%%r15", "%%r5")
#define ACO__GO "br %%r1\n" ACO__FRAME_AGAIN

#define ACO__LAST_TO_PEER ACO__NO_FRAME("%%r14") "lgr %%r11,%%r3\n\t"
#define ACO__LOAD_SP "lgr %%r15,%%r5\n\t"
#define ACO__LAST_GO                                                                                                   \
    "lgr %%r1,%%r2\n\t"                                                                                                \
    "lghi %%r2,0\n\t"                                                                                                  \
    ACO__GO

#define ACO__HAND_OVER_FIXED                                                                                           \
    "lgr %%r5,%%r12\n\t"                                                                                               \
    "lgr %%r6,%%r13\n\t"
#define ACO__HAND_BACK_FIXED                                                                                           \
    "lgr %%r12,%%r5\n\t"                                                                                               \
    "lgr %%r13,%%r6\n\t"

/* In-stack generators. A function that the consumer calls uses the register save area and the arguments at the
 * consumer's stack pointer. */
#define ACO__ARGUMENTS_ROOM 240
#define ACO__IF_INNERMOST                                                                                              \
    "cgr %%r15,%%r5\n\t"                                                                                               \
    "jne 2f\n\t"                                                                                                       \
    "aghi %%r15,240\n\t"
#define ACO__NOT_INNERMOST                                                                                             \
    "lghi %%r2,1\n\t"                                                                                                  \
    "j 3f\n"
#define ACO__ROOM                                                                                                      \
    "aghi %%r15,-240\n\t"                                                                                              \
    "lgr %%r5,%%r15\n"
#define ACO__IN_STACK_ROOM                                                                                             \
    "larl %2,1f\n"                                                                                                     \
    "1:\taghi %%r15,-432\n\t"                                                                                          \
    "lgr %0,%%r15\n\t"                                                                                                 \
    "lgr %1,%%r11"
#define ACO__READ_SP                                                                                                   \
    "lgr %0,%%r15\n\t"                                                                                                 \
    "lghi %1,0"
#define ACO__WRITE_SP "lgr %%r15,%0"

/* A generator's first stack pointer, and what aco__generator_begin finds there:
 *   176  the argument: the sixth parameter, which follows the register save area
 *   16   the register save area
 *    8   the return address, for r14
 *    0   the function                              <- r15, a multiple of 8; the function begins with r15 16 higher */
enum { ACO__START_ARGUMENT = 22, ACO__START_WORDS = 30 };

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

#endif
