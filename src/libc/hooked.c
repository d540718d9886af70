/* Which tasks are hooked, and how they wait. A coroutine-local value of the task has its record. */
#include "libc/arguments.h"
#include "libc/hooked.h"
#include "libc/libc.h"
#include "os/clock.h"

#include "aco/detail/chooser.h"
#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"

#include <sys/socket.h>
#include <sys/time.h>

enum { CALLS_IN_A_ROW = 64, VAIN_ATTEMPTS = 8 };

__thread aco__hook_thread_t aco__hook_self __attribute__((tls_model("initial-exec")));
unsigned aco__hook_everyone;
__thread int aco__hook_simulates __attribute__((tls_model("initial-exec")));
aco__libc_calls_t aco__libc_simulated;

static aco_local_key_t record_key;
static int key_error;
static void (*begin_on_thread)(void); /* written once, as the next */
static int (*begin_in_run)(void);
static pid_t everyones_process; /* where all tasks are hooked. Atomic */

static void call_ends(aco__hook_task_t *task)
{
    if (!task || !task->link)
        return;
    ACO__ASSERT(*task->link == task && (!task->next || task->next->link == &task->next));
    ACO__ASSERT(!aco__hook_self.poller || aco__hook_self.poller->waiters > 0);
    *task->link = task->next;
    if (task->next)
        task->next->link = task->link;
    task->link = NULL;
    if (aco__hook_self.poller)
        aco__hook_self.poller->waiters--;
}

/* No handler runs in this task, which begins or ends: it may have the address of one that has ended in a handler. */
static void forget_handler(const aco_t *task)
{
    if (aco_unlikely(aco__hook_self.interrupted == task))
        aco__hook_self.handler = NULL;
}

/* A task ends that is or was hooked. */
static void forget_task(void *record)
{
    aco__hook_task_t *task = record;
    forget_handler(task->task);
    ACO__ASSERT(!task->depth || aco__hook_self.tasks > 0); /* or its thread is hooked for ever */
    aco__hook_self.tasks -= task->depth != 0;
    call_ends(task);
    aco__service_free(task, task->sz);
}

static void make_key(void)
{
    key_error = aco_local_key_create(&record_key, forget_task) == 0 ? 0 : errno;
}

static aco__hook_task_t *record_of(const aco_t *task)
{
    return aco__local_of(task, record_key);
}

static aco__hook_task_t *new_record(aco_t *task, const char *call)
{
    size_t sz = sizeof(aco__hook_task_t);
    aco__hook_task_t *record = aco__service_new(&sz, call);
    if (!record)
        return NULL;
    forget_handler(task);
    record->task = task;
    record->sz = sz;
    if (aco_set_local(record_key, record) == 0)
        return record;
    aco__service_free(record, sz);
    return NULL;
}

/* The thread will have hooked tasks. 0, or -1 and errno. */
static int prepare_thread(void)
{
    aco__hook_thread_t *self = &aco__hook_self;
    if (aco__chooser_is_there())
        return begin_in_run();
    if (!self->process) {
        self->thread = aco__system.gettid();
        self->process = getpid();
    }
    if (!self->is_begun)
        begin_on_thread();
    self->is_begun = 1;
    return 0;
}

static void note_process(void)
{
    __atomic_store_n(&everyones_process, getpid(), __ATOMIC_RELAXED);
}

/* Whether the caller is a child of vfork(), or the like: the memory is its parent's. */
static int is_behind_vfork(void)
{
    return __atomic_load_n(&everyones_process, __ATOMIC_RELAXED) != getpid();
}

/* The first hooked call of a task, where all are hooked: whether this one is. Not in an inner coroutine, whose values
 * are its own. */
static int adopt(aco_t *task)
{
    aco__hook_task_t *record;
    int error = errno;
    if (!aco__hook_everyone || aco_get_co() != task || is_behind_vfork())
        return 0;
    aco__hooks_hold();
    record = prepare_thread() == 0 && aco__hook_is_own_process() ? new_record(task, "acorn_hook") : NULL;
    aco__hooks_release();
    errno = error;
    if (!record)
        return 0;
    record->depth = 1;
    aco__hook_self.tasks++;
    return 1;
}

