/* i386: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in
 * an object that every program links (an archive member that link-time optimisation sees no symbol in is not found). */

/* aco__returned: an entry function's return address.
 *
 *   top     64-byte aligned                       <- esp on arrival here
 *   top-4   aco__returned                         <- esp on entry to the entry function
 *
 * Unwinders look one byte before a return address, hence the nop: they find this function, named aco__outermost, and by its
 * undefined eip the end of the stack. A cancellation that was caught and thrown again lands at aco__cancel_landing (end.c). */
__asm__(".pushsection .text.aco__returned,\"ax\",@progbits\n"
        "\t.type aco__outermost,@function\n"
        "\t.hidden aco__returned\n"
        "\t.globl aco__returned\n"
        "aco__outermost:\n"
        "\t.cfi_startproc\n"
        "\t.cfi_personality 0x1b,aco__outermost_personality\n"
        "\t.cfi_undefined eip\n"
        "\tnop\n"
        "aco__returned:\n"
        "\tcall aco__entry_returned\n"
        "\tud2\n"
        "\t.hidden aco__cancel_landing\n"
        "\t.globl aco__cancel_landing\n"
        "aco__cancel_landing:\n" /* eax: the exception; the word at top-4 stays as it is */
        "\tsubl $28,%esp\n"
        "\tpushl %eax\n"
        "\tcall aco__cancel_landed\n"
        "\tud2\n"
        "\t.cfi_endproc\n"
        "\t.size aco__outermost,.-aco__outermost\n"
        "\t.popsection\n");

/* aco__generator_begin: the first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(".pushsection .text.aco__generator_begin,\"ax\",@progbits\n"
        "\t.globl aco__generator_begin\n"
        "\t.type aco__generator_begin,@function\n"
        "aco__generator_begin:\n"
        "\t.cfi_startproc\n"
        "\t.cfi_undefined eip\n"
        "\tendbr32\n"
        "\tmovl %ecx,16(%esp)\n"
        "\tmovl %edi,20(%esp)\n"
        "\tmovl %ebx,24(%esp)\n"
        "\tmovl %ecx,28(%esp)\n"
        "\tmovl (%esp),%eax\n"
        "\taddl $12,%esp\n"
        "\tjmpl *%eax\n"
        "\t.cfi_endproc\n"
        "\t.size aco__generator_begin,.-aco__generator_begin\n"
        "\t.popsection\n");
