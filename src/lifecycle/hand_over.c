/* How a process gets the listeners of the one before it. They talk over a seqpacket socket with an abstract name, which
 * is free as soon as its last owner closes it. The first process listens there before it serves, and hands that on,
 * too: so whoever comes later always finds one. Each message is a letter and a text; a descriptor may come along:
 *
 *   new to old   H: it is there. To who says nothing, nothing is given, and others need not wait for it
 *   old to new   N TIME, with the socket of the name: how often the service manager wants a sign of life; L KEY, with a
 *                listener; S KEY, with one that the service manager has, too; E: that was all
 *   new to old   T INODE: it has taken this socket; R: it is ready, and accepts
 *   old to new   G: it stops; X: it has not waited for R, and goes on
 *
 * If the connection ends before R, the old process goes on. If it ends before G or X, the old one has ended. */
#define _GNU_SOURCE
#include "lifecycle/lifecycle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HELLO_SECONDS = 1, HAND_OVER_SECONDS = 10, NEW_SECONDS = 60 /* from a process's begin until it is ready */ };

typedef union rights { /* a control message with one descriptor */
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
} rights_t;

/* 0, or -1 and errno. `fd` -1: none goes along. */
ACO__SWITCHES static int send_message(int to, char kind, const char *text, int fd)
{
    struct iovec parts[2] = {{&kind, 1}, {(void *)(uintptr_t)text, strlen(text)}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    rights_t rights;
    if (fd >= 0) {
        memset(&rights, 0, sizeof rights);
        message.msg_control = &rights;
        message.msg_controllen = sizeof rights;
        rights.header.cmsg_level = SOL_SOCKET;
        rights.header.cmsg_type = SCM_RIGHTS;
        rights.header.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&rights.header), &fd, sizeof fd);
    }
    return aco_io_sendmsg(to, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* The letter, the text in `text`, and in *fd the descriptor or -1. 0: the end of the stream; -1 and errno. */
ACO__SWITCHES static int receive_message(int from, char text[LIFECYCLE_KEY], int *fd)
{
    char bytes[LIFECYCLE_KEY + 1];
    struct iovec part = {bytes, sizeof bytes - 1};
    rights_t rights;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &rights,
                             .msg_controllen = CMSG_LEN(sizeof *fd)}; /* no room for a second one */
    ssize_t n;
    memset(&rights, 0, sizeof rights);
    *fd = -1;
    n = aco_io_recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return (int)n;
    if (message.msg_controllen >= sizeof(struct cmsghdr) && rights.header.cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(&rights.header), sizeof *fd);
    memcpy(text, bytes + 1, (size_t)n - 1);
    text[n - 1] = 0;
    return (unsigned char)bytes[0];
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        (void)aco__system.close(fd);
}

/* The abstract name, for aco_io_listen() and aco_io_dial(). */
static void name_of(const aco_service_t *service, char name[LIFECYCLE_HAND_OVER + 32])
{
    snprintf(name, LIFECYCLE_HAND_OVER + 32, "@acorn-hand-over-%u-%s", (unsigned)geteuid(), service->options.hand_over);
}

