/* TLS on a connection (include/aco/tls.h): handshakes, refused certificates, resumption, ends of streams, scopes. Both
 * ends are this library's, or one is a socket that sends something else; tests/io/tls.py has other implementations. */
#define _GNU_SOURCE
#include <aco/pool.h>
#include <aco/sync.h>
#include <aco/tls.h>
#include "io_tests.h"
#include "sanitizers.h"
#include "tls_certificates.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

/* ---- Certificates, made once ---- */

static certificate_t root, other_root, middle, good, second, expired, early, revoked, weak, weak_signed, self, client,
    unnamed;
static char crl_file[64], short_crl_file[64], old_crl_file[64], locked_key_file[64], empty_file[64];

static void make_locked_key(void)
{
    FILE *file = new_file(locked_key_file, "locked.key");
    CHECK(PEM_write_PrivateKey(file, good.key, EVP_aes_128_cbc(), (const unsigned char *)"word", 4, NULL, NULL));
    fclose(file);
    fclose(new_file(empty_file, "empty.pem"));
}

static void make_crls(void)
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
}

static void make_certificates(void)
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

static void free_certificates(void)
{
    certificate_t *const all[] = {&root,    &other_root, &middle, &good,        &second, &expired,
                                  &early,   &revoked,    &weak,   &weak_signed, &self,   &client,
                                  &unnamed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_certificate(all[i]);
}

static aco_tls_config_t *new_config(unsigned flags)
{
    aco_tls_config_t *config = aco_tls_config_new(flags);
    CHECK(config != NULL);
    return config;
}

static aco_tls_config_t *server_with(unsigned flags, const certificate_t *c)
{
    aco_tls_config_t *config = new_config(ACO_TLS_SERVER | flags);
    SSL_CTX_set_security_level(aco_tls_config_context(config), 0); /* weak certificates too */
    CHECK_EQ(aco_tls_config_certificate(config, c->file, c->key_file), 0);
    return config;
}

static aco_tls_config_t *client_that_trusts(const certificate_t *authority)
{
    aco_tls_config_t *config = new_config(ACO_TLS_NO_SYSTEM_STORE);
    CHECK_EQ(aco_tls_config_trust(config, authority->file), 0);
    return config;
}

static void only_version(aco_tls_config_t *config, int version)
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

static void note_info(end_t *end, const aco_tls_t *tls)
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

static void *be_end(void *arg)
{
    end_t *end = arg;
    aco_tls_t *tls = end->is_server ? aco_tls_accept(end->fd, end->config)
                                    : aco_tls_connect(end->fd, end->host, end->config);
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
static void meet_on(end_t *client_end, end_t *server_end, int is_small)
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

static void meet(end_t *client_end, end_t *server_end)
{
    meet_on(client_end, server_end, 0);
}

/* The two configurations, which are destroyed, meet with success. */
static void succeed(end_t *client_end, end_t *server_end)
{
    meet(client_end, server_end);
    if (client_end->error || server_end->error)
        fprintf(stderr, "client: %s; server: %s\n", client_end->message, server_end->message);
    CHECK_EQ(client_end->error, 0);
    CHECK_EQ(server_end->error, 0);
}

static void destroy_configs(const end_t *client_end, const end_t *server_end)
{
    CHECK_EQ(aco_tls_config_destroy(client_end->config), 0);
    CHECK_EQ(aco_tls_config_destroy(server_end->config), 0);
}

static void reads_end(aco_tls_t *tls)
{
    char byte;
    CHECK_EQ(aco_tls_read(tls, &byte, 1), 0);
}

static void says_hello(aco_tls_t *tls)
{
    char text[8] = "";
    CHECK_EQ(aco_tls_write_all(tls, "hello", 5), 5);
    CHECK_EQ(aco_tls_wait_readable(tls), 0);
    CHECK_EQ(aco_tls_read(tls, text, sizeof text), 5);
    CHECK(strcmp(text, "HELLO") == 0);
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_RDWR), 0);
}

static void answers_hello(aco_tls_t *tls)
{
    char text[8] = "";
    CHECK_EQ(aco_tls_read(tls, text, sizeof text), 5);
    CHECK(strcmp(text, "hello") == 0);
    CHECK_EQ(aco_tls_write(tls, "HELLO", 5), 5);
    CHECK_EQ(aco_tls_read(tls, text, sizeof text), 0);
    CHECK_EQ(aco_tls_read(tls, text, sizeof text), 0);
}

/* ---- Handshakes ---- */

static void *handshakes(void *unused)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    static const char *const names[] = {"TLSv1.2", "TLSv1.3"};
    static const char *const hosts[] = {"a.test", "A.TEST.", "x.wild.test", "127.0.0.1", "::1", "[::1]"};
    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        end_t c = {.config = client_that_trusts(&root), .act = says_hello};
        end_t s = {.config = server_with(0, &good), .act = answers_hello};
        only_version(c.config, versions[i]);
        for (size_t j = 0; j < sizeof hosts / sizeof *hosts; j++) {
            c.host = hosts[j];
            succeed(&c, &s);
            CHECK(strcmp(c.protocol, names[i]) == 0 && strcmp(s.protocol, names[i]) == 0);
            CHECK(strcmp(c.peer, "CN=good") == 0 && !*s.peer);
            CHECK(!*c.alpn && !c.is_resumed);
        }
        CHECK(!*s.server_name); /* an address is not sent */
        destroy_configs(&c, &s);
    }
    return NULL;
}

