/* A reader of HTTP/1 messages that the tests compare with the library's. It is written from RFC 9110 and RFC 9112,
 * looks at whole inputs only, and shares nothing with src/http.
 *
 * What the RFCs let a recipient choose, and where Acorn is stricter than they are, is a freedom: one bit each, named in
 * reader_freedoms. A message with a freedom may be refused; if it is not, it must be understood as the reader does. */
#ifndef HTTP_READER_H
#define HTTP_READER_H

#include <stddef.h>

enum {
    FREE_BARE_LF,
    FREE_FOLD,
    FREE_CONTROL,
    FREE_METHOD,
    FREE_HOST,
    FREE_TARGET,
    FREE_SCHEME,
    FREE_ESCAPE,
    FREE_DOTS,
    FREE_MINOR,
    FREE_EXPECT,
    FREE_TWO_ENDS,
    FREE_SAME_LENGTHS,
    FREE_LARGE_LENGTH,
    FREE_CODINGS,
    FREE_CODING_TAB,
    FREE_EXTENSION_SPACE,
    FREE_EXTENSION,
    FREE_TRAILER,
    FREE_REASON,
    FREE_STATUS,
    FREE_UNUSED_LENGTH,
    FREEDOMS
};

typedef struct reader_freedom {
    const char *section, *what;
} reader_freedom_t;
extern const reader_freedom_t reader_freedoms[FREEDOMS];

enum { READER_FIELDS = 64, READER_TEXT = 8192 };

typedef struct reader_field {
    const char *name, *value;
    size_t name_n, value_n;
} reader_field_t;

enum { READER_WHOLE, READER_PART, READER_WRONG };

typedef struct reader_message {
    int kind; /* READER_PART: more bytes would have to come */
    const char *wrong; /* section and reason of READER_WRONG */
    unsigned freedoms; /* bits */
    int has_head; /* the head is whole, and right */
    const char *method, *target; /* of a request */
    size_t method_n, target_n;
    int status; /* of a response */
    int minor;
    reader_field_t fields[READER_FIELDS];
    size_t field_count;
    char body[READER_TEXT];
    size_t body_n;
    size_t end; /* bytes of the message: the next one begins there */
    int persists; /* the connection goes on */
    char text[READER_TEXT]; /* of fields' values */
    size_t text_n;
} reader_message_t;

/* Reads the message with which these bytes begin; they are all that comes. At most READER_TEXT bytes. */
void reader_request(reader_message_t *message, const char *p, size_t n);
/* `answers_head`: the request's method was HEAD. */
void reader_response(reader_message_t *message, const char *p, size_t n, int answers_head);

#endif
