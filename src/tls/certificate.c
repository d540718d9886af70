/* Own certificates: reading them, and which one a server shows. */
#include "tls/certificate.h"
#include "tls/config_internal.h"
#include "tls/openssl_error.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

static void free_certificate(aco__tls_certificate_t *c)
{
    X509_free(c->leaf);
    sk_X509_pop_free(c->chain, X509_free);
    EVP_PKEY_free(c->key);
    OPENSSL_free(c);
}

void aco__tls_free_certificates(aco__tls_certificate_t *certificates)
{
    aco__tls_certificate_t *c;
    while ((c = certificates) != NULL) {
        certificates = c->next;
        free_certificate(c);
    }
}

/* OpenSSL would ask on the terminal. */
static int no_password(char *p, int size, int writes, void *arg)
{
    (void)p, (void)size, (void)writes, (void)arg;
    return -1;
}

/* The end of the file is the error PEM_R_NO_START_LINE. */
static int read_chain(aco__tls_certificate_t *c, BIO *file)
{
    X509 *next;
    c->leaf = PEM_read_bio_X509_AUX(file, NULL, no_password, NULL);
    c->chain = sk_X509_new_null();
    if (!c->leaf || !c->chain)
        return 0;
    while ((next = PEM_read_bio_X509(file, NULL, no_password, NULL)) != NULL)
        if (!sk_X509_push(c->chain, next)) {
            X509_free(next);
            return 0;
        }
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return 0;
    ERR_clear_error();
    return 1;
}

static int read_key(aco__tls_certificate_t *c, BIO *file)
{
    c->key = PEM_read_bio_PrivateKey(file, NULL, no_password, NULL);
    return c->key != NULL;
}

static int read_by(int (*read_part)(aco__tls_certificate_t *c, BIO *file), aco__tls_certificate_t *c, const char *name,
                   const char *call)
{
    BIO *file = BIO_new_file(name, "r");
    int is_read = file && read_part(c, file);
    BIO_free(file);
    return is_read ? 0 : aco__tls_fail_config(call, name);
}

aco__tls_certificate_t *aco__tls_read_certificate(const char *call, const char *chain_file, const char *key_file)
{
    aco__tls_certificate_t *c = OPENSSL_zalloc(sizeof *c);
    if (!c) {
        aco__tls_fail_config(call, NULL);
        return NULL;
    }
    if (read_by(read_chain, c, chain_file, call) == 0 && read_by(read_key, c, key_file, call) == 0)
        return c;
    free_certificate(c);
    return NULL;
}

static int use_certificate(SSL *ssl, const aco__tls_certificate_t *c)
{
    return SSL_use_cert_and_key(ssl, c->leaf, c->key, c->chain, 1);
}

int aco__tls_choose_certificate(SSL *ssl, void *arg)
{
    const aco_tls_config_t *config = arg;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    const aco__tls_certificate_t *first = config->certificates;
    int found = 0;
    if (!config->certificates || !config->certificates->next)
        return 1; /* the context has it */
    SSL_certs_clear(ssl);
    for (const aco__tls_certificate_t *c = config->certificates; c; c = c->next) {
        first = c;
        if (name && X509_check_host(c->leaf, name, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1)
            found |= use_certificate(ssl, c);
    }
    return found || use_certificate(ssl, first);
}
