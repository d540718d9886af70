#define BUILDS_PART
#include "part.h"
#include "aco.hpp"
#include "aco/pool.h"
#include "aco/scheduler.h"
#include "check.h"

namespace {

int gone;

struct counted {
    ~counted() { gone++; }
};

/* Suspended when the DLL is unloaded: its destructor resumes it once more. */
struct held {
    aco_t *co = nullptr;
    ~held()
    {
        if (co)
            aco_destroy(co);
    }
} last;

void *stays(void *)
{
    counted here;
    for (;;)
        aco_yield();
}

void yields_thrice()
{
    for (int i = 0; i < 3; i++)
        aco_yield();
    aco_exit();
}

void shares_a_stack()
{
    aco_thread_init(nullptr);
    aco_t *main_co = aco_create(nullptr, nullptr, 0, nullptr, nullptr);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *cos[2];
    for (aco_t *&co : cos)
        co = aco_create(main_co, stack, 0, yields_thrice, nullptr);
    for (int i = 0; i < 4; i++)
        for (aco_t *co : cos)
            aco_resume(co);
    for (aco_t *co : cos) {
        CHECK(co->is_end);
        aco_destroy(co);
    }
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}

void *sleeps(void *)
{
    aco_sleep(1);
    return nullptr;
}

void runs_tasks()
{
    for (int i = 0; i < 3; i++) {
        aco_options_t detached = {};
        detached.flags = ACO_DETACHED;
        CHECK(aco_spawn(sleeps, nullptr, &detached) != nullptr);
    }
    CHECK_EQ(aco_run(), 0);
}

} // namespace

void *part_counts(void *arg)
{
    for (int i = 1; i <= *static_cast<int *>(arg); i++)
        aco_yield_value(&i);
    return arg;
}

void *part_send(aco_t *co, void *value)
{
    return aco_send(co, value);
}

void part_resume(aco_t *co)
{
    aco_resume(co);
}

void *part_yield(void *value)
{
    counted here;
    return aco_yield_value(value);
}

aco_t *part_running()
{
    return aco_get_co();
}

void *part_error()
{
    return ACO_ERROR;
}

void part_throw(int n)
{
    throw n;
}

int part_catch(void (*fn)(int), int n)
{
    try {
        fn(n);
    } catch (int caught) {
        return caught == n;
    }
    return 0;
}

int part_gone()
{
    return gone;
}

int part_work()
{
    int n = 3, seen = 0;
    aco_stack_measure(1);
    for (int i = 0; i < 20; i++) {
        aco_t *co = aco_new(part_counts, &n, nullptr);
        for (seen = 0, aco_send(co, nullptr); !co->is_end; aco_send(co, nullptr))
            seen++;
        CHECK_EQ(seen, n);
        aco_destroy(co);
    }
    aco_stack_measure(0);
    shares_a_stack();
    runs_tasks();
    if (!last.co) {
        last.co = aco_new(stays, nullptr, nullptr);
        aco_send(last.co, nullptr);
    }
    return check_failures;
}
