/* gRPC: servers and clients, over HTTP/2. In the library acorn_grpc, on acorn_http where that was built with HTTP/2.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static int say_hello(aco_grpc_call_t *call, void *arg)
 *   {
 *       const void *request;
 *       size_t n;
 *       if (aco_grpc_read_only(call, &request, &n) != 0)
 *           return ACO_GRPC_FROM_ERRNO;
 *       ... decode the request by any library, encode the reply ...
 *       return aco_grpc_write(call, reply, reply_n) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
 *   }
 *   ...
 *   aco_grpc_server_t *server = aco_grpc_server_new(NULL);
 *   aco_grpc_server_add(server, "/helloworld.Greeter/SayHello", say_hello, NULL);
 *   aco_grpc_serve(aco_io_listen("tcp", NULL, "50051", NULL), server, NULL);
 *
 * A client:
 *
 *   aco_grpc_channel_t *channel = aco_grpc_channel_new("localhost:50051", NULL);
 *   ...
 *   aco_grpc_call_t *call = aco_grpc_call_new(channel, "/helloworld.Greeter/SayHello", NULL);
 *   if (call && aco_grpc_write_only(call, request, request_n) == 0 && aco_grpc_read_only(call, &reply, &n) == 0)
 *       ... decode the reply ...
 *   else
 *       fprintf(stderr, "%s: %s\n", aco_grpc_status_name(aco_grpc_finish(call)), aco_grpc_message(call));
 *   aco_grpc_call_destroy(call);
 *
 * Messages are bytes: how they are coded is the program's business. A unary call reads one message and writes one. A
 * call with streams reads or writes more, in any order. Each call is served in a task of its own, which alone waits.
 *
 * A call's deadline (grpc-timeout) is a scope of its handler: waits fail with ETIMEDOUT when it is over, and
 * aco_deadline() tells it. If the client cancels the call or goes away, waits fail with ECANCELED. A client's call
 * takes the deadline of its caller's scopes with it. Destroying a call that has not ended cancels it (RST_STREAM).
 *
 * Metadata are headers and trailers. The value of a name that ends with "-bin" is any bytes, which travel as base64.
 * Any other value is printable ASCII. Names are in lower case, and do not begin with "grpc-"; but a handler that fails
 * may add the trailer grpc-retry-pushback-ms, the pause before the client's next try, or -1: there shall be none.
 *
 * Compression is gzip, if the library was built with zlib (aco_grpc_has_gzip()).
 *
 * Waits obey scopes (aco/scope.h). Each plain form below is a macro for the form with `_at`. Texts end with a 0. No
 * pointer may be NULL unless its text says so. All calls for a server or a channel are made on one thread; one task
 * may read from a call while another one writes to it. */
#ifndef ACO_GRPC_H
#define ACO_GRPC_H

#include "http.h"

ACO__BEGIN_C

/* ---- Status ------------------------------------------------------------------------------------------------------ */

enum {
    ACO_GRPC_FROM_ERRNO = -1, /* of handlers: what aco_grpc_status_of_errno() says of errno */
    ACO_GRPC_OK,
    ACO_GRPC_CANCELLED,
    ACO_GRPC_UNKNOWN,
    ACO_GRPC_INVALID_ARGUMENT,
    ACO_GRPC_DEADLINE_EXCEEDED,
    ACO_GRPC_NOT_FOUND,
    ACO_GRPC_ALREADY_EXISTS,
    ACO_GRPC_PERMISSION_DENIED,
    ACO_GRPC_RESOURCE_EXHAUSTED,
    ACO_GRPC_FAILED_PRECONDITION,
    ACO_GRPC_ABORTED,
    ACO_GRPC_OUT_OF_RANGE,
    ACO_GRPC_UNIMPLEMENTED,
    ACO_GRPC_INTERNAL,
    ACO_GRPC_UNAVAILABLE,
    ACO_GRPC_DATA_LOSS,
    ACO_GRPC_UNAUTHENTICATED
};

