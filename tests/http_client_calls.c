/* HTTP clients (include/aco/http.h), around their requests: users in URLs, where redirects led, proxies with a
 * password, responses before the body was sent. */
#define _GNU_SOURCE
#include "http_tests.h"

#include <aco/sync.h>

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

/* ---- Responses before the body was sent ---- */

#define REFUSAL "HTTP/1.1 413 No\r\nContent-Length: 5\r\n\r\nlarge"
#define FINE "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

typedef struct script { /* of a server for one request */
    int listener;
    const char *first, *second; /* what is sent behind the head; and then, after some turns, or behind the body */
    size_t body;                /* bytes that are read before `second`; 0: none */
    int got_expect;
    size_t came;                /* bytes of the body */
    const char *third;          /* after further turns; nothing is read until the client has ended */
    aco_event_t has_ended;
} script_t;

static void *plays(void *arg)
{
    static char part[65536];
    script_t *script = arg;
    int fd = aco_io_accept(script->listener);
    const char *end = NULL;
    size_t n = 0;
    ssize_t more;
    while (!end && n < sizeof part - 1) {
        CHECK((more = aco_io_read(fd, part + n, 1)) == 1);
        part[++n] = 0;
        end = strstr(part, "\r\n\r\n");
    }
    script->got_expect = strstr(part, "\r\nExpect: 100-continue\r\n") != NULL;
    if (script->third)
        CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int)), 0);
    CHECK(aco_io_write_all(fd, script->first, strlen(script->first)) >= 0);
    while (script->came < script->body) {
        more = aco_io_read(fd, part, sizeof part);
        CHECK(more > 0);
        script->came += (size_t)more;
    }
    for (int i = 0; i < 50 && !script->body; i++)
        aco_task_yield();
    if (script->second)
        CHECK(aco_io_write_all(fd, script->second, strlen(script->second)) >= 0);
    for (int i = 0; i < 50 && script->third; i++)
        aco_task_yield();
    if (script->third) {
        CHECK(aco_io_write_all(fd, script->third, strlen(script->third)) >= 0);
        CHECK_EQ(aco_event_wait_until(&script->has_ended, aco_after(60 * ACO_SECOND)), 0);
    }
    while ((more = aco_io_read(fd, part, 1)) > 0 && !script->body) /* slowly */
        script->came++;
    CHECK_EQ(aco_io_close(fd), 0);
    return NULL;
}

typedef struct source {
    size_t left;
    int calls;
} source_t;

static ssize_t makes_much(void *arg, void *p, size_t n)
{
    source_t *source = arg;
    size_t part = source->left < n ? source->left : n;
    source->calls++;
    memset(p, 'b', part);
    source->left -= part;
    return (ssize_t)part;
}

/* The status of the response, whose body is in `got`. */
static int upload(script_t *script, aco_http_call_t *call)
{
    aco_http_client_t *client = aco_http_client_new(NULL);
    char address[ACO_IO_ADDRESS_SIZE], url[160];
    aco_http_response_t *response;
    aco_group_t group;
    ssize_t n;
    int status;
    script->listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(script->listener, address, sizeof address), 0);
    snprintf(url, sizeof url, "http://%s/", address);
    call->method = "PUT";
    call->url = url;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, plays, script);
    response = aco_http_call(client, call);
    status = response ? response->status : -1;
    n = response ? aco_http_response_read(response, got, 100) : 0;
    got[n > 0 ? n : 0] = 0;
    aco_event_set(&script->has_ended);
    aco_http_response_end(response);
    aco_http_client_destroy(client);
    aco_group_end(&group);
    CHECK_EQ(aco_io_close(script->listener), 0);
    return status;
}

enum { MUCH = 8 << 20 };

