/* What the proxy tells of itself: numbers for Prometheus, and a page for people. */
#include "proxy.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

const int64_t bucket_limits[BUCKETS] = {
    ACO_MILLISECOND,       2 * ACO_MILLISECOND,   5 * ACO_MILLISECOND, 10 * ACO_MILLISECOND, 50 * ACO_MILLISECOND,
    100 * ACO_MILLISECOND, 500 * ACO_MILLISECOND, ACO_SECOND,          5 * ACO_SECOND,       30 * ACO_SECOND};

/* A reply of unknown length, by printf(). */
static void __attribute__((format(printf, 2, 3))) print(aco_http_request_t *request, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    int n;
    va_start(arguments, format);
    n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (n > 0)
        (void)aco_http_reply_write(request, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static unsigned long long resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%*u %llu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * (unsigned long long)sysconf(_SC_PAGESIZE);
}

static unsigned long long answers(void)
{
    unsigned long long sum = 0;
    for (int i = 0; i < 6; i++)
        sum += value(&proxy.by_class[i]);
    return sum;
}

/* ---- Prometheus ---- */

static void print_metric(aco_http_request_t *request, const char *name, const char *type, const char *help,
                         unsigned long long number)
{
    print(request, "# HELP proxy_%s %s\n# TYPE proxy_%s %s\nproxy_%s %llu\n", name, help, name, type, name, number);
}

static void print_times(aco_http_request_t *request)
{
    unsigned long long sum = 0;
    print(request, "# HELP proxy_request_seconds Time of a request.\n# TYPE proxy_request_seconds histogram\n");
    for (int i = 0; i < BUCKETS; i++) {
        sum += value(&proxy.buckets[i]);
        print(request, "proxy_request_seconds_bucket{le=\"%g\"} %llu\n", (double)bucket_limits[i] / (double)ACO_SECOND,
              sum);
    }
    sum += value(&proxy.buckets[BUCKETS]);
    print(request,
          "proxy_request_seconds_bucket{le=\"+Inf\"} %llu\nproxy_request_seconds_sum %.6f\n"
          "proxy_request_seconds_count %llu\n",
          sum, (double)value(&proxy.total_us) / 1e6, sum);
}

static unsigned long long tries_of(const backend_t *b)
{
    return value(&b->tries);
}
static unsigned long long failed_of(const backend_t *b)
{
    return value(&b->failed);
}
static unsigned long long failed_checks_of(const backend_t *b)
{
    return value(&b->failed_checks);
}
static unsigned long long is_up_of(const backend_t *b)
{
    return atomic_load(&b->is_up) != 0;
}
static unsigned long long in_flight_of(const backend_t *b)
{
    return (unsigned long long)atomic_load(&b->in_flight);
}

static void print_backends(aco_http_request_t *request)
{
    static const struct {
        const char *name, *type, *help;
        unsigned long long (*of)(const backend_t *backend);
    } metrics[] = {{"tries_total", "counter", "Requests sent to a backend.", tries_of},
                   {"failed_total", "counter", "Requests that a backend did not answer.", failed_of},
                   {"failed_checks_total", "counter", "Health checks that failed.", failed_checks_of},
                   {"up", "gauge", "Whether it gets requests.", is_up_of},
                   {"in_flight", "gauge", "Requests that it has not answered yet.", in_flight_of}};
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        print(request, "# HELP proxy_backend_%s %s\n# TYPE proxy_backend_%s %s\n", metrics[i].name, metrics[i].help,
              metrics[i].name, metrics[i].type);
        for (int k = 0; k < proxy.count; k++)
            print(request, "proxy_backend_%s{backend=\"%s\"} %llu\n", metrics[i].name, proxy.backends[k].address,
                  metrics[i].of(&proxy.backends[k]));
    }
}

