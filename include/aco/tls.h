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
 * Waiting. As in aco/io.h the task waits, scopes end the wait, and a caller that cannot wait gets EPERM instead.
 * OpenSSL itself never waits and never switches: it computes, says which way the descriptor must become ready, and
 * returns; then the task waits. So a handshake occupies the thread while it computes.
 *
 * Errors of connections:
 *   - EACCES: the peer's certificate is refused, or the peer has none. The message (aco_error_message()) says why a
 *     certificate is refused: by OpenSSL's text, and before it by one of these words if one fits: expired, not valid
 *     yet, wrong host, self-signed, untrusted, revoked, weak, no CRL.
 *   - EPROTO: the peer ended the connection by an alert, or sent something wrong. The message names the alert or fault.
 *   - ECONNRESET: the stream ended without TLS's own end (close_notify), so something may be missing; or TCP was reset.
 *   - ECONNABORTED: this direction has failed before.
 *   - ETIMEDOUT, ECANCELED, EPIPE and others: the descriptor's (aco/io.h).
 *
 * Stack. A task needs a stack of ACO_TLS_STACK for a handshake; the default size of tasks is enough. On too small a
 * stack the handshake fails with EOVERFLOW, before it begins.
 *
 * OpenSSL. Its error queue is empty after each call. aco_tls_config_context() and aco_tls_ssl() let you configure and
 * ask OpenSSL beyond these calls. Callbacks that you set there must not wait or yield. */
#ifndef ACO_TLS_H
#define ACO_TLS_H

#include "stream.h"

ACO__BEGIN_C

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct ssl_st;     /* OpenSSL's SSL */

/* ---- Configurations ---------------------------------------------------------------------------------------------- */

/* What connections have in common. Complete it before the first connection uses it; from then on any thread may use it,
 * and only aco_tls_config_replace() may change it. The calls that change a configuration return 0; on error -1 with
 * errno EINVAL (NULL, the file's contents, a wrong value), ENOMEM, or why the file cannot be read. They block the
 * thread while they read a file. */
typedef struct aco_tls_config_s aco_tls_config_t;

enum {
    ACO_TLS_SERVER = 1,          /* for aco_tls_accept(); without it, for aco_tls_connect() */
    ACO_TLS_NO_SYSTEM_STORE = 2, /* a client trusts only what aco_tls_config_trust() adds */
    ACO_TLS_NO_VERIFY = 4,       /* a client accepts any certificate: whoever is on the way can read and change all */
    ACO_TLS_VERIFY_CLIENT = 8    /* clients must have a certificate of an authority that aco_tls_config_trust() adds */
};

/* Makes a configuration; the caller owns it. `flags`: ACO_TLS_… Returns it; on error NULL with errno EINVAL (unknown
 * flags), ENOMEM. */
ACO_API aco_tls_config_t *aco_tls_config_new(unsigned flags);
/* Gives up a configuration. Connections that use it keep what they need, but none may begin with it any more: each
 * aco_tls_accept() and each server that has its address must be over. Any thread may call. */
ACO_API int aco_tls_config_destroy(aco_tls_config_t *config);

/* Replaces `config` for new connections: those that begin with it from now on use `replacement`, with new certificates,
 * for example. Connections that have begun go on as they were. `replacement` must be of the same side. It then belongs
 * to `config`; an earlier one is freed with its last connection. Any thread may call, while others use `config`.
 * Returns 0; on error -1 with errno EINVAL (NULL, both are the same, `replacement` is of the other side, a server's
 * without a certificate or was replaced itself, one of the two is or was a replacement already), ENOMEM; then
 * nothing changes. */
ACO_API int aco_tls_config_replace(aco_tls_config_t *config, aco_tls_config_t *replacement);

/* Adds this side's certificate. `chain_file` is a PEM file with the certificate and after it the intermediate ones;
 * `key_file` is a PEM file with its key, not encrypted. A server can have several certificates: it uses those for the
 * name that the client asks for (SNI), else the first. Two for the same names may have keys of different kinds (RSA,
 * ECDSA). */
