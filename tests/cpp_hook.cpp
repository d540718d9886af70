// Promises of <aco/hook.hpp>: hooks for a block.
#include "aco/hook.hpp"
#include "aco/task.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>

namespace {

TEST(hooks, are_on_until_the_end_of_the_block)
{
    aco::task<void> task = aco::spawn([] {
        EXPECT_FALSE(aco_hook_active());
        try {
            aco::hooks outer;
            {
                aco::hooks inner;
                EXPECT_TRUE(aco_hook_active());
            }
            EXPECT_TRUE(aco_hook_active());
            throw std::runtime_error("leaves it");
        } catch (const std::runtime_error &) {
        }
        EXPECT_FALSE(aco_hook_active());
    });
    EXPECT_EQ(aco_run(), 0);
    task.join();
}

TEST(hooks, are_for_tasks)
{
    try {
        aco::hooks none;
        FAIL();
    } catch (const aco::error &error) {
        EXPECT_EQ(error.code().value(), EPERM);
    }
}

void throws(int)
{
    throw std::runtime_error("leaves a handler");
}

// raise() is declared so that the compiler takes it for a function that throws nothing.
int (*volatile may_throw)(int number) = reinterpret_cast<int (*)(int)>(&std::raise);

// In a frame below those that the handler had.
__attribute__((noinline)) int is_active_below()
{
    volatile char frame[1 << 14];
    frame[0] = 0;
    frame[1] = static_cast<char>(aco_hook_active());
    return frame[1];
}

TEST(hooks, are_on_after_an_exception_in_a_handler)
{
    aco::task<void> task = aco::spawn([] {
        struct sigaction action{}, before{};
        const aco::hooks hooks;
        action.sa_handler = throws;
        action.sa_flags = SA_NODEFER;
        ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
        try {
            (void)may_throw(SIGUSR1);
            ADD_FAILURE();
        } catch (const std::runtime_error &) {
        }
        EXPECT_TRUE(is_active_below());
        EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
    });
    EXPECT_EQ(aco_run(), 0);
    task.join();
}

} // namespace
