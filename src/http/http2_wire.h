/* What both sides of HTTP/2 have in common: http2_wire.c. */
#ifndef ACO_HTTP2_WIRE_H
#define ACO_HTTP2_WIRE_H

#include "http/http2_limits.h"
#include "http/link.h"

#ifdef ACO_CONFIG_HTTP2

#include <nghttp2/nghttp2.h>

enum {
    HTTP2_OUT = 36864, /* bytes that are sent at once: two frames of data, and some others */
    HTTP2_STREAM_OUT = 16384, /* bytes of a body that are collected, */
    HTTP2_LEAST_OUT = 1024, /* in a buffer of at least so many */
    HTTP2_TEXT = 512, /* bytes of a response's fields before it needs more memory */
    HTTP2_FIELD = 32 /* bytes of a field besides its texts, as HPACK counts them */
};

/* A connection's frames. It is the first of its owner's fields: nghttp2's callbacks get it as `connection`. */
typedef struct aco__http2_wire {
    nghttp2_session *session;
    aco__http_link_t *link;
    unsigned char is_writing; /* a task writes, or will soon */
    unsigned char is_full; /* the writer's buffer */
    int refusal; /* the errno for which the peer was cut off; 0: it was not */
    char *out; /* of the writer, which alone uses it */
    size_t out_n;
    const uint8_t *rest; /* a frame that did not fit */
    size_t rest_n;
    aco__http2_patience_t patience;
    /* Ends the connection of a peer that behaves like this. */
    void (*cut_off)(struct aco__http2_wire *wire, uint32_t code, int error);
} aco__http2_wire_t;

/* Bytes on their way. Empty, it has no memory, so that a stream which waits holds none. */
typedef struct aco__http2_buffer {
    char *bytes; /* NULL: none */
    size_t begin, end, room;
    int is_filled; /* by a task that may wait meanwhile: then the memory stays */
} aco__http2_buffer_t;

/* A body that is sent: what was collected, then what the writing task waits to see taken. */
typedef struct aco__http2_data {
    aco__http2_buffer_t out;
    const char *direct;
    size_t direct_n;
} aco__http2_data_t;

static inline size_t aco__http2_data_left(const aco__http2_data_t *data)
{
    return data->out.end - data->out.begin + data->direct_n;
}

/* A field, whose texts nghttp2 copies when it takes it. */
static inline nghttp2_nv aco__http2_field(const char *name, size_t name_n, const char *value, size_t value_n)
{
    nghttp2_nv field = {(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, name_n, value_n, NGHTTP2_NV_FLAG_NONE};
    return field;
}

/* Whether it is a field that only HTTP/1 has (RFC 9113, 8.2.2); "te" depends on the side. */
ACO__HIDDEN int aco__http2_is_of_connection(const char *name, size_t n);
/* Begins nghttp2's session, with these callbacks besides the common ones, settings, and window of the connection;
 * `link` and `cut_off` are set. 0; on error -1, errno ENOMEM, and the wire has no session. */
ACO__HIDDEN int aco__http2_begin_session(aco__http2_wire_t *wire, void (*set_callbacks)(nghttp2_session_callbacks *),
                                         int is_server, const nghttp2_settings_entry *settings, size_t n,
                                         int32_t window);
/* Frees a buffer's memory: it is empty. */
ACO__HIDDEN void aco__http2_free_buffer(aco__http2_buffer_t *buffer);
/* Makes room for `n` bytes behind the end, in at least `least` bytes of memory. 0, or -1 and errno. */
ACO__HIDDEN int aco__http2_make_room(aco__http2_buffer_t *buffer, size_t least, size_t n, const char *call);
/* Moves up to `n` bytes that have come to `p`, so that the peer may send as many more: on the stream with this id, and
 * on the connection; id 0: the stream has ended. Returns their number. */
ACO__HIDDEN size_t aco__http2_read_buffer(aco__http2_wire_t *wire, aco__http2_buffer_t *buffer, int32_t id, void *p,
                                          size_t n);
/* A frame of `n` bytes of data, and this head, goes out. 0, or an error of nghttp2's: also if it must wait. */
ACO__HIDDEN int aco__http2_put_data(aco__http2_wire_t *wire, aco__http2_data_t *data, const uint8_t *head, size_t n);
/* Whether a task is wanted that sends. */
ACO__HIDDEN int aco__http2_has_output(const aco__http2_wire_t *wire);
/* Sends until there is nothing more, or the link is broken. */
ACO__SWITCHES ACO__HIDDEN void aco__http2_send_all(aco__http2_wire_t *wire, const char *call, const char *location);

#endif

#endif
