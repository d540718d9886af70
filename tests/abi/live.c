/* Values of every type that live across a switch: more of each than there are registers, on both sides, on a copying
 * stack and on private ones. Also frames with over-aligned locals, alloca() and stack arguments.
 *
 * Every computation runs once without switches and once with them, by the same machine code, and must give the same. */
#include "aco.h"
#include "check.h"

#include <float.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif
#ifdef __AVX2__
#include <cpuid.h>
#endif

#define NOINLINE __attribute__((noinline))

/* How a computation switches. */
enum mode { PLAIN, YIELD, RESUME };
static aco_t *helpers[2]; /* who is resumed in mode RESUME, in turn; they only yield */

static inline __attribute__((always_inline)) void step(enum mode mode, unsigned i)
{
    if (mode == YIELD)
        aco_yield();
    else if (mode == RESUME)
        aco_resume(helpers[i & 1]);
}

/* The compiler knows nothing of `value` any more, and keeps it where it likes. */
#define OPAQUE(value) __asm__ volatile("" : "+r"(value))

/* ---- Many live values of one type -------------------------------------------------------------------------------- */

#define FOR_20(X)                                                                                                      \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)                                                                  \
    X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19)
#define DECLARE(n) value_t v##n = MAKE(seed + n);
#define UPDATE(n) v##n = NEXT(v##n, n);
#define STORE(n) memcpy(out + n * sizeof(value_t), &v##n, BYTES);

/* 20 accumulators, each changed between any two switches; their bytes go to `out`. */
#define LIVE(name)                                                                                                     \
    static NOINLINE void name(enum mode mode, unsigned seed, char *out)                                                \
    {                                                                                                                  \
        unsigned rounds = 6;                                                                                           \
        OPAQUE(rounds);                                                                                                \
        FOR_20(DECLARE)                                                                                                \
        for (unsigned i = 0; i < rounds; i++) {                                                                        \
            step(mode, i);                                                                                             \
            FOR_20(UPDATE)                                                                                             \
            step(mode, i + 1);                                                                                         \
        }                                                                                                              \
        FOR_20(STORE)                                                                                                  \
    }

#define BYTES sizeof(value_t)
#define MAKE(n) ((value_t)(n) * 0x9e3779b9u)
#define NEXT(v, n) ((v) * 3 + ((v) >> 7) + (value_t)(n))
#define value_t uint64_t
LIVE(live_integers)
#undef value_t
#define value_t uint16_t
LIVE(live_shorts)
#undef value_t
#if defined(__SIZEOF_INT128__)
#define HAS_INT128
__extension__ typedef unsigned __int128 wide_t;
#define value_t wide_t
LIVE(live_wide)
#undef value_t
#endif
#undef NEXT
#undef MAKE

#if LDBL_MANT_DIG == 64
enum { LONG_DOUBLE_BYTES = 10 }; /* the rest is padding */
#else
enum { LONG_DOUBLE_BYTES = sizeof(long double) };
#endif

/* Few bits, so that no value is rounded, wherever compilers keep it. */
#define MAKE(n) ((value_t)(int)((n) & 1023))
#define NEXT(v, n) ((v) * (value_t)3 + (value_t)(n))
#define value_t float
LIVE(live_floats)
#undef value_t
#define value_t double
LIVE(live_doubles)
#undef value_t
#define value_t _Complex double
LIVE(live_complex)
#undef value_t
#undef BYTES
#define BYTES LONG_DOUBLE_BYTES
#define value_t long double
LIVE(live_long_doubles)
#undef value_t
#undef BYTES
#undef NEXT
#undef MAKE

#define BYTES sizeof(value_t)
#ifdef __SSE2__
#define MAKE(n) _mm_set1_epi32((int)((n) * 0x9e3779b9u))
#define NEXT(v, n) _mm_xor_si128(_mm_add_epi32(v, _mm_set1_epi32(n)), _mm_slli_epi32(v, 3))
#define value_t __m128i
LIVE(live_xmm)
#undef value_t
#undef NEXT
#undef MAKE
#else /* the vector registers of the architecture, if it has any */
typedef uint32_t vector_t __attribute__((vector_size(16)));
#define MAKE(n) ((vector_t){0, 1, 2, 3} + (uint32_t)(n) * 0x9e3779b9u)
#define NEXT(v, n) (((v) + (uint32_t)(n)) ^ ((v) << 3))
#define value_t vector_t
LIVE(live_vectors)
#undef value_t
#undef NEXT
#undef MAKE
#endif
#ifdef __AVX2__
#define MAKE(n) _mm256_set1_epi32((int)((n) * 0x9e3779b9u))
#define NEXT(v, n) _mm256_xor_si256(_mm256_add_epi32(v, _mm256_set1_epi32(n)), _mm256_slli_epi32(v, 3))
#define value_t __m256i
LIVE(live_ymm)
#undef value_t
#undef NEXT
#undef MAKE
#endif
#ifdef __AVX512F__
#define MAKE(n) _mm512_set1_epi32((int)((n) * 0x9e3779b9u))
#define NEXT(v, n) _mm512_xor_si512(_mm512_add_epi32(v, _mm512_set1_epi32(n)), _mm512_slli_epi32(v, 3))
#define value_t __m512i
LIVE(live_zmm)
#undef value_t
#undef NEXT
#undef MAKE
#define MAKE(n) ((__mmask16)((n) * 0x9e37u))
#define NEXT(v, n) ((__mmask16)(_kxor_mask16(_knot_mask16(v), (__mmask16)(n))))
#define value_t __mmask16
LIVE(live_masks)
#undef value_t
#undef NEXT
#undef MAKE
#endif
#undef BYTES

