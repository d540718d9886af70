/* Coroutines that migrate: made on one thread, resumed by others, ended, cancelled and destroyed by yet others.
 *
 * migration PART [COUNT [THREADS]]
 *   scale    many coroutines on small stacks, handed over at random, each with a checksum on its stack
 *   owners   a share stack's coroutines belong to the thread that runs coroutines there
 *   libaco   so do those of aco_create(), whose calls abort
 *   heirs    coroutines outlive the thread that made them, and their memory comes back */
#define _GNU_SOURCE
#include "threads_at_once.h"
#include "child.h"

/* Whether a resume asks for the thread even where the frames are in place. The exported functions never do. */
#if ACO_DEBUG && !defined(ACO_CONFIG_NO_INLINE)
#define RESUME_ASKS 1
#else
#define RESUME_ASKS 0
#endif

/* ---- scale ---- */

enum { KEPT = 12, SMALL_STACK = SANITIZED ? 64 << 10 : 8192 };
enum { FATE_GO_ON, FATE_RETURN, FATE_CANCEL, FATE_DESTROY };
static const uintptr_t RETURN_NOW = 1; /* a bit of the value sent */

typedef struct member {
    shared_t shared;
    unsigned char done, cleaned; /* it ended; how often its deferred call was made */
    unsigned char wrong;         /* what the coroutine found wrong: its stack has no room to say so */
    unsigned maker, ender;       /* threads: who made it, who ended it */
    aco_t *co;
    uintptr_t sent;
    uint64_t sum; /* what the coroutine's own checksum must be */
} member_t;

static member_t *members;
static struct {
    unsigned steps, returned, cancelled, cancelled_new, destroyed_suspended, destroyed_by_a_third, made;
} seen; /* atomic */

static void saw(unsigned *what)
{
    __atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}

static void member_ends(void *arg)
{
    member_t *m = arg;
    m->cleaned++;
}

static uintptr_t reply(uint64_t sum)
{
    return (uintptr_t)(sum * 3);
}

static void *member_runs(void *arg)
{
    member_t *m = arg;
    volatile uint64_t kept[KEPT];
    uint64_t sum = m->sum;
    uintptr_t sent;
    for (unsigned i = 0; i < KEPT; i++)
        kept[i] = mix(sum + i);
    if (aco_defer(member_ends, m) != 0)
        m->wrong |= 1;
    do {
        sent = (uintptr_t)aco_yield_value((void *)reply(sum));
        if (sent != m->sent)
            m->wrong |= 2;
        for (unsigned i = 0; i < KEPT; i++)
            if (kept[i] != mix(sum + i))
                m->wrong |= 4;
        sum = mix(sum ^ sent);
        for (unsigned i = 0; i < KEPT; i++)
            kept[i] = mix(sum + i);
        if (aco_get_co() != m->co)
            m->wrong |= 8;
    } while (!(sent & RETURN_NOW));
    return (void *)reply(sum);
}

/* Three of four do without a guard page: before Linux 6.13 each is two mappings, of which a process has 65530. */
static void member_make(member_t *m, here_t *at)
{
    aco_options_t options = {0};
    options.stack_size = SMALL_STACK;
    options.flags = (m - members) % 4 ? ACO_NO_GUARD : 0;
    m->sum = draw(&at->random);
    m->maker = at->id;
    m->ender = m->done = m->cleaned = m->wrong = 0;
    m->co = aco_new(member_runs, m, &options);
    if (!m->co) {
        fprintf(stderr, "aco_new: %s\n", aco_error_message());
        exit(2);
    }
    saw(&seen.made);
}

static void member_start(member_t *m)
{
    CHECK(aco_send(m->co, NULL) == (void *)reply(m->sum));
    CHECK_EQ(m->wrong, 0);
}

static void member_send(member_t *m, here_t *at, int last)
{
    void *answer;
    m->sent = (uintptr_t)draw(&at->random) & ~RETURN_NOW;
    m->sent |= last ? RETURN_NOW : 0;
    m->sum = mix(m->sum ^ m->sent);
    answer = aco_send(m->co, (void *)m->sent);
    CHECK(answer == (void *)reply(m->sum));
    CHECK_EQ(m->wrong, 0);
    CHECK_EQ(m->co->is_end, last);
    CHECK_EQ(m->cleaned, last);
    if (last) {
        CHECK(aco_result(m->co) == answer);
        m->done = 1;
        m->ender = at->id;
        saw(&seen.returned);
    }
}

