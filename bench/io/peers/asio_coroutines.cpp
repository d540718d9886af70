// The server of bench-io by Asio, with C++20 coroutines. io-server-asio-coroutines PORT echo|stream
#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using asio::ip::tcp;
// Results as values: exceptions would only be thrown when a connection ends.
constexpr auto as_result = asio::experimental::as_tuple(asio::use_awaitable_t<asio::io_context::executor_type>{});

using task = asio::awaitable<void, asio::io_context::executor_type>;
using peer_socket = asio::basic_stream_socket<tcp, asio::io_context::executor_type>;
using listener = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;

static std::array<char, 64 * 1024> block;

static task echo(peer_socket peer)
{
    std::array<char, 4096> bytes;
    for (;;) {
        auto [error, n] = co_await peer.async_read_some(asio::buffer(bytes), as_result);
        if (error)
            co_return;
        auto [failed, written] = co_await asio::async_write(peer, asio::buffer(bytes, n), as_result);
        if (failed)
            co_return;
    }
}

static task stream(peer_socket peer)
{
    std::uint64_t left = 0;
    for (;;) {
        auto [error, got] = co_await asio::async_read(peer, asio::buffer(&left, sizeof left), as_result);
        if (error)
            co_return;
        while (left) {
            auto [failed, n] = co_await peer.async_write_some(
                asio::buffer(block, left < block.size() ? left : block.size()), as_result);
            if (failed)
                co_return;
            left -= n;
        }
    }
}

static task serve(listener door, bool is_stream)
{
    for (;;) {
        auto [error, peer] = co_await door.async_accept(as_result);
        if (error)
            continue;
        peer.set_option(tcp::no_delay(true));
        const auto executor = peer.get_executor();
        asio::co_spawn(executor, is_stream ? stream(std::move(peer)) : echo(std::move(peer)), asio::detached);
    }
}

int main(int argc, char **argv)
{
    asio::io_context context(1); // one thread
    const auto port = static_cast<unsigned short>(argc > 1 ? std::atoi(argv[1]) : 0);
    listener door(context, tcp::endpoint(asio::ip::address_v4::loopback(), port));
    door.listen(65535);
    std::fprintf(stderr, "listening on 127.0.0.1:%d\n", door.local_endpoint().port());
    asio::co_spawn(context, serve(std::move(door), argc > 2 && std::strcmp(argv[2], "stream") == 0), asio::detached);
    context.run();
}
