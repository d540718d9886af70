/* The calls of aco/scheduler.h, aco/group.h and aco/sync.h that are inline in C, as exported functions: for other
 * languages and for ACO_CONFIG_NO_INLINE. */
#include "base/invariants.h"
#include "coroutine/forgotten.h"

#include "aco/group.h"
#include "aco/sync.h"

int aco_task_yield(void)
{
    ACO__MAY_SWITCH("aco_task_yield", NULL);
    return aco_task_yield_inline();
}

int aco_join_at(aco_t *task, void **result, const char *location)
{
    ACO__MAY_SWITCH("aco_join", location);
    return aco_join_at_inline(task, result, location);
}

int aco_join_until_at(aco_t *task, void **result, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_join_until", location);
    return aco_join_until_at_inline(task, result, deadline, location);
}

int aco_park_at(const char *what, const char *location)
{
    ACO__MAY_SWITCH("aco_park", location);
    return aco_park_at_inline(what, location);
}

int aco_park_until_at(const char *what, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_park_until", location);
    return aco_park_until_at_inline(what, deadline, location);
}

int aco_sleep_at(int64_t ns, const char *location)
{
    ACO__MAY_SWITCH("aco_sleep", location);
    return aco_sleep_at_inline(ns, location);
}

int aco_sleep_until_at(int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_sleep_until", location);
    return aco_sleep_until_at_inline(deadline, location);
}

int aco_mutex_lock_at(aco_mutex_t *mutex, const char *location)
{
    ACO__MAY_SWITCH("aco_mutex_lock", location);
    return aco_mutex_lock_at_inline(mutex, location);
}

int aco_mutex_lock_until_at(aco_mutex_t *mutex, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_mutex_lock_until", location);
    return aco_mutex_lock_until_at_inline(mutex, deadline, location);
}

int aco_cond_wait_at(aco_cond_t *cond, aco_mutex_t *mutex, const char *location)
{
    ACO__MAY_SWITCH("aco_cond_wait", location);
    return aco_cond_wait_at_inline(cond, mutex, location);
}

int aco_cond_wait_until_at(aco_cond_t *cond, aco_mutex_t *mutex, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_cond_wait_until", location);
    return aco_cond_wait_until_at_inline(cond, mutex, deadline, location);
}

int aco_semaphore_acquire_at(aco_semaphore_t *semaphore, const char *location)
{
    ACO__MAY_SWITCH("aco_semaphore_acquire", location);
    return aco_semaphore_acquire_at_inline(semaphore, location);
}

int aco_semaphore_acquire_until_at(aco_semaphore_t *semaphore, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_semaphore_acquire_until", location);
    return aco_semaphore_acquire_until_at_inline(semaphore, deadline, location);
}

int aco_wait_group_wait_at(aco_wait_group_t *group, const char *location)
{
    ACO__MAY_SWITCH("aco_wait_group_wait", location);
    return aco_wait_group_wait_at_inline(group, location);
}

int aco_wait_group_wait_until_at(aco_wait_group_t *group, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_wait_group_wait_until", location);
    return aco_wait_group_wait_until_at_inline(group, deadline, location);
}

int aco_channel_send_at(aco_channel_t *channel, const void *element, const char *location)
{
    ACO__MAY_SWITCH("aco_channel_send", location);
    return aco_channel_send_at_inline(channel, element, location);
}

int aco_channel_send_until_at(aco_channel_t *channel, const void *element, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_channel_send_until", location);
    return aco_channel_send_until_at_inline(channel, element, deadline, location);
}

int aco_channel_receive_at(aco_channel_t *channel, void *element, const char *location)
{
    ACO__MAY_SWITCH("aco_channel_receive", location);
    return aco_channel_receive_at_inline(channel, element, location);
}

int aco_channel_receive_until_at(aco_channel_t *channel, void *element, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_channel_receive_until", location);
    return aco_channel_receive_until_at_inline(channel, element, deadline, location);
}

int aco_select_at(aco_select_case_t *cases, int n, const char *location)
{
    ACO__MAY_SWITCH("aco_select", location);
    return aco_select_at_inline(cases, n, location);
}

int aco_select_until_at(aco_select_case_t *cases, int n, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_select_until", location);
    return aco_select_until_at_inline(cases, n, deadline, location);
}

aco_t *aco_group_spawn_at(aco_group_t *group, aco_function_t fn, void *arg, void **result, const aco_options_t *options,
                          const char *location)
{
    aco_t *task = aco_group_spawn_at_inline(group, fn, arg, result, options, location);
    aco__made(task, __builtin_return_address(0)); /* by this function's caller */
    return task;
}

int aco_group_end_at(aco_group_t *group, const char *location)
{
    ACO__MAY_SWITCH("aco_group_end", location);
    return aco_group_end_at_inline(group, location);
}

int aco_rwlock_rdlock_at(aco_rwlock_t *lock, const char *location)
{
    ACO__MAY_SWITCH("aco_rwlock_rdlock", location);
    return aco_rwlock_rdlock_at_inline(lock, location);
}

int aco_rwlock_rdlock_until_at(aco_rwlock_t *lock, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_rwlock_rdlock_until", location);
    return aco_rwlock_rdlock_until_at_inline(lock, deadline, location);
}

int aco_rwlock_wrlock_at(aco_rwlock_t *lock, const char *location)
{
    ACO__MAY_SWITCH("aco_rwlock_wrlock", location);
    return aco_rwlock_wrlock_at_inline(lock, location);
}

int aco_rwlock_wrlock_until_at(aco_rwlock_t *lock, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_rwlock_wrlock_until", location);
    return aco_rwlock_wrlock_until_at_inline(lock, deadline, location);
}

int aco_barrier_wait_at(aco_barrier_t *barrier, const char *location)
{
    ACO__MAY_SWITCH("aco_barrier_wait", location);
    return aco_barrier_wait_at_inline(barrier, location);
}

int aco_barrier_wait_until_at(aco_barrier_t *barrier, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_barrier_wait_until", location);
    return aco_barrier_wait_until_at_inline(barrier, deadline, location);
}

int aco_event_wait_at(aco_event_t *event, const char *location)
{
    ACO__MAY_SWITCH("aco_event_wait", location);
    return aco_event_wait_at_inline(event, location);
}

int aco_event_wait_until_at(aco_event_t *event, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_event_wait_until", location);
    return aco_event_wait_until_at_inline(event, deadline, location);
}

int aco_once_at(aco_once_t *once, int (*fn)(void *arg), void *arg, const char *location)
{
    return aco_once_at_inline(once, fn, arg, location);
}
