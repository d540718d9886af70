/* HTTP/2 in the server (include/aco/http.h): the same handlers as for HTTP/1, bodies both ways with flow control, slow
 * peers, trailers, limits, the end. The client is nghttp2, in a task of the same thread. With an address it serves
 * other programs' clients. */
#define _GNU_SOURCE
#include "http2_client.h"

#include <aco/event_stream.h>
#include <aco/sync.h>
#include <signal.h>

static uint64_t failures[ACO_HTTP_FAILURES];
static char logged[256];

static void logs(const aco_http_request_t *request, void *arg)
{
    size_t n = strlen(logged);
    (void)arg;
    snprintf(logged + n, sizeof logged - n, "%s%d", n ? " " : "", request->status);
}

static void sums_trailers(aco_http_request_t *request, void *arg)
{
    char text[64];
    size_t n;
    CHECK(aco_http_request_read_all(request, 100, &n) != NULL);
    snprintf(text, sizeof text, "%s|%zu", aco_http_request_trailer(request, "X-Sum"), n);
    (void)arg;
    CHECK_EQ(aco_http_reply_trailer(request, "X-Early", "1"), 0);
    FAILS_WITH(aco_http_reply_trailer(request, "Content-Length", "1"), EINVAL);
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, -1), 0);
    CHECK_EQ(aco_http_reply_write(request, text, strlen(text)), 0);
    CHECK_EQ(aco_http_reply_trailer(request, "X-Late", text), 0);
}

static void replies_by_parts(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, -1), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(aco_http_reply_write(request, "part ", 5), 0);
        CHECK_EQ(aco_http_reply_flush(request), 0);
    }
}

enum { BIG = 300000 };
static char big[BIG];
static int write_error;

static void replies_big(aco_http_request_t *request, void *arg)
{
    (void)arg;
    write_error = aco_http_reply(request, 200, NULL, big, sizeof big) == 0 ? 0 : errno;
}

static int sleep_error, connection_error;
static void sleeps(aco_http_request_t *request, void *arg)
{
    (void)arg;
    sleep_error = aco_sleep_until(ACO_FOREVER) == 0 ? 0 : errno;
    connection_error = aco_http_connection_error(request);
}

static void exits(aco_http_request_t *request, void *arg)
{
    (void)request;
    (void)arg;
    aco_exit();
}

static void aborts(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, -1), 0);
    aco_http_reply_abort(request);
}

static void takes_over(aco_http_request_t *request, void *arg)
{
    const void *bytes;
    size_t n;
    (void)arg;
    FAILS_WITH(aco_http_take_over(request, &bytes, &n) ? 0 : -1, ENOTSUP);
    CHECK_EQ(aco_http_reply(request, 501, NULL, NULL, 0), 0);
}

static void sends_events(aco_http_request_t *request, void *arg)
{
    static const aco_event_stream_event_t event = {.data = "text", .length = 4};
    (void)arg;
    CHECK_EQ(aco_event_stream_begin(request), 0);
    CHECK_EQ(aco_event_stream_send(request, &event), 0);
}

static aco_event_t gate;
static int at_gate, most_at_gate;
static void waits_at_gate(aco_http_request_t *request, void *arg)
{
    at_gate++;
    if (at_gate > most_at_gate)
        most_at_gate = at_gate;
    CHECK_EQ(aco_event_wait(&gate), 0);
    at_gate--;
    tells(request, arg);
}

static void waits_to_log(const aco_http_request_t *request, void *arg)
{
    CHECK_EQ(aco_event_wait(&gate), 0);
    logs(request, arg);
}

static void replies_file(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_file(request, HTTP2_FILES, aco_http_request_param(request, "*")), 0);
}

