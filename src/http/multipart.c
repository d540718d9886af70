/* multipart/form-data (RFC 7578, RFC 2046, 5.1): parts between lines with a boundary.
 *
 * A delimiter is a line end, "--" and the boundary. The buffer begins with a line end, so that a boundary at the body's
 * beginning is like the others, and what is before the first one is a part that nobody gets. A delimiter has a CR only
 * at its beginning: a search that looks at each CR takes linear time, whatever is sent. */
#include "http/form.h"
#include "http/text.h"

#include <string.h>

/* ---- Parameters: ; name=value; name="value" ---- */

typedef struct parameter {
    const char *name;
    size_t name_n;
    char *value; /* ends with a 0 */
} parameter_t;

/* The text in quotes at *at; what follows them. A backslash counts only before a quote or another one: browsers send
 * it as it is. NULL: it has no end. */
static char *take_quoted(char *at, char **value)
{
    char *to = *value = ++at;
    for (; *at && *at != '"'; at++) {
        if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        *to++ = *at;
    }
    if (!*at)
        return NULL;
    *to = 0;
    return at + 1;
}

/* The token at *at, which moves to the "=" before it, for its end. NULL: it is none. */
static char *take_token(char *at, char **value)
{
    size_t n = strcspn(at, "; \t");
    if (!aco__http_is_token(at, n))
        return NULL;
    *value = memmove(at - 1, at, n);
    at[n - 1] = 0;
    return at + n;
}

/* The next parameter at *at, which moves behind it. 1; 0: there is none; -1: it is wrong. */
static int next_parameter(char **at, parameter_t *p)
{
    char *to = *at + strspn(*at, " \t");
    if (!*to)
        return 0;
    if (*to++ != ';')
        return -1;
    to += strspn(to, " \t");
    p->name = to;
    p->name_n = strcspn(to, "=");
    if (!aco__http_is_token(to, p->name_n) || to[p->name_n] != '=')
        return -1;
    to += p->name_n + 1;
    to = *to == '"' ? take_quoted(to, &p->value) : take_token(to, &p->value);
    if (!to)
        return -1;
    *at = to;
    return 1;
}

/* Finds the parameters with these `n` names in `at`, which it changes, and stores their values; NULL stays where there
 * is none. 0, or -1: a parameter is wrong, or several have one of the names. */
static int take_parameters(char *at, const char *const *names, char **values, size_t n)
{
    parameter_t p;
    int more;
    while ((more = next_parameter(&at, &p)) > 0)
        for (size_t i = 0; i < n; i++) {
            if (!aco__http_is(p.name, p.name_n, names[i]))
                continue;
            if (values[i])
                return -1;
            values[i] = p.value;
        }
    return more;
}

/* ---- The boundary ---- */

int aco__http_multipart_open(aco_http_form_t *form, char *type)
{
    static const char *const names[] = {"boundary"};
    char *boundary = NULL;
    size_t n;
    if (take_parameters(type, names, &boundary, 1) != 0)
        boundary = NULL;
    n = boundary ? strlen(boundary) : 0;
    if (n == 0 || n > HTTP_MOST_BOUNDARY || boundary[n - 1] == ' ')
        return aco__http_form_fail(form, EBADMSG, "the boundary");
    for (size_t i = 0; i < n; i++)
        if (!strchr("'()+_,-./:=? ", boundary[i]) && !(boundary[i] >= '0' && boundary[i] <= '9') &&
            !((boundary[i] | 32) >= 'a' && (boundary[i] | 32) <= 'z'))
            return aco__http_form_fail(form, EBADMSG, "the boundary");
    aco__http_put(aco__http_put(form->delimiter, "\r\n--", 4), boundary, n);
    form->delimiter_n = n + 4;
    form->end = (size_t)(aco__http_put(form->buffer, "\r\n", 2) - form->buffer);
    return 0;
}

/* Bytes of content at the buffer's begin. *is_whole: a delimiter follows; else more may. */
static size_t find_delimiter(const aco_http_form_t *form, int *is_whole)
{
    const char *begin = form->buffer + form->begin, *end = form->buffer + form->end, *at = begin;
    *is_whole = 0;
    while ((at = memchr(at, '\r', (size_t)(end - at))) != NULL) {
        size_t n = (size_t)(end - at) < form->delimiter_n ? (size_t)(end - at) : form->delimiter_n;
        if (memcmp(at, form->delimiter, n) == 0) {
            *is_whole = n == form->delimiter_n;
            return (size_t)(at - begin);
        }
        at++;
    }
    return (size_t)(end - begin);
}

