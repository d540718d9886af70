/* gRPC clients (include/aco/grpc.h) with the server of this library, and with servers that break the rules. With
 * arguments it is a client of other programs' servers (tests/io/grpc_peers.py). With GRPC_FAILURE each allocation fails
 * once, too. */
#define _GNU_SOURCE
#include "grpc_tests.h"

#include <aco/sync.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/socket.h>

static int is_other; /* the server is another library's */
static stage_t stage;
static aco_grpc_server_t *server;
static aco_grpc_channel_t *channel;
static char target[32];

/* ---- Handlers ---- */

static const aco_stream_t *connection; /* of the calls of chat_by() */
static int connections;

static int chat_by(aco_grpc_call_t *call, void *arg)
{
    connections += connection != aco_grpc_request(call)->stream;
    connection = aco_grpc_request(call)->stream;
    return chat(call, arg);
}

/* What came goes back as metadata and as a trailer. */
static int metadata(aco_grpc_call_t *call, void *arg)
{
    size_t n = 0;
    const void *value = aco_grpc_metadata(call, "x-text", 0, &n);
    if (value && aco_grpc_add_metadata(call, "x-text", value, n) != 0)
        return ACO_GRPC_FROM_ERRNO;
    for (const char *name = NULL; (name = aco_grpc_next_metadata(call, name)) != NULL;)
        if (strncmp(name, "x-n", 3) == 0 && aco_grpc_add_trailer(call, name, name, strlen(name)) != 0)
            return ACO_GRPC_INTERNAL;
    for (size_t i = 0; (value = aco_grpc_metadata(call, "x-bytes-bin", i, &n)) != NULL; i++)
        if (aco_grpc_add_trailer(call, "x-bytes-bin", value, n) != 0)
            return ACO_GRPC_FROM_ERRNO;
    return errno == ENOMEM ? ACO_GRPC_FROM_ERRNO : echo(call, arg);
}

static char host[64], coding[16];
/* Compresses; notes how it was asked. */
static int packs(aco_grpc_call_t *call, void *arg)
{
    const char *is = aco_http_request_header(aco_grpc_request(call), "grpc-encoding");
    snprintf(coding, sizeof coding, "%s", is ? is : "none");
    snprintf(host, sizeof host, "%s", aco_grpc_request(call)->host);
    return aco_grpc_compress(call, 1) == 0 ? echo(call, arg) : ACO_GRPC_FROM_ERRNO;
}