/* Bytes that are collected, and then a file that the system reads while others send. */
static void puts_before_file(aco_http_request_t *request, void *arg)
{
    char text[2000];
    int fd = open("/proc/version", O_RDONLY | O_CLOEXEC);
    ssize_t n = pread(fd, text, sizeof text, 0);
    (void)arg;
    CHECK(fd >= 0 && n > 0);
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, 7 + n), 0);
    CHECK_EQ(aco_http_reply_write(request, "before ", 7), 0);
    CHECK_EQ(aco_http_reply_write_file(request, fd, 0, n), 0);
    close(fd);
}

static const aco_http_middleware_t with_client[] = {{aco_http_end_with_client, NULL}, {NULL, NULL}};
static const aco_http_time_limit_t short_time = {ACO_MILLISECOND, NULL, NULL};
static const aco_http_middleware_t in_time[] = {{aco_http_limit_time, (void *)(uintptr_t)&short_time}, {NULL, NULL}};
static const aco_http_route_t watched[] = {{"GET", "/watched", sleeps, NULL}, {NULL, NULL, NULL, NULL}};
static const aco_http_route_t limited[] = {{"GET", "/limited", sleeps, NULL}, {NULL, NULL, NULL, NULL}};
static const aco_http_group_t groups[] = {{watched, with_client}, {limited, in_time}, {NULL, NULL}};
static const aco_http_route_t routes[] = {
    {"GET", "/", tells, "hello\n"},
    {NULL, "/describe/{id}", describes, NULL},
    {"POST", "/echo", echoes, NULL},
    {"POST", "/stream", streams, NULL},
    {"POST", "/trailers", sums_trailers, NULL},
    {"GET", "/parts", replies_by_parts, NULL},
    {"GET", "/big", replies_big, NULL},
    {"GET", "/nothing", says_nothing, NULL},
    {"GET", "/empty", has_no_body, NULL},
    {"GET", "/exits", exits, NULL},
    {"GET", "/aborts", aborts, NULL},
    {NULL, "/takes", takes_over, NULL},
    {"GET", "/events", sends_events, NULL},
    {"GET", "/gate", waits_at_gate, "open"},
    {"POST", "/unread", waits_at_gate, "unread"},
    {"GET", "/files/*", replies_file, NULL},
    {"GET", "/before", puts_before_file, NULL},
    {NULL, NULL, NULL, NULL},
};

static stage_t stage;
static h2_client_t client;

static void begin(void)
{
    memset(&stage.server, 0, sizeof stage.server);
    memset(failures, 0, sizeof failures);
    logged[0] = 0;
    stage.server.groups = groups;
    stage.server.failures = failures;
    stage.server.failed = ignores;
    stage.server.log = logs;
    aco_event_reset(&gate);
    at_gate = most_at_gate = 0;
}

static void begin_with_client(void)
{
    start(&stage, routes);
    h2_connect(&client, aco_stream_open(dial(&stage)));
}

static void end_both(void)
{
    h2_close(&client);
    stop(&stage);
}

/* One request, and what came. */
static const h2_reply_t *fetch(const char *method, const char *path, const char *content)
{
    int id = h2_request(&client, method, path, content, content ? strlen(content) : 0);
    h2_await(&client, id);
    return h2_reply(&client, id);
}
#define CHECK_REPLY(reply, wanted_status, wanted) \
    do { \
        const h2_reply_t *is_ = reply; \
        CHECK_EQ(is_->status, wanted_status); \
        CHECK_TEXT("the body", is_->body, wanted); \
    } while (0)

/* ---- The same as HTTP/1 ---- */

