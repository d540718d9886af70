/* Promises of ACO_ENTRY (include/aco/calling_convention.h): entry functions that save no registers keep all their own
 * values, can end in every way, and take less of a share stack. Of aco_prefetch() and aco_prefetch_stack(): they change
 * nothing. C and C++. */
#ifndef _GNU_SOURCE /* g++ defines it */
#define _GNU_SOURCE
#endif
#include "aco.h"
#include "aco/scheduler.h"
#include "check.h"
#include "child.h"
#include "fails.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)
static const int is_empty = sizeof TEXT_OF(ACO_ENTRY) == 1;

static aco_t *main_co;

typedef struct work {
    uint64_t seed, sum;
    unsigned yields, done;
    double x, y;
    unsigned wrong;
} work_t;

static work_t *my_work(void)
{
    return (work_t *)aco_get_arg();
}

/* A yield some calls deep. */
static __attribute__((noinline)) unsigned yield_below(unsigned depth)
{
    volatile unsigned here = depth;
    if (depth == 0)
        aco_yield();
    else
        return yield_below(depth - 1) + here;
    return here;
}

/* ---- Values of all kinds ---- */

/* More of them than there are registers, each of which depends on others; doubles hold whole numbers and halves,
 * exactly. `pause` is what happens in each round. */
#define COMPUTE(w, pause)                                                                                              \
    uint64_t a = (w)->seed, b = a * 3 + 1, c = a ^ b, d = c + 5, e = d * 7, f = e ^ a, g = f + b, h = g * 11;          \
    double x = (double)(a & 1023), y = x + 0.5, z = 2.0;                                                               \
    float s = 1.0f;                                                                                                    \
    uint32_t words[12];                                                                                                \
    volatile unsigned char bytes[37];                                                                                  \
    for (unsigned n = 0; n < 12; n++)                                                                                  \
        words[n] = (uint32_t)(a >> n);                                                                                 \
    for (unsigned n = 0; n < sizeof bytes; n++)                                                                        \
        bytes[n] = (unsigned char)(b + n);                                                                             \
    for (unsigned n = 0; n < (w)->yields; n++) {                                                                       \
        pause;                                                                                                         \
        a += h ^ n;                                                                                                    \
        b = (b << 7 | b >> 57) + a;                                                                                    \
        c ^= b + words[n % 12];                                                                                        \
        d += c * 5;                                                                                                    \
        e = e * 3 + d;                                                                                                 \
        f ^= e >> 3;                                                                                                   \
        g += f + bytes[n % sizeof bytes];                                                                              \
        h = (h ^ g) * 13;                                                                                              \
        x += 1.0;                                                                                                      \
        y += z + (double)(n & 3);                                                                                      \
        z = z < 4096.0 ? z * 2.0 : 0.5;                                                                                \
        s += 0.25f;                                                                                                    \
        words[n % 12] += (uint32_t)h;                                                                                  \
        bytes[n % sizeof bytes] = (unsigned char)(bytes[n % sizeof bytes] + d);                                        \
    }                                                                                                                  \
    for (unsigned n = 0; n < 12; n++)                                                                                  \
        h += words[n] * (uint64_t)(n + 1);                                                                             \
    for (unsigned n = 0; n < sizeof bytes; n++)                                                                        \
        g = g * 3 + bytes[n];                                                                                          \
    (w)->sum = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;                                                                          \
    (w)->x = x + (double)s;                                                                                            \
    (w)->y = y + z;                                                                                                    \
    (w)->done++

static __attribute__((noinline)) void compute_alone(work_t *w)
{
    COMPUTE(w, (void)0);
}

static ACO_ENTRY void yields_itself(void)
{
    work_t *w = my_work();
    COMPUTE(w, aco_yield());
    aco_exit();
}

static ACO_ENTRY void yields_below(void)
{
    work_t *w = my_work();
    COMPUTE(w, w->wrong += yield_below(n % 5) != n % 5 * (n % 5 + 1) / 2);
    aco_exit();
}

static ACO_ENTRY void yields_by_value(void)
{
    work_t *w = my_work();
    aco_t *co = aco_get_co();
    COMPUTE(w, (n & 1 ? aco_yield1(co) : (void)aco_yield_value(NULL)));
    aco_exit1(co);
}

