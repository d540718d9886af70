/* Other functions in the place of the system's (src/system/system.h): for tests in which it fails. Replace them while
 * no other thread uses the library. The wrapper of NAME is failing_NAME(), and calls real_NAME(). Include this first. */
#ifndef REPLACE_H
#define REPLACE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define _FILE_OFFSET_BITS 64 /* the table's */
#include "system/system.h"

/* What the table had. */
#define REAL(name) static __typeof__(aco__system.name) real_##name

#define REPLACE(name) (real_##name = aco__system.name, aco__system.name = failing_##name)

/* A wrapper that asks `is_failing` first, and has `failed` as its result then. */
#define FAILING(type, name, parameters, arguments, is_failing, failed)                                                 \
    REAL(name);                                                                                                        \
    static type failing_##name parameters { return (is_failing) ? (failed) : real_##name arguments; }

#endif
