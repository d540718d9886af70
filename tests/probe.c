/* What the switch must leave as it was: callee-saved registers, stack pointer and alignment, direction flag, x87 stack and
 * floating-point control words, on both sides of every kind of switch, on private and on copying stacks.
 *
 * Built twice: with ACO_CONFIG_SHARE_FPU_MXCSR_ENV the environment is common to all, without it each coroutine has its
 * own. White-box: reads and writes internals of the switch. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { REGISTERS = 6, ENTRY_MODULUS = 8 };
static const char *const register_names[] = {"rbx", "rbp", "r12", "r13", "r14", "r15"};
#elif defined(__i386__)
enum { REGISTERS = 4, ENTRY_MODULUS = 12 };
static const char *const register_names[] = {"ebx", "ebp", "esi", "edi"};
#endif

#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
enum { OWN_FP = 0 };
#define VARIANT "probe, shared environment"
#else
enum { OWN_FP = 1 };
#define VARIANT "probe, own environments"
#endif

/* What fnstenv stores. */
struct x87 {
    uint16_t control, pad0, status, pad1, tag, pad2;
    uint32_t rest[4];
};

/* probe_*.S knows the layout. */
struct probe {
    uintptr_t set[REGISTERS], seen[REGISTERS];
    uintptr_t sp_before, sp_after;
    uintptr_t flags;
    uint32_t mxcsr;
    struct x87 x87;
};

struct entry_state {
    struct x87 x87;
    uint32_t mxcsr;
#if defined(__x86_64__)
    uint64_t pad;
#endif
    uintptr_t bp, flags, return_address;
};

_Static_assert(sizeof(struct x87) == 28, "fnstenv stores 28 bytes");
_Static_assert(offsetof(struct probe, x87) == (2 * REGISTERS + 3) * sizeof(void *) + 4, "probe_*.S");
_Static_assert(offsetof(struct entry_state, bp) == (sizeof(void *) == 8 ? 40 : 32), "probe_*.S");

void probe_call(void (*fn)(void *), void *arg, struct probe *p);
void probe_entry(void);
void probe_entered(const struct entry_state *state) __attribute__((used));
void probe_mark(void);
uintptr_t probe_stack_pointer(void);
extern void *probe_mark_then;
extern const struct {
    void (*resume)(aco_t *co);
    void (*yield)(void);
    void (*yield1)(aco_t *co);
} probe_exported;

#define NOINLINE __attribute__((noinline))

#ifdef ACO_CONFIG_UCONTEXT
enum { BY_ASSEMBLY = 0 }; /* where a side begins and arrives is in the C library */
#else
enum { BY_ASSEMBLY = 1 };
#endif

static aco_t *main_co;

/* ---- The ways to switch ------------------------------------------------------------------------------------------------ */

static NOINLINE void inline_resume(void *co)
{
    aco_resume(co);
}

static NOINLINE void inline_yield(void *co)
{
    (void)co;
    aco_yield();
}

static NOINLINE void inline_yield1(void *co)
{
    aco_yield1(co);
}

static NOINLINE void exported_resume(void *co)
{
    probe_exported.resume(co);
}

static NOINLINE void exported_yield(void *co)
{
    (void)co;
    probe_exported.yield();
}

static NOINLINE void exported_yield1(void *co)
{
    probe_exported.yield1(co);
}

typedef void (*way_t)(void *co);
static const way_t resumes[] = {inline_resume, exported_resume};
static const way_t yields[] = {inline_yield, exported_yield, inline_yield1, exported_yield1};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---- Registers and state ----------------------------------------------------------------------------------------------- */

enum { DIRECTION = 0x400, X87_ALL_EMPTY = 0xffff, X87_TOP = 0x3800, MXCSR_STATUS = 0x3f };

static void set_patterns(struct probe *p, uintptr_t salt)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < REGISTERS; i++)
        p->set[i] = (salt + 1) * (uintptr_t)0x9e3779b97f4a7c15u + (uintptr_t)i * 0x01010101u;
}

static void check_probe(const struct probe *p)
{
    for (int i = 0; i < REGISTERS; i++) {
        if (p->seen[i] != p->set[i])
            fprintf(stderr, "%s was %#lx, is %#lx\n", register_names[i], (unsigned long)p->set[i], (unsigned long)p->seen[i]);
        CHECK(p->seen[i] == p->set[i]);
    }
    CHECK(p->sp_after == p->sp_before);
    CHECK(!(p->flags & DIRECTION));
    CHECK_EQ(p->x87.tag, X87_ALL_EMPTY);
    CHECK_EQ(p->x87.status & X87_TOP, 0);
}

