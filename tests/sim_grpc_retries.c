/* Which calls of gRPC's clients are made again, and when, by a service config: the rules of gRFC A6, a row each, with a
 * server that plays a part and in virtual time (docs/grpc.md, include/aco/grpc.h). */
#include "sim_checks.h"

#include "aco/grpc.h"
#include "aco/io.h"
#include "aco/sim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 6, LATENCY_MS = 1, LATE_MS = 1 };

/* What the server does with a try. */
typedef struct step {
    int status;
    const char *pushback; /* NULL: none */
    int speaks; /* it sends a message first */
} step_t;

/* A call: what the server does with its tries, and how it ends. */
typedef struct row {
    const char *what, *config, *method;
    step_t steps[STEPS];
    int status, tries;
    int pauses[STEPS]; /* ms before each retry, at most; less than 0: exactly */
} row_t;

/* ---- The server ---- */

static const row_t *played;
static int tries;
static int64_t last_end;
static int64_t longest; /* pause before a first retry, of all runs */

static void check_try(aco_grpc_call_t *call)
{
    const char *previous = aco_grpc_metadata(call, "grpc-previous-rpc-attempts", 0, NULL);
    const int64_t ms = (aco_now() - last_end) / ACO_MILLISECOND - 2L * LATENCY_MS;
    const int most = tries ? played->pauses[tries - 1] : 0;
    char number[8];
    (void)snprintf(number, sizeof number, "%d", tries);
    if (tries)
        CHECK(previous && strcmp(previous, number) == 0);
    else
        CHECK(previous == NULL);
    if (!tries)
        return;
    CHECK(ms <= (most < 0 ? -most : most) + LATE_MS && (most >= 0 || ms >= -most));
    longest = tries == 1 && most > 0 && ms > longest ? ms : longest;
}

static int plays(aco_grpc_call_t *call, void *arg)
{
    const step_t *step = &played->steps[tries];
    const void *message;
    size_t n;
    (void)arg;
    check_try(call);
    CHECK(tries++ < STEPS);
    CHECK(aco_grpc_read(call, &message, &n) > 0);
    if (step->pushback)
        CHECK_EQ(aco_grpc_add_trailer(call, "grpc-retry-pushback-ms", step->pushback, strlen(step->pushback)), 0);
    if (step->speaks || step->status == ACO_GRPC_OK)
        CHECK_EQ(aco_grpc_write(call, "reply", 5), 0);
    last_end = aco_now();
    return step->status;
}

static void *serve(void *arg)
{
    aco_grpc_server_t *server = aco_grpc_server_new(NULL);
    const int listener = aco_io_listen("tcp", "0.0.0.0", "50051", NULL);
    (void)arg;
    CHECK(listener >= 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Retried", plays, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Never", plays, NULL), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Other/Any", plays, NULL), 0);
    (void)aco_grpc_serve(listener, server, NULL);
    aco_grpc_server_destroy(server);
    return NULL;
}

/* ---- Calls ---- */

static aco_grpc_channel_t *new_channel(const char *target, const char *config)
{
    const aco_grpc_channel_options_t options = {.service_config = config};
    aco_grpc_channel_t *channel = aco_grpc_channel_new(target, &options);
    if (!channel)
        fprintf(stderr, "%s\n", aco_error_message());
    CHECK(channel != NULL);
    return channel;
}

/* Its status. */
static int call_once(aco_grpc_channel_t *channel, const row_t *row)
{
    aco_grpc_call_t *call = aco_grpc_call_new(channel, row->method ? row->method : "/test.Test/Retried", NULL);
    const void *message;
    size_t n;
    int status;
    played = row;
    tries = 0;
    if (aco_grpc_write_only(call, "request", 7) == 0)
        (void)aco_grpc_read_only(call, &message, &n);
    status = aco_grpc_finish(call);
    aco_grpc_call_destroy(call);
    return status;
}

static void expect_row(aco_grpc_channel_t *channel, const row_t *row)
{
    const int status = call_once(channel, row);
    if (status != row->status || tries != row->tries)
        fprintf(stderr, "%s: status %d, tries %d\n", row->what, status, tries);
    CHECK_EQ(status, row->status);
    CHECK_EQ(tries, row->tries);
}

/* ---- The rules ---- */

#define RETRY(attempts) \
    "\"retryPolicy\": {\"maxAttempts\": " attempts ", \"initialBackoff\": \".1s\", \"maxBackoff\": \"0.3s\"," \
    " \"backoffMultiplier\": 2, \"retryableStatusCodes\": [\"UNAVAILABLE\", 10]}"

static const char four[] = "{\"methodConfig\": [\n"
                           "  {\"name\": [{}], \"timeout\": \"1s\", " RETRY(
                               "2") "},\n"
                                    "  {\"name\": [{\"service\": \"test.Test\"}], " RETRY(
                                        "4") "},\n"
                                             "  {\"name\": [{\"service\": \"test.Test\", \"method\": \"Never\"}]}\n"
                                             "]}";
