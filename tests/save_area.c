/* Save areas (include/aco.h, aco_create() and aco_save_stack_t): they grow as needed and shrink when less was saved of
 * late. No coroutine notices: checked are contents at every resume, the statistics, and what stands behind the area.
 * Areas without a given size fit from the first save on. Without memory the area stays. Also the block of a coroutine
 * that needs none.
 *
 * save_area [seed]; ACORN_SEED replaces it. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "child.h"
#include "map_aligned.h"
#include "random.h"
#include "fails.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* As in src/: not promised, but where these tests have to look. */
enum { MOST_INSIDE = 2048, SAVES_PER_LOOK = 64, SLOT_LARGEST = 512 };
int aco__stack_save(aco_share_stack_t *stack);
int aco__stack_restore(aco_t *co, int fatal, const char *call);

static size_t live_bytes(const aco_t *co)
{
    return (size_t)((uintptr_t)co->share_stack->aco__top - (uintptr_t)co->aco__self.sp);
}

static int is_inside(const aco_t *co)
{
    return co->save_stack.ptr == (const void *)(co + 1);
}

/* ---- A coroutine that holds as many bytes as it is told to ---- */

typedef struct holder {
    aco_t *co;
    size_t asked;     /* for its save area */
    unsigned size;    /* to hold from the next resume on */
    unsigned number;  /* of this resume */
    unsigned wrong;
    aco_t *partner;   /* NULL, or one on the same stack that it resumes now and then */
    /* the model */
    size_t saves, restores, most;
    int slot;         /* its slot is the holder's address, and it has a name */
    unsigned kind, left, at; /* of the present phase */
} holder_t;

static __attribute__((noinline)) void hold(holder_t *holder)
{
    unsigned words = holder->size / 4, number = holder->number * 2654435761u;
    volatile uint32_t *p = __builtin_alloca(4 * words + 4);
    uint32_t wrong = 0;
    for (unsigned i = 0; i < words; i++)
        p[i] = number + i;
    if (holder->partner && holder->number % 3 == 0)
        aco_resume(holder->partner);
    for (unsigned i = 0; i < words; i++)
        wrong |= p[i] ^ (number + i);
    aco_yield();
    for (unsigned i = 0; i < words; i++)
        wrong |= p[i] ^ (number + i);
    holder->wrong += wrong != 0;
}

static void holds(void)
{
    holder_t *holder = aco_get_arg();
    for (;;)
        hold(holder);
}

/* Holds a little, and now and then much. */
static void is_partner(void)
{
    holder_t holder = {0};
    for (unsigned i = 0;; i++) {
        holder.size = i % 50 == 7 ? 9000 : 40;
        holder.number = i;
        hold(&holder);
        *(unsigned *)aco_get_arg() += holder.wrong;
    }
}

/* ---- Random phases ---- */

enum { HOLDERS = 18, MOST_HELD = 20000 };

static const size_t reserves[] = {0, 1, 8, 9, 200, 1000, MOST_INSIDE, MOST_INSIDE + 1, 5000, 16384, 16385, 30000};

static unsigned choose_size(holder_t *h, random_t *r)
{
    enum { TINY, SHORTS, INSIDE, SLABS, ANY, UP, DOWN, SAME, KINDS };
    if (h->left == 0) {
        h->kind = below(r, KINDS);
        h->left = 1 + below(r, below(r, 2) ? 500 : 20);
        h->at = below(r, MOST_HELD);
    }
    h->left--;
    switch (h->kind) {
    case TINY:
        return below(r, 300);
    case SHORTS:
        return 650 + below(r, 450);
    case INSIDE:
        return 1650 + below(r, 550);
    case SLABS:
        return 15900 + below(r, 600);
    case ANY:
        return below(r, MOST_HELD);
    case UP:
        return h->at = (h->at + 16) % MOST_HELD;
    case DOWN:
        return h->at = (h->at + MOST_HELD - 16) % MOST_HELD;
    default:
        return h->at / 20;
    }
}

