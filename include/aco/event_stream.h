/* Server-sent events: a reply that goes on, in which the server sends events to a page (EventSource). In the library
 * acorn_http.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static void news(aco_http_request_t *request, void *arg)
 *   {
 *       const char *last = aco_event_stream_last_id(request);
 *       if (aco_event_stream_begin(request) != 0)
 *           return;
 *       for (item_t *item = first_after(last); item; item = wait_for_next(item)) {
 *           const aco_event_stream_event_t event = {.id = item->id, .data = item->text, .length = item->length};
 *           if (aco_event_stream_send(request, &event) != 0)
 *               return; // the client is gone
 *       }
 *   }
 *
 * A stream ends when its handler returns; the browser connects again, after its `retry`, unless a reply to that has the
 * status 204. A client that goes away is noticed when something is sent, or by the middleware aco_http_end_with_client
 * while the handler waits for news. A stopped server waits for streams until drain_time is over: a handler learns of
 * the stop by aco_http_drain_begin(), and should return. The rules of aco/http.h count: threads, scopes, errors. */
#ifndef ACO_EVENT_STREAM_H
#define ACO_EVENT_STREAM_H

#include "http.h"

ACO__BEGIN_C

/* An event to send. Zeros: no such field. */
typedef struct aco_event_stream_event_s {
    const char *type;  /* the name of the event for the page; NULL: "message" */
    const char *id;    /* what the browser sends as Last-Event-ID when it connects again; "": it forgets the last one */
    const char *data;  /* UTF-8, of any number of lines; NULL: the page gets no event, only the other fields count */
    size_t length;     /* of `data`, in bytes */
    int64_t retry;     /* ns after which the browser connects again, from now on; 0: as before */
} aco_event_stream_event_t;

/* Returns the id of the last event that the client has got, or NULL. It comes from the client: it may be anything. */
ACO_API const char *aco_event_stream_last_id(const aco_http_request_t *request);

/* Begins the reply, with status 200, text/event-stream and Cache-Control: no-store, and sends its head. Returns 0; on
 * error -1 with errno as aco_http_reply_header(), aco_http_reply_begin(), aco_http_reply_flush(). */
ACO_API int aco_event_stream_begin_at(aco_http_request_t *request, const char *location);
#define aco_event_stream_begin(request) aco_event_stream_begin_at(request, ACO_PLACE)

/* Sends an event at once. Line ends in `data` are LF, CR or both; the page gets LF. Returns 0; on error -1 with errno
 * EINVAL (a line end in `type` or `id`; the stream has not begun; `retry` is less than 0), or as
 * aco_http_reply_write(): EPIPE or ECONNRESET (the client is gone). */
ACO_API int aco_event_stream_send_at(aco_http_request_t *request, const aco_event_stream_event_t *event,
                                     const char *location);
#define aco_event_stream_send(request, event) aco_event_stream_send_at(request, event, ACO_PLACE)

/* Sends a comment, which keeps proxies from closing a quiet stream, and finds out whether the client is there. Returns
 * 0; on error -1 with errno as aco_http_reply_write(). */
ACO_API int aco_event_stream_ping_at(aco_http_request_t *request, const char *location);
#define aco_event_stream_ping(request) aco_event_stream_ping_at(request, ACO_PLACE)

ACO__END_C

#endif
