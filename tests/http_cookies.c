/* Cookies (include/aco/http_cookies.h) and server-sent events (include/aco/event_stream.h) of an HTTP server.
 * With arguments it is a server of io/http_curl.py. */
#define _GNU_SOURCE
#include <aco/event_stream.h>
#include <aco/http_cookies.h>
#include "http_tests.h"

/* ---- Cookies ---- */

static void tells_cookie(aco_http_request_t *request, void *arg)
{
    const char *name = aco_http_request_query(request, "name"), *value = aco_http_request_cookie(request, name);
    (void)arg;
    CHECK(value || errno == 0);
    tells(request, (void *)(uintptr_t)(value ? value : "none"));
}

static void *reads_cookies(void *arg)
{
    static const aco_http_route_t routes[] = {{"GET", "/", tells_cookie, NULL}, {NULL, NULL, NULL, NULL}};
    static const struct {
        const char *name, *headers, *value;
    } cases[] = {
        {"a", "", "none"},
        {"a", "Cookie: a=1\r\n", "1"},
        {"a", "cookie: b=2; a=1; c=3\r\n", "1"},
        {"a", "Cookie: a=\r\n", ""},
        {"a", "Cookie: a=1; a=2\r\n", "1"},
        {"a", "Cookie: b=1\r\nCookie: a=2\r\n", "2"},
        {"a", "Cookie: A=1\r\n", "none"},
        {"a", "Cookie: aa=1;a=2\r\n", "2"},
        {"a", "Cookie: a=x=y==\r\n", "x=y=="},
        {"a", "Cookie:  ;; a=1 \t;\r\n", "1"},
        {"a", "Cookie: a=\"q\"\r\n", "\"q\""},
        {"a", "Cookie: a=q\"\r\n", "none"},
        {"a", "Cookie: a=\"q;r\"; b=2\r\n", "none"},
        {"a", "Cookie: a=1 2; a=3\r\n", "3"},
        {"a", "Cookie: a=1,2; a=4\r\n", "4"},
        {"a", "Cookie: a=\\; a=5\r\n", "5"},
        {"a", "Cookie: a=\xc3\xa4; a=6\r\n", "6"},
        {"a", "Cookie: a\r\n", "none"},
        {"a", "Cookie: a ; a =2\r\n", "none"},
        {"a%20", "Cookie: a =2\r\n", "none"},
        {"", "Cookie: =2\r\n", "none"},
        {"__Host-a", "Cookie: __Host-a=1\r\n", "1"},
    };
    stage_t stage = {0};
    char text[512];
    start(&stage, routes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(text, sizeof text, "GET /?name=%s HTTP/1.1\r\n" HOST "%s\r\n", cases[i].name, cases[i].headers);
        ask(&stage, text);
        CHECK_TEXT(text, body(), cases[i].value);
    }
    stop(&stage);
    return arg;
}

static char long_value[4100];

