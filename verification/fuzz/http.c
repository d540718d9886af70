/* HTTP: an input's bytes are requests to a server, or a response to a client, of acorn_http. Each input is sent twice,
 * in pieces of two sizes. The first byte tells which side is tested, and the sizes.
 *
 * The property: what the handlers see, or the caller of the client, does not depend on the pieces: which requests there
 * were, with which fields and bodies, how reading them ended. Where two ways to cut the same bytes differ, so would two
 * programs. And nobody hangs: all ends in time. */
#define _GNU_SOURCE
#define FUZZ_NAME "http"
#include "aco/group.h"
#include "aco/websocket.h"
#include "fuzz.h"
#include <netinet/in.h>

enum { LOG = 1 << 16, LIMIT_S = 15 };

static char logs[2][LOG], *log_at;
static size_t log_n;
static const uint8_t *bytes;
static size_t bytes_n, piece;
static int listener;
static char host[16], port[8];

static int fuzz_actor(void)
{
    return 0;
}

__attribute__((format(printf, 1, 2))) OUTLINE void note(const char *format, ...)
{
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(log_at + log_n, LOG - log_n, format, args);
    va_end(args);
    log_n += n > 0 && (size_t)n < LOG - log_n ? (size_t)n : 0;
}

static void note_bytes(const char *p, size_t n)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)p[i]) * 16777619u;
    note(" %zu:%08x", n, hash);
}

/* How much of a body was read, and how that ended. How much comes before an error depends on the pieces. */
static void note_body(uint64_t n, ssize_t end)
{
    if (end < 0)
        note(" a broken body");
    else
        note(" %llu bytes", (unsigned long long)n);
}

/* ---- The server ---- */

static void handle(aco_http_request_t *request, void *how)
{
    const char *rest = aco_http_request_param(request, "*"), *a = aco_http_request_query(request, "a");
    size_t n = 0;
    char *body, part[7];
    ssize_t got = 0;
    note("%s %s %s ? %s @ %s %d %lld *%s a=%s", request->method, request->target, request->path, request->query,
         request->host, request->minor, (long long)request->length, rest ? rest : "-", a ? a : "-");
    for (size_t i = 0; i < request->header_count; i++)
        note(" [%s:%s]", request->headers[i].name, request->headers[i].value);
    EXPECT(strchr(request->path, '/') == request->path || strcmp(request->path, "*") == 0);
    EXPECT(!strstr(request->path, "/../") && !strpbrk(request->host, " /@,\r\n"));
    switch ((intptr_t)how) {
    case 0: /* all at once */
        body = aco_http_request_read_all(request, 600, &n);
        if (body)
            note_bytes(body, n);
        else
            note(" error %d", errno);
        if (body)
            EXPECT(aco_http_reply(request, 200, NULL, body, n) == 0);
        break;
    case 1: /* both ways at the same time */
        aco_http_reply_begin(request, 200, NULL, -1);
        while ((got = aco_http_request_read(request, part, sizeof part)) > 0) {
            n += (size_t)got;
            aco_http_reply_write(request, part, (size_t)got);
        }
        note_body(n, got);
        break;
    default: /* without the body */
        aco_http_reply(request, 200, "text/plain", "hello", 5);
        break;
    }
    note("\n");
}

static void handle_websocket(aco_http_request_t *request, void *unused)
{
    static const aco_websocket_options_t options = {.max_message = 300};
    aco_websocket_t *socket = aco_websocket_accept(request, &options);
    const char *data;
    size_t n;
    int type;
    (void)unused;
    note("websocket %s", socket ? "" : "refused");
    while (socket && (type = aco_websocket_receive(socket, &data, &n)) > 0) {
        note(" %d", type);
        note_bytes(data, n);
        EXPECT(n <= 300 && !data[n] && aco_websocket_send(socket, type, data, n) == 0); /* so it is UTF-8 */
    }
    if (socket)
        note(" end %d, code %d", type < 0 ? errno : 0, aco_websocket_code(socket));
    note("\n");
}

static void *serve(void *scope)
{
    static const aco_http_route_t routes[] = {{"GET", "/w", handle_websocket, NULL},
                                              {"POST", "/b/*", handle, (void *)1},
                                              {"GET", "/{name}/c", handle, (void *)2},
                                              {NULL, "/*", handle, NULL},
                                              {NULL, "*", handle, NULL},
                                              {NULL, NULL, NULL, NULL}};
    aco_http_server_options_t server;
    memset(&server, 0, sizeof server);
    server.routes = routes;
    server.max_head = 256;
    server.max_headers = 6;
    server.max_body = 500;
    server.max_streams = -1; /* the preface of HTTP/2 is a wrong request */
    aco_scope_begin(scope, ACO_FOREVER);
    aco_http_serve(listener, &server);
    aco_scope_end(scope);
    return NULL;
}

static void send_pieces(int fd)
{
    for (size_t sent = 0; sent < bytes_n; sent += piece) {
        size_t n = piece < bytes_n - sent ? piece : bytes_n - sent;
        if (aco_io_write_all(fd, bytes + sent, n) < 0)
            break;
        for (int i = 0; i < 4 && piece < bytes_n; i++) /* the other side reads it before the next one comes */
            aco_task_yield();
    }
}

