/* Tells which seed runs while the process dies, by a fatal signal or by exit(): the code under test may call abort(),
 * or access memory that it must not. What handled the signal before handles it next. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sigaction() under -std=c11 */
#endif
#include "sim/last_words.h"

#include "system/system.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { STDERR_FILE = 2, SIGNALS = 5 };
static const int fatal[SIGNALS] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction handled_before[SIGNALS];
static uint64_t running_seed; /* 0: none runs, or it was told */
static void (*told_command)(uint64_t seed);

static void tell(const char *why)
{
    char text[128];
    uint64_t seed = running_seed;
    int n = snprintf(text, sizeof text, "acorn: simulation: seed %" PRIu64 ": %s\n", seed, why);
    running_seed = 0;
    if (!seed)
        return;
    (void)!aco__system.write(STDERR_FILE, text, (size_t)n);
    if (told_command)
        told_command(seed);
}

/* It may run snprintf() in the middle of libc's work: the process is about to die in any case. What handled the signal
 * before may come here again; then the system's action is next. */
static void handle_fatal(int signal, siginfo_t *info, void *context)
{
    static int is_second;
    struct sigaction none = {0};
    int error = errno;
    (void)context;
    none.sa_handler = SIG_DFL;
    tell("the process dies by a signal");
    for (int i = 0; i < SIGNALS; i++)
        if (fatal[i] == signal)
            aco__system.sigaction(signal, is_second ? &none : &handled_before[i], NULL);
    is_second = 1;
    if (info->si_code <= 0) /* it was sent; a fault comes again by itself */
        aco__system.raise(signal); /* blocked until this returns */
    errno = error;
}

static void tell_at_exit(void)
{
    tell("the process ends by exit()");
}

static int is_ours(int signal)
{
    struct sigaction now;
    return aco__system.sigaction(signal, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == handle_fatal;
}

void aco__last_words_begin(void (*command)(uint64_t seed))
{
    static int is_registered;
    struct sigaction ours = {0};
    told_command = command;
    ours.sa_sigaction = handle_fatal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < SIGNALS; i++)
        aco__system.sigaction(fatal[i], &ours, &handled_before[i]);
    if (!is_registered)
        is_registered = atexit(tell_at_exit) == 0;
}

void aco__last_words_of(uint64_t seed)
{
    running_seed = seed;
}

void aco__last_words_end(void)
{
    running_seed = 0;
    for (int i = 0; i < SIGNALS; i++)
        if (is_ours(fatal[i])) /* a handler that came later may know this one */
            aco__system.sigaction(fatal[i], &handled_before[i], NULL);
}
