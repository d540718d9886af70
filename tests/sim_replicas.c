/* Promises: nodes, their disks, the network and the nemesis work together: a counter that three nodes keep on their
 * disks loses nothing that a node, or a majority, has acknowledged, whatever fails. */
#include "sim_checks.h"

#include "aco/file.h"
#include "aco/io.h"
#include "aco/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 3, RUNS = 50, NUMBERS = 30 };

static const char *const addresses[NODES] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};

/* 0, or -1: nobody knows what is on the disk. */
static int keep(int32_t number)
{
    int fd = aco_file_open("new", O_WRONLY | O_CREAT | O_TRUNC, 0666), root, done;
    if (fd < 0)
        return -1;
    done = aco_file_write(fd, &number, sizeof number) == (ssize_t)sizeof number && aco_file_sync(fd) == 0;
    done = aco_io_close(fd) == 0 && done && aco_file_rename("new", "counter") == 0;
    root = aco_file_open("/", O_RDONLY | O_DIRECTORY, 0);
    if (root < 0)
        return -1;
    done = done && aco_file_sync(root) == 0;
    return aco_io_close(root) == 0 && done ? 0 : -1;
}

/* What is kept; -1: it cannot be read now. */
static int32_t kept(void)
{
    int fd = aco_file_open("counter", O_RDONLY, 0);
    int32_t number;
    ssize_t n;
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    n = aco_file_read(fd, &number, sizeof number);
    (void)aco_io_close(fd);
    return n == (ssize_t)sizeof number ? number : -1;
}

/* Keeps a number that is above the kept one, and answers with what is kept; 0 asks for that only. */
static void answer(int fd)
{
    int32_t number, old;
    while (aco_io_read_exactly(fd, &number, sizeof number) == (ssize_t)sizeof number) {
        old = kept();
        if (old < 0 || (number > old && keep(number) != 0))
            break;
        old = number > old ? number : old;
        if (aco_io_write_all(fd, &old, sizeof old) < 0)
            break;
    }
    (void)aco_io_close(fd);
}

static void *serve(void *address)
{
    int listener = aco_io_listen("tcp", address, "7", NULL);
    CHECK(listener >= 0);
    for (;;) {
        int fd = aco_io_accept(listener);
        if (fd >= 0)
            answer(fd);
    }
    return NULL;
}

/* What the node says that it keeps; -1: it says nothing. */
static int32_t tell(int node, int32_t number)
{
    aco_scope_t scope;
    int32_t answered = -1;
    int fd;
    CHECK(aco_scope_begin(&scope, aco_after(ACO_SECOND)) == 0);
    fd = aco_io_dial("tcp", addresses[node], "7", NULL);
    if (fd >= 0 && (aco_io_write_all(fd, &number, sizeof number) < 0 ||
                    aco_io_read_exactly(fd, &answered, sizeof answered) != (ssize_t)sizeof answered))
        answered = -1;
    CHECK(aco_scope_end(&scope) == 0);
    if (fd >= 0)
        (void)aco_io_close(fd);
    return answered;
}

static int32_t acknowledged, told[NODES];

static void count_under_faults(aco_sim_t *sim, void *arg)
{
    int32_t found = 0;
    int has_one = 0;
    (void)arg;
    acknowledged = 0;
    memset(told, 0, sizeof told);
    for (int i = 0; i < NODES; i++)
        CHECK(aco_sim_node(sim, addresses[i], addresses[i], serve, (void *)(uintptr_t)addresses[i]) != NULL);
    CHECK(aco_sim_nemesis(sim, ACO_SIM_FAULT_ALL) == 0);
    for (int32_t number = 1; number <= NUMBERS; number++) {
        int n = 0;
        for (int i = 0; i < NODES; i++)
            if (tell(i, number) >= number) {
                told[i] = number;
                n++;
            }
        if (n > NODES / 2)
            acknowledged = number;
        aco_sleep((int64_t)aco_sim_random(sim, ACO_SECOND));
    }
    CHECK(aco_sim_nemesis(sim, 0) == 0);
    aco_sleep(120 * ACO_SECOND);
    for (int i = 0; i < NODES; i++) {
        int32_t number = tell(i, 0);
        has_one += number >= 0;
        if (number >= 0 && number < told[i])
            aco_sim_fail(sim, "a node has lost what it acknowledged");
        found = number > found ? number : found;
    }
    if (has_one > NODES / 2 && found < acknowledged)
        aco_sim_fail(sim, "an acknowledged number is lost");
}

static int64_t all;

static void count_and_add(aco_sim_t *sim, void *arg)
{
    count_under_faults(sim, arg);
    all += acknowledged;
}

int main(void)
{
    sim_alarm(120);
    passes(count_and_add, NULL, RUNS);
    CHECK(all > 0);
    return check_result("sim_replicas");
}
