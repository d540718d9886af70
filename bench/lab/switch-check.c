/* Lab: the cost of the checks around the switch, and the cheapest way to keep a floating-point environment.
 *   for v in 0 1 2 3; do cc -O2 -DCHECK=$v switch-check.c -o t && ./t; done
 *   for v in 1 2 3 4 5 6 7; do cc -O2 -DCHECK=2 -DFPENV=$v switch-check.c -o t && ./t; done
 * An experiment, not library code. Every form sets "who runs" before the switch and clears it after, as the library
 * must.
 *
 * CHECK 0  nothing is checked
 *       1  the stack's owner mark, behind a pointer (co->stack->owner == co), and "does a coroutine run here already?"
 *       2  a state byte in the control block's own line (zero: suspended, its frames in place), and the same question
 *       3  as 2, and the arriving side tests a mark in the low bit of the control block's address
 * FPENV 1  store both control words, compare, load on a difference
 *       2  store both, load MXCSR always, compare the x87 word only
 *       3  as 1 or 2 by a byte in the thread slot
 *       4  parts of 2, to see what each costs: store MXCSR; 5: store the x87 word; 6: both; 7: both, and load MXCSR
 *
 * It prints the fastest of 15 repetitions too, for machines that are not quiet.
 *
 * AMD Zen 5, virtual, 2 cores shared with other work, gcc 12.2: one resume and yield, ns, medians of 15. Classic: an
 * out-of-line switch that pushes and pops six registers and returns by jump, without environment and checks.
 *                        one coroutine   64 coroutines   classic
 *   CHECK=0                      1.15            1.47      5.38
 *   CHECK=2                      1.81            1.47      5.36
 *   CHECK=3                      1.79            1.50      5.32
 *   CHECK=2 FPENV=1             11.63           11.63      4.03
 *   CHECK=2 FPENV=2              7.75            7.97      5.30
 *   CHECK=2 FPENV=3              7.88            8.13      5.42
 * The library has CHECK 3 and FPENV 3. */
#include "../peers/classic_switch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef FPENV
#define FPENV 0
#endif
#define INLINE static inline __attribute__((always_inline))
#define REST "rbx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", \
             "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", \
             "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
typedef struct co co;
typedef struct { co *owner; } stack;
struct co {
    void *sp, *pc, *bp, *base;
    uint32_t mxcsr;
    uint16_t fcw;
    uint8_t state;
    char end;
    stack *on;
    void *pad[2];
} __attribute__((aligned(64)));
typedef struct {
    void *sp, *pc, *bp, *base;
    uint32_t mxcsr;
    uint16_t fcw;
    uint8_t cheap;
    co *running;
} thread;
__thread thread slot __attribute__((tls_model("initial-exec"), aligned(64)));

__attribute__((cold, noinline)) void slow_path(void *c)
{
    if (!c)
        abort();
    __asm__ volatile("" ::: "memory");
    abort();
}

#define SAVE(o, r) "movq %%rsp," o "(%%" r ")\n\tmovq %%rdx," o "8(%%" r ")\n\tmovq %%rbp," o "16(%%" r ")\n\t"
#define LOAD(o, r) "movq " o "(%%" r "),%%rsp\n\tmovq " o "16(%%" r "),%%rbp\n\tjmpq *" o "8(%%" r ")\n\t"
#define X87(of, f, ot, t) "movzwl " of "36(%%" f "),%%eax\n\tcmpw " ot "36(%%" t "),%%ax\n\tjne 4f\n\t5:\n\t"
#define X87COLD(ot, t) "4: fnclex\n\tfldcw " ot "36(%%" t ")\n\tjmp 5b\n\t"
#define ST(of, f) "stmxcsr " of "32(%%" f ")\n\tfnstcw " of "36(%%" f ")\n\t"
#define COMPARE(of, f, ot, t) "movl " of "32(%%" f "),%%eax\n\txorl " ot "32(%%" t "),%%eax\n\tandl $-64,%%eax\n\t"
#define CMP(of, f, ot, t) COMPARE(of, f, ot, t) "jne 2f\n\t"
#define CMPB(of, f, ot, t) COMPARE(of, f, ot, t) "jne 2b\n\t"
#if FPENV == 1
#define FP(of, f, ot, t) ST(of, f) CMP(of, f, ot, t) "3:\n\t" X87(of, f, ot, t)
#define FPCOLD(of, f, ot, t) "2: ldmxcsr " ot "32(%%" t ")\n\tjmp 3b\n\t" X87COLD(ot, t)
#elif FPENV == 2
#define FP(of, f, ot, t) ST(of, f) "ldmxcsr " ot "32(%%" t ")\n\t" X87(of, f, ot, t)
#define FPCOLD(of, f, ot, t) X87COLD(ot, t)
#elif FPENV == 3
#define FP(of, f, ot, t)                                                                                               \
    ST(of, f) "cmpb $0,%%fs:38(%%rsi)\n\tje 6f\n\t2: ldmxcsr " ot "32(%%" t ")\n\t3:\n\t" X87(of, f, ot, t)
