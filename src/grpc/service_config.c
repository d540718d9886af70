/* A service config, the JSON that says how a channel's calls are made: gRPC's service_config.proto, gRFC A6. */
#include "grpc/service_config.h"

#include "grpc/json_reader.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_TEXT = 1 << 16, /* bytes */
    MOST_NAME = 512, /* of a service, of a method */
    MOST_WORD = 64,
    THOUSANDTHS = 1000
};

/* The text is read twice: first to count, then, when there is memory for the policies, to fill them. */
typedef struct reader {
    aco__json_t json;
    aco__grpc_config_t *config;
    const char *field; /* the innermost one that a fault is in; NULL: none that is known */
    char *texts; /* where the next one is put; NULL: they are counted */
    aco_grpc_policy_t policy; /* of the method config that is read */
    char service[MOST_NAME], method[MOST_NAME]; /* of the name that is read */
} reader_t;

/* ---- Objects ---- */

typedef struct member {
    const char *name;
    void (*read)(reader_t *r);
    int must_be; /* there */
} member_t;

/* Reads an object; members that are not known are skipped. */
static void read_members(reader_t *r, const member_t *members, size_t n)
{
    const char *begin = r->json.at;
    unsigned seen = 0;
    int count = 0;
    char key[JSON_KEY];
    while (aco__json_next(&r->json, '{', &count, key)) {
        size_t i = 0;
        while (i < n && strcmp(members[i].name, key) != 0)
            i++;
        if (i == n) {
            aco__json_skip(&r->json);
            continue;
        }
        if (seen & 1U << i)
            aco__json_fail(&r->json, "it is there twice");
        seen |= 1U << i;
        members[i].read(r);
        if (r->json.fault && !r->field)
            r->field = members[i].name;
    }
    for (size_t i = 0; i < n && !r->json.fault; i++)
        if (members[i].must_be && !(seen & 1U << i)) {
            r->json.at = begin;
            r->field = members[i].name;
            aco__json_fail(&r->json, "it is missing in this object");
        }
}
#define READ_MEMBERS(r, members) read_members(r, members, sizeof(members) / sizeof(members)[0])

/* ---- Values ---- */

/* A fault is where the value begins. */
static void fail_at(reader_t *r, const char *at, const char *reason)
{
    if (!r->json.fault)
        r->json.at = at;
    aco__json_fail(&r->json, reason);
}

static const char *begin_value(reader_t *r)
{
    (void)aco__json_peek(&r->json);
    return r->json.at;
}

/* A whole number of at least `least`; a larger one than `most` counts as `most`. */
static int64_t read_whole(reader_t *r, int64_t least, int64_t most, const char *reason)
{
    const char *at = begin_value(r);
    const double number = aco__json_number(&r->json);
    int64_t whole;
    if (r->json.fault)
        return least;
    if (number >= (double)most && (number >= 1e18 || (double)(int64_t)number == number))
        return most;
    whole = number >= (double)least && number < (double)most ? (int64_t)number : least - 1;
    if (whole >= least && (double)whole == number)
        return whole;
    fail_at(r, at, reason);
    return least;
}

/* A whole number from `least` to `most`. */
static int read_between(reader_t *r, int64_t least, int64_t most, const char *reason)
{
    const char *at = begin_value(r);
    const int64_t whole = read_whole(r, least, most + 1, reason);
    if (whole <= most)
        return (int)whole;
    fail_at(r, at, reason);
    return (int)least;
}

/* A number above 0 as thousandths, at most so many. */
static int read_thousandths(reader_t *r, int most)
{
    const char *at = begin_value(r);
    const double number = aco__json_number(&r->json) * THOUSANDTHS + 1e-6; /* 0.1 is a little less or more */
    if (number < 1)
        fail_at(r, at, "a number of at least 0.001 is due");
    return r->json.fault ? 1 : number < most ? (int)number : most;
}

