/* The page /metrics: what the library counts by itself, read when somebody asks; and what metrics.c counts, also of the
 * program's HTTP servers. docs/see-inside.md lists the names. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "debug/metrics.h"
#include "debug/proc.h"
#include "system/system.h"

#include "aco/detail/counted.h"
#include "aco/detail/http_observer.h"
#include "aco/detail/inspect.h"
#include "aco/offload.h"
#include "aco/pool.h"
#include "aco/spans.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS_SHOWN = 256 };

/* ---- HTTP ---- */

enum { KINDS_OF_REQUESTS = 256, ROUTE_SIZE = 96, METHOD_SIZE = 12 };

/* Series by what they are of, so that a request needs no text. Filled in once each; `is_filled` is atomic. */
typedef struct kind_of_request {
    int is_filled; /* 1: somebody fills it in; 2: it is */
    int status;
    const char *at; /* the route's pattern: where it stands, and its text */
    char route[ROUTE_SIZE], method[METHOD_SIZE];
    aco_metric_series_t *series;
} kind_of_request_t;

static kind_of_request_t kinds[KINDS_OF_REQUESTS];
static aco_metric_t *http_requests; /* atomic; set before the observer is */

/* Methods that clients invent would be as many as they like. */
static const char *method_of(const aco_http_request_t *request)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (request->method && strcmp(request->method, known[i]) == 0)
            return known[i];
    return "other";
}

/* A pattern as the value of a label. */
static void copy_pattern(char *to, size_t room, const char *pattern)
{
    size_t n = 0;
    for (; *pattern && n + 3 < room; pattern++) {
        if (*pattern == '"' || *pattern == '\\')
            to[n++] = '\\';
        to[n++] = *pattern >= ' ' && *pattern < 127 ? *pattern : '?';
    }
    to[n] = 0;
}

static aco_metric_series_t *series_of(const char *route, const char *method, int status)
{
    char labels[2 * ROUTE_SIZE + 64], pattern[ROUTE_SIZE];
    copy_pattern(pattern, sizeof pattern, route);
    snprintf(labels, sizeof labels, "route=\"%s\",method=\"%s\",status=\"%d\"", pattern, method, status);
    return aco__metric_series_of(__atomic_load_n(&http_requests, __ATOMIC_RELAXED), labels);
}

static void fill_kind(kind_of_request_t *kind, const char *route, const char *method, int status)
{
    kind->at = route;
    kind->status = status;
    snprintf(kind->route, sizeof kind->route, "%s", route);
    snprintf(kind->method, sizeof kind->method, "%s", method);
    kind->series = series_of(route, method, status);
    __atomic_store_n(&kind->is_filled, 2, __ATOMIC_RELEASE);
}

