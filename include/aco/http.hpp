/* HTTP/1.1 servers and clients for C++17 and later, on top of <aco/http.h>. Header only; link acorn_http.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::http_server server;
 *   server.route("GET", "/users/{id}", [](aco::http_request &request) {
 *       request.reply(200, "text/plain", "user " + std::string(*request.param("id")));
 *   });
 *   server.serve(aco::listener("tcp", nullptr, "8080"));
 *
 *   aco::http_client client;
 *   std::string page = client.get("http://localhost:8080/users/7").read_all();
 *
 *   server.route("GET", "/echo", [](aco::http_request &request) {
 *       aco::websocket socket(request);
 *       while (auto message = socket.receive())
 *           socket.send(message->data, message->type);
 *   });
 *
 * The C headers say what all of this does. Failures are exceptions, as in <aco/io.hpp>: aco::error and aco::cancelled.
 *
 * If an exception leaves a handler, it is logged, and the server answers 500; or 413, 400 or 408 if a read of the body
 * has failed. If the reply has begun, the connection ends without the rest. An aco::error after the connection has
 * failed is not logged: `failed` of the options is called for the failure. Nor is an aco::cancelled that leaves a
 * handler, since it means that a scope has ended. */
#ifndef ACO_HTTP_HPP
#define ACO_HTTP_HPP

#include "stream.hpp"
#include "websocket.h"

#include <cstdio>
#include <deque>
#include <functional>

namespace aco {
inline namespace ACO__CPP_KIND {

namespace detail {

inline std::optional<std::string_view> text_of(const char *text)
{
    return text ? std::optional<std::string_view>(std::in_place, text) : std::nullopt;
}

} // namespace detail

/* A request, for its handler. The texts are valid until the handler returns. */
class http_request {
public:
    explicit http_request(aco_http_request_t *request) noexcept : request_(request) {}
    http_request(const http_request &) = delete;
    http_request &operator=(const http_request &) = delete;

    std::string_view method() const noexcept { return request_->method; }
    std::string_view target() const noexcept { return request_->target; }
    std::string_view path() const noexcept { return request_->path; }
    std::string_view host() const noexcept { return request_->host; }
    std::int64_t length() const noexcept { return request_->length; }
    std::optional<std::string_view> header(const char *name) const
    {
        return detail::text_of(aco_http_request_header(request_, name));
    }
    std::optional<std::string_view> param(const char *name) const
    {
        return detail::text_of(aco_http_request_param(request_, name));
    }
    /* Throws aco::error if the value has a wrong escape. */
    std::optional<std::string_view> query(const char *name) const
    {
        const char *value = aco_http_request_query(request_, name);
        detail::io_check(value || errno == 0 ? 0 : -1, "aco::http_request::query");
        return detail::text_of(value);
    }

    /* Returns the number of bytes; 0 at the end of the body. */
    std::size_t read(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_http_request_read_at(request_, p, n, location), "aco::http_request::read");
    }
    std::string_view read_all(std::size_t most, const char *location = ACO__CALLER)
    {
        std::size_t n = 0;
        const char *bytes = aco_http_request_read_all_at(request_, most, &n, location);
        detail::io_check(bytes ? 0 : -1, "aco::http_request::read_all");
        return std::string_view(bytes, n);
    }

    http_request &add_header(const std::string &name, const std::string &value)
    {
        /* C would take only what is before a NUL. */
        if (name.find('\0') != std::string::npos || value.find('\0') != std::string::npos)
            detail::refused(EINVAL, "aco::http_request::add_header", nullptr, "the name or value has a NUL");
        detail::io_check(aco_http_reply_header(request_, name.c_str(), value.c_str()), "aco::http_request::add_header");
        return *this;
    }
    /* A `type` of nullptr means none. */
    void reply(int status, const char *type, std::string_view body, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_http_reply_at(request_, status, type, body.data(), body.size(), location),
                         "aco::http_request::reply");
    }
    void begin(int status, const char *type, std::int64_t length = -1, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_http_reply_begin_at(request_, status, type, length, location), "aco::http_request::begin");
    }
    void write(std::string_view part, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_http_reply_write_at(request_, part.data(), part.size(), location),
                         "aco::http_request::write");
    }
    void flush(const char *location = ACO__CALLER)
    {
        detail::io_check(aco_http_reply_flush_at(request_, location), "aco::http_request::flush");
    }
    /* Writes a part of a file: aco_http_reply_write_file(). */
    void write_file(int fd, std::int64_t offset, std::int64_t n, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_http_reply_write_file_at(request_, fd, offset, n, location),
                         "aco::http_request::write_file");
    }
    /* The reply cannot be completed: the client sees a failure. */
    void abort() noexcept { aco_http_reply_abort(request_); }
    void serve_file(const char *root, const char *path, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_http_reply_file_at(request_, root, path, location), "aco::http_request::serve_file");
    }
    /* The connection, for another protocol, and what was read of it behind the request, which is valid until the
     * handler returns: aco_http_take_over(). */
    std::pair<stream, std::string_view> take_over(const char *location = ACO__CALLER)
    {
        const void *bytes = nullptr;
        std::size_t n = 0;
        aco_stream_t *taken = aco_http_take_over_at(request_, &bytes, &n, location);
        detail::io_check(taken ? 0 : -1, "aco::http_request::take_over");
        return {stream(taken), std::string_view(static_cast<const char *>(bytes), n)};
    }
    bool is_draining() const noexcept { return aco_http_is_draining(request_) != 0; }
    aco_http_request_t *native_handle() const noexcept { return request_; }

