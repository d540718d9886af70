/* What traces need of a POSIX system (the last part of os.h): names, numbers, a file, a lock. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* SA_SIGINFO under -std=c11 */
#endif
#include "os/clock.h"
#include "os/os.h"
#include "system/system.h"

long aco__os_thread_number(void)
{
#ifdef __linux__
    return aco__system.gettid();
#else
    return (long)(uintptr_t)aco__self();
#endif
}

#ifndef ACO_CONFIG_NO_TRACE /* the rest of the file */

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

void aco__os_thread_name(char *name, size_t sz)
{
    char text[16] = ""; /* Linux: 15 bytes at most */
#ifdef __linux__
    aco__system.prctl(PR_GET_NAME, text, 0, 0, 0);
#endif
    snprintf(name, sz, "%s", text);
}

int aco__os_file_new(const char *path)
{
    return aco__system.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

int aco__os_file_write(int file, const char *text, size_t sz, int64_t at)
{
    while (sz) {
        ssize_t n = aco__system.pwrite(file, text, sz, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text += n;
        sz -= (size_t)n;
        at += n;
    }
    return 0;
}

int aco__os_file_truncate(int file, int64_t sz)
{
    return aco__system.ftruncate(file, (off_t)sz);
}

static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;

void aco__os_trace_lock(void)
{
    aco__system.pthread_mutex_lock(&trace_lock);
}

int aco__os_trace_try_lock(int milliseconds)
{
    enum { NS_PER_MS = 1000000 };
    for (; aco__system.pthread_mutex_trylock(&trace_lock) != 0; milliseconds--) {
        if (milliseconds <= 0)
            return 0;
        aco__os_sleep_until(aco__os_now() + NS_PER_MS);
    }
    return 1;
}

void aco__os_trace_unlock(void)
{
    aco__system.pthread_mutex_unlock(&trace_lock);
}

void aco__os_trace_lock_anew(void)
{
    trace_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void (*at_fatal_signal)(void);

/* The signal is pending until this returns, and then ends the process. */
static void on_fatal_signal(int signal)
{
    struct sigaction none = {0};
    none.sa_handler = SIG_DFL;
    at_fatal_signal();
    aco__system.sigaction(signal, &none, NULL);
    aco__system.raise(signal);
}

void aco__os_at_fatal_signal(void (*fn)(void))
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM, SIGINT, SIGHUP};
    struct sigaction now, ours = {0};
    at_fatal_signal = fn;
    ours.sa_handler = on_fatal_signal;
    ours.sa_flags = SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        if (aco__system.sigaction(fatal[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
            now.sa_handler == SIG_DFL)
            aco__system.sigaction(fatal[i], &ours, NULL);
}

#endif
