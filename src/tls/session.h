/* Clients' sessions: session.c. */
#ifndef ACO_TLS_SESSION_H
#define ACO_TLS_SESSION_H

#include "os/platform.h"

#include "aco/tls.h"

#include <openssl/ssl.h>

/* A client's session with a host. */
typedef struct aco__tls_session {
    struct aco__tls_session *next;
    SSL_SESSION *session;
    char host[];
} aco__tls_session_t;

/* Keeps a client's session. Takes the reference: 1; or does not: 0. */
ACO__HIDDEN int aco__tls_keep_session(aco_tls_config_t *config, const char *host, SSL_SESSION *session);
/* The session with a host, which is kept no longer; NULL: there is none. */
ACO__HIDDEN SSL_SESSION *aco__tls_take_session(aco_tls_config_t *config, const char *host);
ACO__HIDDEN void aco__tls_free_sessions(aco__tls_session_t *sessions);

#endif
