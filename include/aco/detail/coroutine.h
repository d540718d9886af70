/* The data that a switch stores and loads: its layout, and the offsets by which assembly finds it, in include/aco/arch/
 * and in src/coroutine/entry/. Also the status byte of a control block. Nothing here needs the complete types; fields.h
 * does. */
#ifndef ACO_DETAIL_COROUTINE_H
#define ACO_DETAIL_COROUTINE_H

#include "config.h"

/* Where a side that is not running goes on. The first member of a control block and of a thread record. */
typedef struct aco__context {
    void *sp;   /* stack pointer */
    void *pc;   /* resume address */
    void *bp;   /* frame pointer: compilers reject it as a clobber */
    void *base; /* base pointer of over-aligned frames: some compilers generate wrong code if it is a clobber */
} aco__context_t;

/* The C++ run time's record of a thread's exceptions (Itanium C++ ABI: Exception Handling, 2.2.2): those that catch
 * blocks are handling, as a list, and the number of those on their way to a handler. */
typedef struct aco__exceptions {
    void *caught;
    unsigned uncaught;
#ifdef __arm__
    void *propagating;
#endif
} aco__exceptions_t;

typedef struct aco__thread aco__thread_t; /* thread.h */
typedef uintptr_t aco__tls_ref_t;         /* tells a switch where the thread's record is: thread.h */

/* ---- Offsets for assembly, in bytes: with 64-bit pointers, with 32-bit pointers. fields.h asserts them ---- */
#if __SIZEOF_POINTER__ == 8
#define ACO__OFFSET(bits64, bits32) bits64
#else
#define ACO__OFFSET(bits64, bits32) bits32
#endif
/* In a control block and in a thread record. */
#define ACO__SP ACO__OFFSET(0, 0)
#define ACO__PC ACO__OFFSET(8, 4)
#define ACO__BP ACO__OFFSET(16, 8)
#define ACO__BASE ACO__OFFSET(24, 12)
#define ACO__FP_CONTROL ACO__OFFSET(32, 16)
#define ACO__FP_CONTROL2 ACO__OFFSET(36, 20)
/* In a control block. */
#define ACO__STATE_BYTE ACO__OFFSET(38, 22)
#define ACO__ENTRY ACO__OFFSET(56, 32) /* `fp` */
/* In a thread record. */
#define ACO__LOAD_ALWAYS ACO__OFFSET(38, 22)
#define ACO__RUNNING ACO__OFFSET(40, 24)
#define ACO__UNWIND_PARENT ACO__OFFSET(112, 68)
#define ACO__EXCEPTIONS ACO__OFFSET(120, 72)
/* In a stack's record. */
#define ACO__STACK_OWNER ACO__OFFSET(16, 8)
#define ACO__STACK_OWNER_THREAD ACO__OFFSET(56, 28)
#define ACO__STACK_RESUMER_CONTEXT ACO__OFFSET(64, 32)

/* ---- aco_t.aco__state: the low half says why a resume needs the slow path, the high half how the coroutine was made
 * ---- */
enum {
    ACO__SUSPENDED = 0,      /* its frames are on its stack; or it is running; or never resumed, on a private stack */
    ACO__READY = 1,          /* it was never resumed, and it is on a share stack */
    ACO__SAVED = 2,          /* it has yielded, and its frames are in the save area */
    ACO__ENDED = 3,
    ACO__MAIN = 4,           /* a main coroutine object; with ACO__PRIVATE, a task */
    ACO__DESTROYED = 5,      /* visible until the memory is used again */
    ACO__RESUMING = 6,       /* it waits for a coroutine that it resumed, and its frames are on its stack */
    ACO__RESUMING_SAVED = 7, /* the same, and its frames are in the save area */
    ACO__STATUS = 0x07,
    ACO__INSTRUMENTED = 0x08, /* its switches must be reported: each resume and transfer takes the slow path */
    ACO__FAST_MASK = ACO__STATUS | ACO__INSTRUMENTED, /* all 0: the fast path may resume it */
    ACO__HAS_COLD = 0x10,    /* it has an aco__cold_t with something in it */
    ACO__PRIVATE = 0x20,     /* its stack is its own and holds its aco__cold_t; the control block ends after `fp` */
    ACO__FROM_NEW = 0x40,    /* aco_new() made it */
    ACO__SHARES_FP = 0x80,   /* it has no floating-point environment of its own; assembly tests the byte's sign */
    ACO__PLAIN = ACO__FROM_NEW | ACO__PRIVATE | ACO__SHARES_FP, /* what aco_new() without options makes, suspended */
    ACO__TASK = ACO__MAIN | ACO__PRIVATE, /* a task that has not ended: no main coroutine object is private */
    ACO__TASK_MASK = ACO__STATUS | ACO__PRIVATE
};

enum {
    ACO__MOST_CACHED = 64,
    ACO__SLAB = 2 << 20 /* bytes and alignment of a slab; it begins with the address of its heap */
};

#endif
