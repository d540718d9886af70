/* Compressed messages of WebSockets: permessage-deflate (RFC 7692), by zlib, if the build has it. */
#include "base/invariants.h"
#include "http/coder_memory.h"
#include "http/text.h"
#include "http/websocket_internal.h"

#include "aco/detail/descriptors.h"

#include <errno.h>
#include <string.h>

#ifdef ACO_CONFIG_ZLIB
#include <zlib.h>

static const char extension_name[] = "permessage-deflate";

enum { DEFLATE_AT_ONCE = 65536, DEFLATE_LEAST = 64, DEFLATE_TAIL = 4, DEFLATE_LEVEL = 5, BEHIND_A_BLOCK = 128 };
/* What stands at the end of each compressed message, and is not sent. */
static const char deflate_tail[DEFLATE_TAIL] = {0, 0, (char)0xff, (char)0xff};

struct aco__http_coder {
    z_stream z;
};

/* ---- The handshake ---- */

typedef struct agreement { /* windows: 0: not told; -1: told without a value */
    int is_server_anew, is_client_anew, server_window, client_window;
} agreement_t;

/* The value of a window: 8 to 15, perhaps in quotes; 0: it is wrong. */
static int window_in(const char *at, size_t n)
{
    int value = 0;
    if (n >= 2 && at[0] == '"' && at[n - 1] == '"')
        at++, n -= 2;
    if (n == 0 || n > 2 || *at == '0')
        return 0;
    for (; n; n--, at++)
        value = *at >= '0' && *at <= '9' ? 10 * value + (*at - '0') : 100;
    return value >= 8 && value <= 15 ? value : 0;
}

/* Takes a parameter. 0; -1: it is unknown, wrong, or there twice. */
static int take_parameter(agreement_t *agreement, const char *at, size_t n)
{
    const char *equals = memchr(at, '=', n);
    const size_t name_n = equals ? (size_t)(equals - at) : n;
    int *flag = aco__http_is(at, name_n, "server_no_context_takeover")   ? &agreement->is_server_anew
                : aco__http_is(at, name_n, "client_no_context_takeover") ? &agreement->is_client_anew
                                                                         : NULL;
    int *window = aco__http_is(at, name_n, "server_max_window_bits")   ? &agreement->server_window
                  : aco__http_is(at, name_n, "client_max_window_bits") ? &agreement->client_window
                                                                       : NULL;
    if ((flag ? *flag || equals : !window) || (window && *window))
        return -1;
    if (flag)
        *flag = 1;
    else
        *window = equals ? window_in(equals + 1, n - name_n - 1) : -1;
    return flag || *window ? 0 : -1;
}

