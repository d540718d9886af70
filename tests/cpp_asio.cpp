// Promises of <aco/asio.hpp>: operations in which only the task waits; errors, cancelling, other threads, memory;
// a context that aco_run() waits in; an executor whose functions are tasks. The first test is Asio's own example of an
// echo server, in tasks. With ACO_ASIO_BOOST the same for Boost.Asio, where operations are not cancelled before 1.77.
#include "aco/asio.hpp"

#ifdef ACO_ASIO_BOOST
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
namespace net = boost::asio;
using boost::system::error_code;
using boost::system::system_error;
#else
#include <asio/any_io_executor.hpp>
#include <asio/bind_executor.hpp>
#include <asio/buffer.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
namespace net = asio;
using asio::error_code;
using asio::system_error;
#endif

#ifndef ACO_ASIO_BOOST
#include "aco/file.h"
#include "aco/io.hpp"
#include "aco/threads.hpp"
#endif

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace std::chrono_literals;
using net::ip::tcp;

// Runs f() in a task, with a context that aco_run() waits in.
template<class F>
void in_loop(F f)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    auto task = aco::spawn([&] { f(context); });
    loop.run();
    EXPECT_TRUE(task.done());
    task.join();
}

struct other_thread { // that runs a context
    net::io_context context{1};
    net::executor_work_guard<net::io_context::executor_type> work{context.get_executor()};
    std::thread thread{[this] { context.run(); }};
    ~other_thread()
    {
        work.reset();
        thread.join();
    }
};

struct connection {
    tcp::socket here, there;
    explicit connection(net::io_context &context) : here(context), there(context)
    {
        tcp::acceptor door(context, tcp::endpoint(net::ip::address_v4::loopback(), 0));
        here.connect(door.local_endpoint());
        there = door.accept();
    }
};

// ---- Operations ----

// Asio's example echo/blocking_tcp_echo_server.cpp: a thread for each session there, a task here.
void session(tcp::socket peer)
{
    for (;;) {
        char data[1024];
        error_code error;
        const std::size_t length = peer.async_read_some(net::buffer(data), aco::use_task[error]);
        if (error == net::error::eof)
            break; // the connection was closed by the peer
        if (error)
            throw system_error(error);
        net::async_write(peer, net::buffer(data, length), aco::use_task);
    }
}

void client(net::io_context &context, tcp::endpoint server, const std::string &text)
{
    tcp::socket peer(context);
    peer.async_connect(server, aco::use_task);
    EXPECT_EQ(net::async_write(peer, net::buffer(text), aco::use_task), text.size());
    std::string answer(text.size(), ' ');
    EXPECT_EQ(net::async_read(peer, net::buffer(answer), aco::use_task), text.size());
    EXPECT_EQ(answer, text);
}

void echoes(net::io_context &context)
{
    tcp::acceptor door(context, tcp::endpoint(net::ip::address_v4::loopback(), 0));
    aco::task_group group;
    for (int i = 0; i < 3; i++)
        group.spawn([&, i] {
            client(context, door.local_endpoint(), std::string(100000, static_cast<char>('a' + i)));
        });
    for (int i = 0; i < 3; i++)
        group.spawn([peer = door.async_accept(aco::use_task)]() mutable { session(std::move(peer)); });
    group.wait();
}

TEST(Asio, EchoServer)
{
    in_loop(echoes);
}

TEST(Asio, EchoServerWithContextOfAnotherThread)
{
    other_thread other;
    aco::spawn([&] { echoes(other.context); }).detach();
    aco::run();
}

// An operation that completes as start(handler) says.
template<class Signature, class Token, class Start>
auto operation(Start start, Token &&token)
{
    return net::async_initiate<Token, Signature>([start](auto handler) { start(std::move(handler)); }, token);
}

