/* Signals as values, child processes, and the standard descriptors. In the library acorn_io.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_interrupt_t ctrl_c;
 *   aco_interrupt_begin(&ctrl_c, (const int[]){SIGINT, SIGTERM}, 2);
 *   serve(listener);                  // its waits fail with ECANCELED after a Ctrl-C
 *   aco_interrupt_end(&ctrl_c);
 *
 *   aco_process_t child;
 *   if (aco_process_start(&child, (const char *const[]){"sort", NULL}, ACO_PROCESS_IN | ACO_PROCESS_OUT, NULL) == 0) {
 *       ...                           // write to child.in, read from child.out
 *       aco_process_wait(&child);     // fails if the task's scope ends
 *       aco_process_end(&child, ACO_SECOND);
 *   }
 *
 * Waits obey scopes (aco/scope.h), and errors are those of aco/io.h and the system. Linux 5.3 and later. */
#ifndef ACO_PROCESS_H
#define ACO_PROCESS_H

#include "io.h"

#include <signal.h>

ACO__BEGIN_C

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

/* Any number of tasks, on any threads, may listen for a signal, by the calls below or in a set of threads that signals
 * end (aco/threads.h): each of them gets it. A signal for the whole process goes to any thread that does not block it.
 * So begin to listen before other threads are started: they inherit what is blocked. */

/* An owned descriptor (aco/io.h) from which aco_signal_wait() gets these signals; it can be waited for, but not read.
 * The calling thread blocks them from now on, also after aco_io_close(), and no aco_interrupt_end() unblocks them any
 * more. -1 and errno: EINVAL (no such signal, or one that cannot be blocked), ENOMEM, those of signalfd(). */
ACO_API int aco_signal_open(const int *signals, size_t n);
/* Waits for the next signal: its number. Of several of a number that nobody has waited for yet, one stays. If `sender`
 * is not NULL, *sender becomes the process that sent it, or 0. -1 and errno. */
ACO_API int aco_signal_wait_at(int fd, pid_t *sender, const char *location);
#define aco_signal_wait(fd, sender) aco_signal_wait_at(fd, sender, ACO_PLACE)

/* A scope that a signal ends with ECANCELED. */
typedef struct aco_interrupt_s {
    aco_scope_t scope;
    int signal; /* which it was; 0: none yet */
    int aco__fd; /* -1: it has ended */
    aco_t *aco__task;
} aco_interrupt_t;

/* Begins such a scope: the calling task is inside until aco_interrupt_end(). The thread blocks the signals. Once one
 * has come, this interrupt listens no more: unless others do, one more of the signals does what it would do without
 * this, as a rule it ends the process. `interrupt` must not be on a share stack. 0, or -1 and errno: those of
 * aco_signal_open(), aco_scope_begin() and aco_spawn(). */
ACO_API int aco_interrupt_begin(aco_interrupt_t *interrupt, const int *signals, size_t n);
/* Leaves it. Signals for which nobody in the process listens any more do what they did before: the calling thread
 * unblocks what interrupts have blocked there; another thread that listened does so when it runs tasks next. 0, or -1
 * and errno, with nothing changed: EPERM (it is not the innermost scope), EINVAL (the caller is an inner coroutine on a
 * share stack: its task must do it). */
ACO_API int aco_interrupt_end(aco_interrupt_t *interrupt);

/* ---- Child processes --------------------------------------------------------------------------------------------- */

enum {
    ACO_PROCESS_IN = 1,         /* a pipe to its standard input */
    ACO_PROCESS_OUT = 2,        /* one from its standard output */
    ACO_PROCESS_ERR = 4,        /* one from its standard error */
    ACO_PROCESS_ERR_TO_OUT = 8, /* its standard error goes where its standard output does */
    ACO_PROCESS_GROUP = 16      /* it leads a process group of its own, and signals go to the group */
};

/* A child. Read-only; but `in`, `out` and `err` may be set to -1 after aco_io_close(). */
typedef struct aco_process_s {
    pid_t pid;
    int in, out, err; /* owned descriptors of the pipes, or -1 */
    int status;       /* as of waitpid(), when it has ended */
    int aco__fd;      /* -1: it was waited for */
    int aco__is_group;
} aco_process_t;

/* Starts the program argv[0], looked for in PATH if it has no slash. The other standard descriptors are the caller's,
 * signals as at a program's start, and `environment` NULL is the caller's. The child must be ended by
 * aco_process_end(). The thread waits until the program was loaded. Nothing else may take the child's end: SIGCHLD must
 * not be ignored, and no other code wait for any child (waitpid(-1)). 0, or -1 and errno: those of posix_spawnp()
 * (ENOENT, EACCES) and pipe2(), EINVAL (flags), ENOSYS (Linux before 5.3). */
ACO_API int aco_process_start(aco_process_t *process, const char *const argv[], unsigned flags,
                              const char *const environment[]);

/* Closes the pipe to its standard input: the child reads the end of the stream. */
ACO_API void aco_process_close_input(aco_process_t *process);

/* Sends it a signal. 0, or -1 and errno: ESRCH (it was waited for), EINVAL. */
ACO_API int aco_process_signal(aco_process_t *process, int signal);

/* Waits until it has ended; then, and ever after, `status` is valid. Several tasks may wait. 0, or -1 and errno. */
ACO_API int aco_process_wait_at(aco_process_t *process, const char *location);
#define aco_process_wait(process) aco_process_wait_at(process, ACO_PLACE)

/* Closes the pipe to its input and, if the child has not ended, ends it: SIGTERM, at most `grace_ns` nanoseconds later
 * SIGKILL. Waits until it is gone, whatever scopes say; a caller that cannot wait kills at once and blocks its thread.
 * Then closes the other pipes. `status` is valid afterwards. */
ACO_API void aco_process_end_at(aco_process_t *process, int64_t grace_ns, const char *location);
#define aco_process_end(process, grace_ns) aco_process_end_at(process, grace_ns, ACO_PLACE)

/* ---- Standard descriptors ---------------------------------------------------------------------------------------- */

/* An owned descriptor for the caller's standard input (0), output (1) or error (2), of whatever kind: a terminal, pipe
 * or device is opened once more, so that it does not become non-blocking for others that share it, and of a file the
 * offset stays shared. Only a socket, and what may not be opened again (another user's terminal), becomes non-blocking
 * for all. -1 and errno: EBADF, EMFILE. */
ACO_API int aco_io_standard(int number);

ACO__END_C

#endif
