/* Promises: TLS runs over the simulated network, and each byte of a handshake repeats. */
#define _GNU_SOURCE
#include "sim_ends.h"
#include "tls_certificates.h"

#include "aco/io.h"
#include "aco/sim.h"
#include "aco/tls.h"

#include <errno.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 50, CONNECTIONS = 2 };

static certificate_t root, with_ec, with_rsa;

typedef struct kind {
    const certificate_t *certificate;
    int version;
    aco_sim_link_t link;
    size_t sessions; /* that clients keep. With TLS 1.3, they would tell the server how old they are in real time */
} kind_t;

typedef struct side {
    aco_tls_config_t *config;
    int listener, resumes;
} side_t;

static void *serve(void *arg)
{
    const side_t *side = arg;
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = aco_io_accept(side->listener);
        aco_tls_t *tls = aco_tls_accept(fd, side->config);
        char text[6] = "";
        CHECK(tls != NULL);
        CHECK_EQ(aco_tls_read(tls, text, sizeof text), 5);
        CHECK_EQ(aco_tls_write_all(tls, text, 5), 5);
        CHECK_EQ(aco_tls_read(tls, text, sizeof text), 0);
        CHECK_EQ(aco_tls_close(tls), 0);
    }
    return NULL;
}

static void *ask(void *arg)
{
    const side_t *side = arg;
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = aco_io_dial("tcp", "a.test", "443", NULL);
        aco_tls_t *tls = aco_tls_connect(fd, "a.test", side->config);
        aco_tls_info_t info;
        char text[6] = "";
        CHECK(tls != NULL);
        CHECK(aco_tls_info(tls, &info) == 0 && info.is_resumed == (i && side->resumes));
        CHECK_EQ(aco_tls_write_all(tls, "hello", 5), 5);
        CHECK(aco_tls_read(tls, text, sizeof text) == 5 && strcmp(text, "hello") == 0);
        CHECK_EQ(aco_tls_shutdown(tls, SHUT_RDWR), 0);
        CHECK_EQ(aco_tls_close(tls), 0);
    }
    return NULL;
}

static aco_tls_config_t *config_for(const kind_t *kind, unsigned flags)
{
    aco_tls_config_t *config = aco_tls_config_new(flags);
    SSL_CTX *context = aco_tls_config_context(config);
    CHECK(SSL_CTX_set_min_proto_version(context, kind->version));
    CHECK(SSL_CTX_set_max_proto_version(context, kind->version));
    if (flags & ACO_TLS_SERVER)
        CHECK_EQ(aco_tls_config_certificate(config, kind->certificate->file, kind->certificate->key_file), 0);
    else
        CHECK(aco_tls_config_trust(config, root.file) == 0 && aco_tls_config_sessions(config, kind->sessions) == 0);
    return config;
}

static void shake_hands(aco_sim_t *sim, void *arg)
{
    const kind_t *kind = arg;
    aco_options_t options = {.stack_size = ACO_TLS_STACK};
    side_t server = {config_for(kind, ACO_TLS_SERVER), aco_io_listen("tcp", "10.0.0.1", "443", NULL), 0};
    side_t client = {config_for(kind, ACO_TLS_NO_SYSTEM_STORE), -1, kind->sessions > 0};
    aco_t *a, *b;
    CHECK(aco_sim_link(sim, "*", "*", &kind->link) == 0);
    CHECK(aco_sim_name(sim, "a.test", "10.0.0.1") == 0);
    a = aco_spawn(serve, &server, &options);
    b = aco_spawn(ask, &client, &options);
    CHECK(aco_join(a, NULL) == 0 && aco_join(b, NULL) == 0);
    CHECK(aco_io_close(server.listener) == 0);
    CHECK(aco_tls_config_destroy(server.config) == 0 && aco_tls_config_destroy(client.config) == 0);
}

/* Outside of a run, OpenSSL draws on. */
static void check_random(void)
{
    unsigned char a[16] = {0}, b[16] = {0};
    CHECK(RAND_bytes(a, sizeof a) == 1 && RAND_priv_bytes(b, sizeof b) == 1 && memcmp(a, b, sizeof a) != 0);
}

int main(void)
{
    kind_t kinds[] = {{&with_ec, TLS1_3_VERSION, {.loss = 0.02}, 0},
                      {&with_ec, TLS1_2_VERSION, {.loss = 0}, 1},
                      {&with_rsa, TLS1_3_VERSION, {.loss = 0}, 0}};
    sim_alarm(60);
    make_certificate(&root, "root", &(how_t){0});
    make_certificate(&with_ec, "ec", &(how_t){.names = "DNS:a.test", .issuer = &root});
    make_certificate(&with_rsa, "rsa", &(how_t){.names = "DNS:a.test", .issuer = &root, .rsa_bits = 2048});
    passes(shake_hands, &kinds[0], RUNS);
    passes(shake_hands, &kinds[1], RUNS / 5);
    passes(shake_hands, &kinds[2], RUNS / 5);
    check_random();
    free_certificate(&root);
    free_certificate(&with_ec);
    free_certificate(&with_rsa);
    return check_result("sim_tls");
}
