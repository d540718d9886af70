// Boost.Fiber with its work_stealing scheduler. Each fiber has a stack from its start, which here is its creation; it
// may change its thread whenever it waits.
#include "peer.hpp"

#include <boost/fiber/all.hpp>
#include <thread>
#include <vector>

namespace fibers = boost::fibers;
using channel = fibers::buffered_channel<size_t>;

constexpr size_t STACK = 16 << 10;

template<typename F> static fibers::fiber make(F f)
{
    return fibers::fiber(fibers::launch::post, std::allocator_arg, fibers::fixedsize_stack(STACK), f);
}

template<typename F> static void submit_all(size_t n, F f)
{
    std::vector<fibers::fiber> all(BATCH);
    for (size_t done = 0; done < n; done += BATCH) {
        for (auto &each : all)
            each = make(f);
        for (auto &each : all)
            each.join();
    }
}

static size_t skynet(size_t from, size_t count)
{
    size_t sums[CHILDREN], sum = 0;
    fibers::fiber children[CHILDREN];
    if (count == 1)
        return from;
    for (int i = 0; i < CHILDREN; i++)
        children[i] = make([&sums, i, from, count] {
            sums[i] = skynet(from + size_t(i) * (count / CHILDREN), count / CHILDREN);
        });
    for (auto &each : children)
        each.join();
    for (size_t each : sums)
        sum += each;
    return sum;
}

static size_t tree(size_t from, size_t count)
{
    size_t left = 0, right;
    if (count == 1)
        return from;
    fibers::fiber other = make([&left, from, count] { left = tree(from, count / 2); });
    right = tree(from + count / 2, count - count / 2);
    other.join();
    return left + right;
}

static void ping_pong(size_t n)
{
    channel there(2), back(2); // the least that it has
    fibers::fiber other = make([&] {
        size_t value;
        while (there.pop(value) == fibers::channel_op_status::success)
            back.push(value);
    });
    for (size_t i = 0; i < n / 2; i++) {
        size_t got;
        there.push(i);
        back.pop(got);
    }
    there.close();
    other.join();
}

static void many_to_many(size_t n)
{
    channel messages(ROOM);
    std::vector<fibers::fiber> all;
    for (int i = 0; i < PAIRS; i++) {
        all.push_back(make([&messages, n] {
            for (size_t value = 0; value < n / PAIRS; value++)
                messages.push(value);
        }));
        all.push_back(make([&messages, n] {
            size_t value;
            for (size_t j = 0; j < n / PAIRS; j++)
                messages.pop(value);
        }));
    }
    for (auto &each : all)
        each.join();
}

int main(int argc, char **argv)
{
    const peer_case cases[] = {{"empty", [](size_t n) { submit_all(n, [] {}); }},
                               {"work", [](size_t n) { submit_all(n, work_1us); }},
                               {"skynet", [](size_t n) { check_sum(skynet(0, n), n); }},
                               {"tree", [](size_t n) { check_sum(tree(0, n), n); }},
                               {"pingpong", ping_pong},
                               {"many", many_to_many}};
    if (argc != 4)
        return 2;
    const int threads = std::atoi(argv[1]);
    std::vector<std::thread> others;
    fibers::mutex mutex;
    fibers::condition_variable changed;
    bool is_over = false;
    auto join_in = [&] {
        if (threads > 1)
            fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(std::uint32_t(threads), true);
    };
    for (int i = 1; i < threads; i++)
        others.emplace_back([&] {
            join_in();
            std::unique_lock<fibers::mutex> lock(mutex);
            changed.wait(lock, [&] { return is_over; });
        });
    join_in();
    const int status = measure(cases, argv);
    {
        std::unique_lock<fibers::mutex> lock(mutex);
        is_over = true;
    }
    changed.notify_all();
    for (auto &each : others)
        each.join();
    return status;
}
