// Promises of <aco/async.hpp> and <aco/async_io.hpp> about what tasks wait for: members of groups wait for channels,
// mutexes, semaphores and descriptors in the queues of tasks, without a task of their own. C++20.
#include "cpp_task.h"
#include "sanitizers.h"

#include "aco/async_io.hpp"
#include "aco/sim.hpp"

#include <algorithm>
#include <fcntl.h>
#include <numeric>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

size_t tasks()
{
    aco_run_stats_t stats;
    aco_run_stats(&stats);
    return stats.tasks;
}

aco::async<> receive_one(aco::channel<int> &from, std::vector<int> &order, int name)
{
    const std::optional<int> got = co_await aco::async_receive(from);
    order.push_back(got ? 100 * name + *got : -name);
}

// Promise: members and tasks stand in one queue of a channel, first come, first served; members take no task there.
TEST(AsyncPlaces, Receive)
{
    in_task([] {
        aco::channel<int> channel;
        std::vector<int> order;
        aco::async_group group;
        aco::task_group others;
        group.spawn(receive_one(channel, order, 1));
        group.spawn(receive_one(channel, order, 2));
        const auto receives = [&]() -> aco::async<> {
            others.spawn([&] { order.push_back(100 * 3 + *channel.receive()); });
            co_await aco::async_sleep_for(1ms);
            EXPECT_EQ(tasks(), 2u); // this one and the one above
            others.spawn([&] {
                for (int i = 1; i <= 3; i++)
                    EXPECT_TRUE(channel.send(i));
                channel.close();
            });
            while (order.size() < 3)
                co_await aco::async_yield();
            std::sort(order.begin(), order.end()); // they were served in their order, and have run in any
            EXPECT_EQ(order, (std::vector<int>{101, 202, 303}));
            EXPECT_FALSE(co_await aco::async_receive(channel));
            EXPECT_FALSE(co_await aco::async_receive(channel, order[0]));
            EXPECT_EQ(order[0], 101);
            EXPECT_FALSE(co_await aco::async_send(channel, 5));
        };
        group.spawn(receives());
        group.wait();
        others.wait();
    });
}

// Promise: elements that own memory arrive; those that were not sent are where they were.
TEST(AsyncPlaces, Elements)
{
    in_task([] {
        aco::channel<std::unique_ptr<int>> pointers(1);
        aco::channel<std::string> strings;
        int sum = 0;
        aco::async_group group;
        const auto fills = [&]() -> aco::async<> {
            for (int i = 1; i <= 3; i++)
                EXPECT_TRUE(co_await aco::async_send(pointers, std::make_unique<int>(i)));
            const std::string text = "a text that is too long for the object itself";
            EXPECT_TRUE(co_await aco::async_send(strings, text));
            EXPECT_EQ(text.size(), 45u);
            strings.close();
            std::string more = "another text that is too long for the object";
            EXPECT_FALSE(co_await aco::async_send(strings, std::move(more)));
            EXPECT_EQ(more.size(), 44u); // NOLINT(bugprone-use-after-move): that is the promise
            pointers.close();
        };
        group.spawn(fills());
        const auto takes = [&]() -> aco::async<> {
            for (int i = 1; i <= 3; i++)
                sum += **co_await aco::async_receive(pointers);
            std::string text;
            EXPECT_TRUE(co_await aco::async_receive(strings, text));
            sum += static_cast<int>(text.size());
            EXPECT_FALSE(co_await aco::async_receive(strings, text));
            EXPECT_EQ(text.size(), 45u);
            EXPECT_FALSE(co_await aco::async_receive(pointers));
        };
        group.spawn(takes());
        group.wait();
        EXPECT_EQ(sum, 6 + 45);
    });
}

aco::async<> with_lock(aco::mutex &mutex, std::string &order, char name)
{
    const auto lock = co_await aco::async_lock(mutex);
    order += name;
    co_await aco::async_yield();
    order += name;
}

// Promise: a mutex is handed over in the order of its queue, among members of one group, of another, and tasks.
TEST(AsyncPlaces, Locks)
{
    in_task([] {
        aco::mutex mutex;
        std::string order;
        aco::async_group group;
        group.spawn(with_lock(mutex, order, 'a'));
        group.spawn(with_lock(mutex, order, 'b'));
        aco::task_group others;
        mutex.lock();
        others.spawn([&] {
            aco::async_group another;
            another.spawn(with_lock(mutex, order, 'c'));
            another.spawn(with_lock(mutex, order, 'd'));
            another.wait();
        });
        others.spawn([&] {
            const std::lock_guard lock(mutex);
            order += "e";
            aco::yield();
            order += "e";
        });
        aco::yield();
        EXPECT_EQ(order, "");
        mutex.unlock();
        group.wait();
        others.wait();
        EXPECT_EQ(order, "ccddeeaabb");
        EXPECT_TRUE(mutex.try_lock());
        mutex.unlock();
    });
}

