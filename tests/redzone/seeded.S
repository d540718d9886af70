/* Violations of the red-zone invariant in every form that a compiler gives them, for check.py to flag: the functions
 * named bad_…; and frames that look like them but are right: good_…. Only assembled, never run. x86-64. */

.macro SWITCH_AWAY
	movq aco__thread@gottpoff(%rip),%rsi
	leaq 1f(%rip),%rdx
	movq $0,%fs:40(%rsi)
	movq %rsp,0(%rdi)
	movq %rdx,8(%rdi)
	movq %rbp,16(%rdi)
	movq %fs:0(%rsi),%rsp
	movq %fs:16(%rsi),%rbp
	jmpq *%fs:8(%rsi)
1:
.endm

.macro FUNCTION name
	.globl \name
	.type \name,@function
\name:
.endm

	.text
FUNCTION bad_spill /* a value in the red zone, by rsp */
	movq %rbx,-8(%rsp)
	SWITCH_AWAY
	movq -8(%rsp),%rax
	ret
	.size bad_spill,.-bad_spill

FUNCTION bad_frame_pointer /* by rbp, with less of a frame than is used */
	pushq %rbp
	movq %rsp,%rbp
	subq $16,%rsp
	movq %rbx,-24(%rbp)
	SWITCH_AWAY
	movq -24(%rbp),%rax
	leave
	ret
	.size bad_frame_pointer,.-bad_frame_pointer

FUNCTION bad_index /* an array in the red zone */
	movq %rbx,-64(%rsp,%rcx,8)
	SWITCH_AWAY
	xorl %eax,%eax
	ret
	.size bad_index,.-bad_index

FUNCTION bad_pointer /* through another register */
	leaq -40(%rsp),%rax
	movq %rbx,8(%rax)
	SWITCH_AWAY
	ret
	.size bad_pointer,.-bad_pointer

FUNCTION bad_indexed_pointer
	leaq -64(%rsp,%rcx,8),%rax
	movq %rbx,(%rax)
	SWITCH_AWAY
	ret
	.size bad_indexed_pointer,.-bad_indexed_pointer

FUNCTION bad_added_pointer
	leaq -64(%rsp),%rax
	addq %rcx,%rax
	movq %rbx,(%rax)
	SWITCH_AWAY
	ret
	.size bad_added_pointer,.-bad_added_pointer

FUNCTION bad_kept_pointer /* through one that was saved in the frame */
	subq $24,%rsp
	leaq -16(%rsp),%rax
	movq %rax,8(%rsp)
	SWITCH_AWAY
	movq 8(%rsp),%rax
	movq (%rax),%rax
	addq $24,%rsp
	ret
	.size bad_kept_pointer,.-bad_kept_pointer

FUNCTION bad_passed /* by a call */
	subq $8,%rsp
	SWITCH_AWAY
	leaq -32(%rsp),%rdi
	call aco__interrupted
	addq $8,%rsp
	ret
	.size bad_passed,.-bad_passed

FUNCTION bad_after_pop /* what was in the frame before a part of it was given up */
	pushq %rbp
	movq %rsp,%rbp
	subq $32,%rsp
	movq %rbx,-32(%rbp)
	addq $16,%rsp
	SWITCH_AWAY
	movq -32(%rbp),%rax
	leave
	ret
	.size bad_after_pop,.-bad_after_pop

FUNCTION bad_one_way /* on one of two ways to the switch only */
	pushq %rbx
	testl %ecx,%ecx
	je 2f
	movups %xmm0,-16(%rsp)
2:	SWITCH_AWAY
	popq %rbx
	ret
	.size bad_one_way,.-bad_one_way

FUNCTION bad_cold_part /* in the part that a compiler split off */
	pushq %rbx
	SWITCH_AWAY
	testl $1,%edi
	jne bad_cold_part.cold
	popq %rbx
	ret
	.size bad_cold_part,.-bad_cold_part

FUNCTION bad_aligned /* in a frame with over-aligned locals */
	leaq 8(%rsp),%r10
	andq $-64,%rsp
	pushq -8(%r10)
	pushq %rbp
	movq %rsp,%rbp
	subq $128,%rsp
	movaps %xmm0,-144(%rbp)
	SWITCH_AWAY
	leave
	leaq -8(%r10),%rsp
	ret
	.size bad_aligned,.-bad_aligned

FUNCTION bad_loop /* by a pointer that walks through the red zone */
	leaq -32(%rsp),%rax
3:	movq %rbx,(%rax)
	addq $8,%rax
	cmpq %rsp,%rax
	jne 3b
	SWITCH_AWAY
	ret
	.size bad_loop,.-bad_loop

FUNCTION good_frame
	pushq %rbp
	movq %rsp,%rbp
	pushq %rbx
	subq $40,%rsp
	movq %rbx,-48(%rbp)
	movq %rbx,(%rsp,%rcx,8)
	leaq -48(%rbp),%rax
	movq %rax,-16(%rbp)
	SWITCH_AWAY
	movq -16(%rbp),%rax
	movq (%rax),%rax
	movq -8(%rbp),%rbx
	leave
	ret
	.size good_frame,.-good_frame

FUNCTION good_alloca
	pushq %rbp
	movq %rsp,%rbp
	subq $16,%rsp
4:	subq %rcx,%rsp
	leaq 15(%rsp),%rax
	andq $-16,%rax
	movq %rbx,(%rax)
	movq %rbx,-16(%rbp)
	SWITCH_AWAY
	movl -16(%rbp),%ecx
	decl -16(%rbp)
	jne 4b
	leave
	ret
	.size good_alloca,.-good_alloca

FUNCTION good_aligned
	leaq 8(%rsp),%r10
	andq $-64,%rsp
	pushq -8(%r10)
	pushq %rbp
	movq %rsp,%rbp
	pushq %r10
	subq $120,%rsp
	movaps %xmm0,-128(%rbp)
	SWITCH_AWAY
	movq -8(%rbp),%r10
	leave
	leaq -8(%r10),%rsp
	ret
	.size good_aligned,.-good_aligned

	.section .text.unlikely,"ax",@progbits
	.type bad_cold_part.cold,@function
bad_cold_part.cold:
	movq -8(%rsp),%rax
	popq %rbx
	ret
	.size bad_cold_part.cold,.-bad_cold_part.cold

	.section .note.GNU-stack,"",@progbits
