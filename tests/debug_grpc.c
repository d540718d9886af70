/* What somebody who looks sees of calls of gRPC: the metrics of servers and clients by method, and the spans of both
 * ends, as a collector of the test's own gets them. */
#define _GNU_SOURCE
#include <aco/debug.h>
#include <aco/group.h>
#include <aco/grpc.h>
#include <aco/offload.h>
#include <aco/spans.h>
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"

enum { URL_SIZE = ACO_IO_ADDRESS_SIZE + 64, PAGE_SIZE = 1 << 20, METHODS_BEYOND = 150 };

static char grpc_address[ACO_IO_ADDRESS_SIZE], collector_url[URL_SIZE], metrics_url[URL_SIZE];
static char spans[PAGE_SIZE], page[PAGE_SIZE], many_methods[METHODS_BEYOND][24];
static aco_grpc_channel_t *channel;

/* ---- The services ---- */

static int say(aco_grpc_call_t *call, void *unused)
{
    const void *request;
    size_t n;
    int more;
    (void)unused;
    while ((more = aco_grpc_read(call, &request, &n)) > 0)
        if (aco_grpc_write(call, request, n) != 0)
            return ACO_GRPC_FROM_ERRNO;
    return more == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

static int fail(aco_grpc_call_t *call, void *unused)
{
    (void)unused;
    return aco_grpc_fail(call, ACO_GRPC_NOT_FOUND, "there is none");
}

static int ends_task(aco_grpc_call_t *call, void *unused)
{
    (void)call;
    (void)unused;
    aco_exit();
    return ACO_GRPC_OK;
}

/* A call with one message, and its status. */
static int call_once(const char *path)
{
    aco_grpc_call_t *call = aco_grpc_call_new(channel, path, NULL);
    const void *reply;
    size_t n;
    int status;
    CHECK(call != NULL);
    if (aco_grpc_write_only(call, "12345", 5) == 0 && aco_grpc_read_only(call, &reply, &n) == 0)
        CHECK_EQ(n, 5);
    status = aco_grpc_finish(call);
    aco_grpc_call_destroy(call);
    return status;
}

static int relay(aco_grpc_call_t *call, void *unused)
{
    const void *request;
    size_t n;
    (void)unused;
    if (aco_grpc_read_only(call, &request, &n) != 0)
        return ACO_GRPC_FROM_ERRNO;
    CHECK_EQ(call_once("/test.Echo/Say"), ACO_GRPC_OK);
    return aco_grpc_write(call, request, n) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

static void *serves(void *listener)
{
    const aco_http_server_options_t options = {.drain_time = 1, .drain_idle_time = 1};
    aco_grpc_server_t *server = aco_grpc_server_new(NULL);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Echo/Say", say, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Echo/Fail", fail, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Echo/Relay", relay, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Echo/Exit", ends_task, NULL), 0);
    for (int i = 0; i < METHODS_BEYOND; i++) {
        snprintf(many_methods[i], sizeof many_methods[i], "/test.Many/M%d", i);
        CHECK_EQ(aco_grpc_server_add(server, many_methods[i], fail, NULL), 0);
    }
    (void)aco_grpc_serve(*(const int *)listener, server, &options);
    aco_grpc_server_destroy(server);
    return NULL;
}

/* ---- The collector ---- */

static void collect(aco_http_request_t *request, void *unused)
{
    size_t n = 0, had = strlen(spans);
    const char *body = aco_http_request_read_all(request, sizeof spans - 1 - had, &n);
    (void)unused;
    CHECK(body != NULL);
    if (body)
        memcpy(spans + had, body, n);
    (void)aco_http_reply(request, 200, "application/json", "{}", 2);
}

static void *serves_collector(void *listener)
{
    static const aco_http_route_t routes[] = {{"POST", "/v1/traces", collect, NULL}, {NULL, NULL, NULL, NULL}};
    const aco_http_server_options_t options = {.routes = routes, .drain_time = 1, .drain_idle_time = 1};
    (void)aco_http_serve(*(const int *)listener, &options);
    return NULL;
}

/* The member of the i-th span with this name and kind, as it stands in the collected text; "": there is none. */
static const char *member_of(const char *name, int kind, int i, const char *member, char text[256])
{
    static const char begin[] = "{\"traceId";
    char wanted[2][128], key[64];
    snprintf(wanted[0], sizeof wanted[0], ",\"name\":\"%s\"", name);
    snprintf(wanted[1], sizeof wanted[1], "\"kind\":%d,", kind);
    snprintf(key, sizeof key, "\"%s\":\"", member);
    text[0] = 0;
    for (const char *line = strstr(spans, begin), *next; line; line = next) {
        next = strstr(line + 1, begin);
        const size_t n = next ? (size_t)(next - line) : strlen(line);
        const char *at;
        if (!memmem(line, n, wanted[0], strlen(wanted[0])) || !memmem(line, n, wanted[1], strlen(wanted[1])) || i--)
            continue;
        at = memmem(line, n, key, strlen(key));
        if (at)
            snprintf(text, 256, "%.*s", (int)strcspn(at + strlen(key), "\""), at + strlen(key));
        break;
    }
    return text;
}

