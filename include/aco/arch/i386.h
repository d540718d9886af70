/* The switch on i386, System V ABI. Contract and rules: ../detail/switch.h.
 * Source of the register roles: System V ABI, Intel386 Architecture Processor Supplement 1.1, table 2.3.
 *
 * register               in the ABI      here
 * esp                    callee-saved    stored and loaded
 * ebp                    callee-saved    stored and loaded: it cannot be a clobber where it is the frame pointer
 * esi                    callee-saved    a clobber; with clang stored and loaded: it is the base pointer, like rbx in
 *                                        x86_64.h
 * ebx                    callee-saved    in a transfer, the control block of the coroutine that leaves; else a clobber
 * edi                    callee-saved    the thread record's offset from the thread pointer; the same on both sides
 * eax                    scratch         the control block's address, carried across the switch
 * edx                    scratch         the resume address, on its way to memory; then for comparing control words
 * ecx                    scratch         the value, carried across the switch
 * xmm, k, st, mm         scratch         clobbers; upper halves of ymm and zmm: vzeroupper where AVX is compiled in
 * MXCSR control bits     callee-saved    stored and loaded if `fp` is 1 and the coroutine has its own; else untouched
 * x87 control word       callee-saved    the same
 * DF, x87 stack          clear, empty    untouched: the ABI requires these values at every call, and no switch changes
 *                                        them
 * gs                     thread pointer  untouched
 *
 * There is no red zone, so position-independent code may find its own address by a `call` to the next instruction.
 * Processors do not count that as a call when they predict returns. */
#ifndef ACO_ARCH_I386_H
#define ACO_ARCH_I386_H

#define ACO__STACK_REGISTER "esp"
#define ACO__STACK_OPERAND "+r"

/* reg := the address of this label. While the address is on the stack, unwinders find no frame. */
#define ACO__FIND_SELF(label, reg)                                                                                     \
    "call " label "f\n\t" ACO__NO_FRAME("eip")                                                                         \
    label ":\tpopl " reg "\n" ACO__FRAME_AGAIN "\t"

/* Addresses, in position-independent code and in other code: the thread record's offset; the arrival label 1, into a
 * register or pushed; the address of this place. */
#ifdef __PIC__
#define ACO__FIND_THREAD(reg)                                                                                          \
    ACO__FIND_SELF("9", reg)                                                                                           \
    "addl $_GLOBAL_OFFSET_TABLE_+(.-9b)," reg "\n\t"                                                                   \
    "movl aco__thread@gotntpoff(" reg ")," reg "\n\t"
#define ACO__FIND_ARRIVAL(reg)                                                                                         \
    ACO__FIND_SELF("8", reg)                                                                                           \
    "addl $(1f-8b)," reg "\n\t"
#define ACO__PUSH_RESUME_ADDRESS                                                                                       \
    "call 8f\n\t" ACO__NO_FRAME("eip")                                                                                 \
    "8:\taddl $(1f-8b),(%%esp)\n\t"
#define ACO__HERE(reg) ACO__FIND_SELF("8", reg)
#else
#define ACO__FIND_THREAD(reg) "movl aco__thread@indntpoff," reg "\n\t"
#define ACO__FIND_ARRIVAL(reg) "movl $1f," reg "\n\t"
#define ACO__PUSH_RESUME_ADDRESS "pushl $1f\n\t" ACO__NO_FRAME("eip")
#define ACO__HERE(reg) "8:\tmovl $8b," reg "\n\t"
#endif
#define ACO__RESUME_ADDRESS ACO__FIND_ARRIVAL("%%edx")
#define ACO__IN_STACK_RESUME_ADDRESS ACO__FIND_ARRIVAL("%%ecx")

/* Operands: a field of the control block (eax), of the one that a transfer leaves (ebx), of the one that ACO__ENTER
 * enters (edx), of the thread record (edi). */
