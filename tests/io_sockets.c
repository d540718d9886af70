/* Sockets by text (include/aco/io.h): listening, accepting and dialling, their options and addresses, a full backlog,
 * and accepting without free descriptors. */
#define _GNU_SOURCE
#include "system/system.h" /* first */
#include "io_tests.h"

#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>

static void *dials(void *arg) /* {network, host, port} */
{
    const char *const *to = arg;
    int fd = aco_io_dial(to[0], to[1], to[2], NULL);
    CHECK(fd >= 0);
    CHECK_EQ(aco_io_write(fd, "hi", 2), 2);
    CHECK_EQ(aco_io_close(fd), 0);
    return NULL;
}

static void serve_one(const char *network, const char *host, const char *wanted)
{
    char local[ACO_IO_ADDRESS_SIZE] = "", peer[ACO_IO_ADDRESS_SIZE] = "", text[4];
    const char *to[3] = {network, host, NULL};
    int is_unix = strncmp(network, "unix", 4) == 0, listener, fd;
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    listener = aco_io_listen(network, host, is_unix ? NULL : "0", NULL);
    if (listener < 0)
        fprintf(stderr, "%s\n", aco_error_message());
    CHECK(listener >= 0);
    CHECK_EQ(aco_io_local_address(listener, local, sizeof local), 0);
    CHECK(strncmp(local, wanted, strlen(wanted)) == 0);
    if (!is_unix)
        to[2] = strrchr(local, ':') + 1;
    member(&group, dials, to);
    fd = aco_io_accept(listener);
    CHECK(fd >= 0);
    CHECK_EQ(aco_io_peer_address(fd, peer, sizeof peer), 0);
    CHECK_EQ(strlen(peer) == 0, is_unix);
    CHECK_EQ(aco_io_read_exactly(fd, text, 2), 2);
    CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(aco_io_close(fd), 0);
    aco_group_end(&group);
    FAILS_WITH(aco_io_local_address(listener, local, is_unix ? 1 : 8), ENOSPC);
    CHECK_EQ(aco_io_close(listener), 0);
}

static int has_ipv6(void)
{
    struct sockaddr_in6 address;
    int fd = socket(AF_INET6, SOCK_STREAM, 0), works;
    memset(&address, 0, sizeof address);
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    works = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    return works;
}

static int socket_option(int fd, int level, int which)
{
    int value = -1;
    socklen_t length = sizeof value;
    CHECK_EQ(getsockopt(fd, level, which, &value, &length), 0);
    return value;
}

static void check_socket_options(void)
{
    aco_io_options_t o = {.flags = ACO_IO_REUSEPORT | ACO_IO_KEEPALIVE | ACO_IO_DELAY, .backlog = 3};
    char address[ACO_IO_ADDRESS_SIZE];
    int plain = aco_io_listen("tcp4", NULL, "0", NULL), first = aco_io_listen("tcp4", NULL, "0", &o), second;
    CHECK_EQ(aco_io_local_address(first, address, sizeof address), 0);
    CHECK(strncmp(address, "0.0.0.0:", 8) == 0);
    second = aco_io_listen("tcp4", NULL, address + 8, &o);
    CHECK(second >= 0); /* on the same port */
    CHECK(socket_option(plain, IPPROTO_TCP, TCP_NODELAY) == 1 && socket_option(first, IPPROTO_TCP, TCP_NODELAY) == 0);
    CHECK(socket_option(plain, SOL_SOCKET, SO_KEEPALIVE) == 0 && socket_option(first, SOL_SOCKET, SO_KEEPALIVE) == 1);
    CHECK_EQ(socket_option(plain, SOL_SOCKET, SO_REUSEADDR), 1);
    CHECK_EQ(socket_option(plain, SOL_SOCKET, SO_REUSEPORT), 0);
    FAILS_WITH(aco_io_listen("tcp4", NULL, address + 8, NULL), EADDRINUSE);
    CHECK(strstr(aco_error_message(), "aco_io_listen: tcp4 *:") != NULL);
    o.flags = 1024;
    FAILS_WITH(aco_io_listen("tcp", NULL, "0", &o), EINVAL);
    o.flags = 0;
    o.backlog = -1;
    FAILS_WITH(aco_io_dial("tcp", NULL, "0", &o), EINVAL);
    o.backlog = 0;
    for (size_t i = 0; i < sizeof o.aco__reserved / sizeof o.aco__reserved[0]; i++) {
        o.aco__reserved[i] = &o;
        FAILS_WITH(aco_io_listen("tcp", NULL, "0", &o), EINVAL);
        FAILS_WITH(aco_io_bind("udp", NULL, "0", &o), EINVAL);
        FAILS_WITH(aco_io_dial("tcp", NULL, address + 8, &o), EINVAL);
        o.aco__reserved[i] = NULL;
    }
    CHECK_EQ(aco_io_close(plain), 0);
    CHECK_EQ(aco_io_close(first), 0);
    CHECK_EQ(aco_io_close(second), 0);
}

