/* Asio in tasks, for C++20 and later: operations of Asio, and of libraries on top of it, where only the task waits.
 * Header only; link acorn.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   asio::io_context context(1);
 *   aco::asio_loop loop(context); // aco_run() waits in the context
 *   aco::spawn([&] {
 *       asio::ip::tcp::socket peer(context);
 *       char answer[100];
 *       peer.async_connect(endpoint, aco::use_task);
 *       asio::async_write(peer, asio::buffer("hello\n", 6), aco::use_task);
 *       std::size_t n = peer.async_read_some(asio::buffer(answer), aco::use_task);
 *       ...
 *   });
 *   loop.run();
 *
 * The header is for standalone Asio 1.18 or newer; with ACO_ASIO_BOOST defined before it is included, for Boost.Asio
 * 1.74 or newer. Units of both kinds may be linked together. Below, `net` is the namespace asio or boost::asio.
 *
 * Who runs the context. aco::asio_loop is for a context of the same thread. A context that other threads run needs
 * nothing here: handlers wake the task from any thread. A program that calls net::io_context::run() itself has tasks
 * run inside by aco::asio_guest. That a task waits for an operation is no deadlock.
 *
 * <aco/task.hpp> says what is thrown when, and what cancelling is. Simulations (aco/sim.h) do not simulate Asio. */
#ifndef ACO_ASIO_HPP
#define ACO_ASIO_HPP

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "acorn: <aco/asio.hpp> needs C++20 or later"
#endif

#include "task.hpp"
#include "threads.h" /* for its aco__answer_t; acorn_threads need not be linked */

#ifdef ACO_ASIO_BOOST
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/version.hpp>
#include <boost/system/system_error.hpp>
#define ACO__ASIO boost::asio
#define ACO__ASIO_SYSTEM boost::system
#define ACO__ASIO_KIND with_boost_asio
#define ACO__ASIO_VERSION BOOST_ASIO_VERSION
#else
#include <asio/async_result.hpp>
#include <asio/bind_executor.hpp>
#include <asio/dispatch.hpp>
#include <asio/error.hpp>
#include <asio/execution.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/system_error.hpp>
#include <asio/version.hpp>
#define ACO__ASIO asio
#define ACO__ASIO_SYSTEM asio
#define ACO__ASIO_KIND with_asio
#define ACO__ASIO_VERSION ASIO_VERSION
#endif
#if ACO__ASIO_VERSION < 101800
#error "acorn: <aco/asio.hpp> needs Asio 1.18 or later (Boost 1.74)"
#endif
#define ACO__ASIO_CANCELS (ACO__ASIO_VERSION >= 101900)
#if ACO__ASIO_CANCELS
#ifdef ACO_ASIO_BOOST
#include <boost/asio/cancellation_signal.hpp>
#else
#include <asio/cancellation_signal.hpp>
#endif
#endif

#include <atomic>
#include <concepts>
#include <thread>
#include <tuple>

