/* A service and what its parts know of each other. The layer of lifecycles is the library acorn_service. It is above
 * threads and descriptors, and calls only what they and acorn export. */
#ifndef ACO_LIFECYCLE_H
#define ACO_LIFECYCLE_H

#include "base/invariants.h"
#include "system/system.h"

#include "aco/detail/for_libraries.h"
#include "aco/mt.h"
#include "aco/service.h"
#include "aco/sync.h"

#include <pthread.h>

enum { LIFECYCLE_KEY = 512, LIFECYCLE_NAME = 63, LIFECYCLE_HAND_OVER = 80 };

/* A listener that was there before the process. */
typedef struct aco__inherited {
    struct aco__inherited *next;
    int fd;          /* -1: it has been closed; threads may have copies */
    uint64_t inode;  /* of its socket */
    int is_taken;    /* a thread listens on the socket */
    int is_managed;  /* the service manager has it, too; if it comes from there, its key is only the name */
    size_t size;     /* of this record, as allocated */
    char key[LIFECYCLE_KEY];
} aco__inherited_t;

/* A listener of a thread. Its number may have been closed since: then the inode is another one. */
typedef struct aco__listening {
    struct aco__listening *next;
    int fd, thread;
    uint64_t inode;
    int is_managed;  /* the service manager has it, too */
    size_t size;     /* of this record, as allocated */
    char key[LIFECYCLE_KEY];
} aco__listening_t;

typedef struct aco__service_thread {
    unsigned is_ready;  /* atomic */
    aco_group_t *group; /* the thread's own; NULL: it runs no `serve` */
} aco__service_thread_t;

typedef enum aco__service_state {
    LIFECYCLE_SERVES, LIFECYCLE_LAME, LIFECYCLE_DRAINS, LIFECYCLE_CANCELLED
} aco__service_state_t;

struct aco_service_s {
    aco_service_options_t options;
    ACO__SWITCHES aco_service_function_t serve;
    void *arg;
    int threads;
    size_t size;                  /* of this record, as allocated */
    aco_threads_t *set;
    aco_mt_mutex_t lock;          /* of the two lists, after the threads have begun */
    aco__inherited_t *inherited;
    aco__listening_t *listening;
    unsigned ready;               /* threads that are. Atomic */
    aco_mt_event_t all_ready;
    pthread_mutex_t config_lock;  /* of `config` */
    aco_service_config_t *config;
    int is_stopping;              /* atomic */
    int has_stopped;              /* the scopes around `serve` end, or have. Atomic */
    /* The rest is the first thread's. */
    int signals;                  /* the descriptor they are read from */
    aco__service_state_t state;
    int64_t until;                /* when the state ends */
    int64_t watchdog;             /* nanoseconds in which the manager wants a sign of life; 0: it wants none */
    int64_t next_sign;            /* when it gets one; ACO_FOREVER: this is not its process yet */
    aco_scope_t *offer;           /* of this task, until it ends; NULL: not begun yet */
    aco_scope_t *start;           /* what comes before `serve`; NULL: it is over, or has not begun */
    aco_scope_t *reload;          /* as `offer` */
    aco_event_t wants_load;       /* a signal has come */
    int is_refused;               /* the old process goes on: this one ends */
    int is_retired;               /* it ends because another process serves, and no signal has asked for that yet */
    aco_scope_t *pause;           /* in which the control task waits; NULL: it does not */
    int name;                     /* the listening socket of hand_over's name; -1: none */
    int predecessor;              /* a connection to the old process; -1: none */
    int is_over;                  /* all `serve` have returned */
    int is_deaf;                  /* no signal is read any more */
    aco__service_thread_t thread[];
};

/* ---- Listeners: service_listeners.c ---- */

/* The inode of a descriptor's file; 0: it is not open. */
ACO__HIDDEN uint64_t aco__lifecycle_inode(int fd);
/* Takes over a descriptor with this key; closes it on error. 0, or -1 and errno. */
ACO__HIDDEN int aco__lifecycle_inherit(aco_service_t *service, int fd, const char *key, int is_managed);
/* Whether there is one with this socket. */
ACO__HIDDEN int aco__lifecycle_has_inherited(const aco_service_t *service, uint64_t inode);
/* Closes those that are not the service manager's, and forgets them. */
ACO__HIDDEN void aco__lifecycle_drop_inherited(aco_service_t *service);
/* Those of systemd. Called before there are threads. 0, or -1 and errno. */
ACO__HIDDEN int aco__lifecycle_inherit_from_systemd(aco_service_t *service);
/* A copy of the listener's descriptor, which the caller closes. -1 and errno: it is closed, or another entry of the
 * list has the same socket. With the lock. */
ACO__HIDDEN int aco__lifecycle_copy(const aco__listening_t *listening);
/* What was inherited is closed; the threads' are theirs. */
ACO__HIDDEN void aco__lifecycle_free_listeners(aco_service_t *service);

/* ---- From process to process: hand_over.c ---- */

/* Gets the old process's listeners and its name; or takes the name, if there is no such process. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__lifecycle_take_over(aco_service_t *service);
/* Whether the old process no longer waits for this one. Does not wait. */
ACO__HIDDEN int aco__lifecycle_is_refused(const aco_service_t *service);
/* Tells the old process, if there is one, that this one has taken over. Returns 0 when it has begun to stop, or is
 * gone; -1: it goes on. */
ACO__SWITCHES ACO__HIDDEN int aco__lifecycle_relieve(aco_service_t *service);
/* Hands the listeners to the next process, when one comes. 1: it has taken over; 0: the scope has ended. */
ACO__SWITCHES ACO__HIDDEN int aco__lifecycle_offer(aco_service_t *service);

/* ---- Configurations: configuration.c ---- */

/* 0, or -1 and errno: the configuration is as it was. */
ACO__SWITCHES ACO__HIDDEN int aco__lifecycle_load(aco_service_t *service);
ACO__HIDDEN void aco__lifecycle_unload(aco_service_t *service);

/* ---- The service manager: notify.c ---- */

/* What need not arrive. Does not wait. */
ACO__HIDDEN void aco__lifecycle_tell(const char *state);
/* What the manager waits for: waits until it has room for more, some seconds at most. */
ACO__SWITCHES ACO__HIDDEN void aco__lifecycle_tell_surely(const char *state);
/* Nanoseconds between two signs of life that the service manager wants of this process; 0: it wants none. */
ACO__HIDDEN int64_t aco__lifecycle_watchdog(void);

#endif