ACO_API int aco_tls_config_certificate(aco_tls_config_t *config, const char *chain_file, const char *key_file);

/* Trusts the authorities in a PEM file. */
ACO_API int aco_tls_config_trust(aco_tls_config_t *config, const char *file);
/* Adds the revocation lists in a PEM file. From the first call on, each certificate of a chain needs a list of its
 * issuer that has not expired. */
ACO_API int aco_tls_config_crl(aco_tls_config_t *config, const char *file);

/* Sets the application protocols (ALPN), separated by commas, the preferred one first: "h2,http/1.1". Each has 1 to 255
 * bytes, all of them with the commas less than 65535 (EINVAL). A server refuses a client that offers only others. */
ACO_API int aco_tls_config_alpn(aco_tls_config_t *config, const char *protocols);

/* Lets a client keep sessions for up to `hosts` hosts (0, the default: none) and resume them, which saves sending and
 * checking certificates. (A server lets clients resume by tickets; their key lives as long as the configuration.) */
ACO_API int aco_tls_config_sessions(aco_tls_config_t *config, size_t hosts);

/* Returns OpenSSL's part of `config` itself, not of its replacement; NULL for NULL. */
ACO_API struct ssl_ctx_st *aco_tls_config_context(const aco_tls_config_t *config);

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* A TLS connection. It belongs to its descriptor's thread. One task may read while another writes. Several tasks that
 * read take turns, and so do several that write. */
typedef struct aco_tls_s aco_tls_t;

enum { ACO_TLS_STACK = 32 << 10 }; /* aco_options_t.stack_size of a task that does little besides TLS */

/* Do the handshake on a connected stream socket, as the client or the server. These calls take over the descriptor:
 * aco_tls_close() closes it, and so do these calls if they fail. With a descriptor below 0 they fail and leave errno as
 * it is, so you can pass on what aco_io_dial() and aco_io_accept() return.
 *
 * `host` is the name or numeric address that the server's certificate must be for. A name must be in ASCII; it is sent
 * to the server (SNI). `host` may be NULL only with ACO_TLS_NO_VERIFY.
 *
 * A server should call aco_tls_accept() in the connection's task, in a scope with a deadline: clients may be silent.
 *
 * Return the connection; on error NULL with errno as above, also EINVAL (NULL, the configuration is of the other side,
 * a server has no certificate, `host` is no name), ENOMEM, EOVERFLOW (the stack is too small). */
ACO_API aco_tls_t *aco_tls_connect_at(int fd, const char *host, aco_tls_config_t *config, const char *location);
ACO_API aco_tls_t *aco_tls_accept_at(int fd, aco_tls_config_t *config, const char *location);
#define aco_tls_connect(fd, host, config) aco_tls_connect_at(fd, host, config, ACO_PLACE)
#define aco_tls_accept(fd, config) aco_tls_accept_at(fd, config, ACO_PLACE)

/* Frees the connection and closes its descriptor; calls of tasks that wait in it fail with ECANCELED. Sends the peer
 * the end (close_notify) if that needs no wait. Returns 0; on error -1 with errno EINVAL (NULL), or one of close(). */
ACO_API int aco_tls_close(aco_tls_t *tls);

/* Reads at most `n` bytes; waits if there are none. Returns how many, at least 1, or 0 if the peer has sent the end; on
 * error -1 with errno. */
ACO_API ssize_t aco_tls_read_at(aco_tls_t *tls, void *p, size_t n, const char *location);
#define aco_tls_read(tls, p, n) aco_tls_read_at(tls, p, n, ACO_PLACE)
/* Waits until a read need not wait: for a task that wants no buffer while its connection is idle. Returns 0; on error
 * -1 with errno. */
ACO_API int aco_tls_wait_readable_at(aco_tls_t *tls, const char *location);
#define aco_tls_wait_readable(tls) aco_tls_wait_readable_at(tls, ACO_PLACE)

