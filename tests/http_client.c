/* HTTP clients (include/aco/http.h): connections that are kept, bodies, redirects, proxies, and wrong responses. */
#define _GNU_SOURCE
#include "http_tests.h"

static void redirects(aco_http_request_t *request, void *status)
{
    const char *to = aco_http_request_query(request, "to");
    CHECK_EQ(aco_http_reply_header(request, "Location", to ? to : request->path), 0);
    CHECK_EQ(aco_http_reply(request, (int)(intptr_t)status, NULL, "moved", 5), 0);
}

static void tells_credentials(aco_http_request_t *request, void *arg)
{
    const char *cookie = aco_http_request_header(request, "Cookie");
    (void)arg;
    cookie = cookie ? cookie : "none";
    CHECK_EQ(aco_http_reply(request, 200, NULL, cookie, strlen(cookie)), 0);
}

static int connections; /* descriptors by which requests came, as a set */

static void counts(const aco_http_request_t *request, void *arg)
{
    (void)arg;
    if (request->fd < 31)
        connections |= 1 << request->fd;
}

/* Reads the whole body to `got`; none if there is no response. 0, or -1 and errno. */
static ssize_t read_body(aco_http_response_t *response)
{
    ssize_t n = response != NULL;
    for (got_n = 0; n > 0 && got_n < sizeof got - 1; got_n += n > 0 ? (size_t)n : 0)
        n = aco_http_response_read(response, got + got_n, sizeof got - 1 - got_n);
    got[got_n] = 0;
    return n;
}

/* The status, and the body in `got`; -1 and errno. */
static int call_url(aco_http_client_t *client, const stage_t *stage, aco_http_call_t *call, const char *path)
{
    char url[512];
    aco_http_response_t *response;
    int status;
    snprintf(url, sizeof url, "http://127.0.0.1:%s%s", stage->port, path);
    call->url = url;
    response = aco_http_call(client, call);
    got[got_n = 0] = 0;
    if (!response)
        return -1;
    CHECK_EQ(read_body(response), 0);
    status = response->status;
    aco_http_response_end(response);
    return status;
}

static ssize_t makes_body(void *left, void *p, size_t n)
{
    size_t part = *(size_t *)left < n ? *(size_t *)left : n;
    memset(p, 'b', part);
    *(size_t *)left -= part;
    return (ssize_t)part;
}

static void *calls(void *arg)
{
    static const aco_http_route_t called[] = {{"GET", "/", tells, "hello\n"},
                                              {NULL, "/echo", echoes, NULL},
                                              {NULL, "/stream", streams, NULL},
                                              {"GET", "/text", streams_text, NULL},
                                              {NULL, "/301", redirects, (void *)301},
                                              {NULL, "/303", redirects, (void *)303},
                                              {NULL, "/307", redirects, (void *)307},
                                              {"GET", "/none", has_no_body, NULL},
                                              {"GET", "/cookie", tells_credentials, NULL},
                                              {"GET", "/loop", redirects, (void *)302},
                                              {"GET", "/any/*", describes, NULL},
                                              {NULL, NULL, NULL, NULL}};
    static const aco_http_header_t headers[] = {{"Cookie", "secret"}, {"X-Test", "x"}};
    static const aco_http_header_t wrong[] = {{"A", "b\r\nC: d"}};
    static const char *const urls[] = {"",
                                       "https://a/",
                                       "http://",
                                       "http:///",
                                       "http://u@@a/",
                                       "http://u%00@a/",
                                       "http://a:b/",
                                       "http://a:123456/",
                                       "http://[::1/",
                                       "http://[a]/",
                                       "http://a/\x80",
                                       "http://a/ b",
                                       "ftp://a"};
    aco_http_client_options_t options = {0};
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_http_call_t call = {0};
    stage_t stage = {0};
    size_t left;
    char text[128];
    (void)arg;
    stage.server.log = counts;
    stage.server.drain_idle_time = ACO_MILLISECOND;
    start(&stage, called);
    connections = 0;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(call_url(client, &stage, &call, "/"), 200);
        CHECK_TEXT("GET", got, "hello\n");
        CHECK_EQ(call_url(client, &stage, &call, "/text#x"), 200);
        CHECK_TEXT("chunks", got, "abc");
        CHECK_EQ(call_url(client, &stage, &call, "/none"), 204);
        CHECK_EQ(call_url(client, &stage, &call, "/missing"), 404);
        call.method = "HEAD";
        CHECK_EQ(call_url(client, &stage, &call, "/"), 200);
        CHECK_EQ(call_url(client, &stage, &call, "/text"), 200);
        call.method = NULL;
    }
    CHECK(connections && (connections & (connections - 1)) == 0); /* all by one connection */
    /* Bodies */
    call.method = "POST";
    call.body = "body";
    call.length = 4;
    CHECK_EQ(call_url(client, &stage, &call, "/echo"), 200);
    CHECK_TEXT("a body", got, "body");
    call.read_body = makes_body;
    call.read_arg = &left;
    call.length = -1;
    left = 100000;
    CHECK_EQ(call_url(client, &stage, &call, "/echo"), 200);
    CHECK_EQ(got_n, 100000);
    call.length = left = 30000;
    CHECK_EQ(call_url(client, &stage, &call, "/stream"), 200);
    CHECK(IS_SIMULATED ? got_n <= 30000 : got_n == 30000); /* a reply that comes earlier ends the sending */
    call.length = 10;
    left = 5;
    FAILS_WITH(call_url(client, &stage, &call, "/echo"), EMSGSIZE);
    call.read_body = NULL;
    call.length = 4;
    /* Redirects */
    CHECK_EQ(call_url(client, &stage, &call, "/307?to=/echo"), 200);
    CHECK_TEXT("307 repeats the body", got, "body");
    CHECK_EQ(call_url(client, &stage, &call, "/303?to=/"), 200);
    CHECK_TEXT("303 gets", got, "hello\n");
    CHECK_EQ(call_url(client, &stage, &call, "/301?to=any/x%3fa=1"), 200);
    CHECK_TEXT("301 gets, a relative path", strstr(got, "|/any/x|") ? "yes" : got, "yes");
    memset(&call, 0, sizeof call);
    FAILS_WITH(call_url(client, &stage, &call, "/loop"), ELOOP);
    CHECK_EQ(call_url(client, &stage, &call, "/303?to=/any/x?y%3dhttp://z"), 200);
    CHECK_TEXT("a URL in the query", strstr(got, "|/any/x|y=http://z|") ? "yes" : got, "yes");
    CHECK_EQ(call_url(client, &stage, &call, "/303?to=any/../any/b/./c/../../d/..?../e"), 200);
    CHECK_TEXT("dots", strstr(got, "|/any/|../e|") ? "yes" : got, "yes");
    CHECK_EQ(call_url(client, &stage, &call, "/303?to=../../any/."), 200);
    CHECK_TEXT("dots beyond the root", strstr(got, "|/any/||") ? "yes" : got, "yes");
    FAILS_WITH(call_url(client, &stage, &call, "/303?to=https://127.0.0.1/"), EINVAL);
    FAILS_WITH(call_url(client, &stage, &call, "/303?to=file:/etc/passwd"), EINVAL);
    call.headers = headers;
    call.header_count = 2;
    CHECK_EQ(call_url(client, &stage, &call, "/303?to=/cookie"), 200);
    CHECK_TEXT("the same host", got, "secret");
    snprintf(text, sizeof text, "/303?to=http://localhost:%s/cookie", stage.port);
    CHECK_EQ(call_url(client, &stage, &call, text), 200);
    CHECK_TEXT("another host", got, "none");
    {
        stage_t other = {.server.drain_idle_time = ACO_MILLISECOND};
        start(&other, called);
        snprintf(text, sizeof text, "/303?to=http://127.0.0.1:%s/cookie", other.port);
        CHECK_EQ(call_url(client, &stage, &call, text), 200);
        CHECK_TEXT("another port", got, "none");
        stop(&other);
    }
    call.headers = wrong;
    call.header_count = 1;
    FAILS_WITH(call_url(client, &stage, &call, "/"), EINVAL);
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        errno = 0;
        CHECK(aco_http_get(client, urls[i]) == NULL);
        CHECK_EQ(errno, EINVAL);
    }
    FAILS_WITH(aco_http_call(client, NULL) ? 0 : -1, EINVAL);
    CHECK_TEXT("no call", aco_error_message(), "aco_http_call: the client or the call is NULL");
    memset(&call, 0, sizeof call);
    call.aco__reserved[1] = &call;
    FAILS_WITH(call_url(client, &stage, &call, "/"), EINVAL);
    CHECK_TEXT("a later field", aco_error_message(), "aco_http_call: a reserved field is not 0");
    FAILS_WITH(aco_http_call(NULL, &call) ? 0 : -1, EINVAL);
    /* A kept connection that the server has closed meanwhile */
    memset(&call, 0, sizeof call);
    stop(&stage);
    FAILS_WITH(call_url(client, &stage, &call, "/"), ECONNREFUSED);
    aco_http_client_destroy(client);
    /* By a proxy: the server gets the whole URL */
    start(&stage, called);
    options.proxy_host = "127.0.0.1";
    options.proxy_port = stage.port;
    client = aco_http_client_new(&options);
    {
        aco_http_response_t *response = aco_http_get(client, "http://example.org:81/any/a?b");
        CHECK_EQ(read_body(response), 0);
        CHECK_TEXT("by a proxy", got, "GET|http://example.org:81/any/a?b|/any/a|b|example.org:81|1|-|a|-|-|0");
        aco_http_response_end(response);
    }
    aco_http_client_destroy(client);
    stop(&stage);
    return NULL;
}