/* Calls `way` with patterns made of `salt` in the registers. */
static void probe_way(way_t way, aco_t *co, uintptr_t salt)
{
    struct probe p;
    set_patterns(&p, salt);
    probe_call(way, co, &p);
    check_probe(&p);
}

static struct {
    way_t yield;
    int rounds;
    int started;
} registers;

static void registers_body(void)
{
    aco_t *co = aco_get_co();
    uintptr_t salt = (uintptr_t)aco_get_arg();
    volatile uintptr_t on_stack = salt * 77;
    registers.started++;
    for (int i = 0; i < registers.rounds; i++) {
        probe_way(registers.yield, co, salt * 1000 + (uintptr_t)i);
        CHECK(on_stack == salt * 77);
        CHECK(aco_get_co() == co);
    }
    aco_exit();
}

/* `n` coroutines on one stack: private for one, copying for more. */
static void registers_on(int n, way_t resume, way_t yield)
{
    enum { MOST = 4 };
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *cos[MOST];
    registers.yield = yield;
    registers.rounds = 5;
    registers.started = 0;
    for (int i = 0; i < n; i++)
        cos[i] = aco_create(main_co, stack, 0, registers_body, (void *)(uintptr_t)(i + 1));
    for (int round = 0; round <= registers.rounds; round++)
        for (int i = 0; i < n; i++) {
            CHECK(!cos[i]->is_end);
            probe_way(resume, cos[i], 500000u + (uintptr_t)(round * n + i));
            CHECK(aco_get_co() == main_co);
        }
    CHECK_EQ(registers.started, n);
    for (int i = 0; i < n; i++) {
        CHECK(cos[i]->is_end);
        if (n > 1)
            CHECK(cos[i]->save_stack.ct_restore > 0); /* it was a copying stack */
        else
            CHECK_EQ(cos[i]->save_stack.ct_save, 0);
        aco_destroy(cos[i]);
    }
    aco_share_stack_destroy(stack);
}

static void test_registers(void)
{
    for (int r = 0; r < COUNT(resumes); r++)
        for (int y = 0; y < COUNT(yields); y++) {
            registers_on(1, resumes[r], yields[y]);
            registers_on(3, resumes[r], yields[y]);
        }
}

/* ---- Entry ------------------------------------------------------------------------------------------------------------- */

static int entered;

void probe_entered(const struct entry_state *state)
{
    aco_t *co = aco_get_co();
    const uintptr_t *sp = &state->return_address;
    entered++;
    CHECK_EQ((uintptr_t)sp % 16, ENTRY_MODULUS);
    CHECK(sp == co->share_stack->aco__top);
    CHECK(state->return_address != 0);
    CHECK_EQ(state->bp, 0);
    CHECK(!(state->flags & DIRECTION));
    CHECK_EQ(state->x87.tag, X87_ALL_EMPTY);
    CHECK_EQ(state->x87.status & X87_TOP, 0);
    aco_yield();
    aco_exit();
}

static void test_entry(void)
{
    entered = 0;
    for (int n = 1; n <= 64; n++) { /* tops of many colours */
        aco_share_stack_t *stack = aco_share_stack_new2((size_t)n * 1000, (char)(n & 1));
        aco_t *a = aco_create(main_co, stack, 0, probe_entry, NULL), *b = aco_create(main_co, stack, 0, probe_entry, NULL);
        probe_way(resumes[n & 1], a, 1);
        probe_way(resumes[n >> 1 & 1], b, 2);
        probe_way(resumes[n & 1], a, 3);
        probe_way(resumes[n & 1], b, 4);
        CHECK(a->is_end && b->is_end);
        aco_reset(a, probe_entry, NULL);
        probe_way(inline_resume, a, 5);
        probe_way(inline_resume, a, 6);
        CHECK(a->is_end);
        aco_destroy(a);
        aco_destroy(b);
        aco_share_stack_destroy(stack);
    }
    CHECK_EQ(entered, 64 * 3);
}

/* ---- Stack pointer and alignment as compiled code sees them ------------------------------------------------------------ */

static inline __attribute__((always_inline)) uintptr_t stack_pointer(void)
{
    uintptr_t sp;
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp,%0" : "=r"(sp));
#else
    __asm__ volatile("movl %%esp,%0" : "=r"(sp));
#endif
    return sp;
}

