/* HTTP: servers and clients of HTTP/1.1 and HTTP/2. Where a connection waits, only its task waits. In the
 * library acorn_http, beside acorn_io.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static void hello(aco_http_request_t *request, void *arg)
 *   {
 *       aco_http_reply(request, 200, "text/plain", "hello\n", 6);
 *   }
 *   ...
 *   static const aco_http_route_t routes[] = {{"GET", "/", hello, NULL}, {NULL, NULL, NULL, NULL}};
 *   aco_http_server_options_t options = {0};
 *   options.routes = routes;
 *   aco_http_serve(aco_io_listen("tcp", NULL, "8080", NULL), &options);
 *
 * Server. Each connection is a task. It reads a request, calls the handler of its route, sends the handler's reply, and
 * waits for the next request. A handler may wait; only its connection waits then. If a client sends several requests
 * without waiting for replies (pipelining), they are handled in order. Their replies are sent together if no handler
 * waits in between; over TLS, each reply is sent before the next handler is called.
 *
 * HTTP/2. Where the library was built with it (aco_http_has_http2()), a server speaks it on the same port: if ALPN has
 * chosen "h2", or if a client on a plain connection begins with its preface. Then each request is a task of its own,
 * and the handlers of a connection run at the same time. What is said below of a connection's task holds for that task;
 * where a request's end cuts the connection, only the request is reset.
 *
 * Refused requests. Two programs must not see the end of a request at different places. So the server refuses requests
 * with both Content-Length and Transfer-Encoding, with several lengths, with folded lines, bare line ends, NULs or
 * spaces before a colon, and without exactly one Host, which only HTTP/1.0 may leave out. It also refuses paths with
 * "." or ".." as a segment. It answers with an error and ends the connection.
 *
 * Waits obey scopes (aco/scope.h): they fail with -1 and ETIMEDOUT or ECANCELED. Each plain form below is a macro for
 * the form with `_at`. Errors are those of aco/io.h, and those named here. Texts end with a 0. No pointer may be NULL
 * unless its text says so.
 *
 * Memory. A connection without a request has no buffers, only its task and a small record. A request's fields, and what
 * the calls for the request return, are valid until its handler returns.
 *
 * Threads. All calls for a server, request or response are made on one thread, the one of their descriptors, and so are
 * those for a client that is not shared (is_shared). A program with several threads serves on each of them, with a
 * listener of its own (ACO_IO_REUSEPORT). With a `balance`, idle connections may move between these servers.
 *
 * Tasks. A connection's handlers, `open`, `refused`, `log` and `failed` are called in the connection's task: on the
 * thread of aco_http_serve()'s caller, but never on the caller's stack. The server's `task` sets the stack's size. The
 * caller's scopes do not reach these functions. They are in a scope that ends with ECANCELED when drain_time is over;
 * `open` is also in one for head_time. All of them may wait; only the connection waits then. If a connection gets no
 * task, aco_http_serve() itself calls `failed`, in its caller's task. */
#ifndef ACO_HTTP_H
#define ACO_HTTP_H

#include "stream.h"

ACO__BEGIN_C

typedef struct aco_http_header_s {
    const char *name, *value;
} aco_http_header_t;

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

/* A request that a server has received. Read-only. */
typedef struct aco_http_request_s {
    const char *method;               /* "GET" */
    const char *target;               /* as it was sent: "/a%20b?c=d", "http://host/a", "*" */
    const char *path;                 /* decoded, "%2F" too: "/a b"; "*" */
    const char *query;                /* what follows the "?", as it was sent; "": nothing */
    const char *host;                 /* from the target, else from the header; "": none */
    const aco_http_header_t *headers; /* names as they were sent */
    size_t header_count;
    int minor;                        /* of the version: 1 for HTTP/1.1, or 0 */
    /* The connection's descriptor, to ask for addresses; -1: it has none. */
    int fd;
    /* The connection: to ask for addresses, and for TLS (aco_tls_of_stream()). It is the server's: neither read, write
     * nor end it. NULL: it was taken over. */
    aco_stream_t *stream;
    int64_t length;                   /* of the body, in bytes; -1: not known yet */
    int64_t began;                    /* when its first bytes were read, on the clock of aco_now() */
    /* For the log: */
    int status;                       /* of the reply; 0: there was none */
    int major;                        /* of the version: 1, or 2 for HTTP/2; 0: the server did not understand it */
    uint64_t sent;                    /* bytes of the reply's body */
    /* For middleware and the log: */
    const struct aco_http_route_s *route; /* that fits: its `path` is the pattern; NULL: none does */
    void *user; /* the program's, which may write it. NULL at first */
} aco_http_request_t;

/* Finds the first header with this name; upper and lower case are the same. Further lines with the name are in
 * `headers`: a list may have several lines. Trust no header that must occur only once (Origin) if it occurs twice.
 * Returns the value; NULL: there is no such header. */
ACO_API const char *aco_http_request_header(const aco_http_request_t *request, const char *name);
/* Finds the first trailer of the request with this name, as aco_http_request_header(). Trailers come behind the body:
 * an answer is certain once aco_http_request_read() has returned 0. They are no headers: trust them only for what they
 * are meant for. Those of a request have 16 KiB, or reading fails with EFBIG (by HTTP/2 the request is reset). Returns
 * the value; NULL: there is no such trailer, or HTTP does not allow it as one (Host, Authorization, …). */
ACO_API const char *aco_http_request_trailer(const aco_http_request_t *request, const char *name);
/* Returns the part of the path that {name} of the route stands for. The name "*" gives the rest of the path, for which
 * the "*" at the route's end stands. NULL: the route has no such name. */
ACO_API const char *aco_http_request_param(aco_http_request_t *request, const char *name);
/* Returns the decoded value of the first `name=value` in the query, with "+" as a space; "" if there is no "=". NULL
 * with errno 0: there is no such name; on error NULL with errno EINVAL (the value has a wrong escape or a NUL),
 * ENOMEM. */
ACO_API const char *aco_http_request_query(aco_http_request_t *request, const char *name);
/* Allocates `n` bytes at a multiple of 8, which are freed when the request is done. Returns them; on error NULL with
 * errno ENOMEM. */
ACO_API void *aco_http_request_allocate(aco_http_request_t *request, size_t n);