/* Returns "NOT_FOUND" and the like; "UNKNOWN" for other numbers. */
ACO_API const char *aco_grpc_status_name(int status);
/* Returns the status that stands for this errno:
 *   0 OK                            ECANCELED CANCELLED             ETIMEDOUT DEADLINE_EXCEEDED
 *   EINVAL, EDOM INVALID_ARGUMENT   ERANGE OUT_OF_RANGE             ENOENT, ESRCH NOT_FOUND
 *   EEXIST ALREADY_EXISTS           EACCES, EPERM PERMISSION_DENIED
 *   ENOSYS, ENOTSUP, EOPNOTSUPP UNIMPLEMENTED
 *   ENOMEM, ENOSPC, ENOBUFS, EMFILE, ENFILE, EMSGSIZE, EFBIG RESOURCE_EXHAUSTED
 *   EBUSY, ENOTEMPTY FAILED_PRECONDITION                            EDEADLK, ESTALE ABORTED
 *   EBADMSG, EPROTO, EFAULT INTERNAL                                EIO DATA_LOSS
 *   EAGAIN, EPIPE, ECONNREFUSED, ECONNRESET, ECONNABORTED, EHOSTUNREACH, ENETUNREACH, ENETDOWN UNAVAILABLE
 *   any other UNKNOWN */
ACO_API int aco_grpc_status_of_errno(int error);
/* Returns the errno for a status: the first of those above; EACCES for UNAUTHENTICATED, EPROTO for UNKNOWN and other
 * numbers. */
ACO_API int aco_grpc_errno_of_status(int status);

/* Returns 1 if the library was built with gzip, else 0. */
ACO_API int aco_grpc_has_gzip(void);

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* One call: a server's is valid until its handler returns, a client's until aco_grpc_call_destroy(). */
typedef struct aco_grpc_call_s aco_grpc_call_t;

/* Returns "/package.Service/Method". */
ACO_API const char *aco_grpc_method(const aco_grpc_call_t *call);

/* Waits for the next message. Stores it, and its length; it is valid until the next read, or the call's end. Returns 1;
 * 0 if the peer sends no more; on error -1 with errno EMSGSIZE (longer than max_message, also when it is decompressed),
 * EBADMSG (a part of a message, a wrong flag or coding), ENOBUFS (a server's max_buffered), ECONNRESET (the peer is
 * gone), ETIMEDOUT (the deadline, or another scope), ECANCELED, ENOMEM, EPERM (the caller cannot wait). After the end
 * of a scope of the caller's own the next call goes on; after any other error it fails again.
 * For a client, 0 also says that the status is OK. Any other status is an error, with aco_grpc_errno_of_status(). */
ACO_API int aco_grpc_read_at(aco_grpc_call_t *call, const void **message, size_t *n, const char *location);
#define aco_grpc_read(call, message, n) aco_grpc_read_at(call, message, n, ACO_PLACE)
/* The same for a call in which the peer sends exactly one message. Returns 0; on error -1 with errno as
 * aco_grpc_read(), and EBADMSG also if there is none, or more than one: a handler's ACO_GRPC_FROM_ERRNO is
 * UNIMPLEMENTED then. A client also waits for the status. */
ACO_API int aco_grpc_read_only_at(aco_grpc_call_t *call, const void **message, size_t *n, const char *location);
#define aco_grpc_read_only(call, message, n) aco_grpc_read_only_at(call, message, n, ACO_PLACE)

/* Sends a message, which may be NULL if `n` is 0. Waits while the peer takes nothing. The first one of a handler
 * waits in the library until the handler waits or returns, so that a unary reply is one packet. A client's first one
 * waits for the connection. Returns 0; on error -1 with errno EMSGSIZE (4 GiB and more; more than the policy's
 * max_request), EPIPE, ECONNRESET (the peer is gone, or has ended the call: aco_grpc_finish() has the status),
 * ETIMEDOUT, ECANCELED, ENOMEM, EPERM; for a client also EINVAL (it has ended its messages), and that of the status if
 * the call cannot begin. After an error no further message can be sent. */
ACO_API int aco_grpc_write_at(aco_grpc_call_t *call, const void *message, size_t n, const char *location);
#define aco_grpc_write(call, message, n) aco_grpc_write_at(call, message, n, ACO_PLACE)
/* Whether the next messages are compressed: 1 or 0; a handler's, if the client takes gzip. It is off at first unless
 * the options of the server or the channel say else. Messages under 64 bytes, and those that would not become shorter,
 * are sent as they are. It has no effect if the first message was sent while it was off. Returns 0; on error -1 with
 * errno ENOTSUP (the library was built without gzip). */
