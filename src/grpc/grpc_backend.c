/* Where the calls of a channel go: pick first or round robin, back-off after failures to connect, looking up names. */
#include "grpc/grpc_channel.h"
#include "service/jitter.h"

#include <stdio.h>
#include <string.h>

#include "aco/detail/for_grpc.h"
#include "aco/names.h"

enum { MOST_ADDRESSES = 16, LOOK_UP_SECONDS = 30, HEADERS = 128 };
static const char pick_call[] = "aco_grpc_write"; /* whose errors these are */

/* ---- One ---- */

/* TLS is made for the target, also if an address of it was dialed. */
ACO__SWITCHES static aco_stream_t *open_tls(int fd, const char *host, void *arg)
{
    const aco__grpc_backend_t *backend = arg;
    const aco_grpc_channel_options_t *options = &backend->channel->options;
    (void)host;
    return options->open(fd, backend->target->host, options->open_arg);
}

aco__grpc_backend_t *aco__grpc_backend_new(aco_grpc_channel_t *channel, const aco__grpc_target_t *target,
                                           const char *authority)
{
    const aco_grpc_channel_options_t *o = &channel->options;
    const char *scheme = o->open ? "https://" : "http://";
    const size_t scheme_n = strlen(scheme), n = strlen(authority) + 1;
    size_t sz = sizeof(aco__grpc_backend_t) + scheme_n + n;
    aco_http_client_options_t http = {0};
    aco__grpc_backend_t *backend = aco__service_new(&sz, pick_call);
    if (!backend)
        return NULL;
    backend->sz = sz;
    backend->channel = channel;
    backend->target = target;
    backend->failed = -1;
    memcpy(backend->url, scheme, scheme_n);
    memcpy(backend->url + scheme_n, authority, n);
    http.open = o->open ? open_tls : NULL;
    http.open_arg = backend;
    http.prior_knowledge = 1;
    http.max_head = o->max_metadata;
    http.max_headers = HEADERS;
    http.connect_time = o->connect_time;
    http.ping_time = o->ping_time;
    backend->client = aco_http_client_new(&http);
    if (!backend->client) {
        aco__service_free(backend, sz);
        return NULL;
    }
    if (target->path)
        aco__http_client_dial_unix(backend->client, target->path);
    return backend;
}

void aco__grpc_backend_destroy(aco__grpc_backend_t *backend)
{
    aco_http_client_destroy(backend->client);
    aco__service_free(backend, backend->sz);
}

void aco__grpc_let_go(aco__grpc_backend_t *backend)
{
    ACO__ASSERT(backend->users > 0);
    if (--backend->users == 0 && backend->is_gone)
        aco__grpc_backend_destroy(backend);
}

void aco__grpc_reached(aco__grpc_backend_t *backend)
{
    backend->news++;
    backend->pause = 0;
    backend->not_before = 0;
    backend->failed = -1;
}

/* Several calls may have waited for one try. */
void aco__grpc_not_reached(aco__grpc_backend_t *backend, int error)
{
    aco_grpc_channel_t *channel = backend->channel;
    const int64_t now = aco_now();
    channel->error = error;
    (void)snprintf(channel->reason, sizeof channel->reason, "%s: %.60s", backend->target->text, aco_error_message());
    channel->must_look_up = 1;
    backend->failed = now;
    backend->news++;
    if (now < backend->not_before)
        return;
    backend->pause = backend->pause ? backend->pause / 5 * 8 : channel->options.first_pause;
    if (backend->pause > channel->options.longest_pause)
        backend->pause = channel->options.longest_pause;
    backend->not_before = now + backend->pause / 5 * 4 + aco__jitter(backend->pause / 5 * 2);
}

/* ---- Looking up, for a round robin ---- */

/* The backend with this address, or of this path, whose authority is the same for all. NULL: there is none. */
static aco__grpc_backend_t *backend_with(const aco_grpc_channel_t *channel, const char *authority, const char *path)
{
    for (aco__grpc_backend_t *backend = channel->first; backend; backend = backend->next)
        if (path && backend->target->path ? strcmp(backend->target->path, path) == 0
                                          : !path && strcmp(strstr(backend->url, "//") + 2, authority) == 0)
            return backend;
    return NULL;
}

/* The channel has this one. 0, or -1 and errno. */
static int add_backend(aco_grpc_channel_t *channel, const aco__grpc_target_t *target, const char *authority)
{
    aco__grpc_backend_t *backend = backend_with(channel, authority, target->path), **end = &channel->first;
    if (!backend) {
        backend = aco__grpc_backend_new(channel, target, authority);
        if (!backend)
            return -1;
        while (*end)
            end = &(*end)->next;
        *end = backend;
    }
    backend->target = target;
    backend->is_marked = 0;
    return 0;
}

static int add_address(aco_grpc_channel_t *channel, const aco__grpc_target_t *target,
                       const struct sockaddr_storage *address)
{
    char text[ACO_IO_ADDRESS_SIZE];
    if (aco_io_text_of_address((const struct sockaddr *)address, sizeof *address, text, sizeof text) != 0)
        return -1;
    return add_backend(channel, target, text);
}

/* Those of this target. */
static void mark_all(aco_grpc_channel_t *channel, const aco__grpc_target_t *target, unsigned char is_marked)
{
    for (aco__grpc_backend_t *backend = channel->first; backend; backend = backend->next)
        if (backend->target == target)
            backend->is_marked = is_marked;
}

