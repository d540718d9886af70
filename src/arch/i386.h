/* i386: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in
 * an object that every program links (an archive member that link-time optimisation sees no symbol in is not found). */

/* aco__returned: an entry function's return address.
 *
 *   top     64-byte aligned                       <- esp on arrival here
 *   top-4   aco__returned                         <- esp on entry to the entry function
 *
 * Unwinders look one byte before a return address, hence the nop: they find this function, named aco__outermost, and by its
 * undefined eip the end of the stack. A cancellation that was caught and thrown again lands at aco__cancel_landing (end.c). */
__asm__(ACO__ASM_OUTERMOST
        "\t.cfi_undefined eip\n"
        "\tnop\n"
        ACO__ASM_INSIDE("aco__returned")
        "\tcall aco__entry_returned\n"
        "\tud2\n"
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
