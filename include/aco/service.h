/* A service's life: it starts on all cores, says that it is ready, reads its configuration anew, ends without losing a
 * request, and hands its listeners to the next process. In the library acorn_service, on acorn_threads and acorn_io,
 * for Linux. docs/services.md is the guide.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static int serve(aco_service_t *service, void *routes) // once on each thread
 *   {
 *       const aco_http_server_options_t server = {.routes = routes};
 *       int listener = aco_service_listen(service, "http", "tcp", NULL, "8080", NULL);
 *       aco_service_ready(service);
 *       return aco_http_serve(listener, &server);
 *   }
 *
 *   int main(void)
 *   {
 *       const aco_service_options_t options = {.drain_time = 20 * ACO_SECOND, .hand_over = "shop"};
 *       return aco_service_run(serve, (void *)routes, &options) == 0 ? 0 : 1;
 *   }
 *
 * Signals. The process must have no other threads that do not block SIGTERM, SIGINT and, with `load`, SIGHUP. On the
 * service's threads they are blocked: children that aco/process.h has not started inherit that.
 *   - The first SIGTERM or SIGINT ends the service. For `lame_time` everything goes on, and aco_service_is_stopping()
 *     is 1: health checks fail, so that a load balancer sends no more. Then the service is stopped: `serve` is inside a
 *     scope (aco/scope.h) that ends with ECANCELED. Members of aco_service_group() go on. `drain_time` later all tasks
 *     are cancelled, except waits in a shield: aco_http_serve() has its own drain_time, which should be less.
 *   - A second one cancels all tasks at once, and a third one does what it does without the library: it ends the
 *     process.
 *   - SIGHUP reloads the configuration.
 *
 * The end. When `serve` has returned on all threads and the members of aco_service_group() have ended, tasks that are
 * left are cancelled, and aco_service_run() returns when they have ended.
 *
 * Restart. With `hand_over`, start the new program while the old process runs. It gets the old one's listeners, and
 * both accept connections until all threads of the new process have called aco_service_ready(). Then the old process
 * stops, without lame_time; the first SIGTERM or SIGINT that it gets from then on changes nothing. No connection is
 * refused meanwhile or lost, because the listeners stay open. If the new process ends before it is ready, the old one
 * goes on as before. The two need not be the same program or have the same number of threads. They must belong to the
 * same user, and to the same network namespace.
 *
 * systemd. Listeners of a .socket unit are used if they are there (LISTEN_FDS), and the service manager is told of
 * READY, RELOADING, STOPPING and the watchdog (NOTIFY_SOCKET, WATCHDOG_USEC): Type=notify. For restarts with
 * `hand_over` also NotifyAccess=all: the new process announces itself as the main one, and goes on with the watchdog.
 *
 * Errors are reported as in aco/scheduler.h. */
#ifndef ACO_SERVICE_H
#define ACO_SERVICE_H

#include "io.h"
#include "threads.h"

ACO__BEGIN_C

typedef struct aco_service_s aco_service_t; /* valid until aco_service_run() returns */

/* Serves on one thread; a task, inside a scope that the service's stop ends. Returns 0, or -1 with errno. */
typedef int (*aco_service_function_t)(aco_service_t *service, void *arg);

/* Zero in a field, or NULL for the whole structure, means the default. */
typedef struct aco_service_options_s {
    int threads;        /* how many run `serve`. Default: aco_threads_usable() */
    unsigned flags;     /* ACO_THREADS_PIN */
    int64_t lame_time;  /* nanoseconds between the first signal and the stop. Default: none */
    int64_t drain_time; /* nanoseconds between the stop and the cancellation. Default: 30 s; less than 0: no limit */
    /* Makes a configuration: called once before `serve`, and again for each SIGHUP. It runs as a task of the first
     * thread, which it must not block for long, outside of the stop's scope. Returns the configuration; on error NULL
     * with errno: then the service does not start, or keeps its configuration. NULL: there is none. */
    void *(*load)(void *arg);
    /* Frees a configuration that nobody uses any more. Called by who released it last, in that task and on its
     * thread; it must not wait. NULL: nothing is to be freed. */
    void (*unload)(void *value, void *arg);
    const char *hand_over; /* a name, up to 80 bytes, by which the next process finds this one. NULL: it does not */
    void *aco__reserved[4]; /* reserved fields are 0 */
} aco_service_options_t;