/* The ns of "1.5s"; less than 0: it is none. */
static int64_t ns_of(const char *text)
{
    const size_t whole = strspn(text, "0123456789");
    const char *point = text + whole;
    const size_t places = *point == '.' ? strspn(point + 1, "0123456789") : 0;
    int64_t seconds = 0, ns = 0;
    if (strcmp(*point == '.' ? point + 1 + places : point, "s") != 0 || whole + places == 0 || places > 9 || whole > 12)
        return -1;
    for (size_t i = 0; i < whole; i++)
        seconds = 10 * seconds + (text[i] - '0');
    for (size_t i = 1; i <= 9; i++)
        ns = 10 * ns + (i <= places ? point[i] - '0' : 0);
    return seconds < INT64_MAX / ACO_SECOND ? seconds * ACO_SECOND + ns : INT64_MAX;
}

static int64_t read_duration(reader_t *r, int64_t least, int64_t most)
{
    const char *at = begin_value(r);
    char text[MOST_WORD];
    int64_t ns;
    aco__json_string(&r->json, text, sizeof text);
    ns = r->json.fault ? least : ns_of(text);
    if (ns < least)
        fail_at(r, at, least ? "a time above 0 is due, as \"0.5s\"" : "a time is due, as \"0.5s\"");
    return r->json.fault ? least : ns < most ? ns : most;
}

/* ---- Retries ---- */

static void read_attempts(reader_t *r)
{
    r->policy.tries = (int)read_whole(r, 2, GRPC_MOST_TRIES, "a whole number of at least 2 is due");
}

static const int64_t most_pause = 24 * 3600 * ACO_SECOND;

static void read_first_pause(reader_t *r)
{
    r->policy.first_pause = read_duration(r, 1, most_pause);
}

static void read_longest_pause(reader_t *r)
{
    r->policy.longest_pause = read_duration(r, 1, most_pause);
}

static void read_growth(reader_t *r)
{
    r->policy.pause_growth = read_thousandths(r, THOUSANDTHS * THOUSANDTHS);
}

/* A status, by its name or its number. */
static int read_status(reader_t *r)
{
    const char *at = begin_value(r);
    char name[MOST_WORD];
    if (aco__json_peek(&r->json) != '"')
        return read_between(r, 0, ACO_GRPC_UNAUTHENTICATED, "a status is due");
    aco__json_string(&r->json, name, sizeof name);
    for (int status = 0; !r->json.fault && status <= ACO_GRPC_UNAUTHENTICATED; status++)
        if (strcmp(name, aco_grpc_status_name(status)) == 0)
            return status;
    fail_at(r, at, "there is no such status");
    return 0;
}

static void read_retried(reader_t *r)
{
    const char *at = begin_value(r);
    char key[JSON_KEY];
    int count = 0;
    while (aco__json_next(&r->json, '[', &count, key))
        r->policy.retried |= ACO_GRPC_BIT(read_status(r));
    if (!count)
        fail_at(r, at, "at least one status is due");
}

static void read_retry_policy(reader_t *r)
{
    static const member_t members[] = {{"maxAttempts", read_attempts, 1},
                                       {"initialBackoff", read_first_pause, 1},
                                       {"maxBackoff", read_longest_pause, 1},
                                       {"backoffMultiplier", read_growth, 1},
                                       {"retryableStatusCodes", read_retried, 1}};
    READ_MEMBERS(r, members);
}

static void read_hedging_policy(reader_t *r)
{
    aco__json_fail(&r->json, "calls are not hedged");
}

static void read_max_tokens(reader_t *r)
{
    r->config->retry_tokens = read_between(r, 1, 1000, "a whole number of 1 to 1000 is due");
}

static void read_token_ratio(reader_t *r)
{
    r->config->retry_share = read_thousandths(r, THOUSANDTHS * THOUSANDTHS);
}

static void read_throttling(reader_t *r)
{
    static const member_t members[] = {{"maxTokens", read_max_tokens, 1}, {"tokenRatio", read_token_ratio, 1}};
    READ_MEMBERS(r, members);
}

