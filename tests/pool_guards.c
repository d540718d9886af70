/* Promises about guards and canaries below the stacks of a pool (include/aco/pool.h).
 *
 * pool_guards mappings: more guards than the process can have mappings. */
#define _GNU_SOURCE
#include "pools.h"
#include "proc.h"

static unsigned guard_flags;
static int guard_reuses;
static aco_t *victim, *bystander;
static aco_pool_t *guard_pool;

static __attribute__((noinline)) int recurse(volatile int *depth)
{
    volatile char bytes[100];
    int below = 0;
    bytes[0] = 1;
    if (++*depth < 100000000)
        below = recurse(depth);
    return below + bytes[0];
}

static void *overflows(void *unused)
{
    volatile int depth = 0;
    (void)unused;
    return (void *)(intptr_t)recurse(&depth);
}

/* Runs in a child. */
static void overflow_guarded(void)
{
    aco_pool_t *pool = pool_with(guard_flags, 0, NEVER);
    aco_t *stays = new_in(pool, USED_SIZE, yields, NULL),
          *co = new_in(pool, USED_SIZE, goes_deep, (void *)(uintptr_t)(USED_SIZE / 2));
    char *lo = low(co);
    aco_send(stays, NULL);
    if (guard_reuses) {
        aco_send(co, NULL);
        aco_destroy(co);
        CHECK_EQ(aco_pool_trim(pool), 1);
        co = new_in(pool, USED_SIZE, overflows, NULL);
        CHECK(low(co) == lo);
    } else {
        aco_destroy(co);
        co = new_in(pool, USED_SIZE, overflows, NULL);
    }
    CHECK_EQ(aco_explain_overflow(), 0);
    if (check_failures == 0)
        aco_send(co, NULL);
}

static void dies_explained(int line, void (*act)(void))
{
    static const char more[] = " has overflowed: increase stack_size in aco_options_t\n";
    child_end_t end = child_run(act);
    size_t length = strlen(end.text);
    if (!WIFSIGNALED(end.status) || WTERMSIG(end.status) != SIGSEGV ||
        strncmp(end.text, "acorn: overflow: coroutine 0x", 29) != 0 || length < sizeof more ||
        strcmp(end.text + length - sizeof more + 1, more) != 0 || !is_one_line(end.text))
        child_complain(__FILE__, line, "overflow", "SIGSEGV, explained", &end);
}

static void write_below(void)
{
    ((volatile char *)low(victim))[-1] = 1;
}

static void write_guards_end(void)
{
    ((volatile char *)low(victim))[-(long)page] = 1;
}

/* Promise: with guards of either kind an overflow is an explained SIGSEGV, on a new stack and on one that was reclaimed
 * and used again; also in a child process of the one that made the stack. */
static void guards(void)
{
    static const unsigned flags[] = {0, ACO_POOL_MPROTECT, ACO_POOL_LAZY, ACO_POOL_MPROTECT | ACO_POOL_LAZY,
                                     ACO_POOL_MUST_GUARD};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        guard_flags = flags[i];
        for (guard_reuses = 0; guard_reuses < 2; guard_reuses++)
            dies_explained(__LINE__, overflow_guarded);
        guard_pool = pool_with(flags[i], 0, 0);
        victim = new_in(guard_pool, SMALL, yields, NULL);
        DIES_OF(write_below, SIGSEGV);
        DIES_OF(write_guards_end, SIGSEGV);
        aco_destroy(victim);
        CHECK_EQ(aco_pool_destroy(guard_pool), 0);
    }
}

static void end_victim(void)
{
    write_below();
    aco_send(victim, NULL);
}

static void destroy_victim(void)
{
    ((volatile char *)low(victim))[-64] = 1; /* the lowest one that is compared */
    aco_destroy(victim);
}

static void destroy_bystander(void)
{
    write_below();
    aco_send(bystander, NULL);
    aco_destroy(bystander);
    _exit(check_failures != 0);
}

/* Overflows by frames, into the canary and a little further. */
static __attribute__((noinline)) int sink(const char *end)
{
    volatile char bytes[512];
    int below = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 1;
    if ((const char *)__builtin_frame_address(0) > end)
        below = sink(end);
    return below + bytes[0];
}

static void *sinks(void *unused)
{
    sink(low(aco_co()) - 200);
#if ACO_DEBUG
    aco_yield();
    _exit(0); /* the yield should have seen it */
#endif
    return unused;
}

static void sink_victim(void)
{
    CHECK_EQ(aco_restart(victim, sinks, NULL), 0);
    aco_send(victim, NULL);
}

/* Promise: with canaries an overflow aborts when the coroutine ends, when it is destroyed and, in a debug build, at the
 * next yield; others notice nothing. */
static void canaries(void)
{
    guard_pool = pool_with(ACO_POOL_CANARIES, 0, NEVER);
    bystander = new_in(guard_pool, SMALL * 4, yields_once, NULL);
    for (int is_reused = 0; is_reused < 2; is_reused++) {
        victim = new_in(guard_pool, SMALL * 4, yields_once, NULL);
        CHECK_EQ(stats(guard_pool).canaries, 2);
        ABORTS(destroy_victim, "aco_destroy", victim, "has overflowed"); /* new: no warning that it is suspended */
        if (!SANITIZED)
            ABORTS(sink_victim, ACO_DEBUG ? "aco_yield" : "aco_exit", victim, "no guard page");
        aco_send(victim, NULL);
        ABORTS(end_victim, "aco_exit", victim, "has overflowed");
        PASSES(destroy_bystander);
        aco_send(victim, NULL);
        CHECK(victim->is_end);
        ABORTS(destroy_victim, "aco_destroy", victim, "has overflowed");
        aco_destroy(victim);
        CHECK_EQ(aco_pool_trim(guard_pool), 1);
    }
    aco_destroy(bystander);
    CHECK_EQ(aco_pool_destroy(guard_pool), 0);
}

