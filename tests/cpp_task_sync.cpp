// Promises of <aco/task.hpp>: locks, channels, select, threads and share stacks in C++. Compiled as C++17 to C++23,
// with ACO_DEBUG 0 and 1.
#include "cpp_task.h"
#include "death.h"
#include "sanitizers.h"

#include <algorithm>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

namespace {

// ---- Locks ----

// What aco_tasks_dump() says of a task with this name: where it waits.
std::string place_of(const std::string &name)
{
    std::FILE *const file = std::tmpfile();
    std::string all, place;
    EXPECT_EQ(aco_tasks_dump(fileno(file)), 0);
    std::rewind(file);
    for (int c; (c = std::fgetc(file)) != EOF;)
        all += static_cast<char>(c);
    std::fclose(file);
    const std::size_t at = all.find("(" + name + ") waits at ");
    if (at != std::string::npos)
        place = all.substr(at + name.size() + 12, all.find(" for ", at) - at - name.size() - 12);
    return place;
}

// Promise: reports name the caller's file and line, also through the standard's locks.
TEST(Locks, PlacesInReports)
{
    in_task([] {
        aco::mutex mutex;
        aco::shared_mutex rwlock;
        aco::event event;
        {
            std::scoped_lock held(mutex, rwlock);
            aco::task_group group;
            const auto expect = [&](int line, auto wait) {
                const std::string name = "waiter " + std::to_string(line);
                group.spawn(wait, aco::options().named(name.c_str()));
                aco::yield();
                EXPECT_EQ(place_of(name), __FILE__ + (sizeof(void *) == 8 ? ":" + std::to_string(line) : ""));
            };
            expect(__LINE__, [&] { mutex.lock(), mutex.unlock(); });
            expect(__LINE__, [&] { std::lock_guard<aco::mutex> lock(mutex); });
            expect(__LINE__, [&] { std::scoped_lock lock(mutex); });
            expect(__LINE__, [&] { std::unique_lock lock(mutex); });
            expect(__LINE__, [&] { std::unique_lock lock(mutex, 10s); });
            expect(__LINE__, [&] { std::unique_lock<aco::mutex>(mutex, std::defer_lock).lock(); });
            expect(__LINE__, [&] { std::shared_lock lock(rwlock); });
            expect(__LINE__, [&] { std::lock_guard lock(rwlock); });
            expect(__LINE__, [&] { event.wait(); });
            event.set();
            mutex.unlock(), rwlock.unlock();
            group.wait();
            mutex.lock(), rwlock.lock();
        }
    });
}

// Promise: the standard's lock that can be moved does what the standard says.
TEST(Locks, UniqueLock)
{
    in_task([] {
        aco::mutex mutex;
        std::unique_lock<aco::mutex> none, lock(mutex), taken(std::move(lock));
        EXPECT_TRUE(!none && !lock && taken.owns_lock() && taken.mutex() == &mutex && !lock.mutex());
        EXPECT_THROW(none.lock(), std::system_error);
        EXPECT_THROW(none.unlock(), std::system_error);
        EXPECT_THROW(taken.lock(), std::system_error);
        swap(none, taken);
        EXPECT_TRUE(none && !taken);
        none.unlock();
        EXPECT_TRUE(none.try_lock() && none.owns_lock());
        lock = std::move(none);
        EXPECT_TRUE(lock && !none.mutex());
        EXPECT_EQ(lock.release(), &mutex);
        EXPECT_FALSE(mutex.try_lock());
        none = std::unique_lock<aco::mutex>(mutex, std::adopt_lock);
        EXPECT_TRUE(none);
    });
}

// Promise: the mutex with the standard's locks.
TEST(Locks, Mutex)
{
    in_task([] {
        aco::mutex mutex, other;
        int inside = 0, most = 0;
        aco::task_group group;
        for (int i = 0; i < 5; ++i)
            group.spawn([&] {
                std::lock_guard<aco::mutex> lock(mutex);
                most = std::max(most, ++inside);
                aco::yield();
                --inside;
            });
        aco::yield();
        EXPECT_FALSE(mutex.try_lock());
        EXPECT_FALSE(std::unique_lock<aco::mutex>(mutex, std::try_to_lock));
        EXPECT_FALSE(std::unique_lock<aco::mutex>(mutex, 0s));
        group.wait();
        EXPECT_EQ(most, 1);
        std::scoped_lock both(mutex, other);
        EXPECT_EQ(thrown_by([&] { mutex.lock(); }), "error " + std::to_string(EDEADLK));
    });
}

// Promise: tasks that lock several mutexes at once, in whatever order, go on.
template <class Mutex, class First> void several_at_once()
{
    in_task([] {
        for (int tasks = 2; tasks <= 7; ++tasks)
            for (int order = 0; order < 12; ++order) {
                Mutex mutexes[4];
                int inside[4] = {}, done = 0;
                aco::deadline limit(30s); // if they do not
                aco::task_group group;
                for (int i = 0; i < tasks; ++i)
                    group.spawn([&, i] {
                        const int a = i * (order / 3) % 4, b = (a + 1 + order % 3) % 4, c = (6 - a - b) & 3;
                        for (int round = 0; round < 40; ++round) {
                            First x(mutexes[a], std::defer_lock);
                            std::unique_lock<Mutex> y(mutexes[b], std::defer_lock), z(mutexes[c], std::defer_lock);
                            if (round < 20 || c == a || c == b)
                                std::lock(x, y);
                            else
                                std::lock(x, y, z);
                            EXPECT_EQ(++inside[b], 1);
                            EXPECT_GE(++inside[a], 1);
                            if ((i + round) % 3)
                                aco::yield();
                            --inside[a], --inside[b], ++done;
                        }
                    });
                EXPECT_EQ(thrown_by([&] { group.wait(); }), "");
                EXPECT_EQ(done, 40 * tasks);
            }
    });
}
TEST(Locks, SeveralAtOnce)
{
    several_at_once<aco::mutex, std::unique_lock<aco::mutex>>();
    several_at_once<aco::shared_mutex, std::shared_lock<aco::shared_mutex>>();
}

// Promise: a task whose try_lock() of something else fails each time does not keep the lock from others for ever.
template <class Mutex> void pass_over()
{
    in_task([] {
        Mutex held, wanted;
        int turns = 0, had_at = 0;
        std::lock_guard<Mutex> lock(held);
        auto keeper = aco::spawn([&] {
            for (; turns < 1000 && !had_at; ++turns) {
                std::lock_guard<Mutex> mine(wanted);
                aco::yield();
                EXPECT_FALSE(held.try_lock());
            }
        });
        auto other = aco::spawn([&] {
            std::lock_guard<Mutex> mine(wanted);
            had_at = turns;
        });
        other.join();
        keeper.join();
        EXPECT_LT(had_at, 100);
    });
}
TEST(Locks, PassedOver)
{
    pass_over<aco::mutex>();
    pass_over<aco::shared_mutex>();
}

// Promise: an unlock hands over. After a failed try_lock() another task may be faster; a task that waits can be
// cancelled then too.
TEST(Locks, BacksOff)
{
    for (aco_share_stack_t *stack : {static_cast<aco_share_stack_t *>(nullptr), aco_share_stack_new(0)}) {
        in_task([stack] {
            aco::mutex mutex, other;
            const aco_t *const &owner = mutex.native_handle()->owner, *me = aco_co();
            aco::event end;
            auto holder = aco::spawn([&] {
                std::lock_guard<aco::mutex> lock(other);
                end.wait();
            });
            for (int cancels = 0; cancels < 3; ++cancels) {
                auto scope = std::make_unique<aco_scope_t *>(nullptr);
                EXPECT_TRUE(mutex.try_lock());
                auto waiter = aco::spawn(
                    [&mutex, s = scope.get()] {
                        aco::scope mine;
                        *s = mine.native_handle();
                        mutex.lock();
                        aco::yield();
                        mutex.unlock();
                    },
                    aco::options().on(stack));
                aco::yield();
                mutex.unlock();
                EXPECT_EQ(owner, waiter.native_handle());
                mutex.lock(); // behind it
                EXPECT_TRUE(waiter.done());
                waiter.join();
                waiter = aco::spawn(
                    [&mutex, s = scope.get()] {
                        aco::scope mine;
                        *s = mine.native_handle();
                        std::lock_guard<aco::mutex> lock(mutex);
                        aco::yield();
                    },
                    aco::options().on(stack));
                aco::yield();
                EXPECT_FALSE(other.try_lock());
                mutex.unlock();
                EXPECT_EQ(owner, nullptr);
                EXPECT_TRUE(mutex.try_lock());
                EXPECT_FALSE(other.try_lock());
                mutex.unlock(); // while the one that waits can run
                EXPECT_EQ(owner, nullptr);
                EXPECT_TRUE(cancels == 2 || mutex.try_lock());
                if (cancels > 0 && !stack)
                    aco_scope_cancel(*scope);
                aco::yield();
                if (cancels == 2) { // it was free
                    EXPECT_EQ(owner, waiter.native_handle());
                    waiter.join();
                    continue;
                }
                EXPECT_EQ(owner, me);
                mutex.unlock();
                if (cancels && !stack) {
                    EXPECT_EQ(owner, nullptr);
                    EXPECT_EQ(thrown_by([&] { waiter.join(); }), by_hand);
                } else {
                    EXPECT_EQ(owner, waiter.native_handle());
                    waiter.join();
                }
            }
            end.set();
            holder.join();
        });
        if (stack)
            aco_share_stack_destroy(stack);
    }
}

// Promise: a condition; a wait that is cancelled or too late has the mutex again.
TEST(Locks, Condition)
{
    in_task([] {
        aco::mutex mutex;
        aco::condition_variable condition;
        int ready = 0;
        aco::task_group group;
        for (int i = 0; i < 3; ++i)
            group.spawn([&] {
                std::unique_lock<aco::mutex> lock(mutex);
                condition.wait(lock, [&] { return ready > 0; });
                --ready;
            });
        aco::yield();
        {
            std::lock_guard<aco::mutex> lock(mutex);
            ready = 3;
        }
        condition.notify_one();
        condition.notify_all();
        group.wait();
        EXPECT_EQ(ready, 0);
        std::unique_lock<aco::mutex> lock(mutex);
        EXPECT_EQ(condition.wait_for(lock, 1ms), std::cv_status::timeout);
        EXPECT_FALSE(condition.wait_until(lock, std::chrono::steady_clock::now(), [] { return false; }));
        EXPECT_TRUE(condition.wait_for(lock, 1h, [] { return true; }));
        aco::deadline limit(1ms);
        EXPECT_EQ(thrown_by([&] { condition.wait(lock); }), by_time);
        EXPECT_EQ(mutex.native_handle()->owner, aco_co());
    });
}

// Promise: readers together, writers alone.
TEST(Locks, SharedMutex)
{
    in_task([] {
        aco::shared_mutex mutex;
        std::string log;
        aco::task_group group;
        for (int i = 0; i < 2; ++i)
            group.spawn([&] {
                std::shared_lock<aco::shared_mutex> lock(mutex);
                log += 'r';
                aco::yield();
                log += 's';
            });
        group.spawn([&] {
            std::unique_lock<aco::shared_mutex> lock(mutex);
            log += 'w';
            aco::yield();
            log += 'x';
        });
        aco::yield();
        EXPECT_FALSE(mutex.try_lock());
        EXPECT_FALSE(mutex.try_lock_shared()); // a writer waits
        group.wait();
        EXPECT_EQ(log, "rrsswx");
        aco::event done;
        auto writer = aco::spawn([&] {
            std::lock_guard<aco::shared_mutex> lock(mutex);
            done.wait();
        });
        aco::yield();
        EXPECT_FALSE(std::unique_lock<aco::shared_mutex>(mutex, 0s));
        EXPECT_FALSE(std::shared_lock<aco::shared_mutex>(mutex, 0s));
        done.set();
        writer.join();
        EXPECT_TRUE(mutex.try_lock_shared());
        EXPECT_TRUE(mutex.try_lock_shared());
        mutex.unlock_shared();
        mutex.unlock_shared();
    });
}

// Promise: semaphore, event, barrier, call_once.
TEST(Locks, Others)
{
    in_task([] {
        aco::semaphore units(2);
        units.acquire();
        EXPECT_TRUE(units.try_acquire());
        EXPECT_FALSE(units.try_acquire());
        EXPECT_FALSE(units.try_acquire_for(1us));
        units.release(2);
        EXPECT_EQ(units.value(), 2u);
        aco::event happened;
        aco::barrier three(3);
        aco::once_flag once;
        int last = 0, calls = 0, ready = 0, done = 0;
        aco::task_group group;
        for (int i = 0; i < 3; ++i)
            group.spawn([&, i] {
                last += three.arrive_and_wait();
                std::string thrown = thrown_by([&] {
                    aco::call_once(once, [&] {
                        aco::yield();
                        if (calls++ == 0)
                            throw std::runtime_error("again");
                    });
                });
                EXPECT_EQ(thrown, thrown.empty() ? "" : "again") << i;
                EXPECT_FALSE(happened.is_set());
                ++ready;
                happened.wait();
                ++done;
            });
        while (ready < 3)
            aco::yield();
        EXPECT_FALSE(happened.wait_for(1us));
        EXPECT_EQ(last, 1);
        EXPECT_EQ(calls, 2);
        happened.set();
        group.wait();
        EXPECT_EQ(done, 3);
        happened.reset();
        EXPECT_FALSE(happened.is_set());
    });
}

// ---- Channels ----

template <class T> class Channels : public testing::Test {};
template <class T> T make(int n)
{
    if constexpr (std::is_same_v<T, unique>)
        return std::make_unique<int>(n);
    else
        return T(n);
}
int number(int n) { return n; }
int number(const unique &p) { return p ? *p : -1; }
int number(const pinned &p) { return p.number; }
using elements = testing::Types<int, unique, pinned>;
TYPED_TEST_SUITE(Channels, elements, );

// Promise: elements of any movable type arrive in order, with and without room; a range ends at the close.
TYPED_TEST(Channels, InOrder)
{
    in_task([] {
        for (std::size_t capacity : {0u, 1u, 3u, 100u}) {
            aco::channel<TypeParam> channel(capacity);
            auto sender = aco::spawn([&channel] {
                for (int i = 0; i < 20; ++i)
                    EXPECT_TRUE(channel.send(make<TypeParam>(i)));
                EXPECT_TRUE(channel.close());
                EXPECT_FALSE(channel.close());
            });
            int next = 0;
            EXPECT_EQ(number(*channel.receive()), next++);
            TypeParam element = make<TypeParam>(99);
            EXPECT_TRUE(channel.receive(element));
            EXPECT_EQ(number(element), next++);
            for (TypeParam &each : channel)
                EXPECT_EQ(number(each), next++);
            EXPECT_EQ(next, 20);
            EXPECT_FALSE(channel.receive());
            EXPECT_FALSE(channel.receive(element));
            sender.join();
        }
    });
}

// Promise: an element that is not sent stays with the caller, whatever the reason; none is lost or destroyed twice.
TYPED_TEST(Channels, NotSent)
{
    in_task([] {
        aco::channel<TypeParam> channel;
        TypeParam mine = make<TypeParam>(7);
        EXPECT_EQ(channel.try_send(std::move(mine)), aco::status::would_wait);
        EXPECT_EQ(number(mine), 7);
        EXPECT_EQ(channel.send_for(std::move(mine), 1us), aco::status::timed_out);
        EXPECT_EQ(channel.send_until(std::move(mine), std::chrono::steady_clock::now()), aco::status::timed_out);
        EXPECT_EQ(number(mine), 7);
        {
            aco::deadline limit(1us);
            EXPECT_EQ(thrown_by([&] { channel.send(std::move(mine)); }), by_time);
        }
        EXPECT_EQ(number(mine), 7);
        EXPECT_EQ(aco::select_for(1us, aco::on_send(channel, std::move(mine), [](bool) { ADD_FAILURE(); })), -1);
        EXPECT_EQ(number(mine), 7);
        auto closer = aco::spawn([&channel] { channel.close(); });
        EXPECT_FALSE(channel.send(std::move(mine)));
        EXPECT_EQ(number(mine), 7);
        EXPECT_EQ(channel.try_send(std::move(mine)), aco::status::closed);
        EXPECT_EQ(number(mine), 7);
        closer.join();
    });
}

// Promise: receives without waiting and with a limit.
TYPED_TEST(Channels, TriesToReceive)
{
    in_task([] {
        aco::channel<TypeParam> channel(1);
        TypeParam element = make<TypeParam>(1);
        EXPECT_EQ(channel.try_receive(element), aco::status::would_wait);
        EXPECT_EQ(channel.receive_for(element, 1us), aco::status::timed_out);
        EXPECT_EQ(channel.try_send(make<TypeParam>(2)), aco::status::done);
        EXPECT_EQ(channel.receive_until(element, std::chrono::steady_clock::now()), aco::status::done);
        EXPECT_EQ(number(element), 2);
        channel.close();
        EXPECT_EQ(channel.try_receive(element), aco::status::closed);
    });
}

// Promise: a channel that is destroyed destroys the elements inside, once; closed or not, read in part or not.
TYPED_TEST(Channels, DestroyedWithElements)
{
    in_task([] {
        for (int read = 0; read < 3; ++read) {
            aco::channel<TypeParam> channel(3);
            for (int i = 0; i < 3; ++i)
                channel.send(make<TypeParam>(i));
            for (int i = 0; i < read; ++i)
                channel.receive();
            if (read == 2)
                channel.send(make<TypeParam>(3));
            if (read == 1)
                channel.close();
            aco::channel<TypeParam> moved(std::move(channel));
            EXPECT_EQ(thrown_by([&] { channel.close(); }), "error " + std::to_string(EINVAL));
        }
        aco::channel<TypeParam> channel(1);
        channel.send(make<TypeParam>(4));
        for (TypeParam &each : channel) { // left with an element
            EXPECT_EQ(number(each), 4);
            break;
        }
    });
}

// Promise: an element that a receiver was handed arrives, even if its scope ends or the channel goes before it runs.
TYPED_TEST(Channels, HandedOver)
{
    in_task([] {
        auto channel = std::make_unique<aco::channel<TypeParam>>();
        aco::scope *scope = nullptr;
        auto receiver = aco::spawn([&] {
            aco::scope mine;
            scope = &mine;
            return number(*channel->receive());
        });
        aco::yield();
        EXPECT_TRUE(channel->send(make<TypeParam>(5)));
        scope->cancel();
        channel.reset();
        EXPECT_EQ(receiver.join(), 5);
    });
}

// Promise: select does one case and calls its function; it serves a waiting one too.
TYPED_TEST(Channels, Select)
{
    in_task([] {
        aco::channel<TypeParam> in, out(1), never;
        TypeParam spare = make<TypeParam>(8);
        int seen = 0;
        auto received = [&seen](std::optional<TypeParam> element) { seen = element ? number(*element) : -2; };
        auto not_reached = [](auto &&) { ADD_FAILURE(); };
        EXPECT_EQ(aco::try_select(aco::on_receive(in, not_reached)), -1);
        EXPECT_EQ(aco::select(aco::on_receive(in, not_reached),
                              aco::on_send(out, std::move(spare), [&seen](bool sent) { seen = sent; })),
                  1);
        EXPECT_EQ(seen, 1);
        EXPECT_EQ(number(*out.receive()), 8);
        auto sender = aco::spawn([&in] { in.send(make<TypeParam>(9)); });
        spare = make<TypeParam>(10);
        EXPECT_EQ(aco::select_until(std::chrono::steady_clock::now() + 1h,
                                    aco::on_send(never, std::move(spare), not_reached), aco::on_receive(in, received)),
                  1);
        EXPECT_EQ(seen, 9);
        EXPECT_EQ(number(spare), 10);
        sender.join();
        in.close();
        EXPECT_EQ(aco::select(aco::on_receive(in, received), aco::on_receive(never, not_reached)), 0);
        EXPECT_EQ(seen, -2);
        EXPECT_EQ(aco::select(aco::on_send(in, std::move(spare), [&seen](bool sent) { seen = sent ? 1 : 0; })), 0);
        EXPECT_EQ(seen, 0);
        EXPECT_EQ(number(spare), 10);
        aco::deadline limit(1us);
        EXPECT_EQ(thrown_by([&] {
                      aco::select(aco::on_receive(never, not_reached),
                                  aco::on_send(never, std::move(spare), not_reached));
                  }),
                  by_time);
        EXPECT_EQ(number(spare), 10);
    });
}

template <class Case, class = void> struct selects : std::false_type {};
template <class Case>
struct selects<Case, std::void_t<decltype(aco::select(std::declval<Case>()))>> : std::true_type {};

// Promise: a case serves one call of select(): one with a name, which could be used again, does not compile.
TEST(Channel, CasesServeOnce)
{
    const auto f = [](auto &&) {};
    using receive = decltype(aco::on_receive(std::declval<aco::channel<int> &>(), f));
    using send = decltype(aco::on_send(std::declval<aco::channel<int> &>(), 1, f));
    EXPECT_TRUE(selects<receive>::value && selects<send>::value);
    EXPECT_FALSE(selects<receive &>::value || selects<send &>::value);
    EXPECT_FALSE(selects<const receive &>::value);
}

// Promise: what can be copied can be sent by a copy.
TEST(Channel, Copies)
{
    in_task([] {
        aco::channel<std::string> words(2);
        const std::string word(100, 'w');
        EXPECT_TRUE(words.send(word));
        EXPECT_EQ(aco::select(aco::on_send(words, word, [](bool sent) { EXPECT_TRUE(sent); })), 0);
        EXPECT_EQ(words.receive(), word);
        EXPECT_EQ(words.receive(), word);
        aco::channel<double> numbers(1);
        const double x = 1.5;
        EXPECT_TRUE(numbers.send(x));
        EXPECT_EQ(numbers.receive(), 1.5);
        EXPECT_EQ(aco::select(aco::on_send(numbers, x, [](bool) {})), 0);
        EXPECT_EQ(numbers.receive(), 1.5);
    });
}

// Promise: each thread has its own tasks.
TEST(Threads, Apart)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([i] {
            aco::channel<std::string> words;
            int length = 0;
            aco::spawn([&words, i] {
                for (int n = 0; n < 100; ++n)
                    words.send(std::string(static_cast<std::size_t>(i), 'x'));
                words.close();
            });
            aco::spawn([&words, &length] {
                for (std::string &word : words)
                    length += static_cast<int>(word.size());
                try {
                    throw std::runtime_error("each");
                } catch (const std::exception &) {
                    aco::sleep_for(1us);
                }
            });
            EXPECT_EQ(aco_run(), 0);
            EXPECT_EQ(length, 100 * i);
        });
    for (std::thread &thread : threads)
        thread.join();
}

