/* What a peer of HTTP/2 may cost for nothing, a client or a server.
 *
 * Each connection has patience. Frames that cost this side something and bring nobody anything use it up: resets, both
 * those that the peer sends and those that it makes this side send, and pings and answers to them, settings,
 * priorities, data that is empty or padding, frames of unknown types, and window updates beyond those for what was
 * sent. Bodies and replies give it back, and so does time. A peer that has used it up is cut off with
 * ENHANCE_YOUR_CALM. nghttp2 itself bounds the CONTINUATION frames of a head, the settings of a frame and the
 * acknowledgements that wait to be sent. */
#ifdef ACO_CONFIG_HTTP2

#include "http/http2_wire.h"

enum {
    PATIENCE = 1000, /* at most, and at first */
    PATIENCE_A_SECOND = 50,
    FRAME_HEAD = 9,
    UNKNOWN_BYTES = 256, /* of unknown frames, which nghttp2 skips fast: each cost a point */
    USEFUL_BYTES = 32 /* of a DATA frame that is worth its cost */
};

void aco__http2_be_patient(aco__http2_patience_t *patience)
{
    patience->left = PATIENCE;
    patience->since = aco_now();
    patience->unknown = 0;
}

void aco__http2_count_use(aco__http2_wire_t *wire, int how_much)
{
    wire->patience.left += how_much;
    if (wire->patience.left > PATIENCE)
        wire->patience.left = PATIENCE;
}

/* Time makes patient again. */
static void grow_patient(aco__http2_wire_t *wire)
{
    const int64_t step = ACO_SECOND / PATIENCE_A_SECOND;
    int64_t steps = (aco_now() - wire->patience.since) / step;
    if (steps <= 0)
        return;
    wire->patience.since += steps * step;
    aco__http2_count_use(wire, steps < PATIENCE ? (int)steps : PATIENCE);
}

int aco__http2_count(aco__http2_wire_t *wire)
{
    if (wire->refusal)
        return 1;
    if (--wire->patience.left > 0)
        return 0;
    grow_patient(wire);
    if (wire->patience.left > 0)
        return 0;
    wire->cut_off(wire, NGHTTP2_ENHANCE_YOUR_CALM, ECONNREFUSED);
    return 1;
}

void aco__http2_count_bytes(aco__http2_wire_t *wire, size_t n)
{
    wire->patience.unknown += (int64_t)n;
    while (wire->patience.unknown > UNKNOWN_BYTES && !aco__http2_count(wire))
        wire->patience.unknown -= UNKNOWN_BYTES;
}

/* nghttp2 skips data for a stream that was reset as it skips unknown frames. At most the stream's window comes, and as
 * much again for the heads of small frames. Data for all streams together is no more than the connection's window. */
void aco__http2_count_reset(aco__http2_wire_t *wire, int32_t id)
{
    const int64_t window = nghttp2_session_get_stream_local_window_size(wire->session, id);
    const int64_t all = nghttp2_session_get_local_window_size(wire->session);
    if (window > 0 && wire->patience.unknown > -2 * all)
        wire->patience.unknown -= 2 * window;
}

/* One for it, and one for each window update that it may need. A client may grant byte by byte, but not for long. */
void aco__http2_count_sent(aco__http2_wire_t *wire, size_t n)
{
    if (n >= USEFUL_BYTES)
        aco__http2_count_use(wire, 3);
}

void aco__http2_count_padded(aco__http2_wire_t *wire, unsigned flags)
{
    if (flags & NGHTTP2_FLAG_PADDED)
        aco__http2_count_use(wire, 1);
}

int aco__http2_count_frame(aco__http2_wire_t *wire, unsigned type, size_t n, unsigned flags)
{
    wire->patience.unknown -= FRAME_HEAD + (int64_t)n;
    switch (type) {
    case NGHTTP2_DATA:
        if (flags & NGHTTP2_FLAG_PADDED) /* aco__http2_count_padded() gives it back if there is more than padding */
            return aco__http2_count(wire);
        if (n >= USEFUL_BYTES)
            aco__http2_count_use(wire, 1);
        return n == 0 && !(flags & NGHTTP2_FLAG_END_STREAM) ? aco__http2_count(wire) : 0;
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
        return 0;
    case NGHTTP2_SETTINGS: /* nghttp2 refuses acknowledgements of none */
        return flags & NGHTTP2_FLAG_ACK ? 0 : aco__http2_count(wire);
    default:
        return aco__http2_count(wire);
    }
}

#else
typedef int aco__http2_limits_is_empty;
#endif