static int says(aco_grpc_call_t *call, void *text)
{
    return aco_grpc_write(call, text, 1) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

static int fails(aco_grpc_call_t *call, void *arg)
{
    (void)arg;
    if (aco_grpc_set_details(call, "\0\1", 2) != 0 || aco_grpc_add_trailer(call, "x-why", "none", 4) != 0)
        return ACO_GRPC_FROM_ERRNO;
    return aco_grpc_fail(call, ACO_GRPC_NOT_FOUND, "\t100 % of \xe2\x98\xba\n");
}

/* It fails behind a message. */
static int fails_late(aco_grpc_call_t *call, void *arg)
{
    (void)arg;
    if (aco_grpc_write(call, "one", 3) != 0)
        return ACO_GRPC_FROM_ERRNO;
    return aco_grpc_fail(call, ACO_GRPC_ABORTED, "too late");
}

static int left_with;
static int64_t deadline_was;
static aco_event_t has_begun, has_left;
static int sleeps(aco_grpc_call_t *call, void *arg)
{
    (void)call;
    (void)arg;
    deadline_was = aco_deadline();
    aco_event_set(&has_begun);
    left_with = aco_sleep_until(ACO_FOREVER) == 0 ? 0 : errno;
    aco_event_set(&has_left);
    errno = left_with;
    return ACO_GRPC_FROM_ERRNO;
}

/* It is unavailable so often; then it tells how often it was tried, as the client says. */
static int times, asked;
static const char *pushback;
static int fails_at_first(aco_grpc_call_t *call, void *arg)
{
    size_t n = 0;
    const char *tries = aco_grpc_metadata(call, "grpc-previous-rpc-attempts", 0, &n);
    asked++;
    if (times-- > 0) {
        if (pushback && aco_http_reply_header((aco_http_request_t *)(uintptr_t)aco_grpc_request(call),
                                              "grpc-retry-pushback-ms", pushback) != 0)
            return ACO_GRPC_FROM_ERRNO;
        return aco_grpc_fail(call, ACO_GRPC_UNAVAILABLE, "not yet");
    }
    if (aco_grpc_add_metadata(call, "x-tries", tries ? tries : "none", tries ? n : 4) != 0)
        return ACO_GRPC_FROM_ERRNO;
    return echo(call, arg);
}

/* ---- What is no gRPC, or wrong ---- */

typedef struct aco_test_reply {
    int status;
    const char *type, *body;
    size_t n;
    const char *trailers[8], *headers[4];
    int is_cut;
} aco_test_reply_t;

static void replies(aco_http_request_t *request, void *arg)
{
    const aco_test_reply_t *reply = arg;
    char bytes[256];
    while (aco_http_request_read(request, bytes, sizeof bytes) > 0)
        ;
    for (int i = 0; i < 4 && reply->headers[i]; i += 2)
        CHECK_EQ(aco_http_reply_header(request, reply->headers[i], reply->headers[i + 1]), 0);
    if (aco_http_reply_begin(request, reply->status, reply->type, -1) != 0 ||
        (reply->n && aco_http_reply_write(request, reply->body, reply->n) != 0))
        return;
    for (int i = 0; i < 8 && reply->trailers[i]; i += 2)
        CHECK_EQ(aco_http_reply_trailer(request, reply->trailers[i], reply->trailers[i + 1]), 0);
    if (reply->is_cut)
        aco_http_reply_abort(request);
}

static aco_test_reply_t reply;
static const aco_http_route_t routes[] = {{"POST", "/bad/Reply", replies, &reply}, {NULL, NULL, NULL, NULL}};

/* ---- The stage ---- */

static int has_failures; /* memory fails on purpose */
static aco_grpc_server_t *new_server(void)
{
    aco_grpc_server_t *made = aco_grpc_server_new(NULL);
    CHECK(made != NULL);
    CHECK_EQ(aco_grpc_server_add(made, "/test.Test/Echo", echo, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(made, "/test.Test/Chat", chat_by, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(made, "/test.Test/Many", many, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(made, "/test.Test/Metadata", metadata, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(made, "/test.Test/Fails", fails, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(made, "/test.Test/FailsLate", fails_late, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(made, "/test.Test/Sleeps", sleeps, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(made, "/test.Test/FailsAtFirst", fails_at_first, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(made, "/test.Test/Packs", packs, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(made, "/test.Test/Says", says, (void *)(uintptr_t)"1"), 0);
    return made;
}

static void begin(const aco_grpc_channel_options_t *options)
{
    memset(&stage, 0, sizeof stage);
    server = new_server();
    stage.server.failed = has_failures ? ignores : NULL;
    stage.server.groups = aco_grpc_server_groups(server);
    start(&stage, routes);
    snprintf(target, sizeof target, "127.0.0.1:%s", stage.port);
    channel = aco_grpc_channel_new(target, options);
    CHECK(channel != NULL);
}

static void end(void)
{
    aco_grpc_channel_destroy(channel);
    stop(&stage);
    aco_grpc_server_destroy(server);
}

static aco_grpc_call_t *new_call(const char *path)
{
    aco_grpc_call_t *call = aco_grpc_call_new(channel, path, NULL);
    CHECK(call != NULL);
    return call;
}

#define FAILS_AS_NULL(what, error) \
    do { \
        CHECK((what) == NULL); \
        CHECK_EQ(errno, error); \
    } while (0)
#define IS(message, n, text) \
    do { \
        CHECK_EQ(n, sizeof(text) - 1); \
        CHECK(memcmp(message, text, sizeof(text) - 1) == 0); \
    } while (0)

/* A unary call, which ends with this status. */
static void fails_as(const char *path, int status, const char *text)
{
    aco_grpc_call_t *call = new_call(path);
    const void *message;
    size_t n;
    CHECK(aco_grpc_write_only(call, "hello", 5) != 0 || aco_grpc_read_only(call, &message, &n) != 0);
    CHECK_EQ(aco_grpc_finish(call), status);
    CHECK_EQ(aco_grpc_finish(call), status);
    if (text && !strstr(aco_grpc_message(call), text))
        CHECK_TEXT("the message", aco_grpc_message(call), text);
    FAILS_WITH(aco_grpc_read(call, &message, &n), aco_grpc_errno_of_status(status));
    aco_grpc_call_destroy(call);
}

/* ---- Tests: calls ---- */

static void test_unary(void)
{
    static char large[300000];
    aco_grpc_call_t *call = new_call("/test.Test/Echo");
    const void *message;
    size_t n;
    memset(large, 'a', sizeof large);
    CHECK_TEXT("its method", aco_grpc_method(call), "/test.Test/Echo");
    CHECK_EQ(aco_grpc_write_only(call, "hello", 5), 0);
    CHECK_EQ(aco_grpc_read_only(call, &message, &n), 0);
    IS(message, n, "hello");
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
    CHECK_TEXT("no message", aco_grpc_message(call), "");
    FAILS_WITH(aco_grpc_write(call, "more", 4), EINVAL);
    FAILS_WITH(aco_grpc_add_metadata(call, "x", "y", 1), EBUSY);
    aco_grpc_call_destroy(call);
    call = new_call("/test.Test/Echo");
    CHECK_EQ(aco_grpc_write_only(call, large, sizeof large), 0);
    CHECK_EQ(aco_grpc_read_only(call, &message, &n), 0);
    CHECK(n == sizeof large && memcmp(message, large, n) == 0);
    aco_grpc_call_destroy(call);
    call = new_call("/test.Test/Echo");
    CHECK_EQ(aco_grpc_write_only(call, NULL, 0), 0);
    CHECK_EQ(aco_grpc_read(call, &message, &n), 1);
    CHECK_EQ(n, 0);
    CHECK_EQ(aco_grpc_read(call, &message, &n), 0);
    aco_grpc_call_destroy(call);
    aco_grpc_call_destroy(new_call("/test.Test/Echo")); /* it never begins */
    aco_grpc_call_destroy(NULL);
    errno = ENOENT;
    CHECK_EQ(aco_grpc_finish(NULL), ACO_GRPC_NOT_FOUND);
    FAILS_AS_NULL(aco_grpc_call_new(channel, "test.Test/Echo", NULL), EINVAL);
    FAILS_AS_NULL(aco_grpc_call_new(channel, "/test.Test/Echo?a", NULL), EINVAL);
}

static void test_streams(void)
{
    aco_grpc_call_t *call = new_call("/test.Test/Many");
    const void *message;
    size_t n;
    int count = 0;
    CHECK_EQ(aco_grpc_write_only(call, "\200", 1), 0);
    while (aco_grpc_read(call, &message, &n) > 0)
        count++;
    CHECK_EQ(count, 128);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
    aco_grpc_call_destroy(call);
    call = new_call("/test.Test/Chat"); /* one after the other */
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(aco_grpc_write(call, &i, sizeof i), 0);
        CHECK_EQ(aco_grpc_read(call, &message, &n), 1);
        CHECK(n == sizeof i && memcmp(message, &i, n) == 0);
    }
    CHECK(aco_grpc_trailer(call, "x-count", 0, NULL) == NULL);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
    CHECK_TEXT("a trailer", aco_grpc_trailer(call, "x-count", 0, &n), "50");
    CHECK_EQ(n, 2);
    aco_grpc_call_destroy(call);
    call = new_call("/test.Test/Chat"); /* no messages; a reader begins it */
    CHECK_EQ(aco_grpc_write_end(call), 0);
    CHECK_EQ(aco_grpc_write_end(call), 0);
    CHECK_EQ(aco_grpc_read(call, &message, &n), 0);
    aco_grpc_call_destroy(call);
    call = new_call("/test.Test/FailsLate");
    CHECK_EQ(aco_grpc_write_only(call, "a", 1), 0);
    CHECK_EQ(aco_grpc_read(call, &message, &n), 1);
    FAILS_WITH(aco_grpc_read(call, &message, &n), EDEADLK);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_ABORTED);
    CHECK_TEXT("its message", aco_grpc_message(call), "too late");
    aco_grpc_call_destroy(call);
    fails_as("/test.Test/FailsLate", ACO_GRPC_ABORTED, "too late");
}

static void *writes_and_ends(void *call)
{
    static const char part[40000];
    for (int i = 0; i < 20; i++)
        CHECK_EQ(aco_grpc_write(call, part, sizeof part), 0);
    CHECK_EQ(aco_grpc_write_end(call), 0);
    return NULL;
}

static void *calls_and_reads(void *arg)
{
    aco_grpc_call_t *call = new_call("/test.Test/Chat");
    aco_t *writer = aco_spawn(writes_and_ends, call, NULL);
    const void *message;
    size_t n, all = 0;
    (void)arg;
    CHECK(writer != NULL);
    while (aco_grpc_read(call, &message, &n) > 0)
        all += n;
    CHECK_EQ(all, 800000);
    CHECK_EQ(aco_join(writer, NULL), 0);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
    aco_grpc_call_destroy(call);
    return NULL;
}

/* Many at once, each read by one task and written by another, on one connection. */
static void test_tasks(void)
{
    aco_t *tasks[10];
    for (int i = 0; i < 10; i++)
        CHECK((tasks[i] = aco_spawn(calls_and_reads, NULL, NULL)) != NULL);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    CHECK(is_other || connections == 1);
}

/* That these names, in any order, are all. NULL: any will do. */
static void check_names(aco_grpc_call_t *call, const char *(*next)(aco_grpc_call_t *, const char *), const char *names)
{
    size_t n = 0;
    for (const char *name = NULL; (name = next(call, name)) != NULL; n += strlen(name) + 1)
        CHECK(!names || strstr(names, name));
    CHECK(!names || n == strlen(names) + 1);
}

static void test_metadata(void)
{
    enum { MANY = 40 };
    aco_grpc_call_t *call = new_call("/test.Test/Metadata");
    const void *message;
    char names[MANY][16], all[MANY * 16] = "x-bytes-bin";
    size_t n;
    for (int i = 0; i < MANY && !is_other; i++) { /* more than either side has room for at first */
        snprintf(names[i], sizeof names[i], "x-n%d", i);
        strcat(strcat(all, " "), names[i]);
        CHECK_EQ(aco_grpc_add_metadata(call, names[i], "v", 1), 0);
    }
    CHECK_EQ(aco_grpc_add_metadata(call, "x-text", "some text", 9), 0);
    CHECK_EQ(aco_grpc_add_metadata(call, "x-bytes-bin", "\0\1\377", 3), 0);
    CHECK_EQ(aco_grpc_add_metadata(call, "x-bytes-bin", NULL, 0), 0);
    FAILS_WITH(aco_grpc_add_metadata(call, "grpc-x", "1", 1), EINVAL);
    FAILS_WITH(aco_grpc_add_metadata(call, "te", "1", 1), EINVAL);
    CHECK(aco_grpc_metadata(call, "x-text", 0, NULL) == NULL);
    CHECK_EQ(aco_grpc_write_only(call, "m", 1), 0);
    CHECK_EQ(aco_grpc_await_metadata(call), 0);
    CHECK_TEXT("metadata", aco_grpc_metadata(call, "x-text", 0, &n), "some text");
    CHECK_EQ(aco_grpc_read_only(call, &message, &n), 0);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
    message = aco_grpc_trailer(call, "x-bytes-bin", 0, &n);
    CHECK(message && n == 3 && memcmp(message, "\0\1\377", 3) == 0);
    message = aco_grpc_trailer(call, "x-bytes-bin", 1, &n);
    CHECK(message && n == 0);
    CHECK(aco_grpc_trailer(call, "x-bytes-bin", 2, &n) == NULL);
    check_names(call, aco_grpc_next_metadata, is_other ? NULL : "x-text date");
    check_names(call, aco_grpc_next_trailer, all);
    for (int i = 0; i < MANY && !is_other; i++)
        CHECK_TEXT("a trailer", aco_grpc_trailer(call, names[i], 0, &n), names[i]);
    aco_grpc_call_destroy(call);
}

static void test_status(void)
{
    aco_grpc_call_t *call = new_call("/test.Test/Fails");
    const void *details;
    size_t n;
    FAILS_WITH(aco_grpc_write_only(call, "a", 1), ENOENT);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_NOT_FOUND);
    CHECK_TEXT("the message", aco_grpc_message(call), "\t100 % of \xe2\x98\xba\n");
    details = aco_grpc_details(call, &n);
    CHECK(details && n == 2 && memcmp(details, "\0\1", 2) == 0);
    CHECK_TEXT("a trailer", aco_grpc_trailer(call, "x-why", 0, &n), "none");
    CHECK(aco_grpc_metadata(call, "x-why", 0, NULL) == NULL);
    aco_grpc_call_destroy(call);
    fails_as("/test.Test/Nothing", ACO_GRPC_UNIMPLEMENTED, is_other ? NULL : "the method is not known");
}

/* The server ends the call without reading what is sent. */
static void test_early_end(void)
{
    static const char large[1 << 20];
    aco_grpc_call_t *call = new_call("/test.Test/Fails");
    FAILS_WITH(aco_grpc_write_only(call, large, sizeof large), ENOENT);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_NOT_FOUND);
    aco_grpc_call_destroy(call);
    call = new_call("/test.Test/Fails");
    while (aco_grpc_write(call, large, sizeof large) == 0)
        ;
    CHECK_EQ(errno, EPIPE);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_NOT_FOUND);
    aco_grpc_call_destroy(call);
}

/* ---- Tests: ends ---- */

static void test_deadline(void)
{
    aco_grpc_call_t *call = new_call("/test.Test/Sleeps");
    aco_scope_t scope;
    const void *message;
    size_t n;
    aco_event_reset(&has_left);
    deadline_was = ACO_FOREVER;
    CHECK_EQ(aco_scope_begin(&scope, aco_after(20 * ACO_MILLISECOND)), 0);
    FAILS_WITH(aco_grpc_write_only(call, "a", 1), ETIMEDOUT);
    FAILS_WITH(aco_grpc_read_only(call, &message, &n), ETIMEDOUT);
    (void)aco_scope_end(&scope);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_DEADLINE_EXCEEDED);
    aco_grpc_call_destroy(call);
    if (!is_other) {
        CHECK_EQ(aco_event_wait(&has_left), 0);
        CHECK(left_with == ETIMEDOUT || left_with == ECANCELED); /* or the client's reset has come before */
        CHECK(deadline_was != ACO_FOREVER);
    }
    call = new_call("/test.Test/Echo"); /* it has passed before the call begins */
    CHECK_EQ(aco_scope_begin(&scope, aco_now()), 0);
    CHECK_EQ(aco_grpc_write_only(call, "a", 1), -1);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_DEADLINE_EXCEEDED);
    (void)aco_scope_end(&scope);
    aco_grpc_call_destroy(call);
}

/* A scope inside the call ends: the call goes on. */
static void test_inner_scope(void)
{
    aco_grpc_call_t *call = new_call("/test.Test/Chat");
    aco_scope_t scope;
    const void *message;
    size_t n;
    CHECK_EQ(aco_grpc_write(call, "one", 3), 0);
    CHECK_EQ(aco_grpc_read(call, &message, &n), 1);
    CHECK_EQ(aco_scope_begin(&scope, aco_after(ACO_MILLISECOND)), 0);
    FAILS_WITH(aco_grpc_read(call, &message, &n), ETIMEDOUT);
    (void)aco_scope_end(&scope);
    CHECK_EQ(aco_grpc_write(call, "two", 3), 0);
    CHECK_EQ(aco_grpc_read(call, &message, &n), 1);
    IS(message, n, "two");
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
    aco_grpc_call_destroy(call);
}

static aco_scope_t of_caller;
static void *is_cancelled(void *arg)
{
    aco_grpc_call_t *call = new_call("/test.Test/Sleeps");
    (void)arg;
    CHECK_EQ(aco_scope_begin(&of_caller, ACO_FOREVER), 0);
    FAILS_WITH(aco_grpc_write_only(call, "a", 1), ECANCELED);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_CANCELLED);
    (void)aco_scope_end(&of_caller);
    aco_grpc_call_destroy(call);
    return NULL;
}

static void test_cancel(void)
{
    aco_grpc_call_t *call = new_call("/test.Test/Sleeps");
    aco_t *task;
    aco_event_reset(&has_begun);
    aco_event_reset(&has_left);
    CHECK_EQ(aco_grpc_write(call, "a", 1), 0);
    CHECK_EQ(aco_grpc_write_end(call), 0);
    CHECK_EQ(aco_event_wait(&has_begun), 0);
    aco_grpc_call_destroy(call);
    CHECK_EQ(aco_event_wait(&has_left), 0);
    CHECK_EQ(left_with, ECANCELED);
    aco_event_reset(&has_begun);
    aco_event_reset(&has_left);
    CHECK((task = aco_spawn(is_cancelled, NULL, NULL)) != NULL);
    CHECK_EQ(aco_event_wait(&has_begun), 0);
    CHECK_EQ(aco_scope_cancel(&of_caller), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK_EQ(aco_event_wait(&has_left), 0);
    CHECK_EQ(left_with, ECANCELED);
}

/* ---- Tests: what is wrong ---- */

static void replies_as(aco_test_reply_t as, int status, const char *text)
{
    reply = as;
    fails_as("/bad/Reply", status, text);
}

#define BODY(text) text, sizeof(text) - 1
static const char grpc[] = "application/grpc";

static void test_wrong_http(void)
{
    static const int map[][2] = {{400, ACO_GRPC_INTERNAL},          {401, ACO_GRPC_UNAUTHENTICATED},
                                 {403, ACO_GRPC_PERMISSION_DENIED}, {404, ACO_GRPC_UNIMPLEMENTED},
                                 {429, ACO_GRPC_UNAVAILABLE},       {502, ACO_GRPC_UNAVAILABLE},
                                 {503, ACO_GRPC_UNAVAILABLE},       {504, ACO_GRPC_UNAVAILABLE},
                                 {500, ACO_GRPC_UNKNOWN},           {418, ACO_GRPC_UNKNOWN}};
    for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
        replies_as((aco_test_reply_t){map[i][0], "text/plain", BODY("no"), {NULL}, {NULL}, 0}, map[i][1], "of HTTP");
    replies_as((aco_test_reply_t){200, "text/html", BODY("<html>"), {NULL}, {NULL}, 0}, ACO_GRPC_UNKNOWN, "text/html");
    replies_as((aco_test_reply_t){200, "application/grpcweb", BODY(""), {"grpc-status", "0"}, {NULL}, 0},
               ACO_GRPC_UNKNOWN, "application/grpcweb");
    replies_as((aco_test_reply_t){200, grpc, BODY("\0\0\0\0\1a"), {NULL}, {NULL}, 1}, ACO_GRPC_INTERNAL, "reset");
}

static void test_wrong_grpc(void)
{
    aco_test_reply_t with_ok = {200, grpc, NULL, 0, {"grpc-status", "0"}, {NULL}, 0};
    static const struct {
        const char *body;
        size_t n;
        int status;
    } bodies[] = {{BODY("\0\0\0\0\5hel"), ACO_GRPC_INTERNAL},
                  {BODY("\0\0\0"), ACO_GRPC_INTERNAL},
                  {BODY("\1\0\0\0\1a"), ACO_GRPC_INTERNAL}, /* compressed, by what? */
                  {BODY("\2\0\0\0\1a"), ACO_GRPC_INTERNAL},
                  {BODY("\0\0\0\0\1a\0\0\0\0\1a"), ACO_GRPC_UNIMPLEMENTED}, /* two, where one is due */
                  {BODY(""), ACO_GRPC_UNIMPLEMENTED},
                  {BODY("\0\377\377\377\377"), ACO_GRPC_RESOURCE_EXHAUSTED}};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        with_ok.body = bodies[i].body;
        with_ok.n = bodies[i].n;
        replies_as(with_ok, bodies[i].status, NULL);
    }
    replies_as((aco_test_reply_t){200, grpc, BODY("\0\0\0\0\1a"), {NULL}, {NULL}, 0}, ACO_GRPC_UNKNOWN, "no status");
    replies_as((aco_test_reply_t){200, grpc, BODY("\0\0\0\0\1a"), {"grpc-status", "17"}, {NULL}, 0}, ACO_GRPC_UNKNOWN,
               NULL);
    replies_as((aco_test_reply_t){200, grpc, BODY(""), {"grpc-status", "x"}, {NULL}, 0}, ACO_GRPC_UNKNOWN, NULL);
    replies_as(
        (aco_test_reply_t){
            200, grpc, BODY("\0\0\0\0\1a"), {"grpc-status", "16", "grpc-message", "%41%zz%e2%98%BA%"}, {NULL}, 0},
        ACO_GRPC_UNAUTHENTICATED, "A%zz\xe2\x98\xba%");
    replies_as((aco_test_reply_t){200, grpc, BODY("\1\0\0\0\1a"), {"grpc-status", "0"}, {"grpc-encoding", "snappy"}, 0},
               ACO_GRPC_INTERNAL, NULL);
}

/* ---- Tests: servers that break HTTP/2's rules ---- */

enum { RESETS, REFUSES_ONE, BREAKS, GOES_AWAY, HANGS_UP, IS_SILENT, ANSWERS };
typedef struct aco_test_raw { /* a server that is written by hand */
    int listener, does;
    unsigned char code; /* with which it resets */
    int requests;
    aco_scope_t scope;
} aco_test_raw_t;

static void send_frame(int fd, int kind, int flags, unsigned id, const char *p, size_t n)
{
    const char head[9] = {(char)(n >> 16),  (char)(n >> 8),   (char)n,         (char)kind, (char)flags,
                          (char)(id >> 24), (char)(id >> 16), (char)(id >> 8), (char)id};
    (void)aco_io_write_all(fd, head, 9);
    (void)aco_io_write_all(fd, p, n);
}
#define SEND(fd, kind, flags, id, text) send_frame(fd, kind, flags, id, text, sizeof(text) - 1)

/* Answers the request on this stream. Whether the connection goes on. */
static int raw_answer(aco_test_raw_t *raw, int fd, unsigned id)
{
    const char code[] = {0, 0, 0, (char)raw->code};
    raw->requests++;
    switch (raw->does) {
    case RESETS:
        send_frame(fd, 3, 0, id, code, 4);
        return 1;
    case REFUSES_ONE:
        raw->does = ANSWERS;
        SEND(fd, 3, 0, id, "\0\0\0\7");
        return 1;
    case BREAKS:
        SEND(fd, 0, 0, 0, "DATA on no stream");
        return 1;
    case GOES_AWAY:
        SEND(fd, 7, 0, 0, "\0\0\0\0\0\0\0\0"); /* no request was looked at */
        raw->does = ANSWERS;
        return 0;
    case HANGS_UP:
        return 0;
    case ANSWERS:
        SEND(fd, 1, 4, id,
             "\x88\0\x0c"
             "content-type"
             "\x10"
             "application/grpc");
        SEND(fd, 0, 0, id, "\0\0\0\0\1a");
        SEND(fd, 1, 5, id,
             "\0\x0b"
             "grpc-status"
             "\1"
             "0");
        return 1;
    default:
        return 1;
    }
}

static int raw_frame(aco_test_raw_t *raw, int fd)
{
    unsigned char head[9], payload[16384];
    size_t n;
    if (aco_io_read_exactly(fd, head, 9) != 9)
        return 0;
    n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    if (n > sizeof payload || (n && aco_io_read_exactly(fd, payload, n) != (ssize_t)n))
        return 0;
    if (head[3] == 4 && !(head[4] & 1))
        SEND(fd, 4, 1, 0, "");
    return head[3] != 1 || raw_answer(raw, fd, (unsigned)head[7] << 8 | head[8]);
}

static void *raw_serves(void *arg)
{
    aco_test_raw_t *raw = arg;
    char preface[24];
    int fd;
    CHECK_EQ(aco_scope_begin(&raw->scope, ACO_FOREVER), 0);
    while ((fd = aco_io_accept(raw->listener)) >= 0) {
        SEND(fd, 4, 0, 0, "");
        if (aco_io_read_exactly(fd, preface, sizeof preface) == (ssize_t)sizeof preface)
            while (raw_frame(raw, fd))
                ;
        aco_io_close(fd);
    }
    (void)aco_scope_end(&raw->scope);
    aco_io_close(raw->listener);
    return NULL;
}

/* A call to a server that does this ends with this status; with OK, the message is "a". Returns how many requests the
 * server has seen. */
static int raw_call(int does, unsigned char code, int status, int is_only, const aco_grpc_channel_options_t *options)
{
    aco_test_raw_t raw = {.does = does, .code = code};
    char address[ACO_IO_ADDRESS_SIZE];
    aco_grpc_call_t *call;
    const void *message;
    size_t n;
    aco_t *task;
    raw.listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(raw.listener, address, sizeof address), 0);
    CHECK((task = aco_spawn(raw_serves, &raw, NULL)) != NULL);
    channel = aco_grpc_channel_new(address, options);
    call = new_call("/test.Test/Echo");
    if ((is_only ? aco_grpc_write_only(call, "a", 1) : aco_grpc_write(call, "a", 1)) == 0 &&
        aco_grpc_read_only(call, &message, &n) == 0)
        IS(message, n, "a");
    CHECK_EQ(aco_grpc_finish(call), status);
    aco_grpc_call_destroy(call);
    aco_grpc_channel_destroy(channel);
    CHECK_EQ(aco_scope_cancel(&raw.scope), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    return raw.requests;
}

static void test_wrong_http2(void)
{
    static const aco_grpc_channel_options_t pings = {.ping_time = 5 * ACO_MILLISECOND};
    static const struct {
        unsigned char code;
        int status;
    } codes[] = {{0, ACO_GRPC_INTERNAL},
                 {1, ACO_GRPC_INTERNAL},
                 {2, ACO_GRPC_INTERNAL},
                 {8, ACO_GRPC_CANCELLED},
                 {11, ACO_GRPC_RESOURCE_EXHAUSTED},
                 {12, ACO_GRPC_PERMISSION_DENIED},
                 {99, ACO_GRPC_INTERNAL}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        CHECK_EQ(raw_call(RESETS, codes[i].code, codes[i].status, 1, NULL), 1);
    CHECK_EQ(raw_call(RESETS, 7, ACO_GRPC_UNAVAILABLE, 0, NULL), 1);
    CHECK_EQ(raw_call(REFUSES_ONE, 0, ACO_GRPC_OK, 1, NULL), 2);
    CHECK_EQ(raw_call(GOES_AWAY, 0, ACO_GRPC_OK, 1, NULL), 2);
    CHECK_EQ(raw_call(BREAKS, 0, ACO_GRPC_INTERNAL, 1, NULL), 1);
    CHECK_EQ(raw_call(HANGS_UP, 0, ACO_GRPC_UNAVAILABLE, 1, NULL), 1);
    CHECK_EQ(raw_call(HANGS_UP, 0, ACO_GRPC_UNAVAILABLE, 0, NULL), 1);
    CHECK_EQ(raw_call(IS_SILENT, 0, ACO_GRPC_UNAVAILABLE, 1, &pings), 1);
    CHECK_EQ(raw_call(ANSWERS, 0, ACO_GRPC_OK, 0, NULL), 1);
}

/* ---- Tests: limits, gzip, authority ---- */

static void test_limits(void)
{
    static const aco_grpc_call_options_t ten = {.max_message = 10};
    static const char long_text[300] = "";
    aco_grpc_channel_options_t small = {.max_metadata = 400};
    aco_grpc_call_t *call;
    const void *message;
    char text[301];
    size_t n;
    begin(&small);
    call = aco_grpc_call_new(channel, "/test.Test/Echo", &ten);
    CHECK_EQ(aco_grpc_write_only(call, long_text, 11), 0);
    FAILS_WITH(aco_grpc_read_only(call, &message, &n), EMSGSIZE);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_RESOURCE_EXHAUSTED);
    aco_grpc_call_destroy(call);
    call = new_call("/test.Test/Metadata");
    memset(text, 'a', 300);
    CHECK_EQ(aco_grpc_add_metadata(call, "x-text", text, 300), 0);
    CHECK_EQ(aco_grpc_write_only(call, long_text, 11), -1);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_INTERNAL);
    aco_grpc_call_destroy(call);
    end();
}

static void test_gzip(void)
{
    static char zeros[100000];
    const aco_grpc_channel_options_t packed = {.compresses = 1, .authority = "example.test:443"};
    static const aco_grpc_call_options_t thousand = {.max_message = 1000};
    aco_grpc_call_t *call;
    const void *message;
    size_t n;
    begin(&packed);
    call = new_call("/test.Test/Packs");
    CHECK_EQ(aco_grpc_write_only(call, zeros, sizeof zeros), 0);
    CHECK_EQ(aco_grpc_read_only(call, &message, &n), 0);
    CHECK_EQ(n, sizeof zeros);
    CHECK_TEXT("the coding", coding, "gzip");
    CHECK_TEXT("the authority", host, "example.test:443");
    aco_grpc_call_destroy(call);
    call = aco_grpc_call_new(channel, "/test.Test/Packs", &thousand); /* a bomb */
    CHECK_EQ(aco_grpc_write_only(call, zeros, sizeof zeros), 0);
    FAILS_WITH(aco_grpc_read_only(call, &message, &n), EMSGSIZE);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_RESOURCE_EXHAUSTED);
    aco_grpc_call_destroy(call);
    call = new_call("/test.Test/Packs");
    CHECK_EQ(aco_grpc_compress(call, 0), 0);
    CHECK_EQ(aco_grpc_write_only(call, zeros, sizeof zeros), 0);
    CHECK_EQ(aco_grpc_read_only(call, &message, &n), 0);
    CHECK_TEXT("the coding", coding, "none");
    aco_grpc_call_destroy(call);
    end();
}

