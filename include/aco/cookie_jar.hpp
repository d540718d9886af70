/* Cookies of HTTP clients for C++17 and later, on top of <aco/cookie_jar.h>. Header only; link acorn_http.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::cookie_jar jar([](const char *domain) { return psl_is_public_suffix(psl_builtin(), domain) != 0; });
 *   aco_http_client_options_t options = {};
 *   options.jar = jar.native_handle();
 *   aco::http_client client(&options);
 *
 * A jar outlives its clients. Errors are aco::error. */
#ifndef ACO_COOKIE_JAR_HPP
#define ACO_COOKIE_JAR_HPP

#include "cookie_jar.h"
#include "io.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace aco {
inline namespace ACO__CPP_KIND {

class cookie_jar {
public:
    /* `is_suffix` must not throw. */
    explicit cookie_jar(std::function<bool(const char *)> is_suffix = nullptr, aco_cookie_jar_options_t options = {})
        : is_suffix_(std::make_unique<std::function<bool(const char *)>>(std::move(is_suffix)))
    {
        if (*is_suffix_) {
            options.is_suffix = ask;
            options.suffix_arg = is_suffix_.get();
        }
        jar_.reset(aco_cookie_jar_new(&options));
        detail::io_check(jar_ ? 0 : -1, "aco::cookie_jar");
    }

    /* Returns whether the cookie is kept. */
    bool set(const std::string &url, const std::string &set_cookie)
    {
        const int result = aco_cookie_jar_set(jar_.get(), url.c_str(), set_cookie.c_str());
        detail::io_check(result, "aco::cookie_jar::set");
        return result != 0;
    }
    std::string get(const std::string &url)
    {
        std::string text(1024, '\0');
        ssize_t n;
        while ((n = aco_cookie_jar_get(jar_.get(), url.c_str(), &text[0], text.size())) < 0 && errno == ENOBUFS)
            text.resize(2 * text.size());
        text.resize(detail::io_done(n, "aco::cookie_jar::get"));
        return text;
    }
    /* `fn` gets each cookie, and must not use the jar or wait. If it throws, it is not called again. */
    template <class F> void each(F &&fn)
    {
        struct call {
            std::remove_reference_t<F> *fn;
            std::exception_ptr thrown;
        } all{std::addressof(fn), nullptr};
        aco_cookie_jar_each(
            jar_.get(),
            [](const aco_cookie_t *cookie, void *arg) {
                auto &c = *static_cast<call *>(arg);
                try {
                    if (!c.thrown)
                        (*c.fn)(*cookie);
                } catch (...) {
                    c.thrown = std::current_exception();
                }
            },
            &all);
        if (all.thrown)
            std::rethrow_exception(all.thrown);
    }
    void clear(bool only_session = false) { aco_cookie_jar_clear(jar_.get(), only_session); }
    aco_cookie_jar_t *native_handle() const noexcept { return jar_.get(); }

private:
    static int ask(const char *domain, void *arg)
    {
        return (*static_cast<std::function<bool(const char *)> *>(arg))(domain);
    }
    struct destroy {
        void operator()(aco_cookie_jar_t *jar) const noexcept { aco_cookie_jar_destroy(jar); }
    };
    std::unique_ptr<std::function<bool(const char *)>> is_suffix_;
    std::unique_ptr<aco_cookie_jar_t, destroy> jar_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
