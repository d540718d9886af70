/* Headers and trailers of replies. */
#include "http/reply.h"
#include "http/request.h"
#include "http/text.h"

#include <string.h>

enum { HTTP_MOST_FIELDS = 6144 }; /* bytes of the headers that a handler adds */

/* Room for a line of `n` bytes behind these, which it counts. NULL and errno. */
static char *line_room(aco__http_exchange_t *x, size_t n, char **lines, size_t *lines_n, size_t *lines_room,
                       const char *call)
{
    if (n > HTTP_MOST_FIELDS - *lines_n) {
        aco__service_fail(ENOMEM, call, "the headers of a reply have 6 KiB");
        return NULL;
    }
    if (n > *lines_room - *lines_n) {
        size_t room = 2 * *lines_room + n + 128;
        char *larger = aco_http_request_allocate(&x->is, room);
        if (!larger)
            return NULL;
        aco__http_put(larger, *lines, *lines_n);
        *lines = larger;
        *lines_room = room;
    }
    *lines_n += n;
    return *lines + *lines_n - n;
}

static void put_line(char *at, const char *name, size_t name_n, const char *value, size_t value_n)
{
    at = aco__http_put(at, name, name_n);
    at = aco__http_put(at, ": ", 2);
    at = aco__http_put(at, value, value_n);
    aco__http_put(at, "\r\n", 2);
}

int aco_http_reply_header(aco_http_request_t *request, const char *name, const char *value)
{
    static const char call[] = "aco_http_reply_header";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    size_t name_n = name ? strlen(name) : 0, value_n = value ? strlen(value) : 0, n = name_n + value_n + 4;
    char *at;
    if (!value || !aco__http_is_token(name, name_n) || !aco__http_is_value(value, value_n))
        return aco__service_fail(EINVAL, call, "HTTP does not allow this name or value");
    if (aco__http_same(name, "content-length") || aco__http_same(name, "transfer-encoding") ||
        (aco__http_same(name, "connection") && !aco__http_same(value, "close")))
        return aco__service_fail(EINVAL, call, "the server sends this header itself");
    if (x->reply.has_begun)
        return aco__service_fail(EBUSY, call, "the reply has begun");
    if (aco__http_same(name, "connection")) {
        x->reply.will_close = 1; /* the version tells the client */
        return 0;
    }
    at = line_room(x, n, &x->reply.fields, &x->reply.fields_n, &x->reply.fields_room, call);
    if (!at)
        return -1;
    put_line(at, name, name_n, value, value_n);
    x->reply.has_date |= (unsigned char)aco__http_same(name, "date");
    return 0;
}

/* Whether it tells how to read the message, or who gets it: then it comes too late (RFC 9110, 6.5.1). */
static int must_come_first(const char *name)
{
    static const char *const names[] = {"content-length",
                                        "transfer-encoding",
                                        "content-encoding",
                                        "content-type",
                                        "content-range",
                                        "connection",
                                        "host",
                                        "te",
                                        "trailer",
                                        "upgrade",
                                        "keep-alive",
                                        "proxy-connection",
                                        "set-cookie",
                                        "authorization"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (aco__http_same(name, names[i]))
            return 1;
    return 0;
}

int aco_http_reply_trailer(aco_http_request_t *request, const char *name, const char *value)
{
    static const char call[] = "aco_http_reply_trailer";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    size_t name_n = name ? strlen(name) : 0, value_n = value ? strlen(value) : 0;
    char *at;
    if (!value || !aco__http_is_token(name, name_n) || !aco__http_is_value(value, value_n) || must_come_first(name))
        return aco__service_fail(EINVAL, call, "HTTP does not allow this name or value");
    if (x->reply.is_taken || (x->reply.has_begun && (x->reply.has_length || x->reply.is_bodiless)))
        return aco__service_fail(EBUSY, call, "the reply has a length, or no body");
    at = line_room(x, name_n + value_n + 4, &x->reply.trailers, &x->reply.trailers_n, &x->reply.trailers_room, call);
    if (!at)
        return -1;
    put_line(at, name, name_n, value, value_n);
    return 0;
}
