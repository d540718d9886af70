/* The end of an HTTP server (include/aco/http.h): what the system has received when the server is stopped is answered,
 * on connections that were accepted and on those that were not, and the replies say that their connections end. */
#define _GNU_SOURCE
#include "http_tests.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/un.h>

static aco_semaphore_t gate, at_gate;

static void waits(aco_http_request_t *request, void *text)
{
    aco_semaphore_release(&at_gate);
    aco_semaphore_acquire(&gate);
    tells(request, text);
}

static void tells_health(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply(request, aco_http_is_draining(request) ? 503 : 200, NULL, NULL, 0), 0);
}

static void tells_last(aco_http_request_t *request, void *text)
{
    CHECK_EQ(aco_http_reply_header(request, "connection", "Close"), 0);
    tells(request, text);
}

/* Up to the end of drain_time. */
static void waits_on(aco_http_request_t *request, void *type)
{
    if (type)
        CHECK_EQ(aco_http_reply_begin(request, 200, type, -1), 0);
    aco_semaphore_release(&at_gate);
    FAILS_WITH(aco_semaphore_acquire(&gate), ECANCELED);
}

static const aco_http_route_t routes[] = {{"GET", "/", tells, "hello"},
                                          {"GET", "/silent", waits_on, NULL},
                                          {"GET", "/begun", waits_on, "text/plain"},
                                          {"GET", "/wait", waits, "waited"},
                                          {"GET", "/health", tells_health, NULL},
                                          {"GET", "/last", tells_last, "last"},
                                          {NULL, NULL, NULL, NULL}};

#define ASK(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

/* The system connects and takes the request, and no task runs meanwhile. */
static int knock(const stage_t *stage, const char *text)
{
    struct sockaddr_in address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)atoi(stage->port));
    CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
    CHECK_EQ(aco_io_adopt(fd), 0);
    return fd;
}

