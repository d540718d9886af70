/* A look into a running program over HTTP: what its tasks do, where its time goes, its metrics. In the library
 * acorn_debug, beside acorn_http; for Linux. docs/see-inside.md shows how to use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_debug_serve("127.0.0.1:6060", NULL);   // or in the environment: ACO_DEBUG=127.0.0.1:6060
 *
 *   go tool pprof -top http://127.0.0.1:6060/debug/pprof/profile?seconds=10
 *   curl http://127.0.0.1:6060/debug/pprof/tasks?debug=2
 *
 * Nothing runs until a program asks for it. Then a thread of its own answers, even while all threads with tasks are
 * busy. The environment variable is read when the library is loaded, by dlopen() too: link the shared library, or call
 * anything here. A line on stderr says which port it is, or why there is none.
 *
 * Who may read this sees names of tasks, functions, files and routes, numbers of descriptors and addresses of objects,
 * but no contents of memory and no arguments of the program (SECURITY.md). There is no login: keep the port on the
 * loopback interface, or put the routes behind middleware of your own. */
#ifndef ACO_DEBUG_H
#define ACO_DEBUG_H

#include "http.h"

ACO__BEGIN_C

/* ---- The pages --------------------------------------------------------------------------------------------------- */

/* Zeros are the defaults. */
typedef struct aco_debug_options_s {
    int is_public;          /* 1: any address is allowed. 0: only loopback addresses, in a request's Host, too */
    void *aco__reserved[2]; /* reserved fields are 0 */
} aco_debug_options_t;

/* Starts a thread that serves the pages at `address`: "127.0.0.1:6060", "[::1]:6060", "localhost:6060". Port 0: the
 * system chooses one. NULL options: the defaults. Threads whose aco_run() runs already answer from their next wait on.
 * Waits until the port is open. Any thread; in a task it blocks the thread.
 *
 * Returns the port; on error -1 with errno EINVAL (the address, a reserved field), EACCES (the address is no loopback
 * address and not public), EBUSY (it runs already), ENOMEM, EAGAIN (no thread), or one of aco_io_listen(). A child of
 * fork() has no such thread, and may call it. */
ACO_API int aco_debug_serve(const char *address, const aco_debug_options_t *options);
/* Ends the thread; requests are cut. Nothing happens if there is none. Blocks the calling thread meanwhile. Any thread
 * but that one. */
ACO_API void aco_debug_stop(void);

/* Returns the pages as routes, for a server of the program: they stay valid. From the first call on threads answer to
 * looks at their tasks, those whose aco_run() runs already from their next wait on, and requests of HTTP servers are
 * counted. Put them into a group with middleware that checks who asks. Their handlers need 64 KiB of stack. A page that
 * asks all threads waits for at most a second. A child of fork() calls it again. */
ACO_API const aco_http_route_t *aco_debug_routes(void);

/* ---- Metrics of the program -------------------------------------------------------------------------------------- */

/* Metrics stand on the page /metrics beside those of the library. They last until the process ends. Any thread may call
 * everything here at any time; adding neither waits nor locks. */
typedef struct aco_metric_s aco_metric_t;
/* One line of a metric: the metric itself, or the metric with one value of its label. */
typedef struct aco_metric_series_s aco_metric_series_t;

enum {
    ACO_METRIC_COUNT,   /* numbers as they are */
    ACO_METRIC_SECONDS, /* numbers are nanoseconds; the page has seconds. The name must end with "_seconds" */
    ACO_METRIC_BYTES    /* the name must end with "_bytes" */
};

/* A counter, which only grows: the page adds "_total" to its name. A gauge, which is set or moves. A histogram, of
 * values at most `bounds[0]`, `bounds[1]`, …, `n` of them, 1 to 32, ascending, and of the rest.
 *
 * `name` has letters, digits and "_", and does not begin with a digit or "acorn_"; `help` says on one line what it is.
 * `label` is the name of the one label that the series have; NULL: there is one series, without a label. Texts are
 * copied. Returns the metric; the same one for the same name. On error NULL with errno EINVAL (see above; another kind,
 * unit or label than before), ENOMEM, ENOSPC (more than 256 metrics). */
ACO_API aco_metric_t *aco_metric_counter(const char *name, const char *help, int unit, const char *label);
ACO_API aco_metric_t *aco_metric_gauge(const char *name, const char *help, int unit, const char *label);
ACO_API aco_metric_t *aco_metric_histogram(const char *name, const char *help, int unit, const char *label,
                                           const int64_t *bounds, size_t n);

/* Returns the series with this value of the label, which is copied, at most 63 bytes; `value` is NULL for a metric
 * without a label. A metric has at most 100 series: further values share one, with the value "other". So labels that
 * clients choose cannot fill the memory. Without memory too it returns "other". Locks: keep the result. */
ACO_API aco_metric_series_t *aco_metric_series(aco_metric_t *metric, const char *value);

/* Adds `n` to a counter (0 or more) or a gauge; sets a gauge; counts a value in a histogram. A call that does not fit
 * the kind does nothing. NULL: nothing happens. */
ACO_API void aco_metric_add(aco_metric_series_t *series, int64_t n);
ACO_API void aco_metric_set(aco_metric_series_t *series, int64_t value);
ACO_API void aco_metric_observe(aco_metric_series_t *series, int64_t value);

ACO__END_C

#endif
