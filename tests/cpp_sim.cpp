// Promises of <aco/sim.hpp>: callables as scenarios and invariants, exceptions as reasons, options. tests/sim.c has the
// promises of <aco/sim.h>. Compiled as C++17 to C++23.
#include "cpp_task.h"
#include "death.h"
#include "sanitizers.h"

#include "aco/sim.hpp"
#ifdef WITH_IO
#include "aco/file.hpp"

#include <fcntl.h>
#endif

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

namespace {

using testing::internal::CaptureStderr, testing::internal::GetCapturedStderr;

// What happened, without the line on stderr, which must tell the same.
template <class... Args> aco_sim_stats_t quietly(Args &&...args)
{
    CaptureStderr();
    const aco_sim_stats_t stats = aco::simulate(std::forward<Args>(args)...);
    const std::string line = "acorn: simulation: seed " + std::to_string(stats.seed) + ": " + stats.reason + "\n";
    EXPECT_EQ(GetCapturedStderr(), stats.seed ? line : "");
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    EXPECT_FALSE(std::current_exception());
    return stats;
}

const aco::sim_options few = aco::sim_options().with_runs(20); // what passes need not take long

// The reason for which the first run failed, or "".
template <class... Args> std::string reason(Args &&...args)
{
    const aco_sim_stats_t stats = quietly(std::forward<Args>(args)...);
    EXPECT_TRUE(stats.seed == 0 || stats.runs == 1);
    return stats.reason;
}

// ---- Scenarios ----

// Promise: each run calls the scenario as a task, in virtual time, with the next seed.
TEST(Simulate, Runs)
{
    std::vector<std::uint64_t> seeds;
    const aco_sim_stats_t stats = quietly(aco::sim_options().with_runs(3).with_seed(7), [&](aco::sim sim) {
        EXPECT_EQ(aco_current_task() != nullptr, true);
        EXPECT_EQ(aco::sim::current().native_handle(), sim.native_handle());
        const std::int64_t began = aco_now();
        aco::sleep_for(1h);
        EXPECT_EQ(aco_now() - began, 3600 * ACO_SECOND);
        seeds.push_back(sim.seed());
    });
    EXPECT_EQ(seeds, (std::vector<std::uint64_t>{7, 8, 9}));
    EXPECT_EQ(stats.runs, 3u);
    EXPECT_EQ(stats.simulated_ns, 3 * 3600 * ACO_SECOND);
    EXPECT_FALSE(aco::sim::current());
}

// Promise: time points of aco::monotonic_clock are virtual, and exact.
TEST(Simulate, TimePoints)
{
    quietly(aco::sim_options().with_runs(3).with_check(), [] {
        const auto began = aco::monotonic_clock::now();
        aco::sleep_until(began + 1h);
        EXPECT_EQ(aco::monotonic_clock::now() - began, 1h);
        EXPECT_FALSE(aco::try_until(began + 2h, [] { aco::sleep_for(3h); }));
        EXPECT_EQ(aco::monotonic_clock::now() - began, 2h);
        EXPECT_FALSE(aco::try_until(began, [] { aco::sleep_for(3h); }));
        EXPECT_EQ(aco::monotonic_clock::now() - began, 2h);
    });
}

// Promise: links and names are set as in C, and what they refuse is thrown.
TEST(Simulate, Network)
{
    quietly(few, [](aco::sim sim) {
        aco_sim_link_t lossy = {};
        lossy.loss = 0.5;
        sim.link("*", "*", &lossy);
        sim.link("*", "*", nullptr);
        sim.name("db.example", "10.0.0.1");
        sim.name("db.example", nullptr);
        lossy.loss = 2;
        EXPECT_THROW(sim.link("*", "*", &lossy), aco::error);
        EXPECT_THROW(sim.name("db.example", "10"), aco::error);
    });
}

// Promise: a scenario may take nothing, may be movable only, and is never copied or moved.
TEST(Simulate, Callables)
{
    int calls = 0;
    EXPECT_EQ(reason([&] { calls++; }), "");
    EXPECT_EQ(calls, 1000);
    auto counting = [n = std::make_unique<int>(0)]() mutable { return ++*n; };
    EXPECT_EQ(reason(few, counting), "");
    EXPECT_EQ(counting(), 21);
    struct : pinned {
        void operator()(aco::sim) { EXPECT_EQ(here, this); }
    } in_place;
    EXPECT_EQ(reason(few, in_place), "");
    EXPECT_EQ(reason(few, [](auto sim) { sim.random(); }, in_place), "");
}

// Promise: the seed decides what random() returns.
TEST(Simulate, Random)
{
    std::vector<std::uint64_t> drawn;
    auto draw = [&](aco::sim sim) {
        for (int i = 0; i < 20; i++)
            drawn.push_back(sim.random(10));
        drawn.push_back(sim.random());
    };
    const aco::sim_options one = aco::sim_options().with_runs(1).with_seed(5);
    const std::uint64_t hash = quietly(one, draw).hash;
    EXPECT_LT(*std::max_element(drawn.begin(), drawn.end() - 1), 10u);
    const std::vector<std::uint64_t> first = std::exchange(drawn, {});
    EXPECT_EQ(quietly(one, draw).hash, hash);
    EXPECT_EQ(drawn, first);
    drawn.clear();
    EXPECT_NE(quietly(aco::sim_options(one).with_seed(6), draw).hash, hash);
    EXPECT_NE(drawn, first);
}

// Promise: an order that loses an update is found, and its seed repeats it. First in, first out never loses it.
TEST(Simulate, Order)
{
    auto scenario = [](aco::sim sim) {
        int sum = 0;
        auto add = [&] {
            const int before = sum;
            if (before == 0)
                aco::yield();
            sum = before + 1;
        };
        auto first = aco::spawn(add);
        auto second = aco::spawn([&] {
            for (int i = 0; i < 3; i++)
                aco::yield();
            add();
        });
        first.join();
        second.join();
        if (sum != 2)
            sim.fail("an update of " + std::to_string(2) + " is lost");
    };
    const aco_sim_stats_t found = quietly(scenario);
    EXPECT_STREQ(found.reason, "an update of 2 is lost");
    const aco::sim_options again = aco::sim_options().with_runs(1).with_seed(found.seed);
    EXPECT_EQ(quietly(again, scenario).seed, found.seed);
    EXPECT_EQ(reason(aco::sim_options(few).with_schedule(ACO_SIM_FIFO), scenario), "");
}

// ---- Failures ----

// Promise: an exception that leaves the scenario is the reason. The local variables are destroyed.
TEST(Failures, Exceptions)
{
    EXPECT_EQ(reason([] { throw std::runtime_error("money is lost"); }), "money is lost");
    EXPECT_EQ(reason([](aco::sim) { throw 5; }), "an exception that is no std::exception");
    EXPECT_EQ(reason([] { throw aco::cancelled(ETIMEDOUT); }), "the deadline has passed");
    EXPECT_NE(reason([] { aco::run(); }).find("aco_run: "), std::string::npos);
    EXPECT_EQ(reason([] {
                  const pinned local;
                  auto task = aco::spawn([&]() -> std::string {
                      const pinned other;
                      aco::sleep_for(1s);
                      throw std::runtime_error("of a task");
                  });
                  task.join();
              }),
              "of a task");
    EXPECT_EQ(reason([] {
                  const pinned local;
                  aco::task_group group;
                  group.spawn([] { aco::sleep_for(1h); });
                  throw std::runtime_error("ends the group");
              }),
              "ends the group");
    EXPECT_EQ(pinned::alive, 0);
}

// Promise: the first reason counts. A run that fails inside of a handler leaves no exception behind.
TEST(Failures, First)
{
    EXPECT_EQ(reason([](aco::sim sim) {
                  sim.fail("first");
                  throw std::runtime_error("second");
              }),
              "first");
    EXPECT_EQ(reason([](aco::sim sim) {
                  try {
                      throw 5;
                  } catch (int) {
                      sim.fail("in a handler");
                      aco::yield();
                  }
              }),
              "in a handler");
    EXPECT_EQ(reason(few, [] {}), "");
}

// Promise: invariants are checked whenever no task can run, and at the end; their exceptions are reasons, too.
TEST(Failures, Invariants)
{
    int state = 0, checks = 0;
    auto scenario = [&](aco::sim sim) {
        state = 1;
        aco::yield();
        state = 2;
        aco::sleep_for((1 + sim.random(9)) * 1s);
        state = 3;
    };
    EXPECT_EQ(quietly(aco::sim_options().with_runs(2), scenario, [&](aco::sim sim) {
                  checks++;
                  if (state != 2 && state != 3)
                      sim.fail("it is checked between turns");
              }).seed, 0u);
    EXPECT_EQ(checks, 4);
    EXPECT_EQ(reason(aco::sim_options(), scenario, [&] {
                  if (state == 2)
                      throw std::runtime_error("the state is two");
              }),
              "the state is two");
    EXPECT_EQ(state, 2);
}

#ifdef WITH_IO
// Promise: files are on a disk of the run. A crash loses what is not durable, faults have the chances that are set.
TEST(Disk, Crash)
{
    int lost = 0;
    EXPECT_EQ(reason([&](aco::sim sim) {
                  aco::directory::make("d");
                  aco::file kept("kept", O_RDWR | O_CREAT), other("d/other", O_WRONLY | O_CREAT);
                  kept.write("kept");
                  kept.sync();
                  aco::file("/", O_RDONLY | O_DIRECTORY).sync();
                  other.write("lost");
                  sim.crash_disk();
                  EXPECT_EQ(thrown_by([&] { kept.sync(); }), "error " + std::to_string(EIO));
                  EXPECT_EQ(aco::file::stat_path("kept").size, 4u);
                  lost += thrown_by([] { aco::file::stat_path("d/other"); }) != "";
              }),
              "");
    EXPECT_GT(lost, 100);
    EXPECT_LT(lost, 900);
    aco_sim_disk_t bad = {};
    bad.write_errors = 1;
    EXPECT_EQ(reason(few, [&](aco::sim sim) {
                  aco::file file("file", O_WRONLY | O_CREAT);
                  sim.disk(bad);
                  EXPECT_EQ(thrown_by([&] { file.write("x"); }), "error " + std::to_string(EIO));
                  sim.disk();
                  file.write("x");
                  aco_sim_disk_t wrong = {};
                  wrong.sector = 1;
                  EXPECT_EQ(thrown_by([&] { sim.disk(wrong); }), "error " + std::to_string(EINVAL));
              }),
              "");
}
#endif

// ---- Options and errors ----

// Promise: the setters set what the C options document.
TEST(Options, Setters)
{
    const aco::sim_options o = aco::sim_options().with_schedule(ACO_SIM_PCT).with_changes(5).with_check()
                                   .with_max_turns(9).with_turn_time(1us);
    EXPECT_EQ(o.schedule, ACO_SIM_PCT);
    EXPECT_EQ(o.changes, 5);
    EXPECT_EQ(o.check, 1);
    EXPECT_EQ(o.turn_ns, 1000);
    auto endless = [] {
        for (;;)
            aco::yield();
    };
    EXPECT_EQ(reason(o, endless), "it has not ended after 9 turns");
    int calls = 0;
    EXPECT_EQ(reason(o, [&](aco::sim sim) {
                  if (++calls == 2)
                      sim.random();
              }).substr(0, 24), "its repetition differs: ");
}

// Promise: what the C call refuses throws an error. So do invariants of two kinds.
TEST(Options, Errors)
{
    auto error_of = [](const aco::sim_options &how) {
        return thrown_by([&] { static_cast<void>(aco::simulate(how, [] {})); });
    };
    const std::string invalid = "error " + std::to_string(EINVAL);
    EXPECT_EQ(error_of(aco::sim_options().with_runs(0)), invalid);
    EXPECT_EQ(error_of(aco::sim_options().with_changes(65)), invalid);
    EXPECT_EQ(error_of(aco::sim_options().with_turn_time(2s)), invalid);
    aco::sim_options two;
    two.invariants = [](aco_sim_t *, void *) {};
    EXPECT_EQ(error_of(two), invalid);
    EXPECT_STREQ(aco_error_message(), "aco::simulate: the options have invariants");
    in_task([&] { EXPECT_EQ(error_of({}), "error " + std::to_string(EPERM)); });
    EXPECT_EQ(error_of(few), "");
}

// Promise: a program's main function takes options from the command line, and returns the exit status.
TEST(Options, Main)
{
    char program[] = "sim", runs[] = "--runs", ten[] = "10";
    char *argv[] = {program, runs, ten, nullptr};
    int calls = 0, checks = 0;
    testing::internal::CaptureStdout();
    EXPECT_EQ(aco::sim_main(3, argv, [&] { calls++; }, [&] { checks++; }), 0);
    EXPECT_EQ(calls, 10);
    EXPECT_EQ(checks, 10);
    CaptureStderr();
    EXPECT_EQ(aco::sim_main(3, argv, [](aco::sim sim) { sim.fail("always"); }), 1);
    EXPECT_EQ(GetCapturedStderr(), "acorn: simulation: seed 1: always\n"
                                    "its last events, 1 of 1, with seconds since its begin:\n"
                                    "      0.000000000  task 1: the run fails: always\n"
                                    "repeat it with: sim --seed 1\n");
    EXPECT_EQ(testing::internal::GetCapturedStdout().substr(0, 27), "10 runs, seeds 1 to 10: 10 ");
}

// Promise: a shorter run of a failing seed is written to a file, traced, and repeated.
#if !UNDER_TSAN
TEST(Options, Shrink)
{
    const std::string path = "/tmp/acorn-cpp-sim-" + std::to_string(getpid()), trace = path + ".json";
    auto scenario = [](aco::sim sim) {
        for (int i = 0; i < 10; i++)
            aco::sleep_for(sim.random(1000) * 1us);
        if (sim.random(10) >= 3)
            sim.fail("three is enough");
    };
    CaptureStderr();
    const aco::sim_options shrink =
        aco::sim_options().with_shrink(path.c_str()).with_attempts(200).with_trace(trace.c_str()).with_events(3);
    EXPECT_STREQ(aco::simulate(shrink, scenario).reason, "three is enough");
    const std::string told = GetCapturedStderr();
    EXPECT_NE(told.find("choices that are not the simplest: 1 of "), std::string::npos) << told;
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_NE(text.str().find("\nscenario: 0x10 3\n"), std::string::npos) << text.str();
    EXPECT_TRUE(std::ifstream(trace).good());
    CaptureStderr();
    EXPECT_STREQ(aco::simulate(aco::sim_options().with_replay(path.c_str()), scenario).reason, "three is enough");
    GetCapturedStderr();
    std::remove(path.c_str());
    std::remove(trace.c_str());
}
#endif

// Promise: a history throws what is out of order.
TEST(History, Steps)
{
    EXPECT_EQ(reason(few, [](aco::sim sim) {
                  const aco::sim_history history = sim.history("/dev/null");
                  for (std::int64_t process = 0; process < 3; process++)
                      history.invoke(process, "write", "x", "1");
                  history.ok(0, "write", "x", "1");
                  history.fail(1, "write");
                  history.info(2, "write");
                  EXPECT_THROW(history.ok(0, "write"), aco::error);
                  EXPECT_THROW(static_cast<void>(sim.history("/nowhere/at/all")), aco::error);
              }),
              "");
}

// ---- Nodes ----

// Promise: a node runs a callable, and runs it again; the run keeps a copy of it until it has ended.
TEST(Nodes, Live)
{
    const auto alive = std::make_shared<int>(0);
    const aco_sim_stats_t stats = quietly(aco::sim_options().with_runs(5).with_check(), [&](aco::sim sim) {
        int starts = 0, ticks = 0, calls = 0, mains = 0;
        const aco::sim_node program = sim.node_main("main", "10.0.0.2", [&mains, alive] { mains++; });
        const aco::sim_node node = sim.node("a", "10.0.0.1", [&starts, &ticks, alive] {
            for (starts++;; ticks++)
                aco::sleep_for(1s);
        });
        sim.at(30min, [&calls] { calls++; });
        aco::sleep_for(10500ms);
        EXPECT_STREQ(node.name(), "a");
        EXPECT_TRUE(node && node.is_up());
        node.suspend();
        aco::sleep_for(10s);
        EXPECT_EQ(ticks, 10);
        node.resume();
        node.crash(ACO_SIM_CRASH_SILENT);
        EXPECT_FALSE(node.is_up());
        aco::sleep_for(10s);
        node.restart();
        program.restart();
        node.clock(1h);
        sim.partition("*", "a");
        sim.partition("*", "*", false);
        sim.nemesis(ACO_SIM_FAULT_CLOCK);
        sim.nemesis(0);
        EXPECT_EQ(sim.wall_time(), 1000000000s + 30500ms);
        aco::sleep_for(30min);
        EXPECT_EQ(starts, 2);
        EXPECT_EQ(mains, 2);
        EXPECT_EQ(calls, 1);
        EXPECT_THROW(sim.partition("a", "b"), aco::error);
        EXPECT_THROW(static_cast<void>(sim.node("a", "10.0.0.1", [] {})), aco::error);
    });
    EXPECT_EQ(stats.seed, 0u) << stats.reason;
    EXPECT_EQ(alive.use_count(), 1);
}

// Promise: an exception that leaves a node's function makes the run fail.
TEST(Nodes, Throw)
{
    EXPECT_EQ(reason([](aco::sim sim) {
                  static_cast<void>(sim.node("a", "10.0.0.1", [] { throw std::runtime_error("a node is lost"); }));
                  aco::sleep_for(1s);
              }),
              "a node is lost");
}

// Promise: when an exception that nobody joins ends the process, the seed is printed.
TEST(DeathTest, NobodyJoins)
{
    EXPECT_DEATH(static_cast<void>(aco::simulate(aco::sim_options().with_seed(3), [] {
                     aco::spawn([] { throw std::runtime_error("lost"); }).detach();
                     aco::sleep_for(1s);
                 })),
                 "std::runtime_error: lost\n(.*\n)*acorn: simulation: seed 3: the process dies by ");
}

// ---- ACO_MAYBE ----

// Promise: in a simulation the rare way is taken with its chance, outside never.
TEST(Maybe, Chances)
{
    int seldom = 0;
    EXPECT_FALSE(ACO_MAYBE(1));
    EXPECT_EQ(reason([&](aco::sim sim) {
                  seldom += ACO_MAYBE(0.1);
                  if (ACO_MAYBE(0) || ACO_MAYBE(-1) || !ACO_MAYBE(1) || !ACO_MAYBE(2))
                      sim.fail("a chance is wrong");
              }),
              "");
    EXPECT_GT(seldom, 50);
    EXPECT_LT(seldom, 200);
    EXPECT_FALSE(ACO_MAYBE(1));
}

} // namespace
