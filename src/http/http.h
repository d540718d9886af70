/* The layer of HTTP, in the library acorn_http, above that of descriptors. It calls what acorn and acorn_io export. Its
 * files include the system's headers where acorn_io has no call: for sendfile, signals and wall-clock time. */
#ifndef ACO_HTTP_INTERNAL_H
#define ACO_HTTP_INTERNAL_H

#include "base/invariants.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/group.h"
#include "aco/http.h"
#include "aco/io_buffer.h"
#include "aco/sync.h"

#include "llhttp/renamed.h"

#include <string.h>

enum {
    HTTP_OUT = 8192, /* bytes of output that a link collects */
    HTTP_MOST_FIELDS = 6144, /* bytes of the headers that a handler adds */
    HTTP_BEHIND_HEAD = 1024, /* room in the input buffer for a part of the body */
    HTTP_ARENA = 1024, /* bytes of a request's memory before it needs more */
    HTTP_PARAMS = 8, /* of a route */
    HTTP_FRAMING = 16384, /* bytes of chunks' sizes, their extensions and trailers that a body may have, */
    HTTP_FRAMING_RATIO = 8, /* and besides, so many for each byte */
    HTTP_DISCARDED = 65536 /* bytes of an unread body that are read to keep the connection */
};

/* ---- link.c: a connection's input and output ---- */

/* What is known of a message that comes in: the head's parts, while it is parsed, then how far its body was read. */
typedef struct aco__http_head {
    char *target; /* of a request; NULL: not yet */
    char *target_end;
    aco_http_header_t *headers;
    size_t count, most;
    char *name_end, *value_end; /* of the last header */
    unsigned char in_field; /* the last header is not complete */
    unsigned char hosts, lengths, encodings, expects; /* how many there were of these headers; at most 2 is told */
    unsigned char is_chunked; /* the one encoding is "chunked" */
    unsigned char expects_continue;
    const char *host;
    int refusal; /* the status with which to refuse the message; 0: none */
    /* The body: */
    char *sink; /* where its next bytes go */
    size_t sunk;
    uint64_t body; /* its bytes so far */
    uint64_t framing; /* bytes that were sent for it and are not its own */
} aco__http_head_t;

/* A connection: its streams of bytes, and the message that comes in and the one that goes out. */
typedef struct aco__http_link {
    int fd;
    const aco_http_transport_t *transport; /* NULL: the descriptor itself */
    void *stream;
    /* Input. The buffer is lent while there is input in it or a message is being handled: */
    /*   begin: the message    keep: its body    at: not parsed    end */
    aco_io_reader_t in;
    size_t keep, at;
    llhttp_t *parser;
    aco__http_head_t *head; /* of this message */
    uint64_t most_body;
    unsigned char has_head; /* the head is complete */
    unsigned char has_all; /* the message is complete */
    unsigned char gets_no_body; /* the next message answers a HEAD request */
    unsigned char may_switch; /* the message asks for another protocol */
    unsigned char is_persistent; /* the peer keeps the connection after this message */
    unsigned char is_broken; /* nothing can be read or written any more */
    int error; /* that of writing which broke it; 0: none */
    unsigned char must_not_wait; /* for more of the body: EAGAIN */
    int body_error; /* why the body cannot be read any more: EFBIG, EBADMSG… */
    int read_error; /* with which the last read of the body failed; 0: it did not */
    int64_t body_time; /* for a body, from the first wait for it */
    int64_t body_until; /* 0: nobody has waited */
    /* Output: bytes that were not sent yet, HTTP_OUT at most. */
    char *out;
    size_t out_n;
    int64_t write_time;
    int64_t left; /* bytes of the outgoing body that are to come; less than 0: not known; 0 at its end */
    unsigned char is_chunked;
    unsigned char is_bodiless; /* what is written of the body is not sent */
} aco__http_link_t;

