/* The PROXY protocol. A header is read without a byte beyond it, so that what follows can be read by anybody, TLS for
 * example: of version 1 byte by byte, since only its end tells how long it is. */
#include "base/invariants.h"

#include "aco/detail/for_libraries.h"
#include "aco/proxy_protocol.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum {
    SIGNATURE = 12, /* bytes of version 2; every header is longer */
    FIXED = 16,     /* bytes of version 2 before the addresses */
    LONGEST_LINE = 107,
    IPV4_ADDRESSES = 12,
    IPV6_ADDRESSES = 36,
    UNIX_ADDRESSES = 216,
    UNIX_PATH = 108
};

static const char read_call[] = "aco_proxy_header_read";
static const unsigned char signature[SIGNATURE] = {'\r', '\n', '\r', '\n', 0, '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};

static int fail_header(const char *reason)
{
    return aco__service_fail(EPROTO, read_call, reason);
}

/* 0, or -1 and errno. */
ACO__SWITCHES static int read_all(int fd, void *p, size_t n, const char *location)
{
    ssize_t got = aco_io_read_exactly_at(fd, p, n, NULL, location);
    if (got >= 0 && (size_t)got < n)
        return aco__service_fail(ECONNRESET, read_call, "the stream ends in the header");
    return got < 0 ? -1 : 0;
}

/* ---- Version 1: a line ---- */

/* A decimal number without leading zeros; -1: it is none. */
static int proxy_port(const char *text)
{
    size_t n = strspn(text, "0123456789");
    unsigned long value = n >= 1 && n <= 5 && !text[n] ? strtoul(text, NULL, 10) : 65536;
    return value > 65535 || (n > 1 && text[0] == '0') ? -1 : (int)value;
}

/* The host's bytes and the port's are in the network's order. */
static int text_of_ip(char text[ACO_IO_ADDRESS_SIZE], int family, const unsigned char *host, const unsigned char *port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (family == AF_INET) {
        memcpy(&four.sin_addr, host, sizeof four.sin_addr);
        memcpy(&four.sin_port, port, sizeof four.sin_port);
        return aco_io_text_of_address((const struct sockaddr *)(const void *)&four, sizeof four, text,
                                      ACO_IO_ADDRESS_SIZE);
    }
    memcpy(&six.sin6_addr, host, sizeof six.sin6_addr);
    memcpy(&six.sin6_port, port, sizeof six.sin6_port);
    return aco_io_text_of_address((const struct sockaddr *)(const void *)&six, sizeof six, text, ACO_IO_ADDRESS_SIZE);
}

/* 0, or -1: one of them is wrong. */
static int write_ip(char text[ACO_IO_ADDRESS_SIZE], int family, const char *host, const char *port)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    int number = proxy_port(port);
    const uint16_t in_order = htons((uint16_t)number);
    return number >= 0 && inet_pton(family, host, bytes) == 1
               ? text_of_ip(text, family, bytes, (const unsigned char *)&in_order)
               : -1;
}

/* Ends the word at the next space; what follows, or NULL: it was the last. */
static char *next_word(char *word)
{
    char *end = word ? strchr(word, ' ') : NULL;
    if (end)
        *end++ = 0;
    return end;
}

/* The line without its end. */
static int parse_line(char *line, aco_proxy_header_t *header)
{
    char *kind = next_word(line), *from = next_word(kind), *to = next_word(from), *from_port = next_word(to),
         *to_port = next_word(from_port);
    int family = kind && strcmp(kind, "TCP4") == 0 ? AF_INET : AF_INET6;
    header->version = 1;
    if (strcmp(line, "PROXY") == 0 && kind && strcmp(kind, "UNKNOWN") == 0) {
        header->is_own = 1;
        return 0;
    }
    if (strcmp(line, "PROXY") != 0 || !to_port || next_word(to_port) ||
        (strcmp(kind, "TCP4") != 0 && strcmp(kind, "TCP6") != 0))
        return fail_header("the line is wrong");
    if (write_ip(header->peer, family, from, from_port) != 0 || write_ip(header->local, family, to, to_port) != 0)
        return fail_header("an address in the line is wrong");
    return 0;
}

