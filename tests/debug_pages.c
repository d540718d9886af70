/* The pages of acorn_debug (include/aco/debug.h), read by a client that knows nothing of tasks: of threads whose tasks
 * wait, on private and share stacks, and of one whose task does not give way.
 *
 * With the argument "serve" it only serves them, and ends with its input: for debug/readers.py. */
#define _GNU_SOURCE
#include <aco/debug.h>
#include <aco/group.h>
#include <aco/pool.h>
#include <aco/sync.h>
#include "check.h"
#include "child.h"
#include "sanitizers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __clang__
#define FAR_FROM_OTHERS __attribute__((noinline))
#else
#define FAR_FROM_OTHERS __attribute__((noinline, noclone))
#endif

static int port;
static char *answer; /* the last one, with its head */
static size_t answer_n;

/* ---- A client ---- */

static int ask(const char *method, const char *path, const char *host)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    char request[4096];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", method, path,
                     host);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
    return fd;
}

/* The status of the answer. */
static int take_answer(int fd)
{
    ssize_t n;
    answer_n = 0;
    do {
        answer = realloc(answer, answer_n + 65536 + 1);
        n = read(fd, answer + answer_n, 65536);
        answer_n += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    answer[answer_n] = 0;
    close(fd);
    return answer_n > 12 ? atoi(answer + 9) : 0;
}

static int get(const char *path)
{
    return take_answer(ask("GET", path, "127.0.0.1"));
}

/* Also in a profile, whose texts stand in it as they are. */
static int has(const char *text)
{
    return memmem(answer, answer_n, text, strlen(text)) != NULL;
}

#define HAS(text) \
    do { \
        CHECK(has(text)); \
        if (!has(text)) \
            fprintf(stderr, "lacks: %s\n%.6000s\n", text, answer); \
    } while (0)

static long long number_behind(const char *text)
{
    const char *at = memmem(answer, answer_n, text, strlen(text));
    HAS(text);
    return at ? strtoll(at + strlen(text), NULL, 10) : -1;
}

/* What stands behind the name of a metric is the same at each look. */
static void stays(const char *name)
{
    const char *at = memmem(answer, answer_n, name, strlen(name));
    char line[128] = "";
    HAS(name);
    if (at)
        (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 1, "\n") + 2, at);
    CHECK_EQ(get("/metrics"), 200);
    HAS(line);
}

/* ---- Threads with tasks ---- */

static pthread_barrier_t barrier;
static int is_over, is_busy; /* atomic */
static aco_scheduler_t *waiters;
static aco_event_t end;

FAR_FROM_OTHERS void *waits_for_end(void *arg);
FAR_FROM_OTHERS void *waits_for_end(void *arg)
{
    CHECK_EQ(aco_event_wait(&end), 0);
    __asm__ volatile("");
    return arg;
}

static aco_rwlock_t shared;

FAR_FROM_OTHERS void *private_task(void *arg);
FAR_FROM_OTHERS void *private_task(void *arg)
{
    void *result;
    CHECK_EQ(aco_rwlock_rdlock(&shared), 0);
    result = waits_for_end(arg);
    CHECK_EQ(aco_rwlock_unlock(&shared), 0);
    return result;
}

static void *writes_shared(void *unused)
{
    CHECK_EQ(aco_rwlock_wrlock(&shared), 0);
    CHECK_EQ(aco_rwlock_unlock(&shared), 0);
    return unused;
}

FAR_FROM_OTHERS void *task_on_share_stack(void *arg);
FAR_FROM_OTHERS void *task_on_share_stack(void *arg)
{
    void *result = waits_for_end(arg);
    __asm__ volatile("" : : "r"(&result) : "memory");
    return result;
}

FAR_FROM_OTHERS void *other_on_share_stack(void *arg);
FAR_FROM_OTHERS void *other_on_share_stack(void *arg)
{
    void *result = waits_for_end(arg);
    __asm__ volatile("" : : "r"(&result) : "memory");
    return result;
}

FAR_FROM_OTHERS void *inner_waits(void *arg);
FAR_FROM_OTHERS void *inner_waits(void *arg)
{
    void *result = waits_for_end(arg);
    __asm__ volatile("" : : "r"(&result) : "memory");
    return result;
}

