/* Part of <aco/scheduler.h>: the bodies of its inline calls. */
#ifndef ACO_DETAIL_SCHEDULER_INLINE_H
#define ACO_DETAIL_SCHEDULER_INLINE_H

ACO__BEGIN_C

/* aco_mutex_try_lock() for std::lock(): if it fails, the unlocks that the task does next do not hand over, but let
 * other tasks take the mutexes before those that wait. */
ACO_API int aco__mutex_trylock_or_back_off(aco_mutex_t *mutex);

/* Whether tasks wait for the channel. */
ACO_API int aco__channel_has_waiters(const aco_channel_t *channel);
#ifndef ACO_CONFIG_NO_INLINE

/* The first halves of the blocking calls. 0: done. -1: failed. ACO__MUST_WAIT: the calling task is no longer runnable
 * and the caller must switch now. The switch is inline, in the caller: after a switch in a function of the library, the
 * processor would mispredict the function's return. */
enum { ACO__MUST_WAIT = -2 };
ACO_API int aco__join(aco_t *task, void **result, aco__wait_t *wait, const char *location);
ACO_API int aco__park(const char *what, aco__wait_t *wait, const char *location);
ACO_API int aco__sleep(int64_t deadline, aco__wait_t *wait, const char *location);
ACO_API int aco__mutex_lock(aco_mutex_t *mutex, aco__wait_t *wait, const char *location);
ACO_API int aco__cond_wait(aco_cond_t *cond, aco_mutex_t *mutex, aco__wait_t *wait, const char *location);
ACO_API void aco__cond_again(aco__wait_t *wait); /* waits again, for the mutex */
ACO_API int aco__semaphore_acquire(aco_semaphore_t *semaphore, aco__wait_t *wait, const char *location);
ACO_API int aco__wait_group_wait(aco_wait_group_t *group, aco__wait_t *wait, const char *location);
ACO_API int aco__channel_send(aco_channel_t *channel, const void *element, aco__wait_t *wait, const char *location);
ACO_API int aco__channel_receive(aco_channel_t *channel, void *element, aco__wait_t *wait, const char *location);
ACO_API int aco__select(aco_select_case_t *cases, int n, aco__wait_t *wait, const char *location);
ACO_API int aco__select_result(aco_select_case_t *cases, const aco__wait_t *wait);

/* A wait with a deadline of its own: aco__wait_reserve() before the first half of the call allocates what it needs: 0,
 * or -1 and errno. aco__wait_limit() after the first half, if the task must wait, sets the timer. */
ACO_API int aco__wait_reserve(const char *call);
ACO_API void aco__wait_limit(aco__wait_t *wait, int64_t deadline);
ACO__FORCE_INLINE int aco__reserve(int64_t deadline, const char *call)
{
    return deadline == ACO_FOREVER ? 0 : aco__wait_reserve(call);
}
ACO__FORCE_INLINE void aco__limit(aco__wait_t *wait, int64_t deadline)
{
    if (deadline != ACO_FOREVER)
        aco__wait_limit(wait, deadline);
}

/* Debug builds: the calling thread is about to use the object with this queue. Aborts if it is another thread's. */
ACO_API ACO__COLD void aco__use_check(aco__queue_t *queue, const void *object, const char *call);
ACO__FORCE_INLINE void aco__uses_debug(aco__queue_t *queue, const void *object, const char *call)
{
    if (ACO_DEBUG)
        aco__use_check(queue, object, call);
}

ACO_API ACO__COLD int aco__wait_failed(const aco__wait_t *wait); /* -1 and errno */
ACO_API ACO__COLD void aco__task_leave(aco_t *task);             /* leaves through aco_run() */
ACO_API ACO__COLD int aco__task_yield(void);                     /* aco_task_yield() off the fast path */

/* With more tasks than fit into a cache, starts to load the innermost frame of the task after next and the control
 * block of its successor. With fewer tasks the two loads would only cost. */
enum { ACO__TASKS_IN_CACHE = 16384 };
ACO__FORCE_INLINE void aco__task_prefetch(const aco__thread_t *self, const aco_t *next)
{
    if (aco_unlikely(self->tasks > ACO__TASKS_IN_CACHE)) {
        const aco_t *after = aco__task_next(next);
        __builtin_prefetch(after->aco__self.sp);
        __builtin_prefetch(aco__task_next(after), 1);
    }
}

