/* TLS: the peer of a connection of acorn_tls is OpenSSL itself, and an input's operations change what it sends. They
 * flip bits of records, cut, split, repeat and forge them, ask for new keys, and end the stream at any byte.
 *
 * The properties: what is read is what the peer has written, from its begin; the end comes only after the peer's end;
 * a client accepts no wrong certificate; calls fail only with the errors that aco/tls.h names; OpenSSL's queue is empty
 * afterwards; all ends in time.
 *
 * OpenSSL's random numbers are the input's, so a handshake is the same each time, and bytes that were recorded from one
 * can be sent again: FUZZ_TRACE=1 prints what the peer would send. The clock is not: tickets have the time in them. */
#define _GNU_SOURCE
#define FUZZ_NAME "tls"
#define OPENSSL_SUPPRESS_DEPRECATED /* RAND_METHOD, which has no successor that is as short */
#include "aco/tls.h"
#include "../../tests/tls_certificates.h"
#include "fuzz.h"
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { LIMIT_S = 60, CONNECTIONS = 3, PENDING = 1 << 17, LONGEST_WRITE = 20000, MOST_WRITTEN = 40000 };
enum { IS_CLIENT = 1, ONLY_1_2 = 2, WITH_CLIENT_CERTIFICATE = 4, WRONG_CERTIFICATE = 8, IS_RECORDED = 16 };

static unsigned how;
static size_t part_size; /* of the tested side's reads */
static aco_tls_config_t *tested_config, *peer_config;
static certificate_t root, good, stranger;

/* The connection. */
static int pair[2]; /* the tested side's, the peer's */
static int is_done; /* the tested side has closed its end */
static SSL *peer;
static size_t written, received;
static uint8_t pending[PENDING]; /* what the peer has made and was not sent */
static size_t pending_n;

static int fuzz_actor(void)
{
    return 0;
}

__attribute__((format(printf, 1, 2))) OUTLINE void trace(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 7 + i / 1000);
}

/* ---- OpenSSL's random numbers ---- */

static random_t numbers;

static int random_bytes(unsigned char *p, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = (unsigned char)draw(&numbers);
    return 1;
}

static int random_status(void)
{
    return 1;
}

static void make_certificates(void)
{
    static const RAND_METHOD method = {NULL, random_bytes, NULL, NULL, random_bytes, random_status};
    static const char names[] = "DNS:a.test";
    static time_t year_2020 = 1577836800;
    RAND_set_rand_method(&method);
    make_certificate(&root, "root", &(how_t){.to = INT_MAX, .now = &year_2020});
    make_certificate(&good, "good", &(how_t){names, .to = INT_MAX, .now = &year_2020, .issuer = &root});
    make_certificate(&stranger, "stranger", &(how_t){names, .to = INT_MAX, .now = &year_2020});
    EXPECT(check_failures == 0);
}

/* ---- The two sides ---- */

static aco_tls_config_t *config_of(int is_client, const certificate_t *own)
{
    unsigned flags = is_client                       ? ACO_TLS_NO_SYSTEM_STORE
                     : how & WITH_CLIENT_CERTIFICATE ? ACO_TLS_SERVER | ACO_TLS_VERIFY_CLIENT
                                                     : ACO_TLS_SERVER;
    aco_tls_config_t *config = aco_tls_config_new(flags);
    EXPECT(config && aco_tls_config_trust(config, root.file) == 0);
    EXPECT(aco_tls_config_alpn(config, is_client ? "h2,http/1.1" : "http/1.1") == 0);
    EXPECT(is_client ? aco_tls_config_sessions(config, 2) == 0 : 1);
    if (!is_client || how & WITH_CLIENT_CERTIFICATE)
        EXPECT(aco_tls_config_certificate(config, own->file, own->key_file) == 0);
    if (!is_client) /* with two, OpenSSL asks for one by a callback */
        EXPECT(aco_tls_config_certificate(config, own->file, own->key_file) == 0);
    if (how & ONLY_1_2)
        SSL_CTX_set_max_proto_version(aco_tls_config_context(config), TLS1_2_VERSION);
    return config;
}

