/* What the switch must leave as it was: callee-saved registers, stack pointer and alignment, the platform's registers,
 * floating-point control words and what else the ABI wants at calls, on both sides of every kind of switch, on private
 * and on copying stacks. What differs between architectures stands in probe.h and the tables that it selects.
 *
 * Built twice: with ACO_CONFIG_SHARE_FPU_MXCSR_ENV the environment is common to all, without it each coroutine has its
 * own. White-box: reads and writes internals of the switch. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"

#include <signal.h>
#include <string.h>
#ifndef _WIN32
#include "child.h"
#endif

/* Floating-point control words, without status bits. */
typedef uint64_t fp_control_t;
typedef struct {
    fp_control_t control[2];
} environment_t;

#include "probe.h"

#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
enum { OWN_FP = 0 };
#define VARIANT "probe, shared environment"
#else
enum { OWN_FP = 1 };
#define VARIANT "probe, own environments"
#endif

#define NOINLINE __attribute__((noinline))

#ifdef ACO_CONFIG_UCONTEXT
enum { BY_ASSEMBLY = 0 }; /* where a side begins and arrives is in the C library */
#else
enum { BY_ASSEMBLY = 1 };
#endif

static aco_t *main_co;

/* ---- The ways to switch ------------------------------------------------------------------------------------------ */

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

/* ---- Registers --------------------------------------------------------------------------------------------------- */

static void set_patterns(struct probe *p, uintptr_t salt)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < REGISTERS; i++)
        p->set[i] = (salt + 1) * (uintptr_t)0x9e3779b97f4a7c15u + (uintptr_t)i * 0x01010101u;
}

static void check_same(const char *name, uintptr_t was, uintptr_t is)
{
    if (is != was)
        fprintf(stderr, "%s was %#llx, is %#llx\n", name, (unsigned long long)was, (unsigned long long)is);
    CHECK(is == was);
}

static void check_probe(const struct probe *p)
{
    for (int i = 0; i < REGISTERS; i++)
        check_same(register_names[i], p->set[i], p->seen[i]);
    for (int i = 0; i < FIXED; i++)
        check_same(fixed_names[i], p->before[i], p->after[i]);
}