static aco_metric_series_t *find_kind(const char *route, const char *method, int status)
{
    size_t i = ((uintptr_t)route >> 4) * 31 + (size_t)status * 7 + (unsigned char)method[0];
    for (size_t tries = 0; tries < 8; tries++, i++) {
        kind_of_request_t *kind = &kinds[i % KINDS_OF_REQUESTS];
        int is_filled = __atomic_load_n(&kind->is_filled, __ATOMIC_ACQUIRE);
        if (!is_filled && strlen(route) < ROUTE_SIZE &&
            __atomic_compare_exchange_n(&kind->is_filled, &is_filled, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            fill_kind(kind, route, method, status);
            return kind->series;
        }
        if (is_filled == 2 && kind->at == route && kind->status == status && strcmp(kind->method, method) == 0 &&
            strcmp(kind->route, route) == 0)
            return kind->series;
    }
    return series_of(route, method, status);
}

/* What the thread has counted last: most requests are like the one before. */
static __thread struct last_kind {
    int64_t *part; /* the thread's, of the series */
    const aco_http_route_t *route;
    const char *method; /* of HTTP/1, which stands in one place; else NULL */
    int status;
    unsigned tables; /* aco__http_tables_begun then: the route is the same one */
    size_t at; /* its place in the histogram: for durations beyond `above`, up to `until` */
    int64_t above, until;
} last_kind;

/* It took so long that it counts elsewhere than the last one. */
static __attribute__((noinline)) void observe_duration(int64_t ns)
{
    const size_t at = aco__counted_place(aco__counted_bounds, ACO__COUNTED_BOUNDS, ns);
    last_kind.at = at;
    last_kind.above = at ? aco__counted_bounds[at - 1] : INT64_MIN;
    last_kind.until = at < ACO__COUNTED_BOUNDS ? aco__counted_bounds[at] : INT64_MAX;
    aco__metric_observe(last_kind.part, last_kind.at, ns);
}

/* The request is of another kind than the last one. */
static __attribute__((noinline)) void observe_kind(const aco_http_request_t *request, int64_t ns, unsigned tables)
{
    aco_metric_series_t *series =
        find_kind(request->route ? request->route->path : "", method_of(request), request->status);
    last_kind.part = aco__metric_part(series);
    last_kind.route = request->route;
    last_kind.method = request->major == 1 ? request->method : NULL;
    last_kind.status = request->status;
    last_kind.tables = tables;
    observe_duration(ns);
}

/* Its usual way calls nothing, so it saves no register. */
static void observe_request(const aco_http_request_t *request, int64_t now)
{
    const struct last_kind *last = &last_kind;
    const unsigned tables = __atomic_load_n(&aco__http_tables_begun, __ATOMIC_ACQUIRE);
    const int64_t ns = now - request->began;
    if (aco_unlikely(last->method != request->method || last->route != request->route ||
                     last->status != request->status || last->tables != tables))
        observe_kind(request, ns, tables);
    else if (aco_unlikely(ns <= last->above || ns > last->until))
        observe_duration(ns);
    else
        aco__metric_observe(last->part, last->at, ns);
}

void aco__metrics_count_http(void)
{
    aco_metric_t *metric =
        aco__metric_new("acorn_http_request_duration_seconds",
                        "Requests of HTTP servers, from their first bytes to the end of the reply.",
                        ACO__METRIC_HISTOGRAM, ACO_METRIC_SECONDS, "route", aco__counted_bounds, ACO__COUNTED_BOUNDS);
    if (!metric)
        return;
    __atomic_store_n(&http_requests, metric, __ATOMIC_RELAXED);
    __atomic_store_n(&aco__http_observer, observe_request, __ATOMIC_RELEASE);
}

static void write_head(aco__page_t *page, const char *name, const char *kind, const char *unit, const char *help)
{
    aco__page_print(page, "# TYPE %s %s\n", name, kind);
    if (unit)
        aco__page_print(page, "# UNIT %s %s\n", name, unit);
    aco__page_print(page, "# HELP %s %s\n", name, help);
}

static void write_gauge(aco__page_t *page, const char *name, const char *unit, const char *help, uint64_t value)
{
    write_head(page, name, "gauge", unit, help);
    aco__page_print(page, "%s %" PRIu64 "\n", name, value);
}

static void write_http(aco__page_t *page)
{
    uint64_t ended = __atomic_load_n(&aco__http_connections_ended, __ATOMIC_RELAXED);
    uint64_t begun = __atomic_load_n(&aco__http_connections_begun, __ATOMIC_RELAXED);
    write_head(page, "acorn_http_connections", "gauge", NULL, "Connections of HTTP servers that are open.");
    aco__page_print(page, "acorn_http_connections %" PRIu64 "\n", begun > ended ? begun - ended : 0);
    ended = __atomic_load_n(&aco__http_requests_ended, __ATOMIC_RELAXED);
    begun = __atomic_load_n(&aco__http_requests_begun, __ATOMIC_RELAXED);
    write_gauge(page, "acorn_http_requests_in_flight", NULL, "Requests of HTTP servers that have a handler now.",
                begun > ended ? begun - ended : 0);
    write_head(page, "acorn_http_accepted", "counter", NULL, "Connections of HTTP servers that there have been.");
    aco__page_print(page, "acorn_http_accepted_total %" PRIu64 "\n",
                    __atomic_load_n(&aco__http_connections_begun, __ATOMIC_RELAXED));
    write_head(page, "acorn_http_moved", "counter", NULL, "Moves of HTTP connections between threads.");
    aco__page_print(page, "acorn_http_moved_total %" PRIu64 "\n",
                    __atomic_load_n(&aco__http_connections_moved, __ATOMIC_RELAXED));
}

/* ---- Threads ---- */

static void write_of_threads(aco__page_t *page, const aco__thread_seen_t *threads, size_t n)
{
    write_head(page, "acorn_tasks", "gauge", NULL, "Tasks that have not ended.");
    for (size_t i = 0; i < n; i++)
        aco__page_print(page, "acorn_tasks{thread=\"%ld\"} %zu\n", threads[i].thread, threads[i].tasks);
    write_head(page, "acorn_tasks_spawned", "counter", NULL, "Tasks that were spawned, modulo 2^32.");
    for (size_t i = 0; i < n; i++)
        aco__page_print(page, "acorn_tasks_spawned_total{thread=\"%ld\"} %" PRIu64 "\n", threads[i].thread,
                        threads[i].spawned);
    write_head(page, "acorn_late_wakes", "counter", NULL, "Sleeps and time limits that ended over 10 ms late.");
    for (size_t i = 0; i < n; i++)
        aco__page_print(page, "acorn_late_wakes_total{thread=\"%ld\"} %" PRIu64 "\n", threads[i].thread,
                        threads[i].late_wakes);
    write_head(page, "acorn_scheduler_turns", "counter", NULL,
               "Turns that the scheduler has given to tasks, each a row of switches; modulo 2^31.");
    for (size_t i = 0; i < n; i++)
        aco__page_print(page, "acorn_scheduler_turns_total{thread=\"%ld\"} %" PRIu64 "\n", threads[i].thread,
                        threads[i].turns / 2);
}

static void write_threads(aco__page_t *page)
{
    aco__thread_seen_t *threads = calloc(MOST_THREADS_SHOWN, sizeof *threads);
    size_t n = threads ? aco__inspect_threads(threads, MOST_THREADS_SHOWN) : 0;
    write_head(page, "acorn_threads", "gauge", NULL, "Threads that have tasks, or have had some.");
    aco__page_print(page, "acorn_threads %zu\n", n);
    write_of_threads(page, threads, n < MOST_THREADS_SHOWN ? n : MOST_THREADS_SHOWN);
    free(threads);
}

/* ---- Stacks, other threads' work, the process ---- */

static void write_stacks(aco__page_t *page)
{
    aco_pool_stats_t stacks;
    aco_offload_stats_t jobs;
    if (aco_pool_stats(NULL, &stacks) == 0) {
        write_gauge(page, "acorn_stacks_in_use", NULL, "Stacks of the default pool that are used or cached.",
                    stacks.in_use);
        write_gauge(page, "acorn_stacks_idle", NULL, "Idle stacks of the default pool that have their pages.",
                    stacks.idle);
        write_gauge(page, "acorn_stacks_reserved_bytes", "bytes", "Address space of the default pool.",
                    stacks.reserved);
        write_head(page, "acorn_stacks_reclaimed", "counter", NULL, "Idle stacks whose pages were given back.");
        aco__page_print(page, "acorn_stacks_reclaimed_total %zu\n", stacks.reclaimed);
    }
    if (aco_offload_stats(&jobs) == 0) {
        write_gauge(page, "acorn_offload_threads", NULL, "Threads of the pool for blocking work.", jobs.threads);
        write_gauge(page, "acorn_offload_idle_threads", NULL, "Those of them without work.", jobs.idle);
        write_gauge(page, "acorn_offload_queued", NULL, "Functions that wait for such a thread.", jobs.queued);
    }
}

static size_t count_descriptors(void)
{
    DIR *folder = aco__system.opendir("/proc/self/fd");
    size_t n = 0;
    while (folder && aco__system.readdir(folder))
        n++;
    if (folder)
        aco__system.closedir(folder);
    return n > 3 ? n - 3 : 0; /* ".", "..", and the folder itself */
}

static void write_process(aco__page_t *page)
{
    char text[1024];
    struct timespec used = {0};
    unsigned long pages = 0;
    const char *after;
    aco__system.clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    write_head(page, "process_cpu_seconds", "counter", "seconds", "Processor time that the process has used.");
    aco__page_print(page, "process_cpu_seconds_total ");
    aco__metric_number(page, (int64_t)used.tv_sec * 1000000000 + used.tv_nsec, ACO_METRIC_SECONDS);
    after = strchr(aco__proc_text("/proc/self/statm", text, sizeof text), ' ');
    if (after)
        pages = strtoul(after, NULL, 10);
    aco__page_print(page, "\n");
    write_gauge(page, "process_resident_memory_bytes", "bytes", "Memory of the process that is in RAM.",
                (uint64_t)pages * (uint64_t)aco__system.sysconf(_SC_PAGESIZE));
    write_head(page, "process_start_time_seconds", "gauge", "seconds", "When the process began, since 1970.");
    aco__page_print(page, "process_start_time_seconds ");
    aco__metric_number(page, aco__proc_began(), ACO_METRIC_SECONDS);
    aco__page_print(page, "\n");
    write_gauge(page, "process_open_fds", NULL, "Descriptors that are open.", count_descriptors());
}

/* ---- What libraries count ---- */

static void write_counted(aco__page_t *page, const aco__counted_set_t *set)
{
    const char *last = "";
    for (size_t i = 0; i < set->n; i++) {
        const aco__counted_t *one = &set->counted[i];
        if (strcmp(last, one->name) != 0)
            write_head(page, one->name, one->is_gauge ? "gauge" : "counter", *one->unit ? one->unit : NULL, one->help);
        aco__page_print(page, "%s%s%s%s%s %" PRIu64 "\n", one->name, one->is_gauge ? "" : "_total",
                        *one->labels ? "{" : "", one->labels, *one->labels ? "}" : "", set->read(one->which));
        last = one->name;
    }
}

static void write_row(aco__page_t *page, const aco__counted_rows_t *rows, const aco__counted_row_t *row)
{
    uint64_t count = 0;
    if (rows->kind != ACO__COUNTED_TIMES) {
        aco__page_print(page, "%s%s{%s} %" PRIu64 "\n", rows->name, rows->kind == ACO__COUNTED_COUNTER ? "_total" : "",
                        row->labels, row->value);
        return;
    }
    for (size_t i = 0; i <= ACO__COUNTED_BOUNDS; i++) {
        count += row->times[i];
        aco__page_print(page, "%s_bucket{%s,le=\"", rows->name, row->labels);
        if (i == ACO__COUNTED_BOUNDS)
            aco__page_print(page, "+Inf");
        else
            aco__metric_number(page, aco__counted_bounds[i], ACO_METRIC_SECONDS);
        aco__page_print(page, "\"} %" PRIu64 "\n", count);
    }
    aco__page_print(page, "%s_count{%s} %" PRIu64 "\n%s_sum{%s} ", rows->name, row->labels, count, rows->name,
                    row->labels);
    aco__metric_number(page, (int64_t)row->value, ACO_METRIC_SECONDS);
    aco__page_print(page, "\n");
}

static void write_rows(aco__page_t *page, const aco__counted_rows_t *rows)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    aco__counted_row_t row;
    int is_there;
    write_head(page, rows->name, types[rows->kind], *rows->unit ? rows->unit : NULL, rows->help);
    for (size_t i = 0; (is_there = rows->read(rows->which, i, &row)) >= 0; i++)
        if (is_there)
            write_row(page, rows, &row);
}

