/* s390x, ELF ABI. Contract: probe.h. */
#define ASSEMBLY "probe_s390x.S"
#define WORD 8
#define REGISTERS 16
#define FIXED 3

#ifndef __ASSEMBLER__
static const char *const register_names[] = {
    "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13",
    "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15",
};
static const char *const fixed_names[] = {"r15", "a0", "a1"};
#define READ_STACK_POINTER "lgr %0,%%r15"
#define HELD "r7"
#define STACK_ALIGNMENT 8
#define ENTRY_MODULUS 0
#define check_state() ((void)0)

/* FPC: masks 0xf8000000, flags 0xf80000, rounding: decimal 0x70, binary 7, of which 4 to 6 are no modes. Masks of
 * inexact and underflow are not set where the checks compute. */
#define FP_CONTROLS 1
static const fp_control_t control_bits[] = {0xf8000073}, optional_bits[] = {0};
static const environment_t environments[] = {
    {{0}}, {{1}}, {{2}}, {{3}}, {{0x10}}, {{0x73}}, {{0x80000000}}, {{0x60000001}}, {{0xe0000052}},
};

static environment_t environment(void)
{
    uint32_t fpc;
    __asm__ volatile("efpc %0" : "=r"(fpc));
    return (environment_t){{fpc & control_bits[0]}};
}

static void set_environment(const environment_t *e)
{
    __asm__ volatile("sfpc %0" : : "r"((uint32_t)e->control[0]));
}
#endif
