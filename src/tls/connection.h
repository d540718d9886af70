/* A connection: connection.c. */
#ifndef ACO_TLS_CONNECTION_H
#define ACO_TLS_CONNECTION_H

#include "base/invariants.h"

#include "aco/stream.h"
#include "aco/sync.h"
#include "aco/tls.h"

#include <openssl/ssl.h>

enum { TLS_READ, TLS_WRITE, TLS_DIRECTIONS };

struct aco_tls_s {
    aco_stream_t stream; /* first. aco_tls_stream() sets its functions; its fd is the connection's */
    SSL *ssl;
    aco_tls_config_t *config;
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

/* Nobody reads or writes. */
static inline void aco__tls_open_turns(aco_tls_t *tls)
{
    static const aco_semaphore_t one = ACO_SEMAPHORE_INIT(1);
    tls->turn[TLS_READ] = tls->turn[TLS_WRITE] = one;
}

/* Waits until there are bytes, which may be none of the program's: TLS has messages of its own. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__tls_await_input(aco_tls_t *tls, const char *call, const char *location);

#endif