static void *replies_are_the_same(void *arg)
{
    begin();
    begin_with_client();
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "hello\n");
    CHECK_REPLY(fetch("HEAD", "/", NULL), 200, "");
    CHECK_REPLY(fetch("GET", "/describe/a%20b?a=1", NULL), 200,
                "GET|/describe/a%20b?a=1|/describe/a b|a=1|test|0|a b|-|1|-|0");
    CHECK_REPLY(fetch("POST", "/echo", "some text"), 200, "some text");
    CHECK_REPLY(fetch("POST", "/stream", "some text"), 200, "some text");
    CHECK_REPLY(fetch("GET", "/parts", NULL), 200, "part part part ");
    CHECK_REPLY(fetch("GET", "/nothing", NULL), 500, "500 Internal Server Error\n");
    CHECK_REPLY(fetch("GET", "/empty", NULL), 204, "");
    CHECK_REPLY(fetch("GET", "/none", NULL), 404, "404 Not Found\n");
    CHECK_REPLY(fetch("POST", "/", NULL), 405, "405 Method Not Allowed\n");
    CHECK_REPLY(fetch("GET", "/a/../b", NULL), 400, "400 Bad Request\n");
    CHECK_REPLY(fetch("GET", "/limited", NULL), 503, "503 Service Unavailable\n");
    CHECK_EQ(sleep_error, ETIMEDOUT);
    CHECK_REPLY(fetch("GET", "/takes", NULL), 501, "");
    CHECK_REPLY(fetch("GET", "/events", NULL), 200, "data: text\n\n");
    CHECK_REPLY(fetch("GET", "/files/none", NULL), 404, "404 Not Found\n");
    CHECK_EQ(fetch("GET", "/files/http2_server.c", NULL)->status, 200);
    CHECK_TEXT("the log", logged, "200 200 200 200 200 200 500 204 404 405 400 503 501 200 404 200");
    end_both();
    return arg;
}

static void *cut_replies_are_resets(void *arg)
{
    begin();
    begin_with_client();
    CHECK_EQ(fetch("GET", "/aborts", NULL)->error_code, NGHTTP2_INTERNAL_ERROR);
    CHECK_EQ(fetch("GET", "/exits", NULL)->error_code, NGHTTP2_INTERNAL_ERROR);
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "hello\n"); /* the connection goes on */
    end_both();
    return arg;
}

static void *trailers_come_and_go(void *arg)
{
    const h2_reply_t *reply;
    int id;
    begin();
    begin_with_client();
    client.trailer = "17";
    id = h2_request(&client, "POST", "/trailers", "abc", 3);
    client.trailer = NULL;
    h2_await(&client, id);
    reply = h2_reply(&client, id);
    CHECK_REPLY(reply, 200, "17|3");
    CHECK_TEXT("the trailers", reply->trailers, "x-early=1 x-late=17|3 ");
    end_both();
    return arg;
}

