/* Trailers of a message that comes in, request or response: trailers.c. */
#ifndef ACO_HTTP_TRAILERS_H
#define ACO_HTTP_TRAILERS_H

#include "os/platform.h"

#include <stddef.h>

enum { HTTP_MOST_TRAILERS = 16384 }; /* bytes of names and values, each with a 0 */

typedef struct aco__http_trailers { /* zeros: none has come */
    char *bytes; /* names and values, each with a 0 */
    size_t n, room;
    char *first; /* the memory that `bytes` had before; NULL: it is still the first */
    size_t first_room;
    unsigned char at; /* where the last one ends, as below */
} aco__http_trailers_t;

enum { HTTP_BEHIND_VALUE, HTTP_IN_NAME, HTTP_IN_VALUE };
/* Adds a part of a trailer that has come: of its name, of its value, or nothing, behind its value. 0; on error -1 with
 * errno EFBIG (HTTP_MOST_TRAILERS), ENOMEM. */
ACO__HIDDEN int aco__http_add_trailer(aco__http_trailers_t *trailers, const char *p, size_t n, int where);
/* The first one's value, which stays until aco__http_drop_trailers(); NULL: there is none, or it may not be a
 * trailer. */
ACO__HIDDEN const char *aco__http_find_trailer(const aco__http_trailers_t *trailers, const char *name);
/* Frees their memory: there are none. */
ACO__HIDDEN void aco__http_drop_trailers(aco__http_trailers_t *trailers);

#endif
