/* Promises: acorn_io runs unchanged over the simulated network, in virtual time, repeated from the seed. */
#include "system/system.h"

#include "sim_ends.h"

#include "aco/group.h"
#include "aco/io.h"
#include "aco/scope.h"
#include "aco/sim.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RUNS = 200 };

static const char *reason_of(aco_sim_function_t scenario, void *arg)
{
    static aco_sim_stats_t stats;
    capture();
    (void)aco_sim_run(scenario, arg, 1, &stats, NULL);
    release();
    return stats.reason;
}

static int descriptor(void *arg)
{
    return (int)(intptr_t)arg;
}

/* ---- Echo ---- */

enum { CLIENTS = 4, BYTES = 20000 };

typedef struct service {
    const char *network, *host, *port;
    int listener;
} service_t;

static void *echo(void *arg)
{
    char buffer[3000];
    ssize_t n;
    while ((n = aco_io_read(descriptor(arg), buffer, sizeof buffer)) > 0)
        CHECK_EQ(aco_io_write_all(descriptor(arg), buffer, (size_t)n), n);
    CHECK_EQ(n, 0);
    CHECK(aco_io_close(descriptor(arg)) == 0);
    return NULL;
}

static void *serve(void *arg)
{
    service_t *service = arg;
    int fd;
    while ((fd = aco_io_accept(service->listener)) >= 0)
        CHECK(detached(echo, (void *)(intptr_t)fd) != NULL);
    CHECK_EQ(errno, ECANCELED);
    return NULL;
}

static void *send_all(void *arg)
{
    char buffer[BYTES];
    for (int i = 0; i < BYTES; i++)
        buffer[i] = (char)(i * 7 + i / 256);
    CHECK_EQ(aco_io_write_all(descriptor(arg), buffer, BYTES), BYTES);
    CHECK(aco_io_shutdown(descriptor(arg), SHUT_WR) == 0);
    return NULL;
}

static void *ask(void *arg)
{
    const service_t *service = arg;
    int fd = aco_io_dial(service->network, service->host, service->port, NULL), n = 0, wrong = 0;
    char buffer[1000];
    ssize_t got;
    aco_t *sender;
    CHECK(fd >= 0);
    sender = aco_spawn(send_all, (void *)(intptr_t)fd, NULL);
    while ((got = aco_io_read(fd, buffer, sizeof buffer)) > 0)
        for (int i = 0; i < got; i++, n++)
            wrong += buffer[i] != (char)(n * 7 + n / 256);
    CHECK(got == 0 && n == BYTES && !wrong);
    CHECK(aco_join(sender, NULL) == 0);
    CHECK(aco_io_close(fd) == 0);
    return NULL;
}

static void echo_to_clients(aco_sim_t *sim, void *arg)
{
    service_t service = *(service_t *)arg;
    aco_t *server, *clients[CLIENTS];
    int64_t began = aco_now();
    (void)sim;
    service.listener = aco_io_listen(service.network, service.host, service.port, NULL);
    CHECK(service.listener >= 0);
    server = aco_spawn(serve, &service, NULL);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = aco_spawn(ask, &service, NULL);
    for (int i = 0; i < CLIENTS; i++)
        CHECK(aco_join(clients[i], NULL) == 0);
    CHECK(strcmp(service.network, "unix") == 0 || aco_now() > began);
    CHECK(aco_io_close(service.listener) == 0);
    CHECK(aco_join(server, NULL) == 0);
}

static void echoes(void)
{
    service_t tcp4 = {"tcp", "127.0.0.1", "7", 0}, tcp6 = {"tcp", "localhost", "7", 0};
    service_t node = {"tcp", "10.0.0.1", "80", 0}, local = {"unix", "@echo", NULL, 0};
    passes(echo_to_clients, &tcp4, RUNS);
    passes(echo_to_clients, &tcp6, RUNS / 10);
    passes(echo_to_clients, &node, RUNS / 10);
    passes(echo_to_clients, &local, RUNS / 10);
}

/* ---- Two ends of a connection ---- */

