/* The switch statements for targets without single-register constraints: the operands are register variables. arch.h
 * includes it after an architecture file that names the five registers which cross a switch. They are the ABI's first
 * argument registers (except arm's fifth), so a function that a switch enters finds the first four as parameters.
 * Contract and rules: ../detail/switch.h.
 *
 * name          in a switch                                   in a swap of a generator and its consumer
 * ACO__FIRST    the control block; on arrival the tagged      before the jump the other side's resume address; then the
 *               coroutine pointer                             leaving side's, 0 when it has ended
 * ACO__SECOND   the thread record                             the leaving side's frame pointer
 * ACO__THIRD    scratch, mostly for the resume address        the value
 * ACO__FOURTH   the value                                     own stack: the leaving side's stack pointer
 * ACO__FIFTH    the control block that a transfer leaves or   the leaving side's base pointer, which clang does not
 *               that is entered for good; else scratch        accept as a clobber; the same for all compilers
 *
 * An architecture file also defines the following, as strings of instructions unless said otherwise:
 *
 *   ACO__BLOCK, ACO__LEAVING, ACO__THREAD
 *                                how to address what FIRST, FIFTH and SECOND point to; the `to` and `from` below
 *   ACO__RESUME_ADDRESS          puts the address of label 1 where ACO__STORE expects it
 *   ACO__RUNS, ACO__NOTHING_RUNS `running` of the thread record becomes FIRST; becomes NULL
 *   ACO__STORE(to)               stores the leaving side
 *   ACO__LEAVE(from)             loads the arriving side and jumps there. Between the first and the last of its loads
 *                                unwinders find no frame
 *   ACO__FP_SWAP(to, from), ACO__FP_SLOW(to, from)
 *                                store and load the floating-point environments, if the coroutine has its own
 *                                (x86_64.h explains how). SLOW stands after the jump. Not defined: no environments
 *   ACO__ARRIVAL                 label 1, with the landing pad or alignment that a jump's target needs
 *   ACO__KEEP_BASE(to), ACO__RESUMER_BASE, ACO__RUNNING_BASE
 *                                the base pointer: ACO__STORE stores it and the arrival loads it, for compilers that
 *                                generate wrong code if it is a clobber. Not defined: it is a clobber
 *   ACO__TO_PEER                 makes FIRST ready for ACO__GO, puts the address of label 1 there, and swaps the frame
 *                                pointers and, where there are any, the base pointers
 *   ACO__GO                      the jump
 *   ACO__LAST_TO_PEER, ACO__LAST_GO
 *                                the same for the last time: nothing of the leaving side is kept, and FIRST becomes 0
 *   ACO__SWAP_SP, ACO__LOAD_SP   swaps the stack pointer and FOURTH; loads the stack pointer from FOURTH
 *   ACO__ALIGN_SP                rounds the stack pointer down, if it is not always aligned. Not defined: nothing
 *   ACO__IF_INNERMOST, ACO__NOT_INNERMOST, ACO__ROOM
 *                                for ACO__IN_STACK_RESUME
 *   ACO__IN_STACK_ROOM           lowers the stack pointer by ACO__ARGUMENTS_ROOM and room to begin in; %0 becomes the
 *                                same. For the unwinder, %1 becomes the frame pointer and %2 this address
 *   ACO__READ_SP, ACO__WRITE_SP  %0 becomes the stack pointer and %1 0; the stack pointer becomes %0
 *   ACO__STACK_REGISTER, ACO__STACK_OPERAND
 *                                the name of the stack pointer, and its constraint
 *   ACO__ADDRESS_RESULT          the constraint of %2 above. Not defined: "=&r"
 *   ACO__CLOBBERS_OF_ALL         what every switch clobbers, as a list of strings, without the five registers
 *   ACO__START_ARGUMENT, ACO__START_WORDS
 *                                an enum: what a generator's function finds at its beginning */
#ifndef ACO_ARCH_STATEMENTS_H
#define ACO_ARCH_STATEMENTS_H

/* All these targets pass return addresses in a register. */
#define ACO__BEGINS_IN_ASSEMBLY

#ifndef ACO__FP_SWAP
#define ACO__FP_SWAP(to, from)
#define ACO__FP_SLOW(to, from) "nop\n"
#endif
#define ACO__FP_NONE(to, from)
#define ACO__FP_NEVER(to, from) "nop\n"

