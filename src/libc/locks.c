/* Locks that a hooked task holds while it waits. Another task of its thread that wants one would block the thread, and
 * with it the holder: a deadlock. Or it would be granted a recursive mutex, which takes it for the holder. So such a
 * task waits here, and looks again and again.
 *
 * A task that is not hooked waits in the same way, on a thread with hooked ones: it too would block the holder.
 *
 * A mutex of another thread is waited for here if a task holds it there while others run; else the thread blocks, as
 * that thread releases it. To wait here always would let other tasks run inside of an allocator. Read-write locks and
 * semaphores do not tell who holds them: any is waited for.
 *
 * Acorn's own locks are never held by a task that waits, so no switch comes where acorn does not expect it. */
#include "libc/arguments.h"
#include "libc/hooked.h"
#include "libc/libc.h"
#include "libc/locks.h"

#include "aco/detail/for_libraries.h"
#include "aco/scope.h"

#include <linux/futex.h>
#include <sys/mman.h>

const char aco__hooks_of_locks = 1;

enum { MOMENT_NS = 1000000, SHORTEST_NAP_NS = 50000, LONGEST_LOCK_NAP_NS = 10000000, NAPS_BEFORE_REPORT = 1000 };
enum { KINDS = 3, INCONSISTENT = INT_MAX }; /* in glibc's pthread_mutex_t */

/* A mutex, or a read-write lock locked for writing, and the task that locked it while the thread had hooked ones. */
typedef struct held {
    struct held *next;
    const void *lock;
    const aco_t *task;
    const void **told; /* of told_locks, or NULL */
} held_t;
static __thread held_t *held_locks __attribute__((tls_model("initial-exec")));

/* Their memory is not malloc()'s: an allocator may be what has locked. Pages are the thread's until it ends. */
typedef struct held_page {
    struct held_page *next;
    held_t held[127];
} held_page_t;
static __thread held_t *spare_held __attribute__((tls_model("initial-exec")));
static __thread held_page_t *held_pages __attribute__((tls_model("initial-exec")));
static pthread_key_t pages_key;
static int has_pages_key;

static void free_pages(void *unused)
{
    (void)unused;
    held_locks = spare_held = NULL;
    while (held_pages) {
        held_page_t *page = held_pages;
        held_pages = page->next;
        (void)munmap(page, sizeof *page);
    }
}

static void make_pages_key(void)
{
    has_pages_key = pthread_key_create(&pages_key, free_pages) == 0;
}

void aco__hook_locks_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_pages_key);
    if (has_pages_key) /* else the pages stay until the process ends */
        (void)pthread_setspecific(pages_key, &pages_key);
}

static void add_page(void)
{
    held_page_t *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    page->next = held_pages;
    held_pages = page;
    for (size_t i = 0; i < sizeof page->held / sizeof *page->held; i++) {
        page->held[i].next = spare_held;
        spare_held = &page->held[i];
    }
}

/* What threads tell each other: the mutexes that tasks hold while others of their threads want one. A thread tells them
 * before it blocks for a mutex. What finds no room is not told. */
enum { TOLD_BITS = 10, TOLD_PLACES = 8 };
static const void *told_locks[1 << TOLD_BITS]; /* atomic */

static const void **told_place(const void *lock, unsigned i)
{
    uint32_t hash = (uint32_t)((uintptr_t)lock >> 3) * UINT32_C(2654435761) >> (32 - TOLD_BITS);
    return &told_locks[(hash + i) % (1 << TOLD_BITS)];
}

