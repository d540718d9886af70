/* Names (include/aco/names.h), and dialling several addresses. A resolver of the test's own stands in the system's
 * table (src/system/system.h). All connections are on the loopback. */
#include "replace.h"

#include <aco/file.h>
#include <aco/names.h>
#include <aco/offload.h>
#include "io_dials.h"
#include "until.h"

#include <netdb.h>
#include <netinet/in.h>

/* ---- The resolver ---- */

static struct {
    const char *host;
    int failure, error;
    const char *addresses[18];
} const hosts[] = {
    {"five.test", 0, 0, {"127.0.0.1", "127.0.0.2", "::1", "127.0.0.3", "::2"}},
    {"six.test", 0, 0, {"::1"}},
    {"many.test", 0, 0, {"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7",
                         "127.0.0.8", "127.0.0.9", "127.0.0.10", "127.0.0.11", "127.0.0.12", "127.0.0.13",
                         "127.0.0.14", "127.0.0.15", "127.0.0.16", "127.0.0.17", "127.0.0.18"}},
    {"one.test", 0, 0, {"127.0.0.1"}},
    {"third.test", 0, 0, {"127.0.0.3"}},
    {"refused.test", 0, 0, {"127.0.0.3", "::1", "127.0.0.1"}},
    {"slow.test", 0, 0, {"127.0.0.2", "127.0.0.1"}},
    {"dead.test", 0, 0, {"127.0.0.2", "127.0.0.2"}},
    {"unreachable-first.test", 0, 0, {"255.255.255.255", "127.0.0.3"}},
    {"unreachable-last.test", 0, 0, {"127.0.0.3", "255.255.255.255"}},
    {"blocked.test", 0, 0, {"127.0.0.1"}},
    {"no-address.test", 0, 0, {NULL}},
    {"later.test", EAI_AGAIN, 0, {NULL}},
    {"refusing.test", EAI_FAIL, 0, {NULL}},
    {"full.test", EAI_MEMORY, 0, {NULL}},
    {"system.test", EAI_SYSTEM, EMFILE, {NULL}},
};
static unsigned lookups, lists, gate_is_closed, at_gate, came_to_gate;

