/* The PROXY protocol (include/aco/proxy_protocol.h): headers right and wrong, whole and cut, and that nothing behind
 * them is read. */
#define _GNU_SOURCE
#include <aco/proxy_protocol.h>

#include "io_tests.h"

#include <sys/socket.h>

#define CHECK_TEXT(what, is, wanted) CHECK(strcmp(is, wanted) == 0)
#define V2 "\r\n\r\n\0\r\nQUIT\n"
#define REST "GET / HTTP/1.1\r\n"

typedef struct header {
    const char *text;
    size_t n;
    const char *peer, *local; /* peer "": the proxy's own; NULL: wrong */
} header_t;
#define H(text, peer, local) {text, sizeof text - 1, peer, local}

static const header_t headers[] = {
    H("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n", "192.0.2.1:56324", "198.51.100.1:443"),
    H("PROXY TCP6 2001:db8::1 ::1 1 65535\r\n", "[2001:db8::1]:1", "[::1]:65535"),
    H("PROXY UNKNOWN\r\n", "", ""),
    H("PROXY UNKNOWN ffff::1 what ever 4 5\r\n", "", ""),
    H("PROXY TCP4 255.255.255.255 255.255.255.255 65535 0\r\n", "255.255.255.255:65535", "255.255.255.255:0"),
    H("PROXY TCP4 192.0.2.1 198.51.100.1 56324 65536\r\n", NULL, NULL),
    H("PROXY TCP4 192.0.2.1 198.51.100.1 056324 443\r\n", NULL, NULL),
    H("PROXY TCP4 192.0.2.1 198.51.100.1 +1 443\r\n", NULL, NULL),
    H("PROXY TCP4 192.0.2.1  198.51.100.1 1 443\r\n", NULL, NULL),
    H("PROXY TCP4 192.0.2.1 198.51.100.1 1 443 \r\n", NULL, NULL),
    H("PROXY TCP4 192.0.2.1 198.51.100.1 1\r\n", NULL, NULL),
    H("PROXY TCP4 2001:db8::1 ::1 1 2\r\n", NULL, NULL),
    H("PROXY TCP6 192.0.2.1 198.51.100.1 1 2\r\n", NULL, NULL),
    H("PROXY TCP5 192.0.2.1 198.51.100.1 1 2\r\n", NULL, NULL),
    H("PROXY tcp4 192.0.2.1 198.51.100.1 1 2\r\n", NULL, NULL),
    H("PROXY TCP4 192.0.2.1 198.51.100.1 1 2\n", NULL, NULL),
    H("PROXY TCP4 192.0.2.1\0 198.51.100.1 1 2\r\n", NULL, NULL),
    H("PROXY \r\n      ", NULL, NULL),
    H("GET / HTTP/1.1\r\n", NULL, NULL),
    H("PROXY UNKNOWN 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890\r\n",
      "", ""), /* 107 bytes */
    H("PROXY UNKNOWN 01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901\r\n",
      NULL, NULL),
    H(V2 "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb", "192.0.2.1:56324", "198.51.100.1:443"),
    H(V2 "\x21\x11\x00\x0f\xc0\x00\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb\x04\x00\x00", "192.0.2.1:56324",
      "198.51.100.1:443"),
    H(V2 "\x21\x21\x00\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x01\xff\xff",
      "[2001:db8::1]:1", "[::1]:65535"),
    H(V2 "\x20\x00\x00\x00", "", ""),
    H(V2 "\x20\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb", "", ""),
    H(V2 "\x21\x00\x00\x03\x01\x02\x03", "", ""),
    H(V2 "\x21\x12\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb", "", ""), /* UDP */
    H(V2 "\x21\x11\x00\x0b\xc0\x00\x02\x01\xc6\x33\x64\x01\xdc\x04\x01", NULL, NULL),
    H(V2 "\x21\x21\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb", NULL, NULL),
    H(V2 "\x22\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb", NULL, NULL),
    H(V2 "\x11\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb", NULL, NULL),
};

/* A connection on which these bytes come, and then the end. */
static int connection(const char *bytes, size_t n)
{
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    CHECK_EQ(send(fds[1], bytes, n, 0), (ssize_t)n);
    close(fds[1]);
    CHECK_EQ(aco_io_adopt(fds[0]), 0);
    return fds[0];
}