ssize_t aco__http_multipart_read(aco_http_form_t *form, char *p, size_t n)
{
    for (;;) {
        int is_whole, filled;
        size_t content = find_delimiter(form, &is_whole);
        if (content) {
            content = content < n ? content : n;
            aco__http_put(p, form->buffer + form->begin, content);
            form->begin += content;
            return (ssize_t)content;
        }
        if (is_whole) {
            form->begin += form->delimiter_n;
            form->state = FORM_BEHIND_BOUNDARY;
            form->has_part = 0;
            return 0;
        }
        filled = aco__http_form_fill(form);
        if (filled < 0)
            return -1;
        if (!filled)
            return aco__http_form_fail(form, EBADMSG, "the last boundary is missing");
    }
}

/* ---- Heads ---- */

/* What the head of a part says. */
typedef struct part_head {
    char *disposition, *type, *encoding;
} part_head_t;

/* A line of the head: its value, stored in the field that it is for. 0; -1: it is wrong, or there twice. */
static int take_line(part_head_t *head, char *line)
{
    size_t name_n = strcspn(line, ":");
    char *value = line + name_n, *end = value + strlen(value), **to = NULL;
    if (*value != ':' || !aco__http_is_token(line, name_n) || !aco__http_is_value(value, (size_t)(end - value)))
        return -1;
    for (value++; *value == ' ' || *value == '\t';)
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = 0;
    if (aco__http_is(line, name_n, "content-disposition"))
        to = &head->disposition;
    else if (aco__http_is(line, name_n, "content-type"))
        to = &head->type;
    else if (aco__http_is(line, name_n, "content-transfer-encoding"))
        to = &head->encoding;
    if (!to)
        return 0;
    if (*to)
        return -1;
    *to = value;
    return 0;
}

/* The head is complete: lines, and an empty one. 0, or -1. */
static int understand(aco_http_form_t *form)
{
    static const char *const names[] = {"name", "filename"};
    part_head_t head = {NULL, NULL, NULL};
    char *values[2] = {NULL, NULL};
    size_t n;
    for (char *line = form->head, *end; memcmp(line, "\r\n", 2) != 0; line = end + 2) {
        end = strstr(line, "\r\n"); /* the head ends with two of them */
        *end = 0;
        if (take_line(&head, line) != 0)
            return -1;
    }
    n = head.disposition ? strcspn(head.disposition, "; \t") : 0;
    if (!n || !aco__http_is(head.disposition, n, "form-data") ||
        take_parameters(head.disposition + n, names, values, 2) != 0 || !values[0])
        return -1;
    if (head.encoding && !aco__http_same(head.encoding, "7bit") && !aco__http_same(head.encoding, "8bit") &&
        !aco__http_same(head.encoding, "binary"))
        return -1;
    form->part.name = values[0];
    form->part.file_name = values[1];
    form->part.type = head.type;
    return 0;
}

/* A byte of the head. 1: it is complete; 0; -1 and errno. */
static int step_head(aco_http_form_t *form, char byte)
{
    const char *end;
    if (aco__http_form_add(form, byte) != 0)
        return -1;
    if (!byte)
        return aco__http_form_fail(form, EBADMSG, "a NUL in the head of a part");
    end = form->head + form->head_n;
    if (form->head_n < 2 || memcmp(end - 2, "\r\n", 2) != 0 ||
        (form->head_n > 2 && (form->head_n < 4 || memcmp(end - 4, "\r\n\r\n", 4) != 0)))
        return 0;
    if (understand(form) != 0)
        return aco__http_form_fail(form, EBADMSG, "the head of a part");
    form->state = FORM_IN_CONTENT;
    return 1;
}

/* What follows a boundary: "--", or spaces and a line end. 0, or -1 and errno. */
static int step_behind_boundary(aco_http_form_t *form)
{
    const char *at = form->buffer + form->begin;
    if (*at == ' ' || *at == '\t') {
        form->begin++;
        return 0;
    }
    if (memcmp(at, "--", 2) == 0)
        form->state = FORM_AT_END;
    else if (memcmp(at, "\r\n", 2) == 0)
        form->state = FORM_IN_HEAD;
    else
        return aco__http_form_fail(form, EBADMSG, "what follows a boundary");
    form->begin += 2;
    return 0;
}

int aco__http_multipart_step(aco_http_form_t *form)
{
    char skipped[512];
    size_t wanted = form->state == FORM_BEHIND_BOUNDARY ? 2 : 1;
    if (form->state == FORM_IN_CONTENT) /* before the first boundary */
        return aco__http_multipart_read(form, skipped, sizeof skipped) < 0 ? -1 : 0;
    while (form->end - form->begin < wanted) {
        int filled = aco__http_form_fill(form);
        if (filled < 0)
            return -1;
        if (!filled)
            return aco__http_form_fail(form, EBADMSG, "the last boundary is missing");
    }
    return form->state == FORM_IN_HEAD ? step_head(form, form->buffer[form->begin++]) : step_behind_boundary(form);
}
