/* Lab: how the out-of-line resume and yield should return. An experiment, not library code: hand-written functions with
 * the duties of the exported ones (checks, the running coroutine, six callee-saved registers, with FP=1 the
 * floating-point environment). Each returns by `ret`, or by pop and jmp. ../matrix.h has the command line. For
 * comparison: ../peers/classic.c, and the library's own functions, compiled C that returns by `ret` (../switch.c with
 * -DACO_CONFIG_NO_INLINE).
 *
 *   for fp in 0 1; do for form in "ret ret" "jmp jmp" "ret jmp" "jmp ret"; do set -- $form
 *     cc -O2 -DNDEBUG -DFP=$fp -DRESUMED_BY_$1 -DYIELDED_BY_$2 out-of-line.c -o t &&
 *       ./t flat 1 rr 5 20 1 && ./t nested 4 - 5 20 1
 *   done; done
 *
 * RESUMED_BY: how a resumed coroutine's yield returns. YIELDED_BY: how resume returns.
 * SITES: each depth of the nesting has a call site of its own, as different functions have, so that a return address
 * predicted for another depth is wrong.
 *
 * Zen 5, gcc 12, medians of 10 samples from 5 processes each, ns per round trip:
 *                               flat    1 deep    4 deep   16 deep   SITES: 4 deep   16 deep
 *   FP=0  ret ret               18.7      20.1      24.0      41.1            25.9      47.6
 *         jmp jmp                4.8      11.5      27.2      44.5            38.8     144.9
 *   FP=1  ret ret               22.8      24.8      28.4      45.1            30.2      50.6
 *         jmp jmp                8.3      14.8      32.2      48.3            41.1     145.8
 *   the library, shared FP      19.5      20.8      24.6      41.9
 *   the library, own FP         23.5      25.3      29.1      45.8
 *   classic                      5.5      11.1      26.8      43.6
 * Mixed forms pay one misprediction flat and are no better nested. */
#include "../stack.h"

#ifndef FP
#define FP 0
#endif
#if defined(RESUMED_BY_jmp)
#define YIELD_RETURNS "\tpopq %rcx\n\tjmpq *%rcx\n"
#else
#define YIELD_RETURNS "\tret\n"
#endif
#if defined(YIELDED_BY_jmp)
#define RESUME_RETURNS "\tpopq %rcx\n\tjmpq *%rcx\n"
#else
#define RESUME_RETURNS "\tret\n"
#endif

typedef struct sw {
    void *sp;
    uint32_t mxcsr;
    uint16_t x87cw;
    uint8_t state; /* 0: suspended */
    uintptr_t value;
} sw_t;

/* The thread's record: the resumer's stack pointer at 0, its control words at 8 and 12, the running coroutine at 16. */
struct thread {
    void *sp;
    uint32_t mxcsr;
    uint16_t x87cw;
    sw_t *running;
};
__attribute__((used, aligned(64), tls_model("local-exec"))) __thread struct thread lab_thread;

#define T(offset) "%fs:lab_thread@tpoff+" #offset
#if FP
#define FP_SWAP(store_mxcsr, store_x87, load_mxcsr, load_x87)                                                          \
    "\tstmxcsr " store_mxcsr "\n\tfnstcw " store_x87 "\n\tldmxcsr " load_mxcsr "\n"                                    \
    "\tmovzwl " store_x87 ",%eax\n\tcmpw " load_x87 ",%ax\n\tjne 8f\n"
#else
#define FP_SWAP(store_mxcsr, store_x87, load_mxcsr, load_x87)
#endif
#define PUSH "\tpushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n"
#define POP "\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n"

void lab_resume(sw_t *co);
void lab_yield(void);
/* rdi: the coroutine. Label 8 stands for the slow path of a library. */
__asm__(".text\n"
        "\t.p2align 6\n"
        "lab_resume:\n"
        "\ttestq %rdi,%rdi\n"
        "\tje 8f\n"
        "\tcmpb $0,14(%rdi)\n"
        "\tjne 8f\n"
        "\tcmpq $0," T(16) "\n"
        "\tjne 8f\n"
        "\tmovq %rdi," T(16) "\n"
        PUSH
        "\tmovq %rsp," T(0) "\n"
        FP_SWAP(T(8), T(12), "8(%rdi)", "12(%rdi)")
        "\tmovq (%rdi),%rsp\n"
        POP
        YIELD_RETURNS
        "\t.p2align 6\n"
        "lab_yield:\n"
        "\tmovq " T(16) ",%rdi\n"
        "\ttestq %rdi,%rdi\n"
        "\tje 8f\n"
        "\tmovq $0," T(16) "\n"
        PUSH
        "\tmovq %rsp,(%rdi)\n"
        FP_SWAP("8(%rdi)", "12(%rdi)", T(8), T(12))
        "\tmovq " T(0) ",%rsp\n"
        POP
        RESUME_RETURNS
        "8:\tud2\n"
        "\t.p2align 6\n");

BENCH_INLINE void sw_resume(sw_t *co)
{
    lab_resume(co);
}

BENCH_INLINE void sw_yield(sw_t *self)
{
    (void)self;
    lab_yield();
}

#include "../peers/value_in_record.h"

#ifdef SITES
/* One call for each depth; the comments keep the compiler from merging them. */
BENCH_INLINE uintptr_t call_from(uintptr_t (*descend)(sw_t *, uintptr_t, uintptr_t), sw_t *self, uintptr_t depth,
                                 uintptr_t x)
{
#define SITE(n)                                                                                                        \
    case n:                                                                                                            \
        x = descend(self, depth, x);                                                                                   \
        __asm__ volatile("# site " #n);                                                                                \
        return x
    switch (depth & 7) {
        SITE(0);
        SITE(1);
        SITE(2);
        SITE(3);
        SITE(4);
        SITE(5);
        SITE(6);
        SITE(7);
    }
    return x;
}
#define MATRIX_DESCEND(descend, self, depth, x) call_from(descend, self, depth, x)
#endif
#include "../matrix.h"
#include "../peers/entry.h"

static sw_t *sw_start(matrix_kind_t kind, matrix_body_t body, size_t stack_sz)
{
    void **sp = (void **)(void *)bench_stack_new(stack_sz);
    sw_t *co = bench_alloc(sizeof *co);
    (void)kind;
    *--sp = NULL; /* the entry function's return address */
    *--sp = (void *)(uintptr_t)entry;
    co->sp = sp - 6;
    co->state = 0;
    __asm__("stmxcsr %0\n\tfnstcw %1" : "=m"(co->mxcsr), "=m"(co->x87cw));
    return entered(co, body);
}

int main(int argc, char **argv)
{
    return matrix_main(argc, argv);
}
