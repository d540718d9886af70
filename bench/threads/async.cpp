// std::async: with the C++ library of gcc, a thread for each call. threads-async THREADS CASE N: THREADS is not used.
#include "peer.hpp"

#include <future>
#include <vector>

template<typename F> static void submit_all(size_t n, F f)
{
    std::vector<std::future<void>> futures(BATCH);
    for (size_t done = 0; done < n; done += BATCH) {
        for (auto &each : futures)
            each = std::async(std::launch::async, f);
        for (auto &each : futures)
            each.get();
    }
}

int main(int argc, char **argv)
{
    const peer_case cases[] = {{"empty", [](size_t n) { submit_all(n, [] {}); }},
                               {"work", [](size_t n) { submit_all(n, work_1us); }}};
    return argc == 4 ? measure(cases, argv) : 2;
}
