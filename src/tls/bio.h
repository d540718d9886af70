/* How OpenSSL reads and writes: bio.c. */
#ifndef ACO_TLS_BIO_H
#define ACO_TLS_BIO_H

#include "os/platform.h"

#include "aco/tls.h"

#include <openssl/ssl.h>

/* How OpenSSL reads and writes the connection's descriptor. NULL: no memory. */
ACO__HIDDEN BIO *aco__tls_bio_new(aco_tls_t *tls);
/* Sends what is unsent. 0; or -1 and system_error: EAGAIN and others. */
ACO__HIDDEN int aco__tls_flush(aco_tls_t *tls);
ACO__HIDDEN aco_tls_t *aco__tls_of(const SSL *ssl); /* whose BIO it has */

#endif
