/* <aco.hpp>, beside the C calls below it, compiled by the same compiler. */
#include "native.h"

#include <aco.hpp>

/* ---- The yardstick, and the cost of ACO_OWN_EXCEPTIONS in the calls of C ---- */

BENCH_INLINE void *yielding(void *arg)
{
    for (;;)
        aco_yield();
    return arg;
}
NATIVE_BODY(yielding)

static aco_t *yielder_of(unsigned placement, unsigned flags)
{
    static void *(*const all[])(void *) = NATIVE_ALL(yielding);
    aco_options_t options = {};
    options.flags = flags;
    aco_t *co = aco_new(all[placement], NULL, &options);
    native_must(co != NULL, aco_error_message());
    aco_resume(co);
    return co;
}

static void *resume_make(unsigned placement, size_t)
{
    return yielder_of(placement, 0);
}

static void *exceptions_make(unsigned placement, size_t)
{
    return yielder_of(placement, ACO_OWN_EXCEPTIONS);
}

BENCH_INLINE void resume_run(void *made, size_t rounds)
{
    for (aco_t *co = static_cast<aco_t *>(made); rounds; rounds--)
        aco_resume(co);
}
NATIVE_RUN(resume_run)

/* ---- aco::coroutine: its function calls a placed one ---- */

#define CPP_BODY_AT(name, self_t, pad)                                                                                 \
    NATIVE_HOT(pad) void name##_##pad(self_t &self)                                                                    \
    {                                                                                                                  \
        name(self);                                                                                                    \
    }
#define CPP_BODY(name, self_t)                                                                                         \
    CPP_BODY_AT(name, self_t, 0) CPP_BODY_AT(name, self_t, 16)                                                         \
    CPP_BODY_AT(name, self_t, 32) CPP_BODY_AT(name, self_t, 48)

using plain_t = aco::coroutine<>;
using value_t = aco::coroutine<uintptr_t, uintptr_t>;

template<class Coroutine>
static Coroutine *started(void (*body)(typename Coroutine::self &), unsigned flags = 0)
{
    return new Coroutine([body](auto &self) { body(self); }, aco::options().with(flags));
}

BENCH_INLINE void plain_body(plain_t::self &self)
{
    for (;;)
        self.yield();
}
CPP_BODY(plain_body, plain_t::self)

static plain_t *plain_of(unsigned placement, unsigned flags)
{
    static void (*const all[])(plain_t::self &) = NATIVE_ALL(plain_body);
    plain_t *co = started<plain_t>(all[placement], flags);
    native_must(co->resume(), "it ended");
    return co;
}

static void *plain_make(unsigned placement, size_t)
{
    return plain_of(placement, 0);
}

static void *shared_make(unsigned placement, size_t)
{
    return plain_of(placement, ACO_SHARED_EXCEPTIONS);
}

BENCH_INLINE void plain_run(void *made, size_t rounds)
{
    plain_t &co = *static_cast<plain_t *>(made);
    size_t yields = 0;
    for (size_t n = rounds; n; n--)
        yields += co.resume();
    native_must(yields == rounds, "it ended");
}
NATIVE_RUN(plain_run)

BENCH_INLINE void value_body(value_t::self &self)
{
    for (uintptr_t sum = 0;;)
        sum += self.yield(sum);
}
CPP_BODY(value_body, value_t::self)

static void *value_make(unsigned placement, size_t)
{
    static void (*const all[])(value_t::self &) = NATIVE_ALL(value_body);
    value_t *co = started<value_t>(all[placement]);
    native_must(co->resume(9) && co->resume(3) && co->value() == 3 && co->resume(4) && co->value() == 7,
                "other values came back");
    return co;
}

BENCH_INLINE void value_run(void *made, size_t rounds)
{
    value_t &co = *static_cast<value_t *>(made);
    uintptr_t sum = 0;
    for (; rounds && co.resume(rounds); rounds--)
        sum += co.value();
    native_must(rounds == 0, "it ended");
    bench_sink(sum);
}
NATIVE_RUN(value_run)

/* ---- A balanced tree, its values in order: by callback, by generator, by a generator for each node ---- */

typedef struct node {
    struct node *left, *right;
    int value;
} node_t;

typedef struct tree {
    node_t *root;
    size_t nodes;
    uint64_t sum;
    unsigned placement;
} tree_t;

