/* A classic switch (classic.S): a function that saves all registers that a call preserves and returns on the other stack. */
#include <stdint.h>
#include <string.h>

/* The layout of a frame is classic.S's: FRAME bytes, the return address at RETURN. */
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
