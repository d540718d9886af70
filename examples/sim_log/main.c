/* The replicated log (log.h), tested in a simulation: three clients write and read while nodes crash, links and disks
 * fail. What the clients are told must agree with one order of their commands. With a number from 1 to 10 one of ten
 * faults is in the log, and the simulation finds it. With a folder it writes there, for each seed, what the clients
 * asked and were told, for Porcupine (docs/simulation.md, "Histories for checkers").
 *
 *   sim_log [--runs N] [--seed N] [--help] ... [-- FAULT [FOLDER]] */
#include "log.h"

#include "aco/io.h"
#include "aco/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMANDS = 12, LAST_COMMANDS = 3, ATTEMPTS = 10 }; /* of each client, at the end, for each command */

static const char *const addresses[NODES] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
static aco_sim_t *sim;
static node_t nodes[NODES];
static aco_sim_node_t *machines[NODES];
static const char *history_folder;
static aco_sim_history_t *history;

int64_t random_below(int64_t limit)
{
    return (int64_t)aco_sim_random(sim, (uint64_t)limit);
}

/* ---- What has happened, as nobody in the system can see it ---- */

static command_t order[MOST_ENTRIES + 1]; /* the agreed order; number 0: nobody has carried it out yet */
static int32_t values[MOST_ENTRIES + 1];  /* the value after it */
static int64_t done_at[CLIENTS][COMMANDS + LAST_COMMANDS + 1]; /* where the command was done */
static int64_t told;                           /* the last place that a client was told */
static int leaders[MOST_ENTRIES];              /* of each term: the node's number + 1 */

static void begin_anew(void)
{
    memset(order, 0, sizeof order);
    memset(values, 0, sizeof values);
    memset(done_at, 0, sizeof done_at);
    memset(leaders, 0, sizeof leaders);
    told = 0;
}

static void check_first(const node_t *node, int64_t index, const command_t *command, int was_repeated)
{
    order[index] = *command;
    values[index] = node->value;
    if (was_repeated)
        return;
    if (done_at[command->client][command->number])
        aco_sim_fail(sim, "a command is carried out twice");
    done_at[command->client][command->number] = index;
}

void observe_applied(const node_t *node, int64_t index, const command_t *command, int was_repeated)
{
    if (order[index].number == 0)
        check_first(node, index, command, was_repeated);
    else if (memcmp(&order[index], command, sizeof *command) != 0)
        aco_sim_fail(sim, "two nodes carry out different commands");
    else if (values[index] != node->value)
        aco_sim_fail(sim, "two nodes have different values");
}

void observe_leader(const node_t *node)
{
    if (node->term >= MOST_ENTRIES)
        return;
    if (leaders[node->term] && leaders[node->term] != node->number + 1)
        aco_sim_fail(sim, "a term has two leaders");
    leaders[node->term] = node->number + 1;
}

/* A command that has begun after another one has ended comes after it. */
static void check_answer(const command_t *command, const message_t *answer, int64_t told_before)
{
    if (answer->index < told_before)
        aco_sim_fail(sim, "an answer from the past");
    if (answer->entry.command.value != values[answer->index])
        aco_sim_fail(sim, "an answer with another value");
    if (command->is_write && done_at[command->client][command->number] != answer->index)
        aco_sim_fail(sim, "a write is not where it was said to be");
    told = answer->index > told ? answer->index : told;
}

/* ---- Faults beside the nemesis ---- */

static int64_t begun_at;
static int64_t crash_chance; /* of a thousand */

static void start_again(aco_sim_t *run, void *machine)
{
    (void)run;
    if (!aco_sim_node_is_up(machine))
        aco_sim_restart(machine);
}

/* The worst time for a leader to crash. Another one may take over before it comes back. */
void observe_taken(const node_t *node)
{
    aco_sim_node_t *machine = machines[node->number];
    if (random_below(1000) < crash_chance && aco_sim_crash(machine, ACO_SIM_CRASH_ANY) == 0)
        aco_sim_at(sim, aco_now() - begun_at + random_below(3 * ACO_SECOND), start_again, machine);
}

/* ---- Clients ---- */

