/* For the tests of aco/tls.h: certificates, configurations, and two ends that meet. */
#ifndef TLS_TESTS_H
#define TLS_TESTS_H

#include <aco/pool.h>
#include <aco/tls.h>
#include "io_tests.h"
#include "tls_certificates.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

static certificate_t root, other_root, middle, good, second, expired, early, revoked, weak, weak_signed, self, client,
    unnamed;
static char crl_file[64], short_crl_file[64], old_crl_file[64], middle_crl_file[64], locked_key_file[64],
    empty_file[64];

static inline void make_locked_key(void)
{
    FILE *file = new_file(locked_key_file, "locked.key");
    CHECK(PEM_write_PrivateKey(file, good.key, EVP_aes_128_cbc(), (const unsigned char *)"word", 4, NULL, NULL));
    fclose(file);
    fclose(new_file(empty_file, "empty.pem"));
}

static inline void make_crls(void)
{
    FILE *file = new_file(crl_file, "crl.pem");
    write_crl(file, &root, NULL, DAY);
    write_crl(file, &middle, &revoked, DAY);
    fclose(file);
    file = new_file(short_crl_file, "short_crl.pem"); /* the intermediate authority's is missing */
    write_crl(file, &root, NULL, DAY);
    fclose(file);
    file = new_file(old_crl_file, "old_crl.pem");
    write_crl(file, &root, NULL, DAY);
    write_crl(file, &middle, NULL, -60);
    fclose(file);
    file = new_file(middle_crl_file, "middle_crl.pem"); /* the intermediate authority itself is revoked */
    write_crl(file, &root, &middle, DAY);
    write_crl(file, &middle, NULL, DAY);
    fclose(file);
}

static inline void make_certificates(void)
{
    static const char names[] = "DNS:a.test,DNS:*.wild.test,IP:127.0.0.1,IP:::1";
    make_certificate(&root, "root", &(how_t){0});
    make_certificate(&other_root, "other_root", &(how_t){0});
    make_certificate(&middle, "middle", &(how_t){.issuer = &root});
    make_certificate(&good, "good", &(how_t){names, .issuer = &middle, .has_chain = 1});
    make_certificate(&second, "second", &(how_t){"DNS:b.test", .issuer = &root, .rsa_bits = 2048});
    make_certificate(&expired, "expired", &(how_t){names, -2 * DAY, -DAY, .issuer = &root});
    make_certificate(&early, "early", &(how_t){names, DAY, 2 * DAY, .issuer = &root});
    make_certificate(&revoked, "revoked", &(how_t){names, .issuer = &middle, .has_chain = 1});
    make_certificate(&weak, "weak", &(how_t){names, .issuer = &root, .rsa_bits = 1024});
    make_certificate(&weak_signed, "weak_signed", &(how_t){names, .issuer = &middle, .has_chain = 1, .is_sha1 = 1});
    make_certificate(&self, "self", &(how_t){.names = names});
    make_certificate(&client, "client", &(how_t){"DNS:worker", .issuer = &middle, .has_chain = 1});
    make_certificate(&unnamed, "cn.test", &(how_t){"", .issuer = &root});
    make_crls();
    make_locked_key();
}

