/* The listeners of a service: inherited ones, and those that its threads have opened. A thread has descriptors of its
 * own, copies of one socket's where threads share it. */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE
#include "lifecycle/lifecycle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FIRST_OF_SYSTEMD = 3 }; /* descriptors that a program gets by socket activation */

static const char listen_call[] = "aco_service_listen";

uint64_t aco__lifecycle_inode(int fd)
{
    struct stat status;
    return fd >= 0 && aco__system.fstat(fd, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* ---- Inherited ones ---- */

int aco__lifecycle_inherit(aco_service_t *service, int fd, const char *key, int is_managed)
{
    size_t size = sizeof(aco__inherited_t), length = strlen(key);
    aco__inherited_t *inherited = aco__service_allocate(&size, "aco_service_run"), **end = &service->inherited;
    if (!inherited || length >= sizeof inherited->key || aco__system.fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        int error = !inherited ? ENOMEM : length >= sizeof inherited->key ? EINVAL : errno;
        if (inherited)
            aco__service_free(inherited, size);
        (void)aco__system.close(fd);
        errno = error;
        return -1;
    }
    *inherited =
        (aco__inherited_t){.fd = fd, .size = size, .inode = aco__lifecycle_inode(fd), .is_managed = is_managed};
    memcpy(inherited->key, key, length);
    while (*end)
        end = &(*end)->next;
    *end = inherited;
    return 0;
}

int aco__lifecycle_has_inherited(const aco_service_t *service, uint64_t inode)
{
    const aco__inherited_t *inherited = service->inherited;
    while (inherited && inherited->inode != inode)
        inherited = inherited->next;
    return inherited != NULL;
}

void aco__lifecycle_drop_inherited(aco_service_t *service)
{
    for (aco__inherited_t **at = &service->inherited, *i; (i = *at) != NULL;) {
        if (i->is_managed) {
            at = &i->next;
            continue;
        }
        *at = i->next;
        (void)aco__system.close(i->fd);
        aco__service_free(i, i->size);
    }
}

/* The environment is the process's own for good: children must not take these descriptors for theirs. */
int aco__lifecycle_inherit_from_systemd(aco_service_t *service)
{
    const char *process = secure_getenv("LISTEN_PID"), *count = secure_getenv("LISTEN_FDS");
    const char *name = secure_getenv("LISTEN_FDNAMES");
    int failed = 0, n = 0;
    if (process && count && strtol(process, NULL, 10) == aco__system.getpid())
        n = (int)strtol(count, NULL, 10);
    for (int i = 0; i < n && !failed; i++) {
        size_t length = name ? strcspn(name, ":") : 0;
        char key[LIFECYCLE_NAME + 1] = "";
        if (length <= LIFECYCLE_NAME)
            memcpy(key, name ? name : "", length);
        failed = aco__lifecycle_inherit(service, FIRST_OF_SYSTEMD + i, key, 1) != 0;
        name = name && name[length] ? name + length + 1 : NULL;
    }
    if (n > 0) {
        (void)unsetenv("LISTEN_PID");
        (void)unsetenv("LISTEN_FDS");
        (void)unsetenv("LISTEN_FDNAMES");
    }
    return failed ? -1 : 0;
}

static int fits(const aco__inherited_t *inherited, const char *name, const char *key)
{
    return inherited->fd >= 0 &&
           (strcmp(inherited->key, key) == 0 || (inherited->is_managed && strcmp(inherited->key, name) == 0));
}

/* The thread's one of the sockets that fit; NULL: there is none. If systemd has several with the name, nobody can say
 * which is meant: -1 in *wrong. */
static aco__inherited_t *inherited_for(const aco_service_t *service, int thread, const char *name, const char *key,
                                       int *wrong)
{
    aco__inherited_t *found = NULL;
    int count = 0, managed = 0, at = 0;
    for (aco__inherited_t *i = service->inherited; i; i = i->next) {
        count += fits(i, name, key);
        managed += fits(i, name, key) && i->is_managed;
    }
    *wrong = managed > 1 ? -1 : 0;
    if (!count)
        return NULL;
    for (aco__inherited_t *i = service->inherited; i && !found && !*wrong; i = i->next)
        if (fits(i, name, key) && at++ == thread % count)
            found = i;
    return found;
}

/* ---- The threads' ---- */

/* A copy of the listener, whose descriptor a thread may have closed; -1: it has, or errno. */
static int copy_of(const aco__listening_t *listening)
{
    int fd = aco__system.fcntl(listening->fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && aco__lifecycle_inode(fd) != listening->inode) {
        (void)aco__system.close(fd);
        fd = -1;
        errno = EBADF;
    }
    return fd;
}

/* One with this key that is still open; NULL: none. */
static const aco__listening_t *listening_with(const aco_service_t *service, const char *key)
{
    const aco__listening_t *listening = service->listening;
    while (listening && (strcmp(listening->key, key) != 0 || aco__lifecycle_inode(listening->fd) != listening->inode))
        listening = listening->next;
    return listening;
}

/* Opens the thread's own listener, or a further one for the socket of another thread. If the first thread let the
 * system choose a port, the others have the same. */
static int open_new(const aco_service_t *service, const char *key, const char *network, const char *host,
                    const char *port, const aco_io_options_t *options)
{
    aco_io_options_t how = options ? *options : (aco_io_options_t){0};
    const aco__listening_t *other = listening_with(service, key);
    char address[ACO_IO_ADDRESS_SIZE];
    int is_tcp = network && strncmp(network, "tcp", 3) == 0;
    if (!is_tcp && other)
        return copy_of(other);
    if (is_tcp)
        how.flags |= ACO_IO_REUSEPORT;
    if (is_tcp && other && aco_io_local_address(other->fd, address, sizeof address) == 0)
        port = strrchr(address, ':') + 1;
    return aco_io_listen(network, host, port, &how);
}

static int note(aco_service_t *service, int thread, int fd, const char *key, int is_managed)
{
    size_t size = sizeof(aco__listening_t);
    aco__listening_t *listening = aco__service_allocate(&size, listen_call);
    if (!listening)
        return -1;
    *listening = (aco__listening_t){.next = service->listening,
                                    .fd = fd,
                                    .thread = thread,
                                    .size = size,
                                    .inode = aco__lifecycle_inode(fd),
                                    .is_managed = is_managed};
    memcpy(listening->key, key, strlen(key));
    service->listening = listening;
    return 0;
}

static int listen_locked(aco_service_t *service, int thread, const char *name, const char *key, const char *network,
                         const char *host, const char *port, const aco_io_options_t *options)
{
    int wrong, fd;
    aco__inherited_t *inherited = inherited_for(service, thread, name, key, &wrong);
    if (wrong)
        return aco__service_fail(EINVAL, listen_call, "several sockets of the service manager have this name");
    fd = inherited ? aco__system.fcntl(inherited->fd, F_DUPFD_CLOEXEC, 0)
                   : open_new(service, key, network, host, port, options);
    if (fd < 0)
        return -1;
    if (aco_io_adopt(fd) != 0 || note(service, thread, fd, key, inherited && inherited->is_managed) != 0) {
        int error = errno;
        (void)aco_io_close(fd);
        errno = error;
        return -1;
    }
    if (inherited) {
        inherited->is_taken = 1;
        (void)aco_io_set_shared(fd, 1); /* the old process has it until it stops */
    }
    return fd;
}

int aco_service_listen_at(aco_service_t *service, const char *name, const char *network, const char *host,
                          const char *port, const aco_io_options_t *options, const char *location)
{
    char key[LIFECYCLE_KEY];
    int fd, error, length;
    ACO__MAY_SWITCH(listen_call, location);
    if (!name || !name[0] || strlen(name) > LIFECYCLE_NAME || strchr(name, ' '))
        return aco__service_fail(EINVAL, listen_call, "the name is empty, too long, or has a space");
    length = snprintf(key, sizeof key, "%s %s %s %s", name, network ? network : "", host ? host : "", port ? port : "");
    if (length < 0 || (size_t)length >= sizeof key)
        return aco__service_fail(EINVAL, listen_call, "the address is too long");
    if (aco_mt_mutex_lock_until_at(&service->lock, ACO_FOREVER, location) != 0)
        return -1;
    fd = listen_locked(service, aco_threads_index(), name, key, network, host, port, options);
    error = errno;
    (void)aco_mt_mutex_unlock(&service->lock);
    errno = error;
    return fd;
}

int aco__lifecycle_copy(const aco__listening_t *listening)
{
    for (const aco__listening_t *later = listening->next; later; later = later->next)
        if (later->inode == listening->inode) {
            errno = EBADF; /* one of each socket is enough */
            return -1;
        }
    return copy_of(listening);
}

void aco__lifecycle_free_listeners(aco_service_t *service)
{
    for (aco__inherited_t *i = service->inherited, *next; i; i = next) {
        next = i->next;
        if (i->fd >= 0)
            (void)aco__system.close(i->fd);
        aco__service_free(i, i->size);
    }
    for (aco__listening_t *l = service->listening, *next; l; l = next) {
        next = l->next;
        aco__service_free(l, l->size);
    }
    service->inherited = NULL;
    service->listening = NULL;
}
