/* Creates, restarts and destroys coroutines. Each thread caches destroyed coroutines with a private stack of the
 * default size. Creating one from the cache takes a few stores (aco__cache_reuse() in the header). */
#include "base/reserved.h"
#include "coroutine/create.h"
#include "coroutine/depot.h"
#include "coroutine/entry.h"
#include "coroutine/forgotten.h"
#include "coroutine/locals.h"
#include "coroutine/query.h"
#include "tools/shadow_stack.h"
#include "tools/trace.h"

#include "aco/pool.h"

#include <string.h>

_Static_assert(sizeof(aco_t) == 14 * sizeof(void *) + 8, "block and 152 saved bytes make 272");

/* Links the debuggers' table (debugger.c) into every program that creates a coroutine. */
ACO_API extern const struct aco__debug aco__debug;
static __attribute__((used)) const struct aco__debug *const debugger_table = &aco__debug;

#ifndef ACO_CONFIG_LIBACO_ONLY
/* Links overflow.c too, which debug builds need. */
static __attribute__((used)) int (*const explain_overflow)(void) = aco_explain_overflow;
#endif

/* ---- Both kinds of coroutines ---- */

#ifdef ACO_CONFIG_LIBACO_ONLY
static inline void measure_if_wanted(const aco_t *co)
{
    (void)co;
}

static aco_share_stack_t *stack_for_one(aco_share_stack_t *given)
{
    return given;
}
#else
static inline void measure_if_wanted(aco_t *co)
{
    aco_function_t entry;
    if (aco_likely(!aco__self()->measures))
        return;
    entry = aco__function(co);
    if (entry == aco__guarded_entry) /* the entry of C++ function objects */
        memcpy(&entry, &((aco__guarded_t *)co->arg)->run, sizeof entry);
    aco__usage_begin(co, entry);
}

/* The stack for a new coroutine, with its first return address. NULL and errno on failure. */
static aco_share_stack_t *stack_for_one(aco_share_stack_t *given)
{
    aco_share_stack_t *stack = aco__stack_for_one(given);
    if (stack && stack != given)
        aco__stack_set_return(stack);
    return stack;
}
#endif

/* ---- aco_create() ---- */

#if defined(ACO__BEGINS_IN_ASSEMBLY) || defined(ACO_CONFIG_UCONTEXT)
#define ACO__BEGIN_ENTRY aco__begin_entry
#endif

static void prepare_entry(aco_t *co, aco_cofuncp_t fp, void *arg)
{
    aco_function_t fn;
    ACO__ASSERT(co->share_stack->owner != co); /* its frames are nowhere */
    memcpy(&fn, &fp, sizeof fp);
    aco__prepare_fields(co, fn, arg);
    aco__begin_environment(aco__thread_ready(), co);
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
    aco__thread_t *self = aco__thread_ready();
    aco_t *co = aco__block_memory_new(&room);
    if (!co)
        aco__die_of_memory("aco_create", sizeof(aco_t));
    memset(co, 0, sizeof *co);
    aco__set_main_thread(co, self); /* the only thread that may resume its coroutines */
    co->aco__state = ACO__MAIN;
    co->arg = arg;
    self->main_co = co;
    return co;
}

aco_t *aco__create(aco_t *main_co, aco_share_stack_t *stack, size_t save_sz, aco_cofuncp_t fp, void *arg, int own_fp)
{
    aco_t *co;
    if (!ACO__SWITCHES_SHADOW_STACKS)
        aco__fail_shadow_stack(1, "aco_create");
    if (!main_co && !stack && !fp)
        return main_new(arg);
    if (!main_co || !stack || !fp)
        aco__die("aco_create", NULL, "%s is NULL",
                 !main_co ? "main_co" : !stack ? "share_stack" : "the entry function");
    if (aco__stack_is_private(stack))
        aco__die("aco_create", stack->owner, "owns the given stack, which is private");
    if (aco__status(main_co) != ACO__MAIN || aco__is_task(main_co))
        aco__die("aco_create", main_co, "is given as main_co, but is not a main coroutine");
    co = aco__block_new(save_sz);
    if (!co)
        aco__die_of_memory("aco_create", sizeof(aco_t) + save_sz);
    co->main_co = main_co;
    co->share_stack = stack_for_one(stack);
    if (!co->share_stack)
        aco__die_of_memory("aco_create", aco__stack_made_with(stack));
    co->aco__state = own_fp ? 0 : ACO__SHARES_FP;
    prepare_entry(co, fp, arg);
    if (aco__instrument_new(co, 0) != 0)
        aco__die_of_memory("aco_create", sizeof(aco__cold_t));
    aco__shadow_new(co, 1, "aco_create");
    aco__trace_new(co);
    measure_if_wanted(co);
    aco__made(co, __builtin_return_address(0));
    return co;
}