static void yields_unmarked(void)
{
    work_t *w = my_work();
    COMPUTE(w, aco_yield());
    aco_exit();
}

static aco_cofuncp_t entry_of_kind(unsigned kind)
{
    return kind == 0   ? ACO_ENTRY_POINT(yields_itself)
           : kind == 1 ? ACO_ENTRY_POINT(yields_below)
           : kind == 2 ? ACO_ENTRY_POINT(yields_by_value)
                       : yields_unmarked;
}

static void check_work(const work_t *w)
{
    work_t again = *w;
    again.done = 0;
    compute_alone(&again);
    CHECK_EQ(w->done, 1);
    CHECK_EQ(w->wrong, 0);
    CHECK(w->sum == again.sum && w->x == again.x && w->y == again.y);
}

static aco_t *new_entry(aco_share_stack_t *stack, aco_cofuncp_t fp, void *arg)
{
    return aco_create(main_co, stack, 0, fp, arg);
}

/* Resumes from a coroutine: its registers are its own. */
static void *resumes_others(void *arg)
{
    aco_t **all = (aco_t **)arg;
    work_t w;
    memset(&w, 0, sizeof w);
    w.seed = 77;
    w.yields = 60;
    COMPUTE(&w, {
        if (!all[n % 6]->is_end)
            aco_resume(all[n % 6]);
    });
    check_work(&w);
    return arg;
}

/* Promise: live values survive a yield in each coroutine and in its resumer, whoever resumed it and whatever ran
 * between. */
static void values(void)
{
    enum { MANY = 24 };
    aco_share_stack_t *stacks[2] = {aco_share_stack_new(0), aco_share_stack_new2(64 << 10, 0)};
    aco_t *all[MANY], *nested;
    work_t works[MANY];
    unsigned ended = 0, at = 1;
    memset(works, 0, sizeof works);
    for (unsigned i = 0; i < MANY; i++) {
        works[i].seed = i * UINT64_C(0x9e3779b97f4a7c15) + 1;
        works[i].yields = 3 + i * 5;
        all[i] = new_entry(stacks[i / 4 % 2], entry_of_kind(i % 4), &works[i]);
    }
    nested = aco_new(resumes_others, all, NULL);
    aco_resume(nested);
    aco_destroy(nested);
    while (ended < MANY) {
        ended = 0;
        for (unsigned i = 0; i < MANY; i++) {
            aco_t *co = all[at = at * 7 % 29 % MANY + (i == 0)];
            at = at % MANY;
            if (!co->is_end)
                aco_resume(co);
            if (!all[i]->is_end)
                aco_resume(all[i]);
            ended += (unsigned)all[i]->is_end;
        }
    }
    for (unsigned i = 0; i < MANY; i++)
        check_work(&works[i]);
    for (unsigned i = 0; i < MANY; i++) { /* again, as another kind */
        works[i].done = 0;
        aco_reset(all[i], entry_of_kind((i + 1) % 4), &works[i]);
        while (!all[i]->is_end)
            aco_resume(all[i]);
        check_work(&works[i]);
        aco_destroy(all[i]);
    }
    aco_share_stack_destroy(stacks[0]);
    aco_share_stack_destroy(stacks[1]);
}

/* The same with nobody saving registers on the resumer's side either. */
static ACO_SWITCHING __attribute__((noinline)) void resume_switching(aco_t *co)
{
    aco_resume(co);
}

static void called_by_one_that_saves_none(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    work_t w, inner;
    aco_t *co;
    memset(&w, 0, sizeof w);
    inner = w;
    w.seed = 5, inner.seed = 6;
    w.yields = 41, inner.yields = 40;
    co = new_entry(stack, ACO_ENTRY_POINT(yields_itself), &inner);
    COMPUTE(&w, resume_switching(co));
    check_work(&w);
    CHECK(co->is_end);
    check_work(&inner);
    aco_destroy(co);
    aco_share_stack_destroy(stack);
}

/* ---- How they end ---- */

static ACO_ENTRY void returns_at_once(void)
{
    my_work()->done++;
}

static ACO_ENTRY void returns_later(void)
{
    work_t *w = my_work();
    COMPUTE(w, aco_yield());
}

