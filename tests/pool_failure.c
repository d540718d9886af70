/* Pools on a failing system: every request of mmap, munmap, madvise and mprotect fails once, and from there on for
 * ever: the first, the second, … until none is left. A coroutine is made and works, or the result
 * is NULL with ENOMEM or EAGAIN; nothing leaks. With the argument "room": what fails at RLIMIT_AS and at
 * RLIMIT_DATA. */
#include "replace.h" /* first */

#include "aco/pool.h"
#include "child.h"
#include "fails.h"

#include <sys/mman.h>

/* ---- The failing system ---- */

enum { MMAP = 1, MUNMAP = 2, MADVISE = 4, MPROTECT = 8 };

static unsigned failing;              /* which calls: or'ed */
static unsigned long calls, fail_at;  /* of those; 0: none fails */
static int for_ever, injected;
static long mapped, most_mapped;      /* bytes; 0: no limit */

static int refused(unsigned which)
{
    if (!(failing & which) || !fail_at)
        return 0;
    calls++;
    if (for_ever ? calls < fail_at : calls != fail_at)
        return 0;
    injected = 1;
    errno = which == MADVISE ? EINVAL : ENOMEM;
    return 1;
}

REAL(mmap);
static void *failing_mmap(void *at, size_t sz, int protection, int flags)
{
    int is_over = most_mapped && mapped + (long)sz > most_mapped;
    void *p = refused(MMAP) || is_over ? MAP_FAILED : real_mmap(at, sz, protection, flags);
    if (is_over)
        errno = ENOMEM;
    mapped += p == MAP_FAILED ? 0 : (long)sz;
    return p;
}

REAL(munmap);
static int failing_munmap(void *at, size_t sz)
{
    int result = refused(MUNMAP) ? -1 : real_munmap(at, sz);
    mapped -= result ? 0 : (long)sz;
    return result;
}

FAILING(int, mprotect, (void *at, size_t sz, int protection), (at, sz, protection), refused(MPROTECT), -1)
FAILING(int, madvise, (void *at, size_t sz, int advice), (at, sz, advice), refused(MADVISE), -1)

#ifdef __linux__
FAILING(ssize_t, process_madvise, (int process, const struct iovec *parts, size_t count, int advice, unsigned flags),
        (process, parts, count, advice, flags), refused(MADVISE), -1)
#endif

static void replace_system(void)
{
    REPLACE(mmap);
    REPLACE(munmap);
    REPLACE(mprotect);
    REPLACE(madvise);
#ifdef __linux__
    REPLACE(process_madvise);
#endif
}

/* ---- What is attempted ---- */

enum { EACH = 5 };

static void check_refusal(int line)
{
    int error = errno;
    if (injected && (error == ENOMEM || error == EAGAIN || error == EINVAL) &&
        strncmp(aco_error_message(), "aco_new: no memory for ", 23) == 0)
        return;
    fprintf(stderr, "%s:%d: call %lu: errno %d, \"%s\"\n", __FILE__, line, fail_at, error, aco_error_message());
    CHECK(!"the refusal");
}

/* Uses 20 KiB of stack, of which it then needs little. */
static __attribute__((noinline)) int goes_deep(int seed)
{
    volatile char bytes[20000];
    int sum = 0;
    for (size_t i = 0; i < sizeof bytes; i += 100)
        bytes[i] = (char)seed;
    for (size_t i = 0; i < sizeof bytes; i += 100)
        sum += bytes[i] == (char)seed;
    return sum;
}

static void *works(void *arg)
{
    volatile int held[50];
    int sum = 0;
    for (int i = 0; i < 50; i++)
        held[i] = i;
    sum += goes_deep(1) == 200;
    aco_yield();
    for (int i = 0; i < 50; i++)
        sum += held[i] == i;
    sum += goes_deep(2) == 200;
    aco_yield_value(arg);
    for (int i = 0; i < 50; i++)
        sum += held[i] == i;
    return sum == 102 ? arg : NULL;
}

/* One that is NULL is attempted again: this must work where the failure was the only one. */
static aco_t *make(const aco_options_t *how)
{
    aco_t *co = aco_new(works, &calls, how);
    if (!co) {
        check_refusal(__LINE__);
        co = aco_new(works, &calls, how);
        CHECK(co || for_ever);
    }
    return co;
}