TEST(Asio, Results)
{
    in_loop([](net::io_context &context) {
        net::post(context, aco::use_task);
        net::dispatch(context, aco::use_task);
        operation<void(error_code)>([](auto done) { done(error_code()); }, aco::use_task);
        const auto two = operation<void(error_code, int, std::unique_ptr<int>)>(
            [](auto done) { done(error_code(), 1, std::make_unique<int>(2)); }, aco::use_task);
        EXPECT_EQ(std::get<0>(two) + *std::get<1>(two), 3);
        EXPECT_EQ(operation<void(std::string)>([](auto done) { done("a text"); }, aco::use_task), "a text");
        EXPECT_EQ(operation<void(std::exception_ptr, int)>([](auto done) { done(nullptr, 4); }, aco::use_task), 4);
    });
}

TEST(Asio, Errors)
{
    in_loop([](net::io_context &context) {
        error_code error;
        connection c(context);
        net::async_write(c.here, net::buffer("abc", 3), aco::use_task);
        c.here.shutdown(tcp::socket::shutdown_send);
        char got[10];
        EXPECT_EQ(net::async_read(c.there, net::buffer(got), aco::use_task[error]), 3u);
        EXPECT_EQ(error, net::error::eof);
        try {
            c.there.async_read_some(net::buffer(got), aco::use_task);
            ADD_FAILURE();
        } catch (const system_error &e) {
            EXPECT_EQ(e.code(), net::error::eof);
        }
        net::async_write(c.there, net::buffer("d", 1), aco::use_task[error]);
        EXPECT_FALSE(error);
        const auto failed = std::make_exception_ptr(std::out_of_range("far"));
        EXPECT_THROW(operation<void(std::exception_ptr)>([failed](auto done) { done(failed); }, aco::use_task),
                     std::out_of_range);
    });
}

TEST(Asio, OutsideOfTasksNothingIsBegun)
{
    bool begun = false;
    try {
        operation<void()>([&](auto) { begun = true; }, aco::use_task);
        ADD_FAILURE();
    } catch (const aco::error &e) {
        EXPECT_EQ(e.code().value(), EPERM);
    }
    EXPECT_FALSE(begun);
}

// ---- Handlers ----

TEST(Asio, CompletionBeforeTheTaskWaits)
{
    in_loop([](net::io_context &) {
        for (int i = 0; i < 100; i++) {
            const int got = operation<void(int)>(
                [i](auto done) { std::thread([i, &done] { std::move(done)(i); }).join(); }, aco::use_task);
            EXPECT_EQ(got, i);
        }
    });
}

TEST(Asio, HandlerThatIsDestroyed)
{
    in_loop([](net::io_context &) {
        for (bool elsewhere : {false, true}) {
            auto drop = [elsewhere](auto done) {
                if (elsewhere)
                    std::thread([kept = std::move(done)] {}).join();
            };
            error_code error;
            try {
                operation<void(error_code)>(drop, aco::use_task[error]);
                ADD_FAILURE();
            } catch (const system_error &e) {
                EXPECT_EQ(e.code(), net::error::operation_aborted);
            }
        }
        auto context = std::make_unique<net::io_context>();
        auto waits = aco::spawn([&] { net::post(*context, aco::use_task); });
        aco::yield();
        context.reset();
        EXPECT_THROW(waits.join(), system_error);
    });
}

TEST(Asio, InitiationThatThrows)
{
    in_loop([](net::io_context &context) {
        EXPECT_THROW(operation<void()>([](auto) { throw std::logic_error("no"); }, aco::use_task), std::logic_error);
        auto keeps = [&](auto done) {
            net::post(context, std::move(done));
            throw std::logic_error("no");
        };
        EXPECT_THROW(operation<void()>(keeps, aco::use_task), std::logic_error);
    });
}

