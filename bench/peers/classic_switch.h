/* A classic switch: an out-of-line function that saves every callee-saved register on the stack and returns by jump,
 * like Boost.Context's. It keeps no floating-point environment.
 *
 * With CLASSIC_RET it returns by `ret`, which keeps calls and returns paired for the processor. The predicted address
 * is right as long as all sides were suspended by the same call.
 *
 * A program may define CLASSIC_SAVE, CLASSIC_LOAD and CLASSIC_COLD before it includes this file: assembly that saves
 * more below the registers, loads it again, and stands behind the function. */
#ifndef BENCH_CLASSIC_SWITCH_H
#define BENCH_CLASSIC_SWITCH_H
#include <stddef.h>
#include <stdint.h>

#ifndef CLASSIC_SAVE
#define CLASSIC_SAVE
#define CLASSIC_LOAD
#define CLASSIC_COLD
#endif

/* Stores the running side's stack pointer in *from (rdi) and resumes the side with the stack pointer `to` (rsi).
 *   sp -> | what CLASSIC_SAVE saves | r15 | r14 | r13 | r12 | rbx | rbp | return address | */
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
        CLASSIC_SAVE
        "\tmovq %rsp,(%rdi)\n"
        "\tmovq %rsi,%rsp\n"
        CLASSIC_LOAD
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
        CLASSIC_COLD
        "\t.size classic_switch,.-classic_switch\n"
        "\t.p2align 6\n");

/* Makes the frame of a side that begins with entry() on the stack below `top`; returns its `sp`. entry() must not
 * return. */
static inline void *classic_start(char *top, void (*entry)(void))
{
    void **sp = (void **)(void *)top;
    *--sp = NULL; /* the entry function's return address */
    *--sp = (void *)(uintptr_t)entry;
    return sp - 6;
}

#endif
