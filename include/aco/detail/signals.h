/* Between acorn and the libraries that take signals: who listens for which, in the whole process. Not for programs.
 *
 * The system gives a signal to one taker only. So whoever takes one has all others told who listen for it. While there
 * are listeners the signal stays blocked; without, it does what it did before. */
#ifndef ACO_DETAIL_SIGNALS_H
#define ACO_DETAIL_SIGNALS_H

#include "../scheduler.h"

ACO__BEGIN_C

typedef struct aco__listener {
    uint64_t signals; /* bit n - 1: the signal n */
    /* Another listener has taken the signal, which `sender` (a process, or 0) sent. Any thread, one at a time: it must
     * not wait, nor call what is below. */
    void (*told)(struct aco__listener *listener, int signal, int32_t sender);
    long process; /* in a child of fork() it listens no more */
    const uint64_t *machine; /* chooser->signals of its thread: in a simulation, whose signals it gets */
    /* Its node has crashed, and so its descriptors are closed: frees the rest. NULL: nothing is to be freed. */
    void (*forgotten)(struct aco__listener *listener);
    struct aco__listener *next, **link;
} aco__listener_t;

/* The calling thread, which has a scheduler, blocks the signals from now on: until no listener for them is left in the
 * process, or, `for_good`, ever after. */
ACO_API void aco__listen(aco__listener_t *listener, int for_good);
/* The same thread, or a child of fork(). Nobody tells the listener any more. Other threads that may unblock signals now
 * do so when they run tasks. */
ACO_API void aco__listen_end(aco__listener_t *listener);
/* The listener has taken a signal: tells the others. How many there are. Any thread. */
ACO_API int aco__listen_tell(const aco__listener_t *listener, int signal, int32_t sender);
/* A node of a simulation has crashed: its listeners hear nothing any more. */
ACO_API void aco__listeners_forget(const uint64_t *machine);

ACO__END_C

#endif
