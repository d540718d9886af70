// Promises of <aco/hook.hpp>: hooks for a block.
#include "aco/hook.hpp"
#include "aco/task.hpp"

#include <gtest/gtest.h>

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

} // namespace
