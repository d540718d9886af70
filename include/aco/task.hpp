/* Tasks for C++17 and later, on top of <aco/scheduler.h> and <aco/group.h>. Header only. It includes scopes
 * (aco/scope.hpp), locks (aco/sync.hpp) and channels (aco/channel.hpp).
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
 *   aco::run();
 *
 * The C headers say what all of this does: order, scopes, groups, who may wait, threads. This comment says what C++
 * adds.
 *
 * Failures. A call that fails throws aco::error with the C call's errno. Three things are no failures, and the result
 * tells them: a wait's own time limit has passed; a channel is closed; a try_… call would have to wait.
 *
 * Cancelling. When the scope of a task ends, each of its waits throws aco::cancelled, until the task has left the
 * scope. aco::cancelled is no std::exception. It runs the destructors on its way through the frames, and is caught, as
 * a rule, where the scope began: by aco::try_for(). A wait in a destructor or another noexcept function must be inside
 * an aco::shield, else a cancelling terminates the process. What a wait has obtained is never dropped, as in C.
 *
 * Exceptions. If an exception leaves a task's function, join() throws it again, or the group's wait() does. If nobody
 * can join the task, a line on stderr tells its type and text, and std::terminate() is called; but aco::cancelled ends
 * such a task quietly. In C++ units, waits (C calls too) may be in catch blocks, and in destructors that an exception
 * runs. So may aco::yield(), but not aco_task_yield(). aco_exit() must not be called in these tasks. An exception that
 * is not of C++ is not kept: it goes on out of the task, as out of a C function. So pthread_exit() and pthread_cancel()
 * in a task unwind its frames and end the thread, as in C; but inside a task_group's block they abort the process.
 *
 * Memory. A callable is moved into the task. It is allocated if it is larger than a pointer or not trivially copyable.
 * A result is allocated if it is larger than half a pointer or not trivially copyable. Nothing else takes memory,
 * except the C calls, elements of channels that are not trivially relocatable, and exceptions.
 *
 * Reports name the file and the line of the call where a task waits; in 32-bit programs, only the file. They also do so
 * if one of the standard's locks waits for one of Acorn's mutexes: <aco/sync.hpp> defines these locks itself.
 *
 * Threads. Everything belongs to the thread that made it. Other threads may call only scope::cancel() and
 * task_group::cancel(), as aco_scope_cancel(). */
#ifndef ACO_TASK_HPP
#define ACO_TASK_HPP

#include "channel.hpp"
#include "group.h"
#include "scope.hpp"
#include "sync.hpp"

#include <cxxabi.h>