#define FPCOLD(of, f, ot, t) "6:\n\t" CMPB(of, f, ot, t) "jmp 3b\n\t" X87COLD(ot, t)
#else
#if FPENV == 4
#define FP(of, f, ot, t) "stmxcsr " of "32(%%" f ")\n\t"
#elif FPENV == 5
#define FP(of, f, ot, t) "fnstcw " of "36(%%" f ")\n\t"
#elif FPENV == 6
#define FP(of, f, ot, t) ST(of, f)
#elif FPENV == 7
#define FP(of, f, ot, t) ST(of, f) "ldmxcsr " ot "32(%%" t ")\n\t"
#else
#define FP(of, f, ot, t)
#endif
#define FPCOLD(of, f, ot, t)
#endif

INLINE co *running(void)
{
    co *c;
    __asm__ volatile("movq slot@gottpoff(%%rip),%0\n\tmovq %%fs:40(%0),%0" : "=r"(c));
    return c;
}

INLINE void resume(co *c)
{
#if CHECK == 1
    if (__builtin_expect(c->on->owner != c || running(), 0)) slow_path(c);
#elif CHECK >= 2
    if (__builtin_expect(c->state || running(), 0)) slow_path(c);
#endif
    __asm__ volatile("movq slot@gottpoff(%%rip),%%rsi\n\tleaq 1f(%%rip),%%rdx\n\tmovq %%rdi,%%fs:40(%%rsi)\n\t"
                     SAVE("%%fs:", "rsi") FP("%%fs:", "rsi", "", "rdi")
                     LOAD("", "rdi") FPCOLD("%%fs:", "rsi", "", "rdi") "1:"
                     : "+D"(c) : : "rax", "rcx", "rdx", "rsi", REST);
#if CHECK >= 3
    if (__builtin_expect((uintptr_t)c & 1, 0)) slow_path(c);
    __asm__ volatile("");
#endif
}

INLINE void yield(void)
{
    co *c = running();
#if CHECK
    if (__builtin_expect(!c, 0)) slow_path(c);
#endif
    __asm__ volatile("movq slot@gottpoff(%%rip),%%rsi\n\tleaq 1f(%%rip),%%rdx\n\tmovq $0,%%fs:40(%%rsi)\n\t"
                     SAVE("", "rdi") FP("", "rdi", "%%fs:", "rsi")
                     LOAD("%%fs:", "rsi") FPCOLD("", "rdi", "%%fs:", "rsi") "1:"
                     : "+D"(c) : : "rax", "rcx", "rdx", "rsi", REST);
#if CHECK >= 3
    if (__builtin_expect((uintptr_t)c & 1, 0)) slow_path(c);
    __asm__ volatile("");
#endif
}

static void body(void)
{
    for (;;)
        yield();
}

static co blocks[64];

static void spawn(int i)
{
    char *s = aligned_alloc(64, 65536);
    blocks[i].sp = s + 65536 - 64 - 8 - 1024 - (i * 832) % 4096;
    blocks[i].pc = (void *)body;
    blocks[i].on = malloc(sizeof(stack));
    blocks[i].on->owner = &blocks[i];
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(blocks[i].mxcsr), "=m"(blocks[i].fcw));
}

static void *main_sp, *classic_sp;

static void classic_body(void)
{
    for (;;)
        classic_switch(&classic_sp, main_sp);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

#define LOOP(name, parameter, step)                                                                                    \
    __attribute__((noinline, aligned(64))) static double name(parameter, long n)                                       \
    {                                                                                                                  \
        double t = now();                                                                                              \
        for (long i = 0; i < n; i++)                                                                                   \
            step;                                                                                                      \
        return (now() - t) / n;                                                                                        \
    }
LOOP(one, co *c, resume(c))
LOOP(many, co **c, resume(c[i & 63]))
LOOP(full, void **sp, classic_switch(&main_sp, *sp))

int main(void)
{
    enum { REPS = 15 };
    const long n = 2000000;
    co *c[64];
    double a[REPS], b[REPS], d[REPS];
    slot.cheap = 1;
    for (int i = 0; i < 64; i++) {
        spawn(i);
        c[i] = &blocks[i];
        resume(c[i]);
    }
    classic_sp = classic_start((char *)aligned_alloc(64, 65536) + 65536 - 1024 - 832, classic_body);
    for (int r = 0; r < REPS; r++)
        a[r] = one(c[0], n), b[r] = many(c, n), d[r] = full(&classic_sp, n);
    qsort(a, REPS, 8, order), qsort(b, REPS, 8, order), qsort(d, REPS, 8, order);
    double m = d[REPS / 2];
    printf("  check %d fpenv %d  one %.2f ns = %.2f of classic   64 %.2f ns = %.2f   classic %.2f ns   "
           "fastest %.2f  %.2f  %.2f\n",
           CHECK, FPENV, a[REPS / 2], a[REPS / 2] / m, b[REPS / 2], b[REPS / 2] / m, m, a[0], b[0], d[0]);
    return 0;
}
