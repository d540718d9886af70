/* The parts of probe.c that no compiler may arrange. struct probe and struct entry_state are described there. */
#if defined(__x86_64__)
#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

	.text

/* void probe_call(void (*fn)(void *), void *arg, struct probe *p)
 * Calls fn(arg) with p->set in the callee-saved registers and records what they and the rest of the state are then. */
	.globl probe_call
	.hidden probe_call
	.type probe_call,@function
probe_call:
	.cfi_startproc
	_CET_ENDBR
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp,0
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx,0
	pushq %r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12,0
	pushq %r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13,0
	pushq %r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r14,0
	pushq %r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r15,0
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	movq %rsp,96(%rdx)
	movq %rdi,%rax
	movq %rsi,%rdi
	movq 0(%rdx),%rbx
	movq 8(%rdx),%rbp
	movq 16(%rdx),%r12
	movq 24(%rdx),%r13
	movq 32(%rdx),%r14
	movq 40(%rdx),%r15
	call *%rax
	movq (%rsp),%rdx
	movq %rbx,48(%rdx)
	movq %rbp,56(%rdx)
	movq %r12,64(%rdx)
	movq %r13,72(%rdx)
	movq %r14,80(%rdx)
	movq %r15,88(%rdx)
	movq %rsp,104(%rdx)
	pushfq
	popq 112(%rdx)
	cld
	stmxcsr 120(%rdx)
	fnstenv 124(%rdx)
	fldenv 124(%rdx)
	popq %rdx
	.cfi_adjust_cfa_offset -8
	popq %r15
	.cfi_adjust_cfa_offset -8
	popq %r14
	.cfi_adjust_cfa_offset -8
	popq %r13
	.cfi_adjust_cfa_offset -8
	popq %r12
	.cfi_adjust_cfa_offset -8
	popq %rbx
	.cfi_adjust_cfa_offset -8
	popq %rbp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size probe_call,.-probe_call

/* An entry function: pushes a struct entry_state, whose last word is the return address it was entered with. */
	.globl probe_entry
	.hidden probe_entry
	.type probe_entry,@function
probe_entry:
	.cfi_startproc
	_CET_ENDBR
	pushfq
	.cfi_adjust_cfa_offset 8
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	subq $40,%rsp
	.cfi_adjust_cfa_offset 40
	fnstenv (%rsp)
	fldenv (%rsp)
	stmxcsr 28(%rsp)
	movq %rsp,%rdi
	call probe_entered
	ud2
	.cfi_endproc
	.size probe_entry,.-probe_entry

/* Stands for the other side of a switch that sets the arrival mark: probe_mark_then is where it goes on. */
	.globl probe_mark
	.hidden probe_mark
	.type probe_mark,@function
probe_mark:
	.cfi_startproc
	_CET_ENDBR
	orq $1,%rdi
	movq probe_mark_then(%rip),%rax
	jmp *%rax
	.cfi_endproc
	.size probe_mark,.-probe_mark

/* uintptr_t probe_stack_pointer(void): the caller's, as it calls. */
	.globl probe_stack_pointer
	.hidden probe_stack_pointer
	.type probe_stack_pointer,@function
probe_stack_pointer:
	.cfi_startproc
	_CET_ENDBR
	leaq 8(%rsp),%rax
	ret
	.cfi_endproc
	.size probe_stack_pointer,.-probe_stack_pointer

	.bss
	.globl probe_mark_then
	.hidden probe_mark_then
	.balign 8
probe_mark_then:
	.zero 8

/* The exported functions' addresses; in C their names mean the header's inline ones. */
	.section .data.rel.ro,"aw",@progbits
	.balign 8
	.globl probe_exported
	.hidden probe_exported
probe_exported:
	.quad aco_resume
	.quad aco_yield
	.quad aco_yield1
#endif
	.section .note.GNU-stack,"",@progbits