namespace aco {
inline namespace ACO__CPP_KIND {

namespace detail {

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

/* Owns what pack() made, until a task does. A failure must be thrown while this owns the callable, whose destructor may
 * change errno and the message. */
template<class F>
class packed_callable {
public:
    template<class From>
    ACO__FORCE_INLINE_MEMBER explicit packed_callable(From &&from) : packed_(pack<F>(std::forward<From>(from))) {}
    packed_callable(const packed_callable &) = delete;
    packed_callable &operator=(const packed_callable &) = delete;
    ACO__FORCE_INLINE_MEMBER ~packed_callable()
    {
        if constexpr (!fits_pointer<F>)
            if (aco_unlikely(packed_ != nullptr))
                delete static_cast<F *>(packed_);
    }
    ACO__FORCE_INLINE_MEMBER void *get() const noexcept { return packed_; }
    ACO__FORCE_INLINE_MEMBER void release() noexcept { packed_ = nullptr; }

private:
    void *packed_;
};

/* ---- Exceptions that leave a task ---- */

/* Reports the exception that the caller handles, and terminates the process. The exception left a task that nobody
 * joins, with this address and name. */
[[noreturn]] ACO__COLD inline void nobody_joins(const void *task, const char *name) noexcept
{
    const char *type = abi::__cxa_current_exception_type()->name();
    char *readable = abi::__cxa_demangle(type, nullptr, nullptr, nullptr);
    std::fprintf(stderr, "acorn: coroutine %p:%s%s%s ended with an exception that nobody joins: %s", task,
                 *name ? " (" : "", name, *name ? ")" : "", readable ? readable : type);
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

/* Does that for an exception that was kept, unless it is aco::cancelled. */
ACO__COLD inline void dropped(std::exception_ptr error, const void *task, const char *name) noexcept
{
    try {
        std::rethrow_exception(std::move(error));
    } catch (const cancelled &) {
    } catch (...) {
        nobody_joins(task, name);
    }
}

/* For a small result, or none, nothing is allocated. The task's C result is the value, shifted left by one; or the
 * address of the exception that left its function, plus one. */
template<class T>
inline constexpr bool is_small = std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(void *) / 2;
template<>
inline constexpr bool is_small<void> = true;

using half_word = std::conditional_t<sizeof(void *) == 8, std::uint32_t, std::uint16_t>;

ACO__COLD inline void *keep_exception(std::exception_ptr error) noexcept
{
    if (aco_join(aco_co(), nullptr) != 0 && errno != EINVAL) /* EINVAL: detached */
        return reinterpret_cast<char *>(new std::exception_ptr(std::move(error))) + 1;
    dropped(std::move(error), aco_co(), aco_name(aco_co()));
    return nullptr;
}

/* Takes the exception out of a C result, which is invalid then. NULL: there is none. */
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
        return keep_exception(caught());
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

/* What a task with another result shares with its handle. The one that is done last frees it. */
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
            j->error = caught();
        }
        if (aco_unlikely(j->is_detached)) {
            std::unique_ptr<job> last(j);
            if (j->error)
                dropped(j->error, aco_co(), aco_name(aco_co()));
        }
        return nullptr;
    }
};

/* For the destructor of a handle: joins a live task, also in a scope that has ended. Returns its C result. */
ACO__COLD inline void *join_shielded(aco_t *co) noexcept
{
    aco_scope_t shield;
    void *left = nullptr;
    must(aco_shield_begin(&shield, ACO_FOREVER));
    must(aco_join(co, &left));
    must(aco_scope_end(&shield));
    return left;
}

/* The part of a handle that only a task with an outcome has. */
template<class T, bool = is_small<T>>
struct outcome_owner {
    outcome<T> *out = nullptr;
};
template<class T>
struct outcome_owner<T, true> {};

template<class F>
using result_of = result_of_call<std::decay_t<F>>;

} // namespace detail

/* ---- Tasks ------------------------------------------------------------------------------------------------------- */

/* A handle of a task that returns a T. join() joins the task; detach() or the handle's destructor detaches it. A
 * detached task goes on by itself; if it ends, or has ended, with an exception, that terminates the process (see
 * above). So a task with references to local variables should be a group's: a block cannot be left before its group's
 * members have ended. A task on `stack_memory` cannot be left to itself: detach() and the destructor wait until it has
 * ended, also in a scope that has ended. Outside of tasks that aborts the process. */
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

    /* Waits until the task has ended; then the handle is empty. Returns what the task's function returned, or throws
     * what it threw. A caller that cannot wait may join a task that has ended. If the wait fails, the task can be
     * joined again. Throws aco::error as aco_join() fails; with EINVAL if the handle is empty. */
    ACO__FORCE_INLINE_MEMBER T join(const char *location = ACO__CALLER)
    {
        void *left = nullptr;
        if (aco_unlikely(aco_join_at(co_, &left, location) != 0))
            not_joined();
        return take(left);
    }

    /* The same with a limit. If the time is over first, returns false, or nullopt; the task can be joined again. */
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

    /* Returns the result of a task that was joined with this C result. */
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
        if (!co->is_end && aco_detach(co) == 0) {
            if constexpr (!detail::is_small<T>)
                std::exchange(this->out, nullptr)->is_detached = true;
            return;
        }
        char name[ACO_NAME_SIZE]; /* a copy: the task will be gone */
        std::memcpy(name, aco_name(co), std::strlen(aco_name(co)) + 1);
        void *left = nullptr;
        if (co->is_end) {
            left = aco_result(co);
            detail::must(aco_join(co, nullptr));
        } else {
            left = detail::join_shielded(co);
        }
        std::exception_ptr error;
        if constexpr (detail::is_small<T>)
            error = detail::exception_in(left);
        else
            error = std::unique_ptr<detail::outcome<T>>(std::exchange(this->out, nullptr))->error;
        if (aco_unlikely(error != nullptr))
            detail::dropped(std::move(error), co, name);
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
        detail::packed_callable<function> packed(std::forward<F>(f));
        made.co_ = aco_spawn(detail::run_task<function, result>, packed.get(), how);
        if (aco_unlikely(!made.co_))
            detail::refused();
        packed.release();
    } else {
        using job = detail::job<function, result>;
        auto j = std::make_unique<job>(std::forward<F>(f));
        made.co_ = aco_spawn(&job::run, j.get(), how);
        if (aco_unlikely(!made.co_))
            detail::refused();
        made.out = j.release();
    }
    return made;
}

