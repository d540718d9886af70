/* Sections are those of RFC 9112, or of RFC 9110 where that is named. What does not fit the grammar is wrong, unless a
 * freedom says otherwise. */
#include "http_reader.h"

#include <stdint.h>
#include <string.h>

const reader_freedom_t reader_freedoms[FREEDOMS] = {
    [FREE_BARE_LF] = {"2.2", "a recipient may take a bare LF for a line's end; Acorn does so in responses' heads"},
    [FREE_FOLD] = {"5.2", "a server may refuse a folded line or put a space there; Acorn's client refuses it too"},
    [FREE_CONTROL] = {"RFC 9110 5.5", "a recipient may keep control characters in a value, but for CR, LF and NUL"},
    [FREE_METHOD] = {"RFC 9110 9.1", "a server answers 501 to methods that it does not know, and to CONNECT"},
    [FREE_HOST] = {"3.2", "Acorn refuses a comma in a Host, which may stand between two that were joined"},
    [FREE_TARGET] = {"3.2", "a server should refuse a target with characters that no URI has"},
    [FREE_SCHEME] = {"RFC 9110 7.4", "a server refuses targets of other schemes than its own, and userinfo"},
    [FREE_ESCAPE] = {"RFC 3986 2.1", "a path with wrong escapes, or with %00, is no path for Acorn"},
    [FREE_DOTS] = {"RFC 3986 5.2.4", "Acorn refuses dot segments, also escaped ones"},
    [FREE_MINOR] = {"RFC 9110 2.5", "Acorn knows HTTP/1.0 and HTTP/1.1 only"},
    [FREE_EXPECT] = {"RFC 9110 10.1.1", "a server may answer 417 to other expectations than 100-continue"},
    [FREE_TWO_ENDS] = {"6.3, 3", "a message with Transfer-Encoding and Content-Length may be refused"},
    [FREE_SAME_LENGTHS] = {"6.3, 5", "a list of equal lengths may be refused"},
    [FREE_LARGE_LENGTH] = {"RFC 9110 8.6", "a length of more than 63 bits may be refused"},
    [FREE_CODINGS] = {"6.1", "Acorn refuses codings on several lines or with empty elements, which may be attacks"},
    [FREE_CODING_TAB] = {"RFC 9110 5.6.3", "Acorn refuses a tab around a coding"},
    [FREE_EXTENSION_SPACE] = {"7.1.1", "Acorn refuses spaces in chunk extensions, which no sender may generate"},
    [FREE_EXTENSION] = {"7.1.1",
                        "a wrong chunk extension may be ignored, as one that is not known: the line has one end"},
    [FREE_TRAILER] = {"RFC 9110 6.5.1", "trailers with fields of framing may be refused; no sender may generate them"},
    [FREE_REASON] = {"4", "a status line without the space behind the status"},
    [FREE_STATUS] = {"RFC 9110 15", "statuses beyond 599 are not valid"},
    [FREE_UNUSED_LENGTH] = {"6.3, 1", "a message that has no body may be refused if its length is wrong"},
};

typedef struct reader {
    reader_message_t *m;
    const char *at, *end;
    int in_response_head;
} reader_t;

typedef struct span {
    const char *p;
    size_t n;
} span_t;

/* All functions that return int: 1, or 0 and the message is wrong or a part. */

static int wrong(reader_t *r, const char *why)
{
    r->m->kind = READER_WRONG;
    r->m->wrong = why;
    return 0;
}

static int is_part(reader_t *r)
{
    r->m->kind = READER_PART;
    return 0;
}

static void use(reader_t *r, int freedom)
{
    r->m->freedoms |= 1u << freedom;
}

/* ---- Characters (RFC 9110, 5.6; RFC 5234, B.1) ---- */

