/* Descriptors and names of hosts for C++17 and later, on top of <aco/io.h>, <aco/io_buffer.h> and <aco/names.h>. Header
 * only; link acorn_io. Files are in <aco/file.hpp>.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   void serve(aco::listener &door)
 *   {
 *       aco::task_group connections(ACO_KEEP_GOING);
 *       for (;;)
 *           connections.spawn([peer = door.accept()]() mutable {
 *               aco::reader in(peer);
 *               while (auto line = in.line())             // std::optional<std::string_view>
 *                   peer.write_all(std::string(*line) + "!\n");
 *           });
 *   }
 *
 * The C headers say what these calls do. Here is what C++ adds.
 *
 * Owning. A descriptor, socket or listener object owns its descriptor and closes it when it is destroyed. It can be
 * moved; the functions of an object that was moved from fail with EBADF.
 *
 * Failures. A call that fails throws aco::error. If it fails because a scope of the task has ended, it throws
 * aco::cancelled, as all waits do (aco/task.hpp). If another task's close() ends a read, a line or an accept, that
 * throws aco::error with ECANCELED. */
#ifndef ACO_IO_HPP
#define ACO_IO_HPP

#include "io_buffer.h"
#include "names.h"
#include "task.hpp"

#include <netinet/in.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aco {
inline namespace ACO__CPP_KIND {

namespace detail {

/* A call of aco/io.h has failed. Such a call leaves no message for a failure that can be an expected answer. */
[[noreturn]] ACO__COLD inline void io_failed(const char *call)
{
    const int error = errno;
    if (error != ETIMEDOUT && error != ECANCELED && error != EPIPE && error != EAGAIN)
        refused();
    if (error == ETIMEDOUT || error == ECANCELED) {
        if (aco_check_cancelled() != 0 && errno == error)
            throw cancelled(error);
        if (error == ECANCELED)
            refused(error, call, nullptr, "the descriptor was closed");
    }
    refused(error, call, nullptr, std::generic_category().message(error).c_str());
}

ACO__FORCE_INLINE_MEMBER std::size_t io_done(ssize_t n, const char *call)
{
    if (aco_unlikely(n < 0))
        io_failed(call);
    return static_cast<std::size_t>(n);
}

ACO__FORCE_INLINE_MEMBER void io_check(int result, const char *call)
{
    if (aco_unlikely(result < 0))
        io_failed(call);
}

} // namespace detail

/* Owns a descriptor of aco/io.h. */
class descriptor {
public:
    descriptor() noexcept = default;
    /* Takes over a descriptor that these calls made, or that aco_io_adopt() made owned. */
    explicit descriptor(int fd) noexcept : fd_(fd) {}
    /* Takes over any other descriptor by aco_io_adopt(). If this throws, the caller still owns it. */
    static descriptor adopt(int fd)
    {
        detail::io_check(aco_io_adopt(fd), "aco::descriptor::adopt");
        return descriptor(fd);
    }
    descriptor(descriptor &&from) noexcept : fd_(std::exchange(from.fd_, -1)) {}
    descriptor &operator=(descriptor &&from) noexcept
    {
        if (this != &from) {
            close_quietly();
            fd_ = std::exchange(from.fd_, -1);
        }
        return *this;
    }
    ~descriptor() { close_quietly(); }

    int get() const noexcept { return fd_; } /* -1: none */
    explicit operator bool() const noexcept { return fd_ >= 0; }
    /* Gives up the descriptor by aco_io_release(), without closing it, and returns it. */
    int release() noexcept
    {
        if (fd_ >= 0)
            (void)aco_io_release(fd_);
        return std::exchange(fd_, -1);
    }
    /* Gives up the descriptor and returns it: the caller closes it by aco_io_close(). */
    int detach() noexcept { return std::exchange(fd_, -1); }
    /* Wakes the tasks that wait for the descriptor. */
    void close() { detail::io_check(aco_io_close(std::exchange(fd_, -1)), "aco::descriptor::close"); }

    void wait_readable(const char *location = ACO__CALLER) const
    {
        detail::io_check(aco_io_wait_readable_at(fd_, location), "aco::descriptor::wait_readable");
    }
    void wait_writable(const char *location = ACO__CALLER) const
    {
        detail::io_check(aco_io_wait_writable_at(fd_, location), "aco::descriptor::wait_writable");
    }

    /* Returns 0 at the end of the stream. */
    std::size_t read(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_io_read_at(fd_, p, n, location), "aco::descriptor::read");
    }
    /* Returns fewer than `n` if the stream has ended. */
    std::size_t read_exactly(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_io_read_exactly_at(fd_, p, n, nullptr, location), "aco::descriptor::read_exactly");
    }
    std::size_t write(const void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_io_write_at(fd_, p, n, location), "aco::descriptor::write");
    }
    void write_all(const void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        detail::io_done(aco_io_write_all_at(fd_, p, n, nullptr, location), "aco::descriptor::write_all");
    }
    void write_all(std::string_view text, const char *location = ACO__CALLER)
    {
        write_all(text.data(), text.size(), location);
    }

