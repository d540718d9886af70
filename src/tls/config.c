/* Configurations: OpenSSL's context with safe defaults, and what this library adds to it. */
#include "tls/bio.h"
#include "tls/certificate.h"
#include "tls/config_internal.h"
#include "tls/connection.h"
#include "tls/openssl_error.h"
#include "tls/session.h"
#include "tls/random.h"
#include "tls/work.h"

#include "aco/detail/poller.h"

#include <openssl/err.h>
#include <string.h>

enum { LEAST_SECURITY_LEVEL = 2 };

/* ---- OpenSSL asks ---- */

/* Of a client: there is a new session. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    aco_tls_t *tls = aco__tls_of(ssl);
    return aco__tls_keep_session(tls->config, tls->host, session);
}

/* Of a server: it knows the name, so the client is told so, and the session has it. */
static int accept_name(SSL *ssl, int *alert, void *unused)
{
    (void)ssl, (void)alert, (void)unused;
    return SSL_TLSEXT_ERR_OK;
}

static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *length, const unsigned char *offered,
                           unsigned offered_length, void *arg)
{
    const aco_tls_config_t *config = arg;
    unsigned char *found;
    (void)ssl;
    if (SSL_select_next_proto(&found, length, config->protocols, config->protocols_length, offered, offered_length) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

/* ---- Making and freeing ---- */

static int set_up_server(aco_tls_config_t *config)
{
    SSL_CTX *context = config->context;
    /* Clients keep the sessions, in tickets. OpenSSL's cache would grow to 20 000 of them. */
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_tlsext_servername_callback(context, accept_name);
    SSL_CTX_set_cert_cb(context, aco__tls_choose_certificate, config);
    aco__tls_date_tickets(context);
    if (config->flags & ACO_TLS_VERIFY_CLIENT)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return SSL_CTX_set_session_id_context(context, (const unsigned char *)"acorn", 5);
}

static int set_up_client(aco_tls_config_t *config)
{
    SSL_CTX *context = config->context;
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_session);
    if (!(config->flags & ACO_TLS_NO_VERIFY))
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    return config->flags & (ACO_TLS_NO_VERIFY | ACO_TLS_NO_SYSTEM_STORE) || SSL_CTX_set_default_verify_paths(context);
}

static int set_up(aco_tls_config_t *config)
{
    int is_server = (config->flags & ACO_TLS_SERVER) != 0;
    SSL_CTX *context;
    aco__tls_seed_random();
    context = config->context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    config->lock = CRYPTO_THREAD_lock_new();
    if (!context || !config->lock || !SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) ||
        !SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20:!PSK:!aNULL"))
        return 0;
    if (SSL_CTX_get_security_level(context) < LEAST_SECURITY_LEVEL)
        SSL_CTX_set_security_level(context, LEAST_SECURITY_LEVEL);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1); /* a record by one system call, not two */
    return is_server ? set_up_server(config) : set_up_client(config);
}

aco_tls_config_t *aco__tls_config_enter(aco_tls_config_t *config)
{
    aco_tls_config_t *used;
    if (!CRYPTO_THREAD_read_lock(config->lock))
        return NULL;
    used = config->replacement ? config->replacement : config;
    ACO__ASSERT(__atomic_load_n(&used->users, __ATOMIC_RELAXED) > 0); /* else it has been freed */
    __atomic_add_fetch(&used->users, 1, __ATOMIC_RELAXED);
    CRYPTO_THREAD_unlock(config->lock);
    return used;
}

