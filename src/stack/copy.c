/* Stacks: how one is laid out, and the copying between share stacks and save areas.
 *
 *   map                                         head page                          map + map_sz
 *   | guard page | ptr ... sz bytes ... | colour: 16 to 58 lines |top| record, 5 lines |
 *   or, without a guard page,
 *   | canary line | ptr ...
 *
 * The record of a private stack is followed by its coroutine's extra record.
 *
 * The stack's first return address stands at `aco__top`, just below a line boundary, and is the same for every coroutine:
 * it is written once and never copied. Coroutines' frames grow down from it. The colour differs from stack to stack, so that
 * the tops of many stacks do not fall into the same cache sets; it leaves at least 1 KiB of the head page to the outermost
 * frames, so that a coroutine a call or two deep takes one page. ACO_CONFIG_NO_COLOUR (CMake: ACORN_STACK_COLOURS=OFF) gives all
 * the same one, to measure what colours gain. */
#include "os/os.h"
#include "hooks/instrument.h"

#include <errno.h>
#include <string.h>

enum { COLOURS = 43, FIRST_COLOUR = 16, RECORD = 5 * ACO__CACHE_LINE, MIN_SIZE = 4096, DEFAULT_SIZE = 2 << 20 };
_Static_assert(sizeof(aco_share_stack_t) + sizeof(aco__cold_t) <= RECORD, "the records fit their place");
_Static_assert((FIRST_COLOUR + COLOURS) * ACO__CACHE_LINE + RECORD == ACO__HEAD, "colour and records are the head page");

int aco__has_shadow_stack(void)
{
#if defined(__x86_64__)
    uintptr_t pointer = 0;
    __asm__ volatile("rdsspq %0" : "+r"(pointer)); /* does nothing where there is none */
    return pointer != 0;
#elif defined(__aarch64__)
    register uintptr_t feature __asm__("x16") = 1;
    __asm__ volatile("hint #40" : "+r"(feature)); /* chkfeat x16: clears the bit of a Guarded Control Stack that is on */
    return feature == 0;
#else
    return 0;
#endif
}

/* The end of a stack, for unwinders. Some read at once all that a frame saved: on s390x that is at the stack pointer. */
#ifdef __s390x__
static const uint64_t nothing_saved[20];
const aco__context_t aco__no_context = {.sp = (void *)(uintptr_t)nothing_saved};
#else
const aco__context_t aco__no_context;
#endif
static aco__thread_t nobody = {.unwind_parent = &aco__no_context};
aco__thread_t *const aco__nobody = &nobody;

static const uint64_t canary = UINT64_C(0x6b63617473206f63); /* in the 64 bytes below a stack without a guard page */

aco_share_stack_t *aco__stack_lay_out(char *map, size_t below, size_t sz, unsigned number, int guarded)
{
#ifdef ACO_CONFIG_NO_COLOUR
    size_t colour = FIRST_COLOUR + COLOURS - 1;
    (void)number;
#else
    size_t colour = FIRST_COLOUR + number % COLOURS * 37u % COLOURS; /* no common factor: all come, neighbours far apart */
#endif
    char *top = map + below + sz + colour * ACO__CACHE_LINE;
    aco_share_stack_t *stack = (aco_share_stack_t *)(void *)top;
    memset(top, 0, RECORD);
    stack->ptr = map + below;
    stack->sz = sz;
    stack->guard_page_enabled = (char)guarded;
    stack->aco__map = map;
    stack->aco__top = top - ACO__ENTRY_BELOW_TOP;
    stack->aco__owner_thread = &aco__nobody;
    stack->aco__resumer_context = &aco__no_context;
    ((const void **)stack->aco__top)[ACO__RETURN_WORD] = aco__returned;
    if (!guarded)
        for (int i = ACO__CACHE_LINE; i; i -= 8)
            memcpy((char *)stack->ptr - i, &canary, sizeof canary);
    aco__instrument_stack_new(stack);
    return stack;
}

