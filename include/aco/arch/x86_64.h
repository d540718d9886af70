/* The switch on x86-64, System V ABI and Windows. Contract and rules: ../detail/switch.h.
 * Source of the register roles: System V ABI, AMD64 Architecture Processor Supplement 1.0, figure 3.4.
 *
 * register               in the ABI      here
 * rsp                    callee-saved    stored and loaded
 * rbp                    callee-saved    stored and loaded: it cannot be a clobber where it is the frame pointer
 * rbx                    callee-saved    a clobber; with clang stored and loaded: it is the base pointer of
 *                                        over-aligned frames with variable parts, and clang lets an asm clobber it
 *                                        there and crashes
 * r12-r15                callee-saved    clobbers: the compiler saves those that are live, and only those
 * rdi                    scratch         the control block's address, carried across the switch
 * rsi                    scratch         the thread record's offset from the thread pointer; the same on both sides
 * rdx                    scratch         the resume address, on its way to memory
 * rcx                    scratch         the value, carried across the switch
 * r8                     scratch         in a transfer, the control block of the coroutine that leaves; else a clobber
 * rax, r9-r11            scratch         clobbers (rax: comparing control words)
 * xmm, k, st, mm         scratch         clobbers; upper halves of ymm and zmm: vzeroupper where AVX is compiled in
 * MXCSR control bits     callee-saved    stored and loaded if `fp` is 1 and the coroutine has its own; else untouched
 * x87 control word       callee-saved    the same
 * DF, x87 stack          clear, empty    untouched: the ABI requires these values at every call, and no switch changes
 *                                        them
 * fs                     thread pointer  untouched
 *
 * On Windows rdi, rsi and xmm6-15 are callee-saved: the compiler saves what an asm changes, so the roles stay the same.
 * gs is the thread pointer, and rsi holds the thread record's address. */
#ifndef ACO_ARCH_X86_64_H
#define ACO_ARCH_X86_64_H

#define ACO__STACK_REGISTER "rsp"
#define ACO__STACK_OPERAND "+r"

/* Operands: a field of the control block (rdi), of the one that a transfer leaves (r8), of the one that ACO__ENTER
 * enters (rdx), of the thread record (rsi). */
#define ACO__BLOCK(offset) ACO__TEXT(offset) "(%%rdi)"
#define ACO__LEAVING(offset) ACO__TEXT(offset) "(%%r8)"
#define ACO__ENTERED(offset) ACO__TEXT(offset) "(%%rdx)"
#ifdef ACO__THREAD_TLS
#define ACO__THREAD(offset) "%%fs:" ACO__TEXT(offset) "(%%rsi)"
#define ACO__TLS_REF_IS_OFFSET

/* The offset of the thread record from the thread pointer. In executables the linker turns the load into a constant. */
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref_read(void)
{
    aco__tls_ref_t tls;
    __asm__ volatile("movq aco__thread@gottpoff(%%rip),%0" : "=r"(tls));
    return tls;
}

ACO__FORCE_INLINE aco__thread_t *aco__self_at(aco__tls_ref_t tls)
{
    __asm__ volatile("addq %%fs:0,%0" : "+r"(tls) : : "cc");
    return (aco__thread_t *)tls;
}

ACO__FORCE_INLINE struct aco_s *aco__running_at(aco__tls_ref_t tls)
{
    struct aco_s *co;
    __asm__ volatile("movq %%fs:" ACO__TEXT(ACO__RUNNING) "(%1),%0" : "=r"(co) : "r"(tls));
    return co;
}

ACO__FORCE_INLINE const aco__exceptions_t *aco__exceptions_at(aco__tls_ref_t tls)
{
    const aco__exceptions_t *here;
    __asm__ volatile("movq %%fs:" ACO__TEXT(ACO__EXCEPTIONS) "(%1),%0" : "=r"(here) : "r"(tls));
    return here;
}

