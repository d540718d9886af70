/* An echo server: io_echo [PORT]. One task for each connection; one that is silent for a minute is closed. */
#include <aco/group.h>
#include <aco/io.h>
#include <stdio.h>

static void *echo(void *connection)
{
    int fd = (int)(intptr_t)connection;
    char bytes[4096];
    for (ssize_t n = 1; n > 0;) {
        aco_scope_t idle;
        aco_scope_begin(&idle, aco_after(60 * ACO_SECOND));
        n = aco_io_read(fd, bytes, sizeof bytes);
        if (n > 0)
            n = aco_io_write_all(fd, bytes, (size_t)n);
        aco_scope_end(&idle);
    }
    aco_io_close(fd);
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
        if (!aco_group_spawn(&connections, echo, (void *)(intptr_t)fd, NULL))
            aco_io_close(fd);
    return aco_group_end(&connections), NULL;
}

int main(int argc, char **argv)
{
    return aco_spawn(serve, argc > 1 ? argv[1] : "7000", NULL) && aco_run() == 0 ? 0 : 1;
}
