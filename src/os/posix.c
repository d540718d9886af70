/* The contract of os.h on POSIX systems: memory, guard pages, fault handlers, thread exits, locks. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_*, secure_getenv under -std=c11 */
#endif
#include "os/os.h"
#include "system/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#endif
#include <unistd.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

size_t aco__os_page_size(void)
{
    static size_t size;
    size_t known = __atomic_load_n(&size, __ATOMIC_RELAXED);
    if (!known) {
        long answer = aco__system.sysconf(_SC_PAGESIZE);
        if (answer <= 0)
            aco__os_die("sysconf(_SC_PAGESIZE) failed");
        known = (size_t)answer;
        __atomic_store_n(&size, known, __ATOMIC_RELAXED);
    }
    return known;
}

#ifdef __linux__
/* Reads a file's first bytes as a string. The caller passes the buffer, because no memory may be left. */
static const char *read_file(const char *path, char *buffer, size_t sz)
{
    int file = aco__system.open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? 0 : aco__system.read(file, buffer, sz - 1);
    if (file >= 0)
        aco__system.close(file);
    buffer[n < 0 ? 0 : n] = 0;
    return buffer;
}

/* Whether another `sz` bytes exceed this limit. /proc/self/statm has what the limit counts, in pages, as its word
 * number `words`. */
static int is_over(int resource, int words, size_t sz)
{
    struct rlimit limit;
    char text[128], *p = text;
    unsigned long long pages = 0;
    read_file("/proc/self/statm", text, sizeof text);
    for (int i = 0; i <= words; i++)
        pages = strtoull(p, &p, 10);
    return aco__system.getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           pages * aco__os_page_size() + 2 * (unsigned long long)sz > (unsigned long long)limit.rlim_cur;
}

static size_t mappings(void)
{
    char buffer[4096];
    size_t count = 0;
    ssize_t n;
    int file = aco__system.open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    while ((n = aco__system.read(file, buffer, sizeof buffer)) > 0)
        for (ssize_t i = 0; i < n; i++)
            count += buffer[i] == '\n';
    aco__system.close(file);
    return count;
}
#endif

size_t aco__os_mapping_limit(void)
{
#ifdef __linux__
    char text[32];
    size_t limit = strtoul(read_file("/proc/sys/vm/max_map_count", text, sizeof text), NULL, 10);
    return limit ? limit : 65530;
#else
    return SIZE_MAX;
#endif
}

int aco__os_limit_met(size_t sz, char *sentence, size_t room)
{
    int saved = errno, met = 0;
#ifdef __linux__
    char text[128];
    size_t limit = aco__os_mapping_limit();
    if (mappings() + 2 >= limit) {
        snprintf(sentence, room, "the process has the %zu mappings that vm.max_map_count allows", limit);
        met = 1;
    } else if (is_over(RLIMIT_AS, 0, sz)) {
        snprintf(sentence, room, "the process has reached RLIMIT_AS (ulimit -v)");
        met = 2;
    } else if (is_over(RLIMIT_DATA, 5, sz)) {
        snprintf(sentence, room, "the process has reached RLIMIT_DATA (ulimit -d)");
        met = 2;
    } else if (read_file("/proc/sys/vm/overcommit_memory", text, sizeof text)[0] == '2') {
        snprintf(sentence, room,
                 "vm.overcommit_memory is 2, and the system has reached the limit of vm.overcommit_ratio");
        met = 2;
    }
#else
    (void)sz, (void)sentence, (void)room;
#endif
    errno = saved;
    return met;
}

void *aco__os_map(size_t sz)
{
    void *p = aco__system.mmap(NULL, sz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    return p == MAP_FAILED ? NULL : p;
}

#ifdef ACO__SHADOW_STACKS
void *aco__os_map_shadow_stack(size_t sz)
{
    enum { WITH_TOKEN = 1 }; /* asm/mman.h of Linux 6.6 */
    void *p = aco__system.map_shadow_stack(NULL, sz, WITH_TOKEN);
    return p == MAP_FAILED ? NULL : p;
}
#endif

void *aco__os_map_aligned(size_t sz)
{
    char *p = aco__os_map(sz), *aligned;
    size_t before;
    if (!p || ((uintptr_t)p & (sz - 1)) == 0) /* the usual case: the kernel places mappings of one size side by side */
        return p;
    aco__os_unmap(p, sz);
    p = aco__os_map(2 * sz);
    if (!p)
        return NULL;
    before = (0 - (uintptr_t)p) & (sz - 1);
    aligned = p + before;
    if (before)
        aco__os_unmap(p, before);
    aco__os_unmap(aligned + sz, sz - before);
    return aligned;
}

void aco__os_unmap(void *p, size_t sz)
{
    int saved = errno;
    aco__system.munmap(p, sz);
    errno = saved;
}

/* MADV_GUARD_INSTALL of Linux 6.13 makes a guard that is not a mapping of its own; MADV_GUARD_REMOVE removes it. */
enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103 };