TEST(Asio, MemoryOnTheStack)
{
    in_loop([](net::io_context &) {
        int local = 0;
        const auto here = reinterpret_cast<std::uintptr_t>(&local);
        operation<void()>(
            [&](auto done) {
                auto allocator = net::get_associated_allocator(done);
                char *on_stack = allocator.allocate(200), *second = allocator.allocate(200);
                EXPECT_LT(here - reinterpret_cast<std::uintptr_t>(on_stack) + 4096, 8192u);
                EXPECT_GT(here - reinterpret_cast<std::uintptr_t>(second) + 4096, 8192u);
                allocator.deallocate(second, 200);
                allocator.deallocate(on_stack, 200);
                char *large = allocator.allocate(1000);
                EXPECT_GT(here - reinterpret_cast<std::uintptr_t>(large) + 4096, 8192u);
                allocator.deallocate(large, 1000);
                done();
            },
            aco::use_task);
    });
}

TEST(Asio, ShareStacks)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    int sum = 0;
    std::vector<net::steady_timer> timers; // they must not move
    for (int i = 1; i <= 3; i++)
        timers.emplace_back(context, std::chrono::microseconds(10 * i));
    for (int i = 1; i <= 3; i++)
        aco::spawn(
            [&, i] {
                timers[static_cast<std::size_t>(i - 1)].async_wait(aco::use_task);
                sum += i;
            },
            aco::options().on(stack))
            .detach();
    loop.run();
    EXPECT_EQ(sum, 6);
    aco_share_stack_destroy(stack);
}

// ---- Cancelling ----

#if ACO__ASIO_CANCELS
void cancelled_reads(net::io_context &context)
{
    connection c(context);
    char got[10];
    error_code error;
    EXPECT_FALSE(aco::try_for(1ms, [&] { c.there.async_read_some(net::buffer(got), aco::use_task); }));
    net::async_write(c.here, net::buffer("abcd", 4), aco::use_task);
    EXPECT_EQ(c.there.async_read_some(net::buffer(got), aco::use_task), 4u); // it is as it was
    net::async_write(c.here, net::buffer("efg", 3), aco::use_task);
    bool is_second_begun = false;
    EXPECT_FALSE(aco::try_for(10ms, [&] {
        const std::size_t n = net::async_read(c.there, net::buffer(got), aco::use_task[error]);
        EXPECT_EQ(n, 3u);
        EXPECT_EQ(error, net::error::operation_aborted);
        operation<void(error_code)>([&](auto) { is_second_begun = true; }, aco::use_task[error]);
    }));
    EXPECT_FALSE(is_second_begun);
    aco::task_group group; // the failure of a member ends the operations of the others
    group.spawn([&] { c.there.async_read_some(net::buffer(got), aco::use_task); });
    group.spawn([&] { net::steady_timer(context, 1h).async_wait(aco::use_task); });
    group.spawn([] { throw std::out_of_range("far"); });
    EXPECT_THROW(group.wait(), std::out_of_range);
}

TEST(Asio, Cancelling)
{
    in_loop(cancelled_reads);
}

TEST(Asio, CancellingInAContextOfAnotherThread)
{
    other_thread other;
    aco::spawn([&] { cancelled_reads(other.context); }).detach();
    aco::run();
}

TEST(Asio, CancellingWhileItCompletes)
{
    other_thread other;
    aco::spawn([&] {
        for (int i = 0; i < 200; i++) {
            net::steady_timer timer(other.context, std::chrono::microseconds(i));
            aco::try_for(std::chrono::microseconds(i), [&] { timer.async_wait(aco::use_task); });
        }
    }).detach();
    aco::run();
}

TEST(Asio, SuccessInAnEndedScopeIsKept)
{
    in_loop([](net::io_context &) {
        aco::scope scope;
        const int got = operation<void(error_code, int)>(
            [&](auto done) {
                auto slot = net::get_associated_cancellation_slot(done);
                EXPECT_TRUE(slot.is_connected());
                auto kept = std::make_shared<decltype(done)>(std::move(done));
                slot.assign([kept](net::cancellation_type type) {
                    EXPECT_EQ(type, net::cancellation_type::terminal);
                    std::move (*kept)(error_code(), 7);
                });
                scope.cancel();
            },
            aco::use_task);
        EXPECT_EQ(got, 7);
    });
}
#endif

