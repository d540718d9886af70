// Tasks inside a program that calls io_context::run() itself, with descriptors of acorn_io and of Asio.
//
//   c++ -std=c++20 io_asio.cpp $(pkg-config --cflags --libs acorn_io) -pthread
#include <aco/asio.hpp>
#include <aco/io.h>

#include <asio/read.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>

#include <cstdio>
#include <sys/socket.h>

static void echo(int fd)
{
    char bytes[100];
    ssize_t n;
    while ((n = aco_io_read(fd, bytes, sizeof bytes)) > 0)
        aco_io_write_all(fd, bytes, static_cast<std::size_t>(n));
}

static void ask(asio::posix::stream_descriptor &peer)
{
    char answer[6] = "";
    aco_park("the program's timer");
    std::printf("woken by Asio's timer\n");
    aco::sleep_for(std::chrono::milliseconds(5));
    asio::async_write(peer, asio::buffer("hello", 5), aco::use_task);
    asio::async_read(peer, asio::buffer(answer, 5), aco::use_task);
    std::printf("answer: %s\n", answer);
    peer.close();
}

int main()
{
    asio::io_context context(1);
    aco::asio_guest guest(context, aco_io_poll_fd());
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || aco_io_adopt(pair[0]) != 0)
        return 1;
    asio::posix::stream_descriptor peer(context, pair[1]);
    aco::spawn([fd = pair[0]] { echo(fd); }).detach();
    aco::task<> asks = aco::spawn([&peer] { ask(peer); });
    asio::steady_timer timer(context, std::chrono::milliseconds(2));
    timer.async_wait([&](std::error_code) {
        aco_unpark(asks.native_handle());
        guest.soon();
    });
    context.run();
    std::printf("the loop has ended\n");
    asks.join();
    aco_io_close(pair[0]);
    return 0;
}
