/* A service's life. The first thread's first task is the service: it loads the configuration, has each thread call
 * `serve`, and waits for all. Beside it, two tasks: one for signals and times, one for the next process. */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE
#include "base/reserved.h"
#include "lifecycle/lifecycle.h"

#include "aco/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char run_call[] = "aco_service_run";
enum { DRAIN_SECONDS = 30 };

int aco_service_is_stopping(const aco_service_t *service)
{
    return __atomic_load_n(&service->is_stopping, __ATOMIC_ACQUIRE);
}

/* NULL: it does not serve. */
static aco__service_thread_t *this_thread(aco_service_t *service)
{
    int thread = aco_threads_current() == service->set ? aco_threads_index() : -1;
    return thread >= 0 && thread < service->threads ? &service->thread[thread] : NULL;
}

aco_group_t *aco_service_group(aco_service_t *service)
{
    const aco__service_thread_t *thread = this_thread(service);
    return thread ? thread->group : NULL;
}

void aco_service_ready(aco_service_t *service)
{
    aco__service_thread_t *thread = this_thread(service);
    if (!thread || __atomic_exchange_n(&thread->is_ready, 1, __ATOMIC_ACQ_REL))
        return;
    if (__atomic_add_fetch(&service->ready, 1, __ATOMIC_ACQ_REL) == (unsigned)service->threads)
        aco_mt_event_set(&service->all_ready);
}

/* ---- Stopping: by the first thread ---- */

/* What the state is left for when its time is over, or a signal shortens it. */
static void advance(aco_service_t *service)
{
    int64_t drain = service->options.drain_time;
    switch (service->state) {
    case LIFECYCLE_SERVES:
        service->state = LIFECYCLE_LAME;
        service->until = aco_after(service->options.lame_time);
        __atomic_store_n(&service->is_stopping, 1, __ATOMIC_RELEASE);
        break;
    case LIFECYCLE_LAME:
        service->state = LIFECYCLE_DRAINS;
        service->until = drain < 0 ? ACO_FOREVER : aco_after(drain);
        __atomic_store_n(&service->has_stopped, 1, __ATOMIC_RELEASE);
        (void)aco_threads_stop(service->set);
        break;
    case LIFECYCLE_DRAINS:
    case LIFECYCLE_CANCELLED:
        service->state = LIFECYCLE_CANCELLED;
        service->until = ACO_FOREVER;
        (void)aco_threads_cancel(service->set);
    }
}

/* The signal does what it does without the library, on this thread, which has blocked it. */
static void die(int number)
{
    struct sigaction standard;
    sigset_t one;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    sigemptyset(&standard.sa_mask);
    sigemptyset(&one);
    sigaddset(&one, number);
    (void)aco__system.sigaction(number, &standard, NULL);
    (void)aco__system.pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    (void)aco__system.raise(number);
}

/* A task of its own, so that signals are heard while a configuration is loaded. */
ACO__SWITCHES static void *reload(void *arg)
{
    aco_service_t *service = arg;
    char text[64];
    aco_scope_t scope;
    (void)aco_scope_begin(&scope, ACO_FOREVER);
    service->reload = &scope;
    while (!service->is_over && aco_event_wait(&service->wants_load) == 0) {
        aco_event_reset(&service->wants_load);
        if (service->state != LIFECYCLE_SERVES)
            continue;
        snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(aco_now() / ACO_MICROSECOND));
        aco__lifecycle_tell(text);
        (void)aco__lifecycle_load(service);
        aco__lifecycle_tell_surely("READY=1");
    }
    service->reload = NULL;
    (void)aco_scope_end(&scope);
    return NULL;
}

static void take_signal(aco_service_t *service, int number)
{
    if (number == SIGHUP) {
        aco_event_set(&service->wants_load);
        return;
    }
    if (service->is_retired) { /* the first signal asks for what happens already */
        service->is_retired = 0;
        return;
    }
    switch (service->state) {
    case LIFECYCLE_SERVES:
        aco__lifecycle_tell("STOPPING=1");
        advance(service);
        break;
    case LIFECYCLE_LAME:
        advance(service); /* and what follows it at once */
        advance(service);
        break;
    case LIFECYCLE_DRAINS:
        advance(service);
        break;
    case LIFECYCLE_CANCELLED:
        die(number);
    }
}

