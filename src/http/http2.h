/* HTTP/2 in the server, on nghttp2: a connection and its streams.
 *
 * The connection's task reads (http2.c). Each request has a task of its own, which runs its handler (http2_stream.c).
 * Heads become requests in http2_head.c. Whoever has something to send calls aco__http2_want_write(): one task at a
 * time writes for all (http2_output.c, http2_wire.c). http2_limits.c counts what only costs the server, http2_end.c
 * ends streams and connections.
 *
 * Nothing that nghttp2 calls may switch, so all of this may call nghttp2 at any time. */
#ifndef ACO_HTTP2_H
#define ACO_HTTP2_H

#include "http/request.h"
#include "http/server.h"
#include "http/server_connection.h"

struct aco__http2;

/* Serves a connection whose peer speaks HTTP/2, until it has ended, or another thread has it: then it has no stream.
 * What was read of it is in the link's buffer. `session`: that it has had on another thread; NULL: a new one. */
ACO__SWITCHES
ACO__HIDDEN void aco__http2_serve(aco__http_connection_t *c, struct aco__http2 *session, const char *location);

#ifdef ACO_CONFIG_HTTP2

#include "http/http2_wire.h"

/* How far the end of a connection has come. */
enum { HTTP2_STAYS, HTTP2_WILL_LEAVE, HTTP2_LEAVES }; /* the client was told; further requests are not answered */

typedef struct aco__http2 {
    aco__http2_wire_t wire; /* first */
    aco__http_connection_t *c;
    aco_http_server_t *server;
    aco_group_t group; /* the streams' tasks and the writer */
    struct aco__http2_stream *first; /* all of them */
    struct aco__http2_stream *filling; /* whose head comes; NULL: none, or it is refused */
    struct aco__http2_stream *begun, **begun_end; /* heads have come; they get their tasks when the input is parsed */
    int streams; /* records of them: also those whose client has left, while a handler runs */
    int ending; /* of these, closed ones whose tasks have nothing left to do but to end */
    unsigned requests; /* so far */
    unsigned refused; /* streams whose client has not been told yet, and then is not to blame, or has been blamed */
    unsigned char leaving;
    unsigned char has_end; /* the client sends no more */
    unsigned char in_head; /* a head has come in part */
    int64_t until; /* in_head, or when it leaves: how long */
    int64_t idle_since; /* no streams */
    int64_t look; /* after streams whose tasks have ended */
    uint8_t frame[9]; /* the head of the frame that comes */
    size_t frame_n, frame_left; /* bytes of that head; of the frame that are to come */
    size_t promised; /* bytes of replies whose handlers have ended and which the windows had room for */
    size_t sz;
} aco__http2_t;

/* A stream: a request and its reply. Freed when neither nghttp2 nor a task has it. */
typedef struct aco__http2_stream {
    aco__http_exchange_t x; /* first */
    aco__http2_t *h;
    struct aco__http2_stream *next, **place, *next_begun;
    size_t sz; /* of this record and the request's memory behind it */
    int32_t id;
    unsigned char is_open; /* nghttp2 has it */
    unsigned char has_task; /* or will have one */
    unsigned char has_head, has_all; /* of the request */
    unsigned char may_continue; /* the client waits for "100 Continue" */
    unsigned char has_response; /* nghttp2 has its head */
    unsigned char has_ended; /* all of the reply was sent */
    unsigned char is_deferred; /* nghttp2 asks for no data until it is told of some */
    unsigned char was_reset; /* by the server's own will */
    unsigned char is_whole; /* the handler's part of the reply is complete */
    unsigned char is_logged; /* now: the program's functions may wait, and the stream counts meanwhile */
    unsigned char is_ending; /* it is one of the connection's `ending` */
    int error; /* the errno with which it has failed */
    /* The head: */
    aco_http_header_t *headers;
    size_t count, most; /* fields; of them there is room */
    size_t head_n; /* bytes, as HPACK counts them */
    const char *authority;
    const char *protocol; /* that the request asks for (RFC 8441); NULL: none */
    int refusal; /* the status with which to refuse it; 0: none */
    /* The request's body: */
    aco__http2_buffer_t body;
    uint64_t body_n; /* that have come */
    int64_t body_until; /* 0: nobody has waited */
    int body_error, read_error;
    int64_t max_body, body_time; /* as in the options */
    /* The reply's body: */
    int64_t left; /* bytes to come; less than 0: not known */
    aco__http2_data_t data;
    size_t promised; /* as the connection's */
    int64_t late; /* as a link's: less than write_rate was taken */
    int64_t until; /* the task has ended: what is left of the reply must be taken then */
    char *trailers; /* as HTTP/1 sends them, when the reply is whole */
    size_t trailers_n, trailers_room;
    aco_event_t changed; /* what a task of the stream may wait for */
} aco__http2_stream_t;

