/* Channels of gRPC: options, targets, policies and the budget of retries. */
#include "grpc/grpc_channel.h"
#include "grpc/service_config.h"

#include "base/reserved.h"

#include <stdio.h>
#include <string.h>

static const char new_call[] = "aco_grpc_channel_new";

enum {
    MOST_TARGETS = 64,
    MOST_TARGET = 255, /* bytes of a host; of the authority */
    TOKENS = 10,
    SHARE = 100 /* thousandths */
};
static const int64_t day = 24 * 3600 * ACO_SECOND;

/* ---- Targets ---- */

static const char *put_part(char **parts, const char *text, size_t n)
{
    char *part = *parts;
    memcpy(part, text, n);
    part[n] = 0;
    *parts = part + n + 1;
    return part;
}

/* Takes the path of "unix:path", "unix:///path" or "unix-abstract:name" for aco_io_dial(). 0: it is none of these. */
static int take_path(const char *text, size_t n, aco__grpc_target_t *target, char **parts)
{
    static const struct {
        const char *begin, *mark;
    } forms[] = {{"unix://", ""}, {"unix:", ""}, {"unix-abstract:", "@"}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const size_t begin_n = strlen(forms[i].begin), mark_n = strlen(forms[i].mark);
        if (n < begin_n || strncmp(text, forms[i].begin, begin_n) != 0)
            continue;
        if (n == begin_n || (i == 0 && text[begin_n] != '/')) /* a host */
            return 0;
        target->host = "localhost";
        target->path = *parts;
        memcpy(*parts, forms[i].mark, mark_n);
        *parts += mark_n;
        (void)put_part(parts, text + begin_n, n - begin_n);
        return 1;
    }
    return 0;
}

/* Takes a target apart, up to a comma, which is where it returns. NULL: it is none. */
static char *take_target(char *text, aco__grpc_target_t *target, char **parts)
{
    const size_t n = strcspn(text, ",");
    const char *end = text + n, *colon = end;
    const int is_ip6 = *text == '[';
    target->text = text;
    if (take_path(text, n, target, parts))
        return text + n;
    while (colon > text && *colon != ':')
        colon--;
    if (colon == text || (is_ip6 ? colon[-1] != ']' : memchr(text, ':', (size_t)(colon - text)) != NULL) ||
        colon - text > MOST_TARGET || end - colon < 2 || end - colon > 6 ||
        strspn(colon + 1, "0123456789") < (size_t)(end - colon - 1) || strcspn(text, " \t\r\n/@?#\\") < n)
        return NULL;
    target->host = put_part(parts, text + is_ip6, (size_t)(colon - text - 2 * is_ip6));
    target->port = put_part(parts, colon + 1, (size_t)(end - colon - 1));
    return text + n;
}

/* `texts` has the targets, and room for their parts behind them. Whether they are targets. */
static int take_targets(aco_grpc_channel_t *channel, char *texts)
{
    char *parts = texts + strlen(texts) + 1;
    for (size_t i = 0; i < channel->target_count; i++) {
        char *end = take_target(texts, &channel->targets[i], &parts);
        if (!end)
            return 0;
        *end = 0;
        texts = end + 1;
    }
    return 1;
}

/* ---- Options ---- */

static int64_t time_or(int64_t time, int64_t otherwise)
{
    return time == 0 ? otherwise : time < day ? time : day;
}

static void set_defaults(aco_grpc_channel_options_t *o)
{
    o->max_metadata = o->max_metadata ? o->max_metadata : 16 << 10;
    o->connect_time = time_or(o->connect_time, 20 * ACO_SECOND);
    o->first_pause = time_or(o->first_pause, ACO_SECOND);
    o->longest_pause = time_or(o->longest_pause, 120 * ACO_SECOND);
    o->retry_tokens = o->retry_tokens < 0 ? -1 : o->retry_tokens ? o->retry_tokens : TOKENS;
    o->retry_share = o->retry_share ? o->retry_share : SHARE;
}

static int policy_is_wrong(const aco_grpc_policy_t *policy)
{
    return policy->timeout < 0 || policy->tries < 0 || policy->tries > GRPC_MOST_TRIES || policy->first_pause < 0 ||
           policy->first_pause > day || policy->longest_pause < 0 || policy->longest_pause > day ||
           policy->pause_growth < 0 || policy->pause_growth > 1000 * 1000 || policy->max_request < 0 ||
           policy->max_reply < 0 || (policy->tries > 1 && !policy->retried) || ACO__RESERVED_IS_SET(policy);
}

/* What is wrong with the options, of which the defaults are set; NULL: nothing. */
static const char *wrong_option(const aco_grpc_channel_options_t *o)
{
    if (ACO__RESERVED_IS_SET(o))
        return "a reserved field is not 0";
    if (o->max_metadata < 256 || o->max_metadata > 1 << 20 || o->retry_tokens > 1000 || o->retry_share < 0 ||
        o->retry_share > 1000 * GRPC_TOKEN)
        return "a limit";
    if (o->connect_time < 0 || o->first_pause < 0 || o->longest_pause < 0 || o->ping_time < 0)
        return "a time";
    if (o->authority && (!*o->authority || strlen(o->authority) > MOST_TARGET || strpbrk(o->authority, " \t\r\n/@")))
        return "the authority";
    for (size_t i = 0; i < o->policy_count; i++)
        if (policy_is_wrong(&o->policies[i]))
            return "a policy";
    if (o->service_config && o->policy_count)
        return "policies beside a service config";
    return NULL;
}

