/* The pages: which there are, and those that are few lines. */
#define _GNU_SOURCE /* program_invocation_name */
#include "debug/all_tasks.h"
#include "debug/cpu.h"
#include "debug/late.h"
#include "debug/live.h"
#include "debug/metrics.h"
#include "debug/pages.h"
#include "debug/state.h"
#include "debug/turns.h"
#include "system/system.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char plain[] = "text/plain; charset=utf-8";

ACO__SWITCHES static void index_page(aco_http_request_t *request, void *unused)
{
    static const char text[] =
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>acorn_debug</title>\n<h1>acorn_debug</h1>\n<ul>\n"
        "<li><a href=\"/debug/live\">all of it, live</a>: what is probably wrong stands at the top\n</ul>\n"
        "<h2>What is wrong? Read in this order</h2>\n<ol>\n"
        "<li><a href=\"/metrics\">metrics</a>, twice: does <code>acorn_tasks</code> grow, or\n"
        "<code>acorn_late_wakes_total</code> (sleeps that ended over 10 ms late)? On which thread?\n"
        "<li><a href=\"/debug/pprof/tasks?debug=2\">each task</a>, those that have waited longest first, and\n"
        "<a href=\"/debug/pprof/tasks?debug=1\">tasks by stack</a>, the most frequent first\n"
        "<li>tasks wake late: <a href=\"/debug/pprof/late?debug=1\">what ran long without giving way, and what woke\n"
        "late</a>, in 5 seconds\n"
        "<li>tasks wait for locks: <a href=\"/debug/pprof/mutex?debug=1\">where, and where the holders wait</a>, in 5\n"
        "seconds; with other tasks that they wait for: <a href=\"/debug/pprof/block?debug=1\">block</a>\n"
        "<li>the processors are busy: \n"
        "<a href=\"/debug/pprof/profile?seconds=10&amp;debug=1\">processor time</a> of 10 seconds\n"
        "<li>nothing goes on: tasks that <a href=\"/debug/pprof/leaked?debug=2\">wait for each other in a circle, for\n"
        "ever</a>\n</ol>\n<h2>More</h2>\n<ul>\n"
        "<li>a <a href=\"/debug/pprof/trace?seconds=1\">trace</a> of a second, for Perfetto\n"
        "<li>a profile of <a href=\"/debug/pprof/stacks\">touched stacks</a>\n"
        "<li><a href=\"/debug/pprof/threadcreate?debug=1\">threads</a>\n"
        "<li><a href=\"/debug/pprof/cmdline\">the program</a>\n"
        "<li><a href=\"/debug/state\">what the live page shows</a>, as JSON\n</ul>\n"
        "<p>Without <code>debug=1</code> these are profiles for <code>go tool pprof -top\n"
        "http://HOST:PORT/debug/pprof/late</code> (or <code>mutex</code>, <code>tasks</code>, ...; <code>-tags</code>\n"
        "has the labels, <code>-traces</code> the stacks). One profile is made at a time.\n";
    (void)unused;
    (void)aco_http_reply_header(request, "Content-Security-Policy", "default-src 'none'");
    (void)aco_http_reply(request, 200, "text/html; charset=utf-8", text, sizeof text - 1);
}

/* The program's name alone: arguments may be secrets. */
ACO__SWITCHES static void cmdline_page(aco_http_request_t *request, void *unused)
{
    (void)unused;
    (void)aco_http_reply(request, 200, plain, program_invocation_name, strlen(program_invocation_name));
}

/* "0x1234+0x5678": as pprof asks. */
static void write_symbols(aco__page_t *page, const char *addresses)
{
    enum { MOST = 10000 };
    aco__modules_t modules;
    aco__modules_read(&modules);
    for (int i = 0; i < MOST && *addresses; i++) {
        char *end;
        uintptr_t address = (uintptr_t)strtoull(addresses, &end, 16), start;
        const char *name;
        if (end == addresses)
            break;
        name = aco__function_at(aco__module_of(&modules, (const void *)address), (const void *)address, &start);
        if (name)
            aco__page_print(page, "%#" PRIxPTR " %.900s\n", address, name);
        addresses = *end == '+' ? end + 1 : end;
    }
    aco__modules_free(&modules);
}

ACO__SWITCHES static void symbol_page(aco_http_request_t *request, void *unused)
{
    enum { MOST_ADDRESS_BYTES = 256 << 10 };
    aco__page_t page = {0};
    const char *addresses = request->query;
    (void)unused;
    if (strcmp(request->method, "POST") == 0)
        addresses = aco_http_request_read_all(request, MOST_ADDRESS_BYTES, NULL);
    if (!addresses)
        return; /* the server answers */
    aco__page_print(&page, "num_symbols: 1\n");
    write_symbols(&page, addresses);
    aco__page_reply(request, plain, &page);
}

