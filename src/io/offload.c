/* A task has the pool run a function and waits. The answer comes as a post to the scheduler of the task's thread. */
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/job_threads.h"
#include "io/offload_internal.h"
#include "system/system.h"

#include "aco/detail/chooser.h"
#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/offload.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

static void link_job(aco__io_t *io, aco__io_job_t *job)
{
    job->before = NULL;
    job->after = io->jobs;
    if (io->jobs)
        io->jobs->before = job;
    io->jobs = job;
}

static void unlink_job(aco__io_t *io, const aco__io_job_t *job)
{
    ACO__ASSERT(job->io == io && (job->before ? job->before->after : io->jobs) == job);
    ACO__ASSERT(!job->after || job->after->before == job);
    *(job->before ? &job->before->after : &io->jobs) = job->after;
    if (job->after)
        job->after->before = job->before;
}

static aco__io_job_t *job_of_post(aco__post_t *post)
{
    return (aco__io_job_t *)(void *)((char *)post - offsetof(aco__io_job_t, post));
}

/* On the scheduler's thread. The task may have been woken before by the end of its scope, and not have run since. */
static void job_is_done(aco__thread_t *self, aco__post_t *post)
{
    aco__io_job_t *job = job_of_post(post);
    (void)self;
    ACO__ASSERT(job->state == IO_DONE && !job->is_told);
    job->is_told = 1;
    aco__poller_wake(&job->queue, 0);
}

/* The task waits. */
static void queue_job(void *arg)
{
    aco__io_job_t *job = arg;
    int error = aco__io_pool_add(job);
    if (error)
        aco__poller_wake(&job->queue, error);
}

/* Of a job that was not called. */
static void release_arg(void *arg, void (*release)(void *arg, void *result))
{
    int error = errno;
    if (release)
        release(arg, NULL);
    errno = error;
}

/* The thread ends: its tasks never run again, none of them waits any more. */
static void jobs_end(aco__io_t *io)
{
    aco__io_job_t *job, *done = NULL;
    while ((job = io->jobs) != NULL) {
        int state;
        unlink_job(io, job);
        state = aco__io_pool_give_up(job, 1);
        if (state == IO_DONE) {
            job->next = done;
            done = job;
        } else if (state != IO_RUNS) {
            release_arg(job->arg, job->release);
            aco__service_free(job, job->sz);
        }
    }
    while (__atomic_load_n(&io->posting, __ATOMIC_ACQUIRE))
        aco__system.sched_yield();
    while ((job = done) != NULL) {
        done = job->next;
        aco__poller_forget(&io->base, &job->post);
        if (job->release)
            job->release(job->arg, job->result);
        aco__service_free(job, job->sz);
    }
}

static aco__io_job_t *job_new(aco__io_t *io, const char *call, void *(*fn)(void *arg), void *arg,
                              void (*release)(void *arg, void *result))
{
    size_t sz = sizeof(aco__io_job_t);
    aco__io_job_t *job = aco__service_new(&sz, call);
    if (!job)
        return NULL;
    io->jobs_end = jobs_end;
    job->fn = fn;
    job->arg = arg;
    job->release = release;
    job->io = io;
    job->post.run = job_is_done;
    job->sz = sz;
    link_job(io, job);
    return job;
}

ACO__SWITCHES
static int wait_for_job(aco__io_job_t *job, const char *call, void (*ask)(void *arg), const char *location)
{
    return aco__poller_ask(call, &job->wait, &job->queue, (const void *)(uintptr_t)job->fn, ask, job, location);
}

/* The scope had ended before the job was queued. */
static int leave_to_pool(aco__io_job_t *job)
{
    int error = errno, failure;
    job->is_abandoned = 1;
    failure = aco__io_pool_add(job);
    errno = failure ? EAGAIN : error;
    return failure ? IO_NEW : IO_RUNS;
}

/* The wait for the job has failed with errno. Returns 1 if its function has returned all the same, perhaps after
 * another wait. If not, the job is the pool's, or nobody's: then it is freed. */
ACO__SWITCHES static int is_done_all_the_same(aco__io_t *io, aco__io_job_t *job, const char *call, const char *location)
{
    int error = errno, may_run_on = job->release != NULL, state;
    unlink_job(io, job); /* an abandoned one must not be touched any more */
    state = aco__io_pool_give_up(job, may_run_on);
    errno = error;
    if (state == IO_NEW && job->kind == ACO__MUST_RUN && (error == ETIMEDOUT || error == ECANCELED))
        state = leave_to_pool(job);
    if (state == IO_DONE || (state == IO_RUNS && !may_run_on)) {
        link_job(io, job);
        if (!job->is_told)
            (void)wait_for_job(job, call, NULL, location);
        return 1;
    }
    if (state != IO_RUNS) {
        release_arg(job->arg, job->release);
        aco__service_free(job, job->sz);
    }
    return 0;
}

