// Completions from another thread: two tasks on two threads, each awaits what the other one completes.
// threads-await THREADS CASE N: nanoseconds for each of N messages, in five rounds; THREADS is 2.
//   tasks     aco::await() in both tasks
//   members   co_await in an aco::async of both tasks
// "across" of threads-acorn is the same by channels between threads.
#include <aco/async.hpp>
#include <aco/mt.h>
#include <aco/threads.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { ROUNDS = 5 };

static const char *name;
static size_t n;

/* A value on its way, as a library for C++20 coroutines may have it: who puts it there resumes who waits for it. */
class alignas(64) box {
public:
    bool await_ready() const noexcept { return state_.load(std::memory_order_acquire) == this; }
    bool await_suspend(std::coroutine_handle<> waiting) noexcept
    {
        void *empty = nullptr;
        return state_.compare_exchange_strong(empty, waiting.address(), std::memory_order_acq_rel);
    }
    size_t await_resume() noexcept
    {
        const size_t value = value_;
        state_.store(nullptr, std::memory_order_relaxed); /* nobody puts another one before it has an answer */
        return value;
    }
    void put(size_t value)
    {
        value_ = value;
        if (void *waiting = state_.exchange(this, std::memory_order_acq_rel))
            std::coroutine_handle<>::from_address(waiting).resume();
    }

private:
    std::atomic<void *> state_{nullptr}; /* a handle, or this: it is full */
    size_t value_ = 0;
};

static box there, back;

static aco::async<> asks()
{
    for (size_t value = 0; value < n / 2; value++) {
        there.put(value);
        if (co_await back != value)
            std::abort();
    }
}
static aco::async<> answers()
{
    for (size_t value = 0; value < n / 2; value++)
        back.put(co_await there);
}

static void ask()
{
    if (std::strcmp(name, "members") == 0)
        return aco::await(asks());
    for (size_t value = 0; value < n / 2; value++) {
        there.put(value);
        if (aco::await(back) != value)
            std::abort();
    }
}
static void *answer(void *arg)
{
    if (std::strcmp(name, "members") == 0)
        return aco::await(answers()), arg;
    for (size_t value = 0; value < n / 2; value++)
        back.put(aco::await(there));
    return arg;
}

static void *measure(void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t begin = aco_now();
        aco_submit_options_t options = {};
        aco_mt_group_t group;
        options.where = ACO_SUBMIT_TO;
        options.thread = aco_threads_count(aco_threads_current()) - 1;
        aco_mt_group_begin(&group, ACO_KEEP_GOING);
        aco_submit(&group, answer, nullptr, &options);
        ask();
        aco_mt_group_end(&group);
        std::printf("%s %.1f\n", name, static_cast<double>(aco_now() - begin) / static_cast<double>(n));
    }
    return arg;
}

int main(int argc, char **argv)
{
    aco_threads_options_t options = {};
    if (argc != 4 || std::atoi(argv[1]) != 2)
        return std::fprintf(stderr, "usage: %s 2 CASE N\n", argv[0]), 2;
    name = argv[2];
    n = std::strtoul(argv[3], nullptr, 10);
    options.flags = ACO_THREADS_FIRST_ONLY;
    return aco_threads_run(2, measure, nullptr, &options) != 0;
}
