/* What invariants.h declares. The sections are counted for each thread: nothing switches inside one, so the thread's
 * are the running task's. */
#include "base/invariants.h"

#ifdef ACO__INVARIANTS
#include "base/base.h"

#include <stdio.h>

static __thread struct {
    const char *place; /* of the outermost section */
    unsigned depth;
} section;

void aco__invariant_broken(const char *condition, const char *place)
{
    char text[512];
    snprintf(text, sizeof text, "%s: it does not hold that %s", place, condition);
    aco__os_die(text);
}

/* Not inline: a caller that switches threads in between must not keep the address of `section`. */
__attribute__((noinline)) void aco__no_switch_begin(const char *place)
{
    if (section.depth++ == 0)
        section.place = place;
}

__attribute__((noinline)) void aco__no_switch_end(const char *place)
{
    if (section.depth == 0)
        aco__invariant_broken("a no-switch section is open", place);
    section.depth--;
}

static ACO__COLD __attribute__((noreturn)) void die(const char *call, const char *location, const char *place)
{
    char text[512], caller[256];
    snprintf(text, sizeof text, "%s may switch tasks (%s%s%s) in the no-switch section that begins at %s", call, place,
             location ? ", called at " : "", location ? aco__location(location, caller, sizeof caller) : "",
             section.place);
    section.depth = 0; /* what prints may be what is wrong */
    aco__os_die(text);
}

__attribute__((noinline)) void aco__may_switch(const char *call, const char *location, const char *place)
{
    if (aco_unlikely(section.depth != 0))
        die(call, location, place);
}
#endif
