/* 64-bit Power, little endian: what the library needs besides the inline switch. Included by core.c, so that the assembly stands
 * in an object that every program links. */

/* The TOC pointer, where r12 is the address of `here`. */
#define ACO__ASM_TOC(here)                                                                                             \
    "\taddis 2,12,.TOC.-" here "@ha\n"                                                                                 \
    "\taddi 2,2,.TOC.-" here "@l\n"
/* The same where r12 is not known. */
#define ACO__ASM_FIND_TOC                                                                                              \
    "\tbcl 20,31,0f\n"                                                                                                 \
    "0:\tmflr 12\n"                                                                                                    \
    ACO__ASM_TOC("0b")

/* aco__returned: an entry function's return address; aco__unlinked_returned: that of what has no resumer, a generator or what
 * runs on a scratch stack.
 *
 *   top     64-byte aligned
 *   top-8   TOC pointer, where stubs save it
 *   top-16  aco__returned, where the entry function saves LR
 *   top-24  CR, where it saves that
 *   top-32  back chain: 0, the last              <- r1 on entry to the entry function, and on arrival here
 *
 * Unwinders look before a return address, hence the nop: they find this function, named aco__outermost, and go on in the
 * resumer (assembly.h), or find by an undefined LR the end of the stack. A signal frame, as in x86_64.h. A cancellation that was
 * caught and thrown again lands at aco__cancel_landing (end.c). */
__asm__(ACO__ASM_OUTERMOST
        "\t.cfi_undefined lr\n"
        "\tnop\n"
        ACO__ASM_INSIDE("aco__unlinked_returned")
        "\ttrap\n"
        "\t.cfi_signal_frame\n"
        "\t.cfi_remember_state\n"
        ACO__ASM_LINK("1", "32", "65", "31", "30")
        "\tnop\n"
        ACO__ASM_INSIDE("aco__returned")
        ACO__ASM_FIND_TOC
        "\tbl aco__entry_returned\n"
        "\tnop\n"
        "\ttrap\n"
        "\t.cfi_restore_state\n"
        ACO__ASM_INSIDE("aco__cancel_landing") /* r3: the exception; the word at top-16 stays as it is */
        ACO__ASM_FIND_TOC
        "\tstdu 1,-32(1)\n"
        "\t.cfi_def_cfa_offset 32\n"
        "\tbl aco__cancel_landed\n"
        "\tnop\n"
        "\ttrap\n"
        ACO__ASM_END("aco__outermost"));

#define ACO__ASM_LOCAL_ENTRY(name) ACO__ASM_TOC(name) "\t.localentry " name ",.-" name "\n"
/* The first arrivals, r3 the block, r12 their address: of aco_new() and of aco_create(). An entry function returns to what stands
 * where it will save it. */
__asm__(ACO__ASM_BEGIN("aco__begin")
        "\t.cfi_offset lr,16\n"
        "\tld 0,16(1)\n"
        "\tmtlr 0\n"
        ACO__ASM_TOC("aco__begin")
        "\taddis 12,2,aco__begun@toc@ha\n"
        "\taddi 12,12,aco__begun@toc@l\n"
        "\tmtctr 12\n"
        "\tbctr\n"
        ACO__ASM_END("aco__begin"));
__asm__(ACO__ASM_HIDE("aco__begin_entry")
        ACO__ASM_BEGIN("aco__begin_entry")
        "\t.cfi_offset lr,16\n"
        "\tld 0,16(1)\n"
        "\tmtlr 0\n"
        "\tld 12,56(3)\n" /* fp */
        "\tmtctr 12\n"
        "\tbctr\n"
        ACO__ASM_END("aco__begin_entry"));

/* The first arrival in a generator; what it finds stands at ACO__GENERATOR_PARAMETERS. */
__asm__(ACO__ASM_BEGIN("aco__generator_begin")
        "\t.cfi_undefined lr\n"
        "\tld 12,0(1)\n"
        "\tmtctr 12\n"
        "\tld 0,8(1)\n"
        "\tmtlr 0\n"
        "\tld 8,16(1)\n"
        "\taddi 1,1,32\n"
        "\tbctr\n"
        ACO__ASM_END("aco__generator_begin"));

/* The exported aco_defer(): its caller's frame begins at r1. */
#define ACO__DEFER_ELSEWHERE
__asm__(ACO__ASM_BEGIN("aco_defer")
        ACO__ASM_LOCAL_ENTRY("aco_defer")
        "\tmflr 0\n"
        "\tstd 0,16(1)\n"
        "\tmr 5,1\n"
        "\tstdu 1,-32(1)\n"
        "\t.cfi_def_cfa_offset 32\n"
        "\t.cfi_offset lr,16\n"
        "\tbl aco__defer\n"
        "\tnop\n"
        "\taddi 1,1,32\n"
        "\t.cfi_def_cfa_offset 0\n"
        "\tld 0,16(1)\n"
        "\tmtlr 0\n"
        "\t.cfi_restore lr\n"
        "\tblr\n"
        ACO__ASM_END("aco_defer"));
