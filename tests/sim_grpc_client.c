/* Promises of gRPC's clients, in many orders (include/aco/grpc.h): two servers crash, are suspended and cut off. Each
 * call ends by its deadline, with a right reply or a status; what is not retried is done at most once; and when the
 * faults have ended, calls go to both servers again. */
#include "sim_checks.h"

#include "aco/grpc.h"
#include "aco/io.h"
#include "aco/sim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { CALLERS = 5, CALLS = 12, NUMBERS = 1 << 12 };

static const int64_t limit = 20 * ACO_SECOND;

typedef struct world {
    aco_sim_t *sim;
    aco_grpc_channel_t *channel;
    int numbers;
    unsigned char times[NUMBERS]; /* that a call was served */
} world_t;

/* ---- The servers ---- */

typedef struct greeter { /* a node's */
    world_t *w;
    char name;
} greeter_t;

/* Serves a call that must not be served twice. Replies with the server's name. */
static int once(aco_grpc_call_t *call, void *arg)
{
    const greeter_t *g = arg;
    const void *message;
    size_t n;
    int number;
    if (aco_grpc_read_only(call, &message, &n) != 0 || n != sizeof number)
        return ACO_GRPC_FROM_ERRNO;
    memcpy(&number, message, n);
    CHECK(number >= 0 && number < g->w->numbers);
    CHECK_EQ(++g->w->times[number], 1);
    (void)aco_sleep((int64_t)aco_sim_random(g->w->sim, 50) * ACO_MILLISECOND);
    return aco_grpc_write(call, &g->name, 1) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

static int chat(aco_grpc_call_t *call, void *arg)
{
    const void *message;
    size_t n;
    int more;
    (void)arg;
    while ((more = aco_grpc_read(call, &message, &n)) > 0)
        if (aco_grpc_write(call, message, n) != 0)
            return ACO_GRPC_FROM_ERRNO;
    return more == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

/* It may be busy: then the call is to be made again. */
static int maybe(aco_grpc_call_t *call, void *arg)
{
    const greeter_t *g = arg;
    if (aco_sim_random(g->w->sim, 2))
        return aco_grpc_fail(call, ACO_GRPC_UNAVAILABLE, "busy");
    return chat(call, arg);
}

/* Sends until the client goes. */
static int pours(aco_grpc_call_t *call, void *arg)
{
    static const char bytes[60000];
    (void)arg;
    while (aco_grpc_write(call, bytes, sizeof bytes) == 0)
        ;
    return ACO_GRPC_FROM_ERRNO;
}

static void *serve(void *arg)
{
    greeter_t *g = arg;
    aco_grpc_server_t *server = aco_grpc_server_new(NULL);
    int listener = aco_io_listen("tcp", "0.0.0.0", "50051", NULL);
    CHECK(listener >= 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Once", once, g), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Chat", chat, g), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Maybe", maybe, g), 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Pours", pours, g), 0);
    (void)aco_grpc_serve(listener, server, NULL);
    aco_grpc_server_destroy(server);
    return NULL;
}

/* ---- The clients ---- */

/* Calls this method with a number. Returns the first byte of the reply; -1: it has failed, with this status. */
static int call_with(world_t *w, const char *path, int number, int *status)
{
    aco_grpc_call_t *call = aco_grpc_call_new(w->channel, path, NULL);
    const void *message;
    size_t n;
    int result = -1;
    if (aco_grpc_write_only(call, &number, sizeof number) == 0 && aco_grpc_read_only(call, &message, &n) == 0) {
        CHECK(n >= 1);
        result = *(const unsigned char *)message;
    }
    *status = aco_grpc_finish(call);
    CHECK_EQ(*status == ACO_GRPC_OK, result >= 0);
    aco_grpc_call_destroy(call);
    return result;
}

static void talk(world_t *w)
{
    aco_grpc_call_t *call = aco_grpc_call_new(w->channel, "/test.Test/Chat", NULL);
    const void *message;
    size_t n;
    int i = 0, got = 0;
    for (; i < 5 && aco_grpc_write(call, &i, sizeof i) == 0 && aco_grpc_read(call, &message, &n) > 0; i++) {
        CHECK(n == sizeof i && memcmp(message, &i, n) == 0);
        got++;
    }
    if (aco_grpc_finish(call) == ACO_GRPC_OK)
        CHECK_EQ(got, 5);
    aco_grpc_call_destroy(call);
}

