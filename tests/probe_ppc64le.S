/* 64-bit Power, ELFv2 ABI. Contract: probe.h.
 *
 * probe_call's frame:
 *   544      the caller's link register, 8 below it the caller's CR: in the caller's frame
 *   512      p
 *   320-511  v20-v31
 *   176-319  f14-f31
 *   32-175   r14-r31
 *   24       r2, for calls by address
 *   0        the caller's r1                       <- r1 */
	.set frame,528

/* Registers first to 31 from or to `at` in base; r12 is used. */
	.macro EACH op, first, at, base
	.set at,\at
	.set reg,\first
	.rept 32-\first
	\op reg,at(\base)
	.set at,at+8
	.set reg,reg+1
	.endr
	.endm
	.macro VECTORS op, at, base
	.set at,\at
	.irp reg,52,53,54,55,56,57,58,59,60,61,62,63
	li 12,at
	\op \reg,\base,12
	.set at,at+16
	.endr
	.endm

/* At `to` in r5's probe. */
	.macro FIXED_WORDS to
	std 1,\to(5)
	std 2,\to+8(5)
	std 13,\to+16(5)
	.endm

FUNCTION probe_call
	mflr 0
	std 0,16(1)
	mfcr 0
	stw 0,8(1)
	stdu 1,-frame(1)
	.cfi_def_cfa_offset frame
	.cfi_offset 65,16
	.cfi_offset 70,8
	EACH std,14,32,1
	.set at,32
	.irp reg,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	.cfi_rel_offset \reg,at
	.set at,at+8
	.endr
	EACH stfd,14,176,1
	VECTORS stxvd2x,320,1
	std 2,24(1)
	std 5,512(1)
	FIXED_WORDS PROBE_BEFORE
	mr 6,3
	mr 3,4
	EACH ld,14,PROBE_SET,5
	EACH lfd,14,PROBE_SET+144,5
	VECTORS lxvd2x,PROBE_SET+288,5
	ld 0,PROBE_SET+480(5)
	mtcrf 0x38,0
	mr 12,6
	mtctr 12
	bctrl
	ld 5,512(1)
	mfcr 6
	ld 0,PROBE_SET+480(5)
	rlwimi 0,6,0,8,19 /* fields 2 to 4; the rest is as in the pattern */
	std 0,PROBE_SEEN+480(5)
	EACH std,14,PROBE_SEEN,5
	EACH stfd,14,PROBE_SEEN+144,5
	VECTORS stxvd2x,PROBE_SEEN+288,5
	FIXED_WORDS PROBE_AFTER
	ld 2,24(1)
	VECTORS lxvd2x,320,1
	EACH lfd,14,176,1
	EACH ld,14,32,1
	addi 1,1,frame
	.cfi_def_cfa_offset 0
	lwz 0,8(1)
	mtcrf 0x38,0
	ld 0,16(1)
	mtlr 0
	blr
END probe_call

FUNCTION probe_entry
	addis 2,12,.TOC.-probe_entry@ha
	addi 2,2,.TOC.-probe_entry@l
	.localentry probe_entry,.-probe_entry
	mr 3,1
	mr 4,31
	mflr 5
	stdu 1,-32(1)
	.cfi_adjust_cfa_offset 32
	bl probe_entered
	nop
	trap
END probe_entry

FUNCTION probe_mark
	ori 3,3,1
	bcl 20,31,1f
1:	mflr 12
	addis 12,12,probe_mark_then-1b@ha
	addi 12,12,probe_mark_then-1b@l
	ld 12,0(12)
	mtctr 12
	bctr
END probe_mark

FUNCTION probe_stack_pointer
	mr 3,1
	blr
END probe_stack_pointer