aco::async<> with_unit(aco::semaphore &units, int &inside, int &most)
{
    co_await aco::async_acquire(units);
    most = std::max(most, ++inside);
    co_await aco::async_sleep_for(1ms);
    inside--;
    units.release();
}

TEST(AsyncPlaces, Semaphore)
{
    in_task([] {
        aco::semaphore units(3);
        int inside = 0, most = 0;
        aco::async_group group;
        for (int i = 0; i < 10; i++)
            group.spawn(with_unit(units, inside, most));
        group.wait();
        EXPECT_EQ(most, 3);
        EXPECT_EQ(units.value(), 3u);
    });
}

aco::async<> counts_cancels(aco::async<> inner, int &cancelled)
{
    try {
        co_await std::move(inner);
        ADD_FAILURE();
    } catch (const aco::cancelled &) {
        cancelled++;
        throw;
    }
}

aco::async<> locks(aco::mutex &mutex)
{
    co_await aco::async_lock(mutex);
}
aco::async<> acquires(aco::semaphore &units)
{
    co_await aco::async_acquire(units);
}
aco::async<> sleeps()
{
    co_await aco::async_sleep_for(1h);
}

// Members that wait for ever: for each thing there is.
void spawn_waiting(aco::async_group &group, aco::channel<int> &channel, aco::mutex &mutex, aco::semaphore &units,
                   int &cancelled)
{
    static std::vector<int> order;
    group.spawn(counts_cancels(receive_one(channel, order, 1), cancelled));
    group.spawn(counts_cancels(locks(mutex), cancelled));
    group.spawn(counts_cancels(acquires(units), cancelled));
    group.spawn(counts_cancels(sleeps(), cancelled));
}

// Promise: the end of the task's scope, cancel() of any task of the thread, and the group's destructor end such waits.
// The queues are as if nobody had waited.
TEST(AsyncPlaces, Cancelling)
{
    in_task([] {
        aco::channel<int> channel;
        aco::mutex mutex;
        aco::semaphore units(0);
        int cancelled = 0;
        mutex.lock(); // this task holds it; its members wait
        EXPECT_FALSE(aco::try_for(1ms, [&] {
            aco::async_group group;
            spawn_waiting(group, channel, mutex, units, cancelled);
            group.wait();
        }));
        EXPECT_EQ(cancelled, 4);
        {
            aco::async_group group;
            spawn_waiting(group, channel, mutex, units, cancelled);
            aco::task_group others;
            others.spawn([&] { group.cancel(); }); // while the group's task waits
            group.wait();
            others.wait();
        }
        EXPECT_EQ(cancelled, 8);
        {
            aco::async_group group;
            spawn_waiting(group, channel, mutex, units, cancelled);
        }
        EXPECT_EQ(cancelled, 12);
        mutex.unlock();
        units.release();
        EXPECT_EQ(units.value(), 1u);
        EXPECT_FALSE(mutex.native_handle()->owner);
    });
}

// Promise: what was handed to a member before its group was stopped is the member's.
TEST(AsyncPlaces, NothingIsLost)
{
    in_task([] {
        aco::channel<int> channel;
        int got = 0;
        aco::async_group group;
        const auto gets = [&]() -> aco::async<> { got = *co_await aco::async_receive(channel); };
        group.spawn(gets());
        aco::task_group others;
        others.spawn([&] {
            EXPECT_TRUE(channel.send(7));
            group.cancel();
        });
        group.wait();
        others.wait();
        EXPECT_EQ(got, 7);
    });
}

// Promise: what a stopped member could not send stays where it was.
TEST(AsyncPlaces, UnsentStays)
{
    in_task([] {
        aco::channel<std::string> channel;
        const std::string text(100, 'x');
        std::string element = text;
        int cancelled = 0;
        aco::async_group group;
        const auto sends = [&]() -> aco::async<> {
            try {
                co_await aco::async_send(channel, std::move(element)); // the group is stopped meanwhile
            } catch (const aco::cancelled &) {
                cancelled += element == text;
            }
            try {
                co_await aco::async_send(channel, std::move(element)); // before
            } catch (const aco::cancelled &) {
                cancelled += element == text;
            }
        };
        group.spawn(sends());
        aco::task_group others;
        others.spawn([&] { group.cancel(); });
        group.wait();
        others.wait();
        EXPECT_EQ(cancelled, 2);
    });
}