/* The next signal; 0: the time has come, or the state has changed. */
ACO__SWITCHES static int next_signal(aco_service_t *service, int64_t until)
{
    aco_scope_t pause;
    int number;
    if (aco_scope_begin(&pause, until) != 0)
        return 0;
    service->pause = &pause;
    number = aco_signal_wait(service->signals, NULL);
    service->pause = NULL;
    (void)aco_scope_end(&pause);
    return number > 0 ? number : 0;
}

/* Until the service is over: a set that is cancelled does not end this. */
ACO__SWITCHES static void *control(void *arg)
{
    aco_service_t *service = arg;
    aco_scope_t shield;
    (void)aco_shield_begin(&shield, ACO_FOREVER);
    while (!service->is_deaf) {
        int number = next_signal(service, service->until < service->next_sign ? service->until : service->next_sign);
        int64_t now = aco_now();
        if (number)
            take_signal(service, number);
        else if (now >= service->until)
            advance(service);
        if (now >= service->next_sign) {
            aco__lifecycle_tell("WATCHDOG=1");
            service->next_sign = now + service->watchdog / 2;
        }
        if (service->state != LIFECYCLE_SERVES && service->offer)
            (void)aco_scope_cancel(service->offer);
        if (service->state != LIFECYCLE_SERVES && service->start)
            (void)aco_scope_cancel(service->start);
    }
    (void)aco_scope_end(&shield);
    return NULL;
}

/* ---- The next process ---- */

/* The control task looks at times, and the state, anew. */
static void wake_control(aco_service_t *service)
{
    if (service->pause)
        (void)aco_scope_cancel(service->pause);
}

ACO__SWITCHES static void announce(aco_service_t *service)
{
    char text[64];
    snprintf(text, sizeof text, "READY=1\n%s%lld",
             service->predecessor >= 0 ? "MAINPID=" : "X_PID=", (long long)aco__system.getpid());
    aco__lifecycle_tell_surely(text);
    if (!service->watchdog || service->next_sign != ACO_FOREVER)
        return;
    service->next_sign = aco_now(); /* the old process gave none for this one */
    wake_control(service);
}

static void close_hand_over(aco_service_t *service)
{
    if (service->predecessor >= 0)
        (void)aco_io_close(service->predecessor);
    if (service->name >= 0)
        (void)aco_io_close(service->name);
    service->predecessor = service->name = -1;
}

/* Stops the service because another process serves: no load balancer need notice. */
static void retire(aco_service_t *service)
{
    if (service->state != LIFECYCLE_SERVES)
        return;
    service->is_retired = 1;
    advance(service);
    service->until = aco_now();
    wake_control(service);
}

ACO__SWITCHES static void *offer(void *arg)
{
    aco_service_t *service = arg;
    aco_scope_t scope;
    (void)aco_scope_begin(&scope, ACO_FOREVER);
    service->offer = &scope;
    if (service->is_over || service->state != LIFECYCLE_SERVES)
        (void)aco_scope_cancel(&scope);
    if (aco_mt_event_wait(&service->all_ready) == 0) {
        service->is_refused = aco__lifecycle_is_refused(service);
        if (!service->is_refused) {
            announce(service);
            service->is_refused = aco__lifecycle_relieve(service) != 0;
        }
        if (service->is_refused || aco__lifecycle_offer(service))
            retire(service);
    }
    close_hand_over(service); /* a new process need not wait for this one */
    service->offer = NULL;
    (void)aco_scope_end(&scope);
    return NULL;
}

/* ---- Serving ---- */

/* Calls `serve` inside the scope that the stop ends. 0, or -1 and errno. */
ACO__SWITCHES static int serve_until_stop(aco_service_t *service)
{
    aco_stop_t stop;
    int failed, error;
    if (aco_stop_begin(&stop, ACO_FOREVER) != 0)
        return -1;
    errno = 0;
    failed = service->serve(service, service->arg) != 0;
    error = errno;
    (void)aco_stop_end(&stop);
    errno = error;
    return failed && !(error == ECANCELED && __atomic_load_n(&service->has_stopped, __ATOMIC_ACQUIRE)) ? -1 : 0;
}

