/* Functions that block, on the threads of a pool, for C++17 and later, on top of <aco/offload.h>. Header only; link
 * acorn_io.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   const std::string sum = aco::offload([&] { return hash_file(path); }); // only this task waits
 *
 * The callable is moved into the heap. A thread of the pool calls and destroys it; there it may not wait as tasks do.
 * The calls below return what it returns, by moving, and throw what it throws. If the task's scope ends before the
 * callable was called, it is not called, and they throw aco::cancelled. On other errors of aco_offload() they throw
 * aco::error; they also throw std::bad_alloc. */
#ifndef ACO_OFFLOAD_HPP
#define ACO_OFFLOAD_HPP

#include "offload.h"
#include "task.hpp"

#include <optional>
#include <utility>

namespace aco {
inline namespace ACO__CPP_KIND {

namespace detail {

/* A callable and how it ended. */
template<class F>
struct offloaded {
    using result = std::invoke_result_t<F>;
    static_assert(!std::is_reference_v<result>, "a callable on another thread returns a value");
    std::optional<F> f;
    std::optional<std::conditional_t<std::is_void_v<result>, char, result>> value;
    std::exception_ptr error;

    template<class From>
    explicit offloaded(From &&from) : f(std::in_place, std::forward<From>(from))
    {
    }
    static void *run(void *itself) noexcept
    {
        offloaded *o = static_cast<offloaded *>(itself);
        try {
            if constexpr (std::is_void_v<result>)
                std::move (*o->f)();
            else
                o->value.emplace(std::move(*o->f)());
        } catch (...) {
            o->error = caught();
        }
        o->f.reset();
        return itself;
    }
    static void release(void *itself, void *) noexcept { delete static_cast<offloaded *>(itself); }
    result take()
    {
        if (error)
            std::rethrow_exception(std::move(error));
        if constexpr (!std::is_void_v<result>)
            return std::move(*value);
    }
};

} // namespace detail

/* Waits for a callable that has begun, even if the task's scope ends. So it may refer to local variables, unless the
 * task is on a share stack. */
template<class F>
detail::result_of<F> offload(F &&f, const char *location = ACO__CALLER)
{
    using call = detail::offloaded<std::decay_t<F>>;
    auto o = std::make_unique<call>(std::forward<F>(f));
    detail::check(aco_offload_at(call::run, o.get(), nullptr, nullptr, location));
    return o->take();
}

/* Throws aco::cancelled as soon as the task's scope ends. A callable that is running then runs to its end, and what it
 * returns or throws is destroyed on the thread of the pool. So it must own all that it uses. */
template<class F>
detail::result_of<F> offload_or_abandon(F &&f, const char *location = ACO__CALLER)
{
    using call = detail::offloaded<std::decay_t<F>>;
    call *o = new call(std::forward<F>(f));
    detail::check(aco_offload_at(call::run, o, nullptr, call::release, location)); /* failed: it is the pool's */
    return std::unique_ptr<call>(o)->take();
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
