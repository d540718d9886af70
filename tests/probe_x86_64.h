/* x86-64, System V ABI. Contract: probe.h. */
#define ASSEMBLY "probe_x86_64.S"
#define WORD 8
#define REGISTERS 6
#define FIXED 2

#ifndef __ASSEMBLER__
static const char *const register_names[] = {"rbx", "rbp", "r12", "r13", "r14", "r15"};
static const char *const fixed_names[] = {"rsp", "thread pointer"};
#define READ_STACK_POINTER "movq %%rsp,%0"
#define READ_FLAGS "leaq -128(%%rsp),%%rsp\n\tpushfq\n\tpopq %0\n\tleaq 128(%%rsp),%%rsp" /* the red zone stays */
#define HELD "rbx"
#define STACK_ALIGNMENT 16
#define ENTRY_MODULUS 8
#endif

#include "probe_x86.h"