static aco_share_stack_t *shared;
static aco_t *the_one;
static work_t the_work;

static void run_to_the_end(void)
{
    for (int i = 0; i < 100; i++)
        aco_resume(the_one);
}

#ifndef _WIN32
static void says_last_word(void)
{
    char text[64];
    int n = snprintf(text, sizeof text, "last word %d %d %u\n", aco_get_co() == the_one, aco_get_arg() == &the_work,
                     the_work.done);
    if (write(STDERR_FILENO, text, (size_t)n) != n)
        abort();
}

static void run_with_last_word(void)
{
    aco_thread_init(says_last_word);
    run_to_the_end();
}
#endif

/* Promise: who returns comes to the last word, or to the default one. */
static void returning(void)
{
    shared = aco_share_stack_new(0);
    for (int later = 0; later < 2; later++) {
        memset(&the_work, 0, sizeof the_work);
        the_work.yields = 9;
        the_one =
            new_entry(shared, later ? ACO_ENTRY_POINT(returns_later) : ACO_ENTRY_POINT(returns_at_once), &the_work);
        ABORTS(run_to_the_end, "aco_exit", the_one, "its entry function returned without calling aco_exit()");
#ifndef _WIN32
        child_end_t end = child_run(run_with_last_word);
        CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
        CHECK(strcmp(end.text, "last word 1 1 1\n") == 0);
#endif
        aco_destroy(the_one);
    }
    aco_share_stack_destroy(shared);
}

static void note(void *letter)
{
    size_t length;
    work_t *w = my_work();
    memcpy(&length, &w->x, sizeof length);
    ((char *)&w->seed)[length++] = *(const char *)letter;
    memcpy(&w->x, &length, sizeof length);
}

/* seed: what was noted, sum behind it; x: its length. */
static ACO_ENTRY void defers(void)
{
    static char letters[] = "abc";
    uint64_t a = my_work()->yields, b = a * 3;
    CHECK_EQ(aco_defer(note, &letters[0]), 0);
    CHECK_EQ(aco_defer(note, &letters[1]), 0);
    aco_yield();
    CHECK(b == a * 3);
    CHECK_EQ(aco_defer(note, &letters[2]), 0);
    yield_below(3);
    CHECK(a == my_work()->yields && b == a * 3);
    aco_exit();
}

static void cleans(const char **letter)
{
    note((void *)(uintptr_t)*letter);
}

static ACO_ENTRY void has_cleanups(void)
{
    static char letters[] = "dxe";
    __attribute__((cleanup(cleans))) const char *first = &letters[0];
    CHECK_EQ(aco_defer(note, &letters[1]), 0);
    {
        __attribute__((cleanup(cleans))) const char *second = &letters[2];
        yield_below(2);
        CHECK(second == &letters[2]);
    }
    aco_yield();
    CHECK(first == &letters[0]);
    aco_exit();
}

/* Cancels after `resumes` of them; the letters noted must be these. */
static void cancelled_after(aco_cofuncp_t fp, int resumes, const char *noted)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    work_t w, other_work;
    aco_t *co, *other;
    memset(&w, 0, sizeof w);
    other_work = w;
    w.yields = 12345;
    other_work.yields = 10;
    co = new_entry(stack, fp, &w);
    other = new_entry(stack, ACO_ENTRY_POINT(yields_itself), &other_work);
    for (int i = 0; i < resumes; i++) {
        aco_resume(co);
        aco_resume(other); /* and so the frames are saved, and brought back to be unwound */
    }
    CHECK_EQ(aco_cancel(co), 0);
    CHECK(co->is_end && aco_result(co) == NULL);
    CHECK(strcmp((const char *)&w.seed, noted) == 0);
    while (!other->is_end)
        aco_resume(other);
    check_work(&other_work);
    aco_destroy(co);
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

/* Promise: aco_cancel() unwinds through them: deferred calls and cleanups run, the innermost first. */
static void cancelling(void)
{
    cancelled_after(ACO_ENTRY_POINT(defers), 0, "");
    cancelled_after(ACO_ENTRY_POINT(defers), 1, "ba");
    cancelled_after(ACO_ENTRY_POINT(defers), 2, "cba");
    cancelled_after(ACO_ENTRY_POINT(has_cleanups), 1, "xed"); /* deferred calls of a frame come before its cleanups */
    cancelled_after(ACO_ENTRY_POINT(has_cleanups), 2, "exd");
    cancelled_after(ACO_ENTRY_POINT(yields_itself), 3, "");
}

