/* The switch on 64-bit Power, little endian, ELFv2 ABI. Contract and rules: ../detail/switch.h.
 * Source of the register roles: 64-Bit ELF V2 ABI Specification, Power Architecture (1.5), sections 2.2.1.1 and 2.2.2.
 *
 * register               in the ABI      here
 * r1                     callee-saved    stored and loaded: the stack pointer
 * r2                     TOC pointer     each module has its own: computed from r12 on arrival, as at a global entry
 *                                        point. A clobber in units without one (__PCREL__)
 * r3                     scratch         the control block's address, carried across the switch
 * r4                     scratch         the thread record's address; the same on both sides
 * r5                     scratch         the resume address, on its way to memory
 * r6                     scratch         the value, carried across the switch
 * r7                     scratch         in a transfer, the control block of the coroutine that leaves; else a clobber
 * r9-r11                 scratch         clobbers; control words
 * r12                    scratch         the address to jump to, where a global entry point expects its own address
 * r0, r8                 scratch         clobbers
 * r13                    thread pointer  untouched
 * r14-r29                callee-saved    clobbers: the compiler saves those that are live, and only those
 * r30                    callee-saved    a clobber; with clang stored and loaded: it is the base pointer of
 *                                        over-aligned frames with variable parts; also with __PCREL__, where it is
 *                                        gcc's PIC register
 * r31                    callee-saved    stored and loaded: the frame pointer cannot be a clobber
 * LR, CTR, XER           scratch         clobbers
 * CR2-CR4                callee-saved    clobbers, like the rest of CR
 * f14-f31, v20-v31       callee-saved    clobbers, like the rest of both files: together all of vs0-vs63
 * FPSCR                  control bits    stored and loaded if `fp` is 1 and the coroutine has its own; else untouched:
 *                        callee-saved    exception enables, NI and RN in the lower half, DRN in the upper half. The
 *                                        status bits are scratch
 * VSCR, VRSAVE           limited access  untouched: shared by all, as with setjmp()
 *
 * The stack pointer is always a multiple of 16 and points to the back chain. A caller's frame begins with 32 bytes:
 * back chain, CR, LR, TOC pointer. The callee and the call stubs write there. Only leaf functions use the red zone. */
#ifndef ACO_ARCH_PPC64LE_H
#define ACO_ARCH_PPC64LE_H

/* The registers that cross, and operands by them (statements.h). */
#define ACO__FIRST "r3"
#define ACO__SECOND "r4"
#define ACO__THIRD "r5"
#define ACO__FOURTH "r6"
#define ACO__FIFTH "r7"
#define ACO__STACK_REGISTER "r1"
#define ACO__STACK_OPERAND "+r"
#define ACO__ADDRESS_RESULT "=&b" /* not r0: an address takes it as 0 */
#define ACO__BLOCK(offset) ACO__TEXT(offset) "(3)"
#define ACO__LEAVING(offset) ACO__TEXT(offset) "(7)"
#define ACO__THREAD(offset) ACO__TEXT(offset) "(4)"

#define ACO__FP_STATUS 0xffffff00u /* the status bits in the lower half */

/* A stack's top is 64-byte aligned. The first function writes to the frame header above its stack pointer; its return
 * address goes there too. */
#define ACO__ENTRY_BELOW_TOP 32
#define ACO__RETURN_WORD 2

#if defined(__clang__) || defined(__PCREL__)
#define ACO__KEEP_BASE(to) "std 30," to(ACO__BASE) "\n\t"
#define ACO__RESUMER_BASE "ld 30," ACO__THREAD(ACO__BASE) "\n\t"
#define ACO__RUNNING_BASE "ld 9," ACO__THREAD(ACO__RUNNING) "\n\tld 30," ACO__TEXT(ACO__BASE) "(9)\n\t"
#define ACO__CLOBBER_BASE
#else
#define ACO__CLOBBER_BASE "r30",
#endif

/* The address of label `here`; and, on arrival at 1 with that address in r12, the TOC pointer. r2 is no operand: each
 * function that switches also calls a function of another module (docs/switch.md, rule 3), and compilers set up the TOC
 * pointer at the beginning of every function that calls. tools/platforms/objects.py checks that they did. */