/* Calls `way` with patterns made of `salt` in the registers. */
static void probe_way(way_t way, aco_t *co, uintptr_t salt)
{
    struct probe p;
    set_patterns(&p, salt);
    probe_call(way, co, &p);
    check_state();
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

/* ---- Entry ------------------------------------------------------------------------------------------------------- */

#ifndef ACO__RETURN_WORD
#define ACO__RETURN_WORD 0
#endif

static int entered;

void probe_entered(uintptr_t sp, uintptr_t bp, uintptr_t return_address)
{
    aco_t *co = aco_get_co();
    check_state();
    entered++;
    CHECK_EQ(sp % STACK_ALIGNMENT, ENTRY_MODULUS);
    CHECK(sp + ENTRY_DEPTH == (uintptr_t)co->share_stack->aco__top);
    CHECK(return_address != 0);
    CHECK(ENTRY_DEPTH || return_address == ((uintptr_t *)co->share_stack->aco__top)[ACO__RETURN_WORD]);
    CHECK_EQ(bp, 0);
    aco_yield();
    aco_exit();
}

static void test_entry(void)
{
    entered = 0;
    for (int n = 1; n <= 64; n++) { /* tops of many colours */
        aco_share_stack_t *stack = aco_share_stack_new2((size_t)n * 1000, (char)(n & 1));
        aco_t *a = aco_create(main_co, stack, 0, probe_entry, NULL),
              *b = aco_create(main_co, stack, 0, probe_entry, NULL);
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

/* ---- Stack pointer and alignment as compiled code sees them ------------------------------------------------------ */

static inline __attribute__((always_inline)) uintptr_t stack_pointer(void)
{
    uintptr_t sp;
    __asm__ volatile(READ_STACK_POINTER : "=r"(sp));
    return sp;
}

#ifdef ARGUMENTS_ARE_PUSHED
enum { SP_IS_STEADY = 0 };
#else
enum { SP_IS_STEADY = 1 };
#endif

/* The compiler, which may believe in an alignment, knows nothing of the address. */
#define CHECK_ALIGNED(array, to)                                                                                       \
    do {                                                                                                               \
        uintptr_t address = (uintptr_t)(array);                                                                        \
        __asm__ volatile("" : "+r"(address));                                                                          \
        CHECK_EQ(address % (to), 0);                                                                                   \
    } while (0)

/* The stack pointer equals what it was before the switch, is aligned at calls, and 16-byte aligned locals really
 * are. */
#define CHECK_STACK_AROUND(SWITCH)                                                                                     \
    do {                                                                                                               \
        _Alignas(16) char aligned[16] = {1, 2, 3};                                                                     \
        uintptr_t before = stack_pointer(), after;                                                                     \
        __asm__ volatile("" : "+m"(aligned));                                                                          \
        CHECK_ALIGNED(aligned, 16);                                                                                    \
        SWITCH;                                                                                                        \
        after = stack_pointer();                                                                                       \
        CHECK(after == before || !SP_IS_STEADY);                                                                       \
        CHECK_EQ(probe_stack_pointer() % STACK_ALIGNMENT, 0);                                                          \
        __asm__ volatile("" : "+m"(aligned));                                                                          \
        CHECK_ALIGNED(aligned, 16);                                                                                    \
        CHECK(aligned[0] == 1 && aligned[1] == 2 && aligned[2] == 3 && aligned[15] == 0);                              \
    } while (0)

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
    aco_t *a = aco_create(main_co, stack, 0, aligned_body, NULL),
          *b = aco_create(main_co, stack, 0, aligned_body, NULL);
    while (!a->is_end) {
        CHECK_STACK_AROUND(aco_resume(a));
        CHECK_STACK_AROUND(probe_exported.resume(b));
    }
    CHECK(b->is_end);
    aco_destroy(a);
    aco_destroy(b);
    aco_share_stack_destroy(stack);
}

/* ---- A variable in a callee-saved register ----------------------------------------------------------------------- */

/* `v` is in the register HELD, `w` in any. */
#define HOLD(v, w)                                                                                                     \
    do {                                                                                                               \
        register uintptr_t held __asm__(HELD) = (v);                                                                   \
        __asm__ volatile("" : "+r"(held), "+r"(w));                                                                    \
        (v) = held;                                                                                                    \
    } while (0)

#define CHECK_HELD_AROUND(SWITCH, salt)                                                                                \
    do {                                                                                                               \
        uintptr_t v = (salt), w = ~(salt);                                                                             \
        HOLD(v, w);                                                                                                    \
        SWITCH;                                                                                                        \
        HOLD(v, w);                                                                                                    \
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

/* ---- Floating-point environments --------------------------------------------------------------------------------- */

#if FP_CONTROLS
enum { ENVIRONMENTS = sizeof environments / sizeof *environments };

static void check_environment(const environment_t *expected)
{
    environment_t now = environment();
    for (int i = 0; i < FP_CONTROLS; i++)
        CHECK_EQ(now.control[i], expected->control[i]);
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

static environment_t only_bit[64]; /* the normal environment except for one bit */

/* Finds them; gives their number. */
static int single_bits(void)
{
    int bits = 0;
    for (int i = 0; i < FP_CONTROLS; i++)
        for (fp_control_t bit = 1; bit; bit <<= 1) {
            environment_t flipped = environments[0];
            if (!(control_bits[i] & bit))
                continue;
            flipped.control[i] ^= bit;
            set_environment(&flipped);
            if ((optional_bits[i] & bit) && ((environment().control[i] ^ flipped.control[i]) & bit))
                continue;
            check_environment(&flipped);
            only_bit[bits++] = flipped;
        }
    set_environment(&environments[0]);
    return bits;
}

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
    int load_always = aco__self()->fp_load_always;
    int bits = single_bits();
    CHECK(bits > 0);
    for (int path = 0; path < 2; path++)
        for (int way = 0; way < 2; way++) {
            aco__self()->fp_load_always = path;
            fp.resume = resumes[way];
            fp.yield = yields[way];
            one_bit_on(bits);
        }
    aco__self()->fp_load_always = (int8_t)load_always;
}

#endif

/* ---- Sticky exceptions on one side, unmasked control words on the other ------------------------------------------ */

#ifdef STICKY_EXCEPTIONS
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
        raise_exceptions();
        aco_yield();
        use_both_units();
    }
    raise_exceptions();
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
            if (raise)
                raise_exceptions();
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
}

static void sticky_unprotected(void)
{
    signal(SIGFPE, SIG_DFL); /* sanitizers catch it */
    raise_exceptions();
    load_unmasked();
    use_both_units();
}

static void test_sticky(void)
{
    DIES_OF(sticky_unprotected, SIGFPE); /* the scenario does trap where nothing is done about it */
    if (OWN_FP)
        PASSES(sticky_both_ways);
}
#endif

/* ---- Returning from an entry function ---------------------------------------------------------------------------- */

#ifndef _WIN32
static void last_word(void)
{
    CHECK(aco_get_co() != NULL && aco_get_co() != main_co);
    CHECK_EQ(probe_stack_pointer() % STACK_ALIGNMENT, 0);
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
    child_end_t end = child_run(return_from_entry);
    if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != 42)
        child_complain(__FILE__, __LINE__, "return_from_entry", "exit status 42", &end);
}
#endif

