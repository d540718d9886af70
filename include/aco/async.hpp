/* Stackless coroutines: aco::async<T>, a coroutine of C++20, and aco::async_group, a task's group of them. C++20.
 * Header only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::async<int> ask(client &c)
 *   {
 *       co_await aco::async_sleep_for(10ms);
 *       co_return co_await c.ask("how many?"); // an awaitable of any library, or a sender
 *   }
 *   aco::async<> tell(client &c) { std::printf("%d\n", co_await ask(c)); }
 *   ...
 *   aco::async_group group; // in a task
 *   for (client &c : clients)
 *       group.spawn(tell(c));
 *   group.wait();           // runs the members, in turns, until all have ended
 *
 * A member waits without a stack: it costs its frame, which its compiler sizes and allocates. Many of them share the
 * task that waits for the group. This task runs them, first come, first served, and parks when none can run; other
 * tasks run meanwhile, and when the members have had 32 turns.
 *
 * co_await in an async<T> takes
 *   - another async<U>: it runs in the caller's place, and its result or exception comes back;
 *   - aco::async_sleep_for(), aco::async_sleep_until() and aco::async_yield();
 *   - async_receive(), async_send(), async_lock(), async_acquire(): what tasks wait for, and <aco/async_io.hpp> for
 *     descriptors;
 *   - an aco::task<U>: joins it, by a task that waits for the member;
 *   - any awaitable or sender, as aco::await() takes them. Wherever it completes, the member goes on in its group's
 *     task. So also aco::as_sender(f) (aco/sender.hpp), for all else that tasks wait for. Then a task waits for the
 *     member. Locks belong to that task: lock and unlock inside `f`.
 * The alignment of T is at most that of two pointers. A local variable of the coroutine must not need more than
 * malloc() gives, unless the compiler is clang with -fcoro-aligned-allocation.
 * A call that waits as tasks do (aco::sleep_for(), a generator that waits, channel.receive()) may be made too. It parks
 * the group's task, and so all its members.
 *
 * Cancelling and failures. The group belongs to a block. When the scope of its task ends, when a member throws, or by
 * cancel(), the group is stopped: what members wait for is asked to stop (aco/await.hpp), their sleeps end at once, and
 * these waits and later ones throw aco::cancelled. wait() returns when all members have ended, however long that takes.
 * It throws what the first failing member threw, or aco::cancelled if members were cancelled by the end of a scope.
 *
 * Threads. A group and its members belong to the thread of the task. */
#ifndef ACO_ASYNC_HPP
#define ACO_ASYNC_HPP

#include "sender.hpp"

#include "channel.hpp"
#include "detail/relay.h"
#include "sync.hpp"

#include <algorithm>
#include <vector>

