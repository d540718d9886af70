/* Bodies of HTTP/1: with their length, or in chunks. */
#include "http/outgoing.h"
#include "http/text.h"

#include "aco/file.h"

/* "5A\r\n" */
static char *put_chunk_size(char *at, size_t n)
{
    char digits[16];
    size_t count_of = 0;
    do
        digits[count_of++] = "0123456789ABCDEF"[n % 16];
    while ((n /= 16) != 0);
    while (count_of > 0)
        *at++ = digits[--count_of];
    return aco__http_put(at, "\r\n", 2);
}

enum { CHUNK_AROUND = 20 }; /* the size, and two line ends */

int aco__http_write_body(aco__http_outgoing_t *out, const void *p, size_t n, const char *call, const char *location)
{
    aco__http_link_t *link = out->link;
    int is_small = n <= HTTP_OUT / 2;
    char *at;
    ACO__ASSERT(!out->is_chunked || out->left < 0);
    if (out->left >= 0 && n > (uint64_t)out->left)
        return aco__service_fail(EMSGSIZE, call, "more bytes than were announced");
    if (out->is_bodiless || n == 0) {
        if (out->left >= 0)
            out->left -= (int64_t)n;
        return 0;
    }
    at = aco__http_room(link, (is_small ? n : 0) + CHUNK_AROUND, location);
    if (!at)
        return -1;
    if (out->is_chunked)
        at = put_chunk_size(at, n);
    if (is_small)
        at = aco__http_put(at, p, n);
    else {
        aco__http_filled(link, at);
        if (aco__http_send(link, p, n, 0, location) != 0)
            return -1;
        at = link->out;
    }
    if (out->is_chunked)
        at = aco__http_put(at, "\r\n", 2);
    ACO__ASSERT((size_t)(at - link->out) - link->out_n <= (is_small ? n : 0) + CHUNK_AROUND);
    aco__http_filled(link, at);
    if (out->left >= 0)
        out->left -= (int64_t)n;
    return 0;
}

int aco__http_end_body_with(aco__http_outgoing_t *out, const char *trailers, size_t n, const char *location)
{
    char *at;
    if (out->left > 0 && !out->is_bodiless) {
        errno = EMSGSIZE;
        return -1;
    }
    if (out->is_chunked && !out->is_bodiless) {
        at = aco__http_room(out->link, n + 5, location);
        if (!at)
            return -1;
        aco__http_filled(out->link, HTTP_PUT(aco__http_put(HTTP_PUT(at, "0\r\n"), trailers, n), "\r\n"));
    }
    out->left = 0;
    return 0;
}

int aco__http_write_file(aco__http_outgoing_t *out, int fd, int64_t offset, int64_t n, const char *call,
                         const char *location)
{
    enum { SMALL = 16384 }; /* a copy costs less than the calls around sendfile() */
    size_t sz = n < SMALL ? (size_t)n : SMALL;
    char *buffer;
    int result = 0, is_wrong = n < 0 || offset < 0 || n > INT64_MAX - offset;
    if (is_wrong || (out->left >= 0 && n > out->left))
        return aco__service_fail(is_wrong ? EINVAL : EMSGSIZE, call, "the number of bytes");
    if (out->is_bodiless || n == 0) {
        if (out->left >= 0)
            out->left -= n;
        return 0;
    }
    if (n > SMALL && out->link->is_plain && out->left >= 0) {
        int64_t at = offset;
        if (aco__http_send(out->link, NULL, 0, 1, location) != 0)
            return -1;
        result = aco__http_send_file(out->link, fd, &at, offset + n, location);
        out->left -= at - offset;
        if (result <= 0)
            return result;
    }
    buffer = aco__service_allocate(&sz, call);
    if (!buffer)
        return -1;
    for (result = 0; n > 0 && result == 0;) {
        ssize_t got = aco__http_read_part(fd, buffer, sz, &offset, &n, location);
        result = got < 0 ? -1 : aco__http_write_body(out, buffer, (size_t)got, call, location);
    }
    aco__service_free(buffer, sz);
    return result;
}
