/* HTTP/1.1: servers and clients whose connections wait only for their task. In the library acorn_http, beside acorn_io.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static void hello(aco_http_request_t *request, void *arg)
 *   {
 *       aco_http_reply(request, 200, "text/plain", "hello\n", 6);
 *   }
 *   ...
 *   static const aco_http_route_t routes[] = {{"GET", "/", hello, NULL}, {NULL, NULL, NULL, NULL}};
 *   aco_http_server_t server = {0};
 *   server.routes = routes;
 *   aco_http_serve(aco_io_listen("tcp", NULL, "8080", NULL), &server);
 *
 * Server. Each connection is a task. It reads a request, calls the handler of its route, and sends what the handler
 * replies; then it waits for the next request. Handlers may wait: only their connection does. Requests that a client
 * has sent one behind the other (pipelining) are handled in turn, and their replies are sent together where no handler
 * waits in between.
 *
 * What is refused. Requests whose end two programs could see at different places: with a Content-Length and a
 * Transfer-Encoding, with several lengths, with folded lines, bare line ends, NULs, spaces before a colon, without one
 * Host; also paths with "." or ".." as a segment. The answer is an error and the end of the connection.
 *
 * Waits obey scopes (aco/scope.h): -1 with ETIMEDOUT or ECANCELED. Each plain form below is a macro for the form with
 * `_at`. Errors are those of aco/io.h, and those named here. Texts end with a 0.
 *
 * Memory. A connection without a request has no buffers, only its task and a small record. What a request's fields and
 * the calls for it return is valid until its handler returns.
 *
 * Threads. All calls for a server, request or client are made on one thread, that of their descriptors. A program that
 * uses several threads serves on each of them, with a listener of its own (ACO_IO_REUSEPORT).
 *
 * Tasks. A connection's handlers, `open`, `log` and `failed` are called in its task, on the thread and never on the
 * stack of aco_http_serve()'s caller; the server's `task` has the stack's size. They are in no scope of that caller,
 * but in one that ends with ECANCELED when drain_time is over, and `open` also in one for head_time. All of them may
 * wait: only the connection does. */
#ifndef ACO_HTTP_H
#define ACO_HTTP_H

#include "io.h"

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
    const char *query;                /* what is behind the "?", as it was sent; "": nothing */
    const char *host;                 /* of the target, or of the header; "": none */
    const aco_http_header_t *headers; /* names as they were sent */
    size_t header_count;
    int minor;                        /* of the version: 1 for HTTP/1.1, or 0 */
    int fd;                           /* the connection's descriptor: to ask for addresses */
    int64_t length;                   /* of the body, in bytes; -1: its end is not known yet */
    int64_t began;                    /* when its first bytes were read, on the clock of aco_now() */
    /* For the log: */
    int status;                       /* of the reply; 0: there was none */
    uint64_t sent;                    /* bytes of the reply's body */
} aco_http_request_t;

/* The value of the first header with this name, in any case of letters; NULL: none. There may be further ones, in
 * `headers`: lists may have several lines, and what may stand there only once (Origin) is worth nothing twice. */
ACO_API const char *aco_http_request_header(const aco_http_request_t *request, const char *name);
/* The text that stands in the path for {name} of the route; "*": for its end. NULL: the route has no such name. */
ACO_API const char *aco_http_request_param(aco_http_request_t *request, const char *name);
/* The decoded value of the first `name=value` of the query, "+" as a space; "" if there is no "=". NULL: none; or the
 * value has a wrong escape or a NUL (EINVAL), ENOMEM. */
ACO_API const char *aco_http_request_query(aco_http_request_t *request, const char *name);
/* Memory that is freed when the request is done. NULL and errno ENOMEM. */
ACO_API void *aco_http_request_allocate(aco_http_request_t *request, size_t n);

/* Reads of the body what has come, at most `n` bytes; waits if there is nothing. 0: the end. A client that expects
 * "100 Continue" gets it at the first call. -1 and errno: EFBIG (more than max_body), EBADMSG (wrong chunks),
 * ECONNRESET (the connection ended before the body), ETIMEDOUT (body_time is over; or a scope: aco_check_cancelled()
 * tells), ECANCELED, ENOMEM. After the end of a scope and after ENOMEM the next call goes on; after the others it fails
 * again. If the last of these calls has failed and the handler returns without a reply, the server answers 413, 400 or
 * 408. */
