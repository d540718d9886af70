/* Save areas: they hold the frames of a coroutine while another coroutine uses its share stack. An area lies right
 * behind the control block; a large or grown one lies elsewhere. */
#include "stack/stack.h"

#include <string.h>

/* While the area lies elsewhere, this record stands right behind the block, where the area would be. */
typedef struct area_statistic {
    uint32_t reserved; /* bytes that the user asked for: the area does not get smaller */
    uint32_t recent;   /* the most bytes saved recently; decays */
} area_statistic_t;
_Static_assert(sizeof(area_statistic_t) == ACO__AREA_STATISTIC, "block.c leaves room for it");

static area_statistic_t *statistic(aco_t *co)
{
    return (area_statistic_t *)(void *)(co + 1);
}

static void begin_statistic(aco_t *co, size_t reserved)
{
    statistic(co)->reserved = reserved > UINT32_MAX ? UINT32_MAX : (uint32_t)reserved;
    statistic(co)->recent = 0;
}

/* The size of what stands behind the area: the pointer to cold data, if there is any. */
static size_t bytes_behind(const aco_t *co)
{
    return aco__has(co, ACO__HAS_COLD) ? sizeof(void *) : 0;
}

/* Moves the area and what stands behind it to the `room` bytes at `p`. */
static void area_move(aco_t *co, void *p, size_t room)
{
    aco_save_stack_t *save = &co->save_stack;
    size_t behind = bytes_behind(co);
    memcpy(p, save->ptr, save->valid_sz);
    memcpy((char *)p + room - behind, (char *)save->ptr + save->sz, behind);
    if (aco__area_is_inside(co))
        begin_statistic(co, 0); /* right behind the block, where the area was */
    else
        aco__memory_free(save->ptr, save->sz + behind);
    save->ptr = p;
    save->sz = room - behind;
}

/* The same to new memory of at least `room` bytes. 0, or -1 and errno. */
static int area_replace(aco_t *co, size_t room)
{
    void *p = aco__memory_new(&room);
    if (!p)
        return -1;
    area_move(co, p, room);
    return 0;
}

/* The first growth fits exactly; later ones leave room, because a coroutine that grew twice will grow again. */
int aco__area_grow(aco_t *co, size_t sz)
{
    size_t more = co->save_stack.sz + co->save_stack.sz / 2, room = aco__area_is_inside(co) || more < sz ? sz : more;
    return area_replace(co, aco__round_up(room, sizeof(void *)) + bytes_behind(co));
}

/* The area must hold the recent saves and what was reserved. Moves it back behind the block if that suffices; else, if
 * half its size suffices, to a smaller object. Keeps the area if there is no memory. */
static void shrink(aco_t *co)
{
    const area_statistic_t *s = statistic(co);
    size_t behind = bytes_behind(co), inside = (aco__memory_size(co) - sizeof *co) & ~(sizeof(void *) - 1);
    size_t wanted = aco__round_up(s->recent > s->reserved ? s->recent : s->reserved, sizeof(void *)) + behind;
    if (wanted <= inside)
        area_move(co, co + 1, inside);
    else if (wanted <= (co->save_stack.sz + behind) / 2)
        area_replace(co, wanted);
}

void aco__area_look(aco_t *co)
{
    area_statistic_t *s = statistic(co);
    uint32_t sz = (uint32_t)co->save_stack.valid_sz;
    if (co->save_stack.sz > UINT32_MAX) /* too large for the statistic: the area stays */
        return;
    if (s->recent < sz)
        s->recent = sz;
    else if (co->save_stack.ct_save % ACO__SAVES_PER_LOOK == 0) {
        s->recent -= (s->recent - sz) / 4;
        shrink(co);
    }
}

void aco__area_reserved(aco_t *co)
{
    begin_statistic(co, co->save_stack.sz);
}

int aco__area_reserve_pointer(aco_t *co)
{
    aco_save_stack_t *save = &co->save_stack;
    if (save->sz < save->valid_sz + sizeof(void *) && area_replace(co, save->valid_sz + sizeof(void *)) != 0)
        return -1;
    save->sz -= sizeof(void *);
    return 0;
}