static void *protocols(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = reads_end};
    end_t s = {.config = server_with(0, &good)};
    (void)unused;
    CHECK_EQ(aco_tls_config_alpn(c.config, "first,http/1.1,h2"), 0);
    CHECK_EQ(aco_tls_config_alpn(s.config, "h2,http/1.1"), 0);
    succeed(&c, &s);
    CHECK(strcmp(c.alpn, "h2") == 0 && strcmp(s.alpn, "h2") == 0);
    CHECK(strcmp(s.server_name, "a.test") == 0);
    CHECK_EQ(aco_tls_config_alpn(s.config, "h3"), 0);
    meet(&c, &s);
    CHECK_EQ(s.error, EPROTO);
    CHECK_EQ(c.error, EPROTO);
    CHECK(strstr(c.message, "aco_tls_connect: a.test: the peer sent the alert: no application protocol") != NULL);
    destroy_configs(&c, &s);
    return NULL;
}

static void *names(void *unused)
{
    static const char *const hosts[] = {"b.test", "a.test", "y.wild.test"};
    static const char *const peers[] = {"CN=second", "CN=good", "CN=good"};
    end_t c = {.config = client_that_trusts(&root), .act = reads_end}, s = {.config = server_with(0, &good)};
    (void)unused;
    CHECK_EQ(aco_tls_config_certificate(s.config, second.file, second.key_file), 0);
    for (size_t i = 0; i < 3; i++) {
        c.host = hosts[i];
        succeed(&c, &s);
        CHECK(strcmp(c.peer, peers[i]) == 0 && strcmp(s.server_name, hosts[i]) == 0);
    }
    CHECK_EQ(aco_tls_config_destroy(c.config), 0);
    c.config = new_config(ACO_TLS_NO_VERIFY);
    c.host = "c.test";
    succeed(&c, &s);
    CHECK(strcmp(c.peer, "CN=good") == 0); /* the first is for other names */
    c.host = NULL;
    succeed(&c, &s);
    CHECK(strcmp(c.peer, "CN=good") == 0 && !*s.server_name);
    destroy_configs(&c, &s);
    return NULL;
}

/* ---- Refused certificates ---- */

static void refuse(const certificate_t *shown, const char *host, const certificate_t *trusted, const char *crl,
                   const char *message)
{
    end_t c = {.host = host, .config = client_that_trusts(trusted)}, s = {.config = server_with(0, shown)};
    if (crl)
        CHECK_EQ(aco_tls_config_crl(c.config, crl), 0);
    meet(&c, &s);
    CHECK_EQ(c.error, EACCES);
    CHECK_EQ(s.error, EPROTO);
    if (!strstr(c.message, message) || !strstr(c.message, host))
        fprintf(stderr, "wanted \"%s\", it was \"%s\"\n", message, c.message);
    CHECK(strstr(c.message, message) && strstr(c.message, host));
    CHECK(strstr(s.message, "the peer sent the alert: ") != NULL);
    destroy_configs(&c, &s);
}

static void *refusals(void *unused)
{
    (void)unused;
    refuse(&expired, "a.test", &root, NULL, "certificate refused, expired: ");
    refuse(&early, "a.test", &root, NULL, "certificate refused, not valid yet: ");
    refuse(&good, "c.test", &root, NULL, "certificate refused, wrong host: ");
    refuse(&unnamed, "cn.test", &root, NULL, "certificate refused, wrong host: "); /* by its common name only */
    refuse(&good, "x.y.wild.test", &root, NULL, "certificate refused, wrong host: ");
    refuse(&good, "127.0.0.2", &root, NULL, "certificate refused, wrong host: ");
    refuse(&good, "127.0.0.1.c.test", &root, NULL, "certificate refused, wrong host: "); /* no address */
    refuse(&self, "a.test", &root, NULL, "certificate refused, self-signed: ");
    refuse(&good, "a.test", &other_root, NULL, "certificate refused, untrusted: ");
    refuse(&weak, "a.test", &root, NULL, "certificate refused, weak: ");
    refuse(&weak_signed, "a.test", &root, NULL, "certificate refused, weak: ");
    refuse(&revoked, "a.test", &root, crl_file, "certificate refused, revoked: ");
    refuse(&good, "a.test", &root, short_crl_file, "certificate refused, no CRL: ");
    refuse(&good, "a.test", &root, old_crl_file, "certificate refused, no CRL: ");
    return NULL;
}

/* What is refused above is the only reason there. */
static void *accepted_all_the_same(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = reads_end};
    end_t s = {.config = server_with(0, &good)};
    (void)unused;
    CHECK_EQ(aco_tls_config_crl(c.config, crl_file), 0);
    succeed(&c, &s);
    destroy_configs(&c, &s);
    c.config = client_that_trusts(&self); /* a self-signed one that is trusted */
    s.config = server_with(0, &self);
    succeed(&c, &s);
    destroy_configs(&c, &s);
    c.config = new_config(ACO_TLS_NO_VERIFY);
    c.host = "c.test";
    s.config = server_with(0, &expired);
    succeed(&c, &s);
    destroy_configs(&c, &s);
    c.config = new_config(0); /* the system's store does not have ours */
    s.config = server_with(0, &good);
    meet(&c, &s);
    CHECK_EQ(c.error, EACCES);
    destroy_configs(&c, &s);
    return NULL;
}

