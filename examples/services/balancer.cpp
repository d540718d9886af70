/* A balancer that ends TLS: balancer PORT CERTIFICATE KEY BACKEND... The connection goes to the backend, "host:port",
 * that has the fewest; one that cannot be reached is left out until it can, and the connection goes to another. SIGHUP
 * reads the certificate anew. */
#include <aco/service.hpp>
#include <aco/stream.hpp>
#include <aco/tls.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <deque>
#include <iostream>
#include <vector>

using namespace std::chrono_literals;

struct backend {
    std::string host, port;
    std::atomic<int> connections{0};
    std::atomic<bool> is_up{true};

    explicit backend(const std::string &address)
        : host(address.substr(0, address.rfind(':'))), port(address.substr(address.rfind(':') + 1))
    {
    }
    /* A connection to it; empty: it cannot be reached. */
    aco::socket dial()
    {
        aco::socket made;
        try {
            aco::deadline limit(2s);
            made = aco::dial("tcp", host.c_str(), port.c_str());
        } catch (const aco::error &) {
        } catch (const aco::cancelled &) {
            aco::check_cancelled(); /* was it the limit? */
        }
        if (is_up.exchange(!!made) != !!made)
            std::cerr << host + ':' + port + (made ? " is up\n" : " is down\n"); /* at once: threads share it */
        return made;
    }
};

using backends = std::deque<backend>; /* of all threads */

/* The backend with the fewest connections that is up and was not tried. */
static backend *choose(backends &all, const std::vector<backend *> &tried)
{
    backend *best = nullptr;
    for (backend &b : all)
        if (b.is_up && std::find(tried.begin(), tried.end(), &b) == tried.end() &&
            (!best || b.connections < best->connections))
            best = &b;
    return best;
}

static void forward(aco::socket peer, const aco::tls_config &config, backends &all)
{
    aco::tls client;
    if (!aco::try_for(10s, [&] { client = aco::tls_accept(std::move(peer), config); }))
        return;
    std::vector<backend *> tried;
    while (backend *b = choose(all, tried)) {
        b->connections++;
        const std::unique_ptr<backend, void (*)(backend *)> held(b, [](backend *of) { of->connections--; });
        if (aco::socket server = b->dial()) {
            aco::stream one = std::move(client).to_stream(), other(std::move(server));
            aco::copy_both_ways(one, other);
            return;
        }
        tried.push_back(b);
    }
    std::cerr << "no backend is up\n"; /* the client sees its connection end */
}

/* Asks every second whether those that are down are up again. */
static void watch(backends &all)
{
    for (;;) {
        aco::sleep_for(1s);
        for (backend &b : all)
            if (!b.is_up)
                (void)b.dial();
    }
}

int main(int argc, char **argv)
try {
    if (argc < 5)
        return std::cerr << "balancer PORT CERTIFICATE KEY BACKEND..." << std::endl, 2;
    const std::string port = argv[1], certificate = argv[2], key = argv[3];
    backends all(argv + 4, argv + argc);
    std::atomic<bool> is_watched{false};
    std::signal(SIGPIPE, SIG_IGN);
    const auto load = [&] {
        auto config = std::make_unique<aco::tls_config>(ACO_TLS_SERVER);
        config->certificate(certificate.c_str(), key.c_str());
        return config;
    };
    aco::run_service(
        [&](aco::service service) {
            aco::listener door = service.listen("tls", "tcp", "127.0.0.1", port.c_str());
            if (!is_watched.exchange(true)) {
                aco::spawn([&] { watch(all); }).detach(); /* until the service ends */
                std::cerr << "listening on " + door.local_address() + "\n";
            }
            service.ready();
            for (;;)
                service.spawn([&, peer = door.accept()]() mutable {
                    try {
                        forward(std::move(peer), *service.config<aco::tls_config>(), all);
                    } catch (const std::exception &) { /* one of the two has left */
                    }
                });
        },
        load, aco::service_options().with_drain_time(10s));
} catch (const std::exception &e) {
    std::cerr << e.what() << std::endl;
    return 1;
}
