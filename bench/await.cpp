/* Awaits: aco::await() in a task, and stackless coroutines (aco::async) beside tasks that do the same. The code that
 * measures is a task among the others. */
#include "native.h"

#include <aco/async.hpp>

static void *number_make(unsigned, size_t number)
{
    static size_t made;
    made = number;
    return &made;
}

/* ---- What is ready, and what completes before it has waited ---- */

struct ready {
    uintptr_t value;
    bool await_ready() const noexcept { return bench_hide(1); }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    uintptr_t await_resume() const noexcept { return value; }
};
struct at_once : ready {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) const { handle.resume(); }
};

template<class Awaitable>
BENCH_INLINE void awaits(size_t rounds)
{
    uintptr_t sum = 0;
    for (size_t n = rounds; n; n--)
        sum += aco::await(Awaitable{1});
    native_must(sum == rounds, "other values came");
}
BENCH_INLINE void ready_run(void *, size_t rounds) { awaits<ready>(rounds); }
BENCH_INLINE void at_once_run(void *, size_t rounds) { awaits<at_once>(rounds); }
NATIVE_RUN(ready_run)
NATIVE_RUN(at_once_run)

/* ---- `number` of them yield `rounds` times each ---- */

static aco::async<> yields(size_t rounds)
{
    for (; rounds; rounds--)
        co_await aco::async_yield();
}

BENCH_INLINE void members_yield(void *made, size_t rounds)
{
    aco::async_group group;
    for (size_t i = 0; i < *static_cast<size_t *>(made); i++)
        group.spawn(yields(rounds));
    group.wait();
}
NATIVE_RUN(members_yield)

BENCH_INLINE void tasks_yield(void *made, size_t rounds)
{
    aco::task_group group;
    for (size_t i = 0; i < *static_cast<size_t *>(made); i++)
        group.spawn([rounds] {
            for (size_t n = rounds; n; n--)
                aco::yield();
        });
    group.wait();
}
NATIVE_RUN(tasks_yield)

/* ---- A value to another one and back: by an awaitable, as a library for C++20 coroutines may have it ---- */

class box {
public:
    bool await_ready() const noexcept { return is_full_; }
    void await_suspend(std::coroutine_handle<> handle) noexcept { waiting_ = handle; }
    uintptr_t await_resume() noexcept
    {
        is_full_ = false;
        return value_;
    }
    void put(uintptr_t value)
    {
        value_ = value;
        is_full_ = true;
        if (std::coroutine_handle<> handle = std::exchange(waiting_, nullptr))
            handle.resume();
    }

private:
    uintptr_t value_ = 0;
    bool is_full_ = false;
    std::coroutine_handle<> waiting_;
};

static aco::async<> asks(box &there, box &back, uintptr_t &value, size_t rounds)
{
    for (; rounds; rounds--) {
        there.put(value);
        value = co_await back;
    }
}
static aco::async<> answers(box &there, box &back, size_t rounds)
{
    for (; rounds; rounds--)
        back.put(co_await there + 1);
}

BENCH_INLINE void members_ping_pong(void *, size_t rounds)
{
    box there, back;
    uintptr_t value = 0;
    aco::async_group group;
    group.spawn(answers(there, back, rounds));
    group.spawn(asks(there, back, value, rounds));
    group.wait();
    native_must(value == rounds, "other values came back");
}
NATIVE_RUN(members_ping_pong)

BENCH_INLINE void tasks_ping_pong(void *, size_t rounds)
{
    box there, back;
    uintptr_t value = 0;
    aco::task_group group;
    group.spawn([&] {
        for (size_t n = rounds; n; n--)
            back.put(aco::await(there) + 1);
    });
    for (size_t n = rounds; n; n--) {
        there.put(value);
        value = aco::await(back);
    }
    group.wait();
    native_must(value == rounds, "other values came back");
}
NATIVE_RUN(tasks_ping_pong)

BENCH_INLINE void channels_ping_pong(void *, size_t rounds)
{
    aco::channel<uintptr_t> there, back;
    uintptr_t value = 0;
    aco::task_group group;
    group.spawn([&] {
        for (size_t n = rounds; n; n--)
            back.send(*there.receive() + 1);
    });
    for (size_t n = rounds; n; n--) {
        there.send(value);
        value = *back.receive();
    }
    group.wait();
    native_must(value == rounds, "other values came back");
}
NATIVE_RUN(channels_ping_pong)

static aco::async<> asks_by(aco::channel<uintptr_t> &there, aco::channel<uintptr_t> &back, uintptr_t &value,
                            size_t rounds)
{
    for (; rounds; rounds--) {
        co_await aco::async_send(there, value);
        co_await aco::async_receive(back, value);
    }
}
static aco::async<> answers_by(aco::channel<uintptr_t> &there, aco::channel<uintptr_t> &back, size_t rounds)
{
    for (uintptr_t got = 0; rounds; rounds--) {
        co_await aco::async_receive(there, got);
        co_await aco::async_send(back, got + 1);
    }
}

BENCH_INLINE void member_channels_ping_pong(void *, size_t rounds)
{
    aco::channel<uintptr_t> there, back;
    uintptr_t value = 0;
    aco::async_group group;
    group.spawn(answers_by(there, back, rounds));
    group.spawn(asks_by(there, back, value, rounds));
    group.wait();
    native_must(value == rounds, "other values came back");
}
NATIVE_RUN(member_channels_ping_pong)

/* ---- A coroutine awaits another one: a child's whole life ---- */

static __attribute__((noinline)) aco::async<uintptr_t> child(uintptr_t value)
{
    co_return value + 1;
}
static aco::async<> calls(uintptr_t &value, size_t rounds)
{
    for (; rounds; rounds--)
        value = co_await child(value);
}

BENCH_INLINE void member_call(void *, size_t rounds)
{
    uintptr_t value = 0;
    aco::async_group group;
    group.spawn(calls(value, rounds));
    group.wait();
    native_must(value == rounds, "other values came back");
}
NATIVE_RUN(member_call)

static const native_case_t cases[] = {
    {"ready", number_make, NATIVE_ALL(ready_run)},
    {"at_once", number_make, NATIVE_ALL(at_once_run)},
    {"yield_members", number_make, NATIVE_ALL(members_yield)},
    {"yield_tasks", number_make, NATIVE_ALL(tasks_yield)},
    {"ping_pong_members", number_make, NATIVE_ALL(members_ping_pong)},
    {"ping_pong_tasks", number_make, NATIVE_ALL(tasks_ping_pong)},
    {"ping_pong_channels", number_make, NATIVE_ALL(channels_ping_pong)},
    {"ping_pong_member_channels", number_make, NATIVE_ALL(member_channels_ping_pong)},
    {"call", number_make, NATIVE_ALL(member_call)},
    {NULL, NULL, {NULL, NULL, NULL, NULL}},
};

int main(int argc, char **argv)
{
    aco::spawn([&] { exit(native_main(argc, argv, cases)); }).detach();
    aco::run();
}