// ---- Tasks on share stacks: their local variables must not be used by others while they wait ----

class OnShareStack : public testing::Test {
protected:
    aco_share_stack_t *const stack = aco_share_stack_new(0);
    const aco::options on = aco::options().on(stack);
    ~OnShareStack() override { aco_share_stack_destroy(stack); }
};

// Promise: results, exceptions and captures are as on private stacks, while all tasks are in the same place.
TEST_F(OnShareStack, Results)
{
    in_task([this] {
        std::vector<aco::task<std::string>> texts;
        std::vector<aco::task<int>> numbers;
        for (int i = 0; i < 10; ++i) {
            texts.push_back(aco::spawn(
                [i, p = pinned(i)] {
                    const std::string local = std::to_string(i) + std::string(100, 'x');
                    char deep[1000];
                    std::fill(std::begin(deep), std::end(deep), static_cast<char>(i));
                    for (int n = i; n; --n)
                        aco::yield();
                    EXPECT_EQ(std::count(std::begin(deep), std::end(deep), i), 1000);
                    if (i % 3 == 0)
                        throw std::runtime_error(local);
                    return local;
                },
                on));
            numbers.push_back(aco::spawn([i]() -> int {
                try {
                    throw i;
                } catch (int caught) {
                    i % 2 ? aco::sleep_for(1ms) : aco::yield();
                    EXPECT_EQ(caught, i);
                    throw;
                }
            }, on));
        }
        for (int i = 9; i >= 0; --i) {
            const std::string text = std::to_string(i) + std::string(100, 'x');
            auto &task = texts[static_cast<std::size_t>(i)];
            EXPECT_EQ(i % 3 ? task.join() : thrown_by([&task] { task.join(); }), text);
            int thrown = -1;
            try {
                numbers[static_cast<std::size_t>(i)].join();
            } catch (int n) {
                thrown = n;
            }
            EXPECT_EQ(thrown, i);
        }
        aco::spawn([] { return pinned(1); }, on); // detached
        aco::yield();
    });
}

