/* 32-bit Arm, AAPCS. Contract: probe.h.
 *
 * probe_call's frame:
 *   44       unused
 *   8-43     r4-r11, lr; with VFP 64 bytes higher, above d8-d15
 *   4        unused
 *   0        p                                     <- sp */
	.syntax unified

/* r3: where to store. */
	.macro FIXED_WORDS
	mov r1,sp
	str r1,[r3]
	mrc p15,0,r1,c13,c0,3
	str r1,[r3,#4]
	.endm

FUNCTION probe_call
	.save {r4-r11,lr}
	push {r4-r11,lr}
	.pad #4
	sub sp,sp,#4
#ifdef __ARM_FP
	.vsave {d8-d15}
	vpush {d8-d15}
#endif
	.pad #8
	sub sp,sp,#8
	str r2,[sp]
	mov r12,r0
	mov r0,r1
	add r3,r2,#PROBE_BEFORE
	FIXED_WORDS
	ldmia r2!,{r4-r11}
#ifdef __ARM_FP
	vldmia r2,{d8-d15}
#endif
	blx r12
	ldr r2,[sp]
	add r3,r2,#PROBE_SEEN
	stmia r3!,{r4-r11}
#ifdef __ARM_FP
	vstmia r3,{d8-d15}
#endif
	add r3,r2,#PROBE_AFTER
	FIXED_WORDS
	add sp,sp,#8
#ifdef __ARM_FP
	vpop {d8-d15}
#endif
	add sp,sp,#4
	pop {r4-r11,pc}
END probe_call

FUNCTION probe_entry
	mov r0,sp
#ifdef __thumb__
	mov r1,r7
#else
	mov r1,r11
#endif
	mov r2,lr
	bl probe_entered
	udf #0
END probe_entry

/* ip := the word at pc + what the literal says. */
FUNCTION probe_mark
	orr r0,r0,#1
	ldr r12,2f
1:	add r12,r12,pc
	ldr r12,[r12]
	bx r12
	.balign 4
#ifdef __thumb__
2:	.long probe_mark_then-(1b+4)
#else
2:	.long probe_mark_then-(1b+8)
#endif
END probe_mark

FUNCTION probe_stack_pointer
	mov r0,sp
	bx lr
END probe_stack_pointer
