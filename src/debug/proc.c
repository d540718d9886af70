/* What /proc tells of the process. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "debug/proc.h"
#include "system/system.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *aco__proc_text(const char *path, char *text, size_t room)
{
    int fd = aco__system.open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : aco__system.read(fd, text, room - 1);
    if (fd >= 0)
        aco__system.close(fd);
    text[n > 0 ? n : 0] = 0;
    return text;
}

int64_t aco__proc_age_ms(void)
{
    enum { COMMAND = 2, STARTED = 22 }; /* fields: the command in parentheses; clock ticks since the system's start */
    char text[1024];
    const char *at = strrchr(aco__proc_text("/proc/self/stat", text, sizeof text), ')');
    const long ticks = aco__system.sysconf(_SC_CLK_TCK);
    struct timespec now = {0};
    int64_t age;
    for (int field = COMMAND; at && field < STARTED; field++)
        at = strchr(at + 1, ' ');
    if (!at || ticks <= 0 || aco__system.clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return 0;
    age = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - (int64_t)strtoull(at, NULL, 10) * 1000 / ticks;
    return age > 0 ? age : 0;
}

/* Reckoned once: clocks that are read one after the other give another time at each look. */
int64_t aco__proc_began(void)
{
    static int64_t began; /* atomic, like the process that it is of: a child of fork() began later */
    static pid_t process;
    const pid_t own = aco__system.getpid();
    struct timespec now = {0};
    if (__atomic_load_n(&process, __ATOMIC_ACQUIRE) != own) {
        aco__system.clock_gettime(CLOCK_REALTIME, &now);
        __atomic_store_n(&began, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - aco__proc_age_ms() * 1000000,
                         __ATOMIC_RELAXED);
        __atomic_store_n(&process, own, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&began, __ATOMIC_RELAXED);
}