static void write_spans(aco__page_t *page)
{
    aco_spans_stats_t spans;
    (void)aco_spans_stats(&spans);
    write_head(page, "acorn_spans", "counter", NULL, "Spans of traces that were exported or dropped.");
    aco__page_print(page, "acorn_spans_total{result=\"exported\"} %" PRIu64 "\n", spans.exported);
    aco__page_print(page, "acorn_spans_total{result=\"dropped\"} %" PRIu64 "\n", spans.dropped);
    write_gauge(page, "acorn_spans_queued", NULL, "Spans that wait to be exported.", spans.queued);
    write_head(page, "acorn_spans_failures", "counter", NULL, "Calls of the collector of spans that have failed.");
    aco__page_print(page, "acorn_spans_failures_total %" PRIu64 "\n", spans.failures);
}

ACO__SWITCHES void aco__metrics_page(aco_http_request_t *request, void *unused)
{
    aco__page_t page = {0};
    (void)unused;
    write_threads(&page);
    write_stacks(&page);
    write_http(&page);
    for (const aco__counted_set_t *set = aco__counted_sets(); set; set = set->next)
        write_counted(&page, set);
    for (const aco__counted_rows_t *rows = aco__counted_all_rows(); rows; rows = rows->next)
        write_rows(&page, rows);
    write_spans(&page);
    write_process(&page);
    aco__metrics_write(&page);
    aco__page_print(&page, "# EOF\n");
    aco__page_reply(request, "application/openmetrics-text; version=1.0.0; charset=utf-8", &page);
}
