/* Connections: each call has OpenSSL try, and waits for what it asks for, until it succeeds or fails. */
#define _GNU_SOURCE
#include "tls/bio.h"
#include "tls/config_internal.h"
#include "tls/connection.h"
#include "tls/openssl_error.h"
#include "tls/random.h"
#include "tls/session.h"
#include "tls/work.h"

#include "aco/detail/counted.h"
#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

enum {
    LARGEST_RECORD = 16384,
    READS_AT_ONCE = 2, /* a record comes by one or two */
    HANDSHAKE_NEEDS = 20 << 10 /* bytes of stack; measured: docs/tls.md */
};

/* What OpenSSL is to do with which bytes; returns what OpenSSL does. */
typedef struct bytes {
    void *to;
    const void *from;
    int n;
} bytes_t;
typedef int (*step_t)(SSL *ssl, const bytes_t *bytes);

/* ---- Waiting ---- */

static int fail_if_closed(const aco_tls_t *tls)
{
    if (!tls->is_closed)
        return 0;
    errno = ECANCELED;
    return -1;
}

/* OpenSSL was told to stop in the middle. 0, or -1: the connection was closed. */
ACO__SWITCHES static int let_others_run(const aco_tls_t *tls)
{
    aco__service_yield();
    return fail_if_closed(tls);
}

/* A call that may wait begins: aco__io_spend(). 0, or -1: the connection was closed. */
ACO__SWITCHES static int spend(const aco_tls_t *tls, const char *call, const char *location)
{
    aco__io_spend(call, location);
    return fail_if_closed(tls);
}

/* 0: `why` is that OpenSSL waits for the descriptor, which is ready now. -1 and errno. */
ACO__SWITCHES static int await(aco_tls_t *tls, int why, const char *location)
{
    return why == SSL_ERROR_WANT_READ ? aco__io_await_input(tls->stream.fd, location)
                                      : aco_io_wait_writable_at(tls->stream.fd, location);
}

/* It has failed for good. What OpenSSL notices itself ends both directions, a failed system call only its own. */
static int fail_for_good(aco_tls_t *tls, const char *call, int direction, int why)
{
    tls->has_failed[direction] = 1;
    if (why != SSL_ERROR_SYSCALL)
        tls->has_failed[TLS_READ] = tls->has_failed[TLS_WRITE] = 1;
    return aco__tls_fail(tls, call, why);
}

/* 0, or -1 and errno: ECANCELED (the connection was closed), ECONNABORTED. */
static int check_usable(const aco_tls_t *tls, const char *call, int direction)
{
    if (fail_if_closed(tls) != 0)
        return -1;
    return tls->has_failed[direction] ? aco__tls_fail_with(tls, call, ECONNABORTED, "it has failed before") : 0;
}

/* Sends what OpenSSL has written. 0, or -1 and errno. */
ACO__SWITCHES static int flush(aco_tls_t *tls, const char *call, int direction, const char *location)
{
    while (aco__tls_flush(tls) != 0) {
        if (tls->system_error != EAGAIN)
            return fail_for_good(tls, call, direction, SSL_ERROR_SYSCALL);
        if (await(tls, SSL_ERROR_WANT_WRITE, location) != 0)
            return -1;
    }
    return 0;
}

/* A result of OpenSSL's, and why it is not positive. During a handshake the caller alone has the connection, and
 * functions of the program may be called that wait. */
static int make_step(aco_tls_t *tls, step_t step, const bytes_t *bytes, int *why)
{
    int is_shared = tls->is_connected, n;
    if (is_shared)
        aco__tls_begin_work();
    n = step(tls->ssl, bytes);
    *why = n <= 0 ? SSL_get_error(tls->ssl, n) : SSL_ERROR_NONE;
    if (is_shared)
        aco__tls_end_work();
    return n;
}

/* OpenSSL itself goes on as long as the peer sends records that have no bytes for the caller. So its BIO lets it read a
 * little, and then others run.
 * The result of the step if it is positive, 0 after the peer's end, -1 and errno. */