static void check_area(const holder_t *h)
{
    const aco_save_stack_t *s = &h->co->save_stack;
    size_t pointer = h->slot ? sizeof(void *) : 0;
    CHECK_EQ(s->ct_save, h->saves);
    CHECK_EQ(s->ct_restore, h->restores);
    CHECK_EQ(s->max_cpsz, h->most);
    CHECK(s->valid_sz <= s->sz);
    CHECK(s->sz + pointer >= h->asked);
    CHECK(((uintptr_t)s->ptr | s->sz) % sizeof(void *) == 0);
    CHECK(h->asked <= MOST_INSIDE || !is_inside(h->co));
    CHECK(!is_inside(h->co) || s->sz <= 2 * MOST_INSIDE);
    CHECK(s->sz <= 2 * h->most || s->sz <= 2 * h->asked + 200);
    CHECK(aco_slot(h->co) == (h->slot ? h : NULL));
    CHECK(strcmp(aco_name(h->co), h->slot ? "a name behind the area" : "") == 0);
    CHECK_EQ(h->wrong, 0);
}

/* What a resume of `to` does to who has the stack. */
static void will_be_saved(holder_t *all, const holder_t *to)
{
    const aco_t *owner = to->co->share_stack->owner;
    if (!owner || owner == to->co)
        return;
    for (int i = 0; i < HOLDERS; i++)
        if (all[i].co == owner) {
            size_t live = live_bytes(owner);
            all[i].saves++;
            if (all[i].most < live)
                all[i].most = live;
        }
}

static void resume(holder_t *all, holder_t *h, unsigned size)
{
    size_t valid = h->co->save_stack.valid_sz;
    aco_t *owner = h->co->share_stack->owner;
    h->size = size;
    h->number++;
    will_be_saved(all, h);
    h->restores += valid != 0;
    aco_resume(h->co);
    CHECK_EQ(h->co->save_stack.valid_sz, 0);
    if (owner && owner != h->co)
        CHECK_EQ(owner->save_stack.valid_sz, live_bytes(owner));
}

static void get_extra(holder_t *h)
{
    CHECK_EQ(aco_set_slot(h->co, h), 0);
    CHECK_EQ(aco_set_name(h->co, "a name behind the area"), 0);
    h->slot = 1;
}

/* Promises: contents survive all changes of size; max_cpsz is the most ever copied; ct_save, ct_restore and valid_sz
 * are right; the area is never smaller than asked, and at most twice as large as needed; slot and name survive each
 * change of it. */
static void random_phases(uint64_t seed)
{
    enum { RESUMES = 30000 };
    static holder_t all[HOLDERS];
    random_t random = {seed};
    unsigned wrong = 0;
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stacks[] = {aco_share_stack_new(0), aco_share_stack_new2(64 << 10, 0)};
    aco_t *partners[] = {aco_create(main_co, stacks[0], 0, is_partner, &wrong),
                         aco_create(main_co, stacks[1], 100, is_partner, &wrong)};
    for (unsigned n = 0; n < RESUMES; n++) {
        holder_t *h = &all[below(&random, HOLDERS)];
        if (h->co && below(&random, 2000) == 0) {
            aco_destroy(h->co);
            h->co = NULL;
        }
        if (!h->co) {
            int partnered = below(&random, 6) == 0, which = (int)below(&random, 2);
            memset(h, 0, sizeof *h);
            h->asked = reserves[below(&random, sizeof reserves / sizeof *reserves)];
            h->co = aco_create(main_co, stacks[which], h->asked, holds, h);
            CHECK(h->asked > MOST_INSIDE || is_inside(h->co));
            h->partner = partnered ? partners[which] : NULL;
        }
        resume(all, h, choose_size(h, &random));
        if (h->partner) { /* whoever waits for one on its own stack is copied, too */
            h->saves = h->co->save_stack.ct_save;
            h->restores = h->co->save_stack.ct_restore;
            CHECK(h->co->save_stack.max_cpsz >= h->most);
            h->most = h->co->save_stack.max_cpsz;
        }
        check_area(h);
        h = &all[below(&random, HOLDERS)];
        if (h->co && !h->slot && below(&random, 200) == 0)
            get_extra(h);
        if (h->co)
            check_area(h);
    }
    for (int i = 0; i < HOLDERS; i++)
        if (all[i].co)
            aco_destroy(all[i].co);
    for (int i = 0; i < 2; i++) {
        aco_destroy(partners[i]);
        aco_share_stack_destroy(stacks[i]);
    }
    CHECK_EQ(wrong, 0);
    aco_destroy(main_co);
}

