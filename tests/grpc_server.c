/* gRPC servers (include/aco/grpc.h): messages, metadata, statuses, deadlines, gzip, hostile input. The client is
 * nghttp2, in a task of the same thread. With an argument it serves other programs' clients. With GRPC_FAILURE each
 * allocation fails once instead. */
#define _GNU_SOURCE
#include "grpc_tests.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

enum { CLIENT_FIELDS = 600, CLIENT_ROOM = 1 << 18 };

/* What the client has sent of its call, and got. */
static struct {
    const char *sent;
    size_t left;
    int goes_on; /* with what it sends: it does not end */
    nghttp2_session *session;
    aco_stream_t *stream;
    int32_t id;
    char headers[4096]; /* "name=value " of heads and trailers */
    char body[CLIENT_ROOM];
    size_t n;
    int is_closed;
    uint32_t code;
} answer;

static void send_all(nghttp2_session *session, aco_stream_t *stream)
{
    const uint8_t *p;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(session, &p)) > 0)
        if (aco_stream_write_all(stream, p, (size_t)n) != n)
            return;
}

/* ---- Handlers ---- */

static int echo_packed(aco_grpc_call_t *call, void *arg)
{
    return aco_grpc_compress(call, 1) == 0 ? echo(call, arg) : ACO_GRPC_FROM_ERRNO;
}

static int metadata(aco_grpc_call_t *call, void *arg)
{
    size_t n = 0;
    const char *text = aco_grpc_metadata(call, "x-text", 0, &n), *name;
    const void *bytes;
    (void)arg;
    if (text && aco_grpc_add_metadata(call, "x-text", text, n) != 0)
        return ACO_GRPC_FROM_ERRNO;
    for (size_t i = 0; (bytes = aco_grpc_metadata(call, "x-bytes-bin", i, &n)) != NULL; i++)
        if (aco_grpc_add_trailer(call, "x-bytes-bin", bytes, n) != 0)
            return ACO_GRPC_FROM_ERRNO;
    if (errno == ENOMEM)
        return ACO_GRPC_FROM_ERRNO;
    CHECK_TEXT("a name", aco_grpc_next_metadata(call, NULL), text ? "x-text" : "x-bytes-bin");
    CHECK_TEXT("the next name", text ? aco_grpc_next_metadata(call, "x-text") : "x-bytes-bin", "x-bytes-bin");
    name = aco_grpc_next_metadata(call, "x-bytes-bin");
    CHECK(!name || strcmp(name, "user-agent") == 0); /* some send it behind the others */
    if (aco_grpc_add_metadata(call, "transfer-encoding-x", "1", 1) != 0) /* "transfer-encoding" is not free */
        return ACO_GRPC_FROM_ERRNO;
    FAILS_WITH(aco_grpc_add_metadata(call, "transfer-encoding", "1", 1), EINVAL);
    FAILS_WITH(aco_grpc_add_metadata(call, "grpc-x", "1", 1), EINVAL);
    FAILS_WITH(aco_grpc_add_metadata(call, "X-Upper", "1", 1), EINVAL);
    FAILS_WITH(aco_grpc_add_metadata(call, "x-text", "a\nb", 3), EINVAL);
    FAILS_WITH(aco_grpc_add_metadata(call, "-bin", "a\nb", 3), EINVAL); /* nothing is before "-bin": a text */
    FAILS_WITH(aco_grpc_add_trailer(call, "content-type", "1", 1), EINVAL);
    FAILS_WITH(aco_grpc_add_trailer(call, "x-long", NULL, 3000), ENOMEM);
    return echo(call, NULL);
}

/* More than a request's own memory has room for. */
static int trails(aco_grpc_call_t *call, void *arg)
{
    static char value[900];
    memset(value, 'v', sizeof value);
    (void)arg;
    if (aco_grpc_add_trailer(call, "x-first", value, sizeof value) != 0 ||
        aco_grpc_add_trailer(call, "x-second", value, sizeof value) != 0 || aco_grpc_write(call, "a", 1) != 0)
        return ACO_GRPC_FROM_ERRNO;
    return ACO_GRPC_OK;
}