/* NULL and errno on failure. */
static aco_share_stack_t *stack_new(size_t sz, int guarded)
{
    static unsigned made;
    size_t page = aco__os_page_size(), below = guarded ? page : ACO__CACHE_LINE, map_sz;
    aco_share_stack_t *stack;
    char *map;
    if (sz > SIZE_MAX / 2) {
        errno = ENOMEM;
        return NULL;
    }
    sz = sz == 0 ? DEFAULT_SIZE : sz < MIN_SIZE ? MIN_SIZE : sz;
    sz = aco__round_up(sz, guarded ? page : ACO__CACHE_LINE);
    map_sz = aco__round_up(below + sz + ACO__HEAD, page);
    map = aco__map(map_sz);
    if (!map)
        return NULL;
    if (guarded && aco__os_guard(map, page) != 0) {
        aco__unmap(map, map_sz);
        return NULL;
    }
    stack = aco__stack_lay_out(map, below, sz, __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED), guarded);
    stack->aco__map_sz = map_sz;
    return stack;
}

aco_share_stack_t *aco_share_stack_new2(size_t sz, char guard_page_enabled)
{
    aco_share_stack_t *stack = stack_new(sz, guard_page_enabled != 0);
    if (!stack)
        aco__die_of_memory("aco_share_stack_new2", sz ? sz : DEFAULT_SIZE);
    return stack;
}

aco_share_stack_t *aco__stack_new_private(aco_pool_t *pool, size_t sz, int guarded)
{
    aco_share_stack_t *stack;
    sz = sz ? sz : ACO__PRIVATE_SIZE;
    if (guarded && aco__pool_has(sz)) {
        stack = aco__pool_acquire(pool, sz);
    } else {
        stack = stack_new(sz, guarded);
        if (stack)
            stack->aco__cacheable = guarded && !pool && sz == ACO__PRIVATE_SIZE;
    }
    if (stack)
        stack->aco__private = 1;
    return stack;
}

aco_share_stack_t *aco__stack_for_one(aco_share_stack_t *stack)
{
    static int said; /* atomic */
    aco_share_stack_t *own;
    if (aco_likely(!aco__share_stacks_are_private()))
        return stack;
    own = aco__stack_new_private(NULL, stack->sz, stack->guard_page_enabled);
    if (!own)
        return NULL;
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        aco__warn("share stacks", NULL,
                  "under AddressSanitizer each coroutine on one has a stack of its own, of the same size (said once)");
    own->aco__private = own->aco__cacheable = 0;
    own->aco__instead_of = stack;
    return own;
}

void aco__stack_free(aco_share_stack_t *stack)
{
    aco__instrument_stack_freed(stack);
    if (stack->aco__region) {
        aco__pool_release(stack);
        return;
    }
    aco__unmap_guarded(stack->aco__map, stack->aco__map_sz, stack->guard_page_enabled ? aco__os_page_size() : 0);
}

aco_share_stack_t *aco_share_stack_new(size_t sz)
{
    return aco_share_stack_new2(sz, 1);
}

ACO__COLD static void check_canary(const char *call, const aco_share_stack_t *stack)
{
    for (int i = 1; i <= ACO__CACHE_LINE / 8; i++)
        if (memcmp((char *)stack->ptr - 8 * i, &canary, sizeof canary) != 0)
            aco__die(call, stack->owner, "its %s stack of %zu bytes (%p to %p, no guard page) has overflowed", stack->aco__private ? "private" : "share", stack->sz,
                     stack->ptr, stack->aco__top);
}

void aco__stack_check_overflow(const char *call, const aco_share_stack_t *stack)
{
    if (!stack->guard_page_enabled)
        check_canary(call, stack);
}

/* One coroutine less that was started here. A stack without any is free to serve another thread. */
static void one_less(aco_share_stack_t *stack)
{
    stack = aco__stack_given(stack);
    if (--stack->aco__use.started == 0)
        stack->aco__thread = NULL;
}

/* Takes a started coroutine off its stack and frees it. The stack's own thread. */
static void drop(aco_t *co)
{
    if (co->share_stack->owner == co)
        co->share_stack->owner = NULL;
    one_less(co->share_stack);
    aco__block_free(co);
}

/* Frees the coroutines that other threads destroyed. */
static void free_left(aco_share_stack_t *stack)
{
    aco_t *co = __atomic_exchange_n(&stack->aco__link.destroyed, NULL, __ATOMIC_ACQUIRE);
    while (co) {
        aco_t *next = co->aco__self.base;
        drop(co);
        co = next;
    }
}

