/* Memory for control blocks and save areas. Slabs of 2 MiB hold objects of one size class side by side.
 *
 * A slab is aligned to its size: masking an object's address gives the address of its slab.
 *   | slab: heap, class, free list, ... (two lines) | object | object | ... never used yet: from `fresh` on |
 *
 * A heap belongs to one thread at a time. Only that thread allocates and frees objects in it, without locks. Another
 * thread that frees an object puts it on the heap's atomic list `remote`. The heap's thread sweeps that list when it
 * next frees an object or runs out of objects. When a thread ends its heap becomes an orphan until a new thread adopts
 * it. A thread that frees an object of an orphan also sweeps the orphan, under the process lock, so that empty slabs go
 * back to the system. */
#include "base/slab.h"
#include "os/clock.h"

enum {
    SLAB = ACO__SLAB,
    STEP = ACO__SLAB_STEP,
    SMALL = ACO__SLAB_SMALL,
    CLASSES = ACO__SLAB_CLASSES,
    FINE = ACO__SLAB_FINE,
    LOG_SMALL = ACO__SLAB_LOG_SMALL,
    SLABS_BEFORE_LARGE_PAGES = 3,
    KEEP_TOUCHED = 64 << 10, /* bytes of an empty, kept slab that stay resident */
    SELDOM_MS = 1000,        /* a slab that is emptied more often keeps all of its pages */
    SLOT_LARGEST = 512, /* bytes */
    SLOTS_AFTER = 16    /* areas of the same size */
};

typedef aco__object_t object_t;
typedef aco__slab_t slab_t;
typedef struct aco__heap heap_t;

static heap_t *orphans; /* under the process lock */
heap_t *aco__heaps;

static unsigned class_of(size_t sz)
{
    if (sz <= SMALL)
        return (unsigned)((sz - 1) / STEP);
    unsigned log = (unsigned)(sizeof(long) * 8 - 1) - (unsigned)__builtin_clzl(sz - 1);
    return SMALL / STEP + ((log - LOG_SMALL) << FINE) + (unsigned)((sz - 1) >> (log - FINE)) - (1U << FINE);
}

static size_t size_of_class(unsigned class)
{
    class %= CLASSES;
    if (class < SMALL / STEP)
        return (class + 1) * STEP;
    class -= SMALL / STEP;
    return (size_t)((class & ((1U << FINE) - 1)) + (1U << FINE) + 1) << ((class >> FINE) + LOG_SMALL - FINE);
}

/* ---- A class's list of slabs with room ---- */

static void list(slab_t *slab)
{
    slab_t **head = &slab->heap->with_room[slab->class];
    slab->next = *head;
    slab->link = head;
    if (slab->next)
        slab->next->link = &slab->next;
    *head = slab;
}

static void unlist(slab_t *slab)
{
    ACO__ASSERT(*slab->link == slab);
    ACO__ASSERT(!slab->next || slab->next->link == &slab->next);
    *slab->link = slab->next;
    if (slab->next)
        slab->next->link = slab->link;
    slab->link = NULL;
}

/* ---- Slabs ---- */

static slab_t *slab_new(heap_t *heap, unsigned class)
{
    slab_t *slab = aco__map_aligned(SLAB);
    if (!slab)
        return NULL;
    /* Counted for each class: otherwise many little-used classes would fill a large page each. */
    if (++heap->slabs[class] > SLABS_BEFORE_LARGE_PAGES)
        aco__os_large_pages(slab, SLAB, 1); /* only advice: harmless to a mapping of the user's */
    slab->heap = heap;
    slab->class = class;
    slab->size = (uint32_t)size_of_class(class);
    slab->fresh = ACO__SLAB_FIRST;
    list(slab);
    ACO__UPCALL(region_new, (slab, SLAB));
    if (class >= CLASSES) {
        slab->next_block_slab = heap->block_slabs;
        slab->block_link = &heap->block_slabs;
        if (slab->next_block_slab)
            slab->next_block_slab->block_link = &slab->next_block_slab;
        heap->block_slabs = slab;
    }
    return slab;
}

static size_t slots_room(const slab_t *slab)
{
    size_t bytes = (SLAB - ACO__SLAB_FIRST) / sizeof(aco_t) * slab->slot_size, room = 64 << 10;
    while (room < bytes)
        room *= 2;
    return room;
}

