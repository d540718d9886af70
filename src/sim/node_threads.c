/* Threads of nodes, and how a crash ends them: a thread has frames of libc and of Acorn, maybe amid something that all
 * nodes share. So each goes on until it is at rest: before its first call, between two turns of its tasks, or where it
 * waits, and without a mutex in any case. That is also when a node without threads crashes: between
 * turns. Then the threads, one after the other, jump out of their functions, give their tasks up, and end. */
#include "sim/node_threads.h"
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

void aco__sim_thread_is_to_leave(aco__sim_thread_t *thread)
{
    ACO__ASSERT(thread->is_at_rest && !thread->has_ended);
    thread->is_to_leave = 1;
    thread->call = NULL;
    thread->object = NULL;
}

/* ---- On a thread that ends ---- */

void aco__sim_abandon_tasks(aco__sim_thread_t *thread)
{
    aco__sim_task_t *tasks;
    size_t n = aco__schedule_take_all(&thread->schedule, &tasks);
    if (n == SIZE_MAX) {
        aco__sim_fail(thread->sim, "there is no memory for the crash of node \"%s\"", thread->home->name);
        return;
    }
    for (size_t i = 0; i < n; i++)
        aco__chooser_abandon(&thread->chooser, tasks[i].task);
    free(tasks);
    aco__chooser_bequeath(&thread->chooser, &thread->sim->threads.first.chooser);
}

/* ---- On the first thread ---- */

/* One of the node that has not ended: any, or one that is not at rest. NULL: there is none. */
static aco__sim_thread_t *find_thread(aco_sim_t *sim, const aco_sim_node_t *node, int is_moving)
{
    aco__sim_thread_t *thread = aco__sim_thread_after(sim, &sim->threads.first);
    while (thread && (thread->home != node || thread->has_ended || (is_moving && thread->is_at_rest)))
        thread = aco__sim_thread_after(sim, thread);
    return thread;
}

/* Until a thread of the node is at rest or has ended. 0; or an errno: the run has failed. */
static int await_node(aco_sim_t *sim, const aco_sim_node_t *node)
{
    return aco__sim_wait(sim, "aco_sim_crash", node, INT64_MAX, sim->threads.is_ending ? ACO__SIM_PATIENT : 0);
}

static void end_thread(aco_sim_t *sim, aco__sim_thread_t *thread)
{
    aco__sim_thread_is_to_leave(thread);
    while (!thread->has_ended)
        if (await_node(sim, thread->home) != 0)
            return;
    if (thread->is_joinable) /* destructors of what is local to it run without the baton */
        (void)aco__sim_real.pthread_join(thread->thread, NULL);
    thread->is_joinable = 0;
}

void aco__sim_node_end_threads(aco_sim_t *sim, aco_sim_node_t *node)
{
    aco__sim_thread_t *thread;
    node->is_stopping = find_thread(sim, node, 0) != NULL;
    if (!node->is_stopping) /* all have ended, though a signal may have said that they are to stop */
        return;
    while (find_thread(sim, node, 1))
        if (await_node(sim, node) != 0)
            return;
    while ((thread = find_thread(sim, node, 0)) != NULL) {
        end_thread(sim, thread);
        if (!thread->has_ended)
            return;
    }
    node->is_stopping = 0;
    memset(node->pool, 0, sizeof node->pool);
}

void aco__sim_nodes_end_threads(aco_sim_t *sim)
{
    if (!sim->threads.others)
        return;
    sim->threads.is_ending = 1;
    sim->threads.points = 0;
    ACO__SIM_EACH_NODE(sim, node)
    aco__sim_node_end_threads(sim, node);
    sim->threads.is_ending = 0;
}
