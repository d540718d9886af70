/* Promise: an unwinder sees the truth from every instruction of a switch: the frames of the side that the stack pointer
 * belongs to, and behind a coroutine's first frame those of its resumer; or a clean end, between loading the stack
 * pointer and jumping.
 *
 * All runs by single steps: the trap flag is set, and at each instruction a signal handler walks the stack, by
 * _Unwind_Backtrace() or, with USE_LIBUNWIND, by that library. The truth, which the test knows beforehand, is which
 * functions called each other on which stack, and what a callee-saved register held in them. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"

#ifndef ACO_CONFIG_NO_INLINE
#include "aco/generator.h"
#endif

#include <errno.h>
#include <signal.h>
#include <ucontext.h>
#include <unwind.h>

#if defined(__x86_64__)
#define PC(context) ((uintptr_t)(context)->uc_mcontext.gregs[REG_RIP])
#define SP(context) ((uintptr_t)(context)->uc_mcontext.gregs[REG_RSP])
#define FLAGS(context) (context)->uc_mcontext.gregs[REG_EFL]
#define KEPT "r12" /* a callee-saved register that a variable may be in */
enum { KEPT_IN_DWARF = 12 };
#else
#define PC(context) ((uintptr_t)(context)->uc_mcontext.gregs[REG_EIP])
#define SP(context) ((uintptr_t)(context)->uc_mcontext.gregs[REG_ESP])
#define FLAGS(context) (context)->uc_mcontext.gregs[REG_EFL]
#define KEPT "edi"
enum { KEPT_IN_DWARF = 7 };
#endif
enum { TRAP_FLAG = 0x100, DEEPEST = 48 };

/* ---- Walking ---- */

typedef struct frame {
    uintptr_t pc, function, kept; /* `function`: where it begins; 0: unknown */
} frame_t;
static frame_t frames[DEEPEST];
static int depth;

#ifdef USE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#ifdef __x86_64__
#define KEPT_IN_LIBUNWIND UNW_X86_64_R12
#else
#define KEPT_IN_LIBUNWIND UNW_X86_EDI
#endif

static void walk_from(ucontext_t *context)
{
    unw_cursor_t cursor;
    depth = 0;
    CHECK_EQ(unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME), 0);
    do {
        unw_proc_info_t info;
        unw_word_t pc, kept;
        if (unw_get_reg(&cursor, UNW_REG_IP, &pc) != 0 || pc == 0)
            return;
        frames[depth].pc = pc;
        frames[depth].function = unw_get_proc_info(&cursor, &info) == 0 ? info.start_ip : 0;
        frames[depth].kept = unw_get_reg(&cursor, KEPT_IN_LIBUNWIND, &kept) == 0 ? kept : 0;
    } while (++depth < DEEPEST && unw_step(&cursor) > 0);
}
#else
static uintptr_t interrupted; /* the walk begins here: 0, it has begun */

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *unused)
{
    int before = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &before);
    (void)unused;
    if (interrupted && pc != interrupted)
        return _URC_NO_REASON;
    interrupted = 0;
    if (depth == DEEPEST || pc == 0)
        return _URC_END_OF_STACK;
    frames[depth].pc = pc;
    frames[depth].function = (uintptr_t)_Unwind_FindEnclosingFunction((void *)(pc + (uintptr_t)before));
    frames[depth].kept = _Unwind_GetGR(context, KEPT_IN_DWARF);
    depth++;
    return _URC_NO_REASON;
}

static void walk_from(ucontext_t *context)
{
    depth = 0;
    interrupted = PC(context);
    _Unwind_Backtrace(note, NULL);
    CHECK_EQ(interrupted, 0);
}
#endif

/* ---- The truth ---- */

enum { SIDES = 4, FUNCTIONS = 6, MAGIC = 0x5ca1ab1e };
typedef struct side {
    const char *lo, *hi;                /* its stack; NULL: all that is nobody else's */
    void (*function[FUNCTIONS])(void); /* those of this test that called each other there, the innermost first */
    int resumer;                        /* the side that is its unwind parent; -1: none, the end of the stack */
} side_t;
static side_t sides[SIDES];
static int sides_count;
static uintptr_t outermost; /* the function under every coroutine's */
int main(void);

static uintptr_t address(void (*function)(void))
{
    uintptr_t a;
    memcpy(&a, &function, sizeof a);
    return a;
}

static int side_of(uintptr_t sp)
{
    for (int i = 1; i < sides_count; i++)
        if (sp >= (uintptr_t)sides[i].lo && sp <= (uintptr_t)sides[i].hi)
            return i;
    return 0;
}

/* The index of a function among those of a side; FUNCTIONS: none of them. */
static int place_of(const side_t *side, uintptr_t function)
{
    int i = 0;
    while (i < FUNCTIONS && (!side->function[i] || address(side->function[i]) != function))
        i++;
    return i;
}

