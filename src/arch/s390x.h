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
__asm__(".pushsection .text.aco__returned,\"ax\",@progbits\n"
        "\t.p2align 2\n"
        "\t.type aco__outermost,@function\n"
        "\t.hidden aco__returned\n"
        "\t.globl aco__returned\n"
        "aco__outermost:\n"
        "\t.cfi_startproc\n"
        "\t.cfi_personality 0x1b,aco__outermost_personality\n"
        "\t.cfi_undefined %r14\n"
        "\tnop\n"
        "aco__returned:\n"
        "\tbrasl %r14,aco__entry_returned\n"
        "\tj .+2\n" /* an invalid instruction */
        "\t.hidden aco__cancel_landing\n"
        "\t.globl aco__cancel_landing\n"
        "aco__cancel_landing:\n" /* r6: the exception; the word at top-48 stays as it is */
        "\tlgr %r2,%r6\n"
        "\taghi %r15,-160\n"
        "\t.cfi_def_cfa_offset 320\n"
        "\tbrasl %r14,aco__cancel_landed\n"
        "\tj .+2\n"
        "\t.cfi_endproc\n"
        "\t.size aco__outermost,.-aco__outermost\n"
        "\t.popsection\n");

#define ACO__ASM_BEGIN(name)                                                                                           \
    ".pushsection .text." name ",\"ax\",@progbits\n"                                                                    \
    "\t.p2align 4\n"                                                                                                   \
    "\t.globl " name "\n"                                                                                              \
    "\t.type " name ",@function\n" name ":\n"                                                                          \
    "\t.cfi_startproc\n"
#define ACO__ASM_END(name) "\t.cfi_endproc\n\t.size " name ",.-" name "\n\t.popsection\n"

/* The first arrivals, r2 the block: of aco_new() and of aco_create(). An entry function returns to what stands where it will save
 * it. */
__asm__(ACO__ASM_BEGIN("aco__begin")
        "\t.cfi_undefined %r14\n"
        "\tlg %r14,112(%r15)\n"
        "\tjg aco__begun\n"
        ACO__ASM_END("aco__begin"));
__asm__("\t.hidden aco__begin_entry\n"
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

#include <stdint.h>

static int8_t fp_load_always(void)
{
    return 0;
}
