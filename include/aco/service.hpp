/* The life of a service for C++17 and later, on top of <aco/service.h>, which says what it does. Header only; link
 * acorn_service.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   int main()
 *   {
 *       aco::run_service([&](aco::service service) { // on each thread
 *           aco::listener door = service.listen("http", "tcp", nullptr, "8080");
 *           service.ready();
 *           server.serve(std::move(door));
 *       }, aco::service_options().with_drain_time(20s).with_hand_over("shop"));
 *   }
 *
 * A callable that several threads call must be safe to call on several threads at once. */
#ifndef ACO_SERVICE_HPP
#define ACO_SERVICE_HPP

#include "io.hpp"
#include "service.h"
#include "threads.hpp"

#include <memory>

namespace aco {
inline namespace ACO__CPP_KIND {

/* aco_service_options_t, which documents the fields, with setters. `load` and `unload` must stay NULL: run_service()
 * takes a callable. */
struct service_options : aco_service_options_t {
    service_options() noexcept : aco_service_options_t() {}
    service_options &with_threads(int n) noexcept { return threads = n, *this; }
    service_options &with_flags(unsigned of_threads) noexcept { return flags = of_threads, *this; }
    service_options &with_hand_over(const char *name) noexcept { return hand_over = name, *this; }
    template<class Rep, class Period>
    service_options &with_lame_time(const std::chrono::duration<Rep, Period> &most) noexcept
    {
        return lame_time = detail::nanoseconds_in(most), *this;
    }
    template<class Rep, class Period>
    service_options &with_drain_time(const std::chrono::duration<Rep, Period> &most) noexcept
    {
        return drain_time = detail::nanoseconds_in(most), *this;
    }
};

/* Refers to the service that runs. */
class service {
    struct release {
        aco_service_config_t *config = nullptr;
        void operator()(const void *) const noexcept { aco_service_config_release(config); }
    };

public:
    /* Holds a configuration; its destruction releases it. */
    template<class Config>
    using config_ptr = std::unique_ptr<const Config, release>;

    explicit service(aco_service_t *running) noexcept : service_(running) {}

    /* aco_service_listen(). Throws aco::error, aco::cancelled. */
    [[nodiscard]] listener listen(const char *name, const char *network, const char *host, const char *port,
                                  const aco_io_options_t *options = nullptr,
                                  const char *location = ACO__CALLER) const
    {
        const int fd = aco_service_listen_at(service_, name, network, host, port, options, location);
        detail::io_check(fd, "aco::service::listen");
        return listener(fd);
    }
    void ready() const noexcept { aco_service_ready(service_); }
    bool is_stopping() const noexcept { return aco_service_is_stopping(service_) != 0; }
    aco_group_t *group() const noexcept { return aco_service_group(service_); }
    /* Makes a member of the thread's group that runs f(): a connection, for example, which may go on when the service
     * is stopped. An exception that leaves f(), other than aco::cancelled, is told on stderr and ends the process.
     * Throws aco::error, aco::cancelled, and what moving `f` throws. */
    template<class F>
    void spawn(F &&f, const char *location = ACO__CALLER) const
    {
        using function = std::decay_t<F>;
        static_assert(std::is_invocable_v<function &>, "aco::service::spawn: the callable is called as f()");
        detail::packed_callable<function> packed(std::forward<F>(f));
        if (!aco_group_spawn_at(group(), run_member<function>, packed.get(), nullptr, nullptr, location))
            detail::wait_failed();
        packed.release();
    }
    /* The present configuration, of the type that `load` makes. */
    template<class Config>
    [[nodiscard]] config_ptr<Config> config() const noexcept
    {
        aco_service_config_t *held = aco_service_config(service_);
        return config_ptr<Config>(held ? static_cast<const Config *>(held->value) : nullptr, release{held});
    }
    aco_service_t *native_handle() const noexcept { return service_; }

private:
    template<class F>
    static void *run_member(void *packed)
    {
        try {
            detail::call_packed<F>(packed);
        } catch (...) {
            detail::dropped(detail::caught(), aco_co(), aco_name(aco_co()));
        }
        return nullptr;
    }
    aco_service_t *service_;
};

namespace detail {

struct no_config {
    std::unique_ptr<int> operator()() const noexcept { return nullptr; }
};

/* The two callables as what the C calls take. */
template<class Serve, class Load>
struct service_calls {
    called_by_all<Serve> serve;
    Load &make_config;
    std::exception_ptr not_loaded; /* why the last configuration could not be made */

    using config_t = typename std::invoke_result_t<Load &>::element_type;

    static int run(aco_service_t *running, void *calls)
    {
        return static_cast<service_calls *>(calls)->serve.call(service(running));
    }
    static void *load(void *calls)
    {
        auto *self = static_cast<service_calls *>(calls);
        try {
            self->not_loaded = nullptr;
            return self->make_config().release();
        } catch (...) {
            self->not_loaded = caught();
        }
        errno = ECANCELED;
        return nullptr;
    }
    static void unload(void *value, void *) { delete static_cast<config_t *>(value); }
};

} // namespace detail

/* Runs serve(service) on each thread by aco_service_run(). `load` makes a configuration, as a std::unique_ptr; if it
 * throws when the service runs, that keeps its configuration. Throws what the first `serve` that failed threw, or
 * `load` before the service ran; aco::error. */
template<class Serve, class Load>
void run_service(Serve &&serve, Load &&load, const service_options &how)
{
    using calls_t = detail::service_calls<std::remove_reference_t<Serve>, std::remove_reference_t<Load>>;
    constexpr bool loads = !std::is_same_v<std::decay_t<Load>, detail::no_config>;
    calls_t calls{{serve, {}}, load, nullptr};
    aco_service_options_t options = how;
    int result;
    if (options.load || options.unload)
        detail::refused(EINVAL, "aco::run_service", nullptr, "the options have a load or an unload");
    if (loads) {
        options.load = calls_t::load;
        options.unload = calls_t::unload;
    }
    result = aco_service_run(calls_t::run, &calls, &options);
    if (result != 0 && errno == ECANCELED && calls.not_loaded)
        std::rethrow_exception(std::move(calls.not_loaded));
    calls.serve.end(result);
}
template<class Serve>
void run_service(Serve &&serve, const service_options &how = service_options())
{
    run_service(std::forward<Serve>(serve), detail::no_config(), how);
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