/* 0; or -1 and errno: EPERM, if the other process is another user's. */
static int check_peer(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (aco__system.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return -1;
    if (peer.uid == geteuid() || peer.uid == 0)
        return 0;
    return aco__service_fail(EPERM, "aco_service_run", "the name of hand_over is another user's");
}

/* ---- The new process ---- */

/* 0, or -1 and errno. One that the service manager has given to both is there already. */
static int receive_listener(aco_service_t *service, int kind, int fd, const char *key)
{
    if (kind == 'N') {
        close_if_open(service->name);
        service->name = fd;
        if (!service->watchdog) /* the manager told the old process alone */
            service->watchdog = strtoll(key, NULL, 10);
        return 0;
    }
    if (kind == 'S' && aco__lifecycle_has_inherited(service, aco__lifecycle_inode(fd))) {
        close_if_open(fd);
        return 0;
    }
    return aco__lifecycle_inherit(service, fd, key, kind == 'S');
}

/* 1: all have come; 0: the old process has ended before; -1 and errno. */
ACO__SWITCHES static int receive_listeners(aco_service_t *service, int from)
{
    char key[LIFECYCLE_KEY];
    int fd, kind = check_peer(from) == 0 ? receive_message(from, key, &fd) : -1;
    while ((kind == 'N' || kind == 'L' || kind == 'S') && fd >= 0) {
        if (receive_listener(service, kind, fd, key) != 0)
            return -1;
        kind = receive_message(from, key, &fd);
    }
    if (kind == 'E')
        return aco_io_adopt(service->name) == 0 ? 1 : -1;
    if (kind == 0 || (kind < 0 && errno == ECONNRESET))
        return 0;
    if (kind > 0) {
        close_if_open(fd);
        errno = EPROTO;
    }
    return -1;
}

/* What an old process has left that ended while it handed over: nobody else has the sockets. They are closed, the name
 * too, so that it is free, or the process's that has it now. */
static void drop_received(aco_service_t *service)
{
    close_if_open(service->name);
    service->name = -1;
    aco__lifecycle_drop_inherited(service);
}

/* Asks the process that has the name; or takes the name, if nobody has it. As receive_listeners(). */
ACO__SWITCHES static int take_name(aco_service_t *service, const char *name)
{
    int result, error, fd = aco_io_dial("unixpacket", name, NULL, NULL);
    if (fd < 0 && errno == ECONNREFUSED) {
        service->name = aco_io_listen("unixpacket", name, NULL, NULL);
        return service->name >= 0 ? 1 : errno == EADDRINUSE ? 0 : -1; /* another one was faster */
    }
    if (fd < 0)
        return -1;
    (void)send_message(fd, 'H', "", -1); /* if it fails, the old process ends */
    result = receive_listeners(service, fd);
    error = errno;
    if (result != 1)
        drop_received(service);
    if (result == 1)
        service->predecessor = fd;
    else
        (void)aco_io_close(fd);
    errno = error;
    return result;
}

int aco__lifecycle_take_over(aco_service_t *service)
{
    char name[LIFECYCLE_HAND_OVER + 32];
    aco_scope_t scope;
    int result, error;
    if (!service->options.hand_over)
        return 0;
    name_of(service, name);
    if (aco_scope_begin(&scope, aco_after(HAND_OVER_SECONDS * ACO_SECOND)) != 0)
        return -1;
    do {
        result = take_name(service, name);
    } while (result == 0 && aco_sleep(ACO_MILLISECOND) == 0);
    error = errno;
    (void)aco_scope_end(&scope);
    errno = error;
    return result == 1 ? 0 : -1;
}

/* What no thread has taken must not stay open: the system would give it connections. Of the others the threads have
 * copies: so they are closed when those are. */
static void close_inherited(aco_service_t *service)
{
    for (aco__inherited_t *i = service->inherited; i; i = i->next) {
        close_if_open(i->fd);
        i->fd = -1;
    }
}

/* The answer; 0: the old process has ended; -1: it does not answer. */
ACO__SWITCHES static int say_ready(const aco_service_t *service)
{
    char text[LIFECYCLE_KEY];
    int fd, to = service->predecessor;
    for (const aco__inherited_t *i = service->inherited; i; i = i->next) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)i->inode);
        if (i->is_taken)
            (void)send_message(to, 'T', text, -1);
    }
    (void)send_message(to, 'R', "", -1); /* if it fails, there may be an answer to read */
    return receive_message(to, text, &fd);
}

/* ---- The old process ---- */

/* The sockets that the new process has, or may have. */
typedef struct taken {
    const aco_service_t *service;
    int all;
    uint64_t *inodes;
    size_t n, size;
} taken_t;

static int is_taken(const taken_t *taken, uint64_t inode)
{
    size_t i = 0;
    while (i < taken->n && taken->inodes[i] != inode)
        i++;
    return taken->all || i < taken->n;
}

/* On each thread: whether its listeners are to be emptied when it stops. */
static void *mark_shared(void *arg)
{
    const taken_t *taken = arg;
    for (const aco__listening_t *l = taken->service->listening; l; l = l->next)
        if (l->thread == aco_threads_index() && aco__lifecycle_inode(l->fd) == l->inode)
            (void)aco_io_set_shared(l->fd, l->is_managed || is_taken(taken, l->inode));
    return NULL;
}

/* With the lock, so that the list stays as it is. 0; or -1: the scope has ended. */
ACO__SWITCHES static int mark_all(taken_t *taken)
{
    aco_mt_group_t group;
    int failed = 0;
    if (aco_mt_group_begin(&group, ACO_KEEP_GOING) != 0)
        return -1;
    for (int i = 0; i < taken->service->threads && !failed; i++) {
        const aco_submit_options_t where = {.where = ACO_SUBMIT_TO, .thread = i};
        failed = aco_submit(&group, mark_shared, taken, &where) != 0 && errno != ESRCH;
    }
    return aco_mt_group_end(&group) != 0 || failed ? -1 : 0;
}

ACO__SWITCHES static int send_listeners(const aco_service_t *service, int to)
{
    char time[32];
    int failed;
    snprintf(time, sizeof time, "%lld", (long long)service->watchdog);
    failed = send_message(to, 'N', time, service->name) != 0;
    for (const aco__listening_t *l = service->listening; l && !failed; l = l->next) {
        int fd = aco__lifecycle_copy(l);
        failed = fd >= 0 && send_message(to, l->is_managed ? 'S' : 'L', l->key, fd) != 0;
        close_if_open(fd);
    }
    return failed ? -1 : send_message(to, 'E', "", -1);
}

