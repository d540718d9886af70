/* What some systems lack of POSIX, and of Linux. */
#ifndef LACKING_H
#define LACKING_H

#include <pthread.h>
#include <sys/mman.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#ifndef MAP_FIXED_NOREPLACE /* the address is then a hint: look at where the mapping is */
#define MAP_FIXED_NOREPLACE 0
#endif
#ifndef MADV_NOHUGEPAGE
#define MADV_NOHUGEPAGE MADV_NORMAL
#endif

#ifdef __APPLE__
typedef struct pthread_barrier {
    pthread_mutex_t mutex;
    pthread_cond_t all_here;
    unsigned wanted, here, rounds;
} pthread_barrier_t;

static inline int pthread_barrier_init(pthread_barrier_t *barrier, const void *unused, unsigned wanted)
{
    (void)unused;
    barrier->wanted = wanted;
    barrier->here = barrier->rounds = 0;
    pthread_mutex_init(&barrier->mutex, NULL);
    return pthread_cond_init(&barrier->all_here, NULL);
}

static inline int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    unsigned round;
    pthread_mutex_lock(&barrier->mutex);
    round = barrier->rounds;
    if (++barrier->here == barrier->wanted) {
        barrier->here = 0;
        barrier->rounds++;
        pthread_cond_broadcast(&barrier->all_here);
    }
    while (barrier->rounds == round)
        pthread_cond_wait(&barrier->all_here, &barrier->mutex);
    return pthread_mutex_unlock(&barrier->mutex);
}

static inline int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
    pthread_cond_destroy(&barrier->all_here);
    return pthread_mutex_destroy(&barrier->mutex);
}
#endif

#endif