/* The coroutine inside of it waits. */
static void *task_with_inner(void *arg)
{
    aco_t *inner = aco_new(inner_waits, arg, NULL);
    CHECK(inner && aco_send(inner, NULL) == arg);
    aco_destroy(inner);
    return arg;
}

static int embracing; /* so many wait for each other */

static void *tells(void *unused)
{
    while (embracing < 2)
        aco_yield();
    pthread_barrier_wait(&barrier);
    return unused;
}

/* In its caller, which so is who spawns. */
static inline __attribute__((always_inline)) void spawn_detached(void *(*fn)(void *), const aco_options_t *options)
{
    aco_t *task = aco_spawn(fn, NULL, options);
    CHECK(task != NULL);
    CHECK_EQ(aco_detach(task), 0);
}

/* Two tasks that wait for each other's locks until their group is cancelled. */
static aco_mutex_t left, right;
static aco_group_t embrace;

FAR_FROM_OTHERS void *embraces(void *own);
FAR_FROM_OTHERS void *embraces(void *own)
{
    aco_mutex_t *other = own == &left ? &right : &left;
    CHECK_EQ(aco_mutex_lock(own), 0);
    aco_yield();
    embracing++;
    FAILS_WITH(aco_mutex_lock(other), ECANCELED);
    CHECK_EQ(aco_mutex_unlock(own), 0);
    return NULL;
}

static void *spawns_embrace(void *unused)
{
    const aco_options_t options = {.name = "embrace"};
    CHECK_EQ(aco_group_begin(&embrace, ACO_KEEP_GOING), 0);
    CHECK(aco_group_spawn(&embrace, embraces, &left, &options) != NULL);
    CHECK(aco_group_spawn(&embrace, embraces, &right, &options) != NULL);
    (void)aco_group_end(&embrace);
    return unused;
}

FAR_FROM_OTHERS void spawns_on_share_stack(aco_share_stack_t *stack);
FAR_FROM_OTHERS void spawns_on_share_stack(aco_share_stack_t *stack)
{
    const aco_options_t on_share_stack = {.stack = stack, .name = "shares a stack"};
    spawn_detached(task_on_share_stack, &on_share_stack);
    spawn_detached(other_on_share_stack, &on_share_stack);
    spawn_detached(task_with_inner, &on_share_stack);
    __asm__ volatile("");
}

static void *waiting_thread(void *unused)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    const aco_options_t of_tells = {.name = "tells"};
    waiters = aco_scheduler_open();
    for (int i = 0; i < 5; i++) {
        char name[ACO_NAME_SIZE];
        const aco_options_t options = {.name = name};
        snprintf(name, sizeof name, "sleeper %d", i);
        spawn_detached(private_task, &options);
        spawn_detached(task_with_inner, NULL);
        spawns_on_share_stack(stack);
    }
    spawn_detached(writes_shared, NULL);
    spawn_detached(spawns_embrace, NULL);
    spawn_detached(tells, &of_tells);
    CHECK_EQ(aco_run(), 0);
    aco_scheduler_close();
    aco_share_stack_destroy(stack);
    return unused;
}

static void let_end(void *unused)
{
    (void)unused;
    aco_event_set(&end);
    CHECK_EQ(aco_scope_cancel(&embrace.scope), 0);
}

FAR_FROM_OTHERS void *spins(void *unused);
FAR_FROM_OTHERS void *spins(void *unused)
{
    pthread_barrier_wait(&barrier);
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        if (!__atomic_load_n(&is_busy, __ATOMIC_RELAXED))
            usleep(1000); /* the thread, not the task: nobody's time is used */
    return unused;
}

enum { OVERSLEEPERS = 20 }; /* 16 are told one by one */

/* On the thread of the one that spins. */
FAR_FROM_OTHERS void *oversleeps(void *unused);
FAR_FROM_OTHERS void *oversleeps(void *unused)
{
    CHECK_EQ(aco_sleep(1), 0);
    __asm__ volatile("");
    return unused;
}

static void *spinning_thread(void *unused)
{
    const aco_options_t options = {.name = "hog"}, of_sleeper = {.name = "oversleeper"};
    for (int i = 0; i < OVERSLEEPERS; i++)
        spawn_detached(oversleeps, &of_sleeper);
    spawn_detached(spins, &options);
    CHECK_EQ(aco_run(), 0);
    return unused;
}