/* The largest backlog, and a socket that the library did not make. */
static void connect_own_socket(void)
{
    aco_io_options_t o = {0};
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", &o), fd;
    CHECK(listener >= 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_EQ(aco_io_connect(fd, (struct sockaddr *)&address, length), 0);
    CHECK_EQ(aco_io_close(fd), 0);
    CHECK_EQ(aco_io_close(listener), 0);
}

/* ---- Text and addresses ---- */

/* What is made of the text, back as text. */
static void comes_back(const char *network, const char *host, const char *port, const char *wanted)
{
    struct sockaddr_storage address;
    socklen_t length;
    char text[ACO_IO_ADDRESS_SIZE];
    CHECK_EQ(aco_io_address_of_text(network, host, port, &address, &length), 0);
    CHECK_EQ(aco_io_text_of_address((struct sockaddr *)&address, length, text, sizeof text), 0);
    if (strcmp(text, wanted) != 0)
        fprintf(stderr, "%s is %s\n", host, text);
    CHECK(strcmp(text, wanted) == 0);
}

static void *zones(void *unused)
{
    char loopback[IF_NAMESIZE], host[64], wanted[64];
    unsigned number = 1;
    struct sockaddr_storage address;
    socklen_t length;
    while (number < 100 && !if_indextoname(number, loopback)) /* any interface */
        number++;
    if (number < 100) {
        snprintf(wanted, sizeof wanted, "[fe80::1%%%s]:80", loopback);
        snprintf(host, sizeof host, "fe80::1%%%u", number);
        comes_back("tcp6", host, "80", wanted);
        snprintf(host, sizeof host, "[fe80::1%%%s]", loopback);
        comes_back("udp", host, "80", wanted);
    }
    comes_back("tcp", "fe80::1%4294967295", "80", "[fe80::1%4294967295]:80"); /* no interface: the system's to refuse */
    comes_back("tcp", "fe80::1%0", "80", "[fe80::1]:80");                     /* the default zone */
    FAILS_WITH(aco_io_address_of_text("tcp", "fe80::1%4294967296", "80", &address, &length), EINVAL);
    FAILS_WITH(aco_io_address_of_text("tcp", "fe80::1%1x", "80", &address, &length), EINVAL);
    FAILS_WITH(aco_io_address_of_text("tcp", "fe80::1%", "80", &address, &length), EINVAL);
    return unused;
}

/* An address is not read behind its length: it is in a block of that size, for the address sanitizer. */
static void *short_addresses(void *unused)
{
    static const int families[] = {AF_INET, AF_INET6};
    static const size_t sizes[] = {sizeof(struct sockaddr_in), sizeof(struct sockaddr_in6)};
    struct sockaddr_storage whole;
    char text[ACO_IO_ADDRESS_SIZE];
    for (int i = 0; i < 2; i++)
        for (socklen_t length = 1; length <= sizes[i]; length++) {
            struct sockaddr *address = malloc(length);
            memset(&whole, 0, sizeof whole);
            whole.ss_family = (sa_family_t)families[i];
            memcpy(address, &whole, length);
            if (length == sizes[i])
                CHECK_EQ(aco_io_text_of_address(address, length, text, sizeof text), 0);
            else
                FAILS_WITH(aco_io_text_of_address(address, length, text, sizeof text), EINVAL);
            free(address);
        }
    return unused;
}

/* The longest names, of which one has a 0 before it and the other none behind it. */
static void *longest_names(void *unused)
{
    enum { LONGEST = sizeof(((struct sockaddr_un *)0)->sun_path) };
    char name[LONGEST + 2], folder[] = "/tmp/acorn-io-XXXXXX";
    memset(name, 'n', LONGEST + 1);
    name[LONGEST] = name[LONGEST + 1] = 0;
    name[0] = '@';
    snprintf(name + 1, 30, "acorn-io-%d", (int)getpid());
    name[strlen(name)] = 'n';
    serve_one("unix", name, name);
    comes_back("unixgram", name, NULL, name);
    CHECK(IS_SIMULATED ? mkdir(folder, 0700) == 0 : mkdtemp(folder) != NULL);
    memcpy(name, folder, strlen(folder));
    name[strlen(folder)] = '/';
    for (char *rest = name + strlen(folder) + 1; *rest; rest++)
        *rest = 'n';
    serve_one("unixpacket", name, name);
    CHECK(IS_SIMULATED || unlink(name) == 0); /* there the name is no file */
    CHECK_EQ(rmdir(folder), 0);
    name[LONGEST] = 'n';
    FAILS_WITH(aco_io_listen("unix", name, NULL, NULL), EINVAL);
    name[0] = '@';
    FAILS_WITH(aco_io_listen("unix", name, NULL, NULL), EINVAL);
    return unused;
}

/* ---- Connections of a socket with itself ---- */

static int (*real_connect)(int fd, const struct sockaddr *address, socklen_t length);
static int attempts;

/* Gives the socket the port that it dials, as the system may with a free one. */
static int connects_itself(int fd, const struct sockaddr *address, socklen_t length)
{
    attempts++;
    CHECK_EQ(bind(fd, address, length), 0);
    return real_connect(fd, address, length);
}

static void *own_peer(void *unused)
{
    char address[ACO_IO_ADDRESS_SIZE];
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    CHECK_EQ(aco_io_close(listener), 0);
    real_connect = aco__system.connect;
    aco__system.connect = connects_itself;
    attempts = 0;
    FAILS_WITH(aco_io_dial("tcp", "127.0.0.1", address + 10, NULL), ECONNREFUSED);
    CHECK(strstr(aco_error_message(), "aco_io_dial: tcp 127.0.0.1:") != NULL);
    CHECK_EQ(attempts, 1);
    if (has_ipv6()) {
        FAILS_WITH(aco_io_dial("tcp", "localhost", address + 10, NULL), ECONNREFUSED); /* either address */
        CHECK_EQ(attempts, 3);
    }
    aco__system.connect = real_connect;
    listener = aco_io_listen("tcp4", "127.0.0.1", address + 10, NULL); /* the port is free at once */
    CHECK(listener >= 0);
    CHECK_EQ(aco_io_close(listener), 0);
    return unused;
}

/* ---- One port, several threads and processes ---- */

static int open_shared(int is_udp, const char *host, const char *port, unsigned flags)
{
    aco_io_options_t o = {.flags = flags};
    return is_udp ? aco_io_bind("udp", host, port, &o) : aco_io_listen("tcp", host, port, &o);
}

/* What another process that is started with these arguments gets: 0, or errno. It has a listener at the host `held`
 * already, if not "". */
static int second_beside(int is_udp, const char *held, const char *host, const char *port, unsigned flags)
{
    char number[16], *const arguments[] = {"io_sockets", is_udp ? "udp" : "tcp", (char *)held, (char *)host,
                                           (char *)port, number, NULL};
    pid_t pid;
    int status = -1;
    snprintf(number, sizeof number, "%u", flags);
    CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int second_start(int is_udp, const char *port, unsigned flags)
{
    return second_beside(is_udp, "", "127.0.0.1", port, flags);
}

static int be_second(char **arguments)
{
    int is_udp = strcmp(arguments[1], "udp") == 0, held = -1, fd, error;
    unsigned flags = (unsigned)atoi(arguments[5]);
    if (*arguments[2])
        CHECK((held = open_shared(is_udp, arguments[2], arguments[4], flags | ACO_IO_ONLY_IPV6)) >= 0);
    fd = open_shared(is_udp, arguments[3], arguments[4], flags);
    error = fd < 0 ? errno : 0;
    if (fd >= 0)
        CHECK_EQ(aco_io_close(fd), 0);
    if (held >= 0)
        CHECK_EQ(aco_io_close(held), 0);
    return error;
}

/* In a thread of its own, which has one listener. */
static void *takes_shared(void *arg)
{
    const char *port = arg;
    int fd = open_shared(0, "127.0.0.1", port, ACO_IO_REUSEPORT);
    CHECK(fd >= 0);
    CHECK_EQ(aco_io_close(fd), 0);
    return NULL;
}

static int accept_waiting(int listener)
{
    int n = 0, fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        n++;
        close(fd);
    }
    return n;
}

/* The connections are shared out by a hash: none for one of two listeners has odds of 1 to 2^63. */
static void check_sharing(int first, int second, const char *port)
{
    enum { CLIENTS = 64 };
    int clients[CLIENTS], at_first, at_second;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = aco_io_dial("tcp4", "127.0.0.1", port, NULL);
        CHECK(clients[i] >= 0);
    }
    at_first = accept_waiting(first);
    at_second = accept_waiting(second);
    CHECK_EQ(at_first + at_second, CLIENTS);
    CHECK(at_first > 0 && at_second > 0);
    for (int i = 0; i < CLIENTS; i++)
        CHECK_EQ(aco_io_close(clients[i]), 0);
}