#ifdef __linux__
/* Whether the kernel can write to this page. */
static int is_writable(void *p)
{
    return aco__system.uname(p) == 0;
}
#endif

int aco__os_guard_in_tables(void *p, size_t sz)
{
#ifdef __linux__
    enum { NEVER_TRIED, WORKS, IS_UNKNOWN };
    static int known; /* atomic */
    int so_far = __atomic_load_n(&known, __ATOMIC_RELAXED), now, result;
    if (so_far == IS_UNKNOWN) {
        errno = EINVAL;
        return -1;
    }
    result = aco__system.madvise(p, sz, GUARD_INSTALL);
    now = result != 0 && errno == EINVAL ? IS_UNKNOWN : result != 0 ? so_far : WORKS;
    if (now == WORKS && so_far == NEVER_TRIED && is_writable(p)) { /* qemu-user returns 0 for advice it does not know */
        errno = EINVAL;
        result = -1;
        now = IS_UNKNOWN;
    }
    if (now != so_far)
        __atomic_store_n(&known, now, __ATOMIC_RELAXED);
    return result;
#else
    (void)p, (void)sz;
    errno = ENOSYS;
    return -1;
#endif
}

unsigned aco__os_guard_many_in_tables(void *p, size_t sz, size_t step, unsigned n)
{
#ifdef __linux__
    enum { MOST = 64, THIS_PROCESS = -10000 /* Linux 6.15's PIDFD_SELF_THREAD */ };
    static int is_unknown; /* atomic: the system does not have the call */
    struct iovec pages[MOST];
    int saved = errno;
    ssize_t done;
    if (__atomic_load_n(&is_unknown, __ATOMIC_RELAXED) || n == 0)
        return 0;
    if (n > MOST)
        n = MOST;
    for (unsigned i = 0; i < n; i++) {
        pages[i].iov_base = (char *)p + i * step;
        pages[i].iov_len = sz;
    }
    done = aco__system.process_madvise(THIS_PROCESS, pages, n, GUARD_INSTALL, 0);
    if (done < 0 && errno != ENOMEM && errno != EAGAIN)
        __atomic_store_n(&is_unknown, 1, __ATOMIC_RELAXED);
    errno = saved;
    return done > 0 ? (unsigned)((size_t)done / sz) : 0;
#else
    (void)p, (void)sz, (void)step, (void)n;
    return 0;
#endif
}

int aco__os_guard_mapping(void *p, size_t sz)
{
    return aco__system.mprotect(p, sz, PROT_NONE);
}

int aco__os_guard(void *p, size_t sz)
{
    int saved = errno;
    if (aco__os_guard_in_tables(p, sz) == 0)
        return 0;
    errno = saved;
    return aco__os_guard_mapping(p, sz);
}

static void advise(void *p, size_t sz, int advice)
{
    int saved = errno;
    aco__system.madvise(p, sz, advice);
    errno = saved;
}

void aco__os_unguard(void *p, size_t sz)
{
    int saved = errno;
#ifdef __linux__
    advise(p, sz, GUARD_REMOVE);
#endif
    aco__system.mprotect(p, sz, PROT_READ | PROT_WRITE);
    errno = saved;
}

void aco__os_discard(void *p, size_t sz, int lazily)
{
#ifdef MADV_FREE
    advise(p, sz, lazily ? MADV_FREE : MADV_DONTNEED);
#else
    (void)lazily;
    advise(p, sz, MADV_DONTNEED);
#endif
}

