/* Boost.Context's assembly, without its C++ classes. */
#include <stddef.h>

typedef struct transfer {
    void *context, *data;
} transfer_t;

transfer_t jump_fcontext(void *to, void *data);
void *make_fcontext(void *top, size_t size, void (*entry)(transfer_t));

typedef struct flat {
    void *context;
} flat_t;

static void entry(transfer_t from)
{
    for (;;)
        from = jump_fcontext(from.context, NULL);
}

static flat_t *flat_start(void)
{
    static flat_t flat;
    static char stack[65536] __attribute__((aligned(64)));
    flat.context = make_fcontext(stack + sizeof stack, sizeof stack, entry);
    return &flat;
}

static inline void flat_round_trip(flat_t *flat)
{
    flat->context = jump_fcontext(flat->context, NULL).context;
}

#include "flat.h"
