/* The operating system behind one contract; one implementation in os/ for each family.
 *
 * Sizes and addresses are multiples of aco__os_page_size() unless said otherwise. */
#ifndef ACO_OS_H
#define ACO_OS_H

#include "os/platform.h"

ACO__HIDDEN size_t aco__os_page_size(void);

/* The kernel's limit on a process's mappings; SIZE_MAX where there is none. */
ACO__HIDDEN size_t aco__os_mapping_limit(void);

/* Which limit the request for `sz` bytes that just failed has met: writes a sentence and returns 1 for the limit on mappings, 2
 * for another one; 0: none that is known. */
ACO__HIDDEN int aco__os_limit_met(size_t sz, char *sentence, size_t room);

/* Zeroed memory that counts as used when touched, aligned to a page. NULL and errno on failure. */
ACO__HIDDEN void *aco__os_map(size_t sz);

/* The same aligned to `sz`, a power of two. */
ACO__HIDDEN void *aco__os_map_aligned(size_t sz);

ACO__HIDDEN void aco__os_unmap(void *p, size_t sz);

#ifdef ACO__SHADOW_STACKS
/* A shadow stack of `sz` bytes, with a restore token in its last 8. aco__os_unmap() takes it back. NULL and errno. */
ACO__HIDDEN void *aco__os_map_shadow_stack(size_t sz);
#endif

/* Makes a page inaccessible: by its page table entry alone, by a mapping of its own, or as can be. 0, or -1 and errno. */
ACO__HIDDEN int aco__os_guard_in_tables(void *p, size_t sz);
ACO__HIDDEN int aco__os_guard_mapping(void *p, size_t sz);
ACO__HIDDEN int aco__os_guard(void *p, size_t sz);
/* In the tables for up to 64 pages of `sz` bytes, `step` apart, by one system call; returns how many got their guard, the first
 * ones. */
ACO__HIDDEN unsigned aco__os_guard_many_in_tables(void *p, size_t sz, size_t step, unsigned n);

/* Undoes any of them. */
ACO__HIDDEN void aco__os_unguard(void *p, size_t sz);

/* Advice, without effect where the system knows none: the contents are not needed (`lazily`: until the system needs the
 * memory, they may stay); large pages are wanted, or not. Guards stay. */
ACO__HIDDEN void aco__os_discard(void *p, size_t sz, int lazily);
ACO__HIDDEN void aco__os_large_pages(void *p, size_t sz, int wanted);

/* How many of these bytes come before the first page that is in memory; `sz` where none is, 0 where the system cannot say. */
ACO__HIDDEN size_t aco__os_first_resident(const void *p, size_t sz);

/* Writes to stderr, from any context. */
ACO__HIDDEN void aco__os_message(const char *text, size_t length);

/* Prints "acorn: " and this on stderr, then abort(): for what the library cannot live without. */
ACO__HIDDEN ACO__COLD __attribute__((noreturn)) void aco__os_die(const char *what);

/* Calls explain(address) when a thread with an alternate signal stack accesses what it may not, then what was set for that
 * before. Under the process lock. 0, or -1 and errno. */
ACO__HIDDEN int aco__os_explain_faults(void (*explain)(const void *address));

/* Makes `sz` bytes the calling thread's alternate signal stack, unless it has one: 1; it had: 0; -1 and errno. NULL: none any
 * more. */
ACO__HIDDEN int aco__os_signal_stack(void *p, size_t sz);

/* The addresses of `n` functions of the C++ run time's unwinder, if the process has one loaded: 1. Else 0. */
ACO__HIDDEN int aco__os_loaded_unwinder(const char *const names[], void *symbols[], int n);

#if defined(_WIN32) || defined(__APPLE__)
/* The address of a function of the C++ run time, if the process has one loaded: 1. Else 0. On Windows its DLL then stays loaded. */
ACO__HIDDEN int aco__os_loaded_cxx(const char *name, void *(**symbol)(void));
#endif

/* Calls fn(arg), the same `fn` in every call, when the calling thread ends. `arg` is not NULL. Under ACO__THREAD_SLOT it is the
 * thread's record, and stands in the slot from now on. */
ACO__HIDDEN void aco__os_at_thread_exit(void (*fn)(void *), void *arg);
#ifdef ACO__THREAD_SLOT
/* Takes it out again: what ends after it begins with a new one. */
ACO__HIDDEN void aco__os_slot_clear(void);
#endif

/* One mutex for the process: base/lock.c's. */
ACO__HIDDEN void aco__os_lock(void);
ACO__HIDDEN void aco__os_unlock(void);

/* Calls these around each fork(); nothing where there is no fork(). 0, or an error. */
ACO__HIDDEN int aco__os_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void));

#ifdef ACO_CONFIG_UCONTEXT
/* ---- ucontext.c: the fallback's switches ---- */

ACO__HIDDEN void aco__outermost(void); /* every stack's first function */
ACO__HIDDEN extern const size_t aco__os_switch_frame; /* bytes that a switch has on the stack, about */
ACO__HIDDEN void aco__os_outermost_calls(void (*returned)(void), void (*landed)(void *exception));
#endif

#ifdef _WIN32
/* Calls fn() when the library is unloaded while the process goes on. */
ACO__HIDDEN void aco__os_at_unload(void (*fn)(void));
#else

/* ---- For traces: posix_trace.c ---- */

/* An environment variable; NULL in a process that has more rights than who runs it. */
ACO__HIDDEN const char *aco__os_environment(const char *name);
ACO__HIDDEN long aco__os_process_number(void);
ACO__HIDDEN long aco__os_thread_number(void);
/* The calling thread's name, or "". */
ACO__HIDDEN void aco__os_thread_name(char *name, size_t sz);
/* A new, empty file. Its number, or -1 and errno. */
ACO__HIDDEN int aco__os_file_new(const char *path);
/* Writes all of it at this offset. 0, or -1 and errno. */
ACO__HIDDEN int aco__os_file_write(int file, const char *text, size_t sz, int64_t at);
ACO__HIDDEN int aco__os_file_truncate(int file, int64_t sz);
/* The trace's lock. Trying takes up to so many milliseconds: 1 if the caller has it. A child of fork() makes it anew. */
ACO__HIDDEN void aco__os_trace_lock(void);
ACO__HIDDEN int aco__os_trace_try_lock(int milliseconds);
ACO__HIDDEN void aco__os_trace_unlock(void);
ACO__HIDDEN void aco__os_trace_lock_anew(void);
#endif

#endif
