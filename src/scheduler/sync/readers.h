/* readers.c: which tasks have reader-writer locks for reading, for dumps and profiles. Notes are only made while
 * somebody may ask: what was locked before is not known. */
#ifndef ACO_READERS_H
#define ACO_READERS_H

#include "scheduler/record.h"

#include "aco/sync.h"

typedef struct aco__reader {
    const aco_rwlock_t *lock; /* NULL: the note is vacant */
    const aco_t *task; /* it may have ended without its note's knowledge, if it has no name */
    char name[ACO_NAME_SIZE]; /* of a task that has ended; "": it has not */
} aco__reader_t;

ACO__HIDDEN ACO__COLD void aco__reader_note(aco__tasks_t *s, const aco_rwlock_t *lock, const aco_t *task);
ACO__HIDDEN ACO__COLD void aco__reader_drop(const aco__tasks_t *s, const aco_rwlock_t *lock, const aco_t *task);
/* A task with this name ends. */
ACO__HIDDEN ACO__COLD void aco__reader_ends(const aco__tasks_t *s, const aco_t *task, const char *name);
/* The note of one that has the lock, from the i-th note on: stores the next one's number in *i. NULL: there is none. */
ACO__HIDDEN const aco__reader_t *aco__reader_next(const aco__tasks_t *s, const aco_rwlock_t *lock, size_t *i);
/* The scheduler ends. */
ACO__HIDDEN void aco__readers_free(aco__tasks_t *s);

static inline int aco__notes_readers(const aco__tasks_t *s)
{
    return s->dumps || __atomic_load_n(&s->answers, __ATOMIC_RELAXED);
}

/* A task locks it for reading, or has unlocked it. */
static inline void aco__reader_joins(aco__tasks_t *s, const aco_rwlock_t *lock, const aco_t *task)
{
    if (aco_unlikely(aco__notes_readers(s)))
        aco__reader_note(s, lock, task);
}

static inline void aco__reader_leaves(const aco__tasks_t *s, const aco_rwlock_t *lock, const aco_t *task)
{
    if (aco_unlikely(s->readers != NULL))
        aco__reader_drop(s, lock, task);
}

#endif