ACO__SWITCHES static void *serve_one(void *arg)
{
    aco_service_t *service = arg;
    aco__service_thread_t *thread = this_thread(service);
    aco_group_t group;
    int failed, error;
    aco_group_begin(&group, ACO_KEEP_GOING);
    thread->group = &group;
    failed = serve_until_stop(service) != 0;
    error = errno;
    if (failed)
        (void)aco_scope_cancel(&group.scope);
    (void)aco_group_end(&group);
    thread->group = NULL;
    errno = error;
    return failed ? ACO_ERROR : NULL;
}

/* 0, or -1 and errno. */
ACO__SWITCHES static int serve_all(aco_service_t *service)
{
    aco_mt_group_t group;
    int failed = 0, error;
    if (aco_mt_group_begin(&group, ACO_CANCEL_ON_FAILURE) != 0)
        return -1;
    for (int i = 0; i < service->threads && !failed; i++) {
        const aco_submit_options_t where = {.where = ACO_SUBMIT_TO, .thread = i};
        failed = aco_submit(&group, serve_one, service, &where) != 0;
    }
    error = errno;
    if (failed)
        (void)aco_scope_cancel(&group.scope);
    if (aco_mt_group_end(&group) != 0 && !failed) {
        failed = 1;
        error = errno;
    }
    errno = error;
    return failed ? -1 : 0;
}

enum { CONTROL, RELOAD, OFFER, BESIDE };

static int begin_beside(aco_service_t *service, aco_t *tasks[BESIDE], int which, void *(*run_it)(void *arg))
{
    tasks[which] = aco_spawn(run_it, service, NULL);
    return tasks[which] ? 0 : -1;
}

/* What comes before `serve`. The first signal ends its waits: nothing is to be drained. 0, or -1 and errno. */
ACO__SWITCHES static int start(aco_service_t *service)
{
    aco_scope_t scope;
    int failed, error;
    if (aco_scope_begin(&scope, ACO_FOREVER) != 0)
        return -1;
    service->start = &scope;
    failed = aco__lifecycle_take_over(service) != 0 || aco__lifecycle_load(service) != 0;
    error = errno;
    service->start = NULL;
    (void)aco_scope_end(&scope);
    errno = error;
    return failed ? -1 : 0;
}

static void cancel_if_begun(aco_scope_t *scope)
{
    if (scope)
        (void)aco_scope_cancel(scope);
}

/* Signals are heard until the others have ended: `load` may wait. */
ACO__SWITCHES static void end_beside(aco_service_t *service, aco_t *const tasks[BESIDE])
{
    aco_scope_t shield;
    (void)aco_shield_begin(&shield, ACO_FOREVER);
    service->is_over = 1;
    cancel_if_begun(service->offer);
    cancel_if_begun(service->reload);
    for (int i = OFFER; i >= CONTROL; i--) {
        if (i == CONTROL) {
            service->is_deaf = 1;
            cancel_if_begun(service->pause);
        }
        if (tasks[i])
            (void)aco_join(tasks[i], NULL);
    }
    (void)aco_scope_end(&shield);
}

/* Signals that come later do what they do without the library: tasks may be left that do not end. */
static void close_signals(aco_service_t *service, const sigset_t *numbers)
{
    (void)aco_io_close(service->signals);
    (void)aco__system.pthread_sigmask(SIG_UNBLOCK, numbers, NULL);
}

static size_t list_signals(const aco_service_t *service, int numbers[3], sigset_t *set)
{
    size_t n = service->options.load ? 3 : 2;
    numbers[0] = SIGTERM;
    numbers[1] = SIGINT;
    numbers[2] = SIGHUP;
    sigemptyset(set);
    for (size_t i = 0; i < n; i++)
        sigaddset(set, numbers[i]);
    return n;
}