#ifndef ACO_CONFIG_LIBACO_ONLY
void aco_reset(aco_t *co, aco_cofuncp_t fp, void *arg)
{
    if (!co || !fp)
        aco__die("aco_reset", co, "%s is NULL", co ? "the entry function" : "the coroutine");
    if (aco__status(co) != ACO__ENDED && aco__status(co) != ACO__READY)
        aco__die("aco_reset", co, "%s",
                 aco__is_task(co)                 ? ACO__A_TASK
                 : aco__status(co) == ACO__MAIN ? "is a main coroutine"
                                                : "has not ended");
    if (co->aco__state & ACO__FROM_NEW)
        aco__die("aco_reset", co, "was made by aco_new(): use aco_restart()");
    if (aco_unlikely(aco__has(co, ACO__HAS_COLD)))
        aco__cold_clear(co);
    aco__instrument_restarted(co);
    prepare_entry(co, fp, arg);
    aco__trace_new(co);
    measure_if_wanted(co);
}

/* ---- aco_new() ---- */

/* Checks the options; error messages name `call`. */
static int check_options(const char *call, const aco_options_t *o)
{
    const unsigned known = ACO_OWN_FP | ACO_SHARED_FP | ACO_OWN_EXCEPTIONS | ACO_SHARED_EXCEPTIONS | ACO_NO_GUARD;
    if (o->aco__reserved0 || ACO__RESERVED_IS_SET(o))
        return aco__fail(0, EINVAL, call, NULL, "a reserved option is not 0");
    if (o->flags & ~known)
        return aco__fail(0, EINVAL, call, NULL, "unknown flags %#x", o->flags & ~known);
    if ((o->flags & ACO_OWN_FP) && (o->flags & ACO_SHARED_FP))
        return aco__fail(0, EINVAL, call, NULL, "ACO_OWN_FP and ACO_SHARED_FP exclude each other");
    if ((o->flags & ACO_OWN_EXCEPTIONS) && (o->flags & ACO_SHARED_EXCEPTIONS))
        return aco__fail(0, EINVAL, call, NULL, "ACO_OWN_EXCEPTIONS and ACO_SHARED_EXCEPTIONS exclude each other");
    if (o->stack && (o->stack_size || (o->flags & ACO_NO_GUARD)))
        return aco__fail(0, EINVAL, call, NULL, "%s is for a private stack, not for a share stack",
                         o->stack_size ? "stack_size" : "ACO_NO_GUARD");
    if (o->stack && o->pool)
        return aco__fail(0, EINVAL, call, NULL, "pool is for a private stack, not for a share stack");
    if (o->stack_memory && (o->stack || o->pool))
        return aco__fail(0, EINVAL, call, NULL, "stack_memory excludes a %s", o->stack ? "share stack" : "pool");
    if (o->stack_memory && o->stack_size < ACO__LEAST_MEMORY)
        return aco__fail(0, EINVAL, call, NULL, "stack_memory has less than %d bytes", ACO__LEAST_MEMORY);
    if (!o->stack && o->save_size)
        return aco__fail(0, EINVAL, call, NULL, "save_size is for a share stack, not for a private one");
    if (o->stack && o->stack->aco__private)
        return aco__fail(0, EINVAL, call, NULL, "the stack belongs to a coroutine");
    if (o->stack_size > SIZE_MAX / 4 || o->save_size > SIZE_MAX / 4)
        return aco__fail(0, EINVAL, call, NULL, "%s is out of bounds", o->save_size ? "save_size" : "stack_size");
    return 0;
}

