/* x86-64: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in
 * an object that every program links (an archive member that link-time optimisation sees no symbol in is not found). */

#ifdef _WIN32

/* aco__returned: the return address of what a switch enters from its beginning, which does not return. It stands for a frame
 * above which the unwinder finds a return address of NULL, the end of the stack. A cancellation that was caught and thrown again
 * lands at aco__cancel_landing (end.c).
 *
 *   top      64-byte aligned: the stack's record, of which the stack's lowest address comes first
 *   top-8    NULL: the return address of aco__outermost
 *   top-64   a generator's seven parameters: four words for those in registers, three on the stack
 *   top-72   aco__returned                         <- rsp as a coroutine begins
 *   top-80   a generator's function                <- rsp as a generator begins */
__asm__(".text\n"
        "\t.globl aco__returned\n"
        "\t.globl aco__cancel_landing\n"
        "\t.seh_proc aco__outermost\n"
        "\t.seh_handler aco__outermost_handler, @except, @unwind\n"
        "aco__outermost:\n"
        "\tsubq $56,%rsp\n"
        "\t.seh_stackalloc 56\n"
        "\t.seh_endprologue\n"
        "aco__returned:\n"
        "\tud2\n"
        "aco__cancel_landing:\n" /* rax: the exception */
        "\tsubq $32,%rsp\n"
        "\tmovq %rax,%rcx\n"
        "\tcall aco__cancel_landed\n"
        "\tud2\n"
        "\t.seh_endproc\n");

/* The bounds of the stack whose record is at `record`: include/aco/teb.h. */
#define ACO__ASM_SET_BOUNDS(record)                                                                                    \
    "\tleaq " record ",%rax\n"                                                                                         \
    "\tmovq %rax,%gs:0x08\n"                                                                                           \
    "\tmovq (%rax),%rax\n"                                                                                             \
    "\tmovq %rax,%gs:0x10\n"                                                                                           \
    "\tmovq %rax,%gs:0x1478\n"                                                                                         \
    "\tmovq $-1,%gs:0x00\n"

/* The first arrivals: rdi the word, rcx the value. Of coroutines: of aco_new(), and of aco_create(), whose entry function returns
 * here; of everything else: rbp the function. What is called may write to the 32 bytes above its return address: here they belong
 * to a frame that is saved with the coroutine's others. */
#define ACO__ASM_ARRIVAL(name, call)                                                                                   \
    __asm__(".text\n"                                                                                                  \
            "\t.globl " name "\n"                                                                                      \
            "\t.seh_proc " name "\n" name ":\n"                                                                        \
            "\tsubq $40,%rsp\n"                                                                                        \
            "\t.seh_stackalloc 40\n"                                                                                   \
            "\t.seh_endprologue\n"                                                                                     \
            ACO__ASM_SET_BOUNDS("112(%rsp)")                                                                           \
            "\tmovq %rcx,%rdx\n"                                                                                       \
            "\tmovq %rdi,%rcx\n"                                                                                       \
            call                                                                                                       \
            "\tud2\n"                                                                                                  \
            "\t.seh_endproc\n")
ACO__ASM_ARRIVAL("aco__begin", "\tcall aco__begun\n");
ACO__ASM_ARRIVAL("aco__begin_entry", "\tcall *56(%rdi)\n\tcall aco__entry_returned\n");
ACO__ASM_ARRIVAL("aco__arrive", "\tmovq %rbp,%rax\n\txorl %ebp,%ebp\n\tcall *%rax\n");

/* The first arrival in a generator, as ACO__EXCHANGE passes (include/aco/arch/x86_64.h): its function gets what is in
 * ACO__GENERATOR_PARAMETERS. */
__asm__(".text\n"
        "\t.globl aco__generator_begin\n"
        "\t.seh_proc aco__generator_begin\n"
        "aco__generator_begin:\n"
        "\t.seh_stackalloc 8\n"
        "\t.seh_endprologue\n"
        ACO__ASM_SET_BOUNDS("80(%rsp)")
        "\tpopq %rax\n"
        "\tmovq %r8,40(%rsp)\n" /* base */
        "\tmovq %rcx,%r9\n"     /* sp */
        "\tmovq %rdx,%r8\n"     /* value */
        "\tmovq %rsi,%rdx\n"    /* bp */
        "\tmovq %rdi,%rcx\n"    /* pc */
        "\tjmpq *%rax\n"
        "\t.seh_endproc\n");

#else

