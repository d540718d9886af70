/* Certificates: certificate.c. */
#ifndef ACO_TLS_CERTIFICATE_H
#define ACO_TLS_CERTIFICATE_H

#include "os/platform.h"

#include <openssl/ssl.h>

typedef struct aco__tls_certificate {
    struct aco__tls_certificate *next; /* NULL: the last, the one that was added first */
    X509 *leaf;
    STACK_OF(X509) *chain;
    EVP_PKEY *key;
} aco__tls_certificate_t;

/* Reads a certificate and its key. NULL and errno. */
ACO__HIDDEN aco__tls_certificate_t *aco__tls_read_certificate(const char *call, const char *chain_file,
                                                              const char *key_file);
ACO__HIDDEN void aco__tls_free_certificates(aco__tls_certificate_t *certificates);
/* OpenSSL asks a server for its certificate: SSL_CTX_set_cert_cb(). `arg` is the configuration. */
ACO__HIDDEN int aco__tls_choose_certificate(SSL *ssl, void *arg);

#endif
