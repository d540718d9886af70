/* Promises: nodes of a simulation have addresses of their own, crash without cleanup, and start again. */
#include "sim_ends.h"

#include "aco/group.h"
#include "aco/scope.h"
#include "aco/sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RUNS = 50 };

static void *never(void *arg)
{
    (void)arg;
    for (;;)
        aco_sleep(ACO_SECOND);
    return NULL;
}

static void *nothing(void *arg)
{
    return arg;
}

/* ---- Addresses ---- */

/* Tells each client its address. */
static void *tell_addresses(void *port)
{
    int listener = aco_io_listen("tcp", NULL, port, NULL), fd;
    char address[ACO_IO_ADDRESS_SIZE];
    CHECK(listener >= 0);
    while ((fd = aco_io_accept(listener)) >= 0) {
        CHECK(aco_io_peer_address(fd, address, sizeof address) == 0);
        CHECK(aco_io_write_all(fd, address, strlen(address)) > 0);
        CHECK(aco_io_close(fd) == 0);
    }
    return NULL;
}

/* Whether this host says that the caller has this address. */
static int is_known_as(const char *host, const char *port, const char *address)
{
    char got[ACO_IO_ADDRESS_SIZE] = "";
    int fd = aco_io_dial("tcp", host, port, NULL);
    CHECK(fd >= 0);
    CHECK(aco_io_read_exactly(fd, got, sizeof got - 1) > 0);
    CHECK(aco_io_close(fd) == 0);
    return is_in(got, address);
}

static int dial_error(const char *host, const char *port)
{
    int fd = aco_io_dial("tcp", host, port, NULL);
    CHECK(fd < 0);
    return errno;
}

static void *use_addresses(void *done)
{
    aco_sleep(ACO_SECOND); /* the others listen */
    CHECK(is_known_as("10.0.0.1", "7", "[::ffff:10.0.0.2]:"));
    CHECK(is_known_as("10.0.0.2", "7", "[::ffff:10.0.0.2]:")); /* its own */
    CHECK(is_known_as("127.0.0.1", "7", "[::ffff:127.0.0.1]:"));
    CHECK_EQ(dial_error("10.0.0.1", "8"), ECONNREFUSED);
    CHECK_EQ(dial_error("fd00::1", "7"), ENETUNREACH); /* it has no address for that */
    CHECK(aco_io_listen("tcp", "10.0.0.1", "9", NULL) < 0);
    CHECK_EQ(errno, EADDRNOTAVAIL);
    CHECK(aco_io_listen("tcp", "10.0.0.9", "9", NULL) < 0);
    CHECK_EQ(errno, EADDRNOTAVAIL);
    *(int *)done = 1;
    return NULL;
}

static void *serve_and_use(void *done)
{
    detached(tell_addresses, "7");
    return use_addresses(done);
}

static void have_addresses(aco_sim_t *sim, void *arg)
{
    int done = 0;
    (void)arg;
    CHECK(aco_sim_node(sim, "a", "10.0.0.1, fd00::1", tell_addresses, "7") != NULL);
    CHECK(aco_sim_node(sim, "b", "10.0.0.2", serve_and_use, &done) != NULL);
    aco_sleep(ACO_SECOND / 2);
    CHECK(is_known_as("10.0.0.1", "7", "[::ffff:192.0.2.1]:"));
    CHECK(is_known_as("fd00::1", "7", "[2001:db8::1]:"));
    CHECK_EQ(dial_error("127.0.0.1", "7"), ECONNREFUSED);
    CHECK_EQ(dial_error("10.0.0.9", "7"), ECONNREFUSED); /* the scenario has it */
    CHECK(aco_io_listen("tcp", "10.0.0.1", "9", NULL) < 0);
    CHECK_EQ(errno, EADDRNOTAVAIL);
    aco_sleep(10 * ACO_SECOND);
    CHECK(done);
}

/* ---- Crashes ---- */