ACO_API ssize_t aco_http_request_read_at(aco_http_request_t *request, void *p, size_t n, const char *location);
#define aco_http_request_read(request, p, n) aco_http_request_read_at(request, p, n, ACO_PLACE)
/* The whole body, at most `most` bytes, with a 0 behind it; *n becomes its length (`n` may be NULL). NULL and errno: as
 * above, EFBIG also for more than `most`. What came before a failure is kept for the next call. */
ACO_API char *aco_http_request_read_all_at(aco_http_request_t *request, size_t most, size_t *n, const char *location);
#define aco_http_request_read_all(request, most, n) aco_http_request_read_all_at(request, most, n, ACO_PLACE)

/* ---- Replies ----------------------------------------------------------------------------------------------------- */

/* Adds a header to the reply, before it begins; several may have the same name. "Connection" with "close" ends the
 * connection after the reply. The server itself sends Date, Content-Length, Transfer-Encoding and other values of
 * Connection: the last three fail with EINVAL. -1 and errno: EINVAL (also a name or value that HTTP does not allow,
 * such as one with a line end), EBUSY (the reply has begun), ENOMEM (also beyond 6 KiB of headers). */
ACO_API int aco_http_reply_header(aco_http_request_t *request, const char *name, const char *value);

/* The whole reply, with `n` bytes as its body; `type`: its Content-Type, or NULL. A handler may call it once; after
 * that nothing of the body is used. The bytes are sent when the handler has returned and no further request is there,
 * or earlier if they are many. `status`: 200 to 599. 0; or -1 and errno: EINVAL, EBUSY (the reply has begun), ENOMEM,
 * and those of writing: then the connection will end. */
ACO_API int aco_http_reply_at(aco_http_request_t *request, int status, const char *type, const void *body, size_t n,
                              const char *location);
#define aco_http_reply(request, status, type, body, n) aco_http_reply_at(request, status, type, body, n, ACO_PLACE)

/* A reply in parts: begun, written, and ended by the handler's return. `length`: the bytes that will be written; less
 * than 0: it is not known, and the reply is sent in chunks (to HTTP/1.0: up to the connection's end). */
ACO_API int aco_http_reply_begin_at(aco_http_request_t *request, int status, const char *type, int64_t length,
                                    const char *location);
#define aco_http_reply_begin(request, status, type, length) \
    aco_http_reply_begin_at(request, status, type, length, ACO_PLACE)
/* Writes the next `n` bytes; few are collected. 0; or -1 and errno: EPIPE, ECONNRESET (the client is gone), EINVAL (not
 * begun), EMSGSIZE (more than `length`), ETIMEDOUT (write_time is over, or a scope), ECANCELED. Of a reply without a
 * body (to HEAD, 204, 304) nothing is sent. */
ACO_API int aco_http_reply_write_at(aco_http_request_t *request, const void *p, size_t n, const char *location);
#define aco_http_reply_write(request, p, n) aco_http_reply_write_at(request, p, n, ACO_PLACE)
/* Sends what was collected so far. 0; or -1 and errno as above: after the end of a scope the rest is sent later (not in
 * TLS: there the reply is cut). */
ACO_API int aco_http_reply_flush_at(aco_http_request_t *request, const char *location);
#define aco_http_reply_flush(request) aco_http_reply_flush_at(request, ACO_PLACE)
/* Writes `n` bytes of a file from `offset` on, by sendfile() where that is possible. -1 and errno: also EIO (the file
 * is shorter). */
ACO_API int aco_http_reply_write_file_at(aco_http_request_t *request, int fd, int64_t offset, int64_t n,
                                         const char *location);
#define aco_http_reply_write_file(request, fd, offset, n) \
    aco_http_reply_write_file_at(request, fd, offset, n, ACO_PLACE)

/* Whether the server has been stopped, and goes on for lame_time and drain_time only: 1 or 0. For what tells a load
 * balancer to send no more: it replies 503 then. */
ACO_API int aco_http_is_draining(const aco_http_request_t *request);

/* The errno with which the request's connection has failed, so that no reply reaches the client: EPIPE, ECONNRESET and
 * others. 0: it has not. */
ACO_API int aco_http_connection_error(const aco_http_request_t *request);

