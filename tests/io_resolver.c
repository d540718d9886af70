/* Names by the system's own resolver: tests/io/resolver.py runs this in namespaces of its own, where /etc has its
 * files and 127.0.0.53 is its name server. It has the names. */
#define _GNU_SOURCE
#include "io_dials.h"

#include <netdb.h>

static void fails(const char *host, int error)
{
    struct sockaddr_storage address;
    FAILS_WITH(aco_io_look_up("tcp", host, "80", &address, 1), error);
}

static void *look_ups(void *unused)
{
    list("tcp", "hosts.test", 1, "127.0.0.9 ");
    list("tcp", "both.test", 2, "::1 127.0.0.1 ");
    list("tcp4", "both.test", 1, "127.0.0.1 ");
    list("tcp6", "both.test", 1, "::1 ");
    list("tcp", "four.test", 1, "127.0.0.2 ");
    list("tcp", "alias.test", 1, "127.0.0.2 ");
    list("tcp", "four", 1, "127.0.0.2 "); /* by the domain to search */
    list("tcp", "large.test", 16, NULL);  /* by TCP, for it is too large for a datagram */
    fails("absent.test", ENOENT);
    FAILS_WITH(aco_io_dial("tcp6", "four.test", "80", NULL), ENOENT);
    return unused;
}

static void *failures(void *unused)
{
    fails("refused.test", EAGAIN);
    CHECK(strstr(aco_error_message(), gai_strerror(EAI_AGAIN)) != NULL);
    fails("silent.test", EAGAIN);
    return unused;
}

static void *reverse(void *unused)
{
    static const char *const names[][2] = {{"127.0.0.2", "four.test"}, {"127.0.0.9", "hosts.test"}};
    struct sockaddr_storage address;
    socklen_t length;
    char name[ACO_IO_NAME_SIZE];
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(aco_io_address_of_text("tcp", names[i][0], "80", &address, &length), 0);
        CHECK_EQ(aco_io_name_of((struct sockaddr *)&address, length, name, sizeof name), 0);
        CHECK(strcmp(name, names[i][1]) == 0);
    }
    CHECK_EQ(aco_io_address_of_text("tcp", "127.0.0.3", "80", &address, &length), 0);
    FAILS_WITH(aco_io_name_of((struct sockaddr *)&address, length, name, sizeof name), ENOENT);
    return unused;
}

/* The scope ends the call; the resolver still waits for an answer then. */
static void *scopes(void *unused)
{
    aco_scope_t scope;
    aco_scope_begin(&scope, aco_after(20 * ACO_MILLISECOND));
    fails("never.test", ETIMEDOUT);
    FAILS_WITH(aco_io_dial("tcp", "never.test", "80", NULL), ETIMEDOUT);
    aco_scope_end(&scope);
    return unused;
}

/* The first address, by IPv6, does not answer; the second one does. */
static void *dials(void *unused)
{
    net_t net;
    net_open(&net, "::1");
    connects(&net, "tcp", "both.test");
    connects(&net, "tcp4", "both.test");
    net_close(&net);
    return unused;
}

int main(void)
{
    static const aco_function_t tests[] = {look_ups, failures, reverse, dials, scopes};
    CHECK_EQ(aco_io_name_cache(0, 0), 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        run_task(tests[i], NULL);
    return check_result("io_resolver");
}
