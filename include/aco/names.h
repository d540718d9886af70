/* Names of hosts. In the library acorn_io, beside acorn; aco_io_dial() (aco/io.h) looks names up by itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The calls use the system's getaddrinfo() and getnameinfo(), which follow its configuration (/etc/nsswitch.conf,
 * /etc/hosts, DNS). These run on threads of the pool (aco/offload.h), on at most half of them at once: name servers
 * that do not answer leave the other half to files and functions. The task waits; if its scope ends, the call fails at
 * once. The calls need a task (else EPERM), except for numeric addresses and names in the cache. Any thread with tasks
 * may make them. */
#ifndef ACO_NAMES_H
#define ACO_NAMES_H

#include "io.h"

ACO__BEGIN_C

/* Looks up the addresses that aco_io_dial() would try with these arguments, in its order: as the system orders them,
 * with IPv6 and IPv4 in turns. Stores the first `room` of them in `addresses`. Returns how many there are, at most 16;
 * on error -1 with errno ENOENT (there is no such name, or it has no such addresses), EAGAIN (the name servers do not
 * answer now), EIO (they refuse), EINVAL (a part of the address is wrong), EPERM, ENOMEM, or one of aco_offload(). */
ACO_API int aco_io_look_up_at(const char *network, const char *host, const char *port,
                              struct sockaddr_storage *addresses, int room, const char *location);
#define aco_io_look_up(network, host, port, addresses, room)                                                           \
    aco_io_look_up_at(network, host, port, addresses, room, ACO_PLACE)

/* Looks up the name of an address' host and writes it to `name`: at most `size` bytes, the 0 included. ACO_IO_NAME_SIZE
 * is enough for any name. Returns 0; on error -1 with an errno of aco_io_look_up(), or ENOSPC (`size` is too small). */
enum { ACO_IO_NAME_SIZE = 1025 };
ACO_API int aco_io_name_of_at(const struct sockaddr *address, socklen_t length, char *name, size_t size,
                              const char *location);
#define aco_io_name_of(address, length, name, size) aco_io_name_of_at(address, length, name, size, ACO_PLACE)

/* Sets the cache of the process: it keeps the addresses found for the `entries` names used most recently (64 if never
 * set), for `ns` nanoseconds (30 seconds if never set). The call empties the cache; with 0 entries nothing is kept. Any
 * thread. Returns 0; on error -1 with errno EINVAL. */
ACO_API int aco_io_name_cache(size_t entries, int64_t ns);

ACO__END_C

#endif
