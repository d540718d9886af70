/* minicoro's API on Acorn: a program written for minicoro compiles with this header in the place of minicoro.h, and
 * links Acorn (docs/migrating-from-minicoro.md says what differs).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * As with minicoro, one unit of a program defines MINICORO_IMPL before it includes this header. */
#ifndef MINICORO_H
#define MINICORO_H

#include "../../aco.h"

ACO__BEGIN_C

#ifndef MCO_API
#define MCO_API extern
#endif
#ifndef MCO_DEFAULT_STORAGE_SIZE
#define MCO_DEFAULT_STORAGE_SIZE 1024
#endif

typedef enum mco_state { MCO_DEAD = 0, MCO_NORMAL, MCO_RUNNING, MCO_SUSPENDED } mco_state;

typedef enum mco_result {
    MCO_SUCCESS = 0,
    MCO_GENERIC_ERROR,
    MCO_INVALID_POINTER,
    MCO_INVALID_COROUTINE,
    MCO_NOT_SUSPENDED,
    MCO_NOT_RUNNING,
    MCO_MAKE_CONTEXT_ERROR,
    MCO_SWITCH_CONTEXT_ERROR,
    MCO_NOT_ENOUGH_SPACE,
    MCO_OUT_OF_MEMORY,
    MCO_INVALID_ARGUMENTS,
    MCO_INVALID_OPERATION,
    MCO_STACK_OVERFLOW
} mco_result;

typedef struct mco_coro mco_coro;
struct mco_coro {
    aco_t *context; /* NULL after mco_uninit() */
    mco_state state;
    void (*func)(mco_coro *co);
    mco_coro *prev_co; /* the one that it returns to, while it is active */
    void *user_data;
    size_t coro_size;
    void *allocator_data;
    void (*dealloc_cb)(void *ptr, size_t size, void *allocator_data);
    void *stack_base; /* Acorn's, not in this block */
    size_t stack_size;
    unsigned char *storage; /* behind this block */
    size_t bytes_stored;
    size_t storage_size;
};

typedef struct mco_desc {
    void (*func)(mco_coro *co);
    void *user_data;
    void *(*alloc_cb)(size_t size, void *allocator_data); /* for block and storage; the stack is Acorn's */
    void (*dealloc_cb)(void *ptr, size_t size, void *allocator_data);
    void *allocator_data;
    size_t storage_size;
    size_t coro_size; /* without the stack */
    size_t stack_size;
} mco_desc;

MCO_API mco_desc mco_desc_init(void (*func)(mco_coro *co), size_t stack_size);
MCO_API mco_result mco_init(mco_coro *co, mco_desc *desc);
MCO_API mco_result mco_uninit(mco_coro *co);
MCO_API mco_result mco_create(mco_coro **out_co, mco_desc *desc);
MCO_API mco_result mco_destroy(mco_coro *co);
MCO_API mco_result mco_resume(mco_coro *co);
MCO_API mco_result mco_yield(mco_coro *co);
MCO_API mco_state mco_status(mco_coro *co);
MCO_API void *mco_get_user_data(mco_coro *co);
MCO_API mco_result mco_push(mco_coro *co, const void *src, size_t len);
MCO_API mco_result mco_pop(mco_coro *co, void *dest, size_t len);
MCO_API mco_result mco_peek(mco_coro *co, void *dest, size_t len);
MCO_API size_t mco_get_bytes_stored(mco_coro *co);
MCO_API size_t mco_get_storage_size(mco_coro *co);
MCO_API mco_coro *mco_running(void);
MCO_API const char *mco_result_description(mco_result res);

/* ---- Internal: the calls that switch are inline in every unit, and functions too ---- */

MCO_API void *mco__entry(void *arg); /* of the coroutines, on their stacks */

ACO__FORCE_INLINE mco_coro *mco__running(void)
{
    aco_t *co = aco_get_co();
    return co && co->fp == (aco_cofuncp_t)mco__entry ? ACO__POINTER(mco_coro, co->arg) : NULL;
}

ACO__FORCE_INLINE mco_result mco__resume(mco_coro *co)
{
    mco_coro *resumer;
    void *value;
    if (aco_unlikely(!co || co->state != MCO_SUSPENDED))
        return co ? MCO_NOT_SUSPENDED : MCO_INVALID_COROUTINE;
    resumer = mco__running();
    if (resumer)
        resumer->state = MCO_NORMAL;
    co->prev_co = resumer;
    co->state = MCO_RUNNING;
    value = aco_send(co->context, NULL);
    if (resumer)
        resumer->state = MCO_RUNNING;
    if (aco_likely(value != ACO_ERROR))
        return MCO_SUCCESS;
    co->state = MCO_SUSPENDED;
    co->prev_co = NULL;
    return MCO_SWITCH_CONTEXT_ERROR;
}

