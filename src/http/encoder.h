/* Codings of bodies that are sent: encoder.c. */
#ifndef ACO_HTTP_ENCODER_H
#define ACO_HTTP_ENCODER_H

#include "os/platform.h"

#include "aco/http.h"

enum { HTTP_ENCODED = 8192 }; /* bytes that an encoder gives at once, at most */
enum { HTTP_ENCODE, HTTP_ENCODE_ALL, HTTP_ENCODE_END }; /* what it can; all, so that it can be decoded; and the end */

typedef struct aco__http_encoder {
    int64_t left; /* bytes of the body that are to come; less than 0: not known */
    const char *coding; /* "gzip" or "br" */
    unsigned char has_more; /* there is output without further input */
    void *state; /* the coding's */
    char out[HTTP_ENCODED];
} aco__http_encoder_t;

/* The codings of this build, the preferred first, with a NULL behind them. */
ACO__HIDDEN extern const char *const aco__http_encodings[];
/* Makes this record the encoder for a body of `length` bytes (less than 0: not known). `level`: 0 for the default.
 * NULL and errno: ENOMEM. */
ACO__HIDDEN aco__http_encoder_t *aco__http_encoder_new(aco__http_encoder_t *e, const char *coding, int level,
                                                       int64_t length);
/* Frees what is not the request's; again: nothing happens. */
ACO__HIDDEN void aco__http_encoder_end(aco__http_encoder_t *encoder);
/* Takes bytes from *p, and moves it; *n are left. How many bytes are in `out` then; -1: memory is lacking. */
ACO__HIDDEN ptrdiff_t aco__http_encode(aco__http_encoder_t *encoder, const char **p, size_t *n, int how);

#endif
