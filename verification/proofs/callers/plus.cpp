// Callers in C++, with destructors and exceptions around the switches.
#include <aco.hpp>

extern "C" long next(void);
extern "C" void put(long x);

struct held {
    long value = next();
    held() = default;
    held(const held &) = delete;
    ~held() { put(value); }
};

long resumes(aco_t *co)
{
    held a, b;
    long c = next(), d = next();
    aco_resume(co);
    put(a.value + b.value);
    aco_send(co, nullptr);
    return c + d;
}

long yields()
{
    held a;
    long c = next(), d = next();
    for (long i = 0; i < c; i++) {
        aco_yield();
        d += i;
    }
    return d;
}