/* ---- The pages ---- */

/* The longest wait is first: no later one is longer. */
static void are_by_age(void)
{
    long long before = INT64_MAX, ms;
    for (const char *at = answer; (at = strstr(at, " ms, ")) != NULL; at++) {
        const char *number = at;
        while (number > answer && number[-1] >= '0' && number[-1] <= '9')
            number--;
        ms = strtoll(number, NULL, 10);
        CHECK(ms <= before);
        before = ms;
    }
    CHECK(before != INT64_MAX);
}

static void tasks(void)
{
    char group[32];
    CHECK_EQ(get("/debug/pprof/tasks?debug=2"), 200);
    HAS("\"sleeper 3\" [waits for event ");
    HAS("debug_pages.c:");
    HAS("waits_for_end(...)");
    HAS("private_task(...)");
    HAS(", held by 5 reader(s): coroutine 0x");
    HAS(" (sleeper 0), coroutine 0x");
    HAS(" (sleeper 2) and 2 more");
    HAS("\"shares a stack\" [waits for event ");
    HAS("task_on_share_stack(...)");
    HAS("created by spawns_embrace(...)\n\t");
    HAS("created by spawns_on_share_stack(...)\n\t");
    are_by_age();
    HAS(" (embrace), which waits at "); /* the holder */
    HAS(" for mutex 0x");
    HAS("; this one waits at ");
    HAS("task \"hog\" [does not give way, thread ");
    if (sizeof(void *) == 8) /* else its frames may not be walked in a handler */
        HAS("spins(...)");
    CHECK_EQ(get("/debug/pprof/goroutine?debug=1"), 200);
    HAS("goroutine profile: total ");
    HAS("\n5 @ 0x");
    HAS("\tprivate_task+0x");
    HAS("\ttask_on_share_stack+0x");
    HAS("\tother_on_share_stack+0x"); /* at the same depth */
    HAS("\n10 @ 0x"); /* those inside of five private tasks, and of five on the share stack */
    HAS("\tinner_waits+0x");
    HAS("its task \"hog\" does not give way");
    CHECK_EQ(get("/debug/pprof/tasks"), 200);
    HAS("\r\n\r\n\x1f\x8b\x08");
    HAS("task_on_share_stack");
    HAS("sleeper 4");
    HAS("does not give way");
    HAS("route");
    HAS("/debug/pprof/tasks");
    HAS("created_by");
    HAS("spawns_embrace");
    snprintf(group, sizeof group, "%p", (void *)&embrace);
    HAS(group); /* as the text has it */
    CHECK_EQ(get("/debug/pprof/leaked?debug=2"), 200);
    HAS("\"embrace\" [waits for mutex ");
    HAS("embraces(...)");
    HAS(" member(s) of group ");
    CHECK(!has("sleeper"));
    CHECK_EQ(get("/debug/pprof/leaked"), 200);
    HAS("\x1f\x8b\x08");
    CHECK(has("leaked") && has("embraces") && !has("waits_for_end"));
}

/* A look that waits for a thread that does not answer makes another one wait, not fail. The machine may be slow. */
static void two_looks(void)
{
    int first, second, is_done = 0;
    for (int tries = 0; tries < 5 && !is_done; tries++) {
        first = ask("GET", "/debug/pprof/tasks?debug=1", "localhost");
        second = ask("GET", "/debug/state", "localhost");
        is_done = take_answer(first) == 200;
        is_done &= take_answer(second) == 200;
    }
    CHECK(is_done);
}

/* Ends the task that spins: others of its thread then wake late, more than are told one by one. */
static void late(void)
{
    int first;
    CHECK_EQ(get("/debug/pprof/late?seconds=1&ms=20"), 200);
    HAS("ran long");
    HAS("hog");
    CHECK_EQ(get("/debug/pprof/late?seconds=1&ms=20&json=1"), 200);
    HAS("\"longest\":");
    CHECK_EQ(get("/debug/pprof/late?seconds=1&ms=20&debug=1"), 200);
    HAS("1 events, held ");
    HAS("[ran long, task \"hog\"");
    if (sizeof(void *) == 8) /* else its frames may not be walked in a handler */
        HAS("\tspins+0x");
    first = ask("GET", "/debug/pprof/late?seconds=1&debug=1", "localhost");
    while (get("/debug/pprof/tasks") != 429) /* until it is being made */
        continue;
    HAS("\r\nRetry-After: ");
    HAS("one profile at a time: /debug/pprof/late is being made, for some ");
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    CHECK_EQ(take_answer(first), 200);
    HAS("Content-Type: text/plain");
    HAS("[woke late, task \"oversleeper\"");
    HAS("[woke late, task \"(others that woke then)\"");
    CHECK(number_behind("late profile: total ") >= OVERSLEEPERS);
}