/* ---- Method configs ---- */

static void read_service_name(reader_t *r)
{
    aco__json_string(&r->json, r->service, sizeof r->service);
}

static void read_method_name(reader_t *r)
{
    aco__json_string(&r->json, r->method, sizeof r->method);
}

/* Puts "/service/method", or less of it, behind the other texts, or counts it. */
static const char *put_path(reader_t *r)
{
    const size_t service_n = strlen(r->service), method_n = strlen(r->method), n = service_n + method_n + 2;
    char *to = r->texts;
    if (!service_n)
        return NULL;
    r->config->text_n += n + 1;
    if (!to)
        return NULL;
    *to = '/';
    memcpy(to + 1, r->service, service_n);
    to[service_n + 1] = '/';
    memcpy(to + service_n + 2, r->method, method_n + 1);
    r->texts += n + 1;
    return to;
}

static int is_known(const aco__grpc_config_t *config, const char *path)
{
    for (size_t i = 0; i < config->policy_count; i++) {
        const char *other = config->policies[i].method;
        if (path && other ? strcmp(path, other) == 0 : !path && !other)
            return 1;
    }
    return 0;
}

static void read_name(reader_t *r)
{
    static const member_t members[] = {{"service", read_service_name, 0}, {"method", read_method_name, 0}};
    const char *at = begin_value(r), *path;
    *r->service = *r->method = 0;
    READ_MEMBERS(r, members);
    if (*r->method && !*r->service)
        fail_at(r, at, "a method without a service");
    if (r->json.fault)
        return;
    path = put_path(r);
    if (r->texts && is_known(r->config, path))
        fail_at(r, at, "this name has a config already");
    else if (r->texts)
        r->config->policies[r->config->policy_count].method = path;
    r->config->policy_count++;
}

static void read_names(reader_t *r)
{
    char key[JSON_KEY];
    int count = 0;
    while (aco__json_next(&r->json, '[', &count, key))
        read_name(r);
}

static void read_wait_for_ready(reader_t *r)
{
    r->policy.wait_for_ready = aco__json_bool(&r->json);
}

/* "0s" leaves no time, whereas a policy's 0 is no limit. */
static void read_timeout(reader_t *r)
{
    r->policy.timeout = read_duration(r, 0, INT64_MAX);
    r->policy.timeout += !r->policy.timeout;
}

static int64_t read_bytes(reader_t *r)
{
    return read_whole(r, 1, UINT32_MAX, "a number of bytes is due, at least 1");
}

static void read_max_request(reader_t *r)
{
    r->policy.max_request = read_bytes(r);
}

static void read_max_reply(reader_t *r)
{
    r->policy.max_reply = read_bytes(r);
}

/* The policies of its names stand where they were counted. */
static void read_method_config(reader_t *r)
{
    static const member_t members[] = {{"name", read_names, 0},
                                       {"waitForReady", read_wait_for_ready, 0},
                                       {"timeout", read_timeout, 0},
                                       {"maxRequestMessageBytes", read_max_request, 0},
                                       {"maxResponseMessageBytes", read_max_reply, 0},
                                       {"retryPolicy", read_retry_policy, 0},
                                       {"hedgingPolicy", read_hedging_policy, 0}};
    const size_t first = r->config->policy_count;
    memset(&r->policy, 0, sizeof r->policy);
    READ_MEMBERS(r, members);
    for (size_t i = first; r->texts && !r->json.fault && i < r->config->policy_count; i++) {
        r->policy.method = r->config->policies[i].method;
        r->config->policies[i] = r->policy;
    }
}

static void read_method_configs(reader_t *r)
{
    char key[JSON_KEY];
    int count = 0;
    while (aco__json_next(&r->json, '[', &count, key))
        read_method_config(r);
}

/* ---- Load balancing ---- */

/* 0, 1; less than 0: it is not known. */
static int is_round_robin(const char *policy)
{
    return strcmp(policy, "round_robin") == 0 ? 1 : strcmp(policy, "pick_first") == 0 ? 0 : -1;
}

