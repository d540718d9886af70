/* A pool of resources for C++17 and later, on top of <aco/resource_pool.h>, which says what it does. Header only; link
 * acorn_resilience.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::resource_pool<connection> pool([] { return connection("db"); }, aco::resource_pool_options().with_limit(10));
 *   auto c = pool.get();
 *   c->query("select 1"); // if this throws, the connection is discarded; else it goes back at the end of the block
 *
 * Calls that fail throw what `create` threw, aco::cancelled, or aco::error (EPIPE: the pool is closed). */
#ifndef ACO_RESOURCE_POOL_HPP
#define ACO_RESOURCE_POOL_HPP

#include "resource_pool.h"
#include "scope.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace aco {
inline namespace ACO__CPP_KIND {

/* aco_resource_pool_options_t, which documents the fields, with setters. The functions are the pool's. */
struct resource_pool_options : aco_resource_pool_options_t {
    resource_pool_options() noexcept : aco_resource_pool_options_t() {}
    resource_pool_options &with_limit(std::size_t most) noexcept { return limit = most, *this; }
    template<class Rep, class Period>
    resource_pool_options &with_idle_time(const std::chrono::duration<Rep, Period> &most) noexcept
    {
        return idle_time = detail::nanoseconds_in(most), *this;
    }
};

/* Owns a pool. Nobody may use it when it is destroyed. */
template<class T>
class resource_pool {
    struct put_back {
        aco_resource_pool_t *pool = nullptr;
        int exceptions = 0; /* that were on their way when the resource was given out */
        void operator()(T *resource) const noexcept
        {
            if (std::uncaught_exceptions() > exceptions)
                aco_resource_pool_discard(pool, resource);
            else
                aco_resource_pool_put(pool, resource);
        }
    };

public:
    /* A resource in use: a std::unique_ptr whose destruction puts it back, or discards it if that is because of an
     * exception. */
    using lease = std::unique_ptr<T, put_back>;

    /* `create` returns a new T; `check`, if there is one, whether an idle T can still be used. Both may wait and throw:
     * a `check` that throws counts as false. */
    explicit resource_pool(std::function<T()> create, const resource_pool_options &options = resource_pool_options(),
                           std::function<bool(T &)> check = nullptr)
        : create_(std::move(create)), check_(std::move(check))
    {
        aco_resource_pool_options_t o = options;
        o.create = create_one;
        o.check = check_ ? check_one : nullptr;
        o.destroy = [](void *resource, void *) { delete static_cast<T *>(resource); };
        o.arg = this;
        pool_ = aco_resource_pool_new(&o);
        if (!pool_)
            detail::refused();
    }
    resource_pool(const resource_pool &) = delete;
    resource_pool &operator=(const resource_pool &) = delete;
    ~resource_pool() { aco_resource_pool_destroy(pool_); }

    lease get(const char *location = ACO__CALLER) { return get_until(ACO_FOREVER, location); }
    /* Empty if there was none in time. */
    template<class Rep, class Period>
    lease get_for(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
    {
        return get_until(detail::deadline_in(limit), location);
    }
    /* Destroys the resource; nothing happens with an empty lease. */
    void discard(lease used) noexcept
    {
        if (used)
            aco_resource_pool_discard(pool_, used.release());
    }
    void trim() noexcept { aco_resource_pool_trim(pool_); }
    void close(const char *location = ACO__CALLER)
    {
        detail::check(aco_resource_pool_close_until_at(pool_, ACO_FOREVER, location));
    }
    aco_resource_pool_t *native_handle() noexcept { return pool_; }

private:
    lease get_until(std::int64_t deadline, const char *location)
    {
        T *resource = static_cast<T *>(aco_resource_pool_get_until_at(pool_, deadline, location));
        if (std::exception_ptr error = std::exchange(error_, nullptr))
            std::rethrow_exception(std::move(error));
        if (!resource && (deadline == ACO_FOREVER || errno != ETIMEDOUT))
            detail::wait_failed();
        if (!resource)
            detail::check_timed_out();
        return lease(resource, put_back{pool_, std::uncaught_exceptions()});
    }
    static void *create_one(void *itself) noexcept
    {
        auto *pool = static_cast<resource_pool *>(itself);
        try {
            return new T(pool->create_());
        } catch (const cancelled &c) {
            errno = c.error();
        } catch (...) {
            pool->error_ = detail::caught(); /* get_until() takes it: no other task runs before that */
            errno = ECANCELED;
        }
        return nullptr;
    }
    static int check_one(void *resource, void *itself) noexcept
    {
        try {
            return static_cast<resource_pool *>(itself)->check_(*static_cast<T *>(resource)) ? 0 : -1;
        } catch (...) {
            return -1;
        }
    }

    std::function<T()> create_;
    std::function<bool(T &)> check_;
    std::exception_ptr error_;
    aco_resource_pool_t *pool_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
