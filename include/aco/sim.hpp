/* Simulations for C++17 and later, on top of <aco/sim.h>, which says what a run is. Header only; link acorn_sim.
 * docs/simulation.md is the guide.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   TEST(Account, LosesNoMoney) // of Google Test
 *   {
 *       const aco_sim_stats_t stats = aco::simulate([](aco::sim sim) {
 *           account a;
 *           aco::task<> other = aco::spawn([&] { a.deposit(1); });
 *           aco::sleep_for(sim.random(100) * 1ms);
 *           a.deposit(1);
 *           other.join();
 *           if (a.balance() != 2)
 *               sim.fail("money is lost");
 *       });
 *       EXPECT_EQ(stats.seed, 0u) << stats.reason;
 *   }
 *
 * A scenario and a check of invariants are callables that take an aco::sim or nothing. All runs call the same callable,
 * so what it has captured keeps its value from run to run.
 *
 * Exceptions. An exception that leaves a scenario or a check of invariants makes the run fail; its what() is the
 * reason. An exception that leaves another task goes to who joins it, as <aco/task.hpp> says. If nobody joins the task,
 * the process terminates, and the seed of the run is printed.
 *
 * Time points. The clocks of <chrono> are real, so a wait until one of their time points takes a slightly different
 * virtual time in each run. Use aco::monotonic_clock, or a duration.
 *
 * Destructors. The tasks that a failed run leaves never run again. So their local variables are not destroyed. */
#ifndef ACO_SIM_HPP
#define ACO_SIM_HPP

#include "sim.h"
#include "task.hpp"

#include <memory>
#include <string>

