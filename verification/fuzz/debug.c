/* The debug pages: an input's bytes are the query, the body or the Host of a request to acorn_debug. The first byte
 * tells which. The request line itself is acorn_http's, whose target is http.c.
 *
 * The property: each request gets a whole answer that is no failure of the server's, and JSON ends as it should. Pages
 * that take seconds are asked for none. */
#define _GNU_SOURCE
#define FUZZ_NAME "debug"
#include "aco/debug.h"
#include "fuzz.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { MOST_ANSWER = 4 << 20, MOST_REQUEST = 8192, FUZZ_LIMIT_S = 15 };

static int fuzz_actor(void)
{
    return 0;
}

/* A source address for each connection: closed ones use up a single one's ports. */
static int connect_to(int port)
{
    static unsigned runs;
    const struct timeval limit = {FUZZ_LIMIT_S, 0};
    struct sockaddr_in own = {.sin_family = AF_INET}, its = own;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    own.sin_addr.s_addr = htonl(0x7f010000u + ++runs % 0x10000u);
    its.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    its.sin_port = htons((uint16_t)port);
    EXPECT(fd >= 0 && bind(fd, (const struct sockaddr *)&own, sizeof own) == 0);
    EXPECT(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    EXPECT(connect(fd, (const struct sockaddr *)&its, sizeof its) == 0);
    return fd;
}

static size_t make_request(char *request, unsigned which, const uint8_t *bytes, size_t n)
{
    static const char *const queries[] = {"state?filter=",
                                          "state?",
                                          "pprof/tasks?",
                                          "pprof/leaked?debug=",
                                          "pprof/symbol?",
                                          "pprof/threadcreate?debug=",
                                          "pprof/tasks?json=",
                                          "pprof/late?seconds=0&ms=",
                                          "pprof/mutex?seconds=0&debug=",
                                          "pprof/trace?seconds=0&"};
    enum { QUERIES = sizeof queries / sizeof *queries };
    size_t at_end = 0;
    if (which % (QUERIES + 2) < QUERIES) {
        at_end = (size_t)sprintf(request, "GET /debug/%s", queries[which % (QUERIES + 2)]);
        for (size_t i = 0; i < n; i++) /* else the line would end there */
            request[at_end++] = (char)(bytes[i] <= ' ' || bytes[i] >= 127 ? '+' : bytes[i]);
        return at_end + (size_t)sprintf(request + at_end, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    }
    if (which % (QUERIES + 2) == QUERIES) {
        at_end = (size_t)sprintf(request,
                                 "POST /debug/pprof/symbol HTTP/1.1\r\nHost: [::1]:1\r\nConnection: close\r\n"
                                 "Content-Length: %zu\r\n\r\n",
                                 n);
        memcpy(request + at_end, bytes, n);
        return at_end + n;
    }
    at_end = (size_t)sprintf(request, "GET /debug/state HTTP/1.1\r\nConnection: close\r\nHost: ");
    memcpy(request + at_end, bytes, n);
    return at_end + n + (size_t)sprintf(request + at_end + n, "\r\n\r\n");
}

static void fuzz_input(void)
{
    static char request[MOST_REQUEST], answer[MOST_ANSWER];
    static int port;
    size_t n = 0, sent;
    ssize_t got;
    int fd;
    unsigned which = next();
    if (is_over())
        return;
    if (!port)
        EXPECT((port = aco_debug_serve("127.0.0.1:0", NULL)) > 0);
    if (input_sz - at > MOST_REQUEST / 2)
        return;
    sent = make_request(request, which, input + at, input_sz - at);
    at = input_sz;
    fd = connect_to(port);
    EXPECT(send(fd, request, sent, MSG_NOSIGNAL) == (ssize_t)sent);
    if (strstr(request, "Host: localhost") == NULL) /* else the request is a whole one; this may be half */
        EXPECT(shutdown(fd, SHUT_WR) == 0);
    while (n < MOST_ANSWER - 1 && (got = read(fd, answer + n, MOST_ANSWER - 1 - n)) > 0)
        n += (size_t)got;
    answer[n] = 0;
    close(fd);
    if (tracing)
        fprintf(stderr, "%.*s\n%s\n", (int)sent, request, answer);
    if (!n) /* a Host that is several headers may end the request in its middle */
        return;
    EXPECT(strncmp(answer, "HTTP/1.1 ", 9) == 0 && answer[9] >= '2' && answer[9] <= '4');
    if (strstr(answer, "Content-Type: application/json\r\n"))
        EXPECT(strcmp(answer + n - 3, "]}\n") == 0);
}
