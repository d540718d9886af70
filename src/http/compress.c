/* Compression of replies: which are coded, and their bodies. */
#include "http/request.h"
#include "http/server.h"
#include "http/text.h"

#include "aco/detail/descriptors.h"
#include "aco/file.h"

#include <string.h>

static const char compress_call[] = "aco_http_compress";

/* ---- Which replies ---- */

static const char default_types[] =
    "text/html, text/css, text/plain, text/javascript, text/xml, text/csv, text/markdown, application/json, "
    "application/javascript, application/xml, application/xhtml+xml, application/rss+xml, application/atom+xml, "
    "application/ld+json, application/manifest+json, application/problem+json, application/wasm, image/svg+xml";

/* Whether the list has this content type, without its parameters. */
static int is_listed(const char *types, const char *type)
{
    aco__http_list_t list = {types, NULL, 0, NULL};
    const size_t type_n = strcspn(type, "; \t");
    const char *at;
    for (size_t n; (at = aco__http_next(&list, &n)) != NULL;) {
        if (n > 1 && at[n - 1] == '*' && type_n >= n - 1 && aco__http_begins(type, at, n - 1))
            return 1;
        if (n == type_n && aco__http_begins(type, at, n))
            return 1;
    }
    return 0;
}

/* The first header with this name from the line `at` on: the line; *n: its bytes with the end. NULL: there is none. */
static char *line_from(const aco__http_reply_t *reply, char *at, const char *name, size_t *n)
{
    const size_t name_n = strlen(name);
    char *end = reply->fields_n ? reply->fields + reply->fields_n : reply->fields;
    for (; at < end; at += *n) {
        *n = (size_t)((char *)memchr(at, '\n', (size_t)(end - at)) - at) + 1;
        if (*n > name_n && at[name_n] == ':' && aco__http_begins(at, name, name_n))
            return at;
    }
    return NULL;
}

static char *line_of(const aco__http_reply_t *reply, const char *name, size_t *n)
{
    return line_from(reply, reply->fields, name, n);
}

/* Whether a coding would change what these headers tell, or the handler has a coding of its own. */
static int is_bound(const aco__http_reply_t *reply)
{
    static const char *const names[] = {"content-encoding", "content-range", "content-digest",
                                        "repr-digest",      "digest",        "content-md5"};
    size_t n;
    for (char *line = reply->fields; (line = line_from(reply, line, "cache-control", &n)) != NULL; line += n)
        for (size_t i = 0; i + 12 <= n; i++)
            if (aco__http_is(line + i, 12, "no-transform"))
                return 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (line_of(reply, names[i], &n))
            return 1;
    return 0;
}

static int has_secrets(const aco__http_exchange_t *x)
{
    size_t n;
    return aco_http_request_header(&x->is, "cookie") || aco_http_request_header(&x->is, "authorization") ||
           line_of(&x->reply, "set-cookie", &n);
}

/* The weight of an element of Accept-Encoding, in thousandths: "gzip;q=0.5" */
static int weight_in(const char *element, size_t n)
{
    int weight = 0, unit = 1000;
    const char *end = element + n, *at = memchr(element, ';', n);
    while (at && at < end && (*at == ';' || *at == ' ' || *at == '\t'))
        at++;
    if (!at || end - at < 3 || (*at | 32) != 'q' || at[1] != '=')
        return 1000;
    for (at += 2; at < end && unit; at++)
        if (*at >= '0' && *at <= '9') {
            weight += (*at - '0') * unit;
            unit /= 10;
        }
    return weight < 1000 ? weight : 1000;
}

/* How much the client wants this coding; 0: not at all. */
static int weight_of(const aco_http_request_t *request, const char *coding)
{
    aco__http_list_t list = {"", request->headers, request->header_count, "Accept-Encoding"};
    int any = 0;
    const char *at;
    for (size_t n; (at = aco__http_next(&list, &n)) != NULL;) {
        size_t name_n = 0;
        while (name_n < n && !strchr("; \t", at[name_n]))
            name_n++;
        if (aco__http_is(at, name_n, coding))
            return weight_in(at, n);
        if (name_n == 1 && *at == '*')
            any = weight_in(at, n);
    }
    return any;
}