void aco__tls_config_leave(aco_tls_config_t *config)
{
    ACO__ASSERT(__atomic_load_n(&config->users, __ATOMIC_RELAXED) > 0);
    if (__atomic_sub_fetch(&config->users, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    if (config->replacement)
        aco__tls_config_leave(config->replacement);
    aco__tls_free_sessions(config->sessions);
    aco__tls_free_certificates(config->certificates);
    SSL_CTX_free(config->context);
    CRYPTO_THREAD_lock_free(config->lock);
    OPENSSL_free(config->protocols);
    OPENSSL_free(config);
}

static aco_tls_config_t *config_new(unsigned flags, const char *call)
{
    aco_tls_config_t *config;
    ERR_clear_error();
    config = OPENSSL_zalloc(sizeof *config);
    if (config) {
        config->flags = flags;
        config->users = 1;
        if (set_up(config)) {
            ERR_clear_error();
            return config;
        }
        aco__tls_config_leave(config);
    }
    aco__tls_fail_config(call, NULL);
    return NULL;
}

aco_tls_config_t *aco_tls_config_new(unsigned flags)
{
    static const char call[] = "aco_tls_config_new";
    const unsigned of_client = ACO_TLS_NO_SYSTEM_STORE | ACO_TLS_NO_VERIFY;
    aco_tls_config_t *config;
    if (flags & ACO_TLS_SERVER ? flags & ~(unsigned)(ACO_TLS_SERVER | ACO_TLS_VERIFY_CLIENT) : flags & ~of_client) {
        aco__service_fail(EINVAL, call, "flags that are unknown, or not for this side");
        return NULL;
    }
    aco__tls_begin_work();
    config = config_new(flags, call);
    aco__tls_end_work();
    return config;
}

int aco_tls_config_destroy(aco_tls_config_t *config)
{
    if (!config)
        return aco__service_fail(EINVAL, "aco_tls_config_destroy", "the configuration is NULL");
    aco__tls_begin_work();
    aco__tls_config_leave(config);
    aco__tls_end_work();
    return 0;
}

/* Exchanges the replacement. NULL, or the former one, of which the caller is a user then. */
static aco_tls_config_t *exchange(aco_tls_config_t *config, aco_tls_config_t *replacement, int *is_done)
{
    aco_tls_config_t *former;
    *is_done = CRYPTO_THREAD_write_lock(config->lock);
    if (!*is_done)
        return NULL;
    former = config->replacement;
    config->replacement = replacement;
    CRYPTO_THREAD_unlock(config->lock);
    return former;
}

int aco_tls_config_replace(aco_tls_config_t *config, aco_tls_config_t *replacement)
{
    static const char call[] = "aco_tls_config_replace";
    aco_tls_config_t *former;
    int is_done;
    if (!config || !replacement || config == replacement)
        return aco__service_fail(EINVAL, call, "a configuration is NULL, or both are one");
    if ((config->flags ^ replacement->flags) & ACO_TLS_SERVER || replacement->replacement)
        return aco__service_fail(EINVAL, call, "the new configuration is of the other side, or was replaced itself");
    if (replacement->flags & ACO_TLS_SERVER && !SSL_CTX_get0_certificate(replacement->context))
        return aco__service_fail(EINVAL, call, "the server has no certificate");
    if (__atomic_load_n(&config->is_replacement, __ATOMIC_RELAXED) ||
        __atomic_exchange_n(&replacement->is_replacement, 1, __ATOMIC_RELAXED))
        return aco__service_fail(EINVAL, call, "a configuration is a replacement already");
    aco__tls_begin_work();
    former = exchange(config, replacement, &is_done);
    if (former)
        aco__tls_config_leave(former);
    if (!is_done) {
        __atomic_store_n(&replacement->is_replacement, 0, __ATOMIC_RELAXED);
        aco__tls_fail_config(call, NULL);
    }
    aco__tls_end_work();
    return is_done ? 0 : -1;
}

SSL_CTX *aco_tls_config_context(const aco_tls_config_t *config)
{
    return config ? config->context : NULL;
}

/* ---- Changing ---- */

/* Before a change by these arguments. 0, or -1 and errno. */
static int begin(const aco_tls_config_t *config, const char *text, const char *call)
{
    ERR_clear_error();
    return config && text ? 0 : aco__service_fail(EINVAL, call, "an argument is NULL");
}

/* OpenSSL may have failed on the way and gone on. */
static int succeeded(void)
{
    ERR_clear_error();
    return 0;
}

static int add_certificate(aco_tls_config_t *config, const char *chain_file, const char *key_file)
{
    static const char call[] = "aco_tls_config_certificate";
    aco__tls_certificate_t *c;
    if (begin(config, chain_file && key_file ? chain_file : NULL, call) != 0)
        return -1;
    c = aco__tls_read_certificate(call, chain_file, key_file);
    if (!c)
        return -1;
    /* A client shows this one, as it has no callback. For a server this checks that it may be used. */
    if (!SSL_CTX_use_cert_and_key(config->context, c->leaf, c->key, c->chain, 1)) {
        aco__tls_free_certificates(c);
        return aco__tls_fail_config(call, chain_file);
    }
    c->next = config->certificates;
    config->certificates = c;
    return succeeded();
}

int aco_tls_config_certificate(aco_tls_config_t *config, const char *chain_file, const char *key_file)
{
    int result;
    aco__tls_begin_work();
    result = add_certificate(config, chain_file, key_file);
    aco__tls_end_work();
    return result;
}

/* The names of these authorities are sent to clients, which choose their certificate by them. */
static int name_to_clients(const aco_tls_config_t *config, const char *file)
{
    const STACK_OF(X509_NAME) *before = SSL_CTX_get_client_CA_list(config->context);
    STACK_OF(X509_NAME) *names = before ? SSL_dup_CA_list(before) : sk_X509_NAME_new_null();
    if (!names || !SSL_add_file_cert_subjects_to_stack(names, file)) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return 0;
    }
    SSL_CTX_set_client_CA_list(config->context, names); /* takes them */
    return 1;
}

static int trust(aco_tls_config_t *config, const char *file)
{
    static const char call[] = "aco_tls_config_trust";
    if (begin(config, file, call) != 0)
        return -1;
    if (!SSL_CTX_load_verify_file(config->context, file) ||
        (config->flags & ACO_TLS_VERIFY_CLIENT && !name_to_clients(config, file)))
        return aco__tls_fail_config(call, file);
    return succeeded();
}

int aco_tls_config_trust(aco_tls_config_t *config, const char *file)
{
    int result;
    aco__tls_begin_work();
    result = trust(config, file);
    aco__tls_end_work();
    return result;
}

static int add_crl(aco_tls_config_t *config, const char *file)
{
    static const char call[] = "aco_tls_config_crl";
    X509_STORE *store;
    X509_LOOKUP *lookup;
    if (begin(config, file, call) != 0)
        return -1;
    store = SSL_CTX_get_cert_store(config->context);
    lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (!lookup || X509_load_crl_file(lookup, file, X509_FILETYPE_PEM) <= 0 ||
        !X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL))
        return aco__tls_fail_config(call, file);
    return succeeded();
}