typedef struct machine {
    int starts, ends; /* of its function */
    aco_channel_t *news;
    aco_sim_node_t *node;
} machine_t;

static void count_end(void *arg)
{
    ((machine_t *)arg)->ends++;
}

/* It has a task in each kind of wait. */
typedef struct waits {
    aco_mutex_t mutex;
    aco_cond_t cond;
    aco_semaphore_t semaphore;
    aco_wait_group_t wait_group;
    aco_rwlock_t rwlock;
    aco_event_t event;
    aco_barrier_t barrier;
    aco_channel_t *empty, *full, *shared;
    aco_t *sleeper;
    machine_t *machine;
} waits_t;

static void *lock(void *arg)
{
    waits_t *w = arg;
    (void)aco_mutex_lock(&w->mutex);
    return NULL;
}

static void *wait_cond(void *arg)
{
    waits_t *w = arg;
    aco_mutex_t own = ACO_MUTEX_INIT;
    (void)aco_mutex_lock(&own);
    (void)aco_cond_wait(&w->cond, &own);
    return NULL;
}

static void *acquire(void *arg)
{
    (void)aco_semaphore_acquire(&((waits_t *)arg)->semaphore);
    return NULL;
}

static void *wait_all(void *arg)
{
    (void)aco_wait_group_wait(&((waits_t *)arg)->wait_group);
    return NULL;
}

static void *lock_to_read(void *arg)
{
    (void)aco_rwlock_rdlock(&((waits_t *)arg)->rwlock);
    return NULL;
}

static void *lock_to_write(void *arg)
{
    (void)aco_rwlock_wrlock(&((waits_t *)arg)->rwlock);
    return NULL;
}

static void *wait_event(void *arg)
{
    (void)aco_event_wait(&((waits_t *)arg)->event);
    return NULL;
}

static void *wait_barrier(void *arg)
{
    (void)aco_barrier_wait(&((waits_t *)arg)->barrier);
    return NULL;
}

static void *receive_shared(void *arg)
{
    int value;
    (void)aco_channel_receive(((waits_t *)arg)->shared, &value);
    return NULL;
}

static void *send_full(void *arg)
{
    int value = 1;
    (void)aco_channel_send(((waits_t *)arg)->full, &value);
    (void)aco_channel_send(((waits_t *)arg)->full, &value);
    return NULL;
}

static void *join_sleeper(void *arg)
{
    (void)aco_join(((waits_t *)arg)->sleeper, NULL);
    return NULL;
}

static void *park(void *arg)
{
    aco_scope_t scope;
    (void)aco_scope_begin(&scope, aco_after(7 * ACO_SECOND));
    (void)aco_park("a crash");
    (void)arg;
    return NULL;
}

static void *end_group(void *arg)
{
    aco_group_t group;
    (void)aco_group_begin(&group, ACO_KEEP_GOING);
    (void)aco_group_spawn(&group, never, arg, NULL);
    (void)aco_group_spawn(&group, park, arg, NULL);
    (void)aco_group_end(&group);
    return NULL;
}

static void *accept_one(void *arg)
{
    (void)arg;
    (void)aco_io_accept(aco_io_listen("tcp", NULL, "7", NULL));
    return NULL;
}

static void *run_ready(void *arg)
{
    for (int i = 0;; i++)
        if (i % 20 == 0)
            aco_sleep(ACO_SECOND);
        else
            aco_task_yield();
    return arg;
}

static aco_function_t const all_waits[] = {
    lock,         wait_cond,      acquire,   wait_all,     lock_to_read, lock_to_write, lock_to_read, wait_event,
    wait_barrier, receive_shared, send_full, join_sleeper, park,         end_group,     accept_one,   run_ready};

