/* Promise: where the library does not switch shadow stacks, or the kernel gives none, a thread with a shadow stack
 * cannot make a coroutine or generator; the call says why. Linked with --wrap=aco__has_shadow_stack, in place of a
 * processor and a kernel that have them. */
#include "aco.h"
#include "aco/generator.h"
#include "aco/scheduler.h"
#include "child.h"
#include "fails.h"

static int simulated;

int __real_aco__has_shadow_stack(void);
int __wrap_aco__has_shadow_stack(void);
int __wrap_aco__has_shadow_stack(void)
{
    return simulated || __real_aco__has_shadow_stack();
}

static void *nothing(void *arg)
{
    return arg;
}

ACO_GENERATOR(empty, y, arg)
{
}

static void entry(void)
{
}

static void create(void)
{
    aco_create(aco_create(NULL, NULL, 0, NULL, NULL), aco_share_stack_new(0), 0, entry, NULL);
}

int main(void)
{
    aco_generator_t g;
    aco_t *co;
    simulated = 1;
    FAILS(aco_new(nothing, NULL, NULL), NULL, ENOTSUP, "aco_new", NULL, "shadow stack");
    FAILS(aco_spawn(nothing, NULL, NULL), NULL, ENOTSUP, "aco_spawn", NULL, "shadow stack");
    FAILS(aco_generator_open(&g, empty, NULL, NULL), -1, ENOTSUP, "aco_generator_open", NULL, "shadow stack");
    ABORTS(create, "aco_create", NULL, "shadow stack");

    simulated = 0;
    co = aco_new(nothing, &g, NULL);
    CHECK(aco_send(co, NULL) == &g);
    aco_destroy(co);
    return check_result("shadow_stack");
}
