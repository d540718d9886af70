/* Metrics that programs make. Nothing of this library calls them, so they can have the server linked, which reads the
 * environment: a static program that has metrics may never call anything else. */
#include "debug/debug_server.h"
#include "debug/metrics.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <string.h>

__attribute__((used)) static const char *const reads_environment = &aco__debug_environment;

static aco_metric_t *metric_of_program(const char *name, const char *help, int kind, int unit, const char *label,
                                       const int64_t *bounds, size_t n)
{
    if (name && strncmp(name, "acorn_", 6) == 0) {
        (void)aco__service_fail(EINVAL, "aco_metric", "names with acorn_ are the library's");
        return NULL;
    }
    return aco__metric_new(name, help, kind, unit, label, bounds, n);
}

aco_metric_t *aco_metric_counter(const char *name, const char *help, int unit, const char *label)
{
    return metric_of_program(name, help, ACO__METRIC_COUNTER, unit, label, NULL, 0);
}

aco_metric_t *aco_metric_gauge(const char *name, const char *help, int unit, const char *label)
{
    return metric_of_program(name, help, ACO__METRIC_GAUGE, unit, label, NULL, 0);
}

aco_metric_t *aco_metric_histogram(const char *name, const char *help, int unit, const char *label,
                                   const int64_t *bounds, size_t n)
{
    return metric_of_program(name, help, ACO__METRIC_HISTOGRAM, unit, label, bounds, n);
}