#ifdef __PCREL__
#define ACO__ADDRESS(reg, here) "pla " reg "," here "@pcrel\n\t"
#define ACO__OWN_TOC
#define ACO__CLOBBER_TOC "r2",
#else
#define ACO__ADDRESS(reg, here) "addis " reg ",2," here "@toc@ha\n\taddi " reg "," reg "," here "@toc@l\n\t"
#define ACO__OWN_TOC "addis 2,12,.TOC.-1b@ha\n\taddi 2,2,.TOC.-1b@l\n\t"
#define ACO__CLOBBER_TOC
#endif
#ifdef __ALTIVEC__
#define ACO__CLOBBER_VECTORS                                                                                           \
    , "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",     \
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
#else
#define ACO__CLOBBER_VECTORS
#endif
#define ACO__CLOBBERS_OF_ALL                                                                                           \
    ACO__CLOBBER_BASE ACO__CLOBBER_TOC "r0", "r8", "r9", "r10", "r11", "r12", "r14", "r15", "r16", "r17", "r18", "r19",\
        "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "lr", "ctr", "xer", "cr0", "cr1", "cr2", \
        "cr3", "cr4", "cr5", "cr6", "cr7", "memory", "fr0", "fr1", "fr2", "fr3", "fr4", "fr5", "fr6", "fr7", "fr8",    \
        "fr9", "fr10", "fr11", "fr12", "fr13", "fr14", "fr15", "fr16", "fr17", "fr18", "fr19", "fr20", "fr21", "fr22", \
        "fr23", "fr24", "fr25", "fr26", "fr27", "fr28", "fr29", "fr30", "fr31" ACO__CLOBBER_VECTORS

/* The thread record's address. Linkers turn the load into a constant in executables. */
#ifdef __PCREL__
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref_read(void)
{
    aco__tls_ref_t tls;
    __asm__ volatile("pld %0,aco__thread@got@tprel@pcrel\n\t"
                     "add %0,%0,aco__thread@tls@pcrel"
                     : "=&b"(tls));
    return tls;
}
#else
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref_read(void)
{
    aco__tls_ref_t tls;
    register void *toc __asm__("r2"); /* an operand: else a function that calls nothing may have no TOC pointer */
    __asm__ volatile("" : "=r"(toc));
    __asm__ volatile("addis %0,2,aco__thread@got@tprel@ha\n\t"
                     "ld %0,aco__thread@got@tprel@l(%0)\n\t"
                     "add %0,%0,aco__thread@tls"
                     : "=&b"(tls)
                     : "r"(toc));
    return tls;
}
#endif

#define ACO__STORE(to)                                                                                                 \
    "std 1," to(ACO__SP) "\n\t"                                                                                        \
    "std 5," to(ACO__PC) "\n\t"                                                                                        \
    "std 31," to(ACO__BP) "\n\t" ACO__KEEP_BASE(to)

#define ACO__LEAVE(from)                                                                                               \
    "ld 12," from(ACO__PC) "\n\t"                                                                                      \
    "mtctr 12\n\t"                                                                                                     \
    "ld 1," from(ACO__SP) "\n\t"                                                                                       \
    ACO__NO_FRAME("lr")                                                                                                \
    "ld 31," from(ACO__BP) "\n\t"                                                                                      \
    ACO__GO

/* The status bits are not compared, but are loaded with the control bits: the status bits of one side must not trap
 * under the enables of the other. */
#define ACO__FP_SWAP(to, from)                                                                                         \
    "lbz 9," ACO__BLOCK(ACO__STATE_BYTE) "\n\t"                                                                        \
    "extsb. 9,9\n\t"                                                                                                   \
    "bge 4f\n"                                                                                                         \
    "5:\t"
#define ACO__FP_SLOW(to, from)                                                                                         \
    "4:\tmffs 0\n\t"                                                                                                   \
    "mfvsrd 9,0\n\t"                                                                                                   \
    "rldicl 11,9,32,61\n\t"                                                                                            \
    "stw 9," to(ACO__FP_CONTROL) "\n\t"                                                                                \
    "sth 11," to(ACO__FP_CONTROL2) "\n\t"                                                                              \
    "lwz 10," from(ACO__FP_CONTROL) "\n\t"                                                                             \
    "xor 10,10,9\n\t"                                                                                                  \
    "andi. 10,10,0xff\n\t"                                                                                             \
    "bne 6f\n\t"                                                                                                       \
    "lhz 10," from(ACO__FP_CONTROL2) "\n\t"                                                                            \
    "cmpw 10,11\n\t"                                                                                                   \
    "beq 5b\n"                                                                                                         \
    "6:\tlwz 9," from(ACO__FP_CONTROL) "\n\t"                                                                          \
    "lhz 10," from(ACO__FP_CONTROL2) "\n\t"                                                                            \
    "sldi 10,10,32\n\t"                                                                                                \
    "or 9,9,10\n\t"                                                                                                    \
    "mtvsrd 0,9\n\t"                                                                                                   \
    "mtfsf 255,0,1,0\n\t"                                                                                              \
    "b 5b\n"