ACO_API int aco_grpc_compress(aco_grpc_call_t *call, int on);
/* Returns 1 if the message that was read last came compressed; 0 if not, or there is none. */
ACO_API int aco_grpc_was_compressed(const aco_grpc_call_t *call);

/* Finds the value `i`, counted from 0, of metadata with this name: what the peer sent with the call. A client has it
 * after its first read, or aco_grpc_await_metadata(). Stores the length in *n unless `n` is NULL. A 0 is behind the
 * value. Returns the value, valid as the call; NULL: there is none, or it is no base64; or, with errno ENOMEM, no
 * memory. */
ACO_API const void *aco_grpc_metadata(aco_grpc_call_t *call, const char *name, size_t i, size_t *n);
/* Walks over the names of what aco_grpc_metadata() finds, each once, in the order in which they came: returns the first
 * one if `name` is NULL, else the one behind `name`, which this call has returned; NULL: there are no more. Names that
 * aco_grpc_add_metadata() refuses, those of gRPC and some of HTTP, are left out. */
ACO_API const char *aco_grpc_next_metadata(aco_grpc_call_t *call, const char *name);
/* Adds metadata of `n` bytes, which are copied. They are sent before this side's first message. Returns 0; on error -1
 * with errno EINVAL (a name or value that is not allowed), EBUSY (they were sent), ENOMEM (also: over 6 KiB). */
ACO_API int aco_grpc_add_metadata(aco_grpc_call_t *call, const char *name, const void *value, size_t n);

/* ---- Servers ----------------------------------------------------------------------------------------------------- */

/* Adds metadata that is sent behind the last message. As aco_grpc_add_metadata(), but EBUSY cannot occur, and ENOMEM
 * also means: over 2 KiB. A call whose metadata, trailers or details cannot be sent for lack of memory ends with
 * RESOURCE_EXHAUSTED. */
ACO_API int aco_grpc_add_trailer(aco_grpc_call_t *call, const char *name, const void *value, size_t n);
/* Sets the message that explains the status, in UTF-8; the text is copied, and cut where it would travel as more than
 * 1024 bytes; without memory it says that the message is lost. Returns `status`, so that a handler can return it:
 * return aco_grpc_fail(call, ACO_GRPC_NOT_FOUND, "no such user"). */
ACO_API int aco_grpc_fail(aco_grpc_call_t *call, int status, const char *message);
/* Sets the details of the status: a google.rpc.Status as bytes, at most 2 KiB, which are copied. Returns 0; on error -1
 * with errno EINVAL (more), ENOMEM. */
ACO_API int aco_grpc_set_details(aco_grpc_call_t *call, const void *details, size_t n);
/* Returns the HTTP request below the call: for its connection's addresses and certificates. */
ACO_API const aco_http_request_t *aco_grpc_request(const aco_grpc_call_t *call);

/* Handles a call in its task. Returns a status of 0 to 16, or ACO_GRPC_FROM_ERRNO. Any status but OK becomes
 * DEADLINE_EXCEEDED if the call's deadline has passed. OK becomes the status of a write that has failed. */
typedef int (*aco_grpc_handler_t)(aco_grpc_call_t *call, void *arg);

typedef struct aco_grpc_server_s aco_grpc_server_t;

/* Zeros are the defaults. */
typedef struct aco_grpc_server_options_s {
    int64_t max_message; /* bytes of a message that is read, also decompressed: 4 MiB. Less than 0: no limit */
    int compresses; /* 1: replies are compressed if the client takes gzip. 0: if a handler says so */
    void *aco__reserved[4]; /* reserved fields are 0 */
} aco_grpc_server_options_t;

/* Makes a server; the caller owns it. NULL options: the defaults. Returns the server; on error NULL with errno EINVAL
 * (a reserved field), ENOMEM, ENOTSUP (no HTTP/2). */
ACO_API aco_grpc_server_t *aco_grpc_server_new(const aco_grpc_server_options_t *options);
/* Frees the server, which must not serve any more. NULL: nothing happens. */
ACO_API void aco_grpc_server_destroy(aco_grpc_server_t *server);
/* Adds a method: `path` is "/package.Service/Method". The text must stay valid. Before the server serves. Returns 0; on
 * error -1 with errno EINVAL (the path), EEXIST (it has this method), ENOMEM. */