/* A reply that has begun cannot be completed: when the handler has returned, the connection is cut. So it is, without
 * this call, if the handler
 *   - returns before it has written the `length` that it announced;
 *   - has announced none and a write has failed, or its task was cancelled when it returns;
 *   - ends its task by aco_exit(), also before a reply.
 * To cut is to let the client see a failure: the connection is reset, in TLS it ends with an alert, and no last chunk
 * is sent. Earlier replies of the connection that the client has not received yet may be lost, too. A Unix socket has
 * no reset: there only a length or the lack of a last chunk tells. (A handler that returns without a reply has the
 * server answer 500.) */
ACO_API void aco_http_reply_abort(aco_http_request_t *request);

/* The whole reply: the file root/path, or index.html there if `path` is "" or ends with "/". Answers GET and HEAD;
 * conditions (If-Match, If-None-Match, their forms with dates, If-Range) and single ranges. A date, a Range or an
 * If-Range that stands there more than once is ignored, as one that is wrong. Symbolic links are followed. The type is
 * told by the name's end. Answers 404 for what is no file of the root or may not be read, for names with "." or ".." as
 * a segment, and for names that begin with "."; 503 if there is no descriptor or memory for the file, 500 for the
 * system's other errors. Returns 0; on error -1 with errno as aco_http_reply(), ETIMEDOUT, ECANCELED. */
ACO_API int aco_http_reply_file_at(aco_http_request_t *request, const char *root, const char *path,
                                   const char *location);
#define aco_http_reply_file(request, root, path) aco_http_reply_file_at(request, root, path, ACO_PLACE)

/* ---- Servers ----------------------------------------------------------------------------------------------------- */

/* Answers a request, in the task of its connection. It returns or calls aco_exit(), which cuts the connection. The
 * server's frames are below it: longjmp() must not leave them. */
typedef void (*aco_http_handler_t)(aco_http_request_t *request, void *arg);

/* Which requests a handler gets. The first route of the table that fits is taken. The path is compared segment by
 * segment: {name} stands for any one that is not empty, a "*" at the end for all that is left, also nothing. A route
 * for GET takes HEAD too. If only the method does not fit, the answer is 405; if no path does, 404. */
typedef struct aco_http_route_s {
    const char *method; /* NULL: any */
    const char *path;   /* "/users/{id}", "/files/" with "*" behind it; NULL: the end of the table */
    aco_http_handler_t handler;
    void *arg;
} aco_http_route_t;

/* What carries a connection if its descriptor alone does not: TLS (aco_tls_http_accept(), aco_tls_http_connect()). The
 * functions are those of aco/io.h for `stream`. */
typedef struct aco_http_transport_s {
    ssize_t (*read)(void *stream, void *p, size_t n, const char *location);
    ssize_t (*write)(void *stream, const void *p, size_t n, const char *location);
    void (*close)(void *stream); /* ends the stream, and closes the descriptor. Does not wait */
    /* These may be NULL: */
    int (*shutdown)(void *stream, const char *location);      /* tells the peer that nothing follows. 0, or -1 */
    int (*wait_readable)(void *stream, const char *location); /* waits without a buffer. 0, or -1 */
    int (*has_input)(void *stream); /* whether bytes have come from the descriptor that were not read. Does not wait */
    void (*abort)(void *stream); /* as `close`, but the peer must see a failure and no end; else `close` does for it */
} aco_http_transport_t;

/* Why a connection ended without a reply, or within one. */
enum {
    ACO_HTTP_LEFT,      /* the client went away. Ordinary */
    ACO_HTTP_SLOW,      /* a limit of time was over, the server's or a handler's. Ordinary */
    ACO_HTTP_HANDSHAKE, /* `open` has failed: by TLS the two do not agree */
    ACO_HTTP_FAILED,    /* anything else: no memory, a request that was cancelled when drain_time was over */
    ACO_HTTP_FAILURES   /* how many kinds there are */
};

/* Valid during the call. */
typedef struct aco_http_failure_s {
    int kind;
    int error;                         /* the errno */
    int fd;                            /* the connection's descriptor; -1: it is closed */
    const char *message;               /* what aco_error_message() has of it, or strerror() */
    const aco_http_request_t *request; /* that was under way; NULL: none */
} aco_http_failure_t;