#ifdef ACO__INVARIANTS
/* Whether `co` is as aco__cache_put() leaves it, with nothing of its last life. */
static int is_cached(const aco_t *co)
{
    const aco_share_stack_t *stack = co->share_stack;
    return co->aco__state == (ACO__FROM_NEW | ACO__PRIVATE | ACO__DESTROYED) && stack->owner == co &&
           stack->aco__home.heap == aco__slab_of(co)->heap && stack->aco__private;
}
#endif

static aco_t *try_new(const aco_options_t *o, size_t *sz)
{
    size_t room = ACO__PRIVATE_BLOCK;
    aco_share_stack_t *stack;
    aco_t *co;
    if (o->stack) {
        *sz = sizeof(aco_t) + o->save_size;
        co = aco__block_new(o->save_size);
        if (!co)
            return NULL;
        co->aco__state = ACO__FROM_NEW | ACO__READY;
        co->share_stack = stack_for_one(o->stack);
        if (!co->share_stack) {
            *sz = aco__stack_made_with(o->stack);
            aco__block_free(co);
            return NULL;
        }
        return co;
    }
    if ((!o->stack_size || o->stack_size == ACO__PRIVATE_SIZE) && !(o->flags & ACO_NO_GUARD) && !o->pool &&
        !o->stack_memory && (aco__self()->cached || aco__depot_refill(aco__self()))) {
        co = aco__cache_pop(aco__self());
        ACO__ASSERT(is_cached(co));
        co->aco__state = ACO__FROM_NEW | ACO__PRIVATE;
        return co;
    }
    *sz = o->stack_size ? o->stack_size : (size_t)ACO__PRIVATE_SIZE;
    aco__reap(aco__self());
    stack = o->stack_memory ? aco__stack_in(o->stack_memory, o->stack_size)
                            : aco__stack_new_private(o->pool, o->stack_size, !(o->flags & ACO_NO_GUARD));
    if (!stack)
        return NULL;
    aco__stack_set_return(stack);
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
    stack->aco__home.heap = /* a block stays in its heap */
        stack->aco__cacheable ? (const void *)aco__slab_of(co)->heap : stack;
    return co;
}

/* Whether the memory of what the thread keeps can be what was lacking; it is free then. */
static ACO__COLD int gives_back_kept(const aco_options_t *o, int error)
{
    const aco__thread_t *self = aco__self();
    if (o->stack_memory || (error == EDQUOT && o->pool) || (!self->cached && !self->depot))
        return 0;
    aco_pool_trim(NULL);
    return 1;
}

aco_t *aco__coroutine_new(const aco_options_t *o, size_t *sz)
{
    aco_t *co = try_new(o, sz);
    return aco_likely(co != NULL) || !gives_back_kept(o, errno) ? co : try_new(o, sz);
}

void aco__coroutine_free(aco_t *co)
{
    aco_share_stack_t *stack = co->share_stack;
    int is_private = co->aco__state & ACO__PRIVATE;
    aco__block_free(co);
    if (is_private)
        aco__stack_free(stack);
}

