/* Replies of an HTTP server (include/aco/http.h): what a handler may say and when, pipelining, shutdown, files. */
#define _GNU_SOURCE
#include "http_tests.h"

#include <aco/file.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

/* ---- Replies ---- */

static void replies_wrongly(aco_http_request_t *request, void *arg)
{
    (void)arg;
    FAILS_WITH(aco_http_reply_header(request, "A B", "c"), EINVAL);
    FAILS_WITH(aco_http_reply_header(request, "", "c"), EINVAL);
    FAILS_WITH(aco_http_reply_header(request, "A", "c\r\nB: d"), EINVAL);
    FAILS_WITH(aco_http_reply_header(request, "A", "c\n"), EINVAL);
    FAILS_WITH(aco_http_reply_header(request, "content-Length", "1"), EINVAL);
    FAILS_WITH(aco_http_reply_header(request, "Connection", "keep-alive"), EINVAL);
    FAILS_WITH(aco_http_reply_write(request, "a", 1), EINVAL);
    FAILS_WITH(aco_http_reply_begin(request, 199, NULL, 0), EINVAL);
    FAILS_WITH(aco_http_reply_begin(request, 600, NULL, 0), EINVAL);
    FAILS_WITH(aco_http_reply_begin(request, 200, "a\r\nb", 0), EINVAL);
    FAILS_WITH(aco_http_reply(request, 200, NULL, "", SIZE_MAX), EINVAL);
    for (int i = 0; i < 100; i++) /* more than the first memory for them */
        CHECK_EQ(aco_http_reply_header(request, "Set-Cookie", "0123456789012345678901234567890123456789"), 0);
    {
        char *large = aco_http_request_allocate(request, 8000);
        memset(large, 'x', 7999);
        large[7999] = 0;
        FAILS_WITH(aco_http_reply_header(request, "A", large), ENOMEM);
    }
    CHECK_EQ(aco_http_reply_begin(request, 299, "a/b", 3), 0);
    FAILS_WITH(aco_http_reply_begin(request, 200, NULL, 3), EBUSY);
    FAILS_WITH(aco_http_reply(request, 200, NULL, "", 0), EBUSY);
    FAILS_WITH(aco_http_reply_header(request, "A", "b"), EBUSY);
    CHECK_EQ(aco_http_reply_write(request, "ab", 2), 0);
    FAILS_WITH(aco_http_reply_write(request, "cd", 2), EMSGSIZE);
    FAILS_WITH(aco_http_reply_write_file(request, 0, -1, 1), EINVAL);
    FAILS_WITH(aco_http_reply_write_file(request, 0, 0, 2), EMSGSIZE);
    CHECK_EQ(aco_http_reply_flush(request), 0);
    CHECK_EQ(aco_http_reply_write(request, "c", 1), 0);
}

static void replies_short(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, 10), 0);
    CHECK_EQ(aco_http_reply_write(request, "short", 5), 0);
}

static void gives_up(aco_http_request_t *request, void *length)
{
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, (intptr_t)length), 0);
    CHECK_EQ(aco_http_reply_write(request, "part", 4), 0);
    aco_http_reply_abort(request);
}

typedef struct logged {
    int n, statuses[64];
    uint64_t sent;
} logged_t;

static void logs(const aco_http_request_t *request, void *arg)
{
    logged_t *logged = arg;
    logged->statuses[logged->n++ % 64] = request->status;
    logged->sent += request->sent;
    CHECK(request->method != NULL && request->target != NULL && request->fd >= 0 && request->began > 0);
}

/* The reset that ends such a reply takes away what is on its way. On loopback nothing is. */
static void check_cut(const char *what, const char *wanted)
{
    if (IS_SIMULATED)
        CHECK(strncmp(wanted, body(), strlen(body())) == 0);
    else
        CHECK_TEXT(what, body(), wanted);
}

