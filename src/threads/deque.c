/* Items that one thread pushes and pops at the bottom, and others steal at the top: the deque of D. Chase and Y. Lev,
 * "Dynamic circular work-stealing deque" (SPAA 2005), in the C11 form of N. M. Lê, A. Pop, A. Cohen and F. Zappa
 * Nardelli, "Correct and efficient work-stealing for weak memory models" (PPoPP 2013). Where theirs has fences, this
 * has sequentially consistent accesses of `top` and `bottom`: thread sanitizers understand these only.
 *
 * An item has several words, so a thief may read some of an older item and some of a newer one. That happens only after
 * `top` has moved past the item that it wants, and then its compare-and-swap of `top` fails. Items are copied word by
 * word, never as a block: a load of 16 bytes just after two stores of 8 waits until both have left the store buffer.
 *
 * pop() stores `bottom - 1` and then loads `top`; steal() loads `top` and then `bottom`. If two threads want the last
 * item, either the thief's load of `bottom` comes after the owner's store, and it sees an empty deque, or the owner's
 * load of `top` comes after the thief's, and one of them wins the compare-and-swap of `top`. The owner overwrites a
 * slot only when it has seen `top` move past the item. Outgrown arrays are kept until the set ends. */
#include "base/invariants.h"
#include "threads/deque.h"

enum { FIRST_COUNT = 64 };

typedef struct aco__items {
    size_t mask;                /* their number is a power of two */
    struct aco__items *before;  /* the smaller array that this one has replaced: thieves may still read there */
    size_t sz;
    aco__item_t slots[];
} aco__items_t;

static inline void put(aco__items_t *items, size_t at, const aco__item_t *item)
{
    aco__item_t *slot = &items->slots[at & items->mask];
    __atomic_store_n(&slot->fn, item->fn, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->arg, item->arg, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->group, item->group, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->result, item->result, __ATOMIC_RELAXED);
}

static inline void get(const aco__items_t *items, size_t at, aco__item_t *item)
{
    const aco__item_t *slot = &items->slots[at & items->mask];
    item->fn = __atomic_load_n(&slot->fn, __ATOMIC_RELAXED);
    item->arg = __atomic_load_n(&slot->arg, __ATOMIC_RELAXED);
    item->group = __atomic_load_n(&slot->group, __ATOMIC_RELAXED);
    item->result = __atomic_load_n(&slot->result, __ATOMIC_RELAXED);
}

/* NULL and errno without memory. */
static aco__items_t *new_items(size_t count)
{
    size_t sz = sizeof(aco__items_t) + count * sizeof(aco__item_t);
    aco__items_t *items = aco__service_allocate(&sz, "aco_submit");
    if (!items)
        return NULL;
    items->mask = count - 1;
    items->before = NULL;
    items->sz = sz;
    return items;
}

int aco__deque_open(aco__deque_t *deque)
{
    deque->items = new_items(FIRST_COUNT);
    return deque->items ? 0 : -1;
}

/* Moves the items to an array of twice the size. NULL and errno without memory. */
static aco__items_t *grow(aco__deque_t *deque, aco__items_t *old, size_t top, size_t bottom)
{
    aco__items_t *items = new_items(2 * (old->mask + 1));
    aco__item_t item;
    if (!items)
        return NULL;
    ACO__ASSERT(bottom - top <= old->mask + 1);
    items->before = old;
    for (size_t at = top; at != bottom; at++) {
        get(old, at, &item);
        put(items, at, &item);
    }
    __atomic_store_n(&deque->items, items, __ATOMIC_RELEASE);
    return items;
}

/* The array has no slot for the item at `bottom`, as far as the owner has seen: looks again. An array that has, or NULL
 * and errno without memory. */
static ACO__COLD aco__items_t *array_with_room(aco__deque_t *deque, aco__items_t *items, size_t bottom)
{
    size_t top = deque->seen_top = __atomic_load_n(&deque->top, __ATOMIC_ACQUIRE);
    return bottom - top > items->mask ? grow(deque, items, top, bottom) : items;
}

int aco__deque_push(aco__deque_t *deque, const aco__item_t *item)
{
    size_t bottom = deque->bottom;
    aco__items_t *items = deque->items;
    if (aco_unlikely(bottom - deque->seen_top > items->mask) && /* `top` itself is in a line that thieves write */
        !(items = array_with_room(deque, items, bottom)))
        return -1;
    ACO__ASSERT(bottom - deque->seen_top <= items->mask); /* or the oldest item is lost */
    put(items, bottom, item);
    aco__store_then_load(&deque->bottom, bottom + 1); /* see aco__threads_may_sleep() */
    return 0;
}

int aco__deque_pop(aco__deque_t *deque, aco__item_t *item)
{
    size_t bottom = deque->bottom, top = __atomic_load_n(&deque->top, __ATOMIC_RELAXED);
    int is_mine;
    if (bottom == top) /* `top` never moves past `bottom`, and only this thread moves `bottom` */
        return 0;
    bottom--;
    aco__store_then_load(&deque->bottom, bottom);
    top = __atomic_load_n(&deque->top, __ATOMIC_SEQ_CST);
    ACO__ASSERT((ptrdiff_t)(bottom - top) >= -1);
    if ((ptrdiff_t)(bottom - top) > 0) { /* thieves see the new `bottom` before they come to this item */
        get(deque->items, bottom, item);
        return 1;
    }
    is_mine = bottom == top && /* the last one: thieves may want it too */
              __atomic_compare_exchange_n(&deque->top, &top, top + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    if (is_mine)
        get(deque->items, bottom, item); /* only this thread writes slots */
    __atomic_store_n(&deque->bottom, bottom + 1, __ATOMIC_RELEASE);
    return is_mine;
}

int aco__deque_steal(aco__deque_t *deque, aco__item_t *item)
{
    size_t top = __atomic_load_n(&deque->top, __ATOMIC_SEQ_CST);
    size_t bottom = __atomic_load_n(&deque->bottom, __ATOMIC_SEQ_CST);
    if ((ptrdiff_t)(bottom - top) <= 0)
        return 0;
    get(__atomic_load_n(&deque->items, __ATOMIC_ACQUIRE), top, item);
    return __atomic_compare_exchange_n(&deque->top, &top, top + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED) ? 1 : -1;
}

size_t aco__deque_count_of(const aco__deque_t *deque, const aco_mt_group_t *group)
{
    aco__item_t item;
    size_t count = 0;
    for (size_t at = deque->top; at != deque->bottom; at++) {
        get(deque->items, at, &item);
        count += item.group == group;
    }
    return count;
}

int aco__deque_has_room(const aco__deque_t *deque)
{
    size_t top = __atomic_load_n(&deque->top, __ATOMIC_ACQUIRE);
    return deque->bottom - top <= deque->items->mask;
}

size_t aco__deque_count(const aco__deque_t *deque)
{
    size_t top = __atomic_load_n(&deque->top, __ATOMIC_SEQ_CST);
    size_t bottom = __atomic_load_n(&deque->bottom, __ATOMIC_SEQ_CST);
    return (ptrdiff_t)(bottom - top) > 0 ? bottom - top : 0;
}

void aco__deque_free(aco__deque_t *deque)
{
    while (deque->items) {
        aco__items_t *items = deque->items;
        deque->items = items->before;
        aco__service_free(items, items->sz);
    }
}
