/* TLS handshakes (include/aco/tls.h): versions, names, protocols, refused certificates, resumption, many at once, the
 * stack that they need, renewed certificates, misuse. Both ends are this library's; tests/io/tls.py has other
 * implementations. */
#define _GNU_SOURCE
#include "tls_tests.h"

#include "aco/detail/counted.h"

#include <pthread.h>

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
    refuse(&good, "a.test", &root, middle_crl_file, "certificate refused, revoked: ");
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
    return NULL;
}

/* OpenSSL takes SSL_CERT_FILE for the system's authorities. */
static void *systems_authorities(void *unused)
{
    static const unsigned flags[] = {0, 0, ACO_TLS_NO_SYSTEM_STORE};
    const char *const files[] = {root.file, other_root.file, root.file};
    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        end_t c = {.host = "a.test", .act = reads_end}, s = {.config = server_with(0, &good)};
        CHECK_EQ(setenv("SSL_CERT_FILE", files[i], 1), 0);
        c.config = new_config(flags[i]);
        meet(&c, &s);
        CHECK_EQ(c.error, i == 0 ? 0 : EACCES);
        destroy_configs(&c, &s);
    }
    CHECK_EQ(unsetenv("SSL_CERT_FILE"), 0);
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

/* ---- Many at once ---- */

enum { CROWD = IS_SIMULATED ? 20 : 200 };

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
    let_arrive(); /* in any order */
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

/* ---- Renewed certificates ---- */

static aco_tls_config_t *renewed; /* a server's */

static void replace_by(const certificate_t *c)
{
    CHECK_EQ(aco_tls_config_replace(renewed, server_with(0, c)), 0);
}

/* Its connection goes on. */
static void renews_and_answers(aco_tls_t *tls)
{
    replace_by(&expired);
    replace_by(&second);
    answers_hello(tls);
}

static void *replaced(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = says_hello};
    end_t s = {.config = renewed = server_with(0, &good), .act = renews_and_answers};
    (void)unused;
    succeed(&c, &s);
    CHECK(strcmp(c.peer, "CN=good") == 0);
    s.act = answers_hello;
    c.host = "b.test";
    succeed(&c, &s);
    CHECK(strcmp(c.peer, "CN=second") == 0);
    CHECK_EQ(aco_tls_config_replace(c.config, client_that_trusts(&other_root)), 0);
    meet(&c, &s);
    CHECK_EQ(c.error, EACCES);
    destroy_configs(&c, &s);
    return NULL;
}

enum { REPLACED = 20 };

static void *replaces_often(void *from)
{
    aco_tls_config_t **next = from;
    for (int i = 0; i < REPLACED; i++)
        CHECK_EQ(aco_tls_config_replace(renewed, next[i]), 0);
    return NULL;
}

/* Another thread replaces it while connections begin and end. */
static void *replaced_meanwhile(void *unused)
{
    end_t c = {.host = "a.test", .config = client_that_trusts(&root), .act = reads_end};
    end_t s = {.config = renewed = server_with(0, &good)};
    aco_tls_config_t *next[REPLACED];
    pthread_t thread;
    (void)unused;
    for (int i = 0; i < REPLACED; i++)
        next[i] = server_with(0, &good);
    CHECK_EQ(pthread_create(&thread, NULL, replaces_often, next), 0);
    for (int i = 0; i < REPLACED; i++) {
        succeed(&c, &s);
        CHECK(strcmp(c.peer, "CN=good") == 0);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    destroy_configs(&c, &s);
    return NULL;
}

/* ---- Misuse ---- */

static void wrong_replacements(aco_tls_config_t *of_client, aco_tls_config_t *of_server)
{
    aco_tls_config_t *whole = server_with(0, &good);
    aco_tls_config_t *replacement = server_with(0, &good), *other = server_with(0, &good);
    FAILS_WITH(aco_tls_config_replace(NULL, whole), EINVAL);
    FAILS_WITH(aco_tls_config_replace(whole, NULL), EINVAL);
    FAILS_WITH(aco_tls_config_replace(whole, whole), EINVAL);
    FAILS_WITH(aco_tls_config_replace(of_client, whole), EINVAL);
    FAILS_WITH(aco_tls_config_replace(whole, of_server), EINVAL);
    CHECK(strstr(aco_error_message(), "the server has no certificate") != NULL);
    CHECK_EQ(aco_tls_config_replace(whole, replacement), 0);
    FAILS_WITH(aco_tls_config_replace(of_server, whole), EINVAL);
    FAILS_WITH(aco_tls_config_replace(whole, replacement), EINVAL);
    FAILS_WITH(aco_tls_config_replace(of_server, replacement), EINVAL);
    FAILS_WITH(aco_tls_config_replace(replacement, other), EINVAL);
    CHECK_EQ(aco_tls_config_destroy(other), 0);
    CHECK_EQ(aco_tls_config_destroy(whole), 0);
}

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
    CHECK(strcmp(aco_error_message(), "aco_tls_config_trust: /none: No such file or directory") == 0);
    FAILS_WITH(aco_tls_config_trust(c, empty_file), EINVAL);
    FAILS_WITH(aco_tls_config_crl(c, "/none"), ENOENT);
    CHECK(strcmp(aco_error_message(), "aco_tls_config_crl: /none: No such file or directory") == 0);
    FAILS_WITH(aco_tls_config_crl(c, empty_file), EINVAL);
    FAILS_WITH(aco_tls_config_crl(c, NULL), EINVAL);
    FAILS_WITH(aco_tls_config_alpn(c, ""), EINVAL);
    FAILS_WITH(aco_tls_config_alpn(c, "h2,,h3"), EINVAL);
    FAILS_WITH(aco_tls_config_alpn(c, "h2,"), EINVAL);
    FAILS_WITH(aco_tls_config_alpn(c, NULL), EINVAL);
    FAILS_WITH(aco_tls_config_sessions(s, 1), EINVAL);
    FAILS_WITH(aco_tls_config_destroy(NULL), EINVAL);
    CHECK(aco_tls_config_context(NULL) == NULL);
    wrong_replacements(c, s);

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
    FAILS_WITH(aco_tls_connect(pair[1], "[]", c) ? 0 : -1, EINVAL);
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

/* What all of them have counted, for metrics. */
static void counts(void)
{
    const aco__counted_set_t *set = aco__counted_sets();
    while (set && strcmp(set->counted[0].name, "acorn_tls_handshakes") != 0)
        set = set->next;
    CHECK(set != NULL);
    for (size_t i = 0; set && i < set->n; i++) /* done and failed, of both sides */
        CHECK(set->read(set->counted[i].which) > 0);
}

int main(void)
{
    static const aco_function_t tests[] = {
        handshakes,           protocols,  names, refusals, accepted_all_the_same, systems_authorities,
        clients_certificates, resumption, crowd, stacks,   small_stacks,          replaced,
        replaced_meanwhile,   misuse};
    run_tls_tests(tests, sizeof tests / sizeof *tests);
    without_task();
    counts();
    free_certificates();
    return check_result("tls_handshakes");
}
