/* Runs with one seed after the other, until one fails. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "sim/seeds.h"
#include "base/reserved.h"
#include "sim/decision_file.h"
#include "sim/draw.h"
#include "sim/failing.h"
#include "sim/hosts.h"
#include "sim/notes_trace.h"
#include "sim/thread_frames.h"
#include "sim/time_wait.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char call[] = "aco_sim_run";

enum { CHANGES = 3, MOST_TURNS = 10000000, MOST_ROUNDS = 100000 /* of aco_run() without a turn */ };

static aco__sim_thread_t *thread_of(aco__chooser_t *chooser)
{
    return (aco__sim_thread_t *)(void *)((char *)chooser - offsetof(aco__sim_thread_t, chooser));
}

static aco_sim_t *sim_of(aco__chooser_t *chooser)
{
    return thread_of(chooser)->sim;
}

static int is_first(const aco__sim_thread_t *thread)
{
    return thread == &thread->sim->threads.first;
}

/* ---- What aco_run() calls ---- */

static void runnable(aco__chooser_t *chooser, aco_t *task)
{
    aco__sim_thread_t *thread = thread_of(chooser);
    aco__sim_schedule_t *schedule = &thread->schedule;
    if (task == chooser->poll_task)
        aco__schedule_add_poll(schedule, task);
    else
        aco__schedule_add(schedule, task, is_first(thread) ? thread->sim->nodes.here : NULL);
}

/* Before each round of aco_run(): 0, or -1 if the run has failed. */
static int goes_on(aco_sim_t *sim, const aco__sim_schedule_t *schedule)
{
    const char *refused = aco__chooser_refused();
    aco__sim_settle(sim);
    if (refused)
        aco__sim_fail(sim, "%s", refused);
    if (schedule->lacks_memory)
        aco__sim_fail(sim, "there is no memory for the schedule");
    if (sim->turns >= sim->options.max_turns)
        aco__sim_fail(sim, "it has not ended after %" PRIu64 " turns", sim->turns);
    if (++sim->rounds_without_turn > MOST_ROUNDS)
        aco__sim_fail(sim, "it does not end: messages come for ever, and no task has a turn");
    errno = ECANCELED;
    return sim->has_failed ? -1 : 0;
}

static int64_t turn_time(aco_sim_t *sim)
{
    uint64_t limit = (uint64_t)sim->options.turn_ns + 1;
    return (int64_t)aco__sim_decide(sim, ACO__SIM_TURNS, aco__draw_below(&sim->delays, limit), limit);
}

/* Nodes are on the first thread. */
static int settle_nodes(const aco__sim_thread_t *thread)
{
    return is_first(thread) && aco__sim_nodes_settle(thread->sim);
}

/* A failed run ends here: aco_run() fails. */
static int choose(aco__chooser_t *chooser, aco_t **chosen)
{
    aco_sim_t *sim = sim_of(chooser);
    aco__sim_thread_t *thread = thread_of(chooser);
    aco__sim_schedule_t *schedule = &thread->schedule;
    aco_sim_node_t *node;
    uint64_t number, count;
    ACO__ASSERT(sim == aco_sim_current());
    if (thread->is_to_leave) /* the task whose turn it was was in a call that waits */
        aco__sim_leave_frames(thread);
    sim->is_in_turn = 0;
    aco__sim_note_stop(sim);
    sim->nodes.here = thread->home;
    aco__sim_rest(thread);
    aco__sim_point(sim);
    thread->is_at_rest = 0;
    if (settle_nodes(thread))
        return 1;
    if (goes_on(sim, schedule) != 0)
        return -1;
    *chosen = aco__schedule_choose(schedule, &number, &node, &count);
    if (!*chosen)
        return 0;
    ACO__ASSERT((*chosen == chooser->poll_task) == !number && (!number || count));
    if (*chosen == chooser->poll_task) {
        aco__history_note(&sim->history, ACO__SIM_POLL, 0, count);
        return 0;
    }
    aco__history_note(&sim->history, ACO__SIM_TURN, number, count);
    sim->turns++;
    sim->rounds_without_turn = sim->threads.points = 0;
    sim->is_in_turn = 1;
    sim->nodes.here = node ? node : thread->home;
    if (sim->options.turn_ns)
        sim->now += turn_time(sim);
    aco__sim_note_turn(sim, *chosen, number);
    return 0;
}