/* ---- Tests: retries ---- */

/* A call that the server refuses so often, and that is made so often. */
static void tries(int fails_n, int status, int asked_n)
{
    aco_grpc_call_t *call = new_call("/test.Test/FailsAtFirst");
    times = fails_n;
    asked = 0;
    CHECK_EQ(aco_grpc_write_only(call, "a", 1), status == ACO_GRPC_OK ? 0 : -1);
    CHECK_EQ(aco_grpc_finish(call), status);
    CHECK_EQ(asked, asked_n);
    if (status == ACO_GRPC_OK) {
        char text[8];
        snprintf(text, sizeof text, "%d", fails_n);
        CHECK_TEXT("tries", aco_grpc_metadata(call, "x-tries", 0, NULL), fails_n ? text : "none");
    }
    aco_grpc_call_destroy(call);
}

static void test_retries(void)
{
    static const aco_grpc_policy_t policies[] = {{.method = NULL, .wait_for_ready = 1},
                                                 {.method = "/test.Test/",
                                                  .tries = 3,
                                                  .retried = ACO_GRPC_BIT(ACO_GRPC_UNAVAILABLE),
                                                  .first_pause = 1,
                                                  .longest_pause = 1},
                                                 {.method = "/test.Test/Sleeps", .timeout = 10 * ACO_MILLISECOND}};
    aco_grpc_channel_options_t options = {.policies = policies, .policy_count = 3, .retry_tokens = -1};
    begin(&options);
    tries(0, ACO_GRPC_OK, 1);
    tries(2, ACO_GRPC_OK, 3);
    tries(3, ACO_GRPC_UNAVAILABLE, 3);
    pushback = "1";
    tries(1, ACO_GRPC_OK, 2);
    pushback = "-1";
    tries(1, ACO_GRPC_UNAVAILABLE, 1);
    pushback = NULL;
    fails_as("/test.Test/Sleeps", ACO_GRPC_DEADLINE_EXCEEDED, "the deadline");
    fails_as("/test.Test/Fails", ACO_GRPC_NOT_FOUND, NULL);
    end();
    options.retry_tokens = 4;
    options.retry_share = 1000;
    begin(&options);
    tries(9, ACO_GRPC_UNAVAILABLE, 2); /* 4 tokens, 3: a retry; 2: none */
    tries(9, ACO_GRPC_UNAVAILABLE, 1);
    for (int i = 0; i < 9; i++)
        tries(0, ACO_GRPC_OK, 1);
    tries(1, ACO_GRPC_OK, 2);
    end();
}

