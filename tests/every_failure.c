/* Every call of the library to the system, the C library's allocator and its threads is made to fail: the first, the
 * second, … until none is left, each with every errno of the table below, while a program uses all parts of the
 * library. A call that fails for that reason fails as documented, and works when it is tried again. libaco's calls, and
 * others that say so, may abort with their one line instead. Nothing else may happen. (Which message and what is left
 * over: alloc_failure.c, coroutine_failure.c, pool_failure.c and their like.)
 *
 * Linked with --wrap for what the system's table has not. Left out: pthread_mutex_lock(), pthread_mutex_unlock(),
 * pthread_once(), futex_wake() and gettid(), which cannot fail as they are used; map_shadow_stack(), which is called on
 * a processor with shadow stacks only (tests/hardening/check.py runs out of them on a model of one); and calls that
 * only compute. */
#include "replace.h" /* first */

#include "aco.h"
#include "aco/generator.h"
#include "aco/pool.h"
#include "aco/scheduler.h"
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>

/* ---- What fails ---- */

/* The function's number, name, and what it may say in errno; a 0 ends them. */
#define IN_TABLE(F)                                                                                                    \
    F(mmap, ENOMEM, EPERM, 0)                                                                                          \
    F(munmap, ENOMEM, 0, 0)                                                                                            \
    F(mprotect, ENOMEM, EACCES, 0)                                                                                     \
    F(madvise, EINVAL, ENOMEM, EAGAIN)                                                                                 \
    F(process_madvise, ENOSYS, EPERM, ENOMEM)                                                                          \
    F(mincore, ENOMEM, ENOSYS, 0)                                                                                      \
    F(open, ENOENT, EMFILE, EACCES)                                                                                    \
    F(read, EIO, EINTR, 0)                                                                                             \
    F(close, EIO, EINTR, 0)                                                                                            \
    F(getrlimit, EPERM, 0, 0)                                                                                          \
    F(sysconf, EINVAL, 0, 0)                                                                                           \
    F(uname, EFAULT, 0, 0)                                                                                             \
    F(write, EINTR, EBADF, ENOSPC)                                                                                     \
    F(sigaction, EINVAL, 0, 0)                                                                                         \
    F(sigaltstack, EPERM, ENOMEM, 0)                                                                                   \
    F(clock_gettime, EINVAL, EPERM, 0)                                                                                 \
    F(clock_nanosleep, EINTR, 0, 0)                                                                                    \
    F(futex_wait, EINTR, EAGAIN, ETIMEDOUT)
#define NOT_IN_TABLE(F)                                                                                                \
    F(malloc, ENOMEM, 0, 0)                                                                                            \
    F(pthread_key_create, EAGAIN, ENOMEM, 0)                                                                           \
    F(pthread_setspecific, ENOMEM, 0, 0)                                                                               \
    F(pthread_atfork, ENOMEM, 0, 0)
#define FUNCTIONS(F) IN_TABLE(F) NOT_IN_TABLE(F)

enum {
#define NUMBER(name, a, b, c) NUMBER_##name,
    FUNCTIONS(NUMBER) ALL
};
static const struct {
    const char *name;
    int errors[4];
} table[ALL] = {
#define ENTRY(name, a, b, c) {#name, {a, b, c, 0}},
    FUNCTIONS(ENTRY)};

static int calls[ALL];          /* atomic */
static int armed, injected;     /* atomic */
static int failing, fail_at, error; /* of the child */
static int mmap_fails;          /* from now on, besides */

static int fails(int which)
{
    if (!__atomic_load_n(&armed, __ATOMIC_RELAXED))
        return 0;
    if (__atomic_add_fetch(&calls[which], 1, __ATOMIC_RELAXED) != fail_at || which != failing)
        return 0;
    __atomic_store_n(&injected, 1, __ATOMIC_RELAXED);
    errno = error;
    return 1;
}

