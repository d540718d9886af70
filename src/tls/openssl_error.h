/* OpenSSL's errors: openssl_error.c. */
#ifndef ACO_TLS_OPENSSL_ERROR_H
#define ACO_TLS_OPENSSL_ERROR_H

#include "os/platform.h"

#include "aco/tls.h"

/* The call failed in the configuration, of this file or NULL: -1 and errno, with OpenSSL's reason. */
ACO__HIDDEN int aco__tls_fail_config(const char *call, const char *file);
/* OpenSSL has failed for good, as SSL_get_error() says: sets errno and the message, and empties OpenSSL's queue. -1. */
ACO__HIDDEN int aco__tls_fail(const aco_tls_t *tls, const char *call, int why);
/* Sets errno and a message about this connection. -1. */
ACO__HIDDEN int aco__tls_fail_with(const aco_tls_t *tls, const char *call, int error, const char *reason);

#endif