/* A few of each at once. */
static NOINLINE void live_mixture(enum mode mode, unsigned seed, char *out)
{
    unsigned rounds = 6;
    uint64_t a = seed, b = seed * 3u, c = seed ^ 0x55u;
    double d = seed & 1023, e = d + 1;
    long double l = d * 2, m = l + 5;
    float f = (float)(seed & 255);
    OPAQUE(rounds);
    for (unsigned i = 0; i < rounds; i++) {
        a = a * 5 + b;
        step(mode, i);
        d = d + 0.5, l = l + 0.25L, f = f * 2;
        b ^= a + c;
        step(mode, i + 1);
        e = e + d, m = m + l;
        c += i;
    }
    memcpy(out, &a, 8), memcpy(out + 8, &b, 8), memcpy(out + 16, &c, 8);
    memcpy(out + 24, &d, 8), memcpy(out + 32, &e, 8), memcpy(out + 40, &f, 4);
    memcpy(out + 48, &l, LONG_DOUBLE_BYTES), memcpy(out + 64, &m, LONG_DOUBLE_BYTES);
}

/* ---- Frames ------------------------------------------------------------------------------------------------------ */

typedef struct {
    uint64_t a, b, c;
} three_t; /* larger than what goes in registers */

#define CHECK_ALIGNED(p, to) CHECK_EQ((uintptr_t)(p) % (to), 0)

/* Over-aligned locals, alloca() and stack arguments: the frame for which compilers want a base pointer. */
static NOINLINE uint64_t frame(enum mode mode, unsigned n, uint64_t a, uint64_t b, uint64_t c, double d, three_t s,
                               uint64_t e, uint64_t f, uint64_t g, long double h, uint64_t i, uint64_t j)
{
    _Alignas(64) uint64_t aligned[8];
    _Alignas(32) char more[96];
    uint64_t *dynamic = __builtin_alloca((n % 50 + 1) * sizeof *dynamic), sum = 0;
    for (unsigned k = 0; k < 8; k++)
        aligned[k] = a + k;
    memset(more, (int)n, sizeof more);
    for (unsigned k = 0; k < n % 50 + 1; k++)
        dynamic[k] = b * k;
    for (unsigned k = 0; k < 4; k++) {
        step(mode, k);
        CHECK_ALIGNED(aligned, 64);
        CHECK_ALIGNED(more, 32);
        aligned[k] += c + s.a;
        dynamic[n % 50] ^= e + s.b;
        step(mode, k + 1);
        sum += aligned[k] + dynamic[n % 50] + (unsigned char)more[k * 20] + f + g + i + j + s.c + (uint64_t)d +
               (uint64_t)h;
    }
    for (unsigned k = 0; k < 8; k++)
        sum = sum * 31 + aligned[k];
    for (unsigned k = 0; k < n % 50 + 1; k++)
        sum = sum * 31 + dynamic[k];
    for (unsigned k = 0; k < sizeof more; k++)
        CHECK_EQ(more[k], (char)n);
    return sum;
}

/* The same with memory from alloca() in a loop around the switch, so that the stack pointer moves between switches. */
static NOINLINE uint64_t moving_frame(enum mode mode, unsigned n, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                                      uint64_t e, uint64_t f)
{
    _Alignas(128) uint64_t aligned[4] = {a, b, c, d};
    uint64_t *parts[5], sum = 0;
    for (unsigned k = 0; k < 5; k++) {
        parts[k] = __builtin_alloca((n % 7 + k + 1) * sizeof *parts[k]);
        for (unsigned m = 0; m < n % 7 + k + 1; m++)
            parts[k][m] = a + m * e + k;
        step(mode, k);
        aligned[k % 4] += f;
    }
    CHECK_ALIGNED(aligned, 128);
    for (unsigned k = 0; k < 5; k++)
        for (unsigned m = 0; m < n % 7 + k + 1; m++)
            sum = sum * 31 + parts[k][m] + aligned[k % 4];
    return sum;
}

static void frames(enum mode mode, unsigned seed, char *out)
{
    three_t s = {seed + 1, seed + 2, seed + 3};
    uint64_t sums[2];
    sums[0] = frame(mode, seed, seed * 2u, seed * 3u, seed * 5u, (double)seed, s, seed * 7u, seed * 11u, seed * 13u,
                    (long double)seed, seed * 17u, seed * 19u);
    sums[1] = moving_frame(mode, seed, seed * 2u, seed * 3u, seed * 5u, seed * 7u, seed * 11u, seed * 13u);
    memcpy(out, sums, sizeof sums);
}