static unsigned load(const unsigned *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static struct addrinfo *info_of(const char *text)
{
    struct {
        struct addrinfo info;
        struct sockaddr_storage address;
    } *both = calloc(1, sizeof *both);
    struct sockaddr_in *in = (struct sockaddr_in *)&both->address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&both->address;
    int is_ipv6 = strchr(text, ':') != NULL;
    both->info.ai_family = both->address.ss_family = is_ipv6 ? AF_INET6 : AF_INET;
    both->info.ai_addr = (struct sockaddr *)&both->address;
    both->info.ai_addrlen = is_ipv6 ? sizeof *in6 : sizeof *in;
    if (is_ipv6)
        CHECK_EQ(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
    else
        CHECK_EQ(inet_pton(AF_INET, text, &in->sin_addr), 1);
    return &both->info;
}

static void wait_at_gate(void)
{
    __atomic_fetch_add(&at_gate, 1, __ATOMIC_ACQ_REL);
    __atomic_fetch_add(&came_to_gate, 1, __ATOMIC_ACQ_REL);
    while (load(&gate_is_closed))
        usleep(100);
    __atomic_fetch_sub(&at_gate, 1, __ATOMIC_ACQ_REL);
}

static int resolve(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    struct addrinfo **end = found;
    size_t i = 0;
    CHECK(service == NULL && hints->ai_socktype == SOCK_STREAM);
    __atomic_fetch_add(&lookups, 1, __ATOMIC_ACQ_REL);
    if (strcmp(host, "blocked.test") == 0 && load(&gate_is_closed))
        wait_at_gate();
    while (i < sizeof hosts / sizeof *hosts && strcasecmp(hosts[i].host, host) != 0)
        i++;
    if (i == sizeof hosts / sizeof *hosts)
        return EAI_NONAME;
    errno = hosts[i].error;
    if (hosts[i].failure)
        return hosts[i].failure;
    *found = NULL;
    for (int n = 0; n < 18 && hosts[i].addresses[n]; n++) {
        int family = strchr(hosts[i].addresses[n], ':') ? AF_INET6 : AF_INET;
        if (hints->ai_family != AF_UNSPEC && hints->ai_family != family)
            continue;
        *end = info_of(hosts[i].addresses[n]);
        end = &(*end)->ai_next;
        __atomic_fetch_add(&lists, 1, __ATOMIC_ACQ_REL);
    }
    return *found || !hosts[i].addresses[0] ? 0 : EAI_NONAME;
}

static void release(struct addrinfo *found)
{
    while (found) {
        struct addrinfo *next = found->ai_next;
        free(found);
        found = next;
        __atomic_fetch_sub(&lists, 1, __ATOMIC_ACQ_REL);
    }
}

static int name_of(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *service,
                   socklen_t service_size, int flags)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
    CHECK(length == sizeof *in && !service && !service_size && flags == NI_NAMEREQD);
    if (address->sa_family != AF_INET)
        return EAI_FAMILY;
    if (in->sin_addr.s_addr != htonl(INADDR_LOOPBACK))
        return EAI_NONAME;
    CHECK(host_size >= 10);
    strcpy(host, "one.test");
    return 0;
}

/* ---- Looking up ---- */

static void fails(const char *host, int error, const char *message)
{
    struct sockaddr_storage address;
    char start[80];
    FAILS_WITH(aco_io_look_up("tcp", host, "80", &address, 1), error);
    snprintf(start, sizeof start, "aco_io_look_up: tcp %.40s:80: ", host);
    CHECK(strstr(aco_error_message(), start) == aco_error_message());
    CHECK(strstr(aco_error_message(), message) != NULL);
}

static void *look_ups(void *unused)
{
    char too_long[300];
    struct sockaddr_storage addresses[2];
    list("tcp", "five.test", 5, "127.0.0.1 ::1 127.0.0.2 ::2 127.0.0.3 "); /* in turns */
    list("tcp4", "five.test", 3, "127.0.0.1 127.0.0.2 127.0.0.3 ");
    list("tcp6", "five.test", 2, "::1 ::2 ");
    list("tcp", "six.test", 1, "::1 ");
    list("tcp", "many.test", 16, NULL);
    list("tcp", "127.0.0.1", 1, "127.0.0.1 ");
    list("tcp", "localhost", 2, "::1 127.0.0.1 ");
    CHECK_EQ(aco_io_look_up("tcp", "five.test", "1", addresses, 2), 5);
    fails("absent.test", ENOENT, gai_strerror(EAI_NONAME));
    fails("no-address.test", ENOENT, gai_strerror(EAI_NONAME));
    fails("later.test", EAGAIN, gai_strerror(EAI_AGAIN));
    fails("refusing.test", EIO, gai_strerror(EAI_FAIL));
    fails("full.test", ENOMEM, gai_strerror(EAI_MEMORY));
    fails("system.test", EMFILE, strerror(EMFILE));
    fails("127.1", EINVAL, "host");
    fails("a.0x7F", EINVAL, "host");
    fails("a.1.", EINVAL, "host");
    fails("a b.test", EINVAL, "host");
    FAILS_WITH(aco_io_look_up("tcp4", "six.test", "80", addresses, 2), ENOENT);
    FAILS_WITH(aco_io_look_up("tcp", "one.test", "http", addresses, 2), EINVAL);
    CHECK(strstr(aco_error_message(), "tcp one.test:http: the port is ") != NULL);
    FAILS_WITH(aco_io_look_up("tcp5", "one.test", "80", addresses, 2), EINVAL);
    CHECK(strstr(aco_error_message(), "the network is unknown") != NULL);
    memset(too_long, 'a', sizeof too_long);
    too_long[sizeof too_long - 1] = 0;
    FAILS_WITH(aco_io_look_up("tcp", too_long, "80", addresses, 2), EINVAL);
    CHECK_EQ(lists, 0); /* all were freed */
    return unused;
}

static void *reverse(void *unused)
{
    struct sockaddr_in address;
    struct sockaddr_in6 other = {0};
    char name[ACO_IO_NAME_SIZE];
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(aco_io_name_of((struct sockaddr *)&address, sizeof address, name, sizeof name), 0);
    CHECK(strcmp(name, "one.test") == 0);
    CHECK_EQ(aco_io_name_of((struct sockaddr *)&address, sizeof address, name, 9), 0);
    FAILS_WITH(aco_io_name_of((struct sockaddr *)&address, sizeof address, name, 8), ENOSPC);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    FAILS_WITH(aco_io_name_of((struct sockaddr *)&address, sizeof address, name, sizeof name), ENOENT);
    CHECK(strstr(aco_error_message(), "aco_io_name_of: address 127.0.0.2:0: ") != NULL);
    other.sin6_family = AF_INET6;
    FAILS_WITH(aco_io_name_of((struct sockaddr *)&other, sizeof address, name, sizeof name), EAFNOSUPPORT);
    return unused;
}

/* How many lookups it takes. */
static unsigned costs(const char *network, const char *host)
{
    unsigned before = load(&lookups);
    struct sockaddr_storage address;
    CHECK(aco_io_look_up(network, host, "80", &address, 1) > 0);
    return load(&lookups) - before;
}

static void *cache(void *unused)
{
    CHECK_EQ(aco_io_name_cache(2, 100 * ACO_SECOND), 0);
    CHECK_EQ(costs("tcp", "one.test"), 1);
    CHECK_EQ(costs("tcp", "ONE.test"), 0);
    CHECK_EQ(costs("tcp4", "one.test"), 1); /* another question */
    CHECK_EQ(costs("tcp", "one.test"), 0);
    CHECK_EQ(costs("tcp", "six.test"), 1);  /* in the place of the one used longest ago */
    CHECK_EQ(costs("tcp", "one.test"), 0);
    CHECK_EQ(costs("tcp4", "one.test"), 1);
    CHECK_EQ(costs("tcp", "six.test"), 1);
    CHECK_EQ(aco_io_name_cache(2, 100 * ACO_SECOND), 0); /* empties it */
    CHECK_EQ(costs("tcp", "six.test"), 1);
    CHECK_EQ(aco_io_name_cache(2, ACO_MILLISECOND), 0);
    CHECK_EQ(costs("tcp", "one.test"), 1);
    CHECK_EQ(aco_sleep(2 * ACO_MILLISECOND), 0);
    CHECK_EQ(costs("tcp", "one.test"), 1);
    CHECK_EQ(aco_io_name_cache(0, 100 * ACO_SECOND), 0);
    CHECK_EQ(costs("tcp", "one.test"), 1);
    CHECK_EQ(costs("tcp", "one.test"), 1);
    FAILS_WITH(aco_io_name_cache(1, -1), EINVAL);
    CHECK_EQ(aco_io_name_cache(64, 100 * ACO_SECOND), 0);
    return unused;
}

/* A lookup that is abandoned fills the cache all the same. */
static void *abandoned(void *unused)
{
    aco_offload_stats_t stats = {0, 0, 0};
    aco_scope_t scope;
    __atomic_store_n(&gate_is_closed, 1, __ATOMIC_RELEASE);
    aco_scope_begin(&scope, aco_after(2 * ACO_MILLISECOND));
    FAILS_WITH(aco_io_dial("tcp", "blocked.test", "80", NULL), ETIMEDOUT);
    aco_scope_end(&scope);
    __atomic_store_n(&gate_is_closed, 0, __ATOMIC_RELEASE);
    do {
        aco_sleep(ACO_MILLISECOND);
        CHECK_EQ(aco_offload_stats(&stats), 0);
    } while (stats.idle != stats.threads || stats.queued);
    CHECK_EQ(costs("tcp", "blocked.test"), !load(&came_to_gate)); /* unless the time was over before it began */
    return unused;
}

static void *looks_up_blocked(void *unused)
{
    struct sockaddr_storage address;
    CHECK_EQ(aco_io_look_up("tcp", "blocked.test", "80", &address, 1), 1);
    return unused;
}

static void *number_at_gate(void *number)
{
    *(unsigned *)number = load(&at_gate);
    return NULL;
}

/* Name servers that do not answer leave half of the pool to files and functions. */
static void *half_of_the_pool(void *unused)
{
    aco_offload_stats_t stats = {0, 0, 0};
    aco_group_t group;
    unsigned number = 0;
    int fd;
    CHECK_EQ(aco_io_name_cache(64, 100 * ACO_SECOND), 0);
    CHECK_EQ(aco_offload_limits(4, 10 * ACO_SECOND), 0);
    __atomic_store_n(&gate_is_closed, 1, __ATOMIC_RELEASE);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 10; i++)
        member(&group, looks_up_blocked, NULL);
    UNTIL(load(&at_gate) == 2);
    fd = aco_file_open("/dev/null", O_RDONLY, 0);
    CHECK(fd >= 0);
    CHECK_EQ(aco_io_close(fd), 0);
    CHECK_EQ(aco_offload(number_at_gate, &number, NULL, NULL), 0);
    CHECK_EQ(number, 2);
    CHECK_EQ(aco_offload_stats(&stats), 0);
    CHECK_EQ(stats.queued, 8);
    CHECK_EQ(aco_offload_limits(6, 10 * ACO_SECOND), 0); /* room for one more */
    UNTIL(load(&at_gate) == 3);
    CHECK_EQ(aco_offload_limits(1, 10 * ACO_SECOND), 0); /* as soon as those that run have ended, one after the other */
    __atomic_store_n(&gate_is_closed, 0, __ATOMIC_RELEASE);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(aco_offload_limits(64, 10 * ACO_SECOND), 0);
    return unused;
}

