/* The watchdog's thread and its signal on POSIX systems (a part of os.h). */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pthread_condattr_setclock under -std=c11 */
#endif
#include "os/condition.h"
#include "os/os.h"
#include "system/own_thread.h"
#include "system/system.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

/* Ignored where a program has no handler for it, and used by hardly any. */
enum { WATCH_SIGNAL = SIGURG, LEAST_SIGNAL_STACK = 32 << 10 };

static pthread_mutex_t watch_mutex = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static pthread_cond_t watch_changed;
static pthread_t watch_thread;
static int watch_is_ready, watch_runs;
static unsigned watch_number; /* of the thread: an earlier one ends */
static void (*watch_tick)(void);
static int64_t watch_interval;
static void (*watch_handler)(const void *handler_returns); /* atomic: handlers of other threads read it */

void aco__os_watch_lock(void)
{
    aco__system.pthread_mutex_lock(&watch_mutex);
}

void aco__os_watch_unlock(void)
{
    aco__system.pthread_mutex_unlock(&watch_mutex);
}

static void *watch(void *number)
{
    aco__system.pthread_mutex_lock(&watch_mutex);
    while ((uintptr_t)number == watch_number) {
        int64_t next = aco__os_now() + watch_interval;
        if (aco__os_condition_wait(&watch_changed, &watch_mutex, next) == ETIMEDOUT &&
            (uintptr_t)number == watch_number)
            watch_tick();
    }
    aco__system.pthread_mutex_unlock(&watch_mutex);
    return NULL;
}

static void (*watch_child)(void);

static void watch_in_child(void)
{
    watch_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    watch_is_ready = aco__os_condition_init(&watch_changed) == 0;
    watch_runs = 0;
    watch_number++;
    watch_child();
}

int aco__os_watch_start(void (*tick)(void), int64_t interval, void (*child)(void))
{
    int error;
    watch_tick = tick;
    watch_interval = interval;
    if (watch_runs) {
        aco__system.pthread_cond_signal(&watch_changed);
        return 0;
    }
    if (!watch_is_ready) {
        error = aco__os_condition_init(&watch_changed);
        if (!error && !watch_child)
            error = aco__os_at_fork(NULL, NULL, watch_in_child);
        if (error)
            return error;
        watch_child = child;
        watch_is_ready = 1;
    }
    error = aco__own_thread(&watch_thread, 0, watch, (void *)(uintptr_t)watch_number);
    watch_runs = !error;
    return error;
}

void aco__os_watch_stop(void)
{
    pthread_t thread = watch_thread;
    int runs = watch_runs;
    watch_runs = 0;
    watch_number++;
    if (runs)
        aco__system.pthread_cond_signal(&watch_changed);
    aco__system.pthread_mutex_unlock(&watch_mutex);
    if (runs)
        aco__system.pthread_join(thread, NULL);
}

/* The process ends: by exit(), perhaps in a signal handler of a thread that has the lock. */
static __attribute__((destructor)) void watch_ends(void)
{
    if (watch_child && aco__system.pthread_mutex_trylock(&watch_mutex) == 0)
        aco__os_watch_stop();
}

/* ---- The signal ---- */

static void on_watch_signal(int signal)
{
    int error = errno;
    (void)signal;
    __atomic_load_n(&watch_handler, __ATOMIC_RELAXED)(__builtin_extract_return_addr(__builtin_return_address(0)));
    errno = error;
}

static int is_watch_handler(const struct sigaction *now)
{
    return !(now->sa_flags & SA_SIGINFO) && now->sa_handler == on_watch_signal;
}

uintptr_t aco__os_watch_this_thread(void (*handler)(const void *handler_returns))
{
    struct sigaction ours = {0}, now;
    stack_t stack;
    if (aco__system.sigaltstack(NULL, &stack) != 0 || stack.ss_flags & SS_DISABLE ||
        stack.ss_size < LEAST_SIGNAL_STACK ||
        aco__system.sigaction(WATCH_SIGNAL, NULL, &now) != 0)
        return 0;
    if (!is_watch_handler(&now) && ((now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL))
        return 0;
    __atomic_store_n(&watch_handler, handler, __ATOMIC_RELAXED);
    ours.sa_handler = on_watch_signal;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    return aco__system.sigaction(WATCH_SIGNAL, &ours, NULL) == 0 ? (uintptr_t)pthread_self() : 0;
}

int aco__os_watch_signal(uintptr_t thread)
{
    struct sigaction now;
    return thread && aco__system.sigaction(WATCH_SIGNAL, NULL, &now) == 0 && is_watch_handler(&now) &&
                   aco__system.pthread_kill((pthread_t)thread, WATCH_SIGNAL) == 0
               ? 0
               : -1;
}