ACO__COLD static void slots_new(slab_t *slab)
{
    ACO__ASSERT(slab->slot_size && slab->slot_size % STEP == 0);
    size_t room = slots_room(slab);
    int saved = errno; /* without slots the call still succeeds */
    char *slots = aco__map_is_ours() ? aco__map_aligned(room) : NULL; /* most of it may never be touched */
    slab->slot_wanted = 0;
    errno = saved;
    if (!slots)
        return;
    if (slab->heap->slabs[slab->class] > SLABS_BEFORE_LARGE_PAGES && room > SLAB)
        aco__os_large_pages(slots, room / 2, 1); /* the other half is not used up */
    ACO__UPCALL(region_new, (slots, room));
    __atomic_store_n(&slab->slots, slots, __ATOMIC_RELEASE);
}

static void slots_free(slab_t *slab)
{
    if (slab->slots) {
        ACO__UPCALL(region_freed, (slab->slots, slots_room(slab)));
        aco__unmap(slab->slots, slots_room(slab));
        slab->slots = NULL;
    }
}

char *aco__slot_wanted(aco_t *co, size_t sz)
{
    slab_t *slab = aco__slab_of(co);
    if (slab->size != sizeof(aco_t) || slab->heap != aco__self()->heap || sz > SLOT_LARGEST)
        return NULL;
    if (!slab->slots) {
        if (slab->slot_size != sz)
            slab->slot_wanted = 0;
        slab->slot_size = (uint32_t)sz;
        if (++slab->slot_wanted == SLOTS_AFTER)
            slots_new(slab);
    }
    return sz <= slab->slot_size ? aco__slot(co) : NULL;
}

/* Whether the slab was last emptied so long ago that its pages will not be wanted soon. Bursts of objects, as those of
 * a server that answers what came at once, empty it after each: pages that went back would fault in each time. */
static int was_emptied_seldom(slab_t *slab)
{
#ifdef ACO_CONFIG_LIBACO_ONLY /* it has no clocks */
    (void)slab;
    return 1;
#else
    uint32_t now = aco__os_milliseconds(), before = slab->emptied;
    slab->emptied = now;
    return now - before >= SELDOM_MS;
#endif
}

/* Frees an empty slab unless it is its class's only slab with room. That one stays, and only the memory beyond its
 * first pages goes back to the system. So creating and destroying one object in turn makes no system call. */
static void slab_emptied(slab_t *slab)
{
    heap_t *heap = slab->heap;
    slots_free(slab);
    if (heap->with_room[slab->class] != slab || slab->next) {
        unlist(slab);
        ACO__ASSERT(heap->slabs[slab->class] > 1 && heap->with_room[slab->class]);
        heap->slabs[slab->class]--;
        if (slab->block_link) {
            ACO__ASSERT(*slab->block_link == slab);
            ACO__ASSERT(!slab->next_block_slab || slab->next_block_slab->block_link == &slab->next_block_slab);
            *slab->block_link = slab->next_block_slab;
            if (slab->next_block_slab)
                slab->next_block_slab->block_link = slab->block_link;
        }
        ACO__UPCALL(region_freed, (slab, SLAB));
        aco__unmap(slab, SLAB);
        return;
    }
    if (slab->fresh > KEEP_TOUCHED && aco__map_is_ours() && was_emptied_seldom(slab))
        aco__os_discard((char *)slab + KEEP_TOUCHED, SLAB - KEEP_TOUCHED, 0);
    slab->free = NULL;
    slab->fresh = ACO__SLAB_FIRST;
}

#ifdef ACO__INVARIANTS
/* Whether an object that was handed out begins here. */
static int is_object(const slab_t *slab, const object_t *object)
{
    uintptr_t at = (uintptr_t)object - (uintptr_t)slab;
    return at >= ACO__SLAB_FIRST && at < slab->fresh && (at - ACO__SLAB_FIRST) % slab->size == 0;
}
#endif

static void object_free(slab_t *slab, object_t *object)
{
    ACO__ASSERT(is_object(slab, object));
    ACO__ASSERT(slab->used && object != slab->free); /* freed twice */
    object->next = slab->free;
    slab->free = object;
    if (!slab->link)
        list(slab);
    if (--slab->used == 0)
        slab_emptied(slab);
}

