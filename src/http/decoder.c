/* Codings of bodies: gzip and deflate by zlib, br by brotli, if the build has them. Memory is bounded by the windows of
 * the codings: 32 KiB, and 16 MiB for br. */
#include "http/decoder.h"
#include "base/invariants.h"
#include "http/coder_memory.h"
#include "http/text.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <string.h>

#ifdef ACO_CONFIG_ZLIB
#include <zlib.h>
#endif
#ifdef ACO_CONFIG_BROTLI
#include <brotli/decode.h>
#endif

enum { CODING_GZIP, CODING_DEFLATE, CODING_BR };

struct aco__http_decoder {
    int coding;
    unsigned char is_at_end; /* of a stream; gzip may have several */
    unsigned char has_all; /* there is no further input */
    unsigned char may_go_on; /* there may be output without further input */
    unsigned char has_begun; /* deflate: zlib knows which kind it is */
    size_t sz, at, end; /* of this record; of the input */
#ifdef ACO_CONFIG_ZLIB
    z_stream z;
#endif
#ifdef ACO_CONFIG_BROTLI
    BrotliDecoderState *br;
#endif
    char input[HTTP_CODED];
};

const char *aco__http_codings(void)
{
#if defined ACO_CONFIG_ZLIB && defined ACO_CONFIG_BROTLI
    return "gzip, deflate, br";
#elif defined ACO_CONFIG_ZLIB
    return "gzip, deflate";
#elif defined ACO_CONFIG_BROTLI
    return "br";
#else
    return "";
#endif
}

/* ---- zlib ---- */

#ifdef ACO_CONFIG_ZLIB
static int zlib_begin(aco__http_decoder_t *d)
{
    /* "deflate" has a header by the standard. Servers leave it out, and browsers look: raw streams do not begin so */
    const int is_raw = d->coding == CODING_DEFLATE && ((d->input[d->at] & 15) != 8 || (d->input[d->at] & 0x80));
    d->z.zalloc = aco__http_coder_allocate_items;
    d->z.zfree = aco__http_coder_free;
    d->has_begun = 1;
    return inflateInit2(&d->z, d->coding == CODING_GZIP ? 16 + MAX_WBITS : is_raw ? -MAX_WBITS : MAX_WBITS);
}

/* As aco__http_decoded(), but EBADMSG is told by the caller. */
static ssize_t zlib_decoded(aco__http_decoder_t *d, void *p, size_t n)
{
    int result = Z_OK;
    if (!d->has_begun)
        result = zlib_begin(d);
    else if (d->is_at_end)
        result = d->coding == CODING_GZIP ? inflateReset(&d->z) : Z_DATA_ERROR;
    d->is_at_end = 0;
    d->z.next_in = (Bytef *)d->input + d->at;
    d->z.avail_in = (uInt)(d->end - d->at);
    d->z.next_out = p;
    d->z.avail_out = n < 1 << 30 ? (uInt)n : 1 << 30;
    n = d->z.avail_out;
    if (result == Z_OK)
        result = inflate(&d->z, Z_NO_FLUSH);
    d->at = d->end - d->z.avail_in;
    d->is_at_end = result == Z_STREAM_END;
    d->may_go_on = !d->z.avail_out && !d->is_at_end;
    errno = result == Z_MEM_ERROR ? ENOMEM : EBADMSG;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR ? (ssize_t)(n - d->z.avail_out) : -1;
}
#endif

/* ---- brotli ---- */

#ifdef ACO_CONFIG_BROTLI
static ssize_t br_decoded(aco__http_decoder_t *d, void *p, size_t n)
{
    const uint8_t *in = (const uint8_t *)d->input + d->at;
    size_t in_n = d->end - d->at, out_n = n;
    uint8_t *out = p;
    BrotliDecoderResult result;
    errno = EBADMSG;
    if (d->is_at_end) /* something follows */
        return -1;
    result = BrotliDecoderDecompressStream(d->br, &in_n, &in, &out_n, &out, NULL);
    d->at = d->end - in_n;
    d->is_at_end = result == BROTLI_DECODER_RESULT_SUCCESS;
    d->may_go_on = result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    return result != BROTLI_DECODER_RESULT_ERROR ? (ssize_t)(n - out_n) : -1;
}
#endif

/* ---- Decoders ---- */

/* -1: it is not known. */
static int coding_of(const char *name)
{
#ifdef ACO_CONFIG_ZLIB
    if (aco__http_same(name, "gzip") || aco__http_same(name, "x-gzip"))
        return CODING_GZIP;
    if (aco__http_same(name, "deflate"))
        return CODING_DEFLATE;
#endif
#ifdef ACO_CONFIG_BROTLI
    if (aco__http_same(name, "br"))
        return CODING_BR;
#endif
    (void)name;
    return -1;
}

aco__http_decoder_t *aco__http_decoder_new(const char *coding)
{
    const int kind = coding_of(coding);
    size_t sz = sizeof(aco__http_decoder_t);
    aco__http_decoder_t *d = kind < 0 ? NULL : aco__service_allocate(&sz, "aco_http_call");
    if (!d) {
        errno = kind < 0 ? 0 : ENOMEM;
        return NULL;
    }
    memset(d, 0, sizeof *d - sizeof d->input);
    d->coding = kind;
    d->sz = sz;
#ifdef ACO_CONFIG_BROTLI
    if (kind == CODING_BR &&
        !(d->br = BrotliDecoderCreateInstance(aco__http_coder_allocate, aco__http_coder_free, NULL))) {
        aco__service_free(d, sz);
        errno = ENOMEM;
        return NULL;
    }
#endif
    return d;
}

void aco__http_decoder_free(aco__http_decoder_t *d)
{
    if (!d)
        return;
#ifdef ACO_CONFIG_ZLIB
    if (d->has_begun)
        (void)inflateEnd(&d->z);
#endif
#ifdef ACO_CONFIG_BROTLI
    if (d->br)
        BrotliDecoderDestroyInstance(d->br);
#endif
    aco__service_free(d, d->sz);
}

char *aco__http_decoder_room(aco__http_decoder_t *d)
{
    return d->has_all || d->at < d->end || d->may_go_on ? NULL : d->input;
}

void aco__http_decoder_filled(aco__http_decoder_t *d, size_t n)
{
    ACO__ASSERT(n <= HTTP_CODED);
    d->at = 0;
    d->end = n;
    d->has_all = !n;
}

int aco__http_decoder_is_done(const aco__http_decoder_t *d)
{
    return d->has_all && d->at == d->end && !d->may_go_on;
}

ssize_t aco__http_decoded(aco__http_decoder_t *d, void *p, size_t n)
{
    if (d->at == d->end && !d->may_go_on) {
        errno = EBADMSG; /* cut, even if nothing has come: an empty body is not decoded */
        return !d->has_all || d->is_at_end ? 0 : -1;
    }
#ifdef ACO_CONFIG_BROTLI
    if (d->coding == CODING_BR)
        return br_decoded(d, p, n);
#endif
#ifdef ACO_CONFIG_ZLIB
    return zlib_decoded(d, p, n);
#else
    (void)p, (void)n;
    return -1;
#endif
}
