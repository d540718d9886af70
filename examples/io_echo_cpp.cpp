/* An echo server in C++: io_echo_cpp [PORT]. One task for each connection; silent for a minute, it is closed. */
#include <aco/io.hpp>
#include <iostream>

using namespace std::chrono_literals;

static void echo(aco::socket peer)
{
    char bytes[4096];
    std::size_t n = 1;
    while (n > 0 && aco::try_for(60s, [&] { n = peer.read(bytes, sizeof bytes); }))
        peer.write_all(bytes, n);
}

static void serve(const char *port)
{
    aco::listener door("tcp", "127.0.0.1", port);
    std::cerr << "listening on " + door.local_address() + "\n";
    aco::task_group connections(ACO_KEEP_GOING); /* the failure of one ends no other */
    for (;;)
        connections.spawn([peer = door.accept()]() mutable { echo(std::move(peer)); });
}

int main(int argc, char **argv)
{
    const char *port = argc > 1 ? argv[1] : "7000";
    aco::spawn([port] { serve(port); }).detach();
    return aco_run() == 0 ? 0 : 1;
}