/* A profile ends when who has asked for it goes away. */
static void profiles_of_nobody(void)
{
    static const char *const pages[] = {"/debug/pprof/late?seconds=300", "/debug/pprof/profile?seconds=300"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        int first = ask("GET", pages[i], "localhost");
        while (get("/debug/pprof/late?seconds=0") != 429) /* until it is being made */
            continue;
        close(first);
        while (get("/debug/pprof/late?seconds=0") == 429)
            continue;
        HAS("HTTP/1.1 200");
    }
}

static void processor_time(void)
{
    int first;
    __atomic_store_n(&is_busy, 1, __ATOMIC_RELAXED);
    first = ask("GET", "/debug/pprof/profile?seconds=1&hz=250", "localhost:1");
    CHECK_EQ(get("/debug/pprof/tasks?debug=1"), 429); /* one at a time */
    CHECK_EQ(take_answer(first), 200);
    HAS("\x1f\x8b\x08");
    __atomic_store_n(&is_busy, 0, __ATOMIC_RELAXED);
    HAS("nanoseconds");
    HAS("spins");
    HAS("hog");
}

static void waits_and_stacks(void)
{
    CHECK_EQ(get("/debug/pprof/mutex?seconds=0"), 200);
    CHECK(has("delay") && !has("waits_for_end"));
    CHECK_EQ(get("/debug/pprof/block?seconds=1"), 200);
    HAS("\x1f\x8b\x08");
    HAS("delay");
    HAS("waits_for_end");
    HAS("holder_at");
    CHECK_EQ(get("/debug/pprof/block?seconds=0&debug=1"), 200);
    HAS("block profile: total ");
    CHECK_EQ(get("/debug/pprof/stacks"), 200);
    HAS("touched");
    HAS("private_task");
}

static void live(void)
{
    CHECK_EQ(get("/"), 200);
    HAS("Content-Security-Policy: default-src 'none'; ");
    HAS("</script>");
    CHECK_EQ(get("/debug/live"), 200);
    CHECK_EQ(get("/debug/state"), 200);
    HAS("\"program\":\"");
    HAS("\"answers\":false,\"task\":\"hog\"");
    HAS("\"state\":\"waits\",\"task\":\"");
    HAS("\"is_group\":true,\"tasks\":3,\"running\":2,");
    HAS("\"own\":\"127.0.0.1:");
    HAS("\"route\":\"/debug/state\"");
    HAS(",\"spawned_at\":");
    HAS(",\"stack_size\":");
    HAS(",\"for_lock\":1,");
    HAS(",\"name\":\"acorn_debug\"");
    CHECK(number_behind(",\"age_ms\":") > 0);
    CHECK_EQ(get("/debug/state?filter=sleeper%203"), 200);
    HAS("\"matching\":1,");
    HAS("\"for\":\"for event ");
    CHECK(!has("\"task\":\"sleeper 4"));
    CHECK_EQ(get("/debug/state?filter=debug_pages.c:1"), 200);
    HAS("\"matching\":0,"); /* no line but the first */
    CHECK_EQ(get("/debug/state?filter=" __FILE__ ":1"), 200);
    HAS("\"matching\":0,"); /* paths are long */
    CHECK_EQ(get("/debug/state?filter=debug_pages.c"), 200);
    CHECK(number_behind("\"matching\":") > 10);
    CHECK_EQ(get("/debug/pprof/tasks?json=1"), 200);
    HAS("Content-Type: application/json");
    HAS("\"task\":\"sleeper 4\"");
}

