/* Control blocks: made, resumed off the fast path, ended, destroyed. The switch itself is inline, in include/aco/. */
#if defined(ACO_CONFIG_UCONTEXT) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* the names of a ucontext_t's registers */
#endif

#include "os/os.h"
#include "hooks/shadow_stack.h"
#include "scheduler/task.h"
#include "hooks/trace.h"
#include "entry/exported.h"
/* What x86-64 and i386 share is included before them: tools/amalgamate.sh expands a file once. */
#if (defined(__x86_64__) || defined(__i386__)) && !defined(ACO_CONFIG_UCONTEXT)
#include "entry/x86.inc"
#endif
#if defined(ACO_CONFIG_UCONTEXT)
#include "entry/ucontext.c"
#elif defined(__x86_64__)
#include "entry/x86_64.inc"
#elif defined(__i386__)
#include "entry/i386.inc"
#elif defined(__aarch64__)
#include "entry/aarch64.inc"
#elif defined(__riscv)
#include "entry/riscv.inc"
#elif defined(__arm__)
#include "entry/arm.inc"
#elif defined(__powerpc64__)
#include "entry/ppc64le.inc"
#elif defined(__s390x__)
#include "entry/s390x.inc"
#elif defined(__loongarch64)
#include "entry/loongarch64.inc"
#endif

#include <errno.h>
#include <string.h>

static inline int own_fp(const aco_t *co)
{
    return !(co->aco__state & ACO__SHARES_FP);
}

/* The assembly names it, where link-time optimisation does not look. */
#define ACO__NAMED_BY_ASSEMBLY __attribute__((used))

#if defined(ACO__THREAD_FOUND)
static __thread aco__thread_t thread;

__attribute__((noinline)) aco__thread_t *aco__thread_found(void)
{
    __asm__ volatile("");
    return &thread;
}
#elif defined(ACO__THREAD_TLS)
ACO__NAMED_BY_ASSEMBLY ACO_API __thread aco__thread_t aco__thread __attribute__((tls_model("initial-exec")));
#endif

static const char is_a_task[] = "is a task of the scheduler";

enum {
    DEFAULT_SAVE = 64,
    MAX_INSIDE = 2048 /* a larger save area is not kept behind the block */
};

/* ---- Threads ---- */

