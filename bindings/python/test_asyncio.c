/* Tasks of C for test_asyncio.py. */
#define ACO_CONFIG_NO_INLINE
#include "acorn_asyncio.h"

#include <aco/scheduler.h>
#include <aco/scope.h>

#include <errno.h>

enum { DOUBLE, FAIL, FOREVER };

void *naps(void *arg), *asks(void *arg), *fails(void *arg), *gives_up(void *arg), *refuses(void *arg);

void *naps(void *arg)
{
    for (int i = 0; i < 5; i++)
        aco_sleep(ACO_MILLISECOND);
    return arg;
}

void *asks(void *arg)
{
    void *result = arg;
    for (int i = 0; i < 4; i++)
        result = acorn_asyncio_await(DOUBLE, result);
    return result;
}

void *fails(void *arg)
{
    return acorn_asyncio_await(FAIL, arg);
}

/* Its scope ends while it waits for something that never comes. */
void *gives_up(void *arg)
{
    aco_scope_t limit;
    aco_scope_begin(&limit, aco_after(ACO_MILLISECOND));
    void *result = acorn_asyncio_await(FOREVER, arg);
    int error = errno;
    aco_scope_end(&limit);
    errno = error;
    return result;
}

/* It leaves before Python can know of it. */
void *refuses(void *arg)
{
    aco_scope_t ended;
    aco_scope_begin(&ended, ACO_FOREVER);
    aco_scope_cancel(&ended);
    void *result = acorn_asyncio_await(FOREVER, arg);
    int error = errno;
    aco_scope_end(&ended);
    errno = error;
    return result;
}
