/* TLS on a connection (aco/io.h): clients and servers. In the library acorn_tls, beside acorn_io; it needs OpenSSL 3.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_tls_config_t *config = aco_tls_config_new(0);
 *   aco_tls_t *tls = aco_tls_connect(aco_io_dial("tcp", host, "443", NULL), host, config);
 *   if (!tls)
 *       error(aco_error_message()); // "aco_tls_connect: example.org: certificate refused, expired: ..."
 *   else if (aco_tls_write_all(tls, request, length) >= 0)
 *       while ((n = aco_tls_read(tls, bytes, sizeof bytes)) > 0)
 *           ...
 *   aco_tls_close(tls);
 *
 * Defaults. TLS 1.2 and 1.3, with forward secrecy and authenticated encryption; OpenSSL's security level 2 or above
 * (112 bits: RSA keys of 2048 bits, no SHA-1). No compression, no renegotiation, no early data. A client trusts the
 * system's authorities and requires a certificate for the host that it asked for.
 *
 * Waiting is as in aco/io.h: the task waits, scopes end the wait, a caller that cannot wait gets EPERM instead. OpenSSL
 * never waits and never switches: it is called, it asks for the descriptor to become ready, and then the task waits.
 * So a handshake occupies the thread while it computes.
 *
 * Errors of connections:
 *   - EACCES: the peer's certificate is refused, or there is none. The message (aco_error_message()) says why, by one
 *     of these words: expired, not valid yet, wrong host, self-signed, untrusted, revoked, weak, no CRL; and by
 *     OpenSSL's text.
 *   - EPROTO: the peer ended it by an alert, or what it sends is wrong. The message names the alert or the fault.
 *   - ECONNRESET: the stream ended without TLS's own end (close_notify), so something may be missing; or TCP's reset.
 *   - ECONNABORTED: this direction failed before.
 *   - ETIMEDOUT, ECANCELED, EPIPE and others as for the descriptor.
 *
 * Stack. A handshake needs some stack: ACO_TLS_STACK. The default size of tasks is enough. On less the handshake fails
 * with EOVERFLOW, before it begins.
 *
 * OpenSSL. Its error queue is empty after each call. It may be configured and asked beyond these calls through
 * aco_tls_config_context() and aco_tls_ssl(). Callbacks that are set there must not wait or yield. */
#ifndef ACO_TLS_H
#define ACO_TLS_H

#include "io.h"

ACO__BEGIN_C

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct ssl_st;     /* OpenSSL's SSL */

/* ---- Configurations ---------------------------------------------------------------------------------------------- */

/* What connections have in common. It is complete when the first connection uses it; from then on any thread may use
 * it, and only aco_tls_config_replace() may change it. The calls that change it return 0; on error -1 with errno EINVAL
 * (NULL, what is in the file), ENOMEM, or why the file cannot be read. They read files at once, without letting other
 * tasks run. */
typedef struct aco_tls_config_s aco_tls_config_t;

enum {
    ACO_TLS_SERVER = 1,          /* for aco_tls_accept(); without it, for aco_tls_connect() */
    ACO_TLS_NO_SYSTEM_STORE = 2, /* a client trusts only what aco_tls_config_trust() adds */
    ACO_TLS_NO_VERIFY = 4,       /* a client accepts any certificate: whoever is on the way can read and change all */
    ACO_TLS_VERIFY_CLIENT = 8    /* a server requires a certificate of clients, from whom aco_tls_config_trust() adds */
};

/* NULL and errno: EINVAL (unknown flags), ENOMEM. */
ACO_API aco_tls_config_t *aco_tls_config_new(unsigned flags);
/* Connections that use it keep what they need. No connection may begin with it any more: an aco_tls_accept() or a
 * server that has its address must be over. Any thread. */
ACO_API int aco_tls_config_destroy(aco_tls_config_t *config);

