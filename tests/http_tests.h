/* For the tests of aco/http.h: a server, a peer that sends raw bytes, what came back, handlers. */
#ifndef HTTP_TESTS_H
#define HTTP_TESTS_H

#include <aco/http.h>
#include "io_tests.h"

#ifdef SIMULATED_RUNS
#include <aco/sim.h>
#include "sim_runs.h"
#endif

#include <stdlib.h>

/* ---- A server and its peer ---- */

typedef struct stage {
    aco_http_server_options_t server;
    char port[8];
    int listener;
    aco_scope_t scope; /* of the server */
    int has_begun;     /* the scope has */
    aco_t *task;
    int error; /* with which serving ended */
} stage_t;

/* A stream by these functions, which free it. */
static inline aco_stream_t *own_stream(int fd, const aco_stream_functions_t *functions)
{
    aco_stream_t *stream = malloc(sizeof *stream);
    CHECK(stream != NULL);
    stream->functions = functions;
    stream->fd = fd;
    return stream;
}

/* For a server whose failures are the test's. */
static inline void ignores(const aco_http_failure_t *failure, void *arg)
{
    (void)failure;
    (void)arg;
}

static inline void *serves(void *arg)
{
    stage_t *stage = arg;
    aco_scope_begin(&stage->scope, ACO_FOREVER);
    stage->has_begun = 1;
    CHECK_EQ(aco_http_serve(stage->listener, &stage->server), -1);
    stage->error = errno;
    aco_scope_end(&stage->scope);
    return NULL;
}

static inline void start(stage_t *stage, const aco_http_route_t *routes)
{
    char address[ACO_IO_ADDRESS_SIZE];
    stage->server.routes = routes;
    stage->listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK(stage->listener >= 0);
    CHECK_EQ(aco_io_local_address(stage->listener, address, sizeof address), 0);
    snprintf(stage->port, sizeof stage->port, "%s", strchr(address, ':') + 1);
    stage->has_begun = 0;
    stage->task = aco_spawn(serves, stage, NULL);
    CHECK(stage->task != NULL);
    while (!stage->has_begun)
        aco_task_yield();
}

static inline void stop(stage_t *stage)
{
    aco_scope_cancel(&stage->scope);
    CHECK_EQ(aco_join(stage->task, NULL), 0);
    CHECK_EQ(stage->error, ECANCELED);
}

static inline int dial(const stage_t *stage)
{
    int fd = aco_io_dial("tcp4", "127.0.0.1", stage->port, NULL);
    CHECK(fd >= 0);
    return fd;
}

static char got[1 << 22]; /* what came, with a 0 behind it */
static size_t got_n;

/* 0; -1: the stream has no end, it was cut. */
static inline ssize_t read_to_end(int fd)
{
    ssize_t n = 1;
    for (got_n = 0; n > 0 && got_n < sizeof got - 1; got_n += n > 0 ? (size_t)n : 0)
        n = aco_io_read(fd, got + got_n, sizeof got - 1 - got_n);
    got[got_n] = 0;
    return n;
}

/* Reads a request's head, and no more if the peer then waits. Whether it came. */
static inline int read_head(int fd)
{
    char head[1024] = "";
    size_t n = 0;
    while (n < sizeof head - 1 && !strstr(head, "\r\n\r\n")) {
        ssize_t some = aco_io_read(fd, head + n, sizeof head - 1 - n);
        if (some <= 0)
            return 0;
        head[n += (size_t)some] = 0;
    }
    return 1;
}

/* Reads until a reply has come whole, whose body has a Content-Length. Its status; 0: the connection ended before. */
static inline int read_reply(int fd)
{
    const char *head_end = NULL, *length;
    size_t whole = sizeof got - 1;
    got[got_n = 0] = 0;
    while (got_n < whole) {
        ssize_t n = aco_io_read(fd, got + got_n, sizeof got - 1 - got_n);
        if (n <= 0)
            return 0;
        got[got_n += (size_t)n] = 0;
        head_end = strstr(got, "\r\n\r\n");
        length = head_end ? strstr(got, "\r\nContent-Length: ") : NULL;
        if (head_end)
            whole = (size_t)(head_end + 4 - got) + (length && length < head_end ? (size_t)atol(length + 18) : 0);
    }
    return atoi(got + 9);
}

enum { IN_ONE_PIECE, BYTE_BY_BYTE };

/* Sends these bytes and the end of the stream, and reads what comes until the server closes. */
static inline const char *talk(const stage_t *stage, const char *bytes, size_t n, int how)
{
    int fd = dial(stage);
    size_t part = how == BYTE_BY_BYTE ? 1 : n;
    for (size_t sent = 0; sent < n; sent += part) {
        if (aco_io_write_all(fd, bytes + sent, part) < 0) /* it was refused before all had come */
            break;
        if (how == BYTE_BY_BYTE)
            aco_task_yield();
    }
    aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    CHECK_EQ(aco_io_close(fd), 0);
    return got;
}

static inline const char *ask(const stage_t *stage, const char *text)
{
    return talk(stage, text, strlen(text), IN_ONE_PIECE);
}

/* The statuses of the replies that came, "200 404"; replies without a body only have to be last. */
static inline const char *statuses(void)
{
    static char text[512];
    size_t n = 0;
    const char *at = got;
    text[0] = 0;
    while (strncmp(at, "HTTP/1.1 ", 9) == 0 && n < sizeof text - 5) {
        const char *end = strstr(at, "\r\n\r\n"), *length = strstr(at, "\r\nContent-Length: ");
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.3s", n ? " " : "", at + 9);
        if (!end)
            break;
        at = end + 4 + (length && length < end ? atol(length + 18) : 0);
        if (at > got + got_n)
            break;
    }
    return text;
}

