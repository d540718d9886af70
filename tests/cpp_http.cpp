// Promises of <aco/http.hpp>: servers with callables as handlers, clients, exceptions out of handlers; over TLS too.
#include "aco/cookie_jar.hpp"
#include "aco/http.hpp"
#include "aco/url.hpp"
#ifdef HTTP_WITH_TLS
#include "aco/tls.hpp"
#include "tls_certificates.h"
#endif

#include "sanitizers.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include <pthread.h>

namespace
{

std::vector<std::string> failures;

struct no_exception {
};

// What f() throws: the code of aco::error.
template <class F> int thrown_by(F &&f)
{
    try {
        f();
    } catch (const aco::error &e) {
        return e.code().value();
    }
    return 0;
}

void add_routes(aco::http_server &server)
{
    server.route("GET", "/hello/{name}", [](aco::http_request &request) {
        EXPECT_EQ(request.method(), "GET");
        EXPECT_FALSE(request.param("none") || request.header("none") || request.query("none"));
        request.add_header("X-Query", std::string(request.query("q").value_or("-")));
        request.reply(200, "text/plain", "hello " + std::string(*request.param("name")));
    });
    server.route("POST", "/echo", [](aco::http_request &request) {
        const std::string_view body = request.read_all(100);
        request.begin(200, nullptr);
        request.write(body.substr(0, 1));
        request.flush();
        request.write(body.substr(1));
    });
    server.route(nullptr, "/throw", [](aco::http_request &) { throw std::runtime_error("it broke"); });
    server.route("GET", "/throw/late", [](aco::http_request &request) {
        request.begin(200, nullptr);
        request.write("half");
        throw no_exception();
    });
    server.route("GET", "/file", [](aco::http_request &request) {
        const std::unique_ptr<FILE, int (*)(FILE *)> file(tmpfile(), fclose);
        fputs("all of the file", file.get());
        fflush(file.get());
        request.begin(200, "text/plain", 6);
        request.write_file(fileno(file.get()), 4, 6);
        EXPECT_EQ(thrown_by([&] { request.write_file(fileno(file.get()), 0, -1); }), EINVAL);
    });
    server.route("GET", "/abort", [](aco::http_request &request) {
        request.begin(200, nullptr);
        request.write("half");
        request.abort();
    });
    server.route("GET", "/nul", [](aco::http_request &request) { request.add_header("X", std::string("a\0b", 3)); });
    server.route("GET", "/flood", [](aco::http_request &request) {
        request.begin(200, nullptr);
        for (;;)
            request.write(std::string(1 << 16, 'x'));
    });
    server.route("GET", "/socket", [](aco::http_request &request) {
        aco::websocket socket(request);
        while (auto message = socket.receive())
            socket.send(std::string(message->data) + "!", message->type);
        EXPECT_EQ(aco_websocket_code(socket.native_handle()), 1000);
    });
    server.route("GET", "/take", [](aco::http_request &request) {
        auto [peer, begun] = request.take_over();
        EXPECT_EQ(thrown_by([&] { request.reply(200, nullptr, ""); }), EBUSY);
        EXPECT_EQ(thrown_by([&] { request.take_over(); }), EBUSY);
        std::string all(begun);
        char part[3];
        while (const std::size_t n = peer.read(part, sizeof part))
            all.append(part, n);
        peer.write_all("taken: " + all);
    });
    server.around([](aco::http_request &request, const aco::http_next &next) {
        request.add_header("X-Around", "1");
        next();
    });
    aco::http_routes &group = server.group();
    group.around(
        [secret = std::make_unique<std::string>("me")](aco::http_request &request, const aco::http_next &next) {
            if (request.header("x-user") == *secret)
                next();
            else if (request.header("x-user"))
                throw std::runtime_error("a stranger");
            else
                request.reply(403, nullptr, "");
        });
    group.route("GET", "/move/{n}", [text = std::make_unique<std::string>("moved")](aco::http_request &request) {
        request.reply(200, nullptr, *text + request.native_handle()->route->path);
    });
    server.route("POST", "/form", [](aco::http_request &request) {
        std::string all(request.cookie("a").value_or("-"));
        aco::http_form form(request);
        aco_http_cookie_t cookie = {};
        cookie.name = "a";
        EXPECT_EQ(thrown_by([&] { request.add_cookie(cookie); }), EINVAL);
        cookie.value = "1";
        request.add_cookie(cookie);
        while (const aco_http_part_t *part = form.next())
            all += std::string(part->name) + ":" + std::string(form.read_all(10)) + ";";
        aco::event_stream events(request);
        EXPECT_FALSE(events.last_id());
        events.send(all);
        events.ping();
    });
    server.on_refusal([own = std::make_unique<int>(410)](aco::http_request &request, int status) {
        if (status == 404)
            request.reply(*own, nullptr, "gone");
    });
    server.on_failure([](const aco::http_request &request, const std::exception *e) {
        failures.push_back(std::string(request.path()) + ": " + (e ? e->what() : "?"));
    });
}

// A WebSocket's client. What comes behind the reply's head.
template <class Stream> std::string use_socket(Stream &stream, const std::string &frames)
{
    std::string got;
    char part[100];
    stream.write_all("GET /socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n" +
                     frames);
    while (const std::size_t n = stream.read(part, sizeof part))
        got.append(part, n);
    return got.substr(got.find("\r\n\r\n") + 4);
}

// Another protocol goes on behind a request: all that is sent comes back, at the end.
template <class Connect> void use_taken(Connect &&connect)
{
    auto stream = connect();
    std::string got;
    char part[100];
    stream.write_all("GET /take HTTP/1.1\r\nHost: localhost\r\n\r\nfirst");
    stream.write_all(" and more");
    stream.shutdown(SHUT_WR);
    while (const std::size_t n = stream.read(part, sizeof part))
        got.append(part, n);
    EXPECT_EQ(got, "taken: first and more");
}

template <class Connect> void use_sockets(Connect &&connect)
{
    use_taken(connect);
    const std::string close("\x88\x82\0\0\0\0\x03\xe8", 8), large(3000, 'x');
    auto first = connect();
    EXPECT_EQ(use_socket(first, std::string("\x81\x82\0\0\0\0hi", 8) + close), "\x81\3hi!\x88\2\x03\xe8");
    auto second = connect();
    EXPECT_EQ(use_socket(second, std::string("\x82\xfe\x0b\xb8\0\0\0\0", 8) + large + close),
              "\x82\x7e\x0b\xb9" + large + "!\x88\2\x03\xe8");
    auto third = connect();
    EXPECT_EQ(use_socket(third, std::string("\x81\x81\0\0\0\0\xff", 7)).substr(2, 2), "\x03\xef");
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_NE(failures[0].find("/socket: aco_websocket_receive: the text"), std::string::npos) << failures[0];
    failures.clear();
}

std::string status_and_body(aco::http_client &client, const std::string &url, const char *user)
{
    const aco_http_header_t header = {"X-User", user};
    aco_http_call_t call = {};
    call.url = url.c_str();
    call.headers = &header;
    call.header_count = 1;
    aco::http_response response = client.call(call);
    return std::to_string(response.status()) + " " + response.read_all();
}

void use_server(aco::http_client &client, const std::string &site)
{
    char byte;
    aco::http_response hello = client.get(site + "/hello/you?q=a+b");
    EXPECT_EQ(hello.status(), 200);
    EXPECT_EQ(hello.header("x-query").value_or(""), "a b");
    EXPECT_EQ(hello.length(), 9);
    EXPECT_EQ(hello.url(), site + "/hello/you?q=a+b");
    EXPECT_EQ(hello.redirect(0), std::string(hello.url()));
    EXPECT_TRUE(hello.redirects() == 0 && !hello.is_decoded());
    EXPECT_EQ(hello.read_all(), "hello you");
    EXPECT_EQ(hello.read(&byte, 1), 0u);
    EXPECT_EQ(thrown_by([&] { client.get(site + "/hello/you").read_all(5); }), EFBIG);
    EXPECT_EQ(client.post(site + "/echo", "text/plain", "body").read_all(), "body");
    EXPECT_EQ(client.post(site + "/echo", nullptr, std::string(101, 'x')).status(), 413);
    EXPECT_EQ(client.post(site + "/form", "application/x-www-form-urlencoded", "b=1&c=2").read_all(),
              "data: -b:1;c:2;\n\n:\n\n");
    EXPECT_EQ(client.post(site + "/form", "application/x-www-form-urlencoded", "b=%").status(), 400);
    EXPECT_NE(failures.back().find("aco_http_form"), std::string::npos) << failures.back();
    failures.pop_back();
    EXPECT_EQ(client.get(site + "/throw").status(), 500);
    EXPECT_EQ(client.get(site + "/none").header("x-around").value_or(""), "1");
    EXPECT_EQ(client.get(site + "/none").status(), 410);
    EXPECT_EQ(client.get(site + "/move/1").status(), 403);
    EXPECT_EQ(status_and_body(client, site + "/move/1", "me"), "200 moved/move/{n}");
    EXPECT_EQ(status_and_body(client, site + "/move/1", "you"), "500 500 Internal Server Error\n");
    EXPECT_EQ(failures.back(), "/move/1: a stranger");
    failures.pop_back();
    EXPECT_EQ(client.get(site + "/nul").status(), 500);
    EXPECT_EQ(client.get(site + "/hello/you?q=%zz").status(), 500);
    aco::http_response late = client.get(site + "/throw/late");
    EXPECT_EQ(late.status(), 200);
    EXPECT_NE(thrown_by([&] { late.read_all(); }), 0);
    EXPECT_EQ(client.get(site + "/file").read_all(), "of the");
    EXPECT_NE(thrown_by([&] { client.get(site + "/abort").read_all(); }), 0);
    EXPECT_EQ(client.get(site + "/hello/again").read_all(), "hello again");
    EXPECT_EQ(thrown_by([&] { client.get("gopher://a/"); }), EINVAL);
    ASSERT_EQ(failures.size(), 5u);
    EXPECT_NE(failures[0].find("/echo: aco_http_request_read_all"), std::string::npos) << failures[0];
    EXPECT_EQ(failures[1], "/throw: it broke");
    EXPECT_NE(failures[2].find("NUL"), std::string::npos);
    EXPECT_EQ(failures[4], "/throw/late: ?");
    failures.clear();
}

// By the library's client, over TLS too.
void use_socket_client(aco::http_client &client, const std::string &site)
{
    const std::string url = "ws" + site.substr(4), large(100000, 'x');
    aco_websocket_options_t options = {};
    options.compresses = ACO_WEBSOCKET_COMPRESS;
    aco::websocket socket(client, url + "/socket", options, {{"X-Own", "1"}});
    socket.send("hi");
    EXPECT_EQ(socket.receive()->data, "hi!");
    socket.send(large, ACO_WEBSOCKET_BINARY);
    EXPECT_EQ(socket.receive()->data, large + "!");
    socket.close();
    EXPECT_FALSE(socket.receive());
    EXPECT_EQ(thrown_by([&] { aco::websocket(client, url + "/hello/you"); }), EPROTO);
    EXPECT_EQ(thrown_by([&] { aco::websocket(client, site + "/socket"); }), EINVAL);
}

// A client that leaves is no failure of a handler.
template <class Connect> void leave(Connect &&connect, const std::uint64_t &left)
{
    const std::uint64_t before = left;
    {
        auto stream = connect();
        stream.write_all("GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n");
        char byte;
        stream.read(&byte, 1);
    }
    while (left == before)
        aco::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(failures.empty()) << failures[0];
    failures.clear();
}

void serve_and_use(const aco_http_server_options_t &server_options, const aco_http_client_options_t *client_options,
                   const std::string &scheme)
{
    bool was_cancelled = false;
    std::uint64_t counts[ACO_HTTP_FAILURES] = {};
    aco::spawn([&] {
        aco::access_log log({{"/dev/null", ACO_ACCESS_LOG_JSON}});
        aco::http_server server(server_options);
        log.attach(server.options());
        server.options().failures = counts;
        add_routes(server);
        aco::listener door("tcp4", "127.0.0.1", "0");
        const std::string address = door.local_address();
        aco::task_group group;
        group.spawn([&] {
            try {
                server.serve(std::move(door));
            } catch (const aco::cancelled &) {
                was_cancelled = true;
                throw;
            }
        });
        group.spawn([&] {
            {
                aco::http_client client(client_options);
                const std::string port = address.substr(address.rfind(':') + 1);
                use_server(client, scheme + "localhost:" + port);
                use_socket_client(client, scheme + "localhost:" + port);
                const auto use = [&](auto &&connect) {
                    use_sockets(connect);
                    leave(connect, counts[ACO_HTTP_LEFT]);
                };
                if (!client_options)
                    use([&] { return aco::dial("tcp", "127.0.0.1", port.c_str()); });
#ifdef HTTP_WITH_TLS
                else
                    use([&] {
                        auto *config = static_cast<aco_tls_config_t *>(client_options->open_arg);
                        return aco::tls(aco_tls_connect(aco_io_dial("tcp", "127.0.0.1", port.c_str(), nullptr),
                                                        "localhost", config));
                    });
#endif
            }
            group.cancel();
        });
        group.wait();
    });
    EXPECT_EQ(aco_run(), 0) << aco_error_message();
    EXPECT_TRUE(was_cancelled);
}

#if defined(__GLIBC__) && defined(__GLIBCXX__) // elsewhere pthread_cancel() need not unwind
struct cancelled_server {
    pthread_barrier_t listens;
    std::string address;
};

extern "C" void *serve_and_be_cancelled(void *arg)
{
    aco::spawn([shared = static_cast<cancelled_server *>(arg)] {
        aco::http_server server;
        aco::listener door("tcp4", "127.0.0.1", "0");
        server.route(nullptr, "/", [](aco::http_request &) {
            pthread_cancel(pthread_self());
            pthread_testcancel();
        });
        shared->address = door.local_address();
        pthread_barrier_wait(&shared->listens);
        server.serve(std::move(door));
    }).detach();
    aco_run();
    return nullptr;
}

// Promise: pthread_cancel() in a handler ends the thread; the handler's failure function is not called.
TEST(http, thread_cancelled)
{
    if (SANITIZED)
        GTEST_SKIP() << "its pthread_exit() does not know tasks";
    cancelled_server shared;
    pthread_t thread;
    void *result = nullptr;
    pthread_barrier_init(&shared.listens, nullptr, 2);
    ASSERT_EQ(pthread_create(&thread, nullptr, serve_and_be_cancelled, &shared), 0);
    pthread_barrier_wait(&shared.listens);
    auto client = aco::spawn([&] {
        const std::string port = shared.address.substr(shared.address.rfind(':') + 1);
        aco::dial("tcp", "127.0.0.1", port.c_str()).write_all("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    });
    EXPECT_EQ(aco_run(), 0) << aco_error_message();
    client.join();
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    pthread_barrier_destroy(&shared.listens);
}
#endif

TEST(http, urls)
{
    const aco::url url("https://u@example.org:8443/a/b?c#d");
    const aco::url copy = url;
    EXPECT_EQ(copy.scheme(), "https");
    EXPECT_EQ(copy.user(), "u");
    EXPECT_EQ(copy.host(), "example.org");
    EXPECT_EQ(copy.port(), "8443");
    EXPECT_EQ(copy.path(), "/a/b");
    EXPECT_EQ(copy.query(), "c");
    EXPECT_EQ(copy.fragment(), "d");
    EXPECT_EQ(aco::url("a").scheme().data(), nullptr);
    EXPECT_EQ(aco::resolve_url("http://a/b/c?d", "../e"), "http://a/e");
    EXPECT_EQ(aco::normalize_url("HTTP://A"), "http://a/");
    EXPECT_EQ(aco::escape_url("a b/c", "/"), "a%20b/c");
    EXPECT_EQ(aco::unescape_url("a%20b"), "a b");
    EXPECT_EQ(thrown_by([] { aco::url("http://a b"); }), EINVAL);
    EXPECT_EQ(thrown_by([] { aco::unescape_url("%"); }), EINVAL);
}

TEST(http, cookies_of_clients)
{
    aco::cookie_jar jar([](const char *domain) { return std::string(domain) == "org"; }), careful;
    int count = 0;
    EXPECT_TRUE(jar.set("http://www.example.org/", "a=" + std::string(1500, 'b') + "; Domain=example.org"));
    EXPECT_FALSE(jar.set("http://www.example.org/", "a=b; Domain=org"));
    EXPECT_FALSE(careful.set("http://www.example.org/", "a=b; Domain=example.org"));
    EXPECT_EQ(jar.get("http://example.org/").size(), 1502u);
    jar.each([&count](const aco_cookie_t &cookie) { count += cookie.domain == std::string("example.org"); });
    EXPECT_EQ(count, 1);
    EXPECT_THROW(jar.each([](const aco_cookie_t &) { throw std::runtime_error("no more"); }), std::runtime_error);
    jar.clear(true);
    EXPECT_EQ(jar.get("http://example.org/"), "");
    EXPECT_EQ(thrown_by([&jar] { jar.set("ftp://a", "a=b"); }), EINVAL);
}

TEST(http, plain)
{
    serve_and_use(aco_http_server_options_t(), nullptr, "http://");
}

extern "C" void reply_order(aco_http_request_t *request, void *path)
{
    const std::string order = std::string(aco_http_request_param(request, "order")) + static_cast<const char *>(path);
    aco_http_reply(request, 200, nullptr, order.data(), order.size());
}

extern "C" void go_on(aco_http_request_t *request, void *count)
{
    ++*static_cast<int *>(count);
    aco_http_next(request);
}

// Promise: routes, middleware and groups of the options are there beside the server's own.
TEST(http, tables_of_c)
{
    char route[] = "route", group[] = "group";
    int around = 0;
    const aco_http_route_t routes[] = {
        {"GET", "/own/{order}", reply_order, route}, {"GET", "/c/{order}", reply_order, route}, {}};
    const aco_http_route_t grouped[] = {{"GET", "/g/{order}", reply_order, group}, {}};
    const aco_http_middleware_t middleware[] = {{go_on, &around}, {}};
    const aco_http_group_t groups[] = {{grouped, nullptr}, {}};
    aco_http_server_options_t options = {};
    options.routes = routes;
    options.middleware = middleware;
    options.groups = groups;
    aco::spawn([&] {
        for (bool has_own_middleware : {false, true}) {
            aco::http_server server(options);
            server.route("GET", "/own/1", [](aco::http_request &request) { request.reply(200, nullptr, "own"); });
            if (has_own_middleware)
                server.around([](aco::http_request &, const aco::http_next &next) { next(); });
            aco::listener door("tcp4", "127.0.0.1", "0");
            const std::string address = door.local_address();
            aco::task_group serving;
            serving.spawn([&] { server.serve(std::move(door)); });
            aco_http_client_options_t shared = {};
            shared.is_shared = shared.limits_in_all = shared.max_connections = shared.max_per_host = 1;
            aco::http_client client(&shared);
            const std::string site = "http://" + address;
            around = 0;
            for (const char *path : {"/own/2", "/c/3", "/g/4"})
                EXPECT_EQ(client.get(site + path).read_all(), path[1] == 'g'   ? "4group"
                                                              : path[1] == 'c' ? "3route"
                                                                               : "2route");
            client.close_idle();
            EXPECT_EQ(client.get(site + "/own/1").read_all(), "own");
            EXPECT_EQ(around, 4);
            serving.cancel();
            serving.wait();
        }
    });
    ASSERT_EQ(aco_run(), 0) << aco_error_message();
}

// Promise: a connection that was accepted elsewhere, on any stream, with what was read of it; it ends with the server.
TEST(http, served_streams)
{
    aco::spawn([] {
        aco::http_server server;
        server.group()
            .around([](aco::http_request &, const aco::http_next &next) { next(); })
            .route("GET", "/", [](aco::http_request &request) { request.reply(200, nullptr, "hello"); });
        server.around([](aco::http_request &request, const aco::http_next &next) {
            request.add_header("X-Around", "1");
            next();
        });
        auto ends = aco::stream_pair(100);
        aco::stream &here = ends.first;
        aco::task_group group;
        group.spawn([&] { server.serve_connection(std::move(ends.second), "GET / HT"); });
        here.write_all("TP/1.1\r\nHost: a\r\n\r\n");
        aco::reader in(here);
        EXPECT_EQ(in.line(), "HTTP/1.1 200 OK");
        std::string head;
        for (auto line = in.line(); line && !line->empty(); line = in.line())
            head += std::string(*line) + "\n";
        EXPECT_NE(head.find("X-Around: 1\n"), std::string::npos) << head;
        EXPECT_EQ(in.peek(5), "hello");
        in.consume(5);
        server.stop();
        EXPECT_EQ(in.line(), std::nullopt);
        group.wait();
        EXPECT_EQ(thrown_by([&] { server.serve_connection(aco::stream_pair(1).first, std::string(1 << 20, 'x')); }),
                  EINVAL);
    });
    ASSERT_EQ(aco_run(), 0) << aco_error_message();
}

// Promise: a handler that waits is told when its server ends, and still replies. What else it throws passes.
TEST(http, drain)
{
    aco::spawn([] {
        aco::http_server server;
        std::string how;
        server.route("GET", "/", [&](aco::http_request &request) {
            EXPECT_TRUE(request.try_until_drain([] {}));
            EXPECT_THROW(request.try_until_drain([] { throw no_exception(); }), no_exception);
            EXPECT_THROW(request.try_until_drain([] { throw aco::cancelled(ETIMEDOUT); }), aco::cancelled);
            how = "waits";
            EXPECT_FALSE(request.try_until_drain([] { aco::sleep_for(std::chrono::hours(1)); }));
            request.reply(200, nullptr, "told");
        });
        auto ends = aco::stream_pair(1000);
        aco::task_group group;
        group.spawn([&] { server.serve_connection(std::move(ends.second), "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); });
        while (how.empty())
            aco::yield();
        server.stop();
        group.wait();
        char text[1000];
        const std::size_t n = ends.first.read(text, sizeof text);
        EXPECT_EQ(std::string_view(text, n).substr(n - 4), "told");
    });
    ASSERT_EQ(aco_run(), 0) << aco_error_message();
}

#ifdef HTTP_WITH_TLS
TEST(http, tls)
{
    certificate_t root, leaf;
    how_t how = {};
    make_certificate(&root, "root", &how);
    how.names = "DNS:localhost";
    how.issuer = &root;
    make_certificate(&leaf, "leaf", &how);
    {
        aco::tls_config of_server(ACO_TLS_SERVER), of_client(ACO_TLS_NO_SYSTEM_STORE);
        of_server.certificate(leaf.file, leaf.key_file).alpn("http/1.1");
        of_client.trust(root.file).alpn("http/1.1").sessions(1);
        aco_http_server_options_t server = {};
        server.open = aco_tls_http_accept;
        server.open_arg = of_server.native_handle();
        aco_http_client_options_t client = {};
        client.open = aco_tls_http_connect;
        client.open_arg = of_client.native_handle();
        serve_and_use(server, &client, "https://");
    }
    free_certificate(&root);
    free_certificate(&leaf);
}
#endif

} // namespace
