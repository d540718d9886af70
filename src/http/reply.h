/* Replies: reply.c. */
#ifndef ACO_HTTP_REPLY_H
#define ACO_HTTP_REPLY_H

#include "base/invariants.h"

#include "http/encoder.h"

#include "aco/http.h"

#include <errno.h>

struct aco__http_exchange;

typedef struct aco__http_reply {
    char *fields; /* its headers, as HTTP/1 sends them */
    size_t fields_n, fields_room;
    char *trailers; /* the same */
    size_t trailers_n, trailers_room;
    const aco_http_compression_t *compression; /* compress.c's: NULL: none */
    aco__http_encoder_t *encoder; /* of the body; NULL: it is sent as it is */
    unsigned char has_begun;
    unsigned char has_date; /* the handler's */
    unsigned char has_length;
    unsigned char is_bodiless; /* what is written of the body is not sent */
    unsigned char is_aborted;
    unsigned char is_refusal; /* `refused` makes it */
    unsigned char is_taken; /* the connection is the handler's: there is no reply */
    unsigned char will_close; /* it ends the connection. The version, too, decides that */
} aco__http_reply_t;

/* The status for a request without a reply, whose body could not be read because of this error. */
static inline int aco__http_status_of_body(int error)
{
    return error == EFBIG ? 413 : error == EBADMSG ? 400 : error == ETIMEDOUT ? 408 : error == ENOBUFS ? 503 : 500;
}
/* A reply that the server itself makes, by the program's function or with a short text. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__http_answer(struct aco__http_exchange *x, int status, const char *location);
/* The answer after which the link, or the bodies, have another protocol. The fields may be changed. 0; on error -1 with
 * errno. */
ACO__SWITCHES
ACO__HIDDEN int aco__http_switch(struct aco__http_exchange *x, char *fields, size_t n, const char *location);

/* ---- compress.c: these return 0, or -1 and errno ---- */

/* Before a reply begins, if it may be compressed: decides, and changes its headers and its length. */
ACO__HIDDEN int aco__http_begin_coding(struct aco__http_exchange *x, int status, const char *type, int64_t *length);
/* Of a reply that has an encoder: */
ACO__SWITCHES ACO__HIDDEN int aco__http_write_coded(struct aco__http_exchange *x, const void *p, size_t n,
                                                    const char *call, const char *location);
ACO__SWITCHES ACO__HIDDEN int aco__http_write_file_coded(struct aco__http_exchange *x, int fd, int64_t offset,
                                                         int64_t n, const char *call, const char *location);
ACO__SWITCHES ACO__HIDDEN int aco__http_flush_coded(struct aco__http_exchange *x, const char *call,
                                                    const char *location);
/* Sends what is left, and ends the encoder. If that fails, or bytes are missing, the reply is aborted. */
ACO__SWITCHES ACO__HIDDEN void aco__http_end_coding(struct aco__http_exchange *x, const char *location);
/* NULL: nothing happens. */
ACO__HIDDEN void aco__http_free_encoder(struct aco__http_exchange *x, aco__http_encoder_t *encoder);

#endif
