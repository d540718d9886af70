/* AArch64, AAPCS64. Contract: probe.h. */
#define ASSEMBLY "probe_aarch64.S"
#define WORD 8
#define REGISTERS 19
#define FIXED 2

#ifdef __ASSEMBLER__
#define LANDING_PAD hint #34 /* bti c */
#else
static const char *const register_names[] = {
    "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29",
    "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15",
};
static const char *const fixed_names[] = {"sp", "thread pointer"};
#define READ_STACK_POINTER "mov %0,sp"
#define HELD "x20"
#define STACK_ALIGNMENT 16
#define ENTRY_MODULUS 0
#define check_state() ((void)0)

/* FPCR: FZ16 0x80000, rounding 0xc00000, FZ 0x1000000, DN 0x2000000, AHP 0x4000000, trap enables 0x9f00. */
#define FP_CONTROLS 1
static const fp_control_t control_bits[] = {0x7c89f00}, optional_bits[] = {0x4089f00};
static const environment_t environments[] = {
    {{0}}, {{0x400000}}, {{0x800000}}, {{0xc00000}}, {{0x1000000}}, {{0x2400000}}, {{0x3c00000}},
};

static environment_t environment(void)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0,fpcr" : "=r"(fpcr));
    return (environment_t){{fpcr & control_bits[0]}};
}

static void set_environment(const environment_t *e)
{
    __asm__ volatile("msr fpcr,%0" : : "r"(e->control[0]));
}
#endif