aco_t *aco__new_called(const char *call, aco_function_t fn, void *arg, const aco_options_t *options, int own_fp)
{
    static const aco_options_t defaults;
    const aco_options_t *o = options ? options : &defaults;
    size_t sz = 0;
    aco_t *co;
    aco__thread_t *self = aco__thread_ready();
    if (!fn) {
        aco__fail(0, EINVAL, call, NULL, "the function is NULL");
        return NULL;
    }
    if (check_options(call, o) != 0 || (!ACO__SWITCHES_SHADOW_STACKS && aco__fail_shadow_stack(0, call) != 0))
        return NULL;
    if ((o->flags & ACO_OWN_FP) && !own_fp) {
        aco__fail(0, EINVAL, call, NULL,
                  "ACO_OWN_FP needs a unit that is compiled without ACO_CONFIG_SHARE_FPU_MXCSR_ENV");
        return NULL;
    }
    co = aco__coroutine_new(o, &sz);
    if (co) {
        if (!(o->flags & ACO_OWN_FP))
            aco__set_state_byte(co, co->aco__state | ACO__SHARES_FP);
        aco__prepare(co, fn, arg);
        aco__begin_environment(self, co);
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

aco_t *aco__new(aco_function_t fn, void *arg, const aco_options_t *options, int own_fp)
{
    aco_t *co = aco__new_called("aco_new", fn, arg, options, own_fp);
    aco__made(co, __builtin_return_address(0));
    return co;
}

int aco__restart(aco_t *co, aco_function_t fn, void *arg)
{
    if (!co || !fn)
        return aco__fail(0, EINVAL, "aco_restart", co, "%s is NULL", co ? "the function" : "the coroutine");
    if (aco__status(co) == ACO__DESTROYED)
        return aco__fail(0, ESRCH, "aco_restart", co, "was destroyed");
    if (!(co->aco__state & ACO__FROM_NEW))
        return aco__fail(0, EINVAL, "aco_restart", co, "was not made by aco_new()");
    if (aco__is_task(co))
        return aco__fail(0, EPERM, "aco_restart", co, "%s", ACO__A_TASK);
    if (aco__status(co) != ACO__ENDED && !aco__is_new(co))
        return aco__fail(0, EBUSY, "aco_restart", co, "is not done");
    if (aco_unlikely(aco__has(co, ACO__HAS_COLD)))
        aco__cold_clear(co);
    aco__instrument_restarted(co);
    aco__prepare(co, fn, arg);
    aco__begin_environment(aco__thread_ready(), co);
    ACO__ASSERT(aco__has(co, ACO__PRIVATE) == (co->share_stack->owner == co)); /* no frames are on a share stack, */
    ACO__ASSERT(aco__has(co, ACO__PRIVATE) || !co->save_stack.valid_sz);       /* or saved from it */
    aco__set_status(co, aco__has(co, ACO__PRIVATE) ? ACO__SUSPENDED : ACO__READY);
    aco__trace_new(co);
    measure_if_wanted(co);
    return 0;
}

/* ---- The cache ---- */

static void cache_free(aco__thread_t *self)
{
    while (self->cached || aco__depot_refill(self)) {
        ACO__ASSERT(is_cached(self->cached));
        aco__coroutine_free(aco__cache_pop(self));
    }
}

ACO__AT_LOAD static void register_cache(void)
{
    aco__upcalls.cache_free = cache_free;
}

/* ---- Destroying ---- */

static void destroy_private(aco_t *co)
{
    aco__stack_check_overflow("aco_destroy", co->share_stack);
    if (aco__exceptions_of(co)) /* nothing else keeps it from the cache */
        aco__set_state_byte(co, co->aco__state & ~(unsigned)ACO__INSTRUMENTED);
    ACO__ASSERT(co->share_stack->owner == co && co->share_stack->aco__private && co->share_stack->aco__home.heap);
    if (!(co->aco__state & ACO__INSTRUMENTED)) {
        aco__cold_free(co);
        aco__sanitize_cached(co->share_stack);
        if (aco__cache_put(aco__self(), co) || aco__depot_put(aco__self(), co))
            return;
    }
    aco__coroutine_free(co);
}
#endif

void aco__destroy(aco_t *co)
{
    unsigned status;
    if (aco_unlikely(!co))
        return;
    status = aco__status(co);
    if (aco_unlikely(co == aco__running()))
        aco__die("aco_destroy", co, "is running");
    if (aco_unlikely(aco__is_task(co)))
        aco__die("aco_destroy", co, "%s", ACO__A_TASK);
    if (aco_unlikely(status > ACO__MAIN))
        aco__die("aco_destroy", co,
                 status == ACO__DESTROYED ? "was destroyed before"
                                          : "is resuming another coroutine, or waits in a task");
#ifndef ACO_CONFIG_LIBACO_ONLY
    if (aco__has(co, ACO__PRIVATE)) {
        destroy_private(co);
        return;
    }
#endif
    switch (status) {
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
