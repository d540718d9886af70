/* samples.c: stacks that were seen, each once, with what was the same. */
#ifndef ACO_SAMPLES_H
#define ACO_SAMPLES_H

#include "debug/modules.h"
#include "debug/page.h"

#include "aco/detail/inspect.h"

/* What is the same of all that one entry counts. */
typedef struct aco__sample_key {
    const char *task, *route; /* their first ACO__WORK_SIZE - 1 bytes; "" or NULL: none. In an entry: "" */
    const char *state; /* lasts */
    long thread;       /* 0: it does not matter */
    const void *group, *co, *spawned_at; /* NULL: they do not matter */
    void *const *frames;
    int frame_count;
    int is_return; /* the first frame, too, is a return address */
    int is_culprit; /* it makes others wait: it comes before all that are not */
} aco__sample_key_t;

typedef struct aco__sample_entry {
    struct aco__sample_entry *next, *later; /* in the bucket; that came after it */
    uint64_t hash;
    int64_t count, value;
    int64_t longest; /* the highest value of one; 0: unknown */
    aco__sample_key_t key;
    char *text; /* for people; NULL: none. In a profile: where the holder of the lock waits */
    const char *place; /* of the wait, for aco__place_text(); NULL: unknown, or not wanted */
    const void *lock;  /* for which the first of them waits; NULL: for none */
    int64_t for_lock;  /* how many wait for that one */
    void *frames[];
} aco__sample_entry_t;

/* Zeros: nothing was seen. */
typedef struct aco__samples {
    aco__sample_entry_t **buckets;      /* NULL: none yet */
    aco__sample_entry_t *first, *last;  /* in the order in which they came */
    struct aco__sample_chunk *chunks;   /* their memory */
    size_t entries, bytes;
    int64_t total, dropped; /* counts; dropped: for which there was no memory, or too many were different */
} aco__samples_t;

/* Counts; the new entry or the one there was, NULL: it was dropped. */
ACO__HIDDEN aco__sample_entry_t *aco__samples_add(aco__samples_t *samples, const aco__sample_key_t *key, int64_t count,
                                                  int64_t value);
ACO__HIDDEN void aco__samples_clear(aco__samples_t *samples);
/* All entries, culprits first, then the highest count, then the highest value, then those that came first, in memory
 * that the caller frees; NULL: no memory, or none. */
ACO__HIDDEN aco__sample_entry_t **aco__samples_sorted(const aco__samples_t *samples);

/* What the numbers of a profile mean. */
typedef struct aco__profile_kind {
    const char *count_name, *count_unit; /* "samples", "count" */
    const char *value_name, *value_unit; /* "cpu", "nanoseconds"; NULL: the entries have counts only */
    int64_t period, duration;            /* in units of the value; in nanoseconds */
    const char *culprit_name;            /* "held": a third number, the value of culprits alone; NULL: there is none */
    const char *comment;                 /* that `go tool pprof` prints; NULL: none */
} aco__profile_kind_t;
/* Writes pprof's profile.proto, in gzip's format. pprof.c. */
ACO__HIDDEN void aco__pprof_write(aco__page_t *page, const aco__samples_t *samples, const aco__profile_kind_t *kind);
/* Writes a text for people. samples_text.c. */
ACO__HIDDEN void aco__samples_text(aco__page_t *page, const aco__samples_t *samples, const aco__profile_kind_t *kind,
                                   const char *name);
/* Replies with a profile: pprof's, JSON for `?json=1`, or text for `?debug=1`, and clears the samples; NULL: with 500.
 * samples_json.c. */
ACO__SWITCHES ACO__HIDDEN void aco__samples_reply(aco_http_request_t *request, aco__samples_t *samples,
                                                  const aco__profile_kind_t *kind);
/* Writes the frames as a member of an object: addresses within the calls, as numbers, the innermost first. */
ACO__HIDDEN void aco__json_frames(aco__page_t *page, void *const *frames, int n, int is_return);
/* Writes a text as a member: ,"NAME":"TEXT". */
ACO__HIDDEN void aco__json_member(aco__page_t *page, const char *name, const char *text);
/* Stores a text, cut. */
ACO__HIDDEN void aco__sample_text(char *to, size_t room, const char *text);
/* Writes a frame as Go's texts have it: "#\t0x4a3f\tfunction+0x12\tfile+0x…". */
ACO__HIDDEN void aco__frame_write(aco__page_t *page, aco__modules_t *modules, const void *address, int is_return);

#endif