static void ended(aco__chooser_t *chooser, const aco_t *task)
{
    aco__sim_note_end(sim_of(chooser));
    aco__schedule_ended(&thread_of(chooser)->schedule, task);
}

static int each_task(aco__chooser_t *chooser, int (*visit)(aco_t *task, void *arg), void *arg)
{
    aco__sim_task_t *tasks;
    size_t n = aco__schedule_list(&thread_of(chooser)->schedule, &tasks);
    if (n == SIZE_MAX) {
        aco__sim_fail(sim_of(chooser), "there is no memory for a list of tasks");
        return aco__sim_fail_with(ENOMEM);
    }
    for (size_t i = 0; i < n; i++)
        (void)visit(tasks[i].task, arg);
    free(tasks);
    return 0;
}

static int check_invariants(aco_sim_t *sim)
{
    if (!sim->has_failed && sim->options.invariants)
        sim->options.invariants(sim, sim->arg);
    aco__sim_settle(sim);
    errno = ECANCELED;
    return sim->has_failed ? -1 : 0;
}

/* With other threads, the invariants are looked at when no thread can go on. */
static int idle(aco__chooser_t *chooser)
{
    aco_sim_t *sim = sim_of(chooser);
    errno = ECANCELED;
    if (sim->threads.others ? sim->has_failed : check_invariants(sim) != 0)
        return -1;
    return settle_nodes(thread_of(chooser));
}

static int look_up(aco__chooser_t *chooser, int64_t *ns)
{
    return aco__sim_look_up(sim_of(chooser), ns);
}

/* The threads of the run. */
static int admits(aco__chooser_t *chooser)
{
    const aco_sim_t *sim = aco_sim_current();
    return sim && sim == sim_of(chooser);
}

/* A call that was refused is told with the name of the library's call that has failed for it, not of a later one. */
static void failed(aco__chooser_t *chooser)
{
    aco_sim_t *sim = sim_of(chooser);
    aco__sim_settle(sim);
}

static void refuse(aco__chooser_t *chooser, const char *refused)
{
    (void)aco__sim_refuse(sim_of(chooser), refused);
}

static int64_t disk_time(aco__chooser_t *chooser)
{
    aco_sim_t *sim = sim_of(chooser);
    return aco__sim_disk_time(sim, aco__sim_disk_here(sim));
}

/* ---- One run ---- */

ACO__SWITCHES static void *run_scenario(void *arg)
{
    aco_sim_t *sim = arg;
    sim->scenario(sim, sim->arg);
    return NULL;
}

static int count_one(aco_t *co, void *count)
{
    (void)co;
    ++*(size_t *)count;
    return 0;
}

/* Coroutines and tasks of the thread that were not destroyed or joined. */
static size_t count_live(void)
{
    size_t count = 0;
    (void)aco_each(count_one, &count);
    return count;
}

static void begin_run(aco_sim_t *sim, uint64_t seed, int keeps, int compares)
{
    uint64_t draws = aco__mix(seed);
    ACO__ASSERT(!aco_sim_current() && seed);
    sim->seed = seed;
    sim->now = 0;
    sim->turns = sim->rounds_without_turn = 0;
    sim->is_in_turn = sim->has_failed = sim->reads_proc = 0;
    sim->refused = NULL;
    sim->refusals = 0;
    sim->reason[0] = 0;
    if (sim->decisions)
        aco__decisions_begin(sim->decisions);
    sim->threads.first.schedule.decisions = sim->decisions;
    aco__history_begin(&sim->history, keeps, compares);
    aco__schedule_begin(&sim->threads.first.schedule, sim->options.schedule, sim->options.changes, aco__draw(&draws));
    sim->draws = aco__draw(&draws);
    sim->delays = aco__draw(&draws);
    aco__sim_notes_begin(sim);
    aco__sim_opened_begin(sim);
    aco__sim_ports_begin(sim);
    aco__sim_arrivals_begin(sim, aco__draw(&draws));
    sim->randoms = aco__draw(&draws);
    sim->disk_draws = aco__draw(&draws);
    memset(&sim->disk_options, 0, sizeof sim->disk_options);
    aco__sim_nodes_begin(sim, aco__draw(&draws));
    aco__sim_wires_begin(sim);
    aco__sim_names_begin(sim);
    aco__sim_threads_begin(sim, aco__draw(&draws));
}

static void fail_by_deadlock(aco_sim_t *sim)
{
    if (!sim->has_failed)
        aco__sim_nodes_print(sim);
    aco__sim_fail(sim, "a deadlock: no task can ever run");
}