/* ---- All of them, with and without switches ---------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(enum mode mode, unsigned seed, char *out);
} computations[] = {
    {"integers", live_integers},
    {"shorts", live_shorts},
#ifdef HAS_INT128
    {"128-bit integers", live_wide},
#endif
    {"floats", live_floats},
    {"doubles", live_doubles},
    {"complex", live_complex},
    {"long doubles", live_long_doubles},
#ifdef __SSE2__
    {"xmm", live_xmm},
#else
    {"vectors", live_vectors},
#endif
#ifdef __AVX2__
    {"ymm", live_ymm},
#endif
#ifdef __AVX512F__
    {"zmm", live_zmm},
    {"masks", live_masks},
#endif
    {"a mixture", live_mixture},
    {"frames", frames},
};
enum { COMPUTATIONS = sizeof computations / sizeof *computations, OUT = 20 * 64, SEEDS = 8 };

static void check_computation(enum mode mode, int which, unsigned seed)
{
    static char expected[OUT], out[OUT]; /* one thread, and nobody else switches in between */
    char *mine = malloc(OUT);
    memset(mine, 0, OUT);
    computations[which].run(mode, seed, mine);
    memset(expected, 0, OUT);
    computations[which].run(PLAIN, seed, expected);
    memcpy(out, mine, OUT);
    free(mine);
    if (memcmp(out, expected, OUT) != 0)
        fprintf(stderr, "%s differ, seed %u, mode %d\n", computations[which].name, seed, (int)mode);
    CHECK(memcmp(out, expected, OUT) == 0);
}

static void computing_body(void)
{
    unsigned me = (unsigned)(uintptr_t)aco_get_arg();
    for (int i = 0; i < COMPUTATIONS; i++)
        check_computation(YIELD, (int)((unsigned)i + me) % COMPUTATIONS, me * 1000 + (unsigned)i);
    aco_exit();
}

static void helper_body(void)
{
    uint64_t junk[16];
    for (uint64_t n = (uintptr_t)aco_get_arg();; n = n * 3 + 1) {
        for (int i = 0; i < 16; i++)
            junk[i] = n * 0x0101010101010101u;
        __asm__ volatile("" : "+m"(junk));
        aco_yield();
    }
}

/* `n` coroutines that compute, `stacks` stacks for them. */
static void compute_on(aco_t *main_co, int n, int stacks)
{
    enum { MOST = 8 };
    aco_share_stack_t *stack[MOST];
    aco_t *cos[MOST];
    for (int i = 0; i < stacks; i++)
        stack[i] = aco_share_stack_new(0);
    for (int i = 0; i < n; i++)
        cos[i] = aco_create(main_co, stack[i % stacks], 0, computing_body, (void *)(uintptr_t)(i + 1));
    for (int left = n; left > 0;) {
        left = 0;
        for (int i = 0; i < n; i++)
            if (!cos[i]->is_end) {
                aco_resume(cos[i]);
                left += !cos[i]->is_end;
            }
    }
    for (int i = 0; i < n; i++) {
        CHECK((n > stacks) == (cos[i]->save_stack.ct_restore > 0));
        aco_destroy(cos[i]);
    }
    for (int i = 0; i < stacks; i++)
        aco_share_stack_destroy(stack[i]);
}

static void compute_around_resume(aco_t *main_co)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    for (uintptr_t i = 0; i < 2; i++)
        helpers[i] = aco_create(main_co, stack, 0, helper_body, (void *)(i + 1));
    for (int which = 0; which < COMPUTATIONS; which++)
        for (unsigned seed = 0; seed < SEEDS; seed++)
            check_computation(RESUME, which, seed * 77);
    for (int i = 0; i < 2; i++)
        aco_destroy(helpers[i]);
    aco_share_stack_destroy(stack);
}

#ifdef __AVX2__
/* Whether the processor has `wanted` of leaf 7's EBX, and the system keeps `kept` of the extended states (zig's
 * __builtin_cpu_supports() says no to everything). */
static int has(unsigned wanted, unsigned kept)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 0;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    if ((a & kept) != kept)
        return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & wanted) == wanted;
}
#endif

int main(void)
{
    aco_t *main_co;
#ifdef __AVX512F__
    if (!has(bit_AVX512F | bit_AVX512BW, 0xe6))
        return puts("skipped: the processor has no AVX-512"), 77;
#endif
#ifdef __AVX2__
    if (!has(bit_AVX2, 6))
        return puts("skipped: the processor has no AVX2"), 77;
#endif
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    compute_on(main_co, 1, 1);
    compute_on(main_co, 8, 8);
    compute_on(main_co, 3, 1);
    compute_on(main_co, 8, 3);
    compute_around_resume(main_co);
    aco_destroy(main_co);
    return check_result("live values");
}
