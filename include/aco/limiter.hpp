/* A rate limiter for C++17 and later, on top of <aco/limiter.h>, which says what it does. Header only; link
 * acorn_resilience.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::limiter limiter(10ms, 20); // 100 in a second, 20 of them at once
 *   limiter.wait();
 *
 * Calls that fail throw aco::error, or aco::cancelled if a scope has ended or will end before the tokens come. */
#ifndef ACO_LIMITER_HPP
#define ACO_LIMITER_HPP

#include "limiter.h"
#include "scope.hpp"

namespace aco {
inline namespace ACO__CPP_KIND {

class limiter {
public:
    template<class Rep, class Period>
    limiter(const std::chrono::duration<Rep, Period> &interval, std::int64_t burst) noexcept
        : limiter_ ACO_LIMITER_INIT(detail::nanoseconds_in(interval), burst) {}
    limiter(const limiter &) = delete;
    limiter &operator=(const limiter &) = delete;

    /* Whether the tokens were there. */
    bool try_take(std::int64_t n = 1)
    {
        if (aco_limiter_try(&limiter_, n) == 0)
            return true;
        if (errno != EAGAIN)
            detail::refused();
        return false;
    }
    void wait(std::int64_t n = 1, const char *location = ACO__CALLER)
    {
        detail::check(aco_limiter_wait_until_at(&limiter_, n, ACO_FOREVER, location));
    }
    /* Whether the tokens have come in time; if not, the call has not waited. */
    template<class Rep, class Period>
    bool wait_for(const std::chrono::duration<Rep, Period> &limit, std::int64_t n = 1,
                  const char *location = ACO__CALLER)
    {
        return detail::in_time(aco_limiter_wait_until_at(&limiter_, n, detail::deadline_in(limit), location));
    }
    aco_limiter_t *native_handle() noexcept { return &limiter_; }

private:
    aco_limiter_t limiter_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
