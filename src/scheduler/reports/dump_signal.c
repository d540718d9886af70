/* A signal that has the schedulers dump their tasks. Its handler posts to the scheduler of each thread that wants it
 * (inbox.c), which is async-signal-safe on any thread, and the scheduler dumps in its next round. */
#include "scheduler/inbox.h"
#include "scheduler/reports/dump_signal.h"
#include "scheduler/wait.h"

enum { MOST_DUMPERS = 256 };

static aco__tasks_t *dumpers[MOST_DUMPERS]; /* atomic; NULL: vacant */
static unsigned handlers;                   /* that run now; atomic */

static void on_dump_signal(void)
{
    __atomic_fetch_add(&handlers, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < MOST_DUMPERS; i++) {
        aco__tasks_t *s = __atomic_load_n(&dumpers[i], __ATOMIC_SEQ_CST);
        if (s)
            aco__inbox_post(s, &s->dump_post);
    }
    __atomic_fetch_sub(&handlers, 1, __ATOMIC_SEQ_CST);
}

/* Other threads' handlers and schedulers are not there. */
static void after_fork_in_child(void)
{
    const aco__tasks_t *own = aco__tasks(aco__self());
    __atomic_store_n(&handlers, 0, __ATOMIC_SEQ_CST);
    for (int i = 0; i < MOST_DUMPERS; i++)
        if (__atomic_load_n(&dumpers[i], __ATOMIC_RELAXED) != own)
            __atomic_store_n(&dumpers[i], NULL, __ATOMIC_SEQ_CST);
}

/* Before the first handler runs. 0, or an error number. */
static int handle_forks(void)
{
    static int is_registered;
    int error = 0;
    if (!__atomic_exchange_n(&is_registered, 1, __ATOMIC_SEQ_CST))
        error = aco__os_at_fork(NULL, NULL, after_fork_in_child);
    if (error)
        __atomic_store_n(&is_registered, 0, __ATOMIC_SEQ_CST);
    return error;
}

static void dump_posted(aco__thread_t *self, aco__post_t *post)
{
    (void)post;
    aco_tasks_dump(aco__tasks(self)->dump_fd);
}

void aco__dump_signal_stop(aco__tasks_t *s)
{
    if (!s->dumps)
        return;
    for (int i = 0; i < MOST_DUMPERS; i++)
        if (__atomic_load_n(&dumpers[i], __ATOMIC_RELAXED) == s)
            aco__store_then_load(&dumpers[i], NULL);
    while (__atomic_load_n(&handlers, __ATOMIC_SEQ_CST)) { /* on another thread: it may have seen `s` */
    }
    aco__inbox_forget(s, &s->dump_post);
    s->dumps = 0;
}

static int register_dumper(aco__tasks_t *s)
{
    for (int i = 0; i < MOST_DUMPERS; i++) {
        aco__tasks_t *none = NULL;
        if (__atomic_compare_exchange_n(&dumpers[i], &none, s, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return 0;
    }
    return -1;
}

int aco__dump_signal_start(aco__tasks_t *s, int signal, int fd, const char *call)
{
    int dumped = s->dumps != 0, fd_before = s->dump_fd, error = handle_forks();
    if (error)
        return aco__fail_memory(0, call, sizeof dumpers);
    s->dump_fd = fd;
    s->dump_post.run = dump_posted;
    if (!dumped && register_dumper(s) != 0)
        return aco__fail(0, EAGAIN, call, NULL, "%d threads have called it", MOST_DUMPERS);
    s->dumps = 1;
    if (aco__os_on_signal(signal, on_dump_signal) == 0)
        return 0;
    error = errno;
    s->dump_fd = fd_before;
    if (!dumped)
        aco__dump_signal_stop(s);
    return aco__fail(0, error, call, NULL, "no handler for signal %d: %s", signal, strerror(error));
}