/* ---- The tagged coroutine pointer and its interrupt flag --------------------------------------------------------- */

static int word_checked;

static NOINLINE void word_body(void)
{
    aco_t *co = aco_get_co();
    void *value = &word_checked;
    uintptr_t word = aco__switch_yield(aco__tls_ref(), co, &value, OWN_FP);
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
    word = aco__switch_resume(aco__tls_ref(), co, &value, OWN_FP);
    CHECK(word == (uintptr_t)co);
    CHECK(value == &word_checked);
    value = main_co;
    word = aco__switch_resume(aco__tls_ref(), co, &value, OWN_FP);
    CHECK(word == (uintptr_t)co);
    CHECK(co->is_end);
    CHECK_EQ(word_checked, 1);
    aco_destroy(co);
    aco_share_stack_destroy(stack);
}

void *probe_mark_then;

#ifndef _WIN32
static way_t marked_resume, marked_yield;
static int mark_the_resumer;

/* Sets the interrupt flag for the resumer, or yields to get it set. */
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
    signal(SIGABRT, SIG_DFL); /* sanitizers catch it */
    fprintf(stderr, "expect %p\n", (void *)co);
    marked_resume(co);
    probe_mark_then = co->aco__self.pc;
    memcpy(&co->aco__self.pc, &mark_it, sizeof mark_it);
    marked_resume(co);
    _exit(4);
}

static void check_mark(void)
{
    child_end_t end = child_run(mark);
    char expected[200], address[64] = "";
    int said = sscanf(end.text, "expect %60s", address);
    snprintf(expected, sizeof expected,
             "\nacorn: switch: coroutine %s: the interrupt flag is set without an injected call\n", address);
    if (said != 1 || !WIFSIGNALED(end.status) || WTERMSIG(end.status) != SIGABRT || !strstr(end.text, expected))
        child_complain(__FILE__, __LINE__, "mark", expected, &end);
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
#endif

int main(void)
{
#ifdef SETTLE
    settle();
#endif
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    test_registers();
    if (BY_ASSEMBLY)
        test_entry();
    test_alignment();
    test_held();
    test_word();
#if FP_CONTROLS
    test_environments();
    test_single_bits();
#endif
#ifdef STICKY_EXCEPTIONS
    test_sticky();
#endif
#ifdef _WIN32
    puts("without what needs fork(): sticky exceptions, returning from an entry function, the arrival mark");
#else
    test_return_from_entry();
    if (BY_ASSEMBLY)
        test_mark();
#endif
    aco_destroy(main_co);
    return check_result(VARIANT);
}