/* ---- Tests: addresses ---- */

/* A port that refuses connections, until somebody listens. */
static int refusing_port(char *text, size_t n)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, length), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(text, n, "127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

static void *waits(void *arg)
{
    static const aco_grpc_call_options_t options = {.wait_for_ready = 1};
    aco_grpc_call_t *call = aco_grpc_call_new(channel, "/test.Test/Echo", &options);
    (void)arg;
    CHECK_EQ(aco_grpc_write_only(call, "a", 1), 0);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
    aco_grpc_call_destroy(call);
    return NULL;
}

static void test_wait_for_ready(void)
{
    static const aco_grpc_channel_options_t soon = {.first_pause = ACO_MILLISECOND, .longest_pause = ACO_MILLISECOND};
    char text[32];
    const int fd = refusing_port(text, sizeof text);
    aco_t *task;
    channel = aco_grpc_channel_new(text, &soon);
    fails_as("/test.Test/Echo", ACO_GRPC_UNAVAILABLE, text);
    CHECK((task = aco_spawn(waits, NULL, NULL)) != NULL);
    aco_task_yield();
    memset(&stage, 0, sizeof stage);
    server = new_server();
    stage.server.groups = aco_grpc_server_groups(server);
    CHECK_EQ(listen(fd, 16), 0);
    stage.listener = fd;
    CHECK((stage.task = aco_spawn(serves, &stage, NULL)) != NULL);
    CHECK_EQ(aco_join(task, NULL), 0);
    end();
}

/* What the next call is answered, by which server. */
static char said(void)
{
    aco_grpc_call_t *call = new_call("/test.Test/Says");
    const void *message;
    size_t n;
    char who = '-';
    if (aco_grpc_write_only(call, NULL, 0) == 0 && aco_grpc_read_only(call, &message, &n) == 0)
        who = *(const char *)message;
    aco_grpc_call_destroy(call);
    return who;
}

static void test_addresses(void)
{
    aco_grpc_channel_options_t options = {.first_pause = ACO_SECOND * 3600};
    aco_grpc_server_t *second = aco_grpc_server_new(NULL);
    stage_t other = {0};
    char text[128], closed[32];
    const int fd = refusing_port(closed, sizeof closed);
    CHECK_EQ(aco_grpc_server_add(second, "/test.Test/Says", says, (void *)(uintptr_t)"2"), 0);
    other.server.groups = aco_grpc_server_groups(second);
    other.server.drain_time = 1; /* the client does not read the connection that it keeps */
    start(&other, NULL);
    begin(NULL);
    aco_grpc_channel_destroy(channel);
    snprintf(text, sizeof text, "%s,127.0.0.1:%s,127.0.0.1:%s", closed, stage.port, other.port);
    channel = aco_grpc_channel_new(text, &options);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(said(), '1');
    aco_grpc_channel_destroy(channel);
    options.round_robin = 1;
    channel = aco_grpc_channel_new(text, &options);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(said(), '1');
        CHECK_EQ(said(), '2');
    }
    stop(&other);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(said(), '1');
    aco_grpc_server_destroy(second);
    end();
    close(fd);
}

