/* Signals in a run. A node is a process: a signal that is sent to it waits while all its threads block it, and one of
 * them takes it by sigwaitinfo() or a signalfd. If a thread does not block it, it does at once what it does to a
 * process without handlers: as a rule, the node ends. The real process and its threads know nothing of that. */
#define _GNU_SOURCE /* siginfo_t under -std=c11 */
#include "sim/node_signals.h"
#include "sim/byte_queue.h"
#include "sim/interest.h"
#include "sim/thread_calls.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

enum { MOST_SIGNALS = 64 };

static uint64_t bit_of(int signal)
{
    ACO__ASSERT(signal >= 1 && signal <= MOST_SIGNALS);
    return (uint64_t)1 << (signal - 1);
}

static uint64_t bits_of(const sigset_t *set)
{
    uint64_t bits = 0;
    for (int signal = 1; signal <= MOST_SIGNALS; signal++)
        if (sigismember(set, signal) == 1)
            bits |= bit_of(signal);
    return bits;
}

static void set_of(sigset_t *set, uint64_t bits)
{
    sigemptyset(set);
    for (int signal = 1; signal <= MOST_SIGNALS; signal++)
        if (bits & bit_of(signal))
            (void)sigaddset(set, signal); /* some are libc's own */
}

int aco__sim_is_fault(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGABRT ||
           signal == SIGTRAP || signal == SIGSYS;
}

static int stops(int signal)
{
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU || signal == SIGCONT;
}

static int does_nothing(int signal)
{
    return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH;
}

/* ---- What a signal does ---- */

/* The node ends when its threads are at rest, which do not go on behind that. */
static void end_node(aco_sim_node_t *node)
{
    aco_sim_t *sim = node->sim;
    node->how_to_crash = ACO_SIM_CRASH_RESET;
    node->is_to_crash = sim->nodes.have_changes = 1;
    node->is_to_start = 0;
    node->is_stopping = node->has_threads;
    aco__sim_interrupt_first(sim);
}

/* What it does to a process without handlers. */
static void act(aco_sim_t *sim, aco_sim_node_t *node, int signal)
{
    if (does_nothing(signal))
        return;
    else if (node == &sim->nodes.scenario)
        aco__sim_fail(sim, "signal %d ends the scenario's process", signal);
    else if (node->is_up && !node->is_to_crash)
        end_node(node);
}

/* The same for one that the thread itself has caused. */
static void act_on_thread(aco_sim_t *sim, aco_sim_node_t *node, int signal)
{
    if (signal == SIGPIPE)
        (void)aco__sim_real.raise(signal); /* the program may have a handler for it, or ignore it */
    else
        act(sim, node, signal);
}

/* Signals that have come meanwhile do what they do. */
static void let_act(aco_sim_t *sim, aco__sim_thread_t *thread)
{
    const uint64_t own = thread->signals & ~thread->blocked, of_node = thread->home->signals & ~thread->blocked;
    thread->signals &= ~own;
    thread->home->signals &= ~of_node;
    for (int signal = 1; (own | of_node) && signal <= MOST_SIGNALS; signal++)
        if (own & bit_of(signal))
            act_on_thread(sim, thread->home, signal);
        else if (of_node & bit_of(signal))
            act(sim, thread->home, signal);
}

/* ---- Who takes it ---- */

/* Whether all threads of the node block the signal. */
static int is_blocked(aco_sim_t *sim, const aco_sim_node_t *node, int signal)
{
    int has_threads = 0;
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread)) {
        if (thread->home != node || thread->has_ended)
            continue;
        if (!(thread->blocked & bit_of(signal)))
            return 0;
        has_threads = 1;
    }
    return has_threads;
}

static int take_from(uint64_t *pending, uint64_t signals)
{
    for (int signal = 1; *pending & signals && signal <= MOST_SIGNALS; signal++)
        if (*pending & signals & bit_of(signal)) {
            *pending &= ~bit_of(signal);
            return signal;
        }
    return 0;
}