/* In a simulation: waits as long as a name server takes, and then calls the function. */
ACO__SWITCHES
static int look_up_after(int64_t ns, int failure, void *(*fn)(void *arg), void *arg, void **result,
                         void (*release)(void *arg, void *result), const char *location)
{
    int done = aco_sleep_at(ns, location);
    void *own;
    if (done == 0 && !failure) {
        own = fn(arg);
        if (result)
            *result = own;
        return 0;
    }
    errno = done == 0 ? failure : errno;
    release_arg(arg, release);
    return -1;
}

ACO__SWITCHES
int aco__io_offload_as(int kind, const char *call, void *(*fn)(void *arg), void *arg, void **result,
                       void (*release)(void *arg, void *result), const char *location)
{
    int64_t ns;
    int failure = kind == ACO__LOOK_UP ? aco__chooser_look_up(&ns) : -1;
    aco__io_t *io;
    aco__io_job_t *job;
    if (failure >= 0)
        return look_up_after(ns, failure, fn, arg, result, release, location);
    io = aco__io_get(call);
    job = io ? job_new(io, call, fn, arg, release) : NULL;
    if (!job) {
        release_arg(arg, release);
        return -1;
    }
    job->kind = kind;
    if (wait_for_job(job, call, queue_job, location) != 0 && !is_done_all_the_same(io, job, call, location))
        return errno == EAGAIN ? aco__service_fail(EAGAIN, call, "the pool has no thread, and none can be started")
                               : -1;
    if (result)
        *result = job->result;
    ACO__ASSERT(job->is_told); /* or a thread of the pool still uses the record */
    errno = job->error;
    unlink_job(io, job);
    aco__service_free(job, job->sz);
    return 0;
}

/* ---- Calls for files ---- */

/* Whether the task has waited until `until`; if not, it has an errno, and *has_begun tells whether the wait began. */
ACO__SWITCHES
static int wait_for_disk(aco__io_job_t *job, int64_t until, const char *call, int *has_begun, const char *location)
{
    *has_begun = aco__poller_wait_begin(call, &job->wait, &job->queue, NULL, -1, 0, until, location) == 0;
    return *has_begun && aco__poller_wait_end(&job->io->base, &job->wait) != 0 && errno == ETIMEDOUT &&
           aco_now() >= until;
}

/* The scope of a call that had begun has ended: by half of the times, the call is made all the same. Returns whether
 * its caller gets the result. */
static int is_made_all_the_same(int64_t ns, void *(*fn)(void *arg), void *arg, void (*release)(void *arg, void *result))
{
    int error = errno;
    if (ns % 2 == 0)
        release_arg(arg, release);
    else if (release)
        release(arg, fn(arg));
    else
        (void)fn(arg);
    errno = error;
    return ns % 2 && !release;
}

/* The task makes the call itself, or the pool does if it has to wait for somebody: open() of a named pipe. */
ACO__SWITCHES
static int call_without_waiting(const char *call, void *(*fn)(void *arg), void *arg,
                                void (*release)(void *arg, void *result), const char *location)
{
    int would_wait;
    (void)aco__chooser_try(fn, arg, &would_wait);
    return would_wait ? aco__io_offload_as(ACO__FILE, call, fn, arg, NULL, release, location) : 0;
}

/* In a simulation, in which a call takes `ns`: the task waits so long, and makes it itself. */
ACO__SWITCHES
static int call_after(int64_t ns, const char *call, void *(*fn)(void *arg), void *arg,
                      void (*release)(void *arg, void *result), const char *location)
{
    aco__io_t *io = aco__io_get(call);
    aco__io_job_t *job = io ? job_new(io, call, fn, arg, release) : NULL;
    int is_done, has_begun = 0, error;
    if (!job) {
        release_arg(arg, release);
        return -1;
    }
    is_done = wait_for_disk(job, aco_now() + ns, call, &has_begun, location);
    error = errno;
    unlink_job(io, job);
    aco__service_free(job, job->sz);
    errno = error;
    if (is_done)
        return call_without_waiting(call, fn, arg, release, location);
    return is_made_all_the_same(has_begun ? ns : 0, fn, arg, release) ? 0 : -1;
}

int aco__io_offload_file(const char *call, void *(*fn)(void *arg), void *arg, void (*release)(void *arg, void *result),
                         const char *location)
{
    int64_t ns = aco__chooser_disk_time();
    return ns < 0 ? aco__io_offload_as(ACO__FILE, call, fn, arg, NULL, release, location)
                  : call_after(ns, call, fn, arg, release, location);
}

int aco_offload_at(void *(*fn)(void *arg), void *arg, void **result, void (*release)(void *arg, void *result),
                   const char *location)
{
    static const char call[] = "aco_offload";
    if (fn)
        return aco__io_offload_as(ACO__WORK, call, fn, arg, result, release, location);
    release_arg(arg, release);
    return aco__service_fail(EINVAL, call, "the function is NULL");
}