static void *wait_in_all_ways(void *arg)
{
    machine_t *machine = arg;
    waits_t *w = calloc(1, sizeof *w);
    machine->starts++;
    (void)aco_defer(count_end, machine);
    w->empty = aco_channel_new(0, sizeof(int));
    w->full = aco_channel_new(1, sizeof(int));
    w->shared = machine->news;
    w->barrier.count = 2;
    (void)aco_wait_group_add(&w->wait_group, 1);
    w->sleeper = aco_spawn(never, NULL, NULL);
    (void)aco_spawn(nothing, NULL, NULL); /* it ends, and nobody will join it */
    w->machine = machine;
    (void)aco_mutex_lock(&w->mutex);
    (void)aco_rwlock_rdlock(&w->rwlock);
    for (size_t i = 0; i < sizeof all_waits / sizeof *all_waits; i++)
        detached(all_waits[i], w);
    (void)aco_channel_receive(w->empty, &w->machine->ends);
    machine->ends++;
    free(w);
    return NULL;
}

static void crash_in_all_waits(aco_sim_t *sim, void *arg)
{
    machine_t machine = {0, 0, aco_channel_new(1, sizeof(int)), NULL};
    int value = 1;
    (void)arg;
    machine.node = aco_sim_node(sim, "a", "10.0.0.1", wait_in_all_ways, &machine);
    if (aco_sim_random(sim, 2))
        aco_sleep((int64_t)aco_sim_random(sim, 3 * ACO_SECOND));
    for (uint64_t i = aco_sim_random(sim, 100); i > 0; i--) /* some of its tasks can run */
        aco_task_yield();
    CHECK_EQ(aco_sim_node_is_up(machine.node), 1);
    CHECK(aco_sim_crash(machine.node, ACO_SIM_CRASH_ANY) == 0);
    CHECK_EQ(aco_sim_node_is_up(machine.node), 0);
    CHECK(aco_sim_crash(machine.node, ACO_SIM_CRASH_ANY) < 0);
    CHECK_EQ(errno, ESRCH);
    aco_sleep(1);
    CHECK(aco_channel_send(machine.news, &value) == 0); /* nobody takes it any more */
    CHECK(aco_channel_receive(machine.news, &value) == 0);
    CHECK(aco_sim_restart(machine.node) == 0);
    CHECK(aco_sim_restart(machine.node) == 0); /* once in a turn */
    aco_sleep(ACO_SECOND);
    CHECK(aco_sim_restart(machine.node) == 0); /* it crashes before */
    aco_sleep(10 * ACO_SECOND);
    CHECK(machine.starts == 3 || machine.starts == 2);
    CHECK_EQ(machine.ends, 0);
    (void)aco_sim_crash(machine.node, ACO_SIM_CRASH_ANY);
    aco_sleep(1);
    CHECK(aco_channel_destroy(machine.news) == 0);
}

/* Peers of a node that crashes get resets, and connections are refused until it has started again. */
static void *echo_one(void *arg)
{
    int listener = aco_io_listen("tcp", "10.0.0.1", "7", NULL);
    char byte;
    int fd;
    while ((fd = aco_io_accept(listener)) >= 0) {
        while (aco_io_read(fd, &byte, 1) == 1)
            CHECK(aco_io_write_all(fd, &byte, 1) == 1);
        CHECK(aco_io_close(fd) == 0);
    }
    return arg;
}

static void lose_connections(aco_sim_t *sim, void *arg)
{
    aco_sim_node_t *node = aco_sim_node(sim, "echo", "10.0.0.1", echo_one, NULL);
    char byte = 'x';
    int fd;
    (void)arg;
    aco_sleep(ACO_SECOND);
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    CHECK(aco_io_write_all(fd, &byte, 1) == 1);
    CHECK(aco_io_read(fd, &byte, 1) == 1);
    CHECK(aco_sim_crash(node, ACO_SIM_CRASH_RESET) == 0);
    CHECK(aco_io_read(fd, &byte, 1) < 0);
    CHECK_EQ(errno, ECONNRESET);
    CHECK_EQ(dial_error("10.0.0.1", "7"), ECONNREFUSED);
    CHECK(aco_io_close(fd) == 0);
    CHECK(aco_sim_restart(node) == 0);
    aco_sleep(ACO_SECOND);
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    CHECK(aco_io_write_all(fd, &byte, 1) == 1);
    CHECK(aco_io_read(fd, &byte, 1) == 1);
    CHECK(aco_io_close(fd) == 0);
}

