/* Forms that HTTP servers receive: application/x-www-form-urlencoded and multipart/form-data (RFC 7578), as streams. In
 * the library acorn_http.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   const aco_http_part_t *part;
 *   aco_http_form_t *form = aco_http_form_open(request, NULL);
 *   while (form && (part = aco_http_form_next(form)) != NULL)
 *       if (strcmp(part->name, "upload") == 0)
 *           while ((n = aco_http_form_read(form, bytes, sizeof bytes)) > 0)
 *               keep(bytes, n);
 *   if (!form || errno != 0)
 *       return; // the server answers 400, 413 or the like
 *
 * A form is read once, from its beginning to its end, in memory of fixed size. What two programs could read differently
 * is refused: parts without a name or with two, other encodings of a part, heads with bare line ends, what follows a
 * boundary and is no line end, a form without its last boundary. The rules of aco/http.h count: threads, scopes, the
 * limits of a body, memory of the request. */
#ifndef ACO_HTTP_FORMS_H
#define ACO_HTTP_FORMS_H

#include "http.h"

ACO__BEGIN_C

typedef struct aco_http_form_s aco_http_form_t;

/* Zeros are the defaults. */
typedef struct aco_http_form_options_s {
    int max_head;           /* bytes of a part's head, or of a name: 2048; at least 64, at most 64 KiB */
    int max_parts;          /* how many: 1000. Less than 0: no limit but max_body */
    void *aco__reserved[2]; /* reserved fields are 0 */
} aco_http_form_options_t;

/* A part of a form: a field or a file. Read-only. Valid until the next aco_http_form_next(). The texts come from the
 * client and may be anything but NULs; never use file_name as the name of a file. */
typedef struct aco_http_part_s {
    const char *name;      /* decoded */
    const char *file_name; /* as it was sent: browsers send %22 for a quote. NULL: it is no file */
    const char *type;      /* Content-Type of the part; NULL: none */
} aco_http_part_t;

/* Begins to read the request's body as a form. Does not wait. Returns the form, in memory of the request; on error NULL
 * with errno ENOTSUP (the request is of neither type), EBADMSG (its Content-Type is wrong: no boundary, or several),
 * EINVAL (a limit is out of bounds, a reserved field), ENOMEM. For ENOTSUP reply 415. For EBADMSG the server answers
 * 400 if the handler does not reply. */
ACO_API aco_http_form_t *aco_http_form_open(aco_http_request_t *request, const aco_http_form_options_t *options);
/* Goes on to the next part, and skips what is left of the last one. Returns the part. NULL with errno 0: there is none;
 * on error NULL with errno EBADMSG (the form is wrong), EFBIG (a head or the number of parts is beyond the limit), or
 * as aco_http_request_read(). After the end of a scope, ENOMEM or EPERM the next call goes on; after another error it
 * fails again, and the server answers as for a failed aco_http_request_read() if the handler does not reply. */
ACO_API const aco_http_part_t *aco_http_form_next_at(aco_http_form_t *form, const char *location);
#define aco_http_form_next(form) aco_http_form_next_at(form, ACO_PLACE)
/* Reads what has come of the part's content, decoded, at most `n` bytes. Waits if nothing has come. Returns the number
 * of bytes; 0 at the end of the part, before the first part, or if `n` is 0; on error -1 with errno as
 * aco_http_form_next(). */
ACO_API ssize_t aco_http_form_read_at(aco_http_form_t *form, void *p, size_t n, const char *location);
#define aco_http_form_read(form, p, n) aco_http_form_read_at(form, p, n, ACO_PLACE)
/* Reads all that is left of the part, at most `most` bytes. Stores its length in *n; `n` may be NULL. Returns the
 * content, with a 0 behind it, in memory of the request; on error NULL with errno as aco_http_form_next(), and EFBIG
 * also if there are more than `most` bytes. After an error what was read is lost. */
ACO_API char *aco_http_form_read_all_at(aco_http_form_t *form, size_t most, size_t *n, const char *location);
#define aco_http_form_read_all(form, most, n) aco_http_form_read_all_at(form, most, n, ACO_PLACE)

ACO__END_C

#endif