/* Reads what has come of the body, at most `n` bytes. Waits if nothing has come. The first call sends "100 Continue" to
 * a client that expects it.
 *
 * Returns the number of bytes; 0 at the end, or if `n` is 0; on error -1 with errno EFBIG (more than max_body), EBADMSG
 * (wrong chunks), ECONNRESET (the connection ended before the body), ETIMEDOUT (body_time is over, or a scope has
 * ended: aco_check_cancelled() tells), ECANCELED, ENOMEM, EPERM (the caller cannot wait). After the end of a scope,
 * ENOMEM or EPERM the next call goes on. After any other error it fails again. If the last of these calls has failed
 * and the handler returns without a reply, the server answers 413 (EFBIG), 400 (EBADMSG), 408 (ETIMEDOUT) or 500. */
ACO_API ssize_t aco_http_request_read_at(aco_http_request_t *request, void *p, size_t n, const char *location);
#define aco_http_request_read(request, p, n) aco_http_request_read_at(request, p, n, ACO_PLACE)
/* Sets the limits of this request's body in place of max_body and body_time of the server's options, before it is read:
 * bytes, and ns from the first wait for it. Less than 0: none. Only what the client announces (Content-Length) was
 * compared with max_body before. */
ACO_API void aco_http_request_limit_body(aco_http_request_t *request, int64_t max_body, int64_t body_time);
/* Reads the whole body, at most `most` bytes. Stores its length in *n; `n` may be NULL. Returns the body, with a 0
 * behind it, in memory of the request; on error NULL with errno as aco_http_request_read(), and EFBIG also if there are
 * more than `most` bytes. If the next call goes on, it has what came before the error. */
ACO_API char *aco_http_request_read_all_at(aco_http_request_t *request, size_t most, size_t *n, const char *location);
#define aco_http_request_read_all(request, most, n) aco_http_request_read_all_at(request, most, n, ACO_PLACE)

/* ---- Replies ----------------------------------------------------------------------------------------------------- */

/* Adds a header to the reply, before the reply begins. Several headers may have the same name. "Connection" with
 * "close" ends the connection after the reply. The server itself sends Content-Length, Transfer-Encoding and any other
 * value of Connection, and a Date if the handler has added none. `name` and `value` are copied. Returns 0; on error -1
 * with errno EINVAL (one of the first three; a name or value that is NULL or that HTTP does not allow, such as one with
 * a line end), EBUSY (the reply has begun), ENOMEM (also: over 6 KiB of headers). */
ACO_API int aco_http_reply_header(aco_http_request_t *request, const char *name, const char *value);

/* Adds a trailer to the reply: a header that is sent behind the body, for what is known only at its end. It may be
 * called until the handler returns. Only a reply without a known length has trailers (aco_http_reply_begin() with a
 * length less than 0): another one drops those that were added before it began. HTTP/1.1 sends them with the last
 * chunk, HTTP/1.0 not at all. Many clients see no trailers. `name` and `value` are copied. Returns 0; on error -1 with
 * errno EINVAL (a name or value that is NULL or that HTTP does not allow; a name that must come before the body, such
 * as Content-Length or Content-Type), EBUSY (the reply has begun and has a length or no body; the connection was taken
 * over), ENOMEM (also: over 6 KiB of trailers). */
ACO_API int aco_http_reply_trailer(aco_http_request_t *request, const char *name, const char *value);

/* Makes the whole reply: `status` is 200 to 599; `type` is the Content-Type, up to 1024 bytes, or NULL; the body has
 * `n` bytes, and may be NULL if it has none. A handler may call it once. After the call `body` is not used any more.
 * The bytes are sent when the handler has returned and no further request is there, or earlier if they are many.
 * Returns 0; on error -1 with errno EINVAL (the status, the type, or a body beyond PTRDIFF_MAX bytes), EBUSY (the reply
 * has begun), or one of aco_http_reply_write(). After an error of writing the connection ends, unless a scope has ended
 * before the reply began (not in TLS): then the call can be made again. */
ACO_API int aco_http_reply_at(aco_http_request_t *request, int status, const char *type, const void *body, size_t n,
                              const char *location);
#define aco_http_reply(request, status, type, body, n) aco_http_reply_at(request, status, type, body, n, ACO_PLACE)

/* Begins a reply in parts: the calls below write them, and the handler's return ends the reply. `length` is the number
 * of bytes that will be written. If it is less than 0, the length is not known: the reply is sent in chunks, to
 * HTTP/1.0 up to the connection's end. Returns 0; on error -1 with errno as aco_http_reply(). */
ACO_API int aco_http_reply_begin_at(aco_http_request_t *request, int status, const char *type, int64_t length,
                                    const char *location);
#define aco_http_reply_begin(request, status, type, length) \
    aco_http_reply_begin_at(request, status, type, length, ACO_PLACE)
/* Writes the next `n` bytes; few are collected. A reply without a body (to HEAD, 204, 304) sends none of them. Returns
 * 0; on error -1 with errno EPIPE, ECONNRESET (the client is gone), EINVAL (the reply has not begun), EMSGSIZE (more
 * than `length`; nothing is written), ETIMEDOUT (write_time is over, or a scope has ended), ECANCELED, ENOMEM, EPERM
 * (the caller cannot wait). */
ACO_API int aco_http_reply_write_at(aco_http_request_t *request, const void *p, size_t n, const char *location);
#define aco_http_reply_write(request, p, n) aco_http_reply_write_at(request, p, n, ACO_PLACE)
/* Sends what was collected so far, also of earlier replies. Returns 0; on error -1 with errno as
 * aco_http_reply_write(), but not EINVAL or EMSGSIZE. If a scope ends, the rest is sent later; in TLS the reply is cut
 * instead. */
ACO_API int aco_http_reply_flush_at(aco_http_request_t *request, const char *location);
#define aco_http_reply_flush(request) aco_http_reply_flush_at(request, ACO_PLACE)
/* Writes `n` bytes of a file from `offset` on, by sendfile() where that is possible, which blocks the thread while the
 * system reads from the disk. The file's own position stays. Returns 0; on error -1 with errno as
 * aco_http_reply_write(), EINVAL (also: `n` or `offset` is negative, or their sum is beyond INT64_MAX), EIO (the file
 * is shorter), or an error of reading the file: a part may have been written. */
ACO_API int aco_http_reply_write_file_at(aco_http_request_t *request, int fd, int64_t offset, int64_t n,
                                         const char *location);
#define aco_http_reply_write_file(request, fd, offset, n) \
    aco_http_reply_write_file_at(request, fd, offset, n, ACO_PLACE)

/* Returns 1 if the server has been stopped and goes on only for lame_time and drain_time, else 0. For the handler that
 * a load balancer asks: it replies 503 then, so that the balancer sends no more. */
ACO_API int aco_http_is_draining(const aco_http_request_t *request);

