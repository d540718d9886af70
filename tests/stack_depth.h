/* What the tests of how deep stacks go, of trims and of the profile share. */
#ifndef STACK_DEPTH_H
#define STACK_DEPTH_H

#include "aco/pool.h"
#include "check.h"
#include "sanitizers.h"

#include <stdint.h>

/* Bytes that a function's frame may have below what it knows of; sanitizers surround everything. */
enum { SLACK = SANITIZED ? 8192 : 512 };

static inline size_t top_of(const aco_t *co)
{
    return (size_t)co->share_stack->aco__top;
}

static inline size_t live_bytes(const aco_t *co)
{
    return top_of(co) - (size_t)co->aco__self.sp;
}

static volatile size_t frame_size =
    1000; /* not known when compiled: such frames the address sanitizer keeps elsewhere */

/* Calls nothing but itself, so that nothing below its last frame is touched. */
static __attribute__((noinline, unused)) unsigned dive_to(size_t bottom, size_t *lowest)
{
    volatile unsigned char *p = __builtin_alloca(frame_size);
    unsigned sum = 0;
    p[0] = (unsigned char)bottom;
    *lowest = (size_t)p;
    if (*lowest > bottom)
        sum = dive_to(bottom, lowest);
    return sum + p[0];
}

/* `bytes` deeper than here, or a frame more. */
static __attribute__((noinline, unused)) unsigned dive(size_t bytes, size_t *lowest)
{
    return dive_to((size_t)__builtin_frame_address(0) - bytes, lowest) + 1;
}

/* Known bytes for a frame, others for each seed; and how many of them have changed. */
static inline void fill(volatile unsigned char *bytes, unsigned size, unsigned seed)
{
    for (unsigned i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 2654435761u ^ seed);
}

static inline unsigned changed(const volatile unsigned char *bytes, unsigned size, unsigned seed)
{
    unsigned n = 0;
    for (unsigned i = 0; i < size; i++)
        n += bytes[i] != (unsigned char)(i * 2654435761u ^ seed);
    return n;
}

enum {
    UNWRITTEN = 256
}; /* the innermost frame's last bytes may be padding that nobody writes, and alone on their page */

static inline size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

typedef struct looked_for {
    const void *entry;
    int is_private, found;
    aco_stack_usage_t usage;
    char name[ACO_NAME_SIZE];
} looked_for_t;

static inline int look(const aco_stack_usage_t *usage, void *arg)
{
    looked_for_t *looked_for = arg;
    const void *entry;
    memcpy(&entry, &usage->entry, sizeof entry);
    if (entry != looked_for->entry || usage->is_private != looked_for->is_private)
        return 0;
    looked_for->found++;
    looked_for->usage = *usage;
    snprintf(looked_for->name, sizeof looked_for->name, "%s", usage->name);
    looked_for->usage.name = "";
    return 0;
}

static inline looked_for_t usage_of(const void *entry, int is_private)
{
    looked_for_t looked_for = {entry, is_private, 0, {0}, ""};
    CHECK_EQ(aco_stack_usage(look, &looked_for), 0);
    CHECK(looked_for.found <= 1);
    return looked_for;
}

static inline const void *address(aco_function_t fn)
{
    const void *p;
    memcpy(&p, &fn, sizeof p);
    return p;
}

/* The advice as pool.h gives it, from the other fields. */
static inline aco_stack_advice_t advice_for(const aco_stack_usage_t *u)
{
    size_t on_private = u->is_private ? u->bytes : u->other_bytes,
           on_shared = u->is_private ? u->other_bytes : u->bytes;
    int saves = on_private > on_shared && (on_private - on_shared) * u->most_alive >= 1 << 20,
        copies_much = u->mean_live > 1000;
    if (!u->switches)
        return ACO_STACK_AS_IT_IS;
    if (u->is_private)
        return saves && !copies_much ? ACO_STACK_BETTER_SHARED : ACO_STACK_AS_IT_IS;
    return copies_much || !saves ? ACO_STACK_BETTER_PRIVATE : ACO_STACK_AS_IT_IS;
}

static inline int none(const aco_stack_usage_t *usage, void *arg)
{
    (void)usage, (void)arg;
    return 1;
}

#endif
