/* Tasks for C++17 and later, on top of <aco/scheduler.h>, <aco/scope.h>, <aco/group.h> and <aco/sync.h>. Header only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   std::vector<std::string> get_all(const std::vector<std::string> &hosts)
 *   {
 *       std::vector<std::string> pages(hosts.size());
 *       aco::deadline limit(5s);                                // for all waits below, those of the members too
 *       aco::task_group group;
 *       for (std::size_t i = 0; i < hosts.size(); i++)
 *           group.spawn([&, i] { pages[i] = get(hosts[i]); });
 *       group.wait();                                           // throws what the first failing member threw
 *       return pages;
 *   }
 *   ...
 *   aco::spawn([] { print(get_all({"a.example", "b.example"})); });
 *   aco_run();
 *
 * The C headers say what all of this does: order, scopes, groups, who may wait, threads. Here is what C++ adds.
 *
 * Failures. A call that fails throws aco::error, with the C call's errno. It is no failure that a wait with a time
 * limit of its own ends late, that a call finds a channel closed, or that a try_… call would have to wait: results tell
 * that.
 *
 * Cancelling. When the scope of a task ends, each of its waits throws aco::cancelled, until the task has left the
 * scope. That type is no std::exception. Its way through the frames runs their destructors and ends, as a rule, where
 * the scope began: aco::try_for() catches it there. A wait in a destructor or another noexcept function must be inside
 * a aco::shield, else a cancelling terminates the process. What a wait has obtained is never dropped, as in C.
 *
 * Exceptions that leave a task's function: join() throws them again, or the group's wait() does. If nobody can join the
 * task, std::terminate() is called after a line on stderr with the type and the text; but aco::cancelled then ends the
 * task quietly. The waits of C++ units, C calls included, may be in catch blocks and in destructors that an exception
 * runs; so may aco::yield(), but not aco_task_yield(). pthread_exit() and aco_exit() must not be called in these tasks.
 *
 * Memory. A callable is moved into the task. It is allocated if it is larger than a pointer or not trivially copyable.
 * So is a result that is larger than half a pointer or not trivially copyable. Nothing else takes memory besides the C
 * calls', except elements of channels that are not trivially relocatable, and exceptions.
 *
 * Reports of a deadlock name where a task waits: the file of the call. For the line too, pass ACO_PLACE as `location`.
 *
 * Threads. Everything belongs to the thread that made it. Only scope::cancel() and task_group::cancel() may be called
 * by other threads, as aco_scope_cancel(). */
#ifndef ACO_TASK_HPP
#define ACO_TASK_HPP

#include "../aco.hpp"
#include "group.h"
#include "sync.h"

#if !ACO__CPP_EXCEPTIONS
#error "acorn: <aco/task.hpp> needs exceptions; without them use the C calls"
#endif

#include <condition_variable>
#include <cxxabi.h>
#include <mutex>
#ifndef __GLIBCXX__ /* there the two have durations, clocks and literals, which take less time to compile */
#include <chrono>
#endif

#define ACO__CALLER __builtin_FILE() /* as a default argument: the caller's file */

