/* A classic switch (classic.S): a function that saves all callee-saved registers and returns on the other stack. */
#include <stdint.h>
#include <string.h>

/* classic.S states the layout of a frame: classic_frame bytes, with the return address at offset classic_return. */
void classic_switch(void **from, void *to);
extern const uint32_t classic_frame, classic_return;

typedef struct flat {
    void *here, *there;
} flat_t;

static flat_t flat;

static void entry(void)
{
    for (;;)
        classic_switch(&flat.there, flat.here);
}

static flat_t *flat_start(void)
{
    static char stack[65536] __attribute__((aligned(64)));
    char *sp = stack + sizeof stack - 256 - classic_frame;
    void (*pc)(void) = entry;
    memcpy(sp + classic_return, &pc, sizeof pc);
    flat.there = sp;
    return &flat;
}

static inline void flat_round_trip(flat_t *f)
{
    classic_switch(&f->here, f->there);
}

#include "flat.h"
