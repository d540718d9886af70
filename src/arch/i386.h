/* i386: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in
 * an object that every program links (an archive member that link-time optimisation sees no symbol in is not found). */

/* aco__returned: an entry function's return address; aco__unlinked_returned: that of what has no resumer, a generator or what
 * runs on a scratch stack; as in x86_64.h.
 *
 *   top     64-byte aligned: the stack's record   <- esp on arrival at aco__returned
 *   top-4   aco__returned                         <- esp on entry to the entry function */
__asm__(ACO__ASM_OUTERMOST
        "\t.cfi_undefined eip\n"
        "\tnop\n"
        ACO__ASM_INSIDE("aco__unlinked_returned")
        "\tud2\n"
        "\t.cfi_signal_frame\n"
        "\t.cfi_remember_state\n"
        ACO__ASM_LINK("4", "0", "8", "5", "6")
        "\t.cfi_undefined ebx\n\t.cfi_undefined edi\n"
        "\tnop\n"
        ACO__ASM_INSIDE("aco__returned")
        "\tcall aco__entry_returned\n"
        "\tud2\n"
        "\t.cfi_restore_state\n"
        ACO__ASM_INSIDE("aco__cancel_landing") /* eax: the exception; the word at top-4 stays as it is */
        "\tendbr32\n"
        "\tsubl $28,%esp\n"
        "\tpushl %eax\n"
        "\tcall aco__cancel_landed\n"
        "\tud2\n"
        ACO__ASM_END("aco__outermost"));

/* aco__generator_begin: the first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(ACO__ASM_BEGIN("aco__generator_begin")
        "\t.cfi_undefined eip\n"
        "\tendbr32\n"
        "\tmovl %ecx,16(%esp)\n"
        "\tmovl %edi,20(%esp)\n"
        "\tmovl %ebx,24(%esp)\n"
        "\tmovl %ecx,28(%esp)\n"
        "\tmovl (%esp),%eax\n"
        "\taddl $12,%esp\n"
        "\tjmpl *%eax\n"
        ACO__ASM_END("aco__generator_begin"));