namespace aco {
inline namespace ACO__CPP_KIND {

/* A wait was ended by its scope. */
class cancelled {
public:
    explicit cancelled(int error) noexcept : error_(error) {}
    int error() const noexcept { return error_; } /* ETIMEDOUT: its deadline; ECANCELED: it was cancelled */
    const char *what() const noexcept { return error_ == ETIMEDOUT ? "the deadline has passed" : "cancelled"; }

private:
    int error_;
};

/* How a call ended that does not wait for ever. */
enum class status {
    done,
    timed_out,
    closed,    /* the channel is */
    would_wait /* of a try_… call */
};

namespace detail {

/* ---- Failures and time ---- */

[[noreturn]] ACO__COLD inline void wait_failed()
{
    if (errno == ECANCELED || errno == ETIMEDOUT)
        throw cancelled(errno);
    refused();
}

ACO__FORCE_INLINE_MEMBER void check(int result)
{
    if (aco_unlikely(result != 0))
        wait_failed();
}

/* After a wait with a time limit has failed: returns if it was that limit, and throws if it was the task's scope. */
ACO__COLD inline void check_timed_out()
{
    if (errno != ETIMEDOUT || (aco_current_task() && aco_check_cancelled() != 0))
        wait_failed();
}

ACO__FORCE_INLINE_MEMBER bool in_time(int result)
{
    if (aco_likely(result == 0))
        return true;
    check_timed_out();
    return false;
}

/* Whether a lock was got that would have had to be waited for otherwise. */
inline bool tried(int result)
{
    if (result != 0 && errno != EBUSY)
        refused();
    return result == 0;
}

/* For calls that cannot fail in a correct program and must not throw. */
ACO__FORCE_INLINE_MEMBER void must(int result) noexcept
{
    if (aco_unlikely(result != 0))
        die(aco_error_message());
}

/* A duration as a deadline. */
template<class Rep, class Period>
std::int64_t deadline_in(const std::chrono::duration<Rep, Period> &d)
{
    using namespace std::chrono;
    const double ns = duration<double, std::nano>(d).count();
    if (!(ns < 9.2e18))
        return ACO_FOREVER;
    return aco_after(ns > 0 ? ceil<nanoseconds>(d).count() : 0);
}

template<class Clock, class Duration>
std::int64_t deadline_at(const std::chrono::time_point<Clock, Duration> &when)
{
    const auto now = Clock::now();
    return when <= now ? aco_now() : deadline_in(when - now);
}

/* Room for an object. */
template<class T>
struct raw {
    alignas(T) unsigned char byte[sizeof(T)];
};

/* ---- Callables ---- */

template<class F>
inline constexpr bool fits_pointer = sizeof(F) <= sizeof(void *) && std::is_trivially_copyable_v<F>;

/* A callable as the argument of an entry function. */
template<class F, class From>
ACO__FORCE_INLINE_MEMBER void *pack(From &&from)
{
    if constexpr (fits_pointer<F>) {
        void *packed = nullptr;
        if constexpr (!std::is_empty_v<F>) {
            F f(std::forward<From>(from));
            std::memcpy(&packed, std::addressof(f), sizeof f);
        }
        return packed;
    } else {
        return new F(std::forward<From>(from));
    }
}

/* Calls what pack() made, and destroys it. */
template<class F>
ACO__FORCE_INLINE_MEMBER decltype(auto) call_packed(void *packed)
{
    if constexpr (fits_pointer<F>) {
        raw<F> bytes;
        std::memcpy(&bytes, &packed, sizeof bytes);
        return std::move(*std::launder(reinterpret_cast<F *>(&bytes)))();
    } else {
        std::unique_ptr<F> f(static_cast<F *>(packed));
        return std::move(*f)();
    }
}

template<class F>
void drop_packed(void *packed) noexcept
{
    if constexpr (!fits_pointer<F>)
        delete static_cast<F *>(packed);
}

/* ---- Exceptions that leave a task ---- */

/* The caller handles an exception of a task that nobody joins. */
[[noreturn]] ACO__COLD inline void nobody_joins(const aco_t *task) noexcept
{
    const std::type_info *type = abi::__cxa_current_exception_type();
    char *readable = type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr) : nullptr;
    const char *type_name = readable ? readable : type ? type->name() : "an exception of another language";
    const char *name = aco_name(task);
    std::fprintf(stderr, "acorn: coroutine %p:%s%s%s ended with an exception that nobody joins: %s",
                 static_cast<const void *>(task), *name ? " (" : "", name, *name ? ")" : "", type_name);
    try {
        throw;
    } catch (const std::exception &e) {
        std::fprintf(stderr, ": %s\n", e.what());
    } catch (...) {
        std::fputc('\n', stderr);
    }
    std::free(readable);
    std::terminate();
}

/* The same for an exception that was kept. */
ACO__COLD inline void dropped(std::exception_ptr error, const aco_t *task) noexcept
{
    try {
        std::rethrow_exception(std::move(error));
    } catch (const cancelled &) {
    } catch (...) {
        nobody_joins(task);
    }
}

/* A task with a small result, or none, has nothing allocated for it. Its C result is that value, shifted left by one;
 * or the address of the exception that left its function, plus one. */
template<class T>
inline constexpr bool is_small = std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(void *) / 2;
template<>
inline constexpr bool is_small<void> = true;

using half_word = std::conditional_t<sizeof(void *) == 8, std::uint32_t, std::uint16_t>;

ACO__COLD inline void *keep_exception() noexcept
{
    if (aco_join(aco_co(), nullptr) != 0 && errno != EINVAL) /* EINVAL: detached */
        return reinterpret_cast<char *>(new std::exception_ptr(std::current_exception())) + 1;
    dropped(std::current_exception(), aco_co());
    return nullptr;
}

/* The exception in a C result, which becomes invalid; NULL: there is none. */
ACO__FORCE_INLINE_MEMBER std::exception_ptr exception_in(void *left)
{
    if (aco_likely((reinterpret_cast<std::uintptr_t>(left) & 1) == 0))
        return nullptr;
    void *error = static_cast<char *>(left) - 1;
    return *std::unique_ptr<std::exception_ptr>(static_cast<std::exception_ptr *>(error));
}

template<class F, class T>
void *run_task(void *packed)
{
    try {
        if constexpr (std::is_void_v<T>) {
            call_packed<F>(packed);
            return nullptr;
        } else {
            const T result = call_packed<F>(packed);
            half_word half = 0;
            std::memcpy(&half, &result, sizeof result);
            return reinterpret_cast<void *>(static_cast<std::uintptr_t>(half) << 1);
        }
    } catch (...) {
        return keep_exception();
    }
}

template<class T>
ACO__FORCE_INLINE_MEMBER T small_result(void *left)
{
    if (std::exception_ptr error = exception_in(left))
        std::rethrow_exception(std::move(error));
    if constexpr (!std::is_void_v<T>) {
        const half_word half = static_cast<half_word>(reinterpret_cast<std::uintptr_t>(left) >> 1);
        raw<T> bytes;
        std::memcpy(&bytes, &half, sizeof bytes);
        return *std::launder(reinterpret_cast<T *>(&bytes));
    }
}

/* What a task with another result shares with its handle. Who is done last frees it. */
template<class T>
struct outcome {
    std::optional<T> value;
    std::exception_ptr error;
    bool is_detached = false;
    virtual ~outcome() = default;
};

template<class F, class T>
struct job final : outcome<T> {
    std::optional<F> f;
    template<class From>
    explicit job(From &&from) : f(std::in_place, std::forward<From>(from))
    {
    }
    static void *run(void *itself)
    {
        job *j = static_cast<job *>(itself);
        try {
            j->value.emplace(std::move(*j->f)());
            j->f.reset();
        } catch (...) {
            j->f.reset();
            j->error = std::current_exception();
        }
        if (aco_unlikely(j->is_detached)) {
            std::unique_ptr<job> last(j);
            if (j->error)
                dropped(j->error, aco_co());
        }
        return nullptr;
    }
};

/* The part of a handle that only these tasks have. */
template<class T, bool = is_small<T>>
struct outcome_owner {
    outcome<T> *out = nullptr;
};
template<class T>
struct outcome_owner<T, true> {};

template<class F>
using result_of = std::invoke_result_t<std::decay_t<F>>;

} // namespace detail

/* ---- Tasks ------------------------------------------------------------------------------------------------------- */

/* A handle of a task that returns a T. The task is joined, or it is detached by detach() or by the handle's destructor.
 * A detached task goes on by itself; if it ends, or has ended, with an exception, that terminates the process (see
 * above). So a task with references to local variables should be a group's: a block cannot be left before its group's
 * members have ended. */
template<class T = void>
class task : detail::outcome_owner<T> {
public:
    task() noexcept = default;
    task(task &&from) noexcept
        : detail::outcome_owner<T>(std::exchange(from.owner(), {})), co_(std::exchange(from.co_, nullptr)) {}
    task &operator=(task &&from) noexcept
    {
        if (this != &from) {
            detach();
            owner() = std::exchange(from.owner(), {});
            co_ = std::exchange(from.co_, nullptr);
        }
        return *this;
    }
    ACO__FORCE_INLINE_MEMBER ~task() { detach(); }

