/* Tells which seed runs while the process dies: the code under test may call abort(), access memory that it must not,
 * or never end, so that timeout(1) ends it. A handler that the program has set before goes first. The seed is told if
 * that gives the signal up; it might as well mend a fault and go on. */
#define _GNU_SOURCE /* sigaction() under -std=c11 */
#include "sim/last_words.h"
#include "sim/notes_text.h"
#include "sim/notes_trace.h"
#include "sim/world.h"

#include "base/invariants.h"
#include "system/system.h"

#include "aco/detail/for_libraries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FAULTS = 4 /* the first ones */, SIGNALS = 14, SLOTS = 4 };
static const int fatal[SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL, SIGABRT, SIGTRAP, SIGSYS,
                                   SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGALRM, SIGXCPU, SIGPIPE};
/* A handler that the program sets during a run may know that of the run, and give the signal to it when the run is
 * over: by a call, or by setting it again. Then the next runs have a handler of their own. With SLOTS left behind, new
 * runs have none: as a rule, the program's handlers lead to one of them. */
static struct sigaction handled_before[SLOTS][SIGNALS];
static unsigned char is_taken[SLOTS][SIGNALS];
static uint64_t running_seed; /* 0: none runs, or it was told */
static pid_t process;         /* that runs it, and not a child of it */
static const aco__sim_notes_t *told_notes;
static const aco__sim_command_t *told_command;
static const char *told_replay;

/* A sanitizer ends the process by its own means. libFuzzer has a callback already, which keeps the input. */
ACO__OPTIONAL(void, __sanitizer_set_death_callback, (void (*callback)(void)));
ACO__OPTIONAL(void, __libfuzzer_is_present, (void));

void aco__last_words_tell(const char *why)
{
    uint64_t seed = running_seed;
    if (!seed || aco__system.getpid() != process)
        return;
    running_seed = 0;
    aco__service_warn("simulation", "seed %" PRIu64 ": %s", seed, why);
    aco__sim_notes_print(told_notes);
    if (told_notes->trace)
        aco__sim_trace_flush(told_notes->trace);
    if (told_command)
        told_command->print(told_command, seed, told_replay);
}

static int has_handler(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL; /* sa_sigaction stands in the same place */
}

static void tell_signal(int signal)
{
    char why[64];
    snprintf(why, sizeof why, "the process dies by signal %d", signal);
    aco__last_words_tell(why);
}

/* The system's action ends the process: a fault comes again by itself. */
static void give_up(int number, const siginfo_t *info)
{
    struct sigaction none = {0};
    none.sa_handler = SIG_DFL;
    tell_signal(fatal[number]);
    aco__sim_real.sigaction(fatal[number], &none, NULL);
    if (number >= FAULTS || info->si_code <= 0)
        aco__sim_real.raise(fatal[number]); /* blocked until the handler returns */
}

/* What handled the signal before is next. */
static void pass_on(int slot, int number, siginfo_t *info, void *context)
{
    const struct sigaction *before = &handled_before[slot][number];
    if (!has_handler(before))
        give_up(number, info);
    else if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(fatal[number], info, context);
    else
        before->sa_handler(fatal[number]);
}

static __thread int handles; /* signals of the real process, in the handlers of this file */

int aco__last_words_handles(void)
{
    return handles > 0;
}

/* It may run snprintf() in the middle of libc's work: the process is about to die in any case. */
static void handle_fatal(int slot, int signal, siginfo_t *info, void *context)
{
    struct sigaction now;
    int error = errno, number = 0;
    while (fatal[number] != signal)
        number++;
    handles++;
    pass_on(slot, number, info, context);
    handles--;
    if (aco__system.sigaction(signal, NULL, &now) == 0 && !has_handler(&now))
        tell_signal(signal);
    errno = error;
}

#define HANDLER(slot)                                                                                                  \
    static void handle_fatal_##slot(int signal, siginfo_t *info, void *context)                                        \
    {                                                                                                                  \
        handle_fatal(slot, signal, info, context);                                                                     \
    }
HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)
static void (*const handlers[SLOTS])(int signal, siginfo_t *info, void *context) = {handle_fatal_0, handle_fatal_1,
                                                                                    handle_fatal_2, handle_fatal_3};

static void tell_at_exit(void)
{
    aco__last_words_tell("the process ends by exit()");
}

static void tell_at_quick_exit(void)
{
    aco__last_words_tell("the process ends by quick_exit()");
}

static void tell_at_report(void)
{
    aco__last_words_tell("a sanitizer ends the process");
}

/* Of the handler that this is; -1: it is none of them. */
static int slot_of(const struct sigaction *action)
{
    int slot = (action->sa_flags & SA_SIGINFO) ? SLOTS - 1 : -1;
    while (slot >= 0 && action->sa_sigaction != handlers[slot])
        slot--;
    return slot;
}

/* The program's handlers keep their flags. An ignored signal kills nobody. */
static void handle(int number)
{
    struct sigaction ours, now;
    int slot = 0;
    if (aco__system.sigaction(fatal[number], NULL, &now) != 0 || slot_of(&now) >= 0 || now.sa_handler == SIG_IGN)
        return;
    while (slot < SLOTS && is_taken[slot][number])
        slot++;
    if (slot == SLOTS)
        return;
    handled_before[slot][number] = ours = now;
    ours.sa_sigaction = handlers[slot];
    ours.sa_flags |= SA_SIGINFO | (has_handler(&now) ? 0 : SA_ONSTACK);
    is_taken[slot][number] = aco__system.sigaction(fatal[number], &ours, NULL) == 0;
}

void aco__last_words_begin(const aco__sim_notes_t *notes, const aco__sim_command_t *command)
{
    static int is_registered;
    ACO__ASSERT(!running_seed);
    told_notes = notes;
    told_command = command;
    process = aco__system.getpid();
    for (int i = 0; i < SIGNALS; i++)
        handle(i);
    if (is_registered)
        return;
    is_registered = 1;
    (void)atexit(tell_at_exit);
    (void)at_quick_exit(tell_at_quick_exit);
    if (__sanitizer_set_death_callback && !__libfuzzer_is_present)
        __sanitizer_set_death_callback(tell_at_report);
}

void aco__last_words_of(uint64_t seed)
{
    ACO__ASSERT(seed && process);
    running_seed = seed;
}

void aco__last_words_replay(const char *file)
{
    told_replay = file;
}

void aco__last_words_in_child(uint64_t seed)
{
    process = aco__system.getpid();
    aco__last_words_of(seed);
}

void aco__last_words_end(void)
{
    struct sigaction now;
    running_seed = 0;
    told_notes = NULL;
    told_command = NULL;
    for (int i = 0; i < SIGNALS; i++) {
        int slot = aco__system.sigaction(fatal[i], NULL, &now) == 0 ? slot_of(&now) : -1;
        if (slot >= 0 && aco__system.sigaction(fatal[i], &handled_before[slot][i], NULL) == 0)
            is_taken[slot][i] = 0;
    }
}
