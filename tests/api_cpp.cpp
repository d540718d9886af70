// The C API as C++ programs use it: lambdas and member functions as entry functions, objects on coroutines' stacks, and
// exceptions. Compiled as C++11 to C++23.
#include "aco.h"
#include "death.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

class Coroutines : public testing::Test {
protected:
    void SetUp() override
    {
        aco_thread_init(nullptr);
        main_co = aco_create(nullptr, nullptr, 0, nullptr, nullptr);
        stack = aco_share_stack_new(0);
    }

    void TearDown() override
    {
        for (aco_t *co : made)
            aco_destroy(co);
        aco_share_stack_destroy(stack);
        aco_destroy(main_co);
    }

    aco_t *create(aco_cofuncp_t fp, void *arg = nullptr)
    {
        made.push_back(aco_create(main_co, stack, 0, fp, arg));
        return made.back();
    }

    // Resumes all in turn until all have ended; how many rounds that took.
    int run_all()
    {
        int rounds = 0;
        auto ended = [](const aco_t *co) { return co->is_end != 0; };
        while (!std::all_of(made.begin(), made.end(), ended)) {
            for (aco_t *co : made)
                if (!co->is_end)
                    aco_resume(co);
            ++rounds;
        }
        return rounds;
    }

    aco_t *main_co = nullptr;
    aco_share_stack_t *stack = nullptr;
    std::vector<aco_t *> made;
};

template <typename T> T &argument()
{
    return *static_cast<T *>(aco_get_arg());
}

// Promise: a lambda without captures is an entry function.
TEST_F(Coroutines, RunLambdas)
{
    int count = 0;
    aco_t *co = create(
        [] {
            for (int i = 0; i < 3; ++i) {
                ++argument<int>();
                aco_yield();
            }
            aco_exit();
        },
        &count);
    for (int i = 1; i <= 3; ++i) {
        aco_resume(co);
        EXPECT_EQ(count, i);
        EXPECT_FALSE(co->is_end);
    }
    aco_resume(co);
    EXPECT_TRUE(co->is_end);
}

struct Walker {
    std::vector<std::string> words;
    std::string seen;

    static void entry()
    {
        argument<Walker>().walk(); // what it holds is destroyed before aco_exit(), which unwinds nothing
        aco_exit();
    }

    void walk()
    {
        std::string line;
        for (const std::string &word : words) {
            line += word;
            line += ' ';
            aco_yield();
        }
        seen = line;
    }
};

// Promise: objects on a coroutine's stack live across yields, on a copying stack too, and are destroyed when left.
TEST_F(Coroutines, KeepObjectsOnTheirStacks)
{
    std::vector<Walker> walkers(10);
    for (int i = 0; i < 10; ++i) {
        for (int j = 0; j <= i; ++j)
            walkers[static_cast<size_t>(i)].words.push_back(
                std::string(static_cast<size_t>(1 + 9 * j), static_cast<char>('a' + i)));
        create(Walker::entry, &walkers[static_cast<size_t>(i)]);
    }
    EXPECT_EQ(run_all(), 11);
    for (const Walker &walker : walkers) {
        std::string wanted;
        for (const std::string &word : walker.words)
            wanted += word + " ";
        EXPECT_EQ(walker.seen, wanted);
    }
}

// Promise: Google Test's EXPECT works in a coroutine; passing, and failing ones are recorded.
TEST_F(Coroutines, ExpectInside)
{
    create([] {
        EXPECT_EQ(aco_is_main_co(aco_get_co()), 0);
        aco_yield();
        EXPECT_NE(aco_get_co()->main_co, nullptr);
        EXPECT_STREQ("a", "a") << "after a yield";
        aco_exit();
    });
    EXPECT_EQ(run_all(), 2);
}

void thrower(int depth, int value)
{
    std::string guard(100, static_cast<char>('0' + depth)); // something to unwind
    aco_yield();
    if (depth == 0)
        throw std::runtime_error(std::to_string(value));
    thrower(depth - 1, value);
    EXPECT_EQ(guard.size(), 100u);
}