ACO__SWITCHES
static int attempts(aco_tls_t *tls, const char *call, int direction, step_t step, const bytes_t *bytes,
                    const char *location)
{
    for (;;) {
        int n, why, is_cut_short;
        ACO__ASSERT(!tls->is_connected || !tls->turn[direction].value); /* it is the caller's turn */
        if (check_usable(tls, call, direction) != 0) /* while this task waited the other direction may have failed */
            return -1;
        if (ERR_peek_error()) /* to clear an empty queue costs three times as much */
            ERR_clear_error();
        tls->system_error = 0;
        tls->reads = READS_AT_ONCE;
        tls->is_cut_short = 0;
        n = make_step(tls, step, bytes, &why);
        is_cut_short = tls->is_cut_short; /* before others run */
        if (why == SSL_ERROR_ZERO_RETURN)
            return 0;
        if (n <= 0 && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
            return fail_for_good(tls, call, direction, why);
        /* A reader leaves what is unsent to the next writer: nobody waits for it. */
        if (tls->unsent_n && (direction == TLS_WRITE || !tls->is_connected) &&
            flush(tls, call, direction, location) != 0)
            return -1;
        if (n > 0)
            return n;
        if (is_cut_short ? let_others_run(tls) != 0 || aco_check_cancelled() != 0 : await(tls, why, location) != 0)
            return -1;
    }
}

/* ---- Using a connection ---- */

static void drop(aco_tls_t *tls)
{
    int error = errno;
    ACO__ASSERT(tls->users > 1 || (tls->users && (tls->is_closed || !tls->is_connected)));
    if (--tls->users == 0) {
        aco__tls_begin_work();
        SSL_free(tls->ssl);
        aco__tls_config_leave(tls->config);
        aco__tls_end_work();
        OPENSSL_free(tls->host);
        OPENSSL_free(tls->unsent);
        OPENSSL_free(tls);
    }
    errno = error;
}

static void leave(aco_tls_t *tls, int direction)
{
    ACO__ASSERT(!tls->turn[direction].value);
    aco_semaphore_release(&tls->turn[direction]);
    drop(tls);
}

/* Waits for the caller's turn in this direction, until leave(). 0, or -1 and errno. */
ACO__SWITCHES static int enter(aco_tls_t *tls, const char *call, int direction, const char *location)
{
    if (!tls)
        return aco__service_fail(EINVAL, call, "the connection is NULL");
    tls->users++;
    if (aco_semaphore_acquire_at(&tls->turn[direction], location) != 0) {
        drop(tls);
        return -1;
    }
    if (spend(tls, call, location) == 0 && check_usable(tls, call, direction) == 0)
        return 0;
    leave(tls, direction);
    return -1;
}

/* ---- Handshakes ---- */

static int do_handshake(SSL *ssl, const bytes_t *unused)
{
    (void)unused;
    return SSL_do_handshake(ssl);
}

static int check_stack(const char *call)
{
    const aco_t *co = aco_is_in_main_co() ? NULL : aco_get_co();
    const char *here = __builtin_frame_address(0);
    char reason[96];
    void *lo, *hi;
    if (!co || aco_stack_bounds(co, &lo, &hi) != 0 || here < (char *)lo || here >= (char *)hi ||
        here - (char *)lo >= HANDSHAKE_NEEDS)
        return 0;
    snprintf(reason, sizeof reason, "%td bytes of stack are left, too few for a handshake: stack_size ACO_TLS_STACK",
             here - (char *)lo);
    return aco__service_fail(EOVERFLOW, call, reason);
}

/* 0, or -1 and errno. */
static int check_arguments(const char *call, const char *host, const aco_tls_config_t *config, int is_server)
{
    const char *problem = NULL;
    if (!config || ((config->flags & ACO_TLS_SERVER) != 0) != is_server)
        problem = config ? "the configuration is of the other side" : "the configuration is NULL";
    else if (is_server && !SSL_CTX_get0_certificate(config->context))
        problem = "the server has no certificate";
    else if (!is_server && !host && !(config->flags & ACO_TLS_NO_VERIFY))
        problem = "the host is NULL";
    else if (host && (!*host || *host == '.' || strcmp(host, "[]") == 0 || strlen(host) > 255))
        problem = "the host is no name"; /* OpenSSL takes ".a" for all names below "a" */
    return problem ? aco__service_fail(EINVAL, call, problem) : 0;
}

/* The certificate must be for this host. 1, or 0: no memory, or no name. */
static int expect_host(SSL *ssl, char *host)
{
    X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
    size_t length = strlen(host);
    unsigned char address[16];
    int is_bracketed = host[0] == '[' && host[length - 1] == ']', is_v6;
    if (is_bracketed) { /* as aco_io_dial() takes them */
        memmove(host, host + 1, length - 2);
        host[length - 2] = 0;
    } else if (host[length - 1] == '.')
        host[length - 1] = 0;
    is_v6 = inet_pton(AF_INET6, host, address) == 1;
    if (is_v6 || inet_pton(AF_INET, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip(parameters, address, is_v6 ? 16 : 4);
    X509_VERIFY_PARAM_set_hostflags(parameters,
                                    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return *host && X509_VERIFY_PARAM_set1_host(parameters, host, 0) && SSL_set_tlsext_host_name(ssl, host);
}

static int check_peer_as_client(aco_tls_t *tls, const char *host)
{
    SSL_SESSION *session;
    if (host && (!(tls->host = OPENSSL_strdup(host)) || !expect_host(tls->ssl, tls->host)))
        return 0;
    session = aco__tls_take_session(tls->config, tls->host);
    if (session) {
        (void)SSL_set_session(tls->ssl, session); /* without it, the handshake is a full one */
        SSL_SESSION_free(session);
    }
    SSL_set_connect_state(tls->ssl);
    return 1;
}

/* A connection before its handshake. NULL and errno; the descriptor stays open. */
static aco_tls_t *connection_new(const char *call, int fd, const char *host, aco_tls_config_t *config)
{
    aco_tls_t *tls = OPENSSL_zalloc(sizeof *tls);
    BIO *bio = NULL;
    ERR_clear_error();
    aco__tls_seed_random();
    if (!tls) {
        aco__service_fail(ENOMEM, call, "no memory");
        return NULL;
    }
    __atomic_add_fetch(&config->users, 1, __ATOMIC_RELAXED);
    tls->config = config;
    tls->stream.fd = fd;
    tls->users = 1;
    aco__tls_open_turns(tls);
    tls->ssl = SSL_new(config->context); // NOLINT(clang-analyzer-core.NullDereference): the arguments were checked
    bio = tls->ssl ? aco__tls_bio_new(tls) : NULL;
    if (bio) {
        SSL_set_bio(tls->ssl, bio, bio);
        SSL_clear_options(tls->ssl, SSL_OP_ENABLE_KTLS); /* the kernel would need a BIO of OpenSSL's */
        if (config->flags & ACO_TLS_SERVER)
            SSL_set_accept_state(tls->ssl);
        if (config->flags & ACO_TLS_SERVER || check_peer_as_client(tls, host))
            return tls;
    }
    aco__tls_fail_config(call, host);
    drop(tls);
    return NULL;
}

/* The same, by the configuration as it is now, if the arguments and the stack allow a handshake. */
static aco_tls_t *connection_with(const char *call, int fd, const char *host, aco_tls_config_t *config, int is_server)
{
    aco_tls_t *tls = NULL;
    aco_tls_config_t *used = NULL;
    int error;
    if (config) {
        aco__tls_begin_work();
        used = aco__tls_config_enter(config);
        if (!used)
            aco__tls_fail_config(call, NULL);
        aco__tls_end_work();
    }
    if ((used || !config) && check_arguments(call, host, used, is_server) == 0 && check_stack(call) == 0)
        tls = connection_new(call, fd, host, used);
    error = errno;
    if (used) {
        aco__tls_begin_work();
        aco__tls_config_leave(used);
        aco__tls_end_work();
    }
    errno = error;
    return tls;
}

/* A session of TLS 1.2 goes on: nobody tells of it. One of TLS 1.3 is followed by others. */
static void keep_resumed(aco_tls_t *tls)
{
    SSL_SESSION *session;
    if (!tls->host || !SSL_session_reused(tls->ssl) || SSL_version(tls->ssl) >= TLS1_3_VERSION)
        return;
    session = SSL_get1_session(tls->ssl);
    if (session && !aco__tls_keep_session(tls->config, tls->host, session))
        SSL_SESSION_free(session);
}

static void note_agreement(aco_tls_t *tls)
{
    const unsigned char *protocol;
    unsigned length;
    tls->is_connected = 1;
    ERR_clear_error();
    SSL_get0_alpn_selected(tls->ssl, &protocol, &length);
    ACO__ASSERT(length < sizeof tls->alpn); /* a byte has told it */
    if (length)
        memcpy(tls->alpn, protocol, length);
    keep_resumed(tls);
}

static int close_keeping_errno(int fd)
{
    int error = errno;
    (void)aco_io_close(fd);
    errno = error;
    return -1;
}

/* What handshakes were: few enough to be counted by atomics. */
enum { SERVER_DONE, SERVER_FAILED, CLIENT_DONE, CLIENT_FAILED, HANDSHAKE_KINDS };
static uint64_t handshakes[HANDSHAKE_KINDS];

static uint64_t read_handshakes(int which)
{
    return __atomic_load_n(&handshakes[which], __ATOMIC_RELAXED);
}

ACO__AT_LOAD static void register_handshakes(void)
{
    static const char name[] = "acorn_tls_handshakes", help[] = "Handshakes of TLS that have ended.";
    static const aco__counted_t counted[] = {
        {name, "side=\"server\",result=\"done\"", "", help, SERVER_DONE, 0},
        {name, "side=\"server\",result=\"failed\"", "", help, SERVER_FAILED, 0},
        {name, "side=\"client\",result=\"done\"", "", help, CLIENT_DONE, 0},
        {name, "side=\"client\",result=\"failed\"", "", help, CLIENT_FAILED, 0},
    };
    static aco__counted_set_t set = {counted, HANDSHAKE_KINDS, read_handshakes, NULL};
    aco__counted_add(&set);
}

ACO__SWITCHES
static aco_tls_t *handshake(const char *call, int fd, const char *host, aco_tls_config_t *config, int is_server,
                            const char *location)
{
    aco_tls_t *tls;
    int n = -1;
    if (fd < 0)
        return NULL;
    tls = connection_with(call, fd, host, config, is_server);
    if (tls)
        n = attempts(tls, call, TLS_READ, do_handshake, NULL, location);
    __atomic_fetch_add(&handshakes[(is_server ? SERVER_DONE : CLIENT_DONE) + (n <= 0)], 1, __ATOMIC_RELAXED);
    if (n > 0) {
        note_agreement(tls);
        return tls;
    }
    if (n == 0)
        aco__tls_fail_with(tls, call, ECONNRESET, "the peer has sent its end");
    close_keeping_errno(fd);
    if (tls)
        drop(tls);
    return NULL;
}

aco_tls_t *aco_tls_connect_at(int fd, const char *host, aco_tls_config_t *config, const char *location)
{
    return handshake("aco_tls_connect", fd, host, config, 0, location);
}

aco_tls_t *aco_tls_accept_at(int fd, aco_tls_config_t *config, const char *location)
{
    return handshake("aco_tls_accept", fd, NULL, config, 1, location);
}

/* ---- Bytes ---- */

static int read_step(SSL *ssl, const bytes_t *bytes)
{
    return SSL_read(ssl, bytes->to, bytes->n);
}

static int peek_step(SSL *ssl, const bytes_t *bytes)
{
    return SSL_peek(ssl, bytes->to, bytes->n);
}

static int write_step(SSL *ssl, const bytes_t *bytes)
{
    return SSL_write(ssl, bytes->from, bytes->n);
}

ACO__SWITCHES
static ssize_t read_with(step_t step, aco_tls_t *tls, const char *call, void *p, size_t n, const char *location)
{
    bytes_t bytes = {p, NULL, n < INT_MAX ? (int)n : INT_MAX};
    int got = 0;
    if (enter(tls, call, TLS_READ, location) != 0)
        return -1;
    if (n)
        got = attempts(tls, call, TLS_READ, step, &bytes, location);
    leave(tls, TLS_READ);
    return got;
}

ssize_t aco_tls_read_at(aco_tls_t *tls, void *p, size_t n, const char *location)
{
    return read_with(read_step, tls, "aco_tls_read", p, n, location);
}

int aco__tls_await_input(aco_tls_t *tls, const char *call, const char *location)
{
    int result = 0;
    if (enter(tls, call, TLS_READ, location) != 0)
        return -1;
    if (!SSL_has_pending(tls->ssl) && !(SSL_get_shutdown(tls->ssl) & SSL_RECEIVED_SHUTDOWN))
        result = await(tls, SSL_ERROR_WANT_READ, location);
    leave(tls, TLS_READ);
    return result;
}

int aco_tls_wait_readable_at(aco_tls_t *tls, const char *location)
{
    static const char call[] = "aco_tls_wait_readable";
    char byte = 0;
    if (aco__tls_await_input(tls, call, location) != 0)
        return -1;
    return read_with(peek_step, tls, call, &byte, 1, location) < 0 ? -1 : 0;
}

/* In the caller's turn. */
ACO__SWITCHES static int write_record(aco_tls_t *tls, const char *call, const void *p, size_t n, const char *location)
{
    bytes_t bytes = {NULL, p, n < LARGEST_RECORD ? (int)n : LARGEST_RECORD};
    int put;
    if (!n)
        return 0;
    if (SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN) {
        errno = EPIPE;
        return -1;
    }
    put = attempts(tls, call, TLS_WRITE, write_step, &bytes, location);
    if (put == 0) /* the peer had sent its end: that is all that OpenSSL tells when sending fails then */
        put = fail_for_good(tls, call, TLS_WRITE, SSL_ERROR_SYSCALL);
    if (put < 0) /* also after a wait that was ended: OpenSSL can have a part of the record left */
        tls->has_failed[TLS_WRITE] = 1;
    return put;
}

ssize_t aco_tls_write_at(aco_tls_t *tls, const void *p, size_t n, const char *location)
{
    static const char call[] = "aco_tls_write";
    ssize_t put;
    if (enter(tls, call, TLS_WRITE, location) != 0)
        return -1;
    put = write_record(tls, call, p, n, location);
    leave(tls, TLS_WRITE);
    return put;
}

ssize_t aco_tls_write_all_at(aco_tls_t *tls, const void *p, size_t n, size_t *done, const char *location)
{
    static const char call[] = "aco_tls_write_all";
    size_t sent = 0;
    int put = 0;
    if (done)
        *done = 0;
    if (enter(tls, call, TLS_WRITE, location) != 0)
        return -1;
    while (sent < n && put >= 0) {
        put = sent && spend(tls, call, location) != 0
                  ? -1
                  : write_record(tls, call, (const char *)p + sent, n - sent, location);
        if (put > 0)
            sent += (size_t)put;
    }
    leave(tls, TLS_WRITE);
    if (done)
        *done = sent;
    return put < 0 ? -1 : (ssize_t)n;
}

/* ---- Ends ---- */

/* 1: the end is sent. SSL_shutdown() returns 0 then, if the peer's end has not come. */
static int end_step(SSL *ssl, const bytes_t *unused)
{
    int n = SSL_shutdown(ssl);
    (void)unused;
    return n == 0 ? 1 : n;
}

ACO__SWITCHES static int send_end(aco_tls_t *tls, const char *call, const char *location)
{
    int n;
    if (enter(tls, call, TLS_WRITE, location) != 0)
        return -1;
    n = attempts(tls, call, TLS_WRITE, end_step, NULL, location);
    leave(tls, TLS_WRITE);
    return n < 0 ? -1 : 0;
}

ACO__SWITCHES static int await_end(aco_tls_t *tls, const char *call, const char *location)
{
    char dropped[1024];
    bytes_t bytes = {dropped, NULL, sizeof dropped};
    int n = 1;
    if (enter(tls, call, TLS_READ, location) != 0)
        return -1;
    while (n > 0)
        n = spend(tls, call, location) != 0 ? -1 : attempts(tls, call, TLS_READ, read_step, &bytes, location);
    leave(tls, TLS_READ);
    return n;
}

int aco_tls_shutdown_at(aco_tls_t *tls, int how, const char *location)
{
    static const char call[] = "aco_tls_shutdown";
    int n;
    if (how != SHUT_WR && how != SHUT_RDWR)
        return aco__service_fail(EINVAL, call, "neither SHUT_WR nor SHUT_RDWR");
    n = send_end(tls, call, location);
    return n == 0 && how == SHUT_RDWR ? await_end(tls, call, location) : n;
}

int aco_tls_close(aco_tls_t *tls)
{
    int result;
    if (!tls)
        return aco__service_fail(EINVAL, "aco_tls_close", "the connection is NULL");
    /* While a task waits in a write, OpenSSL can have a part of a record left. */
    if (!tls->has_failed[TLS_READ] && !tls->has_failed[TLS_WRITE] &&
        aco_semaphore_try_acquire(&tls->turn[TLS_WRITE]) == 0) {
        aco__tls_begin_work();
        (void)SSL_shutdown(tls->ssl);
        ERR_clear_error();
        aco__tls_end_work();
        aco_semaphore_release(&tls->turn[TLS_WRITE]);
    }
    tls->is_closed = 1;
    result = aco_io_close(tls->stream.fd);
    drop(tls);
    return result;
}

/* ---- What it is ---- */

static const char *text_or_none(const char *text)
{
    return text ? text : "";
}

int aco_tls_info(const aco_tls_t *tls, aco_tls_info_t *info)
{
    if (!tls || !info)
        return aco__service_fail(EINVAL, "aco_tls_info", "an argument is NULL");
    info->protocol = text_or_none(SSL_get_version(tls->ssl));
    info->cipher = text_or_none(SSL_get_cipher_name(tls->ssl));
    info->alpn = tls->alpn;
    info->server_name = text_or_none(SSL_get_servername(tls->ssl, TLSEXT_NAMETYPE_host_name));
    info->is_resumed = SSL_session_reused(tls->ssl) != 0;
    return 0;
}

int aco_tls_peer_name(const aco_tls_t *tls, char *text, size_t size)
{
    static const char call[] = "aco_tls_peer_name";
    const X509 *certificate = tls ? SSL_get0_peer_certificate(tls->ssl) : NULL;
    BIO *bio;
    char *name;
    long length = -1;
    if (!tls || !text)
        return aco__service_fail(EINVAL, call, "an argument is NULL");
    if (!certificate)
        return aco__tls_fail_with(tls, call, ENOENT, "the peer has no certificate");
    bio = BIO_new(BIO_s_mem());
    if (bio && X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0)
        length = BIO_get_mem_data(bio, &name);
    if (length >= 0 && (size_t)length < size) {
        memcpy(text, name, (size_t)length);
        text[length] = 0;
    }
    BIO_free(bio);
    if (length < 0)
        return aco__service_fail(ENOMEM, call, "no memory");
    return (size_t)length < size ? 0 : aco__tls_fail_with(tls, call, ENOSPC, "the name is longer");
}

int aco_tls_fd(const aco_tls_t *tls)
{
    return tls->stream.fd;
}

SSL *aco_tls_ssl(const aco_tls_t *tls)
{
    return tls->ssl;
}
