/* HTTP servers and clients for C++17 and later, on top of <aco/http.h>. Header only; link acorn_http.
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

#include "access_log.h"
#include "event_stream.h"
#include "http_cookies.h"
#include "http_forms.h"
#include "stream.hpp"
#include "websocket.h"

#include <cstdio>
#include <deque>
#include <functional>
#include <memory>

namespace aco {
inline namespace ACO__CPP_KIND {

namespace detail {

inline std::optional<std::string_view> text_of(const char *text)
{
    return text ? std::optional<std::string_view>(std::in_place, text) : std::nullopt;
}

} // namespace detail

inline bool http_has_http2() noexcept
{
    return aco_http_has_http2() != 0;
}

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
    std::optional<std::string_view> trailer(const char *name) const
    {
        return detail::text_of(aco_http_request_trailer(request_, name));
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

    std::optional<std::string_view> cookie(const char *name) const
    {
        const char *value = aco_http_request_cookie(request_, name);
        detail::io_check(value || errno == 0 ? 0 : -1, "aco::http_request::cookie");
        return detail::text_of(value);
    }

    /* Returns the number of bytes; 0 at the end of the body. */
    std::size_t read(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_http_request_read_at(request_, p, n, location), "aco::http_request::read");
    }
    /* Less than 0 means: none. */
    void limit_body(std::int64_t max_body, std::int64_t body_time) noexcept
    {
        aco_http_request_limit_body(request_, max_body, body_time);
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
    http_request &add_trailer(const std::string &name, const std::string &value)
    {
        if (name.find('\0') != std::string::npos || value.find('\0') != std::string::npos)
            detail::refused(EINVAL, "aco::http_request::add_trailer", nullptr, "the name or value has a NUL");
        detail::io_check(aco_http_reply_trailer(request_, name.c_str(), value.c_str()),
                         "aco::http_request::add_trailer");
        return *this;
    }
    http_request &add_cookie(const aco_http_cookie_t &cookie)
    {
        detail::io_check(aco_http_reply_cookie(request_, &cookie), "aco::http_request::add_cookie");
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
    /* Calls f() in a scope that ends when the server has been stopped: aco_http_drain_begin(). Returns false if f() was
     * left because of that. */
    template <class F> bool try_until_drain(F &&f, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_http_drain_begin_at(request_, location), "aco::http_request::try_until_drain");
        try {
            static_cast<void>(std::forward<F>(f)());
        } catch (const cancelled &) {
            if (aco_http_drain_end(request_) != 1)
                throw;
            return false;
        } catch (...) {
            static_cast<void>(aco_http_drain_end(request_));
            throw;
        }
        static_cast<void>(aco_http_drain_end(request_));
        return true;
    }
    aco_http_request_t *native_handle() const noexcept { return request_; }

private:
    aco_http_request_t *request_;
};

/* The form in a request's body. */
class http_form
{
  public:
    explicit http_form(http_request &request, const aco_http_form_options_t &options = {})
        : form_(aco_http_form_open(request.native_handle(), &options))
    {
        detail::io_check(form_ ? 0 : -1, "aco::http_form");
    }
    http_form(const http_form &) = delete;
    http_form &operator=(const http_form &) = delete;

    /* Returns the next part, valid until the next call; nullptr: there is none. */
    const aco_http_part_t *next(const char *location = ACO__CALLER)
    {
        const aco_http_part_t *part = aco_http_form_next_at(form_, location);
        detail::io_check(part || errno == 0 ? 0 : -1, "aco::http_form::next");
        return part;
    }
    /* Returns the number of bytes; 0 at the end of the part. */
    std::size_t read(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_http_form_read_at(form_, p, n, location), "aco::http_form::read");
    }
    std::string_view read_all(std::size_t most, const char *location = ACO__CALLER)
    {
        std::size_t n = 0;
        const char *bytes = aco_http_form_read_all_at(form_, most, &n, location);
        detail::io_check(bytes ? 0 : -1, "aco::http_form::read_all");
        return std::string_view(bytes, n);
    }

  private:
    aco_http_form_t *form_;
};

