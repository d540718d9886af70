/* LoongArch, LP64. Contract: probe.h.
 *
 * probe_call's frame:
 *   96-159   fs0-fs7, where they are compiled in
 *   88       p
 *   8-87     fp, s0-s8
 *   0        ra                                    <- sp */

/* Each register from or to `at` in base. */
	.macro EACH op, at, base, registers:vararg
	.set at,\at
	.irp reg,\registers
	\op \reg,\base,at
	.set at,at+8
	.endr
	.endm
	.macro INTEGERS op, at, base
	EACH \op,\at,\base,$fp,$s0,$s1,$s2,$s3,$s4,$s5,$s6,$s7,$s8
	.endm
	.macro FLOATS op, at, base
#if __loongarch_frlen >= 64
	EACH \op,\at,\base,$fs0,$fs1,$fs2,$fs3,$fs4,$fs5,$fs6,$fs7
#endif
	.endm

/* At `to` in a2's probe. */
	.macro FIXED_WORDS to
	st.d $sp,$a2,\to
	st.d $tp,$a2,\to+8
	st.d $r21,$a2,\to+16
	.endm

FUNCTION probe_call
	addi.d $sp,$sp,-160
	.cfi_def_cfa_offset 160
	st.d $ra,$sp,0
	.cfi_rel_offset 1,0
	INTEGERS st.d,8,$sp
	.set at,8
	.irp reg,22,23,24,25,26,27,28,29,30,31
	.cfi_rel_offset \reg,at
	.set at,at+8
	.endr
	FLOATS fst.d,96,$sp
	st.d $a2,$sp,88
	FIXED_WORDS PROBE_BEFORE
	move $t0,$a0
	move $a0,$a1
	INTEGERS ld.d,PROBE_SET,$a2
	FLOATS fld.d,PROBE_SET+80,$a2
	jirl $ra,$t0,0
	ld.d $a2,$sp,88
	INTEGERS st.d,PROBE_SEEN,$a2
	FLOATS fst.d,PROBE_SEEN+80,$a2
	FIXED_WORDS PROBE_AFTER
	FLOATS fld.d,96,$sp
	INTEGERS ld.d,8,$sp
	ld.d $ra,$sp,0
	addi.d $sp,$sp,160
	.cfi_def_cfa_offset 0
	jr $ra
END probe_call

FUNCTION probe_entry
	move $a0,$sp
	move $a1,$fp
	move $a2,$ra
	bl probe_entered
	break 0
END probe_entry

FUNCTION probe_mark
	ori $a0,$a0,1
	la.pcrel $t0,probe_mark_then
	ld.d $t0,$t0,0
	jr $t0
END probe_mark

FUNCTION probe_stack_pointer
	move $a0,$sp
	jr $ra
END probe_stack_pointer
