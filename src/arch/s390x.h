/* s390x: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in an object that
 * every program links. */

/* aco__returned: an entry function's return address.
 *
 *   top      64-byte aligned
 *   top-32   f0, f2, f4, f6: unused
 *   top-112  r6-r15, where the entry function saves them; aco__returned for r14, at top-48
 *   top-160  back chain: 0, the last              <- r15 on entry to the entry function, and on arrival here
 *
 * Unwinders look before a return address, hence the nop: they find this function, named aco__outermost, and by its undefined
 * r14 the end of the stack. A cancellation that was caught and thrown again lands at aco__cancel_landing (end.c). */
__asm__(ACO__ASM_OUTERMOST
        "\t.cfi_undefined %r14\n"
        "\tnop\n"
        ACO__ASM_INSIDE("aco__returned")
        "\tbrasl %r14,aco__entry_returned\n"
        "\tj .+2\n" /* an invalid instruction */
        ACO__ASM_INSIDE("aco__cancel_landing") /* r6: the exception; the word at top-48 stays as it is */
        "\tlgr %r2,%r6\n"
        "\taghi %r15,-160\n"
        "\t.cfi_def_cfa_offset 320\n"
        "\tbrasl %r14,aco__cancel_landed\n"
        "\tj .+2\n"
        ACO__ASM_END("aco__outermost"));

/* The first arrivals, r2 the block: of aco_new() and of aco_create(). An entry function returns to what stands where it will save
 * it. */
__asm__(ACO__ASM_BEGIN("aco__begin")
        "\t.cfi_undefined %r14\n"
        "\tlg %r14,112(%r15)\n"
        "\tjg aco__begun\n"
        ACO__ASM_END("aco__begin"));
__asm__(ACO__ASM_HIDE("aco__begin_entry")
        ACO__ASM_BEGIN("aco__begin_entry")
        "\t.cfi_undefined %r14\n"
        "\tlg %r14,112(%r15)\n"
        "\tlg %r1,56(%r2)\n" /* fp */
        "\tbr %r1\n"
        ACO__ASM_END("aco__begin_entry"));

/* The first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(ACO__ASM_BEGIN("aco__generator_begin")
        "\t.cfi_undefined %r14\n"
        "\tlg %r1,0(%r15)\n"
        "\tlg %r14,8(%r15)\n"
        "\taghi %r15,16\n"
        "\tbr %r1\n"
        ACO__ASM_END("aco__generator_begin"));

/* The exported aco_defer(): its caller's frame begins behind the register save area, where unwinders see it. */
#define ACO__DEFER_ELSEWHERE
__asm__(ACO__ASM_BEGIN("aco_defer")
        "\tla %r4,160(%r15)\n"
        "\tjg aco__defer@PLT\n"
        ACO__ASM_END("aco_defer"));