static int fails(aco_grpc_call_t *call, void *arg)
{
    (void)arg;
    if (aco_grpc_set_details(call, "\0\1", 2) != 0)
        return ACO_GRPC_FROM_ERRNO;
    return aco_grpc_fail(call, ACO_GRPC_NOT_FOUND, "\t100 % of \xe2\x98\xba\n");
}

/* It looks away when its messages cannot be sent, because its own scope has ended. */
static int looks_away(aco_grpc_call_t *call, void *arg)
{
    aco_scope_t ended;
    (void)arg;
    CHECK_EQ(aco_grpc_write(call, "one", 3), 0);
    CHECK_EQ(aco_scope_begin(&ended, aco_after(0)), 0);
    FAILS_WITH(aco_sleep_until(ACO_FOREVER), ETIMEDOUT);
    FAILS_WITH(aco_grpc_write(call, "two", 3), ETIMEDOUT);
    (void)aco_scope_end(&ended);
    FAILS_WITH(aco_grpc_write(call, "two", 3), ETIMEDOUT);
    return ACO_GRPC_OK;
}

/* The scope of a read ends before the client's messages do; the next read has the message. */
static int reads_again(aco_grpc_call_t *call, void *arg)
{
    const void *message;
    size_t n;
    aco_scope_t scope;
    (void)arg;
    CHECK_EQ(aco_scope_begin(&scope, aco_after(ACO_MILLISECOND)), 0);
    FAILS_WITH(aco_grpc_read_only(call, &message, &n), ETIMEDOUT);
    (void)aco_scope_end(&scope);
    answer.goes_on = 0;
    CHECK_EQ(nghttp2_session_resume_data(answer.session, answer.id), 0);
    send_all(answer.session, answer.stream);
    CHECK_EQ(aco_grpc_read_only(call, &message, &n), 0);
    return aco_grpc_write(call, message, n) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

/* It works past its deadline, and waits for nothing. */
static int works(aco_grpc_call_t *call, void *arg)
{
    (void)arg;
    while (aco_now() < aco_deadline())
        ;
    return aco_grpc_fail(call, ACO_GRPC_NOT_FOUND, "too late");
}

static int left_with, has_left;
static int sleeps(aco_grpc_call_t *call, void *arg)
{
    (void)call;
    (void)arg;
    left_with = aco_sleep_until(ACO_FOREVER) == 0 ? 0 : errno;
    has_left = 1;
    errno = left_with;
    return ACO_GRPC_FROM_ERRNO;
}

static aco_grpc_server_t *new_server(void)
{
    /* FileDescriptorProto{name: "t.proto" package: "test" service{name: "Test" method{name: "Echo"}}} */
    static const char file[] = "\x0a\x07t.proto\x12\x04test\x32\x0e\x0a\x04Test\x12\x06\x0a\x04"
                               "Echo";
    static const aco_grpc_server_options_t options = {.max_message = 1 << 20};
    aco_grpc_server_t *server = aco_grpc_server_new(&options);
    CHECK(server != NULL);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Echo", echo, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/EchoPacked", echo_packed, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Chat", chat, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Many", many, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Metadata", metadata, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Fails", fails, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Trails", trails, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Sleeps", sleeps, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Works", works, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/LooksAway", looks_away, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/ReadsAgain", reads_again, NULL), 0);
    FAILS_WITH(aco_grpc_server_add(server, "/test.Test/Echo", echo, NULL), EEXIST);
    FAILS_WITH(aco_grpc_server_add(server, "/test.Test", echo, NULL), EINVAL);
    CHECK_EQ(aco_grpc_server_add_health(server), 0);
    CHECK_EQ(aco_grpc_server_add_file(server, file, sizeof file - 1), 0);
    FAILS_WITH(aco_grpc_server_add_file(server, "\xff", 1), EINVAL);
    return server;
}

/* ---- A client: one call, on a connection of its own ---- */

static ssize_t gives(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                     nghttp2_data_source *source, void *arg)
{
    (void)session, (void)id, (void)source, (void)arg;
    n = n < answer.left ? n : answer.left;
    memcpy(p, answer.sent, n);
    answer.sent += n;
    answer.left -= n;
    *flags |= answer.left || answer.goes_on ? 0 : NGHTTP2_DATA_FLAG_EOF;
    return n || !answer.goes_on ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

static int takes_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                       const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    size_t n = strlen(answer.headers);
    (void)session, (void)frame, (void)name_n, (void)value_n, (void)flags, (void)arg;
    snprintf(answer.headers + n, sizeof answer.headers - n, "%s=%s ", (const char *)name, (const char *)value);
    return 0;
}

/* Of a watcher: after each of its messages something changes. */
static struct {
    aco_grpc_server_t *grpc;
    aco_http_server_t *http;
    int is_on, told;
} watched;

static void change_watched(void)
{
    if (watched.told++ == 0)
        CHECK_EQ(aco_grpc_server_set_health(watched.grpc, "", ACO_GRPC_NOT_SERVING), 0);
    else
        aco_http_server_stop(watched.http);
}

static int takes_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
    (void)session, (void)flags, (void)id, (void)arg;
    CHECK(n <= sizeof answer.body - answer.n);
    memcpy(answer.body + answer.n, p, n);
    answer.n += n;
    if (watched.is_on)
        change_watched();
    return 0;
}