static void tell(held_t *held)
{
    for (unsigned i = 0; i < TOLD_PLACES && !held->told; i++) {
        const void **place = told_place(held->lock, i), *none = NULL;
        if (__atomic_compare_exchange_n(place, &none, held->lock, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            held->told = place;
    }
}

static int is_told(const void *lock)
{
    for (unsigned i = 0; i < TOLD_PLACES; i++)
        if (__atomic_load_n(told_place(lock, i), __ATOMIC_SEQ_CST) == lock)
            return 1;
    return 0;
}

static held_t **find_held(const void *lock)
{
    held_t **link = &held_locks;
    while (*link && (*link)->lock != lock)
        link = &(*link)->next;
    return link;
}

/* The calling task has locked it. Without memory nobody knows the task, only the thread. */
static void note_locked(const void *lock)
{
    held_t *held = *find_held(lock);
    if (!held) {
        if (!spare_held)
            add_page();
        held = spare_held;
        if (!held)
            return;
        spare_held = held->next;
        held->next = held_locks;
        held->lock = lock;
        held->told = NULL;
        held_locks = held;
    }
    held->task = aco_current_task();
}

static void note_unlocked(const void *lock)
{
    held_t **link = find_held(lock), *held = *link;
    if (!held)
        return;
    ACO__ASSERT(!held->told || __atomic_load_n(held->told, __ATOMIC_RELAXED) == lock);
    if (held->told)
        __atomic_store_n(held->told, NULL, __ATOMIC_RELEASE);
    *link = held->next;
    held->next = spare_held;
    spare_held = held;
}

static int kind_of(const pthread_mutex_t *mutex)
{
    return mutex->__data.__kind & KINDS;
}

static int knows_holder(const pthread_mutex_t *mutex)
{
    return kind_of(mutex) == PTHREAD_MUTEX_RECURSIVE || kind_of(mutex) == PTHREAD_MUTEX_ERRORCHECK;
}

/* Whether the calling thread holds it. glibc stores the holder in all kinds of mutexes; of a robust one that is
 * inconsistent, only in its futex. */
static int is_held_here(const pthread_mutex_t *mutex)
{
    int owner = __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
    if (owner == INCONSISTENT)
        owner = __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK;
    return owner == aco__hook_self.thread;
}

/* Whether another task of this thread has it. If the one that has it was not hooked: yes, except if it is recursive,
 * as then only the thread counts. A task that locks a normal mutex twice waits for ever, but not its thread. */
static int is_another_tasks(const pthread_mutex_t *mutex, const aco_t *task)
{
    const held_t *held;
    if (!is_held_here(mutex))
        return 0;
    held = knows_holder(mutex) ? *find_held(mutex) : NULL;
    return held ? held->task != task : kind_of(mutex) != PTHREAD_MUTEX_RECURSIVE;
}

/* Whether the thread must not simply block for the mutex, which is busy. */
static int must_not_block(const pthread_mutex_t *mutex)
{
    const aco_t *task = aco_current_task();
    int others_hold = 0;
    if (is_held_here(mutex))
        return is_another_tasks(mutex, task);
    for (held_t *held = held_locks; held; held = held->next)
        if (held->task != task) {
            others_hold = 1;
            tell(held);
        }
    return others_hold;
}

static void report(const char *location, const void *lock, const char *why)
{
    aco__service_warn(location, "a task wants the lock %p, which its own thread may hold: %s", lock, why);
}

typedef struct naps {
    const char *location;
    const void *lock;
    int64_t deadline, ns;
    unsigned count;
    aco__hook_call_t call;
    int is_elsewhere; /* another thread holds it */
} naps_t;

/* Sleeps, longer each time, within the deadline: as aco__hook_sleep(). */
ACO__SWITCHES static int nap(naps_t *naps)
{
    int64_t until = aco_after(naps->ns);
    naps->ns = naps->ns < LONGEST_LOCK_NAP_NS / 2 ? 2 * naps->ns : LONGEST_LOCK_NAP_NS;
    return aco__hook_sleep(until < naps->deadline ? until : naps->deadline, &naps->call, naps->location);
}

/* The same for a lock, which cannot fail: no scope ends it. 0, or -1: the caller cannot wait. */
ACO__SWITCHES static int nap_for_lock(naps_t *naps)
{
    aco_scope_t shield;
    int result = -1;
    if (aco_shield_begin(&shield, ACO_FOREVER) == 0) {
        result = nap(naps);
        (void)aco_scope_end(&shield);
    } else {
        aco__hook_self.stats.blocked++;
    }
    if (result != 0 && !naps->is_elsewhere)
        report(naps->location, naps->lock, "a deadlock, as the task cannot wait");
    else if (result == 0 && naps->count++ == NAPS_BEFORE_REPORT)
        report(naps->location, naps->lock, "it has waited for ten seconds");
    return result == 0 ? 0 : -1;
}

static int is_fraction(const struct timespec *until)
{
    return until->tv_nsec >= 0 && until->tv_nsec < ACO_SECOND;
}

/* The deadline of a time of the clock CLOCK_REALTIME, which may be set meanwhile. */
static int64_t deadline_of_real_time(const struct timespec *until)
{
    struct timespec now;
    int64_t ns;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    ns = until->tv_sec < now.tv_sec ? 0 : aco__hook_ns((int64_t)until->tv_sec - now.tv_sec, until->tv_nsec);
    return aco_after(ns == INT64_MAX ? ns : ns - now.tv_nsec);
}

static int try_mutex(pthread_mutex_t *mutex)
{
    if (knows_holder(mutex) && is_another_tasks(mutex, aco_current_task()))
        return EBUSY;
    return aco__libc()->pthread_mutex_trylock(mutex);
}

/* Blocks for a moment, within the deadline. EBUSY: it was not long enough. */
static int lock_in_a_moment(pthread_mutex_t *mutex, int64_t deadline)
{
    int64_t left = deadline - aco_now();
    struct timespec until;
    int result;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(left > MOMENT_NS ? MOMENT_NS : left > 0 ? left : 0);
    if (until.tv_nsec >= ACO_SECOND) {
        until.tv_sec++;
        until.tv_nsec -= ACO_SECOND;
    }
    result = aco__libc()->pthread_mutex_timedlock(mutex, &until);
    return result == ETIMEDOUT ? EBUSY : result;
}

/* Tries until the deadline: what libc's call returns, or EBUSY: the caller cannot wait. */
ACO__SWITCHES static int lock_by_naps(pthread_mutex_t *mutex, int64_t deadline, const char *location)
{
    naps_t naps = {location, mutex, deadline, SHORTEST_NAP_NS, 0, aco__hook_call(HOOK_IGNORES_SIGNALS), 0};
    int result = EBUSY;
    while (result == EBUSY) {
        if (deadline != ACO_FOREVER && aco_now() >= deadline) {
            result = try_mutex(mutex); /* it may be free since the last look: the thread may have been stopped */
            return result == EBUSY ? ETIMEDOUT : result;
        }
        naps.is_elsewhere = !is_held_here(mutex);
        if (naps.is_elsewhere && !is_told(mutex)) {
            result = lock_in_a_moment(mutex, deadline);
            continue;
        }
        if (nap_for_lock(&naps) != 0)
            break;
        result = try_mutex(mutex);
    }
    return result;
}

static int locked(const pthread_mutex_t *mutex, int result)
{
    if (result == 0 || result == EOWNERDEAD)
        note_locked(mutex);
    return result;
}

ACO__HOOK(int, pthread_mutex_lock, (pthread_mutex_t *mutex))
{
    int error = errno, result;
    if (!aco__beside_hooked())
        return aco__libc()->pthread_mutex_lock(mutex);
    result = try_mutex(mutex);
    if (result == EBUSY && must_not_block(mutex))
        result = lock_by_naps(mutex, ACO_FOREVER, "libc's pthread_mutex_lock()");
    if (result == EBUSY)
        result = aco__libc()->pthread_mutex_lock(mutex);
    errno = error;
    return locked(mutex, result);
}

/* The time is looked at only if the call waits, as libc does. */
ACO__HOOK(int, pthread_mutex_timedlock, (pthread_mutex_t *mutex, const struct timespec *until))
{
    int error = errno, result;
    if (!aco__beside_hooked())
        return aco__libc()->pthread_mutex_timedlock(mutex, until);
    result = try_mutex(mutex);
    if (result == EBUSY && must_not_block(mutex))
        result = is_fraction(until)
                     ? lock_by_naps(mutex, deadline_of_real_time(until), "libc's pthread_mutex_timedlock()")
                     : EINVAL;
    if (result == EBUSY)
        result = knows_holder(mutex) && is_another_tasks(mutex, aco_current_task())
                     ? ETIMEDOUT
                     : aco__libc()->pthread_mutex_timedlock(mutex, until);
    errno = error;
    return locked(mutex, result);
}

ACO__HOOK(int, pthread_mutex_trylock, (pthread_mutex_t *mutex))
{
    return aco__beside_hooked() ? locked(mutex, try_mutex(mutex)) : aco__libc()->pthread_mutex_trylock(mutex);
}

/* Also by a task that is not hooked any more. */
ACO__HOOK(int, pthread_mutex_unlock, (pthread_mutex_t *mutex))
{
    if (aco_unlikely(held_locks != NULL) && mutex->__data.__count <= 1)
        note_unlocked(mutex);
    return aco__libc()->pthread_mutex_unlock(mutex);
}

/* ---- Read-write locks ---- */

/* Whether the calling task has locked it for writing: libc answers EDEADLK. */
static int is_own(const pthread_rwlock_t *lock)
{
    const held_t *held = *find_held(lock);
    return held && held->task == aco_current_task() &&
           __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED) == aco__hook_self.thread;
}

ACO__SWITCHES
static int lock_by_trying(int (*try_lock)(pthread_rwlock_t *lock), int (*wait_for_lock)(pthread_rwlock_t *lock),
                          pthread_rwlock_t *lock, const char *location)
{
    naps_t naps = {location, lock, ACO_FOREVER, SHORTEST_NAP_NS, 0, aco__hook_call(HOOK_IGNORES_SIGNALS), 0};
    int error = errno, result;
    while ((result = try_lock(lock)) == EBUSY)
        if (is_own(lock) || nap_for_lock(&naps) != 0) {
            result = wait_for_lock(lock);
            break;
        }
    errno = error;
    return result;
}

ACO__HOOK(int, pthread_rwlock_rdlock, (pthread_rwlock_t *lock))
{
    if (!aco__beside_hooked())
        return aco__libc()->pthread_rwlock_rdlock(lock);
    return lock_by_trying(pthread_rwlock_tryrdlock, aco__libc()->pthread_rwlock_rdlock, lock,
                          "libc's pthread_rwlock_rdlock()");
}

ACO__HOOK(int, pthread_rwlock_wrlock, (pthread_rwlock_t *lock))
{
    int result;
    if (!aco__beside_hooked())
        return aco__libc()->pthread_rwlock_wrlock(lock);
    result = lock_by_trying(pthread_rwlock_trywrlock, aco__libc()->pthread_rwlock_wrlock, lock,
                            "libc's pthread_rwlock_wrlock()");
    if (result == 0)
        note_locked(lock);
    return result;
}

/* Also by a task that is not hooked any more. */
ACO__HOOK(int, pthread_rwlock_unlock, (pthread_rwlock_t *lock))
{
    if (aco_unlikely(held_locks != NULL))
        note_unlocked(lock);
    return aco__libc()->pthread_rwlock_unlock(lock);
}

/* ---- Semaphores ---- */

/* Tries until the deadline: HOOK_IS_DONE if it has it, HOOK_BLOCKS; HOOK_GIVES_UP with errno. */
ACO__SWITCHES static int get_by_trying(sem_t *semaphore, int64_t deadline, const char *location)
{
    naps_t naps = {location, semaphore, deadline, SHORTEST_NAP_NS, 0, aco__hook_call(HOOK_RESTARTS), 0};
    aco__hook_spend(-1, location);
    for (;;) {
        int is_late = deadline != ACO_FOREVER && aco_now() >= deadline, result; /* before the look */
        if (sem_trywait(semaphore) == 0)
            return HOOK_IS_DONE;
        if (errno != EAGAIN)
            return HOOK_GIVES_UP;
        if (is_late) {
            errno = ETIMEDOUT;
            return HOOK_GIVES_UP;
        }
        result = nap(&naps);
        if (result != 0)
            return result == HOOK_CANNOT_WAIT ? HOOK_BLOCKS : HOOK_GIVES_UP;
    }
}

ACO__HOOK(int, sem_wait, (sem_t *semaphore))
{
    int error = errno, action = HOOK_BLOCKS, result;
    if (aco__hooked())
        action = get_by_trying(semaphore, ACO_FOREVER, "libc's sem_wait()");
    result = action == HOOK_BLOCKS ? aco__libc()->sem_wait(semaphore) : action == HOOK_IS_DONE ? 0 : -1;
    return (int)aco__hook_result(result, error);
}

ACO__HOOK(int, sem_timedwait, (sem_t *semaphore, const struct timespec *until))
{
    int error = errno, action = HOOK_BLOCKS, result;
    if (aco__hooked() && is_fraction(until))
        action = get_by_trying(semaphore, deadline_of_real_time(until), "libc's sem_timedwait()");
    result = action == HOOK_BLOCKS ? aco__libc()->sem_timedwait(semaphore, until) : action == HOOK_IS_DONE ? 0 : -1;
    return (int)aco__hook_result(result, error);
}