ACO_API int aco_grpc_server_add(aco_grpc_server_t *server, const char *path, aco_grpc_handler_t handler, void *arg);

/* Serves gRPC alone on a listener, as aco_http_serve() with these options, of which NULL means the defaults: `routes`
 * and `groups` must be NULL. Returns as aco_http_serve(), and -1 with errno EINVAL (they are not NULL; the listener is
 * closed). */
ACO_API int aco_grpc_serve_at(int listener, aco_grpc_server_t *server, const aco_http_server_options_t *options,
                              const char *location);
#define aco_grpc_serve(listener, server, options) aco_grpc_serve_at(listener, server, options, ACO_PLACE)
/* Returns what an HTTP server needs as `groups` of its options to serve gRPC beside its own `routes`, which come first.
 * It takes all other paths of two segments. Valid as long as the server. */
ACO_API const aco_http_group_t *aco_grpc_server_groups(aco_grpc_server_t *server);

/* ---- Clients ----------------------------------------------------------------------------------------------------- */

/* A channel leads to a service, at one address or several. All of its calls share its connections: one for each address
 * in use. It connects when a call needs it. All of its calls are made on one thread. */
typedef struct aco_grpc_channel_s aco_grpc_channel_t;

/* What calls of some methods do unless their own options say else: the "method config" of a service config. */
typedef struct aco_grpc_policy_s {
    /* "/package.Service/Method"; "/package.Service/", all methods of a service; NULL: all. The longest that fits
     * counts, alone. */
    const char *method;
    int64_t timeout; /* ns from the call's beginning, for all tries; an earlier deadline counts. 0: none */
    int wait_for_ready; /* as in aco_grpc_call_options_t */
    /* Retries, of calls that are made by aco_grpc_write_only(): up to so many tries in all, the first one included, at
     * most 5. They are sent while the server has sent nothing but a status, which must be one of `retried`: the bits
     * ACO_GRPC_BIT(ACO_GRPC_UNAVAILABLE) and so on. The pause before the first retry is a random time up to
     * first_pause, before each further one up to pause_growth thousandths of that, at most longest_pause; unless the
     * server asks for another one (grpc-retry-pushback-ms), behind which they grow anew, or for none (a value that is
     * no number of 0 or more, or several values). Retry only methods that may be done twice. 0 or 1: none. */
    int tries;
    uint32_t retried;
    int64_t first_pause, longest_pause; /* 100 ms, 1 s; at most a day */
    int pause_growth; /* 2000; at most 1 000 000 */
    /* Limits of a message's bytes, 0: none by the policy. max_request: of one that is sent, before it is compressed.
     * max_reply: of one that is read; the lower one of it and the max_message of the call or its channel counts. If the
     * program has set no max_message, max_reply counts in place of 4 MiB. */
    int64_t max_request, max_reply;
    void *aco__reserved[4]; /* reserved fields are 0 */
} aco_grpc_policy_t;
#define ACO_GRPC_BIT(status) (UINT32_C(1) << (status))

/* Zeros are the defaults. */
typedef struct aco_grpc_channel_options_s {
    /* Makes the stream of TLS to this host, as `open` of an HTTP client does: aco_tls_http_connect(), with a
     * configuration whose ALPN offers "h2". NULL: no TLS. */
    aco_stream_t *(*open)(int fd, const char *host, void *open_arg);
    void *open_arg;
    const char *authority; /* what the server is asked as (":authority"), up to 255 bytes. NULL: the target's first */
    /* 0, "pick first": calls go to the first target that can be reached; of the addresses of its name, one is dialed.
     * 1, "round robin": each address of the targets' names has a connection, and calls go to each in turn. The names
     * are looked up again, at most once in 30 s, after a failure to connect. */
    int round_robin;
    int compresses; /* 1: messages are compressed by gzip, if the library has it. 0: if a call says so */
    int64_t max_message; /* bytes of a message that is read, also decompressed: 4 MiB. Less than 0: no limit */
    int max_metadata; /* bytes of a reply's metadata, as HPACK counts them: 16 KiB. At most 1 MiB */
    int64_t connect_time; /* ns to dial, TLS included: 20 s */
    /* After a failure to connect to an address, the next try waits so long, then 1.6 times as long each, up to
     * longest_pause, by a fifth more or less: 1 s, 120 s. */
    int64_t first_pause, longest_pause;
    /* Keepalive: if nothing has come for so many ns while there are calls, the server is asked by PING; if it does not
     * answer in as many again, the calls end with UNAVAILABLE. 0: it is not asked. Servers may refuse less than 5
     * minutes. */
    int64_t ping_time;
    const aco_grpc_policy_t *policies; /* copied; their texts must stay valid. NULL: none */
    size_t policy_count;
    /* The budget of retries, for all methods: it has so many tokens at first and at most. A try takes one if it has
     * failed with a status that is retried, or if the server wants no retry; a call that ends with OK gives back
     * `retry_share` thousandths. There are retries while more than half of the tokens are there. 0: 10 tokens, a share
     * of 100. Tokens less than 0: no budget. */
    int retry_tokens, retry_share;
    /* gRPC's service config, as JSON of at most 64 KiB, in place of the policies; docs/grpc.md tells what counts. Its
     * retryThrottling and its balancing, where they are there, count in place of the fields above. NULL: none. It need
     * not stay valid. */
    const char *service_config;
    void *aco__reserved[4]; /* reserved fields are 0 */
} aco_grpc_channel_options_t;