static void member_cancel(member_t *m, here_t *at)
{
    int was_new = aco_state(m->co) == ACO_STATE_READY;
    CHECK_EQ(aco_cancel(m->co), 0);
    CHECK_EQ(aco_state(m->co), ACO_STATE_DONE);
    CHECK(aco_result(m->co) == NULL);
    CHECK_EQ(m->cleaned, !was_new);
    m->done = 1;
    m->ender = at->id;
    if (at->id != m->maker)
        saw(was_new ? &seen.cancelled_new : &seen.cancelled);
}

static void member_destroy(member_t *m)
{
    int cleaned = m->cleaned;
    aco_destroy(m->co);
    CHECK_EQ(m->cleaned, cleaned);
    m->co = NULL;
}

/* A done one is destroyed by a thread that neither made nor ended it, and made again there. */
static void member_step(member_t *m, here_t *at)
{
    uint64_t random = draw(&at->random);
    int fate = random % 64 < 2 ? FATE_RETURN
        : random % 64 < 4      ? FATE_CANCEL
        : random % 64 == 4     ? FATE_DESTROY
                               : FATE_GO_ON;
    if (m->done) {
        if (at->id == m->maker || at->id == m->ender)
            return;
        member_destroy(m);
        saw(&seen.destroyed_by_a_third);
        member_make(m, at);
        return;
    }
    saw(&seen.steps);
    if (fate == FATE_CANCEL) {
        member_cancel(m, at);
    } else if (aco_state(m->co) == ACO_STATE_READY) {
        member_start(m);
    } else if (fate == FATE_DESTROY) {
        member_destroy(m);
        saw(&seen.destroyed_suspended);
        member_make(m, at);
    } else {
        member_send(m, at, fate == FATE_RETURN);
    }
}

static void scale_make_share(void)
{
    here_t *at = here();
    for (unsigned i = 0; i < count; i++)
        if (try_lock(&members[i].shared.lock)) {
            members[i].shared.at = at->id;
            if (!members[i].co)
                member_make(&members[i], at);
            give_back(&members[i].shared);
        }
}

static void scale_work(void)
{
    here_t *at = here();
    scale_make_share();
    while (step_left()) {
        member_t *m = take(members, sizeof *m, at);
        if (!m) {
            give_back_step();
            continue;
        }
        if (m->co)
            member_step(m, at);
        give_back(&m->shared);
    }
}

/* Promise: a suspended coroutine on a private stack may be resumed, cancelled and destroyed by any thread, one at a
 * time, and none of it is lost or mixed up. */
static void part_scale(void)
{
    here_t *at = here();
    at->id = MOST_THREADS + 1;
    members = calloc(count, sizeof *members);
    if (!members)
        exit(2);
    steps_left = 20000 + 12* (int)count;
    run_threads(scale_work, threads);
    for (unsigned i = 0; i < count;
         i++) { /* the makers are gone; what is left, this thread ends in one way or another */
        member_t *m = &members[i];
        if (!m->co)
            continue;
        if (!m->done && i % 3 == 0)
            member_cancel(m, at);
        else if (!m->done && i % 3 == 1 && aco_state(m->co) != ACO_STATE_READY)
            member_send(m, at, 1);
        member_destroy(m);
    }
    CHECK(seen.made >= count);
    CHECK(seen.returned > 0 && seen.cancelled > 0 && seen.cancelled_new > 0);
    CHECK(seen.destroyed_suspended > 0 && seen.destroyed_by_a_third > 0);
    CHECK(seen.steps > 5000); /* the others found one that is done and not theirs to destroy */
    printf("%u made, %u times resumed by another thread; %u returned, %u + %u new ones cancelled and %u destroyed by "
           "others\n",
           seen.made, seen.steps, seen.returned, seen.cancelled, seen.cancelled_new, seen.destroyed_by_a_third);
    free(members);
}

/* ---- owners ---- */

static struct {
    aco_share_stack_t *stack;
    aco_t *ready, *saved, *in_place;
} owned;

static void *yields_twice(void *arg)
{
    CHECK(aco_yield_value(arg) == &owned);
    CHECK(aco_yield_value(arg) == &owned);
    return arg;
}

static aco_t *new_on(aco_share_stack_t *stack)
{
    aco_options_t options = {0};
    options.stack = stack;
    return aco_new(yields_twice, stack, &options);
}

#define REFUSED(call, value, co)                                                                                       \
    do {                                                                                                               \
        char wanted[64];                                                                                               \
        *errno_here() = 0;                                                                                             \
        CHECK((call) == (value));                                                                                      \
        CHECK_EQ(*errno_here(), EPERM);                                                                                \
        snprintf(wanted, sizeof wanted, "coroutine %p: ", (void *)(co));                                               \
        CHECK(strstr(aco_error_message(), wanted) && strstr(aco_error_message(), "belongs to another thread"));        \
    } while (0)

