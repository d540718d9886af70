/* Spans (include/aco/spans.h): a trace through three services of this program, by HTTP/1 and HTTP/2, through members of
 * groups and submitted work, as a collector of the test's own gets it; lines of traceparent that are none; what is
 * dropped, sampled, and sent again. */
#define _GNU_SOURCE
#include <aco/cookie_jar.h>
#include <aco/group.h>
#include <aco/offload.h>
#include <aco/spans.h>
#include <aco/sync.h>
#include <aco/threads.h>
#include <aco/websocket.h>
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define REMOTE "b7ad6b7169203331"

enum { MOST_SPANS = 64 };

/* ---- The collector ---- */

typedef struct seen_span {
    char trace[33], id[17], parent[17], name[96], state[64];
} seen_span_t;

static seen_span_t seen[MOST_SPANS];
static int seen_n, posts, refusals; /* refusals: so many posts get 503 */
static char last_body[1 << 20];
static aco_event_t has_post = ACO_EVENT_INIT;

static void take_member(const char *line, const char *name, char *to, size_t room)
{
    const char *at = strstr(line, name);
    size_t n = at ? strcspn(at + strlen(name), "\"") : 0;
    to[0] = 0;
    CHECK(n < room);
    if (at)
        snprintf(to, room, "%.*s", (int)n, at + strlen(name));
}

static void collect(aco_http_request_t *request, void *unused)
{
    size_t n;
    char *body = aco_http_request_read_all(request, sizeof last_body - 1, &n);
    (void)unused;
    CHECK(body != NULL);
    CHECK_EQ(strcmp(aco_http_request_header(request, "Content-Type"), "application/json"), 0);
    CHECK_EQ(strcmp(aco_http_request_header(request, "x-key"), "k"), 0);
    posts++;
    aco_event_set(&has_post);
    if (posts <= refusals) {
        (void)aco_http_reply(request, 503, NULL, NULL, 0);
        return;
    }
    memcpy(last_body, body, n);
    last_body[n] = 0;
    for (char *line = strstr(body, "{\"traceId"); line && seen_n < MOST_SPANS; line = strstr(line + 1, "{\"traceId")) {
        seen_span_t *span = &seen[seen_n++];
        char *next = strstr(line + 1, "{\"traceId");
        if (next)
            next[-1] = 0;
        take_member(line, "\"traceId\":\"", span->trace, sizeof span->trace);
        take_member(line, "\"spanId\":\"", span->id, sizeof span->id);
        take_member(line, "\"parentSpanId\":\"", span->parent, sizeof span->parent);
        take_member(line, ",\"name\":\"", span->name, sizeof span->name);
        take_member(line, "\"traceState\":\"", span->state, sizeof span->state);
        if (next)
            next[-1] = ' ';
    }
    (void)aco_http_reply(request, 200, "application/json", "{}", 2);
}

/* The i-th span with this name, of this parent if it is not NULL. */
static const seen_span_t *span_of(const char *name, const seen_span_t *parent)
{
    for (int i = 0; i < seen_n; i++)
        if (strcmp(seen[i].name, name) == 0 && (!parent || strcmp(seen[i].parent, parent->id) == 0))
            return &seen[i];
    fprintf(stderr, "no span %s of %s\n%s\n", name, parent ? parent->name : "any", last_body);
    CHECK(0);
    return &seen[0];
}

static int count_spans(const char *name)
{
    int n = 0;
    for (int i = 0; i < seen_n; i++)
        n += strcmp(seen[i].name, name) == 0;
    return n;
}

/* ---- Three services ---- */

static aco_http_client_t *http1, *http2;
enum { URL_SIZE = ACO_IO_ADDRESS_SIZE + 64 };
static char middle_url[URL_SIZE], back_url[URL_SIZE], front_url[URL_SIZE], collector_url[URL_SIZE];
static char chat_url[URL_SIZE];
static char back_parent[64], back_state[64];

static int get_with(aco_http_client_t *client, const char *url, const aco_http_header_t *headers, size_t n)
{
    const aco_http_call_t call = {.url = url, .headers = headers, .header_count = n};
    aco_http_response_t *response = aco_http_call(client, &call);
    int status = response ? response->status : 0;
    CHECK(response != NULL);
    if (response)
        aco_http_response_end(response);
    return status;
}

static int get(aco_http_client_t *client, const char *url)
{
    return get_with(client, url, NULL, 0);
}

