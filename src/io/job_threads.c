/* The pool: threads that run jobs. One lock protects the queues, the list of idle threads and the states of jobs. The
 * thread that became idle last is woken first, so those that are not needed stay idle and end.
 *
 * Look-ups of names have a queue of their own and at most half of the threads: name servers that do not answer hold a
 * thread for many seconds, and files must not wait for them. */
#define _GNU_SOURCE
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/job_threads.h"
#include "os/condition.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/detail/worker.h"
#include "aco/offload.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

enum { THREADS = 64 };

typedef struct idle_thread {
    struct idle_thread *next;
    pthread_cond_t called;
    int is_called;      /* and no longer in the list */
} idle_thread_t;

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct job_queue {
    aco__io_job_t *first, *last;
    size_t n;
} work_queue, look_up_queue;
static idle_thread_t *idle_threads;
static unsigned threads, most_threads = THREADS, look_ups; /* look_ups: busy threads that look a name up */
static unsigned busy_threads; /* that run a function, or release its result. The others are free, or about to be */
static int64_t idle_limit = 10 * ACO_SECOND;

/* ---- The lock ---- */

void aco__io_pool_lock(void)
{
    ACO__LOCKED_BEGIN(&pool_lock);
    aco__system.pthread_mutex_lock(&pool_lock);
}

void aco__io_pool_unlock(void)
{
    aco__system.pthread_mutex_unlock(&pool_lock);
    ACO__LOCKED_END(&pool_lock);
}

/* ---- The queues ---- */

static struct job_queue *queue_of(const aco__io_job_t *job)
{
    return job->kind == ACO__LOOK_UP ? &look_up_queue : &work_queue;
}

static void append(aco__io_job_t *job)
{
    struct job_queue *queue = queue_of(job);
    ACO__ASSERT(aco__holds(&pool_lock) && job->state == IO_NEW);
    job->state = IO_QUEUED;
    job->next = NULL;
    *(queue->first ? &queue->last->next : &queue->first) = job;
    queue->last = job;
    queue->n++;
}

static void remove_job(aco__io_job_t *job)
{
    struct job_queue *queue = queue_of(job);
    aco__io_job_t **link = &queue->first, *before = NULL;
    ACO__ASSERT(aco__holds(&pool_lock) && job->state == IO_QUEUED && queue->n > 0);
    for (; *link != job; link = &before->next)
        before = *link;
    *link = job->next;
    if (queue->last == job)
        queue->last = before;
    queue->n--;
    ACO__ASSERT(!queue->first == !queue->n && (!queue->n || !queue->last->next));
    job->state = IO_NEW;
}

/* How many more look-ups may run. */
static size_t room_for_look_ups(void)
{
    unsigned most = most_threads > 1 ? most_threads / 2 : 1;
    return look_ups < most ? most - look_ups : 0;
}

/* How many jobs of the queues may run if there are threads. */
static size_t runnable(void)
{
    size_t room = room_for_look_ups();
    return work_queue.n + (look_up_queue.n < room ? look_up_queue.n : room);
}

/* Look-ups first: their bound leaves threads for other jobs, while other jobs could take all. */
static aco__io_job_t *take_job(void)
{
    aco__io_job_t *job = look_up_queue.first && room_for_look_ups() ? look_up_queue.first : work_queue.first;
    if (job)
        remove_job(job);
    return job;
}

/* ---- Threads ---- */

static void call_idle(void)
{
    idle_thread_t *thread = idle_threads;
    ACO__ASSERT(aco__holds(&pool_lock) && !thread->is_called);
    idle_threads = thread->next;
    thread->is_called = 1;
    aco__system.pthread_cond_signal(&thread->called);
}

/* Waits to be called. 0 if that took too long. */
static int wait_for_call(void)
{
    idle_thread_t self = {idle_threads, PTHREAD_COND_INITIALIZER, 0}, **link = &idle_threads;
    int64_t end = aco_after(idle_limit);
    int error = 0;
    aco__os_condition_init(&self.called);
    idle_threads = &self;
    while (!self.is_called && !error)
        error = aco__os_condition_wait(&self.called, &pool_lock, end);
    if (!self.is_called) {
        while (*link != &self)
            link = &(*link)->next;
        *link = self.next;
    }
    pthread_cond_destroy(&self.called);
    return self.is_called; // NOLINT(clang-analyzer-core.StackAddressEscape): out of the list, by call_idle() or here
}

/* The calling thread can take another job. */
static void become_free(int after_kind)
{
    ACO__ASSERT(aco__holds(&pool_lock) && busy_threads > 0 && busy_threads <= threads && look_ups <= busy_threads);
    busy_threads--;
    look_ups -= after_kind == ACO__LOOK_UP;
}