namespace aco {
inline namespace ACO__CPP_KIND {

namespace detail {

class async_loop;

/* ---- Frames ------------------------------------------------------------------------------------------------------ */

/* The frames of coroutines that have ended, for the next ones of the size: of each size the last MOST that ended on the
 * thread, whichever thread they began on. A thread's end frees them. Sizes are those of malloc()'s blocks; a larger
 * frame is never kept. With a sanitizer none is, so that it sees each end of a frame. */
class frame_pool {
public:
    static void *get(std::size_t size)
    {
        const std::size_t i = index(size);
        if (is_off() || aco_unlikely(i >= SIZES))
            return ::operator new(size);
        list &l = lists[i];
        link *first = l.first;
        if (aco_unlikely(!first))
            return ::operator new(i * STEP + FIRST);
        l.first = first->next;
        l.room++;
        return first;
    }
    static void put(void *frame, std::size_t size) noexcept
    {
        const std::size_t i = index(size);
        if (is_off() || aco_unlikely(i >= SIZES))
            return ::operator delete(frame);
        list &l = lists[i];
        if (aco_unlikely(l.room == 0) && !has_room(l))
            return ::operator delete(frame);
        l.first = ::new (frame) link{l.first};
        l.room--;
    }

private:
    enum : std::size_t { MOST = 32, SIZES = 32, FIRST = 24, STEP = 16 }; /* at most 272 KiB for a thread */
    struct link {
        link *next;
    };
    struct list {
        link *first;
        std::size_t room; /* how many more it takes; 0 before the thread's first put() */
    };
    struct end_of_thread {
        ~end_of_thread()
        {
            is_over = true;
            for (list &l : lists) {
                l.room = 0;
                while (link *first = l.first) {
                    l.first = first->next;
                    ::operator delete(first);
                }
            }
        }
    };

    static constexpr bool is_off() noexcept
    {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_HWADDRESS__)
        return true;
#else
        return ACO__HAS_FEATURE(address_sanitizer) || ACO__HAS_FEATURE(thread_sanitizer) ||
               ACO__HAS_FEATURE(memory_sanitizer) || ACO__HAS_FEATURE(hwaddress_sanitizer);
#endif
    }
    static constexpr std::size_t index(std::size_t size) noexcept
    {
        return size <= FIRST ? 0 : (size - FIRST + STEP - 1) / STEP;
    }
    /* The list is full, or the thread's first put(). */
    ACO__COLD static bool has_room(list &full) noexcept
    {
        if (full.first || is_over)
            return false;
        static_cast<void>(&end); /* its destructor will run */
        for (list &l : lists)
            l.room = MOST;
        return true;
    }

    static inline thread_local list lists[SIZES]; /* all zero; only `end` has a destructor: access needs no check */
    static inline thread_local bool is_over; /* `end` has run */
    static inline thread_local end_of_thread end;
};

/* What a group keeps of a coroutine, in its promise. It is in one queue at most. */
struct async_member {
    async_member *next = nullptr;
    async_member *caller = nullptr; /* the coroutine that awaits it, or none */
    async_loop *loop = nullptr;
    std::exception_ptr error{};       /* with which it has ended */

    /* It is where the promise begins, whose alignment is no more than that of what stands before it in a frame. */
    std::coroutine_handle<> itself() noexcept { return std::coroutine_handle<async_member>::from_promise(*this); }
};

inline void place_woken(aco__relay_place_t *place) noexcept;

/* What runs members. On the stack of the group's task. */
class async_loop {
public:
    async_loop()
    {
        check(aco__answer_prepare(&answer_, "aco::async_group"));
        aco__relay_begin(&relay_, place_woken);
    }
    ~async_loop() { aco__relay_close(&relay_); }
    async_loop(const async_loop &) = delete;
    async_loop &operator=(const async_loop &) = delete;

    /* Any thread: the member can run. The loop may be gone when this returns. */
    void post(async_member *member) noexcept
    {
        async_member *head = inbox_.load(std::memory_order_relaxed);
        do
            member->next = head == &asleep_ ? nullptr : head;
        while (!inbox_.compare_exchange_weak(head, member, std::memory_order_acq_rel, std::memory_order_relaxed));
        if (head == &asleep_)
            aco__answer_tell(&answer_);
    }

    /* The loop's task: the member can run; or it can at a time. */
    void make_ready(async_member *member) noexcept
    {
        (first_ ? last_->next : first_) = member;
        last_ = member;
    }
    void make_ready_at(async_member *member, std::int64_t deadline)
    {
        sleepers_.push_back({deadline, sleeps_++, member});
        std::push_heap(sleepers_.begin(), sleepers_.end());
    }

    /* The loop's thread: the member's wait at a place is over. */
    void woken(async_member *member) noexcept
    {
        async_member *head = &asleep_;
        make_ready(member);
        if (aco_unlikely(is_parked_) && inbox_.compare_exchange_strong(head, nullptr, std::memory_order_acq_rel))
            aco__answer_tell(&answer_);
    }
    aco__relay_t *relay() noexcept { return &relay_; }
    /* Whether a call that could wait, but does not, shall give others a turn. */
    bool spends() noexcept { return ++calls_ % CALLS_PER_TURN == 0; }

    /* Whether the running member, which yields, goes on: it is alone, and has turns left. */
    bool goes_on() noexcept { return !first_ && --turns_ >= 0; }
    /* Whose turn it is when a member waits: the next one's, without a way back to run(); or run()'s, if nobody can run
     * or no turn is left. */
    std::coroutine_handle<> next() noexcept
    {
        async_member *member = first_;
        if (!member || --turns_ < 0)
            return std::noop_coroutine();
        first_ = member == last_ ? nullptr : member->next;
        return member->itself();
    }
    /* The same when a member yields that does not go on. */
    std::coroutine_handle<> next_after(async_member *member) noexcept
    {
        if (--turns_ < 0)
            return make_ready(member), std::noop_coroutine();
        last_->next = member; /* another one can run, else this one would go on */
        last_ = member;
        return std::exchange(first_, first_->next)->itself();
    }

    /* The member goes on in a coroutine that it has called, or when this one has ended. Below -O2 and with sanitizers
     * gcc makes no tail call of it: the stack would grow by each call in a loop. So from time to time it goes by way
     * of run(); that is no turn. */
    std::coroutine_handle<> directly(async_member *member) noexcept
    {
#ifndef __clang__
        if (aco_unlikely(--calls_left_ < 0)) {
            calls_left_ = MOST_CALLS;
            if (!first_)
                last_ = member;
            member->next = std::exchange(first_, member);
            turns_++;
            return std::noop_coroutine();
        }
#endif
        return member->itself();
    }

    /* The end of this member leaves it to whoever reads the result. */
    void keep(async_member *member) noexcept { kept_ = member; }
    void begin(async_member *member) noexcept
    {
        members_++;
        member->loop = this;
        make_ready(member);
    }

    /* The member, which nobody awaits, has ended. Returns whose turn it is. */
    std::coroutine_handle<> ended(async_member *member) noexcept
    {
        members_--;
        if (member->error && member != kept_)
            failed(member->error);
        if (member != kept_)
            member->itself().destroy();
        return next();
    }

    /* Runs the members until all have ended. */
    void run(const char *location) noexcept
    {
        while (members_) {
            collect();
            if (first_)
                give_turns();
            if (first_) {
                yield();
            } else if (members_) {
                is_parked_ = true;
                park(location);
                is_parked_ = false;
            }
        }
    }

    void stop(int error) noexcept
    {
        if (error_)
            return;
        error_ = error;
        stop_.request();
        aco__relay_end_all(&relay_, error);
        for (const sleeper &s : sleepers_)
            woken(s.member);
        sleepers_.clear();
    }
    std::size_t members() const noexcept { return members_; }
    stop_state *stop_source() noexcept { return &stop_; }
    /* Throws aco::cancelled if the group is stopped. */
    void check_stopped() const
    {
        if (error_)
            throw cancelled(error_ == ETIMEDOUT ? ETIMEDOUT : ECANCELED);
    }

    void finish()
    {
        if (failure_)
            std::rethrow_exception(std::exchange(failure_, nullptr));
        if (was_cancelled_ && is_scopes_end_) {
            errno = error_;
            wait_failed();
        }
    }

private:
    enum { MOST_TURNS = 32 }; /* of members, before the other tasks have one */
    enum { CALLS_PER_TURN = 64 };
    enum { MOST_CALLS = 64 }; /* and returns, before one goes by way of run() */
    struct sleeper {
        std::int64_t deadline;
        std::uint64_t number; /* equal deadlines: first come, first served */
        async_member *member;
        bool operator<(const sleeper &other) const noexcept /* the heap's first is due first */
        {
            return deadline != other.deadline ? deadline > other.deadline : number > other.number;
        }
    };

    void give_turns() noexcept
    {
        turns_ = MOST_TURNS;
        do
            next().resume();
        while (first_ && turns_ > 0);
    }

    /* Moves what other threads posted, and what is due, to the queue. */
    void collect() noexcept
    {
        async_member *posted = nullptr, *in_order = nullptr;
        if (!error_)
            settle_deadline();
        if (inbox_.load(std::memory_order_relaxed))
            posted = inbox_.exchange(nullptr, std::memory_order_acquire);
        while (posted) {
            async_member *next = std::exchange(posted->next, in_order);
            in_order = std::exchange(posted, next);
        }
        while (in_order)
            make_ready(std::exchange(in_order, in_order->next));
        if (!error_ && aco_check_cancelled() != 0)
            end_of_scope();
        if (sleepers_.empty())
            return;
        for (const std::int64_t now = aco_now(); !sleepers_.empty() && sleepers_.front().deadline <= now;) {
            make_ready(sleepers_.front().member);
            std::pop_heap(sleepers_.begin(), sleepers_.end());
            sleepers_.pop_back();
        }
    }

    void failed(const std::exception_ptr &by) noexcept
    {
        try {
            std::rethrow_exception(by);
        } catch (const cancelled &) {
            was_cancelled_ = true;
            if (error_)
                return;
        } catch (...) {
        }
        if (!failure_)
            failure_ = by;
        stop(ECANCELED);
    }

    /* If the scope's deadline is over: what came for members before it is in time. So the scheduler looks once more, as
     * before it ends a task's wait. Then the scope has ended. */
    static void settle_deadline() noexcept
    {
        const std::int64_t deadline = aco_deadline();
        if (aco_unlikely(deadline != ACO_FOREVER) && deadline <= aco_now())
            static_cast<void>(aco_sleep_until_at(deadline, "aco::async_group"));
    }

    void end_of_scope() noexcept
    {
        is_scopes_end_ = true;
        stop(errno);
    }

    /* Nothing can run: waits for a post, the first sleeper or the end of the scope. If one of these has come already,
     * other tasks have a turn all the same: else members whose waits are over at once would keep them from running. */
    void park(const char *location) noexcept
    {
        static const char what[] = "what members of an aco::async_group wait for";
        async_member *empty = nullptr;
        must(aco__answer_prepare(&answer_, "aco::async_group"));
        if (!inbox_.compare_exchange_strong(empty, &asleep_, std::memory_order_acq_rel))
            return yield();
        if (error_) /* the scope may have ended */
            return aco__answer_await(&answer_, what, location);
        if (aco__answer_wait(&answer_, "aco::async_group", what,
                             sleepers_.empty() ? ACO_FOREVER : sleepers_.front().deadline, location, nullptr) == 0)
            return;
        const int error = errno;
        async_member *head = &asleep_;
        if (!inbox_.compare_exchange_strong(head, nullptr, std::memory_order_acq_rel))
            aco__answer_await(&answer_, what, location); /* it was posted, and will be told */
        if (error != ETIMEDOUT)
            errno = error, end_of_scope();
    }

    aco__relay_t relay_; /* where members wait at places. First: it has the loop's address */
    static inline async_member asleep_; /* the inbox when the task parks */
    std::atomic<async_member *> inbox_{nullptr};
    async_member *first_ = nullptr, *last_ = nullptr; /* the queue */
    std::vector<sleeper> sleepers_;
    std::uint64_t sleeps_ = 0;
    std::size_t members_ = 0;
    async_member *kept_ = nullptr;
    int turns_ = 0; /* left */
    unsigned calls_ = 0;
    [[maybe_unused]] int calls_left_ = MOST_CALLS;
    int error_ = 0;
    bool is_parked_ = false; /* if so, the inbox may be asleep_ */
    bool is_scopes_end_ = false, was_cancelled_ = false;
    std::exception_ptr failure_;
    stop_state stop_;
    aco__answer_t answer_;
};

/* The operation of an await in a member. */
class member_operation {
public:
    explicit member_operation(async_member *member) noexcept : member_(member) {}
    void complete() noexcept { member_->loop->post(member_); }
    stop_state *stop() noexcept { return member_->loop->stop_source(); }
    [[noreturn]] void throw_stopped() const
    {
        member_->loop->check_stopped();
        throw cancelled(ECANCELED); /* it stopped by itself */
    }

private:
    async_member *member_;
};

/* An awaitable in a member: not ready, it gets the handle of a frame in the member's frame. */
template<class A>
class member_await {
    using awaiter = decltype(awaiter_of(std::declval<A>()));

public:
    member_await(async_member *member, A &&a) : awaiter_(awaiter_of(std::forward<A>(a))), frame_(member) {}
    bool await_ready() { return awaiter_.await_ready(); }
    bool await_suspend(std::coroutine_handle<>) { return suspend(awaiter_, frame_.get()); }
    returned<decltype(std::declval<awaiter_type<A> &>().await_resume())> await_resume()
    {
        if (frame_.promise.is_stopped())
            frame_.operation.throw_stopped();
        return awaiter_.await_resume();
    }

private:
    awaiter awaiter_;
    frame_of<member_operation> frame_;
};

/* A sender in a member. */
template<class S>
class member_send {
    using value = typename value_of_sender<S>::type;
    using kept = typename value_of_sender<S>::kept;
    using receiver = await_receiver<kept, member_operation>;

public:
    member_send(async_member *member, S &&sender)
        : outcome_{member_operation(member)}, operation_(connect(std::forward<S>(sender), receiver(&outcome_))) {}
    member_send(const member_send &) = delete;
    member_send &operator=(const member_send &) = delete;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) noexcept { start(operation_); }
    value await_resume()
    {
        if (outcome_.error)
            std::rethrow_exception(std::move(outcome_.error));
        if (outcome_.is_stopped)
            outcome_.operation.throw_stopped();
        if constexpr (!std::is_void_v<value>)
            return std::move(*outcome_.value);
    }

private:
    sender_outcome<kept, member_operation> outcome_;
    decltype(connect(std::declval<S>(), std::declval<receiver>())) operation_;
};

struct async_sleep {
    std::int64_t deadline;
};
struct async_yield_now {};

class member_sleep {
public:
    member_sleep(async_member *member, std::int64_t deadline) noexcept : member_(member), deadline_(deadline) {}
    bool await_ready() const
    {
        member_->loop->check_stopped();
        return false;
    }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>)
    {
        member_->loop->make_ready_at(member_, deadline_);
        return member_->loop->next();
    }
    void await_resume() const { member_->loop->check_stopped(); }

private:
    async_member *member_;
    std::int64_t deadline_;
};
class member_yield {
public:
    explicit member_yield(async_member *member) noexcept : member_(member) {}
    bool await_ready() const noexcept { return member_->loop->goes_on(); }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept
    {
        return member_->loop->next_after(member_);
    }
    void await_resume() const noexcept {}

protected:
    async_member *member_;
};

