/* gRPC for C++17 and later, on top of <aco/grpc.h>, which says what all of this does. Header only; link acorn_grpc.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::grpc_server server;
 *   server.add("/test.Echo/Say", [](aco::grpc_call &call) { call.write(call.read_only()); });
 *   server.serve(aco::listener("tcp", nullptr, "50051"));
 *
 * Messages are bytes. protoc-gen-acorn makes classes of services whose methods take and return messages of protobuf
 * (docs/grpc.md).
 *
 * A handler that returns has succeeded. If an exception leaves it, the call ends with a status: an aco::grpc_error's
 * own; aco_grpc_status_of_errno() of an aco::error or aco::cancelled; UNKNOWN for any other, whose text is written to
 * stderr and not sent. */
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

/* A call, for its handler. */
class grpc_call
{
  public:
    explicit grpc_call(aco_grpc_call_t *call) noexcept : call_(call)
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
        detail::io_check(more, "aco::grpc_call::read");
        return more ? std::optional<std::string_view>(text(message, n)) : std::nullopt;
    }
    std::string_view read_only(const char *location = ACO__CALLER)
    {
        const void *message = nullptr;
        std::size_t n = 0;
        detail::io_check(aco_grpc_read_only_at(call_, &message, &n, location), "aco::grpc_call::read_only");
        return text(message, n);
    }
    void write(std::string_view message, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_grpc_write_at(call_, message.data(), message.size(), location), "aco::grpc_call::write");
    }
    void compress(bool on)
    {
        detail::io_check(aco_grpc_compress(call_, on), "aco::grpc_call::compress");
    }
    /* Returns nothing also for a value that is no base64. */
    std::optional<std::string_view> metadata(const char *name, std::size_t i = 0) const
    {
        std::size_t n = 0;
        errno = 0;
        const void *value = aco_grpc_metadata(call_, name, i, &n);
        detail::io_check(value || errno != ENOMEM ? 0 : -1, "aco::grpc_call::metadata");
        return value ? std::optional<std::string_view>(text(value, n)) : std::nullopt;
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
    const aco_http_request_t *request() const noexcept
    {
        return aco_grpc_request(call_);
    }
    aco_grpc_call_t *native_handle() const noexcept
    {
        return call_;
    }

  private:
    static std::string_view text(const void *p, std::size_t n)
    {
        return std::string_view(static_cast<const char *>(p), n);
    }

    aco_grpc_call_t *call_;
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

template <class Message> void grpc_send(grpc_call &call, const Message &message, std::string &room)
{
    room.clear();
    if (!message.AppendToString(&room))
        throw grpc_error(ACO_GRPC_INTERNAL, "a message cannot be encoded");
    call.write(room);
}

} // namespace detail

/* ---- Messages with types: any that have ParseFromArray() and AppendToString(), such as those of protobuf ---- */

/* The messages of a call that its client sends: a range, or read(). */
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

/* The messages of a call that its handler sends. */
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
    /* These four call f(call, ...) with messages that have types. A client that names another coding than "proto" in its
     * content-type gets UNIMPLEMENTED. */
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