// ---- A context that aco_run() waits in ----

TEST(AsioLoop, ThrowsWhatAHandlerThrows)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    bool over = false;
    aco::spawn([&] {
        net::post(context, [] { throw std::out_of_range("far"); });
        net::steady_timer(context, 1ms).async_wait(aco::use_task);
        over = true;
    }).detach();
    EXPECT_THROW(loop.run(), std::out_of_range);
    EXPECT_FALSE(over);
    loop.run();
    EXPECT_TRUE(over);
}

TEST(AsioLoop, NoWorkIsADeadlock)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    bool ends = false;
    aco_t *parked = aco_spawn(
        [](void *p) -> void * {
            aco_park("a friend");
            *static_cast<bool *>(p) = true;
            return nullptr;
        },
        &ends, nullptr);
    EXPECT_THROW(loop.run(), aco::error);
    EXPECT_EQ(errno, EDEADLK);
    aco_unpark(parked);
    loop.run();
    EXPECT_TRUE(ends);
    EXPECT_EQ(aco_join(parked, nullptr), 0);
}

TEST(AsioLoop, SleepsAndHandlersOfItsOwn)
{
    in_loop([](net::io_context &context) {
        int handled = 0;
        for (int i = 0; i < 100; i++)
            net::post(context, [&] { handled++; });
        while (handled < 100)
            aco::sleep_for(10us);
        net::post(context, aco::use_task);
    });
}

// ---- Turns inside handlers: aco_run() has all the same what is its own ----

// Operations of which each completes at once, until the flag is set by somebody who is not to starve.
void busy_until(net::io_context &context, const bool &over)
{
    while (!over)
        net::post(context, aco::use_task);
}

// Waits for an operation whose handler is called by call(handler) in a handler of the context.
template<class Call>
void completes_in(net::io_context &context, Call call)
{
    operation<void()>(
        [&](auto done) {
            auto kept = std::make_shared<decltype(done)>(std::move(done));
            net::post(context, [call, kept] { call([kept] { std::move (*kept)(); }); });
        },
        aco::use_task);
}

TEST(AsioLoopTurns, TheTaskRunsBeforeTheHandlerReturns)
{
    std::string order;
    in_loop([&](net::io_context &context) {
        completes_in(context, [&](auto done) {
            done();
            order += 'h';
        });
        order += 't';
        net::post(context, aco::use_task);
        order += 'T';
    });
    EXPECT_EQ(order, "thT");
}

TEST(AsioLoopTurns, StarveNobody)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    aco_scheduler_t *scheduler = aco_scheduler_open();
    bool is_posted = false, is_time = false, is_handled = false, had_turn = false;
    std::thread other;
    aco::spawn([&] {
        net::post(context, aco::use_task);
        net::post(context, [&] { is_handled = true; });
        busy_until(context, is_handled);
        auto post = [&] { aco_post(scheduler, [](void *p) { *static_cast<bool *>(p) = true; }, &is_posted); };
        other = std::thread(post);
        busy_until(context, is_posted);
        aco::spawn([&] {
            aco::sleep_for(1us);
            is_time = true;
        }).detach();
        busy_until(context, is_time);
        aco::spawn([&] { // it only yields
            while (!had_turn)
                aco::yield();
        }).detach();
        aco::spawn([&] { had_turn = true; }).detach();
        busy_until(context, had_turn);
        EXPECT_FALSE(aco::try_for(1us, [&] { busy_until(context, false); }));
    }).detach();
    loop.run();
    EXPECT_TRUE(is_handled && is_posted && is_time && had_turn);
    other.join();
    EXPECT_EQ(aco_scheduler_close(), 0);
}

