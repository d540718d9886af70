/* Forms: the bytes of the body that were not understood yet, and the head of a part. */
#include "http/form.h"

#include <string.h>

static const char body_call[] = "aco_http_form";

int aco__http_form_fail(aco_http_form_t *form, int error, const char *reason)
{
    form->error = error;
    form->x->version->fail_body(form->x, error);
    return aco__service_fail(error, body_call, reason);
}

int aco__http_form_fill(aco_http_form_t *form)
{
    ssize_t n;
    if (form->begin) {
        memmove(form->buffer, form->buffer + form->begin, form->end - form->begin);
        form->end -= form->begin;
        form->begin = 0;
    }
    ACO__ASSERT(form->end < sizeof form->buffer);
    if (form->body_is_over)
        return 0;
    n = form->x->version->read(form->x, form->buffer + form->end, sizeof form->buffer - form->end, body_call,
                               form->location);
    if (n > 0)
        form->end += (size_t)n;
    form->body_is_over = n == 0;
    return n > 0 ? 1 : (int)n;
}

int aco__http_form_add(aco_http_form_t *form, char byte)
{
    if (form->head_n == form->head_room)
        return aco__http_form_fail(form, EFBIG, "the head of a part is too long");
    form->head[form->head_n++] = byte;
    form->head[form->head_n] = 0;
    return 0;
}