void aco_share_stack_destroy(aco_share_stack_t *stack)
{
    if (!stack)
        aco__die("aco_share_stack_destroy", NULL, "the share stack is NULL");
    if (stack->aco__private)
        aco__die("aco_share_stack_destroy", stack->owner, "has this stack to itself: it goes with aco_destroy()");
    free_left(stack);
    aco__stack_check_overflow("aco_share_stack_destroy", stack);
    if (stack->owner)
        aco__die("aco_share_stack_destroy", stack->owner, "has not ended and its frames are on the share stack %p", (void *)stack);
    if (stack->aco__use.started)
        aco__die("aco_share_stack_destroy", NULL, "%zu started coroutine(s) of the share stack %p have neither ended nor been destroyed",
                 stack->aco__use.started, (void *)stack);
    aco__stack_free(stack);
}

void aco__stack_release(aco_t *co)
{
    aco__stack_check_overflow("aco_exit", co->share_stack);
    co->share_stack->owner = NULL;
    one_less(co->share_stack);
}

void aco__stack_forget(aco_t *co)
{
    aco_share_stack_t *stack = aco__stack_given(co->share_stack);
    if (stack->aco__thread == aco__self()) {
        drop(co);
        return;
    }
    /* The stack's thread may be reading this block right now, as its stack's owner: leave it to that thread. */
    aco__set_status(co, ACO__DESTROYED);
    aco_t *next = __atomic_load_n(&stack->aco__link.destroyed, __ATOMIC_RELAXED);
    do
        co->aco__self.base = next;
    while (!__atomic_compare_exchange_n(&stack->aco__link.destroyed, &next, co, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* Copies a stack's live bytes: few, most often, and a multiple of the word size but for hand-written frames. A stack pointer is
 * 16-byte aligned where a compiler switches, so chunks of 16 from there up neither cross a cache line of the stack nor overlap:
 * what is saved soon after it was restored comes out of the store buffer, which it does not with libc's memcpy (measured:
 * bench/lab/copy.c). */
enum { CHUNK = 16, SHORT_COPY = 1020 };

static inline int is_short(size_t sz)
{
    return (sz & ~(size_t)SHORT_COPY) == 0; /* up to that, and a multiple of 4 */
}

static inline void copy_short(void *to, const void *from, size_t sz)
{
    char *t = to;
    const char *f = from, *end = f + (sz & ~(size_t)(4 * CHUNK - 1));
    for (; f != end; f += 4 * CHUNK, t += 4 * CHUNK) {
        __builtin_memcpy(t, f, CHUNK);
        __builtin_memcpy(t + CHUNK, f + CHUNK, CHUNK);
        __builtin_memcpy(t + 2 * CHUNK, f + 2 * CHUNK, CHUNK);
        __builtin_memcpy(t + 3 * CHUNK, f + 3 * CHUNK, CHUNK);
    }
    if (sz & 2 * CHUNK) {
        __builtin_memcpy(t, f, CHUNK);
        __builtin_memcpy(t + CHUNK, f + CHUNK, CHUNK);
        t += 2 * CHUNK, f += 2 * CHUNK;
    }
    if (sz & CHUNK)
        __builtin_memcpy(t, f, CHUNK), t += CHUNK, f += CHUNK;
    if (sz & 8)
        __builtin_memcpy(t, f, 8), t += 8, f += 8;
    if (sz & 4)
        __builtin_memcpy(t, f, 4);
}

static void copy(void *to, const void *from, size_t sz)
{
    if (is_short(sz))
        copy_short(to, from, sz);
    else
        memcpy(to, from, sz);
}

/* An area that is not the one behind the block leaves that one free for these. */
typedef struct area_statistic {
    uint32_t reserved; /* bytes that were asked for: it does not become smaller */
    uint32_t recent;   /* the most bytes saved of late: decays */
} area_statistic_t;
_Static_assert(sizeof(area_statistic_t) == ACO__AREA_STATISTIC, "core.c leaves room for it");

static area_statistic_t *statistic(aco_t *co)
{
    return (area_statistic_t *)(void *)(co + 1);
}

static void begin_statistic(aco_t *co, size_t reserved)
{
    statistic(co)->reserved = reserved > UINT32_MAX ? UINT32_MAX : (uint32_t)reserved;
    statistic(co)->recent = 0;
}

/* Bytes behind the area: the pointer to an extra record. */
static size_t bytes_behind(const aco_t *co)
{
    return aco__has(co, ACO__HAS_COLD) ? sizeof(void *) : 0;
}

/* Moves the area, with what is behind it, to the `room` bytes at `p`. */
static void area_move(aco_t *co, void *p, size_t room)
{
    aco_save_stack_t *save = &co->save_stack;
    size_t behind = bytes_behind(co);
    copy(p, save->ptr, save->valid_sz);
    memcpy((char *)p + room - behind, (char *)save->ptr + save->sz, behind);
    if (aco__area_is_inside(co))
        begin_statistic(co, 0); /* where the area was */
    else
        aco__memory_free(save->ptr, save->sz + behind);
    save->ptr = p;
    save->sz = room - behind;
}

/* The same to new memory of at least `room` bytes. 0, or -1 and errno. */
static int area_exchange(aco_t *co, size_t room)
{
    void *p = aco__memory_new(&room);
    if (!p)
        return -1;
    area_move(co, p, room);
    return 0;
}

/* A save area of at least `sz` bytes, instead of one that holds nothing. The first growth fits exactly, later ones leave room: a
 * coroutine that grew twice grows again. 0, or -1 and errno. */
static int grow(aco_t *co, size_t sz)
{
    size_t more = co->save_stack.sz + co->save_stack.sz / 2, room = aco__area_is_inside(co) || more < sz ? sz : more;
    return area_exchange(co, aco__round_up(room, sizeof(void *)) + bytes_behind(co));
}

/* An area twice as large as what was saved of late is exchanged for a smaller one; for that behind the block as soon as it is
 * large enough. Looked at once in so many saves; without memory it stays. */
enum { SAVES_PER_LOOK = 64 };
static void shrink(aco_t *co)
{
    const area_statistic_t *s = statistic(co);
    size_t behind = bytes_behind(co), inside = (aco__memory_size(co) - sizeof *co) & ~(sizeof(void *) - 1);
    size_t wanted = aco__round_up(s->recent > s->reserved ? s->recent : s->reserved, sizeof(void *)) + behind;
    if (wanted <= inside)
        area_move(co, co + 1, inside);
    else if (wanted <= (co->save_stack.sz + behind) / 2)
        area_exchange(co, wanted);
}

static void look_at_area(aco_t *co)
{
    area_statistic_t *s = statistic(co);
    uint32_t sz = (uint32_t)co->save_stack.valid_sz;
    if (co->save_stack.sz > UINT32_MAX) /* too large for the statistic: it stays */
        return;
    if (s->recent < sz)
        s->recent = sz;
    else if (co->save_stack.ct_save % SAVES_PER_LOOK == 0) {
        s->recent -= (s->recent - sz) / 4;
        shrink(co);
    }
}

void aco__area_reserved(aco_t *co)
{
    begin_statistic(co, co->save_stack.sz);
}

int aco__save_area_reserve(aco_t *co)
{
    aco_save_stack_t *save = &co->save_stack;
    if (save->sz < save->valid_sz + sizeof(void *) && area_exchange(co, save->valid_sz + sizeof(void *)) != 0)
        return -1;
    save->sz -= sizeof(void *);
    return 0;
}

/* The bookkeeping of a save and of a restore. */
static inline void saved(aco_t *co, size_t sz)
{
    co->save_stack.valid_sz = sz;
    co->save_stack.ct_save += sz != 0;
    if (co->save_stack.max_cpsz < sz)
        co->save_stack.max_cpsz = sz;
    aco__set_status(co, ACO__SAVED);
}

static inline void restored(aco_t *co, size_t sz)
{
    co->save_stack.valid_sz = 0;
    co->save_stack.ct_restore += sz != 0;
    aco__set_status(co, ACO__SUSPENDED);
}

static inline size_t live_bytes(const aco_share_stack_t *stack, const aco_t *owner)
{
    return (size_t)((uintptr_t)stack->aco__top - (uintptr_t)owner->aco__self.sp);
}

/* One of the coroutines that wait was resumed by `co`, whose frames are saved. */
static void unlink_from(const aco_t *co, const aco__thread_t *self)
{
    const aco_t *waiting = self->resuming;
    while (waiting && waiting->share_stack && aco__status(waiting) != ACO__RESUMING_SAVED) {
        const aco__context_t *outer = waiting->share_stack->aco__resumer_context;
        if (outer == &co->aco__self)
            waiting->share_stack->aco__resumer_context = &aco__no_context;
        if (outer == &co->aco__self || outer == &aco__no_context || outer == &self->root)
            return;
        waiting = (const aco_t *)outer;
    }
}

/* The owner is suspended, or waits for a coroutine that it resumed. 0, or -1 and errno. */
static int save(aco_share_stack_t *stack, aco_t *co)
{
    aco__thread_t *self = aco__self();
    int waits = aco__status(co) == ACO__RESUMING;
    const char *sp, *top = stack->aco__top;
    size_t sz;
    if (waits && self->resuming == co) /* its context is in the thread record, where from now on `recall` stands for it */
        aco__save_resumer(self);
    sp = co->aco__self.sp;
    sz = live_bytes(stack, co);
    aco__stack_check_overflow("aco_resume", stack);
    if (sz > (size_t)(top - (const char *)stack->ptr))
        aco__die("aco_resume", co, "its stack pointer %p is outside its share stack (%p to %p): it yielded or waits in a generator, or has overflowed", (const void *)sp, stack->ptr, (const void *)top);
    if (waits && !aco__scratch())
        return -1;
    if (sz > co->save_stack.sz && grow(co, sz) != 0)
        return -1;
    copy(co->save_stack.ptr, sp, sz);
    saved(co, sz);
    if (!aco__area_is_inside(co))
        look_at_area(co);
    if (waits) {
        stack->aco__resumer_context = &aco__no_context; /* its own, and others will run here */
        aco__set_status(co, ACO__RESUMING_SAVED);
        if (self->resuming == co)
            aco__restore_resumer(self, co);
        else
            unlink_from(co, self);
    }
    return 0;
}

static __attribute__((noinline)) int take(aco_t *co, int fatal, const char *call)
{
    aco_share_stack_t *stack = co->share_stack, *given = aco__stack_given(stack);
    aco__thread_t *self = aco__self();
    int waits = aco__status(co) == ACO__RESUMING_SAVED, starts = aco__status(co) == ACO__READY;
    if (given->aco__thread != self) {
        if (given->aco__thread) {
            aco__fail(fatal, EPERM, call, co, "its share stack %p belongs to another thread", (void *)given);
            return 0;
        }
        given->aco__thread = self;
    }
    if (starts) {
        given->aco__use.started++; /* before free_left(), which gives up a stack without any */
        aco__begins_here(stack, self);
    }
    free_left(given);
    if (stack->owner && save(stack, stack->owner) != 0) {
        if (starts)
            one_less(stack);
        aco__fail_memory(fatal, call, live_bytes(stack, stack->owner));
        return 0;
    }
    stack->owner = co;
    if (aco_unlikely(aco__has(co, ACO__INSTRUMENTED)))
        aco__instrument_frames_restored(co);
    copy(co->aco__self.sp, co->save_stack.ptr, co->save_stack.valid_sz);
    restored(co, co->save_stack.valid_sz);
    if (waits)
        aco__set_status(co, ACO__RESUMING);
    return 1;
}

/* take(), its everyday case in a function without calls: two started coroutines with few live bytes on a guarded stack of
 * this thread, of which the one that comes is not observed. A stack pointer that has left its stack is far from the top, and not
 * short. */
int aco__stack_restore(aco_t *co, int fatal, const char *call)
{
    aco_share_stack_t *stack = co->share_stack;
    aco_t *owner = stack->owner;
    size_t in = co->save_stack.valid_sz, out;
    _Static_assert((int)SHORT_COPY < (int)MIN_SIZE, "what is short is on the stack");
    if (aco_unlikely(!owner || (co->aco__state & ACO__FAST_MASK) != ACO__SAVED || aco__status(owner) != ACO__SUSPENDED || stack->aco__thread != aco__self() || !stack->guard_page_enabled ||
                     __atomic_load_n(&stack->aco__link.destroyed, __ATOMIC_RELAXED)))
        return take(co, fatal, call);
    out = live_bytes(stack, owner);
    if (aco_unlikely(!is_short(out | in) || out > owner->save_stack.sz || owner->save_stack.ct_save % SAVES_PER_LOOK == SAVES_PER_LOOK - 1))
        return take(co, fatal, call);
    copy_short(owner->save_stack.ptr, owner->aco__self.sp, out);
    saved(owner, out);
    stack->owner = co;
    copy_short(co->aco__self.sp, co->save_stack.ptr, in);
    restored(co, in);
    return 1;
}
