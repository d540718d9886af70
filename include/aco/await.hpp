/* aco::await(): a task waits for a C++20 awaitable or a sender of std::execution. C++20. Header only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::spawn([&] {
 *       aco::deadline limit(2s);
 *       const reply r = aco::await(client.ask("time?")); // what ask() returns, a coroutine would give to co_await
 *       use(r);
 *   });
 *
 * How it works. aco::await(x) does what `co_await x` does in a coroutine, but its caller is a task: a function with a
 * stack. If `x` is ready, nothing else happens. If it is not, `x` is started: await_suspend() is called with a handle,
 * or the sender is connected and started. Then the task parks, and other tasks run. Whoever resumes the handle, or
 * completes the receiver, wakes the task. Any thread may do that, also while await_suspend() or start() still runs: a
 * completion before the task parks is not lost. All that belongs to the operation (the awaiter, the sender's operation
 * state, the coroutine frame that the handle stands for) is on the task's stack. So aco::await() allocates nothing
 * itself.
 *
 * Cancelling. Because the operation is on the task's stack, it must have ended before the task goes on. If the scope of
 * the task ends while it waits, aco::await() requests stop and then waits for the completion, whatever happens. What
 * has completed with a value is returned all the same: a wait drops nothing that it has obtained. An operation that was
 * stopped makes aco::await() throw aco::cancelled. A sender finds the stop token in its receiver's environment
 * (get_stop_token). An awaitable finds it in the promise of the handle, `handle.promise().get_stop_token()`, if its
 * await_suspend() takes a handle of any type; it says that it was stopped by resuming the handle that
 * `promise().unhandled_stopped()` returns. An awaitable that asks for no token is not stopped: the end of a scope waits
 * for it. aco::await(x, token) also passes on the requests of a std::stop_token or another stop token.
 *
 * Results. aco::await() returns what await_resume() returns, an lvalue as a reference, an rvalue reference as a value.
 * A sender must have one way to complete with values: none gives void, one is returned, several become a std::tuple. An
 * exception is thrown: std::exception_ptr and std::error_code as what they stand for, any other error as itself.
 *
 * Where. In a task on a private stack, also in its inner coroutines and generators. What is ready may be awaited
 * anywhere. Elsewhere aco::await() throws aco::error before anything has started: EPERM (the caller cannot wait),
 * EINVAL (on a share stack: the operation would be moved). Coroutines that await_suspend() or a completion resumes run
 * on the stack of the task or thread that resumes them, as in any program.
 *
 * Senders. Those with member functions are known without std::execution: connect(receiver) returns an object with
 * start(), and `completion_signatures` names the ways to complete, in terms of aco::execution below. A program that
 * uses an implementation of std::execution defines ACO_EXECUTION as its namespace before it includes this header
 * (#define ACO_EXECUTION stdexec); then aco::execution is that namespace. */
#ifndef ACO_AWAIT_HPP
#define ACO_AWAIT_HPP

#include "task.hpp"
#include "threads.h" /* for aco__answer_t only: nothing of acorn_threads is called */

#if !defined(__cpp_impl_coroutine) || !defined(__cpp_concepts)
#error "acorn: <aco/await.hpp> needs C++20 with coroutines"
#endif

#include <atomic>
#include <concepts>
#include <coroutine>
#include <system_error>
#include <tuple>
#if __has_include(<stop_token>)
#include <stop_token>
#endif