static void put(int fd, const char *text)
{
    CHECK_EQ(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* What comes up to the end of the stream, which must be no reset. */
static void read_whole(int fd, const char *wanted)
{
    CHECK_EQ(read_to_end(fd), 0);
    CHECK_TEXT("the statuses", statuses(), wanted);
    CHECK_EQ(aco_io_close(fd), 0);
}

static void await_end(stage_t *stage)
{
    CHECK_EQ(aco_join(stage->task, NULL), 0);
    CHECK_EQ(stage->error, ECANCELED);
}

/* Waits until the listener is closed. In a simulation. */
static void await_closed(const stage_t *stage)
{
    CHECK_EQ(aco_sleep(stage->server.lame_time + 100 * ACO_MILLISECOND), 0);
    FAILS_WITH(aco_io_dial("tcp4", "127.0.0.1", stage->port, NULL), ECONNREFUSED);
}

/* ---- What is there when the server is stopped ---- */

static void *answers_backlog(void *arg)
{
    enum { CLIENTS = 50 };
    stage_t stage = {0};
    int fds[CLIENTS];
    start(&stage, routes);
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = knock(&stage, ASK("/"));
    aco_scope_cancel(&stage.scope);
    for (int i = 0; i < CLIENTS; i++) {
        read_whole(fds[i], "200");
        CHECK_HAS("Connection: close");
    }
    await_end(&stage);
    return arg;
}

/* Two servers on one port, each with a backlog of its own. */
static void *answers_backlogs(void *arg)
{
    enum { CLIENTS = 50 };
    aco_io_options_t reuse = {.flags = ACO_IO_REUSEPORT};
    char address[ACO_IO_ADDRESS_SIZE];
    stage_t stages[2];
    int fds[CLIENTS];
    memset(stages, 0, sizeof stages);
    for (int i = 0; i < 2; i++) {
        stages[i].server.routes = routes;
        stages[i].listener = aco_io_listen("tcp4", "127.0.0.1", i ? stages[0].port : "0", &reuse);
        CHECK_EQ(aco_io_local_address(stages[i].listener, address, sizeof address), 0);
        snprintf(stages[i].port, sizeof stages[i].port, "%s", strchr(address, ':') + 1);
    }
    for (int i = 0; i < 2; i++)
        stages[i].task = aco_spawn(serves, &stages[i], NULL);
    aco_task_yield();
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = knock(&stages[0], ASK("/"));
    for (int i = 0; i < 2; i++)
        aco_scope_cancel(&stages[i].scope);
    for (int i = 0; i < CLIENTS; i++)
        read_whole(fds[i], "200");
    for (int i = 0; i < 2; i++)
        await_end(&stages[i]);
    return arg;
}

/* A server on a Unix socket, and clients whose requests wait in its backlog. */
static void start_unix(stage_t *stage, int *fds, int clients)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/acorn-http-stop-%d", (int)getpid());
    stage->server.routes = routes;
    stage->listener = aco_io_listen("unix", address.sun_path, NULL, NULL);
    CHECK(stage->listener >= 0);
    stage->task = aco_spawn(serves, stage, NULL);
    aco_task_yield();
    for (int i = 0; i < clients; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_EQ(connect(fds[i], (struct sockaddr *)&address, sizeof address), 0);
        CHECK_EQ(aco_io_adopt(fds[i]), 0);
        put(fds[i], ASK("/"));
    }
    unlink(address.sun_path);
}

static void *answers_backlog_of_unix_socket(void *arg)
{
    enum { CLIENTS = 5 };
    stage_t stage = {0};
    int fds[CLIENTS];
    start_unix(&stage, fds, CLIENTS);
    aco_scope_cancel(&stage.scope);
    for (int i = 0; i < CLIENTS; i++)
        read_whole(fds[i], "200");
    await_end(&stage);
    return arg;
}

/* Another process would have the listener, too. */
static void *leaves_shared_backlog(void *arg)
{
    stage_t stage = {0};
    int other, fd, connection;
    start(&stage, routes);
    CHECK_EQ(aco_io_set_shared(stage.listener, 1), 0);
    other = dup(stage.listener);
    CHECK_EQ(aco_io_adopt(other), 0);
    stop(&stage);
    fd = knock(&stage, ASK("/"));
    connection = aco_io_accept(other);
    CHECK(connection >= 0);
    aco_io_close(connection);
    aco_io_close(other);
    aco_io_close(fd);
    return arg;
}

/* Some wait for their turn to be accepted until others have ended. */
static void *answers_backlog_at_limit(void *arg)
{
    enum { CLIENTS = 8 };
    stage_t stage = {0};
    int fds[CLIENTS], first;
    stage.server.max_connections = 1;
    start(&stage, routes);
    first = dial(&stage);
    put(first, ASK("/wait"));
    CHECK_EQ(aco_semaphore_acquire(&at_gate), 0);
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = knock(&stage, ASK("/"));
    for (int i = 0; i < 10; i++) /* one more is accepted, and has no place */
        aco_task_yield();
    aco_scope_cancel(&stage.scope);
    aco_task_yield();
    aco_semaphore_release(&gate);
    read_whole(first, "200");
    for (int i = 0; i < CLIENTS; i++)
        read_whole(fds[i], "200");
    await_end(&stage);
    return arg;
}

/* No descriptor is free when the server is stopped, and later there are some. */
static void *answers_backlog_without_descriptors(void *is_unix)
{
    enum { CLIENTS = 8 };
    stage_t stage = {0};
    struct rlimit before, none;
    int fds[CLIENTS];
    if (is_unix) {
        start_unix(&stage, fds, CLIENTS);
    } else {
        start(&stage, routes);
        for (int i = 0; i < CLIENTS; i++)
            fds[i] = knock(&stage, ASK("/"));
    }
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    aco_scope_cancel(&stage.scope);
    for (int i = 0; i < 10; i++) /* it finds none */
        aco_task_yield();
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < CLIENTS; i++)
        read_whole(fds[i], "200");
    await_end(&stage);
    return NULL;
}

static void *answers_backlog_of_unix_socket_without_descriptors(void *arg)
{
    (void)arg;
    return answers_backlog_without_descriptors(&gate);
}

