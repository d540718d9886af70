/* Every core, and objects between threads, for C++17 and later, on top of <aco/threads.h> and <aco/mt.h>. Header only;
 * link acorn_threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   std::size_t count(const tree &t)
 *   {
 *       std::atomic<std::size_t> n{1};
 *       aco::mt::task_group group;
 *       for (const tree &child : t.children)
 *           group.submit([&] { n += count(child); }); // on whichever thread is idle first
 *       group.wait();                                 // throws what the first failing member threw
 *       return n;
 *   }
 *   ...
 *   aco::threads::run(0, [&] { std::cout << count(root); }, ACO_THREADS_FIRST_ONLY);
 *
 * The C headers say what all of this does; <aco/task.hpp> says what C++ adds: failures, cancelling, callables. A type
 * of namespace aco::mt has the name and the members of the type for one thread, as far as both exist. Tasks of any
 * thread, and threads in their root context, may use such an object and wait for it. aco::select() takes channels of
 * both kinds.
 *
 * A member, or a part of a loop, may run on another thread than the caller. So data that several callables use must be
 * safe to use on several threads at once. An exception that leaves a callable is thrown again on the thread of the call
 * or group. */
#ifndef ACO_THREADS_HPP
#define ACO_THREADS_HPP

#include "mt.h"
#include "task.hpp"
#include "threads.h"

#include <atomic>
#include <mutex>

