/* The contract of os.h on Windows. */
#define WIN32_LEAN_AND_MEAN
#include "os/os.h"

#include <errno.h>
#include <io.h>
#include <string.h>
#include <windows.h>

#include <psapi.h>

size_t aco__os_page_size(void)
{
    static size_t size;
    size_t known = __atomic_load_n(&size, __ATOMIC_RELAXED);
    if (!known) {
        SYSTEM_INFO info;
        GetSystemInfo(&info);
        known = info.dwPageSize;
        __atomic_store_n(&size, known, __ATOMIC_RELAXED);
    }
    return known;
}

size_t aco__os_mapping_limit(void)
{
    return SIZE_MAX;
}

int aco__os_limit_met(size_t sz, char *sentence, size_t room)
{
    MEMORYSTATUSEX status;
    status.dwLength = sizeof status;
    if (!GlobalMemoryStatusEx(&status) || status.ullAvailPageFile >= sz)
        return 0;
    snprintf(sentence, room, "the system has reached its commit limit (memory and page files)");
    return 2;
}

/* Commits all pages at once; a page uses memory from its first access on. Committing a stack while it grows, as the
 * system does for its own stacks, does not work here: the fault would have to come while the stack's bounds are in the
 * TEB, but copying accesses stacks from outside. */
void *aco__os_map(size_t sz)
{
    void *p = VirtualAlloc(NULL, sz, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!p)
        errno = ENOMEM;
    return p;
}

/* A reservation can only be released as a whole. So this finds a free range, releases it and maps the aligned part,
 * which fails if another thread was faster. */
void *aco__os_map_aligned(size_t sz)
{
    enum { ATTEMPTS = 16 };
    for (int i = 0; i < ATTEMPTS; i++) {
        char *p = VirtualAlloc(NULL, 2 * sz, MEM_RESERVE, PAGE_NOACCESS);
        if (!p)
            break;
        VirtualFree(p, 0, MEM_RELEASE);
        p = VirtualAlloc(p + ((0 - (uintptr_t)p) & (sz - 1)), sz, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
        if (p)
            return p;
    }
    errno = ENOMEM;
    return NULL;
}

void aco__os_unmap(void *p, size_t sz)
{
    (void)sz;
    VirtualFree(p, 0, MEM_RELEASE);
}

static int protect(void *p, size_t sz, DWORD protection)
{
    DWORD before;
    if (VirtualProtect(p, sz, protection, &before))
        return 0;
    errno = ENOMEM;
    return -1;
}

int aco__os_guard_in_tables(void *p, size_t sz)
{
    return protect(p, sz, PAGE_NOACCESS);
}

unsigned aco__os_guard_many_in_tables(void *p, size_t sz, size_t step, unsigned n)
{
    (void)p, (void)sz, (void)step, (void)n;
    return 0;
}

int aco__os_guard_mapping(void *p, size_t sz)
{
    return protect(p, sz, PAGE_NOACCESS);
}

int aco__os_guard(void *p, size_t sz)
{
    return protect(p, sz, PAGE_NOACCESS);
}

void aco__os_unguard(void *p, size_t sz)
{
    int saved = errno;
    protect(p, sz, PAGE_READWRITE);
    errno = saved;
}

void aco__os_discard(void *p, size_t sz, int lazily)
{
    if (VirtualAlloc(p, sz, MEM_RESET, PAGE_READWRITE) && !lazily)
        VirtualUnlock(p, sz); /* on pages that are not locked it removes them from the working set */
}

void aco__os_large_pages(void *p, size_t sz, int wanted)
{
    (void)p, (void)sz, (void)wanted;
}

size_t aco__os_first_resident(const void *p, size_t sz)
{
    enum { AT_ONCE = 128 };
    PSAPI_WORKING_SET_EX_INFORMATION pages[AT_ONCE];
    size_t page = aco__os_page_size(), count = sz / page;
    for (size_t done = 0; done < count; done += AT_ONCE) {
        size_t n = count - done < AT_ONCE ? count - done : AT_ONCE;
        for (size_t i = 0; i < n; i++)
            pages[i].VirtualAddress = (void *)((uintptr_t)p + (done + i) * page);
        if (!K32QueryWorkingSetEx(GetCurrentProcess(), pages, (DWORD)(n * sizeof *pages)))
            return 0;
        for (size_t i = 0; i < n; i++)
            if (pages[i].VirtualAttributes.Valid)
                return (done + i) * page;
    }
    return sz;
}

const char *aco__os_environment(const char *name)
{
    return getenv(name);
}

void aco__os_describe_code(const void *address, char *text, size_t sz)
{
    snprintf(text, sz, "%p", address);
}

int aco__os_write(int file, const char *text, size_t length)
{
    while (length) {
        int n = _write(file, text, (unsigned)length);
        if (n <= 0)
            return -1;
        text += n;
        length -= (size_t)n;
    }
    return 0;
}

int aco__os_on_signal(int signal, void (*fn)(void))
{
    (void)signal, (void)fn;
    errno = ENOSYS;
    return -1;
}

void aco__os_message(const char *text, size_t length)
{
    DWORD written;
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, (DWORD)length, &written, NULL);
}

