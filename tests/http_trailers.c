/* Trailers of HTTP/1.1, both ways; what may be one; what clients make of others' (include/aco/http.h). With a URL as
 * argument it tells what trailers that server sends, and what it says of the request's; with "serve" it serves others
 * (tests/io/node_peers.py). */
#define _GNU_SOURCE
#include "http_tests.h"

static int read_error; /* of the last request's body */

/* Sends back what comes, as it comes; then what the trailer was. */
static void echoes_trailer(aco_http_request_t *request, void *arg)
{
    char part[100];
    ssize_t n;
    const char *trailer;
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, "text/plain", -1), 0);
    CHECK_EQ(aco_http_reply_trailer(request, "X-Early", "e"), 0);
    while ((n = aco_http_request_read(request, part, sizeof part)) > 0)
        CHECK_EQ(aco_http_reply_write(request, part, (size_t)n), 0);
    read_error = n < 0 ? errno : 0;
    if (read_error)
        aco_http_reply_abort(request);
    CHECK(!aco_http_request_trailer(request, "Cookie"));
    trailer = aco_http_request_trailer(request, "x-sum");
    if (trailer)
        CHECK_EQ(aco_http_reply_trailer(request, "X-Sum", trailer), 0);
}

static const aco_http_route_t routes[] = {{"POST", "/", echoes_trailer, NULL}, {NULL, NULL, NULL, NULL}};

static ssize_t gives_once(void *arg, void *p, size_t n)
{
    int *calls = arg;
    (void)n;
    memcpy(p, "hello", 5);
    return (*calls)++ ? 0 : 5;
}

/* The status, or 0 and errno; the body is in `got`. The response must be ended. */
static aco_http_response_t *post(aco_http_client_t *client, const char *url, const aco_http_header_t *trailer)
{
    int calls = 0;
    const aco_http_call_t call = {.url = url,
                                  .method = "POST",
                                  .length = -1,
                                  .read_body = gives_once,
                                  .read_arg = &calls,
                                  .trailers = trailer,
                                  .trailer_count = trailer != NULL};
    aco_http_response_t *response = aco_http_call(client, &call);
    ssize_t n = 1;
    for (got_n = 0; response && n > 0; got_n += n > 0 ? (size_t)n : 0)
        n = aco_http_response_read(response, got + got_n, 100);
    got[got_n] = 0;
    CHECK(!response || n == 0);
    return response;
}

static const char *trailer_of(const aco_http_response_t *response, const char *name)
{
    const char *value = aco_http_response_trailer(response, name);
    return value ? value : "none";
}

static void *come_and_go(void *arg)
{
    static const aco_http_header_t sum = {"X-Sum", "17"};
    static const char *const forbidden[] = {"Content-Length", "Host",   "Authorization", "Proxy-Authorization",
                                            "Cookie",         "Expect", "Trailer",       "X Y"};
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_http_response_t *response;
    stage_t stage = {0};
    char url[64];
    start(&stage, routes);
    snprintf(url, sizeof url, "http://127.0.0.1:%s/", stage.port);
    response = post(client, url, &sum);
    CHECK(response != NULL);
    CHECK_TEXT("the body", got, "hello");
    CHECK_TEXT("the sum", trailer_of(response, "x-sum"), "17");
    CHECK_TEXT("the other", trailer_of(response, "X-EARLY"), "e");
    CHECK_TEXT("a header", trailer_of(response, "Date"), "none");
    aco_http_response_end(response);
    response = post(client, url, NULL); /* by the same connection: nothing is left */
    CHECK(response != NULL);
    CHECK_TEXT("no sum", trailer_of(response, "X-Sum"), "none");
    aco_http_response_end(response);
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        const aco_http_header_t wrong = {forbidden[i], "1"};
        CHECK(!post(client, url, &wrong) && errno == EINVAL);
    }
    aco_http_client_destroy(client);
    stop(&stage);
    return arg;
}

/* ---- What others send ---- */

typedef struct case_s {
    const char *text; /* behind the body */
    const char *name, *wanted; /* the trailer */
    int error; /* of reading; 0: it succeeds */
} case_t;

typedef struct script {
    int listener, how;
    const char *text;
} script_t;

static void *sends(void *arg)
{
    static const char head[] =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n";
    const script_t *script = arg;
    const size_t n = strlen(script->text);
    char byte[4];
    int fd = aco_io_accept(script->listener), ends = 0;
    while (ends < 4) {
        CHECK_EQ(aco_io_read(fd, byte, 1), 1);
        ends = *byte == "\r\n\r\n"[ends] ? ends + 1 : *byte == '\r';
    }
    CHECK(aco_io_write_all(fd, head, sizeof head - 1) >= 0);
    for (size_t i = 0; i < n; i += script->how == BYTE_BY_BYTE ? 1 : n) {
        if (aco_io_write_all(fd, script->text + i, script->how == BYTE_BY_BYTE ? 1 : n) < 0)
            break;
        aco_task_yield();
    }
    CHECK_EQ(aco_io_close(fd), 0);
    return NULL;
}

