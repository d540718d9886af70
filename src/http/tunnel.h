/* A link over the body of a request and that of its response, as WebSockets of HTTP/2 have it: tunnel.c. */
#ifndef ACO_HTTP_TUNNEL_H
#define ACO_HTTP_TUNNEL_H

#include "http/client_peer.h"
#include "http/request.h"

typedef struct aco__http_tunnel {
    aco_stream_t stream; /* first */
    aco__http_exchange_t *x; /* a server's; NULL: */
    struct aco__http2_call *call; /* a client's */
    aco__http_link_t link;
    char out[HTTP_OUT];
} aco__http_tunnel_t;

/* Of a request whose reply will be no reply; of a response. NULL and errno: ENOMEM. */
ACO__HIDDEN aco__http_tunnel_t *aco__http_tunnel_new(aco__http_exchange_t *x, struct aco__http2_call *call);
ACO__HIDDEN void aco__http_tunnel_free(aco__http_tunnel_t *tunnel);

#endif