static void *one_port(void *unused)
{
    for (int is_udp = 0; is_udp < 2; is_udp++) {
        char address[ACO_IO_ADDRESS_SIZE], *port;
        int first = open_shared(is_udp, "127.0.0.1", "0", ACO_IO_REUSEPORT), second;
        pthread_t thread;
        CHECK_EQ(aco_io_local_address(first, address, sizeof address), 0);
        port = strchr(address, ':') + 1;
        CHECK_EQ(second_start(is_udp, port, ACO_IO_REUSEPORT), EADDRINUSE);
        second = open_shared(is_udp, "127.0.0.1", port, ACO_IO_REUSEPORT);
        CHECK(second >= 0);
        if (!is_udp) {
            CHECK_EQ(pthread_create(&thread, NULL, takes_shared, port), 0);
            CHECK_EQ(pthread_join(thread, NULL), 0);
            check_sharing(first, second, port);
        }
        CHECK_EQ(second_start(is_udp, port, ACO_IO_REUSEPORT), EADDRINUSE);
        CHECK_EQ(second_start(is_udp, port, 0), EADDRINUSE);
        CHECK_EQ(second_start(is_udp, port, ACO_IO_REUSEPORT | ACO_IO_ALL_PROCESSES), 0);
        CHECK_EQ(aco_io_close(first), 0);
        CHECK_EQ(second_start(is_udp, port, ACO_IO_REUSEPORT), EADDRINUSE); /* while one is left */
        CHECK_EQ(aco_io_close(second), 0);
        CHECK_EQ(second_start(is_udp, port, ACO_IO_REUSEPORT), 0);
    }
    return unused;
}

