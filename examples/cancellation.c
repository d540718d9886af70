/* Cancellation: ending a coroutine from outside, with everything that it holds given back.
 *
 * A coroutine that may be cancelled where it yields says at once, when it gets something, how that is released:
 * aco_defer(). The calls are made when the coroutine ends, the last first, whether it returns or is cancelled. */
#include "aco.h"

#include <stdio.h>

#include "aco_assert_override.h"

typedef struct job {
    char released[8]; /* in which order: a letter each */
} job_t;

static void released(const char *what)
{
    job_t *job = aco_get_arg(); /* the coroutine's own, which runs this */
    job->released[strlen(job->released)] = *what;
    printf("  %s\n", what);
}

static void close_file(void *file)
{
    assert(fclose(file) == 0);
    released("file closed");
}

static void free_buffer(void *buffer)
{
    free(buffer);
    released("buffer freed");
}

static void roll_back(void *file)
{
    rewind(file); /* still open: it was opened earlier, and so is closed later */
    released("transaction rolled back");
}

/* Yields in the middle of a transaction. */
static void transaction(FILE *file, const char *bytes, size_t size)
{
    assert(aco_defer(roll_back, file) == 0);
    for (size_t i = 0; i < size; i++) {
        fputc(bytes[i], file);
        aco_yield();
    }
    assert(aco_defer_pop(0) == 0); /* done: nothing to roll back any more */
}

static void *work(void *arg)
{
    static const char text[] = "abc";
    const size_t size = sizeof text - 1;
    FILE *file = tmpfile();
    (void)arg;
    assert(file && aco_defer(close_file, file) == 0);
    char *buffer = malloc(size);
    assert(buffer && aco_defer(free_buffer, buffer) == 0);
    memcpy(buffer, text, size);
    transaction(file, buffer, size);
    aco_yield();
    return (void *)text; /* the deferred calls are made now */
}

/* Resumes a new coroutine so many times, then cancels it. */
static void run(int resumes, const char *order)
{
    job_t job = {""};
    aco_t *co = aco_new(work, &job, NULL);
    assert(co);
    printf("a job that is resumed %d times\n", resumes);
    for (int i = 0; i < resumes; i++)
        assert(aco_send(co, NULL) != ACO_ERROR);
    int returned = co->is_end;
    assert(aco_cancel(co) == 0); /* where it has returned: does nothing */
    assert(aco_state(co) == ACO_STATE_DONE && (aco_result(co) != NULL) == returned);
    assert(strcmp(job.released, order) == 0);
    aco_destroy(co);
}

int main(void)
{
    run(0, "");    /* never started: there is nothing to release */
    run(2, "tbf"); /* in the transaction */
    run(4, "bf");  /* after it */
    run(5, "bf");  /* returned */
    return 0;
}
