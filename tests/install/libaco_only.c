/* A program with libaco's calls alone: frames of many sizes on a share stack, coroutines that resume others, and
 * coroutines that another thread destroys. */
#include "aco.h"
#include <pthread.h>
#include <stdint.h>

enum { MANY = 200, TURNS = 150 };

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%d: %s\n", __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

/* Yields with a frame of some `depth` * 48 bytes whose contents must stay. */
static __attribute__((noinline)) uintptr_t frames(uintptr_t depth, uintptr_t seed)
{
    volatile uintptr_t words[4];
    int i;
    for (i = 0; i < 4; i++)
        words[i] = seed ^ (depth + (uintptr_t)i);
    if (depth)
        CHECK(frames(depth - 1, seed) == seed);
    else
        aco_yield();
    for (i = 0; i < 4; i++)
        CHECK(words[i] == (seed ^ (depth + (uintptr_t)i)));
    return seed;
}

static void turns(void)
{
    uintptr_t seed = (uintptr_t)aco_get_arg(), turn;
    for (turn = 0; turn < TURNS; turn++)
        frames((seed + turn / 70 * 97) % 90, seed << 20 ^ turn); /* save areas grow, and shrink later */
    aco_exit();
}

static void resumes(void)
{
    aco_t **others = (aco_t **)aco_get_arg();
    int i;
    for (i = 0; !others[0]->is_end; i++) {
        aco_resume(others[0]);
        aco_resume(others[1]);
        if (i % 3 == 0)
            aco_yield();
    }
    aco_exit();
}

static void many(aco_t *main_co, aco_share_stack_t *stack, size_t save_sz)
{
    static aco_t *cos[MANY];
    uintptr_t i;
    for (i = 0; i < MANY; i++)
        cos[i] = aco_create(main_co, stack, save_sz, turns, (void *)i);
    while (!cos[MANY - 1]->is_end)
        for (i = 0; i < MANY; i++)
            aco_resume(cos[i]);
    for (i = 0; i < MANY; i++) {
        CHECK(cos[i]->is_end);
        aco_destroy(cos[i]);
    }
}

static void nested(aco_t *main_co, aco_share_stack_t *stack, aco_share_stack_t *other)
{
    aco_t *others[2], *outer;
    others[0] = aco_create(main_co, stack, 0, turns, (void *)1);
    others[1] = aco_create(main_co, other, 0, turns, (void *)2);
    outer = aco_create(main_co, stack, 0, resumes, others);
    while (!outer->is_end)
        aco_resume(outer);
    CHECK(others[0]->is_end && others[1]->is_end);
    aco_destroy(outer);
    aco_destroy(others[0]);
    aco_destroy(others[1]);
}

static void *destroys(void *co)
{
    aco_destroy((aco_t *)co);
    return NULL;
}

static void destroyed_elsewhere(aco_t *main_co, aco_share_stack_t *stack)
{
    aco_t *co = aco_create(main_co, stack, 0, turns, (void *)3);
    pthread_t thread;
    aco_resume(co);
    CHECK(pthread_create(&thread, NULL, destroys, co) == 0 && pthread_join(thread, NULL) == 0);
}

static void *all(void *arg)
{
    aco_t *main_co;
    aco_share_stack_t *stack, *other;
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    stack = aco_share_stack_new(0);
    other = aco_share_stack_new2(1 << 16, 0);
    many(main_co, stack, 0);
    many(main_co, other, 100);
    many(main_co, stack, 4096);
    nested(main_co, stack, other);
    destroyed_elsewhere(main_co, other);
    many(main_co, other, 0);
    aco_share_stack_destroy(stack);
    aco_share_stack_destroy(other);
    aco_destroy(main_co);
    return arg;
}

int main(void)
{
    pthread_t thread;
    all(NULL);
    CHECK(pthread_create(&thread, NULL, all, NULL) == 0 && pthread_join(thread, NULL) == 0);
    all(NULL);
    return 0;
}
