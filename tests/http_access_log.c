/* Access logs of HTTP servers (include/aco/access_log.h). */
#define _GNU_SOURCE
#include <aco/access_log.h>
#include "http_tests.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static char folder[] = "/tmp/acorn-access-log-XXXXXX"; /* simulated: /tmp */
static char text[1 << 20]; /* of a file */

static const char *path_of(const char *name)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const char *read_file(const char *name)
{
    FILE *file = fopen(path_of(name), "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    CHECK(file != NULL);
    if (file)
        fclose(file);
    text[n] = 0;
    return text;
}

/* The number of lines with this text. */
static size_t lines_with(const char *name, const char *wanted)
{
    size_t count = 0;
    for (const char *at = read_file(name); (at = strstr(at, wanted)) != NULL; at += strlen(wanted))
        count++;
    return count;
}

/* Replaces the digits by 0: times are never the same. */
static const char *without_digits(const char *name)
{
    read_file(name);
    for (char *at = text; *at; at++)
        if (*at >= '0' && *at <= '9')
            *at = '0';
    return text;
}

static const aco_http_route_t routes[] = {{"GET", "/a/{x}", tells, "text"}, {NULL, NULL, NULL, NULL}};

/* ---- Formats ---- */

static void *has_formats(void *arg)
{
    const aco_access_log_file_t files[] = {{path_of("common"), ACO_ACCESS_LOG_COMMON},
                                           {path_of("combined"), ACO_ACCESS_LOG_COMBINED},
                                           {path_of("json"), ACO_ACCESS_LOG_JSON},
                                           {NULL, 0}};
    aco_access_log_t *log = aco_access_log_new(files, NULL);
    struct stat status;
    const char *line;
    stage_t stage = {0};
    CHECK(log != NULL);
    CHECK(stat(files[0].path, &status) == 0 && (status.st_mode & 0777) == 0640);
    stage.server.log = aco_access_log_add;
    stage.server.log_arg = log;
    start(&stage, routes);
    ask(&stage, "GET /a/b?c=\"d\" HTTP/1.1\r\n" HOST "User-Agent: x\\y \"\xc3\tz\r\nReferer: http://r/\r\n\r\n");
    ask(&stage, "?nonsense\r\n\r\n");
    stop(&stage);
    aco_access_log_destroy(log);
    read_file("common");
    line = strchr(text, '[');
    CHECK(line && strncmp(text, "127.0.0.1 - - [", 15) == 0 && line[3] == '/' && line[7] == '/' &&
          strncmp(line + 21, " +0000] ", 8) == 0);
    CHECK_EQ(lines_with("common", "\"GET /a/b?c=\\\"d\\\" HTTP/1.1\" 200 4\n"), 1);
    CHECK_EQ(lines_with("common", "\"-\" 400 16\n"), 1);
    CHECK_EQ(lines_with("combined", "HTTP/1.1\" 200 4 \"http://r/\" \"x\\\\y \\\"\\xc3\\x09z\"\n"), 1);
    CHECK_EQ(lines_with("combined", "\"-\" 400 16 \"-\" \"-\"\n"), 1);
    CHECK_EQ(lines_with("json", "Z\",\"client\":\"127.0.0.1\",\"method\":\"GET\",\"target\":\"/a/b?c=\\\"d\\\"\","
                                "\"host\":\"a\","
                                "\"route\":\"/a/{x}\",\"status\":200,\"sent\":4,\"duration_ns\":"),
             1);
    CHECK_EQ(lines_with("json", ",\"referer\":\"http://r/\",\"user_agent\":\"x\\\\y \\\"\\u00c3\\u0009z\"}\n"), 1);
    CHECK_EQ(lines_with("json", "\"route\":null,\"status\":400"), 1);
    CHECK(strncmp(without_digits("json"), "{\"time\":\"0000-00-00T00:00:00.000Z\",", 35) == 0);
    return arg;
}

/* A client can make a line long, but not end it; and a line takes no more of the queue than it has bytes. */
static void *bounds_lines(void *arg)
{
    const aco_access_log_file_t files[] = {{path_of("long"), ACO_ACCESS_LOG_JSON}, {NULL, 0}};
    const aco_access_log_options_t options = {.queue = 32 << 10, .delay = ACO_SECOND * 1000};
    aco_access_log_t *log = aco_access_log_new(files, &options);
    aco_access_log_stats_t stats;
    static char request[8000];
    stage_t stage = {0};
    size_t n;
    stage.server.log = aco_access_log_add;
    stage.server.log_arg = log;
    start(&stage, routes);
    n = (size_t)sprintf(request, "GET /a/");
    memset(request + n, '"', 2000);
    n += 2000 + (size_t)sprintf(request + n + 2000, " HTTP/1.1\r\n" HOST "User-Agent: ");
    memset(request + n, '\xff', 2000);
    n += 2000 + (size_t)sprintf(request + n + 2000, "\r\nReferer: ");
    memset(request + n, '\t', 2000);
    sprintf(request + n + 2000, "x\r\n\r\n");
    ask(&stage, request);
    ask(&stage, GET("")); /* for one that long there would be no room */
    aco_access_log_stats(log, &stats);
    CHECK_EQ(stats.dropped, 0);
    stop(&stage);
    aco_access_log_destroy(log);
    CHECK_EQ(lines_with("long", "\n"), 2);
    CHECK_EQ(lines_with("long", "\\u00ff"), 1024);
    return arg;
}

/* ---- Rotation, failures ---- */

static aco_http_request_t short_request(const char *target)
{
    aco_http_request_t request = {0};
    request.method = "GET";
    request.target = target;
    request.host = request.path = request.query = "";
    return request;
}

static void *rotates(void *arg)
{
    const aco_access_log_file_t files[] = {
        {path_of("now"), ACO_ACCESS_LOG_COMMON}, {path_of("json-now"), ACO_ACCESS_LOG_JSON}, {NULL, 0}};
    aco_access_log_t *log = aco_access_log_new(files, NULL);
    stage_t stage = {0};
    stage.server.log = aco_access_log_add;
    stage.server.log_arg = log;
    start(&stage, routes);
    for (int i = 0; i < 3; i++)
        ask(&stage, "GET /a/old HTTP/1.1\r\n" HOST "\r\n");
    CHECK_EQ(rename(path_of("now"), path_of("before")), 0);
    CHECK_EQ(rename(path_of("json-now"), path_of("json-before")), 0);
    aco_access_log_rotate(log);
    for (int i = 0; i < 2; i++)
        ask(&stage, "GET /a/new HTTP/1.1\r\n" HOST "\r\n");
    stop(&stage);
    aco_access_log_destroy(log);
    CHECK_EQ(lines_with("before", "/a/old"), 3);
    CHECK_EQ(lines_with("before", "\n"), 3);
    CHECK_EQ(lines_with("now", "/a/new"), 2);
    CHECK_EQ(lines_with("now", "\n"), 2);
    CHECK_EQ(lines_with("json-before", "\n"), 3);
    CHECK_EQ(lines_with("json-now", "\n"), 2);
    log = aco_access_log_new(files, NULL); /* appends */
    aco_access_log_destroy(log);
    CHECK_EQ(lines_with("now", "\n"), 2);
    return arg;
}

#ifdef IN_SIMULATION
/* The thread tells nobody: in virtual time, that needs no luck. */
static void wait_for_failure(aco_access_log_t *log)
{
    aco_access_log_stats_t stats = {0, 0, 0};
    while (stats.failed == 0) {
        aco_sleep(ACO_MILLISECOND);
        aco_access_log_stats(log, &stats);
    }
}

enum { DISK = 4096 };

/* Makes a file with lines, behind which so many bytes have room; ACO_FOREVER: more than are needed. */
static void limit_room(const char *path, int64_t left)
{
    const aco_sim_disk_t full = {.capacity = left == ACO_FOREVER ? 0 : DISK};
    char bytes[DISK];
    if (left != ACO_FOREVER) {
        int fd = aco_file_open(path, O_WRONLY | O_CREAT, 0600);
        memset(bytes, '\n', sizeof bytes);
        CHECK_EQ(aco_file_write(fd, bytes, sizeof bytes - (size_t)left), DISK - left);
        CHECK_EQ(aco_io_close(fd), 0);
    }
    CHECK_EQ(aco_sim_disk(aco_sim_current(), "scenario", &full), 0);
}

static void *fails(void *arg)
{
    const aco_access_log_file_t none[] = {{NULL, 0}}, wrong[] = {{path_of("x"), 3}, {NULL, 0}},
                                away[] = {{path_of("y"), 0}, {path_of("no/such"), 0}, {NULL, 0}},
                                full[] = {{path_of("full"), ACO_ACCESS_LOG_COMMON}, {NULL, 0}};
    aco_access_log_options_t options = {.queue = 100};
    aco_access_log_stats_t stats = {0, 0, 0};
    aco_access_log_t *log;
    stage_t stage = {0};
    CHECK(aco_access_log_new(NULL, NULL) == NULL && errno == EINVAL);
    CHECK(aco_access_log_new(none, NULL) == NULL && errno == EINVAL);
    CHECK(aco_access_log_new(wrong, NULL) == NULL && errno == EINVAL);
    CHECK(aco_access_log_new(away, &options) == NULL && errno == EINVAL);
    options.queue = 0;
    options.aco__reserved[1] = &options;
    CHECK(aco_access_log_new(away, &options) == NULL && errno == EINVAL);
    CHECK(aco_access_log_new(away, NULL) == NULL && errno == ENOENT);
    aco_access_log_destroy(NULL);
    limit_room(full[0].path, 0);
    log = aco_access_log_new(full, NULL);
    CHECK(log != NULL);
    stage.server.log = aco_access_log_add;
    stage.server.log_arg = log;
    start(&stage, routes);
    ask(&stage, GET(""));
    aco_access_log_rotate(log);
    wait_for_failure(log);
    aco_access_log_stats(log, &stats);
    CHECK(stats.error == ENOSPC && stats.dropped == 0);
    stop(&stage);
    aco_access_log_destroy(log);
    return arg;
}

/* A part of a line is written; the next one is not glued to it. */
static void *tears_lines(void *arg)
{
    const aco_access_log_file_t files[] = {{path_of("torn"), ACO_ACCESS_LOG_COMMON}, {NULL, 0}};
    const aco_access_log_options_t options = {.delay = -1};
    aco_access_log_t *log = aco_access_log_new(files, &options);
    const aco_http_request_t request = short_request("/t");
    limit_room(files[0].path, 30);
    aco_access_log_add(&request, log);
    wait_for_failure(log);
    limit_room(files[0].path, ACO_FOREVER);
    aco_access_log_add(&request, log);
    aco_access_log_add(&request, log);
    aco_access_log_destroy(log);
    CHECK_EQ(lines_with("torn", "\n"), DISK - 30 + 3);
    CHECK_EQ(lines_with("torn", "\n- - - ["), 3);
    return arg;
}

/* Nobody reads what the thread writes. */
static void *drops_lines(void *arg)
{
    const aco_access_log_file_t files[] = {{path_of("pipe"), ACO_ACCESS_LOG_COMMON}, {NULL, 0}};
    const aco_access_log_options_t options = {.queue = 32 << 10, .delay = -1};
    const aco_http_request_t request = short_request("/dropped");
    aco_access_log_stats_t stats = {0, 0, 0};
    aco_access_log_t *log;
    int reader;
    CHECK_EQ(mkfifo(files[0].path, 0600), 0);
    reader = open(files[0].path, O_RDONLY | O_NONBLOCK);
    log = aco_access_log_new(files, &options);
    while (stats.dropped == 0) {
        aco_access_log_add(&request, log);
        aco_access_log_stats(log, &stats);
    }
    close(reader);
    wait_for_failure(log);
    aco_access_log_destroy(log);
    return arg;
}

/* A pipe that nobody reads, in the place of a file or from the beginning, keeps the thread neither for ever nor from
 * the other file. */
static void *outlasts_pipes(void *arg)
{
    const aco_access_log_file_t files[] = {
        {path_of("became"), ACO_ACCESS_LOG_COMMON}, {path_of("other"), ACO_ACCESS_LOG_COMMON}, {NULL, 0}};
    const aco_access_log_options_t options = {.queue = 32 << 10, .delay = -1};
    const aco_http_request_t request = short_request("/pipe");
    aco_access_log_t *log = aco_access_log_new(files, &options);
    aco_access_log_stats_t stats = {0, 0, 0};
    int reader;
    CHECK_EQ(rename(files[0].path, path_of("was")), 0);
    CHECK_EQ(mkfifo(files[0].path, 0600), 0);
    aco_access_log_rotate(log);
    aco_access_log_add(&request, log);
    wait_for_failure(log);
    aco_access_log_stats(log, &stats);
    CHECK_EQ(stats.error, ENXIO);
    aco_access_log_destroy(log);
    CHECK_EQ(lines_with("was", "\n"), 1);
    CHECK_EQ(lines_with("other", "\n"), 1);
    CHECK(!aco_access_log_new(files, &options) && errno == ENXIO);
    reader = open(files[0].path, O_RDONLY | O_NONBLOCK);
    log = aco_access_log_new(files, &options);
    for (stats.failed = 0; log && stats.failed == 0; aco_access_log_stats(log, &stats)) {
        aco_access_log_add(&request, log);
        if (stats.dropped)
            aco_sleep(ACO_MILLISECOND);
    }
    CHECK_EQ(stats.error, EAGAIN);
    aco_access_log_destroy(log);
    close(reader);
    return arg;
}
#endif

/* ---- Several threads ---- */

enum { THREADS = 4, LINES = 2000 };
#ifndef IN_SIMULATION /* more than the log's own thread has of a stack, if nobody looks: it is allocated there */
static __thread char large[1 << 20];
#endif

static void *adds_lines(void *log)
{
    const aco_http_request_t request = short_request("/thread");
#ifndef IN_SIMULATION
    *(volatile char *)large = 1;
#endif
    for (int i = 0; i < LINES; i++) {
        aco_access_log_add(&request, log);
        if (i % 500 == 0)
            aco_access_log_rotate(log);
    }
    return NULL;
}

static void *is_shared(void *arg)
{
    const aco_access_log_file_t files[] = {{path_of("shared"), ACO_ACCESS_LOG_COMMON}, {NULL, 0}};
    const aco_access_log_options_t options = {.queue = 64 << 10, .delay = -1};
    aco_access_log_t *log = aco_access_log_new(files, &options);
    aco_access_log_stats_t stats;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, adds_lines, log), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    aco_access_log_stats(log, &stats);
    aco_access_log_destroy(log);
    CHECK_EQ(lines_with("shared", "- - - ["), THREADS * LINES - stats.dropped);
    CHECK_EQ(lines_with("shared", "\"GET /thread HTTP/1.0\" 000 0\n"), THREADS * LINES - stats.dropped);
    CHECK_EQ(stats.failed, 0);
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {has_formats, bounds_lines, rotates, is_shared};
#ifdef IN_SIMULATION
    static const aco_function_t others[] = {fails, tears_lines, drops_lines, outlasts_pipes};
    strcpy(folder, "/tmp");
    run_http_tests(others, sizeof others / sizeof others[0]);
#else
    CHECK(mkdtemp(folder) != NULL);
#endif
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    if (!IS_SIMULATED) {
        char command[100];
        snprintf(command, sizeof command, "rm -r %s", folder);
        CHECK_EQ(system(command), 0);
    }
    return check_result("http_access_log");
}
