/* What is measured by debug_costs.py:
 *   debug-costs requests HOW N   N requests to a server of this thread, looked at: "none", "metrics", or by spans that
 *                                are "unsampled" or "sampled" (which nobody takes)
 *   debug-costs echo N           N lines of 64 bytes from one task to another of the thread, and back
 *   debug-costs many WHAT N      N tasks: "few" (of few stacks, without names), "named" (each has its own name) or
 *                                "shared" (on share stacks); prints the port of its pages, and for each two lines of
 *                                input the longest time in ns, of its thread, that a task waited for its turn between
 *   debug-costs work             prints the port; for each line of input works, and prints for how many ns of its
 *                                thread's time
 *   debug-costs load             the same; the work is requests to a server of the thread
 *   debug-costs shares           prints the port; three tasks work in two functions; for each line of input prints for
 *                                how many ns of its time, by its steps, "TASK FUNCTION NS" each, and an empty line
 *   debug-costs stuck N          prints the port; N threads whose tasks spin, and one that waits for a lock of libc */
#include <aco/debug.h>
#include <aco/spans.h>
#include <aco/sync.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORK_DEPTH = 12, MOST_URL = 128 };
static const char usage[] = "debug-costs requests HOW N | echo N | many WHAT N | work | load | shares | stuck N\n";

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

static void ask_often(aco_http_client_t *client, long count)
{
    char address[ACO_IO_ADDRESS_SIZE], url[MOST_URL];
    (void)aco_io_local_address(listener, address, sizeof address);
    (void)snprintf(url, sizeof url, "http://%.100s/hello", address);
    for (long i = count; i > 0; i--) {
        aco_http_response_t *response = aco_http_get(client, url);
        if (!response)
            exit(failed("a request"));
        aco_http_response_end(response);
    }
}

