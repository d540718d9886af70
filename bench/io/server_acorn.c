/* The server of bench-io with a task for each connection. server_acorn PORT MODE
 *   echo, stream  as server_loop.c
 *   scope         echo with a deadline for each request
 *   lent          echo with a reader, which has a buffer only while there are bytes in it
 *   shared        echo on a share stack, with a buffer only while there are bytes to read
 * Tried without gain: loading the descriptor's record and the task's frames while epoll's events are handed out. */
#include <aco/group.h>
#include <aco/io_buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096, BLOCK = 64 * 1024 };

static char block[BLOCK];

static void *echo(void *connection)
{
    int fd = (int)(intptr_t)connection;
    char bytes[ROOM];
    ssize_t n = 1;
    while (n > 0) {
        n = aco_io_read(fd, bytes, sizeof bytes);
        if (n > 0)
            n = aco_io_write_all(fd, bytes, (size_t)n);
    }
    aco_io_close(fd);
    return NULL;
}

static void *echo_in_scopes(void *connection)
{
    int fd = (int)(intptr_t)connection;
    char bytes[ROOM];
    ssize_t n = 1;
    while (n > 0) {
        aco_scope_t limit;
        aco_scope_begin(&limit, aco_after(60 * ACO_SECOND));
        n = aco_io_read(fd, bytes, sizeof bytes);
        if (n > 0)
            n = aco_io_write_all(fd, bytes, (size_t)n);
        aco_scope_end(&limit);
    }
    aco_io_close(fd);
    return NULL;
}

static void *echo_lent(void *connection)
{
    int fd = (int)(intptr_t)connection;
    aco_io_reader_t in;
    const char *bytes;
    ssize_t n;
    aco_io_reader_open(&in, fd, NULL, ROOM);
    while ((n = aco_io_reader_peek(&in, 1, &bytes)) > 0 && aco_io_write_all(fd, bytes, (size_t)n) > 0)
        aco_io_reader_consume(&in, (size_t)n);
    aco_io_reader_close(&in);
    aco_io_close(fd);
    return NULL;
}

static __attribute__((noinline)) ssize_t echo_once(int fd)
{
    char bytes[ROOM];
    ssize_t n = aco_io_read(fd, bytes, sizeof bytes);
    return n > 0 ? aco_io_write_all(fd, bytes, (size_t)n) : n;
}

static void *echo_shared(void *connection)
{
    int fd = (int)(intptr_t)connection;
    while (aco_io_wait_readable(fd) == 0 && echo_once(fd) > 0)
        ;
    aco_io_close(fd);
    return NULL;
}

static void *stream(void *connection)
{
    int fd = (int)(intptr_t)connection;
    uint64_t left;
    while (aco_io_read_exactly(fd, &left, sizeof left) == sizeof left)
        while (left) {
            ssize_t n = aco_io_write(fd, block, left < BLOCK ? left : BLOCK);
            if (n < 0)
                break;
            left -= (uint64_t)n;
        }
    aco_io_close(fd);
    return NULL;
}

static const struct mode {
    const char *name;
    void *(*serve)(void *connection);
    int on_share_stack;
} modes[] = {{"echo", echo, 0},
             {"scope", echo_in_scopes, 0},
             {"lent", echo_lent, 0},
             {"shared", echo_shared, 1},
             {"stream", stream, 0}};

static const struct mode *mode = modes;

static void *serve(void *port)
{
    int fd, listener = aco_io_listen("tcp", "127.0.0.1", port, NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    aco_options_t how = {.stack = mode->on_share_stack ? aco_share_stack_new(0) : NULL};
    aco_group_t connections;
    if (listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    fprintf(stderr, "listening on %s\n", address);
    aco_group_begin(&connections, ACO_KEEP_GOING);
    while ((fd = aco_io_accept(listener)) >= 0)
        if (!aco_group_spawn(&connections, mode->serve, (void *)(intptr_t)fd, &how))
            aco_io_close(fd);
    return aco_group_end(&connections), NULL;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[2], modes[i].name) == 0)
            mode = &modes[i];
    return aco_spawn(serve, argc > 1 ? argv[1] : "7000", NULL) && aco_run() == 0 ? 0 : 1;
}
