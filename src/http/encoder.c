/* Codings of bodies that are sent: gzip by zlib, br by brotli, if the build has them. All memory is the request's: gzip
 * takes up to 268 KiB, br about 1 MiB; less if the body is known to be short. */
#include "http/encoder.h"
#include "base/invariants.h"
#include "http/coder_memory.h"

#include <errno.h>
#include <string.h>

#ifdef ACO_CONFIG_ZLIB
#include <zlib.h>
#endif
#ifdef ACO_CONFIG_BROTLI
#include <brotli/encode.h>
#endif

enum { ENCODE_AT_ONCE = 16384 }; /* bytes of input, so that other tasks run in between */

#ifdef ACO_CONFIG_BROTLI
static const char encoding_br[] = "br";
#endif
#ifdef ACO_CONFIG_ZLIB
static const char encoding_gzip[] = "gzip";
#endif
const char *const aco__http_encodings[] = {
#ifdef ACO_CONFIG_BROTLI
    encoding_br,
#endif
#ifdef ACO_CONFIG_ZLIB
    encoding_gzip,
#endif
    NULL};

#if defined ACO_CONFIG_ZLIB || defined ACO_CONFIG_BROTLI
/* The binary logarithm of the window for a body of this length. */
static int window_of(int64_t length, int least, int most)
{
    int bits = least;
    while (bits < most && (length < 0 || length > (int64_t)1 << bits))
        bits++;
    return bits;
}
#endif

/* ---- gzip ---- */

#ifdef ACO_CONFIG_ZLIB
static int gzip_begin(aco__http_encoder_t *e, int level, int64_t length)
{
    const int bits = window_of(length, 9, MAX_WBITS);
    z_stream *z = aco__http_coder_allocate(NULL, sizeof *z);
    if (!z)
        return -1;
    memset(z, 0, sizeof *z);
    z->zalloc = aco__http_coder_allocate_items;
    z->zfree = aco__http_coder_free;
    if (deflateInit2(z, level ? level : 5, Z_DEFLATED, 16 + bits, bits - 7, Z_DEFAULT_STRATEGY) == Z_OK)
        e->state = z;
    else
        aco__http_coder_free(NULL, z);
    return e->state ? 0 : -1;
}

static ptrdiff_t gzip_encode(aco__http_encoder_t *e, const char **p, size_t *n, int how)
{
    z_stream *z = e->state;
    const uInt given = *n < ENCODE_AT_ONCE ? (uInt)*n : ENCODE_AT_ONCE;
    int result;
    z->next_in = (Bytef *)(uintptr_t)*p;
    z->avail_in = given;
    z->next_out = (Bytef *)e->out;
    z->avail_out = sizeof e->out;
    result = deflate(z, how == HTTP_ENCODE_END ? Z_FINISH : how == HTTP_ENCODE_ALL ? Z_SYNC_FLUSH : Z_NO_FLUSH);
    *p += given - z->avail_in;
    *n -= given - z->avail_in;
    e->has_more = !z->avail_out && result != Z_STREAM_END;
    return result == Z_STREAM_ERROR ? -1 : (ptrdiff_t)(sizeof e->out - z->avail_out);
}
#endif

/* ---- br ---- */

#ifdef ACO_CONFIG_BROTLI
static int br_begin(aco__http_encoder_t *e, int level, int64_t length)
{
    BrotliEncoderState *br = BrotliEncoderCreateInstance(aco__http_coder_allocate, aco__http_coder_free, NULL);
    const uint32_t window = (uint32_t)window_of(length, BROTLI_MIN_WINDOW_BITS, 18);
    e->state = br;
    return br && BrotliEncoderSetParameter(br, BROTLI_PARAM_QUALITY, level ? (uint32_t)level : 4) &&
                   BrotliEncoderSetParameter(br, BROTLI_PARAM_LGWIN, window) &&
                   BrotliEncoderSetParameter(br, BROTLI_PARAM_LGBLOCK, BROTLI_MIN_INPUT_BLOCK_BITS)
               ? 0
               : -1;
}

static ptrdiff_t br_encode(aco__http_encoder_t *e, const char **p, size_t *n, int how)
{
    const uint8_t *in = (const uint8_t *)*p;
    uint8_t *out = (uint8_t *)e->out;
    const size_t given = *n < ENCODE_AT_ONCE ? *n : ENCODE_AT_ONCE;
    size_t left = given, room = sizeof e->out;
    const int result = BrotliEncoderCompressStream(e->state,
                                                   how == HTTP_ENCODE_END   ? BROTLI_OPERATION_FINISH
                                                   : how == HTTP_ENCODE_ALL ? BROTLI_OPERATION_FLUSH
                                                                            : BROTLI_OPERATION_PROCESS,
                                                   &left, &in, &room, &out, NULL);
    *p += given - left;
    *n -= given - left;
    e->has_more = (unsigned char)BrotliEncoderHasMoreOutput(e->state);
    return result ? (ptrdiff_t)(sizeof e->out - room) : -1;
}
#endif

/* ---- Encoders ---- */

aco__http_encoder_t *aco__http_encoder_new(aco__http_encoder_t *e, const char *coding, int level, int64_t length)
{
    int result = -1;
    e->left = length;
    e->coding = coding;
    e->has_more = 0;
    e->state = NULL;
#ifdef ACO_CONFIG_ZLIB
    if (coding == encoding_gzip)
        result = gzip_begin(e, level, length);
#endif
#ifdef ACO_CONFIG_BROTLI
    if (coding == encoding_br)
        result = br_begin(e, level, length);
#endif
    (void)level;
    if (result == 0)
        return e;
    aco__http_encoder_end(e);
    errno = ENOMEM;
    return NULL;
}

void aco__http_encoder_end(aco__http_encoder_t *e)
{
    void *state = e->state;
    e->state = NULL;
    if (!state)
        return;
#ifdef ACO_CONFIG_BROTLI
    if (e->coding == encoding_br) {
        BrotliEncoderDestroyInstance(state);
        return;
    }
#endif
#ifdef ACO_CONFIG_ZLIB
    (void)deflateEnd(state);
    aco__http_coder_free(NULL, state);
#endif
}

ptrdiff_t aco__http_encode(aco__http_encoder_t *e, const char **p, size_t *n, int how)
{
    ACO__ASSERT(how == HTTP_ENCODE || !*n); /* input first */
    errno = ENOMEM;
#ifdef ACO_CONFIG_BROTLI
    if (e->coding == encoding_br)
        return br_encode(e, p, n, how);
#endif
#ifdef ACO_CONFIG_ZLIB
    return gzip_encode(e, p, n, how);
#else
    (void)e, (void)p, (void)n, (void)how;
    return -1;
#endif
}