static inline aco__http2_stream_t *aco__http2_stream_of(const aco__http_exchange_t *x)
{
    return x->stream;
}
static inline size_t aco__http2_pending(const aco__http2_stream_t *s)
{
    return aco__http2_data_left(&s->data);
}

/* ---- http2_end.c ---- */
/* The stream has failed: no more comes, and nothing reaches the client. */
ACO__HIDDEN void aco__http2_fail_stream(aco__http2_stream_t *s, int error);
/* Ends it with an error code. */
ACO__HIDDEN void aco__http2_reset(aco__http2_stream_t *s, uint32_t code);
/* The connection's task looks at what has changed. */
ACO__HIDDEN void aco__http2_wake_reader(aco__http2_t *h);
/* A task has done its work: if no request is left and the thread has stalled, the connection may go to another one. */
ACO__HIDDEN void aco__http2_may_leave_thread(aco__http2_t *h);
/* Nothing more comes, and no reply reaches the client. */
ACO__HIDDEN void aco__http2_fail_streams(aco__http2_t *h);
/* The connection ends when its streams have; later ones are refused. */
ACO__HIDDEN void aco__http2_leave(aco__http2_t *h);
/* Ends the connection of a peer that behaves like this. */
ACO__HIDDEN void aco__http2_cut_off(aco__http2_wire_t *wire, uint32_t code, int error);

/* ---- http2_head.c ---- */
/* A head begins; the caller fills in `version`. NULL: the stream is refused. */
ACO__HIDDEN aco__http2_stream_t *aco__http2_begin_stream(aco__http2_t *h, int32_t id);
/* A field of it. 0, or an error of nghttp2's. */
ACO__HIDDEN int aco__http2_add_field(aco__http2_stream_t *s, const char *name, size_t name_n, const char *value,
                                     size_t value_n);
/* It has come: fills in the exchange. */
ACO__HIDDEN void aco__http2_end_head(aco__http2_stream_t *s, int has_body);
/* Frees the record if nobody has it any more. */
ACO__HIDDEN void aco__http2_release(aco__http2_stream_t *s);

/* ---- http2_stream.c ---- */
ACO__HIDDEN extern const aco__http_version_t aco__http2_version;
/* The task of a stream. */
ACO__SWITCHES ACO__HIDDEN void *aco__http2_run_stream(void *stream);
/* Bytes of the body have come. */
ACO__HIDDEN void aco__http2_put_body(aco__http2_stream_t *s, const uint8_t *p, size_t n);

/* ---- http2_output.c ---- */
/* What nghttp2 has to send is sent soon. Does not wait. */
ACO__SWITCHES ACO__HIDDEN void aco__http2_want_write(aco__http2_t *h, const char *location);
/* The same, by the calling task, after others had their turn: a task that has nothing else to do. */
ACO__SWITCHES ACO__HIDDEN void aco__http2_write(aco__http2_t *h, const char *location);
/* nghttp2 has asked for data of a stream, and takes it. */
ACO__HIDDEN int aco__http2_take_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                                     nghttp2_data_source *source, void *connection);
/* There is more of the stream's reply, or its end. */
ACO__HIDDEN void aco__http2_has_data(aco__http2_stream_t *s);

#endif

#endif