static void *takes_early_responses(void *arg)
{
    char *body = malloc(MUCH);
    (void)arg;
    memset(body, 'b', MUCH);
    for (int how = 0; how < 3; how++) { /* a body in memory; by a function, with a length; in chunks */
        static const struct {
            const char *first, *second;
            int status;
            const char *third;
        } refusals[] = {{REFUSAL, NULL, 413, NULL},
                        {"HTTP/1.1 103 Early\r\n\r\n", "HTTP/1.1 413 N\r\nContent-Length: 5\r\n\r\n", 413, "large"},
                        {"HTTP/1.1 413 N", "o\r\nContent-Length: 5\r\n\r\nlarge", 413, NULL},
                        {"HTTP/1.1 103 Early\r\n\r\n", REFUSAL, 413, NULL},
                        {"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 4", &REFUSAL[10], 413, NULL}};
        for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
            script_t script = {.first = refusals[i].first, .second = refusals[i].second, .third = refusals[i].third};
            source_t source = {MUCH, 0};
            aco_http_call_t call = {.body = body, .length = how == 2 ? -1 : MUCH};
            if (how > 0) {
                call.read_body = makes_much;
                call.read_arg = &source;
            }
            CHECK_EQ(upload(&script, &call), refusals[i].status);
            CHECK_TEXT("the refusal", got, "large");
            CHECK(how == 0 || source.left > 0);
        }
        {
            script_t script = {.first = "HTTP/1.1 103 Early\r\n\r\n", .second = FINE, .body = MUCH};
            source_t source = {MUCH, 0};
            aco_http_call_t call = {.body = body, .length = how == 2 ? -1 : MUCH};
            if (how > 0) {
                call.read_body = makes_much;
                call.read_arg = &source;
            }
            CHECK_EQ(upload(&script, &call), 200);
            CHECK_TEXT("all was sent", got, "ok");
        }
    }
    free(body);
    return NULL;
}

/* A head that does not end is waited for as long as any other. */
static void *early_heads_end_in_time(void *arg)
{
    const aco_http_client_options_t options = {.head_time = 20 * ACO_MILLISECOND};
    script_t script = {.first = "HTTP/1.1 1"};
    source_t source = {10, 0};
    aco_http_call_t call = {.length = 10, .read_body = makes_much, .read_arg = &source, .method = "PUT"};
    char address[ACO_IO_ADDRESS_SIZE], url[160];
    aco_http_client_t *client = aco_http_client_new(&options);
    aco_scope_t limit;
    aco_group_t group;
    (void)arg;
    call.continue_time = 100 * ACO_SECOND;
    call.url = url;
    script.listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(script.listener, address, sizeof address), 0);
    snprintf(url, sizeof url, "http://%s/", address);
    aco_scope_begin(&limit, aco_after(20 * ACO_SECOND));
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, plays, &script);
    CHECK(!aco_http_call(client, &call) && errno == ETIMEDOUT);
    CHECK_TEXT("the limit", aco_error_message(), "aco_http_call: head_time is over");
    aco_http_client_destroy(client);
    aco_group_end(&group);
    aco_scope_end(&limit);
    CHECK_EQ(aco_io_close(script.listener), 0);
    return NULL;
}

static void *expects_consent(void *arg)
{
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_http_call_t call = {.length = 10, .read_body = makes_much, .continue_time = 100 * ACO_SECOND};
    stage_t stage = {0};
    static const aco_http_route_t echo[] = {{"PUT", "/", echoes, NULL}, {NULL, NULL, NULL, NULL}};
    (void)arg;
    {
        script_t script = {.first = "HTTP/1.1 100 Continue\r\n\r\n", .second = FINE, .body = 10};
        source_t source = {10, 0};
        call.read_arg = &source;
        CHECK_EQ(upload(&script, &call), 200);
        CHECK(script.got_expect && script.came == 10);
    }
    {
        script_t script = {.first = REFUSAL};
        source_t source = {10, 0};
        call.read_arg = &source;
        CHECK_EQ(upload(&script, &call), 413);
        CHECK(script.got_expect && source.calls == 0 && script.came == 0);
    }
    {
        script_t script = {.first = "", .second = FINE, .body = 10};
        source_t source = {10, 0};
        call.read_arg = &source;
        call.continue_time = ACO_MILLISECOND;
        CHECK_EQ(upload(&script, &call), 200);
        CHECK(script.got_expect && script.came == 10);
    }
    start(&stage, echo);
    {
        source_t source = {10, 0};
        aco_http_response_t *response;
        call.read_arg = &source;
        call.continue_time = 100 * ACO_SECOND;
        call.url = url_of(&stage, "", "/");
        response = aco_http_call(client, &call);
        CHECK(response && aco_http_response_read(response, got, 100) == 10);
        aco_http_response_end(response);
    }
    call.continue_time = -1;
    CHECK(!aco_http_call(client, &call) && errno == EINVAL);
    aco_http_client_destroy(client);
    stop(&stage);
    return NULL;
}

int main(void)
{
    static const aco_function_t tests[] = {knows_its_urls,        sends_the_urls_user,     authorizes_at_proxies,
                                           takes_early_responses, early_heads_end_in_time, expects_consent};
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_client_calls");
}