/* In a coroutine of the thread that must not. */
static void *tries(void *arg)
{
    REFUSED(aco_send(owned.ready, NULL), ACO_ERROR, owned.ready);
    REFUSED(aco_send(owned.saved, NULL), ACO_ERROR, owned.saved);
    REFUSED(aco_yield_to(owned.ready), -1, owned.ready);
    REFUSED(aco_yield_to(owned.saved), -1, owned.saved);
#if RESUME_ASKS
    REFUSED(aco_send(owned.in_place, NULL), ACO_ERROR, owned.in_place);
    REFUSED(aco_yield_to(owned.in_place), -1, owned.in_place);
#endif
    REFUSED(aco_cancel(owned.saved), -1, owned.saved);
    return arg;
}

static void stranger(void)
{
    aco_t *co = aco_new(tries, &owned, NULL);
    for (int i = 0; i < 3; i++) {
        REFUSED(aco_send(owned.ready, &owned), ACO_ERROR, owned.ready);
        REFUSED(aco_send(owned.saved, &owned), ACO_ERROR, owned.saved);
        REFUSED(aco_cancel(owned.ready), -1, owned.ready);
        REFUSED(aco_cancel(owned.saved), -1, owned.saved);
        REFUSED(aco_cancel(owned.in_place), -1, owned.in_place);
#if RESUME_ASKS
        REFUSED(aco_send(owned.in_place, &owned), ACO_ERROR, owned.in_place);
#endif
    }
    CHECK(aco_send(co, NULL) == &owned);
    aco_destroy(co);
}

static void heir_of_the_stack(void)
{
    CHECK(aco_send(owned.ready, NULL) == owned.stack);
    CHECK(aco_send(owned.ready, &owned) == owned.stack);
    CHECK(aco_send(owned.ready, &owned) == owned.stack);
    CHECK_EQ(aco_state(owned.ready), ACO_STATE_DONE);
}

static void yields_on(void)
{
    for (;;)
        aco_yield();
}

static aco_t *foreign;

static void resume_foreign(void)
{
    aco_resume(foreign);
}

static void stranger_resumes(void)
{
    run_threads(resume_foreign, 1);
}

/* Promise: aco_resume() by a thread that has another main coroutine aborts with a message, also where the coroutine was
 * never resumed, and in debug builds where its frames are in place. A part of its own, since a forked child is to start
 * a thread. */
static void part_libaco(void)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL), *co[3];
    aco_share_stack_t *stack = aco_share_stack_new(0), *unused = aco_share_stack_new(0);
    enum { READY, SAVED, IN_PLACE };
    for (int i = 0; i < 3; i++)
        co[i] = aco_create(main_co, i == READY ? unused : stack, 0, yields_on, NULL);
    aco_resume(co[SAVED]);
    aco_resume(co[IN_PLACE]);
    for (int i = 0; i < (RESUME_ASKS ? 3 : 2); i++) {
        foreign = co[i];
        ABORTS(stranger_resumes, "aco_resume", foreign, "belongs to another thread");
    }
    for (int i = 0; i < 3; i++) {
        aco_resume(co[i]);
        aco_destroy(co[i]);
    }
    aco_share_stack_destroy(stack);
    aco_share_stack_destroy(unused);
    aco_destroy(main_co);
}

/* Promises: EPERM for a coroutine whose share stack another thread owns, from aco_send(), aco_yield_to() and
 * aco_cancel(), be it new or saved; with its frames in place from aco_cancel(), and in debug builds from all. Nothing
 * is changed by it. A stack without started coroutines is free for any thread. */
static void part_owners(void)
{
    owned.stack = aco_share_stack_new(0);
    owned.ready = new_on(owned.stack);
    owned.saved = new_on(owned.stack);
    owned.in_place = new_on(owned.stack);
    CHECK(aco_send(owned.saved, NULL) == owned.stack);
    CHECK(aco_send(owned.in_place, NULL) == owned.stack);
    CHECK(UNDER_ASAN || (owned.saved->save_stack.valid_sz > 0 && owned.stack->owner == owned.in_place));
    run_threads(stranger, 1);
    CHECK_EQ(aco_state(owned.ready), ACO_STATE_READY);
    CHECK_EQ(aco_state(owned.saved), ACO_STATE_SUSPENDED);
    for (int i = 0; i < 2; i++) {
        CHECK(aco_send(owned.saved, &owned) == owned.stack);
        CHECK(aco_send(owned.in_place, &owned) == owned.stack);
    }
    CHECK(owned.saved->is_end && owned.in_place->is_end);
    run_threads(heir_of_the_stack, 1);
    aco_destroy(owned.ready);
    aco_destroy(owned.saved);
    aco_destroy(owned.in_place);
    aco_share_stack_destroy(owned.stack);
}

/* ---- heirs ---- */

