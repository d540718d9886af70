/* Promises of simulations (src/sim) to the process that they run in: its handlers of signals, its trace, its report at
 * exit, its children; what they count, and which call a refusal names. */
#define _GNU_SOURCE
#include "capture.h"
#include "check.h"
#include "child.h"

#include <aco/sim.h>
#ifdef WITH_IO
#include <aco/io.h>
#include <aco/process.h>
#endif

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

static void do_nothing(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
}

/* ---- Counting ---- */

static void sleep_for_years(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    CHECK_EQ(aco_sleep((int64_t)3600 * 24 * 365 * 29 * ACO_SECOND), 0);
}

static void time_is_counted(void)
{
    aco_sim_stats_t stats;
    CHECK_EQ(aco_sim_run(sleep_for_years, NULL, 12, &stats, NULL), 0);
    CHECK_EQ(stats.simulated_ns, INT64_MAX);
}

/* ---- The name of a refusal ---- */

#ifdef WITH_IO
static void fail_twice(aco_sim_t *sim, void *arg)
{
    aco_process_t process;
    (void)sim, (void)arg;
    CHECK_EQ(aco_process_start(&process, (const char *const[]){"true", NULL}, 0, NULL), -1);
    CHECK_EQ(aco_join(NULL, NULL), -1);
}

static void first_failure_is_named(void)
{
    aco_sim_stats_t stats;
    capture();
    FAILS_WITH(aco_sim_run(fail_twice, NULL, 1, &stats, NULL), ECANCELED);
    release();
    CHECK(strstr(stats.reason, "aco_process_start() is not simulated: ") == stats.reason);
}

#ifndef CHILD_SKIPS
/* ---- fork() ---- */

static int ends[2];
static pid_t forked = -1;

static void *wait_for_byte(void *result)
{
    *(int *)result = aco_io_wait_readable_until(ends[0], aco_now()) == 0 ? 0 : errno;
    return NULL;
}

static int what_waiting_says(void)
{
    int result = -1;
    aco_t *task = aco_spawn(wait_for_byte, &result, NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    return result;
}

static void fork_now(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    forked = fork();
}

/* The child must not use the poller that the thread had before the simulation: it is the parent's. */
static void child_leaves_poller(void)
{
    int status = -1;
    CHECK_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    CHECK_EQ(what_waiting_says(), ETIMEDOUT);
    CHECK_EQ(aco_sim_run(fork_now, NULL, 1, NULL, NULL), 0);
    if (forked == 0)
        _exit(what_waiting_says() != EPERM);
    CHECK_EQ(waitpid(forked, &status, 0), forked);
    CHECK_EQ(status, 0);
    CHECK_EQ(what_waiting_says(), ETIMEDOUT);
    close(ends[0]);
    close(ends[1]);
}
#endif
#endif

#ifndef CHILD_SKIPS
/* ---- Handlers of signals ---- */

static struct sigaction of_run;

static void hand_back(int signal)
{
    CHECK_EQ(sigaction(signal, &of_run, NULL), 0);
    CHECK_EQ(raise(signal), 0);
}

static void set_handler(aco_sim_t *sim, void *arg)
{
    struct sigaction action = {0};
    (void)sim, (void)arg;
    action.sa_handler = hand_back;
    CHECK_EQ(sigaction(SIGTERM, &action, of_run.sa_flags ? NULL : &of_run), 0);
}

static void be_terminated(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    CHECK_EQ(raise(SIGTERM), 0);
}

static void run_with_old_handlers(void)
{
    for (int i = 0; i < 6; i++)
        CHECK_EQ(aco_sim_run(set_handler, NULL, 1, NULL, NULL), 0);
    (void)aco_sim_run(be_terminated, NULL, 1, NULL, NULL);
}

/* One that was set in a run, and gives the signal to that of the run, in another run. */
static void handlers_lead_somewhere(void)
{
    child_end_t end = child_run(run_with_old_handlers);
    CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGTERM);
    CHECK(strstr(end.text, "seed 1: the process dies by signal 15") != NULL);
}

/* ---- At exit ---- */

static void *park_for_ever(void *arg)
{
    CHECK_EQ(aco_park("nobody"), 0);
    return arg;
}

static void leave_tasks(aco_sim_t *sim, void *arg)
{
    (void)arg;
    CHECK(aco_spawn(park_for_ever, NULL, NULL) != NULL);
    CHECK(aco_new(park_for_ever, NULL, NULL) != NULL);
    aco_sim_fail(sim, "on purpose");
}

static void exit_after_failed_run(void)
{
    CHECK_EQ(unsetenv("ACO_REPORT_FORGOTTEN"), 0);
    CHECK_EQ(aco_sim_run(leave_tasks, NULL, 1, NULL, NULL), -1);
    CHECK(aco_new(park_for_ever, NULL, NULL) != NULL);
    exit(check_failures != 0);
}

/* What a failed run leaves is said by its failure; what the program leaves is reported, in debug builds. */
static void failed_runs_are_not_reported(void)
{
    child_end_t end = child_run(exit_after_failed_run);
    const char *first = strstr(end.text, "was not destroyed");
    CHECK(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0);
    CHECK(ACO_DEBUG ? first && !strstr(first + 1, "was not destroyed") : !first);
}

/* ---- A trace ---- */

static const char *program;
static char trace[64];

static void run_traced(void)
{
    CHECK_EQ(setenv("ACO_TRACE", trace, 1), 0);
    execl(program, program, "traced", (char *)NULL);
    CHECK(!"it is executed");
}

static void *return_at_once(void *arg)
{
    return arg;
}

static int traced(void)
{
    for (int i = 0; i < 2; i++) {
        aco_t *co = aco_new(return_at_once, NULL, NULL);
        (void)aco_send(co, NULL);
        aco_destroy(co);
        CHECK_EQ(aco_sim_run(do_nothing, NULL, 2, NULL, NULL), 0);
    }
    return check_failures != 0;
}

/* It ends before the first run, with what came before. */
static void traces_end(void)
{
    char text[4096] = "";
    child_end_t end;
    FILE *file;
    size_t n;
    snprintf(trace, sizeof trace, "/tmp/acorn-sim-trace-%d", (int)getpid());
    end = child_run(run_traced);
    CHECK(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0);
    CHECK(strstr(end.text, "acorn: ACO_TRACE: the trace ends here: a simulation has times of its own\n") == end.text);
    file = fopen(trace, "r");
    CHECK(file != NULL);
    n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    CHECK(n > 4 && strcmp(text + n - 4, "\n]}\n") == 0);
    CHECK(strstr(text, "\"create\"") && !strstr(strstr(text, "\"create\"") + 1, "\"create\""));
    if (file)
        fclose(file);
    unlink(trace);
}
#endif

int main(int argc, char **argv)
{
#ifndef CHILD_SKIPS
    program = argv[0];
    if (argc > 1)
        return traced();
    handlers_lead_somewhere();
    failed_runs_are_not_reported();
    traces_end();
#else
    (void)argc, (void)argv, (void)do_nothing;
#endif
#ifdef WITH_IO
    first_failure_is_named();
#ifndef CHILD_SKIPS
    child_leaves_poller();
#endif
#endif
    time_is_counted();
    return check_result("sim_process");
}