static void small_pages(void)
{
    char path[128];
    CHECK_EQ(get("/debug/pprof/"), 200);
    HAS("/debug/pprof/profile");
    HAS("One profile is made at a time");
    CHECK_EQ(get("/debug/pprof/cmdline"), 200);
    HAS("debug_pages");
    CHECK(!has("secret"));
    snprintf(path, sizeof path, "/debug/pprof/symbol?%#zx", (size_t)(uintptr_t)&spins + 1);
    CHECK_EQ(get(path), 200);
    HAS(" spins\n");
    CHECK_EQ(get("/debug/pprof/threadcreate?debug=1"), 200);
    HAS(" spawned\n");
    CHECK_EQ(get("/nothing"), 404);
    CHECK_EQ(take_answer(ask("GET", "/metrics", "evil.example")), 403);
    CHECK_EQ(take_answer(ask("GET", "/metrics", "localhost.evil.example:80")), 403);
    CHECK_EQ(take_answer(ask("GET", "/metrics", "127.evil.example")), 403); /* a name that may mean 127.0.0.1 */
    CHECK_EQ(take_answer(ask("GET", "/metrics", "127.0.0.1.evil.example:80")), 403);
    CHECK_EQ(take_answer(ask("GET", "/metrics", "127.1.2.3:80")), 200);
    CHECK_EQ(take_answer(ask("GET", "/metrics", "[::1]:80")), 200);
}

static void counts(void)
{
    static const int64_t bounds[] = {1000000, 2000000};
    aco_metric_t *counter = aco_metric_counter("test_runs", "Runs of \"this\" test.", ACO_METRIC_COUNT, "kind");
    aco_metric_t *gauge = aco_metric_gauge("test_size_bytes", "A size.", ACO_METRIC_BYTES, NULL);
    aco_metric_t *times = aco_metric_histogram("test_times_seconds", "Times.", ACO_METRIC_SECONDS, NULL, bounds, 2);
    char value[16];
    aco_metric_add(aco_metric_series(counter, "a\"b\n"), 3);
    aco_metric_add(aco_metric_series(counter, "a\"b\n"), -1);
    for (int i = 0; i < 200; i++) {
        snprintf(value, sizeof value, "%d", i);
        aco_metric_add(aco_metric_series(counter, value), 1);
    }
    aco_metric_add(aco_metric_series(gauge, NULL), 5);
    aco_metric_set(aco_metric_series(gauge, NULL), 70);
    aco_metric_add(aco_metric_series(gauge, NULL), -1);
    aco_metric_observe(aco_metric_series(times, NULL), 1000000);
    aco_metric_observe(aco_metric_series(times, NULL), 1500000);
    aco_metric_observe(aco_metric_series(times, NULL), 3000000001);
    aco_metric_observe(aco_metric_series(counter, "a"), 1); /* not of its kind */
    CHECK(aco_metric_counter("test_runs", "", ACO_METRIC_COUNT, "kind") == counter);
    CHECK(!aco_metric_gauge("test_runs", "", ACO_METRIC_COUNT, "kind") && errno == EINVAL);
    CHECK(!aco_metric_gauge("acorn_x", "", ACO_METRIC_COUNT, NULL) && errno == EINVAL);
    CHECK(!aco_metric_gauge("x", "", ACO_METRIC_BYTES, NULL) && errno == EINVAL);
    CHECK(!aco_metric_gauge("1x", "", ACO_METRIC_COUNT, NULL) && errno == EINVAL);
    CHECK(!aco_metric_histogram("x", "", ACO_METRIC_COUNT, NULL, bounds, 0) && errno == EINVAL);
    CHECK_EQ(get("/metrics"), 200);
    HAS("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n");
    HAS("# HELP test_runs Runs of \\\"this\\\" test.\n");
    HAS("test_runs_total{kind=\"a\\\"b\\n\"} 3\n");
    HAS("test_runs_total{kind=\"98\"} 1\n");
    HAS("test_runs_total{kind=\"other\"} 101\n");
    HAS("test_size_bytes 69\n");
    HAS("test_times_seconds_bucket{le=\"0.001000000\"} 1\n");
    HAS("test_times_seconds_bucket{le=\"0.002000000\"} 2\n");
    HAS("test_times_seconds_bucket{le=\"+Inf\"} 3\n");
    HAS("test_times_seconds_sum 3.002500001\n");
    HAS("acorn_http_request_duration_seconds_bucket{route=\"/debug/pprof/tasks\",method=\"GET\",status=\"200\",le=\"");
    HAS("acorn_tasks{thread=\"");
    HAS("acorn_http_requests_in_flight 1\n"); /* this one */
    CHECK(number_behind("\nprocess_start_time_seconds ") > 1000000000);
    stays("\nprocess_start_time_seconds ");
    HAS("# UNIT acorn_io_read_bytes bytes\n");
    CHECK(number_behind("acorn_io_read_bytes_total ") > 100 && number_behind("acorn_io_written_bytes_total ") > 1000);
    CHECK(number_behind("acorn_io_calls_total ") >= number_behind("acorn_io_waits_total "));
    CHECK(number_behind("acorn_io_polls_total ") > 0 && number_behind("acorn_io_events_total ") > 0);
    HAS("acorn_offload_jobs_total{kind=\"look_up\"} 0\n");
    HAS("acorn_name_lookups_total{result=\"failed\"} 0\n");
    HAS("acorn_spans_total{result=\"exported\"} 0\n");
    HAS("# EOF\n");
}