ACO__HIDDEN void aco__http_link_open(aco__http_link_t *link, int fd, size_t in_size);
/* Parses the next messages by this parser, the first one as the first of a connection. */
ACO__HIDDEN void aco__http_link_parse_by(aco__http_link_t *link, llhttp_t *parser, llhttp_type_t type);
/* Whether the peer lacks something of what was to be sent. */
static inline int aco__http_is_cut(const aco__http_link_t *link)
{
    return link->is_broken || link->left != 0 || link->out_n > 0;
}
/* Closes the descriptor too. If something is lacking, the peer sees no end but a failure. Does not switch. */
ACO__HIDDEN void aco__http_link_close(aco__http_link_t *link);
/* Whether a failure, now in errno, is the caller's alone: a scope has ended, it cannot wait, there is no memory. Then
 * the stream is as it was. */
ACO__HIDDEN int aco__http_is_passing(void);
/* As aco_io_read(), and aco_io_shutdown() with SHUT_WR. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_link_read(aco__http_link_t *link, void *p, size_t n, const char *location);
ACO__SWITCHES ACO__HIDDEN int aco__http_link_shutdown(aco__http_link_t *link, const char *location);
/* Waits for the first bytes of a message, without a buffer. How many there are; 0 at the end; -1 and errno. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_await(aco__http_link_t *link, const char *location);
/* Whether a descriptor has something now: bytes, an end, a connection to accept. */
ACO__HIDDEN int aco__http_is_readable(int fd);
/* Whether bytes are there that were not read, or the peer's end. Does not wait. */
ACO__HIDDEN int aco__http_has_input(const aco__http_link_t *link);
/* Begins to parse the next message. */
ACO__HIDDEN void aco__http_message_begin(aco__http_link_t *link, aco__http_head_t *head);
/* Parses what has come of the head. 1: it is complete; 0: not yet; -1: it is wrong (head->refusal: the status). */
ACO__HIDDEN int aco__http_parse_head(aco__http_link_t *link);
/* Reads what comes next of the head. The number of bytes; 0 at the end of the stream; -1 and errno. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_more_head(aco__http_link_t *link, const char *location);
/* Reads behind what was not parsed, which moves to the head's end for it. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_more_input(aco__http_link_t *link, const char *location);
/* Reads the body, as aco_http_request_read(). */
ACO__SWITCHES
ACO__HIDDEN ssize_t aco__http_read_body(aco__http_link_t *link, void *p, size_t n, const char *call,
                                        const char *location);
/* Reads the next bytes of the body and drops them. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_skip_body(aco__http_link_t *link, const char *call, const char *location);
/* The message is done: what follows it is the next one's. */
ACO__HIDDEN void aco__http_message_end(aco__http_link_t *link);

/* Room for `n` bytes in the output, at most HTTP_OUT. NULL and errno. */
ACO__SWITCHES ACO__HIDDEN char *aco__http_room(aco__http_link_t *link, size_t n, const char *location);
/* Sends the output that was collected, and these bytes behind it. 0, or -1 and errno: nothing more can be sent, or,
 * without further bytes, aco__http_is_passing() and the rest of the output is kept. */
ACO__SWITCHES
ACO__HIDDEN int aco__http_send(aco__http_link_t *link, const void *p, size_t n, int is_more, const char *location);
/* Sends of the collected output what can be sent without waiting. Does not switch. */
ACO__HIDDEN void aco__http_try_send(aco__http_link_t *link);
/* The next bytes of the outgoing body, as aco_http_reply_write(). */
ACO__SWITCHES
ACO__HIDDEN int aco__http_write_body(aco__http_link_t *link, const void *p, size_t n, const char *call,
                                     const char *location);
ACO__SWITCHES
ACO__HIDDEN int aco__http_write_file(aco__http_link_t *link, int fd, int64_t offset, int64_t n, const char *call,
                                     const char *location);
/* The end of the outgoing body. 0; -1 and errno: EMSGSIZE (bytes are missing). */
ACO__SWITCHES ACO__HIDDEN int aco__http_end_body(aco__http_link_t *link, const char *location);

