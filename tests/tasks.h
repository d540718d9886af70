/* What the tests of the scheduler share. Tests that tell of the order of turns run three times: with tasks that switch
 * to each other directly, and with two kinds that go by way of aco_run(). */
#ifndef TASKS_H
#define TASKS_H

#include <aco/scheduler.h>
#include "check.h"
#include "sanitizers.h"
#include "valid.h"

#include <errno.h>

#if defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
#define OWN_FP_POSSIBLE 0
#else
#define OWN_FP_POSSIBLE 1
#endif

static unsigned kind; /* of the tasks of this round: 0, ACO_OWN_FP or ACO_OWN_EXCEPTIONS */

static inline aco_t *spawn_as(aco_function_t fn, void *arg, unsigned flags, const char *name)
{
    aco_options_t o = {0};
    aco_t *task;
    o.flags = flags | kind;
    o.name = name;
    task = aco_spawn(fn, arg, o.flags || name ? &o : NULL);
    CHECK(task != NULL);
    return task;
}

static inline aco_t *spawn(aco_function_t fn, void *arg)
{
    return spawn_as(fn, arg, 0, NULL);
}

static inline aco_t *spawn_detached(aco_function_t fn, void *arg)
{
    return spawn_as(fn, arg, ACO_DETACHED, NULL);
}

static inline void run(void)
{
    scheduler_is_valid();
    if (aco_run() != 0) {
        fprintf(stderr, "aco_run: %s\n", aco_error_message());
        CHECK(!"aco_run");
    }
    scheduler_is_valid();
}

/* For a coroutine on a share stack: other frames there are overwritten, unless they have been saved. */
static inline void *uses_stack(void *unused)
{
    volatile char room[2000];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = (char)0xee;
    aco_yield();
    return unused;
}

/* What happened, a letter each. */
static char history[1024];

static inline void say(char c)
{
    size_t length = strlen(history);
    if (length < sizeof history - 1)
        history[length] = c;
}

static inline void check_history(int line, const char *wanted)
{
    if (strcmp(history, wanted) != 0) {
        fprintf(stderr, "%s:%d: wanted \"%s\", it was \"%s\"\n", __FILE__, line, wanted, history);
        CHECK(!"the order");
    }
    memset(history, 0, sizeof history);
}

#define CHECK_HISTORY(wanted) check_history(__LINE__, wanted)

/* Nobody can run. Puts the report into text[sz]. */
static inline void check_deadlock(char *text, size_t sz)
{
    int kept = dup(STDERR_FILENO), result, error;
    FILE *file = tmpfile();
    dup2(fileno(file), STDERR_FILENO);
    errno = 0;
    result = aco_run();
    error = errno;
    dup2(kept, STDERR_FILENO);
    close(kept);
    CHECK_EQ(result, -1);
    CHECK_EQ(error, EDEADLK);
    rewind(file);
    text[fread(text, 1, sz - 1, file)] = 0;
    fclose(file);
}

static inline void *three_turns(void *name)
{
    for (int i = 0; i < 3; i++) {
        say(*(char *)name);
        CHECK_EQ(aco_task_yield(), 0);
    }
    return NULL;
}

static inline void *parks(void *name)
{
    say(*(char *)name);
    CHECK_EQ(aco_park("a test"), 0);
    say(*(char *)name);
    return NULL;
}

typedef struct shared {
    aco_mutex_t mutex;
    aco_cond_t cond;
    aco_semaphore_t semaphore;
    aco_wait_group_t group;
    aco_channel_t *channel, *other;
    int inside, n;
} shared_t;

/* Runs the tests, which a NULL ends, with tasks of each kind. */
static inline void with_all_kinds(void (*const tests[])(void))
{
    static const unsigned kinds[] = {0, ACO_OWN_FP, ACO_OWN_EXCEPTIONS};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        kind = kinds[i];
        if (kind == ACO_OWN_FP && !OWN_FP_POSSIBLE) /* this unit's plain aco_yield() cannot switch them */
            continue;
        for (size_t j = 0; tests[j]; j++)
            tests[j]();
#ifndef ACO_CONFIG_NO_INLINE
        CHECK_EQ(aco__self()->slow_switch_tasks, 0); /* else all that follows would be slow */
#endif
    }
    kind = 0;
}

#endif