static void *replies(void *arg)
{
    static const aco_http_route_t wrong[] = {{"GET", "/", replies_wrongly, NULL},
                                             {"GET", "/short", replies_short, NULL},
                                             {"GET", "/up", gives_up, (void *)-1},
                                             {"GET", "/up4", gives_up, (void *)4},
                                             {"GET", "/none", has_no_body, NULL},
                                             {"GET", "/text", streams_text, NULL},
                                             {NULL, NULL, NULL, NULL}};
    static const aco_http_route_t bad[] = {{"GET", "/{a", says_nothing, NULL}, {NULL, NULL, NULL, NULL}};
    logged_t logged = {0};
    stage_t stage = {0};
    ssize_t n;
    int fd;
    (void)arg;
    stage.server.log = logs;
    stage.server.log_arg = &logged;
    start(&stage, wrong);
    ask(&stage, GET("") GET(""));
    CHECK_TEXT("two", statuses(), "299 299");
    CHECK_HAS("HTTP/1.1 299 \r\n");
    CHECK_TEXT("the last body", got + got_n - 3, "abc");
    ask(&stage, "GET /short HTTP/1.1\r\n" HOST "\r\n" GET(""));
    check_cut("a reply that lacks bytes ends the connection", "short");
    ask(&stage, "GET /up HTTP/1.1\r\n" HOST "\r\n" GET(""));
    check_cut("one without a length, too", "4\r\npart\r\n");
    ask(&stage, "GET /up4 HTTP/1.1\r\n" HOST "\r\n" GET(""));
    check_cut("and one that is whole", "part");
    fd = dial(&stage);
    aco_io_write_all(fd, "GET /up HTTP/1.0\r\n\r\n", 20);
    CHECK_EQ(aco_io_wait_readable(fd), 0);
    while ((n = aco_io_read(fd, got, 100)) > 0)
        ;
    CHECK(n < 0 && errno == ECONNRESET); /* not: the end of the stream */
    aco_io_close(fd);
    ask(&stage, "GET /none HTTP/1.1\r\n" HOST "\r\n" GET(""));
    CHECK_TEXT("no body", statuses(), "204 299");
    CHECK(strstr(got, "Content-Length: 0") == NULL);
    ask(&stage, "GET /text HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("chunks", body(), "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
    ask(&stage, "GET /text HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK_TEXT("to HTTP/1.0", body(), "abc");
    CHECK_HAS("Connection: close");
    ask(&stage, "HEAD /text HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("HEAD", body(), "");
    ask(&stage, "?nonsense\r\n\r\n");
    CHECK_EQ(logged.n, 12);
    CHECK_EQ(logged.statuses[11], 400);
    CHECK_EQ(logged.statuses[6], 204);
    stop(&stage);
    stage.server.routes = bad;
    stage.listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    FAILS_WITH(aco_http_serve(stage.listener, &stage.server), EINVAL);
    return NULL;
}

static void replies_status(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply(request, atoi(request->query), NULL, NULL, 0), 0);
}

/* The reasons of RFC 9110 and RFC 6585. */
static void *names_statuses(void *arg)
{
    static const char *const known[] = {"200 OK",
                                        "201 Created",
                                        "202 Accepted",
                                        "203 Non-Authoritative Information",
                                        "204 No Content",
                                        "205 Reset Content",
                                        "206 Partial Content",
                                        "300 Multiple Choices",
                                        "301 Moved Permanently",
                                        "302 Found",
                                        "303 See Other",
                                        "304 Not Modified",
                                        "307 Temporary Redirect",
                                        "308 Permanent Redirect",
                                        "400 Bad Request",
                                        "401 Unauthorized",
                                        "402 Payment Required",
                                        "403 Forbidden",
                                        "404 Not Found",
                                        "405 Method Not Allowed",
                                        "406 Not Acceptable",
                                        "408 Request Timeout",
                                        "409 Conflict",
                                        "410 Gone",
                                        "411 Length Required",
                                        "412 Precondition Failed",
                                        "413 Content Too Large",
                                        "414 URI Too Long",
                                        "415 Unsupported Media Type",
                                        "416 Range Not Satisfiable",
                                        "417 Expectation Failed",
                                        "421 Misdirected Request",
                                        "422 Unprocessable Content",
                                        "426 Upgrade Required",
                                        "429 Too Many Requests",
                                        "431 Request Header Fields Too Large",
                                        "500 Internal Server Error",
                                        "501 Not Implemented",
                                        "502 Bad Gateway",
                                        "503 Service Unavailable",
                                        "504 Gateway Timeout",
                                        "505 HTTP Version Not Supported",
                                        "507 Insufficient Storage"};
    static const aco_http_route_t any[] = {{"GET", "/", replies_status, NULL}, {NULL, NULL, NULL, NULL}};
    stage_t stage = {0};
    (void)arg;
    start(&stage, any);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char request[64], line[64];
        snprintf(request, sizeof request, "GET /?%.3s HTTP/1.1\r\n" HOST "\r\n", known[i]);
        snprintf(line, sizeof line, "HTTP/1.1 %s\r\n", known[i]);
        ask(&stage, request);
        CHECK(strncmp(got, line, strlen(line)) == 0);
    }
    stop(&stage);
    return NULL;
}

/* ---- The date ---- */

static void replies_later(aco_http_request_t *request, void *second)
{
    time_t began = time(NULL);
    while (time(NULL) == began) /* the request has begun in another second */
        CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    *(time_t *)second = time(NULL);
    CHECK_EQ(aco_http_reply(request, 200, NULL, NULL, 0), 0);
}

static void dates_itself(aco_http_request_t *request, void *date)
{
    CHECK_EQ(aco_http_reply_header(request, "date", date), 0);
    CHECK_EQ(aco_http_reply(request, 200, NULL, NULL, 0), 0);
}

/* It is the reply's, also if the text for the second in which the request began is there already. */
static void *dates_replies(void *arg)
{
    time_t second = 0;
    const aco_http_route_t routes[] = {{"GET", "/", tells, "x"},
                                       {"GET", "/later", replies_later, &second},
                                       {"GET", "/own", dates_itself, "Sun, 06 Nov 1994 08:49:37 GMT"},
                                       {NULL, NULL, NULL, NULL}};
    stage_t stage = {0};
    struct tm date = {0};
    start(&stage, routes);
    ask(&stage, GET(""));
    ask(&stage, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("the status", statuses(), "200");
    CHECK(strptime(strstr(got, "Date: ") + 6, "%a, %d %b %Y %T GMT", &date) != NULL);
    CHECK(timegm(&date) >= second);
    ask(&stage, "GET /own HTTP/1.1\r\n" HOST "\r\n");
    CHECK_HAS("\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    CHECK(strstr(got, "\r\nDate: ") == NULL); /* there is one, the handler's */
    ask(&stage, GET(""));
    CHECK_HAS("\r\nDate: ");
    stop(&stage);
    return arg;
}

/* ---- Pipelining, and a handler that waits ---- */

static aco_semaphore_t gate, at_gate;

static void waits(aco_http_request_t *request, void *arg)
{
    aco_semaphore_release(&at_gate);
    aco_semaphore_acquire(&gate);
    tells(request, arg);
}

static const aco_http_route_t waiting[] = {
    {"GET", "/", tells, "hello\n"}, {"GET", "/wait", waits, "waited"}, {NULL, NULL, NULL, NULL}};

#define WAIT "GET /wait HTTP/1.1\r\n" HOST "\r\n"

static void *pipelines(void *arg)
{
    static const char one[] = GET("");
    enum { MANY = IS_SIMULATED ? 50 : 1000 }; /* all have room in the buffers on the way */
    stage_t stage = {0};
    char *all = malloc(MANY * sizeof one), bytes[16];
    aco_io_stats_t before, after;
    int fd;
    (void)arg;
    start(&stage, waiting);
    for (int i = 0; i < MANY; i++)
        memcpy(all + (size_t)i * (sizeof one - 1), one, sizeof one - 1);
    talk(&stage, all, MANY * (sizeof one - 1), IN_ONE_PIECE);
    {
        int n = 0;
        for (const char *at = got; (at = strstr(at, "HTTP/1.1 200 OK")) != NULL; at++)
            n++;
        CHECK_EQ(n, MANY);
    }
    /* The replies to ten requests go out together. */
    fd = dial(&stage);
    aco_io_stats(&before);
    aco_io_write_all(fd, all, 10 * (sizeof one - 1));
    CHECK_EQ(aco_io_read_exactly(fd, got, 1), 1);
    aco_io_stats(&after);
    CHECK(after.calls - before.calls <= 8 || IS_SIMULATED); /* there they come in parts */
    aco_io_close(fd);
    /* A reply does not wait for the next one's handler. */
    fd = dial(&stage);
    aco_io_write_all(fd, GET("") WAIT, sizeof(GET("") WAIT) - 1);
    CHECK_EQ(aco_io_read_exactly(fd, bytes, 15), 15);
    CHECK(memcmp(bytes, "HTTP/1.1 200 OK", 15) == 0);
    aco_semaphore_release(&gate);
    aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    CHECK_TEXT("the second reply", got + got_n - 6, "waited");
    aco_io_close(fd);
    free(all);
    stop(&stage);
    return NULL;
}

static char large_body[3000];

static void tells_much(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply(request, 200, NULL, large_body, sizeof large_body), 0);
}

static void yields_twice(aco_http_request_t *request, void *text)
{
    aco_task_yield();
    aco_task_yield();
    tells(request, text);
}

/* The replies that wait for the next one's handler are sent for many connections in a row, while those handlers go
 * on. */
static void *pipelines_at_once(void *arg)
{
    enum { CLIENTS = 130 };
    static const char both[] = "GET /much HTTP/1.1\r\n" HOST "\r\nGET /slow HTTP/1.1\r\n" HOST "\r\n";
    static const aco_http_route_t routes[] = {
        {"GET", "/much", tells_much, NULL}, {"GET", "/slow", yields_twice, "slow"}, {NULL, NULL, NULL, NULL}};
    stage_t stage = {0};
    int fds[CLIENTS];
    memset(large_body, 'm', sizeof large_body);
    start(&stage, routes);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = dial(&stage);
        CHECK_EQ(aco_io_write_all(fds[i], both, strlen("GET /much HTTP/1.1\r\n" HOST "\r\n")), 31);
        CHECK_EQ(read_reply(fds[i]), 200);
    }
    for (int i = 0; i < CLIENTS; i++) /* nobody runs in between */
        CHECK_EQ(send(fds[i], both, sizeof both - 1, MSG_DONTWAIT), sizeof both - 1);
    for (int i = 0; i < CLIENTS; i++) {
        aco_io_shutdown(fds[i], SHUT_WR);
        read_to_end(fds[i]);
        CHECK_TEXT("the statuses", statuses(), "200 200");
        CHECK(got_n > sizeof large_body && strspn(body(), "m") == sizeof large_body);
        CHECK_TEXT("the second body", got + got_n - 4, "slow");
        aco_io_close(fds[i]);
    }
    stop(&stage);
    return arg;
}

/* ---- Fairness ---- */

enum { IN_A_ROW = 1280 };

static turns_t turns;
static int handled;

/* A stream to a client that takes it at once. */
static void streams_bytes(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, IN_A_ROW), 0);
    turns.n = 0;
    for (int i = 0; i < IN_A_ROW; i++) {
        CHECK_EQ(aco_http_reply_write(request, "s", 1), 0);
        CHECK_EQ(aco_http_reply_flush(request), 0);
    }
    CHECK(turns.n >= IN_A_ROW / 128);
}

