/* What stands around an HTTP server's handlers (include/aco/http.h): middleware, groups of routes. */
#define _GNU_SOURCE
#include <aco/sync.h>
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

/* ---- Time limits ---- */

static int waits_failed; /* the errno of the last failed wait of a handler */

static void waits(aco_http_request_t *request, void *arg)
{
    (void)request;
    (void)arg;
    CHECK_EQ(aco_sleep_until(ACO_FOREVER), -1);
    waits_failed = errno;
}

static void begins_and_waits(aco_http_request_t *request, void *length)
{
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, (intptr_t)length), 0);
    CHECK_EQ(aco_http_reply_write(request, "part", 4), 0);
    waits(request, NULL);
}

static void reads_all(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK(aco_http_request_read_all(request, 100, NULL) == NULL);
    waits_failed = errno;
}

static void says_late(aco_http_request_t *request, void *arg)
{
    CHECK_EQ(aco_check_cancelled(), 0);
    CHECK_EQ(aco_http_reply(request, 504, NULL, arg, strlen(arg)), 0);
}

static void exits(aco_http_request_t *request, void *arg)
{
    aco_scope_t *scope = aco_http_request_allocate(request, sizeof *scope);
    CHECK_EQ(aco_scope_begin(scope, ACO_FOREVER), 0);
    aco_task_yield();
    (void)arg;
    aco_exit();
}