namespace aco {

/* The words of std::execution (P2300) that senders and receivers use. */
#ifdef ACO_EXECUTION
namespace execution = ACO_EXECUTION;
#else
namespace execution {
struct sender_t {};
struct receiver_t {};
struct operation_state_t {};
struct scheduler_t {};
struct set_value_t {};   /* set_value_t(int): completes with an int */
struct set_error_t {};   /* set_error_t(std::exception_ptr) */
struct set_stopped_t {}; /* set_stopped_t(): it was stopped */
struct get_stop_token_t {};
template<class Completion>
struct get_completion_scheduler_t {};
template<class... Signatures>
struct completion_signatures {};
} // namespace execution
#endif

inline namespace ACO__CPP_KIND {

/* ---- Stop tokens ------------------------------------------------------------------------------------------------- */

namespace detail {

/* A source of stop requests that allocates nothing. Its callbacks are in a list; they are called by the thread that
 * requests the stop, and must not wait. The lock is held for a few instructions. */
class stop_state {
public:
    class link {
    public:
        explicit link(void (*run)(link *itself) noexcept) noexcept : run_(run) {}
        link(const link &) = delete;
        link &operator=(const link &) = delete;

    private:
        friend class stop_state;
        void (*run_)(link *itself) noexcept;
        link *next_ = nullptr, *previous_ = nullptr;
        bool is_listed_ = false;
        bool *is_gone_ = nullptr; /* while it runs: its destructor sets this */
        std::atomic<bool> is_over_{false}; /* it has run, or the source is gone */
    };

    stop_state() noexcept = default;
    ~stop_state()
    {
        for (link *l = first_; l; l = l->next_)
            l->is_over_.store(true, std::memory_order_relaxed);
    }
    stop_state(const stop_state &) = delete;
    stop_state &operator=(const stop_state &) = delete;

    bool is_requested() const noexcept { return is_requested_.load(std::memory_order_acquire); }

    /* Calls the callbacks. The first request only. */
    void request() noexcept
    {
        lock();
        if (is_requested_.load(std::memory_order_relaxed))
            return unlock();
        is_requested_.store(true, std::memory_order_release);
        requester_ = thread();
        while (link *l = first_) {
            bool is_gone = false;
            unlist(l);
            l->is_gone_ = &is_gone;
            unlock();
            l->run_(l);
            lock();
            if (!is_gone)
                l->is_over_.store(true, std::memory_order_release);
        }
        unlock();
    }

    /* Adds a callback; calls it at once if stop was requested. */
    void add(link *l) noexcept
    {
        lock();
        if (!is_requested_.load(std::memory_order_relaxed)) {
            l->next_ = first_;
            if (first_)
                first_->previous_ = l;
            first_ = l;
            l->is_listed_ = true;
            return unlock();
        }
        unlock();
        l->is_over_.store(true, std::memory_order_relaxed);
        l->run_(l);
    }

    /* Removes a callback. If it runs on another thread, waits until it has returned. */
    void remove(link *l) noexcept
    {
        if (l->is_over_.load(std::memory_order_acquire))
            return;
        lock();
        if (l->is_listed_) {
            unlist(l);
            return unlock();
        }
        const bool is_mine = requester_ == thread();
        if (is_mine && l->is_gone_ && !l->is_over_.load(std::memory_order_relaxed))
            *l->is_gone_ = true;
        unlock();
        while (!is_mine && !l->is_over_.load(std::memory_order_acquire))
            ;
    }

private:
    static const void *thread() noexcept { return aco__self_at(aco__tls_ref()); }
    void lock() noexcept
    {
        while (is_locked_.test_and_set(std::memory_order_acquire))
            ;
    }
    void unlock() noexcept { is_locked_.clear(std::memory_order_release); }
    void unlist(link *l) noexcept
    {
        *(l->previous_ ? &l->previous_->next_ : &first_) = l->next_;
        if (l->next_)
            l->next_->previous_ = l->previous_;
        l->is_listed_ = false;
    }

    std::atomic_flag is_locked_{};
    std::atomic<bool> is_requested_{false};
    link *first_ = nullptr;
    const void *requester_ = nullptr;
};

} // namespace detail

/* The stop token of what aco::await() waits for. It is valid until the operation completes; callbacks may be destroyed
 * later. A callback is called once, on the thread that requests the stop, and must neither wait nor throw. */
class await_stop_token {
public:
    template<class F>
    class callback_type : detail::stop_state::link {
    public:
        template<class From>
        explicit callback_type(await_stop_token token, From &&f)
            : link([](link *itself) noexcept { std::move(static_cast<callback_type *>(itself)->f_)(); }),
              state_(token.state_), f_(std::forward<From>(f))
        {
            if (state_)
                state_->add(this);
        }
        ~callback_type()
        {
            if (state_)
                state_->remove(this);
        }

    private:
        friend class detail::stop_state;
        detail::stop_state *state_;
        F f_;
    };

    await_stop_token() noexcept = default; /* no stop is ever requested */
    explicit await_stop_token(detail::stop_state *state) noexcept : state_(state) {}
    bool stop_requested() const noexcept { return state_ && state_->is_requested(); }
    bool stop_possible() const noexcept { return state_ != nullptr; }
    friend bool operator==(const await_stop_token &, const await_stop_token &) noexcept = default;

private:
    detail::stop_state *state_ = nullptr;
};

namespace detail {

/* How to be told of the requests of a token. */
template<class Token, class F>
struct stop_callback_of {
    using type = typename Token::template callback_type<F>;
};
#ifdef __cpp_lib_jthread
template<class F>
struct stop_callback_of<std::stop_token, F> {
    using type = std::stop_callback<F>;
};
#endif
template<class Token, class F>
using stop_callback = typename stop_callback_of<std::remove_cvref_t<Token>, F>::type;

template<class Token>
concept any_stop_token = requires(const Token &token) {
    { token.stop_requested() } -> std::convertible_to<bool>;
    { token.stop_possible() } -> std::convertible_to<bool>;
};

struct no_token {};

/* ---- The operation of an await ----------------------------------------------------------------------------------- */

/* One wait of a task, on its stack: from begin() until one call of complete(). */
class await_operation {
public:
    /* 0, or -1 and errno: nothing has begun. */
    int begin() noexcept
    {
        if (aco__may_move(this))
            return aco__cxx_failed(EINVAL, "aco::await", nullptr, "the operation would be on a share stack"), -1;
        return aco__answer_prepare(&answer_, "aco::await");
    }

    /* Any thread. The operation may be gone when this returns. */
    void complete() noexcept { aco__answer_tell(&answer_); }

    /* Waits for complete(). If the task's scope ends first, requests stop, and waits on. */
    void wait(const char *location) noexcept
    {
        if (aco_likely(aco__answer_wait(&answer_, "aco::await", "what aco::await() waits for", ACO_FOREVER, location,
                                        nullptr) == 0))
            return;
        error_ = errno;
        stop_.request();
        aco__answer_await(&answer_, "what aco::await() has asked to stop", location);
    }

    /* After a stop: what ended the scope, or else a token. */
    [[noreturn]] void throw_stopped() const
    {
        if (error_ == 0 || error_ == ECANCELED || error_ == ETIMEDOUT)
            throw cancelled(error_ ? error_ : ECANCELED);
        refused(error_, "aco::await", nullptr, "the task could not wait");
    }

    stop_state *stop() noexcept { return &stop_; }

private:
    aco__answer_t answer_;
    stop_state stop_;
    int error_ = 0;
};

/* Passes on the requests of a further token. */
template<class Token>
class passed_on {
    struct request {
        stop_state *to;
        void operator()() const noexcept { to->request(); }
    };

public:
    passed_on(stop_state *to, const Token &token) : callback_(token, request{to}) {}

private:
    stop_callback<Token, request> callback_;
};
template<>
class passed_on<no_token> {
public:
    passed_on(stop_state *, no_token) noexcept {}
};

/* ---- Awaitables -------------------------------------------------------------------------------------------------- */

/* The environment of a receiver, and of the promise below. */
struct await_environment {
    stop_state *state;
    await_stop_token query(execution::get_stop_token_t) const noexcept { return await_stop_token(state); }
};

/* The promise of the handle that an awaitable gets. */
class await_promise {
public:
    explicit await_promise(stop_state *stop) noexcept : stop_(stop) {}
    await_stop_token get_stop_token() const noexcept { return await_stop_token(stop_); }
    await_environment get_env() const noexcept { return {stop_}; }
    /* The awaitable was stopped. Returns the handle to resume. */
    std::coroutine_handle<> unhandled_stopped() noexcept
    {
        is_stopped_ = true;
        return std::coroutine_handle<await_promise>::from_promise(*this);
    }
    bool is_stopped() const noexcept { return is_stopped_; }

private:
    stop_state *stop_;
    bool is_stopped_ = false;
};

/* The frame of the coroutine that the handle stands for. A task is no coroutine of C++, but has what one begins with in
 * the ABI of all compilers that know coroutines: two functions and the promise. `Operation` has complete(). */
struct await_frame {
    using handle = std::coroutine_handle<await_promise>;

    void (*resume)(await_frame *frame);
    void (*destroy)(await_frame *frame);
    await_promise promise;

    handle get() noexcept { return handle::from_address(this); }
};
template<class Operation>
struct frame_of : await_frame {
    Operation operation;
    template<class... Args>
    explicit frame_of(const Args &...args)
        : await_frame{[](await_frame *frame) { static_cast<frame_of *>(frame)->operation.complete(); },
                      [](await_frame *) { die("aco::await: the handle of a task is destroyed"); },
                      await_promise(nullptr)},
          operation(args...)
    {
        promise = await_promise(operation.stop());
    }
};

template<class A>
decltype(auto) awaiter_of(A &&a)
{
    if constexpr (requires { std::forward<A>(a).operator co_await(); })
        return std::forward<A>(a).operator co_await();
    else if constexpr (requires { operator co_await(std::forward<A>(a)); })
        return operator co_await(std::forward<A>(a));
    else
        return std::forward<A>(a);
}
/* As what it is held while it waits. */
template<class A>
using awaiter_type = std::remove_reference_t<decltype(awaiter_of(std::declval<A>()))>;

template<class T>
concept suspend_result = std::is_void_v<T> || std::same_as<T, bool> ||
                         std::convertible_to<T, std::coroutine_handle<>>;

template<class A>
concept awaiter = requires(A &a, await_frame::handle handle) {
    { a.await_ready() } -> std::convertible_to<bool>;
    { a.await_suspend(handle) } -> suspend_result;
    a.await_resume();
};

/* Calls await_suspend() with the frame's handle. Returns false if it has not suspended. */
template<class Awaiter>
bool suspend(Awaiter &a, await_frame::handle handle)
{
    using suspends = decltype(a.await_suspend(handle));
    if constexpr (std::is_void_v<suspends>)
        a.await_suspend(handle);
    else if constexpr (std::same_as<suspends, bool>)
        return a.await_suspend(handle);
    else
        std::coroutine_handle<>(a.await_suspend(handle)).resume();
    return true;
}

/* Starts what is not ready, and waits. */
template<class Awaiter, class Token>
void await_suspended(Awaiter &a, const Token &token, const char *location)
{
    frame_of<await_operation> frame;
    check(frame.operation.begin());
    {
        passed_on<Token> more(frame.operation.stop(), token);
        if (!suspend(a, frame.get()))
            return;
        frame.operation.wait(location);
    }
    if (aco_unlikely(frame.promise.is_stopped()))
        frame.operation.throw_stopped();
}

/* A type to return by value, or an lvalue's. */
template<class T>
using returned = std::conditional_t<std::is_rvalue_reference_v<T>, std::remove_reference_t<T>, T>;

template<class A, class Token>
auto await_awaitable(A &&awaitable, const Token &token, const char *location)
    -> returned<decltype(std::declval<awaiter_type<A> &>().await_resume())>
{
    auto &&a = awaiter_of(std::forward<A>(awaitable));
    if (!a.await_ready())
        await_suspended(a, token, location);
    return a.await_resume();
}

/* ---- Senders ----------------------------------------------------------------------------------------------------- */

/* What a sender's completion with values gives. */
template<class... T>
struct value_of {
    using type = std::tuple<std::decay_t<T>...>;
    using kept = type;
};
template<class T>
struct value_of<T> {
    using type = std::decay_t<T>;
    using kept = type;
};
template<>
struct value_of<> {
    using type = void;
    using kept = std::tuple<>;
};

template<class...>
struct types {};
template<class Found, class... Signatures>
struct values_among {
    using type = Found;
};
template<class... Found, class... T, class... More>
struct values_among<types<Found...>, execution::set_value_t(T...), More...>
    : values_among<types<Found..., value_of<T...>>, More...> {};
template<class Found, class Other, class... More>
struct values_among<Found, Other, More...> : values_among<Found, More...> {};

template<class Signatures>
struct values_in;
template<template<class...> class List, class... Signatures>
struct values_in<List<Signatures...>> : values_among<types<>, Signatures...> {};

template<class Found>
struct only_value {
    static_assert(!std::is_same_v<Found, Found>,
                  "aco::await: the sender completes with values in more than one way; make them one, a std::variant");
};
template<class Value>
struct only_value<types<Value>> : Value {};
template<>
struct only_value<types<>> : value_of<> {}; /* it never completes with values */

template<class S>
struct completions_of;
#ifdef ACO_EXECUTION
template<class S>
    requires requires { typename execution::completion_signatures_of_t<S, await_environment>; }
struct completions_of<S> {
    using type = execution::completion_signatures_of_t<S, await_environment>;
};
#else
template<class S>
    requires requires { typename std::remove_cvref_t<S>::completion_signatures; }
struct completions_of<S> {
    using type = typename std::remove_cvref_t<S>::completion_signatures;
};
#endif
template<class S>
using value_of_sender = only_value<typename values_in<typename completions_of<S>::type>::type>;

template<class S, class R>
decltype(auto) connect(S &&sender, R &&receiver)
{
#ifdef ACO_EXECUTION
    return execution::connect(std::forward<S>(sender), std::forward<R>(receiver));
#else
    return std::forward<S>(sender).connect(std::forward<R>(receiver));
#endif
}

template<class Operation>
void start(Operation &operation) noexcept
{
#ifdef ACO_EXECUTION
    execution::start(operation);
#else
    operation.start();
#endif
}

/* What a receiver stores. `Operation` has complete() and stop(). */
template<class Kept, class Operation = await_operation>
struct sender_outcome {
    Operation operation;
    std::optional<Kept> value{};
    std::exception_ptr error{};
    bool is_stopped = false;
};

template<class Kept, class Operation = await_operation>
class await_receiver {
public:
    using receiver_concept = execution::receiver_t;
    explicit await_receiver(sender_outcome<Kept, Operation> *to) noexcept : to_(to) {}

    template<class... T>
    void set_value(T &&...values) && noexcept
    {
        try {
            to_->value.emplace(std::forward<T>(values)...);
        } catch (...) {
            to_->error = std::current_exception();
        }
        to_->operation.complete();
    }
    template<class E>
    void set_error(E &&e) && noexcept
    {
        using error = std::decay_t<E>;
        if constexpr (std::is_same_v<error, std::exception_ptr>)
            to_->error = std::forward<E>(e);
        else if constexpr (std::is_same_v<error, std::error_code>)
            to_->error = std::make_exception_ptr(std::system_error(e));
        else
            to_->error = std::make_exception_ptr(error(std::forward<E>(e)));
        to_->operation.complete();
    }
    void set_stopped() && noexcept
    {
        to_->is_stopped = true;
        to_->operation.complete();
    }
    await_environment get_env() const noexcept { return {to_->operation.stop()}; }

private:
    sender_outcome<Kept, Operation> *to_;
};

template<class S>
concept sender = requires { typename completions_of<S>::type; } &&
    requires(S &&s, await_receiver<typename value_of_sender<S>::kept> receiver) {
        connect(std::forward<S>(s), std::move(receiver));
    };

template<class S, class Token>
auto await_sender(S &&sender, const Token &token, const char *location) -> typename value_of_sender<S>::type
{
    using kept = typename value_of_sender<S>::kept;
    sender_outcome<kept> outcome{};
    check(outcome.operation.begin());
    {
        passed_on<Token> more(outcome.operation.stop(), token);
        auto operation = connect(std::forward<S>(sender), await_receiver<kept>(&outcome));
        start(operation);
        outcome.operation.wait(location);
    }
    if (outcome.error)
        std::rethrow_exception(std::move(outcome.error));
    if (outcome.is_stopped)
        outcome.operation.throw_stopped();
    if constexpr (!std::is_void_v<typename value_of_sender<S>::type>)
        return std::move(*outcome.value);
}

template<class>
inline constexpr bool no = false;

template<class X, class Token>
decltype(auto) await_any(X &&x, const Token &token, const char *location)
{
    if constexpr (awaiter<awaiter_type<X>>)
        return await_awaitable(std::forward<X>(x), token, location);
    else if constexpr (sender<X>)
        return await_sender(std::forward<X>(x), token, location);
    else
        static_assert(no<X>, "aco::await: the argument is neither an awaitable (await_ready(), await_suspend(handle), "
                             "await_resume()) nor a sender (connect(receiver), completion_signatures)");
}

} // namespace detail

/* What aco::await() waits for. */
template<class X>
concept awaitable = detail::awaiter<detail::awaiter_type<X>> || detail::sender<X>;

/* Waits for an awaitable or a sender, and returns its result, as the comment above says. What is both is awaited.
 * Throws what the operation throws; aco::cancelled if it was stopped; aco::error (EPERM, EINVAL, ENOMEM). */
template<class X>
decltype(auto) await(X &&x, const char *location = ACO__CALLER)
{
    return detail::await_any(std::forward<X>(x), detail::no_token(), location);
}
/* The same; the operation is also asked to stop when `token` is. */
template<class X, detail::any_stop_token Token>
decltype(auto) await(X &&x, const Token &token, const char *location = ACO__CALLER)
{
    return detail::await_any(std::forward<X>(x), token, location);
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