/* One of many requests that are there already. */
static void counts_requests(aco_http_request_t *request, void *text)
{
    if (handled++ == 0)
        turns.n = 0;
    tells(request, text);
    if (handled == IN_A_ROW)
        CHECK(turns.n >= IN_A_ROW / 128);
}

static void *is_fair(void *arg)
{
    static const char one[] = "GET /many HTTP/1.1\r\n" HOST "\r\n";
    static const aco_http_route_t routes[] = {
        {"GET", "/stream", streams_bytes, NULL}, {"GET", "/many", counts_requests, "x"}, {NULL, NULL, NULL, NULL}};
    size_t n = sizeof one - 1;
    char *all = malloc(IN_A_ROW * n);
    stage_t stage = {0};
    start(&stage, routes);
    start_counting(&turns);
    ask(&stage, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    CHECK_EQ(strspn(body(), "s"), IN_A_ROW);
    for (int i = 0; i < IN_A_ROW; i++)
        memcpy(all + (size_t)i * n, one, n);
    talk(&stage, all, IN_A_ROW * n, IN_ONE_PIECE);
    CHECK_EQ(handled, IN_A_ROW);
    stop_counting(&turns);
    free(all);
    stop(&stage);
    return arg;
}

/* ---- Connections whose tasks are on one share stack ---- */

static void *take_turns(void *arg)
{
    enum { MANY = 3 };
    aco_options_t task = {0};
    stage_t stage = {0};
    int fds[MANY];
    task.stack = aco_share_stack_new(0);
    stage.server.task = &task;
    stage.server.drain_idle_time = ACO_MILLISECOND;
    start(&stage, waiting);
    for (int i = 0; i < MANY; i++) {
        fds[i] = dial(&stage);
        aco_io_write_all(fds[i], WAIT, sizeof WAIT - 1);
        CHECK_EQ(aco_semaphore_acquire(&at_gate), 0);
    }
    for (int i = 0; i < MANY; i++)
        aco_semaphore_release(&gate);
    for (int i = 0; i < MANY; i++) {
        aco_io_shutdown(fds[i], SHUT_WR);
        read_to_end(fds[i]);
        CHECK_TEXT("its own reply", body(), "waited");
        aco_io_close(fds[i]);
    }
    for (int i = 0; i < MANY; i++) {
        fds[i] = dial(&stage);
        aco_io_write_all(fds[i], GET(""), sizeof GET("") - 1);
        CHECK_EQ(aco_io_read_exactly(fds[i], got, 16), 16);
    }
    stop(&stage); /* looks which ones are idle, without their frames */
    for (int i = 0; i < MANY; i++)
        aco_io_close(fds[i]);
    aco_share_stack_destroy(task.stack);
    return arg;
}

/* ---- Shutdown ---- */

static void *drains(void *arg)
{
    stage_t stage = {0};
    int idle, busy, hung;
    (void)arg;
    stage.server.drain_time = -1;
    stage.server.drain_idle_time = 50 * ACO_MILLISECOND; /* then nobody listens any more: a client is refused at once */
    start(&stage, waiting);
    idle = dial(&stage);
    busy = dial(&stage);
    aco_io_write_all(idle, GET(""), sizeof GET("") - 1);
    aco_io_write_all(busy, WAIT, sizeof WAIT - 1);
    CHECK_EQ(aco_io_read_exactly(idle, got, 16), 16);
    CHECK_EQ(aco_semaphore_acquire(&at_gate), 0);
    aco_scope_cancel(&stage.scope);
    read_to_end(idle); /* is closed while the other one waits */
    aco_io_close(idle);
    FAILS_WITH(aco_io_dial("tcp4", "127.0.0.1", stage.port, NULL), ECONNREFUSED);
    aco_semaphore_release(&gate);
    read_to_end(busy);
    CHECK_TEXT("a request under way", body(), "waited");
    CHECK_HAS("Connection: close");
    aco_io_close(busy);
    CHECK_EQ(aco_join(stage.task, NULL), 0);
    CHECK_EQ(stage.error, ECANCELED);
    /* What does not end in its time is cancelled. */
    stage.server.drain_time = ACO_MILLISECOND;
    start(&stage, waiting);
    hung = dial(&stage);
    aco_io_write_all(hung, WAIT, sizeof WAIT - 1);
    CHECK_EQ(aco_semaphore_acquire(&at_gate), 0);
    stop(&stage);
    aco_io_close(hung);
    return NULL;
}

/* ---- Files ---- */

static char root[] = "/tmp/acorn-http-XXXXXX";

static void make_file(const char *name, size_t n)
{
    char path[128];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", root, name);
    file = fopen(path, "w");
    CHECK(file != NULL);
    for (size_t i = 0; i < n; i++)
        fputc('a' + (int)(i % 26), file);
    fclose(file);
}

static void serves_files(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_file(request, root, aco_http_request_param(request, "*")), 0);
}

