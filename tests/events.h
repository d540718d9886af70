/* A log of what was cleaned up, a character each, in order. */
#ifndef EVENTS_H
#define EVENTS_H

#include "check.h"

#include <string.h>

static char events[4096];
static size_t events_length;

static inline void clear_log(void)
{
    events_length = 0;
    events[0] = 0;
}

static inline void note(char event)
{
    if (events_length + 1 < sizeof events) {
        events[events_length++] = event;
        events[events_length] = 0;
    }
}

static inline void check_log(const char *file, int line, const char *wanted)
{
    if (strcmp(events, wanted) != 0) {
        fprintf(stderr, "%s:%d: cleaned up \"%s\", wanted \"%s\"\n", file, line, events, wanted);
        CHECK(!"the order of cleaning up");
    }
    clear_log();
}
/* Just these, since the log was last looked at or cleared. */
#define LOGGED(wanted) check_log(__FILE__, __LINE__, wanted)

#endif
