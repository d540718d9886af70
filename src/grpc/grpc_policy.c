/* The policies of a channel, and the budget of its retries. */
#include "grpc/grpc_channel.h"

#include <string.h>

/* How well it fits: 0: not at all. */
static size_t fit_of(const aco_grpc_policy_t *policy, const char *path)
{
    const size_t n = policy->method ? strlen(policy->method) : 0;
    if (!n)
        return 1;
    return strncmp(policy->method, path, n) == 0 && (!path[n] || path[n - 1] == '/') ? 1 + n : 0;
}

const aco_grpc_policy_t *aco__grpc_policy_of(const aco_grpc_channel_t *channel, const char *path)
{
    const aco_grpc_policy_t *best = NULL;
    size_t best_fit = 0;
    for (size_t i = 0; i < channel->options.policy_count; i++) {
        const size_t fit = fit_of(&channel->options.policies[i], path);
        if (fit > best_fit) {
            best = &channel->options.policies[i];
            best_fit = fit;
        }
    }
    return best;
}

void aco__grpc_call_succeeded(aco_grpc_channel_t *channel)
{
    const int most = channel->options.retry_tokens * GRPC_TOKEN;
    if (most > 0)
        channel->tokens = most - channel->tokens < channel->options.retry_share
                              ? most
                              : channel->tokens + channel->options.retry_share;
}

int aco__grpc_try_failed(aco_grpc_channel_t *channel)
{
    const int most = channel->options.retry_tokens * GRPC_TOKEN;
    if (most < 0)
        return 1;
    channel->tokens = channel->tokens > GRPC_TOKEN ? channel->tokens - GRPC_TOKEN : 0;
    return channel->tokens > most / 2;
}