/* ---- Channels ---- */

static size_t count_targets(const char *target)
{
    size_t n = 1;
    for (; *target; target++)
        n += *target == ',';
    return n;
}

/* Memory for the channel, its policies, its targets and their texts, which are in it. NULL and errno. */
static aco_grpc_channel_t *allocate_channel(const char *target, const aco_grpc_channel_options_t *options)
{
    const size_t n = strlen(target), count = count_targets(target);
    const size_t policies = options->policy_count * sizeof *options->policies;
    const size_t targets = count * sizeof(aco__grpc_target_t);
    size_t sz = sizeof(aco_grpc_channel_t) + policies + targets + 2 * n + 1 + 2 * count;
    aco_grpc_channel_t *channel = aco__service_allocate(&sz, new_call);
    if (!channel)
        return NULL;
    memset(channel, 0, sz);
    channel->sz = sz;
    channel->options = *options;
    if (policies) {
        memcpy(channel + 1, options->policies, policies);
        channel->options.policies = (const aco_grpc_policy_t *)(const void *)(channel + 1);
    }
    channel->target_count = count;
    channel->targets = (aco__grpc_target_t *)(void *)((char *)(channel + 1) + policies);
    memcpy((char *)channel->targets + targets, target, n);
    channel->must_look_up = 1;
    channel->tokens = options->retry_tokens * GRPC_TOKEN;
    return channel;
}

/* A backend for each target. 0, or -1 and errno. */
static int add_targets(aco_grpc_channel_t *channel)
{
    aco__grpc_backend_t **end = &channel->first;
    for (size_t i = 0; i < channel->target_count; i++) {
        const aco__grpc_target_t *target = &channel->targets[i];
        *end = aco__grpc_backend_new(channel, target, target->path ? target->host : target->text);
        if (!*end)
            return -1;
        end = &(*end)->next;
    }
    return 0;
}

/* Whether there can be a channel of these. If not, errno. */
static int is_possible(const char *target, const aco_grpc_channel_options_t *with_defaults)
{
    const char *fault = wrong_option(with_defaults);
    if (!fault && count_targets(target) > MOST_TARGETS)
        fault = "more than 64 targets";
    if (!fault && aco_http_has_http2())
        return 1;
    (void)aco__service_fail(fault ? EINVAL : ENOTSUP, new_call, fault ? fault : "acorn_http was built without HTTP/2");
    return 0;
}

/* The options become what the config says. */
static void take_config(aco_grpc_channel_options_t *options, const aco__grpc_config_t *config)
{
    options->service_config = NULL; /* nobody needs it any more */
    options->policies = config->policies;
    options->policy_count = config->policy_count;
    if (config->round_robin >= 0)
        options->round_robin = config->round_robin;
    if (config->retry_tokens) {
        options->retry_tokens = config->retry_tokens;
        options->retry_share = config->retry_share;
    }
}

/* The channel owns the config, of which NULL is none, also if it cannot be made. NULL and errno. */
static aco_grpc_channel_t *new_channel(const char *target, const aco_grpc_channel_options_t *with_defaults,
                                       aco__grpc_config_t *config)
{
    aco_grpc_channel_t *channel = allocate_channel(target, with_defaults);
    if (!channel) {
        aco__grpc_config_free(config);
        return NULL;
    }
    channel->config = config;
    if (!take_targets(channel, (char *)(channel->targets + channel->target_count)))
        (void)aco__service_fail(EINVAL, new_call, "a target is \"host:port\", or \"unix:path\"");
    else if (with_defaults->round_robin || add_targets(channel) == 0)
        return channel;
    aco_grpc_channel_destroy(channel);
    return NULL;
}

aco_grpc_channel_t *aco_grpc_channel_new(const char *target, const aco_grpc_channel_options_t *options)
{
    aco_grpc_channel_options_t with_defaults = {0};
    aco__grpc_config_t *config = NULL;
    if (options)
        with_defaults = *options;
    set_defaults(&with_defaults);
    if (!is_possible(target, &with_defaults))
        return NULL;
    if (with_defaults.service_config) {
        config = aco__grpc_config_read(with_defaults.service_config, new_call);
        if (!config)
            return NULL;
        take_config(&with_defaults, config);
    }
    return new_channel(target, &with_defaults, config);
}

void aco_grpc_channel_destroy(aco_grpc_channel_t *channel)
{
    const int error = errno;
    if (!channel)
        return;
    while (channel->first) {
        aco__grpc_backend_t *backend = channel->first;
        ACO__ASSERT(!backend->users);
        channel->first = backend->next;
        aco__grpc_backend_destroy(backend);
    }
    aco__grpc_config_free(channel->config);
    aco__grpc_gzip_free(channel->gzip);
    aco__service_free(channel, channel->sz);
    errno = error;
}