private:
    void close_quietly() noexcept
    {
        if (fd_ >= 0)
            (void)aco_io_close(fd_);
    }
    int fd_ = -1;
};

/* The address of a socket. */
class address {
public:
    address() noexcept = default;
    /* Understands what aco_io_address_of_text() does. */
    address(const char *network, const char *host, const char *port)
    {
        detail::io_check(aco_io_address_of_text(network, host, port, &storage_, &length_), "aco::address");
    }
    std::string text() const
    {
        char text[ACO_IO_ADDRESS_SIZE];
        detail::io_check(aco_io_text_of_address(data(), length_, text, sizeof text), "aco::address::text");
        return text;
    }
    const sockaddr *data() const noexcept
    {
        return static_cast<const sockaddr *>(static_cast<const void *>(&storage_));
    }
    socklen_t size() const noexcept { return length_; }

private:
    friend class socket;
    friend std::vector<address> look_up(const char *, const char *, const char *, const char *);
    explicit address(const sockaddr_storage &found) noexcept
        : storage_(found), length_(found.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in))
    {
    }
    sockaddr_storage storage_{};
    socklen_t length_ = 0;
};

/* The addresses that dial() would try, in its order: aco_io_look_up(). */
inline std::vector<address> look_up(const char *network, const char *host, const char *port,
                                    const char *location = ACO__CALLER)
{
    sockaddr_storage found[16];
    const int n = aco_io_look_up_at(network, host, port, found, 16, location);
    detail::check(n < 0 ? -1 : 0);
    if (n > 0 && found[0].ss_family == AF_UNIX)
        return {address(network, host, port)};
    std::vector<address> all;
    for (int i = 0; i < n; i++)
        all.push_back(address(found[i]));
    return all;
}
/* The name of the address's host: aco_io_name_of(). */
inline std::string name_of(const address &of, const char *location = ACO__CALLER)
{
    char name[ACO_IO_NAME_SIZE];
    detail::check(aco_io_name_of_at(of.data(), of.size(), name, sizeof name, location));
    return name;
}

/* A socket, for a connection or for datagrams. */
class socket : public descriptor {
public:
    using descriptor::descriptor;
    explicit socket(descriptor &&from) noexcept : descriptor(std::move(from)) {}

    std::size_t receive(void *p, std::size_t n, int flags = 0, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_io_recv_at(get(), p, n, flags, location), "aco::socket::receive");
    }
    std::size_t send(const void *p, std::size_t n, int flags = 0, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_io_send_at(get(), p, n, flags, location), "aco::socket::send");
    }
    std::size_t receive_from(address &from, void *p, std::size_t n, int flags = 0, const char *location = ACO__CALLER)
    {
        from.length_ = sizeof from.storage_;
        return detail::io_done(aco_io_recvfrom_at(get(), p, n, flags,
                                                  static_cast<sockaddr *>(static_cast<void *>(&from.storage_)),
                                                  &from.length_, location),
                               "aco::socket::receive_from");
    }
    std::size_t send_to(const address &to, const void *p, std::size_t n, int flags = 0,
                        const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_io_sendto_at(get(), p, n, flags, to.data(), to.size(), location),
                               "aco::socket::send_to");
    }
    void shutdown(int how) { detail::io_check(aco_io_shutdown(get(), how), "aco::socket::shutdown"); }
    std::string local_address() const { return text_by(aco_io_local_address); }
    std::string peer_address() const { return text_by(aco_io_peer_address); }

private:
    std::string text_by(int (*get_text)(int, char *, std::size_t)) const
    {
        char text[ACO_IO_ADDRESS_SIZE];
        detail::io_check(get_text(get(), text, sizeof text), "aco::socket::address");
        return text;
    }
};

