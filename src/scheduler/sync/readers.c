/* Which tasks have reader-writer locks for reading. A lock only counts them, so each thread notes who has which, up to
 * MOST_READERS; reports count the others. A note outlives its task if that ends with the lock: it still has it. */
#include "scheduler/sync/readers.h"

#include "base/base.h"

enum { MOST_READERS = 256 };

void aco__reader_note(aco__tasks_t *s, const aco_rwlock_t *lock, const aco_t *task)
{
    if (!s->readers) {
        s->readers_sz = MOST_READERS * sizeof *s->readers;
        s->readers = aco__memory_new(&s->readers_sz);
        if (!s->readers)
            return;
        memset(s->readers, 0, MOST_READERS * sizeof *s->readers);
    }
    for (size_t i = 0; i < MOST_READERS; i++)
        if (!s->readers[i].lock) {
            s->readers[i] = (aco__reader_t){lock, task, ""};
            return;
        }
}

/* Without readers the lock has no notes, either: those of tasks whose lock another one has unlocked go, too. */
void aco__reader_drop(const aco__tasks_t *s, const aco_rwlock_t *lock, const aco_t *task)
{
    for (size_t i = 0; i < MOST_READERS; i++)
        if (s->readers[i].lock == lock && (!lock->readers || (s->readers[i].task == task && !s->readers[i].name[0]))) {
            s->readers[i].lock = NULL;
            if (lock->readers)
                return;
        }
}

void aco__reader_ends(const aco__tasks_t *s, const aco_t *task, const char *name)
{
    for (size_t i = 0; s->readers && i < MOST_READERS; i++)
        if (s->readers[i].lock && s->readers[i].task == task && !s->readers[i].name[0])
            memcpy(s->readers[i].name, name, strlen(name) + 1);
}

const aco__reader_t *aco__reader_next(const aco__tasks_t *s, const aco_rwlock_t *lock, size_t *i)
{
    for (; s->readers && *i < MOST_READERS; ++*i)
        if (s->readers[*i].lock == lock)
            return &s->readers[(*i)++];
    return NULL;
}

void aco__readers_free(aco__tasks_t *s)
{
    if (s->readers)
        aco__memory_free(s->readers, s->readers_sz);
    s->readers = NULL;
}