/* From now on connections that begin with `config` use `replacement`, another configuration of the same side: new
 * certificates, for example. Those that have begun go on as they were. `replacement` belongs to `config` then; an
 * earlier one goes with its last connection. Any thread, while others use `config`. 0, or -1 and errno: EINVAL (NULL,
 * both are one, of the other side, a server without a certificate, `replacement` was replaced itself, one of them is
 * or was a replacement already), ENOMEM; then nothing has changed. */
ACO_API int aco_tls_config_replace(aco_tls_config_t *config, aco_tls_config_t *replacement);

/* The own certificate: a PEM file with it and the intermediate ones after it, and one with its key, which must not be
 * encrypted. A server can have several: it takes those that have the name that the client asks for (SNI), or else the
 * first. Two for the same names may have keys of different kinds (RSA, ECDSA). */
ACO_API int aco_tls_config_certificate(aco_tls_config_t *config, const char *chain_file, const char *key_file);

/* Trusts the authorities in a PEM file. */
ACO_API int aco_tls_config_trust(aco_tls_config_t *config, const char *file);
/* Adds the revocation lists in a PEM file. With the first one, each certificate of a chain needs a list of its issuer
 * that has not expired. */
ACO_API int aco_tls_config_crl(aco_tls_config_t *config, const char *file);

/* Application protocols (ALPN), separated by commas, the preferred first: "h2,http/1.1". A server refuses clients that
 * offer only others. */
ACO_API int aco_tls_config_alpn(aco_tls_config_t *config, const char *protocols);

/* A client keeps sessions for up to `hosts` hosts and resumes them, which saves the certificates and their checks. 0,
 * the default: none. (A server lets clients resume by tickets; their key lives as long as the configuration.) */
ACO_API int aco_tls_config_sessions(aco_tls_config_t *config, size_t hosts);

/* OpenSSL's part of it, also after it was replaced. NULL: NULL. */
ACO_API struct ssl_ctx_st *aco_tls_config_context(const aco_tls_config_t *config);

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* A TLS connection. It belongs to its descriptor's thread. One task may read while another one writes; of several that
 * read, or write, each waits for its turn. */
typedef struct aco_tls_s aco_tls_t;

enum { ACO_TLS_STACK = 32 << 10 }; /* aco_options_t.stack_size of a task that does little besides TLS */

/* The handshake, on a connected stream socket, as the client or the server. These calls take the descriptor over:
 * aco_tls_close() closes it, and so does a call that fails. A descriptor below 0 fails with errno as it is: what
 * aco_io_dial() and aco_io_accept() return can be passed on.
 *
 * `host` is the name or the numeric address that the peer's certificate must be for; as a name it is sent to the server
 * (SNI), and in ASCII. It may be NULL only with ACO_TLS_NO_VERIFY.
 *
 * A server should call aco_tls_accept() in the connection's task, in a scope with a deadline: clients may be silent.
 *
 * NULL and errno: see above; also EINVAL (NULL, the configuration is of the other side, a server has no certificate),
 * ENOMEM, EOVERFLOW (the stack). */
ACO_API aco_tls_t *aco_tls_connect_at(int fd, const char *host, aco_tls_config_t *config, const char *location);
ACO_API aco_tls_t *aco_tls_accept_at(int fd, aco_tls_config_t *config, const char *location);
#define aco_tls_connect(fd, host, config) aco_tls_connect_at(fd, host, config, ACO_PLACE)
#define aco_tls_accept(fd, config) aco_tls_accept_at(fd, config, ACO_PLACE)

/* Frees the connection and closes its descriptor; tasks that wait in it fail with ECANCELED. Tells the peer of the end
 * (close_notify) if that needs no wait. 0, or -1 and errno of close(), EINVAL (NULL). */
ACO_API int aco_tls_close(aco_tls_t *tls);