namespace aco {
inline namespace ACO__CPP_KIND {

namespace detail {
inline namespace ACO__ASIO_KIND {
namespace net = ::ACO__ASIO;
using asio_error_code = ::ACO__ASIO_SYSTEM::error_code;
} // namespace ACO__ASIO_KIND
} // namespace detail

inline namespace ACO__ASIO_KIND {

/* A completion token: the operation is begun, and the calling task waits until it has completed. The call returns what
 * the operation's handler would get after its error: nothing, a value, or a std::tuple of several. An error_code is
 * thrown as system_error of that library, an exception_ptr as the exception in it. `use_task[ec]` puts the error_code
 * into `ec` instead; it also tells success. A context that is destroyed before the operation has completed throws
 * net::error::operation_aborted, also with `ec`.
 *
 * Cancelling. In a scope that has ended no operation is begun: the call throws aco::cancelled. If the scope ends while
 * the task waits, the operation's cancellation slot gets cancellation_type::terminal, on the executor of the I/O
 * object; then the task waits for the completion, however long that takes, because the operation uses the task's stack.
 * An operation that succeeded all the same returns its result. One that did not throws aco::cancelled; with `ec` it
 * returns, with the error and how far it came, and the task's next wait throws. Operations that have no slot, and
 * those of Asio before 1.19 (Boost before 1.77), are not cancelled. Operations whose initiation has no get_executor()
 * get the cancellation on the task's thread, which must be the one that runs the context. If several threads run a
 * context, an object whose operations are cancelled needs a strand, as elsewhere in Asio.
 *
 * What an operation allocates by its handler's allocator is on the task's stack if there is room for it. In a task on a
 * share stack the operation is in the heap; neither I/O objects nor buffers may be local variables there.
 *
 * Throws aco::error with EPERM if the caller cannot wait (aco/scheduler.h); then nothing was begun. */
struct use_task_to_t {
    detail::asio_error_code *error;
};
struct use_task_t {
    use_task_to_t operator[](detail::asio_error_code &ec) const noexcept { return {&ec}; }
};
inline constexpr use_task_t use_task{};

} // namespace ACO__ASIO_KIND

namespace detail {
inline namespace ACO__ASIO_KIND {

inline constexpr char asio_what[] = "an operation of Asio";

/* Memory for one allocation at a time. */
struct asio_room {
    std::atomic<bool> is_used{false};
    alignas(std::max_align_t) unsigned char bytes[256];
};

/* Allocates there, or in the heap. */
template<class T>
class asio_allocator {
public:
    using value_type = T;
    explicit asio_allocator(asio_room &room) noexcept : room_(&room) {}
    template<class U>
    asio_allocator(const asio_allocator<U> &other) noexcept : room_(other.room_)
    {
    }
    T *allocate(std::size_t n)
    {
        if (n <= sizeof room_->bytes / sizeof(T) && alignof(T) <= alignof(std::max_align_t) &&
            !room_->is_used.exchange(true, std::memory_order_acquire))
            return reinterpret_cast<T *>(room_->bytes);
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T *p, std::size_t n) noexcept
    {
        if (reinterpret_cast<unsigned char *>(p) == room_->bytes)
            room_->is_used.store(false, std::memory_order_release);
        else
            std::allocator<T>().deallocate(p, n);
    }
    template<class U>
    bool operator==(const asio_allocator<U> &other) const noexcept
    {
        return room_ == other.room_;
    }

private:
    template<class U>
    friend class asio_allocator;
    asio_room *room_;
};

inline std::atomic<std::uint64_t> asio_runners{0};

/* What runs the tasks of this thread in or after handlers: an asio_loop or asio_guest. NULL: there is none. Its own
 * handlers may be called after its end, so they ask first whether it is still here: by its number, since the next one
 * may be made at its address. */
struct asio_runner {
    virtual void completed() noexcept = 0; /* the last that an operation's handler does: its task was told */
    virtual void woken() noexcept = 0; /* in a handler: another thread has posted something for the tasks */
    bool is_completing = false; /* a task is being told; then comes completed() */
    const std::uint64_t number = asio_runners.fetch_add(1, std::memory_order_relaxed);

protected:
    ~asio_runner() = default;
};
inline thread_local asio_runner *asio_runner_here = nullptr;

inline bool asio_is_here(std::uint64_t number) noexcept
{
    return asio_runner_here && asio_runner_here->number == number;
}

/* Any thread: there is news for the runner with this number, which runs in the context. */
inline void asio_wake(net::io_context &context, std::uint64_t number)
{
    net::post(context, [number] {
        if (asio_is_here(number))
            asio_runner_here->woken();
    });
}

/* A descriptor of another owner. */
struct asio_watched : net::posix::stream_descriptor {
    asio_watched(net::io_context &context, int fd) : net::posix::stream_descriptor(context)
    {
        if (fd >= 0)
            assign(fd);
    }
    ~asio_watched()
    {
        if (is_open())
            release();
    }
};

/* A task's wait for an operation. It has one holder, the handler, or two: a cancellation is on its way, too. The last
 * one to leave tells the task. */
struct asio_wait {
    aco__answer_t answer;
    std::atomic<int> holders{1};
    asio_room room;
#if ACO__ASIO_CANCELS
    bool is_scoped = false; /* else nothing cancels it, and Asio allocates no slot */
    net::cancellation_signal signal;
#endif

    void leave() noexcept
    {
        if (holders.fetch_sub(1, std::memory_order_acq_rel) != 1)
            return;
        asio_runner *const runner = asio_runner_here;
        if (runner)
            runner->is_completing = true;
        aco__answer_tell(&answer);
        if (runner)
            runner->completed();
    }
    void emit() noexcept
    {
#if ACO__ASIO_CANCELS
        if (holders.load(std::memory_order_acquire) == 2) /* a completed operation must not be cancelled */
            signal.emit(net::cancellation_type::terminal);
#endif
    }
    void await() noexcept { aco__answer_await(&answer, asio_what, ACO_PLACE); }
};

/* Cancels the operation when it is called, and leaves when it is destroyed. */
class asio_canceller {
public:
    explicit asio_canceller(asio_wait &wait) noexcept : wait_(&wait) {}
    asio_canceller(asio_canceller &&from) noexcept : wait_(std::exchange(from.wait_, nullptr)) {}
    ~asio_canceller()
    {
        if (wait_)
            wait_->leave();
    }
    void operator()() const noexcept { wait_->emit(); }

private:
    asio_wait *wait_;
};

/* The executor on which operations of an initiation are cancelled. */
struct asio_no_executor {};
template<class Initiation>
auto asio_executor_of(const Initiation &initiation) noexcept
{
    if constexpr (requires { initiation.get_executor(); })
        return initiation.get_executor();
    else
        return asio_no_executor();
}

template<class Executor>
void asio_cancel(asio_wait &wait, const Executor &executor) noexcept
{
    int handler_alone = 1;
    if (!ACO__ASIO_CANCELS || !wait.holders.compare_exchange_strong(handler_alone, 2))
        return; /* it completes */
    asio_canceller canceller(wait);
    if constexpr (std::same_as<Executor, asio_no_executor>) {
        canceller();
    } else {
        try {
            net::dispatch(executor, std::move(canceller));
        } catch (...) { /* no memory: it is not cancelled */
        }
    }
}

struct asio_no_error {};

/* An operation with the signature void(Error, Values...), or void(Values...). */
template<class Error, class... Values>
struct asio_operation : asio_wait {
    using error_type = Error;
    std::optional<std::tuple<Error, Values...>> outcome; /* none: its handler was destroyed */

    template<class... From>
    void complete(From &&...from)
    {
        if constexpr (std::same_as<Error, asio_no_error>)
            outcome.emplace(asio_no_error(), std::forward<From>(from)...);
        else
            outcome.emplace(std::forward<From>(from)...);
    }

    /* Returns or throws how it ended. `scope_error`: errno of a wait that failed; 0: it did not. */
    auto result(asio_error_code *ec, int scope_error)
    {
        if (aco_unlikely(!outcome))
            failed(scope_error, asio_error_code(net::error::operation_aborted));
        if constexpr (!std::same_as<Error, asio_no_error>) {
            Error &error = std::get<0>(*outcome);
            if constexpr (std::same_as<Error, asio_error_code>)
                if (ec)
                    *ec = error;
            if (aco_unlikely(error && !ec))
                failed(scope_error, error);
        }
        if constexpr (sizeof...(Values) == 1)
            return std::get<1>(std::move(*outcome));
        else if constexpr (sizeof...(Values) > 1)
            return std::apply([](Error &, Values &...values) { return std::tuple<Values...>(std::move(values)...); },
                              *outcome);
    }

private:
    [[noreturn]] ACO__COLD static void failed(int scope_error, const std::exception_ptr &error)
    {
        if (scope_error) {
            errno = scope_error;
            wait_failed();
        }
        std::rethrow_exception(error);
    }
    [[noreturn]] ACO__COLD static void failed(int scope_error, const asio_error_code &error)
    {
        if (!scope_error)
            throw ::ACO__ASIO_SYSTEM::system_error(error);
        failed(scope_error, nullptr);
    }
};

/* The handler of the operation that a task waits for. */
template<class Operation>
class asio_handler {
public:
    using allocator_type = asio_allocator<char>;
    explicit asio_handler(Operation &operation) noexcept : operation_(&operation) {}
    asio_handler(asio_handler &&from) noexcept : operation_(std::exchange(from.operation_, nullptr)) {}
    asio_handler &operator=(asio_handler &&) = delete;
    ~asio_handler()
    {
        if (operation_)
            operation_->leave();
    }
    template<class... From>
    void operator()(From &&...from)
    {
        operation_->complete(std::forward<From>(from)...);
        std::exchange(operation_, nullptr)->leave();
    }
    allocator_type get_allocator() const noexcept { return allocator_type(operation_->room); }
#if ACO__ASIO_CANCELS
    using cancellation_slot_type = net::cancellation_slot;
    cancellation_slot_type get_cancellation_slot() const noexcept
    {
        return operation_->is_scoped ? operation_->signal.slot() : cancellation_slot_type();
    }
#endif

private:
    Operation *operation_;
};

template<class Signature>
struct asio_signature;
template<class R, class... Values>
struct asio_signature<R(Values...)> {
    using operation = asio_operation<asio_no_error, std::decay_t<Values>...>;
};
template<class R, class... Values>
struct asio_signature<R(asio_error_code, Values...)> {
    using operation = asio_operation<asio_error_code, std::decay_t<Values>...>;
};
template<class R, class... Values>
struct asio_signature<R(std::exception_ptr, Values...)> {
    using operation = asio_operation<std::exception_ptr, std::decay_t<Values>...>;
};

template<class Operation, class Initiation, class... Args>
void asio_begin(Operation &operation, Initiation &&initiation, Args &&...args)
{
    try {
        std::forward<Initiation>(initiation)(asio_handler<Operation>(operation), std::forward<Args>(args)...);
    } catch (...) {
        operation.await(); /* somebody may have kept the handler */
        throw;
    }
}

/* For any caller. */
template<class Operation, class Initiation, class... Args>
auto asio_call(Operation &operation, asio_error_code *ec, Initiation &&initiation, Args &&...args)
{
    if (aco__answer_prepare(&operation.answer, "aco::use_task") != 0)
        refused();
    check(aco_check_cancelled());
#if ACO__ASIO_CANCELS
    operation.is_scoped = aco__in_scope() != 0;
#endif
    const auto executor = asio_executor_of(initiation);
    asio_begin(operation, std::forward<Initiation>(initiation), std::forward<Args>(args)...);
    int error = 0;
    if (aco_unlikely(aco__answer_wait(&operation.answer, "aco::use_task", asio_what, ACO_FOREVER, ACO_PLACE, nullptr) !=
                     0)) {
        error = errno;
        asio_cancel(operation, executor);
        operation.await();
    }
    return operation.result(ec, error);
}

/* What use_task makes of operations with this signature. */
template<class Signature>
struct asio_result {
    using operation = typename asio_signature<Signature>::operation;
    using return_type = decltype(std::declval<operation &>().result(nullptr, 0));

    template<class Initiation, class... Args>
    static return_type initiate(Initiation &&initiation, use_task_t, Args &&...args)
    {
        return call(nullptr, std::forward<Initiation>(initiation), std::forward<Args>(args)...);
    }
    template<class Initiation, class... Args>
    static return_type initiate(Initiation &&initiation, use_task_to_t token, Args &&...args)
    {
        static_assert(std::same_as<typename operation::error_type, asio_error_code>,
                      "use_task[ec] is for operations whose handler gets an error_code first");
        return call(token.error, std::forward<Initiation>(initiation), std::forward<Args>(args)...);
    }

private:
    template<class... Args>
    static return_type call(asio_error_code *ec, Args &&...args)
    {
        operation on_stack;
        if (aco_unlikely(!aco__answer_prepare_plainly(&on_stack.answer)))
            return aco__may_move(&on_stack) ? asio_call(*std::make_unique<operation>(), ec, std::forward<Args>(args)...)
                                            : asio_call(on_stack, ec, std::forward<Args>(args)...);
        asio_begin(on_stack, std::forward<Args>(args)...);
        on_stack.await();
        return on_stack.result(ec, 0);
    }
};

#if !ACO__ASIO_CANCELS
/* The same for bind_executor(executor, use_task). */
template<class Executor, class Signature>
struct asio_bound_result : asio_result<Signature> {
    template<class Initiation, class Token, class... Args>
    static auto initiate(Initiation &&initiation, net::executor_binder<Token, Executor> token, Args &&...args)
    {
        auto begin = [&](auto &&handler, auto &&...rest) {
            std::forward<Initiation>(initiation)(net::bind_executor(token.get_executor(), std::move(handler)),
                                                 std::forward<decltype(rest)>(rest)...);
        };
        return asio_result<Signature>::initiate(begin, token.get(), std::forward<Args>(args)...);
    }
};
#endif

} // namespace ACO__ASIO_KIND
} // namespace detail

inline namespace ACO__ASIO_KIND {

/* ---- A context of the same thread -------------------------------------------------------------------------------- */

/* As long as it lives, aco_run() of the thread that made it waits in `context`, and runs its handlers in the root
 * context: by aco_on_idle() and aco_on_wake(), whose functions it sets. It ends outside aco_run(), before the context.
 * If the thread's tasks use acorn_io too, `poll_fd` is aco_io_poll_fd(), and work for the context. A handler by which
 * tasks wait may run them before it returns, so whoever calls it holds no lock that they use. No other thread runs the
 * context: the loop stops it when aco_run() has other work. */
class asio_loop final : detail::asio_runner {
public:
    /* Throws aco::error with EBUSY if the thread's scheduler is open: open it afterwards. Also net's system_error. */
    explicit asio_loop(detail::net::io_context &context, int poll_fd = -1)
        : context_(context), events_(context, poll_fd)
    {
        if (aco_on_wake(wake, this) != 0)
            detail::refused();
        if (aco_on_idle(idle, this) != 0) {
            const error failure;
            aco_on_wake(nullptr, nullptr);
            throw failure;
        }
        aco__idle_gives_turns(leave);
        detail::asio_runner_here = this;
    }
    asio_loop(const asio_loop &) = delete;
    asio_loop &operator=(const asio_loop &) = delete;
    /* Aborts the process if the scheduler is open, and in tasks and handlers. */
    ~asio_loop()
    {
        if (is_waiting_ || aco_get_co())
            detail::die("an aco::asio_loop ends inside aco_run()");
        detail::asio_runner_here = nullptr;
        detail::must(aco_on_idle(nullptr, nullptr));
        detail::must(aco_on_wake(nullptr, nullptr));
    }

    /* Runs tasks until none is left, as aco::run(). Throws what a handler has thrown: tasks that are left then stay as
     * they are, and run() may be called again. */
    void run()
    {
        if (aco_run() == 0)
            return;
        if (error_)
            std::rethrow_exception(std::exchange(error_, nullptr));
        detail::refused();
    }

private:
    static void wake(void *itself) noexcept
    {
        asio_loop *loop = static_cast<asio_loop *>(itself);
        detail::asio_wake(loop->context_, loop->number);
    }
    static void leave(void *itself) noexcept
    {
        asio_loop *loop = static_cast<asio_loop *>(itself);
        if (!loop->is_completing) /* else the task has its turn at once */
            loop->woken();
    }
    static int idle(void *itself, std::int64_t timeout_ns) noexcept
    {
        asio_loop *loop = static_cast<asio_loop *>(itself);
        try {
            return loop->step(timeout_ns);
        } catch (...) {
            loop->is_waiting_ = false;
            loop->error_ = detail::caught();
            errno = ECANCELED;
            return -1;
        }
    }
    /* aco_run() has something to do: the context is left. A task that runs the context itself is not disturbed; the
     * handler in which it has its turn leaves. */
    void woken() noexcept override
    {
        leaves_ = true;
        stop();
    }
    void stop() noexcept
    {
        if (is_waiting_ && !aco_get_co())
            context_.stop();
    }
    /* The task has its turn inside the handler, and the context goes on: that is cheaper than to leave it for each. */
    void completed() noexcept override
    {
        enum { MOST = 64 };
        const bool goes_on = aco__idle_turn() != 0;
        is_completing = false;
        if (!goes_on || leaves_)
            woken();
        else if (++completed_ % MOST == 0)
            stop();
    }

    /* Runs what is ready, and waits. Returns 0 if the context has no work. */
    int step(std::int64_t timeout_ns)
    {
        watch();
        for (int left = 2; left > 0; left--) { /* somebody may have stopped it */
            const bool ran = run_some(timeout_ns), had_stopped = restart_stopped();
            if (ran && (leaves_ || timeout_ns == 0)) {
                run_more();
                restart_stopped();
            }
            if (ran || !had_stopped)
                return 1;
        }
        return 0;
    }
    /* With its last work a context stops, too. The next step would find that out in vain, after a task has begun more.
     * Returns whether it had stopped. */
    bool restart_stopped()
    {
        const bool has_stopped = context_.stopped();
        if (has_stopped)
            context_.restart();
        return has_stopped;
    }
    /* Whether any handler has run. */
    bool run_some(std::int64_t timeout_ns)
    {
        if (timeout_ns == 0)
            return context_.poll_one() != 0;
        leaves_ = false;
        is_waiting_ = true;
        const std::size_t n =
            timeout_ns < 0 ? context_.run() : context_.run_for(std::chrono::nanoseconds(timeout_ns));
        is_waiting_ = false;
        return n != 0;
    }
    /* After one handler, or when the context was left for tasks: runs the handlers that are ready, if there were any
     * the last time. Else Asio looks for events in vain. */
    void run_more()
    {
        enum { MOST = 64, TRIES = 16 };
        if (!are_many_ && ++steps_ % TRIES != 0)
            return;
        int n = 0;
        while (n < MOST && context_.poll_one())
            n++;
        are_many_ = n > 0;
    }
    /* In each step anew: after acorn_io has looked for events. */
    void watch()
    {
        if (!events_.is_open() || is_watching_)
            return;
        is_watching_ = true;
        events_.async_wait(detail::asio_watched::wait_read, [this, was = number](const detail::asio_error_code &) {
            if (!detail::asio_is_here(was))
                return;
            is_watching_ = false;
            woken();
        });
    }

    detail::net::io_context &context_;
    detail::asio_watched events_;
    bool is_watching_ = false, are_many_ = false;
    bool is_waiting_ = false, leaves_ = false; /* it waits in the context; and shall return */
    unsigned steps_ = 0, completed_ = 0;
    std::exception_ptr error_;
};

/* As long as it lives, the tasks of the thread that made it run inside `context`, whose run() the program calls itself
 * on that thread: by aco_run_ready(). run() then lasts as long as there are tasks. It ends outside run(), before the
 * context. `poll_fd` as above. */
class asio_guest final : detail::asio_runner {
public:
    /* Throws as asio_loop(). */
    explicit asio_guest(detail::net::io_context &context, int poll_fd = -1)
        : context_(context), events_(context, poll_fd), deadline_(context)
    {
        soon();
        if (aco_on_wake(wake, this) != 0)
            detail::refused();
        detail::asio_runner_here = this;
    }
    asio_guest(const asio_guest &) = delete;
    asio_guest &operator=(const asio_guest &) = delete;
    ~asio_guest()
    {
        detail::asio_runner_here = nullptr;
        detail::must(aco_on_wake(nullptr, nullptr));
    }

    /* Has run() look after the tasks: to be called when a handler, or the program, has spawned or woken tasks. Tasks
     * that wait for operations by use_task, and calls of other threads, need none. */
    void soon()
    {
        if (is_posted_)
            return;
        detail::net::post(context_, [this, was = number] {
            if (detail::asio_is_here(was))
                step();
        });
        is_posted_ = true;
    }

private:
    static void wake(void *itself) noexcept
    {
        asio_guest *guest = static_cast<asio_guest *>(itself);
        detail::asio_wake(guest->context_, guest->number);
    }
    void woken() noexcept override { soon(); }
    /* The task runs at once: before a posted step Asio looks for events. But several tasks run in one step, if several
     * completed between the last two. */
    void completed() noexcept override
    {
        enum { TRIES = 16 };
        completed_++;
        if (is_stepping_)
            return;
        if (are_many_ || aco_get_co() || ++steps_ % TRIES == 0 || !run_tasks())
            soon();
    }
    void step()
    {
        is_posted_ = false;
        if (!run_tasks())
            detail::refused();
    }
    /* Returns false if that failed. */
    bool run_tasks()
    {
        std::int64_t next;
        are_many_ = std::exchange(completed_, 0) > 1;
        is_stepping_ = true;
        const int more = aco_run_ready(&next);
        is_stepping_ = false;
        if (more < 0)
            return false;
        if (more == 0) {
            work_.reset();
            deadline_.cancel();
            armed_ = ACO_FOREVER;
            if (events_.is_open())
                events_.cancel();
            is_watching_ = false;
            return true;
        }
        if (!work_)
            work_.emplace(context_.get_executor());
        watch();
        if (next < armed_)
            arm(next);
        return true;
    }
    void arm(std::int64_t next)
    {
        armed_ = next;
        deadline_.expires_after(std::chrono::nanoseconds(next - aco_now()));
        deadline_.async_wait([this, was = number](const detail::asio_error_code &error) {
            if (error || !detail::asio_is_here(was))
                return;
            armed_ = ACO_FOREVER;
            soon();
        });
    }
    void watch()
    {
        if (!events_.is_open() || is_watching_)
            return;
        is_watching_ = true;
        events_.async_wait(detail::asio_watched::wait_read, [this, was = number](const detail::asio_error_code &error) {
            if (error || !detail::asio_is_here(was))
                return;
            is_watching_ = false;
            soon();
        });
    }

    detail::net::io_context &context_;
    detail::asio_watched events_;
    detail::net::steady_timer deadline_;
    std::optional<detail::net::executor_work_guard<detail::net::io_context::executor_type>> work_;
    std::int64_t armed_ = ACO_FOREVER; /* when deadline_ ends */
    bool is_posted_ = false, is_watching_ = false, is_stepping_ = false, are_many_ = false;
    unsigned completed_ = 0, steps_ = 0;
};

/* ---- Handlers as tasks ------------------------------------------------------------------------------------------- */

/* The scheduler of the thread that makes it, for Asio's executors: each function that an executor gets runs as a
 * detached task there, so it may wait. Any thread may use the executors. The object opens the scheduler; it ends on the
 * same thread, outside tasks or in one, after its executors were used last and those functions have run. aco_run() does
 * not wait for functions to come: it ends when no task is left. An exception that leaves a function terminates the
 * process. I/O objects that are made with such an executor have a thread of Asio's own wait for their events. */
class asio_scheduler : public detail::net::execution_context {
public:
    class executor_type;

    /* `how`: options of the tasks. Throws aco::error with ENOMEM. */
    explicit asio_scheduler(const options &how = options())
        : how_(how), scheduler_(aco_scheduler_open()), thread_(std::this_thread::get_id())
    {
        if (!scheduler_)
            detail::refused();
    }
    ~asio_scheduler()
    {
        shutdown();
        destroy();
        detail::must(aco_scheduler_close());
    }
    executor_type get_executor() noexcept;

private:
    template<class F>
    void execute(F &&f)
    {
        using function = std::decay_t<F>;
        if (std::this_thread::get_id() == thread_) {
            spawn(std::forward<F>(f), how_).detach();
            return;
        }
        std::unique_ptr<sent_function<function>> sent(new sent_function<function>{*this, std::forward<F>(f)});
        if (aco_post(scheduler_, sent->arrived, sent.get()) != 0)
            detail::refused();
        sent.release();
    }
    template<class F>
    struct sent_function {
        asio_scheduler &to;
        F f;
        static void arrived(void *itself) noexcept
        {
            const std::unique_ptr<sent_function> sent(static_cast<sent_function *>(itself));
            aco::spawn([f = std::move(sent->f)]() mutable { std::move(f)(); }, sent->to.how_).detach();
        }
    };

    options how_;
    aco_scheduler_t *scheduler_;
    std::thread::id thread_;
};

/* An executor of Asio's: it never runs a function before execute() has returned. */
class asio_scheduler::executor_type {
public:
    template<class F>
    void execute(F &&f) const
    {
        scheduler_->execute(std::forward<F>(f));
    }
    detail::net::execution_context &query(detail::net::execution::context_t) const noexcept { return *scheduler_; }
    static constexpr detail::net::execution::blocking_t query(detail::net::execution::blocking_t) noexcept
    {
        return detail::net::execution::blocking.never;
    }
    bool operator==(const executor_type &) const noexcept = default;

private:
    friend class asio_scheduler;
    explicit executor_type(asio_scheduler &scheduler) noexcept : scheduler_(&scheduler) {}
    asio_scheduler *scheduler_;
};

inline asio_scheduler::executor_type asio_scheduler::get_executor() noexcept
{
    return executor_type(*this);
}

} // namespace ACO__ASIO_KIND
} // namespace ACO__CPP_KIND
} // namespace aco

/* How Asio finds what the token means. */
template<class R, class... Args>
class ACO__ASIO::async_result<aco::use_task_t, R(Args...)> : public aco::detail::asio_result<R(Args...)> {};
template<class R, class... Args>
class ACO__ASIO::async_result<aco::use_task_to_t, R(Args...)> : public aco::detail::asio_result<R(Args...)> {};
#if !ACO__ASIO_CANCELS /* there bind_executor() knows only tokens of the older kind */
template<class Token, class Executor, class R, class... Args>
    requires std::same_as<Token, aco::use_task_t> || std::same_as<Token, aco::use_task_to_t>
class ACO__ASIO::async_result<ACO__ASIO::executor_binder<Token, Executor>, R(Args...)>
    : public aco::detail::asio_bound_result<Executor, R(Args...)> {};
#endif

#endif