#ifdef __GCC_ASM_FLAG_OUTPUTS__
#define ACO__NOTHING_RUNS_IS_A_FLAG
ACO__FORCE_INLINE int aco__nothing_runs_at(aco__tls_ref_t tls)
{
    int nothing;
    __asm__ volatile("cmpq $0,%%fs:" ACO__TEXT(ACO__RUNNING) "(%1)" : "=@cce"(nothing) : "r"(tls));
    return nothing;
}
#endif
#else
#define ACO__THREAD(offset) ACO__TEXT(offset) "(%%rsi)"
#endif

ACO__FORCE_INLINE uintptr_t aco__slot_value(uintptr_t offset)
{
    uintptr_t value;
    __asm__ volatile("movq %%gs:(%1),%0" : "=r"(value) : "r"(offset));
    return value;
}

/* Where a stack begins. Its top is 64-byte aligned, and a function begins with its return address just below a 16-byte
 * boundary.
 *
 * aco__generator_begin calls a generator's function. It finds at its stack pointer, a multiple of 16:
 *   16   the argument: the seventh parameter, where the ABI has it (Windows: 64)
 *    8   the return address
 *    0   the function
 *
 * ACO__ARRIVAL_PARAMETERS: what a function that a switch enters finds in the registers that cross every switch. */
#define ACO__RETURN_WORD 0
#define ACO__ARGUMENTS_ROOM 0
#define ACO__GENERATOR_PARAMETERS                                                                                      \
    void *aco__pc, void *aco__bp, __attribute__((unused)) void *aco__value, void *aco__sp, void *aco__base,            \
        __attribute__((unused)) void *aco__r9
#define ACO__ARRIVAL_ABI
#ifdef _WIN32 /* there is room for four parameters above a return address; assembly moves the parameters there */
#define ACO__ENTRY_BELOW_TOP 72
enum { ACO__START_FUNCTION = 0, ACO__START_RETURN = 1, ACO__START_ARGUMENT = 8, ACO__START_WORDS = 10 };
#define ACO__BEGINS_IN_ASSEMBLY
#define ACO__ARRIVES_IN_ASSEMBLY
#define ACO__ARRIVAL_PARAMETERS __attribute__((unused)) uintptr_t tagged, __attribute__((unused)) void *value
#else
#define ACO__ENTRY_BELOW_TOP 8
enum { ACO__START_FUNCTION = 0, ACO__START_RETURN = 1, ACO__START_ARGUMENT = 2, ACO__START_WORDS = 4 };
#define ACO__ARRIVAL_PARAMETERS                                                                                        \
    __attribute__((unused)) uintptr_t tagged, __attribute__((unused)) uintptr_t aco__thread_offset,                    \
        __attribute__((unused)) uintptr_t aco__resume_address, __attribute__((unused)) void *value
#endif

#ifdef __clang__
#define ACO__KEEP_BASE(to) "movq %%rbx," to(ACO__BASE) "\n\t"
#define ACO__RESUMER_BASE "movq " ACO__THREAD(ACO__BASE) ",%%rbx\n\t"
#define ACO__RUNNING_BASE "movq " ACO__THREAD(ACO__RUNNING) ",%%rax\n\tmovq " ACO__TEXT(ACO__BASE) "(%%rax),%%rbx\n\t"
#define ACO__CLOBBER_BASE
#else
#define ACO__KEEP_BASE(to)
#define ACO__RESUMER_BASE
#define ACO__RUNNING_BASE
#define ACO__CLOBBER_BASE "rbx",
#endif

/* gcc accepts these names only where the registers exist. clang accepts them in every unit, so functions with a target
 * attribute are covered too. */
#if defined(__AVX512F__) || defined(__clang__)
#define ACO__CLOBBER_AVX512                                                                                            \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",      \
        "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define ACO__CLOBBER_AVX512
#endif
#ifdef __APX_F__
#define ACO__CLOBBER_APX                                                                                               \
    , "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31"
#else
#define ACO__CLOBBER_APX
#endif
#define ACO__CLOBBERS_OF_ALL                                                                                           \
    ACO__CLOBBER_BASE "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc"                                   \
    ACO__IF_MMX("mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7")                                                \
    ACO__IF_X87("st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)")                                   \
    ACO__IF_SSE("xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",      \
                "xmm12", "xmm13", "xmm14", "xmm15")                                                                    \
    ACO__CLOBBER_AVX512 ACO__CLOBBER_APX