int aco_tls_config_crl(aco_tls_config_t *config, const char *file)
{
    int result;
    aco__tls_begin_work();
    result = add_crl(config, file);
    aco__tls_end_work();
    return result;
}

/* Whether these are names of 1 to 255 bytes, with commas between them, as many as TLS can send. */
static int are_protocols(const char *protocols, size_t length)
{
    size_t start = 0; /* of a name */
    for (size_t i = 0; i <= length; i++) {
        if (i < length && protocols[i] != ',')
            continue;
        if (i == start || i - start > 255)
            return 0;
        start = i + 1;
    }
    return length < 65535;
}

/* "a,b" as TLS has it: a length before each. NULL: no memory. */
static unsigned char *wire_form(const char *protocols, size_t length)
{
    unsigned char *wire = OPENSSL_malloc(length + 1);
    size_t start = 0; /* of a name; in `wire`, of its length */
    for (size_t i = 0; wire && i <= length; i++) {
        if (i < length && protocols[i] != ',') {
            wire[i + 1] = (unsigned char)protocols[i];
            continue;
        }
        wire[start] = (unsigned char)(i - start);
        start = i + 1;
    }
    return wire;
}

int aco_tls_config_alpn(aco_tls_config_t *config, const char *protocols)
{
    static const char call[] = "aco_tls_config_alpn";
    size_t length = protocols ? strlen(protocols) : 0;
    unsigned char *wire;
    if (begin(config, protocols, call) != 0)
        return -1;
    if (!are_protocols(protocols, length))
        return aco__service_fail(EINVAL, call, "the protocols are no names with commas between them");
    wire = wire_form(protocols, length);
    if (!wire)
        return aco__tls_fail_config(call, NULL);
    OPENSSL_free(config->protocols);
    config->protocols = wire;
    config->protocols_length = (unsigned)length + 1;
    if (config->flags & ACO_TLS_SERVER)
        SSL_CTX_set_alpn_select_cb(config->context, choose_protocol, config);
    else if (SSL_CTX_set_alpn_protos(config->context, wire, config->protocols_length) != 0) /* 0 is success */
        return aco__tls_fail_config(call, NULL);
    return succeeded();
}

int aco_tls_config_sessions(aco_tls_config_t *config, size_t hosts)
{
    if (!config || config->flags & ACO_TLS_SERVER)
        return aco__service_fail(EINVAL, "aco_tls_config_sessions", "no configuration of a client");
    config->most_sessions = hosts;
    return succeeded();
}
