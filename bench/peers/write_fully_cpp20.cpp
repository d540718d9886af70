// write_fully() as C++20 coroutines: every level that may wait is a task, which its caller awaits. A task switches
// straight to the awaited task and back, by symmetric transfer. Frames come from operator new or from a list of free
// frames.
#include "../sending.h"

#include <coroutine>
#include <exception>
#include <utility>

// ---- Frames ----

struct from_new {};

// One free list; all its frames have the size of the largest.
struct from_pool {
    static void *operator new(size_t size)
    {
        native_must(size <= SIZE, "a larger frame than the pool has");
        if (!first)
            return ::operator new(SIZE);
        return std::exchange(first, first->next);
    }
    static void operator delete(void *p)
    {
        first = new (p) frame{first};
    }

private:
    enum { SIZE = 256 };
    struct frame {
        frame *next;
        static void *operator new(size_t, void *p) { return p; }
    };
    static inline frame *first = nullptr;
};

// ---- Tasks ----

template <class Frames> struct promise_base : Frames {
    std::coroutine_handle<> waiting = std::noop_coroutine();
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept
    {
        struct to_the_waiting {
            bool await_ready() noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept { return next; }
            void await_resume() noexcept {}
            std::coroutine_handle<> next;
        };
        return to_the_waiting{waiting};
    }
    void unhandled_exception() { std::terminate(); }
};

template <class T, class Frames> struct promise_of : promise_base<Frames> {
    T value;
    void return_value(T returned) { value = returned; }
    T result() { return value; }
};
template <class Frames> struct promise_of<void, Frames> : promise_base<Frames> {
    void return_void() {}
    void result() {}
};

template <class T, class Frames> class task {
public:
    struct promise_type : promise_of<T, Frames> {
        task get_return_object() { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    };
    explicit task(std::coroutine_handle<promise_type> made) : handle(made) {}
    task(task &&other) noexcept : handle(std::exchange(other.handle, {})) {}
    ~task()
    {
        if (handle)
            handle.destroy();
    }
    bool await_ready() { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller)
    {
        handle.promise().waiting = caller;
        return handle;
    }
    T await_resume() { return handle.promise().result(); }

    std::coroutine_handle<promise_type> handle;
};

// ---- Round robin: a waiting task goes to the end of a queue, which has room for all ----

static std::coroutine_handle<> queue[16];
static unsigned head, tail;

static void enqueue(std::coroutine_handle<> h)
{
    queue[tail++ % 16] = h;
}

struct wait_for_ready {
    bool await_ready() { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> self)
    {
        enqueue(self);
        return queue[head++ % 16];
    }
    void await_resume() {}
};

// ---- The senders ----

// `way` is one of two paths, as in bench/write_fully.c.
template <class Frames, int way> __attribute__((noinline))
task<size_t, Frames> send_when_ready(connection_t *c, const char *data, size_t size)
{
    __asm__ volatile("# %c0" : : "i"(way));
    co_await wait_for_ready();
    co_return send_some(c, data, size);
}

template <class Frames, int way> __attribute__((noinline))
task<void, Frames> write_fully(connection_t *c, const char *data, size_t size)
{
    while (size > 0) {
        size_t sent = co_await send_when_ready<Frames, way>(c, data, size);
        data += sent;
        size -= sent;
    }
}

template <class Frames, int way> task<void, Frames> sender(connection_t *c, unsigned *left)
{
    co_await write_fully<Frames, way>(c, c->data, c->size);
    --*left;
}

template <class Frames, int ways> BENCH_INLINE void run(void *made, size_t rounds)
{
    sending_t *s = static_cast<sending_t *>(made);
    for (; rounds; rounds--) {
        unsigned left = SENDERS;
        sending_begin(s);
        task<void, Frames> *tasks[SENDERS];
        for (int i = 0; i < SENDERS; i++) {
            tasks[i] = new task<void, Frames>(i % ways ? sender<Frames, 1>(&s->connections[i], &left)
                                                       : sender<Frames, 0>(&s->connections[i], &left));
            enqueue(tasks[i]->handle);
        }
        while (left)
            queue[head++ % 16].resume();
        for (task<void, Frames> *t : tasks)
            delete t;
        sending_check(s);
    }
}
BENCH_INLINE void new_run(void *made, size_t rounds)
{
    run<from_new, 1>(made, rounds);
}
BENCH_INLINE void mixed_run(void *made, size_t rounds)
{
    run<from_new, 2>(made, rounds);
}
BENCH_INLINE void pool_run(void *made, size_t rounds)
{
    run<from_pool, 1>(made, rounds);
}
NATIVE_RUN(new_run)
NATIVE_RUN(mixed_run)
NATIVE_RUN(pool_run)

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"write_fully", sending_make, NATIVE_ALL(new_run)},
        {"write_fully_mixed", sending_make, NATIVE_ALL(mixed_run)},
        {"write_fully_pool", sending_make, NATIVE_ALL(pool_run)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    return native_main(argc, argv, cases);
}
