/* Promise: a DLL may be unloaded, whether it contains the library or uses the library's own DLL. The thread-local slot
 * and all memory go back, also that of threads that live on; threads that end while it is loaded give back theirs.
 *
 * unload DLL CYCLES THREADS [LIBRARY]: `THREADS` threads live through all cycles and as many through one each. LIBRARY:
 * a DLL that must be gone with it. */
#include "part.h"
#include "check.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <string.h>

static part_work_t *work;
static HANDLE begin, done; /* semaphores */
static int failures;

static DWORD WINAPI works_once(void *arg)
{
    (void)arg;
    __atomic_fetch_add(&failures, work(), __ATOMIC_RELAXED);
    return 0;
}

static DWORD WINAPI works_when_told(void *arg)
{
    for (;;) {
        WaitForSingleObject(begin, INFINITE);
        if (!work)
            return 0;
        works_once(arg);
        ReleaseSemaphore(done, 1, NULL);
    }
}

/* Allocations of pages, and blocks of the heaps: each leak of the library is one at least. */
typedef struct memory {
    size_t pages, blocks;
} memory_t;

static memory_t memory(void)
{
    enum { MOST_HEAPS = 64 };
    HANDLE heaps[MOST_HEAPS];
    DWORD count = GetProcessHeaps(MOST_HEAPS, heaps);
    memory_t n = {0, 0};
    MEMORY_BASIC_INFORMATION info;
    for (char *at = NULL; VirtualQuery(at, &info, sizeof info); at = (char *)info.BaseAddress + info.RegionSize)
        n.pages += info.State != MEM_FREE && info.Type == MEM_PRIVATE && info.BaseAddress == info.AllocationBase;
    for (DWORD i = 0; i < count && i < MOST_HEAPS; i++)
        for (PROCESS_HEAP_ENTRY entry = {.lpData = NULL}; HeapWalk(heaps[i], &entry);)
            n.blocks += (entry.wFlags & PROCESS_HEAP_ENTRY_BUSY) != 0;
    return n;
}

/* Less than one in four rounds, as the system keeps some things of its own, besides `blocks` in each. */
static void check_memory(memory_t before, int rounds, int blocks, const char *of)
{
    memory_t after = memory();
    printf("%d %s: %zu allocations of pages before, %zu after; %zu blocks of heaps before, %zu after\n", rounds, of,
           before.pages, after.pages, before.blocks, after.blocks);
    CHECK(after.pages < before.pages + (size_t)rounds / 4);
    CHECK(after.blocks < before.blocks + (size_t)(rounds * blocks + rounds / 4));
}

static HMODULE load(const char *dll)
{
    HMODULE module = LoadLibraryA(dll);
    FARPROC found = module ? GetProcAddress(module, "part_work") : NULL;
    if (!found) {
        fprintf(stderr, "no part_work() in %s: %lu\n", dll, GetLastError());
        exit(1);
    }
    memcpy(&work, &found, sizeof work);
    return module;
}

enum { WARM = 5 };

static void threads_end(const char *dll, int threads)
{
    HMODULE module = load(dll);
    memory_t before = {0, 0};
    for (int i = 0; i < WARM + threads; i++) {
        HANDLE thread = CreateThread(NULL, 0, works_once, NULL, 0, NULL);
        WaitForSingleObject(thread, INFINITE);
        CloseHandle(thread);
        if (i == WARM)
            before = memory();
    }
    check_memory(before, threads, 0, "threads");
    CHECK(FreeLibrary(module));
}

static void cycle(const char *dll, const char *library, int threads)
{
    enum { MOST = 16 };
    HANDLE once[MOST];
    HMODULE module = load(dll);
    for (int i = 0; i < threads; i++)
        once[i] = CreateThread(NULL, 0, works_once, NULL, 0, NULL);
    ReleaseSemaphore(begin, threads, NULL);
    works_once(NULL);
    for (int i = 0; i < threads; i++) {
        WaitForSingleObject(done, INFINITE);
        WaitForSingleObject(once[i], INFINITE);
        CloseHandle(once[i]);
    }
    CHECK(FreeLibrary(module));
    CHECK(!GetModuleHandleA(dll));
    CHECK(!library || !GetModuleHandleA(library));
}

int main(int argc, char **argv)
{
    const char *dll = argv[1], *library = argc > 4 ? argv[4] : NULL;
    int cycles = atoi(argv[2]), threads = atoi(argv[3]);
    memory_t before = {0, 0};
    DWORD first_slot = 0, slot = 0;
    begin = CreateSemaphoreA(NULL, 0, 1000, NULL);
    done = CreateSemaphoreA(NULL, 0, 1000, NULL);
    for (int i = 0; i < threads; i++)
        CloseHandle(CreateThread(NULL, 0, works_when_told, NULL, 0, NULL));
    threads_end(dll, 20);
    for (int i = 0; i < WARM + cycles; i++) {
        cycle(dll, library, threads);
        slot = TlsAlloc();
        TlsFree(slot);
        if (i == WARM) {
            before = memory();
            first_slot = slot;
        }
    }
    check_memory(before, cycles, 1, "cycles"); /* libstdc++ leaves its memory for exceptions behind */
    CHECK_EQ(slot, first_slot);
    CHECK_EQ(failures, 0);
    work = NULL;
    ReleaseSemaphore(begin, threads, NULL);
    return check_result("unload");
}
