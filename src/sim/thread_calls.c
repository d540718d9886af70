/* Threads, mutexes, conditions and futexes in a run. A mutex is a real one, which a
 * thread takes while it has the baton; if another thread of the run holds it, the thread waits without the baton.
 * Conditions and futexes are waits for their addresses only. */
#define _GNU_SOURCE /* siginfo_t under -std=c11 */
#include "sim/thread_calls.h"
#include "sim/baton.h"
#include "sim/thread_frames.h"
#include "sim/world.h"

#include "aco/detail/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define real aco__sim_real

/* ---- Threads ---- */

static void end_tasks(aco__sim_thread_t *thread)
{
    size_t tasks = aco__worker_tasks();
    if (thread->is_to_leave && thread->chooser.job)
        thread->chooser.leave_job(thread->chooser.job);
    if (thread->is_to_leave)
        aco__sim_abandon_tasks(thread);
    else if (tasks)
        aco__sim_fail(thread->sim, "%zu tasks of thread %" PRIu64 " never ended", tasks, thread->number);
    aco__chooser_end(&thread->chooser);
    aco__schedule_free(&thread->schedule);
}

static void *thread_of_run(void *arg)
{
    aco__sim_thread_t *thread = arg;
    aco__sim_thread_enter(thread);
    if (aco__chooser_begin(&thread->chooser, "pthread_create") == 0) {
        aco__sim_call_function(thread);
        end_tasks(thread);
    } else {
        aco__sim_fail(thread->sim, "there is no memory for a thread");
    }
    arg = thread->returned;
    aco__sim_thread_leave(thread);
    return arg;
}

/* The first thread's nodes: a crash of one could not end another thread. 0, or an errno, and the run has failed. */
static int check_place(aco_sim_t *sim)
{
    if (sim->nodes.here == sim->threads.running->home)
        return 0;
    aco__sim_fail(sim, "node \"%s\" needs another thread, for a set or aco_offload(): make it by aco_sim_node_main()",
                  sim->nodes.here->name);
    return ENOSYS;
}

int aco__sim_thread_start(aco_sim_t *sim, aco_sim_node_t *home, pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*fn)(void *arg), void *arg)
{
    aco__sim_thread_t *made = aco__sim_thread_new(sim, home);
    int error, kind = PTHREAD_CREATE_JOINABLE;
    if (!made)
        return EAGAIN;
    made->fn = fn;
    made->arg = arg;
    if (attributes)
        pthread_attr_getdetachstate(attributes, &kind);
    made->is_joinable = kind == PTHREAD_CREATE_JOINABLE;
    error = real.pthread_create(&made->thread, attributes, thread_of_run, made);
    if (error) {
        aco__sim_thread_drop(made);
        return error;
    }
    *thread = made->thread;
    return 0;
}

int aco__sim_pthread_create(aco_sim_t *sim, pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *arg),
                            void *arg)
{
    int error = check_place(sim);
    if (!error)
        error = aco__sim_thread_start(sim, sim->nodes.here, thread, attributes, fn, arg);
    if (!error)
        aco__sim_point(sim);
    return error;
}

aco__sim_thread_t *aco__sim_thread_of(aco_sim_t *sim, pthread_t thread)
{
    aco__sim_thread_t *record = aco__sim_thread_after(sim, &sim->threads.first);
    while (record && !(record->is_joinable && pthread_equal(record->thread, thread)))
        record = aco__sim_thread_after(sim, record);
    return record;
}

aco__sim_thread_t *aco__sim_live_thread_of(aco_sim_t *sim, pthread_t thread)
{
    aco__sim_thread_t *record = &sim->threads.first;
    while (record && (!pthread_equal(record->thread, thread) || (record->has_ended && !record->is_joinable)))
        record = aco__sim_thread_after(sim, record);
    return record;
}

int aco__sim_pthread_join(aco_sim_t *sim, pthread_t thread, void **result)
{
    aco__sim_thread_t *joined = aco__sim_thread_of(sim, thread);
    if (!joined)
        return aco__sim_refuse(sim, "pthread_join");
    if (sim->threads.running->is_to_leave && !joined->has_ended && !joined->is_to_leave) /* else it would stand still */
        aco__sim_thread_is_to_leave(joined);
    while (!joined->has_ended)
        if (aco__sim_wait(sim, "pthread_join", joined, INT64_MAX, ACO__SIM_PATIENT) == EDEADLK)
            return EDEADLK;
    joined->is_joinable = 0;
    return real.pthread_join(thread, result);
}

/* ---- Mutexes ---- */

