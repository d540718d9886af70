/* Which backend gets a request, and whether it is well. A backend is down after two checks, or three requests, that
 * failed one after the other; it is up again after a check that succeeds. */
#include "proxy.h"

#include <stdio.h>

enum { FAILED_CHECKS = 2, FAILED_TRIES = 3 };

static void set_up(backend_t *backend, int is_up)
{
    if (atomic_exchange(&backend->is_up, is_up) == is_up)
        return;
    atomic_store(&backend->since, aco_now());
    fprintf(stderr, "%s is %s\n", backend->address, is_up ? "up" : "down");
}

backend_t *choose_backend(uint32_t *tried)
{
    static counter_t turn; /* of several that are alike, each in turn */
    size_t first = (size_t)atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
    backend_t *best = NULL;
    int best_load = 0;
    for (int i = 0; i < proxy.count; i++) {
        size_t at = (first + (size_t)i) % (size_t)proxy.count;
        backend_t *backend = &proxy.backends[at];
        int load = atomic_load(&backend->in_flight) + (atomic_load(&backend->is_up) ? 0 : INT32_MAX / 2);
        if (!(*tried >> at & 1) && (!best || load < best_load)) {
            best = backend;
            best_load = load;
        }
    }
    if (best)
        *tried |= UINT32_C(1) << (best - proxy.backends);
    return best;
}

void tell_backend(backend_t *backend, int has_failed)
{
    if (!has_failed)
        atomic_store(&backend->failures, 0);
    else if (add(&backend->failed, 1), atomic_fetch_add(&backend->failures, 1) + 1 >= FAILED_TRIES)
        set_up(backend, 0);
}

static int is_well(aco_http_client_t *client, const backend_t *backend)
{
    char url[512];
    aco_scope_t limit;
    aco_http_response_t *response;
    int status;
    snprintf(url, sizeof url, "http://%s%s", backend->address, proxy.health_path);
    aco_scope_begin(&limit, aco_after(proxy.try_time));
    response = aco_http_get(client, url);
    status = response ? response->status : 0;
    aco_http_response_end(response);
    aco_scope_end(&limit);
    return status >= 200 && status < 400;
}

void *check_backend(void *arg)
{
    static const aco_http_client_options_t options = {.max_idle = -1, .max_redirects = -1};
    aco_http_client_t *client = aco_http_client_new(&options);
    backend_t *backend = arg;
    int failures = 0;
    while (client && aco_check_cancelled() == 0) {
        int is_up = is_well(client, backend);
        if (aco_check_cancelled() != 0)
            break;
        add(&backend->checks, 1);
        failures = is_up ? 0 : failures + 1;
        if (is_up) {
            atomic_store(&backend->failures, 0);
            set_up(backend, 1);
        } else {
            add(&backend->failed_checks, 1);
            if (failures >= FAILED_CHECKS)
                set_up(backend, 0);
        }
        (void)aco_sleep(proxy.check_interval);
    }
    aco_http_client_destroy(client);
    return NULL;
}
