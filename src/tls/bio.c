/* OpenSSL's way to the descriptor. SSL_set_fd() would give it a BIO that calls write(), which raises SIGPIPE when the
 * peer is gone. Blocking that signal around each call would cost two system calls, and is not known to other threads'
 * handlers. So this BIO calls send() with MSG_NOSIGNAL. It never blocks, also on a blocking descriptor.
 *
 * What the descriptor does not take is kept here. OpenSSL itself keeps a part of a record only when 64 KiB are unsent
 * already or memory is short: with a part left it cannot answer a request for new keys (KeyUpdate), so a read would
 * fail because another task's write waits. */
#define _GNU_SOURCE
#include "system/system.h"
#include "tls/bio.h"
#include "tls/connection.h"

#include "aco/detail/descriptors.h"

#include <string.h>
#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS: aco/io.h has set an option of the socket */
#endif

enum { MOST_UNSENT = 64 << 10 }; /* a record has 16 KiB */

/* After a system call: the result for OpenSSL. */
static int result_of(BIO *bio, ssize_t n, int direction_flag)
{
    aco_tls_t *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (n < 0) {
        tls->system_error = errno;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            BIO_set_flags(bio, direction_flag | BIO_FLAGS_SHOULD_RETRY);
    }
    return (int)n;
}

static int bio_read(BIO *bio, char *p, int n)
{
    aco_tls_t *tls = BIO_get_data(bio);
    ssize_t got;
    if (tls->reads == 0) {
        tls->is_cut_short = 1;
        errno = EAGAIN;
        return result_of(bio, -1, BIO_FLAGS_READ);
    }
    tls->reads--;
    got = aco__io_recv_now(tls->stream.fd, p, (size_t)n);
    if (got == 0)
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return result_of(bio, got, BIO_FLAGS_READ);
}

static ssize_t send_now(aco_tls_t *tls, const char *p, size_t n)
{
    ssize_t put;
    do
        put = aco__system.send(tls->stream.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (put < 0 && errno == EINTR);
    if (put < 0)
        tls->system_error = errno == EWOULDBLOCK ? EAGAIN : errno;
    return put;
}

int aco__tls_flush(aco_tls_t *tls)
{
    while (tls->unsent_n) {
        ssize_t put = send_now(tls, tls->unsent + tls->unsent_at, tls->unsent_n);
        if (put < 0)
            return -1;
        ACO__ASSERT((size_t)put <= tls->unsent_n && tls->unsent);
        tls->unsent_at += (size_t)put;
        tls->unsent_n -= (size_t)put;
    }
    OPENSSL_free(tls->unsent);
    tls->unsent = NULL;
    tls->unsent_at = 0;
    return 0;
}

/* 1, or 0: no memory, or too much: a peer could ask for keys and never read the answers. */
static int keep_unsent(aco_tls_t *tls, const char *p, size_t n)
{
    char *larger;
    ACO__ASSERT(tls->unsent_n <= MOST_UNSENT && (tls->unsent || !tls->unsent_n));
    larger = n > MOST_UNSENT - tls->unsent_n ? NULL : OPENSSL_malloc(tls->unsent_n + n);
    if (!larger)
        return 0;
    if (tls->unsent_n)
        memcpy(larger, tls->unsent + tls->unsent_at, tls->unsent_n);
    memcpy(larger + tls->unsent_n, p, n);
    OPENSSL_free(tls->unsent);
    tls->unsent = larger;
    tls->unsent_at = 0;
    tls->unsent_n += n;
    return 1;
}

static int bio_write(BIO *bio, const char *p, int n)
{
    aco_tls_t *tls = BIO_get_data(bio);
    ssize_t put = aco__tls_flush(tls) == 0 ? send_now(tls, p, (size_t)n) : -1;
    if (put < n && (put >= 0 || tls->system_error == EAGAIN)) {
        size_t sent = put > 0 ? (size_t)put : 0;
        if (keep_unsent(tls, p + sent, (size_t)n - sent))
            put = n;
    }
    if (put < 0)
        errno = tls->system_error;
    return result_of(bio, put, BIO_FLAGS_WRITE);
}

static long bio_control(BIO *bio, int what, long argument, void *p)
{
    const aco_tls_t *tls = BIO_get_data(bio);
    (void)argument;
    switch (what) {
    case BIO_C_GET_FD: /* SSL_get_fd() */
        if (p)
            *(int *)p = tls->stream.fd;
        return tls->stream.fd;
    case BIO_CTRL_EOF:
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    case BIO_CTRL_FLUSH:
        return 1;
    default:
        return 0;
    }
}

static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_TYPE_SOCKET, "acorn");
    if (method && !(BIO_meth_set_read(method, bio_read) && BIO_meth_set_write(method, bio_write) &&
                    BIO_meth_set_ctrl(method, bio_control))) {
        BIO_meth_free(method);
        method = NULL;
    }
}

BIO *aco__tls_bio_new(aco_tls_t *tls)
{
    BIO *bio = CRYPTO_THREAD_run_once(&once, make_method) && method ? BIO_new(method) : NULL;
    if (bio) {
        BIO_set_data(bio, tls);
        BIO_set_init(bio, 1);
    }
    return bio;
}

aco_tls_t *aco__tls_of(const SSL *ssl)
{
    return BIO_get_data(SSL_get_rbio(ssl));
}
