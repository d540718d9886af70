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
 * Speed. Each side keeps the other side's stack pointer, frame pointer and resume address in local variables, in a
 * tight loop even in registers; a switch touches no control block. So keep aco_generator_t a local variable, pass its
 * address only to the calls below, and call aco_generate() in the generator's own function where speed matters most.
 * Functions that it calls can get `y` and yield from any depth; the cost of a value does not depend on the depth.
 *
 * A generator has its own stack but is not a coroutine: to aco_get_co() and everything else that uses the running
 * coroutine, it is a function that the consumer calls. So aco_yield() in a generator suspends the coroutine that
 * consumes it. That coroutine needs a private stack: on a share stack the process aborts, in debug builds at the yield,
 * else when the coroutine's frames are saved. aco_defer() fails in a generator. A generator runs in its consumer's
 * floating-point environment.
 *
 * Exceptions (C++). An exception that leaves the generator's function comes out of the call that was running it. The
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
    aco_t *aco__block;        /* holds its stack; NULL: there is none any more */
} aco_generator_t;

/* The generator's side. */
typedef struct aco_yielder_s {
    aco__context_t aco__peer; /* where the consumer goes on */
} aco_yielder_t;

typedef void aco_generator_function_t(ACO__GENERATOR_PARAMETERS, void *arg);

/* ACO_GENERATOR(name, y, arg) { … } defines the static function `name` for aco_generator_open(). Its body has
 * `aco_yielder_t *y` and `void *arg`, the argument of aco_generator_open(). Returning ends the generator. */

/* Makes a generator. Its function does not run yet. `opts` may be NULL or have stack_size (0: 256 KiB), pool, name and
 * ACO_NO_GUARD; every other option must be 0. 0, or -1 and errno as aco_new(). The caller closes it. */
ACO__FORCE_INLINE int aco_generator_open(aco_generator_t *g, aco_generator_function_t *function, void *arg,
                                         const aco_options_t *opts);

/* Runs the generator until its next aco_generate(). 1: g->value is the new value. 0: finished, stack released; later
 * calls also return 0. */
ACO__FORCE_INLINE int aco_generator_next(aco_generator_t *g);

/* Ends the generator wherever it is suspended: unwinds its frames, so that C++ destructors and cleanup attributes run,
 * and releases its stack. As in aco_cancel(), they must not yield. Does nothing if the generator has ended, was closed,
 * or is all zeros. Aborts without memory. */
ACO__FORCE_INLINE void aco_generator_close(aco_generator_t *g);

/* The same without unwinding, and much cheaper: for a generator that holds nothing to release. */
ACO__FORCE_INLINE void aco_generator_drop(aco_generator_t *g);

/* In a generator: suspends it and gives `value` to its consumer. Returns when the consumer asks for the next value. */
ACO__FORCE_INLINE void aco_generate(aco_yielder_t *y, void *value);

ACO__END_C

#include "detail/generator_inline.h"

#endif
