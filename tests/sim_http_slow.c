/* Clients that send or read slowly, but not so slowly that a single wait would end them (aco/http.h: write_rate,
 * body_rate), in virtual time. */
#define _GNU_SOURCE
#define SIMULATED_RUNS 3
#ifdef HTTP_WITH_HTTP2
#include "http2_client.h"
#else
#include "http_tests.h"
#endif

#include <aco/file.h>

#include <fcntl.h>

enum { SIZE = 4 << 20 };

static char big[SIZE];
static int write_error; /* of the last reply */

static void writes(aco_http_request_t *request, void *arg)
{
    (void)arg;
    write_error = 0;
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, SIZE), 0);
    for (size_t done = 0; done < SIZE; done += 4096)
        if (aco_http_reply_write(request, big + done, 4096) != 0) {
            write_error = errno;
            return;
        }
}

static void writes_file(aco_http_request_t *request, void *path)
{
    int fd = aco_file_open(path, O_RDONLY, 0);
    CHECK(fd >= 0);
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, SIZE), 0);
    write_error = aco_http_reply_write_file(request, fd, 0, SIZE) == 0 ? 0 : errno;
    aco_io_close(fd);
}

static char path[] = "/slow";

static const aco_http_route_t routes[] = {{"GET", "/", writes, NULL},
                                          {"GET", "/file", writes_file, path},
                                          {"POST", "/echo", echoes, NULL},
                                          {NULL, NULL, NULL, NULL}};

static void make_file(void)
{
    int fd = aco_file_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0);
    for (size_t done = 0; done < SIZE;) {
        ssize_t n = aco_file_pwrite(fd, big + done, SIZE - done, (int64_t)done);
        CHECK(n > 0);
        done += (size_t)n;
    }
    aco_io_close(fd);
}

/* Reads this many bytes every 20 s, for 20 minutes at most. */
static void read_slowly(int fd, size_t part)
{
    for (int i = 0; i < 60; i++) {
        if (aco_io_read_exactly(fd, got, part) != (ssize_t)part)
            break;
        CHECK_EQ(aco_sleep(20 * ACO_SECOND), 0);
    }
}

static const struct {
    size_t part; /* bytes every 20 s: so many free a third of a socket's buffer in write_time */
    int rate, is_cut;
} readers[] = {{1, 0, 1}, {200000, 0, 0}, {200000, 20000, 1}, {200000, -1, 0}};

/* Each wait ends before write_time is over. */
static void *slow_readers_are_cut(void *arg)
{
    static const char *const requests[] = {GET(""), "GET /file HTTP/1.1\r\n" HOST "\r\n"};
    make_file();
    for (size_t i = 0; i < 2 * sizeof readers / sizeof readers[0]; i++) {
        uint64_t failures[ACO_HTTP_FAILURES] = {0};
        const char *request = requests[i % 2];
        stage_t stage = {0};
        int fd;
        stage.server.failures = failures;
        stage.server.write_rate = readers[i / 2].rate;
        start(&stage, routes);
        fd = dial(&stage);
        CHECK(aco_io_write_all(fd, request, strlen(request)) > 0);
        read_slowly(fd, readers[i / 2].part);
        CHECK_EQ(failures[ACO_HTTP_SLOW], readers[i / 2].is_cut);
        CHECK_EQ(write_error, readers[i / 2].is_cut ? ETIMEDOUT : 0);
        if (!readers[i / 2].is_cut)
            CHECK_EQ(read_to_end(fd), 0);
        aco_io_close(fd);
        stop(&stage);
    }
    return arg;
}

/* Sends 200 bytes of a body, one each so many ms. The status of the reply. */
static int post_slowly(const stage_t *stage, const char *head, const char *piece, int ms)
{
    int fd = dial(stage), status;
    CHECK(aco_io_write_all(fd, head, strlen(head)) > 0);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(aco_sleep(ms * ACO_MILLISECOND), 0);
        if (aco_io_write_all(fd, piece, strlen(piece)) < 0)
            break;
    }
    if (strlen(piece) > 1)
        (void)aco_io_write_all(fd, "0\r\n\r\n", 5);
    (void)aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    status = atoi(got + 9);
    aco_io_close(fd);
    return status;
}