/* Switches directly to the next task in the ring, which is one load away, without aco_run() in between. */
ACO__FORCE_INLINE int ACO__BODY_OF(aco_task_yield)(void)
{
    aco__tls_ref_t tls = aco__tls_ref();
    aco__thread_t *self = aco__self_at(tls);
    aco_t *from = self->running, *to;
    uintptr_t tagged;
    void *value = NULL;
    if (aco_unlikely(from == NULL || from != self->task || self->slow_switch_tasks != 0))
        return aco__task_yield();
    if (ACO_DEBUG)
        aco__yield_check(from, 1);
    to = aco__task_next(from);
    if (to == from)
        return 0;
    *(aco_t *volatile *)&self->task = to; /* else one vector store with the next, for which the next yield would wait */
    self->last_task = from;
    aco__task_prefetch(self, to);
    tagged = aco__switch_transfer(tls, from, to, &value, 0);
    ACO__CHECK_INTERRUPT(tagged);
    return 0;
}

/* Whether the caller is in a catch block, or in a destructor that an exception runs. Then it must leave by
 * aco__task_leave(), which keeps its exceptions apart from other tasks'. C code is in neither, but the library's own
 * code stands for its callers. */
ACO__FORCE_INLINE int aco__handles_exceptions(aco__tls_ref_t tls)
{
#if defined(__cpp_exceptions) || defined(ACO__LIBRARY)
    const aco__exceptions_t *here = aco__exceptions_at(tls);
#ifdef __cpp_exceptions
    if (aco_unlikely(here == NULL)) /* the C++ run time was loaded after the thread's first task was spawned */
        here = aco__exceptions_here();
#endif
    return aco_unlikely(here != NULL && aco__exceptions_any(here));
#else
    (void)tls;
    return 0;
#endif
}

/* The second half of a blocking call: runs the next task, and returns when the calling task was woken and has its turn.
 * */
ACO__FORCE_INLINE void aco__wait_leave(const aco__wait_t *wait)
{
    aco__tls_ref_t tls = aco__tls_ref();
    aco__thread_t *self = aco__self_at(tls);
    aco_t *from = wait->task, *to = self->task;
    uintptr_t tagged;
    void *value = NULL;
    if (aco_unlikely(to == NULL || self->slow_switch_tasks != 0) || aco__handles_exceptions(tls)) {
        aco__task_leave(from);
    } else {
        tagged = aco__switch_transfer(tls, from, to, &value, 0);
        ACO__CHECK_INTERRUPT(tagged);
    }
}

ACO__FORCE_INLINE int aco__wait_end(int result, const aco__wait_t *wait)
{
    if (result != ACO__MUST_WAIT)
        return result;
    aco__wait_leave(wait);
    return aco_unlikely(wait->error != 0) ? aco__wait_failed(wait) : 0;
}

/* The same if aco__reserve() came before the first half. */
ACO__FORCE_INLINE int aco__wait_end_until(int result, aco__wait_t *wait, int64_t deadline)
{
    if (result == ACO__MUST_WAIT)
        aco__limit(wait, deadline);
    return aco__wait_end(result, wait);
}

/* Each call and its form with a deadline: `parameters` and `arguments` are its own, in parentheses, `half` its first
 * half. */