TEST(AsioLoopTurns, ATaskAloneMayYieldUntilAHandlerHasRun)
{
    in_loop([](net::io_context &context) {
        bool is_handled = false;
        net::post(context, aco::use_task);
        net::post(context, [&] { is_handled = true; });
        while (!is_handled)
            aco::yield();
    });
}

TEST(AsioLoopTurns, ATaskMayBeginToWaitForAnything)
{
    other_thread other;
    in_loop([&](net::io_context &context) {
        bool is_handled = false;
        net::steady_timer late(context, 1h); // the context always waits for something
        late.async_wait([](error_code) {});
        net::post(context, aco::use_task);
        net::post(other.context, aco::use_task);
        net::post(context, aco::use_task);
        aco::sleep_for(1us);
        net::post(context, [&, task = aco_current_task()] {
            is_handled = true;
            aco_unpark(task);
        });
        aco_park("a handler");
        EXPECT_TRUE(is_handled);
        auto child = aco::spawn([&] { net::post(context, aco::use_task); });
        net::post(context, aco::use_task);
        child.join();
    });
}

// Nobody runs the hook any more that gave the turn, so the task must still leave it.
TEST(AsioLoopTurns, ATaskMayUnsetTheHook)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    aco_scheduler_t *scheduler = aco_scheduler_open();
    bool is_posted = false;
    std::thread other;
    aco::spawn([&] {
        net::steady_timer late(context, 1h); // the context always waits for something
        late.async_wait([](error_code) {});
        net::post(context, aco::use_task);
        EXPECT_EQ(aco_on_idle(nullptr, nullptr), 0);
        auto post = [&] { aco_post(scheduler, [](void *p) { *static_cast<bool *>(p) = true; }, &is_posted); };
        other = std::thread(post);
        while (!is_posted)
            aco::yield();
        aco::sleep_for(1us);
    }).detach();
    loop.run();
    EXPECT_TRUE(is_posted);
    other.join();
    EXPECT_EQ(aco_scheduler_close(), 0);
}

TEST(AsioLoopTurns, ATaskMayRunTheContextItself)
{
    in_loop([](net::io_context &context) {
        bool is_done = false;
        net::post(context, aco::use_task);
        auto friends = aco::spawn([&] {
            net::post(context, aco::use_task);
            is_done = true;
        });
        aco::yield();
        net::post(context, aco::use_task);
        aco::spawn([&] { net::post(context, aco::use_task); }).detach();
        aco::yield();
        context.poll(); // with handlers that complete what other tasks wait for
        friends.join();
        EXPECT_TRUE(is_done);
    });
}

TEST(AsioLoopTurns, TheLastTaskEndsTheRun)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    net::steady_timer late(context, 1h);
    late.async_wait([](error_code) {});
    aco::spawn([&] { net::post(context, aco::use_task); }).detach();
    loop.run();
}

TEST(AsioLoopTurns, ExceptionsThatAHandlerHandlesAreItsOwn)
{
    std::string caught;
    in_loop([&](net::io_context &context) {
        completes_in(context, [&](auto done) {
            try {
                throw std::out_of_range("near");
            } catch (...) {
                done();
                try {
                    throw;
                } catch (const std::out_of_range &e) {
                    caught += e.what();
                }
            }
        });
        EXPECT_FALSE(std::current_exception());
        net::post(context, aco::use_task);
        completes_in(context, [&](auto done) {
            struct at_end {
                decltype(done) f;
                ~at_end() { f(); }
            };
            try {
                at_end last{done};
                throw std::out_of_range("far");
            } catch (const std::out_of_range &e) {
                caught += e.what();
            }
        });
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        net::post(context, aco::use_task);
    });
    EXPECT_EQ(caught, "nearfar");
}

TEST(AsioLoopTurns, AHandlerMayThrowAfterwards)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    int turns = 0;
    aco::spawn([&] {
        completes_in(context, [](auto done) {
            done();
            throw std::out_of_range("far");
        });
        for (; turns < 3; turns++)
            net::post(context, aco::use_task);
    }).detach();
    EXPECT_THROW(loop.run(), std::out_of_range);
    loop.run();
    EXPECT_EQ(turns, 3);
}