/* Understands an element of the header. 0; -1: it is another extension, or wrong. */
static int read_extension(agreement_t *agreement, const char *at, size_t n)
{
    const char *end = at + n;
    int is_first = 1;
    memset(agreement, 0, sizeof *agreement);
    while (at <= end) {
        const char *next = memchr(at, ';', (size_t)(end - at));
        const char *last = next ? next : end, *after = last;
        while (at < last && (*at == ' ' || *at == '\t'))
            at++;
        while (last > at && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        if (is_first ? !aco__http_is(at, (size_t)(last - at), extension_name)
                     : take_parameter(agreement, at, (size_t)(last - at)) != 0)
            return -1;
        is_first = 0;
        at = after + 1;
    }
    return 0;
}

const char *aco__http_deflate_offer(const aco_websocket_options_t *options)
{
    return options->compresses == ACO_WEBSOCKET_KEEP_WINDOWS ? "permessage-deflate; client_max_window_bits"
           : options->compresses ? "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
                                   "client_max_window_bits"
                                 : "";
}

void aco__http_deflate_choose(aco_websocket_t *socket, aco__http_list_t offers, char answer[WS_EXTENSION])
{
    aco__http_deflating_t *d = &socket->deflating;
    const int is_anew = socket->options.compresses != ACO_WEBSOCKET_KEEP_WINDOWS;
    agreement_t offer;
    const char *at;
    *answer = 0;
    if (!socket->options.compresses)
        return;
    for (size_t n; (at = aco__http_next(&offers, &n)) != NULL;) {
        if (read_extension(&offer, at, n) != 0 || offer.server_window < 0 || offer.server_window == 8)
            continue; /* zlib has no window of 256 bytes */
        d->is_on = 1;
        d->sends_anew = (unsigned char)(is_anew || offer.is_server_anew);
        d->receives_anew = (unsigned char)(is_anew || offer.is_client_anew);
        d->window = (unsigned char)(offer.server_window ? offer.server_window : MAX_WBITS);
        answer = HTTP_PUT(answer, "permessage-deflate");
        answer = d->sends_anew ? HTTP_PUT(answer, "; server_no_context_takeover") : answer;
        answer = d->receives_anew ? HTTP_PUT(answer, "; client_no_context_takeover") : answer;
        if (offer.server_window)
            answer = aco__http_put_number(HTTP_PUT(answer, "; server_max_window_bits="), d->window);
        *answer = 0;
        return;
    }
}

int aco__http_deflate_agree(aco_websocket_t *socket, aco__http_list_t answer)
{
    aco__http_deflating_t *d = &socket->deflating;
    const int is_anew = socket->options.compresses != ACO_WEBSOCKET_KEEP_WINDOWS;
    agreement_t agreed;
    size_t n;
    const char *at = aco__http_next(&answer, &n);
    if (!at)
        return 0;
    if (!socket->options.compresses || read_extension(&agreed, at, n) != 0 || agreed.server_window < 0 ||
        agreed.client_window < 0 || (is_anew && !agreed.is_server_anew) || aco__http_next(&answer, &n))
        return -1;
    d->is_on = 1;
    d->sends_anew = (unsigned char)(is_anew || agreed.is_client_anew);
    d->receives_anew = (unsigned char)(is_anew || agreed.is_server_anew);
    d->window = (unsigned char)(agreed.client_window ? agreed.client_window : MAX_WBITS);
    return 0;
}

/* ---- Coders ---- */

/* NULL: no memory. */
static struct aco__http_coder *new_coder(int window, int is_sender)
{
    struct aco__http_coder *coder = aco__http_coder_allocate(NULL, sizeof *coder);
    int result;
    if (!coder)
        return NULL;
    memset(coder, 0, sizeof *coder);
    coder->z.zalloc = aco__http_coder_allocate_items;
    coder->z.zfree = aco__http_coder_free;
    result = is_sender ? deflateInit2(&coder->z, DEFLATE_LEVEL, Z_DEFLATED, -window, window - 7, Z_DEFAULT_STRATEGY)
                       : inflateInit2(&coder->z, -window);
    if (result == Z_OK)
        return coder;
    aco__http_coder_free(NULL, coder);
    return NULL;
}

static void end_sender(aco__http_deflating_t *d)
{
    if (!d->sender)
        return;
    (void)deflateEnd(&d->sender->z);
    aco__http_coder_free(NULL, d->sender);
    d->sender = NULL;
}

static void end_receiver(aco__http_deflating_t *d)
{
    if (!d->receiver)
        return;
    (void)inflateEnd(&d->receiver->z);
    aco__http_coder_free(NULL, d->receiver);
    d->receiver = NULL;
}

void aco__http_deflate_end(aco_websocket_t *socket)
{
    end_sender(&socket->deflating);
    end_receiver(&socket->deflating);
}

/* ---- Sending ---- */

int aco__http_is_deflated(const aco_websocket_t *socket, size_t n)
{
    return socket->deflating.is_on && n >= DEFLATE_LEAST && n < INT32_MAX && socket->deflating.window > 8;
}

void aco__http_deflate_anew(aco_websocket_t *socket)
{
    end_sender(&socket->deflating);
}

char *aco__http_deflate(aco_websocket_t *socket, const void *p, size_t *n, size_t *sz, const char *location)
{
    aco__http_deflating_t *d = &socket->deflating;
    const Bytef *at = p;
    size_t left = *n;
    char *bytes;
    z_stream *z;
    if (!d->sender && !(d->sender = new_coder(d->window, 1))) {
        errno = ENOMEM;
        return NULL;
    }
    z = &d->sender->z;
    *sz = deflateBound(z, (uLong)*n) + *n / 256 + 64; /* pieces cost more than the whole */
    bytes = aco__service_allocate(sz, "aco_websocket_send");
    if (!bytes)
        return NULL;
    z->next_out = (Bytef *)bytes;
    z->avail_out = (uInt)*sz;
    do {
        const size_t part = left < DEFLATE_AT_ONCE ? left : DEFLATE_AT_ONCE;
        z->next_in = (Bytef *)(uintptr_t)at;
        z->avail_in = (uInt)part;
        (void)deflate(z, part == left ? Z_SYNC_FLUSH : Z_NO_FLUSH);
        ACO__ASSERT(!z->avail_in && z->avail_out);
        at += part;
        left -= part;
        aco__io_spend("aco_websocket_send", location);
    } while (left);
    *n = *sz - z->avail_out - DEFLATE_TAIL;
    ACO__ASSERT(memcmp(bytes + *n, deflate_tail, DEFLATE_TAIL) == 0);
    if (socket->options.compresses != ACO_WEBSOCKET_KEEP_WINDOWS)
        end_sender(d);
    else if (d->sends_anew)
        (void)deflateReset(z);
    return bytes;
}

/* ---- Receiving ---- */

typedef struct plain { /* a message as it becomes readable */
    char *bytes;
    size_t n, room;
    uint64_t most;
} plain_t;

/* Room for a byte more than there may be, and for a 0. 0, or -1. */
static int grow_plain(plain_t *plain)
{
    size_t sz = plain->room ? 2 * plain->room : 4096;
    char *larger;
    if (plain->n + 1 < plain->room)
        return 0;
    if (sz > plain->most && sz - plain->most > 2)
        sz = (size_t)plain->most + 2;
    larger = aco__service_allocate(&sz, "aco_websocket_receive");
    if (!larger)
        return -1;
    aco__http_put(larger, plain->bytes, plain->n);
    if (plain->bytes)
        aco__service_free(plain->bytes, plain->room);
    plain->bytes = larger;
    plain->room = sz;
    return 0;
}

/* Adds what these bytes mean. 0, or an errno. */
ACO__SWITCHES
static int inflate_bytes(z_stream *z, plain_t *plain, const char *p, size_t n, const char *location)
{
    z->next_in = (Bytef *)(uintptr_t)p;
    z->avail_in = 0;
    for (;;) {
        size_t room;
        int result;
        if (!z->avail_in) {
            z->avail_in = n < DEFLATE_AT_ONCE ? (uInt)n : DEFLATE_AT_ONCE;
            n -= z->avail_in;
        }
        if (grow_plain(plain) != 0)
            return ENOMEM;
        room = plain->room - plain->n - 1 < DEFLATE_AT_ONCE ? plain->room - plain->n - 1 : DEFLATE_AT_ONCE;
        z->next_out = (Bytef *)plain->bytes + plain->n;
        z->avail_out = (uInt)room;
        result = inflate(z, Z_SYNC_FLUSH);
        plain->n += room - z->avail_out;
        if (plain->n > plain->most)
            return EFBIG;
        if (result == Z_STREAM_END) /* a last block, which the standard allows: what follows may refer to it */
            result = inflateResetKeep(z); /* in constant time: a message can have as many as bytes */
        if (result != Z_OK && result != Z_BUF_ERROR)
            return result == Z_MEM_ERROR ? ENOMEM : EBADMSG;
        if (!z->avail_in && !n && z->avail_out)
            return 0;
        aco__io_spend("aco_websocket_receive", location);
    }
}

int aco__http_inflate(aco_websocket_t *socket, const char *location)
{
    aco__http_deflating_t *d = &socket->deflating;
    plain_t plain = {NULL, 0, 0, (uint64_t)socket->options.max_message};
    int error;
    if (!d->receiver && !(d->receiver = new_coder(MAX_WBITS, 0)))
        return ENOMEM;
    error = inflate_bytes(&d->receiver->z, &plain, socket->bytes, socket->n, location);
    if (!error)
        error = inflate_bytes(&d->receiver->z, &plain, deflate_tail, DEFLATE_TAIL, location);
    if (!error && !(d->receiver->z.data_type & BEHIND_A_BLOCK)) /* the message ends within one */
        error = EBADMSG;
    if (socket->options.compresses != ACO_WEBSOCKET_KEEP_WINDOWS)
        end_receiver(d);
    else if (d->receives_anew)
        (void)inflateReset(&d->receiver->z);
    if (socket->bytes)
        aco__service_free(socket->bytes, socket->room);
    socket->bytes = plain.bytes;
    socket->n = plain.n;
    socket->room = plain.room;
    return error;
}

#else

const char *aco__http_deflate_offer(const aco_websocket_options_t *options)
{
    (void)options;
    return "";
}

void aco__http_deflate_choose(aco_websocket_t *socket, aco__http_list_t offers, char answer[WS_EXTENSION])
{
    (void)socket;
    (void)offers;
    *answer = 0;
}

int aco__http_deflate_agree(aco_websocket_t *socket, aco__http_list_t answer)
{
    size_t n;
    (void)socket;
    return aco__http_next(&answer, &n) ? -1 : 0; /* it was not offered */
}

void aco__http_deflate_end(aco_websocket_t *socket)
{
    (void)socket;
}

int aco__http_is_deflated(const aco_websocket_t *socket, size_t n)
{
    (void)socket;
    (void)n;
    return 0;
}

char *aco__http_deflate(aco_websocket_t *socket, const void *p, size_t *n, size_t *sz, const char *location)
{
    (void)socket, (void)p, (void)n, (void)sz, (void)location;
    return NULL;
}

void aco__http_deflate_anew(aco_websocket_t *socket)
{
    (void)socket;
}

int aco__http_inflate(aco_websocket_t *socket, const char *location)
{
    (void)socket;
    (void)location;
    return EBADMSG;
}

#endif
