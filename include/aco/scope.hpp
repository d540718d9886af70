/* Scopes, and how waits of tasks fail, in C++17 and later: <aco/scope.h>. <aco/task.hpp> includes this header, and says
 * what C++ adds to the C calls.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ACO_SCOPE_HPP
#define ACO_SCOPE_HPP

#include "../aco.hpp"
#include "scope.h"

#if !ACO__CPP_EXCEPTIONS
#error "acorn: tasks in C++ need exceptions; without them use the C calls"
#endif

#ifdef __GLIBCXX__ /* there these two have durations, clocks and literals, and compile faster than <chrono> */
#include <condition_variable>
#include <mutex>
#else
#include <chrono>
#endif

/* As a default argument: the caller's file and line. */
#define ACO__CALLER ::aco::detail::caller(__builtin_FILE(), __builtin_LINE())

namespace aco {
inline namespace ACO__CPP_KIND {

/* Thrown by a wait because its scope has ended. */
class cancelled {
public:
    explicit cancelled(int error) noexcept : error_(error) {}
    int error() const noexcept { return error_; } /* ETIMEDOUT: its deadline; ECANCELED: it was cancelled */
    const char *what() const noexcept { return error_ == ETIMEDOUT ? "the deadline has passed" : "cancelled"; }

private:
    int error_;
};

/* How a call ended that waits with a time limit, or not at all. */
enum class status {
    done,
    timed_out,
    closed,    /* the channel is */
    would_wait /* of a try_… call */
};

/* The clock of aco_now(), for time points. In a simulation (<aco/sim.hpp>) it is the virtual one, while those of
 * <chrono> are real. */
struct monotonic_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<monotonic_clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return time_point(duration(aco_now())); }
};

namespace detail {

/* A location as C calls take it. HWASan has its tags where the line would be in the address. */
ACO__FORCE_INLINE_MEMBER const char *caller(const char *file, std::uintptr_t line)
{
#if defined(ACO__LINE_SHIFT) && !defined(__SANITIZE_HWADDRESS__)
    const std::uintptr_t most = UINTPTR_MAX >> ACO__LINE_SHIFT;
    return reinterpret_cast<const char *>(reinterpret_cast<std::uintptr_t>(file) |
                                          (line <= most ? line << ACO__LINE_SHIFT : 0));
#else
    static_cast<void>(line);
    return file;
#endif
}

[[noreturn]] ACO__COLD inline void wait_failed()
{
    if (errno == ECANCELED || errno == ETIMEDOUT)
        throw cancelled(errno);
    refused();
}

ACO__FORCE_INLINE_MEMBER void check(int result)
{
    if (aco_unlikely(result != 0))
        wait_failed();
}

/* After a failed wait with a time limit: returns if that has passed; else throws, as when the task's scope has
 * ended. */
ACO__COLD inline void check_timed_out()
{
    if (errno != ETIMEDOUT || (aco_current_task() && aco_check_cancelled() != 0))
        wait_failed();
}

ACO__FORCE_INLINE_MEMBER bool in_time(int result)
{
    if (aco_likely(result == 0))
        return true;
    check_timed_out();
    return false;
}

/* Whether a try_… call got the lock. */
inline bool tried(int result)
{
    if (result != 0 && errno != EBUSY)
        refused();
    return result == 0;
}

/* For calls that cannot fail in a correct program and must not throw. */
ACO__FORCE_INLINE_MEMBER void must(int result) noexcept
{
    if (aco_unlikely(result != 0))
        die(aco_error_message());
}

/* A duration in nanoseconds, rounded up. One that an int64_t cannot hold gives the nearest limit. <chrono>'s
 * conversions and comparisons would overflow: max() of a coarse type would be negative. */
template<class Rep, class Period>
std::int64_t nanoseconds_in(const std::chrono::duration<Rep, Period> &d)
{
    using namespace std::chrono;
    using tick = std::ratio_divide<Period, std::nano>;
    const double ns = duration<double, std::nano>(d).count();
    if (!(ns < 9.2e18))
        return INT64_MAX;
    if (ns < -9.2e18)
        return INT64_MIN;
    if constexpr (tick::num == 1 || tick::den == 1) { /* else ceil() compares in a unit that is finer than both */
        return ceil<nanoseconds>(d).count();
    } else {
        const auto whole = static_cast<std::int64_t>(ns);
        return whole + (static_cast<double>(whole) < ns);
    }
}

/* A duration as a deadline. */
template<class Rep, class Period>
std::int64_t deadline_in(const std::chrono::duration<Rep, Period> &d)
{
    const std::int64_t ns = nanoseconds_in(d);
    return ns == INT64_MAX ? ACO_FOREVER : aco_after(ns);
}

template<class Clock, class Duration>
std::int64_t deadline_at(const std::chrono::time_point<Clock, Duration> &when)
{
    const std::int64_t at = nanoseconds_in(when.time_since_epoch());
    const std::int64_t now = nanoseconds_in(Clock::now().time_since_epoch());
    const std::uint64_t left = static_cast<std::uint64_t>(at) - static_cast<std::uint64_t>(now);
    if (at <= now)
        return aco_now();
    return at == INT64_MAX || left > INT64_MAX ? ACO_FOREVER : aco_after(static_cast<std::int64_t>(left));
}

template<class Duration>
std::int64_t deadline_at(const std::chrono::time_point<monotonic_clock, Duration> &when)
{
    return nanoseconds_in(when.time_since_epoch());
}

/* Room for a T. */
template<class T>
struct raw {
    alignas(T) unsigned char byte[sizeof(T)];
};

} // namespace detail