static inline void free_certificates(void)
{
    certificate_t *const all[] = {&root,    &other_root, &middle,      &good, &second, &expired, &early,
                                  &revoked, &weak,       &weak_signed, &self, &client, &unnamed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_certificate(all[i]);
}

static inline aco_tls_config_t *new_config(unsigned flags)
{
    aco_tls_config_t *config = aco_tls_config_new(flags);
    CHECK(config != NULL);
    return config;
}

static inline aco_tls_config_t *server_with(unsigned flags, const certificate_t *c)
{
    aco_tls_config_t *config = new_config(ACO_TLS_SERVER | flags);
    SSL_CTX_set_security_level(aco_tls_config_context(config), 0); /* weak certificates too */
    CHECK_EQ(aco_tls_config_certificate(config, c->file, c->key_file), 0);
    return config;
}

static inline aco_tls_config_t *client_that_trusts(const certificate_t *authority)
{
    aco_tls_config_t *config = new_config(ACO_TLS_NO_SYSTEM_STORE);
    CHECK_EQ(aco_tls_config_trust(config, authority->file), 0);
    return config;
}

static inline void only_version(aco_tls_config_t *config, int version)
{
    CHECK(SSL_CTX_set_min_proto_version(aco_tls_config_context(config), version));
    CHECK(SSL_CTX_set_max_proto_version(aco_tls_config_context(config), version));
}

/* ---- Two ends that meet ---- */

typedef struct end {
    aco_tls_config_t *config;
    const char *host;          /* of a client */
    void (*act)(aco_tls_t *tls); /* once connected; then the connection is closed */
    int fd, is_server;
    int error;                 /* of the handshake; 0: it succeeded */
    char message[512];
    char protocol[16], alpn[16], server_name[64], peer[64];
    int is_resumed;
    ptrdiff_t depth;
} end_t;

static inline void note_info(end_t *end, const aco_tls_t *tls)
{
    aco_tls_info_t info;
    CHECK_EQ(aco_tls_info(tls, &info), 0);
    CHECK(*info.cipher);
    snprintf(end->protocol, sizeof end->protocol, "%s", info.protocol);
    snprintf(end->alpn, sizeof end->alpn, "%s", info.alpn);
    snprintf(end->server_name, sizeof end->server_name, "%s", info.server_name);
    end->is_resumed = info.is_resumed;
    if (aco_tls_peer_name(tls, end->peer, sizeof end->peer) != 0)
        *end->peer = 0;
}

static inline void *be_end(void *arg)
{
    end_t *end = arg;
    aco_tls_t *tls =
        end->is_server ? aco_tls_accept(end->fd, end->config) : aco_tls_connect(end->fd, end->host, end->config);
    end->error = tls ? 0 : errno;
    *end->message = *end->peer = *end->alpn = 0;
    if (!tls)
        snprintf(end->message, sizeof end->message, "%s", aco_error_message());
    CHECK_EQ(ERR_peek_error(), 0);
    if (tls) {
        note_info(end, tls);
        if (end->act)
            end->act(tls);
        CHECK_EQ(aco_tls_close(tls), 0);
    }
    end->depth = aco_stack_high_water(aco_current_task());
    return NULL;
}

/* `small`: on stacks of ACO_TLS_STACK. */
static inline void meet_on(end_t *client_end, end_t *server_end, int is_small)
{
    aco_options_t options = {.stack_size = is_small ? ACO_TLS_STACK : 0};
    aco_group_t group;
    int pair[2];
    make_pair(pair, SOCK_STREAM);
    CHECK_EQ(aco_io_adopt(pair[0]), 0);
    CHECK_EQ(aco_io_adopt(pair[1]), 0);
    client_end->fd = pair[0];
    server_end->fd = pair[1];
    server_end->is_server = 1;
    aco_group_begin(&group, ACO_KEEP_GOING);
    CHECK(aco_group_spawn(&group, be_end, client_end, &options) != NULL);
    CHECK(aco_group_spawn(&group, be_end, server_end, &options) != NULL);
    CHECK_EQ(aco_group_end(&group), 0);
}

static inline void meet(end_t *client_end, end_t *server_end)
{
    meet_on(client_end, server_end, 0);
}

/* The two configurations, which are destroyed, meet with success. */
static inline void succeed(end_t *client_end, end_t *server_end)
{
    meet(client_end, server_end);
    if (client_end->error || server_end->error)
        fprintf(stderr, "client: %s; server: %s\n", client_end->message, server_end->message);
    CHECK_EQ(client_end->error, 0);
    CHECK_EQ(server_end->error, 0);
}

static inline void destroy_configs(const end_t *client_end, const end_t *server_end)
{
    CHECK_EQ(aco_tls_config_destroy(client_end->config), 0);
    CHECK_EQ(aco_tls_config_destroy(server_end->config), 0);
}

static inline void reads_end(aco_tls_t *tls)
{
    char byte;
    CHECK_EQ(aco_tls_read(tls, &byte, 1), 0);
}

static inline void says_hello(aco_tls_t *tls)
{
    char text[8] = "";
    CHECK_EQ(aco_tls_write_all(tls, "hello", 5), 5);
    CHECK_EQ(aco_tls_wait_readable(tls), 0);
    CHECK_EQ(aco_tls_read(tls, text, sizeof text), 5);
    CHECK(strcmp(text, "HELLO") == 0);
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_RDWR), 0);
}

static inline void answers_hello(aco_tls_t *tls)
{
    char text[8] = "";
    CHECK_EQ(aco_tls_read(tls, text, sizeof text), 5);
    CHECK(strcmp(text, "hello") == 0);
    CHECK_EQ(aco_tls_write(tls, "HELLO", 5), 5);
    CHECK_EQ(aco_tls_read(tls, text, sizeof text), 0);
    CHECK_EQ(aco_tls_read(tls, text, sizeof text), 0);
}

/* The tests of one program. */
static inline void run_tls_tests(const aco_function_t *tests, size_t n)
{
    make_certificates();
    run_task(warms_up, NULL);
    run_tests(tests, n, count_descriptors());
}

#endif
