/* The tests' POSIX on Windows. munmap() takes parts of a mapping, so it gives the memory back and keeps the
 * addresses. */
#ifndef TESTS_WINDOWS_SYS_MMAN_H
#define TESTS_WINDOWS_SYS_MMAN_H

#include "../unistd.h"

#include <psapi.h>

enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2 };
enum { MAP_PRIVATE = 1, MAP_ANONYMOUS = 2, MAP_NORESERVE = 4 };
#define MAP_FAILED ((void *)-1)

static inline void *mmap(void *p, size_t sz, int protection, int flags, int file, long offset)
{
    (void)flags, (void)file, (void)offset;
    p = VirtualAlloc(p, sz, MEM_RESERVE | MEM_COMMIT, protection ? PAGE_READWRITE : PAGE_NOACCESS);
    return p ? p : MAP_FAILED;
}

static inline int munmap(void *p, size_t sz)
{
    return sz == 0 || VirtualFree(p, sz, MEM_DECOMMIT) ? 0 : -1;
}

static inline int mprotect(void *p, size_t sz, int protection)
{
    DWORD before;
    return VirtualProtect(p, sz, protection ? PAGE_READWRITE : PAGE_NOACCESS, &before) ? 0 : -1;
}

static inline int mincore(void *p, size_t sz, unsigned char *resident)
{
    for (size_t at = 0; at < sz; at += (size_t)sysconf(_SC_PAGESIZE)) {
        MEMORY_BASIC_INFORMATION info;
        PSAPI_WORKING_SET_EX_INFORMATION page = {.VirtualAddress = (char *)p + at};
        if (!VirtualQuery((char *)p + at, &info, sizeof info) || info.State != MEM_COMMIT ||
            !QueryWorkingSetEx(GetCurrentProcess(), &page, sizeof page))
            return -1;
        *resident++ = (unsigned char)page.VirtualAttributes.Valid;
    }
    return 0;
}

#endif
