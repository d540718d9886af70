/* Limits of an HTTP server for each client (aco/http.h): requests of a connection, connections of an address. */
#define _GNU_SOURCE
#include "replace.h" /* first */

#include "http_tests.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

static void exits(aco_http_request_t *request, void *arg)
{
    (void)request;
    (void)arg;
    aco_exit();
}

static const aco_http_route_t routes[] = {
    {"GET", "/", tells, "text"}, {"GET", "/exit", exits, NULL}, {NULL, NULL, NULL, NULL}};

static void *limits_requests(void *arg)
{
    stage_t stage = {0};
    int fd;
    stage.server.max_requests = 3;
    start(&stage, routes);
    ask(&stage, GET("") GET("") GET("") GET(""));
    CHECK_TEXT("three", statuses(), "200 200 200");
    CHECK(strstr(strstr(got, "Connection: close"), "HTTP/1.1") == NULL); /* only the last one says so */
    fd = dial(&stage);
    for (int i = 0; i < 3; i++) {
        CHECK(aco_io_write_all(fd, GET(""), sizeof GET("") - 1) > 0);
        CHECK_EQ(read_reply(fd), 200);
    }
    CHECK_EQ(aco_io_read(fd, got, 1000), 0);
    aco_io_close(fd);
    stop(&stage);
    return arg;
}

/* ---- A full server ---- */

/* Ends a connection. The server has noticed it. */
static void part(int fd)
{
    aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    CHECK_EQ(aco_io_close(fd), 0);
}

/* The status of the reply, which comes before that time; else 0. */
static int status_within(int64_t time, const stage_t *stage, const char *request, int *fd)
{
    aco_scope_t scope;
    int status = 0;
    *fd = dial(stage);
    CHECK(aco_io_write_all(*fd, request, strlen(request)) > 0);
    CHECK_EQ(aco_scope_begin(&scope, aco_after(time)), 0);
    if (aco_io_read_exactly(*fd, got, 15) == 15)
        status = atoi(got + 9);
    CHECK_EQ(aco_scope_end(&scope), 0);
    return status;
}

static int status_of(const stage_t *stage, const char *request, int *fd)
{
    return status_within(ACO_FOREVER, stage, request, fd);
}

static int logged[600];

static void counts_statuses(const aco_http_request_t *request, void *arg)
{
    (void)arg;
    logged[request->status]++;
}

static void *refuses_when_full(void *arg)
{
    enum { SERVED = 2, REFUSED = 2 };
    stage_t stage = {0};
    int fds[SERVED], silent[REFUSED], fd;
    memset(logged, 0, sizeof logged);
    stage.server.max_connections = SERVED;
    stage.server.max_refused = REFUSED;
    stage.server.log = counts_statuses;
    start(&stage, routes);
    for (int i = 0; i < SERVED; i++)
        CHECK_EQ(status_of(&stage, GET(""), &fds[i]), 200);
    for (int i = 0; i < 3 * REFUSED; i++) { /* a reply ends the connection, and gives the place back */
        ask(&stage, GET("") GET(""));
        CHECK_TEXT("full", statuses(), "503");
        CHECK_HAS("Connection: close");
    }
    CHECK_EQ(logged[503], 3 * REFUSED);
    for (int i = 0; i < REFUSED; i++)
        CHECK_EQ(status_within(10 * ACO_MILLISECOND, &stage, "GET / HT", &silent[i]), 0); /* they hold the places */
    CHECK_EQ(status_within(20 * ACO_MILLISECOND, &stage, GET(""), &fd), 0); /* it waits to be accepted */
    aco_io_close(silent[0]);
    CHECK_EQ(read_to_end(fd), 0);
    CHECK_TEXT("full, later", statuses(), "503");
    aco_io_close(fd);
    part(fds[0]);
    CHECK_EQ(status_of(&stage, GET(""), &fds[0]), 200);
    CHECK(aco_io_write_all(silent[1], "TP/1.1\r\n" HOST "\r\n", 19) > 0); /* it was refused, and is */
    CHECK_EQ(read_to_end(silent[1]), 0);
    CHECK_TEXT("full before", statuses(), "503");
    aco_io_close(silent[1]);
    for (int i = 0; i < SERVED; i++)
        aco_io_close(fds[i]);
    stop(&stage);
    return arg;
}

/* Who is refused has head_time for its request, also the first byte of it. */
static void *refused_ones_have_little_time(void *arg)
{
    stage_t stage = {0};
    int fd, silent;
    stage.server.max_connections = stage.server.max_refused = 1;
    stage.server.head_time = 20 * ACO_MILLISECOND;
    start(&stage, routes);
    CHECK_EQ(status_of(&stage, GET(""), &fd), 200);
    silent = dial(&stage);
    CHECK_EQ(read_to_end(silent), 0);
    CHECK_EQ(got_n, 0);
    aco_io_close(silent);
    aco_io_close(fd);
    stop(&stage);
    return arg;
}

/* ---- Addresses ---- */

/* Whether a connection gets a reply. */
static int is_served(int fd, const char *request)
{
    return aco_io_write_all(fd, request, strlen(request)) > 0 && read_reply(fd) != 0;
}

/* Connects from 127.0.0.`last`. */
static int dial_from(const stage_t *stage, int last)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + (unsigned)last)};
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    server.sin_port = htons((unsigned short)atoi(stage->port));
    CHECK_EQ(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&server, sizeof server), 0);
    CHECK_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void has_room(const stage_t *stage)
{
    int fd = dial_from(stage, 1);
    CHECK(is_served(fd, GET("")));
    part(fd);
}