/* ---- Waits at places: of what tasks wait for, in the same queues ------------------------------------------------- */

/* A member's place. An awaiter that is made where it stays: the call that may have to wait is in its constructor. */
class member_place : public aco__relay_place_t {
public:
    member_place(const member_place &) = delete;
    member_place &operator=(const member_place &) = delete;
    bool await_ready() const noexcept { return !aco__relay_waits(this); }
    template<class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> member) const noexcept
    {
        return member.promise().loop->next();
    }

protected:
    explicit member_place(async_member *member) noexcept : member_(member)
    {
        waiter.queue = nullptr;
        as.previous = nullptr; /* and no error */
    }
    /* What the call has returned. */
    void began(int result)
    {
        if (aco_unlikely(result < 0))
            as.error = errno;
    }
    /* Throws, if the wait has failed. */
    void check_wait() const
    {
        if (aco_unlikely(as.error != 0)) {
            member_->loop->check_stopped();
            errno = as.error;
            wait_failed();
        }
    }
    async_member *member_;

private:
    friend void place_woken(aco__relay_place_t *place) noexcept;
};

inline void place_woken(aco__relay_place_t *place) noexcept
{
    async_member *member = static_cast<member_place *>(place)->member_;
    member->loop->woken(member);
}

template<class T>
class member_receive : public member_place {
public:
    member_receive(async_member *member, aco_channel_t *channel) : member_place(member)
    {
        began(aco__relay_receive(member->loop->relay(), this, channel, &element_.bytes));
    }
    std::optional<T> await_resume()
    {
        if (as.error == EPIPE)
            return std::nullopt;
        check_wait();
        const taken end{element_};
        return std::optional<T>(std::move(element_.element()));
    }

private:
    struct taken {
        carried<T> &element;
        ~taken() { element.drop(); }
    };
    carried<T> element_;
};

