/* A connection as a stream; and those that HTTP uses. */
#include "system/system.h"
#include "tls/connection.h"

#include "aco/detail/poller.h"

#include <string.h>
#include <sys/socket.h>

static aco_tls_t *tls_of(aco_stream_t *stream)
{
    return (aco_tls_t *)(void *)stream;
}

ACO__SWITCHES static ssize_t stream_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    return aco_tls_read_at(tls_of(stream), p, n, location);
}

ACO__SWITCHES static ssize_t stream_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    return aco_tls_write_at(tls_of(stream), p, n, location);
}

static void stream_close(aco_stream_t *stream)
{
    int error = errno;
    (void)aco_tls_close(tls_of(stream));
    errno = error;
}

/* Without a close_notify, and with an alert in the clear, as an attacker would inject it: no peer takes that for the
 * end of the reply. A reset alone is one for programs that do not look at errno after SSL_ERROR_SYSCALL (nginx); so
 * the connection is reset only if there is no room for the alert. */
static void stream_abort(aco_stream_t *stream)
{
    static const unsigned char alert[] = {21, 3, 3, 0, 2, 2, 80}; /* fatal, internal_error (RFC 8446, 6) */
    static const struct linger none = {0, 0};
    aco_tls_t *tls = tls_of(stream);
    tls->has_failed[TLS_WRITE] = 1;
    if (aco__system.send(tls->stream.fd, alert, sizeof alert, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof alert)
        (void)aco__system.setsockopt(tls->stream.fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    stream_close(stream);
}

ACO__SWITCHES static int stream_shutdown(aco_stream_t *stream, const char *location)
{
    return aco_tls_shutdown_at(tls_of(stream), SHUT_WR, location);
}

ACO__SWITCHES static int stream_wait_readable(aco_stream_t *stream, const char *location)
{
    return aco__tls_await_input(tls_of(stream), "aco_tls_wait_readable", location);
}

static int stream_has_input(aco_stream_t *stream)
{
    return SSL_has_pending(tls_of(stream)->ssl);
}

static const char *stream_protocol(const aco_stream_t *stream)
{
    return ((const aco_tls_t *)(const void *)stream)->alpn;
}

/* OpenSSL's objects belong to no thread. Semaphores that were used do, so they begin anew: nobody uses them now. */
static int stream_can_move(aco_stream_t *stream)
{
    aco_tls_t *tls = tls_of(stream);
    if (tls->users > 1 || !tls->is_connected || tls->is_closed || tls->unsent || tls->has_failed[TLS_READ] ||
        tls->has_failed[TLS_WRITE] || SSL_has_pending(tls->ssl))
        return 0;
    aco__tls_open_turns(tls);
    return 1;
}

static const aco_stream_functions_t functions = {
    .read = stream_read,
    .write = stream_write,
    .close = stream_close,
    .abort = stream_abort,
    .shutdown = stream_shutdown,
    .wait_readable = stream_wait_readable,
    .has_input = stream_has_input,
    .protocol = stream_protocol,
    .can_move = stream_can_move,
};

aco_stream_t *aco_tls_stream(aco_tls_t *tls)
{
    if (!tls)
        return NULL;
    tls->stream.functions = &functions;
    return &tls->stream;
}

aco_tls_t *aco_tls_of_stream(aco_stream_t *stream)
{
    if (stream->functions == &functions)
        return tls_of(stream);
    errno = ENOTSUP;
    return NULL;
}

/* The connection, unless the two agreed upon another protocol; NULL: it is closed, errno EPROTO, or as it was. */
static aco_stream_t *speaks_http(aco_tls_t *tls, const char *call)
{
    if (!tls || !*tls->alpn || strcmp(tls->alpn, "http/1.1") == 0 || strcmp(tls->alpn, "http/1.0") == 0 ||
        strcmp(tls->alpn, "h2") == 0)
        return aco_tls_stream(tls);
    (void)aco_tls_close(tls);
    aco__service_fail(EPROTO, call, "the protocol that was agreed upon is another one");
    return NULL;
}

aco_stream_t *aco_tls_http_accept(int fd, void *config)
{
    return speaks_http(aco_tls_accept_at(fd, config, "an HTTP connection"), "aco_tls_http_accept");
}

aco_stream_t *aco_tls_http_connect(int fd, const char *host, void *config)
{
    return speaks_http(aco_tls_connect_at(fd, host, config, "an HTTP connection"), "aco_tls_http_connect");
}