static void port_of(int fd, char port[ACO_IO_ADDRESS_SIZE])
{
    char address[ACO_IO_ADDRESS_SIZE];
    CHECK_EQ(aco_io_local_address(fd, address, sizeof address), 0);
    strcpy(port, strrchr(address, ':') + 1);
}

/* A port that nobody has at any address, not only at the one that is tried first. */
static void find_port(int is_udp, char port[ACO_IO_ADDRESS_SIZE])
{
    int fd = open_shared(is_udp, has_ipv6() ? "::" : "0.0.0.0", "0", 0);
    port_of(fd, port);
    CHECK_EQ(aco_io_close(fd), 0);
}

/* A listener of the process at another address of the port is no proof that the port is the process's. */
static void *other_addresses(void *unused)
{
    for (int is_udp = 0; is_udp < 2; is_udp++) {
        char port[ACO_IO_ADDRESS_SIZE];
        int fd;
        find_port(is_udp, port);
        fd = open_shared(is_udp, "127.0.0.1", port, ACO_IO_REUSEPORT);
        CHECK(fd >= 0);
        CHECK_EQ(second_beside(is_udp, "127.0.0.2", "127.0.0.1", port, ACO_IO_REUSEPORT), EADDRINUSE);
        CHECK_EQ(second_beside(is_udp, "127.0.0.2", "0.0.0.0", port, ACO_IO_REUSEPORT), EADDRINUSE);
        CHECK_EQ(second_beside(is_udp, "127.0.0.2", "127.0.0.2", port, ACO_IO_REUSEPORT), 0);
        FAILS_WITH(open_shared(is_udp, "0.0.0.0", port, ACO_IO_REUSEPORT), EADDRINUSE);
        CHECK_EQ(aco_io_close(fd), 0);
        find_port(is_udp, port);
        CHECK((fd = open_shared(is_udp, "0.0.0.0", port, ACO_IO_REUSEPORT)) >= 0);
        if (has_ipv6()) {
            CHECK_EQ(second_beside(is_udp, "::", "0.0.0.0", port, ACO_IO_REUSEPORT), EADDRINUSE);
            CHECK_EQ(second_beside(is_udp, "::", "::", port, ACO_IO_REUSEPORT), EADDRINUSE);
        }
        CHECK_EQ(aco_io_close(fd), 0);
    }
    return unused;
}

/* These hosts, one after the other, on one port. */
static void check_together(int is_udp, const char *const *hosts, const unsigned *flags)
{
    char port[ACO_IO_ADDRESS_SIZE];
    int fds[3];
    find_port(is_udp, port);
    for (int i = 0; i < 3; i++) {
        fds[i] = open_shared(is_udp, *hosts[i] ? hosts[i] : NULL, port, flags[i] | ACO_IO_REUSEPORT);
        CHECK(fds[i] >= 0);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(aco_io_close(fds[i]), 0);
}

/* What a process may have together. */
static void *own_addresses(void *unused)
{
    static const struct {
        const char *hosts[3];
        unsigned flags[3];
    } sets[] = {
        {{"0.0.0.0", "127.0.0.1", "0.0.0.0"}, {0}},
        {{"", "", "127.0.0.1"}, {0}},
        {{"localhost", "localhost", "localhost"}, {0}},
        {{"127.0.0.1", "::1", "127.0.0.1"}, {0}},
        {{"::", "0.0.0.0", "::1"}, {0}},
        {{"0.0.0.0", "::", "::"}, {0}},
        {{"0.0.0.0", "::", "::"}, {0, ACO_IO_ONLY_IPV6, 0}},
        {{"::", "0.0.0.0", "::1"}, {ACO_IO_ONLY_IPV6, 0, ACO_IO_ONLY_IPV6}},
    };
    for (size_t i = 0; i < (has_ipv6() ? sizeof sets / sizeof *sets : 3); i++)
        for (int is_udp = 0; is_udp < 2; is_udp++)
            check_together(is_udp, sets[i].hosts, sets[i].flags);
    return unused;
}

/* ---- In a scope that has ended ---- */

/* A connection over the loopback is there at once, though connect() says that it is under way. */
static void *in_ended_scope(void *unused)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    char address[ACO_IO_ADDRESS_SIZE];
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    aco_scope_t over;
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    CHECK_EQ(aco_scope_begin(&over, aco_now()), 0);
    FAILS_WITH(aco_io_accept(listener), ETIMEDOUT);
    for (int i = 0; i < 2; i++) {
        int dialled = aco_io_dial("tcp", hosts[i], address + 10, NULL), accepted = aco_io_accept(listener);
        CHECK(dialled >= 0 && accepted >= 0);
        CHECK_EQ(aco_io_close(dialled), 0);
        CHECK_EQ(aco_io_close(accepted), 0);
    }
    aco_scope_end(&over);
    CHECK_EQ(aco_io_close(listener), 0);
    return unused;
}

