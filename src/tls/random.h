/* random.c: OpenSSL's random numbers in simulations. */
#ifndef ACO_TLS_RANDOM_H
#define ACO_TLS_RANDOM_H

#include "os/platform.h"

#include <openssl/ssl.h>

/* Before OpenSSL first needs a random number for something that a simulation may see. */
ACO__HIDDEN void aco__tls_seed_random(void);
/* In a simulation, for a server's context: its tickets tell the virtual time. */
ACO__HIDDEN void aco__tls_date_tickets(SSL_CTX *context);

#endif
