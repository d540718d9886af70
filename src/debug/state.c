/* What the live page and acorn-top show: one look at all tasks, as JSON of a bounded size. Tasks with the same stack
 * and state are together; scopes and groups are found from the tasks inside, as a tree; descriptors from the tasks that
 * wait for them. */
#define _GNU_SOURCE
#include "debug/all_tasks.h"
#include "debug/cpu.h"
#include "debug/proc.h"
#include "debug/samples.h"
#include "debug/state.h"

#include "aco/detail/for_libraries.h"
#include "aco/group.h"
#include "aco/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_STACKS = 300,
    MOST_EACH = 200, /* tasks that are listed: those that have waited longest */
    MOST_SCOPES = 512, /* a power of two; at most half of them are in use */
    MOST_DEPTH = 32, /* scopes around a task */
    MOST_FDS = 500,
    MOST_STATE_THREADS = 256,
    PLACE_SIZE = 128,
    FOR_SIZE = 256,
    FILTER_SIZE = 512 /* a place is a path and a line */
};

/* A task that is listed. */
typedef struct listed_task {
    char name[ACO_NAME_SIZE], route[ACO__WORK_SIZE], place[PLACE_SIZE], waits_for[FOR_SIZE];
    const char *state; /* lasts */
    const void *task, *group, *spawned_at;
    long thread;
    int64_t ms;
    int fd;
} listed_task_t;

typedef struct scope_node {
    const void *at, *outer; /* NULL: vacant; none */
    char name[ACO_NAME_SIZE], place[PLACE_SIZE];
    int64_t left_ms; /* until its deadline; -1: it has none */
    size_t tasks; /* whose innermost scope it is */
    size_t running, limit; /* of a group */
    int is_group, error;
} scope_node_t;

typedef struct state_view {
    aco__inspection_t inspection; /* the first: the threads know it */
    pthread_mutex_t lock;
    aco__samples_t samples;
    char filter[FILTER_SIZE];
    int64_t began, tasks, matching, waiting_for_fds;
    size_t each_n, youngest, fds_n, scopes_n; /* youngest: of those that are listed, once there are most */
    listed_task_t each[MOST_EACH], fds[MOST_FDS];
    scope_node_t scopes[MOST_SCOPES];
    long missing[MOST_STATE_THREADS];
    size_t missing_n, unfinished; /* unfinished: threads that had no time to look at all of their tasks */
} state_view_t;

static void free_state(aco__inspection_t *inspection)
{
    state_view_t *view = (state_view_t *)(void *)inspection;
    aco__samples_clear(&view->samples);
    pthread_mutex_destroy(&view->lock);
    free(view);
}

/* ---- On the threads, under the lock ---- */

static void list_task(listed_task_t *to, const aco__task_seen_t *task)
{
    aco__sample_text(to->name, sizeof to->name, task->name);
    aco__sample_text(to->route, sizeof to->route, task->work);
    aco__sample_text(to->place, sizeof to->place, task->location ? task->location : "");
    aco__sample_text(to->waits_for, sizeof to->waits_for, task->waits_for);
    to->state = task->state;
    to->task = task->task;
    to->group = task->group;
    to->spawned_at = task->spawned_at;
    to->thread = task->thread;
    to->ms = task->waited_ms;
    to->fd = task->fd;
}

static void see_each(state_view_t *view, const aco__task_seen_t *task)
{
    if (view->each_n < MOST_EACH)
        list_task(&view->each[view->each_n++], task);
    else if (task->waited_ms > view->each[view->youngest].ms)
        list_task(&view->each[view->youngest], task);
    else
        return;
    if (view->each_n == MOST_EACH)
        for (size_t i = 0; i < MOST_EACH; i++)
            if (view->each[i].ms < view->each[view->youngest].ms)
                view->youngest = i;
}

