/* The body of a message of HTTP/1 that goes out on a link: outgoing.c. */
#ifndef ACO_HTTP_OUTGOING_H
#define ACO_HTTP_OUTGOING_H

#include "http/link.h"

typedef struct aco__http_outgoing {
    aco__http_link_t *link;
    int64_t left; /* bytes that are to come; less than 0: not known; 0 at the end */
    unsigned char is_chunked;
    unsigned char is_bodiless; /* what is written is not sent */
} aco__http_outgoing_t;

/* A message's body begins. `length`: less than 0: not known. */
static inline void aco__http_body_begin(aco__http_outgoing_t *out, int64_t length, int is_chunked, int is_bodiless)
{
    out->left = length;
    out->is_chunked = (unsigned char)is_chunked;
    out->is_bodiless = (unsigned char)is_bodiless;
}
/* Whether the peer lacks something of what was to be sent. */
static inline int aco__http_is_cut(const aco__http_outgoing_t *out)
{
    return out->link->is_broken || out->left != 0 || out->link->out_n > 0;
}
/* The next bytes, as aco_http_reply_write(). */
ACO__SWITCHES
ACO__HIDDEN int aco__http_write_body(aco__http_outgoing_t *out, const void *p, size_t n, const char *call,
                                     const char *location);
ACO__SWITCHES
ACO__HIDDEN int aco__http_write_file(aco__http_outgoing_t *out, int fd, int64_t offset, int64_t n, const char *call,
                                     const char *location);
/* The end. In chunks, these lines of trailers come with it, at most 6 KiB. 0; -1 and errno: EMSGSIZE (bytes are
 * missing). */
ACO__SWITCHES
ACO__HIDDEN int aco__http_end_body_with(aco__http_outgoing_t *out, const char *trailers, size_t n,
                                        const char *location);
ACO__SWITCHES static inline int aco__http_end_body(aco__http_outgoing_t *out, const char *location)
{
    return aco__http_end_body_with(out, NULL, 0, location);
}

#endif
