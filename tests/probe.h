/* What a probe knows of its architecture. For each a table, probe_ARCH.h, and the part that no compiler may arrange,
 * probe_ARCH.S. The contract of both stands here.
 *
 * The table defines
 *   ASSEMBLY, WORD              the other file; bytes of a word
 *   REGISTERS, register_names   words of callee-saved registers: each gets a pattern before a switch
 *   FIXED, fixed_names          words that stay what they are: stack pointer, thread pointer, those of the platform
 *   READ_STACK_POINTER          an instruction that copies it to %0
 *   HELD                        a callee-saved register that compilers let a variable have
 *   STACK_ALIGNMENT             the stack pointer is a multiple of it at every call, and
 *   ENTRY_MODULUS               this modulo it as a function is entered
 *   ENTRY_DEPTH                 how far an entry function's return address is below the first frame's, if it differs
 *   settle()                    if SETTLE is defined: to be called before the thread's own stack has its fixed words
 *   check_state()               what else the ABI wants at every call and return
 *   FP_CONTROLS                 words of floating-point control, 0 to 2; where there are any:
 *     control_bits[]            the bits of each that the ABI preserves
 *     optional_bits[]           those of them that a processor may lack
 *     environments[]            settings, each different from every other, the usual one first
 *     environment(), set_environment()
 *
 * probe_ARCH.S defines
 *   void probe_call(void (*fn)(void *), void *arg, struct probe *p)
 *                               fn(arg) with p->set in the callee-saved registers; records what they are then, and what
 *                               the fixed words are before and after
 *   void probe_entry(void)      an entry function: probe_entered(stack pointer, frame pointer, return address)
 *   probe_mark                  stands for the other side of a switch that sets the interrupt flag: sets the lowest bit
 *                               of the first register that crosses, and goes on at probe_mark_then
 *   uintptr_t probe_stack_pointer(void)   the caller's, as it calls */
#ifndef PROBE_H
#define PROBE_H

#if defined(__x86_64__) && defined(_WIN32)
#include "probe_x86_64_windows.h"
#elif defined(__x86_64__)
#include "probe_x86_64.h"
#elif defined(__i386__)
#include "probe_i386.h"
#elif defined(__aarch64__)
#include "probe_aarch64.h"
#elif defined(__arm__)
#include "probe_arm.h"
#elif defined(__riscv)
#include "probe_riscv64.h"
#elif defined(__loongarch__)
#include "probe_loongarch64.h"
#elif defined(__powerpc64__)
#include "probe_ppc64le.h"
#elif defined(__s390x__)
#include "probe_s390x.h"
#else
#error "no probe for this architecture"
#endif

/* struct probe, in words */
#define PROBE_SET 0
#define PROBE_SEEN (WORD * REGISTERS)
#define PROBE_BEFORE (WORD * 2 * REGISTERS)
#define PROBE_AFTER (WORD * (2 * REGISTERS + FIXED))

#ifdef __ASSEMBLER__

#ifndef LANDING_PAD
#define LANDING_PAD
#endif
#ifdef __APPLE__
#define NAME(name) _##name
#else
#define NAME(name) name
#endif

	.macro FUNCTION name
	.text
	.p2align 4
#ifdef __APPLE__
	.globl _\name
	.private_extern _\name
_\name:
#else
	.globl \name
#ifdef _WIN32
	.def \name
	.scl 2
	.type 32
	.endef
	.seh_proc \name
#else
	.hidden \name
	.type \name,STT_FUNC
#endif
#ifdef __thumb__
	.thumb_func
#endif
\name:
#endif
#ifdef __arm__
	.fnstart
#elif !defined(_WIN32)
	.cfi_startproc
#endif
	LANDING_PAD
	.endm

	.macro END name
#ifdef _WIN32
	.seh_endproc
#else
#ifdef __arm__
	.fnend
#else
	.cfi_endproc
#endif
#ifndef __APPLE__
	.size \name,.-\name
#endif
#endif
	.endm

#ifdef _WIN32
	.section .rdata,"dr"
#elif defined(__APPLE__)
	.section __DATA,__const
	.private_extern _probe_exported
#else
	.section .note.GNU-stack,"",%progbits
	.section .data.rel.ro,"aw",%progbits
	.hidden probe_exported
#endif
/* The exported functions' addresses; in C their names mean the header's inline ones. */
	.balign WORD
	.globl NAME(probe_exported)
NAME(probe_exported):
#if WORD == 8
	.quad NAME(aco_resume), NAME(aco_yield), NAME(aco_yield1)
#else
	.long aco_resume, aco_yield, aco_yield1
#endif

#else

#ifndef ENTRY_DEPTH
#define ENTRY_DEPTH 0
#endif

struct probe {
    uintptr_t set[REGISTERS], seen[REGISTERS];
    uintptr_t before[FIXED], after[FIXED];
};

_Static_assert(sizeof(uintptr_t) == WORD, "the tables");
_Static_assert(offsetof(struct probe, seen) == PROBE_SEEN, "probe_*.S");
_Static_assert(offsetof(struct probe, before) == PROBE_BEFORE, "probe_*.S");
_Static_assert(offsetof(struct probe, after) == PROBE_AFTER, "probe_*.S");
_Static_assert(sizeof register_names / sizeof *register_names == REGISTERS, "a name for each");
_Static_assert(sizeof fixed_names / sizeof *fixed_names == FIXED, "a name for each");

void probe_call(void (*fn)(void *), void *arg, struct probe *p);
void probe_entry(void);
void probe_mark(void);
uintptr_t probe_stack_pointer(void);
extern const struct {
    void (*resume)(aco_t *co);
    void (*yield)(void);
    void (*yield1)(aco_t *co);
} probe_exported;

/* Called by the assembly. */
void probe_entered(uintptr_t sp, uintptr_t bp, uintptr_t return_address) __attribute__((used));
#ifndef _WIN32
__attribute__((visibility("hidden")))
#endif
extern void *probe_mark_then;

#endif

#endif
