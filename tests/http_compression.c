/* Compressed replies of HTTP servers (aco_http_compress() in include/aco/http.h): which, their headers, their bodies.
 * With an argument it serves, for http_curl.py. */
#define _GNU_SOURCE
#include <aco/sync.h>
#include "http_tests.h"

#if defined HTTP_WITH_ZLIB
#define ONE_CODING "gzip"
#elif defined HTTP_WITH_BROTLI
#define ONE_CODING "br"
#else
#define ONE_CODING ""
#endif

enum { TEXT_N = 100000 };
static char text[TEXT_N + 1];

static void fill_text(void)
{
    for (size_t n = 0; n < TEXT_N; n += strlen(text + n))
        snprintf(text + n, sizeof text - n, "line %zu of some text, ", n * n % 1000);
}

/* ---- Handlers ---- */

typedef struct given {
    int status;
    const char *type;
    aco_http_header_t headers[2];
    size_t n;
} given_t;

static void gives(aco_http_request_t *request, void *arg)
{
    const given_t *given = arg;
    for (size_t i = 0; i < 2 && given->headers[i].name; i++)
        CHECK_EQ(aco_http_reply_header(request, given->headers[i].name, given->headers[i].value), 0);
    CHECK_EQ(aco_http_reply(request, given->status ? given->status : 200, given->type, text, given->n), 0);
}

static void gives_parts(aco_http_request_t *request, void *arg)
{
    const size_t part = (size_t)strtoul(aco_http_request_query(request, "part"), NULL, 10);
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, "text/plain", aco_http_request_query(request, "long") ? TEXT_N : -1),
             0);
    for (size_t at = 0; at < TEXT_N; at += part) {
        CHECK_EQ(aco_http_reply_write(request, text + at, part < TEXT_N - at ? part : TEXT_N - at), 0);
        if (at % 7 == 0)
            CHECK_EQ(aco_http_reply_flush(request), 0);
    }
}

static aco_event_t has_read; /* the client, the first part */

static void waits_for_reader(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, "text/plain", -1), 0);
    CHECK_EQ(aco_http_reply_write(request, "first", 5), 0);
    CHECK_EQ(aco_http_reply_flush(request), 0);
    CHECK_EQ(aco_http_reply_flush(request), 0);
    CHECK_EQ(aco_event_wait(&has_read), 0);
    CHECK_EQ(aco_http_reply_write(request, "second", 6), 0);
}

/* With a length that it keeps, or does not keep. */
static void gives_other_length(aco_http_request_t *request, void *arg)
{
    const size_t n = (size_t)(uintptr_t)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, "text/plain", 5000), 0);
    if (n > 5000)
        FAILS_WITH(aco_http_reply_write(request, text, n), EMSGSIZE);
    CHECK_EQ(aco_http_reply_write(request, text, n < 5000 ? n : 5000), 0);
}

static void leaves_task(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, "text/plain", -1), 0);
    CHECK_EQ(aco_http_reply_write(request, text, TEXT_N), 0);
    aco_exit();
}

static char folder[32] = "/tmp/http_compression.XXXXXX";

static void put_file(void)
{
    char path[64];
    FILE *file;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/text.txt", folder);
    file = fopen(path, "w");
    CHECK(file && fwrite(text, 1, TEXT_N, file) == TEXT_N && fclose(file) == 0);
}

