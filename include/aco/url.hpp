/* URLs for C++17 and later, on top of <aco/url.h>. Header only; link acorn_http.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::resolve_url("https://example.org/a/b?c", "../d"); // https://example.org/d
 *   aco::url url("https://example.org:8443/a/b?c#d");
 *   url.host();                                            // example.org
 *
 * Errors are aco::error. */
#ifndef ACO_URL_HPP
#define ACO_URL_HPP

#include "io.hpp"
#include "url.h"

#include <string>
#include <string_view>

namespace aco {
inline namespace ACO__CPP_KIND {

/* A URL, or a relative reference, and its parts. A part that is missing has no data(); one that is empty has. */
class url {
public:
    explicit url(std::string text) : text_(std::move(text))
    {
        detail::io_check(aco_url_parse(&parts_, text_.c_str()), "aco::url");
    }
    url(const url &from) : url(from.text_) {}
    url &operator=(const url &from)
    {
        text_ = from.text_;
        (void)aco_url_parse(&parts_, text_.c_str());
        return *this;
    }

    const std::string &text() const noexcept { return text_; }
    std::string_view scheme() const noexcept { return view(parts_.scheme); }
    std::string_view user() const noexcept { return view(parts_.user); }
    std::string_view host() const noexcept { return view(parts_.host); }
    std::string_view port() const noexcept { return view(parts_.port); }
    std::string_view path() const noexcept { return view(parts_.path); }
    std::string_view query() const noexcept { return view(parts_.query); }
    std::string_view fragment() const noexcept { return view(parts_.fragment); }

private:
    static std::string_view view(aco_url_part_t part) noexcept { return std::string_view(part.at, part.n); }
    std::string text_;
    aco_url_t parts_;
};

inline std::string resolve_url(const std::string &base, const std::string &reference)
{
    std::string to(base.size() + reference.size() + 8, '\0');
    to.resize(detail::io_done(aco_url_resolve(&to[0], to.size(), base.c_str(), reference.c_str()), "aco::resolve_url"));
    return to;
}

inline std::string normalize_url(const std::string &text)
{
    std::string to(text.size() + 8, '\0');
    to.resize(detail::io_done(aco_url_normalize(&to[0], to.size(), text.c_str()), "aco::normalize_url"));
    return to;
}

inline std::string escape_url(std::string_view text, const char *keep = "")
{
    std::string to(3 * text.size() + 1, '\0');
    to.resize(detail::io_done(aco_url_escape(&to[0], to.size(), text.data(), text.size(), keep), "aco::escape_url"));
    return to;
}

inline std::string unescape_url(std::string_view text)
{
    std::string to(text.size() + 1, '\0');
    to.resize(detail::io_done(aco_url_unescape(&to[0], to.size(), text.data(), text.size()), "aco::unescape_url"));
    return to;
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
