// Echoes by Asio on one thread: in tasks by aco::use_task, against callbacks and C++20 coroutines.
//
//   io-asio [ROUNDS [CONNECTIONS]]
//
// Each round runs the three servers in turn, each for the same echoes of 64 bytes over socketpairs; a client thread
// writes to all connections, then reads from all. Prints the median of the server thread's processor time for an echo
// (getrusage()), and of the ratios in one round.
#include "asio_session.hpp"

#include <aco/asio.hpp>

#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using peer_socket = asio::local::stream_protocol::socket;
enum { SIZE = 64, ECHOES = 40000 };
using bytes = std::array<char, SIZE>;

static int connections = 1;

static void callbacks(asio::io_context &context, std::vector<peer_socket> &peers)
{
    for (peer_socket &peer : peers)
        std::make_shared<session<peer_socket, SIZE>>(std::move(peer))->start();
    context.run();
}

static asio::awaitable<void> echo(peer_socket peer)
{
    constexpr auto as_result = asio::experimental::as_tuple(asio::use_awaitable);
    for (bytes b;;) {
        auto [error, n] = co_await peer.async_read_some(asio::buffer(b), as_result);
        if (error)
            co_return;
        auto [failed, written] = co_await asio::async_write(peer, asio::buffer(b, n), as_result);
        if (failed)
            co_return;
    }
}

static void coroutines(asio::io_context &context, std::vector<peer_socket> &peers)
{
    for (peer_socket &peer : peers)
        asio::co_spawn(context, echo(std::move(peer)), asio::detached);
    context.run();
}

static void tasks(asio::io_context &context, std::vector<peer_socket> &peers)
{
    aco::asio_loop loop(context);
    for (peer_socket &each : peers)
        aco::spawn([peer = std::move(each)]() mutable {
            std::error_code error;
            for (bytes b;;) {
                const std::size_t n = peer.async_read_some(asio::buffer(b), aco::use_task[error]);
                if (error)
                    return;
                asio::async_write(peer, asio::buffer(b, n), aco::use_task[error]);
                if (error)
                    return;
            }
        }).detach();
    loop.run();
}

static void ask(const std::vector<int> &fds)
{
    char b[SIZE] = "";
    for (int left = ECHOES; left > 0; left -= connections) {
        for (int fd : fds)
            if (write(fd, b, SIZE) != SIZE)
                std::abort();
        for (int fd : fds)
            if (recv(fd, b, SIZE, MSG_WAITALL) != SIZE)
                std::abort();
    }
    for (int fd : fds)
        close(fd);
}

static double cpu_ns()
{
    rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return 1e9 * static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e3 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double echoes(void (*serve)(asio::io_context &, std::vector<peer_socket> &))
{
    double used = 0;
    std::vector<int> fds;
    asio::io_context context(1);
    std::vector<peer_socket> peers;
    for (int i = 0; i < connections; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
            std::abort();
        fds.push_back(pair[0]);
        peers.emplace_back(context, asio::local::stream_protocol(), pair[1]);
    }
    std::thread client(ask, fds);
    std::thread([&] {
        const double began = cpu_ns();
        serve(context, peers);
        used = cpu_ns() - began;
    }).join();
    client.join();
    return used / double(ECHOES);
}

static double median(std::vector<double> of)
{
    std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
    return of[of.size() / 2];
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
    connections = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
    std::vector<double> of[3], to_callbacks, to_coroutines;
    for (int i = 0; i < rounds; i++) {
        const double ns[3] = {echoes(callbacks), echoes(coroutines), echoes(tasks)};
        for (int kind = 0; kind < 3; kind++)
            of[kind].push_back(ns[kind]);
        to_callbacks.push_back(ns[2] / ns[0]);
        to_coroutines.push_back(ns[2] / ns[1]);
    }
    std::printf("ns of the server's processor time for an echo: callbacks %.0f, coroutines %.0f, tasks %.0f\n",
                median(of[0]), median(of[1]), median(of[2]));
    std::printf("tasks to callbacks %.3f, to coroutines %.3f\n", median(to_callbacks), median(to_coroutines));
}
