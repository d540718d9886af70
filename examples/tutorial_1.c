/* Tutorial 1: the statistics of a coroutine's save area, and what they are for.
 *
 * Two coroutines on one share stack displace each other's frames at every switch between them. How many bytes that
 * moves depends on what is live where they yield. A coroutine with a stack to itself never has anything moved. */
#include "aco.h"

#include <stdio.h>

#include "aco_assert_override.h"

enum { ROUNDS = 10, LIVE = 500 };

/* `i` is on the stack: were nothing there, nothing would be saved. */
static void small(void)
{
    for (volatile int i = 0; i < ROUNDS; i++)
        aco_yield();
    aco_exit();
}

/* Keeps LIVE bytes on its stack across every yield; volatile, as a compiler may leave out an array that it sees
 * through. */
static void large(void)
{
    volatile unsigned char live[LIVE];
    for (int i = 0; i < LIVE; i++)
        live[i] = (unsigned char)(i % 251);
    for (int i = 0; i < ROUNDS; i++)
        aco_yield();
    for (int i = 0; i < LIVE; i++)
        assert(live[i] == i % 251);
    aco_exit();
}

static void run_to_the_end(aco_t *a, aco_t *b)
{
    for (int i = 0; i <= ROUNDS; i++) {
        aco_resume(a);
        aco_resume(b);
    }
    assert(a->is_end && b->is_end);
}

static void print(const char *name, const aco_t *co)
{
    const aco_save_stack_t *save = &co->save_stack;
    printf("%-24s save area %4zu bytes, at most %4zu copied at once, %2zu times saved, %2zu times restored\n", name,
           save->sz, save->max_cpsz, save->ct_save, save->ct_restore);
}

/* Every yield but none of the ends is followed by the other coroutine, and so by one save and later one restore. */
static void check_shared(const aco_t *co, size_t live)
{
    assert(co->save_stack.ct_save == ROUNDS && co->save_stack.ct_restore == ROUNDS);
    assert(co->save_stack.max_cpsz >= live && co->save_stack.sz >= co->save_stack.max_cpsz);
    assert(co->save_stack.valid_sz == 0);
}

int main(void)
{
    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *shared = aco_share_stack_new(0), *own = aco_share_stack_new(0);

    aco_t *first = aco_create(main_co, shared, 0, large, NULL);
    aco_t *second = aco_create(main_co, shared, 0, small, NULL);
    run_to_the_end(first, second);
    print("large, shared stack:", first);
    print("small, shared stack:", second);
    check_shared(first, LIVE);
    check_shared(second, 1);
    assert(second->save_stack.max_cpsz < first->save_stack.max_cpsz);

    /* max_cpsz is the size to ask for: the save areas of later coroutines like it never have to grow. */
    aco_t *fitting = aco_create(main_co, shared, first->save_stack.max_cpsz, large, NULL);
    aco_t *other = aco_create(main_co, shared, 0, small, NULL);
    const void *area = fitting->save_stack.ptr;
    run_to_the_end(fitting, other);
    print("large, fitting area:", fitting);
    check_shared(fitting, LIVE);
    assert(fitting->save_stack.ptr == area);

    aco_t *alone = aco_create(main_co, own, 0, large, NULL);
    while (!alone->is_end)
        aco_resume(alone);
    print("large, private stack:", alone);
    assert(alone->save_stack.ct_save == 0 && alone->save_stack.ct_restore == 0 && alone->save_stack.max_cpsz == 0);

    aco_destroy(alone);
    aco_destroy(other);
    aco_destroy(fitting);
    aco_destroy(second);
    aco_destroy(first);
    aco_share_stack_destroy(own);
    aco_share_stack_destroy(shared);
    aco_destroy(main_co);
    return 0;
}