/* After aco_run(): why the run failed, if it did. */
static void judge(aco_sim_t *sim, int done, size_t before)
{
    const char *refused = aco__chooser_refused();
    size_t live;
    int64_t now;
    sim->is_in_turn = 0;
    aco__sim_note_stop(sim);
    aco__sim_settle(sim);
    if (refused) /* else it looks like a deadlock */
        aco__sim_fail(sim, "%s", refused);
    else if (done != 0 && errno == EDEADLK)
        fail_by_deadlock(sim);
    else if (done != 0)
        aco__sim_fail(sim, "%s", aco_error_message());
    (void)aco__sim_nodes_settle(sim); /* those without tasks here are up */
    now = sim->now; /* idle threads of the pool wait a while before they end */
    aco__sim_nodes_end_threads(sim);
    aco__sim_threads_end(sim);
    sim->now = now;
    (void)check_invariants(sim);
    live = count_live();
    if (live > before && !sim->nodes.have_crashed) /* else their owners may be gone */
        aco__sim_fail(sim, "%zu coroutines or tasks were not destroyed, joined or detached", live - before);
    if (sim->nodes.have_crashed && !before) /* else some may be the program's */
        aco__sim_nodes_bury(live);
    aco__history_note(&sim->history, ACO__SIM_END, 0, (uint64_t)sim->has_failed);
}

/* The run is over, and so is the thread's poller with its descriptors. */
static void end_run(aco_sim_t *sim)
{
    aco__sim_histories_end(sim);
    aco__sim_opened_judge(sim);
    aco__sim_arrivals_end(sim);
    aco__sim_names_end(sim);
    aco__sim_ports_forget(sim, NULL);
    aco__sim_opened_end(sim);
    aco__sim_endings_call(sim);
    aco__sim_nemesis_end(sim);
    aco__sim_wires_end(sim);
    aco__sim_enter(NULL);
    aco__sim_nodes_end(sim);
    aco__sim_threads_free(sim);
}

/* 0, or -1 and errno. */
static int begin_trace(aco_sim_t *sim, uint64_t seed)
{
    if (!sim->trace)
        return 0;
    sim->notes.trace = aco__sim_trace_new(sim->trace, seed);
    return sim->notes.trace ? 0 : aco__service_fail(errno, call, "the trace cannot be written");
}

static void end_trace(aco_sim_t *sim)
{
    int error = errno;
    if (sim->notes.trace && aco__sim_trace_end(sim->notes.trace) != 0)
        aco__sim_say(sim, "the trace is not complete: %s", strerror(errno));
    sim->notes.trace = NULL;
    errno = error;
}

/* 0 if it could run, failed or not. */
static int run_seed(aco_sim_t *sim, uint64_t seed, int keeps, int compares)
{
    aco_options_t detached = {0};
    size_t before = count_live();
    int done;
    detached.flags = ACO_DETACHED;
    if (begin_trace(sim, seed) != 0)
        return -1;
    begin_run(sim, seed, keeps, compares);
    aco__sim_enter(sim);
    if (aco__chooser_begin(&sim->threads.first.chooser, call) != 0) {
        end_run(sim);
        end_trace(sim);
        return -1;
    }
    if (aco_spawn(run_scenario, sim, &detached)) {
        done = aco_run();
        judge(sim, done, before);
        done = 0;
    } else {
        done = -1;
    }
    aco__chooser_end(&sim->threads.first.chooser);
    end_run(sim);
    end_trace(sim);
    return done;
}

/* ---- All runs ---- */

static void add(aco_sim_stats_t *stats, const aco_sim_t *sim)
{
    ACO__ASSERT(sim->now >= 0 && sim->turns <= sim->options.max_turns);
    stats->runs++;
    stats->turns += sim->turns;
    if (__builtin_add_overflow(stats->simulated_ns, sim->now, &stats->simulated_ns))
        stats->simulated_ns = INT64_MAX;
    stats->hash = aco__mix(stats->hash ^ sim->history.hash);
}

/* Runs the seed once more and compares. A difference is the reason, even if the repetition has failed. */
static int repeat(aco_sim_t *sim, uint64_t seed)
{
    uint64_t hash = sim->history.hash;
    int done;
    aco__scatter_begin(seed);
    done = run_seed(sim, seed, 0, 1);
    aco__scatter_end();
    if (done != 0)
        return -1;
    if (sim->history.hash != hash) {
        sim->has_failed = 0;
        aco__sim_fail(sim, "its repetition differs: %s",
                      sim->history.differs ? sim->history.difference : "only late events do");
    }
    return 0;
}