static void fails_to_read(aco_tls_t *tls)
{
    char byte;
    FAILS_WITH(aco_tls_read(tls, &byte, 1), EPROTO);
    CHECK(strstr(aco_error_message(), "aco_tls_read: a.test: the peer sent the alert: ") != NULL);
    FAILS_WITH(aco_tls_read(tls, &byte, 1), ECONNABORTED);
    FAILS_WITH(aco_tls_write(tls, &byte, 1), ECONNABORTED);
    FAILS_WITH(aco_tls_shutdown(tls, SHUT_WR), ECONNABORTED);
}

static void *clients_certificates(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = fails_to_read};
    end_t s = {.config = server_with(ACO_TLS_VERIFY_CLIENT, &good)};
    (void)unused;
    CHECK_EQ(aco_tls_config_trust(s.config, other_root.file), 0);
    meet(&c, &s); /* a client of TLS 1.3 is connected before it is refused */
    CHECK_EQ(s.error, EACCES);
    CHECK(strstr(s.message, "the peer has no certificate") != NULL);
    CHECK_EQ(aco_tls_config_certificate(c.config, client.file, client.key_file), 0);
    meet(&c, &s);
    CHECK_EQ(s.error, EACCES);
    CHECK(strstr(s.message, "certificate refused, untrusted: ") != NULL);
    CHECK_EQ(aco_tls_config_trust(s.config, root.file), 0);
    c.act = says_hello;
    s.act = answers_hello;
    succeed(&c, &s);
    CHECK(strcmp(s.peer, "CN=client") == 0);
    destroy_configs(&c, &s);
    return NULL;
}

/* ---- Resumption ---- */

static int resumes(end_t *c, end_t *s, const char *host)
{
    c->host = host;
    succeed(c, s);
    CHECK_EQ(c->is_resumed, s->is_resumed);
    CHECK(strcmp(c->peer, "CN=good") == 0); /* a resumed session knows the certificate */
    return c->is_resumed;
}

static void *resumption(void *unused)
{
    (void)unused;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        end_t c = {.config = client_that_trusts(&root), .act = reads_end}, s = {.config = server_with(0, &good)};
        only_version(c.config, version);
        CHECK(!resumes(&c, &s, "a.test") && !resumes(&c, &s, "a.test")); /* not by default */
        CHECK_EQ(aco_tls_config_sessions(c.config, 2), 0);
        CHECK(!resumes(&c, &s, "a.test"));
        for (int i = 0; i < 3; i++)
            CHECK(resumes(&c, &s, "a.test"));
        CHECK(!resumes(&c, &s, "x.wild.test"));
        CHECK(resumes(&c, &s, "a.test") && resumes(&c, &s, "x.wild.test"));
        CHECK(!resumes(&c, &s, "y.wild.test"));
        CHECK(!resumes(&c, &s, "a.test")); /* two hosts at most */
        CHECK_EQ(aco_tls_config_destroy(s.config), 0);
        s.config = server_with(0, &good); /* it has another key */
        CHECK(!resumes(&c, &s, "a.test") && resumes(&c, &s, "a.test"));
        destroy_configs(&c, &s);
    }
    return NULL;
}

/* ---- Ends ---- */

enum { MUCH = 300000 };
static char much[MUCH], got_much[MUCH];

static void shuts_then_reads(aco_tls_t *tls)
{
    ssize_t n = 1;
    size_t got = 0;
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_WR), 0);
    FAILS_WITH(aco_tls_write(tls, "x", 1), EPIPE);
    FAILS_WITH(aco_tls_write_all(tls, "x", 1), EPIPE);
    memset(got_much, 0, sizeof got_much);
    while (n > 0 && got < MUCH) {
        n = aco_tls_read(tls, got_much + got, MUCH - got);
        got += n > 0 ? (size_t)n : 0;
    }
    CHECK_EQ(got, MUCH);
    CHECK(memcmp(much, got_much, MUCH) == 0);
    reads_end(tls);
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_WR), 0); /* again */
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_RDWR), 0);
}

static void writes_after_the_end(aco_tls_t *tls)
{
    size_t done = 1;
    reads_end(tls);
    CHECK_EQ(aco_tls_write_all_done(tls, much, MUCH, &done), MUCH);
    CHECK_EQ(done, MUCH);
}

static void shuts_both_ways(aco_tls_t *tls)
{
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_RDWR), 0); /* drops what comes */
    reads_end(tls);
}

static void cuts(aco_tls_t *tls)
{
    CHECK_EQ(aco_tls_write(tls, "part", 4), 4);
    CHECK_EQ(shutdown(aco_tls_fd(tls), SHUT_RDWR), 0); /* behind TLS's back */
}

static void notices_cut(aco_tls_t *tls)
{
    char text[8];
    CHECK_EQ(aco_tls_read(tls, text, sizeof text), 4);
    FAILS_WITH(aco_tls_read(tls, text, sizeof text), ECONNRESET);
    CHECK(strstr(aco_error_message(), "the stream ended without close_notify") != NULL);
}

static void notices_gone(aco_tls_t *tls)
{
    int n = 0;
    errno = 0;
    while (n < 100 && aco_tls_write(tls, much, MUCH) > 0) /* no SIGPIPE */
        n++;
    CHECK(n < 100 && (errno == EPIPE || errno == ECONNRESET));
    FAILS_WITH(aco_tls_write(tls, much, MUCH), ECONNABORTED);
}

static void *ends(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = shuts_then_reads};
    end_t s = {.config = server_with(0, &good), .act = writes_after_the_end};
    (void)unused;
    succeed(&c, &s);
    c.act = shuts_both_ways;
    succeed(&c, &s);
    c.act = notices_cut;
    s.act = cuts;
    succeed(&c, &s);
    c.act = cuts;
    s.act = notices_cut;
    succeed(&c, &s);
    c.act = reads_end;
    s.act = NULL; /* aco_tls_close() sends the end */
    succeed(&c, &s);
    c.act = notices_gone;
    succeed(&c, &s);
    destroy_configs(&c, &s);
    return NULL;
}

