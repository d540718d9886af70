/* HTTP servers (include/aco/http.h) by raw bytes over loopback: what is refused and with which status, in one piece and
 * byte by byte; routes, bodies, replies, limits, shutdown, files. */
#define _GNU_SOURCE
#include <aco/file.h>
#include <aco/http.h>
#include <aco/io_buffer.h>
#include "io_tests.h"
#include "sanitizers.h"

#include <stdlib.h>
#include <sys/stat.h>

/* ---- A server and its peer ---- */

typedef struct stage {
    aco_http_server_t server;
    char port[8];
    int listener;
    aco_scope_t scope; /* of the server */
    aco_t *task;
    int error; /* with which serving ended */
} stage_t;

static void *serves(void *arg)
{
    stage_t *stage = arg;
    aco_scope_begin(&stage->scope, ACO_FOREVER);
    CHECK_EQ(aco_http_serve(stage->listener, &stage->server), -1);
    stage->error = errno;
    aco_scope_end(&stage->scope);
    return NULL;
}

static void start(stage_t *stage, const aco_http_route_t *routes)
{
    char address[ACO_IO_ADDRESS_SIZE];
    stage->server.routes = routes;
    stage->listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK(stage->listener >= 0);
    CHECK_EQ(aco_io_local_address(stage->listener, address, sizeof address), 0);
    snprintf(stage->port, sizeof stage->port, "%s", strchr(address, ':') + 1);
    stage->task = aco_spawn(serves, stage, NULL);
    CHECK(stage->task != NULL);
    aco_task_yield();
}

static void stop(stage_t *stage)
{
    aco_scope_cancel(&stage->scope);
    CHECK_EQ(aco_join(stage->task, NULL), 0);
    CHECK_EQ(stage->error, ECANCELED);
}

static int dial(const stage_t *stage)
{
    int fd = aco_io_dial("tcp4", "127.0.0.1", stage->port, NULL);
    CHECK(fd >= 0);
    return fd;
}

static char got[1 << 22]; /* what came, with a 0 behind it */
static size_t got_n;

static void read_to_end(int fd)
{
    ssize_t n = 1;
    for (got_n = 0; n > 0 && got_n < sizeof got - 1; got_n += n > 0 ? (size_t)n : 0)
        n = aco_io_read(fd, got + got_n, sizeof got - 1 - got_n);
    got[got_n] = 0;
}

enum { IN_ONE_PIECE, BYTE_BY_BYTE };

/* Sends these bytes and the end of the stream, and reads what comes until the server closes. */
static const char *talk(const stage_t *stage, const char *bytes, size_t n, int how)
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

static const char *ask(const stage_t *stage, const char *text)
{
    return talk(stage, text, strlen(text), IN_ONE_PIECE);
}

/* The statuses of the replies that came, "200 404"; replies without a body only have to be last. */
static const char *statuses(void)
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

static void check_text(const char *file, int line, const char *what, const char *is, const char *wanted)
{
    if (strcmp(is, wanted) == 0)
        return;
    fprintf(stderr, "%s:%d: %s: \"%s\" and not \"%s\"; all of it: \"%.300s\"\n", file, line, what, is, wanted, got);
    CHECK(!"the text");
}
#define CHECK_TEXT(what, is, wanted) check_text(__FILE__, __LINE__, what, is, wanted)
#define CHECK_HAS(text) check_has(__FILE__, __LINE__, text)

static void check_has(const char *file, int line, const char *text)
{
    if (strstr(got, text))
        return;
    fprintf(stderr, "%s:%d: there is no \"%s\" in \"%.300s\"\n", file, line, text, got);
    CHECK(!"the text is there");
}

static const char *body(void)
{
    const char *end = strstr(got, "\r\n\r\n");
    return end ? end + 4 : "";
}

/* ---- Handlers ---- */

static void tells(aco_http_request_t *request, void *text)
{
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", text, strlen(text)), 0);
}

/* What it knows of the request. */
static void describes(aco_http_request_t *request, void *arg)
{
    char text[2048];
    const char *id = aco_http_param(request, "id"), *rest = aco_http_param(request, "*");
    const char *a = aco_http_query(request, "a"), *x = aco_http_header(request, "X-Test");
    int n = snprintf(text, sizeof text, "%s|%s|%s|%s|%s|%d|%s|%s|%s|%s|%lld", request->method, request->target,
                     request->path, request->query, request->host, request->minor, id ? id : "-", rest ? rest : "-",
                     a ? a : "-", x ? x : "-", (long long)request->length);
    (void)arg;
    CHECK(aco_http_param(request, "none") == NULL && aco_http_header(request, "none") == NULL);
    n = n < (int)sizeof text ? n : (int)sizeof text - 1;
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", text, (size_t)n), 0);
}

static void echoes(aco_http_request_t *request, void *arg)
{
    size_t n;
    char *text = aco_http_read_all(request, 1 << 20, &n);
    (void)arg;
    if (text && text[n] == 0)
        CHECK_EQ(aco_http_reply(request, 200, NULL, text, n), 0);
}

/* Reads and writes at the same time. */
static void streams(aco_http_request_t *request, void *arg)
{
    char part[777];
    ssize_t n;
    (void)arg;
    CHECK_EQ(aco_http_begin(request, 200, "application/octet-stream", -1), 0);
    while ((n = aco_http_read(request, part, sizeof part)) > 0)
        if (aco_http_write(request, part, (size_t)n) != 0)
            return;
}

static void says_nothing(aco_http_request_t *request, void *arg)
{
    (void)request;
    (void)arg;
}

/* ---- What is refused ---- */

#define HOST "Host: a\r\n"
#define GET(headers) "GET / HTTP/1.1\r\n" HOST headers "\r\n"
#define POST(headers, content) "POST /echo HTTP/1.1\r\n" HOST headers "\r\n" content
#define SECRET "GET /secret HTTP/1.1\r\n" HOST "\r\n" /* what a smuggler would like to be understood as a request */
#define CASE(bytes, wanted) {bytes, sizeof(bytes) - 1, wanted}