    /* Waits until the task has ended; then the handle is empty. Returns what the task's function returned or throws
     * what it threw. A task that has ended can be joined where nobody may wait. If the wait fails, the task can be
     * joined again. Throws aco::error as aco_join(); with EINVAL if the handle is empty. */
    ACO__FORCE_INLINE_MEMBER T join(const char *location = ACO__CALLER)
    {
        void *left = nullptr;
        if (aco_unlikely(aco_join_at(co_, &left, location) != 0))
            not_joined();
        return take(left);
    }

    /* The same with a limit. If the time is over before: false, or nullopt, and the task can be joined again. */
    template<class Rep, class Period>
    auto join_for(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
    {
        return join_until_(detail::deadline_in(limit), location);
    }
    template<class Clock, class Duration>
    auto join_until(const std::chrono::time_point<Clock, Duration> &when, const char *location = ACO__CALLER)
    {
        return join_until_(detail::deadline_at(when), location);
    }

    /* Leaves the task to itself. Does nothing if the handle is empty. */
    ACO__FORCE_INLINE_MEMBER void detach() noexcept
    {
        if (aco_unlikely(co_ != nullptr))
            detach_();
    }

    bool joinable() const noexcept { return co_ != nullptr; }
    bool done() const noexcept { return !co_ || co_->is_end; } /* join() would not wait */
    /* NULL: empty. Neither join nor detach it by C calls. */
    aco_t *native_handle() const noexcept { return co_; }

private:
    template<class F>
    friend task<detail::result_of<F>> spawn_with(F &&f, const aco_options_t *how);

    detail::outcome_owner<T> &owner() noexcept { return *this; }

    [[noreturn]] ACO__COLD void not_joined() const
    {
        if (!co_)
            detail::refused(EINVAL, "aco::task::join", nullptr, "the handle is empty");
        detail::wait_failed();
    }

    /* The result of a task that was joined with this C result. */
    ACO__FORCE_INLINE_MEMBER T take(void *left)
    {
        co_ = nullptr;
        if constexpr (detail::is_small<T>) {
            return detail::small_result<T>(left);
        } else {
            std::unique_ptr<detail::outcome<T>> ended(std::exchange(this->out, nullptr));
            if (aco_unlikely(!ended->value))
                std::rethrow_exception(ended->error);
            return std::move(*ended->value);
        }
    }

    std::conditional_t<std::is_void_v<T>, bool, std::optional<detail::parameter<T>>>
    join_until_(std::int64_t deadline, const char *location)
    {
        void *left = nullptr;
        if (aco_unlikely(!co_))
            not_joined();
        if (!detail::in_time(aco_join_until_at(co_, &left, deadline, location)))
            return {};
        if constexpr (std::is_void_v<T>)
            return take(left), true;
        else
            return take(left);
    }

    void detach_() noexcept
    {
        aco_t *co = std::exchange(co_, nullptr);
        if (!co->is_end) {
            detail::must(aco_detach(co));
            if constexpr (!detail::is_small<T>)
                std::exchange(this->out, nullptr)->is_detached = true;
            return;
        }
        void *left = aco_result(co);
        std::exception_ptr error;
        if constexpr (detail::is_small<T>)
            error = detail::exception_in(left);
        else
            error = std::unique_ptr<detail::outcome<T>>(std::exchange(this->out, nullptr))->error;
        if (aco_unlikely(error != nullptr))
            detail::dropped(std::move(error), co);
        detail::must(aco_join(co, nullptr));
    }

    aco_t *co_ = nullptr;
};

template<class F>
ACO__FORCE_INLINE_MEMBER task<detail::result_of<F>> spawn_with(F &&f, const aco_options_t *how)
{
    using function = std::decay_t<F>;
    using result = detail::result_of<F>;
    static_assert(!std::is_reference_v<result>, "the result is kept: it cannot be a reference");
    task<result> made;
    if (how && (how->flags & ACO_DETACHED))
        detail::refused(EINVAL, "aco::spawn", nullptr, "ACO_DETACHED: detach() the task instead");
    if constexpr (detail::is_small<result>) {
        void *packed = detail::pack<function>(std::forward<F>(f));
        made.co_ = aco_spawn(detail::run_task<function, result>, packed, how);
        if (aco_unlikely(!made.co_))
            detail::drop_packed<function>(packed);
    } else {
        using job = detail::job<function, result>;
        auto j = std::make_unique<job>(std::forward<F>(f));
        made.co_ = aco_spawn(&job::run, j.get(), how);
        if (aco_likely(made.co_ != nullptr))
            made.out = j.release();
    }
    if (aco_unlikely(!made.co_))
        detail::refused();
    return made;
}

/* Makes a task that runs f(), at the end of the queue: aco_spawn(). Throws aco::error, std::bad_alloc, and what moving
 * `f` throws. */
template<class F>
ACO__FORCE_INLINE_MEMBER auto spawn(F &&f)
{
    return spawn_with(std::forward<F>(f), nullptr);
}
template<class F>
auto spawn(F &&f, const options &how)
{
    return spawn_with(std::forward<F>(f), &how);
}

/* What the running task can do. */
ACO__FORCE_INLINE_MEMBER void yield() /* aco_task_yield() */
{
    if (aco_unlikely(aco__handles_exceptions(aco__tls_ref())))
        detail::check(aco__task_yield());
    else
        detail::check(aco_task_yield());
}
template<class Rep, class Period>
ACO__FORCE_INLINE_MEMBER void sleep_for(const std::chrono::duration<Rep, Period> &time,
                                        const char *location = ACO__CALLER)
{
    detail::check(aco_sleep_until_at(detail::deadline_in(time), location));
}
template<class Clock, class Duration>
ACO__FORCE_INLINE_MEMBER void sleep_until(const std::chrono::time_point<Clock, Duration> &when,
                                          const char *location = ACO__CALLER)
{
    detail::check(aco_sleep_until_at(detail::deadline_at(when), location));
}
inline void check_cancelled() /* throws aco::cancelled if a wait would */
{
    detail::check(aco_check_cancelled());
}

/* ---- Scopes ------------------------------------------------------------------------------------------------------ */

/* A scope of the running task, from construction to destruction: a local variable. Destruction in another order than
 * that of local variables aborts. The constructors throw aco::error with EPERM outside tasks. */
class scope {
public:
    explicit scope(const char *location = ACO__CALLER) : scope(ACO_FOREVER, location) {}
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ~scope() { detail::must(aco_scope_end(&scope_)); }