static void *ask(void *count)
{
    aco_http_client_t *client = aco_http_client_new(NULL);
    ask_often(client, *(const long *)count);
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

static int64_t own_ns(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * ACO_SECOND + used.tv_nsec;
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

static int is_timed;         /* atomic */
static int64_t longest_turn; /* atomic: of its thread, without a turn of the next task */

/* Asks for turns as often as it can while others are timed. It also sees to it that the others could be woken. */
static void *wants_turns(void *unused)
{
    enum { SLEEP_MS = 20 };
    for (;;) {
        int64_t longest = 0;
        while (!__atomic_load_n(&is_timed, __ATOMIC_ACQUIRE))
            if (aco_sleep(SLEEP_MS * ACO_MILLISECOND) != 0)
                return unused;
        while (__atomic_load_n(&is_timed, __ATOMIC_ACQUIRE)) {
            int64_t began = own_ns();
            aco_yield();
            began = own_ns() - began;
            longest = began > longest ? began : longest;
            __atomic_store_n(&longest_turn, longest, __ATOMIC_RELEASE);
        }
    }
}

typedef struct crowd {
    const char *what;
    long n;
} crowd_t;

static void spawn_one(const crowd_t *crowd, long i, aco_share_stack_t *const *stacks, int stacks_n)
{
    enum { PLACES = 10 };
    char name[ACO_NAME_SIZE];
    aco_options_t options = {0};
    (void)snprintf(name, sizeof name, "task %ld", i);
    options.name = strcmp(crowd->what, "named") == 0 ? name : NULL;
    options.stack = strcmp(crowd->what, "shared") == 0 ? stacks[i % stacks_n] : NULL;
    if (!aco_spawn(waits, (void *)(uintptr_t)(i % PLACES), &options))
        exit(failed("aco_spawn"));
}

static void *run_crowd(void *arg)
{
    enum { STACKS = 8 };
    const crowd_t *crowd = arg;
    aco_share_stack_t *stacks[STACKS];
    for (int i = 0; i < STACKS; i++)
        if (!(stacks[i] = aco_share_stack_new(0)))
            exit(failed("aco_share_stack_new"));
    if (!aco_spawn(wants_turns, NULL, NULL))
        exit(failed("aco_spawn"));
    for (long i = crowd->n; i > 0; i--)
        spawn_one(crowd, i, stacks, STACKS);
    (void)aco_run();
    return arg;
}

static int many(const char *what, long n)
{
    crowd_t crowd = {what, n};
    pthread_t thread;
    if (serve_pages() != 0 || pthread_create(&thread, NULL, run_crowd, &crowd) != 0)
        return 1;
    while (getchar() != EOF) {
        __atomic_store_n(&longest_turn, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&is_timed, 1, __ATOMIC_RELEASE);
        (void)getchar();
        __atomic_store_n(&is_timed, 0, __ATOMIC_RELEASE);
        printf("%lld\n", (long long)__atomic_load_n(&longest_turn, __ATOMIC_ACQUIRE));
        (void)fflush(stdout);
    }
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

/* For each line of input: how much of the thread's time a work takes. */
static void time_each(void (*work)(void *), void *arg)
{
    while (getchar() != EOF) {
        int64_t began = own_ns();
        work(arg);
        printf("%lld\n", (long long)(own_ns() - began));
        (void)fflush(stdout);
    }
}

static void compute(void *value)
{
    enum { ROUNDS = 60000 };
    for (int i = 0; i < ROUNDS; i++)
        *(volatile unsigned *)value = work_down(*(const unsigned *)value, WORK_DEPTH);
}

static int work(void)
{
    unsigned value = 1;
    if (serve_pages() != 0)
        return 1;
    time_each(compute, &value);
    aco_debug_stop();
    return 0;
}

static void ask_for_a_time(void *client)
{
    enum { REQUESTS = 50000 };
    ask_often(client, REQUESTS);
}

static void *asks_when_told(void *unused)
{
    aco_http_client_t *client = aco_http_client_new(NULL);
    time_each(ask_for_a_time, client);
    aco_http_client_destroy(client);
    (void)aco_scope_cancel(&server_scope);
    return unused;
}

static int load(void)
{
    listener = aco_io_listen("tcp", "127.0.0.1", "0", NULL);
    if (serve_pages() != 0 || listener < 0 || !aco_spawn(serve, NULL, NULL) || !aco_spawn(asks_when_told, NULL, NULL))
        return failed("tasks");
    return aco_run();
}

/* ---- Shares ---- */

enum { WORKERS = 3, FUNCTIONS = 2 };
static int64_t done[WORKERS][FUNCTIONS]; /* atomic: steps */
static int is_over;                     /* atomic */
static const char *const worker_names[WORKERS] = {"baker", "packer", "clerk"};
static const char *const function_names[FUNCTIONS] = {"knead", "weigh"};

static __attribute__((noinline)) unsigned knead(unsigned value, long steps)
{
    for (volatile long i = 0; i < steps; i++)
        value = value * 1664525 + 1013904223;
    return value;
}

static __attribute__((noinline)) unsigned weigh(unsigned value, long steps)
{
    for (volatile long i = 0; i < steps; i++)
        value ^= value << 5 ^ (unsigned)i;
    return value;
}

/* No clock is read: system calls are where kernels take the processor away, and then samples, at ticks, would no longer
 * meet the work by chance. */
static void work_for(int worker, int function, long steps)
{
    static volatile unsigned result;
    result = function ? weigh(result, steps) : knead(result, steps);
    __atomic_fetch_add(&done[worker][function], steps, __ATOMIC_RELAXED);
}

static double ns_of_step(int function)
{
    enum { STEPS = 100000000 };
    int64_t began = own_ns();
    volatile unsigned result = function ? weigh(0, STEPS) : knead(0, STEPS);
    (void)result;
    return (double)(own_ns() - began) / STEPS;
}

/* Between none and twice as many steps as the shares say, by chance: else samples, which some kernels take at ticks of
 * a few ms only, might always meet the same part of the work. */
static void *works_in_both(void *number)
{
    static const unsigned steps[WORKERS][FUNCTIONS] = {{500000, 100000}, {100000, 200000}, {50000, 50000}};
    const int worker = *(const int *)number;
    unsigned chance = (unsigned)worker;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        for (int i = 0; i < FUNCTIONS; i++) {
            chance = chance * 1664525 + 1013904223;
            work_for(worker, i, (long)((uint64_t)chance * 2 * steps[worker][i] >> 32));
        }
        aco_yield();
    }
    return number;
}

static void *run_workers(void *unused)
{
    static int numbers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        aco_options_t options = {0};
        options.name = worker_names[i];
        numbers[i] = i;
        if (!aco_spawn(works_in_both, &numbers[i], &options))
            exit(failed("aco_spawn"));
    }
    (void)aco_run();
    return unused;
}

static int shares(void)
{
    const double ns[FUNCTIONS] = {ns_of_step(0), ns_of_step(1)};
    pthread_t thread;
    if (serve_pages() != 0 || pthread_create(&thread, NULL, run_workers, NULL) != 0)
        return 1;
    while (getchar() != EOF) {
        for (int i = 0; i < WORKERS; i++)
            for (int k = 0; k < FUNCTIONS; k++)
                printf("%s %s %.0f\n", worker_names[i], function_names[k],
                       ns[k] * (double)__atomic_load_n(&done[i][k], __ATOMIC_RELAXED));
        printf("\n");
        (void)fflush(stdout);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    return pthread_join(thread, NULL);
}

/* ---- Threads that do not answer ---- */

static pthread_mutex_t held_for_ever = PTHREAD_MUTEX_INITIALIZER;

static void *spins_for_ever(void *unused)
{
    for (volatile long i = 0;; i++)
        continue;
    return unused;
}

static void *wants_the_lock(void *unused)
{
    (void)pthread_mutex_lock(&held_for_ever);
    return unused;
}

static void *run_one(void *fn)
{
    aco_options_t options = {0};
    options.name = *(aco_function_t *)fn == wants_the_lock ? "wants the lock" : "spins";
    if (!aco_spawn(*(aco_function_t *)fn, NULL, &options))
        exit(failed("aco_spawn"));
    (void)aco_run();
    return fn;
}

static int stuck(long n)
{
    static aco_function_t spins = spins_for_ever, waits_for_lock = wants_the_lock;
    pthread_t thread;
    (void)pthread_mutex_lock(&held_for_ever);
    if (serve_pages() != 0 || pthread_create(&thread, NULL, run_one, &waits_for_lock) != 0)
        return 1;
    for (long i = 0; i < n; i++)
        if (pthread_create(&thread, NULL, run_one, &spins) != 0)
            return 1;
    (void)getchar();
    exit(0);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "requests") == 0)
        return requests(argv[2], atol(argv[3]));
    if (argc == 3 && strcmp(argv[1], "echo") == 0)
        return echoes(atol(argv[2]));
    if (argc == 4 && strcmp(argv[1], "many") == 0)
        return many(argv[2], atol(argv[3]));
    if (argc == 2 && strcmp(argv[1], "load") == 0)
        return load();
    if (argc == 2 && strcmp(argv[1], "shares") == 0)
        return shares();
    if (argc == 3 && strcmp(argv[1], "stuck") == 0)
        return stuck(atol(argv[2]));
    if (argc == 2 && strcmp(argv[1], "work") == 0)
        return work();
    fputs(usage, stderr);
    return 2;
}
