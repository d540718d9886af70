/* What all tasks do: each thread tells it of its own (aco/detail/inspect.h). A thread that does not answer in time, as
 * its task does not give way, is sent a signal: what it does at that moment stands for it. */
#define _GNU_SOURCE
#include "debug/all_tasks.h"
#include "debug/cpu.h"
#include "debug/samples.h"
#include "system/system.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHORT_PATIENCE_MS = 100, /* the same where one look of many may miss a thread */
    POLL_MS = 1,
    MOST_LISTED = 10000, /* tasks that ?debug=2 lists */
    MOST_MISSING = 64
};

typedef struct view {
    aco__inspection_t inspection; /* the first: the threads know it */
    pthread_mutex_t lock;
    aco__samples_t samples;
    int debug;                    /* ?debug= */
    int kinds;                    /* only tasks that wait for these: ACO__SEEN_…; 0: all */
    int64_t tasks, listed;
    long missing[MOST_MISSING];   /* the threads that have not answered */
    int missing_count, unfinished; /* unfinished: threads that have seen some of their tasks */
} view_t;

static void free_view(aco__inspection_t *inspection)
{
    view_t *view = (view_t *)(void *)inspection;
    aco__samples_clear(&view->samples);
    pthread_mutex_destroy(&view->lock);
    free(view);
}

/* The line for ?debug=2, in new memory. */
static char *line_of(const aco__task_seen_t *task)
{
    char line[1024];
    int n =
        snprintf(line, sizeof line, "task %p%s%s%s [%s%s%s%s%s", (const void *)task->task, task->name[0] ? " \"" : "",
                 task->name, task->name[0] ? "\"" : "", task->state, task->waits_for[0] ? " " : "", task->waits_for,
                 !task->location   ? ""
                 : task->holder_at ? "; this one waits at "
                                   : " at ",
                 task->location ? task->location : "");
    if (n > 0 && n < (int)sizeof line && strcmp(task->state, "waits") == 0)
        n += snprintf(line + n, sizeof line - (size_t)n, ", %" PRId64 " ms", task->waited_ms);
    if (n > 0 && n < (int)sizeof line && task->group)
        n += snprintf(line + n, sizeof line - (size_t)n, ", group %p", task->group);
    if (n > 0 && n < (int)sizeof line && task->work[0])
        n += snprintf(line + n, sizeof line - (size_t)n, ", route %s", task->work);
    if (n > 0 && n < (int)sizeof line)
        (void)snprintf(line + n, sizeof line - (size_t)n, ", thread %ld]:", task->thread);
    return strdup(line);
}

static void see_task(aco__inspection_t *inspection, const aco__task_seen_t *task)
{
    view_t *view = (view_t *)(void *)inspection;
    aco__sample_key_t key = {0};
    aco__sample_entry_t *entry;
    if (view->kinds && !(task->waits_kind & view->kinds))
        return;
    if (!view->debug) {
        key.task = task->name;
        key.route = task->work;
    }
    key.state = view->debug == 1 ? NULL : task->state;
    key.group = view->debug ? NULL : task->group;
    key.co = view->debug == 2 ? task->task : NULL;
    key.spawned_at = view->debug == 1 || view->kinds ? NULL : task->spawned_at;
    key.frames = task->frames;
    key.frame_count = task->frame_count;
    key.is_return = strcmp(task->state, "has not begun") != 0;
    aco__system.pthread_mutex_lock(&view->lock);
    if (__atomic_load_n(&inspection->is_over, __ATOMIC_ACQUIRE)) {
        aco__system.pthread_mutex_unlock(&view->lock);
        return;
    }
    view->tasks++;
    if (view->debug != 2 || view->listed < MOST_LISTED) {
        view->listed++;
        entry = aco__samples_add(&view->samples, &key, 1, view->debug == 2 ? task->waited_ms : task->stack_bytes);
        if (entry && view->debug == 2 && !entry->text)
            entry->text = line_of(task);
        else if (entry && !view->debug && !entry->text && task->holder_at)
            entry->text = strdup(task->holder_at);
        if (entry && !view->debug && !view->kinds)
            entry->place = task->place;
    }
    aco__system.pthread_mutex_unlock(&view->lock);
}

static void note_missing(void *arg, long thread, int has_begun)
{
    view_t *view = arg;
    view->unfinished += has_begun;
    if (!has_begun && view->missing_count < MOST_MISSING)
        view->missing[view->missing_count++] = thread;
}

static view_t *new_view(int debug)
{
    view_t *view = calloc(1, sizeof *view);
    if (!view)
        return NULL;
    pthread_mutex_init(&view->lock, NULL);
    view->debug = debug;
    view->inspection.see = see_task;
    view->inspection.free = free_view;
    view->inspection.wants_text = debug == 2;
    return view;
}

/* ---- Threads that do not answer ---- */

