/* Promises: names of hosts mean what a scenario sets, and are looked up over the simulated network. */
#include "check.h"
#include "sim_ends.h"

#include "aco/io.h"
#include "aco/names.h"
#include "aco/scope.h"
#include "aco/sim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 100 };
static const aco_sim_range_t exact = {ACO_MILLISECOND, ACO_MILLISECOND};

static void *accepts(void *listener)
{
    int fd = aco_io_accept((int)(intptr_t)listener);
    CHECK(fd >= 0 && aco_io_close(fd) == 0);
    return NULL;
}

static void dial_by_name(aco_sim_t *sim, void *arg)
{
    int listener = aco_io_listen("tcp", "10.0.0.1", "5432", NULL), fd;
    aco_t *server = aco_spawn(accepts, (void *)(intptr_t)listener, NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    (void)arg;
    CHECK(aco_sim_name(sim, "db.example", "10.0.0.2,10.0.0.1") == 0); /* nobody listens at the first one */
    fd = aco_io_dial("tcp", "DB.example", "5432", NULL);
    CHECK(fd >= 0);
    CHECK(aco_io_peer_address(fd, address, sizeof address) == 0 && strcmp(address, "10.0.0.1:5432") == 0);
    CHECK(aco_io_close(fd) == 0 && aco_join(server, NULL) == 0 && aco_io_close(listener) == 0);
}

static int is_ip(const struct sockaddr_storage *address, const char *ip)
{
    char text[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *in = (const void *)address;
    const struct sockaddr_in6 *in6 = (const void *)address;
    int is_4 = address->ss_family == AF_INET;
    (void)inet_ntop(address->ss_family, is_4 ? (const void *)&in->sin_addr : &in6->sin6_addr, text, sizeof text);
    return strcmp(text, ip) == 0;
}

static void look_up(aco_sim_t *sim, void *arg)
{
    struct sockaddr_storage found[4] = {0};
    int64_t began = aco_now();
    char name[64];
    (void)arg;
    CHECK(aco_sim_link(sim, "*", "*", &(aco_sim_link_t){.latency = exact}) == 0);
    FAILS_WITH(aco_io_look_up("tcp", "a.example", "80", found, 4), ENOENT);
    CHECK_EQ(aco_now() - began, 2 * ACO_MILLISECOND);
    CHECK(aco_sim_name(sim, "a.example", "10.0.0.1,fd00::1,10.0.0.2") == 0);
    CHECK_EQ(aco_io_look_up("tcp", "A.EXAMPLE.", "80", found, 4), 3);
    CHECK(is_ip(&found[0], "10.0.0.1") && is_ip(&found[1], "fd00::1") && is_ip(&found[2], "10.0.0.2"));
    CHECK_EQ(aco_io_look_up("tcp6", "a.example", "80", found, 4), 1);
    CHECK(is_ip(&found[0], "fd00::1"));
    CHECK(aco_io_name_of((const struct sockaddr *)&found[0], sizeof(struct sockaddr_in6), name, sizeof name) == 0);
    CHECK(strcmp(name, "a.example") == 0);
    CHECK(aco_sim_name(sim, "a.example", "FD00:0::01") == 0); /* the same address */
    CHECK(aco_io_name_of((const struct sockaddr *)&found[0], sizeof(struct sockaddr_in6), name, sizeof name) == 0);
    CHECK(strcmp(name, "a.example") == 0);
    CHECK(aco_sim_name(sim, "a.example", "10.0.0.3") == 0); /* at once: nothing is kept */
    CHECK_EQ(aco_io_look_up("tcp", "a.example", "80", found, 4), 1);
    CHECK(is_ip(&found[0], "10.0.0.3"));
    FAILS_WITH(aco_io_look_up("tcp6", "a.example", "80", found, 4), ENOENT);
    FAILS_WITH(aco_io_look_up("tcp", "a.example.org", "80", found, 4), ENOENT);
    CHECK(aco_sim_name(sim, "a.example", NULL) == 0);
    FAILS_WITH(aco_io_look_up("tcp", "a.example", "80", found, 4), ENOENT);
}

/* Twice five seconds, or the end of the scope. */
static void lose_questions(aco_sim_t *sim, void *arg)
{
    struct sockaddr_storage found[4];
    int64_t began = aco_now();
    aco_scope_t scope;
    (void)arg;
    CHECK(aco_sim_name(sim, "a.example", "10.0.0.1") == 0);
    CHECK(aco_sim_link(sim, "*", "*", &(aco_sim_link_t){.loss = 1}) == 0);
    FAILS_WITH(aco_io_look_up("tcp", "a.example", "80", found, 4), EAGAIN);
    CHECK_EQ(aco_now() - began, 10 * ACO_SECOND);
    CHECK(aco_scope_begin(&scope, aco_after(ACO_SECOND)) == 0);
    FAILS_WITH(aco_io_look_up("tcp", "a.example", "80", found, 4), ETIMEDOUT);
    CHECK_EQ(aco_now() - began, 11 * ACO_SECOND);
    (void)aco_scope_end(&scope);
}

static void mistake_names(aco_sim_t *sim, void *arg)
{
    static const char *const wrong[] = {"", ",", "10.0.0.1,", "10.0.0", "a", "10.0.0.1 ", "::g", "10.0.0.1,,::1"};
    char longest[300];
    (void)arg;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        FAILS_WITH(aco_sim_name(sim, "a", wrong[i]), EINVAL);
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    FAILS_WITH(aco_sim_name(sim, longest, "::1"), EINVAL);
    CHECK(aco_sim_name(sim, longest + sizeof longest - 256, "::1") == 0);
    FAILS_WITH(aco_sim_name(sim, "", "::1"), EINVAL);
    FAILS_WITH(aco_sim_name(sim, "10.0.0.1", "::1"), EINVAL);
    FAILS_WITH(aco_sim_name(NULL, "a", "::1"), EINVAL);
}

int main(void)
{
    sim_alarm(60);
    passes(dial_by_name, NULL, RUNS);
    passes(look_up, NULL, RUNS);
    passes(lose_questions, NULL, RUNS);
    passes(mistake_names, NULL, 1);
    return check_result("sim_names");
}
