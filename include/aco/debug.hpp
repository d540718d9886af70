/* A look into a running program for C++17 and later, on top of <aco/debug.h>, which says what it does. Header only;
 * link acorn_debug.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::debug_serve("127.0.0.1:6060");
 *   const auto sold = aco::metric::counter("shop_sold", "Things sold.", "kind");
 *   sold["book"].add(); */
#ifndef ACO_DEBUG_HPP
#define ACO_DEBUG_HPP

#include "debug.h"
#include "scope.hpp"

#include <initializer_list>
#include <string>

namespace aco {
inline namespace ACO__CPP_KIND {

/* Returns the port. Throws aco::error. */
inline int debug_serve(const std::string &address, bool is_public = false)
{
    aco_debug_options_t options = {};
    options.is_public = is_public;
    const int port = aco_debug_serve(address.c_str(), &options);
    detail::check(port < 0 ? -1 : 0);
    return port;
}
inline void debug_stop() noexcept { aco_debug_stop(); }
inline const aco_http_route_t *debug_routes() noexcept { return aco_debug_routes(); }

enum class metric_unit { count = ACO_METRIC_COUNT, seconds = ACO_METRIC_SECONDS, bytes = ACO_METRIC_BYTES };

/* One line of a metric: cheap to copy; keep it. */
class metric_series {
public:
    explicit metric_series(aco_metric_series_t *series) noexcept : series_(series) {}
    void add(int64_t n = 1) const noexcept { aco_metric_add(series_, n); }
    void set(int64_t value) const noexcept { aco_metric_set(series_, value); }
    void observe(int64_t value) const noexcept { aco_metric_observe(series_, value); }
    template <class Rep, class Period> void observe(const std::chrono::duration<Rep, Period> &time) const noexcept
    {
        aco_metric_observe(series_, std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
    }

private:
    aco_metric_series_t *series_;
};

/* A metric; it lasts until the process ends. Making one throws aco::error. */
class metric {
public:
    static metric counter(const std::string &name, const std::string &help, const char *label = nullptr,
                          metric_unit unit = metric_unit::count)
    {
        return metric(aco_metric_counter(name.c_str(), help.c_str(), static_cast<int>(unit), label));
    }
    static metric gauge(const std::string &name, const std::string &help, const char *label = nullptr,
                        metric_unit unit = metric_unit::count)
    {
        return metric(aco_metric_gauge(name.c_str(), help.c_str(), static_cast<int>(unit), label));
    }
    static metric histogram(const std::string &name, const std::string &help, std::initializer_list<int64_t> bounds,
                            const char *label = nullptr, metric_unit unit = metric_unit::seconds)
    {
        return metric(aco_metric_histogram(name.c_str(), help.c_str(), static_cast<int>(unit), label, bounds.begin(),
                                           bounds.size()));
    }
    /* The series with this value of the label; without an argument, that of a metric without one. Locks: keep it. */
    metric_series operator[](const std::string &value) const
    {
        return metric_series(aco_metric_series(metric_, value.c_str()));
    }
    metric_series series() const noexcept { return metric_series(aco_metric_series(metric_, nullptr)); }

private:
    explicit metric(aco_metric_t *made) : metric_(made) { detail::check(made ? 0 : -1); }
    aco_metric_t *metric_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
