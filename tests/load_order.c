/* Promise: a constructor of a program may use the library, even one of the first priority that programs may have. What
 * it makes is as good as what main() makes. */
#include "aco.h"
#include "check.h"

static int value;
static aco_t *co, *inner;

static void *yields(void *arg)
{
    aco_yield_value(arg);
    return arg;
}

static void *resumes(void *arg)
{
    aco_send(inner, arg);
    aco_yield_value(arg);
    return arg;
}

__attribute__((constructor(101))) static void early(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t shared = {0};
    shared.stack = stack;
    CHECK_EQ(aco_set_slot(NULL, &value), 0); /* makes the scratch state */
    inner = aco_new(yields, NULL, &shared);
    co = aco_new(resumes, NULL, &shared); /* resumes one on its own stack, by the scratch stack */
    CHECK(co && inner);
    aco_send(co, NULL);
}

int main(void)
{
    CHECK(aco_slot(NULL) == &value);
    CHECK_EQ(aco_state(co), ACO_STATE_SUSPENDED);
    CHECK_EQ(aco_cancel(co), 0);
    CHECK_EQ(aco_cancel(inner), 0);
    aco_destroy(co);
    aco_destroy(inner);
    return check_result("load_order");
}
