/* HTTP/2 in the server (include/aco/http.h) when memory runs out: each allocation of the library's and of nghttp2's
 * fails once, on either side. No request waits for ever, and nothing stays allocated. */
#define _GNU_SOURCE
#include "http2_client.h"

#include <signal.h>

void *__real_aco__service_allocate(size_t *sz, const char *call);
void *__wrap_aco__service_allocate(size_t *sz, const char *call);

static long left; /* allocations until one fails; less than 0: none does */
static int has_failed;

void *__wrap_aco__service_allocate(size_t *sz, const char *call)
{
    if (left >= 0 && left-- == 0) {
        has_failed = 1;
        errno = ENOMEM;
        return NULL;
    }
    return __real_aco__service_allocate(sz, call);
}

static void echoes_what_it_can(aco_http_request_t *request, void *arg)
{
    size_t n = 0;
    const char *text = aco_http_request_read_all(request, 4000, &n);
    (void)arg;
    if (!text)
        return;
    (void)aco_http_reply_trailer(request, "X-Sum", "1");
    if (aco_http_reply_begin(request, 200, NULL, -1) == 0)
        (void)aco_http_reply_write(request, text, n);
}

static void ignores(const aco_http_failure_t *failure, void *arg)
{
    (void)failure;
    (void)arg;
}

static const aco_http_route_t routes[] = {{NULL, "/", echoes_what_it_can, NULL}, {NULL, NULL, NULL, NULL}};
static stage_t stage;
static h2_client_t client;
static const char text[3000];

static void *asks_while_one_fails(void *which)
{
    int ids[3];
    memset(&stage.server, 0, sizeof stage.server);
    stage.server.failed = ignores;
    start(&stage, routes);
    h2_connect(&client, aco_stream_open(dial(&stage)));
    left = *(int *)which;
    client.trailer = "1";
    ids[0] = h2_request(&client, "GET", "/", NULL, 0);
    ids[1] = h2_request(&client, "POST", "/", text, sizeof text);
    ids[2] = h2_request(&client, "POST", "/", text, 30);
    for (int i = 0; i < 3; i++)
        h2_await(&client, ids[i]);
    left = -1;
    h2_close(&client);
    stop(&stage);
    return NULL;
}

int main(void)
{
    int which = 0;
    left = -1;
    signal(SIGPIPE, SIG_IGN);
    run_task(warms_up, NULL);
    do {
        has_failed = 0;
        run_task(asks_while_one_fails, &which);
    } while (has_failed && ++which < 1000);
    CHECK(which > 30);
    return check_result("http2_failure");
}