/* Takes one of these that was sent to the thread; or else to its node. 0: none was. */
static int take_signal(aco__sim_thread_t *thread, uint64_t signals)
{
    int signal = take_from(&thread->signals, signals);
    return signal ? signal : take_from(&thread->home->signals, signals);
}

/* ---- signalfd ---- */

typedef struct signal_file {
    aco__sim_file_t file;
    uint64_t signals;
} signal_file_t;

/* Who looks sees the signals of its process, and its own. */
static unsigned signal_events(aco__sim_file_t *file)
{
    const aco__sim_thread_t *self = aco_sim_current()->threads.running;
    const uint64_t signals = self->signals | self->home->signals;
    return (signals & ((signal_file_t *)file)->signals) != 0 ? ACO__SIM_READABLE : 0;
}

static ssize_t read_signal(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags)
{
    struct signalfd_siginfo info = {0};
    aco__sim_bytes_t bytes = {(char *)&info, 0, sizeof info, sizeof info};
    (void)flags;
    if (aco__sim_parts_size(message) < sizeof info)
        return aco__sim_fail_with(EINVAL);
    info.ssi_signo = (uint32_t)take_signal(sim->threads.running, ((signal_file_t *)file)->signals);
    if (!info.ssi_signo)
        return aco__sim_fail_with(EAGAIN);
    aco__sim_bytes_copy(&bytes, message, sizeof info);
    return sizeof info;
}

static const aco__sim_type_t signal_type = {0600, signal_events, read_signal, NULL, NULL, NULL, NULL};

/* Nodes of the first thread share what it blocks, so they cannot wait for signals. 0, or -1 and errno. */
static int check_listener(aco_sim_t *sim)
{
    if (sim->nodes.here == sim->threads.running->home)
        return 0;
    aco__sim_fail(sim, "node \"%s\" listens for signals: make it by aco_sim_node_main()", sim->nodes.here->name);
    return aco__sim_fail_with(ENOSYS);
}

int aco__sim_signalfd(aco_sim_t *sim, int fd, const sigset_t *signals, int flags)
{
    signal_file_t *made;
    if (fd != -1 || flags & ~(SFD_CLOEXEC | SFD_NONBLOCK))
        return aco__sim_fail_with(fd != -1 ? aco__sim_refuse(sim, "signalfd") : EINVAL);
    if (check_listener(sim) != 0)
        return -1;
    made = aco__sim_file_new(sim, &signal_type, sizeof *made, O_RDWR | ((flags & SFD_NONBLOCK) ? O_NONBLOCK : 0));
    if (!made)
        return -1;
    made->signals = bits_of(signals) & ~(bit_of(SIGKILL) | bit_of(SIGSTOP));
    return aco__sim_file_open(sim, &made->file, (flags & SFD_CLOEXEC) ? FD_CLOEXEC : 0, "signalfd");
}

/* ---- Sending ---- */

/* Who watches a signalfd of the process looks again. As in the kernel, so does who watches one for other signals: it
 * may be an edge. */
static void tell_files(aco_sim_t *sim, const aco_sim_node_t *node)
{
    ACO__EACH_LINKED(aco__sim_file_t, file, &sim->opened.files, all)
    if (file->type == &signal_type && file->node == node)
        aco__sim_notify(file, ACO__SIM_READABLE);
}

/* It is sent to the thread, or to its process (NULL), and is blocked there. */
static void add_signal(aco_sim_t *sim, aco_sim_node_t *node, aco__sim_thread_t *to, int signal)
{
    uint64_t *pending = to ? &to->signals : &node->signals;
    if (*pending & bit_of(signal))
        return;
    *pending |= bit_of(signal);
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        if (thread == to || (!to && thread->home == node))
            (void)aco__sim_wake(sim, &thread->signals, 1);
    tell_files(sim, node);
}

static void note(aco_sim_node_t *node, int signal)
{
    char text[ACO__SIM_NOTE_TEXT];
    aco__history_note(&node->sim->history, ACO__SIM_FAULT, node->number, ACO__SIM_SIGNALLED);
    snprintf(text, sizeof text, "node \"%s\" is sent signal %d", node->name, signal);
    aco__sim_note(node->sim, ACO__NOTED_FAULT, 0, 0, text);
}