static void close_halves(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    char text[8];
    (void)sim, (void)arg;
    CHECK_EQ(aco_io_write(ends.client, "one", 3), 3);
    CHECK(aco_io_shutdown(ends.client, SHUT_WR) == 0);
    CHECK_EQ(aco_io_read_exactly(ends.server, text, sizeof text), 3);
    CHECK_EQ(aco_io_write(ends.server, "two", 3), 3);
    CHECK(aco_io_write(ends.client, "", 1) == -1 && errno == EPIPE);
    CHECK(aco_sleep(ACO_SECOND) == 0); /* else a segment may bring less */
    CHECK_EQ(aco_io_recv(ends.client, text, 2, MSG_PEEK), 2);
    CHECK_EQ(aco_io_read(ends.client, text, sizeof text), 3);
    CHECK(memcmp(text, "two", 3) == 0);
    CHECK(aco_io_recv(ends.client, text, sizeof text, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(aco_io_close(ends.server) == 0);
    ends.server = -1;
    CHECK_EQ(aco_io_read(ends.client, text, sizeof text), 0);
    close_ends(&ends);
}

static void reset_by_unread(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    char text[8];
    (void)sim, (void)arg;
    CHECK_EQ(aco_io_write(ends.client, "unread", 6), 6);
    CHECK(aco_io_wait_readable(ends.server) == 0);
    CHECK(aco_io_close(ends.server) == 0);
    ends.server = -1;
    CHECK(aco_io_read(ends.client, text, sizeof text) == -1 && errno == ECONNRESET);
    CHECK_EQ(aco__system.recv(ends.client, text, sizeof text, 0), 0); /* the system has told of it once */
    CHECK(aco_io_read(ends.client, text, sizeof text) == -1 && errno == ECONNRESET);
    CHECK(aco_io_write(ends.client, "", 1) == -1 && errno == EPIPE);
    close_ends(&ends);
}

static void *feed(void *fd)
{
    while (aco_io_write((int)(intptr_t)fd, "", 1) == 1)
        aco_sleep((int64_t)aco_sim_random(aco_sim_current(), ACO_MILLISECOND));
    CHECK(errno == ECONNRESET || errno == EPIPE);
    return NULL;
}

/* One task writes while another reads, and the peer resets: whoever is told first, the reader finds no end. */
static void reset_under_two(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    aco_t *writer = aco_spawn(feed, (void *)(intptr_t)ends.client, NULL);
    char text[8];
    ssize_t n;
    (void)arg;
    CHECK_EQ(aco_io_write(ends.server, "answer", 6), 6);
    CHECK_EQ(aco_io_wait_readable(ends.server), 0);
    CHECK_EQ(aco_io_close(ends.server), 0); /* with bytes unread */
    ends.server = -1;
    do
        aco_sleep((int64_t)aco_sim_random(sim, 5 * ACO_MILLISECOND));
    while ((n = aco_io_read(ends.client, text, sizeof text)) > 0);
    CHECK(n == -1 && errno == ECONNRESET);
    CHECK_EQ(aco_join(writer, NULL), 0);
    close_ends(&ends);
}

static void write_to_closed(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    (void)sim, (void)arg;
    CHECK(aco_io_close(ends.server) == 0);
    ends.server = -1;
    CHECK_EQ(aco_io_write(ends.client, "lost", 4), 4);
    CHECK(aco_sleep(ACO_SECOND) == 0);
    CHECK(aco_io_write(ends.client, "", 1) == -1 && (errno == EPIPE || errno == ECONNRESET));
    close_ends(&ends);
}

/* A writer waits when both buffers are full, and goes on when the peer reads. */
static void fill_buffers(aco_sim_t *sim, void *arg)
{
    static char bytes[1 << 17];
    ends_t ends = connect_ends();
    size_t written = 0, got = 0;
    ssize_t n;
    (void)sim, (void)arg;
    aco_scope_t scope;
    CHECK(aco_scope_begin(&scope, aco_after(ACO_SECOND)) == 0);
    while ((n = aco_io_write(ends.client, bytes, sizeof bytes)) > 0)
        written += (size_t)n;
    CHECK(n == -1 && errno == ETIMEDOUT && written > 0);
    CHECK(aco_scope_end(&scope) == 0 || errno == ETIMEDOUT);
    while (got < written && (n = aco_io_read(ends.server, bytes, sizeof bytes)) > 0)
        got += (size_t)n;
    CHECK_EQ(got, written);
    CHECK_EQ(aco_io_write(ends.client, bytes, 1), 1);
    CHECK_EQ(aco_io_read(ends.server, bytes, sizeof bytes), 1);
    close_ends(&ends);
}

static void end_by_deadline(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    int64_t began = aco_now();
    char text[8];
    aco_scope_t scope;
    (void)sim, (void)arg;
    CHECK(aco_scope_begin(&scope, aco_after(ACO_SECOND)) == 0);
    CHECK(aco_io_read(ends.server, text, sizeof text) == -1 && errno == ETIMEDOUT);
    CHECK_EQ(aco_now() - began, ACO_SECOND);
    (void)aco_scope_end(&scope);
    close_ends(&ends);
}

static void be_refused(aco_sim_t *sim, void *arg)
{
    int64_t began = aco_now();
    (void)arg;
    CHECK(aco_sim_link(sim, "*", "*", &(aco_sim_link_t){.latency = {ACO_SECOND, ACO_SECOND}}) == 0);
    CHECK(aco_io_dial("tcp", "127.0.0.1", "81", NULL) == -1 && errno == ECONNREFUSED);
    CHECK_EQ(aco_now() - began, 2 * ACO_SECOND);
}

/* ---- Backlog ---- */

static void *dial_and_close(void *arg)
{
    int fd = aco_io_dial("tcp", "127.0.0.1", "80", NULL);
    CHECK(fd >= 0);
    CHECK(aco_io_close(fd) == 0);
    return arg;
}

static void fill_backlog(aco_sim_t *sim, void *arg)
{
    aco_io_options_t o = {0};
    aco_t *diallers[6];
    int listener;
    (void)sim, (void)arg;
    o.backlog = 1;
    listener = aco_io_listen("tcp", "127.0.0.1", "80", &o);
    for (int i = 0; i < 6; i++)
        diallers[i] = aco_spawn(dial_and_close, NULL, NULL);
    for (int i = 0; i < 6; i++) {
        int fd;
        CHECK(aco_sleep(ACO_SECOND / 10) == 0);
        fd = aco_io_accept(listener);
        CHECK(fd >= 0 && aco_io_close(fd) == 0);
    }
    for (int i = 0; i < 6; i++)
        CHECK(aco_join(diallers[i], NULL) == 0);
    CHECK(aco_io_close(listener) == 0);
}

static void close_listener(aco_sim_t *sim, void *arg)
{
    int listener = aco_io_listen("tcp", "127.0.0.1", "80", NULL), fd = aco_io_dial("tcp", "127.0.0.1", "80", NULL);
    char byte;
    (void)sim, (void)arg;
    CHECK(aco_io_wait_readable(listener) == 0 && aco_io_close(listener) == 0);
    CHECK(aco_io_read(fd, &byte, 1) == -1 && errno == ECONNRESET);
    CHECK(aco_io_close(fd) == 0);
}

/* The client gives up while its request, or the answer to it, is on its way. */
static void give_up_dialling(aco_sim_t *sim, void *arg)
{
    int listener = aco_io_listen("tcp", "127.0.0.1", "80", NULL), fd = -1;
    aco_scope_t scope;
    (void)arg;
    CHECK(aco_sim_link(sim, "*", "*", &(aco_sim_link_t){.latency = {1, 30}}) == 0);
    CHECK(aco_scope_begin(&scope, aco_after(1 + (int64_t)aco_sim_random(sim, 60))) == 0);
    fd = aco_io_dial("tcp", "127.0.0.1", "80", NULL);
    CHECK(fd >= 0 || errno == ETIMEDOUT);
    (void)aco_scope_end(&scope);
    CHECK(aco_scope_begin(&scope, aco_after(ACO_SECOND)) == 0);
    if (fd >= 0) {
        int server = aco_io_accept(listener);
        CHECK(server >= 0 && aco_io_close(server) == 0 && aco_io_close(fd) == 0);
    }
    CHECK(aco_io_accept(listener) == -1 || !"a connection that was given up");
    (void)aco_scope_end(&scope);
    CHECK(aco_io_close(listener) == 0);
}

/* ---- Names of sockets ---- */

static void know_addresses(aco_sim_t *sim, void *arg)
{
    ends_t ends = connect_ends();
    char a[ACO_IO_ADDRESS_SIZE], b[ACO_IO_ADDRESS_SIZE];
    (void)sim, (void)arg;
    CHECK(aco_io_local_address(ends.server, a, sizeof a) == 0 && strcmp(a, "127.0.0.1:80") == 0);
    CHECK(aco_io_peer_address(ends.client, a, sizeof a) == 0 && strcmp(a, "127.0.0.1:80") == 0);
    CHECK(aco_io_local_address(ends.client, a, sizeof a) == 0 && aco_io_peer_address(ends.server, b, sizeof b) == 0);
    CHECK(strcmp(a, b) == 0);
    CHECK(aco_io_peer_address(ends.listener, a, sizeof a) == -1 && errno == ENOTCONN);
    CHECK(aco_io_listen("tcp", "127.0.0.1", "80", NULL) == -1 && errno == EADDRINUSE);
    CHECK(aco_io_listen("tcp", NULL, "80", NULL) == -1 && errno == EADDRINUSE);
    close_ends(&ends);
}

/* ---- Datagrams ---- */

static void exchange_datagrams(aco_sim_t *sim, void *arg)
{
    int a = aco_io_bind("udp", "127.0.0.1", "53", NULL), b = aco_io_dial("udp", "127.0.0.1", "53", NULL), sum = 0;
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    (void)sim, (void)arg;
    CHECK(a >= 0 && b >= 0);
    for (char i = 1; i <= 10; i++)
        CHECK_EQ(aco_io_send(b, &i, 1, 0), 1);
    for (int i = 1; i <= 10; i++) {
        char byte = 0;
        CHECK_EQ(aco_io_recvfrom(a, &byte, 1, 0, (struct sockaddr *)&from, &length), 1);
        sum += byte;
    }
    CHECK_EQ(sum, 55);
    CHECK_EQ(aco_io_sendto(a, "answer", 6, 0, (struct sockaddr *)&from, length), 6);
    CHECK_EQ(aco_io_recv(b, &(char){0}, 1, MSG_TRUNC), 6);
    CHECK(aco_io_close(a) == 0);
    CHECK_EQ(aco_io_send(b, "", 0, 0), 0);
    CHECK(aco_io_recv(b, &(char){0}, 1, 0) == -1 && errno == ECONNREFUSED);
    CHECK(aco_io_close(b) == 0);
}

/* ---- Records ---- */

static void *read_records(void *listener)
{
    int fd = aco_io_accept(descriptor(listener));
    char text[4] = "";
    CHECK_EQ(aco_io_read(fd, text, 3), 3);
    CHECK(memcmp(text, "one", 3) == 0);
    CHECK_EQ(aco_io_read(fd, text, 2), 2); /* the rest is lost */
    CHECK_EQ(aco_io_read(fd, text, 3), 3);
    CHECK(memcmp(text, "two", 3) == 0);
    CHECK_EQ(aco_io_read(fd, text, 3), 0);
    CHECK(aco_io_close(fd) == 0);
    return NULL;
}

static void exchange_records(aco_sim_t *sim, void *arg)
{
    int listener = aco_io_listen("unixpacket", "@records", NULL, NULL), fd;
    aco_t *reader = aco_spawn(read_records, (void *)(intptr_t)listener, NULL);
    (void)sim, (void)arg;
    fd = aco_io_dial("unixpacket", "@records", NULL, NULL);
    CHECK_EQ(aco_io_write(fd, "one", 3), 3);
    CHECK_EQ(aco_io_write(fd, "long", 4), 4);
    CHECK_EQ(aco_io_write(fd, "two", 3), 3);
    CHECK(aco_io_close(fd) == 0 && aco_join(reader, NULL) == 0 && aco_io_close(listener) == 0);
}

/* A socket whose last descriptor is on its way in the socket itself: nobody can take it out when the client closes. */
static void send_itself(aco_sim_t *sim, void *arg)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } rights;
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    int listener = aco_io_listen("unix", "@itself", NULL, NULL), fd = aco_io_dial("unix", "@itself", NULL, NULL);
    int own = aco_io_accept(listener);
    (void)sim, (void)arg;
    memset(&rights, 0, sizeof rights);
    rights.head.cmsg_level = SOL_SOCKET;
    rights.head.cmsg_type = SCM_RIGHTS;
    rights.head.cmsg_len = CMSG_LEN(sizeof own);
    memcpy(CMSG_DATA(&rights.head), &own, sizeof own);
    CHECK_EQ(aco_io_sendmsg(own, &message, MSG_NOSIGNAL), 1);
    CHECK(aco_io_close(own) == 0 && aco_io_close(fd) == 0 && aco_io_close(listener) == 0);
}

