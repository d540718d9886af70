/* Names of hosts. In the library acorn_io, beside acorn; aco_io_dial() (aco/io.h) looks names up by itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The system's getaddrinfo() and getnameinfo() do it, on threads of the pool (aco/offload.h), as its configuration says
 * (/etc/nsswitch.conf, /etc/hosts, DNS). At most half of the pool's threads do it at once, so name servers that do not
 * answer leave the other half to files and functions. The task waits; if its scope ends, the call fails at once. Calls
 * need a task, except for numeric addresses and names in the cache: else EPERM. Any thread with tasks may call. */
#ifndef ACO_NAMES_H
#define ACO_NAMES_H

#include "io.h"

ACO__BEGIN_C

/* The addresses that aco_io_dial() would try with these arguments, in its order: as the system orders them, with IPv6
 * and IPv4 in turns. Stores the first `room` of them and returns how many there are, at most 16. -1 and errno: ENOENT
 * (there is no such name, or it has no such addresses), EAGAIN (the name servers do not answer now), EIO (they refuse),
 * EINVAL (a part of the address is wrong), EPERM, ENOMEM, and those of aco_offload(). */
ACO_API int aco_io_look_up_at(const char *network, const char *host, const char *port,
                              struct sockaddr_storage *addresses, int room, const char *location);
#define aco_io_look_up(network, host, port, addresses, room)                                                           \
    aco_io_look_up_at(network, host, port, addresses, room, ACO_PLACE)

/* The name of an address' host: writes at most `size` bytes, the 0 included; ACO_IO_NAME_SIZE is enough for any. 0, or
 * -1 and errno as above; also ENOSPC. */
enum { ACO_IO_NAME_SIZE = 1025 };
ACO_API int aco_io_name_of_at(const struct sockaddr *address, socklen_t length, char *name, size_t size,
                              const char *location);
#define aco_io_name_of(address, length, name, size) aco_io_name_of_at(address, length, name, size, ACO_PLACE)

/* The process keeps the addresses of names that were found: of the `entries` names used last (64 if never set), for
 * `ns` nanoseconds (30 seconds). The call empties the cache; with 0 entries nothing is kept. 0, or -1 and errno EINVAL.
 * Any thread. */
ACO_API int aco_io_name_cache(size_t entries, int64_t ns);

ACO__END_C

#endif
