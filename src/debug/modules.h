/* modules.c: the program and its libraries in memory, and the names of their functions. */
#ifndef ACO_MODULES_H
#define ACO_MODULES_H

#include "os/platform.h"

#include "aco/debug.h"

#include <stddef.h>
#include <stdint.h>

enum { ACO__BUILD_ID_TEXT = 65 };

/* A part with code. */
typedef struct aco__module {
    uintptr_t from, to, bias; /* `bias`: of addresses in memory to those in the file */
    uint64_t offset;          /* of `from` in the file */
    char *path;
    char build_id[ACO__BUILD_ID_TEXT]; /* in hexadecimal; "": none */
    struct aco__symbols *symbols;
    int was_read;
} aco__module_t;

typedef struct aco__modules {
    aco__module_t *at;
    size_t n, room;
} aco__modules_t;

/* Those of this moment. Zeros after a failure: no name is found. */
ACO__HIDDEN void aco__modules_read(aco__modules_t *modules);
ACO__HIDDEN void aco__modules_free(aco__modules_t *modules);
/* NULL: none. */
ACO__HIDDEN aco__module_t *aco__module_of(aco__modules_t *modules, const void *address);
/* The name of the function, also of a static one, by the symbols in the file; NULL: unknown. *start becomes its
 * address. Valid until the modules are freed. Reads the file at the first call for it, which blocks the thread. */
ACO__HIDDEN const char *aco__function_at(aco__module_t *module, const void *address, uintptr_t *start);

#endif