static inline int aco__http_fail(int error, const char *call, const char *reason)
{
    return aco__service_fail(error, call, reason);
}

static inline char *aco__http_put(char *at, const void *p, size_t n)
{
    if (n)
        memcpy(at, p, n);
    return at + n;
}

#define HTTP_PUT(at, text) aco__http_put(at, text, sizeof(text) - 1)

/* The digits of a number. */
ACO__HIDDEN char *aco__http_put_number(char *at, uint64_t number);

/* ---- text.c ---- */
/* The status line: "HTTP/1.1 200 OK\r\n". Stores its length. */
ACO__HIDDEN const char *aco__http_status_line(int status, size_t *n);
/* Whether two texts are the same but for the case of letters; `lower` is in lower case. */
ACO__HIDDEN int aco__http_is(const char *text, size_t n, const char *lower);
ACO__HIDDEN int aco__http_same(const char *a, const char *b);
/* How many of the headers have this name. *value: that of the first one, or NULL. */
ACO__HIDDEN size_t aco__http_find(const aco_http_header_t *headers, size_t count, const char *name, const char **value);
/* A list: what commas separate in all lines of a header (RFC 9110, 5.3). Or in `at` alone, which is "" otherwise. */
typedef struct aco__http_list {
    const char *at;
    const aco_http_header_t *headers; /* that come next */
    size_t count;
    const char *name;
} aco__http_list_t;
/* The next element, without spaces around it, and its length. A comma in quotes is a part of it; in them a backslash is
 * a character as any other, as in entity tags. NULL: there is no further one. */
ACO__HIDDEN const char *aco__http_next(aco__http_list_t *list, size_t *n);
/* Whether what follows in a list has this element. */
ACO__HIDDEN int aco__http_has(aco__http_list_t list, const char *element, size_t n);
/* Whether a header's name, or its value, is allowed. */
ACO__HIDDEN int aco__http_is_token(const char *text, size_t n);
ACO__HIDDEN int aco__http_is_value(const char *text, size_t n);
ACO__HIDDEN int aco__http_is_host(const char *text, size_t n);
/* "host", "host:port", "[::1]:port", or nothing */
ACO__HIDDEN int aco__http_is_authority(const char *text, size_t n);
/* Decodes escapes. The decoded length; -1: a wrong escape or a NUL. `to` may be `from`. */
ACO__HIDDEN ptrdiff_t aco__http_decode(char *to, const char *from, size_t n, int plus_is_space);
/* Whether a path has "." or ".." as a segment. */
ACO__HIDDEN int aco__http_has_dots(const char *path);
enum { HTTP_DATE = 29 }; /* "Sun, 06 Nov 1994 08:49:37 GMT" */
ACO__HIDDEN void aco__http_put_date(char *at, int64_t seconds);
/* The seconds since 1970 of a date in any form that HTTP has; -1: it is none. `now`: for years of two digits. */
ACO__HIDDEN int64_t aco__http_date_of(const char *text, int64_t now);

/* ---- request.c ---- */
typedef struct aco__http_block {
    struct aco__http_block *next;
    size_t sz;
} aco__http_block_t;

typedef struct aco__http_param {
    const char *name, *value;
    size_t name_n;
} aco__http_param_t;

struct aco__http_connection;