ACO__FORCE_INLINE mco_result mco__yield(mco_coro *co)
{
    if (aco_unlikely(!co || !co->context || aco_get_co() != co->context)) /* the caller is on another stack */
        return co ? MCO_STACK_OVERFLOW : MCO_INVALID_COROUTINE;
    co->state = MCO_SUSPENDED;
    co->prev_co = NULL;
    aco_yield1(co->context);
    return MCO_SUCCESS;
}

#define mco_running() mco__running()
#define mco_resume(co) mco__resume(co)
#define mco_yield(co) mco__yield(co)

ACO__END_C

#endif

#if defined(MINICORO_IMPL) && !defined(ACO_COMPAT_MINICORO_IMPL)
#define ACO_COMPAT_MINICORO_IMPL

#include <errno.h>

ACO__BEGIN_C

#ifndef MCO_MIN_STACK_SIZE
#define MCO_MIN_STACK_SIZE 32768
#endif
#ifndef MCO_DEFAULT_STACK_SIZE
#ifdef MCO_USE_VMEM_ALLOCATOR
#define MCO_DEFAULT_STACK_SIZE (2040 * 1024)
#else
#define MCO_DEFAULT_STACK_SIZE (56 * 1024)
#endif
#endif

#ifndef MCO_NO_DEFAULT_ALLOCATOR
#ifndef MCO_ALLOC
#define MCO_ALLOC(size) malloc(size)
#define MCO_DEALLOC(ptr, size) free(ptr)
#endif

static void *mco__alloc(size_t size, void *allocator_data)
{
    (void)allocator_data;
    return MCO_ALLOC(size);
}

static void mco__dealloc(void *ptr, size_t size, void *allocator_data)
{
    (void)size, (void)allocator_data;
    MCO_DEALLOC(ptr, size);
}
#endif

enum { MCO__BLOCK = (sizeof(mco_coro) + 15) / 16 * 16 };

void *mco__entry(void *arg)
{
    mco_coro *co = ACO__POINTER(mco_coro, arg);
    co->func(co);
    co->state = MCO_DEAD;
    co->prev_co = NULL;
    return NULL;
}

mco_desc mco_desc_init(void (*func)(mco_coro *co), size_t stack_size)
{
    mco_desc desc;
    memset(&desc, 0, sizeof desc);
#ifndef MCO_NO_DEFAULT_ALLOCATOR
    desc.alloc_cb = mco__alloc;
    desc.dealloc_cb = mco__dealloc;
#endif
    if (stack_size == 0)
        stack_size = MCO_DEFAULT_STACK_SIZE;
    else if (stack_size < MCO_MIN_STACK_SIZE)
        stack_size = MCO_MIN_STACK_SIZE;
    desc.func = func;
    desc.storage_size = MCO_DEFAULT_STORAGE_SIZE;
    desc.stack_size = (stack_size + 15) & ~(size_t)15;
    desc.coro_size = MCO__BLOCK + desc.storage_size;
    return desc;
}

mco_result mco_init(mco_coro *co, mco_desc *desc)
{
    aco_options_t options;
    if (!co)
        return MCO_INVALID_COROUTINE;
    memset(co, 0, sizeof *co);
    if (!desc || !desc->func || desc->stack_size < MCO_MIN_STACK_SIZE || desc->coro_size < MCO__BLOCK ||
        desc->coro_size - MCO__BLOCK < desc->storage_size)
        return MCO_INVALID_ARGUMENTS;
    memset(&options, 0, sizeof options);
    options.stack_size = desc->stack_size;
    co->context = aco_new(mco__entry, co, desc->stack_size > ACO__PRIVATE_SIZE ? &options : NULL);
    if (!co->context)
        return errno == ENOMEM || errno == EAGAIN ? MCO_OUT_OF_MEMORY : MCO_MAKE_CONTEXT_ERROR;
    co->state = MCO_SUSPENDED;
    co->func = desc->func;
    co->user_data = desc->user_data;
    co->coro_size = desc->coro_size;
    co->allocator_data = desc->allocator_data;
    co->dealloc_cb = desc->dealloc_cb;
    co->stack_base = co->context->share_stack->ptr;
    co->stack_size = co->context->share_stack->sz;
    co->storage = (unsigned char *)co + MCO__BLOCK;
    co->storage_size = desc->storage_size;
    return MCO_SUCCESS;
}