/* A reply of server-sent events. */
class event_stream
{
  public:
    explicit event_stream(http_request &request, const char *location = ACO__CALLER) : request_(request.native_handle())
    {
        detail::io_check(aco_event_stream_begin_at(request_, location), "aco::event_stream");
    }

    std::optional<std::string_view> last_id() const
    {
        return detail::text_of(aco_event_stream_last_id(request_));
    }
    void send(const aco_event_stream_event_t &event, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_event_stream_send_at(request_, &event, location), "aco::event_stream::send");
    }
    void send(std::string_view data, const char *location = ACO__CALLER)
    {
        aco_event_stream_event_t event = {};
        event.data = data.empty() ? "" : data.data();
        event.length = data.size();
        send(event, location);
    }
    void ping(const char *location = ACO__CALLER)
    {
        detail::io_check(aco_event_stream_ping_at(request_, location), "aco::event_stream::ping");
    }

  private:
    aco_http_request_t *request_;
};

/* An access log; its destructor writes what waits. It outlives the servers that use it. */
class access_log
{
  public:
    explicit access_log(const std::vector<std::pair<std::string, int>> &files,
                        const aco_access_log_options_t &options = {})
    {
        std::vector<aco_access_log_file_t> list;
        for (const auto &[path, format] : files)
            list.push_back({path.c_str(), format});
        list.push_back({nullptr, 0});
        log_ = aco_access_log_new(list.data(), &options);
        detail::io_check(log_ ? 0 : -1, "aco::access_log");
    }
    access_log(const access_log &) = delete;
    access_log &operator=(const access_log &) = delete;
    ~access_log()
    {
        aco_access_log_destroy(log_);
    }

    /* Logs the requests of servers with these options. */
    void attach(aco_http_server_options_t &options) const noexcept
    {
        options.log = aco_access_log_add;
        options.log_arg = log_;
    }
    void rotate() noexcept
    {
        aco_access_log_rotate(log_);
    }
    aco_access_log_stats_t stats() const noexcept
    {
        aco_access_log_stats_t stats;
        aco_access_log_stats(log_, &stats);
        return stats;
    }

  private:
    aco_access_log_t *log_;
};

class http_client;

/* A request becomes a connection that carries messages: in a server until its handler returns. Several tasks may
 * send. */
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
    /* Connects to a server: aco_websocket_connect(). The client must live longer. */
    websocket(http_client &client, const std::string &url, const aco_websocket_options_t &options = {},
              const std::vector<aco_http_header_t> &headers = {}, const char *location = ACO__CALLER);
    websocket(const websocket &) = delete;
    websocket &operator=(const websocket &) = delete;
    ~websocket()
    {
        if (is_client_)
            aco_websocket_end(socket_);
    }

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
    bool is_client_ = false;
};