static int compare_listed(const void *a, const void *b)
{
    const listed_task_t *x = a, *y = b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

static scope_node_t *node_of_scope(state_view_t *view, const void *at)
{
    size_t i = (size_t)((uintptr_t)at / 16 * 2654435761u);
    while (view->scopes[i %= MOST_SCOPES].at && view->scopes[i].at != at)
        i++;
    if (!view->scopes[i].at && view->scopes_n < MOST_SCOPES / 2) {
        view->scopes_n++;
        view->scopes[i].at = at;
    }
    return view->scopes[i].at ? &view->scopes[i] : NULL;
}

static void see_scope(state_view_t *view, scope_node_t *node, const aco_scope_t *scope)
{
    char text[PLACE_SIZE];
    if (node->outer || node->place[0])
        return; /* it is known */
    node->outer = scope->aco__outer;
    node->error = scope->error;
    node->left_ms = scope->aco__deadline == ACO_FOREVER ? -1 : (scope->aco__deadline - view->began) / ACO_MILLISECOND;
    if (node->left_ms < -1)
        node->left_ms = 0;
    aco__sample_text(node->name, sizeof node->name, scope->aco__task ? aco_name(scope->aco__task) : "");
    aco__sample_text(node->place, sizeof node->place, aco__place_text(scope->aco__location, text, sizeof text));
}

/* The task's scopes, from within. They belong to its thread. */
static void see_scopes(state_view_t *view, const aco__task_seen_t *task)
{
    const aco_scope_t *scope = task->scope;
    for (int depth = 0; scope && depth < MOST_DEPTH; depth++, scope = scope->aco__outer) {
        scope_node_t *node = node_of_scope(view, scope);
        if (!node)
            return;
        see_scope(view, node, scope);
        node->tasks += depth == 0;
        if ((const void *)scope == task->group) {
            const aco_group_t *group = task->group;
            node->is_group = 1;
            node->running = group->running;
            node->limit = group->limit;
        }
    }
}

/* The place of its spawn as a number, within the call, as frames have it. */
static void write_spawn(aco__page_t *page, const void *spawned_at)
{
    if (spawned_at)
        aco__page_print(page, ",\"spawned_at\":%" PRIuPTR, (uintptr_t)spawned_at - 1);
}

static void see_stack(state_view_t *view, const aco__task_seen_t *task)
{
    aco__sample_key_t key = {.state = task->state, .frames = task->frames, .frame_count = task->frame_count};
    aco__sample_entry_t *entry;
    aco__page_t text = {0};
    key.is_return = strcmp(task->state, "has not begun") != 0;
    entry = aco__samples_add(&view->samples, &key, 1, 0);
    if (!entry)
        return;
    if (task->waited_ms > entry->value)
        entry->value = task->waited_ms; /* of the oldest */
    if (!entry->text)
        entry->lock = task->lock;
    entry->for_lock += task->lock && task->lock == entry->lock;
    if (entry->text)
        return;
    aco__json_member(&text, "task", task->name);
    aco__json_member(&text, "route", task->work);
    aco__json_member(&text, "for", task->waits_for);
    aco__json_member(&text, "at", task->location ? task->location : "");
    write_spawn(&text, task->spawned_at);
    if (task->stack_size) /* a system call: for one task of each stack */
        aco__page_print(&text, ",\"stack_used\":%td,\"stack_size\":%" PRId64, aco_stack_high_water(task->task),
                        task->stack_size);
    aco__page_add(&text, "", 1);
    entry->text = text.is_broken ? NULL : text.at;
    if (text.is_broken)
        aco__page_free(&text);
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Whether the text contains the filter; a line of 39 at the filter's end is not one of 394. */
static int contains(const char *text, const char *filter)
{
    const size_t n = strlen(filter);
    size_t number = n;
    int is_place;
    while (number && is_digit(filter[number - 1]))
        number--;
    is_place = number && number < n && filter[number - 1] == ':';
    while ((text = strstr(text, filter)) != NULL && is_place && is_digit(text[n]))
        text++;
    return text != NULL;
}

static int fits_filter(const char *filter, const aco__task_seen_t *task)
{
    return !filter[0] || contains(task->name, filter) || contains(task->work, filter) ||
           contains(task->waits_for, filter) || (task->location && contains(task->location, filter));
}

static void see_for_state(aco__inspection_t *inspection, const aco__task_seen_t *task)
{
    state_view_t *view = (state_view_t *)(void *)inspection;
    aco__system.pthread_mutex_lock(&view->lock);
    if (!__atomic_load_n(&inspection->is_over, __ATOMIC_ACQUIRE)) {
        view->tasks++;
        see_scopes(view, task);
        view->waiting_for_fds += task->fd >= 0;
        if (task->fd >= 0 && view->fds_n < MOST_FDS)
            list_task(&view->fds[view->fds_n++], task);
        if (fits_filter(view->filter, task)) {
            view->matching++;
            see_stack(view, task);
            see_each(view, task);
        }
    }
    aco__system.pthread_mutex_unlock(&view->lock);
}

static void note_silent(void *arg, long thread, int has_begun)
{
    state_view_t *view = arg;
    view->unfinished += has_begun != 0;
    if (!has_begun && view->missing_n < MOST_STATE_THREADS)
        view->missing[view->missing_n++] = thread;
}

/* ---- JSON ---- */

ACO__SWITCHES static void write_silent(aco__page_t *page, long thread)
{
    aco__sample_t sample;
    aco__page_print(page, ",\"answers\":false");
    if (aco__cpu_prepare() != 0 || aco__cpu_look(thread, &sample) != 0)
        return;
    aco__json_member(page, "task", sample.task);
    aco__json_member(page, "route", sample.work);
    aco__json_frames(page, sample.frames, sample.frame_count, 0);
}

/* The name that the system has; threads without one of their own have the program's. */
static void write_thread_name(aco__page_t *page, long thread)
{
    char path[64], name[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/comm", thread);
    (void)aco__proc_text(path, name, sizeof name);
    name[strcspn(name, "\n")] = 0;
    if (name[0])
        aco__json_member(page, "name", name);
}

ACO__SWITCHES static void write_state_threads(aco__page_t *page, const state_view_t *view)
{
    aco__thread_seen_t *threads = calloc(MOST_STATE_THREADS, sizeof *threads);
    size_t n = threads ? aco__inspect_threads(threads, MOST_STATE_THREADS) : 0;
    aco__page_print(page, ",\n\"threads_in_all\":%zu,\"threads\":[", n);
    for (size_t i = 0; i < n && i < MOST_STATE_THREADS; i++) {
        aco__page_print(
            page, "%s\n{\"thread\":%ld,\"tasks\":%zu,\"spawned\":%" PRIu64 ",\"late\":%" PRIu64 ",\"turns\":%" PRIu64,
            i ? "," : "", threads[i].thread, threads[i].tasks, threads[i].spawned, threads[i].late_wakes,
            threads[i].turns / 2);
        write_thread_name(page, threads[i].thread);
        for (size_t k = 0; k < view->missing_n; k++)
            if (view->missing[k] == threads[i].thread)
                write_silent(page, threads[i].thread);
        aco__page_print(page, "}");
    }
    aco__page_print(page, "]");
    free(threads);
}

static void write_state_stacks(aco__page_t *page, const state_view_t *view)
{
    aco__sample_entry_t **sorted = aco__samples_sorted(&view->samples);
    aco__page_print(page, ",\n\"stacks_in_all\":%zu,\"stacks\":[", view->samples.entries);
    for (size_t i = 0; sorted && i < view->samples.entries && i < MOST_STACKS; i++) {
        const aco__sample_entry_t *entry = sorted[i];
        aco__page_print(page, "%s\n{\"n\":%" PRId64 ",\"oldest_ms\":%" PRId64, i ? "," : "", entry->count,
                        entry->value);
        if (entry->lock)
            aco__page_print(page, ",\"for_lock\":%" PRId64, entry->for_lock); /* of which "for" tells */
        aco__json_member(page, "state", entry->key.state);
        if (entry->text)
            aco__page_add(page, entry->text, strlen(entry->text));
        aco__json_frames(page, entry->frames, entry->key.frame_count, entry->key.is_return);
        aco__page_print(page, "}");
    }
    aco__page_print(page, "]");
    free(sorted);
}

/* Addresses of objects are texts: they are names here. */
static void write_address(aco__page_t *page, const char *name, const void *at)
{
    if (at)
        aco__page_print(page, ",\"%s\":\"%p\"", name, at);
}

static void write_listed(aco__page_t *page, const listed_task_t *task)
{
    aco__page_print(page, "{\"thread\":%ld,\"ms\":%" PRId64, task->thread, task->ms);
    write_address(page, "address", task->task);
    write_address(page, "group", task->group);
    write_spawn(page, task->spawned_at);
    aco__json_member(page, "task", task->name);
    aco__json_member(page, "route", task->route);
    aco__json_member(page, "state", task->state);
    aco__json_member(page, "for", task->waits_for);
    aco__json_member(page, "at", task->place);
}

static void write_each_listed(aco__page_t *page, state_view_t *view)
{
    qsort(view->each, view->each_n, sizeof *view->each, compare_listed);
    aco__page_print(page, ",\n\"oldest\":[");
    for (size_t i = 0; i < view->each_n; i++) {
        aco__page_print(page, i ? ",\n" : "\n");
        write_listed(page, &view->each[i]);
        aco__page_print(page, "}");
    }
    aco__page_print(page, "]");
}

static void write_connections(aco__page_t *page, const state_view_t *view)
{
    char text[ACO_IO_ADDRESS_SIZE];
    aco__page_print(page, ",\n\"connections_in_all\":%" PRId64 ",\"connections\":[", view->waiting_for_fds);
    for (size_t i = 0; i < view->fds_n; i++) {
        aco__page_print(page, i ? ",\n" : "\n");
        write_listed(page, &view->fds[i]);
        aco__page_print(page, ",\"fd\":%d", view->fds[i].fd);
        if (aco_io_local_address(view->fds[i].fd, text, sizeof text) == 0) /* it may be another one by now */
            aco__json_member(page, "own", text);
        if (aco_io_peer_address(view->fds[i].fd, text, sizeof text) == 0)
            aco__json_member(page, "peer", text);
        aco__page_print(page, "}");
    }
    aco__page_print(page, "]");
}

static void write_scopes(aco__page_t *page, const state_view_t *view)
{
    int is_first = 1;
    aco__page_print(page, ",\n\"scopes\":[");
    for (size_t i = 0; i < MOST_SCOPES; i++) {
        const scope_node_t *node = &view->scopes[i];
        if (!node->at)
            continue;
        aco__page_print(page, "%s\n{\"is_group\":%s,\"tasks\":%zu,\"running\":%zu,\"limit\":%zu", is_first ? "" : ",",
                        node->is_group ? "true" : "false", node->tasks, node->running, node->limit);
        is_first = 0;
        write_address(page, "address", node->at);
        write_address(page, "outer", node->outer);
        aco__json_member(page, "begun_by", node->name);
        aco__json_member(page, "at", node->place);
        aco__json_member(page, "ended", !node->error ? "" : node->error == ETIMEDOUT ? "timed out" : "cancelled");
        aco__page_print(page, ",\"left_ms\":%" PRId64 "}", node->left_ms);
    }
    aco__page_print(page, "]");
}

ACO__SWITCHES static void reply_state(aco_http_request_t *request, state_view_t *view)
{
    aco__page_t page = {0};
    aco__look_at_all(&view->inspection, &view->lock, ACO__PATIENCE_MS, note_silent, view);
    aco__page_print(&page, "{\"pid\":%ld", (long)aco__system.getpid());
    aco__json_member(&page, "program", program_invocation_short_name);
    aco__page_print(&page, ",\"age_ms\":%" PRId64, aco__proc_age_ms());
    aco__page_print(&page, ",\"took_us\":%" PRId64 ",\"tasks\":%" PRId64 ",\"matching\":%" PRId64 ",\"unfinished\":%zu",
                    (aco_now() - view->began) / 1000, view->tasks, view->matching, view->unfinished);
    write_state_threads(&page, view);
    write_state_stacks(&page, view);
    write_each_listed(&page, view);
    write_scopes(&page, view);
    write_connections(&page, view);
    aco__page_print(&page, "}\n");
    aco__inspect_release(&view->inspection);
    aco__page_reply(request, "application/json", &page);
}

ACO__SWITCHES void aco__state_page(aco_http_request_t *request, void *unused)
{
    const char *filter = aco_http_request_query(request, "filter");
    state_view_t *view;
    (void)unused;
    if (!aco__profile_begin(request, 0))
        return;
    view = calloc(1, sizeof *view);
    if (view) {
        pthread_mutex_init(&view->lock, NULL);
        view->inspection.see = see_for_state;
        view->inspection.free = free_state;
        view->inspection.wants_text = 1;
        view->began = aco_now();
        aco__sample_text(view->filter, sizeof view->filter, filter ? filter : "");
        reply_state(request, view);
    } else {
        (void)aco_http_reply(request, 500, "text/plain", "no memory\n", 10);
    }
    aco__profile_end();
}