TEST(AsioLoopTurns, TheLoopCannotEndInOne)
{
    auto ends_it = [] {
        net::io_context context(1);
        std::optional<aco::asio_loop> loop(std::in_place, context);
        aco::spawn([&] {
            net::post(context, aco::use_task);
            loop.reset();
        }).detach();
        aco::run();
    };
    EXPECT_DEATH(ends_it(), "ends inside aco_run");
}

#ifndef ACO_ASIO_BOOST
TEST(AsioLoopTurns, ATaskMayBeginToWaitForADescriptorOfAcorn)
{
    net::io_context context(1);
    aco::asio_loop loop(context, aco_io_poll_fd());
    int fds[2];
    char letter = 0;
    ASSERT_EQ(pipe(fds), 0);
    ASSERT_EQ(aco_io_adopt(fds[0]), 0);
    aco::spawn([&] {
        aco_file_status_t status;
        net::steady_timer late(context, 1h); // the context always waits for something
        late.async_wait([](error_code) {});
        net::post(context, aco::use_task);
        EXPECT_EQ(aco_file_stat(".", &status), 0);
        for (int i = 0; i < 3; i++) {
            net::post(context, aco::use_task); // it goes on in this handler's turn
            net::steady_timer later(context, 1us);
            later.async_wait([&](error_code) { EXPECT_EQ(write(fds[1], "x", 1), 1); });
            EXPECT_EQ(aco_io_read(fds[0], &letter, 1), 1);
        }
    }).detach();
    loop.run();
    EXPECT_EQ(letter, 'x');
    EXPECT_EQ(aco_io_close(fds[0]), 0);
    close(fds[1]);
}

// In a set of threads handlers give no turns: then each that wakes a task leaves the context.
TEST(AsioLoopTurns, InASetOfThreads)
{
    net::io_context context(1);
    aco::asio_loop loop(context);
    net::steady_timer late(context, 1h); // the context always waits for something
    late.async_wait([](error_code) {});
    auto f = [&] {
        net::post(context, aco::use_task);
        net::post(context, [task = aco_current_task()] { aco_unpark(task); });
        aco_park("a handler");
        bool is_spawned = false;
        net::post(context, [&] { aco::spawn([&] { is_spawned = true; }).detach(); });
        while (!is_spawned)
            net::steady_timer(context, 1us).async_wait(aco::use_task);
    };
    aco::threads::run(1, f);
}

TEST(AsioLoop, BesideDescriptorsOfAcorn)
{
    net::io_context context(1);
    aco::asio_loop loop(context, aco_io_poll_fd());
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ASSERT_EQ(aco_io_adopt(pair[0]), 0);
    net::posix::stream_descriptor asios(context, pair[1]);
    int rounds = 0;
    aco::spawn([&] {
        char letter;
        while (aco_io_read(pair[0], &letter, 1) == 1)
            aco_io_write_all(pair[0], &letter, 1);
    }).detach();
    aco::spawn([&] {
        for (char letter = 'a'; letter <= 'z'; letter++, rounds++) {
            char answer = 0;
            net::async_write(asios, net::buffer(&letter, 1), aco::use_task);
            net::async_read(asios, net::buffer(&answer, 1), aco::use_task);
            EXPECT_EQ(answer, letter);
        }
        asios.close();
    }).detach();
    loop.run();
    EXPECT_EQ(rounds, 26);
    EXPECT_EQ(aco_io_close(pair[0]), 0);
}
#endif

