/* A user's program, in C and in C++: every call once, every documented field with its documented type. */
#include "aco.h"
#ifndef ACO_CONFIG_NO_INLINE
#include "aco/in_stack_generator.h"
#endif
#define MINICORO_IMPL
#include "aco/backtrace.h"
#include "aco/compat/minicoro.h"
#include "aco/group.h"
#include "aco/pool.h"
#include "aco/sync.h"

#include <stdio.h>

#include "aco_assert_override.h"

static void count(void)
{
    int *n = (int *)aco_get_arg();
    assert(aco_co() == aco_get_co());
    for (int i = 0; i < 3; i++) {
        ++*n;
        if (likely(i % 2))
            aco_yield();
        else
            aco_yield1(aco_get_co());
    }
    if (unlikely(*n > 3))
        aco_exit1(aco_co());
    aco_exit();
}

static void print_fields(const aco_t *co)
{
    const aco_save_stack_t *save = &co->save_stack;
    const aco_share_stack_t *stack = co->share_stack;
    aco_t *owner = stack->owner, *main_co = co->main_co;
    aco_cofuncp_t fp = co->fp;
    char is_end = co->is_end, guarded = stack->guard_page_enabled;
    void *arg = co->arg, *bytes = save->ptr, *lowest = stack->ptr;
    assert(fp == count && arg && bytes && lowest && main_co && (owner == co || is_end));
    printf("sz %zu valid_sz %zu max_cpsz %zu ct_save %zu ct_restore %zu, stack of %zu, guarded %d\n", save->sz,
           save->valid_sz, save->max_cpsz, save->ct_save, save->ct_restore, stack->sz, guarded);
}

#ifndef ACO_CONFIG_NO_INLINE
ACO_GENERATOR(two, y, arg)
{
    aco_generate(y, arg);
    aco_generate(y, y);
}

ACO_IN_STACK_GENERATOR(two_in_stack, y, arg)
{
    aco_generate_in_stack(y, arg);
    aco_generate_in_stack(y, y);
}

static int generated(int *p)
{
    aco_generator_t g;
    aco_in_stack_t h;
    int n = 0;
    if (aco_generator_open(&g, two, p, NULL) != 0)
        return -1;
    while (aco_generator_next(&g))
        n += g.value == p ? 1 : 10;
    aco_generator_close(&g);
    aco_in_stack_open(&h, two_in_stack, p);
    while (aco_in_stack_next(&h) > 0)
        n += h.value == p ? 1 : 10;
    aco_in_stack_close(&h);
    return n;
}
#else
static int generated(int *p)
{
    return p ? 22 : 0;
}
#endif

static void *task(void *n)
{
    ++*(int *)n;
    return aco_task_yield() == 0 ? n : NULL;
}

static int scheduled(void)
{
    int n = 0;
    aco_t *one = aco_spawn(task, &n, NULL), *other = aco_spawn(task, &n, NULL);
    void *result = NULL;
    return aco_run() == 0 && aco_join(one, &result) == 0 && aco_join(other, NULL) == 0 && result == &n ? n : -1;
}

int main(void)
{
    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    assert(aco_is_main_co(main_co));
    aco_share_stack_t *stacks[2] = {aco_share_stack_new(0), aco_share_stack_new2(10000, 0)};
    for (int i = 0; i < 2; i++) {
        int *n = (int *)aco_mem_new(sizeof *n);
        *n = 0;
        assertptr(n);
        assertalloc_ptr(n);
        assertalloc_bool(n != NULL);
        aco_t *co = aco_create(main_co, stacks[i], 0, count, n);
        aco_t *other = aco_create(main_co, stacks[i], 200, count, n);
        for (int round = 0; round < 2; round++) {
            *n = 0;
            while (!co->is_end) {
                aco_resume(co);
                print_fields(co);
            }
            assert(*n == 3);
            aco_resume(other);
            aco_destroy(other);
            other = aco_create(main_co, stacks[i], 0, count, n);
            aco_reset(co, count, n);
        }
        aco_destroy(co);
        aco_destroy(other);
        aco_share_stack_destroy(stacks[i]);
        free(n);
    }
    aco_destroy(main_co);
    int local = 0;
    assert(generated(&local) == 22);
    assert(scheduled() == 2);
    printf("libaco API %d.%d.%d, Acorn %s\n", ACO_VERSION_MAJOR, ACO_VERSION_MINOR, ACO_VERSION_PATCH,
           ACORN_VERSION_STRING);
    return ACORN_VERSION_MAJOR + ACORN_VERSION_MINOR + ACORN_VERSION_PATCH == 0;
}