/* The function has returned. */
static void tell(aco__io_job_t *job)
{
    aco__io_t *io = job->io;
    ACO__ASSERT(job->state == IO_RUNS);
    job->state = IO_DONE;
    become_free(job->kind); /* by now: the task's next job needs no other thread */
    __atomic_fetch_add(&io->posting, 1, __ATOMIC_RELAXED);
    aco__io_pool_unlock();
    aco__poller_post(&io->base, &job->post);
    __atomic_fetch_sub(&io->posting, 1, __ATOMIC_RELEASE); /* from now on the scheduler's thread may end */
    aco__io_pool_lock();
}

/* The same, and nobody waits. */
static void clear_away(aco__io_job_t *job)
{
    int kind = job->kind;
    aco__io_pool_unlock();
    if (job->release)
        job->release(job->arg, job->result);
    aco__service_free(job, job->sz);
    aco__io_pool_lock();
    become_free(kind);
}

static void run_job(aco__io_job_t *job)
{
    ACO__ASSERT(aco__holds(&pool_lock) && job->state == IO_NEW);
    job->state = IO_RUNS;
    busy_threads++;
    look_ups += job->kind == ACO__LOOK_UP;
    aco__io_pool_unlock();
    errno = 0;
    job->result = job->fn(job->arg);
    job->error = errno;
    aco__io_pool_lock();
    if (job->is_abandoned)
        clear_away(job);
    else
        tell(job);
}

static void *work(void *unused)
{
    aco__io_pool_lock();
    while (threads <= most_threads) {
        aco__io_job_t *job = take_job();
        if (job)
            run_job(job);
        else if (!wait_for_call())
            break;
    }
    ACO__ASSERT(threads > busy_threads); /* this one is not busy */
    threads--;
    aco__io_pool_unlock();
    return unused;
}

/* 0, or an errno. */
static int start_thread(void)
{
    static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF};
    aco__worker_t *worker = aco__worker();
    sigset_t blocked, before;
    pthread_attr_t attributes;
    pthread_t thread;
    int error;
    ACO__ASSERT_LOCKED(&pool_lock); /* the new thread counts itself as free with it only */
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        sigdelset(&blocked, kept[i]);
    if ((error = pthread_attr_init(&attributes)) != 0)
        return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    aco__system.pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (worker && worker->pin)
        worker->pin(worker, 0); /* the new thread inherits the processors that are allowed */
    error = aco__system.pthread_create(&thread, &attributes, work, NULL);
    if (worker && worker->pin)
        worker->pin(worker, 1);
    aco__system.pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    threads += error == 0;
    return error;
}

int aco__io_pool_add(aco__io_job_t *job)
{
    int error = 0;
    aco__io_pool_lock();
    append(job);
    if (runnable() > threads - busy_threads && threads < most_threads)
        error = start_thread();
    if (!threads) { /* for that error */
        remove_job(job);
    } else {
        if (idle_threads && runnable())
            call_idle();
        error = 0;
    }
    aco__io_pool_unlock();
    return error;
}

int aco__io_pool_give_up(aco__io_job_t *job, int may_run_on)
{
    int state;
    aco__io_pool_lock();
    state = job->state;
    if (state == IO_QUEUED && job->kind == ACO__MUST_RUN)
        state = IO_RUNS;
    if (state == IO_QUEUED)
        remove_job(job);
    else if (state == IO_RUNS && may_run_on)
        job->is_abandoned = 1;
    aco__io_pool_unlock();
    return state;
}

/* ---- fork() ---- */

/* The child has none of the threads. */
static void after_fork_in_child(void)
{
    memset(&work_queue, 0, sizeof work_queue);
    memset(&look_up_queue, 0, sizeof look_up_queue);
    idle_threads = NULL;
    threads = busy_threads = look_ups = 0;
    aco__io_pool_unlock();
}

/* The program's handlers come later, so they run before the lock is taken: hooked ones may wait. */
ACO__AT_LOAD static void keep_pool_over_fork(void)
{
    (void)pthread_atfork(aco__io_pool_lock, aco__io_pool_unlock, after_fork_in_child);
}

/* ---- Limits ---- */

int aco_offload_limits(unsigned most, int64_t idle_ns)
{
    if (!most || idle_ns < 0)
        return aco__service_fail(EINVAL, "aco_offload_limits", most ? "the time is negative" : "no thread is allowed");
    aco__io_pool_lock();
    most_threads = most;
    idle_limit = idle_ns;
    while (idle_threads) /* so that the limits count for them, too */
        call_idle();
    while (runnable() > threads - busy_threads && threads < most_threads && start_thread() == 0)
        ;
    aco__io_pool_unlock();
    return 0;
}

int aco_offload_stats(aco_offload_stats_t *stats)
{
    if (!stats)
        return aco__service_fail(EINVAL, "aco_offload_stats", "the pointer to the statistics is NULL");
    memset(stats, 0, sizeof *stats);
    aco__io_pool_lock();
    stats->threads = threads;
    for (const idle_thread_t *thread = idle_threads; thread; thread = thread->next)
        stats->idle++;
    ACO__ASSERT(stats->idle + busy_threads <= threads);
    stats->queued = work_queue.n + look_up_queue.n;
    aco__io_pool_unlock();
    return 0;
}
