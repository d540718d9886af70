/* What callers pass. Where the system answers EFAULT a hook must not read: it has the system look first. */
#include "libc/arguments.h"

#include <linux/futex.h>
#include <sys/syscall.h>

enum { LEAST_PAGE = 4096, WORD = sizeof(uint32_t) };

/* A futex call that changes nothing, whatever the word is. It reads the word first. Not by the system's table: what a
 * test puts there knows nothing of readable memory. */
static int is_readable_at(uintptr_t address)
{
    static uint32_t other;
#ifdef SYS_futex
    enum { CALL = SYS_futex };
#else
    enum { CALL = SYS_futex_time64 };
#endif
    int error = errno, is_readable;
    is_readable = syscall(CALL, address & ~(uintptr_t)(WORD - 1), FUTEX_CMP_REQUEUE_PRIVATE, 0, NULL, &other, 0) == 0 ||
                  errno != EFAULT;
    errno = error;
    return is_readable;
}

/* One word tells of its page. */
int aco__hook_can_read(const void *p, size_t n)
{
    uintptr_t first = (uintptr_t)p, last = first + n - 1;
    if (!n)
        return 1;
    if (last < first)
        return 0;
    for (uintptr_t at = first; at <= last; at = (at & ~(uintptr_t)(LEAST_PAGE - 1)) + LEAST_PAGE)
        if (!is_readable_at(at) || at > UINTPTR_MAX - LEAST_PAGE)
            return 0;
    return 1;
}

size_t aco__hook_text_size(const char *text)
{
    for (size_t n = 0; text;) {
        size_t room = LEAST_PAGE - ((uintptr_t)(text + n) & (LEAST_PAGE - 1)), length;
        if (!is_readable_at((uintptr_t)(text + n)))
            break;
        length = strnlen(text + n, room);
        n += length;
        if (length < room)
            return n + 1;
    }
    return 0;
}

int aco__is_vector(const struct iovec *parts, int count)
{
    size_t room = SSIZE_MAX;
    if (count <= 0 || count > IOV_MAX || !aco__hook_can_read(parts, (size_t)count * sizeof *parts))
        return 0;
    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len > room)
            return 0;
        room -= parts[i].iov_len;
    }
    return room != SSIZE_MAX;
}

int64_t aco__hook_ns(int64_t seconds, int64_t ns)
{
    return seconds > INT64_MAX / ACO_SECOND - 1 ? INT64_MAX : seconds * ACO_SECOND + ns;
}

int aco__hook_is_time(const struct timespec *time)
{
    return aco__hook_can_read(time, sizeof *time) && time->tv_sec >= 0 && time->tv_nsec >= 0 &&
           time->tv_nsec < ACO_SECOND;
}