void show_metrics(aco_http_request_t *request, void *arg)
{
    (void)arg;
    if (aco_http_reply_begin(request, 200, "text/plain; version=0.0.4", -1) != 0)
        return;
    print(request, "# HELP proxy_answers_total Answers to clients.\n# TYPE proxy_answers_total counter\n");
    for (int i = 2; i < 6; i++)
        print(request, "proxy_answers_total{class=\"%dxx\"} %llu\n", i, (unsigned long long)value(&proxy.by_class[i]));
    print(request, "proxy_answers_total{class=\"none\"} %llu\n", (unsigned long long)value(&proxy.by_class[0]));
    print_metric(request, "aborted_total", "counter", "Answers that broke off.", value(&proxy.aborted));
    print_metric(request, "retries_total", "counter", "Tries after the first.", value(&proxy.retries));
    print_metric(request, "sent_bytes_total", "counter", "Bytes of bodies sent to clients.", value(&proxy.bytes));
    print_metric(request, "in_flight", "gauge", "Requests that have no answer yet.",
                 (unsigned long long)atomic_load(&proxy.in_flight));
    print_metric(request, "resident_bytes", "gauge", "Memory of the process.", resident_bytes());
    print_times(request);
    print_backends(request);
}

/* ---- The page ---- */

static const char page_begins[] =
    "<!doctype html><html lang=en><meta charset=utf-8><title>proxy</title>\n"
    "<meta name=viewport content='width=device-width'><meta http-equiv=refresh content=2>\n"
    "<style>:root{color-scheme:light dark;--line:light-dark(#d9dce1,#3a3f47);--soft:light-dark(#5d6673,#9aa4b1);"
    "--good:light-dark(#12733a,#5fd38d);--bad:light-dark(#b3261e,#ff8a80);--card:light-dark(#f6f7f9,#1d2127)}\n"
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;"
    "background:light-dark(#fff,#14171b);color:light-dark(#1b1f24,#e6e9ed)}\n"
    "h1{font-size:1.4rem;margin:0 0 1rem}dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));"
    "gap:.75rem;margin:0 0 2rem}dl div{background:var(--card);border:1px solid var(--line);border-radius:.5rem;"
    "padding:.6rem .9rem}dt{color:var(--soft);font-size:.85rem}dd{margin:0;font-size:1.35rem;"
    "font-variant-numeric:tabular-nums}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}th,td{padding:.5rem .75rem;"
    "border-bottom:1px solid var(--line);text-align:right}th{color:var(--soft);font-weight:600;font-size:.85rem}"
    "th:first-child,td:first-child{text-align:left}.up{color:var(--good)}.down{color:var(--bad);font-weight:600}"
    ".wide{overflow-x:auto}p{color:var(--soft)}a{color:inherit}</style>\n<h1>Reverse proxy</h1>\n<dl>";

static void print_number(aco_http_request_t *request, const char *name, unsigned long long number)
{
    print(request, "<div><dt>%s</dt><dd>%llu</dd></div>\n", name, number);
}

void show_status(aco_http_request_t *request, void *arg)
{
    int64_t now = aco_now();
    (void)arg;
    if (aco_http_reply_begin(request, 200, "text/html; charset=utf-8", -1) != 0)
        return;
    (void)aco_http_reply_write(request, page_begins, sizeof page_begins - 1);
    print_number(request, "answers", answers());
    print_number(request, "errors (5xx)", value(&proxy.by_class[5]));
    print_number(request, "broken off", value(&proxy.aborted));
    print_number(request, "retries", value(&proxy.retries));
    print_number(request, "in flight", (unsigned long long)atomic_load(&proxy.in_flight));
    print_number(request, "memory, MiB", resident_bytes() >> 20);
    print(request, "</dl>\n<div class=wide><table><tr><th>backend<th>state<th>for, s<th>in flight<th>requests<th>failed"
                   "<th>failed checks\n");
    for (int i = 0; i < proxy.count; i++) {
        const backend_t *b = &proxy.backends[i];
        int is_up = atomic_load(&b->is_up);
        int64_t since = atomic_load(&b->since);
        print(request, "<tr><td>%s<td class=%s>%s<td>%lld<td>%llu<td>%llu<td>%llu<td>%llu of %llu\n", b->address,
              is_up ? "up" : "down", is_up ? "up" : "down",
              (long long)((now - (since ? since : proxy.began)) / ACO_SECOND), in_flight_of(b), tries_of(b),
              failed_of(b), failed_checks_of(b), (unsigned long long)value(&b->checks));
    }
    print(request, "</table></div>\n<p>Up for %lld s. The same as numbers: <a href=/metrics>/metrics</a></p>\n",
          (long long)((now - proxy.began) / ACO_SECOND));
}