/* ---- Peers that do not speak TLS ---- */

typedef struct raw {
    int fd, reads_first;
    const char *text;
} raw_t;

static void *sends_text(void *arg)
{
    const raw_t *raw = arg;
    char bytes[4096];
    if (raw->reads_first)
        CHECK(aco_io_read(raw->fd, bytes, sizeof bytes) > 0);
    CHECK_EQ(aco_io_write_all(raw->fd, raw->text, strlen(raw->text)), (ssize_t)strlen(raw->text));
    CHECK_EQ(aco_io_close(raw->fd), 0);
    return NULL;
}

static void meet_raw(end_t *end, const char *text, int error, const char *message)
{
    aco_group_t group;
    raw_t raw = {.text = text, .reads_first = !end->is_server};
    int pair[2];
    make_pair(pair, SOCK_STREAM);
    raw.fd = pair[0];
    end->fd = pair[1];
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, sends_text, &raw);
    member(&group, be_end, end);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(end->error, error);
    if (!strstr(end->message, message))
        fprintf(stderr, "wanted \"%s\", it was \"%s\"\n", message, end->message);
    CHECK(strstr(end->message, message) != NULL);
}

static void *strangers(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root)};
    end_t s = {.config = server_with(0, &good), .is_server = 1};
    (void)unused;
    meet_raw(&s, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", EPROTO, "protocol: http request");
    meet_raw(&s, "nothing that anybody has ever heard of", EPROTO, "protocol: ");
    meet_raw(&s, "", ECONNRESET, "the stream ended in the handshake");
    meet_raw(&s, "\x16\x03\x01\x02", ECONNRESET, "the stream ended in the handshake");
    meet_raw(&c, "HTTP/1.1 400 Bad Request\r\n\r\n", EPROTO, "a.test: protocol: wrong version number");
    meet_raw(&c, "", ECONNRESET, "a.test: the stream ended in the handshake");
    destroy_configs(&c, &s);
    return NULL;
}

/* TCP's reset. */
static void *reset(void *unused)
{
    struct linger at_once = {1, 0};
    end_t s = {.config = server_with(0, &good), .is_server = 1};
    int pair[2];
    (void)unused;
    make_tcp(pair);
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    CHECK_EQ(aco_io_close(pair[0]), 0);
    s.fd = pair[1];
    be_end(&s);
    CHECK_EQ(s.error, ECONNRESET);
    CHECK(strstr(s.message, "aco_tls_accept: descriptor ") && strstr(s.message, strerror(ECONNRESET)));
    CHECK_EQ(aco_tls_config_destroy(s.config), 0);
    return NULL;
}

/* ---- Scopes ---- */

static void *scopes_in_handshakes(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root)};
    end_t s = {.config = server_with(0, &good), .is_server = 1};
    end_t *const both[] = {&c, &s};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        aco_scope_t scope;
        aco_group_t group;
        int pair[2];
        make_pair(pair, SOCK_STREAM);
        both[i]->fd = pair[1];
        aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
        be_end(both[i]); /* it closes pair[1] */
        aco_scope_end(&scope);
        CHECK_EQ(both[i]->error, ETIMEDOUT);
        CHECK_EQ(aco_io_close(pair[0]), 0);

        make_pair(pair, SOCK_STREAM);
        both[i]->fd = pair[1];
        aco_group_begin(&group, ACO_KEEP_GOING);
        member(&group, be_end, both[i]);
        aco_task_yield();
        CHECK_EQ(aco_scope_cancel(&group.scope), 0);
        CHECK_EQ(aco_group_end(&group), 0);
        CHECK_EQ(both[i]->error, ECANCELED);
        CHECK_EQ(aco_io_close(pair[0]), 0);
    }
    destroy_configs(&c, &s);
    return NULL;
}

static aco_event_t may_go_on = ACO_EVENT_INIT;

static void is_silent(aco_tls_t *tls)
{
    (void)tls;
    CHECK_EQ(aco_event_wait(&may_go_on), 0);
}

static void is_late(aco_tls_t *tls)
{
    char byte;
    size_t done = 0;
    aco_scope_t scope;
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_tls_read(tls, &byte, 1), ETIMEDOUT);
    aco_scope_end(&scope);
    aco_scope_begin(&scope, aco_after(20 * ACO_MILLISECOND));
    for (int i = 0; i < 1000 && done == (i ? MUCH : 0); i++) /* until no buffer has room */
        errno = 0, (void)aco_tls_write_all_done(tls, much, MUCH, &done);
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK(done < MUCH);
    aco_scope_end(&scope);
    FAILS_WITH(aco_tls_write(tls, &byte, 1), ECONNABORTED); /* in the middle of a record */
    CHECK(strstr(aco_error_message(), "it has failed before") != NULL);
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_tls_read(tls, &byte, 1), ETIMEDOUT); /* reads go on */
    FAILS_WITH(aco_tls_wait_readable(tls), ETIMEDOUT);
    aco_scope_end(&scope);
    aco_event_set(&may_go_on);
}

static void shuts_in_vain(aco_tls_t *tls)
{
    aco_scope_t scope;
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_tls_shutdown(tls, SHUT_RDWR), ETIMEDOUT);
    aco_scope_end(&scope);
    aco_event_set(&may_go_on);
}

