/* Copying and memory: Acorn. What is measured: memory.h. */
#include "acorn_share.h"

#define IMPL "acorn"
#include "memory.h"
