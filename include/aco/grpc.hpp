/* gRPC for C++17 and later, on top of <aco/grpc.h>, which says what all of this does. Header only; link acorn_grpc.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::grpc_server server;
 *   server.add("/test.Echo/Say", [](aco::grpc_call &call) { call.write(call.read_only()); });
 *   server.serve(aco::listener("tcp", nullptr, "50051"));
 *
 *   aco::grpc_channel channel("localhost:50051");
 *   aco::grpc_client_call call(channel, "/test.Echo/Say");
 *   call.write_only("hello");
 *   std::cout << call.read_only();
 *
 * Messages are bytes. protoc-gen-acorn makes classes of services whose methods take and return messages of protobuf,
 * and stubs that call them (docs/grpc.md).
 *
 * A handler that returns has succeeded. If an exception leaves it, the call ends with a status: an aco::grpc_error's
 * own; aco_grpc_status_of_errno() of an aco::error or aco::cancelled; UNKNOWN for any other, whose text is written to
 * stderr and not sent. A client's call that ends with another status than OK throws an aco::grpc_error; when a scope of
 * the caller has ended, aco::cancelled. */
#ifndef ACO_GRPC_HPP
#define ACO_GRPC_HPP

#include "grpc.h"
#include "http.hpp"

#include <climits>
#include <iterator>
#include <stdexcept>

