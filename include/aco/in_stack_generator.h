/* In-stack generators: generators without a stack of their own. They run on their consumer's stack, right below its
 * frame.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   ACO_IN_STACK_GENERATOR(squares, y, arg)
 *   {
 *       for (intptr_t i = 1; i <= (intptr_t)arg; i++)
 *           aco_generate_in_stack(y, (void *)(i * i));
 *   }
 *   ...
 *   aco_in_stack_t g;
 *   aco_in_stack_open(&g, squares, (void *)10);
 *   while (aco_in_stack_next(&g) == 1)
 *       printf("%ld\n", (long)(intptr_t)g.value);
 *   aco_in_stack_close(&g);
 *
 * What aco/generator.h says about generators holds here too, with these differences:
 *   - The function that opens a generator must also consume and close it. Therefore aco_in_stack_open() is a macro. Do
 *     not wrap it in an inline function that opens for its caller: the compiler may restore the stack pointer at the
 *     end of the inlined code, and then the next call fails.
 *   - The generators on one stack must end in reverse order. While a generator lives, everything else that is put on
 *     its stack (alloca(), arrays of variable length) must be gone before it ends. Calls for a generator that is not
 *     the innermost one fail.
 *   - A generator has as much stack as its consumer has left.
 *   - aco_yield() in a generator suspends the consumer's coroutine on every kind of stack.
 *   - The compiler addresses the consumer's frame by the frame pointer, because the stack pointer is the generator's.
 *
 * In two cases aco_in_stack_open() cannot work and aborts. One is a function for which gcc keeps arguments of calls at
 * the stack pointer: on x86 with -maccumulate-outgoing-args, which some -march options imply; on other processors if
 * the arguments exceed the room there, which is at least 64 bytes. The other is a thread with a shadow stack, in a unit
 * compiled for shadow stacks (docs/platforms.md).
 * Under ThreadSanitizer and MemorySanitizer, on Windows and with ACO_CONFIG_UCONTEXT the generator gets a stack of its
 * own: then opening aborts without memory, and no call fails with EBUSY. */
#ifndef ACO_IN_STACK_GENERATOR_H
#define ACO_IN_STACK_GENERATOR_H

#include "generator.h"

ACO__BEGIN_C

/* The consumer's side. `value`: the current value, after aco_in_stack_next() has returned 1. */
typedef struct aco_in_stack_s {
    void *value;
    aco__context_t aco__peer;
    void *aco__consumer_sp; /* the consumer's stack pointer before the generator; NULL: there is no generator */
} aco_in_stack_t;

/* The generator's side. */
typedef struct aco_in_stack_yielder_s {
    aco__context_t aco__peer;
} aco_in_stack_yielder_t;

struct aco__in_stack_argument; /* a type that keeps the two kinds of functions apart */
typedef void aco_in_stack_function_t(ACO__GENERATOR_PARAMETERS, struct aco__in_stack_argument *arg);

/* ACO_IN_STACK_GENERATOR(name, y, arg) { … } defines the static function `name` for aco_in_stack_open(). Its body has
 * `aco_in_stack_yielder_t *y` and `void *arg`.
 *
 * aco_in_stack_open(g, function, arg) begins a generator below the frame of the calling function. */

/* Runs the generator until its next aco_generate_in_stack(), as aco_generator_next() does. Returns 1 with the new value
 * in g->value, or 0 if the generator has finished; on error -1 with errno EBUSY (something that was put on the stack
 * after the generator is still there). */
ACO__FORCE_INLINE int aco_in_stack_next(aco_in_stack_t *g);

/* End the generator as aco_generator_close() and aco_generator_drop() do: the first unwinds its frames, the second does
 * not. The frames leave the stack. Return 0; on error -1 with errno EBUSY (see aco_in_stack_next()). */
ACO__FORCE_INLINE int aco_in_stack_close(aco_in_stack_t *g);
ACO__FORCE_INLINE int aco_in_stack_drop(aco_in_stack_t *g);

/* Called in a generator: suspends it and gives `value` to its consumer. Returns when the consumer asks for the next
 * value. */
ACO__FORCE_INLINE void aco_generate_in_stack(aco_in_stack_yielder_t *y, void *value);

ACO__END_C

#include "detail/in_stack_generator_inline.h"

#endif
