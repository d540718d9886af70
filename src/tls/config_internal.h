/* A configuration, and what config.c has for connections. */
#ifndef ACO_TLS_CONFIG_INTERNAL_H
#define ACO_TLS_CONFIG_INTERNAL_H

#include "tls/certificate.h"
#include "tls/session.h"

struct aco_tls_config_s {
    SSL_CTX *context;
    unsigned flags;
    unsigned users;     /* connections, and 1 until it is destroyed or what it replaces is. Atomic */
    int is_replacement; /* or was one. Atomic */
    unsigned char *protocols; /* ALPN, as they are sent */
    unsigned protocols_length;
    aco__tls_certificate_t *certificates;
    CRYPTO_RWLOCK *lock; /* of what follows */
    struct aco_tls_config_s *replacement; /* new connections use it; or NULL */
    aco__tls_session_t *sessions; /* the newest first */
    size_t most_sessions;
};

/* The configuration that a new connection uses: this one or its replacement. The caller is its user then. NULL: OpenSSL
 * has failed. */
ACO__HIDDEN aco_tls_config_t *aco__tls_config_enter(aco_tls_config_t *config);
ACO__HIDDEN void aco__tls_config_leave(aco_tls_config_t *config); /* one user less; the last one frees it */

#endif
