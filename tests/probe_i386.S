/* The parts of probe.c that no compiler may arrange. struct probe and struct entry_state are described there. */
#if defined(__i386__)
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
	pushl %ebp
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset ebp,0
	pushl %ebx
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset ebx,0
	pushl %esi
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset esi,0
	pushl %edi
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset edi,0
	movl 20(%esp),%eax
	movl 24(%esp),%ecx
	movl 28(%esp),%edx
	/* 20 bytes are in use since the caller's aligned esp; the call wants a multiple of 16 with the argument lowest */
	pushl %edx
	.cfi_adjust_cfa_offset 4
	subl $4,%esp
	.cfi_adjust_cfa_offset 4
	pushl %ecx
	.cfi_adjust_cfa_offset 4
	movl %esp,32(%edx)
	movl 0(%edx),%ebx
	movl 4(%edx),%ebp
	movl 8(%edx),%esi
	movl 12(%edx),%edi
	call *%eax
	movl 8(%esp),%edx
	movl %ebx,16(%edx)
	movl %ebp,20(%edx)
	movl %esi,24(%edx)
	movl %edi,28(%edx)
	movl %esp,36(%edx)
	pushfl
	popl 40(%edx)
	cld
	stmxcsr 44(%edx)
	fnstenv 48(%edx)
	fldenv 48(%edx)
	addl $12,%esp
	.cfi_adjust_cfa_offset -12
	popl %edi
	.cfi_adjust_cfa_offset -4
	popl %esi
	.cfi_adjust_cfa_offset -4
	popl %ebx
	.cfi_adjust_cfa_offset -4
	popl %ebp
	.cfi_adjust_cfa_offset -4
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
	pushfl
	.cfi_adjust_cfa_offset 4
	pushl %ebp
	.cfi_adjust_cfa_offset 4
	subl $32,%esp
	.cfi_adjust_cfa_offset 32
	fnstenv (%esp)
	fldenv (%esp)
	stmxcsr 28(%esp)
	movl %esp,%eax
	subl $16,%esp
	.cfi_adjust_cfa_offset 16
	andl $-16,%esp
	movl %eax,(%esp)
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
	orl $1,%eax
	call 1f
1:	popl %ecx
	movl probe_mark_then-1b(%ecx),%ecx
	jmp *%ecx
	.cfi_endproc
	.size probe_mark,.-probe_mark

/* uintptr_t probe_stack_pointer(void): the caller's, as it calls. */
	.globl probe_stack_pointer
	.hidden probe_stack_pointer
	.type probe_stack_pointer,@function
probe_stack_pointer:
	.cfi_startproc
	_CET_ENDBR
	leal 4(%esp),%eax
	ret
	.cfi_endproc
	.size probe_stack_pointer,.-probe_stack_pointer

	.bss
	.globl probe_mark_then
	.hidden probe_mark_then
	.balign 4
probe_mark_then:
	.zero 4

/* The exported functions' addresses; in C their names mean the header's inline ones. */
	.section .data.rel.ro,"aw",@progbits
	.balign 4
	.globl probe_exported
	.hidden probe_exported
probe_exported:
	.long aco_resume
	.long aco_yield
	.long aco_yield1
#endif
	.section .note.GNU-stack,"",@progbits