/* The stack pointer equals what it was before the switch (on i386, compilers may leave arguments of a call for later), is
 * aligned at calls, and 16-byte aligned locals really are. */
#define CHECK_STACK_AROUND(SWITCH)                                                                                     \
    do {                                                                                                               \
        _Alignas(16) char aligned[16] = {1, 2, 3};                                                                     \
        uintptr_t before = stack_pointer(), after;                                                                     \
        KEEP_16(aligned);                                                                                              \
        SWITCH;                                                                                                        \
        after = stack_pointer();                                                                                       \
        CHECK(after == before || sizeof(void *) == 4);                                                                 \
        CHECK_EQ(probe_stack_pointer() % 16, 0);                                                                       \
        KEEP_16(aligned); /* movaps: faults where it is not aligned */                                                 \
        CHECK(aligned[0] == 1 && aligned[1] == 2 && aligned[2] == 3 && aligned[15] == 0);                              \
    } while (0)
#ifdef __SSE__
#define KEEP_16(array) __asm__ volatile("movaps %0,%%xmm0\n\tmovaps %%xmm0,%0" : "+m"(array) : : "xmm0")
#else
#define KEEP_16(array) __asm__ volatile("" : "+m"(array))
#endif

static NOINLINE void aligned_body(void)
{
    for (int i = 0; i < 4; i++) {
        CHECK_STACK_AROUND(aco_yield());
        CHECK_STACK_AROUND(probe_exported.yield());
    }
    aco_exit();
}

static NOINLINE void test_alignment(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *a = aco_create(main_co, stack, 0, aligned_body, NULL), *b = aco_create(main_co, stack, 0, aligned_body, NULL);
    while (!a->is_end) {
        CHECK_STACK_AROUND(aco_resume(a));
        CHECK_STACK_AROUND(probe_exported.resume(b));
    }
    CHECK(b->is_end);
    aco_destroy(a);
    aco_destroy(b);
    aco_share_stack_destroy(stack);
}

/* ---- A variable in each callee-saved register -------------------------------------------------------------------------- */

#define HOLD(name) __asm__ volatile("" : "+r"(name))
#if defined(__x86_64__)
#define HELD_IN_RBX "+b"
#else
#define HELD_IN_RBX "+r" /* ebx may be the PIC register */
#endif

/* `v` is in rbx just before and just after the switch. */
#define CHECK_HELD_AROUND(SWITCH, salt)                                                                                \
    do {                                                                                                               \
        uintptr_t v = (salt), w = ~(salt);                                                                             \
        __asm__ volatile("" : HELD_IN_RBX(v));                                                                         \
        HOLD(w);                                                                                                       \
        SWITCH;                                                                                                        \
        __asm__ volatile("" : HELD_IN_RBX(v));                                                                         \
        HOLD(w);                                                                                                       \
        CHECK(v == (salt));                                                                                            \
        CHECK(w == ~(salt));                                                                                           \
    } while (0)

static void held_body(void)
{
    uintptr_t salt = (uintptr_t)aco_get_arg();
    for (int i = 0; i < 3; i++)
        CHECK_HELD_AROUND(aco_yield(), salt);
    aco_exit();
}

static NOINLINE void test_held(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *a = aco_create(main_co, stack, 0, held_body, (void *)(uintptr_t)111);
    aco_t *b = aco_create(main_co, stack, 0, held_body, (void *)(uintptr_t)222);
    while (!a->is_end) {
        CHECK_HELD_AROUND(aco_resume(a), (uintptr_t)333);
        CHECK_HELD_AROUND(aco_resume(b), (uintptr_t)444);
    }
    CHECK(b->is_end);
    aco_destroy(a);
    aco_destroy(b);
    aco_share_stack_destroy(stack);
}

/* ---- Floating-point environments --------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t mxcsr; /* without status bits */
    uint16_t x87;
} environment_t;

/* Each differs from every other in both words. MXCSR: 0x1f80 all masked, rounding 0x6000, FTZ 0x8000, DAZ 0x40. x87: 0x33f all
 * masked, precision 0x300, rounding 0xc00. Inexact, underflow and denormal stay masked: the checks themselves may cause them. */
