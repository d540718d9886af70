/* Streams for C++17 and later, on top of <aco/stream.h>. Header only; link acorn_io.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::stream peer(aco::dial("tcp", host, "7000"));
 *   peer.write_all("hello\n");
 *   peer.shutdown();
 *   while (std::size_t n = peer.read(bytes, sizeof bytes))
 *       ...
 *
 * The C header says what these calls do. Failures are exceptions, as in <aco/io.hpp>. */
#ifndef ACO_STREAM_HPP
#define ACO_STREAM_HPP

#include "io.hpp"
#include "proxy_protocol.h"
#include "stream.h"

namespace aco
{
inline namespace ACO__CPP_KIND
{

/* Owns a stream and closes it when destroyed. It can be moved; one that was moved from is empty, and only to be
 * destroyed, assigned to or asked whether it is. */
class stream
{
  public:
    stream() noexcept = default;
    explicit stream(aco_stream_t *owned) noexcept : stream_(owned)
    {
    }
    explicit stream(descriptor &&from) : stream_(aco_stream_open(from.detach()))
    {
        detail::io_check(stream_ ? 0 : -1, "aco::stream");
    }
    /* Reads from one and writes to the other. */
    stream(descriptor &&from, descriptor &&to) : stream_(aco_stream_open_both(from.detach(), to.detach()))
    {
        detail::io_check(stream_ ? 0 : -1, "aco::stream");
    }
    stream(stream &&from) noexcept : stream_(std::exchange(from.stream_, nullptr))
    {
    }
    stream &operator=(stream &&from) noexcept
    {
        if (this != &from) {
            aco_stream_close(stream_);
            stream_ = std::exchange(from.stream_, nullptr);
        }
        return *this;
    }
    ~stream()
    {
        aco_stream_close(stream_);
    }

    explicit operator bool() const noexcept
    {
        return stream_ != nullptr;
    }
    /* Returns 0 at the end. */
    std::size_t read(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_stream_read_at(stream_, p, n, location), "aco::stream::read");
    }
    /* Returns fewer than `n` if the stream has ended. */
    std::size_t read_exactly(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_stream_read_exactly_at(stream_, p, n, nullptr, location),
                               "aco::stream::read_exactly");
    }
    std::size_t write(const void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_stream_write_at(stream_, p, n, location), "aco::stream::write");
    }
    void write_all(const void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        detail::io_done(aco_stream_write_all_at(stream_, p, n, nullptr, location), "aco::stream::write_all");
    }
    void write_all(std::string_view text, const char *location = ACO__CALLER)
    {
        write_all(text.data(), text.size(), location);
    }
    void wait_readable(const char *location = ACO__CALLER)
    {
        detail::io_check(aco_stream_wait_readable_at(stream_, location), "aco::stream::wait_readable");
    }
    bool has_input() const
    {
        return aco_stream_has_input(stream_) != 0;
    }
    /* Ends writing; reads go on. */
    void shutdown(const char *location = ACO__CALLER)
    {
        detail::io_check(aco_stream_shutdown_at(stream_, location), "aco::stream::shutdown");
    }
    /* Wake the tasks that wait in the stream. */
    void close() noexcept
    {
        aco_stream_close(release());
    }
    void abort() noexcept
    {
        aco_stream_abort(release());
    }

    std::string local_address() const
    {
        return text_by(aco_stream_local_address);
    }
    std::string peer_address() const
    {
        return text_by(aco_stream_peer_address);
    }
    std::string_view protocol() const noexcept
    {
        return aco_stream_protocol(stream_);
    }
    aco_stream_t *native_handle() const noexcept
    {
        return stream_;
    }
    /* Gives up the stream: the caller closes it by aco_stream_close(). */
    aco_stream_t *release() noexcept
    {
        return std::exchange(stream_, nullptr);
    }

  private:
    std::string text_by(int (*get_text)(const aco_stream_t *, char *, std::size_t)) const
    {
        char text[ACO_IO_ADDRESS_SIZE];
        detail::io_check(get_text(stream_, text, sizeof text), "aco::stream::address");
        return text;
    }
    aco_stream_t *stream_ = nullptr;
};

/* Two streams of memory: aco_stream_pair(). */
inline std::pair<stream, stream> stream_pair(std::size_t size)
{
    aco_stream_t *ends[2];
    detail::io_check(aco_stream_pair(ends, size), "aco::stream_pair");
    return {stream(ends[0]), stream(ends[1])};
}

/* Returns the numbers of bytes from `one` to `other`, and back: aco_stream_copy_both_ways(). */
inline std::pair<std::uint64_t, std::uint64_t> copy_both_ways(stream &one, stream &other,
                                                              const char *location = ACO__CALLER)
{
    std::uint64_t copied[2];
    detail::io_check(aco_stream_copy_both_ways_at(one.native_handle(), other.native_handle(), copied, location),
                     "aco::copy_both_ways");
    return {copied[0], copied[1]};
}

/* Reads the header of the PROXY protocol, and makes a stream that has its client's address (aco/proxy_protocol.h).
 * Throws aco::error (EPROTO, ECONNRESET, …), aco::cancelled; the connection is closed then. */
inline stream stream_behind_proxy(descriptor &&from, const char *location = ACO__CALLER)
{
    aco_proxy_header_t header;
    descriptor connection(std::move(from));
    detail::io_check(aco_proxy_header_read_at(connection.get(), &header, location), "aco::stream_behind_proxy");
    stream made(aco_proxy_stream(aco_stream_open(connection.detach()), &header));
    detail::io_check(made ? 0 : -1, "aco::stream_behind_proxy");
    return made;
}

inline reader::reader(const stream &from, std::size_t size) noexcept
{
    aco_io_reader_open_stream(&reader_, from.native_handle(), nullptr, size);
}

inline writer::writer(const stream &to, std::size_t size) noexcept
{
    aco_io_writer_open_stream(&writer_, to.native_handle(), nullptr, size);
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