/* The first SIGNATURE bytes are there. */
ACO__SWITCHES static int read_line(int fd, char line[LONGEST_LINE + 1], aco_proxy_header_t *header,
                                   const char *location)
{
    size_t n = SIGNATURE;
    if (memcmp(line, "PROXY ", 6) != 0 || memchr(line, '\n', n))
        return fail_header("there is no header");
    while (line[n - 1] != '\n') {
        if (n == LONGEST_LINE)
            return fail_header("the line is too long");
        if (read_all(fd, line + n, 1, location) != 0)
            return -1;
        n++;
    }
    if (line[n - 2] != '\r' || memchr(line, 0, n))
        return fail_header("the line is wrong");
    line[n - 2] = 0;
    return parse_line(line, header);
}

/* ---- Version 2: binary ---- */

static int text_of_unix(char text[ACO_IO_ADDRESS_SIZE], const unsigned char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const unsigned char *end = memchr(path + 1, 0, UNIX_PATH - 1);
    size_t n = end ? (size_t)(end - path) : UNIX_PATH;
    if (n > sizeof address.sun_path)
        return fail_header("the path is longer than this system's");
    memcpy(address.sun_path, path, n);
    return aco_io_text_of_address((const struct sockaddr *)(const void *)&address,
                                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (n > 1 || path[0] ? n : 0)),
                                  text, ACO_IO_ADDRESS_SIZE);
}

/* `kind` is the family in the upper half, what it carries in the lower one. */
static int parse_addresses(unsigned kind, const unsigned char *p, size_t n, aco_proxy_header_t *header)
{
    if (kind == 0x11 && n >= IPV4_ADDRESSES)
        return text_of_ip(header->peer, AF_INET, p, p + 8) | text_of_ip(header->local, AF_INET, p + 4, p + 10);
    if (kind == 0x21 && n >= IPV6_ADDRESSES)
        return text_of_ip(header->peer, AF_INET6, p, p + 32) | text_of_ip(header->local, AF_INET6, p + 16, p + 34);
    if (kind == 0x31 && n >= UNIX_ADDRESSES)
        return text_of_unix(header->peer, p) | text_of_unix(header->local, p + UNIX_PATH);
    if (kind == 0x11 || kind == 0x21 || kind == 0x31)
        return fail_header("the addresses are too short");
    header->is_own = 1; /* datagrams, or unspecified */
    return 0;
}

/* The first SIGNATURE bytes are there. */
ACO__SWITCHES static int read_binary(int fd, aco_proxy_header_t *header, const char *location)
{
    unsigned char fixed[FIXED - SIGNATURE], addresses[UNIX_ADDRESSES];
    size_t left, n;
    if (read_all(fd, fixed, sizeof fixed, location) != 0)
        return -1;
    header->version = 2;
    if (fixed[0] != 0x20 && fixed[0] != 0x21)
        return fail_header("the version or the command is unknown");
    left = (size_t)fixed[2] << 8 | fixed[3];
    n = left < sizeof addresses ? left : sizeof addresses;
    if (n && read_all(fd, addresses, n, location) != 0)
        return -1;
    if (fixed[0] == 0x20)
        header->is_own = 1;
    else if (parse_addresses(fixed[1], addresses, n, header) != 0)
        return -1;
    for (left -= n; left; left -= n) {
        n = left < sizeof addresses ? left : sizeof addresses;
        if (read_all(fd, addresses, n, location) != 0)
            return -1;
    }
    return 0;
}

int aco_proxy_header_read_at(int fd, aco_proxy_header_t *header, const char *location)
{
    char line[LONGEST_LINE + 1];
    ACO__MAY_SWITCH(read_call, location);
    memset(header, 0, sizeof *header);
    if (read_all(fd, line, SIGNATURE, location) != 0)
        return -1;
    return memcmp(line, signature, SIGNATURE) == 0 ? read_binary(fd, header, location)
                                                   : read_line(fd, line, header, location);
}