#define ACO__RESUME_ADDRESS ACO__ADDRESS("5", "1f")
#define ACO__RUNS "std 3," ACO__THREAD(ACO__RUNNING) "\n\t"
#define ACO__NOTHING_RUNS                                                                                              \
    "li 9,0\n\t"                                                                                                       \
    "std 9," ACO__THREAD(ACO__RUNNING) "\n\t"
#define ACO__ARRIVAL "1:\t" ACO__OWN_TOC

/* ---- Generators ---- */
#define ACO__SWAP(one, other) "mr 9," one "\n\tmr " one "," other "\n\tmr " other ",9\n\t"
#define ACO__TO_PEER                                                                                                   \
    "mr 12,3\n\t"                                                                                                      \
    "mtctr 12\n\t"                                                                                                     \
    ACO__ADDRESS("3", "1f")                                                                                            \
    ACO__NO_FRAME("lr") ACO__SWAP("31", "4") ACO__SWAP("30", "7")
#define ACO__SWAP_SP ACO__SWAP("1", "6")
#define ACO__GO "bctr\n" ACO__FRAME_AGAIN

#define ACO__LAST_TO_PEER                                                                                              \
    "mr 12,3\n\t"                                                                                                      \
    "mtctr 12\n\t"                                                                                                     \
    ACO__NO_FRAME("lr")                                                                                                \
    "mr 31,4\n\t"                                                                                                      \
    "mr 30,7\n\t"                                                                                                      \
    "li 3,0\n\t"
#define ACO__LOAD_SP "mr 1,6\n\t"
#define ACO__LAST_GO ACO__GO

/* In-stack generators. A function that the consumer calls writes a frame header and arguments at the consumer's stack
 * pointer. The room there gets the back chain that alloca() would leave, the one at the frame pointer, because clang's
 * functions return by it. The word at the generator's stack pointer leads into the generator. */
#define ACO__ARGUMENTS_ROOM 224
#define ACO__IF_INNERMOST                                                                                              \
    "cmpd 1,6\n\t"                                                                                                     \
    "bne 2f\n\t"                                                                                                       \
    "addi 1,1,224\n\t"
#define ACO__NOT_INNERMOST                                                                                             \
    "li 3,1\n\t"                                                                                                       \
    "b 3f\n"
#define ACO__ROOM                                                                                                      \
    "ld 9,0(31)\n\t"                                                                                                   \
    "stdu 9,-224(1)\n\t"                                                                                               \
    "mr 6,1\n"

/* Lowers r1 by 288. The generator's first frame has the consumer's back chain above it. The word at the old r1 is
 * unchanged, for ACO__WRITE_SP. */
#define ACO__IN_STACK_ROOM                                                                                             \
    ACO__ADDRESS("%2", "1f")                                                                                           \
    "ld %0,0(1)\n\t"                                                                                                   \
    "1:\tstdu %0,-288(1)\n\t"                                                                                          \
    "std %0,256(1)\n\t"                                                                                                \
    "mr %0,1\n\t"                                                                                                      \
    "mr %1,31"
#define ACO__READ_SP                                                                                                   \
    "mr %0,1\n\t"                                                                                                      \
    "li %1,0"
#define ACO__WRITE_SP "mr 1,%0"

/* A generator's first stack pointer, and what aco__generator_begin finds there:
 *   32   the frame header
 *   16   the argument, for r8
 *    8   the return address, for LR
 *    0   the function, for r12                     <- r1, a multiple of 16; the function begins with r1 32 higher */
enum { ACO__START_ARGUMENT = 2, ACO__START_WORDS = 8 };

ACO__FORCE_INLINE void aco__fp_read(uint32_t *control, uint16_t *control2)
{
    uint64_t fpscr;
    __asm__ volatile("mffs 0\n\t"
                     "mfvsrd %0,0"
                     : "=r"(fpscr) : : "fr0");
    *control = (uint32_t)fpscr;
    *control2 = (uint16_t)(fpscr >> 32 & 7);
}

ACO__FORCE_INLINE void aco__fp_load(const uint32_t *control, const uint16_t *control2)
{
    uint64_t fpscr = (uint64_t)*control2 << 32 | *control;
    __asm__ volatile("mtvsrd 0,%0\n\t"
                     "mtfsf 255,0,1,0"
                     : : "r"(fpscr) : "fr0");
}

#endif