static void *limits_time(void *arg)
{
    static aco_http_time_limit_t plain = {1, NULL, NULL}, own = {1, says_late, "late"},
                                 long_one = {ACO_SECOND * 100, NULL, NULL};
    static const aco_http_middleware_t limited[] = {{aco_http_limit_time, &plain}, {NULL, NULL}},
                                       limited_own[] = {{aco_http_limit_time, &own}, {NULL, NULL}},
                                       limited_long[] = {{aco_http_limit_time, &long_one}, {NULL, NULL}};
    static const aco_http_route_t short_ones[] = {{"GET", "/wait", waits, NULL},
                                                  {"POST", "/read", reads_all, NULL},
                                                  {"GET", "/begin", begins_and_waits, (void *)-1},
                                                  {"GET", "/begin4", begins_and_waits, (void *)4},
                                                  {"GET", "/begin5", begins_and_waits, (void *)5},
                                                  {"GET", "/quick", tells, "quick"},
                                                  {NULL, NULL, NULL, NULL}},
                                  owns[] = {{"GET", "/own", waits, NULL}, {NULL, NULL, NULL, NULL}},
                                  longs[] = {{"GET", "/long", tells, "long"},
                                             {"GET", "/exit", exits, NULL},
                                             {NULL, NULL, NULL, NULL}};
    static const aco_http_group_t groups[] = {
        {short_ones, limited}, {owns, limited_own}, {longs, limited_long}, {NULL, NULL}};
    stage_t stage = {0};
    stage.server.groups = groups;
    start(&stage, NULL);
    ask(&stage, "GET /wait HTTP/1.1\r\n" HOST "\r\nGET /quick HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("the connection goes on", statuses(), "503 200");
    CHECK_EQ(waits_failed, ETIMEDOUT);
    ask(&stage, "GET /own HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("a given reply", statuses(), "504");
    CHECK_TEXT("its text", body(), "late");
    {
        int fd = dial(&stage); /* the body never comes */
        static const char head[] = "POST /read HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nab";
        CHECK(aco_io_write_all(fd, head, sizeof head - 1) > 0);
        CHECK(aco_io_read(fd, got, sizeof got - 1) > 12 && memcmp(got + 9, "503", 3) == 0);
        CHECK_EQ(waits_failed, ETIMEDOUT);
        aco_io_close(fd);
    }
    ask(&stage, "GET /begin HTTP/1.1\r\n" HOST "\r\n" GET(""));
    CHECK_TEXT("no last chunk, no further reply", body(), "4\r\npart\r\n");
    ask(&stage, "GET /begin4 HTTP/1.1\r\n" HOST "\r\nGET /quick HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("a whole reply stays", statuses(), "200 200");
    ask(&stage, "GET /begin5 HTTP/1.1\r\n" HOST "\r\nGET /quick HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("a short one is cut", body(), "part");
    ask(&stage, "GET /long HTTP/1.1\r\n" HOST "\r\nGET /long HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("in time", statuses(), "200 200");
    ask(&stage, "GET /exit HTTP/1.1\r\n" HOST "\r\n");
    CHECK_EQ(got_n, 0);
    stop(&stage);
    return arg;
}

/* ---- The end with the client ---- */

typedef struct departure {
    int has_ended;
    int error; /* of the connection, as the handler sees it */
    aco_event_t begun, ended;
} departure_t;

static void waits_for_departure(aco_http_request_t *request, void *arg)
{
    departure_t *d = arg;
    aco_event_set(&d->begun);
    CHECK_EQ(aco_sleep_until(ACO_FOREVER), -1);
    CHECK_EQ(errno, ECANCELED);
    d->error = aco_http_connection_error(request);
    d->has_ended = 1;
    aco_event_set(&d->ended);
}

/* Sends a request, and leaves when its handler waits. */
static void leaves(const stage_t *stage, departure_t *d, const char *request, const char *later)
{
    int fd = dial(stage);
    memset(d, 0, sizeof *d);
    CHECK(aco_io_write_all(fd, request, strlen(request)) > 0);
    CHECK_EQ(aco_event_wait(&d->begun), 0);
    for (int i = 0; *later && i < 10; i++) { /* bytes that nobody reads */
        CHECK(aco_io_write_all(fd, later, strlen(later)) > 0);
        aco_task_yield();
    }
    CHECK(!d->has_ended);
    aco_io_close(fd);
    CHECK_EQ(aco_event_wait(&d->ended), 0);
    CHECK_EQ(d->error, ECONNRESET);
}

/* With handlers on private stacks, or on a shared one. */
static void end_with_client(const aco_options_t *task)
{
    static departure_t d;
    static const aco_http_middleware_t with_client[] = {{aco_http_end_with_client, NULL}, {NULL, NULL}};
    static const aco_http_route_t routes[] = {{NULL, "/wait", waits_for_departure, &d},
                                              {"GET", "/quick", tells, "quick"},
                                              {"POST", "/echo", echoes, NULL},
                                              {"GET", "/exit", exits, NULL},
                                              {NULL, NULL, NULL, NULL}};
    static const char *const ways[] = {"", "GET /quick HTTP/1.1\r\n" HOST "\r\n"};
    uint64_t failures[ACO_HTTP_FAILURES] = {0};
    stage_t stage = {0};
    int fd;
    stage.server.middleware = with_client;
    stage.server.failures = failures;
    stage.server.task = task;
    start(&stage, routes);
    for (size_t i = 0; i < 2; i++) {
        leaves(&stage, &d, "GET /wait HTTP/1.1\r\n" HOST "\r\n", ways[i]);
        leaves(&stage, &d, "POST /wait HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nsome", ways[i]);
    }
    fd = dial(&stage);
    for (int i = 0; i < 20; i++) { /* whoever stays notices nothing */
        static const char both[] = "GET /quick HTTP/1.1\r\n" HOST "\r\n" POST("Content-Length: 3\r\n", "abc");
        CHECK(aco_io_write_all(fd, both, sizeof both - 1) > 0);
        for (got_n = 0; !got_n || memcmp(got + got_n - 3, "abc", 3) != 0;) {
            ssize_t n = aco_io_read(fd, got + got_n, sizeof got - 1 - got_n);
            CHECK(n > 0);
            got_n += n > 0 ? (size_t)n : 0;
            if (n <= 0)
                break;
        }
        got[got_n] = 0;
        CHECK_TEXT("two", statuses(), "200 200");
    }
    aco_io_close(fd);
    fd = dial(&stage);
    CHECK(aco_io_write_all(fd, "GET /exit HTTP/1.1\r\n" HOST "\r\n", 31) > 0);
    CHECK(aco_io_read(fd, got, 1) <= 0);
    aco_io_close(fd);
    stop(&stage);
    CHECK_EQ(failures[ACO_HTTP_LEFT], 4);
}

static void *ends_with_client(void *arg)
{
    aco_options_t task = {0};
    end_with_client(NULL);
    task.stack = aco_share_stack_new(0);
    end_with_client(&task);
    aco_share_stack_destroy(task.stack);
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {middleware, own_replies, limits_time, ends_with_client};
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_middleware");
}