/* aco__returned: an entry function's return address; aco__unlinked_returned: that of what has no resumer, a generator or what
 * runs on a scratch stack.
 *
 *   top     64-byte aligned: the stack's record   <- rsp on arrival at aco__returned
 *   top-8   aco__returned                         <- rsp on entry to the entry function
 *
 * aco__shadow_begin(rdi: a token; src/shadow.h) is on the caller's shadow stack, by the call on the new one, which is what the
 * call is for, and at the end on the caller's. rdx: the caller's shadow stack pointer, 8 below which its token stands meanwhile.
 *
 * Unwinders look one byte before a return address: at the nops, or the call. They find this function, named aco__outermost, and
 * go on in the resumer (assembly.h), or find by an undefined rip the end of the stack. A signal frame, for two reasons: gdb takes
 * it from any stack to any other, and the place in the resumer is not one after a call. A cancellation that was caught and thrown
 * again lands at aco__cancel_landing (end.c). */
#if defined(__CET__) && (__CET__ & 2)
#define ACO__ASM_SHADOW_BEGIN                                                                                          \
    ACO__ASM_INSIDE("aco__shadow_begin")                                                                               \
    "\trdsspq %rdx\n"                                                                                                  \
    "\trstorssp (%rdi)\n"                                                                                              \
    "\tsaveprevssp\n"
#define ACO__ASM_BEFORE_RETURNED "\tcall 1f\n"
#define ACO__ASM_SHADOW_BEGUN                                                                                          \
    "1:\tpopq %rax\n"                                                                                                  \
    "\trstorssp -8(%rdx)\n"                                                                                            \
    "\tsaveprevssp\n"                                                                                                  \
    "\tret\n"
#else
#define ACO__ASM_SHADOW_BEGIN
#define ACO__ASM_BEFORE_RETURNED "\tnop\n"
#define ACO__ASM_SHADOW_BEGUN
#endif
__asm__(ACO__ASM_OUTERMOST
        "\t.cfi_undefined rip\n"
        "\tnop\n"
        ACO__ASM_INSIDE("aco__unlinked_returned")
        "\tud2\n"
        ACO__ASM_SHADOW_BEGIN
#ifdef ACO__LINKS
        "\t.cfi_signal_frame\n"
        "\t.cfi_remember_state\n"
        ACO__ASM_LINK("7", "0", "16", "6", "3")
        "\t.cfi_undefined r12\n\t.cfi_undefined r13\n\t.cfi_undefined r14\n\t.cfi_undefined r15\n"
#endif
        ACO__ASM_BEFORE_RETURNED
        ACO__ASM_INSIDE("aco__returned")
        "\tcall " ACO__ASM_NAME("aco__entry_returned") "\n"
        "\tud2\n"
#ifdef ACO__LINKS
        "\t.cfi_restore_state\n"
#endif
        ACO__ASM_SHADOW_BEGUN
        ACO__ASM_INSIDE("aco__cancel_landing") /* rax: the exception; the word at top-8 stays as it is */
        "\tendbr64\n"
        "\tsubq $16,%rsp\n"
        "\tmovq %rax,%rdi\n"
        "\tcall " ACO__ASM_NAME("aco__cancel_landed") "\n"
        "\tud2\n"
        ACO__ASM_END("aco__outermost"));

/* aco__generator_begin: the first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(ACO__ASM_BEGIN("aco__generator_begin")
        "\t.cfi_undefined rip\n"
        "\tendbr64\n"
        "\tpopq %r9\n"
        "\tjmpq *%r9\n"
        ACO__ASM_END("aco__generator_begin"));

#if !defined(__APPLE__) && !defined(ACO_CONFIG_DYNAMIC_TLS) /* there the bodies are the header's */

/* The exported aco_resume, aco_send, aco_yield, aco_yield1 and aco_yield_value, for callers that cannot use the inline ones: the
 * same switch between six pushes and six pops, for both kinds of floating-point environment. Offsets as in
 * include/aco/arch/x86_64.h.
 *
 *   stack while suspended, from sp: r15 r14 r13 r12 rbx rbp | return address
 *
 * They return by pop and jmp. `ret` would be predicted from a stack that the other side's calls and returns have moved on:
 * two mispredictions for every round trip, 19 ns against 5 where the calls are flat. Four calls deep both cost the same;
 * sixteen calls deep `ret` is ahead (bench/lab/out-of-line.c). notrack: a return address bears no landing pad. On a thread with a
 * shadow stack, which only `ret` takes the address from, by that. */
#define ACO__ASM_PUSH(reg) "\tpushq %" reg "\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset " reg ",0\n"
#define ACO__ASM_POP(reg) "\tpopq %" reg "\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_restore " reg "\n"
#define ACO__ASM_PUSH_ALL                                                                                              \
    ACO__ASM_PUSH("rbp") ACO__ASM_PUSH("rbx") ACO__ASM_PUSH("r12") ACO__ASM_PUSH("r13") ACO__ASM_PUSH("r14") ACO__ASM_PUSH("r15")