    void cancel() { detail::check(aco_scope_cancel(&scope_)); }
    int error() const noexcept { return scope_.error; } /* why it ended early: ETIMEDOUT, ECANCELED; 0: it has not */
    /* Whether it, and no scope around it, is why waits inside fail. */
    bool ended() const noexcept { return aco_scope_ended_by(&scope_) == &scope_; }
    aco_scope_t *native_handle() noexcept { return &scope_; }

protected:
    scope(std::int64_t deadline, const char *location)
    {
        if (aco_unlikely(aco_scope_begin_at(&scope_, deadline, location) != 0))
            detail::refused();
    }
    struct shielded {};
    scope(shielded, std::int64_t deadline, const char *location)
    {
        if (aco_unlikely(aco_shield_begin_at(&scope_, deadline, location) != 0))
            detail::refused();
    }

private:
    aco_scope_t scope_;
};

/* A scope with a deadline. */
class deadline : public scope {
public:
    template<class Rep, class Period>
    explicit deadline(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
        : scope(detail::deadline_in(limit), location) {}
    template<class Clock, class Duration>
    explicit deadline(const std::chrono::time_point<Clock, Duration> &when, const char *location = ACO__CALLER)
        : scope(detail::deadline_at(when), location) {}
};

/* A scope that the end of the scopes around it does not reach. */
class shield : public scope {
public:
    explicit shield(const char *location = ACO__CALLER) : scope(shielded(), ACO_FOREVER, location) {}
    template<class Rep, class Period>
    explicit shield(const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
        : scope(shielded(), detail::deadline_in(limit), location) {}
};

namespace detail {
template<class Limit, class F>
bool try_within(Limit &&limit, F &&f)
{
    try {
        static_cast<void>(std::forward<F>(f)());
        return true;
    } catch (const cancelled &) {
        if (!limit.ended())
            throw;
        return false;
    }
}
} // namespace detail

/* Calls f() in a scope with a deadline. False: f() was left because the deadline had passed. */
template<class Rep, class Period, class F>
bool try_for(const std::chrono::duration<Rep, Period> &limit, F &&f, const char *location = ACO__CALLER)
{
    return detail::try_within(deadline(limit, location), std::forward<F>(f));
}
template<class Clock, class Duration, class F>
bool try_until(const std::chrono::time_point<Clock, Duration> &when, F &&f, const char *location = ACO__CALLER)
{
    return detail::try_within(deadline(when, location), std::forward<F>(f));
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

/* A group of the running task: a local variable, and a scope from construction to wait(). A member fails by throwing.
 * An exception that leaves the block cancels the group and waits for its members; what they throw is dropped then.
 * Leaving the block in another way without wait() aborts the process, unless the group has had no member. */
class task_group : aco_group_t {
public:
    /* Throws aco::error with EPERM outside tasks. */
    explicit task_group(aco_policy_t how = ACO_CANCEL_ON_FAILURE, const char *location = ACO__CALLER)
    {
        if (aco_unlikely(aco_group_begin_at(this, how, location) != 0))
            detail::refused();
    }
    task_group(const task_group &) = delete;
    task_group &operator=(const task_group &) = delete;
    ~task_group()
    {
        if (aco_unlikely(is_open()))
            leave();
    }

    /* Makes a member that runs f(), which returns nothing or something that is dropped. False: the group or a scope
     * around it has ended, and f() will not run; wait() tells why. With a limit, waits for a place; then, if a scope of
     * the calling task inside the group ends, throws aco::cancelled. Else throws as aco::spawn(). */
    template<class F>
    bool spawn(F &&f, const char *location = ACO__CALLER)
    {
        return spawn_with(std::forward<F>(f), nullptr, location);
    }
    template<class F>
    bool spawn(F &&f, const options &how, const char *location = ACO__CALLER)
    {
        return spawn_with(std::forward<F>(f), &how, location);
    }

    /* Waits until no member runs, and ends the group. Then throws what the first failing member threw; or
     * aco::cancelled, if members were cancelled because a scope around the group has ended. It throws neither if the
     * policy is ACO_FIRST_SUCCESS and a member succeeded. With aco::error (EPERM), the group is still open. */
    ACO__FORCE_INLINE_MEMBER void wait(const char *location = ACO__CALLER)
    {
        const int ended = aco_group_end_at(this, location);
        if (aco_unlikely(is_open()))
            detail::refused();
        if (aco_unlikely(ended != 0 || was_cancelled_))
            end();
    }

    void cancel() { detail::check(aco_scope_cancel(&scope)); }
    void set_limit(std::size_t most) noexcept { limit = most; } /* of members at once; 0: none */
    aco_group_t *native_handle() noexcept { return this; }

private:
    bool is_open() const noexcept { return scope.aco__task != nullptr; }
    /* A scope around the group has ended; NULL: none. */
    const aco_scope_t *outer_end() const noexcept
    {
        const aco_scope_t *by = aco_scope_ended_by(&scope);
        return by == &scope ? nullptr : by;
    }

    ACO__COLD void end()
    {
        if (policy == ACO_FIRST_SUCCESS && succeeded)
            return;
        if (error_)
            std::rethrow_exception(std::exchange(error_, nullptr));
        if (const aco_scope_t *outer = outer_end())
            throw cancelled(outer->error);
    }

    ACO__COLD void leave() noexcept
    {
        if (std::uncaught_exceptions() > exceptions_)
            detail::must(aco_scope_cancel(&scope));
        else if (running + succeeded + failed != 0)
            detail::die("aco::task_group: its block is left without wait()");
        aco_group_end(this);
        if (is_open())
            detail::die(aco_error_message());
    }

    template<class F>
    static void *run_member(void *packed)
    {
        try {
            detail::call_packed<F>(packed);
            return nullptr;
        } catch (const cancelled &) {
            return static_cast<task_group *>(aco__own_group())->member_failed(true);
        } catch (...) {
            return static_cast<task_group *>(aco__own_group())->member_failed(false);
        }
    }

    /* In a member's handler. */
    ACO__COLD void *member_failed(bool by_cancelling) noexcept
    {
        if (by_cancelling && aco_scope_ended_by(&scope))
            was_cancelled_ = true;
        else if (!error_)
            error_ = std::current_exception();
        return ACO_ERROR;
    }

    template<class F>
    bool spawn_with(F &&f, const aco_options_t *how, const char *location)
    {
        using function = std::decay_t<F>;
        void *packed = detail::pack<function>(std::forward<F>(f));
        if (aco_likely(aco_group_spawn_at(this, run_member<function>, packed, how, nullptr, location) != nullptr))
            return true;
        detail::drop_packed<function>(packed);
        not_spawned();
        return false;
    }

    ACO__COLD void not_spawned()
    {
        if ((errno != ECANCELED && errno != ETIMEDOUT) || !aco_scope_ended_by(&scope))
            detail::wait_failed();
        was_cancelled_ = true;
    }

    std::exception_ptr error_;
    int exceptions_ = std::uncaught_exceptions();
    bool was_cancelled_ = false; /* a member was, or could not be spawned */
};

/* Calls f(group) with a new group, and waits for its members. If f() is cancelled because a member failed, throws what
 * the member threw. */
template<class F>
void in_group(F &&f, aco_policy_t how = ACO_CANCEL_ON_FAILURE, const char *location = ACO__CALLER)
{
    task_group group(how, location);
    try {
        static_cast<void>(std::forward<F>(f)(group));
    } catch (const cancelled &) {
        if (aco_scope_ended_by(&group.native_handle()->scope) != &group.native_handle()->scope)
            throw;
    }
    group.wait(location);
}

/* ---- Locks and the like ------------------------------------------------------------------------------------------ */

namespace detail {

/* The forms with a limit, of what has lock_until_(), lock_shared_until_(), acquire_until_(), wait_until_(); also for
 * aco/threads.hpp. They return 0, or -1 and errno. */
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
    /* Return whether the predicate is true. */
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

} // namespace detail

/* For std::lock_guard, std::unique_lock, std::lock() and std::scoped_lock. lock() throws aco::error with EDEADLK if the
 * task has it. An unlock hands the mutex over, unless the task's last try_lock() failed, as in std::lock() of several:
 * then another task may take it before the one that has waited longest, up to 64 times. */
class mutex : public detail::timed_lock<mutex> {
public:
    constexpr mutex() noexcept = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    ACO__FORCE_INLINE_MEMBER void lock(const char *location = ACO__CALLER)
    {
        detail::check(aco_mutex_lock_at(&mutex_, location));
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

/* A reader-writer lock, for std::shared_lock and std::unique_lock. Fair: a reader waits behind a writer that waits. An
 * unlock hands over as that of a mutex. */
class shared_mutex : public detail::timed_shared_lock<shared_mutex> {
public:
    constexpr shared_mutex() noexcept = default;
    shared_mutex(const shared_mutex &) = delete;
    shared_mutex &operator=(const shared_mutex &) = delete;

    ACO__FORCE_INLINE_MEMBER void lock(const char *location = ACO__CALLER)
    {
        detail::check(aco_rwlock_wrlock_at(&lock_, location));
    }
    bool try_lock()
    {
        return detail::tried(aco__rwlock_trylock_or_back_off(&lock_, 1));
    }
    void unlock() noexcept { detail::must(aco_rwlock_unlock(&lock_)); }

    ACO__FORCE_INLINE_MEMBER void lock_shared(const char *location = ACO__CALLER)
    {
        detail::check(aco_rwlock_rdlock_at(&lock_, location));
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

/* Something that has happened, or not. */
class event {
public:
    constexpr event() noexcept = default;
    event(const event &) = delete;
    event &operator=(const event &) = delete;

    void set() noexcept { aco_event_set(&event_); } /* wakes all that wait */
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

/* So many tasks meet. */
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
/* once(fn, arg) is the C call. */
template<class F, class Once>
void call_once(F &f, Once once)
{
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
                mine->error = std::current_exception();
                return -1;
            }
        },
        &c);
    if (c.error)
        std::rethrow_exception(std::move(c.error));
    check(result);
}
} // namespace detail

/* Calls f() unless a call for this flag has returned. What f() throws comes out here, and another call tries again. */
template<class F>
void call_once(once_flag &once, F &&f, const char *location = ACO__CALLER)
{
    detail::call_once(f, [&](int (*fn)(void *), void *arg) {
        return aco_once_at(once.native_handle(), fn, arg, location);
    });
}

/* ---- Channels ---------------------------------------------------------------------------------------------------- */

/* Whether copying the bytes of a T to another place moves the object, if nobody uses the bytes of the first place
 * again. Specialise it for types of your own that can be moved so; channels then need no memory for them. */
template<class T>
struct is_trivially_relocatable : std::is_trivially_copyable<T> {};
template<class T>
struct is_trivially_relocatable<std::unique_ptr<T>> : std::true_type {};

namespace detail {

/* A C channel carries bytes: those of the element itself, if it is trivially relocatable; else those of a pointer to an
 * element that was allocated. Whoever holds the bytes owns the element. */
template<class T>
inline constexpr bool in_bytes = is_trivially_relocatable<T>::value;

template<class T>
struct carried {
    std::conditional_t<in_bytes<T>, raw<T>, T *> bytes;

    ACO__FORCE_INLINE_MEMBER void put(T &&from)
    {
        if constexpr (in_bytes<T>)
            new (&bytes) T(std::move(from));
        else
            bytes = new T(std::move(from));
    }
    ACO__FORCE_INLINE_MEMBER T &element() noexcept
    {
        if constexpr (in_bytes<T>)
            return *std::launder(reinterpret_cast<T *>(&bytes));
        else
            return *bytes;
    }
    ACO__FORCE_INLINE_MEMBER void drop() noexcept
    {
        if constexpr (in_bytes<T>)
            element().~T();
        else
            delete bytes;
    }
};

/* Owns an element that was received. */
template<class T>
struct received : carried<T> {
    received() noexcept = default;
    received(const received &) = delete;
    received &operator=(const received &) = delete;
    ACO__FORCE_INLINE_MEMBER ~received() { empty(); }
    ACO__FORCE_INLINE_MEMBER void empty() noexcept
    {
        if (std::exchange(is_full, false))
            this->drop();
    }
    bool is_full = false;
};

/* An element on its way into a channel. If it was not sent, it goes back to where it came from. */
template<class T>
class sending {
public:
    ACO__FORCE_INLINE_MEMBER explicit sending(T &&from) : home_(std::addressof(from))
    {
        if constexpr (!std::is_trivially_copyable_v<T>)
            carried_.put(std::move(from));
    }
    sending(const sending &) = delete;
    sending &operator=(const sending &) = delete;
    ACO__FORCE_INLINE_MEMBER ~sending() { settle(was_sent); }
    ACO__FORCE_INLINE_MEMBER void settle(bool sent) noexcept
    {
        if constexpr (!std::is_trivially_copyable_v<T>) {
            if (aco_unlikely(!sent)) {
                *home_ = std::move(carried_.element());
                carried_.drop();
            }
        }
        was_sent = true;
    }
    ACO__FORCE_INLINE_MEMBER void *bytes() noexcept
    {
        if constexpr (std::is_trivially_copyable_v<T>)
            return erase(*home_);
        else
            return &carried_.bytes;
    }
    bool was_sent = false;

private:
    T *home_;
    std::conditional_t<std::is_trivially_copyable_v<T>, nothing, carried<T>> carried_;
};

/* How a channel's call ended. */
ACO__FORCE_INLINE_MEMBER bool is_open(int result)
{
    if (aco_likely(result == 0))
        return true;
    if (errno != EPIPE)
        wait_failed();
    return false;
}
ACO__FORCE_INLINE_MEMBER status status_of(int result)
{
    if (aco_likely(result == 0))
        return status::done;
    if (errno == EPIPE)
        return status::closed;
    if (errno == EAGAIN)
        return status::would_wait;
    check_timed_out();
    return status::timed_out;
}

/* The calls of a kind of channel. */
struct local_channel {
    using handle = aco_channel_t;
    using select_case = aco_select_case_t;
    static handle *make(std::size_t capacity, std::size_t size) { return aco_channel_new(capacity, size); }
    static void destroy(handle *c) noexcept { must(aco_channel_destroy(c)); }
    static int close(handle *c) { return aco_channel_close(c); }
    static bool has_waiters(const handle *c) { return aco__channel_has_waiters(c) != 0; }
    ACO__FORCE_INLINE_MEMBER static int send(handle *c, const void *element, const char *location)
    {
        return aco_channel_send_at(c, element, location);
    }
    ACO__FORCE_INLINE_MEMBER static int receive(handle *c, void *element, const char *location)
    {
        return aco_channel_receive_at(c, element, location);
    }
    static int try_send(handle *c, const void *element) { return aco_channel_try_send(c, element); }
    static int try_receive(handle *c, void *element) { return aco_channel_try_receive(c, element); }
    static int send_until(handle *c, const void *element, std::int64_t deadline, const char *location)
    {
        return aco_channel_send_until_at(c, element, deadline, location);
    }
    static int receive_until(handle *c, void *element, std::int64_t deadline, const char *location)
    {
        return aco_channel_receive_until_at(c, element, deadline, location);
    }
};

template<class T, class Api>
class any_channel {
    static_assert(std::is_object_v<T> && std::is_nothrow_move_constructible_v<T> &&
                      std::is_nothrow_move_assignable_v<T>,
                  "a channel moves its elements, and must not fail while it does");

    using handle = typename Api::handle;

public:
    /* With a capacity of 0 a sender waits for a receiver. Throws aco::error. */
    explicit any_channel(std::size_t capacity = 0) : channel_(Api::make(capacity, sizeof carried<T>::bytes))
    {
        if (!channel_)
            refused();
    }

    /* Waits while the channel is full. False: the channel is closed. An element that was not sent, for that or another
     * reason, is still in `element`. */
    ACO__FORCE_INLINE_MEMBER bool send(T &&element, const char *location = ACO__CALLER)
    {
        sending<T> e(std::move(element));
        return e.was_sent = is_open(Api::send(channel_.get(), e.bytes(), location));
    }
    ACO__FORCE_INLINE_MEMBER bool send(const T &element, const char *location = ACO__CALLER)
    {
        if constexpr (std::is_trivially_copyable_v<T>)
            return is_open(Api::send(channel_.get(), erase(element), location));
        else
            return send(T(element), location);
    }

    /* Waits while the channel is empty. Empty result, or false: the channel is closed and empty. */
    ACO__FORCE_INLINE_MEMBER std::optional<T> receive(const char *location = ACO__CALLER)
    {
        received<T> e;
        if (aco_likely(e.is_full = is_open(Api::receive(channel_.get(), &e.bytes, location))))
            return std::optional<T>(std::move(e.element()));
        return std::nullopt;
    }
    ACO__FORCE_INLINE_MEMBER bool receive(T &element, const char *location = ACO__CALLER)
    {
        if constexpr (std::is_trivially_copyable_v<T>) {
            return is_open(Api::receive(channel_.get(), erase(element), location));
        } else {
            received<T> e;
            if (aco_likely(e.is_full = is_open(Api::receive(channel_.get(), &e.bytes, location))))
                element = std::move(e.element());
            return e.is_full;
        }
    }

    /* Without waiting, and with a limit: done, closed, would_wait or timed_out. */
    status try_send(T &&element)
    {
        sending<T> e(std::move(element));
        return sent(e, Api::try_send(channel_.get(), e.bytes()));
    }
    template<class Rep, class Period>
    status send_for(T &&element, const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
    {
        return send_until_(std::move(element), deadline_in(limit), location);
    }
    template<class Clock, class Duration>
    status send_until(T &&element, const std::chrono::time_point<Clock, Duration> &when,
                      const char *location = ACO__CALLER)
    {
        return send_until_(std::move(element), deadline_at(when), location);
    }
    status try_receive(T &element)
    {
        received<T> e;
        return took(element, e, Api::try_receive(channel_.get(), &e.bytes));
    }
    template<class Rep, class Period>
    status receive_for(T &element, const std::chrono::duration<Rep, Period> &limit, const char *location = ACO__CALLER)
    {
        return receive_until_(element, deadline_in(limit), location);
    }
    template<class Clock, class Duration>
    status receive_until(T &element, const std::chrono::time_point<Clock, Duration> &when,
                         const char *location = ACO__CALLER)
    {
        return receive_until_(element, deadline_at(when), location);
    }

    /* False: it was closed before. */
    bool close() { return is_open(Api::close(channel_.get())); }
    handle *native_handle() const noexcept { return channel_.get(); }

    /* for (T &element : channel): receives until the channel is closed and empty. */
    struct sentinel {};
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using reference = T &;
        using pointer = T *;

        iterator(const iterator &) = delete;
        iterator &operator=(const iterator &) = delete;
        T &operator*() noexcept { return element_.element(); }
        T *operator->() noexcept { return std::addressof(element_.element()); }
        ACO__FORCE_INLINE_MEMBER iterator &operator++()
        {
            element_.empty(); /* first: it may hold what the sender waits for */
            next();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &i, const sentinel &) noexcept { return !i.element_.is_full; }
        friend bool operator!=(const iterator &i, const sentinel &) noexcept { return i.element_.is_full; }

    private:
        friend class any_channel;
        ACO__FORCE_INLINE_MEMBER iterator(handle *from, const char *location) : from_(from), location_(location)
        {
            next();
        }
        ACO__FORCE_INLINE_MEMBER void next()
        {
            element_.is_full = is_open(Api::receive(from_, &element_.bytes, location_));
        }
        handle *from_;
        const char *location_;
        received<T> element_;
    };
    ACO__FORCE_INLINE_MEMBER iterator begin(const char *location = ACO__CALLER)
    {
        return iterator(channel_.get(), location);
    }
    sentinel end() const noexcept { return {}; }

private:
    static status sent(sending<T> &e, int result)
    {
        status s = status_of(result);
        e.was_sent = s == status::done;
        return s;
    }
    static status took(T &element, received<T> &e, int result)
    {
        status s = status_of(result);
        e.is_full = s == status::done;
        if (e.is_full)
            element = std::move(e.element());
        return s;
    }
    status send_until_(T &&element, std::int64_t deadline, const char *location)
    {
        sending<T> e(std::move(element));
        return sent(e, Api::send_until(channel_.get(), e.bytes(), deadline, location));
    }
    status receive_until_(T &element, std::int64_t deadline, const char *location)
    {
        received<T> e;
        return took(element, e, Api::receive_until(channel_.get(), &e.bytes, deadline, location));
    }

    struct destroy {
        void operator()(handle *c) const noexcept
        {
            carried<T> e;
            if constexpr (!std::is_trivially_copyable_v<T>)
                while (!Api::has_waiters(c) && Api::try_receive(c, &e.bytes) == 0)
                    e.drop();
            Api::destroy(c);
        }
    };
    std::unique_ptr<handle, destroy> channel_;
};

} // namespace detail

/* A channel for elements of type T, which can be moved without exceptions: aco_channel_t. The object owns it: its
 * destructor destroys the elements inside, and aborts if tasks wait for the channel. An empty one (moved from) fails
 * with EINVAL. */
template<class T>
class channel : public detail::any_channel<T, detail::local_channel> {
public:
    using detail::any_channel<T, detail::local_channel>::any_channel;
};

/* ---- Select ------------------------------------------------------------------------------------------------------ */

namespace detail {

/* The C call of a select whose cases have this type. */
template<class Case>
struct select_calls;
template<>
struct select_calls<aco_select_case_t> {
    static void set(aco_select_case_t &c, aco_channel_t *channel) { c.channel = channel; }
    static int select(aco_select_case_t *c, int n, std::int64_t timeout_ns, const char *location)
    {
        return aco_select_at(c, n, timeout_ns, location);
    }
    static int select_until(aco_select_case_t *c, int n, std::int64_t deadline, const char *location)
    {
        return aco_select_until_at(c, n, deadline, location);
    }
};

/* The type of the cases: that of local channels if all are local. */
template<class First, class... Rest>
struct common_case : std::conditional_t<std::is_same_v<typename First::c_case, aco_select_case_t>,
                                        common_case<Rest...>, common_case<First>> {};
template<class Last>
struct common_case<Last> {
    using type = typename Last::c_case;
};

template<class T, class F, class Api>
class receive_case {
public:
    using c_case = typename Api::select_case;
    receive_case(any_channel<T, Api> &from, F &&f) : from_(from), f_(std::forward<F>(f)) {}
    template<class Case>
    void prepare(Case &c)
    {
        select_calls<Case>::set(c, from_.native_handle());
        c.element = &element_.bytes;
        c.operation = ACO_SELECT_RECEIVE;
    }
    void settle(bool done) noexcept { element_.is_full = done; }
    void call(bool done)
    {
        if (done)
            static_cast<void>(f_(std::optional<T>(std::move(element_.element()))));
        else
            static_cast<void>(f_(std::optional<T>()));
    }

private:
    any_channel<T, Api> &from_;
    F f_;
    received<T> element_;
};

template<class T, class F, class Api>
class send_case {
public:
    using c_case = typename Api::select_case;
    send_case(any_channel<T, Api> &to, T &&element, F &&f)
        : to_(to), f_(std::forward<F>(f)), element_(std::move(element)) {}
    send_case(any_channel<T, Api> &to, const T &element, F &&f)
        : to_(to), f_(std::forward<F>(f)), copy_(element), element_(std::move(*copy_)) {}
    template<class Case>
    void prepare(Case &c)
    {
        select_calls<Case>::set(c, to_.native_handle());
        c.element = element_.bytes();
        c.operation = ACO_SELECT_SEND;
    }
    void settle(bool done) noexcept { element_.settle(done); }
    void call(bool done) { static_cast<void>(f_(done)); }

private:
    any_channel<T, Api> &to_;
    F f_;
    std::optional<T> copy_;
    sending<T> element_;
};

/* The index of the case that was done. -1: the time was over; or with `tries`, which means not to wait, none is
 * ready. */
template<std::size_t... I, class... Cases>
int select(std::index_sequence<I...>, bool tries, std::int64_t deadline, Cases &...cases)
{
    static const char location[] = "aco::select";
    using c_case = typename common_case<Cases...>::type;
    using calls = select_calls<c_case>;
    c_case c[sizeof...(Cases)] = {};
    (cases.prepare(c[I]), ...);
    const int chosen = tries ? calls::select(c, sizeof...(Cases), 0, location)
                             : calls::select_until(c, sizeof...(Cases), deadline, location);
    const int error = errno;
    const bool done = chosen >= 0 && c[chosen].error == 0;
    (cases.settle(done && chosen == static_cast<int>(I)), ...);
    if (aco_unlikely(chosen < 0)) {
        errno = error;
        status_of(-1);
        return -1;
    }
    (static_cast<void>(chosen == static_cast<int>(I) && (cases.call(done), true)), ...);
    return chosen;
}

/* int, if no case is an lvalue: after a call a case has no element any more to send. */
template<class... Cases>
using case_index = std::enable_if_t<(!std::is_lvalue_reference_v<Cases> && ...), int>;

} // namespace detail

/* A case of select(): receives from the channel. Then f(std::optional<T>) is called, with nullopt if the channel is
 * closed and empty. */
template<class T, class F, class Api>
detail::receive_case<T, F, Api> on_receive(detail::any_channel<T, Api> &from, F &&f)
{
    return {from, std::forward<F>(f)};
}

/* A case of select(): sends the element. Then f(bool) is called, with false if the channel is closed. An element that
 * was not sent is still in `element`. */
template<class T, class F, class Api>
detail::send_case<T, F, Api> on_send(detail::any_channel<T, Api> &to, std::common_type_t<T> &&element, F &&f)
{
    return {to, std::move(element), std::forward<F>(f)};
}
template<class T, class F, class Api>
detail::send_case<T, F, Api> on_send(detail::any_channel<T, Api> &to, const std::common_type_t<T> &element, F &&f)
{
    return {to, element, std::forward<F>(f)};
}

/* Does one of the cases, as aco_select(), and calls its function. Returns its index. A case serves one call, in which
 * it is made: one with a name does not compile.
 *
 *   aco::select(aco::on_receive(words, [&](std::optional<std::string> word) { ... }),
 *               aco::on_send(numbers, 7, [&](bool sent) { ... }));
 */
template<class... Cases>
detail::case_index<Cases...> select(Cases &&...cases)
{
    return detail::select(std::index_sequence_for<Cases...>(), false, ACO_FOREVER, cases...);
}
/* The same with a limit, or without waiting: -1 if the time is over, or if no case is ready. */
template<class Rep, class Period, class... Cases>
detail::case_index<Cases...> select_for(const std::chrono::duration<Rep, Period> &limit, Cases &&...cases)
{
    return detail::select(std::index_sequence_for<Cases...>(), false, detail::deadline_in(limit), cases...);
}
template<class Clock, class Duration, class... Cases>
detail::case_index<Cases...> select_until(const std::chrono::time_point<Clock, Duration> &when, Cases &&...cases)
{
    return detail::select(std::index_sequence_for<Cases...>(), false, detail::deadline_at(when), cases...);
}
template<class... Cases>
detail::case_index<Cases...> try_select(Cases &&...cases)
{
    return detail::select(std::index_sequence_for<Cases...>(), true, 0, cases...);
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
