/* A model checker for the C11 memory model: sources that are compiled with this header in front run their atomic
 * operations, mutexes and yields in litmus.c, which tries every order of the threads' operations and, for each load,
 * every value that the memory model lets it see. verification/litmus/README.md has what that covers. */
#ifndef LITMUS_H
#define LITMUS_H

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* ---- What the sources under test use ---- */
#define LITMUS_AT(p) (const volatile void *)(p), sizeof *(p), #p, __func__
#define LITMUS_NUMBER(v) (uint64_t)(uintptr_t)(v)
#define LITMUS_VALUE(p, call) ((__typeof__(*(p)))(uintptr_t)(call))

uint64_t litmus_load(const volatile void *at, size_t sz, const char *what, const char *function, int order);
void litmus_store(const volatile void *at, size_t sz, const char *what, const char *function, uint64_t value,
                  int order);
enum { LITMUS_EXCHANGE, LITMUS_ADD, LITMUS_SUB, LITMUS_OR };
/* The value before. */
uint64_t litmus_modify(const volatile void *at, size_t sz, const char *what, const char *function, int operation,
                       uint64_t operand, int order);
int litmus_compare(const volatile void *at, size_t sz, const char *what, const char *function, void *expected,
                   uint64_t desired, int order, int failure_order);

#define __atomic_load_n(p, o) LITMUS_VALUE(p, litmus_load(LITMUS_AT(p), o))
#define __atomic_store_n(p, v, o) litmus_store(LITMUS_AT(p), LITMUS_NUMBER(v), o)
#define __atomic_exchange_n(p, v, o) \
    LITMUS_VALUE(p, litmus_modify(LITMUS_AT(p), LITMUS_EXCHANGE, LITMUS_NUMBER(v), o))
#define __atomic_fetch_add(p, v, o) LITMUS_VALUE(p, litmus_modify(LITMUS_AT(p), LITMUS_ADD, LITMUS_NUMBER(v), o))
#define __atomic_fetch_sub(p, v, o) LITMUS_VALUE(p, litmus_modify(LITMUS_AT(p), LITMUS_SUB, LITMUS_NUMBER(v), o))
#define __atomic_fetch_or(p, v, o) LITMUS_VALUE(p, litmus_modify(LITMUS_AT(p), LITMUS_OR, LITMUS_NUMBER(v), o))
#define __atomic_compare_exchange_n(p, e, v, weak, o, f) litmus_compare(LITMUS_AT(p), e, LITMUS_NUMBER(v), o, f)
#define __atomic_thread_fence(o) litmus_has_no_fences /* an error */

void litmus_lock(void *mutex);
void litmus_unlock(void *mutex);
/* Goes on when what the thread has read last has changed. */
int litmus_yield(void);
/* In place of src/system/point.h: each operation is one. */
#define ACO_POINT_H
#define ACO__POINT() ((void)0)
#define ACO__HAS_POINTS() 0
/* In place of src/system/system.h. */
#define ACO_SYSTEM_H
static const struct {
    void (*pthread_mutex_lock)(void *mutex);
    void (*pthread_mutex_unlock)(void *mutex);
    int (*sched_yield)(void);
    __typeof__(fopen) *fopen;
    __typeof__(getpid) *getpid;
    __typeof__(opendir) *opendir;
    __typeof__(readdir) *readdir;
    __typeof__(closedir) *closedir;
    __typeof__(nanosleep) *nanosleep;
    __typeof__(pthread_cond_broadcast) *pthread_cond_broadcast;
    __typeof__(pthread_cond_signal) *pthread_cond_signal;
    __typeof__(pthread_cond_timedwait) *pthread_cond_timedwait;
    __typeof__(pthread_cond_wait) *pthread_cond_wait;
    __typeof__(pthread_create) *pthread_create;
    __typeof__(pthread_join) *pthread_join;
    __typeof__(pthread_kill) *pthread_kill;
    __typeof__(pthread_sigmask) *pthread_sigmask;
    __typeof__(sched_getaffinity) *sched_getaffinity;
    __typeof__(sched_setaffinity) *sched_setaffinity;
    __typeof__(sigpending) *sigpending;
    __typeof__(sigtimedwait) *sigtimedwait;
    __typeof__(sigwaitinfo) *sigwaitinfo;
    __typeof__(sysconf) *sysconf;
} aco__system __attribute__((unused)) = {
    litmus_lock, litmus_unlock, litmus_yield,
    fopen, getpid, opendir, readdir, closedir, nanosleep, pthread_cond_broadcast, pthread_cond_signal,
    pthread_cond_timedwait, pthread_cond_wait, pthread_create, pthread_join, pthread_kill, pthread_sigmask,
    sched_getaffinity, sched_setaffinity, sigpending, sigtimedwait, sigwaitinfo, sysconf};

/* ---- What a test uses ---- */
typedef struct litmus_case {
    const char *name;
    int threads;
    void (*begin)(void);        /* before the threads begin */
    void (*run)(int thread);    /* on each thread */
    void (*end)(void);          /* when all have ended; they are synchronized with it */
} litmus_case_t;
extern const litmus_case_t litmus_cases[]; /* the last one has no name */

enum { LITMUS_THREADS = 4 };

/* Memory, all zeros, until the execution ends. */
void *litmus_allocate(size_t sz);
/* Waits until *at is not 0, and sees what made it so. */
void litmus_wait(const uint32_t *at);
/* A variable that is not atomic: 1 if the access is a data race. */
void litmus_write(int *at, int value);
int litmus_read(const int *at);
int litmus_self(void);
#define litmus_assert(condition) ((condition) ? (void)0 : litmus_fail("not so: " #condition))
void litmus_fail(const char *reason);
/* The execution is not followed any further: a thread has spun often enough while another one does not go on. */
void litmus_give_up(void);
/* The outcome of an execution. The command prints how many different ones there are, with -v all. */
void litmus_outcome(uint64_t outcome);

#endif
