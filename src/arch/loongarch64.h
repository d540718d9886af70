/* LoongArch: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in an object that
 * every program links. */

/* aco__returned: an entry function's return address.
 *
 *   top     64-byte aligned
 *   top-16  aco__returned                         <- sp on entry to the entry function, and on arrival here
 *
 * Unwinders look before a return address, hence the nop: they find this function, named aco__outermost, and by its undefined
 * ra the end of the stack. A cancellation that was caught and thrown again lands at aco__cancel_landing (end.c). */
__asm__(".pushsection .text.aco__returned,\"ax\",@progbits\n"
        "\t.p2align 2\n"
        "\t.type aco__outermost,@function\n"
        "\t.hidden aco__returned\n"
        "\t.globl aco__returned\n"
        "aco__outermost:\n"
        "\t.cfi_startproc\n"
        "\t.cfi_personality 0x1b,aco__outermost_personality\n"
        "\t.cfi_undefined 1\n"
        "\tnop\n"
        "aco__returned:\n"
        "\tbl aco__entry_returned\n"
        "\tbreak 0\n"
        "\t.hidden aco__cancel_landing\n"
        "\t.globl aco__cancel_landing\n"
        "aco__cancel_landing:\n" /* a0: the exception */
        "\tbl aco__cancel_landed\n"
        "\tbreak 0\n"
        "\t.cfi_endproc\n"
        "\t.size aco__outermost,.-aco__outermost\n"
        "\t.popsection\n");

#define ACO__ASM_BEGIN(name)                                                                                           \
    ".pushsection .text." name ",\"ax\",@progbits\n"                                                                    \
    "\t.p2align 2\n"                                                                                                   \
    "\t.globl " name "\n"                                                                                              \
    "\t.type " name ",@function\n" name ":\n"                                                                          \
    "\t.cfi_startproc\n"
#define ACO__ASM_END(name) "\t.cfi_endproc\n\t.size " name ",.-" name "\n\t.popsection\n"

/* The first arrivals, a0 the block: of aco_new() and of aco_create(). An entry function returns to what stands at sp. */
__asm__(ACO__ASM_BEGIN("aco__begin")
        "\t.cfi_undefined 1\n"
        "\tld.d $ra,$sp,0\n"
        "\tb aco__begun\n"
        ACO__ASM_END("aco__begin"));
__asm__("\t.hidden aco__begin_entry\n"
        ACO__ASM_BEGIN("aco__begin_entry")
        "\t.cfi_undefined 1\n"
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

#include <stdint.h>

static int8_t fp_load_always(void)
{
    return 0;
}