/* Whether the handler that is noted runs. If it was left in a way that nobody has noticed (setcontext()), the caller's
 * frame is a shallower one, on another stack, or another coroutine's. */
static ACO__COLD int handler_runs(aco__hook_thread_t *self)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (here < (uintptr_t)self->handler && here >= (uintptr_t)self->bottom && self->interrupted == aco_get_co())
        return 1;
    self->handler = NULL;
    return 0;
}

static inline __attribute__((always_inline)) int is_in_handler(void)
{
    aco__hook_thread_t *self = &aco__hook_self;
    return aco_unlikely(self->handler != NULL) && handler_runs(self);
}

int aco__hook_is_on(const void *caller)
{
    const aco_t *task;
    const aco__hook_task_t *record;
    if (aco__hook_is_allocators(caller))
        return 0;
    if (aco__hook_self.probe) {
        aco__hook_self.probe = 2;
        return 0;
    }
    if (is_in_handler())
        return 0;
    task = aco_current_task();
    if (!task || aco__hooks_are_held())
        return 0;
    record = record_of(task);
    return record ? record->depth != 0 : adopt((aco_t *)(uintptr_t)task);
}

int aco__hook_is_beside(const void *caller)
{
    const aco_t *task;
    if (aco__hook_is_allocators(caller) || aco__hook_self.probe || is_in_handler())
        return 0;
    task = aco_current_task();
    if (!task || aco__hooks_are_held())
        return 0;
    if (!record_of(task))
        (void)adopt((aco_t *)(uintptr_t)task);
    return aco__hook_self.tasks != 0;
}

int aco__hook_begin(void (*on_thread)(void), int (*in_run)(void), const char *call)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!__atomic_load_n(&begin_on_thread, __ATOMIC_RELAXED))
        __atomic_store_n(&begin_on_thread, on_thread, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&begin_in_run, __ATOMIC_RELAXED))
        __atomic_store_n(&begin_in_run, in_run, __ATOMIC_RELAXED);
    pthread_once(&once, make_key);
    return key_error ? aco__service_fail(key_error, call, "no key for values of tasks") : 0;
}

static int everyones_error;

/* A child of fork() has memory of its own; vfork() does not call this. */
static void note_children(void)
{
    note_process();
    everyones_error = pthread_atfork(NULL, NULL, note_process);
}

int aco__hook_begin_everyone(const char *call)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, note_children);
    if (everyones_error)
        return aco__service_fail(everyones_error, call, "no memory for what follows fork()");
    __atomic_store_n(&aco__hook_everyone, 1, __ATOMIC_RELEASE);
    return 0;
}

int aco__hook_task_begin(const char *call)
{
    aco__hook_thread_t *self = &aco__hook_self;
    aco_t *task = aco_current_task();
    aco__hook_task_t *record;
    if (!task || aco_get_co() != task)
        return aco__service_fail(EPERM, call, "the caller is not a task");
    if (prepare_thread() != 0)
        return -1;
    if (!aco__hook_is_own_process())
        return aco__service_fail(EPERM, call, "in a child of fork()");
    record = record_of(task);
    if (!record && !(record = new_record(task, call)))
        return -1;
    self->tasks += record->depth++ == 0;
    return 0;
}

int aco__hook_task_end(const char *call)
{
    const aco_t *task = aco_current_task();
    aco__hook_task_t *record = aco__hook_self.tasks && task && aco_get_co() == task ? record_of(task) : NULL;
    if (!record || !record->depth)
        return aco__service_fail(EPERM, call, "the caller is not a hooked task");
    aco__hook_self.tasks -= --record->depth == 0;
    return 0;
}

/* Acorn's own work makes no simulated calls by libc's names. */
int aco__hook_simulates_task(void)
{
    const aco_t *task = aco_current_task();
    const aco__hook_task_t *record = task && !aco__hooks_are_held() ? record_of(task) : NULL;
    return record && record->depth != 0;
}

/* But it has its clock: OpenSSL's work in aco/tls.h would mix two, and a session would come from the future. */
int aco__hook_simulates_clock(void)
{
    const aco_t *task = aco_current_task();
    const aco__hook_task_t *record = task ? record_of(task) : NULL;
    return record && record->depth != 0;
}

int aco__hook_is_own_process(void)
{
    return aco__hook_self.process == getpid();
}

