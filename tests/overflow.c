/* Overflows that explain themselves, by default and by aco_explain_overflow(), and what they leave to the program: its
 * handlers, its signal stacks. */
#define _GNU_SOURCE
#include "aco.h"
#include "aco/generator.h"
#include "aco/scheduler.h"
#include "child.h"

#include <pthread.h>
#include <stdint.h>

static aco_share_stack_t *share_stack;
static volatile char *volatile nowhere = (volatile char *)16;

/* `volatile` and the use after the call keep this a recursion. */
static __attribute__((noinline)) int recurse(volatile int *depth)
{
    volatile char bytes[100];
    int below = 0;
    bytes[0] = 1;
    if (++*depth < 10000000)
        below = recurse(depth);
    return below + bytes[0];
}

static void *overflow(void *unused)
{
    volatile int depth = 0;
    (void)unused;
    return (void *)(intptr_t)recurse(&depth);
}

static void run(const aco_options_t *options)
{
    CHECK_EQ(aco_explain_overflow(), 0);
    aco_send(aco_new(overflow, NULL, options), NULL);
}

static void in_private_stack(void)
{
    run(NULL);
}

static void in_named_one(void)
{
    aco_options_t options = {0};
    options.name = "parser";
    options.stack_size = 10000;
    run(&options);
}

static void in_share_stack(void)
{
    aco_options_t options = {0};
    options.stack = share_stack;
    run(&options);
}

static void in_task(void)
{
    CHECK_EQ(aco_explain_overflow(), 0);
    aco_spawn(overflow, NULL, NULL);
    aco_run();
}

static void *on_thread(void *unused)
{
    run(NULL);
    return unused;
}

static void in_another_thread(void)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, on_thread, NULL), 0);
    pthread_join(thread, NULL);
}

ACO_GENERATOR(overflowing, y, arg)
{
    aco_generate(y, arg);
    overflow(NULL);
}

static void in_generator(void)
{
    aco_generator_t g;
    CHECK_EQ(aco_explain_overflow(), 0);
    CHECK_EQ(aco_generator_open(&g, overflowing, NULL, NULL), 0);
    while (aco_generator_next(&g))
        continue;
}

static void not_an_overflow(void)
{
    CHECK_EQ(aco_explain_overflow(), 0);
    *nowhere = 1;
}

static void *write_nowhere(void *unused)
{
    *nowhere = 1;
    return unused;
}

static void not_an_overflow_in_a_coroutine(void)
{
    CHECK_EQ(aco_explain_overflow(), 0);
    aco_send(aco_new(write_nowhere, NULL, NULL), NULL);
}

static void own_handler(int signal)
{
    static const char text[] = "mine\n";
    CHECK(write(STDERR_FILENO, text, sizeof text - 1) > 0);
    _exit(signal == SIGSEGV ? 42 : 43);
}

static void install(void (*handler)(int), int flags)
{
    struct sigaction ours = {0};
    ours.sa_handler = handler;
    ours.sa_flags = flags;
    sigaction(SIGSEGV, &ours, NULL);
}