#define ACO__ASM_POP_ALL                                                                                               \
    ACO__ASM_POP("r15") ACO__ASM_POP("r14") ACO__ASM_POP("r13") ACO__ASM_POP("r12") ACO__ASM_POP("rbx") ACO__ASM_POP("rbp")

/* Environments of their own, as in the inline switch; nothing for a coroutine that shares its resumer's (sign of its state
 * byte). `fs` and `at` make an operand of the leaving side, `fs2` and `at2` one of the arriving side. */
#define ACO__ASM_FP_SWAP(fs, at, fs2, at2)                                                                             \
    "\tcmpb $0,38(%rdi)\n"                                                                                             \
    "\tjs 5f\n"                                                                                                        \
    "\tstmxcsr " fs "32" at "\n"                                                                                       \
    "\tfnstcw " fs "36" at "\n"                                                                                        \
    "\tcmpb $0,%fs:38(%rsi)\n"                                                                                         \
    "\tjne 2f\n"                                                                                                       \
    "\tmovl " fs "32" at ",%eax\n"                                                                                     \
    "\txorl " fs2 "32" at2 ",%eax\n"                                                                                   \
    "\tandl $-64,%eax\n"                                                                                               \
    "\tje 3f\n"                                                                                                        \
    "2:\tldmxcsr " fs2 "32" at2 "\n"                                                                                   \
    "3:\tmovzwl " fs "36" at ",%eax\n"                                                                                 \
    "\tcmpw " fs2 "36" at2 ",%ax\n"                                                                                    \
    "\tje 5f\n"                                                                                                        \
    "\tfnclex\n"                                                                                                       \
    "\tfldcw " fs2 "36" at2 "\n"                                                                                       \
    "5:\n"

#if defined(__CET__) && (__CET__ & 2)
#define ACO__ASM_SHADOW_RETURN                                                                                         \
    "\txorl %ecx,%ecx\n"                                                                                               \
    "\trdsspq %rcx\n"                                                                                                  \
    "\ttestq %rcx,%rcx\n"                                                                                              \
    "\tje 8f\n"                                                                                                        \
    "\tret\n"                                                                                                          \
    "8:\n"
#else
#define ACO__ASM_SHADOW_RETURN
#endif

/* Arrival: rdi = the coroutine, perhaps marked, rcx = the value; rsp as it left. */
#define ACO__ASM_ARRIVE(shadow_return)                                                                                 \
    "1:\tendbr64\n"                                                                                                    \
    "\ttestb $1,%dil\n"                                                                                                \
    "\tjne 6f\n"                                                                                                       \
    "4:\tmovq %rcx,%rax\n" ACO__ASM_POP_ALL shadow_return                                                              \
    "\tpopq %rcx\n"                                                                                                    \
    "\t.cfi_adjust_cfa_offset -8\n"                                                                                    \
    "\t.cfi_register rip,rcx\n"                                                                                        \
    "\tnotrack jmpq *%rcx\n"                                                                                           \
    "\t.cfi_restore_state\n"                                                                                           \
    "6:\tpushq %rcx\n"                                                                                                 \
    "\t.cfi_def_cfa_offset 64\n" /* not relative: LLVM forgets the offset at .cfi_restore_state */                     \
    "\tcall aco__arrived@PLT\n"                                                                                        \
    "\tpopq %rcx\n"                                                                                                    \
    "\t.cfi_def_cfa_offset 56\n"                                                                                       \
    "\tjmp 4b\n"                                                                                                       \
    "\t.cfi_def_cfa_offset 8\n" /* from here on: before the pushes */                                                  \
    "\t.cfi_restore rbp\n\t.cfi_restore rbx\n\t.cfi_restore r12\n\t.cfi_restore r13\n\t.cfi_restore r14\n\t.cfi_restore r15\n"

#define ACO__ASM_SWITCH(name)                                                                                          \
    ".pushsection .text.aco_switch,\"ax\",@progbits\n"                                                                  \
    "\t.p2align 6\n"                                                                                                   \
    "\t.globl " name "\n"                                                                                              \
    "\t.type " name ",@function\n" name ":\n"                                                                          \
    "\t.cfi_startproc\n"                                                                                               \
    "\tendbr64\n"

#define ACO__SWITCHES_ELSEWHERE /* aco.h: no bodies for these in this unit */