/* Into a variable; false: the channel is closed. */
template<class T>
class member_receive_into : public member_place {
public:
    member_receive_into(async_member *member, aco_channel_t *channel, T &to) : member_place(member), to_(to)
    {
        began(aco__relay_receive(member->loop->relay(), this, channel, to_.bytes(to)));
    }
    bool await_resume()
    {
        if (as.error == EPIPE)
            return false;
        check_wait();
        to_.arrived();
        return true;
    }

private:
    struct directly {
        explicit directly(T &) noexcept {}
        static void *bytes(T &to) noexcept { return erase(to); }
        void arrived() const noexcept {}
    };
    struct by_move {
        explicit by_move(T &variable) noexcept : to(&variable) {}
        T *to;
        carried<T> element{};
        void *bytes(T &) noexcept { return &element.bytes; }
        void arrived() noexcept
        {
            *to = std::move(element.element());
            element.drop();
        }
    };
    std::conditional_t<std::is_trivially_copyable_v<T>, directly, by_move> to_;
};

template<class T>
class member_channel_send : public member_place {
public:
    member_channel_send(async_member *member, aco_channel_t *channel, T &element)
        : member_place(member), element_(std::move(element))
    {
        began(aco__relay_send(member->loop->relay(), this, channel, element_.bytes(element)));
    }
    bool await_resume()
    {
        element_.ended(as.error == 0);
        if (as.error == EPIPE)
            return false;
        check_wait();
        return true;
    }

private:
    struct directly {
        explicit directly(T &&) noexcept {}
        static void *bytes(T &from) noexcept { return erase(from); }
        void ended(bool) const noexcept {}
    };
    struct by_move {
        explicit by_move(T &&from) : element(std::move(from)) {}
        sending<T> element;
        void *bytes(T &) noexcept { return element.bytes(); }
        void ended(bool was_sent) noexcept { element.was_sent = was_sent; } /* if not, it goes back */
    };
    std::conditional_t<std::is_trivially_copyable_v<T>, directly, by_move> element_;
};