// ---- Descriptors ----

struct pair {
    aco::descriptor ends[2];
    pair()
    {
        int fds[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        for (int i = 0; i < 2; i++)
            ends[i] = aco::descriptor::adopt(fds[i]);
    }
};

aco::async<> echo(int fd)
{
    char bytes[100];
    while (const std::size_t n = co_await aco::async_read(fd, bytes, sizeof bytes))
        co_await aco::async_write_all(fd, bytes, n);
}

aco::async<> ask(aco::descriptor &end, std::size_t rounds)
{
    for (std::size_t i = 0; i < rounds; i++) {
        char text[6] = {};
        co_await aco::async_write_all(end.get(), "hello", 5);
        std::size_t got = 0;
        while (got < 5)
            got += co_await aco::async_read(end.get(), text + got, 5 - got);
        EXPECT_STREQ(text, "hello");
    }
    end.close();
}

// Promise: many members read and write in one task.
TEST(AsyncIo, Echo)
{
    in_task([] {
        std::vector<pair> pairs(20);
        aco::async_group group;
        for (pair &p : pairs) {
            group.spawn(echo(p.ends[0].get()));
            group.spawn(ask(p.ends[1], 10));
        }
        group.wait();
        EXPECT_EQ(tasks(), 1u);
    });
}

// Promise: more than the system's buffer is written in parts.
TEST(AsyncIo, Much)
{
    in_task([] {
        pair p;
        const std::string much(5000000, 'x');
        std::size_t got = 0;
        aco::async_group group;
        const auto writes = [&]() -> aco::async<> {
            co_await aco::async_write_all(p.ends[0].get(), much.data(), much.size());
            p.ends[0].close();
        };
        group.spawn(writes());
        const auto reads = [&]() -> aco::async<> {
            std::vector<char> bytes(100000);
            while (const std::size_t n = co_await aco::async_read(p.ends[1].get(), bytes.data(), bytes.size()))
                got += n;
        };
        group.spawn(reads());
        group.wait();
        EXPECT_EQ(got, much.size());
    });
}

// Promise: a descriptor may be waited for by members and tasks at once; its close and a cancel end the waits.
TEST(AsyncIo, Ends)
{
    in_task([] {
        pair p;
        char byte;
        int closed = 0;
        const auto waits = [&]() -> aco::async<> {
            try {
                co_await aco::async_readable(p.ends[0].get());
                ADD_FAILURE();
            } catch (const aco::error &e) {
                closed += e.code().value() == ECANCELED;
            }
        };
        EXPECT_FALSE(aco::try_for(1ms, [&] { (void)aco::await(aco::async_read(p.ends[0].get(), &byte, 1)); }));
        EXPECT_FALSE(aco::try_for(1ms, [&] {
            aco::async_group group;
            const auto waits_for_ever = [&]() -> aco::async<> { co_await aco::async_readable(p.ends[0].get()); };
            group.spawn(waits_for_ever());
            group.wait();
        }));
        aco::task_group others;
        others.spawn([&] {
            p.ends[0].wait_readable();
            EXPECT_EQ(p.ends[0].read(&byte, 1), 1u);
        });
        others.spawn([&] { EXPECT_EQ(aco::await(aco::async_read(p.ends[1].get(), &byte, 1)), 1u); });
        aco::yield();
        p.ends[1].write_all("x");
        p.ends[0].write_all("y");
        others.wait();
        aco::async_group group;
        group.spawn(waits());
        group.spawn(waits());
        const auto closes = [&]() -> aco::async<> {
            co_await aco::async_sleep_for(1ms);
            p.ends[0].close();
        };
        group.spawn(closes());
        group.wait();
        EXPECT_EQ(closed, 2);
        EXPECT_EQ(thrown_by([&] { (void)aco::await(aco::async_read(-1, &byte, 1)); }),
                  "error " + std::to_string(EBADF));
    });
}

// Promise: what comes for a member before the deadline of its scope is in time, also if the group's task has its next
// turn, after the deadline, before the scheduler looks for events.
TEST(AsyncIo, InTimeBeforeADeadline)
{
    in_task([] {
        bool is_late = true;
        for (int64_t ns = 2 * ACO_MILLISECOND; is_late; ns *= 2) {
            pair p;
            aco::channel<int> turn(1);
            const int64_t deadline = aco_after(ns);
            std::size_t got = 0;
            const auto reads = [&]() -> aco::async<> {
                char byte;
                got = co_await aco::async_read(p.ends[0].get(), &byte, 1);
            };
            const auto has_a_turn = [&]() -> aco::async<> { co_await aco::async_receive(turn); };
            const auto keeps_thread = [&] {
                p.ends[1].write_all("x");
                is_late = aco_now() >= deadline; // the machine is slow
                while (aco_now() <= deadline)
                    continue;
            };
            aco::task_group others;
            others.spawn([&] {
                others.spawn(keeps_thread);
                turn.send(1); // the group's task is behind it
            });
            aco_scope_t scope;
            aco_scope_begin(&scope, deadline);
            try {
                aco::async_group group;
                group.spawn(reads());
                group.spawn(has_a_turn());
                group.wait();
            } catch (const aco::cancelled &) {
            }
            aco_scope_end(&scope);
            others.wait();
            EXPECT_TRUE(got == 1 || is_late);
        }
    });
}

// Promise: in a child of fork() the waits of its members can be ended, although no event comes.
TEST(AsyncIo, Fork)
{
    if (UNDER_TSAN)
        GTEST_SKIP() << "children of fork()";
    in_task([] {
        pair p;
        pid_t pid = -1;
        int cancelled = 0, status = -1;
        aco::async_group group;
        const auto waits = [&]() -> aco::async<> {
            try {
                co_await aco::async_readable(p.ends[0].get());
            } catch (const aco::cancelled &) {
                cancelled++;
            }
        };
        group.spawn(waits());
        aco::task_group others;
        others.spawn([&] {
            pid = fork();
            if (pid == 0)
                alarm(60);
            group.cancel();
        });
        group.wait();
        others.wait();
        if (pid == 0)
            _exit(cancelled == 1 ? 0 : 1);
        EXPECT_EQ(cancelled, 1);
        EXPECT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT_EQ(status, 0);
    });
}

// ---- A node of a simulation crashes ----

struct crashes {
    int fd = -1, after = 0;
    bool has_crashed = false;
    aco::channel<int> channel;
    aco::semaphore units{0};
};

aco::async<> wait_at(crashes &c, int kind)
{
    try {
        if (kind == 0)
            co_await aco::async_readable(c.fd);
        else if (kind == 1)
            co_await aco::async_receive(c.channel);
        else if (kind == 2)
            co_await aco::async_acquire(c.units);
        else
            co_await aco::async_sleep_for(1s);
    } catch (...) {
        c.after += c.has_crashed;
        throw;
    }
    c.after += c.has_crashed;
}

// Promise: members of a node that crashes never go on, have left all queues, and keep no run from its end.
TEST(AsyncSim, Crash)
{
    const aco_sim_stats_t stats = aco::simulate(aco::sim_options().with_runs(4), [](aco::sim sim) {
        crashes c;
        const aco::sim_node node = sim.node("node", "10.0.0.1", [&c] {
            c.fd = aco_io_listen("tcp4", "10.0.0.1", "80", nullptr);
            static std::vector<aco::async_group *> lost; // where a leak checker finds them; else they are local
            lost.push_back(new aco::async_group);
            for (int kind = 0; kind < 4; kind++)
                lost.back()->spawn(wait_at(c, kind));
            lost.back()->wait();
        });
        aco::sleep_for(10ms);
        node.crash();
        aco::yield();
        aco::sleep_for(10ms);
        c.has_crashed = true;
        int number = 1;
        if (aco_channel_try_send(c.channel.native_handle(), &number) == 0)
            sim.fail("a channel has given its element to a node that has crashed");
        c.units.release();
        if (c.units.value() != 1)
            sim.fail("a node that has crashed took a unit");
        aco::sleep_for(5s);
        if (c.after)
            sim.fail("a node that has crashed goes on");
    });
    EXPECT_EQ(stats.seed, 0u) << stats.reason;
}

// ---- Any order of events ----

// Who waits for the mutex, in the order of its queue.
struct tickets {
    std::vector<int> waiting;
    std::vector<bool> is_ended; // by name: its scope has ended, so that it may leave its place
    void take(int name)
    {
        waiting.push_back(name);
    }
    bool serve(int name) // whether nobody that still waits stood before it
    {
        const auto mine = std::find(waiting.begin(), waiting.end(), name);
        const bool is_first = std::all_of(waiting.begin(), mine, [&](int other) { return is_ended[other]; });
        waiting.erase(mine);
        return is_first;
    }
    void leave(int name)
    {
        waiting.erase(std::find(waiting.begin(), waiting.end(), name));
    }
};

enum { GROUPS = 3, MEMBERS = 3, TASKS = 3, ALL = GROUPS * MEMBERS + TASKS };

struct world {
    aco::sim sim;
    aco::mutex mutex;
    aco::semaphore units{2};
    aco::channel<int> numbers;
    tickets queue;
    int inside = 0, with_unit = 0, sent = 0, received = 0;
    std::vector<int> last = std::vector<int>(ALL, -1);