static int is_installed(void (*handler)(int))
{
    struct sigaction now;
    return sigaction(SIGSEGV, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == handler;
}

static void own_handler_before(void)
{
    install(own_handler, SA_ONSTACK);
    run(NULL);
}

static void own_handler_before_the_default(void)
{
    install(own_handler, SA_ONSTACK);
    aco_send(aco_new(overflow, NULL, NULL), NULL);
}

static void *nothing(void *arg)
{
    return arg;
}

static void *begin_thread(void *arg)
{
    aco_t *co = aco_new(nothing, NULL, NULL);
    aco_send(co, NULL);
    aco_destroy(co);
    return arg;
}

/* The default leaves alone: a handler that may need the thread's stack, an ignored signal, a handler that came later.
 * What a program installs later may call what it replaced. */
static void handlers_stay(void)
{
    pthread_t thread;
    install(own_handler, 0);
    begin_thread(NULL);
    CHECK(is_installed(own_handler));
    CHECK_EQ(pthread_create(&thread, NULL, begin_thread, NULL), 0);
    pthread_join(thread, NULL);
    CHECK(is_installed(own_handler));
    _exit(check_failures != 0);
}

static void ignored_stays_ignored(void)
{
    install(SIG_IGN, 0);
    begin_thread(NULL);
    CHECK(is_installed(SIG_IGN));
    _exit(check_failures != 0);
}

static void later_handler_stays(void)
{
    pthread_t thread;
    begin_thread(NULL);
    CHECK(!is_installed(SIG_DFL));
    install(own_handler, SA_ONSTACK);
    CHECK_EQ(pthread_create(&thread, NULL, begin_thread, NULL), 0);
    pthread_join(thread, NULL);
    CHECK(is_installed(own_handler));
    _exit(check_failures != 0);
}

/* A signal that was sent ends the process as without a handler. */
static void is_sent(void)
{
    CHECK_EQ(aco_explain_overflow(), 0);
    raise(SIGSEGV);
    _exit(0);
}

/* ---- Signal stacks ---- */

static pthread_key_t last_look;
static char own_signal_stack[256 << 10];
static int rounds;

/* Runs in two rounds of destructors; in the second one the library's has run. */
static void look_at_signal_stack(void *arg)
{
    stack_t now;
    if (rounds++ == 0) {
        pthread_setspecific(last_look, arg);
        return;
    }
    CHECK_EQ(sigaltstack(NULL, &now), 0);
    CHECK(now.ss_sp == own_signal_stack);
}

static void *change_signal_stack(void *arg)
{
    stack_t own = {0};
    own.ss_sp = own_signal_stack;
    own.ss_size = sizeof own_signal_stack;
    CHECK_EQ(pthread_setspecific(last_look, arg), 0);
    begin_thread(NULL);
    CHECK_EQ(sigaltstack(&own, NULL), 0);
    return arg;
}

static void signal_stack_stays(void)
{
    pthread_t thread;
    CHECK_EQ(pthread_key_create(&last_look, look_at_signal_stack), 0);
    CHECK_EQ(pthread_create(&thread, NULL, change_signal_stack, &rounds), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(rounds, 2);
    _exit(check_failures != 0);
}

static void end_thread(int signal)
{
    (void)signal;
    pthread_exit(NULL);
}

static void *end_on_signal_stack(void *arg)
{
    struct sigaction ours = {0};
    ours.sa_handler = end_thread;
    ours.sa_flags = SA_ONSTACK;
    begin_thread(NULL);
    sigaction(SIGUSR1, &ours, NULL);
    raise(SIGUSR1);
    return arg;
}

/* A thread that ends in a handler on the library's signal stack still needs it. */
static void thread_ends_in_handler(void)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, end_on_signal_stack, NULL), 0);
    pthread_join(thread, NULL);
    _exit(check_failures != 0);
}

static void twice(void)
{
    CHECK_EQ(aco_explain_overflow(), 0);
    run(NULL);
}

/* Without a call of aco_explain_overflow(): as the environment says. */
static void just_overflows(const char *environment)
{
    if (environment)
        setenv("ACO_EXPLAIN_OVERFLOW", environment, 1);
    aco_send(aco_new(overflow, NULL, NULL), NULL);
}

static void by_default(void)
{
    just_overflows(NULL);
}

static void by_environment(void)
{
    just_overflows("1");
}

static void not_by_environment(void)
{
    just_overflows("0");
}

/* A frame that steps over the guard page touches its far end first. */
static __attribute__((noinline)) int touch(volatile char *frame)
{
    frame[0] = 1;
    return frame[1];
}

static void *large_frame(void *unused)
{
    void *low, *high;
    (void)unused;
    aco_stack_bounds(aco_get_co(), &low, &high);
    return (void *)(intptr_t)touch((char *)low - (600 << 10));
}

static void steps_over_the_guard(void)
{
    aco_options_t options = {0};
    aco_t *co;
    void *low, *high, *at;
    options.stack_size = 16 << 20;
    CHECK_EQ(aco_explain_overflow(), 0);
    co = aco_new(large_frame, NULL, &options);
    CHECK_EQ(aco_stack_bounds(co, &low, &high), 0);
    at = mmap((char *)low - (640 << 10), 64 << 10, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(at != MAP_FAILED); /* whatever was there: this process ends */
    aco_send(co, NULL);
}

#if UNDER_ASAN
static struct sigaction asan; /* its handler, which child_run() has taken away */

static void before_asan(void)
{
    sigaction(SIGSEGV, &asan, NULL);
    run(NULL);
}

static void large_frame_before_asan(void)
{
    sigaction(SIGSEGV, &asan, NULL);
    steps_over_the_guard();
}

/* Acorn's line comes first, then the sanitizer's report. */
static void asan_reports(void (*act)(void), const char *line)
{
    child_end_t child = child_run(act);
    const char *end = strchr(child.text, '\n');
    CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 1);
    CHECK(strncmp(child.text, "acorn: overflow: coroutine 0x", 29) == 0);
    CHECK(end && strstr(child.text, line) && strstr(child.text, line) < end);
    CHECK(end && strstr(end, "ERROR: AddressSanitizer: ") != NULL);
}
#endif

