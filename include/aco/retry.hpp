/* Retrying for C++17 and later, on top of <aco/retry.h>, which says how. Header only; link acorn_resilience.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   page p = aco::retry({}, [&] { return fetch(url); },
 *                       [](const std::exception &e) { return dynamic_cast<const timeout *>(&e) != nullptr; }); */
#ifndef ACO_RETRY_HPP
#define ACO_RETRY_HPP

#include "retry.h"
#include "scope.hpp"

#include <exception>
#include <type_traits>

namespace aco {
inline namespace ACO__CPP_KIND {

/* Calls f() until it returns, and returns that. If f() throws a std::exception `e` and is_worth(e), there is another
 * try; else, and when the call gives up, its last exception leaves. aco::cancelled is never retried; it is thrown if a
 * scope ends the pause. */
template<class F, class IsWorth>
decltype(auto) retry(const aco_retry_options_t &options, F &&f, IsWorth &&is_worth, const char *location = ACO__CALLER)
{
    static_assert(std::is_invocable_v<F &>, "aco::retry: the callable is called as f()");
    static_assert(std::is_invocable_r_v<bool, IsWorth &, const std::exception &>,
                  "aco::retry: `is_worth` is called as is_worth(exception)");
    aco_retry_t state;
    std::exception_ptr failure;
    for (aco_retry_begin(&state, &options);;) {
        try {
            return f();
        } catch (const std::exception &e) {
            if (!is_worth(e))
                throw;
            failure = detail::caught();
        }
        if (aco_retry_again_at(&state, EAGAIN, location) != 0) { /* outside of the handler: it waits */
            if (errno != EAGAIN)
                detail::wait_failed();
            std::rethrow_exception(std::move(failure));
        }
        failure = nullptr;
    }
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