static void *ends_other(void *other)
{
    CHECK_EQ(aco_event_wait(&has_begun), 0);
    stop(other);
    return NULL;
}

/* What drain_time cuts was under way: it may be tried again where that does no harm. */
static void test_end_of_drain(void)
{
    stage_t other = {.server = {.groups = aco_grpc_server_groups(server), .drain_time = 1}};
    aco_t *task;
    start(&other, NULL);
    snprintf(target, sizeof target, "127.0.0.1:%s", other.port);
    aco_grpc_channel_destroy(channel);
    channel = aco_grpc_channel_new(target, NULL);
    aco_event_reset(&has_begun);
    CHECK((task = aco_spawn(ends_other, &other, NULL)) != NULL);
    fails_as("/test.Test/Sleeps", ACO_GRPC_UNAVAILABLE, NULL);
    CHECK_EQ(left_with, ECANCELED);
    CHECK_EQ(aco_join(task, NULL), 0);
}

/* A server that hangs up before it has said anything. */
static int hung_up; /* on so many connections */
static void *hangs_up(void *arg)
{
    int fd;
    while ((fd = aco_io_accept(*(int *)arg)) >= 0) {
        hung_up++;
        aco_io_close(fd);
    }
    return NULL;
}

/* A connection by which nothing has come counts as none: there is a pause before the next one. */
static void test_unheard(void)
{
    static const aco_grpc_channel_options_t late = {.first_pause = ACO_SECOND * 3600};
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    aco_t *task;
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    CHECK((task = aco_spawn(hangs_up, &listener, NULL)) != NULL);
    channel = aco_grpc_channel_new(address, &late);
    for (int i = 0; i < 3; i++)
        fails_as("/test.Test/Echo", ACO_GRPC_UNAVAILABLE, NULL);
    CHECK_EQ(hung_up, 1);
    aco_grpc_channel_destroy(channel);
    aco_io_close(listener);
    CHECK_EQ(aco_join(task, NULL), 0);
}

