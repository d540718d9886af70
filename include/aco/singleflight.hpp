/* Singleflight for C++17 and later, on top of <aco/singleflight.h>, which says what it does. Header only; link
 * acorn_resilience.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::singleflight<page> pages([](std::string_view url) { return load(url); });
 *   std::shared_ptr<const page> p = pages("/index");
 *
 * All calls that share a run get the same object, or the exception that left the run; or they throw aco::cancelled or
 * aco::error (EPIPE: it is closed). */
#ifndef ACO_SINGLEFLIGHT_HPP
#define ACO_SINGLEFLIGHT_HPP

#include "scope.hpp"
#include "singleflight.h"

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace aco {
inline namespace ACO__CPP_KIND {

/* When it is destroyed, no call may be under way, and no result may be left: close() waits for that. */
template<class T>
class singleflight {
public:
    /* `cancels_abandoned`: a run ends when its last caller has left. */
    explicit singleflight(std::function<T(std::string_view)> run, bool cancels_abandoned = false)
        : run_(std::move(run))
    {
        aco_singleflight_options_t o{};
        o.run = run_one;
        o.release = [](void *result, void *) { delete static_cast<outcome *>(result); };
        o.cancels_abandoned = cancels_abandoned;
        o.arg = this;
        singleflight_ = aco_singleflight_new(&o);
        if (!singleflight_)
            detail::refused();
    }
    singleflight(const singleflight &) = delete;
    singleflight &operator=(const singleflight &) = delete;
    ~singleflight() { aco_singleflight_destroy(singleflight_); }

    std::shared_ptr<const T> operator()(std::string_view key, const char *location = ACO__CALLER)
    {
        const aco_flight_t *flight =
            aco_singleflight_call_until_at(singleflight_, key.data(), key.size(), ACO_FOREVER, location);
        if (!flight)
            detail::wait_failed();
        const outcome *result = static_cast<const outcome *>(flight->result);
        if (result->value)
            return std::shared_ptr<const T>(&*result->value, [flight](const T *) { aco_flight_release(flight); });
        std::exception_ptr error = result->error;
        aco_flight_release(flight);
        std::rethrow_exception(std::move(error));
    }
    void forget(std::string_view key) noexcept { aco_singleflight_forget(singleflight_, key.data(), key.size()); }
    void close(const char *location = ACO__CALLER)
    {
        detail::check(aco_singleflight_close_until_at(singleflight_, ACO_FOREVER, location));
    }
    aco_singleflight_t *native_handle() noexcept { return singleflight_; }

private:
    struct outcome {
        std::optional<T> value;
        std::exception_ptr error;
    };
    static void *run_one(const void *key, std::size_t size, void *itself) noexcept
    {
        std::unique_ptr<outcome> result(new (std::nothrow) outcome);
        if (!result) {
            errno = ENOMEM;
            return ACO_ERROR;
        }
        try {
            result->value.emplace(
                static_cast<singleflight *>(itself)->run_(std::string_view(static_cast<const char *>(key), size)));
        } catch (...) {
            result->error = detail::caught();
        }
        return result.release();
    }

    std::function<T(std::string_view)> run_;
    aco_singleflight_t *singleflight_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
