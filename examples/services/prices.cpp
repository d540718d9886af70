/* Prices that clients put and watch, by gRPC: prices PORT. prices.proto has the calls; health and reflection are there
 * for balancers and tools. SIGTERM: who watches gets UNAVAILABLE and asks another server; calls are answered. */
#include "prices.acorn.hpp"

#include <aco/service.hpp>
#include <aco/sync.hpp>
#include <iostream>
#include <map>

using market::Count;
using market::Price;
using market::Symbol;
using namespace std::chrono_literals;

struct quote {
    Price now;
    unsigned version = 0;
    aco::event changed;

    void set(const Price &price)
    {
        now = price;
        version++;
        changed.set();
    }
    void wait_for_other_than(unsigned seen)
    {
        while (version == seen) {
            changed.reset();
            changed.wait();
        }
    }
};

class prices final : public market::Prices {
public:
    Price Get(aco::grpc_call &, const Symbol &symbol) override { return find(symbol).now; }

    Count Put(aco::grpc_call &, aco::grpc_reader<Price> &incoming) override
    {
        Count count;
        for (const Price &price : incoming) {
            if (price.symbol().empty() || price.cents() < 0)
                throw aco::grpc_error(ACO_GRPC_INVALID_ARGUMENT, "a price has a symbol, and is not negative");
            quotes_[price.symbol()].set(price);
            count.set_n(count.n() + 1);
        }
        return count;
    }

    void Watch(aco::grpc_call &call, const Symbol &symbol, aco::grpc_writer<Price> &out) override
    {
        quote &q = find(symbol);
        for (unsigned seen = 0;; seen = q.version, out.write(q.now))
            if (!call.try_until_drain([&] { q.wait_for_other_than(seen); }))
                throw aco::grpc_error(ACO_GRPC_UNAVAILABLE, "this server ends");
    }

private:
    quote &find(const Symbol &symbol)
    {
        const auto found = quotes_.find(symbol.name());
        if (found == quotes_.end())
            throw aco::grpc_error(ACO_GRPC_NOT_FOUND, "no price of " + symbol.name());
        return found->second;
    }
    std::map<std::string, quote> quotes_; /* of one thread: no locks */
};

int main(int argc, char **argv)
try {
    const char *port = argc > 1 ? argv[1] : "50051";
    aco::run_service(
        [&](aco::service service) {
            prices all;
            aco::grpc_server server;
            all.add_to(server);
            server.add_health();
            aco::listener door = service.listen("grpc", "tcp", "127.0.0.1", port);
            std::cerr << "listening on " + door.local_address() + "\n";
            service.ready();
            server.serve(std::move(door));
        },
        aco::service_options().with_threads(1).with_drain_time(5s));
} catch (const std::exception &e) {
    std::cerr << e.what() << std::endl;
    return 1;
}