/* ---- In C++ ---- */

#ifdef __cplusplus
namespace {

struct letter_t {
    char letter;
    explicit letter_t(char l) : letter(l) {}
    letter_t(const letter_t &) = delete;
    letter_t &operator=(const letter_t &) = delete;
    ~letter_t() { note(&letter); }
};

struct oops_t {
    int number;
};

}

static __attribute__((noinline)) void throws_after_yield(int number)
{
    letter_t here('t');
    aco_yield();
    throw oops_t{number};
}

/* Exceptions inside, from below and of its own, before and after switches. */
static ACO_ENTRY void catches(void)
{
    letter_t first('1');
    uint64_t a = my_work()->yields, b = a * 7;
    for (int i = 0; i < 3; i++) {
        try {
            letter_t inner((char)('A' + i));
            if (i == 1)
                throw oops_t{i};
            throws_after_yield(i);
        } catch (const oops_t &oops) {
            my_work()->wrong += oops.number != i || b != a * 7;
        }
        aco_yield();
    }
    my_work()->wrong += b != a * 7;
    aco_exit();
}

/* Cancelled in a try block whose handler throws on. */
static ACO_ENTRY void passes_on(void)
{
    letter_t first('1');
    try {
        letter_t second('2');
        yield_below(3);
    } catch (...) {
        letter_t handling('h');
        throw;
    }
    aco_yield();
    aco_exit();
}

/* Promises: exceptions work inside; destructors run when it is cancelled; none of them when it exits. */
static void cpp(void)
{
    cancelled_after(ACO_ENTRY_POINT(catches), 0, "");
    cancelled_after(ACO_ENTRY_POINT(catches), 1, "tA1");
    cancelled_after(ACO_ENTRY_POINT(catches), 2, "tA1");
    cancelled_after(ACO_ENTRY_POINT(catches), 3, "tAB1");
    cancelled_after(ACO_ENTRY_POINT(catches), 4, "tABtC1");
    cancelled_after(ACO_ENTRY_POINT(catches), 5, "tABtC1");
    cancelled_after(ACO_ENTRY_POINT(passes_on), 1, "2h1");
    cancelled_after(ACO_ENTRY_POINT(passes_on), 2, "21");
    cancelled_after(ACO_ENTRY_POINT(catches), 6, "tABtC"); /* it has ended: aco_exit() unwinds nothing */
}
#endif

/* ---- What it is for ---- */

/* Each with a counter of its own, so that no two of them are made one. */
#define YIELDS(name, attribute)                                                                                        \
    static attribute void name(void)                                                                                   \
    {                                                                                                                  \
        static volatile unsigned count;                                                                                \
        for (;;) {                                                                                                     \
            aco_yield();                                                                                               \
            count++;                                                                                                   \
        }                                                                                                              \
    }
#define HOLDS(name, attribute)                                                                                         \
    static attribute void name(void)                                                                                   \
    {                                                                                                                  \
        static volatile unsigned count;                                                                                \
        volatile unsigned *p = (volatile unsigned *)aco_get_arg();                                                     \
        volatile uint64_t words[11];                                                                                   \
        for (unsigned i = 0; i < 11; i++)                                                                              \
            words[i] = i;                                                                                              \
        while (!*p) {                                                                                                  \
            aco_yield();                                                                                               \
            count++;                                                                                                   \
        }                                                                                                              \
        *p += (unsigned)words[3];                                                                                      \
        aco_exit();                                                                                                    \
    }
#define NOT_MARKED
YIELDS(only_yields, ACO_ENTRY)
YIELDS(only_yields_unmarked, NOT_MARKED)
HOLDS(holds_words, ACO_ENTRY)
HOLDS(holds_words_unmarked, NOT_MARKED)

