/* Signals end hooked waits where they would end libc's. The system tells nobody that a handler has run. So the hooks of
 * sigaction() and its kin put a function of this file before each handler of the program's: it counts, on the thread
 * that it runs on, and wakes the poller. After each of the poller's turns the tasks are woken whose calls the handler
 * ends. Handlers of faults and acorn's own are not counted. */
#include "libc/arguments.h"
#include "libc/handlers.h"
#include "libc/hooked.h"
#include "libc/libc.h"

#include "aco/detail/poller.h"

#include <signal.h>

const char aco__hooks_of_signals = 1;

/* What the program has asked for. The last handler stays when the action is none any more: a child of vfork() may say
 * so, which shares this memory. */
typedef union handler {
    void (*plain)(int number);
    void (*informed)(int number, siginfo_t *info, void *context);
} handler_t;
static handler_t handlers[NSIG];     /* atomic; likewise below */
static unsigned char restart[NSIG], is_informed[NSIG];

/* ---- What runs before a handler ---- */

/* Async-signal-safe. A plain handler gets more arguments than it looks at: which of the two it is may change. */
#if defined(__has_attribute)
#if __has_attribute(no_sanitize)
__attribute__((no_sanitize("undefined")))
#endif
#endif
static void on_signal(int number, siginfo_t *info, void *context)
{
    aco__hook_thread_t *self = &aco__hook_self;
    void (*handler)(int, siginfo_t *, void *) = __atomic_load_n(&handlers[number].informed, __ATOMIC_ACQUIRE);
    self->handlers[HOOK_NEVER_RESTARTS]++;
    if (!__atomic_load_n(&restart[number], __ATOMIC_RELAXED))
        self->handlers[HOOK_RESTARTS]++;
    if (self->waiting && self->poller && aco__hook_is_own_process()) /* a child may have other files by these numbers */
        self->poller->wake(self->poller);
    handler(number, info, context);
}