/* ---- Unix datagrams ---- */

enum { NUMBERS = 40 /* more than a queue has places */ };

static void *send_numbers(void *fd)
{
    for (char i = 0; i < NUMBERS; i++)
        CHECK_EQ(aco_io_send(descriptor(fd), &i, 1, 0), 1);
    return NULL;
}

static void exchange_unix_datagrams(aco_sim_t *sim, void *arg)
{
    int a = aco_io_bind("unixgram", "@numbers", NULL, NULL), b = aco_io_dial("unixgram", "@numbers", NULL, NULL);
    aco_t *sender = aco_spawn(send_numbers, (void *)(intptr_t)b, NULL);
    char number;
    (void)sim, (void)arg;
    for (char i = 0; i < NUMBERS; i++)
        CHECK(aco_io_recv(a, &number, 1, 0) == 1 && number == i);
    CHECK(aco_join(sender, NULL) == 0 && aco_io_close(a) == 0);
    CHECK(aco_io_send(b, "", 1, 0) == -1 && errno == ECONNREFUSED);
    CHECK(aco_io_send(b, "", 1, 0) == -1 && errno == ENOTCONN);
    CHECK(aco_io_close(b) == 0);
}

/* ---- Failures ---- */

static void leak(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    aco_set_name(aco_current_task(), "forgetful");
    CHECK(aco_io_listen("tcp", "127.0.0.1", "80", NULL) >= 0);
}