static int late_ends[2], late_reader_waits;
static int64_t written_at;

static void *reads_by_deadline(void *unused)
{
    char byte = 0;
    ssize_t n;
    int64_t deadline;
    do {
        aco_scope_t scope;
        deadline = aco_after(2 * ACO_MILLISECOND);
        aco_scope_begin(&scope, deadline);
        late_reader_waits = 1;
        n = aco_io_read(late_ends[0], &byte, 1);
        aco_scope_end(&scope);
    } while (n < 0 && (!written_at || written_at >= deadline)); /* the machine is slow */
    CHECK_EQ(n, 1);
    CHECK_EQ(byte, 'x');
    late_reader_waits = 0;
    return unused;
}

/* What comes before a deadline is read in time, also if the thread looks only after the deadline: a task has kept it,
 * or the process was stopped. */
static void *looks_late(void *unused)
{
    aco_group_t group;
    make_pipe(late_ends);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, reads_by_deadline, NULL);
    while (!late_reader_waits)
        aco_task_yield();
    CHECK_EQ(write(late_ends[1], "x", 1), 1);
    written_at = aco_now();
    for (int64_t until = aco_after(4 * ACO_MILLISECOND); aco_now() < until;)
        continue;
    while (late_reader_waits) /* so that a task can run all the time */
        aco_task_yield();
    CHECK_EQ(aco_group_end(&group), 0);
    close_both(late_ends);
    return unused;
}

static void *sockets(void *unused)
{
    static const char *const wrong[][4] = {
        {"tpc", NULL, "1", "network"},       {NULL, NULL, "1", "network"},    {"tcp", NULL, "65536", "port"},
        {"tcp", NULL, "-1", "port"},         {"tcp", NULL, "", "port"},       {"tcp", NULL, NULL, "port"},
        {"tcp", "1.2.3", "1", "host"},       {"tcp", "name.0x7f", "1", "host"},    {"tcp4", "::1", "1", "host"},
        {"tcp6", "1.2.3.4", "1", "host"},    {"tcp", "[::1", "1", "host"},    {"tcp", "::1%none", "1", "interface"},
        {"tcp", "", "1", "host"},            {"unix", NULL, NULL, "path"},    {"unix", "", NULL, "path"},
        {"unix", "/p", "1", "port"},         {"unixpack", "/p", NULL, "net"}, {"udp", "127.0.0.1", "", "port"},
        {"tcp46", NULL, "1", "network"},     {"tcp", "1.2.3.4.5", "1", "host"}};
    char path[64], abstract[64], too_long[200], address[ACO_IO_ADDRESS_SIZE];
    int listener;
    snprintf(path, sizeof path, "/tmp/acorn-io-%d", (int)getpid());
    snprintf(abstract, sizeof abstract, "@acorn-io-%d", (int)getpid());
    memset(too_long, 'p', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = 0;
    serve_one("tcp", "127.0.0.1", "127.0.0.1:");
    serve_one("tcp4", "localhost", "127.0.0.1:");
    serve_one("tcp4", NULL, "0.0.0.0:");
    if (has_ipv6()) {
        serve_one("tcp6", "::1", "[::1]:");
        serve_one("tcp", "[::1]", "[::1]:");
        serve_one("tcp", NULL, "[::]:");
        serve_one("tcp", "localhost", "[::1]:");
    } else {
        printf("skipped: IPv6: this machine has none\n");
    }
    serve_one("unix", path, path);
    CHECK(IS_SIMULATED || unlink(path) == 0); /* there it is no file */
    serve_one("unixpacket", abstract, abstract);
    serve_one("unix", abstract, abstract);
    check_socket_options();
    connect_own_socket();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (IS_SIMULATED && strcmp(wrong[i][3], "interface") == 0)
            continue;
        FAILS_WITH(aco_io_dial(wrong[i][0], wrong[i][1], wrong[i][2], NULL), EINVAL);
        CHECK(strstr(strrchr(aco_error_message(), ':'), wrong[i][3]) != NULL);
        FAILS_WITH(aco_io_listen(wrong[i][0], wrong[i][1], wrong[i][2], NULL), EINVAL);
    }
    FAILS_WITH(aco_io_listen("unix", too_long, NULL, NULL), EINVAL);
    FAILS_WITH(aco_io_dial("unix", path, NULL, NULL), ENOENT);
    listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    CHECK_EQ(aco_io_close(listener), 0);
    FAILS_WITH(aco_io_dial("tcp", "localhost", address + 10, NULL), ECONNREFUSED);
    CHECK(strstr(aco_error_message(), "aco_io_dial: tcp localhost:") != NULL);
    FAILS_WITH(aco_io_local_address(0x7fffffff, address, sizeof address), EBADF);
    return unused;
}