/* The first policy that is known counts. Those of an object are one. */
static void read_balancing(reader_t *r)
{
    const char *at = begin_value(r);
    int policies = 0, found = -1;
    char key[JSON_KEY];
    while (aco__json_next(&r->json, '[', &policies, key)) {
        int keys = 0;
        while (aco__json_next(&r->json, '{', &keys, key)) {
            found = found < 0 ? is_round_robin(key) : found;
            aco__json_skip(&r->json);
        }
        if (keys != 1)
            aco__json_fail(&r->json, "an object with one policy is due");
    }
    if (found < 0)
        fail_at(r, at, "none is known: pick_first, round_robin");
    r->config->round_robin = found;
}

/* The older form, which counts if the other one is not there. */
static void read_old_balancing(reader_t *r)
{
    const char *at = begin_value(r);
    char policy[MOST_WORD];
    int found;
    aco__json_string(&r->json, policy, sizeof policy);
    for (char *c = policy; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c | 32 : *c);
    found = is_round_robin(policy);
    if (found < 0)
        fail_at(r, at, "it is not known: pick_first, round_robin");
    if (r->config->round_robin < 0)
        r->config->round_robin = found;
}

/* ---- The whole ---- */

static void read_all(reader_t *r)
{
    static const member_t members[] = {{"methodConfig", read_method_configs, 0},
                                       {"retryThrottling", read_throttling, 0},
                                       {"loadBalancingConfig", read_balancing, 0},
                                       {"loadBalancingPolicy", read_old_balancing, 0}};
    READ_MEMBERS(r, members);
    if (!r->json.fault && aco__json_peek(&r->json))
        aco__json_fail(&r->json, "something follows the object");
}

/* Reports the fault and its place. */
static void fail_reading(const reader_t *r, const char *caller)
{
    char text[192];
    int line = 1, column = 1;
    for (const char *at = r->json.text; at < r->json.at; at++) {
        line += *at == '\n';
        column = *at == '\n' ? 1 : column + 1;
    }
    (void)snprintf(text, sizeof text, "service_config, line %d, column %d: %s%s%s", line, column,
                   r->field ? r->field : "", r->field ? ": " : "", r->json.fault);
    (void)aco__service_fail(EINVAL, caller, text);
}

/* Reads the text into `config`, whose policies have memory, or only counts. 0; -1: a fault, which is reported. */
static int read_into(aco__grpc_config_t *config, const char *text, const char *caller)
{
    reader_t r;
    memset(&r, 0, sizeof r);
    r.json.text = r.json.at = text;
    r.config = config;
    if (config->policies)
        r.texts = (char *)(config->policies + config->policy_count);
    config->policy_count = config->text_n = 0;
    config->round_robin = -1;
    read_all(&r);
    if (!r.json.fault)
        return 0;
    fail_reading(&r, caller);
    return -1;
}

aco__grpc_config_t *aco__grpc_config_read(const char *text, const char *caller)
{
    aco__grpc_config_t counted, *config;
    memset(&counted, 0, sizeof counted);
    if (strlen(text) > MOST_TEXT) {
        (void)aco__service_fail(EINVAL, caller, "service_config: more than 64 KiB");
        return NULL;
    }
    if (read_into(&counted, text, caller) != 0)
        return NULL;
    counted.sz = sizeof *config + counted.policy_count * sizeof *config->policies + counted.text_n;
    config = aco__service_new(&counted.sz, caller);
    if (!config)
        return NULL;
    *config = counted;
    config->policies = (aco_grpc_policy_t *)(void *)(config + 1);
    if (read_into(config, text, caller) == 0) {
        ACO__ASSERT(config->policy_count == counted.policy_count && config->text_n == counted.text_n);
        return config;
    }
    aco__grpc_config_free(config);
    return NULL;
}

void aco__grpc_config_free(aco__grpc_config_t *config)
{
    if (config)
        aco__service_free(config, config->sz);
}