class member_lock : public member_place {
public:
    member_lock(async_member *member, mutex &m) : member_place(member), mutex_(m)
    {
        began(aco__relay_lock(member->loop->relay(), this, m.native_handle()));
    }
    std::unique_lock<mutex> await_resume()
    {
        check_wait();
        return std::unique_lock<mutex>(mutex_, std::adopt_lock);
    }

private:
    mutex &mutex_;
};

class member_acquire : public member_place {
public:
    member_acquire(async_member *member, aco_semaphore_t *semaphore) : member_place(member)
    {
        began(aco__relay_acquire(member->loop->relay(), this, semaphore));
    }
    void await_resume() const { check_wait(); }
};

/* What the calls below return. Each makes its awaiter in the member's frame. */
template<class T>
struct async_channel_receive {
    aco_channel_t *channel;
    auto in_member(async_member *member) const { return member_receive<T>(member, channel); }
};
template<class T>
struct async_channel_receive_into {
    aco_channel_t *channel;
    T *to;
    auto in_member(async_member *member) const { return member_receive_into<T>(member, channel, *to); }
};
template<class T>
struct async_channel_send {
    aco_channel_t *channel;
    T *element;
    auto in_member(async_member *member) const { return member_channel_send<T>(member, channel, *element); }
};
template<class T>
struct async_channel_send_copy {
    aco_channel_t *channel;
    T element;
    auto in_member(async_member *member) { return member_channel_send<T>(member, channel, element); }
};
struct async_mutex_lock {
    mutex *m;
    auto in_member(async_member *member) const { return member_lock(member, *m); }
};
struct async_semaphore_acquire {
    aco_semaphore_t *semaphore;
    auto in_member(async_member *member) const { return member_acquire(member, semaphore); }
};

} // namespace detail

