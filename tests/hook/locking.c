/* An allocator that locks in malloc(): a recursive mutex and an error-checking one. With WAITS it also makes other
 * hooked calls meanwhile, at times. It aborts if a task that calls it lets another one run in the middle, or if a lock
 * calls it again. Its memory is libc's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t sz);
void *__libc_calloc(size_t n, size_t sz);
void *__libc_realloc(void *p, size_t sz);
void *__libc_memalign(size_t alignment, size_t sz);
void __libc_free(void *p);

static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                       checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static __thread int is_inside __attribute__((tls_model("initial-exec")));

#ifdef WAITS
static pthread_rwlock_t for_writing = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static unsigned calls; /* semaphore and calls: under the mutexes */

static void wait_inside(void)
{
    char byte;
    int fd = -1;
    if (calls == 0)
        (void)sem_init(&semaphore, 0, 1);
    if (calls++ % 64 != 0)
        return;
    if (pthread_rwlock_wrlock(&for_writing) != 0 || sem_wait(&semaphore) != 0)
        abort();
    (void)sched_yield();
    if (calls % 512 == 1) {
        (void)usleep(1);
        fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && (read(fd, &byte, 1) != 1 || close(fd) != 0))
            abort();
    }
    if (sem_post(&semaphore) != 0 || pthread_rwlock_unlock(&for_writing) != 0)
        abort();
}
#endif

static void lock(void)
{
    if (is_inside++ || pthread_mutex_lock(&recursive) != 0 || pthread_mutex_lock(&checking) != 0)
        abort();
#ifdef WAITS
    wait_inside();
#endif
}

static void *unlock(void *p)
{
    if (pthread_mutex_unlock(&checking) != 0 || pthread_mutex_unlock(&recursive) != 0 || --is_inside)
        abort();
    return p;
}

void *malloc(size_t sz)
{
    lock();
    return unlock(__libc_malloc(sz));
}

void *calloc(size_t n, size_t sz)
{
    lock();
    return unlock(__libc_calloc(n, sz));
}

void *realloc(void *p, size_t sz)
{
    lock();
    return unlock(__libc_realloc(p, sz));
}

void *aligned_alloc(size_t alignment, size_t sz)
{
    lock();
    return unlock(__libc_memalign(alignment, sz));
}

void free(void *p)
{
    lock();
    __libc_free(p);
    (void)unlock(NULL);
}
