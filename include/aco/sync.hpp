/* Locks, conditions, semaphores, events, barriers and once, between the tasks of one thread, in C++17 and later:
 * <aco/sync.h>. <aco/task.hpp> includes this header, and says what C++ adds to the C calls. <aco/threads.hpp> has
 * objects of this kind between threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ACO_SYNC_HPP
#define ACO_SYNC_HPP

#include "scope.hpp"
#include "sync.h"

#include <condition_variable>
#include <mutex>
#include <shared_mutex>

namespace aco {
inline namespace ACO__CPP_KIND {

namespace detail {

/* The calls with a time limit, for classes that have lock_until_(), lock_shared_until_(), acquire_until_() or
 * wait_until_(). Those return 0, or -1 and errno. aco/threads.hpp uses this too. */
template<class Lock>
class timed_lock {
public:
    template<class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
    {
        return in_time(static_cast<Lock *>(this)->lock_until_(deadline_in(limit), location));
    }
    template<class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &when, const char *location = ACO__CALLER)
    {
        return in_time(static_cast<Lock *>(this)->lock_until_(deadline_at(when), location));
    }
};
template<class Lock>
class timed_shared_lock : public timed_lock<Lock> {
public:
    template<class Rep, class Period>
    bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
    {
        return in_time(static_cast<Lock *>(this)->lock_shared_until_(deadline_in(limit), location));
    }
    template<class Clock, class Duration>
    bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &when, const char *location = ACO__CALLER)
    {
        return in_time(static_cast<Lock *>(this)->lock_shared_until_(deadline_at(when), location));
    }
};
template<class Semaphore>
class timed_semaphore {
public:
    template<class Rep, class Period>
    bool try_acquire_for(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
    {
        return in_time(static_cast<Semaphore *>(this)->acquire_until_(deadline_in(limit), location));
    }
    template<class Clock, class Duration>
    bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &when, const char *location = ACO__CALLER)
    {
        return in_time(static_cast<Semaphore *>(this)->acquire_until_(deadline_at(when), location));
    }
};

/* These lock. The switch is in a function of its own, so that compilers inline the constructors of std::lock_guard and
 * the like. */
#if ACO_DEBUG
inline void lock(aco_mutex_t *mutex, const char *location)
{
    check(aco_mutex_lock_at(mutex, location));
}
inline void lock(aco_rwlock_t *lock, bool writes, const char *location)
{
    check(writes ? aco_rwlock_wrlock_at(lock, location) : aco_rwlock_rdlock_at(lock, location));
}
#else
__attribute__((noinline)) inline void wait_for_lock(int half, const aco__wait_t &wait)
{
    check(aco__wait_end(half, &wait));
}
ACO__FORCE_INLINE_MEMBER void lock(aco_mutex_t *mutex, const char *location)
{
    aco__wait_t wait;
    const int half = aco__mutex_lock(mutex, &wait, location);
    if (aco_unlikely(half != 0))
        wait_for_lock(half, wait);
}
ACO__FORCE_INLINE_MEMBER void lock(aco_rwlock_t *lock, bool writes, const char *location)
{
    aco__wait_t wait;
    const int half = aco__rwlock_lock(lock, writes, &wait, location);
    if (aco_unlikely(half != 0))
        wait_for_lock(half, wait);
}
#endif

