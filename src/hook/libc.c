/* Where libc's own functions are: behind the hooks, in the dynamic linker's order. */
#include "hook/hook.h"

#include <dlfcn.h>
#include <sys/syscall.h>

aco__libc_calls_t aco__libc_found;

/* In a static program there is no libc behind the hooks. */
static void die(const char *name)
{
    static const char text[] = "acorn: acorn_hook cannot find libc's function in a statically linked program: ";
    (void)syscall(SYS_write, 2, text, sizeof text - 1);
    (void)syscall(SYS_write, 2, name, strlen(name));
    (void)syscall(SYS_write, 2, "\n", 1);
    abort();
}

static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        die(name);
    return found;
}

void aco__libc_find(void)
{
    aco__libc_calls_t found;
    void *symbol;
#define ACO__LIBC_FIND(name)                                                                                           \
    symbol = find(#name);                                                                                              \
    memcpy(&found.name, &symbol, sizeof symbol);
    ACO__LIBC_CALLS(ACO__LIBC_FIND)
#undef ACO__LIBC_FIND
    aco__libc_found = found;
}

ACO__AT_LOAD static void find_libc_at_load(void)
{
    aco__libc_find();
}