/* What the client wants most; NULL: the body as it is. */
static const char *chosen_coding(const aco_http_request_t *request, int with_br)
{
    const char *chosen = NULL;
    int most = 0;
    if (!aco_http_request_header(request, "Accept-Encoding"))
        return NULL;
    for (size_t i = 0; aco__http_encodings[i]; i++) {
        const int may_be = with_br || strcmp(aco__http_encodings[i], "br") != 0;
        const int weight = may_be ? weight_of(request, aco__http_encodings[i]) : 0;
        if (weight > most) {
            most = weight;
            chosen = aco__http_encodings[i];
        }
    }
    return chosen;
}

/* ---- The head ---- */

static void drop_line(aco__http_reply_t *reply, const char *name)
{
    size_t n;
    char *line = line_of(reply, name, &n);
    if (!line)
        return;
    memmove(line, line + n, reply->fields_n - (size_t)(line - reply->fields) - n);
    reply->fields_n -= n;
}

/* The coded body is another one than that which the tag names. */
static int weaken_tag(aco__http_exchange_t *x)
{
    size_t n;
    const char *line = line_of(&x->reply, "etag", &n);
    char tag[512] = "W/";
    if (!line || n < sizeof "ETag: \r\n" || line[6] != '"')
        return 0;
    n -= sizeof "ETag: \r\n" - 1;
    if (n < sizeof tag - 2)
        memcpy(tag + 2, line + 6, n);
    drop_line(&x->reply, "etag");
    return n < sizeof tag - 2 ? aco_http_reply_header(&x->is, "ETag", tag) : 0;
}

/* The headers of a coded reply, in place of those that tell of the plain one. 0, or -1 and errno. */
static int put_coding(aco__http_exchange_t *x, const char *coding)
{
    drop_line(&x->reply, "accept-ranges");
    return weaken_tag(x) != 0 ? -1 : aco_http_reply_header(&x->is, "Content-Encoding", coding);
}

/* Makes the headers one's own, so that they are as before if the reply does not begin. 0, or -1 and errno. */
static int copy_fields(aco__http_exchange_t *x)
{
    aco__http_reply_t *reply = &x->reply;
    char *copy = aco_http_request_allocate(&x->is, reply->fields_n + 256);
    if (!copy)
        return -1;
    aco__http_put(copy, reply->fields, reply->fields_n);
    reply->fields = copy;
    reply->fields_room = reply->fields_n + 256;
    return 0;
}

/* An encoder for the reply; NULL: there is no place, or no memory. */
static aco__http_encoder_t *new_encoder(aco__http_exchange_t *x, const char *coding, int64_t length)
{
    enum { MOST_AT_ONCE = 256 };
    const aco_http_compression_t *how = x->reply.compression;
    const int level = how->level < 0 ? 1 : how->level > 9 ? 9 : how->level;
    aco__http_encoder_t *encoder = NULL, *memory;
    if (x->server->encoders < (how->max_at_once ? how->max_at_once : MOST_AT_ONCE) &&
        (memory = aco_http_request_allocate(&x->is, sizeof *memory)))
        encoder = aco__http_encoder_new(memory, coding, level, length);
    x->server->encoders += encoder != NULL;
    return encoder;
}

