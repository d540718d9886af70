/* 64-bit Power, little endian, ELFv2 ABI. Contract: probe.h. */
#define ASSEMBLY "probe_ppc64le.S"
#define WORD 8
#define REGISTERS 61
#define FIXED 3

#ifndef __ASSEMBLER__
#define TWO(name) name, name
static const char *const register_names[] = {
    "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21", "r22",
    "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31",
    "f14", "f15", "f16", "f17", "f18", "f19", "f20", "f21", "f22",
    "f23", "f24", "f25", "f26", "f27", "f28", "f29", "f30", "f31",
    TWO("v20"), TWO("v21"), TWO("v22"), TWO("v23"), TWO("v24"), TWO("v25"),
    TWO("v26"), TWO("v27"), TWO("v28"), TWO("v29"), TWO("v30"), TWO("v31"), "cr2-cr4",
};
static const char *const fixed_names[] = {"r1", "r2", "r13"};
#define READ_STACK_POINTER "mr %0,1"
#define HELD "r20"
#define STACK_ALIGNMENT 16
#define ENTRY_MODULUS 0
#define check_state() ((void)0)

/* FPSCR: decimal rounding 0x700000000, trap enables 0xf8, NI 4, rounding 3. Of the enables underflow 0x20 and inexact 8
 * stay off where the checks compute; a processor may lack NI. */
#define FP_CONTROLS 1
static const fp_control_t control_bits[] = {0x7000000ff}, optional_bits[] = {4};
static const environment_t environments[] = {
    {{0}}, {{1}}, {{2}}, {{3}}, {{0x100000000}}, {{0x700000003}}, {{0x80}}, {{0x51}}, {{0x2000000d2}},
};

static environment_t environment(void)
{
    union {
        double value;
        uint64_t bits;
    } fpscr;
    __asm__ volatile("mffs %0" : "=d"(fpscr.value));
    return (environment_t){{fpscr.bits & control_bits[0]}};
}

/* All fields, the decimal one too: mtfsf with L = 1. */
static void set_environment(const environment_t *e)
{
    union {
        uint64_t bits;
        double value;
    } fpscr = {e->control[0]};
    __asm__ volatile("mtfsf 255,%0,1,0" : : "d"(fpscr.value));
}
#endif