/* ---- Waiting ---- */

/* Counts a wait that has ended with this result and errno. If the caller cannot wait, errno is again what it was before
 * the call: libc may succeed, which leaves it. */
static int waited(int result, int error_before)
{
    if (result < 0 && errno == EPERM) {
        aco__hook_self.stats.blocked++;
        errno = error_before;
        return HOOK_CANNOT_WAIT;
    }
    aco__hook_self.stats.waits++;
    return result;
}

static int cannot_wait_here(void)
{
    int error = errno;
    errno = EPERM;
    return waited(-1, error);
}

/* The task's call waits from now on, where handlers of signals find it. It waits for the poller also where it has no
 * descriptors, as they wake that. */
static aco__hook_task_t *call_begins(const aco__hook_call_t *call)
{
    aco__hook_thread_t *self = &aco__hook_self;
    aco__hook_task_t *record = record_of(aco_current_task());
    if (!record || aco__hook_simulates) /* a task that is not hooked waits for a lock; no signals in a run */
        return NULL;
    ACO__ASSERT(!record->link && call->restarts < HOOK_CLASSES); /* a task makes one call at a time */
    record->call = *call;
    record->next = self->waiting;
    record->link = (aco__hook_task_t **)(uintptr_t)&self->waiting;
    if (record->next)
        record->next->link = &record->next;
    self->waiting = record;
    if (self->poller)
        self->poller->waiters++;
    return record;
}

static int interrupted(void)
{
    errno = EINTR;
    return -1;
}

int aco__hook_poll(struct pollfd *fds, nfds_t n, int64_t deadline, const aco__hook_call_t *call, const char *location)
{
    aco__hook_task_t *record;
    int error = errno, result;
    aco__hook_spend(-1, location);
    if (!aco__hook_is_own_process())
        return cannot_wait_here();
    if (aco__hook_is_interrupted(call)) {
        result = aco__libc()->poll(fds, n, 0);
        return result ? result : interrupted();
    }
    record = call_begins(call);
    result = aco__io_poll(fds, n, deadline, location, location);
    call_ends(record);
    return waited(result, error);
}

int aco__hook_sleep(int64_t deadline, const aco__hook_call_t *call, const char *location)
{
    aco__hook_task_t *record;
    int error = errno, result;
    if (!aco__hook_is_own_process())
        return cannot_wait_here();
    if (aco__hook_is_interrupted(call))
        return interrupted();
    record = call_begins(call);
    result = aco_sleep_until_at(deadline, location);
    call_ends(record);
    return waited(result, error);
}

/* Of a call of acorn_io's for the pool, which has returned this, and errno. */
static int offloaded(int kind, int result, int error_before)
{
    int is_ended = errno == ETIMEDOUT || errno == ECANCELED, has_no_thread = errno == EPERM || errno == EAGAIN;
    if (result == 0) {
        aco__hook_self.stats.waits++;
        return HOOK_IS_DONE;
    }
    if (kind == ACO__MUST_RUN ? is_ended : !has_no_thread)
        return HOOK_GIVES_UP;
    aco__hook_self.stats.blocked++;
    errno = error_before;
    return HOOK_BLOCKS;
}

static int cannot_offload(void *arg, void (*release)(void *arg, void *result))
{
    int error = errno;
    release(arg, NULL);
    errno = EPERM;
    return offloaded(ACO__WORK, -1, error);
}

/* In a simulation: the task waits as long as a disk takes, and calls the function itself. The pool does if the function
 * has to wait for somebody. */
ACO__SWITCHES
static int call_here(int kind, void *(*fn)(void *arg), void *arg, void **result,
                     void (*release)(void *arg, void *result), const char *location)
{
    int64_t ns = aco__chooser_disk_time();
    int error = errno, would_wait;
    void *own;
    if (ns > 0 && aco_sleep_at(ns, location) != 0 && kind != ACO__MUST_RUN) {
        int failure = errno;
        release(arg, NULL);
        errno = failure;
        return offloaded(kind, -1, error);
    }
    own = aco__chooser_try(fn, arg, &would_wait);
    if (would_wait)
        return offloaded(kind,
                         aco__io_offload_as(kind == ACO__WORK ? ACO__FILE : kind, location, fn, arg, result, release,
                                            location),
                         error);
    if (result)
        *result = own;
    return offloaded(kind, 0, error);
}