/* What the table has. */
#define FAILS_WITH_RESULT(type, name, parameters, arguments, failed)                                                   \
    FAILING(type, name, parameters, arguments, fails(NUMBER_##name), failed)
#define FAILS(type, name, parameters, arguments) FAILS_WITH_RESULT(type, name, parameters, arguments, -1)

REAL(mmap);
static void *failing_mmap(void *at, size_t sz, int protection, int flags)
{
    if (fails(NUMBER_mmap))
        return MAP_FAILED;
    if (mmap_fails) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return real_mmap(at, sz, protection, flags);
}

REAL(open);
static int failing_open(const char *path, int flags, ...) /* the library makes no files */
{
    return fails(NUMBER_open) ? -1 : real_open(path, flags);
}

FAILS(int, munmap, (void *at, size_t sz), (at, sz))
FAILS(int, mprotect, (void *at, size_t sz, int protection), (at, sz, protection))
FAILS(int, madvise, (void *at, size_t sz, int advice), (at, sz, advice))
FAILS(ssize_t, process_madvise, (int process, const struct iovec *parts, size_t count, int advice, unsigned flags),
      (process, parts, count, advice, flags))
FAILS(int, mincore, (void *at, size_t sz, void *resident), (at, sz, resident))
FAILS(ssize_t, read, (int file, void *to, size_t sz), (file, to, sz))
FAILS_WITH_RESULT(int, close, (int file), (file), (real_close(file), -1))
FAILS(int, getrlimit, (int resource, struct rlimit *limit), (resource, limit))
FAILS(long, sysconf, (int name), (name))
FAILS(int, uname, (struct utsname *names), (names))
FAILS(ssize_t, write, (int file, const void *text, size_t sz), (file, text, sz))
FAILS(int, sigaction, (int number, const struct sigaction *action, struct sigaction *old), (number, action, old))
FAILS(int, sigaltstack, (const void *wanted, void *old), (wanted, old))
FAILS(int, clock_gettime, (clockid_t which, struct timespec *now), (which, now))
FAILS_WITH_RESULT(int, clock_nanosleep,
                  (clockid_t which, int flags, const struct timespec *until, struct timespec *left),
                  (which, flags, until, left), error)

static int is_waiting; /* aco_run() has come to its wait for other threads. Atomic */
REAL(futex_wait);
static int failing_futex_wait(uint32_t *word, uint32_t value, int64_t until)
{
    __atomic_store_n(&is_waiting, 1, __ATOMIC_RELEASE);
    return fails(NUMBER_futex_wait) ? -1 : real_futex_wait(word, value, until);
}

/* What it has not. */
#define WRAP(type, name, parameters, arguments, failed)                                                                \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters { return fails(NUMBER_##name) ? (failed) : __real_##name arguments; }
WRAP(void *, malloc, (size_t sz), (sz), NULL)
WRAP(int, pthread_key_create, (pthread_key_t *key, void (*destructor)(void *)), (key, destructor), error)
WRAP(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value), error)

/* The library's call comes before main(). */
static const char atfork_fails[] = "EVERY_FAILURE_ATFORK";
int __real_pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    return getenv(atfork_fails) ? ENOMEM : __real_pthread_atfork(before, parent, child);
}

/* ---- A program that uses everything ---- */

/* A call that fails is made again, and then works. Only the injected failure may make it fail. */
#define ATTEMPT(result, failed, expression)                                                                            \
    do {                                                                                                               \
        int before = __atomic_load_n(&injected, __ATOMIC_RELAXED);                                                     \
        (result) = (expression);                                                                                       \
        if ((result) == (failed)) {                                                                                    \
            CHECK(!before && __atomic_load_n(&injected, __ATOMIC_RELAXED));                                            \
            CHECK(strstr(aco_error_message(), ": "));                                                                  \
            (result) = (expression);                                                                                   \
        }                                                                                                              \
        CHECK((result) != (failed));                                                                                   \
    } while (0)

static int called;

static void count_call(void *arg)
{
    (void)arg;
    called++;
}

static void *goes_deep(void *arg)
{
    volatile char bytes[40000];
    for (size_t i = 0; i < sizeof bytes; i += 512)
        bytes[i] = 1;
    return (void *)((uintptr_t)arg + (uintptr_t)bytes[512] - 1);
}

static void *works(void *arg)
{
    static aco_local_key_t key;
    int result;
    ATTEMPT(result, -1, aco_defer(count_call, arg));
    ATTEMPT(result, -1, aco_set_slot(NULL, arg));
    if (!key.generation)
        ATTEMPT(result, -1, aco_local_key_create(&key, count_call));
    ATTEMPT(result, -1, aco_set_local(key, arg));
    CHECK(goes_deep(arg) == arg);
    for (int i = 0; i < 3; i++)
        CHECK(aco_yield_value(arg) == arg);
    return arg;
}

