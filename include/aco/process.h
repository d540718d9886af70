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
 * Waits obey scopes (aco/scope.h). Errors are those of aco/io.h and the system. No pointer may be NULL unless its text
 * says so. A descriptor, an interrupt or a child belongs to the thread that has opened, begun or started it: that
 * thread makes all calls for it. Linux 5.3 and later. */
#ifndef ACO_PROCESS_H
#define ACO_PROCESS_H

#include "io.h"

#include <signal.h>

ACO__BEGIN_C

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

/* Any number of tasks, on any threads, may listen for a signal: by the calls below, or in a set of threads that signals
 * end (aco/threads.h). Each listener gets each signal. The system gives a signal for the whole process to any thread
 * that does not block it. So begin to listen before other threads are started: they inherit what is blocked. */

/* Opens an owned descriptor (aco/io.h) from which aco_signal_wait() gets the `n` signals, at least 1, of 1 to 64. It
 * can be waited for, but not read. aco_io_close() closes it. From now on the calling thread blocks these signals, also
 * after the close, and no aco_interrupt_end() unblocks them any more. Does not wait. Returns the descriptor; on error
 * -1 with errno EINVAL (NULL, no signals, no such signal, or one that cannot be blocked), ENOMEM, EMFILE, ENFILE, or
 * another one of signalfd(); then nothing is blocked. */
ACO_API int aco_signal_open(const int *signals, size_t n);
/* Waits for the next signal. If a signal comes several times before anybody waits for it, one of them stays. Of several
 * tasks that wait for one descriptor, one gets it. If `sender` is not NULL, *sender becomes the process that sent the
 * signal, or 0. Returns the signal's number; on error -1 with errno EBADF, EINVAL (the descriptor is not one of
 * aco_signal_open()), ETIMEDOUT, ECANCELED (also: closed meanwhile), ENOMEM, EPERM (the caller cannot wait). */
ACO_API int aco_signal_wait_at(int fd, pid_t *sender, const char *location);
#define aco_signal_wait(fd, sender) aco_signal_wait_at(fd, sender, ACO_PLACE)

/* A scope that a signal ends with ECANCELED. */
typedef struct aco_interrupt_s {
    aco_scope_t scope;
    int signal; /* the one that has come; 0: none yet */
    int aco__fd; /* -1: it has ended */
    aco_t *aco__task;
} aco_interrupt_t;

/* Begins such a scope. The calling task is inside until aco_interrupt_end(), and its thread blocks the `n` signals.
 * After the first signal this interrupt listens no more. If nobody else listens, the next of the signals does what it
 * would do without the interrupt: as a rule it ends the process. `interrupt` must stay where it is until
 * aco_interrupt_end(), which must be called also after a signal. Returns 0; on error -1, with nothing begun and errno
 * EINVAL (NULL, or `interrupt` is on a share stack), or one of aco_signal_open(), aco_scope_begin() or aco_spawn(). */
ACO_API int aco_interrupt_begin(aco_interrupt_t *interrupt, const int *signals, size_t n);
/* Leaves the scope. Signals for which nobody in the process listens any more do what they did before: the calling
 * thread unblocks what interrupts have blocked there. Another thread that listened does so when it runs tasks next.
 * Lets other tasks run meanwhile; no scope ends that wait. `signal` keeps its value. Returns 0; on error -1, with
 * nothing changed and errno EPERM (it is not the innermost scope), EINVAL (the caller is an inner coroutine on a share
 * stack: its task must make the call). */
ACO_API int aco_interrupt_end(aco_interrupt_t *interrupt);

/* ---- Child processes --------------------------------------------------------------------------------------------- */

enum {
    ACO_PROCESS_IN = 1,         /* a pipe to its standard input */
    ACO_PROCESS_OUT = 2,        /* a pipe from its standard output */
    ACO_PROCESS_ERR = 4,        /* a pipe from its standard error */
    ACO_PROCESS_ERR_TO_OUT = 8, /* its standard error goes where its standard output does */
    ACO_PROCESS_GROUP = 16      /* it leads a process group of its own, and signals go to the group */
};

/* A child. Read-only, except that `in`, `out` and `err` may be set to -1 after aco_io_close(). */
typedef struct aco_process_s {
    pid_t pid;        /* another process may get the number when the child was waited for */
    int in, out, err; /* owned descriptors of the pipes, or -1 */
    int status;       /* as waitpid() stores it; valid when the child has ended */
    int aco__fd;      /* -1: it was waited for */
    int aco__is_group;
} aco_process_t;

/* Starts the program argv[0], searched in PATH if it has no slash. `argv` and `environment` end with a NULL. Standard
 * descriptors that `flags` do not name are the caller's, and so is the environment if `environment` is NULL. Signals
 * are as at a program's start. The thread waits until the program has been loaded. The child must be ended by
 * aco_process_end(). Nothing else may take the child's end: SIGCHLD must not be ignored, and no other code may wait for
 * any child (waitpid(-1)). Returns 0; on error -1 with errno EINVAL (NULL, no argv[0], unknown flags, or both
 * ACO_PROCESS_ERR and ACO_PROCESS_ERR_TO_OUT), ENOMEM, EMFILE, ENFILE, one of posix_spawnp() (ENOENT, EACCES), ENOSYS
 * (Linux before 5.3); then nothing is open, no child is left, and aco_process_end() does nothing. */
ACO_API int aco_process_start(aco_process_t *process, const char *const argv[], unsigned flags,
                              const char *const environment[]);

/* Closes the pipe to the child's standard input, if it is open: the child reads the end of the stream. */
ACO_API void aco_process_close_input(aco_process_t *process);

/* Sends the child, or its group, a signal. Returns 0; on error -1 with errno ESRCH (it was waited for), EINVAL (no such
 * signal), EPERM (the child has become another user's). */
ACO_API int aco_process_signal(aco_process_t *process, int signal);

/* Waits until the child has ended. From then on `status` is valid. Several tasks may wait. Returns 0, also if it was
 * waited for before; on error -1 with errno ETIMEDOUT, ECANCELED, ENOMEM, EPERM (the caller cannot wait), ECHILD (other
 * code has taken the child's end: `status` is unknown). */
ACO_API int aco_process_wait_at(aco_process_t *process, const char *location);
#define aco_process_wait(process) aco_process_wait_at(process, ACO_PLACE)

/* Closes the pipe to the child's standard input. If the child has not ended, ends it: with SIGTERM, and at most
 * `grace_ns` nanoseconds later with SIGKILL. Waits until the child is gone, even if the scope ends, and then closes the
 * other pipes. A caller that cannot wait, or lacks memory to wait, kills the child at once and blocks its thread.
 * `status` is valid afterwards. A second call does nothing. */
ACO_API void aco_process_end_at(aco_process_t *process, int64_t grace_ns, const char *location);
#define aco_process_end(process, grace_ns) aco_process_end_at(process, grace_ns, ACO_PLACE)

/* ---- Standard descriptors ---------------------------------------------------------------------------------------- */

/* Opens an owned descriptor for the caller's standard input (0), output (1) or error (2), of any kind. A terminal, pipe
 * or device is opened once more, so it does not become non-blocking for others that use it. A file's offset stays
 * common with them. Only a socket, and what may not be opened again (another user's terminal), becomes non-blocking for
 * all. Close it by aco_io_close(); the caller's own stays. Does not wait. Returns the descriptor; on error -1 with
 * errno EBADF (`number` is not open), EMFILE, ENFILE, ENOMEM. */
ACO_API int aco_io_standard(int number);

ACO__END_C

#endif