static int ends(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    (void)session, (void)id, (void)arg;
    answer.is_closed = 1;
    answer.code = code;
    return 0;
}

static aco_http_server_options_t http;
static const char *extra[CLIENT_FIELDS]; /* further fields: names and values, up to a NULL */
static const char *type = "application/grpc";
static int is_reset_at_once;

static void put(nghttp2_nv *fields, size_t *n, const char *name, const char *value)
{
    fields[(*n)++] =
        (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value), 0};
}

/* Sends a call with this body, and reads until its end. */
static void exchange(aco_stream_t *stream, const char *path, const void *body, size_t n)
{
    static const nghttp2_data_provider provider = {{0}, gives};
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;
    static nghttp2_nv fields[CLIENT_FIELDS];
    uint8_t bytes[4096];
    size_t count = 0;
    ssize_t read_n = 1;
    const int goes_on = answer.goes_on;
    CHECK_EQ(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, takes_field);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, takes_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, ends);
    CHECK_EQ(nghttp2_session_client_new(&session, callbacks, NULL), 0);
    nghttp2_session_callbacks_del(callbacks);
    memset(&answer, 0, sizeof answer);
    answer.sent = body;
    answer.left = n;
    answer.goes_on = goes_on;
    answer.session = session;
    answer.stream = stream;
    put(fields, &count, ":method", "POST");
    put(fields, &count, ":scheme", "http");
    put(fields, &count, ":authority", "localhost");
    put(fields, &count, ":path", path);
    put(fields, &count, "content-type", type);
    put(fields, &count, "te", "trailers");
    for (int i = 0; i + 1 < CLIENT_FIELDS - 8 && extra[i]; i += 2)
        put(fields, &count, extra[i], extra[i + 1]);
    CHECK_EQ(nghttp2_submit_settings(session, 0, NULL, 0), 0);
    answer.id = nghttp2_submit_request(session, NULL, fields, count, &provider, NULL);
    CHECK(answer.id > 0);
    for (int round = 0; !answer.is_closed && read_n > 0; round++) {
        send_all(session, stream);
        if (is_reset_at_once && round == 1) {
            CHECK_EQ(nghttp2_submit_rst_stream(session, 0, answer.id, NGHTTP2_CANCEL), 0);
            send_all(session, stream);
        }
        if (answer.is_closed)
            break;
        read_n = aco_stream_read(stream, bytes, sizeof bytes);
        if (read_n > 0)
            CHECK_EQ(nghttp2_session_mem_recv(session, bytes, (size_t)read_n), read_n);
    }
    nghttp2_session_del(session);
}