template<class T = void>
class async;

/* Runs one coroutine in the calling task, and returns its result or throws its exception. Throws aco::error with EPERM
 * outside tasks. */
template<class T>
T await(async<T> member, const char *location = ACO__CALLER);

namespace detail {

template<class X>
inline constexpr bool is_task = false;
template<class T>
inline constexpr bool is_task<task<T>> = true;
template<class X>
inline constexpr bool is_async = false;
template<class T>
inline constexpr bool is_async<async<T>> = true;

template<class T>
class member_call;

class async_promise : public async_member {
public:
    struct ends {
        bool await_ready() const noexcept { return false; }
        template<class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept
        {
            async_member &member = ended.promise();
            return member.caller ? member.loop->directly(member.caller) : member.loop->ended(&member);
        }
        void await_resume() const noexcept {}
    };

    static void *operator new(std::size_t size) { return frame_pool::get(size); }
    static void operator delete(void *frame, std::size_t size) noexcept { frame_pool::put(frame, size); }
#ifdef __clang__ /* it calls these with -fcoro-aligned-allocation */
    static void *operator new(std::size_t size, std::align_val_t alignment)
    {
        return is_aligned_more(alignment) ? ::operator new(size, alignment) : frame_pool::get(size);
    }
    static void operator delete(void *frame, std::size_t size, std::align_val_t alignment) noexcept
    {
        if (is_aligned_more(alignment))
            ::operator delete(frame, alignment);
        else
            frame_pool::put(frame, size);
    }
    static bool is_aligned_more(std::align_val_t alignment) noexcept
    {
        return static_cast<std::size_t>(alignment) > __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    }
#endif

