/* Where libc's own functions are: behind the hooks, in the dynamic linker's order. In between may be a sanitizer's,
 * which must see the calls: gcc's are in a library that comes next; clang's are in the program, with other names. */
#include "libc/look_up.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>

static int is_sanitized, is_first;
static const void *sanitizer; /* its library */

/* Of a sanitizer that the hooks are linked with. dlsym() of a name that is missing would allocate, with the loader's
 * lock held: another thread may wait for that, in an early call with the allocator's lock held. */
extern __typeof__(read) __interceptor_read __attribute__((weak));

int aco__libc_is_intercepted(void)
{
    return __interceptor_read != NULL;
}

/* Without memory: the allocator may be the caller. */
static void die(const char *why, const char *name)
{
    (void)syscall(SYS_write, 2, why, strlen(why));
    (void)syscall(SYS_write, 2, name, strlen(name));
    (void)syscall(SYS_write, 2, "\n", 1);
    abort();
}

void *aco__libc_plain(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) /* there is no libc behind the hooks */
        die("acorn: acorn_hook cannot find libc's function in a statically linked program: ", name);
    return found;
}

/* clang's form of the function for a sanitizer; NULL: there is none. Then dlsym() allocates, for dlerror(). */
static void *sanitizers_form(const char *name)
{
    char interceptor[64];
    void *found;
    (void)snprintf(interceptor, sizeof interceptor, "__interceptor_%s", name);
    found = dlsym(RTLD_DEFAULT, interceptor);
    if (!found)
        (void)dlerror(); /* nobody else's business */
    return found;
}

/* The program or library that the address is in. */
static const void *object_of(const void *address)
{
    Dl_info found;
    return address && dladdr(address, &found) ? found.dli_fbase : NULL;
}

/* The address, if its object defines the function; NULL: it is the program's stub for one that a library defines, which
 * a program that is not position-independent may have. */
static void *definition_at(void *address)
{
    Dl_info found;
    const ElfW(Sym) *symbol = NULL;
    if (!address || !dladdr1(address, &found, (void **)&symbol, RTLD_DL_SYMENT))
        return NULL;
    return symbol && symbol->st_shndx == SHN_UNDEF ? NULL : address;
}

/* The same in the library itself, not in those that it needs. */
static void *definition_in(const struct link_map *library, const char *name)
{
    struct link_map *where = NULL;
    Dl_info found;
    void *handle = strchr(library->l_name, '/') ? dlopen(library->l_name, RTLD_NOW | RTLD_NOLOAD) : NULL, *address;
    if (!handle)
        return NULL;
    address = dlsym(handle, name);
    (void)dlclose(handle);
    return address && dladdr1(address, &found, (void **)&where, RTLD_DL_LINKMAP) && where == library ? address : NULL;
}

void *aco__libc_first(const char *name)
{
    void *program, *address = definition_at(dlsym(RTLD_DEFAULT, name));
    struct link_map *library = NULL;
    if (address || !(program = dlopen(NULL, RTLD_NOW)))
        return address;
    if (dlinfo(program, RTLD_DI_LINKMAP, &library) == 0)
        for (library = library->l_next; library && !address; library = library->l_next)
            address = definition_in(library, name);
    (void)dlclose(program);
    return address;
}

int aco__libc_is_hooked(const char *name)
{
    return object_of(aco__libc_first(name)) == object_of(&sanitizer);
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

void aco__hook_find_sanitizer(void)
{
    const void *hooks = object_of(&sanitizer);
    void *symbol = aco__libc_is_intercepted() ? sanitizers_form("read") : NULL;
    is_sanitized = symbol != NULL;
    is_first = object_of(dlsym(RTLD_DEFAULT, "read")) == hooks;
    sanitizer = object_of(symbol) != hooks ? object_of(symbol) : NULL;
}

void *aco__libc_seen(const char *name)
{
    void *found = is_sanitized && is_first ? sanitizers_form(name) : NULL;
    return found ? found : aco__libc_plain(name);
}

void *aco__libc_look_up(const char *name)
{
    static __thread unsigned depth __attribute__((tls_model("initial-exec")));
    void *found;
    if (depth > 1) /* glibc before 2.34 allocates once */
        die("acorn: acorn_hook: the allocator calls a function of libc that is being looked up: ", name);
    depth++;
    if (aco__libc_is_intercepted())
        aco__hook_find_sanitizer();
    found = aco__libc_seen(name);
    depth--;
    return found;
}