/* A server. Zeros are the defaults. Limits and times, but for lame_time: less than 0: none. */
typedef struct aco_http_server_s {
    const aco_http_route_t *routes;
    int max_head;           /* bytes of the request line and the headers: 15 KiB; at most 1 MiB */
    int max_headers;        /* how many: 100; at most 1000 */
    int max_connections;    /* at once: 10000; more wait to be accepted, when the server is stopped up to the end of
                               drain_time: what has no place until then is reset */
    int shares_listener;    /* 1: other processes have the listener, too, by socket activation or fork(): they take what
                               waits when this server is stopped. 0: then the listener takes no connection any more */
    int64_t max_body;       /* bytes: 1 MiB */
    int64_t head_time;      /* ns, from the first byte of a request to the end of its headers: 10 s */
    int64_t idle_time;      /* ns without a request, also before the first: 60 s */
    int64_t body_time;      /* ns for a body, from the first wait for it, by a handler or the server itself: 60 s. What
                               a handler does between its reads counts: a later read of what has not come yet gets
                               ETIMEDOUT */
    int64_t write_time;     /* ns in which a client takes nothing of what is sent: 30 s */
    int64_t lame_time;      /* ns that the server goes on as before when it is stopped, but for aco_http_is_draining():
                               none */
    int64_t drain_time;     /* ns that requests have to end after that: 10 s */
    int64_t drain_idle_time; /* ns of these in which a connection that is idle may still begin a request, also one that
                               is accepted only then, or make its stream: 500 ms */
    /* Called after each reply, which may still be collected: it, and the next request of the connection, wait for this
     * call then. NULL: none. */
    void (*log)(const aco_http_request_t *request, void *log_arg);
    void *log_arg;
    /* Called when a connection fails; for one that gets no task, in the task of aco_http_serve(). NULL: stderr gets a
     * line for HANDSHAKE and FAILED, and nothing for the ordinary kinds. */
    void (*failed)(const aco_http_failure_t *failure, void *failed_arg);
    void *failed_arg;
    uint64_t *failures;     /* ACO_HTTP_FAILURES counters, one for each kind, that are increased. Several servers may
                               have the same ones, also on several threads: atomic, relaxed. NULL: none. Not counted:
                               aco_http_reply_abort(), aco_exit(), replies that are shorter than announced, resets
                               between requests, and what was answered with 408 */
    /* Of the connections' tasks; NULL: the defaults. The least stack, 4 KiB, is enough for what the server does by
     * itself (8 KiB without optimisation); handlers need more for theirs, files, WebSockets and TLS. */
    const aco_options_t *task;
    /* Called in the connection's task, with head_time as its limit: makes the stream of a new connection (a TLS
     * handshake) and stores its functions. NULL, with errno and aco_error_message(): it failed, and has closed the
     * descriptor. If `open` itself is NULL, connections are plain. */
    void *(*open)(int fd, const aco_http_transport_t **transport, void *open_arg);
    void *open_arg;
} aco_http_server_t;

/* Serves connections of `listener`, an aco_io_listen(), until a scope of the caller ends (the server is stopped) or
 * accepting fails. A server that is stopped ends without losing a request that the system has received:
 *   - For lame_time it goes on.
 *   - It takes all connections that wait to be accepted, refuses those to which the system has not answered yet, and
 *     closes the listener. With shares_listener it only closes it.
 *   - Replies have "Connection: close", unless the client has sent further requests already. A connection without a
 *     request is closed when drain_idle_time is over, which begins with the stop, or with its turn after that.
 *   - What is left after drain_time is cancelled.
 * No further end of a scope shortens that. Returns -1 and errno: ECANCELED, ETIMEDOUT (a scope has ended), those of
 * accepting, EINVAL, ENOMEM, EPERM (the caller cannot wait: it is not a task), and that of aco_io_listen() for a
 * listener less than 0. `server` must not change meanwhile. */
ACO_API int aco_http_serve_at(int listener, const aco_http_server_t *server, const char *location);
#define aco_http_serve(listener, server) aco_http_serve_at(listener, server, ACO_PLACE)

/* ---- Clients ----------------------------------------------------------------------------------------------------- */

/* A client: connections that are kept for further requests, a few for each host. Calls without TLS need 4 KiB of stack,
 * or 8 KiB if the library was built without optimisation. */
typedef struct aco_http_client_s aco_http_client_t;