namespace detail
{

/* What a server calls: a callable, which need not be copyable. */
template <class... Args> class http_callable
{
  public:
    template <class F> explicit http_callable(F &&f) : held_(new holder<std::decay_t<F>>(std::forward<F>(f)))
    {
    }
    void operator()(Args... args) const
    {
        held_->call(args...);
    }

  private:
    struct base {
        virtual ~base() = default;
        virtual void call(Args... args) = 0;
    };
    template <class F> struct holder final : base {
        template <class From> explicit holder(From &&from) : f(std::forward<From>(from))
        {
        }
        void call(Args... args) override
        {
            f(args...);
        }
        F f;
    };
    std::unique_ptr<base> held_;
};

/* What is done with an exception that leaves such a function. */
using http_failure = std::function<void(const http_request &, const std::exception *)>;

inline void http_fail(http_request &request, const http_failure &failed, const std::exception *e)
{
    const aco_http_request_t *raw = request.native_handle();
    aco_http_reply_abort(request.native_handle());
    try {
        if (failed)
            failed(request, e);
        else
            std::fprintf(stderr, "%s %s: %s\n", raw->method, raw->target, e ? e->what() : "an unknown exception");
    } catch (...) {
        caught(); /* there is nobody to tell */
    }
}
/* Runs f(request), and keeps exceptions from the C code that has called. */
template <class F> void http_run(aco_http_request_t *raw, const http_failure &failed, F &&f)
{
    http_request request(raw);
    try {
        f(request);
    } catch (const cancelled &) { /* a scope ended: the handler's own, or the server's */
        aco_http_reply_abort(raw);
    } catch (const error &left) {
        aco_http_connection_error(raw) ? aco_http_reply_abort(raw) : http_fail(request, failed, &left);
    } catch (const std::exception &left) {
        http_fail(request, failed, &left);
    } catch (...) {
        caught();
        http_fail(request, failed, nullptr);
    }
}

} // namespace detail

/* What stands behind a piece of middleware: the next piece, or the handler. */
class http_next
{
  public:
    explicit http_next(aco_http_request_t *request) noexcept : request_(request)
    {
    }
    /* What the handler throws does not come back here: it is handled as without middleware. */
    void operator()() const
    {
        detail::io_check(aco_http_next(request_), "aco::http_next");
    }

  private:
    aco_http_request_t *request_;
};

/* Routes, and the middleware that stands around their handlers. Callables need not be copyable. */
class http_routes
{
  public:
    explicit http_routes(const detail::http_failure *failed) noexcept : failed_(failed)
    {
    }
    http_routes(const http_routes &) = delete;
    http_routes &operator=(const http_routes &) = delete;

    /* Calls f(http_request &) for these requests. A `method` of nullptr means any. */
    template <class F> http_routes &route(const char *method, std::string path, F &&f)
    {
        static_assert(std::is_invocable_v<std::decay_t<F> &, http_request &>,
                      "aco::http_routes: the callable is called as f(http_request)");
        handlers_.emplace_back(method, std::move(path), std::forward<F>(f), failed_);
        return *this;
    }
    /* Calls f(http_request &, const http_next &) around all that was or will be added, inside the earlier ones. */
    template <class F> http_routes &around(F &&f)
    {
        static_assert(std::is_invocable_v<std::decay_t<F> &, http_request &, const http_next &>,
                      "aco::http_routes::around: the callable is called as f(http_request, http_next)");
        around_.emplace_back(std::forward<F>(f), failed_);
        return *this;
    }
    /* Adds middleware of C, such as aco_http_limit_time. */
    http_routes &around(aco_http_handler_t f, void *arg)
    {
        around_.emplace_back(f, arg);
        return *this;
    }

  protected:
    /* For C. What they point to stays until something is added. */
    std::vector<aco_http_route_t> list_routes()
    {
        std::vector<aco_http_route_t> list;
        for (entry &e : handlers_)
            list.push_back({e.method ? e.method->c_str() : nullptr, e.path.c_str(), run, &e});
        list.push_back({nullptr, nullptr, nullptr, nullptr});
        return list;
    }
    /* Empty: there is none. */
    std::vector<aco_http_middleware_t> list_middleware()
    {
        std::vector<aco_http_middleware_t> list;
        for (layer &l : around_)
            list.push_back(l.is);
        if (!list.empty())
            list.push_back({nullptr, nullptr});
        return list;
    }

