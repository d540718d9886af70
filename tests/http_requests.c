/* Requests to an HTTP server (include/aco/http.h) by raw bytes over loopback: what is refused and with which status, in
 * one piece and byte by byte; routes, bodies, limits, other streams. */
#define _GNU_SOURCE
#include <aco/io_buffer.h>
#include "http_tests.h"
#include "capture.h"

/* ---- What is refused ---- */

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
    CASE("\n" GET(""), "400"),
    CASE("\r" GET(""), "400"),
    CASE("\r\n\r" GET(""), "400"),
    CASE("GET / HTTP/1.0\r\nConnection: close, keep-alive\r\n\r\n" SECRET, "200"),
    CASE(POST("Transfer-Encoding: chunked\r\n", "0\r\nConnection: close\r\n\r\n") GET(""), "200 200"),
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
    /* Behind empty values, a field is what it is */
    CASE("GET / HTTP/1.1\r\nX:\r\n" HOST "\r\n", "200"),
    CASE("GET / HTTP/1.1\r\nHost:\r\nX: y\r\n\r\n", "200"),
    CASE(GET("X:\r\n") GET("X: \t \r\nY:\r\nZ:\t\r\n") GET(""), "200 200 200"),
    CASE(GET("X:\r\n" HOST), "400"),
    CASE(GET("X: \r\nHost: b\r\n"), "400"),
    CASE("GET / HTTP/1.1\r\nHost:\r\n" HOST "\r\n", "400"),
    CASE(GET("X:\r\nConnection: close\r\n") SECRET, "200"),
    CASE(POST("X:\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n") GET(""), "200 200"),
    CASE(POST("X:\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nY:\r\nZ: a\r\n\r\n") GET(""), "200 200"),
    CASE(POST("X:\r\nTransfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n") SECRET, "501"),
    CASE(POST("X:\r\nTransfer-Encoding: chunked\r\nY:\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("X:\r\nTransfer-Encoding:\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE("POST /echo HTTP/1.0\r\nX:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SECRET, "400"),
    CASE(POST("X:\r\nContent-Length: 3\r\n", "abc") GET(""), "200 200"),
    CASE(POST("X:\r\nContent-Length:\r\n", "") SECRET, "400"),
    CASE(POST("X:\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n") SECRET, "400"),
    CASE(POST("X:\r\nExpect: 200-ok\r\nContent-Length: 3\r\n", "abc") SECRET, "417"),
    CASE(GET("X:\r\n folded\r\n"), "400"),
    CASE(GET("X: \r\n\tfolded\r\n"), "400"),
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
    CASE("GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", "200"),
    CASE("GET / HTTP/1.1\r\nHost: %41b:\r\n\r\n", "200"),
    CASE("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: :80\r\n\r\n", "400"),
    CASE("GET http://:80/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: []\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: [a.g]\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: [::1]80\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: a]\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: a%4\r\n\r\n", "400"),
    CASE("GET / HTTP/1.1\r\nHost: a%4g\r\n\r\n", "400"),
    CASE("GET http://a:b/ HTTP/1.1\r\n" HOST "\r\n", "400"),
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

/* At most ten bytes. */
static void takes_ten(aco_http_request_t *request, void *arg)
{
    size_t n;
    char *text = aco_http_request_read_all(request, 10, &n);
    (void)arg;
    if (text)
        CHECK_EQ(aco_http_reply(request, 200, NULL, text, n), 0);
    else
        CHECK_EQ(errno, EFBIG);
}

/* All fields, and the body. */
static void tells_fields(aco_http_request_t *request, void *arg)
{
    char text[1024], *bytes = aco_http_request_read_all(request, 100, NULL);
    size_t n = 0;
    (void)arg;
    for (size_t i = 0; i < request->header_count; i++)
        n +=
            (size_t)snprintf(text + n, sizeof text - n, "[%s:%s]", request->headers[i].name, request->headers[i].value);
    n += (size_t)snprintf(text + n, sizeof text - n, "%s", bytes ? bytes : "no body");
    CHECK_EQ(aco_http_reply(request, 200, NULL, text, n), 0);
}

static const aco_http_route_t routes[] = {
    {"GET", "/", tells, "hello\n"},
    {NULL, "/fields", tells_fields, NULL},
    {"GET", "/secret", gives_secret, "secret"},
    {"GET", "/users/{id}", describes, NULL},
    {"GET", "/users/{id}/posts/*", describes, NULL},
    {"GET", "/any/*", describes, NULL},
    {"POST", "/echo", echoes, NULL},
    {"PUT", "/echo", echoes, NULL},
    {NULL, "/stream", streams, NULL},
    {"POST", "/ten", takes_ten, NULL},
    {NULL, "/nothing", says_nothing, NULL},
    {NULL, NULL, NULL, NULL},
};

static void *refuses(void *arg)
{
    stage_t stage = {0};
    (void)arg;
    stage.server.max_streams = -1; /* or one of them begins HTTP/2 */
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

/* ---- Fields with empty values ---- */

#define FIELDS(headers) "POST /fields HTTP/1.1\r\n" headers "\r\n"

/* Each field ends where its line ends, whatever is in it: [name:value] for each, then the body. */
static void *keeps_fields_apart(void *arg)
{
    static const char *const fields[][2] = {
        {FIELDS("A:\r\n" HOST), "[A:][Host:a]"},
        {FIELDS(HOST "A:\r\n"), "[Host:a][A:]"},
        {FIELDS("A:\r\nB:\r\nC:\r\n" HOST "D:\r\nE:\r\n"), "[A:][B:][C:][Host:a][D:][E:]"},
        {FIELDS("A: \r\nB:\t\r\nC: \t  \r\n" HOST), "[A:][B:][C:][Host:a]"},
        {FIELDS("A:\r\nHost: \t a \t \r\nB:  b c\t\r\n"), "[A:][Host:a][B:b c]"},
        {FIELDS(HOST "X:\r\nOrigin: http://evil\r\n"), "[Host:a][X:][Origin:http://evil]"},
        {FIELDS(HOST "X:\r\nX-Forwarded-For: 1.2.3.4\r\n"), "[Host:a][X:][X-Forwarded-For:1.2.3.4]"},
        {FIELDS(HOST "Connection:\r\nUpgrade:\r\nX: y\r\n"), "[Host:a][Connection:][Upgrade:][X:y]"},
        {FIELDS(HOST "X:\r\nContent-Length: 3\r\n") "abc", "[Host:a][X:][Content-Length:3]abc"},
        {FIELDS(HOST "X:\r\nTransfer-Encoding: chunked\r\n") "3\r\nabc\r\n0\r\nA:\r\nHost: b\r\n\r\n",
         "[Host:a][X:][Transfer-Encoding:chunked]abc"},
        {FIELDS(HOST "A:\r\n") FIELDS("B:\r\n" HOST "C:\r\n"), "[Host:a][A:]"},
    };
    stage_t stage = {0};
    (void)arg;
    start(&stage, routes);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        for (int how = IN_ONE_PIECE; how <= BYTE_BY_BYTE; how++) {
            talk(&stage, fields[i][0], strlen(fields[i][0]), how);
            CHECK(strncmp(body(), fields[i][1], strlen(fields[i][1])) == 0);
            CHECK_TEXT(fields[i][0], statuses(), strstr(fields[i][0] + 1, "POST") ? "200 200" : "200");
        }
    CHECK_HAS("[B:][Host:a][C:]"); /* of the last case's second request */
    stop(&stage);
    return NULL;
}

/* ---- What is answered ---- */

static void *answers(void *arg)
{
    enum { GOES_UP = 8 }; /* so many of these are refused */
    static const char *const with_dots[] = {".",  "..",  "a/.", "a/..", "./a", "../a",  "a/./b", "a/../b",
                                            ".a", "..a", "...", "a.",   "a..", "a../b", "a/..b", "a.b"};
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
    for (size_t i = 0; i < sizeof with_dots / sizeof *with_dots; i++) {
        char text[64];
        snprintf(text, sizeof text, "GET /any/%s HTTP/1.0\r\n\r\n", with_dots[i]);
        ask(&stage, text);
        CHECK_TEXT(with_dots[i], statuses(), i < GOES_UP ? "400" : "200");
    }
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

/* A chunked body that the handler does not read, and a request behind it. */
static void leave_body(const stage_t *stage, int chunks, const char *wanted)
{
    enum { AROUND = 256, CHUNK = 1000 + 7 };
    static const char head[] = "GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n";
    char *bytes = malloc(AROUND + (size_t)chunks * CHUNK);
    int n = sprintf(bytes, "%s", head);
    for (int i = 0; i < chunks; i++)
        n += sprintf(bytes + n, "3e8\r\n%0*d\r\n", 1000, i);
    n += sprintf(bytes + n, "0\r\n\r\n%s", GET(""));
    talk(stage, bytes, (size_t)n, IN_ONE_PIECE);
    CHECK_TEXT("a body that was left", statuses(), wanted);
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
    leave_body(&stage, 50, "200 200");
    leave_body(&stage, 200, "200"); /* too much to read for nothing */
    /* More than the limit: by length, and in chunks. */
    ask(&stage, POST("Content-Length: 1048577\r\n", ""));
    CHECK_TEXT("too long", statuses(), "413");
    CHECK_HAS("Connection: close");
    /* More than the handler wants. */
    for (int n = 10; n <= 12; n++) {
        char text[200];
        snprintf(text, sizeof text, "POST /ten HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n%.*s", n, n,
                 "0123456789ab");
        ask(&stage, text);
        CHECK_TEXT("all of it", statuses(), n > 10 ? "413" : "200");
        snprintf(text, sizeof text,
                 "POST /ten HTTP/1.1\r\n" HOST
                 "Transfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n%d\r\n%.*s\r\n0\r\n\r\n",
                 n - 8, n - 8, "89ab");
        ask(&stage, text);
        CHECK_TEXT("all of it in chunks", statuses(), n > 10 ? "413" : "200");
    }
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

/* The least and the most that options may be, and what is beyond. */
static void *limits_options(void *arg)
{
    static const struct {
        int max_head, max_headers, error;
    } bounds[] = {{64, 1, 0},      {1 << 20, 1000, 0}, {63, 0, EINVAL}, {-1, 0, EINVAL}, {(1 << 20) + 1, 0, EINVAL},
                  {0, -1, EINVAL}, {0, 1001, EINVAL}};
    const aco_http_server_options_t reserved = {.aco__reserved = {&arg}};
    aco_scope_t ended;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        stage_t stage = {.server = {.max_head = bounds[i].max_head, .max_headers = bounds[i].max_headers}};
        start(&stage, routes);
        if (bounds[i].error) {
            CHECK_EQ(aco_join(stage.task, NULL), 0);
            CHECK_EQ(stage.error, bounds[i].error);
        } else {
            stop(&stage);
        }
    }
    aco_scope_begin(&ended, ACO_FOREVER);
    aco_scope_cancel(&ended);
    FAILS_WITH(aco_http_serve(aco_io_listen("tcp4", "127.0.0.1", "0", NULL), &reserved), EINVAL);
    FAILS_WITH(aco_http_serve(aco_io_listen("tcp4", "127.0.0.1", "0", NULL), NULL), ECANCELED); /* all defaults */
    aco_scope_end(&ended);
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

/* A connection that a browser opens before it needs it: the time for a head begins with its first byte. */
static void *lets_clients_begin_late(void *arg)
{
    stage_t stage = {0};
    aco_scope_t scope;
    char byte;
    int fd;
    stage.server.head_time = ACO_MILLISECOND;
    stage.server.idle_time = -1;
    start(&stage, routes);
    fd = dial(&stage);
    aco_scope_begin(&scope, aco_after(50 * ACO_MILLISECOND));
    FAILS_WITH((int)aco_io_read(fd, &byte, 1), ETIMEDOUT); /* it is still there */
    aco_scope_end(&scope);
    aco_io_write_all(fd, GET("Connection: close\r\n"), sizeof GET("Connection: close\r\n") - 1);
    read_to_end(fd);
    CHECK_TEXT("late", statuses(), "200");
    aco_io_close(fd);
    stop(&stage);
    return arg;
}

static void notes_path(const aco_http_request_t *request, void *paths)
{
    strcat(paths, request->path);
}

/* With one connection at most, a second one is served when the first has ended. */
static void *limits_connections(void *arg)
{
    enum { ROUNDS = 10 }; /* enough to accept and serve the second one, if nothing holds it back */
    static const char request[] = "GET /any/1 HTTP/1.1\r\n" HOST "\r\n";
    static const char other[] = "GET /any/2 HTTP/1.1\r\n" HOST "\r\n";
    stage_t stage = {0};
    char paths[(ROUNDS + 2) * sizeof "/any/1"] = "", wanted[sizeof paths] = "";
    int first, second;
    (void)arg;
    stage.server.max_connections = 1;
    stage.server.log = notes_path;
    stage.server.log_arg = paths;
    start(&stage, routes);
    first = dial(&stage);
    second = dial(&stage);
    aco_io_write_all(second, other, sizeof other - 1);
    for (int i = 0; i < ROUNDS; i++) {
        aco_io_write_all(first, request, sizeof request - 1);
        CHECK(aco_io_read(first, got, 1000) > 0);
        strcat(wanted, "/any/1");
    }
    aco_io_close(first);
    aco_io_shutdown(second, SHUT_WR);
    read_to_end(second);
    CHECK_TEXT("the second connection", statuses(), "200");
    CHECK_TEXT("in turn", paths, strcat(wanted, "/any/2"));
    aco_io_close(second);
    stop(&stage);
    return NULL;
}

/* A peer that takes nothing. */
static void floods(aco_http_request_t *request, void *ended)
{
    static const char bytes[1 << 16];
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, -1), 0);
    while (aco_http_reply_write(request, bytes, sizeof bytes) == 0)
        ;
    CHECK_EQ(errno, ETIMEDOUT);
    FAILS_WITH(aco_http_reply_write(request, bytes, sizeof bytes), EPIPE);
    FAILS_WITH(aco_http_reply_flush(request), EPIPE);
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

/* ---- Connections that fail ---- */

typedef struct told {
    int n, kind, error, has_fd, has_request;
    char message[128];
} told_t;

static void notes_failure(const aco_http_failure_t *failure, void *arg)
{
    told_t *told = arg;
    aco_task_yield(); /* it may wait */
    told->n++;
    told->kind = failure->kind;
    told->error = failure->error;
    told->has_fd = failure->fd >= 0;
    told->has_request = failure->request && strcmp(failure->request->path, "/") == 0;
    snprintf(told->message, sizeof told->message, "%s", failure->message);
}

static void floods_until_error(aco_http_request_t *request, void *bytes)
{
    CHECK_EQ(aco_http_connection_error(request), 0);
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, -1), 0);
    while (aco_http_reply_write(request, bytes, 1 << 16) == 0)
        ;
    CHECK(aco_http_connection_error(request) == EPIPE || aco_http_connection_error(request) == ECONNRESET);
}

static aco_stream_t *refuses_all(int fd, void *arg)
{
    (void)arg;
    aco_io_close(fd);
    CHECK(aco_io_close(-1) != 0); /* which has a message */
    return NULL;
}

/* One client does this and leaves; the failure that is told. */
static void fail_by(stage_t *stage, const char *bytes, told_t *told, int kind)
{
    uint64_t counts[ACO_HTTP_FAILURES] = {0};
    int fd;
    told->n = 0;
    stage->server.failures = counts;
    stage->server.failed_arg = told;
    start(stage, stage->server.routes);
    fd = dial(stage);
    aco_io_write_all(fd, bytes, strlen(bytes));
    aco_io_close(fd);
    while (!told->n)
        aco_sleep(ACO_MILLISECOND);
    stop(stage);
    for (int i = 0; i < ACO_HTTP_FAILURES; i++)
        CHECK_EQ(counts[i], i == kind);
    CHECK_EQ(told->n, 1);
    CHECK_EQ(told->kind, kind);
}

static void *tells_of_failures(void *arg)
{
    static char bytes[1 << 16];
    const aco_http_route_t flooding[] = {
        {"GET", "/", floods_until_error, bytes}, {"POST", "/", echoes, NULL}, {NULL, NULL, NULL, NULL}};
    stage_t stage = {0};
    told_t told = {0};
    uint64_t counts[ACO_HTTP_FAILURES] = {0};
    int fd;
    stage.server.routes = flooding;
    stage.server.failed = notes_failure;
    fail_by(&stage, "GET / HTT", &told, ACO_HTTP_LEFT);
    CHECK(told.error == ECONNRESET && told.has_fd && !told.has_request);
    fail_by(&stage, GET(""), &told, ACO_HTTP_LEFT);
    CHECK(told.has_fd && told.has_request);
    fail_by(&stage, "POST / HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc", &told, ACO_HTTP_LEFT);
    CHECK(told.error == ECONNRESET && told.has_request);
    stage.server.open = refuses_all;
    fail_by(&stage, "x", &told, ACO_HTTP_HANDSHAKE);
    CHECK(told.error == EBADF && !told.has_fd && !told.has_request);
    CHECK_TEXT("the message", told.message, "aco_io_close: descriptor -1: Bad file descriptor");
    stage.server.open = NULL;
    /* A client that has got its reply and leaves is none. */
    told.n = 0;
    stage.server.failures = counts;
    start(&stage, routes);
    fd = dial(&stage);
    aco_io_write_all(fd, GET(""), sizeof GET("") - 1);
    CHECK(aco_io_read(fd, got, sizeof got) > 0);
    aco_io_close(fd);
    stop(&stage);
    CHECK_EQ(told.n, 0);
    CHECK_EQ(counts[ACO_HTTP_LEFT], 0);
    return arg;
}

/* By default stderr has what is out of the ordinary. */
static void *prints_failures(void *arg)
{
    uint64_t counts[ACO_HTTP_FAILURES] = {0};
    stage_t stage = {0};
    stage.server.failures = counts;
    capture();
    for (int i = 0; i < 2; i++) {
        int fd;
        stage.server.open = i ? refuses_all : NULL;
        start(&stage, routes);
        fd = dial(&stage);
        aco_io_write_all(fd, "GET", 3);
        aco_io_close(fd);
        while (counts[i ? ACO_HTTP_HANDSHAKE : ACO_HTTP_LEFT] == 0)
            aco_sleep(ACO_MILLISECOND);
        stop(&stage);
    }
    CHECK_TEXT("stderr", release(),
               "acorn: an HTTP connection failed: aco_io_close: descriptor -1: Bad file descriptor\n");
    return arg;
}

/* ---- Another stream ---- */

static void flip(char *p, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++)
        p[i] ^= 0x55;
}

static ssize_t mask_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    ssize_t came = aco_io_read_at(stream->fd, p, n, location);
    flip(p, came);
    return came;
}

static ssize_t mask_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    char part[100];
    n = n < sizeof part ? n : sizeof part;
    memcpy(part, p, n);
    flip(part, (ssize_t)n);
    return aco_io_write_at(stream->fd, part, n, location);
}