static int run_once(aco_sim_t *sim, uint64_t seed)
{
    return run_seed(sim, seed, 0, 0);
}

/* Runs the seed in a child process, which may die, for a search. Nothing is kept for a repetition. */
static int run_apart(aco_sim_t *sim, uint64_t seed, aco__sim_search_t *search)
{
    const aco__sim_outcome_t *first = &search->first;
    sim->seed = seed;
    if (aco__sim_search_begin(search, sim, run_once) != 0)
        return aco__service_fail(errno, call,
                                 errno == ENOTSUP ? "no shorter run can be searched: ThreadSanitizer does not follow a "
                                                    "process with coroutines through fork()"
                                                  : "a child process cannot be made");
    sim->has_failed = first->has_failed;
    sim->turns = first->turns;
    sim->now = first->now;
    sim->history.hash = first->hash;
    memcpy(sim->reason, first->reason, sizeof sim->reason);
    return 0;
}

static int run_first(aco_sim_t *sim, uint64_t seed, uint64_t runs, aco__sim_search_t *search)
{
    int done;
    if (runs == 1 && sim->options.shrink)
        return run_apart(sim, seed, search);
    sim->trace = runs == 1 ? sim->options.trace : NULL;
    done = run_seed(sim, seed, sim->options.check, 0);
    sim->trace = NULL;
    return done;
}

/* The seed's run has failed. -1 */
static int tell_failure(aco_sim_t *sim, uint64_t runs, aco_sim_stats_t *stats, aco__sim_search_t *search,
                        const char *program)
{
    stats->seed = sim->seed;
    memcpy(stats->reason, sim->reason, sizeof stats->reason);
    aco__last_words_tell(sim->reason);
    if (sim->options.shrink)
        aco__sim_shorten(sim, run_once, search, program);
    else if (sim->options.trace && runs > 1)
        aco__sim_trace_again(sim, run_once);
    return aco__sim_fail_with(ECANCELED);
}

static int run_seeds(aco_sim_t *sim, uint64_t runs, aco_sim_stats_t *stats, aco__sim_search_t *search,
                     const char *program)
{
    for (uint64_t i = 0; i < runs; i++) {
        uint64_t seed = sim->options.seed + i;
        aco__last_words_of(seed);
        if (run_first(sim, seed, runs, search) != 0)
            return -1;
        add(stats, sim);
        if (sim->options.check && !sim->has_failed && repeat(sim, seed) != 0)
            return -1;
        if (sim->has_failed)
            return tell_failure(sim, runs, stats, search, program);
    }
    return 0;
}

/* NULL: nothing. */
static const char *what_is_wrong_in(const aco_sim_options_t *o, uint64_t runs)
{
    return runs - 1 > UINT64_MAX - (o->seed ? o->seed : 1)        ? "the last seed is above 2^64 - 1"
           : o->schedule > ACO_SIM_FIFO                           ? "the schedule is unknown"
           : o->changes < 0 || o->changes > ACO__SIM_MOST_CHANGES ? "the number of changes is negative or above 64"
           : o->turn_ns < 0 || o->turn_ns > ACO_SECOND            ? "the time of a turn is negative or above a second"
           : o->events < 0 || o->events > ACO__SIM_MOST_EVENTS    ? "the number of events is negative or above 100000"
           : o->attempts < 0                                      ? "the number of attempts is negative"
           : o->shrink && (o->replay || o->check) ? "no shorter run is searched with `replay` or `check`"
           : ACO__RESERVED_IS_SET(o)              ? "a reserved field is not 0"
                                                  : NULL;
}

/* With checked options. NULL without memory. */
static aco_sim_t *new_sim(ACO__SWITCHES aco_sim_function_t scenario, void *arg, const aco_sim_options_t *options)
{
    aco_sim_t *sim = calloc(1, sizeof *sim);
    aco__chooser_t *chooser;
    if (!sim)
        return NULL;
    sim->scenario = scenario;
    sim->arg = arg;
    sim->options = *options;
    if (!sim->options.seed)
        sim->options.seed = 1;
    if (!sim->options.changes)
        sim->options.changes = CHANGES;
    if (!sim->options.max_turns)
        sim->options.max_turns = MOST_TURNS;
    chooser = &sim->threads.first.chooser;
    chooser->runnable = runnable;
    chooser->choose = choose;
    chooser->ended = ended;
    chooser->each = each_task;
    chooser->idle = idle;
    chooser->failed = failed;
    chooser->admits = admits;
    chooser->refuse = refuse;
    chooser->look_up = look_up;
    chooser->disk_time = disk_time;
    return sim;
}

