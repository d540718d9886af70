// A user's program that is compiled with warnings about casts: every public header, and every macro that expands to
// code in a program. (It need not run.)
#define MINICORO_IMPL
#include "every.h" // run.sh makes these two
#include "every.hpp"

#include <memory>
#include <string>
#include <vector>

#include "aco_assert_override.h"

ACO_LOCAL(int, local);

ACO_GENERATOR(two, y, arg)
{
    aco_generate(y, arg);
    aco_generate(y, nullptr);
}

ACO_IN_STACK_GENERATOR(two_in_stack, y, arg)
{
    aco_generate_in_stack(y, arg);
    aco_generate_in_stack(y, nullptr);
}

static ACO_ENTRY void entry()
{
    ++*local();
    aco_yield();
    aco_exit();
}

static void *task(void *arg)
{
    aco_mutex_t mutex = ACO_MUTEX_INIT;
    aco_cond_t cond = ACO_COND_INIT;
    aco_semaphore_t semaphore = ACO_SEMAPHORE_INIT(1);
    aco_wait_group_t group = ACO_WAIT_GROUP_INIT;
    aco_channel_t *channel = aco_channel_new(1, sizeof(void *));
    aco_select_case_t one = {channel, &arg, ACO_SELECT_SEND, 0, {}};
    assert(aco_mutex_lock(&mutex) == 0 && aco_cond_wait_until(&cond, &mutex, aco_after(1)) != 0);
    assert(aco_semaphore_acquire(&semaphore) == 0 && aco_wait_group_wait(&group) == 0 && aco_sleep(1) == 0);
    assert(aco_select(&one, 1) == 0 && aco_channel_receive(channel, &arg) == 0);
    assertptr(channel);
    assertalloc_ptr(channel);
    assertalloc_bool(channel != nullptr);
    return likely(arg != nullptr) && unlikely(arg == ACO_ERROR) ? nullptr : arg;
}

static void tasks()
{
    aco::channel<std::string> words(1);
    aco::mutex mutex;
    aco::task_group group;
    group.spawn([&] { words.send("one"); });
    aco::select(aco::on_receive(words, [](std::optional<std::string>) {}));
    group.wait();
    std::lock_guard<aco::mutex> lock(mutex);
    aco::spawn([] { return aco::try_for(std::chrono::seconds(1), [] { aco::yield(); }); }).join();
}

template<class Yield, class Send, class Return>
static bool use(aco::coroutine<Yield, Send, Return> &co, Send sent)
{
    if (!co.resume(sent))
        return co.done();
    aco::coroutine<Yield, Send, Return> other = std::move(co);
    other.raise(1);
    other.cancel();
    return other.result() == Return() && other.value() == Yield();
}

int main(int argc, char **)
{
    aco_generator_t g;
    aco_in_stack_t h;
    if (aco_generator_open(&g, two, nullptr, nullptr) == 0 && aco_generator_next(&g))
        aco_generator_close(&g);
    aco_in_stack_open(&h, two_in_stack, nullptr);
    aco_in_stack_close(&h);
    aco_t *main_co = aco_create(nullptr, nullptr, 0, nullptr, nullptr);
    aco_destroy(aco_create(main_co, aco_share_stack_new(0), 0, ACO_ENTRY_POINT(entry), nullptr));
    aco_destroy(main_co);
    aco_t *joined = aco_spawn(task, nullptr, nullptr);
    aco::spawn(tasks);
    aco_run();
    aco_join(joined, nullptr);
    aco::generator<int> numbers([](auto &yield) { yield(1); });
    aco::generator<const std::string &> texts([](auto &yield) { yield(std::string("x")); });
    aco::generator<std::unique_ptr<int>> owners([&](auto &yield) { yield(std::make_unique<int>(1)); });
    aco::generator<std::unique_ptr<int>> given([&](auto &yield) { yield.yield_from(std::move(owners)); });
    for (int n : numbers)
        argc += n;
    for (const std::string &text : texts)
        argc += static_cast<int>(text.size());
    for (auto &&one : given)
        argc += *one;
    aco::coroutine<int, int, int> co([](auto &self, int i) { return self.yield(i); });
    aco::coroutine<std::string, std::string, std::string> strings(
        [](auto &self, std::string s) { return self.yield(s); });
    aco::coroutine<> plain([](auto &self) { self.yield(); });
    return use(co, argc) + use(strings, std::string()) + plain.resume();
}