/* Where the thread notes that it holds the mutex, or where it notes another one (NULL). */
static const void **note_of(aco__sim_thread_t *thread, const pthread_mutex_t *mutex)
{
    for (int i = 0; i < ACO__SIM_MOST_HELD; i++)
        if (thread->held[i] == mutex)
            return &thread->held[i];
    return NULL;
}

static int is_held(aco_sim_t *sim, const pthread_mutex_t *mutex)
{
    aco__sim_thread_t *thread = &sim->threads.first;
    while (thread && (thread->has_ended || !note_of(thread, mutex)))
        thread = aco__sim_thread_after(sim, thread);
    return thread != NULL;
}

/* Takes the mutex, without a point before. */
static int take_mutex(aco_sim_t *sim, pthread_mutex_t *mutex)
{
    int error;
    while ((error = real.pthread_mutex_trylock(mutex)) == EBUSY) {
        if (!is_held(sim, mutex)) { /* a thread outside of the run holds it, for a moment */
            error = real.pthread_mutex_lock(mutex);
            break;
        }
        if (aco__sim_wait(sim, "pthread_mutex_lock", mutex, INT64_MAX, ACO__SIM_FOR_MUTEX) == EDEADLK)
            return EDEADLK;
    }
    return error;
}

static int hold(aco_sim_t *sim, const pthread_mutex_t *mutex, int error)
{
    const void **note = error ? NULL : note_of(sim->threads.running, NULL);
    ACO__ASSERT(error || note); /* Acorn's code does not hold so many */
    if (note)
        *note = mutex;
    return error;
}

int aco__sim_pthread_mutex_lock(aco_sim_t *sim, pthread_mutex_t *mutex)
{
    aco__sim_point(sim);
    return hold(sim, mutex, take_mutex(sim, mutex));
}

int aco__sim_pthread_mutex_trylock(aco_sim_t *sim, pthread_mutex_t *mutex)
{
    aco__sim_point(sim);
    return hold(sim, mutex, real.pthread_mutex_trylock(mutex));
}

int aco__sim_pthread_mutex_unlock(aco_sim_t *sim, pthread_mutex_t *mutex)
{
    const void **note = note_of(sim->threads.running, mutex);
    int error = real.pthread_mutex_unlock(mutex);
    if (note)
        *note = NULL;
    if (sim->threads.others)
        (void)aco__sim_wake(sim, mutex, INT32_MAX);
    return error;
}

/* ---- Conditions ---- */

int aco__sim_cond_wait_until(aco_sim_t *sim, pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until)
{
    int result;
    (void)aco__sim_pthread_mutex_unlock(sim, mutex);
    result = aco__sim_wait(sim, "pthread_cond_wait", condition, until, 0);
    (void)hold(sim, mutex, take_mutex(sim, mutex));
    return result == ETIMEDOUT ? ETIMEDOUT : 0;
}

int aco__sim_pthread_cond_signal(aco_sim_t *sim, pthread_cond_t *condition)
{
    (void)check_place(sim); /* the job of a pool's thread */
    (void)aco__sim_wake(sim, condition, 1);
    aco__sim_point(sim);
    return 0;
}

int aco__sim_pthread_cond_broadcast(aco_sim_t *sim, pthread_cond_t *condition)
{
    (void)aco__sim_wake(sim, condition, INT32_MAX);
    aco__sim_point(sim);
    return 0;
}

/* ---- Futexes, and the time ---- */

int aco__sim_sleep_until(aco_sim_t *sim, int64_t then)
{
    if (sim->threads.others && then > sim->now)
        return aco__sim_wait(sim, "nanosleep", NULL, then, 0) == EINTR ? EINTR : 0;
    aco__sim_jump(sim, then);
    return 0;
}

int aco__sim_futex_wait_until(aco_sim_t *sim, uint32_t *word, uint32_t value, int64_t until)
{
    int error = EAGAIN;
    aco__sim_point(sim);
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value && !sim->threads.others && until < INT64_MAX) {
        aco__sim_jump(sim, until);
        error = ETIMEDOUT;
    } else if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) {
        error = aco__sim_wait(sim, "futex_wait", word, until, 0);
    }
    if (error)
        errno = error;
    return error ? -1 : 0;
}

int aco__sim_futex_wake(aco_sim_t *sim, uint32_t *word, int threads)
{
    int woken = aco__sim_wake(sim, word, threads);
    aco__sim_point(sim);
    return woken;
}

int aco__sim_sched_yield(aco_sim_t *sim)
{
    aco__sim_give_way(sim);
    return 0;
}
