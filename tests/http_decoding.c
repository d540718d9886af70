/* HTTP clients that decode bodies (include/aco/http.h): gzip, deflate and br, whole, cut, wrong, in any pieces, and
 * bombs. */
#define _GNU_SOURCE
#include "http_tests.h"

#ifdef HTTP_WITH_ZLIB
#include <zlib.h>
#endif

static char coded[1 << 16];
static size_t coded_n;
static const char *coding;
static int in_pieces;

/* The coded bytes, or a text for those who do not ask for codings. */
static void gives_coded(aco_http_request_t *request, void *arg)
{
    const char *accepted = aco_http_request_header(request, "Accept-Encoding");
    (void)arg;
    if (!accepted || strcmp(accepted, "identity") == 0) {
        CHECK_EQ(aco_http_reply(request, 200, NULL, "plain", 5), 0);
        return;
    }
    CHECK_EQ(aco_http_reply_header(request, "Content-Encoding", coding), 0);
    if (!in_pieces) {
        CHECK_EQ(aco_http_reply(request, 200, NULL, coded, coded_n), 0);
        return;
    }
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, -1), 0);
    for (size_t i = 0; i < coded_n; i++) {
        CHECK_EQ(aco_http_reply_write(request, coded + i, 1), 0);
        if (i % 3 == 0)
            CHECK_EQ(aco_http_reply_flush(request), 0);
    }
}

/* Gets the body in parts of this size. 0, or the errno; the body is in `got`. */
static int get(aco_http_client_t *client, const stage_t *stage, const aco_http_header_t *header, size_t part)
{
    char url[64];
    aco_http_call_t call = {.url = url, .headers = header, .header_count = header ? 1 : 0};
    aco_http_response_t *response;
    ssize_t n = 1;
    int error = 0;
    snprintf(url, sizeof url, "http://127.0.0.1:%s/", stage->port);
    response = aco_http_call(client, &call);
    CHECK(response != NULL);
    for (got_n = 0; n > 0; got_n += n > 0 ? (size_t)n : 0) {
        n = aco_http_response_read(response, got_n < sizeof got - part ? got + got_n : got, part);
        error = n < 0 ? errno : 0;
    }
    if (got_n < sizeof got)
        got[got_n] = 0;
    if (error) {
        CHECK(aco_http_response_read(response, got, 0) == 0);
        CHECK(aco_http_response_read(response, got, part) == -1 && errno == error); /* it stays so */
    } else
        CHECK(aco_http_response_read(response, got + got_n, 1) == 0);
    CHECK(header ? !response->is_decoded : response->is_decoded && response->length == -1);
    aco_http_response_end(response);
    return error;
}

static void set_coded(const char *name, const void *p, size_t n)
{
    CHECK(n <= sizeof coded);
    coding = name;
    memcpy(coded, p, n);
    coded_n = n;
}

#if defined HTTP_WITH_ZLIB || defined HTTP_WITH_BROTLI
/* Whole, byte by byte, cut everywhere, with something behind it, and with every bit wrong. */
static void check_coded(aco_http_client_t *client, const stage_t *stage, const char *text)
{
    const size_t n = coded_n;
    for (in_pieces = 0; in_pieces < 2; in_pieces++)
        for (size_t part = 1; part <= 1000; part *= 10) {
            CHECK_EQ(get(client, stage, NULL, part), 0);
            CHECK_TEXT(coding, got, text);
        }
    in_pieces = 0;
    for (coded_n = 1; coded_n < n; coded_n++)
        CHECK_EQ(get(client, stage, NULL, 1000), EBADMSG);
    coded[coded_n = n] = 'x';
    coded_n++;
    CHECK_EQ(get(client, stage, NULL, 1000), EBADMSG);
    coded_n = n;
    for (size_t bit = 0; bit < 8 * n; bit++) {
        int error;
        coded[bit / 8] = (char)(coded[bit / 8] ^ 1 << bit % 8);
        error = get(client, stage, NULL, 1000);
        CHECK(error == 0 || error == EBADMSG);
        coded[bit / 8] = (char)(coded[bit / 8] ^ 1 << bit % 8);
    }
    CHECK_EQ(get(client, stage, NULL, 1000), 0);
    CHECK_TEXT(coding, got, text);
}
#endif

#ifdef HTTP_WITH_ZLIB
/* 31: gzip; 15: deflate; -15: deflate without a header. */
static void set_deflated(const char *name, const char *text, size_t n, int window)
{
    z_stream z = {0};
    CHECK_EQ(deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)coded;
    z.avail_out = sizeof coded;
    CHECK_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    coding = name;
    coded_n = sizeof coded - z.avail_out;
    deflateEnd(&z);
}