/* rdi: the coroutine to resume. `value`: what sets rcx to the value for it; `slow`: where all but the fast path goes. */
#define ACO__ASM_RESUME(name, value, slow)                                                                             \
    __asm__(ACO__ASM_SWITCH(name)                                                                                    \
            value                                                                                                      \
            "\ttestq %rdi,%rdi\n"                                                                                      \
            "\tje 7f\n"                                                                                                \
            "\tmovq aco__thread@gottpoff(%rip),%rsi\n"                                                                 \
            "\ttestb $15,38(%rdi)\n"                                                                                   \
            "\tjne 7f\n"                                                                                               \
            "\tcmpq $0,%fs:40(%rsi)\n"                                                                                 \
            "\tjne 7f\n"                                                                                               \
            ACO__ASM_PUSH_ALL                                                                                          \
            "\t.cfi_remember_state\n"                                                                                  \
            "\tleaq 1f(%rip),%rdx\n"                                                                                   \
            "\tmovq %rdi,%fs:40(%rsi)\n"                                                                               \
            "\tmovq %rsp,%fs:0(%rsi)\n"                                                                                \
            "\tmovq %rdx,%fs:8(%rsi)\n"                                                                                \
            ACO__ASM_FP_SWAP("%fs:", "(%rsi)", "", "(%rdi)")                                                           \
            "\tmovq 0(%rdi),%rsp\n"                                                                                    \
            "\t.cfi_remember_state\n\t.cfi_undefined rip\n"                                                            \
            "\tmovq 16(%rdi),%rbp\n"                                                                                   \
            "\tjmpq *8(%rdi)\n"                                                                                        \
            "\t.cfi_restore_state\n" /* libgcc knows .cfi_restore for a return address not */                          \
            "\tint3\n"               /* aco/switch.h, ACO__NO_FRAME */                                                 \
            ACO__ASM_ARRIVE(/* no coroutine comes here from a shadow stack: it is observed */)                         \
            "7:\tmovq %rcx,%rsi\n"                                                                                     \
            "\tjmp " slow "\n"                                                                                         \
            ACO__ASM_END(name))
ACO__ASM_RESUME("aco_resume", "\txorl %ecx,%ecx\n", "aco__resume_out_of_line");
ACO__ASM_RESUME("aco_send", "\tmovq %rsi,%rcx\n", "aco__send_out_of_line");

/* `arguments`: what sets rdi to the running coroutine and rcx to the value; `nobody`: what is called with `name` where there is
 * none. rsi: the thread record. */
#define ACO__ASM_YIELD(name, arguments, nobody)                                                                        \
    __asm__(ACO__ASM_SWITCH(name)                                                                                    \
            "\tmovq aco__thread@gottpoff(%rip),%rsi\n"                                                                 \
            arguments                                                                                                  \
            "\ttestq %rdi,%rdi\n"                                                                                      \
            "\tje 7f\n"                                                                                                \
            ACO__ASM_PUSH_ALL                                                                                          \
            "\t.cfi_remember_state\n"                                                                                  \
            "\tleaq 1f(%rip),%rdx\n"                                                                                   \
            "\tmovq $0,%fs:40(%rsi)\n"                                                                                 \
            "\tmovq %rsp,0(%rdi)\n"                                                                                    \
            "\tmovq %rdx,8(%rdi)\n"                                                                                    \
            ACO__ASM_FP_SWAP("", "(%rdi)", "%fs:", "(%rsi)")                                                           \
            "\tmovq %fs:0(%rsi),%rsp\n"                                                                                \
            "\t.cfi_remember_state\n\t.cfi_undefined rip\n"                                                            \
            "\tmovq %fs:16(%rsi),%rbp\n"                                                                               \
            "\tjmpq *%fs:8(%rsi)\n"                                                                                    \
            "\t.cfi_restore_state\n"                                                                                   \
            "\tint3\n"                                                                                                 \
            ACO__ASM_ARRIVE(ACO__ASM_SHADOW_RETURN)                                                                    \
            "7:\tleaq 9f(%rip),%rdi\n"                                                                                 \
            "\tjmp " nobody "@PLT\n"                                                                                   \
            "\t.pushsection .rodata.aco_switch,\"a\",@progbits\n"                                                       \
            "9:\t.asciz \"" name "\"\n"                                                                                \
            "\t.popsection\n"                                                                                          \
            ACO__ASM_END(name))
ACO__ASM_YIELD("aco_yield", "\tmovq %fs:40(%rsi),%rdi\n\txorl %ecx,%ecx\n", "aco__nobody_runs");
ACO__ASM_YIELD("aco_yield1", "\txorl %ecx,%ecx\n", "aco__nobody_runs");
ACO__ASM_YIELD("aco_yield_value", "\tmovq %rdi,%rcx\n\tmovq %fs:40(%rsi),%rdi\n", "aco__not_yielded");

#endif

#endif
