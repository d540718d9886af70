// What the convention could break, each in functions that the pass infects: exceptions that cross them, indirect calls
// beside them, objects with destructors, large, floating-point and vector arguments and results, setjmp, frames of
// variable size. Prints one line for each and a sum; the same with and without the pass.
#include <aco.h>

#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

#define KEPT __attribute__((noinline)) static // so that there is a call to change
typedef double pair __attribute__((vector_size(16)));

static unsigned long sum;
static int depth_left;

static void note(const char *what, unsigned long value)
{
    std::printf("%s %lu\n", what, value);
    sum = sum * 1000003 + value;
}

KEPT unsigned long yields(unsigned long value)
{
    return (unsigned long)(uintptr_t)aco_yield_value((void *)(uintptr_t)value) + value;
}

// Exceptions: thrown below infected frames, caught in one and above all; destructors run on the way.
struct counts {
    unsigned long *destroyed;
    explicit counts(unsigned long *where) : destroyed(where) {}
    ~counts() { ++*destroyed; }
};
KEPT unsigned long throws(unsigned long value, unsigned long *destroyed)
{
    counts counted(destroyed);
    value += yields(value);
    if (--depth_left > 0)
        return throws(value, destroyed) + value;
    throw std::runtime_error(std::to_string(value));
}
KEPT unsigned long catches(unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e)
{
    unsigned long destroyed = 0, caught = 0;
    try {
        caught = throws(a, &destroyed);
    } catch (const std::runtime_error &error) {
        caught = std::strlen(error.what()) + yields(b);
    }
    return a + b * 2 + c * 3 + d * 5 + e * 7 + destroyed * 11 + caught * 13;
}

// Arguments and results that are not in integer registers.
struct large {
    unsigned long words[12];
};
KEPT large large_through(large by_value, double factor, pair vector, float small, long double extended)
{
    yields(by_value.words[3]);
    for (unsigned long &word : by_value.words)
        word = (unsigned long)((double)word * factor + vector[0] + vector[1] + (double)small + (double)extended);
    return by_value;
}
KEPT double doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j)
{
    double before = a * b + c * d;
    yields(5);
    return before + e * f + g * h + i * j;
}
KEPT unsigned long ten(unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e,
                       unsigned long f, unsigned long g, unsigned long h, unsigned long i, unsigned long j)
{
    return yields(a) + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10;
}
// These must keep their convention: more arguments than it has registers to spare, a variable number, a taken address.
KEPT unsigned long twelve(unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e,
                          unsigned long f, unsigned long g, unsigned long h, unsigned long i, unsigned long j,
                          unsigned long k, unsigned long l)
{
    return ten(a, b, c, d, e, f, g, h, i, j) + k * 11 + l * 12;
}
KEPT unsigned long variadic(int n, ...)
{
    va_list arguments;
    va_start(arguments, n);
    unsigned long total = 0;
    while (n--)
        total = total * 3 + yields(va_arg(arguments, unsigned long));
    va_end(arguments);
    return total;
}
KEPT unsigned long taken(unsigned long value)
{
    return yields(value + 1) * 2;
}

// A frame of variable size with an over-aligned part, and setjmp around infected frames.
KEPT unsigned long variable_frame(unsigned n)
{
    alignas(64) unsigned char aligned[64];
    unsigned char *block = (unsigned char *)__builtin_alloca(n);
    std::memset(block, (int)n, n);
    std::memset(aligned, 3, sizeof aligned);
    yields(n);
    unsigned long total = ((uintptr_t)aligned & 63) != 0;
    for (unsigned i = 0; i < n; i++)
        total += block[i];
    return total + aligned[63];
}
static std::jmp_buf back;
KEPT void jumps(unsigned long value)
{
    yields(value);
    if (value)
        std::longjmp(back, (int)value);
}
KEPT unsigned long around_setjmp(unsigned long a, unsigned long b)
{
    volatile unsigned long kept = a * 3;
    if (int value = setjmp(back))
        return kept + b + (unsigned long)value;
    jumps(b);
    return 0;
}

struct base {
    virtual ~base() = default;
    virtual unsigned long through(unsigned long value) = 0;
};
namespace {
struct derived final : base {
    unsigned long through(unsigned long value) override { return yields(value) + 17; }
};
} // namespace

KEPT void all(base &object, unsigned long (*pointer)(unsigned long))
{
    depth_left = 4;
    note("exceptions", catches(1, 2, 3, 4, 5));
    large words;
    for (unsigned long i = 0; i < 12; i++)
        words.words[i] = i;
    words = large_through(words, 3.5, pair{1, 2}, 0.5f, 4.0L);
    note("large", words.words[0] + words.words[11] * 100);
    note("doubles", (unsigned long)doubles(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    note("ten", ten(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    note("twelve", twelve(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    note("variadic", variadic(3, 4ul, 5ul, 6ul));
    note("taken", pointer(3) + taken(4));
    note("virtual", object.through(5));
    std::function<unsigned long(unsigned long)> function = [&](unsigned long value) {
        return taken(value) + object.through(value);
    };
    note("function", function(6));
    note("variable frame", variable_frame(100) + variable_frame(33));
    note("setjmp", around_setjmp(7, 8));
}

static void *entry(void *argument)
{
    derived object;
    all(object, argument ? taken : nullptr);
    return nullptr;
}

int main()
{
    aco_t *co = aco_new(entry, &sum, nullptr);
    if (!co)
        return 1;
    unsigned long switches = 0;
    for (; !co->is_end; switches++)
        aco_send(co, (void *)(uintptr_t)switches);
    note("switches", switches);
    aco_destroy(co);
    std::printf("sum %lu\n", sum);
    return 0;
}
