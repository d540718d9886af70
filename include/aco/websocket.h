/* WebSocket (RFC 6455) for servers of aco/http.h: a handler turns its request into a connection of messages. In the
 * library acorn_http.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static void echo(aco_http_request_t *request, void *arg)
 *   {
 *       aco_websocket_t *socket = aco_websocket_accept(request, NULL);
 *       const char *data;
 *       size_t n;
 *       int type;
 *       while (socket && (type = aco_websocket_receive(socket, &data, &n)) > 0)
 *           aco_websocket_send(socket, type, data, n);
 *   }
 *
 * It lives until the handler returns. If the handler has not closed it, the peer is told then that it is going away
 * (1001). One task receives; any tasks of the thread send, each message as a whole.
 *
 * Pings are answered, and fragments joined, inside of aco_websocket_receive(): call it all the time. Extensions, such
 * as compression, are not offered.
 *
 * Waits obey scopes, as in aco/io.h. When the server stops, WebSockets have its drain_time to end, as requests do.
 *
 * A peer that breaks the protocol (frames without a mask, wrong UTF-8, unknown codes) is told why by a close code. */
#ifndef ACO_WEBSOCKET_H
#define ACO_WEBSOCKET_H

#include "http.h"

ACO__BEGIN_C

typedef struct aco_websocket_s aco_websocket_t;

/* Zeros are the defaults. Limits: less than 0: none. */
typedef struct aco_websocket_options_s {
    /* Which pages of a browser may connect: "*": all; or origins, with commas between them: "https://a.org,http://b".
     * NULL: only those of the request's own host and port. Clients that are no browsers send no Origin and may. */
    const char *origins;
    const char *protocols; /* subprotocols, separated by commas, the preferred first. NULL: none */
    int64_t max_message;   /* bytes of a message: 1 MiB */
    int64_t message_time;  /* ns from the begin of a message to its end: 60 s */
    int64_t idle_time;     /* ns without anything; then the peer gets a ping, and as long again to answer: 60 s */
} aco_websocket_options_t;

/* Answers the handshake. NULL `options`: the defaults; what they point to must stay valid. Headers that were added to
 * the reply are sent. NULL and errno: EBUSY (the reply has begun), ENOMEM, those of writing; or the request is refused
 * and answered: EPROTO (no right handshake, or several keys, versions or origins: 400; another version: 426), EACCES
 * (the origin: 403). */
ACO_API aco_websocket_t *aco_websocket_accept_at(aco_http_request_t *request, const aco_websocket_options_t *options,
                                                 const char *location);
#define aco_websocket_accept(request, options) aco_websocket_accept_at(request, options, ACO_PLACE)

enum { ACO_WEBSOCKET_TEXT = 1, ACO_WEBSOCKET_BINARY = 2 };

/* Waits for a message. Returns its type; *data are its `*n` bytes with a 0 behind them, valid until the next call. 0:
 * the peer has closed (aco_websocket_code()). -1 and errno: EBADMSG (against the protocol), EFBIG (max_message),
 * ETIMEDOUT (idle_time or message_time is over, or a scope: aco_check_cancelled() tells), ECONNRESET (the connection
 * ended without a close), ENOMEM. After the end of a scope the next call goes on; after the others it fails again. */
ACO_API int aco_websocket_receive_at(aco_websocket_t *socket, const char **data, size_t *n, const char *location);
#define aco_websocket_receive(socket, data, n) aco_websocket_receive_at(socket, data, n, ACO_PLACE)

/* Sends a message. 0; or -1 and errno: EINVAL (the type, text that is no UTF-8), EPIPE (closed, or the peer is gone),
 * ETIMEDOUT (also: it takes nothing for the server's write_time), ECANCELED. After the end of a scope the message can
 * be sent again; but if a part of it was sent, later calls fail with EPIPE. */
ACO_API int aco_websocket_send_at(aco_websocket_t *socket, int type, const void *p, size_t n, const char *location);
#define aco_websocket_send(socket, type, p, n) aco_websocket_send_at(socket, type, p, n, ACO_PLACE)

/* Closes: tells the peer the code (1000: done; 1001 to 1003, 1007 to 1014: RFC 6455's; 3000 to 4999: the program's) and
 * a reason of up to 123 bytes or NULL, and waits for its answer for 5 s at most; messages that come before it are
 * dropped. For the task that receives. 0; or -1 and errno: EINVAL, as sending and receiving. */
ACO_API int aco_websocket_close_at(aco_websocket_t *socket, int code, const char *reason, const char *location);
#define aco_websocket_close(socket, code, reason) aco_websocket_close_at(socket, code, reason, ACO_PLACE)

/* The code with which the peer has closed; 1005: without one; 1006: it has not. */
ACO_API int aco_websocket_code(const aco_websocket_t *socket);
/* The subprotocol that was chosen, one of those in the options; "": none. Valid as long as the connection. */
ACO_API const char *aco_websocket_protocol(const aco_websocket_t *socket);

ACO__END_C

#endif
