/* What the sources under test call of the layers below, for tests that include it after them. */
#include "litmus.h"

void *aco__service_allocate(size_t *sz, const char *call)
{
    (void)call;
    return litmus_allocate(*sz);
}

void aco__service_free(void *p, size_t sz)
{
    (void)p;
    (void)sz;
}

void aco__service_warn(const char *call, const char *reason, ...)
{
    (void)call;
    (void)reason;
}

int aco__service_fail(int error, const char *call, const char *reason)
{
    (void)error;
    (void)call;
    litmus_fail(reason);
    return -1;
}

int aco__may_move(const void *p)
{
    (void)p;
    return 0;
}

/* Each time a second later: no sleep ends soon, so no thread spins (scheduler/spin.h). It changes only time. */
int64_t aco_now(void)
{
    static int64_t now;
    return now += 1000000000;
}