static void use(const aco_options_t *options)
{
    aco_t *co;
    int result;
    ATTEMPT(co, NULL, aco_new(works, &called, options));
    CHECK(aco_send(co, NULL) == &called);
    if (!options || !options->stack) {
        CHECK(aco_stack_high_water(co) >= 0);
        CHECK_EQ(aco_stack_trim(co), 0);
    }
    ATTEMPT(result, -1, aco_set_name(co, "another"));
    CHECK(aco_send(co, &called) == &called);
    ATTEMPT(result, -1, aco_cancel(co));
    CHECK_EQ(aco_restart(co, goes_deep, &called), 0);
    CHECK(aco_send(co, NULL) == &called);
    aco_destroy(co);
}

static void yields_deep(void)
{
    volatile char bytes[5000];
    for (int i = 0; i < 3; i++) {
        bytes[i] = (char)i;
        aco_yield();
        CHECK_EQ(bytes[i], i);
    }
    aco_exit();
}

static void on_share_stacks(void)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL), *pair[2];
    aco_share_stack_t *stack = aco_share_stack_new2(100000, 1);
    aco_options_t options = {.stack = stack, .name = "shared"};
    for (int i = 0; i < 2; i++)
        pair[i] = aco_create(main_co, stack, i * 4000, yields_deep, NULL);
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 2; i++)
            aco_resume(pair[i]);
    for (int i = 0; i < 2; i++)
        aco_destroy(pair[i]);
    use(&options);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}

static void on_private_stacks(void)
{
    aco_options_t options = {.name = "named"};
    aco_pool_options_t pool_options = {.flags = ACO_POOL_MPROTECT};
    int result;
    use(NULL);
    use(&options);
    options.stack_size = 100000;
    options.flags = ACO_NO_GUARD;
    use(&options);
    options.stack_size = 20 << 20; /* not of a pool */
    use(&options);
    options.flags = 0;
    use(&options);
    options.stack_size = 0;
    for (int i = 0; i < 2; i++) {
        ATTEMPT(options.pool, NULL, aco_pool_new(&pool_options));
        use(&options);
        aco_pool_trim(options.pool);
        use(&options);
        ATTEMPT(result, -1, aco_pool_destroy(options.pool));
        pool_options.flags = ACO_POOL_LAZY;
    }
    aco_pool_trim(NULL);
    use(NULL);
}

ACO_GENERATOR(counts, y, arg)
{
    for (intptr_t i = 1; i <= (intptr_t)arg; i++)
        aco_generate(y, (void *)i);
}

static void generates(void)
{
    aco_generator_t g;
    int result;
    for (intptr_t stop = 2; stop < 5; stop++) {
        ATTEMPT(result, -1, aco_generator_open(&g, counts, (void *)3, NULL));
        for (intptr_t i = 1; i < stop && aco_generator_next(&g); i++)
            CHECK_EQ((intptr_t)g.value, i);
        aco_generator_close(&g);
    }
}

static void *task(void *channel)
{
    int result, element = 7;
    ATTEMPT(result, -1, aco_sleep(100000));
    ATTEMPT(result, -1, aco_channel_send(channel, &element));
    return channel;
}

static void runs_tasks(void)
{
    aco_channel_t *channel;
    aco_t *tasks[3];
    int result, element;
    ATTEMPT(channel, NULL, aco_channel_new(3, sizeof(int)));
    for (int i = 0; i < 3; i++)
        ATTEMPT(tasks[i], NULL, aco_spawn(task, channel, NULL));
    ATTEMPT(result, -1, aco_run());
    for (int i = 0; i < 3; i++) {
        void *value;
        CHECK(aco_channel_try_receive(channel, &element) == 0 && element == 7);
        CHECK(aco_join(tasks[i], &value) == 0 && value == channel);
    }
    CHECK_EQ(aco_channel_destroy(channel), 0);
    ATTEMPT(tasks[0], NULL, aco_spawn(task, NULL, NULL));
}

static void *parks(void *arg)
{
    CHECK_EQ(aco_park("another thread"), 0);
    return arg;
}

static void *unparks(void *task)
{
    while (!__atomic_load_n(&is_waiting, __ATOMIC_ACQUIRE))
        sched_yield();
    CHECK_EQ(aco_unpark(task), 0);
    return NULL;
}

/* A wait that ends early is no failure. */
static void waits_for_another(void)
{
    aco_scheduler_t *scheduler;
    pthread_t thread;
    aco_t *task;
    int result;
    is_waiting = 0;
    ATTEMPT(scheduler, NULL, aco_scheduler_open());
    ATTEMPT(task, NULL, aco_spawn(parks, NULL, NULL));
    CHECK_EQ(pthread_create(&thread, NULL, unparks, task), 0);
    if (failing == NUMBER_futex_wait)
        CHECK_EQ(aco_run(), 0);
    else
        ATTEMPT(result, -1, aco_run());
    pthread_join(thread, NULL);
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK_EQ(aco_scheduler_close(), 0);
}