/* A condition for `Mutex`; `Condition` has wait_() and wait_until_(). */
template<class Condition, class Mutex>
class any_condition {
public:
    ACO__FORCE_INLINE_MEMBER void wait(std::unique_lock<Mutex> &lock, const char *location = ACO__CALLER)
    {
        check(itself().wait_(lock.mutex()->native_handle(), location));
    }
    template<class Predicate, class = std::enable_if_t<std::is_invocable_v<Predicate &>>>
    void wait(std::unique_lock<Mutex> &lock, Predicate is_true, const char *location = ACO__CALLER)
    {
        while (!is_true())
            wait(lock, location);
    }
    template<class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<Mutex> &lock, const std::chrono::duration<Rep, Period> &limit,
                            const char *location = ACO__CALLER)
    {
        return wait_in_time(lock, deadline_in(limit), location);
    }
    template<class Clock, class Duration>
    std::cv_status wait_until(std::unique_lock<Mutex> &lock, const std::chrono::time_point<Clock, Duration> &when,
                              const char *location = ACO__CALLER)
    {
        return wait_in_time(lock, deadline_at(when), location);
    }
    /* These return whether the predicate is true. */
    template<class Rep, class Period, class Predicate, class = std::enable_if_t<std::is_invocable_v<Predicate &>>>
    bool wait_for(std::unique_lock<Mutex> &lock, const std::chrono::duration<Rep, Period> &limit, Predicate is_true,
                  const char *location = ACO__CALLER)
    {
        return wait_until_true(lock, deadline_in(limit), is_true, location);
    }
    template<class Clock, class Duration, class Predicate, class = std::enable_if_t<std::is_invocable_v<Predicate &>>>
    bool wait_until(std::unique_lock<Mutex> &lock, const std::chrono::time_point<Clock, Duration> &when,
                    Predicate is_true, const char *location = ACO__CALLER)
    {
        return wait_until_true(lock, deadline_at(when), is_true, location);
    }

private:
    Condition &itself() { return *static_cast<Condition *>(this); }
    std::cv_status wait_in_time(std::unique_lock<Mutex> &lock, std::int64_t deadline, const char *location)
    {
        return in_time(itself().wait_until_(lock.mutex()->native_handle(), deadline, location))
                   ? std::cv_status::no_timeout
                   : std::cv_status::timeout;
    }
    template<class Predicate>
    bool wait_until_true(std::unique_lock<Mutex> &lock, std::int64_t deadline, Predicate &is_true, const char *location)
    {
        while (!is_true())
            if (wait_in_time(lock, deadline, location) == std::cv_status::timeout)
                return is_true();
        return true;
    }
};

/* ---- The standard's locks ----
 *
 * The standard's own templates would appear in reports as the callers of lock(). So for Acorn's mutexes they are
 * specialised by the classes below. These differ in one thing: calls that wait take a location as last argument. */

template<class Mutex>
class lock_guard {
public:
    using mutex_type = Mutex;
    ACO__FORCE_INLINE_MEMBER explicit lock_guard(Mutex &mutex, const char *location = ACO__CALLER) : mutex_(mutex)
    {
        mutex.lock(location);
    }
    lock_guard(Mutex &mutex, std::adopt_lock_t) noexcept : mutex_(mutex) {}
    lock_guard(std::adopt_lock_t, Mutex &mutex) noexcept : mutex_(mutex) {} /* std::scoped_lock's */
    lock_guard(const lock_guard &) = delete;
    lock_guard &operator=(const lock_guard &) = delete;
    ~lock_guard() { mutex_.unlock(); }

private:
    Mutex &mutex_;
};

template<class Mutex>
struct exclusively {
    ACO__FORCE_INLINE_MEMBER static void lock(Mutex &mutex, const char *location) { mutex.lock(location); }
    static bool try_lock(Mutex &mutex) { return mutex.try_lock(); }
    template<class Limit>
    static bool try_lock_for(Mutex &mutex, const Limit &limit, const char *location)
    {
        return mutex.try_lock_for(limit, location);
    }
    template<class When>
    static bool try_lock_until(Mutex &mutex, const When &when, const char *location)
    {
        return mutex.try_lock_until(when, location);
    }
    static void unlock(Mutex &mutex) { mutex.unlock(); }
};
template<class Mutex>
struct for_reading {
    ACO__FORCE_INLINE_MEMBER static void lock(Mutex &mutex, const char *location) { mutex.lock_shared(location); }
    static bool try_lock(Mutex &mutex) { return mutex.try_lock_shared(); }
    template<class Limit>
    static bool try_lock_for(Mutex &mutex, const Limit &limit, const char *location)
    {
        return mutex.try_lock_shared_for(limit, location);
    }
    template<class When>
    static bool try_lock_until(Mutex &mutex, const When &when, const char *location)
    {
        return mutex.try_lock_shared_until(when, location);
    }
    static void unlock(Mutex &mutex) { mutex.unlock_shared(); }
};

