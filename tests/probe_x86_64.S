/* x86-64, System V ABI. Contract: probe.h. */

	.macro PUSH reg
	pushq %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg,0
	.endm
	.macro POP reg
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg
	.endm

/* At `to` in rdx's probe. */
	.macro FIXED_WORDS to
	movq %rsp,\to(%rdx)
#ifdef __APPLE__
	movq %gs:0,%rax
#else
	movq %fs:0,%rax
#endif
	movq %rax,\to+8(%rdx)
	.endm

FUNCTION probe_call
	PUSH rbp
	PUSH rbx
	PUSH r12
	PUSH r13
	PUSH r14
	PUSH r15
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	FIXED_WORDS PROBE_BEFORE
	movq %rdi,%rax
	movq %rsi,%rdi
	movq PROBE_SET(%rdx),%rbx
	movq PROBE_SET+8(%rdx),%rbp
	movq PROBE_SET+16(%rdx),%r12
	movq PROBE_SET+24(%rdx),%r13
	movq PROBE_SET+32(%rdx),%r14
	movq PROBE_SET+40(%rdx),%r15
	call *%rax
	movq (%rsp),%rdx
	movq %rbx,PROBE_SEEN(%rdx)
	movq %rbp,PROBE_SEEN+8(%rdx)
	movq %r12,PROBE_SEEN+16(%rdx)
	movq %r13,PROBE_SEEN+24(%rdx)
	movq %r14,PROBE_SEEN+32(%rdx)
	movq %r15,PROBE_SEEN+40(%rdx)
	FIXED_WORDS PROBE_AFTER
	popq %rdx
	.cfi_adjust_cfa_offset -8
	POP r15
	POP r14
	POP r13
	POP r12
	POP rbx
	POP rbp
	ret
END probe_call

FUNCTION probe_entry
	movq %rsp,%rdi
	movq %rbp,%rsi
	movq (%rsp),%rdx
	subq $8,%rsp
	.cfi_adjust_cfa_offset 8
	call NAME(probe_entered)
	ud2
END probe_entry

FUNCTION probe_mark
	orq $1,%rdi
	movq NAME(probe_mark_then)(%rip),%rax
	jmp *%rax
END probe_mark

FUNCTION probe_stack_pointer
	leaq 8(%rsp),%rax
	ret
END probe_stack_pointer