/* A request and its reply. */
typedef struct aco__http_exchange {
    aco_http_request_t is; /* what handlers see */
    struct aco__http_connection *connection;
    struct aco__http_exchange *next; /* that nobody uses */
    llhttp_t parser;
    aco__http_head_t head;
    char *at, *end; /* memory of the request */
    aco__http_block_t *blocks; /* more of it */
    char *fields; /* headers of the reply, as they are sent */
    size_t fields_n, fields_room;
    aco__http_param_t params[HTTP_PARAMS];
    size_t param_count;
    const char *allow[8]; /* methods of routes whose path fits */
    size_t allow_count;
    unsigned char has_begun; /* the reply */
    unsigned char may_continue; /* the client waits for "100 Continue" */
    unsigned char is_head; /* the method is HEAD */
    unsigned char will_close;
    unsigned char is_aborted;
    struct aco_websocket_s *websocket; /* that the connection has become; or NULL */
    char *all; /* what aco_http_request_read_all() has got */
    size_t all_n, all_room;
    size_t sz; /* of this record and what follows it: headers, memory, output */
} aco__http_exchange_t;

/* Understands a request's head. 0; or the status with which to refuse it. */
ACO__HIDDEN int aco__http_understand(aco__http_exchange_t *x);
ACO__HIDDEN void aco__http_free_blocks(aco__http_exchange_t *x);

/* ---- reply.c ---- */
/* A reply that the server itself makes, with a short text. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__http_answer(aco__http_exchange_t *x, int status, const char *location);

/* ---- websocket_key.c ---- */
enum { HTTP_WEBSOCKET_KEY = 24 }; /* characters */
/* Writes the answer to the key of a handshake: the end of what is written. */
ACO__HIDDEN char *aco__http_put_accepted(char *at, const char *key);

/* ---- websocket.c ---- */
/* The handler has returned. */
ACO__SWITCHES ACO__HIDDEN void aco__http_end_websocket(aco__http_exchange_t *x, const char *location);

/* ---- server.c ---- */
typedef struct aco__http_server {
    aco_http_server_t options; /* with the defaults filled in */
    size_t sz;
    struct aco__http_connection *first;
    struct aco__http_connection *unflushed; /* their handlers run, and they have output of earlier replies */
    aco__http_exchange_t *spare;
    aco_group_t group;
    aco_t *keeper;
    aco_event_t group_has_begun;
    int taken; /* a connection that was accepted and has no task yet; -1: none */
    unsigned char is_draining; /* stopped: handlers are told */
    unsigned char is_ending; /* replies end their connections */
    unsigned char is_left; /* aco_http_serve() could not wait: the keeper frees this record */
    int64_t idle_until; /* when it ends: connections without a request are closed */
    int64_t date_until; /* on the clock of aco_now() */
    char date[HTTP_DATE];
} aco__http_server_t;

typedef struct aco__http_connection {
    aco__http_link_t link;
    aco__http_server_t *server;
    aco__http_exchange_t *x; /* NULL: idle */
    struct aco__http_connection *next, **place; /* of the server's connections */
    struct aco__http_connection *next_unflushed, **place_unflushed; /* place: NULL: not there */
    aco_scope_t idle;
    unsigned char is_idle; /* in that scope: what it does there (server.c); else 0 */
    unsigned char is_reported; /* its failure */
    unsigned char in_handler;
    int error; /* of reading a head; 0: none */
    size_t sz; /* of this record, as allocated; 0: it is on the stack */
} aco__http_connection_t;

static inline aco__http_exchange_t *aco__http_exchange_of(const aco_http_request_t *request)
{
    return (aco__http_exchange_t *)(uintptr_t)request;
}

/* The errno with which the connection has failed in this request; 0: it has not. */
static inline int aco__http_error_of(const aco__http_connection_t *c)
{
    return c->link.error ? c->link.error : c->link.body_error == ECONNRESET ? ECONNRESET : c->error;
}

/* ---- failure.c ---- */
/* A connection has failed: counts and tells it. The caller sets what is known: the kind if it is a handshake, the
 * errno, the descriptor and the request. */
ACO__SWITCHES ACO__HIDDEN void aco__http_report(aco__http_server_t *server, aco_http_failure_t *failure);

/* ---- backlog.c ---- */
/* Has the listener take no new connections. Those that it has begun to take can still be accepted: until after the
 * time that is returned, nanoseconds. */
ACO__HIDDEN int64_t aco__http_close_door(int listener);

#endif