#ifndef ACO__RESUMER_BASE
#define ACO__KEEP_BASE(to)
#define ACO__RESUMER_BASE
#define ACO__RUNNING_BASE
#endif

/* s390x: registers that are neither clobbers nor in the context are stored at the stack pointer and loaded on arrival.
 * An in-stack generator overwrites them there: FOURTH and FIFTH carry them to it and back. */
#ifndef ACO__KEEP_FIXED
#define ACO__KEEP_FIXED
#define ACO__OWN_FIXED
#define ACO__HAND_OVER_FIXED
#endif

/* What crosses a switch, in its registers. */
#define ACO__IN_REGISTERS(statement)                                                                                   \
    do {                                                                                                               \
        register struct aco_s *aco__first __asm__(ACO__FIRST) = co;                                                    \
        register aco__tls_ref_t aco__second __asm__(ACO__SECOND) = tls;                                                \
        register void *aco__fourth __asm__(ACO__FOURTH) = value;                                                       \
        statement;                                                                                                     \
        co = ACO__HELD(aco__first);                                                                                    \
        value = ACO__HELD(aco__fourth);                                                                                \
    } while (0)
#define ACO__CROSSING "+r"(aco__first), "+r"(aco__second), "+r"(aco__fourth)

/* At the jump: the control block, the thread record and the value are in their registers. At 1, after a coroutine's
 * yield or end: the same, the block's address perhaps with the interrupt flag. Frame and stack pointer are this side's
 * again. */
#define ACO__RESUME(fp_swap, fp_slow)                                                                                  \
    ACO__IN_REGISTERS(__asm__ volatile(ACO__RESUME_ADDRESS                                                             \
                                       ACO__RUNS                                                                       \
                                       ACO__STORE(ACO__THREAD)                                                         \
                                       fp_swap(ACO__THREAD, ACO__BLOCK)                                                \
                                       ACO__LEAVE(ACO__BLOCK)                                                          \
                                       fp_slow(ACO__THREAD, ACO__BLOCK)                                                \
                                       ACO__ARRIVAL                                                                    \
                                       ACO__OWN_FIXED ACO__RESUMER_BASE                                                \
                                       : ACO__CROSSING : : ACO__FIFTH, ACO__THIRD, ACO__CLOBBERS_OF_ALL))

/* At the jump: the same; the resumer finds them there. At 1, after a resume: the same, perhaps with another thread's
 * record; the block's address perhaps with the interrupt flag. */
#define ACO__YIELD(fp_swap, fp_slow)                                                                                   \
    ACO__IN_REGISTERS(__asm__ volatile(ACO__RESUME_ADDRESS                                                             \
                                       ACO__NOTHING_RUNS                                                               \
                                       ACO__STORE(ACO__BLOCK)                                                          \
                                       fp_swap(ACO__BLOCK, ACO__THREAD)                                                \
                                       ACO__LEAVE(ACO__THREAD)                                                         \
                                       fp_slow(ACO__BLOCK, ACO__THREAD)                                                \
                                       ACO__ARRIVAL                                                                    \
                                       ACO__OWN_FIXED ACO__RUNNING_BASE                                                \
                                       : ACO__CROSSING : : ACO__FIFTH, ACO__THIRD, ACO__CLOBBERS_OF_ALL))

/* From coroutine to coroutine: stores what a yield stores, loads what a resume loads. At 1: as after a yield. */
#define ACO__TRANSFER(fp_swap, fp_slow)                                                                                \
    ACO__IN_REGISTERS(__asm__ volatile(ACO__RESUME_ADDRESS                                                             \
                                       ACO__RUNS                                                                       \
                                       ACO__STORE(ACO__LEAVING)                                                        \
                                       fp_swap(ACO__LEAVING, ACO__BLOCK)                                               \
                                       ACO__LEAVE(ACO__BLOCK)                                                          \
                                       fp_slow(ACO__LEAVING, ACO__BLOCK)                                               \
                                       ACO__ARRIVAL                                                                    \
                                       ACO__OWN_FIXED ACO__RUNNING_BASE                                                \
                                       : ACO__CROSSING, "+r"(leaving) : : ACO__THIRD, ACO__CLOBBERS_OF_ALL))
#define ACO__LEAVING_REGISTER __asm__(ACO__FIFTH)