static void use_and_destroy(aco_t *co, int step)
{
    if (!co)
        return;
    if (step) {
        CHECK(aco_send(co, NULL) == NULL);
        CHECK_EQ(aco_stack_trim(co), 0);
    }
    if (step > 1)
        CHECK(aco_send(co, NULL) == &calls);
    if (step > 2) {
        CHECK(aco_send(co, NULL) == &calls);
        CHECK_EQ(co->is_end, 1);
    }
    aco_destroy(co);
}

static void check_all_given_back(aco_pool_t *pool)
{
    aco_pool_stats_t s;
    CHECK_EQ(aco_pool_stats(pool, &s), 0);
    CHECK_EQ(s.in_use, 0);
    aco_pool_trim(pool);
    CHECK_EQ(aco_pool_stats(pool, &s), 0);
    CHECK_EQ(s.idle + s.empty + s.canaries + s.regions + s.reserved, 0);
}

static void attempt(const aco_options_t *how)
{
    aco_t *co[EACH];
    for (int i = 0; i < EACH; i++)
        co[i] = make(how);
    for (int i = 0; i < EACH; i++)
        use_and_destroy(co[i], i);
    aco_pool_trim(how ? how->pool : NULL);
    use_and_destroy(make(how), 3);
}

static void attempt_pool(const aco_pool_options_t *o)
{
    aco_pool_t *pool = aco_pool_new(o);
    aco_options_t how = {0};
    CHECK(pool != NULL);
    how.pool = pool;
    for (how.stack_size = 32 << 10; how.stack_size <= 64 << 10; how.stack_size *= 2)
        attempt(&how);
    check_all_given_back(pool);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

/* Each part has children of its own: what one costs does not count for the failures in another. */
enum { POOLS = 6, OTHERS = 5, PARTS = POOLS + OTHERS + 1 };
static int part;

static void attempt_part(void)
{
    static const aco_pool_options_t pools[POOLS] = {
        {.idle_stacks = 2},
        {.flags = ACO_POOL_MPROTECT, .idle_stacks = 1, .region_size = 128 << 10},
        {.flags = ACO_POOL_CANARIES | ACO_POOL_LAZY, .idle_stacks = 1},
        {.flags = ACO_POOL_MUST_GUARD},
        {.flags = ACO_POOL_MUST_GUARD | ACO_POOL_MPROTECT | ACO_POOL_LAZY},
        {.region_size = 1, .idle_ms = 1}};
    static const aco_options_t others[OTHERS] = {{0}, {.stack_size = 100000}, {.stack_size = (8 << 20) + 1},
                                                 {.flags = ACO_NO_GUARD}, {.name = "named", .stack_size = 32768}};
    if (part < POOLS)
        attempt_pool(&pools[part]);
    else
        attempt(part < POOLS + OTHERS ? &others[part - POOLS] : NULL);
    aco_pool_trim(NULL); /* what the thread keeps */
    check_all_given_back(NULL);
}

/* ---- Every failure ---- */

enum { NOTHING_FAILED = 77 };
static long *clean; /* by part: bytes mapped after all this where nothing fails; shared with the children */

static void without_failure(void)
{
    attempt_part();
    attempt_part();
    clean[part] = mapped;
}

static void with_failure(void)
{
    attempt_part();
    if (!injected && !check_failures)
        _exit(NOTHING_FAILED);
    fail_at = 0;
    for_ever = 0;
    attempt_part(); /* all is well again */
    if (!(failing & MUNMAP))
        CHECK_EQ(mapped, clean[part]);
}

/* Returns how many calls there were to fail. */
static unsigned long each_fails(unsigned which, int for_ever_)
{
    unsigned long n;
    failing = which;
    for_ever = for_ever_;
    for (n = 1; n < 2000; n++) {
        child_end_t end;
        fail_at = n;
        end = child_run(with_failure);
        if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == NOTHING_FAILED)
            break;
        if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != 0 || end.text[0]) {
            char wanted[80];
            snprintf(wanted, sizeof wanted, "all well when call %lu of kind %u fails in part %d", n, which, part);
            child_complain(__FILE__, __LINE__, for_ever ? "for ever" : "once", wanted, &end);
        }
    }
    failing = 0;
    fail_at = 0;
    for_ever = 0;
    return n - 1;
}