static void root_context(void)
{
    struct sockaddr_storage address;
    FAILS_WITH(aco_io_look_up("tcp", "one.test", "80", &address, 1), EPERM);
    FAILS_WITH(aco_io_dial("tcp", "one.test", "80", NULL), EPERM);
}

/* ---- Dialling ---- */

static void dial_fails(net_t *net, const char *host, int error, const char *message)
{
    int before = count_descriptors();
    FAILS_WITH(aco_io_dial("tcp", host, net->port, NULL), error);
    CHECK_EQ(count_descriptors(), before);
    if (message)
        CHECK(strstr(aco_error_message(), message) != NULL);
}

/* No answer is waited for: the first address that the machine can use is taken. */
static void check_datagrams(void)
{
    char address[ACO_IO_ADDRESS_SIZE];
    int fd = aco_io_dial("udp", "unreachable-first.test", "9", NULL), type = 0;
    socklen_t length = sizeof type;
    CHECK(fd >= 0);
    CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length), 0);
    CHECK_EQ(type, SOCK_DGRAM);
    CHECK_EQ(aco_io_peer_address(fd, address, sizeof address), 0);
    CHECK(strcmp(address, "127.0.0.3:9") == 0);
    CHECK_EQ(aco_io_close(fd), 0);
}

static void *ends_scope(void *scope)
{
    CHECK_EQ(aco_scope_cancel(scope), 0);
    return NULL;
}