/* A unix socket with a full backlog: connect() says EAGAIN, and no event tells of room. */
static void *full_backlog(void *unused)
{
    enum { CLIENTS = 4 };
    char abstract[64];
    const char *to[3] = {"unix", abstract, NULL};
    aco_io_options_t o = {.backlog = 1};
    aco_group_t group;
    aco_scope_t scope;
    int listener, fd;
    snprintf(abstract, sizeof abstract, "@acorn-io-full-%d", (int)getpid());
    listener = aco_io_listen("unix", abstract, NULL, &o);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < CLIENTS; i++)
        member(&group, dials, to);
    aco_sleep(3 * ACO_MILLISECOND);
    for (int i = 0; i < CLIENTS; i++) {
        fd = aco_io_accept(listener);
        CHECK(fd >= 0);
        CHECK_EQ(aco_io_close(fd), 0);
    }
    aco_group_end(&group);
    for (int i = 0; i < 2; i++) /* these fill it */
        CHECK(aco_io_dial("unix", abstract, NULL, NULL) >= 0);
    aco_scope_begin(&scope, aco_after(5 * ACO_MILLISECOND));
    FAILS_WITH(aco_io_dial("unix", abstract, NULL, NULL), ETIMEDOUT);
    aco_scope_end(&scope);
    CHECK_EQ(aco_io_close(listener), 0);
    return unused;
}

/* ---- Datagrams ---- */

typedef struct sockaddr_storage storage_t;

/* Sends a datagram from `client` to the text's address, and gets an answer. */
static void ask_by_datagram(int server, int client, const char *network, const char *host, const char *port)
{
    storage_t to, from, answered;
    socklen_t length = 0, from_length = sizeof from, answered_length = sizeof answered;
    char text[ACO_IO_ADDRESS_SIZE], own[ACO_IO_ADDRESS_SIZE], got[8] = "";
    CHECK_EQ(aco_io_address_of_text(network, host, port, &to, &length), 0);
    CHECK_EQ(aco_io_sendto(client, "ask", 3, 0, (struct sockaddr *)&to, length), 3);
    CHECK_EQ(aco_io_recvfrom(server, got, sizeof got, 0, (struct sockaddr *)&from, &from_length), 3);
    CHECK(memcmp(got, "ask", 3) == 0);
    CHECK_EQ(aco_io_text_of_address((struct sockaddr *)&from, from_length, text, sizeof text), 0);
    CHECK_EQ(aco_io_local_address(client, own, sizeof own), 0);
    if (strncmp(own, "0.0.0.0:", 8) == 0 || strncmp(own, "[::]:", 5) == 0) /* it has been bound by sending */
        CHECK(strcmp(strrchr(text, ':'), strrchr(own, ':')) == 0);
    else
        CHECK(strcmp(text, own) == 0);
    CHECK_EQ(aco_io_sendto(server, "", 0, 0, (struct sockaddr *)&from, from_length), 0); /* an empty one */
    CHECK_EQ(aco_io_recvfrom(client, got, sizeof got, 0, (struct sockaddr *)&answered, &answered_length), 0);
    CHECK_EQ(aco_io_text_of_address((struct sockaddr *)&answered, answered_length, text, sizeof text), 0);
    CHECK(strstr(text, port ? port : host) != NULL);
}

typedef struct sending {
    int fd, sent;
    const storage_t *to; /* NULL: to the peer */
    socklen_t length;
    int by_message;
} sending_t;

static void *sends_many(void *arg)
{
    sending_t *s = arg;
    struct iovec part = {&s->sent, sizeof s->sent};
    struct msghdr message = {0};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_name = (void *)(uintptr_t)s->to;
    message.msg_namelen = s->length;
    for (s->sent = 0; s->sent < 600; s->sent++)
        CHECK_EQ(s->by_message ? aco_io_sendmsg(s->fd, &message, 0)
                               : aco_io_sendto(s->fd, &s->sent, sizeof s->sent, 0, (const struct sockaddr *)s->to,
                                               s->length),
                 sizeof s->sent);
    return NULL;
}

