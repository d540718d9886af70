/* Profiles as text, for people: ?debug=1. Each stack with what is known of it, causes and the most frequent first. */
#define _GNU_SOURCE
#include "debug/samples.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void write_value(aco__page_t *page, const char *name, const char *unit, int64_t value)
{
    if (strcmp(unit, "nanoseconds") == 0)
        aco__page_print(page, ", %s %" PRId64 ".%03d ms", name, value / 1000000, (int)(value / 1000 % 1000));
    else
        aco__page_print(page, ", %s %" PRId64 " %s", name, value, unit);
}

static void write_entry(aco__page_t *page, aco__modules_t *modules, const aco__sample_entry_t *entry,
                        const aco__profile_kind_t *kind)
{
    const aco__sample_key_t *key = &entry->key;
    aco__page_print(page, "%" PRId64 " %s", entry->count, kind->count_name);
    if (kind->value_name)
        write_value(page, key->is_culprit && kind->culprit_name ? kind->culprit_name : kind->value_name,
                    kind->value_unit, entry->value);
    if (entry->longest)
        write_value(page, "longest", kind->value_unit, entry->longest);
    aco__page_print(page, " [%s%s%s%s", key->state ? key->state : "does this", key->task[0] ? ", task \"" : "",
                    key->task, key->task[0] ? "\"" : "");
    if (key->route[0])
        aco__page_print(page, ", route %s", key->route);
    if (entry->text)
        aco__page_print(page, ", the holder waits at %.500s", entry->text);
    if (key->thread)
        aco__page_print(page, ", thread %ld", key->thread);
    aco__page_print(page, "]:\n");
    for (int i = 0; i < key->frame_count; i++)
        aco__frame_write(page, modules, entry->frames[i], i || key->is_return);
    aco__page_print(page, "\n");
}

void aco__samples_text(aco__page_t *page, const aco__samples_t *samples, const aco__profile_kind_t *kind,
                       const char *name)
{
    aco__sample_entry_t **sorted = aco__samples_sorted(samples);
    aco__modules_t modules;
    page->is_broken |= samples->entries && !sorted;
    aco__modules_read(&modules);
    aco__page_print(page, "%s profile: total %" PRId64 " %s", name, samples->total, kind->count_name);
    if (kind->duration)
        aco__page_print(page, " in %" PRId64 " ms", kind->duration / 1000000);
    aco__page_print(page, "\n");
    if (samples->dropped)
        aco__page_print(page, "# %" PRId64 " of them were not kept\n", samples->dropped);
    for (size_t i = 0; sorted && i < samples->entries; i++)
        write_entry(page, &modules, sorted[i], kind);
    aco__modules_free(&modules);
    free(sorted);
}
