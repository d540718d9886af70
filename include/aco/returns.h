/* Returns that stay predicted when tasks wait in different places.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A processor predicts a `ret` by the calls before it: it expects to return to the caller of the latest call that has
 * not returned. After a switch those calls are another task's. If all tasks wait in one place, in equal callers, the
 * prediction holds by luck. If they wait in two places, each return from the wait up to where the ways meet is
 * mispredicted.
 *
 * ACO_SWITCHING_RETURNS marks the definition of a function through which tasks wait. The function then returns by pop
 * and jump, which the processor predicts by the way to this place instead:
 *
 *   static ACO_SWITCHING_RETURNS int read_header(int fd) { …; aco_io_read(fd, …); … }
 *
 * Mark the functions between the wait and where the ways of the tasks meet, and only those: elsewhere such a return is
 * slower than `ret` or as fast. docs/returns.md has measurements and says how to find out.
 *
 * The calling convention stays the same, so the mark may stand in one unit and not in another. The function must not
 * be inlined, else it has no return of its own. The mark is empty, and harmless, where the compiler or the processor
 * has no such returns (it needs x86-64, ELF, and gcc 8 or clang 15), and under ACO_CONFIG_NO_SWITCHING_RETURNS.
 *
 * Each unit that includes this header defines __x86_return_thunk, the name that compilers use: hidden, 4 to 20 bytes
 * of code, one for each program or library. A program that defines this symbol itself must not include this header. */
#ifndef ACO_RETURNS_H
#define ACO_RETURNS_H

#include "detail/config.h"

#if !defined(ACO_CONFIG_NO_SWITCHING_RETURNS) && defined(__x86_64__) && defined(__ELF__) && \
    ACO__HAS_ATTRIBUTE(function_return)
#define ACO_SWITCHING_RETURNS __attribute__((function_return("thunk-extern")))

/* rcx holds no result of a function, and no caller expects it to stay. Only `ret` pops a shadow stack. With gcc's -flto
 * one assembly may have the text of several units. */
#if defined(__CET__) && (__CET__ & 2)
#define ACO__RETURN_BY_SHADOW_STACK \
    "\txorl %ecx, %ecx\n" \
    "\trdsspq %rcx\n" /* no shadow stack: no change */ \
    "\ttestq %rcx, %rcx\n" \
    "\tjz 1f\n" \
    "\tret\n" \
    "1:\n"
#else
#define ACO__RETURN_BY_SHADOW_STACK ""
#endif
__asm__(".ifndef __x86_return_thunk\n"
        ".pushsection .text.__x86_return_thunk, \"axG\", @progbits, __x86_return_thunk, comdat\n"
        "\t.weak __x86_return_thunk\n"
        "\t.hidden __x86_return_thunk\n"
        "\t.type __x86_return_thunk, @function\n"
        "\t.balign 16\n"
        "__x86_return_thunk:\n"
        "\t.cfi_startproc\n" ACO__RETURN_BY_SHADOW_STACK "\tpopq %rcx\n"
        "\t.cfi_def_cfa_offset 0\n"
        "\t.cfi_register %rip, %rcx\n"
        "\tnotrack jmp *%rcx\n" /* no landing pad follows a call */
        "\t.cfi_endproc\n"
        "\t.size __x86_return_thunk, . - __x86_return_thunk\n"
        "\t.popsection\n"
        ".endif\n");
#undef ACO__RETURN_BY_SHADOW_STACK
#else
#define ACO_SWITCHING_RETURNS
#endif

#endif
