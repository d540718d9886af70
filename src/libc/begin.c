/* The calls of aco/hook.h. */
#include "libc/handlers.h"
#include "libc/hooked.h"
#include "libc/libc.h"
#include "libc/locks.h"
#include "libc/look_up.h"

#include "aco/detail/poller.h"

#include <dlfcn.h>

/* Whether libc's names lead to the hooks: for the program and what it has loaded. */
static int hooks_are_found(void)
{
    static int are_found; /* atomic */
    void *symbol = dlsym(RTLD_DEFAULT, "read");
    ssize_t (*call)(int fd, void *p, size_t n);
    int error = errno;
    if (!symbol || __atomic_load_n(&are_found, __ATOMIC_RELAXED))
        return symbol != NULL;
    memcpy(&call, &symbol, sizeof symbol);
    aco__hook_self.tasks++;
    aco__hook_self.probe = 1;
    (void)call(-1, NULL, 0);
    errno = error;
    __atomic_store_n(&are_found, aco__hook_self.probe == 2, __ATOMIC_RELAXED);
    aco__hook_self.probe = 0;
    aco__hook_self.tasks--;
    return __atomic_load_n(&are_found, __ATOMIC_RELAXED);
}

/* 0, or -1 and errno. */
static int check_place(const char *call)
{
    static const char *const here[] = {&aco__hooks_of_sockets,    &aco__hooks_of_files,     &aco__hooks_of_polls,
                                       &aco__hooks_of_time,       &aco__hooks_of_names,     &aco__hooks_of_locks,
                                       &aco__hooks_of_file_locks, &aco__hooks_of_processes, &aco__hooks_of_batches,
                                       &aco__hooks_of_signals,    &aco__hooks_of_runs};
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (!*here[i] || !hooks_are_found())
            return aco__service_fail(ENOTSUP, call,
                                     "the program finds libc's functions before acorn_hook's: link it "
                                     "with the program, before other libraries, or name libacorn_hook.so in "
                                     "LD_PRELOAD");
    if (aco__hook_is_sanitized() && !aco__hook_is_first())
        return aco__service_fail(ENOTSUP, call,
                                 "the program finds a sanitizer's functions before acorn_hook's: link the "
                                 "static library");
    return 0;
}

static void begin_locks_and_signals(void)
{
    aco__hook_locks_begin();
    aco__hook_signals_begin();
}

static int begin(const char *call)
{
    return check_place(call) == 0 ? aco__hook_begin(begin_locks_and_signals, aco__hook_run_begin, call) : -1;
}

int aco_hook_begin(void)
{
    static const char call[] = "aco_hook_begin";
    return begin(call) == 0 ? aco__hook_task_begin(call) : -1;
}

int aco_hook_begin_all(void)
{
    static const char call[] = "aco_hook_begin_all";
    return begin(call) == 0 ? aco__hook_begin_everyone(call) : -1;
}

int aco_hook_end(void)
{
    return aco__hook_task_end("aco_hook_end");
}

int aco_hook_active(void)
{
    return aco__hooked();
}

int aco_hook_stats(aco_hook_stats_t *stats)
{
    if (!stats)
        return aco__service_fail(EINVAL, "aco_hook_stats", "the pointer to the statistics is NULL");
    *stats = aco__hook_self.stats;
    return 0;
}