/* Where threads were made is not known: they are listed. */
ACO__SWITCHES static void threads_page(aco_http_request_t *request, void *unused)
{
    enum { MOST = 256 };
    static const aco__profile_kind_t kind = {"threads", "count", NULL, NULL, 1, 0, NULL, NULL};
    aco__thread_seen_t *threads = calloc(MOST, sizeof *threads);
    aco__samples_t *samples = calloc(1, sizeof *samples);
    aco__page_t page = {0};
    size_t n = threads ? aco__inspect_threads(threads, MOST) : 0;
    int debug = aco__page_number(request, "debug", 0, 1);
    (void)unused;
    page.is_broken = !threads || !samples;
    if (debug)
        aco__page_print(&page, "threadcreate profile: total %zu\n", n);
    for (size_t i = 0; i < n && i < MOST && !page.is_broken; i++) {
        aco__sample_key_t key = {.thread = threads[i].thread};
        (void)aco__samples_add(samples, &key, 1, 0);
        if (debug)
            aco__page_print(&page, "# thread %ld: %zu tasks, %" PRIu64 " spawned\n", threads[i].thread,
                            threads[i].tasks, threads[i].spawned);
    }
    if (!page.is_broken && !debug)
        aco__pprof_write(&page, samples, &kind);
    if (samples)
        aco__samples_clear(samples);
    free(samples);
    free(threads);
    aco__page_reply(request, debug ? plain : "application/octet-stream", &page);
}

const aco_http_route_t *aco__debug_routes(void)
{
    static char tasks[] = "tasks", goroutine[] = "goroutine", leaked[] = "leaked";
    static int locks = ACO__SEEN_LOCK, blocks = ACO__SEEN_LOCK | ACO__SEEN_TASKS;
    static const aco_http_route_t routes[] = {
        {"GET", "/debug/pprof/tasks", aco__tasks_page, tasks},
        {"GET", "/debug/pprof/goroutine", aco__tasks_page, goroutine},
        {"GET", "/debug/pprof/leaked", aco__tasks_page, leaked},
        {"GET", "/debug/pprof/late", aco__late_page, NULL},
        {"GET", "/debug/pprof/profile", aco__cpu_page, NULL},
        {"GET", "/debug/pprof/block", aco__waits_page, &blocks},
        {"GET", "/debug/pprof/mutex", aco__waits_page, &locks},
        {"GET", "/debug/pprof/stacks", aco__waits_page, NULL},
        {"GET", "/debug/pprof/threadcreate", threads_page, NULL},
        {"GET", "/debug/pprof/cmdline", cmdline_page, NULL},
        {"GET", "/debug/pprof/symbol", symbol_page, NULL},
        {"POST", "/debug/pprof/symbol", symbol_page, NULL},
        {"GET", "/debug/pprof/", index_page, NULL},
        {"GET", "/debug/pprof/trace", aco__turns_page, NULL},
        {"GET", "/debug/state", aco__state_page, NULL},
        {"GET", "/debug/live", aco__live_page, NULL},
        {"GET", "/metrics", aco__metrics_page, NULL},
        {NULL, NULL, NULL, NULL},
    };
    (void)aco__inspect_on(); /* without: threads do not answer, and the pages say so */
    aco__metrics_count_http();
    return routes;
}

/* ---- Who may ask ---- */

int aco__debug_is_loopback(const char *host)
{
    const int is_number = host[strspn(host, "0123456789.")] == 0; /* 127.evil.example is a name like any other */
    return strcmp(host, "localhost") == 0 || (is_number && strncmp(host, "127.", 4) == 0) ||
           strcmp(host, "::1") == 0 || strcmp(host, "[::1]") == 0;
}

ACO__SWITCHES void aco__debug_check_host(aco_http_request_t *request, void *unused)
{
    static const char text[] = "this port answers to the host's own names only: localhost, 127.0.0.1\n";
    char host[64];
    const char *end = strrchr(request->host, ':');
    size_t n = end && !strchr(end, ']') ? (size_t)(end - request->host) : strlen(request->host);
    (void)unused;
    if (n < sizeof host) {
        memcpy(host, request->host, n);
        host[n] = 0;
    }
    if (n < sizeof host && aco__debug_is_loopback(host))
        (void)aco_http_next(request);
    else
        (void)aco_http_reply(request, 403, plain, text, sizeof text - 1);
}
