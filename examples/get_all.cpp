/* Pages from several hosts at once, with a deadline for all of them: what a program with tasks looks like in C++.
 *
 * The hosts are simulated: each takes some time to answer, one has an error, one is too slow. */
#include "aco/task.hpp"

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

static aco::semaphore connections(2); /* at most two at once */

struct connection {
    const std::string &host;
    explicit connection(const std::string &to) : host(to) { connections.acquire(); }
    ~connection()
    {
        std::cout << "  " << host << " is disconnected\n";
        connections.release();
    }
};

/* Stands for a name look-up, a connection and reads: it waits, and knows nothing of deadlines. */
static std::string get(const std::string &host)
{
    connection c(host);
    aco::sleep_for(host == "slow" ? 1h : 1ms);
    if (host == "broken")
        throw std::runtime_error("no answer from " + host);
    return "page of " + host;
}

static std::vector<std::string> get_all(const std::vector<std::string> &hosts)
{
    std::vector<std::string> pages(hosts.size());
    aco::task_group group;                                 /* the first exception cancels the siblings */
    for (std::size_t i = 0; i < hosts.size(); i++)
        group.spawn([&, i] { pages[i] = get(hosts[i]); }); /* on this thread: captures are safe */
    group.wait();                                          /* joins all, throws the first */
    return pages;
}

static void show(std::chrono::milliseconds limit, const std::vector<std::string> &hosts)
{
    try {
        const bool in_time = aco::try_for(limit, [&] {
            for (const std::string &page : get_all(hosts))
                std::cout << page << '\n';
        });
        if (!in_time)
            std::cout << "it took too long\n";
    } catch (const std::exception &e) {
        std::cout << e.what() << '\n';
    }
}

int main()
{
    aco::spawn([] {
        show(1h, {"a", "b", "c"});
        show(1h, {"d", "broken", "e"});
        show(10ms, {"f", "slow"});
    });
    return aco_run() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
