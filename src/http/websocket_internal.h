/* WebSockets inside: frames and messages are websocket.c's, the handshakes websocket_accept.c's and
 * websocket_connect.c's, compressed messages websocket_deflate.c's. */
#ifndef ACO_HTTP_WEBSOCKET_INTERNAL_H
#define ACO_HTTP_WEBSOCKET_INTERNAL_H

#include "http/link.h"
#include "http/request.h"
#include "http/text.h"

#include "aco/sync.h"
#include "aco/websocket.h"

enum { WS_MOST_CONTROL = 125, WS_MASK = 4, WS_KEYS = 64 }; /* bytes; WS_KEYS: of random numbers for masks */

/* What the two sides have agreed on about compressed messages. */
typedef struct aco__http_deflating {
    unsigned char is_on;
    unsigned char window; /* of what is sent: the binary logarithm */
    unsigned char sends_anew, receives_anew; /* no message refers to an earlier one */
    struct aco__http_coder *sender, *receiver; /* zlib's, or NULL */
} aco__http_deflating_t;

struct aco_websocket_s {
    aco__http_link_t *link;
    struct aco__http_tunnel *tunnel; /* whose link it is, by HTTP/2; NULL: it is the connection's */
    aco_http_response_t *response; /* a client's, which has the link; NULL: the connection is a server's */
    aco_websocket_options_t options;
    char protocol[64];
    aco_semaphore_t turn; /* one task sends */
    unsigned char has_sent_close, is_pinged;
    int code; /* the peer's; 1006: it has not closed */
    int error; /* why nothing can be received any more */
    unsigned char keys[WS_KEYS]; /* a client's masks to come */
    size_t keys_n; /* how many bytes are left */
    aco__http_deflating_t deflating;
    /* The frame that comes in: */
    unsigned char in_frame, is_final, opcode;
    unsigned char mask[WS_MASK];
    uint64_t left; /* bytes of its payload to come */
    unsigned char control[WS_MOST_CONTROL];
    size_t control_n;
    /* The message: */
    int type; /* 0: none has begun */
    unsigned char is_deflated;
    int64_t deadline; /* of the message, if `type` tells that one has begun */
    char *bytes;
    size_t n, room;
};

/* ---- websocket.c ---- */
/* A WebSocket with these options. NULL and errno: EINVAL, ENOMEM. */
ACO__HIDDEN aco_websocket_t *aco__http_websocket_new(const aco_websocket_options_t *options, const char *call);
ACO__HIDDEN void aco__http_websocket_free(aco_websocket_t *socket);
/* The handler has returned. */
ACO__SWITCHES ACO__HIDDEN void aco__http_end_websocket(aco__http_exchange_t *x, const char *location);
/* It has not, but its task ends: nothing is sent. */
ACO__HIDDEN void aco__http_drop_websocket(aco__http_exchange_t *x);

/* ---- websocket_deflate.c: permessage-deflate (RFC 7692) ---- */
enum { WS_EXTENSION = 128 }; /* bytes of a header's value */
/* What a client offers: the value of Sec-WebSocket-Extensions; "": nothing. */
ACO__HIDDEN const char *aco__http_deflate_offer(const aco_websocket_options_t *options);
/* Chooses of what a client offers, and stores the answer; "": none. */
ACO__HIDDEN void aco__http_deflate_choose(aco_websocket_t *socket, aco__http_list_t offers, char answer[WS_EXTENSION]);
/* Takes the server's answer. 0; -1: it is not allowed. */
ACO__HIDDEN int aco__http_deflate_agree(aco_websocket_t *socket, aco__http_list_t answer);
ACO__HIDDEN void aco__http_deflate_end(aco_websocket_t *socket);
/* Whether a message of this length is sent compressed. */
ACO__HIDDEN int aco__http_is_deflated(const aco_websocket_t *socket, size_t n);
/* Compresses a message, by who has the turn to send. Stores the bytes, which the caller frees: *sz are allocated, *n
 * are used. NULL: there is no memory. */
ACO__SWITCHES ACO__HIDDEN char *aco__http_deflate(aco_websocket_t *socket, const void *p, size_t *n, size_t *sz,
                                                  const char *location);
/* A compressed message was not sent: further ones do not refer to it. */
ACO__HIDDEN void aco__http_deflate_anew(aco_websocket_t *socket);
/* Decompresses the message that has come. 0; or EBADMSG, EFBIG (more than max_message), ENOMEM. */
ACO__SWITCHES ACO__HIDDEN int aco__http_inflate(aco_websocket_t *socket, const char *location);

#endif