static int is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static int is_alpha(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int is_tchar(int c)
{
    return c && (is_digit(c) || is_alpha(c) || strchr("!#$%&'*+-.^_`|~", c));
}

static int hex_of(int c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* HTAB, SP, VCHAR, obs-text */
static int is_text(int c)
{
    return c == '\t' || (c >= ' ' && c != 0x7f);
}

static int is_token(span_t text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!is_tchar((unsigned char)text.p[i]))
            return 0;
    return text.n > 0;
}

static int is_ows(int c)
{
    return c == ' ' || c == '\t';
}

static span_t trimmed(span_t text)
{
    while (text.n && is_ows(text.p[0]))
        text.p++, text.n--;
    while (text.n && is_ows(text.p[text.n - 1]))
        text.n--;
    return text;
}

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* `word` is in lower case. */
static int is_word(span_t text, const char *word)
{
    size_t i = 0;
    while (i < text.n && word[i] && lower(text.p[i]) == word[i])
        i++;
    return i == text.n && !word[i];
}

/* Takes up to the next comma off the list. 0: the list is over. */
static int next_element(span_t *list, span_t *element)
{
    const char *comma = list->p && list->n ? memchr(list->p, ',', list->n) : NULL;
    if (!list->p)
        return 0;
    element->p = list->p;
    element->n = comma ? (size_t)(comma - list->p) : list->n;
    *element = trimmed(*element);
    list->n = comma ? list->n - (size_t)(comma + 1 - list->p) : 0;
    list->p = comma ? comma + 1 : NULL;
    return 1;
}

/* ---- Lines (2.2) ---- */

/* A bare CR makes a message invalid. A bare LF may end a line, if `may_be_bare`. */
static int next_line(reader_t *r, span_t *line, int may_be_bare)
{
    const char *lf = r->at < r->end ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;
    if (!lf)
        return is_part(r);
    line->p = r->at;
    line->n = (size_t)(lf - r->at);
    r->at = lf + 1;
    if (line->n && line->p[line->n - 1] == '\r')
        line->n--;
    else if (!may_be_bare)
        return wrong(r, "7.1: a line of the chunked coding ends with CRLF");
    else if (!r->in_response_head)
        use(r, FREE_BARE_LF);
    return memchr(line->p, '\r', line->n) ? wrong(r, "2.2: a bare CR") : 1;
}

/* ---- Fields (5) ---- */

static int add_text(reader_t *r, span_t text)
{
    reader_message_t *m = r->m;
    if (text.n > sizeof m->text - m->text_n)
        return wrong(r, "the reader has no room");
    memcpy(m->text + m->text_n, text.p, text.n);
    m->text_n += text.n;
    return 1;
}

static int check_value(reader_t *r, span_t value)
{
    for (size_t i = 0; i < value.n; i++) {
        if (!value.p[i])
            return wrong(r, "RFC 9110 5.5: NUL in a value");
        if (!is_text((unsigned char)value.p[i]))
            use(r, FREE_CONTROL);
    }
    return 1;
}

static int add_field(reader_t *r, span_t line)
{
    reader_message_t *m = r->m;
    const char *colon = memchr(line.p, ':', line.n);
    span_t name = {line.p, colon ? (size_t)(colon - line.p) : 0}, value;
    reader_field_t *field = &m->fields[m->field_count];
    if (!colon)
        return wrong(r, "5: a field line without a colon");
    if (!is_token(name))
        return wrong(r, "5, 5.1: a name that is no token, or has a space behind it");
    if (m->field_count == READER_FIELDS)
        return wrong(r, "the reader has no room");
    value.p = colon + 1;
    value.n = (size_t)(line.p + line.n - value.p);
    value = trimmed(value);
    m->field_count++;
    field->name = name.p;
    field->name_n = name.n;
    field->value = m->text + m->text_n;
    field->value_n = value.n;
    return check_value(r, value) && add_text(r, value);
}

/* A folded line goes on behind a space in place of the line's end. */
static int add_fold(reader_t *r, span_t line)
{
    static const span_t space = {" ", 1};
    reader_field_t *field = &r->m->fields[r->m->field_count - 1];
    span_t more = trimmed(line), all;
    use(r, FREE_FOLD);
    if (!check_value(r, more) || !add_text(r, space) || !add_text(r, more))
        return 0;
    all.p = field->value;
    all.n = field->value_n + 1 + more.n;
    all = trimmed(all);
    field->value = all.p;
    field->value_n = all.n;
    return 1;
}

static int read_fields(reader_t *r)
{
    size_t first = r->m->field_count;
    span_t line;
    while (next_line(r, &line, 1)) {
        if (line.n == 0)
            return 1;
        if (!is_ows(*line.p)             ? !add_field(r, line)
            : r->m->field_count == first ? !wrong(r, "2.2: a space before the first field")
                                         : !add_fold(r, line))
            return 0;
        if (r->m->kind != READER_WHOLE)
            return 0;
    }
    return 0;
}

static span_t value_of(const reader_field_t *field)
{
    span_t value = {field->value, field->value_n};
    return value;
}

/* The next field of this name, from *at on; NULL: none. */
static const reader_field_t *next_field(const reader_message_t *m, size_t *at, const char *name)
{
    while (*at < m->field_count) {
        const reader_field_t *field = &m->fields[(*at)++];
        span_t text = {field->name, field->name_n};
        if (is_word(text, name))
            return field;
    }
    return NULL;
}

static int has_option(const reader_message_t *m, const char *option)
{
    const reader_field_t *field;
    for (size_t at = 0; (field = next_field(m, &at, "connection")) != NULL;) {
        span_t list = value_of(field), element;
        while (next_element(&list, &element))
            if (is_word(element, option))
                return 1;
    }
    return 0;
}

/* ---- Start lines (3, 4) ---- */

static int read_version(reader_t *r, span_t text)
{
    if (text.n != 8 || memcmp(text.p, "HTTP/", 5) != 0 || !is_digit(text.p[5]) || text.p[6] != '.' ||
        !is_digit(text.p[7]))
        return wrong(r, "2.3: the version");
    if (text.p[5] != '1')
        return wrong(r, "2.3: another major version");
    r->m->minor = text.p[7] - '0';
    if (r->m->minor > 1)
        use(r, FREE_MINOR);
    return 1;
}

static void check_method(reader_t *r, span_t method)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (method.n == strlen(known[i]) && memcmp(method.p, known[i], method.n) == 0)
            return;
    use(r, FREE_METHOD);
}