static void *calls_back(void *result)
{
    aco_span_t *work = aco_span_begin("work");
    CHECK_EQ(get(http2, back_url), 204);
    aco_span_end(work);
    return result;
}

static void *calls_middle(void *result)
{
    aco_span_t *member = aco_span_begin("member");
    aco_span_set_text(member, "text", "a \"quoted\" one");
    aco_span_set_number(member, "number", -5);
    CHECK_EQ(get(http1, middle_url), 200);
    (void)aco_span_begin("left open"); /* ends with the task */
    return result;
}

static void front(aco_http_request_t *request, void *unused)
{
    aco_group_t group;
    (void)unused;
    CHECK_EQ(aco_group_begin(&group, ACO_CANCEL_ON_FAILURE), 0);
    CHECK(aco_group_spawn(&group, calls_middle, NULL, NULL) != NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    (void)aco_http_reply(request, 200, NULL, NULL, 0);
}

/* The work runs on this thread, whose client it uses. */
static void middle(aco_http_request_t *request, void *unused)
{
    int mark = 0;
    void *result = NULL;
    const aco_submit_options_t options = {.where = ACO_SUBMIT_TO, .thread = aco_threads_index(), .result = &result};
    aco_mt_group_t group;
    (void)unused;
    CHECK_EQ(aco_mt_group_begin(&group, ACO_CANCEL_ON_FAILURE), 0);
    CHECK_EQ(aco_submit(&group, calls_back, &mark, &options), 0);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK(result == &mark);
    (void)aco_http_reply(request, 200, NULL, NULL, 0);
}

static void back(aco_http_request_t *request, void *unused)
{
    const char *parent = aco_http_request_header(request, "traceparent");
    const char *state = aco_http_request_header(request, "tracestate");
    (void)unused;
    snprintf(back_parent, sizeof back_parent, "%s", parent ? parent : "");
    snprintf(back_state, sizeof back_state, "%s", state ? state : "");
    (void)aco_http_reply(request, 204, NULL, NULL, 0);
}

static const aco_websocket_options_t with_all = {.protocols = "chat", .compresses = ACO_WEBSOCKET_COMPRESS};

static void chats(aco_http_request_t *request, void *unused)
{
    const char *state = aco_http_request_header(request, "tracestate");
    (void)unused;
    snprintf(back_state, sizeof back_state, "%d %s", request->major, state ? state : "");
    (void)aco_websocket_accept(request, &with_all);
}

typedef struct service {
    int listener;
    aco_http_route_t routes[2];
} service_t;

static void *serves(void *arg)
{
    const service_t *service = arg;
    aco_http_server_options_t options = {.routes = service->routes, .max_streams = 100};
    options.drain_time = options.drain_idle_time = 1;
    (void)aco_http_serve(service->listener, &options);
    return NULL;
}

static void start_service(aco_group_t *group, service_t *service, aco_http_route_t route, char *url, size_t room)
{
    char address[ACO_IO_ADDRESS_SIZE];
    service->listener = aco_io_listen("tcp", "127.0.0.1", "0", NULL);
    service->routes[0] = route;
    CHECK(service->listener >= 0);
    CHECK_EQ(aco_io_local_address(service->listener, address, sizeof address), 0);
    snprintf(url, room, "http://%s%s", address, route.path);
    CHECK(aco_group_spawn(group, serves, service, NULL) != NULL);
}

/* ---- Tests ---- */

static const aco_http_header_t key = {"x-key", "k"};

static void start_spans(int per_million, int max_queued)
{
    aco_spans_options_t options = {.service = "shop \"x\"", .per_million = per_million, .max_queued = max_queued};
    options.endpoint = collector_url;
    options.interval = refusals ? ACO_MILLISECOND : 3600 * ACO_SECOND;
    options.headers = &key;
    options.header_count = 1;
    seen_n = posts = 0;
    CHECK_EQ(aco_spans_start(&options), 0);
    FAILS_WITH(aco_spans_start(&options), EBUSY);
}

static void *stops(void *unused)
{
    aco_spans_stop(60 * ACO_SECOND);
    return unused;
}

/* The collector runs on this thread. */
static void stop_spans(void)
{
    CHECK_EQ(aco_offload(stops, NULL, NULL, NULL), 0);
}

static void test_three_services(void)
{
    const seen_span_t *root, *span;
    aco_span_t *first;
    aco_spans_stats_t stats;
    start_spans(0, 0);
    first = aco_span_continue("root", ACO_SPAN_CONSUMER, "00-" TRACE "-" REMOTE "-01", "vendor=1");
    CHECK_EQ(strcmp(aco_span_tracestate(), "vendor=1"), 0);
    CHECK_EQ(get(http1, front_url), 200);
    aco_span_end(first);
    stop_spans();
    root = span_of("root", NULL);
    CHECK_EQ(strcmp(root->parent, REMOTE), 0);
    span = span_of("GET /front", span_of("GET", root));
    span = span_of("member", span);
    (void)span_of("left open", span);
    span = span_of("GET /middle", span_of("GET", span));
    span = span_of("GET /back", span_of("GET", span_of("work", span)));
    CHECK_EQ(seen_n, 10);
    for (int i = 0; i < seen_n; i++) {
        CHECK_EQ(strcmp(seen[i].trace, TRACE), 0);
        CHECK_EQ(strcmp(seen[i].state, "vendor=1"), 0);
    }
    CHECK(strncmp(back_parent, "00-" TRACE "-", 36) == 0 && strcmp(back_parent + 52, "-01") == 0);
    CHECK_EQ(memcmp(back_parent + 36, span->parent, 16), 0);
    CHECK_EQ(strcmp(back_state, "vendor=1"), 0);
    CHECK(strstr(last_body, "{\"value\":{\"stringValue\":\"a \\\"quoted\\\" one\"},\"key\":\"text\"}") != NULL);
    CHECK(strstr(last_body, "{\"value\":{\"intValue\":\"-5\"},\"key\":\"number\"}") != NULL);
    CHECK(strstr(last_body, "{\"value\":{\"stringValue\":\"shop \\\"x\\\"\"},\"key\":\"service.name\"}") != NULL);
    CHECK(strstr(last_body, "{\"value\":{\"intValue\":\"204\"},\"key\":\"http.response.status_code\"}") != NULL);
    CHECK_EQ(aco_spans_stats(&stats), 0);
    CHECK(stats.exported == 10 && !stats.dropped && !stats.queued && !stats.failures);
}

/* What others do not sample is not sent, but passed on; and so is what nobody samples. */
static void test_samples(void)
{
    aco_span_t *span;
    start_spans(0, 0);
    span = aco_span_continue("root", ACO_SPAN_SERVER, "00-" TRACE "-" REMOTE "-00", NULL);
    CHECK_EQ(get(http1, back_url), 204);
    CHECK(strncmp(back_parent, "00-" TRACE "-", 36) == 0 && strcmp(back_parent + 52, "-00") == 0);
    aco_span_end(span);
    stop_spans();
    CHECK_EQ(seen_n, 0);
    start_spans(-1, 0);
    CHECK_EQ(get(http1, front_url), 200);
    CHECK_EQ(strcmp(back_parent + 52, "-00"), 0);
    stop_spans();
    CHECK_EQ(seen_n, 0);
    CHECK(aco_span_begin("too late") == NULL);
    start_spans(250000, 0);
    for (int i = 0; i < 2000; i++) {
        char text[ACO_TRACEPARENT_SIZE];
        span = aco_span_begin("one");
        CHECK_EQ(aco_span_traceparent(text), 0);
        seen_n += text[54] == '1';
        aco_span_end(span);
    }
    CHECK(seen_n > 350 && seen_n < 650); /* 7 and more deviations */
    stop_spans();
}

/* A child of fork() has no exporter: it makes no spans, and nothing waits in its queue. */
static void child_has_none(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        aco_spans_stats_t stats;
        _exit(aco_span_begin("") || aco_spans_stats(&stats) != 0 || stats.queued);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void test_limits(void)
{
    char text[400];
    aco_spans_stats_t before, after;
    aco_span_t *outer, *inner, *innermost;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    CHECK_EQ(aco_spans_stats(&before), 0);
    start_spans(0, 3);
    for (int i = 0; i < 7; i++) {
        aco_span_t *span = aco_span_begin(text);
        for (int k = 0; k < 40; k++)
            aco_span_set_text(span, text, text);
        aco_span_fail(span, text);
        aco_span_end(span);
    }
    CHECK_EQ(aco_spans_stats(&after), 0);
    CHECK_EQ(after.dropped - before.dropped, 4);
    CHECK_EQ(after.queued, 3);
    child_has_none();
    stop_spans();
    CHECK_EQ(seen_n, 3);
    CHECK_EQ(strlen(seen[0].name), 95);
    start_spans(0, 0);
    outer = aco_span_begin("outer"); /* ends those inside; a second end is none */
    inner = aco_span_begin("inner");
    innermost = aco_span_begin("innermost");
    CHECK(outer && inner && innermost);
    aco_span_end(inner);
    aco_span_end(NULL);
    aco_span_end(aco_span_begin("sibling"));
    aco_span_end(outer);
    CHECK_EQ(aco_span_traceparent(text), -1);
    CHECK_EQ(text[0], 0);
    stop_spans();
    CHECK_EQ(seen_n, 4);
    (void)span_of("innermost", span_of("inner", span_of("outer", NULL)));
    (void)span_of("sibling", span_of("outer", NULL));
}

static void test_sends_again(void)
{
    aco_spans_stats_t before, after;
    CHECK_EQ(aco_spans_stats(&before), 0);
    aco_event_reset(&has_post);
    refusals = 1;
    start_spans(0, 0);
    refusals = 1;
    aco_span_end(aco_span_begin("twice"));
    CHECK_EQ(aco_event_wait(&has_post), 0);
    stop_spans();
    refusals = 0;
    CHECK_EQ(aco_spans_stats(&after), 0);
    CHECK(count_spans("twice") >= 1); /* a request that the end cuts is made once more */
    CHECK(after.failures > before.failures);
    CHECK_EQ(after.exported - before.exported, 1);
}

/* An own reading of what a traceparent is. */
static int is_traceparent(const char *text)
{
    static const char form[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx", hex[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof form - 1; i++)
        if (!text[i] || (form[i] == '-' ? text[i] != '-' : !strchr(hex, text[i])))
            return 0;
    if (memcmp(text, "ff", 2) == 0 || strspn(text + 3, "0") >= 32 || strspn(text + 36, "0") >= 16)
        return 0;
    return !text[55] || (memcmp(text, "00", 2) != 0 && text[55] == '-');
}

static int continues(const char *line)
{
    char own[ACO_TRACEPARENT_SIZE];
    aco_span_t *span = aco_span_continue("x", ACO_SPAN_SERVER, line, "");
    CHECK_EQ(aco_span_traceparent(own), 0);
    aco_span_end(span);
    CHECK(is_traceparent(own));
    return strnlen(line, 35) == 35 && memcmp(own + 3, line + 3, 32) == 0;
}

static void test_wrong_lines(void)
{
    static const char good[] = "00-" TRACE "-" REMOTE "-01";
    static const char *const lines[] = {"",
                                        "0",
                                        "00",
                                        "00-",
                                        "00-" TRACE,
                                        "00-" TRACE "-" REMOTE,
                                        "00-" TRACE "-" REMOTE "-",
                                        "00-" TRACE "-" REMOTE "-0",
                                        "00-" TRACE "-" REMOTE "-01-",
                                        "00-" TRACE "-" REMOTE "-01-x",
                                        "01-" TRACE "-" REMOTE "-01x",
                                        "ff-" TRACE "-" REMOTE "-01",
                                        "0-" TRACE "-" REMOTE "-01",
                                        " 00-" TRACE "-" REMOTE "-01",
                                        "00-00000000000000000000000000000000-" REMOTE "-01",
                                        "00-" TRACE "-0000000000000000-01",
                                        "00-0AF7651916CD43DD8448EB211C80319C-" REMOTE "-01",
                                        "00-" TRACE "-B7AD6B7169203331-01",
                                        "00-" TRACE "_" REMOTE "-01",
                                        "00_" TRACE "-" REMOTE "-01",
                                        "00-" TRACE "-" REMOTE "_01",
                                        "00-" TRACE "-" REMOTE "-0g",
                                        "00-g"
                                        "af7651916cd43dd8448eb211c80319c-" REMOTE "-01"};
    uint32_t random = 1;
    start_spans(-1, 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        CHECK_EQ(is_traceparent(lines[i]), 0);
        CHECK_EQ(continues(lines[i]), 0);
    }
    CHECK_EQ(continues(good), 1);
    CHECK_EQ(continues("cc-" TRACE "-" REMOTE "-01-what-comes"), 1);
    CHECK_EQ(continues("00-" TRACE "-" REMOTE "-ff"), 1);
    for (int i = 0; i < 20000; i++) {
        char line[64];
        memcpy(line, good, sizeof good);
        for (int k = 0; k < 1 + i % 3; k++) {
            random = random * 1664525 + 1013904223;
            line[(random >> 8) % (sizeof good + 1)] = (char)("-0f1 F\377"[random >> 29]);
        }
        line[56 + i % 4] = 0;
        CHECK_EQ(continues(line), is_traceparent(line));
    }
    stop_spans();
}

/* What a server makes of several lines: of traceparent nothing, of tracestate one. */
static void test_several_lines(void)
{
    static const char line[] = "00-" TRACE "-" REMOTE "-01";
    const aco_http_header_t twice[] = {{"traceparent", line}, {"TraceParent", line}};
    const aco_http_header_t states[] = {{"TRACESTATE", "a=1"}, {"traceparent", line}, {"tracestate", "b=2"}};
    start_spans(0, 0);
    CHECK_EQ(get_with(http1, back_url, twice, 2), 204);
    CHECK_EQ(get_with(http2, back_url, states, 3), 204);
    stop_spans();
    CHECK_EQ(seen_n, 2);
    CHECK(strcmp(seen[0].trace, TRACE) != 0 && !seen[0].parent[0] && !seen[0].state[0]);
    CHECK(strcmp(seen[1].trace, TRACE) == 0 && strcmp(seen[1].parent, REMOTE) == 0);
    CHECK_EQ(strcmp(seen[1].state, "a=1,b=2"), 0);
}

/* A WebSocket by HTTP/2 with all fields that a client has of its own. */
static void test_websocket(void)
{
    const aco_http_client_options_t options = {.prior_knowledge = 1, .decodes = 1, .jar = aco_cookie_jar_new(NULL)};
    aco_http_client_t *client = aco_http_client_new(&options);
    aco_websocket_t *socket;
    aco_span_t *root;
    char url[2 * URL_SIZE];
    CHECK_EQ(aco_cookie_jar_set(options.jar, chat_url, "a=b"), 1);
    CHECK_EQ(get(client, chat_url), 400); /* no handshake; the connection is kept */
    start_spans(0, 0);
    root = aco_span_continue("root", ACO_SPAN_CONSUMER, "00-" TRACE "-" REMOTE "-01", "vendor=1");
    snprintf(url, sizeof url, "ws://user:secret@%s", chat_url + strlen("http://"));
    CHECK((socket = aco_websocket_connect(client, url, NULL, 0, &with_all)) != NULL);
    aco_websocket_end(socket);
    CHECK_EQ(strcmp(back_state, "2 vendor=1"), 0);
    aco_span_end(root);
    aco_http_client_destroy(client);
    aco_cookie_jar_destroy(options.jar);
    stop_spans();
}

static void *tests(void *unused)
{
    static service_t services[5];
    const aco_http_client_options_t options = {.prior_knowledge = aco_http_has_http2()};
    aco_group_t group;
    if (aco_threads_index() != 0)
        return unused;
    CHECK(aco_span_begin("too early") == NULL);
    CHECK_EQ(aco_group_begin(&group, ACO_KEEP_GOING), 0);
    start_service(&group, &services[0], (aco_http_route_t){"POST", "/v1/traces", collect, NULL}, collector_url,
                  sizeof collector_url);
    start_service(&group, &services[1], (aco_http_route_t){"GET", "/front", front, NULL}, front_url, sizeof front_url);
    start_service(&group, &services[2], (aco_http_route_t){"GET", "/middle", middle, NULL}, middle_url,
                  sizeof middle_url);
    start_service(&group, &services[3], (aco_http_route_t){"GET", "/back", back, NULL}, back_url, sizeof back_url);
    start_service(&group, &services[4], (aco_http_route_t){"GET", "/chat", chats, NULL}, chat_url, sizeof chat_url);
    http1 = aco_http_client_new(NULL);
    http2 = aco_http_client_new(&options);
    test_three_services();
    test_samples();
    test_limits();
    test_sends_again();
    test_wrong_lines();
    test_several_lines();
    if (aco_http_has_http2())
        test_websocket();
    aco_http_client_destroy(http1);
    aco_http_client_destroy(http2);
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    (void)aco_group_end(&group);
    return unused;
}

int main(void)
{
    CHECK_EQ(aco_threads_run(2, tests, NULL, NULL), 0);
    return check_result("debug_spans");
}
