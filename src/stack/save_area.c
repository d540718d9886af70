/* Save areas: where the frames of a coroutine stand while another one has its share stack. An area lies right behind its control
 * block, or elsewhere when it is large or has grown. */
#include "stack/stack.h"

#include <string.h>

/* An area that is not the one behind the block leaves that one free for these. */
typedef struct area_statistic {
    uint32_t reserved; /* bytes that were asked for: it does not become smaller */
    uint32_t recent;   /* the most bytes saved of late: decays */
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

/* Bytes behind the area: the pointer to cold data. */
static size_t bytes_behind(const aco_t *co)
{
    return aco__has(co, ACO__HAS_COLD) ? sizeof(void *) : 0;
}

/* Moves the area, with what is behind it, to the `room` bytes at `p`. */
static void area_move(aco_t *co, void *p, size_t room)
{
    aco_save_stack_t *save = &co->save_stack;
    size_t behind = bytes_behind(co);
    memcpy(p, save->ptr, save->valid_sz);
    memcpy((char *)p + room - behind, (char *)save->ptr + save->sz, behind);
    if (aco__area_is_inside(co))
        begin_statistic(co, 0); /* where the area was */
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

/* A save area of at least `sz` bytes, instead of one that holds nothing. The first growth fits exactly, later ones leave room: a
 * coroutine that grew twice grows again. 0, or -1 and errno. */
int aco__area_grow(aco_t *co, size_t sz)
{
    size_t more = co->save_stack.sz + co->save_stack.sz / 2, room = aco__area_is_inside(co) || more < sz ? sz : more;
    return area_replace(co, aco__round_up(room, sizeof(void *)) + bytes_behind(co));
}

/* An area twice as large as what was saved of late is replaced by a smaller one; by that behind the block as soon as it is large
 * enough. Looked at once in ACO__SAVES_PER_LOOK saves; without memory it stays. */
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
    if (co->save_stack.sz > UINT32_MAX) /* too large for the statistic: it stays */
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