/* For handlers that wait long: long polls, event streams, WebSockets. Begins a scope that ends with ECANCELED when the
 * server has been stopped and lame_time is over. The waits inside fail then; the handler calls aco_http_drain_end(),
 * says goodbye (a reply, which has "Connection: close"; aco_websocket_close() with 1001), and returns. drain_time goes
 * on meanwhile. If the server has come so far already, the scope ends at once. The calling task, the handler's or
 * another one that ends before the handler returns, is inside until aco_http_drain_end(). Returns 0; on error -1 with
 * errno ENOMEM, or as aco_scope_begin(). */
ACO_API int aco_http_drain_begin_at(aco_http_request_t *request, const char *location);
#define aco_http_drain_begin(request) aco_http_drain_begin_at(request, ACO_PLACE)
/* Leaves the scope that the calling task has begun last by aco_http_drain_begin() for the request. Returns 1 if waits
 * inside failed, or would have, because of the server's end; 0 if not; on error -1 with errno EPERM (there is none, or
 * it is not the innermost scope). */
ACO_API int aco_http_drain_end(aco_http_request_t *request);

/* Returns the errno with which the request's connection has failed, so that no reply reaches the client: EPIPE,
 * ECONNRESET and others. 0: it has not failed. */
ACO_API int aco_http_connection_error(const aco_http_request_t *request);

/* Says that a reply which has begun cannot be completed: the connection is cut when the handler has returned. It is
 * also cut, without this call, if the handler
 *   - returns before it has written the `length` that it announced;
 *   - has announced no length, and a write has failed or the task is cancelled when the handler returns;
 *   - ends its task by aco_exit(), even before a reply.
 * A cut shows the client a failure: the connection is reset, in TLS it ends with an alert, and no last chunk is sent.
 * Earlier replies that the client has not received yet may be lost too. A Unix socket has no reset: there the client
 * sees the failure only by the length or the missing last chunk. (For a handler that returns without a reply the server
 * answers 500.) */
ACO_API void aco_http_reply_abort(aco_http_request_t *request);

/* Takes the connection over for another protocol, before a reply: the server sends and reads nothing more on it, and
 * forgets it. Sends the replies to earlier requests first. The request's body must have been read. The caller owns the
 * stream and closes it; it may use it after the handler's return, also in another task of the thread. *bytes are the *n
 * bytes behind the request that have been read already; they are valid until the handler returns. What the client is
 * told ("101 Switching Protocols") is the caller's to write. `log` gets the request with a status of 0. Afterwards the
 * calls that make a reply fail with EBUSY, also those of event streams and WebSockets; aco_http_reply_abort() does
 * nothing.
 *
 * A server that ends waits for the handler, and cancels it after drain_time, as any other. It does not wait for tasks
 * that use the stream after that, nor count the connection any more in max_connections: end these tasks by a group or a
 * scope of the program's. max_per_address counts it until the handler has returned.
 *
 * Returns the stream; on error NULL with errno EBUSY (the reply has begun, or the body was not read), ENOTSUP (this
 * version of HTTP has several requests on a connection), EPERM (in `refused` of the options), ENOMEM, or an error of
 * sending the earlier replies as aco_http_reply_flush(). Then the connection is still the server's. */
ACO_API aco_stream_t *aco_http_take_over_at(aco_http_request_t *request, const void **bytes, size_t *n,
                                            const char *location);
#define aco_http_take_over(request, bytes, n) aco_http_take_over_at(request, bytes, n, ACO_PLACE)

/* Makes the whole reply from the file root/path; from index.html there if `path` is "" or ends with "/". Handles GET
 * and HEAD, conditions (If-Match, If-None-Match, their forms with dates, If-Range) and single ranges. A date or Range
 * that is wrong or occurs more than once is ignored; with such an If-Range, the Range is ignored. Symbolic links are
 * followed, also out of the root, unless no_links or links_inside of the server's options is set. The end of the name
 * gives the type.
 *
 * Answers 404 for what is no file of the root or may not be read, and for a path with an empty segment, with one that
 * begins with ".", with "/" in front, or, if it is the end of the request's, with a "/" that was sent as "%2F"; 405 for
 * other methods; 503 if there is no descriptor or memory for the file; 500 for other errors of the system. Returns 0
 * after each answer; on error -1 with errno as aco_http_reply(), aco_http_reply_write_file(). */
ACO_API int aco_http_reply_file_at(aco_http_request_t *request, const char *root, const char *path,
                                   const char *location);
#define aco_http_reply_file(request, root, path) aco_http_reply_file_at(request, root, path, ACO_PLACE)

/* ---- Servers ----------------------------------------------------------------------------------------------------- */

/* Answers a request, in the task of its connection. A handler returns, or calls aco_exit(), which cuts the connection.
 * It must not leave by longjmp(): the server's frames are below it. */
typedef void (*aco_http_handler_t)(aco_http_request_t *request, void *arg);

/* Which requests a handler gets: those that fit its route and none before it in the table. The path is compared byte by
 * byte. {name} stands for the rest of a segment, at least a byte, and a "*" at the end for all that is left, even
 * nothing; a path has at most 8 of them. A route for GET takes HEAD too. If no path fits, the answer is 404; if only
 * the method does not fit, it is 405. */
typedef struct aco_http_route_s {
    const char *method; /* NULL: any */
    const char *path;   /* "/users/{id}", "/files/" with "*" behind it; NULL: the end of the table */
    aco_http_handler_t handler;
    void *arg;
} aco_http_route_t;

/* Middleware: a function that stands around handlers. It does something before the handler, calls aco_http_next(), and
 * does something after it. If it does not call aco_http_next(), the handler is not called, and it replies itself. */
typedef struct aco_http_middleware_s {
    aco_http_handler_t run; /* NULL: the end of a list */
    void *arg;
} aco_http_middleware_t;

/* Calls the next function of the middleware, in the order of the lists: first the server's, then that of the route's
 * group, then the handler. If no route fits, the request is answered with 404 or 405 in place of the handler. When the
 * call returns, `status` of the request is that of the reply; 0: there is none yet, so the caller may make it, or the
 * connection was taken over (`stream` is NULL). If nobody replies, the server answers 500. Middleware may call it again
 * as long as no reply has begun. Returns 0; on error -1 with errno EINVAL (a handler has called it). */
ACO_API int aco_http_next(aco_http_request_t *request);