namespace aco
{
inline namespace ACO__CPP_KIND
{

inline const char *grpc_status_name(int status) noexcept
{
    return aco_grpc_status_name(status);
}
inline int grpc_status_of_errno(int error) noexcept
{
    return aco_grpc_status_of_errno(error);
}
inline int grpc_errno_of_status(int status) noexcept
{
    return aco_grpc_errno_of_status(status);
}
inline bool grpc_has_gzip() noexcept
{
    return aco_grpc_has_gzip() != 0;
}

/* The status with which a call ends. `details` are a google.rpc.Status as bytes; empty: there are none. */
class grpc_error : public std::runtime_error
{
  public:
    grpc_error(int status, const std::string &message, std::string details = {})
        : std::runtime_error(message), status_(status), details_(std::move(details))
    {
    }
    int status() const noexcept
    {
        return status_;
    }
    const std::string &details() const noexcept
    {
        return details_;
    }

  private:
    int status_;
    std::string details_;
};

/* A call: for its handler, or a client's (below). */
class grpc_call
{
  public:
    explicit grpc_call(aco_grpc_call_t *call) noexcept : grpc_call(call, false)
    {
    }
    grpc_call(const grpc_call &) = delete;
    grpc_call &operator=(const grpc_call &) = delete;

    std::string_view method() const noexcept
    {
        return aco_grpc_method(call_);
    }
    /* Returns the next message, valid until the next read; nothing: the peer sends no more. */
    std::optional<std::string_view> read(const char *location = ACO__CALLER)
    {
        const void *message = nullptr;
        std::size_t n = 0;
        const int more = aco_grpc_read_at(call_, &message, &n, location);
        check(more, "aco::grpc_call::read");
        return more ? std::optional<std::string_view>(text(message, n)) : std::nullopt;
    }
    std::string_view read_only(const char *location = ACO__CALLER)
    {
        const void *message = nullptr;
        std::size_t n = 0;
        check(aco_grpc_read_only_at(call_, &message, &n, location), "aco::grpc_call::read_only");
        return text(message, n);
    }
    /* A client's throws aco::error with EPIPE if the server takes no more: reading, or finish(), tells the status. */
    void write(std::string_view message, const char *location = ACO__CALLER)
    {
        check(aco_grpc_write_at(call_, message.data(), message.size(), location), "aco::grpc_call::write");
    }
    void compress(bool on)
    {
        detail::io_check(aco_grpc_compress(call_, on), "aco::grpc_call::compress");
    }
    bool was_compressed() const noexcept
    {
        return aco_grpc_was_compressed(call_) != 0;
    }
    /* Returns nothing also for a value that is no base64. */
    std::optional<std::string_view> metadata(const char *name, std::size_t i = 0) const
    {
        std::size_t n = 0;
        errno = 0;
        const void *value = aco_grpc_metadata(call_, name, i, &n);
        return found(value, n);
    }
    /* Each name once, in the order in which they came. */
    std::vector<std::string_view> metadata_names() const
    {
        return names(aco_grpc_next_metadata);
    }
    grpc_call &add_metadata(const std::string &name, std::string_view value)
    {
        detail::io_check(aco_grpc_add_metadata(call_, name.c_str(), value.data(), value.size()),
                         "aco::grpc_call::add_metadata");
        return *this;
    }
    grpc_call &add_trailer(const std::string &name, std::string_view value)
    {
        detail::io_check(aco_grpc_add_trailer(call_, name.c_str(), value.data(), value.size()),
                         "aco::grpc_call::add_trailer");
        return *this;
    }
    /* Calls f() in a scope that ends when the server has been stopped: aco_http_drain_begin(). Returns false if f() was
     * left because of that. f() writes nothing: what it had begun to write would be cut. */
    template <class F> bool try_until_drain(F &&f, const char *location = ACO__CALLER)
    {
        return http_request(const_cast<aco_http_request_t *>(request()))
            .try_until_drain(std::forward<F>(f), location);
    }
    const aco_http_request_t *request() const noexcept
    {
        return aco_grpc_request(call_);
    }
    aco_grpc_call_t *native_handle() const noexcept
    {
        return call_;
    }

  protected:
    grpc_call(aco_grpc_call_t *call, bool is_client) noexcept : call_(call), is_client_(is_client)
    {
    }
    static std::string_view text(const void *p, std::size_t n)
    {
        return std::string_view(static_cast<const char *>(p), n);
    }
    /* What a search has found, with errno. */
    static std::optional<std::string_view> found(const void *value, std::size_t n)
    {
        detail::io_check(value || errno != ENOMEM ? 0 : -1, "aco::grpc_call");
        return value ? std::optional<std::string_view>(text(value, n)) : std::nullopt;
    }
    std::vector<std::string_view> names(const char *(*next)(aco_grpc_call_t *, const char *)) const
    {
        std::vector<std::string_view> all;
        for (const char *name = nullptr; (name = next(call_, name)) != nullptr;)
            all.emplace_back(name);
        return all;
    }
    /* Throws the status of a client's call that has ended, unless it is OK. */
    void throw_status(int status) const
    {
        std::size_t n = 0;
        if (status <= ACO_GRPC_OK)
            return;
        const std::string message = aco_grpc_message(call_);
        const void *details = aco_grpc_details(call_, &n);
        throw grpc_error(status, message, details ? std::string(text(details, n)) : std::string());
    }
    void check(int result, const char *what) const
    {
        if (aco_likely(result >= 0))
            return;
        if (is_client_ && aco_check_cancelled() == 0) {
            const int error = errno;
            throw_status(aco_grpc_status(call_)); /* EPIPE: it stands behind messages that are the reader's */
            errno = error;
        }
        detail::io_check(result, what);
    }
    /* As above, of a call that writes the last: if the server takes no more, reading tells why. */
    void check_last(int result, const char *what) const
    {
        if (result < 0 && is_client_ && errno == EPIPE)
            return;
        check(result, what);
    }

    aco_grpc_call_t *call_;

  private:
    bool is_client_;
};

namespace detail
{

/* Calls f(grpc_call &), and returns what the C handler returns, with errno. */
template <class F> int grpc_run(aco_grpc_call_t *raw, F &&f)
{
    int error_is = 0;
    try {
        grpc_call call(raw);
        f(call);
        return ACO_GRPC_OK;
    } catch (const grpc_error &left) {
        const std::string &details = left.details();
        if (!details.empty())
            (void)aco_grpc_set_details(raw, details.data(), details.size());
        return aco_grpc_fail(raw, left.status(), left.what());
    } catch (const cancelled &left) {
        error_is = left.error();
    } catch (const error &left) {
        error_is = left.code().value();
    } catch (const std::exception &left) {
        std::fprintf(stderr, "%s: %s\n", aco_grpc_method(raw), left.what());
        return ACO_GRPC_UNKNOWN;
    } catch (...) {
        caught();
        std::fprintf(stderr, "%s: an unknown exception\n", aco_grpc_method(raw));
        return ACO_GRPC_UNKNOWN;
    }
    errno = error_is;
    return ACO_GRPC_FROM_ERRNO;
}

/* Messages with types are coded as "proto", whatever a client calls its own coding. */
inline void grpc_check_coding(const grpc_call &call)
{
    const char *type = aco_http_request_header(call.request(), "content-type");
    const std::string_view coding = std::string_view(type ? type : "").substr(sizeof "application/grpc" - 1);
    if (!coding.empty() && coding[0] == '+' && coding.substr(1, coding.find(';') - 1) != "proto")
        throw grpc_error(ACO_GRPC_UNIMPLEMENTED, "messages are coded as proto");
}

template <class Message> void grpc_parse(Message &message, std::string_view bytes)
{
    if (bytes.size() > INT_MAX || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        throw grpc_error(ACO_GRPC_INTERNAL, "a message cannot be decoded");
}

template <class Message> void grpc_put(const Message &message, std::string &bytes)
{
    if (!message.AppendToString(&bytes))
        throw grpc_error(ACO_GRPC_INTERNAL, "a message cannot be encoded");
}

template <class Message> void grpc_send(grpc_call &call, const Message &message, std::string &room)
{
    room.clear();
    grpc_put(message, room);
    call.write(room);
}

} // namespace detail

/* ---- Messages with types: any that have ParseFromArray() and AppendToString(), such as those of protobuf ---- */

/* The messages that the peer sends: a range, or read(). */
template <class Message> class grpc_reader
{
  public:
    explicit grpc_reader(grpc_call &call) noexcept : call_(&call)
    {
    }

    /* Returns false if there are no more. */
    bool read(Message &message)
    {
        const std::optional<std::string_view> bytes = call_->read();
        if (bytes)
            detail::grpc_parse(message, *bytes);
        return bytes.has_value();
    }

    struct end_of {
    };
    class iterator
    {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Message;
        using difference_type = std::ptrdiff_t;
        using pointer = Message *;
        using reference = Message &;

        explicit iterator(grpc_reader &reader) : reader_(&reader)
        {
            ++*this;
        }
        Message &operator*()
        {
            return message_;
        }
        Message *operator->()
        {
            return &message_;
        }
        iterator &operator++()
        {
            if (!reader_->read(message_))
                reader_ = nullptr;
            return *this;
        }
        void operator++(int)
        {
            ++*this;
        }
        friend bool operator==(const iterator &i, end_of)
        {
            return !i.reader_;
        }
        friend bool operator!=(const iterator &i, end_of)
        {
            return i.reader_ != nullptr;
        }

      private:
        grpc_reader *reader_;
        Message message_;
    };
    /* Reads the first one. */
    iterator begin()
    {
        return iterator(*this);
    }
    end_of end() const noexcept
    {
        return {};
    }

  private:
    grpc_call *call_;
};

/* The messages that this side sends. */
template <class Message> class grpc_writer
{
  public:
    explicit grpc_writer(grpc_call &call) noexcept : call_(&call)
    {
    }
    void write(const Message &message)
    {
        detail::grpc_send(*call_, message, room_);
    }

  private:
    grpc_call *call_;
    std::string room_;
};

/* ---- Clients ---- */

class grpc_channel
{
  public:
    explicit grpc_channel(const std::string &target, const aco_grpc_channel_options_t &options = {})
        : channel_(aco_grpc_channel_new(target.c_str(), &options))
    {
        detail::io_check(channel_ ? 0 : -1, "aco::grpc_channel");
    }
    grpc_channel(const grpc_channel &) = delete;
    grpc_channel &operator=(const grpc_channel &) = delete;
    ~grpc_channel()
    {
        aco_grpc_channel_destroy(channel_);
    }
    aco_grpc_channel_t *native_handle() const noexcept
    {
        return channel_;
    }

  private:
    aco_grpc_channel_t *channel_;
};

/* A client's call, which is cancelled if it has not ended when this is destroyed. `path` must stay valid. */
class grpc_client_call : public grpc_call
{
  public:
    grpc_client_call(grpc_channel &channel, const char *path, const aco_grpc_call_options_t &options = {})
        : grpc_call(aco_grpc_call_new(channel.native_handle(), path, &options), true)
    {
        detail::io_check(call_ ? 0 : -1, "aco::grpc_client_call");
    }
    ~grpc_client_call()
    {
        aco_grpc_call_destroy(call_);
    }

    void write_only(std::string_view message, const char *location = ACO__CALLER)
    {
        check_last(aco_grpc_write_only_at(call_, message.data(), message.size(), location),
                   "aco::grpc_client_call::write_only");
    }
    void write_end(const char *location = ACO__CALLER)
    {
        check_last(aco_grpc_write_end_at(call_, location), "aco::grpc_client_call::write_end");
    }
    void await_metadata(const char *location = ACO__CALLER)
    {
        check(aco_grpc_await_metadata_at(call_, location), "aco::grpc_client_call::await_metadata");
    }
    /* Waits for the end, and throws unless the status is OK. */
    void finish(const char *location = ACO__CALLER)
    {
        throw_status(aco_grpc_finish_at(call_, location));
    }
    /* Less than 0: it has not ended. */
    int status() const noexcept
    {
        return aco_grpc_status(call_);
    }
    std::optional<std::string_view> trailer(const char *name, std::size_t i = 0) const
    {
        std::size_t n = 0;
        errno = 0;
        const void *value = aco_grpc_trailer(call_, name, i, &n);
        return found(value, n);
    }
    std::vector<std::string_view> trailer_names() const
    {
        return names(aco_grpc_next_trailer);
    }
    grpc_call &add_trailer(const std::string &name, std::string_view value) = delete;
    const aco_http_request_t *request() const = delete;
};

/* What a stub's call takes with it, and afterwards what has come. For one call after the other. */
class grpc_context
{
  public:
    aco_grpc_call_options_t options = {};

    grpc_context &add_metadata(std::string name, std::string value)
    {
        metadata_.emplace_back(std::move(name), std::move(value));
        return *this;
    }
    /* Whether the next calls compress their messages; without it, as the channel says. */
    grpc_context &compress(bool on)
    {
        compresses_ = on;
        return *this;
    }
    /* The last call, for its metadata and trailers, and to compress only some of its messages. */
    const grpc_client_call &call() const
    {
        return call_.value();
    }
    grpc_client_call &call()
    {
        return call_.value();
    }
    /* For stubs. Begins a call; the last one ends. */
    grpc_client_call &begin(grpc_channel &channel, const char *path)
    {
        call_.emplace(channel, path, options);
        for (const std::pair<std::string, std::string> &each : metadata_)
            call_->add_metadata(each.first, each.second);
        if (compresses_)
            call_->compress(*compresses_);
        return *call_;
    }

  private:
    std::vector<std::pair<std::string, std::string>> metadata_;
    std::optional<bool> compresses_;
    std::optional<grpc_client_call> call_;
};

namespace detail
{

/* A call of a stub, in a context of its own if there is no other one. */
struct grpc_begun {
    grpc_begun(grpc_channel &channel, const char *path, grpc_context *context)
        : call((context ? context : &own)->begin(channel, path))
    {
    }
    grpc_context own;
    grpc_client_call &call;
};

template <class Request> void grpc_ask(grpc_client_call &call, const Request &request)
{
    std::string bytes;
    grpc_put(request, bytes);
    call.write_only(bytes);
}

template <class Reply, class Request>
Reply grpc_unary(grpc_channel &channel, const char *path, const Request &request, grpc_context *context)
{
    grpc_begun begun(channel, path, context);
    Reply reply;
    grpc_ask(begun.call, request);
    grpc_parse(reply, begun.call.read_only());
    return reply;
}

} // namespace detail

/* The replies of a call: a range, or read(). Destroy it to leave early. */
template <class Reply> class grpc_client_reader : private detail::grpc_begun, public grpc_reader<Reply>
{
  public:
    template <class Request>
    grpc_client_reader(grpc_channel &channel, const char *path, const Request &request, grpc_context *context)
        : grpc_begun(channel, path, context), grpc_reader<Reply>(grpc_begun::call)
    {
        detail::grpc_ask(grpc_begun::call, request);
    }
    grpc_client_reader(const grpc_client_reader &) = delete;
    grpc_client_reader &operator=(const grpc_client_reader &) = delete;
};

/* The requests of a call, and its reply. */
template <class Request, class Reply> class grpc_client_writer : private detail::grpc_begun, public grpc_writer<Request>
{
  public:
    grpc_client_writer(grpc_channel &channel, const char *path, grpc_context *context)
        : grpc_begun(channel, path, context), grpc_writer<Request>(grpc_begun::call)
    {
    }
    grpc_client_writer(const grpc_client_writer &) = delete;
    grpc_client_writer &operator=(const grpc_client_writer &) = delete;
    /* Ends the requests, and waits for the reply. */
    Reply finish()
    {
        Reply reply;
        grpc_begun::call.write_end();
        detail::grpc_parse(reply, grpc_begun::call.read_only());
        return reply;
    }
};

/* A call with both. One task may write while another one reads. */
template <class Request, class Reply>
class grpc_client_stream : private detail::grpc_begun, public grpc_writer<Request>, public grpc_reader<Reply>
{
  public:
    grpc_client_stream(grpc_channel &channel, const char *path, grpc_context *context)
        : grpc_begun(channel, path, context), grpc_writer<Request>(grpc_begun::call),
          grpc_reader<Reply>(grpc_begun::call)
    {
    }
    grpc_client_stream(const grpc_client_stream &) = delete;
    grpc_client_stream &operator=(const grpc_client_stream &) = delete;
    void write_end()
    {
        grpc_begun::call.write_end();
    }
};

/* ---- Servers ---- */

/* A server and its handlers, which need not be copyable. */
class grpc_server
{
  public:
    explicit grpc_server(const aco_grpc_server_options_t &options = {}) : server_(aco_grpc_server_new(&options))
    {
        detail::io_check(server_ ? 0 : -1, "aco::grpc_server");
    }
    grpc_server(const grpc_server &) = delete;
    grpc_server &operator=(const grpc_server &) = delete;
    ~grpc_server()
    {
        aco_grpc_server_destroy(server_);
    }

    /* Calls f(grpc_call &) for calls of this method, "/package.Service/Method". */
    template <class F> grpc_server &add(std::string path, F &&f)
    {
        entry &e = handlers_.emplace_back(std::move(path), std::forward<F>(f));
        if (aco_grpc_server_add(server_, e.path.c_str(), run, &e) != 0) {
            handlers_.pop_back();
            detail::io_check(-1, "aco::grpc_server::add");
        }
        return *this;
    }
    /* These four call f(call, ...) with messages that have types. A client that names another coding than "proto" in
     * its content-type gets UNIMPLEMENTED. */
    template <class Request, class F> grpc_server &add_unary(std::string path, F f)
    {
        return add(std::move(path), [f](grpc_call &call) {
            Request request;
            std::string room;
            detail::grpc_check_coding(call);
            detail::grpc_parse(request, call.read_only());
            detail::grpc_send(call, f(call, static_cast<const Request &>(request)), room);
        });
    }
    template <class Request, class Reply, class F> grpc_server &add_server_stream(std::string path, F f)
    {
        return add(std::move(path), [f](grpc_call &call) {
            Request request;
            grpc_writer<Reply> replies(call);
            detail::grpc_check_coding(call);
            detail::grpc_parse(request, call.read_only());
            f(call, static_cast<const Request &>(request), replies);
        });
    }
    template <class Request, class F> grpc_server &add_client_stream(std::string path, F f)
    {
        return add(std::move(path), [f](grpc_call &call) {
            grpc_reader<Request> requests(call);
            std::string room;
            detail::grpc_check_coding(call);
            detail::grpc_send(call, f(call, requests), room);
        });
    }
    template <class Request, class Reply, class F> grpc_server &add_both_streams(std::string path, F f)
    {
        return add(std::move(path), [f](grpc_call &call) {
            grpc_reader<Request> requests(call);
            grpc_writer<Reply> replies(call);
            detail::grpc_check_coding(call);
            f(call, requests, replies);
        });
    }

    grpc_server &add_health()
    {
        detail::io_check(aco_grpc_server_add_health(server_), "aco::grpc_server::add_health");
        return *this;
    }
    void set_health(const std::string &service, int state)
    {
        detail::io_check(aco_grpc_server_set_health(server_, service.c_str(), state), "aco::grpc_server::set_health");
    }
    /* Keeps the descriptor. */
    grpc_server &add_file(std::string descriptor)
    {
        const std::string &kept = files_.emplace_back(std::move(descriptor));
        detail::io_check(aco_grpc_server_add_file(server_, kept.data(), kept.size()), "aco::grpc_server::add_file");
        return *this;
    }

    /* Throws aco::cancelled when a scope of the caller ends, and aco::error if accepting fails. */
    void serve(listener &&door, const aco_http_server_options_t &options = {}, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_grpc_serve_at(door.detach(), server_, &options, location), "aco::grpc_server::serve");
    }
    /* For the options of an http_server, which serves gRPC beside its routes. */
    const aco_http_group_t *groups() noexcept
    {
        return aco_grpc_server_groups(server_);
    }
    aco_grpc_server_t *native_handle() const noexcept
    {
        return server_;
    }

  private:
    struct entry {
        template <class F> entry(std::string p, F &&from) : path(std::move(p)), f(std::forward<F>(from))
        {
        }
        std::string path;
        detail::http_callable<grpc_call &> f;
    };
    static int run(aco_grpc_call_t *raw, void *arg)
    {
        return detail::grpc_run(raw, static_cast<entry *>(arg)->f);
    }

    std::deque<entry> handlers_;
    std::deque<std::string> files_;
    aco_grpc_server_t *server_;
};

namespace detail
{

/* The reflection service knows this file and those that it imports. */
template <class Proto, class File> void grpc_add_files(grpc_server &server, const File *file)
{
    Proto proto;
    for (int i = 0; i < file->dependency_count(); i++)
        grpc_add_files<Proto>(server, file->dependency(i));
    file->CopyTo(&proto);
    server.add_file(proto.SerializeAsString());
}

} // namespace detail

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