void aco__os_large_pages(void *p, size_t sz, int wanted)
{
#ifdef MADV_HUGEPAGE
    advise(p, sz, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#else
    (void)p, (void)sz, (void)wanted;
#endif
}

size_t aco__os_first_resident(const void *p, size_t sz)
{
    enum { AT_ONCE = 512 };
    unsigned char resident[AT_ONCE];
    size_t page = aco__os_page_size(), pages = sz / page;
    int saved = errno;
    for (size_t done = 0; done < pages; done += AT_ONCE) {
        size_t n = pages - done < AT_ONCE ? pages - done : AT_ONCE;
        if (aco__system.mincore((void *)((uintptr_t)p + done * page), n * page, (void *)resident) != 0) {
            errno = saved;
            return 0;
        }
        for (size_t i = 0; i < n; i++)
            if (resident[i] & 1)
                return (done + i) * page;
    }
    return sz;
}

const char *aco__os_environment(const char *name)
{
#ifdef __linux__
    return secure_getenv(name);
#else
    return issetugid() ? NULL : getenv(name);
#endif
}

int aco__os_write(int file, const char *text, size_t length)
{
    while (length) {
        ssize_t n = aco__system.write(file, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text += n;
        length -= (size_t)n;
    }
    return 0;
}

void aco__os_message(const char *text, size_t length)
{
    aco__os_write(STDERR_FILENO, text, length);
}

#ifndef ACO_CONFIG_LIBACO_ONLY
void aco__os_call(void (*fn)(void *arg), void *arg)
{
    aco__hooks_hold();
    fn(arg);
    aco__hooks_release();
}
#endif

void aco__os_die(const char *what)
{
    static const char prefix[] = "acorn: ";
    aco__os_message(prefix, sizeof prefix - 1);
    aco__os_message(what, strlen(what));
    aco__os_message("\n", 1);
    abort();
}

/* Weak: a static program does not have them. */
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dladdr

static int is_of_program(const Dl_info *own)
{
#ifdef __linux__
    Dl_info program;
    return dladdr((void *)(uintptr_t)getauxval(AT_PHDR), &program) && program.dli_fbase == own->dli_fbase;
#else
    (void)own;
    return 0;
#endif
}

/* Keeps the object that this code is in until the process ends: a plugin may contain the static library. Called before
 * the system gets an address in it. Threads do not wait for each other here: one may be inside dlopen(), which the
 * other needs. */
static void stay_loaded(void)
{
    static int done; /* atomic */
    int saved = errno;
    Dl_info own;
    if (__atomic_load_n(&done, __ATOMIC_RELAXED))
        return;
    if (dlopen && dladdr && dladdr(&done, &own) && own.dli_fname && !is_of_program(&own))
        (void)!dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
    errno = saved;
}

static const int fault_signals[] = {SIGSEGV, SIGBUS};
enum { FAULTS = sizeof fault_signals / sizeof *fault_signals };
static struct sigaction previous[FAULTS];
static void (*explainer)(const void *address); /* atomic: handlers of other threads read it */

/* Ends the process by this signal, as if there were no handler. A fault repeats itself when the handler returns, and
 * the core then shows it; a signal that was sent is sent again. */
static void end_by(int signal, int was_sent)
{
    struct sigaction none = {0};
    none.sa_handler = SIG_DFL;
    aco__system.sigaction(signal, &none, NULL);
    if (was_sent)
        aco__system.raise(signal);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    const struct sigaction *next = &previous[signal == fault_signals[1]];
    int was_sent = info->si_code <= 0; /* by kill() or the like: si_addr is no address */
    if (!was_sent)
        __atomic_load_n(&explainer, __ATOMIC_RELAXED)(info->si_addr);
    if (next->sa_flags & SA_SIGINFO)
        next->sa_sigaction(signal, info, context);
    else if (next->sa_handler != SIG_DFL && next->sa_handler != SIG_IGN)
        next->sa_handler(signal);
    else if (next->sa_handler == SIG_DFL || !was_sent)
        end_by(signal, was_sent);
}

static int is_explained(const struct sigaction *now)
{
    return (now->sa_flags & SA_SIGINFO) && now->sa_sigaction == on_fault;
}

/* A handler that is not made for an alternate stack may depend on the stack of its thread (Java's does); an ignored
 * signal stays ignored in programs that this one executes. */
static int is_sensitive(const struct sigaction *now)
{
    return ((now->sa_flags & SA_SIGINFO) || now->sa_handler != SIG_DFL) && !(now->sa_flags & SA_ONSTACK);
}

int aco__os_explain_faults(void (*fn)(const void *address), int politely)
{
    struct sigaction ours, now;
    int failed = 0, installed = 0;
    __atomic_store_n(&explainer, fn, __ATOMIC_RELAXED);
    for (int i = 0; i < FAULTS && !failed; i++) {
        failed = aco__system.sigaction(fault_signals[i], NULL, &now);
        if (failed || (politely && is_sensitive(&now)))
            continue;
        installed = 1;
        if (is_explained(&now))
            continue;
        previous[i] = ours = now; /* its mask and flags hold for it now as before */
        ours.sa_sigaction = on_fault;
        ours.sa_flags |= SA_SIGINFO | SA_ONSTACK;
        failed = aco__system.sigaction(fault_signals[i], &ours, NULL);
    }
    return failed ? -1 : installed;
}

static void (*signal_fn)(void); /* atomic, likewise */

static void on_signal(int signal)
{
    int error = errno;
    (void)signal;
    __atomic_load_n(&signal_fn, __ATOMIC_RELAXED)();
    errno = error;
}

int aco__os_on_signal(int signal, void (*fn)(void))
{
    struct sigaction ours = {0};
    stay_loaded();
    __atomic_store_n(&signal_fn, fn, __ATOMIC_RELAXED);
    ours.sa_handler = on_signal;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    return aco__system.sigaction(signal, &ours, NULL);
}

static void set_of_signals(sigset_t *set, uint64_t signals)
{
    sigemptyset(set);
    for (int signal = 1; signals; signal++, signals >>= 1)
        if (signals & 1)
            sigaddset(set, signal);
}

uint64_t aco__os_signals_block(uint64_t signals)
{
    uint64_t blocked = 0;
    sigset_t set, before;
    set_of_signals(&set, signals);
    aco__system.pthread_sigmask(SIG_BLOCK, &set, &before);
    for (int signal = 1; signal <= 64; signal++)
        if (signals >> (signal - 1) & 1 && !sigismember(&before, signal))
            blocked |= (uint64_t)1 << (signal - 1);
    return blocked;
}

void aco__os_signals_unblock(uint64_t signals)
{
    sigset_t set;
    set_of_signals(&set, signals);
    aco__system.pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int aco__os_signal_stack(void *p, size_t sz)
{
    stack_t now, wanted = {0};
    if (aco__system.sigaltstack(NULL, &now) != 0)
        return -1;
    if (!(now.ss_flags & SS_DISABLE))
        return 0;
    wanted.ss_sp = p;
    wanted.ss_size = sz;
    return aco__system.sigaltstack(&wanted, NULL) == 0 ? 1 : -1;
}

int aco__os_signal_stack_end(const void *p)
{
    stack_t now, none = {0};
    if (aco__system.sigaltstack(NULL, &now) != 0 || now.ss_flags & SS_DISABLE || now.ss_sp != p)
        return 1;
    if (now.ss_flags & SS_ONSTACK)
        return 0;
    none.ss_flags = SS_DISABLE;
    aco__system.sigaltstack(&none, NULL); /* it refuses only while a handler runs there */
    return 1;
}

void aco__os_describe_code(const void *address, char *text, size_t sz)
{
    Dl_info info;
    if (!dladdr || !dladdr(address, &info) || !info.dli_fname)
        snprintf(text, sz, "%p", address);
    else if (info.dli_sname)
        snprintf(text, sz, "%s+%#tx (%s)", info.dli_fname, (const char *)address - (const char *)info.dli_fbase,
                 info.dli_sname);
    else
        snprintf(text, sz, "%s+%#tx", info.dli_fname, (const char *)address - (const char *)info.dli_fbase);
}

int aco__os_loaded_unwinder(const char *const names[], void *symbols[], int n, int load)
{
    static const char *const libraries[] = {"libgcc_s.so.1", "libunwind.so.1"};
    void *library = NULL;
    int found = 0;
    if (!dlopen || !dlsym)
        return 0;
    for (int i = 0; i < (load ? 4 : 2) && !library; i++)
        library = dlopen(libraries[i % 2], RTLD_NOW | (i < 2 ? RTLD_NOLOAD : 0));
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
    thread_exit_key_made =
        pthread_key_create(&thread_exit_key, __atomic_load_n(&thread_exit_function, __ATOMIC_ACQUIRE)) == 0;
}

#ifdef ACO__THREAD_SLOT
/* macOS keeps a thread's values in an array at the thread pointer, indexed by key. No document promises that, so
 * find_slot() checks it. Until then aco__thread_slot has the offset of the last key, which the system gives out
 * last. */
enum { LAST_KEY = 767 };
uintptr_t aco__thread_slot = LAST_KEY * sizeof(void *);

static void find_slot(const void *value)
{
    uintptr_t slot = thread_exit_key * sizeof(void *);
    if (!thread_exit_key_made || aco__slot_value(slot) != (uintptr_t)value)
        aco__os_die("pthread_getspecific()'s values are not at the known offset from the thread pointer");
    __atomic_store_n(&aco__thread_slot, slot, __ATOMIC_RELAXED);
}
#endif

void aco__os_at_thread_exit(void (*fn)(void *), void *arg)
{
    stay_loaded();
    __atomic_store_n(&thread_exit_function, fn, __ATOMIC_RELEASE);
    pthread_once(&thread_exit_once, make_thread_exit_key);
    if (thread_exit_key_made)
        pthread_setspecific(thread_exit_key, arg); /* if it fails, the thread's memory stays until the process ends */
#ifdef ACO__THREAD_SLOT
    find_slot(arg);
#endif
}

#ifdef ACO__THREAD_SLOT
void aco__os_slot_clear(void)
{
    pthread_setspecific(thread_exit_key, NULL);
}
#endif

#ifdef __APPLE__
int aco__os_loaded_cxx(const char *name, void *(**symbol)(void))
{
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(symbol, &found, sizeof found);
    return found != NULL;
}
#endif

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;

void aco__os_lock(void)
{
    aco__system.pthread_mutex_lock(&process_lock);
}

void aco__os_unlock(void)
{
    aco__system.pthread_mutex_unlock(&process_lock);
}

long aco__os_process_number(void)
{
    return (long)aco__system.getpid();
}

int aco__os_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    return pthread_atfork(before, parent, child);
}
