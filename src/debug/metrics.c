/* Metrics that are counted: counters, gauges, histograms. Each series has a part for each of some threads, on cache
 * lines of its own; a thread adds to its part, and who reads sums them up. Threads beyond share parts, so additions are
 * atomic. Metrics and series are only ever added: readers follow their lists without the lock. */
#define _GNU_SOURCE
#include "base/invariants.h"
#include "debug/metrics.h"
#include "system/system.h"

#include "aco/detail/counted.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_METRICS = 256,
    MOST_SERIES = 100,  /* and "other" */
    MOST_BOUNDS = 32,
    PARTS = 16,
    LINE_WORDS = 8,     /* words on a cache line */
    LABEL_SIZE = 64,
    LABELS_SIZE = 512
};

struct aco_metric_series_s {
    aco_metric_series_t *next;
    const aco_metric_t *metric;
    char labels[LABELS_SIZE]; /* as between the braces */
    size_t part_words; /* counters and gauges: a word; histograms: a sum, and a count for each bound and more */
    int64_t set; /* a gauge's; atomic. Additions come on top */
    int64_t *parts;
};

struct aco_metric_s {
    aco_metric_t *next; /* in the list */
    char *name, *help;
    char label[LABEL_SIZE]; /* "": none */
    int kind, unit;
    size_t bounds_n, series_n;
    aco_metric_series_t *series, *other;
    int64_t bounds[MOST_BOUNDS];
};

static pthread_mutex_t metrics_lock = PTHREAD_MUTEX_INITIALIZER; /* for those who add metrics and series */
static aco_metric_t *metrics, **metrics_end = &metrics;
static size_t metrics_n;

/* ---- Series ---- */

/* The caller has the lock. NULL: no memory. */
static aco_metric_series_t *new_series(aco_metric_t *metric, const char *labels)
{
    aco_metric_series_t *series = calloc(1, sizeof *series);
    size_t words = metric->kind == ACO__METRIC_HISTOGRAM ? metric->bounds_n + 2 : 1;
    if (!series)
        return NULL;
    series->part_words = (words + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS;
    series->parts = calloc(PARTS * series->part_words, sizeof *series->parts);
    if (!series->parts) {
        free(series);
        return NULL;
    }
    series->metric = metric;
    memcpy(series->labels, labels, strlen(labels) + 1);
    series->next = metric->series;
    __atomic_store_n(&metric->series, series, __ATOMIC_RELEASE);
    return series;
}

static aco_metric_series_t *find_series(const aco_metric_t *metric, const char *labels)
{
    aco_metric_series_t *series = __atomic_load_n(&metric->series, __ATOMIC_ACQUIRE);
    while (series && strcmp(series->labels, labels) != 0)
        series = series->next;
    return series;
}

aco_metric_series_t *aco__metric_series_of(aco_metric_t *metric, const char *labels)
{
    aco_metric_series_t *series = strlen(labels) < LABELS_SIZE ? find_series(metric, labels) : metric->other;
    if (series)
        return series;
    aco__system.pthread_mutex_lock(&metrics_lock);
    series = find_series(metric, labels);
    if (!series && metric->series_n < MOST_SERIES && (series = new_series(metric, labels)) != NULL)
        metric->series_n++;
    aco__system.pthread_mutex_unlock(&metrics_lock);
    return series ? series : metric->other;
}

/* The value of a label, with escapes, at most LABEL_SIZE - 1 bytes of it. A byte that is no UTF-8 becomes "?". */
static void add_label_value(char *to, size_t room, const char *value)
{
    size_t n = 0;
    for (size_t i = 0; i < LABEL_SIZE - 1 && value[i] && n + 3 < room; i++) {
        unsigned char c = (unsigned char)value[i];
        if (c == '\\' || c == '"' || c == '\n')
            to[n++] = '\\';
        to[n++] = c == '\n' ? 'n' : c < 128 ? (char)c : '?';
    }
    to[n] = 0;
}

aco_metric_series_t *aco_metric_series(aco_metric_t *metric, const char *value)
{
    char labels[LABELS_SIZE];
    int n;
    if (!metric)
        return NULL;
    if (!metric->label[0] || !value)
        return metric->other;
    n = snprintf(labels, sizeof labels, "%s=\"", metric->label);
    add_label_value(labels + n, sizeof labels - (size_t)n - 2, value);
    memcpy(labels + strlen(labels), "\"", 2);
    return aco__metric_series_of(metric, labels);
}

/* ---- Metrics ---- */

static int is_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", digits[] = "0123456789";
    size_t n = strspn(name, first), length = strlen(name);
    if (!n)
        return 0;
    while (n < length && (strchr(first, name[n]) || strchr(digits, name[n])))
        n++;
    return n == length;
}