/* The child dies of SIGSEGV. Its output begins with `begin` and ends with `end` (NULL: it writes nothing). */
static void dies(int line, void (*act)(void), const char *begin, const char *end)
{
    child_end_t child = child_run(act);
    size_t length = strlen(child.text);
    int right = WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGSEGV;
    if (begin)
        right = right && strncmp(child.text, begin, strlen(begin)) == 0 && length > strlen(end) &&
                strcmp(child.text + length - strlen(end), end) == 0 &&
                strchr(child.text, '\n') == child.text + length - 1;
    else
        right = right && length == 0;
    if (!right)
        child_complain(__FILE__, line, begin ? begin : "", end ? end : "nothing", &child);
}
#define DIES(act, begin, end) dies(__LINE__, act, begin, end)

static void calls_own_handler(void (*act)(void))
{
    child_end_t child = child_run(act);
    CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 42);
    CHECK(strncmp(child.text, "acorn: overflow: coroutine 0x", 29) == 0);
    CHECK(strlen(child.text) > 5 && strcmp(child.text + strlen(child.text) - 5, "mine\n") == 0);
}

int main(void)
{
    static const char more[] = " has overflowed: increase stack_size in aco_options_t\n";
    child_end_t child;
#if UNDER_ASAN
    aco_options_t on_share_stack = {0};
    sigaction(SIGSEGV, NULL, &asan);
    asan_reports(before_asan, " has overflowed: increase stack_size in aco_options_t\n");
    asan_reports(large_frame_before_asan, " has overflowed, probably by a large frame: address 0x");
#endif
    DIES(by_default, "acorn: overflow: coroutine 0x", more);
    DIES(by_environment, "acorn: overflow: coroutine 0x", more);
    DIES(not_by_environment, NULL, NULL);
    calls_own_handler(own_handler_before_the_default); /* the default is decided once: this process has yet to begin */
    PASSES(handlers_stay);
    PASSES(ignored_stays_ignored);
    PASSES(later_handler_stays);
    if (!UNDER_ASAN) /* it unmaps whatever signal stack a thread has at its end */
        PASSES(signal_stack_stays);
    PASSES(thread_ends_in_handler);
    DIES(steps_over_the_guard, "acorn: overflow: coroutine 0x", ": increase stack_size in aco_options_t\n");
    child = child_run(steps_over_the_guard);
    CHECK(strstr(child.text, " has overflowed, probably by a large frame: address 0x") != NULL);
    CHECK(strstr(child.text, " is 614400 bytes below it: ") != NULL);
    DIES(in_private_stack, "acorn: overflow: coroutine 0x", more);
    DIES(in_named_one, "acorn: overflow: coroutine 0x", more);
    child = child_run(in_named_one);
    CHECK(strstr(child.text, ": \"parser\": its private stack of 16384 bytes (0x") != NULL);
    share_stack = aco_share_stack_new(0);
#if UNDER_ASAN /* which says once that it does without share stacks */
    on_share_stack.stack = share_stack;
    aco_destroy(aco_new(overflow, NULL, &on_share_stack));
#endif
    DIES(in_share_stack, "acorn: overflow: coroutine 0x",
         " has overflowed: pass a larger size to aco_share_stack_new()\n");
    DIES(in_task, "acorn: overflow: coroutine 0x", more);
    DIES(in_another_thread, "acorn: overflow: coroutine 0x", more);
    DIES(in_generator, "acorn: overflow: its generator's private stack of ", more);
    DIES(twice, "acorn: overflow: coroutine 0x", more);
    DIES(not_an_overflow, NULL, NULL);
    DIES(not_an_overflow_in_a_coroutine, NULL, NULL);
    calls_own_handler(own_handler_before);
    DIES(is_sent, NULL, NULL);
    aco_share_stack_destroy(share_stack);
    return check_result("overflow");
}
