/* gRPC in C++ (include/aco/grpc.hpp): what handlers throw, and messages with types. tests/grpc_server.c tests what it
 * does on the wire. */
#include <aco/grpc.hpp>

#include <gtest/gtest.h>

namespace
{

TEST(grpc, exceptions_are_statuses)
{
    const auto status_of = [](auto f) { return aco::detail::grpc_run(nullptr, f); };
    EXPECT_EQ(status_of([](aco::grpc_call &) {}), ACO_GRPC_OK);
    EXPECT_EQ(status_of([](aco::grpc_call &) { throw aco::cancelled(ETIMEDOUT); }), ACO_GRPC_FROM_ERRNO);
    EXPECT_EQ(errno, ETIMEDOUT);
}

TEST(grpc, servers_have_methods)
{
    aco::grpc_server server;
    const auto none = [](aco::grpc_call &) {};
    server.add("/test.Test/One", none).add_health();
    EXPECT_THROW(server.add("/test.Test/One", none), aco::error);
    EXPECT_THROW(server.add("one", none), aco::error);
    EXPECT_THROW(server.add_file("\xff"), aco::error);
    EXPECT_THROW(server.set_health("", 7), aco::error);
    EXPECT_NE(server.groups(), nullptr);
    EXPECT_STREQ(aco::grpc_status_name(ACO_GRPC_ABORTED), "ABORTED");
}

} // namespace
