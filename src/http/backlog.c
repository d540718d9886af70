/* A listener's end. The system resets connections that wait in the backlog of a listener that is closed, so a server
 * accepts them all before. Meanwhile more would come, and one would always be between the last look and the close:
 * first the listener must take no more, which sockets do not offer. (Without the filter bench/http_stop.py lost 27
 * requests in 48 runs.)
 *
 * Linux: a filter drops segments that begin a connection. A client whose segment was dropped sends it again after a
 * second, to another listener of the port (SO_REUSEPORT) or to none: it is refused. Handshakes that have begun go on.
 * One whose last segment comes after the close is lost, except to another listener with net.ipv4.tcp_migrate_req.
 *
 * Unix sockets: after shutdown() connecting fails, and what waits can be accepted. The listener is always readable
 * then: only accept4() tells whether a connection waits. Without a free descriptor it does not tell either, so the
 * server has one in reserve.
 *
 * Both hold for the socket, also for another process that has it. */
#define _GNU_SOURCE
#include "http/backlog.h"
#include "http/link.h"
#include "system/system.h"

#include "aco/io.h"
#include "aco/scheduler.h"

#include <errno.h>
#include <sys/socket.h>
#ifdef __linux__
#include <linux/filter.h>
#include <sys/eventfd.h>
#endif

/* From the system's answer to the client's, within a site; and between two looks for a free descriptor. */
enum { HANDSHAKE_MS = 20 };

#ifdef __linux__
/* 0, or -1. The filter sees a segment from its TCP header on. */
static int drop_new(int listener)
{
    enum { FLAGS = 13, SYN = 2, ACK = 16 };
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    static const struct sock_fprog filter = {sizeof code / sizeof code[0], code};
    return aco__system.setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}
#else
static int drop_new(int listener)
{
    (void)listener;
    return -1;
}
#endif

static int family_of(int listener)
{
    struct sockaddr_storage address = {0};
    socklen_t n = sizeof address;
    return aco__system.getsockname(listener, (struct sockaddr *)&address, &n) == 0 ? address.ss_family : AF_UNSPEC;
}

int64_t aco__http_close_door(int listener)
{
    int family = family_of(listener);
    int is_closed = family == AF_UNIX                         ? aco__system.shutdown(listener, SHUT_RD) == 0
                    : family == AF_INET || family == AF_INET6 ? drop_new(listener) == 0
                                                              : 0;
    return is_closed ? HANDSHAKE_MS * ACO_MILLISECOND : 0;
}

int aco__http_reserve(int listener)
{
#ifdef __linux__
    if (family_of(listener) == AF_UNIX)
        return aco__system.eventfd(0, EFD_CLOEXEC);
#endif
    (void)listener;
    return -1;
}

void aco__http_give_reserve(int *reserve)
{
    if (*reserve >= 0)
        (void)aco__system.close(*reserve);
    *reserve = -1;
}

#ifdef __linux__
static int take(int listener)
{
    return aco__system.accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
#endif

int aco__http_has_more(int listener, int *taken, int *reserve)
{
#ifdef __linux__
    if (family_of(listener) == AF_UNIX) {
        *taken = take(listener);
        if (*taken < 0 && errno != EAGAIN && *reserve >= 0) {
            aco__http_give_reserve(reserve);
            *taken = take(listener);
        }
        if (*taken < 0)
            return errno != EAGAIN;
        (void)aco_io_adopt(*taken);
        return 1;
    }
#endif
    (void)taken;
    (void)reserve;
    return aco__http_is_readable(listener);
}
