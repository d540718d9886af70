/* Control blocks: made, resumed for the first time, ended, destroyed. The switch itself is inline, in include/aco/. */
/* This unit defines the calls on the fast path as exported functions too, for languages that cannot use the header: the
 * bodies are the header's, or assembly where src/arch/ has a faster one. They serve coroutines with and without a
 * floating-point environment of their own. */
#define ACO__FAST ACO_API
#define ACO__OWN_FP(co) own_fp(co)
struct aco_s;
static inline int own_fp(const struct aco_s *co);

#ifdef __x86_64__
#include "arch/x86_64.h"
#else
#include "arch/i386.h"
#endif
#include "internal.h"

#include <errno.h>
#include <string.h>

static inline int own_fp(const struct aco_s *co)
{
    return !co || !(co->aco__state & ACO__SHARES_FP);
}

/* The assembly names it, where link-time optimisation does not look. */
#define ACO__NAMED_BY_ASSEMBLY __attribute__((used))

ACO__NAMED_BY_ASSEMBLY ACO_API __thread aco__thread_t aco__thread __attribute__((tls_model("initial-exec")));

#define OFFSET_IS(type, field, words, bytes)                                                                           \
    _Static_assert(offsetof(type, field) == (words) * sizeof(void *) + (bytes), "offset of " #field)
#define OFFSETS_ARE(type, context, control, control2)                                                                  \
    OFFSET_IS(type, context.sp, 0, 0);                                                                                 \
    OFFSET_IS(type, context.pc, 1, 0);                                                                                 \
    OFFSET_IS(type, context.bp, 2, 0);                                                                                 \
    OFFSET_IS(type, context.base, 3, 0);                                                                               \
    OFFSET_IS(type, control, 4, 0);                                                                                    \
    OFFSET_IS(type, control2, 4, 4)
OFFSETS_ARE(aco_t, aco__self, aco__fp_control, aco__fp_control2);
OFFSETS_ARE(aco__thread_t, resumer, fp_control, fp_control2);
OFFSET_IS(aco__thread_t, fp_load_always, 4, 6);
OFFSET_IS(aco__thread_t, running, 4, 8);
OFFSET_IS(aco_t, aco__state, 4, 6);
_Static_assert(sizeof(aco_t) == 14 * sizeof(void *) + 8, "block and 152 saved bytes make 272");

enum {
    DEFAULT_SAVE = 64,
    MAX_INSIDE = 2048 /* a larger save area is not kept behind the block */
};

/* ---- Threads ---- */

/* fp_load_always: 1 where ldmxcsr is cheaper than waiting for stmxcsr's result, as measured on AMD's Zen 5
 * (bench/lab/switch-check.c); -1 on an i386 processor without SSE. */
static int8_t fp_load_always(void)
{
    static int8_t known = 2;
    int8_t answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == 2) {
        __builtin_cpu_init();
        answer = !__builtin_cpu_supports("sse") ? -1 : __builtin_cpu_is("amd") && __builtin_cpu_supports("avx2");
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer;
}

static void read_new_environment(aco__thread_t *self)
{
    aco__fp_read(&self->new_fp_control, &self->new_fp_control2);
    self->new_fp_control &= ~(uint32_t)ACO__FP_STATUS;
}

static aco__thread_t *ready(void)
{
    aco__thread_t *self = aco__self();
    if (aco_unlikely(!self->ready)) {
        self->fp_load_always = fp_load_always();
        read_new_environment(self);
        self->ready = 1;
    }
    return self;
}

void aco_thread_init(aco_cofuncp_t last_word)
{
    aco__thread_t *self = ready();
    read_new_environment(self);
    self->last_word = last_word;
}

/* ---- Making and freeing ---- */

/* The block's fields for a start from the beginning. */
static void prepare(aco_t *co, aco_cofuncp_t fp, void *arg)
{
    aco__thread_t *self = ready();
    memcpy(&co->aco__self.pc, &fp, sizeof fp);
    co->aco__self.sp = co->share_stack->aco__top;
    co->aco__self.bp = NULL; /* ends the chain of frame pointers */
    co->aco__fp_control = self->new_fp_control;
    co->aco__fp_control2 = self->new_fp_control2;
    co->fp = fp;
    co->arg = arg;
    co->is_end = 0;
    co->save_stack.valid_sz = 0;
    aco__set_state(co, ACO__READY);
}

static aco_t *main_new(void *arg)
{
    size_t room = sizeof(aco_t);
    aco__thread_t *self = ready();
    aco_t *co = aco__memory_new(&room);
    if (!co)
        aco__die_of_memory("aco_create", sizeof(aco_t));
    memset(co, 0, sizeof *co);
    co->aco__self.base = self; /* the thread that may resume its coroutines */
    co->aco__state = ACO__MAIN;
    co->arg = arg;
    self->main_co = co;
    return co;
}

/* Block and save area, the area inside the block's memory unless it is large. */
static aco_t *block_new(size_t save_sz)
{
    size_t inside = save_sz <= MAX_INSIDE ? save_sz : 0, room = sizeof(aco_t) + inside;
    aco_t *co = aco__memory_new(&room);
    if (!co)
        aco__die_of_memory("aco_create", sizeof(aco_t) + save_sz);
    memset(co, 0, sizeof *co);
    co->save_stack.ptr = co + 1;
    co->save_stack.sz = room - sizeof(aco_t);
    if (save_sz > MAX_INSIDE) {
        co->save_stack.sz = save_sz;
        co->save_stack.ptr = aco__memory_new(&co->save_stack.sz);
        if (!co->save_stack.ptr)
            aco__die_of_memory("aco_create", save_sz);
    }
    return co;
}

void aco__block_free(aco_t *co)
{
    aco__set_state(co, ACO__GONE);
    if (aco__area_is_inside(co)) {
        aco__memory_free(co, sizeof(aco_t) + co->save_stack.sz);
    } else {
        if (co->save_stack.ptr)
            aco__memory_free(co->save_stack.ptr, co->save_stack.sz);
        aco__memory_free(co, sizeof(aco_t));
    }
}

aco_t *aco__create(aco_t *main_co, aco_share_stack_t *stack, size_t save_sz, aco_cofuncp_t fp, void *arg, int own_fp)
{
    aco_t *co;
    if (!main_co && !stack && !fp)
        return main_new(arg);
    if (!main_co || !stack || !fp)
        aco__die("aco_create", NULL, "%s is NULL", !main_co ? "main_co" : !stack ? "share_stack" : "the entry function");
    if (aco__state(main_co) != ACO__MAIN)
        aco__die("aco_create", main_co, "is given as main_co, but is not a main coroutine");
    co = block_new(save_sz ? save_sz : DEFAULT_SAVE);
    co->main_co = main_co;
    co->share_stack = stack;
    co->aco__state = own_fp ? 0 : ACO__SHARES_FP;
    prepare(co, fp, arg);
    return co;
}

void aco_reset(aco_t *co, aco_cofuncp_t fp, void *arg)
{
    if (!co || !fp)
        aco__die("aco_reset", co, "%s is NULL", co ? "the entry function" : "the coroutine");
    if (aco__state(co) != ACO__ENDED && aco__state(co) != ACO__READY)
        aco__die("aco_reset", co, aco__state(co) == ACO__MAIN ? "is a main coroutine" : "has not ended");
    prepare(co, fp, arg);
}

void aco_destroy(aco_t *co)
{
    if (!co)
        aco__die("aco_destroy", NULL, "the coroutine is NULL");
    if (co == aco__running())
        aco__die("aco_destroy", co, "is running");
    if (aco__state(co) == ACO__GONE)
        aco__die("aco_destroy", co, "was destroyed before");
    switch (aco__state(co)) {
    case ACO__SUSPENDED:
    case ACO__SAVED:
        aco__stack_forget(co);
        break;
    case ACO__MAIN:
        if (aco__self()->main_co == co)
            aco__self()->main_co = NULL;
        /* fall through */
    default:
        aco__block_free(co);
    }
}

/* ---- Off the fast path ---- */

/* Why `co` cannot be resumed now; returns when nothing speaks against it. */
ACO__COLD static void refuse(const aco_t *co, const aco_t *running)
{
    if (!co)
        aco__die("aco_resume", NULL, "the coroutine is NULL");
    if (co == running)
        aco__die("aco_resume", co, "is running");
    if (running)
        aco__die("aco_resume", co, "cannot be resumed by coroutine %p, only by its main coroutine", (void *)running);
    if (aco__state(co) == ACO__ENDED)
        aco__die("aco_resume", co, "has ended");
    if (aco__state(co) == ACO__GONE)
        aco__die("aco_resume", co, "was destroyed");
    if (aco__state(co) == ACO__MAIN)
        aco__die("aco_resume", co, "is a main coroutine");
    if (co->main_co->aco__self.base != (void *)aco__self())
        aco__die("aco_resume", co, "belongs to another thread");
}

ACO__NAMED_BY_ASSEMBLY void aco__resume_slow(aco_t *co)
{
    aco_t *running = aco__running();
    if (aco_unlikely(!co || running || aco__state(co) != ACO__SAVED))
        refuse(co, running);
    if (aco__state(co) != ACO__SUSPENDED)
        aco__stack_take(co);
}

static void check_mixing(const char *call, const aco_t *co, int own_fp)
{
    if (own_fp == !(co->aco__state & ACO__SHARES_FP))
        return;
    aco__die(call, co, "was made by code compiled %s ACO_CONFIG_SHARE_FPU_MXCSR_ENV, this code is compiled %s it",
             own_fp ? "with" : "without", own_fp ? "without" : "with");
}

void aco__resume_check(aco_t *co, int own_fp)
{
    aco__resume_slow(co);
    check_mixing("aco_resume", co, own_fp);
}

void aco__yield_check(aco_t *co, int own_fp)
{
    char here;
    if (!co || co != aco__running())
        aco__die("aco_yield1", co, "is not running");
    check_mixing("aco_yield", co, own_fp);
    aco__stack_check_overflow("aco_yield", co->share_stack);
    if (&here < (char *)co->share_stack->ptr)
        aco__die("aco_yield", co, "its share stack of %zu bytes has overflowed", co->share_stack->sz);
}

ACO__NAMED_BY_ASSEMBLY void aco__arrived(uintptr_t mark)
{
    aco__die("arrival", (void *)(mark & ~(uintptr_t)1), "an arrival mark without an event");
}

ACO__NAMED_BY_ASSEMBLY void aco__nobody_runs(const char *call)
{
    aco__die(call, NULL, aco__running() ? "the coroutine is NULL" : "no coroutine is running");
}

/* ---- Ending ---- */

/* Brings back the resumer's control words; its status is touched only where they differ, as in the switch. */
static void load_resumer_environment(void)
{
    aco__thread_t *self = aco__self();
    uint32_t control;
    uint16_t control2;
    aco__fp_read(&control, &control2);
    if (((control ^ self->fp_control) & ~(uint32_t)ACO__FP_STATUS) != 0 || control2 != self->fp_control2)
        aco__fp_load(&self->fp_control, &self->fp_control2);
}

__attribute__((noreturn)) static void end(aco_t *co)
{
    co->is_end = 1;
    aco__set_state(co, ACO__ENDED);
    aco__stack_leave(co);
    if (own_fp(co))
        load_resumer_environment();
    aco__switch_exit(co);
}

void aco_exit1(aco_t *co)
{
    if (!co || co != aco__running())
        aco__die("aco_exit1", co, co ? "is not running" : "the coroutine is NULL");
    end(co);
}

void aco_exit(void)
{
    aco_t *co = aco__running();
    if (!co)
        aco__nobody_runs("aco_exit");
    end(co);
}

void aco__entry_returned(void)
{
    aco_cofuncp_t last_word = aco__self()->last_word;
    if (last_word) {
        last_word();
        abort();
    }
    aco__die("aco_exit", aco__running(), "its entry function returned without calling aco_exit()");
}