static void *decodes_by_zlib(void *arg)
{
    static const aco_http_route_t routes[] = {{"GET", "/", gives_coded, NULL}, {NULL, NULL, NULL, NULL}};
    static const char text[] = "some text, some more text, and some more of the same text";
    const aco_http_client_options_t options = {.decodes = 1, .max_decoded = 1 << 20};
    aco_http_client_t *client = aco_http_client_new(&options);
    static char zeros[8 << 20], twice[2000];
    stage_t stage = {0};
    (void)arg;
    start(&stage, routes);
    set_deflated("gzip", text, strlen(text), 31);
    check_coded(client, &stage, text);
    memcpy(coded + coded_n, coded, coded_n); /* several streams are one body */
    coded_n *= 2;
    CHECK_EQ(get(client, &stage, NULL, 1000), 0);
    snprintf(twice, sizeof twice, "%s%s", text, text);
    CHECK_TEXT("twice", got, twice);
    set_deflated("X-GZIP", "", 0, 31);
    CHECK_EQ(get(client, &stage, NULL, 1000), 0);
    CHECK_EQ(got_n, 0);
    set_deflated("deflate", text, strlen(text), 15);
    check_coded(client, &stage, text);
    set_deflated("deflate", text, strlen(text), -15);
    check_coded(client, &stage, text);
    /* A bomb: a thousandfold. The connection is used again all the same. */
    set_deflated("gzip", zeros, sizeof zeros, 31);
    CHECK_EQ(get(client, &stage, NULL, 10000), EFBIG);
    CHECK(got_n <= 1 << 20);
    set_deflated("gzip", zeros, 1 << 20, 31);
    CHECK_EQ(get(client, &stage, NULL, 10000), 0);
    CHECK_EQ(got_n, 1 << 20);
    aco_http_client_destroy(client);
    stop(&stage);
    return NULL;
}
#endif

#ifdef HTTP_WITH_BROTLI
static void *decodes_by_brotli(void *arg)
{
    static const aco_http_route_t routes[] = {{"GET", "/", gives_coded, NULL}, {NULL, NULL, NULL, NULL}};
    static const char br[] =
        "\x1b\x61\x01\x18\xa4\x41\x58\xc8\xca\xf4\x20\x92\x4c\x32\x98\x56\x70\x01\x43\x25\xb6\x8c\x26\x33\x84"
        "\xff\x01";
    const aco_http_client_options_t options = {.decodes = 1};
    aco_http_client_t *client = aco_http_client_new(&options);
    char text[512] = "decoded text, ";
    stage_t stage = {0};
    (void)arg;
    for (int i = 0; i < 20; i++)
        strcat(text, "again and again, ");
    start(&stage, routes);
    set_coded("br", br, sizeof br - 1);
    check_coded(client, &stage, text);
    aco_http_client_destroy(client);
    stop(&stage);
    return NULL;
}
#endif

/* What is not decoded. */
static void *leaves_others(void *arg)
{
    static const aco_http_route_t routes[] = {{"GET", "/", gives_coded, NULL}, {NULL, NULL, NULL, NULL}};
    static const aco_http_header_t own = {"accept-encoding", "gzip"}, range = {"Range", "bytes=0-"};
    const aco_http_client_options_t options = {.decodes = 1};
    aco_http_client_options_t wrong = {.max_decoded = -1};
    aco_http_client_t *client = aco_http_client_new(&options), *plain = aco_http_client_new(NULL);
    stage_t stage = {0};
    (void)arg;
    start(&stage, routes);
    set_coded("gzip", "raw", 3);
    CHECK_EQ(get(client, &stage, &own, 1000), 0);
    CHECK_TEXT("the call's own", got, "raw");
    CHECK_EQ(get(client, &stage, &range, 1000), 0);
    CHECK_TEXT("a range", got, "plain");
    CHECK_EQ(get(plain, &stage, &range, 1000), 0);
    CHECK_TEXT("a client that does not decode", got, "plain");
    CHECK(!aco_http_client_new(&wrong) && errno == EINVAL);
    aco_http_client_destroy(plain);
    aco_http_client_destroy(client);
    stop(&stage);
    return NULL;
}

int main(void)
{
    static const aco_function_t tests[] = {
#ifdef HTTP_WITH_ZLIB
        decodes_by_zlib,
#endif
#ifdef HTTP_WITH_BROTLI
        decodes_by_brotli,
#endif
        leaves_others,
    };
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_decoding");
}
