/* Promises, in many orders: a client's limits hold, its queues are fair and lose nobody, and its time limits end what
 * they limit (include/aco/http.h). */
#include "sim_checks.h"

#include "aco/http.h"
#include "aco/io.h"
#include "aco/scope.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { HOSTS = 3, CALLERS = 5, CALLS = 3 };

typedef struct world {
    int listener;
    aco_scope_t scope; /* of the server */
    aco_http_server_options_t server;
    aco_http_client_t *client;
    aco_sim_t *sim;
    int busy[HOSTS], all_busy; /* handlers that run */
    int most, most_of_host;    /* what was seen */
    int begun[HOSTS], ended[HOSTS]; /* calls */
    int gives_up; /* callers end their waits */
} world_t;

static void works(aco_http_request_t *request, void *arg)
{
    world_t *w = arg;
    int host = request->host[7] - '1'; /* "10.0.0.1" */
    CHECK(host >= 0 && host < HOSTS);
    w->busy[host]++;
    w->all_busy++;
    w->most = w->all_busy > w->most ? w->all_busy : w->most;
    w->most_of_host = w->busy[host] > w->most_of_host ? w->busy[host] : w->most_of_host;
    (void)aco_sleep((int64_t)aco_sim_random(w->sim, 50) * ACO_MILLISECOND);
    w->busy[host]--;
    w->all_busy--;
    (void)aco_http_reply(request, 200, NULL, "ok", 2);
}

static void *serve(void *arg)
{
    world_t *w = arg;
    CHECK(aco_scope_begin(&w->scope, ACO_FOREVER) == 0);
    CHECK_EQ(aco_http_serve(w->listener, &w->server), -1);
    (void)aco_scope_end(&w->scope);
    return NULL;
}

static void call(world_t *w, int host)
{
    static const char *const urls[] = {"http://10.0.0.1/", "http://10.0.0.2/", "http://10.0.0.3/"};
    const int ticket = w->begun[host]++;
    aco_http_response_t *response = aco_http_get(w->client, urls[host]);
    char body[4];
    if (!response) {
        CHECK(w->gives_up && errno == ETIMEDOUT);
        return;
    }
    CHECK(w->gives_up || ticket == w->ended[host]); /* one after the other: first come, first served */
    w->ended[host]++;
    if (aco_http_response_read(response, body, 4) == 2 && aco_sim_random(w->sim, 2))
        (void)aco_sleep((int64_t)aco_sim_random(w->sim, 20) * ACO_MILLISECOND);
    aco_http_response_end(response);
}

typedef struct caller {
    world_t *world;
    int host;
} caller_t;

static void *calls(void *arg)
{
    const caller_t *caller = arg;
    for (int i = 0; i < CALLS; i++) {
        aco_scope_t scope;
        int64_t time = (int64_t)aco_sim_random(caller->world->sim, 60) * ACO_MILLISECOND;
        CHECK(aco_scope_begin(&scope, caller->world->gives_up ? aco_after(time) : ACO_FOREVER) == 0);
        call(caller->world, caller->host);
        (void)aco_scope_end(&scope);
    }
    return NULL;
}

static void run_callers(world_t *w)
{
    caller_t callers[HOSTS * CALLERS];
    aco_t *tasks[HOSTS * CALLERS];
    for (int i = 0; i < HOSTS * CALLERS; i++) {
        callers[i].world = w;
        callers[i].host = i % HOSTS;
        tasks[i] = aco_spawn(calls, &callers[i], NULL);
    }
    for (int i = 0; i < HOSTS * CALLERS; i++)
        CHECK(aco_join(tasks[i], NULL) == 0);
}

static void begin(world_t *w, const aco_http_route_t *routes, aco_sim_t *sim, aco_t **server,
                  const aco_http_client_options_t *options)
{
    w->sim = sim;
    w->server.routes = routes;
    w->client = aco_http_client_new(options);
    w->listener = aco_io_listen("tcp", "0.0.0.0", "80", NULL);
    CHECK(w->client && w->listener >= 0);
    *server = aco_spawn(serve, w, NULL);
}

static void end(world_t *w, aco_t *server)
{
    aco_http_client_destroy(w->client);
    aco_scope_cancel(&w->scope);
    CHECK(aco_join(server, NULL) == 0);
}