ACO__SWITCHES static void look_at_missing(view_t *view, aco__page_t *notes)
{
    for (int i = 0; i < view->missing_count; i++) {
        aco__sample_t sample;
        aco__sample_key_t key = {.state = "does not give way", .thread = view->missing[i], .is_culprit = 1};
        aco__sample_entry_t *entry;
        char line[128];
        if (aco__cpu_prepare() != 0 || aco__cpu_look(view->missing[i], &sample) != 0) {
            aco__page_print(notes, "# thread %ld does not answer, and takes no signal\n", view->missing[i]);
            continue;
        }
        aco__page_print(notes, "# thread %ld does not answer: its task%s%s%s does not give way. It does this:\n",
                        view->missing[i], sample.task[0] ? " \"" : "", sample.task, sample.task[0] ? "\"" : "");
        key.task = sample.task;
        key.route = sample.work;
        key.frames = sample.frames;
        key.frame_count = sample.frame_count;
        entry = aco__samples_add(&view->samples, &key, 1, 0);
        (void)snprintf(line, sizeof line, "task%s%s%s [does not give way, thread %ld]:", sample.task[0] ? " \"" : "",
                       sample.task, sample.task[0] ? "\"" : "", view->missing[i]);
        if (entry && view->debug && !entry->text)
            entry->text = strdup(line);
        if (view->debug) {
            aco__modules_t modules;
            aco__modules_read(&modules);
            for (int k = 0; k < sample.frame_count; k++)
                aco__frame_write(notes, &modules, sample.frames[k], k > 0);
            aco__modules_free(&modules);
        }
    }
}

/* ---- The page ---- */

static void write_grouped(aco__page_t *page, view_t *view, const char *name)
{
    aco__sample_entry_t **sorted = aco__samples_sorted(&view->samples);
    aco__modules_t modules;
    aco__modules_read(&modules);
    aco__page_print(page, "%s profile: total %" PRId64 "\n", name, view->samples.total);
    for (size_t i = 0; sorted && i < view->samples.entries; i++) {
        const aco__sample_entry_t *entry = sorted[i];
        aco__page_print(page, "%" PRId64 " @", entry->count);
        for (int k = 0; k < entry->key.frame_count; k++)
            aco__page_print(page, " %p", entry->frames[k]);
        aco__page_print(page, "\n");
        for (int k = 0; k < entry->key.frame_count; k++)
            aco__frame_write(page, &modules, entry->frames[k], k || entry->key.is_return);
        aco__page_print(page, "\n");
    }
    aco__modules_free(&modules);
    free(sorted);
}

static void write_frame(aco__page_t *page, aco__modules_t *modules, const char *frame, int is_return)
{
    const char *at = frame - is_return;
    aco__module_t *module = aco__module_of(modules, at);
    uintptr_t start;
    const char *name = aco__function_at(module, at, &start);
    aco__page_print(page, "%.700s(...)\n\t%.900s+%#" PRIxPTR "\n", name ? name : "?", module ? module->path : "?",
                    (uintptr_t)frame - (module ? module->bias : 0));
}

static void write_each(aco__page_t *page, view_t *view)
{
    aco__sample_entry_t **sorted = aco__samples_sorted(&view->samples);
    aco__modules_t modules;
    aco__modules_read(&modules);
    for (size_t i = 0; sorted && i < view->samples.entries; i++) {
        const aco__sample_entry_t *entry = sorted[i];
        aco__page_print(page, "%s\n", entry->text ? entry->text : "task");
        for (int k = 0; k < entry->key.frame_count; k++)
            write_frame(page, &modules, entry->frames[k], k || entry->key.is_return);
        if (entry->key.spawned_at) {
            aco__page_print(page, "created by ");
            write_frame(page, &modules, entry->key.spawned_at, 1);
        }
        aco__page_print(page, "\n");
    }
    if (view->tasks > view->listed)
        aco__page_print(page, "# %" PRId64 " more tasks: ?debug=1 counts all of them\n", view->tasks - view->listed);
    aco__modules_free(&modules);
    free(sorted);
}

ACO__SWITCHES void aco__look_at_all(aco__inspection_t *inspection, pthread_mutex_t *lock, int patience_ms,
                                    void (*missing)(void *arg, long thread, int has_begun), void *arg)
{
    int64_t until = aco_after(patience_ms * ACO_MILLISECOND);
    aco__inspect_begin(inspection);
    while (aco__inspect_pending(inspection) && aco_now() < until)
        if (aco_sleep(POLL_MS * ACO_MILLISECOND) != 0)
            break;
    aco__inspect_end(inspection, missing, arg);
    aco__system.pthread_mutex_lock(lock); /* a thread that has just begun to add a task ends that */
    aco__system.pthread_mutex_unlock(lock);
}

ACO__SWITCHES static void look_at_all(view_t *view, aco__page_t *notes, int asks_missing)
{
    aco__look_at_all(&view->inspection, &view->lock, asks_missing ? ACO__PATIENCE_MS : SHORT_PATIENCE_MS, note_missing,
                     view);
    if (view->unfinished)
        aco__page_print(notes, "# %d thread(s) had no time to look at all of their tasks\n", view->unfinished);
    if (asks_missing && !view->inspection.wants_stuck)
        look_at_missing(view, notes);
}