/* Runs serve(service, arg) as a task on each thread, the calling one being the first, until all have returned. `serve`
 * succeeds by returning 0, and also by -1 with ECANCELED once the service has been stopped. If it fails, all tasks are
 * cancelled. Returns 0; on error -1 with errno EINTR (tasks had to be cancelled because drain_time was over or by a
 * second signal), that of the first `serve` or of the first `load` that failed (EINVAL if that was 0), EINVAL (an
 * option; `serve` is NULL), ETIMEDOUT (the old process has not answered for 10 seconds), EPERM (a coroutine calls it,
 * or the name of hand_over is another user's), or one of aco_threads_run(). */
ACO_API int aco_service_run(aco_service_function_t serve, void *arg, const aco_service_options_t *options);

/* Opens a listener of the calling thread, or takes one that was inherited: of systemd with this name
 * (FileDescriptorName=), or of the old process with the same name, network, host and port. Of each listener of TCP
 * every thread has its own (ACO_IO_REUSEPORT is set), or one on the same socket if fewer were inherited. Other networks
 * have one socket for all threads. `name` has 1 to 63 bytes; the other arguments are those of aco_io_listen(), and are
 * not used for a listener of systemd's. Only `serve` and tasks of its thread may call it, before aco_service_ready().
 * May wait. Returns an owned descriptor; on error -1 with errno ETIMEDOUT, ECANCELED, EINVAL (the name), or one of
 * aco_io_listen() or aco_io_adopt(). */
ACO_API int aco_service_listen_at(aco_service_t *service, const char *name, const char *network, const char *host,
                                  const char *port, const aco_io_options_t *options, const char *location);
#define aco_service_listen(service, name, network, host, port, options)                                                \
    aco_service_listen_at(service, name, network, host, port, options, ACO_PLACE)

/* The calling thread has all its listeners, and will accept from them: what it still does before is in time if it takes
 * less than a client waits. When all threads have called it, the service manager and the old process are told. Further
 * calls by a thread, and calls by other threads, do nothing. Does not wait. */
ACO_API void aco_service_ready(aco_service_t *service);

/* Returns the calling thread's group (aco/group.h) of work that may go on when the service is stopped, such as its
 * connections. It is outside of the scope around `serve`. Its members' failures are not looked at. If `serve` fails,
 * they are cancelled. NULL: the thread runs no `serve`. Only `serve` and the group's members may use it. */
ACO_API aco_group_t *aco_service_group(aco_service_t *service);

/* Returns 1 after the signal that ends the service, or once a new process has taken over, else 0. Any thread. */
ACO_API int aco_service_is_stopping(const aco_service_t *service);

/* A configuration that a user holds. */
typedef struct aco_service_config_s {
    void *value;         /* what `load` returned */
    unsigned aco__users; /* the service, and those who hold it. Atomic */
    struct aco_service_s *aco__service;
    size_t aco__size;
} aco_service_config_t;

/* Returns the present configuration, which stays valid until aco_service_config_release(); NULL if there is no `load`.
 * A request holds one from its begin to its end, so that it sees one configuration. Does not wait. Any thread. */
ACO_API aco_service_config_t *aco_service_config(aco_service_t *service);
/* Ends the use. NULL: nothing happens. Keeps errno. Any thread, until aco_service_run() returns. */
ACO_API void aco_service_config_release(aco_service_config_t *config);

/* Tells the service manager, as sd_notify(3) does: "STATUS=12 jobs", for example. Does not wait. Any thread. Returns 0,
 * also without a service manager; on error -1 with errno of the system, or EINVAL (NULL). */
ACO_API int aco_service_notify(const char *state);

ACO__END_C

#endif