/* Makes a task that runs f(), at the end of the queue, as aco_spawn(). Throws aco::error, std::bad_alloc, and what
 * moving `f` throws. */
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

/* Runs tasks until none is left, in the root context, by aco_run(). Throws aco::error. */
inline void run()
{
    if (aco_unlikely(aco_run() != 0))
        detail::refused();
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

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

/* A group of the running task: a local variable, and a scope from construction to wait(). A member fails by throwing.
 * If an exception leaves the block, the group is cancelled and its members are waited for; what they throw is dropped
 * then. Leaving the block in another way without wait() aborts the process, unless the group has had no member. */
class task_group : aco_group_t {
public:
    /* Throws aco::error with EPERM outside tasks. */
    explicit task_group(aco_group_policy_t how = ACO_CANCEL_ON_FAILURE, const char *location = ACO__CALLER)
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

    /* Makes a member that runs f(); what that returns is dropped. With a limit, waits for a place. Returns false if the
     * group or a scope around it has ended: f() will not run, and wait() tells why. If a scope of the calling task
     * inside the group ends while the call waits, throws aco::cancelled. Else throws as aco::spawn(). */
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
     * policy is ACO_FIRST_SUCCESS and a member succeeded. If it throws aco::error (EPERM), the group is still open. */
    ACO__FORCE_INLINE_MEMBER void wait(const char *location = ACO__CALLER)
    {
        const int ended = aco_group_end_at(this, location);
        if (aco_unlikely(is_open()))
            detail::refused();
        if (aco_unlikely(ended != 0 || was_cancelled_))
            end();
    }

    void cancel() { detail::check(aco_scope_cancel(&scope)); }
    void set_limit(std::size_t most) noexcept { limit = most; } /* members at once; 0: no limit */
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
        int error = EINVAL;
        try {
            detail::call_packed<F>(packed);
            return nullptr;
        } catch (const cancelled &c) {
            error = c.error();
            static_cast<task_group *>(aco__own_group())->member_failed(std::current_exception(), true);
        } catch (...) {
            static_cast<task_group *>(aco__own_group())->member_failed(detail::caught(), false);
        }
        errno = error;
        return ACO_ERROR;
    }

    ACO__COLD void member_failed(std::exception_ptr by, bool by_cancelling) noexcept
    {
        if (by_cancelling && aco_scope_ended_by(&scope))
            was_cancelled_ = true;
        else if (!error_)
            error_ = std::move(by);
    }

    template<class F>
    bool spawn_with(F &&f, const aco_options_t *how, const char *location)
    {
        static_assert(std::is_invocable_v<std::decay_t<F>>, "aco::task_group: the callable is called as f()");
        using function = std::decay_t<F>;
        detail::packed_callable<function> packed(std::forward<F>(f));
        if (aco_unlikely(!aco_group_spawn_at(this, run_member<function>, packed.get(), nullptr, how, location))) {
            not_spawned();
            return false;
        }
        packed.release();
        return true;
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
void in_group(F &&f, aco_group_policy_t how = ACO_CANCEL_ON_FAILURE, const char *location = ACO__CALLER)
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

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
