/* What invariants.h declares. The sections are counted for each thread: nothing switches inside one, so the thread's
 * are the running task's. */
#include "base/invariants.h"

#ifdef ACO__INVARIANTS
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { MOST_LOCKS = 8 }; /* that a thread holds at once */

static __thread struct {
    const char *place; /* of the outermost section */
    unsigned depth;
    const void *locks[MOST_LOCKS]; /* in any order; NULL: a free entry */
    int is_broken; /* an invariant: what prints that may break another */
} section;

static void say(const char *text)
{
    aco__os_message(text, strlen(text));
}

/* The coroutine's name is the last that is read: its record may be what is wrong. */
void aco__invariant_broken(const char *condition, const char *place)
{
    char text[512];
    const aco_t *co = aco__running();
    if (section.is_broken++)
        abort();
    snprintf(text, sizeof text, "acorn: %s: it does not hold that %s", place, condition);
    say(text);
    if (co) {
        snprintf(text, sizeof text, ", in coroutine %p ", (const void *)co);
        say(text);
        say(aco__upcalls.name ? aco__upcalls.name(co) : "");
    }
    say("\n");
    abort();
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

__attribute__((noinline)) void aco__sections_forget(void)
{
    section.depth = 0;
    memset(section.locks, 0, sizeof section.locks);
}

static const void **entry_of_lock(const void *lock)
{
    for (int i = 0; i < MOST_LOCKS; i++)
        if (section.locks[i] == lock)
            return &section.locks[i];
    return NULL;
}

__attribute__((noinline)) int aco__holds(const void *lock)
{
    return entry_of_lock(lock) != NULL;
}

__attribute__((noinline)) void aco__locked_begin(const void *lock, const char *place)
{
    if (entry_of_lock(lock))
        aco__invariant_broken("the thread does not hold the lock yet", place);
    if (!entry_of_lock(NULL))
        aco__invariant_broken("a thread holds few locks at once", place);
    *entry_of_lock(NULL) = lock;
    aco__no_switch_begin(place);
}

__attribute__((noinline)) void aco__locked_end(const void *lock, const char *place)
{
    if (!entry_of_lock(lock))
        aco__invariant_broken("the thread holds the lock", place);
    *entry_of_lock(lock) = NULL;
    aco__no_switch_end(place);
}

static ACO__COLD __attribute__((noreturn)) void die_invalid(const char *call, const char *location, const char *place)
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
        die_invalid(call, location, place);
}
#endif
