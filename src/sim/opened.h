/* opened.c: the open files of a run, and the descriptors that name them.
 *
 * A descriptor is a real number, which an O_PATH descriptor of "/" holds. So numbers are unique in the process,
 * whatever else the program opens; and libc's calls for one fail with EBADF, where those for another kind of file might
 * do something, or wait for ever. */
#ifndef ACO_OPENED_H
#define ACO_OPENED_H

#include "base/invariants.h"
#include "sim/call_lists.h"
#include "sim/links.h"

#include "aco/sim.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

struct aco__sim_file;

/* An open file in the list of an epoll. */
typedef struct aco__sim_watch {
    aco__links_t of_file, of_epoll, ready; /* ready: in the epoll's list of those that may be */
    struct aco__sim_file *file;
    struct aco__sim_epoll *epoll;
    int fd;                     /* by which it was added */
    struct epoll_event event;
} aco__sim_watch_t;

/* What kind of file it is. */
typedef struct aco__sim_type {
    unsigned mode;              /* as fstat() tells it */
    unsigned (*events)(struct aco__sim_file *file); /* EPOLL…: what is the case now */
    /* NULL: EINVAL. They never wait. */
    ssize_t (*receive)(aco_sim_t *sim, struct aco__sim_file *file, struct msghdr *message, int flags);
    ssize_t (*send)(aco_sim_t *sim, struct aco__sim_file *file, const struct msghdr *message, int flags);
    void (*close)(aco_sim_t *sim, struct aco__sim_file *file); /* its last descriptor was closed; or NULL */
    void (*free)(struct aco__sim_file *file); /* what it has beside its own memory; or NULL */
    void (*status)(struct aco__sim_file *file, void *status); /* what fstat() tells beside the mode; or NULL */
} aco__sim_type_t;

typedef struct aco__sim_file {
    const aco__sim_type_t *type;
    uint64_t number;            /* of files in a run */
    aco_sim_node_t *node;       /* whose task has made it */
    unsigned descriptors, users; /* users: what holds its memory besides, such as an arrival on its way */
    int flags;                  /* O_… of F_GETFL */
    aco__links_t all;           /* files of the run */
    aco__links_t watches;       /* a list of aco__sim_watch_t */
} aco__sim_file_t;

/* What a descriptor's number stands for. */
typedef struct aco__sim_descriptor {
    aco__sim_file_t *file;      /* NULL: nothing that is simulated */
    const char *made_by;        /* the call */
    char task[32];              /* whose call it was */
} aco__sim_descriptor_t;

typedef struct aco__sim_opened {
    aco__sim_descriptor_t *descriptors; /* by number */
    size_t room;
    aco__links_t files;
    uint64_t numbers;
    int has_news;               /* threads that wait for descriptors are to look again */
} aco__sim_opened_t;

enum { ACO__SIM_READABLE = EPOLLIN | EPOLLRDNORM, ACO__SIM_WRITABLE = EPOLLOUT | EPOLLWRNORM };

static inline int aco__sim_fail_with(int error)
{
    errno = error;
    return -1;
}

static inline void *aco__sim_null_with(int error)
{
    errno = error;
    return NULL;
}

ACO__HIDDEN void aco__sim_opened_begin(aco_sim_t *sim);
/* Descriptors that are still open fail the run. */
ACO__HIDDEN void aco__sim_opened_judge(aco_sim_t *sim);
ACO__HIDDEN void aco__sim_opened_end(aco_sim_t *sim);

/* The descriptors of the node's sockets and pipes close, and peers get resets. */
ACO__HIDDEN void aco__sim_opened_crash(aco_sim_t *sim, const aco_sim_node_t *node);

/* A new file of `size` bytes that begins with an aco__sim_file_t; the rest is 0. NULL and errno. */
ACO__HIDDEN void *aco__sim_file_new(aco_sim_t *sim, const aco__sim_type_t *type, size_t size, int flags);
/* A new descriptor for it. -1 and errno: a file without another descriptor is closed. */
ACO__HIDDEN int aco__sim_file_open(aco_sim_t *sim, aco__sim_file_t *file, int fd_flags, const char *call);
/* The same in two steps: a number that stands for no file yet, or -1 and errno; and this number for a file. */
ACO__HIDDEN int aco__sim_number(int fd_flags);
ACO__HIDDEN int aco__sim_file_open_as(aco_sim_t *sim, aco__sim_file_t *file, int fd, const char *call);
/* Nobody will have a descriptor for it. */
ACO__HIDDEN void aco__sim_file_close(aco_sim_t *sim, aco__sim_file_t *file);
ACO__HIDDEN void aco__sim_file_hold(aco__sim_file_t *file);
ACO__HIDDEN void aco__sim_file_drop(aco__sim_file_t *file);
/* NULL: EBADF; or ENOSYS, if the descriptor is not simulated: then the run fails. */
ACO__HIDDEN aco__sim_file_t *aco__sim_file_of(aco_sim_t *sim, int fd, const char *call);

#endif