typedef struct raw {
    int listener;
    const char *text;
    size_t piece; /* bytes that are sent at once; 0: all */
} raw_t;

/* A server that answers what is in `text`, and closes. */
static void *answers_raw(void *arg)
{
    const raw_t *raw = arg;
    size_t n = strlen(raw->text), piece = raw->piece ? raw->piece : n;
    int fd = aco_io_accept(raw->listener);
    CHECK(fd >= 0 && read_head(fd));
    for (size_t sent = 0; sent < n; sent += piece) {
        if (aco_io_write_all(fd, raw->text + sent, piece) < 0)
            break;
        for (int i = 0; i < 4 && raw->piece; i++) /* the client reads it before the next one comes */
            aco_task_yield();
    }
    aco_io_close(fd);
    return NULL;
}

static char raw_fields[512]; /* of the last response: "[name:value]" for each */

static void note_fields(const aco_http_response_t *response)
{
    size_t n = 0;
    raw_fields[0] = 0;
    for (size_t i = 0; response && i < response->header_count && n < sizeof raw_fields; i++)
        n += (size_t)snprintf(raw_fields + n, sizeof raw_fields - n, "[%s:%s]", response->headers[i].name,
                              response->headers[i].value);
}

/* What a client makes of this answer: 0, and the body is in `got`; or the errno of the call or of reading. */
static int get_pieces(aco_http_client_t *client, const char *text, size_t piece)
{
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL), error;
    char address[ACO_IO_ADDRESS_SIZE], url[160];
    raw_t raw = {listener, text, piece};
    aco_http_response_t *response;
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, answers_raw, &raw);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    snprintf(url, sizeof url, "http://%s", address);
    response = aco_http_get(client, url);
    note_fields(response);
    got_n = 0;
    error = errno;
    for (ssize_t n = 1; response && n > 0; got_n += n > 0 ? (size_t)n : 0) {
        n = aco_http_response_read(response, got + got_n, 100);
        error = n < 0 ? errno : 0;
    }
    aco_http_response_end(response);
    aco_group_end(&group);
    CHECK_EQ(aco_io_close(listener), 0);
    return error;
}

static int get_raw(aco_http_client_t *client, const char *text)
{
    return get_pieces(client, text, 0);
}

#define INTERIM "HTTP/1.1 102 Processing\r\n\r\n"
#define TEN_INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM

/* Two connections answer, then both end at their next request. The third answers. */
static void *answers_third(void *listener)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = aco_io_accept(*(const int *)listener);
        CHECK(fds[i] >= 0 && read_head(fds[i]));
        aco_io_write_all(fds[i], answer, sizeof answer - 1);
        if (i == 1) { /* the one of the two that was kept last is used again */
            CHECK(aco_io_wait_readable_until(fds[1], aco_after(10 * ACO_SECOND)) == 0);
            aco_io_close(fds[1]);
        }
    }
    aco_io_close(fds[0]);
    aco_io_close(fds[2]);
    return NULL;
}

static void *repeats_once(void *arg)
{
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    char address[ACO_IO_ADDRESS_SIZE], url[160];
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_http_response_t *responses[2];
    aco_scope_t scope;
    aco_group_t group;
    (void)arg;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, answers_third, &listener);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    snprintf(url, sizeof url, "http://%s", address);
    for (int i = 0; i < 2; i++) {
        responses[i] = aco_http_get(client, url);
        CHECK(responses[i] != NULL);
        CHECK(read_body(responses[i]) == 0 && got_n == 2);
    }
    aco_http_response_end(responses[0]);
    aco_http_response_end(responses[1]);
    aco_scope_begin(&scope, aco_after(10 * ACO_SECOND)); /* of the two, the one that does not end says nothing */
    responses[0] = aco_http_get(client, url);
    aco_scope_end(&scope);
    CHECK(responses[0] && responses[0]->status == 200);
    aco_http_response_end(responses[0]);
    aco_group_end(&group);
    CHECK_EQ(aco_io_close(listener), 0);
    aco_http_client_destroy(client);
    return NULL;
}

/* An empty line comes with the first answer, another one a moment after the second. Each is a connection's end. */
static void *answers_with_empty_lines(void *listener)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n",
                                          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                                          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
    char byte;
    for (int i = 0; i < 3; i++) {
        int fd = aco_io_accept(*(const int *)listener);
        CHECK(fd >= 0 && read_head(fd));
        aco_io_write_all(fd, answers[i], strlen(answers[i]));
        if (i == 1) {
            CHECK_EQ(aco_sleep(ACO_SECOND), 0); /* the client keeps the connection */
            aco_io_write_all(fd, "\r\n", 2);
        }
        CHECK(aco_io_read(fd, &byte, 1) <= 0); /* a reset, if something was unread */
        aco_io_close(fd);
    }
    return NULL;
}

static void *drops_empty_lines(void *arg)
{
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    char address[ACO_IO_ADDRESS_SIZE], url[160];
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, answers_with_empty_lines, &listener);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    snprintf(url, sizeof url, "http://%s", address);
    for (int i = 0; i < 3; i++) {
        aco_http_response_t *response = aco_http_get(client, url);
        CHECK(response != NULL);
        CHECK(read_body(response) == 0 && got_n == 2);
        aco_http_response_end(response);
        CHECK_EQ(aco_sleep(2 * ACO_SECOND), 0); /* the empty line comes */
    }
    aco_http_client_destroy(client);
    aco_group_end(&group);
    CHECK_EQ(aco_io_close(listener), 0);
    return arg;
}