/* A scope of the running task, from construction to destruction: a local variable. Scopes must be destroyed in the
 * order of local variables, else the process aborts. The constructors throw aco::error with EPERM outside tasks. */
class scope {
public:
    explicit scope(const char *location = ACO__CALLER) : scope(ACO_FOREVER, location) {}
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ~scope() { detail::must(aco_scope_end(&scope_)); }

    void cancel() { detail::check(aco_scope_cancel(&scope_)); }
    int error() const noexcept { return scope_.error; } /* why it ended early: ETIMEDOUT, ECANCELED; 0: it has not */
    /* Whether waits inside fail because of this scope, and not because of one around it. */
    bool ended() const noexcept { return aco_scope_ended_by(&scope_) == &scope_; }
    aco_scope_t *native_handle() noexcept { return &scope_; }

protected:
    scope(std::int64_t deadline, const char *location)
    {
        if (aco_unlikely(aco_scope_begin_at(&scope_, deadline, location) != 0))
            detail::refused();
    }
    struct shielded {};
    scope(shielded, std::int64_t deadline, const char *location)
    {
        if (aco_unlikely(aco_shield_begin_at(&scope_, deadline, location) != 0))
            detail::refused();
    }

private:
    aco_scope_t scope_;
};

/* A scope with a deadline. */
class deadline : public scope {
public:
    template<class Rep, class Period>
    explicit deadline(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
        : scope(detail::deadline_in(limit), location) {}
    template<class Clock, class Duration>
    explicit deadline(const std::chrono::time_point<Clock, Duration> &when, const char *location = ACO__CALLER)
        : scope(detail::deadline_at(when), location) {}
};

/* A scope that does not end with the scopes around it. */
class shield : public scope {
public:
    explicit shield(const char *location = ACO__CALLER) : scope(shielded(), ACO_FOREVER, location) {}
    template<class Rep, class Period>
    explicit shield(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
        : scope(shielded(), detail::deadline_in(limit), location) {}
};

namespace detail {
template<class Limit, class F>
bool try_within(Limit &&limit, F &&f)
{
    static_assert(std::is_invocable_v<F>, "the callable of a scope is called as f()");
    try {
        static_cast<void>(std::forward<F>(f)());
        return true;
    } catch (const cancelled &) {
        if (!limit.ended())
            throw;
        return false;
    }
}
} // namespace detail

/* Calls f() in a scope with a deadline. Returns false if f() was left because the deadline had passed. */
template<class Rep, class Period, class F>
bool try_for(const std::chrono::duration<Rep, Period> &limit, F &&f, const char *location = ACO__CALLER)
{
    return detail::try_within(deadline(limit, location), std::forward<F>(f));
}
template<class Clock, class Duration, class F>
bool try_until(const std::chrono::time_point<Clock, Duration> &when, F &&f, const char *location = ACO__CALLER)
{
    return detail::try_within(deadline(when, location), std::forward<F>(f));
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
