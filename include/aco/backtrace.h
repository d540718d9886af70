/* Backtraces of coroutines, from inside the process.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The calls work on ELF systems on x86-64, i386, AArch64, RISC-V 64, LoongArch, Power and s390x; they are tested on the
 * first two. Elsewhere, and with ACO_CONFIG_UCONTEXT, they fail with ENOTSUP. Frames need unwind tables, as for a
 * debugger. On these processors compilers make them by default; ACO_CONFIG_NO_CFI leaves them out. The unwinder is the
 * compiler's. A C program without one loads libgcc_s.so.1 or libunwind.so.1 at the first call. */
#ifndef ACO_BACKTRACE_H
#define ACO_BACKTRACE_H

#include "../aco.h"

ACO__BEGIN_C

/* Stores the return addresses of the frames of `co` in `frames`, the innermost first: at most `n`, and at most 65536.
 * `co` may be a task. What is stored depends on the state of `co`:
 *
 *   suspended    where it yielded or waits, then its callers, up to its entry function. It does not run, and nothing
 *                that it can see changes
 *   running      the place of this call, then the callers, up to the entry function
 *   resuming     where it resumed another coroutine, then the callers, up to the entry function. Its resumers are not
 *                included
 *   ready        the address of its entry function
 *   done         nothing
 *
 * The innermost frames may be functions of this library. A walk ends early at a generator with a stack of its own. A
 * coroutine that a task resumed may wait in the task's name: then the call for the task tells the frames of the
 * coroutine, and the call for the coroutine the frames of the task. The frames of a coroutine on a share stack may be
 * in its save area: the call restores them, which counts as a copy in the statistics of the coroutines. The call needs
 * about 8 KiB of free stack. Any thread that could resume `co`. Returns how many addresses it stored, 0 if `co` is
 * done; on error -1 with errno EINVAL (NULL, a main coroutine object, `n` below 0, `frames` NULL), ESRCH (destroyed),
 * EBUSY (resuming, and its own frames are in the save area), EPERM (it belongs to another thread), ENOMEM, EAGAIN,
 * ENOTSUP (not supported here: see above; no unwinder). */
ACO_API int aco_backtrace(const aco_t *co, void **frames, int n);

/* Writes the backtrace of `co` to the file descriptor `fd`, a line for each frame: its number, its address, the file
 * with the offset for addr2line, and the function if the file exports it (-rdynamic for a program's own). At most 256
 * frames. Returns 0; on error -1 with the errno of aco_backtrace() or write(). */
ACO_API int aco_backtrace_print(const aco_t *co, int fd);

ACO__END_C

#endif
