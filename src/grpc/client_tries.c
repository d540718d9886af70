/* The tries of a client's call whose request is one message. */
#include "grpc/grpc_client.h"
#include "service/jitter.h"

#include <stdlib.h>

enum { REFUSALS = 5, FIRST_PAUSE_MS = 10 };
static const char pushback_name[] = "grpc-retry-pushback-ms";
static const int64_t most_grown = 24 * 3600 * ACO_SECOND;

/* Nothing has happened yet. */
static void forget_try(aco__grpc_client_t *c)
{
    aco__grpc_leave(c);
    c->call.has_begun = c->call.peer_compresses = 0;
    c->call.write_error = c->call.read_error = 0;
    c->status = -1;
    c->text = NULL;
    c->has_head = c->is_alone = c->has_ended = c->was_refused = 0;
}

/* The pause that the server asks for, in `text`; less than 0: it wants no retry. */
static int64_t pushback_of(aco__grpc_client_t *c, const char *text)
{
    char *end;
    const long long ms = strtoll(text, &end, 10);
    const int is_number = *text >= '0' && *text <= '9' && !*end && ms <= INT32_MAX;
    return is_number && !aco_grpc_trailer(&c->call, pushback_name, 1, NULL) ? ms * ACO_MILLISECOND : -1;
}

/* A random pause by the policy, whose next one may be longer. */
static int64_t next_pause(aco__grpc_client_t *c)
{
    const aco_grpc_policy_t *policy = c->policy;
    const int64_t longest = policy->longest_pause ? policy->longest_pause : ACO_SECOND;
    const int64_t growth = policy->pause_growth ? policy->pause_growth : 2000;
    const int64_t pause = c->pause ? c->pause : policy->first_pause ? policy->first_pause : 100 * ACO_MILLISECOND;
    const int64_t grown = pause / 1000 * growth + pause % 1000 * growth / 1000;
    c->pause = grown < 1 ? 1 : grown < most_grown ? grown : most_grown;
    return aco__jitter(pause < longest ? pause : longest);
}

/* The pause before the next try; less than 0: there is none. */
static int64_t pause_before(aco__grpc_client_t *c)
{
    const char *text = aco_grpc_trailer(&c->call, pushback_name, 0, NULL);
    const int64_t pushback = text ? pushback_of(c, text) : 0;
    const int is_retried = (c->policy->retried & ACO_GRPC_BIT(c->status)) != 0;
    if ((!is_retried && pushback >= 0) || !aco__grpc_try_failed(c->channel) || pushback < 0 ||
        c->retries + 1 >= c->policy->tries)
        return -1;
    if (!text)
        return next_pause(c);
    c->pause = 0;
    return pushback;
}

/* A try has failed. Whether there is another one, after a pause. Keeps errno if not. */
ACO__SWITCHES static int tries_again(aco__grpc_client_t *c, const char *location)
{
    const int error = errno;
    const int was_refused = c->was_refused && c->refusals < REFUSALS;
    int64_t pause = -1;
    if (was_refused)
        pause = c->refusals ? FIRST_PAUSE_MS * ACO_MILLISECOND << c->refusals : 0;
    else if (c->status > ACO_GRPC_OK && c->policy && c->policy->tries > 1)
        pause = pause_before(c);
    if (pause < 0 || aco_now() >= c->until - pause || aco_sleep_at(pause, location) != 0) {
        errno = error;
        return 0;
    }
    if (was_refused)
        c->refusals++;
    else
        c->retries++;
    forget_try(c);
    return 1;
}

/* 0: the server has begun to answer; -1 and errno. */
ACO__SWITCHES static int try_once(aco__grpc_client_t *c, const void *message, size_t n, const char *location)
{
    int result = aco_grpc_write_at(&c->call, message, n, location);
    if (result == 0)
        result = aco_grpc_write_end_at(&c->call, location);
    return result == 0 || (c->response && errno == EPIPE) ? aco__grpc_await_head(c, location) : -1;
}

int aco_grpc_write_only_at(aco_grpc_call_t *call, const void *message, size_t n, const char *location)
{
    aco__grpc_client_t *c = (aco__grpc_client_t *)(void *)call;
    ACO__MAY_SWITCH("aco_grpc_write_only", location);
    if (c->has_ended)
        return aco__service_fail(EINVAL, "aco_grpc_write_only", "the messages have ended");
    do
        if (try_once(c, message, n, location) == 0)
            return 0;
    while (tries_again(c, location));
    return -1;
}
