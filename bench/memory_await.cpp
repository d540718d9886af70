/* A million coroutines of C++20 (aco::async) asleep at once: nanoseconds of processor time for the life of each, and
 * bytes while it sleeps. Prints a JSON line, as bench/memory.h does. */
#include "bench.h"

#include <aco/async.hpp>

enum { MEMBERS = 1000000 };

static size_t awake;

static aco::async<> sleeps(aco::monotonic_clock::time_point when)
{
    co_await aco::async_sleep_until(when);
    awake++;
}

/* The last member: when it runs first, all others sleep. */
static aco::async<> looks(double &bytes, size_t before)
{
    bytes = (double)(bench_rss() - before) / MEMBERS;
    if (awake) {
        fprintf(stderr, "bench: the machine is too slow: some have slept enough before all sleep\n");
        exit(1);
    }
    co_return;
}

int main()
{
    aco::spawn([] {
        double bytes = 0;
        const size_t before = bench_rss();
        const double start = bench_thread_now();
        const auto when = aco::monotonic_clock::now() + std::chrono::seconds(4);
        {
            aco::async_group group;
            for (int i = 0; i < MEMBERS; i++)
                group.spawn(sleeps(when));
            group.spawn(looks(bytes, before));
            group.wait();
        }
        const double ns = (bench_thread_now() - start) / MEMBERS;
        bench_json("rss_asleep_1M", "acorn", "{\"what\": \"aco::async\"}", {ns, ns, ns}, bytes);
    }).detach();
    aco::run();
}