uint32_t *aco__lock_word(void)
{
    return &aco__self()->lock;
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
#ifdef ACO__HAS_FP_LOAD_ALWAYS
        self->fp_load_always = fp_load_always();
#endif
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

/* ---- What few threads need ---- */

enum { SCRATCH_SIZE = 64 << 10 };

static aco__arrival_t on_scratch, restore_trampoline, trapped;

aco__scratch_t *aco__scratch(void)
{
    aco__thread_t *self = aco__self();
    size_t page = aco__os_page_size();
    aco__scratch_t *scratch = self->scratch;
    char *map, *top;
    if (aco_likely(scratch != NULL))
        return scratch;
    map = aco__map(page + SCRATCH_SIZE + aco__round_up(sizeof *scratch, page));
    if (!map)
        return NULL;
    aco__os_guard(map, page); /* nothing deep runs there; without a guard it runs all the same */
    scratch = (aco__scratch_t *)(void *)(map + page + SCRATCH_SIZE);
    top = (char *)scratch - ACO__ENTRY_BELOW_TOP;
    ((const void **)(void *)top)[ACO__RETURN_WORD] = aco__returned_without_parent;
#ifdef ACO__ARRIVES_IN_ASSEMBLY
    scratch->stack.ptr = map + page;
#endif
    aco__begin_in(&scratch->runner.aco__self, top, on_scratch); /* the stack is nobody's between switches: each starts at its top */
    aco__begin_in(&scratch->trap.aco__self, top, trapped);
    aco__begin_in(&scratch->restore_trampoline, top, restore_trampoline);
    scratch->runner.aco__state = scratch->trap.aco__state = ACO__SHARES_FP;
    aco__fp_read(&scratch->trap.aco__fp_control, &scratch->trap.aco__fp_control2);
    self->scratch = scratch;
    aco__instrument_region_new(scratch, sizeof *scratch);
    scratch->registered = aco__register_stack(map + page, scratch);
    aco__thread_will_end();
    return scratch;
}

static void scratch_thread_ends(void)
{
    aco__thread_t *self = aco__self();
    aco__scratch_t *scratch = self->scratch;
    size_t page = aco__os_page_size();
    if (!scratch)
        return;
    if (scratch->has_root_cold) {
        aco__values_destroy(&scratch->root_cold);
        aco__values_free(&scratch->root_cold);
    }
    if (scratch->signal_stack) {
        aco__os_signal_stack(NULL, 0);
        aco__unmap(scratch->signal_stack, ACO__SIGNAL_STACK);
    }
    self->scratch = NULL;
    aco__instrument_region_freed(scratch, sizeof *scratch);
    aco__deregister_stack(scratch->registered);
    aco__unmap_guarded((char *)scratch - SCRATCH_SIZE - page, page + SCRATCH_SIZE + aco__round_up(sizeof *scratch, page), page);
}

#ifdef _WIN32
static aco__thread_t *records; /* of all threads; under the process lock */

static void record_begins(aco__thread_t *self)
{
    aco__os_lock();
    self->next = records;
    self->link = &records;
    if (records)
        records->link = &self->next;
    records = self;
    aco__os_unlock();
}

static void record_ends(aco__thread_t *self)
{
    aco__os_lock();
    *self->link = self->next;
    if (self->next)
        self->next->link = self->link;
    aco__os_unlock();
}
#elif defined(ACO__THREAD_SLOT)
static void record_begins(aco__thread_t *self)
{
    (void)self;
}

static void record_ends(aco__thread_t *self)
{
    (void)self;
}
#endif

ACO__FOREIGN_ENTRY static void thread_ends(void *arg)
{
    aco__thread_t *self = arg;
#ifdef ACO__THREAD_SLOT
    aco__os_at_thread_exit(thread_ends, self); /* systems empty the slot before they call */
#endif
    scratch_thread_ends(); /* its destructors may use coroutines */
    if (self->scheduler)
        self->scheduler->thread_ends(self);
    aco__cache_free(self);
    aco__heap_thread_ends();
#ifdef ACO__THREAD_SLOT
    aco__os_slot_clear();
    record_ends(self);
    aco__os_unmap(self, aco__round_up(sizeof *self, aco__os_page_size()));
#endif
}

#ifdef ACO__THREAD_SLOT
aco__thread_t *aco__thread_new(void)
{
    int saved = errno;
    aco__thread_t *self = aco__os_map(aco__round_up(sizeof *self, aco__os_page_size()));
    if (!self)
        aco__die("acorn", NULL, "no memory for the thread's record");
    aco__os_at_thread_exit(thread_ends, self);
    record_begins(self);
    errno = saved;
    return self;
}
#endif

#ifdef _WIN32
void aco__library_ends(void)
{
    while (records)
        thread_ends(records);
    aco__pool_ends();
    aco__usages_end();
    aco__heaps_end();
}
#endif

void aco__thread_will_end(void)
{
    ready(); /* with a heap it may come to have spares, and so to make coroutines inline */
    aco__os_at_thread_exit(thread_ends, aco__self());
}

/* ---- Making and freeing ---- */

#ifdef ACO__BEGINS_IN_ASSEMBLY
ACO__HIDDEN void aco__begin_entry(void); /* begins a coroutine of aco_create(): src/entry/ */
#define ACO__BEGIN_ENTRY aco__begin_entry
#endif

static inline void measure_if_wanted(aco_t *co)
{
    if (aco_unlikely(aco__self()->measures))
        aco__usage_begin(co);
}

static void prepare_entry(aco_t *co, aco_cofuncp_t fp, void *arg)
{
    aco_function_t fn;
    memcpy(&fn, &fp, sizeof fp);
    aco__prepare(ready(), co, fn, arg);
#ifdef ACO__BEGIN_ENTRY
    fp = (aco_cofuncp_t)ACO__BEGIN_ENTRY;
#endif
    memcpy(&co->aco__self.pc, &fp, sizeof fp);
    co->save_stack.valid_sz = 0;
    aco__set_status(co, ACO__READY);
}

static aco_t *main_new(void *arg)
{
    size_t room = sizeof(aco_t);
    aco__thread_t *self = ready();
    aco_t *co = aco__block_memory_new(&room);
    if (!co)
        aco__die_of_memory("aco_create", sizeof(aco_t));
    memset(co, 0, sizeof *co);
    co->aco__self.base = self; /* the thread that may resume its coroutines */
    co->aco__state = ACO__MAIN;
    co->arg = arg;
    self->main_co = co;
    return co;
}

/* Block and save area, the area inside the block's memory unless it is large. NULL and errno. */
static aco_t *block_new(size_t save_sz)
{
    if (save_sz > SIZE_MAX / 2) {
        errno = ENOMEM;
        return NULL;
    }
    if (aco_unlikely(aco__tools_present())) /* each coroutine then has an extra record, whose address stands in the area */
        save_sz += sizeof(void *);
    size_t room = sizeof(aco_t) + (save_sz <= MAX_INSIDE ? save_sz : ACO__AREA_STATISTIC);
    aco_t *co = aco__block_memory_new(&room);
    if (!co)
        return NULL;
    memset(co, 0, sizeof *co);
    co->save_stack.ptr = co + 1;
    co->save_stack.sz = room - sizeof(aco_t);
    if (save_sz > MAX_INSIDE) {
        co->save_stack.sz = aco__round_up(save_sz, 16); /* a pointer may stand behind it */
        co->save_stack.ptr = aco__memory_new(&co->save_stack.sz);
        if (!co->save_stack.ptr) {
            co->aco__state = ACO__DESTROYED;
            aco__memory_free(co, sizeof(aco_t));
            return NULL;
        }
        aco__area_reserved(co);
    }
    return co;
}

void aco__block_free(aco_t *co)
{
    if (aco_unlikely(co->aco__state & ACO__HAS_COLD)) {
        aco__instrument_destroyed(co);
        aco__cold_free(co);
    }
    if (aco_unlikely(aco__share_stacks_are_private()) && !aco__has(co, ACO__PRIVATE) && co->share_stack)
        aco__stack_free(co->share_stack);
    if (aco_unlikely(aco__has(co, ACO__INSTRUMENTED)) && !aco__has(co, ACO__PRIVATE))
        aco__instrument_area_freed(co);
    aco__set_status(co, ACO__DESTROYED);
    if (aco__has(co, ACO__PRIVATE)) {
        co->share_stack = NULL; /* overflow.c looks at blocks that are free */
        aco__memory_free(co, ACO__PRIVATE_BLOCK);
    } else if (aco__area_is_inside(co)) {
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
    if (!ACO__SWITCHES_SHADOW_STACKS)
        aco__fail_shadow_stack(1, "aco_create");
    if (!main_co && !stack && !fp)
        return main_new(arg);
    if (!main_co || !stack || !fp)
        aco__die("aco_create", NULL, "%s is NULL", !main_co ? "main_co" : !stack ? "share_stack" : "the entry function");
    if (stack->aco__private)
        aco__die("aco_create", stack->owner, "has the given stack to itself");
    if (aco__status(main_co) != ACO__MAIN || aco__is_task(main_co))
        aco__die("aco_create", main_co, "is given as main_co, but is not a main coroutine");
    co = block_new(save_sz ? save_sz : DEFAULT_SAVE);
    if (!co)
        aco__die_of_memory("aco_create", sizeof(aco_t) + save_sz);
    co->main_co = main_co;
    co->share_stack = aco__stack_for_one(stack);
    if (!co->share_stack)
        aco__die_of_memory("aco_create", stack->sz);
    co->aco__state = own_fp ? 0 : ACO__SHARES_FP;
    prepare_entry(co, fp, arg);
    if (aco__instrument_new(co, 0) != 0)
        aco__die_of_memory("aco_create", sizeof(aco__cold_t));
    aco__shadow_new(co, 1, "aco_create");
    aco__trace_new(co);
    measure_if_wanted(co);
    return co;
}

void aco_reset(aco_t *co, aco_cofuncp_t fp, void *arg)
{
    if (!co || !fp)
        aco__die("aco_reset", co, "%s is NULL", co ? "the entry function" : "the coroutine");
    if (aco__status(co) != ACO__ENDED && aco__status(co) != ACO__READY)
        aco__die("aco_reset", co, "%s", aco__is_task(co) ? is_a_task : aco__status(co) == ACO__MAIN ? "is a main coroutine" : "has not ended");
    if (co->aco__state & ACO__FROM_NEW)
        aco__die("aco_reset", co, "was made by aco_new(): aco_restart() is its call");
    aco__cold_clear(co);
    aco__instrument_restarted(co);
    prepare_entry(co, fp, arg);
    aco__trace_new(co);
    measure_if_wanted(co);
}

/* ---- Native coroutines ---- */

/* Options, checked, for `call`. */
static int check_options(const char *call, const aco_options_t *o)
{
    static const aco_options_t none;
    const unsigned known = ACO_OWN_FP | ACO_SHARED_FP | ACO_OWN_EXCEPTIONS | ACO_NO_GUARD;
    if (o->aco__reserved0 || memcmp(o->aco__reserved, none.aco__reserved, sizeof none.aco__reserved) != 0)
        return aco__fail(0, EINVAL, call, NULL, "a reserved option is not 0");
    if (o->flags & ~known)
        return aco__fail(0, EINVAL, call, NULL, "unknown flags %#x", o->flags & ~known);
    if ((o->flags & ACO_OWN_FP) && (o->flags & ACO_SHARED_FP))
        return aco__fail(0, EINVAL, call, NULL, "ACO_OWN_FP and ACO_SHARED_FP exclude each other");
    if (o->stack && (o->stack_size || (o->flags & ACO_NO_GUARD)))
        return aco__fail(0, EINVAL, call, NULL, "%s is for a private stack, not for a share stack", o->stack_size ? "stack_size" : "ACO_NO_GUARD");
    if (o->stack && o->pool)
        return aco__fail(0, EINVAL, call, NULL, "pool is for a private stack, not for a share stack");
    if (!o->stack && o->save_size)
        return aco__fail(0, EINVAL, call, NULL, "save_size is for a share stack, not for a private one");
    if (o->stack && o->stack->aco__private)
        return aco__fail(0, EINVAL, call, NULL, "the stack belongs to a coroutine");
    if (o->stack_size > SIZE_MAX / 4 || o->save_size > SIZE_MAX / 4)
        return aco__fail(0, EINVAL, call, NULL, "%s is out of bounds", o->save_size ? "save_size" : "stack_size");
    return 0;
}

aco_t *aco__coroutine_new(const aco_options_t *o, size_t *sz)
{
    size_t room = ACO__PRIVATE_BLOCK;
    aco_share_stack_t *stack;
    aco_t *co;
    if (o->stack) {
        *sz = sizeof(aco_t) + o->save_size;
        co = block_new(o->save_size ? o->save_size : DEFAULT_SAVE);
        if (!co)
            return NULL;
        co->aco__state = ACO__FROM_NEW | ACO__READY;
        co->share_stack = aco__stack_for_one(o->stack);
        if (!co->share_stack) {
            *sz = o->stack->sz;
            aco__block_free(co);
            return NULL;
        }
        return co;
    }
    if ((!o->stack_size || o->stack_size == ACO__PRIVATE_SIZE) && !(o->flags & ACO_NO_GUARD) && !o->pool && aco__self()->cached) {
        co = aco__cache_pop(aco__self());
        co->aco__state = ACO__FROM_NEW | ACO__PRIVATE;
        return co;
    }
    *sz = o->stack_size ? o->stack_size : (size_t)ACO__PRIVATE_SIZE;
    aco__reap(aco__self());
    stack = aco__stack_new_private(o->pool, o->stack_size, !(o->flags & ACO_NO_GUARD));
    if (!stack)
        return NULL;
    *sz = room;
    co = aco__block_memory_new(&room);
    if (!co) {
        aco__stack_free(stack);
        return NULL;
    }
    memset(co, 0, ACO__PRIVATE_BLOCK);
    co->aco__state = ACO__FROM_NEW | ACO__PRIVATE;
    co->share_stack = stack;
    stack->owner = co;
    return co;
}

void aco__coroutine_free(aco_t *co)
{
    aco_share_stack_t *stack = co->share_stack;
    int is_private = co->aco__state & ACO__PRIVATE;
    aco__block_free(co);
    if (is_private)
        aco__stack_free(stack);
}

void aco__cache_free(aco__thread_t *self)
{
    while (self->cached)
        aco__coroutine_free(aco__cache_pop(self));
}

aco_t *aco__new_called(const char *call, aco_function_t fn, void *arg, const aco_options_t *opts, int own_fp)
{
    static const aco_options_t defaults;
    const aco_options_t *o = opts ? opts : &defaults;
    size_t sz = 0;
    aco_t *co;
    aco__thread_t *self = ready();
    if (!fn) {
        aco__fail(0, EINVAL, call, NULL, "the function is NULL");
        return NULL;
    }
    if (check_options(call, o) != 0 || (!ACO__SWITCHES_SHADOW_STACKS && aco__fail_shadow_stack(0, call) != 0))
        return NULL;
    if ((o->flags & ACO_OWN_FP) && !own_fp) {
        aco__fail(0, EINVAL, call, NULL, "ACO_OWN_FP in a unit compiled with ACO_CONFIG_SHARE_FPU_MXCSR_ENV, whose switches do not look");
        return NULL;
    }
    co = aco__coroutine_new(o, &sz);
    if (co) {
        if (!own_fp || (o->flags & ACO_SHARED_FP))
            aco__set_state_byte(co, co->aco__state | ACO__SHARES_FP);
        aco__prepare(self, co, fn, arg);
        if (aco__instrument_new(co, (o->flags & ACO_OWN_EXCEPTIONS) != 0) == 0 && (!o->name || aco__cold_make(co))) {
            if (aco__shadow_new(co, 0, call) != 0) {
                int error = errno;
                aco__coroutine_free(co);
                errno = error;
                return NULL;
            }
            if (o->name)
                aco__name(aco__cold(co), o->name);
            aco__trace_new(co);
            measure_if_wanted(co);
            return co;
        }
        sz = sizeof(aco__cold_t);
        aco__coroutine_free(co);
    }
    aco__fail_memory(0, call, sz);
    return NULL;
}

aco_t *aco__new(aco_function_t fn, void *arg, const aco_options_t *opts, int own_fp)
{
    return aco__new_called("aco_new", fn, arg, opts, own_fp);
}

int aco__is_new(const aco_t *co)
{
    aco__arrival_t *begin = aco__begin;
    return aco__status(co) == ACO__READY || (aco__status(co) == ACO__SUSPENDED && memcmp(&co->aco__self.pc, &begin, sizeof begin) == 0 && co != aco__running());
}

int aco_restart(aco_t *co, aco_function_t fn, void *arg)
{
    if (!co || !fn)
        return aco__fail(0, EINVAL, "aco_restart", co, "%s is NULL", co ? "the function" : "the coroutine");
    if (aco__status(co) == ACO__DESTROYED)
        return aco__fail(0, ESRCH, "aco_restart", co, "was destroyed");
    if (!(co->aco__state & ACO__FROM_NEW))
        return aco__fail(0, EINVAL, "aco_restart", co, "was not made by aco_new()");
    if (aco__is_task(co))
        return aco__fail(0, EPERM, "aco_restart", co, "%s", is_a_task);
    if (aco__status(co) != ACO__ENDED && !aco__is_new(co))
        return aco__fail(0, EBUSY, "aco_restart", co, "is not done");
    aco__cold_clear(co);
    aco__instrument_restarted(co);
    aco__prepare(ready(), co, fn, arg);
    if (!aco__has(co, ACO__PRIVATE))
        co->save_stack.valid_sz = 0;
    aco__set_status(co, aco__has(co, ACO__PRIVATE) ? ACO__SUSPENDED : ACO__READY);
    aco__trace_new(co);
    measure_if_wanted(co);
    return 0;
}

/* ---- Destroying ---- */

static void destroy_private(aco_t *co)
{
    aco__stack_check_overflow("aco_destroy", co->share_stack);
    if (!(co->aco__state & ACO__INSTRUMENTED)) {
        aco__cold_free(co);
        aco__instrument_cached(co->share_stack);
        if (aco__cache_put(aco__self(), co))
            return;
    }
    aco__coroutine_free(co);
}

void aco__destroy(aco_t *co)
{
    unsigned phase;
    if (aco_unlikely(!co))
        aco__die("aco_destroy", NULL, "the coroutine is NULL");
    phase = aco__status(co);
    if (aco_unlikely(co == aco__running()))
        aco__die("aco_destroy", co, "is running");
    if (aco_unlikely(aco__is_task(co)))
        aco__die("aco_destroy", co, "%s", is_a_task);
    if (aco_unlikely(phase > ACO__MAIN))
        aco__die("aco_destroy", co, phase == ACO__DESTROYED ? "was destroyed before" : "is resuming another coroutine");
    if (aco__has(co, ACO__PRIVATE)) {
        destroy_private(co);
        return;
    }
    switch (phase) {
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

void aco__destroy_checked(aco_t *co)
{
    static int warned; /* atomic */
    if (co && (aco__status(co) == ACO__SUSPENDED || aco__status(co) == ACO__SAVED) && !aco__is_new(co) && co != aco__running() &&
        !__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED))
        aco__warn("aco_destroy", co, "is suspended: nothing that its frames hold is released; aco_cancel() would do it (said once)");
    aco__destroy(co);
}

/* ---- Off the fast path ---- */

/* Whether the calling thread is the one that may run `co`. */
static int is_mine(const aco_t *co, aco__thread_t *self)
{
    if (aco__has(co, ACO__PRIVATE))
        return 1;
    const aco__thread_t *owner = aco__stack_given(co->share_stack)->aco__thread;
    if (owner && owner != self)
        return 0;
    return (co->aco__state & ACO__FROM_NEW) || co->main_co->aco__self.base == (void *)self;
}

ACO__COLD int aco__check(int fatal, const char *call, const aco_t *co)
{
    if (!co)
        return aco__fail(fatal, EINVAL, call, NULL, "the coroutine is NULL");
    switch (aco__status(co)) {
    case ACO__ENDED:
        return aco__fail(fatal, ESRCH, call, co, "has ended");
    case ACO__DESTROYED:
        return aco__fail(fatal, ESRCH, call, co, "was destroyed");
    case ACO__MAIN:
        return aco__is_task(co) ? aco__fail(fatal, EPERM, call, co, "%s", is_a_task) : aco__fail(fatal, EINVAL, call, co, "is a main coroutine");
    case ACO__RESUMING:
    case ACO__RESUMING_SAVED:
        return aco__fail(fatal, EBUSY, call, co, "is resuming another coroutine");
    }
    if (co == aco__running())
        return aco__fail(fatal, EBUSY, call, co, "is running");
    if (!is_mine(co, aco__self()))
        return aco__fail(fatal, EPERM, call, co, "belongs to another thread");
    return 0;
}

/* The running coroutine waits for one that it resumes; the other one then comes back. */
static inline aco_t *begin_waiting(aco__thread_t *self, aco_t *waiting)
{
    aco_t *outer = self->resuming;
    waiting->share_stack->aco__resumer_context = aco__saved_context(self, outer);
    aco__save_resumer(self);
    self->resuming = waiting;
    if (aco_likely(!aco__is_task(waiting))) /* which nobody may resume anyhow */
        aco__set_status(waiting, ACO__RESUMING);
    return outer;
}

static inline void end_waiting(aco__thread_t *self, aco_t *waiting, aco_t *outer)
{
    if (aco_likely(!aco__is_task(waiting)))
        aco__set_status(waiting, ACO__SUSPENDED);
    aco__restore_resumer(self, outer);
    self->running = waiting;
    waiting->share_stack->aco__resumer_context = &aco__no_context;
}

/* A coroutine resumes another: both on stacks of their own, and nobody watches. */
static inline void *resume_chained(aco__thread_t *self, aco_t *waiting, aco_t *co, void *value)
{
    aco_t *outer = begin_waiting(self, waiting);
    uintptr_t tagged = aco__switch_resume(aco__tls_ref(), co, &value, 1);
    self = aco__self();
    end_waiting(self, waiting, outer);
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}

/* What on_scratch() shall do when it is switched to; `call` is NULL where a failure is fatal. */
static void ask_scratch(aco__scratch_t *scratch, aco_t *target, aco_t *from, uintptr_t interrupt_flag, const char *call)
{
    scratch->target = target;
    scratch->from = from;
    scratch->interrupt_flag = interrupt_flag;
    scratch->call = call;
}

/* All other cases; `mark` is the arrival mark that `co` shall see, 1 or 0. */
ACO__NO_SANITIZE static __attribute__((noinline)) void *resume(aco_t *co, void *value, uintptr_t interrupt_flag, int fatal, const char *call)
{
    aco__thread_t *self = aco__self();
    aco_t *waiting = self->running, *outer = NULL;
    int instrumented = (co->aco__state & ACO__INSTRUMENTED) != 0, on_this_stack = waiting && waiting->share_stack == co->share_stack;
    aco__resumer_state_t outside;
    aco__scratch_t *scratch = NULL;
    uintptr_t tagged;
    if (interrupt_flag || on_this_stack) {
        scratch = aco__scratch();
        if (!scratch) {
            aco__fail_memory(fatal, call, SCRATCH_SIZE);
            return ACO_ERROR;
        }
    }
    if (waiting)
        outer = begin_waiting(self, waiting);
    if (!on_this_stack && aco__status(co) != ACO__SUSPENDED && !aco__stack_restore(co, fatal, call)) {
        if (waiting)
            end_waiting(self, waiting, outer);
        return ACO_ERROR;
    }
    if (instrumented) {
        aco__instrument_enter(co, &outside);
        aco__shadow_enter(co, &outside);
    }
    if (scratch) {
        ask_scratch(scratch, co, NULL, interrupt_flag, fatal ? NULL : call);
        tagged = aco__switch_resume(aco__tls_ref(), &scratch->runner, &value, 0);
    } else {
        tagged = aco__switch_resume(aco__tls_ref(), co, &value, 1);
    }
    self = aco__self();
    if (instrumented) {
        aco_t *left = (aco_t *)(tagged & ~(uintptr_t)1);
        aco__shadow_empty_if_ended(left);
        aco__shadow_leave(left, &outside);
        aco__instrument_leave(left, &outside);
    }
    if (waiting)
        end_waiting(self, waiting, outer);
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}

static int resume_slow(aco_t *co, void **value, int fatal, const char *call)
{
    aco__thread_t *self = aco__self();
    aco_t *running = self->running;
    if (aco_likely(running && co && (co->aco__state & ACO__FAST_MASK) == 0 && co != running)) {
        *value = resume_chained(self, running, co, *value);
        return 0;
    }
    if (aco__check(fatal, call, co) != 0) {
        *value = ACO_ERROR;
    } else if (running || (co->aco__state & ACO__INSTRUMENTED)) {
        *value = resume(co, *value, 0, fatal, call);
    } else {
        if (aco__status(co) == ACO__SUSPENDED || aco__stack_restore(co, fatal, call))
            return 1;
        *value = ACO_ERROR;
    }
    return 0;
}

/* The everyday case of copying comes before the rest, which needs many registers. */
static inline int has_only_to_be_restored(const aco_t *co)
{
    return aco_likely(co && (co->aco__state & ACO__FAST_MASK) == ACO__SAVED && !aco__running());
}

ACO__NAMED_BY_ASSEMBLY int aco__resume_slow(aco_t *co)
{
    void *value = NULL;
    if (has_only_to_be_restored(co))
        return aco__stack_restore(co, 1, "aco_resume");
    return resume_slow(co, &value, 1, "aco_resume");
}

int aco__send_slow(aco_t *co, void **value)
{
    if (!has_only_to_be_restored(co))
        return resume_slow(co, value, 0, "aco_send");
    if (aco__stack_restore(co, 0, "aco_send"))
        return 1;
    *value = ACO_ERROR;
    return 0;
}

#ifdef ACO__SWITCHES_IN_ASSEMBLY
/* What the exported aco_send() and aco_resume() do off their fast path. */
ACO__HIDDEN void *aco__send_exported(aco_t *co, void *value);
ACO__HIDDEN void aco__resume_exported(aco_t *co);

ACO__NAMED_BY_ASSEMBLY void *aco__send_exported(aco_t *co, void *value)
{
    if (aco__send_slow(co, &value)) {
        uintptr_t tagged = aco__switch_resume(aco__tls_ref(), co, &value, 1);
        ACO__CHECK_INTERRUPT(tagged);
    }
    return value;
}

ACO__NAMED_BY_ASSEMBLY void aco__resume_exported(aco_t *co)
{
    void *value = NULL;
    if (aco__resume_slow(co)) {
        uintptr_t tagged = aco__switch_resume(aco__tls_ref(), co, &value, 1);
        ACO__CHECK_INTERRUPT(tagged);
    }
}

#endif

void *aco__inject(aco_t *co, void (*fn)(void *), void *arg, const char *call)
{
    aco__scratch_t *scratch;
    void *value;
    if (aco__check(0, call, co) != 0)
        return ACO_ERROR;
    scratch = aco__scratch();
    if (!scratch) {
        aco__fail_memory(0, call, SCRATCH_SIZE);
        return ACO_ERROR;
    }
    scratch->injected = fn;
    scratch->injected_arg = arg;
    value = resume(co, NULL, 1, 0, call);
    if (value == ACO_ERROR)
        aco__self()->scratch->injected = NULL;
    return value;
}

ACO__NAMED_BY_ASSEMBLY void aco__interrupted(uintptr_t interrupt_flag)
{
    aco__scratch_t *scratch = aco__self()->scratch;
    void (*fn)(void *) = scratch ? scratch->injected : NULL;
    if (!fn)
        aco__die("arrival", (void *)(interrupt_flag & ~(uintptr_t)1), "an arrival mark without an event");
    scratch->injected = NULL;
    fn(scratch->injected_arg);
}

/* ---- Transfer ---- */

/* Keeps the environment of `from` (NULL: the resumer's) and loads that of `to`: one of its own, or the resumer's. */
static void change_environment(aco__thread_t *self, aco_t *from, aco_t *to)
{
    int own_from = from && own_fp(from), own_to = own_fp(to);
    uint32_t control, wanted;
    uint16_t control2, wanted2;
    if (!own_from && !own_to)
        return;
    aco__fp_read(&control, &control2);
    *(own_from ? &from->aco__fp_control : &self->fp_control) = control;
    *(own_from ? &from->aco__fp_control2 : &self->fp_control2) = control2;
    wanted = own_to ? to->aco__fp_control : self->fp_control;
    wanted2 = own_to ? to->aco__fp_control2 : self->fp_control2;
    if (((control ^ wanted) & ~(uint32_t)ACO__FP_STATUS) != 0 || control2 != wanted2)
        aco__fp_load(&wanted, &wanted2);
}

/* On the scratch stack, left for `target` by a resume or by a transfer of `from`. */
ACO__NO_SANITIZE ACO__ARRIVAL_ABI static void on_scratch(ACO__ARRIVAL_PARAMETERS)
{
    aco__thread_t *self = aco__self();
    aco__scratch_t *scratch = self->scratch;
    aco_t *co = scratch->target, *from = scratch->from;
    if (aco__status(co) != ACO__SUSPENDED && !aco__stack_restore(co, scratch->call == NULL, scratch->call ? scratch->call : "aco_resume")) {
        if (!from)
            aco__switch_exit(aco__tls_ref(), (uintptr_t)co, ACO_ERROR);
        self->running = from;
        aco__switch_enter(aco__tls_ref(), from, (uintptr_t)from, ACO_ERROR);
    }
    change_environment(self, from, co);
    self->running = co;
    aco__switch_enter(aco__tls_ref(), co, (uintptr_t)co | scratch->interrupt_flag, value);
}

/* On the scratch stack, left by a coroutine whose resumer's frames were saved meanwhile. */
ACO__NO_SANITIZE ACO__ARRIVAL_ABI static void restore_trampoline(ACO__ARRIVAL_PARAMETERS)
{
    aco__thread_t *self = aco__self();
    aco_t *resumer = self->resuming;
    aco__stack_restore(resumer, 1, "aco_yield");
    aco__restore_resumer(self, resumer);
    self->unwind_parent = &self->resumer;
    aco__switch_exit(aco__tls_ref(), tagged, value);
}

/* On the scratch stack, left by a coroutine that yields in its cleanup. */
ACO__FOREIGN_ENTRY ACO__ARRIVAL_ABI static void trapped(ACO__ARRIVAL_PARAMETERS)
{
    aco__die("aco_yield", (void *)(tagged & ~(uintptr_t)1), "yields in its cleanup, from a deferred call or a destructor that runs because it ends");
}

ACO__NO_SANITIZE int aco__yield_to_slow(aco_t *co)
{
    static const char call[] = "aco_yield_to";
    aco__thread_t *self = aco__self();
    aco_t *from = self->running;
    int on_this_stack;
    void *value = NULL;
    uintptr_t tagged;
    if (!from)
        return aco__fail(0, EPERM, call, co, "no coroutine is running");
    if (aco__is_cancelled())
        return aco__fail(0, EPERM, call, from, "is in its cleanup");
    if (co == from)
        return 0;
    if (aco__is_task(from))
        return aco__fail(0, EPERM, call, from, "%s", is_a_task);
    if (aco__check(0, call, co) != 0)
        return -1;
    if (aco__has_own_exceptions(from) != aco__has_own_exceptions(co))
        return aco__fail(0, EPERM, call, co, "only one of the two has ACO_OWN_EXCEPTIONS");
    on_this_stack = from->share_stack == co->share_stack;
    if (!on_this_stack && aco__status(co) != ACO__SUSPENDED && !aco__stack_restore(co, 0, call))
        return -1;
    if (on_this_stack && !aco__scratch())
        return aco__fail_memory(0, call, SCRATCH_SIZE);
    if (from->aco__state & ACO__INSTRUMENTED) {
        aco__instrument_transfer(from, co);
        aco__shadow_transfer(from, co);
    }
    if (on_this_stack) {
        aco__scratch_t *scratch = self->scratch;
        ask_scratch(scratch, co, from, 0, call);
        tagged = aco__switch_transfer(aco__tls_ref(), from, &scratch->runner, &value, 0);
        if (value == ACO_ERROR && aco__has(from, ACO__INSTRUMENTED)) { /* refused: nobody was left */
            aco__shadow_transfer(co, from);
            aco__instrument_transfer(co, from);
        }
    } else {
        change_environment(self, from, co);
        tagged = aco__switch_transfer(aco__tls_ref(), from, co, &value, 0);
    }
    ACO__CHECK_INTERRUPT(tagged);
    return value == ACO_ERROR ? -1 : 0;
}

ACO__NAMED_BY_ASSEMBLY void *aco__not_yielded(const char *call)
{
    aco__fail(0, EPERM, call, NULL, "no coroutine is running");
    return ACO_ERROR;
}

/* ---- Checks of debug builds ---- */

/* A unit that never exchanges control words switches a coroutine with its own. */
static int check_mixing(int fatal, const char *call, const aco_t *co, int unit_own_fp)
{
    if (unit_own_fp || !own_fp(co))
        return 0;
    return aco__fail(fatal, EINVAL, call, co, "has a floating-point environment of its own, and this code is compiled with ACO_CONFIG_SHARE_FPU_MXCSR_ENV");
}

static int must_be_slow(const aco_t *co)
{
    return (co->aco__state & ACO__FAST_MASK) != 0 || aco__running();
}

static int checked(aco_t *co, int unit_own_fp, int fatal, const char *call)
{
    return aco__check(fatal, call, co) == 0 && check_mixing(fatal, call, co, unit_own_fp) == 0;
}

int aco__resume_check(aco_t *co, int unit_own_fp)
{
    return checked(co, unit_own_fp, 1, "aco_resume") && (!must_be_slow(co) || aco__resume_slow(co));
}

int aco__send_check(aco_t *co, void **value, int unit_own_fp)
{
    if (!checked(co, unit_own_fp, 0, "aco_send")) {
        *value = ACO_ERROR;
        return 0;
    }
    if (*value && aco__is_new(co))
        aco__warn("aco_send", co, "is started by a value, %p, which nobody receives", *value);
    return !must_be_slow(co) || aco__send_slow(co, value);
}

void aco__yield_check(aco_t *co, int unit_own_fp)
{
    if (!co || co != aco__running())
        aco__die("aco_yield1", co, "is not running");
    check_mixing(1, "aco_yield", co, unit_own_fp);
    aco__stack_check_overflow("aco_yield", co->share_stack);
    /* On a private stack it is in a generator. The address is not a local's: ASan keeps those elsewhere. */
    if (!co->share_stack->aco__private && !aco__is_on_its_stack(co, __builtin_frame_address(0)))
        aco__die("aco_yield", co, "is not on its share stack of %zu bytes: in a generator, or overflowed", co->share_stack->sz);
}

ACO__NAMED_BY_ASSEMBLY void aco__nothing_runs(const char *call)
{
    aco__die(call, NULL, aco__running() ? "the coroutine is NULL" : "no coroutine is running");
}

/* ---- Ending ---- */

/* Brings back the resumer's control words. */
void aco__load_resumer_environment(void)
{
    aco__thread_t *self = aco__self();
    aco__fp_change(&self->fp_control, &self->fp_control2);
}

/* A deferred call or a destructor must not end what is ending. */
static void refuse_in_cleanup(const aco_t *co)
{
    if (aco__is_cancelled())
        aco__die("aco_exit", co, "exits in its cleanup");
}

__attribute__((noreturn, always_inline)) static inline void end(aco_t *co, void *result)
{
    if (aco_unlikely(co->aco__state & ACO__HAS_COLD))
        aco__clean_up(co);
    co->is_end = 1;
    co->aco__self.bp = result;
    aco__set_status(co, ACO__ENDED);
    if (!aco__has(co, ACO__PRIVATE))
        aco__stack_release(co);
    else if (aco_unlikely(!co->share_stack->guard_page_enabled))
        aco__stack_check_overflow("aco_exit", co->share_stack);
    if (own_fp(co))
        aco__load_resumer_environment();
    aco__switch_exit(aco__tls_ref(), (uintptr_t)co, result);
}

void aco__end(aco_t *co, void *result)
{
    if (aco_unlikely(aco__is_task(co)))
        aco__self()->scheduler->end_task(co, result);
    end(co, result);
}

#ifdef ACO__BEGINS_IN_ASSEMBLY /* aco__begin goes on here */
#define ACO__BEGUN ACO__NAMED_BY_ASSEMBLY ACO__HIDDEN
ACO__HIDDEN void aco__begun(ACO__ARRIVAL_PARAMETERS);
#else
#define ACO__BEGUN ACO__ARRIVAL_ABI
#define aco__begun aco__begin
#endif
ACO__FOREIGN_ENTRY ACO__BEGUN void aco__begun(ACO__ARRIVAL_PARAMETERS)
{
    aco_t *co = (aco_t *)tagged;
    aco_function_t fn;
    aco__end_frame_pointers();
    aco__begins_here(co->share_stack, aco__self());
    memcpy(&fn, &co->fp, sizeof fn);
    end(co, fn(co->arg));
}

void aco_exit1(aco_t *co)
{
    if (!co || co != aco__running())
        aco__die("aco_exit1", co, co ? "is not running" : "the coroutine is NULL");
    refuse_in_cleanup(co);
    aco__end(co, NULL);
}

void aco_exit(void)
{
    aco_t *co = aco__running();
    if (!co)
        aco__nothing_runs("aco_exit");
    refuse_in_cleanup(co);
    aco__end(co, NULL);
}

/* ---- Asking ---- */

char aco_error_mark;

/* A task that was never run has its stack pointer where it begins. */
static aco_state_t task_state(const aco_t *co)
{
    const aco__thread_t *self = aco__self();
    if (co == self->running)
        return ACO_STATE_RUNNING;
    if (aco__task_is_resuming(self, co))
        return ACO_STATE_RESUMING;
    return co->aco__self.sp == co->share_stack->aco__top ? ACO_STATE_READY : ACO_STATE_SUSPENDED;
}

aco_state_t aco_state(const aco_t *co)
{
    switch (aco__status(co)) {
    case ACO__ENDED:
    case ACO__DESTROYED:
        return ACO_STATE_DONE;
    case ACO__MAIN:
        return aco__is_task(co) ? task_state(co) : aco__running() ? ACO_STATE_RESUMING : ACO_STATE_RUNNING;
    case ACO__RESUMING:
    case ACO__RESUMING_SAVED:
        return ACO_STATE_RESUMING;
    }
    return co == aco__running() ? ACO_STATE_RUNNING : aco__is_new(co) ? ACO_STATE_READY : ACO_STATE_SUSPENDED;
}

void *aco_result(const aco_t *co)
{
    if (!co || aco__status(co) != ACO__ENDED) {
        int gone = co && aco__status(co) == ACO__DESTROYED;
        aco__fail(0, gone ? ESRCH : co ? EBUSY : EINVAL, "aco_result", co, gone ? "was destroyed" : co ? "is not done" : "the coroutine is NULL");
        return ACO_ERROR;
    }
    return co->aco__self.bp;
}

int aco_stack_bounds(const aco_t *co, void **lo, void **hi)
{
    if (!co || !lo || !hi || !co->share_stack)
        return aco__fail(0, EINVAL, "aco_stack_bounds", co, !co ? "the coroutine is NULL" : lo && hi ? "is a main coroutine" : "there is no place for the result");
    *lo = co->share_stack->ptr;
    *hi = (char *)co->share_stack->aco__top + ACO__ENTRY_BELOW_TOP;
    return 0;
}

int aco__is_on_stack_of(const aco_t *co)
{
    const aco_t *resumer = aco__running();
    return resumer && resumer != co && aco__stack_given(resumer->share_stack) == aco__stack_given(co->share_stack) &&
           aco__fail(0, EINVAL, "aco::resume", co, "runs on the resumer's share stack: values cannot be passed") != 0;
}

typedef struct visitor {
    int (*visit)(aco_t *co, void *arg);
    void *arg;
} visitor_t;

static int visit_live(aco_t *co, void *arg)
{
    const visitor_t *visitor = arg;
    return aco__status(co) == ACO__DESTROYED || (aco__status(co) == ACO__MAIN && !aco__is_task(co)) ? 0 : visitor->visit(co, visitor->arg);
}

int aco_each(int (*visit)(aco_t *co, void *arg), void *arg)
{
    visitor_t visitor = {visit, arg};
    if (!visit)
        return aco__fail(0, EINVAL, "aco_each", NULL, "the visitor is NULL");
    return aco__blocks_each(visit_live, &visitor);
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
