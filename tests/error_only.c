/* Promise: a program that makes no coroutine links with the archive, by link-time optimisation too: of the member with
 * the thread's record only assembly names the record. */
#include "aco.h"
#include "check.h"

int main(void)
{
    aco_allocator_t none = {0};
    CHECK_EQ(aco_set_allocator(&none), -1);
    CHECK(*aco_error_message());
    return check_result("error_only");
}
