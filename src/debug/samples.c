/* Stacks that were seen, each once, with what was the same. */
#define _GNU_SOURCE
#include "debug/samples.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_BYTES_OF_SAMPLES = 128 << 20,
    BUCKETS = 1 << 17,
    CHUNK = 1 << 16, /* bytes */
    LONGEST_TEXT = ACO__WORK_SIZE - 1
};

void aco__sample_text(char *to, size_t room, const char *text)
{
    size_t n = strlen(text) < room ? strlen(text) : room - 1;
    memcpy(to, text, n);
    to[n] = 0;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (int i = 0; text && i < LONGEST_TEXT && text[i]; i++)
        hash = mix(hash, (unsigned char)text[i]);
    return hash;
}

static uint64_t hash_of_key(const aco__sample_key_t *key)
{
    uint64_t hash = mix((uint64_t)key->frame_count, (uintptr_t)key->state);
    hash = mix(mix(hash, (uint64_t)key->thread), (uintptr_t)key->group ^ (uintptr_t)key->co);
    hash = mix(hash, (uintptr_t)key->spawned_at);
    hash = mix_text(mix_text(hash, key->task), key->route);
    for (int i = 0; i < key->frame_count; i++)
        hash = mix(hash, (uintptr_t)key->frames[i]);
    return hash;
}

static int is_same_text(const char *a, const char *b)
{
    return strncmp(a, b ? b : "", LONGEST_TEXT) == 0;
}

/* `a` is an entry's. */
static int is_same_key(const aco__sample_key_t *a, const aco__sample_key_t *b)
{
    return a->state == b->state && a->thread == b->thread && a->group == b->group && a->co == b->co &&
           a->spawned_at == b->spawned_at && a->frame_count == b->frame_count && is_same_text(a->task, b->task) &&
           is_same_text(a->route, b->route) &&
           (!a->frame_count || memcmp(a->frames, b->frames, (size_t)a->frame_count * sizeof(void *)) == 0);
}

/* Entries lie one after the other in chunks: a task's turn has no more to do for the last than for the first. */
struct aco__sample_chunk {
    struct aco__sample_chunk *next;
    size_t used;
    _Alignas(aco__sample_entry_t) char bytes[CHUNK];
};

/* `sz` bytes that last until all are cleared; NULL: no memory, or too much. */
static void *room_for_entry(aco__samples_t *samples, size_t sz)
{
    struct aco__sample_chunk *chunk = samples->chunks;
    sz = (sz + _Alignof(aco__sample_entry_t) - 1) / _Alignof(aco__sample_entry_t) * _Alignof(aco__sample_entry_t);
    ACO__ASSERT(sz <= CHUNK);
    if (samples->bytes + sz > MOST_BYTES_OF_SAMPLES)
        return NULL;
    if (!chunk || CHUNK - chunk->used < sz) {
        chunk = malloc(sizeof *chunk);
        if (!chunk)
            return NULL;
        chunk->next = samples->chunks;
        chunk->used = 0;
        samples->chunks = chunk;
    }
    chunk->used += sz;
    samples->bytes += sz;
    return chunk->bytes + chunk->used - sz;
}

static size_t length_of(const char *text)
{
    return text ? strnlen(text, LONGEST_TEXT) : 0;
}

/* Copies the text, with its end behind it. */
static const char *put_text(char *to, const char *text, size_t n)
{
    if (n)
        memcpy(to, text, n);
    to[n] = 0;
    return to;
}

/* The frames and the texts lie behind it. */
static aco__sample_entry_t *new_entry(aco__samples_t *samples, const aco__sample_key_t *key, uint64_t hash)
{
    size_t frames = (size_t)key->frame_count * sizeof(void *), task = length_of(key->task);
    size_t route = length_of(key->route);
    aco__sample_entry_t *entry = room_for_entry(samples, sizeof *entry + frames + task + route + 2);
    char *texts;
    if (!entry)
        return NULL;
    *entry = (aco__sample_entry_t){.hash = hash, .key = *key};
    if (frames)
        memcpy(entry->frames, key->frames, frames);
    entry->key.frames = entry->frames;
    texts = (char *)entry->frames + frames;
    entry->key.task = put_text(texts, key->task, task);
    entry->key.route = put_text(texts + task + 1, key->route, route);
    *(samples->last ? &samples->last->later : &samples->first) = entry;
    samples->last = entry;
    samples->entries++;
    return entry;
}

/* Of a table that has its room from the beginning: it never grows in a task's turn. NULL: no memory. */
static aco__sample_entry_t **bucket_of(aco__samples_t *samples, uint64_t hash)
{
    if (!samples->buckets)
        samples->buckets = calloc(BUCKETS, sizeof(aco__sample_entry_t *));
    return samples->buckets ? &samples->buckets[hash % BUCKETS] : NULL;
}

aco__sample_entry_t *aco__samples_add(aco__samples_t *samples, const aco__sample_key_t *key, int64_t count,
                                      int64_t value)
{
    uint64_t hash = hash_of_key(key);
    aco__sample_entry_t **bucket = bucket_of(samples, hash), *entry = bucket ? *bucket : NULL;
    while (entry && (entry->hash != hash || !is_same_key(&entry->key, key)))
        entry = entry->next;
    samples->total += count;
    if (!entry) {
        entry = bucket ? new_entry(samples, key, hash) : NULL;
        if (!entry) {
            samples->dropped += count;
            return NULL;
        }
        entry->next = *bucket;
        *bucket = entry;
    }
    entry->count += count;
    entry->value += value;
    return entry;
}

void aco__samples_clear(aco__samples_t *samples)
{
    for (const aco__sample_entry_t *entry = samples->first; entry; entry = entry->later)
        free(entry->text);
    for (struct aco__sample_chunk *chunk = samples->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(samples->buckets);
    *samples = (aco__samples_t){0};
}

/* What entries are sorted by, beside each other: of many entries, most of a sort would be waiting for memory. */
typedef struct rank {
    int64_t count, value;
    unsigned number, is_culprit;
    aco__sample_entry_t *entry;
} rank_t;

static int compare_ranks(const void *a, const void *b)
{
    const rank_t *x = a, *y = b;
    if (x->is_culprit != y->is_culprit)
        return (x->is_culprit < y->is_culprit) - (x->is_culprit > y->is_culprit);
    if (x->count != y->count)
        return (x->count < y->count) - (x->count > y->count);
    return x->value != y->value ? (x->value < y->value) - (x->value > y->value)
                                : (x->number > y->number) - (x->number < y->number);
}

aco__sample_entry_t **aco__samples_sorted(const aco__samples_t *samples)
{
    aco__sample_entry_t **sorted = samples->entries ? malloc(samples->entries * sizeof *sorted) : NULL;
    rank_t *ranks = sorted ? malloc(samples->entries * sizeof *ranks) : NULL;
    unsigned n = 0;
    if (!ranks) {
        free(sorted);
        return NULL;
    }
    for (aco__sample_entry_t *entry = samples->first; entry; entry = entry->later, n++)
        ranks[n] = (rank_t){entry->count, entry->value, n, entry->key.is_culprit != 0, entry};
    qsort(ranks, n, sizeof *ranks, compare_ranks);
    for (unsigned i = 0; i < n; i++)
        sorted[i] = ranks[i].entry;
    free(ranks);
    return sorted;
}