/* The first task. */
ACO__SWITCHES static void *run(void *arg)
{
    aco_service_t *service = arg;
    aco_t *beside[BESIDE] = {NULL, NULL, NULL};
    int failed, error, numbers[3];
    sigset_t set;
    size_t n = list_signals(service, numbers, &set);
    service->set = aco_threads_current();
    service->signals = aco_signal_open(numbers, n);
    if (service->signals < 0)
        return ACO_ERROR;
    failed = begin_beside(service, beside, CONTROL, control) != 0 || start(service) != 0;
    if (!failed && service->state == LIFECYCLE_SERVES)
        failed = begin_beside(service, beside, RELOAD, reload) != 0 ||
                 begin_beside(service, beside, OFFER, offer) != 0 || serve_all(service) != 0;
    else if (failed && errno == ECANCELED && service->state != LIFECYCLE_SERVES)
        failed = 0;
    error = errno;
    end_beside(service, beside);
    close_hand_over(service);
    close_signals(service, &set);
    if (service->state == LIFECYCLE_CANCELLED) {
        failed = 1;
        error = EINTR;
    }
    if (service->is_refused) {
        failed = 1;
        error = ETIMEDOUT;
    }
    (void)aco_threads_cancel(service->set); /* what `serve` has left */
    errno = error;
    return failed ? ACO_ERROR : NULL;
}

static int check_options(const aco_service_options_t *options)
{
    size_t length = options->hand_over ? strlen(options->hand_over) : 1;
    if (ACO__RESERVED_IS_SET(options))
        return aco__service_fail(EINVAL, run_call, "a reserved option is not 0");
    if (options->threads < 0 || options->lame_time < 0 || options->flags & ~(unsigned)ACO_THREADS_PIN)
        return aco__service_fail(EINVAL, run_call, "an option is out of range");
    if (length < 1 || length > LIFECYCLE_HAND_OVER)
        return aco__service_fail(EINVAL, run_call, "the name of hand_over is empty or longer than 80 bytes");
    return 0;
}

static aco_service_t *new_service(ACO__SWITCHES aco_service_function_t serve, void *arg,
                                  const aco_service_options_t *options)
{
    int threads = options && options->threads ? options->threads : aco_threads_usable();
    size_t size = sizeof(aco_service_t) + (size_t)threads * sizeof(aco__service_thread_t);
    aco_service_t *service = aco__service_allocate(&size, run_call);
    if (!service)
        return NULL;
    memset(service, 0, size);
    if (options)
        service->options = *options;
    if (!service->options.drain_time)
        service->options.drain_time = DRAIN_SECONDS * ACO_SECOND;
    service->serve = serve;
    service->arg = arg;
    service->threads = threads;
    service->size = size;
    service->until = ACO_FOREVER;
    service->watchdog = aco__lifecycle_watchdog();
    service->next_sign = service->watchdog ? aco_now() : ACO_FOREVER;
    service->predecessor = service->name = -1;
    pthread_mutex_init(&service->config_lock, NULL);
    return service;
}

/* The threads begin with the signals blocked. */
static int run_threads(aco_service_t *service)
{
    aco_threads_options_t options = {.flags = service->options.flags | ACO_THREADS_FIRST_ONLY};
    int failed, error, numbers[3];
    sigset_t set, before;
    (void)list_signals(service, numbers, &set);
    (void)aco__system.pthread_sigmask(SIG_BLOCK, &set, &before);
    failed = aco_threads_run(service->threads, run, service, &options) != 0;
    error = errno;
    (void)aco__system.pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return failed ? -1 : 0;
}

int aco_service_run(aco_service_function_t serve, void *arg, const aco_service_options_t *options)
{
    aco_service_t *service;
    int failed, error, was_cancelled;
    if (!serve)
        return aco__service_fail(EINVAL, run_call, "`serve` is NULL");
    if (options && check_options(options) != 0)
        return -1;
    service = new_service(serve, arg, options);
    if (!service)
        return -1;
    failed = aco__lifecycle_inherit_from_systemd(service) != 0 || run_threads(service) != 0;
    error = errno;
    was_cancelled = service->state == LIFECYCLE_CANCELLED;
    aco__lifecycle_free_listeners(service);
    aco__lifecycle_unload(service);
    pthread_mutex_destroy(&service->config_lock);
    aco__service_free(service, service->size);
    if (failed && was_cancelled && error == EINTR)
        return aco__service_fail(EINTR, run_call, "tasks had to be cancelled");
    errno = error;
    return failed ? -1 : 0;
}