/* Leaves for good: nothing is stored, and the other side does not need the other registers. */
#define ACO__EXIT                                                                                                      \
    do {                                                                                                               \
        register uintptr_t aco__first __asm__(ACO__FIRST) = tagged;                                                    \
        register aco__tls_ref_t aco__second __asm__(ACO__SECOND) = tls;                                                \
        register void *aco__fourth __asm__(ACO__FOURTH) = value;                                                       \
        __asm__ volatile(ACO__NOTHING_RUNS                                                                             \
                         ACO__LEAVE(ACO__THREAD)                                                                       \
                         : : "r"(aco__first), "r"(aco__second), "r"(aco__fourth) : "memory");                          \
    } while (0)
#define ACO__ENTER                                                                                                     \
    do {                                                                                                               \
        register struct aco_s *aco__fifth __asm__(ACO__FIFTH) = co;                                                    \
        register uintptr_t aco__first __asm__(ACO__FIRST) = tagged;                                                    \
        register aco__tls_ref_t aco__second __asm__(ACO__SECOND) = tls;                                                \
        register void *aco__fourth __asm__(ACO__FOURTH) = value;                                                       \
        __asm__ volatile(ACO__LEAVE(ACO__LEAVING)                                                                      \
                         : : "r"(aco__fifth), "r"(aco__first), "r"(aco__second), "r"(aco__fourth) : "memory");         \
    } while (0)

/* ---- Generators: the other side's context is in registers, and so is the resume address ----
 *
 * The two sides swap registers, because they share no memory. At the jump and on arrival (label 1) the registers hold
 * what the table above says. `base` is declared where the macros are used. */
#define ACO__PEER_BASE __asm__(ACO__FIFTH)
#define ACO__PEER                                                                                                      \
    register void *aco__first __asm__(ACO__FIRST) = pc;                                                                \
    register void *aco__second __asm__(ACO__SECOND) = bp;                                                              \
    register void *aco__third __asm__(ACO__THIRD) = value

/* With FOURTH, which carries `fourth` to the other side and back; and without. `moves_stack`: ACO__MOVES_STACK or
 * nothing. */
#define ACO__PEER_SWAP_FIVE(instructions, fourth, moves_stack)                                                         \
    do {                                                                                                               \
        ACO__PEER;                                                                                                     \
        register void *aco__fourth __asm__(ACO__FOURTH) = fourth;                                                      \
        __asm__ volatile(instructions                                                                                  \
                         : "+r"(aco__first), "+r"(aco__second), "+r"(aco__fourth), "+r"(base), "+r"(aco__third)        \
                         moves_stack : : ACO__CLOBBERS_OF_ALL);                                                        \
        pc = ACO__HELD(aco__first);                                                                                    \
        bp = ACO__HELD(aco__second);                                                                                   \
        fourth = ACO__HELD(aco__fourth);                                                                               \
        value = ACO__HELD(aco__third);                                                                                 \
    } while (0)
#define ACO__PEER_SWAP_FOUR(instructions)                                                                              \
    do {                                                                                                               \
        ACO__PEER;                                                                                                     \
        __asm__ volatile(instructions                                                                                  \
                         : "+r"(aco__first), "+r"(aco__second), "+r"(base), "+r"(aco__third)                           \
                         ACO__MOVES_STACK : : ACO__FOURTH, ACO__CLOBBERS_OF_ALL);                                      \
        pc = ACO__HELD(aco__first);                                                                                    \
        bp = ACO__HELD(aco__second);                                                                                   \
        value = ACO__HELD(aco__third);                                                                                 \
    } while (0)
#define ACO__LAST_FIVE(instructions, fourth)                                                                           \
    do {                                                                                                               \
        ACO__PEER;                                                                                                     \
        register void *aco__fourth __asm__(ACO__FOURTH) = fourth;                                                      \
        __asm__ volatile(instructions : : "r"(aco__first), "r"(aco__second), "r"(aco__fourth), "r"(base),              \
                         "r"(aco__third) : "memory");                                                                  \
    } while (0)
#define ACO__LAST_FOUR(instructions)                                                                                   \
    do {                                                                                                               \
        ACO__PEER;                                                                                                     \
        __asm__ volatile(instructions : : "r"(aco__first), "r"(aco__second), "r"(base), "r"(aco__third) : "memory");   \
    } while (0)

