/* OpenSSL's way to the descriptor. SSL_set_fd() would give it a BIO that calls write(), which raises SIGPIPE when the
 * peer is gone. Blocking that signal around each call would cost two system calls, and is not known to other threads'
 * handlers. So this BIO calls send() with MSG_NOSIGNAL. It never blocks, also on a blocking descriptor. */
#define _GNU_SOURCE
#include "tls/tls.h"

#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS: aco/io.h has set an option of the socket */
#endif

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
    const aco_tls_t *tls = BIO_get_data(bio);
    ssize_t got;
    do
        got = recv(tls->fd, p, (size_t)n, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got == 0)
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return result_of(bio, got, BIO_FLAGS_READ);
}

static int bio_write(BIO *bio, const char *p, int n)
{
    const aco_tls_t *tls = BIO_get_data(bio);
    ssize_t put;
    do
        put = send(tls->fd, p, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (put < 0 && errno == EINTR);
    return result_of(bio, put, BIO_FLAGS_WRITE);
}

static long bio_control(BIO *bio, int what, long argument, void *p)
{
    const aco_tls_t *tls = BIO_get_data(bio);
    (void)argument;
    switch (what) {
    case BIO_C_GET_FD: /* SSL_get_fd() */
        if (p)
            *(int *)p = tls->fd;
        return tls->fd;
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
