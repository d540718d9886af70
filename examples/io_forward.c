/* A port forwarder: io_forward HOST PORT [OWN_PORT]. Each connection to OWN_PORT is joined to a new one to HOST and
 * PORT. The bytes go through a pipe by splice() and never enter this process. Each direction ends on its own. */
#include <aco/group.h>
#include <aco/io.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { PIECE = 65536 };

typedef struct way {
    int from, to;
} way_t;

static void *forward(void *arg)
{
    const way_t *way = arg;
    int ends[2];
    ssize_t n = -1;
    if (pipe(ends) == 0 && aco_io_adopt(ends[0]) == 0 && aco_io_adopt(ends[1]) == 0) {
        while ((n = aco_io_splice(way->from, NULL, ends[1], NULL, PIECE, 0)) > 0)
            for (ssize_t part; n > 0; n -= part)
                if ((part = aco_io_splice(ends[0], NULL, way->to, NULL, (size_t)n, 0)) <= 0)
                    goto broken;
        if (n == 0)
            aco_io_shutdown(way->to, SHUT_WR);
    broken:
        aco_io_close(ends[0]);
        aco_io_close(ends[1]);
    }
    return n == 0 ? NULL : ACO_ERROR; /* a failure ends the other direction, too */
}

static const char *const *target;

static void *join(void *connection)
{
    int near = (int)(intptr_t)connection, far = aco_io_dial("tcp", target[0], target[1], NULL);
    way_t ways[2] = {{near, far}, {far, near}};
    aco_group_t both;
    if (far >= 0) {
        aco_group_begin(&both, ACO_CANCEL_ON_FAILURE);
        for (int i = 0; i < 2; i++)
            if (!aco_group_spawn(&both, forward, &ways[i], NULL))
                aco_scope_cancel(&both.scope);
        aco_group_end(&both);
        aco_io_close(far);
    } else {
        fprintf(stderr, "%s\n", aco_error_message());
    }
    aco_io_close(near);
    return NULL;
}

static void *serve(void *port)
{
    int fd, listener = aco_io_listen("tcp", "127.0.0.1", port, NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    aco_group_t connections;
    if (listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    fprintf(stderr, "listening on %s\n", address);
    aco_group_begin(&connections, ACO_KEEP_GOING);
    while ((fd = aco_io_accept(listener)) >= 0)
        if (!aco_group_spawn(&connections, join, (void *)(intptr_t)fd, NULL))
            aco_io_close(fd);
    return aco_group_end(&connections), NULL;
}

int main(int argc, char **argv)
{
    target = (const char *const *)argv + 1;
    if (argc < 3)
        return fprintf(stderr, "io_forward HOST PORT [OWN_PORT]\n"), 2;
    signal(SIGPIPE, SIG_IGN); /* which splice() raises when a peer is gone */
    return aco_spawn(serve, argc > 3 ? argv[3] : "7000", NULL) && aco_run() == 0 ? 0 : 1;
}
