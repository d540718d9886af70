/* A trace of some seconds, in the trace event format of Chrome and Perfetto: turns of tasks, as their threads tell of
 * them, and from these what each task waited for between two of them. */
#define _GNU_SOURCE
#include "debug/samples.h"
#include "debug/turns.h"
#include "system/system.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TURNS = 100000, TRACE_SECONDS = 1, MOST_TRACE_SECONDS = 60, TURN_ROUTE = 32 };

typedef struct turn {
    int64_t began, ended;
    const void *task;
    long thread;
    const char *next, *location;
    char name[ACO_NAME_SIZE], route[TURN_ROUTE];
} turn_t;

static pthread_mutex_t turns_lock = PTHREAD_MUTEX_INITIALIZER; /* protects these */
static turn_t *turns;                                          /* NULL: no trace is made */
static size_t turns_n;
static uint64_t turns_lost;

/* On the task's thread. */
static void see_turn(const aco__turn_seen_t *seen)
{
    aco__system.pthread_mutex_lock(&turns_lock);
    if (turns && turns_n < MOST_TURNS) {
        turn_t *turn = &turns[turns_n++];
        turn->began = seen->began;
        turn->ended = seen->ended;
        turn->task = seen->task;
        turn->thread = seen->thread;
        turn->next = seen->next;
        turn->location = seen->location;
        aco__sample_text(turn->name, sizeof turn->name, seen->name);
        aco__sample_text(turn->route, sizeof turn->route, seen->work);
    } else {
        turns_lost++;
    }
    aco__system.pthread_mutex_unlock(&turns_lock);
}

/* The turns of each task after each other. */
static int compare_turns(const void *a, const void *b)
{
    const turn_t *x = a, *y = b;
    if (x->task != y->task)
        return (uintptr_t)x->task < (uintptr_t)y->task ? -1 : 1;
    return (x->began > y->began) - (x->began < y->began);
}

/* "ts", from the first moment of the trace, which is "monotonic_ns" of CLOCK_MONOTONIC: microseconds. */
static void write_moment(aco__page_t *page, const char *name, int64_t ns)
{
    aco__page_print(page, ",\"%s\":%" PRId64 ".%03d", name, ns / 1000, (int)(ns % 1000));
}

static void write_turn(aco__page_t *page, const turn_t *turn, int64_t first, long process)
{
    char place[256];
    aco__page_print(page, ",\n{\"ph\":\"X\",\"pid\":%ld,\"tid\":%ld", process, turn->thread);
    aco__json_member(page, "name", turn->name[0] ? turn->name : "task");
    write_moment(page, "ts", turn->began - first);
    write_moment(page, "dur", turn->ended - turn->began);
    aco__page_print(page, ",\"args\":{\"task\":\"%p\"", turn->task);
    aco__json_member(page, "next", turn->next);
    if (turn->location)
        aco__json_member(page, "at", aco__place_text(turn->location, place, sizeof place));
    if (turn->route[0])
        aco__json_member(page, "route", turn->route);
    aco__page_print(page, "}}");
}

/* A wait is a span apart from the threads' turns, as in the traces of ACO_TRACE. */
static void write_span_end(aco__page_t *page, const turn_t *turn, char phase, int64_t ns, long process)
{
    aco__page_print(page, ",\n{\"ph\":\"%c\",\"cat\":\"wait\",\"id\":\"%p\",\"pid\":%ld,\"tid\":%ld", phase, turn->task,
                    process, turn->thread);
    aco__json_member(page, "name", turn->next);
    write_moment(page, "ts", ns);
}

static void write_wait(aco__page_t *page, const turn_t *turn, const turn_t *next, int64_t first, long process)
{
    char place[256];
    if (next->task != turn->task || !turn->location)
        return;
    write_span_end(page, turn, 'b', turn->ended - first, process);
    aco__page_print(page, ",\"args\":{\"task\":\"%p\"", turn->task);
    aco__json_member(page, "at", aco__place_text(turn->location, place, sizeof place));
    aco__json_member(page, "task_name", turn->name);
    aco__page_print(page, "}}");
    write_span_end(page, turn, 'e', next->began - first, process);
    aco__page_print(page, "}");
}

static void write_trace(aco__page_t *page, turn_t *all, size_t n, uint64_t missed, int64_t first)
{
    const long process = (long)aco__system.getpid();
    qsort(all, n, sizeof *all, compare_turns);
    aco__page_print(page,
                    "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"turns\":%zu,\"lost\":%" PRIu64
                    ",\"monotonic_ns\":%" PRId64
                    "},\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":%ld,\"name\":\"process_name\",\"args\":{\"n\":0",
                    n, missed, first, process);
    aco__json_member(page, "name", "acorn");
    aco__page_print(page, "}}");
    for (size_t i = 0; i < n; i++) {
        if (all[i].began < first)
            continue; /* it had begun before */
        write_turn(page, &all[i], first, process);
        if (i + 1 < n)
            write_wait(page, &all[i], &all[i + 1], first, process);
    }
    aco__page_print(page, "\n]}\n");
}

/* The turns belong to the page from now on, which gives new ones for the next; NULL: none. */
static turn_t *take_turns(turn_t *new_turns, size_t *n, uint64_t *missed)
{
    turn_t *taken;
    aco__system.pthread_mutex_lock(&turns_lock);
    taken = turns;
    *n = turns_n;
    *missed = turns_lost;
    turns = new_turns;
    turns_n = 0;
    turns_lost = 0;
    aco__system.pthread_mutex_unlock(&turns_lock);
    return taken;
}

ACO__SWITCHES static void reply_trace(aco_http_request_t *request, int seconds)
{
    turn_t *all = calloc(MOST_TURNS, sizeof *all);
    aco__page_t page = {0};
    int64_t first = aco_now();
    uint64_t missed;
    size_t n;
    page.is_broken = !all;
    if (all) {
        free(take_turns(all, &n, &missed));
        aco__inspect_turns(see_turn);
        (void)aco_sleep(seconds * ACO_SECOND);
        aco__inspect_turns(NULL);
        all = take_turns(NULL, &n, &missed);
        write_trace(&page, all, n, missed, first);
        free(all);
    }
    (void)aco_http_reply_header(request, "Content-Disposition", "attachment; filename=\"trace.json\"");
    aco__page_reply(request, "application/json", &page);
}

ACO__SWITCHES void aco__turns_page(aco_http_request_t *request, void *unused)
{
    int seconds = aco__page_number(request, "seconds", TRACE_SECONDS, MOST_TRACE_SECONDS);
    (void)unused;
    if (!aco__profile_begin(request, seconds))
        return;
    reply_trace(request, seconds);
    aco__profile_end();
}
