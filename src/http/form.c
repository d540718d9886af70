/* Forms: what both types have in common, and application/x-www-form-urlencoded. */
#include "base/reserved.h"
#include "http/form.h"
#include "http/text.h"

#include <string.h>

static const char form_call[] = "aco_http_form";

/* ---- application/x-www-form-urlencoded: name=value&name=value ---- */

/* The next byte, decoded. 1; 0: an "&", or the end of the body, which stay; -1 and errno. *is_plain: it is as sent. */
ACO__SWITCHES static int next_byte(aco_http_form_t *form, char *byte, int *is_plain)
{
    const char *at;
    int filled = 1, high, low;
    while (form->begin == form->end || (form->buffer[form->begin] == '%' && form->end - form->begin < 3))
        if ((filled = aco__http_form_fill(form)) <= 0)
            break;
    if (filled < 0)
        return -1;
    at = form->buffer + form->begin;
    if (form->begin == form->end || *at == '&')
        return 0;
    *is_plain = *at != '%';
    *byte = *at == '+' ? ' ' : *at;
    form->begin += *is_plain ? 1 : 3;
    if (*is_plain)
        return 1;
    high = form->begin <= form->end ? aco__http_digit_of(at[1]) : -1;
    low = high >= 0 ? aco__http_digit_of(at[2]) : -1;
    if (low < 0)
        return aco__http_form_fail(form, EBADMSG, "a wrong escape");
    *byte = (char)(high * 16 + low);
    return 1;
}

ACO__SWITCHES static ssize_t read_encoded(aco_http_form_t *form, char *p, size_t n)
{
    size_t got = 0;
    int is_plain, more = 1;
    /* what is in the buffer; waits only for the first byte */
    while (got < n && (got == 0 || form->end - form->begin >= 3) && (more = next_byte(form, p + got, &is_plain)) > 0)
        got++;
    if (more < 0)
        return -1;
    if (more == 0 && got == 0)
        form->has_part = 0;
    return (ssize_t)got;
}

/* One step to the next name. 1: there is one; 0: go on; -1 and errno. */
ACO__SWITCHES static int step_encoded(aco_http_form_t *form)
{
    char byte = 0;
    int is_plain = 0, more = next_byte(form, &byte, &is_plain);
    if (more < 0)
        return -1;
    if (more && !(is_plain && byte == '='))
        return byte ? aco__http_form_add(form, byte) : aco__http_form_fail(form, EBADMSG, "a NUL in a name");
    if (!more && form->head_n == 0) { /* nothing before an "&" or the end */
        if (form->begin == form->end)
            form->state = FORM_AT_END;
        else
            form->begin++;
        return 0;
    }
    form->part.name = form->head;
    form->state = FORM_IN_CONTENT;
    return 1;
}

/* ---- Calls ---- */

/* Whether a Content-Type is this one: its length; 0: it is not. */
static size_t has_type(const char *type, const char *wanted)
{
    size_t n = strcspn(type, "; \t");
    return aco__http_is(type, n, wanted) ? n : 0;
}

static int open_type(aco_http_form_t *form, const aco_http_request_t *request)
{
    const char *type;
    size_t count = aco__http_find(request->headers, request->header_count, "Content-Type", &type), n;
    char *copy;
    if (count == 1 && has_type(type, "application/x-www-form-urlencoded")) {
        form->state = FORM_IN_HEAD;
        return 0;
    }
    n = count == 1 ? has_type(type, "multipart/form-data") : 0;
    if (!n)
        return aco__service_fail(ENOTSUP, form_call, "the request has no form");
    copy = aco_http_request_allocate(&form->x->is, strlen(type) + 1);
    if (!copy)
        return -1;
    memcpy(copy, type + n, strlen(type + n) + 1);
    return aco__http_multipart_open(form, copy);
}

aco_http_form_t *aco_http_form_open(aco_http_request_t *request, const aco_http_form_options_t *options)
{
    static const aco_http_form_options_t defaults;
    const aco_http_form_options_t *o = options ? options : &defaults;
    int max_head = o->max_head ? o->max_head : 2048;
    aco_http_form_t *form;
    if (max_head < 64 || max_head > 64 << 10 || ACO__RESERVED_IS_SET(o)) {
        aco__service_fail(EINVAL, form_call, "max_head is out of bounds, or a reserved field is not 0");
        return NULL;
    }
    form = aco_http_request_allocate(request, sizeof *form + (size_t)max_head + 1);
    if (!form)
        return NULL;
    memset(form, 0, sizeof *form);
    form->x = aco__http_exchange_of(request);
    form->head = (char *)(form + 1);
    form->head[0] = 0;
    form->head_room = (size_t)max_head;
    form->parts_left = o->max_parts < 0 ? INT64_MAX : o->max_parts ? o->max_parts : 1000;
    return open_type(form, request) == 0 ? form : NULL;
}

/* A form that has failed fails again. */
static int check(aco_http_form_t *form, const char *location)
{
    form->location = location;
    if (!form->error)
        return 0;
    errno = form->error;
    return -1;
}

const aco_http_part_t *aco_http_form_next_at(aco_http_form_t *form, const char *location)
{
    char skipped[512];
    int found = 0;
    if (check(form, location) != 0)
        return NULL;
    while (form->has_part)
        if (aco_http_form_read_at(form, skipped, sizeof skipped, location) < 0)
            return NULL;
    if (form->part.name) { /* the last one; later calls may find its successor half read */
        memset(&form->part, 0, sizeof form->part);
        form->head_n = 0;
        form->head[0] = 0;
        if (!form->delimiter_n)
            form->state = FORM_IN_HEAD;
    }
    while (!found && form->state != FORM_AT_END)
        found = form->delimiter_n ? aco__http_multipart_step(form) : step_encoded(form);
    if (found < 0)
        return NULL;
    errno = 0;
    if (!found)
        return NULL;
    if (form->parts_left-- == 0) {
        aco__http_form_fail(form, EFBIG, "too many parts");
        return NULL;
    }
    form->has_part = 1;
    return &form->part;
}

ssize_t aco_http_form_read_at(aco_http_form_t *form, void *p, size_t n, const char *location)
{
    if (check(form, location) != 0)
        return -1;
    if (!n || !form->has_part)
        return 0;
    return form->delimiter_n ? aco__http_multipart_read(form, p, n) : read_encoded(form, p, n);
}

char *aco_http_form_read_all_at(aco_http_form_t *form, size_t most, size_t *n, const char *location)
{
    size_t got = 0, room = 0;
    char *all = NULL;
    for (;;) {
        ssize_t part;
        if (!all || (got == room && room <= most)) { /* a byte more than `most` tells that there are more */
            size_t larger = room ? 2 * room : 256;
            char *p;
            room = larger < most ? larger : most + 1;
            p = aco_http_request_allocate(&form->x->is, room + 1);
            if (!p)
                return NULL;
            all = memcpy(p, all ? all : "", got);
        }
        part = aco_http_form_read_at(form, all + got, room - got, location);
        if (part < 0)
            return NULL;
        got += (size_t)part;
        if (got > most) {
            aco__http_form_fail(form, EFBIG, "the part is too long");
            return NULL;
        }
        if (part == 0)
            break;
    }
    all[got] = 0;
    if (n)
        *n = got;
    return all;
}