/* The target, of a server at this path, is asked as "localhost". */
static void ask_unix(const char *path, const char *form, int round_robin)
{
    const aco_grpc_channel_options_t options = {.round_robin = round_robin, .connect_time = ACO_SECOND};
    stage_t other = {.server.groups = aco_grpc_server_groups(server)};
    const void *message;
    char text[200];
    size_t n;
    other.server.drain_time = 1; /* the client does not read the connection that it keeps */
    other.listener = aco_io_listen("unix", path, NULL, NULL);
    CHECK(other.listener >= 0);
    other.task = aco_spawn(serves, &other, NULL);
    CHECK(other.task != NULL);
    snprintf(text, sizeof text, form, path + (*path == '@'));
    channel = aco_grpc_channel_new(text, &options);
    CHECK(channel != NULL);
    for (int i = 0; i < 3; i++) {
        aco_grpc_call_t *call = new_call("/test.Test/Echo");
        CHECK_EQ(aco_grpc_write_only(call, "u", 1), 0);
        CHECK_EQ(aco_grpc_read_only(call, &message, &n), 0);
        IS(message, n, "u");
        CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
        aco_grpc_call_destroy(call);
    }
    stop(&other);
    if (*path != '@')
        CHECK_EQ(unlink(path), 0);
    fails_as("/test.Test/Echo", ACO_GRPC_UNAVAILABLE, "unix");
    aco_grpc_channel_destroy(channel);
}

