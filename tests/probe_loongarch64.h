/* LoongArch, LP64 with FP registers where they are compiled in. Contract: probe.h. */
#define ASSEMBLY "probe_loongarch64.S"
#define WORD 8
#if __loongarch_frlen >= 64
#define REGISTERS 18
#else
#define REGISTERS 10
#endif
#define FIXED 3

#ifndef __ASSEMBLER__
static const char *const register_names[] = {
    "fp", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8",
#if __loongarch_frlen >= 64
    "fs0", "fs1", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7",
#endif
};
static const char *const fixed_names[] = {"sp", "tp", "r21"};
#define READ_STACK_POINTER "move %0,$sp"
#define HELD "$r25"
#define STACK_ALIGNMENT 16
#define ENTRY_MODULUS 0
#define check_state() ((void)0)

#if __loongarch_frlen
/* FCSR0: trap enables 0x1f, of which inexact 1 and underflow 2 stay masked where the checks compute; rounding 0x300. */
#define FP_CONTROLS 1
static const fp_control_t control_bits[] = {0x31f}, optional_bits[] = {0};
static const environment_t environments[] = {{{0}}, {{0x100}}, {{0x200}}, {{0x300}}, {{0x10}}, {{0x20c}}, {{0x31c}}};

static environment_t environment(void)
{
    unsigned long fcsr;
    __asm__ volatile("movfcsr2gr %0,$fcsr0" : "=r"(fcsr));
    return (environment_t){{fcsr & control_bits[0]}};
}

static void set_environment(const environment_t *e)
{
    __asm__ volatile("movgr2fcsr $fcsr0,%0" : : "r"(e->control[0]));
}
#else
#define FP_CONTROLS 0
#endif
#endif
