/* Profiles in pprof's format: profile.proto, whose field numbers stand below, in gzip's format. The blocks of gzip are
 * stored as they are: who reads is near, and no library is needed. */
#define _GNU_SOURCE
#include "debug/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "system/system.h"

/* ---- Messages ---- */

static void add_varint(aco__page_t *page, uint64_t n)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((n & 127) | (n > 127 ? 128 : 0));
        n >>= 7;
    } while (n);
    aco__page_add(page, bytes, count);
}

static void add_number(aco__page_t *page, unsigned field, uint64_t n)
{
    if (!n)
        return;
    add_varint(page, field << 3);
    add_varint(page, n);
}

static void add_field(aco__page_t *page, unsigned field, const void *p, size_t n)
{
    add_varint(page, field << 3 | 2);
    add_varint(page, n);
    aco__page_add(page, p, n);
}

/* A message within the message: it is written in its place. Returns where it begins. */
static size_t begin_message(aco__page_t *page, unsigned field)
{
    add_varint(page, field << 3 | 2);
    return page->n;
}

/* Its length, which comes before it, is known now. */
static void end_message(aco__page_t *page, size_t begin)
{
    unsigned char length[10];
    const size_t n = page->n - begin;
    add_varint(page, n);
    if (page->is_broken)
        return;
    ACO__ASSERT(begin + n < page->n && page->n - begin - n <= sizeof length);
    memcpy(length, page->at + begin + n, page->n - begin - n);
    memmove(page->at + page->n - n, page->at + begin, n);
    memcpy(page->at + begin, length, page->n - begin - n);
}

/* ---- Tables: what has a number from 1 on ---- */

typedef struct number_slot {
    const void *key;
    uint64_t hash;
    size_t number;
} number_slot_t;

/* Open addressing; texts are compared as texts. */
typedef struct numbers {
    number_slot_t *slots;
    size_t room, n;
    int is_text;
} numbers_t;

static uint64_t hash_of(const void *key, int is_text)
{
    uint64_t hash = UINT64_C(1469598103934665603);
    if (!is_text)
        return (uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15) >> 7;
    for (const unsigned char *c = key; *c; c++)
        hash = (hash ^ *c) * UINT64_C(1099511628211);
    return hash;
}

static number_slot_t *slot_of(const numbers_t *numbers, const void *key, uint64_t hash)
{
    size_t i = hash & (numbers->room - 1);
    while (numbers->slots[i].key &&
           (numbers->slots[i].hash != hash ||
            (numbers->is_text ? strcmp(numbers->slots[i].key, key) != 0 : numbers->slots[i].key != key)))
        i = (i + 1) & (numbers->room - 1);
    return &numbers->slots[i];
}

static int grow_numbers(numbers_t *numbers)
{
    numbers_t more = {NULL, numbers->room ? 2 * numbers->room : 1024, numbers->n, numbers->is_text};
    more.slots = calloc(more.room, sizeof *more.slots);
    if (!more.slots)
        return -1;
    for (size_t i = 0; i < numbers->room; i++)
        if (numbers->slots[i].key)
            *slot_of(&more, numbers->slots[i].key, numbers->slots[i].hash) = numbers->slots[i];
    free(numbers->slots);
    *numbers = more;
    return 0;
}

/* The number of the key, which must last. *is_new: it has just got it. 0: no memory. */
static size_t number_of(numbers_t *numbers, const void *key, int *is_new)
{
    uint64_t hash = hash_of(key, numbers->is_text);
    number_slot_t *slot;
    *is_new = 0;
    if (2 * numbers->n >= numbers->room && grow_numbers(numbers) != 0)
        return 0;
    slot = slot_of(numbers, key, hash);
    if (!slot->key) {
        slot->key = key;
        slot->hash = hash;
        slot->number = ++numbers->n;
        *is_new = 1;
    }
    return slot->number;
}

/* ---- The profile ---- */

enum { ORIGIN_SIZE = 40 }; /* two labels of two texts each */