/* For std::unique_lock and std::shared_lock. */
template<class Mutex, class How>
class movable_lock {
public:
    using mutex_type = Mutex;
    movable_lock() noexcept = default;
    ACO__FORCE_INLINE_MEMBER explicit movable_lock(Mutex &mutex, const char *location = ACO__CALLER)
        : mutex_(std::addressof(mutex))
    {
        How::lock(mutex, location);
        owns_ = true;
    }
    movable_lock(Mutex &mutex, std::defer_lock_t) noexcept : mutex_(std::addressof(mutex)) {}
    movable_lock(Mutex &mutex, std::try_to_lock_t) : mutex_(std::addressof(mutex)), owns_(How::try_lock(mutex)) {}
    movable_lock(Mutex &mutex, std::adopt_lock_t) noexcept : mutex_(std::addressof(mutex)), owns_(true) {}
    template<class Clock, class Duration>
    movable_lock(Mutex &mutex, const std::chrono::time_point<Clock, Duration> &when,
                 const char *location = ACO__CALLER)
        : mutex_(std::addressof(mutex)), owns_(How::try_lock_until(mutex, when, location))
    {
    }
    template<class Rep, class Period>
    movable_lock(Mutex &mutex, const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
        : mutex_(std::addressof(mutex)), owns_(How::try_lock_for(mutex, limit, location))
    {
    }
    movable_lock(movable_lock &&from) noexcept
        : mutex_(std::exchange(from.mutex_, nullptr)), owns_(std::exchange(from.owns_, false))
    {
    }
    movable_lock &operator=(movable_lock &&from) noexcept
    {
        movable_lock(std::move(from)).swap(*this);
        return *this;
    }
    ~movable_lock()
    {
        if (owns_)
            How::unlock(*mutex_);
    }

    ACO__FORCE_INLINE_MEMBER void lock(const char *location = ACO__CALLER)
    {
        check_free();
        How::lock(*mutex_, location);
        owns_ = true;
    }
    bool try_lock()
    {
        check_free();
        return owns_ = How::try_lock(*mutex_);
    }
    template<class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
    {
        check_free();
        return owns_ = How::try_lock_for(*mutex_, limit, location);
    }
    template<class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &when, const char *location = ACO__CALLER)
    {
        check_free();
        return owns_ = How::try_lock_until(*mutex_, when, location);
    }
    void unlock()
    {
        if (!owns_)
            throw std::system_error(std::make_error_code(std::errc::operation_not_permitted));
        How::unlock(*mutex_);
        owns_ = false;
    }
    void swap(movable_lock &other) noexcept
    {
        std::swap(mutex_, other.mutex_);
        std::swap(owns_, other.owns_);
    }
    Mutex *release() noexcept
    {
        owns_ = false;
        return std::exchange(mutex_, nullptr);
    }
    Mutex *mutex() const noexcept { return mutex_; }
    bool owns_lock() const noexcept { return owns_; }
    explicit operator bool() const noexcept { return owns_; }

private:
    void check_free() const
    {
        if (!mutex_ || owns_)
            throw std::system_error(std::make_error_code(mutex_ ? std::errc::resource_deadlock_would_occur
                                                                : std::errc::operation_not_permitted));
    }
    Mutex *mutex_ = nullptr;
    bool owns_ = false;
};

} // namespace detail

/* For std::lock_guard, std::unique_lock, std::lock() and std::scoped_lock. lock() throws aco::error with EDEADLK if the
 * task has it. An unlock hands the mutex to the task that has waited longest, unless the unlocking task's last
 * try_lock() failed, as in std::lock() of several mutexes. Then other tasks may take it before that task, up to 64
 * times. */
class mutex : public detail::timed_lock<mutex> {
public:
    constexpr mutex() noexcept = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    ACO__FORCE_INLINE_MEMBER void lock(const char *location = ACO__CALLER)
    {
        detail::lock(&mutex_, location);
    }
    bool try_lock()
    {
        return detail::tried(aco__mutex_trylock_or_back_off(&mutex_));
    }
    void unlock() noexcept { detail::must(aco_mutex_unlock(&mutex_)); } /* aborts if the task does not have it */
    aco_mutex_t *native_handle() noexcept { return &mutex_; }

private:
    friend class detail::timed_lock<mutex>;
    int lock_until_(std::int64_t deadline, const char *location)
    {
        return aco_mutex_lock_until_at(&mutex_, deadline, location);
    }
    aco_mutex_t mutex_ = ACO_MUTEX_INIT;
};

