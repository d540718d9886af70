/* The client of HTTP/2, by prior knowledge, with the library's own server. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "http_tests.h"

#include <aco/cookie_jar.h>

#include <signal.h>

static stage_t stage;
static int gate, begun;

static void hello(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(request->major, 2);
    (void)aco_http_reply(request, 200, "text/plain", "hello\n", 6);
}

/* Sends back what comes, as it comes; then what the trailer was. */
static void echo(aco_http_request_t *request, void *arg)
{
    char part[5000];
    ssize_t n;
    const char *trailer;
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(request, 200, "text/plain", -1), 0);
    while ((n = aco_http_request_read(request, part, sizeof part)) > 0)
        if (aco_http_reply_write(request, part, (size_t)n) != 0 || aco_http_reply_flush(request) != 0)
            return;
    trailer = aco_http_request_trailer(request, "x-from");
    CHECK_EQ(aco_http_reply_trailer(request, "x-to", trailer ? trailer : "none"), 0);
}

static void waits(aco_http_request_t *request, void *arg)
{
    (void)arg;
    begun++;
    while (!gate && aco_sleep(ACO_MILLISECOND) == 0)
        ;
    hello(request, NULL);
}

/* Gives a cookie, and leads elsewhere. */
static void leads(aco_http_request_t *request, void *arg)
{
    CHECK_EQ(aco_http_reply_header(request, "Location", arg), 0);
    CHECK_EQ(aco_http_reply_header(request, "Set-Cookie", "a=b"), 0);
    (void)aco_http_reply(request, 302, "text/plain", "there", 5);
}

/* What cookies have come, and how the body is coded. */
static void tells_cookie(aco_http_request_t *request, void *arg)
{
    /* "hello" by gzip */
    static const unsigned char coded[] = {0x1f, 0x8b, 8,    0,    0,    0,    0,    0,    0, 3, 0xcb, 0x48, 0xcd,
                                          0xc9, 0xc9, 0x07, 0x00, 0x86, 0xa6, 0x10, 0x36, 5, 0, 0,    0};
    const char *cookie = aco_http_request_header(request, "Cookie");
    const char *accepted = aco_http_request_header(request, "Accept-Encoding");
    (void)arg;
    CHECK_TEXT("the cookie", cookie ? cookie : "", "a=b");
    if (!accepted || !strstr(accepted, "gzip")) {
        (void)aco_http_reply(request, 200, NULL, "hello", 5);
        return;
    }
    CHECK_EQ(aco_http_reply_header(request, "Content-Encoding", "gzip"), 0);
    (void)aco_http_reply(request, 200, NULL, coded, sizeof coded);
}

static const aco_http_route_t routes[] = {
    {"GET", "/", hello, NULL},          {"POST", "/echo", echo, NULL},         {"GET", "/waits", waits, NULL},
    {"GET", "/leads", leads, "/tells"}, {"GET", "/tells", tells_cookie, NULL}, {NULL, NULL, NULL, NULL}};

static aco_http_client_t *new_client(void)
{
    aco_http_client_options_t options = {0};
    aco_http_client_t *client;
    options.prior_knowledge = 1;
    client = aco_http_client_new(&options);
    CHECK(client != NULL);
    return client;
}

static const char *url_of(const char *path)
{
    static char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%s%s", stage.port, path);
    return url;
}

static void check_hello(aco_http_client_t *client, const char *path)
{
    char text[16];
    aco_http_response_t *r = aco_http_get(client, url_of(path));
    CHECK(r != NULL);
    CHECK_EQ(r->status, 200);
    CHECK_EQ(r->major, 2);
    CHECK_EQ(r->length, 6);
    CHECK_EQ(aco_http_response_read(r, text, sizeof text), 6);
    CHECK_EQ(aco_http_response_read(r, text, sizeof text), 0);
    aco_http_response_end(r);
}

static aco_http_client_t *shared;
static int done;

static void *asks(void *arg)
{
    check_hello(shared, "/waits");
    done++;
    return arg;
}