static void wait_for_ever(aco_sim_t *sim, void *arg)
{
    int listener = aco_io_listen("tcp", "127.0.0.1", "80", NULL);
    (void)sim, (void)arg;
    (void)aco_io_accept(listener);
}

static void read_real(aco_sim_t *sim, void *arg)
{
    char byte;
    (void)sim, (void)arg;
    CHECK(aco_io_read(0, &byte, 1) == -1 && errno == ENOSYS);
}

static void mistake_links(aco_sim_t *sim, void *arg)
{
    aco_sim_link_t link = {.latency = {2, 1}};
    (void)arg;
    FAILS_WITH(aco_sim_link(sim, "*", "*", &link), EINVAL);
    link.latency = (aco_sim_range_t){-1, 1};
    FAILS_WITH(aco_sim_link(sim, "*", "*", &link), EINVAL);
    FAILS_WITH(aco_sim_link(sim, "a", "*", NULL), EINVAL);
    FAILS_WITH(aco_sim_link(NULL, "*", "*", NULL), EINVAL);
    CHECK(aco_sim_link(sim, "*", "*", NULL) == 0);
}

int main(void)
{
    sim_alarm(60);
    echoes();
    passes(close_halves, NULL, RUNS);
    passes(reset_by_unread, NULL, RUNS);
    passes(reset_under_two, NULL, RUNS);
    passes(write_to_closed, NULL, RUNS);
    passes(fill_buffers, NULL, RUNS / 10);
    passes(end_by_deadline, NULL, RUNS);
    passes(be_refused, NULL, RUNS);
    passes(fill_backlog, NULL, RUNS);
    passes(close_listener, NULL, RUNS);
    passes(give_up_dialling, NULL, RUNS);
    passes(know_addresses, NULL, RUNS);
    passes(exchange_datagrams, NULL, RUNS);
    passes(exchange_records, NULL, RUNS);
    passes(send_itself, NULL, 1);
    passes(exchange_unix_datagrams, NULL, RUNS);
    passes(mistake_links, NULL, 1);
    CHECK(is_in(reason_of(leak, NULL), "descriptors that were not closed: 1; the first is "));
    CHECK(is_in(reason_of(leak, NULL), "made by socket() in coroutine \"forgetful\""));
    CHECK(is_in(reason_of(wait_for_ever, NULL), "a deadlock: epoll_wait() waits for ever"));
    CHECK(is_in(reason_of(read_real, NULL), "it needs fcntl()"));
    return check_result("sim_net");
}
