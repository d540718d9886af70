/* The thread that sends spans to a collector, in batches. Its task takes all that have ended each second, and keeps
 * what it cannot send for the next time. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "base/reserved.h"
#include "debug/span_http.h"
#include "debug/span_json.h"
#include "debug/span_queue.h"
#include "system/own_thread.h"
#include "system/system.h"

#include "aco/detail/for_libraries.h"
#include "aco/scope.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BATCH = 512,          /* spans of a request, at most */
    MOST_QUEUED = 8192,   /* the defaults */
    CALL_SECONDS = 10,
    MOST_HEADERS = 8,
    OWN_HEADERS = 2,
    ENDPOINT_SIZE = 1024,
    SERVICE_SIZE = 256,
    EXPORT_STACK = 128 << 10,
    MOST_ANSWER = 64 << 10
};

typedef enum export_state { IS_OFF, IS_BEGINNING, IS_ON, IS_DRAINING, IS_BROKEN } export_state_t;

static uint64_t exported, failures; /* atomic */

static pthread_mutex_t export_lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static pthread_cond_t export_changed = PTHREAD_COND_INITIALIZER;
static export_state_t export_state;
static pthread_t export_thread;
static int has_export_atfork;
static aco_scope_t *export_scope;
static aco_spans_options_t own_options; /* with the defaults; the thread reads these while it runs */
static char endpoint[ENDPOINT_SIZE], service[SERVICE_SIZE];
static int64_t drain_until;

/* ---- Requests ---- */

typedef enum sent { WAS_TAKEN, WAS_REFUSED, CAN_BE_SENT_AGAIN } sent_t;

static sent_t meaning_of(int status)
{
    if (status >= 200 && status < 300)
        return WAS_TAKEN;
    return status == 429 || status == 502 || status == 503 || status == 504 ? CAN_BE_SENT_AGAIN : WAS_REFUSED;
}

/* A collector in this process would else make a span of each request. */
static void put_unsampled(char text[ACO_TRACEPARENT_SIZE])
{
    aco__trace_context_t context;
    aco__span_unsampled(&context);
    aco__traceparent_write(text, &context);
}

ACO__SWITCHES static sent_t post(aco_http_client_t *client, const aco__page_t *page)
{
    char parent[ACO_TRACEPARENT_SIZE], answer[1024];
    aco_http_header_t headers[OWN_HEADERS + MOST_HEADERS] = {{"Content-Type", "application/json"},
                                                             {"traceparent", parent}};
    aco_http_call_t call = {.method = "POST", .url = endpoint, .body = page->at, .length = (int64_t)page->n};
    aco_http_response_t *response;
    sent_t result;
    put_unsampled(parent);
    for (size_t i = 0; i < own_options.header_count; i++)
        headers[OWN_HEADERS + i] = own_options.headers[i];
    call.headers = headers;
    call.header_count = OWN_HEADERS + own_options.header_count;
    response = aco_http_call(client, &call);
    if (!response)
        return CAN_BE_SENT_AGAIN;
    result = meaning_of(response->status);
    for (size_t n = 0; n < MOST_ANSWER;) { /* so that the connection is kept */
        ssize_t got = aco_http_response_read(response, answer, sizeof answer);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    aco_http_response_end(response);
    return result;
}

/* Sends what can be sent; the rest. */
ACO__SWITCHES static aco_span_t *send_spans(aco_http_client_t *client, aco_span_t *list)
{
    while (list) {
        aco__page_t page = {0};
        size_t n = aco__spans_write(&page, list, BATCH, service);
        sent_t sent = page.is_broken ? WAS_REFUSED : post(client, &page);
        aco__page_free(&page);
        if (sent != WAS_TAKEN)
            __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
        if (sent == CAN_BE_SENT_AGAIN)
            break;
        if (sent == WAS_TAKEN)
            __atomic_fetch_add(&exported, n, __ATOMIC_RELAXED);
        else
            aco__spans_count_dropped(n);
        list = aco__spans_free(list, n);
    }
    return list;
}

/* ---- The thread ---- */

static void set_export_state(export_state_t to)
{
    aco__system.pthread_mutex_lock(&export_lock);
    export_state = to;
    aco__system.pthread_cond_broadcast(&export_changed);
    aco__system.pthread_mutex_unlock(&export_lock);
}

/* Until aco_spans_stop() ends the scope; then once more. */
ACO__SWITCHES static void send_until_end(aco_http_client_t *client, aco_scope_t *whole)
{
    aco_span_t *list = NULL;
    aco_scope_t last;
    int64_t until;
    set_export_state(IS_ON);
    while (aco_sleep(own_options.interval) == 0)
        list = send_spans(client, aco__spans_take(list));
    aco__system.pthread_mutex_lock(&export_lock);
    export_scope = NULL;
    until = drain_until;
    aco__system.pthread_mutex_unlock(&export_lock);
    (void)aco_scope_end(whole);
    list = aco__spans_take(list);
    if (aco_scope_begin(&last, until) == 0) {
        list = send_spans(client, list);
        (void)aco_scope_end(&last);
    }
    aco__spans_drop(list);
}

ACO__SWITCHES static void *export_task(void *unused)
{
    static aco_scope_t whole;
    aco_http_client_options_t options = {0};
    aco_http_client_t *client;
    if (own_options.client)
        options = *own_options.client;
    options.max_redirects = -1;
    options.total_time = own_options.call_time;
    client = aco_http_client_new(&options);
    if (!client || aco_scope_begin(&whole, ACO_FOREVER) != 0) {
        aco_http_client_destroy(client);
        set_export_state(IS_BROKEN);
        return unused;
    }
    aco__system.pthread_mutex_lock(&export_lock);
    export_scope = &whole;
    aco__system.pthread_mutex_unlock(&export_lock);
    send_until_end(client, &whole);
    aco_http_client_destroy(client);
    return unused;
}

static void *exports(void *unused)
{
    static const aco_options_t of_task = {.name = "acorn_spans", .stack_size = EXPORT_STACK};
    aco_t *task = aco_scheduler_open() ? aco_spawn(export_task, NULL, &of_task) : NULL;
    if (!task) {
        set_export_state(IS_BROKEN);
        return unused;
    }
    (void)aco_detach(task);
    (void)aco_run();
    (void)aco_scheduler_close();
    return unused;
}

/* ---- Calls ---- */

/* 0; -1: a text is too long, or the endpoint is no URL. */
static int take_texts(const aco_spans_options_t *options)
{
    const char *traces = getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), *all = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    const char *to = options->endpoint ? options->endpoint : traces && *traces ? traces : NULL;
    const char *name = options->service ? options->service : getenv("OTEL_SERVICE_NAME");
    int n;
    if (to)
        n = snprintf(endpoint, sizeof endpoint, "%s", to);
    else if (all && *all)
        n = snprintf(endpoint, sizeof endpoint, "%s%sv1/traces", all, all[strlen(all) - 1] == '/' ? "" : "/");
    else
        n = snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:4318/v1/traces");
    if (n < 0 || (size_t)n >= sizeof endpoint ||
        (strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0))
        return -1;
    n = snprintf(service, sizeof service, "%s", name && *name ? name : program_invocation_short_name);
    return n < 0 || (size_t)n >= sizeof service ? -1 : 0;
}

