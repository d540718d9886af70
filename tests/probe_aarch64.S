/* AArch64, AAPCS64. Contract: probe.h.
 *
 * probe_call's frame:
 *   168      unused
 *   160      p
 *   96-159   d8-d15
 *   16-95    x19-x28
 *   0        x29, x30                              <- sp */

	.macro SAVE one, other, at, number
	stp \one,\other,[sp,#\at]
	.cfi_rel_offset \number,\at
	.cfi_rel_offset \number+1,\at+8
	.endm

/* x9: where to store. */
	.macro FIXED_WORDS
	mov x10,sp
#ifdef __APPLE__
	mrs x11,tpidrro_el0 /* bits 0 to 2: the processor's number */
	bic x11,x11,#7
#else
	mrs x11,tpidr_el0
#endif
	stp x10,x11,[x9]
	.endm

FUNCTION probe_call
	sub sp,sp,#176
	.cfi_adjust_cfa_offset 176
	SAVE x29,x30,0,29
	SAVE x19,x20,16,19
	SAVE x21,x22,32,21
	SAVE x23,x24,48,23
	SAVE x25,x26,64,25
	SAVE x27,x28,80,27
	SAVE d8,d9,96,72
	SAVE d10,d11,112,74
	SAVE d12,d13,128,76
	SAVE d14,d15,144,78
	str x2,[sp,#160]
	add x9,x2,#PROBE_BEFORE
	FIXED_WORDS
	mov x16,x0
	mov x0,x1
	ldp x19,x20,[x2,#PROBE_SET]
	ldp x21,x22,[x2,#PROBE_SET+16]
	ldp x23,x24,[x2,#PROBE_SET+32]
	ldp x25,x26,[x2,#PROBE_SET+48]
	ldp x27,x28,[x2,#PROBE_SET+64]
	ldr x29,[x2,#PROBE_SET+80]
	ldp d8,d9,[x2,#PROBE_SET+88]
	ldp d10,d11,[x2,#PROBE_SET+104]
	ldp d12,d13,[x2,#PROBE_SET+120]
	ldp d14,d15,[x2,#PROBE_SET+136]
	blr x16
	ldr x2,[sp,#160]
	stp x19,x20,[x2,#PROBE_SEEN]
	stp x21,x22,[x2,#PROBE_SEEN+16]
	stp x23,x24,[x2,#PROBE_SEEN+32]
	stp x25,x26,[x2,#PROBE_SEEN+48]
	stp x27,x28,[x2,#PROBE_SEEN+64]
	str x29,[x2,#PROBE_SEEN+80]
	stp d8,d9,[x2,#PROBE_SEEN+88]
	stp d10,d11,[x2,#PROBE_SEEN+104]
	stp d12,d13,[x2,#PROBE_SEEN+120]
	stp d14,d15,[x2,#PROBE_SEEN+136]
	add x9,x2,#PROBE_AFTER
	FIXED_WORDS
	ldp d14,d15,[sp,#144]
	ldp d12,d13,[sp,#128]
	ldp d10,d11,[sp,#112]
	ldp d8,d9,[sp,#96]
	ldp x27,x28,[sp,#80]
	ldp x25,x26,[sp,#64]
	ldp x23,x24,[sp,#48]
	ldp x21,x22,[sp,#32]
	ldp x19,x20,[sp,#16]
	ldp x29,x30,[sp]
	add sp,sp,#176
	.cfi_def_cfa_offset 0
	ret
END probe_call

FUNCTION probe_entry
	mov x0,sp
	mov x1,x29
	mov x2,x30
	bl NAME(probe_entered)
	brk #1
END probe_entry

/* Through x16, which may jump to landing pads of both kinds. */
FUNCTION probe_mark
	orr x0,x0,#1
#ifdef __APPLE__
	adrp x16,_probe_mark_then@PAGE
	ldr x16,[x16,_probe_mark_then@PAGEOFF]
#else
	adrp x16,probe_mark_then
	ldr x16,[x16,#:lo12:probe_mark_then]
#endif
	br x16
END probe_mark

FUNCTION probe_stack_pointer
	mov x0,sp
	ret
END probe_stack_pointer

#ifdef __ARM_FEATURE_BTI_DEFAULT
/* The object's landing pads are complete: GNU property AARCH64_FEATURE_1_AND, bit 0. */
	.section .note.gnu.property,"a"
	.balign 8
	.long 4,16,5
	.asciz "GNU"
	.long 0xc0000000,4,1,0
#endif
