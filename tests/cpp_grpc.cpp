/* gRPC in C++ (include/aco/grpc.hpp): what handlers throw, and messages with types. tests/grpc_server.c tests what it
 * does on the wire. */
#include <aco/grpc.hpp>

#include <gtest/gtest.h>

namespace
{

/* What the classes of messages of protobuf have. */
struct text {
    std::string is;
    bool ParseFromArray(const void *p, int n)
    {
        is.assign(static_cast<const char *>(p), static_cast<std::size_t>(n));
        return is != "wrong";
    }
    bool AppendToString(std::string *to) const
    {
        to->append(is);
        return is != "unsendable";
    }
};

/* The methods that protoc-gen-acorn would add. */
void add_methods(aco::grpc_server &server)
{
    server.add_unary<text>("/test.Test/Unary", [](aco::grpc_call &call, const text &request) {
        if (request.is.empty())
            throw aco::grpc_error(ACO_GRPC_INVALID_ARGUMENT, "empty", "details");
        call.add_metadata("x-back", call.metadata("x-text").value_or("none")).add_trailer("x-end", "end");
        return request;
    });
    server.add_server_stream<text, text>("/test.Test/Many",
                                         [](aco::grpc_call &, const text &request, aco::grpc_writer<text> &replies) {
                                             for (char c : request.is)
                                                 replies.write(text{std::string(1, c)});
                                         });
    server.add_client_stream<text>("/test.Test/Sum", [](aco::grpc_call &, aco::grpc_reader<text> &requests) {
        text all;
        for (const text &each : requests)
            all.is += each.is;
        return all;
    });
    server.add_both_streams<text, text>(
        "/test.Test/Chat", [](aco::grpc_call &, aco::grpc_reader<text> &requests, aco::grpc_writer<text> &replies) {
            for (const text &each : requests)
                replies.write(each);
            throw aco::grpc_error(ACO_GRPC_ABORTED, "enough");
        });
    /* These end before the client does. */
    server.add_client_stream<text>("/test.Test/First", [](aco::grpc_call &, aco::grpc_reader<text> &requests) {
        text first;
        requests.read(first);
        return first;
    });
    server.add_both_streams<text, text>(
        "/test.Test/Five", [](aco::grpc_call &, aco::grpc_reader<text> &requests, aco::grpc_writer<text> &replies) {
            text first;
            requests.read(first);
            for (int i = 0; i < 5; i++)
                replies.write(text{std::string(2000, 'r')});
        });
    server.add("/test.Test/Sleeps", [](aco::grpc_call &) { aco_sleep_until(ACO_FOREVER); });
}

template <class F> void throws_status(int status, F f)
{
    try {
        f();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const aco::grpc_error &error) {
        EXPECT_EQ(error.status(), status) << error.what();
    }
}

void call_methods(aco::grpc_channel &channel)
{
    const auto unary = [&](const std::string &is, aco::grpc_context *context) {
        return aco::detail::grpc_unary<text>(channel, "/test.Test/Unary", text{is}, context).is;
    };
    aco::grpc_context context;
    EXPECT_EQ(unary("hello", nullptr), "hello");
    EXPECT_EQ(unary("hello", &context.add_metadata("x-text", "text")), "hello");
    EXPECT_EQ(context.call().metadata("x-back"), "text");
    EXPECT_EQ(context.call().trailer("x-end"), "end");
    EXPECT_EQ(context.call().trailer("x-none"), std::nullopt);
    EXPECT_EQ(context.call().metadata_names(), (std::vector<std::string_view>{"date", "x-back"}));
    EXPECT_EQ(context.call().trailer_names(), (std::vector<std::string_view>{"x-end"}));
    try {
        unary("", &context);
        ADD_FAILURE() << "nothing was thrown";
    } catch (const aco::grpc_error &error) {
        EXPECT_EQ(error.status(), ACO_GRPC_INVALID_ARGUMENT);
        EXPECT_STREQ(error.what(), "empty");
        EXPECT_EQ(error.details(), "details");
    }
    throws_status(ACO_GRPC_INTERNAL, [&] { unary("wrong", nullptr); });
    throws_status(ACO_GRPC_INTERNAL, [&] { unary("unsendable", nullptr); });
    aco::grpc_client_reader<text> many(channel, "/test.Test/Many", text{"abc"}, nullptr);
    std::string all;
    for (const text &each : many)
        all += each.is + ".";
    EXPECT_EQ(all, "a.b.c.");
    aco::grpc_client_writer<text, text> sum(channel, "/test.Test/Sum", nullptr);
    sum.write(text{"a"});
    sum.write(text{"b"});
    EXPECT_EQ(sum.finish().is, "ab");
    aco::grpc_client_stream<text, text> chat(channel, "/test.Test/Chat", nullptr);
    text reply;
    chat.write(text{"a"});
    EXPECT_TRUE(chat.read(reply));
    chat.write_end();
    throws_status(ACO_GRPC_ABORTED, [&] { chat.read(reply); });
    aco::grpc_client_call sleeps(channel, "/test.Test/Sleeps");
    EXPECT_FALSE(aco::try_for(std::chrono::milliseconds(5), [&] { sleeps.write_only("a"); }));
    EXPECT_EQ(sleeps.status(), ACO_GRPC_DEADLINE_EXCEEDED);
    throws_status(ACO_GRPC_DEADLINE_EXCEEDED, [&] { sleeps.finish(); });
}

/* Writes until the server takes no more; the errno of that. */
template <class Writer> int write_on(Writer &call)
{
    try {
        for (;;)
            call.write(text{std::string(1000, 'w')});
    } catch (const aco::error &error) {
        return error.code().value();
    }
}

/* What a server has sent before it ended is not lost when the client's next message is refused. */
void call_early_ends(aco::grpc_channel &channel)
{
    aco::grpc_client_writer<text, text> first(channel, "/test.Test/First", nullptr);
    first.write(text{"first"});
    EXPECT_EQ(write_on(first), EPIPE);
    EXPECT_EQ(first.finish().is, "first");
    aco::grpc_client_stream<text, text> five(channel, "/test.Test/Five", nullptr);
    EXPECT_EQ(write_on(five), EPIPE);
    five.write_end();
    text reply;
    for (int i = 0; i < 5; i++)
        EXPECT_TRUE(five.read(reply) && reply.is.size() == 2000);
    EXPECT_FALSE(five.read(reply));
}

TEST(grpc, clients_call_servers)
{
    auto all = aco::spawn([] {
        aco::grpc_server server;
        add_methods(server);
        aco::listener door("tcp", "127.0.0.1", "0");
        const std::string target = door.local_address();
        aco::task_group group;
        group.spawn([&] { server.serve(std::move(door)); });
        {
            aco::grpc_channel channel(target);
            call_methods(channel);
            call_early_ends(channel);
        }
        group.cancel();
        group.wait();
    });
    EXPECT_EQ(aco_run(), 0);
    EXPECT_THROW(aco::grpc_channel("no port"), aco::error);
}

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
