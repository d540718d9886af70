#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_* under -std=c11 */
#endif
#include "../os.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

size_t aco__os_page_size(void)
{
    static size_t size;
    size_t known = __atomic_load_n(&size, __ATOMIC_RELAXED);
    if (!known) {
        known = (size_t)sysconf(_SC_PAGESIZE);
        __atomic_store_n(&size, known, __ATOMIC_RELAXED);
    }
    return known;
}

size_t aco__os_mapping_limit_reached(const char **setting)
{
#ifdef __linux__
    char buffer[4096]; /* no memory: there may be none */
    size_t limit = 0, mappings = 0;
    ssize_t n;
    int file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    *setting = "vm.max_map_count";
    if (file < 0)
        return 0;
    n = read(file, buffer, sizeof buffer);
    for (ssize_t i = 0; i < n && buffer[i] >= '0' && buffer[i] <= '9'; i++)
        limit = limit * 10 + (size_t)(buffer[i] - '0');
    close(file);
    file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    while ((n = read(file, buffer, sizeof buffer)) > 0)
        for (ssize_t i = 0; i < n; i++)
            mappings += buffer[i] == '\n';
    close(file);
    return limit && mappings + 2 >= limit ? limit : 0;
#else
    *setting = "";
    return 0;
#endif
}

void *aco__os_map(size_t sz)
{
    void *p = mmap(NULL, sz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *aco__os_map_aligned(size_t sz)
{
    char *p = aco__os_map(sz), *aligned;
    size_t before;
    if (!p || ((uintptr_t)p & (sz - 1)) == 0) /* the kernel places mappings of one size side by side: the usual case */
        return p;
    aco__os_unmap(p, sz);
    p = aco__os_map(2 * sz);
    if (!p)
        return NULL;
    before = (0 - (uintptr_t)p) & (sz - 1);
    aligned = p + before;
    if (before)
        aco__os_unmap(p, before);
    if (before < sz)
        aco__os_unmap(aligned + sz, sz - before);
    return aligned;
}

void aco__os_unmap(void *p, size_t sz)
{
    int saved = errno;
    munmap(p, sz);
    errno = saved;
}

/* Linux 6.13's MADV_GUARD_INSTALL: a guard that is not a mapping of its own; and its opposite. */
enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103 };

int aco__os_guard(void *p, size_t sz)
{
#ifdef __linux__
    int saved = errno;
    if (madvise(p, sz, GUARD_INSTALL) == 0)
        return 0;
    errno = saved;
#endif
    return mprotect(p, sz, PROT_NONE);
}

void aco__os_unguard(void *p, size_t sz)
{
    int saved = errno;
#ifdef __linux__
    madvise(p, sz, GUARD_REMOVE);
#endif
    mprotect(p, sz, PROT_READ | PROT_WRITE);
    errno = saved;
}

void aco__os_discard(void *p, size_t sz)
{
    int saved = errno;
    madvise(p, sz, MADV_DONTNEED);
    errno = saved;
}

void aco__os_prefer_large_pages(void *p, size_t sz)
{
#ifdef MADV_HUGEPAGE
    int saved = errno;
    madvise(p, sz, MADV_HUGEPAGE);
    errno = saved;
#else
    (void)p, (void)sz;
#endif
}

void aco__os_message(const char *text, size_t length)
{
    while (length) {
        ssize_t n = write(STDERR_FILENO, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        text += n;
        length -= (size_t)n;
    }
}

static const int fault_signals[] = {SIGSEGV, SIGBUS};
enum { FAULTS = sizeof fault_signals / sizeof *fault_signals };
static struct sigaction previous[FAULTS];
static void (*explainer)(const void *address);

static void on_fault(int signal, siginfo_t *info, void *context)
{
    const struct sigaction *next = &previous[signal == fault_signals[1]];
    explainer(info->si_addr);
    if (next->sa_flags & SA_SIGINFO) {
        next->sa_sigaction(signal, info, context);
    } else if (next->sa_handler != SIG_DFL && next->sa_handler != SIG_IGN) {
        next->sa_handler(signal);
    } else { /* the access is made again, and ends the process */
        struct sigaction none = {0};
        none.sa_handler = SIG_DFL;
        sigaction(signal, &none, NULL);
    }
}

int aco__os_explain_faults(void (*explain)(const void *address))
{
    struct sigaction ours = {0};
    int failed = 0;
    aco__os_lock();
    if (!explainer) {
        explainer = explain;
        ours.sa_sigaction = on_fault;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&ours.sa_mask);
        for (int i = 0; i < FAULTS; i++)
            failed |= sigaction(fault_signals[i], &ours, &previous[i]);
    }
    aco__os_unlock();
    return failed ? -1 : 0;
}

int aco__os_signal_stack(void *p, size_t sz)
{
    stack_t now, wanted = {0};
    if (sigaltstack(NULL, &now) != 0)
        return -1;
    if (p && !(now.ss_flags & SS_DISABLE))
        return 0;
    wanted.ss_sp = p;
    wanted.ss_size = sz;
    wanted.ss_flags = p ? 0 : SS_DISABLE;
    return sigaltstack(&wanted, NULL) == 0 ? 1 : -1;
}

/* Weak: a static program has none. */
#pragma weak dlopen
#pragma weak dlsym

int aco__os_loaded_unwinder(const char *const names[], void *symbols[], int n)
{
    static const char *const libraries[] = {"libgcc_s.so.1", "libunwind.so.1"};
    void *library = NULL;
    int found = 0;
    if (!dlopen || !dlsym)
        return 0;
    for (int i = 0; i < 2 && !library; i++)
        library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
    while (library && found < n && (symbols[found] = dlsym(library, names[found])) != NULL)
        found++;
    return library && found == n;
}

static pthread_key_t thread_exit_key;
static pthread_once_t thread_exit_once = PTHREAD_ONCE_INIT;
static int thread_exit_key_made;
static void (*thread_exit_function)(void *);

static void make_thread_exit_key(void)
{
    thread_exit_key_made = pthread_key_create(&thread_exit_key, __atomic_load_n(&thread_exit_function, __ATOMIC_ACQUIRE)) == 0;
}

void aco__os_at_thread_exit(void (*fn)(void *), void *arg)
{
    __atomic_store_n(&thread_exit_function, fn, __ATOMIC_RELEASE);
    pthread_once(&thread_exit_once, make_thread_exit_key);
    if (thread_exit_key_made)
        pthread_setspecific(thread_exit_key, arg); /* failing, the thread's memory waits for the process to end */
}

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;

void aco__os_lock(void)
{
    pthread_mutex_lock(&process_lock);
}

void aco__os_unlock(void)
{
    pthread_mutex_unlock(&process_lock);
}
