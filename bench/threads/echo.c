/* threads-echo PORT THREADS: the echo server of bench-threads. Each thread has a listener of its own, and a task for
 * each connection, which sends back what it reads, as the peers in ../io do. */
#include <aco/io.h>
#include <aco/threads.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096 };

static aco_mt_group_t connections;

static void *echo(void *connection)
{
    int fd = (int)(intptr_t)connection;
    char bytes[ROOM];
    ssize_t n;
    while ((n = aco_io_read(fd, bytes, sizeof bytes)) > 0 && aco_io_write_all(fd, bytes, (size_t)n) > 0)
        ;
    aco_io_close(fd);
    return NULL;
}

static int listen_on(const char *port)
{
    const aco_io_options_t options = {.flags = ACO_IO_REUSEPORT};
    return aco_io_listen("tcp", "127.0.0.1", port, &options);
}

static void accept_all(int listener)
{
    const aco_submit_options_t here = {.where = ACO_SUBMIT_TO, .thread = aco_threads_index()};
    int fd;
    while ((fd = aco_io_accept(listener)) >= 0)
        if (aco_submit(&connections, echo, (void *)(intptr_t)fd, &here) != 0)
            aco_io_close(fd);
}

static void *listen_too(void *port)
{
    accept_all(listen_on(port));
    return NULL;
}

static void *serve(void *port)
{
    char address[ACO_IO_ADDRESS_SIZE];
    int listener = listen_on(port), threads = aco_threads_count(aco_threads_current());
    if (listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), ACO_ERROR;
    aco_mt_group_begin(&connections, ACO_KEEP_GOING);
    for (int i = 1; i < threads; i++)
        aco_submit(&connections, listen_too, strrchr(address, ':') + 1,
                   &(aco_submit_options_t){.where = ACO_SUBMIT_TO, .thread = i});
    fprintf(stderr, "listening on %s\n", address);
    accept_all(listener);
    return aco_mt_group_end(&connections), NULL;
}

int main(int argc, char **argv)
{
    const aco_threads_options_t options = {.flags = ACO_THREADS_FIRST_ONLY};
    if (argc != 3)
        return fprintf(stderr, "usage: %s PORT THREADS\n", argv[0]), 2;
    return aco_threads_run(atoi(argv[2]), serve, argv[1], &options) != 0;
}
