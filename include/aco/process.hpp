/* Signals as values and as ends of scopes, child processes and the standard descriptors for C++17 and later, on top of
 * <aco/process.h>, which says what these calls do. Header only; link acorn_io. Failures, cancelling and owning are as
 * in <aco/io.hpp>.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::process sort({"sort", "-u"}, ACO_PROCESS_IN | ACO_PROCESS_OUT);
 *   sort.in.write_all(text);
 *   sort.in.close();
 *   aco::reader lines(sort.out);
 *   ...
 *   if (sort.wait() != 0)
 *       ... */
#ifndef ACO_PROCESS_HPP
#define ACO_PROCESS_HPP

#include "io.hpp"
#include "process.h"

#include <initializer_list>

namespace aco {
inline namespace ACO__CPP_KIND {

/* The `number` 0, 1 or 2 of the caller's standard descriptors: aco_io_standard(). */
inline descriptor standard(int number)
{
    const int fd = aco_io_standard(number);
    detail::io_check(fd, "aco::standard");
    return descriptor(fd);
}

/* Signals as values: aco_signal_open(). */
class signals : descriptor {
public:
    explicit signals(std::initializer_list<int> which) : descriptor(aco_signal_open(which.begin(), which.size()))
    {
        detail::io_check(get(), "aco::signals");
    }
    using descriptor::get;
    using descriptor::close;

    /* Returns the next signal's number. If `sender` is not NULL, *sender becomes the process that sent it, or 0. */
    int wait(pid_t *sender = nullptr, const char *location = ACO__CALLER)
    {
        const int number = aco_signal_wait_at(get(), sender, location);
        detail::io_check(number, "aco::signals::wait");
        return number;
    }
};

/* A scope that one of the signals ends, from construction to destruction: a local variable, as aco::scope, and not on a
 * share stack. */
class interrupt {
public:
    explicit interrupt(std::initializer_list<int> which)
    {
        detail::io_check(aco_interrupt_begin(&interrupt_, which.begin(), which.size()), "aco::interrupt");
    }
    interrupt(const interrupt &) = delete;
    interrupt &operator=(const interrupt &) = delete;
    ~interrupt() { detail::must(aco_interrupt_end(&interrupt_)); }

    int signal() const noexcept { return interrupt_.signal; } /* the one that has come; 0: none yet */
    void cancel() { detail::check(aco_scope_cancel(&interrupt_.scope)); }
    int error() const noexcept { return interrupt_.scope.error; } /* why it ended early, like scope::error() */
    bool ended() const noexcept { return aco_scope_ended_by(&interrupt_.scope) == &interrupt_.scope; }
    aco_interrupt_t *native_handle() noexcept { return &interrupt_; }

private:
    aco_interrupt_t interrupt_;
};

/* A child and its pipes. The destructor ends the child as end() does, with a second of grace. */
class process {
public:
    /* `flags` and `environment` are those of aco_process_start(). */
    explicit process(std::initializer_list<const char *> arguments, unsigned flags = 0,
                     const char *const *environment = nullptr)
        : process(std::vector<const char *>(arguments), flags, environment)
    {
    }
    explicit process(std::vector<const char *> arguments, unsigned flags = 0,
                     const char *const *environment = nullptr)
    {
        arguments.push_back(nullptr);
        detail::io_check(aco_process_start(&process_, arguments.data(), flags, environment), "aco::process");
        in = descriptor(std::exchange(process_.in, -1));
        out = descriptor(std::exchange(process_.out, -1));
        err = descriptor(std::exchange(process_.err, -1));
    }
    process(const process &) = delete;
    process &operator=(const process &) = delete;
    ~process() { end(std::chrono::seconds(1)); }

    pid_t pid() const noexcept { return process_.pid; }
    void signal(int number) { detail::io_check(aco_process_signal(&process_, number), "aco::process::signal"); }
    /* Waits until the child has ended. Returns its status as waitpid() stores it. */
    int wait(const char *location = ACO__CALLER)
    {
        detail::io_check(aco_process_wait_at(&process_, location), "aco::process::wait");
        return process_.status;
    }
    /* Closes the pipes and ends the child: aco_process_end(). Returns the child's status. */
    template<class Rep, class Period>
    int end(const std::chrono::duration<Rep, Period> &grace, const char *location = ACO__CALLER) noexcept
    {
        in = descriptor();
        aco_process_end_at(&process_, detail::nanoseconds_in(grace), location);
        out = descriptor();
        err = descriptor();
        return process_.status;
    }
    aco_process_t *native_handle() noexcept { return &process_; } /* without the pipes */

    descriptor in, out, err; /* the pipes that `flags` name; others are empty */

private:
    aco_process_t process_;
};

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
