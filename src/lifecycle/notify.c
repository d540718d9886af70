/* What the service manager is told: datagrams to the unix socket that the environment names. */
#define _GNU_SOURCE
#include "lifecycle/lifecycle.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum { MANAGER_SECONDS = 5 };

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

/* A socket that leads to the manager. -1 and errno: 0, if there is none. */
static int connect_manager(void)
{
    struct sockaddr_un address;
    const socklen_t length = manager_address(&address);
    int fd, error;
    errno = 0;
    if (!length)
        return -1;
    fd = aco__system.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || aco__system.connect(fd, (const struct sockaddr *)(const void *)&address, length) == 0)
        return fd;
    error = errno;
    (void)aco__system.close(fd);
    errno = error;
    return -1;
}

static int send_state(int fd, const char *state)
{
    return aco__system.send(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

int aco_service_notify(const char *state)
{
    const int before = errno;
    int fd, error;
    if (!state)
        return aco__service_fail(EINVAL, "aco_service_notify", "the state is NULL");
    fd = connect_manager();
    error = fd < 0 || send_state(fd, state) != 0 ? errno : 0;
    if (fd >= 0)
        (void)aco__system.close(fd);
    errno = error ? error : before;
    return error ? -1 : 0;
}

void aco__lifecycle_tell(const char *state)
{
    int error = errno;
    (void)aco_service_notify(state);
    errno = error;
}

void aco__lifecycle_tell_surely(const char *state)
{
    const int fd = connect_manager();
    aco_scope_t scope;
    if (fd < 0)
        return;
    if (aco_scope_begin(&scope, aco_after(MANAGER_SECONDS * ACO_SECOND)) == 0) {
        int sent;
        do
            sent = send_state(fd, state);
        while (sent != 0 && errno == EAGAIN && aco_io_wait_writable(fd) == 0);
        (void)aco_scope_end(&scope);
    }
    (void)aco_io_close(fd);
}

int64_t aco__lifecycle_watchdog(void)
{
    const char *microseconds = secure_getenv("WATCHDOG_USEC"), *process = secure_getenv("WATCHDOG_PID");
    long long n = microseconds ? strtoll(microseconds, NULL, 10) : 0;
    if (n <= 0 || n > ACO_FOREVER / ACO_MICROSECOND)
        return 0;
    return process && strtoll(process, NULL, 10) != aco__system.getpid() ? 0 : n * ACO_MICROSECOND;
}
