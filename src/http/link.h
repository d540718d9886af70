/* A connection's input and output: link.c.
 *
 * This is the lowest part of the layer of HTTP, in the library acorn_http, above that of descriptors. The layer calls
 * what acorn and acorn_io export. Its files include the system's headers where acorn_io has no call: for sendfile,
 * signals and wall-clock time. */
#ifndef ACO_HTTP_LINK_H
#define ACO_HTTP_LINK_H

#include "base/invariants.h"

#include "aco/detail/service.h"
#include "aco/http.h"
#include "aco/io_buffer.h"

#include "llhttp/renamed.h"

enum {
    HTTP_OUT = 8192, /* bytes of output that a link collects */
    HTTP_BEHIND_HEAD = 1024, /* room in the input buffer for a part of the body */
    HTTP_FRAMING = 16384, /* bytes of chunks' sizes, their extensions and trailers that a body may have, */
    HTTP_FRAMING_RATIO = 8 /* and besides, so many for each byte */
};

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

#endif