static int is_counted(int number, const struct sigaction *action)
{
    return number > 0 && number < NSIG && number != SIGSEGV && number != SIGBUS && number != SIGFPE &&
           number != SIGILL && number != SIGTRAP && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static handler_t handler_of(const struct sigaction *action)
{
    handler_t handler;
    if (action->sa_flags & SA_SIGINFO)
        handler.informed = action->sa_sigaction;
    else
        handler.plain = action->sa_handler;
    return handler;
}

/* ---- The hooks ---- */

static void store(int number, handler_t handler, int restarts, int informed)
{
    __atomic_store_n(&restart[number], (unsigned char)restarts, __ATOMIC_RELAXED);
    __atomic_store_n(&is_informed[number], (unsigned char)informed, __ATOMIC_RELAXED);
    __atomic_store_n(&handlers[number].informed, handler.informed, __ATOMIC_RELEASE);
}

/* Also where the program has put back what a call without a hook (sigset()) told it. */
static int is_ours(const struct sigaction *action)
{
    return action->sa_sigaction == on_signal;
}

/* What the program is told of an action: its own handler. After SA_RESETHAND the system keeps the flags. */
static void show(struct sigaction *action, handler_t handler, int informed)
{
    if (action->sa_handler == SIG_DFL && action->sa_flags & (int)SA_RESETHAND && handler.informed && !informed)
        action->sa_flags &= ~SA_SIGINFO;
    if (!is_ours(action))
        return;
    if (informed) {
        action->sa_flags |= SA_SIGINFO;
        action->sa_sigaction = handler.informed;
    } else {
        action->sa_flags &= ~SA_SIGINFO;
        action->sa_handler = handler.plain;
    }
}

static int change_action(int number, const struct sigaction *wanted, struct sigaction *before)
{
    int is_known = number > 0 && number < NSIG, had_restart, was_informed, result;
    handler_t was = {NULL};
    struct sigaction ours, old;
    if (!is_known)
        return aco__libc()->sigaction(number, wanted, before);
    was.informed = __atomic_load_n(&handlers[number].informed, __ATOMIC_ACQUIRE);
    had_restart = __atomic_load_n(&restart[number], __ATOMIC_RELAXED);
    was_informed = __atomic_load_n(&is_informed[number], __ATOMIC_RELAXED);
    if (wanted && is_counted(number, wanted)) {
        ours = *wanted;
        store(number, is_ours(wanted) ? was : handler_of(wanted), (wanted->sa_flags & SA_RESTART) != 0,
              is_ours(wanted) ? was_informed : (wanted->sa_flags & SA_SIGINFO) != 0);
        ours.sa_sigaction = on_signal;
        ours.sa_flags |= SA_SIGINFO;
        wanted = &ours;
    }
    result = aco__libc()->sigaction(number, wanted, before ? &old : NULL);
    if (result != 0 && wanted == &ours)
        store(number, was, had_restart, was_informed);
    if (result != 0 || !before)
        return result;
    show(&old, was, was_informed);
    *before = old;
    return 0;
}

/* What the system would not take is left to it. */
static int change_readable(int number, const struct sigaction *wanted, struct sigaction *before)
{
    return wanted && !aco__hook_can_read(wanted, sizeof *wanted) ? aco__libc()->sigaction(number, wanted, before)
                                                                 : change_action(number, wanted, before);
}

extern int __sigaction(int number, const struct sigaction *wanted, struct sigaction *before) __attribute__((weak));

/* A sanitizer sets its handlers before code that it has instrumented may run. */
ACO__NO_SANITIZE ACO__HOOK(int, sigaction, (int number, const struct sigaction *wanted, struct sigaction *before))
{
    return !aco__libc_is_found && __sigaction ? __sigaction(number, wanted, before)
                                              : change_readable(number, wanted, before);
}

static void (*set_handler(int number, void (*handler)(int), int flags, int masks_itself))(int)
{
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    if (handler == SIG_ERR || number <= 0 || number >= NSIG) {
        errno = EINVAL;
        return SIG_ERR;
    }
    sigemptyset(&action.sa_mask);
    if (masks_itself)
        sigaddset(&action.sa_mask, number);
    return change_action(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

static unsigned char interrupts[NSIG]; /* of siginterrupt(): signal() is without SA_RESTART */

#define ACO__SIGNAL_HOOK(name)                                                                                         \
    void (*aco__as_##name(int number, void (*handler)(int)))(int) __asm__(#name)                                       \
        __attribute__((visibility("default"), used));                                                                  \
    void (*aco__as_##name(int number, void (*handler)(int)))(int)
#define ACO__BSD_SIGNAL_HOOK(name)                                                                                     \
    ACO__SIGNAL_HOOK(name)                                                                                             \
    {                                                                                                                  \
        int restarts = number <= 0 || number >= NSIG || !interrupts[number];                                           \
        return set_handler(number, handler, restarts ? SA_RESTART : 0, 1);                                             \
    }
#define ACO__SYSV_SIGNAL_HOOK(name)                                                                                    \
    ACO__SIGNAL_HOOK(name)                                                                                             \
    {                                                                                                                  \
        return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER), 0);                                      \
    }
ACO__BSD_SIGNAL_HOOK(signal)
ACO__BSD_SIGNAL_HOOK(bsd_signal)
ACO__BSD_SIGNAL_HOOK(ssignal)
ACO__SYSV_SIGNAL_HOOK(sysv_signal)
ACO__SYSV_SIGNAL_HOOK(__sysv_signal)

ACO__HOOK(int, siginterrupt, (int number, int is_to_interrupt))
{
    struct sigaction action;
    if (change_action(number, NULL, &action) != 0)
        return -1;
    interrupts[number] = (unsigned char)(is_to_interrupt != 0);
    action.sa_flags = is_to_interrupt ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
    return change_action(number, &action, NULL);
}

/* ---- Waking ---- */

/* The thread's poller, whose turn ends the waits that a handler interrupts. */
static int poll_and_interrupt(aco__poller_t *poller, int64_t deadline)
{
    aco__hook_thread_t *self = &aco__hook_self;
    int result = self->poll(poller, deadline), error = errno;
    if (self->handlers[HOOK_NEVER_RESTARTS] != self->told) {
        self->told = self->handlers[HOOK_NEVER_RESTARTS];
        ACO__ASSERT(!self->handlers[HOOK_IGNORES_SIGNALS]); /* nothing ends a wait for a lock */
        ACO__NO_SWITCH_BEGIN(); /* tasks would leave the list */
        for (aco__hook_task_t *task = self->waiting; task; task = task->next)
            if (aco__hook_is_interrupted(&task->call))
                aco__poller_interrupt(task->task, EINTR);
        ACO__NO_SWITCH_END();
    }
    errno = error;
    return result;
}

void aco__hook_signals_begin(void)
{
    aco__hook_thread_t *self = &aco__hook_self;
    aco__poller_t *poller;
    if (self->poller || aco_io_poll_fd() < 0 || !(poller = aco__poller())) /* without one, signals end no waits */
        return;
    self->poll = poller->poll;
    poller->poll = poll_and_interrupt;
    self->poller = poller;
}
