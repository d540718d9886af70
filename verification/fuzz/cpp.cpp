/* Sequences of calls of aco.hpp against a model of what it promises: coroutines yield, are sent and return ints, throw,
 * have exceptions raised in them, are cancelled, moved and destroyed; destructors of objects on their stacks act in
 * turn; generators of C++ and of C, and those on their consumer's stack, act in turn too; the program's memory runs
 * out. The input's bytes are operations; whoever runs takes the next one. After each call the model says what came
 * back, or what was thrown; at the end every object must have been destroyed once.
 *
 * FUZZ_MALLOC: malloc() can be replaced, so that the C++ run time's own memory runs out too. */
#include "aco.hpp"
#include "aco/in_stack_generator.h"
#define FUZZ_NAME "cpp"
#include "fuzz.h"

#include <array>
#include <new>
#include <vector>

/* ---- Memory ---- */

static long allocations_left = -1; /* then they fail; -1: none fails */
static int may_not_fail; /* the model allocates */
static unsigned long failures;

static bool fails()
{
    if (may_not_fail || allocations_left < 0 || allocations_left-- > 0)
        return false;
    allocations_left = 0;
    failures++;
    return true;
}

#ifdef FUZZ_MALLOC
extern "C" void *__libc_malloc(size_t);
extern "C" void *malloc(size_t sz)
{
    if (!fails())
        return __libc_malloc(sz);
    errno = ENOMEM;
    return nullptr;
}
#define NEW_FAILS false /* malloc() says it */
#else
#define NEW_FAILS fails()
#endif

void *operator new(std::size_t sz)
{
    void *p = NEW_FAILS ? nullptr : std::malloc(sz);
    if (!p)
        throw std::bad_alloc();
    return p;
}
void *operator new(std::size_t sz, const std::nothrow_t &) noexcept
{
    return NEW_FAILS ? nullptr : std::malloc(sz);
}
__attribute__((noinline)) void operator delete(void *p) noexcept /* inline, gcc warns of free() after new */
{
    std::free(p);
}
__attribute__((noinline)) void operator delete(void *p, std::size_t) noexcept
{
    std::free(p);
}

namespace {

enum { SLOTS = 8, MAIN = -1, BUSY = -2, DEPTH = 5, LEVELS = 4, STACK = UNDER_ASAN ? 512 << 10 : 128 << 10 };

struct thrown {
    static inline int alive;
    int number;
    explicit thrown(int n) : number(n) { alive++; }
    thrown(const thrown &other) : number(other.number) { alive++; }
    thrown &operator=(const thrown &) = delete;
    ~thrown() { alive--; }
};

struct memory_for_model {
    memory_for_model() { may_not_fail++; }
    memory_for_model(const memory_for_model &) = delete;
    ~memory_for_model() { may_not_fail--; }
};

enum state { READY, RUNNING, RESUMING, SUSPENDED, DONE };
enum outcome { YIELDED, RETURNED, THREW, CANCELLED };

/* What the model knows of a coroutine; it stays where it is when the object that owns the coroutine is moved. */
struct actor {
    state now = READY;
    int resumer = MAIN;
    bool is_shared = false, own_exceptions = false, is_ending = false;
    outcome last = YIELDED;
    int value = 0;          /* of that */
    int sent = 0;
    int raised = 0;         /* thrown where it is suspended; 0: nothing */
    int guards = 0, depth = 0;
    int functions = 0;      /* copies of its function object */
};

using coroutine = aco::coroutine<int, int, int>;

std::vector<actor> actors;
struct slot {
    coroutine co;
    int id = MAIN; /* of its actor; MAIN: empty; BUSY: being emptied */
};
std::array<slot, SLOTS> slots;
aco_share_stack_t *stack;
int running = MAIN, serial, main_guards, main_depth;

int &depth_of(int me)
{
    return me == MAIN ? main_depth : actors[me].depth;
}

int &guards_of(int me)
{
    return me == MAIN ? main_guards : actors[me].guards;
}

} // namespace

static int fuzz_actor(void)
{
    return running;
}