/* As std::condition_variable, without spurious wakes. A wait that throws has locked the mutex again. */
class condition_variable : public detail::any_condition<condition_variable, mutex> {
public:
    constexpr condition_variable() noexcept = default;
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;

    void notify_one() noexcept { aco_cond_signal(&cond_); }
    void notify_all() noexcept { aco_cond_broadcast(&cond_); }
    aco_cond_t *native_handle() noexcept { return &cond_; }

private:
    friend class detail::any_condition<condition_variable, mutex>;
    ACO__FORCE_INLINE_MEMBER int wait_(aco_mutex_t *locked, const char *location)
    {
        return aco_cond_wait_at(&cond_, locked, location);
    }
    int wait_until_(aco_mutex_t *locked, std::int64_t deadline, const char *location)
    {
        return aco_cond_wait_until_at(&cond_, locked, deadline, location);
    }
    aco_cond_t cond_ = ACO_COND_INIT;
};

/* A reader-writer lock, for std::shared_lock and std::unique_lock. Fair: a reader waits behind a waiting writer. An
 * unlock hands it over as aco::mutex does. */
class shared_mutex : public detail::timed_shared_lock<shared_mutex> {
public:
    constexpr shared_mutex() noexcept = default;
    shared_mutex(const shared_mutex &) = delete;
    shared_mutex &operator=(const shared_mutex &) = delete;

    ACO__FORCE_INLINE_MEMBER void lock(const char *location = ACO__CALLER)
    {
        detail::lock(&lock_, true, location);
    }
    bool try_lock()
    {
        return detail::tried(aco__rwlock_trylock_or_back_off(&lock_, 1));
    }
    void unlock() noexcept { detail::must(aco_rwlock_unlock(&lock_)); }

    ACO__FORCE_INLINE_MEMBER void lock_shared(const char *location = ACO__CALLER)
    {
        detail::lock(&lock_, false, location);
    }
    bool try_lock_shared()
    {
        return detail::tried(aco__rwlock_trylock_or_back_off(&lock_, 0));
    }
    void unlock_shared() noexcept { unlock(); }
    aco_rwlock_t *native_handle() noexcept { return &lock_; }

private:
    friend class detail::timed_lock<shared_mutex>;
    friend class detail::timed_shared_lock<shared_mutex>;
    int lock_until_(std::int64_t deadline, const char *location)
    {
        return aco_rwlock_wrlock_until_at(&lock_, deadline, location);
    }
    int lock_shared_until_(std::int64_t deadline, const char *location)
    {
        return aco_rwlock_rdlock_until_at(&lock_, deadline, location);
    }
    aco_rwlock_t lock_ = ACO_RWLOCK_INIT;
};

/* A number of units, as std::counting_semaphore. */
class semaphore : public detail::timed_semaphore<semaphore> {
public:
    explicit constexpr semaphore(std::size_t value) noexcept : semaphore_ ACO_SEMAPHORE_INIT(value) {}
    semaphore(const semaphore &) = delete;
    semaphore &operator=(const semaphore &) = delete;

