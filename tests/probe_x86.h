/* x86, all ABIs: direction flag, x87 stack, MXCSR and the x87 control word; what the tables of probe_*.h have in
 * common. */
#ifdef __ASSEMBLER__

#ifdef __CET__
#include <cet.h>
#define LANDING_PAD _CET_ENDBR
#endif

#else

/* What fnstenv stores. */
struct x87 {
    uint16_t control, pad0, status, pad1, tag, pad2;
    uint32_t rest[4];
};
_Static_assert(sizeof(struct x87) == 28, "fnstenv stores 28 bytes");

enum { DIRECTION = 0x400, X87_ALL_EMPTY = 0xffff, X87_TOP = 0x3800 };

/* DF is clear and the x87 stack empty. */
static void check_state(void)
{
    uintptr_t flags;
    struct x87 x87;
    __asm__ volatile(READ_FLAGS : "=r"(flags));
    __asm__ volatile("cld\n\tfnstenv %0\n\tfldenv %0" : "+m"(x87) : : "cc"); /* fnstenv masks all exceptions */
    CHECK(!(flags & DIRECTION));
    CHECK_EQ(x87.tag, X87_ALL_EMPTY);
    CHECK_EQ(x87.status & X87_TOP, 0);
}

/* MXCSR: masks 0x1f80, rounding 0x6000, FTZ 0x8000, DAZ 0x40, status 0x3f. x87: masks 0x3f, precision 0x300, rounding
 * 0xc00. Inexact, underflow and denormal stay masked: the checks themselves may cause them. */
#define FP_CONTROLS 2
static const fp_control_t control_bits[] = {0xffc0, 0xf3f}, optional_bits[] = {0, 0};
static const environment_t environments[] = {
    {{0x1f80, 0x37f}}, {{0x3f80, 0x77f}}, {{0x5f80, 0xb7f}}, {{0x7f80, 0xf7f}}, {{0x9fc0, 0x27f}},
    {{0x1f00, 0x37e}}, {{0x1d80, 0x37b}}, {{0x7900, 0xe72}}, {{0xffc0, 0xc7f}},
};

static environment_t environment(void)
{
    uint32_t mxcsr;
    uint16_t x87;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87));
    return (environment_t){{mxcsr & ~0x3fu, x87}};
}

static void set_environment(const environment_t *e)
{
    uint32_t mxcsr = (uint32_t)e->control[0];
    uint16_t x87 = (uint16_t)e->control[1];
    __asm__ volatile("ldmxcsr %0\n\tfnclex\n\tfldcw %1" : : "m"(mxcsr), "m"(x87));
}

#ifndef _WIN32
/* Sticky exceptions of one side trap under unmasked control words of the other. */
#define STICKY_EXCEPTIONS
/* `unmasked`: invalid, zero-divide and overflow trap. */
static const environment_t all_masked = {{0x1f80, 0x37f}}, unmasked = {{0x1900, 0x372}};

static void raise_x87_exceptions(void)
{
    __asm__ volatile("fldz\n\tfld1\n\tfdivp\n\tfstp %%st(0)\n\tfldz\n\tfldz\n\tfdivp\n\tfstp %%st(0)"
                     : : : "st", "st(1)");
}

static void raise_exceptions(void)
{
    raise_x87_exceptions();
#ifdef __SSE__
    volatile float zero = 0.0f, one = 1.0f, result;
    result = one / zero;
    (void)result;
#endif
}

/* Waits for pending x87 exceptions, and computes something in both units. */
static void use_both_units(void)
{
    volatile float one = 1.0f, two;
    __asm__ volatile("fwait\n\tfld1\n\tfstp %%st(0)\n\tfwait" : : : "st");
    two = one + one;
    CHECK(two == 2.0f);
}

/* What the switch would do without fnclex. */
static void load_unmasked(void)
{
    uint16_t x87 = (uint16_t)unmasked.control[1];
    __asm__ volatile("fldcw %0" : : "m"(x87));
}
#endif

#endif
