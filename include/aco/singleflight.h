/* Singleflight: calls with the same key at the same time share one run (library acorn_resilience). docs/services.md is
 * the guide.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_singleflight_options_t options = {0};
 *   options.run = load_page; // void *load_page(const void *key, size_t size, void *arg)
 *   options.release = free_page;
 *   pages = aco_singleflight_new(&options);
 *   ...
 *   const aco_flight_t *flight = aco_singleflight_call(pages, url, strlen(url));
 *   if (flight) {
 *       show(flight->result);
 *       aco_flight_release(flight);
 *   }
 *
 * The first call with a key begins a run, in a task of its own. Calls with that key that come before it ends wait for
 * its end, and all get its result. A call after that begins a new run: nothing is kept. A caller who gives up, or whose
 * scope ends, ends neither the run nor the others' waits. No scope of a caller is the run's.
 *
 * An object belongs to the thread that uses it first, and so do its results. The keys of runs are hashed; a client who
 * chooses keys of one hash can make lookups slow. No pointer may be NULL unless its text says so. */
#ifndef ACO_SINGLEFLIGHT_H
#define ACO_SINGLEFLIGHT_H

#include "scheduler.h"

ACO__BEGIN_C

typedef struct aco_singleflight_s aco_singleflight_t;

/* Zero in a field means the default. */
typedef struct aco_singleflight_options_s {
    void *(*run)(const void *key, size_t size, void *arg); /* returns the result, which may be NULL; on error ACO_ERROR
                                                              with errno. Must be there; it may wait. The key is a
                                                              copy, and ends with a byte 0 that `size` does not
                                                              count */
    void (*release)(void *result, void *arg); /* is called when nobody uses a result any more. It must not wait. NULL:
                                                 nothing is to be done */
    int cancels_abandoned; /* not 0: when the last caller has left a run, the waits of its task fail with ECANCELED,
                              and the next call begins a new run. Default: it goes on, and others may join */
    void *arg;
    void *aco__reserved[4]; /* reserved fields are 0 */
} aco_singleflight_options_t;

/* A run that has succeeded, as its callers see it. */
typedef struct aco_flight_s {
    void *result;
    size_t callers; /* that got the result or still will: more than one if it is shared */
} aco_flight_t;

/* Makes an object without runs. Returns it; on error NULL with errno EINVAL (`run` is NULL), ENOMEM. */
ACO_API aco_singleflight_t *aco_singleflight_new(const aco_singleflight_options_t *options);

/* Waits for the run with this key, and begins it if there is none. `size` is the key's, in bytes. Returns what must be
 * released; on error NULL with errno ETIMEDOUT, ECANCELED (also: the run was cancelled, or its task ended by
 * aco_exit()), EPIPE (the object is closed), EPERM (the caller cannot wait), ENOMEM, or that of a run that failed
 * (EINVAL if it was 0). */
ACO_API const aco_flight_t *aco_singleflight_call_until_at(aco_singleflight_t *singleflight, const void *key,
                                                           size_t size, int64_t deadline, const char *location);
#define aco_singleflight_call_until(singleflight, key, size, deadline) \
    aco_singleflight_call_until_at(singleflight, key, size, deadline, ACO_PLACE)
#define aco_singleflight_call(singleflight, key, size) \
    aco_singleflight_call_until_at(singleflight, key, size, ACO_FOREVER, ACO_PLACE)

/* Gives the result of a call back. The last one frees it. */
ACO_API void aco_flight_release(const aco_flight_t *flight);

/* Makes the next call with this key begin a new run, also if one is under way; that one's callers still get its
 * result. For a key whose value has just changed. */
ACO_API void aco_singleflight_forget(aco_singleflight_t *singleflight, const void *key, size_t size);

/* Closes the object: later calls fail with EPIPE, and the runs are cancelled. Then waits until they have ended and all
 * results are released. If the wait fails, it is closed all the same; the call may be repeated. Returns 0; on error -1
 * with errno ETIMEDOUT, ECANCELED, EPERM (the caller cannot wait), ENOMEM. */
ACO_API int aco_singleflight_close_until_at(aco_singleflight_t *singleflight, int64_t deadline, const char *location);
#define aco_singleflight_close_until(singleflight, deadline) \
    aco_singleflight_close_until_at(singleflight, deadline, ACO_PLACE)
#define aco_singleflight_close(singleflight) aco_singleflight_close_until_at(singleflight, ACO_FOREVER, ACO_PLACE)

/* Frees an object without runs and results. NULL: nothing happens. */
ACO_API void aco_singleflight_destroy(aco_singleflight_t *singleflight);

ACO__END_C

#endif