    std::suspend_always initial_suspend() const noexcept { return {}; }
    ends final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { error = caught(); }

    template<class X>
    auto await_transform(X &&x)
    {
        using type = std::remove_cvref_t<X>;
        if constexpr (is_async<type>)
            return member_call<typename type::value_type>(loop, std::move(x));
        else if constexpr (std::is_same_v<type, async_sleep>)
            return member_sleep(this, x.deadline);
        else if constexpr (std::is_same_v<type, async_yield_now>)
            return member_yield(this);
        else if constexpr (requires(async_member *member) { x.in_member(member); })
            return x.in_member(this);
        else if constexpr (is_task<type>)
            return join(x);
        else if constexpr (detail::awaiter<awaiter_type<X>>)
            return member_await<X>(this, std::forward<X>(x));
        else if constexpr (sender<X>)
            return member_send<X>(this, std::forward<X>(x));
        else
            static_assert(no<X>, "co_await in an aco::async: the operand is none of what <aco/async.hpp> lists");
    }

private:
    template<class T>
    auto join(task<T> &t)
    {
        auto call = [&t] { return t.join(); };
        using joins = task_sender<decltype(call)>;
        return member_send<joins>(this, joins(std::in_place, call));
    }
};

template<class T>
class async_result : public async_promise {
public:
    template<class From>
    void return_value(From &&from)
    {
        value_.emplace(std::forward<From>(from));
    }
    T take()
    {
        if (error)
            std::rethrow_exception(std::move(error));
        return std::move(*value_);
    }

private:
    std::optional<T> value_;
};
template<>
class async_result<void> : public async_promise {
public:
    void return_void() const noexcept {}
    void take()
    {
        if (error)
            std::rethrow_exception(std::move(error));
    }
};

} // namespace detail

/* A coroutine that has not begun, and its result. It begins when it is awaited in another one, spawned in a group, or
 * given to aco::await(). An object that was none of these is destroyed unrun. Movable. */
template<class T>
class [[nodiscard]] async {
    static_assert(!std::is_reference_v<T>, "an aco::async keeps its result: it cannot be a reference");

public:
    using value_type = T;
    class promise_type : public detail::async_result<T> {
    public:
        async get_return_object() noexcept
        {
            static_assert(alignof(promise_type) <= 2 * sizeof(void *), "an aco::async's result has a larger alignment");
            return async(*this);
        }
    };

    async(async &&from) noexcept : promise_(std::exchange(from.promise_, nullptr)) {}
    async &operator=(async &&from) noexcept
    {
        std::swap(promise_, from.promise_);
        return *this;
    }
    ~async()
    {
        if (promise_)
            promise_->itself().destroy();
    }

private:
    template<class>
    friend class detail::member_call;
    friend class async_group;
    template<class U>
    friend U await(async<U> member, const char *location);
    explicit async(promise_type &promise) noexcept : promise_(&promise) {}
    promise_type *promise_;
};