/* A receiver without room, because of another sender: this one waits, though the system calls it writable. */
static void send_to_a_slow_one(int by_message, int is_connected)
{
    char path[ACO_IO_ADDRESS_SIZE];
    storage_t to;
    socklen_t length;
    int server = aco_io_bind("unixgram", NULL, NULL, NULL), got = -1, client, other;
    sending_t s = {0, 0, NULL, 0, by_message};
    aco_group_t group;
    CHECK_EQ(aco_io_local_address(server, path, sizeof path), 0);
    client = is_connected ? aco_io_dial("unixgram", path, NULL, NULL) : aco_io_bind("unixgram", NULL, NULL, NULL);
    CHECK_EQ(aco_io_address_of_text("unixgram", path, NULL, &to, &length), 0);
    other = aco_io_bind("unixgram", NULL, NULL, NULL);
    while (aco_io_sendto(other, &got, sizeof got, MSG_DONTWAIT, (struct sockaddr *)&to, length) > 0)
        continue;
    CHECK_EQ(errno, EAGAIN);
    s.fd = client;
    if (!is_connected) {
        s.to = &to;
        s.length = length;
    }
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, sends_many, &s);
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(s.sent, 0);
    for (int i = 0; i < 600; i += got >= 0) {
        CHECK_EQ(aco_io_recvfrom(server, &got, sizeof got, 0, NULL, NULL), sizeof got);
        CHECK(got == -1 || got == i);
    }
    aco_group_end(&group);
    CHECK_EQ(aco_io_close(server), 0);
    CHECK_EQ(aco_io_close(client), 0);
    CHECK_EQ(aco_io_close(other), 0);
}

/* What the system returns for the longest path, whose 0 it counts although there is no room for it, and for a sender
 * without a name. */
static void unusual_lengths(void)
{
    struct {
        struct sockaddr_un address;
        char behind[8];
    } from;
    char text[ACO_IO_ADDRESS_SIZE];
    memset(&from, 'x', sizeof from);
    from.address.sun_family = AF_UNIX;
    CHECK_EQ(aco_io_text_of_address((struct sockaddr *)&from, sizeof from.address + 1, text, sizeof text), 0);
    CHECK_EQ(strlen(text), sizeof from.address.sun_path);
    from.address.sun_family = AF_INET; /* nothing was written */
    CHECK_EQ(aco_io_text_of_address((struct sockaddr *)&from, 0, text, sizeof text), 0);
    CHECK_EQ(strlen(text), 0);
}

static void *datagrams(void *unused)
{
    char address[ACO_IO_ADDRESS_SIZE], text[8];
    const char *port;
    storage_t storage;
    socklen_t length;
    struct sockaddr unknown = {0};
    int client = aco_io_bind("unixgram", NULL, NULL, NULL), server;
    snprintf(address, sizeof address, "@acorn-gram-%d", (int)getpid());
    server = aco_io_bind("unixgram", address, NULL, NULL);
    CHECK(client >= 0 && server >= 0);
    ask_by_datagram(server, client, "unixgram", address, NULL);
    CHECK_EQ(aco_io_close(server), 0);
    CHECK_EQ(aco_io_close(client), 0);
    client = aco_io_bind("udp4", NULL, "0", NULL);
    server = aco_io_bind("udp", "localhost", "0", NULL);
    CHECK_EQ(aco_io_local_address(server, address, sizeof address), 0);
    CHECK(strncmp(address, "127.0.0.1:", 10) == 0);
    port = address + 10;
    ask_by_datagram(server, client, "udp", "localhost", port);
    ask_by_datagram(server, client, "udp4", "127.0.0.1", port);
    CHECK_EQ(aco_io_close(client), 0);
    client = aco_io_dial("udp", NULL, port, NULL);
    CHECK_EQ(aco_io_write(client, "w", 1), 1);
    CHECK_EQ(aco_io_read(server, text, sizeof text), 1);
    CHECK_EQ(aco_io_close(server), 0);
    CHECK_EQ(aco_io_write(client, "w", 1), 1); /* nobody is there */
    FAILS_WITH(aco_io_read(client, text, sizeof text), ECONNREFUSED);
    CHECK_EQ(aco_io_close(client), 0);
    if (has_ipv6()) {
        server = aco_io_bind("udp", NULL, "0", NULL); /* both families */
        client = aco_io_bind("udp6", "::1", "0", NULL);
        CHECK_EQ(aco_io_local_address(server, address, sizeof address), 0);
        ask_by_datagram(server, client, "udp6", "::1", strrchr(address, ':') + 1);
        CHECK_EQ(aco_io_close(client), 0);
        client = aco_io_bind("udp4", NULL, "0", NULL);
        ask_by_datagram(server, client, "udp", "127.0.0.1", strrchr(address, ':') + 1);
        CHECK_EQ(aco_io_close(client), 0);
        CHECK_EQ(aco_io_close(server), 0);
    }
    unusual_lengths();
    for (int i = 0; i < 4; i++)
        send_to_a_slow_one(i % 2, i / 2);
    FAILS_WITH(aco_io_listen("udp", NULL, "0", NULL), EINVAL);
    CHECK(strstr(aco_error_message(), "aco_io_listen: udp *:0: the network is for datagrams") != NULL);
    FAILS_WITH(aco_io_bind("tcp", NULL, "0", NULL), EINVAL);
    FAILS_WITH(aco_io_address_of_text("udp", "1.2", "0", &storage, &length), EINVAL);
    FAILS_WITH(aco_io_text_of_address(&unknown, sizeof unknown, text, sizeof text), EAFNOSUPPORT);
    return unused;
}

