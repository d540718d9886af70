/* Connections of clients that are kept for further requests. */
#include "http/client_peer.h"
#include "http/text.h"

#include <string.h>

void aco__http_close_peer(aco__http_peer_t *peer)
{
    if (peer->http2)
        aco__http2_hang_up(peer->http2);
    aco__http_drop_trailers(&peer->trailers);
    aco__http_link_close(&peer->link, aco__http_is_cut(&peer->outgoing));
    aco__service_free(peer, peer->sz);
}

int aco__http_is_quiet(const aco__http_peer_t *peer)
{
    return !aco_stream_has_input(peer->link.stream);
}

const char *aco__http_host_of(const aco_http_client_t *client, const aco__http_client_url_t *url)
{
    return client->options.proxy_host && !url->is_tls ? client->options.proxy_host : url->address;
}

const char *aco__http_port_of(const aco_http_client_t *client, const aco__http_client_url_t *url)
{
    return client->options.proxy_host && !url->is_tls ? client->options.proxy_port : url->port;
}

int aco__http_leads_to(const aco__http_peer_t *peer, const aco_http_client_t *client, const aco__http_client_url_t *url)
{
    return peer->is_tls == url->is_tls && aco__http_same(peer->host, aco__http_host_of(client, url)) &&
           strcmp(peer->port, aco__http_port_of(client, url)) == 0;
}

/* `for_websocket`: by HTTP/2, from a server that takes WebSockets. */
static int kept_fits(const aco__http_peer_t *peer, const aco_http_client_t *client, const aco__http_client_url_t *url,
                     int for_websocket)
{
    return aco__http_leads_to(peer, client, url) &&
           (!for_websocket || (peer->http2 && aco__http2_takes_websockets(peer->http2)));
}

/* Takes a connection for this URL's host out of the list; NULL: there is none that fits. */
static aco__http_peer_t *take_kept(aco_http_client_t *client, const aco__http_client_url_t *url, int for_websocket)
{
    aco__http_peer_t **place = &client->kept, *peer;
    ACO__NO_SWITCH_BEGIN();
    while ((peer = *place) != NULL && !kept_fits(peer, client, url, for_websocket))
        place = &peer->next;
    if (peer) {
        ACO__ASSERT(client->kept_count > 0);
        *place = peer->next;
        client->kept_count--;
    }
    ACO__NO_SWITCH_END();
    return peer;
}

/* Whether one that is out of the list can be used: nothing has come, or what HTTP/2 can bear. */
ACO__SWITCHES static int can_go_on(aco__http_peer_t *peer)
{
    return aco__http_is_quiet(peer) || (peer->http2 && aco__http2_catch_up(peer));
}

/* A connection that was kept for this request's host; NULL: none. While one is closed, other tasks may use the list. */
aco__http_peer_t *aco__http_kept_peer(aco_http_client_t *client, const aco__http_step_t *step)
{
    aco__http_peer_t *peer;
    while ((peer = take_kept(client, step->url, step->upgrade != NULL)) != NULL && !can_go_on(peer))
        aco__http_close_peer(peer);
    return peer;
}

/* Closes what has ended of the connections that are kept: their hosts may never be asked again. */
void aco__http_close_ended(aco_http_client_t *client)
{
    aco__http_peer_t **place = &client->kept, *ended = NULL, *peer;
    ACO__NO_SWITCH_BEGIN();
    while ((peer = *place) != NULL) {
        if (aco__http_is_quiet(peer)) {
            place = &peer->next;
            continue;
        }
        *place = peer->next;
        client->kept_count--;
        peer->next = ended;
        ended = peer;
    }
    ACO__ASSERT(!client->kept == !client->kept_count);
    ACO__NO_SWITCH_END();
    while ((peer = ended) != NULL) {
        ended = peer->next;
        if (peer->http2 && can_go_on(peer))
            aco__http_keep_peer(client, peer);
        else
            aco__http_close_peer(peer);
    }
}

/* Takes the connection that was not used for longest out of the list, which is not empty. */
static aco__http_peer_t *take_last(aco_http_client_t *client)
{
    aco__http_peer_t **place = &client->kept, *last;
    ACO__ASSERT(*place);
    while ((*place)->next) // NOLINT(clang-analyzer-core.NullDereference): it is not empty
        place = &(*place)->next;
    last = *place;
    *place = NULL;
    client->kept_count--;
    return last;
}

/* Keeps a connection for further requests; if they are too many, the one that was not used for longest is closed. */
void aco__http_keep_peer(aco_http_client_t *client, aco__http_peer_t *peer)
{
    aco__http_peer_t *last = NULL;
    ACO__ASSERT(!peer->link.out_n && !peer->outgoing.left && !peer->link.in.buffer); /* nothing is under way */
    ACO__NO_SWITCH_BEGIN();
    peer->next = client->kept;
    client->kept = peer;
    if (++client->kept_count > client->options.max_idle)
        last = take_last(client);
    ACO__NO_SWITCH_END();
    if (last)
        aco__http_close_peer(last);
}

static size_t kept_for(const aco_http_client_t *client, const aco__http_client_url_t *url)
{
    size_t n = 0;
    for (const aco__http_peer_t *peer = client->kept; peer; peer = peer->next)
        n += aco__http_leads_to(peer, client, url);
    return n;
}

/* Closes kept connections, so that there may be another one: besides those in use, there are as many as free places. If
 * the threads have these in common, other threads' connections are among those in use, but what they keep stays. */
void aco__http_make_place(aco_http_client_t *client, const aco__http_client_url_t *url, const aco__http_host_t *place)
{
    aco__http_peer_t *peer;
    while (place && kept_for(client, url) > aco__http_free_places(&client->places, place) &&
           (peer = take_kept(client, url, 0)) != NULL)
        aco__http_close_peer(peer);
    while (client->places.most && (size_t)client->kept_count > aco__http_free_places(&client->places, NULL))
        aco__http_close_peer(take_last(client));
}