/* Escapes, and dot segments, of a path. */
static void check_path(reader_t *r, span_t path)
{
    char segment[3] = "";
    size_t n = 0;
    for (size_t i = 0; i <= path.n; i++) {
        int c = i < path.n ? (unsigned char)path.p[i] : '/';
        if (c == '%') {
            int high = i + 2 < path.n ? hex_of(path.p[i + 1]) : -1, low = i + 2 < path.n ? hex_of(path.p[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0) {
                use(r, FREE_ESCAPE);
                return;
            }
            c = high * 16 + low;
            i += 2;
        }
        if (c != '/') {
            segment[n < 2 ? n : 2] = (char)c;
            n++;
        } else {
            if ((n == 1 || n == 2) && segment[0] == '.' && (n == 1 || segment[1] == '.'))
                use(r, FREE_DOTS);
            n = 0;
        }
    }
}

/* host [ ":" port ] (RFC 3986, 3.2.2 and 3.2.3). The host is not empty (RFC 9110, 4.2.1) where there is anything. */
static int is_authority(span_t text)
{
    size_t i = 0;
    if (text.n && text.p[0] == '[') {
        for (i = 1; i < text.n && text.p[i] != ']'; i++)
            if (hex_of(text.p[i]) < 0 && text.p[i] != ':' && text.p[i] != '.')
                return 0; /* IPv6 addresses; there is no other literal yet */
        if (i++ == text.n || i < 4)
            return 0;
    }
    for (; i < text.n && text.p[0] != '[' && text.p[i] != ':'; i++) {
        int c = (unsigned char)text.p[i];
        if (c == '%') {
            if (text.n - i < 3 || hex_of(text.p[i + 1]) < 0 || hex_of(text.p[i + 2]) < 0)
                return 0;
        } else if (!c || (!is_alpha(c) && !is_digit(c) && !strchr("-._~!$&'()*+,;=", c)))
            return 0;
    }
    if ((i == 0 && text.n) || (i < text.n && text.p[i++] != ':'))
        return 0;
    while (i < text.n && is_digit(text.p[i]))
        i++;
    return i == text.n;
}

/* absolute-form: what is behind "http://host", or a freedom. */
static int read_absolute(reader_t *r, span_t target)
{
    span_t scheme = {target.p, 0}, host, path;
    while (scheme.n < target.n && (is_alpha(target.p[scheme.n]) || is_digit(target.p[scheme.n]) ||
                                   (target.p[scheme.n] && strchr("+-.", target.p[scheme.n]))))
        scheme.n++;
    if (!scheme.n || !is_alpha(*scheme.p) || scheme.n == target.n || target.p[scheme.n] != ':')
        return wrong(r, "3.2: the target has no form");
    host.p = target.p + scheme.n;
    host.n = target.n - scheme.n;
    if ((!is_word(scheme, "http") && !is_word(scheme, "https")) || host.n < 3 || memcmp(host.p, "://", 3) != 0) {
        use(r, FREE_SCHEME);
        return 1;
    }
    host.p += 3;
    path.p = host.p;
    while (path.p < target.p + target.n && *path.p != '/' && *path.p != '?')
        path.p++;
    host.n = (size_t)(path.p - host.p);
    path.n = (size_t)(target.p + target.n - path.p);
    if (host.n && memchr(host.p, ',', host.n))
        use(r, FREE_HOST);
    if (!host.n || !is_authority(host)) {
        use(r, FREE_SCHEME);
        return 1;
    }
    if (memchr(path.p, '?', path.n))
        path.n = (size_t)((const char *)memchr(path.p, '?', path.n) - path.p);
    check_path(r, path);
    return 1;
}

static int read_target(reader_t *r, span_t target)
{
    const char *query;
    for (size_t i = 0; i < target.n; i++) {
        int c = (unsigned char)target.p[i];
        if (c <= ' ' || c >= 0x7f || c == '#')
            return wrong(r, "3.2: a character in the target");
        if (strchr("\"<>\\^`{|}", c))
            use(r, FREE_TARGET);
    }
    if (target.n == 1 && *target.p == '*')
        return r->m->method_n == 7 && memcmp(r->m->method, "OPTIONS", 7) == 0 ? 1 : wrong(r, "3.2.4: only of OPTIONS");
    if (!target.n)
        return wrong(r, "3.2: no target");
    if (*target.p != '/')
        return (r->m->freedoms & 1u << FREE_METHOD) ? 1 : read_absolute(r, target);
    query = memchr(target.p, '?', target.n);
    if (query)
        target.n = (size_t)(query - target.p);
    check_path(r, target);
    return 1;
}

/* method SP request-target SP HTTP-version */
static int read_request_line(reader_t *r)
{
    reader_message_t *m = r->m;
    span_t line, method, target, version;
    const char *space, *second;
    do { /* 2.2: empty lines before it are ignored */
        if (!next_line(r, &line, 1))
            return 0;
    } while (line.n == 0);
    space = memchr(line.p, ' ', line.n);
    second = space ? memchr(space + 1, ' ', (size_t)(line.p + line.n - space - 1)) : NULL;
    if (!second)
        return wrong(r, "3: a request line has three parts");
    method.p = m->method = line.p;
    method.n = m->method_n = (size_t)(space - line.p);
    target.p = m->target = space + 1;
    target.n = m->target_n = (size_t)(second - target.p);
    version.p = second + 1;
    version.n = (size_t)(line.p + line.n - version.p);
    if (!is_token(method))
        return wrong(r, "3.1: the method is no token");
    check_method(r, method);
    return read_version(r, version) && read_target(r, target);
}

static int read_status_line(reader_t *r)
{
    span_t line, version;
    if (!next_line(r, &line, 1))
        return 0;
    version.p = line.p;
    version.n = line.n < 8 ? line.n : 8;
    if (!read_version(r, version))
        return 0;
    if (line.n < 12 || line.p[8] != ' ' || !is_digit(line.p[9]) || !is_digit(line.p[10]) || !is_digit(line.p[11]) ||
        (line.n > 12 && line.p[12] != ' '))
        return wrong(r, "4: the status line");
    r->m->status = (line.p[9] - '0') * 100 + (line.p[10] - '0') * 10 + line.p[11] - '0';
    for (size_t i = 12; i < line.n; i++)
        if (!is_text((unsigned char)line.p[i]))
            return wrong(r, "4: a character in the reason");
    if (line.n == 12)
        use(r, FREE_REASON);
    if (r->m->status > 599)
        use(r, FREE_STATUS);
    if (r->m->status == 101)
        return wrong(r, "RFC 9110 15.2.2: nobody asked for another protocol");
    return r->m->status >= 100 ? 1 : wrong(r, "RFC 9110 15: the status");
}

/* ---- The length (6) ---- */

typedef struct framing {
    int has_coding; /* chunked */
    int has_length;
    uint64_t length;
} framing_t;

static int read_length(reader_t *r, framing_t *framing)
{
    const reader_field_t *field;
    for (size_t at = 0; (field = next_field(r->m, &at, "content-length")) != NULL;) {
        span_t list = value_of(field), element;
        while (next_element(&list, &element)) {
            uint64_t length = 0;
            if (!element.n)
                return wrong(r, "RFC 9110 8.6: no length");
            for (size_t i = 0; i < element.n; i++) {
                if (!is_digit(element.p[i]))
                    return wrong(r, "RFC 9110 8.6: a length that is no number");
                if (length > ((uint64_t)INT64_MAX - 9) / 10)
                    use(r, FREE_LARGE_LENGTH);
                length = r->m->freedoms & 1u << FREE_LARGE_LENGTH ? UINT64_MAX
                                                                  : length * 10 + (uint64_t)(element.p[i] - '0');
            }
            if (framing->has_length)
                use(r, FREE_SAME_LENGTHS);
            if (framing->has_length && framing->length != length)
                return wrong(r, "6.3, 5: different lengths");
            framing->has_length = 1;
            framing->length = length;
        }
    }
    return 1;
}

static int read_codings(reader_t *r, framing_t *framing)
{
    const reader_field_t *field;
    int lines = 0, elements = 0;
    for (size_t at = 0; (field = next_field(r->m, &at, "transfer-encoding")) != NULL; lines++) {
        span_t list = value_of(field), element;
        for (const char *p = field->name; *p != '\n'; p++) /* the value itself has none around it any more */
            if (*p == '\t')
                use(r, FREE_CODING_TAB);
        while (next_element(&list, &element)) {
            if (!element.n) {
                use(r, FREE_CODINGS);
                continue;
            }
            if (elements++ || !is_word(element, "chunked"))
                return wrong(r, "6.1, 6.3, 4: codings that are not chunked alone");
        }
    }
    if (lines > 1)
        use(r, FREE_CODINGS);
    if (!lines)
        return 1;
    if (r->m->minor == 0)
        return wrong(r, "6.1: Transfer-Encoding in HTTP/1.0");
    framing->has_coding = 1;
    return elements ? 1 : wrong(r, "6.1: no coding");
}

static int read_framing(reader_t *r, framing_t *framing)
{
    memset(framing, 0, sizeof *framing);
    if (!read_length(r, framing) || !read_codings(r, framing))
        return 0;
    if (framing->has_coding && framing->has_length)
        use(r, FREE_TWO_ENDS);
    return 1;
}

/* ---- Bodies (6.3, 7.1) ---- */

static int take(reader_t *r, uint64_t n)
{
    reader_message_t *m = r->m;
    if (n > (uint64_t)(r->end - r->at))
        return is_part(r);
    if (n > sizeof m->body - m->body_n)
        return wrong(r, "the reader has no room");
    memcpy(m->body + m->body_n, r->at, (size_t)n);
    m->body_n += (size_t)n;
    r->at += n;
    return 1;
}

static void skip_bws(reader_t *r, span_t *text)
{
    while (text->n && is_ows(*text->p)) {
        use(r, FREE_EXTENSION_SPACE);
        text->p++, text->n--;
    }
}

/* Takes a token off the text. Its length. */
static size_t skip_token(span_t *text)
{
    size_t n = 0;
    while (text->n && is_tchar((unsigned char)*text->p))
        text->p++, text->n--, n++;
    return n;
}

/* Takes a quoted string off the text (RFC 9110, 5.6.4). 0: it has no end. */
static int skip_quoted(span_t *text)
{
    for (text->p++, text->n--; text->n && *text->p != '"'; text->p++, text->n--)
        if (*text->p == '\\' && text->n > 1)
            text->p++, text->n--;
    if (!text->n)
        return 0;
    text->p++, text->n--;
    return 1;
}

/* BWS ";" BWS name [ BWS "=" BWS value ]. 0: it is something else. */
static int skip_extension(reader_t *r, span_t *text)
{
    skip_bws(r, text);
    if (!text->n || *text->p != ';')
        return 0;
    text->p++, text->n--;
    skip_bws(r, text);
    if (!skip_token(text))
        return 0;
    if (text->n && is_ows(*text->p)) { /* before "=" or ";" */
        skip_bws(r, text);
        if (!text->n)
            return 0;
    }
    if (!text->n || *text->p != '=')
        return 1;
    text->p++, text->n--;
    skip_bws(r, text);
    return text->n && *text->p == '"' ? skip_quoted(text) : skip_token(text) > 0;
}

static int read_extensions(reader_t *r, span_t text)
{
    size_t spaces = 0;
    while (spaces < text.n && is_ows(text.p[spaces]))
        spaces++;
    if (text.n && (spaces == text.n || text.p[spaces] != ';'))
        return wrong(r, "7.1: behind a chunk's size");
    for (size_t i = 0; i < text.n; i++)
        if (!is_text((unsigned char)text.p[i]))
            return wrong(r, "7.1.1: a character in an extension");
    while (text.n)
        if (!skip_extension(r, &text)) {
            use(r, FREE_EXTENSION);
            break;
        }
    return 1;
}

static int read_trailers(reader_t *r)
{
    static const char *const names[] = {"content-length", "transfer-encoding"};
    reader_message_t *m = r->m;
    size_t before = m->field_count;
    int is_whole = read_fields(r);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t at = before;
        if (next_field(m, &at, names[i]))
            use(r, FREE_TRAILER);
    }
    m->field_count = before; /* they may be dropped (7.1.2), and Acorn does so */
    return is_whole;
}

