/* The layer of TLS, in the library acorn_tls, above acorn_io. It calls what acorn and acorn_io export, and OpenSSL,
 * which it never leaves by a switch: the queue of OpenSSL's errors is the thread's. */
#ifndef ACO_TLS_INTERNAL_H
#define ACO_TLS_INTERNAL_H

#include "base/invariants.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

typedef struct aco__tls_certificate {
    struct aco__tls_certificate *next; /* NULL: the last, the one that was added first */
    X509 *leaf;
    STACK_OF(X509) *chain;
    EVP_PKEY *key;
} aco__tls_certificate_t;

/* A client's session with a host. */
typedef struct aco__tls_session {
    struct aco__tls_session *next;
    SSL_SESSION *session;
    char host[];
} aco__tls_session_t;

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

enum { TLS_READ, TLS_WRITE, TLS_DIRECTIONS };

struct aco_tls_s {
    SSL *ssl;
    aco_tls_config_t *config;
    int fd;
    unsigned users;      /* calls that use it, and 1 until it is closed; the last one frees it */
    unsigned char is_connected; /* the handshake is done */
    unsigned char is_closed;
    unsigned char has_failed[TLS_DIRECTIONS]; /* for good */
    unsigned char reads; /* system calls that are left for one of OpenSSL's */
    unsigned char is_cut_short; /* there were none left */
    int system_error;    /* of the last system call that failed */
    char *unsent;        /* what the descriptor has not taken of OpenSSL's bytes; or NULL */
    size_t unsent_at, unsent_n;
    aco_semaphore_t turn[TLS_DIRECTIONS]; /* one task reads, one writes */
    char *host;          /* a client's; or NULL */
    char alpn[256];
};

/* OpenSSL works from here to aco__tls_end_work() on what tasks share: a connection that two use, one for each
 * direction, the errors of the thread, a configuration. None of them runs in the middle. So what OpenSSL locks blocks
 * the thread, in hooked tasks too. */
static inline void aco__tls_begin_work(void)
{
    aco__hooks_hold();
    ACO__NO_SWITCH_BEGIN();
}

static inline void aco__tls_end_work(void)
{
    ACO__NO_SWITCH_END();
    aco__hooks_release();
}

/* ---- error.c ---- */
/* The call failed in the configuration, of this file or NULL: -1 and errno, with OpenSSL's reason. */
ACO__HIDDEN int aco__tls_fail_config(const char *call, const char *file);
/* OpenSSL has failed for good, as SSL_get_error() says: sets errno and the message, and empties OpenSSL's queue. -1. */
ACO__HIDDEN int aco__tls_fail(const aco_tls_t *tls, const char *call, int why);
/* Sets errno and a message about this connection. -1. */
ACO__HIDDEN int aco__tls_fail_with(const aco_tls_t *tls, const char *call, int error, const char *reason);

/* ---- certificate.c ---- */
/* Reads a certificate and its key. NULL and errno. */
ACO__HIDDEN aco__tls_certificate_t *aco__tls_read_certificate(const char *call, const char *chain_file,
                                                              const char *key_file);
ACO__HIDDEN void aco__tls_free_certificates(aco__tls_certificate_t *certificates);
/* OpenSSL asks a server for its certificate: SSL_CTX_set_cert_cb(). `arg` is the configuration. */
ACO__HIDDEN int aco__tls_choose_certificate(SSL *ssl, void *arg);

/* ---- session.c ---- */
/* Keeps a client's session. Takes the reference: 1; or does not: 0. */
ACO__HIDDEN int aco__tls_keep_session(aco_tls_config_t *config, const char *host, SSL_SESSION *session);
/* The session with a host, which is kept no longer; NULL: there is none. */
ACO__HIDDEN SSL_SESSION *aco__tls_take_session(aco_tls_config_t *config, const char *host);
ACO__HIDDEN void aco__tls_free_sessions(aco__tls_session_t *sessions);

/* ---- connection.c ---- */
/* Waits until there are bytes, which may be none of the program's: TLS has messages of its own. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__tls_await_input(aco_tls_t *tls, const char *call, const char *location);

/* ---- config.c ---- */
/* The configuration that a new connection uses: this one or its replacement. The caller is its user then. NULL: OpenSSL
 * has failed. */
ACO__HIDDEN aco_tls_config_t *aco__tls_config_enter(aco_tls_config_t *config);
ACO__HIDDEN void aco__tls_config_leave(aco_tls_config_t *config); /* one user less; the last one frees it */

/* ---- bio.c ---- */
/* How OpenSSL reads and writes the connection's descriptor. NULL: no memory. */
ACO__HIDDEN BIO *aco__tls_bio_new(aco_tls_t *tls);
/* Sends what is unsent. 0; or -1 and system_error: EAGAIN and others. */
ACO__HIDDEN int aco__tls_flush(aco_tls_t *tls);
ACO__HIDDEN aco_tls_t *aco__tls_of(const SSL *ssl); /* whose BIO it has */

#endif
