/* Calls that wait until another one has connected: client_dial.c. */
#ifndef ACO_HTTP_CLIENT_DIAL_H
#define ACO_HTTP_CLIENT_DIAL_H

#include "http/client_peer.h"

typedef struct aco__http_dial aco__http_dial_t;

/* Whether it is likely that the server of this URL speaks HTTP/2. */
static inline int aco__http_is_likely_http2(const aco_http_client_t *client, const aco__http_client_url_t *url)
{
#ifdef ACO_CONFIG_HTTP2
    return url->is_tls ? !client->tls_is_http1 : client->options.prior_knowledge && !client->options.proxy_host;
#else
    return (void)client, (void)url, 0;
#endif
}
/* Before a call connects for such a URL: one call connects for all. 0: the caller connects, and ends *dial; 1: another
 * call has connected; -1 and errno: it has failed. */
ACO__SWITCHES
ACO__HIDDEN int aco__http_share_dial(aco_http_client_t *client, const aco__http_client_url_t *url,
                                     aco__http_dial_t **dial, const char *location);
/* The caller has connected (0), or has failed with this error. Keeps errno. */
ACO__HIDDEN void aco__http_end_dial(aco_http_client_t *client, aco__http_dial_t *dial, int error);

#endif
