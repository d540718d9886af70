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
 * The process has one pool, which all schedulers use. If a function comes and no thread is idle, the pool starts a
 * thread, up to a bound. At the bound functions wait in a queue, first in, first out. A thread that has been idle for
 * some time ends. Look-ups of names (aco/names.h) and files (aco/file.h) use the pool, too.
 *
 * The function runs outside of all tasks. It may call what this library allows any thread to call. It must not end by
 * an exception or pthread_exit(). All signals are blocked there, except those that tell of errors and SIGPROF.
 *
 * exit() does not wait for functions that run, and does not call those in the queue. fork() gives the child an empty
 * pool: what was offloaded before does not return there. After fork() the child may use the pool in a thread that had
 * not used acorn_io before. */
#ifndef ACO_OFFLOAD_H
#define ACO_OFFLOAD_H

#include "scope.h"

ACO__BEGIN_C

/* Has a thread of the pool call fn(arg), and waits until it has returned. If `result` is not NULL, *result becomes what
 * fn returned; on error it stays as it was. Returns 0, with errno as fn left it (0 if fn left it alone); on error -1
 * with errno EINVAL (fn is NULL), EPERM (the caller cannot wait), ETIMEDOUT, ECANCELED, EAGAIN (the pool has no thread
 * and none can be started), ENOMEM, EMFILE, ENFILE.
 *
 * If the caller's scope ends before fn was called, the call fails, and fn is not called. If it ends later:
 *   - `release` is NULL: the call waits for fn, and succeeds. So `arg` may refer to local variables, unless they are on
 *     a share stack.
 *   - `release` is a function: the call fails at once, and fn runs to its end. Such a call takes over `arg`: if it
 *     fails, for any reason, release(arg, result) is called once, and the caller must not use `arg` any more. If fn was
 *     called, release() runs on the thread of the pool, with fn's result; if not, in the calling task before the
 *     call returns, with NULL. If the task's thread ends meanwhile, the task never runs again, and release(arg, result)
 *     is called all the same: by the thread that ends, or by the pool's if fn still runs. */
ACO_API int aco_offload_at(void *(*fn)(void *arg), void *arg, void **result,
                           void (*release)(void *arg, void *result), const char *location);
#define aco_offload(fn, arg, result, release) aco_offload_at(fn, arg, result, release, ACO_PLACE)

/* Sets the pool's bound, at least 1 (64 if never set), and how many nanoseconds a thread without work lives (10 seconds
 * if never set). Under a smaller bound, threads above it end when their function has returned; under a larger one,
 * functions in the queue get threads. Any thread. Returns 0; on error -1 with errno EINVAL (`threads` is 0, or
 * `idle_ns` is negative). */
ACO_API int aco_offload_limits(unsigned threads, int64_t idle_ns);

typedef struct aco_offload_stats_s {
    unsigned threads; /* in the pool */
    unsigned idle;    /* those of them without work */
    size_t queued;    /* functions that wait for a thread */
} aco_offload_stats_t;

/* Stores what the pool has now. Any thread. Returns 0; on error -1 with errno EINVAL (NULL). */
ACO_API int aco_offload_stats(aco_offload_stats_t *stats);

ACO__END_C

#endif
