/* What generated functions and run.c know of each other. */
#ifndef RUN_H
#define RUN_H

#include "aco.h"
#include "aco/in_stack_generator.h"

#include <stdarg.h>
#include <stdint.h>

#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef uint64_t consumer_t(uint64_t seed);
typedef struct run_function {
    consumer_t *plain, *live;
} run_function_t;

/* Made by generate.py, which says how many there are. */
extern const run_function_t run_functions[];
extern const unsigned run_count;

/* A generator's values, as the plain functions keep them. */
enum { MOST_VALUES = 300 };
typedef struct values {
    unsigned count;
    uint32_t values[MOST_VALUES];
} values_t;

/* More than MOST_VALUES are not wanted: every loop that consumes ends before. */
static inline __attribute__((unused)) void add_value(values_t *values, uint32_t value)
{
    if (values->count < MOST_VALUES)
        values->values[values->count++] = value;
}

typedef struct triple {
    uint64_t words[3];
} triple_t;

/* Whether a coroutine runs here that may yield: not on a share stack that it has left for a generator's. */
int may_pause(void);
void pause_now(void);
/* A generator could not be opened. */
void refused(void);
uint64_t mix_many(int count, ...);

#endif
