/* Middleware, limits and own replies on connections that were accepted elsewhere, and around handlers that take their
 * connection over (include/aco/http.h): on streams of memory and of sockets. */
#define _GNU_SOURCE
#include "http_tests.h"

#include <aco/event_stream.h>
#include <aco/websocket.h>
#include <signal.h>

enum { MEMORY, SOCKET, KINDS };
static int kind;
static uint64_t failures[ACO_HTTP_FAILURES];
static char logged[64]; /* the statuses of all requests */
static int taking_error, waits_failed, next_status;

/* ---- Handlers and middleware ---- */

static void marks(aco_http_request_t *request, void *name)
{
    CHECK_EQ(aco_http_reply_header(request, "X-Around", name), 0);
    CHECK_EQ(aco_http_next(request), 0);
    next_status = request->status;
}

/* What stands around a handler that takes the connection over sees that there will be no reply. */
static void sees_no_reply(aco_http_request_t *request, void *arg)
{
    static const aco_event_stream_event_t event = {.data = "text", .length = 4};
    (void)arg;
    CHECK_EQ(aco_http_next(request), 0);
    CHECK(request->status == 0 && request->stream == NULL && request->fd == -1);
    FAILS_WITH(aco_http_reply_header(request, "X-Late", "1"), EBUSY);
    FAILS_WITH(aco_http_reply(request, 202, NULL, NULL, 0), EBUSY);
    FAILS_WITH(aco_http_reply_begin(request, 202, NULL, -1), EBUSY);
    FAILS_WITH(aco_http_reply_write(request, "text", 4), EBUSY);
    FAILS_WITH(aco_http_reply_write(request, "", 0), EBUSY);
    FAILS_WITH(aco_http_reply_write_file(request, -1, 0, 0), EBUSY);
    FAILS_WITH(aco_http_reply_flush(request), EBUSY);
    FAILS_WITH(aco_event_stream_begin(request), EBUSY);
    FAILS_WITH(aco_event_stream_send(request, &event), EBUSY);
    FAILS_WITH(aco_event_stream_ping(request), EBUSY);
    FAILS_WITH(aco_websocket_accept(request, NULL) ? 0 : -1, EBUSY);
}

static aco_stream_t *take(aco_http_request_t *request)
{
    const void *bytes;
    size_t n;
    aco_stream_t *stream = aco_http_take_over(request, &bytes, &n);
    taking_error = stream ? 0 : errno;
    return stream;
}

/* Its scope ends while it has the stream. */
static void takes_until_late(aco_http_request_t *request, void *arg)
{
    aco_stream_t *stream = take(request);
    aco_scope_t shield;
    char byte;
    (void)arg;
    CHECK(stream != NULL);
    CHECK_EQ(aco_stream_write_all(stream, "in ", 3), 3);
    waits_failed = aco_stream_read(stream, &byte, 1) < 0 ? errno : 0;
    aco_http_reply_abort(request); /* as C++ does */
    aco_shield_begin(&shield, ACO_FOREVER);
    CHECK_EQ(aco_stream_write_all(stream, "late", 4), 4);
    aco_scope_end(&shield);
    aco_stream_close(stream);
}

/* Reads to the end, and goes on: in this protocol the client may end first. */
static void takes_until_end(aco_http_request_t *request, void *arg)
{
    aco_stream_t *stream;
    char byte;
    (void)arg;
    for (int i = 0; i < 3; i++)
        aco_task_yield(); /* the watch looks already */
    stream = take(request);
    CHECK(stream != NULL);
    FAILS_WITH(aco_http_reply_file(request, ".", "none"), EBUSY); /* nor is it refused */
    CHECK_EQ(aco_stream_write_all(stream, "taken", 5), 5);
    while (aco_stream_read(stream, &byte, 1) > 0)
        ;
    for (int i = 0; i < 10; i++)
        aco_task_yield();
    CHECK_EQ(aco_check_cancelled(), 0);
    CHECK_EQ(aco_http_connection_error(request), 0);
    CHECK_EQ(aco_stream_write_all(stream, "whole", 5), 5);
    aco_stream_close(stream);
    CHECK_EQ(aco_sleep(1), 0); /* nor does the end of the stream count */
}

