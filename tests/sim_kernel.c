/* The simulation's network is the kernel's: random sequences of calls on sockets, eventfds and epoll have the same
 * results, errors, bytes and readiness in both. The kernel's is its loopback network.
 *
 * sim_kernel COUNT [SEED [kernel|known|show]]: so many sequences, the first one from this seed. At a difference it
 * prints the seed, and both worlds' lines of the shortest sequence that it finds by leaving calls out. "kernel"
 * compares the kernel with itself, "known" makes the calls that are known to differ, too, "show" prints what the
 * sequence of the seed does in the kernel. */
#define _GNU_SOURCE
#include "check.h"
#include "socket_world.h"

#include "aco/sim.h"

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

enum {
    MOST_REPORTS = 40,
    MOST_DIFFERING = 1000,
    MOST_TRIES = 50,
    STALL_US = 3000 /* less than a tick of 4 ms */,
    US_PER_S = 1000000,
    NS_PER_US = 1000
};

/* What is not simulated is left out: such a call fails a run. */
static int is_simulated(const call_t *call)
{
    static const char sockets[SOCKET_VARIANTS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    switch (call->kind) {
    case CALL_SOCKET:
        return sockets[call->how % SOCKET_VARIANTS];
    case CALL_SET:
        return call->how % (OPTIONS + 4) >= 7 && (call->how % (OPTIONS + 4) < 12 || call->how % (OPTIONS + 4) > 13);
    case CALL_GET:
        return call->how % (OPTIONS + 1) < 12 || call->how % (OPTIONS + 1) == OPTIONS;
    default:
        return 1;
    }
}

/* ---- Known differences: calls that are not made ---- */

static int has_peer(const world_t *w, int slot)
{
    address_t peer;
    peer.length = sizeof peer.is;
    return aco__system.getpeername(fd_of(w, slot), (struct sockaddr *)&peer.is, &peer.length) == 0;
}

static int is_bound(const world_t *w, int slot)
{
    address_t own;
    own_address(w, slot, w->kind[slot], &own);
    return is_inet(w->kind[slot]) ? port_of(&own) != 0 : own.length > sizeof(sa_family_t);
}

static int is_sendto(const call_t *call)
{
    return call->kind == CALL_SEND && (call->how % 8 == 4 || call->how % 8 == 5);
}

/* The target of a connect() or sendto(). */
static void target_of(world_t *w, const call_t *call, address_t *target)
{
    int before = w->line_n;
    if (call->kind == CALL_CONNECT)
        choose_target(w, call, w->kind[call->slot], target);
    else
        choose_receiver(w, call, target);
    w->line_n = before;
    w->line[before] = 0;
}

static int is_udp(const world_t *w, int slot)
{
    return w->kind[slot] == SOCKET_UDP || w->kind[slot] == SOCKET_UDP6;
}

static int is_bad_connect_of_udp(world_t *w, const call_t *call)
{
    address_t to;
    if (!is_udp(w, call->slot) || call->kind != CALL_CONNECT)
        return 0;
    target_of(w, call, &to);
    return port_of(&to) == 0 || call->how % 16 == 13;
}

static int is_ipv4_by_bound_ipv6(world_t *w, const call_t *call)
{
    address_t to;
    if (!is_ipv6(w->kind[call->slot]) || !(is_sendto(call) || call->kind == CALL_CONNECT))
        return 0;
    target_of(w, call, &to);
    return is_mapped(&to) && is_bound(w, call->slot);
}

static int is_edge_of_unix_writing(world_t *w, const call_t *call)
{
    uint32_t events = events_of(call);
    return call->kind == CALL_WATCH && !is_inet(w->kind[call->other]) && is_socket(w->kind[call->other]) &&
           events & EPOLLET && events & EPOLLOUT;
}

static int is_second_connect(world_t *w, const call_t *call)
{
    int slot = call->slot;
    return call->kind == CALL_CONNECT && is_tcp(w->kind[slot]) && w->has_begun[slot] && !has_peer(w, slot);
}

/* In the kernel, the address may still be taken since an earlier sequence. */
static int is_bind_to_old_address(world_t *w, const call_t *call)
{
    return call->kind == CALL_BIND && is_tcp(w->kind[call->slot]) && call->how % 16 >= 10 &&
           is_tcp(w->kind[call->other]) && !w->has_name[call->other];
}

static int is_second_bind(world_t *w, const call_t *call)
{
    return call->kind == CALL_BIND && is_tcp(w->kind[call->slot]) && w->has_begun[call->slot];
}

static int is_shutdown_of_listener(world_t *w, const call_t *call)
{
    int listens = 0; /* also by another descriptor */
    socklen_t length = sizeof listens;
    if (call->kind == CALL_SHUTDOWN && is_tcp(w->kind[call->slot]))
        (void)aco__system.getsockopt(fd_of(w, call->slot), SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
    return listens;
}

static int is_second_shutdown(world_t *w, const call_t *call)
{
    return call->kind == CALL_SHUTDOWN && is_tcp(w->kind[call->slot]) && w->has_begun[call->slot] &&
           !has_peer(w, call->slot);
}

static int is_shutdown_with_edges(world_t *w, const call_t *call)
{
    return call->kind == CALL_SHUTDOWN && is_tcp(w->kind[call->slot]) && w->has_edges[call->slot];
}

static const struct {
    const char *what; /* docs/simulation-evidence.md has them, too */
    int (*is)(world_t *w, const call_t *call);
} known[] = {
    {"UDP: connect() to port 0 or to another family", is_bad_connect_of_udp},
    {"IPv4's addresses for a socket that is bound to one of IPv6", is_ipv4_by_bound_ipv6},
    {"edges of EPOLLOUT on unix sockets", is_edge_of_unix_writing},
    {"TCP: connect() after a failure", is_second_connect},
    {"bind() of a TCP socket that was connected", is_second_bind},
    {"TCP: bind() to an address that the system has chosen", is_bind_to_old_address},
    {"TCP: shutdown() of a listener", is_shutdown_of_listener},
    {"TCP: shutdown() after a failure", is_second_shutdown},
    {"the edge when the peer acknowledges the end of a TCP stream", is_shutdown_with_edges},
};
static int makes_known; /* these calls, to see whether they still differ */

static int is_known(world_t *w, const call_t *call)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!makes_known && known[i].is(w, call))
            return 1;
    return 0;
}

