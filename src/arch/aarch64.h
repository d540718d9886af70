/* AArch64: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in an object that
 * every program links. Hints 34 and 36 are the landing pads `bti c` and `bti j`; before ARMv8.5 they do nothing. */

/* aco__returned: an entry function's return address; aco__unlinked_returned: that of what has no resumer, a generator or what
 * runs on a scratch stack.
 *
 *   top     64-byte aligned: the stack's record
 *   top-8   unused
 *   top-16  aco__returned                         <- sp on entry to the entry function, and on arrival at aco__returned
 *
 * Unwinders look before a return address, hence the nops: they find this function, named aco__outermost, and go on in the
 * resumer (assembly.h), or find by an undefined x30 the end of the stack. A signal frame, as in x86_64.h. A cancellation that was
 * caught and thrown again lands at aco__cancel_landing (end.c). */
__asm__(ACO__ASM_OUTERMOST
        "\t.cfi_undefined x30\n"
        "\tnop\n"
        ACO__ASM_INSIDE("aco__unlinked_returned")
        "\tbrk #1\n"
#ifdef ACO__LINKS
        "\t.cfi_signal_frame\n"
        "\t.cfi_remember_state\n"
        ACO__ASM_LINK("31", "16", "30", "29", "19")
#endif
        "\tnop\n"
        ACO__ASM_INSIDE("aco__returned")
        "\tbl " ACO__ASM_NAME("aco__entry_returned") "\n"
        "\tbrk #1\n"
#ifdef ACO__LINKS
        "\t.cfi_restore_state\n"
#endif
        ACO__ASM_INSIDE("aco__cancel_landing") /* x0: the exception */
        "\thint #36\n"
        "\tbl " ACO__ASM_NAME("aco__cancel_landed") "\n"
        "\tbrk #1\n"
        ACO__ASM_END("aco__outermost"));

/* The first arrivals, x0 the block: of aco_new() and of aco_create(). An entry function returns to what stands at sp. */
__asm__(ACO__ASM_BEGIN("aco__begin")
        "\t.cfi_offset x30,0\n"
        "\thint #34\n"
        "\tldr x30,[sp]\n"
        "\tb " ACO__ASM_NAME("aco__begun") "\n"
        ACO__ASM_END("aco__begin"));
__asm__(ACO__ASM_HIDE("aco__begin_entry")
        ACO__ASM_BEGIN("aco__begin_entry")
        "\t.cfi_offset x30,0\n"
        "\thint #34\n"
        "\tldr x30,[sp]\n"
        "\tldr x16,[x0,#56]\n" /* fp */
        "\tbr x16\n"
        ACO__ASM_END("aco__begin_entry"));

/* The first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(ACO__ASM_BEGIN("aco__generator_begin")
        "\t.cfi_undefined x30\n"
        "\thint #34\n"
        "\tldp x16,x30,[sp]\n"
        "\tldr x5,[sp,#16]\n"
        "\tadd sp,sp,#32\n"
        "\tbr x16\n"
        ACO__ASM_END("aco__generator_begin"));

/* The exported aco_defer(): its caller's frame begins at sp. */
#define ACO__DEFER_ELSEWHERE
__asm__(ACO__ASM_BEGIN("aco_defer") "\thint #34\n"
        "\tmov x2,sp\n"
        "\tb " ACO__ASM_NAME("aco__defer") "\n"
        ACO__ASM_END("aco_defer"));
