/* https:// by a proxy (aco_http_client_options_t): the tunnel that CONNECT asks for, proxies that refuse it or fail,
 * and the certificate behind it. And, without a proxy, what ends a reply in TLS, and bodies of requests while TLS's own
 * messages come. Server, proxy and client are tasks of one thread.
 *
 * http_tunnel PROXY_HOST PROXY_PORT CA URL...: gets the URLs by that proxy instead (tests/io/http_peers.py). */
#define _GNU_SOURCE
#include <aco/http.h>
#include <aco/tls.h>
#include "io_tests.h"
#include "tls_certificates.h"

static certificate_t root, local;
static char server_port[8], proxy_port[8], asked[512]; /* what the proxy was asked for last */
static int tunnels;
static const char *reply; /* what the proxy says; NULL: nothing */
static int ends; /* the proxy then closes the connection */
static aco_http_client_options_t options;

/* ---- The server ---- */

static aco_http_server_options_t server;

static void *serve(void *listener)
{
    aco_http_serve(*(int *)listener, &server);
    return NULL;
}

static void tell_path(aco_http_request_t *request, void *unused)
{
    (void)unused;
    CHECK(aco_http_request_header(request, "Authorization") != NULL);
    aco_http_reply(request, 200, "text/plain", request->path, strlen(request->path));
}

static void echo(aco_http_request_t *request, void *unused)
{
    size_t n;
    char *body = aco_http_request_read_all(request, 1000, &n);
    (void)unused;
    CHECK(body && aco_http_reply(request, 200, NULL, body, n) == 0);
}

static void cut(aco_http_request_t *request, void *unused)
{
    (void)unused;
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, -1), 0);
    CHECK_EQ(aco_http_reply_write(request, "part", 4), 0);
    aco_http_reply_abort(request);
}

/* ---- The proxy ---- */

typedef struct way {
    int from, to;
} way_t;

static void *pass_on(void *arg)
{
    const way_t *way = arg;
    char part[2000];
    ssize_t n;
    while ((n = aco_io_read(way->from, part, sizeof part)) > 0 && aco_io_write_all(way->to, part, (size_t)n) >= 0)
        ;
    aco_io_shutdown(way->to, SHUT_WR);
    return NULL;
}

/* Whatever host is asked for: the tunnel leads to the server. */
static void tunnel(int fd)
{
    int to = aco_io_dial("tcp", "127.0.0.1", server_port, NULL);
    way_t there = {fd, to}, back = {to, fd};
    aco_group_t group;
    CHECK(to >= 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, pass_on, &there);
    member(&group, pass_on, &back);
    aco_group_end(&group);
    aco_io_close(to);
}

static void *be_proxy_of_one(void *arg)
{
    int fd = (int)(intptr_t)arg;
    size_t n = 0;
    char byte;
    while (n < sizeof asked - 1 && (n < 4 || memcmp(asked + n - 4, "\r\n\r\n", 4) != 0)) {
        if (aco_io_read(fd, asked + n, 1) != 1)
            break;
        n++;
    }
    asked[n] = 0;
    tunnels++;
    if (reply)
        CHECK(aco_io_write_all(fd, reply, strlen(reply)) >= 0);
    if (reply && !ends)
        tunnel(fd);
    else if (!reply)
        CHECK(aco_io_read(fd, &byte, 1) <= 0); /* until the client gives up, before any byte of TLS */
    aco_io_close(fd);
    return NULL;
}

static void *be_proxy(void *listener)
{
    aco_group_t group;
    int fd;
    aco_group_begin(&group, ACO_KEEP_GOING);
    while ((fd = aco_io_accept(*(int *)listener)) >= 0)
        member(&group, be_proxy_of_one, (void *)(intptr_t)fd);
    aco_group_end(&group);
    return NULL;
}

/* ---- The client ---- */

/* 0 and the body; or errno. */
static int get(aco_http_client_t *client, const char *url, char body[64])
{
    static const aco_http_header_t secret = {"Authorization", "secret"};
    aco_http_call_t call = {.url = url, .headers = &secret, .header_count = 1};
    aco_http_response_t *response = aco_http_call(client, &call);
    ssize_t n = 0, got = 0;
    if (!response)
        return errno;
    while (n < 63 && (got = aco_http_response_read(response, body + n, (size_t)(63 - n))) > 0)
        n += got;
    CHECK(got >= 0);
    body[n] = 0;
    aco_http_response_end(response);
    return 0;
}

static int get_once(const char *url, char body[64])
{
    aco_http_client_t *client = aco_http_client_new(&options);
    int error = get(client, url, body);
    aco_http_client_destroy(client);
    return error;
}

