/* i386, System V ABI. Contract: probe.h. */
#define ASSEMBLY "probe_i386.S"
#define WORD 4
#define REGISTERS 4
#define FIXED 2

#ifndef __ASSEMBLER__
static const char *const register_names[] = {"ebx", "ebp", "esi", "edi"};
static const char *const fixed_names[] = {"esp", "gs:0"};
#define READ_STACK_POINTER "movl %%esp,%0"
#define ARGUMENTS_ARE_PUSHED /* compilers may leave those of a call for later */
#define READ_FLAGS "pushfl\n\tpopl %0"
#define HELD "esi" /* ebx may be the PIC register */
#define STACK_ALIGNMENT 16
#define ENTRY_MODULUS 12
#endif

#include "probe_x86.h"
