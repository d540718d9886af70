/* Macros of the library's assembly that depend on the object format. Arm (32-bit) has its own, because its unwinding
 * does not use DWARF's tables.
 *
 *   ACO__ASM_BEGIN(name)    begins an exported function; ACO__ASM_HIDE(name) before it keeps it inside the library
 *   ACO__ASM_INSIDE(name)   another, hidden, label in the function that began last
 *   ACO__ASM_END(name)      ends the function
 *   ACO__ASM_OUTERMOST      begins aco__outermost, which unwinders find by an entry function's return address
 *   ACO__ASM_NAME(name)     the symbol of C's `name`
 *   ACO__ASM_UNWIND_PARENT  unwind rules from a coroutine's first frame to its resumer's frames; see below */
#ifndef ACO_ASSEMBLY_H
#define ACO_ASSEMBLY_H

#include "os/platform.h"

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
    "\t.pushsection .text." name ",\"ax\",@progbits\n"                                                                 \
    "\t.p2align 4\n"                                                                                                   \
    "\t.type " name ",@function\n" name ":\n"                                                                          \
    "\t.cfi_startproc\n"
#define ACO__ASM_BEGIN(name) "\t.globl " name "\n" ACO__ASM_FUNCTION(name)
#define ACO__ASM_INSIDE(name) "\t.globl " name "\n" ACO__ASM_HIDE(name) name ":\n"
#define ACO__ASM_END(name) "\t.cfi_endproc\n\t.size " name ",.-" name "\n\t.popsection\n"
#define ACO__ASM_OUTERMOST ACO__ASM_FUNCTION("aco__outermost") "\t.cfi_personality 0x1b,aco__outermost_personality\n"
#endif

/* Backtraces continue from a coroutine's first frame to its resumer's frames. Switches do nothing for that: unwinders
 * find the resumer's context through data that exists anyway, starting at the stack's record, at the top of the stack.
 * In C, with that record as `stack`:
 *
 *   thread  = *stack->aco__owner_thread
 *   context = stack->owner == thread->running ? thread->unwind_parent : stack->aco__resumer_context
 *
 * For the running coroutine this is its resumer's context in the thread record. For a coroutine that waits for one that
 * it resumed, it is the context that this resume saved. For all others it is a context of zeros: a return address of
 * NULL is the end of the stack. It is also zeros for a coroutine that runs on another thread than the one where it
 * began, because no switch records that, and while the resumer's frames are saved.
 *
 * Valgrind reads expressions in unwind tables without branches, dup, swap and over. So the expression is
 *   aco__resumer_context + (unwind_parent - aco__resumer_context) * (owner == running)
 *
 * `sp` is the stack pointer's DWARF number; `below` is the distance in bytes from there to the record, as SLEB128.
 * DWARF 5, table 7.9, has the numbers of the operations. */
#ifdef ACO__UNWINDS_TO_RESUMER
#define ACO__DW_BREG(number, offset) "0x70+" number "," offset ","
#define ACO__DW_PLUS_UCONST(value) "0x23," ACO__TEXT(value) ","
#define ACO__DW_DEREF "0x06,"
#define ACO__DW_MINUS "0x1c,"
#define ACO__DW_MUL "0x1e,"
#define ACO__DW_PLUS "0x22,"
#define ACO__DW_EQ "0x29,"
#define ACO__ASM_OF_STACK(sp, below, offset) ACO__DW_BREG(sp, below) ACO__DW_PLUS_UCONST(offset) ACO__DW_DEREF
#define ACO__ASM_OF_THREAD(sp, below, offset)                                                                          \
    ACO__ASM_OF_STACK(sp, below, ACO__STACK_OWNER_THREAD) ACO__DW_DEREF ACO__DW_PLUS_UCONST(offset) ACO__DW_DEREF
#ifdef __s390x__ /* `below` takes two bytes */
#define ACO__ASM_CONTEXT_BYTES "42"
#else
#define ACO__ASM_CONTEXT_BYTES "37"
#endif
#define ACO__ASM_CONTEXT(sp, below)                                                                                    \
    ACO__ASM_OF_STACK(sp, below, ACO__STACK_RESUMER_CONTEXT)                                                          \
    ACO__ASM_OF_THREAD(sp, below, ACO__UNWIND_PARENT)                                                        \
    ACO__ASM_OF_STACK(sp, below, ACO__STACK_RESUMER_CONTEXT) ACO__DW_MINUS                                            \
    ACO__ASM_OF_THREAD(sp, below, ACO__RUNNING)                                                         \
    ACO__ASM_OF_STACK(sp, below, ACO__STACK_OWNER) ACO__DW_EQ ACO__DW_MUL ACO__DW_PLUS

/* DW_CFA_def_cfa_expression, DW_CFA_expression */
#define ACO__ASM_PARENT_CFA(sp, below)                                                                                 \
    "\t.cfi_escape 0x0f," ACO__ASM_CONTEXT_BYTES "+1," ACO__ASM_CONTEXT(sp, below) "0x06\n"
#define ACO__ASM_PARENT_REGISTER(number, sp, below, offset)                                                            \
    "\t.cfi_escape 0x10," number "," ACO__ASM_CONTEXT_BYTES "+2," ACO__ASM_CONTEXT(sp, below) "0x23," offset "\n"
/* Rules for the CFA, return address, frame pointer and base pointer. */
#define ACO__ASM_UNWIND_PARENT(sp, below, pc, bp, base)                                                                \
    ACO__ASM_PARENT_CFA(sp, below)                                                                                     \
    ACO__ASM_PARENT_REGISTER(pc, sp, below, ACO__TEXT(ACO__PC))                                                   \
    ACO__ASM_PARENT_REGISTER(bp, sp, below, ACO__TEXT(ACO__BP))                                                  \
    ACO__ASM_PARENT_REGISTER(base, sp, below, ACO__TEXT(ACO__BASE))
#endif

#endif
