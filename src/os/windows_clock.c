/* The contract of clock.h on Windows. */
#define WIN32_LEAN_AND_MEAN
#include "os/clock.h"

#include <windows.h>

enum { NS_PER_SECOND = 1000000000, NS_PER_MS = 1000000, NS_PER_UNIT = 100 };

#ifndef CREATE_WAITABLE_TIMER_HIGH_RESOLUTION
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 2
#endif

int64_t aco__os_now(void)
{
    LARGE_INTEGER ticks, frequency;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&ticks);
    return ticks.QuadPart / frequency.QuadPart * NS_PER_SECOND +
        ticks.QuadPart % frequency.QuadPart * NS_PER_SECOND / frequency.QuadPart;
}

int64_t aco__os_now_coarse(void)
{
    return aco__os_now();
}

uint32_t aco__os_milliseconds(void)
{
    return GetTickCount();
}

/* Uses a timer of 100 ns if the system has one (since Windows 10 1803), else milliseconds. */
void aco__os_sleep_until(int64_t then)
{
    int64_t left = then > 0 ? then - aco__os_now() : 0;
    LARGE_INTEGER units;
    HANDLE timer;
    if (left <= 0)
        return;
    units.QuadPart = -((left + NS_PER_UNIT - 1) / NS_PER_UNIT); /* negative: relative to now */
    timer = CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, SYNCHRONIZE | TIMER_MODIFY_STATE);
    if (timer && SetWaitableTimer(timer, &units, 0, NULL, NULL, FALSE))
        WaitForSingleObject(timer, INFINITE);
    else
        Sleep((DWORD)(left / NS_PER_MS < INT32_MAX ? left / NS_PER_MS + 1 : INT32_MAX)); /* the caller looks again */
    if (timer)
        CloseHandle(timer);
}

/* WaitOnAddress() is in another library: the word is looked at every millisecond. */
void aco__os_wait(uint32_t *word, uint32_t value, int64_t then)
{
    int64_t next = aco__os_now() + NS_PER_MS;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
        aco__os_sleep_until(then >= 0 && then < next ? then : next);
}

void aco__os_wake(uint32_t *word)
{
    (void)word;
}