private:
    aco_http_request_t *request_;
};

/* A request becomes a connection that carries messages, until its handler returns. Several tasks may send. */
class websocket {
public:
    struct message {
        int type;              /* ACO_WEBSOCKET_TEXT, ACO_WEBSOCKET_BINARY */
        std::string_view data; /* valid until the next message is received */
    };

    /* If the request is no right handshake, answers it and throws. */
    explicit websocket(http_request &request, const aco_websocket_options_t &options = {},
                       const char *location = ACO__CALLER)
        : socket_(aco_websocket_accept_at(request.native_handle(), &options, location))
    {
        detail::io_check(socket_ ? 0 : -1, "aco::websocket");
    }
    websocket(const websocket &) = delete;
    websocket &operator=(const websocket &) = delete;

    /* Returns nothing if the peer has closed. */
    std::optional<message> receive(const char *location = ACO__CALLER)
    {
        const char *data = nullptr;
        std::size_t n = 0;
        const int type = aco_websocket_receive_at(socket_, &data, &n, location);
        detail::io_check(type < 0 ? -1 : 0, "aco::websocket::receive");
        return type ? std::optional<message>({type, std::string_view(data, n)}) : std::nullopt;
    }
    void send(std::string_view data, int type = ACO_WEBSOCKET_TEXT, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_websocket_send_at(socket_, type, data.data(), data.size(), location),
                         "aco::websocket::send");
    }
    void close(int code = 1000, const char *reason = nullptr, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_websocket_close_at(socket_, code, reason, location), "aco::websocket::close");
    }
    aco_websocket_t *native_handle() const noexcept { return socket_; }

private:
    aco_websocket_t *socket_;
};

/* A server and its routes. They must not change while it serves, nor after the first serve_connection(). */
class http_server {
public:
    using handler = std::function<void(http_request &)>;

    explicit http_server(const aco_http_server_options_t &options = aco_http_server_options_t()) : options_(options) {}
    http_server(const http_server &) = delete;
    http_server &operator=(const http_server &) = delete;
    ~http_server()
    {
        aco_http_server_destroy(shared_);
    }

    /* A `method` of nullptr means any. */
    http_server &route(const char *method, std::string path, handler f)
    {
        handlers_.push_back({method ? std::optional<std::string>(method) : std::nullopt, std::move(path), std::move(f),
                             &failed_});
        return *this;
    }
    /* `f` gets the exception that leaves a handler; nullptr if it is no std::exception. Default: a line on stderr. */
    http_server &on_failure(std::function<void(const http_request &, const std::exception *)> f)
    {
        failed_ = std::move(f);
        return *this;
    }
    aco_http_server_options_t &options() noexcept { return options_; }

    /* Throws aco::cancelled when a scope of the caller ends, and aco::error if accepting fails. */
    void serve(listener &&door, const char *location = ACO__CALLER)
    {
        const std::vector<aco_http_route_t> routes = table();
        aco_http_server_options_t options = options_;
        options.routes = routes.data();
        detail::io_check(aco_http_serve_at(door.detach(), &options, location), "aco::http_server::serve");
    }
    /* Serves a connection that was accepted elsewhere, in the calling task: aco_http_serve_connection(). Any number of
     * tasks may call it. `begun` is what was read of the connection already. */
    void serve_connection(stream &&connection, std::string_view begun = {}, const char *location = ACO__CALLER)
    {
        aco_http_server_t *server = shared();
        detail::io_check(
            aco_http_serve_connection_at(server, connection.release(), begun.data(), begun.size(), location),
            "aco::http_server::serve_connection");
    }
    /* Stops serve_connection(): aco_http_server_stop(). */
    void stop()
    {
        aco_http_server_stop(shared());
    }

private:
    using failure = std::function<void(const http_request &, const std::exception *)>;
    struct entry {
        std::optional<std::string> method;
        std::string path;
        handler f;
        const failure *failed;
    };

