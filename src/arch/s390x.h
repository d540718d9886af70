/* s390x: what the library needs besides the inline switch. Included by core.c, so that the assembly stands in an object that
 * every program links. */

/* How to go on from the outermost frame (assembly.h). On this processor the frame is as far above the stack pointer as the
 * register save area is large, and the stack pointer has a rule of its own. r12 and r13 are in the resumer's register save
 * area. */
#define ACO__ASM_RECORD "0xa0,0x01" /* 160 bytes above the stack pointer: SLEB128 */
#define ACO__ASM_LINK_CFA_ABOVE                                                                                        \
    "\t.cfi_escape 0x0f," ACO__ASM_CONTEXT_BYTES "+4," ACO__ASM_CONTEXT("15", ACO__ASM_RECORD) "0x06,0x23,0xa0,0x01\n"
#define ACO__ASM_LINK_CONTEXT(number, offset) ACO__ASM_LINK_REGISTER(number, "15", ACO__ASM_RECORD, offset)
#define ACO__ASM_LINK_SAVED(number, offset)                                                                            \
    "\t.cfi_escape 0x10," number "," ACO__ASM_CONTEXT_BYTES "+3," ACO__ASM_CONTEXT("15", ACO__ASM_RECORD) "0x06,0x23," offset "\n"

/* aco__returned: an entry function's return address; aco__unlinked_returned: that of what has no resumer, a generator or what
 * runs on a scratch stack.
 *
 *   top      64-byte aligned
 *   top-32   f0, f2, f4, f6: unused
 *   top-112  r6-r15, where the entry function saves them; aco__returned for r14, at top-48
 *   top-160  back chain: 0, the last              <- r15 on entry to the entry function, and on arrival here
 *
 * Unwinders look before a return address, hence the nops: they find this function, named aco__outermost, and go on in the
 * resumer, or find by an undefined r14 the end of the stack. A signal frame, as in x86_64.h. A cancellation that was caught and
 * thrown again lands at aco__cancel_landing (end.c). */
__asm__(ACO__ASM_OUTERMOST
        "\t.cfi_undefined %r14\n"
        "\tnop\n"
        ACO__ASM_INSIDE("aco__unlinked_returned")
        "\tj .+2\n" /* an invalid instruction */
        "\t.cfi_signal_frame\n"
        "\t.cfi_remember_state\n"
        ACO__ASM_LINK_CFA_ABOVE
        ACO__ASM_LINK_CONTEXT("15", "0")
        ACO__ASM_LINK_CONTEXT("14", "8")
        ACO__ASM_LINK_CONTEXT("11", "16")
        ACO__ASM_LINK_SAVED("12", "96")
        ACO__ASM_LINK_SAVED("13", "104")
        "\tnop\n"
        ACO__ASM_INSIDE("aco__returned")
        "\tbrasl %r14,aco__entry_returned\n"
        "\tj .+2\n"
        "\t.cfi_restore_state\n"
        ACO__ASM_INSIDE("aco__cancel_landing") /* r6: the exception; the word at top-48 stays as it is */
        "\tlgr %r2,%r6\n"
        "\taghi %r15,-160\n"
        "\t.cfi_def_cfa_offset 320\n"
        "\tbrasl %r14,aco__cancel_landed\n"
        "\tj .+2\n"
        ACO__ASM_END("aco__outermost"));

/* The first arrivals, r2 the block: of aco_new() and of aco_create(). An entry function returns to what stands where it will save
 * it. */
__asm__(ACO__ASM_BEGIN("aco__begin")
        "\t.cfi_offset %r14,-48\n"
        "\tlg %r14,112(%r15)\n"
        "\tjg aco__begun\n"
        ACO__ASM_END("aco__begin"));
__asm__(ACO__ASM_HIDE("aco__begin_entry")
        ACO__ASM_BEGIN("aco__begin_entry")
        "\t.cfi_offset %r14,-48\n"
        "\tlg %r14,112(%r15)\n"
        "\tlg %r1,56(%r2)\n" /* fp */
        "\tbr %r1\n"
        ACO__ASM_END("aco__begin_entry"));

/* The first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(ACO__ASM_BEGIN("aco__generator_begin")
        "\t.cfi_undefined %r14\n"
        "\tlg %r1,0(%r15)\n"
        "\tlg %r14,8(%r15)\n"
        "\taghi %r15,16\n"
        "\tbr %r1\n"
        ACO__ASM_END("aco__generator_begin"));

/* The exported aco_defer(): its caller's frame begins behind the register save area, where unwinders see it. */
#define ACO__DEFER_ELSEWHERE
__asm__(ACO__ASM_BEGIN("aco_defer")
        "\tla %r4,160(%r15)\n"
        "\tjg aco__defer@PLT\n"
        ACO__ASM_END("aco_defer"));