int aco__http_begin_coding(aco__http_exchange_t *x, int status, const char *type, int64_t *length)
{
    enum { LEAST_LENGTH = 1024 };
    const aco_http_compression_t *how = x->reply.compression;
    const int64_t least = how->min_length ? how->min_length : LEAST_LENGTH;
    const int is_unchanged = status == 304, is_part = status == 206;
    const char *coding;
    aco__http_encoder_t *encoder = NULL;
    if (status == 204 || (!is_part && is_bound(&x->reply)))
        return 0;
    if (!is_unchanged && (!type || !is_listed(how->types ? how->types : default_types, type) ||
                          (!is_part && *length >= 0 && *length < least)))
        return 0;
    if (!how->with_secrets && has_secrets(x))
        return 0;
    if (copy_fields(x) != 0 || aco_http_reply_header(&x->is, "Vary", "Accept-Encoding") != 0)
        return -1;
    if (is_part)
        return 0; /* as it is; but a cache must know that the whole has two forms */
    coding = chosen_coding(&x->is, how->with_br);
    if (is_unchanged)
        return coding ? weaken_tag(x) : 0;
    if (!coding || (!x->is_head && !(encoder = new_encoder(x, coding, *length))))
        return 0;
    if (put_coding(x, coding) != 0) {
        aco__http_free_encoder(x, encoder);
        return -1;
    }
    x->reply.encoder = encoder;
    if (*length >= 0)
        x->reply.trailers_n = 0;
    *length = -1;
    return 0;
}

/* ---- The body ---- */

/* Codes bytes (`p` may be NULL if there are none), and sends what that gives. 0, or -1 and errno: the reply is
 * aborted. */
ACO__SWITCHES
static int code(aco__http_exchange_t *x, const char *p, size_t n, int how, const char *call, const char *location)
{
    aco__http_encoder_t *encoder = x->reply.encoder;
    if (x->reply.is_aborted) {
        errno = EPIPE;
        return -1;
    }
    p = p ? p : "";
    do {
        ptrdiff_t got = aco__http_encode(encoder, &p, &n, how);
        if (got < 0 || (got > 0 && x->version->write(x, encoder->out, (size_t)got, call, location) != 0)) {
            x->reply.is_aborted = 1; /* of the coded bytes none may be missing */
            return -1;
        }
        x->is.sent += (uint64_t)got;
        aco__io_spend("a compressed reply", location);
    } while (n || encoder->has_more);
    return 0;
}

int aco__http_write_coded(aco__http_exchange_t *x, const void *p, size_t n, const char *call, const char *location)
{
    aco__http_encoder_t *encoder = x->reply.encoder;
    if (encoder->left >= 0 && n > (uint64_t)encoder->left)
        return aco__service_fail(EMSGSIZE, call, "more bytes than were announced");
    if (encoder->left >= 0)
        encoder->left -= (int64_t)n;
    return n ? code(x, p, n, HTTP_ENCODE, call, location) : 0;
}

int aco__http_flush_coded(aco__http_exchange_t *x, const char *call, const char *location)
{
    return code(x, NULL, 0, HTTP_ENCODE_ALL, call, location);
}

int aco__http_write_file_coded(aco__http_exchange_t *x, int fd, int64_t offset, int64_t n, const char *call,
                               const char *location)
{
    size_t sz = HTTP_ENCODED;
    char *buffer;
    int result = 0;
    if (n < 0 || offset < 0 || n > INT64_MAX - offset)
        return aco__service_fail(EINVAL, call, "the number of bytes");
    if (x->reply.encoder->left >= 0 && n > x->reply.encoder->left)
        return aco__service_fail(EMSGSIZE, call, "more bytes than were announced");
    buffer = aco__service_allocate(&sz, call);
    if (!buffer)
        return -1;
    while (n > 0 && result == 0) {
        ssize_t got = aco__http_read_part(fd, buffer, sz, &offset, &n, location);
        result = got < 0 ? -1 : aco__http_write_coded(x, buffer, (size_t)got, call, location);
    }
    aco__service_free(buffer, sz);
    return result;
}

void aco__http_end_coding(aco__http_exchange_t *x, const char *location)
{
    aco__http_encoder_t *encoder = x->reply.encoder;
    if (encoder->left > 0) /* the client cannot count */
        x->reply.is_aborted = 1;
    if (!x->reply.has_length && aco_check_cancelled() != 0)
        x->reply.is_aborted = 1;
    if (!x->reply.is_aborted)
        (void)code(x, NULL, 0, HTTP_ENCODE_END, compress_call, location);
    aco__http_free_encoder(x, encoder);
    x->reply.encoder = NULL;
}