/* Promise: whichever request fails, the coroutine is made and works, or the call fails with a message. All stacks come
 * back, and so does all memory, unless giving it back is what fails. */
static void every_failure(void)
{
    static const struct {
        unsigned which;
        unsigned long least;
    } kinds[] = {{MMAP, 20}, {MUNMAP, 15}, {MADVISE, 40}, {MPROTECT, 8}, {MADVISE | MPROTECT, 50}};
    clean = mmap(NULL, PARTS * sizeof *clean, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mapped = 0;
    for (part = 0; part < PARTS; part++)
        PASSES(without_failure);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int ever = 0; ever < 2; ever++) {
            unsigned long n = 0;
            for (part = 0; part < PARTS; part++)
                n += each_fails(kinds[i].which, ever);
            CHECK(n >= kinds[i].least);
        }
    munmap(clean, PARTS * sizeof *clean);
}

/* ---- What a failure leads to ---- */

static void fail_all(unsigned which)
{
    failing = which;
    fail_at = 1;
    for_ever = 1;
}

static aco_t *new_in(aco_pool_t *pool)
{
    aco_options_t how = {0};
    how.pool = pool;
    how.stack_size = 64 << 10;
    return aco_new(works, &calls, &how);
}

static aco_pool_stats_t stats(aco_pool_t *pool)
{
    aco_pool_stats_t s;
    CHECK_EQ(aco_pool_stats(pool, &s), 0);
    return s;
}

#if !SANITIZED /* a sanitizer's coroutines are not kept */
/* Promise: what the thread keeps for later is given back before a call fails. */
static void kept_are_given_back(void)
{
    enum { MANY = 1000 };
    static aco_t *coroutines[MANY];
    const aco_options_t large = {.stack_size = 1 << 20};
    aco_t *co;
    for (int i = 0; i < MANY; i++)
        CHECK((coroutines[i] = aco_new(works, &calls, NULL)) != NULL);
    for (int i = 0; i < MANY; i++)
        aco_destroy(coroutines[i]);
    CHECK(stats(NULL).in_use > MANY / 2);
    most_mapped = mapped;
    co = aco_new(works, &calls, &large);
    CHECK(co != NULL);
    use_and_destroy(co, 3);
    most_mapped = 0;
    aco_pool_trim(NULL);
    check_all_given_back(NULL);
}
#endif

/* Promise: without guards in the kernel's tables the pool uses mappings; where these fail too, canaries.
 * ACO_POOL_MUST_GUARD fails then, and has its guard as soon as one can be made. */
static void no_guards(void)
{
    aco_pool_options_t must_guard = {.flags = ACO_POOL_MUST_GUARD};
    aco_pool_t *pool = aco_pool_new(NULL), *strict = aco_pool_new(&must_guard);
    aco_t *co[3];
    fail_all(MADVISE);
    co[0] = new_in(pool);
    CHECK_EQ(co[0]->share_stack->guard_page_enabled, 1);
    CHECK_EQ(stats(pool).canaries, 0);
    fail_all(MADVISE | MPROTECT);
    co[1] = new_in(pool);
    CHECK_EQ(co[1]->share_stack->guard_page_enabled, 0);
    CHECK_EQ(stats(pool).canaries, 1);
    for (int i = 0; i < 3; i++) {
        CHECK(new_in(strict) == NULL);
        CHECK_EQ(errno, ENOMEM); /* mprotect()'s: the process is far from its limits */
        CHECK_EQ(stats(strict).in_use, 0);
    }
    failing = 0;
    co[2] = new_in(strict);
    CHECK_EQ(co[2]->share_stack->guard_page_enabled, 1);
    CHECK_EQ(stats(strict).canaries, 0);
    for (int i = 0; i < 3; i++)
        use_and_destroy(co[i], 3);
    CHECK_EQ(aco_pool_destroy(pool), 0);
    CHECK_EQ(aco_pool_destroy(strict), 0);
}

static aco_t *victim;

static void destroy_overflown(void)
{
    ((volatile char *)victim->share_stack->ptr)[-1] = 1;
    aco_destroy(victim);
}