static int take_options(const aco_spans_options_t *options)
{
    own_options = options ? *options : (aco_spans_options_t){0};
    if (own_options.max_queued < 0 || own_options.interval < 0 || own_options.call_time < 0 ||
        own_options.header_count > MOST_HEADERS || ACO__RESERVED_IS_SET(&own_options))
        return -1;
    own_options.max_queued = own_options.max_queued ? own_options.max_queued : MOST_QUEUED;
    own_options.interval = own_options.interval ? own_options.interval : ACO_SECOND;
    own_options.call_time = own_options.call_time ? own_options.call_time : CALL_SECONDS * ACO_SECOND;
    return take_texts(&own_options);
}

/* A child of fork() has no such thread, and makes no spans until it starts one: their numbers would be its parent's. */
static void leave_export_to_parent(void)
{
    const pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
    const pthread_cond_t free_cond = PTHREAD_COND_INITIALIZER;
    export_lock = free_lock; /* another thread may have held it */
    export_changed = free_cond;
    export_state = IS_OFF;
    export_scope = NULL;
    aco__spans_leave_to_parent();
    aco__spans_queue_forget();
}

/* The caller has the lock. */
static int start_exporter(const aco_spans_options_t *options)
{
    static const char call[] = "aco_spans_start";
    int error;
    if (export_state != IS_OFF)
        return aco__service_fail(EBUSY, call, "spans are made already");
    if (take_options(options) != 0)
        return aco__service_fail(EINVAL, call, "the endpoint, a number or a reserved field");
    aco__spans_queue_begin((size_t)own_options.max_queued);
    if (!has_export_atfork)
        has_export_atfork = pthread_atfork(NULL, NULL, leave_export_to_parent) == 0;
    export_state = IS_BEGINNING;
    error = aco__own_thread(&export_thread, SIGPROF, exports, NULL); /* it is in profiles */
    while (!error && export_state == IS_BEGINNING)
        aco__system.pthread_cond_wait(&export_changed, &export_lock);
    if (!error && export_state == IS_ON && aco__spans_begin(own_options.per_million) == 0) {
        aco__spans_of_http();
        return 0;
    }
    if (!error && export_state == IS_ON) /* no key */
        return -1;
    if (!error)
        aco__system.pthread_join(export_thread, NULL);
    export_state = IS_OFF;
    return aco__service_fail(error ? error : ENOMEM, call, "no thread, or no memory for it");
}

int aco_spans_start(const aco_spans_options_t *options)
{
    int result, error, is_stranded;
    aco__system.pthread_mutex_lock(&export_lock);
    result = start_exporter(options);
    error = errno;
    is_stranded = result != 0 && error == EAGAIN && export_state == IS_ON;
    aco__system.pthread_mutex_unlock(&export_lock);
    if (is_stranded)
        aco_spans_stop(0);
    errno = error;
    return result;
}

void aco_spans_stop(int64_t drain_time)
{
    int is_ours;
    aco__system.pthread_mutex_lock(&export_lock);
    is_ours = export_state == IS_ON;
    if (is_ours) {
        aco__spans_end();
        export_state = IS_DRAINING;
        drain_until = aco_after(drain_time > 0 ? drain_time : 0);
        if (export_scope)
            (void)aco_scope_cancel(export_scope);
    }
    while (!is_ours && export_state == IS_DRAINING) /* another thread does */
        aco__system.pthread_cond_wait(&export_changed, &export_lock);
    aco__system.pthread_mutex_unlock(&export_lock);
    if (!is_ours)
        return;
    aco__system.pthread_join(export_thread, NULL);
    set_export_state(IS_OFF);
}

int aco_spans_stats(aco_spans_stats_t *stats)
{
    if (!stats)
        return aco__service_fail(EINVAL, "aco_spans_stats", "the statistics are NULL");
    stats->exported = __atomic_load_n(&exported, __ATOMIC_RELAXED);
    stats->failures = __atomic_load_n(&failures, __ATOMIC_RELAXED);
    aco__spans_queue_stats(stats);
    return 0;
}
