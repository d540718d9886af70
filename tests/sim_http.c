/* Promises: acorn_http's server, client, files and WebSockets run unchanged over the simulated network and disk. */
#include "sim_checks.h"

#include "aco/file.h"
#include "aco/http.h"
#include "aco/io.h"
#include "aco/scope.h"
#include "aco/websocket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 3, CALLS = 3, BODY = 30000, MESSAGES = 5, FILE_SIZE = 200000 };

typedef struct service {
    int listener, error;
    aco_scope_t scope;
    aco_http_server_options_t options;
} service_t;

static void echo(aco_http_request_t *request, void *arg)
{
    size_t n;
    char *body = aco_http_request_read_all(request, BODY, &n);
    (void)arg;
    CHECK(body != NULL);
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", body, n), 0);
}

static void chat(aco_http_request_t *request, void *arg)
{
    aco_websocket_t *socket = aco_websocket_accept(request, NULL);
    const char *data;
    size_t n;
    int type;
    (void)arg;
    CHECK(socket != NULL);
    while ((type = aco_websocket_receive(socket, &data, &n)) > 0)
        CHECK_EQ(aco_websocket_send(socket, type, data, n), 0);
    CHECK_EQ(type, 0);
}

static void send_file(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_file(request, "/www", "file"), 0);
}

/* On the run's disk; so large that it goes by sendfile(). */
static void write_file(void)
{
    static char bytes[FILE_SIZE];
    int fd;
    memset(bytes, 'f', sizeof bytes);
    CHECK_EQ(aco_dir_make("/www", 0755), 0);
    fd = aco_file_open("/www/file", O_WRONLY | O_CREAT, 0644);
    CHECK_EQ(aco_file_write(fd, bytes, sizeof bytes), FILE_SIZE);
    CHECK_EQ(aco_io_close(fd), 0);
}

static void *serve(void *arg)
{
    service_t *service = arg;
    CHECK(aco_scope_begin(&service->scope, ACO_FOREVER) == 0);
    CHECK_EQ(aco_http_serve(service->listener, &service->options), -1);
    service->error = errno;
    (void)aco_scope_end(&service->scope);
    return NULL;
}

/* A call with a body; the reply is the same. */
static void call_once(aco_http_client_t *client, size_t n)
{
    static char body[BODY];
    aco_http_call_t call = {0};
    aco_http_response_t *response;
    char part[4000];
    size_t got_n = 0;
    ssize_t got;
    memset(body, 'b', sizeof body);
    call.method = "POST";
    call.url = "http://10.0.0.1/echo";
    call.body = body;
    call.length = (int64_t)n;
    response = aco_http_call(client, &call);
    CHECK(response && response->status == 200);
    if (!response)
        return;
    while ((got = aco_http_response_read(response, part, sizeof part)) > 0)
        got_n += (size_t)got;
    CHECK_EQ(got, 0);
    CHECK_EQ(got_n, n);
    aco_http_response_end(response);
}

static void get_file(aco_http_client_t *client)
{
    aco_http_response_t *response = aco_http_get(client, "http://10.0.0.1/file");
    char part[4000];
    ssize_t got, got_n = 0;
    CHECK(response && response->status == 200);
    if (!response)
        return;
    while ((got = aco_http_response_read(response, part, sizeof part)) > 0) {
        CHECK(part[0] == 'f' && part[got - 1] == 'f');
        got_n += got;
    }
    CHECK_EQ(got_n, FILE_SIZE);
    aco_http_response_end(response);
}

static void *call_often(void *client)
{
    for (size_t i = 0; i < CALLS; i++)
        call_once(client, i * BODY / CALLS);
    get_file(client);
    return NULL;
}

/* Whether the stream brings these bytes next. */
static int brings(int fd, const char *bytes, size_t n)
{
    char got[64];
    return aco_io_read_exactly(fd, got, n) == (ssize_t)n && memcmp(got, bytes, n) == 0;
}

/* Reads a head to its end. */
static int switches(int fd)
{
    char head[512] = {0};
    for (size_t n = 0; n < sizeof head - 1 && !strstr(head, "\r\n\r\n"); n++)
        if (aco_io_read(fd, &head[n], 1) != 1)
            return 0;
    return strncmp(head, "HTTP/1.1 101 ", 13) == 0;
}

/* Frames by hand: acorn_http has servers only. The mask is 0. */
static void *chat_by_hand(void *arg)
{
    static const char request[] = "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    static const char frame[] = "\x81\x85\0\0\0\0hello", reply[] = "\x81\x05hello";
    static const char close_frame[] = "\x88\x82\0\0\0\0\x03\xe8", close_reply[] = "\x88\x02\x03\xe8";
    int fd = aco_io_dial("tcp", "10.0.0.1", "80", NULL);
    CHECK(aco_io_write_all(fd, request, sizeof request - 1) > 0);
    CHECK(switches(fd));
    for (int i = 0; i < MESSAGES; i++) {
        CHECK(aco_io_write_all(fd, frame, sizeof frame - 1) > 0);
        CHECK(brings(fd, reply, sizeof reply - 1));
    }
    CHECK(aco_io_write_all(fd, close_frame, sizeof close_frame - 1) > 0);
    CHECK(brings(fd, close_reply, sizeof close_reply - 1));
    CHECK_EQ(aco_io_read(fd, &(char){0}, 1), 0);
    CHECK(aco_io_close(fd) == 0);
    return arg;
}

static void use_service(aco_sim_t *sim, void *arg)
{
    static const aco_http_route_t routes[] = {{"POST", "/echo", echo, NULL},
                                              {"GET", "/chat", chat, NULL},
                                              {"GET", "/file", send_file, NULL},
                                              {NULL, NULL, NULL, NULL}};
    service_t service = {0};
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_t *server, *clients[CLIENTS + 1];
    CHECK(aco_sim_link(sim, "*", "*", arg) == 0);
    write_file();
    service.options.routes = routes;
    service.options.links_inside = 1; /* a simulated system has no openat2() */
    service.listener = aco_io_listen("tcp", "10.0.0.1", "80", NULL);
    server = aco_spawn(serve, &service, NULL);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = aco_spawn(call_often, client, NULL);
    clients[CLIENTS] = aco_spawn(chat_by_hand, NULL, NULL);
    for (int i = 0; i <= CLIENTS; i++)
        CHECK(aco_join(clients[i], NULL) == 0);
    aco_http_client_destroy(client);
    aco_scope_cancel(&service.scope);
    CHECK(aco_join(server, NULL) == 0 && service.error == ECANCELED);
}

int main(void)
{
    aco_sim_link_t lossy = {.loss = 0.05, .bandwidth = 1000000};
    sim_alarm(60);
    passes(use_service, NULL, 100);
    passes(use_service, &lossy, 100);
    return check_result("sim_http");
}