static void *gets_wrong_responses(void *arg)
{
    static const struct {
        const char *text;
        int error; /* of the call, or of reading; 0: the body is "ok"; -1: there is none */
    } responses[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok", 0},
        {"HTTP/1.0 200 OK\r\n\r\nok", 0},
        {"", ECONNRESET},
        {"HTTP/1.1 200 OK\r\nCont", ECONNRESET},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", ECONNRESET},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", ECONNRESET},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokk\r\n0\r\n\r\n", EBADMSG},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n", EBADMSG},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", EBADMSG},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\nok", EBADMSG},
        {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", EBADMSG},
        {"HTTP/1.1 000 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 20 OK\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 2000 OK\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 0},
        {"HTTP/1.1 103 Early\n\nHTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\r\nok\r\n0\r\n\r\n", 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n", EBADMSG},
        {"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk", EBADMSG},
        {"HTTP/1.1 200 OK\r\nX: a\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 200 OK\r\nA : b\r\n\r\nok", EBADMSG},
        {TEN_INTERIM TEN_INTERIM "HTTP/1.1 200 OK\r\n\r\nok", EBADMSG},
        {TEN_INTERIM "HTTP/1.1 200 OK\r\n\r\nok", 0},
        {"HTTP/1.1 103 Early\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok", 0},
        {"HTTP/1.1 103 Early\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok", 0},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nmalice", -1},
        {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nmalice", -1},
        {"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nmalice\r\n0\r\n\r\n", -1},
        {"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nok", EBADMSG},
        {"HTTP/2.0 200 OK\r\n\r\nok", EBADMSG},
        {"RTSP/1.0 200 OK\r\n\r\nok", EBADMSG},
        {"ICE/1.0 200 OK\r\n\r\nok", EBADMSG},
        {"\r\nHTTP/1.1 200 OK\r\n\r\nok", EBADMSG},
        {"\nHTTP/1.1 200 OK\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 200 O\x01K\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 200 O\x7fK\r\n\r\nok", EBADMSG},
        {"HTTP/1.1 200 \xc3\x96\tK\r\n\r\nok", 0},
        {"HTTP/1.1 200\r\n\r\nok", 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\t\r\n\r\n2\r\nok\r\n0\r\n\r\n", EBADMSG},
        {"HTTP/1.1 200 OK\r\n\r\n", -1},
        {"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n", -1},
        {"HTTP/1.1 103 Early\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok", 0},
        {"HTTP/1.0 103 Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok", 0},
        {"nonsense\r\n\r\n", EBADMSG},
    };
    aco_http_client_t *client = aco_http_client_new(NULL);
    (void)arg;
    for (size_t i = 0; i < sizeof responses / sizeof responses[0]; i++) {
        int error = get_raw(client, responses[i].text), in_bytes = get_pieces(client, responses[i].text, 1);
        CHECK_EQ(in_bytes, error);
        if (!error && got_n == 0)
            error = -1;
        if (error != responses[i].error || (!error && (got_n != 2 || memcmp(got, "ok", 2) != 0)))
            fprintf(stderr, "response %zu: errno %d and not %d: %s\n", i, error, responses[i].error, responses[i].text);
        CHECK_EQ(error, responses[i].error);
    }
    aco_http_client_destroy(client);
    return NULL;
}

/* A field behind one with an empty value is what it is. */
static void *keeps_fields_apart(void *arg)
{
    static const struct {
        const char *text, *fields;
        int error; /* 0: the body is "ok" */
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nX:\r\nContent-Length: 2\r\n\r\nokk", "[X:][Content-Length:2]", 0},
        {"HTTP/1.1 200 OK\r\nX:\r\nY: \t\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nZ:\r\nA: b\r\n\r\n",
         "[X:][Y:][Transfer-Encoding:chunked]", 0},
        {"HTTP/1.1 200 OK\r\nX:\r\nConnection: close\r\nY:\r\n\r\nok", "[X:][Connection:close][Y:]", 0},
        {"HTTP/1.1 200 OK\r\nX:\r\nLocation: /a\r\n\r\nok", "[X:][Location:/a]", 0},
        {"HTTP/1.1 103 Early\r\nX:\r\n\r\nHTTP/1.1 200 OK\r\nX:\r\n\r\nok", "[X:]", 0},
        {"HTTP/1.1 200 OK\r\nX:\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "", EBADMSG},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX:\r\nContent-Length: 2\r\n\r\nok", "", EBADMSG},
        {"HTTP/1.0 200 OK\r\nX:\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "", EBADMSG},
    };
    aco_http_client_t *client = aco_http_client_new(NULL);
    (void)arg;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t piece = 0; piece <= 1; piece++) {
            int error = get_pieces(client, cases[i].text, piece);
            if (error != cases[i].error || (!error && (got_n != 2 || memcmp(got, "ok", 2) != 0)))
                fprintf(stderr, "case %zu: errno %d and not %d: %s\n", i, error, cases[i].error, cases[i].text);
            CHECK_EQ(error, cases[i].error);
            CHECK(error || (got_n == 2 && memcmp(got, "ok", 2) == 0));
            CHECK_TEXT(cases[i].text, raw_fields, cases[i].fields);
        }
    CHECK_EQ(get_raw(client, "HTTP/1.1 302 Found\r\nX:\r\nLocation: ftp://a\r\n\r\n"), EINVAL); /* it is followed */
    aco_http_client_destroy(client);
    return NULL;
}

/* ---- Redirects ---- */

typedef struct moved {
    stage_t stage;
    aco_http_route_t routes[2];
    int status; /* of the first reply */
    const char *to[2]; /* its Locations */
    int asked; /* requests so far */
} moved_t;

/* Answers the first request with the redirect, others with what they were, "GET /target host [name:value]…|body". */
static void moves(aco_http_request_t *request, void *arg)
{
    moved_t *moved = arg;
    char text[2048];
    const char *content;
    int n;
    if (moved->asked++ == 0) {
        for (int i = 0; i < 2; i++)
            if (moved->to[i])
                CHECK_EQ(aco_http_reply_header(request, "Location", moved->to[i]), 0);
        CHECK_EQ(aco_http_reply(request, moved->status, NULL, "moved", 5), 0);
        return;
    }
    n = snprintf(text, sizeof text, "%s %s %s ", request->method, request->target, request->host);
    for (size_t i = 0; i < request->header_count && n < (int)sizeof text; i++)
        n +=
            snprintf(text + n, sizeof text - (size_t)n, "[%s:%s]", request->headers[i].name, request->headers[i].value);
    content = aco_http_request_read_all(request, 100, NULL);
    n += snprintf(text + n, sizeof text - (size_t)n, "|%s", content ? content : "");
    CHECK_EQ(aco_http_reply(request, 200, NULL, text, (size_t)n), 0);
}

static void start_moved(moved_t *moved)
{
    moved->routes[0].path = "/*";
    moved->routes[0].handler = moves;
    moved->routes[0].arg = moved;
    start(&moved->stage, moved->routes);
}

static int call_moved(aco_http_client_t *client, moved_t *moved, aco_http_call_t *call, int status, const char *to)
{
    moved->status = status;
    moved->to[0] = to;
    moved->asked = 0;
    return call_url(client, &moved->stage, call, "/a/b?x=1");
}

static void *resolves_locations(void *arg)
{
    static char too_long[4200];
    static const char *const cases[][2] = {{"", "/a/b?x=1"},
                                           {"#f", "/a/b?x=1"},
                                           {"?y=2", "/a/b?y=2"},
                                           {"?", "/a/b?"},
                                           {"c", "/a/c"},
                                           {".", "/a/"},
                                           {"../d?z#f", "/d?z"},
                                           {"/e/./f/../g", "/e/g"},
                                           {"//HOST/h/../i", "/i"},
                                           {"http://HOST", "/"},
                                           {"HTTP://HOST?q", "/?q"},
                                           {"http://HOST/./j#k", "/j"},
                                           {"c d", "/a/c%20d"},
                                           {"/\xc3\xb6?\xff#\xc3\xb6", "/%C3%B6?%FF"},
                                           {"?a b\tc", "/a/b?a%20b%09c"},
                                           {"//HOST/%41 \xe2\x82\xac", "/%41%20%E2%82%AC"},
                                           {"http://HOST/l m", "/l%20m"}};
    static const char *const wrong[] = {"ftp://a/", "http://", "http://\xc3\xb6/", "http://a b/", "//", too_long};
    moved_t moved = {0};
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_http_call_t call = {0};
    start_moved(&moved);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char to[128], begin[128];
        const char *host = strstr(cases[i][0], "HOST");
        snprintf(to, sizeof to, "%.*s127.0.0.1:%s%s", (int)(host - cases[i][0]), cases[i][0], moved.stage.port,
                 host ? host + 4 : "");
        snprintf(begin, sizeof begin, "GET %s 127.0.0.1:%s ", cases[i][1], moved.stage.port);
        CHECK_EQ(call_moved(client, &moved, &call, 302, host ? to : cases[i][0]), 200);
        got[strlen(begin)] = 0;
        CHECK_TEXT(cases[i][0], got, begin);
    }
    memset(too_long, 'l', sizeof too_long - 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        FAILS_WITH(call_moved(client, &moved, &call, 302, wrong[i]), EINVAL);
    moved.to[1] = "/other"; /* nobody knows which one is meant */
    CHECK_EQ(call_moved(client, &moved, &call, 302, "/c"), 302);
    CHECK_EQ(moved.asked, 1);
    aco_http_client_destroy(client);
    stop(&moved.stage);
    return arg;
}

/* Of a body that a redirect drops, nothing is told. A body that can be read only once is not sent again. */
static void *redirects_bodies(void *arg)
{
    static const aco_http_header_t headers[] = {{"content-type", "a/b"}, {"Content-Language", "en"},
                                                {"Digest", "c"},         {"Trailer", "d"},
                                                {"X-Mine", "e"},         {"Contents", "f"}};
    static const struct {
        const char *method;
        int status;
        const char *wanted; /* NULL: as it was */
    } cases[] = {{"POST", 301, "GET"}, {"POST", 302, "GET"}, {"POST", 303, "GET"}, {"PUT", 303, "GET"},
                 {"POST", 307, NULL},  {"POST", 308, NULL},  {"PUT", 302, NULL},   {"DELETE", 301, NULL}};
    moved_t moved = {0};
    aco_http_client_t *client = aco_http_client_new(NULL);
    start_moved(&moved);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        aco_http_call_t call = {.method = cases[i].method, .headers = headers, .header_count = 6, .body = "{}"};
        char wanted[256];
        size_t left = 5;
        call.length = 2;
        snprintf(wanted, sizeof wanted, "%s /next 127.0.0.1:%s [Host:127.0.0.1:%s]%s[X-Mine:e][Contents:f]%s",
                 cases[i].wanted ? cases[i].wanted : cases[i].method, moved.stage.port, moved.stage.port,
                 cases[i].wanted ? "" : "[content-type:a/b][Content-Language:en][Digest:c][Trailer:d]",
                 cases[i].wanted ? "|" : "[Content-Length:2]|{}");
        CHECK_EQ(call_moved(client, &moved, &call, cases[i].status, "/next"), 200);
        CHECK_TEXT(cases[i].method, got, wanted);
        call.read_body = makes_body;
        call.read_arg = &left;
        call.length = 5;
        CHECK_EQ(call_moved(client, &moved, &call, cases[i].status, "/next"), cases[i].wanted ? 200 : cases[i].status);
        CHECK_EQ(moved.asked, cases[i].wanted ? 2 : 1);
    }
    aco_http_client_destroy(client);
    stop(&moved.stage);
    return arg;
}

/* To another origin go no credentials, and a body only if the options say so; also on the way back. */
static void *keeps_secrets(void *arg)
{
    static const aco_http_header_t secrets[] = {
        {"cookie", "a"}, {"Authorization", "b"}, {"PROXY-Authorization", "c"}, {"X-Mine", "d"}};
    const aco_http_client_options_t lax = {.sends_body_elsewhere = 1};
    aco_http_client_t *client = aco_http_client_new(NULL), *lax_client = aco_http_client_new(&lax);
    aco_http_call_t call = {.headers = secrets, .header_count = 4};
    moved_t moved = {0}, other = {0};
    char elsewhere[64], back[64], wanted[256];
    start_moved(&moved);
    start_moved(&other);
    snprintf(elsewhere, sizeof elsewhere, "http://127.0.0.1:%s/x", other.stage.port);
    snprintf(back, sizeof back, "http://127.0.0.1:%s/back", moved.stage.port);
    other.asked = 1;
    snprintf(wanted, sizeof wanted, "GET /x 127.0.0.1:%s [Host:127.0.0.1:%s][X-Mine:d]|", other.stage.port,
             other.stage.port);
    CHECK_EQ(call_moved(client, &moved, &call, 307, elsewhere), 200);
    CHECK_TEXT("elsewhere", got, wanted);
    other.asked = 0;
    other.status = 302;
    other.to[0] = back;
    snprintf(wanted, sizeof wanted, "GET /back 127.0.0.1:%s [Host:127.0.0.1:%s][X-Mine:d]|", moved.stage.port,
             moved.stage.port);
    CHECK_EQ(call_moved(client, &moved, &call, 302, elsewhere), 200);
    CHECK_TEXT("back again", got, wanted);
    call.body = "{}";
    call.length = 2;
    for (int i = 0; i < 3; i++) {
        static const struct {
            const char *method;
            int status;
        } cases[] = {{"POST", 307}, {"POST", 308}, {"PUT", 301}};
        call.method = cases[i].method;
        other.asked = 1;
        CHECK_EQ(call_moved(client, &moved, &call, cases[i].status, elsewhere), cases[i].status);
        CHECK_EQ(other.asked, 1);
        snprintf(wanted, sizeof wanted, "%s /x 127.0.0.1:%s [Host:127.0.0.1:%s][X-Mine:d][Content-Length:2]|{}",
                 call.method, other.stage.port, other.stage.port);
        CHECK_EQ(call_moved(lax_client, &moved, &call, cases[i].status, elsewhere), 200);
        CHECK_TEXT("a body elsewhere", got, wanted);
    }
    aco_http_client_destroy(client);
    aco_http_client_destroy(lax_client);
    stop(&moved.stage);
    stop(&other.stage);
    return arg;
}

static void dials_zone(void)
{
    int listener = aco_io_listen("tcp6", "::1", "0", NULL);
    raw_t raw = {listener, "HTTP/1.1 204 No Content\r\n\r\n", 0};
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_http_response_t *response;
    aco_group_t group;
    char address[ACO_IO_ADDRESS_SIZE], url[160];
    if (listener >= 0) { /* there is IPv6 */
        CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
        snprintf(url, sizeof url, "http://[::1%%25lo]:%s/", strrchr(address, ':') + 1);
        aco_group_begin(&group, ACO_KEEP_GOING);
        member(&group, answers_raw, &raw);
        response = aco_http_get(client, url);
        CHECK(response && response->status == 204);
        if (!response)
            aco_scope_cancel(&group.scope);
        aco_http_response_end(response);
        aco_group_end(&group);
        CHECK_EQ(aco_io_close(listener), 0);
    }
    aco_http_client_destroy(client);
}

/* A host is the same in any case of letters. A zone of an address is for this machine only (RFC 6874, 4). */
static void *names_hosts(void *arg)
{
    static const char *const zones[] = {"[fe80::1%25eth0]", "[fe80::1%eth0]", "[fe80::1%25eth%2e0]", "[fe80::1]"};
    static const char *const wrong[] = {"http://[::1%]/", "http://[::1%2g]/", "http://[%25lo:]/", "http://[::1%25%00]/",
                                        "http://[fe80::1%25]/"};
    static const aco_http_header_t cookie[] = {{"Cookie", "a"}};
    moved_t moved = {0};
    const aco_http_client_options_t by_proxy = {.proxy_host = "127.0.0.1", .proxy_port = moved.stage.port};
    aco_http_client_t *client;
    aco_http_response_t *response;
    char url[64], to[64];
    ssize_t n;
    start_moved(&moved);
    client = aco_http_client_new(&by_proxy);
    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
        moved.asked = 1;
        snprintf(url, sizeof url, "http://%s:81/a", zones[i]);
        response = aco_http_get(client, url);
        n = response ? aco_http_response_read(response, got, 200) : 0;
        got[n > 0 ? n : 0] = 0;
        CHECK_TEXT(zones[i], got, "GET http://[fe80::1]:81/a [fe80::1]:81 [Host:[fe80::1]:81]|");
        aco_http_response_end(response);
    }
    aco_http_client_destroy(client);
    client = aco_http_client_new(NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        errno = 0;
        CHECK(aco_http_get(client, wrong[i]) == NULL);
        CHECK_EQ(errno, EINVAL);
    }
    {
        aco_http_call_t call = {.url = url, .headers = cookie, .header_count = 1};
        moved.asked = 0;
        moved.status = 302;
        moved.to[0] = to;
        snprintf(url, sizeof url, "http://localhost:%s/", moved.stage.port);
        snprintf(to, sizeof to, "http://LocalHost:%s/", moved.stage.port);
        response = aco_http_call(client, &call);
        n = response ? aco_http_response_read(response, got, 200) : 0;
        got[n > 0 ? n : 0] = 0;
        CHECK_HAS("[Cookie:a]");
        aco_http_response_end(response);
    }
    aco_http_client_destroy(client);
    stop(&moved.stage);
    dials_zone();
    return arg;
}

/* ---- Limits ---- */

/* "/count/3" leads to "/count/0" by three redirects. */
static void counts_down(aco_http_request_t *request, void *arg)
{
    char to[16];
    int n = atoi(aco_http_request_param(request, "n"));
    (void)arg;
    snprintf(to, sizeof to, "%d", n - 1);
    if (n)
        CHECK_EQ(aco_http_reply_header(request, "Location", to), 0);
    CHECK_EQ(aco_http_reply(request, n ? 302 : 204, NULL, NULL, 0), 0);
}

static const aco_http_route_t limited[] = {
    {"GET", "/count/{n}", counts_down, NULL}, {"GET", "/none", has_no_body, NULL}, {NULL, NULL, NULL, NULL}};

static void *limits_redirects(void *arg)
{
    static const struct {
        int max_redirects;
        const char *path;
        int status; /* or an errno */
    } cases[] = {{0, "/count/10", 204},  {0, "/count/11", ELOOP}, {2, "/count/2", 204},
                 {2, "/count/3", ELOOP}, {12, "/count/12", 204},  {-1, "/count/1", 302}};
    stage_t stage = {0};
    (void)arg;
    start(&stage, limited);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        aco_http_client_options_t options = {.max_redirects = cases[i].max_redirects};
        aco_http_client_t *client = aco_http_client_new(&options);
        aco_http_call_t call = {0};
        int status = call_url(client, &stage, &call, cases[i].path);
        CHECK_EQ(status < 0 ? errno : status, cases[i].status);
        aco_http_client_destroy(client);
    }
    stop(&stage);
    return NULL;
}

