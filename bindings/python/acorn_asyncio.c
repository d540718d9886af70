/* What acorn_asyncio.py needs: tasks of C that an asyncio loop runs, and awaitables for which they wait. Tasks run in
 * acorn_asyncio_turn(), hold the GIL there, and must not touch Python objects.
 *   cc -O2 -shared -fPIC acorn_asyncio.c -o libacorn_asyncio.so -lacorn_io -lacorn */
#define ACO_CONFIG_NO_INLINE
#include "acorn_asyncio.h"

#include <aco/io.h>
#include <aco/scheduler.h>

#include <errno.h>
#include <stdlib.h>

/* A task that Python has started, or something for which a task waits. Python frees it with acorn_asyncio_free(). */
typedef struct acorn_asyncio {
    struct acorn_asyncio *next;
    enum { ENDED, WANTED, ABANDONED } kind; /* what has happened to it */
    int error;                              /* errno; 0: there is a result */
    acorn_asyncio_function_t *function;     /* of the task */
    int awaitable;                          /* which one is wanted */
    void *arg, *result;
    aco_semaphore_t answered;
    int is_taken; /* Python knows it */
    int is_left;  /* its task waits no more */
} acorn_asyncio_t;

acorn_asyncio_t *acorn_asyncio_spawn(acorn_asyncio_function_t *function, void *arg, size_t stack_size);
int acorn_asyncio_turn(int64_t *wait_ns);
int acorn_asyncio_fd(void);
acorn_asyncio_t *acorn_asyncio_next(void);
void acorn_asyncio_answer(acorn_asyncio_t *wanted, void *result, int error);
void acorn_asyncio_free(acorn_asyncio_t *object);

static __thread acorn_asyncio_t *first, **last;

static void tell(acorn_asyncio_t *object, int kind)
{
    object->kind = kind;
    object->next = NULL;
    if (!first)
        last = &first;
    *last = object;
    last = &object->next;
}

/* What has happened since the last call, in order; NULL: nothing more. */
acorn_asyncio_t *acorn_asyncio_next(void)
{
    for (acorn_asyncio_t *object; (object = first);) {
        first = object->next;
        if (!object->is_left || object->is_taken) {
            object->is_taken = 1;
            return object;
        }
        free(object);
    }
    return NULL;
}

static void *run(void *arg)
{
    acorn_asyncio_t *task = arg;
    errno = 0;
    task->result = task->function(task->arg);
    task->error = task->result == ACO_ERROR ? errno : 0;
    tell(task, ENDED);
    return NULL;
}

acorn_asyncio_t *acorn_asyncio_spawn(acorn_asyncio_function_t *function, void *arg, size_t stack_size)
{
    aco_options_t options = {.flags = ACO_DETACHED, .stack_size = stack_size};
    acorn_asyncio_t *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    task->function = function;
    task->arg = arg;
    if (aco_spawn(run, task, &options))
        return task;
    free(task);
    return NULL;
}

int acorn_asyncio_fd(void)
{
    return aco_io_poll_fd();
}

/* Runs tasks until none can. Returns as aco_run_ready(); *wait_ns: when to call again, -1: not by the clock. */
int acorn_asyncio_turn(int64_t *wait_ns)
{
    int64_t next;
    int left = aco_run_ready(&next);
    int64_t now = aco_now();
    *wait_ns = next == ACO_FOREVER ? -1 : next > now ? next - now : 0;
    return left;
}

/* In a task. The object is Python's; the task that leaves early says so. */
void *acorn_asyncio_await(int awaitable, void *arg)
{
    acorn_asyncio_t *wanted = calloc(1, sizeof *wanted);
    if (!wanted)
        return ACO_ERROR;
    wanted->awaitable = awaitable;
    wanted->arg = arg;
    tell(wanted, WANTED);
    int ended = aco_semaphore_acquire(&wanted->answered) != 0 ? errno : 0;
    if (ended && aco_semaphore_try_acquire(&wanted->answered) != 0) { /* else the answer came before the task ran */
        wanted->is_left = 1;
        if (wanted->is_taken)
            tell(wanted, ABANDONED);
        errno = ended;
        return ACO_ERROR;
    }
    void *result = wanted->error ? ACO_ERROR : wanted->result;
    int error = wanted->error;
    free(wanted);
    errno = error;
    return result;
}

/* The answer for a task that waits, or has left. */
void acorn_asyncio_answer(acorn_asyncio_t *wanted, void *result, int error)
{
    wanted->result = result;
    wanted->error = error;
    if (wanted->is_left)
        free(wanted);
    else
        aco_semaphore_release(&wanted->answered);
}

void acorn_asyncio_free(acorn_asyncio_t *object)
{
    free(object);
}