#define ACO__BLOCK(offset) ACO__TEXT(offset) "(%%eax)"
#define ACO__LEAVING(offset) ACO__TEXT(offset) "(%%ebx)"
#define ACO__ENTERED(offset) ACO__TEXT(offset) "(%%edx)"
#ifdef ACO__THREAD_TLS
#define ACO__THREAD(offset) "%%gs:" ACO__TEXT(offset) "(%%edi)"
#define ACO__TLS_REF_IS_OFFSET

/* The offset of the thread record from the thread pointer. */
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref_read(void)
{
    aco__tls_ref_t tls;
    __asm__ volatile(ACO__FIND_THREAD("%0") : "=r"(tls) : : "cc");
    return tls;
}

ACO__FORCE_INLINE aco__thread_t *aco__self_at(aco__tls_ref_t tls)
{
    __asm__ volatile("addl %%gs:0,%0" : "+r"(tls) : : "cc");
    return (aco__thread_t *)tls;
}

ACO__FORCE_INLINE struct aco_s *aco__running_at(aco__tls_ref_t tls)
{
    struct aco_s *co;
    __asm__ volatile("movl %%gs:" ACO__TEXT(ACO__RUNNING) "(%1),%0" : "=r"(co) : "r"(tls));
    return co;
}

ACO__FORCE_INLINE const aco__exceptions_t *aco__exceptions_at(aco__tls_ref_t tls)
{
    const aco__exceptions_t *here;
    __asm__ volatile("movl %%gs:" ACO__TEXT(ACO__EXCEPTIONS) "(%1),%0" : "=r"(here) : "r"(tls));
    return here;
}
#else
#define ACO__THREAD(offset) ACO__TEXT(offset) "(%%edi)"
#endif

/* Where a stack begins. Its top is 64-byte aligned, and a function begins with its return address just below a 16-byte
 * boundary.
 *
 * aco__generator_begin calls a generator's function. It finds at its stack pointer, a multiple of 16:
 *   32   the argument
 *   16   four more parameters: the consumer's ecx, edi, ebx and ecx again; aco__generator_begin stores them there
 *   12   the return address
 *    0   the function
 *
 * ACO__ARRIVAL_PARAMETERS: what a function that a switch enters finds in the registers that cross every switch. */
#define ACO__ENTRY_BELOW_TOP 4
#define ACO__RETURN_WORD 0
#define ACO__ARGUMENTS_ROOM 0
#define ACO__GENERATOR_PARAMETERS void *aco__sp, void *aco__bp, void *aco__base, void *aco__pc
#define ACO__START_POPS /* a switch pops the resume address of a generator from its stack */
enum { ACO__START_FUNCTION = 0, ACO__START_RETURN = 3, ACO__START_ARGUMENT = 8, ACO__START_WORDS = 12 };
#define ACO__ARRIVAL_ABI __attribute__((regparm(3)))
#define ACO__ARRIVAL_PARAMETERS                                                                                        \
    __attribute__((unused)) uintptr_t tagged, __attribute__((unused)) uintptr_t aco__resume_address,                   \
        __attribute__((unused)) void *value

#ifdef __clang__
#define ACO__KEEP_BASE(to) "movl %%esi," to(ACO__BASE) "\n\t"
#define ACO__RESUMER_BASE "movl " ACO__THREAD(ACO__BASE) ",%%esi\n\t"
#define ACO__RUNNING_BASE "movl " ACO__THREAD(ACO__RUNNING) ",%%edx\n\tmovl " ACO__TEXT(ACO__BASE) "(%%edx),%%esi\n\t"
#define ACO__CLOBBER_BASE
#else
#define ACO__KEEP_BASE(to)
#define ACO__RESUMER_BASE
#define ACO__RUNNING_BASE
#define ACO__CLOBBER_BASE "esi",
#endif

#ifdef __AVX512F__
#define ACO__CLOBBER_AVX512 , "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define ACO__CLOBBER_AVX512
#endif
#define ACO__CLOBBERS_OF_ALL                                                                                           \
    ACO__CLOBBER_BASE "memory", "cc"                                                                                   \
    ACO__IF_MMX("mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7")                                                \
    ACO__IF_X87("st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)")                                   \
    ACO__IF_SSE("xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7") ACO__CLOBBER_AVX512