/* Middleware that limits the time of what is behind it. Its `arg` is an aco_http_time_limit_t. */
typedef struct aco_http_time_limit_s {
    int64_t time; /* ns, from the call of the middleware, when the request's head has come */
    aco_http_handler_t late; /* makes the reply when the time was over; NULL: it is 503 */
    void *late_arg;
} aco_http_time_limit_t;
/* Puts a scope around what is behind it. When the time is over, the waits inside fail with ETIMEDOUT, and the handler
 * should return; a handler that never waits is not interrupted. What follows depends on the reply:
 *   - It has not begun: it is made by `late`, outside of the scope, or is 503. It has the headers that the handler has
 *     added so far.
 *   - It has been made whole, or has a length: it stays. If bytes of it are missing, the connection is cut.
 *   - It has begun without a length: the connection is cut, because nothing else shows the client that some is missing.
 * A WebSocket ends as by any other scope. If the connection was taken over, nothing follows: the waits in the handler
 * fail, but the stream stays as it is. A handler that uses the stream for longer does so in a task of its own, or in
 * aco_shield_begin(). If there is no memory for the scope, the reply is 503. */
ACO_API void aco_http_limit_time(aco_http_request_t *request, void *limit);

/* Middleware that ends what is behind it when the client goes away. `arg` is not used. The waits of the handler then
 * fail with ECANCELED, and aco_http_connection_error() is ECONNRESET. This is noticed in any wait, also while a body or
 * a further request is unread, but then up to a second late: the system is asked whether the client has closed,
 * nothing is read. So a client that only shuts its sending side down counts as gone, and a TLS client goes away with
 * its TCP connection. A further task watches during the request, until the connection is taken over. A stream without
 * a descriptor is not watched. Without memory for it the reply is 503. Not for WebSockets: their calls notice it. */
ACO_API void aco_http_end_with_client(aco_http_request_t *request, void *arg);

/* How aco_http_compress() compresses. Zeros are the defaults. */
typedef struct aco_http_compression_s {
    const char *types;   /* content types, separated by commas; "text/" with "*" behind it fits all that begin so.
                            NULL: HTML, CSS, plain text, JavaScript, JSON, XML, CSV, Markdown, SVG, WebAssembly */
    int64_t min_length;  /* bytes of a body; a shorter one is left as it is: 1024. One of unknown length is coded */
    int level;           /* 1 (fast) to 9 (small): 5 for gzip, 4 for br */
    int max_at_once;     /* replies that a server compresses at once, each with up to 1.1 MiB; further ones are left as
                            they are: 256 */
    int with_secrets;    /* 1: also replies that may have secrets, as told below. 0: not */
    int with_br;         /* 1: also br, preferred to gzip. Brotli's library, as it is usually built, ends the process by
                            exit(1) if it gets no memory. 0: gzip alone */
    void *aco__reserved[2]; /* reserved fields are 0 */
} aco_http_compression_t;
/* Middleware that compresses the replies of what is behind it, by gzip or br, as the request's Accept-Encoding wants.
 * `compression` is an aco_http_compression_t, which must stay valid; NULL: the defaults. Where the library was built
 * without zlib and brotli, nothing is compressed.
 *
 * Secrets. Who can make a victim's browser send requests, and sees how long the replies are, finds out a secret in a
 * compressed reply that also repeats something of the request (the attack BREACH; TLS does not help). So replies are
 * not compressed if the request has Cookie or Authorization, or the reply Set-Cookie. Set with_secrets for routes whose
 * replies have no secrets, such as a site's files, or do not repeat what the request says. Secrets of clients that are
 * known by their address or by a TLS certificate are not noticed: leave their routes out.
 *
 * Which replies: those whose `type`, given to aco_http_reply() or aco_http_reply_begin(), is in `types`, and whose
 * status is not 204 or 206. Not if the handler has set Content-Encoding, Content-Range, a digest of the content, or
 * Cache-Control with no-transform. A reply that would be compressed for some client has "Vary: Accept-Encoding", and so
 * have a 304, and a 206 of such a type. If it is compressed, it has no Content-Length and no Accept-Ranges, and its
 * ETag becomes a weak one, also in a 304; with a length, trailers are dropped. HEAD gets the headers that GET would.
 *
 * The body is compressed as it is written, 16 KiB at a time; other tasks may run in between. aco_http_reply_flush()
 * makes what was written readable for the client, and costs some bytes each time. `sent` counts compressed bytes. If a
 * write fails, the reply is cut. Compressing needs 2 KiB more of stack. */
ACO_API void aco_http_compress(aco_http_request_t *request, void *compression);

/* Routes that have middleware of their own. */
typedef struct aco_http_group_s {
    const aco_http_route_t *routes; /* with their whole paths; NULL: the end of a list of groups */
    const aco_http_middleware_t *middleware; /* NULL: none */
} aco_http_group_t;

/* Why a connection ended without a reply, or during one. */
enum {
    ACO_HTTP_LEFT, /* the client went away. Ordinary */
    ACO_HTTP_SLOW, /* a time limit of the server or a handler was over. Ordinary */
    ACO_HTTP_HANDSHAKE, /* `open` has failed: the two do not agree about TLS */
    ACO_HTTP_FAILED, /* anything else: no memory, a request that was cancelled when drain_time was over */
    ACO_HTTP_REFUSED, /* its address has max_per_address connections; or, over HTTP/2, it broke the rules (EPROTO) or
                         cost too much for nothing (ECONNREFUSED). Ordinary */
    ACO_HTTP_FAILURES /* how many kinds there are */
};

/* Valid during the call. */
typedef struct aco_http_failure_s {
    int kind;
    int error;                         /* the errno */
    int fd;                            /* the connection's descriptor; -1: it is closed */
    const char *message; /* what aco_error_message() says of it, or strerror(); or that drain_time is over */
    const aco_http_request_t *request; /* the one under way; NULL: none */
} aco_http_failure_t;

/* What servers on several threads have in common if they shall balance their connections. Zeros; it must stay where it
 * is until all of them have returned. After fork() the child uses another one. The servers must have the same routes
 * and options, except for counters and the like: a connection that moves gets those of the server it comes to.
 *
 * A thread stalls if a handler runs for more than 5 ms without a wait, up to its end; it may have waited before. The
 * thread counts as stalled for a second more. (The first such request only makes the server look closer. Then other
 * tasks that keep the thread busy while handlers wait may be noticed, too.) A connection that moves goes to the server
 * with the fewest connections whose thread is not stalled; if that does not take it within 5 ms, it stays:
 *   - A new one, before its first byte and before `open`, if its own thread is stalled, or has more connections than
 *     that server by more than one and 1/16.
 *   - Another one, when it has no request, if its own thread is stalled. With an `open`, only if the stream that this
 *     has made can move (aco/stream.h), as those of aco/tls.h can. It stays for good if a handler of its own has
 *     stalled the thread; for the next 16 requests if that handler had waited before, because other tasks may have been
 *     it.
 * Others stay: WebSockets; all if every thread is stalled; and those of a stopped server, which takes none either.
 *
 * A connection that moves ends its task, with what is local to it, and begins a new one on the other thread. Handlers,
 * `log` and `failed` run there from then on, so what a program keeps for a connection in the thread's memory must not
 * outlive a request; `user` of a request never does. Nothing is told of the move, nothing is lost, and max_requests
 * counts on, but idle_time begins anew. The descriptor's number stays. The server it comes to counts it for
 * max_connections and max_per_address: it takes none beyond the first, but beyond the second. If it cannot take the
 * connection (no memory for its task, its end), the connection stays where it was. */