static void aborts_taken(aco_http_request_t *request, void *arg)
{
    aco_stream_t *stream = take(request);
    (void)arg;
    CHECK(stream != NULL);
    aco_http_reply_abort(request);
    CHECK_EQ(aco_stream_write_all(stream, "mine", 4), 4);
    aco_stream_close(stream);
}

static void waits_for_client(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_sleep_until(ACO_FOREVER), -1);
    waits_failed = errno;
    CHECK_EQ(aco_http_connection_error(request), ECONNRESET);
}

static void refuses_by_text(aco_http_request_t *request, int status, void *arg)
{
    (void)arg;
    CHECK(take(request) == NULL);
    CHECK_EQ(aco_http_reply(request, status, NULL, "own", 3), 0);
}

static void refuses_in_part(aco_http_request_t *request, int status, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, status, NULL, -1), 0);
    CHECK_EQ(aco_http_reply_write(request, "part", 4), 0);
    aco_http_reply_abort(request);
}

static void notes_request(const aco_http_request_t *request, void *arg)
{
    size_t n = strlen(logged);
    (void)arg;
    snprintf(logged + n, sizeof logged - n, "%s%d", n ? " " : "", request->status);
}

/* ---- A connection ---- */

typedef struct served {
    aco_http_server_t *server;
    aco_stream_t *ends[2];
} served_t;

static void *serves_connection(void *arg)
{
    served_t *s = arg;
    CHECK_EQ(aco_http_serve_connection(s->server, s->ends[1], NULL, 0), 0);
    return NULL;
}

/* A client's connection to a server with these options, in the group. */
static void begin(served_t *s, aco_group_t *group, aco_http_server_options_t options)
{
    int fds[2];
    options.failures = failures;
    options.log = notes_request;
    memset(failures, 0, sizeof failures);
    logged[0] = 0;
    taking_error = waits_failed = 0;
    s->server = aco_http_server_new(&options);
    CHECK(s->server != NULL);
    if (kind == MEMORY) {
        CHECK_EQ(aco_stream_pair(s->ends, 64), 0);
    } else {
        make_tcp(fds);
        s->ends[0] = aco_stream_open(fds[0]);
        s->ends[1] = aco_stream_open(fds[1]);
    }
    CHECK(s->ends[0] && s->ends[1]);
    aco_group_begin(group, ACO_KEEP_GOING);
    member(group, serves_connection, s);
}

static void sends(served_t *s, const char *text)
{
    CHECK_EQ(aco_stream_write_all(s->ends[0], text, strlen(text)), (ssize_t)strlen(text));
}

/* Reads to the end: 0, or an errno. */
static int reads_to_end(served_t *s)
{
    ssize_t n = 1;
    for (got_n = 0; n > 0; got_n += n > 0 ? (size_t)n : 0)
        n = aco_stream_read(s->ends[0], got + got_n, sizeof got - 1 - got_n);
    got[got_n] = 0;
    return n ? errno : 0;
}

static void ends(served_t *s, aco_group_t *group, int error)
{
    CHECK_EQ(reads_to_end(s), error);
    aco_stream_close(s->ends[0]);
    aco_group_end(group);
    aco_http_server_destroy(s->server);
    for (size_t i = 0; i < ACO_HTTP_FAILURES; i++)
        CHECK_EQ(failures[i], 0);
}

/* The whole conversation, which the server ends. */
static void converse(aco_http_server_options_t options, const char *text)
{
    served_t s;
    aco_group_t group;
    begin(&s, &group, options);
    sends(&s, text);
    ends(&s, &group, 0);
}

