/* What the files of the reverse proxy share. main.c says what it is. */
#ifndef PROXY_H
#define PROXY_H

#include <aco/http.h>
#include <aco/threads.h>

#include <stdatomic.h>

enum { MOST_BACKENDS = 32, BUCKETS = 10 };

typedef _Atomic uint64_t counter_t;

static inline void add(counter_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline uint64_t value(const counter_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* All threads use it at once. */
typedef struct backend {
    const char *address;      /* "host:port" */
    atomic_int is_up;
    atomic_int failures;      /* one after the other */
    atomic_int in_flight;     /* requests */
    counter_t tries, failed;  /* requests that were sent to it, and those that it has not answered */
    counter_t checks, failed_checks;
    _Atomic int64_t since;    /* when is_up changed last, on the clock of aco_now() */
} backend_t;

typedef struct proxy {
    backend_t backends[MOST_BACKENDS];
    int count;
    const char *health_path;
    int64_t check_interval;   /* nanoseconds, as the next ones */
    int64_t try_time;         /* for one backend to begin its answer */
    int64_t stall_time;       /* for the next part of an answer */
    int64_t request_time;     /* for all of it */
    int64_t drain_time;
    atomic_int in_flight;
    counter_t by_class[6];    /* answers to clients, by the status's first digit */
    counter_t aborted;        /* answers that were broken off */
    counter_t retries, bytes;
    counter_t buckets[BUCKETS + 1]; /* of the requests' times */
    counter_t total_us;
    int64_t began;
} proxy_t;

extern proxy_t proxy;

/* backends.c */

/* The backend for the next try: of those that are up, one with the fewest requests. If all that are left are down, one
 * of them. `tried`: a bit for each that was tried already. NULL: all were. */
backend_t *choose_backend(uint32_t *tried);
/* A try has ended. */
void tell_backend(backend_t *backend, int has_failed);
/* A task: asks a backend now and then whether it is well. */
void *check_backend(void *backend);

/* forward.c: handlers and what they need */
int forward_begin(void); /* for the calling thread: 0, or -1 */
void forward_end(void);
void forward(aco_http_request_t *request, void *arg);

/* status.c: handlers */
extern const int64_t bucket_limits[BUCKETS]; /* nanoseconds */
void show_metrics(aco_http_request_t *request, void *arg);
void show_status(aco_http_request_t *request, void *arg);

#endif
