/* Acorn for C++17 and later: coroutines and generators from lambdas, on top of <aco.h>. Header only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::coroutine<int> numbers([](auto &self) {
 *       for (int i = 0;; i++)
 *           self.yield(i);
 *   });
 *   while (numbers.resume() && numbers.value() < 10)
 *       std::cout << numbers.value();
 *
 * A coroutine or generator owns its function, and its stack with the objects there. The destructor unwinds the stack
 * (aco_cancel()), so the destructors of live objects run. Both are movable, not copyable. An empty one (moved from) may
 * be destroyed, assigned to, and asked whether it is done; everything else throws aco::error with EINVAL.
 *
 * Exceptions. An exception that the function throws and does not catch ends the coroutine. The resume(), raise() or
 * iterator step that was running the function throws the exception again. A call that fails throws aco::error. When a
 * coroutine is cancelled, a catch (...) inside it must throw again, and no noexcept function in it may be suspended;
 * pthread_cancel() has the same two rules. A coroutine or generator may be suspended inside a catch block, because it
 * keeps the exceptions that it is handling to itself. With the flag ACO_SHARED_EXCEPTIONS the exceptions that
 * a coroutine is handling are the thread's. Then it must not yield inside a catch block (debug builds check it), nor in
 * a generator's function while the coroutine's resumer handles an exception.
 * With -fno-exceptions, calls that fail abort instead, and a cancelled coroutine's frames have no destructors to run.
 *
 * A coroutine should suspend itself only by its self or yielder. If it does so in another way (aco_yield() in a C
 * function, say), resume() returns false though the coroutine is not done, and a range ends. pthread_exit() and
 * pthread_cancel() inside a coroutine unwind its frames and end the thread. Then its object must not be destroyed,
 * because the coroutine is still running.
 *
 * Threads: as <aco.h> says. The object that self.yield() or a generator's element refers to belongs to the coroutine.
 * It is valid until the coroutine is next resumed or ended, and on a share stack until another coroutine runs there.
 * Values are passed by address. So a coroutine on a share stack that passes values must not be resumed by a coroutine
 * on the same stack; the call fails with EINVAL. */
#ifndef ACO_HPP
#define ACO_HPP

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201703L
#error "acorn: <aco.hpp> needs C++17 or later"
#endif

#include "aco/generator.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L && __has_include(<ranges>)
#include <ranges>
#endif

#if defined(__cpp_exceptions)
#define ACO__CPP_EXCEPTIONS 1
#else
#define ACO__CPP_EXCEPTIONS 0
#endif

#define ACO__FORCE_INLINE_MEMBER inline __attribute__((always_inline))

/* Units of different kinds may be linked together, so their instantiations have different names. */
#if ACO_DEBUG && ACO__CPP_EXCEPTIONS
#define ACO__CPP_KIND debug
#elif ACO__CPP_EXCEPTIONS
#define ACO__CPP_KIND release
#else
#define ACO__CPP_KIND without_exceptions
#endif