static int masks;

static void mask_close(aco_stream_t *stream)
{
    masks--;
    aco_io_close(stream->fd);
    free(stream);
}

static aco_stream_t *mask_open(int fd, void *arg)
{
    static const aco_stream_functions_t functions = {.read = mask_read, .write = mask_write, .close = mask_close};
    aco_stream_t *mask = malloc(sizeof *mask);
    char hello[2];
    (void)arg;
    mask->functions = &functions;
    mask->fd = fd;
    if (aco_io_read_exactly(fd, hello, 2) != 2 || memcmp(hello, "!!", 2) != 0) {
        aco_io_close(fd);
        free(mask);
        return NULL;
    }
    masks++;
    return mask;
}

static void *uses_streams(void *arg)
{
    static const char request[] = POST("Content-Length: 5000\r\n", "");
    stage_t stage = {0};
    char text[sizeof request + 5000 + sizeof GET("") + 1];
    size_t n = 2;
    int fd;
    (void)arg;
    stage.server.open = mask_open;
    start(&stage, routes);
    memset(text, '!', n);
    memcpy(text + n, request, sizeof request - 1);
    n += sizeof request - 1;
    memset(text + n, 'x', 5000);
    n += 5000;
    memcpy(text + n, GET(""), sizeof GET("") - 1);
    n += sizeof GET("") - 1;
    flip(text + 2, (ssize_t)n - 2);
    talk(&stage, text, n, IN_ONE_PIECE);
    flip(got, (ssize_t)got_n);
    CHECK_TEXT("by a stream", statuses(), "200 200");
    talk(&stage, "??", 2, IN_ONE_PIECE);
    CHECK_EQ(got_n, 0);
    stop(&stage);
    CHECK_EQ(masks, 0);
    /* A peer that does not even begin: the server ends without it, and it has a limit. */
    stage.server.drain_time = stage.server.head_time = -1;
    stage.server.drain_idle_time = ACO_MILLISECOND;
    start(&stage, routes);
    fd = dial(&stage);
    aco_task_yield();
    stop(&stage);
    aco_io_close(fd);
    stage.server.head_time = 10 * ACO_MILLISECOND;
    start(&stage, routes);
    fd = dial(&stage);
    aco_io_write_all(fd, "!", 1); /* half of it */
    read_to_end(fd);
    CHECK_EQ(got_n, 0);
    aco_io_close(fd);
    stop(&stage);
    CHECK_EQ(masks, 0);
    return NULL;
}