static const environment_t environments[] = {
    {0x1f80, 0x37f}, {0x3f80, 0x77f}, {0x5f80, 0xb7f}, {0x7f80, 0xf7f}, {0x9fc0, 0x27f}, {0x1f00, 0x37e}, {0x1d80, 0x37b},
    {0x7900, 0xe72}, {0xffc0, 0xc7f},
};
enum { ENVIRONMENTS = sizeof environments / sizeof *environments };

static environment_t environment(void)
{
    environment_t e;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(e.mxcsr), "=m"(e.x87));
    e.mxcsr &= ~(uint32_t)MXCSR_STATUS;
    return e;
}

static void set_environment(const environment_t *e)
{
    __asm__ volatile("ldmxcsr %0\n\tfnclex\n\tfldcw %1" : : "m"(e->mxcsr), "m"(e->x87));
}

static void check_environment(const environment_t *expected)
{
    environment_t now = environment();
    CHECK_EQ(now.x87, expected->x87);
    CHECK_EQ(now.mxcsr, expected->mxcsr);
}

static struct {
    environment_t now; /* shared environment: what it must be now */
    environment_t at_start;
    way_t resume, yield;
    int rounds;
} fp;

static void fp_body(void)
{
    int me = (int)(uintptr_t)aco_get_arg();
    aco_t *co = aco_get_co();
    check_environment(OWN_FP ? &fp.at_start : &fp.now);
    for (int i = 0; i < fp.rounds; i++) {
        environment_t mine = environments[(me + i / 2) % ENVIRONMENTS]; /* the same one twice, then another */
        set_environment(&mine);
        fp.now = mine;
        fp.yield(co);
        check_environment(OWN_FP ? &mine : &fp.now);
    }
    aco_exit();
}

/* Some of the `n` coroutines and the main side have the same environment, most do not. */
static void environments_on(int n)
{
    enum { MOST = 12 };
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *cos[MOST];
    for (int i = 0; i < n; i++)
        cos[i] = aco_create(main_co, stack, 0, fp_body, (void *)(uintptr_t)i);
    for (int round = 0; round <= fp.rounds; round++)
        for (int i = 0; i < n; i++) {
            environment_t mine = environments[(round + i + 5) % ENVIRONMENTS];
            set_environment(&mine);
            fp.now = mine;
            fp.resume(cos[i]);
            check_environment(OWN_FP ? &mine : &fp.now); /* after the last round: after an end */
        }
    set_environment(&fp.at_start);
    for (int i = 0; i < n; i++) {
        CHECK(cos[i]->is_end);
        aco_destroy(cos[i]);
    }
    aco_share_stack_destroy(stack);
}

static void test_environments(void)
{
    int load_always = aco__self()->fp_load_always;
    environment_t normal = environment();
    fp.rounds = 2 * ENVIRONMENTS;
    for (unsigned start = 0; start < 2; start++) { /* new coroutines start with what aco_thread_init() saw */
        fp.at_start = environments[start * 2];
        set_environment(&fp.at_start);
        aco_thread_init(NULL);
        for (int path = 0; path < 2; path++)
            for (int r = 0; r < COUNT(resumes); r++)
                for (int y = 0; y < COUNT(yields); y++) {
                    aco__self()->fp_load_always = path;
                    fp.resume = resumes[r];
                    fp.yield = yields[y];
                    environments_on(1);
                    environments_on(ENVIRONMENTS + 2);
                }
    }
    set_environment(&normal);
    aco_thread_init(NULL);
    aco__self()->fp_load_always = (int8_t)load_always;
}

static environment_t only_bit[32]; /* the normal environment but for one bit */

static void one_bit_body(void)
{
    environment_t mine = only_bit[(uintptr_t)aco_get_arg()];
    aco_t *co = aco_get_co();
    fp.now = mine;
    set_environment(&mine);
    for (int i = 0; i < 3; i++) {
        fp.yield(co);
        check_environment(OWN_FP ? &mine : &fp.now);
    }
    set_environment(&fp.now); /* shared: what the main side has */
    aco_exit();
}

/* Each control bit by itself must make the difference. */
static void one_bit_on(int bits)
{
    const environment_t normal = environments[0];
    aco_share_stack_t *stack = aco_share_stack_new(0);
    for (int i = 0; i < bits; i++) {
        aco_t *co = aco_create(main_co, stack, 0, one_bit_body, (void *)(uintptr_t)i);
        while (!co->is_end) {
            set_environment(&normal);
            fp.resume(co);
            check_environment(OWN_FP ? &normal : &fp.now);
            fp.now = normal;
        }
        aco_destroy(co);
    }
    set_environment(&normal);
    aco_share_stack_destroy(stack);
}