/* Fields may come in any order. While a sample is written, what it names gets into the others. */
typedef struct writer {
    aco__page_t body, samples, strings;
    numbers_t locations, functions, texts;
    aco__modules_t modules;
    struct kept_text *kept;
    const void *place, *spawned_at; /* of the last sample, and its labels for them: most have those of the one before */
    char origin[ORIGIN_SIZE];
    size_t origin_n;
} writer_t;

/* A text that did not last. */
typedef struct kept_text {
    struct kept_text *next;
    char text[];
} kept_text_t;

/* The index of a text, which must last; "" has 0. */
static uint64_t text_index(writer_t *w, const char *text)
{
    int is_new;
    size_t number;
    if (!*text)
        return 0;
    number = number_of(&w->texts, text, &is_new);
    w->body.is_broken |= !number;
    if (is_new)
        add_field(&w->strings, 6, text, strlen(text));
    return number;
}

/* The same for a text that need not last. */
static uint64_t kept_index(writer_t *w, const char *text)
{
    const size_t n = strlen(text) + 1;
    kept_text_t *kept = malloc(sizeof *kept + n);
    int is_new = 0;
    size_t number;
    if (kept)
        memcpy(kept->text, text, n);
    number = kept ? number_of(&w->texts, kept->text, &is_new) : 0;
    w->body.is_broken |= !number;
    if (!is_new) {
        free(kept);
        return number;
    }
    add_field(&w->strings, 6, text, n - 1);
    kept->next = w->kept;
    w->kept = kept;
    return number;
}

static void free_kept(writer_t *w)
{
    for (kept_text_t *kept = w->kept, *next; kept; kept = next) {
        next = kept->next;
        free(kept);
    }
}

static uint64_t write_function(writer_t *w, const char *name)
{
    int is_new;
    size_t id = number_of(&w->functions, name, &is_new);
    size_t begin;
    if (!is_new)
        return id;
    begin = begin_message(&w->body, 5);
    add_number(&w->body, 1, id);
    add_number(&w->body, 2, text_index(w, name));
    add_number(&w->body, 3, text_index(w, name));
    end_message(&w->body, begin);
    return id;
}

/* `address` lies within the call. */
static uint64_t write_location(writer_t *w, const char *address)
{
    int is_new;
    size_t id = number_of(&w->locations, address, &is_new), begin, line;
    aco__module_t *module;
    uint64_t function;
    uintptr_t start;
    const char *name;
    if (!is_new)
        return id;
    module = aco__module_of(&w->modules, address);
    name = aco__function_at(module, address, &start);
    function = name ? write_function(w, name) : 0;
    begin = begin_message(&w->body, 4);
    add_number(&w->body, 1, id);
    if (module)
        add_number(&w->body, 2, (uint64_t)(module - w->modules.at) + 1);
    add_number(&w->body, 3, (uintptr_t)address);
    if (name) {
        line = begin_message(&w->body, 4);
        add_number(&w->body, 1, function);
        end_message(&w->body, line);
    }
    end_message(&w->body, begin);
    return id;
}

static void write_label(writer_t *w, const char *key, const char *text, int64_t number)
{
    const size_t begin = begin_message(&w->samples, 3);
    add_number(&w->samples, 1, text_index(w, key));
    if (text)
        add_number(&w->samples, 2, text_index(w, text));
    else
        add_number(&w->samples, 3, (uint64_t)number);
    end_message(&w->samples, begin);
}

static void write_text_label(writer_t *w, const char *key, uint64_t index)
{
    const size_t begin = begin_message(&w->samples, 3);
    add_number(&w->samples, 1, text_index(w, key));
    add_number(&w->samples, 2, index);
    end_message(&w->samples, begin);
}

/* An address, as the texts have it. */
static void write_group(writer_t *w, const void *group)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%p", group);
    write_text_label(w, "group", kept_index(w, text));
}

static void write_place(writer_t *w, const char *place)
{
    char text[256];
    if (place)
        write_text_label(w, "at", kept_index(w, aco__place_text(place, text, sizeof text)));
}

