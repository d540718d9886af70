/* The PROXY protocol, versions 1 and 2: a proxy says in front of a connection's bytes whose connection it is. In the
 * library acorn_io.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static aco_stream_t *open(int fd, void *unused) // of aco_http_server_options_t
 *   {
 *       aco_proxy_header_t header;
 *       if (aco_proxy_header_read(fd, &header) != 0) {
 *           aco_io_close(fd);
 *           return NULL;
 *       }
 *       return aco_proxy_stream(aco_stream_open(fd), &header); // or a TLS stream on the descriptor
 *   }
 *
 * Anybody can send such a header. So read it only on listeners that nobody but the proxy reaches, or after a look at
 * aco_io_peer_address(); and read it always there: a connection without one is refused. */
#ifndef ACO_PROXY_PROTOCOL_H
#define ACO_PROXY_PROTOCOL_H

#include "stream.h"

ACO__BEGIN_C

/* What the proxy says. Addresses are text as of aco_io_peer_address(): "192.0.2.1:4711", "[2001:db8::1]:4711", a path of
 * a unix socket. */
typedef struct aco_proxy_header_s {
    int version; /* 1 or 2 */
    int is_own;  /* 1: the connection is the proxy's own (a health check), or it does not know whose: no addresses */
    char peer[ACO_IO_ADDRESS_SIZE];  /* the client; "": is_own */
    char local[ACO_IO_ADDRESS_SIZE]; /* what the client has connected to */
} aco_proxy_header_t;

/* Reads the header, and no byte beyond it. Waits; give it a time by a scope: clients may be silent. What a proxy of
 * version 2 adds to the addresses is skipped. Returns 0; on error -1 with errno EPROTO (there is no header, or it is
 * wrong), ECONNRESET (the stream ends in it), or one of aco_io_read(). */
ACO_API int aco_proxy_header_read_at(int fd, aco_proxy_header_t *header, const char *location);
#define aco_proxy_header_read(fd, header) aco_proxy_header_read_at(fd, header, ACO_PLACE)

/* Makes a stream that is `stream`, but has the header's addresses, if there are any. Takes `stream` over, and closes it
 * on error. If it is NULL, the call fails and leaves errno as it is. aco_stream_fd() is the connection to the proxy.
 * The caller owns the new stream. Returns it; on error NULL with errno ENOMEM. */
ACO_API aco_stream_t *aco_proxy_stream(aco_stream_t *stream, const aco_proxy_header_t *header);
/* Returns the stream that aco_proxy_stream() got, for aco_tls_of_stream(); any other stream itself. */
ACO_API aco_stream_t *aco_proxy_inner(aco_stream_t *stream);

ACO__END_C

#endif