// Promise: scopes in the tasks, and of the group of which they are members, cancel them; their destructors run.
TEST_F(OnShareStack, Cancelled)
{
    in_task([this] {
        int late = 0, unwound = 0;
        aco::task_group group(ACO_KEEP_GOING);
        for (int i = 0; i < 6; ++i)
            group.spawn(
                [i, &late, &unwound] {
                    struct counts {
                        int &n;
                        ~counts() { ++n; }
                    } count{unwound};
                    pinned local(i);
                    late += !aco::try_for(std::chrono::milliseconds(i), [] { aco::sleep_for(1h); });
                    aco::scope outer;
                    aco::deadline limit(1h);
                    aco_park("for ever");
                    EXPECT_EQ(thrown_by([] { aco::check_cancelled(); }), by_hand);
                    aco::shield shielded;
                    aco::sleep_for(std::chrono::microseconds(100 * i));
                    EXPECT_EQ(local.number, i);
                },
                on);
        while (late < 6)
            aco::sleep_for(1ms);
        group.cancel();
        group.wait();
        EXPECT_EQ(unwound, 6);
        EXPECT_EQ(group.native_handle()->succeeded, 6u);
    });
}

// Promise: a group and what others reach by address cannot be local variables there; that is an error.
TEST_F(OnShareStack, Refused)
{
    if (UNDER_ASAN) // the stack is a private one
        return;
    in_task([this] {
        auto own_group = aco::spawn([] { aco::task_group group; }, on);
        EXPECT_EQ(thrown_by([&] { own_group.join(); }), "error " + std::to_string(EINVAL));
    });
}

