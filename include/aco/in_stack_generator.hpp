/* In-stack generators for C++17 and later: a range of typed values, made by a function that runs on the stack of the
 * loop that consumes them. Header only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   void hanoi(aco::in_stack_yielder<int> &yield, int disc, int from, int to, int spare)
 *   {
 *       if (!disc)
 *           return;
 *       hanoi(yield, disc - 1, from, spare, to);
 *       yield(disc);
 *       hanoi(yield, disc - 1, spare, to, from);
 *   }
 *   ...
 *   aco::in_stack_generator moves([](aco::in_stack_yielder<int> &yield) { hanoi(yield, 3, 'a', 'b', 'c'); });
 *   for (int disc : moves)
 *       std::printf("%d ", disc);
 *
 * It is a generator as in <aco/in_stack_generator.h>, which has the rules:
 *   - An object is a local variable of the function that iterates over it, not of a C++20 coroutine. It can be neither
 *     copied nor moved.
 *   - While it lives, nothing that was put on the stack after it (a later generator, alloca(), an array of variable
 *     length) may be there when it makes a value or ends. The process aborts.
 *   - A generator must not be suspended in a catch block while its consumer enters or leaves one.
 *   - Opening aborts where aco_in_stack_open() does. Where the generator gets a stack of its own, the constructor
 *     throws std::bad_alloc or aborts without memory.
 * aco::generator (aco.hpp) has none of these rules; it takes more instructions for a value and a stack. */
#ifndef ACO_IN_STACK_GENERATOR_HPP
#define ACO_IN_STACK_GENERATOR_HPP

#include "../aco.hpp"
#include "in_stack_generator.h"

/* Compilers differ in what a switch keeps, so their instantiations have different names. */
#ifdef __clang__
#define ACO__IN_STACK_KIND in_stack_clang
#else
#define ACO__IN_STACK_KIND in_stack_gcc
#endif

