/* Server-sent events (HTML, 9.2): lines of fields; an empty one ends an event. */
#include "http/request.h"
#include "http/text.h"

#include "aco/event_stream.h"

#include <string.h>

const char *aco_event_stream_last_id(const aco_http_request_t *request)
{
    return aco_http_request_header(request, "Last-Event-ID");
}

int aco_event_stream_begin_at(aco_http_request_t *request, const char *location)
{
    if (aco_http_reply_header(request, "Cache-Control", "no-store") != 0 ||
        aco_http_reply_begin_at(request, 200, "text/event-stream", -1, location) != 0)
        return -1;
    return aco_http_reply_flush_at(request, location);
}

/* What becomes one chunk, if it fits. */
typedef struct chunk {
    aco_http_request_t *request;
    const char *location;
    size_t n;
    char text[512];
} chunk_t;

ACO__SWITCHES static int write_chunk(chunk_t *chunk)
{
    size_t n = chunk->n;
    chunk->n = 0;
    return n ? aco_http_reply_write_at(chunk->request, chunk->text, n, chunk->location) : 0;
}

ACO__SWITCHES static int put(chunk_t *chunk, const char *p, size_t n)
{
    if (n > sizeof chunk->text - chunk->n && write_chunk(chunk) != 0)
        return -1;
    if (n > sizeof chunk->text)
        return aco_http_reply_write_at(chunk->request, p, n, chunk->location);
    aco__http_put(chunk->text + chunk->n, p, n);
    chunk->n += n;
    return 0;
}

ACO__SWITCHES static int put_field(chunk_t *chunk, const char *name, const char *value, size_t n)
{
    return put(chunk, name, strlen(name)) != 0 || put(chunk, value, n) != 0 || put(chunk, "\n", 1) != 0 ? -1 : 0;
}

/* A field for each line. */
ACO__SWITCHES static int put_data(chunk_t *chunk, const char *data, size_t n)
{
    const char *end = data + n;
    for (;;) {
        const char *line = data;
        while (data < end && *data != '\n' && *data != '\r')
            data++;
        if (put_field(chunk, "data: ", line, (size_t)(data - line)) != 0)
            return -1;
        if (data == end)
            return 0;
        data += end - data > 1 && data[0] == '\r' && data[1] == '\n' ? 2 : 1;
    }
}

static int is_line(const char *text)
{
    return !text || !text[strcspn(text, "\r\n")];
}

int aco_event_stream_send_at(aco_http_request_t *request, const aco_event_stream_event_t *event, const char *location)
{
    chunk_t chunk;
    char retry[24], *end = aco__http_put_number(retry, (uint64_t)(event->retry / ACO_MILLISECOND));
    if (!is_line(event->type) || !is_line(event->id) || event->retry < 0)
        return aco__service_fail(EINVAL, "aco_event_stream_send", "a line end in the type or id, or `retry`");
    chunk.request = request;
    chunk.location = location;
    chunk.n = 0;
    if ((event->id && put_field(&chunk, "id: ", event->id, strlen(event->id)) != 0) ||
        (event->type && put_field(&chunk, "event: ", event->type, strlen(event->type)) != 0) ||
        (event->retry && put_field(&chunk, "retry: ", retry, (size_t)(end - retry)) != 0) ||
        (event->data && put_data(&chunk, event->data, event->length) != 0) || put(&chunk, "\n", 1) != 0 ||
        write_chunk(&chunk) != 0)
        return -1;
    return aco_http_reply_flush_at(request, location);
}

int aco_event_stream_ping_at(aco_http_request_t *request, const char *location)
{
    return aco_http_reply_write_at(request, ":\n\n", 3, location) == 0 ? aco_http_reply_flush_at(request, location)
                                                                       : -1;
}