static void waits_fairly(aco_sim_t *sim, void *arg)
{
    world_t w = {0};
    const aco_http_route_t routes[] = {{"GET", "/", works, &w}, {NULL, NULL, NULL, NULL}};
    const aco_http_client_options_t options = {.max_connections = 2, .max_per_host = 1};
    aco_t *server;
    (void)arg;
    begin(&w, routes, sim, &server, &options);
    run_callers(&w);
    CHECK(w.most <= 2 && w.most_of_host == 1);
    /* Those who give up leave their places to others. */
    w.gives_up = 1;
    run_callers(&w);
    w.gives_up = 0;
    memset(w.begun, 0, sizeof w.begun);
    memset(w.ended, 0, sizeof w.ended);
    run_callers(&w);
    for (int i = 0; i < HOSTS; i++)
        CHECK_EQ(w.ended[i], CALLERS * CALLS);
    end(&w, server);
}

/* ---- Times ---- */

static void is_late(aco_http_request_t *request, void *arg)
{
    (void)arg;
    (void)aco_sleep(10 * ACO_SECOND);
    (void)aco_http_reply(request, 200, NULL, "ok", 2);
}

static void trickles(aco_http_request_t *request, void *arg)
{
    (void)arg;
    if (aco_http_reply_begin(request, 200, NULL, -1) != 0)
        return;
    while (aco_http_reply_write(request, "a", 1) == 0 && aco_http_reply_flush(request) == 0)
        if (aco_sleep(ACO_SECOND) != 0)
            return;
}

static void goes_round(aco_http_request_t *request, void *arg)
{
    (void)arg;
    (void)aco_sleep(ACO_SECOND);
    (void)aco_http_reply_header(request, "Location", "/round");
    (void)aco_http_reply(request, 302, NULL, NULL, 0);
}

/* The call, or reading its body, fails with ETIMEDOUT: after this time, and with this message. */
static void check_late(const aco_http_client_options_t *options, const char *url, int64_t seconds, const char *message)
{
    aco_http_client_t *client = aco_http_client_new(options);
    const int64_t began = aco_now();
    aco_http_response_t *response = aco_http_get(client, url);
    char part[100];
    ssize_t n = response ? 1 : -1;
    while (response && n > 0)
        n = aco_http_response_read(response, part, sizeof part);
    CHECK(n == -1 && errno == ETIMEDOUT);
    if (strcmp(aco_error_message(), message) != 0) {
        fprintf(stderr, "%s: %s\n", url, aco_error_message());
        CHECK(!"the message");
    }
    CHECK_EQ((aco_now() - began) / ACO_SECOND, seconds);
    CHECK(!response || (aco_http_response_read(response, part, 1) == -1 && errno == ETIMEDOUT));
    aco_http_response_end(response);
    aco_http_client_destroy(client);
}

static aco_stream_t *hangs(int fd, const char *host, void *arg)
{
    int error;
    (void)host, (void)arg;
    CHECK(aco_sleep(ACO_FOREVER) == -1);
    error = errno;
    (void)aco_io_close(fd);
    errno = error;
    return NULL;
}

static void ends_in_time(aco_sim_t *sim, void *arg)
{
    static const aco_http_route_t routes[] = {{"GET", "/late", is_late, NULL},
                                              {"GET", "/trickles", trickles, NULL},
                                              {"GET", "/round", goes_round, NULL},
                                              {NULL, NULL, NULL, NULL}};
    const aco_http_client_options_t head = {.head_time = 3 * ACO_SECOND, .total_time = 100 * ACO_SECOND},
                                    total = {.total_time = 5 * ACO_SECOND, .head_time = 50 * ACO_SECOND},
                                    dial = {.connect_time = 2 * ACO_SECOND, .open = hangs};
    world_t w = {0};
    aco_t *server;
    (void)arg;
    begin(&w, routes, sim, &server, NULL);
    check_late(&head, "http://10.0.0.1/late", 3, "aco_http_call: head_time is over");
    check_late(&total, "http://10.0.0.1/late", 5, "aco_http_call: total_time is over");
    check_late(&total, "http://10.0.0.1/trickles", 5, "aco_http_response_read: total_time is over");
    check_late(&total, "http://10.0.0.1/round", 5, "aco_http_call: total_time is over");
    check_late(&dial, "https://10.0.0.1:80/", 2, "aco_http_call: connect_time is over");
    end(&w, server);
}

int main(void)
{
    sim_alarm(60);
    passes(waits_fairly, NULL, 30);
    passes(ends_in_time, NULL, 10);
    return check_result("sim_http_client");
}
