/* The pool: threads that run jobs. One lock protects the queues, the list of idle threads and the states of jobs. The
 * thread that became idle last is woken first, so those that are not needed stay idle and end.
 *
 * Look-ups of names have a queue of their own and at most half of the threads: name servers that do not answer hold a
 * thread for many seconds, and files must not wait for them.
 *
 * The threads of a simulation have a pool of their own, with the same lock and limits, and each node with threads has
 * one. */
#define _GNU_SOURCE
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/job_threads.h"
#include "os/condition.h"
#include "system/system.h"

#include "aco/detail/chooser.h"
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

struct job_queue {
    aco__io_job_t *first, *last;
    size_t n;
};

static struct job_pool {
    struct job_queue work_queue, look_up_queue;
    idle_thread_t *idle_threads;
    unsigned threads;
    unsigned look_ups; /* busy threads that look a name up */
    uint64_t look_ups_done, others_done; /* jobs that have run */
    unsigned busy_threads; /* that run a function, or release its result. The others are free, or about to be */
} usual_pool, simulated_pool;

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned most_threads = THREADS;
static int64_t idle_limit = 10 * ACO_SECOND;

/* That of the calling thread. */
static struct job_pool *pool(void)
{
    void *own;
    ACO__ASSERT(aco__holds(&pool_lock));
    if (aco_likely(!aco__chooser_is_there()))
        return &usual_pool;
    _Static_assert(sizeof(struct job_pool) <= ACO__CHOOSER_POOL * sizeof(uint64_t), "a node has room for it");
    own = aco__chooser_pool();
    return own ? own : &simulated_pool;
}

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
    return job->kind == ACO__LOOK_UP ? &pool()->look_up_queue : &pool()->work_queue;
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
static size_t room_for_look_ups(const struct job_pool *p)
{
    unsigned most = most_threads > 1 ? most_threads / 2 : 1;
    return p->look_ups < most ? most - p->look_ups : 0;
}

/* How many jobs of the queues may run if there are threads. */
static size_t runnable(const struct job_pool *p)
{
    size_t room = room_for_look_ups(p);
    return p->work_queue.n + (p->look_up_queue.n < room ? p->look_up_queue.n : room);
}

/* Look-ups first: their bound leaves threads for other jobs, while other jobs could take all. */
static aco__io_job_t *take_job(const struct job_pool *p)
{
    aco__io_job_t *job = p->look_up_queue.first && room_for_look_ups(p) ? p->look_up_queue.first : p->work_queue.first;
    if (job)
        remove_job(job);
    return job;
}

/* ---- Threads ---- */

static void call_idle(struct job_pool *p)
{
    idle_thread_t *thread = p->idle_threads;
    ACO__ASSERT(!thread->is_called);
    p->idle_threads = thread->next;
    thread->is_called = 1;
    aco__system.pthread_cond_signal(&thread->called);
}

/* Waits to be called. 0 if that took too long. */
static int wait_for_call(struct job_pool *p)
{
    idle_thread_t self = {p->idle_threads, PTHREAD_COND_INITIALIZER, 0}, **link = &p->idle_threads;
    int64_t end = aco_after(idle_limit);
    int error = 0;
    aco__os_condition_init(&self.called);
    p->idle_threads = &self;
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
    struct job_pool *p = pool();
    ACO__ASSERT(p->busy_threads > 0 && p->busy_threads <= p->threads && p->look_ups <= p->busy_threads);
    p->busy_threads--;
    p->look_ups -= after_kind == ACO__LOOK_UP;
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

/* In a simulation: the thread has left the job's function for good, and ends. If the task's thread has not, that
 * releases the job. */
static void leave_job(void *arg)
{
    aco__io_job_t *job = arg;
    int is_abandoned;
    aco__io_pool_lock();
    is_abandoned = job->is_abandoned;
    become_free(job->kind);
    pool()->threads--;
    job->state = IO_NEW;
    aco__io_pool_unlock();
    if (!is_abandoned)
        return;
    if (job->release)
        job->release(job->arg, NULL);
    aco__service_free(job, job->sz);
}

static void run_job(aco__io_job_t *job)
{
    ACO__ASSERT(job->state == IO_NEW);
    job->state = IO_RUNS;
    pool()->busy_threads++;
    pool()->look_ups += job->kind == ACO__LOOK_UP;
    aco__io_pool_unlock();
    aco__chooser_in_job(leave_job, job, job->kind == ACO__FILE);
    errno = 0;
    job->result = job->fn(job->arg);
    job->error = errno;
    aco__chooser_in_job(NULL, NULL, 0);
    aco__io_pool_lock();
    (*(job->kind == ACO__LOOK_UP ? &pool()->look_ups_done : &pool()->others_done))++;
    if (job->is_abandoned)
        clear_away(job);
    else
        tell(job);
}

static void *work(void *unused)
{
    struct job_pool *p;
    aco__io_pool_lock();
    p = pool();
    while (p->threads <= most_threads) {
        aco__io_job_t *job = take_job(p);
        if (job)
            run_job(job);
        else if (!wait_for_call(p))
            break;
    }
    ACO__ASSERT(p->threads > p->busy_threads); /* this one is not busy */
    p->threads--;
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
    pool()->threads += error == 0;
    return error;
}

int aco__io_pool_add(aco__io_job_t *job)
{
    struct job_pool *p;
    int error = 0;
    aco__io_pool_lock();
    p = pool();
    append(job);
    if (runnable(p) > p->threads - p->busy_threads && p->threads < most_threads)
        error = start_thread();
    if (!p->threads) { /* for that error */
        remove_job(job);
    } else {
        if (p->idle_threads && runnable(p))
            call_idle(p);
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
    memset(&usual_pool, 0, sizeof usual_pool);
    memset(&simulated_pool, 0, sizeof simulated_pool);
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
    struct job_pool *p;
    if (!most || idle_ns < 0)
        return aco__service_fail(EINVAL, "aco_offload_limits", most ? "the time is negative" : "no thread is allowed");
    aco__io_pool_lock();
    p = pool();
    most_threads = most;
    idle_limit = idle_ns;
    while (p->idle_threads) /* so that the limits count for them, too */
        call_idle(p);
    while (runnable(p) > p->threads - p->busy_threads && p->threads < most_threads && start_thread() == 0)
        ;
    aco__io_pool_unlock();
    return 0;
}

uint64_t aco__io_pool_done(int are_look_ups)
{
    uint64_t done;
    aco__io_pool_lock();
    done = are_look_ups ? usual_pool.look_ups_done : usual_pool.others_done;
    aco__io_pool_unlock();
    return done;
}

int aco_offload_stats(aco_offload_stats_t *stats)
{
    const struct job_pool *p;
    if (!stats)
        return aco__service_fail(EINVAL, "aco_offload_stats", "the pointer to the statistics is NULL");
    memset(stats, 0, sizeof *stats);
    aco__io_pool_lock();
    p = pool();
    stats->threads = p->threads;
    for (const idle_thread_t *thread = p->idle_threads; thread; thread = thread->next)
        stats->idle++;
    ACO__ASSERT(stats->idle + p->busy_threads <= p->threads);
    stats->queued = p->work_queue.n + p->look_up_queue.n;
    aco__io_pool_unlock();
    return 0;
}