static void test_unix(void)
{
    char path[64];
    begin(NULL);
    aco_grpc_channel_destroy(channel);
    snprintf(path, sizeof path, "/tmp/acorn-grpc-%d", (int)getpid());
    for (int i = 0; i < 2; i++) {
        ask_unix(path, "unix:%s", i);
        ask_unix(path, "unix://%s,unix:/none", i);
#ifdef __linux__
        snprintf(path, sizeof path, "@acorn-grpc-%d", (int)getpid());
        ask_unix(path, "unix-abstract:%s", i);
        snprintf(path, sizeof path, "/tmp/acorn-grpc-%d", (int)getpid());
#endif
    }
    channel = NULL;
    end();
}

static void test_options(void)
{
    static const char *const wrong[] = {"",      "host",      "host:",      ":1",      "host:123456",   "host:x",
                                        "a b:1", "u@h:1",     "h:1,",       "::1:50",  "h/p:1",         "[::1]",
                                        "unix:", "unix:,h:1", "unix://h/a", "unix://", "unix-abstract:"};
    static aco_grpc_policy_t policy = {.tries = 6};
    aco_grpc_channel_options_t options = {.max_metadata = 1};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        FAILS_AS_NULL(aco_grpc_channel_new(wrong[i], NULL), EINVAL);
    FAILS_AS_NULL(aco_grpc_channel_new("h:1", &options), EINVAL);
    options = (aco_grpc_channel_options_t){.aco__reserved = {&options}};
    FAILS_AS_NULL(aco_grpc_channel_new("h:1", &options), EINVAL);
    options = (aco_grpc_channel_options_t){.policies = &policy, .policy_count = 1};
    FAILS_AS_NULL(aco_grpc_channel_new("h:1", &options), EINVAL);
    policy = (aco_grpc_policy_t){.first_pause = 25 * 3600 * ACO_SECOND};
    FAILS_AS_NULL(aco_grpc_channel_new("h:1", &options), EINVAL);
    policy = (aco_grpc_policy_t){.longest_pause = INT64_MAX};
    FAILS_AS_NULL(aco_grpc_channel_new("h:1", &options), EINVAL);
    options = (aco_grpc_channel_options_t){.retry_tokens = INT_MIN}; /* no budget */
    channel = aco_grpc_channel_new("h:1", &options);
    CHECK(channel != NULL);
    aco_grpc_channel_destroy(channel);
    channel = aco_grpc_channel_new("[::1]:1,h:65535", NULL);
    CHECK(channel != NULL);
    aco_grpc_channel_destroy(channel);
    aco_grpc_channel_destroy(NULL);
}