#define ASK(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

static const aco_http_middleware_t with_client[] = {{aco_http_end_with_client, NULL}, {NULL, NULL}},
                                   with_client_twice[] = {{aco_http_end_with_client, NULL},
                                                          {sees_no_reply, NULL},
                                                          {aco_http_end_with_client, NULL},
                                                          {NULL, NULL}};

/* ---- The tests ---- */

static void *surrounds_streams(void *arg)
{
    static const aco_http_middleware_t outer[] = {{marks, "a"}, {NULL, NULL}}, inner[] = {{marks, "b"}, {NULL, NULL}};
    static const aco_http_route_t routes[] = {{"GET", "/", tells, "one"}, {NULL, NULL, NULL, NULL}},
                                  more[] = {{"GET", "/two", tells, "two"}, {NULL, NULL, NULL, NULL}};
    static const aco_http_group_t groups[] = {{more, inner}, {NULL, NULL}};
    const aco_http_server_options_t options = {
        .routes = routes, .groups = groups, .middleware = outer, .refused = refuses_by_text, .max_requests = 3};
    converse(options, ASK("/") ASK("/two") ASK("/none") ASK("/"));
    CHECK_TEXT("the third is the last", statuses(), "200 200 404");
    CHECK_TEXT("the same in the log", logged, "200 200 404");
    CHECK_HAS("X-Around: a\r\n");
    CHECK_HAS("X-Around: b\r\n");
    CHECK_HAS("own");
    CHECK_HAS("Connection: close\r\n");
    CHECK_EQ(taking_error, EPERM);
    CHECK_EQ(next_status, 404);
    taking_error = 0;
    converse(options, "GET / HTTP/1.1\r\nno header\r\n\r\n");
    CHECK_TEXT("a wrong head", statuses(), "400");
    CHECK_EQ(taking_error, EPERM);
    return arg;
}

static void *limits_no_taken_stream(void *arg)
{
    static const aco_http_time_limit_t limit = {ACO_MILLISECOND, NULL, NULL};
    static const aco_http_middleware_t limited[] = {
        {aco_http_limit_time, (void *)(uintptr_t)&limit}, {sees_no_reply, NULL}, {NULL, NULL}};
    static const aco_http_route_t routes[] = {{"GET", "/take", takes_until_late, NULL}, {NULL, NULL, NULL, NULL}};
    converse((aco_http_server_options_t){.routes = routes, .middleware = limited}, ASK("/take"));
    CHECK_EQ(waits_failed, ETIMEDOUT);
    CHECK_TEXT("what the handler has written", got, "in late");
    CHECK_TEXT("no reply", logged, "0");
    return arg;
}

static void aborts_late(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_sleep_until(ACO_FOREVER), -1);
    aco_http_reply_abort(request); /* as C++ does */
}

static void begins_and_waits(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, -1), 0);
    CHECK_EQ(aco_sleep_until(ACO_FOREVER), -1);
}

