/* Connections that move between the servers of several threads.
 *
 * A connection moves when its task has nothing of it: before its first byte, or between two requests. That task gives
 * the descriptor up, with the stream that `open` has made and the session of HTTP/2, lists the move with the other
 * server, and waits. The other server's receiver makes a new task for the connection there, or refuses; then the first
 * task ends, or goes on as before. What the peer sends meanwhile waits in the socket.
 *
 * The lock is held for a few instructions. Nothing inside posts or calls the system, except to spin: a simulation lets
 * other threads run there. So who finds a receiver asleep takes its answer away under the lock, and tells it outside.
 * Because only one can have taken it, and the receiver does not end before it is told, it is still there then. */
#include "http/balance.h"
#include "http/per_address.h"
#include "http/route.h"
#include "system/system.h"

#include <string.h>

enum { STALLED_NS = 1000 * 1000 * 1000 }; /* so long after a stall connections leave the thread */

static void lock_balance(aco_http_balance_t *balance)
{
    ACO__LOCKED_BEGIN(balance);
    while (__atomic_exchange_n(&balance->aco__lock, 1, __ATOMIC_ACQUIRE))
        aco__system.sched_yield();
}

static void unlock_balance(aco_http_balance_t *balance)
{
    __atomic_store_n(&balance->aco__lock, 0, __ATOMIC_RELEASE);
    ACO__LOCKED_END(balance);
}

static aco_http_balance_t *balance_of(const aco__http_member_t *member)
{
    return member->server->options.balance;
}

void aco__http_count_in(aco__http_member_t *member, int n)
{
    aco_http_balance_t *balance = balance_of(member);
    lock_balance(balance);
    member->connections += n;
    unlock_balance(balance);
}

/* ---- Stalls ---- */

/* Without an idle_time, from whose end that of a request is known, handlers are always measured. */
static void set_measuring(aco_http_server_t *server, int measures)
{
    const int64_t idle_time = server->options.idle_time;
    server->measures = measures || idle_time > ACO_FOREVER / 2;
    server->suspect_after = server->measures ? INT64_MIN : idle_time + HTTP_STALL;
}