    explicit world(aco::sim run) : sim(run), numbers(run.random(3))
    {
        queue.is_ended.resize(ALL);
    }
    void check(bool condition, const char *what) const
    {
        if (!condition)
            sim.fail(what);
    }
    void enters(int name)
    {
        check(queue.serve(name), "the mutex was not handed over in the order of its queue");
        check(inside++ == 0, "two have the mutex");
    }
    void took_unit()
    {
        check(++with_unit <= 2, "more have a unit than there are");
    }
    void got(int number, std::vector<int> &seen)
    {
        check(seen[number / 100] < number % 100, "numbers of one sender came in another order");
        seen[number / 100] = number % 100;
        received++;
    }
};

aco::async<> member(world &w, int name)
{
    std::vector<int> seen(ALL, -1);
    for (int i = 0; i < 6; i++) {
        w.queue.take(name);
        try {
            const auto lock = co_await aco::async_lock(w.mutex);
            w.enters(name);
            co_await aco::async_yield();
            w.inside--;
        } catch (const aco::cancelled &) {
            w.queue.leave(name);
            throw;
        }
        co_await aco::async_acquire(w.units);
        w.took_unit();
        co_await aco::async_yield();
        w.with_unit--;
        w.units.release();
        if (name % 2) {
            w.sent += co_await aco::async_send(w.numbers, 100 * name + i);
        } else if (int number; co_await aco::async_receive(w.numbers, number)) {
            w.got(number, seen);
        }
    }
}

void task(world &w, int name)
{
    std::vector<int> seen(ALL, -1);
    for (int i = 0; i < 6; i++) {
        w.queue.take(name);
        try {
            const std::lock_guard lock(w.mutex);
            w.enters(name);
            aco::yield();
            w.inside--;
        } catch (const aco::cancelled &) {
            w.queue.leave(name);
            throw;
        }
        w.units.acquire();
        w.took_unit();
        aco::yield();
        w.with_unit--;
        w.units.release();
        if (name % 2)
            w.sent += w.numbers.send(100 * name + i);
        else if (const std::optional<int> number = w.numbers.receive())
            w.got(*number, seen);
    }
}

void group_of(world &w, int first)
{
    aco::async_group group;
    for (int i = 0; i < MEMBERS; i++)
        group.spawn(member(w, first + i));
    group.wait();
}

void scenario(aco::sim sim)
{
    world w(sim);
    aco::task_group closer;
    closer.spawn([&] { // so that nobody waits for ever for the others' numbers
        aco::sleep_for(1s);
        w.numbers.close();
    });
    aco::task_group all(ACO_KEEP_GOING);
    for (int i = 0; i < GROUPS + TASKS; i++) {
        const int first = i < GROUPS ? i * MEMBERS : GROUPS * MEMBERS + i - GROUPS, n = i < GROUPS ? MEMBERS : 1;
        all.spawn([&w, i, first, n] {
            aco::task_group inner(ACO_KEEP_GOING);
            inner.spawn([&w, i, first] {
                if (i < GROUPS)
                    group_of(w, first);
                else
                    task(w, first);
            });
            if (w.sim.random(2)) {
                for (std::uint64_t turns = w.sim.random(60); turns; turns--)
                    aco::yield();
                for (int name = first; name < first + n; name++)
                    w.queue.is_ended[name] = true;
                inner.cancel();
            }
            inner.wait();
        });
    }
    all.wait();
    closer.wait();
    for (int number; w.numbers.try_receive(number) == aco::status::done;)
        w.received++;
    w.check(w.sent == w.received, "a number was lost, or came twice");
    w.check(!w.mutex.native_handle()->owner && w.units.value() == 2, "something was not given back");
    w.check(w.queue.waiting.empty(), "somebody still waits");
}

// Promise: whatever the order of turns and cancels, members and tasks at the same mutex, semaphore and channel lose
// nothing and are served in the order in which they came.
TEST(AsyncPlaces, AnyOrder)
{
    const aco_sim_stats_t stats = aco::simulate(aco::sim_options().with_runs(2000), scenario);
    EXPECT_EQ(stats.seed, 0u) << stats.reason;
    EXPECT_EQ(stats.runs, 2000u);
}

} // namespace