/* At least one byte and at most `n`; 0: the peer has sent the end. -1 and errno. */
ACO_API ssize_t aco_tls_read_at(aco_tls_t *tls, void *p, size_t n, const char *location);
#define aco_tls_read(tls, p, n) aco_tls_read_at(tls, p, n, ACO_PLACE)
/* Waits until a read would not wait: for idle connections that shall hold no buffer. 0, or -1 and errno. */
ACO_API int aco_tls_wait_readable_at(aco_tls_t *tls, const char *location);
#define aco_tls_wait_readable(tls) aco_tls_wait_readable_at(tls, ACO_PLACE)

/* Writes up to 16 KiB, as one record, so few large writes are cheaper than many small ones. Returns how many bytes. -1
 * and errno: if the wait was ended, a part of the record is on its way, and later writes fail with ECONNABORTED. Reads
 * go on. */
ACO_API ssize_t aco_tls_write_at(aco_tls_t *tls, const void *p, size_t n, const char *location);
#define aco_tls_write(tls, p, n) aco_tls_write_at(tls, p, n, ACO_PLACE)
/* Writes all `n` bytes, in as many records as needed: n; or -1 and errno. If `done` is not NULL, *done becomes the
 * number of bytes that were written, in any case. */
ACO_API ssize_t aco_tls_write_all_at(aco_tls_t *tls, const void *p, size_t n, size_t *done, const char *location);
#define aco_tls_write_all(tls, p, n) aco_tls_write_all_at(tls, p, n, NULL, ACO_PLACE)
#define aco_tls_write_all_done(tls, p, n, done) aco_tls_write_all_at(tls, p, n, done, ACO_PLACE)

/* SHUT_WR: sends the end (close_notify); later writes fail with EPIPE, reads go on. SHUT_RDWR: the same, then drops
 * what the peer still sends until it has sent its end; only a scope limits that. 0, or -1 and errno. */
ACO_API int aco_tls_shutdown_at(aco_tls_t *tls, int how, const char *location);
#define aco_tls_shutdown(tls, how) aco_tls_shutdown_at(tls, how, ACO_PLACE)

/* What was agreed upon. The texts live as long as the connection; none is NULL. */
typedef struct aco_tls_info_s {
    const char *protocol;    /* "TLSv1.3" */
    const char *cipher;      /* "TLS_AES_256_GCM_SHA384" */
    const char *alpn;        /* the application protocol, or "" */
    const char *server_name; /* what the client asked for by name, or "" */
    int is_resumed;          /* the session was resumed: no certificate was sent */
} aco_tls_info_t;
/* 0, or -1 and errno EINVAL (NULL). */
ACO_API int aco_tls_info(const aco_tls_t *tls, aco_tls_info_t *info);

/* The subject of the peer's certificate: "CN=worker,O=Example" (RFC 2253). Writes at most `size` bytes, the 0 included.
 * 0, or -1 and errno: ENOENT (it has sent none), ENOSPC, ENOMEM. */
ACO_API int aco_tls_peer_name(const aco_tls_t *tls, char *text, size_t size);

/* HTTP over TLS (aco/http.h): `open` of a server and of a client's options, with the configuration as open_arg. They
 * speak HTTP/1 only: let the configuration have just that: aco_tls_config_alpn(config, "http/1.1,http/1.0"). NULL and
 * errno: as the handshakes; EPROTO: ALPN chose another protocol. */
struct aco_http_transport_s;
ACO_API void *aco_tls_http_accept(int fd, const struct aco_http_transport_s **transport, void *config);
ACO_API void *aco_tls_http_connect(int fd, const char *host, const struct aco_http_transport_s **transport,
                                   void *config);

ACO_API int aco_tls_fd(const aco_tls_t *tls);             /* its descriptor; still its own */
ACO_API struct ssl_st *aco_tls_ssl(const aco_tls_t *tls); /* OpenSSL's part of it, to ask; not to read, write or free */

ACO__END_C

#endif