  private:
    struct entry {
        template <class F>
        entry(const char *m, std::string p, F &&from, const detail::http_failure *failure)
            : method(m ? std::optional<std::string>(m) : std::nullopt), path(std::move(p)), f(std::forward<F>(from)),
              failed(failure)
        {
        }
        std::optional<std::string> method;
        std::string path;
        detail::http_callable<http_request &> f;
        const detail::http_failure *failed;
    };
    struct layer {
        template <class F>
        layer(F &&from, const detail::http_failure *failure)
            : f(std::in_place, std::forward<F>(from)), failed(failure), is{run_around, this}
        {
        }
        layer(aco_http_handler_t from, void *arg) : failed(nullptr), is{from, arg}
        {
        }
        layer(const layer &) = delete;
        std::optional<detail::http_callable<http_request &, const http_next &>> f;
        const detail::http_failure *failed;
        aco_http_middleware_t is;
    };

    static void run(aco_http_request_t *raw, void *arg)
    {
        const entry *e = static_cast<entry *>(arg);
        detail::http_run(raw, *e->failed, e->f);
    }
    static void run_around(aco_http_request_t *raw, void *arg)
    {
        const layer *l = static_cast<layer *>(arg);
        detail::http_run(raw, *l->failed, [&](http_request &request) { (*l->f)(request, http_next(raw)); });
    }

    const detail::http_failure *failed_;
    std::deque<entry> handlers_;
    std::deque<layer> around_;
};

/* A server and its routes. They must not change while it serves, nor after the first serve_connection(). Tables of the
 * options count, too: their middleware stands around the server's own, their routes and groups come behind. */
class http_server : public http_routes
{
  public:
    explicit http_server(const aco_http_server_options_t &options = aco_http_server_options_t())
        : http_routes(&failed_), options_(options)
    {
    }
    ~http_server()
    {
        aco_http_server_destroy(shared_);
    }

    /* Adds routes that have middleware of their own, inside the server's. They are looked at after the server's, in the
     * order of the groups. */
    http_routes &group()
    {
        return groups_.emplace_back(&failed_);
    }
    /* `f` gets the exception that leaves a handler; nullptr if it is no std::exception. Default: a line on stderr. */
    http_server &on_failure(std::function<void(const http_request &, const std::exception *)> f)
    {
        failed_ = std::move(f);
        return *this;
    }
    /* Calls f(http_request &, int status) to make replies in place of the server's own: `refused` of the options. */
    template <class F> http_server &on_refusal(F &&f)
    {
        refused_.emplace(std::forward<F>(f));
        options_.refused = [](aco_http_request_t *raw, int status, void *arg) {
            const auto *server = static_cast<http_server *>(arg);
            detail::http_run(raw, server->failed_,
                             [&](http_request &request) { (*server->refused_)(request, status); });
        };
        options_.refused_arg = this;
        return *this;
    }
    aco_http_server_options_t &options() noexcept
    {
        return options_;
    }

