/* HTTP over TLS: the functions by which acorn_http uses a connection. Only its header is used: it is not linked. */
#include "system/system.h"
#include "tls/connection.h"

#include "aco/detail/poller.h"
#include "aco/http.h"

#include <string.h>
#include <sys/socket.h>

ACO__SWITCHES static ssize_t stream_read(void *stream, void *p, size_t n, const char *location)
{
    return aco_tls_read_at(stream, p, n, location);
}

ACO__SWITCHES static ssize_t stream_write(void *stream, const void *p, size_t n, const char *location)
{
    return aco_tls_write_at(stream, p, n, location);
}

static void stream_close(void *stream)
{
    (void)aco_tls_close(stream);
}

/* Without a close_notify, and with an alert in the clear, as an attacker would inject it: no peer takes that for the
 * end of the reply. A reset alone is one for programs that do not look at errno after SSL_ERROR_SYSCALL (nginx); so
 * the connection is reset only if there is no room for the alert. */
static void stream_abort(void *stream)
{
    static const unsigned char alert[] = {21, 3, 3, 0, 2, 2, 80}; /* fatal, internal_error (RFC 8446, 6) */
    static const struct linger none = {0, 0};
    aco_tls_t *tls = stream;
    tls->has_failed[TLS_WRITE] = 1;
    if (aco__system.send(tls->fd, alert, sizeof alert, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof alert)
        (void)aco__system.setsockopt(tls->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    (void)aco_tls_close(tls);
}

ACO__SWITCHES static int stream_shutdown(void *stream, const char *location)
{
    return aco_tls_shutdown_at(stream, SHUT_WR, location);
}

ACO__SWITCHES static int stream_wait_readable(void *stream, const char *location)
{
    return aco__tls_await_input(stream, "aco_tls_wait_readable", location);
}

static int stream_has_input(void *stream)
{
    return SSL_has_pending(((const aco_tls_t *)stream)->ssl);
}

/* The connection, unless the two agreed upon another protocol; NULL: it is closed, errno EPROTO, or as it was. */
static void *stream_of(aco_tls_t *tls, const char *call, const aco_http_transport_t **transport)
{
    static const aco_http_transport_t functions = {
        stream_read, stream_write, stream_close, stream_shutdown, stream_wait_readable, stream_has_input, stream_abort};
    if (!tls)
        return NULL;
    *transport = &functions;
    if (!*tls->alpn || strcmp(tls->alpn, "http/1.1") == 0 || strcmp(tls->alpn, "http/1.0") == 0)
        return tls;
    (void)aco_tls_close(tls);
    aco__service_fail(EPROTO, call, "the protocol that was agreed upon is not HTTP/1");
    return NULL;
}

void *aco_tls_http_accept(int fd, const aco_http_transport_t **transport, void *config)
{
    return stream_of(aco_tls_accept_at(fd, config, "an HTTP connection"), "aco_tls_http_accept", transport);
}

void *aco_tls_http_connect(int fd, const char *host, const aco_http_transport_t **transport, void *config)
{
    return stream_of(aco_tls_connect_at(fd, host, config, "an HTTP connection"), "aco_tls_http_connect", transport);
}