static long mapped; /* bytes that the library has now; atomic */

static void *counted_map(size_t sz, size_t align, void *ctx)
{
    void *p = map_aligned(sz, align);
    (void)ctx;
    if (p)
        __atomic_fetch_add(&mapped, (long)sz, __ATOMIC_RELAXED);
    return p;
}

static void counted_unmap(void *p, size_t sz, void *ctx)
{
    (void)ctx;
    munmap(p, sz);
    __atomic_fetch_sub(&mapped, (long)sz, __ATOMIC_RELAXED);
}

static void *counted_allocate(size_t sz, void *ctx)
{
    (void)ctx;
    return malloc(sz);
}

static void counted_release(void *p, size_t sz, void *ctx)
{
    (void)ctx, (void)sz;
    free(p);
}

typedef struct orphan {
    aco_t *co;
    unsigned visits, cleaned;
} orphan_t;

static orphan_t *left;

static void orphan_ends(void *arg)
{
    ((orphan_t *)arg)->cleaned++;
}

static void *orphan_runs(void *arg)
{
    CHECK_EQ(aco_defer(orphan_ends, arg), 0);
    for (;;)
        aco_yield_value(arg);
    return NULL;
}

static void leave(void)
{
    aco_options_t options = {0};
    for (unsigned i = 0; i < count; i++) {
        options.stack_size = i % 16 ? 16 << 10 : 0; /* the thread caches destroyed default ones */
        left[i].co = aco_new(orphan_runs, &left[i], &options);
        CHECK(left[i].co != NULL);
        if (i % 3 || i % 4 == 1)
            CHECK(aco_send(left[i].co, NULL) == &left[i]);
    }
}

static int count_visit(aco_t *co, void *others)
{
    if ((char *)co->arg >= (char *)left && (char *)co->arg < (char *)(left + count))
        ((orphan_t *)co->arg)->visits++;
    else
        ++*(unsigned *)others;
    return 0;
}

/* This thread's first coroutine makes it take over what the one that ended has left. */
static void check_visits(void)
{
    unsigned others = 0;
    aco_t *mine = aco_new(idle, NULL, NULL);
    for (unsigned i = 0; i < count; i++)
        left[i].visits = 0;
    CHECK_EQ(aco_each(count_visit, &others), 0);
    CHECK_EQ(others, 1);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(left[i].visits, left[i].co != NULL);
    aco_destroy(mine);
}

/* Share `share` of 4: goes on, and is destroyed, for one half after a cancellation. Share 1 makes its thread need no
 * memory, so that of two at once the other takes over what is left, and the next one the same. */
static void finish(unsigned share)
{
    for (unsigned i = share; i < count; i += 4) {
        CHECK(aco_send(left[i].co, NULL) == &left[i]);
        if (share != 1 && i / 4 % 2) {
            CHECK_EQ(aco_cancel(left[i].co), 0);
            CHECK_EQ(left[i].cleaned, 1);
        }
        aco_destroy(left[i].co);
        left[i].co = NULL;
    }
}

static void finish_some(void)
{
    static unsigned next;
    finish(__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 2);
}

static void finish_third(void)
{
    check_visits();
    finish(2);
}

static void finish_last(void)
{
    finish(3);
}

/* Promises: coroutines outlive their thread; any thread may resume and end them; a thread that takes over the memory
 * sees them by aco_each(); all memory comes back. */
static void part_heirs(void)
{
    static const aco_allocator_t counting = {counted_map, counted_unmap, counted_allocate, counted_release, NULL};
    long after_first = 0;
    CHECK_EQ(aco_set_allocator(&counting), 0);
    left = calloc(count, sizeof *left);
    if (!left)
        exit(2);
    for (int round = 0; round < 8; round++) {
        memset(left, 0, count * sizeof *left);
        run_threads(leave, 1);
        CHECK(mapped > (long)count * 4096);
        run_threads(check_visits, 1);
        run_threads(finish_some, 2);
        run_threads(finish_third, 1);
        run_threads(finish_last, 1);
        run_threads(check_visits, 1);
        if (round == 1)
            after_first = mapped; /* by now what is kept for later has been made */
        if (round > 1)
            CHECK(mapped <= after_first);
    }
    CHECK(mapped < (4 << 20) * 8);
    printf("%ld bytes kept\n", mapped);
    free(left);
}

int main(int argc, char **argv)
{
    static const migration_part_t parts[] = {{"scale", part_scale, 100000},
                                             {"owners", part_owners, 1},
                                             {"libaco", part_libaco, 1},
                                             {"heirs", part_heirs, 2000},
                                             {NULL, NULL, 0}};
    return run_part(parts, argc, argv, "scale|owners|libaco|heirs");
}