typedef struct accepting {
    int listener, fd, error;
} accepting_t;

static void *accepts(void *arg)
{
    accepting_t *a = arg;
    a->fd = aco_io_accept(a->listener);
    a->error = errno;
    return NULL;
}

/* No descriptor is left. */
static void *exhausted(void *unused)
{
    struct rlimit limit, least;
    char abstract[64];
    int listener, client;
    accepting_t a;
    aco_scope_t scope;
    aco_group_t group;
    snprintf(abstract, sizeof abstract, "@acorn-io-none-%d", (int)getpid());
    listener = aco_io_listen("unix", abstract, NULL, NULL);
    client = aco_io_dial("unix", abstract, NULL, NULL);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    least = limit;
    least.rlim_cur = (rlim_t)client + 1;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &least), 0);
    while (dup(0) >= 0) /* fills holes */
        continue;
    aco_scope_begin(&scope, aco_after(20 * ACO_MILLISECOND));
    FAILS_WITH(aco_io_accept(listener), ETIMEDOUT);
    aco_scope_end(&scope);
    FAILS_WITH(aco_io_dial("unix", abstract, NULL, NULL), EMFILE);
    a.listener = listener;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, accepts, &a);
    aco_sleep(2 * ACO_MILLISECOND);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0); /* now there is room */
    aco_group_end(&group);
    CHECK(a.fd >= 0);
    CHECK_EQ(aco_io_close(a.fd), 0);
    /* closed while it waits for room */
    CHECK(aco_io_dial("unix", abstract, NULL, NULL) >= 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &least), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, accepts, &a);
    aco_sleep(2 * ACO_MILLISECOND);
    CHECK_EQ(aco_io_close(listener), 0);
    aco_group_end(&group);
    CHECK_EQ(a.fd, -1);
    CHECK_EQ(a.error, ECANCELED);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int fd = 3; fd < (int)least.rlim_cur + 8; fd++) /* the fillers, too */
        if (fcntl(fd, F_GETFD) == 0)
            close(fd);
    return unused;
}

/* A program without standard input: the descriptor 0 is one like others. */
static void *number_zero(void *unused)
{
    char address[ACO_IO_ADDRESS_SIZE], byte = 0;
    int input = fcntl(0, F_DUPFD_CLOEXEC, 3), ends[3]; /* a listener, a peer, what is accepted */
    (void)close(0);
    for (int zero = 0; zero < 3; zero++) {
        int other = zero > 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
        ends[0] = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
        CHECK_EQ(aco_io_local_address(ends[0], address, sizeof address), 0);
        if (zero == 1)
            (void)close(other);
        ends[1] = aco_io_dial("tcp4", "127.0.0.1", strchr(address, ':') + 1, NULL);
        if (zero == 2)
            (void)close(other);
        ends[2] = aco_io_accept(ends[0]);
        CHECK_EQ(ends[zero], 0);
        CHECK_EQ(aco_io_write(ends[1], "x", 1), 1);
        CHECK_EQ(aco_io_read(ends[2], &byte, 1), 1);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(aco_io_close(ends[i]), 0);
    }
    if (input >= 0) {
        CHECK_EQ(dup2(input, 0), 0);
        (void)close(input);
    }
    return unused;
}

int main(int argc, char **argv)
{
    static const aco_function_t tests[] = {sockets, short_addresses, longest_names, own_peer, own_addresses, datagrams};
    static const aco_function_t in_kernel[] = {zones, /* if_nametoindex() */
                                               one_port, other_addresses, /* processes */
                                               in_ended_scope, /* connects at once, as on loopback */
                                               number_zero}; /* closes descriptor 0 */
    if (argc == 6)
        return be_second(argv);
    run_task(warms_up, NULL);
    run_tests(tests, sizeof tests / sizeof *tests, count_descriptors());
    if (IS_SIMULATED)
        return check_result("io_sockets");
    run_tests(in_kernel, sizeof in_kernel / sizeof *in_kernel, count_descriptors());
    run_task(looks_late, NULL);
    run_task(full_backlog, NULL); /* these leave descriptors */
    run_task(exhausted, NULL);
    return check_result("io_sockets");
}
