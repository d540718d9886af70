/* The server of bench-io by libuv. io-server-uv PORT echo|stream
 * A write is tried first (uv_try_write()), and queued only if the socket is full: the fast form. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { ROOM = 64 * 1024 };

typedef struct connection {
    uv_tcp_t tcp;
    uv_write_t write;
    uint64_t left;
    size_t count; /* bytes of `left` that have come */
} connection_t;

static char room[ROOM]; /* for reads: its bytes are used up before the next one; and what a stream sends */
static int is_stream;

static void gone(uv_handle_t *handle)
{
    free(handle);
}

static void leave(connection_t *c)
{
    if (!uv_is_closing((uv_handle_t *)&c->tcp))
        uv_close((uv_handle_t *)&c->tcp, gone);
}

static void lend(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
    (void)handle;
    (void)size;
    *buffer = uv_buf_init(room, ROOM);
}

static void stream(connection_t *c);

static void written(uv_write_t *write, int status)
{
    connection_t *c = write->data;
    if (status != 0)
        leave(c);
    else
        stream(c);
}

static void stream(connection_t *c)
{
    while (c->left) {
        uv_buf_t buffer = uv_buf_init(room, c->left < ROOM ? (unsigned)c->left : ROOM);
        int n = uv_try_write((uv_stream_t *)&c->tcp, &buffer, 1);
        if (n == UV_EAGAIN) {
            c->left -= buffer.len;
            c->write.data = c;
            if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &buffer, 1, written) != 0)
                leave(c);
            return;
        }
        if (n < 0) {
            leave(c);
            return;
        }
        c->left -= (uint64_t)n;
    }
}

static void echo_written(uv_write_t *write, int status)
{
    if (status != 0)
        leave(write->handle->data);
    free(write);
}

static void echo(connection_t *c, unsigned n)
{
    uv_buf_t buffer = uv_buf_init(room, n);
    int done = uv_try_write((uv_stream_t *)&c->tcp, &buffer, 1);
    if (done < 0 && done != UV_EAGAIN) {
        leave(c);
    } else if (done < (int)n) { /* a client of the bench sends no more than it reads, so this is not measured */
        size_t rest = n - (unsigned)(done < 0 ? 0 : done);
        uv_write_t *write = malloc(sizeof *write + rest);
        buffer = uv_buf_init((char *)(write + 1), (unsigned)rest);
        memcpy(buffer.base, room + n - rest, rest);
        if (uv_write(write, (uv_stream_t *)&c->tcp, &buffer, 1, echo_written) != 0)
            leave(c);
    }
}

static void received(uv_stream_t *from, ssize_t n, const uv_buf_t *buffer)
{
    connection_t *c = from->data;
    if (n < 0) {
        leave(c);
    } else if (n > 0 && !is_stream) {
        echo(c, (unsigned)n);
    } else if (n > 0 && c->count + (size_t)n <= sizeof c->left) {
        memcpy((char *)&c->left + c->count, buffer->base, (size_t)n);
        c->count += (size_t)n;
        if (c->count == sizeof c->left) {
            c->count = 0;
            stream(c);
        }
    }
}

static void accepted(uv_stream_t *door, int status)
{
    connection_t *c = status == 0 ? calloc(1, sizeof *c) : NULL;
    if (!c)
        return;
    uv_tcp_init(door->loop, &c->tcp);
    c->tcp.data = c;
    if (uv_accept(door, (uv_stream_t *)&c->tcp) != 0) {
        leave(c);
        return;
    }
    uv_tcp_nodelay(&c->tcp, 1);
    uv_read_start((uv_stream_t *)&c->tcp, lend, received);
}

int main(int argc, char **argv)
{
    uv_tcp_t door;
    struct sockaddr_in address;
    int length = sizeof address;
    is_stream = argc > 2 && strcmp(argv[2], "stream") == 0;
    uv_ip4_addr("127.0.0.1", argc > 1 ? atoi(argv[1]) : 0, &address);
    uv_tcp_init(uv_default_loop(), &door);
    if (uv_tcp_bind(&door, (const struct sockaddr *)&address, 0) != 0 ||
        uv_listen((uv_stream_t *)&door, 65535, accepted) != 0 ||
        uv_tcp_getsockname(&door, (struct sockaddr *)&address, &length) != 0)
        return 1;
    fprintf(stderr, "listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