/* Frees the objects that other threads put on the heap's list. */
static void sweep(heap_t *heap)
{
    ACO__ASSERT(aco__holds(&aco__process_lock) || heap == aco__self()->heap);
    object_t *object = __atomic_exchange_n(&heap->remote, NULL, __ATOMIC_SEQ_CST);
    while (object) {
        object_t *next = object->next;
        ACO__ASSERT(aco__slab_of(object)->heap == heap);
        object_free(aco__slab_of(object), object);
        object = next;
    }
}

/* ---- Heaps ---- */

/* A heap's mapping:
 *
 *   | guard page | signal stack | heap_t |
 *
 * The guard is a mapping of its own, because gdb's gcore leaves out what is behind a guard in the page tables. Where
 * there are no signal stacks there are only the last. */
static size_t below_heap(void)
{
    return ACO__SIGNAL_STACK ? aco__os_page_size() + ACO__SIGNAL_STACK : 0;
}

static heap_t *heap_map(void)
{
    size_t page = aco__os_page_size();
    char *map = aco__map(below_heap() + aco__round_up(sizeof(heap_t), page));
    if (map && below_heap())
        (void)aco__os_guard_mapping(map, page); /* handlers are not deep: a failure is no error */
    return map ? (heap_t *)(void *)(map + below_heap()) : NULL;
}

static void *signal_stack_of(heap_t *heap)
{
    return (char *)heap - ACO__SIGNAL_STACK;
}

static void heap_thread_ends(aco__thread_t *self)
{
    heap_t *heap = self->heap;
    if (ACO__SIGNAL_STACK > 0 && heap->signal_stack == 1)
        heap->signal_stack = aco__os_signal_stack_end(signal_stack_of(heap)) ? 0 : -1;
    ACO__ASSERT(heap->thread == self && !heap->orphan);
    self->heap = NULL;
    __atomic_store_n(&heap->thread, aco__nobody, __ATOMIC_RELAXED);
    aco__lock();
    heap->next_orphan = orphans;
    orphans = heap;
    __atomic_store_n(&heap->orphan, 1, __ATOMIC_SEQ_CST);
    sweep(heap); /* frees what came before that store; later ones are swept by the thread that frees them */
    aco__unlock();
}

#ifdef _WIN32
/* Frees the heaps when the library is unloaded: all of them are orphans. Slabs with objects in use stay. */
static void heaps_end(void)
{
    while (aco__heaps) {
        heap_t *heap = aco__heaps;
        aco__heaps = heap->next;
        for (unsigned class = 0; class < 2 * CLASSES; class++)
            for (slab_t *slab = heap->with_room[class], *next; slab; slab = next) {
                next = slab->next;
                if (!slab->used)
                    aco__unmap(slab, SLAB);
            }
        aco__unmap(heap, aco__round_up(sizeof *heap, aco__os_page_size()));
    }
}
#endif

ACO__AT_LOAD static void register_heap_exits(void)
{
    aco__thread_exits.heap = heap_thread_ends;
#ifdef _WIN32
    aco__thread_exits.heaps_end = heaps_end;
#endif
}

static heap_t *heap_adopt(void)
{
    aco__lock();
    heap_t *heap = orphans;
    if (heap) {
        ACO__ASSERT(heap->orphan && heap->thread == aco__nobody);
        orphans = heap->next_orphan;
        __atomic_store_n(&heap->orphan, 0, __ATOMIC_SEQ_CST);
    }
    aco__unlock();
    return heap;
}

