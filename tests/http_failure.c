/* Every failure of memory and of system calls in acorn_http and acorn_tls, at every place: the first, second, … call of
 * one function fails, until none is left, while a client of aco/http.h uses a server, plain and by TLS. Whatever it
 * does: nothing hangs, no descriptor is left, OpenSSL's error queue is empty, and the next run succeeds. The
 * functions below stand in the system's table meanwhile; memory fails by --wrap, OpenSSL's through its own hooks. */
#include "replace.h" /* first */

#include <aco/cookie_jar.h>
#include <aco/file.h>
#include <aco/http.h>
#include <aco/websocket.h>
#include "io_tests.h"
#include "no_handshakes.h"
#ifdef HTTP_WITH_TLS
#include <aco/tls.h>
#include "tls_certificates.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#endif

#include <poll.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

/* ---- What fails ---- */

#define FUNCTIONS(X)                                                                                                   \
    X(aco__service_allocate, ENOMEM, 0, 0)                                                                             \
    X(openssl_malloc, ENOMEM, 0, 0)                                                                                    \
    SYSTEM_CALLS(X)
#define SYSTEM_CALLS(X)                                                                                                \
    X(read, ECONNRESET, EIO, EINTR)                                                                                    \
    X(recv, ECONNRESET, EIO, EINTR)                                                                                    \
    X(send, ENOBUFS, EIO, EINTR)                                                                                       \
    X(sendmsg, EIO, EINTR, 0)                                                                                          \
    X(sendfile, EPIPE, EINVAL, EINTR)                                                                                  \
    X(accept4, EMFILE, ECONNABORTED, EINVAL)                                                                           \
    X(epoll_ctl, ENOMEM, 0, 0)                                                                                         \
    X(connect, ECONNREFUSED, 0, 0)                                                                                     \
    X(socket, EMFILE, 0, 0)                                                                                            \
    X(setsockopt, ENOMEM, 0, 0)                                                                                        \
    X(shutdown, ENOTCONN, 0, 0)                                                                                        \
    X(pread, EIO, 0, 0)
enum {
#define NUMBER(name, a, b, c) F_##name,
    FUNCTIONS(NUMBER) F_COUNT
};
static const struct {
    const char *name;
    int errors[4];
} functions[] = {
#define ENTRY(name, a, b, c) {#name, {a, b, c, 0}},
    FUNCTIONS(ENTRY)};

static int counts[F_COUNT], target = -1, position, error; /* calls on the pool's threads count, too: atomic */

static int fails(int which)
{
    int call = __atomic_add_fetch(&counts[which], 1, __ATOMIC_RELAXED);
    if (which != __atomic_load_n(&target, __ATOMIC_RELAXED) || call != position)
        return 0;
    errno = error;
    return 1;
}

void *__real_aco__service_allocate(size_t *sz, const char *call);
void *__wrap_aco__service_allocate(size_t *sz, const char *call);
void *__wrap_aco__service_allocate(size_t *sz, const char *call)
{
    return fails(F_aco__service_allocate) ? NULL : __real_aco__service_allocate(sz, call);
}

