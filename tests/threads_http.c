/* An HTTP server in a set of threads that is cancelled, with all its tasks: it ends, and a request that is under way
 * still gets its reply, in the server's drain_time. */
#include <aco/http.h>
#include "threads_tests.h"

static int is_asked, is_answered;

static void answer(aco_http_request_t *request, void *unused)
{
    (void)unused;
    is_asked = 1;
    CHECK_EQ(aco_sleep(5 * ACO_MILLISECOND), 0);
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", "x", 1), 0);
}

static void *is_client(void *port)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    char start[12] = "";
    aco_scope_t shield;
    int fd;
    aco_shield_begin(&shield, ACO_FOREVER);
    fd = aco_io_dial("tcp", "127.0.0.1", port, NULL);
    CHECK(fd >= 0);
    CHECK_EQ(aco_io_write_all(fd, request, sizeof request - 1), sizeof request - 1);
    is_answered = aco_io_read_exactly(fd, start, sizeof start) == sizeof start &&
                  memcmp(start, "HTTP/1.1 200", sizeof start) == 0;
    CHECK_EQ(aco_io_close(fd), 0);
    aco_scope_end(&shield);
    return NULL;
}

static void *cancels(void *unused)
{
    UNTIL(is_asked);
    CHECK_EQ(aco_threads_cancel(aco_threads_current()), 0);
    return unused;
}

static void *serves(void *unused)
{
    static const aco_http_route_t routes[] = {{"GET", "/", answer, NULL}, {NULL, NULL, NULL, NULL}};
    aco_http_server_options_t server = {0};
    char address[ACO_IO_ADDRESS_SIZE];
    aco_options_t detached = {0};
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    detached.flags = ACO_DETACHED;
    CHECK(aco_spawn(is_client, strchr(address, ':') + 1, &detached) != NULL);
    CHECK(aco_spawn(cancels, NULL, &detached) != NULL);
    server.routes = routes;
    FAILS_WITH(aco_http_serve(listener, &server), ECANCELED);
    return unused;
}

int main(void)
{
    run_on(1, serves, NULL);
    CHECK(is_answered);
    return check_result("threads_http");
}