typedef struct aco_http_balance_s {
    /* How often a connection has moved. Atomic; read-only. */
    __attribute__((aligned(8))) uint64_t moved;
    int aco__lock;
    struct aco__http_member *aco__members;
    void *aco__reserved[2];
} aco_http_balance_t;

/* A field that is 0 or NULL has its default, which the comment names. NULL for the whole structure: all defaults, with
 * which every request gets 404. A limit or time less than 0 means: none
 * (for lame_time: no time). max_head and max_headers always have a limit: at least 64 bytes, and 1. */
typedef struct aco_http_server_options_s {
    const aco_http_route_t *routes;
    int max_head;           /* bytes of the request line and the headers: 15 KiB; at most 1 MiB */
    int max_headers;        /* how many: 100; at most 1000 */
    int max_connections;    /* at once: 10000. Further ones wait to be accepted, also while a stopped server ends: those
                               that still wait when drain_time is over are reset */
    int max_refused;        /* connections at once beyond max_connections that are accepted all the same. Their first
                               request is answered with 503, without middleware and handler, and they end; it must come
                               within head_time, over TLS also the handshake. HTTP/2: so are the requests that come with
                               the first one; GOAWAY tells that there are no more. So clients and load balancers learn
                               at once that the server is full, before the listener's backlog is. None: they wait */
    int max_requests; /* of a connection, whose last reply has "Connection: close": no limit */
    int max_per_address; /* connections at once from one IPv4 address, also behind NAT64 (64:ff9b::/96), one
                               link-local IPv6 address, or another IPv6 network (/64): no limit. Further ones are
                               closed when they are accepted, without a reply. Behind a proxy all have its address.
                               Each server counts for itself */
    int64_t max_body;       /* bytes: 1 MiB */
    int64_t head_time;      /* ns, from the first byte of a request to the end of its headers: 10 s */
    int64_t idle_time;      /* ns without a request, also before the first: 60 s */
    int64_t body_time;      /* ns for a body, from the first wait for it by a handler or the server itself: 60 s. It
                               runs on between a handler's reads: after it, a read of what the server has not read yet
                               fails with ETIMEDOUT */
    int64_t write_time;     /* ns in which a client takes nothing of what is sent, or over TLS not a whole record (at
                               most 16 KiB): 30 s */
    int write_rate;         /* bytes/s that a client must take of what is sent, while the server waits for it: 240. The
                               time that it lags behind is taken off write_time, and comes back as it takes more. Less
                               than 0: any byte makes write_time begin anew. So a client that reads a byte now and then
                               is cut after about write_time */
    int body_rate;          /* bytes/s: each so many bytes of a body that have come prolong its body_time by a second,
                               which then ends only bodies that come more slowly. For large ones. 0: none, body_time is
                               for the whole body */
    int64_t lame_time;      /* ns for which a stopped server goes on as before, except that aco_http_is_draining() tells
                               of the stop: none */
    int64_t drain_time;     /* ns that requests have to end after lame_time: 10 s */
    int64_t drain_idle_time; /* ns after lame_time in which an idle connection, even one that is accepted only then,
                               may still begin a request or make its stream: 500 ms; at most drain_time */
    /* Called after each request, also one that was refused or that got no reply, but not after aco_exit(). A request
     * whose end by aco_http_end_with_client came before its reply has none, so that no 500 is counted for clients that
     * go away. The connection's next request waits for this call; so does the reply, if it is still collected. NULL:
     * none. */
    void (*log)(const aco_http_request_t *request, void *log_arg);
    void *log_arg;
    /* Called when a connection fails; in the task of aco_http_serve() if the connection gets no task. NULL: stderr gets
     * a line for HANDSHAKE and FAILED, and nothing for the ordinary kinds. */
    void (*failed)(const aco_http_failure_t *failure, void *failed_arg);
    void *failed_arg;
    uint64_t *failures;     /* ACO_HTTP_FAILURES counters, one for each kind, which the server increases. Servers may
                               share them, also between threads: atomic, relaxed. NULL: none. Not counted:
                               aco_http_reply_abort(), aco_exit(), replies that are shorter than announced, resets
                               between requests, and what was answered with 408 */
    /* For the connections' tasks; NULL: the defaults. The smallest stack, 4 KiB, is enough for what the server itself
     * does (8 KiB without optimisation). Handlers need more for their own frames, files, WebSockets and TLS. */
    const aco_options_t *task;
    /* Called in the connection's task, with head_time as its limit. Makes the stream (aco/stream.h) of a new
     * connection, by a TLS handshake for example, and gives it to the server. Returns it; on error NULL with errno and
     * aco_error_message(), after it has closed the descriptor. If `open` itself is NULL, connections are plain. */
    aco_stream_t *(*open)(int fd, void *open_arg);
    void *open_arg;
    const aco_http_middleware_t
        *middleware; /* for all requests whose head is right, also if no route fits. NULL: none */
    /* Called to make a reply in place of the server's own short text: to a request for which there is no route (404,
     * 405 with its Allow), whose handler has not replied (500, 413, 400, 408), that aco_http_reply_file() or a
     * WebSocket refuses, or whose head is wrong (400, 413, 414, 417, 431, 505, …: what the server did not understand
     * is empty). `status` is what the server would send; the reply may have another one. If the function returns
     * without a reply, the server makes it. Either has the headers that the handler or middleware has added before
     * (Set-Cookie, for example): add last what belongs to the handler's own reply. The function cannot read the body of
     * a request whose head is wrong, and neither take the connection over nor make it a WebSocket. NULL: none. */
    void (*refused)(aco_http_request_t *request, int status, void *refused_arg);
    void *refused_arg;
    const aco_http_group_t *groups; /* their routes are looked at after `routes`, in order. NULL: none */
    /* For HTTP/2: */
    int max_streams;        /* requests at once on a connection, counted until their handlers have returned: 100. Less
                               than 0: no HTTP/2 */
    int max_streams_in_all; /* on all connections of the server: 10000. Further ones are refused (REFUSED_STREAM), and
                               clients may try again */
    int stream_window;      /* bytes of a request's body that the client may send before the handler reads them, and
                               that the server holds: 64 KiB; at least 1024 */
    int connection_window;  /* the same of all requests of a connection: 1 MiB; at least 65535 */
    int64_t max_buffered;   /* the same of all connections of the server, with messages of gRPC (aco/grpc.h) that are
                               read: 64 MiB. A body beyond is not taken: its handler's read fails with ENOBUFS, and the
                               answer is 503 */
    int no_escaped_slashes; /* 1: the answer to a path with "%2F" is 400. A program that compares paths before they are
                               decoded, such as a front-end, sees another path than the server. 0: it is a "/" */
    int no_links; /* 1: aco_http_reply_file() follows no symbolic link below the root, and answers 404 */
    int links_inside; /* 1: it follows only those that stay below the root, as aco_file_open_beneath() does: relative
                         ones that do not lead out. The answer to others is 404. Where the system cannot tell (before
                         Linux 5.6), it follows none */
    /* Servers of several threads that have the same one, each with a listener of its own, balance their connections, as
     * aco_http_balance_t says. NULL: no connection moves. */
    aco_http_balance_t *balance;
    void *aco__reserved[1]; /* reserved fields are 0 */
} aco_http_server_options_t;