/* Makes the calls in a world. Returns 0, or -1 if that cannot be. */
typedef int (*make_t)(world_t *w, const calls_t *calls);

/* ---- The kernel ---- */

static int pings = -1; /* a socket that is connected to itself */

/* Packets on the loopback device wait in one queue for each processor, in order. So a packet that comes back says that
 * all before it have arrived; and answers to them stand in the queue. */
static void send_behind(int packets)
{
    char byte = 0;
    for (int i = 0; i < packets; i++)
        CHECK(send(pings, &byte, 1, 0) == 1 && recv(pings, &byte, 1, 0) == 1);
}

/* No acknowledgement waits for its clock, either: the option sends it. */
static void settle_kernel(const world_t *w, int packets)
{
    int acknowledges = 0;
    send_behind(packets);
    for (int i = 0; i < SLOTS; i++)
        if (w->fd[i] >= 0 && is_tcp(w->kind[i]))
            acknowledges |= set_option(w, i, IPPROTO_TCP, TCP_QUICKACK, 1) == 0;
    if (acknowledges)
        send_behind(2);
}

static void prepare_kernel(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof own;
    cpu_set_t one;
    int processor = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET(processor < 0 ? 0 : processor, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    pings = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(bind(pings, (struct sockaddr *)&own, sizeof own) == 0);
    CHECK(getsockname(pings, (struct sockaddr *)&own, &length) == 0);
    CHECK(connect(pings, (struct sockaddr *)&own, sizeof own) == 0);
}

static int64_t microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

/* At an address that no call has had for a minute: ports of connections that have ended stay taken. Once more if the
 * machine stood still, so that TCP's timers may have run, or if a socket got the port to which it connects. */
static int make_in_kernel(world_t *w, const calls_t *calls)
{
    static uint32_t next;
    int64_t began;
    for (int i = 0; i < MOST_TRIES; i++) {
        began = microseconds();
        w->loopback = 0x7f800000 | (uint32_t)(getpid() & 0x7f) << 16 | (1 + next++ % 0xfffe);
        w->settle = settle_kernel;
        w->leaves_out = is_known;
        make_calls(w, calls);
        if (microseconds() - began < STALL_US && !w->has_met_itself)
            return 0;
    }
    return 0;
}

/* ---- The simulation ---- */

typedef struct run {
    world_t *w;
    const calls_t *calls;
} run_t;

static void settle_simulation(const world_t *w, int packets)
{
    (void)w;
    CHECK(aco_sleep(packets * ACO_SECOND / 10) == 0);
}

static void make_in_run(aco_sim_t *sim, void *arg)
{
    const run_t *run = arg;
    (void)sim;
    run->w->loopback = 0x7f800001;
    run->w->settle = settle_simulation;
    run->w->leaves_out = is_known;
    make_calls(run->w, run->calls);
}

static int make_in_simulation(world_t *w, const calls_t *calls)
{
    run_t run = {w, calls};
    return aco_sim_run(make_in_run, &run, 1, NULL, NULL);
}

/* ---- A world with a fault, to see that it is found ---- */

static int (*true_shutdown)(int fd, int how);

static int shut_nothing_down(int fd, int how)
{
    return true_shutdown(fd, how == SHUT_WR ? SHUT_RD : how);
}

static int make_with_fault(world_t *w, const calls_t *calls)
{
    int done;
    true_shutdown = aco__system.shutdown;
    aco__system.shutdown = shut_nothing_down;
    done = make_in_kernel(w, calls);
    aco__system.shutdown = true_shutdown;
    return done;
}

/* ---- Comparing ---- */

static world_t ours, theirs;

/* The first line that differs; -1: none does. */
static int difference(const calls_t *calls, make_t one, make_t other)
{
    CHECK(one(&ours, calls) == 0);
    if (other(&theirs, calls) != 0)
        return calls->n - 1;
    for (int i = 0; i < calls->n; i++)
        if (strcmp(ours.lines[i], theirs.lines[i]) != 0)
            return i;
    return -1;
}

/* Leaves out what is not needed for a difference. */
static void shrink(calls_t *calls, make_t one, make_t other)
{
    calls_t shorter;
    int before, last = difference(calls, one, other);
    if (last >= 0)
        calls->n = last + 1;
    do {
        before = calls->n;
        for (int i = calls->n - 1; i >= 0; i--) {
            shorter = *calls;
            drop_call(&shorter, i);
            if (shorter.n && difference(&shorter, one, other) >= 0)
                *calls = shorter;
        }
    } while (calls->n < before);
}

static void print_lines(const calls_t *calls, make_t one, make_t other)
{
    int differs = difference(calls, one, other);
    for (int i = 0; i < calls->n && (differs < 0 || i <= differs); i++) {
        if (i != differs) {
            fprintf(stderr, "    %s\n", ours.lines[i]);
            continue;
        }
        fprintf(stderr, "  - %s\n  + %s\n", ours.lines[i], theirs.lines[i]);
    }
}

/* Whether the lines differ once more; else they are printed. */
static int difference_again(const calls_t *calls, make_t one, make_t other)
{
    static world_t our_first, their_first;
    int again;
    our_first = ours;
    their_first = theirs;
    again = difference(calls, one, other);
    for (int i = 0; again < 0 && i < calls->n; i++)
        if (strcmp(our_first.lines[i], their_first.lines[i]) != 0)
            fprintf(stderr, "only once:\n  - %s\n  + %s\n", our_first.lines[i], their_first.lines[i]);
    return again;
}

/* The first of the sequences that differs, shrunk. Returns its seed, or 0. */
static uint64_t first_difference(calls_t *calls, uint64_t seed, uint64_t count, make_t one, make_t other)
{
    for (uint64_t i = 0; i < count; i++) {
        random_calls(calls, seed + i);
        for (int c = calls->n - 1; c >= 0; c--)
            if (!is_simulated(&calls->calls[c]))
                drop_call(calls, c);
        if (difference(calls, one, other) < 0)
            continue;
        if (difference_again(calls, one, other) >= 0)
            shrink(calls, one, other);
        return seed + i;
    }
    return 0;
}

/* The two lines that differ, without numbers. */
static void kind_of_difference(char *text, size_t size, const calls_t *calls, make_t one, make_t other)
{
    int differs = difference(calls, one, other);
    size_t n = 0;
    for (int i = 0; i < 2 && differs >= 0; i++)
        for (const char *p = i ? theirs.lines[differs] : ours.lines[differs]; *p && n < size - 1; p++)
            if (*p < '0' || *p > '9')
                text[n++] = *p;
    text[n] = 0;
}

static void agree(uint64_t seed, uint64_t count, make_t one, make_t other)
{
    static char kinds[MOST_REPORTS][2 * LINE];
    calls_t calls;
    int found = 0, differing = 0, i;
    for (uint64_t next = seed, at; found < MOST_REPORTS && differing < MOST_DIFFERING; next = at + 1) {
        at = first_difference(&calls, next, seed + count - next, one, other);
        if (!at)
            break;
        differing++;
        kind_of_difference(kinds[found], sizeof kinds[found], &calls, one, other);
        for (i = 0; strcmp(kinds[i], kinds[found]) != 0; i++)
            ;
        if (i < found)
            continue;
        found++;
        fprintf(stderr, "seed %" PRIu64 " differs; %d calls are enough:\n", at, calls.n);
        print_lines(&calls, one, other);
    }
    CHECK_EQ(differing, 0);
}

/* A call that does something else is found, and the sequence that shows it is short. */
static void faults_are_found(void)
{
    calls_t calls;
    CHECK(first_difference(&calls, 1, 100, make_in_kernel, make_with_fault) != 0);
    CHECK(calls.n <= 7); /* socket, bind, listen, socket, connect, accept, shutdown */
}

static void show(uint64_t seed)
{
    calls_t calls;
    random_calls(&calls, seed);
    print_lines(&calls, make_in_kernel, make_in_kernel);
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000, seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const char *mode = argc > 3 ? argv[3] : "";
    signal(SIGPIPE, SIG_IGN);
    prepare_kernel();
    makes_known = strcmp(mode, "known") == 0;
    if (strcmp(mode, "show") == 0) {
        show(seed);
    } else {
        faults_are_found();
        agree(seed, count, make_in_kernel, strcmp(mode, "kernel") == 0 ? make_in_kernel : make_in_simulation);
    }
    close(pings);
    return check_result("sim_kernel");
}