#define ACO__WAITS(name, parameters, half)                                                                             \
    ACO__FORCE_INLINE int ACO__BODY_OF(name##_at)(ACO__EACH parameters, const char *location)                          \
    {                                                                                                                  \
        aco__wait_t wait;                                                                                              \
        return aco__wait_end(half, &wait);                                                                             \
    }                                                                                                                  \
    ACO__FORCE_INLINE int ACO__BODY_OF(name##_until_at)(ACO__EACH parameters, int64_t deadline, const char *location)  \
    {                                                                                                                  \
        aco__wait_t wait;                                                                                              \
        return aco__reserve(deadline, #name) != 0 ? -1 : aco__wait_end_until(half, &wait, deadline);              \
    }
#define ACO__EACH(...) __VA_ARGS__
ACO__WAITS(aco_park, (const char *what), aco__park(what, &wait, location))
ACO__WAITS(aco_mutex_lock, (aco_mutex_t *mutex),
           (aco__uses_debug(&mutex->aco__waiters, mutex, "aco_mutex_lock"), aco__mutex_lock(mutex, &wait, location)))
ACO__WAITS(aco_semaphore_acquire, (aco_semaphore_t *semaphore),
           (aco__uses_debug(&semaphore->aco__waiters, semaphore, "aco_semaphore_acquire"),
            aco__semaphore_acquire(semaphore, &wait, location)))
ACO__WAITS(aco_wait_group_wait, (aco_wait_group_t *group),
           (aco__uses_debug(&group->aco__waiters, group, "aco_wait_group_wait"),
            aco__wait_group_wait(group, &wait, location)))
ACO__WAITS(aco_channel_send, (aco_channel_t *channel, const void *element),
           aco__channel_send(channel, element, &wait, location))
ACO__WAITS(aco_channel_receive, (aco_channel_t *channel, void *element),
           aco__channel_receive(channel, element, &wait, location))

ACO__FORCE_INLINE int ACO__BODY_OF(aco_cond_wait_until_at)(aco_cond_t *cond, aco_mutex_t *mutex, int64_t deadline,
                                                           const char *location)
{
    aco__wait_t wait;
    int result = aco__reserve(deadline, "aco_cond_wait");
    aco__uses_debug(&cond->aco__waiters, cond, "aco_cond_wait");
    if (result == 0)
        result = aco__cond_wait(cond, mutex, &wait, location);
    if (result != ACO__MUST_WAIT)
        return result;
    aco__limit(&wait, deadline);
    aco__wait_leave(&wait);
    while (aco_unlikely(mutex->owner != wait.task)) {
        aco__cond_again(&wait);
        aco__wait_leave(&wait);
    }
    return aco_unlikely(wait.error != 0) ? aco__wait_failed(&wait) : 0;
}

ACO__FORCE_INLINE int ACO__BODY_OF(aco_cond_wait_at)(aco_cond_t *cond, aco_mutex_t *mutex, const char *location)
{
    return aco_cond_wait_until_at(cond, mutex, ACO_FOREVER, location);
}

ACO__FORCE_INLINE int ACO__BODY_OF(aco_join_at)(aco_t *task, void **result, const char *location)
{
    aco__wait_t wait;
    int done = aco__join(task, result, &wait, location);
    if (done != ACO__MUST_WAIT)
        return done;
    aco__wait_leave(&wait);
    if (aco_unlikely(wait.error != 0))
        return aco__wait_failed(&wait);
    if (result)
        *result = wait.value;
    return 0;
}

ACO__FORCE_INLINE int ACO__BODY_OF(aco_join_until_at)(aco_t *task, void **result, int64_t deadline,
                                                      const char *location)
{
    aco__wait_t wait;
    int done = aco__reserve(deadline, "aco_join") != 0 ? -1 : aco__join(task, result, &wait, location);
    if (done != ACO__MUST_WAIT)
        return done;
    done = aco__wait_end_until(done, &wait, deadline);
    if (done == 0 && result)
        *result = wait.value;
    return done;
}

ACO__FORCE_INLINE int ACO__BODY_OF(aco_sleep_until_at)(int64_t deadline, const char *location)
{
    aco__wait_t wait;
    return aco__wait_end(aco__sleep(deadline, &wait, location), &wait);
}

ACO__FORCE_INLINE int ACO__BODY_OF(aco_sleep_at)(int64_t ns, const char *location)
{
    return ns > 0 ? aco_sleep_until_at(aco_after(ns), location) : aco_task_yield();
}

ACO__FORCE_INLINE int ACO__BODY_OF(aco_select_until_at)(aco_select_case_t *cases, int n, int64_t deadline,
                                                        const char *location)
{
    aco__wait_t wait;
    int result = aco__reserve(deadline, "aco_select") != 0 ? -1 : aco__select(cases, n, &wait, location);
    if (result != ACO__MUST_WAIT)
        return result;
    aco__limit(&wait, deadline);
    aco__wait_leave(&wait);
    return aco__select_result(cases, &wait);
}

ACO__FORCE_INLINE int ACO__BODY_OF(aco_select_at)(aco_select_case_t *cases, int n, const char *location)
{
    return aco_select_until_at(cases, n, ACO_FOREVER, location);
}

#endif

#ifndef ACO__LIBRARY
/* aco_task_yield() as a function call, for programs that yield in many places: its code stands once in each unit. */
static ACO_SWITCHING __attribute__((noinline, unused)) void aco_task_yield_call(void)
{
    aco_task_yield();
}
#endif

ACO__END_C

#endif