/* ---- The times that zeros stand for: a stream sees them as deadlines ---- */

static int64_t connected; /* when */
static char limits[256]; /* "read 10, write 30, " */

/* Which of the header's default times is the limit here; 0: none. Repeated ones stand there once. */
static void note_limit(const char *what)
{
    static const int seconds[] = {10, 30, 60};
    int64_t deadline = aco_deadline(), now = aco_now();
    char text[32];
    size_t n, limits_n = strlen(limits);
    int limit = 0;
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
        if (deadline >= connected + seconds[i] * ACO_SECOND && deadline <= now + seconds[i] * ACO_SECOND)
            limit = seconds[i];
    n = (size_t)snprintf(text, sizeof text, "%s %d, ", what, limit);
    if ((limits_n < n || strcmp(limits + limits_n - n, text) != 0) && limits_n + n < sizeof limits)
        strcpy(limits + limits_n, text);
}

static ssize_t noting_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    note_limit("read");
    return aco_io_read_at(stream->fd, p, n < 10 ? n : 10, location); /* so that heads and bodies need several */
}

static ssize_t noting_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    note_limit("write");
    return aco_io_write_at(stream->fd, p, n, location);
}

static void noting_close(aco_stream_t *stream)
{
    aco_io_close(stream->fd);
}