    ACO__FORCE_INLINE_MEMBER void acquire(const char *location = ACO__CALLER)
    {
        detail::check(aco_semaphore_acquire_at(&semaphore_, location));
    }
    bool try_acquire() noexcept { return aco_semaphore_try_acquire(&semaphore_) == 0; }
    void release(std::size_t units = 1) noexcept
    {
        for (; units; units--)
            aco_semaphore_release(&semaphore_);
    }
    std::size_t value() const noexcept { return semaphore_.value; } /* free units */
    aco_semaphore_t *native_handle() noexcept { return &semaphore_; }

private:
    friend class detail::timed_semaphore<semaphore>;
    int acquire_until_(std::int64_t deadline, const char *location)
    {
        return aco_semaphore_acquire_until_at(&semaphore_, deadline, location);
    }
    aco_semaphore_t semaphore_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

/* Makes the classes of detail the standard's locks of a mutex. */
#define ACO__STD_LOCK(template_name, mutex, ...)                                                                       \
    template<>                                                                                                         \
    class std::template_name<mutex> : public __VA_ARGS__ {                                                             \
        using base = __VA_ARGS__;                                                                                      \
                                                                                                                       \
    public:                                                                                                            \
        using base::base;                                                                                              \
    };
#define ACO__STD_LOCKS(mutex)                                                                                          \
    ACO__STD_LOCK(lock_guard, mutex, ::aco::detail::lock_guard<mutex>)                                                 \
    ACO__STD_LOCK(scoped_lock, mutex, ::aco::detail::lock_guard<mutex>)                                                \
    ACO__STD_LOCK(unique_lock, mutex, ::aco::detail::movable_lock<mutex, ::aco::detail::exclusively<mutex>>)
#define ACO__STD_SHARED_LOCKS(mutex)                                                                                   \
    ACO__STD_LOCKS(mutex)                                                                                              \
    ACO__STD_LOCK(shared_lock, mutex, ::aco::detail::movable_lock<mutex, ::aco::detail::for_reading<mutex>>)
ACO__STD_LOCKS(aco::mutex)
ACO__STD_SHARED_LOCKS(aco::shared_mutex)

namespace aco {
inline namespace ACO__CPP_KIND {

/* Something that has happened, or not. */
class event {
public:
    constexpr event() noexcept = default;
    event(const event &) = delete;
    event &operator=(const event &) = delete;

    void set() noexcept { aco_event_set(&event_); } /* wakes all tasks that wait */
    void reset() noexcept { aco_event_reset(&event_); }
    bool is_set() const noexcept { return event_.is_set != 0; }
    ACO__FORCE_INLINE_MEMBER void wait(const char *location = ACO__CALLER)
    {
        detail::check(aco_event_wait_at(&event_, location));
    }
    template<class Rep, class Period>
    bool wait_for(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
    {
        return detail::in_time(aco_event_wait_until_at(&event_, detail::deadline_in(limit), location));
    }

private:
    aco_event_t event_ = ACO_EVENT_INIT;
};

/* Where `count` tasks meet. */
class barrier {
public:
    explicit constexpr barrier(std::size_t count) noexcept : barrier_ ACO_BARRIER_INIT(count) {}
    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;

    /* Returns true in the task that came last. */
    bool arrive_and_wait(const char *location = ACO__CALLER)
    {
        const int result = aco_barrier_wait_at(&barrier_, location);
        detail::check(result < 0);
        return result != 0;
    }

private:
    aco_barrier_t barrier_;
};

class once_flag {
public:
    constexpr once_flag() noexcept = default;
    once_flag(const once_flag &) = delete;
    once_flag &operator=(const once_flag &) = delete;
    aco_once_t *native_handle() noexcept { return &once_; }

private:
    aco_once_t once_ = ACO_ONCE_INIT;
};

namespace detail {
/* once(fn, arg) makes the C call. */
template<class F, class Once>
void call_once(F &f, Once once)
{
    static_assert(std::is_invocable_v<F &>, "aco::call_once: the callable is called as f()");
    struct call {
        F &f;
        std::exception_ptr error;
    } c{f, nullptr};
    const int result = once(
        [](void *arg) {
            call *mine = static_cast<call *>(arg);
            try {
                static_cast<void>(mine->f());
                return 0;
            } catch (...) {
                mine->error = caught();
                return -1;
            }
        },
        &c);
    if (c.error)
        std::rethrow_exception(std::move(c.error));
    check(result);
}
} // namespace detail

/* Calls f(), unless an f() has returned for this flag. Throws what f() throws; then another call tries again. */
template<class F>
void call_once(once_flag &once, F &&f, const char *location = ACO__CALLER)
{
    detail::call_once(f, [&](int (*fn)(void *), void *arg) {
        return aco_once_at(once.native_handle(), fn, arg, location);
    });
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