/* From the listener's address: the side that closes first keeps its port for a minute, and 127.0.0.1 is for others. */
static int dial(void)
{
    struct sockaddr_in to, from;
    socklen_t length = sizeof to;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0 && getsockname(listener, (struct sockaddr *)&to, &length) == 0);
    from = to;
    from.sin_port = 0;
    EXPECT(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    EXPECT(aco_io_connect(fd, (struct sockaddr *)&to, length) == 0);
    return fd;
}

static void *ask_server(void *unused)
{
    char reply[512], begin[10] = "";
    size_t n = 0;
    ssize_t got;
    int fd = dial();
    send_pieces(fd);
    aco_io_shutdown(fd, SHUT_WR);
    while ((got = aco_io_read(fd, reply, sizeof reply)) > 0) {
        for (ssize_t i = 0; i < got && n < 9; i++)
            begin[n++] = reply[i];
    }
    EXPECT(aco_check_cancelled() == 0);
    EXPECT(n == 0 || strcmp(begin, "HTTP/1.1 ") == 0);
    aco_io_close(fd);
    return unused;
}

static void *test_server(void *unused)
{
    aco_scope_t scope, limit;
    aco_t *server = aco_spawn(serve, &scope, NULL);
    EXPECT(server != NULL);
    aco_task_yield();
    aco_scope_begin(&limit, aco_after(LIMIT_S * ACO_SECOND));
    ask_server(NULL);
    aco_scope_end(&limit);
    aco_scope_cancel(&scope);
    EXPECT(aco_join(server, NULL) == 0);
    return unused;
}

/* ---- The client ---- */

static void *answer(void *unused)
{
    char head[512];
    int fd = aco_io_accept(listener);
    EXPECT(fd >= 0 && aco_io_read(fd, head, sizeof head) > 0);
    send_pieces(fd);
    aco_io_close(fd);
    return unused;
}

static void *test_client(void *how)
{
    char url[64], part[300];
    aco_http_client_options_t options;
    aco_http_client_t *client;
    aco_http_response_t *response;
    aco_http_call_t call;
    aco_scope_t limit;
    aco_t *server = aco_spawn(answer, NULL, NULL);
    uint64_t n = 0;
    ssize_t got = 0;
    memset(&options, 0, sizeof options);
    memset(&call, 0, sizeof call);
    options.max_head = 256;
    options.max_headers = 6;
    options.max_redirects = -1;
    client = aco_http_client_new(&options);
    snprintf(url, sizeof url, "http://%s:%s/a", host, port);
    call.url = url;
    call.method = how ? "HEAD" : "GET";
    aco_scope_begin(&limit, aco_after(LIMIT_S * ACO_SECOND));
    response = aco_http_call(client, &call);
    EXPECT(response || errno == EBADMSG || errno == ECONNRESET);
    if (!response)
        note("error %d", errno);
    else {
        note("%d %d %lld", response->status, response->minor, (long long)response->length);
        EXPECT(response->status >= 200);
        for (size_t i = 0; i < response->header_count; i++)
            note(" [%s:%s]", response->headers[i].name, response->headers[i].value);
        while ((got = aco_http_response_read(response, part, sizeof part)) > 0)
            n += (uint64_t)got;
        EXPECT(response->length < 0 || got < 0 || n == (uint64_t)response->length || how);
        note_body(n, got);
        aco_http_response_end(response);
    }
    EXPECT(aco_check_cancelled() == 0);
    aco_scope_end(&limit);
    aco_http_client_destroy(client);
    EXPECT(aco_join(server, NULL) == 0);
    aco_io_close(listener);
    return NULL;
}

/* ---- Both ---- */

static void run_once(int which, aco_function_t test, void *arg)
{
    static unsigned runs;
    char address[ACO_IO_ADDRESS_SIZE];
    aco_t *task;
    log_at = logs[which];
    log_n = 0;
    *log_at = 0;
    /* An address for each run: closed connections are kept for a minute and use up the ports of a single one. */
    runs++;
    snprintf(host, sizeof host, "127.%u.%u.%u", 1 + runs / 65536 % 250, runs / 256 % 256, runs % 256);
    listener = aco_io_listen("tcp4", host, "0", NULL);
    if (listener < 0)
        fail(__LINE__, "aco_io_listen: %s", aco_error_message());
    EXPECT(aco_io_local_address(listener, address, sizeof address) == 0);
    snprintf(port, sizeof port, "%.7s", strchr(address, ':') + 1);
    task = aco_spawn(test, arg, NULL);
    EXPECT(task != NULL && aco_run() == 0 && aco_join(task, NULL) == 0);
}

static void fuzz_input(void)
{
    static const size_t pieces[] = {1, 2, 3, 5, 7, 16, 31, 100};
    unsigned first = next();
    aco_function_t test = first & 1 ? test_client : test_server;
    void *arg = first & 2 ? (void *)1 : NULL;
    if (is_over())
        return;
    bytes = input + at;
    bytes_n = input_sz - at;
    piece = bytes_n;
    run_once(0, test, arg);
    if (tracing)
        fprintf(stderr, "%s\n", logs[0]);
    piece = pieces[first >> 2 & 7];
    run_once(1, test, arg);
    if (strcmp(logs[0], logs[1]) != 0)
        fail(__LINE__, "in pieces of %zu bytes:\n%s\nand in one:\n%s", piece, logs[1], logs[0]);
}