/* ---- Children of fork() ---- */

/* A child that was made while a profile was made makes profiles of its own. */
static void in_child(void)
{
    int first = ask("GET", "/debug/pprof/mutex?seconds=1", "localhost"), status = -1;
    pid_t child;
    while (get("/debug/pprof/tasks") != 429) /* until it is being made */
        continue;
    child = fork();
    if (child == 0) {
        port = aco_debug_serve("127.0.0.1:0", NULL);
        _exit(port <= 0 ? 2 : get("/debug/pprof/mutex?seconds=0") != 200);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(take_answer(first), 200);
}

static void start(void)
{
    const aco_debug_options_t wrong = {.aco__reserved = {&port, NULL}};
    FAILS_WITH(aco_debug_serve(NULL, NULL), EINVAL);
    FAILS_WITH(aco_debug_serve("6060", NULL), EINVAL);
    FAILS_WITH(aco_debug_serve("127.0.0.1:0", &wrong), EINVAL);
    FAILS_WITH(aco_debug_serve("0.0.0.0:0", NULL), EACCES);
    FAILS_WITH(aco_debug_serve("localhost.evil.example:0", NULL), EACCES);
    FAILS_WITH(aco_debug_serve("127.evil.example:0", NULL), EACCES);
    port = aco_debug_serve("localhost:0", NULL);
    CHECK(port > 0);
    FAILS_WITH(aco_debug_serve("127.0.0.1:0", NULL), EBUSY);
}

/* A child that was not told of the listener keeps it no more than its parent does. */
static void port_is_left(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), pipes[2], status = -1;
    char c;
    pid_t child;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(pipe(pipes), 0);
    child = fork();
    if (child == 0) {
        close(pipes[1]);
        _exit(read(pipes[0], &c, 1) != 0);
    }
    aco_debug_stop();
    FAILS_WITH(connect(fd, (const struct sockaddr *)&address, sizeof address), ECONNREFUSED);
    close(fd);
    close(pipes[1]);
    close(pipes[0]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    start();
}

/* ---- Signals that come late ---- */

static int lets_signals; /* atomic */

/* A timer of one profile fires while its signal is blocked; it comes in the next one. */
FAR_FROM_OTHERS void *gets_late_signal(void *number);
FAR_FROM_OTHERS void *gets_late_signal(void *number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    __atomic_store_n((long *)number, (long)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&lets_signals, __ATOMIC_ACQUIRE))
        sched_yield();
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    __asm__ volatile("");
    return number;
}

/* As the kernel would send it for the timer of an earlier profile: some kernels drop such signals by themselves. */
static void send_late_signal(long thread)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGPROF;
    info.si_code = SI_TIMER;
    info.si_value.sival_int = 1; /* of the process's first profile */
    CHECK_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, SIGPROF, &info), 0);
}

