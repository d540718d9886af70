/* Services in C++ (include/aco/service.hpp). tests/service.c tests what they do. */
#include <aco/service.hpp>

#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

using namespace std::chrono_literals;

namespace {

TEST(service, serves_until_a_signal)
{
    std::atomic<int> threads{0}, members{0};
    aco::run_service(
        [&](aco::service service) {
            aco::listener door = service.listen("echo", "tcp", "127.0.0.1", "0");
            const auto member = [](void *count) -> void * {
                ++*static_cast<std::atomic<int> *>(count);
                return nullptr;
            };
            EXPECT_NE(aco_group_spawn(service.group(), member, &members, nullptr), nullptr);
            EXPECT_EQ(*service.config<std::string>(), "the first");
            EXPECT_FALSE(service.is_stopping());
            service.ready();
            if (++threads == 2)
                kill(getpid(), SIGTERM);
            (void)door.accept(); // until the service is stopped
            ADD_FAILURE() << "a connection";
        },
        [] { return std::make_unique<std::string>("the first"); },
        aco::service_options().with_threads(2).with_drain_time(1h).with_hand_over("test-cpp-service"));
    EXPECT_EQ(threads, 2);
    EXPECT_EQ(members, 2);
}

TEST(service, throws_what_serve_threw)
{
    const auto serve = [](aco::service) { throw std::runtime_error("no"); };
    EXPECT_THROW(aco::run_service(serve, aco::service_options().with_threads(1)), std::runtime_error);
}

TEST(service, throws_what_load_threw)
{
    const auto serve = [](aco::service) { ADD_FAILURE() << "it serves"; };
    const auto load = []() -> std::unique_ptr<int> { throw std::runtime_error("no"); };
    EXPECT_THROW(aco::run_service(serve, load, aco::service_options().with_threads(1)), std::runtime_error);
}

TEST(service, rejects_a_load_of_c)
{
    aco::service_options options;
    options.unload = [](void *, void *) {};
    EXPECT_THROW(aco::run_service([](aco::service) {}, options), aco::error);
}

} // namespace
