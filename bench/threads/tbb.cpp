// oneTBB's task groups: tasks that do not wait for each other but by waiting for a whole group.
#include "peer.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

template<typename F> static void submit_all(size_t n, F f)
{
    for (size_t done = 0; done < n; done += BATCH) {
        tbb::task_group group;
        for (int i = 0; i < BATCH; i++)
            group.run(f);
        group.wait();
    }
}

static size_t skynet(size_t from, size_t count)
{
    size_t sums[CHILDREN], sum = 0;
    if (count == 1)
        return from;
    tbb::task_group group;
    for (int i = 0; i < CHILDREN; i++)
        group.run([&sums, i, from, count] {
            sums[i] = skynet(from + size_t(i) * (count / CHILDREN), count / CHILDREN);
        });
    group.wait();
    for (size_t each : sums)
        sum += each;
    return sum;
}

static size_t tree(size_t from, size_t count)
{
    size_t left = 0, right;
    if (count == 1)
        return from;
    tbb::task_group group;
    group.run([&left, from, count] { left = tree(from, count / 2); });
    right = tree(from + count / 2, count - count / 2);
    group.wait();
    return left + right;
}

int main(int argc, char **argv)
{
    const peer_case cases[] = {{"empty", [](size_t n) { submit_all(n, [] {}); }},
                               {"work", [](size_t n) { submit_all(n, work_1us); }},
                               {"skynet", [](size_t n) { check_sum(skynet(0, n), n); }},
                               {"tree", [](size_t n) { check_sum(tree(0, n), n); }}};
    if (argc != 4)
        return 2;
    const int threads = std::atoi(argv[1]);
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, size_t(threads));
    tbb::task_arena arena(threads);
    int status = 0;
    arena.execute([&] { status = measure(cases, argv); });
    return status;
}
