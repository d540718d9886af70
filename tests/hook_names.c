/* Look-ups of names by hooked tasks (aco/hook.h) leave half of the pool's threads to files and functions. Instead of
 * libc's the library tests/hook/resolver.c does them. */
#define _GNU_SOURCE
#include <aco/hook.h>
#include <aco/offload.h>
#include "io_tests.h"
#include "until.h"

#include <netdb.h>
#include <netinet/in.h>

enum { TASKS = 10 };

extern unsigned resolver_gate_is_closed, resolver_at_gate;

static unsigned load(const unsigned *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void *looks_up(void *unused)
{
    struct addrinfo *found;
    CHECK_EQ(aco_hook_begin(), 0);
    CHECK_EQ(getaddrinfo("blocked.test", "80", NULL, &found), EAI_NONAME);
    return unused;
}

static void *looks_up_address(void *unused)
{
    struct sockaddr_in address = {0};
    char host[NI_MAXHOST];
    CHECK_EQ(aco_hook_begin(), 0);
    address.sin_family = AF_INET;
    CHECK_EQ(getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, 0), EAI_NONAME);
    return unused;
}

static void *number_at_gate(void *number)
{
    *(unsigned *)number = load(&resolver_at_gate);
    return NULL;
}

static void *test_half_of_the_pool(void *look_up)
{
    aco_offload_stats_t stats = {0, 0, 0};
    aco_group_t group;
    unsigned number = 0;
    __atomic_store_n(&resolver_gate_is_closed, 1, __ATOMIC_RELEASE);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < TASKS; i++)
        member(&group, *(aco_function_t *)look_up, NULL);
    UNTIL(load(&resolver_at_gate) == 2);
    CHECK_EQ(aco_offload(number_at_gate, &number, NULL, NULL), 0);
    CHECK_EQ(number, 2);
    CHECK_EQ(aco_offload_stats(&stats), 0);
    CHECK_EQ(stats.queued, TASKS - 2);
    __atomic_store_n(&resolver_gate_is_closed, 0, __ATOMIC_RELEASE);
    CHECK_EQ(aco_group_end(&group), 0);
    return NULL;
}

int main(void)
{
    aco_function_t look_ups[] = {looks_up, looks_up_address};
    alarm(60);
    CHECK_EQ(aco_offload_limits(4, 10 * ACO_SECOND), 0);
    for (int i = 0; i < 2; i++)
        run_task(test_half_of_the_pool, &look_ups[i]);
    return check_result("hook_names");
}
