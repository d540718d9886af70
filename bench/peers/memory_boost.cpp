// Coroutines by the million: Boost.Context's fibers on pooled stacks. The destructor of a suspended fiber unwinds its
// stack by an exception, which is part of the cost of destruction. memory_scale.h has the measurements.
#include "../bench.h"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <memory>
#include <utility>

#define IMPL "Boost.Context fiber"

struct co_t {
    boost::context::fiber inside; // the coroutine, while it is suspended
    boost::context::fiber back;   // its resumer, while it runs
    uint64_t tag;
};

#define SCALE_ENTRY_POINT(bytes) hold_##bytes
// One page more than a stack needs: the pool's list has a word at the low end of each idle stack.
#define SCALE_EACH(live) (3 * 4096 + (live))
using co_entry_t = void (*)();

static co_t *running;
static boost::context::pooled_fixedsize_stack *stacks;

static void co_prepare()
{
    stacks = new boost::context::pooled_fixedsize_stack(64 << 10);
}

static co_t *co_new(size_t, co_entry_t entry, size_t tag)
{
    co_t *co = new co_t();
    co->tag = tag;
    co->inside = boost::context::fiber(std::allocator_arg, *stacks, [co, entry](boost::context::fiber &&resumer) {
        co->back = std::move(resumer);
        entry();
        return std::move(co->back);
    });
    return co;
}

BENCH_INLINE void co_resume(co_t *co)
{
    running = co;
    co->inside = std::move(co->inside).resume();
}

BENCH_INLINE size_t co_copied(const co_t *)
{
    return 0;
}

static void co_destroy(co_t *co)
{
    delete co;
}

BENCH_INLINE uint64_t copying_tag()
{
    return running->tag;
}

BENCH_INLINE void copying_yield()
{
    co_t *self = running;
    self->back = std::move(self->back).resume();
}

#include "../memory_scale.h"