static void *limits_heads(void *arg)
{
    static const struct {
        int max_head, max_headers;
        int n, size; /* of headers, of each one's value */
        int error;
    } cases[] = {{0, 0, 1, 31 * 1024 - 100, 0}, {0, 0, 1, 31 * 1024, EBADMSG},
                 {1000, 0, 1, 900, 0},          {1000, 0, 1, 1000, EBADMSG},
                 {100000, 0, 1, 99900, 0},      {0, 0, 200, 1, 0},
                 {0, 0, 201, 1, EBADMSG},       {0, 5, 5, 1, 0},
                 {0, 5, 6, 1, EBADMSG},         {0, 300, 300, 1, 0}};
    static const char begin[] = "HTTP/1.1 204 No Content\r\n";
    (void)arg;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        aco_http_client_options_t options = {.max_head = cases[i].max_head, .max_headers = cases[i].max_headers};
        aco_http_client_t *client = aco_http_client_new(&options);
        char *text = malloc(sizeof begin + (size_t)cases[i].n * ((size_t)cases[i].size + sizeof "X: \r\n") + 3);
        int at = sprintf(text, "%s", begin);
        for (int k = 0; k < cases[i].n; k++)
            at += sprintf(text + at, "X: %0*d\r\n", cases[i].size, 0);
        sprintf(text + at, "\r\n");
        CHECK_EQ(get_raw(client, text), cases[i].error);
        free(text);
        aco_http_client_destroy(client);
    }
    return NULL;
}

