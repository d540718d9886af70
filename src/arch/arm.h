/* 32-bit Arm: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in an object
 * that every program links. In a Thumb unit it is Thumb code. */
#ifdef __thumb__
#define ACO__ASM_CODE "\t.syntax unified\n\t.thumb\n\t.p2align 2\n"
#define ACO__ASM_LABEL(name) "\t.thumb_func\n\t.type " name ",%function\n" name ":\n"
#else
#define ACO__ASM_CODE "\t.syntax unified\n\t.arm\n\t.p2align 2\n"
#define ACO__ASM_LABEL(name) "\t.type " name ",%function\n" name ":\n"
#endif

/* aco__returned: an entry function's return address.
 *
 *   top     64-byte aligned
 *   top-4   unused
 *   top-8   aco__returned                         <- sp on entry to the entry function, and on arrival here
 *
 * Unwinders look before a return address, hence the nop: they find this function, named aco__outermost, whose personality
 * function (end.c) ends every way through the stack. A cancellation that was caught and thrown again lands at
 * aco__cancel_landing. */
__asm__(".pushsection .text.aco__returned,\"ax\",%progbits\n"
        ACO__ASM_CODE
        "\t.hidden aco__returned\n"
        "\t.globl aco__returned\n"
        ACO__ASM_LABEL("aco__outermost")
        "\t.fnstart\n"
        "\t.personality aco__outermost_personality\n"
        "\tnop\n"
        ACO__ASM_LABEL("aco__returned")
        "\tbl aco__entry_returned\n"
        "\tudf #0\n"
        "\t.hidden aco__cancel_landing\n"
        "\t.globl aco__cancel_landing\n"
        ACO__ASM_LABEL("aco__cancel_landing") /* r0: the exception */
        "\tbl aco__cancel_landed\n"
        "\tudf #0\n"
        "\t.handlerdata\n"
        "\t.fnend\n"
        "\t.size aco__outermost,.-aco__outermost\n"
        "\t.popsection\n");

#define ACO__ASM_BEGIN(name)                                                                                           \
    ".pushsection .text." name ",\"ax\",%progbits\n"                                                                    \
    ACO__ASM_CODE                                                                                                      \
    "\t.globl " name "\n" ACO__ASM_LABEL(name)                                                                         \
    "\t.fnstart\n"
#define ACO__ASM_END(name) "\t.cantunwind\n\t.fnend\n\t.size " name ",.-" name "\n\t.popsection\n"

/* The first arrivals, r0 the block: of aco_new() and of aco_create(). An entry function returns to what stands at sp. */
__asm__(ACO__ASM_BEGIN("aco__begin")
        "\tldr lr,[sp]\n"
        "\tb aco__begun\n"
        ACO__ASM_END("aco__begin"));
__asm__("\t.hidden aco__begin_entry\n"
        ACO__ASM_BEGIN("aco__begin_entry")
        "\tldr lr,[sp]\n"
        "\tldr r12,[r0,#32]\n" /* fp */
        "\tbx r12\n"
        ACO__ASM_END("aco__begin_entry"));

/* The first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(ACO__ASM_BEGIN("aco__generator_begin")
        "\tldr r12,[sp]\n"
        "\tldr lr,[sp,#4]\n"
        "\tstr r4,[sp,#8]!\n"
        "\tbx r12\n"
        ACO__ASM_END("aco__generator_begin"));

/* The exported aco_defer(): its caller's frame begins at sp. */
#define ACO__DEFER_ELSEWHERE
__asm__(ACO__ASM_BEGIN("aco_defer")
        "\tmov r2,sp\n"
        "\tb aco__defer\n"
        ACO__ASM_END("aco_defer"));