void aco__http_suspect(aco__http_member_t *member, int64_t now)
{
    member->measures_until = now + STALLED_NS;
    set_measuring(member->server, 1);
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void note_stall(aco__http_member_t *member, int64_t now)
{
    __atomic_store_n(&member->stalled_until, now + STALLED_NS, __ATOMIC_RELAXED);
    aco__http_suspect(member, now);
}

static uint64_t polls(void)
{
    aco_io_stats_t stats;
    (void)aco_io_stats(&stats);
    return stats.polls;
}

/* A thread that has not looked for events for so long has stalled. If it has not looked during the handler, it was the
 * handler. Else it was the task of this one or another that has run since, but none whose handler has ended before. */
int aco__http_measure_route(aco__http_exchange_t *x, unsigned char *heavy)
{
    aco__http_member_t *member = x->server->member;
    const uint64_t polls_before = polls();
    int64_t began = aco_now(), now;
    int status = aco__http_call_route(x), has_waited = polls() != polls_before;
    now = aco_now();
    if (has_waited)
        began = later_of(began, later_of(aco__polled_at(), member->measured_at));
    if (now - began > HTTP_STALL) {
        note_stall(member, now);
        if (*heavy != HTTP_HEAVY)
            *heavy = has_waited ? HTTP_MAYBE_HEAVY : HTTP_HEAVY;
    } else {
        if (*heavy && *heavy != HTTP_HEAVY)
            --*heavy;
        if (now > member->measures_until)
            set_measuring(x->server, 0);
    }
    member->measured_at = now;
    return status;
}

/* ---- Where to ---- */

/* Of the servers that could take a connection from this one, the one with the fewest; NULL: it stays. With the lock. */
static aco__http_member_t *find_taker(const aco__http_member_t *from, int is_new, int64_t now)
{
    const aco_http_balance_t *balance = balance_of(from);
    aco__http_member_t *best = NULL;
    ACO__ASSERT_LOCKED(balance);
    for (aco__http_member_t *m = balance->aco__members; m && from->is_open; m = m->next)
        if (m != from && !aco__http_has_stalled(m, now) && (!m->most || m->connections < m->most) &&
            (!best || m->connections < best->connections))
            best = m;
    if (best && is_new && !aco__http_has_stalled(from, now) &&
        from->connections <= best->connections + 1 + best->connections / 16)
        return NULL;
    return best;
}

static int has_taker(const aco__http_member_t *from, int is_new)
{
    aco_http_balance_t *balance = balance_of(from);
    int64_t now = aco_now();
    int has;
    lock_balance(balance);
    has = find_taker(from, is_new, now) != NULL;
    unlock_balance(balance);
    return has;
}

/* ---- The thread that gives ---- */

/* Lists the move with another server. Whether there is one. */
static int list_move(aco__http_member_t *from, aco__http_move_t *move, int is_new)
{
    aco_http_balance_t *balance = balance_of(from);
    aco__answer_t *sleeper = NULL;
    int64_t now = aco_now();
    lock_balance(balance);
    move->to = find_taker(from, is_new, now);
    if (move->to) {
        move->next = NULL;
        *move->to->last = move;
        move->to->last = &move->next;
        move->is_listed = 1;
        move->to->connections++;
        from->connections--;
        sleeper = move->to->sleeper;
        move->to->sleeper = NULL;
    }
    unlock_balance(balance);
    if (sleeper)
        aco__answer_tell(sleeper);
    return move->to != NULL;
}

/* Whether nobody has looked at the move yet: it is undone now. */
static int withdraw_move(aco_http_balance_t *balance, aco__http_move_t *move)
{
    aco__http_move_t **place;
    int is_listed;
    lock_balance(balance);
    is_listed = move->is_listed;
    if (is_listed) { /* so that server has not left */
        for (place = &move->to->first; *place != move;)
            place = &(*place)->next;
        *place = move->next;
        if (!move->next)
            move->to->last = place;
        move->to->connections--;
    }
    unlock_balance(balance);
    return is_listed;
}

/* Whether another thread has taken the connection. */
ACO__SWITCHES
static int give_connection(aco__http_member_t *from, aco__http_move_t *move, int is_new, const char *location)
{
    static const char what[] = "another thread's server";
    if (!list_move(from, move, is_new))
        return 0;
    if (aco__answer_wait(&move->answer, "aco_http_serve", what, aco_after(HTTP_STALL), location, NULL) != 0 &&
        !withdraw_move(balance_of(from), move)) /* a stall may be one that nobody knows of yet */
        aco__answer_await(&move->answer, what, location);
    if (!move->is_taken)
        aco__http_count_in(from, 1);
    return move->is_taken;
}

ACO__SWITCHES static int move_to(aco__http_connection_t *c, int is_new, struct aco__http2 *http2, const char *location)
{
    aco__http_member_t *from = c->server->member;
    size_t sz = sizeof(aco__http_move_t);
    aco__http_move_t *move;
    int is_taken = 0;
    if (!has_taker(from, is_new) || !(move = aco__service_allocate(&sz, "aco_http_serve")))
        return 0;
    memset(move, 0, sizeof *move);
    move->fd = c->link.own.fd;
    move->stream = c->link.is_plain ? NULL : c->link.stream;
    move->http2 = http2;
    move->requests = c->requests;
    if (aco__answer_prepare(&move->answer, "aco_http_serve") == 0) {
        (void)aco_io_release(move->fd);
        is_taken = give_connection(from, move, is_new, location);
        if (!is_taken)
            (void)aco_io_adopt(move->fd); /* without memory it works all the same, but slower */
    }
    aco__service_free(move, sz);
    if (!is_taken)
        return 0;
    aco__http_link_use(&c->link, NULL);
    c->is_moved = 1;
    __atomic_fetch_add(&aco__http_connections_moved, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&balance_of(from)->moved, 1, __ATOMIC_RELAXED);
    return 1;
}

int aco__http_place(aco__http_connection_t *c, const char *location)
{
    return !c->is_refused && move_to(c, 1, NULL, location);
}

int aco__http_move(aco__http_connection_t *c, struct aco__http2 *http2, const char *location)
{
    return move_to(c, 0, http2, location);
}

/* ---- The thread that takes ---- */

/* The next connection that has come; NULL: the server takes no more. */
ACO__SWITCHES static aco__http_move_t *next_move(aco__http_member_t *member)
{
    aco_http_balance_t *balance = balance_of(member);
    for (;;) {
        aco__http_move_t *move;
        int prepared = aco__answer_prepare(&member->answer, "aco_http_serve"), is_open;
        ACO__ASSERT(prepared == 0); /* it fails only without memory that the thread has since the first time */
        (void)prepared;
        lock_balance(balance);
        move = member->first;
        is_open = member->is_open;
        if (move) {
            member->first = move->next;
            if (!move->next)
                member->last = &member->first;
            move->is_listed = 0;
        } else if (is_open) {
            member->sleeper = &member->answer;
        }
        unlock_balance(balance);
        if (move || !is_open)
            return move;
        aco__answer_await(&member->answer, "connections of other threads", NULL);
    }
}

/* 0, or -1: it stays with its thread. Waits for no place, because others may wait for this. */
ACO__SWITCHES static int take_connection(aco_http_server_t *server, const aco__http_move_t *move)
{
    const size_t most = (size_t)server->options.max_connections;
    struct aco__http_address *address = NULL;
    if (!server->member->is_open || (most && server->group.running >= most) || aco_io_adopt(move->fd) != 0)
        return -1;
    if (server->addresses)
        (void)aco__http_address_enter(server->addresses, move->fd, 1, &address);
    if (server->member->connect(server, move->fd, address, move, "a connection from another thread") == 0)
        return 0;
    aco__http_address_leave(address);
    (void)aco_io_release(move->fd);
    return -1;
}

ACO__SWITCHES static void *receive_moves(void *arg)
{
    aco_http_server_t *server = arg;
    aco__http_move_t *move;
    aco_scope_t shield;
    (void)aco_shield_begin(&shield, ACO_FOREVER); /* as the keeper */
    while ((move = next_move(server->member)) != NULL) {
        move->is_taken = take_connection(server, move) == 0;
        if (!move->is_taken)
            aco__http_count_in(server->member, -1);
        aco__answer_tell(&move->answer);
    }
    (void)aco_scope_end(&shield);
    return NULL;
}

/* ---- Servers ---- */

int aco__http_join_balance(aco_http_server_t *server, ACO__SWITCHES aco__http_connect_t connect)
{
    aco_http_balance_t *balance = server->options.balance;
    size_t sz = sizeof(aco__http_member_t);
    aco__http_member_t *member = aco__service_allocate(&sz, "aco_http_serve");
    if (!member)
        return -1;
    memset(member, 0, sizeof *member);
    member->sz = sz;
    member->server = server;
    member->connect = connect;
    member->last = &member->first;
    member->stalled_until = member->measures_until = INT64_MIN;
    member->measured_at = aco_now();
    member->most = server->options.max_connections;
    if (aco__answer_prepare(&member->answer, "aco_http_serve") == 0)
        member->receiver = aco_spawn(receive_moves, server, NULL);
    if (!member->receiver) {
        int error = errno;
        aco__http_free_member(member);
        errno = error;
        return -1;
    }
    server->member = member;
    set_measuring(server, 0);
    lock_balance(balance);
    member->is_open = 1;
    member->next = balance->aco__members;
    balance->aco__members = member;
    unlock_balance(balance);
    return 0;
}

void aco__http_leave_balance(aco_http_server_t *server, const char *location)
{
    aco_http_balance_t *balance = server->options.balance;
    aco__http_member_t *member = server->member, **place;
    aco__answer_t *sleeper;
    aco_scope_t shield;
    int error = errno;
    if (!member)
        return;
    lock_balance(balance);
    for (place = &balance->aco__members; *place != member;)
        place = &(*place)->next;
    *place = member->next;
    member->is_open = 0;
    sleeper = member->sleeper;
    member->sleeper = NULL;
    unlock_balance(balance);
    if (sleeper)
        aco__answer_tell(sleeper);
    (void)aco_shield_begin_at(&shield, ACO_FOREVER, location);
    (void)aco_join_at(member->receiver, NULL, location);
    (void)aco_scope_end(&shield);
    errno = error;
}

void aco__http_free_member(aco__http_member_t *member)
{
    ACO__ASSERT(!member || (!member->is_open && !member->first && !member->connections));
    if (member)
        aco__service_free(member, member->sz);
}