static void send_to_node(aco_sim_t *sim, aco_sim_node_t *node, int signal)
{
    note(node, signal);
    if (!is_blocked(sim, node, signal)) {
        act(sim, node, signal);
        return;
    }
    add_signal(sim, node, NULL, signal);
}

int aco_sim_signal(aco_sim_node_t *node, int signal)
{
    static const char call[] = "aco_sim_signal";
    if (aco__sim_node_check(node, call) != 0)
        return -1;
    if (signal < 1 || signal > MOST_SIGNALS || stops(signal))
        return aco__service_fail(EINVAL, call, "no signal that is simulated");
    if (!node->is_up || node->is_to_crash)
        return aco__service_fail(ESRCH, call, "the node has crashed");
    send_to_node(node->sim, node, signal);
    return 0;
}

/* A process sends signals to itself only. */
int aco__sim_kill(aco_sim_t *sim, pid_t process, int signal)
{
    if (process != aco__sim_real.getpid() || signal < 0 || signal > MOST_SIGNALS || stops(signal))
        return aco__sim_fail_with(aco__sim_refuse(sim, "kill"));
    if (signal)
        send_to_node(sim, sim->nodes.here, signal);
    return 0;
}

int aco__sim_raise(aco_sim_t *sim, int signal)
{
    aco__sim_thread_t *self = sim->threads.running;
    if (signal < 1 || signal > MOST_SIGNALS || stops(signal))
        return aco__sim_fail_with(aco__sim_refuse(sim, "raise"));
    if (self->blocked & bit_of(signal))
        add_signal(sim, self->home, self, signal);
    else
        act_on_thread(sim, sim->nodes.here, signal);
    return 0;
}

int aco__sim_pthread_kill(aco_sim_t *sim, pthread_t thread, int signal)
{
    aco__sim_thread_t *to = aco__sim_live_thread_of(sim, thread);
    if (!to || to->home != sim->nodes.here || signal < 1 || signal > MOST_SIGNALS || stops(signal))
        return aco__sim_refuse(sim, "pthread_kill");
    if (to->blocked & bit_of(signal))
        add_signal(sim, to->home, to, signal);
    else
        act_on_thread(sim, to->home, signal);
    return 0;
}

/* ---- Blocking, and waiting ---- */

int aco__sim_pthread_sigmask(aco_sim_t *sim, int how, const sigset_t *signals, sigset_t *before)
{
    aco__sim_thread_t *self = sim->threads.running;
    const uint64_t blocked = self->blocked;
    uint64_t bits = signals ? bits_of(signals) & ~(bit_of(SIGKILL) | bit_of(SIGSTOP)) : 0;
    if (signals && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)
        return EINVAL;
    if (signals)
        self->blocked = how == SIG_BLOCK ? blocked | bits : how == SIG_UNBLOCK ? blocked & ~bits : bits;
    if (before)
        set_of(before, blocked);
    let_act(sim, self);
    return 0;
}

int aco__sim_sigpending(aco_sim_t *sim, sigset_t *signals)
{
    const aco__sim_thread_t *self = sim->threads.running;
    set_of(signals, (self->signals | self->home->signals) & self->blocked);
    return 0;
}

int aco__sim_sigwait_until(aco_sim_t *sim, const sigset_t *signals, void *info, int64_t until)
{
    aco__sim_thread_t *self = sim->threads.running;
    const uint64_t bits = bits_of(signals);
    int signal, error = 0;
    while ((signal = take_signal(self, bits)) == 0 && !error)
        error = until <= sim->now ? ETIMEDOUT : aco__sim_wait(sim, "sigwaitinfo", &self->signals, until, 0);
    if (!signal)
        return aco__sim_fail_with(error == ETIMEDOUT ? EAGAIN : error);
    if (info) {
        memset(info, 0, sizeof(siginfo_t));
        ((siginfo_t *)info)->si_signo = signal;
    }
    return signal;
}

int aco__sim_sigwaitinfo(aco_sim_t *sim, const sigset_t *signals, void *info)
{
    return aco__sim_sigwait_until(sim, signals, info, INT64_MAX);
}