static void *scopes(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = is_late};
    end_t s = {.config = server_with(0, &good), .act = is_silent};
    (void)unused;
    aco_event_reset(&may_go_on);
    succeed(&c, &s);
    c.act = shuts_in_vain;
    aco_event_reset(&may_go_on);
    succeed(&c, &s);
    destroy_configs(&c, &s);
    return NULL;
}

/* ---- Several tasks with one connection ---- */

typedef struct use {
    aco_tls_t *tls;
    char letter;
    int error;
    size_t n;
} use_t;

enum { PIECE = 40000, PIECES = 20 }; /* more than the buffers of a socket */

static void *writes_pieces(void *arg)
{
    const use_t *use = arg;
    char *piece = malloc(PIECE);
    memset(piece, use->letter, PIECE);
    for (int i = 0; i < PIECES; i++)
        CHECK_EQ(aco_tls_write_all(use->tls, piece, PIECE), PIECE);
    free(piece);
    return NULL;
}

/* Pieces are whole: each write_all() has its turn. */
static void *reads_pieces(void *arg)
{
    use_t *use = arg;
    char bytes[3000], last = 0;
    size_t run = 0, n = 0, most = 2 * (size_t)PIECE * PIECES;
    while (n < most) {
        ssize_t got = aco_tls_read(use->tls, bytes, sizeof bytes);
        CHECK(got > 0);
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++, run++, n++)
            if (bytes[i] != last) {
                CHECK(run % PIECE == 0);
                last = bytes[i];
                run = 0;
            }
    }
    return NULL;
}

static void is_duplex(aco_tls_t *tls)
{
    use_t uses[3] = {{tls, 'a', 0, 0}, {tls, 'b', 0, 0}, {tls, 0, 0, 0}};
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, writes_pieces, &uses[0]);
    member(&group, reads_pieces, &uses[2]);
    member(&group, writes_pieces, &uses[1]);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(aco_tls_shutdown(tls, SHUT_RDWR), 0);
}

/* Counts what it reads, until the end or a failure. */
static void *reads_some(void *arg)
{
    use_t *use = arg;
    char bytes[100];
    ssize_t n;
    while ((n = aco_tls_read(use->tls, bytes, sizeof bytes)) > 0)
        use->n += (size_t)n;
    use->error = n < 0 ? errno : 0;
    return NULL;
}

static void *writes_until_closed(void *arg)
{
    use_t *use = arg;
    while (aco_tls_write(use->tls, much, MUCH) > 0)
        ;
    use->error = errno;
    return NULL;
}

static void has_two_readers(aco_tls_t *tls)
{
    use_t uses[2] = {{tls, 0, -1, 0}, {tls, 0, -1, 0}};
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, reads_some, &uses[0]);
    member(&group, reads_some, &uses[1]);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(uses[0].n + uses[1].n, MUCH);
    CHECK(uses[0].error == 0 && uses[1].error == 0);
}

static void sends_much(aco_tls_t *tls)
{
    CHECK_EQ(aco_tls_write_all(tls, much, MUCH), MUCH);
}

/* be_end() closes the connection when this returns, while the three wait. */
static aco_t *users[4];
static use_t uses_of_closed[4];

static void is_closed_in_use(aco_tls_t *tls)
{
    const aco_function_t fns[] = {reads_some, reads_some, writes_until_closed, writes_until_closed};
    for (int i = 0; i < 4; i++) {
        uses_of_closed[i] = (use_t){tls, 0, -1, 0};
        users[i] = aco_spawn(fns[i], &uses_of_closed[i], NULL);
        CHECK(users[i] != NULL);
    }
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
}

static void stays_until_joined(aco_tls_t *tls)
{
    (void)tls;
    while (!users[3] || aco_state(users[3]) != ACO_STATE_DONE)
        CHECK_EQ(aco_sleep(ACO_MILLISECOND / 10), 0);
}

static void *shared_use(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = is_duplex};
    end_t s = {.config = server_with(0, &good), .act = is_duplex};
    (void)unused;
    succeed(&c, &s);
    c.act = has_two_readers;
    s.act = sends_much;
    succeed(&c, &s);
    c.act = is_closed_in_use;
    s.act = stays_until_joined;
    succeed(&c, &s);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(aco_join(users[i], NULL), 0);
        CHECK_EQ(uses_of_closed[i].error, ECANCELED);
    }
    destroy_configs(&c, &s);
    return NULL;
}

/* Reads of what has come already let other tasks run. */
static void *counts_turns(void *arg)
{
    size_t *turns = arg;
    while (*turns < SIZE_MAX / 2) {
        ++*turns;
        aco_task_yield();
    }
    return NULL;
}

static void reads_by_bytes(aco_tls_t *tls)
{
    size_t turns = 0;
    char byte;
    aco_t *counter;
    CHECK_EQ(aco_tls_wait_readable(tls), 0);
    counter = aco_spawn(counts_turns, &turns, NULL);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(aco_tls_read(tls, &byte, 1), 1);
    CHECK(turns >= 1000 / 64 && turns <= 1000 / 8);
    turns = SIZE_MAX / 2;
    CHECK_EQ(aco_join(counter, NULL), 0);
}

static void sends_a_record(aco_tls_t *tls)
{
    CHECK_EQ(aco_tls_write_all(tls, much, 1000), 1000);
}

static void *fairness(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = reads_by_bytes};
    end_t s = {.config = server_with(0, &good), .act = sends_a_record};
    (void)unused;
    succeed(&c, &s);
    destroy_configs(&c, &s);
    return NULL;
}

