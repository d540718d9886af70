// What the tests of coroutines and generators in C++ share.
#ifndef ERRORS_HPP
#define ERRORS_HPP

#include "aco.hpp"
#include "sanitizers.h"

#include <gtest/gtest.h>

constexpr bool private_only = UNDER_ASAN; // which cannot follow stacks that are copied

template <class F> aco::error error_of(F f)
{
    try {
        f();
    } catch (const aco::error &e) {
        return e;
    }
    ADD_FAILURE() << "nothing was thrown";
    errno = 0;
    return aco::error();
}

#endif
