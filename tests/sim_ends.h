/* For tests of the simulated network: the two ends of a TCP connection. */
#ifndef SIM_ENDS_H
#define SIM_ENDS_H

#include "sim_checks.h"

#include "aco/io.h"
#include "aco/scope.h"

typedef struct ends {
    int listener, client, server;
} ends_t;

static inline void *dial(void *arg)
{
    ends_t *ends = arg;
    ends->client = aco_io_dial("tcp", "127.0.0.1", "80", NULL);
    CHECK(ends->client >= 0);
    return NULL;
}

static inline ends_t connect_ends(void)
{
    ends_t ends;
    aco_t *dialler;
    ends.listener = aco_io_listen("tcp", "127.0.0.1", "80", NULL);
    dialler = aco_spawn(dial, &ends, NULL);
    ends.server = aco_io_accept(ends.listener);
    CHECK(ends.listener >= 0 && ends.server >= 0 && aco_join(dialler, NULL) == 0);
    return ends;
}

static inline void close_ends(const ends_t *ends)
{
    CHECK(aco_io_close(ends->listener) == 0);
    CHECK(ends->client < 0 || aco_io_close(ends->client) == 0);
    CHECK(ends->server < 0 || aco_io_close(ends->server) == 0);
}

/* Whether an answer came within a second. */
static inline int beat(int fd)
{
    aco_scope_t scope;
    char byte = 'b';
    int is_answered;
    CHECK(aco_scope_begin(&scope, aco_after(ACO_SECOND)) == 0);
    is_answered = aco_io_write_all(fd, &byte, 1) == 1 && aco_io_read(fd, &byte, 1) == 1;
    CHECK(aco_scope_end(&scope) == 0);
    return is_answered;
}

#endif
