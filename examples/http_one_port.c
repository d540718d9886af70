/* Several protocols on one port: http_one_port [PORT [PROXY]]. Connections from the address PROXY begin with a header that
 * tells whose they are (PROXY protocol). Then follows HTTP. A client that asks for /shout goes on in another protocol. */
#define _GNU_SOURCE
#include <aco/group.h>
#include <aco/http.h>
#include <aco/process.h>
#include <aco/proxy_protocol.h>

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static aco_http_server_t *server;
static const char *trusted; /* the proxy's address; NULL: there is none */

static void hello(aco_http_request_t *request, void *unused)
{
    char text[160], client[ACO_IO_ADDRESS_SIZE] = "";
    (void)unused;
    aco_stream_peer_address(request->stream, client, sizeof client);
    aco_http_reply(request, 200, "text/plain", text, (size_t)snprintf(text, sizeof text, "hello %s\n", client));
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

/* The connection's stream; NULL: it is closed. */
static aco_stream_t *open_stream(int fd)
{
    char peer[ACO_IO_ADDRESS_SIZE] = "";
    aco_proxy_header_t header = {.is_own = 1};
    aco_scope_t scope;
    int failed = 0;
    aco_io_peer_address(fd, peer, sizeof peer);
    if (trusted && strncmp(peer, trusted, strlen(trusted)) == 0 && peer[strlen(trusted)] == ':') {
        aco_scope_begin(&scope, aco_after(10 * ACO_SECOND)); /* clients may be silent */
        failed = aco_proxy_header_read(fd, &header) != 0;
        aco_scope_end(&scope);
    }
    if (!failed)
        return aco_proxy_stream(aco_stream_open(fd), &header);
    aco_io_close(fd);
    return NULL;
}

static void *serve_one(void *arg)
{
    aco_stream_t *stream = open_stream((int)(intptr_t)arg);
    if (stream)
        aco_http_serve_connection(server, stream, NULL, 0);
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
    trusted = argc > 2 ? argv[2] : NULL;
    return aco_spawn(serve, argc > 1 ? argv[1] : "8080", NULL) && aco_run() == 0 ? 0 : 1;
}