ACO__SWITCHES static void reply_tasks(aco_http_request_t *request, view_t *view, const char *name)
{
    static const char circle[] = "leaked: tasks that wait for each other in a circle; profile 'tasks' has all tasks";
    static const aco__profile_kind_t all = {"tasks", "count", NULL, NULL, 1, 0, NULL, NULL};
    static const aco__profile_kind_t leaked = {"leaked", "count", NULL, NULL, 1, 0, NULL, circle};
    aco__page_t page = {0}, notes = {0};
    look_at_all(view, &notes, 1);
    if (!view->debug) {
        aco__samples_reply(request, &view->samples, view->inspection.wants_stuck ? &leaked : &all);
    } else {
        if (view->debug == 1)
            write_grouped(&page, view, name);
        else
            write_each(&page, view);
        if (!view->samples.entries)
            aco__page_print(&page, view->inspection.wants_stuck
                                       ? "# nothing is leaked: no tasks wait for each other in a circle, for ever.\n"
                                         "# Tasks that are only too many are not here: /debug/pprof/tasks?debug=1 "
                                         "counts them by stack, /metrics those that were spawned\n"
                                       : "# no tasks\n");
        aco__page_add(&page, notes.at, notes.n);
        aco__page_reply(request, "text/plain; charset=utf-8", &page);
    }
    aco__page_free(&notes);
    aco__inspect_release(&view->inspection);
}

ACO__SWITCHES void aco__tasks_page(aco_http_request_t *request, void *name)
{
    int debug = aco__page_number(request, "debug", 0, 2);
    view_t *view;
    if (!aco__profile_begin(request, 0))
        return;
    view = new_view(debug);
    if (view)
        view->inspection.wants_stuck = strcmp(name, "leaked") == 0;
    if (view)
        reply_tasks(request, view, name);
    else
        (void)aco_http_reply(request, 500, "text/plain", "no memory\n", 10);
    aco__profile_end();
}

/* ---- Waits and stacks ---- */

enum { EACH_MS = 50, DEFAULT_LOOKS_S = 5, MOST_LOOKS_S = 300 };

/* Looks once more and adds what was seen to the others. -1: no memory. */
ACO__SWITCHES static int add_look(aco__samples_t *samples, int kinds, int64_t ns, int wants_holders)
{
    aco__page_t notes = {0};
    aco__sample_entry_t **sorted;
    view_t *view = new_view(0);
    if (!view)
        return -1;
    view->kinds = kinds;
    view->inspection.wants_stacks = !kinds;
    view->inspection.wants_text = wants_holders;
    look_at_all(view, &notes, 0);
    sorted = aco__samples_sorted(&view->samples);
    for (size_t i = 0; sorted && i < view->samples.entries; i++) {
        aco__sample_entry_t *entry = aco__samples_add(samples, &sorted[i]->key, sorted[i]->count,
                                                      kinds ? sorted[i]->count * ns : sorted[i]->value);
        if (entry && !entry->text) {
            entry->text = sorted[i]->text;
            sorted[i]->text = NULL;
        }
    }
    free(sorted);
    aco__inspect_release(&view->inspection);
    aco__page_free(&notes);
    return 0;
}

/* Each look counts for the time since the one before. One in EACH_HOLDERS asks who holds the locks: it takes longer. */
ACO__SWITCHES static int look_for_time(aco__samples_t *samples, int kinds, int64_t until)
{
    enum { EACH_HOLDERS = 20 };
    int64_t before = aco_now();
    unsigned looks = 0;
    while (before < until) {
        int64_t now;
        if (aco_sleep(EACH_MS * ACO_MILLISECOND) != 0)
            return 0;
        now = aco_now();
        if (add_look(samples, kinds, now - before, looks++ % EACH_HOLDERS == 0) != 0)
            return -1;
        before = now;
    }
    return 0;
}

ACO__SWITCHES static void reply_looks(aco_http_request_t *request, int kinds, int seconds)
{
    static const aco__profile_kind_t stacks = {"stacks", "count", "touched", "bytes", 1, 0, NULL, NULL};
    static const char looks[] = "delay: how long tasks waited, in all; looks: how often they were seen so, 20 times a "
                                "second";
    aco__profile_kind_t waits = {"looks", "count", "delay", "nanoseconds", EACH_MS * 1000000, 0, NULL, looks};
    int64_t began = aco_now();
    aco__samples_t *samples = calloc(1, sizeof *samples);
    int has_failed = !samples || (kinds ? look_for_time(samples, kinds, began + seconds * ACO_SECOND)
                                        : add_look(samples, 0, 0, 0)) != 0;
    waits.duration = aco_now() - began;
    if (samples && has_failed)
        aco__samples_clear(samples);
    aco__samples_reply(request, has_failed ? NULL : samples, kinds ? &waits : &stacks);
    free(samples);
}

ACO__SWITCHES void aco__waits_page(aco_http_request_t *request, void *kinds)
{
    int seconds = kinds ? aco__page_number(request, "seconds", DEFAULT_LOOKS_S, MOST_LOOKS_S) : 0;
    if (!aco__profile_begin(request, seconds))
        return;
    reply_looks(request, kinds ? *(const int *)kinds : 0, seconds);
    aco__profile_end();
}
