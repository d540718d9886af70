/* A form that is read: form.c; its bytes: form_body.c; the parts of multipart/form-data: multipart.c. */
#ifndef ACO_HTTP_FORM_H
#define ACO_HTTP_FORM_H

#include "http/request.h"

#include "aco/http_forms.h"

enum {
    HTTP_FORM_BUFFER = 4096, /* bytes of the body that were not understood yet */
    HTTP_MOST_BOUNDARY = 70 /* RFC 2046, 5.1.1 */
};

/* Where a form is. */
enum { FORM_IN_CONTENT, FORM_BEHIND_BOUNDARY, FORM_IN_HEAD, FORM_AT_END };

struct aco_http_form_s {
    aco_http_part_t part;
    aco__http_exchange_t *x;
    const char *location;
    size_t begin, end; /* in the buffer */
    char *head; /* of the part, as far as it has come */
    size_t head_n, head_room;
    int64_t parts_left;
    int error; /* sticky; 0: none */
    unsigned char state;
    unsigned char has_part; /* aco_http_form_next() has returned one: its content can be read */
    unsigned char body_is_over;
    /* multipart/form-data: */
    size_t delimiter_n; /* 0: it is the other type */
    char delimiter[4 + HTTP_MOST_BOUNDARY]; /* "\r\n--boundary" */
    char buffer[HTTP_FORM_BUFFER];
};

/* The form is wrong: each further call fails with this error. -1. */
ACO__HIDDEN int aco__http_form_fail(aco_http_form_t *form, int error, const char *reason);
/* Reads more of the body into the buffer, which is not full. 1; 0: it is over; -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__http_form_fill(aco_http_form_t *form);
/* Adds a byte to the head. 0, or -1. */
ACO__HIDDEN int aco__http_form_add(aco_http_form_t *form, char byte);

/* Takes the boundary of this Content-Type, which it changes. 0, or -1 and errno. */
ACO__HIDDEN int aco__http_multipart_open(aco_http_form_t *form, char *type);
/* One step to the next part. 1: form->part is one; 0: go on; -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__http_multipart_step(aco_http_form_t *form);
/* Content of the part. The number of bytes; 0 at its end; -1 and errno. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__http_multipart_read(aco_http_form_t *form, char *p, size_t n);

#endif