static int ask(int fd, const command_t *command, int node, message_t *answer)
{
    message_t request;
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int64_t deadline = aco_now() + 300 * ACO_MILLISECOND;
    memset(&request, 0, sizeof request);
    request.kind = REQUEST;
    request.entry.command = *command;
    if (aco_io_address_of_text("udp", addresses[node], LOG_PORT, &address, &length) != 0 ||
        aco_io_sendto(fd, &request, sizeof request, 0, (struct sockaddr *)&address, length) < 0)
        return -1;
    while (aco_io_wait_readable_until(fd, deadline) == 0) {
        ssize_t n = aco_io_recv(fd, answer, sizeof *answer, MSG_DONTWAIT);
        if (n == (ssize_t)sizeof *answer && answer->entry.command.number == command->number)
            return answer->is_good ? 0 : -1; /* others are answers to earlier requests */
    }
    return -1;
}

static void begin_history(void)
{
    char path[4096];
    history = NULL;
    if (!history_folder)
        return;
    snprintf(path, sizeof path, "%s/%llu.jsonl", history_folder, (unsigned long long)aco_sim_seed(sim));
    history = aco_sim_history(sim, path);
    if (!history)
        aco_sim_fail(sim, "the history cannot be written");
}

static void note(aco_sim_step_t step, const command_t *command, int64_t process, int32_t value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)value);
    if (history && aco_sim_history_add(history, step, process, command->is_write ? "write" : "read", "x", text) != 0)
        aco_sim_fail(sim, "the history cannot be written");
}

/* 0; -1: nobody knows whether it was done. */
static int call(int fd, const command_t *command)
{
    int64_t process = command->client + (int64_t)CLIENTS * command->number, told_before = told;
    message_t answer;
    note(ACO_SIM_INVOKE, command, process, command->value);
    for (int i = 0; i < ATTEMPTS; i++) {
        if (ask(fd, command, (int)random_below(NODES), &answer) == 0) {
            check_answer(command, &answer, told_before);
            note(ACO_SIM_OK, command, process, answer.entry.command.value);
            return 0;
        }
        aco_sleep(50 * ACO_MILLISECOND);
    }
    note(ACO_SIM_INFO, command, process, command->value);
    return -1;
}

static void *live(void *number)
{
    command_t command = {.client = (int32_t)(intptr_t)number};
    int fd = aco_io_bind("udp", "192.0.2.1", "0", NULL);
    for (command.number = 1; command.number <= COMMANDS; command.number++) {
        aco_sleep(random_below(2 * ACO_SECOND));
        command.is_write = random_below(2) != 0;
        command.value = command.is_write ? 100 * command.client + command.number : 0;
        (void)call(fd, &command);
    }
    aco_io_close(fd);
    return NULL;
}

/* ---- The simulation ---- */

static void finish(void)
{
    command_t read = {.number = COMMANDS};
    int fd = aco_io_bind("udp", "192.0.2.1", "0", NULL), done = -1;
    while (done != 0 && read.number++ < COMMANDS + LAST_COMMANDS)
        done = call(fd, &read);
    aco_io_close(fd);
    if (done != 0)
        aco_sim_fail(sim, "all has healed, and nobody leads");
}

static void scenario(aco_sim_t *run, void *arg)
{
    aco_sim_link_t link = {.latency = {ACO_MILLISECOND, 20 * ACO_MILLISECOND}};
    aco_t *clients[CLIENTS];
    (void)arg;
    link.loss = link.duplicates = link.reordering = 0.02;
    sim = run;
    begun_at = aco_now();
    begin_anew();
    begin_history();
    aco_sim_link(run, "*", "*", &link);
    for (int i = 0; i < NODES; i++) {
        nodes[i].number = i;
        nodes[i].addresses = addresses;
        machines[i] = aco_sim_node(run, addresses[i], addresses[i], log_node, &nodes[i]);
    }
    crash_chance = random_below(2) ? random_below(300) : 0;
    aco_sim_nemesis(run, ACO_SIM_FAULT_ALL);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = aco_spawn(live, (void *)(intptr_t)i, NULL);
    for (int i = 0; i < CLIENTS; i++)
        aco_join(clients[i], NULL);
    crash_chance = 0;
    aco_sim_nemesis(run, 0);
    aco_sleep(4 * ACO_SECOND);
    finish();
}

int main(int argc, char **argv)
{
    int own = 1;
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    if (own + 1 < argc)
        fault = (fault_t)atoi(argv[own + 1]);
    if (own + 2 < argc)
        history_folder = argv[own + 2];
    return aco_sim_main(argc, argv, scenario, NULL, NULL);
}
