/* What the service manager is told: datagrams to the unix socket that the environment names. */
#define _GNU_SOURCE
#include "lifecycle/lifecycle.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

/* The address that NOTIFY_SOCKET names; its length, or 0: there is none. */
static socklen_t manager_address(struct sockaddr_un *address)
{
    const char *name = secure_getenv("NOTIFY_SOCKET");
    size_t length = name ? strlen(name) : 0;
    if (length < 2 || length >= sizeof address->sun_path || (name[0] != '/' && name[0] != '@'))
        return 0;
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, name, length);
    if (name[0] == '@')
        address->sun_path[0] = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

int aco_service_notify(const char *state)
{
    struct sockaddr_un address;
    socklen_t length = manager_address(&address);
    int fd, error = 0;
    if (!state)
        return aco__service_fail(EINVAL, "aco_service_notify", "the state is NULL");
    if (!length)
        return 0;
    fd = aco__system.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (aco__system.sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                           (const struct sockaddr *)(const void *)&address, length) < 0)
        error = errno;
    (void)aco__system.close(fd);
    errno = error ? error : errno;
    return error ? -1 : 0;
}

void aco__lifecycle_tell(const char *state)
{
    int error = errno;
    (void)aco_service_notify(state);
    errno = error;
}

int64_t aco__lifecycle_watchdog(void)
{
    const char *microseconds = secure_getenv("WATCHDOG_USEC"), *process = secure_getenv("WATCHDOG_PID");
    long long n = microseconds ? strtoll(microseconds, NULL, 10) : 0;
    if (n <= 0 || n > ACO_FOREVER / ACO_MICROSECOND)
        return 0;
    return process && strtoll(process, NULL, 10) != aco__system.getpid() ? 0 : n * ACO_MICROSECOND;
}
