/* The switch on RISC-V, little or big endian, RV64 and RV32, with or without F, D, Zfinx and V. Contract and rules:
 * ../detail/switch.h. Source of the register roles: RISC-V ELF psABI 1.0, chapter 1 (Register Convention).
 *
 * register               in the ABI      here
 * sp                     callee-saved    stored and loaded
 * s0                     callee-saved    stored and loaded: the frame pointer cannot be a clobber
 * s1                     callee-saved    a clobber; with clang stored and loaded: it is the base pointer of
 *                                        over-aligned frames with variable parts, and clang lets an asm clobber it
 *                                        there and crashes
 * s2-s11                 callee-saved    clobbers: the compiler saves those that are live, and only those
 * a0                     scratch         the control block's address, carried across the switch
 * a1                     scratch         the thread record's address; the same on both sides
 * a2                     scratch         the resume address, on its way to memory
 * a3                     scratch         the value, carried across the switch
 * a4                     scratch         in a transfer, the control block of the coroutine that leaves; else a clobber
 * t0                     scratch         control words
 * t1                     scratch         control words; the address to jump to: a jump through ra or t0 (x1, x5) is
 *                                        predicted as a return, and one through t2 (x7) expects no landing pad
 * a5-a7, t2-t6           scratch         clobbers
 * ra                     scratch         a clobber
 * gp                     unallocatable   untouched
 * tp                     thread pointer  untouched
 * fs0-fs11               callee-saved    clobbers, like the rest of f0-f31; scratch in ABIs without float arguments
 * v0-v31, vl, vtype      scratch         clobbers where the vector unit is compiled in; with clang always
 * vxrm                   scratch         the same; vxsat is status: untouched
 * frm                    preserved       stored and loaded if `fp` is 1 and the coroutine has its own; else untouched
 * fflags                 scratch         untouched
 *
 * There is no red zone, and the stack pointer is always a multiple of 16. Landing pads (Zicfilp) are unlabelled. */
#ifndef ACO_ARCH_RISCV_H
#define ACO_ARCH_RISCV_H

#if defined(__riscv_landing_pad_func_sig)
#error "acorn: landing pads labelled by the function's type are not served: -mcf-branch-label-scheme=unlabeled"
#elif defined(__riscv_32e) || defined(__riscv_e)
#error "acorn: the base ISA E, of 16 registers, is not served"
#endif

/* The registers that cross, and operands by them (statements.h). */
#define ACO__FIRST "a0"
#define ACO__SECOND "a1"
#define ACO__THIRD "a2"
#define ACO__FOURTH "a3"
#define ACO__FIFTH "a4"
#define ACO__STACK_REGISTER "sp"
#define ACO__STACK_OPERAND "+r"
#define ACO__BLOCK(offset) ACO__TEXT(offset) "(a0)"
#define ACO__LEAVING(offset) ACO__TEXT(offset) "(a4)"
#define ACO__THREAD(offset) ACO__TEXT(offset) "(a1)"
#if __riscv_xlen == 64
#define ACO__LOAD "ld "
#define ACO__SAVE "sd "
#else
#define ACO__LOAD "lw "
#define ACO__SAVE "sw "
#endif

#define ACO__FP_STATUS 0 /* frm is read without the status bits */

/* A stack's top is 64-byte aligned. */
#define ACO__ENTRY_BELOW_TOP 16
#define ACO__RETURN_WORD 0

#ifdef __clang__
#define ACO__KEEP_BASE(to) ACO__SAVE "s1," to(ACO__BASE) "\n\t"
#define ACO__RESUMER_BASE ACO__LOAD "s1," ACO__THREAD(ACO__BASE) "\n\t"
#define ACO__RUNNING_BASE                                                                                              \
    ACO__LOAD "t0," ACO__THREAD(ACO__RUNNING) "\n\t"                                                                   \
    ACO__LOAD "s1," ACO__TEXT(ACO__BASE) "(t0)\n\t"
#define ACO__CLOBBER_BASE
#else
#define ACO__CLOBBER_BASE "s1",
#endif

#ifdef __riscv_flen /* without it this unit has no value there */
#define ACO__CLOBBER_FP                                                                                                \
    , "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15", "f16",     \
        "f17", "f18", "f19", "f20", "f21", "f22", "f23", "f24", "f25", "f26", "f27", "f28", "f29", "f30", "f31"
#else
#define ACO__CLOBBER_FP
#endif
/* clang accepts these names in every unit, so functions with a target attribute are covered too; gcc does not. */
#if defined(__riscv_v_elen) || defined(__clang__)
#define ACO__CLOBBER_VECTOR                                                                                            \
    , "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",     \
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "vl", \
        "vtype", "vxrm"
#else
#define ACO__CLOBBER_VECTOR
#endif
#define ACO__CLOBBERS_OF_ALL                                                                                           \
    ACO__CLOBBER_BASE "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6",  \
        "s7", "s8", "s9", "s10", "s11", "memory" ACO__CLOBBER_FP ACO__CLOBBER_VECTOR

#ifdef __riscv_landing_pad
#define ACO__ALIGN_PAD ".p2align 2\n"
#define ACO__LANDING_PAD "auipc zero,0\n\t" /* lpad 0, for assemblers without that name */
#else
#define ACO__ALIGN_PAD
#define ACO__LANDING_PAD
#endif