static void test_many(void)
{
    enum { TASKS = 20 };
    aco_t *tasks[TASKS];
    shared = new_client();
    gate = begun = done = 0;
    for (int i = 0; i < TASKS; i++)
        CHECK((tasks[i] = aco_spawn(asks, NULL, NULL)) != NULL);
    while (begun < 4) /* the server takes no more at once */
        aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(begun, 4);
    gate = 1;
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    CHECK_EQ(done, TASKS);
    aco_http_client_destroy(shared);
}

static void test_sequence(void)
{
    aco_http_client_t *client = new_client();
    for (int i = 0; i < 50; i++)
        check_hello(client, "/");
    aco_http_client_destroy(client);
}

static void test_bodies(void)
{
    enum { SIZE = 60000 };
    static char bytes[SIZE];
    aco_http_client_t *client = new_client();
    const aco_http_header_t trailer = {"x-from", "me"};
    aco_http_call_t call = {0};
    aco_http_response_t *r;
    char part[7000];
    size_t all = 0;
    memset(bytes, 'x', sizeof bytes);
    call.method = "POST";
    call.url = url_of("/echo");
    r = aco_http_call_begin(client, &call);
    CHECK(r != NULL);
    for (int i = 0; i < 3; i++) { /* in turn */
        CHECK_EQ(aco_http_call_write(r, "abc", 3), 0);
        CHECK_EQ(aco_http_response_await(r), 0);
        CHECK_EQ(r->status, 200);
        CHECK_EQ(aco_http_response_read(r, part, sizeof part), 3);
    }
    CHECK_EQ(aco_http_call_write(r, bytes, SIZE), 0);
    CHECK_EQ(aco_http_call_end(r, &trailer, 1), 0);
    for (ssize_t n; (n = aco_http_response_read(r, part, sizeof part)) > 0; all += (size_t)n)
        CHECK(part[n - 1] == 'x');
    CHECK_EQ(all, SIZE);
    CHECK_TEXT("the trailer", aco_http_response_trailer(r, "X-To"), "me");
    aco_http_response_end(r);
    aco_http_client_destroy(client);
}

static void test_cancel(void)
{
    aco_http_client_t *client = new_client();
    aco_scope_t scope;
    gate = begun = 0;
    CHECK_EQ(aco_scope_begin(&scope, aco_after(20 * ACO_MILLISECOND)), 0);
    CHECK(aco_http_get(client, url_of("/waits")) == NULL);
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK_EQ(aco_scope_end(&scope), 0);
    gate = 1;
    check_hello(client, "/");
    aco_http_client_destroy(client);
}

/* Redirects, cookies and coded bodies are as in HTTP/1; tasks that share a connection share its place. */
static void test_services(void)
{
    aco_http_client_options_t options = {0};
    aco_cookie_jar_t *jar = aco_cookie_jar_new(NULL);
    aco_http_response_t *r;
    char text[16];
    int status;
    options.prior_knowledge = options.decodes = options.max_per_host = options.max_connections = 1;
    options.jar = jar;
    shared = aco_http_client_new(&options);
    CHECK(jar != NULL && shared != NULL);
    for (int i = 0; i < 2; i++) {
        r = aco_http_get(shared, url_of("/leads"));
        CHECK(r != NULL);
        CHECK_EQ(r->status, 200);
        CHECK_EQ(r->redirects, 1);
        CHECK(aco_http_response_redirect(r, 0, &status) != NULL);
        CHECK_EQ(status, 302);
        CHECK_EQ(aco_http_response_read(r, text, sizeof text), 5);
        CHECK(memcmp(text, "hello", 5) == 0);
        CHECK_EQ(aco_http_response_read(r, text, sizeof text), 0);
        check_hello(shared, "/"); /* beside it, on the same connection */
        aco_http_response_end(r);
    }
    aco_http_client_destroy(shared);
    aco_cookie_jar_destroy(jar);
}

static void *answers_calls(void *arg)
{
    stage.server.max_streams = 4;
    start(&stage, routes);
    test_sequence();
    test_many();
    test_bodies();
    test_cancel();
    test_services();
    stop(&stage);
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {answers_calls};
    signal(SIGPIPE, SIG_IGN);
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http2_client_calls");
}
