/* Functions that block or compute for long, on the threads of a pool: only the task waits. In the library acorn_io,
 * beside acorn.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static void *hash(void *arg) // may block: it does not run on the task's thread
 *   {
 *       struct job *job = arg;
 *       job->error = hash_file(job->path, job->sum);
 *       return job;
 *   }
 *   ...
 *   if (aco_offload(hash, &job, NULL, NULL) == 0)
 *       use(job.sum);
 *
 * The pool is the process's: all schedulers use it. It starts a thread when a function comes and no thread is idle, up
 * to a bound; above it functions wait in a queue, first in, first out. A thread that has been idle for some time ends.
 *
 * The function runs outside of all tasks. It may call what this library allows any thread to call; it must not end by
 * an exception or pthread_exit(). All signals are blocked there, except those that tell of errors and SIGPROF.
 *
 * exit() does not wait for functions that run, and those in the queue are not called. fork() gives the child an empty
 * pool: what was offloaded before does not return there. After it the child may use the pool in a thread that had not
 * used acorn_io before. */
#ifndef ACO_OFFLOAD_H
#define ACO_OFFLOAD_H

#include "scope.h"

ACO__BEGIN_C

/* Has a thread of the pool call fn(arg) and waits until it has returned. 0; *result, unless `result` is NULL, is what
 * it returned, and errno what it left there (0 if it left it alone). Or -1 and errno: EINVAL (fn is NULL), EPERM (the
 * caller cannot wait), EAGAIN (the pool has no thread and none can be started), ENOMEM, EMFILE, ENFILE.
 *
 * If the scope of the caller ends before fn was called, the call fails, and fn is not called. Afterwards:
 *   - `release` NULL: the call waits for fn, and succeeds. So `arg` may refer to local variables, unless they are on a
 *     share stack.
 *   - else the call fails at once, and fn runs to its end. Such a call takes over `arg`: whenever it fails, for any
 *     reason, release(arg, result) is called once, and the caller must not use `arg` any more. If fn was called, that
 *     is on the thread of the pool, with fn's result; if not, it is before the call returns, with NULL. */
ACO_API int aco_offload_at(void *(*fn)(void *arg), void *arg, void **result,
                           void (*release)(void *arg, void *result), const char *location);
#define aco_offload(fn, arg, result, release) aco_offload_at(fn, arg, result, release, ACO_PLACE)

/* Sets the pool's bound, at least 1 (64 if never set), and how long a thread without work lives (10 seconds). Threads
 * above a smaller bound end when their function has; under a larger one, functions in the queue get threads. 0, or -1
 * and errno EINVAL. Any thread. */
ACO_API int aco_offload_limits(unsigned threads, int64_t idle_ns);

typedef struct aco_offload_stats_s {
    unsigned threads; /* of the pool */
    unsigned idle;    /* of these, without work */
    size_t queued;    /* functions that wait for a thread */
} aco_offload_stats_t;

/* What the pool has now. 0, or -1 and errno EINVAL (NULL). Any thread. */
ACO_API int aco_offload_stats(aco_offload_stats_t *stats);

ACO__END_C

#endif