static void *limits_connections(void *arg)
{
    uint64_t failures[ACO_HTTP_FAILURES] = {0};
    stage_t stage = {0};
    int fds[3];
    stage.server.max_per_address = 2;
    stage.server.failures = failures;
    start(&stage, routes);
    for (int i = 0; i < 3; i++) {
        fds[i] = dial_from(&stage, 1);
        CHECK_EQ(is_served(fds[i], GET("")), i < 2);
    }
    CHECK_EQ(failures[ACO_HTTP_REFUSED], 1);
    for (int i = 2; i < 250; i++) { /* others have their own */
        int fd = dial_from(&stage, i);
        CHECK(is_served(fd, GET("")));
        aco_io_close(fd);
    }
    for (int i = 0; i < 100; i++) { /* an attacker */
        int fd = dial_from(&stage, 1);
        CHECK(!is_served(fd, GET("")));
        aco_io_close(fd);
    }
    CHECK_EQ(failures[ACO_HTTP_REFUSED], 101);
    CHECK(is_served(fds[0], GET("")));
    CHECK(
        !is_served(fds[1], "GET /exit HTTP/1.1\r\n" HOST "\r\n")); /* a task that ends otherwise gives its place back */
    has_room(&stage);
    for (int i = 0; i < 3; i++)
        part(fds[i]);
    has_room(&stage);
    stop(&stage);
    return arg;
}

/* All addresses of a network count as one; without an address there is no limit. */
static void *limits_others(void *arg)
{
    static const char *const networks[] = {"tcp6", "unix"};
    for (int k = 0; k < 2; k++) {
        char address[ACO_IO_ADDRESS_SIZE] = "";
        stage_t stage = {0};
        int fds[3];
        const char *host = k ? address : "::1";
        snprintf(address, sizeof address, "/tmp/acorn-http-limits-%d", (int)getpid());
        stage.server.max_per_address = 1;
        stage.server.routes = routes;
        stage.listener = aco_io_listen(networks[k], host, k ? NULL : "0", NULL);
        if (stage.listener < 0)
            continue; /* there is no IPv6 here */
        if (!k) {
            CHECK_EQ(aco_io_local_address(stage.listener, address, sizeof address), 0);
            snprintf(stage.port, sizeof stage.port, "%s", strrchr(address, ':') + 1);
        }
        stage.task = aco_spawn(serves, &stage, NULL);
        for (int i = 0; i < 2; i++) {
            fds[i] = aco_io_dial(networks[k], host, k ? NULL : stage.port, NULL);
            CHECK(fds[i] >= 0);
            CHECK_EQ(is_served(fds[i], GET("")), k || i < 1);
        }
        aco_io_close(fds[0]);
        aco_io_close(fds[1]);
        stop(&stage);
        if (k)
            unlink(address);
    }
    return arg;
}

/* ---- Addresses that no test can have ---- */

static const char *peer_text; /* the address of all peers; NULL: their own */
static unsigned peer_link;

REAL(getpeername);

static int failing_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
    struct sockaddr_in6 peer = {.sin6_family = AF_INET6, .sin6_scope_id = peer_link};
    if (!peer_text)
        return real_getpeername(fd, address, length);
    CHECK_EQ(inet_pton(AF_INET6, peer_text, &peer.sin6_addr), 1);
    memcpy(address, &peer, sizeof peer);
    *length = sizeof peer;
    return 0;
}

/* Which clients count as one. */
static void *tells_clients_apart(void *arg)
{
    static const struct {
        const char *one, *other;
        unsigned link;
        int are_two;
    } pairs[] = {
        {"2001:db8:1:2::1", "2001:db8:1:2:3::", 0, 0},
        {"2001:db8:1:2::1", "2001:db8:1:3::1", 0, 1},
        {"fe80::1", "fe80::1", 0, 0},
        {"fe80::1", "fe80::2", 0, 1},
        {"fe80::1", "fe80::1", 7, 1},
        {"fec0::1", "fec0::2", 0, 0},
        {"64:ff9b::192.0.2.1", "64:ff9b::192.0.2.1", 0, 0},
        {"64:ff9b::192.0.2.1", "64:ff9b::192.0.2.2", 0, 1},
        {"64:ff9b::192.0.2.1", "::ffff:192.0.2.1", 0, 0},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.2", 0, 1},
        {"64:ff9b::1:192.0.2.1", "64:ff9b::1:0:1", 0, 0},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        stage_t stage = {0};
        int fds[2];
        stage.server.max_per_address = 1;
        start(&stage, routes);
        peer_text = pairs[i].one;
        fds[0] = dial(&stage);
        CHECK(is_served(fds[0], GET("")));
        peer_text = pairs[i].other;
        peer_link = pairs[i].link;
        fds[1] = dial(&stage);
        check_text(__FILE__, __LINE__, peer_text, is_served(fds[1], GET("")) ? "two" : "one",
                   pairs[i].are_two ? "two" : "one");
        aco_io_close(fds[0]);
        aco_io_close(fds[1]);
        stop(&stage);
        peer_text = NULL;
        peer_link = 0;
    }
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {limits_requests, refuses_when_full, refused_ones_have_little_time,
                                           limits_connections, limits_others};
    static const aco_function_t in_kernel[] = {tells_clients_apart}; /* it replaces a call in the system's table */
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    if (!IS_SIMULATED) {
        REPLACE(getpeername);
        run_http_tests(in_kernel, sizeof in_kernel / sizeof in_kernel[0]);
    }
    return check_result("http_limits");
}
