/* Promises of the profile of stacks by entry function (src/tools/profile.c; aco_stack_usage() in include/aco/pool.h),
 * one function each: what is measured when, tasks, transfers, advice, the table. Random schedules against a model are
 * in profile_model.c. */
#define _GNU_SOURCE
#include "stack_depth.h"
#include "aco/scheduler.h"
#include "fails.h"

#include <pthread.h>
#include <string.h>

static size_t page;

/* ---- Tasks ---- */

static void *yielding_task(void *arg)
{
    for (int i = 0; i < *(int *)arg; i++)
        aco_task_yield();
    return NULL;
}

static void *detached_task(void *arg)
{
    return yielding_task(arg);
}

/* Promise: tasks are measured as coroutines are: joined, detached, ended before they are joined; also among others that
 * are not. */
static void counts_of_tasks(void)
{
    enum { MANY = 10 };
    aco_t *tasks[MANY];
    int yields = 5;
    aco_options_t detached = {0};
    looked_for_t found;
    detached.flags = ACO_DETACHED;
    tasks[0] = aco_spawn(yielding_task, &yields, NULL); /* not measured */
    CHECK_EQ(aco_stack_measure(1), 0);
    for (int i = 1; i < MANY; i++) {
        tasks[i] = aco_spawn(yielding_task, &yields, NULL);
        CHECK(aco_spawn(detached_task, &yields, &detached) != NULL);
    }
    CHECK_EQ(aco_stack_measure(0), 0);
    CHECK_EQ(aco_run(), 0);
    found = usage_of(address(yielding_task), 1);
    CHECK_EQ(found.usage.made, MANY - 1);
    CHECK_EQ(found.usage.most_alive, MANY - 1);
    CHECK_EQ(found.usage.switches, (MANY - 1) * yields);
    CHECK(found.usage.deepest > 0 && found.usage.deepest <= 2 * page + 4 * SLACK);
    CHECK(found.usage.mean_live > 0 && found.usage.mean_live <= found.usage.most_live &&
          found.usage.most_live <= found.usage.deepest + UNWRITTEN);
    found = usage_of(address(detached_task), 1);
    CHECK_EQ(found.usage.made, MANY - 1);
    CHECK_EQ(found.usage.most_alive, MANY - 1);
    CHECK_EQ(found.usage.switches, (MANY - 1) * yields);
    CHECK(found.usage.deepest > 0 && found.usage.mean_depth > 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    found = usage_of(address(yielding_task), 1);
    CHECK_EQ(found.usage.made, MANY - 1);
}

static void *ends(void *unused)
{
    return unused;
}

static void *looks(void *unused)
{
    CHECK(usage_of(address(ends), 1).usage.deepest > 0);
    return unused;
}

/* Promise: a task is counted when it has ended, before the next one runs, also if that one is not measured. */
static void last_measured_task(void)
{
    aco_t *tasks[2];
    CHECK_EQ(aco_stack_measure(1), 0);
    tasks[0] = aco_spawn(ends, NULL, NULL);
    CHECK_EQ(aco_stack_measure(0), 0);
    tasks[1] = aco_spawn(looks, NULL, NULL);
    CHECK_EQ(aco_run(), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
}

/* ---- What is measured when ---- */

static void *named(void *arg)
{
    aco_yield();
    return arg;
}

static void *named_later(void *arg)
{
    return named(arg);
}

static void *unmeasured(void *arg)
{
    return named(arg);
}

static void one(aco_function_t fn, const char *name, int destroy_suspended)
{
    aco_options_t options = {0};
    options.name = name;
    aco_t *co = aco_new(fn, NULL, &options);
    aco_resume(co);
    if (!destroy_suspended)
        aco_resume(co);
    aco_destroy(co);
}

/* Promise: the name is that of the last of them that has one and has ended or was destroyed; it may be given late. */
static void names(void)
{
    aco_t *co;
    aco_stack_measure(1);
    one(named, NULL, 0);
    CHECK(strcmp(usage_of(address(named), 1).name, "") == 0);
    one(named, "first", 0);
    CHECK(strcmp(usage_of(address(named), 1).name, "first") == 0);
    one(named, NULL, 0);
    CHECK(strcmp(usage_of(address(named), 1).name, "first") == 0);
    one(named, "a name that is longer than ACO_NAME_SIZE can take", 1);
    CHECK(strcmp(usage_of(address(named), 1).name, "a name that is longer than ACO_") == 0);
    co = aco_new(named_later, NULL, NULL);
    aco_set_name(co, "late");
    aco_resume(co);
    aco_resume(co);
    CHECK(strcmp(usage_of(address(named_later), 1).name, "late") == 0);
    aco_destroy(co);
    aco_stack_measure(0);
}

static void *measuring_thread(void *arg)
{
    aco_thread_init(NULL);
    one(unmeasured, NULL, 0);
    CHECK_EQ(usage_of(address(unmeasured), 1).found, 0); /* the other thread measures, this one does not */
    aco_stack_measure(1);
    one(unmeasured, arg, 0);
    CHECK_EQ(usage_of(address(unmeasured), 1).usage.made, 1);
    return NULL; /* and ends without switching it off */
}

static size_t in_use(void)
{
    aco_pool_stats_t stats = {0};
    CHECK_EQ(aco_pool_stats(NULL, &stats), 0);
    return stats.in_use;
}

/* Promises: by thread; for coroutines made from then on; off is off, and destroyed coroutines are kept with their
 * stacks again. */
static void on_and_off(void)
{
    pthread_t thread;
    size_t before, switches;
    aco_t *co;
    looked_for_t found;
    aco_stack_measure(1);
    aco_stack_measure(1); /* twice is once */
    pthread_create(&thread, NULL, measuring_thread, NULL);
    pthread_join(thread, NULL);
    found = usage_of(address(named), 1);
    before = in_use();
    co = aco_new(named, NULL, NULL);
    CHECK_EQ(in_use(), before + 1);
    aco_stack_measure(0);
    aco_stack_measure(0);
    CHECK_EQ(usage_of(address(named), 1).usage.made, found.usage.made + 1);
    aco_resume(co); /* what was made while it was on is measured to its end */
    CHECK_EQ(usage_of(address(named), 1).usage.switches, found.usage.switches + 1);
    aco_resume(co);
    aco_destroy(co);
    CHECK_EQ(in_use(), before);
    switches = found.usage.switches + 1;
    one(named, "unmeasured", 0);
    found = usage_of(address(named), 1);
    CHECK_EQ(found.usage.switches, switches);
    CHECK(strcmp(found.name, "unmeasured") != 0);
    if (!SANITIZED) {
        CHECK_EQ(in_use(), before + 1); /* a cached one */
        co = aco_new(named, NULL, NULL);
        CHECK_EQ(in_use(), before + 1);
        aco_destroy(co);
        CHECK_EQ(in_use(), before + 1);
        aco_stack_measure(1);
        CHECK_EQ(in_use(), before); /* cached ones would have another one's depth */
        aco_stack_measure(0);
    }
}

/* Promise: a coroutine is measured from its own beginning: what had its stack before does not count. */
static void *deep_one(void *arg)
{
    size_t lowest;
    dive(100000, &lowest);
    return arg;
}

static void *shallow_one(void *arg)
{
    return arg;
}

static void own_depth_only(void)
{
    one(deep_one, NULL, 1); /* a cached one with many pages, and one that goes to the pool */
    aco_pool_trim(NULL);
    one(deep_one, NULL, 1);
    aco_stack_measure(1);
    one(deep_one, NULL, 1);
    one(shallow_one, NULL, 1);
    CHECK(usage_of(address(deep_one), 1).usage.deepest >= 100000);
    CHECK(usage_of(address(shallow_one), 1).usage.deepest <= 2 * page + SLACK);
    aco_stack_measure(0);
}

/* ---- Transfers between those who are measured and those who are not ---- */

static aco_t *transfer_target;

static void *transfers(void *arg)
{
    CHECK_EQ(aco_yield_to(transfer_target), 0);
    return arg;
}

static void *measured_transfers(void *arg)
{
    CHECK_EQ(aco_yield_to(transfer_target), 0);
    return arg;
}

static void *yields_once(void *arg)
{
    aco_yield();
    return arg;
}

static void from_measured(void)
{
    aco_t *from;
    transfer_target = aco_new(yields_once, NULL, NULL);
    aco_stack_measure(1);
    from = aco_new(measured_transfers, NULL, NULL);
    aco_stack_measure(0);
    aco_resume(from);
    aco_resume(transfer_target);
    aco_resume(from);
    CHECK(from->is_end && transfer_target->is_end);
    CHECK_EQ(usage_of(address(measured_transfers), 1).usage.switches, 1);
    CHECK(usage_of(address(measured_transfers), 1).usage.deepest > 0);
    CHECK_EQ(usage_of(address(yields_once), 1).found, 0);
    aco_destroy(from);
    aco_destroy(transfer_target);
}

static void *measured_target(void *arg)
{
    return yields_once(arg);
}

/* Promises: where an unmeasured one is resumed, transfers to a measured one, and that one yields, this is not counted.
 * The rest is. */
static void to_measured(void)
{
    aco_t *from = aco_new(transfers, NULL, NULL);
    aco_stack_measure(1);
    transfer_target = aco_new(measured_target, NULL, NULL);
    aco_stack_measure(0);
    aco_resume(from);
    CHECK_EQ(usage_of(address(measured_target), 1).usage.switches,
             SANITIZED); /* under a sanitizer every switch is seen */
    aco_resume(transfer_target);
    aco_resume(from);
    CHECK(usage_of(address(measured_target), 1).usage.deepest > 0);
    aco_destroy(from);
    aco_destroy(transfer_target);
}

/* ---- Never run ---- */

static void *never_run_1(void *arg)
{
    return yields_once(arg);
}

static void *never_run_2(void *arg)
{
    return yields_once(arg);
}

/* Promises: a coroutine that never switched away says nothing about its kind of stack; one restarted with another
 * function counts there. */
static void never_run(void)
{
    aco_t *co;
    looked_for_t found;
    aco_stack_measure(1);
    co = aco_new(never_run_1, NULL, NULL);
    found = usage_of(address(never_run_1), 1);
    CHECK(found.found == 1 && found.usage.made == 1 && found.usage.most_alive == 1 && found.usage.switches == 0);
    CHECK_EQ(found.usage.deepest, 0);
    CHECK_EQ(found.usage.advice, ACO_STACK_AS_IT_IS);
    CHECK_EQ(aco_restart(co, never_run_2, NULL), 0);
    CHECK_EQ(usage_of(address(never_run_2), 1).usage.made, 1);
    aco_destroy(co);
    co = aco_new(never_run_1, NULL, NULL);
    CHECK_EQ(aco_cancel(co), 0);
    CHECK_EQ(aco_restart(co, never_run_1, NULL), 0);
    CHECK_EQ(usage_of(address(never_run_1), 1).usage.made, 3);
    CHECK_EQ(usage_of(address(never_run_1), 1).usage.most_alive, 1);
    aco_destroy(co);
    aco_stack_measure(0);
}

/* ---- Advice ---- */

static void hold_and_yield(size_t bytes, int yields)
{
    volatile unsigned char *p = __builtin_alloca(bytes);
    p[0] = 1;
    for (int i = 0; i < yields; i++)
        aco_yield();
    p[0] = 2;
}

typedef struct holder {
    size_t bytes;
    int yields;
} holder_t;

static void *hold(void *arg)
{
    const holder_t *holder = arg;
    hold_and_yield(holder->bytes, holder->yields);
    return arg;
}

static void *few(void *arg)
{
    return hold(arg);
}

static void *too_few(void *arg)
{
    return hold(arg);
}

static void *enough(void *arg)
{
    return hold(arg);
}

static void *much_live(void *arg)
{
    return hold(arg);
}

/* `n` at once. */
static aco_stack_usage_t usage_of_many(aco_function_t fn, size_t n, holder_t *holder, aco_share_stack_t *stack)
{
    aco_t **all = malloc(n * sizeof *all);
    aco_options_t options = {0};
    aco_stack_usage_t u;
    options.stack = stack;
    for (size_t i = 0; i < n; i++) {
        all[i] = aco_new(fn, holder, &options);
        CHECK(all[i] != NULL);
    }
    for (int y = 0; y <= holder->yields; y++)
        for (size_t i = 0; i < n; i++)
            aco_resume(all[i]);
    for (size_t i = 0; i < n; i++)
        aco_destroy(all[i]);
    free(all);
    u = usage_of(address(fn), !stack).usage;
    CHECK_EQ(u.advice, advice_for(&u));
    return u;
}

static void advice(void)
{
    enum {
        MIB = 1 << 20,
        FEW = 24
    }; /* so many that the mean of their pages is that of many more, whatever colours their stacks have */
    holder_t holder = {16, 2};
    size_t saved, n;
    aco_stack_usage_t u;
    aco_share_stack_t *stack = COPYING ? aco_share_stack_new(0) : NULL;
    int seen[2] = {0, 0};
    aco_stack_measure(1);
    u = usage_of_many(few, FEW, &holder, NULL);
    CHECK_EQ(u.advice, ACO_STACK_AS_IT_IS);
#ifndef __OPTIMIZE__
    if (u.mean_live > 900) { /* Power, Windows: such frames are hardly, or never, better shared */
        if (stack)
            aco_share_stack_destroy(stack);
        aco_stack_measure(0);
        return;
    }
#endif
    saved = u.bytes - u.other_bytes;
    n = (MIB + saved - 1) / saved;
    u = usage_of_many(too_few, n - 1, &holder, NULL); /* 1 MiB is not reached */
    CHECK_EQ(u.bytes - u.other_bytes, saved);
    CHECK_EQ(u.advice, ACO_STACK_AS_IT_IS);
    u = usage_of_many(enough, n, &holder, NULL);
    CHECK_EQ(u.bytes - u.other_bytes, saved);
    CHECK_EQ(u.advice, ACO_STACK_BETTER_SHARED);
    if (!SANITIZED) {
        usage_of_many(much_live, 4 * n, &holder, NULL); /* then the mean grows slowly to beyond 1000 bytes */
        for (holder = (holder_t){1900, 100}; u.mean_live < 1010; seen[u.mean_live > 1000]++) {
            u = usage_of_many(much_live, 1, &holder, NULL);
            CHECK_EQ(u.advice, u.mean_live <= 1000 ? ACO_STACK_BETTER_SHARED : ACO_STACK_AS_IT_IS);
        }
        CHECK(seen[0] && seen[1]);
    }
    if (COPYING) {
        holder = (holder_t){16, 2};
        u = usage_of_many(few, 1, &holder, stack);
        CHECK_EQ(u.advice, ACO_STACK_BETTER_PRIVATE); /* it saves too little */
        u = usage_of_many(enough, n + 40, &holder, stack);
        CHECK_EQ(u.advice, ACO_STACK_AS_IT_IS);
        holder = (holder_t){3000, 2};
        u = usage_of_many(too_few, n + 40, &holder, stack);
        CHECK_EQ(u.advice, ACO_STACK_BETTER_PRIVATE); /* it copies much */
        aco_share_stack_destroy(stack);
    }
    aco_stack_measure(0);
}

/* ---- The table, the visitor ---- */

static int count_usages(const aco_stack_usage_t *usage, void *arg)
{
    CHECK(usage->entry != NULL && usage->name != NULL && usage->made > 0 && usage->most_alive > 0 &&
          usage->stack_size > 0);
    CHECK_EQ(usage->advice, advice_for(usage));
    return ++*(int *)arg == 1000;
}

static int stop_at_second(const aco_stack_usage_t *usage, void *arg)
{
    (void)usage;
    return ++*(int *)arg == 2 ? 77 : 0;
}

typedef struct line_check {
    FILE *file;
    int lines;
} line_check_t;

/* Of each entry a line, in the order of the visits. */
static int compare_line(const aco_stack_usage_t *usage, void *arg)
{
    static const char *const advices[] = {" -\n", " share stack\n", " private stack\n"};
    line_check_t *check = arg;
    char line[512] = "", number[32];
    void *entry;
    memcpy(&entry, &usage->entry, sizeof entry);
    CHECK(fgets(line, sizeof line, check->file) != NULL);
    snprintf(number, sizeof number, "%-18p ", entry);
    CHECK(strncmp(line, number, strlen(number)) == 0);
    snprintf(number, sizeof number, " %zu ", usage->switches);
    CHECK(strstr(line, number) != NULL);
    snprintf(number, sizeof number, " %zu ", usage->mean_live);
    CHECK(strstr(line, number) != NULL);
    CHECK(strstr(line, usage->is_private ? "private" : "share") != NULL);
    snprintf(number, sizeof number, "%.16s", usage->name);
    CHECK(strstr(line, number) != NULL);
    CHECK(strlen(line) > 20 &&
          strcmp(line + strlen(line) - strlen(advices[usage->advice]), advices[usage->advice]) == 0);
    check->lines++;
    return 0;
}

static void report(void)
{
    FILE *file = tmpfile(), *readable = fopen("/dev/null", "r");
    line_check_t check = {file, 0};
    char line[512];
    int entries = 0, second = 0;
    CHECK_EQ(aco_stack_usage(count_usages, &entries), 0);
    CHECK(entries >= 8);
    CHECK_EQ(aco_stack_usage(stop_at_second, &second), 77);
    CHECK_EQ(second, 2);
    FAILS(aco_stack_usage(NULL, NULL), -1, EINVAL, "aco_stack_usage", NULL, "the visitor is NULL");
    FAILS(aco_stack_report(NULL), -1, EINVAL, "aco_stack_report", NULL, "the file is NULL");
    CHECK_EQ(aco_stack_report(file), 0);
    rewind(file);
    CHECK(fgets(line, sizeof line, file) && strstr(line, "entry function") && strstr(line, "cheaper on"));
    CHECK_EQ(aco_stack_usage(compare_line, &check), 0);
    CHECK_EQ(check.lines, entries);
    CHECK(fgets(line, sizeof line, file) == NULL);
#ifndef _WIN32 /* fprintf() does not notice there */
    CHECK_EQ(aco_stack_report(readable), -1);
#endif
    fclose(readable);
    fclose(file);
}

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    aco_thread_init(NULL);
    CHECK_EQ(aco_stack_usage(none, NULL), 0); /* nothing was asked for */
    counts_of_tasks();
    last_measured_task();
    names();
    on_and_off();
    own_depth_only();
    from_measured();
    to_measured();
    never_run();
    if (SMALL_FRAMES) /* else stacks are never better shared */
        advice();
    report();
    return check_result("profile");
}
