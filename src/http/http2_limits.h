/* How much a peer may cost for nothing: http2_limits.c. */
#ifndef ACO_HTTP2_LIMITS_H
#define ACO_HTTP2_LIMITS_H

#include "base/invariants.h"

#include <stddef.h>
#include <stdint.h>

struct aco__http2_wire;

/* What is left of the patience with a peer, and when it last grew. */
typedef struct aco__http2_patience {
    int left;
    int64_t since;
    int64_t unknown; /* bytes that have come and belong to no frame that was counted */
} aco__http2_patience_t;

ACO__HIDDEN void aco__http2_be_patient(aco__http2_patience_t *patience);
/* A frame has begun to come, of this type, length and flags. 0; or 1: the peer was cut off. */
ACO__HIDDEN int aco__http2_count_frame(struct aco__http2_wire *wire, unsigned type, size_t n, unsigned flags);
/* Bytes of a DATA frame with these flags have come, which are no padding. */
ACO__HIDDEN void aco__http2_count_padded(struct aco__http2_wire *wire, unsigned flags);
/* This side is about to reset a stream: what the peer has sent, or sends until it knows, is not its fault. */
ACO__HIDDEN void aco__http2_count_reset(struct aco__http2_wire *wire, int32_t id);
/* So many bytes have come. */
ACO__HIDDEN void aco__http2_count_bytes(struct aco__http2_wire *wire, size_t n);
/* The peer has cost something for nothing. 0; or 1: it was cut off. */
ACO__HIDDEN int aco__http2_count(struct aco__http2_wire *wire);
/* Data has been sent to it. */
ACO__HIDDEN void aco__http2_count_sent(struct aco__http2_wire *wire, size_t n);
/* It has got, or sent, something. */
ACO__HIDDEN void aco__http2_count_use(struct aco__http2_wire *wire, int how_much);

#endif
