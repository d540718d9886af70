/* How many connections each address has: per_address.c. */
#ifndef ACO_HTTP_PER_ADDRESS_H
#define ACO_HTTP_PER_ADDRESS_H

#include "base/invariants.h"

#include "aco/http.h"

/* An address with connections. */
typedef struct aco__http_address aco__http_address_t;
typedef struct aco__http_addresses aco__http_addresses_t;

/* NULL and errno. */
ACO__HIDDEN aco__http_addresses_t *aco__http_addresses_new(unsigned most);
/* All connections are gone. NULL: nothing happens. */
ACO__HIDDEN void aco__http_addresses_free(aco__http_addresses_t *addresses);
/* Counts a connection, and stores whose it is; NULL: it is not counted, it has no address or there is no memory. 0; -1:
 * the address has too many. One that has moved from another thread's server is let in all the same. */
ACO__HIDDEN int aco__http_address_enter(aco__http_addresses_t *addresses, int fd, int is_moved,
                                        aco__http_address_t **address);
/* A connection is gone. `address`: an aco__http_address_t; NULL: nothing happens. */
ACO__HIDDEN void aco__http_address_leave(void *address);

#endif