static inline void check_text(const char *file, int line, const char *what, const char *is, const char *wanted)
{
    if (strcmp(is, wanted) == 0)
        return;
    fprintf(stderr, "%s:%d: %s: \"%s\" and not \"%s\"; all of it: \"%.300s\"\n", file, line, what, is, wanted, got);
    CHECK(!"the text");
}
#define CHECK_TEXT(what, is, wanted) check_text(__FILE__, __LINE__, what, is, wanted)
#define CHECK_HAS(text) check_has(__FILE__, __LINE__, text)

static inline void check_has(const char *file, int line, const char *text)
{
    if (strstr(got, text))
        return;
    fprintf(stderr, "%s:%d: there is no \"%s\" in \"%.300s\"\n", file, line, text, got);
    CHECK(!"the text is there");
}

static inline const char *body(void)
{
    const char *end = strstr(got, "\r\n\r\n");
    return end ? end + 4 : "";
}

/* ---- Handlers ---- */

static inline void tells(aco_http_request_t *request, void *text)
{
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", text, strlen(text)), 0);
}

/* What it knows of the request. */
static inline void describes(aco_http_request_t *request, void *arg)
{
    char text[2048];
    const char *id = aco_http_request_param(request, "id"), *rest = aco_http_request_param(request, "*");
    const char *a = aco_http_request_query(request, "a"), *x = aco_http_request_header(request, "X-Test");
    int n = snprintf(text, sizeof text, "%s|%s|%s|%s|%s|%d|%s|%s|%s|%s|%lld", request->method, request->target,
                     request->path, request->query, request->host, request->minor, id ? id : "-", rest ? rest : "-",
                     a ? a : "-", x ? x : "-", (long long)request->length);
    (void)arg;
    CHECK(aco_http_request_param(request, "none") == NULL && aco_http_request_header(request, "none") == NULL);
    errno = EIO;
    CHECK(aco_http_request_query(request, "none") == NULL && errno == 0);
    n = n < (int)sizeof text ? n : (int)sizeof text - 1;
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", text, (size_t)n), 0);
}

static inline void echoes(aco_http_request_t *request, void *arg)
{
    size_t n;
    char *text = aco_http_request_read_all(request, 4 << 20, &n); /* more than the server's own limit */
    (void)arg;
    if (text && text[n] == 0)
        CHECK_EQ(aco_http_reply(request, 200, NULL, text, n), 0);
}

/* Reads and writes at the same time. */
static inline void streams(aco_http_request_t *request, void *arg)
{
    char part[777];
    ssize_t n;
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, "application/octet-stream", -1), 0);
    while ((n = aco_http_request_read(request, part, sizeof part)) > 0)
        if (aco_http_reply_write(request, part, (size_t)n) != 0)
            return;
}

static inline void says_nothing(aco_http_request_t *request, void *arg)
{
    (void)request;
    (void)arg;
}

#define HOST "Host: a\r\n"
#define GET(headers) "GET / HTTP/1.1\r\n" HOST headers "\r\n"
#define POST(headers, content) "POST /echo HTTP/1.1\r\n" HOST headers "\r\n" content

static inline void has_no_body(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply(request, 204, NULL, NULL, 0), 0);
}

static inline void streams_text(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, -1), 0);
    CHECK_EQ(aco_http_reply_write(request, "ab", 2), 0);
    CHECK_EQ(aco_http_reply_write(request, "", 0), 0); /* is not the end */
    CHECK_EQ(aco_http_reply_write(request, "c", 1), 0);
}

/* ---- For other clients ---- */

static inline void *serves_others(void *stage)
{
    CHECK_EQ(aco_http_serve(((stage_t *)stage)->listener, &((stage_t *)stage)->server), -1);
    return NULL;
}

/* Serves until it is killed, for a minute at most. Prints its address. */
static inline int serve_others(const aco_http_route_t *routes, const aco_http_middleware_t *middleware)
{
    static stage_t stage;
    char address[ACO_IO_ADDRESS_SIZE];
    stage.server.routes = routes;
    stage.server.middleware = middleware;
    stage.listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(stage.listener, address, sizeof address), 0);
    puts(address);
    fflush(stdout);
    alarm(60);
    aco_spawn(serves_others, &stage, NULL);
    return aco_run();
}

#ifdef SIMULATED_RUNS /* with so many seeds, in virtual time: no test waits for what it has waited for in the kernel */
static inline void run_one(aco_sim_t *sim, void *test)
{
    (void)sim;
    (*(const aco_function_t *)test)(NULL);
}

static inline void run_http_tests(const aco_function_t *tests, size_t n)
{
    sim_alarm(60);
    for (size_t i = 0; i < n; i++) {
        aco_function_t test = tests[i];
        aco_sim_stats_t stats;
        CHECK_EQ(aco_sim_run(run_one, &test, sim_runs(SIMULATED_RUNS), &stats, NULL), 0);
        if (stats.seed)
            fprintf(stderr, "test %zu, seed %llu: %s\n", i, (unsigned long long)stats.seed, stats.reason);
    }
}
#else
/* The tests of one program. */
static inline void run_http_tests(const aco_function_t *tests, size_t n)
{
    run_task(warms_up, NULL);
    run_tests(tests, n, count_descriptors());
}
#endif

#endif