#define ACO__PEER_SWAP                                                                                                 \
    ACO__PEER_SWAP_FIVE(ACO__KEEP_FIXED ACO__TO_PEER ACO__SWAP_SP ACO__GO ACO__ARRIVAL ACO__OWN_FIXED, sp, )
#define ACO__PEER_SWAP_LAST ACO__LAST_FIVE(ACO__LAST_TO_PEER ACO__LOAD_SP ACO__LAST_GO, sp)

/* The same for in-stack generators. The generator's frames stand right below the consumer's, and the stack pointer
 * stays where it is, below both; in the consumer it is ACO__ARGUMENTS_ROOM lower, because functions that the consumer
 * calls have their arguments there. The consumer may enter only while the generator's frames are the innermost: the
 * stack pointer must be what it was when the consumer left them (FOURTH). Else FIRST = 1. So ACO__IF_INNERMOST
 * compares, jumps to 2 if they are not, and takes the room back; ACO__NOT_INNERMOST sets FIRST and ends with a jump to
 * 3; ACO__ROOM makes the room again and puts the stack pointer into FOURTH. */
#define ACO__IN_STACK_RESUME                                                                                           \
    ACO__PEER_SWAP_FIVE(ACO__IF_INNERMOST ACO__TO_PEER ACO__HAND_OVER_FIXED ACO__GO                                    \
                       "2:\t" ACO__NOT_INNERMOST                                                                       \
                       ACO__ARRIVAL ACO__ROOM                                                                          \
                       "3:", sp, ACO__MOVES_STACK)
#ifdef ACO__HAND_BACK_FIXED
#define ACO__IN_STACK_YIELD                                                                                            \
    ACO__PEER_SWAP_FIVE(ACO__KEEP_FIXED ACO__TO_PEER ACO__HAND_BACK_FIXED ACO__GO ACO__ARRIVAL ACO__OWN_FIXED,         \
                       peer->sp, ACO__MOVES_STACK)
#define ACO__IN_STACK_LAST ACO__LAST_FIVE(ACO__LAST_TO_PEER ACO__HAND_BACK_FIXED ACO__LAST_GO, peer->sp)
#else
#define ACO__IN_STACK_YIELD ACO__PEER_SWAP_FOUR(ACO__TO_PEER ACO__GO ACO__ARRIVAL)
#ifndef ACO__ALIGN_SP
#define ACO__ALIGN_SP
#endif
#define ACO__IN_STACK_LAST ACO__LAST_FOUR(ACO__LAST_TO_PEER ACO__ALIGN_SP ACO__LAST_GO)
#endif

/* Makes room for a generator below the consumer's frame, and gives it back. */
#ifndef ACO__ADDRESS_RESULT
#define ACO__ADDRESS_RESULT "=&r"
#endif
#define ACO__IN_STACK_BEGIN                                                                                            \
    __asm__ volatile(ACO__IN_STACK_ROOM                                                                                \
                     : "=&r"(sp), "=&r"(bp), ACO__ADDRESS_RESULT(here) ACO__MOVES_STACK : : "memory", "cc")
#define ACO__IN_STACK_END(outer) __asm__ volatile(ACO__WRITE_SP : "+r"(outer) ACO__MOVES_STACK : : "memory")
#define ACO__STACK_POINTER(sp, zero) __asm__ volatile(ACO__READ_SP : "=&r"(sp), "=&r"(zero) ACO__MOVES_STACK)

/* aco__generator_begin calls a generator's function with what stands at its stack pointer, in words: 0 the function,
 * 1 the return address, ACO__START_ARGUMENT the argument: the parameter after these. */
#define ACO__GENERATOR_PARAMETERS                                                                                      \
    void *aco__pc, void *aco__bp, __attribute__((unused)) void *aco__value, void *aco__sp, void *aco__base
enum { ACO__START_FUNCTION = 0, ACO__START_RETURN = 1 };

/* A function that a switch enters from its beginning: what it finds in the registers that cross every switch. */
#define ACO__ARRIVAL_ABI
#define ACO__ARRIVAL_PARAMETERS                                                                                        \
    __attribute__((unused)) uintptr_t tagged, __attribute__((unused)) aco__tls_ref_t aco__arrival_tls_ref,             \
        __attribute__((unused)) uintptr_t aco__resume_address, __attribute__((unused)) void *value

#endif