static void drop_file(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/text.txt", folder);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

static void gives_file(aco_http_request_t *request, void *arg)
{
    CHECK_EQ(aco_http_reply_file(request, arg, aco_http_request_param(request, "*")), 0);
}

/* ---- Clients ---- */

static int reply_has(const char *line)
{
    return strcasestr(got, line) && strcasestr(got, line) < strstr(got, "\r\n\r\n");
}

/* Asks with this coding and header. */
static void ask_for(const stage_t *stage, const char *method, const char *path, const char *accepted,
                    const char *header)
{
    char request[512];
    snprintf(request, sizeof request, "%s %s HTTP/1.1\r\n" HOST "Accept-Encoding: %s\r\n%s%sConnection: close\r\n\r\n",
             method, path, accepted, header, *header ? "\r\n" : "");
    ask(stage, request);
}

/* The coding of the reply; "": none. */
static const char *coding_of_reply(void)
{
    static char coding[16];
    const char *line = strcasestr(got, "\r\nContent-Encoding: ");
    coding[0] = 0;
    if (line)
        sscanf(line + 20, "%15[a-z]", coding);
    return coding;
}

/* Gets a URL by a client that decodes; the body is in `got`. 0, or the errno. */
static int get(aco_http_client_t *client, const stage_t *stage, const char *path, int is_coded)
{
    char url[100];
    aco_http_response_t *response;
    ssize_t n = 1;
    int error = 0;
    snprintf(url, sizeof url, "http://127.0.0.1:%s%s", stage->port, path);
    response = aco_http_get(client, url);
    CHECK(response != NULL && response->is_decoded == is_coded);
    for (got_n = 0; n > 0; got_n += n > 0 ? (size_t)n : 0) {
        n = aco_http_response_read(response, got + got_n, sizeof got - 1 - got_n);
        error = n < 0 ? errno : 0;
        if (got_n + (size_t)(n > 0 ? n : 0) >= 5)
            aco_event_set(&has_read);
    }
    got[got_n] = 0;
    aco_http_response_end(response);
    return error;
}

/* ---- Tests ---- */

static given_t page = {0, "text/html; charset=utf-8", {{"ETag", "\"a\""}}, TEXT_N},
               small = {0, "text/html", {{NULL, NULL}}, 1023}, image = {0, "image/png", {{NULL, NULL}}, TEXT_N},
               coded = {0, "text/plain", {{"Content-Encoding", "x"}}, 3000},
               fixed = {0,
                        "text/plain",
                        {{"Cache-Control", "public"}, {"Cache-Control", "max-age=9, No-Transform"}},
                        3000},
               digest = {0, "text/plain", {{"Repr-Digest", "x=:a:"}}, 3000},
               cookie = {0, "Application/JSON", {{"Set-Cookie", "a=1"}}, 3000},
               part = {206, "text/plain", {{"Content-Range", "bytes 0-2999/9000"}}, 3000},
               unchanged = {304, NULL, {{"ETag", "\"a\""}}, 0}, error = {404, "text/plain", {{NULL, NULL}}, 1024},
               weak = {0, "text/plain", {{"Accept-Ranges", "bytes"}, {"ETag", "W/\"a\""}}, 3000};
static const aco_http_route_t routes[] = {{"GET", "/", gives, &page},
                                          {"GET", "/small", gives, &small},
                                          {"GET", "/image", gives, &image},
                                          {"GET", "/coded", gives, &coded},
                                          {"GET", "/fixed", gives, &fixed},
                                          {"GET", "/digest", gives, &digest},
                                          {"GET", "/cookie", gives, &cookie},
                                          {"GET", "/part", gives, &part},
                                          {"GET", "/unchanged", gives, &unchanged},
                                          {"GET", "/error", gives, &error},
                                          {"GET", "/weak", gives, &weak},
                                          {"GET", "/parts", gives_parts, NULL},
                                          {"GET", "/waits", waits_for_reader, NULL},
                                          {"GET", "/short", gives_other_length, (void *)4999},
                                          {"GET", "/right", gives_other_length, (void *)5000},
                                          {"GET", "/long", gives_other_length, (void *)5001},
                                          {"GET", "/leaves", leaves_task, NULL},
                                          {"GET", "/files/*", gives_file, folder},
                                          {NULL, NULL, NULL, NULL}};

static aco_http_compression_t compression = {.with_br = 1};
static const aco_http_middleware_t compresses[] = {{aco_http_compress, &compression}, {NULL, NULL}};

/* Which replies are compressed, and how. */
static void *chooses(void *arg)
{
    static const struct {
        const char *method, *path, *accepted, *header, *coding, *line;
    } cases[] = {
        {"GET", "/", ONE_CODING, "", ONE_CODING, "\r\nETag: W/\"a\"\r\n"},
        {"GET", "/", ONE_CODING, "", ONE_CODING, "\r\nTransfer-Encoding: chunked\r\n"},
        {"HEAD", "/", ONE_CODING, "", ONE_CODING, "\r\nVary: Accept-Encoding\r\n"},
        {"GET", "/", "identity", "", "", "\r\nVary: Accept-Encoding\r\n"},
        {"GET", "/", "identity", "", "", "\r\nETag: \"a\"\r\n"},
        {"GET", "/", "x, *;q=0", "", "", "\r\nContent-Length: 100000\r\n"},
        {"GET", "/", ONE_CODING ";q=0.000", "", "", NULL},
        {"GET", "/", ONE_CODING " ; q=0.001", "", ONE_CODING, NULL},
#if defined HTTP_WITH_ZLIB && defined HTTP_WITH_BROTLI
        {"GET", "/", "gzip, br", "", "br", NULL},
        {"GET", "/", "gzip;q=0.9, br;q=0.8", "", "gzip", NULL},
        {"GET", "/", "br;q=0, *", "", "gzip", NULL},
        {"GET", "/", "*", "", "br", NULL},
#endif
        {"GET", "/small", ONE_CODING, "", "", "\r\nContent-Length: 1023\r\n"},
        {"GET", "/image", ONE_CODING, "", "", NULL},
        {"GET", "/coded", ONE_CODING, "", "x", "\r\nContent-Length: 3000\r\n"},
        {"GET", "/fixed", ONE_CODING, "", "", NULL},
        {"GET", "/digest", ONE_CODING, "", "", NULL},
        {"GET", "/cookie", ONE_CODING, "", "", NULL},
        {"GET", "/part", ONE_CODING, "", "", "\r\nContent-Length: 3000\r\n"},
        {"GET", "/unchanged", ONE_CODING, "", "", "\r\nETag: W/\"a\"\r\n"},
        {"GET", "/unchanged", "identity", "", "", "\r\nETag: \"a\"\r\n"},
        {"GET", "/error", ONE_CODING, "", ONE_CODING, NULL},
        {"GET", "/none", ONE_CODING, "", "", NULL},
        {"GET", "/weak", ONE_CODING, "", ONE_CODING, "\r\nETag: W/\"a\"\r\n"},
        {"GET", "/", ONE_CODING, "Cookie: a=1", "", NULL},
        {"GET", "/", ONE_CODING, "Authorization: Basic YTpi", "", "\r\nContent-Length: 100000\r\n"},
        {"GET", "/files/text.txt", ONE_CODING, "Range: bytes=0-4999", "", "\r\nAccept-Ranges: bytes\r\n"},
        {"GET", "/files/text.txt", ONE_CODING, "", ONE_CODING, "\r\nETag: W/\""},
    };
    stage_t stage = {.server.middleware = compresses};
    start(&stage, routes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask_for(&stage, cases[i].method, cases[i].path, cases[i].accepted, cases[i].header);
        CHECK_TEXT(cases[i].path, coding_of_reply(), cases[i].coding);
        CHECK(!*ONE_CODING || !cases[i].line || reply_has(cases[i].line));
        CHECK(!*cases[i].coding || strcmp(cases[i].coding, "x") == 0 ||
              (!reply_has("\r\nContent-Length:") && !reply_has("\r\nAccept-Ranges:") && got_n < TEXT_N / 3));
    }
    compression.with_secrets = 1;
    compression.types = "image/*, application/json";
    compression.min_length = 1;
    ask_for(&stage, "GET", "/cookie", ONE_CODING, "Cookie: a=1");
    CHECK_TEXT("with_secrets", coding_of_reply(), ONE_CODING);
    ask_for(&stage, "GET", "/image", ONE_CODING, "");
    CHECK_TEXT("all images", coding_of_reply(), ONE_CODING);
    ask_for(&stage, "GET", "/", ONE_CODING, "");
    CHECK_TEXT("another type", coding_of_reply(), "");
    compression.with_secrets = 0;
    compression.types = NULL;
    compression.min_length = 0;
    stop(&stage);
    return arg;
}

/* What clients read, for every level and size of parts. */
static void *codes(void *arg)
{
    static const char *const paths[] = {"/", "/files/text.txt", "/parts?part=1001", "/parts?part=50000",
                                        "/parts?part=33&long=1"};
    const aco_http_client_options_t options = {.decodes = 1};
    const int is_coded = *ONE_CODING != 0;
    aco_http_client_t *client = aco_http_client_new(&options);
    stage_t stage = {.server.middleware = compresses};
    start(&stage, routes);
    for (compression.level = 0; compression.level <= 10; compression.level += 5)
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
            CHECK_EQ(get(client, &stage, paths[i], is_coded), 0);
            CHECK(got_n == TEXT_N && strcmp(got, text) == 0);
        }
    compression.level = 0;
    CHECK_EQ(get(client, &stage, "/right", is_coded), 0);
    CHECK_EQ(got_n, 5000);
    CHECK_EQ(get(client, &stage, "/long", is_coded), 0);
    CHECK_EQ(got_n, 5000);
    aco_event_reset(&has_read);
    CHECK_EQ(get(client, &stage, "/waits", is_coded), 0);
    CHECK_TEXT("a flush", got, "firstsecond");
    CHECK_EQ(get(client, &stage, "/short", is_coded), ECONNRESET);
    CHECK_EQ(get(client, &stage, "/leaves", is_coded), ECONNRESET);
    aco_http_client_destroy(client);
    stop(&stage);
    return arg;
}

