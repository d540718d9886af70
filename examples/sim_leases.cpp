/* Users of a pool of connections (aco/resource_pool.hpp), tested in a simulation with nodes: a server that crashes, and
 * clients that share two connections to it. A connection on which a request has failed must be discarded. With the
 * argument `broken` a client that gives up puts it back as if all were well, and another one reads the late answer.
 *
 *   sim_leases [--runs N] [--seed N] [--help] ... [-- broken] */
#include "aco/io.hpp"
#include "aco/resource_pool.hpp"
#include "aco/sim.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>

using namespace std::chrono_literals;

static constexpr int connections = 2, clients = 4, questions = 5;

/* ---- The server: it sends each number back, after a while ---- */

static void talk(aco::sim sim, aco::socket connection)
try {
    std::uint32_t number;
    while (connection.read_exactly(&number, sizeof number) == sizeof number) {
        aco::sleep_for(sim.random(60) * 1ms);
        connection.write_all(&number, sizeof number);
    }
} catch (const aco::error &) {
    /* the client is gone */
}

static void serve(aco::sim sim)
{
    aco::listener listener("tcp", nullptr, "7000");
    aco::task_group talks;
    for (;;) {
        auto accepted = std::make_shared<aco::socket>(listener.accept());
        talks.spawn([sim, accepted] { talk(sim, std::move(*accepted)); });
    }
}

/* ---- The code under test ---- */

using pool_t = aco::resource_pool<aco::socket>;

static std::uint32_t ask(aco::socket &connection, std::uint32_t number)
{
    std::uint32_t answer = 0;
    connection.write_all(&number, sizeof number);
    if (connection.read_exactly(&answer, sizeof answer) != sizeof answer)
        throw std::runtime_error("the server has closed the connection");
    return answer;
}

/* Whether there was an answer in time. */
static bool ask_in_time(pool_t &pool, std::uint32_t number, std::uint32_t &answer, bool is_broken)
try {
    pool_t::lease connection = pool.get();
    const bool in_time = aco::try_for(50ms, [&] { answer = ask(*connection, number); });
    if (!in_time && !is_broken)
        pool.discard(std::move(connection)); /* the answer may still come */
    return in_time;
} catch (const std::exception &) {
    return false; /* the lease has discarded the connection */
}

/* ---- The simulation ---- */

static void live(aco::sim sim, pool_t &pool, std::uint32_t first, bool is_broken)
{
    for (std::uint32_t number = first; number < first + questions; number++) {
        std::uint32_t answer = 0;
        aco::sleep_for(sim.random(200) * 1ms);
        if (ask_in_time(pool, number, answer, is_broken) && answer != number)
            sim.fail("the answer to another question");
    }
}

int main(int argc, char **argv)
{
    const bool is_broken = argc > 1 && std::strcmp(argv[argc - 1], "broken") == 0; /* behind "--" */
    auto scenario = [&](aco::sim sim) {
        pool_t pool([] { return aco::dial("tcp", "10.0.0.1", "7000"); },
                    aco::resource_pool_options().with_limit(connections));
        aco::task_group group;
        aco::sim_node server = sim.node("server", "10.0.0.1", [sim] { serve(sim); });
        sim.at(500ms, [server] { server.restart(); });
        aco::sleep_for(100ms);
        for (std::uint32_t i = 0; i < clients; i++)
            group.spawn([&, sim, i] { live(sim, pool, 100 * (i + 1), is_broken); });
        group.wait();
        pool.close();
    };
    return aco::sim_main(argc, argv, scenario);
}