static void test_single_bits(void)
{
    static const uint16_t x87_bits[] = {1, 2, 4, 8, 16, 32, 0x100, 0x200, 0x400, 0x800};
    int load_always = aco__self()->fp_load_always;
    int bits = 0;
    for (uint32_t bit = 0x40; bit <= 0x8000; bit <<= 1) {
        only_bit[bits] = environments[0];
        only_bit[bits++].mxcsr ^= bit;
    }
    for (int i = 0; i < COUNT(x87_bits); i++) {
        only_bit[bits] = environments[0];
        only_bit[bits++].x87 ^= x87_bits[i];
    }
    for (int path = 0; path < 2; path++)
        for (int way = 0; way < 2; way++) {
            aco__self()->fp_load_always = path;
            fp.resume = resumes[way];
            fp.yield = yields[way];
            one_bit_on(bits);
        }
    aco__self()->fp_load_always = (int8_t)load_always;
}

/* ---- Sticky exceptions on one side, unmasked control words on the other ----------------------------------------------- */

static const environment_t all_masked = {0x1f80, 0x37f}, unmasked = {0x1900, 0x372}; /* invalid, zero-divide, overflow trap */

static void raise_x87_exceptions(void)
{
    __asm__ volatile("fldz\n\tfld1\n\tfdivp\n\tfstp %%st(0)\n\tfldz\n\tfldz\n\tfdivp\n\tfstp %%st(0)" : : : "st", "st(1)");
}

static void raise_sse_exceptions(void)
{
#ifdef __SSE__
    volatile float zero = 0.0f, one = 1.0f, result;
    result = one / zero;
    (void)result;
#endif
}

/* Waits for pending x87 exceptions, and computes something in both units. */
static void use_both_units(void)
{
    volatile float one = 1.0f, two;
    __asm__ volatile("fwait\n\tfld1\n\tfstp %%st(0)\n\tfwait" : : : "st");
    two = one + one;
    CHECK(two == 2.0f);
}

static void unmasked_body(void)
{
    environment_t mine = unmasked;
    set_environment(&mine);
    for (int i = 0; i < 4; i++) {
        aco_yield();
        use_both_units();
        check_environment(&mine);
    }
    aco_exit();
}

static void sticky_body(void)
{
    set_environment(&all_masked);
    for (int i = 0; i < 4; i++) {
        raise_x87_exceptions();
        raise_sse_exceptions();
        aco_yield();
        use_both_units();
    }
    raise_x87_exceptions();
    raise_sse_exceptions();
    aco_exit();
}

static void sticky_on(aco_cofuncp_t body, const environment_t *mine, int raise)
{
    environment_t main_side = *mine;
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *cos[2];
    for (int i = 0; i < 2; i++)
        cos[i] = aco_create(main_co, stack, 0, body, NULL);
    set_environment(&main_side);
    while (!cos[1]->is_end)
        for (int i = 0; i < 2; i++) {
            if (raise) {
                raise_x87_exceptions();
                raise_sse_exceptions();
            }
            aco_resume(cos[i]);
            use_both_units();
            check_environment(&main_side);
        }
    set_environment(&all_masked);
    for (int i = 0; i < 2; i++)
        aco_destroy(cos[i]);
    aco_share_stack_destroy(stack);
}

static void sticky_both_ways(void)
{
    for (int path = 0; path < 2; path++) {
        aco__self()->fp_load_always = path;
        sticky_on(unmasked_body, &all_masked, 1);
        sticky_on(sticky_body, &unmasked, 0);
    }
    _exit(__atomic_load_n(&check_failures, __ATOMIC_RELAXED) ? 1 : 0);
}

/* What the switch would do without fnclex. */
static void sticky_unprotected(void)
{
    raise_x87_exceptions();
    __asm__ volatile("fldcw %0" : : "m"(unmasked.x87));
    use_both_units();
    _exit(0);
}

/* ---- Child processes --------------------------------------------------------------------------------------------------- */