static void expect_asked(const char *authority)
{
    char wanted[200];
    snprintf(wanted, sizeof wanted, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", authority, authority);
    if (strcmp(asked, wanted) != 0)
        fprintf(stderr, "the proxy was asked: %s\n", asked);
    CHECK(strcmp(asked, wanted) == 0);
}

static void uses_tunnels(void)
{
    static const char *const replies[] = {"HTTP/1.1 200 OK\r\n\r\n",
                                          "HTTP/1.0 200 Connection established\r\nProxy-agent: x/1\r\n\r\n",
                                          "HTTP/1.1 204 Fine\r\n\r\n",
                                          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", /* a tunnel has no body */
                                          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                          "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
                                          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"};
    char body[64];
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        reply = replies[i];
        CHECK_EQ(get_once("https://local.test/a", body), 0);
        CHECK(strcmp(body, "/a") == 0);
        expect_asked("local.test:443");
    }
    CHECK_EQ(get_once("https://local.test:99/a", body), 0);
    expect_asked("local.test:99");
    CHECK_EQ(get_once("https://[::1]/a", body), 0);
    expect_asked("[::1]:443");
}

static void keeps_tunnels(void)
{
    aco_http_client_t *client = aco_http_client_new(&options);
    char body[64];
    reply = "HTTP/1.1 200 OK\r\n\r\n";
    tunnels = 0;
    CHECK_EQ(get(client, "https://local.test/a", body), 0);
    CHECK_EQ(get(client, "https://local.test/b", body), 0);
    CHECK(strcmp(body, "/b") == 0);
    CHECK_EQ(tunnels, 1);
    CHECK_EQ(get(client, "https://127.0.0.1/c", body), 0); /* another host: another tunnel */
    CHECK_EQ(tunnels, 2);
    aco_http_client_destroy(client);
}

/* The proxy leads to a server that is not the one of the URL. */
static void checks_hosts(void)
{
    char body[64];
    reply = "HTTP/1.1 200 OK\r\n\r\n";
    CHECK_EQ(get_once("https://other.test/", body), EACCES);
    CHECK(strstr(aco_error_message(), "other.test: certificate refused, wrong host") != NULL);
}

static void is_refused(void)
{
    static const struct {
        const char *reply;
        int error;
        const char *message;
    } cases[] = {
        {"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n", ECONNREFUSED, "407"},
        {"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad", ECONNREFUSED, "502"},
        {"HTTP/1.1 302 Found\r\nLocation: https://local.test/\r\nContent-Length: 0\r\n\r\n", ECONNREFUSED, "302"},
        {"HTTP/1.1 101 Switching Protocols\r\n\r\n", EBADMSG, ""},
        {"HTTP/1.1 200 OK\r\n\r\nx", EBADMSG, "more than its response"},
        {"", ECONNRESET, "ended the connection"},
        {"HTTP/1.1 200 OK\r\nA: ", ECONNRESET, ""},
        {"+OK ready\r\n", EBADMSG, ""},
        {"HTTP/2 200 OK\r\n\r\n", EBADMSG, ""},
        {"\x15\x03\x03", EBADMSG, ""}};
    char body[64];
    ends = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int error;
        reply = cases[i].reply;
        error = get_once("https://local.test/", body);
        if (error != cases[i].error || !strstr(aco_error_message(), cases[i].message))
            fprintf(stderr, "case %zu: errno %d, %s\n", i, error, aco_error_message());
        CHECK_EQ(error, cases[i].error);
        CHECK(strstr(aco_error_message(), cases[i].message) != NULL);
    }
    ends = 0;
}

static void ends_in_time(void)
{
    aco_scope_t scope;
    char body[64];
    reply = NULL;
    aco_scope_begin(&scope, aco_after(50 * ACO_MILLISECOND));
    CHECK_EQ(get_once("https://local.test/", body), ETIMEDOUT);
    aco_scope_end(&scope);
}

/* A reply up to the connection's end that lacks something: TLS tells no end. */
static void cuts_visibly(void)
{
    int fd = aco_io_dial("tcp", "127.0.0.1", server_port, NULL);
    aco_tls_t *tls = aco_tls_connect(fd, "127.0.0.1", options.open_arg);
    char part[1000];
    ssize_t n;
    CHECK(tls && aco_tls_write_all(tls, "GET /cut HTTP/1.0\r\n\r\n", 21) == 21);
    while ((n = aco_tls_read(tls, part, sizeof part)) > 0)
        ;
    CHECK(n < 0);
    aco_tls_close(tls);
}

static void note_port(char port[8], int listener)
{
    char address[ACO_IO_ADDRESS_SIZE];
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    snprintf(port, 8, "%.7s", strchr(address, ':') + 1);
}

/* The server's tickets come after the handshake, before it has read the request: they are no response. */
static ssize_t makes_slowly(void *arg, void *p, size_t n)
{
    int *left = arg;
    CHECK(n > 0);
    for (int i = 0; i < 50; i++)
        aco_task_yield();
    *(char *)p = 'b';
    return (*left)-- > 0 ? 1 : 0;
}