#define FAILS(type, name, parameters, arguments) FAILING(type, name, parameters, arguments, fails(F_##name), -1)
FAILS(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))
FAILS(ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
FAILS(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
FAILS(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
FAILS(ssize_t, sendfile, (int to, int from, int64_t *at, size_t n), (to, from, at, n))
FAILS(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags))
FAILS(int, epoll_ctl, (int e, int what, int fd, struct epoll_event *event), (e, what, fd, event))
FAILS(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
FAILS(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
FAILS(int, setsockopt, (int fd, int l, int o, const void *p, socklen_t n), (fd, l, o, p, n))
FAILS(int, shutdown, (int fd, int how), (fd, how))
FAILS(ssize_t, pread, (int fd, void *p, size_t n, int64_t at), (fd, p, n, at))

static int polls;
REAL(poll);
static int failing_poll(struct pollfd *fds, nfds_t n, int timeout) /* never; it counts */
{
    __atomic_fetch_add(&polls, 1, __ATOMIC_RELAXED);
    return real_poll(fds, n, timeout);
}

static void replace_system(void)
{
#define REPLACE_ONE(name, a, b, c) REPLACE(name);
    SYSTEM_CALLS(REPLACE_ONE)
    REPLACE(poll);
}

/* ---- The scenario ---- */

enum { LARGE = 100000 };
static char root[64], large[LARGE];
static aco_http_server_options_t server;
static aco_http_client_options_t client_options;
static const char *scheme;
static int is_done; /* all went well */
static int looks; /* calls of recv() and poll() for the last exchange */

static void gives_file(aco_http_request_t *request, void *unused)
{
    (void)unused;
    (void)aco_http_reply_file(request, root, aco_http_request_param(request, "*"));
}

static void gives_back(aco_http_request_t *request, void *unused)
{
    size_t n;
    char *body = aco_http_request_read_all(request, LARGE, &n);
    (void)unused;
    if (body && aco_http_reply_header(request, "X", large + LARGE - 2000) == 0)
        (void)aco_http_reply(request, 200, "text/plain", body, n);
}

static void moves(aco_http_request_t *request, void *unused)
{
    (void)unused;
    if (aco_http_reply_header(request, "Set-Cookie", "a=b; Path=/") == 0 &&
        aco_http_reply_header(request, "Location", "coded?moved \xc3\xa4") == 0)
        (void)aco_http_reply(request, 302, NULL, "moved", 5);
}

/* Coded, to who takes it, if the cookie has come. */
static void gives_coded(aco_http_request_t *request, void *unused)
{
    static const unsigned char coded[] = {31,  139, 8,   0,  0,  0, 0,   0,   2,  3, 203, 72, 205, 201,
                                          201, 87,  200, 64, 34, 1, 237, 181, 49, 4, 18,  0,  0,   0};
    const char *codings = aco_http_request_header(request, "Accept-Encoding");
    const char *cookie = aco_http_request_header(request, "Cookie");
    (void)unused;
    if (!cookie || strcmp(cookie, "a=b") != 0)
        return;
    if (codings && strstr(codings, "gzip")) {
        if (aco_http_reply_header(request, "Content-Encoding", "gzip") == 0)
            (void)aco_http_reply(request, 200, NULL, coded, sizeof coded);
    } else
        (void)aco_http_reply(request, 200, NULL, "hello hello hello ", 18);
}

static const aco_websocket_options_t deflating = {.compresses = ACO_WEBSOCKET_KEEP_WINDOWS};

static void echoes(aco_http_request_t *request, void *unused)
{
    aco_websocket_t *socket = aco_websocket_accept(request, &deflating);
    const char *data;
    size_t n;
    int type;
    (void)unused;
    while (socket && (type = aco_websocket_receive(socket, &data, &n)) > 0)
        if (aco_websocket_send(socket, type, data, n) != 0)
            break;
}

typedef struct service {
    int listener;
    aco_scope_t scope;
} service_t;

static void *serves(void *arg)
{
    service_t *s = arg;
    aco_scope_begin(&s->scope, ACO_FOREVER);
    (void)aco_http_serve(s->listener, &server);
    aco_scope_end(&s->scope);
    return NULL;
}

/* 1 if the body is the first `n` bytes of `large`. */
static int gets(aco_http_client_t *client, const char *site, const char *method, const char *path, size_t n,
                int has_body)
{
    static char got[LARGE + 1];
    char url[128];
    aco_http_call_t call = {0};
    aco_http_response_t *response;
    size_t have = 0;
    ssize_t part = 1;
    snprintf(url, sizeof url, "%s%s", site, path);
    call.method = method;
    call.url = url;
    call.body = has_body ? large : NULL;
    call.length = has_body ? (int64_t)n : 0;
    response = aco_http_call(client, &call);
    if (!response)
        return 0;
    while (part > 0 && have < sizeof got) {
        part = aco_http_response_read(response, got + have, sizeof got - have);
        have += part > 0 ? (size_t)part : 0;
    }
    n = response->status == 200 && part == 0 && have == n && memcmp(got, large, n) == 0;
    aco_http_response_end(response);
    return (int)n;
}

static void *uses(void *unused)
{
    char address[ACO_IO_ADDRESS_SIZE], site[128];
    aco_http_client_t *client = aco_http_client_new(&client_options);
    service_t s = {aco_io_listen("tcp4", "127.0.0.1", "0", NULL), {0}};
    aco_t *task;
    aco_scope_t limit;
    is_done = 0;
    if (!client || s.listener < 0 || aco_io_local_address(s.listener, address, sizeof address) != 0) {
        if (s.listener >= 0)
            aco_io_close(s.listener);
        aco_http_client_destroy(client);
        return unused;
    }
    snprintf(site, sizeof site, "%s://localhost%s", scheme, strchr(address, ':'));
    task = aco_spawn(serves, &s, NULL);
    CHECK(task != NULL);
    aco_task_yield();
    aco_scope_begin(&limit, aco_after(20 * ACO_SECOND));
    is_done = gets(client, site, "GET", "/files/large", LARGE, 0);
    is_done &= gets(client, site, "POST", "/echo", 5000, 1);
    is_done &= gets(client, site, "GET", "/files/small", 10, 0);
    looks = -counts[F_recv] - polls;
    is_done &= gets(client, site, "GET", "/files/small", 10, 0);
    looks += counts[F_recv] + polls;
    if (aco_check_cancelled() != 0)
        fprintf(stderr, "%s, %s: call %d fails with %d: waits in vain\n", site,
                target < 0 ? "" : functions[target].name, position, error);
    CHECK_EQ(aco_check_cancelled(), 0);
    aco_scope_end(&limit);
    aco_http_client_destroy(client);
    aco_scope_cancel(&s.scope);
    CHECK_EQ(aco_join(task, NULL), 0);
#ifdef HTTP_WITH_TLS
    CHECK_EQ(ERR_peek_error(), 0);
#endif
    return unused;
}

/* A request whose target needs memory of its own. If there is none, the client is not to blame. */
static void *asks_long_host(void *unused)
{
    enum { HOST = 2000 };
    static char request[HOST + 100], reply[1000];
    char address[ACO_IO_ADDRESS_SIZE];
    service_t s = {aco_io_listen("tcp4", "127.0.0.1", "0", NULL), {0}};
    int status, begin = sprintf(request, "GET http://"), fd;
    size_t n = 0;
    ssize_t part = 1;
    aco_t *task;
    if (s.listener < 0)
        return unused;
    memset(request + begin, 'h', HOST);
    strcpy(request + begin + HOST, "/files/small HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    task = aco_spawn(serves, &s, NULL);
    CHECK(task != NULL);
    aco_task_yield();
    fd = aco_io_local_address(s.listener, address, sizeof address) == 0
             ? aco_io_dial("tcp4", "127.0.0.1", strchr(address, ':') + 1, NULL)
             : -1;
    if (fd >= 0 && aco_io_write_all(fd, request, strlen(request)) > 0)
        for (; part > 0; n += part > 0 ? (size_t)part : 0)
            part = aco_io_read(fd, reply + n, sizeof reply - 1 - n);
    reply[n] = 0;
    status = n > 9 ? atoi(reply + 9) : 0;
    is_done = status == 200;
    CHECK(status == 0 || status == 200 || status >= 500);
    if (fd >= 0)
        aco_io_close(fd);
    aco_scope_cancel(&s.scope);
    CHECK_EQ(aco_join(task, NULL), 0);
    return unused;
}

static ssize_t makes_body(void *arg, void *p, size_t n)
{
    size_t *left = arg, part = *left < n ? *left : n;
    memcpy(p, large, part);
    *left -= part;
    return (ssize_t)part;
}

/* The status of the response, whose body is in `got`; 0: none. */
static int calls(aco_http_client_t *client, const aco_http_call_t *call, char got[64])
{
    aco_http_response_t *response = aco_http_call(client, call);
    size_t have = 0;
    ssize_t n = 0;
    int status = response ? response->status : 0;
    while (response && have < 63 && (n = aco_http_response_read(response, got + have, 63 - have)) > 0)
        have += (size_t)n;
    got[have] = 0;
    aco_http_response_end(response);
    return n < 0 ? 0 : status;
}

/* What a client has beside requests and responses: users, limits for hosts, redirects, cookies, decoding, bodies that
 * wait for consent. */
static void *uses_all_of_it(void *unused)
{
    char address[ACO_IO_ADDRESS_SIZE], url[128], got[64];
    const aco_http_client_options_t options = {.max_connections = 1,
                                               .max_per_host = 1,
                                               .connect_time = 10 * ACO_SECOND,
                                               .head_time = 10 * ACO_SECOND,
                                               .total_time = 10 * ACO_SECOND,
                                               .decodes = 1,
                                               .jar = aco_cookie_jar_new(NULL)};
    size_t left = 20;
    const aco_http_call_t moved = {.url = url};
    const aco_http_call_t sent = {.url = url,
                                  .method = "POST",
                                  .read_body = makes_body,
                                  .read_arg = &left,
                                  .length = -1,
                                  .continue_time = 10 * ACO_SECOND};
    aco_http_client_t *client = options.jar ? aco_http_client_new(&options) : NULL;
    service_t s = {aco_io_listen("tcp4", "127.0.0.1", "0", NULL), {0}};
    aco_t *task;
    aco_scope_t limit;
    is_done = 0;
    if (client && s.listener >= 0 && aco_io_local_address(s.listener, address, sizeof address) == 0) {
        task = aco_spawn(serves, &s, NULL);
        CHECK(task != NULL);
        aco_task_yield();
        aco_scope_begin(&limit, aco_after(20 * ACO_SECOND));
        snprintf(url, sizeof url, "http://u:p@%s/move", address);
        is_done = calls(client, &moved, got) == 200 && strcmp(got, "hello hello hello ") == 0;
        snprintf(url, sizeof url, "http://%s/echo", address);
        is_done &= calls(client, &sent, got) == 200 && strlen(got) == 20 && memcmp(got, large, 20) == 0;
        CHECK_EQ(aco_check_cancelled(), 0);
        aco_scope_end(&limit);
        aco_http_client_destroy(client);
        aco_scope_cancel(&s.scope);
        CHECK_EQ(aco_join(task, NULL), 0);
    } else {
        aco_http_client_destroy(client);
        if (s.listener >= 0)
            aco_io_close(s.listener);
    }
    aco_cookie_jar_destroy(options.jar);
    return unused;
}

/* 1 if a message came back. */
static int gets_echo(aco_http_client_t *client, const char *url)
{
    aco_websocket_t *socket = aco_websocket_connect(client, url, NULL, 0, &deflating);
    const char *data;
    size_t n;
    int result = socket && aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, large, 20000) == 0 &&
                 aco_websocket_receive(socket, &data, &n) > 0 && n == 20000 && memcmp(data, large, n) == 0;
    aco_websocket_end(socket);
    return result;
}

/* Compressed replies and messages. */
static void *uses_codings(void *unused)
{
    const aco_http_client_options_t decoding = {.decodes = 1};
    aco_http_client_t *client = aco_http_client_new(&decoding);
    service_t s = {aco_io_listen("tcp4", "127.0.0.1", "0", NULL), {0}};
    char address[ACO_IO_ADDRESS_SIZE], url[ACO_IO_ADDRESS_SIZE + 20];
    aco_t *task;
    is_done = 0;
    if (!client || s.listener < 0 || aco_io_local_address(s.listener, address, sizeof address) != 0) {
        if (s.listener >= 0)
            aco_io_close(s.listener);
        aco_http_client_destroy(client);
        return unused;
    }
    task = aco_spawn(serves, &s, NULL);
    CHECK(task != NULL);
    aco_task_yield();
    snprintf(url, sizeof url, "http://%s", address);
    is_done = gets(client, url, "POST", "/coded", 20000, 1);
    snprintf(url, sizeof url, "ws://%s/socket", address);
    is_done &= gets_echo(client, url);
    aco_http_client_destroy(client);
    aco_scope_cancel(&s.scope);
    CHECK_EQ(aco_join(task, NULL), 0);
    return unused;
}

/* Two servers that balance their connections: of two that come to the first, the other one gets one. */
static void *uses_balance(void *unused)
{
    static aco_http_balance_t balance;
    aco_http_client_t *clients[2] = {aco_http_client_new(NULL), aco_http_client_new(NULL)};
    service_t s[2];
    aco_t *tasks[2];
    char address[ACO_IO_ADDRESS_SIZE], site[ACO_IO_ADDRESS_SIZE + 10] = "";
    is_done = clients[0] && clients[1];
    memset(&balance, 0, sizeof balance);
    server.balance = &balance;
    for (int i = 1; i >= 0; i--) {
        s[i].listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
        if (i == 0 && s[0].listener >= 0 && aco_io_local_address(s[0].listener, address, sizeof address) == 0)
            snprintf(site, sizeof site, "http://%s", address);
        CHECK((tasks[i] = aco_spawn(serves, &s[i], NULL)) != NULL);
        aco_task_yield();
    }
    for (int i = 0; i < 2; i++)
        is_done = is_done && gets(clients[i], site, "GET", "/files/small", 10, 0);
    CHECK(!is_done || target >= 0 || balance.moved == 1);
    for (int i = 0; i < 2; i++) {
        aco_http_client_destroy(clients[i]);
        aco_scope_cancel(&s[i].scope);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    CHECK(!balance.aco__members);
    server.balance = NULL;
    return unused;
}

typedef struct common_call {
    aco_http_client_t *client;
    const char *site;
    int is_done;
} common_call_t;

static void *calls_in_common(void *arg)
{
    common_call_t *call = arg;
    call->is_done = gets(call->client, call->site, "GET", "/files/small", 10, 0);
    return NULL;
}

/* A client for all threads, with one connection: of two calls one waits. */
static void *uses_common_limits(void *unused)
{
    const aco_http_client_options_t options = {
        .max_connections = 1, .max_per_host = 1, .is_shared = 1, .limits_in_all = 1};
    char address[ACO_IO_ADDRESS_SIZE], site[ACO_IO_ADDRESS_SIZE + 10];
    common_call_t calls[2];
    aco_http_client_t *client = aco_http_client_new(&options);
    service_t s = {aco_io_listen("tcp4", "127.0.0.1", "0", NULL), {0}};
    aco_t *task = aco_spawn(serves, &s, NULL), *tasks[2];
    is_done = client && s.listener >= 0 && aco_io_local_address(s.listener, address, sizeof address) == 0;
    aco_task_yield();
    if (is_done) {
        snprintf(site, sizeof site, "http://%s", address);
        for (int i = 0; i < 2; i++) {
            calls[i] = (common_call_t){client, site, 0};
            CHECK((tasks[i] = aco_spawn(calls_in_common, &calls[i], NULL)) != NULL);
        }
        for (int i = 0; i < 2; i++)
            CHECK_EQ(aco_join(tasks[i], NULL), 0);
        is_done = calls[0].is_done && calls[1].is_done;
    }
    aco_http_client_destroy(client);
    aco_scope_cancel(&s.scope);
    CHECK_EQ(aco_join(task, NULL), 0);
    return unused;
}

static aco_function_t scenario = uses;

static void run_scenario(void)
{
    aco_t *task = aco_spawn(scenario, NULL, NULL);
    int before = count_descriptors();
    memset(counts, 0, sizeof counts);
    CHECK(task != NULL);
    CHECK_EQ(aco_run(), 0);
    __atomic_store_n(&target, -1, __ATOMIC_RELAXED);
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK_EQ(count_descriptors(), before);
}

/* The next call to fail. OpenSSL allocates thousands of times: of later calls, some. */
static int after(int which)
{
    return position + 1 + (which == F_openssl_malloc ? position / 20 : 0);
}

static int fail_everywhere(void)
{
    int injected = 0;
    for (int which = 0; which < F_COUNT; which++)
        for (const int *e = functions[which].errors; *e; e++)
            for (position = 1;; position = after(which), injected++) {
                error = *e;
                target = which;
                run_scenario();
                if (counts[which] < position)
                    break;
                if (*e == EINTR && !is_done)
                    fprintf(stderr, "%s, call %d: EINTR was noticed\n", functions[which].name, position);
                CHECK(is_done || *e != EINTR);
            }
    run_scenario();
    CHECK(is_done);
    return injected;
}

/* Each failure of memory in this scenario. How many. */
static int fail_memory(aco_function_t in)
{
    error = ENOMEM;
    scenario = in;
    for (position = 1;; position++) {
        target = F_aco__service_allocate;
        run_scenario();
        if (counts[F_aco__service_allocate] < position)
            break;
    }
    CHECK(is_done);
    scenario = uses;
    return position - 1;
}

/* ---- OpenSSL's memory ---- */

#ifdef HTTP_WITH_TLS
static void *ssl_malloc(size_t n, const char *file, int line)
{
    (void)file, (void)line;
    return fails(F_openssl_malloc) ? NULL : malloc(n);
}

static void *ssl_realloc(void *p, size_t n, const char *file, int line)
{
    (void)file, (void)line;
    return fails(F_openssl_malloc) ? NULL : realloc(p, n);
}

static void ssl_free(void *p, const char *file, int line)
{
    (void)file, (void)line;
    free(p);
}

static certificate_t authority, leaf;

static aco_tls_config_t *make_config(unsigned flags)
{
    aco_tls_config_t *config = aco_tls_config_new(flags);
    int failed = !config || aco_tls_config_alpn(config, "http/1.1") != 0;
    if (!failed)
        failed = flags & ACO_TLS_SERVER ? aco_tls_config_certificate(config, leaf.file, leaf.key_file) != 0
                                        : aco_tls_config_trust(config, authority.file) != 0;
    CHECK_EQ(ERR_peek_error(), 0);
    if (!failed)
        return config;
    if (config)
        CHECK_EQ(aco_tls_config_destroy(config), 0);
    return NULL;
}

static int fail_configs(void)
{
    int injected = 0;
    for (unsigned flags = ACO_TLS_SERVER; flags <= ACO_TLS_NO_SYSTEM_STORE; flags++)
        for (position = 1;; position = after(F_openssl_malloc), injected++) {
            aco_tls_config_t *config;
            memset(counts, 0, sizeof counts);
            error = ENOMEM;
            target = F_openssl_malloc;
            config = make_config(flags);
            target = -1;
            if (config)
                CHECK_EQ(aco_tls_config_destroy(config), 0);
            if (counts[F_openssl_malloc] < position) {
                CHECK(config != NULL);
                break;
            }
        }
    return injected;
}

/* Each of the first requests of a certificate: fail_configs() leaves some out. */
static int fail_certificate(void)
{
    enum { FIRST = 20 };
    static const char call[] = "aco_tls_config_certificate";
    aco_tls_config_t *config = make_config(ACO_TLS_SERVER);
    error = ENOMEM;
    for (position = 1; position <= FIRST; position++) {
        CHECK(aco_io_close(-1) != 0); /* so that the last message is another */
        memset(counts, 0, sizeof counts);
        target = F_openssl_malloc;
        if (aco_tls_config_certificate(config, leaf.file, leaf.key_file) != 0)
            CHECK(strncmp(aco_error_message(), call, sizeof call - 1) == 0);
        target = -1;
    }
    CHECK_EQ(aco_tls_config_destroy(config), 0);
    return FIRST;
}

/* Lack of memory is told from wrong protocols. */
static int fail_protocols(unsigned flags)
{
    aco_tls_config_t *config = make_config(flags);
    int is_set = 0;
    error = ENOMEM;
    for (position = 1; !is_set; position++) {
        memset(counts, 0, sizeof counts);
        errno = 0;
        target = F_openssl_malloc;
        is_set = aco_tls_config_alpn(config, "http/1.1,http/1.0") == 0;
        target = -1;
        CHECK_EQ(is_set ? ENOMEM : errno, ENOMEM);
    }
    CHECK_EQ(aco_tls_config_destroy(config), 0);
    return position - 2;
}

static int fail_tls(void)
{
    aco_tls_config_t *of_server, *of_client;
    int injected;
    make_certificate(&authority, "root", &(how_t){0});
    make_certificate(&leaf, "leaf", &(how_t){"DNS:localhost", .issuer = &authority});
    injected = fail_configs() + fail_certificate();
    injected += fail_protocols(ACO_TLS_SERVER) + fail_protocols(ACO_TLS_NO_SYSTEM_STORE);
    of_server = make_config(ACO_TLS_SERVER);
    of_client = make_config(ACO_TLS_NO_SYSTEM_STORE);
    CHECK(of_server && of_client && aco_tls_config_sessions(of_client, 1) == 0);
    server.open = aco_tls_http_accept;
    server.open_arg = of_server;
    client_options.open = aco_tls_http_connect;
    client_options.open_arg = of_client;
    scheme = "https";
    run_scenario();
    CHECK(is_done);
    CHECK_EQ(looks, 3); /* the two sides read once, and the client looks whether its connection is still there */
    injected += fail_everywhere();
    aco_tls_config_destroy(of_server);
    aco_tls_config_destroy(of_client);
    free_certificate(&authority);
    free_certificate(&leaf);
    return injected;
}
#endif

static void *begins(void *unused) /* makes what a thread has for I/O and files: descriptors */
{
    aco_file_status_t status;
    CHECK_EQ(aco_file_stat("/", &status), 0);
    CHECK_EQ(aco_io_close(aco_io_listen("tcp4", "127.0.0.1", "0", NULL)), 0);
    return unused;
}

static void make_file(const char *name, size_t n)
{
    char path[128];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", root, name);
    file = fopen(path, "w");
    CHECK(file && fwrite(large, 1, n, file) == n && fclose(file) == 0);
}

int main(void)
{
    static const aco_http_route_t routes[] = {{"GET", "/files/*", gives_file, NULL},
                                              {"POST", "/echo", gives_back, NULL},
                                              {"GET", "/move", moves, NULL},
                                              {"GET", "/coded", gives_coded, NULL},
                                              {NULL, NULL, NULL, NULL}};
    static const aco_http_route_t coded_routes[] = {
        {"POST", "/coded", gives_back, NULL}, {"GET", "/socket", echoes, NULL}, {NULL, NULL, NULL, NULL}};
    static const aco_http_middleware_t compressed[] = {{aco_http_compress, NULL}, {NULL, NULL}};
    static const aco_http_group_t groups[] = {{coded_routes, compressed}, {NULL, NULL}};
    char command[80];
    int injected;
#ifdef HTTP_WITH_TLS
    CHECK_EQ(CRYPTO_set_mem_functions(ssl_malloc, ssl_realloc, ssl_free), 1);
#endif
    replace_system();
    CHECK_EQ(setenv("ACO_FILES", "pool", 1), 0);
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)('a' + i % 26);
    large[LARGE - 1] = 0;
    strcpy(root, "/tmp/acorn-http-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
    make_file("large", LARGE);
    make_file("small", 10);
    server.routes = routes;
    server.groups = groups;
    scheme = "http";
    run_task(begins, NULL);
    run_scenario();
    CHECK(is_done);
    injected = fail_everywhere() + fail_memory(asks_long_host) + fail_memory(uses_all_of_it) +
               fail_memory(uses_codings) + fail_memory(uses_balance) + fail_memory(uses_common_limits);
    printf("plain: %d failures\n", injected);
#ifdef HTTP_WITH_TLS
    printf("by TLS: %d failures\n", fail_tls());
#endif
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_EQ(system(command), 0);
    return check_result("http_failure");
}