/* ---- Each boundary ---- */

static aco_t *main_co;

static void fill_pause(void)
{
    for (;;)
        aco_yield();
}

/* `n` saves of `size` bytes and what the frame adds. */
static void save_so_often(holder_t *h, aco_t *other, unsigned n, unsigned size)
{
    h->size = size;
    for (unsigned i = 0; i < n; i++) {
        size_t before = h->co->save_stack.max_cpsz, live;
        h->number++;
        aco_resume(h->co);
        live = live_bytes(h->co);
        aco_resume(other);
        CHECK_EQ(h->co->save_stack.valid_sz, live);
        CHECK(h->co->save_stack.sz >= live);
        CHECK_EQ(h->co->save_stack.max_cpsz, live > before ? live : before);
        CHECK(h->co->save_stack.sz + (h->slot ? sizeof(void *) : 0) >= h->asked);
    }
    CHECK_EQ(h->wrong, 0);
    if (h->slot)
        CHECK(aco_slot(h->co) == h && strcmp(aco_name(h->co), "a name behind the area") == 0);
}

/* Promise: an area grows at each size, one after the other, and from each comes back to one that fits. */
static void every_size(int extra)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *other = aco_create(main_co, stack, 0, fill_pause, NULL);
    for (unsigned size = 0; size < 20000; size += size >= 2600 && size < 15800 ? 400 : 16) {
        holder_t fresh = {0};
        fresh.co = aco_create(main_co, stack, 0, holds, &fresh);
        if (extra)
            get_extra(&fresh);
        save_so_often(&fresh, other, 2, size);     /* grows at once */
        save_so_often(&fresh, other, 1, size + 16); /* and a little more */
        save_so_often(&fresh, other, 1, 0);
        save_so_often(&fresh, other, 1, 2 * size);
        aco_destroy(fresh.co);
    }
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

/* Promise: each number of bytes is copied whole, also one that is no multiple of 4, as of frames written by hand. Here
 * the bytes below a suspended coroutine's frames stand for such a frame. */
