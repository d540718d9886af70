/* Timeouts and a clean shutdown: io_shutdown [PORT REQUEST_MS DRAIN_MS]. A client sends lines with a number, and gets
 * each back after so many milliseconds: the work. A request may take REQUEST_MS milliseconds, and a client be silent
 * for a minute.
 *
 * Ctrl-C: no connection is accepted any more, those without a request are closed at once, requests under way may go on
 * for DRAIN_MS milliseconds, and what is left is cancelled. */
#include <aco/group.h>
#include <aco/io_buffer.h>
#include <aco/process.h>
#include <aco/sync.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct connection {
    struct connection *next, **link;
    aco_scope_t idle;
    int is_idle; /* inside that scope */
} connection_t;

static connection_t *connections;
static int64_t request_ms = 1000, drain_ms = 5000;
static int is_ending;

static void enter(connection_t *c)
{
    c->next = connections;
    c->link = &connections;
    if (c->next)
        c->next->link = &c->next;
    connections = c;
}

static void leave(connection_t *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
}

/* NULL: there is none, or it has not come within a minute, or the server ends. */
static char *next_request(connection_t *c, aco_io_reader_t *in)
{
    char *line = NULL;
    if (is_ending)
        return NULL;
    aco_scope_begin(&c->idle, aco_after(60 * ACO_SECOND));
    c->is_idle = 1;
    if (aco_io_reader_line(in, &line) < 0)
        line = NULL;
    c->is_idle = 0;
    aco_scope_end(&c->idle);
    return line;
}

static const char *work(long ms)
{
    aco_scope_t limit;
    const char *answer;
    aco_scope_begin(&limit, aco_after(request_ms * ACO_MILLISECOND));
    answer = aco_sleep(ms * ACO_MILLISECOND) == 0 ? "done" : errno == ETIMEDOUT ? "too long" : "shut down";
    aco_scope_end(&limit);
    return answer;
}

static void *serve_one(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char answer[64], *line;
    connection_t c = {0};
    aco_io_reader_t in;
    aco_scope_t last;
    aco_io_reader_open(&in, fd, NULL, 256);
    enter(&c);
    while ((line = next_request(&c, &in)) != NULL) {
        long ms = strtol(line, NULL, 10);
        int n = snprintf(answer, sizeof answer, "%ld %s\n", ms, work(ms));
        aco_shield_begin(&last, aco_after(100 * ACO_MILLISECOND)); /* a cancelled client is told so, if it reads */
        n = aco_io_write_all(fd, answer, (size_t)n) < 0;
        aco_scope_end(&last);
        if (n)
            break;
    }
    leave(&c);
    aco_io_reader_close(&in);
    aco_io_close(fd);
    return NULL;
}

typedef struct drain {
    aco_group_t *group;
    int64_t until;
    aco_event_t is_over;
} drain_t;

static void *cancel_late(void *arg)
{
    drain_t *drain = arg;
    if (aco_event_wait_until(&drain->is_over, drain->until) != 0)
        aco_scope_cancel(&drain->group->scope);
    return NULL;
}

static void *serve(void *port)
{
    int fd, listener = aco_io_listen("tcp", "127.0.0.1", port, NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    aco_interrupt_t ctrl_c;
    aco_group_t group;
    drain_t drain = {&group, 0, ACO_EVENT_INIT};
    aco_t *canceller;
    if (listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    aco_group_begin(&group, ACO_KEEP_GOING); /* outside of the interrupt, which ends only the accepting */
    if (aco_interrupt_begin(&ctrl_c, (const int[]){SIGINT, SIGTERM}, 2) == 0) {
        fprintf(stderr, "listening on %s\n", address);
        while ((fd = aco_io_accept(listener)) >= 0)
            if (!aco_group_spawn(&group, serve_one, (void *)(intptr_t)fd, NULL))
                aco_io_close(fd);
        aco_interrupt_end(&ctrl_c);
    }
    aco_io_close(listener);
    is_ending = 1;
    for (connection_t *c = connections; c; c = c->next)
        if (c->is_idle)
            aco_scope_cancel(&c->idle);
    drain.until = aco_after(drain_ms * ACO_MILLISECOND);
    canceller = aco_spawn(cancel_late, &drain, NULL);
    aco_group_end(&group);
    aco_event_set(&drain.is_over);
    if (canceller)
        aco_join(canceller, NULL);
    fprintf(stderr, "ended\n");
    return NULL;
}

int main(int argc, char **argv)
{
    aco_options_t detached = {.flags = ACO_DETACHED};
    if (argc > 3) {
        request_ms = atoll(argv[2]);
        drain_ms = atoll(argv[3]);
    }
    return aco_spawn(serve, argc > 1 ? argv[1] : "7000", &detached) && aco_run() == 0 ? 0 : 1;
}
