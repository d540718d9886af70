// Boost.Fiber's default scheduler, round robin. The main fiber measures; it is scheduled with the others.
#include "../native.h"

#include <boost/fiber/all.hpp>
#include <vector>

namespace fibers = boost::fibers;
using fibers::fiber;
using channel = fibers::unbuffered_channel<uintptr_t>;

// ---- Every fiber of a ring yields as often as the main fiber ----

static size_t wanted; // yields that every fiber makes
static bool stop;
static std::vector<fiber> others;

#define YIELDING(pad)                                                                                                  \
    NATIVE_HOT(pad) void yielding_##pad()                                                                              \
    {                                                                                                                  \
        while (!stop)                                                                                                  \
            for (size_t n = wanted; n; n--)                                                                            \
                boost::this_fiber::yield();                                                                            \
    }
YIELDING(0) YIELDING(16) YIELDING(32) YIELDING(48)

BENCH_INLINE void ring_run(void *, size_t rounds)
{
    wanted = rounds;
    for (; rounds; rounds--)
        boost::this_fiber::yield();
}
NATIVE_RUN(ring_run)

static void *ring_make(unsigned placement, size_t number)
{
    static void (*const all[])() = NATIVE_ALL(yielding);
    stop = true;
    ring_run(NULL, 1); // the fibers of the last sample end
    for (fiber &other : others)
        other.join();
    others.clear();
    stop = false;
    for (size_t i = 1; i < number; i++)
        others.emplace_back(all[placement]);
    ring_run(NULL, 1);
    return NULL;
}

// ---- A value to another fiber and back, by two unbuffered channels ----

struct pair_t {
    channel there, back;
};

static void *ping_pong_make(unsigned, size_t)
{
    pair_t *pair = new pair_t;
    fiber([pair] {
        for (uintptr_t value; pair->there.pop(value) == fibers::channel_op_status::success;)
            pair->back.push(value + 1);
    }).detach();
    return pair;
}

BENCH_INLINE void ping_pong_run(void *made, size_t rounds)
{
    pair_t &pair = *static_cast<pair_t *>(made);
    uintptr_t value = 0;
    for (size_t n = rounds; n; n--) {
        pair.there.push(value);
        pair.back.pop(value);
    }
    native_must(value == rounds, "other values came back");
}
NATIVE_RUN(ping_pong_run)

// ---- The same, with a time limit for each value that comes back ----

BENCH_INLINE void timeout_run(void *made, size_t rounds)
{
    pair_t &pair = *static_cast<pair_t *>(made);
    uintptr_t value = 0;
    for (size_t n = rounds; n; n--) {
        pair.there.push(value);
        pair.back.pop_wait_for(value, std::chrono::hours(1));
    }
    native_must(value == rounds, "other values came back");
}
NATIVE_RUN(timeout_run)

// ---- Fibers that do nothing: makes `number` at once, on stacks from a pool, and waits for all ----

typedef struct spawning {
    fibers::pooled_fixedsize_stack stacks{64 << 10};
    std::vector<fiber> fibers;
    size_t number, ran;
} spawning_t;

static void *spawn_make(unsigned, size_t number)
{
    spawning_t *s = new spawning_t;
    s->number = number;
    s->fibers.resize(number);
    return s;
}

BENCH_INLINE void spawn_run(void *made, size_t rounds)
{
    spawning_t &s = *static_cast<spawning_t *>(made);
    s.ran = 0;
    for (size_t n = rounds; n; n--) {
        for (fiber &f : s.fibers)
            f = fiber(std::allocator_arg, s.stacks, [&s] { s.ran++; });
        for (fiber &f : s.fibers)
            f.join();
    }
    native_must(s.ran == rounds * s.number, "not every fiber ran");
}
NATIVE_RUN(spawn_run)

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"ring", ring_make, NATIVE_ALL(ring_run)},
        {"ping_pong", ping_pong_make, NATIVE_ALL(ping_pong_run)},
        {"timeout", ping_pong_make, NATIVE_ALL(timeout_run)},
        {"spawn", spawn_make, NATIVE_ALL(spawn_run)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    if (argc == 7) // the allocator places the stacks: shift its addresses
        bench_escape(bench_alloc(strtoul(argv[6], NULL, 10) % 60 * 64 + 1));
    int status = native_main(argc, argv, cases);
    fflush(stdout);
    _Exit(status); // an orderly end would wait for all fibers, and these never end
}