static void ask_file(const stage_t *stage, const char *path, const char *headers, const char *wanted)
{
    char text[512];
    snprintf(text, sizeof text, "GET /files/%s HTTP/1.1\r\n" HOST "%s\r\n", path, headers);
    ask(stage, text);
    CHECK_TEXT(path, statuses(), wanted);
}

static void make_link(const char *to, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", root, name);
    CHECK_EQ(symlink(to, path), 0);
}

static int has_openat2(void)
{
    int fd = aco_file_open_beneath(root, "link.txt", O_RDONLY, 0, ACO_FILE_LINKS_INSIDE);
    if (fd >= 0)
        CHECK_EQ(aco_io_close(fd), 0);
    return fd >= 0;
}

/* Servers that may follow links, that may not, and that may follow those which stay inside. */
static void follows_links(const stage_t *stage, const aco_http_route_t *files)
{
    static const char *const paths[] = {"link.txt", "out", "away/small.txt", "folder/up/small.txt"};
    stage_t strict = {0}, careful = {0};
    make_link("small.txt", "link.txt");
    make_link("/proc/self/status", "out");
    make_link("..", "folder/up");
    make_link(root, "away");
    strict.server.no_links = strict.server.no_escaped_slashes = 1;
    start(&strict, files);
    careful.server.links_inside = 1;
    start(&careful, files);
    ask_file(&careful, "small.txt", "", "200");
    ask_file(&careful, "link.txt", "", has_openat2() ? "200" : "404");
    ask_file(&careful, "folder/up/small.txt", "", has_openat2() ? "200" : "404");
    ask_file(&careful, "out", "", "404");
    ask_file(&careful, "away/small.txt", "", "404"); /* absolute */
    stop(&careful);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        ask_file(stage, paths[i], "", "200");
        ask_file(&strict, paths[i], "", "404");
    }
    ask_file(&strict, "small.txt", "", "200");
    ask_file(&strict, "folder/in.txt", "", "200");
    ask_file(&strict, "none/in.txt", "", "404");
    ask_file(&strict, "small.txt/in.txt", "", "404");
    ask_file(&strict, "folder%2Fin.txt", "", "400");
    ask_file(&strict, "small.txt?%2f", "", "200");
    stop(&strict);
}