#define ACO__CLOBBERS "rax", "rdx", ACO__CLOBBERS_OF_ALL /* all except r8 */

#define ACO__LANDING_PAD ACO__IF_LANDING_PADS("endbr64\n\t")
#if defined(__CET__) && (__CET__ & 2)
#define ACO__SHADOW_POINTER(pointer) __asm__ volatile("rdsspq %0" : "+r"(pointer)) /* no shadow stack: no change */
#endif

/* Store the leaving side; rdx holds the resume address. */
#define ACO__STORE(to)                                                                                                 \
    "movq %%rsp," to(ACO__SP) "\n\t"                                                                                   \
    "movq %%rdx," to(ACO__PC) "\n\t"                                                                                   \
    "movq %%rbp," to(ACO__BP) "\n\t" ACO__KEEP_BASE(to)

/* Load the arriving side and go there. */
#define ACO__LEAVE(from)                                                                                               \
    ACO__CLEAR_UPPER                                                                                                   \
    "movq " from(ACO__SP) ",%%rsp\n\t"                                                                                 \
    ACO__NO_FRAME("rip")                                                                                               \
    "movq " from(ACO__BP) ",%%rbp\n\t"                                                                                 \
    "jmpq *" from(ACO__PC) "\n"                                                                                        \
    ACO__FRAME_AGAIN

/* Floating-point environments, if the coroutine has its own (else its state byte is negative): the code after the
 * jump stores the leaving side's control words and loads the arriving side's where they differ. MXCSR's status bits
 * (0-5) are not compared: no call preserves them. Loading a changed value stalls some processors for tens of cycles,
 * so the values are compared first. On other processors the comparison waits for stmxcsr longer than a load takes;
 * fp_load_always is set there (bench/lab/switch-check.c). fnclex: a sticky exception of one side must not trap under
 * the other's unmasked control word. */
#define ACO__FP_SWAP(to, from)                                                                                         \
    "cmpb $0," ACO__BLOCK(ACO__STATE_BYTE) "\n\t"                                                                      \
    "jns 4f\n"                                                                                                         \
    "5:\t"
#define ACO__FP_SLOW(to, from)                                                                                         \
    "4:\tstmxcsr " to(ACO__MXCSR) "\n\t"                                                                               \
    "fnstcw " to(ACO__X87CW) "\n\t"                                                                                    \
    "cmpb $0," ACO__THREAD(ACO__LOAD_ALWAYS) "\n\t"                                                                    \
    "je 6f\n"                                                                                                          \
    "2:\tldmxcsr " from(ACO__MXCSR) "\n"                                                                               \
    "3:\tmovzwl " to(ACO__X87CW) ",%%eax\n\t"                                                                          \
    "cmpw " from(ACO__X87CW) ",%%ax\n\t"                                                                               \
    "je 5b\n\t"                                                                                                        \
    "fnclex\n\t"                                                                                                       \
    "fldcw " from(ACO__X87CW) "\n\t"                                                                                   \
    "jmp 5b\n"                                                                                                         \
    "6:\tmovl " to(ACO__MXCSR) ",%%eax\n\t"                                                                            \
    "xorl " from(ACO__MXCSR) ",%%eax\n\t"                                                                              \
    "andl $-64,%%eax\n\t"                                                                                              \
    "jne 2b\n\t"                                                                                                       \
    "jmp 3b\n"

/* At the jump: rdi = co, rsi = thread record, rcx = the value. At 1, after a coroutine's yield or end: the same, rdi
 * perhaps with the interrupt flag. rbp and rsp are this side's again. */
#define ACO__RESUME(fp_swap, fp_slow)                                                                                  \
    __asm__ volatile("leaq 1f(%%rip),%%rdx\n\t"                                                                        \
                     "movq %%rdi," ACO__THREAD(ACO__RUNNING) "\n\t"                                                    \
                     ACO__STORE(ACO__THREAD)                                                                           \
                     fp_swap(ACO__THREAD, ACO__BLOCK)                                                                  \
                     ACO__LEAVE(ACO__BLOCK)                                                                            \
                     fp_slow(ACO__THREAD, ACO__BLOCK)                                                                  \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     ACO__RESUMER_BASE                                                                                 \
                     : "+D"(co), "+S"(tls), "+c"(value) : : "r8", ACO__CLOBBERS)