static int ends_with_text(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* 0, or -1: something is not allowed. */
static int check_metric(const char *name, const char *help, int kind, int unit, const char *label,
                        const int64_t *bounds, size_t n)
{
    if (!help || !is_name(name) || strchr(help, '\n') || strlen(name) > 128 || strlen(help) > 512 ||
        (label && (!is_name(label) || strlen(label) >= LABEL_SIZE)) || unit < ACO_METRIC_COUNT ||
        unit > ACO_METRIC_BYTES)
        return -1;
    if ((unit == ACO_METRIC_SECONDS && !ends_with_text(name, "_seconds")) ||
        (unit == ACO_METRIC_BYTES && !ends_with_text(name, "_bytes")))
        return -1;
    if (kind != ACO__METRIC_HISTOGRAM)
        return 0;
    if (!bounds || !n || n > MOST_BOUNDS)
        return -1;
    for (size_t i = 1; i < n; i++)
        if (bounds[i] <= bounds[i - 1])
            return -1;
    return 0;
}

static void free_metric(aco_metric_t *metric)
{
    free(metric->name);
    free(metric->help);
    free(metric);
}

/* The caller has the lock. NULL: no memory. */
static aco_metric_t *make_metric(const char *name, const char *help, int kind, int unit, const char *label,
                                 const int64_t *bounds, size_t n)
{
    aco_metric_t *metric = calloc(1, sizeof *metric);
    char labels[LABEL_SIZE + 16] = "";
    if (!metric)
        return NULL;
    metric->name = strdup(name);
    metric->help = strdup(help);
    metric->kind = kind;
    metric->unit = unit;
    metric->bounds_n = kind == ACO__METRIC_HISTOGRAM ? n : 0;
    if (label) {
        memcpy(metric->label, label, strlen(label) + 1);
        snprintf(labels, sizeof labels, "%s=\"other\"", label);
    }
    if (metric->bounds_n && bounds)
        memcpy(metric->bounds, bounds, n * sizeof *bounds);
    if (!metric->name || !metric->help || (metric->other = new_series(metric, labels)) == NULL) {
        free_metric(metric);
        return NULL;
    }
    __atomic_store_n(metrics_end, metric, __ATOMIC_RELEASE);
    metrics_end = &metric->next;
    metrics_n++;
    return metric;
}

static aco_metric_t *find_metric(const char *name)
{
    aco_metric_t *metric = __atomic_load_n(&metrics, __ATOMIC_ACQUIRE);
    while (metric && strcmp(metric->name, name) != 0)
        metric = __atomic_load_n(&metric->next, __ATOMIC_ACQUIRE);
    return metric;
}

aco_metric_t *aco__metric_new(const char *name, const char *help, int kind, int unit, const char *label,
                              const int64_t *bounds, size_t n)
{
    static const char call[] = "aco_metric";
    aco_metric_t *metric;
    int error = 0;
    if (!name || check_metric(name, help, kind, unit, label, bounds, n) != 0) {
        (void)aco__service_fail(EINVAL, call, "a name, help, unit, label or bound is not allowed");
        return NULL;
    }
    aco__system.pthread_mutex_lock(&metrics_lock);
    metric = find_metric(name);
    if (metric && (metric->kind != kind || metric->unit != unit || strcmp(metric->label, label ? label : "") != 0)) {
        error = EINVAL;
        metric = NULL;
    } else if (!metric && metrics_n == MOST_METRICS) {
        error = ENOSPC;
    } else if (!metric) {
        metric = make_metric(name, help, kind, unit, label, bounds, n);
        error = metric ? 0 : ENOMEM;
    }
    aco__system.pthread_mutex_unlock(&metrics_lock);
    if (error)
        (void)aco__service_fail(error, call, error == EINVAL ? "there is another metric with this name" : "no room");
    return metric;
}

/* ---- Counting ---- */

int64_t *aco__metric_part(aco_metric_series_t *series)
{
    return &series->parts[aco__counted_part(PARTS) * series->part_words];
}

void aco_metric_add(aco_metric_series_t *series, int64_t n)
{
    if (series &&
        (series->metric->kind == ACO__METRIC_GAUGE || (series->metric->kind == ACO__METRIC_COUNTER && n >= 0)))
        __atomic_fetch_add(aco__metric_part(series), n, __ATOMIC_RELAXED);
}

void aco_metric_set(aco_metric_series_t *series, int64_t value)
{
    int64_t added = 0;
    if (!series || series->metric->kind != ACO__METRIC_GAUGE)
        return;
    for (size_t i = 0; i < PARTS; i++)
        added += __atomic_load_n(&series->parts[i * series->part_words], __ATOMIC_RELAXED);
    __atomic_store_n(&series->set, value - added, __ATOMIC_RELAXED);
}

void aco_metric_observe(aco_metric_series_t *series, int64_t value)
{
    if (series && series->metric->kind == ACO__METRIC_HISTOGRAM)
        aco__metric_observe(aco__metric_part(series),
                            aco__counted_place(series->metric->bounds, series->metric->bounds_n, value), value);
}

/* ---- Text ---- */

static int64_t sum_of(const aco_metric_series_t *series, size_t word)
{
    int64_t sum = 0;
    for (size_t i = 0; i < PARTS; i++)
        sum += __atomic_load_n(&series->parts[i * series->part_words + word], __ATOMIC_RELAXED);
    return sum;
}

void aco__metric_number(aco__page_t *page, int64_t number, int unit)
{
    uint64_t magnitude = number < 0 ? -(uint64_t)number : (uint64_t)number;
    if (unit == ACO_METRIC_SECONDS)
        aco__page_print(page, "%s%" PRIu64 ".%09" PRIu64, number < 0 ? "-" : "", magnitude / 1000000000,
                        magnitude % 1000000000);
    else
        aco__page_print(page, "%" PRId64, number);
}

static void write_line(aco__page_t *page, const char *name, const char *end, const char *labels, int64_t number,
                       int unit)
{
    aco__page_print(page, "%s%s%s%s%s ", name, end, labels[0] ? "{" : "", labels, labels[0] ? "}" : "");
    aco__metric_number(page, number, unit);
    aco__page_print(page, "\n");
}

static void write_histogram(aco__page_t *page, const aco_metric_series_t *series)
{
    const aco_metric_t *metric = series->metric;
    int64_t count = 0;
    for (size_t i = 0; i <= metric->bounds_n; i++) {
        count += sum_of(series, 1 + i);
        aco__page_print(page, "%s_bucket{%s%sle=\"", metric->name, series->labels, series->labels[0] ? "," : "");
        if (i == metric->bounds_n)
            aco__page_print(page, "+Inf");
        else
            aco__metric_number(page, metric->bounds[i], metric->unit);
        aco__page_print(page, "\"} %" PRId64 "\n", count);
    }
    write_line(page, metric->name, "_count", series->labels, count, ACO_METRIC_COUNT);
    write_line(page, metric->name, "_sum", series->labels, sum_of(series, 0), metric->unit);
}

static void write_help(aco__page_t *page, const char *help)
{
    for (; *help; help++)
        aco__page_print(page, *help == '\\' || *help == '"' ? "\\%c" : "%c", *help);
}

static void write_metric(aco__page_t *page, const aco_metric_t *metric)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"}, *const units[] = {"", "seconds", "bytes"};
    aco__page_print(page, "# TYPE %s %s\n", metric->name, kinds[metric->kind]);
    if (metric->unit)
        aco__page_print(page, "# UNIT %s %s\n", metric->name, units[metric->unit]);
    aco__page_print(page, "# HELP %s ", metric->name);
    write_help(page, metric->help);
    aco__page_print(page, "\n");
    for (const aco_metric_series_t *series = __atomic_load_n(&metric->series, __ATOMIC_ACQUIRE); series;
         series = series->next) {
        if (metric->label[0] && series == metric->other && !__atomic_load_n(&series->set, __ATOMIC_RELAXED) &&
            !sum_of(series, 0) && (metric->kind != ACO__METRIC_HISTOGRAM || !sum_of(series, 1)))
            continue; /* "other" stands there when there are others */
        if (metric->kind == ACO__METRIC_HISTOGRAM)
            write_histogram(page, series);
        else
            write_line(page, metric->name, metric->kind == ACO__METRIC_COUNTER ? "_total" : "", series->labels,
                       sum_of(series, 0) + __atomic_load_n(&series->set, __ATOMIC_RELAXED), metric->unit);
    }
}

void aco__metrics_write(aco__page_t *page)
{
    for (const aco_metric_t *metric = __atomic_load_n(&metrics, __ATOMIC_ACQUIRE); metric;
         metric = __atomic_load_n(&metric->next, __ATOMIC_ACQUIRE))
        write_metric(page, metric);
}
