/* A classic switch. Out of line, saves every callee-saved register on the stack and returns by jump, as Boost.Context's does; no
 * floating-point environment. With CLASSIC_RET it returns by `ret`, which keeps calls and returns paired for the processor, and is
 * right about where to as long as all sides were suspended by the same call. */
#ifndef BENCH_CLASSIC_SWITCH_H
#define BENCH_CLASSIC_SWITCH_H
#include <stdint.h>

/* Leaves the running side's stack pointer in *from (rdi) and goes on at the side whose stack pointer is `to` (rsi).
 *   sp -> | r15 | r14 | r13 | r12 | rbx | rbp | return address | */
void classic_switch(void **from, void *to);
__asm__(".text\n"
        "\t.p2align 6\n"
        "\t.type classic_switch,@function\n"
        "classic_switch:\n"
        "\tpushq %rbp\n"
        "\tpushq %rbx\n"
        "\tpushq %r12\n"
        "\tpushq %r13\n"
        "\tpushq %r14\n"
        "\tpushq %r15\n"
        "\tmovq %rsp,(%rdi)\n"
        "\tmovq %rsi,%rsp\n"
        "\tpopq %r15\n"
        "\tpopq %r14\n"
        "\tpopq %r13\n"
        "\tpopq %r12\n"
        "\tpopq %rbx\n"
        "\tpopq %rbp\n"
#ifdef CLASSIC_RET
        "\tretq\n"
#else
        "\tpopq %rcx\n"
        "\tjmpq *%rcx\n"
#endif
        "\t.size classic_switch,.-classic_switch\n"
        "\t.p2align 6\n");

/* The `sp` of a side that begins with entry(), which never returns, on the stack below `top`. */
static inline void *classic_start(char *top, void (*entry)(void))
{
    void **sp = (void **)(void *)top;
    *--sp = NULL; /* the entry function's return address */
    *--sp = (void *)(uintptr_t)entry;
    return sp - 6;
}

#endif