static void *reads_all(void *arg)
{
    stage_t *stage = arg;
    const aco_http_client_options_t options = {.decodes = 1};
    aco_http_client_t *client = aco_http_client_new(&options);
    CHECK_EQ(get(client, stage, "/waits", *ONE_CODING != 0), 0);
    CHECK_TEXT("the first of two", got, "firstsecond");
    aco_http_client_destroy(client);
    return NULL;
}

/* Replies beyond max_at_once are sent as they are. */
static void *limits_encoders(void *arg)
{
    stage_t stage = {.server.middleware = compresses};
    aco_t *first;
    int fd;
    aco_event_reset(&has_read);
    compression.max_at_once = 1;
    start(&stage, routes);
    fd = dial(&stage);
    ask_for(&stage, "GET", "/", ONE_CODING, "");
    CHECK_TEXT("alone", coding_of_reply(), ONE_CODING);
    CHECK(aco_io_write_all(fd, "GET /waits HTTP/1.1\r\n" HOST "Accept-Encoding: " ONE_CODING "\r\n\r\n",
                           strlen("GET /waits HTTP/1.1\r\n" HOST "Accept-Encoding: " ONE_CODING "\r\n\r\n")) > 0);
    CHECK(aco_io_read(fd, got, 100) > 0); /* it has begun */
    ask_for(&stage, "GET", "/", ONE_CODING, "");
    CHECK_TEXT("beside another", coding_of_reply(), "");
    CHECK(got_n > TEXT_N);
    aco_event_set(&has_read);
    CHECK_EQ(aco_io_close(fd), 0);
    first = aco_spawn(reads_all, &stage, NULL);
    CHECK_EQ(aco_join(first, NULL), 0);
    compression.max_at_once = 0;
    stop(&stage);
    return arg;
}

int main(int argc, char **argv)
{
    static const aco_function_t tests[] = {chooses, codes, limits_encoders};
    fill_text();
    if (argc > 2) { /* beside nginx, which has no br */
        snprintf(folder, sizeof folder, "%s", argv[2]);
        compression.with_br = 0;
    }
    if (argc > 1)
        return serve_others(routes, compresses);
    put_file();
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    drop_file();
    return check_result("http_compression");
}