static void *trailers_of_http1(void *arg)
{
    static const char in_bytes[] =
        "POST /trailers HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\nX-Empty:\r\nX-Sum: 17\r\n\r\n";
    begin();
    start(&stage, routes);
    ask(&stage, "POST /trailers HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                "3\r\nabc\r\n0\r\nX-Other: 1\r\nX-Sum:  17 \r\n\r\n");
    CHECK_HAS("4\r\n17|3\r\n0\r\nX-Early: 1\r\nX-Late: 17|3\r\n\r\n");
    talk(&stage, in_bytes, sizeof in_bytes - 1, BYTE_BY_BYTE);
    CHECK_HAS("X-Late: 17|3\r\n\r\n");
    stop(&stage);
    return arg;
}

/* ---- Flow control ---- */

static void *bodies_pass_windows(void *arg)
{
    const h2_reply_t *reply;
    int id;
    begin();
    begin_with_client();
    for (int i = 0; i < BIG; i++)
        big[i] = (char)('a' + i % 17);
    for (int i = 0; i < 3; i++) {
        id = h2_request(&client, "POST", i ? "/stream" : "/echo", big, BIG);
        h2_await(&client, id);
        reply = h2_reply(&client, id);
        CHECK(reply->status == 200 && reply->n == BIG && memcmp(reply->body, big, BIG) == 0);
    }
    id = h2_request(&client, "GET", "/big", NULL, 0);
    h2_await(&client, id);
    CHECK_EQ(h2_reply(&client, id)->n, BIG);
    CHECK_EQ(write_error, 0);
    end_both();
    return arg;
}

/* A handler that does not read stops its client, and no other stream. */
static void *unread_bodies_stop_the_client(void *arg)
{
    int id, other;
    begin();
    stage.server.stream_window = 4096;
    begin_with_client();
    h2_round(&client); /* it knows the window now */
    id = h2_request(&client, "POST", "/unread", big, BIG);
    other = h2_request(&client, "GET", "/", NULL, 0);
    h2_await(&client, other);
    h2_round(&client);
    CHECK(client.sent_body <= 4096);
    CHECK_EQ(at_gate, 1);
    aco_event_set(&gate);
    h2_await(&client, id);
    CHECK_REPLY(h2_reply(&client, id), 200, "unread");
    end_both();
    return arg;
}

/* Also without having looked at the request. */
static void *refusals_of_head_have_no_body(void *arg)
{
    begin();
    stage.server.max_head = 100;
    begin_with_client();
    CHECK_REPLY(fetch("HEAD", "/0123456789012345678901234567890123456789012345678901234567890123456789", NULL), 414,
                "");
    CHECK_EQ(client.replies[0].error_code, NGHTTP2_NO_ERROR);
    CHECK_EQ(client.goaways, 0);
    end_both();
    return arg;
}

/* What was collected goes out while a file is read behind it. */
static void *files_stay_behind(void *arg)
{
    char wanted[2048] = "before ";
    FILE *file = fopen("/proc/version", "r");
    int ids[2];
    CHECK(file && fgets(wanted + 7, sizeof wanted - 7, file));
    fclose(file);
    begin();
    begin_with_client();
    for (int i = 0; i < 20; i++) {
        ids[0] = h2_request(&client, "GET", "/before", NULL, 0);
        ids[1] = h2_request(&client, "GET", "/", NULL, 0);
        h2_await(&client, ids[0]);
        h2_await(&client, ids[1]);
        CHECK_REPLY(h2_reply(&client, ids[0]), 200, wanted);
        CHECK_REPLY(h2_reply(&client, ids[1]), 200, "hello\n");
    }
    end_both();
    return arg;
}

/* A client that takes nothing stops its handler, until write_time is over. */
static void *slow_readers_stop_the_handler(void *arg)
{
    int id;
    begin();
    stage.server.write_time = 20 * ACO_MILLISECOND;
    start(&stage, routes);
    client.window = 1000;
    h2_connect(&client, aco_stream_open(dial(&stage)));
    client.window = 0;
    id = h2_request(&client, "GET", "/big", NULL, 0);
    client.takes_nothing = 1;
    h2_await(&client, id);
    CHECK_EQ(write_error, ETIMEDOUT);
    CHECK_EQ(h2_reply(&client, id)->error_code, NGHTTP2_CANCEL);
    CHECK_EQ(failures[ACO_HTTP_SLOW], 1);
    client.takes_nothing = 0;
    end_both();
    return arg;
}

static void *bodies_have_limits(void *arg)
{
    int id;
    begin();
    stage.server.max_body = 1000;
    begin_with_client();
    id = h2_request(&client, "POST", "/echo", big, 2000);
    h2_await(&client, id);
    CHECK_EQ(h2_reply(&client, id)->status, 413);
    client.hides_length = 1;
    id = h2_request(&client, "POST", "/echo", big, 2000);
    client.hides_length = 0;
    h2_await(&client, id);
    CHECK_EQ(h2_reply(&client, id)->status, 413);
    end_both();
    begin();
    stage.server.max_buffered = 1000;
    begin_with_client();
    id = h2_request(&client, "POST", "/echo", big, 20000);
    h2_await(&client, id);
    CHECK_EQ(h2_reply(&client, id)->status, 503);
    end_both();
    return arg;
}

/* ---- Streams ---- */

static void *streams_have_a_limit(void *arg)
{
    int ids[5];
    begin();
    stage.server.max_streams = 3;
    begin_with_client();
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "hello\n"); /* the client knows the settings */
    for (int i = 0; i < 5; i++)
        ids[i] = h2_request(&client, "GET", "/gate", NULL, 0);
    h2_round(&client);
    CHECK_EQ(at_gate, 3);
    aco_event_set(&gate);
    for (int i = 0; i < 5; i++) {
        h2_await(&client, ids[i]);
        CHECK_REPLY(h2_reply(&client, ids[i]), 200, "open");
    }
    end_both();
    return arg;
}

