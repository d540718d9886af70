/* A link over the body of a request and that of its response. What the link sends goes out soon; back-pressure and
 * limits are those of bodies. */
#include "http/tunnel.h"

#include <string.h>

enum { TUNNEL_IN = 4096 }; /* bytes of input */

static const char tunnel_call[] = "a WebSocket";

static aco__http_tunnel_t *tunnel_of(aco_stream_t *stream)
{
    return (aco__http_tunnel_t *)(void *)stream;
}

ACO__SWITCHES static ssize_t tunnel_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    aco__http_tunnel_t *t = tunnel_of(stream);
    return t->x ? t->x->version->read(t->x, p, n, tunnel_call, location)
                : aco__http2_read_call(t->call, p, n, tunnel_call, location);
}

ACO__SWITCHES static ssize_t tunnel_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    aco__http_tunnel_t *t = tunnel_of(stream);
    int result = t->x ? t->x->version->write(t->x, p, n, tunnel_call, location)
                      : aco__http2_write_call(t->call, p, n, tunnel_call, location);
    if (result == 0 && t->x)
        t->x->version->push(t->x);
    return result == 0 ? (ssize_t)n : -1;
}

/* Nobody closes it: it has no descriptor. */
static void tunnel_close(aco_stream_t *stream)
{
    (void)stream;
}

aco__http_tunnel_t *aco__http_tunnel_new(aco__http_exchange_t *x, struct aco__http2_call *call)
{
    static const aco_stream_functions_t functions = {.read = tunnel_read, .write = tunnel_write, .close = tunnel_close};
    size_t sz = sizeof(aco__http_tunnel_t), in = TUNNEL_IN;
    aco__http_tunnel_t *t = aco__service_allocate(&sz, tunnel_call);
    char *buffer = t ? aco__service_allocate(&in, tunnel_call) : NULL;
    if (!buffer) {
        if (t)
            aco__service_free(t, sizeof *t);
        return NULL;
    }
    memset(&t->stream, 0, sizeof t->stream);
    t->stream.functions = &functions;
    t->stream.fd = -1;
    t->x = x;
    t->call = call;
    aco__http_link_open_on(&t->link, &t->stream, TUNNEL_IN);
    t->link.keep = 0;
    t->link.in.buffer = buffer;
    t->link.out = t->out;
    t->link.write_time = ACO_FOREVER;
    return t;
}

void aco__http_tunnel_free(aco__http_tunnel_t *t)
{
    aco__service_free(t->link.in.buffer, TUNNEL_IN);
    aco__service_free(t, sizeof *t);
}