namespace detail {

/* A member awaits another coroutine. */
template<class T>
class member_call {
public:
    member_call(async_loop *loop, async<T> &&callee) noexcept : loop_(loop), callee_(std::move(callee)) {}
    bool await_ready() const noexcept { return false; }
    template<class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> member) noexcept
    {
        callee_.promise_->caller = &member.promise();
        callee_.promise_->loop = loop_;
        return loop_->directly(callee_.promise_);
    }
    T await_resume() { return callee_.promise_->take(); }

private:
    async_loop *loop_;
    async<T> callee_;
};

} // namespace detail

/* These wait in an aco::async. A sleep whose time has come lasts until other tasks have had a turn. */
template<class Rep, class Period>
auto async_sleep_for(const std::chrono::duration<Rep, Period> &time)
{
    return detail::async_sleep{detail::deadline_in(time)};
}
template<class Clock, class Duration>
auto async_sleep_until(const std::chrono::time_point<Clock, Duration> &when)
{
    return detail::async_sleep{detail::deadline_at(when)};
}
/* The same as the calls of aco::channel, aco::mutex and aco::semaphore: members and tasks wait in one queue, first
 * come, first served. async_receive() gives a std::optional<T>, or with a variable a bool, async_send() a bool,
 * async_lock() a std::unique_lock. Each call is the operand of a co_await. A mutex that a member locks belongs to the
 * group's task: no check tells its members apart. */
template<class T>
[[nodiscard]] auto async_receive(channel<T> &from)
{
    return detail::async_channel_receive<T>{from.native_handle()};
}
template<class T>
[[nodiscard]] auto async_receive(channel<T> &from, std::type_identity_t<T> &element)
{
    return detail::async_channel_receive_into<T>{from.native_handle(), std::addressof(element)};
}
template<class T>
[[nodiscard]] auto async_send(channel<T> &to, std::type_identity_t<T> &&element)
{
    return detail::async_channel_send<T>{to.native_handle(), std::addressof(element)};
}
template<class T>
[[nodiscard]] auto async_send(channel<T> &to, const std::type_identity_t<T> &element)
{
    return detail::async_channel_send_copy<T>{to.native_handle(), element};
}
[[nodiscard]] inline auto async_lock(mutex &m) noexcept
{
    return detail::async_mutex_lock{&m};
}
[[nodiscard]] inline auto async_acquire(semaphore &s) noexcept
{
    return detail::async_semaphore_acquire{s.native_handle()};
}
/* Gives the other members that can run, and the other tasks, a turn. Does not fail. */
inline auto async_yield() noexcept { return detail::async_yield_now(); }

/* A group of the running task: a local variable on a private stack. */
class async_group {
public:
    /* Throws aco::error with EPERM outside tasks, EINVAL on a share stack. */
    async_group()
    {
        if (aco__may_move(this))
            detail::refused(EINVAL, "aco::async_group", nullptr, "it is on a share stack");
    }
    async_group(const async_group &) = delete;
    async_group &operator=(const async_group &) = delete;
    /* Members that have not ended are cancelled and waited for; what they throw is dropped. */
    ~async_group()
    {
        cancel();
        loop_.run("aco::async_group::~async_group");
    }

    /* Adds a member, which runs during wait(). Members may add others. Throws aco::error with EINVAL if `member` is
     * empty (moved from). */
    void spawn(async<> member)
    {
        if (!member.promise_)
            detail::refused(EINVAL, "aco::async_group::spawn", nullptr, "the coroutine was moved from");
        loop_.begin(std::exchange(member.promise_, nullptr));
    }

    /* Runs the members until all have ended. Throws as the comment above says. */
    void wait(const char *location = ACO__CALLER)
    {
        loop_.run(location);
        loop_.finish();
    }

    void cancel() noexcept { loop_.stop(ECANCELED); } /* stops the members, as the end of a scope does */
    std::size_t size() const noexcept { return loop_.members(); } /* members that have not ended */

private:
    template<class T>
    friend T await(async<T> member, const char *location);
    detail::async_loop loop_;
};

template<class T>
T await(async<T> member, const char *location)
{
    async_group group;
    group.loop_.keep(member.promise_);
    group.loop_.begin(member.promise_);
    group.wait(location);
    return member.promise_->take();
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