/* At the jump: rdi = co, rsi = thread record and rcx = the value: the resumer finds them there. At 1, after a resume:
 * the same, perhaps with another thread's record; rdi perhaps with the interrupt flag. */
#define ACO__YIELD(fp_swap, fp_slow)                                                                                   \
    __asm__ volatile("leaq 1f(%%rip),%%rdx\n\t"                                                                        \
                     "movq $0," ACO__THREAD(ACO__RUNNING) "\n\t"                                                       \
                     ACO__STORE(ACO__BLOCK)                                                                            \
                     fp_swap(ACO__BLOCK, ACO__THREAD)                                                                  \
                     ACO__LEAVE(ACO__THREAD)                                                                           \
                     fp_slow(ACO__BLOCK, ACO__THREAD)                                                                  \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     ACO__RUNNING_BASE                                                                                 \
                     : "+D"(co), "+S"(tls), "+c"(value) : : "r8", ACO__CLOBBERS)

/* From coroutine to coroutine: stores what a yield stores, loads what a resume loads. At 1: as after a yield. */
#define ACO__TRANSFER(fp_swap, fp_slow)                                                                                \
    __asm__ volatile("leaq 1f(%%rip),%%rdx\n\t"                                                                        \
                     "movq %%rdi," ACO__THREAD(ACO__RUNNING) "\n\t"                                                    \
                     ACO__STORE(ACO__LEAVING)                                                                          \
                     fp_swap(ACO__LEAVING, ACO__BLOCK)                                                                 \
                     ACO__LEAVE(ACO__BLOCK)                                                                            \
                     fp_slow(ACO__LEAVING, ACO__BLOCK)                                                                 \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     ACO__RUNNING_BASE                                                                                 \
                     : "+D"(co), "+S"(tls), "+c"(value), "+r"(leaving) : : ACO__CLOBBERS)
#define ACO__LEAVING_REGISTER __asm__("r8")

/* Leaves for good: nothing is stored. */
#define ACO__EXIT                                                                                                      \
    __asm__ volatile("movq $0," ACO__THREAD(ACO__RUNNING) "\n\t"                                                       \
                     ACO__LEAVE(ACO__THREAD)                                                                           \
                     : : "D"(tagged), "S"(tls), "c"(value) : "memory")
#define ACO__ENTER                                                                                                     \
    __asm__ volatile(ACO__LEAVE(ACO__ENTERED)                                                                          \
                     : : "d"(co), "D"(tagged), "S"(tls), "c"(value) : "memory")

/* ---- Generators: the other side's context is in registers, and so is the resume address ----
 *
 * At the jump and on arrival, label 1:
 *   rdi   the leaving side's resume address, 0 when it has ended
 *   rsi   the leaving side's rbp
 *   rcx   the leaving side's rsp (own stack)
 *   r8    the leaving side's rbx: with clang perhaps its base pointer, which cannot be a clobber; the same protocol
 *         for all compilers
 *   rdx   the value
 * The two sides swap registers, because they share no memory. */
#define ACO__PEER_BASE __asm__("r8")
#define ACO__PEER_SWAP                                                                                                 \
    do {                                                                                                               \
        void *aco__to = pc;                                                                                            \
        __asm__ volatile("leaq 1f(%%rip),%%rdi\n\t" ACO__CLEAR_UPPER                                                   \
                         "xchgq %%rbx,%%r8\n\t"                                                                        \
                         "xchgq %%rbp,%%rsi\n\t"                                                                       \
                         ACO__NO_FRAME("rip")                                                                          \
                         "xchgq %%rsp,%%rcx\n\t"                                                                       \
                         "jmpq *%%rax\n"                                                                               \
                         ACO__FRAME_AGAIN                                                                              \
                         "1:\t" ACO__LANDING_PAD                                                                       \
                         : "+a"(aco__to), "=&D"(pc), "+S"(bp), "+c"(sp), "+r"(base), "+d"(value)                       \
                         : : ACO__CLOBBERS_OF_ALL);                                                                    \
    } while (0)

