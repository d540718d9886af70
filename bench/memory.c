/* Copying and memory: Acorn. memory.h has the measurements. */
#include "acorn_share.h"

#define IMPL "acorn"
#include "memory.h"
