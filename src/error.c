#include "os.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE = 512 };

/* Ends the line and the process. */
__attribute__((noreturn)) static void line_out(char *line, int length)
{
    if (length < 0 || length > MESSAGE - 2)
        length = MESSAGE - 2;
    line[length] = '\n';
    aco__os_message(line, (size_t)length + 1);
    abort();
}

void aco__die(const char *call, const void *co, const char *reason, ...)
{
    char line[MESSAGE];
    int n = co ? snprintf(line, MESSAGE, "acorn: %s: coroutine %p: ", call, co) : snprintf(line, MESSAGE, "acorn: %s: ", call);
    va_list args;
    va_start(args, reason);
    n += vsnprintf(line + n, (size_t)(MESSAGE - n), reason, args);
    va_end(args);
    line_out(line, n);
}

void aco__die_of_memory(const char *call, size_t sz)
{
    int error = errno;
    aco__die(call, NULL, "no memory for %zu bytes: %s%s", sz, strerror(error),
             error == ENOMEM ? " (if memory is free, the process may have reached vm.max_map_count mappings)" : "");
}

void aco__assert_failed(const char *what, const char *file, int line_number, const char *function)
{
    char line[MESSAGE];
    line_out(line, snprintf(line, MESSAGE, "Aborting: %s:%d: %s: assertion failed: %s", file, line_number, function, what));
}

void aco__alloc_failed(const char *file, int line_number, const char *function)
{
    char line[MESSAGE];
    line_out(line, snprintf(line, MESSAGE, "Aborting: %s:%d: %s: failed to allocate memory", file, line_number, function));
}
