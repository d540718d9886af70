/* Promise: aco/compat/minicoro.h has minicoro's calls, results and states. The programs here know nothing of Acorn:
 * they compile against the real minicoro.h too, with the same outcome. */
#define MINICORO_IMPL
#define MCO_NO_DEBUG
#include "minicoro.h"

#include "check.h"
#include "sanitizers.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the programs say ---- */

static char said[4096];

static void say(const char *text, int number)
{
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s%d ", text, number);
}

static void was_said(const char *expected)
{
    if (strcmp(said, expected) != 0) {
        fprintf(stderr, "said: %s\nnot:  %s\n", said, expected);
        CHECK(!"the same");
    }
    said[0] = '\0';
}

static mco_coro *make(void (*fn)(mco_coro *), void *data)
{
    mco_desc desc = mco_desc_init(fn, 0);
    mco_coro *co = NULL;
    desc.user_data = data;
    CHECK_EQ(mco_create(&co, &desc), MCO_SUCCESS);
    return co;
}

/* ---- A sequence: values through the storage, both ways ---- */

static void squares(mco_coro *co)
{
    int step;
    for (int i = 1;; i += step) {
        int square = i * i;
        mco_push(co, &square, sizeof square);
        mco_yield(co);
        if (mco_pop(co, &step, sizeof step) != MCO_SUCCESS || step == 0)
            break;
    }
    say("last", *(int *)mco_get_user_data(co));
}

static void a_sequence(void)
{
    static const int steps[] = {1, 1, 2, 5, 0};
    int data = 42, square = 0;
    mco_coro *co = make(squares, &data);
    CHECK(mco_get_user_data(co) == &data);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(mco_resume(co), MCO_SUCCESS);
        CHECK_EQ(mco_status(co), MCO_SUSPENDED);
        CHECK_EQ(mco_get_bytes_stored(co), sizeof square);
        CHECK_EQ(mco_pop(co, &square, sizeof square), MCO_SUCCESS);
        say("", square);
        mco_push(co, &steps[i], sizeof steps[i]);
    }
    CHECK_EQ(mco_resume(co), MCO_SUCCESS);
    CHECK_EQ(mco_status(co), MCO_DEAD);
    CHECK_EQ(mco_resume(co), MCO_NOT_SUSPENDED);
    CHECK_EQ(mco_destroy(co), MCO_SUCCESS);
    was_said("1 4 9 25 100 last42 ");
}

/* ---- Nesting: states and the running coroutine ---- */

enum { DEEPEST = 3 };
static mco_coro *nest[DEEPEST];

static void say_states(const char *where)
{
    say(where, 0);
    for (int i = 0; i < DEEPEST; i++)
        say("", nest[i] ? (int)mco_status(nest[i]) : -1);
}

static void descend(mco_coro *co)
{
    intptr_t depth = (intptr_t)mco_get_user_data(co);
    CHECK(mco_running() == co);
    if (depth + 1 < DEEPEST) {
        nest[depth + 1] = make(descend, (void *)(depth + 1));
        CHECK_EQ(mco_resume(nest[depth + 1]), MCO_SUCCESS);
        CHECK(mco_running() == co);
        say_states("between");
        CHECK_EQ(mco_resume(nest[depth + 1]), MCO_SUCCESS);
    } else {
        say_states("deepest");
        CHECK_EQ(mco_resume(nest[0]), MCO_NOT_SUSPENDED); /* is active */
        CHECK_EQ(mco_resume(co), MCO_NOT_SUSPENDED);
        CHECK_EQ(mco_yield(nest[0]), MCO_STACK_OVERFLOW); /* the stack is not its own */
        CHECK_EQ(mco_uninit(nest[0]), MCO_INVALID_OPERATION);
        CHECK_EQ(mco_destroy(co), MCO_INVALID_OPERATION);
    }
    CHECK_EQ(mco_yield(mco_running()), MCO_SUCCESS);
    CHECK(mco_running() == co);
    CHECK_EQ(mco_status(co), MCO_RUNNING);
}

