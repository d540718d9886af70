/* What reviewers found, once each. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "child.h"

#include <errno.h>
#include <pthread.h>

static aco_t *co;

static void on_thread(void *(*act)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, act, NULL) == 0);
    pthread_join(thread, NULL);
}

static void *yields(void *arg)
{
    for (;;)
        aco_yield_value(arg);
    return NULL;
}

static void *returns(void *arg)
{
    return arg;
}

static void *make_and_run(void *unused)
{
    co = aco_new(yields, NULL, NULL);
    aco_send(co, NULL);
    return unused;
}

static void *divide(void *arg)
{
    volatile double three = 3;
    *(double *)arg = 1 / three;
    return NULL;
}

/* A thread that inherited a heap, and so keeps a destroyed coroutine, before it ever made one itself. */
static void *inherit(void *unused)
{
    double third = 0;
    aco_cancel(co);
    aco_destroy(co);
    co = aco_new(divide, &third, NULL);
    aco_send(co, NULL);
    CHECK(third > 0.33 && third < 0.34);
    aco_destroy(co);
    return unused;
}

static int visits;

static int visit(aco_t *visited, void *unused)
{
    (void)unused;
    visits += visited == co;
    return 0;
}

static void *destroy(void *unused)
{
    (void)unused;
    (aco_destroy)(co); /* without a debug build's warning */
    return NULL;
}

static void destroy_again(void)
{
    on_thread(destroy);
}

/* A coroutine on a share stack that another thread destroyed is destroyed for its own thread too. */
static void destroyed_elsewhere(void)
{
    aco_options_t options = {0};
    options.stack = aco_share_stack_new(0);
    co = aco_new(yields, NULL, &options);
    aco_send(co, NULL);
    on_thread(destroy);
    aco_each(visit, NULL);
    CHECK_EQ(visits, 0);
    CHECK(aco_send(co, NULL) == ACO_ERROR && errno == ESRCH);
    CHECK(aco_set_name(co, "late") == -1 && errno == ESRCH);
    ABORTS(destroy_again, "aco_destroy", co, "destroyed before");
    aco_share_stack_destroy(options.stack);
}

static void create_on_private_stack(void)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_create(main_co, co->share_stack, 0, aco_exit, NULL);
}

static void names_and_stacks(void)
{
    co = aco_new(returns, NULL, NULL);
    CHECK_EQ(aco_set_name(co, "worker-17"), 0);
    CHECK_EQ(aco_set_name(co, aco_name(co)), 0);
    CHECK(strcmp(aco_name(co), "worker-17") == 0);
    CHECK_EQ(aco_set_name(co, aco_name(co) + 7), 0);
    CHECK(strcmp(aco_name(co), "17") == 0);
    ABORTS(create_on_private_stack, "aco_create", co, "owns the given stack");
    aco_send(co, NULL);
    aco_destroy(co);
}

int main(void)
{
    on_thread(make_and_run);
    on_thread(inherit);
    destroyed_elsewhere();
    names_and_stacks();
    return check_result("found");
}
