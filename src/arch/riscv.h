/* RISC-V: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in an object that
 * every program links. Every address that is jumped to is 4-byte aligned and begins with the landing pad `lpad 0`, written as
 * the instruction that it is on processors without Zicfilp: one that does nothing. */

#define ACO__ASM_PAD "\t.p2align 2\n\tauipc zero,0\n"
#if __riscv_xlen == 64
#define ACO__ASM_LOAD(reg, at_64, at_32, from) "\tld " reg "," #at_64 "(" from ")\n"
#else
#define ACO__ASM_LOAD(reg, at_64, at_32, from) "\tlw " reg "," #at_32 "(" from ")\n"
#endif

/* aco__returned: an entry function's return address; aco__unlinked_returned: that of what has no resumer, a generator or what
 * runs on a scratch stack.
 *
 *   top     64-byte aligned
 *   top-16  aco__returned                         <- sp on entry to the entry function, and on arrival here
 *
 * Unwinders look before a return address, hence the nop: they find this function, named aco__outermost, and go on in the
 * resumer (assembly.h), or find by an undefined ra the end of the stack. A signal frame, as in x86_64.h. A cancellation that was
 * caught and thrown again lands at aco__cancel_landing (end.c). */
__asm__(ACO__ASM_OUTERMOST
        "\t.cfi_undefined ra\n"
#ifdef ACO__LINKS
        "\tnop\n"
        ACO__ASM_INSIDE("aco__unlinked_returned")
        "\tebreak\n"
        "\t.cfi_signal_frame\n"
        "\t.cfi_remember_state\n"
        ACO__ASM_LINK("2", "16", "1", "8", "9")
#endif
        "\tnop\n"
        ACO__ASM_INSIDE("aco__returned")
        "\tcall aco__entry_returned\n"
        "\tebreak\n"
#ifdef ACO__LINKS
        "\t.cfi_restore_state\n"
#endif
        "\t.p2align 2\n"
        ACO__ASM_INSIDE("aco__cancel_landing") /* a0: the exception */
        ACO__ASM_PAD
        "\tcall aco__cancel_landed\n"
        "\tebreak\n"
        ACO__ASM_END("aco__outermost"));

/* The first arrivals, a0 the block: of aco_new() and of aco_create(). An entry function returns to what stands at sp. */
__asm__(ACO__ASM_BEGIN("aco__begin")
        "\t.cfi_offset ra,0\n"
        ACO__ASM_PAD
        ACO__ASM_LOAD("ra", 0, 0, "sp")
        "\ttail aco__begun\n"
        ACO__ASM_END("aco__begin"));
__asm__(ACO__ASM_HIDE("aco__begin_entry")
        ACO__ASM_BEGIN("aco__begin_entry")
        "\t.cfi_offset ra,0\n"
        ACO__ASM_PAD
        ACO__ASM_LOAD("ra", 0, 0, "sp")
        ACO__ASM_LOAD("t1", 56, 32, "a0") /* fp */
        "\tjr t1\n"
        ACO__ASM_END("aco__begin_entry"));

/* The first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(ACO__ASM_BEGIN("aco__generator_begin")
        "\t.cfi_undefined ra\n"
        ACO__ASM_PAD
        ACO__ASM_LOAD("t1", 0, 0, "sp")
        ACO__ASM_LOAD("ra", 8, 4, "sp")
        ACO__ASM_LOAD("a5", 16, 8, "sp")
        "\taddi sp,sp,32\n"
        "\tjr t1\n"
        ACO__ASM_END("aco__generator_begin"));

/* The exported aco_defer(): its caller's frame begins at sp. */
#define ACO__DEFER_ELSEWHERE
__asm__(ACO__ASM_BEGIN("aco_defer") ACO__ASM_PAD
        "\tmv a2,sp\n"
        "\ttail aco__defer\n"
        ACO__ASM_END("aco_defer"));
