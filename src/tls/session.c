/* A client's sessions, by host. A session is taken out when it is used: a ticket of TLS 1.3 should be used once, and
 * one that the server refuses is gone. */
#include "tls/config_internal.h"
#include "tls/session.h"

#include <string.h>

static void free_session(aco__tls_session_t *s)
{
    SSL_SESSION_free(s->session);
    OPENSSL_free(s);
}

void aco__tls_free_sessions(aco__tls_session_t *sessions)
{
    aco__tls_session_t *s;
    while ((s = sessions) != NULL) {
        sessions = s->next;
        free_session(s);
    }
}

/* Takes the session with this host out of the list; with NULL, the last one beyond the limit. */
static aco__tls_session_t *unlink_session(aco_tls_config_t *config, const char *host)
{
    aco__tls_session_t **link = &config->sessions, *s;
    for (size_t i = 0; (s = *link) != NULL; link = &s->next, i++)
        if (host ? strcmp(s->host, host) == 0 : i >= config->most_sessions) {
            *link = s->next;
            return s;
        }
    return NULL;
}

int aco__tls_keep_session(aco_tls_config_t *config, const char *host, SSL_SESSION *session)
{
    aco__tls_session_t *s, *old[2];
    if (!host || !config->most_sessions || !SSL_SESSION_is_resumable(session))
        return 0;
    s = OPENSSL_malloc(sizeof *s + strlen(host) + 1);
    if (!s)
        return 0;
    s->session = session;
    memcpy(s->host, host, strlen(host) + 1);
    if (!CRYPTO_THREAD_write_lock(config->lock)) {
        OPENSSL_free(s);
        return 0;
    }
    old[0] = unlink_session(config, host);
    s->next = config->sessions;
    config->sessions = s;
    old[1] = unlink_session(config, NULL);
    CRYPTO_THREAD_unlock(config->lock);
    for (int i = 0; i < 2; i++)
        if (old[i])
            free_session(old[i]);
    return 1;
}

SSL_SESSION *aco__tls_take_session(aco_tls_config_t *config, const char *host)
{
    aco__tls_session_t *s = NULL;
    SSL_SESSION *session = NULL;
    if (host && config->most_sessions && CRYPTO_THREAD_write_lock(config->lock)) {
        s = unlink_session(config, host);
        CRYPTO_THREAD_unlock(config->lock);
    }
    if (s) {
        session = s->session;
        OPENSSL_free(s);
    }
    return session;
}
