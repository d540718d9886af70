/* The switch matrix: a classic switch. Out of line, saves every callee-saved register on the stack and returns by jump; no
 * bookkeeping, no checks, no floating-point environment. Coroutine records are small and side by side. */
#include "../stack.h"

typedef struct sw {
    void *sp;
    uintptr_t value;
} sw_t;

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
        "\tpopq %rcx\n"
        "\tjmpq *%rcx\n"
        "\t.size classic_switch,.-classic_switch\n"
        "\t.p2align 6\n");

static void *main_sp;

BENCH_INLINE void sw_resume(sw_t *co)
{
    classic_switch(&main_sp, co->sp);
}

BENCH_INLINE void sw_yield(sw_t *self)
{
    classic_switch(&self->sp, main_sp);
}

BENCH_INLINE uintptr_t sw_send(sw_t *co, uintptr_t value)
{
    co->value = value;
    sw_resume(co);
    return co->value;
}

BENCH_INLINE uintptr_t sw_receive(sw_t *self)
{
    return self->value;
}

BENCH_INLINE void sw_reply(sw_t *self, uintptr_t value)
{
    self->value = value;
    sw_yield(self);
}

#include "../matrix.h"

static matrix_body_t next_body;
static sw_t *next_self;

static void sw_prepare(unsigned seed)
{
    bench_stacks_made = seed;
}

static void entry(void)
{
    matrix_body_t body = next_body;
    sw_t *self = next_self;
    sw_yield(self);
    body(self);
    abort();
}

static sw_t *sw_start(matrix_kind_t kind, matrix_body_t body, size_t stack_sz)
{
    void **sp = (void **)(void *)bench_stack_new(stack_sz);
    sw_t *co = bench_alloc(sizeof *co);
    (void)kind;
    *--sp = NULL; /* the entry function's return address */
    *--sp = (void *)(uintptr_t)entry;
    co->sp = sp - 6;
    next_body = body;
    next_self = co;
    sw_resume(co);
    return co;
}

int main(int argc, char **argv)
{
    return matrix_main(argc, argv);
}
