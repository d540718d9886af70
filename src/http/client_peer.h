/* A client's connections, and the requests on them. */
#ifndef ACO_HTTP_CLIENT_PEER_H
#define ACO_HTTP_CLIENT_PEER_H

#include "http/client_places.h"
#include "http/client_url.h"
#include "http/decoder.h"
#include "http/incoming.h"
#include "http/outgoing.h"
#include "http/trailers.h"

#include "aco/detail/http_observer.h"

#define CLIENT_CALL "aco_http_call" /* whose errors these are */

/* What has come before a request's body was sent, so that the rest is not: nothing; the response's head; the end. */
enum { EARLY_NOTHING, EARLY_RESPONSE, EARLY_END };

struct aco__http2_call;
typedef struct aco__http2_peer aco__http2_peer_t;

typedef struct aco__http_answer { /* a call's response, in either version */
    aco_http_response_t is; /* first */
    aco_http_client_t *client;
    struct aco__http2_call *http2; /* that it comes by; NULL: HTTP/1 */
    aco__http_hop_t *hops;
    aco__http_decoder_t *decoder; /* of the body; NULL: it is read as it comes */
    int decoder_error;      /* with which decoding has ended; 0: it has not */
    int64_t decoded;        /* bytes */
    int64_t until;          /* for the response's body, too */
} aco__http_answer_t;

static inline aco__http_answer_t *aco__http_answer_of(aco_http_response_t *response)
{
    return (aco__http_answer_t *)(void *)response;
}

typedef struct aco__http_peer { /* a connection, and the response that comes on it */
    aco__http_answer_t answer; /* first */
    aco__http2_peer_t *http2; /* NULL: the server speaks HTTP/1 */
    struct aco__http_peer *next;      /* that is kept */
    aco__http_host_t *place; /* of the request; NULL: hosts have no limit */
    int interims;           /* responses before that of the request */
    unsigned char may_switch; /* the request has asked for another protocol */
    unsigned char early;    /* EARLY_… */
    aco__http_link_t link;
    aco__http_incoming_t incoming;
    aco__http_outgoing_t outgoing;
    llhttp_t parser;
    aco__http_head_t head;
    aco__http_trailers_t trailers; /* of the response */
    int is_tls;
    char host[CLIENT_HOST], port[CLIENT_PORT]; /* the server's; without TLS, the proxy's if there is one */
    size_t sz;              /* of this record, the headers and the output behind it */
} aco__http_peer_t;

struct aco_http_client_s {
    aco_http_client_options_t options;
    aco__http_peer_t *kept; /* the one that was used last first */
    int kept_count;
    aco__http2_peer_t *http2; /* connections of HTTP/2 that are in use */
    struct aco__http_dial *dials; /* that others wait for */
    unsigned char tls_is_http1; /* what ALPN has chosen last */
    aco__http_places_t places;
    char *proxy_authorization; /* its value; NULL: none */
    size_t proxy_authorization_sz; /* 0: it is another client's */
    const char *unix_path; /* a socket that is dialed for all hosts; NULL: none */
    struct aco_http_client_s *of_threads; /* of a shared client, which has no connections itself. Atomic */
    struct aco_http_client_s *next; /* of those */
    uint64_t thread; /* that uses this one */
};

typedef struct aco__http_step { /* a request of a call, which redirects change */
    const aco_http_call_t *call;
    aco__http_client_url_t *url;
    const char *authorization; /* the value that the URL's user makes; "": none */
    const char *upgrade; /* lines of headers that ask for WebSocket, by HTTP/1.1; NULL: none. HTTP/2 takes some of it */
    const char *authority; /* in place of the URL's, in HTTP/2; NULL: the URL's */
    aco__http_hop_t *hops;
    const aco__http_traced_t *traced; /* NULL: nobody traces */
    const char *method;
    unsigned char has_body, has_lost_body;
    unsigned char needs_http1; /* on new connections: an upgrade, or the server has asked for it */
    unsigned char was_refused; /* by HTTP/2: the server has asked for HTTP/1.1 */
    unsigned char streams; /* the caller writes the body */
    unsigned char is_elsewhere; /* a redirect has led to another origin, perhaps back again */
} aco__http_step_t;

/* ---- client_new.c ---- */

/* The client that the calling thread uses: another one, if it is shared. NULL and errno. */
ACO__HIDDEN aco_http_client_t *aco__http_client_here(aco_http_client_t *client);

/* ---- client.c ---- */

/* aco_http_call(), by a step of which at most these are set: `streams`, for aco_http_call_begin(); `upgrade`: lines of
 * headers, sent on a connection of HTTP/1.1 that nobody else uses, or by HTTP/2 if there is a connection whose server
 * has announced that it takes WebSockets: then the caller writes the body; `authority`. */
ACO__SWITCHES
ACO__HIDDEN aco_http_response_t *aco__http_call_with(aco_http_client_t *client, const aco_http_call_t *call,
                                                     aco__http_step_t step, const char *location);