static size_t bytes_copied(aco_cofuncp_t fp)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co, *other;
    unsigned ends = 0;
    size_t bytes;
    co = new_entry(stack, fp, &ends);
    other = new_entry(stack, fp, &ends);
    for (int i = 0; i < 3; i++) {
        aco_resume(co);
        aco_resume(other);
    }
    bytes = co->save_stack.max_cpsz;
    aco_destroy(co);
    aco_destroy(other);
    aco_share_stack_destroy(stack);
    return bytes;
}

/* Promise: 48 bytes less are copied, where the compiler knows how and the switch is inline (its clobbers make a
 * function save registers); 32 bytes less for a function too small to use the other two registers. On Windows 176 bytes
 * more, for rdi, rsi and xmm6-15. */
#ifdef _WIN32
enum { SAVED_TOO = 176 };
#else
enum { SAVED_TOO = 0 };
#endif
static void copies_less(void)
{
    size_t marked = bytes_copied(ACO_ENTRY_POINT(only_yields)), unmarked = bytes_copied(only_yields_unmarked);
    size_t marked_words = bytes_copied(ACO_ENTRY_POINT(holds_words)),
           unmarked_words = bytes_copied(holds_words_unmarked);
    printf("entry: %zu and %zu bytes copied, %zu and %zu with ACO_ENTRY%s\n", unmarked, unmarked_words, marked,
           marked_words, is_empty ? ", which is empty" : "");
    CHECK(marked <= unmarked);
    CHECK(marked_words <= unmarked_words);
    if (is_empty) {
        CHECK_EQ(marked, unmarked);
        CHECK_EQ(marked_words, unmarked_words);
    }
#if defined(__OPTIMIZE__) && !ACO_DEBUG && defined(__x86_64__) && !defined(ACO_CONFIG_NO_INLINE) &&                    \
    !defined(ACO_CONFIG_UCONTEXT)
    else {
        CHECK(unmarked - marked >= 32 + SAVED_TOO);
        CHECK_EQ(unmarked_words - marked_words, 48 + SAVED_TOO);
    }
#endif
#if defined(__x86_64__) && !defined(__ILP32__) && defined(__clang__) && !defined(__apple_build_version__)
    CHECK_EQ(is_empty, __clang_major__ < 19);
#elif defined(__x86_64__) && !defined(__ILP32__) && defined(__GNUC__)
    CHECK_EQ(is_empty, __GNUC__ < 14);
#else
    CHECK(is_empty);
#endif
}

/* ---- Prefetching ---- */

static void *volatile any_pointer;

static void prefetch_anything(void *p)
{
    const aco_t *co;
    any_pointer = p;
    co = (const aco_t *)any_pointer;
    errno = 42;
    aco_prefetch(co);
    CHECK_EQ(errno, 42);
    /* The compiler concludes nothing from the call, such as that it is not NULL. */
    CHECK(co == (const aco_t *)any_pointer);
    if (!p)
        CHECK(co == NULL);
}

static void prefetch_both(const aco_t *co)
{
    size_t sz = co->share_stack && co->share_stack->aco__private ? offsetof(aco_t, main_co) : sizeof *co;
    aco_t before;
    memcpy(&before, co, sz);
    prefetch_anything((void *)(uintptr_t)co);
    aco_prefetch_stack(co);
    CHECK_EQ(errno, 42);
    CHECK(memcmp(&before, co, sz) == 0);
}

static void *prefetches_itself(void *resumer)
{
    volatile uint64_t words[100];
    for (unsigned i = 0; i < 100; i++)
        words[i] = i;
    if (resumer) {
        CHECK_EQ(aco_state((aco_t *)resumer), ACO_STATE_RESUMING);
        prefetch_both((aco_t *)resumer);
    }
    prefetch_both(aco_get_co());
    aco_yield();
    prefetch_both(aco_get_co());
    for (unsigned i = 0; i < 100; i++)
        CHECK(words[i] == i);
    return NULL;
}

static void *prefetches_resumer(void *arg)
{
    aco_t *co = aco_new(prefetches_itself, aco_get_co(), NULL);
    aco_resume(co);
    aco_resume(co);
    CHECK(co->is_end);
    aco_destroy(co);
    return prefetches_itself(arg);
}

