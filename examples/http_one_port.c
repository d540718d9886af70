/* Several protocols on one port: http_one_port [PORT]. A connection may begin with the line of a proxy that tells whose
 * it is (PROXY protocol, version 1). Then follows HTTP. A client that asks for /shout goes on in another protocol. */
#define _GNU_SOURCE
#include <aco/group.h>
#include <aco/http.h>
#include <aco/io_buffer.h>
#include <aco/process.h>

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static aco_http_server_t *server;
static aco_local_key_t client; /* its address as text: of a connection's task, in which its handlers run, too */

static void hello(aco_http_request_t *request, void *unused)
{
    char text[160];
    (void)unused;
    aco_http_reply(request, 200, "text/plain", text,
                   (size_t)snprintf(text, sizeof text, "hello %s\n", (char *)aco_get_local(client)));
}

static void shout(aco_http_request_t *request, void *unused)
{
    static const char yes[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n";
    char text[4096];
    const void *bytes;
    size_t n;
    aco_stream_t *stream = aco_http_take_over(request, &bytes, &n); /* what has come already is at `bytes` */
    (void)unused;
    if (!stream)
        return;
    memcpy(text, bytes, n = n < sizeof text ? n : sizeof text);
    for (ssize_t more = aco_stream_write_all(stream, yes, sizeof yes - 1); more > 0; n = (size_t)more) {
        for (size_t i = 0; i < n; i++)
            text[i] = (char)toupper((unsigned char)text[i]);
        if (aco_stream_write_all(stream, text, n) < 0)
            break;
        more = aco_stream_read(stream, text, sizeof text);
    }
    aco_stream_close(stream);
}

/* "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443": the client's address and port. 0, or -1. */
static int parse_proxy_line(const char *line, char *address, size_t size)
{
    char host[46], port[6];
    if (sscanf(line, "PROXY TCP%*1[46] %45s %*s %5s", host, port) != 2)
        return -1;
    snprintf(address, size, "%s port %s", host, port);
    return 0;
}

static void *serve_one(void *arg)
{
    aco_stream_t *stream = aco_stream_open((int)(intptr_t)arg);
    char bytes[4096], address[ACO_IO_ADDRESS_SIZE] = "", *line;
    const char *first;
    aco_io_reader_t in;
    aco_scope_t scope;
    int is_wrong = !stream;
    if (is_wrong)
        return NULL;
    aco_stream_peer_address(stream, address, sizeof address);
    aco_io_reader_open_stream(&in, stream, bytes, sizeof bytes);
    aco_scope_begin(&scope, aco_after(10 * ACO_SECOND)); /* clients may be silent */
    if (aco_io_reader_peek(&in, 6, &first) == 0 || (in.end >= 6 && memcmp(first, "PROXY ", 6) == 0))
        is_wrong = aco_io_reader_line(&in, &line) < 0 || !line || parse_proxy_line(line, address, sizeof address) != 0;
    aco_scope_end(&scope);
    aco_set_local(client, address);
    if (is_wrong)
        aco_stream_close(stream);
    else /* what has come behind the line is in the reader */
        aco_http_serve_connection(server, stream, in.buffer + in.begin, in.end - in.begin);
    return NULL;
}

/* Ctrl-C: no connection is accepted any more, and requests under way go on; again: the end. */
static void *serve(void *port)
{
    static const aco_http_route_t routes[] = {
        {"GET", "/", hello, NULL}, {"GET", "/shout", shout, NULL}, {NULL, NULL, NULL, NULL}};
    aco_http_server_options_t options = {.routes = routes};
    char address[ACO_IO_ADDRESS_SIZE];
    int fd, listener = aco_io_listen("tcp", "127.0.0.1", port, NULL);
    aco_interrupt_t ctrl_c;
    aco_group_t connections;
    server = aco_http_server_new(&options);
    if (!server || listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    aco_group_begin(&connections, ACO_KEEP_GOING);
    if (aco_interrupt_begin(&ctrl_c, (const int[]){SIGINT, SIGTERM}, 2) == 0) {
        fprintf(stderr, "listening on %s\n", address);
        while ((fd = aco_io_accept(listener)) >= 0)
            if (!aco_group_spawn(&connections, serve_one, (void *)(intptr_t)fd, NULL))
                aco_io_close(fd);
        aco_interrupt_end(&ctrl_c);
    }
    aco_io_close(listener);
    aco_http_server_stop(server);
    aco_group_end(&connections);
    aco_http_server_destroy(server);
    return NULL;
}

int main(int argc, char **argv)
{
    return aco_local_key_create(&client, NULL) == 0 && aco_spawn(serve, argc > 1 ? argv[1] : "8080", NULL) &&
                   aco_run() == 0
               ? 0
               : 1;
}