/* ---- The stream ---- */

typedef struct proxied {
    aco_stream_t is; /* first */
    aco_stream_t *inner;
    size_t size, local_length; /* of this; of the first of the texts behind it, with its 0 */
} proxied_t;

static aco_stream_t *inner_of(const aco_stream_t *stream)
{
    return ((const proxied_t *)(const void *)stream)->inner;
}

ACO__SWITCHES static ssize_t proxied_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    return aco_stream_read_at(inner_of(stream), p, n, location);
}

ACO__SWITCHES static ssize_t proxied_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    return aco_stream_write_at(inner_of(stream), p, n, location);
}

ACO__SWITCHES static ssize_t proxied_write_parts(aco_stream_t *stream, const struct iovec *parts, int count,
                                                 const char *location)
{
    aco_stream_t *inner = inner_of(stream);
    return inner->functions->write_parts ? inner->functions->write_parts(inner, parts, count, location)
                                         : aco_stream_write_at(inner, parts[0].iov_base, parts[0].iov_len, location);
}

ACO__SWITCHES static int proxied_shutdown(aco_stream_t *stream, const char *location)
{
    return aco_stream_shutdown_at(inner_of(stream), location);
}

ACO__SWITCHES static int proxied_wait(aco_stream_t *stream, const char *location)
{
    return aco_stream_wait_readable_at(inner_of(stream), location);
}

static int proxied_has_input(aco_stream_t *stream)
{
    return aco_stream_has_input(inner_of(stream));
}

static const char *proxied_protocol(const aco_stream_t *stream)
{
    return aco_stream_protocol(inner_of(stream));
}

static void free_proxied(aco_stream_t *stream)
{
    aco__service_free(stream, ((const proxied_t *)(const void *)stream)->size);
}

static void proxied_close(aco_stream_t *stream)
{
    aco_stream_close(inner_of(stream));
    free_proxied(stream);
}

static void proxied_abort(aco_stream_t *stream)
{
    aco_stream_abort(inner_of(stream));
    free_proxied(stream);
}

static int copy_text(const char *from, char *text, size_t size)
{
    size_t n = strlen(from) + 1;
    if (n > size) {
        errno = ENOSPC;
        return -1;
    }
    memcpy(text, from, n);
    return 0;
}

static int proxied_local(const aco_stream_t *stream, char *text, size_t size)
{
    return copy_text((const char *)((const proxied_t *)(const void *)stream + 1), text, size);
}

static int proxied_peer(const aco_stream_t *stream, char *text, size_t size)
{
    const proxied_t *proxied = (const proxied_t *)(const void *)stream;
    return copy_text((const char *)(proxied + 1) + proxied->local_length, text, size);
}

static const aco_stream_functions_t proxied_functions = {
    .read = proxied_read,
    .write = proxied_write,
    .close = proxied_close,
    .abort = proxied_abort,
    .write_parts = proxied_write_parts,
    .shutdown = proxied_shutdown,
    .wait_readable = proxied_wait,
    .has_input = proxied_has_input,
    .local_address = proxied_local,
    .peer_address = proxied_peer,
    .protocol = proxied_protocol,
};

aco_stream_t *aco_proxy_stream(aco_stream_t *stream, const aco_proxy_header_t *header)
{
    size_t local = strlen(header->local) + 1, peer = strlen(header->peer) + 1, size = sizeof(proxied_t) + local + peer;
    proxied_t *proxied;
    if (!stream || header->is_own)
        return stream;
    proxied = aco__service_allocate(&size, "aco_proxy_stream");
    if (!proxied) {
        aco_stream_close(stream);
        errno = ENOMEM;
        return NULL;
    }
    *proxied = (proxied_t){{&proxied_functions, stream->fd}, stream, size, local};
    memcpy(proxied + 1, header->local, local);
    memcpy((char *)(proxied + 1) + local, header->peer, peer);
    return &proxied->is;
}

aco_stream_t *aco_proxy_inner(aco_stream_t *stream)
{
    return stream->functions == &proxied_functions ? inner_of(stream) : stream;
}