/* The thread record's address. */
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref_read(void)
{
    aco__tls_ref_t tls;
    __asm__ volatile("la.tls.ie %0,aco__thread\n\t"
                     "add %0,%0,tp"
                     : "=r"(tls));
    return tls;
}

#define ACO__STORE(to)                                                                                                 \
    ACO__SAVE "sp," to(ACO__SP) "\n\t"                                                                                 \
    ACO__SAVE "a2," to(ACO__PC) "\n\t"                                                                                 \
    ACO__SAVE "s0," to(ACO__BP) "\n\t" ACO__KEEP_BASE(to)

#define ACO__LEAVE(from)                                                                                               \
    ACO__LOAD "t1," from(ACO__PC) "\n\t"                                                                               \
    ACO__LOAD "sp," from(ACO__SP) "\n\t"                                                                               \
    ACO__NO_FRAME("ra")                                                                                                \
    ACO__LOAD "s0," from(ACO__BP) "\n\t"                                                                               \
    ACO__GO

#if defined(__riscv_flen) || defined(__riscv_zfinx)
#define ACO__HAS_FRM 1
#define ACO__FP_SWAP(to, from)                                                                                         \
    "lb t0," ACO__BLOCK(ACO__STATE_BYTE) "\n\t"                                                                        \
    "bgez t0,4f\n"                                                                                                     \
    "5:\t"
#define ACO__FP_SLOW(to, from)                                                                                         \
    "4:\tfrrm t0\n\t"                                                                                                  \
    "sw t0," to(ACO__FP_CONTROL) "\n\t"                                                                                \
    "lw t1," from(ACO__FP_CONTROL) "\n\t"                                                                              \
    "beq t0,t1,5b\n\t"                                                                                                 \
    "fsrm t1\n\t"                                                                                                      \
    "j 5b\n"
#endif

#define ACO__RESUME_ADDRESS "lla a2,1f\n\t"
#define ACO__RUNS ACO__SAVE "a0," ACO__THREAD(ACO__RUNNING) "\n\t"
#define ACO__NOTHING_RUNS ACO__SAVE "zero," ACO__THREAD(ACO__RUNNING) "\n\t"
#define ACO__ARRIVAL ACO__ALIGN_PAD "1:\t" ACO__LANDING_PAD

/* ---- Generators ---- */
#define ACO__SWAP(one, other) "mv t0," one "\n\tmv " one "," other "\n\tmv " other ",t0\n\t"
#define ACO__TO_PEER                                                                                                   \
    "mv t1,a0\n\t"                                                                                                     \
    "lla a0,1f\n\t"                                                                                                    \
    ACO__NO_FRAME("ra") ACO__SWAP("s0", "a1") ACO__SWAP("s1", "a4")
#define ACO__SWAP_SP ACO__SWAP("sp", "a3")
#define ACO__GO "jr t1\n" ACO__FRAME_AGAIN

#define ACO__LAST_TO_PEER                                                                                              \
    ACO__NO_FRAME("ra")                                                                                                \
    "mv s0,a1\n\t"                                                                                                     \
    "mv s1,a4\n\t"
#define ACO__LOAD_SP "mv sp,a3\n\t"
#define ACO__LAST_GO                                                                                                   \
    "mv t1,a0\n\t"                                                                                                     \
    "li a0,0\n\t"                                                                                                      \
    ACO__GO

/* In-stack generators. gcc stores the arguments of calls, from the ninth on, at sp without moving sp. */
#define ACO__ARGUMENTS_ROOM 128
#define ACO__IF_INNERMOST                                                                                              \
    "bne sp,a3,2f\n\t"                                                                                                 \
    "addi sp,sp,128\n\t"
#define ACO__NOT_INNERMOST                                                                                             \
    "li a0,1\n\t"                                                                                                      \
    "j 3f\n"
#define ACO__ROOM                                                                                                      \
    "addi sp,sp,-128\n\t"                                                                                              \
    "mv a3,sp\n"
#define ACO__IN_STACK_ROOM                                                                                             \
    "lla %2,1f\n"                                                                                                      \
    "1:\taddi sp,sp,-256\n\t"                                                                                          \
    "mv %0,sp\n\t"                                                                                                     \
    "mv %1,s0"
#define ACO__READ_SP                                                                                                   \
    "mv %0,sp\n\t"                                                                                                     \
    "li %1,0"
#define ACO__WRITE_SP "mv sp,%0"

/* A generator's first stack pointer, and what aco__generator_begin finds there, in words:
 *   2   the argument, for a5
 *   1   the return address, for ra
 *   0   the function                            <- sp, a multiple of 16; the function begins with sp 32 bytes higher */
enum { ACO__START_ARGUMENT = 2, ACO__START_WORDS = 48 / sizeof(void *) };

ACO__FORCE_INLINE void aco__fp_read(uint32_t *control, uint16_t *control2)
{
    uintptr_t frm = 0;
#ifdef ACO__HAS_FRM
    __asm__ volatile("frrm %0" : "=r"(frm));
#endif
    *control = (uint32_t)frm;
    *control2 = 0;
}

ACO__FORCE_INLINE void aco__fp_load(const uint32_t *control, const uint16_t *control2)
{
    (void)control, (void)control2;
#ifdef ACO__HAS_FRM
    __asm__ volatile("fsrm %0" : : "r"((uintptr_t)*control));
#endif
}

#endif