/* Returns 1 if the library was built with HTTP/2, else 0: whether to offer "h2" by ALPN. */
ACO_API int aco_http_has_http2(void);

/* Serves the connections of `listener`, made by aco_io_listen(), until accepting fails or a scope of the caller ends.
 * The end of a scope stops the server. A stopped server loses no request that the system has received:
 *   - It goes on for lame_time.
 *   - Then it accepts all connections that wait, refuses those to which the system has not answered yet, and closes the
 *     listener. One that is shared (aco_io_set_shared()) it only closes.
 *   - Replies have "Connection: close", unless the client has already sent further requests. A connection without a
 *     request is closed when drain_idle_time is over. That time begins when lame_time is over, or with the connection's
 *     turn if that comes later.
 *   - What is left after drain_time is cancelled.
 * A further scope that ends does not shorten this. What `options` point to must not change during the call. Returns -1
 * with errno ECANCELED, ETIMEDOUT (a scope has ended), an error of accepting, EINVAL (max_head, max_headers, a
 * reserved field or a route, also of a group, is not allowed: no handler, a name that is empty or has no end, more than
 * 8 names), ENOMEM, EPERM (the caller cannot wait: it is not a task). The listener is closed then, also if the call has
 * failed before it accepted. If `listener` is less than 0, errno stays what aco_io_listen() set. */
ACO_API int aco_http_serve_at(int listener, const aco_http_server_options_t *options, const char *location);
#define aco_http_serve(listener, options) aco_http_serve_at(listener, options, ACO_PLACE)

/* ---- Connections that were accepted elsewhere -------------------------------------------------------------------- */

/* What such connections have in common: routes, limits, an end. For programs that accept themselves: several protocols
 * on one port, a proxy's line before HTTP, connections that are no sockets. It belongs to the thread that made it. */
typedef struct aco_http_server_s aco_http_server_t;

/* Makes a server without a listener; the caller owns it. NULL options: the defaults. The structure is copied; what it
 * points to must stay as it is. Not used is what concerns accepting: max_connections, max_per_address, `task`,
 * `open`, `balance`, lame_time and drain_time. Returns the server; on error NULL with errno ENOMEM, or EINVAL as
 * aco_http_serve(). */
ACO_API aco_http_server_t *aco_http_server_new(const aco_http_server_options_t *options);
/* Stops the server. From now on replies have "Connection: close", and connections without a request are closed when
 * drain_idle_time is over; their calls return. Requests go on: how long, the program decides, by the scope or the group
 * of its tasks. Does not wait. */
ACO_API void aco_http_server_stop(aco_http_server_t *server);
/* Frees the server: each call that serves a connection of it must have returned. NULL: nothing happens. */
ACO_API void aco_http_server_destroy(aco_http_server_t *server);

/* Serves the requests of one connection in the calling task until it ends, as aco_http_serve() does. `stream` is any
 * (aco/stream.h): the call takes it over and closes it, also on error. The `n` bytes at `bytes` come before the
 * stream's: what was read of it to find out that it is HTTP. They are at most max_head and are copied; `bytes` may be
 * NULL if `n` is 0. If a scope of the caller ends, its handlers' waits fail, and the connection ends. Replies to
 * pipelined requests are sent before the next handler is called. Handlers must not end the task by aco_exit() unless
 * its other frames can bear that: it cuts the connection.
 *
 * Returns 0 when the connection has ended, however (`failed` of the options tells); on error -1 with errno EINVAL
 * (`n`), ENOMEM, EPERM (the caller is not a task). With a `stream` of NULL it fails and leaves errno as it is, so you
 * can pass on what aco_stream_open() and the like return. */
ACO_API int aco_http_serve_connection_at(aco_http_server_t *server, aco_stream_t *stream, const void *bytes, size_t n,
                                         const char *location);
#define aco_http_serve_connection(server, stream, bytes, n) \
    aco_http_serve_connection_at(server, stream, bytes, n, ACO_PLACE)

/* ---- Clients ----------------------------------------------------------------------------------------------------- */

/* A client keeps connections for further requests. Without TLS its calls need 4 KiB of stack, or 8 KiB if the library
 * was built without optimisation. */
typedef struct aco_http_client_s aco_http_client_t;