static int read_chunks(reader_t *r)
{
    for (;;) {
        span_t line;
        uint64_t size = 0;
        size_t digits = 0;
        if (!next_line(r, &line, 0))
            return 0;
        for (; digits < line.n && hex_of(line.p[digits]) >= 0; digits++) {
            if (size >> 59)
                return wrong(r, "7.1: a chunk's size is too large");
            size = size * 16 + (uint64_t)hex_of(line.p[digits]);
        }
        line.p += digits;
        line.n -= digits;
        if (!digits)
            return wrong(r, "7.1: a chunk without a size");
        if (!read_extensions(r, line))
            return 0;
        if (!size)
            return read_trailers(r);
        if (!take(r, size))
            return 0;
        if ((r->at < r->end && *r->at != '\r') || (r->end - r->at > 1 && r->at[1] != '\n'))
            return wrong(r, "7.1: a chunk ends with CRLF");
        if (r->end - r->at < 2)
            return is_part(r);
        r->at += 2;
    }
}

/* ---- Messages ---- */

static reader_t begin(reader_message_t *m, const char *p, size_t n)
{
    reader_t r = {m, p, p + n, 0};
    memset(m, 0, offsetof(reader_message_t, body));
    m->kind = READER_WHOLE;
    m->body_n = m->end = m->text_n = 0;
    m->persists = 0;
    return r;
}