static long left = -1,
            fails_at = -1; /* allocations until one fails, now and in the next call; less than 0: none does */

#ifdef GRPC_FAILURE
void *__real_aco__service_allocate(size_t *sz, const char *call);
void *__wrap_aco__service_allocate(size_t *sz, const char *call);

static int has_failed; /* an allocation */
static size_t largest; /* bytes of one */

void *__wrap_aco__service_allocate(size_t *sz, const char *call)
{
    if (left >= 0 && left-- == 0) {
        has_failed = 1;
        errno = ENOMEM;
        return NULL;
    }
    largest = *sz > largest ? *sz : largest;
    return __real_aco__service_allocate(sz, call);
}
#endif

typedef struct aco_test_call {
    aco_http_server_t *server;
    aco_stream_t *stream;
} aco_test_call_t;

static void *serves_one(void *arg)
{
    aco_test_call_t *of = arg;
    if (aco_http_serve_connection(of->server, of->stream, NULL, 0) != 0)
        CHECK(fails_at >= 0 && errno == ENOMEM);
    return NULL;
}

static void call(const char *path, const void *body, size_t n)
{
    aco_grpc_server_t *grpc = new_server();
    aco_test_call_t of;
    aco_stream_t *ends_of[2];
    aco_t *task;
    http.groups = aco_grpc_server_groups(grpc);
    of.server = aco_http_server_new(&http);
    CHECK(of.server != NULL);
    watched.grpc = grpc;
    watched.http = of.server;
    CHECK_EQ(aco_stream_pair(ends_of, 4096), 0);
    of.stream = ends_of[0];
    task = aco_spawn(serves_one, &of, NULL);
    CHECK(task != NULL);
    left = fails_at;
    exchange(ends_of[1], path, body, n);
    left = -1;
    aco_stream_close(ends_of[1]);
    CHECK_EQ(aco_join(task, NULL), 0);
    fails_at = -1;
    aco_http_server_destroy(of.server);
    aco_grpc_server_destroy(grpc);
    memset(extra, 0, sizeof extra);
}
#define CALL(path, text) call(path, text, sizeof(text) - 1)
#define HAS(text) CHECK(strstr(answer.headers, text) != NULL)
#define IS(text) \
    do { \
        CHECK_EQ(answer.n, sizeof(text) - 1); \
        CHECK(memcmp(answer.body, text, sizeof(text) - 1) == 0); \
    } while (0)

/* ---- Tests ---- */

static void test_messages(void)
{
    CALL("/test.Test/Echo", "\0\0\0\0\5hello");
    IS("\0\0\0\0\5hello");
    HAS(":status=200 ");
    HAS("content-type=application/grpc ");
    HAS("grpc-status=0 ");
    CALL("/test.Test/Chat", "\0\0\0\0\1a\0\0\0\0\0\0\0\0\0\2bc");
    IS("\0\0\0\0\1a\0\0\0\0\0\0\0\0\0\2bc");
    HAS("x-count=3 ");
    CALL("/test.Test/Chat", "");
    IS("");
    HAS("x-count=0 ");
    CALL("/test.Test/Many", "\0\0\0\0\1\3");
    IS("\0\0\0\0\7message\0\0\0\0\7message\0\0\0\0\7message");
}

static void test_metadata(void)
{
    extra[0] = "x-text", extra[1] = "text";
    extra[2] = "x-bytes-bin", extra[3] = "AAE=,/w";
    extra[4] = "x-bytes-bin", extra[5] = "AQID";
    CALL("/test.Test/Metadata", "\0\0\0\0\0");
    HAS("x-text=text ");
    HAS("transfer-encoding-x=1 ");
    HAS("x-bytes-bin=AAE x-bytes-bin=/w x-bytes-bin=AQID ");
    extra[0] = "x-bytes-bin", extra[1] = "A"; /* no base64 */
    CALL("/test.Test/Metadata", "\0\0\0\0\0");
    HAS("grpc-status=0 ");
}