static void check_error(void)
{
    if (errno != EACCES && errno != EPROTO && errno != ECONNRESET && errno != ECONNABORTED && errno != EPIPE)
        fail(__LINE__, "errno %d: %s", errno, aco_error_message());
}

/* Reads to the end, and sends back what it gets. */
static void use(aco_tls_t *tls)
{
    static uint8_t part[1 << 15];
    ssize_t got;
    while ((got = aco_tls_read(tls, part, part_size)) > 0) {
        TRACE("tested side: %zd bytes\n", got);
        for (ssize_t i = 0; i < got && !(how & IS_RECORDED); i++)
            EXPECT(part[i] == pattern(received + (size_t)i));
        received += (size_t)got;
        EXPECT(received <= written || how & IS_RECORDED);
        if (aco_tls_write_all(tls, part, (size_t)got) < 0)
            check_error();
    }
    if (got < 0)
        check_error();
    TRACE("tested side: %s\n", got < 0 ? aco_error_message() : "the end");
    EXPECT(got < 0 || SSL_get_shutdown(peer) & SSL_SENT_SHUTDOWN || how & IS_RECORDED);
    if (aco_tls_shutdown(tls, received & 1 ? SHUT_RDWR : SHUT_WR) < 0)
        check_error();
}

static void *be_tested(void *unused)
{
    aco_scope_t limit;
    aco_tls_t *tls;
    aco_scope_begin(&limit, aco_after(LIMIT_S * ACO_SECOND));
    tls = how & IS_CLIENT ? aco_tls_connect(pair[0], "a.test", tested_config) : aco_tls_accept(pair[0], tested_config);
    EXPECT(ERR_peek_error() == 0);
    if (tls) {
        TRACE("tested side: connected\n");
        EXPECT(!(how & WRONG_CERTIFICATE && how & (IS_CLIENT | WITH_CLIENT_CERTIFICATE)));
        use(tls);
        EXPECT(aco_tls_close(tls) == 0);
    } else {
        check_error();
        TRACE("tested side: %s\n", aco_error_message());
    }
    EXPECT(ERR_peek_error() == 0 && aco_check_cancelled() == 0);
    aco_scope_end(&limit);
    is_done = 1;
    return unused;
}

/* ---- The peer ---- */

/* Until the tested side has read what was sent: the poller's turn comes after some rounds. */
static void settle(void)
{
    int unread = 1;
    for (int i = 0; i < 8 && !is_done && unread; i++) {
        for (int rounds = 0; rounds < 130 && !is_done; rounds++)
            aco_task_yield();
        if (is_done || ioctl(pair[0], FIONREAD, &unread) != 0)
            unread = 0;
    }
}

/* Lets the peer's OpenSSL have what has come, and takes what it makes. */
static void turn(void)
{
    static uint8_t part[1 << 15];
    ssize_t n;
    settle();
    while ((n = recv(pair[1], part, sizeof part, MSG_DONTWAIT)) > 0)
        BIO_write(SSL_get_rbio(peer), part, (int)n);
    if (!SSL_is_init_finished(peer))
        SSL_do_handshake(peer);
    while (SSL_is_init_finished(peer) && SSL_read(peer, part, sizeof part) > 0)
        ;
    if (pending_n < PENDING && (n = BIO_read(SSL_get_wbio(peer), pending + pending_n, (int)(PENDING - pending_n))) > 0)
        pending_n += (size_t)n;
    ERR_clear_error();
}

static void send_bytes(const uint8_t *p, size_t n)
{
    while (n > 0 && !is_done) {
        ssize_t put = send(pair[1], p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN)
            return;
        if (put > 0) {
            p += put;
            n -= (size_t)put;
        }
        if (n > 0)
            turn();
    }
}

/* Sends the first bytes of what is pending. */
static void send_pending(size_t n)
{
    static uint8_t bytes[PENDING]; /* turn() adds to what is pending */
    memcpy(bytes, pending, n);
    pending_n -= n;
    memmove(pending, pending + n, pending_n);
    if (tracing) {
        fprintf(stderr, "peer: %zu bytes:", n);
        for (size_t i = 0; i < n && i < 1500; i++)
            fprintf(stderr, " %02x", bytes[i]);
        fprintf(stderr, "\n");
    }
    send_bytes(bytes, n);
}

