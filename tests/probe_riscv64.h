/* RISC-V, 64 bit, LP64 with F and D registers where the ABI passes values there (LP64D). Contract: probe.h. */
#define ASSEMBLY "probe_riscv64.S"
#define WORD 8
#ifdef __riscv_float_abi_double
#define REGISTERS 24
#else
#define REGISTERS 12
#endif
#define FIXED 3

#ifndef __ASSEMBLER__
static const char *const register_names[] = {
    "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
#ifdef __riscv_float_abi_double
    "fs0", "fs1", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11",
#endif
};
static const char *const fixed_names[] = {"sp", "gp", "tp"};
#define READ_STACK_POINTER "mv %0,sp"
#define HELD "s2"
#define STACK_ALIGNMENT 16
#define ENTRY_MODULUS 0

#ifdef __riscv_flen
/* frm: the rounding mode, 0 to 4; others are reserved. The usual one differs from every other mode in one or more bits,
 * and from modes 1, 2 and 4 in one. */
#define FP_CONTROLS 1
static const fp_control_t control_bits[] = {7}, optional_bits[] = {0};
static const environment_t environments[] = {{{0}}, {{1}}, {{2}}, {{3}}, {{4}}};

static environment_t environment(void)
{
    unsigned long frm;
    __asm__ volatile("frrm %0" : "=r"(frm));
    return (environment_t){{frm}};
}

static void set_environment(const environment_t *e)
{
    __asm__ volatile("fsrm %0" : : "r"(e->control[0]));
}
#else
#define FP_CONTROLS 0
#endif

#ifdef __riscv_vector
/* The vector start index is zero at every call. */
static void check_state(void)
{
    unsigned long vstart;
    __asm__ volatile("csrr %0,vstart" : "=r"(vstart));
    CHECK_EQ(vstart, 0);
}
#else
#define check_state() ((void)0)
#endif
#endif
