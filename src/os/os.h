/* What the library needs of the operating system: one contract, with one implementation in os/ for each family.
 *
 * Sizes and addresses are multiples of aco__os_page_size() unless a comment says otherwise. */
#ifndef ACO_OS_H
#define ACO_OS_H

#include "os/platform.h"

ACO__HIDDEN __attribute__((noinline)) size_t aco__os_page_size(void);

/* The kernel's limit on the number of mappings of a process; SIZE_MAX if there is none. */
ACO__HIDDEN size_t aco__os_mapping_limit(void);

/* Finds the limit that the failed request for `sz` bytes met and writes a sentence about it. Returns 1 for the limit on
 * mappings, 2 for another limit, 0 if it found none. */
ACO__HIDDEN int aco__os_limit_met(size_t sz, char *sentence, size_t room);

/* Zeroed memory, aligned to a page. A page uses memory from its first access on. NULL and errno on failure. */
ACO__HIDDEN void *aco__os_map(size_t sz);

/* The same, aligned to `sz`, which is a power of two. */
ACO__HIDDEN void *aco__os_map_aligned(size_t sz);

ACO__HIDDEN void aco__os_unmap(void *p, size_t sz);

#ifdef ACO__SHADOW_STACKS
/* A shadow stack of `sz` bytes with a restore token in its last 8 bytes. aco__os_unmap() frees it. NULL and errno on
 * failure. */
ACO__HIDDEN void *aco__os_map_shadow_stack(size_t sz);
#endif

/* These make a page inaccessible: by its page table entry alone; by a mapping of its own; by the first of the two that
 * works. 0, or -1 and errno. */
ACO__HIDDEN int aco__os_guard_in_tables(void *p, size_t sz);
ACO__HIDDEN int aco__os_guard_mapping(void *p, size_t sz);
ACO__HIDDEN int aco__os_guard(void *p, size_t sz);
/* Guards up to 64 pages of `sz` bytes, `step` bytes apart, in the page tables with one system call. Returns how many
 * pages it guarded; they are the first ones. */
ACO__HIDDEN unsigned aco__os_guard_many_in_tables(void *p, size_t sz, size_t step, unsigned n);

/* Makes a guarded page accessible again, however it was guarded. */
ACO__HIDDEN void aco__os_unguard(void *p, size_t sz);

/* Advice to the system, without effect where the system does not support it. Guards stay. aco__os_discard(): the
 * contents are no longer needed. `lazily`: the pages may stay until the system needs the memory. aco__os_large_pages():
 * large pages are wanted, or not. */
ACO__HIDDEN void aco__os_discard(void *p, size_t sz, int lazily);
ACO__HIDDEN void aco__os_large_pages(void *p, size_t sz, int wanted);

/* The number of bytes before the first page that is in memory; `sz` if no page is, 0 if the system cannot tell. */
ACO__HIDDEN size_t aco__os_first_resident(const void *p, size_t sz);

/* An environment variable; NULL in a process with more rights than its user (setuid). */
ACO__HIDDEN const char *aco__os_environment(const char *name);

/* Writes into text[sz] what is known about code at this address: its file, the offset there, the function. */
ACO__HIDDEN void aco__os_describe_code(const void *address, char *text, size_t sz);

/* Writes to a descriptor, all of the text. 0, or -1 and errno. Async-signal-safe, like the next. */
ACO__HIDDEN int aco__os_write(int file, const char *text, size_t length);
/* Writes to stderr. */
ACO__HIDDEN void aco__os_message(const char *text, size_t length);
/* Calls a function of the program's where no task may switch: hooks do what libc does meanwhile. */
ACO__HIDDEN void aco__os_call(void (*fn)(void *arg), void *arg);

/* Prints "acorn: " and `what` on stderr, then calls abort(). For failures after which the library cannot work. */
ACO__HIDDEN ACO__COLD __attribute__((noreturn)) void aco__os_die(const char *what);

/* Installs a handler of memory faults: it calls explain(address), then the handler that was installed before. It works
 * in threads that have an alternate signal stack. `politely`: not where a handler is installed that is not made for an
 * alternate stack, or the signal is ignored. The caller holds the process lock. Returns 1 if the handler is there for a
 * signal, 0 if not; -1 and errno on failure. */
ACO__HIDDEN int aco__os_explain_faults(void (*explain)(const void *address), int politely);

#ifndef _WIN32
/* Blocks signals in the calling thread: bit n - 1 is the signal n. Which of them were not blocked before. And unblocks
 * them. */
ACO__HIDDEN uint64_t aco__os_signals_block(uint64_t signals);
ACO__HIDDEN void aco__os_signals_unblock(uint64_t signals);
#endif

/* Installs a handler of this signal: it calls fn(), with errno kept. 0, or -1 and errno. */
ACO__HIDDEN int aco__os_on_signal(int signal, void (*fn)(void));

/* Makes the `sz` bytes at `p` the calling thread's alternate signal stack and returns 1. Returns 0 if the thread has
 * one already; -1 and errno on failure. */