/* A machine that loses its power tells nobody. */
static void lose_power(aco_sim_t *sim, void *arg)
{
    aco_sim_node_t *node = aco_sim_node(sim, "echo", "10.0.0.1", echo_one, NULL);
    char bytes[2] = "xx";
    int restarts = aco_sim_random(sim, 2) == 0, fd;
    int64_t began;
    (void)arg;
    aco_sleep(ACO_SECOND);
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    CHECK(aco_io_write_all(fd, bytes, 1) == 1);
    CHECK(aco_io_read(fd, bytes, 1) == 1);
    if (aco_sim_random(sim, 2)) /* what is on its way does not arrive */
        CHECK(aco_io_write_all(fd, bytes, 2) == 2);
    CHECK(aco_sim_crash(node, ACO_SIM_CRASH_SILENT) == 0);
    began = aco_now();
    CHECK_EQ(dial_error("10.0.0.1", "7"), ETIMEDOUT);
    CHECK(aco_now() - began > 60 * ACO_SECOND);
    CHECK(aco_io_write_all(fd, bytes, 1) == 1);
    if (restarts)
        CHECK(aco_sim_restart(node) == 0);
    CHECK(aco_io_read(fd, bytes, 1) < 0);
    CHECK_EQ(errno, restarts ? ECONNRESET : ETIMEDOUT);
    CHECK(aco_io_close(fd) == 0);
    if (!restarts)
        return;
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    CHECK(aco_io_write_all(fd, bytes, 1) == 1);
    CHECK(aco_io_read(fd, bytes, 1) == 1);
    CHECK(aco_io_close(fd) == 0);
}

/* Who only reads of a machine without power waits for ever. */
static void wait_half_open(aco_sim_t *sim, void *arg)
{
    aco_sim_node_t *node = aco_sim_node(sim, "echo", "10.0.0.1", echo_one, NULL);
    char byte;
    int fd;
    (void)arg;
    aco_sleep(ACO_SECOND);
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    aco_sleep(ACO_SECOND);
    CHECK(aco_sim_crash(node, ACO_SIM_CRASH_SILENT) == 0);
    (void)aco_io_read(fd, &byte, 1);
}

/* ---- Partitions ---- */

static void *count_datagrams(void *count)
{
    int fd = aco_io_bind("udp", "10.0.0.1", "9", NULL);
    char byte;
    while (aco_io_recv(fd, &byte, 1, 0) == 1)
        ++*(int *)count;
    return NULL;
}

static void *serve_both(void *count)
{
    detached(echo_one, NULL);
    return count_datagrams(count);
}

/* What TCP sends into a partition arrives when it has healed. Datagrams are lost. */
static void part_and_heal(aco_sim_t *sim, void *arg)
{
    int datagrams = 0, is_one_way = aco_sim_random(sim, 2) == 0, fd, udp;
    const char *from = aco_sim_random(sim, 2) ? "*" : "scenario", *to = aco_sim_random(sim, 2) ? "*" : "echo";
    int64_t began = aco_now();
    char byte = 'x';
    (void)arg;
    CHECK(aco_sim_node(sim, "echo", "10.0.0.1", serve_both, &datagrams) != NULL);
    aco_sleep(ACO_SECOND);
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    udp = aco_io_dial("udp", "10.0.0.1", "9", NULL);
    CHECK(aco_io_write_all(fd, &byte, 1) == 1);
    CHECK(aco_io_read(fd, &byte, 1) == 1);
    if (is_one_way)
        CHECK(aco_sim_partition(sim, "echo", "scenario", 1) == 0);
    else
        CHECK(aco_sim_partition(sim, from, to, 1) == 0);
    CHECK(aco_io_write_all(fd, &byte, 1) == 1);
    CHECK(aco_io_send(udp, &byte, 1, 0) == 1);
    CHECK(aco_io_wait_readable_until(fd, aco_after(100 * ACO_SECOND)) < 0);
    CHECK_EQ(datagrams, is_one_way);
    CHECK(aco_sim_partition(sim, "*", "*", 0) == 0);
    CHECK(aco_io_read(fd, &byte, 1) == 1);
    CHECK(aco_now() - began >= 100 * ACO_SECOND);
    CHECK(aco_io_close(fd) == 0);
    CHECK(aco_io_close(udp) == 0);
}