    /* Throws aco::cancelled when a scope of the caller ends, and aco::error if accepting fails. */
    void serve(listener &&door, const char *location = ACO__CALLER)
    {
        const tables given(*this);
        detail::io_check(aco_http_serve_at(door.detach(), &given.options, location), "aco::http_server::serve");
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
    struct group_of : http_routes {
        using http_routes::http_routes, http_routes::list_routes, http_routes::list_middleware;
    };

    /* What C is given. It stays as long as this. */
    struct tables {
        explicit tables(http_server &server)
            : options(server.options_), routes(server.list_routes()), middleware(server.list_middleware())
        {
            for (const aco_http_route_t *r = options.routes; r && r->path; r++)
                routes.insert(routes.end() - 1, *r);
            options.routes = routes.data();
            if (const aco_http_middleware_t *m = options.middleware) {
                std::size_t n = 0;
                while (m[n].run)
                    n++;
                if (middleware.empty())
                    middleware.push_back({nullptr, nullptr});
                middleware.insert(middleware.begin(), m, m + n);
            }
            options.middleware = middleware.data();
            for (group_of &g : server.groups_) {
                group_routes.push_back(g.list_routes());
                group_middleware.push_back(g.list_middleware());
                groups.push_back({group_routes.back().data(), group_middleware.back().data()});
            }
            for (const aco_http_group_t *g = options.groups; g && g->routes; g++)
                groups.push_back(*g);
            groups.push_back({nullptr, nullptr});
            options.groups = groups.data();
        }
        aco_http_server_options_t options;
        std::vector<aco_http_route_t> routes;
        std::vector<aco_http_middleware_t> middleware;
        std::deque<std::vector<aco_http_route_t>> group_routes;
        std::deque<std::vector<aco_http_middleware_t>> group_middleware;
        std::vector<aco_http_group_t> groups;
    };

    aco_http_server_t *shared()
    {
        if (!shared_) {
            tables_ = std::make_unique<const tables>(*this);
            shared_ = aco_http_server_new(&tables_->options);
            detail::io_check(shared_ ? 0 : -1, "aco::http_server");
        }
        return shared_;
    }

    aco_http_server_options_t options_;
    std::deque<group_of> groups_;
    detail::http_failure failed_;
    std::optional<detail::http_callable<http_request &, int>> refused_;
    std::unique_ptr<const tables> tables_; /* of serve_connection() */
    aco_http_server_t *shared_ = nullptr;
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
    int(major)() const noexcept { return response_->major; } /* of the version; sys/sysmacros.h has such a macro */
    std::int64_t length() const noexcept { return response_->length; }
    /* Behind redirects; and the URL of request `i`, from 0 to redirects(), with the status of its response. */
    const char *url() const noexcept { return response_->url; }
    int redirects() const noexcept { return response_->redirects; }
    bool is_decoded() const noexcept { return response_->is_decoded != 0; }
    const char *redirect(int i, int *status = nullptr) const noexcept
    {
        return aco_http_response_redirect(response_, i, status);
    }
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
    /* Certain once read() has returned 0. */
    std::optional<std::string_view> trailer(const char *name) const
    {
        return detail::text_of(aco_http_response_trailer(response_, name));
    }
    std::int64_t reset_code() const noexcept { return aco_http_response_reset_code(response_); }
    /* Of http_client::begin(): the body, its end, and waiting for the head. */
    void write(const void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_http_call_write_at(response_, p, n, location), "aco::http_response::write");
    }
    void write(std::string_view bytes, const char *location = ACO__CALLER)
    {
        write(bytes.data(), bytes.size(), location);
    }
    void end_body(const aco_http_header_t *trailers = nullptr, std::size_t count = 0)
    {
        detail::io_check(aco_http_call_end(response_, trailers, count), "aco::http_response::end_body");
    }
    void await(const char *location = ACO__CALLER)
    {
        detail::io_check(aco_http_response_await_at(response_, location), "aco::http_response::await");
    }
    aco_http_response_t *native_handle() const noexcept { return response_; }

private:
    aco_http_response_t *response_;
};

/* A client. It outlives its responses, and `options` outlives it. With is_shared any thread may use it. */
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
    /* Only by HTTP/2: the caller writes the body. */
    http_response begin(const aco_http_call_t &call, const char *location = ACO__CALLER)
    {
        aco_http_response_t *response = aco_http_call_begin_at(client_, &call, location);
        detail::io_check(response ? 0 : -1, "aco::http_client::begin");
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
    /* Closes what is kept for the calling thread: before that ends, if the client is shared (is_shared). */
    void close_idle() noexcept { aco_http_client_close_idle(client_); }
    aco_http_client_t *native_handle() const noexcept { return client_; }

private:
    aco_http_client_t *client_;
};

inline websocket::websocket(http_client &client, const std::string &url, const aco_websocket_options_t &options,
                            const std::vector<aco_http_header_t> &headers, const char *location)
    : socket_(aco_websocket_connect_at(client.native_handle(), url.c_str(), headers.data(), headers.size(), &options,
                                       location)),
      is_client_(true)
{
    detail::io_check(socket_ ? 0 : -1, "aco::websocket");
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