static void test_status(void)
{
    CALL("/test.Test/Fails", "\0\0\0\0\0");
    HAS("grpc-status=5 ");
    HAS("grpc-message=%09100 %25 of %E2%98%BA%0A ");
    HAS("grpc-status-details-bin=AAE ");
    CALL("/test.Test/Unknown", "\0\0\0\0\0");
    HAS("grpc-status=12 ");
    CALL("/test.Unknown/Echo", "");
    HAS("grpc-status=12 ");
    type = "application/json";
    CALL("/test.Test/Echo", "{}");
    HAS(":status=415 ");
    type = "application/grpcweb";
    CALL("/test.Test/Echo", "{}");
    HAS(":status=415 ");
    type = "application/grpc+proto";
    CALL("/test.Test/Echo", "\0\0\0\0\0");
    HAS("grpc-status=0 ");
    type = "application/grpc";
    CHECK_EQ(aco_grpc_status_of_errno(ENOENT), ACO_GRPC_NOT_FOUND);
    for (int i = 0; i <= ACO_GRPC_UNAUTHENTICATED; i++)
        if (i != ACO_GRPC_UNKNOWN && i != ACO_GRPC_UNAUTHENTICATED)
            CHECK_EQ(aco_grpc_status_of_errno(aco_grpc_errno_of_status(i)), i);
    CHECK_TEXT("its name", aco_grpc_status_name(ACO_GRPC_DATA_LOSS), "DATA_LOSS");
}

static void test_ends(void)
{
    extra[0] = "grpc-timeout", extra[1] = "1m";
    CALL("/test.Test/Sleeps", "\0\0\0\0\0");
    HAS("grpc-status=4 ");
    CHECK_EQ(left_with, ETIMEDOUT);
    extra[0] = "grpc-timeout", extra[1] = "1m";
    CALL("/test.Test/Works", "\0\0\0\0\0");
    HAS("grpc-status=4 ");
    extra[0] = "grpc-timeout", extra[1] = "1 day";
    CALL("/test.Test/Sleeps", "\0\0\0\0\0");
    HAS("grpc-status=13 ");
    is_reset_at_once = 1;
    CALL("/test.Test/Sleeps", "\0\0\0\0\0");
    is_reset_at_once = 0;
    CHECK_EQ(left_with, ECANCELED);
}

/* The limits of the server's other requests are not those of calls, which may come in one packet with the head. */
static void test_limits(void)
{
    http.max_body = 3;
    CALL("/test.Test/Echo", "\0\0\0\0\5hello");
    IS("\0\0\0\0\5hello");
    http.max_body = 0;
    answer.goes_on = 1;
    CALL("/test.Test/ReadsAgain", "\0\0\0\0\5hello");
    IS("\0\0\0\0\5hello");
    HAS("grpc-status=0 ");
    CALL("/test.Test/LooksAway", "");
    HAS("grpc-status=4 ");
}

/* Messages count, as long as they are held, as much as bodies that nobody has read. */
static void test_buffered(void)
{
    enum { COUNT = 5, EACH = 5 + (40000 & ~0xff) };
    static char messages[COUNT * EACH];
    http.max_buffered = 150000;
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < COUNT; i++)
        messages[i * EACH + 3] = (char)(40000 >> 8);
    call("/test.Test/Chat", messages, sizeof messages);
    HAS("x-count=5 ");
    messages[2] = 3; /* the same bytes as one message */
    messages[3] = 0;
    call("/test.Test/Echo", messages, sizeof messages);
    HAS("grpc-status=8 ");
    http.max_buffered = 0;
}