static void measures(void)
{
    aco_stack_measure(1);
    use(NULL);
    aco_stack_measure(0);
}

static int ignore_line(const aco_stack_usage_t *usage, void *arg)
{
    (void)usage, (void)arg;
    return 0;
}

static void *everything(void *arg)
{
    int result;
    aco_thread_init(NULL);
    on_private_stacks();
    on_share_stacks();
    generates();
    ATTEMPT(result, -1, aco_explain_overflow());
    measures();
    aco_stack_usage(ignore_line, NULL);
    return arg;
}

/* A failure without memory: the library looks in /proc for the reason. */
static void *without_memory(void *arg)
{
    mmap_fails = 1;
    errno = 0;
    CHECK(!aco_new(works, NULL, NULL) && (errno == ENOMEM || errno == EAGAIN || (injected && errno == error)));
    CHECK(strstr(aco_error_message(), "no memory for "));
    mmap_fails = 0;
    use(NULL);
    return arg;
}

static void on_a_thread(void *(*fn)(void *))
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, fn, NULL), 0);
    pthread_join(thread, NULL);
}

static void *tasks_alone(void *arg)
{
    waits_for_another();
    runs_tasks();
    return arg;
}

enum { NOT_REACHED = 77 };

static void program(void)
{
    armed = 1;
    on_a_thread(without_memory);
    on_a_thread(everything);
    on_a_thread(everything); /* takes over what the first one left */
    on_a_thread(tasks_alone);
    everything(NULL);
    armed = 0;
    if (!injected && !check_failures)
        _exit(NOT_REACHED);
}

/* Only a call that aborts writes. */
static void aborts(void)
{
    armed = 1;
    aco_yield();
}

/* ---- The sweep ---- */

static void one(void (*act)(void))
{
    child_end_t end = child_run(act);
    int aborted = WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT && is_one_line(end.text) &&
                  strncmp(end.text, "acorn: ", 7) == 0;
    if ((WIFEXITED(end.status) && (WEXITSTATUS(end.status) == 0 || WEXITSTATUS(end.status) == NOT_REACHED)) || aborted)
        return;
    fprintf(stderr, "call %d of %s fails with errno %d:\n", fail_at, table[failing].name, error);
    child_complain(__FILE__, __LINE__, "the program", "to work, or to abort with its line", &end);
}

/* How often the program makes each call: it prints that. */
static void print_counts(void)
{
    injected = 1; /* to return */
    fail_at = -1;
    program();
    for (int i = 0; i < ALL; i++)
        fprintf(stderr, "%d ", calls[i]);
}

static void sweep(void)
{
    child_end_t end = child_run(print_counts);
    const char *p = end.text;
    int total = 0, injections = 0;
    CHECK(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0);
    for (failing = 0; failing < ALL; failing++) {
        char *next;
        int n = (int)strtol(p, &next, 10);
        p = next;
        if (n == 0 && failing != NUMBER_write && failing != NUMBER_pthread_atfork && failing != NUMBER_uname) {
            fprintf(stderr, "the program never calls %s\n", table[failing].name);
            CHECK(!"every call is made");
        }
        for (int e = 0; table[failing].errors[e]; e++) {
            error = table[failing].errors[e];
            for (fail_at = 1; fail_at <= n + 2 && check_failures < 10; fail_at++, injections++)
                one(program);
        }
        total += n;
    }
    printf("%d calls, %d failures injected\n", total, injections);
}

/* The line of an abort that cannot be written, or not at once. */
static void failing_to_write(void)
{
    failing = NUMBER_write;
    fail_at = 1;
    for (int e = 0; (error = table[failing].errors[e]) != 0; e++) {
        child_end_t end = child_run(aborts);
        CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
        CHECK(error == EINTR ? is_one_line(end.text) : !end.text[0]);
    }
}

static void failing_to_tell_of_fork(const char *path)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        setenv(atfork_fails, "1", 1);
        execl(path, path, "again", (char *)NULL);
        _exit(1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv)
{
#define REPLACE_ONE(name, a, b, c) REPLACE(name);
    IN_TABLE(REPLACE_ONE)
    if (argc > 1) { /* by failing_to_tell_of_fork() */
        fail_at = -1;
        injected = 1;
        program();
        PASSES(program);
        return check_failures != 0;
    }
    sweep();
    failing_to_write();
    failing_to_tell_of_fork(argv[0]);
    return check_result("every_failure");
}