ACO__HIDDEN int aco__os_signal_stack(void *p, size_t sz);
/* Takes that stack from the thread, if it is still the thread's. 1; 0: a handler runs on it. */
ACO__HIDDEN int aco__os_signal_stack_end(const void *p);

/* Looks up `n` functions of the C++ run time's unwinder. 1 if the process has loaded one that has them all, else 0.
 * `load`: loads one if it has not. */
ACO__HIDDEN int aco__os_loaded_unwinder(const char *const names[], void *symbols[], int n, int load);

#if defined(_WIN32) || defined(__APPLE__)
/* Looks up a function of the C++ run time: 1 if the process has loaded one, else 0. On Windows its DLL then stays
 * loaded. */
ACO__HIDDEN int aco__os_loaded_cxx(const char *name, void *(**symbol)(void));
#endif

/* Calls fn(arg) when the calling thread ends. Every call passes the same `fn`. `arg` is not NULL. Under
 * ACO__THREAD_SLOT `arg` is the thread record, and the call stores it in the thread's slot. */
ACO__HIDDEN void aco__os_at_thread_exit(void (*fn)(void *), void *arg);
#ifdef ACO__THREAD_SLOT
/* Clears the slot: code of this thread that runs later gets a new record. */
ACO__HIDDEN void aco__os_slot_clear(void);
#endif

/* One mutex for the process; base/lock.c uses it. */
ACO__HIDDEN void aco__os_lock(void);
ACO__HIDDEN void aco__os_unlock(void);

/* Calls these functions around each fork(); does nothing on systems without fork(). 0, or an error number. */
ACO__HIDDEN int aco__os_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void));

ACO__HIDDEN long aco__os_process_number(void);

#ifdef ACO_CONFIG_UCONTEXT
/* ---- ucontext.c: the fallback's switches ---- */
ACO__HIDDEN void aco__outermost(void); /* the first function of every stack */
ACO__HIDDEN_EXTERN const size_t aco__os_switch_frame; /* bytes of stack that a switch uses, roughly */
ACO__HIDDEN void aco__os_outermost_calls(void (*returned)(void), void (*landed)(void *exception));
#endif

#ifdef _WIN32
/* Calls fn() when the library is unloaded while the process continues. */
ACO__HIDDEN void aco__os_at_unload(void (*fn)(void));
#else

/* ---- The watchdog's thread and its signal: posix_watchdog.c ---- */

/* Protects what the watchdog uses. Not held in a child of fork(). */
ACO__HIDDEN void aco__os_watch_lock(void);
ACO__HIDDEN void aco__os_watch_unlock(void);
/* Has the watchdog's thread call tick() every `interval` nanoseconds, with the lock, and starts it if it does not run.
 * A child of fork(), which does not have the thread, calls child(). The caller holds the lock. 0, or an error
 * number. */
ACO__HIDDEN int aco__os_watch_start(void (*tick)(void), int64_t interval, void (*child)(void));
/* Ends the thread, waits for that, and releases the lock, which the caller holds. */
ACO__HIDDEN void aco__os_watch_stop(void);
/* Prepares for the watchdog's signal to the calling thread: a handler, on its alternate signal stack, calls
 * handler(address), where `address` is that to which the signal's handler returns. Returns the thread for the next
 * function; 0: the program uses the signal itself, or has a small signal stack. */
ACO__HIDDEN uintptr_t aco__os_watch_this_thread(void (*handler)(const void *handler_returns));
/* Sends the signal. 0, or -1: not possible. */
ACO__HIDDEN int aco__os_watch_signal(uintptr_t thread);

/* ---- For traces: posix_trace.c ---- */

ACO__HIDDEN long aco__os_thread_number(void);
/* The calling thread's name, or "". */
ACO__HIDDEN void aco__os_thread_name(char *name, size_t sz);
/* Creates an empty file. Returns its descriptor, or -1 and errno. */
ACO__HIDDEN int aco__os_file_new(const char *path);
/* Writes all `sz` bytes at this offset. 0, or -1 and errno. */
ACO__HIDDEN int aco__os_file_write(int file, const char *text, size_t sz, int64_t at);
ACO__HIDDEN int aco__os_file_truncate(int file, int64_t sz);
/* The trace's lock. aco__os_trace_try_lock() waits at most this many milliseconds and returns 1 if the caller holds the
 * lock. A child of fork() calls aco__os_trace_lock_anew(), which makes the lock free again. */
ACO__HIDDEN void aco__os_trace_lock(void);
ACO__HIDDEN int aco__os_trace_try_lock(int milliseconds);
ACO__HIDDEN void aco__os_trace_unlock(void);
ACO__HIDDEN void aco__os_trace_lock_anew(void);
/* Calls fn() in a signal that is about to end the process, where the program has no handler for it. */
ACO__HIDDEN void aco__os_at_fatal_signal(void (*fn)(void));
#endif

#endif