/* A connected socket: aco_io_dial(). */
inline socket dial(const char *network, const char *host, const char *port, const aco_io_options_t *options = nullptr,
                   const char *location = ACO__CALLER)
{
    const int fd = aco_io_dial_at(network, host, port, options, location);
    detail::io_check(fd, "aco::dial");
    return socket(fd);
}
/* A socket for datagrams: aco_io_bind(). */
inline socket bind(const char *network, const char *host, const char *port, const aco_io_options_t *options = nullptr)
{
    const int fd = aco_io_bind(network, host, port, options);
    detail::io_check(fd, "aco::bind");
    return socket(fd);
}

/* Accepts connections: aco_io_listen(). */
class listener : public descriptor {
public:
    using descriptor::descriptor;
    listener(const char *network, const char *host, const char *port, const aco_io_options_t *options = nullptr)
        : descriptor(aco_io_listen(network, host, port, options))
    {
        detail::io_check(get(), "aco::listener");
    }
    socket accept(const char *location = ACO__CALLER)
    {
        const int fd = aco_io_accept_at(get(), location);
        detail::io_check(fd, "aco::listener::accept");
        return socket(fd);
    }
    std::string local_address() const
    {
        char text[ACO_IO_ADDRESS_SIZE];
        detail::io_check(aco_io_local_address(get(), text, sizeof text), "aco::listener::local_address");
        return text;
    }
};

class stream; /* aco/stream.hpp */

/* A buffered reader: aco_io_reader_t with a lent buffer. It does not own the descriptor or stream. The text that it
 * returns is valid until the next call. */
class reader {
public:
    explicit reader(const descriptor &from, std::size_t size = 4096) noexcept
    {
        aco_io_reader_open(&reader_, from.get(), nullptr, size);
    }
    explicit reader(const stream &from, std::size_t size = 4096) noexcept;
    reader(const reader &) = delete;
    reader &operator=(const reader &) = delete;
    ~reader() { aco_io_reader_close(&reader_); }

    /* Returns the next line without its end, or std::nullopt if there is none. */
    std::optional<std::string_view> line(const char *location = ACO__CALLER)
    {
        char *text;
        const std::size_t n = detail::io_done(aco_io_reader_line_at(&reader_, &text, location), "aco::reader::line");
        return text ? std::optional<std::string_view>(std::in_place, text, n) : std::nullopt;
    }
    /* Returns the text with its delimiter; a last text may have none. After that it returns an empty text. */
    std::string_view until(char delimiter, const char *location = ACO__CALLER)
    {
        char *text;
        const std::size_t n = detail::io_done(aco_io_reader_until_at(&reader_, delimiter, &text, location),
                                              "aco::reader::until");
        return std::string_view(text, n);
    }
    /* Returns at least `n` bytes, or all up to the end of the stream. They are not consumed. */
    std::string_view peek(std::size_t n, const char *location = ACO__CALLER)
    {
        const char *bytes;
        const std::size_t have = detail::io_done(aco_io_reader_peek_at(&reader_, n, &bytes, location),
                                                 "aco::reader::peek");
        return std::string_view(bytes, have);
    }
    void consume(std::size_t n) noexcept { aco_io_reader_consume(&reader_, n); }
    std::size_t read(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_io_reader_read_at(&reader_, p, n, location), "aco::reader::read");
    }
    std::size_t read_exactly(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_io_reader_read_exactly_at(&reader_, p, n, nullptr, location),
                               "aco::reader::read_exactly");
    }
    aco_io_reader_t *native_handle() noexcept { return &reader_; }

private:
    aco_io_reader_t reader_;
};

/* A buffered writer: aco_io_writer_t with a lent buffer. It does not own the descriptor or stream. Its destructor drops
 * bytes that were not flushed. */
class writer {
public:
    explicit writer(const descriptor &to, std::size_t size = 4096) noexcept
    {
        aco_io_writer_open(&writer_, to.get(), nullptr, size);
    }
    explicit writer(const stream &to, std::size_t size = 4096) noexcept;
    writer(const writer &) = delete;
    writer &operator=(const writer &) = delete;
    ~writer() { aco_io_writer_close(&writer_); }

    void write(const void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_io_writer_write_at(&writer_, p, n, location), "aco::writer::write");
    }
    void write(std::string_view text, const char *location = ACO__CALLER) { write(text.data(), text.size(), location); }
    void flush(const char *location = ACO__CALLER)
    {
        detail::io_check(aco_io_writer_flush_at(&writer_, location), "aco::writer::flush");
    }
    aco_io_writer_t *native_handle() noexcept { return &writer_; }

private:
    aco_io_writer_t writer_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