enum { SERVER = ACO_SPAN_SERVER, CLIENT = ACO_SPAN_CLIENT };

/* Whether a span of the second name and kind is inside of one with the first. */
static int is_inside(const char *outer, int outer_kind, const char *inner, int inner_kind)
{
    char id[256], parent[256];
    for (int i = 0; *member_of(outer, outer_kind, i, "spanId", id); i++)
        for (int k = 0; *member_of(inner, inner_kind, k, "parentSpanId", parent); k++)
            if (strcmp(id, parent) == 0)
                return 1;
    return 0;
}

static int count_text(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

/* ---- Calls ---- */

static void *finishes(void *call)
{
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
    return NULL;
}

/* Two calls that end in the order in which they began, one of them in another task; and one that nobody ends. */
static void overlapping_calls(void)
{
    aco_grpc_call_t *calls[3];
    aco_t *other;
    for (int i = 0; i < 3; i++) {
        calls[i] = aco_grpc_call_new(channel, "/test.Echo/Say", NULL);
        CHECK_EQ(aco_grpc_write(calls[i], "123", 3), 0);
    }
    other = aco_spawn(finishes, calls[0], NULL);
    CHECK(other != NULL && aco_join(other, NULL) == 0);
    CHECK_EQ(aco_grpc_finish(calls[1]), ACO_GRPC_OK);
    for (int i = 0; i < 3; i++)
        aco_grpc_call_destroy(calls[i]);
    aco_grpc_call_destroy(aco_grpc_call_new(channel, "/test.Echo/Say", NULL)); /* it never began */
}

static void *stops(void *unused)
{
    aco_spans_stop(60 * ACO_SECOND);
    return unused;
}

static void make_calls(void)
{
    const aco_spans_options_t options = {.endpoint = collector_url, .interval = 3600 * ACO_SECOND};
    aco_span_t *root;
    CHECK_EQ(call_once("/test.Echo/Say"), ACO_GRPC_OK); /* nobody looks */
    CHECK_EQ(aco_spans_start(&options), 0);
    CHECK_EQ(call_once("/test.Echo/Fail"), ACO_GRPC_NOT_FOUND); /* in no span; nobody counts */
    const int port = aco_debug_serve("127.0.0.1:0", NULL);
    CHECK(port > 0);
    snprintf(metrics_url, sizeof metrics_url, "http://127.0.0.1:%d/metrics", port);
    root = aco_span_continue("root", ACO_SPAN_CONSUMER, "00-" TRACE "-b7ad6b7169203331-01", "vendor=1");
    CHECK_EQ(call_once("/test.Echo/Relay"), ACO_GRPC_OK);
    CHECK_EQ(call_once("/test.Echo/Fail"), ACO_GRPC_NOT_FOUND);
    CHECK_EQ(call_once("/test.Echo/Unknown"), ACO_GRPC_UNIMPLEMENTED);
    CHECK(call_once("/test.Echo/Exit") != ACO_GRPC_OK);
    overlapping_calls();
    aco_span_end(root);
    for (int i = 0; i < METHODS_BEYOND; i++)
        CHECK_EQ(call_once(many_methods[i]), ACO_GRPC_NOT_FOUND);
}

/* ---- What is seen ---- */

static void check_spans(void)
{
    char text[256];
    CHECK(is_inside("root", ACO_SPAN_CONSUMER, "test.Echo/Relay", CLIENT));
    CHECK(is_inside("test.Echo/Relay", CLIENT, "test.Echo/Relay", SERVER));
    CHECK(is_inside("test.Echo/Relay", SERVER, "test.Echo/Say", CLIENT));
    CHECK(is_inside("test.Echo/Say", CLIENT, "test.Echo/Say", SERVER));
    CHECK(is_inside("root", ACO_SPAN_CONSUMER, "test.Echo/Say", CLIENT)); /* not in a call that had not ended */
    CHECK(!is_inside("test.Echo/Say", CLIENT, "test.Echo/Say", CLIENT));
    CHECK(is_inside("root", ACO_SPAN_CONSUMER, "test.Echo/Unknown", CLIENT));
    CHECK(is_inside("test.Echo/Unknown", CLIENT, "POST /{service}/{method}", SERVER));
    CHECK_EQ(strcmp(member_of("test.Echo/Say", SERVER, 1, "traceId", text), TRACE), 0);
    CHECK_EQ(strcmp(member_of("test.Echo/Say", SERVER, 1, "traceState", text), "vendor=1"), 0);
    CHECK(strstr(spans, "{\"value\":{\"stringValue\":\"test.Echo/Relay\"},\"key\":\"rpc.method\"}") != NULL);
    CHECK(strstr(spans, "{\"value\":{\"stringValue\":\"NOT_FOUND\"},\"key\":\"error.type\"}") != NULL);
    CHECK(strstr(spans, "{\"value\":{\"stringValue\":\"CANCELLED\"},\"key\":\"rpc.response.status_code\"}") != NULL);
    CHECK(!strstr(spans, "Unknown\"},\"key\":\"http")); /* paths that peers make up */
    /* Relay, Fail, Unknown, Exit, and Say four times. */
    CHECK_EQ(count_text(spans, "\"kind\":3,"), 8);
}

/* Whether the page has this line. */
static int has_line(const char *line)
{
    const char *at = strstr(page, line);
    if (at && at[strlen(line)] == '\n')
        return 1;
    fprintf(stderr, "no line %s\n", line);
    return 0;
}

#define COUNT(end, method, status) \
    "\nrpc_" end "_call_duration_seconds_count{rpc_system_name=\"grpc\",rpc_method=\"" method \
    "\",rpc_response_status_code=\"" status "\"} "
#define MESSAGES(name, end, method, direction) \
    "\nacorn_grpc_" name "_total{end=\"" end "\",rpc_method=\"" method "\",direction=\"" direction "\"} "

static void check_metrics(void)
{
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_http_response_t *response = aco_http_get(client, metrics_url);
    ssize_t got = 0;
    CHECK(response != NULL && response->status == 200);
    for (size_t n = 0; response && (got = aco_http_response_read(response, page + n, sizeof page - 1 - n)) > 0;)
        n += (size_t)got;
    CHECK_EQ(got, 0);
    aco_http_response_end(response);
    aco_http_client_destroy(client);
    CHECK(has_line(COUNT("server", "test.Echo/Relay", "OK") "1"));
    CHECK(has_line(COUNT("client", "test.Echo/Relay", "OK") "1"));
    CHECK(has_line(COUNT("client", "test.Echo/Say", "OK") "3"));
    CHECK(has_line(COUNT("client", "test.Echo/Say", "CANCELLED") "1"));
    CHECK(has_line(COUNT("server", "test.Echo/Fail", "NOT_FOUND") "1"));
    CHECK(has_line(COUNT("server", "test.Echo/Exit", "UNKNOWN") "1"));
    CHECK(has_line(COUNT("server", "_OTHER", "UNIMPLEMENTED") "1"));
    CHECK(has_line(COUNT("client", "test.Echo/Unknown", "UNIMPLEMENTED") "1"));
    CHECK(has_line("\nacorn_grpc_calls_in_flight{end=\"server\",rpc_method=\"test.Echo/Say\"} 0"));
    CHECK(has_line("\nacorn_grpc_calls_in_flight{end=\"client\",rpc_method=\"test.Echo/Say\"} 0"));
    CHECK(has_line(MESSAGES("messages", "client", "test.Echo/Say", "sent") "4"));
    CHECK(has_line(MESSAGES("message_bytes", "client", "test.Echo/Say", "sent") "14"));
    CHECK(has_line(MESSAGES("messages", "server", "test.Echo/Relay", "received") "1"));
    CHECK(has_line(MESSAGES("message_bytes", "server", "test.Echo/Relay", "sent") "5"));
    CHECK_EQ(count_text(page, "\nacorn_grpc_calls_in_flight{end=\"client\""), 101); /* 100, and "_OTHER" */
    CHECK_EQ(count_text(page, "\nacorn_grpc_calls_in_flight{end=\"server\""), 101);
}

static void listen_at(int *listener, char address[ACO_IO_ADDRESS_SIZE])
{
    *listener = aco_io_listen("tcp", "127.0.0.1", "0", NULL);
    CHECK(*listener >= 0);
    CHECK_EQ(aco_io_local_address(*listener, address, ACO_IO_ADDRESS_SIZE), 0);
}

static void *tests(void *unused)
{
    int collector, listener;
    char address[ACO_IO_ADDRESS_SIZE];
    aco_group_t group, services;
    CHECK_EQ(aco_group_begin(&group, ACO_KEEP_GOING), 0);
    listen_at(&collector, address);
    snprintf(collector_url, sizeof collector_url, "http://%s/v1/traces", address);
    CHECK(aco_group_spawn(&group, serves_collector, &collector, NULL) != NULL);
    CHECK_EQ(aco_group_begin(&services, ACO_KEEP_GOING), 0);
    listen_at(&listener, grpc_address);
    CHECK(aco_group_spawn(&services, serves, &listener, NULL) != NULL);
    channel = aco_grpc_channel_new(grpc_address, NULL);
    make_calls();
    aco_grpc_channel_destroy(channel);
    CHECK_EQ(aco_scope_cancel(&services.scope), 0); /* so that all requests have ended */
    (void)aco_group_end(&services);
    CHECK_EQ(aco_offload(stops, NULL, NULL, NULL), 0); /* the collector runs on this thread */
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    (void)aco_group_end(&group);
    check_spans();
    check_metrics();
    aco_debug_stop();
    return unused;
}

int main(void)
{
    CHECK(aco_spawn(tests, NULL, NULL) != NULL);
    CHECK_EQ(aco_run(), 0);
    return check_result("debug_grpc");
}