/* A stream whose client has its reply counts as long as the program's log waits. */
static void *logs_that_wait_count(void *arg)
{
    int ids[3];
    begin();
    stage.server.max_streams = 1;
    stage.server.log = waits_to_log;
    begin_with_client();
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            aco_event_set(&gate);
        while (i == 2 && !logged[0])
            aco_task_yield();
        ids[i] = h2_request(&client, "GET", "/", NULL, 0);
        h2_await(&client, ids[i]);
    }
    CHECK_REPLY(h2_reply(&client, ids[0]), 200, "hello\n");
    CHECK_EQ(h2_reply(&client, ids[1])->error_code, NGHTTP2_REFUSED_STREAM);
    CHECK_REPLY(h2_reply(&client, ids[2]), 200, "hello\n");
    end_both();
    CHECK_TEXT("what was logged", logged, "200 200");
    return arg;
}

static void *all_streams_have_a_limit(void *arg)
{
    int ids[2];
    begin();
    stage.server.max_streams_in_all = 1;
    begin_with_client();
    for (int i = 0; i < 2; i++)
        ids[i] = h2_request(&client, "GET", "/gate", NULL, 0);
    h2_await(&client, ids[1]);
    CHECK_EQ(h2_reply(&client, ids[1])->error_code, NGHTTP2_REFUSED_STREAM);
    aco_event_set(&gate);
    h2_await(&client, ids[0]);
    CHECK_REPLY(h2_reply(&client, ids[0]), 200, "open");
    end_both();
    return arg;
}

/* A reset ends a handler that wants to end with its client. */
static void *resets_reach_the_handler(void *arg)
{
    int id;
    begin();
    begin_with_client();
    id = h2_request(&client, "GET", "/watched", NULL, 0);
    h2_round(&client);
    sleep_error = connection_error = 0;
    h2_reset(&client, id);
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "hello\n");
    CHECK_EQ(sleep_error, ECANCELED);
    CHECK_EQ(connection_error, ECONNRESET);
    CHECK_EQ(failures[ACO_HTTP_LEFT], 1);
    end_both();
    return arg;
}

static void *lost_connections_end_handlers(void *arg)
{
    begin();
    begin_with_client();
    (void)h2_request(&client, "GET", "/watched", NULL, 0);
    h2_round(&client);
    sleep_error = connection_error = 0;
    h2_close(&client);
    stop(&stage);
    CHECK_EQ(sleep_error, ECANCELED);
    CHECK_EQ(connection_error, ECONNRESET);
    return arg;
}

/* ---- The end ---- */

/* The client is told, requests under way are answered, and then the connection ends. */
static void *stopped_servers_end_streams(void *arg)
{
    int id;
    begin();
    stage.server.drain_idle_time = 10 * ACO_MILLISECOND;
    begin_with_client();
    id = h2_request(&client, "GET", "/gate", NULL, 0);
    h2_round(&client);
    aco_scope_cancel(&stage.scope);
    while (!client.goaways)
        h2_step(&client);
    CHECK_EQ(client.last_id, INT32_MAX); /* a notice */
    while (client.goaways < 2)
        h2_step(&client);
    CHECK_EQ(client.last_id, id);
    aco_event_set(&gate);
    h2_await(&client, id);
    CHECK_REPLY(h2_reply(&client, id), 200, "open");
    while (!client.is_over)
        h2_step(&client);
    h2_close(&client); /* the server waits for it */
    CHECK_EQ(aco_join(stage.task, NULL), 0);
    return arg;
}