static const struct {
    const char *bytes;
    size_t n;
    const char *statuses; /* "": the connection ends without a reply */
} cases[] = {
    /* Plain ones */
    CASE(GET(""), "200"),
    CASE(GET("") GET(""), "200 200"),
    CASE("\r\n\r\n" GET(""), "200"),
    CASE("GET / HTTP/1.0\r\n\r\n" SECRET, "200"),
    CASE("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" GET(""), "200 200"),
    CASE(GET("Connection: close\r\n") SECRET, "200"),
    CASE("GET http://b/ HTTP/1.1\r\n" HOST "\r\n", "200"),
    CASE("GET http://b HTTP/1.1\r\n" HOST "\r\n", "200"),
    CASE("get / HTTP/1.1\r\n" HOST "\r\n", "501"),
    CASE(GET("Empty:\r\nX:   y  \r\n"), "200"),
    CASE("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "404"),
    CASE("DELETE / HTTP/1.1\r\n" HOST "\r\n", "405"),
    CASE("GET /none HTTP/1.1\r\n" HOST "\r\n", "404"),
    CASE("GET /nothing HTTP/1.1\r\n" HOST "\r\n", "500"),
    CASE("", ""),
    CASE("GET / HTTP/1.1\r\nHos", ""),
    CASE(POST("Content-Length: 3\r\n", "abc") GET(""), "200 200"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n") GET(""), "200 200"),
    CASE(POST("Transfer-Encoding: Chunked\r\n", "3;a=b\r\nabc\r\n0\r\nTrailer: x\r\n\r\n") GET(""), "200 200"),
    CASE(POST("Content-Length: 5\r\n", "GET /") GET(""), "200 200"),
    CASE(POST("Content-Length: 0\r\n", "") GET(""), "200 200"),
    CASE("GET / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n" GET(""), "200 200"),
    CASE(GET("Content-Length: 2\r\n") "xy" GET(""), "200 200"), /* a body that nobody reads */
    /* Two ends */
    CASE(POST("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nX") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", "0\r\n\r\nX") SECRET, "400"),
    CASE(POST("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd") SECRET, "400"),
    CASE(POST("Content-Length: 3\r\nContent-Length: 3\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: 3, 3\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: +3\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: -3\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: 0x3\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: 3 3\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: \r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: 99999999999999999999999\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: 18446744073709551616\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: 18446744073709551615\r\n", "abc") SECRET, "413"),
    CASE(POST("Content-Length: 9223372036854775808\r\n", "abc") SECRET, "413"),
    CASE(POST("Content-Length: 3\r\nContent_Length: 9\r\n", "abc") GET(""), "200 200"),
    CASE(POST("Content-Length\t: 3\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: 3;\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: 3\x0b\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: \"3\"\r\n", "abc") SECRET, "400"),
    CASE(POST("Content-Length: 003\r\n", "abc") GET(""), "200 200"),
    CASE(POST("Transfer-Encoding: chunked\t\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked,\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: , chunked\r\n", "0\r\n\r\n") SECRET, "501"),
    CASE(POST("Transfer-Encoding: chunked;a=b\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n chunked\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("X: y\r\nTransfer-Encoding\r\n: chunked\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: identity\r\n", "") SECRET, "400"),
    CASE(POST("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n") SECRET, "501"),
    CASE(POST("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunk\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding:\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding:\x0b"
              "chunked\r\n",
              "0\r\n\r\n") SECRET,
         "400"),
    CASE(POST("Transfer-Encoding : chunked\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n") GET(""), "200 200"),
    CASE("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SECRET, "400"),
    /* Bad chunks */
    CASE(POST("Transfer-Encoding: chunked\r\n", "3\r\nabcd\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3\nabc\n0\n\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3\r\nabc\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3 \r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", " 3\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "0x3\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "+3\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "-3\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3_0\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "g\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "10000000000000003\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3;a\nb\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3;\0\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3\rXabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "0\r\nTrailer : x\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "0\r\n folded\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3\r\nab"), "500"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "03\r\nabc\r\n000\r\n\r\n") GET(""), "200 200"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3;a=\"\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3;a=\"b\"\r\nabc\r\n0\r\n\r\n") GET(""), "200 200"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3\r\nabc0\r\n\r\n") SECRET, "400"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "3\r\r\nabc\r\n0\r\n\r\n") SECRET, "400"),
    /* Lines and fields */
    CASE("GET / HTTP/1.1\n" HOST "\r\n" SECRET, "400"),
    CASE("GET / HTTP/1.1\r\nHost: a\n\r\n" SECRET, "400"),
    CASE("GET / HTTP/1.1\r\nHost: a\r\n\n" SECRET, "400"),
    CASE("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n" SECRET, "400"),
    CASE("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n" SECRET, "400"),
    CASE("GET / HTTP/1.1\rHost: a\r\n\r\n" SECRET, "400"),
    CASE(GET("X: y\r\n folded\r\n"), "400"),
    CASE(GET("X: y\r\n\tfolded\r\n"), "400"),
    CASE("GET / HTTP/1.1\r\n " HOST "\r\n", "400"),
    CASE(GET("X : y\r\n"), "400"),
    CASE(GET("X\t: y\r\n"), "400"),
    CASE(GET(" X: y\r\n"), "400"),
    CASE(GET(": y\r\n"), "400"),
    CASE(GET("X\r\n"), "400"),
    CASE(GET("X y\r\n"), "400"),
    CASE(GET("X\0: y\r\n"), "400"),
    CASE(GET("X: \0\r\n"), "400"),
    CASE(GET("X: a\x01"
             "b\r\n"),
         "400"),
    CASE(GET("X: a\x7f"
             "b\r\n"),
         "400"),
    CASE(GET("X(: y\r\n"), "400"),
    CASE(GET("\xc3\xa4: y\r\n"), "400"),
    CASE("GET /\0 HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /\x80 HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /\t HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET / / HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET  / HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /  HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET / HTTP/1.1 \r\n" HOST "\r\n", "400"),
    CASE("GET\t/ HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE(" GET / HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /#a HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET a HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET ftp://a/ HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET http:///x HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET http://u@a/x HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET * HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /%zz HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /%0 HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /%00 HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /a/../secret HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /a/%2e%2E/secret HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /a%2f..%2fsecret HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET /. HTTP/1.1\r\n" HOST "\r\n", "400"),
    /* Hosts */
    CASE("GET / HTTP/1.1\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\n" HOST HOST "\r\n", "400"),
    CASE("GET / HTTP/1.1\r\n" HOST "Host: b\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost:\r\n\r\n", "200"),
    CASE("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "200"),
    /* Methods and versions */
    CASE("GET /\r\n", ""),
    CASE("GET /\r\n\r\n", "505"),
    CASE("GET / HTTP/0.9\r\n\r\n", "505"),
    CASE("GET / HTTP/1.2\r\n" HOST "\r\n", "505"),
    CASE("GET / HTTP/2.0\r\n" HOST "\r\n", "505"),
    CASE("GET / HTTP/3.7\r\n" HOST "\r\n", "505"),
    CASE("GET / HTTP/x.y\r\n" HOST "\r\n", "400"),
    CASE("GET / HTTP/1\r\n" HOST "\r\n", "400"),
    CASE("GET / HTTP/11\r\n" HOST "\r\n", "400"),
    CASE("GET / http/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET / HTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("GET / RTSP/1.0\r\n" HOST "\r\n", "400"),
    CASE("FLY / HTTP/1.1\r\n" HOST "\r\n", "501"),
    CASE("G@T / HTTP/1.1\r\n" HOST "\r\n", "400"),
    CASE("CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n", "501"),
    CASE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
    CASE("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"), /* TLS */
    CASE(POST("Expect: 200-ok\r\nContent-Length: 3\r\n", "abc") SECRET, "417"),
    CASE(POST("Content-Length: 2000000\r\n", "") SECRET, "413"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "fffff\r\n") SECRET, "500"),
};

static int secrets;

static void gives_secret(aco_http_request_t *request, void *arg)
{
    secrets++;
    tells(request, arg);
}

static const aco_http_route_t routes[] = {
    {"GET", "/", tells, "hello\n"},          {"GET", "/secret", gives_secret, "secret"},
    {"GET", "/users/{id}", describes, NULL}, {"GET", "/users/{id}/posts/*", describes, NULL},
    {"GET", "/any/*", describes, NULL},      {"POST", "/echo", echoes, NULL},
    {"PUT", "/echo", echoes, NULL},          {NULL, "/stream", streams, NULL},
    {NULL, "/nothing", says_nothing, NULL},  {NULL, NULL, NULL, NULL},
};

static void *refuses(void *arg)
{
    stage_t stage = {0};
    (void)arg;
    start(&stage, routes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int how = IN_ONE_PIECE; how <= BYTE_BY_BYTE; how++) {
            const char *is;
            talk(&stage, cases[i].bytes, cases[i].n, how);
            is = statuses();
            if (strcmp(is, cases[i].statuses) != 0)
                fprintf(stderr, "case %zu, %s: \"%s\" and not \"%s\":\n%s\n", i, how ? "byte by byte" : "whole", is,
                        cases[i].statuses, cases[i].bytes);
            CHECK(strcmp(is, cases[i].statuses) == 0);
        }
    CHECK_EQ(secrets, 0);
    stop(&stage);
    return NULL;
}

/* ---- What is answered ---- */

static void *answers(void *arg)
{
    stage_t stage = {0};
    (void)arg;
    start(&stage, routes);
    ask(&stage, GET(""));
    CHECK_HAS("HTTP/1.1 200 OK\r\nDate: ");
    CHECK_HAS(" GMT\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n");
    ask(&stage, "HEAD / HTTP/1.1\r\n" HOST "\r\n");
    CHECK_HAS("\r\nContent-Length: 6\r\n");
    CHECK_TEXT("the body of HEAD", body(), "");
    ask(&stage, "GET / HTTP/1.0\r\n\r\n");
    CHECK_HAS("\r\nConnection: close\r\n");
    ask(&stage, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK_HAS("\r\nConnection: keep-alive\r\n");
    ask(&stage, "PATCH /echo HTTP/1.1\r\n" HOST "\r\n");
    CHECK_HAS("HTTP/1.1 405 Method Not Allowed\r\n");
    CHECK_HAS("\r\nAllow: POST, PUT\r\n");
    ask(&stage, "GET /users/J%C3%B6%2b?b=1&a=x+%26y&a=z HTTP/1.1\r\nhost: h:1\r\nx-TEST:  a b \r\n\r\n");
    CHECK_TEXT(
        "a route with a name", body(),
        "GET|/users/J%C3%B6%2b?b=1&a=x+%26y&a=z|/users/J\xc3\xb6+|b=1&a=x+%26y&a=z|h:1|1|J\xc3\xb6+|-|x &y|a b|0");
    ask(&stage, "GET http://h/users/7/posts/a/b?a HTTP/1.1\r\nHost: x\r\nX-Test:\r\n\r\n");
    CHECK_TEXT("two names", body(), "GET|http://h/users/7/posts/a/b?a|/users/7/posts/a/b|a|h|1|7|a/b|||0");
    ask(&stage, "GET /users/ HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("an empty name", statuses(), "404");
    ask(&stage, "GET /any/?x=%zz&a=%zz HTTP/1.0\r\n\r\n");
    CHECK_TEXT("an empty end", body(), "GET|/any/?x=%zz&a=%zz|/any/|x=%zz&a=%zz||0|-||-|-|0");
    stop(&stage);
    return NULL;
}

/* ---- Bodies ---- */

/* Sends a body of `n` bytes in chunks of `chunk`, or whole for 0, and checks that it comes back. */
static void send_body(const stage_t *stage, const char *path, size_t n, size_t chunk)
{
    char *bytes = malloc(n + 1), head[256];
    int fd = dial(stage), length;
    aco_io_writer_t out;
    size_t back = 0;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 31 >> 3);
    length = snprintf(head, sizeof head,
                      chunk ? "POST %s HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                            : "POST %s HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
                      path, n);
    aco_io_writer_open(&out, fd, NULL, 8192);
    CHECK_EQ(aco_io_writer_write(&out, head, (size_t)length), 0);
    for (size_t sent = 0, part; sent < n; sent += part) {
        part = chunk && chunk < n - sent ? chunk : n - sent;
        if (chunk)
            CHECK_EQ(aco_io_writer_print(&out, "%zx\r\n", part), 0);
        CHECK_EQ(aco_io_writer_write(&out, bytes + sent, part), 0);
        if (chunk)
            CHECK_EQ(aco_io_writer_write(&out, "\r\n", 2), 0);
    }
    if (chunk)
        CHECK_EQ(aco_io_writer_write(&out, "0\r\n\r\n", 5), 0);
    CHECK_EQ(aco_io_writer_flush(&out), 0);
    aco_io_writer_close(&out);
    aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    CHECK_EQ(aco_io_close(fd), 0);
    if (!strstr(got, "Transfer-Encoding: chunked")) {
        back = got_n - (size_t)(body() - got);
        CHECK(back == n && memcmp(body(), bytes, n) == 0);
    } else {
        const char *at = body();
        for (size_t part; (part = (size_t)strtoul(at, NULL, 16)) != 0; at += part + 2) {
            at = strstr(at, "\r\n") + 2;
            CHECK(back + part <= n && memcmp(at, bytes + back, part) == 0);
            back += part;
        }
        CHECK_EQ(back, n);
        CHECK(strcmp(at, "0\r\n\r\n") == 0);
    }
    free(bytes);
}

static void *passes_bodies(void *arg)
{
    static const size_t sizes[] = {1, 5000, 16383, 70000, 1 << 20};
    stage_t stage = {0};
    (void)arg;
    start(&stage, routes);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        send_body(&stage, "/echo", sizes[i], 0);
        send_body(&stage, "/echo", sizes[i], sizes[i] / 7 + 1);
        if (sizes[i] <= 70000) /* this peer does not read before it has sent all */
            send_body(&stage, "/stream", sizes[i], 1000);
    }
    /* More than the limit: by length, and in chunks. */
    ask(&stage, POST("Content-Length: 1048577\r\n", ""));
    CHECK_TEXT("too long", statuses(), "413");
    CHECK_HAS("Connection: close");
    stop(&stage);
    stage.server.max_body = 10;
    start(&stage, routes);
    ask(&stage, POST("Transfer-Encoding: chunked\r\n", "8\r\n12345678\r\n3\r\n123\r\n0\r\n\r\n"));
    CHECK_TEXT("too long in chunks", statuses(), "413");
    ask(&stage, POST("Transfer-Encoding: chunked\r\n", "8\r\n12345678\r\n2\r\n12\r\n0\r\n\r\n"));
    CHECK_TEXT("as long as it may be", body(), "1234567812");
    stop(&stage);
    return NULL;
}

/* "100 Continue" comes when the handler reads, and only then. */
static void *continues(void *arg)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    stage_t stage = {0};
    char bytes[sizeof text];
    int fd;
    (void)arg;
    start(&stage, routes);
    fd = dial(&stage);
    aco_io_write_all(fd, POST("Expect: 100-continue\r\nContent-Length: 3\r\n", ""),
                     sizeof POST("Expect: 100-continue\r\nContent-Length: 3\r\n", "") - 1);
    CHECK_EQ(aco_io_read_exactly(fd, bytes, sizeof text - 1), sizeof text - 1);
    CHECK(memcmp(bytes, text, sizeof text - 1) == 0);
    aco_io_write_all(fd, "abc" GET(""), 3 + sizeof GET("") - 1);
    aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    CHECK_TEXT("after it", statuses(), "200 200");
    aco_io_close(fd);
    ask(&stage, "GET / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    CHECK_TEXT("nobody reads", statuses(), "200");
    CHECK_HAS("Connection: close");
    ask(&stage, POST("Expect: 100-continue\r\nContent-Length: 3\r\n", "abc"));
    CHECK_TEXT("it did not wait", statuses(), "200");
    stop(&stage);
    return NULL;
}

/* ---- Limits ---- */

static void ask_of(const stage_t *stage, const char *begin, int letter, size_t n, const char *end, const char *wanted)
{
    size_t begin_n = strlen(begin), end_n = strlen(end);
    char *text = malloc(begin_n + n + end_n);
    memcpy(text, begin, begin_n);
    memset(text + begin_n, letter, n);
    memcpy(text + begin_n + n, end, end_n);
    talk(stage, text, begin_n + n + end_n, IN_ONE_PIECE);
    CHECK_TEXT("a long head", statuses(), wanted);
    free(text);
}

static void ask_long(const stage_t *stage, const char *begin, size_t n, const char *end, const char *wanted)
{
    ask_of(stage, begin, 'a', n, end, wanted);
}

/* Chunks with extensions as storage services use them: together many, but few for each byte. */
static void ask_signed_chunks(const stage_t *stage)
{
    enum { CHUNKS = 300 };
    char *text = malloc(CHUNKS * 200 + 200);
    size_t n = (size_t)sprintf(text, POST("Transfer-Encoding: chunked\r\n", ""));
    for (int i = 0; i < CHUNKS; i++)
        n += (size_t)sprintf(text + n, "40;chunk-signature=%064d\r\n%064d\r\n", i, i);
    n += (size_t)sprintf(text + n, "0\r\n\r\n");
    talk(stage, text, n, IN_ONE_PIECE);
    CHECK_TEXT("signed chunks", statuses(), "200");
    free(text);
}

static void *limits_heads(void *arg)
{
    stage_t stage = {0};
    char many[101 * 5 + 64];
    (void)arg;
    start(&stage, routes);
    ask_long(&stage, "GET /any/", 15000, " HTTP/1.1\r\n" HOST "\r\n", "200");
    ask_long(&stage, "GET /any/", 15 << 10, " HTTP/1.1\r\n" HOST "\r\n", "414");
    ask_long(&stage, "GET /any/", 100 << 10, " HTTP/1.1\r\n" HOST "\r\n", "414");
    ask_long(&stage, "GET / HTTP/1.1\r\n" HOST "X: ", 15000, "\r\n\r\n", "200");
    ask_long(&stage, "GET / HTTP/1.1\r\n" HOST "X: ", 15 << 10, "\r\n\r\n", "431");
    ask_long(&stage, "GET / HTTP/1.1\r\n" HOST, 100 << 10, ": X\r\n\r\n", "431");
    ask_long(&stage, POST("Transfer-Encoding: chunked\r\n", "3;"), 100, "\r\nabc\r\n0\r\n\r\n", "200");
    ask_long(&stage, POST("Transfer-Encoding: chunked\r\n", "3;"), 20000, "\r\nabc\r\n0\r\n\r\n", "413");
    ask_long(&stage, POST("Transfer-Encoding: chunked\r\n", "0\r\nX: "), 20000, "\r\n\r\n", "413");
    ask_of(&stage, POST("Transfer-Encoding: chunked\r\n", ""), '0', 20000, "3\r\nabc\r\n0\r\n\r\n", "413");
    ask_signed_chunks(&stage);
    /* A request that begins anywhere in the buffer, with a head as long as it may be and a body. */
    for (size_t n = 14000; n < 16500; n += 300) {
        char *text = malloc(n + 15500 + 200);
        size_t at = (size_t)snprintf(text, n + 200, "GET /any/%0*d HTTP/1.1\r\n" HOST "\r\n", (int)n / 2, 0);
        at += (size_t)sprintf(text + at, "GET /any/%0*d HTTP/1.1\r\n" HOST "\r\n", (int)(n - n / 2), 0);
        at += (size_t)sprintf(text + at, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\nX: %015000d\r\n\r\nbody",
                              0);
        talk(&stage, text, at, IN_ONE_PIECE);
        CHECK_TEXT("a pipeline", statuses(), "200 200 200");
        CHECK(got_n > 4 && strcmp(got + got_n - 4, "body") == 0);
        free(text);
    }
    strcpy(many, "GET / HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 99; i++)
        strcat(many, "A:\r\n");
    strcat(many, "\r\n");
    ask(&stage, many);
    CHECK_TEXT("100 headers", statuses(), "200");
    strcpy(many + strlen(many) - 2, "A:\r\n\r\n");
    ask(&stage, many);
    CHECK_TEXT("101 headers", statuses(), "431");
    stop(&stage);
    return NULL;
}

static void *limits_times(void *arg)
{
    stage_t stage = {0};
    int fd;
    (void)arg;
    stage.server.head_time = stage.server.idle_time = stage.server.body_time = 10 * ACO_MILLISECOND;
    start(&stage, routes);
    fd = dial(&stage); /* no request */
    read_to_end(fd);
    CHECK_EQ(got_n, 0);
    aco_io_close(fd);
    fd = dial(&stage); /* a part of one */
    aco_io_write_all(fd, "GET / HTT", 9);
    read_to_end(fd);
    CHECK_TEXT("half a head", statuses(), "408");
    aco_io_close(fd);
    fd = dial(&stage); /* a part of a body */
    aco_io_write_all(fd, POST("Content-Length: 9\r\n", "abc"), sizeof POST("Content-Length: 9\r\n", "abc") - 1);
    read_to_end(fd);
    CHECK_TEXT("half a body", statuses(), "408");
    aco_io_close(fd);
    fd = dial(&stage); /* no second one */
    aco_io_write_all(fd, GET(""), sizeof GET("") - 1);
    read_to_end(fd);
    CHECK_TEXT("one request", statuses(), "200");
    aco_io_close(fd);
    stop(&stage);
    return NULL;
}

/* A peer that takes nothing. */
static void floods(aco_http_request_t *request, void *ended)
{
    static const char bytes[1 << 16];
    CHECK_EQ(aco_http_begin(request, 200, NULL, -1), 0);
    while (aco_http_write(request, bytes, sizeof bytes) == 0)
        ;
    CHECK_EQ(errno, ETIMEDOUT);
    FAILS_WITH(aco_http_write(request, bytes, sizeof bytes), EPIPE);
    FAILS_WITH(aco_http_flush(request), EPIPE);
    *(int *)ended = 1;
}

static void *limits_writing(void *arg)
{
    int ended = 0, fd;
    const aco_http_route_t flooding[] = {{"GET", "/", floods, &ended}, {NULL, NULL, NULL, NULL}};
    stage_t stage = {0};
    (void)arg;
    stage.server.write_time = 10 * ACO_MILLISECOND;
    start(&stage, flooding);
    fd = dial(&stage);
    aco_io_write_all(fd, GET(""), sizeof GET("") - 1);
    while (!ended)
        aco_sleep(ACO_MILLISECOND);
    aco_io_close(fd);
    stop(&stage);
    return NULL;
}

/* ---- Replies ---- */

static void replies_wrongly(aco_http_request_t *request, void *arg)
{
    (void)arg;
    FAILS_WITH(aco_http_add_header(request, "A B", "c"), EINVAL);
    FAILS_WITH(aco_http_add_header(request, "", "c"), EINVAL);
    FAILS_WITH(aco_http_add_header(request, "A", "c\r\nB: d"), EINVAL);
    FAILS_WITH(aco_http_add_header(request, "A", "c\n"), EINVAL);
    FAILS_WITH(aco_http_add_header(request, "content-Length", "1"), EINVAL);
    FAILS_WITH(aco_http_add_header(request, "Connection", "close"), EINVAL);
    FAILS_WITH(aco_http_write(request, "a", 1), EINVAL);
    FAILS_WITH(aco_http_begin(request, 199, NULL, 0), EINVAL);
    FAILS_WITH(aco_http_begin(request, 600, NULL, 0), EINVAL);
    FAILS_WITH(aco_http_begin(request, 200, "a\r\nb", 0), EINVAL);
    for (int i = 0; i < 100; i++) /* more than the first memory for them */
        CHECK_EQ(aco_http_add_header(request, "Set-Cookie", "0123456789012345678901234567890123456789"), 0);
    {
        char *large = aco_http_allocate(request, 8000);
        memset(large, 'x', 7999);
        large[7999] = 0;
        FAILS_WITH(aco_http_add_header(request, "A", large), ENOMEM);
    }
    CHECK_EQ(aco_http_begin(request, 299, "a/b", 3), 0);
    FAILS_WITH(aco_http_begin(request, 200, NULL, 3), EBUSY);
    FAILS_WITH(aco_http_reply(request, 200, NULL, "", 0), EBUSY);
    FAILS_WITH(aco_http_add_header(request, "A", "b"), EBUSY);
    CHECK_EQ(aco_http_write(request, "ab", 2), 0);
    FAILS_WITH(aco_http_write(request, "cd", 2), EMSGSIZE);
    CHECK_EQ(aco_http_flush(request), 0);
    CHECK_EQ(aco_http_write(request, "c", 1), 0);
}

static void replies_short(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_begin(request, 200, NULL, 10), 0);
    CHECK_EQ(aco_http_write(request, "short", 5), 0);
}

static void gives_up(aco_http_request_t *request, void *length)
{
    CHECK_EQ(aco_http_begin(request, 200, NULL, (intptr_t)length), 0);
    CHECK_EQ(aco_http_write(request, "part", 4), 0);
    aco_http_abort(request);
}

static void has_no_body(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply(request, 204, NULL, NULL, 0), 0);
}

static void streams_text(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_begin(request, 200, NULL, -1), 0);
    CHECK_EQ(aco_http_write(request, "ab", 2), 0);
    CHECK_EQ(aco_http_write(request, "", 0), 0); /* is not the end */
    CHECK_EQ(aco_http_write(request, "c", 1), 0);
}

typedef struct logged {
    int n, statuses[64];
    uint64_t sent;
} logged_t;

static void logs(const aco_http_request_t *request, void *arg)
{
    logged_t *logged = arg;
    logged->statuses[logged->n++ % 64] = request->status;
    logged->sent += request->sent;
    CHECK(request->method != NULL && request->target != NULL && request->fd >= 0 && request->began > 0);
}

static void *replies(void *arg)
{
    static const aco_http_route_t wrong[] = {{"GET", "/", replies_wrongly, NULL},
                                             {"GET", "/short", replies_short, NULL},
                                             {"GET", "/up", gives_up, (void *)-1},
                                             {"GET", "/up4", gives_up, (void *)4},
                                             {"GET", "/none", has_no_body, NULL},
                                             {"GET", "/text", streams_text, NULL},
                                             {NULL, NULL, NULL, NULL}};
    static const aco_http_route_t bad[] = {{"GET", "/{a", says_nothing, NULL}, {NULL, NULL, NULL, NULL}};
    logged_t logged = {0};
    stage_t stage = {0};
    ssize_t n;
    int fd;
    (void)arg;
    stage.server.log = logs;
    stage.server.log_arg = &logged;
    start(&stage, wrong);
    ask(&stage, GET("") GET(""));
    CHECK_TEXT("two", statuses(), "299 299");
    CHECK_HAS("HTTP/1.1 299 \r\n");
    CHECK_TEXT("the last body", got + got_n - 3, "abc");
    ask(&stage, "GET /short HTTP/1.1\r\n" HOST "\r\n" GET(""));
    CHECK_TEXT("a reply that lacks bytes ends the connection", body(), "short");
    ask(&stage, "GET /up HTTP/1.1\r\n" HOST "\r\n" GET(""));
    CHECK_TEXT("one without a length, too", body(), "4\r\npart\r\n");
    ask(&stage, "GET /up4 HTTP/1.1\r\n" HOST "\r\n" GET(""));
    CHECK_TEXT("and one that is whole", body(), "part");
    fd = dial(&stage);
    aco_io_write_all(fd, "GET /up HTTP/1.0\r\n\r\n", 20);
    CHECK_EQ(aco_io_wait_readable(fd), 0);
    while ((n = aco_io_read(fd, got, 100)) > 0)
        ;
    CHECK(n < 0 && errno == ECONNRESET); /* not: the end of the stream */
    aco_io_close(fd);
    ask(&stage, "GET /none HTTP/1.1\r\n" HOST "\r\n" GET(""));
    CHECK_TEXT("no body", statuses(), "204 299");
    CHECK(strstr(got, "Content-Length: 0") == NULL);
    ask(&stage, "GET /text HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("chunks", body(), "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
    ask(&stage, "GET /text HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK_TEXT("to HTTP/1.0", body(), "abc");
    CHECK_HAS("Connection: close");
    ask(&stage, "HEAD /text HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("HEAD", body(), "");
    ask(&stage, "nonsense\r\n\r\n");
    CHECK_EQ(logged.n, 12);
    CHECK_EQ(logged.statuses[11], 400);
    CHECK_EQ(logged.statuses[6], 204);
    stop(&stage);
    stage.server.routes = bad;
    stage.listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    FAILS_WITH(aco_http_serve(stage.listener, &stage.server), EINVAL);
    return NULL;
}

/* ---- Pipelining, and a handler that waits ---- */

static aco_semaphore_t gate;
static int at_gate;

static void waits(aco_http_request_t *request, void *arg)
{
    at_gate++;
    aco_semaphore_acquire(&gate);
    at_gate--;
    tells(request, arg);
}

static const aco_http_route_t waiting[] = {
    {"GET", "/", tells, "hello\n"}, {"GET", "/wait", waits, "waited"}, {NULL, NULL, NULL, NULL}};

#define WAIT "GET /wait HTTP/1.1\r\n" HOST "\r\n"

static void *pipelines(void *arg)
{
    static const char one[] = GET("");
    enum { MANY = 1000 };
    stage_t stage = {0};
    char *all = malloc(MANY * sizeof one), bytes[16];
    aco_io_stats_t before, after;
    int fd;
    (void)arg;
    start(&stage, waiting);
    for (int i = 0; i < MANY; i++)
        memcpy(all + (size_t)i * (sizeof one - 1), one, sizeof one - 1);
    talk(&stage, all, MANY * (sizeof one - 1), IN_ONE_PIECE);
    {
        int n = 0;
        for (const char *at = got; (at = strstr(at, "HTTP/1.1 200 OK")) != NULL; at++)
            n++;
        CHECK_EQ(n, MANY);
    }
    /* The replies to ten requests go out together. */
    fd = dial(&stage);
    aco_io_stats(&before);
    aco_io_write_all(fd, all, 10 * (sizeof one - 1));
    CHECK_EQ(aco_io_read_exactly(fd, got, 1), 1);
    aco_io_stats(&after);
    CHECK(after.calls - before.calls <= 8);
    aco_io_close(fd);
    /* A reply does not wait for the next one's handler. */
    fd = dial(&stage);
    aco_io_write_all(fd, GET("") WAIT, sizeof(GET("") WAIT) - 1);
    CHECK_EQ(aco_io_read_exactly(fd, bytes, 15), 15);
    CHECK(memcmp(bytes, "HTTP/1.1 200 OK", 15) == 0);
    aco_semaphore_release(&gate);
    aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    CHECK_TEXT("the second reply", got + got_n - 6, "waited");
    aco_io_close(fd);
    free(all);
    stop(&stage);
    return NULL;
}

/* ---- Shutdown ---- */

static void *drains(void *arg)
{
    stage_t stage = {0};
    int idle, busy, hung;
    (void)arg;
    stage.server.drain_time = -1;
    start(&stage, waiting);
    idle = dial(&stage);
    busy = dial(&stage);
    aco_io_write_all(idle, GET(""), sizeof GET("") - 1);
    aco_io_write_all(busy, WAIT, sizeof WAIT - 1);
    CHECK_EQ(aco_io_read_exactly(idle, got, 16), 16);
    while (!at_gate)
        aco_task_yield();
    aco_scope_cancel(&stage.scope);
    read_to_end(idle); /* is closed at once */
    aco_io_close(idle);
    FAILS_WITH(aco_io_dial("tcp4", "127.0.0.1", stage.port, NULL), ECONNREFUSED);
    aco_semaphore_release(&gate);
    read_to_end(busy);
    CHECK_TEXT("a request under way", body(), "waited");
    CHECK_HAS("Connection: close");
    aco_io_close(busy);
    CHECK_EQ(aco_join(stage.task, NULL), 0);
    CHECK_EQ(stage.error, ECANCELED);
    /* What does not end in its time is cancelled. */
    stage.server.drain_time = ACO_MILLISECOND;
    start(&stage, waiting);
    hung = dial(&stage);
    aco_io_write_all(hung, WAIT, sizeof WAIT - 1);
    while (!at_gate)
        aco_task_yield();
    stop(&stage);
    aco_io_close(hung);
    return NULL;
}

/* ---- Another transport ---- */

typedef struct mask {
    int fd;
} mask_t;

static void flip(char *p, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++)
        p[i] ^= 0x55;
}

static ssize_t mask_read(void *stream, void *p, size_t n, const char *location)
{
    ssize_t came = aco_io_read_at(((mask_t *)stream)->fd, p, n, location);
    flip(p, came);
    return came;
}

static ssize_t mask_write(void *stream, const void *p, size_t n, const char *location)
{
    char part[100];
    n = n < sizeof part ? n : sizeof part;
    memcpy(part, p, n);
    flip(part, (ssize_t)n);
    return aco_io_write_at(((mask_t *)stream)->fd, part, n, location);
}

static int masks;

static void mask_close(void *stream)
{
    masks--;
    aco_io_close(((mask_t *)stream)->fd);
    free(stream);
}

static void *mask_open(int fd, const aco_http_transport_t **transport, void *arg)
{
    static const aco_http_transport_t functions = {mask_read, mask_write, mask_close, NULL, NULL, NULL};
    mask_t *mask = malloc(sizeof *mask);
    char hello;
    (void)arg;
    mask->fd = fd;
    if (aco_io_read(fd, &hello, 1) != 1 || hello != '!') {
        aco_io_close(fd);
        free(mask);
        return NULL;
    }
    masks++;
    *transport = &functions;
    return mask;
}

static void *uses_transports(void *arg)
{
    static const char request[] = POST("Content-Length: 5000\r\n", "");
    stage_t stage = {0};
    char text[sizeof request + 5000 + sizeof GET("")];
    size_t n = 1;
    int fd;
    (void)arg;
    stage.server.open = mask_open;
    start(&stage, routes);
    text[0] = '!';
    memcpy(text + n, request, sizeof request - 1);
    n += sizeof request - 1;
    memset(text + n, 'x', 5000);
    n += 5000;
    memcpy(text + n, GET(""), sizeof GET("") - 1);
    n += sizeof GET("") - 1;
    flip(text + 1, (ssize_t)n - 1);
    talk(&stage, text, n, IN_ONE_PIECE);
    flip(got, (ssize_t)got_n);
    CHECK_TEXT("by a transport", statuses(), "200 200");
    talk(&stage, "?", 1, IN_ONE_PIECE);
    CHECK_EQ(got_n, 0);
    stop(&stage);
    CHECK_EQ(masks, 0);
    /* A peer that does not even begin: the server ends without it, and it has a limit. */
    stage.server.drain_time = stage.server.head_time = -1;
    start(&stage, routes);
    fd = dial(&stage);
    aco_sleep(ACO_MILLISECOND);
    stop(&stage);
    aco_io_close(fd);
    stage.server.head_time = 10 * ACO_MILLISECOND;
    start(&stage, routes);
    fd = dial(&stage);
    read_to_end(fd);
    CHECK_EQ(got_n, 0);
    aco_io_close(fd);
    stop(&stage);
    return NULL;
}

/* ---- Files ---- */

static char root[] = "/tmp/acorn-http-XXXXXX";

static void make_file(const char *name, size_t n)
{
    char path[128];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", root, name);
    file = fopen(path, "w");
    CHECK(file != NULL);
    for (size_t i = 0; i < n; i++)
        fputc('a' + (int)(i % 26), file);
    fclose(file);
}

static void serves_files(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_serve_file(request, root, aco_http_param(request, "*")), 0);
}

static void ask_file(const stage_t *stage, const char *path, const char *headers, const char *wanted)
{
    char text[512];
    snprintf(text, sizeof text, "GET /files/%s HTTP/1.1\r\n" HOST "%s\r\n", path, headers);
    ask(stage, text);
    CHECK_TEXT(path, statuses(), wanted);
}

static void *has_files(void *arg)
{
    static const aco_http_route_t files[] = {{NULL, "/files/*", serves_files, NULL}, {NULL, NULL, NULL, NULL}};
    static const char *const ranges[][3] = {{"bytes=0-3", "206", "abcd"},
                                            {"bytes=2-", "206", "cdefghij"},
                                            {"bytes=-2", "206", "ij"},
                                            {"bytes=8-99", "206", "ij"},
                                            {"bytes=-99", "206", "abcdefghij"},
                                            {"bytes=3-3", "206", "d"},
                                            {"bytes=10-", "416", ""},
                                            {"bytes=-0", "416", ""},
                                            {"bytes=4-3", "200", "abcdefghij"},
                                            {"bytes=0-1,3-4", "200", "abcdefghij"},
                                            {"bytes=x", "200", "abcdefghij"},
                                            {"lines=0-1", "200", "abcdefghij"},
                                            {"bytes=99999999999999999999-", "416", ""},
                                            {"bytes=-", "200", "abcdefghij"}};
    stage_t stage = {0};
    char header[160], tag[80], date[40], path[64];
    (void)arg;
    CHECK(mkdtemp(root) != NULL);
    make_file("small.txt", 10);
    make_file("large.bin", 3 << 20);
    make_file("index.html", 5);
    make_file(".hidden", 5);
    snprintf(path, sizeof path, "%s/folder", root);
    CHECK_EQ(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/fifo", root);
    CHECK_EQ(mkfifo(path, 0600), 0);
    start(&stage, files);
    ask_file(&stage, "small.txt", "", "200");
    CHECK_TEXT("a small file", body(), "abcdefghij");
    CHECK_HAS("Content-Type: text/plain; charset=utf-8\r\n");
    CHECK_HAS("Accept-Ranges: bytes\r\n");
    snprintf(tag, sizeof tag, "%.*s", (int)strcspn(strstr(got, "ETag: ") + 6, "\r"), strstr(got, "ETag: ") + 6);
    snprintf(date, sizeof date, "%.29s", strstr(got, "Last-Modified: ") + 15);
    ask_file(&stage, "large.bin", "", "200");
    CHECK_EQ(got_n - (size_t)(body() - got), 3 << 20);
    {
        const char *bytes = body();
        size_t same = 0;
        while (same < 3 << 20 && bytes[same] == (char)('a' + same % 26))
            same++;
        CHECK_EQ(same, 3 << 20);
    }
    ask_file(&stage, "", "", "200");
    CHECK_TEXT("the index", body(), "abcde");
    ask_file(&stage, "none", "", "404");
    ask_file(&stage, "folder", "", "404");
    ask_file(&stage, "fifo", "", "404");
    ask_file(&stage, ".hidden", "", "404");
    ask_file(&stage, "folder//small.txt", "", "404");
    ask_file(&stage, "/small.txt", "", "404");
    ask_file(&stage, "../small.txt", "", "400");
    ask_file(&stage, "%2e%2e/small.txt", "", "400");
    ask_file(&stage, "folder/%2e%2e/small.txt", "", "400");
    ask_file(&stage, "..%2fsmall.txt", "", "400");
    ask_file(&stage, "small.txt%00.html", "", "400");
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        snprintf(header, sizeof header, "Range: %s\r\n", ranges[i][0]);
        ask_file(&stage, "small.txt", header, ranges[i][1]);
        CHECK_TEXT(ranges[i][0], body(), ranges[i][2]);
    }
    ask_file(&stage, "small.txt", "Range: bytes=2-3\r\n", "206");
    CHECK_HAS("Content-Range: bytes 2-3/10\r\n");
    ask_file(&stage, "small.txt", "Range: bytes=12-13\r\n", "416");
    CHECK_HAS("Content-Range: bytes */10\r\n");
    ask_file(&stage, "large.bin", "Range: bytes=1048570-2097160\r\n", "206");
    CHECK_EQ(got_n - (size_t)(body() - got), 2097160 - 1048570 + 1);
    snprintf(header, sizeof header, "If-None-Match: \"x\", W/%s\r\n", tag);
    ask_file(&stage, "small.txt", header, "304");
    CHECK_TEXT("unchanged", body(), "");
    ask_file(&stage, "small.txt", "If-None-Match: \"x\"\r\n", "200");
    snprintf(header, sizeof header, "If-Match: \"x\", %s\r\n", tag);
    ask_file(&stage, "small.txt", header, "200");
    snprintf(header, sizeof header, "If-Match: W/%s\r\n", tag);
    ask_file(&stage, "small.txt", header, "412");
    ask_file(&stage, "small.txt", "If-Match: \"x\"\r\nRange: bytes=0-1\r\n", "412");
    ask_file(&stage, "small.txt", "If-Match: *\r\n", "200");
    snprintf(header, sizeof header, "If-Unmodified-Since: %s\r\n", date);
    ask_file(&stage, "small.txt", header, "200");
    ask_file(&stage, "small.txt", "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "412");
    ask_file(&stage, "small.txt", "If-None-Match: *\r\n", "304");
    snprintf(header, sizeof header, "If-Modified-Since: %s\r\n", date);
    ask_file(&stage, "small.txt", header, "304");
    ask_file(&stage, "small.txt", "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "200");
    ask_file(&stage, "small.txt", "If-Modified-Since: Fri, 31 Feb 2090 00:00:00 GMT\r\n", "200");
    ask_file(&stage, "small.txt", "If-Modified-Since: Tue, 01 Jan 2099 00:00:00 GMT\r\n", "200"); /* a Thursday */
    ask_file(&stage, "small.txt", "If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT\r\n", "304");
    snprintf(header, sizeof header, "Range: bytes=0-1\r\nIf-Range: %s\r\n", tag);
    ask_file(&stage, "small.txt", header, "206");
    ask_file(&stage, "small.txt", "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n", "200");
    ask(&stage, "HEAD /files/large.bin HTTP/1.1\r\n" HOST "\r\n");
    CHECK_HAS("Content-Length: 3145728\r\n");
    CHECK_TEXT("HEAD", body(), "");
    ask(&stage, "POST /files/small.txt HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("POST", statuses(), "405");
    CHECK_HAS("Allow: GET, HEAD\r\n");
    { /* a client that is gone while a file is sent: no SIGPIPE */
        int fd = dial(&stage);
        aco_io_write_all(fd, "GET /files/large.bin HTTP/1.1\r\n" HOST "\r\n", 41);
        aco_io_close(fd);
    }
    stop(&stage);
    snprintf(header, sizeof header, "rm -r %s", root);
    CHECK_EQ(system(header), 0);
    return NULL;
}

static void *begins(void *arg) /* makes what a thread has for I/O and files: descriptors */
{
    aco_file_status_t status;
    int pair[2];
    (void)arg;
    make_tcp(pair);
    close_both(pair);
    CHECK_EQ(aco_file_stat("/", &status), 0);
    return NULL;
}

/* ---- Clients ---- */

static void redirects(aco_http_request_t *request, void *status)
{
    const char *to = aco_http_query(request, "to");
    CHECK_EQ(aco_http_add_header(request, "Location", to ? to : request->path), 0);
    CHECK_EQ(aco_http_reply(request, (int)(intptr_t)status, NULL, "moved", 5), 0);
}

static void tells_credentials(aco_http_request_t *request, void *arg)
{
    const char *cookie = aco_http_header(request, "Cookie");
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

/* The status, and the body in `got`; -1 and errno. */
static int call_url(aco_http_client_t *client, const stage_t *stage, aco_http_call_t *call, const char *path)
{
    char url[512];
    aco_http_response_t *response;
    ssize_t n = 1;
    int status;
    snprintf(url, sizeof url, "http://127.0.0.1:%s%s", stage->port, path);
    call->url = url;
    response = aco_http_call(client, call);
    got_n = 0;
    got[0] = 0;
    if (!response)
        return -1;
    while (n > 0 && got_n < sizeof got - 1) {
        n = aco_http_response_read(response, got + got_n, sizeof got - 1 - got_n);
        got_n += n > 0 ? (size_t)n : 0;
    }
    CHECK_EQ(n, 0);
    got[got_n] = 0;
    status = response->status;
    aco_http_end(response);
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
                                       "http://u@a/",
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
    CHECK_EQ(got_n, 30000);
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
    FAILS_WITH(call_url(client, &stage, &call, "/303?to=%2e%C3%B6"), EINVAL);
    call.headers = headers;
    call.header_count = 2;
    CHECK_EQ(call_url(client, &stage, &call, "/303?to=/cookie"), 200);
    CHECK_TEXT("the same host", got, "secret");
    snprintf(text, sizeof text, "/303?to=http://localhost:%s/cookie", stage.port);
    CHECK_EQ(call_url(client, &stage, &call, text), 200);
    CHECK_TEXT("another host", got, "none");
    {
        stage_t other = {0};
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
        ssize_t n = response ? aco_http_response_read(response, got, 200) : 0;
        got[n > 0 ? n : 0] = 0;
        CHECK_TEXT("by a proxy", got, "GET|http://example.org:81/any/a?b|/any/a|b|example.org:81|1|-|a|-|-|0");
        aco_http_end(response);
    }
    aco_http_client_destroy(client);
    stop(&stage);
    return NULL;
}

/* A server that answers what is in `text`, and closes. */
static void *answers_raw(void *arg)
{
    const void *const *what = arg; /* the listener, the text */
    int fd = aco_io_accept(*(const int *)what[0]);
    char head[512];
    CHECK(fd >= 0 && aco_io_read(fd, head, sizeof head) > 0);
    aco_io_write_all(fd, what[1], strlen(what[1]));
    aco_io_close(fd);
    return NULL;
}

#define INTERIM "HTTP/1.1 102 Processing\r\n\r\n"
#define TEN_INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM

/* Two connections answer, then both end at their next request. The third answers. */
static void *answers_third(void *listener)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    char head[512];
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = aco_io_accept(*(const int *)listener);
        CHECK(fds[i] >= 0 && aco_io_read(fds[i], head, sizeof head) > 0);
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
        CHECK_EQ(aco_http_response_read(responses[i], got, 2), 2);
    }
    aco_http_end(responses[0]);
    aco_http_end(responses[1]);
    aco_scope_begin(&scope, aco_after(10 * ACO_SECOND)); /* of the two, the one that does not end says nothing */
    responses[0] = aco_http_get(client, url);
    aco_scope_end(&scope);
    CHECK(responses[0] && responses[0]->status == 200);
    aco_http_end(responses[0]);
    aco_group_end(&group);
    CHECK_EQ(aco_io_close(listener), 0);
    aco_http_client_destroy(client);
    return NULL;
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
        {"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", EBADMSG},
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
        {"nonsense\r\n\r\n", EBADMSG},
    };
    aco_http_client_t *client = aco_http_client_new(NULL);
    (void)arg;
    for (size_t i = 0; i < sizeof responses / sizeof responses[0]; i++) {
        int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL), error = 0;
        char address[ACO_IO_ADDRESS_SIZE], url[160];
        const void *what[2] = {&listener, responses[i].text};
        aco_http_response_t *response;
        aco_group_t group;
        aco_group_begin(&group, ACO_KEEP_GOING);
        member(&group, answers_raw, what);
        CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
        snprintf(url, sizeof url, "http://%s", address);
        response = aco_http_get(client, url);
        got_n = 0;
        error = errno;
        for (ssize_t n = 1; response && n > 0; got_n += n > 0 ? (size_t)n : 0) {
            n = aco_http_response_read(response, got + got_n, 100);
            error = n < 0 ? errno : 0;
        }
        if (!error && got_n == 0)
            error = -1;
        if (error != responses[i].error || (!error && (got_n != 2 || memcmp(got, "ok", 2) != 0)))
            fprintf(stderr, "response %zu: errno %d and not %d: %s\n", i, error, responses[i].error, responses[i].text);
        CHECK_EQ(error, responses[i].error);
        aco_http_end(response);
        aco_group_end(&group);
        CHECK_EQ(aco_io_close(listener), 0);
    }
    aco_http_client_destroy(client);
    return NULL;
}

int main(void)
{
    static const aco_function_t tests[] = {
        refuses, answers,   passes_bodies, continues,       limits_heads, limits_times, limits_writing,
        replies, pipelines, drains,        uses_transports, has_files,    calls,        repeats_once,
        gets_wrong_responses};
    int before;
    run_task(begins, NULL);
    before = count_descriptors();
    run_tests(tests, sizeof tests / sizeof tests[0], before);
    return check_result("http");
}