static int is_anyones(uintptr_t function)
{
    for (int i = 0; i < sides_count; i++)
        if (place_of(&sides[i], function) < FUNCTIONS)
            return 1;
    return 0;
}

/* The frames from `*i` on are those of `side`, innermost first, with others' between them, up to its first frame; moves
 * *i behind it. */
static int are_of(const side_t *side, int *i)
{
    int place = FUNCTIONS, seen = 0, ends = 0;
    for (; *i < depth && !ends; ++*i) {
        const frame_t *frame = &frames[*i];
        ends = frame->function == (side == sides ? address((void (*)(void))main) : outermost);
        if (place == FUNCTIONS)
            place = place_of(side, frame->function);
        if (place == FUNCTIONS ? !is_anyones(frame->function)
                               : !side->function[place] || address(side->function[place]) != frame->function) {
            if (is_anyones(frame->function))
                return 0;
            continue;
        }
        if (!side->function[++place] && seen && frame->kept != MAGIC)
            return 0;
        seen++;
    }
    return ends && (place == FUNCTIONS || !side->function[place]);
}

/* ---- Stepping ---- */

/* Counts of steps: all; with only one frame; with the resumers' frames too; without them. */
static long steps, cut, linked, unlinked;
static int complaints;
#if defined(__i386__) && defined(__PIC__)
static int anywhere = 1; /* while a return address is on the stack by which the code finds itself */
#else
static int anywhere; /* in generators' switches, where the frame pointer is loaded first */
#endif

static void complain(int side)
{
    if (complaints++ >= 3)
        return;
    fprintf(stderr, "step %ld, on side %d:", steps, side);
    for (int i = 0; i < depth; i++)
        fprintf(stderr, " %#zx in %#zx", (size_t)frames[i].pc, (size_t)frames[i].function);
    fprintf(stderr, "\n");
}

static void check_frames(uintptr_t sp)
{
    int side = side_of(sp), i = 0;
    steps++;
    if (depth == 1) { /* of the function that it is in, the other side's or the library's, nothing is known */
        if (!frames[0].function)
            return; /* a stub of lld's procedure linkage table, which has no unwind information */
        cut++;
        if (place_of(&sides[side], frames[0].function) != FUNCTIONS && !anywhere)
            complain(side);
        return;
    }
    for (;;) {
        if (!are_of(&sides[side], &i)) {
            complain(side);
            return;
        }
        if (side == 0) {
            linked += side_of(sp) != 0;
            return;
        }
        if (i == depth) {
            unlinked += sides[side].resumer >= 0;
            return;
        }
        side = sides[side].resumer;
        if (side < 0) {
            complain(side);
            return;
        }
    }
}

/* The program's own code; of the C library's not all has its frames described (i386: glibc 2.36's memcpy with
 * SSSE3). */
extern const char __executable_start, etext;

static void on_trap(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    uintptr_t pc = PC((ucontext_t *)context);
    (void)sig, (void)info;
    if (pc < (uintptr_t)&__executable_start || pc >= (uintptr_t)&etext)
        return;
    walk_from(context);
    check_frames(SP((ucontext_t *)context));
    errno = saved;
}

static void on_start(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    FLAGS((ucontext_t *)context) ^= TRAP_FLAG;
}

/* From the next instruction on, or no longer: a signal's return sets the flag. */
static __attribute__((noinline)) void toggle_steps(void)
{
    raise(SIGUSR1);
}

/* ---- What is stepped through ---- */

/* Called by a function of a side: keeps the magic number in the register while it calls. */
#define KEEPING(call)                                                                                                  \
    do {                                                                                                               \
        register uintptr_t kept __asm__(KEPT) = MAGIC;                                                                 \
        __asm__ volatile("" : "+r"(kept));                                                                             \
        call;                                                                                                          \
        __asm__ volatile("" : "+r"(kept));                                                                             \
    } while (0)
#define NOT_A_TAIL_CALL __asm__ volatile("")

void resume_it(void), call_resume(void), yield_it(void), call_yield(void);
void inner_yield(void), inner_call(void), nested_resume(void), nested_call(void);
void transfer_it(void), transfer_call(void), exit_it(void), exit_call(void);
void consume(void), call_consume(void), consume_in_stack(void), call_consume_in_stack(void);

static aco_t *first, *second;
static volatile int rounds;