static void takes(script_t *script, const case_t *c)
{
    char address[ACO_IO_ADDRESS_SIZE], url[ACO_IO_ADDRESS_SIZE + 10], part[8];
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_http_response_t *response;
    aco_t *task = aco_spawn(sends, script, NULL);
    ssize_t n;
    script->text = c->text;
    CHECK_EQ(aco_io_local_address(script->listener, address, sizeof address), 0);
    snprintf(url, sizeof url, "http://%s/", address);
    response = aco_http_get(client, url);
    CHECK(response != NULL);
    do
        n = aco_http_response_read(response, part, sizeof part);
    while (n > 0);
    CHECK_EQ(n, c->error ? -1 : 0);
    if (c->error)
        CHECK_EQ(errno, c->error);
    CHECK_TEXT(c->name, trailer_of(response, c->name), c->wanted);
    aco_http_response_end(response);
    aco_http_client_destroy(client);
    CHECK_EQ(aco_join(task, NULL), 0);
}

static void *takes_others(void *arg)
{
    static char many[40000] = "0\r\n";
    static const case_t cases[] = {
        {"0\r\nX-Sum: 1\r\n\r\n", "x-sum", "1", 0},
        {"0\r\nX-Sum:  1 2\t \r\nX-Sum: 3\r\n\r\n", "X-Sum", "1 2", 0},
        {"0\r\nX-Empty:\r\nX-Sum:1\r\n\r\n", "X-Empty", "", 0},
        {"0\r\nX-Empty:\r\nX-Sum:1\r\n\r\n", "X-Sum", "1", 0},
        {"0\r\n\r\n", "X-Sum", "none", 0},
        {"0\r\nSet-Cookie: a=b\r\n\r\n", "Set-Cookie", "none", 0}, /* it comes too late */
        {"0\r\nWWW-Authenticate: Basic\r\n\r\n", "WWW-Authenticate", "none", 0},
        {"0\r\nX-Sum: 1\r\n", "X-Sum", "none", ECONNRESET},
        {"0\r\nX-Sum: 1", "X-Sum", "none", ECONNRESET},
        {"0\r\nX-Sum : 1\r\n\r\n", "X-Sum", "none", EBADMSG},
        {"0\r\nX-Sum: \1\r\n\r\n", "X-Sum", "none", EBADMSG},
        {many, "X-Sum", "none", EBADMSG},
    };
    script_t script = {.listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL)};
    for (size_t n = 3; n < sizeof many - 20; n += strlen(many + n))
        snprintf(many + n, sizeof many - n, "X-Sum: %d\r\n", 1);
    for (script.how = IN_ONE_PIECE; script.how <= BYTE_BY_BYTE; script.how++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            takes(&script, &cases[i]);
    CHECK_EQ(aco_io_close(script.listener), 0);
    return arg;
}

/* A request's trailers have a limit of their own, since the one of chunks grows with the body. */
static void *are_bounded(void *arg)
{
    static char text[100000];
    stage_t stage = {0};
    size_t n;
    start(&stage, routes);
    n = (size_t)snprintf(text, sizeof text,
                         "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n%08192d\r\n0\r\n", 7);
    while (n < sizeof text - 20)
        n += (size_t)snprintf(text + n, sizeof text - n, "X-Sum: 1\r\n");
    snprintf(text + n, sizeof text - n, "\r\n");
    (void)ask(&stage, text);
    CHECK_EQ(read_error, EFBIG);
    stop(&stage);
    return arg;
}

static void *asks_others(void *url)
{
    static const aco_http_header_t sum = {"X-Sum", "17"};
    aco_http_client_t *client = aco_http_client_new(NULL);
    for (int i = 0; i < 2; i++) {
        aco_http_response_t *response = post(client, url, &sum);
        CHECK(response != NULL);
        printf("%s|%s|%s\n", got, trailer_of(response, "X-Sum"), trailer_of(response, "X-Got"));
        aco_http_response_end(response);
    }
    aco_http_client_destroy(client);
    return NULL;
}

int main(int argc, char **argv)
{
    static const aco_function_t tests[] = {come_and_go, takes_others, are_bounded};
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        return serve_others(routes, NULL);
    if (argc > 1) {
        run_task(asks_others, argv[1]);
        return check_result("http_trailers, with others");
    }
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_trailers");
}