namespace aco {
inline namespace ACO__CPP_KIND {

/* How to make a coroutine: aco_options_t with setters. aco_options_t documents the fields. */
struct options : aco_options_t {
    options() noexcept : aco_options_t() {}
    options &with_stack_size(std::size_t bytes) noexcept { return stack_size = bytes, *this; }
    options &in(void *memory, std::size_t bytes) noexcept { return stack_memory = memory, with_stack_size(bytes); }
    options &on(aco_share_stack_t *share_stack) noexcept { return stack = share_stack, *this; }
    options &from(aco_pool_t *of) noexcept { return pool = of, *this; } /* aco/pool.hpp */
    options &with_save_size(std::size_t bytes) noexcept { return save_size = bytes, *this; }
    options &named(const char *what) noexcept { return name = what, *this; }
    options &with(unsigned more_flags) noexcept { return flags |= more_flags, *this; }
};

/* A call failed: code() is errno, what() is aco_error_message(). */
class error : public std::system_error {
public:
    error() : std::system_error(errno, std::generic_category(), aco_error_message()) {}
};

namespace detail {

[[noreturn]] ACO__COLD inline void refused()
{
#if ACO__CPP_EXCEPTIONS
    throw error();
#else
    std::fprintf(stderr, "acorn: %s\n", aco_error_message());
    std::abort();
#endif
}

[[noreturn]] ACO__COLD inline void refused(int errno_is, const char *call, const aco_t *co, const char *reason)
{
    aco__cxx_failed(errno_is, call, co, reason);
    refused();
}

[[noreturn]] ACO__COLD inline void die(const char *why) noexcept
{
    std::fprintf(stderr, "acorn: %s\n", why);
    std::abort();
}

#if ACO__CPP_EXCEPTIONS
/* In a handler of all exceptions: returns the exception. Only a C++ exception can be kept. Another one goes on from
 * here: the unwinding of pthread_cancel() or pthread_exit(), or an exception of another language. */
ACO__COLD inline std::exception_ptr caught()
{
    std::exception_ptr e = std::current_exception();
    if (!e)
        throw;
    return e;
}

/* Whether the thread's record of exceptions may hold an exception. */
ACO__FORCE_INLINE_MEMBER bool handles_exceptions() noexcept
{
    const aco__exceptions_t *here = aco__exceptions_at(aco__tls_ref());
    return aco_unlikely(!here || aco__exceptions_any(here));
}

/* The exceptions that one side of a generator is handling, while the other side runs. */
class handled {
public:
    ACO__FORCE_INLINE_MEMBER void put_aside() noexcept
    {
        any_ = handles_exceptions() && swap();
    }
    ACO__FORCE_INLINE_MEMBER void put_back() noexcept
    {
        if (aco_unlikely(any_))
            put_back_cold();
    }
    bool any() const noexcept { return any_; }
    /* The other side has ended with this injected call. The call may throw, while the record is still the other
     * side's. */
    ACO__COLD void make_call(void *injected, const aco__context_t *from = nullptr)
    {
        struct later {
            handled &h;
            ~later() { h.put_back(); }
        } frame{*this};
        static_cast<aco__injected_t *>(injected)->call(static_cast<aco__injected_t *>(injected), from);
    }

private:
    ACO__COLD bool swap() noexcept
    {
        aco__exceptions_t *here = aco__exceptions_here();
        if (!here || !aco__exceptions_any(here))
            return false;
        aco__exceptions_swap(&kept_, nullptr);
        return true;
    }
    ACO__COLD void put_back_cold() noexcept
    {
        any_ = false;
        if (aco__exceptions_t *here = aco__exceptions_here()) {
            kept_.uncaught += here->uncaught; /* an exception may be on its way through this frame */
            *here = kept_;
        }
    }
    aco__exceptions_t kept_;
    bool any_ = false;
};
#else
constexpr bool handles_exceptions() noexcept { return false; }

struct handled {
    void put_aside() noexcept {}
    void put_back() noexcept {}
    constexpr bool any() const noexcept { return false; }
    void make_call(void *injected, const aco__context_t *from = nullptr)
    {
        static_cast<aco__injected_t *>(injected)->call(static_cast<aco__injected_t *>(injected), from);
    }
};
#endif

/* What all frames have. A frame is a function object and the data of its coroutine. Its address does not change. */
struct frame_base : aco__guarded_t {
    aco_t *co = nullptr;
    bool shared = false; /* on a share stack */
#if ACO__CPP_EXCEPTIONS
    bool shared_exceptions = false;
    unsigned char resumable = 0; /* the bits of its state, in ACO__FAST_MASK, with which it is resumed inline */
    const aco__exceptions_t *own; /* its exceptions, while it does not run */
    std::exception_ptr error;               /* thrown in the coroutine, to be thrown again in the resumer */
    std::exception_ptr outside;             /* debug builds: what the resumer was handling when it resumed */
#endif
    frame_base() noexcept : aco__guarded_t{nullptr} {}
    frame_base(const frame_base &) = delete;
    frame_base &operator=(const frame_base &) = delete;

    virtual ~frame_base() = default;

    void start(void (*entry)(aco__guarded_t *), const options &how)
    {
        options o = how;
        run = entry;
        shared = how.stack != nullptr;
#if ACO__CPP_EXCEPTIONS
        shared_exceptions = (how.flags & ACO_SHARED_EXCEPTIONS) != 0;
        if (!shared_exceptions)
            o.flags |= ACO_OWN_EXCEPTIONS;
#endif
        co = aco_new(aco__guarded_entry, static_cast<aco__guarded_t *>(this), &o);
        if (!co)
            refused();
#if ACO__CPP_EXCEPTIONS
        static const aco__exceptions_t none = {};
        own = shared_exceptions ? nullptr : aco__exceptions_of(co);
        if (own)
            resumable = ACO__INSTRUMENTED;
        else
            own = &none;
#endif
    }

    /* aco_send(), but throws if it fails. Inline if neither side is handling an exception and the caller is no
     * coroutine. */
    ACO__FORCE_INLINE_MEMBER void *send(void *value, bool passes_values)
    {
#if ACO__CPP_EXCEPTIONS && !ACO_DEBUG
        aco__tls_ref_t tls = aco__tls_ref();
        const aco__exceptions_t *here = aco__exceptions_at(tls);
        if (aco_likely((co->aco__state & ACO__FAST_MASK) == resumable) &&
            aco_likely(aco__running_at(tls) == nullptr) && aco_likely(aco__no_exceptions(here, own))) {
            ACO__COMPUTED(value);
            std::uintptr_t tagged = aco__switch_resume(tls, co, &value, ACO__OWN_FP);
            if (aco_unlikely(aco__came_back_otherwise(here, co, tagged))) {
                if (resumable)
                    aco__exceptions_leave(tagged, nullptr);
                ACO__CHECK_INTERRUPT(tagged);
            }
            return value;
        }
#endif
        value = send_slow(value, passes_values);
        __asm__ volatile("");
        return value;
    }
    __attribute__((noinline)) void *send_slow(void *value, bool passes_values)
    {
        check_resume(passes_values);
#if ACO__CPP_EXCEPTIONS
        aco__exceptions_here(); /* from now on the thread's record has its address */
#endif
        value = aco_send(co, value);
        if (aco_unlikely(value == ACO_ERROR))
            refused();
        return value;
    }

    /* For the owner's destructor. It ends the coroutine first, because the objects on the stack may use what the
     * function object captured. */
    void end() noexcept
    {
        if (!co)
            return;
        if (!co->is_end && aco_cancel(co) != 0)
            die(aco_error_message());
        aco_destroy(co);
        co = nullptr;
    }

    /* Ends the coroutine with the exception that is being handled. A cancellation that libc++ has thrown again must
     * continue. */
#if ACO__CPP_EXCEPTIONS
    void caught()
    {
        if (aco__is_cancelled())
            throw;
        error = detail::caught();
    }

    void rethrow()
    {
        if (error)
            std::rethrow_exception(std::exchange(error, nullptr));
    }
#else
    void rethrow() noexcept {}
#endif

    ACO__FORCE_INLINE_MEMBER void check_resume(bool passes_values)
    {
        if (aco_unlikely(shared) && passes_values && aco__is_on_stack_of(co))
            refused();
#if ACO_DEBUG && ACO__CPP_EXCEPTIONS
        if (shared_exceptions && (aco_state(co) == ACO_STATE_READY || aco_state(co) == ACO_STATE_SUSPENDED))
            outside = std::current_exception(); /* else the resume fails */
#endif
    }
    void check_yield() const noexcept
    {
#if ACO_DEBUG && ACO__CPP_EXCEPTIONS
        std::exception_ptr now = shared_exceptions ? std::current_exception() : nullptr;
        if (now && now != outside)
            aco__yields_in_catch(co);
#endif
    }
};

struct nothing {};

/* The type of a parameter: `nothing` in place of void. */
template<class T>
using parameter = std::conditional_t<std::is_void_v<T>, nothing, T>;

template<class T>
using pointer_to = std::add_pointer_t<std::remove_reference_t<T>>;

template<class T>
void *erase(T &object) noexcept
{
    return const_cast<void *>(static_cast<const volatile void *>(std::addressof(object)));
}

template<class T>
struct slot {
    pointer_to<T> p = nullptr;
    void set(void *erased) noexcept { p = static_cast<pointer_to<T>>(erased); }
    T &get() const noexcept { return *p; }
};
template<>
struct slot<void> {
    void set(void *) noexcept {}
    void get() const noexcept {}
};

template<class F, bool = std::is_invocable_v<F>>
struct call_of {
    using result = std::invoke_result_t<F>;
};
template<class F>
struct call_of<F, false> {
    static_assert(std::is_invocable_v<F>, "the callable is called as f()");
    using result = void;
};
template<class F>
using result_of_call = typename call_of<F>::result;

template<class Return>
struct result_slot {
    std::optional<Return> result;
};
template<>
struct result_slot<void> {};

} // namespace detail

/* A coroutine that yields `Yield`s, is sent `Send`s and returns a `Return`. Each may be void; the first two may be
 * references. */
template<class Yield = void, class Send = void, class Return = void>
class coroutine {
    static_assert(!std::is_reference_v<Return>, "the result is kept: it cannot be a reference");

    struct frame : detail::frame_base, detail::result_slot<Return> {
        void *first = nullptr; /* the value of the first resume() */
    };

public:
    /* The function's argument: its side of the coroutine. Valid only inside the function. */
    class self {
    public:
        self(const self &) = delete;
        self &operator=(const self &) = delete;

        /* Suspends the coroutine; resume() returns true. Returns what the next resume() sends. */
        template<class Y = Yield>
        ACO__FORCE_INLINE_MEMBER std::enable_if_t<!std::is_void_v<Y>, Send> yield(detail::parameter<Yield> value)
        {
            return exchange(detail::erase(value));
        }
        template<class Y = Yield>
        ACO__FORCE_INLINE_MEMBER std::enable_if_t<std::is_void_v<Y>, Send> yield()
        {
            return exchange(this);
        }

        aco_t *native_handle() const noexcept { return frame_.co; }

    private:
        friend class coroutine;
        explicit self(frame &f) noexcept : frame_(f) {}

        ACO__FORCE_INLINE_MEMBER Send exchange(void *value)
        {
            frame_.check_yield();
            void *sent = aco_yield_value(value);
            if constexpr (!std::is_void_v<Send>)
                return static_cast<Send>(std::forward<Send>(*static_cast<detail::pointer_to<Send>>(sent)));
            else
                (void)sent;
        }

        frame &frame_;
    };

    coroutine() noexcept = default;

    /* The first resume() calls f(self, first) with the value that it sends, or f(self), which ignores that value.
     * Throws aco::error, std::bad_alloc, and what moving `f` throws. */
    template<class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, coroutine>>>
    explicit coroutine(F &&f, const options &how = {})
    {
        using function = std::decay_t<F>;
        if constexpr (std::is_void_v<Send>)
            static_assert(std::is_invocable_v<function &, self &>, "aco::coroutine: the callable is called as f(self)");
        else
            static_assert(std::is_invocable_v<function &, self &, Send> || std::is_invocable_v<function &, self &>,
                          "aco::coroutine: the callable is called as f(self, Send) or f(self)");
        struct whole final : frame {
            explicit whole(F &&from) : f(std::forward<F>(from)) {}
            static void entry(aco__guarded_t *itself)
            {
                whole *w = static_cast<whole *>(itself);
#if ACO__CPP_EXCEPTIONS
                try {
                    w->call();
                } catch (...) {
                    w->caught();
                }
#else
                w->call();
#endif
            }
            __attribute__((noinline)) void call() /* entry() must have nothing to clean up: see aco__guarded_t */
            {
                self s(*this);
                if constexpr (std::is_void_v<Return>)
                    invoke(s);
                else
                    this->result.emplace(invoke(s));
            }
            decltype(auto) invoke(self &s)
            {
                if constexpr (std::is_void_v<Send>) {
                    return f(s);
                } else if constexpr (std::is_invocable_v<function &, self &, Send>) {
                    auto sent = static_cast<detail::pointer_to<Send>>(this->first);
                    return f(s, static_cast<Send>(std::forward<Send>(*sent)));
                } else {
                    return f(s);
                }
            }
            function f;
        };
        auto made = std::make_unique<whole>(std::forward<F>(f));
        made->start(&whole::entry, how);
        frame_ = std::move(made);
    }

    coroutine(coroutine &&from) noexcept : frame_(std::move(from.frame_)), value_(std::exchange(from.value_, {})) {}
    coroutine &operator=(coroutine &&from) noexcept
    {
        if (this != &from) {
            reset();
            frame_ = std::move(from.frame_);
            value_ = std::exchange(from.value_, {});
        }
        return *this;
    }
    ~coroutine() { reset(); }

    /* Cancels the coroutine and leaves this object empty. */
    void reset() noexcept
    {
        if (frame_)
            frame_->end();
        frame_.reset();
        value_ = {};
    }

    /* Runs the coroutine until it yields (true) or ends (false). Throws what the coroutine threw; throws aco::error if
     * aco_send() fails or this object is empty. */
    template<class S = Send>
    ACO__FORCE_INLINE_MEMBER std::enable_if_t<std::is_void_v<S>, bool> resume()
    {
        check_not_empty("aco::coroutine::resume");
        return came_back(frame_->send(nullptr, !std::is_void_v<Yield>));
    }
    template<class S = Send>
    ACO__FORCE_INLINE_MEMBER std::enable_if_t<!std::is_void_v<S>, bool> resume(detail::parameter<Send> value)
    {
        check_not_empty("aco::coroutine::resume");
        if (aco_unlikely(!frame_->first))
            return came_back(first_resume(detail::erase(value)));
        return came_back(frame_->send(detail::erase(value), true));
    }

    /* Returns what the coroutine yielded last. Throws aco::error with EINVAL if it has not yielded yet. */
    template<class Y = Yield>
    std::enable_if_t<!std::is_void_v<Y>, std::add_lvalue_reference_t<Yield>> value() const
    {
        if (aco_unlikely(!value_.p))
            detail::refused(EINVAL, "aco::coroutine::value", native_handle(), "nothing was yielded yet");
        return value_.get();
    }

    /* Returns what the coroutine returned. Throws aco::error with EBUSY (it has not ended) or EINVAL (it did not end by
     * returning). */
    template<class R = Return>
    std::enable_if_t<!std::is_void_v<R>, std::add_lvalue_reference_t<R>> result()
    {
        check_not_empty("aco::coroutine::result");
        if (aco_unlikely(!frame_->result))
            detail::refused(done() ? EINVAL : EBUSY, "aco::coroutine::result", frame_->co,
                            done() ? "has not ended by returning" : "has not ended");
        return *frame_->result;
    }

#if ACO__CPP_EXCEPTIONS
    /* Throws an exception at the point where the coroutine is suspended; the yield there does not return, so no value
     * is sent. Otherwise as resume(). A coroutine that was never resumed ends at once, and raise() throws the
     * exception. */
    bool raise(std::exception_ptr e)
    {
        check_not_empty("aco::coroutine::raise");
        if (aco_state(frame_->co) == ACO_STATE_READY) {
            cancel();
            std::rethrow_exception(e);
        }
        frame_->check_resume(true);
        void *value = aco__inject(frame_->co, throw_it, &e, "aco::coroutine::raise");
        if (value == ACO_ERROR)
            detail::refused();
        return came_back(value);
    }
    template<class E, class = std::enable_if_t<!std::is_same_v<std::decay_t<E>, std::exception_ptr>>>
    bool raise(E &&e)
    {
        return raise(std::make_exception_ptr(std::forward<E>(e)));
    }
#endif

    /* aco_cancel(): afterwards the coroutine is done. Throws aco::error. */
    void cancel()
    {
        check_not_empty("aco::coroutine::cancel");
        if (aco_cancel(frame_->co) != 0)
            detail::refused();
    }

    /* Whether the coroutine has returned, thrown or been cancelled, or this object is empty. */
    bool done() const noexcept { return !frame_ || frame_->co->is_end; }
    explicit operator bool() const noexcept { return !done(); }
    aco_t *native_handle() const noexcept { return frame_ ? frame_->co : nullptr; }

private:
    ACO__FORCE_INLINE_MEMBER void check_not_empty(const char *call) const
    {
        if (aco_unlikely(!frame_))
            detail::refused(EINVAL, call, nullptr, "the object is empty: it was moved from, or never got a function");
    }
    ACO__FORCE_INLINE_MEMBER bool came_back(void *value)
    {
        if (aco_unlikely(value == nullptr))
            return ended();
        value_.set(value);
        return true;
    }
    __attribute__((noinline)) bool ended() /* not cold: see generator::next() */
    {
        frame_->rethrow();
        return false;
    }
    __attribute__((noinline)) void *first_resume(void *value)
    {
        frame_->check_resume(true);
        frame_->first = value;
        void *back = aco_send(frame_->co, nullptr);
        if (aco_unlikely(back == ACO_ERROR)) {
            frame_->first = nullptr;
            detail::refused();
        }
        return back;
    }
#if ACO__CPP_EXCEPTIONS
    static void throw_it(void *p)
    {
        std::rethrow_exception(std::move(*static_cast<std::exception_ptr *>(p)));
    }
#endif

    std::unique_ptr<frame> frame_;
    detail::slot<Yield> value_;
};

/* Calls f() on a stack of its own, as aco_call_on_stack() does, and returns its result. Throws what `f` throws, and
 * what the constructor of aco::coroutine throws. */
template<class F>
detail::result_of_call<F &> call_on_stack(F &&f, const options &how = {})
{
    using result = detail::result_of_call<F &>;
    struct call : detail::result_slot<result> {
        explicit call(F &from) : f(from) {}
        static void *entry(void *itself)
        {
            call *c = static_cast<call *>(itself);
#if ACO__CPP_EXCEPTIONS
            try {
                c->run();
            } catch (...) {
                if (aco__is_cancelled())
                    throw;
                c->error = detail::caught();
            }
#else
            c->run();
#endif
            return nullptr;
        }
        void run()
        {
            if constexpr (std::is_void_v<result>)
                f();
            else
                this->result.emplace(f());
        }
        F &f;
#if ACO__CPP_EXCEPTIONS
        std::exception_ptr error;
#endif
    } c(f);
    options o = how;
    if (!(o.flags & (ACO_OWN_EXCEPTIONS | ACO_SHARED_EXCEPTIONS)))
        o.flags |= ACO_OWN_EXCEPTIONS;
    if (aco_call_on_stack(call::entry, &c, &o) == ACO_ERROR)
        detail::refused();
#if ACO__CPP_EXCEPTIONS
    if (c.error)
        std::rethrow_exception(std::move(c.error));
#endif
    if constexpr (!std::is_void_v<result>)
        return std::move(*c.result);
}

template<class T>
class generator;

namespace detail {

/* A generator's function object and its data. Its address does not change. */
struct generator_frame {
    aco_t *block = nullptr;               /* holds its stack */
    generator_frame *parent = nullptr;    /* passes its elements on, and waits in peer_of_parent; or NULL */
    aco__context_t peer_of_parent;
    aco__context_t *consumer = nullptr;   /* where `parent` keeps the consumer's context while it waits */
    generator_frame *leaf = this;         /* in the root: the generator that makes the next element */
    generator_frame *root = this;         /* the one that the consumer iterates over */
    bool begun = false;
    bool ended = false;                   /* its function has returned, has thrown or was unwound */
    bool instrumented = false;            /* as ACO__INSTRUMENTED */
    handled kept;                         /* in the root: its exceptions, while it is suspended in a catch block */

    generator_frame() = default;
    generator_frame(const generator_frame &) = delete;
    generator_frame &operator=(const generator_frame &) = delete;
    virtual ~generator_frame()
    {
        if (block && (block->aco__state != (ACO__FROM_NEW | ACO__PRIVATE | ACO__DESTROYED) ||
                      !aco__cache_put(aco__self(), block)))
            aco__generator_free(block);
    }

    /* Lays out the stack for entry(this). Returns the context in which it begins. */
    template<class Function>
    aco__context_t start(Function *entry, const options &how)
    {
        const void *function;
        std::memcpy(&function, &entry, sizeof function);
        block = aco__generator_new(&how, function, ACO_NO_GUARD | ACO_OWN_EXCEPTIONS | ACO_SHARED_FP);
        if (!block)
            refused();
        instrumented = (block->aco__state & ACO__INSTRUMENTED) != 0;
        return aco__generator_context(block, function, this);
    }

    /* Unwinds this generator, which is suspended in `peer`. If it passes on elements of other generators, unwinds these
     * first. */
    void unwind(const aco__context_t &peer) noexcept
    {
        aco__context_t at = peer;
        handled mine;
        mine.put_aside();
        kept.put_back();
        for (generator_frame *f = leaf;; at = f->peer_of_parent, f = f->parent) {
            if (!f->ended)
                aco__generator_unwind(&at, f->block, ACO__APART);
            f->ended = true;
            if (f == this)
                break;
        }
        leaf = this;
        mine.put_back();
    }

    /* The function has ended, with an injected call or with NULL. `to`: the consumer's context, from the yielder. */
    [[noreturn]] ACO__FORCE_INLINE_MEMBER void leave(const aco__context_t &to, void *injected)
    {
        ended = true;
        if (parent) {
            root->leaf = parent;
            *consumer = to;
            aco__switch_swap_last(&peer_of_parent, injected);
        }
        aco__switch_swap_last(&to, injected);
    }
};

} // namespace detail

/* The argument of a generator's function: its side. The function may pass it on by reference, at any depth of calls. */
template<class T>
class yielder {
public:
    yielder(const yielder &) = delete;
    yielder &operator=(const yielder &) = delete;

    /* Makes the next element. The consumer's iterator refers to `value` until it is incremented. */
    ACO__FORCE_INLINE_MEMBER void operator()(T value)
    {
        void *value_ref = detail::erase(value);
        ACO__COMPUTED(value_ref);
        aco__switch_swap(&peer_, &value_ref); /* the consumer puts this side's exceptions aside */
        if (aco_unlikely(value_ref != nullptr)) {
            aco__context_t consumer = peer_;
            static_cast<aco__injected_t *>(value_ref)->call(static_cast<aco__injected_t *>(value_ref), &consumer);
        }
    }

    /* Makes the elements of a range, or the remaining elements of a generator. If `inner` is a generator<T> that has
     * not begun, its elements go directly to the consumer, through any number of levels; under a sanitizer they pass
     * through each level. Do not use `inner` until yield_from() returns. If the consumer stops early, `inner` has
     * ended. */
    template<class Range>
    void yield_from(Range &&range)
    {
        for (auto &&element : range)
            (*this)(std::forward<decltype(element)>(element));
    }
    void yield_from(generator<T> &&inner) { yield_from(inner); }
    void yield_from(generator<T> &inner)
    {
        if (inner.special_ & inner.NO_MORE)
            return;
        if (!inner.frame_->begun && !inner.frame_->instrumented && !frame_.instrumented)
            feed(inner);
        else
            while (inner.next())
                (*this)(std::forward<T>(*inner.element_));
    }

private:
    friend class generator<T>;
    ACO__FORCE_INLINE_MEMBER yielder(detail::generator_frame &f, const aco__context_t &peer) noexcept
        : frame_(f), peer_(peer)
    {
    }

    /* Runs `inner` until it has ended, with this generator's consumer as its consumer. */
    void feed(generator<T> &inner)
    {
        detail::generator_frame *f = inner.frame_.get();
        aco__context_t consumer = peer_;
        void *value_ref = nullptr;
        detail::handled mine;
        inner.special_ = inner.NO_MORE;
        f->begun = true;
        f->root = frame_.root;
        f->parent = &frame_;
        f->consumer = &consumer;
        frame_.root->leaf = f;
        mine.put_aside();
        aco__switch_swap(&inner.peer_, &value_ref);
        peer_ = consumer;
        if (aco_unlikely(value_ref != nullptr)) { /* `inner` has thrown, or this generator is being unwound */
            aco__context_t from = inner.peer_;
            mine.make_call(value_ref, &from);
        }
        mine.put_back();
    }

    detail::generator_frame &frame_;
    aco__context_t peer_;
};

/* A range of `T`s (or references). A function f(yielder<T> &) makes them one by one. A generator can be iterated over
 * once: begin() starts it, and every iterator stands at the current element. Iterators are valid until the generator is
 * moved or destroyed.
 *
 * It is a generator as in <aco/generator.h>, on a private stack: the running coroutine and the floating-point
 * environment are its consumer's. It accepts the options stack size, name and ACO_NO_GUARD. */
template<class T>
class generator {
public:
    struct sentinel {};
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using iterator_concept = std::input_iterator_tag;
        using value_type = std::remove_cv_t<std::remove_reference_t<T>>;
        using difference_type = std::ptrdiff_t;
        using reference = T &;
        using pointer = detail::pointer_to<T>;

        iterator() noexcept = default;
        ACO__FORCE_INLINE_MEMBER reference operator*() const noexcept { return *of_->element_; }
        ACO__FORCE_INLINE_MEMBER pointer operator->() const noexcept { return of_->element_; }
        ACO__FORCE_INLINE_MEMBER iterator &operator++() /* throws aco::error with ESRCH at the end */
        {
            of_->next();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &i, const sentinel &) noexcept { return i.at_end(); }
        friend bool operator!=(const iterator &i, const sentinel &) noexcept { return !i.at_end(); }
        friend bool operator==(const sentinel &, const iterator &i) noexcept { return i.at_end(); }
        friend bool operator!=(const sentinel &, const iterator &i) noexcept { return !i.at_end(); }

    private:
        friend class generator;
        explicit iterator(generator *of) noexcept : of_(of) {}
        bool at_end() const noexcept { return !of_ || !of_->element_; }
        generator *of_ = nullptr;
    };

    generator() noexcept = default;

    /* Throws aco::error, std::bad_alloc, and what moving `f` throws. */
    template<class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, generator>>>
    explicit generator(F &&f, const options &how = {})
    {
        static_assert(std::is_invocable_v<std::decay_t<F> &, yielder<T> &>,
                      "aco::generator: the callable is called as f(yielder)");
        struct whole final : detail::generator_frame {
            explicit whole(F &&from) : f(std::forward<F>(from)) {}
            static void entry(ACO__GENERATOR_PARAMETERS, void *itself)
            {
                whole *w = static_cast<whole *>(static_cast<detail::generator_frame *>(itself));
                aco__context_t starter = {aco__sp, aco__pc, aco__bp, aco__base};
                yielder<T> y(*w, w->parent ? *w->consumer : starter);
                if (w->parent)
                    w->peer_of_parent = starter;
#if ACO__CPP_EXCEPTIONS
                try {
                    w->f(y);
                } catch (...) {
                    aco__context_t consumer = y.peer_;
                    w->ended = true;
                    w->leave(consumer, aco__generator_caught(&consumer, ACO__APART));
                }
#else
                w->f(y);
#endif
                w->leave(y.peer_, nullptr);
            }
            std::decay_t<F> f;
        };
        auto made = std::make_unique<whole>(std::forward<F>(f));
        peer_ = made->start(&whole::entry, how);
        special_ = made->instrumented ? INSTRUMENTED : 0;
        frame_ = std::move(made);
    }

    generator(generator &&from) noexcept
        : frame_(std::move(from.frame_)), peer_(from.peer_), element_(std::exchange(from.element_, nullptr)),
          special_(std::exchange(from.special_, NO_MORE)) {}
    generator &operator=(generator &&from) noexcept
    {
        if (this != &from) {
            reset();
            frame_ = std::move(from.frame_);
            peer_ = from.peer_;
            element_ = std::exchange(from.element_, nullptr);
            special_ = std::exchange(from.special_, NO_MORE);
        }
        return *this;
    }
    ACO__FORCE_INLINE_MEMBER ~generator() { reset(); }

    /* Ends the generator and leaves this object empty. The destructors of objects on its stack run. */
    ACO__FORCE_INLINE_MEMBER void reset() noexcept
    {
        if (frame_ && !frame_->ended) {
            aco__context_t at = peer_;
            frame_->unwind(at);
        }
        frame_.reset();
        element_ = nullptr;
        special_ = NO_MORE;
    }

    /* The first call makes the first element. A later call does not start again: it too returns an iterator at the
     * current element (with std::generator a second call is undefined). So after a loop that was left by `break`,
     * another loop repeats the element of the break, unless it begins with `++g.begin()`. */
    ACO__FORCE_INLINE_MEMBER iterator begin()
    {
        if (!frame_)
            return iterator();
        if (!frame_->begun) {
            frame_->begun = true;
            next();
        }
        return iterator(this);
    }
    sentinel end() const noexcept { return {}; }

private:
    friend class yielder<T>;
    using element = detail::pointer_to<T>;

    /* Why a step is more than the switch. */
    enum : unsigned char {
        NO_MORE = 1, /* it has ended, or another generator passes its elements on, or there is no generator */
        INSTRUMENTED = 2,
        HANDLES = 4 /* it is suspended in a catch block: frame_->kept */
    };

    /* The consumer does for both sides what their exceptions need: nothing, where neither side handles one. The
     * functions that it calls for the rest are not declared cold: gcc would move the code behind the consumer's loop
     * away with them. */
    ACO__FORCE_INLINE_MEMBER element next()
    {
        element made;
        if (aco_unlikely(special_ != 0) || detail::handles_exceptions()) {
            made = next_slow();
            __asm__ volatile("");
        } else {
            void *value = nullptr;
            aco__switch_swap(&peer_, &value);
            if (aco_unlikely(!peer_.pc) || detail::handles_exceptions()) {
                made = arrived(value);
                __asm__ volatile("");
            } else {
                made = static_cast<element>(value);
                if (!made)
                    __builtin_unreachable();
            }
        }
        return element_ = made;
    }

    __attribute__((noinline)) element next_slow()
    {
        void *value = nullptr;
        if (special_ & NO_MORE) {
            element_ = nullptr;
            aco__generator_has_ended();
            detail::refused();
        }
        detail::handled mine;
        mine.put_aside();
        frame_->kept.put_back();
        if (special_ & INSTRUMENTED)
            aco__generator_step(&peer_, frame_->block, &value);
        else
            aco__switch_swap(&peer_, &value);
        element made = arrived(value, mine);
        mine.put_back();
        return made;
    }

    /* The generator has made an element, or has ended, with an injected call or with NULL. */
    __attribute__((noinline)) element arrived(void *value)
    {
        detail::handled none;
        return arrived(value, none);
    }
    element arrived(void *value, detail::handled &mine)
    {
        if (peer_.pc) {
            frame_->kept.put_aside();
            special_ = static_cast<unsigned char>((special_ & ~HANDLES) | (frame_->kept.any() ? HANDLES : 0));
            return static_cast<element>(value);
        }
        special_ = NO_MORE;
        element_ = nullptr;
        if (value)
            mine.make_call(value);
        return nullptr;
    }

    std::unique_ptr<detail::generator_frame> frame_;
    aco__context_t peer_ = {};
    element element_ = nullptr;
    unsigned char special_ = NO_MORE;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#if defined(__cpp_lib_ranges)
template<class T>
inline constexpr bool std::ranges::enable_view<aco::generator<T>> = true;
#endif

#endif
