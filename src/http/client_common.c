/* Places for requests that the threads of a client have in common.
 *
 * Whoever finds none free waits with a turn in a queue: that of the host, then that of all. A place that becomes free
 * is handed to the first in the queue, whose thread may be another one. The lock is held for a few instructions; memory
 * is allocated, and waiters are told, without it. A turn that was handed a place stays until it is told, which whoever
 * has handed it does. */
#include "http/client_common.h"
#include "system/system.h"

#include "aco/detail/for_libraries.h"
#include "aco/detail/worker.h"

#include <errno.h>
#include <pthread.h>

struct aco__http_common {
    pthread_mutex_t lock; /* of what follows. What is done under it never switches */
    size_t most, most_of_host; /* 0: no limit. They never change */
    aco__http_turns_t all;
    aco__http_host_t *hosts;
};

typedef struct aco__http_turn {
    struct aco__http_turn *next; /* with the lock, like the next one */
    int is_queued;
    aco__answer_t answer;
} aco__http_turn_t;

static const char call_name[] = "aco_http_call";

static void lock_common(aco__http_common_t *common)
{
    aco__system.pthread_mutex_lock(&common->lock);
    ACO__NO_SWITCH_BEGIN();
}

static void unlock_common(aco__http_common_t *common)
{
    ACO__NO_SWITCH_END();
    aco__system.pthread_mutex_unlock(&common->lock);
}

/* ---- Queues: with the lock ---- */

static void open_turns(aco__http_turns_t *turns, size_t n)
{
    turns->free = n;
    turns->first = NULL;
    turns->last = &turns->first;
}

static int take_free(aco__http_turns_t *turns)
{
    ACO__ASSERT(!turns->free || !turns->first);
    if (!turns->free)
        return 0;
    turns->free--;
    return 1;
}

static void queue_turn(aco__http_turns_t *turns, aco__http_turn_t *turn)
{
    ACO__ASSERT(!turns->free && !turn->is_queued && !*turns->last);
    turn->is_queued = 1;
    turn->next = NULL;
    *turns->last = turn;
    turns->last = &turn->next;
}

static void unqueue_turn(aco__http_turns_t *turns, aco__http_turn_t *turn)
{
    aco__http_turn_t **at = &turns->first;
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    if (!turn->next)
        turns->last = at;
    turn->is_queued = 0;
}

/* A place is free. Who has it now, and is to be told; NULL: nobody. */
static aco__http_turn_t *hand_over(aco__http_turns_t *turns)
{
    aco__http_turn_t *turn = turns->first;
    if (turn)
        unqueue_turn(turns, turn);
    else
        turns->free++;
    return turn;
}

/* ---- Places ---- */

/* Keeps errno. */
static void tell(aco__http_turn_t *turn)
{
    int error = errno;
    if (turn)
        aco__answer_tell(&turn->answer);
    errno = error;
}

static void give_back(aco__http_common_t *common, aco__http_turns_t *turns)
{
    aco__http_turn_t *turn;
    lock_common(common);
    turn = hand_over(turns);
    unlock_common(common);
    tell(turn);
}

/* Whether there is a place; else `turn`, unless it is NULL, is in the queue. */
static int try_take(aco__http_common_t *common, aco__http_turns_t *turns, aco__http_turn_t *turn)
{
    int is_taken;
    lock_common(common);
    is_taken = take_free(turns);
    if (!is_taken && turn)
        queue_turn(turns, turn);
    unlock_common(common);
    return is_taken;
}

/* Whether the turn was in the queue, so that it has no place. */
static int withdraw(aco__http_common_t *common, aco__http_turns_t *turns, aco__http_turn_t *turn)
{
    int was_queued;
    lock_common(common);
    was_queued = turn->is_queued;
    if (was_queued)
        unqueue_turn(turns, turn);
    unlock_common(common);
    return was_queued;
}

/* 0, or -1 and errno. A place that was handed over is not dropped, also if the wait has ended: the next one fails. */
ACO__SWITCHES
static int await_turn(aco__http_common_t *common, aco__http_turns_t *turns, aco__http_turn_t *turn,
                      const char *location)
{
    static const char what[] = "a connection of a client";
    if (try_take(common, turns, turn) ||
        aco__answer_wait(&turn->answer, call_name, what, ACO_FOREVER, location, NULL) == 0)
        return 0;
    if (withdraw(common, turns, turn))
        return -1;
    aco__answer_await(&turn->answer, what, location);
    return 0;
}

