/* x86-64, Microsoft ABI. Contract: probe.h. */
#define ASSEMBLY "probe_x86_64_windows.S"
#define WORD 8
#define REGISTERS 28
#define FIXED 6

#ifndef __ASSEMBLER__
#define TWO(name) name, name
static const char *const register_names[] = {
    "rbx", "rbp", "rdi", "rsi", "r12", "r13", "r14", "r15",
    TWO("xmm6"), TWO("xmm7"), TWO("xmm8"), TWO("xmm9"), TWO("xmm10"),
    TWO("xmm11"), TWO("xmm12"), TWO("xmm13"), TWO("xmm14"), TWO("xmm15"),
};
static const char *const fixed_names[] = {"rsp",        "gs:0x30",           "StackBase",
                                          "StackLimit", "DeallocationStack", "ExceptionList"};
#define READ_STACK_POINTER "movq %%rsp,%0"
#define READ_FLAGS "pushfq\n\tpopq %0"
#define HELD "rbx"
#define STACK_ALIGNMENT 16
#define ENTRY_MODULUS 8
#define ENTRY_DEPTH 48 /* called by the first arrival, whose frame the system's unwinder finds */

/* The system moves the thread's own StackLimit as that stack grows: it has grown before anything is compared. */
#define SETTLE
static __attribute__((noinline)) void settle(void)
{
    volatile char deep[256 << 10];
    for (size_t i = sizeof deep; i >= 4096; i -= 4096)
        deep[i - 1] = 0;
}
#endif

#include "probe_x86.h"