/* ---- Those that are kept: client_kept.c ---- */

ACO__HIDDEN void aco__http_close_peer(aco__http_peer_t *peer);
/* Whether nothing has come that was not read, not even the end. */
ACO__HIDDEN int aco__http_is_quiet(const aco__http_peer_t *peer);
/* Where a connection for this URL leads: to the proxy, if there is one. */
ACO__HIDDEN const char *aco__http_host_of(const aco_http_client_t *client, const aco__http_client_url_t *url);
ACO__HIDDEN const char *aco__http_port_of(const aco_http_client_t *client, const aco__http_client_url_t *url);
/* Takes a connection that was kept for this request's host; NULL: none. */
ACO__SWITCHES ACO__HIDDEN aco__http_peer_t *aco__http_kept_peer(aco_http_client_t *client,
                                                                const aco__http_step_t *step);
/* Whether this connection is one for this URL. */
ACO__HIDDEN int aco__http_leads_to(const aco__http_peer_t *peer, const aco_http_client_t *client,
                                   const aco__http_client_url_t *url);
/* Closes what has ended of the connections that are kept: their hosts may never be asked again. */
ACO__SWITCHES ACO__HIDDEN void aco__http_close_ended(aco_http_client_t *client);
/* Closes kept connections, so that there may be another one: besides those in use, there are as many as free places. */
ACO__HIDDEN void aco__http_make_place(aco_http_client_t *client, const aco__http_client_url_t *url,
                                      const aco__http_host_t *place);
/* Keeps a connection for further requests; if they are too many, the one that was not used for longest is closed. */
ACO__HIDDEN void aco__http_keep_peer(aco_http_client_t *client, aco__http_peer_t *peer);

/* ---- Heads: client_head.c ---- */

/* Begins a limit of `time`, if it is one. 0, or -1 and errno. */
ACO__HIDDEN int aco__http_begin_time(aco_scope_t *scope, int64_t time, const char *location);
/* Ends it. `failed`: what it was for has failed, with errno. */
ACO__HIDDEN void aco__http_end_time(aco_scope_t *scope, int64_t time, int failed, const char *reason);

/* Whether the request may be done twice: its method is idempotent, and its body can be sent once more. */
ACO__HIDDEN int aco__http_may_repeat(const aco__http_step_t *step);

/* These return 0, or -1 and errno. */
/* Whether these may be trailers. */
ACO__HIDDEN int aco__http_check_trailers(const aco_http_header_t *trailers, size_t count, const char *call);
ACO__SWITCHES ACO__HIDDEN int aco__http_put_texts(aco__http_link_t *link, const char *const *texts,
                                                  const char *location);
/* "host:port"; the port only if it is needed. */
ACO__SWITCHES
ACO__HIDDEN int aco__http_put_authority(aco__http_link_t *link, const aco__http_client_url_t *url, int with_port,
                                        const char *location);
ACO__SWITCHES ACO__HIDDEN int aco__http_send_head(aco__http_peer_t *peer, const aco__http_step_t *step,
                                                  const char *location);
/* What the response's cookies are for the jar, and its coding for who reads it. */
ACO__HIDDEN int aco__http_take_cookies(const aco_http_client_t *client, const aco__http_client_url_t *url,
                                       const aco_http_response_t *response);
ACO__HIDDEN int aco__http_begin_decoding(aco__http_answer_t *answer, const aco__http_step_t *step);
/* Whether the response may be coded, and is decoded: not if the call has an opinion, or asks for a part of it. */
ACO__HIDDEN int aco__http_wants_coded(const aco_http_client_t *client, const aco__http_step_t *step);
/* Whether this header of the call is sent: behind a redirect, perhaps not. */
ACO__HIDDEN int aco__http_is_sent(const aco__http_step_t *step, const char *name);
/* Reads the head of a response, also of an interim one, which is dropped. 0; 1: nothing has come at all; -1 and
 * errno. */
ACO__SWITCHES ACO__HIDDEN int aco__http_read_one_head(aco__http_peer_t *peer, int is_head, const char *location);
static inline int aco__http_is_interim(const aco__http_peer_t *peer)
{
    return peer->parser.status_code < 200 && peer->parser.status_code != 101;
}
/* Reads the head of the response, behind interim ones. As aco__http_read_one_head(). */
ACO__SWITCHES ACO__HIDDEN int aco__http_read_response(aco__http_peer_t *peer, int is_head, const char *location);

/* ---- Requests: client_request.c ---- */

/* Sends a request. 0; 1: a response has come before the body was sent, the rest of which is not: peer->early; -1 and
 * errno. */
ACO__SWITCHES ACO__HIDDEN int aco__http_send_request(aco__http_peer_t *peer, const aco__http_step_t *step,
                                                     const char *location);

/* ---- HTTP/2: client_http2_session.c ---- */