/* Makes a channel; the caller owns it. `target` is "host:port", with an IPv6 address in brackets; or "unix:path",
 * "unix:///path" or, on Linux, "unix-abstract:name", whose server is asked as "localhost"; or several of these with
 * commas between them. Does not wait. NULL options: the defaults; what they point to must stay valid. Returns the
 * channel; on error NULL with errno EINVAL (the target, a limit, a reserved field, the service config, of which
 * aco_error_message() tells line, column, field and fault), ENOMEM, ENOTSUP (no HTTP/2). */
ACO_API aco_grpc_channel_t *aco_grpc_channel_new(const char *target, const aco_grpc_channel_options_t *options);
/* Frees the channel and closes its connections. Its calls must have been destroyed. NULL: nothing happens. */
ACO_API void aco_grpc_channel_destroy(aco_grpc_channel_t *channel);

/* Zeros are the defaults. */
typedef struct aco_grpc_call_options_s {
    /* 1: the call waits, up to its deadline, while no address can be reached. Less than 0: it fails then, whatever the
     * policy says. 0: as the policy says; without one, it fails. */
    int wait_for_ready;
    int64_t max_message; /* 0: the channel's */
    void *aco__reserved[4]; /* reserved fields are 0 */
} aco_grpc_call_options_t;

/* Makes a call for a method, "/package.Service/Method"; the caller owns it. The text must stay valid. Sends nothing
 * yet, so that metadata can be added: the first write or read begins the call, with the deadline of the scopes of the
 * task that makes it. The calls above read and write. Returns the call; on error NULL with errno EINVAL (the path, a
 * reserved field), ENOMEM. */
ACO_API aco_grpc_call_t *aco_grpc_call_new(aco_grpc_channel_t *channel, const char *path,
                                           const aco_grpc_call_options_t *options);
/* Frees the call, which no other task may use any more. If it has not ended, it is cancelled. Does not wait. NULL:
 * nothing happens. */
ACO_API void aco_grpc_call_destroy(aco_grpc_call_t *call);

/* Sends the only message of a call, which may be NULL if `n` is 0, and ends them; then waits until the server answers,
 * and sends it again where the policy says so. What the server refuses without looking at it is sent again in any case.
 * Returns 0; on error -1 with errno as aco_grpc_write(), or aco_grpc_errno_of_status() of the status. */
ACO_API int aco_grpc_write_only_at(aco_grpc_call_t *call, const void *message, size_t n, const char *location);
#define aco_grpc_write_only(call, message, n) aco_grpc_write_only_at(call, message, n, ACO_PLACE)
/* Ends a client's messages. Waits only if it begins the call. Returns 0, also if they have ended; on error -1 with
 * errno as aco_grpc_write(). */
