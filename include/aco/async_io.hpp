/* Descriptors in stackless coroutines: what <aco/async.hpp> has for channels and locks, on top of <aco/io.h>. C++20.
 * Header only; link acorn_io.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::async<> echo(int fd) // a descriptor of aco/io.h
 *   {
 *       char bytes[1024];
 *       while (std::size_t n = co_await aco::async_read(fd, bytes, sizeof bytes))
 *           co_await aco::async_write_all(fd, bytes, n);
 *   }
 *
 * A member that waits for a descriptor takes its frame alone, and that of async_read() or async_write_all(). Members
 * and tasks may wait for the same descriptor; an event wakes all of them. Failures are those of <aco/io.hpp>. */
#ifndef ACO_ASYNC_IO_HPP
#define ACO_ASYNC_IO_HPP

#include "async.hpp"
#include "detail/descriptors.h"
#include "io.hpp"

namespace aco
{
inline namespace ACO__CPP_KIND
{

namespace detail
{

/* A member's wait for a descriptor. While the system can watch no more, it is one for a millisecond. */
class member_io : public member_place
{
  public:
    member_io(async_member *member, int fd, bool writes, bool looks) : member_place(member)
    {
        const int result = aco__io_relay(member->loop->relay(), this, fd, writes, looks, call);
        is_placed_ = result == ACO__RELAYED;
        is_asleep_ = result < 0 && errno == EAGAIN;
        if (result < 0 && !is_asleep_) {
            member->loop->check_stopped();
            io_failed(call);
        }
    }
    ~member_io()
    {
        if (is_placed_)
            (void)aco__io_relay_end(this);
    }
    bool await_ready() const
    {
        if (is_asleep_)
            member_->loop->check_stopped();
        return !is_placed_ && !is_asleep_;
    }
    void await_suspend(std::coroutine_handle<>)
    {
        if (is_asleep_)
            member_->loop->make_ready_at(member_, deadline_in(std::chrono::milliseconds(1)));
    }
    void await_resume()
    {
        const bool is_closed = std::exchange(is_placed_, false) && aco__io_relay_end(this) != 0;
        if (as.error || is_asleep_)
            member_->loop->check_stopped();
        if (is_closed)
            refused(ECANCELED, call, nullptr, "the descriptor was closed");
    }

  private:
    static constexpr char call[] = "aco::async_readable";
    bool is_placed_, is_asleep_;
};

struct async_io_wait {
    int fd;
    bool writes, looks;
    auto in_member(async_member *member) const
    {
        return member_io(member, fd, writes, looks);
    }
};

/* Members whose calls never wait give others a turn from time to time. */
class member_spends : public member_yield
{
  public:
    using member_yield::member_yield;
    bool await_ready() const noexcept
    {
        return !member_->loop->spends() || member_yield::await_ready();
    }
};
struct async_spend {
    auto in_member(async_member *member) const noexcept
    {
        return member_spends(member);
    }
};

} // namespace detail

/* Wait until an event tells that the descriptor can be read, or written to. Such an event may come although the next
 * call would have to wait, so make that a call that does not wait. Throw aco::error (ECANCELED: it was closed). */
[[nodiscard]] inline auto async_readable(int fd) noexcept
{
    return detail::async_io_wait{fd, false, true};
}
[[nodiscard]] inline auto async_writable(int fd) noexcept
{
    return detail::async_io_wait{fd, true, true};
}

/* Reads what is there, at most `n` bytes; waits while nothing is. Gives how many; 0: the stream has ended. `p` must be
 * valid until then. */
inline async<std::size_t> async_read(int fd, void *p, std::size_t n)
{
    static constexpr char call[] = "aco::async_read";
    co_await detail::async_spend();
    for (;;) {
        const ssize_t got = aco__io_read_now(fd, p, n, call);
        if (got >= 0)
            co_return static_cast<std::size_t>(got);
        if (errno != EAGAIN)
            detail::io_failed(call);
        co_await detail::async_io_wait{fd, false, false};
    }
}

/* Writes all bytes, which must be valid until then. */
inline async<> async_write_all(int fd, const void *p, std::size_t n)
{
    static constexpr char call[] = "aco::async_write_all";
    const char *from = static_cast<const char *>(p);
    co_await detail::async_spend();
    while (n) {
        const ssize_t put = aco__io_write_now(fd, from, n, call);
        if (put < 0 && errno != EAGAIN)
            detail::io_failed(call);
        if (put < 0) {
            co_await detail::async_io_wait{fd, true, false};
            continue;
        }
        from += put;
        n -= static_cast<std::size_t>(put);
    }
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