static aco_stream_t *noting_open(int fd, void *arg)
{
    static const aco_stream_functions_t functions = {.read = noting_read, .write = noting_write, .close = noting_close};
    aco_stream_t *stream = arg;
    note_limit("open");
    stream->functions = &functions;
    stream->fd = fd;
    return stream;
}

static void *limits_times_by_default(void *arg)
{
    stage_t stage = {0};
    aco_stream_t stream;
    (void)arg;
    stage.server.open = noting_open;
    stage.server.open_arg = &stream;
    start(&stage, routes);
    connected = aco_now();
    ask(&stage, POST("Content-Length: 40\r\n", "0123456789012345678901234567890123456789"));
    CHECK_TEXT("by a stream", statuses(), "200");
    /* The request's first byte, the head, the body, the reply, and no further request. */
    CHECK_TEXT("limits", limits, "open 10, read 60, read 10, read 60, write 30, read 60, ");
    stop(&stage);
    return NULL;
}

int main(void)
{
    static const aco_function_t tests[] = {refuses,
                                           keeps_fields_apart,
                                           answers,
                                           passes_bodies,
                                           continues,
                                           limits_heads,
                                           limits_options,
                                           limits_times,
                                           lets_clients_begin_late,
                                           limits_connections,
                                           limits_writing,
                                           tells_of_failures,
                                           prints_failures,
                                           uses_streams,
                                           limits_times_by_default};
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_requests");
}