/* The connection's server speaks HTTP/2. 0, or -1 and errno. */
ACO__HIDDEN int aco__http2_speak(aco__http_peer_t *peer);
/* Takes what has come on one that is kept. Whether it can be used further. */
ACO__SWITCHES ACO__HIDDEN int aco__http2_catch_up(aco__http_peer_t *peer);
/* Whether its server has announced that it takes WebSockets (RFC 8441). */
ACO__HIDDEN int aco__http2_takes_websockets(const aco__http2_peer_t *h);
/* Frees what HTTP/2 needs, before the connection is closed. */
ACO__HIDDEN void aco__http2_hang_up(aco__http2_peer_t *h);

/* ---- Those in use: client_http2.c ---- */

/* The connection in use for this URL that takes a request; NULL: there is none. */
ACO__HIDDEN aco__http2_peer_t *aco__http2_used_peer(const aco_http_client_t *client, const aco__http_client_url_t *url);
/* From now on the connection is in use by all tasks, until it rests. It has this place until then. */
ACO__HIDDEN void aco__http2_use(aco__http_peer_t *peer, aco__http_host_t *place);
/* Those in use have no client any more. */
ACO__HIDDEN void aco__http2_forget_client(aco_http_client_t *client);

/* ---- Its requests: client_http2_call.c ---- */

enum { CLIENT_NEEDS_HTTP1 = 2 };
/* A request, and its response up to the head, unless the caller writes the body. 0 and *answer; 1: it can be sent once
 * more; CLIENT_NEEDS_HTTP1: by HTTP/1.1; -1 and errno. */
ACO__SWITCHES
ACO__HIDDEN int aco__http2_ask(aco__http2_peer_t *h, const aco__http_step_t *step, aco__http_answer_t **answer,
                               const char *location);
/* Waits for the head of the response. 0, or -1 and errno. */
ACO__SWITCHES
ACO__HIDDEN int aco__http2_await_response(struct aco__http2_call *s, int is_head, const char *location);
ACO__SWITCHES
ACO__HIDDEN int aco__http2_write_call(struct aco__http2_call *s, const void *p, size_t n, const char *call,
                                      const char *location);
ACO__HIDDEN int aco__http2_end_call_body(struct aco__http2_call *s, const aco_http_header_t *trailers, size_t n,
                                         const char *call);
ACO__SWITCHES
ACO__HIDDEN ssize_t aco__http2_read_call(struct aco__http2_call *s, void *p, size_t n, const char *call,
                                         const char *location);
/* Waits, 1 s at most, until what was written is under way, with the end of the body; `until_end`: until the response
 * has ended, too. */
ACO__SWITCHES ACO__HIDDEN void aco__http2_flush_call(struct aco__http2_call *s, int until_end, const char *location);
/* The trailers of the response, as far as they have come. */
ACO__HIDDEN const aco_http_header_t *aco__http2_call_trailers(const struct aco__http2_call *s, size_t *count);
ACO__HIDDEN int64_t aco__http2_reset_code(const struct aco__http2_call *s);
ACO__HIDDEN int aco__http2_is_heard(const struct aco__http2_call *s); /* aco__http_response_is_heard() */
/* Ends it; cancels it if it has not ended. Does not wait. */
ACO__HIDDEN void aco__http2_end_call(struct aco__http2_call *s);

#ifndef ACO_CONFIG_HTTP2 /* no connection speaks it, so nothing comes of these */
#define aco__http2_speak(peer) \
    ((void)(peer), aco__service_fail(EPROTONOSUPPORT, CLIENT_CALL, "the library was built without HTTP/2"))
#define aco__http2_catch_up(peer) ((void)(peer), 0)
#define aco__http2_takes_websockets(h) ((void)(h), 0)
#define aco__http2_hang_up(h) ((void)(h))
#define aco__http2_used_peer(client, url) ((void)(client), (void)(url), (aco__http2_peer_t *)NULL)
#define aco__http2_use(peer, place) ((void)(peer), (void)(place))
#define aco__http2_forget_client(client) ((void)(client))
#define aco__http2_ask(h, step, answer, location) ((void)(h), (void)(step), (void)(answer), (void)(location), -1)
#define aco__http2_await_response(s, is_head, location) ((void)(s), (void)(is_head), (void)(location), -1)
#define aco__http2_write_call(s, p, n, call, location) \
    ((void)(s), (void)(p), (void)(n), (void)(call), (void)(location), -1)
#define aco__http2_end_call_body(s, trailers, n, call) ((void)(s), (void)(trailers), (void)(n), (void)(call), -1)
#define aco__http2_read_call aco__http2_write_call
#define aco__http2_flush_call(s, until_end, location) ((void)(s), (void)(until_end), (void)(location))
#define aco__http2_call_trailers(s, count) ((void)(s), *(count) = 0, (const aco_http_header_t *)NULL)
#define aco__http2_reset_code(s) ((void)(s), (int64_t)-1)
#define aco__http2_is_heard(s) ((void)(s), 0)
#define aco__http2_end_call(s) ((void)(s))
#endif

#endif