ACO_API int aco_grpc_write_end_at(aco_grpc_call_t *call, const char *location);
#define aco_grpc_write_end(call) aco_grpc_write_end_at(call, ACO_PLACE)
/* Waits for the server's metadata, or for the end of the call. Returns 0; on error -1 with errno as aco_grpc_read(). */
ACO_API int aco_grpc_await_metadata_at(aco_grpc_call_t *call, const char *location);
#define aco_grpc_await_metadata(call) aco_grpc_await_metadata_at(call, ACO_PLACE)
/* Ends a client's messages, and waits for the end of the call. Messages that were not read are dropped: to leave a
 * stream early, destroy the call. Only one task may use the call from then on. If a scope of the caller ends meanwhile,
 * the status is DEADLINE_EXCEEDED or CANCELLED, and the server will be told. Returns the status, each time the same:
 *   the server's own;
 *   of HTTP's 400 INTERNAL, 401 UNAUTHENTICATED, 403 PERMISSION_DENIED, 404 UNIMPLEMENTED, 429, 502, 503 and 504
 *     UNAVAILABLE; UNKNOWN of others, and if there is no status, or what was sent is no gRPC;
 *   of RST_STREAM's codes CANCEL CANCELLED, REFUSED_STREAM UNAVAILABLE, ENHANCE_YOUR_CALM RESOURCE_EXHAUSTED,
 *     INADEQUATE_SECURITY PERMISSION_DENIED; INTERNAL of others;
 *   UNAVAILABLE if there is no connection, or it is lost; INTERNAL and RESOURCE_EXHAUSTED for what aco_grpc_read()
 *     reports as EBADMSG and EMSGSIZE; UNIMPLEMENTED for a wrong number of messages.
 * NULL: the status of errno, so that a call that could not be made need not be looked at apart. */
ACO_API int aco_grpc_finish_at(aco_grpc_call_t *call, const char *location);
#define aco_grpc_finish(call) aco_grpc_finish_at(call, ACO_PLACE)
/* Returns the status of a client's call that has ended, as aco_grpc_finish(), without a wait; less than 0: it has not,
 * or its end was not read. */
ACO_API int aco_grpc_status(aco_grpc_call_t *call);
/* Returns what explains the status of a client's call, in UTF-8, valid as the call; "" if there is nothing, or the call
 * has not ended. NULL: aco_error_message(). */
ACO_API const char *aco_grpc_message(const aco_grpc_call_t *call);
/* Returns the details of the status of a client's call, a google.rpc.Status as bytes; stores their length in *n. NULL:
 * there are none, or the call has not ended; or, with errno ENOMEM, no memory. */
ACO_API const void *aco_grpc_details(aco_grpc_call_t *call, size_t *n);
/* Finds metadata that came behind the last message of a client's call that has ended, as aco_grpc_metadata(). */
ACO_API const void *aco_grpc_trailer(aco_grpc_call_t *call, const char *name, size_t i, size_t *n);
/* Walks over the names of what aco_grpc_trailer() finds, as aco_grpc_next_metadata(). */
ACO_API const char *aco_grpc_next_trailer(aco_grpc_call_t *call, const char *name);

/* ---- Health: grpc.health.v1 -------------------------------------------------------------------------------------- */

enum { ACO_GRPC_HEALTH_UNKNOWN, ACO_GRPC_SERVING, ACO_GRPC_NOT_SERVING };

/* Adds the service grpc.health.v1.Health, with Check and Watch. The server as a whole ("") is SERVING, and NOT_SERVING
 * as soon as its HTTP server drains. Returns 0; on error -1 with errno EEXIST, ENOMEM. */
ACO_API int aco_grpc_server_add_health(aco_grpc_server_t *server);
/* Sets the state of a service, by name, which is copied; "": the server as a whole. Watchers are told. Does not wait.
 * Returns 0; on error -1 with errno ENOENT (no health service), EINVAL (the state), ENOMEM. */
ACO_API int aco_grpc_server_set_health(aco_grpc_server_t *server, const char *service, int state);

/* ---- Reflection -------------------------------------------------------------------------------------------------- */

/* Adds a file that the reflection service knows: a FileDescriptorProto as bytes, which must stay valid. The first call
 * adds the service, as v1 and v1alpha. Files that it imports are added too, or clients do not find them. A file that is
 * known by its name already is not added again. Returns 0; on error -1 with errno EINVAL (it is no such thing), EEXIST
 * (the program has methods of these names), ENOMEM. */
ACO_API int aco_grpc_server_add_file(aco_grpc_server_t *server, const void *descriptor, size_t n);

ACO__END_C

#endif
