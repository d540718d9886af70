/* WebSocket (RFC 6455, and RFC 8441 over HTTP/2) for servers and clients of aco/http.h: a request becomes a connection
 * that carries messages. In the library acorn_http.
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
 * A server's WebSocket lives until its handler returns, a client's until aco_websocket_end(). If it has not been closed
 * by then, the peer gets the close code 1001 (going away). One task receives. Any tasks of the thread may send; each
 * message is sent as a whole.
 *
 * aco_websocket_receive() answers pings and joins fragments: call it all the time. Messages are compressed if
 * `compresses` of the options is set and the peer agrees (permessage-deflate, RFC 7692; where the library was built
 * with zlib).
 *
 * Waits obey scopes, as in aco/io.h. When the server stops, WebSockets have its drain_time to end, as requests have.
 *
 * A close code tells a peer how it broke the protocol: frames without a mask, wrong UTF-8, unknown codes. */
#ifndef ACO_WEBSOCKET_H
#define ACO_WEBSOCKET_H

#include "http.h"

ACO__BEGIN_C

typedef struct aco_websocket_s aco_websocket_t;

/* Whether messages from 64 bytes on are compressed, both ways. Do not compress a secret together with what others can
 * choose: who sees the lengths finds it out. */
enum {
    ACO_WEBSOCKET_PLAIN,
    ACO_WEBSOCKET_COMPRESS, /* each message by itself: memory of up to 310 KiB only while one is coded */
    ACO_WEBSOCKET_KEEP_WINDOWS /* messages refer to earlier ones, so they become shorter: that memory all the time */
};

/* Zeros are the defaults. A limit less than 0 means: none. */
typedef struct aco_websocket_options_s {
    /* Which pages of a browser may connect. "*": all; or a list of origins, separated by commas:
     * "https://a.org,http://b"; NULL: only pages of the request's own host and port. Clients that are no browsers send
     * no Origin and may connect. A client does not use it. */
    const char *origins;
    const char *protocols; /* subprotocols, up to 63 bytes each, separated by commas, the preferred first. NULL: none */
    int64_t max_message;   /* bytes of a message, compressed and decompressed: 1 MiB */
    int64_t message_time;  /* ns from the beginning of a message to its end: 60 s */
    int64_t idle_time;     /* ns in which nothing comes; then the peer gets a ping, and as long again to answer: 60 s */
    int compresses;        /* ACO_WEBSOCKET_PLAIN, _COMPRESS or _KEEP_WINDOWS */
    void *aco__reserved[2]; /* reserved fields are 0 */
} aco_websocket_options_t;

/* Answers the handshake, and sends the headers that were added to the reply. NULL `options`: the defaults. The
 * structure is copied; what it points to must stay valid until the handler returns. Returns the WebSocket; on error
 * NULL with errno EBUSY (the reply has begun), EINVAL (`compresses`; a reserved field is not 0), ENOMEM or an error of
 * writing (if the reply has not begun then, the handler may try again or reply); or, if it has refused the request by
 * an answer, with EPROTO (400: no right handshake, or several keys, versions or origins; 426: another version), EACCES
 * (403: the origin). */
ACO_API aco_websocket_t *aco_websocket_accept_at(aco_http_request_t *request, const aco_websocket_options_t *options,
                                                 const char *location);
#define aco_websocket_accept(request, options) aco_websocket_accept_at(request, options, ACO_PLACE)

/* Connects to a server, by a client of HTTP: its proxy, its `open` for wss://, its cookies, times and limits of
 * connections are used, redirects are followed. The connection counts there until aco_websocket_end(). If there is a
 * connection of HTTP/2 whose server has announced WebSockets, that one is used; else one of HTTP/1.1. `url` is
 * "ws://host:port/path" or "wss://…", as aco_http_call() takes it; `headers` are sent too, but must have none of the
 * handshake's own (Upgrade, Connection, Sec-WebSocket-…). NULL `options`: the defaults; what they point to must stay
 * valid until aco_websocket_end(). `protocols` are offered to the server, in all up to 500 bytes. Frames are masked by
 * random keys. A server that takes nothing for message_time is gone. Returns the WebSocket, which the caller owns; on
 * error NULL with errno EINVAL (the URL, a header, the options), EACCES (the server answers 403), EPROTO (another
 * answer than 101, by HTTP/2 200, which aco_error_message() tells; or a wrong handshake), or one of aco_http_call(). */
