/* For the tests of aco/tls.h: certificates, keys and revocation lists, made by OpenSSL, as PEM files in a temporary
 * directory that goes at exit. */
#ifndef TLS_CERTIFICATES_H
#define TLS_CERTIFICATES_H

#include <aco/tls.h>
#include "check.h"

#include <limits.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <unistd.h>

typedef struct certificate {
    X509 *x;
    EVP_PKEY *key;
    char file[64], key_file[64]; /* where they are */
} certificate_t;

enum { DAY = 24 * 3600 };

static char certificates_dir[] = "/tmp/acorn_tls_XXXXXX";
static char certificates_files[64][64];
static int certificates_count;

static inline void remove_certificates(void)
{
    for (int i = 0; i < certificates_count; i++)
        unlink(certificates_files[i]);
    rmdir(certificates_dir);
}

/* A file for NAME. */
static inline FILE *new_file(char path[64], const char *name)
{
    FILE *file;
    if (certificates_count == 0) {
        CHECK(mkdtemp(certificates_dir) != NULL);
        atexit(remove_certificates);
    }
    CHECK(certificates_count < 64);
    snprintf(path, 64, "%s/%s", certificates_dir, name);
    memcpy(certificates_files[certificates_count++], path, 64);
    file = fopen(path, "w");
    CHECK(file != NULL);
    return file;
}

static inline void add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    CHECK(extension && X509_add_ext(x, extension, -1));
    X509_EXTENSION_free(extension);
}

/* How a certificate differs from a good one. */
typedef struct how {
    const char *names; /* "DNS:a.test,IP:127.0.0.1"; NULL: an authority's, without */
    int from, to;      /* seconds from now; 0, 0: an hour ago, in a day */
    time_t *now;       /* NULL: the clock's time */
    int rsa_bits;      /* 0: ECDSA */
    int is_sha1;
    const certificate_t *issuer; /* NULL: itself */
    int has_chain; /* the issuer follows it in the file */
} how_t;

#ifdef IN_SIMULATION /* its runs begin at this date */
static time_t begin_of_runs = 1000000000;
#define CLOCK (&begin_of_runs)
#else
#define CLOCK NULL
#endif

/* CN=NAME. */
static inline void make_certificate(certificate_t *c, const char *name, const how_t *how)
{
    static long serial = 1;
    char file_name[40];
    const certificate_t *issuer = how->issuer ? how->issuer : c;
    X509_NAME *subject;
    FILE *file;
    c->key = how->rsa_bits ? EVP_RSA_gen((unsigned)how->rsa_bits) : EVP_EC_gen("P-256");
    c->x = X509_new();
    CHECK(c->key && c->x);
    subject = X509_get_subject_name(c->x);
    X509_set_version(c->x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(c->x), serial++);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(c->x, X509_get_subject_name(issuer->x));
    X509_time_adj(X509_getm_notBefore(c->x), how->from ? how->from : -3600, how->now ? how->now : CLOCK);
    X509_time_adj(X509_getm_notAfter(c->x), how->to ? how->to : DAY, how->now ? how->now : CLOCK);
    X509_set_pubkey(c->x, c->key);
    add_extension(c->x, issuer->x, NID_basic_constraints, how->names ? "CA:FALSE" : "critical,CA:TRUE");
    add_extension(c->x, issuer->x, NID_subject_key_identifier, "hash");
    if (!how->names)
        add_extension(c->x, issuer->x, NID_key_usage, "critical,keyCertSign,cRLSign");
    else if (*how->names)
        add_extension(c->x, issuer->x, NID_subject_alt_name, how->names);
    CHECK(X509_sign(c->x, issuer->key, how->is_sha1 ? EVP_sha1() : EVP_sha256()));
    snprintf(file_name, sizeof file_name, "%.30s.pem", name);
    file = new_file(c->file, file_name);
    CHECK(PEM_write_X509(file, c->x));
    if (how->has_chain)
        CHECK(PEM_write_X509(file, issuer->x));
    fclose(file);
    snprintf(file_name, sizeof file_name, "%.30s.key", name);
    file = new_file(c->key_file, file_name);
    CHECK(PEM_write_PrivateKey(file, c->key, NULL, NULL, 0, NULL, NULL));
    fclose(file);
}

static inline void free_certificate(certificate_t *c)
{
    X509_free(c->x);
    EVP_PKEY_free(c->key);
}

/* Appends the issuer's list of revoked certificates to FILE: `revoked`, or none if it is NULL. */
static inline void write_crl(FILE *file, const certificate_t *issuer, const certificate_t *revoked, int to)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *now = X509_time_adj(NULL, -3600, CLOCK), *end = X509_time_adj(NULL, to, CLOCK);
    CHECK(crl && now && end);
    X509_CRL_set_version(crl, X509_CRL_VERSION_2);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer->x));
    X509_CRL_set1_lastUpdate(crl, now);
    X509_CRL_set1_nextUpdate(crl, end);
    if (revoked) {
        X509_REVOKED *entry = X509_REVOKED_new();
        X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked->x));
        X509_REVOKED_set_revocationDate(entry, now);
        CHECK(X509_CRL_add0_revoked(crl, entry));
    }
    CHECK(X509_CRL_sign(crl, issuer->key, EVP_sha256()));
    CHECK(PEM_write_X509_CRL(file, crl));
    X509_CRL_free(crl);
    ASN1_TIME_free(now);
    ASN1_TIME_free(end);
}

/* A configuration for a server with this certificate, or for a client that trusts it. */
static inline aco_tls_config_t *configure_self_signed(const certificate_t *c, unsigned flags)
{
    aco_tls_config_t *config = aco_tls_config_new(flags);
    CHECK(config != NULL);
    if (flags & ACO_TLS_SERVER)
        CHECK_EQ(aco_tls_config_certificate(config, c->file, c->key_file), 0);
    else
        CHECK_EQ(aco_tls_config_trust(config, c->file), 0);
    return config;
}

#endif