__attribute__((noinline)) void resume_it(void)
{
    aco_resume(first);
    NOT_A_TAIL_CALL;
}
__attribute__((noinline)) void call_resume(void)
{
    KEEPING(resume_it());
}
__attribute__((noinline)) void yield_it(void)
{
    aco_yield();
    NOT_A_TAIL_CALL;
}
__attribute__((noinline)) void call_yield(void)
{
    KEEPING(yield_it());
}
static void *yields(void *arg)
{
    for (int i = 0; i < rounds; i++)
        call_yield();
    return arg;
}
__attribute__((noinline)) void exit_call(void)
{
    KEEPING(exit_it());
}
/* Ends with the call. What comes behind must never be stepped through: libunwind 1.6 would take its first instruction
 * for the place to which this call returns. */
__attribute__((noinline)) void exit_it(void)
{
    aco_exit();
}

/* A side of `co`, on whose stack these functions are. */
static void has(int side, const aco_t *co, int resumer, void (*innermost)(void), void (*outer)(void))
{
    void *lo = NULL, *hi = NULL;
    if (co) {
        CHECK_EQ(aco_stack_bounds(co, &lo, &hi), 0);
        outermost = (uintptr_t)_Unwind_FindEnclosingFunction(*(char **)co->share_stack->aco__top);
    }
    memset(&sides[side], 0, sizeof sides[side]);
    sides[side].lo = lo;
    sides[side].hi = hi;
    sides[side].resumer = resumer;
    sides[side].function[0] = innermost;
    sides[side].function[1] = outer;
    if (sides_count <= side)
        sides_count = side + 1;
}

static void begin(const char *what)
{
    if (getenv("VERBOSE"))
        printf("%s\n", what);
    steps = cut = linked = unlinked = 0;
    toggle_steps();
}

/* `switches`: how many there were; each may have so many instructions where the stack ends at once. */
static void end(const char *what, long switches)
{
    /* The frame pointer's load and the jump, and what is said there. */
    const int blind = sizeof(void *) == 8 ? 2 : 2 + 8 * anywhere;
    toggle_steps();
    if (getenv("VERBOSE"))
        printf("%s: %ld steps, %ld of them cut, %ld linked, %ld not\n", what, steps, cut, linked, unlinked);
    CHECK_EQ(complaints, 0);
    CHECK(linked >= unlinked); /* not so for a coroutine that begins, leaves or arrives */
    CHECK(steps > 20 * switches);
    CHECK(cut >= switches);
    CHECK(cut <= blind * switches + 10 * anywhere); /* and aco__generator_begin */
}

/* First entry, yields, return. */
static void private_stack(unsigned flags)
{
    aco_options_t o = {.flags = flags};
    rounds = 3;
    first = aco_new(yields, NULL, &o);
    has(0, NULL, -1, resume_it, call_resume);
    has(1, first, 0, yield_it, call_yield);
    begin("private");
    while (!first->is_end)
        call_resume();
    end("private", 2 * (rounds + 1));
    CHECK(unlinked > 0);
    aco_destroy(first);
}

static void entry(void)
{
    char live[200];
    __asm__ volatile("" : "=m"(live));
    yields(NULL);
    exit_call();
}

/* Two that take turns on one stack, made by aco_create(); exit by aco_exit(). */
static void share_stack(void)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL), *co[2];
    aco_share_stack_t *stack = aco_share_stack_new(0);
    rounds = 3;
    for (int i = 0; i < 2; i++)
        co[i] = aco_create(main_co, stack, 0, entry, NULL);
    has(0, NULL, -1, resume_it, call_resume);
    has(1, co[0], 0, yield_it, call_yield);
    begin("share stack");
    for (int i = 0; i < 2 * rounds; i++) {
        first = co[i % 2];
        call_resume();
    }
    toggle_steps();
    has(1, co[0], 0, exit_it, exit_call);
    toggle_steps();
    for (int i = 0; i < 2; i++) {
        first = co[i];
        call_resume();
        CHECK(first->is_end);
    }
    end("share stack", 4 * (rounds + 1));
    for (int i = 0; i < 2; i++)
        aco_destroy(co[i]);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}

/* A coroutine that resumes another one. */
__attribute__((noinline)) void inner_yield(void)
{
    aco_yield();
    NOT_A_TAIL_CALL;
}
__attribute__((noinline)) void inner_call(void)
{
    KEEPING(inner_yield());
}
static void *inner(void *arg)
{
    for (int i = 0; i < rounds; i++)
        inner_call();
    return arg;
}
__attribute__((noinline)) void nested_resume(void)
{
    aco_resume(second);
    NOT_A_TAIL_CALL;
}
__attribute__((noinline)) void nested_call(void)
{
    KEEPING(nested_resume());
}
static void *nests(void *arg)
{
    while (!second->is_end)
        nested_call();
    return arg;
}
static void nested(void)
{
    rounds = 2;
    first = aco_new(nests, NULL, NULL);
    second = aco_new(inner, NULL, NULL);
    has(0, NULL, -1, resume_it, call_resume);
    has(1, first, 0, nested_resume, nested_call);
    has(2, second, 1, inner_yield, inner_call);
    begin("nested");
    call_resume();
    end("nested", 2 + 2 * (rounds + 1));
    CHECK(first->is_end);
    aco_destroy(first);
    aco_destroy(second);
}

