/* A service config, the JSON that says how a channel's calls are made. */
#ifndef ACO_SERVICE_CONFIG_H
#define ACO_SERVICE_CONFIG_H

#include "base/invariants.h"

#include "aco/grpc.h"

enum { GRPC_MOST_TRIES = 5 };

typedef struct aco__grpc_config {
    aco_grpc_policy_t *policies; /* behind this, with their texts behind them */
    size_t policy_count;
    size_t text_n; /* bytes of the texts */
    int round_robin; /* less than 0: it does not say */
    int retry_tokens, retry_share; /* 0: it does not say */
    size_t sz;
} aco__grpc_config_t;

/* Reads the text, which may be freed then. NULL and errno: EINVAL, and aco_error_message() says where and why; ENOMEM.
 */
ACO__HIDDEN aco__grpc_config_t *aco__grpc_config_read(const char *text, const char *caller);
/* NULL: nothing happens. */
ACO__HIDDEN void aco__grpc_config_free(aco__grpc_config_t *config);

#endif