struct Result {
    int value;
    int caught;
    std::string what;
};

void throw_and_catch_inside(Result &result)
{
    for (int i = 0; i < 5; ++i) {
        std::string text;
        try {
            thrower(i, result.value + i);
        } catch (const std::runtime_error &error) {
            text = error.what();
        }
        aco_yield(); // outside the handler: no exception is alive across the switch
        EXPECT_EQ(text, std::to_string(result.value + i));
        ++result.caught;
        result.what += text + ",";
    }
}

// Promise: an exception thrown and caught in one coroutine does what it always does, through frames that have yielded,
// with others throwing in between.
TEST_F(Coroutines, ThrowAndCatchInside)
{
    std::vector<Result> results(8);
    for (size_t i = 0; i < results.size(); ++i) {
        results[i].value = static_cast<int>(i) * 100;
        results[i].caught = 0;
        create(
            [] {
                throw_and_catch_inside(argument<Result>());
                aco_exit();
            },
            &results[i]);
    }
    run_all();
    for (const Result &result : results) {
        std::string wanted;
        for (int i = 0; i < 5; ++i)
            wanted += std::to_string(result.value + i) + ",";
        EXPECT_EQ(result.caught, 5);
        EXPECT_EQ(result.what, wanted);
    }
}

struct Logged {
    std::string &log;
    char name;
    ~Logged() { log += name; }
};

// Promise: a yield inside a try block that does not throw, then one that does: destructors run in order, once.
TEST_F(Coroutines, UnwindInOrder)
{
    std::string log;
    create(
        [] {
            std::string &text = argument<std::string>();
            {
                try {
                    Logged a{text, 'a'};
                    aco_yield();
                    Logged b{text, 'b'};
                    aco_yield();
                    throw 42;
                } catch (int value) {
                    text += value == 42 ? '!' : '?';
                }
                aco_yield();
                Logged c{text, 'c'};
            }
            aco_exit();
        },
        &log);
    EXPECT_EQ(run_all(), 4);
    EXPECT_EQ(log, "ba!c");
}

// Promise: an exception in the main coroutine does not disturb suspended coroutines.
TEST_F(Coroutines, ExceptionsInMainBetweenResumes)
{
    std::unique_ptr<int> count(new int(0));
    aco_t *co = create(
        [] {
            for (int i = 0; i < 4; ++i) {
                ++argument<int>();
                aco_yield();
            }
            aco_exit();
        },
        count.get());
    for (int i = 0; i < 4; ++i) {
        try {
            aco_resume(co);
            throw std::string("between");
        } catch (const std::string &text) {
            EXPECT_EQ(text, "between");
        }
    }
    EXPECT_EQ(*count, 4);
    aco_resume(co);
    EXPECT_TRUE(co->is_end);
}

// Promise: aco_reset() and the other calls that are not on the fast path.
TEST_F(Coroutines, Reset)
{
    int count = 0;
    aco_t *co = create(
        [] {
            ++argument<int>();
            aco_exit();
        },
        &count);
    for (int i = 1; i <= 10; ++i) {
        aco_resume(co);
        EXPECT_EQ(count, i);
        aco_reset(co, co->fp, &count);
    }
    aco_resume(co);
    EXPECT_EQ(count, 11);
    void *p = aco_mem_new(16);
    EXPECT_NE(p, nullptr);
    std::free(p);
}

// Promise: misuse aborts with a line that names call and reason.
TEST_F(Coroutines, MisuseDies)
{
    aco_t *co = create([] { aco_exit(); });
    EXPECT_DEATH(aco_resume(nullptr), LAST_LINE("^acorn: aco_resume: the coroutine is NULL"));
    EXPECT_DEATH(aco_yield(), LAST_LINE("^acorn: aco_yield: no coroutine is running"));
    EXPECT_DEATH(aco_get_arg(), LAST_LINE("^acorn: aco_get_arg: no coroutine is running"));
    aco_resume(co);
    EXPECT_DEATH(aco_resume(co), LAST_LINE("^acorn: aco_resume: coroutine 0x[0-9a-f]+: has ended"));
}

} // namespace
