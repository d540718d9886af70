/* What stands around an HTTP server's handlers (include/aco/http.h): middleware, groups of routes. */
#define _GNU_SOURCE
#include "http_tests.h"

/* ---- Middleware ---- */

static char trace[256]; /* what was called, in order */

static void note(const char *text)
{
    strncat(trace, text, sizeof trace - strlen(trace) - 1);
}

static void surrounds(aco_http_request_t *request, void *name)
{
    char after[8];
    note(name);
    CHECK_EQ(aco_http_next(request), 0);
    snprintf(after, sizeof after, "%s%d", (const char *)name, request->status);
    note(after);
}

/* Tells the functions behind it who asks, or refuses. */
static void authenticates(aco_http_request_t *request, void *arg)
{
    (void)arg;
    request->user = (void *)(uintptr_t)aco_http_request_header(request, "X-User");
    if (request->user)
        CHECK_EQ(aco_http_next(request), 0);
    else
        CHECK_EQ(aco_http_reply(request, 403, NULL, NULL, 0), 0);
}

static void tells_route(aco_http_request_t *request, void *arg)
{
    char text[100];
    const char *id = aco_http_request_param(request, "id");
    note("h");
    CHECK(request->route->arg == arg);
    FAILS_WITH(aco_http_next(request), EINVAL);
    snprintf(text, sizeof text, "%s %s %s", request->route->path, id ? id : "-",
             request->user ? (const char *)request->user : "-");
    tells(request, text);
}

static void fails_once(aco_http_request_t *request, void *arg)
{
    int *calls = arg;
    note("f");
    if ((*calls)++)
        tells(request, "the second time");
}

static void tries_again(aco_http_request_t *request, void *arg)
{
    (void)arg;
    for (int i = 0; i < 2 && !request->status; i++)
        CHECK_EQ(aco_http_next(request), 0);
}

static void replies_itself(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_next(request), 0);
    if (!request->status)
        CHECK_EQ(aco_http_reply(request, 202, NULL, NULL, 0), 0);
}

/* Looks at what the server's log is told. */
static void logs_route(const aco_http_request_t *request, void *arg)
{
    (void)arg;
    note(request->route ? request->route->path : "none");
}

static const char *trace_of(const stage_t *stage, const char *request)
{
    trace[0] = 0;
    ask(stage, request);
    return trace;
}

static void *middleware(void *arg)
{
    static int calls;
    static const aco_http_middleware_t around[] = {{surrounds, "a"}, {surrounds, "b"}, {NULL, NULL}},
                                       admins[] = {{authenticates, NULL}, {surrounds, "c"}, {NULL, NULL}},
                                       retries[] = {{tries_again, NULL}, {NULL, NULL}},
                                       last[] = {{replies_itself, NULL}, {NULL, NULL}};
    static const aco_http_route_t routes[] = {{"GET", "/users/{id}", tells_route, "arg"},
                                              {"POST", "/users/{id}/x", says_nothing, NULL},
                                              {NULL, NULL, NULL, NULL}},
                                  admin[] = {{"GET", "/users/{id}/x", tells_route, "x"},
                                             {"GET", "/admin/*", tells_route, NULL},
                                             {"GET", "/users/{id}", says_nothing, NULL},
                                             {NULL, NULL, NULL, NULL}},
                                  retried[] = {{"GET", "/retry", fails_once, &calls}, {NULL, NULL, NULL, NULL}},
                                  quiet[] = {{"GET", "/quiet", says_nothing, NULL}, {NULL, NULL, NULL, NULL}},
                                  wrong[] = {{"GET", "/{a", says_nothing, NULL}, {NULL, NULL, NULL, NULL}};
    static const aco_http_group_t groups[] = {{admin, admins}, {retried, retries}, {quiet, last}, {NULL, NULL}},
                                  wrong_groups[] = {{wrong, NULL}, {NULL, NULL}};
    stage_t stage = {0};
    (void)arg;
    stage.server.middleware = around;
    stage.server.groups = groups;
    stage.server.log = logs_route;
    start(&stage, routes);
    CHECK_TEXT("in order", trace_of(&stage, "GET /users/7 HTTP/1.1\r\n" HOST "\r\n"), "abhb200a200/users/{id}");
    CHECK_TEXT("the pattern", body(), "/users/{id} 7 -");
    CHECK_TEXT("a group's", trace_of(&stage, "GET /admin/a HTTP/1.1\r\n" HOST "X-User: me\r\n\r\n"),
               "abchc200b200a200/admin/*");
    CHECK_TEXT("and who asks", body(), "/admin/* - me");
    CHECK_TEXT("refused", trace_of(&stage, "GET /admin/a HTTP/1.1\r\n" HOST "\r\n"), "abb403a403/admin/*");
    CHECK_TEXT("the group's path", trace_of(&stage, "GET /users/7/x HTTP/1.1\r\n" HOST "X-User: me\r\n\r\n"),
               "abchc200b200a200/users/{id}/x");
    CHECK_TEXT("no route", trace_of(&stage, "GET /none HTTP/1.1\r\n" HOST "\r\n"), "abb404a404none");
    CHECK_TEXT("no method", trace_of(&stage, "PUT /users/7/x HTTP/1.1\r\n" HOST "\r\n"), "abb405a405none");
    CHECK_HAS("Allow: POST, GET, HEAD\r\n");
    CHECK_TEXT("again", trace_of(&stage, "GET /retry HTTP/1.1\r\n" HOST "\r\n"), "abffb200a200/retry");
    CHECK_TEXT("a reply for the handler", trace_of(&stage, "GET /quiet HTTP/1.1\r\n" HOST "\r\n"), "abb202a202/quiet");
    CHECK_TEXT("a head that is wrong", trace_of(&stage, "GET / HTTP/1.1\r\n\r\n"), "none");
    CHECK_TEXT("two at once",
               trace_of(&stage, "GET /users/1 HTTP/1.1\r\n" HOST "\r\nGET /users/2 HTTP/1.1\r\n" HOST "\r\n"),
               "abhb200a200/users/{id}abhb200a200/users/{id}");
    stop(&stage);
    stage.server.groups = wrong_groups;
    stage.listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    FAILS_WITH(aco_http_serve(stage.listener, &stage.server), EINVAL);
    return NULL;
}