static const char nine[] = "{\"methodConfig\": [{\"name\": [{\"service\": \"test.Test\"}], " RETRY("9") "}]}";

enum { OK = ACO_GRPC_OK, BUSY = ACO_GRPC_UNAVAILABLE, ABORTED = ACO_GRPC_ABORTED, NO = ACO_GRPC_NOT_FOUND };

static const row_t rows[] = {
    {"a success is not retried", four, NULL, {{OK, NULL, 0}}, OK, 1, {0}},
    {"retries until it succeeds", four, NULL, {{BUSY, NULL, 0}, {BUSY, NULL, 0}, {OK, NULL, 0}}, OK, 3, {100, 200}},
    {"at most maxAttempts, pauses at most maxBackoff",
     four,
     NULL,
     {{BUSY, NULL, 0}, {BUSY, NULL, 0}, {BUSY, NULL, 0}, {BUSY, NULL, 0}},
     BUSY,
     4,
     {100, 200, 300}},
    {"maxAttempts above 5 is 5",
     nine,
     NULL,
     {{BUSY, NULL, 0}, {BUSY, NULL, 0}, {BUSY, NULL, 0}, {BUSY, NULL, 0}, {BUSY, NULL, 0}},
     BUSY,
     5,
     {100, 200, 300, 300}},
    {"only statuses that are listed", four, NULL, {{NO, NULL, 0}}, NO, 1, {0}},
    {"a status by its number", four, NULL, {{ABORTED, NULL, 0}, {OK, NULL, 0}}, OK, 2, {100}},
    {"no config of the channel's method", nine, "/test.Other/Any", {{BUSY, NULL, 0}}, BUSY, 1, {0}},
    {"the config of all", four, "/test.Other/Any", {{BUSY, NULL, 0}, {OK, NULL, 0}}, OK, 2, {100}},
    {"the config of the method counts alone", four, "/test.Test/Never", {{BUSY, NULL, 0}}, BUSY, 1, {0}},
    {"response headers commit", four, NULL, {{BUSY, NULL, 1}}, BUSY, 1, {0}},
    {"pushback", four, NULL, {{BUSY, "5000", 0}, {OK, NULL, 0}}, OK, 2, {-5000}},
    {"pushback at once", four, NULL, {{BUSY, "0", 0}, {OK, NULL, 0}}, OK, 2, {0}},
    {"pauses grow anew behind a pushback",
     four,
     NULL,
     {{BUSY, NULL, 0}, {BUSY, "1000", 0}, {BUSY, NULL, 0}, {OK, NULL, 0}},
     OK,
     4,
     {100, -1000, 100}},
    {"pushback counts as a try", four, "/test.Other/Any", {{BUSY, "1", 0}, {BUSY, "1", 0}}, BUSY, 2, {-1}},
    {"pushback: no retry", four, NULL, {{BUSY, "-1", 0}}, BUSY, 1, {0}},
    {"pushback that is no number", four, NULL, {{BUSY, "soon", 0}}, BUSY, 1, {0}},
    {"pushback of no 32 bits", four, NULL, {{BUSY, "2147483648", 0}}, BUSY, 1, {0}},
    {"pushback does not make a status one that is retried", four, NULL, {{NO, "1", 0}}, NO, 1, {0}},
    {"no retry behind the deadline", four, "/test.Other/Any", {{BUSY, "2000", 0}}, BUSY, 1, {0}},
};

static void begin(aco_sim_t *sim)
{
    static const aco_sim_link_t link = {.latency = {LATENCY_MS * ACO_MILLISECOND, LATENCY_MS * ACO_MILLISECOND}};
    CHECK(aco_sim_node(sim, "a", "10.0.0.1", serve, NULL) && aco_sim_node(sim, "b", "10.0.0.2", serve, NULL));
    CHECK_EQ(aco_sim_link(sim, "scenario", "a", &link), 0);
    CHECK_EQ(aco_sim_link(sim, "a", "scenario", &link), 0);
    CHECK_EQ(aco_sim_name(sim, "both", "10.0.0.1,10.0.0.2"), 0);
}

/* Each on a channel of its own, which has all tokens. */
static void obeys_rules(aco_sim_t *sim, void *arg)
{
    (void)arg;
    begin(sim);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        aco_grpc_channel_t *channel = new_channel("10.0.0.1:50051", rows[i].config);
        expect_row(channel, &rows[i]);
        aco_grpc_channel_destroy(channel);
    }
}

/* ---- The budget ---- */

static const row_t wins = {"a success", NULL, "/test.Test/Never", {{OK, NULL, 0}}, OK, 1, {0}};
static const row_t refused = {"not retried", NULL, NULL, {{NO, NULL, 0}}, NO, 1, {0}};
static const row_t twice = {"one retry", NULL, NULL, {{BUSY, NULL, 0}, {BUSY, NULL, 0}, {BUSY, NULL, 0}},
                            BUSY,        2,    {100}};
