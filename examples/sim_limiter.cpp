/* A rate limiter by windows, and its test in a simulation. (aco/limiter.hpp has a token bucket.) With the argument
 * `broken` a task that has waited does not look again whether another one came first. That breaks the limit if two
 * tasks wait at the same time, and the simulation finds out when.
 *
 *   sim_limiter [--runs N] [--seed N] [--help] ... [-- broken] */
#include "aco/sim.hpp"

#include <deque>
#include <string>
#include <vector>

using namespace std::chrono_literals;

/* ---- The code under test ---- */

/* Lets at most `limit` calls pass within any `window`. */
class rate_limiter {
public:
    rate_limiter(std::size_t limit, std::chrono::nanoseconds window, bool is_broken)
        : limit_(limit), window_(window.count()), is_broken_(is_broken)
    {
    }
    void pass()
    {
        while (wait_time() > 0ns) {
            aco::sleep_for(wait_time());
            if (is_broken_)
                break;
        }
        if (newest_.size() == limit_)
            newest_.pop_front();
        newest_.push_back(aco_now());
    }

private:
    std::chrono::nanoseconds wait_time() const
    {
        if (newest_.size() < limit_)
            return 0ns;
        return std::chrono::nanoseconds(newest_.front() + window_ - aco_now());
    }

    const std::size_t limit_;
    const std::int64_t window_;
    const bool is_broken_;
    std::deque<std::int64_t> newest_; /* when the last calls have passed */
};

/* ---- The simulation ---- */

static constexpr std::size_t limit = 3;
static constexpr int users = 4, calls_of_each = 5;

int main(int argc, char **argv)
{
    const bool is_broken = argc > 1 && std::string(argv[argc - 1]) == "broken"; /* behind "--" */
    std::vector<std::int64_t> passed;
    auto scenario = [&](aco::sim sim) {
        rate_limiter limiter(limit, 1s, is_broken);
        passed.clear();
        aco::task_group group;
        for (int i = 0; i < users; i++)
            group.spawn([&] {
                for (int n = 0; n < calls_of_each; n++) {
                    aco::sleep_for(sim.random(8000) * 1ms);
                    limiter.pass();
                    passed.push_back(aco_now());
                }
            });
        group.wait();
    };
    auto invariants = [&](aco::sim sim) {
        for (std::size_t i = limit; i < passed.size(); i++)
            if (passed[i] - passed[i - limit] < ACO_SECOND)
                sim.fail("more than " + std::to_string(limit) + " calls have passed within a second");
    };
    return aco::sim_main(argc, argv, scenario, invariants);
}