static void each_byte(void)
{
    enum { MOST = 2200 }; /* beyond what is copied by chunks */
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *other = aco_create(main_co, stack, 0, fill_pause, NULL), *co;
    unsigned char *sp, *from, *wanted;
    size_t live, wrong = 0;
    aco_resume(other);
    live = live_bytes(other);
    wanted = malloc(live + MOST);
    co = aco_create(main_co, stack, live + MOST, fill_pause, NULL);
    aco_resume(co);
    sp = co->aco__self.sp;
    CHECK_EQ(live_bytes(co), live);
    for (size_t sz = live; sz < live + MOST; sz++)
        for (int alone = 0; alone < 2; alone++) {
            from = sp - (sz - live);
            for (size_t i = 0; from + i < sp; i++)
                from[i] = (unsigned char)(i * 7 + sz);
            memcpy(wanted, from, sz);
            memset(co->save_stack.ptr, 0x5a, sz);
            co->aco__self.sp = from;
            CHECK(alone ? aco__stack_save(stack) == 0 : aco__stack_restore(other, 1, "save_area"));
            CHECK_EQ(co->save_stack.valid_sz, sz);
            wrong += memcmp(co->save_stack.ptr, wanted, sz) != 0;
            memset(from, 0xee, alone ? sz : sz - live);
            CHECK(aco__stack_restore(co, 1, "save_area"));
            wrong += memcmp(from, wanted, sz) != 0;
        }
    CHECK_EQ(wrong, 0);
    co->aco__self.sp = sp;
    aco_resume(co);
    aco_resume(other);
    free(wanted);
    aco_destroy(co);
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

/* Promises: after one large save, a few hundred small saves halve the area (eight size classes make a doubling). In the
 * end it is at most twice what is saved, or again the one behind the block, and never less than was reserved. With cold
 * data as well: it may be allocated at any time. */
static void shrinks(size_t asked, unsigned much, unsigned little, int extra)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *other = aco_create(main_co, stack, 0, fill_pause, NULL);
    holder_t h = {0};
    size_t large, room, behind;
    h.asked = asked;
    h.co = aco_create(main_co, stack, asked, holds, &h);
    room = h.co->save_stack.sz;
    if (extra == 1)
        get_extra(&h);
    save_so_often(&h, other, 3, much);
    large = h.co->save_stack.sz;
    CHECK(large >= much && h.co->save_stack.max_cpsz >= much);
    if (extra == 2)
        get_extra(&h);
    behind = h.slot ? sizeof(void *) : 0;
    save_so_often(&h, other, 4 * SAVES_PER_LOOK, little);
    CHECK(little > much / 4 || h.co->save_stack.sz <= large / 16 * 9 + 16 ||
          h.co->save_stack.sz <= 2 * (room + behind) + 16);
    save_so_often(&h, other, 40 * SAVES_PER_LOOK, little);
    if (asked <= MOST_INSIDE && live_bytes(h.co) + 16 <= room) {
        CHECK(is_inside(h.co));
        CHECK_EQ(h.co->save_stack.sz + behind, room);
    } else {
        size_t least = live_bytes(h.co) > asked ? live_bytes(h.co) : room;
        CHECK(!is_inside(h.co) || (asked <= MOST_INSIDE && live_bytes(h.co) <= room)); /* it may just fit */
        CHECK(h.co->save_stack.sz <= 2 * least + 32);
    }
    save_so_often(&h, other, 3, much); /* and grows again */
    CHECK(h.co->save_stack.sz >= much);
    save_so_often(&h, other, 40 * SAVES_PER_LOOK, little);
    CHECK(h.co->save_stack.sz < large || large == room || little > much / 2);
    aco_destroy(h.co);
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

static void shrinks_back(void)
{
    for (int extra = 0; extra < 3; extra++) {
        shrinks(0, 5000, 0, extra);
        shrinks(0, 20000, 500, extra);
        shrinks(600, 4000, 8, extra);
        shrinks(900, 300000, 200, extra);
        shrinks(MOST_INSIDE, 20000, 1500, extra);
        shrinks(MOST_INSIDE + 1, 20000, 100, extra);
        shrinks(5000, 40000, 100, extra);
        shrinks(16384, 60000, 100, extra);
        shrinks(17000, 90000, 100, extra);
    }
}

/* Promise: an area stays while most saves need it, whichever of them the library looks at. */
static void stays_in_use(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *other = aco_create(main_co, stack, 0, fill_pause, NULL);
    holder_t h = {0};
    unsigned shrunk = 0;
    h.co = aco_create(main_co, stack, 0, holds, &h);
    save_so_often(&h, other, 3, 5000);
    for (int i = 0; i < 20 * SAVES_PER_LOOK; i++) {
        save_so_often(&h, other, 1, h.co->save_stack.ct_save % SAVES_PER_LOOK == SAVES_PER_LOOK - 1 ? 0 : 5000);
        shrunk += h.co->save_stack.sz < 5000;
    }
    CHECK_EQ(shrunk, 0);
    aco_destroy(h.co);
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

/* Promise: a reserved area is never replaced while it is large enough. */
static void reserved_stays(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *other = aco_create(main_co, stack, 0, fill_pause, NULL);
    for (size_t i = 0; i < sizeof reserves / sizeof *reserves; i++) {
        holder_t h = {0};
        void *area;
        size_t sz;
        h.asked = reserves[i];
        if (reserves[i] && reserves[i] < (SMALL_FRAMES ? 1000 : MOST_INSIDE))
            continue;
        h.co = aco_create(main_co, stack, h.asked, holds, &h);
        area = h.co->save_stack.ptr;
        sz = h.co->save_stack.sz;
        save_so_often(&h, other, 1000, h.asked >= 3000 ? 2000 : 0);
        save_so_often(&h, other, 1000, 0);
        CHECK(h.asked ? h.co->save_stack.ptr == area : 1);
        CHECK(h.asked ? h.co->save_stack.sz == sz : 1);
        aco_destroy(h.co);
    }
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

/* Promise: aco_reset() keeps area and statistics; what was reserved stays reserved then. */
static void yields_then_exits(void)
{
    hold(aco_get_arg());
    aco_exit();
}

static void reset_keeps_the_area(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *other = aco_create(main_co, stack, 0, fill_pause, NULL);
    holder_t h = {0};
    h.asked = 3000;
    h.co = aco_create(main_co, stack, h.asked, yields_then_exits, &h);
    for (unsigned i = 0; i < 2000; i++) {
        aco_save_stack_t before;
        h.size = i == 7 ? 12000 : 16 * (i % 8);
        h.number = i;
        aco_resume(h.co);
        aco_resume(other);
        aco_resume(h.co);
        CHECK(h.co->is_end);
        before = h.co->save_stack;
        aco_reset(h.co, yields_then_exits, &h);
        CHECK(memcmp(&before, &h.co->save_stack, sizeof before) == 0);
        CHECK(before.sz >= h.asked);
    }
    CHECK_EQ(h.wrong, 0);
    CHECK(h.co->save_stack.sz < 12000 && h.co->save_stack.max_cpsz >= 12000);
    aco_destroy(h.co);
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

/* ---- No size given ---- */

enum { HELD = 3000, SLOTS_AFTER = 16 };

typedef struct many {
    aco_t *main_co, *other;
    aco_share_stack_t *stack;
    holder_t all[HELD];
} many_t;

static void many_begin(many_t *m)
{
    memset(m, 0, sizeof *m);
    m->main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    m->stack = aco_share_stack_new(0);
    m->other = aco_create(m->main_co, m->stack, 8, fill_pause, NULL);
}

static void many_end(many_t *m)
{
    for (int i = 0; i < HELD; i++) {
        CHECK_EQ(m->all[i].wrong, 0);
        if (m->all[i].co)
            aco_destroy(m->all[i].co);
    }
    aco_destroy(m->other);
    aco_share_stack_destroy(m->stack);
    aco_destroy(m->main_co);
}

static void many_new(many_t *m, int i, unsigned size)
{
    m->all[i].size = size;
    m->all[i].co = aco_create(m->main_co, m->stack, 0, holds, &m->all[i]);
    CHECK_EQ(m->all[i].co->save_stack.sz, 0);
}

static void many_resume(many_t *m, int i, unsigned size)
{
    m->all[i].size = size;
    m->all[i].number++;
    aco_resume(m->all[i].co);
}

static size_t fitting(const aco_t *co)
{
    return (co->save_stack.max_cpsz + 7) & ~(size_t)7;
}

/* Blocks with nothing behind them, in one row; areas of exactly the saved bytes, in the same row but the first. */
static void check_row(const many_t *m, int how_many)
{
    int moved = 0;
    for (int i = 0; i < how_many; i++) {
        const aco_t *co = m->all[i].co, *next;
        size_t sz = fitting(co);
        CHECK_EQ(co->save_stack.sz, sz);
        if (i + 1 == how_many)
            break;
        next = m->all[i + 1].co;
        CHECK((size_t)((uintptr_t)next - (uintptr_t)co) == sizeof *co);
        if (i >= SLOTS_AFTER && sz <= SLOT_LARGEST) /* frames are larger at -O0 */
            moved += (char *)next->save_stack.ptr - (char *)co->save_stack.ptr != (ptrdiff_t)sz;
    }
    CHECK(moved <= 1); /* an area of before */
}

/* Promise: without a given size, a coroutine takes its block and the bytes saved, no more; whether all are made before
 * the first is resumed or each is resumed before the next is made. */
static void *exact(void *in_turn)
{
    static many_t m;
    many_begin(&m);
    for (int i = 0; i < HELD; i++) {
        many_new(&m, i, 64);
        if (in_turn)
            many_resume(&m, i, 64);
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < HELD; i++)
            many_resume(&m, i, 64);
    aco_resume(m.other);
    check_row(&m, HELD);
    many_end(&m);
    return NULL;
}

/* Promise: this also holds if no two in a row save as much. */
static void *exact_of_many_sizes(void *unused)
{
    static many_t m;
    many_begin(&m);
    for (int i = 0; i < HELD; i++)
        many_new(&m, i, 0);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < HELD; i++)
            many_resume(&m, i, (unsigned)(i % 60 * 16));
    aco_resume(m.other);
    for (int i = 0; i < HELD; i++) {
        size_t sz = m.all[i].co->save_stack.sz;
        CHECK(sz >= m.all[i].co->save_stack.max_cpsz);
        CHECK(sz <= fitting(m.all[i].co) + 8 || sz > 1024);
    }
    many_end(&m);
    return unused;
}

/* Promises: one that outgrows its area in the row and then saves as little as before goes back there; a new coroutine
 * takes its predecessor's place; with cold data too. */
static void *leaves_and_returns(void *unused)
{
    static many_t m;
    random_t random = {5};
    many_begin(&m);
    for (int i = 0; i < HELD; i++)
        many_new(&m, i, 64);
    for (int i = 0; i < HELD; i++)
        many_resume(&m, i, 64);
    aco_resume(m.other);
    for (int i = 0; i < 400; i++) {
        holder_t *h = &m.all[SLOTS_AFTER + below(&random, HELD - SLOTS_AFTER)];
        const void *area = h->co->save_stack.ptr;
        size_t sz = h->co->save_stack.sz;
        unsigned much = 800 + below(&random, 3000);
        if (h->slot == 0 && i % 4 == 0) {
            get_extra(h);
            save_so_often(h, m.other, 1, 64);
        }
        save_so_often(h, m.other, 1, much);
        CHECK(h->co->save_stack.ptr != area);
        save_so_often(h, m.other, 30 * SAVES_PER_LOOK, 0);
        CHECK(h->slot || sz > SLOT_LARGEST || (h->co->save_stack.ptr == area && h->co->save_stack.sz == sz));
        aco_destroy(h->co);
        memset(h, 0, sizeof *h);
        many_new(&m, (int)(h - m.all), 64);
        save_so_often(h, m.other, 2, 64);
        CHECK_EQ(h->co->save_stack.sz, sz);
    }
    many_end(&m);
    return unused;
}

/* Promise: coroutines that one thread made and others run get areas that fit, too. */
static void *runs_them(void *made)
{
    many_t *m = made;
    m->main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    for (int i = 0; i < HELD; i++)
        m->all[i].co->main_co = m->main_co;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < HELD; i++)
            many_resume(m, i, 64);
    for (int i = 0; i + 1 < HELD; i++)
        CHECK_EQ(m->all[i].co->save_stack.sz, fitting(m->all[i].co));
    aco_destroy(m->main_co);
    return NULL;
}

static void *made_for_another_thread(void *unused)
{
    static many_t m;
    pthread_t thread;
    many_begin(&m);
    for (int i = 0; i < HELD; i++)
        many_new(&m, i, 64);
    aco_t *own = m.main_co;
    pthread_create(&thread, NULL, runs_them, &m);
    pthread_join(thread, NULL);
    m.main_co = own;
    many_end(&m);
    return unused;
}

/* In a thread with memory of its own. */
static void in_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    pthread_create(&thread, NULL, fn, arg);
    pthread_join(thread, NULL);
}

static void no_size_given(void)
{
    static int in_turn;
    in_thread(exact, NULL);
    in_thread(exact, &in_turn);
    in_thread(exact_of_many_sizes, NULL);
    in_thread(leaves_and_returns, NULL);
    in_thread(made_for_another_thread, NULL);
}

/* ---- Without memory ---- */

enum { SLAB = 2 << 20 };

static int failing;
static long allocated;

static void *map(size_t sz, size_t align, void *ctx)
{
    (void)ctx;
    return failing ? NULL : map_aligned(sz, align);
}

static void unmap(void *p, size_t sz, void *ctx)
{
    (void)ctx;
    munmap(p, sz);
}

/* Each block knows its size. */
static void *allocate(size_t sz, void *ctx)
{
    size_t *p = failing ? NULL : malloc(sz + 64);
    (void)ctx;
    if (!p)
        return NULL;
    *p = sz;
    allocated++;
    return (char *)p + 64;
}

static void release(void *block, size_t sz, void *ctx)
{
    size_t *p = (size_t *)(void *)((char *)block - 64);
    (void)ctx;
    CHECK_EQ(*p, sz);
    allocated--;
    memset(p, 0x5a, sz + 64); /* who still reads it is found out */
    free(p);
}

static void use_allocator(void)
{
    const aco_allocator_t allocator = {map, unmap, allocate, release, NULL};
    CHECK_EQ(aco_set_allocator(&allocator), 0);
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
}

/* Promise: an area that cannot be replaced by a smaller one stays as it is, with what it holds, and becomes smaller
 * when there is memory. `little`: of the allocator, or of a slab that is not there yet. */
static void fails_to_shrink(unsigned much, unsigned little, int extra)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *other = aco_create(main_co, stack, 0, fill_pause, NULL);
    holder_t h = {0};
    void *area;
    size_t sz;
    h.co = aco_create(main_co, stack, 0, holds, &h);
    if (extra)
        get_extra(&h);
    save_so_often(&h, other, 2, much);
    area = h.co->save_stack.ptr;
    sz = h.co->save_stack.sz;
    failing = 1;
    save_so_often(&h, other, 30 * SAVES_PER_LOOK, little);
    CHECK(h.co->save_stack.ptr == area);
    CHECK_EQ(h.co->save_stack.sz, sz);
    failing = 0;
    save_so_often(&h, other, 30 * SAVES_PER_LOOK, little);
    CHECK(h.co->save_stack.ptr != area);
    CHECK(h.co->save_stack.sz < sz / 2);
    failing = 1; /* it cannot grow: the call fails, and everything is as it was */
    h.size = 2 * much;
    h.number++;
    aco_resume(h.co);
    errno = 0;
    CHECK(aco_send(other, NULL) == ACO_ERROR && errno == ENOMEM);
    failing = 0;
    save_so_often(&h, other, 2, much);
    aco_destroy(h.co);
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

static void without_memory(void)
{
    use_allocator();
    fails_to_shrink(100000, 30000, 0);
    fails_to_shrink(200000, 6000, 0); /* of a class that no slab is there for */
    CHECK_EQ(allocated, 0);
}

static void without_memory_for_an_extra_record(void)
{
    use_allocator();
    fails_to_shrink(100000, 30000, 1);
    fails_to_shrink(200000, 6000, 1);
    CHECK_EQ(allocated, 0);
}

/* Promise: areas from the allocator go back with the size that they were asked for, each. */
static void sizes_for_the_allocator(void)
{
    use_allocator();
    shrinks(0, 100000, 20000, 1);
    shrinks(17000, 90000, 18000, 2);
    shrinks(0, 17000, 16300, 1);
    shrinks(16384, 16376, 100, 2);
    reserved_stays();
    CHECK_EQ(allocated, 0);
    random_phases(99);
    CHECK_EQ(allocated, 0);
}

/* ---- The other kind ---- */

static void *returns(void *arg)
{
    return arg;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(aco_t *const *)a, y = (uintptr_t)*(aco_t *const *)b;
    return (x > y) - (x < y);
}

static void *private_blocks(void *unused)
{
    enum { MANY = 200 };
    aco_t *all[MANY];
    const size_t block = (offsetof(aco_t, main_co) + 7) & ~(size_t)7;
    for (int i = 0; i < MANY; i++)
        all[i] = aco_new(returns, NULL, NULL);
    qsort(all, MANY, sizeof *all, by_address);
    for (int i = 0; i < MANY; i++) {
        CHECK((uintptr_t)all[i] % block == 0 || sizeof(void *) == 4);
        if (i)
            CHECK_EQ((uintptr_t)all[i] - (uintptr_t)all[i - 1], block);
    }
    CHECK(block == 64 || sizeof(void *) == 4);
    for (int i = 0; i < MANY; i++)
        aco_destroy(all[i]);
    return unused;
}

/* Promise: the block of a coroutine on a private stack is one line of 64 bytes, side by side with the next one's (a
 * thread with memory of its own makes them). */
static void one_line(void)
{
    in_thread(private_blocks, NULL);
}

int main(int argc, char **argv)
{
    const char *env = getenv("ACORN_SEED");
    uint64_t seed = env ? strtoull(env, NULL, 0) : argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    printf("save_area: seed %llu\n", (unsigned long long)seed);
    if (COPYING) {
        PASSES(without_memory); /* first: before this process has used the library */
        PASSES(without_memory_for_an_extra_record);
        PASSES(sizes_for_the_allocator);
    }
    aco_thread_init(NULL);
    one_line();
    if (COPYING) {
        no_size_given();
        main_co = aco_create(NULL, NULL, 0, NULL, NULL);
        random_phases(seed);
        every_size(0);
        every_size(1);
        each_byte();
        shrinks_back();
        stays_in_use();
        reserved_stays();
        reset_keeps_the_area();
        aco_destroy(main_co);
    }
    return check_result("save_area");
}