static void finish(reader_t *r, const char *p, int has_end)
{
    reader_message_t *m = r->m;
    m->end = (size_t)(r->at - p);
    m->persists = has_end && !has_option(m, "close") && (m->minor > 0 || has_option(m, "keep-alive")) &&
                  !(m->freedoms & 1u << FREE_TWO_ENDS);
}

static int check_host(reader_t *r)
{
    size_t at = 0;
    const reader_field_t *host = next_field(r->m, &at, "host");
    if (!host)
        return r->m->minor == 0 ? 1 : wrong(r, "3.2: no Host");
    if (next_field(r->m, &at, "host"))
        return wrong(r, "3.2: several Hosts");
    if (host->value_n && memchr(host->value, ',', host->value_n))
        use(r, FREE_HOST);
    return is_authority(value_of(host)) ? 1 : wrong(r, "3.2: the Host");
}

static void check_expectation(reader_t *r)
{
    const reader_field_t *field;
    int n = 0;
    for (size_t at = 0; (field = next_field(r->m, &at, "expect")) != NULL; n++)
        if (n || !is_word(value_of(field), "100-continue"))
            use(r, FREE_EXPECT);
}

void reader_request(reader_message_t *m, const char *p, size_t n)
{
    reader_t r = begin(m, p, n);
    framing_t framing;
    if (!read_request_line(&r) || !read_fields(&r) || !check_host(&r) || !read_framing(&r, &framing))
        return;
    check_expectation(&r);
    m->has_head = 1;
    if (framing.has_coding ? !read_chunks(&r) : !take(&r, framing.length))
        return;
    finish(&r, p, 1);
}

void reader_response(reader_message_t *m, const char *p, size_t n, int answers_head)
{
    reader_t r = begin(m, p, n);
    framing_t framing;
    int has_body, has_end;
    r.in_response_head = 1;
    if (!read_status_line(&r) || !read_fields(&r))
        return;
    r.in_response_head = 0;
    has_body = !answers_head && m->status >= 200 && m->status != 204 && m->status != 304;
    if (!read_framing(&r, &framing)) {
        if (has_body)
            return;
        m->kind = READER_WHOLE;
        use(&r, FREE_UNUSED_LENGTH);
    }
    m->has_head = 1;
    has_end = !has_body || framing.has_coding || framing.has_length;
    if (has_body && (framing.has_coding   ? !read_chunks(&r)
                     : framing.has_length ? !take(&r, framing.length)
                                          : !take(&r, (uint64_t)(r.end - r.at))))
        return;
    finish(&r, p, has_end);
}
