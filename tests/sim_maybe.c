/* Promise: a program with ACO_MAYBE() need not be linked with acorn_sim, and never takes the rare way then. */
#include "check.h"

#include "aco/sim.h"

int main(void)
{
    CHECK(!ACO_MAYBE(1));
    return check_result("sim_maybe");
}