mco_result mco_uninit(mco_coro *co)
{
    if (!co)
        return MCO_INVALID_COROUTINE;
    if (co->state != MCO_SUSPENDED && co->state != MCO_DEAD)
        return MCO_INVALID_OPERATION;
    co->state = MCO_DEAD;
    aco_destroy(co->context);
    co->context = NULL;
    return MCO_SUCCESS;
}

mco_result mco_create(mco_coro **out_co, mco_desc *desc)
{
    mco_desc fitting;
    mco_coro *co;
    mco_result result;
    if (!out_co)
        return MCO_INVALID_POINTER;
    *out_co = NULL;
    if (!desc || !desc->alloc_cb || !desc->dealloc_cb)
        return MCO_INVALID_ARGUMENTS;
    fitting = *desc; /* the program may have changed the storage's size */
    if (fitting.coro_size < MCO__BLOCK + fitting.storage_size)
        fitting.coro_size = MCO__BLOCK + fitting.storage_size;
    co = ACO__POINTER(mco_coro, desc->alloc_cb(fitting.coro_size, desc->allocator_data));
    if (!co)
        return MCO_OUT_OF_MEMORY;
    result = mco_init(co, &fitting);
    if (result == MCO_SUCCESS)
        *out_co = co;
    else
        desc->dealloc_cb(co, fitting.coro_size, desc->allocator_data);
    return result;
}

mco_result mco_destroy(mco_coro *co)
{
    mco_result result = mco_uninit(co);
    if (result != MCO_SUCCESS)
        return result;
    if (!co->dealloc_cb)
        return MCO_INVALID_POINTER;
    co->dealloc_cb(co, co->coro_size, co->allocator_data);
    return MCO_SUCCESS;
}

mco_coro *(mco_running)(void)
{
    return mco__running();
}

mco_result (mco_resume)(mco_coro *co)
{
    return mco__resume(co);
}

mco_result (mco_yield)(mco_coro *co)
{
    return mco__yield(co);
}

mco_state mco_status(mco_coro *co)
{
    return co ? co->state : MCO_DEAD;
}

void *mco_get_user_data(mco_coro *co)
{
    return co ? co->user_data : NULL;
}

mco_result mco_push(mco_coro *co, const void *src, size_t len)
{
    if (!co)
        return MCO_INVALID_COROUTINE;
    if (len > co->storage_size - co->bytes_stored)
        return MCO_NOT_ENOUGH_SPACE;
    if (len && !src)
        return MCO_INVALID_POINTER;
    if (len)
        memcpy(co->storage + co->bytes_stored, src, len);
    co->bytes_stored += len;
    return MCO_SUCCESS;
}

mco_result mco_peek(mco_coro *co, void *dest, size_t len)
{
    if (!co)
        return MCO_INVALID_COROUTINE;
    if (len > co->bytes_stored)
        return MCO_NOT_ENOUGH_SPACE;
    if (len && !dest)
        return MCO_INVALID_POINTER;
    if (len)
        memcpy(dest, co->storage + co->bytes_stored - len, len);
    return MCO_SUCCESS;
}

mco_result mco_pop(mco_coro *co, void *dest, size_t len) /* `dest` NULL: drops them */
{
    mco_result result = dest ? mco_peek(co, dest, len)
                             : !co ? MCO_INVALID_COROUTINE
                                   : len > co->bytes_stored ? MCO_NOT_ENOUGH_SPACE : MCO_SUCCESS;
    if (result != MCO_SUCCESS)
        return result;
    co->bytes_stored -= len;
#ifdef MCO_ZERO_MEMORY
    memset(co->storage + co->bytes_stored, 0, len);
#endif
    return MCO_SUCCESS;
}

size_t mco_get_bytes_stored(mco_coro *co)
{
    return co ? co->bytes_stored : 0;
}

size_t mco_get_storage_size(mco_coro *co)
{
    return co ? co->storage_size : 0;
}

const char *mco_result_description(mco_result res) /* programs print these: they are minicoro's */
{
    static const char *const texts[] = {
        "No error", "Generic error", "Invalid pointer", "Invalid coroutine", "Coroutine not suspended",
        "Coroutine not running", "Make context error", "Switch context error", "Not enough space", "Out of memory",
        "Invalid arguments", "Invalid operation", "Stack overflow"};
    return (unsigned)res < sizeof texts / sizeof *texts ? texts[res] : "Unknown error";
}

ACO__END_C

#endif