/* In a child: more stacks with guards that are mappings than the process can have mappings for. */
enum { RELEASE64 = !ACO_DEBUG && sizeof(void *) > 4 && !SANITIZED };
static size_t guards_wanted;

static void beyond_the_budget(void)
{
    aco_pool_t *pool = pool_with(ACO_POOL_MPROTECT, SIZE_MAX, NEVER), *other;
    aco_t **co = malloc(guards_wanted * sizeof *co);
    for (size_t i = 0; i < guards_wanted; i++)
        co[i] = new_in(pool, SMALL, yields, &co[i]);
    COUNTS(pool, guards_wanted, 0, 0);
    CHECK(stats(pool).canaries > 0 && stats(pool).canaries < guards_wanted);
    CHECK_EQ(co[0]->share_stack->guard_page_enabled, 1);
    CHECK_EQ(co[guards_wanted - 1]->share_stack->guard_page_enabled, 0);
    CHECK(mappings() < mapping_limit());
    other = pool_with(0, 0, 0); /* the kernel's tables have room, where they have any */
    victim = new_in(other, SMALL, yields, other);
    CHECK(aco_send(victim, NULL) == other);
    CHECK_EQ(victim->share_stack->guard_page_enabled, kernel_guards_in_tables());
    aco_destroy(victim);
    for (size_t i = 0; i < guards_wanted; i += i < guards_wanted - 100 ? 37 : 1)
        CHECK(aco_send(co[i], NULL) == &co[i]);
    for (size_t i = 0; i < guards_wanted; i++)
        aco_destroy(co[i]);
    CHECK_EQ(aco_pool_trim(pool), guards_wanted);
    COUNTS(pool, 0, 0, 0);
    CHECK_EQ(stats(pool).canaries, 0);
    victim = new_in(pool, SMALL, yields, other); /* the budget is there again */
    CHECK_EQ(victim->share_stack->guard_page_enabled, 1);
    aco_destroy(victim);
    CHECK_EQ(aco_pool_destroy(pool), 0);
    CHECK_EQ(aco_pool_destroy(other), 0);
    free(co);
}

static void beyond_the_limit(void)
{
    aco_pool_t *pool = pool_with(ACO_POOL_MPROTECT | ACO_POOL_MUST_GUARD, SIZE_MAX, NEVER);
    aco_options_t how = {.pool = pool, .stack_size = SMALL};
    aco_t **co = malloc(guards_wanted * sizeof *co), *plain = aco_new(yields, co, NULL);
    size_t made;
    for (made = 0; made < guards_wanted && (co[made] = aco_new(yields, &co[made], &how)) != NULL; made++)
        ;
    CHECK(made > guards_wanted / 2 && made < guards_wanted);
    for (int i = 0; i < 3; i++) {
        FAILS(aco_new(yields, NULL, &how), NULL, EAGAIN, "aco_new", NULL, "vm.max_map_count");
        CHECK_EQ(stats(pool).in_use, made);
    }
    for (size_t i = 0; i < made; i += i < made - 100 ? 37 : 1) {
        CHECK_EQ(co[i]->share_stack->guard_page_enabled, 1);
        CHECK(aco_send(co[i], NULL) == &co[i]);
    }
    CHECK(aco_send(plain, NULL) == co);
    aco_destroy(co[made - 1]);
    co[made - 1] = new_in(pool, SMALL, yields, &co[made - 1]);
    CHECK_EQ(co[made - 1]->share_stack->guard_page_enabled, 1);
    for (size_t i = 0; i < made; i++)
        aco_destroy(co[i]);
    CHECK_EQ(aco_pool_trim(pool), made);
    COUNTS(pool, 0, 0, 0);
    co[0] = new_in(pool, SMALL, yields, co);
    CHECK(aco_send(co[0], NULL) == co);
    aco_destroy(co[0]);
    aco_destroy(plain);
    CHECK_EQ(aco_pool_destroy(pool), 0);
    free(co);
}

/* Promise: beyond what vm.max_map_count allows, a pool goes on with canaries; with ACO_POOL_MUST_GUARD it fails, the
 * message names the setting, and nothing is lost. */
static int many_guards(void)
{
    size_t limit = mapping_limit();
    if (!limit || limit > 120000 || UNDER_TSAN) {
        printf("skipped: the limit on mappings is too high to be reached here, or ThreadSanitizer needs many itself\n");
        return 77;
    }
    guards_wanted = RELEASE64 && limit < 100000 ? 100000 : limit / 2;
    PASSES(beyond_the_budget);
    guards_wanted = limit / 2 + 100;
    PASSES(beyond_the_limit);
    return check_result("pool mappings");
}

/* A debug build says once that a suspended coroutine is destroyed: the children shall not. */
static void destroy_a_suspended_one(void)
{
    aco_pool_t *pool = pool_with(0, 0, NEVER);
    aco_t *co = new_in(pool, SMALL, yields, NULL);
    aco_send(co, NULL);
    aco_destroy(co);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

int main(int argc, char **argv)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    if (argc > 1 && strcmp(argv[1], "mappings") == 0)
        return many_guards();
    destroy_a_suspended_one();
    guards();
    canaries();
    return check_result("pool_guards");
}
