/* Signals end hooked waits where they would end libc's. The system tells nobody that a handler has run. So the hooks of
 * sigaction() and its kin put a function of this file before each handler of the program's: it counts, on the thread
 * that it runs on, and wakes the poller. After each of the poller's turns the tasks are woken whose calls the handler
 * ends. Handlers of faults end no calls; acorn's own of other signals are not known here.
 *
 * While a handler runs, hooks do what libc does: it may have interrupted an allocator that has locked something, or
 * acorn's own work, and no other task may run in the middle of that. So the function marks the handler by its frame. A
 * handler ends by a return, by an exception or by longjmp(), which is hooked too. */
#include "libc/arguments.h"
#include "libc/handlers.h"
#include "libc/hooked.h"
#include "libc/libc.h"
#include "libc/look_up.h"

#include "aco/detail/poller.h"

#include <signal.h>
#include <ucontext.h>

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

static int is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP;
}

static void end_calls(aco__hook_thread_t *self, int number)
{
    self->handlers[HOOK_NEVER_RESTARTS]++;
    if (!__atomic_load_n(&restart[number], __ATOMIC_RELAXED))
        self->handlers[HOOK_RESTARTS]++;
    if (self->waiting && self->poller)
        self->poller->wake(self->poller);
}

/* What was noted when a handler began. */
typedef struct note {
    const char *handler, *bottom;
    const aco_t *interrupted;
} note_t;

/* It has returned, or an exception leaves it. */
static void note_again(const note_t *outer)
{
    aco__hook_self.handler = outer->handler;
    aco__hook_self.bottom = outer->bottom;
    aco__hook_self.interrupted = outer->interrupted;
}

/* The lowest address of the alternate stack, if this frame is on it; else NULL. */
static const char *bottom_of(const char *frame, const void *context)
{
    const stack_t *stack = context ? &((const ucontext_t *)context)->uc_stack : NULL;
    return stack && (uintptr_t)frame - (uintptr_t)stack->ss_sp < stack->ss_size ? stack->ss_sp : NULL;
}

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
    const aco_t *co;
    __attribute__((cleanup(note_again))) note_t outer;
    outer.interrupted = self->interrupted; /* the first of the two: another signal may come */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    outer.handler = self->handler;
    outer.bottom = self->bottom;
    if (self->process && !aco__hook_is_own_process()) { /* in a child of vfork(), which may end here */
        handler(number, info, context);
        return;
    }
    if (!is_fault(number))
        end_calls(self, number);
    co = aco_get_co();
    if (outer.interrupted != co) /* that handler was left, or its task waits in it */
        outer.handler = NULL;
    outer.interrupted = co;
    self->interrupted = co; /* first: a handler that comes in between puts back what it finds */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->bottom = bottom_of(__builtin_frame_address(0), context);
    self->handler = __builtin_frame_address(0);
    handler(number, info, context);
}

static int has_handler(int number, const struct sigaction *action)
{
    return number > 0 && number < NSIG && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
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

/* Also where the program has put back what a call without a hook (__sigaction()) told it. */
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
    if (wanted && has_handler(number, wanted)) {
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

/* Beside the action it sets whether the calling thread takes the signal: SIG_HOLD stands for that it does not. */
ACO__SIGNAL_HOOK(sigset)
{
    void (*previous)(int) = handler == SIG_HOLD ? SIG_HOLD : set_handler(number, handler, 0, 0);
    struct sigaction action;
    sigset_t signals, before;
    if (previous == SIG_ERR)
        return SIG_ERR;
    sigemptyset(&signals);
    if (sigaddset(&signals, number) != 0)
        return SIG_ERR;
    (void)pthread_sigmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &signals, &before);
    if (sigismember(&before, number))
        return SIG_HOLD;
    if (handler != SIG_HOLD)
        return previous;
    return change_action(number, NULL, &action) == 0 ? action.sa_handler : SIG_ERR;
}

/* Handlers of faults call each other: each is told which one was there before. So acorn's own stand behind on_signal(),
 * too. Else one of them would be told of on_signal(), which calls the last one, which may call it. */
static int change_for_acorn(int number, const struct sigaction *wanted, struct sigaction *before)
{
    return is_fault(number) ? change_action(number, wanted, before) : aco__libc()->sigaction(number, wanted, before);
}

ACO__AT_LOAD static void register_for_acorn(void)
{
    if (aco__libc_is_hooked("sigaction"))
        __atomic_store_n(&aco__system.sigaction, change_for_acorn, __ATOMIC_RELAXED);
}

/* ---- Jumps out of handlers ---- */

/* A handler that jumps inside itself keeps the place in its own frames: between the caller's and the mark's. */
static inline __attribute__((always_inline)) void jumps_to(const struct __jmp_buf_tag *place)
{
    aco__hook_thread_t *self = &aco__hook_self;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), there = (uintptr_t)place;
    if (aco_unlikely(self->handler != NULL) && (there < here || there >= (uintptr_t)self->handler))
        self->handler = NULL;
}

#define ACO__JUMP_HOOK(name, libcs_name)                                                                               \
    ACO__HOOK(void, name, (struct __jmp_buf_tag *place, int value))                                                    \
    {                                                                                                                  \
        jumps_to(place);                                                                                               \
        aco__libc()->libcs_name(place, value);                                                                         \
    }
ACO__JUMP_HOOK(longjmp, siglongjmp)
ACO__JUMP_HOOK(_longjmp, siglongjmp)
ACO__JUMP_HOOK(siglongjmp, siglongjmp)
ACO__JUMP_HOOK(__longjmp_chk, __longjmp_chk)

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

/* The thread ends. Its waiting tasks stay as they are, and handlers may still run. */
static void close_and_forget(aco__poller_t *poller)
{
    aco__hook_self.poller = NULL;
    aco__hook_self.close(poller);
}

void aco__hook_signals_begin(void)
{
    aco__hook_thread_t *self = &aco__hook_self;
    aco__poller_t *poller;
    if (self->poller || aco_io_poll_fd() < 0 || !(poller = aco__poller())) /* without one, signals end no waits */
        return;
    self->poll = poller->poll;
    self->close = poller->close;
    poller->poll = poll_and_interrupt;
    poller->close = close_and_forget;
    self->poller = poller;
}