/* Writes at most 16 KiB as one record, so few large writes are cheaper than many small ones. Returns how many bytes it
 * has written; on error -1 with errno. If a scope ended the wait, a part of the record is on its way: later writes fail
 * with ECONNABORTED, reads go on. */
ACO_API ssize_t aco_tls_write_at(aco_tls_t *tls, const void *p, size_t n, const char *location);
#define aco_tls_write(tls, p, n) aco_tls_write_at(tls, p, n, ACO_PLACE)
/* Writes all `n` bytes, in as many records as needed. If `done` is not NULL, *done becomes the number of bytes written,
 * also on error. Returns n; on error -1 with errno. */
ACO_API ssize_t aco_tls_write_all_at(aco_tls_t *tls, const void *p, size_t n, size_t *done, const char *location);
#define aco_tls_write_all(tls, p, n) aco_tls_write_all_at(tls, p, n, NULL, ACO_PLACE)
#define aco_tls_write_all_done(tls, p, n, done) aco_tls_write_all_at(tls, p, n, done, ACO_PLACE)

/* Sends the end (close_notify); later writes fail with EPIPE, reads go on. `how`: SHUT_WR, or SHUT_RDWR to drop also
 * what the peer still sends, until its end; only a scope limits that wait. Returns 0; on error -1 with errno. */
ACO_API int aco_tls_shutdown_at(aco_tls_t *tls, int how, const char *location);
#define aco_tls_shutdown(tls, how) aco_tls_shutdown_at(tls, how, ACO_PLACE)

/* What the two sides have agreed on. The texts live as long as the connection; none is NULL. */
typedef struct aco_tls_info_s {
    const char *protocol;    /* "TLSv1.3" */
    const char *cipher;      /* "TLS_AES_256_GCM_SHA384" */
    const char *alpn;        /* the application protocol, or "" */
    const char *server_name; /* the name that the client asked for, or "" */
    int is_resumed;          /* the session was resumed: no certificate was sent */
} aco_tls_info_t;
/* Fills in *info. Returns 0; on error -1 with errno EINVAL (NULL). */
ACO_API int aco_tls_info(const aco_tls_t *tls, aco_tls_info_t *info);

/* Writes the subject of the peer's certificate, "CN=worker,O=Example" (RFC 2253): at most `size` bytes, the 0 included.
 * Returns 0; on error -1 with errno ENOENT (the peer has sent no certificate), ENOSPC, ENOMEM. */
ACO_API int aco_tls_peer_name(const aco_tls_t *tls, char *text, size_t size);

/* Returns the connection as a stream (aco/stream.h), which belongs to the connection and lives as long: close one of
 * the two, not both. aco_stream_abort() ends it by an alert instead of close_notify. NULL for NULL, with errno as it
 * is, so you can pass on what aco_tls_connect() and aco_tls_accept() return. */
ACO_API aco_stream_t *aco_tls_stream(aco_tls_t *tls);
/* Returns the TLS connection that carries a stream; NULL with errno ENOTSUP: another thing carries it. */
ACO_API aco_tls_t *aco_tls_of_stream(aco_stream_t *stream);

/* HTTP over TLS (aco/http.h): set the first as `open` of a server, the second as `open` of a client's options, with the
 * configuration as open_arg. With HTTP/2 (aco_http_has_http2()) offer "h2,http/1.1" by aco_tls_config_alpn(), without
 * it only "http/1.1,http/1.0". Return the connection as a stream; on error NULL with errno as the handshakes, also
 * EPROTO (ALPN chose another protocol). */
ACO_API aco_stream_t *aco_tls_http_accept(int fd, void *config);
ACO_API aco_stream_t *aco_tls_http_connect(int fd, const char *host, void *config);

ACO_API int aco_tls_fd(const aco_tls_t *tls);             /* the descriptor; the connection still owns it */
ACO_API struct ssl_st *aco_tls_ssl(const aco_tls_t *tls); /* OpenSSL's part: you may ask it, not read, write or free */

ACO__END_C

#endif
