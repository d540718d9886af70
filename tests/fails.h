/* For tests of this library's own calls: how they fail, whether share stacks can be used in this build, and whether a
 * suspended coroutine may be smaller than a ucontext_t. */
#ifndef FAILS_H
#define FAILS_H

#include "aco.h"
#include "check.h"
#include "sanitizers.h"

#include <errno.h>

/* The address sanitizer cannot copy stacks: it marks their bytes. Nor can the thread sanitizer, where frames really are
 * copied: a coroutine is a thread there, and cannot lie on another one's stack. */
#define SHARE_STACKS (!UNDER_ASAN)
#define COPYING (SHARE_STACKS && !UNDER_TSAN)

/* A few frames fit in what is left of a stack's first page beside its colour: not ucontext's, nor, without
 * optimisation, those of s390x and Power. */
#if defined ACO_CONFIG_UCONTEXT || ((defined __s390x__ || defined __powerpc64__) && !defined __OPTIMIZE__)
#define SMALL_FRAMES 0
#else
#define SMALL_FRAMES 1
#endif

/* `what` must fail: return `failed`, set errno, and leave a message that names call and coroutine and has the
 * reason. */
#define FAILS(what, failed, error, call, co, reason)                                                                 \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        CHECK((what) == (failed));                                                                                     \
        CHECK_EQ(errno, error);                                                                                        \
        check_message(__FILE__, __LINE__, call, co, reason);                                                           \
    } while (0)

static inline void check_message(const char *file, int line, const char *call, const void *co, const char *reason)
{
    char start[128];
    const char *message = aco_error_message();
    size_t length = (size_t)(co ? snprintf(start, sizeof start, "%s: coroutine %p: ", call, co)
                                : snprintf(start, sizeof start, "%s: ", call));
    if (strncmp(message, start, length) == 0 && strstr(message + length, reason) &&
        (co || strncmp(message + length, "coroutine 0x", 12) != 0))
        return;
    fprintf(stderr, "%s:%d: wanted \"%s... %s ...\", the message is \"%s\"\n", file, line, start, reason, message);
    CHECK(!"the message");
}

#endif