/* ---- Records without bytes ---- */

/* So many new keys, or their requests, in one piece: the first bytes of `much` follow. */
static void sends_keys(aco_tls_t *tls, int n, int kind)
{
    SSL *ssl = aco_tls_ssl(tls);
    BIO *to_fd = SSL_get_wbio(ssl), *memory = BIO_new(BIO_s_mem());
    char *bytes;
    long length;
    CHECK(BIO_up_ref(to_fd));
    SSL_set0_wbio(ssl, memory);
    for (int i = 0; i < n; i++)
        CHECK(SSL_key_update(ssl, kind) == 1 && SSL_do_handshake(ssl) == 1);
    CHECK_EQ(SSL_write(ssl, much, 10), 10);
    length = BIO_get_mem_data(memory, &bytes);
    CHECK_EQ(aco_io_write_all(aco_tls_fd(tls), bytes, (size_t)length), length);
    SSL_set0_wbio(ssl, to_fd);
}

static void floods_with_keys(aco_tls_t *tls)
{
    sends_keys(tls, 10000, SSL_KEY_UPDATE_NOT_REQUESTED);
    CHECK_EQ(aco_tls_read(tls, got_much, 1), 0);
}

static void is_flooded(aco_tls_t *tls)
{
    size_t turns = 0;
    aco_t *counter;
    CHECK_EQ(aco_io_wait_readable(aco_tls_fd(tls)), 0);
    counter = aco_spawn(counts_turns, &turns, NULL);
    CHECK_EQ(aco_tls_read(tls, got_much, 10), 10);
    CHECK(turns >= 5);
    turns = SIZE_MAX / 2;
    CHECK_EQ(aco_join(counter, NULL), 0);
}

/* A request for new keys comes while a record is half written: the answer must wait. */
static void asks_for_keys(aco_tls_t *tls)
{
    size_t got = 0;
    ssize_t n = 1;
    aco_sleep(2 * ACO_MILLISECOND); /* the other end's writer waits */
    sends_keys(tls, 2, SSL_KEY_UPDATE_REQUESTED);
    while (n > 0) {
        n = aco_tls_read(tls, got_much + got, MUCH - got);
        got += n > 0 ? (size_t)n : 0;
    }
    CHECK(n == 0 && got == MUCH && memcmp(much, got_much, MUCH) == 0);
}

static void *writes_much(void *tls)
{
    CHECK_EQ(aco_tls_write_all(tls, much, MUCH), MUCH);
    return NULL;
}

static void is_asked_for_keys(aco_tls_t *tls)
{
    char bytes[20];
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, writes_much, tls);
    CHECK_EQ(aco_tls_read(tls, bytes, sizeof bytes), 10);
    CHECK(memcmp(bytes, much, 10) == 0);
    CHECK_EQ(aco_group_end(&group), 0);
}

static void *new_keys(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = floods_with_keys};
    end_t s = {.config = server_with(0, &good), .act = is_flooded};
    (void)unused;
    succeed(&c, &s);
    c.act = asks_for_keys;
    s.act = is_asked_for_keys;
    succeed(&c, &s);
    destroy_configs(&c, &s);
    return NULL;
}

/* ---- Many at once ---- */

enum { CROWD = 200 };

static void *crowd(void *unused)
{
    static end_t clients[CROWD], servers[CROWD];
    aco_options_t options = {.stack_size = ACO_TLS_STACK};
    aco_tls_config_t *of_clients = client_that_trusts(&root), *of_servers = server_with(0, &good);
    aco_group_t group;
    (void)unused;
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < CROWD; i++) {
        int pair[2];
        make_pair(pair, SOCK_STREAM);
        CHECK_EQ(aco_io_adopt(pair[0]), 0);
        CHECK_EQ(aco_io_adopt(pair[1]), 0);
        clients[i] = (end_t){.config = of_clients, .host = "a.test", .act = says_hello, .fd = pair[0]};
        servers[i] = (end_t){.config = of_servers, .act = answers_hello, .fd = pair[1], .is_server = 1};
        CHECK(aco_group_spawn(&group, be_end, &clients[i], &options) != NULL);
        CHECK(aco_group_spawn(&group, be_end, &servers[i], &options) != NULL);
    }
    aco_task_yield(); /* all have begun: the connections keep what they need */
    CHECK_EQ(aco_tls_config_destroy(of_clients), 0);
    CHECK_EQ(aco_tls_config_destroy(of_servers), 0);
    CHECK_EQ(aco_group_end(&group), 0);
    for (int i = 0; i < CROWD; i++)
        CHECK(clients[i].error == 0 && servers[i].error == 0);
    return NULL;
}

/* ---- Stacks ---- */

/* The deepest handshakes: certificates of both sides with chains, RSA and ECDSA, lists of revoked ones. */
static void *stacks(void *unused)
{
    const certificate_t *const shown[] = {&good, &second};
    ptrdiff_t deepest = 0;
    (void)unused;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
        for (int i = 0; i < 2; i++) {
            end_t c = {.host = i ? "b.test" : "a.test", .config = client_that_trusts(&root), .act = reads_end};
            end_t s = {.config = server_with(ACO_TLS_VERIFY_CLIENT, shown[i])};
            only_version(c.config, version);
            CHECK_EQ(aco_tls_config_certificate(c.config, client.file, client.key_file), 0);
            CHECK_EQ(aco_tls_config_trust(s.config, root.file), 0);
            CHECK_EQ(aco_tls_config_crl(c.config, crl_file), 0);
            CHECK_EQ(aco_tls_config_crl(s.config, crl_file), 0);
            meet_on(&c, &s, 1);
            CHECK(c.error == 0 && s.error == 0);
            deepest = c.depth > deepest ? c.depth : deepest;
            deepest = s.depth > deepest ? s.depth : deepest;
            destroy_configs(&c, &s);
        }
    CHECK(deepest <= ACO_TLS_STACK - 4096); /* a page is left, at least */
    return NULL;
}