namespace aco {
inline namespace ACO__CPP_KIND {

/* A history of operations: aco_sim_history_add(), which documents the arguments. Valid until the run ends. Each call
 * throws aco::error if it fails. */
class sim_history {
public:
    explicit sim_history(aco_sim_history_t *history) noexcept : history_(history) {}
    void invoke(std::int64_t process, const char *f, const char *key = nullptr, const char *value = nullptr) const
    {
        add(ACO_SIM_INVOKE, process, f, key, value);
    }
    void ok(std::int64_t process, const char *f, const char *key = nullptr, const char *value = nullptr) const
    {
        add(ACO_SIM_OK, process, f, key, value);
    }
    void fail(std::int64_t process, const char *f, const char *key = nullptr, const char *value = nullptr) const
    {
        add(ACO_SIM_FAIL, process, f, key, value);
    }
    void info(std::int64_t process, const char *f, const char *key = nullptr, const char *value = nullptr) const
    {
        add(ACO_SIM_INFO, process, f, key, value);
    }
    aco_sim_history_t *native_handle() const noexcept { return history_; }

private:
    void add(aco_sim_step_t step, std::int64_t process, const char *f, const char *key, const char *value) const
    {
        if (aco_sim_history_add(history_, step, process, f, key, value) != 0)
            detail::refused();
    }
    aco_sim_history_t *history_;
};

/* Refers to a node, while its run lasts. Its calls are those of <aco/sim.h> with the same names; they throw aco::error.
 * */
class sim_node {
public:
    explicit sim_node(aco_sim_node_t *node = nullptr) noexcept : node_(node) {}
    explicit operator bool() const noexcept { return node_ != nullptr; }

    const char *name() const noexcept { return aco_sim_node_name(node_); }
    bool is_up() const noexcept { return aco_sim_node_is_up(node_) != 0; }
    void crash(aco_sim_crash_t how = ACO_SIM_CRASH_ANY) const { check(aco_sim_crash(node_, how)); }
    void restart() const { check(aco_sim_restart(node_)); }
    void suspend() const { check(aco_sim_suspend(node_)); }
    void resume() const { check(aco_sim_resume(node_)); }
    void signal(int number) const { check(aco_sim_signal(node_, number)); }
    /* Its wall clock is ahead by `offset`, and drifts: aco_sim_clock(). */
    template<class Rep, class Period>
    void clock(const std::chrono::duration<Rep, Period> &offset, int drift_ppm = 0) const
    {
        check(aco_sim_clock(node_, detail::nanoseconds_in(offset), drift_ppm));
    }
    aco_sim_node_t *native_handle() const noexcept { return node_; }

private:
    static void check(int done)
    {
        if (done != 0)
            detail::refused();
    }

    aco_sim_node_t *node_;
};

/* Refers to a run, while that lasts. */
class sim {
public:
    explicit sim(aco_sim_t *run) noexcept : run_(run) {}
    /* The run of the calling thread, or an empty reference. */
    static sim current() noexcept { return sim(aco_sim_current()); }
    explicit operator bool() const noexcept { return run_ != nullptr; }

    /* Makes the run fail: aco_sim_fail(). It returns; the run ends when the calling task next yields, waits or ends. */
    void fail(const char *reason) const noexcept { (void)aco_sim_fail(run_, reason); }
    void fail(const std::string &reason) const noexcept { fail(reason.c_str()); }
    /* Returns a random number below `limit`, or of 64 bits if `limit` is 0, which the seed decides. */
    std::uint64_t random(std::uint64_t limit = 0) const noexcept { return aco_sim_random(run_, limit); }
    std::uint64_t seed() const noexcept { return aco_sim_seed(run_); }
    /* Sets how the network behaves from now on: aco_sim_link(). NULL: as at first. */
    void link(const char *from, const char *to, const aco_sim_link_t *how) const
    {
        if (aco_sim_link(run_, from, to, how) != 0)
            detail::refused();
    }
    /* Sets the addresses of a host, with commas between them: aco_sim_name(). NULL: the name is unknown. */
    void name(const std::string &host, const char *addresses) const
    {
        if (aco_sim_name(run_, host.c_str(), addresses) != 0)
            detail::refused();
    }
    /* Sets how the disk behaves from now on: aco_sim_disk(). Without an argument: the default. */
    void disk(const aco_sim_disk_t &how = aco_sim_disk_t()) const
    {
        disk("*", how);
    }
    /* The disk of the node with this name, of "scenario", or of all ("*"). */
    void disk(const char *node, const aco_sim_disk_t &how = aco_sim_disk_t()) const
    {
        if (aco_sim_disk(run_, node, &how) != 0)
            detail::refused();
    }
    /* The disk's machine loses its power and comes back: aco_sim_disk_crash(). */
    void crash_disk() const
    {
        if (aco_sim_disk_crash(run_) != 0)
            detail::refused();
    }
    /* Begins a history in this file: aco_sim_history(). Throws aco::error. */
    sim_history history(const char *path) const
    {
        aco_sim_history_t *begun = aco_sim_history(run_, path);
        if (!begun)
            detail::refused();
        return sim_history(begun);
    }
    /* Makes a node that runs f(), and runs it again when the node starts again: aco_sim_node(). It keeps a copy of `f`
     * until the run has ended. An exception that leaves it makes the run fail. Throws aco::error. */
    template<class F>
    sim_node node(const char *name, const char *addresses, F &&f) const
    {
        return make_node(aco_sim_node, name, addresses, std::forward<F>(f));
    }
    /* The same, but f() is called as a program's main(), on a thread of the node's own: aco_sim_node_main(). */
    template<class F>
    sim_node node_main(const char *name, const char *addresses, F &&f) const
    {
        return make_node(aco_sim_node_main, name, addresses, std::forward<F>(f));
    }
    /* Calls f() `time` after the run's begin, as a task of the scenario: aco_sim_at(). It keeps a copy, as above. */
    template<class Rep, class Period, class F>
    void at(const std::chrono::duration<Rep, Period> &time, F &&f) const;
    /* Loses what is sent from one node to the other: aco_sim_partition(). */
    void partition(const char *from, const char *to, bool on = true) const
    {
        if (aco_sim_partition(run_, from, to, on) != 0)
            detail::refused();
    }
    /* Lets a nemesis cause faults of these kinds; 0: none any more: aco_sim_nemesis(). */
    void nemesis(unsigned faults = ACO_SIM_FAULT_ALL) const
    {
        if (aco_sim_nemesis(run_, faults) != 0)
            detail::refused();
    }
    /* The wall time of the calling task's node, since 1970. */
    std::chrono::nanoseconds wall_time() const noexcept { return std::chrono::nanoseconds(aco_sim_wall_time(run_)); }
    aco_sim_t *native_handle() const noexcept { return run_; }

private:
    template<class F>
    sim_node make_node(decltype(aco_sim_node) *make, const char *name, const char *addresses, F &&f) const;

    aco_sim_t *run_;
};

/* How to simulate: aco_sim_options_t, which documents the fields, with setters. `invariants` must stay NULL, since
 * simulate() takes a callable. */
struct sim_options : aco_sim_options_t {
    std::uint64_t runs = 1000; /* each with the next seed */

    sim_options() noexcept : aco_sim_options_t() {}
    sim_options &with_runs(std::uint64_t n) noexcept { return runs = n, *this; }
    sim_options &with_seed(std::uint64_t first) noexcept { return seed = first, *this; }
    sim_options &with_schedule(aco_sim_schedule_t which) noexcept { return schedule = which, *this; }
    sim_options &with_changes(int most) noexcept { return changes = most, *this; }
    sim_options &with_check() noexcept { return check = 1, *this; }
    sim_options &with_events(int last) noexcept { return events = last, *this; }
    sim_options &with_shrink(const char *file) noexcept { return shrink = file, *this; }
    sim_options &with_attempts(int most) noexcept { return attempts = most, *this; }
    sim_options &with_trace(const char *file) noexcept { return trace = file, *this; }
    sim_options &with_replay(const char *file) noexcept { return replay = file, *this; }
    sim_options &with_max_turns(std::uint64_t n) noexcept { return max_turns = n, *this; }
    /* Each turn takes a random time up to this. */
    template<class Rep, class Period>
    sim_options &with_turn_time(const std::chrono::duration<Rep, Period> &most) noexcept
    {
        return turn_ns = detail::nanoseconds_in(most), *this;
    }
};

namespace detail {

/* The run fails by an exception. */
ACO__COLD inline void sim_failed(aco_sim_t *run, std::exception_ptr by) noexcept
{
    try {
        std::rethrow_exception(std::move(by));
    } catch (const std::exception &e) {
        (void)aco_sim_fail(run, e.what());
    } catch (const cancelled &c) {
        (void)aco_sim_fail(run, c.what());
    } catch (...) {
        (void)aco_sim_fail(run, "an exception that is no std::exception");
    }
}

template<class F>
void call_simulated(F &f, aco_sim_t *run)
{
    static_assert(std::is_invocable_v<F &, sim> || std::is_invocable_v<F &>,
                  "the callable of a simulation is called as f(sim) or f()");
    try {
        if constexpr (std::is_invocable_v<F &, sim>)
            static_cast<void>(f(sim(run)));
        else
            static_cast<void>(f());
    } catch (...) {
        sim_failed(run, caught());
    }
}

/* A copy of a callable, which the run keeps. */
template<class F>
struct sim_kept {
    F f;

    /* Its owner is the run from now on. */
    static sim_kept *make(aco_sim_t *run, F &&f)
    {
        auto kept = std::make_unique<sim_kept>(sim_kept{std::move(f)});
        if (aco__sim_at_end(run, [](void *all) { delete static_cast<sim_kept *>(all); }, kept.get()) != 0)
            refused();
        return kept.release();
    }
    static void *run(void *kept)
    {
        call_simulated(static_cast<sim_kept *>(kept)->f, aco_sim_current());
        return nullptr;
    }
    static void call(aco_sim_t *run, void *kept) { call_simulated(static_cast<sim_kept *>(kept)->f, run); }
};

/* The two callables as what the C calls take. */
template<class Scenario, class Invariants>
struct simulated {
    Scenario &scenario;
    Invariants &invariants;

    static void run(aco_sim_t *run, void *both) { call_simulated(static_cast<simulated *>(both)->scenario, run); }
    static void check(aco_sim_t *run, void *both) { call_simulated(static_cast<simulated *>(both)->invariants, run); }
};

struct no_invariants {
    void operator()() const noexcept {}
};

} // namespace detail

template<class F>
sim_node sim::make_node(decltype(aco_sim_node) *make, const char *name, const char *addresses, F &&f) const
{
    using kept_t = detail::sim_kept<std::decay_t<F>>;
    kept_t *kept = run_ ? kept_t::make(run_, std::decay_t<F>(std::forward<F>(f))) : nullptr;
    aco_sim_node_t *made = make(run_, name, addresses, kept_t::run, kept);
    if (made == nullptr)
        detail::refused();
    return sim_node(made);
}

template<class Rep, class Period, class F>
void sim::at(const std::chrono::duration<Rep, Period> &time, F &&f) const
{
    using kept_t = detail::sim_kept<std::decay_t<F>>;
    kept_t *kept = run_ ? kept_t::make(run_, std::decay_t<F>(std::forward<F>(f))) : nullptr;
    if (aco_sim_at(run_, detail::nanoseconds_in(time), kept_t::call, kept) != 0)
        detail::refused();
}

/* Runs the scenario `how.runs` times by aco_sim_run(), until one run fails. Calls `invariants` whenever no task can
 * run, and at the end of each run; it must not wait. Returns what happened: if a run has failed, `seed` is its seed and
 * not 0, and `reason` tells why. Throws aco::error as aco_sim_run() fails otherwise. */
template<class Scenario, class Invariants = detail::no_invariants>
[[nodiscard]] aco_sim_stats_t simulate(const sim_options &how, Scenario &&scenario,
                                       Invariants &&invariants = Invariants())
{
    using both_t = detail::simulated<std::remove_reference_t<Scenario>, std::remove_reference_t<Invariants>>;
    both_t both{scenario, invariants};
    aco_sim_options_t options = how;
    aco_sim_stats_t stats;
    if (options.invariants)
        detail::refused(EINVAL, "aco::simulate", nullptr, "the options have invariants");
    options.invariants = both_t::check;
    if (aco_sim_run(both_t::run, &both, how.runs, &stats, &options) != 0 && stats.seed == 0)
        detail::refused();
    return stats;
}
template<class Scenario>
[[nodiscard]] aco_sim_stats_t simulate(Scenario &&scenario)
{
    return simulate(sim_options(), std::forward<Scenario>(scenario));
}

/* The same for a program's main(), with options from the command line: aco_sim_main(). Returns the exit status. */
template<class Scenario, class Invariants = detail::no_invariants>
int sim_main(int argc, char **argv, Scenario &&scenario, Invariants &&invariants = Invariants())
{
    using both_t = detail::simulated<std::remove_reference_t<Scenario>, std::remove_reference_t<Invariants>>;
    both_t both{scenario, invariants};
    return aco_sim_main(argc, argv, both_t::run, both_t::check, &both);
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