// What becomes of a runner's own handlers that are called after its end. Its place is checked: they must not write.
template<class Runner>
struct place {
    enum { GONE = 0xa5 };
    alignas(Runner) unsigned char bytes[sizeof(Runner)];
    Runner *runner;
    template<class... Args>
    explicit place(Args &&...args)
    {
        begin(std::forward<Args>(args)...);
    }
    template<class... Args>
    void begin(Args &&...args)
    {
        runner = new (bytes) Runner(std::forward<Args>(args)...);
    }
    void end()
    {
        runner->~Runner();
        std::memset(bytes, GONE, sizeof bytes);
    }
    ~place() { EXPECT_EQ(std::count(bytes, bytes + sizeof bytes, GONE), std::ptrdiff_t(sizeof bytes)); }
};

struct ready_pipe { // of which one end is readable, and another's
    int fds[2];
    ready_pipe() { EXPECT_TRUE(pipe(fds) == 0 && write(fds[1], "x", 1) == 1); }
    ~ready_pipe() { EXPECT_TRUE(close(fds[0]) == 0 && close(fds[1]) == 0); }
};

TEST(AsioLoop, EndsWhileItWatchesADescriptor)
{
    ready_pipe events;
    for (bool is_ready : {false, true}) {
        net::io_context context(1);
        place<aco::asio_loop> loop(context, events.fds[is_ready ? 0 : 1]);
        aco::spawn([&] { net::post(context, aco::use_task); }).detach();
        loop.runner->run();
        loop.end();
        context.restart();
        context.run(); // the wait was aborted, or had completed already
    }
}

TEST(AsioLoop, ANewOneAtItsPlaceDoesNotGetItsHandlers)
{
    ready_pipe events;
    net::io_context before(1), context(1);
    place<aco::asio_loop> loop(before, events.fds[1]);
    aco::spawn([&] { net::post(before, aco::use_task); }).detach();
    loop.runner->run();
    loop.end();
    loop.begin(context, events.fds[1]);
    aco::spawn([&] {
        net::post(context, aco::use_task);
        before.restart();
        before.run(); // the first loop's wait was aborted
        net::post(context, aco::use_task);
    }).detach();
    loop.runner->run();
    loop.end();
    context.restart();
    EXPECT_EQ(context.run(), 1u); // the second loop's only wait was aborted
}

TEST(AsioLoop, IsRefusedWithoutATrace)
{
    net::io_context context(1);
    ready_pipe events;
    ASSERT_NE(aco_scheduler_open(), nullptr);
    EXPECT_THROW(aco::asio_loop(context, events.fds[0]), aco::error);
    EXPECT_THROW(aco::asio_guest(context, events.fds[0]), aco::error);
    EXPECT_EQ(aco_scheduler_close(), 0);
    context.run();
    aco::spawn([] { aco::sleep_for(1us); }).detach();
    aco::run();
}

// ---- Tasks inside a context that the program runs ----

TEST(AsioGuest, TasksRunInsideTheContext)
{
    net::io_context context(1);
    aco::asio_guest guest(context);
    aco_scheduler_t *scheduler = aco_scheduler_open();
    bool ends = false, posted = false;
    aco::spawn([&] {
        echoes(context);
        aco::sleep_for(1us);
        std::thread([&] {
            aco_post(scheduler, [](void *p) { *static_cast<bool *>(p) = true; }, &posted);
        }).join();
        while (!posted)
            aco::yield();
        ends = true;
    }).detach();
    context.run();
    EXPECT_TRUE(ends);
    std::thread waker;
    aco::spawn([&] { // only another thread ends this wait
        waker = std::thread([task = aco_current_task()] { aco_unpark(task); });
        aco_park("another thread");
    }).detach();
    guest.soon();
    context.restart();
    context.run();
    waker.join();
    EXPECT_EQ(aco_scheduler_close(), 0);
}

TEST(AsioGuest, EndsBeforeItsHandlersAreCalled)
{
    net::io_context context(1);
    {
        place<aco::asio_guest> never_ran(context);
        never_ran.end();
        context.run();
    }
    ready_pipe events;
    place<aco::asio_guest> guest(context, events.fds[0]);
    aco::spawn([] { aco::sleep_for(1ms); }).detach();
    context.restart();
    context.run_one(); // the guest's step waits for the descriptor, and for the time
    for (std::int64_t next; aco_run_ready(&next) > 0;) // until the guest's time is over
        ;
    net::post(context, [] {});
    context.run_one(); // it finds that both waits have completed, and calls the handler that was posted before
    guest.end();
    context.run();
}