static void check_cancelled(const aco_http_failure_t *failure, void *arg)
{
    CHECK_EQ(failure->kind, ACO_HTTP_FAILED);
    CHECK_EQ(failure->error, ECANCELED);
    CHECK(!strcmp(failure->message, "the server's drain_time is over"));
    ++*(int *)arg;
}

/* What does not end in time is cancelled, and told. */
static void *drain_time_ends_handlers(void *arg)
{
    int failed = 0;
    begin();
    stage.server.drain_time = 10 * ACO_MILLISECOND;
    stage.server.failed = check_cancelled;
    stage.server.failed_arg = &failed;
    begin_with_client();
    (void)h2_request(&client, "GET", "/gate", NULL, 0);
    (void)h2_request(&client, "GET", "/watched", NULL, 0);
    h2_round(&client);
    sleep_error = 0;
    aco_event_set(&gate);
    aco_scope_cancel(&stage.scope);
    CHECK_EQ(aco_join(stage.task, NULL), 0);
    CHECK_EQ(sleep_error, ECANCELED);
    CHECK_EQ(failed, 1); /* the other one replies */
    h2_close(&client);
    return arg;
}

static void *idle_connections_end(void *arg)
{
    begin();
    stage.server.idle_time = 10 * ACO_MILLISECOND;
    begin_with_client();
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "hello\n");
    while (!client.is_over)
        h2_step(&client);
    CHECK_EQ(client.goaway_code, NGHTTP2_NO_ERROR);
    end_both();
    return arg;
}

static int counted;
static void counts(aco_http_request_t *request, void *arg)
{
    (void)arg;
    counted++;
    CHECK_EQ(aco_http_reply(request, 200, NULL, "x", 1), 0);
}

/* Those beyond the last one that GOAWAY names are not handled, even if they have come before it was sent: the client
 * sends them again. */
static void *requests_have_a_limit(void *arg)
{
    static const aco_http_route_t counting[] = {{"POST", "/", counts, NULL}, {NULL, NULL, NULL, NULL}};
    int ids[4];
    begin();
    stage.server.max_requests = 2;
    begin_with_client();
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "hello\n");
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "hello\n");
    while (!client.is_over)
        h2_step(&client);
    CHECK_EQ(client.last_id, 3);
    end_both();
    begin();
    stage.server.max_requests = 2;
    start(&stage, counting);
    h2_connect(&client, aco_stream_open(dial(&stage)));
    for (int i = 0; i < 4; i++)
        ids[i] = h2_request(&client, "POST", "/", "abc", 3);
    while (!client.is_over)
        h2_step(&client);
    CHECK_EQ(client.last_id, ids[1]);
    CHECK_EQ(counted, 2);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(h2_reply(&client, ids[i])->status, i < 2 ? 200 : 0);
        CHECK_EQ(h2_reply(&client, ids[i])->error_code, i < 2 ? NGHTTP2_NO_ERROR : NGHTTP2_REFUSED_STREAM);
    }
    end_both();
    return arg;
}

static aco_event_t has_aborted;
static void aborts_and_tells(aco_http_request_t *request, void *arg)
{
    aborts(request, arg);
    aco_event_set(&has_aborted);
}

static void send_frame(h2_client_t *c)
{
    const uint8_t *frame;
    ssize_t n = nghttp2_session_mem_send(c->session, &frame);
    CHECK(n > 0);
    CHECK_EQ(aco_stream_write(c->stream, frame, (size_t)n), n);
}

