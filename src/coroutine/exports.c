/* The calls of aco.h that are inline in C, as exported functions: for other languages and for ACO_CONFIG_NO_INLINE. */
#include "coroutine/entry/forms.h"
#include "os/platform.h"

#if !defined(ACO_CONFIG_LIBACO_ONLY) || defined(ACO__EXPORTS)
aco_t *aco_create(aco_t *main_co, aco_share_stack_t *share_stack, size_t save_stack_sz, aco_cofuncp_t fp, void *arg)
{
    return aco_create_inline(main_co, share_stack, save_stack_sz, fp, arg);
}

void aco_destroy(aco_t *co)
{
    aco_destroy_inline(co);
}

#ifndef ACO__SWITCHES_IN_ASSEMBLY
void aco_resume(aco_t *co)
{
    aco_resume_inline(co);
}

void aco_yield(void)
{
    aco_yield_inline();
}

void aco_yield1(aco_t *co)
{
    aco_yield1_inline(co);
}
#endif

aco_t *aco_get_co(void)
{
    return aco_get_co_inline();
}

aco_t *aco_co(void)
{
    return aco_co_inline();
}

void *aco_get_arg(void)
{
    return aco_get_arg_inline();
}

int aco_is_main_co(const aco_t *co)
{
    return aco_is_main_co_inline(co);
}
#endif

#ifndef ACO_CONFIG_LIBACO_ONLY
aco_t *aco_new(aco_function_t fn, void *arg, const aco_options_t *options)
{
    return aco_new_inline(fn, arg, options);
}

int aco_restart(aco_t *co, aco_function_t fn, void *arg)
{
    return aco_restart_inline(co, fn, arg);
}

#ifndef ACO__SWITCHES_IN_ASSEMBLY
void *aco_send(aco_t *co, void *value)
{
    return aco_send_inline(co, value);
}

void *aco_yield_value(void *value)
{
    return aco_yield_value_inline(value);
}
#endif

int aco_yield_to(aco_t *co)
{
    return aco_yield_to_inline(co);
}

void *aco_transfer(aco_t *co, void *value)
{
    return aco_transfer_inline(co, value);
}

void aco_prefetch(const aco_t *co)
{
    aco_prefetch_inline(co);
}

void aco_prefetch_stack(const aco_t *co)
{
    aco_prefetch_stack_inline(co);
}

int aco_is_in_main_co(void)
{
    return aco_is_in_main_co_inline();
}

/* aco__defer() gets an address in the caller's frame, which begins behind this function's. */
#ifndef ACO__DEFER_IN_ASSEMBLY
int aco_defer(void (*fn)(void *), void *arg)
{
#if defined(__clang__) && (defined(__aarch64__) || defined(__arm__)) /* __builtin_dwarf_cfa() is the frame pointer */
    return aco__defer(fn, arg, (char *)__builtin_frame_address(0) + 2 * sizeof(void *));
#else
    return aco__defer(fn, arg, __builtin_dwarf_cfa());
#endif
}
#endif

void *aco_mem_new(size_t sz)
{
    return aco_mem_new_inline(sz);
}
#endif