static void sets_cookies(aco_http_request_t *request, void *arg)
{
    static const aco_http_cookie_t wrong[] = {
        {.name = NULL, .value = "1"},
        {.name = "", .value = "1"},
        {.name = "a b", .value = "1"},
        {.name = "a=", .value = "1"},
        {.name = "a", .value = NULL},
        {.name = "a", .value = "1;Secure"},
        {.name = "a", .value = "1 2"},
        {.name = "a", .value = "1\r\nX: y"},
        {.name = "a", .value = "\xc3\xa4"},
        {.name = "a", .value = "\""},
        {.name = "a", .value = long_value},
        {.name = "a", .value = "1", .path = "a"},
        {.name = "a", .value = "1", .path = "/;HttpOnly"},
        {.name = "a", .value = "1", .path = "/\r\n"},
        {.name = "a", .value = "1", .domain = ""},
        {.name = "a", .value = "1", .domain = ".a.test"},
        {.name = "a", .value = "1", .domain = "a..test"},
        {.name = "a", .value = "1", .domain = "a.test; Path=/"},
        {.name = "a", .value = "1", .same_site = 4},
        {.name = "a", .value = "1", .same_site = -1},
        {.name = "a", .value = "1", .same_site = ACO_HTTP_SAME_SITE_NONE},
        {.name = "__Secure-a", .value = "1"},
        {.name = "__host-a", .value = "1", .path = "/"},
        {.name = "__Host-a", .value = "1", .secure = 1},
        {.name = "__Host-a", .value = "1", .secure = 1, .path = "/a"},
        {.name = "__Host-a", .value = "1", .secure = 1, .path = "/", .domain = "a.test"},
        {.name = "a", .value = "1", .aco__reserved = {long_value, NULL}},
    };
    static const aco_http_cookie_t right[] = {
        {.name = "a", .value = "1"},
        {.name = "b", .value = "\"q\"", .path = "/x", .domain = "a.test", .max_age = 60},
        {.name = "c", .value = "", .max_age = -1, .same_site = ACO_HTTP_SAME_SITE_STRICT},
        {.name = "__Host-d", .value = "x=y", .path = "/", .secure = 1, .http_only = 1,
         .same_site = ACO_HTTP_SAME_SITE_NONE},
    };
    (void)arg;
    memset(long_value, 'x', sizeof long_value - 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        FAILS_WITH(aco_http_reply_cookie(request, &wrong[i]), EINVAL);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        CHECK_EQ(aco_http_reply_cookie(request, &right[i]), 0);
    tells(request, "set");
    FAILS_WITH(aco_http_reply_cookie(request, &right[0]), EBUSY);
}

static void *sets(void *arg)
{
    static const aco_http_route_t routes[] = {{"GET", "/", sets_cookies, NULL}, {NULL, NULL, NULL, NULL}};
    stage_t stage = {0};
    start(&stage, routes);
    ask(&stage, GET(""));
    CHECK_TEXT("all", body(), "set");
    CHECK_HAS("Set-Cookie: a=1\r\n");
    CHECK_HAS("Set-Cookie: b=\"q\"; Path=/x; Domain=a.test; Max-Age=60\r\n");
    CHECK_HAS("Set-Cookie: c=; Max-Age=0; SameSite=Strict\r\n");
    CHECK_HAS("Set-Cookie: __Host-d=x=y; Path=/; SameSite=None; Secure; HttpOnly\r\n");
    stop(&stage);
    return arg;
}

/* ---- Events ---- */

static void sends_events(aco_http_request_t *request, void *arg)
{
    static char large[2000];
    const aco_event_stream_event_t wrong[] = {{.id = "a\nb"}, {.type = "a\rb"}, {.retry = -1}};
    const aco_event_stream_event_t right[] = {
        {.data = "one", .length = 3},
        {.id = "7", .type = "news", .data = "a\nb\r\nc\rd\n", .length = 9, .retry = 2 * ACO_SECOND},
        {.data = ""},
        {.id = ""},
        {.data = large, .length = sizeof large},
    };
    (void)arg;
    memset(large, 'x', sizeof large);
    FAILS_WITH(aco_event_stream_send(request, &right[0]), EINVAL);
    FAILS_WITH(aco_event_stream_ping(request), EINVAL);
    CHECK_EQ(aco_event_stream_begin(request), 0);
    FAILS_WITH(aco_event_stream_begin(request), EBUSY);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        FAILS_WITH(aco_event_stream_send(request, &wrong[i]), EINVAL);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        CHECK_EQ(aco_event_stream_send(request, &right[i]), 0);
    CHECK_EQ(aco_event_stream_ping(request), 0);
}

/* Sends until the client is gone. */
static void sends_for_ever(aco_http_request_t *request, void *arg)
{
    const aco_event_stream_event_t event = {.data = "x", .length = 1};
    const char *last = aco_event_stream_last_id(request);
    int *has_ended = arg;
    CHECK(last && strcmp(last, "41") == 0);
    CHECK_EQ(aco_event_stream_begin(request), 0);
    while (aco_event_stream_send(request, &event) == 0)
        aco_task_yield();
    CHECK(errno == EPIPE || errno == ECONNRESET);
    *has_ended = 1;
}

/* What comes next. */
static const char *read_some(int fd)
{
    ssize_t n = aco_io_read(fd, got, sizeof got - 1);
    CHECK(n > 0);
    got[n > 0 ? n : 0] = 0;
    return n > 0 ? got : "data: x\n\n";
}

static void *events(void *arg)
{
    static int has_ended;
    static const aco_http_route_t routes[] = {{"GET", "/", sends_events, NULL},
                                              {"GET", "/ever", sends_for_ever, &has_ended},
                                              {NULL, NULL, NULL, NULL}};
    static const char request[] = "GET /ever HTTP/1.1\r\n" HOST "Last-Event-ID: 41\r\n\r\n";
    stage_t stage = {0};
    int fd;
    start(&stage, routes);
    ask(&stage, "GET / HTTP/1.0\r\n\r\n");
    CHECK_HAS("Content-Type: text/event-stream\r\n");
    CHECK_HAS("Cache-Control: no-store\r\n");
    CHECK(strstr(body(), "data: one\n\nid: 7\nevent: news\nretry: 2000\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"
                         "data: \n\nid: \n\ndata: xxx") == body());
    CHECK_TEXT("the end", got + got_n - 9, "xxxx\n\n:\n\n");
    CHECK_EQ(strspn(strstr(got, "data: xxx") + 6, "x"), 2000);
    ask(&stage, GET(""));
    CHECK_HAS("\r\n\r\nB\r\ndata: one\n\n\r\n"); /* an event is a chunk */
    fd = dial(&stage);
    CHECK(aco_io_write_all(fd, request, sizeof request - 1) > 0);
    while (!strstr(read_some(fd), "data: x\n\n"))
        ;
    aco_io_close(fd);
    while (!has_ended)
        aco_sleep(ACO_MILLISECOND);
    stop(&stage);
    return arg;
}

int main(int argc, char **argv)
{
    static const aco_http_route_t for_others[] = {{"GET", "/set", sets_cookies, NULL},
                                                  {"GET", "/cookie", tells_cookie, NULL},
                                                  {"GET", "/events", sends_events, NULL},
                                                  {NULL, NULL, NULL, NULL}};
    static const aco_function_t tests[] = {reads_cookies, sets, events};
    (void)argv;
    if (argc > 1)
        return serve_others(for_others, NULL);
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_cookies");
}