/* Of one response more than may be kept, one connection is closed. */
static void *limits_kept(void *arg)
{
    enum { DEFAULT = 16 };
    static const struct {
        int max_idle, kept;
    } cases[] = {{0, DEFAULT}, {-1, 0}, {1, 1}, {DEFAULT + 1, DEFAULT + 1}};
    stage_t stage = {0};
    char url[64];
    (void)arg;
    start(&stage, limited);
    snprintf(url, sizeof url, "http://127.0.0.1:%s/none", stage.port);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        aco_http_client_options_t options = {.max_idle = cases[i].max_idle};
        aco_http_client_t *client = aco_http_client_new(&options);
        aco_http_response_t *responses[DEFAULT + 2];
        int n, before;
        for (n = 0; n <= cases[i].kept; n++) {
            responses[n] = aco_http_get(client, url);
            CHECK(responses[n] != NULL);
        }
        before = count_descriptors();
        while (n > 0)
            aco_http_response_end(responses[--n]);
        CHECK_EQ(before - count_descriptors(), 1);
        aco_http_client_destroy(client);
    }
    stop(&stage);
    return NULL;
}

/* ---- Which connections are kept ---- */

static int streams_opened, streams_closed, streams_ended; /* the last: what is kept has ended */

static ssize_t plain_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    return aco_io_read_at(stream->fd, p, n, location);
}