/* ---- Tests: no memory ---- */

#ifdef GRPC_FAILURE
void *__real_aco__service_allocate(size_t *sz, const char *call);
void *__wrap_aco__service_allocate(size_t *sz, const char *call);

void __real_aco__service_free(void *p, size_t sz);
void __wrap_aco__service_free(void *p, size_t sz);

static long left = -1; /* allocations until one fails; less than 0: none does */
static int has_failed;
static size_t held; /* bytes that are allocated */

void __wrap_aco__service_free(void *p, size_t sz)
{
    held -= sz;
    __real_aco__service_free(p, sz);
}

void *__wrap_aco__service_allocate(size_t *sz, const char *call)
{
    void *p;
    if (left >= 0 && left-- == 0) {
        has_failed = 1;
        errno = ENOMEM;
        return NULL;
    }
    p = __real_aco__service_allocate(sz, call);
    held += p ? *sz : 0;
    return p;
}

/* A stream that waits has given its buffers back, on both sides; and zlib's state, if its messages are compressed. */
static void test_idle_memory(const aco_grpc_channel_options_t *options)
{
    enum { STREAMS = 32, MOST = 6500, SMALL = 100, LARGE = 20000 }; /* bytes for a stream, on both sides; of messages */
    static char text[LARGE];
    aco_grpc_call_t *calls[STREAMS];
    size_t before = 0;
    begin(options);
    for (int i = 0; i < STREAMS; i++) {
        const void *message;
        calls[i] = new_call("/test.Test/Chat");
        for (int j = 0; j < 2; j++) {
            size_t n = j ? SMALL : LARGE;
            CHECK_EQ(aco_grpc_write(calls[i], text, n), 0);
            CHECK_EQ(aco_grpc_read(calls[i], &message, &n), 1);
            CHECK_EQ(aco_grpc_was_compressed(calls[i]), options && options->compresses);
        }
        if (i == 0)
            before = held;
    }
    CHECK((held - before) / (STREAMS - 1) <= MOST);
    for (int i = 0; i < STREAMS; i++)
        aco_grpc_call_destroy(calls[i]);
    end();
}

/* Calls that may fail, in a channel of their own. */
static void calls_fail(const aco_grpc_channel_options_t *options)
{
    static char large[3000];
    aco_grpc_channel_t *own = aco_grpc_channel_new(target, options);
    aco_grpc_call_t *call = own ? aco_grpc_call_new(own, "/test.Test/Metadata", NULL) : NULL;
    const void *message;
    size_t n;
    int is_ok, has_bytes;
    if (call) {
        (void)aco_grpc_compress(call, 1);
        (void)aco_grpc_add_metadata(call, "x-text", "text", 4);
        has_bytes = aco_grpc_add_metadata(call, "x-bytes-bin", "\0\1\2", 3) == 0;
        if (aco_grpc_write_only(call, large, sizeof large) == 0)
            (void)aco_grpc_read_only(call, &message, &n);
        is_ok = aco_grpc_finish(call) == ACO_GRPC_OK;
        CHECK(aco_grpc_trailer(call, "x-bytes-bin", 0, &n) || !is_ok || !has_bytes || errno == ENOMEM);
        CHECK(is_ok || *aco_grpc_message(call));
        aco_grpc_call_destroy(call);
    }
    call = own ? aco_grpc_call_new(own, "/test.Test/Fails", NULL) : NULL;
    if (call) {
        (void)aco_grpc_write(call, "a", 1);
        is_ok = aco_grpc_finish(call) == ACO_GRPC_NOT_FOUND;
        CHECK(*aco_grpc_message(call));
        CHECK(aco_grpc_details(call, &n) || !is_ok || errno == ENOMEM);
        aco_grpc_call_destroy(call);
    }
    aco_grpc_channel_destroy(own);
}

/* No call waits for ever or succeeds with parts missing, and nothing stays allocated (which LeakSanitizer sees). */
static void test_failures(void)
{
    static const aco_grpc_channel_options_t in_turn = {
        .round_robin = 1,
        .service_config = "{\"methodConfig\": [{\"name\": [{\"service\": \"test.Test\"}], \"timeout\": \"60s\"}]}"};
    has_failures = 1;
    begin(NULL);
    for (int way = 0; way < 2; way++) {
        int which = 0;
        do {
            has_failed = 0;
            left = which;
            calls_fail(way ? &in_turn : NULL);
            left = -1;
        } while (has_failed && ++which < 1000);
        CHECK(which > 10 && which < 1000);
    }
    end();
}
#endif

static void *test_all(void *arg)
{
    (void)arg;
    begin(NULL);
    test_unary();
    test_streams();
    test_tasks();
    test_metadata();
    test_status();
    test_early_end();
    test_deadline();
    test_inner_scope();
    test_cancel();
    test_wrong_http();
    test_wrong_grpc();
    test_end_of_drain();
    end();
    test_wrong_http2();
    test_limits();
    if (aco_grpc_has_gzip())
        test_gzip();
    test_retries();
    test_wait_for_ready();
    test_addresses();
    test_unheard();
    test_unix();
    test_options();
#ifdef GRPC_FAILURE
    test_idle_memory(NULL);
    if (aco_grpc_has_gzip())
        test_idle_memory(&(aco_grpc_channel_options_t){.compresses = 1});
    test_failures();
#endif
    return NULL;
}

/* What any server of these methods does (tests/io/grpc_peers.py). */
static void *test_other(void *where)
{
    const aco_grpc_channel_options_t packed = {.compresses = 1};
    is_other = 1;
    for (int i = 0; i < 2; i++) {
        channel = aco_grpc_channel_new(where, i && aco_grpc_has_gzip() ? &packed : NULL);
        CHECK(channel != NULL);
        test_unary();
        test_streams();
        test_tasks();
        test_metadata();
        test_status();
        test_deadline();
        test_inner_scope();
        aco_grpc_channel_destroy(channel);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    run_task(argc > 1 ? test_other : test_all, argc > 1 ? argv[1] : NULL);
    return check_result("grpc_client");
}