/* What is on its way to requests that were reset is not the client's fault: it may go on. */
static void *resets_spare_others(void *arg)
{
    static const aco_http_route_t aborting[] = {
        {"POST", "/", aborts_and_tells, NULL}, {"GET", "/", counts, NULL}, {NULL, NULL, NULL, NULL}};
    static char body[60000];
    begin();
    start(&stage, aborting);
    h2_connect(&client, aco_stream_open(dial(&stage)));
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "x");
    for (int i = 0; i < 20; i++) {
        int id = h2_request(&client, "POST", "/", body, sizeof body);
        aco_event_reset(&has_aborted);
        send_frame(&client);
        send_frame(&client); /* the head and 16 KiB of the body */
        if (aco_event_wait_until(&has_aborted, aco_after(10 * ACO_SECOND)) != 0)
            break; /* the connection is cut: what follows fails */
        h2_await(&client, id);
        CHECK_EQ(h2_reply(&client, id)->error_code, NGHTTP2_INTERNAL_ERROR);
    }
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "x");
    end_both();
    return arg;
}

/* A connection beyond max_connections gets 503 for its requests, is told that there are no further ones, and ends. If
 * it asks for nothing, it has head_time. */
static void *full_servers_refuse(void *arg)
{
    static h2_client_t full;
    int ids[2];
    begin();
    stage.server.max_connections = stage.server.max_refused = 1;
    stage.server.idle_time = -1;
    begin_with_client();
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "hello\n");
    h2_connect(&full, aco_stream_open(dial(&stage)));
    for (int i = 0; i < 2; i++)
        ids[i] = h2_request(&full, i ? "POST" : "GET", "/", i ? "abc" : NULL, i ? 3 : 0);
    while (!full.is_over)
        h2_step(&full);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(h2_reply(&full, ids[i])->status, 503);
    CHECK_EQ(full.last_id, ids[1]);
    CHECK_EQ(full.goaway_code, NGHTTP2_NO_ERROR);
    h2_close(&full);
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "hello\n"); /* others are not disturbed */
    end_both();
    begin();
    stage.server.max_connections = stage.server.max_refused = 1;
    stage.server.idle_time = -1;
    stage.server.head_time = 10 * ACO_MILLISECOND;
    begin_with_client();
    CHECK_REPLY(fetch("GET", "/", NULL), 200, "hello\n");
    h2_connect(&full, aco_stream_open(dial(&stage)));
    while (!full.is_over)
        h2_step(&full);
    CHECK_EQ(full.goaway_code, NGHTTP2_NO_ERROR);
    h2_close(&full);
    end_both();
    return arg;
}

/* ---- Which version ---- */

static void *versions_can_be_refused(void *arg)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    begin();
    stage.server.max_streams = -1;
    start(&stage, routes);
    ask(&stage, preface);
    CHECK_HAS("HTTP/1.1 505 ");
    stop(&stage);
    begin();
    start(&stage, routes);
    talk(&stage, "GET / HTTP/1.1\r\nHost: a\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 52, IN_ONE_PIECE);
    CHECK_TEXT("only at first", statuses(), "200 505");
    stop(&stage);
    begin();
    stage.server.stream_window = 10;
    FAILS_WITH(aco_http_serve(aco_io_listen("tcp4", "127.0.0.1", "0", NULL), &stage.server), EINVAL);
    return arg;
}

int main(int argc, char **argv)
{
    static const aco_function_t tests[] = {
        replies_are_the_same,     cut_replies_are_resets,        trailers_come_and_go,
        trailers_of_http1,        bodies_pass_windows,           unread_bodies_stop_the_client,
        files_stay_behind,        refusals_of_head_have_no_body, slow_readers_stop_the_handler,
        bodies_have_limits,       streams_have_a_limit,          all_streams_have_a_limit,
        resets_reach_the_handler, lost_connections_end_handlers, stopped_servers_end_streams,
        drain_time_ends_handlers, idle_connections_end,          requests_have_a_limit,
        resets_spare_others,      full_servers_refuse,           versions_can_be_refused,
        logs_that_wait_count,
    };
    (void)argv;
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1)
        return serve_others(routes, NULL);
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http2_server");
}