static void *small_stacks(void *unused)
{
    aco_options_t options = {.stack_size = 16 << 10};
    end_t c = {.host = "a.test", .config = client_that_trusts(&root)};
    int pair[2];
    (void)unused;
    make_pair(pair, SOCK_STREAM);
    c.fd = pair[0];
    CHECK_EQ(aco_join(aco_spawn(be_end, &c, &options), NULL), 0);
    CHECK_EQ(c.error, EOVERFLOW);
    CHECK(strstr(c.message, "bytes of stack are left, too few for a handshake") != NULL);
    CHECK_EQ(aco_io_close(pair[1]), 0);
    CHECK_EQ(aco_tls_config_destroy(c.config), 0);
    return NULL;
}

/* ---- Misuse ---- */

static void *misuse(void *unused)
{
    aco_tls_config_t *c = client_that_trusts(&root), *s = new_config(ACO_TLS_SERVER);
    aco_tls_info_t info;
    char byte;
    int pair[2];
    (void)unused;
    FAILS_WITH(aco_tls_config_new(16) ? 0 : -1, EINVAL);
    FAILS_WITH(aco_tls_config_new(ACO_TLS_SERVER | ACO_TLS_NO_VERIFY) ? 0 : -1, EINVAL);
    FAILS_WITH(aco_tls_config_new(ACO_TLS_VERIFY_CLIENT) ? 0 : -1, EINVAL);
    FAILS_WITH(aco_tls_config_certificate(s, "/none", good.key_file), ENOENT);
    CHECK(strcmp(aco_error_message(), "aco_tls_config_certificate: /none: No such file or directory") == 0);
    FAILS_WITH(aco_tls_config_certificate(s, good.file, "/none"), ENOENT);
    FAILS_WITH(aco_tls_config_certificate(s, good.key_file, good.key_file), EINVAL);
    FAILS_WITH(aco_tls_config_certificate(s, good.file, good.file), EINVAL);
    FAILS_WITH(aco_tls_config_certificate(s, good.file, second.key_file), EINVAL);
    CHECK(strstr(aco_error_message(), "key") != NULL);
    FAILS_WITH(aco_tls_config_certificate(s, good.file, locked_key_file), EINVAL);
    FAILS_WITH(aco_tls_config_certificate(s, weak.file, weak.key_file), EINVAL);
    CHECK(strstr(aco_error_message(), "too small") != NULL);
    FAILS_WITH(aco_tls_config_certificate(s, NULL, good.key_file), EINVAL);
    FAILS_WITH(aco_tls_config_certificate(NULL, good.file, good.key_file), EINVAL);
    FAILS_WITH(aco_tls_config_trust(c, "/none"), ENOENT);
    FAILS_WITH(aco_tls_config_trust(c, empty_file), EINVAL);
    FAILS_WITH(aco_tls_config_crl(c, "/none"), ENOENT);
    FAILS_WITH(aco_tls_config_crl(c, empty_file), EINVAL);
    FAILS_WITH(aco_tls_config_crl(c, NULL), EINVAL);
    FAILS_WITH(aco_tls_config_alpn(c, ""), EINVAL);
    FAILS_WITH(aco_tls_config_alpn(c, "h2,,h3"), EINVAL);
    FAILS_WITH(aco_tls_config_alpn(c, "h2,"), EINVAL);
    FAILS_WITH(aco_tls_config_alpn(c, NULL), EINVAL);
    FAILS_WITH(aco_tls_config_sessions(s, 1), EINVAL);
    FAILS_WITH(aco_tls_config_destroy(NULL), EINVAL);
    CHECK(aco_tls_config_context(NULL) == NULL);

    make_pair(pair, SOCK_STREAM);
    FAILS_WITH(aco_tls_connect(pair[0], NULL, c) ? 0 : -1, EINVAL);
    FAILS_WITH(close(pair[0]), EBADF); /* a call that fails has closed it */
    FAILS_WITH(aco_tls_accept(pair[1], s) ? 0 : -1, EINVAL);
    CHECK(strstr(aco_error_message(), "the server has no certificate") != NULL);
    FAILS_WITH(close(pair[1]), EBADF);
    make_pair(pair, SOCK_STREAM);
    FAILS_WITH(aco_tls_connect(pair[0], "a.test", s) ? 0 : -1, EINVAL);
    FAILS_WITH(aco_tls_accept(pair[1], c) ? 0 : -1, EINVAL);
    make_pipe(pair);
    FAILS_WITH(aco_tls_connect(pair[1], "a.test", c) ? 0 : -1, ENOTSOCK);
    FAILS_WITH(aco_tls_connect(pair[0], "", c) ? 0 : -1, EINVAL);
    make_pair(pair, SOCK_STREAM);
    FAILS_WITH(aco_tls_connect(pair[0], ".test", c) ? 0 : -1, EINVAL); /* not: any name that ends so */
    FAILS_WITH(aco_tls_connect(pair[1], ".", c) ? 0 : -1, EINVAL);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0); /* blocking */
    FAILS_WITH(aco_tls_connect(pair[0], "a.test", c) ? 0 : -1, EINVAL);
    CHECK(strstr(aco_error_message(), "is blocking") != NULL);
    CHECK_EQ(aco_io_close(pair[1]), 0);
    errno = ENFILE;
    CHECK(aco_tls_connect(-1, "a.test", c) == NULL && errno == ENFILE);

    FAILS_WITH(aco_tls_read(NULL, &byte, 1), EINVAL);
    FAILS_WITH(aco_tls_write(NULL, &byte, 1), EINVAL);
    FAILS_WITH(aco_tls_shutdown(NULL, SHUT_WR), EINVAL);
    FAILS_WITH(aco_tls_close(NULL), EINVAL);
    FAILS_WITH(aco_tls_info(NULL, &info), EINVAL);
    CHECK_EQ(aco_tls_config_destroy(c), 0);
    CHECK_EQ(aco_tls_config_destroy(s), 0);
    return NULL;
}

