/* What the debuggers' tests look at: coroutines of each kind in each state. It stops in stop_here(), then aborts. */
#include <aco/scheduler.h>

#include <stdlib.h>

void stop_here(void);

__attribute__((noinline)) void stop_here(void)
{
    __asm__ volatile("");
}

static __attribute__((noinline)) int inner(int depth)
{
    volatile int local = 100 + depth;
    if (depth > 0)
        return inner(depth - 1) + local;
    aco_yield_value(NULL);
    return local;
}

static void *suspended(void *arg)
{
    volatile long kept = (long)arg;
    inner(2);
    return (void *)kept;
}

static __attribute__((noinline)) void saved_inner(void)
{
    volatile int precious = 4711;
    aco_yield();
    precious++;
}

static void saved(void)
{
    saved_inner();
    aco_exit();
}

static __attribute__((noinline)) void in_place_inner(void)
{
    volatile int other[9] = {1};
    aco_yield();
    other[0]++;
}

static void in_place(void)
{
    in_place_inner();
    aco_exit();
}

static __attribute__((noinline)) void runs_inner(void)
{
    stop_here();
    __asm__ volatile("");
}

static void *runs(void *arg)
{
    runs_inner();
    return arg;
}

static void *resumes(void *co)
{
    aco_send(co, NULL);
    return NULL;
}

static __attribute__((noinline)) void waits_inside(void)
{
    aco_park("the test");
    __asm__ volatile("");
}

static void *waits_in_task(void *arg)
{
    waits_inside();
    return arg;
}

static void *has_inner(void *co)
{
    aco_send(co, NULL);
    return co; /* else gcc merges it with resumes() */
}

int main(void)
{
    const aco_options_t named = {.name = "worker"}, runner = {.name = "runner"};
    aco_t *main_co, *co;
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    co = aco_new(suspended, (void *)7, &named);
    aco_send(co, NULL);
    aco_resume(aco_create(main_co, stack, 72, saved, NULL)); /* a slab of their own: the first of the list */
    aco_resume(aco_create(main_co, stack, 72, in_place, NULL)); /* its frames take the place of the other one's */
    aco_new(suspended, NULL, NULL); /* ready */
    co = aco_new(resumes, aco_new(runs, NULL, &runner), NULL);
    aco_spawn(has_inner, aco_new(waits_in_task, NULL, NULL), NULL); /* the inner one is made first */
    aco_run();
    aco_send(co, NULL);
    abort();
}