static void nesting(void)
{
    CHECK(mco_running() == NULL);
    nest[0] = make(descend, NULL);
    CHECK_EQ(mco_resume(nest[0]), MCO_SUCCESS);
    CHECK(mco_running() == NULL);
    say_states("after");
    CHECK_EQ(mco_resume(nest[0]), MCO_SUCCESS);
    say_states("end");
    for (int i = 0; i < DEEPEST; i++)
        CHECK_EQ(mco_destroy(nest[i]), MCO_SUCCESS);
    was_said("deepest0 1 1 2 between0 1 2 3 between0 2 3 0 after0 3 0 0 end0 0 0 0 ");
}

/* ---- The storage ---- */

static void nothing(mco_coro *co)
{
    (void)co;
}

static void the_storage(void)
{
    mco_coro *co = make(nothing, NULL);
    char in[1024], out[1024] = {0};
    for (int i = 0; i < 1024; i++)
        in[i] = (char)(i * 7);
    CHECK_EQ(mco_get_storage_size(co), 1024);
    CHECK_EQ(mco_push(co, in, 1000), MCO_SUCCESS);
    CHECK_EQ(mco_push(co, in, 25), MCO_NOT_ENOUGH_SPACE);
    CHECK_EQ(mco_push(co, NULL, 1), MCO_INVALID_POINTER);
    CHECK_EQ(mco_push(co, NULL, 0), MCO_SUCCESS);
    CHECK_EQ(mco_push(co, "ab", 2), MCO_SUCCESS);
    CHECK_EQ(mco_get_bytes_stored(co), 1002);
    CHECK_EQ(mco_pop(co, out, 1003), MCO_NOT_ENOUGH_SPACE);
    CHECK_EQ(mco_peek(co, out, 1003), MCO_NOT_ENOUGH_SPACE);
    CHECK_EQ(mco_peek(co, NULL, 1), MCO_INVALID_POINTER);
    CHECK_EQ(mco_peek(co, out, 2), MCO_SUCCESS);
    CHECK(memcmp(out, "ab", 2) == 0); /* the last ones, in their order */
    CHECK_EQ(mco_get_bytes_stored(co), 1002);
    CHECK_EQ(mco_pop(co, NULL, 2), MCO_SUCCESS);
    CHECK_EQ(mco_pop(co, out, 600), MCO_SUCCESS);
    CHECK(memcmp(out, in + 400, 600) == 0);
    CHECK_EQ(mco_get_bytes_stored(co), 400);
    CHECK_EQ(mco_pop(co, out, 0), MCO_SUCCESS);
    CHECK_EQ(mco_resume(co), MCO_SUCCESS); /* it stays when the coroutine has ended */
    CHECK_EQ(mco_pop(co, out, 400), MCO_SUCCESS);
    CHECK(memcmp(out, in, 400) == 0);
    CHECK_EQ(mco_push(co, in, 1024), MCO_SUCCESS);
    CHECK_EQ(mco_destroy(co), MCO_SUCCESS);
}

/* ---- Memory of the program's own ---- */

static size_t allocated, allocations;
static int failing, allocator_arg;

static void *allocate(size_t size, void *arg)
{
    CHECK(arg == &allocator_arg);
    if (failing)
        return NULL;
    allocated += size;
    allocations++;
    return calloc(1, size);
}

static void deallocate(void *p, size_t size, void *arg)
{
    CHECK(arg == &allocator_arg);
    allocated -= size;
    free(p);
}

static void stores_much(mco_coro *co)
{
    char many[512];
    memset(many, 'x', sizeof many);
    CHECK_EQ(mco_push(co, many, sizeof many), MCO_SUCCESS);
    mco_yield(co);
    CHECK_EQ(mco_get_bytes_stored(co), 0);
}

