/* Profiles as JSON, for the page and for acorn-top: addresses of code without names, which /debug/pprof/symbol knows,
 * so that who asks often asks for a name once. */
#define _GNU_SOURCE
#include "debug/samples.h"

#include "aco/detail/for_libraries.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IN_JSON = 2000 };

void aco__json_member(aco__page_t *page, const char *name, const char *text)
{
    char json[900]; /* with what stands around it in one aco__page_print() */
    aco__page_print(page, ",\"%s\":\"", name);
    aco__json_text(text, json, sizeof json);
    aco__page_print(page, "%s\"", json);
}

void aco__json_frames(aco__page_t *page, void *const *frames, int n, int is_return)
{
    aco__page_print(page, ",\"frames\":[");
    for (int i = 0; i < n; i++)
        aco__page_print(page, "%s%" PRIuPTR, i ? "," : "", (uintptr_t)frames[i] - (uintptr_t)(i || is_return));
    aco__page_print(page, "]");
}

static void write_stack(aco__page_t *page, const aco__sample_entry_t *entry)
{
    aco__page_print(page, "{\"n\":%" PRId64 ",\"v\":%" PRId64 ",\"thread\":%ld", entry->count, entry->value,
                    entry->key.thread);
    if (entry->longest)
        aco__page_print(page, ",\"longest\":%" PRId64, entry->longest);
    aco__json_member(page, "task", entry->key.task);
    aco__json_member(page, "route", entry->key.route);
    aco__json_member(page, "state", entry->key.state ? entry->key.state : "");
    aco__json_member(page, "holder_at", entry->text ? entry->text : "");
    aco__json_frames(page, entry->frames, entry->key.frame_count, entry->key.is_return);
    aco__page_print(page, "}");
}

static void write_json(aco__page_t *page, const aco__samples_t *samples, const aco__profile_kind_t *kind)
{
    aco__sample_entry_t **sorted = aco__samples_sorted(samples);
    page->is_broken |= samples->entries && !sorted;
    aco__page_print(page,
                    "{\"count\":\"%s\",\"value\":\"%s\",\"duration_ns\":%" PRId64 ",\"total\":%" PRId64
                    ",\"dropped\":%" PRId64 ",\"stacks_in_all\":%zu,\"stacks\":[",
                    kind->count_name, kind->value_name ? kind->value_name : "", kind->duration, samples->total,
                    samples->dropped, samples->entries);
    for (size_t i = 0; sorted && i < samples->entries && i < MOST_IN_JSON; i++) {
        aco__page_print(page, i ? ",\n" : "\n");
        write_stack(page, sorted[i]);
    }
    aco__page_print(page, "]}\n");
    free(sorted);
}

ACO__SWITCHES void aco__samples_reply(aco_http_request_t *request, aco__samples_t *samples,
                                      const aco__profile_kind_t *kind)
{
    aco__page_t page = {0};
    int is_json = aco__page_number(request, "json", 0, 1), is_text = aco__page_number(request, "debug", 0, 1);
    const char *name = request->route ? strrchr(request->route->path, '/') : NULL;
    page.is_broken = !samples;
    if (samples && is_json)
        write_json(&page, samples, kind);
    else if (samples && is_text)
        aco__samples_text(&page, samples, kind, name ? name + 1 : "the");
    else if (samples)
        aco__pprof_write(&page, samples, kind);
    if (samples)
        aco__samples_clear(samples);
    aco__page_reply(request,
                    is_json   ? "application/json"
                    : is_text ? "text/plain; charset=utf-8"
                              : "application/octet-stream",
                    &page);
}