#define ACO__CLOBBERS "edx", ACO__CLOBBERS_OF_ALL /* all except ebx */

#define ACO__LANDING_PAD ACO__IF_LANDING_PADS("endbr32\n\t")

/* Store the leaving side; edx holds the resume address. */
#define ACO__STORE(to)                                                                                                 \
    "movl %%esp," to(ACO__SP) "\n\t"                                                                                   \
    "movl %%edx," to(ACO__PC) "\n\t"                                                                                   \
    "movl %%ebp," to(ACO__BP) "\n\t" ACO__KEEP_BASE(to)

/* Load the arriving side and go there. */
#define ACO__LEAVE(from)                                                                                               \
    ACO__CLEAR_UPPER                                                                                                   \
    "movl " from(ACO__SP) ",%%esp\n\t"                                                                                 \
    ACO__NO_FRAME("eip")                                                                                               \
    "movl " from(ACO__BP) ",%%ebp\n\t"                                                                                 \
    "jmpl *" from(ACO__PC) "\n"                                                                                        \
    ACO__FRAME_AGAIN

/* Floating-point environments, as x86_64.h explains. A unit compiled without SSE swaps MXCSR too, because the C
 * library's fesetround() changes it on every processor that has it. Where there is none, fp_load_always is negative. */
#define ACO__FP_SWAP(to, from)                                                                                         \
    "cmpb $0," ACO__BLOCK(ACO__STATE_BYTE) "\n\t"                                                                      \
    "jns 4f\n"                                                                                                         \
    "5:\t"
#define ACO__FP_SLOW(to, from)                                                                                         \
    "4:\tcmpb $0," ACO__THREAD(ACO__LOAD_ALWAYS) "\n\t"                                                                \
    "js 3f\n\t"                                                                                                        \
    "stmxcsr " to(ACO__MXCSR) "\n\t"                                                                                   \
    "je 6f\n"                                                                                                          \
    "2:\tldmxcsr " from(ACO__MXCSR) "\n"                                                                               \
    "3:\tfnstcw " to(ACO__X87CW) "\n\t"                                                                                \
    "movzwl " to(ACO__X87CW) ",%%edx\n\t"                                                                              \
    "cmpw " from(ACO__X87CW) ",%%dx\n\t"                                                                               \
    "je 5b\n\t"                                                                                                        \
    "fnclex\n\t"                                                                                                       \
    "fldcw " from(ACO__X87CW) "\n\t"                                                                                   \
    "jmp 5b\n"                                                                                                         \
    "6:\tmovl " to(ACO__MXCSR) ",%%edx\n\t"                                                                            \
    "xorl " from(ACO__MXCSR) ",%%edx\n\t"                                                                              \
    "andl $-64,%%edx\n\t"                                                                                              \
    "jne 2b\n\t"                                                                                                       \
    "jmp 3b\n"

/* At the jump: eax = co, edi = thread record, ecx = the value. At 1, after a coroutine's yield or end: the same, eax
 * perhaps with the interrupt flag. ebp and esp are this side's again. */
#define ACO__RESUME(fp_swap, fp_slow)                                                                                  \
    __asm__ volatile(ACO__RESUME_ADDRESS                                                                               \
                     "movl %%eax," ACO__THREAD(ACO__RUNNING) "\n\t"                                                    \
                     ACO__STORE(ACO__THREAD)                                                                           \
                     fp_swap(ACO__THREAD, ACO__BLOCK)                                                                  \
                     ACO__LEAVE(ACO__BLOCK)                                                                            \
                     fp_slow(ACO__THREAD, ACO__BLOCK)                                                                  \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     ACO__RESUMER_BASE                                                                                 \
                     : "+a"(co), "+D"(tls), "+c"(value) : : "ebx", ACO__CLOBBERS)

/* At the jump: eax = co, edi = thread record and ecx = the value: the resumer finds them there. At 1, after a resume:
 * the same, perhaps with another thread's record; eax perhaps with the interrupt flag. */