static void write_spawner(writer_t *w, const void *spawned_at)
{
    const char *call = (const char *)spawned_at - 1, *name;
    uintptr_t start;
    name = spawned_at ? aco__function_at(aco__module_of(&w->modules, call), call, &start) : NULL;
    if (name)
        write_label(w, "created_by", name, 0);
}

static void write_origin(writer_t *w, const char *place, const void *spawned_at)
{
    const size_t begin = w->samples.n;
    if (place == w->place && spawned_at == w->spawned_at) {
        aco__page_add(&w->samples, w->origin, w->origin_n);
        return;
    }
    write_place(w, place);
    write_spawner(w, spawned_at);
    w->place = place;
    w->spawned_at = spawned_at;
    w->origin_n = w->samples.is_broken ? 0 : w->samples.n - begin;
    ACO__ASSERT(w->origin_n <= sizeof w->origin);
    if (w->origin_n)
        memcpy(w->origin, w->samples.at + begin, w->origin_n);
}

static void write_frames(writer_t *w, const aco__sample_entry_t *entry)
{
    const size_t begin = begin_message(&w->samples, 1);
    for (int i = 0; i < entry->key.frame_count; i++)
        add_varint(&w->samples, write_location(w, (const char *)entry->frames[i] - (i || entry->key.is_return)));
    end_message(&w->samples, begin);
}

static void write_values(aco__page_t *page, const aco__sample_entry_t *entry, const aco__profile_kind_t *kind)
{
    const size_t begin = begin_message(page, 2);
    add_varint(page, (uint64_t)entry->count);
    if (kind->value_name)
        add_varint(page, (uint64_t)entry->value);
    if (kind->culprit_name)
        add_varint(page, entry->key.is_culprit ? (uint64_t)entry->value : 0);
    end_message(page, begin);
}

static void write_sample(writer_t *w, const aco__sample_entry_t *entry, const aco__profile_kind_t *kind)
{
    const size_t begin = begin_message(&w->samples, 2);
    write_frames(w, entry);
    write_values(&w->samples, entry, kind);
    if (entry->key.task[0])
        write_label(w, "task", entry->key.task, 0);
    if (entry->key.route[0])
        write_label(w, "route", entry->key.route, 0);
    if (entry->key.state)
        write_label(w, "state", entry->key.state, 0);
    if (entry->text)
        write_label(w, "holder_at", entry->text, 0);
    if (entry->key.group)
        write_group(w, entry->key.group);
    write_origin(w, entry->place, entry->key.spawned_at);
    if (entry->key.thread)
        write_label(w, "thread", NULL, entry->key.thread);
    end_message(&w->samples, begin);
}

static void write_modules(writer_t *w)
{
    for (size_t i = 0; i < w->modules.n; i++) {
        const aco__module_t *module = &w->modules.at[i];
        const size_t begin = begin_message(&w->body, 3);
        add_number(&w->body, 1, i + 1);
        add_number(&w->body, 2, module->from);
        add_number(&w->body, 3, module->to);
        add_number(&w->body, 4, module->offset);
        add_number(&w->body, 5, text_index(w, module->path));
        add_number(&w->body, 6, text_index(w, module->build_id));
        add_number(&w->body, 7, module->symbols != NULL);
        end_message(&w->body, begin);
    }
}

static void write_type(writer_t *w, unsigned field, const char *name, const char *unit)
{
    const size_t begin = begin_message(&w->body, field);
    add_number(&w->body, 1, text_index(w, name));
    add_number(&w->body, 2, text_index(w, unit));
    end_message(&w->body, begin);
}

/* ---- gzip ---- */

static uint32_t crc_of(const unsigned char *p, size_t n)
{
    uint32_t table[256], crc = ~(uint32_t)0;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ UINT32_C(0xEDB88320) : c >> 1;
        table[i] = c;
    }
    for (size_t i = 0; i < n; i++)
        crc = table[(crc ^ p[i]) & 255] ^ crc >> 8;
    return ~crc;
}