static void drop_marked(aco_grpc_channel_t *channel)
{
    aco__grpc_backend_t **at = &channel->first, *backend;
    while ((backend = *at) != NULL) {
        ACO__ASSERT(!backend->is_gone);
        if (!backend->is_marked) {
            at = &backend->next;
            continue;
        }
        *at = backend->next;
        backend->is_gone = 1;
        if (channel->last_used == backend)
            channel->last_used = NULL;
        if (!backend->users)
            aco__grpc_backend_destroy(backend);
    }
}

/* 0, or -1 and errno: the name has no addresses now, and those that are known stay. */
ACO__SWITCHES static int look_up_target(aco_grpc_channel_t *channel, const aco__grpc_target_t *target,
                                        const char *location)
{
    size_t sz = MOST_ADDRESSES * sizeof(struct sockaddr_storage);
    struct sockaddr_storage *addresses;
    int n, result = -1;
    if (target->path)
        return add_backend(channel, target, target->host);
    addresses = aco__service_allocate(&sz, pick_call); /* too large for a small stack */
    if (!addresses)
        return -1;
    n = aco_io_look_up_at("tcp", target->host, target->port, addresses, MOST_ADDRESSES, location);
    if (n > 0) {
        ACO__NO_SWITCH_BEGIN();
        mark_all(channel, target, 1);
        result = 0;
        for (int i = 0; i < n && result == 0; i++)
            result = add_address(channel, target, &addresses[i]);
        if (result != 0) /* no memory: which ones are gone is not known */
            mark_all(channel, target, 0);
        ACO__NO_SWITCH_END();
    }
    aco__service_free(addresses, sz);
    return result;
}

static int must_look_up(const aco_grpc_channel_t *channel)
{
    return channel->must_look_up && aco_now() >= channel->look_up_after;
}

/* Looks all targets up. 0, or -1 and errno: there are no addresses. */
ACO__SWITCHES static int look_all_up(aco_grpc_channel_t *channel, const char *location)
{
    int error = 0;
    channel->must_look_up = 0;
    channel->look_up_after = aco_after(LOOK_UP_SECONDS * ACO_SECOND);
    for (size_t i = 0; i < channel->target_count; i++)
        if (look_up_target(channel, &channel->targets[i], location) != 0)
            error = errno;
    drop_marked(channel);
    if (!error)
        return 0;
    channel->must_look_up = 1;
    if (aco_check_cancelled() != 0) { /* the caller's own end is no failure of the channel: the next one looks up */
        channel->look_up_after = aco_now();
        return channel->first ? 0 : -1;
    }
    if (channel->first)
        return 0;
    channel->look_up_after = aco_after(channel->options.first_pause);
    channel->error = error;
    (void)snprintf(channel->reason, sizeof channel->reason, "%.100s", aco_error_message());
    errno = error;
    return -1;
}

/* Does so if it is due; others wait for it. As look_all_up(). */
ACO__SWITCHES static int look_up(aco_grpc_channel_t *channel, const char *location)
{
    int result;
    if (!channel->options.round_robin || (channel->first && !must_look_up(channel)))
        return 0;
    if (aco_mutex_lock_at(&channel->looking_up, location) != 0)
        return -1;
    result = must_look_up(channel) ? look_all_up(channel, location) : 0;
    (void)aco_mutex_unlock(&channel->looking_up);
    return result;
}

/* ---- Picking ---- */

/* Whether it may be tried now. Dialing may take longer than the pause after it: a call that has `since` ends all the
 * same when all have failed. */
static int is_ready(const aco__grpc_backend_t *backend, int64_t now, int64_t since)
{
    return backend->not_before <= now && backend->failed < since;
}

/* The first one from here on that is ready; NULL: none. */
static aco__grpc_backend_t *ready_from(aco__grpc_backend_t *backend, int64_t now, int64_t since)
{
    while (backend && !is_ready(backend, now, since))
        backend = backend->next;
    return backend;
}

static aco__grpc_backend_t *choose(const aco_grpc_channel_t *channel, int64_t now, int64_t since)
{
    aco__grpc_backend_t *from = channel->last_used;
    if (from && channel->options.round_robin)
        from = from->next;
    if (from && (channel->options.round_robin || is_ready(from, now, since))) {
        from = ready_from(from, now, since);
        if (from)
            return from;
    }
    return ready_from(channel->first, now, since);
}

/* When the next one may be tried. */
static int64_t next_time(const aco_grpc_channel_t *channel)
{
    int64_t next = channel->first ? ACO_FOREVER : channel->look_up_after;
    for (const aco__grpc_backend_t *backend = channel->first; backend; backend = backend->next)
        if (backend->not_before < next)
            next = backend->not_before;
    return next;
}

aco__grpc_backend_t *aco__grpc_pick(aco_grpc_channel_t *channel, int64_t since, int64_t until, const char *location)
{
    for (;;) {
        const int looked_up = look_up(channel, location);
        aco__grpc_backend_t *backend = looked_up == 0 ? choose(channel, aco_now(), since) : NULL;
        const int64_t next = next_time(channel);
        if (backend) {
            channel->last_used = backend;
            backend->users++;
            return backend;
        }
        if (aco_check_cancelled() != 0)
            return NULL;
        if (since != ACO_FOREVER) {
            (void)aco__service_fail(channel->error ? channel->error : ECONNREFUSED, pick_call, channel->reason);
            return NULL;
        }
        if (aco_sleep_until_at(next < until ? next : until, location) != 0)
            return NULL;
        if (aco_now() >= until) {
            (void)aco__service_fail(ETIMEDOUT, pick_call, channel->reason);
            return NULL;
        }
    }
}
