/* Nodes crash and start again. Both happen when the running task's turn ends: it may be one of the node's. */
#include "sim/time_wait.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"
#include "aco/detail/signals.h"

#include <errno.h>
#include <stdlib.h>

/* The node's tasks never run again. */
static void end_tasks_of_node(aco_sim_t *sim, aco_sim_node_t *node)
{
    aco__sim_task_t *tasks;
    size_t n = aco__schedule_take(&sim->threads.first.schedule, node, &tasks);
    if (n == SIZE_MAX) {
        aco__sim_fail(sim, "there is no memory for the crash of node \"%s\"", node->name);
        return;
    }
    for (size_t i = 0; i < n; i++)
        aco__chooser_abandon(&sim->threads.first.chooser, tasks[i].task);
    free(tasks);
}

static void crash(aco_sim_t *sim, aco_sim_node_t *node)
{
    aco_sim_crash_t how = node->how_to_crash;
    aco__sim_node_end_threads(sim, node);
    aco__sim_arrive(sim); /* what has arrived until now */
    if (sim->nodes.scenario.tasks) /* else the run is over */
        aco__sim_node_note(node, ACO__SIM_CRASHED);
    if (how == ACO_SIM_CRASH_ANY)
        how = aco__sim_chance(sim, 2) ? ACO_SIM_CRASH_SILENT : ACO_SIM_CRASH_RESET;
    node->is_dark = how == ACO_SIM_CRASH_SILENT;
    end_tasks_of_node(sim, node);
    aco__listeners_forget(&node->blocked_for_good);
    node->signals = node->blocked_for_good = 0;
    aco__sim_opened_crash(sim, node);
    if (node->is_dark) {
        aco__sim_ports_forget(node->sim, node); /* behind the sockets' end: closing them keeps ports */
        aco__sim_disk_crash(sim, &node->disk);
    }
    node->is_up = node->is_suspended = 0;
    sim->nodes.have_crashed = 1;
}

int aco__sim_nodes_settle(aco_sim_t *sim)
{
    int has_changed = 0, is_over = !sim->nodes.scenario.tasks;
    if ((!sim->nodes.have_changes && !is_over) || sim->has_failed)
        return 0;
    sim->nodes.have_changes = 0;
    if (is_over && sim->nodes.own.tasks) {
        end_tasks_of_node(sim, &sim->nodes.own);
        has_changed = 1;
    }
    ACO__SIM_EACH_NODE(sim, node)
    {
        if (node->is_up && (node->is_to_crash || is_over)) {
            crash(sim, node);
            has_changed = 1;
        }
        if (node->is_to_start && !is_over) {
            aco__sim_node_note(node, ACO__SIM_STARTED);
            aco__sim_node_start(node);
            has_changed = 1;
        }
        node->is_to_crash = node->is_to_start = 0;
    }
    return has_changed;
}

/* ---- What a crash leaves ---- */

typedef struct ended_tasks {
    aco_t **tasks;
    size_t n;
} ended_tasks_t;

static int collect_ended(aco_t *co, void *arg)
{
    ended_tasks_t *ended = arg;
    if (aco_state(co) == ACO_STATE_DONE)
        ended->tasks[ended->n++] = co;
    return 0;
}

void aco__sim_nodes_bury(size_t live)
{
    ended_tasks_t ended = {malloc((live ? live : 1) * sizeof *ended.tasks), 0};
    if (!ended.tasks)
        return;
    (void)aco_each(collect_ended, &ended);
    while (ended.n > 0)
        aco_destroy(ended.tasks[--ended.n]);
    free(ended.tasks);
}

/* ---- The calls ---- */

int aco_sim_crash(aco_sim_node_t *node, aco_sim_crash_t how)
{
    static const char call[] = "aco_sim_crash";
    if (aco__sim_node_check(node, call) != 0)
        return -1;
    if (how > ACO_SIM_CRASH_SILENT)
        return aco__service_fail(EINVAL, call, "the kind of crash is unknown");
    if (!aco_sim_node_is_up(node))
        return aco__service_fail(ESRCH, call, "the node has crashed already");
    node->how_to_crash = how;
    node->is_to_crash = node->sim->nodes.have_changes = 1;
    node->is_to_start = 0;
    return 0;
}

int aco_sim_restart(aco_sim_node_t *node)
{
    if (aco__sim_node_check(node, "aco_sim_restart") != 0)
        return -1;
    if (node->is_up && !node->is_to_crash)
        node->how_to_crash = ACO_SIM_CRASH_ANY;
    node->is_to_crash = node->is_up;
    node->is_to_start = node->sim->nodes.have_changes = 1;
    return 0;
}
