/* The paper's breakdown of yield() on the plain ring. Each step adds to the step before:
 *
 *   classic        yield() is a function that calls the full-save switch; all stack tops are equal modulo 4096
 *   inline         the switch is inline in yield(), which saves the callee-saved registers of its caller
 *   tail           the switch does not return into yield(): it restores the registers and jumps to yield()'s return
 *                  address
 *   preserve_none  yield() saves no register for its caller, except rbp, which clang's convention leaves callee-saved
 *   coloured       the stack tops differ
 *   small          stacks of 4112 bytes, one behind the other
 */
#include "plain_ring.h"
#include "peers/classic_switch.h"

#include <aco/calling_convention.h>

enum { STACK = 64 << 10,
       SMALL_STACK = 4112,
       TASKS_IN_RING = 10 };

static __attribute__((noinline)) void yield_classic(void)
{
    task_t *from = ring_running, *to = from->next;
    ring_running = to;
    classic_switch(&from->sp, to->sp);
}

/* gcc would see that the function touches no static variable of the program, and keep them in registers across the
 * call. */
#ifdef __clang__
#define YIELD_FUNCTION static __attribute__((noinline))
#else
#define YIELD_FUNCTION static __attribute__((noipa))
#endif

YIELD_FUNCTION void yield_inline(void)
{
    task_t *from = ring_running, *to = from->next;
    ring_running = to;
    __asm__ volatile("leaq 1f(%%rip),%%rdx\n\t"
                     "movq %%rsp,(%0)\n\t"
                     "movq %%rdx,0x10(%0)\n\t"
                     "movq %%rbp,0x18(%0)\n\t"
                     "movq (%1),%%rsp\n\t"
                     "movq 0x18(%1),%%rbp\n\t"
                     "jmpq *0x10(%1)\n"
                     "1:"
                     : "+D"(from), "+S"(to)
                     :
                     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",
                       "cc");
}

void yield_tail(void);
ACO_SWITCHING void yield_none(void);

/* Leaves the running task in rdi, the next task in rsi, and makes the next task the running one. */
#define NEXT_TASK \
    "\tmovq %fs:ring_running@tpoff,%rdi\n" \
    "\tmovq 8(%rdi),%rsi\n" \
    "\tmovq %rsi,%fs:ring_running@tpoff\n"
__asm__(".text\n"
        "\t.p2align 6\n"
        "\t.type yield_tail,@function\n"
        "yield_tail:\n" NEXT_TASK
        /* the frame that classic_start() makes */
        "\tpushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n"
        "\tmovq %rsp,(%rdi)\n"
        "\tmovq (%rsi),%rsp\n"
        "\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n"
        "\tpopq %rcx\n"
        "\tjmpq *%rcx\n"
        "\t.size yield_tail,.-yield_tail\n"
        "\t.p2align 6\n"
        "\t.type yield_none,@function\n"
        "yield_none:\n" NEXT_TASK
        "\tmovq %rsp,(%rdi)\n"
        "\tmovq %rbp,0x18(%rdi)\n"
        "\tmovq (%rsi),%rsp\n"
        "\tmovq 0x18(%rsi),%rbp\n"
        "\tpopq %rcx\n"
        "\tjmpq *%rcx\n"
        "\t.size yield_none,.-yield_none\n"
        "\t.p2align 6\n");

RING(classic, yield_classic)
RING(inline, yield_inline)
RING(tail, yield_tail)
RING(none, yield_none)

/* ---- Stacks ---- */

static char *plain_stack(size_t i)
{
    (void)i;
    bench_stacks_made = 0; /* the same colour for all */
    return bench_stack_new(STACK);
}

static char *coloured_stack(size_t i)
{
    (void)i;
    return bench_stack_new(STACK);
}

static char *small_stack(size_t i)
{
    static char *all;
    if (i == 1)
        all = (char *)bench_map((size_t)TASKS_IN_RING * SMALL_STACK);
    return all + i * SMALL_STACK;
}

static char *(*stack_of)(size_t i);

static void start_saved(task_t *task, size_t i)
{
    task->sp = classic_start(stack_of(i), ring_entry);
}

static void start_inline(task_t *task, size_t i)
{
    task->sp = stack_of(i) - 8;
    task->pc = (void *)(uintptr_t)ring_entry;
}

static void start_none(task_t *task, size_t i)
{
    void **sp = (void **)(void *)stack_of(i) - 2;
    *sp = (void *)(uintptr_t)ring_entry;
    task->sp = sp;
}

/* ---- The steps ---- */

static void first_yield_none(void)
{
    yield_none();
}

#define STEP(step, name, start, yield, stack) \
    static void *step##_make(unsigned placement, size_t number) \
    { \
        static const body_t all[] = NATIVE_ALL(name##_body); \
        native_must(number == TASKS_IN_RING, "there are ten tasks"); \
        stack_of = stack; \
        return plain_ring_of(all[placement], number, start, yield); \
    }
#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)
#define NONE_STEP(step, stack) \
    STEP(step##_checked, none, start_none, first_yield_none, stack) \
    static void *step##_make(unsigned placement, size_t number) \
    { \
        native_must(sizeof TEXT_OF(ACO_SWITCHING) > 1, "this compiler has no preserve_none"); \
        return step##_checked_make(placement, number); \
    }
STEP(classic, classic, start_saved, yield_classic, plain_stack)
STEP(inline, inline, start_inline, yield_inline, plain_stack)
STEP(tail, tail, start_saved, yield_tail, plain_stack)
NONE_STEP(none, plain_stack)
NONE_STEP(coloured, coloured_stack)
NONE_STEP(small, small_stack)

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"classic", classic_make, NATIVE_ALL(classic)},
        {"inline", inline_make, NATIVE_ALL(inline)},
        {"tail", tail_make, NATIVE_ALL(tail)},
        {"preserve_none", none_make, NATIVE_ALL(none)},
        {"coloured", coloured_make, NATIVE_ALL(none)},
        {"small", small_make, NATIVE_ALL(none)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    if (argc == 7)
        bench_stacks_made = (unsigned)strtoul(argv[6], NULL, 10);
    return native_main(argc, argv, cases);
}
