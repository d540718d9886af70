/* s390x, ELF ABI. Contract: probe.h.
 *
 * probe_call's frame:
 *   288-367  r6-r15, in the save area that the caller gives
 *   224      p
 *   160-223  f8-f15
 *   0-159    the callee's save area                <- r15 */
	.set frame,240

/* Each FP register from or to `at` in base. */
	.macro FLOATS op, at, base
	.set at,\at
	.irp reg,%f8,%f9,%f10,%f11,%f12,%f13,%f14,%f15
	\op \reg,at(\base)
	.set at,at+8
	.endr
	.endm

/* At `to` in r4's probe. */
	.macro FIXED_WORDS to
	stg %r15,\to(%r4)
	lghi %r0,0
	ear %r0,%a0
	stg %r0,\to+8(%r4)
	ear %r0,%a1
	stg %r0,\to+16(%r4)
	.endm

FUNCTION probe_call
	stmg %r6,%r15,48(%r15)
	.set at,48-160
	.irp reg,6,7,8,9,10,11,12,13,14,15
	.cfi_offset \reg,at
	.set at,at+8
	.endr
	aghi %r15,-frame
	.cfi_def_cfa_offset frame+160
	FLOATS std,160,%r15
	stg %r4,224(%r15)
	FIXED_WORDS PROBE_BEFORE
	lgr %r1,%r2
	lgr %r2,%r3
	lmg %r6,%r13,PROBE_SET(%r4)
	FLOATS ld,PROBE_SET+64,%r4
	basr %r14,%r1
	lg %r4,224(%r15)
	stmg %r6,%r13,PROBE_SEEN(%r4)
	FLOATS std,PROBE_SEEN+64,%r4
	FIXED_WORDS PROBE_AFTER
	FLOATS ld,160,%r15
	lmg %r6,%r15,frame+48(%r15)
	.cfi_def_cfa_offset 160
	br %r14
END probe_call

FUNCTION probe_entry
	lgr %r2,%r15
	lgr %r3,%r11
	lgr %r4,%r14
	aghi %r15,-160
	.cfi_adjust_cfa_offset 160
	brasl %r14,probe_entered
	.short 0 /* no instruction */
END probe_entry

FUNCTION probe_mark
	oill %r2,1
	lgrl %r1,probe_mark_then
	br %r1
END probe_mark

FUNCTION probe_stack_pointer
	lgr %r2,%r15
	br %r14
END probe_stack_pointer
