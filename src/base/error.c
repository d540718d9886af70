/* Reports why a call failed: stores the message for aco_error_message(), or prints it. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { MESSAGE = 512 };

/* Links thread.c, as in lock.c. */
static __attribute__((used)) aco__thread_t *const *const record_of_message = &aco__nobody;

static void print(char *line, int length)
{
    if (length < 0 || length > MESSAGE - 2)
        length = MESSAGE - 2;
    line[length] = '\n';
    aco__os_message(line, (size_t)length + 1);
}

__attribute__((noreturn)) static void line_out(char *line, int length)
{
    print(line, length);
    ACO__UPCALL(process_dies, ());
    abort();
}

__attribute__((format(ACO__PRINTF, 5, 0))) static int format(char *line, size_t size, const char *call, const void *co,
                                                             const char *reason, va_list args)
{
    int n = co ? snprintf(line, size, "%s: coroutine %p: ", call, co) : snprintf(line, size, "%s: ", call);
    return n + vsnprintf(line + n, size - (size_t)n, reason, args);
}

__attribute__((format(ACO__PRINTF, 4, 0))) static int prefixed(char *line, const char *call, const void *co,
                                                               const char *reason, va_list args)
{
    static const char prefix[] = "acorn: ";
    enum { BEFORE = sizeof prefix - 1 };
    memcpy(line, prefix, BEFORE);
    return BEFORE + format(line + BEFORE, MESSAGE - BEFORE, call, co, reason, args);
}

void aco__warn_list(const char *call, const void *co, const char *reason, va_list args)
{
    char line[MESSAGE];
    print(line, prefixed(line, call, co, reason, args));
}

void aco__warn(const char *call, const void *co, const char *reason, ...)
{
    va_list args;
    va_start(args, reason);
    aco__warn_list(call, co, reason, args);
    va_end(args);
}

/* A function of its own: a call that fails, perhaps on a small stack, needs no room for the line. */
__attribute__((noreturn, noinline, format(ACO__PRINTF, 3, 0))) static void die(const char *call, const void *co,
                                                                               const char *reason, va_list args)
{
    char line[MESSAGE];
    line_out(line, prefixed(line, call, co, reason, args));
}

void aco__die(const char *call, const void *co, const char *reason, ...)
{
    va_list args;
    va_start(args, reason);
    die(call, co, reason, args);
}

#ifndef ACO_CONFIG_LIBACO_ONLY
char aco_error_mark;

int aco__fail(int fatal, int error, const char *call, const void *co, const char *reason, ...)
{
    aco__thread_t *self = aco__self();
    va_list args;
    va_start(args, reason);
    if (fatal)
        die(call, co, reason, args);
    format(self->message, sizeof self->message, call, co, reason, args);
    va_end(args);
    errno = error;
    return -1;
}

const char *aco__location(const char *location, char *text, size_t sz)
{
#ifdef ACO__LINE_SHIFT
    uintptr_t address = (uintptr_t)location, line = address >> ACO__LINE_SHIFT;
    if (line) {
        snprintf(text, sz, "%s:%u", (const char *)(address - (line << ACO__LINE_SHIFT)), (unsigned)line);
        return text;
    }
#endif
    (void)text, (void)sz;
    return location;
}

const char *aco_error_message(void)
{
    return aco__self()->message;
}
#endif

void aco__assert_failed(const char *what, const char *file, int line_number, const char *function)
{
    char line[MESSAGE];
    line_out(line,
             snprintf(line, MESSAGE, "Aborting: %s:%d: %s: assertion failed: %s", file, line_number, function, what));
}

void aco__alloc_failed(const char *file, int line_number, const char *function)
{
    char line[MESSAGE];
    line_out(line,
             snprintf(line, MESSAGE, "Aborting: %s:%d: %s: failed to allocate memory", file, line_number, function));
}
