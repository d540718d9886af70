/* What both sides of HTTP/2 have in common: nghttp2's memory, and what a connection sends: http2_wire.c. */
#ifndef ACO_HTTP2_WIRE_H
#define ACO_HTTP2_WIRE_H

#include "http/http2_limits.h"
#include "http/link.h"

#ifdef ACO_CONFIG_HTTP2

#include <nghttp2/nghttp2.h>

enum {
    HTTP2_OUT = 36864, /* bytes that are sent at once: two frames of data, and some others */
    HTTP2_STREAM_OUT = 16384, /* bytes of a body that are collected */
    HTTP2_TEXT = 1024, /* bytes of a head's fields before it needs more memory */
    HTTP2_FIELD = 32, /* bytes of a field besides its texts, as HPACK counts them */
    HTTP2_BOMB = 4 /* times max_head: such a head is not read */
};

/* A connection's frames. */
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

typedef struct aco__http2_buffer {
    char *bytes; /* NULL: none yet */
    size_t begin, end, room;
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

/* The library's memory, for sessions. */
ACO__HIDDEN extern nghttp2_mem aco__http2_memory;
/* Frees a buffer's memory. */
ACO__HIDDEN void aco__http2_free_buffer(aco__http2_buffer_t *buffer);
/* Makes room for `n` bytes behind the end, in at least `least` bytes of memory. 0, or -1 and errno. */
ACO__HIDDEN int aco__http2_make_room(aco__http2_buffer_t *buffer, size_t least, size_t n, const char *call);
/* A frame of `n` bytes of data, and this head, goes out. 0, or an error of nghttp2's: also if it must wait. */
ACO__HIDDEN int aco__http2_put_data(aco__http2_wire_t *wire, aco__http2_data_t *data, const uint8_t *head, size_t n);
/* Whether a task is wanted that sends. */
ACO__HIDDEN int aco__http2_has_output(const aco__http2_wire_t *wire);
/* Sends until there is nothing more, or the link is broken. */
ACO__SWITCHES ACO__HIDDEN void aco__http2_send_all(aco__http2_wire_t *wire, const char *call, const char *location);

#endif

#endif