static void *has_files(void *arg)
{
    static const aco_http_route_t files[] = {{NULL, "/files/*", serves_files, NULL}, {NULL, NULL, NULL, NULL}};
    static const char *const ranges[][3] = {{"bytes=0-3", "206", "abcd"},
                                            {"bytes=2-", "206", "cdefghij"},
                                            {"bytes=-2", "206", "ij"},
                                            {"bytes=8-99", "206", "ij"},
                                            {"bytes=-99", "206", "abcdefghij"},
                                            {"bytes=3-3", "206", "d"},
                                            {"bytes=10-", "416", ""},
                                            {"bytes=-0", "416", ""},
                                            {"bytes=4-3", "200", "abcdefghij"},
                                            {"bytes=0-1,3-4", "200", "abcdefghij"},
                                            {"bytes=x", "200", "abcdefghij"},
                                            {"lines=0-1", "200", "abcdefghij"},
                                            {"bytes=99999999999999999999-", "416", ""},
                                            {"bytes=-", "200", "abcdefghij"}};
    stage_t stage = {0};
    char header[160], tag[80], date[40], path[64];
    (void)arg;
    CHECK(mkdtemp(root) != NULL);
    make_file("small.txt", 10);
    make_file("large.bin", 3 << 20);
    make_file("index.html", 5);
    make_file(".hidden", 5);
    snprintf(path, sizeof path, "%s/folder", root);
    CHECK_EQ(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/fifo", root);
    CHECK_EQ(mkfifo(path, 0600), 0);
    start(&stage, files);
    ask_file(&stage, "small.txt", "", "200");
    CHECK_TEXT("a small file", body(), "abcdefghij");
    CHECK_HAS("Content-Type: text/plain; charset=utf-8\r\n");
    CHECK_HAS("Accept-Ranges: bytes\r\n");
    snprintf(tag, sizeof tag, "%.*s", (int)strcspn(strstr(got, "ETag: ") + 6, "\r"), strstr(got, "ETag: ") + 6);
    snprintf(date, sizeof date, "%.29s", strstr(got, "Last-Modified: ") + 15);
    ask_file(&stage, "large.bin", "", "200");
    CHECK_EQ(got_n - (size_t)(body() - got), 3 << 20);
    {
        const char *bytes = body();
        size_t same = 0;
        while (same < 3 << 20 && bytes[same] == (char)('a' + same % 26))
            same++;
        CHECK_EQ(same, 3 << 20);
    }
    ask_file(&stage, "", "", "200");
    CHECK_TEXT("the index", body(), "abcde");
    ask_file(&stage, "none", "", "404");
    ask_file(&stage, "folder", "", "404");
    ask_file(&stage, "fifo", "", "404");
    ask_file(&stage, ".hidden", "", "404");
    ask_file(&stage, "folder//small.txt", "", "404");
    ask_file(&stage, "/small.txt", "", "404");
    ask_file(&stage, "../small.txt", "", "400");
    ask_file(&stage, "%2e%2e/small.txt", "", "400");
    ask_file(&stage, "folder/%2e%2e/small.txt", "", "400");
    ask_file(&stage, "..%2fsmall.txt", "", "400");
    make_file("folder/in.txt", 3);
    ask_file(&stage, "folder/in.txt?a=%2f", "", "200");
    ask_file(&stage, "folder%2fin.txt", "", "404");
    ask_file(&stage, "folder%2F", "", "404");
    ask_file(&stage, "%66older/in.txt", "", "200");
    follows_links(&stage, files);
    ask_file(&stage, "small.txt%00.html", "", "400");
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        snprintf(header, sizeof header, "Range: %s\r\n", ranges[i][0]);
        ask_file(&stage, "small.txt", header, ranges[i][1]);
        CHECK_TEXT(ranges[i][0], body(), ranges[i][2]);
    }
    ask_file(&stage, "small.txt", "Range: bytes=2-3\r\n", "206");
    CHECK_HAS("Content-Range: bytes 2-3/10\r\n");
    ask_file(&stage, "small.txt", "X:\r\nRange: bytes=2-3\r\n", "206");
    CHECK_TEXT("behind an empty field", body(), "cd");
    ask_file(&stage, "small.txt", "Range: bytes=12-13\r\n", "416");
    CHECK_HAS("Content-Range: bytes */10\r\n");
    ask_file(&stage, "large.bin", "Range: bytes=1048570-2097160\r\n", "206");
    CHECK_EQ(got_n - (size_t)(body() - got), 2097160 - 1048570 + 1);
    snprintf(header, sizeof header, "If-None-Match: \"x\", W/%s\r\n", tag);
    ask_file(&stage, "small.txt", header, "304");
    CHECK_TEXT("unchanged", body(), "");
    ask_file(&stage, "small.txt", "If-None-Match: \"x\"\r\n", "200");
    snprintf(header, sizeof header, "If-Match: \"x\", %s\r\n", tag);
    ask_file(&stage, "small.txt", header, "200");
    snprintf(header, sizeof header, "If-Match: W/%s\r\n", tag);
    ask_file(&stage, "small.txt", header, "412");
    ask_file(&stage, "small.txt", "If-Match: \"x\"\r\nRange: bytes=0-1\r\n", "412");
    ask_file(&stage, "small.txt", "If-Match: *\r\n", "200");
    snprintf(header, sizeof header, "If-Unmodified-Since: %s\r\n", date);
    ask_file(&stage, "small.txt", header, "200");
    ask_file(&stage, "small.txt", "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "412");
    ask_file(&stage, "small.txt", "If-None-Match: *\r\n", "304");
    snprintf(header, sizeof header, "If-Modified-Since: %s\r\n", date);
    ask_file(&stage, "small.txt", header, "304");
    ask_file(&stage, "small.txt", "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "200");
    ask_file(&stage, "small.txt", "If-Modified-Since: Fri, 31 Feb 2090 00:00:00 GMT\r\n", "200");
    ask_file(&stage, "small.txt", "If-Modified-Since: Tue, 01 Jan 2099 00:00:00 GMT\r\n", "200"); /* a Thursday */
    ask_file(&stage, "small.txt", "If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT\r\n", "304");
    snprintf(header, sizeof header, "Range: bytes=0-1\r\nIf-Range: %s\r\n", tag);
    ask_file(&stage, "small.txt", header, "206");
    ask_file(&stage, "small.txt", "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n", "200");
    ask(&stage, "HEAD /files/large.bin HTTP/1.1\r\n" HOST "\r\n");
    CHECK_HAS("Content-Length: 3145728\r\n");
    CHECK_TEXT("HEAD", body(), "");
    ask(&stage, "POST /files/small.txt HTTP/1.1\r\n" HOST "\r\n");
    CHECK_TEXT("POST", statuses(), "405");
    CHECK_HAS("Allow: GET, HEAD\r\n");
    { /* a client that is gone while a file is sent: no SIGPIPE */
        int fd = dial(&stage);
        aco_io_write_all(fd, "GET /files/large.bin HTTP/1.1\r\n" HOST "\r\n", 41);
        aco_io_close(fd);
    }
    stop(&stage);
    snprintf(header, sizeof header, "rm -r %s", root);
    CHECK_EQ(system(header), 0);
    return NULL;
}

/* Sends a request for the file, and reads its reply. */
static void get_ten(int fd)
{
    static const char request[] = "GET /files/ten HTTP/1.1\r\n" HOST "\r\n";
    ssize_t n = 1;
    CHECK_EQ(aco_io_write_all(fd, request, sizeof request - 1), sizeof request - 1);
    got[got_n = 0] = 0;
    while (n > 0 && !strstr(got, "\r\n\r\nabcdefghij") && !strstr(got, "\r\n\r\n503 Service Unavailable\n")) {
        n = aco_io_read(fd, got + got_n, sizeof got - 1 - got_n);
        got[got_n += n > 0 ? (size_t)n : 0] = 0;
    }
}

/* A file that cannot be opened because the server lacks something is not "not found", which caches keep. */
static void lacks_descriptors(void)
{
    static const aco_http_route_t files[] = {{NULL, "/files/*", serves_files, NULL}, {NULL, NULL, NULL, NULL}};
    stage_t stage = {0};
    struct rlimit before, few;
    int fd, free_one;
    start(&stage, files);
    fd = dial(&stage);
    get_ten(fd); /* from now on no descriptor of this process is closed */
    CHECK_TEXT("before", statuses(), "200");
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    free_one = dup(0);
    CHECK(free_one >= 0 && close(free_one) == 0);
    few.rlim_cur = (rlim_t)free_one;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    get_ten(fd);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_TEXT("no descriptor", statuses(), "503");
    get_ten(fd);
    CHECK_TEXT("after", statuses(), "200");
    CHECK_EQ(aco_io_close(fd), 0);
    stop(&stage);
}

/* Conditions of a file of Sun, 06 Nov 1994 08:49:37 GMT, whose tag is TAG. */
static void *has_conditions(void *arg)
{
#define TAG "\"ae1b981bc490a00-a\""
#define SINCE "If-Modified-Since: "
    static const aco_http_route_t files[] = {{NULL, "/files/*", serves_files, NULL}, {NULL, NULL, NULL, NULL}};
    static const struct {
        const char *headers, *status;
    } cases[] = {
        /* Lists on several lines; quotes hold commas and "*" together. */
        {"If-Match: \"x\"\r\nIf-Match: " TAG "\r\n", "200"},
        {"If-Match: " TAG "\r\nIf-Match: \"x\"\r\n", "200"},
        {"If-Match: \"x\"\r\nIf-Match: \"y\"\r\n", "412"},
        {"If-None-Match: \"x\"\r\nIf-None-Match:\r\nif-none-match: \"y\" ,W/" TAG "\t\r\n", "304"},
        {"If-Match: \"x,*\"\r\n", "412"},
        {"If-None-Match: \"x,*\"\r\n", "200"},
        {"If-None-Match: \"x, " TAG "\"\r\n", "200"},
        {"If-None-Match: \"\\\", " TAG "\r\n", "304"}, /* a backslash escapes nothing in a tag */
        {"If-Match: \"x\r\nIf-Match: " TAG "\r\n", "200"}, /* a quote ends with its line */
        {"If-Match: " TAG "x\r\n", "412"},
        {"If-Match: ,,\r\n", "412"},
        {"If-Match: \"x\"\r\nIf-Match: *\r\n", "200"},
        /* The three forms of dates */
        {SINCE "Sun, 06 Nov 1994 08:49:37 GMT\r\n", "304"},
        {SINCE "Sun, 06 Nov 1994 08:49:36 GMT\r\n", "200"},
        {SINCE "Sunday, 06-Nov-94 08:49:37 GMT\r\n", "304"},
        {SINCE "Sunday, 06-Nov-94 08:49:36 GMT\r\n", "200"},
        {SINCE "Friday, 01-Jan-99 00:00:00 GMT\r\n", "304"},   /* 1999 */
        {SINCE "Thursday, 01-Jan-60 00:00:00 GMT\r\n", "304"}, /* 2060 */
        {SINCE "Monday, 06-Nov-94 08:49:37 GMT\r\n", "200"},
        {SINCE "Sun, 06-Nov-94 08:49:37 GMT\r\n", "200"},
        {SINCE "Sunday, 06-Nov-9: 08:49:37 GMT\r\n", "200"},
        {SINCE "Sunday, 06-Nov-1994 08:49:37 GMT\r\n", "200"},
        {SINCE "Sun Nov  6 08:49:37 1994\r\n", "304"},
        {SINCE "Sun Nov  6 08:49:36 1994\r\n", "200"},
        {SINCE "Wed Nov 16 08:49:37 1994\r\n", "304"},
        {SINCE "Sun Nov  6 08:49:37 19945\r\n", "200"},
        {SINCE "Sun Nov 6 08:49:37 1994\r\n", "200"},
        {SINCE "Sun, 06 Nov 1994 08:49:37 CET\r\n", "200"},
        {SINCE "Sun, 06 Nov 1994 08:4x:37 GMT\r\n", "200"},
        {SINCE "Wed, 31 Dec 1969 23:59:59 GMT\r\n", "200"},
        {SINCE "\r\n", "200"},
        {"If-Unmodified-Since: Sat Nov  5 08:49:37 1994\r\n", "412"},
        {"If-Unmodified-Since: Saturday, 05-Nov-94 08:49:37 GMT\r\n", "412"},
        {"Range: bytes=0-1\r\nIf-Range: Sun Nov  6 08:49:37 1994\r\n", "206"},
        {"Range: bytes=0-1\r\nIf-Range: Mon Nov  7 08:49:37 1994\r\n", "200"},
        /* What may be there once counts for nothing if there are several. */
        {SINCE "Sun, 06 Nov 1994 08:49:37 GMT\r\n" SINCE "Sun, 06 Nov 1994 08:49:37 GMT\r\n", "200"},
        {"If-Unmodified-Since: Sat Nov  5 08:49:37 1994\r\nIf-Unmodified-Since: x\r\n", "200"},
        {"Range: bytes=0-1\r\nRange: bytes=0-1\r\n", "200"},
        {"Range: bytes=0-1\r\nIf-Range: " TAG "\r\nIf-Range: x\r\n", "200"},
        {"Range: BYTES=0-1\r\n", "206"},
    };
    const struct timespec times[2] = {{784111777, 0}, {784111777, 0}};
    stage_t stage = {0};
    char path[64];
    CHECK(mkdtemp(strcpy(root, "/tmp/acorn-http-XXXXXX")) != NULL);
    make_file("ten", 10);
    make_file("empty", 0);
    snprintf(path, sizeof path, "%s/ten", root);
    CHECK_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
    start(&stage, files);
    ask_file(&stage, "ten", "", "200");
    CHECK_HAS("ETag: " TAG "\r\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "GET /files/ten HTTP/1.1\r\n" HOST "%s\r\n", cases[i].headers);
        ask(&stage, text);
        CHECK_TEXT(cases[i].headers, statuses(), cases[i].status);
    }
    ask_file(&stage, "empty", "Range: bytes=-5\r\n", "200"); /* all of it is the last five bytes */
    ask_file(&stage, "empty", "Range: bytes=-0\r\n", "416");
    ask_file(&stage, "empty", "Range: bytes=0-\r\n", "416");
    stop(&stage);
    lacks_descriptors();
    snprintf(path, sizeof path, "rm -r %s", root);
    CHECK_EQ(system(path), 0);
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {replies, names_statuses, pipelines, take_turns, drains, pipelines_at_once};
    static const aco_function_t in_kernel[] = {is_fair, /* a task counts turns: time stands still */
                                               has_files, has_conditions}; /* links, named pipes, setrlimit() */
    static const aco_function_t in_virtual_time[] = {dates_replies};
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    if (IS_SIMULATED)
        run_http_tests(in_virtual_time, sizeof in_virtual_time / sizeof in_virtual_time[0]);
    else
        run_http_tests(in_kernel, sizeof in_kernel / sizeof in_kernel[0]);
    return check_result("http_replies");
}
