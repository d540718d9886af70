/* Fills in the tables of libc's functions when the library is loaded: the hooks' own and that of acorn's libraries. And
 * what the hooks know of the allocator. */
#include "libc/early.h"
#include "libc/libc.h"
#include "libc/look_up.h"

#include <dlfcn.h>
#include <link.h>

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
    uintptr_t functions[] = {(uintptr_t)aco__libc_plain("read"), (uintptr_t)aco__libc_first("malloc")};
    (void)dl_iterate_phdr(note_allocator, functions);
}

/* ---- The tables ---- */

/* acorn's libraries call libc itself, not the hooks. Of what another library defines before the hooks, one that sends
 * connections through a proxy, say, they call that. */
static void publish_to_acorn(const aco__libc_calls_t *found)
{
#define ACO__PUBLISH(entry, name)                                                                                      \
    do {                                                                                                               \
        if (aco__libc_is_hooked(#name))                                                                                \
            __atomic_store_n(&aco__system.entry, (__typeof__(aco__system.entry))(void (*)(void))found->name,           \
                             __ATOMIC_RELAXED);                                                                        \
    } while (0)
    ACO__PUBLISH(read, read);
    ACO__PUBLISH(write, write);
    ACO__PUBLISH(readv, readv);
    ACO__PUBLISH(writev, writev);
    ACO__PUBLISH(pread, pread64);
    ACO__PUBLISH(pwrite, pwrite64);
    ACO__PUBLISH(recv, recv);
    ACO__PUBLISH(recvfrom, recvfrom);
    ACO__PUBLISH(recvmsg, recvmsg);
    ACO__PUBLISH(send, send);
    ACO__PUBLISH(sendto, sendto);
    ACO__PUBLISH(sendmsg, sendmsg);
    ACO__PUBLISH(connect, connect);
    ACO__PUBLISH(open, open64);
    ACO__PUBLISH(close, close);
    ACO__PUBLISH(fcntl, fcntl);
    ACO__PUBLISH(fsync, fsync);
    ACO__PUBLISH(poll, poll);
    ACO__PUBLISH(accept4, accept4);
    ACO__PUBLISH(sendfile, sendfile64);
    ACO__PUBLISH(epoll_wait, epoll_wait);
    ACO__PUBLISH(nanosleep, nanosleep);
    ACO__PUBLISH(sched_yield, sched_yield);
    ACO__PUBLISH(pthread_mutex_lock, pthread_mutex_lock);
    ACO__PUBLISH(pthread_mutex_trylock, pthread_mutex_trylock);
    ACO__PUBLISH(pthread_mutex_unlock, pthread_mutex_unlock);
    ACO__PUBLISH(waitpid, waitpid);
    ACO__PUBLISH(getaddrinfo, getaddrinfo);
    ACO__PUBLISH(getnameinfo, getnameinfo);
    ACO__PUBLISH(clock_nanosleep, clock_nanosleep);
    ACO__PUBLISH(socket, socket);
    ACO__PUBLISH(socketpair, socketpair);
    ACO__PUBLISH(bind, bind);
    ACO__PUBLISH(listen, listen);
    ACO__PUBLISH(getsockopt, getsockopt);
    ACO__PUBLISH(setsockopt, setsockopt);
    ACO__PUBLISH(getsockname, getsockname);
    ACO__PUBLISH(getpeername, getpeername);
    ACO__PUBLISH(shutdown, shutdown);
    ACO__PUBLISH(ioctl, ioctl);
    ACO__PUBLISH(pipe2, pipe2);
    ACO__PUBLISH(eventfd, eventfd);
    ACO__PUBLISH(epoll_create1, epoll_create1);
    ACO__PUBLISH(epoll_ctl, epoll_ctl);
    ACO__PUBLISH(freeaddrinfo, freeaddrinfo);
    ACO__PUBLISH(clock_gettime, clock_gettime);
    ACO__PUBLISH(pthread_create, pthread_create);
    ACO__PUBLISH(pthread_join, pthread_join);
#if defined(__LP64__) && __GLIBC_PREREQ(2, 33)
    ACO__PUBLISH(fopen, fopen64);
    ACO__PUBLISH(stat, stat64);
    ACO__PUBLISH(fstat, fstat64);
    ACO__PUBLISH(lseek, lseek64);
    ACO__PUBLISH(ftruncate, ftruncate64);
    ACO__PUBLISH(rename, rename);
    ACO__PUBLISH(link, link);
    ACO__PUBLISH(unlink, unlink);
    ACO__PUBLISH(mkfifo, mkfifo);
    ACO__PUBLISH(mkdir, mkdir);
    ACO__PUBLISH(rmdir, rmdir);
    ACO__PUBLISH(opendir, opendir);
    ACO__PUBLISH(readdir, readdir64);
    ACO__PUBLISH(closedir, closedir);
#endif
#undef ACO__PUBLISH
}

/* Fills in the tables, each time more is known. Other threads may call by it meanwhile: the old entries work, too. */
static void publish(const aco__libc_calls_t *found)
{
#define ACO__LIBC_STORE(name) __atomic_store_n(&aco__libc_found.name, found->name, __ATOMIC_RELAXED);
    ACO__LIBC_CALLS(ACO__LIBC_STORE)
#undef ACO__LIBC_STORE
    aco__libc_end_look_ups();
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

int aco__libc_is_found;

/* The plain functions first: what comes then may allocate. */
ACO__AT_LOAD static void find_libc_at_load(void)
{
    find_all(aco__libc_plain);
    aco__hook_find_sanitizer();
    if (aco__hook_is_sanitized())
        find_all(aco__libc_seen);
    else
        find_allocators();
    aco__libc_is_found = 1;
}