static void own_allocator(void)
{
    mco_desc desc = mco_desc_init(stores_much, 40000);
    mco_coro *co = NULL;
    CHECK(desc.stack_size >= 40000);
    desc.alloc_cb = allocate;
    desc.dealloc_cb = deallocate;
    desc.allocator_data = &allocator_arg;
    desc.storage_size = 512;
    CHECK_EQ(mco_create(&co, &desc), MCO_SUCCESS);
    CHECK(allocated > 512 && allocations == 1);
    CHECK_EQ(mco_get_storage_size(co), 512);
    CHECK_EQ(mco_resume(co), MCO_SUCCESS);
    CHECK_EQ(mco_push(co, "", 1), MCO_NOT_ENOUGH_SPACE);
    CHECK_EQ(mco_pop(co, NULL, 512), MCO_SUCCESS);
    CHECK_EQ(mco_destroy(co), MCO_SUCCESS); /* suspended */
    CHECK_EQ(allocated, 0);
    failing = 1;
    CHECK_EQ(mco_create(&co, &desc), MCO_OUT_OF_MEMORY);
    CHECK(co == NULL);
    failing = 0;
    desc.alloc_cb = NULL;
    CHECK_EQ(mco_create(&co, &desc), MCO_INVALID_ARGUMENTS);
}

static void own_memory(void)
{
    int data = 7, square = 0;
    mco_desc desc = mco_desc_init(squares, 0);
    mco_coro *co = malloc(desc.coro_size);
    desc.user_data = &data;
    for (int i = 0; i < 3; i++) { /* the same memory again */
        CHECK_EQ(mco_init(co, &desc), MCO_SUCCESS);
        CHECK_EQ(mco_status(co), MCO_SUSPENDED);
        CHECK_EQ(mco_resume(co), MCO_SUCCESS);
        CHECK_EQ(mco_pop(co, &square, sizeof square), MCO_SUCCESS);
        CHECK_EQ(mco_get_bytes_stored(co), 0);
        if (i == 2)
            CHECK_EQ(mco_resume(co), MCO_SUCCESS); /* ends: nothing is stored */
        CHECK_EQ(mco_uninit(co), MCO_SUCCESS);
        CHECK_EQ(mco_status(co), MCO_DEAD);
        CHECK_EQ(mco_resume(co), MCO_NOT_SUSPENDED);
    }
    free(co);
    was_said("last7 ");
}

/* ---- Stacks ---- */

static int sum_to(int n)
{
    volatile char frame[1000];
    frame[n % 1000] = 1;
    return n ? n + sum_to(n - frame[n % 1000]) : 0;
}

static void recurses(mco_coro *co)
{
    say("sum", sum_to((int)(intptr_t)mco_get_user_data(co)));
}

static void stacks(void)
{
    mco_desc desc = mco_desc_init(recurses, 4 << 20);
    mco_coro *co;
    desc.user_data = (void *)(intptr_t)2000; /* two megabytes and more */
    CHECK_EQ(mco_create(&co, &desc), MCO_SUCCESS);
    CHECK(co->stack_size >= 4 << 20);
    CHECK_EQ(mco_resume(co), MCO_SUCCESS);
    CHECK_EQ(mco_destroy(co), MCO_SUCCESS);
    was_said("sum2001000 ");
    CHECK(mco_desc_init(recurses, 1).stack_size >= 16384); /* a minimum */
    desc.stack_size = 1;
    CHECK_EQ(mco_create(&co, &desc), MCO_INVALID_ARGUMENTS);
    CHECK(co == NULL);
}

/* ---- Many, in turns ---- */

static void adds(mco_coro *co)
{
    long *sum = mco_get_user_data(co);
    for (int i = 1; i <= 10; i++) {
        *sum += i;
        mco_yield(co);
    }
}

static void many(void)
{
    enum { MANY = 500 };
    static mco_coro *all[MANY];
    long sum = 0;
    for (int i = 0; i < MANY; i++)
        all[i] = make(adds, &sum);
    for (int round = 0; round < 11; round++)
        for (int i = 0; i < MANY; i++)
            CHECK_EQ(mco_resume(all[i]), MCO_SUCCESS);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(mco_status(all[i]), MCO_DEAD);
        mco_destroy(all[i]);
    }
    CHECK_EQ(sum, 55L * MANY);
}

/* ---- Threads ---- */

static void *resumes_there(void *arg)
{
    CHECK(mco_running() == NULL);
    CHECK_EQ(mco_resume(arg), MCO_SUCCESS);
    return arg;
}

static void says_running(mco_coro *co)
{
    for (int i = 0; i < 3; i++) {
        CHECK(mco_running() == co);
        say("turn", i);
        mco_yield(co);
    }
}