int aco__hook_offload(int kind, void *(*fn)(void *arg), void *arg, void **result,
                      void (*release)(void *arg, void *result), const char *location)
{
    int error = errno;
    if (aco__hook_simulates && kind != ACO__LOOK_UP)
        return call_here(kind, fn, arg, result, release, location);
    return aco__hook_is_own_process()
               ? offloaded(kind, aco__io_offload_as(kind, location, fn, arg, result, release, location), error)
               : cannot_offload(arg, release);
}

void aco__hook_spend(int fd, const char *location)
{
    int error = errno, flags = 0;
    (void)location;
    ACO__MAY_SWITCH(location, NULL);
    if (++aco__hook_self.calls % CALLS_IN_A_ROW != 0 || !aco__hook_is_own_process())
        return;
    if (fd >= 0)
        flags = aco__libc()->fcntl(fd, F_GETFL);
    if (flags >= 0 && !(flags & O_NONBLOCK))
        aco__service_yield();
    errno = error;
}

/* When the time limit of a socket ends that begins now. */
static int64_t end_of(int fd, int option)
{
    struct timeval limit = {0, 0};
    socklen_t length = sizeof limit;
    if (!option || aco__libc()->getsockopt(fd, SOL_SOCKET, option, &limit, &length) != 0 ||
        (!limit.tv_sec && !limit.tv_usec))
        return ACO_FOREVER;
    return aco_after(aco__hook_ns(limit.tv_sec, (int64_t)limit.tv_usec * 1000));
}

struct timespec aco__hook_time_until(int64_t deadline)
{
    return aco__os_timespec(deadline - aco_now());
}

short aco__hook_look(int fd, short events)
{
    struct pollfd p = {fd, events, 0};
    int error = errno, n = aco__libc()->poll(&p, 1, 0);
    errno = error;
    return n > 0 ? p.revents : 0;
}

int aco__hook_is_reset(int fd)
{
    return (aco__hook_look(fd, 0) & (POLLERR | POLLHUP)) == (POLLERR | POLLHUP);
}

static int of_result(int result)
{
    return result >= 0 ? HOOK_TRIES_AGAIN : result == HOOK_CANNOT_WAIT ? HOOK_BLOCKS : HOOK_GIVES_UP;
}

int aco__hook_nap(aco__hook_wait_t *wait, const char *location)
{
    int64_t now = aco_now(), until;
    if (now >= wait->deadline) {
        errno = EAGAIN;
        return HOOK_GIVES_UP;
    }
    wait->nap_ns = aco__io_longer_pause(wait->nap_ns);
    until = now + wait->nap_ns;
    return of_result(aco__hook_sleep(until < wait->deadline ? until : wait->deadline, &wait->call, location));
}

int aco__hook_begins_wait(aco__hook_wait_t *wait, int fd, int option)
{
    int flags = aco__libc()->fcntl(fd, F_GETFL);
    if (flags < 0 || flags & O_NONBLOCK) {
        errno = flags < 0 ? errno : EAGAIN;
        return -1;
    }
    wait->deadline = end_of(fd, option);
    wait->call = aco__hook_call(wait->deadline == ACO_FOREVER ? HOOK_RESTARTS : HOOK_NEVER_RESTARTS);
    wait->is_known = 1;
    return 0;
}

int aco__hook_again(aco__hook_wait_t *wait, int fd, short events, int option, const char *location)
{
    struct pollfd p = {fd, events, 0};
    int result;
    if (!wait->is_known && aco__hook_begins_wait(wait, fd, option) != 0)
        return HOOK_GIVES_UP;
    if (wait->vain++ >= VAIN_ATTEMPTS)
        return aco__hook_nap(wait, location);
    result = aco__hook_poll(&p, 1, wait->deadline, &wait->call, location);
    if (result > 0 && !(p.revents & POLLNVAL))
        return HOOK_TRIES_AGAIN;
    if (result >= 0)
        errno = result ? EBADF : EAGAIN;
    return result == HOOK_CANNOT_WAIT ? HOOK_BLOCKS : HOOK_GIVES_UP;
}