/* Zeros are the defaults. */
typedef struct aco_http_client_options_s {
    int max_idle;           /* kept connections, the most recently used: 16. Less than 0: none */
    int max_redirects;      /* that are followed: 10. Less than 0: none */
    int max_head, max_headers; /* of responses, as for a server, and never without a limit: 31 KiB, 200 */
    const char *proxy_host, *proxy_port; /* an HTTP proxy for all requests; NULL: none */
    const char *proxy_user, *proxy_password; /* for the proxy (Basic), up to 255 bytes each, the user without ":".
                                                NULL: none. Not needed after aco_http_client_new() */
    /* Makes the stream to this host for https:// URLs, as `open` of a server does. NULL: https:// is refused. */
    aco_stream_t *(*open)(int fd, const char *host, void *open_arg);
    void *open_arg;
    /* Connections in use at once, in all and to a host (a port of it; by a proxy: the proxy). One is in use from the
     * dialing to aco_http_response_end(). Further calls wait, first come, first served; those for one host do not stop
     * those for another. Kept connections are closed to stay below. 0: no limit. A task that holds a response must
     * not need another one that waits for it. */
    int max_connections, max_per_host;
    /* Limits in ns, after which a call fails with ETIMEDOUT; 0: none, other than the caller's scopes: */
    int64_t connect_time;   /* of dialing, the tunnel and `open` */
    int64_t head_time;      /* from the end of a request to that of its response's head */
    int64_t total_time;     /* of a call with its redirects, its waiting for a connection, and the response's body */
    /* 1: asks for coded bodies and decodes them: gzip and deflate if the library was built with zlib, br with brotli.
     * Not if the call has a header Accept-Encoding or Range. */
    int decodes;
    int64_t max_decoded;    /* bytes of a decoded body, beyond which reading fails with EFBIG: 256 MiB */
    /* Cookies (aco/cookie_jar.h), up to 8 KiB for a request, unless the call has a header Cookie. NULL: none */
    struct aco_cookie_jar_s *jar;
    int sends_body_elsewhere; /* whether a redirect may take a request's body to another host, port or scheme. 0: no */
    /* For HTTP/2: */
    int prior_knowledge;    /* 1: http:// URLs are asked for by HTTP/2, unless there is a proxy. 0: by HTTP/1.1 */
    int64_t ping_time;      /* if nothing has come on a connection with requests for so many ns, the server is asked by
                               PING; if it has not answered after as many again, the requests fail with ETIMEDOUT. 0:
                               it is not asked */
    /* What `open` gets for requests that need HTTP/1.1: WebSockets on a new connection, what a server refuses by
     * HTTP_1_1_REQUIRED: it must not offer "h2". NULL: open_arg */
    void *open_http1_arg;
    /* 1: tasks of any thread may use the client. Each thread has connections of its own, for which max_idle,
     * max_connections and max_per_host count; `open` is called on all of them. 0: one thread uses it. */
    int is_shared;
    /* 1: max_connections and max_per_host of a shared client count for all threads together, and calls of all threads
     * wait in one queue for each limit. What each thread keeps (max_idle) comes in addition: a call closes kept
     * connections of its own thread to stay below, but not those of others. 0: they count for each thread. */
    int limits_in_all;
    void *aco__reserved[1]; /* reserved fields are 0 */
} aco_http_client_options_t;

/* Makes a client; the caller owns it. NULL options: the defaults. The structure is copied; what it points to must stay
 * valid. Returns the client; on error NULL with errno ENOMEM, EINVAL (a limit out of bounds, limits_in_all without
 * is_shared, a reserved field, proxy_host without proxy_port, one of the two longer than 255 or 5 bytes). */
ACO_API aco_http_client_t *aco_http_client_new(const aco_http_client_options_t *options);
/* Frees the client and closes the kept connections. All responses must have been ended before. Of a shared client, the
 * other threads that have used it must have ended: as aco_threads_run() and aco_service_run() end theirs. NULL: nothing
 * happens. */
ACO_API void aco_http_client_destroy(aco_http_client_t *client);
/* Closes the connections that the client keeps for further requests: of a shared one, those of the calling thread.
 * Calls that are under way go on. A thread that ends before a shared client is destroyed calls it when its last
 * response has ended; what it leaves else stays open until then, and so do some 400 bytes for each thread. */
ACO_API void aco_http_client_close_idle(aco_http_client_t *client);

/* A request to send. Zeros: no headers and no body. */
typedef struct aco_http_call_s {
    const char *method;               /* up to 32 bytes, not "CONNECT". NULL: "GET" */
    /* "http://host:port/path?query", as in aco/url.h. The host has up to 255 bytes, path and query up to 4095. A user,
     * "http://name:password@host/" with up to 255 bytes and with escapes, makes a header Authorization (Basic), unless
     * the call has one; it is sent as the call's own would be. An IPv6 address may have a zone, which is not sent:
     * "[fe80::1%25eth0]", as in RFC 6874, or "[fe80::1%eth0]". */
    const char *url;
    const aco_http_header_t *headers; /* not Host, Connection, Content-Length or Transfer-Encoding: the client's */
    size_t header_count;
    const void *body;
    int64_t length;                   /* of the body; with read_body, less than 0: not known, it is sent in chunks */
    /* Gives the body instead of `body`, in the calling task, which may wait. Returns how many of its next bytes, at
     * most `n`, it has stored at `p`; 0: the end; -1 and errno: the call fails, and the server sees a cut request. */
    ssize_t (*read_body)(void *arg, void *p, size_t n);
    void *read_arg;
    /* With a body: sends "Expect: 100-continue", and waits so many ns at most for the server's consent, or for another
     * response, before it sends the body. 0: sends it at once. */
    int64_t continue_time;
    /* Sent behind the body, if there is one: by HTTP/2, and by HTTP/1.1 if the length is not known (up to 6 KiB in
     * all). */
    const aco_http_header_t *trailers;
    size_t trailer_count;
    void *aco__reserved[2];           /* reserved fields are 0 */
} aco_http_call_t;

/* Read-only. Valid until aco_http_response_end(), with its headers. */
typedef struct aco_http_response_s {
    int status;
    int minor;                        /* of the version: 1 for HTTP/1.1; 0 for HTTP/1.0 and HTTP/2 */
    int redirects;                    /* that were followed */
    const aco_http_header_t *headers;
    size_t header_count;
    int64_t length;                   /* of the body; -1: not known */
    int is_decoded;                   /* the body had the Content-Encoding of the headers, reading takes it away */
    const char *url;                  /* whose response it is, behind redirects; without user and fragment */
    int major;                        /* of the version: 1 or 2 */
} aco_http_response_t;

