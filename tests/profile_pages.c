/* Measuring of stacks where the system's pages are larger than a stack: aco/pool.h. */
#include "system/system.h"
#include <aco/pool.h>
#include "check.h"

#include <unistd.h>

enum { PAGE = 64 << 10, SIZE = 16 << 10 };

static long has_large_pages(int name)
{
    return name == _SC_PAGESIZE ? PAGE : sysconf(name);
}

static void *yields(void *arg)
{
    aco_yield();
    return arg;
}

static int sees_usage(const aco_stack_usage_t *usage, void *arg)
{
    CHECK(usage->made == 1 && usage->deepest == *(const size_t *)arg && usage->mean_depth == usage->deepest);
    return 0;
}

/* Promise: such a stack counts as used up, wherever the page starts that it shares: the system's are smaller, so the
 * start may be anywhere, also within the stack. */
int main(void)
{
    aco_options_t o = {0};
    void *lo, *hi;
    size_t most;
    aco_t *co;
    aco__system.sysconf = has_large_pages; /* before the library asks */
    o.stack_size = SIZE;
    o.flags = ACO_NO_GUARD;
    CHECK_EQ(aco_stack_measure(1), 0);
    co = aco_new(yields, NULL, &o);
    CHECK_EQ(aco_stack_bounds(co, &lo, &hi), 0);
    aco_resume(co);
    CHECK(aco_stack_high_water(co) >= SIZE && aco_stack_high_water(co) <= (char *)hi - (char *)lo);
    most = (size_t)aco_stack_high_water(co);
    aco_resume(co);
    CHECK_EQ(aco_stack_usage(sees_usage, &most), 0);
    aco_destroy(co);
    return check_result("profile_pages");
}