/* Metadata beyond the server's limits end the call and not the server. */
static void test_floods(void)
{
    static char large[20000];
    memset(large, 'a', sizeof large - 1);
    extra[0] = "x-large", extra[1] = large;
    CALL("/test.Test/Metadata", "\0\0\0\0\0");
    HAS(":status=431 ");
    CHECK(strstr(answer.headers, "grpc-status=0 ") == NULL);
    for (int i = 0; i < CLIENT_FIELDS - 10; i++)
        extra[i] = i % 2 ? "AA" : "x-bytes-bin";
    CALL("/test.Test/Metadata", "\0\0\0\0\0");
    HAS(":status=431 ");
    for (int i = 0; i < 120; i++)
        extra[i] = i % 2 ? "AA" : "x-bytes-bin";
    CALL("/test.Test/Metadata", "\0\0\0\0\0");
    HAS("grpc-status=0 ");
}

static void test_hostile(void)
{
    CALL("/test.Test/Echo", "\0\0\x20\0\0"); /* 2 MiB are announced */
    HAS("grpc-status=8 ");
    CALL("/test.Test/Echo", "\0\0\0\0\5hel"); /* half a message */
    HAS("grpc-status=13 ");
    CALL("/test.Test/Echo", "\0\0\0");
    HAS("grpc-status=13 ");
    CALL("/test.Test/Echo", "\1\0\0\0\1a"); /* compressed, by what? */
    HAS("grpc-status=13 ");
    CALL("/test.Test/Echo", "\2\0\0\0\1a");
    HAS("grpc-status=13 ");
    CALL("/test.Test/Echo", "\0\0\0\0\1a\0\0\0\0\1a"); /* two, where one is due */
    HAS("grpc-status=12 ");
    CALL("/test.Test/Echo", "");
    HAS("grpc-status=12 ");
    extra[0] = "grpc-encoding", extra[1] = "snappy";
    CALL("/test.Test/Echo", "\0\0\0\0\0");
    HAS("grpc-status=12 ");
    HAS("grpc-accept-encoding=identity");
}

static void test_health(void)
{
    CALL("/grpc.health.v1.Health/Check", "\0\0\0\0\0");
    IS("\0\0\0\0\2\x08\1");
    CALL("/grpc.health.v1.Health/Check", "\0\0\0\0\3\x0a\1x");
    HAS("grpc-status=5 ");
    CALL("/grpc.health.v1.Health/Check", "\0\0\0\0\3\x0a\7x"); /* no protobuf */
    HAS("grpc-status=3 ");
}

/* A watcher waits for a change and for the server's stop, and for nothing else. The first one is told NOT_SERVING by
 * the change, and not again by the stop; the second one by the stop. */
static void test_health_watch(void)
{
    watched.is_on = 1;
    for (int i = 0; i < 2; i++) {
        CALL("/grpc.health.v1.Health/Watch", "\0\0\0\0\0");
        IS("\0\0\0\0\2\x08\1\0\0\0\0\2\x08\2");
        HAS("grpc-status=14 ");
    }
    watched.is_on = 0;
}

