/* LoongArch: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in an object that
 * every program links. */

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
        "\t.cfi_undefined 1\n"
        "\tnop\n"
        ACO__ASM_INSIDE("aco__unlinked_returned")
        "\tbreak 0\n"
        "\t.cfi_signal_frame\n"
        "\t.cfi_remember_state\n"
        ACO__ASM_LINK("3", "16", "1", "22", "31")
        "\tnop\n"
        ACO__ASM_INSIDE("aco__returned")
        "\tbl aco__entry_returned\n"
        "\tbreak 0\n"
        "\t.cfi_restore_state\n"
        ACO__ASM_INSIDE("aco__cancel_landing") /* a0: the exception */
        "\tbl aco__cancel_landed\n"
        "\tbreak 0\n"
        ACO__ASM_END("aco__outermost"));

/* The first arrivals, a0 the block: of aco_new() and of aco_create(). An entry function returns to what stands at sp. */
__asm__(ACO__ASM_BEGIN("aco__begin")
        "\t.cfi_offset 1,0\n"
        "\tld.d $ra,$sp,0\n"
        "\tb aco__begun\n"
        ACO__ASM_END("aco__begin"));
__asm__(ACO__ASM_HIDE("aco__begin_entry")
        ACO__ASM_BEGIN("aco__begin_entry")
        "\t.cfi_offset 1,0\n"
        "\tld.d $ra,$sp,0\n"
        "\tld.d $t1,$a0,56\n" /* fp */
        "\tjr $t1\n"
        ACO__ASM_END("aco__begin_entry"));

/* The first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(ACO__ASM_BEGIN("aco__generator_begin")
        "\t.cfi_undefined 1\n"
        "\tld.d $t1,$sp,0\n"
        "\tld.d $ra,$sp,8\n"
        "\tld.d $a5,$sp,16\n"
        "\taddi.d $sp,$sp,32\n"
        "\tjr $t1\n"
        ACO__ASM_END("aco__generator_begin"));

/* The exported aco_defer(): its caller's frame begins at sp. */
#define ACO__DEFER_ELSEWHERE
__asm__(ACO__ASM_BEGIN("aco_defer")
        "\tmove $a2,$sp\n"
        "\tb %plt(aco__defer)\n"
        ACO__ASM_END("aco_defer"));