static void is_asked(aco_tls_t *tls)
{
    char name[8];
    FAILS_WITH(aco_tls_shutdown(tls, SHUT_RD), EINVAL);
    FAILS_WITH(aco_tls_peer_name(tls, name, 7), ENOSPC);
    CHECK_EQ(aco_tls_peer_name(tls, name, 8), 0);
    CHECK_EQ(aco_tls_read(tls, name, 0), 0);
    CHECK_EQ(aco_tls_write(tls, name, 0), 0);
    CHECK_EQ(SSL_get_fd(aco_tls_ssl(tls)), aco_tls_fd(tls));
    CHECK_EQ(SSL_get_security_level(aco_tls_ssl(tls)), 2);
    CHECK(SSL_get_options(aco_tls_ssl(tls)) & SSL_OP_NO_COMPRESSION);
    ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR); /* what others leave in the queue is not taken for its own */
    reads_end(tls);
}

/* The peer does not. */
static void renegotiates(aco_tls_t *tls)
{
    SSL_clear_options(aco_tls_ssl(tls), SSL_OP_NO_RENEGOTIATION);
    CHECK_EQ(SSL_renegotiate(aco_tls_ssl(tls)), 1);
    FAILS_WITH(aco_tls_write(tls, "x", 1), EPROTO);
    CHECK(strstr(aco_error_message(), "no renegotiation") != NULL);
}

static void reads_what_comes(aco_tls_t *tls)
{
    use_t use = {tls, 0, 0, 0};
    reads_some(&use);
    CHECK_EQ(use.n, 0);
}

static void asks_for_renegotiation(aco_tls_t *tls)
{
    char byte;
    SSL_clear_options(aco_tls_ssl(tls), SSL_OP_NO_RENEGOTIATION);
    CHECK_EQ(SSL_renegotiate(aco_tls_ssl(tls)), 1);
    CHECK_EQ(aco_tls_write(tls, "x", 1), 1);
    FAILS_WITH(aco_tls_read(tls, &byte, 1), EPROTO);
    CHECK(strstr(aco_error_message(), "no renegotiation") != NULL);
}

static void reads_one_byte(aco_tls_t *tls)
{
    char byte;
    CHECK_EQ(aco_tls_read(tls, &byte, 1), 1);
    FAILS_WITH(aco_tls_read(tls, &byte, 1), EPROTO);
}

static void *defaults(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = is_asked};
    end_t s = {.config = server_with(0, &good)};
    (void)unused;
    succeed(&c, &s);
    only_version(c.config, TLS1_2_VERSION);
    c.act = renegotiates;
    s.act = reads_what_comes;
    succeed(&c, &s);
    c.act = reads_one_byte;
    s.act = asks_for_renegotiation;
    succeed(&c, &s);
    CHECK(SSL_CTX_set_min_proto_version(aco_tls_config_context(c.config), TLS1_1_VERSION));
    CHECK(SSL_CTX_set_max_proto_version(aco_tls_config_context(c.config), TLS1_1_VERSION));
    SSL_CTX_set_security_level(aco_tls_config_context(c.config), 0);
    CHECK(SSL_CTX_set_cipher_list(aco_tls_config_context(c.config), "ALL"));
    meet(&c, &s);
    CHECK_EQ(s.error, EPROTO);
    CHECK(strstr(s.message, "unsupported protocol") != NULL);
    destroy_configs(&c, &s);
    return NULL;
}

/* A caller that cannot wait. */
static void without_task(void)
{
    aco_tls_config_t *c = client_that_trusts(&root);
    int pair[2];
    make_pair(pair, SOCK_STREAM);
    FAILS_WITH(aco_tls_connect(pair[0], "a.test", c) ? 0 : -1, EPERM);
    CHECK_EQ(aco_io_close(pair[1]), 0);
    CHECK_EQ(aco_tls_config_destroy(c), 0);
}

int main(void)
{
    static const aco_function_t tests[] = {
        handshakes, protocols, names,    refusals, accepted_all_the_same, clients_certificates, resumption,
        ends,       strangers, reset,    scopes_in_handshakes, scopes, shared_use, fairness,
        new_keys,   crowd,     stacks,   small_stacks, misuse, defaults};
    for (int i = 0; i < MUCH; i++)
        much[i] = (char)(i * 7 + i / 1000);
    make_certificates();
    CHECK(aco_io_poll_fd() >= 0); /* it stays */
    run_tests(tests, sizeof tests / sizeof *tests, count_descriptors());
    without_task();
    free_certificates();
    return check_result("tls");
}