static void add_little(aco__page_t *page, uint32_t n, size_t bytes)
{
    unsigned char text[4];
    for (size_t i = 0; i < bytes; i++)
        text[i] = (unsigned char)(n >> 8 * i);
    aco__page_add(page, text, bytes);
}

static void write_gzip(aco__page_t *page, const aco__page_t *body)
{
    static const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    enum { MOST_STORED = 65535 };
    aco__page_add(page, head, sizeof head);
    for (size_t done = 0, n; done < body->n || !done; done += n) {
        unsigned char last;
        n = body->n - done < MOST_STORED ? body->n - done : MOST_STORED;
        last = done + n == body->n;
        aco__page_add(page, &last, 1);
        add_little(page, (uint32_t)n, 2);
        add_little(page, (uint32_t)~n, 2);
        aco__page_add(page, body->at + done, n);
        if (!n)
            break;
    }
    add_little(page, crc_of((const unsigned char *)body->at, body->n), 4);
    add_little(page, (uint32_t)body->n, 4);
}

void aco__pprof_write(aco__page_t *page, const aco__samples_t *samples, const aco__profile_kind_t *kind)
{
    writer_t w = {.texts = {.is_text = 1}, .functions = {.is_text = 1}};
    struct timespec now = {0};
    aco__sample_entry_t **sorted = aco__samples_sorted(samples);
    aco__modules_read(&w.modules);
    add_field(&w.strings, 6, "", 0);
    write_type(&w, 1, kind->count_name, kind->count_unit);
    if (kind->value_name)
        write_type(&w, 1, kind->value_name, kind->value_unit);
    if (kind->value_name && kind->culprit_name) {
        int has_culprits = sorted && sorted[0]->key.is_culprit;
        write_type(&w, 1, kind->culprit_name, kind->value_unit);
        add_number(&w.body, 14, text_index(&w, has_culprits ? kind->culprit_name : kind->value_name)); /* the default */
    }
    if (kind->comment)
        add_number(&w.body, 13, text_index(&w, kind->comment));
    w.body.is_broken |= samples->entries && !sorted;
    for (size_t i = 0; sorted && i < samples->entries; i++)
        write_sample(&w, sorted[i], kind);
    write_modules(&w);
    aco__system.clock_gettime(CLOCK_REALTIME, &now);
    add_number(&w.body, 9, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
    add_number(&w.body, 10, (uint64_t)kind->duration);
    write_type(&w, 11, kind->value_name ? kind->value_name : kind->count_name,
               kind->value_name ? kind->value_unit : kind->count_unit);
    add_number(&w.body, 12, (uint64_t)kind->period);
    aco__page_add(&w.body, w.samples.at, w.samples.n);
    aco__page_add(&w.body, w.strings.at, w.strings.n);
    if (w.body.is_broken || w.samples.is_broken || w.strings.is_broken)
        page->is_broken = 1;
    else
        write_gzip(page, &w.body);
    free(sorted);
    free(w.locations.slots);
    free(w.functions.slots);
    free(w.texts.slots);
    free_kept(&w);
    aco__page_free(&w.body);
    aco__page_free(&w.samples);
    aco__page_free(&w.strings);
    aco__modules_free(&w.modules);
}

/* ---- Text ---- */

void aco__frame_write(aco__page_t *page, aco__modules_t *modules, const void *address, int is_return)
{
    const char *at = (const char *)address - is_return;
    aco__module_t *module = aco__module_of(modules, at);
    uintptr_t start = 0;
    const char *name = aco__function_at(module, at, &start);
    aco__page_print(page, "#\t%p\t", address);
    if (name)
        aco__page_print(page, "%.700s+%#" PRIxPTR, name, (uintptr_t)address - start);
    else
        aco__page_print(page, "?");
    if (module)
        aco__page_print(page, "\t%.900s+%#" PRIxPTR "\n", module->path, (uintptr_t)address - module->bias);
    else
        aco__page_print(page, "\t?\n");
}