ACO_API aco_websocket_t *aco_websocket_connect_at(aco_http_client_t *client, const char *url,
                                                  const aco_http_header_t *headers, size_t header_count,
                                                  const aco_websocket_options_t *options, const char *location);
#define aco_websocket_connect(client, url, headers, header_count, options) \
    aco_websocket_connect_at(client, url, headers, header_count, options, ACO_PLACE)
/* Ends a client's WebSocket: closes its connection, or ends its request of HTTP/2, and frees it. No other task may use
 * it any more. Waits if the code 1001 has to be sent: not after a close; by HTTP/2, up to 1 s until the end is sent,
 * and if the peer has closed, until it ends, too. NULL: nothing happens. */
ACO_API void aco_websocket_end_at(aco_websocket_t *socket, const char *location);
#define aco_websocket_end(socket) aco_websocket_end_at(socket, ACO_PLACE)

enum { ACO_WEBSOCKET_TEXT = 1, ACO_WEBSOCKET_BINARY = 2 };

/* Waits for a message. Points *data to its bytes, which a 0 follows, and stores their number in *n. They are valid
 * until the next call. Returns the message's type; 0: the peer has closed (aco_websocket_code()), again at each further
 * call; on error -1 with errno EBADMSG (the peer breaks the protocol), EFBIG (more than max_message), ETIMEDOUT
 * (idle_time or message_time is over, or a scope has ended: aco_check_cancelled() tells), ECANCELED, ECONNRESET (the
 * connection ended without a close), ENOMEM. After the end of a scope the next call goes on; after any other error it
 * fails again. */
ACO_API int aco_websocket_receive_at(aco_websocket_t *socket, const char **data, size_t *n, const char *location);
#define aco_websocket_receive(socket, data, n) aco_websocket_receive_at(socket, data, n, ACO_PLACE)

/* Sends a message. Returns 0; on error -1 with errno EINVAL (the type, or text that is no UTF-8), EPIPE (the WebSocket
 * is closed, or the peer is gone), ECONNRESET (the peer is gone), ETIMEDOUT (also: the peer takes nothing for the
 * server's write_time), ECANCELED, ENOMEM, EPERM (the caller cannot wait).
 * After the end of a scope a message can be sent again if no part of it was sent, and if it has at most 2 KiB and goes
 * without TLS and HTTP/2, or has only waited for another task's; else later calls fail with EPIPE. */
ACO_API int aco_websocket_send_at(aco_websocket_t *socket, int type, const void *p, size_t n, const char *location);
#define aco_websocket_send(socket, type, p, n) aco_websocket_send_at(socket, type, p, n, ACO_PLACE)

/* Closes: sends the peer a code and a reason, and waits at most 5 s for its answer. Messages that come before it are
 * dropped. `code`: 1000 (done); 1001 to 1003, 1007 to 1014 (RFC 6455's); 3000 to 4999 (the program's). `reason`: up to
 * 123 bytes of UTF-8, or NULL. Only the task that receives may call it. Returns 0; on error -1 with errno EINVAL (the
 * code or the reason), ETIMEDOUT (also: no answer in 5 s), or another error of sending or receiving. */
ACO_API int aco_websocket_close_at(aco_websocket_t *socket, int code, const char *reason, const char *location);
#define aco_websocket_close(socket, code, reason) aco_websocket_close_at(socket, code, reason, ACO_PLACE)

/* Returns the code with which the peer has closed; 1005: it gave none; 1006: it has not closed. */
ACO_API int aco_websocket_code(const aco_websocket_t *socket);
/* Returns the chosen subprotocol, which is one from the options; "": none. Valid as long as the connection. */
ACO_API const char *aco_websocket_protocol(const aco_websocket_t *socket);

ACO__END_C

#endif