/* From coroutine to coroutine. */
__attribute__((noinline)) void transfer_it(void)
{
    CHECK_EQ(aco_yield_to(second), 0);
    NOT_A_TAIL_CALL;
}
__attribute__((noinline)) void transfer_call(void)
{
    KEEPING(transfer_it());
}
static void *transfers(void *arg)
{
    for (int i = 0; i < rounds; i++)
        transfer_call();
    return arg;
}
static void transfer(void)
{
    rounds = 2;
    first = aco_new(transfers, NULL, NULL);
    second = aco_new(inner, NULL, NULL);
    has(0, NULL, -1, resume_it, call_resume);
    has(1, first, 0, transfer_it, transfer_call);
    has(2, second, 0, inner_yield, inner_call);
    begin("transfer");
    for (int i = 0; i < rounds + 1; i++)
        call_resume();
    end("transfer", 3 * rounds + 2);
    CHECK(first->is_end);
    aco_cancel(second);
    aco_destroy(first);
    aco_destroy(second);
}

#ifndef ACO_CONFIG_NO_INLINE
/* One that resumes another on its own stack: by way of the scratch stack, where the walk ends, as it does in the other
 * one. */
static void *yields_bare(void *arg)
{
    aco_yield();
    return arg;
}
static void *nests_bare(void *arg)
{
    while (!second->is_end)
        aco_resume(second);
    return arg;
}
static void scratch(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    const aco_options_t o = {.stack = stack};
    rounds = 1;
    for (int again = 0; again < 2; again++) { /* the first makes the scratch stack */
        first = aco_new(nests_bare, NULL, &o);
        second = aco_new(yields_bare, NULL, &o);
        has(0, NULL, -1, resume_it, call_resume);
        has(1, first, 0, NULL, NULL);
        if (again) {
            has(2, first, -1, NULL, NULL);
            sides[2].hi = (char *)aco__self()->scratch;
            sides[2].lo = sides[2].hi - (64 << 10);
            begin("scratch");
        }
        call_resume();
        if (again)
            end("scratch", 2 + 3 * (2 + 2));
        CHECK(first->is_end);
        aco_destroy(second);
        aco_destroy(first);
    }
    aco_share_stack_destroy(stack);
}

/* Generators: one on a stack of its own, where the walk ends; one on its consumer's. */
ACO_GENERATOR(counts, y, arg)
{
    for (intptr_t i = 0; i < (intptr_t)arg; i++)
        aco_generate(y, (void *)i);
}
__attribute__((noinline)) void consume(void)
{
    aco_generator_t g;
    CHECK_EQ(aco_generator_open(&g, counts, (void *)3, NULL), 0);
    sides[1].hi = (char *)g.aco__block->share_stack->aco__top + sizeof(void *);
    __asm__ volatile("" : : : "memory"); /* not the other way round, while all is walked */
    sides[1].lo = g.aco__block->share_stack->ptr;
    while (aco_generator_next(&g))
        NOT_A_TAIL_CALL;
}
__attribute__((noinline)) void call_consume(void)
{
    KEEPING(consume());
}

static void generators(void)
{
    has(0, NULL, -1, consume, call_consume);
    has(1, NULL, -1, NULL, NULL);
    sides_count = 2;
    sides[1].lo = sides[1].hi = (char *)UINTPTR_MAX; /* consume() knows better */
    anywhere = 1;
    begin("generator");
    call_consume();
    end("generator", 2 * (3 + 1));
}
#endif

/* Handlers have a stack of their own: what a function has popped stays below the stack pointer, where clang's unwind
 * tables for i386 say that it is. */
static void set_handler_stack(void)
{
    static char memory[1 << 16];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    CHECK_EQ(sigaltstack(&stack, NULL), 0);
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(sig, &action, NULL);
}

int main(void)
{
/* Otherwise libunwind caches what it found by address: a return address less 1, which also belongs to another
 * instruction. */
#ifdef USE_LIBUNWIND
    CHECK_EQ(unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE), 0);
#endif
    set_handler_stack();
    handle(SIGTRAP, on_trap);
    handle(SIGUSR1, on_start);
    aco_thread_init(NULL);
    private_stack(0);
#ifndef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
    private_stack(ACO_OWN_FP);
#endif
    share_stack();
    nested();
    transfer();
#ifndef ACO_CONFIG_NO_INLINE
    scratch();
    generators();
#endif
    return check_result("unwind_steps");
}
