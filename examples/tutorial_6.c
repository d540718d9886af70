/* Tutorial 6: a round-robin scheduler.
 *
 * Jobs of different length wait in a queue, each a coroutine. The scheduler resumes the first one, and puts it at the
 * queue's end if it has yielded; if it has ended, a new job takes its place. Most jobs run on one common stack, every
 * eighth has a private one. */
#include "aco.h"

#include <stdio.h>

#include "aco_assert_override.h"

enum { JOBS = 500, ALIVE = 50 };

typedef struct job {
    int id;
    int steps;
    int result;
    aco_t *co;
    aco_share_stack_t *own_stack; /* NULL: it runs on the common one */
    struct job *next;
} job_t;

typedef struct scheduler {
    aco_t *main_co;
    aco_share_stack_t *common;
    job_t *first, **last; /* the queue; `last` is where the next job is linked */
    int alive, started, ended, resumes;
} scheduler_t;

static void work(void)
{
    job_t *job = aco_get_arg();
    int sum = 0;
    for (int i = 1; i <= job->steps; i++) {
        sum += job->id * i;
        aco_yield();
    }
    job->result = sum;
    aco_exit();
}

static void enqueue(scheduler_t *s, job_t *job)
{
    job->next = NULL;
    *s->last = job;
    s->last = &job->next;
}

static job_t *dequeue(scheduler_t *s)
{
    job_t *job = s->first;
    s->first = job->next;
    if (!s->first)
        s->last = &s->first;
    return job;
}

static void job_start(scheduler_t *s)
{
    job_t *job = aco_mem_new(sizeof *job);
    job->id = ++s->started;
    job->steps = job->id * 7 % 31; /* 0 to 30 */
    job->result = -1;
    job->own_stack = job->id % 8 == 0 ? aco_share_stack_new(16 * 1024) : NULL;
    job->co = aco_create(s->main_co, job->own_stack ? job->own_stack : s->common, 0, work, job);
    s->alive++;
    enqueue(s, job);
}

static void job_end(scheduler_t *s, job_t *job)
{
    assert(job->result == job->id * job->steps * (job->steps + 1) / 2);
    if (job->id % 100 == 0)
        printf("job %d has ended after %d steps, %s stack\n", job->id, job->steps,
               job->own_stack ? "private" : "common");
    aco_destroy(job->co);
    if (job->own_stack)
        aco_share_stack_destroy(job->own_stack);
    free(job);
    s->alive--;
    s->ended++;
}

static void run(scheduler_t *s)
{
    for (;;) {
        while (s->alive < ALIVE && s->started < JOBS)
            job_start(s);
        if (!s->first)
            return;
        job_t *job = dequeue(s);
        aco_resume(job->co);
        s->resumes++;
        if (job->co->is_end)
            job_end(s, job);
        else
            enqueue(s, job);
    }
}

int main(void)
{
    scheduler_t s = {0};
    int expected_resumes = 0;

    aco_thread_init(NULL);
    s.main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    s.common = aco_share_stack_new(0);
    s.last = &s.first;
    run(&s);

    for (int id = 1; id <= JOBS; id++)
        expected_resumes += id * 7 % 31 + 1;
    printf("%d jobs have ended, %d resumes\n", s.ended, s.resumes);
    assert(s.ended == JOBS && s.alive == 0 && s.resumes == expected_resumes);

    aco_share_stack_destroy(s.common);
    aco_destroy(s.main_co);
    return 0;
}