/* Zeros are the defaults. */
typedef struct aco_http_client_options_s {
    int max_idle;           /* connections that are kept, the last used: 16. Less than 0: none */
    int max_redirects;      /* that are followed: 10. Less than 0: none */
    int max_head, max_headers; /* of responses, as above: 31 KiB, 200 */
    const char *proxy_host, *proxy_port; /* an HTTP proxy for all requests; NULL: none */
    /* For https:// URLs, as a server's `open`: makes the stream to this host. NULL: there are no such URLs. */
    void *(*open)(int fd, const char *host, const aco_http_transport_t **transport, void *open_arg);
    void *open_arg;
    int sends_body_elsewhere; /* whether a redirect may take a request's body to another host, port or scheme. 0: no */
} aco_http_client_options_t;

/* NULL options: the defaults. They must stay valid. NULL and errno ENOMEM, EINVAL. */
ACO_API aco_http_client_t *aco_http_client_new(const aco_http_client_options_t *options);
/* Closes the connections that are kept. All responses must have been ended. */
ACO_API void aco_http_client_destroy(aco_http_client_t *client);

/* What is asked. Zeros: no headers and no body. */
typedef struct aco_http_call_s {
    const char *method;               /* NULL: "GET" */
    /* "http://host:port/path?query", in ASCII, with escapes. An address of IPv6 may have a zone, which is not sent:
     * "[fe80::1%25eth0]", as in RFC 6874, or "[fe80::1%eth0]". */
    const char *url;
    const aco_http_header_t *headers; /* besides Host and those of the body's length, which the client sends */
    size_t header_count;
    const void *body;
    int64_t length;                   /* of the body; with read_body, less than 0: not known, it is sent in chunks */
    /* Instead of `body`: the next bytes, 0: the end; -1 and errno: the call fails, the server sees a cut request. */
    ssize_t (*read_body)(void *arg, void *p, size_t n);
    void *read_arg;
} aco_http_call_t;

/* Read-only. Valid until aco_http_response_end(). */
typedef struct aco_http_response_s {
    int status;
    int minor;                        /* of the version */
    int redirects;                    /* that were followed */
    const aco_http_header_t *headers;
    size_t header_count;
    int64_t length;                   /* of the body; -1: not known */
} aco_http_response_t;

/* Sends a request and waits for the response's head, on a kept connection if there is one. If that turns out to be
 * closed before anything has come, a request of an idempotent method without read_body is sent once more.
 *
 * Redirects are followed: 303, and 301 and 302 of a POST, by GET (HEAD stays HEAD), without the body and the headers
 * that tell of it (Content-…, Digest, Expect, Trailer, …); others by the same method and with the same body. Spaces and
 * bytes beyond ASCII in a Location get escapes. To another host, port or scheme no Authorization, Proxy-Authorization
 * and Cookie go, there and from there on. The caller gets a response that redirects if it has no Location or several;
 * if a read_body would have to be sent again; or if another body would go elsewhere, unless sends_body_elsewhere allows
 * that (a body may have secrets as well as a header).
 *
 * The caller ends the response. NULL and errno: EINVAL (the URL, also that of a redirect; a header; the method),
 * EBADMSG (no HTTP, or limits), ECONNRESET (no response), ELOOP (too many redirects), ECONNREFUSED (also: the
 * proxy makes no tunnel for https://), ENOMEM, those of aco_io_dial(), `open`, of reading and writing. */
ACO_API aco_http_response_t *aco_http_call_at(aco_http_client_t *client, const aco_http_call_t *call,
                                              const char *location);
#define aco_http_call(client, call) aco_http_call_at(client, call, ACO_PLACE)
/* The same for a GET. */
ACO_API aco_http_response_t *aco_http_get_at(aco_http_client_t *client, const char *url, const char *location);
#define aco_http_get(client, url) aco_http_get_at(client, url, ACO_PLACE)

ACO_API const char *aco_http_response_header(const aco_http_response_t *response, const char *name);
/* As aco_io_read(), of the body. -1 and errno: also EBADMSG, ECONNRESET (it is not complete). After the end of a scope,
 * ENOMEM and EPERM (the caller cannot wait) the next call goes on. */
ACO_API ssize_t aco_http_response_read_at(aco_http_response_t *response, void *p, size_t n, const char *location);
#define aco_http_response_read(response, p, n) aco_http_response_read_at(response, p, n, ACO_PLACE)
/* Ends a response. Its connection is kept if the whole body was read, or is there already. */
ACO_API void aco_http_response_end(aco_http_response_t *response);

ACO__END_C

#endif