namespace aco {
inline namespace ACO__CPP_KIND {
inline namespace ACO__IN_STACK_KIND {

template<class T>
class in_stack_yielder;
template<class T, class F>
class in_stack_generator;
} // namespace ACO__IN_STACK_KIND

namespace detail {

/* How a value crosses: itself, in a register, or its address. */
template<class T>
struct in_stack_value {
    static constexpr bool is_whole = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> &&
                                     !std::is_const_v<T> && sizeof(T) <= sizeof(void *);
    using reference = std::conditional_t<is_whole, T, T &>;

    ACO__FORCE_INLINE_MEMBER static void *sent(std::remove_reference_t<T> &value) noexcept
    {
        void *word = nullptr;
        if constexpr (is_whole)
            std::memcpy(static_cast<void *>(&word), &value, sizeof value);
        else
            word = erase(value);
        return word;
    }
    ACO__FORCE_INLINE_MEMBER static reference received(void *word) noexcept
    {
        if constexpr (is_whole) {
            T value;
            std::memcpy(&value, static_cast<void *>(&word), sizeof value);
            return value;
        } else {
            return *static_cast<pointer_to<T>>(word);
        }
    }
};

inline constexpr char in_stack_busy[] =
    "aco::in_stack_generator: something that was put on the stack after the generator is still there";

/* The T of a callable's parameter. */
template<class T, class R, class F>
T in_stack_made_by(R (F::*)(in_stack_yielder<T> &) const);
template<class T, class R, class F>
T in_stack_made_by(R (F::*)(in_stack_yielder<T> &));

#if ACO__ON_ONE_STACK
struct in_stack_place {
    void *sp;
    std::size_t zero;
};
ACO__FORCE_INLINE_MEMBER in_stack_place in_stack_here() noexcept
{
    in_stack_place here;
    ACO__SETTLE_STACK;
    ACO__STACK_POINTER(here.sp, here.zero);
    return here;
}
/* The memory of a generator's function, on the stack of the function in which `in_stack_room<…>{}` is written. */
template<std::size_t Size>
struct in_stack_room {
    in_stack_place before = in_stack_here();
    void *memory = __builtin_alloca_with_align(before.zero + Size, 128);
};
#else
template<std::size_t Size>
struct in_stack_room {
    in_stack_room() = default;
    in_stack_room(const in_stack_room &) = delete;
    in_stack_room &operator=(const in_stack_room &) = delete;
    ~in_stack_room() { ::operator delete(memory); }
    void *memory = ::operator new(Size);
};
#endif

/* The switches. With ACO__IN_STACK_NEXT, ends and injected calls arrive elsewhere than values, so that neither side
 * tests what it gets. Else they are those of C. */
#if defined(ACO__IN_STACK_NEXT) && ACO__ON_ONE_STACK
#define ACO__IN_STACK_APART 1
#else
#define ACO__IN_STACK_APART 0
#endif

} // namespace detail

inline namespace ACO__IN_STACK_KIND {

/* The argument of a generator's function: its side. The function may pass it on by reference, at any depth of calls. */
template<class T>
class in_stack_yielder {
public:
    in_stack_yielder(const in_stack_yielder &) = delete;
    in_stack_yielder &operator=(const in_stack_yielder &) = delete;

    /* Makes the next value. A value that the consumer gets by reference stays as it is until it asks for the next. */
    ACO__FORCE_INLINE_MEMBER void operator()(T value)
    {
        void *word = detail::in_stack_value<T>::sent(value);
        ACO__COMPUTED(word);
#if ACO__IN_STACK_APART
        void *pc = side_.aco__peer.pc, *bp = side_.aco__peer.bp;
        register void *base ACO__PEER_BASE = side_.aco__peer.base;
        ACO__SETTLE_STACK;
        ACO__IN_STACK_VALUE(injected);
        side_.aco__peer.pc = pc;
        side_.aco__peer.bp = bp;
        side_.aco__peer.base = ACO__HELD(base);
        return;
    injected:
        side_.aco__peer.pc = pc;
        side_.aco__peer.bp = bp;
        side_.aco__peer.base = ACO__HELD(base);
        aco__context_t consumer = last();
        static_cast<aco__injected_t *>(word)->call(static_cast<aco__injected_t *>(word), &consumer);
        __builtin_unreachable(); /* it unwinds */
#else
        aco__switch_in_stack_yield(&side_.aco__peer, &word);
        if (aco_likely(!word))
            return;
        aco__context_t consumer = side_.aco__peer;
        static_cast<aco__injected_t *>(word)->call(static_cast<aco__injected_t *>(word), &consumer);
        __builtin_unreachable(); /* it unwinds */
#endif
    }

private:
    template<class, class>
    friend class in_stack_generator;
    ACO__FORCE_INLINE_MEMBER explicit in_stack_yielder(const aco__context_t &peer) noexcept : side_{peer} {}
    /* Where this side goes at its end. */
    ACO__FORCE_INLINE_MEMBER aco__context_t last() const noexcept
    {
        aco__context_t consumer = side_.aco__peer;
#if ACO__IN_STACK_APART
        consumer.pc = static_cast<char *>(consumer.pc) - ACO__IN_STACK_BESIDE;
#endif
        return consumer;
    }
    aco_in_stack_yielder_t side_;
};

/* A range of what f(in_stack_yielder<T> &) makes. It can be iterated over once: begin() runs `f` to its first value.
 * An element is a T if that is trivially copied and fits in a register, else a T & that is valid until the next one is
 * asked for. Construct it as in_stack_generator(f), without further arguments; f() is no template. The constructor
 * throws what moving `f` throws; iterating throws what `f` throws. The destructor ends `f` where it is suspended, by
 * unwinding its frames: without exceptions, destructors do not run there. */
template<class T, class F>
class in_stack_generator {
    using value = detail::in_stack_value<T>;
    using room = detail::in_stack_room<sizeof(F)>;
    static_assert(std::is_invocable_v<F &, in_stack_yielder<T> &>,
                  "aco::in_stack_generator: the callable is called as f(yielder)");
    static_assert(alignof(F) <= 16, "aco::in_stack_generator: the callable has a larger alignment than the stack");

public:
    struct sentinel {};
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using iterator_concept = std::input_iterator_tag;
        using value_type = std::remove_cv_t<std::remove_reference_t<T>>;
        using difference_type = std::ptrdiff_t;
        using reference = typename value::reference;
        using pointer = void;

        iterator() noexcept = default;
        ACO__FORCE_INLINE_MEMBER reference operator*() const noexcept { return value::received(of_->side_.value); }
        ACO__FORCE_INLINE_MEMBER iterator &operator++() /* at the end: does nothing */
        {
            of_->next();
            return *this;
        }
        ACO__FORCE_INLINE_MEMBER void operator++(int) { ++*this; }
        friend bool operator==(const iterator &i, const sentinel &) noexcept { return i.at_end(); }
        friend bool operator!=(const iterator &i, const sentinel &) noexcept { return !i.at_end(); }
        friend bool operator==(const sentinel &, const iterator &i) noexcept { return i.at_end(); }
        friend bool operator!=(const sentinel &, const iterator &i) noexcept { return !i.at_end(); }

    private:
        friend class in_stack_generator;
        ACO__FORCE_INLINE_MEMBER explicit iterator(in_stack_generator *of) noexcept : of_(of) {}
        ACO__FORCE_INLINE_MEMBER bool at_end() const noexcept { return !of_->side_.aco__peer.pc; }
        in_stack_generator *of_ = nullptr;
    };

    ACO__FORCE_INLINE_MEMBER explicit in_stack_generator(F f, room in = room{})
        : function_(new (in.memory) F(std::move(f)))
    {
        /* Of types that do not depend on T and F: else modules do not find the calls. */
        aco_in_stack_function_t *const function = entry;
        void *const memory = in.memory;
#if ACO__ON_ONE_STACK
        void *const outer = in.before.sp;
        aco__in_stack_open(&side_, outer, memory, function, memory);
#else
        in.memory = nullptr; /* the generator's own now */
        aco__in_stack_open_own(&side_, function, memory);
#endif
    }
    in_stack_generator(const in_stack_generator &) = delete;
    in_stack_generator &operator=(const in_stack_generator &) = delete;
    ACO__FORCE_INLINE_MEMBER ~in_stack_generator()
    {
        if (!has_begun())
            function_->~F();
        if (side_.aco__consumer_sp && close() != 0)
            detail::die(detail::in_stack_busy);
#if !ACO__ON_ONE_STACK
        ::operator delete(function_);
#endif
    }

    ACO__FORCE_INLINE_MEMBER iterator begin()
    {
        if (!has_begun())
            next();
        return iterator(this);
    }
    ACO__FORCE_INLINE_MEMBER sentinel end() const noexcept { return {}; }

private:
    /* Calls `f`, which ends here, however this ends. */
    ACO__FORCE_INLINE_MEMBER static void run(in_stack_yielder<T> &y, F &f)
    {
        struct owner {
            F &f;
            ~owner() { f.~F(); }
        } own{f};
        f(y);
    }
    static void entry(ACO__GENERATOR_PARAMETERS, aco__in_stack_argument *function)
    {
        in_stack_yielder<T> y(aco__context_t{aco__sp, aco__pc, aco__bp, aco__base});
        aco__context_t consumer;
#if ACO__CPP_EXCEPTIONS
        try {
            run(y, *static_cast<F *>(static_cast<void *>(function)));
        } catch (...) {
            consumer = y.last();
            aco__switch_in_stack_last(&consumer, aco__generator_caught(&consumer, ACO__ON_ONE_STACK));
        }
#else
        run(y, *static_cast<F *>(static_cast<void *>(function)));
#endif
        consumer = y.last();
        aco__switch_in_stack_last(&consumer, nullptr);
    }

    ACO__FORCE_INLINE_MEMBER bool has_begun() const noexcept
    {
        void (*first)(void) = aco__generator_begin;
        void *pc;
        std::memcpy(&pc, &first, sizeof pc);
        return side_.aco__peer.pc != pc;
    }
#if ACO__IN_STACK_APART
    /* Lets the generator run from `pc`. Returns whether it has made a value; else it has ended. No other state lives
     * across the statement: the compiler would keep it in memory. */
    template<bool IsCall>
    ACO__FORCE_INLINE_MEMBER bool resume(void *pc, void *&word)
    {
        void *sp = side_.aco__peer.sp, *bp = side_.aco__peer.bp;
        register void *base ACO__PEER_BASE = side_.aco__peer.base;
        ACO__SETTLE_STACK;
        if constexpr (IsCall)
            ACO__IN_STACK_NEXT("+d"(word), ended, busy);
        else
            ACO__IN_STACK_NEXT("=d"(word), ended, busy);
        side_.aco__peer.sp = sp;
        side_.aco__peer.pc = pc;
        side_.aco__peer.bp = bp;
        side_.aco__peer.base = ACO__HELD(base);
        if (!pc)
            __builtin_unreachable();
        return true;
    ended:
        return false;
    busy:
        detail::die(detail::in_stack_busy);
    }
    ACO__FORCE_INLINE_MEMBER void next()
    {
        void *word;
        if (resume<false>(side_.aco__peer.pc, word)) {
            side_.value = ACO__HELD(word);
            return;
        }
        aco__in_stack_release(&side_);
        if (aco_unlikely(word != nullptr))
            static_cast<aco__injected_t *>(word)->call(static_cast<aco__injected_t *>(word), nullptr);
    }
    ACO__FORCE_INLINE_MEMBER int close()
    {
        if (!aco__in_stack_is_innermost(&side_))
            return -1;
        if (has_begun()) {
            void *word = aco__in_stack_closing(side_.aco__consumer_sp);
            if (resume<true>(static_cast<char *>(side_.aco__peer.pc) - ACO__IN_STACK_BESIDE, word))
                aco__yields_in_cleanup("aco::in_stack_generator");
        }
        aco__in_stack_release(&side_);
        return 0;
    }
#else
    /* As aco_in_stack_next(), but what cannot go on keeps nothing in registers. */
    ACO__FORCE_INLINE_MEMBER void next()
    {
#if ACO__ON_ONE_STACK
        void *word = nullptr;
        if (aco_unlikely(!side_.aco__peer.pc))
            return;
        aco__switch_in_stack_resume(&side_.aco__peer, &word);
        if (aco_likely(reinterpret_cast<std::uintptr_t>(side_.aco__peer.pc) > 1)) {
            side_.value = word;
            return;
        }
        if (side_.aco__peer.pc)
            detail::die(detail::in_stack_busy);
        aco__in_stack_release(&side_);
        if (aco_unlikely(word != nullptr))
            static_cast<aco__injected_t *>(word)->call(static_cast<aco__injected_t *>(word), nullptr);
#else
        aco_in_stack_next(&side_);
#endif
    }
    ACO__FORCE_INLINE_MEMBER int close() { return aco_in_stack_close(&side_); }
#endif

    F *function_;
    aco_in_stack_t side_;
};

template<class F>
in_stack_generator(F) -> in_stack_generator<decltype(detail::in_stack_made_by(&F::operator())), F>;

} // namespace ACO__IN_STACK_KIND
} // namespace ACO__CPP_KIND
} // namespace aco

#endif