/* A tree of the values from `first` up to `end` - 1. The nodes are in memory in the order of a walk from the root. */
static node_t *tree_of(int first, int end, node_t **next)
{
    if (first == end)
        return NULL;
    node_t *n = (*next)++;
    n->value = first + (end - first) / 2;
    n->left = tree_of(first, n->value, next);
    n->right = tree_of(n->value + 1, end, next);
    return n;
}

static void *tree_make(unsigned placement, size_t number)
{
    static tree_t tree; /* one for all samples */
    if (!tree.root) {
        node_t *next = static_cast<node_t *>(bench_alloc(number * sizeof *next));
        tree.nodes = number;
        tree.sum = (uint64_t)number * (number - 1) / 2;
        tree.root = tree_of(0, (int)number, &next);
    }
    tree.placement = placement;
    return &tree;
}

typedef void (*callback_t)(void *context, int value);

static __attribute__((noinline, aligned(64))) void add(void *context, int value)
{
    *static_cast<uint64_t *>(context) += (uint64_t)value;
}

#define VISIT(pad)                                                                                                     \
    NATIVE_HOT(pad) void visit_##pad(const node_t *n, callback_t callback, void *context)                              \
    {                                                                                                                  \
        if (n->left)                                                                                                   \
            visit_##pad(n->left, callback, context);                                                                   \
        callback(context, n->value);                                                                                   \
        if (n->right)                                                                                                  \
            visit_##pad(n->right, callback, context);                                                                  \
    }
#define WALK(pad)                                                                                                      \
    NATIVE_HOT(pad) void walk_##pad(const node_t *n, aco::yielder<int> &yield)                                         \
    {                                                                                                                  \
        if (n->left)                                                                                                   \
            walk_##pad(n->left, yield);                                                                                \
        yield(n->value);                                                                                               \
        if (n->right)                                                                                                  \
            walk_##pad(n->right, yield);                                                                               \
    }
VISIT(0) VISIT(16) VISIT(32) VISIT(48)
WALK(0) WALK(16) WALK(32) WALK(48)

BENCH_INLINE void visit_run(void *made, size_t rounds)
{
    static void (*const all[])(const node_t *, callback_t, void *) = NATIVE_ALL(visit);
    const tree_t &tree = *static_cast<tree_t *>(made);
    for (; rounds; rounds--) {
        uint64_t sum = 0;
        all[tree.placement](tree.root, (callback_t)bench_hide((uintptr_t)add), &sum);
        native_must(sum == tree.sum, "other values came");
    }
}
NATIVE_RUN(visit_run)

BENCH_INLINE void generator_run(void *made, size_t rounds)
{
    static void (*const all[])(const node_t *, aco::yielder<int> &) = NATIVE_ALL(walk);
    const tree_t &tree = *static_cast<tree_t *>(made);
    for (; rounds; rounds--) {
        uint64_t sum = 0;
        for (int value : aco::generator<int>([&](aco::yielder<int> &yield) { all[tree.placement](tree.root, yield); }))
            sum += (uint64_t)value;
        native_must(sum == tree.sum, "other values came");
    }
}
NATIVE_RUN(generator_run)

static aco::generator<int> elements(const node_t *n)
{
    return aco::generator<int>([n](aco::yielder<int> &yield) {
        if (n->left)
            yield.yield_from(elements(n->left));
        yield(n->value);
        if (n->right)
            yield.yield_from(elements(n->right));
    });
}

BENCH_INLINE void generators_run(void *made, size_t rounds)
{
    const tree_t &tree = *static_cast<tree_t *>(made);
    for (; rounds; rounds--) {
        uint64_t sum = 0;
        for (int value : elements(tree.root))
            sum += (uint64_t)value;
        native_must(sum == tree.sum, "other values came");
    }
}
NATIVE_RUN(generators_run)

static const native_case_t cases[] = {
    {"resume", resume_make, NATIVE_ALL(resume_run)},
    {"own_exceptions", exceptions_make, NATIVE_ALL(resume_run)},
    {"coroutine", plain_make, NATIVE_ALL(plain_run)},
    {"coroutine_shared", shared_make, NATIVE_ALL(plain_run)},
    {"coroutine_value", value_make, NATIVE_ALL(value_run)},
    {"visit", tree_make, NATIVE_ALL(visit_run)},
    {"generator", tree_make, NATIVE_ALL(generator_run)},
    {"generators", tree_make, NATIVE_ALL(generators_run)},
    {NULL, NULL, {NULL, NULL, NULL, NULL}},
};

int main(int argc, char **argv)
{
    return native_main(argc, argv, cases);
}
