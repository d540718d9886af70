/* Generators: functions that produce one value after another for the loop that consumes them, at about the cost of a
 * function call.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   ACO_GENERATOR(squares, y, arg)
 *   {
 *       for (intptr_t i = 1; i <= (intptr_t)arg; i++)
 *           aco_generate(y, (void *)(i * i));
 *   }
 *   ...
 *   aco_generator_t g;
 *   if (aco_generator_open(&g, squares, (void *)10, NULL) != 0)
 *       error(aco_error_message());
 *   while (aco_generator_next(&g))
 *       printf("%ld\n", (long)(intptr_t)g.value);
 *   aco_generator_close(&g);
 *
 * Speed. Each side keeps the stack pointer, frame pointer and resume address of the other side in local variables, in a
 * tight loop even in registers. A switch touches no control block. So keep aco_generator_t a local variable, and pass
 * its address only to the calls below. Where speed matters most, call aco_generate() in the generator's own function.
 * Functions that the generator calls can get `y` and yield from any depth; the cost of a value does not depend on the
 * depth.
 *
 * A generator has its own stack but is not a coroutine. aco_get_co() and everything else that uses the running
 * coroutine take it for a function that the consumer calls. So aco_yield() in a generator suspends the coroutine that
 * consumes it. That coroutine needs a private stack. On a share stack the process aborts: in debug builds at the yield,
 * else when the coroutine's frames are saved. aco_defer() fails in a generator. A generator runs in its consumer's
 * floating-point environment.
 *
 * Exceptions (C++). An exception that leaves the generator's function comes out of the call that ran the generator. The
 * generator must not be suspended inside a catch block while its consumer enters or leaves one.
 *
 * Threads. Any thread may consume a generator, one thread at a time. */
#ifndef ACO_GENERATOR_H
#define ACO_GENERATOR_H

#if defined(__cplusplus) && __cplusplus < 201103L
#error "acorn: <aco/generator.h> needs C++11 or later"
#endif

#include "../aco.h"

#ifdef ACO_CONFIG_NO_INLINE
#error "acorn: <aco/generator.h> is inline assembly: there are no generators under ACO_CONFIG_NO_INLINE"
#endif

ACO__BEGIN_C

/* The consumer's side. `value`: the current value, after aco_generator_next() has returned 1. */
typedef struct aco_generator_s {
    void *value;
    aco__context_t aco__peer; /* where the generator goes on; pc is NULL when it has ended */
    aco_t *aco__block;        /* holds its stack; NULL: it has no stack */
} aco_generator_t;

/* The generator's side. */
typedef struct aco_yielder_s {
    aco__context_t aco__peer; /* where the consumer goes on */
} aco_yielder_t;

typedef void aco_generator_function_t(ACO__GENERATOR_PARAMETERS, void *arg);

/* ACO_GENERATOR(name, y, arg) { … } defines the static function `name` for aco_generator_open(). Its body has
 * `aco_yielder_t *y` and `void *arg`, the argument of aco_generator_open(). Returning ends the generator. */

/* Makes a generator. Its function does not run yet. `options` may be NULL, or set stack_size, pool, name and
 * ACO_NO_GUARD; every other option must be 0. The caller closes the generator. Returns 0; on error -1 with the errno of
 * aco_new(). */
ACO__FORCE_INLINE int aco_generator_open(aco_generator_t *g, aco_generator_function_t *function, void *arg,
                                         const aco_options_t *options);

/* Runs the generator until its next aco_generate(). Returns 1 with the new value in g->value, or 0 if the generator
 * has finished: then its stack is released, and later calls also return 0. */
ACO__FORCE_INLINE int aco_generator_next(aco_generator_t *g);

/* Ends the generator wherever it is suspended: unwinds its frames, so that C++ destructors and cleanup attributes run,
 * and releases its stack. The destructors and cleanups must not yield, as under aco_cancel(). Does nothing if the
 * generator has ended, was closed, or is all zeros. Aborts without memory. */
ACO__FORCE_INLINE void aco_generator_close(aco_generator_t *g);

/* Ends the generator and releases its stack without unwinding, which is much cheaper: for a generator that holds
 * nothing to release. */
ACO__FORCE_INLINE void aco_generator_drop(aco_generator_t *g);

/* Called in a generator: suspends it and gives `value` to its consumer. Returns when the consumer asks for the next
 * value. */
ACO__FORCE_INLINE void aco_generate(aco_yielder_t *y, void *value);

ACO__END_C

#include "detail/generator_inline.h"

#endif
