/* A client's connections of HTTP/2, on nghttp2, and its requests on them.
 *
 * A connection that is in use is in the client's list, for all tasks to send requests on; without requests it is kept
 * as one of HTTP/1 is. While there are requests, one task reads (client_http2.c). Another one, which lives only as long
 * as there is something to send, writes. The task of a request waits for its own event (client_http2_call.c). nghttp2
 * tells client_http2_session.c what has come. Heads are made and taken in client_http2_head.c.
 *
 * Nothing that nghttp2 calls may switch, so all of this may call nghttp2 at any time. */
#ifndef ACO_HTTP_CLIENT_HTTP2_H
#define ACO_HTTP_CLIENT_HTTP2_H

#include "http/client_peer.h"

#ifdef ACO_CONFIG_HTTP2

#include "http/http2_wire.h"
#include "service/blocks.h"

#include "aco/sync.h"

struct aco__http2_peer {
    aco__http2_wire_t wire; /* first */
    aco__http_peer_t *peer; /* the connection */
    aco_http_client_t *client; /* NULL: it was destroyed */
    struct aco__http2_peer *next; /* of those in use */
    struct aco__http2_call *first; /* requests */
    struct aco__http2_call *queue, **queue_end; /* those that wait for a stream, first come, first served */
    uint32_t open; /* streams that nghttp2 has, or that were granted */
    uint32_t requests; /* so far */
    unsigned char is_used; /* it is in the client's list */
    unsigned char is_reading; /* a task reads */
    unsigned char is_waiting; /* that task, in `waiting` */
    unsigned char is_leaving; /* no further requests */
    unsigned char was_pinged; /* and has not answered */
    unsigned char has_heard; /* anything of the server */
    int error; /* with which it has failed; 0: it has not */
    int64_t heard; /* when something came last */
    aco_scope_t waiting;
    size_t sz;
};

/* A request and its response. Freed when neither nghttp2 nor its caller has it. */
typedef struct aco__http2_call {
    aco__http_answer_t answer; /* first */
    aco__http2_peer_t *h;
    struct aco__http2_call *next, **place, *next_waiting;
    size_t sz; /* of this record, the headers and text behind it */
    int32_t id;
    int64_t reset_code; /* with which the server has reset it; -1: it has not */
    int error; /* with which it has failed */
    const char *reason;
    unsigned char has_caller;
    unsigned char is_queued, is_granted; /* waits for a stream; has one that nghttp2 does not know yet */
    unsigned char is_open; /* nghttp2 has it */
    unsigned char was_reset; /* by this side's own will */
    unsigned char has_any; /* something of the response has come */
    unsigned char may_send; /* "100 Continue" has come */
    unsigned char has_head, has_all; /* of the response */
    unsigned char is_deferred; /* nghttp2 asks for no data until it is told of some */
    unsigned char is_whole; /* all of the request's body was given */
    unsigned char has_sent_head, has_sent_all;
    int interims;
    /* The response's head, and behind it the trailers: */
    aco_http_header_t *headers;
    size_t count, trailers, most; /* headers; trailers; of both there is room */
    size_t head_n; /* bytes as HPACK counts them */
    char *text, *text_end; /* free memory for fields */
    aco__block_t *more; /* further memory */
    aco__http2_buffer_t body; /* of the response */
    int64_t left; /* bytes of the request's body that are to come; less than 0: not known */
    aco__http2_data_t data; /* of the request's body */
    nghttp2_nv *own_trailers; /* behind it, with their texts */
    size_t own_trailers_n, own_trailers_sz;
    aco_event_t changed; /* what its tasks may wait for */
} aco__http2_call_t;

static inline void aco__http2_wake_peer(aco__http2_peer_t *h)
{
    if (h->is_waiting)
        (void)aco_scope_cancel(&h->waiting);
}
/* The request has failed: nothing more comes. */
static inline void aco__http2_call_fails(aco__http2_call_t *s, int error, const char *reason)
{
    if (!s->error && !s->has_all) {
        s->error = error;
        s->reason = reason;
    }
    aco_event_set(&s->changed);
}

/* ---- client_http2_session.c ---- */
/* The connection has failed, and with it all requests. */
ACO__HIDDEN void aco__http2_fail_peer(aco__http2_peer_t *h, int error, const char *reason);
/* Who waits for a stream gets one, if there is one. */
ACO__HIDDEN void aco__http2_grant(aco__http2_peer_t *h);
/* Frees the record if nobody has it any more. */
ACO__HIDDEN void aco__http2_release_call(aco__http2_call_t *s);
/* Takes what the link's buffer holds. */
ACO__HIDDEN void aco__http2_parse_peer(aco__http2_peer_t *h);
/* Takes what has come, without a wait. 1; 0: nothing has; -1: nothing more comes. */
ACO__SWITCHES ACO__HIDDEN int aco__http2_take_input(aco__http2_peer_t *h);

/* ---- client_http2.c ---- */
/* What nghttp2 has to send is sent soon. Does not wait. */
ACO__HIDDEN void aco__http2_peer_writes(aco__http2_peer_t *h);
/* A task reads, if none does yet. 0, or -1 and errno. */
ACO__HIDDEN int aco__http2_read_on(aco__http2_peer_t *h);
/* If nobody has requests on the connection any more, it is kept, or closed. */
ACO__HIDDEN void aco__http2_rest(aco__http2_peer_t *h);

/* ---- client_http2_head.c ---- */
/* Sends the head: nghttp2 has the stream then, and if there is a body, asks for it by `give`. 0, or -1 and errno. */
ACO__HIDDEN int aco__http2_submit_call(aco__http2_call_t *s, const aco__http_step_t *step,
                                       nghttp2_data_source_read_callback give);
/* Keeps trailers to be sent. 0, or -1 and errno. */
ACO__HIDDEN int aco__http2_keep_trailers(aco__http2_call_t *s, const aco_http_header_t *trailers, size_t n);
/* A head of the response begins; a field of it; its end. 0, or an error of nghttp2's. */
ACO__HIDDEN void aco__http2_begin_response(aco__http2_call_t *s);
ACO__HIDDEN int aco__http2_add_response_field(aco__http2_call_t *s, const char *name, size_t name_n, const char *value,
                                              size_t value_n);
ACO__HIDDEN int aco__http2_end_response_head(aco__http2_call_t *s);

#endif

#endif
