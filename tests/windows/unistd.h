/* The tests' POSIX on Windows: what they need of it. */
#ifndef TESTS_WINDOWS_UNISTD_H
#define TESTS_WINDOWS_UNISTD_H

#pragma GCC system_header
#include_next <unistd.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { _SC_PAGESIZE = 1 };

static inline long sysconf(int name)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return name == _SC_PAGESIZE ? (long)info.dwPageSize : -1;
}

#endif