#define ACO__YIELD(fp_swap, fp_slow)                                                                                   \
    __asm__ volatile(ACO__RESUME_ADDRESS                                                                               \
                     "movl $0," ACO__THREAD(ACO__RUNNING) "\n\t"                                                       \
                     ACO__STORE(ACO__BLOCK)                                                                            \
                     fp_swap(ACO__BLOCK, ACO__THREAD)                                                                  \
                     ACO__LEAVE(ACO__THREAD)                                                                           \
                     fp_slow(ACO__BLOCK, ACO__THREAD)                                                                  \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     ACO__RUNNING_BASE                                                                                 \
                     : "+a"(co), "+D"(tls), "+c"(value) : : "ebx", ACO__CLOBBERS)

/* From coroutine to coroutine: stores what a yield stores, loads what a resume loads. At 1: as after a yield. */
#define ACO__TRANSFER(fp_swap, fp_slow)                                                                                \
    __asm__ volatile(ACO__RESUME_ADDRESS                                                                               \
                     "movl %%eax," ACO__THREAD(ACO__RUNNING) "\n\t"                                                    \
                     ACO__STORE(ACO__LEAVING)                                                                          \
                     fp_swap(ACO__LEAVING, ACO__BLOCK)                                                                 \
                     ACO__LEAVE(ACO__BLOCK)                                                                            \
                     fp_slow(ACO__LEAVING, ACO__BLOCK)                                                                 \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     ACO__RUNNING_BASE                                                                                 \
                     : "+a"(co), "+D"(tls), "+c"(value), "+r"(leaving) : : ACO__CLOBBERS)
#define ACO__LEAVING_REGISTER __asm__("ebx")

/* Leaves for good: nothing is stored. */
#define ACO__EXIT                                                                                                      \
    __asm__ volatile("movl $0," ACO__THREAD(ACO__RUNNING) "\n\t"                                                       \
                     ACO__LEAVE(ACO__THREAD)                                                                           \
                     : : "a"(tagged), "D"(tls), "c"(value) : "memory")
#define ACO__ENTER                                                                                                     \
    __asm__ volatile(ACO__LEAVE(ACO__ENTERED)                                                                          \
                     : : "d"(co), "a"(tagged), "D"(tls), "c"(value) : "memory")

/* ---- Generators: as in x86_64.h ----
 *
 * At the jump and on arrival, label 1:
 *   edi   the leaving side's ebp
 *   ebx   the leaving side's esi: with clang perhaps its base pointer
 *   edx   the value
 *   ecx   own stack: the leaving side's esp, which points to its resume address; in-stack: the resume address itself,
 *         or 0 when the leaving side has ended
 *   eax   own stack: 0 when the leaving side has ended, else not 0 */
#define ACO__PEER_BASE __asm__("ebx")
#define ACO__PEER_SWAP                                                                                                 \
    __asm__ volatile(ACO__PUSH_RESUME_ADDRESS ACO__CLEAR_UPPER                                                         \
                     "xchgl %%ebp,%%edi\n\t"                                                                           \
                     "xchgl %%esi,%%ebx\n\t"                                                                           \
                     "xchgl %%esp,%%ecx\n\t"                                                                           \
                     "popl %%eax\n\t"                                                                                  \
                     "jmpl *%%eax\n"                                                                                   \
                     ACO__FRAME_AGAIN                                                                                  \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     : "=a"(pc), "+D"(bp), "+c"(sp), "+r"(base), "+d"(value) : : ACO__CLOBBERS_OF_ALL)
#define ACO__PEER_SWAP_LAST                                                                                            \
    __asm__ volatile(ACO__CLEAR_UPPER                                                                                  \
                     "xorl %%eax,%%eax\n\t"                                                                            \
                     "movl %%ebx,%%esi\n\t"                                                                            \
                     "movl %%edi,%%ebp\n\t"                                                                            \
                     ACO__NO_FRAME("eip")                                                                              \
                     "movl %%ecx,%%esp\n\t"                                                                            \
                     "popl %%ecx\n\t"                                                                                  \
                     "jmpl *%%ecx\n"                                                                                   \
                     ACO__FRAME_AGAIN                                                                                  \
                     : : "D"(bp), "c"(sp), "r"(base), "d"(value) : "memory")

