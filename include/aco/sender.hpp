/* Tasks as senders of std::execution, a thread's scheduler as one of its schedulers, and stop tokens that end scopes.
 * C++20. Header only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   auto reply = aco::as_sender([] { return ask(server); }); // a task that calls ask() when the sender is started
 *
 *   aco::scheduler_opening opening;                          // on the thread that runs the tasks
 *   start_elsewhere(opening.get());                          // schedule() brings other threads' work to this thread
 *
 *   std::jthread worker([](std::stop_token stop) {
 *       aco::spawn([stop] { aco::stop_scope scope(stop); serve(); }).detach(); // waits end when the thread is to stop
 *       aco::run();
 *   });
 *
 * Completions run in a task of their own, so what continues there may wait. A receiver's stop token (get_stop_token in
 * its environment) ends the scope of the task. A task that ends with aco::cancelled completes with set_stopped. Senders
 * have member functions, and the words of aco::execution (aco/await.hpp says which). */
#ifndef ACO_SENDER_HPP
#define ACO_SENDER_HPP

#include "await.hpp"

namespace aco {
inline namespace ACO__CPP_KIND {

/* A scope of the running task that also ends, with ECANCELED, when a stop is requested by `token`, on any thread. While
 * it lives, the thread's scheduler is open (aco_scheduler_open()). Else as aco::scope. */
template<detail::any_stop_token Token>
class stop_scope {
    struct cancel {
        aco_scope_t *scope;
        void operator()() const noexcept { aco_scope_cancel(scope); }
    };
    struct opening {
        opening()
        {
            if (!aco_scheduler_open())
                detail::refused();
        }
        ~opening() { aco_scheduler_close(); }
    };

public:
    explicit stop_scope(const Token &token, const char *location = ACO__CALLER)
        : scope_(location), callback_(token, cancel{scope_.native_handle()})
    {
    }
    stop_scope(const stop_scope &) = delete;
    stop_scope &operator=(const stop_scope &) = delete;

    int error() const noexcept { return scope_.error(); }
    bool ended() const noexcept { return scope_.ended(); }
    aco_scope_t *native_handle() noexcept { return scope_.native_handle(); }

private:
    scope scope_;
    opening opening_;
    detail::stop_callback<Token, cancel> callback_;
};

namespace detail {

/* The stop token of a receiver; no_token: it has none. */
template<class R>
auto token_of(const R &receiver) noexcept
{
    if constexpr (requires { receiver.get_env().query(execution::get_stop_token_t()); })
        return receiver.get_env().query(execution::get_stop_token_t());
    else
        return no_token();
}

/* Calls f() in a scope that ends with the token. */
template<class Token, class F>
decltype(auto) call_until_stopped(const Token &token, F &f)
{
    if constexpr (any_stop_token<Token>) {
        if (token.stop_possible()) {
            stop_scope<Token> scope(token);
            return std::move(f)();
        }
    }
    return std::move(f)();
}

template<class R, class E>
void complete_with_error(R &receiver, E &&error) noexcept
{
#ifdef ACO_EXECUTION
    execution::set_error(std::move(receiver), std::forward<E>(error));
#else
    std::move(receiver).set_error(std::forward<E>(error));
#endif
}
template<class R>
void complete_as_stopped(R &receiver) noexcept
{
#ifdef ACO_EXECUTION
    execution::set_stopped(std::move(receiver));
#else
    std::move(receiver).set_stopped();
#endif
}
template<class R, class... T>
void complete(R &receiver, T &&...values) noexcept
{
#ifdef ACO_EXECUTION
    execution::set_value(std::move(receiver), std::forward<T>(values)...);
#else
    std::move(receiver).set_value(std::forward<T>(values)...);
#endif
}

template<class F, class R>
class task_operation {
public:
    using operation_state_concept = execution::operation_state_t;
    template<class From>
    task_operation(From &&f, R receiver) : f_(std::forward<From>(f)), receiver_(std::move(receiver))
    {
    }
    task_operation(const task_operation &) = delete;
    task_operation &operator=(const task_operation &) = delete;

    void start() & noexcept
    {
        std::exception_ptr error;
        try {
            spawn([this] { run(); }).detach();
        } catch (...) {
            error = std::current_exception();
        }
        if (error)
            complete_with_error(receiver_, std::move(error));
    }

private:
    using result = std::invoke_result_t<F>;
    using kept = std::conditional_t<std::is_void_v<result>, bool, std::optional<parameter<result>>>;

    /* The operation may be gone when a completion returns. */
    void run() noexcept
    {
        kept value{};
        std::exception_ptr error;
        bool is_stopped = false;
        try {
            if constexpr (std::is_void_v<result>)
                call_until_stopped(token_of(receiver_), f_);
            else
                value.emplace(call_until_stopped(token_of(receiver_), f_));
        } catch (const cancelled &) {
            is_stopped = true;
        } catch (...) {
            error = std::current_exception();
        }
        if (is_stopped)
            complete_as_stopped(receiver_);
        else if (error)
            complete_with_error(receiver_, std::move(error));
        else if constexpr (std::is_void_v<result>)
            complete(receiver_);
        else
            complete(receiver_, std::move(*value));
    }

    F f_;
    R receiver_;
};

template<class T>
struct value_signature {
    using type = execution::set_value_t(T);
};
template<>
struct value_signature<void> {
    using type = execution::set_value_t();
};

template<class F>
class task_sender {
public:
    using sender_concept = execution::sender_t;
    using completion_signatures =
        execution::completion_signatures<typename value_signature<std::invoke_result_t<F>>::type,
                                         execution::set_error_t(std::exception_ptr), execution::set_stopped_t()>;
    template<class From>
    explicit task_sender(std::in_place_t, From &&f) : f_(std::forward<From>(f))
    {
    }
    template<class R>
    task_operation<F, R> connect(R receiver) &&
    {
        return {std::move(f_), std::move(receiver)};
    }
    template<class R>
    task_operation<F, R> connect(R receiver) const &
    {
        return {f_, std::move(receiver)};
    }

private:
    F f_;
};

} // namespace detail

/* A sender: when it is started, on a thread with a scheduler, it spawns a detached task that calls f(). It completes in
 * that task with what f() returns, with the exception that it throws, or, after aco::cancelled, as stopped. */
template<class F>
    requires std::invocable<std::decay_t<F>>
auto as_sender(F &&f)
{
    static_assert(!std::is_reference_v<std::invoke_result_t<std::decay_t<F>>>,
                  "aco::as_sender: the result is kept: it cannot be a reference");
    return detail::task_sender<std::decay_t<F>>(std::in_place, std::forward<F>(f));
}

/* A thread's scheduler for std::execution. It is open, by aco_scheduler_open() or aco::scheduler_opening, as long as
 * schedulers for it are used. Any thread may copy it, connect and start. */
class scheduler {
    /* start() posts to the scheduler's thread, which spawns the task that completes. */
    template<class R>
    class operation {
    public:
        using operation_state_concept = execution::operation_state_t;
        operation(aco_scheduler_t *to, R receiver) : to_(to), receiver_(std::move(receiver)) {}
        operation(const operation &) = delete;
        operation &operator=(const operation &) = delete;

        void start() & noexcept
        {
            if (aco_post(to_, [](void *itself) { static_cast<operation *>(itself)->arrive(); }, this) != 0)
                detail::complete_with_error(receiver_, std::make_exception_ptr(error()));
        }

    private:
        void arrive() noexcept
        {
            std::exception_ptr failure;
            try {
                spawn([this] { complete(); }).detach();
            } catch (...) {
                failure = std::current_exception();
            }
            if (failure)
                detail::complete_with_error(receiver_, std::move(failure));
        }
        void complete() noexcept
        {
            const auto token = detail::token_of(receiver_);
            if constexpr (detail::any_stop_token<decltype(token)>)
                if (token.stop_requested())
                    return detail::complete_as_stopped(receiver_);
            detail::complete(receiver_);
        }

        aco_scheduler_t *to_;
        R receiver_;
    };

    struct environment {
        aco_scheduler_t *to;
        template<class Completion>
        scheduler query(execution::get_completion_scheduler_t<Completion>) const noexcept
        {
            return scheduler(to);
        }
    };

    class arrival {
    public:
        using sender_concept = execution::sender_t;
        using completion_signatures =
            execution::completion_signatures<execution::set_value_t(), execution::set_error_t(std::exception_ptr),
                                             execution::set_stopped_t()>;
        explicit arrival(aco_scheduler_t *to) noexcept : to_(to) {}
        template<class R>
        operation<R> connect(R receiver) const
        {
            return {to_, std::move(receiver)};
        }
        environment get_env() const noexcept { return {to_}; }

    private:
        aco_scheduler_t *to_;
    };

public:
    using scheduler_concept = execution::scheduler_t;
    explicit scheduler(aco_scheduler_t *open) noexcept : open_(open) {}
    arrival schedule() const noexcept { return arrival(open_); } /* completes in a task of the scheduler's thread */
    aco_scheduler_t *native_handle() const noexcept { return open_; }
    friend bool operator==(const scheduler &, const scheduler &) noexcept = default;

private:
    aco_scheduler_t *open_;
};

/* Opens the calling thread's scheduler, from construction to destruction on the same thread. Throws aco::error
 * (ENOMEM). */
class scheduler_opening {
public:
    scheduler_opening() : open_(aco_scheduler_open())
    {
        if (!open_)
            detail::refused();
    }
    scheduler_opening(const scheduler_opening &) = delete;
    scheduler_opening &operator=(const scheduler_opening &) = delete;
    ~scheduler_opening() { aco_scheduler_close(); }
    scheduler get() const noexcept { return scheduler(open_); }

private:
    aco_scheduler_t *open_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
