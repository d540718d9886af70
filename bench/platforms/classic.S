/* void classic_switch(void **from, void *to): saves every callee-saved register on the stack, stores the stack pointer
 * in *from, loads `to` and returns there through the saved return address. Many coroutine libraries switch so; this one
 * is written for tools/platforms/count.py only. No floating-point control words, no unwind tables.
 *
 * `to` of a new coroutine is classic_frame bytes below the top of its stack, with the alignment that the ABI asks for.
 * The return address is classic_return bytes above `to`. */

#define FRAME_IS(frame, return_at)                                                                                     \
    .section .rodata; .p2align 2; .globl classic_frame, classic_return;                                                \
    classic_frame: .long frame; classic_return: .long return_at

    .text
    .globl classic_switch
    .p2align 4
    .type classic_switch, %function
#if defined(__x86_64__)
classic_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
FRAME_IS(64, 48)

#elif defined(__i386__)
classic_switch:
    movl 4(%esp), %eax
    movl 8(%esp), %edx
    pushl %ebp
    pushl %ebx
    pushl %esi
    pushl %edi
    movl %esp, (%eax)
    movl %edx, %esp
    popl %edi
    popl %esi
    popl %ebx
    popl %ebp
    ret
FRAME_IS(24, 16)

#elif defined(__aarch64__)
classic_switch:
    stp x29, x30, [sp, #-160]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #160
    ret
FRAME_IS(160, 8)

#elif defined(__arm__)
    .syntax unified
    .arm
    .fpu vfpv3-d16
classic_switch:
    push {r4-r11, lr}
    vpush {d8-d15}
    str sp, [r0]
    mov sp, r1
    vpop {d8-d15}
    pop {r4-r11, pc}
FRAME_IS(100, 96)

#elif defined(__riscv)
classic_switch:
    addi sp, sp, -208
    sd ra, 0(sp)
#define EACH(op, fop)                                                                                                  \
    op s0, 8(sp); op s1, 16(sp); op s2, 24(sp); op s3, 32(sp); op s4, 40(sp); op s5, 48(sp); op s6, 56(sp);            \
    op s7, 64(sp);                                                                                                     \
    op s8, 72(sp); op s9, 80(sp); op s10, 88(sp); op s11, 96(sp);                                                      \
    fop fs0, 104(sp); fop fs1, 112(sp); fop fs2, 120(sp); fop fs3, 128(sp); fop fs4, 136(sp); fop fs5, 144(sp);        \
    fop fs6, 152(sp); fop fs7, 160(sp); fop fs8, 168(sp); fop fs9, 176(sp); fop fs10, 184(sp); fop fs11, 192(sp)
    EACH(sd, fsd)
    sd sp, 0(a0)
    mv sp, a1
    ld ra, 0(sp)
    EACH(ld, fld)
    addi sp, sp, 208
    ret
FRAME_IS(208, 0)

#elif defined(__loongarch__)
classic_switch:
    addi.d $sp, $sp, -160
    st.d $ra, $sp, 0
#define EACH(op, fop)                                                                                                  \
    op $fp, $sp, 8; op $s0, $sp, 16; op $s1, $sp, 24; op $s2, $sp, 32; op $s3, $sp, 40; op $s4, $sp, 48;               \
    op $s5, $sp, 56;                                                                                                   \
    op $s6, $sp, 64; op $s7, $sp, 72; op $s8, $sp, 80;                                                                 \
    fop $fs0, $sp, 88; fop $fs1, $sp, 96; fop $fs2, $sp, 104; fop $fs3, $sp, 112; fop $fs4, $sp, 120;                  \
    fop $fs5, $sp, 128;                                                                                                \
    fop $fs6, $sp, 136; fop $fs7, $sp, 144
    EACH(st.d, fst.d)
    st.d $sp, $a0, 0
    move $sp, $a1
    ld.d $ra, $sp, 0
    EACH(ld.d, fld.d)
    addi.d $sp, $sp, 160
    ret
FRAME_IS(160, 0)

#elif defined(__powerpc64__)
/* The caller's linkage area holds r2, the condition register and the return address. v20 to v31 are callee-saved
 * too. */
    .abiversion 2
classic_switch:
    mflr 0
    std 0, 16(1)
    mfcr 0
    stw 0, 8(1)
    std 2, 24(1)
#define EACH(op, fop)                                                                                                  \
    op 14, -8(1); op 15, -16(1); op 16, -24(1); op 17, -32(1); op 18, -40(1); op 19, -48(1); op 20, -56(1);            \
    op 21, -64(1);                                                                                                     \
    op 22, -72(1); op 23, -80(1); op 24, -88(1); op 25, -96(1); op 26, -104(1); op 27, -112(1); op 28, -120(1);        \
    op 29, -128(1); op 30, -136(1); op 31, -144(1);                                                                    \
    fop 14, -152(1); fop 15, -160(1); fop 16, -168(1); fop 17, -176(1); fop 18, -184(1); fop 19, -192(1);              \
    fop 20, -200(1);                                                                                                   \
    fop 21, -208(1); fop 22, -216(1); fop 23, -224(1); fop 24, -232(1); fop 25, -240(1); fop 26, -248(1);              \
    fop 27, -256(1);                                                                                                   \
    fop 28, -264(1); fop 29, -272(1); fop 30, -280(1); fop 31, -288(1)
    EACH(std, stfd)
    addi 1, 1, -512
    li 0, 0
    std 0, 0(1)
#define VECTOR(op, n, at) li 11, at; op n, 11, 1
#define VECTORS(op)                                                                                                    \
    VECTOR(op, 20, 0x20); VECTOR(op, 21, 0x30); VECTOR(op, 22, 0x40); VECTOR(op, 23, 0x50); VECTOR(op, 24, 0x60);      \
    VECTOR(op, 25, 0x70); VECTOR(op, 26, 0x80); VECTOR(op, 27, 0x90); VECTOR(op, 28, 0xa0); VECTOR(op, 29, 0xb0);      \
    VECTOR(op, 30, 0xc0); VECTOR(op, 31, 0xd0)
    VECTORS(stvx)
    std 1, 0(3)
    mr 1, 4
    VECTORS(lvx)
    addi 1, 1, 512
    EACH(ld, lfd)
    ld 2, 24(1)
    lwz 0, 8(1)
    mtcrf 0x38, 0
    ld 0, 16(1)
    mtlr 0
    mr 12, 0
    blr
FRAME_IS(512, 528)

#elif defined(__s390x__)
classic_switch:
    stmg %r6, %r15, 48(%r15)
    aghi %r15, -224
    std %f8, 160(%r15)
    std %f9, 168(%r15)
    std %f10, 176(%r15)
    std %f11, 184(%r15)
    std %f12, 192(%r15)
    std %f13, 200(%r15)
    std %f14, 208(%r15)
    std %f15, 216(%r15)
    stg %r15, 0(%r2)
    lgr %r15, %r3
    ld %f8, 160(%r15)
    ld %f9, 168(%r15)
    ld %f10, 176(%r15)
    ld %f11, 184(%r15)
    ld %f12, 192(%r15)
    ld %f13, 200(%r15)
    ld %f14, 208(%r15)
    ld %f15, 216(%r15)
    aghi %r15, 224
    lmg %r6, %r14, 48(%r15)
    br %r14
FRAME_IS(224, 336)
#else
#error "no classic switch for this architecture"
#endif
    .section .note.GNU-stack, "", %progbits