ACO__SWITCHES static int take_turn(aco__http_common_t *common, aco__http_turns_t *turns, const char *location)
{
    size_t sz = sizeof(aco__http_turn_t);
    aco__http_turn_t *turn;
    int result;
    if (try_take(common, turns, NULL))
        return 0;
    turn = aco__service_new(&sz, call_name); /* the stack may be a shared one */
    if (!turn)
        return -1;
    result = aco__answer_prepare(&turn->answer, call_name);
    if (result == 0)
        result = await_turn(common, turns, turn, location);
    aco__service_free(turn, sz);
    return result;
}

/* ---- Hosts ---- */

/* A host with a user more; NULL: there is none yet, and no `made` one to put there. */
static aco__http_host_t *enter_common_host(aco__http_common_t *common, int is_tls, const char *name, const char *port,
                                    aco__http_host_t *made)
{
    aco__http_host_t *host;
    lock_common(common);
    host = aco__http_find_host(common->hosts, is_tls, name, port);
    if (!host && made) {
        host = made;
        host->next = common->hosts;
        common->hosts = host;
    }
    if (host)
        host->users++;
    unlock_common(common);
    return host;
}

/* NULL and errno. */
static aco__http_host_t *find_or_make(aco__http_common_t *common, int is_tls, const char *name, const char *port)
{
    aco__http_host_t *host = enter_common_host(common, is_tls, name, port, NULL), *made;
    if (host)
        return host;
    made = aco__http_new_host(is_tls, name, port);
    if (!made)
        return NULL;
    open_turns(&made->turns, common->most_of_host);
    host = enter_common_host(common, is_tls, name, port, made);
    if (host != made) /* another thread was faster */
        aco__http_free_host(made);
    return host;
}

/* `has_place`: and gives that back. */
static void leave_common_host(aco__http_common_t *common, aco__http_host_t *host, int has_place)
{
    aco__http_turn_t *turn;
    int is_last;
    lock_common(common);
    turn = has_place ? hand_over(&host->turns) : NULL;
    is_last = aco__http_leave_host(&common->hosts, host);
    ACO__ASSERT(!is_last || (!host->turns.first && host->turns.free == common->most_of_host));
    unlock_common(common);
    tell(turn);
    if (is_last)
        aco__http_free_host(host);
}

/* ---- The calls ---- */

aco__http_common_t *aco__http_common_new(size_t most, size_t most_of_host, const char *call)
{
    size_t sz = sizeof(aco__http_common_t);
    aco__http_common_t *common = aco__service_new(&sz, call);
    if (!common)
        return NULL;
    pthread_mutex_init(&common->lock, NULL);
    common->most = most;
    common->most_of_host = most_of_host;
    open_turns(&common->all, most);
    return common;
}

void aco__http_common_free(aco__http_common_t *common)
{
    if (!common)
        return;
    ACO__ASSERT(!common->hosts && !common->all.first && common->all.free == common->most);
    pthread_mutex_destroy(&common->lock);
    aco__service_free(common, sizeof *common);
}

int aco__http_take_common(aco__http_common_t *common, int is_tls, const char *name, const char *port,
                          aco__http_host_t **at, const char *location)
{
    aco__http_host_t *host = NULL;
    *at = NULL;
    if (common->most_of_host) {
        host = find_or_make(common, is_tls, name, port);
        if (!host)
            return -1;
        if (take_turn(common, &host->turns, location) != 0) {
            leave_common_host(common, host, 0);
            return -1;
        }
    }
    if (common->most && take_turn(common, &common->all, location) != 0) {
        if (host)
            leave_common_host(common, host, 1);
        return -1;
    }
    *at = host;
    return 0;
}

void aco__http_leave_common(aco__http_common_t *common, aco__http_host_t *at)
{
    if (common->most)
        give_back(common, &common->all);
    if (at)
        leave_common_host(common, at, 1);
}

size_t aco__http_count_common(aco__http_common_t *common, const aco__http_host_t *at)
{
    size_t n;
    lock_common(common);
    n = at ? at->turns.free : common->all.free;
    unlock_common(common);
    return n;
}
