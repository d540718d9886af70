/* What keeps threads from their other tasks: a look at all threads each millisecond finds those that still do the turn
 * of the look before. The pages' thread looks, so the others pay nothing; one whose turn is long is sent a signal, once
 * in that turn, and says what it does. Tasks that wake late are told of by their threads. */
#define _GNU_SOURCE
#include "debug/cpu.h"
#include "debug/late.h"
#include "system/system.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOKED_AT = 256,
    LATE_LOOK_MS = 1,
    LATE_SECONDS = 5,
    MOST_LATE_SECONDS = 300,
    LONG_MS = 10,
    MOST_LONG_MS = 10000
};

/* A turn of a thread. */
typedef struct turn_seen {
    aco__thread_seen_t is;
    int64_t since;
    aco__sample_t sample; /* what it does, if it is a long one */
    int is_long;          /* 1: the sample is there; -1: it gave no answer */
} turn_seen_t;

static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;
static aco__samples_t *late_samples; /* under the lock; NULL: no profile is made */

static void add_late(const aco__sample_key_t *key, size_t n, int64_t ns)
{
    aco__sample_entry_t *entry;
    aco__system.pthread_mutex_lock(&late_lock);
    entry = late_samples ? aco__samples_add(late_samples, key, (int64_t)n, ns) : NULL;
    if (entry && n == 1 && ns > entry->longest)
        entry->longest = ns;
    aco__system.pthread_mutex_unlock(&late_lock);
}

/* On the task's thread. */
static void see_late(const aco__task_seen_t *task, size_t n, int64_t late_ns)
{
    aco__sample_key_t key = {.state = "woke late", .thread = task->thread, .is_return = 1};
    key.task = task->task ? task->name : "(others that woke then)";
    key.route = task->work;
    key.frames = task->frames;
    key.frame_count = task->frame_count;
    add_late(&key, n, late_ns);
}

/* A turn is over, or the profile is. */
static void end_turn(turn_seen_t *turn, int64_t now)
{
    aco__sample_key_t key = {.state = "ran long", .thread = turn->is.thread, .is_culprit = 1};
    if (turn->is_long) {
        key.task = turn->sample.task;
        key.route = turn->sample.work;
        key.frames = turn->sample.frames;
        key.frame_count = turn->sample.frame_count;
        add_late(&key, 1, now - turn->since);
    }
    turn->is_long = 0;
}

ACO__SWITCHES static void look_at_thread(turn_seen_t *turn, const aco__thread_seen_t *seen, int64_t limit)
{
    int64_t now = aco_now();
    int is_same = (seen->turns & 1) && seen->thread == turn->is.thread && seen->turns == turn->is.turns &&
                  seen->task == turn->is.task;
    if (!is_same) {
        end_turn(turn, now);
        turn->is = *seen;
        turn->since = now;
    } else if (!turn->is_long && now - turn->since >= limit) {
        turn->is_long = 1;
        if (aco__cpu_look(seen->thread, &turn->sample) != 0)
            turn->sample = (aco__sample_t){0};
    }
}

ACO__SWITCHES static void look_for_late(turn_seen_t *turns, aco__thread_seen_t *seen, int64_t until, int64_t limit)
{
    size_t n;
    do {
        n = aco__inspect_threads(seen, LOOKED_AT);
        for (size_t i = 0; i < n && i < LOOKED_AT; i++)
            look_at_thread(&turns[i], &seen[i], limit);
    } while (aco_now() < until && aco_sleep(LATE_LOOK_MS * ACO_MILLISECOND) == 0);
    for (size_t i = 0; i < LOOKED_AT; i++)
        end_turn(&turns[i], aco_now());
}

static void observe_late(aco__samples_t *samples)
{
    aco__system.pthread_mutex_lock(&late_lock);
    late_samples = samples;
    aco__system.pthread_mutex_unlock(&late_lock);
    aco__inspect_late(samples ? see_late : NULL);
}

ACO__SWITCHES static void reply_late(aco_http_request_t *request, int seconds)
{
    static const char values[] = "held: time on the clock of tasks that ran long, the causes, also while other "
                                 "programs had the processor; tasks that woke late have 0 there: -sample_index=delay";
    aco__profile_kind_t kind = {"events", "count", "delay", "nanoseconds", 1, 0, "held", values};
    int limit = aco__page_number(request, "ms", LONG_MS, MOST_LONG_MS);
    aco__samples_t *samples = calloc(1, sizeof *samples);
    turn_seen_t *turns = calloc(LOOKED_AT, sizeof *turns);
    aco__thread_seen_t *seen = calloc(LOOKED_AT, sizeof *seen);
    int64_t began = aco_now();
    if (samples && turns && seen) {
        observe_late(samples);
        look_for_late(turns, seen, began + seconds * ACO_SECOND, (limit ? limit : 1) * ACO_MILLISECOND);
        observe_late(NULL);
    }
    kind.duration = aco_now() - began;
    aco__samples_reply(request, turns && seen ? samples : NULL, &kind);
    free(samples);
    free(turns);
    free(seen);
}

ACO__SWITCHES void aco__late_page(aco_http_request_t *request, void *unused)
{
    int seconds = aco__page_number(request, "seconds", LATE_SECONDS, MOST_LATE_SECONDS);
    (void)unused;
    if (!aco__profile_begin(request, seconds))
        return;
    if (aco__cpu_prepare() == 0)
        reply_late(request, seconds);
    else
        aco__cpu_refuse(request);
    aco__profile_end();
}