/* For the last time: nothing of the leaving side is kept. */
#define ACO__PEER_SWAP_LAST                                                                                            \
    __asm__ volatile(ACO__CLEAR_UPPER                                                                                  \
                     "movq %%rdi,%%rax\n\t"                                                                            \
                     "xorl %%edi,%%edi\n\t"                                                                            \
                     "movq %%r8,%%rbx\n\t"                                                                             \
                     "movq %%rsi,%%rbp\n\t"                                                                            \
                     ACO__NO_FRAME("rip")                                                                              \
                     "movq %%rcx,%%rsp\n\t"                                                                            \
                     "jmpq *%%rax\n"                                                                                   \
                     ACO__FRAME_AGAIN                                                                                  \
                     : : "D"(pc), "S"(bp), "c"(sp), "r"(base), "d"(value) : "rax", "memory", "cc")

/* The same for in-stack generators. The generator's frames stand right below the consumer's, and rsp stays where it is,
 * below both. The consumer may enter only while the generator's frames are the innermost: rsp must be what it was when
 * the consumer left them (rcx). Else rdi = 1. */
#define ACO__IN_STACK_RESUME                                                                                           \
    __asm__ volatile("cmpq %%rcx,%%rsp\n\t"                                                                            \
                     "jne 2f\n\t"                                                                                      \
                     "movq %%rdi,%%rax\n\t"                                                                            \
                     "leaq 1f(%%rip),%%rdi\n\t" ACO__CLEAR_UPPER                                                       \
                     "xchgq %%rbx,%%r8\n\t"                                                                            \
                     "xchgq %%rbp,%%rsi\n\t"                                                                           \
                     ACO__NO_FRAME("rip")                                                                              \
                     "jmpq *%%rax\n"                                                                                   \
                     ACO__FRAME_AGAIN                                                                                  \
                     "2:\tmovl $1,%%edi\n\t"                                                                           \
                     "jmp 3f\n"                                                                                        \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     "movq %%rsp,%%rcx\n"                                                                              \
                     "3:"                                                                                              \
                     : "+D"(pc), "+S"(bp), "+c"(sp), "+r"(base), "+d"(value) ACO__MOVES_STACK                          \
                     : : "rax", ACO__CLOBBERS_OF_ALL)
#define ACO__IN_STACK_YIELD                                                                                            \
    __asm__ volatile("movq %%rdi,%%rax\n\t"                                                                            \
                     "leaq 1f(%%rip),%%rdi\n\t" ACO__CLEAR_UPPER                                                       \
                     "xchgq %%rbx,%%r8\n\t"                                                                            \
                     "xchgq %%rbp,%%rsi\n\t"                                                                           \
                     ACO__NO_FRAME("rip")                                                                              \
                     "jmpq *%%rax\n"                                                                                   \
                     ACO__FRAME_AGAIN                                                                                  \
                     "1:\t" ACO__LANDING_PAD                                                                           \
                     : "+D"(pc), "+S"(bp), "+r"(base), "+d"(value) ACO__MOVES_STACK                                    \
                     : : "rax", "rcx", ACO__CLOBBERS_OF_ALL)
/* The same with two ways back to each side, for compilers whose asm goto has outputs. A value arrives at label 1. What
 * ends a wait otherwise, an end or an injected call, arrives ACO__IN_STACK_BESIDE bytes before, and goes to `ended` or
 * `injected`. So neither side compares what it gets. Each side keeps the other's resume address in a register of its
 * own: the consumer in rax, the generator in rdi. `busy`: the generator's frames are not the innermost.
 * Not for gcc: 12.2 takes an output that another edge has set for undefined (tests/cpp_generator.cpp). */
#if defined(__clang__) && __clang_major__ >= 17
#define ACO__IN_STACK_BESIDE 9
#define ACO__IN_STACK_ARRIVALS(beside)                                                                                 \
    ACO__FRAME_AGAIN                                                                                                   \
    "endbr64\n\t"                                                                                                      \
    ".byte 0xe9\n\t"                                                                                                   \
    ".long %l[" #beside "]-1f\n"                                                                                       \
    "1:\t" ACO__LANDING_PAD
