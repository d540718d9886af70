/* Where libc's own functions are: behind the hooks, in the dynamic linker's order. In between may be a sanitizer's,
 * which must see the calls: gcc's are in a library that comes next; clang's are in the program, under other names, too.
 */
#include "hook/hook.h"

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

static void *libcs_form(const char *name)
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

/* ---- The allocator's library ---- */

typedef struct range {
    uintptr_t start, end;
} range_t;
static range_t allocators[2]; /* malloc()'s library and TBB's, which that of its malloc() calls */

int aco__hook_is_allocators(const void *caller)
{
    uintptr_t address = (uintptr_t)caller;
    return (address >= allocators[0].start && address < allocators[0].end) ||
           (address >= allocators[1].start && address < allocators[1].end);
}

static range_t range_of(const struct dl_phdr_info *object)
{
    range_t range = {UINTPTR_MAX, 0};
    for (int i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t start = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr, end = start + object->dlpi_phdr[i].p_memsz;
        if (object->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        range.start = start < range.start ? start : range.start;
        range.end = end > range.end ? end : range.end;
    }
    return range;
}

/* For each library; the program's name is empty. */
static int note_allocator(struct dl_phdr_info *object, size_t sz, void *functions)
{
    const uintptr_t *libcs = functions, *mallocs = libcs + 1;
    range_t range = range_of(object);
    (void)sz;
    if (!object->dlpi_name || !object->dlpi_name[0])
        return 0;
    if (*mallocs >= range.start && *mallocs < range.end && !(*libcs >= range.start && *libcs < range.end))
        allocators[0] = range;
    if (strstr(object->dlpi_name, "/libtbbmalloc.so"))
        allocators[1] = range;
    return 0;
}

static void find_allocators(void)
{
    uintptr_t functions[] = {(uintptr_t)libcs_form("read"), (uintptr_t)dlsym(RTLD_DEFAULT, "malloc")};
    (void)dl_iterate_phdr(note_allocator, functions);
}

/* ---- Look-ups ---- */

static void find_sanitizer(void)
{
    const void *hooks = object_of(&aco__libc_found);
    void *symbol = aco__libc_is_intercepted() ? sanitizers_form("read") : NULL;
    is_sanitized = symbol != NULL;
    is_first = object_of(dlsym(RTLD_DEFAULT, "read")) == hooks;
    sanitizer = object_of(symbol) != hooks ? object_of(symbol) : NULL;
}

static void *sanitizers_or_libcs_form(const char *name)
{
    void *found = is_sanitized && is_first ? sanitizers_form(name) : NULL;
    return found ? found : libcs_form(name);
}

void *aco__libc_look_up(const char *name)
{
    static __thread unsigned depth __attribute__((tls_model("initial-exec")));
    void *found;
    if (depth > 1) /* glibc before 2.34 allocates once */
        die("acorn: acorn_hook: the allocator calls a function of libc that is being looked up: ", name);
    depth++;
    if (aco__libc_is_intercepted())
        find_sanitizer();
    found = sanitizers_or_libcs_form(name);
    depth--;
    return found;
}

/* acorn's libraries call libc itself, not the hooks. */
static void publish_to_acorn(const aco__libc_calls_t *found)
{
#define ACO__PUBLISH(entry, name) __atomic_store_n(&aco__system.entry, found->name, __ATOMIC_RELAXED)
#define ACO__PUBLISH_ADDRESS(name) \
    __atomic_store_n(&aco__system.name, (__typeof__(aco__system.name))(void (*)(void))found->name, __ATOMIC_RELAXED)
    ACO__PUBLISH(read, read);
    ACO__PUBLISH(write, write);
    ACO__PUBLISH(readv, readv);
    ACO__PUBLISH(writev, writev);
    ACO__PUBLISH(pread, pread64);
    ACO__PUBLISH(pwrite, pwrite64);
    ACO__PUBLISH(recv, recv);
    ACO__PUBLISH_ADDRESS(recvfrom);
    ACO__PUBLISH(recvmsg, recvmsg);
    ACO__PUBLISH(send, send);
    ACO__PUBLISH_ADDRESS(sendto);
    ACO__PUBLISH(sendmsg, sendmsg);
    ACO__PUBLISH_ADDRESS(connect);
    ACO__PUBLISH(open, open64);
    ACO__PUBLISH(close, close);
    ACO__PUBLISH(fcntl, fcntl);
    ACO__PUBLISH(fsync, fsync);
    ACO__PUBLISH(poll, poll);
    ACO__PUBLISH_ADDRESS(accept4);
    ACO__PUBLISH(sendfile, sendfile64);
    ACO__PUBLISH(epoll_wait, epoll_wait);
    ACO__PUBLISH(nanosleep, nanosleep);
    ACO__PUBLISH(sched_yield, sched_yield);
    ACO__PUBLISH(pthread_mutex_lock, pthread_mutex_lock);
    ACO__PUBLISH(pthread_mutex_trylock, pthread_mutex_trylock);
    ACO__PUBLISH(pthread_mutex_unlock, pthread_mutex_unlock);
    ACO__PUBLISH(waitpid, waitpid);
    ACO__PUBLISH(clock_nanosleep, clock_nanosleep);
#undef ACO__PUBLISH
#undef ACO__PUBLISH_ADDRESS
}

/* Fills in the tables, each time more is known. Other threads may call by it meanwhile: the old entries work, too. */
static void publish(const aco__libc_calls_t *found)
{
#define ACO__LIBC_STORE(name) __atomic_store_n(&aco__libc_found.name, found->name, __ATOMIC_RELAXED);
    ACO__LIBC_CALLS(ACO__LIBC_STORE)
#undef ACO__LIBC_STORE
    publish_to_acorn(found);
}

static void find_all(void *(*find)(const char *name))
{
    aco__libc_calls_t found;
    void *symbol;
#define ACO__LIBC_FIND(name)                                                                                           \
    symbol = find(#name);                                                                                              \
    memcpy(&found.name, &symbol, sizeof symbol);
    ACO__LIBC_CALLS(ACO__LIBC_FIND)
#undef ACO__LIBC_FIND
    publish(&found);
}

/* The plain functions first: what comes then may allocate. */
ACO__AT_LOAD static void find_libc_at_load(void)
{
    find_all(libcs_form);
    find_sanitizer();
    if (is_sanitized)
        find_all(sanitizers_or_libcs_form);
    else
        find_allocators();
}
