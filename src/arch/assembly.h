/* What the library's assembly says to assemblers, by object format; included by core.c before the architecture's file. 32-bit
 * Arm, whose unwinding is not by DWARF's tables, has its own.
 *
 *   ACO__ASM_BEGIN(name)    an exported function; ACO__ASM_HIDE(name) before it keeps it inside the library
 *   ACO__ASM_INSIDE(name)   another, hidden, label in the function that began last
 *   ACO__ASM_END(name)
 *   ACO__ASM_OUTERMOST      the function that unwinders find by an entry function's return address
 *   ACO__ASM_NAME(name)     what C calls `name` */
#ifdef __APPLE__
#define ACO__ASM_NAME(name) "_" name
#define ACO__ASM_HIDE(name) "\t.private_extern _" name "\n"
#define ACO__ASM_FUNCTION(name) "\t.text\n\t.p2align 4\n_" name ":\n\t.cfi_startproc\n"
#define ACO__ASM_BEGIN(name) "\t.globl _" name "\n" ACO__ASM_FUNCTION(name)
#define ACO__ASM_INSIDE(name) "\t.globl _" name "\n" ACO__ASM_HIDE(name) "\t.alt_entry _" name "\n_" name ":\n"
#define ACO__ASM_END(name) "\t.cfi_endproc\n"
#define ACO__ASM_OUTERMOST ACO__ASM_FUNCTION("aco__outermost") "\t.cfi_personality 155,_aco__outermost_personality\n"
#else
#define ACO__ASM_NAME(name) name
#define ACO__ASM_HIDE(name) "\t.hidden " name "\n"
#define ACO__ASM_FUNCTION(name)                                                                                        \
    "\t.pushsection .text." name ",\"ax\",@progbits\n"                                                  \
    "\t.p2align 4\n"                                                                                                   \
    "\t.type " name ",@function\n" name ":\n"                                                                          \
    "\t.cfi_startproc\n"
#define ACO__ASM_BEGIN(name) "\t.globl " name "\n" ACO__ASM_FUNCTION(name)
#define ACO__ASM_INSIDE(name) "\t.globl " name "\n" ACO__ASM_HIDE(name) name ":\n"
#define ACO__ASM_END(name) "\t.cfi_endproc\n\t.size " name ",.-" name "\n\t.popsection\n"
#define ACO__ASM_OUTERMOST ACO__ASM_FUNCTION("aco__outermost") "\t.cfi_personality 0x1b,aco__outermost_personality\n"
#endif