static void late_signals(void)
{
    pthread_t thread;
    long number = 0;
    int fd;
    CHECK_EQ(get("/debug/pprof/profile?seconds=1&hz=1"), 200);
    CHECK_EQ(pthread_create(&thread, NULL, gets_late_signal, &number), 0);
    while (!__atomic_load_n(&number, __ATOMIC_ACQUIRE))
        sched_yield();
    send_late_signal(number);
    fd = ask("GET", "/debug/pprof/profile?seconds=1&hz=1", "127.0.0.1");
    while (get("/debug/pprof/tasks") != 429) /* until it is being made */
        continue;
    __atomic_store_n(&lets_signals, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    CHECK_EQ(take_answer(fd), 200);
    CHECK(!has("gets_late_signal"));
}

/* ---- The pages in a server of the program ---- */

static aco_scope_t own_scope;
static int own_listener;
static aco_scheduler_t *own_server;

static void *serves_routes(void *unused)
{
    const aco_http_server_options_t options = {.routes = aco_debug_routes(), .drain_time = 1, .drain_idle_time = 1};
    pthread_barrier_wait(&barrier);
    CHECK_EQ(aco_scope_begin(&own_scope, ACO_FOREVER), 0);
    (void)aco_http_serve(own_listener, &options);
    (void)aco_scope_end(&own_scope);
    return unused;
}

static void *own_server_thread(void *unused)
{
    const aco_options_t options = {.stack_size = 128 << 10};
    own_server = aco_scheduler_open();
    spawn_detached(serves_routes, &options);
    CHECK_EQ(aco_run(), 0);
    aco_scheduler_close();
    return unused;
}

FAR_FROM_OTHERS void *gives_way(void *unused);
FAR_FROM_OTHERS void *gives_way(void *unused)
{
    pthread_barrier_wait(&barrier);
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        aco_yield();
    return unused;
}

/* Two of them always wait for each other. */
static aco_mutex_t contended;

static void *contends(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        CHECK_EQ(aco_mutex_lock(&contended), 0);
        aco_yield();
        CHECK_EQ(aco_mutex_unlock(&contended), 0);
    }
    return unused;
}

static void *yielding_thread(void *unused)
{
    const aco_options_t options = {.name = "gives way"}, contender = {.name = "contender"};
    spawn_detached(gives_way, &options);
    spawn_detached(contends, &contender);
    spawn_detached(contends, &contender);
    CHECK_EQ(aco_run(), 0);
    return unused;
}

static void end_own_server(void *unused)
{
    (void)unused;
    (void)aco_scope_cancel(&own_scope);
}

/* All threads with tasks answer there, too: no aco_debug_serve() has been called. */
static void own_routes(void)
{
    char text[ACO_IO_ADDRESS_SIZE];
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 3);
    CHECK(aco_debug_routes() != NULL);
    own_listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(own_listener, text, sizeof text), 0);
    port = atoi(strrchr(text, ':') + 1);
    pthread_create(&threads[0], NULL, yielding_thread, NULL);
    pthread_create(&threads[1], NULL, own_server_thread, NULL);
    pthread_barrier_wait(&barrier);
    CHECK_EQ(get("/debug/pprof/tasks?debug=2"), 200);
    HAS("\"gives way\" [");
    CHECK(!has(" 42949")); /* no wait began later than it is */
    CHECK(!has("\"gives way\" [does not give way"));
    CHECK_EQ(get("/debug/pprof/trace?seconds=1"), 200);
    HAS("\"ph\":\"X\"");
    HAS("\"name\":\"gives way\"");
    HAS("\"next\":\"gave way\"");
    HAS("\"next\":\"waits for a lock\"");
    HAS("\"ph\":\"b\",\"cat\":\"wait\""); /* the wait itself, with its place */
    HAS("\"name\":\"waits for a lock\"");
    HAS("debug_pages.c:");
    CHECK(answer_n > 4 && strcmp(answer + answer_n - 4, "\n]}\n") == 0);
    CHECK_EQ(get("/metrics"), 200);
    HAS("acorn_http_request_duration_seconds_bucket{route=\"/debug/pprof/tasks\"");
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    CHECK_EQ(aco_post(own_server, end_own_server, NULL), 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    is_over = 0;
    pthread_barrier_destroy(&barrier);
}

/* ---- The environment ---- */

static void begins_anew(const char *address)
{
    setenv("ACO_DEBUG", address, 1);
    execl("/proc/self/exe", "debug_pages", "ends", (char *)NULL);
    _exit(127);
}

static void is_asked_for(void)
{
    begins_anew("127.0.0.1:0");
}