/* Nothing heals: what was sent fails after a quarter of an hour, and nobody can connect. */
static void part_for_ever(aco_sim_t *sim, void *arg)
{
    int datagrams = 0, fd;
    int64_t began;
    char byte = 'x';
    (void)arg;
    CHECK(aco_sim_node(sim, "echo", "10.0.0.1", serve_both, &datagrams) != NULL);
    aco_sleep(ACO_SECOND);
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    CHECK(aco_sim_partition(sim, "scenario", "echo", 1) == 0);
    CHECK_EQ(dial_error("10.0.0.1", "7"), ETIMEDOUT);
    CHECK(aco_sim_partition(sim, "scenario", "echo", 0) == 0);
    CHECK(aco_sim_partition(sim, "*", "echo", 1) == 0);
    CHECK(aco_sim_partition(sim, "scenario", "*", 0) == 0); /* it counts, since it is the latest */
    CHECK(aco_io_write_all(fd, &byte, 1) == 1);
    CHECK(aco_io_read(fd, &byte, 1) == 1);
    CHECK(aco_sim_partition(sim, "*", "*", 1) == 0);
    began = aco_now();
    CHECK(aco_io_write_all(fd, &byte, 1) == 1);
    CHECK(aco_io_read(fd, &byte, 1) < 0);
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK(aco_now() - began > 900 * ACO_SECOND && aco_now() - began < 1000 * ACO_SECOND);
    CHECK(aco_io_close(fd) == 0);
}

/* The latest link for two nodes counts, also for nodes that are made later. */
static void have_links(aco_sim_t *sim, void *arg)
{
    const aco_sim_link_t slow = {.latency = {ACO_SECOND, ACO_SECOND}}, fast = {.latency = {1, 1}};
    int64_t began;
    int fd;
    (void)arg;
    CHECK(aco_sim_link(sim, "*", "*", &slow) == 0);
    CHECK(aco_sim_node(sim, "echo", "10.0.0.1", echo_one, NULL) != NULL);
    CHECK(aco_sim_link(sim, "echo", "*", &fast) == 0);
    aco_sleep(ACO_SECOND);
    began = aco_now();
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    CHECK_EQ(aco_now() - began, ACO_SECOND + 1);
    CHECK(aco_io_close(fd) == 0);
    CHECK(aco_sim_link(sim, "scenario", "echo", &fast) == 0);
    began = aco_now();
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    CHECK_EQ(aco_now() - began, 2);
    CHECK(aco_io_close(fd) == 0);
    CHECK(aco_sim_link(sim, "*", "*", &slow) == 0);
    began = aco_now();
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    CHECK_EQ(aco_now() - began, 2 * ACO_SECOND);
    CHECK(aco_io_close(fd) == 0);
}

/* A node may crash itself: the call returns, and the task's turn is its last. */
static void *crash_self(void *arg)
{
    machine_t *machine = arg;
    machine->starts++;
    detached(never, NULL);
    aco_sleep(ACO_SECOND);
    CHECK(aco_sim_crash(machine->node, ACO_SIM_CRASH_ANY) == 0);
    aco_sleep(ACO_SECOND);
    machine->ends++;
    return NULL;
}