static void threads(void)
{
    pthread_t thread;
    mco_coro *co = make(says_running, NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_create(&thread, NULL, resumes_there, co), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(mco_status(co), MCO_SUSPENDED);
    }
    CHECK_EQ(mco_resume(co), MCO_SUCCESS);
    CHECK_EQ(mco_status(co), MCO_DEAD);
    CHECK_EQ(mco_destroy(co), MCO_SUCCESS);
    was_said("turn0 turn1 turn2 ");
}

/* ---- Misuse ---- */

static void misuse(void)
{
    mco_desc desc = mco_desc_init(NULL, 0), too_small = mco_desc_init(nothing, 0);
    mco_coro *co = make(nothing, NULL), *none = co;
    char byte;
    CHECK_EQ(mco_create(NULL, &desc), MCO_INVALID_POINTER);
    CHECK_EQ(mco_create(&none, &desc), MCO_INVALID_ARGUMENTS);
    CHECK(none == NULL);
    none = co;
    CHECK_EQ(mco_create(&none, NULL), MCO_INVALID_ARGUMENTS);
    CHECK(none == NULL);
    too_small.coro_size = 1;
    CHECK_EQ(mco_init(NULL, &desc), MCO_INVALID_COROUTINE);
    CHECK_EQ(mco_uninit(NULL), MCO_INVALID_COROUTINE);
    CHECK_EQ(mco_destroy(NULL), MCO_INVALID_COROUTINE);
    CHECK_EQ(mco_resume(NULL), MCO_INVALID_COROUTINE);
    CHECK_EQ(mco_yield(NULL), MCO_INVALID_COROUTINE);
    CHECK_EQ(mco_yield(co), MCO_STACK_OVERFLOW); /* outside */
    CHECK_EQ(mco_status(NULL), MCO_DEAD);
    CHECK(mco_get_user_data(NULL) == NULL);
    CHECK_EQ(mco_push(NULL, &byte, 1), MCO_INVALID_COROUTINE);
    CHECK_EQ(mco_pop(NULL, &byte, 1), MCO_INVALID_COROUTINE);
    CHECK_EQ(mco_pop(NULL, NULL, 0), MCO_INVALID_COROUTINE);
    CHECK_EQ(mco_peek(NULL, &byte, 1), MCO_INVALID_COROUTINE);
    CHECK_EQ(mco_get_bytes_stored(NULL) + mco_get_storage_size(NULL), 0);
    CHECK_EQ(mco_resume(co), MCO_SUCCESS);
    CHECK_EQ(mco_destroy(co), MCO_SUCCESS);
    co = malloc(too_small.coro_size + sizeof *co);
    CHECK_EQ(mco_init(co, &too_small), MCO_INVALID_ARGUMENTS);
    free(co);
    CHECK(strcmp(mco_result_description(MCO_SUCCESS), "No error") == 0);
    CHECK(strcmp(mco_result_description(MCO_NOT_SUSPENDED), "Coroutine not suspended") == 0);
    CHECK(strcmp(mco_result_description(MCO_STACK_OVERFLOW), "Stack overflow") == 0);
    CHECK(strcmp(mco_result_description((mco_result)99), "Unknown error") == 0);
}

/* ---- What a collector scans ---- */

static void holds(mco_coro *co)
{
    void *volatile held = mco_get_user_data(co);
    mco_yield(co);
    CHECK(held == mco_get_user_data(co));
}

static void a_collector(void)
{
    int object, found = 0;
    mco_coro *co = make(holds, &object);
    void **word = co->stack_base;
    CHECK_EQ(mco_resume(co), MCO_SUCCESS);
    for (size_t i = 0; i < co->stack_size / sizeof *word; i++)
        found |= word[i] == &object;
    CHECK(found || UNDER_ASAN); /* where local variables may be elsewhere */
    CHECK_EQ(mco_resume(co), MCO_SUCCESS);
    CHECK_EQ(mco_destroy(co), MCO_SUCCESS);
}

int main(void)
{
    a_collector();
    a_sequence();
    nesting();
    the_storage();
    own_allocator();
    own_memory();
    stacks();
    many();
    threads();
    misuse();
    return check_result("compat_minicoro");
}