#define ACO__IN_STACK_RESUME                                                                                           \
    __asm__ volatile("cmpl %%eax,%%esp\n\t"                                                                            \
                     "jne 2f\n\t"                                                                                      \
                     "movl %%ecx,%%eax\n\t" ACO__IN_STACK_RESUME_ADDRESS ACO__CLEAR_UPPER                              \
                     "xchgl %%esi,%%ebx\n\t"                                                                           \
                     "xchgl %%ebp,%%edi\n\t"                                                                           \
                     ACO__NO_FRAME("eip")                                                                              \
                     "jmpl *%%eax\n"                                                                                   \
                     ACO__FRAME_AGAIN                                                                                  \
                     "2:\tmovl $1,%%ecx\n\t"                                                                           \
                     "jmp 3f\n"                                                                                        \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     "movl %%esp,%%eax\n"                                                                              \
                     "3:"                                                                                              \
                     : "+c"(pc), "+a"(sp), "+D"(bp), "+r"(base), "+d"(value) ACO__MOVES_STACK : : ACO__CLOBBERS_OF_ALL)
#define ACO__IN_STACK_YIELD                                                                                            \
    __asm__ volatile("movl %%ecx,%%eax\n\t" ACO__IN_STACK_RESUME_ADDRESS ACO__CLEAR_UPPER                              \
                     "xchgl %%esi,%%ebx\n\t"                                                                           \
                     "xchgl %%ebp,%%edi\n\t"                                                                           \
                     ACO__NO_FRAME("eip")                                                                              \
                     "jmpl *%%eax\n"                                                                                   \
                     ACO__FRAME_AGAIN                                                                                  \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     : "+c"(pc), "+D"(bp), "+r"(base), "+d"(value) ACO__MOVES_STACK : : "eax", ACO__CLOBBERS_OF_ALL)
/* In a function that calls nothing, esp may be no multiple of 16. The consumer may call a function before it restores
 * its own esp. */
#define ACO__IN_STACK_LAST                                                                                             \
    __asm__ volatile(ACO__CLEAR_UPPER                                                                                  \
                     "movl %%ecx,%%eax\n\t"                                                                            \
                     "xorl %%ecx,%%ecx\n\t"                                                                            \
                     "movl %%ebx,%%esi\n\t"                                                                            \
                     "movl %%edi,%%ebp\n\t"                                                                            \
                     ACO__NO_FRAME("eip")                                                                              \
                     "andl $-16,%%esp\n\t"                                                                             \
                     "jmpl *%%eax\n"                                                                                   \
                     ACO__FRAME_AGAIN                                                                                  \
                     : : "c"(pc), "D"(bp), "r"(base), "d"(value) : "eax", "memory", "cc")
#define ACO__IN_STACK_BEGIN                                                                                            \
    __asm__ volatile(ACO__HERE("%2")                                                                                   \
                     "addl $-128,%%esp\n\t"                                                                            \
                     "andl $-16,%%esp\n\t"                                                                             \
                     "movl %%esp,%0\n\t"                                                                               \
                     "movl %%ebp,%1"                                                                                   \
                     : "=&r"(sp), "=&r"(bp), "=&r"(here) ACO__MOVES_STACK : : "memory", "cc")
#define ACO__IN_STACK_END(outer)                                                                                       \
    __asm__ volatile("movl %0,%%esp" : "+r"(outer) ACO__MOVES_STACK : : "memory")
#define ACO__STACK_POINTER(sp, zero)                                                                                   \
    __asm__ volatile("movl %%esp,%0\n\t"                                                                               \
                     "xorl %1,%1"                                                                                      \
                     : "=&r"(sp), "=&r"(zero) ACO__MOVES_STACK : : "cc")

#endif