__attribute__((format(printf, 1, 2))) OUTLINE void trace(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%*s%d: ", 2 * depth_of(running), "", running);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

namespace {

void interpret(int me, coroutine::self *self);

void catches(int me, coroutine::self *self)
{
    int depth = depth_of(me);
    if (depth >= DEPTH)
        return;
    try {
        interpret(me, self);
    } catch (const thrown &) {
        EXPECT(running == me);
        depth_of(me) = depth;
    }
}

/* In a coroutine's function object: counts its copies. */
struct token {
    int id;
    explicit token(int of) : id(of) { actors[id].functions++; }
    token(const token &other) : id(other.id) { actors[id].functions++; }
    token(token &&other) noexcept : id(other.id) { actors[id].functions++; }
    ~token() { actors[id].functions--; }
};

/* On the stack of an actor: its destructor may take operations, but does not yield. */
struct guard {
    int me;
    bool acts;
    guard(int whose, bool does) : me(whose), acts(does)
    {
        guards_of(me)++;
    }
    guard(const guard &) = delete;
    ~guard()
    {
        EXPECT(running == me);
        guards_of(me)--;
        if (acts && depth_of(me) < DEPTH && !is_over())
            interpret(me, nullptr);
    }
};

/* ---- Control goes and comes ---- */

void hand_over(int me, int id)
{
    if (me != MAIN)
        actors[me].now = RESUMING;
    actors[id].now = RUNNING;
    actors[id].resumer = me;
    running = id;
}

/* By a coroutine, before it yields, returns or throws. */
void hand_back(int me, state then, outcome last, int value)
{
    actor &a = actors[me];
    a.now = then;
    a.last = last;
    a.value = value;
    running = a.resumer;
    if (running != MAIN)
        actors[running].now = RUNNING;
}

/* The errno with which a resume by `me` fails. */
int resume_error(int me, int id, bool passes_values)
{
    const actor &a = actors[id];
    if (passes_values && FUZZ_COPYING && a.is_shared && me != MAIN && me != id && actors[me].is_shared)
        return EINVAL;
    return a.now == DONE ? ESRCH : a.now == RUNNING || a.now == RESUMING ? EBUSY : 0;
}

template<class Call>
void expect_error(int line, int error, Call call)
{
    unsigned long failed = failures;
    try {
        call();
    } catch (const aco::error &e) {
        if (e.code().value() != error)
            fail(line, "failed with errno %d, not %d: %s", e.code().value(), error, e.what());
        return;
    } catch (const std::bad_alloc &) {
        EXPECT(failures > failed);
        return;
    }
    fail(line, "did not fail: errno %d expected", error);
}

/* `call` has resumed slots[i]. Its actor says how that ended. */
template<class Call>
void settle(int me, int i, Call call)
{
    int id = slots[i].id;
    try {
        bool more = call();
        EXPECT(actors[id].last == (more ? YIELDED : RETURNED));
        EXPECT((more ? slots[i].co.value() : slots[i].co.result()) == actors[id].value);
    } catch (const thrown &e) {
        EXPECT(actors[id].last == THREW && e.number == actors[id].value);
    }
    EXPECT(running == me && slots[i].id == id);
    EXPECT(slots[i].co.done() == (actors[id].now == DONE));
    EXPECT(actors[id].now != DONE || actors[id].guards == 0);
}

void op_resume(int me, int i)
{
    int id = slots[i].id, error, value = ++serial;
    if (id < 0)
        return;
    error = resume_error(me, id, true);
    TRACE("resume %d (actor %d) with %d: errno %d", i, id, value, error);
    if (error) {
        expect_error(__LINE__, error, [&] { slots[i].co.resume(value); });
        return;
    }
    actors[id].sent = value;
    hand_over(me, id);
    settle(me, i, [&] { return slots[i].co.resume(value); });
}

void op_raise(int me, int i)
{
    int id = slots[i].id, number = ++serial, error;
    if (id < 0)
        return;
    TRACE("raise %d in %d", number, i);
    if (actors[id].now == READY) {
        actors[id].now = DONE;
        actors[id].last = THREW;
        actors[id].value = number;
        settle(me, i, [&] { return slots[i].co.raise(thrown{number}); });
        return;
    }
    error = resume_error(me, id, true);
    if (error) {
        expect_error(__LINE__, error, [&] { slots[i].co.raise(thrown{number}); });
        return;
    }
    actors[id].raised = number;
    hand_over(me, id);
    settle(me, i, [&] { return slots[i].co.raise(thrown{number}); });
}

/* Whether it may be ended; if so, what the model knows of that. */
bool may_end(int id)
{
    return id == MAIN ||
           (id >= 0 && (actors[id].now == READY || actors[id].now == SUSPENDED || actors[id].now == DONE));
}

template<class Call>
void ends(int me, int id, Call call)
{
    bool unwinds = id != MAIN && actors[id].now == SUSPENDED;
    if (unwinds) {
        hand_over(me, id);
        actors[id].is_ending = true;
    }
    call();
    if (unwinds) {
        EXPECT(running == id && actors[id].guards == 0);
        hand_back(id, DONE, CANCELLED, 0);
        actors[id].is_ending = false;
    }
    if (id != MAIN)
        actors[id].now = DONE;
    EXPECT(running == me);
}

void op_cancel(int me, int i)
{
    int id = slots[i].id;
    if (id < 0)
        return;
    TRACE("cancel %d", i);
    if (!may_end(id))
        expect_error(__LINE__, EBUSY, [&] { slots[i].co.cancel(); });
    else
        ends(me, id, [&] { slots[i].co.cancel(); });
}

/* The object of slots[i] ends: by reset(), by the destructor, or because another is moved there. */
void vacate(int me, int i, unsigned how)
{
    int id = slots[i].id;
    slots[i].id = BUSY;
    ends(me, id, [&] {
        if (how % 2)
            slots[i].co.reset();
        else
            coroutine freed = std::move(slots[i].co);
    });
    slots[i].id = MAIN;
    EXPECT(id == MAIN || actors[id].functions == 0);
}

void op_move(int me, int i, int j)
{
    int id;
    if (i == j || !may_end(slots[i].id))
        return;
    TRACE("move %d to %d", j, i);
    vacate(me, i, 0);
    id = slots[j].id;
    if (!may_end(id)) /* the object is in use, by a resume() */
        return;
    slots[i].co = std::move(slots[j].co);
    slots[i].id = id;
    slots[j].id = MAIN;
    EXPECT(slots[j].co.done() && !slots[j].co.native_handle());
}

/* ---- A coroutine's function ---- */

int begin(coroutine::self &self, int id, int first)
{
    EXPECT(running == id && actors[id].now == RUNNING && first == actors[id].sent);
    EXPECT(self.native_handle() == aco_get_co());
    try {
        interpret(id, &self);
    } catch (const thrown &e) {
        EXPECT(running == id && actors[id].guards == 0);
        hand_back(id, DONE, THREW, e.number);
        throw;
    }
    EXPECT(running == id && actors[id].guards == 0);
    hand_back(id, DONE, RETURNED, ++serial);
    return actors[id].value;
}

void op_new(int me, int i)
{
    unsigned how = next();
    int id = static_cast<int>(actors.size());
    aco::options options;
    if (slots[i].id != MAIN || id > 200)
        return;
    actors.emplace_back();
    actors[id].is_shared = how & 1;
    actors[id].own_exceptions = how & 2;
    if (FUZZ_COPYING && (how & 1))
        options.on(stack).with_save_size(how & 4 ? 4096 : 0);
    else if (how & 4)
        options.with_stack_size(STACK);
    else
        options.with_stack_size(2 * STACK);
    options.with(how & 2 ? ACO_OWN_EXCEPTIONS : ACO_SHARED_EXCEPTIONS);
    if (how & 8)
        options.named("fuzz");
    TRACE("new %d: actor %d%s%s", i, id, how & 1 ? ", shared" : "", how & 2 ? ", own exceptions" : "");
    unsigned long failed = failures;
    try {
        token t(id);
        slots[i].co = coroutine([t](coroutine::self &self, int first) { return begin(self, t.id, first); }, options);
    } catch (const std::bad_alloc &) {
        EXPECT(failures > failed && actors[id].functions == 0 && running == me);
        actors[id].now = DONE;
        return;
    }
    slots[i].id = id;
    EXPECT(actors[id].functions == 1 && !slots[i].co.done() && running == me);
}

void op_yield(int me, coroutine::self *self, bool catches)
{
    int value = ++serial, got;
    if (!self || actors[me].is_ending)
        return;
    TRACE("yield %d", value);
    hand_back(me, SUSPENDED, YIELDED, value);
    try {
        got = self->yield(value);
    } catch (const thrown &e) {
        EXPECT(running == me && actors[me].raised && e.number == actors[me].raised);
        actors[me].raised = 0;
        if (!catches)
            throw;
        return;
    }
    EXPECT(running == me && !actors[me].raised && got == actors[me].sent);
}

/* A yield while an exception is being handled, which must be the same afterwards. */
void op_yield_in_catch(int me, coroutine::self *self)
{
    int number = ++serial;
    if (!self || !actors[me].own_exceptions)
        return;
    try {
        throw thrown{number};
    } catch (const thrown &) {
        try {
            op_yield(me, self, true);
        } catch (...) { /* a cancellation */
            EXPECT(actors[me].is_ending && !std::current_exception());
            throw;
        }
        try {
            throw;
        } catch (const thrown &e) {
            EXPECT(e.number == number);
        }
    }
}

/* ---- Generators ---- */

/* Whether a generator with a stack of its own may take operations. Not if its consumer is on a share stack, because
 * they may switch to another coroutine there. */
bool may_act(int me)
{
    return me == MAIN || !actors[me].is_shared;
}

/* ---- Generators of C++ ---- */

/* The elements that a generator makes, its own and those of others, and whether it throws at the end. */
struct plan {
    std::vector<std::pair<int, std::vector<plan>>> steps; /* an element; or 0 and one plan */
    int throws = 0;
    bool by_loop = false; /* passes on the elements of others one by one */
};

plan draw_plan(int level)
{
    memory_for_model lasts;
    plan p;
    unsigned n = next() % 6;
    p.by_loop = next() & 1;
    for (unsigned i = 0; i < n && !is_over(); i++) {
        if (next() % 3 == 0 && level < LEVELS)
            p.steps.push_back({0, {draw_plan(level + 1)}});
        else
            p.steps.push_back({++serial, {}});
    }
    if (next() % 5 == 0)
        p.throws = ++serial;
    return p;
}

/* Its elements; the exception that ends them, or 0. */
int elements_of(const plan &p, std::vector<int> &elements)
{
    memory_for_model lasts;
    for (const auto &[element, inner] : p.steps) {
        int ended = 0;
        if (inner.empty())
            elements.push_back(element);
        else
            ended = elements_of(inner.front(), elements);
        if (ended)
            return ended;
    }
    return p.throws;
}

/* For whom a generator makes its elements. `self`: NULL too if the coroutine must not yield there. */
struct consumer {
    int me;
    coroutine::self *self;
    unsigned flags;
};

aco::generator<int> make(const plan &p, const consumer &by)
{
    aco::options options;
    options.with_stack_size(STACK).with(by.flags);
    return aco::generator<int>(
        [&p, &by](aco::yielder<int> &yield) {
            guard here(by.me, may_act(by.me) && next() % 4 == 3);
            for (const auto &[element, inner] : p.steps) {
                if (may_act(by.me) && next() % 4 == 3)
                    catches(by.me, by.self);
                if (inner.empty() && element % 3 == 0) {
                    try {
                        throw thrown{element};
                    } catch (const thrown &) { /* each side has its own */
                        yield(element);
                        try {
                            throw;
                        } catch (const thrown &e) {
                            EXPECT(e.number == element);
                        }
                    }
                } else if (inner.empty()) {
                    yield(element);
                } else if (p.by_loop) {
                    for (int &handed_on : make(inner.front(), by))
                        yield(handed_on);
                } else {
                    yield.yield_from(make(inner.front(), by));
                }
            }
            if (p.throws)
                throw thrown{p.throws};
        },
        options);
}

void op_generator(int me, coroutine::self *self)
{
    int before = guards_of(me);
    unsigned long failed = failures;
    plan p = draw_plan(0);
    unsigned stop = next(), flags = next() % 4 == 0 ? ACO_OWN_EXCEPTIONS : 0;
    consumer by = {me, me != MAIN && actors[me].own_exceptions ? self : nullptr, flags};
    std::vector<int> elements;
    size_t seen = 0;
    int ended = elements_of(p, elements);
    TRACE("generator of %zu elements", elements.size());
    try {
        aco::generator<int> g = make(p, by);
        if (stop & 128)
            g = make(p, by);
        for (int &element : g) {
            EXPECT(running == me && seen < elements.size() && element == elements[seen]);
            if (++seen == stop % 32)
                break;
            if (next() % 8 == 0)
                op_yield(me, self, true);
        }
        EXPECT(seen == stop % 32 || (seen == elements.size() && !ended));
    } catch (const thrown &e) {
        EXPECT(e.number == ended && seen == elements.size());
    } catch (const std::bad_alloc &) {
        EXPECT(failures > failed);
    }
    EXPECT(running == me && guards_of(me) == before);
}

/* ---- Generators of C: they have their consumer's exceptions ---- */

struct numbers {
    int me;
    coroutine::self *self;
    bool acts; /* its function takes operations */
    unsigned count;
    int ended; /* by this exception; or 0 */
};

/* The generator's function. generate(i) gives a number to the consumer. */
template<class Generate>
void make_numbers(numbers &n, Generate generate)
{
    guard here(n.me, n.acts && next() % 4 == 3);
    for (unsigned i = 1; i <= n.count; i++) {
        try {
            if (n.acts && depth_of(n.me) < DEPTH)
                interpret(n.me, n.self);
        } catch (const thrown &e) {
            n.ended = e.number;
            throw;
        }
        generate(i);
    }
    if (n.ended)
        throw thrown{n.ended};
}

ACO_GENERATOR(on_own_stack, y, arg)
{
    make_numbers(*static_cast<numbers *>(arg),
                 [y](unsigned i) { aco_generate(y, reinterpret_cast<void *>(uintptr_t{i})); });
}

ACO_IN_STACK_GENERATOR(in_stack, y, arg)
{
    make_numbers(*static_cast<numbers *>(arg),
                 [y](unsigned i) { aco_generate_in_stack(y, reinterpret_cast<void *>(uintptr_t{i})); });
}

/* After each number; whether it wants another. */
bool take_number(const numbers &n, const void *value, unsigned i, unsigned stop)
{
    EXPECT(running == n.me && reinterpret_cast<uintptr_t>(value) == i && i <= n.count);
    if (i == stop)
        return false;
    if (next() % 4 == 0)
        op_yield(n.me, n.self, true);
    return true;
}

__attribute__((noinline)) void consume_own_stack(numbers &n, unsigned stop)
{
    __attribute__((cleanup(aco_generator_close))) aco_generator_t g = {};
    aco_options_t options = {};
    unsigned i = 0;
    options.stack_size = STACK;
    n.acts = may_act(n.me);
    EXPECT(aco_generator_open(&g, on_own_stack, &n, &options) == 0);
    while (aco_generator_next(&g))
        if (!take_number(n, g.value, ++i, stop))
            return;
    EXPECT(i == n.count && !n.ended);
}

__attribute__((noinline)) void consume_in_stack(numbers &n, unsigned stop)
{
    __attribute__((cleanup(aco_in_stack_close))) aco_in_stack_t g = {};
    unsigned i = 0;
    n.acts = true;
    aco_in_stack_open(&g, in_stack, &n);
    while (aco_in_stack_next(&g) > 0)
        if (!take_number(n, g.value, ++i, stop))
            return;
    EXPECT(i == n.count && !n.ended);
}

void op_c_generator(int me, coroutine::self *self)
{
    int depth = depth_of(me), before = guards_of(me);
    unsigned how = next(), stop = next() % 8;
    numbers n = {me, self, false, how >> 2 & 7, how >> 5 ? 0 : ++serial};
    TRACE("generator %s of %u numbers", how & 1 ? "on the stack" : "with a stack", n.count);
    try {
        if (how & 1)
            consume_in_stack(n, stop);
        else
            consume_own_stack(n, stop);
    } catch (const thrown &e) {
        EXPECT(e.number == n.ended);
        depth_of(me) = depth;
    }
    EXPECT(running == me && guards_of(me) == before);
}

/* ---- The interpreter ---- */

void op_throw(int me, coroutine::self *self)
{
    if (me != MAIN && self)
        throw thrown{++serial};
}

void throws_on(int me, coroutine::self *self)
{
    try {
        catches(me, self);
    } catch (...) { /* a cancellation */
        EXPECT(actors[me].is_ending && !std::current_exception());
        throw;
    }
}

/* Others act while an exception is being handled, which must be the same afterwards. */
void in_catch(int me, coroutine::self *self)
{
    try {
        throw thrown{++serial};
    } catch (const thrown &) {
        std::exception_ptr handled = std::current_exception();
        throws_on(me, me != MAIN && actors[me].own_exceptions ? self : nullptr);
        EXPECT(std::current_exception() == handled);
    }
}

void deeper(int me, coroutine::self *self)
{
    switch (next() % 4) {
    case 0: in_catch(me, self); break;
    case 1: throws_on(me, self); break;
    case 2:
        if (depth_of(me) < DEPTH)
            interpret(me, self);
        break;
    default: catches(me, self);
    }
}

/* From now on some allocations succeed, and then none. Or all do again. */
void op_memory()
{
    unsigned how = next();
    allocations_left = how & 1 ? static_cast<long>(how >> 4) : -1;
    TRACE("memory for %ld allocations", allocations_left);
}

/* 0: the interpreter returns. */
bool operate(int me, coroutine::self *self)
{
    unsigned op = next();
    int i = static_cast<int>(op >> 5);
    switch (op % 32) {
    case 0: case 1: case 2: op_new(me, i); break;
    case 3: case 4: case 5: case 6: case 7: op_resume(me, i); break;
    case 8: case 9: op_raise(me, i); break;
    case 10: op_cancel(me, i); break;
    case 11: op_move(me, i, static_cast<int>(next() % SLOTS)); break;
    case 12:
        if (may_end(slots[i].id))
            vacate(me, i, op >> 6);
        break;
    case 13: case 14: case 15: case 16: case 17: op_yield(me, self, i & 1); break;
    case 18: case 19: op_yield_in_catch(me, self); break;
    case 20: case 21: op_throw(me, self); break;
    case 22: case 23: case 24: case 25: deeper(me, self); break;
    case 26: op_generator(me, self); break;
    case 27: op_c_generator(me, self); break;
    case 28:
        if (slots[i].id >= 0)
            EXPECT(slots[i].co.done() == (actors[slots[i].id].now == DONE));
        break;
    case 29: op_memory(); break;
    default: return false;
    }
    return true;
}

/* `self` is NULL in the root context and in destructors: nothing is yielded or thrown. */
__attribute__((noinline)) void interpret(int me, coroutine::self *self)
{
    int depth = depth_of(me);
    depth_of(me)++;
    {
        guard here(me, next() % 4 == 3);
        while (!is_over() && operate(me, self)) {
        }
    }
    EXPECT(running == me);
    depth_of(me) = depth;
}

} // namespace

static void fuzz_input(void)
{
    allocations_left = -1;
    actors.clear();
    actors.reserve(256); /* references to them stay valid */
    serial = 0;
    main_depth = 0;
    running = MAIN;
    stack = aco_share_stack_new(0);
    while (!is_over())
        interpret(MAIN, nullptr);
    for (int i = 0; i < SLOTS; i++)
        vacate(MAIN, i, 1);
    allocations_left = -1;
    for (const actor &a : actors)
        EXPECT(a.now == DONE && a.guards == 0 && a.functions == 0);
    EXPECT(main_guards == 0);
    EXPECT(thrown::alive == 0);
    EXPECT(!std::current_exception());
    EXPECT(std::uncaught_exceptions() == 0);
    EXPECT(aco_each([](aco_t *, void *) { return 1; }, nullptr) == 0);
    aco_share_stack_destroy(stack);
}
