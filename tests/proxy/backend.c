/* A backend of the proxy's tests: backend PORT LOG. Any request for /count?id=N is written to LOG, and answered by N
 * some times. It goes wrong when it is told so:
 *   /fault?kind=KIND&count=N  the next N such requests do: see `kinds`
 *   /health                   answers 500 while it is sick, by the kind of fault of this name
 *   /hold, /held, /release    waits for the release; how many wait; releases all */
#include <aco/file.h>
#include <aco/http.h>
#include <aco/sync.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 20000, EACH_LONG = 64, EACH_CHUNKED = 7 };

static int log_fd;
static int left, held, is_sick;
static aco_event_t release_event = ACO_EVENT_INIT;

static void write_log(const aco_http_request_t *request, long id)
{
    char line[64];
    int n = snprintf(line, sizeof line, "%s %ld\n", request->method, id);
    if (write(log_fd, line, (size_t)n) != n)
        abort();
}

/* ---- Answers ---- */

static void answer(aco_http_request_t *request, long id)
{
    char one[32], part[4096];
    int n = snprintf(one, sizeof one, "%ld:", id), times = id % EACH_LONG == 0 ? MANY : 1;
    int most = (int)sizeof part / n;
    if (aco_http_reply_begin(request, 200, "text/plain", id % EACH_CHUNKED == 0 ? -1 : (int64_t)n * times) != 0)
        return;
    for (int i = 0; i < most; i++)
        memcpy(part + i * n, one, (size_t)n);
    for (; times > 0; times -= most)
        if (aco_http_reply_write(request, part, (size_t)n * (size_t)(times < most ? times : most)) != 0)
            return;
}

static void die(aco_http_request_t *request, long id)
{
    (void)request, (void)id;
    _exit(3);
}

static void die_late(aco_http_request_t *request, long id)
{
    write_log(request, id);
    _exit(3);
}

static void garbage(aco_http_request_t *request, long id)
{
    static const char text[] = "HTTP/9.9 what is this\r\n\0\r\nContent-Length: -1\r\n\r\n";
    write_log(request, id);
    (void)aco_io_write_all(request->fd, text, sizeof text - 1);
    (void)aco_io_shutdown(request->fd, SHUT_RDWR);
}

static void close_at_once(aco_http_request_t *request, long id)
{
    write_log(request, id);
    (void)aco_io_shutdown(request->fd, SHUT_RDWR);
}

/* Its client sees the head, and not all of the body. */
static void cut(aco_http_request_t *request, long id)
{
    write_log(request, id);
    (void)aco_http_reply_begin(request, 200, "text/plain", 1000);
    (void)aco_http_reply_write(request, "cut", 3);
}

static void cut_chunked(aco_http_request_t *request, long id)
{
    write_log(request, id);
    (void)aco_http_reply_begin(request, 200, "text/plain", -1);
    (void)aco_http_reply_write(request, "cut", 3);
    aco_http_reply_abort(request);
}

static void stall(aco_http_request_t *request, long id)
{
    write_log(request, id);
    (void)aco_sleep(ACO_FOREVER);
}

static void be_sick(aco_http_request_t *request, long id)
{
    write_log(request, id);
    is_sick = left > 0;
    answer(request, id);
}

static const struct kind {
    const char *name;
    void (*go)(aco_http_request_t *request, long id);
} kinds[] = {{"die", die}, {"die_late", die_late},       {"garbage", garbage}, {"close", close_at_once},
             {"cut", cut}, {"cut_chunked", cut_chunked}, {"stall", stall},     {"sick", be_sick}};
static const struct kind *kind;

/* ---- Handlers ---- */

static void count(aco_http_request_t *request, void *arg)
{
    const char *id_text = aco_http_request_query(request, "id");
    long id = id_text ? atol(id_text) : -1;
    size_t n = 0;
    char *body = aco_http_request_read_all(request, 1000, &n);
    (void)arg;
    if (!body)
        return;
    if (strcmp(request->method, "POST") == 0 && atol(body) != id) {
        aco_http_reply(request, 400, NULL, NULL, 0);
        return;
    }
    if (left > 0) {
        left--;
        kind->go(request, id);
        return;
    }
    write_log(request, id);
    answer(request, id);
}

static void set_fault(aco_http_request_t *request, void *arg)
{
    const char *name = aco_http_request_query(request, "kind"), *number = aco_http_request_query(request, "count");
    (void)arg;
    left = number ? atoi(number) : 0;
    is_sick = 0;
    for (size_t i = 0; name && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            kind = &kinds[i];
    aco_http_reply(request, kind ? 200 : 400, NULL, NULL, 0);
}

static void tell_health(aco_http_request_t *request, void *arg)
{
    (void)arg;
    aco_http_reply(request, is_sick ? 500 : 200, NULL, NULL, 0);
}

static void hold(aco_http_request_t *request, void *arg)
{
    (void)arg;
    held++;
    if (aco_event_wait(&release_event) == 0)
        aco_http_reply(request, 200, "text/plain", "released", 8);
    held--;
}

static void tell_held(aco_http_request_t *request, void *arg)
{
    char text[16];
    (void)arg;
    aco_http_reply(request, 200, "text/plain", text, (size_t)snprintf(text, sizeof text, "%d", held));
}

static void release(aco_http_request_t *request, void *arg)
{
    (void)arg;
    aco_event_set(&release_event);
    aco_http_reply(request, 200, NULL, NULL, 0);
}

static void *serve(void *port)
{
    static const aco_http_route_t routes[] = {
        {NULL, "/count", count, NULL}, {"GET", "/fault", set_fault, NULL}, {"GET", "/health", tell_health, NULL},
        {"GET", "/hold", hold, NULL},  {"GET", "/held", tell_held, NULL},  {"GET", "/release", release, NULL},
        {NULL, NULL, NULL, NULL}};
    static const aco_http_server_options_t server = {.routes = routes};
    char address[ACO_IO_ADDRESS_SIZE];
    int listener = aco_io_listen("tcp", "127.0.0.1", port, NULL);
    if (listener >= 0 && aco_io_local_address(listener, address, sizeof address) == 0)
        fprintf(stderr, "listening on %s\n", address);
    aco_http_serve(listener, &server);
    return fprintf(stderr, "%s\n", aco_error_message()), NULL;
}

int main(int argc, char **argv)
{
    log_fd = argc == 3 ? open(argv[2], O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    if (log_fd < 0)
        return fprintf(stderr, "backend PORT LOG\n"), 2;
    return aco_spawn(serve, argv[1], NULL) && aco_run() == 0 ? 0 : 1;
}
