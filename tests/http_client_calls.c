/* HTTP clients (include/aco/http.h), around their requests: users in URLs, where redirects led, proxies with a
 * password. */
#define _GNU_SOURCE
#include "http_tests.h"

static void redirects_to(aco_http_request_t *request, void *status)
{
    CHECK_EQ(aco_http_reply_header(request, "Location", aco_http_request_query(request, "to")), 0);
    CHECK_EQ(aco_http_reply(request, (int)(intptr_t)status, NULL, "moved", 5), 0);
}

static void tells_authorization(aco_http_request_t *request, void *arg)
{
    const char *value = aco_http_request_header(request, "Authorization");
    const char *proxy = aco_http_request_header(request, "Proxy-Authorization");
    char text[512];
    (void)arg;
    snprintf(text, sizeof text, "%s|%s", value ? value : "-", proxy ? proxy : "-");
    CHECK_EQ(aco_http_reply(request, 200, NULL, text, strlen(text)), 0);
}

static const aco_http_route_t routes[] = {{"GET", "/hello", tells, "hello"},
                                          {"GET", "/authorization", tells_authorization, NULL},
                                          {"GET", "/302", redirects_to, (void *)302},
                                          {"GET", "/307", redirects_to, (void *)307},
                                          {NULL, NULL, NULL, NULL}};

/* The body is in `got`. The response must be ended. */
static aco_http_response_t *get(aco_http_client_t *client, const char *url)
{
    aco_http_response_t *response = aco_http_get(client, url);
    ssize_t n = 1;
    for (got_n = 0; response && n > 0 && got_n < sizeof got - 1; got_n += n > 0 ? (size_t)n : 0)
        n = aco_http_response_read(response, got + got_n, sizeof got - 1 - got_n);
    got[got_n] = 0;
    CHECK(!response || n == 0);
    return response;
}

static const char *url_of(const stage_t *stage, const char *user, const char *path)
{
    static char urls[4][8192];
    static int next;
    char *url = urls[next++ % 4];
    snprintf(url, sizeof urls[0], "http://%s127.0.0.1:%s%s", user, stage->port, path);
    return url;
}

static void *knows_its_urls(void *arg)
{
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_http_response_t *response;
    stage_t stage = {0};
    int status = 0;
    (void)arg;
    start(&stage, routes);
    response = get(client, url_of(&stage, "", "/hello#part"));
    CHECK(response && response->redirects == 0);
    CHECK_TEXT("the URL", response->url, url_of(&stage, "", "/hello"));
    CHECK(aco_http_response_redirect(response, 0, &status) == response->url && status == 200);
    CHECK(!aco_http_response_redirect(response, 1, NULL) && !aco_http_response_redirect(response, -1, NULL));
    aco_http_response_end(response);
    response = get(client, url_of(&stage, "u:p@", "/302?to=307%3fto=./x/../hello%3fa b\xc3\xa4%23c"));
    CHECK(!response && errno == EINVAL);
    response = get(client, url_of(&stage, "u:p@", "/302?to=307%3fto%3d./x/../hello%253fa%2520b%25c3%25a4%2523c"));
    CHECK(response && response->status == 200 && response->redirects == 2);
    if (response) {
        CHECK_TEXT("behind redirects", response->url, url_of(&stage, "", "/hello?a%20b%C3%A4"));
        CHECK_TEXT("the first", aco_http_response_redirect(response, 0, &status),
                   url_of(&stage, "", "/302?to=307%3fto%3d./x/../hello%253fa%2520b%25c3%25a4%2523c"));
        CHECK_EQ(status, 302);
        CHECK_TEXT("the second", aco_http_response_redirect(response, 1, &status),
                   url_of(&stage, "", "/307?to=./x/../hello%3fa%20b%c3%a4%23c"));
        CHECK_EQ(status, 307);
        CHECK(aco_http_response_redirect(response, 2, &status) == response->url && status == 200);
    }
    aco_http_response_end(response);
    CHECK(!get(client, url_of(&stage, "", "/302?to=http://u@127.0.0.1/")) && errno == EINVAL);
    aco_http_client_destroy(client);
    stop(&stage);
    return NULL;
}

static void check_authorization(aco_http_client_t *client, const char *url, const char *wanted)
{
    aco_http_response_t *response = get(client, url);
    CHECK(response && response->status == 200);
    CHECK_TEXT(url, got, wanted);
    aco_http_response_end(response);
}