void aco__os_call(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

void aco__os_die(const char *what)
{
    static const char prefix[] = "acorn: ";
    aco__os_message(prefix, sizeof prefix - 1);
    aco__os_message(what, strlen(what));
    aco__os_message("\n", 1);
    abort();
}

/* Windows describes an exception on the stack on which it happens. A stack without room ends the process at once. */
int aco__os_explain_faults(void (*explain)(const void *address), int politely)
{
    (void)explain, (void)politely;
    errno = ENOSYS;
    return -1;
}

int aco__os_signal_stack(void *p, size_t sz)
{
    (void)p, (void)sz;
    errno = ENOSYS;
    return -1;
}

int aco__os_signal_stack_end(const void *p)
{
    (void)p;
    return 1;
}

int aco__os_loaded_unwinder(const char *const names[], void *symbols[], int n, int load)
{
    (void)names, (void)symbols, (void)n, (void)load;
    return 0;
}

int aco__os_loaded_cxx(const char *name, void *(**symbol)(void))
{
    static const WCHAR *const names[] = {L"libstdc++-6.dll", L"libc++.dll"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        HMODULE module;
        FARPROC found =
            GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN, names[i], &module) ? GetProcAddress(module, name) : NULL;
        memcpy(symbol, &found, sizeof found);
        if (found)
            return 1;
    }
    return 0;
}

/* ---- The thread's slot ---- */

enum { TEB_SLOTS = 0x1480, SLOTS = 64 }; /* of the TEB itself; TlsAlloc() returns other slots when these are used up */

uintptr_t aco__thread_slot;
static DWORD slot_index;
static void (*thread_exit_function)(void *); /* atomic */
static void (*unload_function)(void);
static int unloading;

/* Whether the process ends. Its other threads are then dead and may have held locks, and the system frees
 * everything. */
static int process_ends(void)
{
    BOOLEAN(NTAPI * ends)(void);
    FARPROC found = GetProcAddress(GetModuleHandleW(L"ntdll"), "RtlDllShutdownInProgress");
    memcpy(&ends, &found, sizeof ends);
    return !ends || ends();
}

/* The loader calls this before any constructor, and at the end of every thread except the one that ends the process. */
static void NTAPI on_thread(void *module, DWORD reason, void *unused)
{
    void (*fn)(void *) = __atomic_load_n(&thread_exit_function, __ATOMIC_ACQUIRE);
    (void)module, (void)unused;
    if (reason == DLL_PROCESS_ATTACH) {
        slot_index = TlsAlloc();
        if (slot_index >= SLOTS)
            aco__os_die("none of the first 64 TLS slots is free");
        aco__thread_slot = TEB_SLOTS + slot_index * sizeof(void *);
    } else if (reason == DLL_THREAD_DETACH && fn) {
        void *arg = TlsGetValue(slot_index);
        if (arg)
            fn(arg);
    } else if (reason == DLL_PROCESS_DETACH) {
        unloading = !process_ends();
    }
}
/* After the callbacks of the run time: its thread-local destructors may use coroutines. */
__attribute__((section(".CRT$XLY"), used)) static const PIMAGE_TLS_CALLBACK callback = on_thread;

/* The loader calls on_thread() before the module's own destructors run, and those may use coroutines. A function that
 * is registered before all of them runs after all of them: module_ends(). */
static void module_ends(void)
{
    if (unloading) {
        if (unload_function)
            unload_function();
        TlsFree(slot_index);
    }
}

__attribute__((constructor(101))) static void module_begins(void)
{
    atexit(module_ends);
}

void aco__os_at_unload(void (*fn)(void))
{
    unload_function = fn;
}

void aco__os_at_thread_exit(void (*fn)(void *), void *arg)
{
    __atomic_store_n(&thread_exit_function, fn, __ATOMIC_RELEASE);
    TlsSetValue(slot_index, arg);
}

void aco__os_slot_clear(void)
{
    TlsSetValue(slot_index, NULL);
}

/* ---- The process lock; there is no fork() ---- */

static SRWLOCK process_lock = SRWLOCK_INIT;

void aco__os_lock(void)
{
    AcquireSRWLockExclusive(&process_lock);
}

void aco__os_unlock(void)
{
    ReleaseSRWLockExclusive(&process_lock);
}

long aco__os_process_number(void)
{
    return (long)GetCurrentProcessId();
}

int aco__os_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    (void)before, (void)parent, (void)child;
    return 0;
}
