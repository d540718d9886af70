/* Backtraces of coroutines, from inside the process.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * For ELF systems on x86-64, i386, AArch64, RISC-V 64, LoongArch, Power and s390x; tested on the first two. Elsewhere,
 * and with ACO_CONFIG_UCONTEXT, the calls fail with ENOTSUP. Frames need unwind tables, as for a debugger: compilers
 * make them by default on these processors, and ACO_CONFIG_NO_CFI leaves them out. The unwinder is the compiler's; a C
 * program without one loads libgcc_s.so.1 or libunwind.so.1 at the first call. */
#ifndef ACO_BACKTRACE_H
#define ACO_BACKTRACE_H

#include "../aco.h"

ACO__BEGIN_C

/* Stores the return addresses of the frames of `co` in `frames`, the innermost first, and returns how many it stored:
 * at most `n`, and at most 65536. `co` may be a task. What it finds:
 *
 *   suspended    where it yielded or waits, then its callers, up to its entry function. It does not run, and nothing
 *                that it can see changes
 *   running      the place of this call, then the callers, up to the entry function
 *   resuming     where it resumed another coroutine, and so on. Its resumers are not included
 *   ready        the address of its entry function
 *   done         nothing: 0
 *
 * The innermost frames may be functions of this library. A walk ends early at a generator with a stack of its own.
 * While a coroutine that a task resumed waits in the task's name, the call for the task tells the frames of that
 * coroutine, and the other way round. The frames of a coroutine on a share stack may be in its save area: the call
 * restores them, which counts as a copy in the statistics of the coroutines. Needs about 8 KiB of free stack. -1 and
 * errno: EINVAL (NULL, a main coroutine object, `n` below 0, `frames` NULL), ESRCH (destroyed), EBUSY (resuming, and
 * its own frames are in the save area), EPERM (it belongs to another thread), ENOMEM, EAGAIN, ENOTSUP (see above; no
 * unwinder; a task on a share stack that does not run). Any thread that could resume `co`. */
ACO_API int aco_backtrace(const aco_t *co, void **frames, int n);

/* Writes the backtrace of `co` to the file descriptor `fd`, a line for each frame: number, address, file with the
 * offset for addr2line, and the function if the file exports it (-rdynamic for a program's own). At most 256 frames.
 * 0, or -1 and errno: as aco_backtrace() and write(). */
ACO_API int aco_backtrace_print(const aco_t *co, int fd);

ACO__END_C

#endif