    std::vector<aco_http_route_t> table()
    {
        std::vector<aco_http_route_t> routes;
        for (entry &e : handlers_)
            routes.push_back({e.method ? e.method->c_str() : nullptr, e.path.c_str(), run, &e});
        routes.push_back({nullptr, nullptr, nullptr, nullptr});
        return routes;
    }
    aco_http_server_t *shared()
    {
        if (!shared_) {
            routes_ = table();
            aco_http_server_options_t options = options_;
            options.routes = routes_.data();
            shared_ = aco_http_server_new(&options);
            detail::io_check(shared_ ? 0 : -1, "aco::http_server");
        }
        return shared_;
    }
    static void log_failure(const http_request &request, const std::exception *e)
    {
        std::fprintf(stderr, "%s %s: %s\n", request.native_handle()->method, request.native_handle()->target,
                     e ? e->what() : "an unknown exception");
    }
    static void fail(http_request &request, const failure &failed, const std::exception *e)
    {
        aco_http_reply_abort(request.native_handle());
        try {
            failed ? failed(request, e) : log_failure(request, e);
        } catch (...) {
            detail::caught(); /* there is nobody to tell */
        }
    }
    static void run(aco_http_request_t *raw, void *arg)
    {
        const entry *e = static_cast<entry *>(arg);
        http_request request(raw);
        try {
            e->f(request);
        } catch (const cancelled &) { /* a scope ended: the handler's own, or the server's */
            aco_http_reply_abort(raw);
        } catch (const error &left) {
            aco_http_connection_error(raw) ? aco_http_reply_abort(raw) : fail(request, *e->failed, &left);
        } catch (const std::exception &left) {
            fail(request, *e->failed, &left);
        } catch (...) {
            detail::caught();
            fail(request, *e->failed, nullptr);
        }
    }

    aco_http_server_options_t options_;
    std::deque<entry> handlers_;
    std::vector<aco_http_route_t> routes_;
    aco_http_server_t *shared_ = nullptr; /* of serve_connection() */
    failure failed_;
};

/* A response; its destructor ends it. */
class http_response {
public:
    explicit http_response(aco_http_response_t *response) noexcept : response_(response) {}
    http_response(http_response &&from) noexcept : response_(std::exchange(from.response_, nullptr)) {}
    http_response &operator=(http_response &&from) noexcept
    {
        std::swap(response_, from.response_);
        return *this;
    }
    ~http_response() { aco_http_response_end(response_); }

    int status() const noexcept { return response_->status; }
    std::int64_t length() const noexcept { return response_->length; }
    std::optional<std::string_view> header(const char *name) const
    {
        return detail::text_of(aco_http_response_header(response_, name));
    }
    /* Returns the number of bytes; 0 at the end of the body. */
    std::size_t read(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_http_response_read_at(response_, p, n, location), "aco::http_response::read");
    }
    /* Returns all that is left of the body. Throws aco::error with EFBIG if that is more than `most` bytes. */
    std::string read_all(std::size_t most = 64 << 20, const char *location = ACO__CALLER)
    {
        std::string all;
        char part[4096];
        while (const std::size_t n = read(part, sizeof part, location)) {
            if (n > most - all.size())
                detail::refused(EFBIG, "aco::http_response::read_all", nullptr, "the body is too long");
            all.append(part, n);
        }
        return all;
    }
    aco_http_response_t *native_handle() const noexcept { return response_; }

private:
    aco_http_response_t *response_;
};

/* A client. It outlives its responses, and `options` outlives it. */
class http_client {
public:
    explicit http_client(const aco_http_client_options_t *options = nullptr) : client_(aco_http_client_new(options))
    {
        detail::io_check(client_ ? 0 : -1, "aco::http_client");
    }
    http_client(const http_client &) = delete;
    http_client &operator=(const http_client &) = delete;
    ~http_client() { aco_http_client_destroy(client_); }

    http_response call(const aco_http_call_t &call, const char *location = ACO__CALLER)
    {
        aco_http_response_t *response = aco_http_call_at(client_, &call, location);
        detail::io_check(response ? 0 : -1, "aco::http_client::call");
        return http_response(response);
    }
    http_response get(const std::string &url, const char *location = ACO__CALLER)
    {
        aco_http_call_t c = {};
        c.url = url.c_str();
        return call(c, location);
    }
    http_response post(const std::string &url, const char *type, std::string_view body,
                       const char *location = ACO__CALLER)
    {
        const aco_http_header_t header = {"Content-Type", type};
        aco_http_call_t c = {};
        c.method = "POST";
        c.url = url.c_str();
        c.headers = &header;
        c.header_count = type ? 1 : 0;
        c.body = body.data();
        c.length = static_cast<std::int64_t>(body.size());
        return call(c, location);
    }
    aco_http_client_t *native_handle() const noexcept { return client_; }

private:
    aco_http_client_t *client_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