/* Sends a request and waits for the response's head. Uses `call` only until it returns. Uses a kept connection if there
 * is one. If that turns out to be closed before anything has come, an idempotent request without read_body is sent once
 * more.
 *
 * HTTP/2 is spoken if ALPN has chosen "h2" (what `open` offers decides), or by prior_knowledge. The requests of all
 * tasks to a host share one connection; if the server takes no more at once, they wait in turn. It counts as one
 * connection, and needs tasks of its own only while there are responses to be ended. A request that the server has
 * refused without looking at it (REFUSED_STREAM, GOAWAY) is sent again, up to 5 times, unless read_body was called. One
 * that it has refused by HTTP_1_1_REQUIRED is sent by HTTP/1.1, if open_http1_arg is set or there is no TLS.
 * Connections without requests are not read: pings are answered with the next request.
 *
 * A final response that comes while the body is sent ends the sending. (On a stream that is no socket it is noticed
 * between two writes.) The connection is closed then.
 *
 * Redirects are followed:
 *   - 303, and a POST's 301 and 302: by GET (HEAD stays HEAD), without the body and the headers that describe it
 *     (Content-…, Digest, Expect, Trailer, …).
 *   - Others: by the same method with the same body.
 * Spaces and bytes beyond ASCII in a Location get escapes. Once a redirect leads to another host, port or scheme,
 * Authorization, Proxy-Authorization and Cookie are not sent any more. The caller gets the redirecting response itself
 * if it has no Location or several; if a read_body would have to be sent again; or if another body would go elsewhere
 * and sends_body_elsewhere does not allow that (a body may have secrets as well as a header).
 *
 * Returns the response, which the caller ends by aco_http_response_end(); on error NULL with errno EINVAL (NULL; the
 * URL, also of a redirect; a header; the method; a reserved field; a length less than 0 without read_body), EMSGSIZE
 * (read_body gave more or less than `length`), EBADMSG (the response is no HTTP, or beyond the limits), ECONNRESET (no
 * response), ELOOP (too many redirects), ECONNREFUSED (also: the proxy makes no tunnel for https://), ENOMEM, or an
 * error of aco_io_dial(), `open`, read_body, reading or writing. Nothing is left open. */
ACO_API aco_http_response_t *aco_http_call_at(aco_http_client_t *client, const aco_http_call_t *call,
                                              const char *location);
#define aco_http_call(client, call) aco_http_call_at(client, call, ACO_PLACE)
/* Calls aco_http_call() for a GET of `url`, without headers and body. */
ACO_API aco_http_response_t *aco_http_get_at(aco_http_client_t *client, const char *url, const char *location);
#define aco_http_get(client, url) aco_http_get_at(client, url, ACO_PLACE)

/* Finds the first header with this name; upper and lower case are the same. Returns the value; NULL: there is no such
 * header. */
ACO_API const char *aco_http_response_header(const aco_http_response_t *response, const char *name);
/* Tells of the redirects that were followed: the URL of request `i`, and the status of its response unless `status` is
 * NULL. Request 0 is the call's own, response->redirects the last. Returns the URL, valid as the response; NULL: there
 * was no such request. */
ACO_API const char *aco_http_response_redirect(const aco_http_response_t *response, int i, int *status);
/* Reads what has come of the body, at most `n` bytes. Waits if nothing has come. Returns the number of bytes; 0 at the
 * end, or if `n` is 0; on error -1 with errno EBADMSG (wrong chunks, a wrong coding), EFBIG (max_decoded), ECONNRESET
 * (the connection ended before the body), ETIMEDOUT, ECANCELED, ENOMEM, EPERM (the caller cannot wait). After the end
 * of a scope, ENOMEM or EPERM the next call goes on. After any other error it fails again. */
ACO_API ssize_t aco_http_response_read_at(aco_http_response_t *response, void *p, size_t n, const char *location);
#define aco_http_response_read(response, p, n) aco_http_response_read_at(response, p, n, ACO_PLACE)
/* Finds the first trailer of the response with this name, as aco_http_response_header(). An answer is certain once
 * aco_http_response_read() has returned 0. By HTTP/1.1, more than 16 KiB of them make reading fail with EBADMSG. A
 * server of HTTP/2 that sends a head and no more, and calls that "trailers only", has sent headers. Returns the value;
 * NULL: there is no such trailer, or HTTP does not allow it as one. */
ACO_API const char *aco_http_response_trailer(const aco_http_response_t *response, const char *name);
/* Ends a response. Does not wait. Keeps its connection if the whole body was read, or has come with what was read; else
 * closes it. In HTTP/2, if the response or the request's body has not ended, the request is reset (CANCEL, or NO_ERROR
 * if only the body is missing), and the connection goes on. NULL: nothing happens. */
ACO_API void aco_http_response_end(aco_http_response_t *response);

/* ---- Calls whose body is written while the response comes -------------------------------------------------------- */

/* Only by HTTP/2. One task may write while another reads; or one task does both in turn. */

/* Sends a request's head, and returns without waiting for the response. `call` has no body, length, trailers or
 * continue_time. Redirects are not followed, cookies of the response not kept, and its body is not decoded. Returns the
 * response, of which only `redirects` and `url` are known yet, and which the caller ends by aco_http_response_end(); on
 * error NULL with errno as aco_http_call(), EPROTONOSUPPORT (the server does not speak HTTP/2). */
ACO_API aco_http_response_t *aco_http_call_begin_at(aco_http_client_t *client, const aco_http_call_t *call,
                                                    const char *location);
#define aco_http_call_begin(client, call) aco_http_call_begin_at(client, call, ACO_PLACE)
/* Sends the next `n` bytes of the body; few are collected and sent soon. Waits while the server does not take them.
 * After the call `p` is not used any more. Returns 0; on error -1 with errno EPIPE (the response has ended: read it),
 * ECONNREFUSED (the server has not looked at the request: it can be made again), ECONNRESET (the server has reset the
 * request, or the connection has ended), EBADMSG (the response is wrong), EPROTO (the server broke the rules of
 * HTTP/2), ETIMEDOUT, ECANCELED, ENOMEM, EPERM (the caller cannot wait), EINVAL (the body has ended). If a scope ends
 * during the call, a part may have been sent: then end the response. */
ACO_API int aco_http_call_write_at(aco_http_response_t *response, const void *p, size_t n, const char *location);
#define aco_http_call_write(response, p, n) aco_http_call_write_at(response, p, n, ACO_PLACE)
/* Ends the body, with `count` trailers, which are copied; NULL and 0: none. Does not wait. Returns 0; on error -1 with
 * errno as aco_http_call_write(), EINVAL (also: a trailer that HTTP does not allow). */
ACO_API int aco_http_call_end(aco_http_response_t *response, const aco_http_header_t *trailers, size_t count);
/* Waits for the head of the response, up to head_time. Returns 0, and fills in the response; on error -1 with errno as
 * aco_http_call_write(), but not EPIPE or EINVAL. After the end of a scope the next call goes on. */
ACO_API int aco_http_response_await_at(aco_http_response_t *response, const char *location);
#define aco_http_response_await(response) aco_http_response_await_at(response, ACO_PLACE)
/* Returns the error code of HTTP/2 with which the server has reset the request, such as 8 (CANCEL), or 7
 * (REFUSED_STREAM, also by GOAWAY: the server has not looked at it). -1: it has not. */
ACO_API int64_t aco_http_response_reset_code(const aco_http_response_t *response);

ACO__END_C

#endif
