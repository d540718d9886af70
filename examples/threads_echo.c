/* An echo server on every core: threads_echo [PORT [THREADS]]. Each thread has a listener of its own, all on one port
 * (SO_REUSEPORT): the kernel spreads the connections, and each stays on its thread. Ctrl-C ends it. */
#include <aco/io.h>
#include <aco/threads.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *echo(void *connection)
{
    int fd = (int)(intptr_t)connection;
    char bytes[4096];
    ssize_t n;
    while ((n = aco_io_read(fd, bytes, sizeof bytes)) > 0)
        if (aco_io_write_all(fd, bytes, (size_t)n) < 0)
            break;
    aco_io_close(fd);
    return NULL;
}

static int listen_on(const char *port)
{
    aco_io_options_t options = {0};
    options.flags = ACO_IO_REUSEPORT;
    return aco_io_listen("tcp", "127.0.0.1", port, &options);
}

static void *serve(void *arg)
{
    int listener = (int)(intptr_t)arg, fd;
    aco_group_t connections; /* of this thread */
    aco_group_begin(&connections, ACO_KEEP_GOING);
    while ((fd = aco_io_accept(listener)) >= 0)
        if (!aco_group_spawn(&connections, echo, (void *)(intptr_t)fd, NULL))
            aco_io_close(fd);
    aco_group_end(&connections); /* Ctrl-C has ended all waits inside */
    aco_io_close(listener);
    return NULL;
}

static void *serve_too(void *port)
{
    int listener = listen_on(port);
    return listener < 0 ? ACO_ERROR : serve((void *)(intptr_t)listener);
}

static void *begin(void *port)
{
    char address[ACO_IO_ADDRESS_SIZE];
    int listener = listen_on(port);
    aco_shared_group_t threads;
    if (listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), ACO_ERROR;
    aco_shared_group_begin(&threads, ACO_CANCEL_ON_FAILURE);
    for (int i = 1; i < aco_threads_count(aco_threads_current()); i++)
        aco_submit_to(i, &threads, serve_too, strrchr(address, ':') + 1, NULL);
    fprintf(stderr, "listening on %s\n", address);
    serve((void *)(intptr_t)listener);
    return aco_shared_group_end(&threads) == 0 ? NULL : ACO_ERROR;
}

int main(int argc, char **argv)
{
    aco_threads_options_t options = {0};
    options.flags = ACO_THREADS_FIRST_ONLY | ACO_THREADS_INTERRUPTIBLE;
    aco_threads_run_with(argc > 2 ? atoi(argv[2]) : 0, begin, argc > 1 ? argv[1] : "7000", &options);
    fprintf(stderr, "ended\n");
    return 0;
}