/* Promise: `co` may be anything; nothing happens to it. */
static void prefetching(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = (char *)mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *freed = malloc(200);
    uint64_t random = 88172645463325252u;
    aco_t *co, *task;
    prefetch_anything(NULL);
    prefetch_anything((void *)1);
    prefetch_anything((void *)64);
    prefetch_anything((void *)(UINTPTR_MAX - 400));
    prefetch_anything((void *)(UINTPTR_MAX / 2 + 1));
    mprotect(p + page, page, PROT_NONE);
    prefetch_anything(p + page - 64);
    prefetch_anything(p + page);
    prefetch_anything(p + 3 * page - 64);
    munmap(p, 3 * page);
    prefetch_anything(p);
    any_pointer = freed;
    free(freed);
    aco_prefetch((const aco_t *)any_pointer);
    for (int i = 0; i < 1000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        prefetch_anything((void *)((uintptr_t)random >> 10));
    }
    co = aco_new(prefetches_resumer, NULL, NULL);
    prefetch_both(co);
    aco_resume(co);
    prefetch_both(co);
    aco_resume(co);
    CHECK(co->is_end);
    prefetch_both(co);
    aco_destroy(co);
    any_pointer = co;
    aco_prefetch((const aco_t *)any_pointer);
    task = aco_spawn(prefetches_itself, NULL, NULL);
    prefetch_both(task);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    prefetch_both(main_co);
}

static __attribute__((noinline)) void hold(unsigned words)
{
    volatile unsigned *p = (volatile unsigned *)__builtin_alloca(words * sizeof *p);
    for (unsigned i = 0; i < words; i++)
        p[i] = i;
    aco_yield();
    for (unsigned i = 0; i < words; i++)
        CHECK(p[i] == i);
}

static void holds(void)
{
    static const unsigned words[] = {1, 20, 100, 320, 336, 352, 1000, 5000, 90000};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        hold(words[i]);
    aco_exit();
}

static void prefetching_of_saved_ones(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t options;
    aco_t *all[4];
    int ended = 0;
    memset(&options, 0, sizeof options);
    options.stack = stack;
    for (int i = 0; i < 4; i++) {
        all[i] = i == 3 ? aco_new(prefetches_resumer, NULL, &options) : new_entry(stack, holds, NULL);
        prefetch_both(all[i]);
    }
    while (ended < 4) {
        ended = 0;
        for (int i = 0; i < 4; i++) {
            if (!all[i]->is_end)
                aco_resume(all[i]);
            ended += all[i]->is_end;
            for (int j = 0; j < 4; j++)
                prefetch_both(all[j]);
        }
    }
    for (int i = 0; i < 4; i++)
        aco_destroy(all[i]);
    aco_share_stack_destroy(stack);
}

/* ---- States ---- */

/* Entry functions that hold nothing: a compiler may give them no frame, so that their stack pointer stays at the top of
 * the stack. */
static ACO_ENTRY void holds_nothing(void)
{
    aco_yield();
    aco_exit();
}

static __attribute__((noreturn)) void never_returns(void)
{
    aco_yield();
    aco_exit();
}

/* Promise: one that has yielded is suspended and not ready, with its frames on the stack and in the save area. */
static void states_without_frames(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co[] = {new_entry(stack, ACO_ENTRY_POINT(holds_nothing), NULL), new_entry(stack, never_returns, NULL)};
    for (int i = 0; i < 2; i++) {
        CHECK(aco_state(co[i]) == ACO_STATE_READY);
        aco_resume(co[i]);
        CHECK(aco_state(co[i]) == ACO_STATE_SUSPENDED);
    }
    CHECK(aco_state(co[0]) == ACO_STATE_SUSPENDED);
    for (int i = 0; i < 2; i++) {
        if (!co[i]->is_end)
            aco_resume(co[i]);
        CHECK(aco_state(co[i]) == ACO_STATE_DONE);
        aco_destroy(co[i]);
    }
    aco_share_stack_destroy(stack);
}

int main(void)
{
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    prefetching();
    if (COPYING) {
        prefetching_of_saved_ones();
        states_without_frames();
        values();
        called_by_one_that_saves_none();
        cancelling();
#ifdef __cplusplus
        cpp();
#endif
        copies_less();
        returning();
    }
    aco_destroy(main_co);
    return check_result("entry");
}