/* Until the new process is ready. 0, or -1. */
ACO__SWITCHES static int await_ready(taken_t *taken, int from)
{
    char text[LIFECYCLE_KEY];
    int kind, fd;
    while ((kind = receive_message(from, text, &fd)) == 'T') {
        close_if_open(fd);
        if (taken->n < taken->size / sizeof *taken->inodes) /* else there are some that it does not have from here */
            taken->inodes[taken->n++] = strtoull(text, NULL, 10);
    }
    close_if_open(kind > 0 ? fd : -1);
    return kind == 'R' ? 0 : -1;
}

/* From when the other process gets the listeners, none is emptied: also if this one is told to end meanwhile. Then they
 * stay so, as nobody knows what the other does. */
ACO__SWITCHES static int hand_over_locked(aco_service_t *service, taken_t *taken, int to)
{
    int is_done;
    taken->all = 1;
    if (mark_all(taken) != 0)
        return 0;
    is_done = send_listeners(service, to) == 0 && await_ready(taken, to) == 0;
    taken->all = 0;
    taken->n = is_done ? taken->n : 0;
    (void)mark_all(taken);
    return is_done;
}

/* Whether the process at the other end has taken over. */
ACO__SWITCHES static int hand_over(aco_service_t *service, int to)
{
    taken_t taken = {.service = service, .size = sizeof *taken.inodes};
    int is_done = 0;
    if (check_peer(to) != 0 || aco_mt_mutex_lock(&service->lock) != 0)
        return 0;
    for (const aco__listening_t *l = service->listening; l; l = l->next)
        taken.size += sizeof *taken.inodes;
    taken.inodes = aco__service_allocate(&taken.size, "aco_service_run");
    if (taken.inodes) {
        is_done = hand_over_locked(service, &taken, to);
        aco__service_free(taken.inodes, taken.size);
    }
    (void)aco_mt_mutex_unlock(&service->lock);
    return is_done;
}

/* Whether a new process is at the other end. One that is not heard in time, as the machine is busy, tries again. */
ACO__SWITCHES static int hears_hello(int from)
{
    char text[LIFECYCLE_KEY];
    int kind, fd = -1;
    aco_scope_t scope;
    if (aco_scope_begin(&scope, aco_after(HELLO_SECONDS * ACO_SECOND)) != 0)
        return 0;
    kind = receive_message(from, text, &fd);
    close_if_open(fd);
    (void)aco_scope_end(&scope);
    return kind == 'H';
}

/* A connection to the process that has taken over, which waits for G; -1: the scope has ended. */
ACO__SWITCHES static int await_successor(aco_service_t *service, int listener)
{
    for (;;) {
        aco_scope_t scope;
        int is_done, fd = aco_io_accept(listener);
        if (fd < 0)
            return -1;
        if (!hears_hello(fd)) {
            (void)aco_io_close(fd);
            continue;
        }
        if (aco_scope_begin(&scope, aco_after(NEW_SECONDS * ACO_SECOND)) != 0)
            is_done = 0;
        else {
            is_done = hand_over(service, fd);
            (void)aco_scope_end(&scope);
        }
        if (is_done)
            return fd;
        if (aco_check_cancelled() == 0)
            (void)aco__system.send(fd, "X", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)aco_io_close(fd);
    }
}

/* From now on its listeners are the new process's alone, but for the service manager. */
ACO__SWITCHES static void own_listeners(aco_service_t *service)
{
    taken_t none = {.service = service};
    if (aco_mt_mutex_lock(&service->lock) != 0)
        return;
    (void)mark_all(&none);
    (void)aco_mt_mutex_unlock(&service->lock);
}

int aco__lifecycle_is_refused(const aco_service_t *service)
{
    char kind = 0;
    return service->predecessor >= 0 &&
           aco__system.recv(service->predecessor, &kind, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && kind == 'X';
}

int aco__lifecycle_relieve(aco_service_t *service)
{
    aco_scope_t scope;
    int answer;
    close_inherited(service);
    if (service->predecessor < 0)
        return 0;
    (void)aco_scope_begin(&scope, aco_after(HAND_OVER_SECONDS * ACO_SECOND));
    answer = say_ready(service);
    (void)aco_scope_end(&scope);
    (void)aco_io_close(service->predecessor);
    service->predecessor = -1;
    if (answer == 'X')
        return -1;
    own_listeners(service);
    return 0;
}

int aco__lifecycle_offer(aco_service_t *service)
{
    int successor;
    if (service->name < 0)
        return 0;
    successor = await_successor(service, service->name);
    if (successor < 0)
        return 0;
    (void)send_message(successor, 'G', "", -1);
    (void)aco_io_close(successor);
    return 1;
}