TEST(AsioGuest, ANewOneAtItsPlaceDoesNotGetItsHandlers)
{
    net::io_context before(1), context(1);
    place<aco::asio_guest> guest(before);
    guest.end();
    guest.begin(context);
    bool ran = false;
    aco::spawn([&] { ran = true; }).detach();
    before.run(); // the first guest's step
    EXPECT_FALSE(ran);
    context.run();
    EXPECT_TRUE(ran);
    guest.end();
}

// ---- Handlers as tasks ----

TEST(AsioScheduler, FunctionsAreTasks)
{
    aco::asio_scheduler scheduler;
    const net::any_io_executor executor = scheduler.get_executor();
    EXPECT_EQ(executor, net::any_io_executor(scheduler.get_executor()));
    EXPECT_EQ(&net::query(executor, net::execution::context), &scheduler);
    std::string order;
    bool outside = false;
    aco::spawn([&] {
        net::post(executor, [&] { // from a task
            order += 'b';
            aco::sleep_for(1us);
            order += 'c';
        });
        order += 'a';
    }).detach();
    aco::run();
    EXPECT_EQ(order, "abc");
    net::post(executor, [&] { outside = aco_current_task() != nullptr; }); // from the root context
    aco::run();
    EXPECT_TRUE(outside);
}

TEST(AsioScheduler, FromOtherThreads)
{
    other_thread other; // its handlers run as tasks of this thread
    aco::asio_scheduler scheduler;
    const std::thread::id here = std::this_thread::get_id();
    aco::event all;
    int left = 50;
    aco::spawn([&] {
        for (int i = 0; i < 50; i++)
            net::post(other.context, net::bind_executor(scheduler.get_executor(), [&, big = std::string(40, 'x')] {
                EXPECT_EQ(std::this_thread::get_id(), here);
                aco::yield();
                if (--left == 0)
                    all.set();
            }));
        all.wait();
        net::post(other.context, net::bind_executor(scheduler.get_executor(), aco::use_task));
    }).detach();
    aco::run();
    EXPECT_EQ(left, 0);
}

TEST(AsioScheduler, ObjectsOnItsExecutor)
{
    aco::asio_scheduler scheduler; // a thread of Asio's own waits for the timer
    aco::spawn([&] {
        net::steady_timer timer(scheduler.get_executor(), 1us);
        timer.async_wait(aco::use_task);
        timer.expires_after(1us);
        bool is_task = false;
        aco::event over;
        timer.async_wait([&](error_code) {
            is_task = aco_current_task() != nullptr;
            over.set();
        });
        over.wait();
        EXPECT_TRUE(is_task);
    }).detach();
    aco::run();
}

#ifndef ACO_ASIO_BOOST
TEST(AsioScheduler, ASetIsCancelled) // also a task without a scope, whose operation another thread's context has
{
    net::io_context context;
    auto work = net::make_work_guard(context);
    std::thread runs([&] { context.run(); });
    std::atomic<bool> was_cancelled{false}, begins{false};
    auto f = [&] {
        if (aco::threads::index() == 1) {
            while (!begins)
                aco::yield();
            aco::threads::cancel();
            return;
        }
        net::steady_timer timer(context, 1h);
        begins = true;
        try {
            timer.async_wait(aco::use_task);
        } catch (const aco::cancelled &) {
            was_cancelled = true;
            throw;
        }
    };
    EXPECT_THROW(aco::threads::run(2, f), aco::cancelled);
    EXPECT_TRUE(was_cancelled);
    work.reset();
    context.stop();
    runs.join();
}
#endif

} // namespace
