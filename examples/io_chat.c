/* A chat: io_chat [PORT]. A client's first line is its name, each further line goes to all others. A client that does
 * not read what it gets loses lines, and delays nobody. Ctrl-C ends it. */
#include <aco/group.h>
#include <aco/io_buffer.h>
#include <aco/process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 512, WAITING = 64 }; /* of a line; lines that wait for a client */

typedef struct line {
    int users;
    int length;
    char text[];
} line_t;

typedef struct client {
    struct client *next, **link;
    int fd, is_open;
    aco_channel_t *lines; /* line_t * for it */
} client_t;

static client_t *clients;

static void drop(line_t *line)
{
    if (--line->users == 0)
        free(line);
}

static void say(const client_t *from, const char *name, const char *what)
{
    size_t size = strlen(name) + strlen(what) + 4;
    line_t *line = malloc(sizeof *line + size);
    if (!line)
        return;
    line->users = 1;
    line->length = snprintf(line->text, size, "%s: %s\n", name, what);
    for (client_t *c = clients; c; c = c->next)
        if (c != from && aco_channel_try_send(c->lines, &line) == 0)
            line->users++;
    drop(line);
}

/* What has collected is one write. */
static int write_lines(client_t *c, line_t *line)
{
    aco_io_writer_t out;
    int result = 0;
    aco_io_writer_open(&out, c->fd, NULL, 4096);
    do {
        if (result == 0 && c->is_open)
            result = aco_io_writer_write(&out, line->text, (size_t)line->length);
        drop(line);
    } while (aco_channel_try_receive(c->lines, &line) == 0);
    if (result == 0 && c->is_open)
        result = aco_io_writer_flush(&out);
    aco_io_writer_close(&out);
    return result;
}

static void *writes(void *arg)
{
    client_t *c = arg;
    line_t *line;
    while (aco_channel_receive(c->lines, &line) == 0)
        if (write_lines(c, line) != 0 && c->is_open)
            aco_io_shutdown(c->fd, SHUT_RDWR); /* its reader ends, too */
    return NULL;
}

static void *reads(void *connection)
{
    client_t c = {NULL, &clients, (int)(intptr_t)connection, 1, aco_channel_new(WAITING, sizeof(line_t *))};
    aco_io_reader_t in;
    aco_t *writer = c.lines ? aco_spawn(writes, &c, NULL) : NULL;
    char *text, *name = NULL;
    aco_io_reader_open(&in, c.fd, NULL, LONGEST);
    if (writer && aco_io_reader_line(&in, &text) >= 0 && text && (name = strdup(text)) != NULL) {
        c.next = clients;
        if (clients)
            clients->link = &c.next;
        clients = &c;
        say(&c, name, "is here");
        while (aco_io_reader_line(&in, &text) >= 0 && text)
            say(&c, name, text);
        *c.link = c.next;
        if (c.next)
            c.next->link = c.link;
        say(&c, name, "is gone");
    }
    aco_io_reader_close(&in);
    if (c.lines)
        aco_channel_close(c.lines);
    c.is_open = 0;      /* the number may be another client's soon */
    aco_io_close(c.fd); /* ends a write of the writer */
    if (writer) {
        aco_scope_t shield;
        aco_shield_begin(&shield, ACO_FOREVER);
        aco_join(writer, NULL);
        aco_scope_end(&shield);
    }
    if (c.lines)
        aco_channel_destroy(c.lines);
    free(name);
    return NULL;
}

static void *serve(void *port)
{
    int fd, listener = aco_io_listen("tcp", "127.0.0.1", port, NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    aco_interrupt_t ctrl_c;
    aco_group_t connections;
    if (listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0 ||
        aco_interrupt_begin(&ctrl_c, (const int[]){SIGINT, SIGTERM}, 2) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    fprintf(stderr, "listening on %s\n", address);
    aco_group_begin(&connections, ACO_KEEP_GOING);
    while ((fd = aco_io_accept(listener)) >= 0)
        if (!aco_group_spawn(&connections, reads, (void *)(intptr_t)fd, NULL))
            aco_io_close(fd);
    aco_group_end(&connections);
    aco_interrupt_end(&ctrl_c);
    aco_io_close(listener);
    fprintf(stderr, "ended\n");
    return NULL;
}

int main(int argc, char **argv)
{
    aco_options_t detached = {.flags = ACO_DETACHED};
    return aco_spawn(serve, argc > 1 ? argv[1] : "7000", &detached) && aco_run() == 0 ? 0 : 1;
}