static void *slow_bodies_are_refused(void *arg)
{
    static const char *const heads[] = {POST("Content-Length: 200\r\n", ""),
                                        POST("Transfer-Encoding: chunked\r\n", "")};
    static const char *const pieces[] = {"x", "1\r\nx\r\n"};
    static const struct {
        int rate, ms, status;
    } bodies[] = {{0, 10, 200}, {0, 50, 408}, {10, 50, 200}, {10, 200, 408}, {-1, 50, 408}};
    for (size_t i = 0; i < 2 * sizeof bodies / sizeof bodies[0]; i++) {
        stage_t stage = {0};
        stage.server.body_time = 5 * ACO_SECOND;
        stage.server.body_rate = bodies[i / 2].rate;
        start(&stage, routes);
        CHECK_EQ(post_slowly(&stage, heads[i % 2], pieces[i % 2], bodies[i / 2].ms), bodies[i / 2].status);
        stop(&stage);
    }
    return arg;
}

/* Neither rate nor numbers overflow. */
static void *rates_have_no_limit(void *arg)
{
    stage_t stage = {0};
    stage.server.body_time = INT64_MAX - 1;
    stage.server.write_time = INT64_MAX - 1;
    stage.server.body_rate = 1;
    stage.server.write_rate = INT32_MAX;
    start(&stage, routes);
    CHECK_EQ(post_slowly(&stage, POST("Content-Length: 200\r\n", ""), "x", 1000), 200);
    stop(&stage);
    return arg;
}

#ifdef HTTP_WITH_HTTP2
static const struct {
    size_t part;
    int rate, is_cut;
} windows[] = {{1, 0, 1}, {4000, 0, 1}, {1, -1, 0}, {8000, 0, 0}, {8000, 2000, 1}};

/* A window that opens by so many bytes every 20 s, until the stream is closed, or for 20 minutes. Whether it is. */
static int open_slowly(h2_client_t *client, int id, size_t part)
{
    for (int i = 0; i < 60 && !client->is_over && !h2_find(client, id)->is_closed; i++) {
        aco_scope_t scope;
        CHECK_EQ(nghttp2_submit_window_update(client->session, 0, id, (int32_t)part), 0);
        CHECK_EQ(nghttp2_submit_window_update(client->session, 0, 0, (int32_t)part), 0);
        CHECK_EQ(aco_scope_begin(&scope, aco_after(20 * ACO_SECOND)), 0);
        while (!scope.error && !h2_find(client, id)->is_closed) {
            h2_step(client);
            if (scope.error)
                client->is_over = 0; /* nothing came */
        }
        aco_scope_end(&scope);
    }
    return h2_find(client, id)->is_closed;
}

static void *slow_windows_are_cut(void *arg)
{
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        static h2_client_t client;
        stage_t stage = {0};
        int id;
        stage.server.write_rate = windows[i].rate;
        start(&stage, routes);
        client.window = 1;
        h2_connect(&client, aco_stream_open(dial(&stage)));
        id = h2_request(&client, "GET", "/", NULL, 0);
        client.takes_nothing = 1;
        CHECK_EQ(nghttp2_session_send(client.session), 0); /* the request before its window */
        h2_round(&client);
        CHECK_EQ(open_slowly(&client, id, windows[i].part), windows[i].is_cut);
        CHECK_EQ(write_error, windows[i].is_cut ? ETIMEDOUT : 0);
        h2_close(&client);
        stop(&stage);
    }
    return arg;
}
#endif

int main(void)
{
    static const aco_function_t tests[] = {
        slow_readers_are_cut,
        slow_bodies_are_refused,
        rates_have_no_limit,
#ifdef HTTP_WITH_HTTP2
        slow_windows_are_cut,
#endif
    };
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("sim_http_slow");
}