static void sends_bodies_slowly(int64_t continue_time)
{
    aco_http_client_options_t direct = options;
    aco_http_client_t *client;
    aco_http_response_t *response;
    aco_scope_t limit;
    int left = 5;
    char url[64], body[64];
    const aco_http_call_t call = {.url = url,
                                  .method = "PUT",
                                  .read_body = makes_slowly,
                                  .read_arg = &left,
                                  .length = continue_time ? 5 : -1,
                                  .continue_time = continue_time};
    direct.proxy_host = direct.proxy_port = NULL;
    client = aco_http_client_new(&direct);
    snprintf(url, sizeof url, "https://127.0.0.1:%s/echo", server_port);
    aco_scope_begin(&limit, aco_after(20 * ACO_SECOND));
    response = aco_http_call(client, &call);
    CHECK(response && response->status == 200 && aco_http_response_read(response, body, sizeof body) == 5);
    aco_http_response_end(response);
    aco_scope_end(&limit);
    aco_http_client_destroy(client);
}

/* A server that never says "100 Continue", nor a response before the body. */
static void *is_silent(void *listener)
{
    static const char fine[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    aco_tls_t *tls = aco_tls_accept(aco_io_accept(*(int *)listener), server.open_arg);
    char text[1000];
    size_t n = 0;
    CHECK(tls != NULL);
    for (ssize_t came = 1; came > 0 && (n < 5 || memcmp(text + n - 5, "bbbbb", 5) != 0); n += (size_t)came)
        came = aco_tls_read(tls, text + n, sizeof text - n);
    CHECK(aco_tls_write_all(tls, fine, strlen(fine)) > 0);
    CHECK_EQ(aco_tls_close(tls), 0);
    return NULL;
}

static void continues_without_consent(void)
{
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    aco_http_client_options_t direct = options;
    aco_http_client_t *client;
    aco_http_response_t *response;
    aco_scope_t limit;
    aco_group_t group;
    char url[64], port[8];
    const aco_http_call_t call = {
        .url = url, .method = "PUT", .body = "bbbbb", .length = 5, .continue_time = 20 * ACO_MILLISECOND};
    note_port(port, listener);
    direct.proxy_host = direct.proxy_port = NULL;
    client = aco_http_client_new(&direct);
    snprintf(url, sizeof url, "https://127.0.0.1:%s/", port);
    aco_scope_begin(&limit, aco_after(20 * ACO_SECOND));
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, is_silent, &listener);
    response = aco_http_call(client, &call);
    CHECK(response && response->status == 200);
    aco_http_response_end(response);
    aco_http_client_destroy(client);
    aco_group_end(&group);
    aco_scope_end(&limit);
    CHECK_EQ(aco_io_close(listener), 0);
}

/* ---- All of it ---- */

static aco_tls_config_t *make_config(unsigned flags)
{
    aco_tls_config_t *config = aco_tls_config_new(flags);
    CHECK(config != NULL);
    CHECK_EQ(flags & ACO_TLS_SERVER ? aco_tls_config_certificate(config, local.file, local.key_file)
                                    : aco_tls_config_trust(config, root.file),
             0);
    return config;
}

static void *run_all(void *unused)
{
    static const aco_http_route_t routes[] = {{"GET", "/cut", cut, NULL},
                                              {"GET", "/*", tell_path, NULL},
                                              {"PUT", "/echo", echo, NULL},
                                              {NULL, NULL, NULL, NULL}};
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    int proxy = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    aco_group_t group;
    note_port(server_port, listener);
    note_port(proxy_port, proxy);
    server.routes = routes;
    server.open = aco_tls_http_accept;
    server.open_arg = make_config(ACO_TLS_SERVER);
    options.open = aco_tls_http_connect;
    options.open_arg = make_config(ACO_TLS_NO_SYSTEM_STORE);
    options.proxy_host = "127.0.0.1";
    options.proxy_port = proxy_port;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, serve, &listener);
    member(&group, be_proxy, &proxy);
    uses_tunnels();
    keeps_tunnels();
    checks_hosts();
    is_refused();
    ends_in_time();
    cuts_visibly();
    sends_bodies_slowly(0);
    sends_bodies_slowly(100 * ACO_SECOND);
    continues_without_consent();
    aco_scope_cancel(&group.scope);
    aco_group_end(&group);
    CHECK_EQ(aco_io_close(proxy), 0);
    aco_tls_config_destroy(server.open_arg);
    aco_tls_config_destroy(options.open_arg);
    return unused;
}

/* ---- By another proxy ---- */

static void *get_all(void *arg)
{
    char **words = arg, body[64];
    aco_tls_config_t *config = aco_tls_config_new(ACO_TLS_NO_SYSTEM_STORE);
    options.proxy_host = words[1];
    options.proxy_port = words[2];
    options.open = aco_tls_http_connect;
    options.open_arg = config;
    CHECK(config && aco_tls_config_trust(config, words[3]) == 0);
    for (words += 4; *words; words++)
        printf("%s\n", get_once(*words, body) == 0 ? body : aco_error_message());
    aco_tls_config_destroy(config);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 4) {
        run_task(get_all, argv);
        return check_failures != 0;
    }
    make_certificate(&root, "root", &(how_t){0});
    make_certificate(&local, "local", &(how_t){"DNS:local.test,IP:127.0.0.1,IP:::1", .issuer = &root});
    run_task(run_all, NULL);
    free_certificate(&root);
    free_certificate(&local);
    return check_result("http_tunnel");
}