#define ACO__IN_STACK_SWAP_BASE "xchgq %%rbx,%%r8\n\t"
#define ACO__IN_STACK_NEXT(word_operand, ended, busy)                                                                  \
    __asm__ goto("cmpq %%rcx,%%rsp\n\t"                                                                                \
                 "jne %l[" #busy "]\n\t"                                                                               \
                 "leaq 1f(%%rip),%%rdi\n\t" ACO__CLEAR_UPPER ACO__IN_STACK_SWAP_BASE                                   \
                 "xchgq %%rbp,%%rsi\n\t"                                                                               \
                 ACO__NO_FRAME("rip")                                                                                  \
                 "jmpq *%%rax\n"                                                                                       \
                 ACO__IN_STACK_ARRIVALS(ended)                                                                         \
                 "movq %%rsp,%%rcx"                                                                                    \
                 : "+a"(pc), "+S"(bp), "+c"(sp), "+r"(base), word_operand ACO__MOVES_STACK                             \
                 : : "rdi", ACO__CLOBBERS_OF_ALL : ended, busy)
#define ACO__IN_STACK_VALUE(injected)                                                                                  \
    __asm__ goto("leaq 1f(%%rip),%%rax\n\t" ACO__CLEAR_UPPER ACO__IN_STACK_SWAP_BASE                                   \
                 "xchgq %%rbp,%%rsi\n\t"                                                                               \
                 ACO__NO_FRAME("rip")                                                                                  \
                 "jmpq *%%rdi\n"                                                                                       \
                 ACO__IN_STACK_ARRIVALS(injected)                                                                      \
                 : "+D"(pc), "+S"(bp), "+r"(base), "+d"(word) ACO__MOVES_STACK                                         \
                 : : "rax", "rcx", ACO__CLOBBERS_OF_ALL : injected)
#endif
/* In a function that calls nothing, rsp may be no multiple of 16. The consumer may call a function before it restores
 * its own rsp. */
#define ACO__IN_STACK_LAST                                                                                             \
    __asm__ volatile(ACO__CLEAR_UPPER                                                                                  \
                     "movq %%rdi,%%rax\n\t"                                                                            \
                     "xorl %%edi,%%edi\n\t"                                                                            \
                     "movq %%r8,%%rbx\n\t"                                                                             \
                     "movq %%rsi,%%rbp\n\t"                                                                            \
                     ACO__NO_FRAME("rip")                                                                              \
                     "andq $-16,%%rsp\n\t"                                                                             \
                     "jmpq *%%rax\n"                                                                                   \
                     ACO__FRAME_AGAIN                                                                                  \
                     : : "D"(pc), "S"(bp), "r"(base), "d"(value) : "rax", "memory", "cc")

/* Makes room for a generator below the consumer's frame: sp and rsp become rsp - 128, rounded down to a multiple of
 * 16. For the unwinder, here := this address and bp := rbp. The way back: rsp := outer. */
#define ACO__IN_STACK_BEGIN                                                                                            \
    __asm__ volatile("leaq 1f(%%rip),%2\n"                                                                             \
                     "1:\taddq $-128,%%rsp\n\t"                                                                        \
                     "andq $-16,%%rsp\n\t"                                                                             \
                     "movq %%rsp,%0\n\t"                                                                               \
                     "movq %%rbp,%1"                                                                                   \
                     : "=&r"(sp), "=&r"(bp), "=&r"(here) ACO__MOVES_STACK : : "memory", "cc")
#define ACO__IN_STACK_END(outer)                                                                                       \
    __asm__ volatile("movq %0,%%rsp" : "+r"(outer) ACO__MOVES_STACK : : "memory")
#define ACO__STACK_POINTER(sp, zero)                                                                                   \
    __asm__ volatile("movq %%rsp,%0\n\t"                                                                               \
                     "xorl %k1,%k1"                                                                                    \
                     : "=&r"(sp), "=&r"(zero) ACO__MOVES_STACK : : "cc")

#endif
