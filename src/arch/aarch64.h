/* AArch64: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in an object that
 * every program links. Hints 34 and 36 are the landing pads `bti c` and `bti j`; before ARMv8.5 they do nothing. */

/* aco__returned: an entry function's return address.
 *
 *   top     64-byte aligned
 *   top-8   unused
 *   top-16  aco__returned                         <- sp on entry to the entry function, and on arrival here
 *
 * Unwinders look before a return address, hence the nop: they find this function, named aco__outermost, and by its undefined
 * x30 the end of the stack. A cancellation that was caught and thrown again lands at aco__cancel_landing (end.c). */
__asm__(".pushsection .text.aco__returned,\"ax\",@progbits\n"
        "\t.p2align 2\n"
        "\t.type aco__outermost,@function\n"
        "\t.hidden aco__returned\n"
        "\t.globl aco__returned\n"
        "aco__outermost:\n"
        "\t.cfi_startproc\n"
        "\t.cfi_personality 0x1b,aco__outermost_personality\n"
        "\t.cfi_undefined x30\n"
        "\tnop\n"
        "aco__returned:\n"
        "\tbl aco__entry_returned\n"
        "\tbrk #1\n"
        "\t.hidden aco__cancel_landing\n"
        "\t.globl aco__cancel_landing\n"
        "aco__cancel_landing:\n" /* x0: the exception */
        "\thint #36\n"
        "\tbl aco__cancel_landed\n"
        "\tbrk #1\n"
        "\t.cfi_endproc\n"
        "\t.size aco__outermost,.-aco__outermost\n"
        "\t.popsection\n");

#define ACO__ASM_BEGIN(name)                                                                                           \
    ".pushsection .text." name ",\"ax\",@progbits\n"                                                                    \
    "\t.p2align 2\n"                                                                                                   \
    "\t.globl " name "\n"                                                                                              \
    "\t.type " name ",@function\n" name ":\n"                                                                          \
    "\t.cfi_startproc\n"                                                                                               \
    "\thint #34\n"
#define ACO__ASM_END(name) "\t.cfi_endproc\n\t.size " name ",.-" name "\n\t.popsection\n"

/* The first arrivals, x0 the block: of aco_new() and of aco_create(). An entry function returns to what stands at sp. */
__asm__(ACO__ASM_BEGIN("aco__begin")
        "\t.cfi_undefined x30\n"
        "\tldr x30,[sp]\n"
        "\tb aco__begun\n"
        ACO__ASM_END("aco__begin"));
__asm__("\t.hidden aco__begin_entry\n"
        ACO__ASM_BEGIN("aco__begin_entry")
        "\t.cfi_undefined x30\n"
        "\tldr x30,[sp]\n"
        "\tldr x16,[x0,#56]\n" /* fp */
        "\tbr x16\n"
        ACO__ASM_END("aco__begin_entry"));

/* The first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(ACO__ASM_BEGIN("aco__generator_begin")
        "\t.cfi_undefined x30\n"
        "\tldp x16,x30,[sp]\n"
        "\tldr x5,[sp,#16]\n"
        "\tadd sp,sp,#32\n"
        "\tbr x16\n"
        ACO__ASM_END("aco__generator_begin"));

/* The exported aco_defer(): its caller's frame begins at sp. */
#define ACO__DEFER_ELSEWHERE
__asm__(ACO__ASM_BEGIN("aco_defer")
        "\tmov x2,sp\n"
        "\tb aco__defer\n"
        ACO__ASM_END("aco_defer"));

#include <stdint.h>

static int8_t fp_load_always(void)
{
    return 0;
}
