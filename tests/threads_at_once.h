/* What the tests of migration share: threads that do the same, and what they hand each other. */
#ifndef THREADS_AT_ONCE_H
#define THREADS_AT_ONCE_H

#include "aco.h"
#include "check.h"
#include "lacking.h"
#include "map_aligned.h"
#include "random.h"
#include "sanitizers.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

enum { MOST_THREADS = 64 };
static unsigned count, threads;

/* The function is called anew for each use, since it is not inlined and its volatile asm must run each time: no
 * optimiser may take two calls for one, or know what comes out. */
#define ACCESSOR(type, name, lvalue)                                                                                   \
    static __attribute__((noinline, unused)) type *name(void)                                                          \
    {                                                                                                                  \
        type *p = &(lvalue);                                                                                           \
        __asm__ volatile("" : "+r"(p));                                                                                \
        return p;                                                                                                      \
    }

typedef struct here {
    unsigned id;         /* the test's number for the thread, from 1 */
    const char *message; /* where aco_error_message() lies on it */
    random_t random;
    uint64_t words[8];   /* the recipe's: each thread counts in its own */
} here_t;

static __thread here_t this_thread;
ACCESSOR(here_t, here, this_thread)
ACCESSOR(int, errno_here, errno)

static pthread_barrier_t all_here;

static inline void *start_thread(void *fn)
{
    static unsigned started;
    here_t *at = here();
    void (*run)(void);
    at->id = __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED);
    at->random.state = at->id;
    CHECK(aco_send(NULL, NULL) == ACO_ERROR); /* it fails, and so there is a message */
    at->message = aco_error_message();
    memcpy(&run, fn, sizeof run);
    pthread_barrier_wait(&all_here);
    run();
    return NULL;
}

static inline void run_threads(void (*fn)(void), unsigned many)
{
    pthread_t started[MOST_THREADS];
    pthread_barrier_init(&all_here, NULL, many);
    for (unsigned i = 0; i < many; i++)
        if (pthread_create(&started[i], NULL, start_thread, &fn) != 0) {
            perror("pthread_create");
            exit(2);
        }
    for (unsigned i = 0; i < many; i++)
        pthread_join(started[i], NULL);
    pthread_barrier_destroy(&all_here);
}

/* What is handed over has a lock that nobody waits for: who finds it locked takes another. It carries all that happened
 * from one thread to the next. */
static inline int try_lock(int *lock)
{
    return !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);
}

static inline void unlock(int *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* Takes one of those that are `size` apart, but not one that this thread had last: so that nearly every step is on
 * another thread than the step before. NULL if there is none for now. */
typedef struct shared {
    int lock;
    unsigned last; /* the thread that had it last; atomic */
    unsigned at;   /* the one that has it now */
} shared_t;

static inline void *take(void *first, size_t size, here_t *me)
{
    for (int tries = 0; tries < 50; tries++) {
        char *p = (char *)first + draw(&me->random) % count * size;
        shared_t *shared = (shared_t *)(void *)p;
        if (__atomic_load_n(&shared->last, __ATOMIC_RELAXED) != me->id && try_lock(&shared->lock)) {
            shared->at = me->id;
            return p;
        }
    }
    sched_yield();
    return NULL;
}

static inline void give_back(shared_t *shared)
{
    __atomic_store_n(&shared->last, shared->at, __ATOMIC_RELAXED);
    unlock(&shared->lock);
}

static int steps_left; /* atomic */

static inline int step_left(void)
{
    return __atomic_sub_fetch(&steps_left, 1, __ATOMIC_RELAXED) >= 0;
}

/* It was not done: nothing was free. However the threads are scheduled, as many steps are done. */
static inline void give_back_step(void)
{
    __atomic_add_fetch(&steps_left, 1, __ATOMIC_RELAXED);
}

static inline void *idle(void *arg)
{
    return arg;
}

typedef struct migration_part {
    const char *name;
    void (*run)(void);
    unsigned count;
} migration_part_t;

/* Runs the part that the arguments name; a name of NULL ends the parts. */
static inline int run_part(const migration_part_t *part, int argc, char **argv, const char *names)
{
    const char *wanted = argc > 1 ? argv[1] : part->name;
    threads = argc > 3 ? (unsigned)atoi(argv[3]) : 8;
    if (threads < 2 || threads > MOST_THREADS)
        return 2;
    for (; part->name; part++)
        if (strcmp(part->name, wanted) == 0) {
            count = argc > 2 ? (unsigned)atoi(argv[2]) : part->count;
            part->run();
            return check_result(wanted);
        }
    fprintf(stderr, "%s %s [COUNT [THREADS]]\n", argv[0], names);
    return 2;
}

#endif
