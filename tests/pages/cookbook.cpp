// docs/cookbook.md: its blocks of C++ do what the page says (pages.py, cookbook.c).
#include "check.h"
#include <aco/task.hpp>
#include <stdexcept>
#include <string>

static std::string failing, ended;

static std::string load(const char *what)
{
    if (failing == what)
        throw std::runtime_error(failing);
    struct say_end {
        const char *what;
        ~say_end() { ended += what; }
    } end = {what};
    aco_sleep(failing.empty() ? 1 : INT64_C(100000000000));
    aco::check_cancelled();
    return what;
}
#include "errors-out-of-a-coroutine-in-c.hpp"

int main()
{
    std::string got, error;
    auto task = aco::spawn([&] {
        got = load_both();
        failing = "right";
        ended.clear();
        try {
            load_both();
        } catch (const std::exception &e) {
            error = e.what();
        }
    });
    CHECK(aco_run() == 0);
    task.join();
    CHECK(got == "leftright" && error == "right" && ended == "left");
    return check_result("cookbook");
}