static ssize_t plain_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    return aco_io_write_at(stream->fd, p, n, location);
}

static void plain_close(aco_stream_t *stream)
{
    streams_closed++;
    CHECK_EQ(aco_io_close(stream->fd), 0);
    free(stream);
}

static int plain_has_input(aco_stream_t *stream)
{
    (void)stream;
    return streams_ended;
}

static aco_stream_t *plain_open(int fd, const char *host, void *arg)
{
    static const aco_stream_functions_t functions = {
        .read = plain_read, .write = plain_write, .close = plain_close, .has_input = plain_has_input};
    (void)arg;
    CHECK_TEXT("the host of a stream", host, "127.0.0.1");
    streams_opened++;
    return own_stream(fd, &functions);
}

/* Asks these hosts, one after another; "AAB". Checks how many connections there were, and how many are kept. */
static void asks_hosts(int max_idle, const char *hosts, const stage_t *stages, int opened, int kept)
{
    aco_http_client_options_t options = {.max_idle = max_idle, .open = plain_open};
    aco_http_client_t *client = aco_http_client_new(&options);
    streams_opened = streams_closed = streams_ended = 0;
    for (; *hosts; hosts++) {
        char url[64];
        aco_http_response_t *response;
        if (*hosts == '!') {
            streams_ended = 1;
            continue;
        }
        snprintf(url, sizeof url, "https://127.0.0.1:%s/none", stages[*hosts - 'A'].port);
        response = aco_http_get(client, url);
        CHECK(response != NULL);
        streams_ended = 0;
        aco_http_response_end(response);
    }
    CHECK_EQ(streams_opened, opened);
    CHECK_EQ(streams_opened - streams_closed, kept);
    aco_http_client_destroy(client);
    CHECK_EQ(streams_opened, streams_closed);
}

/* The connection that was not used for longest makes room, and before a new one those that have ended are closed. */
static void *keeps_the_last(void *arg)
{
    stage_t stages[3];
    memset(stages, 0, sizeof stages);
    for (int i = 0; i < 3; i++)
        start(&stages[i], limited);
    asks_hosts(1, "ABBB", stages, 2, 1);
    asks_hosts(2, "ABCBCBC", stages, 3, 2);
    asks_hosts(2, "ABACA", stages, 3, 2);
    asks_hosts(2, "ABACB", stages, 4, 2);
    asks_hosts(-1, "AA", stages, 2, 0);
    asks_hosts(0, "AB!C", stages, 3, 1);
    asks_hosts(0, "AB!B", stages, 3, 1);
    for (int i = 0; i < 3; i++)
        stop(&stages[i]);
    return arg;
}

typedef struct asker {
    aco_http_client_t *client;
    const char *url;
} asker_t;

static void *asks(void *of_asker)
{
    const asker_t *asker = of_asker;
    aco_http_response_t *response = aco_http_get(asker->client, asker->url);
    CHECK(response != NULL);
    aco_http_response_end(response);
    return NULL;
}

/* One call connects first, because all could share HTTP/2. Its server speaks HTTP/1.1, so each needs its own. */
static void *connects_for_all(void *arg)
{
    aco_http_client_options_t options = {.open = plain_open};
    stage_t stage = {0};
    aco_group_t group;
    char url[64];
    asker_t asker = {aco_http_client_new(&options), url};
    start(&stage, limited);
    snprintf(url, sizeof url, "https://127.0.0.1:%s/none", stage.port);
    CHECK_EQ(aco_group_begin(&group, ACO_KEEP_GOING), 0);
    for (int i = 0; i < 3; i++)
        CHECK(aco_group_spawn(&group, asks, &asker, NULL) != NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    aco_http_client_destroy(asker.client);
    stop(&stage);
    return arg;
}

/* ---- Connections that are kept, of two hosts ---- */

typedef struct host {
    int listener, n, fds[8];
    char url[160];
} host_t;

/* Answers one request of each connection, and leaves it open. */
static void *answers_once(void *arg)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    host_t *host = arg;
    int fd;
    while ((fd = aco_io_accept(host->listener)) >= 0) {
        CHECK(read_head(fd));
        CHECK_EQ(aco_io_write_all(fd, answer, sizeof answer - 1), sizeof answer - 1);
        host->fds[host->n++ % 8] = fd;
    }
    return NULL;
}

static void gives_up_connections(host_t *host)
{
    while (host->n > 0)
        CHECK_EQ(aco_io_close(host->fds[--host->n]), 0);
}

typedef struct two_hosts {
    aco_http_client_t *client;
    host_t hosts[2];
} two_hosts_t;

static aco_http_response_t *ask_host(two_hosts_t *two, int i)
{
    aco_http_response_t *response = aco_http_get(two->client, two->hosts[i].url);
    CHECK(response && response->status == 200);
    return response;
}

static void *asks_first_host(void *two)
{
    aco_http_response_end(ask_host(two, 0));
    return NULL;
}