static void test_reflection(void)
{
    CALL("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "\0\0\0\0\2\x3a\0");
    CHECK(memmem(answer.body, answer.n, "test.Test", 9) != NULL);
    CALL("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\0\0\0\0\x10\x22\x0etest.Test.Echo");
    CHECK(memmem(answer.body, answer.n, "t.proto", 7) != NULL);
    CALL("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "\0\0\0\0\x08\x22\x06test.T");
    CHECK(memmem(answer.body, answer.n, "not found", 9) != NULL);
}

#ifdef GRPC_WITH_ZLIB
#include <zlib.h>

/* A compressed message of so many zeros. */
static size_t pack_zeros(char *to, size_t room, size_t n)
{
    static char zeros[2 << 20];
    z_stream z = {0};
    CHECK_EQ(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)zeros;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)to + 5;
    z.avail_out = (uInt)room - 5;
    CHECK_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    room -= 5 + z.avail_out;
    deflateEnd(&z);
    to[0] = 1, to[1] = 0, to[2] = 0, to[3] = (char)(room >> 8), to[4] = (char)room;
    return room + 5;
}

static void says_gzip(void)
{
    extra[0] = "grpc-encoding", extra[1] = "gzip", extra[2] = "grpc-accept-encoding", extra[3] = "gzip";
}

/* Each message has a flag of its own. */
static void test_flags(void)
{
    char messages[4096], *at;
    size_t n = pack_zeros(messages, sizeof messages - 105, 1000);
    memset(messages + n, 0, 105);
    messages[n + 4] = 100;
    says_gzip();
    call("/test.Test/Chat", messages, n + 105);
    HAS("x-count=2 ");
    at = answer.body;
    CHECK(at[0] == 1 && at[3] == 0 && at[4] > 0);
    CHECK_EQ(answer.n, (size_t)at[4] + 110);
    CHECK_EQ(at[at[4] + 5], 0);
}

#ifdef GRPC_FAILURE
/* A message of 1 GB in less than 1 MB, as the server takes it. */
static size_t make_bomb(char *to, size_t room)
{
    enum { PARTS = 1000, PART = 1 << 20 };
    static char zeros[PART];
    z_stream z = {0};
    size_t n, each = 0;
    CHECK_EQ(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = (Bytef *)to + 5;
    z.avail_out = (uInt)room - 5;
    for (int i = 0; i < 2; i++) {
        each = z.avail_out;
        z.next_in = (Bytef *)zeros;
        z.avail_in = PART;
        CHECK_EQ(deflate(&z, Z_FULL_FLUSH), Z_OK);
        each -= z.avail_out;
    }
    n = room - z.avail_out;
    deflateEnd(&z);
    CHECK(n + PARTS * each <= room && n + PARTS * each < 1 << 20);
    for (int i = 0; i < PARTS; i++, n += each)
        memcpy(to + n, to + n - each, each);
    to[0] = 1, to[1] = 0, to[2] = (char)((n - 5) >> 16), to[3] = (char)((n - 5) >> 8), to[4] = (char)(n - 5);
    return n;
}

/* What a bomb costs is what the limits of messages and of the server allow. */
static void test_bombs(void)
{
    static char bomb[(1 << 20) + 4096];
    const size_t n = make_bomb(bomb, sizeof bomb);
    largest = 0;
    says_gzip();
    call("/test.Test/Echo", bomb, n);
    HAS("grpc-status=8 ");
    CHECK(largest <= 2 << 20);
    http.max_buffered = 150000;
    largest = 0;
    says_gzip();
    call("/test.Test/Echo", bomb, pack_zeros(bomb, 4096, 1 << 20));
    HAS("grpc-status=8 ");
    CHECK(largest <= 1 << 19);
    http.max_buffered = 0;
}
#endif

static void test_gzip(void)
{
    char packed[4096];
    test_flags();
#ifdef GRPC_FAILURE
    test_bombs();
#endif
    extra[0] = "grpc-encoding", extra[1] = "gzip", extra[2] = "grpc-accept-encoding", extra[3] = "identity, gzip";
    call("/test.Test/EchoPacked", packed, pack_zeros(packed, sizeof packed, 10000));
    HAS("grpc-encoding=gzip ");
    HAS("grpc-status=0 ");
    CHECK(answer.n < 200 && answer.body[0] == 1);
    extra[0] = "grpc-encoding", extra[1] = "gzip"; /* the client takes none */
    call("/test.Test/EchoPacked", packed, pack_zeros(packed, sizeof packed, 10000));
    CHECK(answer.n == 10005 && answer.body[0] == 0);
    extra[0] = "grpc-encoding", extra[1] = "gzip"; /* a bomb: more than max_message */
    call("/test.Test/Echo", packed, pack_zeros(packed, sizeof packed, 2 << 20));
    HAS("grpc-status=8 ");
    extra[0] = "grpc-encoding", extra[1] = "gzip";
    CALL("/test.Test/Echo", "\1\0\0\0\5wrong");
    HAS("grpc-status=13 ");
}
#endif

#ifdef GRPC_FAILURE
static void server_fails(int which)
{
    aco_grpc_server_t *server;
    left = which;
    server = aco_grpc_server_new(NULL);
    if (server) {
        (void)aco_grpc_server_add(server, "/test.Test/Echo", echo, NULL);
        (void)aco_grpc_server_add_health(server);
        (void)aco_grpc_server_set_health(server, "test.Test", ACO_GRPC_NOT_SERVING);
        (void)aco_grpc_server_add_file(server, "\x0a\1t", 3);
    }
    left = -1;
    aco_grpc_server_destroy(server);
}

/* What came with this status has all parts. */
static void is_whole_if(const char *status, const char *part, const char *other)
{
    if (!strstr(answer.headers, status))
        return;
    CHECK(strstr(answer.headers, part) != NULL);
    CHECK(strstr(answer.headers, other) != NULL);
}

static void calls_fail(int which)
{
    char long_message[305] = {0, 0, 0, 1, 300 - 256};
    fails_at = which;
    memset(long_message + 5, 'a', 300); /* more than the first buffer of a call has room for */
    call("/test.Test/Chat", long_message, sizeof long_message);
    is_whole_if("grpc-status=0 ", "x-count=1 ", ":status=200 ");
    fails_at = which;
    extra[0] = "x-text", extra[1] = "text", extra[2] = "x-bytes-bin", extra[3] = "AAE=,/w";
    CALL("/test.Test/Metadata", "\0\0\0\0\0");
    is_whole_if("grpc-status=0 ", "x-text=text ", "x-bytes-bin=AAE x-bytes-bin=/w ");
    fails_at = which;
    CALL("/test.Test/Trails", "\0\0\0\0\0");
    is_whole_if("grpc-status=0 ", "x-first=", "x-second=");
    fails_at = which;
    CALL("/test.Test/Fails", "\0\0\0\0\0");
    is_whole_if("grpc-status=5 ", "grpc-message=", "grpc-status-details-bin=AAE ");
    fails_at = which;
    extra[0] = "grpc-encoding", extra[1] = "none";
    CALL("/test.Test/Echo", "\0\0\0\0\0");
    is_whole_if("grpc-status=12 ", "grpc-message=", "grpc-accept-encoding=");
    fails_at = which;
    CALL("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "\0\0\0\0\2\x3a\0");
#ifdef GRPC_WITH_ZLIB
    {
        char packed[4096];
        fails_at = which;
        extra[0] = "grpc-encoding", extra[1] = "gzip", extra[2] = "grpc-accept-encoding", extra[3] = "gzip";
        call("/test.Test/EchoPacked", packed, pack_zeros(packed, sizeof packed, 10000));
    }
#endif
}

/* No call waits for ever or succeeds with parts missing, and nothing stays allocated (which LeakSanitizer sees). */
static void test_failures(void)
{
    int which = 0;
    http.failed = ignores;
    do {
        has_failed = 0;
        server_fails(which);
        calls_fail(which);
    } while (has_failed && ++which < 1000);
    CHECK(which > 10 && which < 1000);
}
#endif

static void *test_all(void *arg)
{
    (void)arg;
    test_messages();
    test_metadata();
    test_status();
    test_ends();
    test_limits();
    test_buffered();
    test_floods();
    test_hostile();
    test_health();
    test_health_watch();
    test_reflection();
#ifdef GRPC_WITH_ZLIB
    test_gzip();
#endif
#ifdef GRPC_FAILURE
    test_failures();
#endif
    return NULL;
}

static void *serve(void *arg)
{
    aco_grpc_server_t *server = new_server();
    int listener = aco_io_listen("tcp", "127.0.0.1", "0", NULL);
    struct sockaddr_in address;
    socklen_t n = sizeof address;
    (void)arg;
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &n), 0);
    printf("127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    (void)aco_grpc_serve(listener, server, NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argv;
    run_task(argc > 1 ? serve : test_all, NULL);
    return check_result("grpc_server");
}