static void is_not_asked_for(void)
{
    begins_anew("");
}

static void is_asked_wrongly(void)
{
    begins_anew("0.0.0.0:0");
}

static void by_environment(void)
{
    PRINTS(is_asked_for, "acorn: ACO_DEBUG: http://127.0.0.1:");
    PRINTS(is_not_asked_for, NULL);
    PRINTS(is_asked_wrongly, "acorn: ACO_DEBUG: aco_debug_serve: ");
}

/* ---- Many tasks ---- */

enum { ELDERS = 100, YOUNG = 250 }; /* the page lists 200 */
static aco_scheduler_t *crowd;
static aco_event_t anew, crowd_ends;

static void *is_elder(void *unused)
{
    CHECK_EQ(aco_event_wait(&crowd_ends), 0);
    return unused;
}

static void *is_young(void *unused)
{
    CHECK_EQ(aco_event_wait(&anew), 0);
    CHECK_EQ(aco_event_wait(&crowd_ends), 0);
    return unused;
}

/* The young ones' waits begin anew, later by more than the clock that waits are told by lags. */
static void *renews(void *unused)
{
    CHECK_EQ(aco_sleep(30 * ACO_MILLISECOND), 0);
    aco_event_set(&anew);
    aco_yield();
    pthread_barrier_wait(&barrier);
    return unused;
}

static void *crowded_thread(void *unused)
{
    const aco_options_t of_elder = {.name = "crowd elder"}, of_young = {.name = "crowd young"};
    crowd = aco_scheduler_open();
    spawn_detached(is_elder, &of_elder);
    for (int i = 0; i < YOUNG; i++)
        spawn_detached(is_young, &of_young);
    for (int i = 1; i < ELDERS; i++)
        spawn_detached(is_elder, &of_elder);
    spawn_detached(renews, NULL);
    CHECK_EQ(aco_run(), 0);
    aco_scheduler_close();
    return unused;
}

static void let_crowd_end(void *unused)
{
    (void)unused;
    aco_event_set(&crowd_ends);
}

/* Those that have waited longest are listed, wherever they stand among the others. */
static void oldest(void)
{
    const char *at;
    pthread_t thread;
    int n = 0;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, crowded_thread, NULL);
    pthread_barrier_wait(&barrier);
    CHECK_EQ(get("/debug/state?filter=crowd"), 200);
    for (at = strstr(answer, "\"oldest\":["); at && (at = strstr(at, "\"task\":\"crowd elder\"")) != NULL; at++)
        n++;
    CHECK(n >= ELDERS);
    CHECK(!has("{\"thread\":0,"));
    CHECK_EQ(aco_post(crowd, let_crowd_end, NULL), 0);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    if (argc > 1 && strcmp(argv[1], "ends") == 0) {
        aco_debug_stop();
        return 0;
    }
    by_environment();
    own_routes();
    pthread_barrier_init(&barrier, NULL, 3);
    start();
    pthread_create(&threads[0], NULL, waiting_thread, NULL);
    pthread_create(&threads[1], NULL, spinning_thread, NULL);
    pthread_barrier_wait(&barrier);
    if (argc > 1 && strcmp(argv[1], "serve") == 0) {
        __atomic_store_n(&is_busy, 1, __ATOMIC_RELAXED);
        printf("%d\n", port);
        fflush(stdout);
        (void)getchar();
    } else {
        tasks();
        two_looks();
        profiles_of_nobody();
        processor_time();
        waits_and_stacks();
        live();
        small_pages();
        counts();
        if (!UNDER_TSAN) { /* it allows no threads in such a child */
            in_child();
            port_is_left();
        }
        late_signals();
        late();
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    CHECK_EQ(aco_post(waiters, let_end, NULL), 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CHECK_EQ(get("/debug/pprof/tasks?debug=2"), 200);
    CHECK(!has("hog") && !has("sleeper"));
    CHECK_EQ(get("/debug/pprof/leaked?debug=1"), 200);
    HAS("# nothing is leaked: no tasks wait for each other in a circle");
    pthread_barrier_destroy(&barrier);
    oldest();
    aco_debug_stop();
    aco_debug_stop();
    start();
    CHECK_EQ(get("/metrics"), 200);
    aco_debug_stop();
    free(answer);
    return check_result("debug_pages");
}
