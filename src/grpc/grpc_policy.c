/* The policies of a channel, the budget of its retries, and chance. */
#include "grpc/grpc_channel.h"

#include "aco/sim.h"

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

/* The simulation's, or else a hash (SplitMix64) of the time and of a count. */
int64_t aco__grpc_random(int64_t most)
{
    static uint32_t count; /* atomic */
    uint64_t x;
    aco_sim_t *sim = aco__sim_current_if_linked ? aco__sim_current_if_linked() : NULL;
    if (sim)
        return (int64_t)(aco__sim_random_if_linked(sim, 0) >> 1) % (most + 1);
    x = (uint64_t)aco_now() + __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((x ^ (x >> 31)) >> 1) % (most + 1);
}

void aco__grpc_try_succeeded(aco_grpc_channel_t *channel)
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