static size_t next_size(size_t limit)
{
    size_t n = next();
    n = n << 8 | next();
    return n < limit ? n : limit;
}

static void flip(void)
{
    size_t i = next_size(pending_n);
    if (i < pending_n)
        pending[i] ^= (uint8_t)(1u << next() % 8);
}

static void write_data(size_t n)
{
    static uint8_t data[LONGEST_WRITE];
    int put;
    for (size_t i = 0; i < n; i++)
        data[i] = pattern(written + i);
    if (!SSL_is_init_finished(peer) || SSL_get_shutdown(peer) & SSL_SENT_SHUTDOWN || !n || written + n > MOST_WRITTEN)
        return;
    put = SSL_write(peer, data, (int)n);
    written += put > 0 ? (size_t)put : 0;
}

/* 0: the stream has ended. */
static int operate(unsigned operation)
{
    size_t n;
    TRACE("operation %u, %zu bytes pending\n", operation, pending_n);
    switch (operation) {
    case 0: /* as it is */
        send_pending(pending_n);
        return 1;
    case 1:
        flip();
        return 1;
    case 2: /* the begin of it, now */
        send_pending(next_size(pending_n));
        return 1;
    case 3: /* the rest is lost */
        pending_n = next_size(pending_n);
        return 1;
    case 4: /* forged */
        n = next_size(UINT16_MAX);
        n = n < input_sz - at ? n : input_sz - at;
        at += n;
        send_bytes(input + at - n, n);
        return 1;
    case 5: /* twice */
        n = pending_n <= PENDING / 2 ? pending_n : 0;
        memcpy(pending + pending_n, pending, n);
        pending_n += n;
        return 1;
    case 6:
        write_data(next_size(LONGEST_WRITE));
        return 1;
    case 7:
        if (SSL_is_init_finished(peer))
            SSL_key_update(peer, next() & 1 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
        write_data(1);
        return 1;
    case 8:
        SSL_shutdown(peer);
        return 1;
    case 9: /* TCP's end */
        shutdown(pair[1], SHUT_WR);
        return 1;
    default: /* the next connection */
        return 0;
    }
}

static void *be_peer(void *unused)
{
    peer = SSL_new(aco_tls_config_context(peer_config));
    EXPECT(peer != NULL);
    SSL_set_bio(peer, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (how & IS_CLIENT)
        SSL_set_accept_state(peer);
    else {
        SSL_set_tlsext_host_name(peer, "a.test");
        SSL_set_connect_state(peer);
    }
    do
        turn();
    while (!is_over() && operate(next() % 11));
    turn();
    shutdown(pair[1], SHUT_RDWR);
    return unused;
}

static void connect_once(void)
{
    aco_t *tested, *other;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 && aco_io_adopt(pair[0]) == 0);
    is_done = 0;
    written = received = pending_n = 0;
    tested = aco_spawn(be_tested, NULL, NULL);
    other = aco_spawn(be_peer, NULL, NULL);
    EXPECT(tested && other && aco_run() == 0 && aco_join(tested, NULL) == 0 && aco_join(other, NULL) == 0);
    SSL_free(peer);
    close(pair[1]);
    ERR_clear_error();
}

static void fuzz_input(void)
{
    static const size_t sizes[] = {1, 100, 5000, 1 << 15};
    const certificate_t *peers;
    if (!root.x)
        make_certificates();
    how = next();
    part_size = sizes[how >> 6];
    numbers.state = how & IS_RECORDED ? 1 : 2;
    peers = how & WRONG_CERTIFICATE ? &stranger : &good;
    tested_config = config_of(how & IS_CLIENT, &good);
    peer_config = config_of(!(how & IS_CLIENT), peers);
    SSL_CTX_sess_set_new_cb(aco_tls_config_context(peer_config), NULL); /* it asks for the aco_tls_t */
    for (int i = 0; i < CONNECTIONS && !(i && is_over()); i++)
        connect_once();
    aco_tls_config_destroy(tested_config);
    aco_tls_config_destroy(peer_config);
}
