/* A run in a child process. A failed run leaves tasks and memory, it may die, and it may print: a search through
 * hundreds of them can have none of that. */
#define _GNU_SOURCE /* setrlimit() under -std=c11 */
#include "sim/attempt.h"
#include "sim/last_words.h"
#include "sim/world.h"

#include "system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SECONDS = 60 /* of the processor: an attempt that takes more never ends */ };

ACO__OPTIONAL(void *, __tsan_get_current_fiber, (void));

aco__sim_shared_t *aco__sim_shared_new(void)
{
    void *p;
    if (__tsan_get_current_fiber)
        return aco__sim_null_with(ENOTSUP);
    p = aco__system.mmap(NULL, sizeof(aco__sim_shared_t), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE);
    return p == MAP_FAILED ? NULL : p; /* zeros */
}

void aco__sim_shared_free(aco__sim_shared_t *shared)
{
    if (shared)
        aco__system.munmap(shared, sizeof *shared);
}

static void say_nothing(void)
{
    int nowhere = aco__system.open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)dup2(nowhere, STDERR_FILENO);
}

static void store_outcome(const aco_sim_t *sim, aco__sim_outcome_t *outcome)
{
    outcome->could_run = 1;
    outcome->has_failed = sim->has_failed;
    outcome->turns = sim->turns;
    outcome->hash = sim->history.hash;
    outcome->now = sim->now;
    memcpy(outcome->reason, sim->reason, sizeof outcome->reason);
}

/* Does not return. What is buffered in stdio belongs to the parent. */
static void be_child(aco_sim_t *sim, aco__sim_runner_t run, aco__sim_shared_t *shared, int is_shown)
{
    const struct rlimit most = {MOST_SECONDS, MOST_SECONDS}, no_core = {0, 0};
    (void)setrlimit(RLIMIT_CPU, &most);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    if (is_shown)
        aco__last_words_in_child(sim->seed);
    else
        say_nothing();
    if (run(sim, sim->seed) == 0) {
        store_outcome(sim, &shared->outcome);
        if (sim->has_failed)
            aco__last_words_tell(sim->reason);
    }
    _exit(0);
}

/* What a process that has died would have said of itself. */
static void judge_death(aco__sim_outcome_t *outcome, int status)
{
    outcome->has_failed = 1;
    if (WIFSIGNALED(status))
        snprintf(outcome->reason, sizeof outcome->reason, "the process dies by signal %d", WTERMSIG(status));
    else
        snprintf(outcome->reason, sizeof outcome->reason, "the process ends by exit(), or a sanitizer ends it");
}

int aco__sim_attempt(aco_sim_t *sim, aco__sim_runner_t run, aco__sim_shared_t *shared, int is_shown)
{
    int status = 0;
    pid_t child, ended;
    memset(&shared->outcome, 0, sizeof shared->outcome);
    sim->decisions = &shared->decisions;
    child = fork();
    sim->decisions = child == 0 ? sim->decisions : NULL;
    if (child < 0)
        return -1;
    if (child == 0)
        be_child(sim, run, shared, is_shown);
    do
        ended = aco__system.waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
    if (!shared->outcome.could_run)
        judge_death(&shared->outcome, status);
    return 0;
}
