/* The end of a coroutine, and the first function on its stack. */
#include "coroutine/cleanup.h"
#include "coroutine/exit.h"
#include "coroutine/query.h"

void aco__load_resumer_environment(void)
{
    aco__thread_t *self = aco__self();
    aco__fp_change(&self->fp_control, &self->fp_control2);
}

#ifdef ACO_CONFIG_LIBACO_ONLY
static void clean_up_if_needed(const aco_t *co)
{
    (void)co;
}

static void check_not_in_cleanup(const aco_t *co)
{
    (void)co;
}
#else
static inline void clean_up_if_needed(aco_t *co)
{
    if (aco_unlikely(co->aco__state & ACO__HAS_COLD))
        aco__clean_up(co);
}

/* A deferred call or a destructor must not end the coroutine that is ending. */
static void check_not_in_cleanup(const aco_t *co)
{
    if (aco__is_cancelled())
        aco__die("aco_exit", co, "exits in its cleanup");
}
#endif

/* All of the end but the switch. */
__attribute__((always_inline)) static inline void end_here(aco_t *co, void *result)
{
    ACO__ASSERT(co == aco__running() && !aco__is_task(co));
    clean_up_if_needed(co);
    ACO__ASSERT(aco__status(co) == ACO__SUSPENDED);
    co->is_end = 1;
    aco__set_result(co, result);
    aco__set_status(co, ACO__ENDED);
    if (!aco__has(co, ACO__PRIVATE))
        aco__stack_release(co);
    else if (aco_unlikely(!co->share_stack->guard_page_enabled))
        aco__stack_check_overflow("aco_exit", co->share_stack);
    if (aco__owns_fp(co))
        aco__load_resumer_environment();
}

__attribute__((noreturn, always_inline)) static inline void end(aco_t *co, void *result)
{
    end_here(co, result);
    aco__switch_exit(aco__tls_ref(), (uintptr_t)co, result);
}

void aco__ends(aco_t *co, void *result)
{
    end_here(co, result);
}

void aco__end(aco_t *co, void *result)
{
    if (aco_unlikely(aco__is_task(co)))
        aco__self()->scheduler->end_task(co, result);
    end(co, result);
}

#ifndef ACO_CONFIG_LIBACO_ONLY
/* ---- Beginning ---- */

/* A function of its own, so that aco__begun() keeps nothing in registers or on the stack for it. */
__attribute__((noreturn)) static ACO__COLD void end_uncommonly(aco_t *co, void *result)
{
    end(co, result);
}

ACO__SWITCHES void *aco__guarded_entry(void *arg)
{
    aco__guarded_t *guarded = arg;
    guarded->run(guarded);
    return NULL;
}

#ifdef ACO__BEGINS_IN_ASSEMBLY /* aco__begin continues here */
#define ACO__BEGUN ACO__NAMED_BY_ASSEMBLY ACO__HIDDEN
ACO__HIDDEN void aco__begun(ACO__ARRIVAL_PARAMETERS);
#else
#define ACO__BEGUN ACO__ARRIVAL_ABI
#define aco__begun aco__begin
#endif
ACO__FOREIGN_ENTRY ACO__BEGUN void aco__begun(ACO__ARRIVAL_PARAMETERS)
{
    aco_t *co = (aco_t *)tagged;
    aco__end_frame_pointers();
    aco__begins_here(co->share_stack, aco__self());
    ACO__ASSERT(co == aco__running() && aco__is_on_its_stack(co, __builtin_frame_address(0)));
    ACO__ASSERT(!aco__is_task(co)); /* else `fp` is no function */
    value = aco__function(co)(co->arg);
    ACO__ASSERT(co == aco__running()); /* on whichever thread */
    if (aco_unlikely(co->aco__state != ACO__PLAIN || !co->share_stack->guard_page_enabled))
        end_uncommonly(co, value);
    /* What end() does, in the common case. */
    co->is_end = 1;
    co->aco__state = ACO__PLAIN | ACO__ENDED;
    aco__set_result(co, value);
    aco__switch_exit(aco__tls_ref(), (uintptr_t)co, value);
}
#elif defined(ACO__BEGINS_IN_ASSEMBLY) /* no coroutine begins at aco__begin, which names this function */
ACO__HIDDEN ACO__NAMED_BY_ASSEMBLY void aco__begun(void)
{
    abort();
}
#endif

/* ---- Ending by a call ---- */

void aco_exit1(aco_t *co)
{
    if (!co || co != aco__running())
        aco__die("aco_exit1", co, co ? "is not running" : "the coroutine is NULL");
    check_not_in_cleanup(co);
    aco__end(co, NULL);
}

void aco_exit(void)
{
    aco_t *co = aco__running();
    if (!co)
        aco__nothing_runs("aco_exit");
    check_not_in_cleanup(co);
    aco__end(co, NULL);
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
