/* Pools of private stacks for C++17 and later, on top of <aco/pool.h>, which says what these calls do. Header only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_pool_options_t limits = {};
 *   limits.most_stacks = 1000;
 *   aco::pool pool(limits);
 *   aco::spawn(f, aco::options().from(pool.native_handle()));
 *
 * A call that fails throws aco::error. */
#ifndef ACO_POOL_HPP
#define ACO_POOL_HPP

#include "../aco.hpp"
#include "pool.h"

namespace aco {
inline namespace ACO__CPP_KIND {

/* Owns a pool. Every coroutine of the pool must be destroyed before it: else the process aborts. */
class pool {
public:
    explicit pool(const aco_pool_options_t &options = aco_pool_options_t()) : pool_(aco_pool_new(&options))
    {
        if (aco_unlikely(!pool_))
            detail::refused();
    }
    pool(const pool &) = delete;
    pool &operator=(const pool &) = delete;
    ~pool()
    {
        if (aco_unlikely(aco_pool_destroy(pool_) != 0))
            detail::die(aco_error_message());
    }

    /* Any thread. Returns how many stacks lost their pages. */
    std::size_t trim() noexcept { return aco_pool_trim(pool_); }
    /* Any thread. */
    aco_pool_stats_t stats() const noexcept
    {
        aco_pool_stats_t stats;
        (void)aco_pool_stats(pool_, &stats);
        return stats;
    }
    aco_pool_t *native_handle() const noexcept { return pool_; }

private:
    aco_pool_t *pool_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
