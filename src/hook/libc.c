/* Where libc's own functions are: behind the hooks, in the dynamic linker's order. In between may be a sanitizer's,
 * which must see the calls: gcc's are in a library that comes next; clang's are in the program, under other names, too.
 */
#include "hook/hook.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/syscall.h>

aco__libc_calls_t aco__libc_found;
static int is_sanitized, is_first;
static const void *sanitizer; /* its library */

/* In a static program there is no libc behind the hooks. */
static void die(const char *name)
{
    static const char text[] = "acorn: acorn_hook cannot find libc's function in a statically linked program: ";
    (void)syscall(SYS_write, 2, text, sizeof text - 1);
    (void)syscall(SYS_write, 2, name, strlen(name));
    (void)syscall(SYS_write, 2, "\n", 1);
    abort();
}

/* clang's form of the function for a sanitizer; NULL: there is none. */
static void *sanitizers_form(const char *name)
{
    char interceptor[64];
    (void)snprintf(interceptor, sizeof interceptor, "__interceptor_%s", name);
    return dlsym(RTLD_DEFAULT, interceptor);
}

/* The program or library that the address is in. */
static const void *object_of(const void *address)
{
    Dl_info found;
    return address && dladdr(address, &found) ? found.dli_fbase : NULL;
}

int aco__hook_is_sanitized(void)
{
    return is_sanitized;
}

int aco__hook_is_first(void)
{
    return is_first;
}

int aco__hook_is_sanitizers(const void *caller)
{
    return aco_unlikely(sanitizer != NULL) && object_of(caller) == sanitizer;
}

static void *find(const char *name)
{
    void *found = is_first ? sanitizers_form(name) : NULL;
    if (!found)
        found = dlsym(RTLD_NEXT, name);
    if (!found)
        die(name);
    return found;
}

void aco__libc_find(void)
{
    aco__libc_calls_t found;
    const void *hooks = object_of(&aco__libc_found);
    void *symbol = sanitizers_form("read");
    is_sanitized = symbol != NULL;
    is_first = object_of(dlsym(RTLD_DEFAULT, "read")) == hooks;
    sanitizer = object_of(symbol) != hooks ? object_of(symbol) : NULL;
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
