/* Codings of bodies: decoder.c. */
#ifndef ACO_HTTP_DECODER_H
#define ACO_HTTP_DECODER_H

#include "os/platform.h"

#include <sys/types.h>

enum { HTTP_CODED = 8192 }; /* bytes of coded input that a decoder holds */

typedef struct aco__http_decoder aco__http_decoder_t;

/* The codings that this build decodes, "gzip, deflate, br"; "": none. */
ACO__HIDDEN const char *aco__http_codings(void);
/* Makes a decoder. NULL and errno: 0 if the coding is not known. */
ACO__HIDDEN aco__http_decoder_t *aco__http_decoder_new(const char *coding);
/* NULL: nothing happens. */
ACO__HIDDEN void aco__http_decoder_free(aco__http_decoder_t *decoder);
/* Room for input, which is wanted now; NULL: the decoder has what it needs for the next bytes. */
ACO__HIDDEN char *aco__http_decoder_room(aco__http_decoder_t *decoder);
/* `n` bytes of input were put there; 0: there are no more. */
ACO__HIDDEN void aco__http_decoder_filled(aco__http_decoder_t *decoder, size_t n);
/* Whether all input was decoded. */
ACO__HIDDEN int aco__http_decoder_is_done(const aco__http_decoder_t *decoder);
/* Decodes up to `n` bytes. Their number; 0: input is wanted, or, without further input, the end; -1 and errno: EBADMSG
 * (the input is wrong, or cut), ENOMEM. */
ACO__HIDDEN ssize_t aco__http_decoded(aco__http_decoder_t *decoder, void *p, size_t n);

#endif