/* No descriptor is free, and nobody waits: the server ends. */
static void *ends_without_descriptors(void *arg)
{
    enum { ROOM = 64 };
    stage_t stage = {0};
    struct rlimit before, full;
    int fds[ROOM], n = 0;
    stage.server.drain_time = 60 * ACO_SECOND;
    start_unix(&stage, NULL, 0);
    for (int i = 0; i < 10; i++) /* it accepts */
        aco_task_yield();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    full = before;
    full.rlim_cur = ROOM;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &full), 0);
    while (n < ROOM && (fds[n] = dup(0)) >= 0)
        n++;
    CHECK(n < ROOM && errno == EMFILE);
    aco_scope_cancel(&stage.scope);
    CHECK_EQ(aco_join_until(stage.task, NULL, aco_after(10 * ACO_SECOND)), 0);
    while (n)
        close(fds[--n]);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    return arg;
}

/* It gets its turn after the time for idle connections, and has that time then. */
static void *waits_for_late(void *arg)
{
    stage_t stage = {0};
    int first, late;
    stage.server.max_connections = 1;
    stage.server.drain_idle_time = 500 * ACO_MILLISECOND;
    start(&stage, routes);
    first = dial(&stage);
    put(first, ASK("/wait"));
    CHECK_EQ(aco_semaphore_acquire(&at_gate), 0);
    late = knock(&stage, "");
    aco_scope_cancel(&stage.scope);
    CHECK_EQ(aco_sleep(stage.server.drain_idle_time + 20 * ACO_MILLISECOND), 0);
    aco_semaphore_release(&gate);
    read_whole(first, "200");
    await_closed(&stage); /* it has been accepted */
    put(late, ASK("/"));
    read_whole(late, "200");
    await_end(&stage);
    return arg;
}

/* A handshake that goes on for ever. */
static aco_stream_t *opens_never(int fd, void *arg)
{
    (void)arg;
    CHECK(aco_semaphore_acquire(&gate) != 0);
    aco_io_close(fd);
    return NULL;
}

/* One of these has the only place, another one waits for it: drain_time is not what ends them. */
static void *ends_handshakes(void *arg)
{
    uint64_t failures[ACO_HTTP_FAILURES] = {0};
    stage_t stage = {0};
    int fds[2];
    stage.server.max_connections = 1;
    stage.server.head_time = -1;
    stage.server.drain_idle_time = ACO_MILLISECOND;
    stage.server.open = opens_never;
    stage.server.failures = failures;
    start(&stage, routes);
    for (int i = 0; i < 2; i++)
        fds[i] = knock(&stage, "");
    for (int i = 0; i < 10; i++)
        aco_task_yield();
    aco_scope_cancel(&stage.scope);
    await_end(&stage);
    CHECK_EQ(failures[ACO_HTTP_SLOW], 2);
    for (int i = 0; i < 2; i++)
        aco_io_close(fds[i]);
    return arg;
}

static void count_failed(const aco_http_failure_t *failure, void *arg)
{
    CHECK_EQ(failure->kind, ACO_HTTP_FAILED);
    CHECK_EQ(failure->error, ECANCELED);
    CHECK(!strcmp(failure->message, "the server's drain_time is over"));
    CHECK(failure->request != NULL);
    ++*(int *)arg;
}

