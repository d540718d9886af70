// Promises of <aco/asio.hpp> with Boost.Asio and a library on top of it: Beast's HTTP server and client, as tasks.
#define ACO_ASIO_BOOST
#include "aco/asio.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;

// As Beast's examples http/server/coro and http/client/coro, without a yield_context.
void session(tcp::socket peer)
{
    boost::beast::tcp_stream stream(std::move(peer));
    boost::beast::flat_buffer buffer;
    for (;;) {
        error_code error;
        http::request<http::string_body> request;
        http::async_read(stream, buffer, request, aco::use_task[error]);
        if (error == http::error::end_of_stream)
            break;
        ASSERT_FALSE(error) << error.message();
        http::response<http::string_body> reply(http::status::ok, request.version());
        reply.keep_alive(request.keep_alive());
        reply.body() = "it was " + request.body();
        reply.prepare_payload();
        http::async_write(stream, reply, aco::use_task);
    }
}

std::string ask(tcp::socket &peer, const std::string &body)
{
    http::request<http::string_body> request(http::verb::post, "/", 11);
    request.body() = body;
    request.prepare_payload();
    http::async_write(peer, request, aco::use_task);
    boost::beast::flat_buffer buffer;
    http::response<http::string_body> reply;
    EXPECT_GT(http::async_read(peer, buffer, reply, aco::use_task), body.size());
    return reply.body();
}

TEST(Beast, ServerAndClient)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    aco::spawn([&] {
        tcp::acceptor door(context, tcp::endpoint(net::ip::address_v4::loopback(), 0));
        aco::task_group group;
        group.spawn([&] { session(door.async_accept(aco::use_task)); });
        group.spawn([&] {
            tcp::socket peer(context);
            peer.async_connect(door.local_endpoint(), aco::use_task);
            EXPECT_EQ(ask(peer, "one"), "it was one");
            EXPECT_EQ(ask(peer, std::string(50000, 'x')), "it was " + std::string(50000, 'x'));
            peer.shutdown(tcp::socket::shutdown_both);
        });
        group.wait();
    }).detach();
    loop.run();
}

TEST(Beast, ErrorsAreBoosts)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    aco::spawn([&] {
        tcp::socket peer(context, tcp::v4());
        char letter;
        EXPECT_THROW(peer.async_read_some(net::buffer(&letter, 1), aco::use_task), boost::system::system_error);
    }).detach();
    loop.run();
}

} // namespace
