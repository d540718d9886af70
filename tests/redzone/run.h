/* Between generated.c and run.c. */
#ifndef RUN_H
#define RUN_H

#include "aco.h"

enum { RUN_ARGUMENTS = 12 };

typedef struct {
    int number;
    enum { RUN_YIELDS, RUN_RESUMES } kind;
    uint64_t (*switching)(const uint64_t *arguments);
    uint64_t (*plain)(const uint64_t *arguments);
} run_function_t;

extern const run_function_t run_functions[];
extern const int run_count;
extern aco_t *run_helper; /* whom the functions of kind RUN_RESUMES resume: a coroutine that only yields */

#endif
