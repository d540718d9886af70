/* Spans of traces for C++17 and later, on top of <aco/spans.h>, which says what they are. Header only; link
 * acorn_debug.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::spans_start("http://127.0.0.1:4318/v1/traces", "shop");
 *   {
 *       aco::span price("price");
 *       price.set("items", n);
 *   } */
#ifndef ACO_SPANS_HPP
#define ACO_SPANS_HPP

#include "scope.hpp"
#include "spans.h"

#include <chrono>
#include <string>

namespace aco
{
inline namespace ACO__CPP_KIND
{

enum class span_kind {
    internal = ACO_SPAN_INTERNAL,
    server = ACO_SPAN_SERVER,
    client = ACO_SPAN_CLIENT,
    producer = ACO_SPAN_PRODUCER,
    consumer = ACO_SPAN_CONSUMER
};

/* A span of the calling task, from the constructor to the destructor. */
class span
{
  public:
    explicit span(const char *name) noexcept : span_(aco_span_begin(name))
    {
    }
    span(const char *name, span_kind kind, const char *traceparent, const char *tracestate) noexcept
        : span_(aco_span_continue(name, static_cast<aco_span_kind_t>(kind), traceparent, tracestate))
    {
    }
    span(const span &) = delete;
    span &operator=(const span &) = delete;
    ~span()
    {
        aco_span_end(span_);
    }
    void set(const char *name, const char *text) noexcept
    {
        aco_span_set_text(span_, name, text);
    }
    void set(const char *name, const std::string &text) noexcept
    {
        aco_span_set_text(span_, name, text.c_str());
    }
    void set(const char *name, int64_t number) noexcept
    {
        aco_span_set_number(span_, name, number);
    }
    void set(const char *name, int number) noexcept
    {
        aco_span_set_number(span_, name, number);
    }
    void fail(const char *message) noexcept
    {
        aco_span_fail(span_, message);
    }

  private:
    aco_span_t *span_;
};

/* The header of the caller's innermost span; "": it is in none. */
inline std::string span_traceparent()
{
    char text[ACO_TRACEPARENT_SIZE];
    (void)aco_span_traceparent(text);
    return text;
}
inline std::string span_tracestate()
{
    return aco_span_tracestate();
}

/* Throw aco::error. */
inline void spans_start(const aco_spans_options_t &options = {})
{
    detail::check(aco_spans_start(&options));
}
inline void spans_start(const std::string &endpoint, const std::string &service)
{
    aco_spans_options_t options = {};
    options.endpoint = endpoint.c_str();
    options.service = service.c_str();
    spans_start(options);
}
inline void spans_stop(std::chrono::nanoseconds drain_time = std::chrono::seconds(1)) noexcept
{
    aco_spans_stop(drain_time.count());
}
inline aco_spans_stats_t spans_stats() noexcept
{
    aco_spans_stats_t stats = {};
    (void)aco_spans_stats(&stats);
    return stats;
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