static void *dials(void *unused)
{
    net_t net;
    char message[120];
    aco_scope_t scope;
    aco_group_t group;
    net_open(&net, "127.0.0.2");
    connects(&net, "tcp", "one.test");
    connects(&net, "tcp4", "one.test");
    connects(&net, "tcp", "refused.test"); /* two refuse, and the third is tried at once */
    connects(&net, "tcp", "slow.test");    /* the first does not answer */
    connects(&net, "tcp", "localhost");
    snprintf(message, sizeof message, "aco_io_dial: tcp unreachable-first.test:%s: 127.0.0.3:%s: %s", net.port,
             net.port, strerror(ECONNREFUSED));
    dial_fails(&net, "unreachable-first.test", ECONNREFUSED, message);
    dial_fails(&net, "unreachable-last.test", ECONNREFUSED, "last.test");
    snprintf(message, sizeof message, "aco_io_dial: tcp absent.test:%s: %s", net.port, gai_strerror(EAI_NONAME));
    dial_fails(&net, "absent.test", ENOENT, message);
    snprintf(message, sizeof message, "aco_io_dial: tcp third.test:%s: 127.0.0.3:%s: ", net.port, net.port);
    dial_fails(&net, "third.test", ECONNREFUSED, message);
    check_datagrams();
    aco_scope_begin(&scope, aco_after(5 * ACO_MILLISECOND));
    dial_fails(&net, "dead.test", ETIMEDOUT, NULL);
    aco_scope_end(&scope);
    aco_scope_begin(&scope, aco_after(260 * ACO_MILLISECOND)); /* while both attempts wait */
    dial_fails(&net, "dead.test", ETIMEDOUT, NULL);
    aco_scope_end(&scope);
    aco_group_begin(&group, ACO_KEEP_GOING);
    aco_scope_begin(&scope, ACO_FOREVER);
    CHECK_EQ(costs("tcp", "dead.test"), 0);
    member(&group, ends_scope, &scope);
    dial_fails(&net, "dead.test", ECANCELED, NULL);
    aco_scope_end(&scope);
    aco_group_end(&group);
    net_close(&net);
    return unused;
}

static void *connects_on_share_stack(void *net)
{
    connects(net, "tcp", "slow.test");
    return NULL;
}

static void *other_on_share_stack(void *unused)
{
    volatile char frames[2000];
    for (int i = 0; i < 20; i++) {
        memset((char *)frames, i, sizeof frames);
        aco_sleep(20 * ACO_MILLISECOND);
    }
    return unused;
}

static void *share_stack(void *unused)
{
    net_t net;
    aco_options_t shared = {0};
    aco_group_t group;
    shared.stack = aco_share_stack_new(0);
    net_open(&net, "127.0.0.2");
    CHECK_EQ(aco_io_name_cache(64, 100 * ACO_SECOND), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    CHECK(aco_group_spawn(&group, connects_on_share_stack, &net, &shared) != NULL);
    CHECK(aco_group_spawn(&group, other_on_share_stack, NULL, &shared) != NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    net_close(&net);
    aco_share_stack_destroy(shared.stack);
    return unused;
}

int main(void)
{
    static const aco_function_t tests[] = {look_ups, reverse, cache, abandoned, half_of_the_pool, dials, share_stack};
    aco__system.getaddrinfo = resolve;
    aco__system.freeaddrinfo = release;
    aco__system.getnameinfo = name_of;
    CHECK_EQ(setenv("ACO_FILES", "pool", 1), 0);
    root_context();
    CHECK(aco_io_poll_fd() >= 0);
    run_tests(tests, sizeof tests / sizeof *tests, count_descriptors());
    return check_result("io_names");
}
