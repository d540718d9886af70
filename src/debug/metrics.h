/* metrics.c: numbers of the library and of the program. */
#ifndef ACO_METRICS_H
#define ACO_METRICS_H

#include "debug/page.h"

/* /metrics: OpenMetrics text */
ACO__SWITCHES ACO__HIDDEN void aco__metrics_page(aco_http_request_t *request, void *unused);
/* From now on the program's HTTP servers are counted. */
ACO__HIDDEN void aco__metrics_count_http(void);
/* A series with several labels: `labels` is as it stands between the braces. "other" takes what is too many. */
ACO__HIDDEN aco_metric_series_t *aco__metric_series_of(aco_metric_t *metric, const char *labels);
/* Where the thread counts for a series; it lasts. */
ACO__HIDDEN int64_t *aco__metric_part(aco_metric_series_t *series);
/* Counts a value there, of a histogram: it is at most the bound with this index, and above the one before. */
static inline void aco__metric_observe(int64_t *part, size_t bound, int64_t value)
{
    __atomic_fetch_add(&part[1 + bound], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&part[0], value, __ATOMIC_RELAXED);
}
/* Writes all metrics of program and library that count here. */
ACO__HIDDEN void aco__metrics_write(aco__page_t *page);
/* Writes a number; `unit` is ACO_METRIC_…. */
ACO__HIDDEN void aco__metric_number(aco__page_t *page, int64_t number, int unit);
/* The library's own metrics, whose names begin with "acorn_". */
ACO__HIDDEN aco_metric_t *aco__metric_new(const char *name, const char *help, int kind, int unit, const char *label,
                                          const int64_t *bounds, size_t n);
enum { ACO__METRIC_COUNTER, ACO__METRIC_GAUGE, ACO__METRIC_HISTOGRAM };

#endif