/* Two tasks find that the connections that were kept are over, while the first one has made this many calls of
 * acorn_io in a row that did not wait. */
static void finds_them_over(two_hosts_t *two, int calls, const int pair[2])
{
    aco_http_response_t *responses[2];
    aco_group_t group;
    char byte;
    two->client = aco_http_client_new(NULL);
    for (int i = 2; i-- > 0;)
        responses[i] = ask_host(two, i);
    for (int i = 2; i-- > 0;) /* the first host's connection is the first one in the list */
        aco_http_response_end(responses[i]);
    for (int i = 0; i < 2; i++)
        gives_up_connections(&two->hosts[i]);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, asks_first_host, two);
    for (int i = 0; i < calls; i++)
        FAILS_WITH(aco_io_recv(pair[0], &byte, 1, MSG_DONTWAIT), EAGAIN);
    aco_http_response_end(ask_host(two, 1));
    aco_group_end(&group);
    aco_http_client_destroy(two->client);
    for (int i = 0; i < 2; i++)
        gives_up_connections(&two->hosts[i]);
}

static void *keeps_two_hosts(void *arg)
{
    two_hosts_t two = {0};
    aco_group_t group;
    int pair[2];
    make_pair(pair, SOCK_STREAM);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 2; i++) {
        char address[ACO_IO_ADDRESS_SIZE];
        two.hosts[i].listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
        CHECK_EQ(aco_io_local_address(two.hosts[i].listener, address, sizeof address), 0);
        snprintf(two.hosts[i].url, sizeof two.hosts[i].url, "http://%s/", address);
        member(&group, answers_once, &two.hosts[i]);
    }
    for (int calls = 0; calls < 64; calls++)
        finds_them_over(&two, calls, pair);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(aco_io_close(two.hosts[i].listener), 0);
    aco_group_end(&group);
    close_both(pair);
    return arg;
}

typedef struct stall {
    int listener, fd;
    const char *text;
} stall_t;

/* Accepts, sends the text, and no more. Its caller closes the connection. */
static void *stalls(void *arg)
{
    stall_t *stall = arg;
    stall->fd = aco_io_accept(stall->listener);
    CHECK(stall->fd >= 0);
    aco_io_write_all(stall->fd, stall->text, strlen(stall->text));
    return NULL;
}

/* A scope ends the wait for a head, for the rest of a head, for a body, and the sending of an endless one. */
static void *obeys_deadlines(void *arg)
{
    static const char *const texts[] = {"", "HTTP/1.1 200 OK\r\nCont", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
                                        ""};
    enum { CASES = sizeof texts / sizeof texts[0] };
    aco_http_client_t *client = aco_http_client_new(NULL);
    stall_t stall = {aco_io_listen("tcp4", "127.0.0.1", "0", NULL), -1, NULL};
    char address[ACO_IO_ADDRESS_SIZE], url[160];
    (void)arg;
    CHECK_EQ(aco_io_local_address(stall.listener, address, sizeof address), 0);
    snprintf(url, sizeof url, "http://%s", address);
    for (int i = 0; i < CASES; i++) {
        size_t left = SIZE_MAX;
        aco_http_call_t call = {.url = url};
        aco_http_response_t *response;
        aco_scope_t scope;
        aco_group_t group;
        ssize_t n = 1;
        stall.text = texts[i];
        if (i == CASES - 1) {
            call.method = "POST";
            call.read_body = makes_body;
            call.read_arg = &left;
            call.length = -1;
        }
        aco_group_begin(&group, ACO_KEEP_GOING);
        member(&group, stalls, &stall);
        aco_scope_begin(&scope, aco_after(10 * ACO_MILLISECOND));
        errno = 0;
        response = aco_http_call(client, &call);
        while (response && n > 0)
            n = aco_http_response_read(response, got, 100);
        CHECK_EQ(errno, ETIMEDOUT);
        aco_scope_end(&scope);
        aco_http_response_end(response);
        aco_group_end(&group);
        aco_io_close(stall.fd);
    }
    aco_io_close(stall.listener);
    aco_http_client_destroy(client);
    return NULL;
}

/* The least and the most that options may be, and what is beyond. */
static void *refuses_options(void *arg)
{
    static char long_name[257];
    const aco_http_client_options_t right[] = {{.max_head = 64},
                                               {.max_head = 1 << 20},
                                               {.max_headers = 1},
                                               {.max_headers = 1000},
                                               {.proxy_host = "h", .proxy_port = "65535"}};
    const aco_http_client_options_t wrong[] = {{.max_head = 63},
                                               {.max_head = -1},
                                               {.max_head = (1 << 20) + 1},
                                               {.max_headers = -1},
                                               {.max_headers = 1001},
                                               {.proxy_host = "h"},
                                               {.proxy_host = long_name, .proxy_port = "1"},
                                               {.proxy_host = "h", .proxy_port = "123456"},
                                               {.aco__reserved = {long_name}}};
    memset(long_name, 'h', sizeof long_name - 1);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        aco_http_client_t *client = aco_http_client_new(&right[i]);
        CHECK(client != NULL);
        aco_http_client_destroy(client);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        errno = 0;
        CHECK(!aco_http_client_new(&wrong[i]));
        CHECK_EQ(errno, EINVAL);
    }
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {
        calls,           repeats_once,     gets_wrong_responses, keeps_fields_apart, resolves_locations,
        keeps_secrets,   limits_redirects, limits_heads,         keeps_the_last,     redirects_bodies,
        refuses_options, keeps_two_hosts,  obeys_deadlines,      connects_for_all};
    static const aco_function_t in_kernel[] = {names_hosts, limits_kept}; /* interfaces, /proc */
    static const aco_function_t in_virtual_time[] = {drops_empty_lines};
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    if (IS_SIMULATED)
        run_http_tests(in_virtual_time, sizeof in_virtual_time / sizeof in_virtual_time[0]);
    else
        run_http_tests(in_kernel, sizeof in_kernel / sizeof in_kernel[0]);
    return check_result("http_client");
}
