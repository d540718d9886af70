/* x86-64, Microsoft ABI. Contract: probe.h.
 *
 * probe_call's frame:
 *   216-279  r15, r14, r13, r12, rsi, rdi, rbx, rbp
 *   200      ExceptionList: while `fn` runs it is this frame's address, so no two sides have the same
 *   192      p
 *   32-191   xmm6-xmm15
 *   0-31     the callee's home space               <- rsp */
	.set p_at,192
	.set list_at,200

/* Each XMM register from or to `at` in base. */
	.macro LOADED at, base
	.set at,\at
	.irp reg,xmm6,xmm7,xmm8,xmm9,xmm10,xmm11,xmm12,xmm13,xmm14,xmm15
	movups at(\base),%\reg
	.set at,at+16
	.endr
	.endm
	.macro STORED at, base
	.set at,\at
	.irp reg,xmm6,xmm7,xmm8,xmm9,xmm10,xmm11,xmm12,xmm13,xmm14,xmm15
	movups %\reg,at(\base)
	.set at,at+16
	.endr
	.endm

/* At `to` in r8's probe. */
	.macro FIXED_WORDS to
	movq %rsp,\to(%r8)
	movq %gs:0x30,%rax
	movq %rax,\to+8(%r8)
	movq %gs:8,%rax
	movq %rax,\to+16(%r8)
	movq %gs:0x10,%rax
	movq %rax,\to+24(%r8)
	movq %gs:0x1478,%rax
	movq %rax,\to+32(%r8)
	movq %gs:0,%rax
	movq %rax,\to+40(%r8)
	.endm

FUNCTION probe_call
	.irp reg,rbp,rbx,rdi,rsi,r12,r13,r14,r15
	pushq %\reg
	.seh_pushreg %\reg
	.endr
	subq $216,%rsp
	.seh_stackalloc 216
	.set at,32
	.irp reg,xmm6,xmm7,xmm8,xmm9,xmm10,xmm11,xmm12,xmm13,xmm14,xmm15
	movups %\reg,at(%rsp)
	.seh_savexmm %\reg,at
	.set at,at+16
	.endr
	.seh_endprologue
	movq %r8,p_at(%rsp)
	movq %gs:0,%rax
	movq %rax,list_at(%rsp)
	movq %rsp,%gs:0
	FIXED_WORDS PROBE_BEFORE
	movq %rcx,%rax
	movq %rdx,%rcx
	.set at,PROBE_SET
	.irp reg,rbx,rbp,rdi,rsi,r12,r13,r14,r15
	movq at(%r8),%\reg
	.set at,at+8
	.endr
	LOADED PROBE_SET+64,%r8
	call *%rax
	movq p_at(%rsp),%r8
	.set at,PROBE_SEEN
	.irp reg,rbx,rbp,rdi,rsi,r12,r13,r14,r15
	movq %\reg,at(%r8)
	.set at,at+8
	.endr
	STORED PROBE_SEEN+64,%r8
	FIXED_WORDS PROBE_AFTER
	movq list_at(%rsp),%rax
	movq %rax,%gs:0
	LOADED 32,%rsp
	addq $216,%rsp
	.irp reg,r15,r14,r13,r12,rsi,rdi,rbx,rbp
	popq %\reg
	.endr
	ret
END probe_call

FUNCTION probe_entry
	movq %rsp,%rcx
	movq %rbp,%rdx
	movq (%rsp),%r8
	subq $40,%rsp
	.seh_stackalloc 40
	.seh_endprologue
	call probe_entered
	ud2
END probe_entry

FUNCTION probe_mark
	.seh_endprologue
	orq $1,%rdi
	movq probe_mark_then(%rip),%rax
	jmp *%rax
END probe_mark

FUNCTION probe_stack_pointer
	.seh_endprologue
	leaq 8(%rsp),%rax
	ret
END probe_stack_pointer