static void check_right(const header_t *wanted)
{
    char bytes[512], rest[64] = "", text[ACO_IO_ADDRESS_SIZE];
    aco_proxy_header_t header;
    aco_stream_t *stream;
    int fd;
    memcpy(bytes, wanted->text, wanted->n);
    memcpy(bytes + wanted->n, REST, sizeof REST - 1);
    fd = connection(bytes, wanted->n + sizeof REST - 1);
    CHECK_EQ(aco_proxy_header_read(fd, &header), 0);
    CHECK_EQ(header.is_own, !wanted->peer[0]);
    CHECK_EQ(header.version, wanted->text[0] == 'P' ? 1 : 2);
    CHECK_TEXT("the peer", header.peer, wanted->peer);
    CHECK_TEXT("the local address", header.local, wanted->local);
    stream = aco_proxy_stream(aco_stream_open(fd), &header);
    CHECK_EQ(aco_stream_fd(stream), fd);
    CHECK_EQ(aco_proxy_inner(stream) != stream, !header.is_own);
    if (!header.is_own) {
        CHECK_EQ(aco_stream_peer_address(stream, text, sizeof text), 0);
        CHECK_TEXT("the stream's peer", text, wanted->peer);
        CHECK_EQ(aco_stream_local_address(stream, text, sizeof text), 0);
        CHECK_TEXT("the stream's local address", text, wanted->local);
        FAILS_WITH(aco_stream_peer_address(stream, text, strlen(wanted->peer)), ENOSPC);
    }
    CHECK_EQ(aco_stream_read_exactly(stream, rest, sizeof rest), (ssize_t)sizeof REST - 1);
    CHECK_TEXT("what follows", rest, REST);
    aco_stream_close(stream);
}

static void check_wrong(const char *bytes, size_t n, int error)
{
    aco_proxy_header_t header;
    int fd = connection(bytes, n);
    FAILS_WITH(aco_proxy_header_read(fd, &header), error);
    aco_io_close(fd);
}

static void check_unix(void)
{
    char bytes[16 + 216] = V2 "\x21\x31\x00\xd8";
    aco_proxy_header_t header;
    int fd;
    strcpy(bytes + 16, "/run/client");
    memset(bytes + 16 + 108, 'x', 108);
    fd = connection(bytes, sizeof bytes);
    CHECK_EQ(aco_proxy_header_read(fd, &header), 0);
    CHECK_TEXT("the path", header.peer, "/run/client");
    CHECK_EQ(strlen(header.local), 108);
    aco_io_close(fd);
}

/* Any bytes: an answer, and never more than the header is read. */
static void check_random(unsigned seed)
{
    char bytes[512];
    const header_t *from = &headers[seed % (sizeof headers / sizeof headers[0])];
    size_t n = from->n;
    aco_proxy_header_t header;
    int fd;
    memcpy(bytes, from->text, n);
    for (int changes = 0; changes < 1 + (int)(seed / 50 % 3); changes++) {
        seed = seed * 1103515245u + 12345u;
        bytes[(seed >> 16) % n] = (char)(seed >> 8);
    }
    memset(bytes + n, 'r', 200);
    fd = connection(bytes, n + 200);
    if (aco_proxy_header_read(fd, &header) == 0)
        CHECK(memchr(header.peer, 0, sizeof header.peer) && memchr(header.local, 0, sizeof header.local));
    else
        CHECK(errno == EPROTO || errno == ECONNRESET);
    aco_io_close(fd);
}

static void *test(void *arg)
{
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        if (headers[i].peer)
            check_right(&headers[i]);
        else
            check_wrong(headers[i].text, headers[i].n, EPROTO);
        for (size_t n = 0; headers[i].peer && n < headers[i].n; n++)
            check_wrong(headers[i].text, n, ECONNRESET);
    }
    check_unix();
    for (unsigned seed = 0; seed < 3000; seed++)
        check_random(seed);
    errno = EMFILE;
    CHECK(aco_proxy_stream(NULL, &(aco_proxy_header_t){0}) == NULL);
    CHECK_EQ(errno, EMFILE);
    return arg;
}

int main(void)
{
    run_task(test, NULL);
    return check_result("the PROXY protocol");
}