static const row_t once = {"no retry", NULL, NULL, {{BUSY, NULL, 0}}, BUSY, 1, {0}};
static const row_t pushed = {"no retry wanted", NULL, NULL, {{NO, "-1", 0}}, NO, 1, {0}};

static void talks(aco_grpc_channel_t *channel)
{
    aco_grpc_call_t *call = aco_grpc_call_new(channel, "/test.Test/Never", NULL);
    played = &wins;
    tries = 0;
    CHECK_EQ(aco_grpc_write(call, "a", 1), 0);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
    aco_grpc_call_destroy(call);
}

/* Four tokens, of which more than two must be there. */
static void has_budget(aco_sim_t *sim, void *arg)
{
    static const char config[] = "{\"retryThrottling\": {\"maxTokens\": 4, \"tokenRatio\": 0.5009}, \"methodConfig\": ["
                                 "{\"name\": [{\"service\": \"test.Test\"}], " RETRY(
                                     "5") "},"
                                          "{\"name\": [{\"service\": \"test.Test\", \"method\": \"Never\"}]}]}";
    aco_grpc_channel_t *channel;
    (void)arg;
    begin(sim);
    channel = new_channel("10.0.0.1:50051", config);
    for (int i = 0; i < 9; i++)
        expect_row(channel, &refused); /* which costs nothing */
    expect_row(channel, &twice); /* 4, 3, 2 */
    expect_row(channel, &once); /* 1 */
    for (int i = 0; i < 3; i++)
        expect_row(channel, &wins); /* 2.5 */
    expect_row(channel, &once); /* 1.5 */
    for (int i = 0; i < 3; i++)
        talks(channel); /* 3 */
    expect_row(channel, &pushed); /* 2 */
    expect_row(channel, &wins); /* 2.5 */
    expect_row(channel, &wins); /* 3 */
    expect_row(channel, &wins); /* 3.5 */
    expect_row(channel, &twice); /* 2.5, 1.5 */
    aco_grpc_channel_destroy(channel);
}

/* ---- What else is in it ---- */

/* A message is too long for the config: nothing is sent, or the call ends. */
static void has_limits(aco_grpc_channel_t *channel)
{
    aco_grpc_call_t *call = aco_grpc_call_new(channel, "/test.Test/Retried", NULL);
    played = &wins;
    tries = 0;
    CHECK_EQ(aco_grpc_write(call, "12345678", 8), -1);
    CHECK_EQ(errno, EMSGSIZE);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_RESOURCE_EXHAUSTED);
    CHECK_EQ(tries, 0);
    aco_grpc_call_destroy(call);
    played = &(row_t){"too long a reply", NULL, NULL, {{OK, NULL, 0}}, ACO_GRPC_RESOURCE_EXHAUSTED, 1, {0}};
    expect_row(channel, played);
}

/* A call that waits for its server, whose name is not known yet. */
static void *waits(void *channel)
{
    played = &wins;
    CHECK_EQ(call_once(channel, played), ACO_GRPC_OK);
    return NULL;
}

static void has_all_fields(aco_sim_t *sim, void *arg)
{
    static const char config[] =
        "{\"loadBalancingConfig\": [{\"grpclb\": {\"childPolicy\": [{\"pick_first\": null}]}}, {\"round_robin\": "
        "{}}],\n"
        "\"methodConfig\": [{\"name\": [{\"service\": \"test.Test\", \"method\": \"Retried\"}],"
        " \"maxRequestMessageBytes\": 7, \"maxResponseMessageBytes\": 4},"
        "{\"waitForReady\": true, \"name\": [{\"service\": \"test.Test\"}], \"timeout\": \"1000s\"}],"
        "\"healthCheckConfig\": {\"serviceName\": \"\\ud83d\\ude00 \\u00e9 \\u20ac\"}, \"other\": [1.5e3, true, null]}";
    aco_grpc_channel_t *channel;
    aco_t *task;
    (void)arg;
    begin(sim);
    channel = new_channel("both:50051", config);
    has_limits(channel);
    aco_grpc_channel_destroy(channel);
    channel = new_channel("late:50051", config);
    CHECK((task = aco_spawn(waits, channel, NULL)) != NULL);
    CHECK_EQ(aco_sleep(ACO_SECOND), 0);
    CHECK_EQ(aco_sim_name(sim, "late", "10.0.0.1"), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    aco_grpc_channel_destroy(channel);
}

#define PASSES(scenario, times) check_passes(#scenario, scenario, NULL, times)

int main(void)
{
    sim_alarm(60);
    PASSES(obeys_rules, sim_runs(10));
    CHECK(longest > 50 && longest <= 100 + LATE_MS);
    PASSES(has_budget, 2);
    PASSES(has_all_fields, 2);
    return check_result("sim_grpc_retries");
}