/* What drain_time cancels is told, but for a reply that needs no body and is therefore whole. */
static void *tells_of_cancelled(void *arg)
{
    stage_t stage = {0};
    int failed = 0, silent, begun, head;
    stage.server.drain_time = ACO_MILLISECOND;
    stage.server.failed = count_failed;
    stage.server.failed_arg = &failed;
    start(&stage, routes);
    silent = dial(&stage);
    begun = dial(&stage);
    head = dial(&stage);
    put(silent, ASK("/silent"));
    put(begun, ASK("/begun"));
    put(head, "HEAD /begun HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 3; i++)
        CHECK_EQ(aco_semaphore_acquire(&at_gate), 0);
    aco_scope_cancel(&stage.scope);
    await_end(&stage);
    CHECK_EQ(failed, 2);
    read_whole(head, "200");
    read_to_end(begun);
    CHECK(!strstr(got, "0\r\n\r\n"));
    aco_io_close(begun);
    aco_io_close(silent);
    return arg;
}

static void *answers_idle(void *arg)
{
    stage_t stage = {0};
    int used, fresh, piped;
    stage.server.drain_idle_time = 1; /* less than anything: these have come before */
    start(&stage, routes);
    used = dial(&stage);
    fresh = dial(&stage);
    piped = dial(&stage);
    put(used, ASK("/"));
    CHECK(aco_io_read(used, got, sizeof got) > 0);
    put(used, ASK("/"));
    put(fresh, ASK("/"));
    put(piped, ASK("/") ASK("/none") ASK("/"));
    aco_scope_cancel(&stage.scope);
    read_whole(used, "200");
    read_whole(fresh, "200");
    read_whole(piped, "200 404 200");
    {
        const char *close = strstr(got, "Connection: close");
        CHECK(close && !strstr(close + 1, "Connection: close")); /* the last reply's */
        CHECK(close && !strstr(close, "HTTP/1.1"));
    }
    await_end(&stage);
    return arg;
}

/* An idle connection has time to begin a request. */
static void *waits_for_idle(void *arg)
{
    stage_t stage = {0};
    int fd;
    stage.server.drain_idle_time = stage.server.drain_time = -1;
    start(&stage, routes);
    fd = dial(&stage);
    put(fd, ASK("/health"));
    CHECK_EQ(read_reply(fd), 200);
    aco_scope_cancel(&stage.scope);
    await_closed(&stage);
    put(fd, ASK("/health"));
    read_whole(fd, "503");
    CHECK_HAS("Connection: close");
    await_end(&stage);
    return arg;
}

/* Empty lines do not begin a request: they leave a connection idle, and head_time does not count. */
static void *waits_behind_empty_lines(void *arg)
{
    stage_t stage = {0};
    int fd;
    stage.server.head_time = 20 * ACO_MILLISECOND;
    start(&stage, routes);
    fd = dial(&stage);
    put(fd, "\r\n");
    CHECK_EQ(aco_sleep(100 * ACO_MILLISECOND), 0);
    put(fd, ASK("/") "\r\n\r\n");
    CHECK_EQ(read_reply(fd), 200);
    CHECK_EQ(aco_sleep(100 * ACO_MILLISECOND), 0);
    put(fd, ASK("/"));
    CHECK_EQ(read_reply(fd), 200);
    put(fd, "\r");
    CHECK_EQ(aco_sleep(100 * ACO_MILLISECOND), 0);
    put(fd, "\n\r\n\r"); /* lines in halves */
    CHECK_EQ(aco_sleep(100 * ACO_MILLISECOND), 0);
    put(fd, "\n" ASK("/"));
    CHECK_EQ(read_reply(fd), 200);
    put(fd, "\r\n");
    stop(&stage);
    CHECK_EQ(read_to_end(fd), 0);
    CHECK_EQ(got_n, 0);
    CHECK_EQ(aco_io_close(fd), 0);
    return arg;
}

/* Empty lines are no request, however many come. */
static void *closes_behind_empty_lines(void *arg)
{
    stage_t stage = {0};
    int64_t began = aco_now();
    int fd;
    stage.server.idle_time = 20 * ACO_MILLISECOND;
    start(&stage, routes);
    fd = dial(&stage);
    while (aco_io_write_all(fd, "\r\n", 2) == 2 && aco_now() - began < 10 * ACO_SECOND)
        aco_sleep(ACO_MILLISECOND);
    CHECK(aco_now() - began < 10 * ACO_SECOND);
    CHECK_EQ(aco_io_close(fd), 0);
    stop(&stage);
    return arg;
}

/* For a while the server goes on: only a health check notices. */
static void *is_lame_first(void *arg)
{
    stage_t stage = {0};
    int fd, kept;
    stage.server.lame_time = ACO_SECOND;
    start(&stage, routes);
    kept = dial(&stage);
    aco_scope_cancel(&stage.scope);
    aco_task_yield();
    fd = knock(&stage, ASK("/health"));
    CHECK_EQ(read_reply(fd), 503);
    put(kept, ASK("/"));
    CHECK_EQ(read_reply(kept), 200);
    await_closed(&stage);
    put(kept, ASK("/"));
    read_whole(kept, "200");
    CHECK_HAS("Connection: close");
    read_to_end(fd);
    aco_io_close(fd);
    await_end(&stage);
    return arg;
}

/* ---- A handler ends its connection ---- */

static void *ends_connections(void *arg)
{
    stage_t stage = {0};
    int fd;
    start(&stage, routes);
    fd = dial(&stage);
    put(fd, ASK("/last"));
    read_whole(fd, "200");
    CHECK_HAS("\r\nConnection: close\r\n");
    /* What the client sends meanwhile does not take the reply away. */
    fd = dial(&stage);
    put(fd, ASK("/") ASK("/last") ASK("/"));
    aco_sleep(ACO_MILLISECOND);
    put(fd, ASK("/"));
    read_whole(fd, "200 200");
    stop(&stage);
    return arg;
}

/* The client asks for the end, and yet sends more: a line end, as some do. */
static void *ends_as_asked(void *arg)
{
    static const char *const requests[] = {"GET /wait HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
                                           "GET /wait HTTP/1.0\r\n\r\n"};
    stage_t stage = {0};
    start(&stage, routes);
    for (int i = 0; i < 2; i++) {
        int fd = dial(&stage);
        put(fd, requests[i]);
        CHECK_EQ(aco_semaphore_acquire(&at_gate), 0);
        put(fd, "\r\n");
        CHECK_EQ(aco_sleep(100 * ACO_MILLISECOND), 0); /* it comes before the reply's end */
        aco_semaphore_release(&gate);
        read_whole(fd, "200");
    }
    stop(&stage);
    return arg;
}

/* ---- A caller that cannot wait ---- */

static int serve_nothing(void)
{
    const aco_http_server_options_t server = {.routes = routes};
    return aco_http_serve(aco_io_listen("tcp4", "127.0.0.1", "0", NULL), &server);
}

static void *serves_in_coroutine(void *arg)
{
    FAILS_WITH(serve_nothing(), EPERM);
    return arg;
}

static void test_other_callers(void)
{
    aco_t *co = aco_new(serves_in_coroutine, NULL, NULL);
    int before = count_descriptors();
    aco_run_stats_t stats;
    FAILS_WITH(serve_nothing(), EPERM);
    aco_resume(co);
    aco_destroy(co);
    CHECK_EQ(aco_run_stats(&stats), 0);
    CHECK_EQ(stats.tasks, 0); /* none was left behind */
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(count_descriptors(), before);
}

int main(void)
{
    static const aco_function_t tests[] = {answers_backlog_at_limit, tells_of_cancelled};
    static const aco_function_t in_kernel[] = {answers_backlog, /* connects while no task runs */
                                               answers_backlogs,
                                               answers_backlog_of_unix_socket,
                                               leaves_shared_backlog,
                                               answers_idle,
                                               answers_backlog_without_descriptors, /* setrlimit() */
                                               answers_backlog_of_unix_socket_without_descriptors,
                                               ends_without_descriptors};
    static const aco_function_t in_virtual_time[] = {
        waits_for_late, ends_handshakes,  waits_for_idle, waits_behind_empty_lines, closes_behind_empty_lines,
        is_lame_first,  ends_connections, ends_as_asked};
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    if (IS_SIMULATED) {
        run_http_tests(in_virtual_time, sizeof in_virtual_time / sizeof in_virtual_time[0]);
    } else {
        run_http_tests(in_kernel, sizeof in_kernel / sizeof in_kernel[0]);
        test_other_callers();
    }
    return check_result("http_stop");
}