/* ---- Own replies ---- */

/* Replies to all but 501, in a way that tells the status. */
static void makes_own(aco_http_request_t *request, int status, void *arg)
{
    char text[64], byte;
    int n = snprintf(text, sizeof text, "own %d %s", status, request->path);
    CHECK_TEXT("arg", arg, "arg");
    FAILS_WITH(aco_http_next(request), EINVAL);
    if (status == 400 || status == 413)
        CHECK(aco_http_request_read(request, &byte, 1) <= 0);
    if (strcmp(request->query, "quiet") == 0)
        return;
    if (strcmp(request->query, "file") == 0) /* which is not there: the server's own reply */
        CHECK_EQ(aco_http_reply_file(request, "/", "none"), 0);
    else if (strcmp(request->query, "parts") == 0) {
        CHECK_EQ(aco_http_reply_begin(request, status, "text/own", -1), 0);
        CHECK_EQ(aco_http_reply_write(request, text, (size_t)n), 0);
    } else {
        CHECK_EQ(aco_http_reply(request, status == 405 ? 404 : status, "text/own", text, (size_t)n), 0);
    }
}

static void reads_too_much(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK(aco_http_request_read_all(request, 2, NULL) == NULL);
}

static void serves_none(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_file(request, "/", "none"), 0);
}

static void *own_replies(void *arg)
{
    static const aco_http_route_t routes[] = {{"GET", "/nothing", says_nothing, NULL},
                                              {"POST", "/much", reads_too_much, NULL},
                                              {"GET", "/file", serves_none, NULL},
                                              {NULL, NULL, NULL, NULL}};
    static const struct {
        const char *request, *status, *text;
    } cases[] = {
        {"GET /none HTTP/1.1\r\n" HOST "\r\n", "404", "own 404 /none"},
        {"GET /none?parts HTTP/1.1\r\n" HOST "\r\n", "404", "D\r\nown 404 /none\r\n0\r\n\r\n"},
        {"GET /none?quiet HTTP/1.1\r\n" HOST "\r\n", "404", "404 Not Found\n"},
        {"GET /none?file HTTP/1.1\r\n" HOST "\r\n", "404", "404 Not Found\n"},
        {"HEAD /none HTTP/1.1\r\n" HOST "\r\n", "404", ""},
        {"GET /file HTTP/1.1\r\n" HOST "\r\n", "404", "own 404 /file"},
        {"PUT /nothing HTTP/1.1\r\n" HOST "\r\n", "404", "own 405 /nothing"},
        {"GET /nothing HTTP/1.1\r\n" HOST "\r\n", "500", "own 500 /nothing"},
        {"POST /much HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", "413", "own 413 /much"},
        {"POST /much HTTP/1.1\r\n" HOST "Content-Length: 99999999\r\n\r\nabc", "413", "own 413 "},
        {"POST /../a HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", "400", "own 400 /../a"},
        {"nonsense\r\n\r\n", "400", "own 400 "},
        {"GET / HTTP/1.1\r\n\r\n", "400", "own 400 "},
    };
    stage_t stage = {0};
    stage.server.refused = makes_own;
    stage.server.refused_arg = "arg";
    start(&stage, routes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask(&stage, cases[i].request);
        CHECK_TEXT(cases[i].request, body(), cases[i].text);
        CHECK(strncmp(got + 9, cases[i].status, 3) == 0);
    }
    ask(&stage, "PUT /nothing HTTP/1.1\r\n" HOST "\r\nGET /none HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("both", statuses(), "404 404");
    CHECK_HAS("Allow: GET, HEAD\r\n");
    stop(&stage);
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {middleware, own_replies};
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_middleware");
}
