/* A look inside in C++ (include/aco/debug.hpp). tests/debug_pages.c tests what it does. */
#include <aco/debug.hpp>
#include <aco/spans.hpp>

#include <gtest/gtest.h>

namespace
{

TEST(debug, serves_and_counts)
{
    EXPECT_GT(aco::debug_serve("127.0.0.1:0"), 0);
    EXPECT_THROW(aco::debug_serve("127.0.0.1:0"), aco::error);
    EXPECT_STREQ(aco::debug_routes()->method, "GET");
    const aco::metric sold = aco::metric::counter("cpp_sold", "Things sold.", "kind");
    sold["book"].add();
    aco::metric::gauge("cpp_size_bytes", "A size.", nullptr, aco::metric_unit::bytes).series().set(3);
    aco::metric::histogram("cpp_times_seconds", "Times.", {1000, 2000}).series().observe(std::chrono::milliseconds(1));
    EXPECT_THROW(aco::metric::counter("acorn_", "Ours."), aco::error);
    aco::debug_stop();
}

TEST(debug, spans)
{
    EXPECT_EQ(aco::span_traceparent(), "");
    EXPECT_THROW(aco::spans_start("no URL", "shop"), aco::error);
    aco::spans_start("http://127.0.0.1:1/v1/traces", "shop");
    {
        aco::span outer("outer", aco::span_kind::server, nullptr, nullptr);
        const std::string around = aco::span_traceparent();
        {
            aco::span inner("inner");
            inner.set("number", 1);
            inner.set("text", std::string("x"));
            inner.fail("it had to");
            EXPECT_EQ(aco::span_traceparent().substr(0, 35), around.substr(0, 35));
            EXPECT_NE(aco::span_traceparent(), around);
        }
        EXPECT_EQ(aco::span_traceparent(), around);
        EXPECT_EQ(aco::span_tracestate(), "");
    }
    aco::spans_stop();
    EXPECT_EQ(aco::spans_stats().dropped, 2u);
}

} // namespace