// Promise: all that tasks wait for serves them; elements go from one task's variable to another's.
TEST_F(OnShareStack, Waits)
{
    in_task([this] {
        aco::channel<std::string> words;
        aco::channel<unique> boxes(2);
        aco::mutex mutex, second;
        aco::condition_variable condition;
        aco::shared_mutex shared;
        aco::semaphore units(1);
        aco::event event;
        aco::barrier meeting(4);
        aco::once_flag flag;
        int sum = 0, once = 0, inside = 0, ready = 0;
        aco::task_group group;
        for (int i = 0; i < 4; ++i) {
            group.spawn([&, i] {
                for (int n = 0; n < 5; ++n) {
                    std::string word(static_cast<std::size_t>(100 * i + n), 'w');
                    EXPECT_TRUE(words.send(std::move(word)));
                    unique box = std::make_unique<int>(n);
                    aco::select(aco::on_send(boxes, std::move(box), [](bool sent) { EXPECT_TRUE(sent); }));
                }
            }, on);
            group.spawn([&] {
                for (int n = 0; n < 5; ++n) {
                    std::string word;
                    EXPECT_TRUE(words.receive(word));
                    sum += static_cast<int>(word.size());
                    aco::select(aco::on_receive(boxes, [&sum](std::optional<unique> box) { sum += *box.value(); }));
                }
            }, on);
            group.spawn([&] {
                meeting.arrive_and_wait();
                aco::call_once(flag, [&once] {
                    aco::yield();
                    ++once;
                });
                EXPECT_EQ(once, 1);
                {
                    std::scoped_lock both(mutex, second);
                    EXPECT_EQ(++inside, 1);
                    aco::yield();
                    --inside;
                }
                units.acquire();
                aco::yield();
                units.release();
                {
                    std::shared_lock<aco::shared_mutex> reads(shared);
                    aco::yield();
                }
                std::lock_guard<aco::shared_mutex> writes(shared);
                event.wait();
            }, on);
            group.spawn([&] {
                std::unique_lock<aco::mutex> lock(mutex);
                condition.wait(lock, [&ready] { return ready != 0; });
                EXPECT_EQ(++inside, 1);
                aco::yield();
                --inside;
            }, on);
        }
        for (int i = 0; i < 20; ++i)
            aco::yield();
        mutex.lock();
        ready = 1;
        mutex.unlock();
        condition.notify_all();
        event.set();
        group.wait();
        EXPECT_EQ(sum, 5 * 100 * (0 + 1 + 2 + 3) + 2 * 4 * (0 + 1 + 2 + 3 + 4));
        auto reader = aco::spawn(
            [&boxes] {
                int total = 0;
                for (unique &box : boxes) {
                    aco::yield();
                    total += *box;
                }
                return total;
            },
            on);
        for (int i = 0; i < 9; ++i)
            boxes.send(std::make_unique<int>(i));
        boxes.close();
        EXPECT_EQ(reader.join(), 36);
    });
}

// ---- Deaths ----

// Promise: a mutex is unlocked by its owner, and a channel destroyed when nobody waits for it; a handler that swallows
// nothing but std::exception lets a cancelling through.
TEST(DeathTest, Misuse)
{
    EXPECT_DEATH(dies([] { aco::mutex().unlock(); }), LAST_LINE("acorn: aco_mutex_unlock: .*"));
    const char *waits = LAST_LINE("acorn: aco_channel_destroy: tasks wait for the channel .*");
    EXPECT_DEATH(dies([] {
                     aco::channel<int> channel;
                     aco::spawn([&channel] { channel.receive(); });
                     aco::yield();
                 }),
                 waits);
    EXPECT_DEATH(dies([] { // the element is not taken first
                     aco::channel<std::string> channel(1);
                     channel.send("one");
                     aco::spawn([&channel] { channel.send("two"); });
                     aco::yield();
                 }),
                 waits);
}

} // namespace
