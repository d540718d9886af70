/* For tasks that an asyncio loop runs (acorn_asyncio.py). */
#ifndef ACORN_ASYNCIO_H
#define ACORN_ASYNCIO_H

#include <aco.h>

typedef void *acorn_asyncio_function_t(void *arg); /* on error ACO_ERROR with errno */

/* In a task that acorn_asyncio.py has started, or one that such a task spawned: waits for the awaitable that the
 * function `awaitable` of acorn_asyncio.awaitables makes of `arg`. Returns its result; on error ACO_ERROR with errno
 * ECANCELED or ETIMEDOUT (a scope ended: the awaitable is cancelled), EIO (it raised an exception), the errno of an
 * OSError, ENOMEM. */
void *acorn_asyncio_await(int awaitable, void *arg);

#endif
