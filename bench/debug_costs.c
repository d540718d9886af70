/* What is measured by debug_costs.py:
 *   debug-costs requests HOW N   N requests to a server of this thread, looked at: "none", "metrics", or by spans that
 *                                are "unsampled" or "sampled" (which nobody takes)
 *   debug-costs echo N           N lines of 64 bytes from one task to another of the thread, and back
 *   debug-costs many N           N tasks; prints the port of its pages, and ends with its input
 *   debug-costs work             prints the port; for each line of input works, and prints for how many ns of its
 *                                thread's time */
#include <aco/debug.h>
#include <aco/spans.h>
#include <aco/sync.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORK_DEPTH = 12, MOST_URL = 128 };
static const char usage[] = "debug-costs requests HOW N | echo N | many N | work\n";

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, aco_error_message());
    return 1;
}

/* ---- Requests ---- */

static aco_scope_t server_scope;
static int listener;

static void hello(aco_http_request_t *request, void *unused)
{
    (void)unused;
    (void)aco_http_reply(request, 200, "text/plain", "Hello, world", 12);
}

static void *serve(void *unused)
{
    static const aco_http_route_t routes[] = {{"GET", "/hello", hello, NULL}, {NULL, NULL, NULL, NULL}};
    aco_http_server_options_t options = {0};
    options.routes = routes;
    options.drain_idle_time = options.drain_time = 1;
    (void)aco_scope_begin(&server_scope, ACO_FOREVER);
    (void)aco_http_serve(listener, &options);
    (void)aco_scope_end(&server_scope);
    return unused;
}

static void *ask(void *count)
{
    char address[ACO_IO_ADDRESS_SIZE], url[MOST_URL];
    aco_http_client_t *client = aco_http_client_new(NULL);
    (void)aco_io_local_address(listener, address, sizeof address);
    (void)snprintf(url, sizeof url, "http://%.100s/hello", address);
    for (long i = *(long *)count; i > 0; i--) {
        aco_http_response_t *response = aco_http_get(client, url);
        if (!response)
            exit(failed("a request"));
        aco_http_response_end(response);
    }
    aco_http_client_destroy(client);
    (void)aco_scope_cancel(&server_scope);
    return count;
}

static int requests(const char *how, long n)
{
    aco_spans_options_t options = {0};
    options.endpoint = "http://127.0.0.1:1/";
    options.interval = 3600 * ACO_SECOND; /* what sending costs is another thread's */
    options.per_million = strcmp(how, "unsampled") == 0 ? -1 : 0;
    if (strcmp(how, "metrics") == 0)
        (void)aco_debug_routes();
    if (strstr(how, "sampled") && aco_spans_start(&options) != 0)
        return failed("aco_spans_start");
    listener = aco_io_listen("tcp", "127.0.0.1", "0", NULL);
    if (listener < 0 || !aco_spawn(serve, NULL, NULL) || !aco_spawn(ask, &n, NULL))
        return failed("tasks");
    return aco_run();
}

/* ---- Echoes ---- */

static void *echo_once_connected(void *unused)
{
    char bytes[4096];
    ssize_t n;
    int fd = aco_io_accept(listener);
    while ((n = aco_io_read(fd, bytes, sizeof bytes)) > 0 && aco_io_write_all(fd, bytes, (size_t)n) > 0)
        continue;
    (void)aco_io_close(fd);
    return unused;
}

static void *ask_for_echoes(void *count)
{
    char address[ACO_IO_ADDRESS_SIZE], line[64] = "";
    int fd;
    (void)aco_io_local_address(listener, address, sizeof address);
    fd = aco_io_dial("tcp", "127.0.0.1", strrchr(address, ':') + 1, NULL);
    for (long i = *(const long *)count; i > 0; i--)
        if (aco_io_write_all(fd, line, sizeof line) < 0 || aco_io_read_exactly(fd, line, sizeof line) != sizeof line)
            exit(failed("an echo"));
    (void)aco_io_close(fd);
    return count;
}

static int echoes(long n)
{
    listener = aco_io_listen("tcp", "127.0.0.1", "0", NULL);
    if (listener < 0 || !aco_spawn(echo_once_connected, NULL, NULL) || !aco_spawn(ask_for_echoes, &n, NULL))
        return failed("tasks");
    return aco_run();
}

/* ---- Tasks ---- */

static aco_event_t never = ACO_EVENT_INIT;

static int wait_at(uintptr_t depth)
{
    int result = depth ? wait_at(depth - 1) : aco_event_wait(&never);
    __asm__ volatile("" : : "r"(&result) : "memory");
    return result;
}

static void *waits(void *depth)
{
    return wait_at((uintptr_t)depth) == 0 ? NULL : ACO_ERROR;
}

/* Else nobody could ever wake the others. */
static void *sleeps(void *unused)
{
    enum { SLEEP_MS = 20 };
    while (aco_sleep(SLEEP_MS * ACO_MILLISECOND) == 0)
        continue;
    return unused;
}

static void *many_tasks(void *count)
{
    enum { PLACES = 10 };
    if (!aco_spawn(sleeps, NULL, NULL))
        exit(failed("aco_spawn"));
    for (long i = *(const long *)count; i > 0; i--)
        if (!aco_spawn(waits, (void *)(uintptr_t)(i % PLACES), NULL))
            exit(failed("aco_spawn"));
    (void)aco_run();
    return NULL;
}

static int serve_pages(void)
{
    const int port = aco_debug_serve("127.0.0.1:0", NULL);
    if (port < 0)
        return failed("aco_debug_serve");
    printf("%d\n", port);
    (void)fflush(stdout);
    return 0;
}

static int many(long n)
{
    pthread_t thread;
    if (serve_pages() != 0 || pthread_create(&thread, NULL, many_tasks, &n) != 0)
        return 1;
    (void)getchar();
    exit(0); /* the thread has tasks for ever */
}

/* ---- Work ---- */

static unsigned work_down(unsigned seed, int depth)
{
    enum { STEPS = 300 };
    volatile unsigned value = seed;
    for (int i = 0; i < STEPS; i++)
        value = value * 1664525 + 1013904223;
    if (depth)
        value += work_down(value, depth - 1);
    return value;
}

static int work(void)
{
    enum { ROUNDS = 60000 };
    if (serve_pages() != 0)
        return 1;
    while (getchar() != EOF) {
        struct timespec begin, end;
        unsigned value = 1;
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        for (int i = 0; i < ROUNDS; i++)
            value = work_down(value, WORK_DEPTH);
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        printf("%lld\n", (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec + (value == 0));
        (void)fflush(stdout);
    }
    aco_debug_stop();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "requests") == 0)
        return requests(argv[2], atol(argv[3]));
    if (argc == 3 && strcmp(argv[1], "echo") == 0)
        return echoes(atol(argv[2]));
    if (argc == 3 && strcmp(argv[1], "many") == 0)
        return many(atol(argv[2]));
    if (argc == 2 && strcmp(argv[1], "work") == 0)
        return work();
    fputs(usage, stderr);
    return 2;
}