static void *calls(void *arg)
{
    world_t *w = arg;
    for (int i = 0; i < CALLS; i++) {
        const int64_t until = aco_after(limit);
        aco_scope_t scope;
        int status;
        CHECK_EQ(aco_scope_begin(&scope, until), 0);
        switch (aco_sim_random(w->sim, 3)) {
        case 0:
            (void)call_with(w, "/test.Test/Once", w->numbers++, &status);
            break;
        case 1:
            (void)call_with(w, "/test.Test/Maybe", 7, &status);
            break;
        default:
            talk(w);
        }
        (void)aco_scope_end(&scope);
        CHECK(aco_now() <= until + ACO_SECOND);
        (void)aco_sleep((int64_t)aco_sim_random(w->sim, 2000) * ACO_MILLISECOND);
    }
    return NULL;
}

static void run_callers(world_t *w)
{
    aco_t *tasks[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        CHECK((tasks[i] = aco_spawn(calls, w, NULL)) != NULL);
    for (int i = 0; i < CALLERS; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
}

/* Calls reach both servers in the end. */
static void reaches_both(world_t *w)
{
    int has_a = 0, has_b = 0, status;
    for (int i = 0; i < 100 && !(has_a && has_b); i++) {
        const int name = call_with(w, "/test.Test/Once", w->numbers++, &status);
        has_a |= name == 'a';
        has_b |= name == 'b';
        (void)aco_sleep(10 * ACO_SECOND);
    }
    CHECK(has_a && has_b);
}

static void survives(aco_sim_t *sim, void *arg)
{
    static const aco_grpc_policy_t policies[] = {
        {.method = "/test.Test/Maybe", .tries = 4, .retried = ACO_GRPC_BIT(ACO_GRPC_UNAVAILABLE), .wait_for_ready = 1}};
    static const aco_grpc_channel_options_t options = {.round_robin = 1,
                                                       .policies = policies,
                                                       .policy_count = 1,
                                                       .retry_tokens = -1,
                                                       .connect_time = 5 * ACO_SECOND,
                                                       .longest_pause = 20 * ACO_SECOND,
                                                       .ping_time = 5 * ACO_SECOND};
    static world_t w; /* too large for the stack */
    static greeter_t a, b;
    (void)arg;
    memset(&w, 0, sizeof w);
    w.sim = sim;
    a = (greeter_t){&w, 'a'};
    b = (greeter_t){&w, 'b'};
    CHECK(aco_sim_node(sim, "a", "10.0.0.1", serve, &a) && aco_sim_node(sim, "b", "10.0.0.2", serve, &b));
    CHECK_EQ(aco_sim_name(sim, "greeter", "10.0.0.1,10.0.0.2"), 0);
    w.channel = aco_grpc_channel_new("greeter:50051", &options);
    CHECK(w.channel != NULL);
    CHECK_EQ(aco_sim_nemesis(sim, ACO_SIM_FAULT_CRASH | ACO_SIM_FAULT_SUSPEND | ACO_SIM_FAULT_PARTITION |
                                      ACO_SIM_FAULT_ONE_WAY | ACO_SIM_FAULT_SLOW | ACO_SIM_FAULT_LOSS),
             0);
    run_callers(&w);
    CHECK_EQ(aco_sim_nemesis(sim, 0), 0);
    reaches_both(&w);
    aco_grpc_channel_destroy(w.channel);
}

/* ---- Looking up and dialing, which take their time ---- */

static world_t small; /* of the scenarios below: too large for the stack */
static greeter_t greeter_a, greeter_b;

static void begin_small(aco_sim_t *sim, const char *target, const aco_grpc_channel_options_t *options)
{
    static const aco_sim_link_t slow = {.latency = {100 * ACO_MILLISECOND, 100 * ACO_MILLISECOND}};
    memset(&small, 0, sizeof small);
    small.sim = sim;
    greeter_a = (greeter_t){&small, 'a'};
    greeter_b = (greeter_t){&small, 'b'};
    CHECK(aco_sim_node(sim, "a", "10.0.0.1", serve, &greeter_a) &&
          aco_sim_node(sim, "b", "10.0.0.2", serve, &greeter_b));
    CHECK_EQ(aco_sim_link(sim, "scenario", "scenario", &slow), 0); /* so names are looked up in 200 ms */
    small.channel = aco_grpc_channel_new(target, options);
    CHECK(small.channel != NULL);
}

static const aco_grpc_channel_options_t in_turn = {.round_robin = 1};

/* Makes a call within this time. Its status. */
static int status_within(int64_t time)
{
    aco_scope_t scope;
    int status;
    CHECK_EQ(aco_scope_begin(&scope, aco_after(time)), 0);
    (void)call_with(&small, "/test.Test/Chat", 1, &status);
    (void)aco_scope_end(&scope);
    return status;
}

static void *is_patient(void *arg)
{
    (void)arg;
    CHECK_EQ(status_within(limit), ACO_GRPC_OK);
    return NULL;
}

/* The last call of an address ends after a look-up has not found the address, while another name is looked up. */
static void ends_in_look_up(aco_sim_t *sim, void *arg)
{
    aco_grpc_call_t *call;
    aco_t *task;
    int number = 7;
    (void)arg;
    begin_small(sim, "alpha:50051,beta:50051", &in_turn);
    CHECK_EQ(aco_sim_name(sim, "alpha", "10.0.0.1"), 0); /* beta is unknown, so both are looked up again */
    call = aco_grpc_call_new(small.channel, "/test.Test/Chat", NULL);
    CHECK_EQ(aco_grpc_write(call, &number, sizeof number), 0);
    CHECK_EQ(aco_sleep(31 * ACO_SECOND), 0);
    CHECK_EQ(aco_sim_name(sim, "alpha", "10.0.0.2"), 0);
    CHECK((task = aco_spawn(is_patient, NULL, NULL)) != NULL);
    CHECK_EQ(aco_sleep(300 * ACO_MILLISECOND), 0);
    aco_grpc_call_destroy(call);
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK_EQ(status_within(limit), ACO_GRPC_OK);
    aco_grpc_channel_destroy(small.channel);
}

static void *is_impatient(void *arg)
{
    (void)arg;
    CHECK_EQ(status_within(50 * ACO_MILLISECOND), ACO_GRPC_DEADLINE_EXCEEDED);
    return NULL;
}

/* A call's deadline passes while it looks a name up, for which others wait, too. */
static void is_late_in_look_up(aco_sim_t *sim, void *arg)
{
    aco_t *impatient, *patient;
    (void)arg;
    begin_small(sim, "alpha:50051", &in_turn);
    CHECK_EQ(aco_sim_name(sim, "alpha", "10.0.0.1"), 0);
    CHECK((impatient = aco_spawn(is_impatient, NULL, NULL)) != NULL);
    CHECK_EQ(aco_sleep(10 * ACO_MILLISECOND), 0);
    CHECK((patient = aco_spawn(is_patient, NULL, NULL)) != NULL);
    CHECK_EQ(aco_join(impatient, NULL), 0);
    CHECK_EQ(aco_join(patient, NULL), 0);
    CHECK_EQ(status_within(limit), ACO_GRPC_OK);
    aco_grpc_channel_destroy(small.channel);
}

/* Dialing takes longer than the pause before the next try: a call that does not wait tries each address once. */
static void ends_unreached(aco_sim_t *sim, void *arg)
{
    static const aco_grpc_channel_options_t options = {
        .connect_time = ACO_SECOND, .first_pause = 50 * ACO_MILLISECOND, .longest_pause = 100 * ACO_MILLISECOND};
    const int64_t begin = aco_now();
    (void)arg;
    begin_small(sim, "10.0.0.1:50051,10.0.0.2:50051", &options);
    CHECK_EQ(aco_sim_partition(sim, "scenario", "a", 1), 0);
    CHECK_EQ(aco_sim_partition(sim, "scenario", "b", 1), 0);
    CHECK_EQ(status_within(limit), ACO_GRPC_UNAVAILABLE);
    CHECK_EQ(aco_now() - begin, 2 * ACO_SECOND);
    CHECK_EQ(aco_sim_partition(sim, "scenario", "b", 0), 0);
    CHECK_EQ(aco_sleep(ACO_SECOND), 0);
    CHECK_EQ(status_within(limit), ACO_GRPC_OK);
    aco_grpc_channel_destroy(small.channel);
}

/* ---- Ends ---- */

/* What is on its way to calls that were cancelled is not the server's fault: others on the connection go on. */
static void cancels_spare_others(aco_sim_t *sim, void *arg)
{
    static const aco_sim_link_t slow = {.latency = {20 * ACO_MILLISECOND, 20 * ACO_MILLISECOND}};
    const int number = 7;
    const void *message;
    aco_grpc_call_t *other;
    size_t n;
    (void)arg;
    begin_small(sim, "10.0.0.1:50051", NULL);
    CHECK_EQ(aco_sim_link(sim, "*", "*", &slow), 0);
    other = aco_grpc_call_new(small.channel, "/test.Test/Chat", NULL);
    CHECK_EQ(aco_grpc_write(other, &number, sizeof number), 0);
    CHECK(aco_grpc_read(other, &message, &n) > 0);
    for (int i = 0; i < 20; i++) {
        aco_grpc_call_t *call = aco_grpc_call_new(small.channel, "/test.Test/Pours", NULL);
        CHECK_EQ(aco_grpc_write_only(call, "", 0), 0);
        for (int k = 0; k < 3; k++)
            CHECK(aco_grpc_read(call, &message, &n) > 0);
        aco_grpc_call_destroy(call);
    }
    CHECK_EQ(aco_sleep(ACO_SECOND), 0);
    CHECK_EQ(aco_grpc_write_only(other, &number, sizeof number), 0);
    CHECK(aco_grpc_read(other, &message, &n) > 0);
    CHECK_EQ(aco_grpc_finish(other), ACO_GRPC_OK);
    aco_grpc_call_destroy(other);
    aco_grpc_channel_destroy(small.channel);
}

static int takes_a_second(aco_grpc_call_t *call, void *arg)
{
    (void)arg;
    (void)aco_sleep(ACO_SECOND);
    return aco_grpc_write(call, "late", 4) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

static void *serve_until_cancelled(void *scope)
{
    static const aco_http_server_options_t options = {.drain_idle_time = 1};
    aco_grpc_server_t *server = aco_grpc_server_new(NULL);
    int listener = aco_io_listen("tcp", "127.0.0.1", "50051", NULL);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Slow", takes_a_second, NULL), 0);
    CHECK_EQ(aco_scope_begin(scope, ACO_FOREVER), 0);
    (void)aco_grpc_serve(listener, server, &options);
    (void)aco_scope_end(scope);
    aco_grpc_server_destroy(server);
    return NULL;
}

static void *stop_soon(void *scope)
{
    CHECK_EQ(aco_sleep(100 * ACO_MILLISECOND), 0);
    aco_scope_cancel(scope);
    return NULL;
}

/* A connection with calls does not wake, while its server ends, for the time that idle ones have. */
static void leaves_in_few_turns(aco_sim_t *sim, void *arg)
{
    aco_io_stats_t before, after;
    aco_scope_t scope;
    aco_grpc_channel_t *channel;
    aco_grpc_call_t *call;
    const void *message;
    size_t n;
    aco_t *task, *stops;
    (void)sim;
    (void)arg;
    CHECK((task = aco_spawn(serve_until_cancelled, &scope, NULL)) != NULL);
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    channel = aco_grpc_channel_new("127.0.0.1:50051", NULL);
    call = aco_grpc_call_new(channel, "/test.Test/Slow", NULL);
    CHECK_EQ(aco_io_stats(&before), 0);
    CHECK((stops = aco_spawn(stop_soon, &scope, NULL)) != NULL);
    CHECK_EQ(aco_grpc_write_only(call, "", 0), 0);
    CHECK_EQ(aco_grpc_read_only(call, &message, &n), 0);
    CHECK_EQ(aco_grpc_finish(call), ACO_GRPC_OK);
    CHECK_EQ(aco_io_stats(&after), 0);
    CHECK(after.polls - before.polls < 100);
    aco_grpc_call_destroy(call);
    aco_grpc_channel_destroy(channel);
    CHECK_EQ(aco_join(stops, NULL), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
}

#define PASSES(scenario, times) check_passes(#scenario, scenario, NULL, times)

int main(void)
{
    sim_alarm(60);
    PASSES(survives, sim_runs(20));
    PASSES(ends_in_look_up, 2);
    PASSES(is_late_in_look_up, 2);
    PASSES(ends_unreached, 2);
    PASSES(cancels_spare_others, 2);
    PASSES(leaves_in_few_turns, 2);
    return check_result("sim_grpc");
}