/* A late reply is whole, whatever has failed before it began; so is one that has no body. */
static void *cuts_no_whole_reply(void *arg)
{
    static const aco_http_time_limit_t limit = {ACO_MILLISECOND, NULL, NULL};
    static const aco_http_middleware_t limited[] = {{aco_http_limit_time, (void *)(uintptr_t)&limit}, {NULL, NULL}};
    static const aco_http_route_t routes[] = {
        {"GET", "/late", aborts_late, NULL}, {"GET", "/begin", begins_and_waits, NULL}, {NULL, NULL, NULL, NULL}};
    const aco_http_server_options_t options = {.routes = routes, .middleware = limited};
    converse(options, ASK("/late"));
    CHECK_TEXT("late", statuses(), "503");
    CHECK_HAS("Connection: close\r\n");
    converse(options, "HEAD /begin HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    CHECK_TEXT("no body", statuses(), "200");
    return arg;
}

/* Nor does a refusal look whole that its maker has aborted, whether the head was right or not. */
static void *cuts_refusals(void *arg)
{
    static const char *const requests[] = {ASK("/none"), "GET / HTTP/1.1\r\nno header\r\n\r\n"};
    for (size_t i = 0; i < 2; i++) {
        served_t s;
        aco_group_t group;
        begin(&s, &group, (aco_http_server_options_t){.refused = refuses_in_part});
        sends(&s, requests[i]);
        ends(&s, &group, ECONNRESET);
        CHECK(!strstr(got, "0\r\n\r\n"));
    }
    return arg;
}

/* A scope of the caller's ends: that is no failure of a connection which is not the server's any more. */
static void *fails_no_taken_stream(void *arg)
{
    static const aco_http_route_t routes[] = {{"GET", "/take", takes_until_late, NULL}, {NULL, NULL, NULL, NULL}};
    served_t s;
    aco_group_t group;
    begin(&s, &group, (aco_http_server_options_t){.routes = routes});
    sends(&s, ASK("/take"));
    CHECK_EQ(aco_stream_read_exactly(s.ends[0], got, 3), 3);
    aco_scope_cancel(&group.scope);
    aco_group_end(&group);
    CHECK_EQ(waits_failed, ECANCELED);
    CHECK_EQ(aco_stream_read_exactly(s.ends[0], got, 4), 4);
    aco_stream_close(s.ends[0]);
    aco_http_server_destroy(s.server);
    CHECK_EQ(failures[ACO_HTTP_FAILED], 0);
    return arg;
}

static void *watches_no_taken_stream(void *arg)
{
    static const aco_http_route_t routes[] = {
        {"GET", "/take", takes_until_end, NULL}, {"GET", "/abort", aborts_taken, NULL}, {NULL, NULL, NULL, NULL}};
    const aco_http_server_options_t options = {
        .routes = routes, .middleware = with_client_twice, .refused = refuses_by_text};
    served_t s;
    aco_group_t group;
    begin(&s, &group, options);
    sends(&s, ASK("/take") "more");
    CHECK_EQ(aco_stream_read_exactly(s.ends[0], got, 5), 5);
    CHECK_EQ(aco_stream_shutdown(s.ends[0]), 0);
    ends(&s, &group, 0);
    CHECK_TEXT("its client has ended before", got, "whole");
    CHECK_TEXT("no reply", logged, "0");
    converse(options, ASK("/abort"));
    CHECK_TEXT("aborting is not for it", got, "mine");
    return arg;
}

/* A stream of memory has no descriptor: its clients are not watched. */
static void *watches_streams(void *arg)
{
    static const aco_http_route_t routes[] = {
        {"GET", "/", tells, "one"}, {"GET", "/wait", waits_for_client, NULL}, {NULL, NULL, NULL, NULL}};
    const aco_http_server_options_t options = {.routes = routes, .middleware = with_client};
    served_t s;
    aco_group_t group;
    converse(options, ASK("/") "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    CHECK_TEXT("whoever stays", statuses(), "200 200");
    if (kind == MEMORY)
        return arg;
    begin(&s, &group, options);
    sends(&s, ASK("/wait"));
    aco_stream_close(s.ends[0]);
    aco_group_end(&group);
    aco_http_server_destroy(s.server);
    CHECK_EQ(waits_failed, ECANCELED);
    CHECK_TEXT("nobody is told", logged, "0");
    CHECK_EQ(failures[ACO_HTTP_LEFT], 1);
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {surrounds_streams, limits_no_taken_stream, cuts_no_whole_reply,
                                           cuts_refusals,     fails_no_taken_stream,  watches_no_taken_stream,
                                           watches_streams};
    signal(SIGPIPE, SIG_IGN);
    for (kind = 0; kind < KINDS; kind++)
        run_http_tests(tests, sizeof tests / sizeof *tests);
    return check_result("http_streams_around");
}
