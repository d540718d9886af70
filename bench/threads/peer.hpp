// What the C++ peers of acorn.c share: the command line, the work of 1 us, five rounds.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr int BATCH = 1000, CHILDREN = 10, PAIRS = 4, ROOM = 64;

inline unsigned turns_per_us;

inline void work(unsigned turns)
{
    unsigned x = turns;
    for (unsigned i = 0; i < turns; i++)
        __asm__ volatile("" : "+r"(x));
}

inline void work_1us() { work(turns_per_us); }

struct peer_case {
    const char *name;
    void (*run)(size_t n);
};

template<size_t COUNT> int measure(const peer_case (&cases)[COUNT], char **argv)
{
    using clock = std::chrono::steady_clock;
    constexpr unsigned TURNS = 100000000;
    const char *name = argv[2];
    const size_t n = std::strtoul(argv[3], nullptr, 10);
    auto ns_since = [](clock::time_point begin) {
        return std::chrono::duration<double, std::nano>(clock::now() - begin).count();
    };
    auto begin = clock::now();
    work(std::strcmp(name, "work") == 0 ? TURNS : 0);
    turns_per_us = unsigned(TURNS * 1000.0 / ns_since(begin));
    for (const peer_case &each : cases) {
        if (std::strcmp(each.name, name) != 0)
            continue;
        for (int round = 0; round < 5; round++) {
            begin = clock::now();
            each.run(n);
            std::printf("%s %.1f\n", name, ns_since(begin) / double(n));
        }
        return 0;
    }
    return std::fprintf(stderr, "it has no %s\n", name), 3;
}

inline void check_sum(size_t sum, size_t n)
{
    if (sum != n * (n - 1) / 2)
        std::abort();
}