namespace aco {
inline namespace ACO__CPP_KIND {

namespace detail {

/* The exception of several threads that came first. */
class first_exception {
public:
    void keep(std::exception_ptr error) noexcept
    {
        if (!is_taken_.exchange(true))
            error_ = std::move(error);
    }
    void rethrow() /* when the others have ended */
    {
        if (error_)
            std::rethrow_exception(std::exchange(error_, nullptr));
    }

private:
    std::atomic<bool> is_taken_{false};
    std::exception_ptr error_;
};

/* A callable that several threads call, and how the calls ended. */
template<class F>
struct called_by_all {
    F &f;
    first_exception first;

    /* Returns 0; on error -1 with errno. */
    template<class... Args>
    int call(Args... args)
    {
        int error = EINVAL;
        try {
            static_cast<void>(f(args...));
            return 0;
        } catch (const cancelled &c) {
            error = c.error();
        } catch (...) {
            first.keep(caught());
        }
        errno = error;
        return -1;
    }
    void end(int result)
    {
        first.rethrow();
        check(result);
    }
};

} // namespace detail

/* ---- Sets of threads --------------------------------------------------------------------------------------------- */

namespace threads {

/* Runs f() as a task on each of `n` threads, or, with ACO_THREADS_FIRST_ONLY, on the first, by aco_threads_run() with
 * these `flags` and `drain`. Throws what the first f() that failed threw; aco::cancelled if a cancelling ended one;
 * aco::error. */
template<class F, class Rep = std::int64_t, class Period = std::nano>
void run(int n, F &&f, unsigned flags = 0,
         const std::chrono::duration<Rep, Period> &drain = std::chrono::duration<Rep, Period>::zero())
{
    static_assert(std::is_invocable_v<F &>, "aco::threads::run: the callable is called as f()");
    using all = detail::called_by_all<std::remove_reference_t<F>>;
    all calls{f, {}};
    aco_threads_options_t options = {};
    options.flags = flags;
    options.drain_ns = detail::nanoseconds_in(drain);
    calls.end(aco_threads_run(
        n, [](void *arg) { return static_cast<all *>(arg)->call() == 0 ? nullptr : ACO_ERROR; }, &calls, &options));
}

inline int usable() { return aco_threads_usable(); }
inline int index() { return aco_threads_index(); }
inline aco_threads_t *current() noexcept { return aco_threads_current(); } /* nullptr: the thread is in no set */

/* The statistics of the set. Any thread. Throws aco::error (EINVAL) if `set` is nullptr. */
inline aco_threads_stats_t stats(const aco_threads_t *set = current())
{
    aco_threads_stats_t stats;
    detail::check(aco_threads_stats(set, &stats));
    return stats;
}

/* Stop or cancel the set: aco_threads_stop(), aco_threads_cancel(). Any thread. Throw aco::error (EINVAL) if `set` is
 * nullptr. */
inline void stop(aco_threads_t *set = current()) { detail::check(aco_threads_stop(set)); }
inline void cancel(aco_threads_t *set = current()) { detail::check(aco_threads_cancel(set)); }

/* An aco::scope that also ends when the set of its thread is stopped: aco_stop_t. The constructors throw aco::error
 * with EPERM outside tasks of a set. */
class stop_scope {
public:
    explicit stop_scope(const char *location = ACO__CALLER) : stop_scope(ACO_FOREVER, location) {}
    template<class Rep, class Period>
    explicit stop_scope(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
        : stop_scope(detail::deadline_in(limit), location) {}
    template<class Clock, class Duration>
    explicit stop_scope(const std::chrono::time_point<Clock, Duration> &when, const char *location = ACO__CALLER)
        : stop_scope(detail::deadline_at(when), location) {}
    stop_scope(const stop_scope &) = delete;
    stop_scope &operator=(const stop_scope &) = delete;
    ~stop_scope() { detail::must(aco_stop_end(&stop_)); }

    void cancel() { detail::check(aco_scope_cancel(&stop_.scope)); }
    int error() const noexcept { return stop_.scope.error; } /* why it ended early, like scope::error() */
    bool ended() const noexcept { return aco_scope_ended_by(&stop_.scope) == &stop_.scope; }
    aco_stop_t *native_handle() noexcept { return &stop_; }

private:
    stop_scope(std::int64_t deadline, const char *location)
    {
        if (aco_unlikely(aco_stop_begin_at(&stop_, deadline, location) != 0))
            detail::refused();
    }
    aco_stop_t stop_;
};

/* Calls f() in a stop_scope. Returns false if f() was left because the set was stopped. */
template<class F>
bool try_until_stopped(F &&f, const char *location = ACO__CALLER)
{
    return detail::try_within(stop_scope(location), std::forward<F>(f));
}

} // namespace threads

/* Calls f(i) for each i in [begin, end), or f(from, to) for parts that cover [begin, end), on all threads of the
 * calling task's set: aco_parallel_for(). After an exception parts that have not begun are left out; the exception is
 * thrown when the others have ended. */
template<class F>
void parallel_for(std::size_t begin, std::size_t end, F &&f, std::size_t grain = 0)
{
    constexpr bool takes_parts = std::is_invocable_v<F &, std::size_t, std::size_t>;
    static_assert(takes_parts || std::is_invocable_v<F &, std::size_t>,
                  "aco::parallel_for: the callable is called as f(index) or f(from, to)");
    auto part = [&f](std::size_t from, std::size_t to) {
        if constexpr (takes_parts)
            f(from, to);
        else
            for (; from < to; from++)
                f(from);
    };
    using all = detail::called_by_all<decltype(part)>;
    all calls{part, {}};
    calls.end(aco_parallel_for(
        begin, end, grain,
        [](std::size_t from, std::size_t to, void *arg) { return static_cast<all *>(arg)->call(from, to); }, &calls));
}

namespace detail {

/* The waits of an object that has wait_until_(). */
template<class Object>
class timed_wait {
public:
    void wait(const char *location = ACO__CALLER)
    {
        check(static_cast<Object *>(this)->wait_until_(ACO_FOREVER, location));
    }
    template<class Rep, class Period>
    bool wait_for(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
    {
        return in_time(static_cast<Object *>(this)->wait_until_(deadline_in(limit), location));
    }
    template<class Clock, class Duration>
    bool wait_until(const std::chrono::time_point<Clock, Duration> &when, const char *location = ACO__CALLER)
    {
        return in_time(static_cast<Object *>(this)->wait_until_(deadline_at(when), location));
    }
};

} // namespace detail

namespace mt {

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

/* Which thread runs a member; by default the first that is idle: aco_submit_options_t. submit() sets `result`. */
struct submit_options : aco_submit_options_t {
    submit_options() noexcept : aco_submit_options_t() {}
    submit_options &to(int number) noexcept { return where = ACO_SUBMIT_TO, thread = number, *this; }
    submit_options &evenly() noexcept { return where = ACO_SUBMIT_EVENLY, *this; }
};

/* A group with members on all threads of a set. It belongs to a task of the set. It is a local variable, and a scope
 * from construction to wait(). It fails and ends like aco::task_group. Each member is allocated. A function that could
 * not be started (aco/threads.h, Groups and Ends) is destroyed, by any thread; then wait() throws aco::error. */
class task_group : aco_mt_group_t {
public:
    /* Throws aco::error, with EPERM outside tasks of a set. */
    explicit task_group(aco_group_policy_t how = ACO_CANCEL_ON_FAILURE, const char *location = ACO__CALLER)
    {
        if (aco_unlikely(aco_mt_group_begin_at(this, how, location) != 0))
            detail::refused();
    }
    task_group(const task_group &) = delete;
    task_group &operator=(const task_group &) = delete;
    ~task_group()
    {
        if (aco_unlikely(is_open()))
            leave();
    }

    /* Has a thread run f() as a member, by aco_submit(). What f() returns is dropped. Returns false if the group or a
     * scope around it has ended: then f() will not run, and wait() tells why. Any thread may call this before wait();
     * afterwards only members may. Throws aco::error (ENOMEM, ESRCH), std::bad_alloc, and what moving `f` throws. */
    template<class F>
    bool submit(F &&f, submit_options how = {})
    {
        static_assert(std::is_invocable_v<std::decay_t<F> &>, "aco::mt::task_group: the callable is called as f()");
        using mine = member<std::decay_t<F>>;
        std::unique_ptr<mine> m(new mine(this, std::forward<F>(f)));
        has_members_ = true;
        how.result = ACO__FREED_UNRUN;
        if (aco_likely(aco_submit(this, mine::run, static_cast<any_member *>(m.get()), &how) == 0)) {
            static_cast<void>(m.release()); /* the member may have ended already */
            return true;
        }
        if ((errno != ECANCELED && errno != ETIMEDOUT) || !has_ended())
            detail::refused();
        was_cancelled_ = true;
        return false;
    }

    /* Waits until all members have ended, and ends the group. Throws what aco::task_group::wait() throws. */
    void wait(const char *location = ACO__CALLER)
    {
        const int ended = aco_mt_group_end_at(this, location);
        if (aco_unlikely(is_open()))
            detail::refused();
        if (aco_unlikely(ended != 0 || was_cancelled_))
            end();
    }

    void cancel() { detail::check(aco_scope_cancel(&scope)); } /* any thread */
    aco_mt_group_t *native_handle() noexcept { return this; }

private:
    bool is_open() const noexcept { return scope.aco__task != nullptr; }
    bool has_ended() const noexcept { return __atomic_load_n(&aco__ended, __ATOMIC_RELAXED) != 0; }

    ACO__COLD void end()
    {
        if (policy == ACO_FIRST_SUCCESS && succeeded)
            return;
        first_.rethrow();
        const aco_scope_t *by = aco_scope_ended_by(&scope);
        if (by && by != &scope)
            throw cancelled(by->error);
        if (failed > threw_)
            detail::refused(error, "aco::mt::task_group", nullptr, "members could not be started, or were lost");
    }

    ACO__COLD void leave() noexcept
    {
        if (std::uncaught_exceptions() > exceptions_)
            detail::must(aco_scope_cancel(&scope));
        else if (has_members_)
            detail::die("aco::mt::task_group: its block is left without wait()");
        aco_mt_group_end(this);
        if (is_open())
            detail::die(aco_error_message());
    }

    struct any_member {
        void (*free_unrun)(void *itself); /* ACO__FREED_UNRUN */
        task_group *group;
    };
    template<class F>
    struct member : any_member {
        F f;
        template<class G>
        member(task_group *of, G &&g) : any_member{free, of}, f(std::forward<G>(g)) {}
        static member *from(void *itself) { return static_cast<member *>(static_cast<any_member *>(itself)); }
        static void free(void *itself) { delete from(itself); }
        static void *run(void *itself)
        {
            std::unique_ptr<member> m(from(itself));
            int error = EINVAL;
            try {
                static_cast<void>(std::move(m->f)());
                return nullptr;
            } catch (const cancelled &c) {
                error = c.error();
                m->group->member_failed(std::current_exception(), true);
            } catch (...) {
                m->group->member_failed(detail::caught(), false);
            }
            m.reset();
            errno = error;
            return ACO_ERROR;
        }
    };

    ACO__COLD void member_failed(std::exception_ptr by, bool by_cancelling) noexcept
    {
        threw_++;
        if (by_cancelling && has_ended())
            was_cancelled_ = true;
        else
            first_.keep(std::move(by));
    }

    detail::first_exception first_;
    std::atomic<std::size_t> threw_{0};
    std::atomic<bool> was_cancelled_{false}; /* a member was cancelled, or could not be submitted */
    std::atomic<bool> has_members_{false};
    int exceptions_ = std::uncaught_exceptions();
};

/* ---- Locks and the like ------------------------------------------------------------------------------------------ */

/* For std::lock_guard and the like. The mutex does not know its owner. An unlock hands it to a waiter. So tasks that
 * lock several at once by std::lock() may go round for ever: lock several in one order instead. */
class mutex : public detail::timed_lock<mutex> {
public:
    constexpr mutex() noexcept = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    void lock(const char *location = ACO__CALLER) { detail::check(lock_until_(ACO_FOREVER, location)); }
    bool try_lock() { return detail::tried(aco_mt_mutex_try_lock(&mutex_)); }
    void unlock() noexcept { detail::must(aco_mt_mutex_unlock(&mutex_)); } /* aborts if it is not locked */
    aco_mt_mutex_t *native_handle() noexcept { return &mutex_; }

private:
    friend class detail::timed_lock<mutex>;
    int lock_until_(std::int64_t deadline, const char *location)
    {
        return aco_mt_mutex_lock_until_at(&mutex_, deadline, location);
    }
    aco_mt_mutex_t mutex_ = {};
};

/* Like std::condition_variable, without spurious wakes. A wait that throws has locked the mutex again. */
class condition_variable : public detail::any_condition<condition_variable, mutex> {
public:
    constexpr condition_variable() noexcept = default;
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;

    void notify_one() noexcept { aco_mt_cond_signal(&cond_); }
    void notify_all() noexcept { aco_mt_cond_broadcast(&cond_); }
    aco_mt_cond_t *native_handle() noexcept { return &cond_; }

private:
    friend class detail::any_condition<condition_variable, mutex>;
    int wait_(aco_mt_mutex_t *locked, const char *location) { return wait_until_(locked, ACO_FOREVER, location); }
    int wait_until_(aco_mt_mutex_t *locked, std::int64_t deadline, const char *location)
    {
        return aco_mt_cond_wait_until_at(&cond_, locked, deadline, location);
    }
    aco_mt_cond_t cond_ = {};
};

/* A reader-writer lock, for std::shared_lock and std::unique_lock. Fair: a reader waits behind a writer that waits. */
class shared_mutex : public detail::timed_shared_lock<shared_mutex> {
public:
    constexpr shared_mutex() noexcept = default;
    shared_mutex(const shared_mutex &) = delete;
    shared_mutex &operator=(const shared_mutex &) = delete;

    void lock(const char *location = ACO__CALLER) { detail::check(lock_until_(ACO_FOREVER, location)); }
    bool try_lock() { return detail::tried(aco_mt_rwlock_try_wrlock(&lock_)); }
    void unlock() noexcept { detail::must(aco_mt_rwlock_unlock(&lock_)); }

    void lock_shared(const char *location = ACO__CALLER) { detail::check(lock_shared_until_(ACO_FOREVER, location)); }
    bool try_lock_shared() { return detail::tried(aco_mt_rwlock_try_rdlock(&lock_)); }
    void unlock_shared() noexcept { unlock(); }
    aco_mt_rwlock_t *native_handle() noexcept { return &lock_; }

private:
    friend class detail::timed_lock<shared_mutex>;
    friend class detail::timed_shared_lock<shared_mutex>;
    int lock_shared_until_(std::int64_t deadline, const char *location)
    {
        return aco_mt_rwlock_rdlock_until_at(&lock_, deadline, location);
    }
    int lock_until_(std::int64_t deadline, const char *location)
    {
        return aco_mt_rwlock_wrlock_until_at(&lock_, deadline, location);
    }
    aco_mt_rwlock_t lock_ = {};
};

} // namespace mt
} // namespace ACO__CPP_KIND
} // namespace aco

ACO__STD_LOCKS(aco::mt::mutex)
ACO__STD_SHARED_LOCKS(aco::mt::shared_mutex)

namespace aco {
inline namespace ACO__CPP_KIND {
namespace mt {

/* A number of units, like std::counting_semaphore. */
class semaphore : public detail::timed_semaphore<semaphore> {
public:
    explicit constexpr semaphore(std::size_t value) noexcept : semaphore_ ACO_MT_SEMAPHORE_INIT(value) {}
    semaphore(const semaphore &) = delete;
    semaphore &operator=(const semaphore &) = delete;

    void acquire(const char *location = ACO__CALLER)
    {
        detail::check(acquire_until_(ACO_FOREVER, location));
    }
    bool try_acquire() noexcept { return aco_mt_semaphore_try_acquire(&semaphore_) == 0; }
    void release(std::size_t units = 1) noexcept
    {
        for (; units; units--)
            aco_mt_semaphore_release(&semaphore_);
    }
    aco_mt_semaphore_t *native_handle() noexcept { return &semaphore_; }

private:
    friend class detail::timed_semaphore<semaphore>;
    int acquire_until_(std::int64_t deadline, const char *location)
    {
        return aco_mt_semaphore_acquire_until_at(&semaphore_, deadline, location);
    }
    aco_mt_semaphore_t semaphore_;
};

/* Something that has happened, or not. */
class event : public detail::timed_wait<event> {
public:
    constexpr event() noexcept = default;
    event(const event &) = delete;
    event &operator=(const event &) = delete;

    void set() noexcept { aco_mt_event_set(&event_); } /* wakes all waiters */
    void reset() noexcept { aco_mt_event_reset(&event_); }

private:
    friend class detail::timed_wait<event>;
    int wait_until_(std::int64_t deadline, const char *location)
    {
        return aco_mt_event_wait_until_at(&event_, deadline, location);
    }
    aco_mt_event_t event_ = {};
};

/* wait() lasts until the count is zero. */
class wait_group : public detail::timed_wait<wait_group> {
public:
    constexpr wait_group() noexcept = default;
    wait_group(const wait_group &) = delete;
    wait_group &operator=(const wait_group &) = delete;

    void add(std::ptrdiff_t n = 1) /* throws aco::error with ERANGE */
    {
        if (aco_mt_wait_group_add(&group_, n) != 0)
            detail::refused();
    }
    void done() { add(-1); }

private:
    friend class detail::timed_wait<wait_group>;
    int wait_until_(std::int64_t deadline, const char *location)
    {
        return aco_mt_wait_group_wait_until_at(&group_, deadline, location);
    }
    aco_mt_wait_group_t group_ = {};
};

class once_flag {
public:
    constexpr once_flag() noexcept = default;
    once_flag(const once_flag &) = delete;
    once_flag &operator=(const once_flag &) = delete;
    aco_mt_once_t *native_handle() noexcept { return &once_; }

private:
    aco_mt_once_t once_ = {};
};

/* Calls f(), unless a call for this flag has returned. What f() throws is thrown here; then another call tries
 * again. */
template<class F>
void call_once(once_flag &once, F &&f, const char *location = ACO__CALLER)
{
    detail::call_once(f, [&](int (*fn)(void *), void *arg) {
        return aco_mt_once_until_at(once.native_handle(), fn, arg, ACO_FOREVER, location);
    });
}

} // namespace mt

/* ---- Channels ---------------------------------------------------------------------------------------------------- */

namespace detail {

struct mt_channel {
    using handle = aco_mt_channel_t;
    using select_case = aco_mt_select_case_t;
    static handle *make(std::size_t capacity, std::size_t size) { return aco_mt_channel_new(capacity, size); }
    static void destroy(handle *c) noexcept { aco_mt_channel_destroy(c); }
    static int close(handle *c) { return aco_mt_channel_close(c); }
    static bool has_waiters(const handle *) { return false; } /* by contract nobody uses it any more */
    static int send(handle *c, const void *element, const char *location)
    {
        return aco_mt_channel_send_until_at(c, element, ACO_FOREVER, location);
    }
    static int receive(handle *c, void *element, const char *location)
    {
        return aco_mt_channel_receive_until_at(c, element, ACO_FOREVER, location);
    }
    static int try_send(handle *c, const void *element) { return aco_mt_channel_try_send(c, element); }
    static int try_receive(handle *c, void *element) { return aco_mt_channel_try_receive(c, element); }
    static int send_until(handle *c, const void *element, std::int64_t deadline, const char *location)
    {
        return aco_mt_channel_send_until_at(c, element, deadline, location);
    }
    static int receive_until(handle *c, void *element, std::int64_t deadline, const char *location)
    {
        return aco_mt_channel_receive_until_at(c, element, deadline, location);
    }
};

template<>
struct select_calls<aco_mt_select_case_t> {
    static void set(aco_mt_select_case_t &c, aco_channel_t *channel) { c.local = channel; }
    static void set(aco_mt_select_case_t &c, aco_mt_channel_t *channel) { c.channel = channel; }
    static int try_select(aco_mt_select_case_t *c, int n) { return aco_mt_try_select(c, n); }
    static int select_until(aco_mt_select_case_t *c, int n, std::int64_t deadline, const char *location)
    {
        return aco_mt_select_until_at(c, n, deadline, location);
    }
};

} // namespace detail

namespace mt {

/* Like aco::channel, from any threads to any threads: aco_mt_channel_t. Nobody may use it when it is destroyed. */
template<class T>
class channel : public detail::any_channel<T, detail::mt_channel> {
public:
    using detail::any_channel<T, detail::mt_channel>::any_channel;
};

} // namespace mt

/* Map and reduce, by parallel_for(). Combines `first` and map(i) for each i in [begin, end), or map(from, to) for parts
 * that cover [begin, end), by combine(a, b). Calls combine in any order and grouping, on several threads at once. */
template<class T, class Map, class Combine>
T parallel_reduce(std::size_t begin, std::size_t end, T first, Map &&map, Combine &&combine, std::size_t grain = 0)
{
    constexpr bool takes_parts = std::is_invocable_v<Map &, std::size_t, std::size_t>;
    static_assert(takes_parts || std::is_invocable_r_v<T, Map &, std::size_t>,
                  "aco::parallel_reduce: `map` is called as map(index) or map(from, to), and returns a T");
    static_assert(std::is_invocable_r_v<T, Combine &, T, T>,
                  "aco::parallel_reduce: `combine` is called as combine(a, b)");
    mt::mutex mutex;
    auto part = [&](std::size_t from, std::size_t to) {
        const auto all_of_part = [&]() -> T {
            if constexpr (takes_parts) {
                return map(from, to);
            } else {
                T sum = map(from);
                while (++from < to)
                    sum = combine(std::move(sum), map(from));
                return sum;
            }
        };
        T sum = all_of_part();
        const std::lock_guard<mt::mutex> lock(mutex);
        first = combine(std::move(first), std::move(sum));
    };
    parallel_for(begin, end, part, grain);
    return first;
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