/* "QWxhZGRpbjpvcGVuIHNlc2FtZQ==" is RFC 7617's own example. */
static void *sends_the_urls_user(void *arg)
{
    static const aco_http_header_t own = {"authorization", "own"};
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_http_call_t call = {0};
    aco_http_response_t *response;
    char path[256], long_user[300];
    stage_t stage = {0}, other = {0};
    (void)arg;
    start(&stage, routes);
    start(&other, routes);
    check_authorization(client, url_of(&stage, "Aladdin:open%20sesame@", "/authorization"),
                        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==|-");
    check_authorization(client, url_of(&stage, "u@", "/authorization"), "Basic dTo=|-");
    check_authorization(client, url_of(&stage, "@", "/authorization"), "-|-");
    check_authorization(client, url_of(&stage, ":@", "/authorization"), "Basic Og==|-");
    check_authorization(client, url_of(&stage, "u:p@", "/302?to=/authorization"), "Basic dTpw|-");
    snprintf(path, sizeof path, "/302?to=http://127.0.0.1:%s/authorization", other.port);
    check_authorization(client, url_of(&stage, "u:p@", path), "-|-");
    call.url = url_of(&stage, "u:p@", "/authorization");
    call.headers = &own;
    call.header_count = 1;
    response = aco_http_call(client, &call);
    CHECK(response && aco_http_response_read(response, got, 10) == 5 && memcmp(got, "own|-", 5) == 0);
    aco_http_response_end(response);
    memset(long_user, 'u', sizeof long_user);
    strcpy(long_user + 255, "@");
    response = get(client, url_of(&stage, long_user, "/authorization"));
    CHECK(response && got_n == 6 + 344 + 2);
    aco_http_response_end(response);
    strcpy(long_user + 255, "u@");
    CHECK(!get(client, url_of(&stage, long_user, "/")) && errno == EINVAL);
    aco_http_client_destroy(client);
    stop(&other);
    stop(&stage);
    return NULL;
}

/* A proxy that makes no tunnel, but tells what it was asked. */
static void *refuses_tunnel(void *listener)
{
    static const char answer[] = "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n";
    int fd = aco_io_accept(*(const int *)listener);
    ssize_t n = 1;
    for (got_n = 0; n > 0 && !strstr(got, "\r\n\r\n"); got_n += n > 0 ? (size_t)n : 0, got[got_n] = 0)
        n = aco_io_read(fd, got + got_n, 512);
    CHECK(aco_io_write_all(fd, answer, sizeof answer - 1) > 0);
    CHECK_EQ(aco_io_close(fd), 0);
    return NULL;
}

static aco_stream_t *opens_nothing(int fd, const char *host, void *arg)
{
    (void)host, (void)arg;
    CHECK_EQ(aco_io_close(fd), 0);
    errno = EPROTO;
    return NULL;
}

static void *authorizes_at_proxies(void *arg)
{
    aco_http_client_options_t options = {.proxy_host = "127.0.0.1", .proxy_user = "Aladdin", .open = opens_nothing};
    aco_http_client_t *client;
    stage_t stage = {0};
    char address[ACO_IO_ADDRESS_SIZE], long_user[300] = {0};
    int listener;
    aco_group_t group;
    (void)arg;
    start(&stage, routes);
    options.proxy_port = stage.port;
    options.proxy_password = "open sesame";
    client = aco_http_client_new(&options);
    check_authorization(client, "http://u:p@example.org/authorization",
                        "Basic dTpw|Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    aco_http_client_destroy(client);
    options.proxy_user = "a:b";
    CHECK(!aco_http_client_new(&options) && errno == EINVAL);
    memset(long_user, 'u', 256);
    options.proxy_user = long_user;
    CHECK(!aco_http_client_new(&options) && errno == EINVAL);
    long_user[255] = 0;
    options.proxy_password = NULL;
    client = aco_http_client_new(&options);
    CHECK(client != NULL);
    aco_http_client_destroy(client);
    stop(&stage);
    /* A tunnel */
    listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    options.proxy_port = strchr(address, ':') + 1;
    options.proxy_user = "u";
    client = aco_http_client_new(&options);
    got[0] = 0;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, refuses_tunnel, &listener);
    CHECK(!aco_http_get(client, "https://example.org/") && errno == ECONNREFUSED);
    aco_group_end(&group);
    CHECK_HAS("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nProxy-Authorization: Basic dTo=\r\n\r\n");
    aco_http_client_destroy(client);
    CHECK_EQ(aco_io_close(listener), 0);
    return NULL;
}

int main(void)
{
    static const aco_function_t tests[] = {knows_its_urls, sends_the_urls_user, authorizes_at_proxies};
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_client_calls");
}
