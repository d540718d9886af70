/* What the libraries above take from acorn (aco/detail/for_libraries.h): turns of other tasks, memory and errors. */
#include "scheduler/wait.h"

#include "aco/detail/for_libraries.h"

ACO__SWITCHES void aco__service_yield(void)
{
    int error = errno;
    ACO__MAY_SWITCH("a call that lets others run", NULL);
    if (aco__current(aco__self()))
        (void)aco__task_yield(); /* puts aside the exceptions that the caller handles, which the inline form does not */
    errno = error;
}

void *aco__service_allocate(size_t *sz, const char *call)
{
    void *p = aco__memory_new(sz);
    if (!p)
        aco__fail_memory(0, call, *sz);
    return p;
}

void aco__service_free(void *p, size_t sz)
{
    int error = errno;
    aco__memory_free(p, sz);
    errno = error;
}

int(aco__service_fail)(int error, const char *call, const char *reason)
{
    const aco__tasks_t *s = aco__tasks(aco__self());
    (void)aco__fail(0, error, call, NULL, "%s", reason);
    if (aco_unlikely(s && s->chooser && s->chooser->failed))
        s->chooser->failed(s->chooser);
    errno = error;
    return -1;
}

void aco__service_warn(const char *call, const char *reason, ...)
{
    int error = errno;
    va_list args;
    va_start(args, reason);
    aco__warn_list(call, NULL, reason, args);
    va_end(args);
    errno = error;
}
