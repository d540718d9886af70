/* 32-bit Arm, AAPCS, A32 or T32, with VFP registers where they are compiled in. Contract: probe.h. */
#define ASSEMBLY "probe_arm.S"
#define WORD 4
#ifdef __ARM_FP
#define REGISTERS 24
#else
#define REGISTERS 8
#endif
#define FIXED 2

#ifndef __ASSEMBLER__
static const char *const register_names[] = {
    "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11",
#ifdef __ARM_FP
    "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31",
#endif
};
static const char *const fixed_names[] = {"sp", "tpidruro"};
#define READ_STACK_POINTER "mov %0,sp"
#define HELD "r5"
#define STACK_ALIGNMENT 8
#define ENTRY_MODULUS 0

#ifdef __ARM_FP
/* FPSCR's vector length and stride are zero at every call. */
static void check_state(void)
{
    uint32_t fpscr;
    __asm__ volatile("vmrs %0,fpscr" : "=r"(fpscr));
    CHECK_EQ(fpscr & 0x370000, 0);
}

/* FPSCR: FZ16 0x80000, rounding 0xc00000, FZ 0x1000000, DN 0x2000000, AHP 0x4000000, trap enables 0x9f00. */
#define FP_CONTROLS 1
static const fp_control_t control_bits[] = {0x7c89f00}, optional_bits[] = {0x4089f00};
static const environment_t environments[] = {
    {{0}}, {{0x400000}}, {{0x800000}}, {{0xc00000}}, {{0x1000000}}, {{0x2400000}}, {{0x3c00000}},
};

static environment_t environment(void)
{
    uint32_t fpscr;
    __asm__ volatile("vmrs %0,fpscr" : "=r"(fpscr));
    return (environment_t){{fpscr & control_bits[0]}};
}

static void set_environment(const environment_t *e)
{
    __asm__ volatile("vmsr fpscr,%0" : : "r"((uint32_t)e->control[0]));
}
#else
#define check_state() ((void)0)
#define FP_CONTROLS 0
#endif
#endif
