/* The messages of HTTP/1 that come in on a link, one after the other: incoming.c. */
#ifndef ACO_HTTP_INCOMING_H
#define ACO_HTTP_INCOMING_H

#include "http/link.h"

#include "llhttp/renamed.h"

enum {
    HTTP_BEHIND_HEAD = 1024, /* room in the input buffer for a part of the body */
    HTTP_FRAMING = 16384, /* bytes of chunks' sizes, their extensions and trailers that a body may have, */
    HTTP_FRAMING_RATIO = 8 /* and besides, so many for each byte */
};

/* What is known of a message: the head's parts, while it is parsed, then how far its body was read. */
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

typedef struct aco__http_incoming {
    aco__http_link_t *link; /* which holds the message's head */
    llhttp_t *parser;
    aco__http_head_t *head; /* of this message */
    struct aco__http_trailers *trailers; /* where they are kept; NULL: they are dropped */
    uint64_t most_body;
    unsigned char has_head; /* the head is complete */
    unsigned char has_all; /* the message is complete */
    unsigned char gets_no_body; /* the next message answers a HEAD request */
    unsigned char may_switch; /* the message asks for another protocol */
    unsigned char is_persistent; /* the peer keeps the connection after this message */
    unsigned char must_not_wait; /* for more of the body: EAGAIN */
    unsigned char may_continue; /* the peer waits for "100 Continue" */
    int body_error; /* why the body cannot be read any more: EFBIG, EBADMSG… */
    int read_error; /* with which the last read of the body failed; 0: it did not */
    int64_t body_time; /* for a body, from the first wait for it */
    int64_t body_until; /* 0: nobody has waited */
    int body_rate; /* bytes that prolong it by a second; 0: none do */
    int head_error; /* of reading a head; 0: none */
} aco__http_incoming_t;

ACO__HIDDEN void aco__http_incoming_open(aco__http_incoming_t *in, aco__http_link_t *link);
/* Parses the next messages by this parser, the first one as the first of a connection. */
ACO__HIDDEN void aco__http_parse_by(aco__http_incoming_t *in, llhttp_t *parser, llhttp_type_t type);
/* Begins to parse the next message, into this head, of which only `headers` and `most` are set. */
ACO__HIDDEN void aco__http_message_begin(aco__http_incoming_t *in, aco__http_head_t *head);
/* Parses what has come of the head. 1: it is complete; 0: not yet; -1: it is wrong (head->refusal: the status). */
ACO__HIDDEN int aco__http_parse_head(aco__http_incoming_t *in);
/* Bytes of the head that were parsed. */
static inline size_t aco__http_head_size(const aco__http_incoming_t *in)
{
    return in->link->keep - in->link->in.begin;
}
/* Reads what comes next of the head. The number of bytes; 0 at the end of the stream; -1 and errno. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_more_head(aco__http_incoming_t *in, const char *location);
/* Reads the body, as aco_http_request_read(). */
ACO__SWITCHES
ACO__HIDDEN ssize_t aco__http_read_body(aco__http_incoming_t *in, void *p, size_t n, const char *call,
                                        const char *location);
/* Reads the next bytes of the body and drops them. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_skip_body(aco__http_incoming_t *in, const char *call, const char *location);
/* The message is done: what follows it is the next one's. */
ACO__HIDDEN void aco__http_message_end(aco__http_incoming_t *in);

#endif
