/* Channels of typed elements between the tasks of one thread, and select, in C++17 and later: <aco/scheduler.h>.
 * <aco/task.hpp> includes this header, and says what C++ adds to the C calls. <aco/threads.hpp> has channels between
 * threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ACO_CHANNEL_HPP
#define ACO_CHANNEL_HPP

#include "scope.hpp"

namespace aco {
inline namespace ACO__CPP_KIND {

/* Whether a T can be moved by copying its bytes to another place, if nobody uses the bytes in the first place again.
 * Specialise it for types of your own that can: channels then need no memory for them. */
template<class T>
struct is_trivially_relocatable : std::is_trivially_copyable<T> {};
template<class T>
struct is_trivially_relocatable<std::unique_ptr<T>> : std::true_type {};

namespace detail {

/* A C channel carries bytes: the element's own if it is trivially relocatable, else those of a pointer to an allocated
 * element. Whoever holds the bytes owns the element. */
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

/* How a call of a channel ended. */
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

/* The C calls of one kind of channel. */
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

    /* Waits while the channel is full. Returns false if the channel is closed. An element that was not sent, for that
     * or another reason, is still in `element`. */
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

    /* Waits while the channel is empty. Returns nullopt, or false, if the channel is closed and empty. */
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

    /* These do not wait, or wait with a limit. They return done, closed, would_wait or timed_out. */
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

    /* Closes the channel. Returns false if it was closed before. */
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
 * destructor destroys the elements inside, and aborts if tasks wait for the channel. Calls of an empty object (moved
 * from) fail with EINVAL. */
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
    static int try_select(aco_select_case_t *c, int n) { return aco_try_select(c, n); }
    static int select_until(aco_select_case_t *c, int n, std::int64_t deadline, const char *location)
    {
        return aco_select_until_at(c, n, deadline, location);
    }
};

/* The type of the cases: that of local channels if all channels are local. */
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
    static_assert(std::is_invocable_v<F &, std::optional<T>>,
                  "aco::on_receive: the callable is called as f(std::optional<T>)");
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
    static_assert(std::is_invocable_v<F &, bool>, "aco::on_send: the callable is called as f(bool)");
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

/* Returns the index of the case that was done. -1: the time is over; or with `tries`, which means not to wait, no case
 * is ready. */
template<std::size_t... I, class... Cases>
int select(std::index_sequence<I...>, bool tries, std::int64_t deadline, Cases &...cases)
{
    static const char location[] = "aco::select";
    using c_case = typename common_case<Cases...>::type;
    using calls = select_calls<c_case>;
    c_case c[sizeof...(Cases)] = {};
    (cases.prepare(c[I]), ...);
    const int chosen = tries ? calls::try_select(c, sizeof...(Cases))
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

/* int, if no case is an lvalue: after a call, a case no longer has an element to send. */
template<class... Cases>
using case_index = std::enable_if_t<(!std::is_lvalue_reference_v<Cases> && ...), int>;

} // namespace detail

/* A case of select(): receives from the channel, then calls f(std::optional<T>), with nullopt if the channel is closed
 * and empty. */
template<class T, class F, class Api>
detail::receive_case<T, F, Api> on_receive(detail::any_channel<T, Api> &from, F &&f)
{
    return {from, std::forward<F>(f)};
}

/* A case of select(): sends the element, then calls f(bool), with false if the channel is closed. An element that was
 * not sent is still in `element`. */
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

/* Does one of the cases, as aco_select(), calls its function, and returns its index. A case serves only the call in
 * which it is made: one with a name does not compile.
 *
 *   aco::select(aco::on_receive(words, [&](std::optional<std::string> word) { ... }),
 *               aco::on_send(numbers, 7, [&](bool sent) { ... })); */
template<class... Cases>
detail::case_index<Cases...> select(Cases &&...cases)
{
    return detail::select(std::index_sequence_for<Cases...>(), false, ACO_FOREVER, cases...);
}
/* The same with a limit, or without waiting. They return -1 if the time is over, or if no case is ready. */
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