/* Runs fn() in a child that may take ten seconds; gives its wait status and what it wrote to stderr. */
static int in_child(void (*fn)(void), char *text, size_t size)
{
    int ends[2], status = -1;
    size_t length = 0;
    ssize_t n;
    pid_t child;
    if (pipe(ends) != 0) {
        perror("pipe");
        exit(2);
    }
    fflush(NULL);
    child = fork();
    if (child == 0) {
        alarm(10);
        signal(SIGFPE, SIG_DFL); /* sanitizers catch them */
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        fn();
        _exit(100);
    }
    close(ends[1]);
    while (length < size - 1 && (n = read(ends[0], text + length, size - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

static void test_sticky(void)
{
    char text[4096];
    int status = in_child(sticky_unprotected, text, sizeof text);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGFPE); /* the scenario does trap where nothing is done about it */
    if (!OWN_FP)
        return;
    status = in_child(sticky_both_ways, text, sizeof text);
    if (text[0])
        fputs(text, stderr);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void last_word(void)
{
    CHECK(aco_get_co() != NULL && aco_get_co() != main_co);
    CHECK_EQ(probe_stack_pointer() % 16, 0);
    _exit(__atomic_load_n(&check_failures, __ATOMIC_RELAXED) ? 1 : 42);
}

static void returning_body(void)
{
}

static void return_from_entry(void)
{
    aco_thread_init(last_word);
    aco_resume(aco_create(main_co, aco_share_stack_new(0), 0, returning_body, NULL));
}

static void test_return_from_entry(void)
{
    char text[4096];
    int status = in_child(return_from_entry, text, sizeof text);
    if (text[0])
        fputs(text, stderr);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

/* ---- The arrival word and its mark ------------------------------------------------------------------------------------- */

static int word_checked;

static NOINLINE void word_body(void)
{
    aco_t *co = aco_get_co();
    void *value = &word_checked;
    uintptr_t word = aco__switch_yield(aco__where(), co, &value, OWN_FP);
    CHECK(word == (uintptr_t)co);
    CHECK(value == main_co);
    word_checked++;
    aco_exit();
}

static NOINLINE void test_word(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, word_body, NULL);
    uintptr_t word;
    void *value = NULL;
    CHECK_EQ(aco__resume_slow(co), 1); /* makes it resumable */
    word = aco__switch_resume(aco__where(), co, &value, OWN_FP);
    CHECK(word == (uintptr_t)co);
    CHECK(value == &word_checked);
    value = main_co;
    word = aco__switch_resume(aco__where(), co, &value, OWN_FP);
    CHECK(word == (uintptr_t)co);
    CHECK(co->is_end);
    CHECK_EQ(word_checked, 1);
    aco_destroy(co);
    aco_share_stack_destroy(stack);
}

static way_t marked_resume, marked_yield;
static int mark_the_resumer;

/* Gives the resumer the arrival mark, or yields to be given it. */
static void marked_body(void)
{
    aco__context_t *resumer = &aco__self()->resumer;
    if (mark_the_resumer) {
        void (*mark)(void) = probe_mark;
        probe_mark_then = resumer->pc;
        memcpy(&resumer->pc, &mark, sizeof mark);
    }
    marked_yield(aco_get_co());
    _exit(3);
}

static void mark(void)
{
    aco_t *co = aco_create(main_co, aco_share_stack_new(0), 0, marked_body, NULL);
    void (*mark_it)(void) = probe_mark;
    fprintf(stderr, "expect %p\n", (void *)co);
    marked_resume(co);
    probe_mark_then = co->aco__self.pc;
    memcpy(&co->aco__self.pc, &mark_it, sizeof mark_it);
    marked_resume(co);
    _exit(4);
}

static void check_mark(void)
{
    char text[4096], expected[200], address[64];
    int status = in_child(mark, text, sizeof text);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(sscanf(text, "expect %60s", address) == 1);
    snprintf(expected, sizeof expected, "\nacorn: arrival: coroutine %s: an arrival mark without an event\n", address);
    if (!strstr(text, expected))
        fprintf(stderr, "child: status %#x: %s", (unsigned)status, text);
    CHECK(strstr(text, expected) != NULL);
}

static void test_mark(void)
{
    for (mark_the_resumer = 0; mark_the_resumer < 2; mark_the_resumer++)
        for (int r = 0; r < COUNT(resumes); r++)
            for (int y = 0; y < COUNT(yields); y++) {
                marked_resume = resumes[r];
                marked_yield = yields[y];
                check_mark();
            }
}

int main(void)
{
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    test_registers();
    if (BY_ASSEMBLY)
        test_entry();
    test_alignment();
    test_held();
    test_environments();
    test_single_bits();
    test_sticky();
    test_return_from_entry();
    test_word();
    if (BY_ASSEMBLY)
        test_mark();
    aco_destroy(main_co);
    return check_result(VARIANT);
}