static void end_overflown(void)
{
    ((volatile char *)victim->share_stack->ptr)[-1] = 1;
    aco_send(victim, NULL);
    aco_send(victim, NULL);
    aco_send(victim, NULL);
}

/* Promise: canaries are compared in the default pool's stacks too, of the size that threads keep. */
static void ordinary_canaries(void)
{
    fail_all(MADVISE | MPROTECT);
    victim = aco_new(works, &calls, NULL);
    failing = 0;
    CHECK_EQ(victim->share_stack->guard_page_enabled, 0);
    ABORTS(end_overflown, "aco_exit", victim, "has overflowed");
    ABORTS(destroy_overflown, "aco_destroy", victim, "has overflowed"); /* new */
    use_and_destroy(victim, 3);
    aco_pool_trim(NULL);
}

/* ---- RLIMIT_AS and RLIMIT_DATA ---- */

#if SHARE_STACKS && defined(__linux__)
/* Bytes of /proc/self/statm, in which the address space is word 0, and data is word 5. */
static rlim_t in_use(int word)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    while (word-- >= 0)
        CHECK_EQ(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int next_descriptor(void)
{
    int fd = dup(STDERR_FILENO);
    close(fd);
    return fd;
}

/* So many mappings: not as many as the kernel allows. */
static void map_pages(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, n * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; i < n; i += 2)
        CHECK_EQ(mprotect(p + i * page, page, PROT_READ), 0);
}

/* Promise: where there is no room for a large region a small one will do; the message of a failure names the limit, and
 * all goes on, in a process of many mappings and without standard input, too. */
static void little_room_for(int resource, int word, const char *name)
{
    enum { MOST = 100, ROOM = 3 << 20 };
    aco_pool_t *pool = aco_pool_new(NULL);
    aco_t *co[MOST], *before = new_in(NULL);
    struct rlimit limit;
    int made = 0, descriptor;
    close(STDIN_FILENO);
    descriptor = next_descriptor();
    map_pages(4000);
    CHECK(aco_send(NULL, NULL) == ACO_ERROR); /* the thread has memory for messages */
    CHECK_EQ(getrlimit(resource, &limit), 0);
    limit.rlim_cur = in_use(word) + ROOM;
    CHECK_EQ(setrlimit(resource, &limit), 0);
    while (made < MOST && (co[made] = new_in(pool)) != NULL)
        made++;
    CHECK(made >= 20 && made < MOST);
    CHECK_EQ(errno, ENOMEM);
    CHECK(strncmp(aco_error_message(), "aco_new: ", 9) == 0 && strstr(aco_error_message(), name));
    CHECK_EQ(next_descriptor(), descriptor);
    CHECK(stats(pool).reserved <= ROOM + (256 << 10)); /* statm counts the process's stack as data */
    CHECK_EQ(stats(pool).in_use, made);
    use_and_destroy(before, 2);
    use_and_destroy(co[--made], 3);
    co[made] = new_in(pool);
    CHECK(co[made] != NULL);
    for (int i = 0; i <= made; i++)
        use_and_destroy(co[i], i % 4);
    CHECK_EQ(stats(pool).in_use, 0);
    CHECK((int)aco_pool_trim(pool) == made + 1);
    CHECK_EQ(stats(pool).reserved, 0);
    use_and_destroy(new_in(pool), 3);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

static void little_address_space(void)
{
    little_room_for(RLIMIT_AS, 0, "RLIMIT_AS");
}

static void little_data(void)
{
    little_room_for(RLIMIT_DATA, 5, "RLIMIT_DATA");
}
#endif

int main(int argc, char **argv)
{
    replace_system();
#if SHARE_STACKS && defined(__linux__)
    if (argc > 1 && strcmp(argv[1], "room") == 0) {
        PASSES(little_address_space);
        PASSES(little_data);
        return check_result("pool_failure room");
    }
#else
    (void)argc, (void)argv;
#endif
    every_failure(); /* first: a process without memory of the library's */
    PASSES(no_guards);
#if !SANITIZED
    PASSES(kept_are_given_back);
#endif
    ordinary_canaries();
    return check_result("pool_failure");
}