static void let_crash_itself(aco_sim_t *sim, void *arg)
{
    machine_t machine = {0};
    (void)arg;
    machine.node = aco_sim_node(sim, "a", "10.0.0.1", crash_self, &machine);
    aco_sleep(10 * ACO_SECOND);
    CHECK_EQ(machine.starts, 1);
    CHECK_EQ(machine.ends, 0);
    CHECK_EQ(aco_sim_node_is_up(machine.node), 0);
}

/* Who joins a task of a node gets NULL; a member of a group outside of the node has failed. */
static void *tell_task(void *task)
{
    *(aco_t **)task = aco_spawn(never, NULL, NULL);
    return NULL;
}

static void *join_and_crash(void *node)
{
    aco_sleep(ACO_SECOND);
    CHECK(aco_sim_crash(*(aco_sim_node_t **)node, ACO_SIM_CRASH_ANY) == 0);
    return NULL;
}

static void join_crashed(aco_sim_t *sim, void *arg)
{
    aco_t *task = NULL, *crasher;
    aco_sim_node_t *node = aco_sim_node(sim, "a", "10.0.0.1", tell_task, &task);
    void *result = arg;
    aco_sleep(1);
    crasher = aco_spawn(join_and_crash, &node, NULL);
    CHECK(aco_join(task, &result) == 0);
    CHECK(result == NULL);
    CHECK(aco_join(crasher, NULL) == 0);
}

static void *join_group(void *group)
{
    CHECK(aco_group_spawn(group, never, NULL, NULL) != NULL);
    return NULL;
}

static void fail_members(aco_sim_t *sim, void *arg)
{
    aco_group_t group;
    aco_sim_node_t *node;
    (void)arg;
    CHECK(aco_group_begin(&group, ACO_KEEP_GOING) == 0);
    node = aco_sim_node(sim, "a", "10.0.0.1", join_group, &group);
    aco_sleep(ACO_SECOND);
    CHECK(aco_sim_crash(node, ACO_SIM_CRASH_RESET) == 0);
    aco_sleep(ACO_SECOND);
    CHECK_EQ(group.failed, 1);
    CHECK_EQ(group.error, ECANCELED);
    (void)aco_group_end(&group);
}

/* A run ends when the scenario's tasks have: nodes may go on for ever. */
static void *spawn_on(void *arg)
{
    aco_sleep(ACO_SECOND);
    detached(never, arg);
    return NULL;
}

static void leave_nodes(aco_sim_t *sim, void *arg)
{
    CHECK(aco_sim_node(sim, "a", "10.0.0.1", echo_one, NULL) != NULL);
    CHECK(aco_sim_node(sim, "b", "10.0.0.2", spawn_on, NULL) != NULL);
    CHECK(aco_sim_node(sim, "c", "10.0.0.3", nothing, NULL) != NULL);
    aco_sleep(2 * ACO_SECOND);
    (void)arg;
}

/* ---- Mistakes ---- */

#define REFUSES(error, name, addresses, function)                                                                      \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        CHECK(aco_sim_node(sim, name, addresses, function, NULL) == NULL);                                             \
        CHECK_EQ(errno, error);                                                                                        \
    } while (0)

