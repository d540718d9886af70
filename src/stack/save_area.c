/* Save areas: they hold the frames of a coroutine while another coroutine uses its share stack. An area of a given size
 * lies right behind the control block, a large or grown one elsewhere. Without a given size there is no area before the
 * first save; then it is in the block's slot (base/slab.h) or elsewhere. */
#include "stack/stack.h"

#include <string.h>

/* An area elsewhere has this record behind it, unless it is small. Small areas stay as they are. */
typedef struct area_statistic {
    uint32_t reserved; /* bytes that the user asked for: the area does not get smaller */
    uint32_t recent;   /* the most bytes saved recently; decays */
} area_statistic_t;
enum { UNIT = 8, SMALL_AREA = 248 }; /* bytes, with what stands behind the saved bytes */

/* The size of the pointer to cold data behind the area, if there is one. */
static size_t bytes_behind(const aco_t *co)
{
    return aco__has(co, ACO__HAS_COLD) ? sizeof(void *) : 0;
}

/* Whether the area is the block's own: behind it, or in its slot. Not inlined, because the slot takes much code. */
static __attribute__((noinline)) int is_own(const aco_t *co)
{
    return aco__area_is_inside(co) || co->save_stack.ptr == aco__slot(co);
}

static int has_statistic(const aco_t *co)
{
    return co->save_stack.sz + bytes_behind(co) > SMALL_AREA && !is_own(co);
}

static area_statistic_t *statistic(const aco_t *co)
{
    return (area_statistic_t *)(void *)((char *)co->save_stack.ptr + co->save_stack.sz + bytes_behind(co));
}

void aco__area_free(aco_t *co)
{
    if (co->save_stack.ptr && !is_own(co)) { /* a main coroutine object has none */
        size_t bytes = co->save_stack.sz + bytes_behind(co);
        aco__memory_free(co->save_stack.ptr, bytes + (bytes > SMALL_AREA ? sizeof(area_statistic_t) : 0));
    }
}

/* Moves the area and what stands behind it to the `bytes` bytes at `p`. */
static void area_move(aco_t *co, void *p, size_t bytes)
{
    aco_save_stack_t *save = &co->save_stack;
    area_statistic_t old = {0, 0};
    size_t behind = bytes_behind(co);
    if (has_statistic(co))
        old = *statistic(co);
    ACO__ASSERT(p != save->ptr && save->valid_sz + behind <= bytes && save->valid_sz <= save->sz);
    memcpy(p, save->ptr, save->valid_sz);
    memcpy((char *)p + bytes - behind, (char *)save->ptr + save->sz, behind);
    if (aco__status(co) == ACO__RESUMING_SAVED && aco__is_shared_task(co))
        ACO__UPCALL(task_moved, (co, save->ptr, save->valid_sz, p));
    aco__area_free(co);
    save->ptr = p;
    save->sz = bytes - behind;
    if (has_statistic(co))
        *statistic(co) = old;
}

/* The same to new memory of at least `bytes` bytes. 0, or -1 and errno. */
static int area_replace(aco_t *co, size_t bytes)
{
    size_t record = bytes > SMALL_AREA ? sizeof(area_statistic_t) : 0, room = bytes + record;
    void *p = aco__words_new(&room);
    if (!p)
        return -1;
    area_move(co, p, room - record);
    return 0;
}

/* The first growth fits exactly; later ones leave room, because a coroutine that grew twice will grow again. */
int aco__area_grow(aco_t *co, size_t sz)
{
    size_t more = co->save_stack.sz + co->save_stack.sz / 2, behind = bytes_behind(co);
    size_t bytes = aco__round_up(is_own(co) || more < sz ? sz : more, UNIT);
    char *slot = co->save_stack.sz + behind == 0 ? aco__slot_wanted(co, bytes) : NULL;
    ACO__ASSERT(!co->save_stack.valid_sz && bytes >= sz);
    if (!slot)
        return area_replace(co, bytes + behind);
    ACO__ASSERT(aco__slot_size(co) >= bytes);
    co->save_stack.ptr = slot;
    co->save_stack.sz = aco__slot_size(co);
    return 0;
}

/* The area must hold the recent saves and what was reserved. Moves it back to the block's own place if that suffices;
 * else, if half its size suffices, to a smaller object. Keeps the area if there is no memory. */
static void shrink(aco_t *co)
{
    const area_statistic_t *s = statistic(co);
    char *slot = aco__slot(co);
    size_t behind = bytes_behind(co), own = slot ? aco__slot_size(co) : aco__memory_size(co) - sizeof *co;
    ACO__ASSERT(s->recent >= co->save_stack.valid_sz && !is_own(co));
    size_t wanted = aco__round_up(s->recent > s->reserved ? s->recent : s->reserved, UNIT) + behind;
    if (wanted <= own)
        area_move(co, slot ? slot : (char *)(co + 1), own);
    else if (wanted <= (co->save_stack.sz + behind) / 2 &&
             (wanted > SMALL_AREA || s->recent < co->save_stack.valid_sz + UNIT)) /* a small one stays: wait for it */
        area_replace(co, wanted);
}

void aco__area_look(aco_t *co)
{
    area_statistic_t *s = statistic(co);
    uint32_t sz = (uint32_t)co->save_stack.valid_sz;
    ACO__ASSERT(!aco__area_is_inside(co) && co->save_stack.valid_sz <= co->save_stack.sz);
    if (!has_statistic(co) || co->save_stack.sz > UINT32_MAX) /* too large for the statistic: the area stays */
        return;
    if (s->recent < sz)
        s->recent = sz;
    else if (co->save_stack.ct_save % ACO__SAVES_PER_LOOK == 0) {
        s->recent -= (s->recent - sz) / 4;
        shrink(co);
    }
}

int aco__area_reserve(aco_t *co, size_t sz)
{
    if (area_replace(co, aco__round_up(sz, UNIT)) != 0)
        return -1;
    ACO__ASSERT(has_statistic(co) && co->save_stack.sz >= sz);
    statistic(co)->reserved = sz > UINT32_MAX ? UINT32_MAX : (uint32_t)sz;
    return 0;
}

int aco__area_reserve_pointer(aco_t *co)
{
    aco_save_stack_t *save = &co->save_stack;
    size_t bytes = save->valid_sz + sizeof(void *);
    ACO__ASSERT(!aco__has(co, ACO__HAS_COLD)); /* else another pointer is there */
    if (save->sz < bytes && area_replace(co, aco__round_up(bytes, UNIT)) != 0)
        return -1;
    ACO__ASSERT(save->sz >= bytes);
    save->sz -= sizeof(void *);
    return 0;
}
