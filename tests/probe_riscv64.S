/* RISC-V, 64 bit. Contract: probe.h.
 *
 * probe_call's frame:
 *   112-207  fs0-fs11, where they are compiled in
 *   104      p
 *   8-103    s0-s11
 *   0        ra                                    <- sp */

/* Each register from or to `at` in base. */
	.macro EACH op, at, base, registers:vararg
	.set at,\at
	.irp reg,\registers
	\op \reg,at(\base)
	.set at,at+8
	.endr
	.endm
	.macro INTEGERS op, at, base
	EACH \op,\at,\base,s0,s1,s2,s3,s4,s5,s6,s7,s8,s9,s10,s11
	.endm
	.macro FLOATS op, at, base
#ifdef __riscv_float_abi_double
	EACH \op,\at,\base,fs0,fs1,fs2,fs3,fs4,fs5,fs6,fs7,fs8,fs9,fs10,fs11
#endif
	.endm

/* At `to` in a2's probe. */
	.macro FIXED_WORDS to
	sd sp,\to(a2)
	sd gp,\to+8(a2)
	sd tp,\to+16(a2)
	.endm

FUNCTION probe_call
	addi sp,sp,-208
	.cfi_def_cfa_offset 208
	sd ra,0(sp)
	.cfi_rel_offset ra,0
	INTEGERS sd,8,sp
	.set at,8
	.irp reg,s0,s1,s2,s3,s4,s5,s6,s7,s8,s9,s10,s11
	.cfi_rel_offset \reg,at
	.set at,at+8
	.endr
	FLOATS fsd,112,sp
	sd a2,104(sp)
	FIXED_WORDS PROBE_BEFORE
	mv t0,a0
	mv a0,a1
	INTEGERS ld,PROBE_SET,a2
	FLOATS fld,PROBE_SET+96,a2
	jalr t0
	ld a2,104(sp)
	INTEGERS sd,PROBE_SEEN,a2
	FLOATS fsd,PROBE_SEEN+96,a2
	FIXED_WORDS PROBE_AFTER
	FLOATS fld,112,sp
	INTEGERS ld,8,sp
	ld ra,0(sp)
	addi sp,sp,208
	.cfi_def_cfa_offset 0
	ret
END probe_call

FUNCTION probe_entry
	mv a0,sp
	mv a1,s0
	mv a2,ra
	call probe_entered
	ebreak
END probe_entry

FUNCTION probe_mark
	ori a0,a0,1
	ld t1,probe_mark_then
	jr t1
END probe_mark

FUNCTION probe_stack_pointer
	mv a0,sp
	ret
END probe_stack_pointer