static heap_t *heap_of_thread(void)
{
    aco__thread_t *self = aco__self();
    if (aco_likely(self->heap != NULL))
        return self->heap;
    heap_t *heap = heap_adopt();
    if (!heap) {
        heap = heap_map();
        if (!heap)
            return NULL;
        heap->next = __atomic_load_n(&aco__heaps, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&aco__heaps, &heap->next, heap, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            ;
    }
    if (!self->unwind_parent)
        self->unwind_parent = &self->resumer;
    __atomic_store_n(&heap->thread, self, __ATOMIC_RELAXED);
    self->heap = heap;
    aco__thread_will_end();
    return heap;
}

int aco__signal_stack(void)
{
    heap_t *heap = heap_of_thread();
    int taken = -1;
    if (heap && heap->signal_stack < 0)
        errno = ENOMEM;
    else if (heap)
        taken = aco__os_signal_stack(signal_stack_of(heap), ACO__SIGNAL_STACK);
    if (taken == 1)
        heap->signal_stack = 1;
    return taken < 0 ? -1 : 0;
}

static slab_t *slab_with_room(heap_t *heap, unsigned class)
{
    if (!heap->with_room[class])
        sweep(heap);
    return heap->with_room[class] ? heap->with_room[class] : slab_new(heap, class);
}

/* ---- What the library calls ---- */

static void *object_new(size_t *sz, unsigned class)
{
    heap_t *heap = heap_of_thread();
    slab_t *slab = heap ? slab_with_room(heap, class) : NULL;
    if (!slab) {
        errno = ENOMEM;
        return NULL;
    }
    ACO__ASSERT(size_of_class(class) >= *sz);
    ACO__ASSERT(class % CLASSES == 0 || size_of_class(class - 1) < *sz); /* the smallest that fits */
    ACO__ASSERT(slab->heap == heap && slab->class == class && slab->link == &heap->with_room[class]); /* the first */
    void *p = slab->free;
    if (p) {
        ACO__ASSERT(is_object(slab, p)); /* nobody wrote into it after it was freed */
        slab->free = slab->free->next;
    } else {
        ACO__ASSERT(slab->fresh + slab->size <= SLAB);
        p = (char *)slab + slab->fresh;
        slab->fresh += slab->size;
    }
    slab->used++;
    if (!slab->free && slab->fresh + slab->size > SLAB)
        unlist(slab);
    *sz = slab->size;
    return p;
}

void *aco__words_new(size_t *sz)
{
    return *sz > ACO__SLAB_LARGEST ? aco__allocate(*sz) : object_new(sz, class_of(*sz ? *sz : 1));
}

void *aco__memory_new(size_t *sz)
{
    if (*sz <= SMALL)
        *sz = aco__round_up(*sz ? *sz : 1, 16);
    return aco__words_new(sz);
}

void *aco__block_memory_new(size_t *sz)
{
    return object_new(sz, CLASSES + class_of(*sz));
}

/* Every object below `fresh` is a control block, in use or destroyed. */
int aco__blocks_some(int (*visit)(aco_t *co, void *arg), void *arg, size_t *from, size_t most)
{
    heap_t *heap = aco__self()->heap;
    size_t skip = *from, done = 0;
    if (!heap)
        return 0;
    for (slab_t *slab = heap->block_slabs; slab; slab = slab->next_block_slab) {
        size_t objects = (slab->fresh - ACO__SLAB_FIRST) / slab->size, i = skip < objects ? skip : objects;
        ACO__ASSERT(slab->heap == heap && slab->class >= CLASSES);
        skip -= i;
        for (; i < objects; i++) {
            int result;
            if (done++ == most) {
                *from += most;
                return 0;
            }
            result = visit((aco_t *)(void *)((char *)slab + ACO__SLAB_FIRST + i * slab->size), arg);
            if (result)
                return result;
        }
    }
    *from = 0;
    return 0;
}

int aco__blocks_each(int (*visit)(aco_t *co, void *arg), void *arg)
{
    size_t from = 0;
    return aco__blocks_some(visit, arg, &from, SIZE_MAX);
}

size_t aco__memory_size(const void *p)
{
    return aco__slab_of(p)->size;
}

static void remote_free(heap_t *heap, object_t *object)
{
    object_t *next = __atomic_load_n(&heap->remote, __ATOMIC_RELAXED);
    do
        object->next = next;
    while (!__atomic_compare_exchange_n(&heap->remote, &next, object, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    if (__atomic_load_n(&heap->orphan, __ATOMIC_SEQ_CST)) {
        aco__lock();
        if (__atomic_load_n(&heap->orphan, __ATOMIC_RELAXED))
            sweep(heap);
        aco__unlock();
    }
}

void aco__memory_free(void *p, size_t sz)
{
    if (sz > ACO__SLAB_LARGEST) {
        aco__release(p, sz);
        return;
    }
    heap_t *heap = aco__slab_of(p)->heap;
    if (heap != aco__self()->heap) {
        remote_free(heap, p);
        return;
    }
    object_free(aco__slab_of(p), p);
    if (aco_unlikely(__atomic_load_n(&heap->remote, __ATOMIC_RELAXED) != NULL))
        sweep(heap);
}