static void mistake_nodes(aco_sim_t *sim, void *arg)
{
    aco_sim_node_t *node = aco_sim_node(sim, "a", " 10.0.0.1 ,fd00::1 ", nothing, NULL);
    (void)arg;
    CHECK(strcmp(aco_sim_node_name(node), "a") == 0);
    CHECK(aco_sim_node(NULL, "b", "10.0.0.2", nothing, NULL) == NULL);
    CHECK_EQ(errno, EINVAL);
    REFUSES(EINVAL, "b", "10.0.0.2", NULL);
    REFUSES(EINVAL, NULL, "10.0.0.2", nothing);
    REFUSES(EINVAL, "", "10.0.0.2", nothing);
    REFUSES(EINVAL, "*", "10.0.0.2", nothing);
    REFUSES(EINVAL, "a name of 32 bytes, which are many", "10.0.0.2", nothing);
    REFUSES(EEXIST, "a", "10.0.0.2", nothing);
    REFUSES(EEXIST, "scenario", "10.0.0.2", nothing);
    REFUSES(EINVAL, "b", NULL, nothing);
    REFUSES(EINVAL, "b", "", nothing);
    REFUSES(EINVAL, "b", "10.0.0", nothing);
    REFUSES(EINVAL, "b", "10.0.0.2,", nothing);
    REFUSES(EINVAL, "b", "10.0.0.2 10.0.0.3", nothing);
    REFUSES(EINVAL, "b", "10.0.0.2,10.0.0.2", nothing);
    REFUSES(EINVAL, "b", "an address that is longer than any address of IPv6 can be", nothing);
    REFUSES(EINVAL, "b", "127.0.0.1", nothing);
    REFUSES(EINVAL, "b", "0.0.0.0", nothing);
    REFUSES(EINVAL, "b", "224.0.0.1", nothing);
    REFUSES(EINVAL, "b", "::1", nothing);
    REFUSES(EINVAL, "b", "ff02::1", nothing);
    REFUSES(EINVAL, "b", "10.1.0.1,10.1.0.2,10.1.0.3,10.1.0.4,10.1.0.5,10.1.0.6,10.1.0.7,10.1.0.8,10.1.0.9", nothing);
    REFUSES(EEXIST, "b", "10.0.0.2,10.0.0.1", nothing);
    REFUSES(EEXIST, "b", "::ffff:10.0.0.1", nothing);
    REFUSES(EEXIST, "b", "192.0.2.1", nothing);
    CHECK(is_in(aco_error_message(), "aco_sim_node: a node has one of the addresses already"));
    CHECK(aco_sim_crash(NULL, ACO_SIM_CRASH_ANY) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(aco_sim_restart(NULL) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(aco_sim_crash(node, (aco_sim_crash_t)3) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(aco_sim_partition(NULL, "*", "*", 1) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(aco_sim_partition(sim, "a", NULL, 1) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(aco_sim_partition(sim, "a", "b", 1) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(is_in(aco_error_message(), "aco_sim_partition: a node is unknown"));
    CHECK(aco_sim_link(sim, "b", "*", NULL) < 0);
    CHECK_EQ(errno, EINVAL);
}

/* ---- Reports ---- */

static void *wait_for_ever(void *arg)
{
    (void)aco_park("a message that never comes");
    return arg;
}

static void come_to_a_halt(aco_sim_t *sim, void *arg)
{
    CHECK(aco_sim_node(sim, "left", "10.0.0.1", wait_for_ever, NULL) != NULL);
    CHECK(aco_sim_node(sim, "right", "10.0.0.2", nothing, NULL) != NULL);
    (void)wait_for_ever(arg);
}

static const char *report_of(aco_sim_function_t scenario, const char *reason)
{
    static aco_sim_stats_t stats;
    const char *text;
    capture();
    (void)aco_sim_run(scenario, NULL, 1, &stats, NULL);
    text = release();
    CHECK(is_in(stats.reason, reason));
    return text;
}

/* ---- A leader and its followers ---- */

enum { NODES = 3, BEATS = 20 };

typedef struct follower {
    char name[16], address[24];
    aco_sim_node_t *node;
    int beats, starts;
} follower_t;

static void *follow(void *arg)
{
    follower_t *follower = arg;
    int listener = aco_io_listen("tcp", follower->address, "7", NULL), fd;
    char byte;
    follower->starts++;
    CHECK(listener >= 0);
    while ((fd = aco_io_accept(listener)) >= 0) {
        while (aco_io_read(fd, &byte, 1) == 1) {
            follower->beats++;
            if (aco_io_write_all(fd, &byte, 1) != 1)
                break;
        }
        (void)aco_io_close(fd);
    }
    return NULL;
}

/* Sends until so many answers have come. */
static void *lead(void *arg)
{
    const follower_t *follower = arg;
    int answers = 0;
    while (answers < BEATS) {
        int fd = aco_io_dial("tcp", follower->address, "7", NULL);
        while (fd >= 0 && answers < BEATS && beat(fd)) {
            answers++;
            aco_sleep(10 * ACO_MILLISECOND);
        }
        if (fd >= 0)
            CHECK(aco_io_close(fd) == 0);
        aco_sleep(10 * ACO_MILLISECOND);
    }
    return NULL;
}

static void *crash_some(void *arg)
{
    follower_t *followers = arg;
    aco_sim_t *sim = aco_sim_current();
    for (int i = 0; i < 5; i++) {
        follower_t *one = &followers[aco_sim_random(sim, NODES)];
        aco_sleep((int64_t)aco_sim_random(sim, 100 * ACO_MILLISECOND));
        if (aco_sim_node_is_up(one->node))
            CHECK(aco_sim_crash(one->node, ACO_SIM_CRASH_ANY) == 0);
        else
            CHECK(aco_sim_restart(one->node) == 0);
    }
    for (int i = 0; i < NODES; i++)
        if (!aco_sim_node_is_up(followers[i].node))
            CHECK(aco_sim_restart(followers[i].node) == 0);
    return NULL;
}

static void lead_under_crashes(aco_sim_t *sim, void *arg)
{
    follower_t followers[NODES];
    aco_group_t group;
    (void)arg;
    for (int i = 0; i < NODES; i++) {
        follower_t *f = &followers[i];
        memset(f, 0, sizeof *f);
        snprintf(f->name, sizeof f->name, "f%d", i);
        snprintf(f->address, sizeof f->address, "10.0.0.%d", i + 1);
        f->node = aco_sim_node(sim, f->name, f->address, follow, f);
    }
    CHECK(aco_group_begin(&group, ACO_KEEP_GOING) == 0);
    CHECK(aco_group_spawn(&group, crash_some, followers, NULL) != NULL);
    for (int i = 0; i < NODES; i++)
        CHECK(aco_group_spawn(&group, lead, &followers[i], NULL) != NULL);
    CHECK(aco_group_end(&group) == 0);
    for (int i = 0; i < NODES; i++)
        CHECK(followers[i].beats >= BEATS && followers[i].starts >= 1);
}

static int count_one(aco_t *co, void *count)
{
    ++*(int *)count;
    return co == NULL;
}

int main(void)
{
    const char *report;
    int left = 0;
    sim_alarm(120);
    passes(have_addresses, NULL, RUNS);
    passes(crash_in_all_waits, NULL, RUNS);
    passes(lose_connections, NULL, RUNS);
    passes(lose_power, NULL, RUNS);
    passes(part_and_heal, NULL, RUNS);
    passes(part_for_ever, NULL, RUNS);
    passes(have_links, NULL, 2);
    passes(let_crash_itself, NULL, RUNS);
    passes(join_crashed, NULL, RUNS);
    passes(fail_members, NULL, RUNS);
    passes(leave_nodes, NULL, RUNS);
    passes(mistake_nodes, NULL, 1);
    passes(lead_under_crashes, NULL, 4 * RUNS);
    CHECK(aco_each(count_one, &left) == 0);
    CHECK_EQ(left, 0); /* no run has left a task */
    report = report_of(come_to_a_halt, "a deadlock: no task can ever run");
    CHECK(is_in(report, "node \"left\" is up, with 1 tasks"));
    CHECK(is_in(report, "\"left\""));
    report = report_of(wait_half_open, "a deadlock: epoll_wait() waits for ever");
    CHECK(is_in(report, "node \"echo\" has crashed, with 0 tasks"));
    return check_result("sim_node");
}
