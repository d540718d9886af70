/* Copying and memory as many libraries do it: the classic switch, with the control block and the save area as two
 * blocks from malloc. When another coroutine needs the share stack, the bytes of the outgoing coroutine are copied out
 * and those of the incoming one are copied in. memory.h has the measurements; with MEMORY_SCALE, memory_scale.h has
 * them.
 *
 * Coroutines with their own floating-point environment save MXCSR and the x87 control word with the registers. The
 * switch always loads MXCSR: loading an unchanged value is cheap, on some processors cheaper than to compare
 * (lab/switch-check.c). It loads the x87 control word only where that differs. */
#include "bench.h"

#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
enum { FRAME_WORDS = 6 };
#else
#define CLASSIC_SAVE                                                                                                   \
    "\tsubq $8,%rsp\n"                                                                                                 \
    "\tstmxcsr (%rsp)\n"                                                                                               \
    "\tfnstcw 4(%rsp)\n"                                                                                               \
    "\tmovzwl 4(%rsp),%edx\n"
#define CLASSIC_LOAD                                                                                                   \
    "\tldmxcsr (%rsp)\n"                                                                                               \
    "\tcmpw 4(%rsp),%dx\n"                                                                                             \
    "\tjne 2f\n"                                                                                                       \
    "3:\taddq $8,%rsp\n"
#define CLASSIC_COLD                                                                                                   \
    "2:\tfnclex\n"                                                                                                     \
    "\tfldcw 4(%rsp)\n"                                                                                                \
    "\tjmp 3b\n"
enum { FRAME_WORDS = 7 };
#endif
#include "peers/classic_switch.h"

#ifndef IMPL
#define IMPL "malloc_blocks"
#endif

typedef struct co {
    void *sp;
    char is_end, started;
    void (*entry)(void);
    uintptr_t arg;
    struct stack *stack;
    struct {
        void *ptr;
        size_t sz, valid_sz, max_cpsz, ct_save, ct_restore;
    } save;
} co_t;

typedef struct stack {
    char *low, *top;
    co_t *owner;
} share_stack_t;

enum { STACK = 64 << 10, DEFAULT_SAVE = 64 };

static share_stack_t share_stack;
static void *main_sp;
static co_t *running;

static void co_prepare(void)
{
    share_stack.low = bench_map(STACK);
    share_stack.top = share_stack.low + STACK;
}

static co_t *co_new(size_t save_sz, void (*entry)(void), size_t tag)
{
    co_t *co = bench_alloc(sizeof *co);
    memset(co, 0, sizeof *co);
    co->entry = entry;
    co->arg = tag;
    co->stack = &share_stack;
    co->save.sz = save_sz ? save_sz : DEFAULT_SAVE;
    co->save.ptr = bench_alloc(co->save.sz);
    return co;
}

static void first_frame(co_t *co)
{
    void **sp = (void **)(void *)co->stack->top;
    *--sp = NULL; /* the entry function's return address */
    *--sp = (void *)(uintptr_t)co->entry;
    sp -= FRAME_WORDS;
    memset(sp, 0, FRAME_WORDS * sizeof *sp);
#ifndef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(*(uint32_t *)(void *)sp), "=m"(((uint16_t *)(void *)sp)[2]));
#endif
    co->sp = sp;
    co->started = 1;
}

static void save(co_t *co)
{
    size_t sz = (size_t)(co->stack->top - (char *)co->sp);
    if (sz > co->save.sz) {
        do
            co->save.sz *= 2;
        while (sz > co->save.sz);
        free(co->save.ptr);
        co->save.ptr = bench_alloc(co->save.sz);
    }
    memcpy(co->save.ptr, co->sp, sz);
    co->save.valid_sz = sz;
    co->save.ct_save++;
    if (sz > co->save.max_cpsz)
        co->save.max_cpsz = sz;
}

static void restore(co_t *co)
{
    size_t sz = co->save.valid_sz;
    memcpy(co->sp, co->save.ptr, sz);
    co->save.valid_sz = 0;
    co->save.ct_restore++;
    if (sz > co->save.max_cpsz)
        co->save.max_cpsz = sz;
}

static __attribute__((noinline)) void own_stack(co_t *co)
{
    if (co->stack->owner)
        save(co->stack->owner);
    co->stack->owner = co;
    if (co->started)
        restore(co);
    else
        first_frame(co);
}

BENCH_INLINE void co_resume(co_t *co)
{
    if (co->is_end)
        abort();
    if (co->stack->owner != co)
        own_stack(co);
    running = co;
    classic_switch(&main_sp, co->sp);
}

BENCH_INLINE size_t co_copied(const co_t *co)
{
    return co->save.max_cpsz;
}

static void co_destroy(co_t *co)
{
    if (co->stack->owner == co)
        co->stack->owner = NULL;
    free(co->save.ptr);
    free(co);
}

BENCH_INLINE uint64_t copying_tag(void)
{
    return running->arg;
}

BENCH_INLINE void copying_yield(void)
{
    classic_switch(&running->sp, main_sp);
}

#ifdef MEMORY_SCALE
#include "memory_scale.h"
#else
#include "memory.h"
#endif
