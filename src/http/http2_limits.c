/* What a peer of HTTP/2 may cost for nothing.
 *
 * Each connection has patience. Frames that cost the server something and bring nobody anything use it up: resets, both
 * those that the client sends and those that it has the server send, and pings, settings, priorities, empty data,
 * frames of unknown types, and window updates beyond those for what was sent. Bodies and replies give it back, and so
 * does time. A peer that has used it up is cut off with ENHANCE_YOUR_CALM. nghttp2 itself bounds the CONTINUATION
 * frames of a head, the settings of a frame and the acknowledgements that wait to be sent. */
#ifdef ACO_CONFIG_HTTP2

#include "http/http2.h"

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

void aco__http2_count_use(aco__http2_t *h, int how_much)
{
    h->patience.left += how_much;
    if (h->patience.left > PATIENCE)
        h->patience.left = PATIENCE;
}

/* Time makes patient again. */
static void grow_patient(aco__http2_t *h)
{
    const int64_t step = ACO_SECOND / PATIENCE_A_SECOND;
    int64_t steps = (aco_now() - h->patience.since) / step;
    if (steps <= 0)
        return;
    h->patience.since += steps * step;
    aco__http2_count_use(h, steps < PATIENCE ? (int)steps : PATIENCE);
}

int aco__http2_count(aco__http2_t *h)
{
    if (h->refusal)
        return 1;
    if (--h->patience.left > 0)
        return 0;
    grow_patient(h);
    if (h->patience.left > 0)
        return 0;
    aco__http2_cut_off(h, NGHTTP2_ENHANCE_YOUR_CALM, ECONNREFUSED);
    return 1;
}

void aco__http2_count_bytes(aco__http2_t *h, size_t n)
{
    h->patience.unknown += (int64_t)n;
    while (h->patience.unknown > UNKNOWN_BYTES && !aco__http2_count(h))
        h->patience.unknown -= UNKNOWN_BYTES;
}

/* One for it, and one for each window update that it may need. A client may grant byte by byte, but not for long. */
void aco__http2_count_sent(aco__http2_t *h, size_t n)
{
    if (n >= USEFUL_BYTES)
        aco__http2_count_use(h, 3);
}

int aco__http2_count_frame(aco__http2_t *h, unsigned type, size_t n, unsigned flags)
{
    h->patience.unknown -= FRAME_HEAD + (int64_t)n;
    switch (type) {
    case NGHTTP2_DATA:
        if (n >= USEFUL_BYTES)
            aco__http2_count_use(h, 1);
        return n == 0 && !(flags & NGHTTP2_FLAG_END_STREAM) ? aco__http2_count(h) : 0;
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
        return 0;
    case NGHTTP2_SETTINGS:
    case NGHTTP2_PING:
        return flags & NGHTTP2_FLAG_ACK ? 0 : aco__http2_count(h);
    default:
        return aco__http2_count(h);
    }
}

#else
typedef int aco__http2_limits_is_empty;
#endif
