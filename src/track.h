/* Hooks for tools that must know about stacks and switches (sanitizers, Valgrind). No-ops. */
#ifndef ACO_TRACK_H
#define ACO_TRACK_H

#define aco__track_stack_new(stack) ((void)(stack))
#define aco__track_stack_gone(stack) ((void)(stack))
#define aco__track_save(co, from, sz) ((void)(co), (void)(from), (void)(sz))
#define aco__track_restore(co, to, sz) ((void)(co), (void)(to), (void)(sz))

#endif
