/* i386, System V ABI. Contract: probe.h. */

	.macro PUSH reg
	pushl %\reg
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset \reg,0
	.endm
	.macro POP reg
	popl %\reg
	.cfi_adjust_cfa_offset -4
	.cfi_restore \reg
	.endm

/* At `to` in edx's probe. */
	.macro FIXED_WORDS to
	movl %esp,\to(%edx)
	movl %gs:0,%ecx
	movl %ecx,\to+4(%edx)
	.endm

FUNCTION probe_call
	PUSH ebp
	PUSH ebx
	PUSH esi
	PUSH edi
	movl 20(%esp),%eax
	movl 28(%esp),%edx
	/* 20 bytes are in use since the caller's aligned esp; the call wants a multiple of 16 with the argument lowest */
	subl $12,%esp
	.cfi_adjust_cfa_offset 12
	movl %edx,8(%esp)
	FIXED_WORDS PROBE_BEFORE
	movl 36(%esp),%ecx
	movl %ecx,(%esp)
	movl PROBE_SET(%edx),%ebx
	movl PROBE_SET+4(%edx),%ebp
	movl PROBE_SET+8(%edx),%esi
	movl PROBE_SET+12(%edx),%edi
	call *%eax
	movl 8(%esp),%edx
	movl %ebx,PROBE_SEEN(%edx)
	movl %ebp,PROBE_SEEN+4(%edx)
	movl %esi,PROBE_SEEN+8(%edx)
	movl %edi,PROBE_SEEN+12(%edx)
	FIXED_WORDS PROBE_AFTER
	addl $12,%esp
	.cfi_adjust_cfa_offset -12
	POP edi
	POP esi
	POP ebx
	POP ebp
	ret
END probe_call

FUNCTION probe_entry
	movl %esp,%eax
	pushl (%esp)
	.cfi_adjust_cfa_offset 4
	pushl %ebp
	.cfi_adjust_cfa_offset 4
	pushl %eax
	.cfi_adjust_cfa_offset 4
	call probe_entered
	ud2
END probe_entry

FUNCTION probe_mark
	orl $1,%eax
	call 1f
1:	popl %ecx
	movl probe_mark_then-1b(%ecx),%ecx
	jmp *%ecx
END probe_mark

FUNCTION probe_stack_pointer
	leal 4(%esp),%eax
	ret
END probe_stack_pointer