static void free_sim(aco_sim_t *sim)
{
    aco__history_free(&sim->history);
    aco__sim_notes_free(&sim->notes);
    aco__schedule_free(&sim->threads.first.schedule);
    free(sim);
}

static const char *name_of_program(const aco__sim_command_t *command)
{
    return command ? command->program : program_invocation_short_name;
}

/* No other simulation runs in the process. */
static int run_alone(ACO__SWITCHES aco_sim_function_t scenario, void *arg, uint64_t runs, aco_sim_stats_t *stats,
                     const aco_sim_options_t *options, const aco__sim_command_t *command, aco__sim_recorded_t *recorded)
{
    aco_sim_t *sim = new_sim(scenario, arg, options);
    aco__sim_search_t search = {0};
    int done, error;
    if (!sim || aco__sim_notes_new(&sim->notes, sim->options.events) != 0) {
        free(sim);
        return aco__service_fail(ENOMEM, call, "no memory");
    }
    sim->decisions = recorded ? &recorded->decisions : NULL;
    aco__chooser_prepare();
    aco__sim_calls_install();
    aco__last_words_begin(&sim->notes, command);
    done = run_seeds(sim, runs, stats, &search, name_of_program(command));
    error = errno;
    if (recorded && done == 0)
        aco__sim_say(sim, "the run of %.100s does not fail any more; it failed: %s", options->replay, recorded->reason);
    aco__last_words_end();
    aco__sim_search_end(&search);
    free_sim(sim);
    errno = error;
    return done;
}

/* Makes one run as the file has it. */
static int replay(ACO__SWITCHES aco_sim_function_t scenario, void *arg, aco_sim_stats_t *stats,
                  const aco_sim_options_t *options, const aco__sim_command_t *command)
{
    aco_sim_options_t like_recorded = *options;
    aco__sim_recorded_t recorded;
    int done = aco__sim_recorded_read(&recorded, options->replay, name_of_program(command), call), error;
    if (done == 0 && options->seed && options->seed != recorded.seed)
        done = aco__service_fail(EINVAL, call, "the file to replay is of another seed");
    if (done == 0) {
        like_recorded.seed = recorded.seed;
        like_recorded.turn_ns = recorded.turn_ns;
        like_recorded.max_turns = recorded.max_turns;
        aco__last_words_replay(options->replay);
        done = run_alone(scenario, arg, 1, stats, &like_recorded, command, &recorded);
        aco__last_words_replay(NULL);
    }
    error = errno;
    aco__sim_recorded_free(&recorded);
    errno = error;
    return done;
}

int aco__sim_run(aco_sim_function_t scenario, void *arg, uint64_t runs, aco_sim_stats_t *stats,
                 const aco_sim_options_t *options, const aco__sim_command_t *command)
{
    static const aco_sim_options_t defaults = {0};
    static int is_running;
    aco_sim_stats_t own;
    const char *wrong;
    int done;
    if (!stats)
        stats = &own;
    memset(stats, 0, sizeof *stats);
    if (!options)
        options = &defaults;
    if (!scenario || !runs)
        return aco__service_fail(EINVAL, call, scenario ? "it is to run 0 times" : "the scenario is NULL");
    wrong = what_is_wrong_in(options, runs);
    if (wrong)
        return aco__service_fail(EINVAL, call, wrong);
    if (__atomic_exchange_n(&is_running, 1, __ATOMIC_ACQUIRE))
        return aco__service_fail(EBUSY, call, "a simulation runs already");
    done = options->replay ? replay(scenario, arg, stats, options, command)
                           : run_alone(scenario, arg, runs, stats, options, command, NULL);
    __atomic_store_n(&is_running, 0, __ATOMIC_RELEASE);
    return done;
}

int aco_sim_run(aco_sim_function_t scenario, void *arg, uint64_t runs, aco_sim_stats_t *stats,
                const aco_sim_options_t *options)
{
    return aco__sim_run(scenario, arg, runs, stats, options, NULL);
}
