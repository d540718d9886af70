/* Promises about switches between coroutines from aco_new() (include/aco.h), one function each: values both ways,
 * libaco's calls beside the others, resumes by resumed coroutines, transfers. */
#define _GNU_SOURCE
#include "coroutines.h"
#include "child.h"

/* ---- Making ---- */

static aco_t *subject; /* of the children */

/* ---- Values and results ---- */

static void *mixes(void *arg)
{
    aco_yield();
    CHECK(aco_yield_value(NULL) == NULL);       /* resumed by aco_resume() */
    CHECK(aco_yield_value(arg) == (void *)5);
    aco_yield1(aco_get_co());                    /* resumed by aco_send(): the value is nobody's */
    CHECK(aco_yield_value((void *)9) == NULL);
    return arg;
}

/* Promise: where one side passes no value the other one sees NULL. */
static void without_values(void)
{
    int mark;
    aco_t *co = aco_new(mixes, &mark, NULL);
    CHECK(aco_send(co, NULL) == NULL);
    CHECK(aco_send(co, &mark) == NULL);
    aco_resume(co);
    CHECK(aco_send(co, (void *)5) == NULL);
    CHECK_EQ((intptr_t)aco_send(co, &mark), 9);
    aco_resume(co);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
    CHECK(aco_result(co) == &mark);
    aco_destroy(co);
}

static void send_first_value(void)
{
    int mark;
    CHECK(aco_send(subject, &mark) == &subject);
}

static void send_no_first_value(void)
{
    CHECK(aco_send(subject, NULL) == &subject);
}

/* Promise: the first value is ignored, and a debug build says so where it is not NULL. */
static void first_value_is_ignored(void)
{
    char text[128];
    subject = aco_new(same, &subject, NULL);
    snprintf(text, sizeof text, "acorn: aco_send: coroutine %p: is started with a value", (void *)subject);
    PRINTS(send_first_value, CHECKS_YIELDS ? text : NULL);
    PRINTS(send_no_first_value, NULL);
    aco_destroy(subject);
}

/* ---- Both kinds of coroutines: of aco_create() and of aco_new() ---- */

#if SHARE_STACKS
static aco_t *outer, *inner;
static int turns;

static void *yields_both_ways(void *arg)
{
    aco_yield();
    CHECK(aco_yield_value(arg) == arg);
    return arg;
}

static void libaco_entry(void)
{
    aco_t *native = aco_get_arg();
    CHECK(aco_yield_value(&turns) == &turns);
    /* Coroutines from aco_create() and from aco_new() resume any other. */
    aco_resume(native);
    CHECK(aco_send(native, NULL) == native->arg);
    CHECK(aco_send(native, native->arg) == native->arg);
    CHECK_EQ(aco_state(native), ACO_STATE_DONE);
    CHECK(aco_yield_to(inner) == 0);
    turns++;
    aco_exit();
}

static void *resume_libaco(void *arg)
{
    aco_t *libaco = arg;
    CHECK(aco_send(libaco, NULL) == &turns);
    CHECK(aco_send(libaco, &turns) == &turns); /* from `inner`, to which it transferred */
    aco_yield();
    aco_resume(libaco);
    CHECK_EQ(aco_state(libaco), ACO_STATE_DONE);
    CHECK(aco_result(libaco) == NULL);
    return arg;
}

static void *yields_turns(void *arg)
{
    aco_yield_value(&turns);
    return arg;
}

/* Promise: coroutines of both kinds resume, send to and transfer to each other. */
static void both_kinds(int native_is_private, int outer_is_private)
{
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL), *native, *libaco;
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t options = {.stack = stack};
    turns = 0;
    native = aco_new(yields_both_ways, &options, native_is_private ? NULL : &options);
    inner = aco_new(yields_turns, NULL, native_is_private ? &options : NULL);
    libaco = aco_create(main_object, stack, 0, libaco_entry, native);
    outer = aco_new(resume_libaco, libaco, outer_is_private ? NULL : &options);
    aco_resume(outer);
    CHECK_EQ(aco_state(inner), ACO_STATE_SUSPENDED);
    aco_resume(outer);
    CHECK_EQ(aco_state(outer), ACO_STATE_DONE);
    CHECK_EQ(turns, 1);
    aco_resume(inner);
    aco_destroy(inner);
    aco_destroy(outer);
    aco_destroy(libaco);
    aco_destroy(native);
    aco_share_stack_destroy(stack);
    aco_destroy(main_object);
}
#endif

/* ---- Chains of resumers ---- */

enum { DEPTH = 100, PATTERNS = 27, FILL = 200 };

/* Where the coroutine of a depth runs: a pattern of up to three kinds, in base 3. Kind 0 is a stack of its own. */
static aco_share_stack_t *share[3];
static int pattern;

static aco_options_t options_of_depth(int depth)
{
    const int powers[] = {1, 3, 9};
    aco_options_t options = {.stack = share[pattern / powers[depth % 3] % 3]};
    return options;
}

/* Each depth adds its own number to what the next one yields and returns: 0 + 1 + ... + DEPTH - 1 must arrive. */
static void *nest(void *arg)
{
    int depth = (int)(intptr_t)arg;
    unsigned char bytes[FILL];
    aco_options_t options = options_of_depth(depth + 1);
    aco_t *below = depth + 1 < DEPTH ? aco_new(nest, (void *)(intptr_t)(depth + 1), &options) : NULL;
    fill(bytes, sizeof bytes, (uint64_t)depth);
    for (int i = 0; i < 3; i++) {
        intptr_t sum = below ? (intptr_t)aco_send(below, i ? (void *)(intptr_t)i : NULL) : 0;
        CHECK(is_filled(bytes, sizeof bytes, (uint64_t)depth));
        if (below)
            CHECK_EQ(aco_state(below), i < 2 ? ACO_STATE_SUSPENDED : ACO_STATE_DONE);
        if (i == 2) {
            if (below)
                aco_destroy(below);
            return (void *)(sum + depth);
        }
        CHECK_EQ((intptr_t)aco_yield_value((void *)(sum + depth)), i + 1);
        CHECK(is_filled(bytes, sizeof bytes, (uint64_t)depth));
    }
    return NULL;
}

/* Promise: any coroutine may resume any other, to any depth, on stacks in any mix; frames that wait are kept. */
static void nesting(void)
{
    for (int i = 1; i < 3 && SHARE_STACKS; i++)
        share[i] = aco_share_stack_new2(0, i == 1);
    for (pattern = 0; pattern < (SHARE_STACKS ? PATTERNS : 1); pattern++) {
        aco_options_t options = options_of_depth(0);
        aco_t *co = aco_new(nest, (void *)0, &options);
        for (intptr_t i = 0; i < 3; i++)
            CHECK_EQ((intptr_t)aco_send(co, (void *)i), DEPTH * (DEPTH - 1) / 2);
        CHECK_EQ(aco_state(co), ACO_STATE_DONE);
        aco_destroy(co);
        CHECK_EQ(living(), 0);
    }
    for (int i = 1; i < 3 && SHARE_STACKS; i++)
        aco_share_stack_destroy(share[i]);
}

/* ---- Transfer ---- */

enum { RING = 6, ROUNDS = 150 };

static aco_t *ring[RING];
static int ring_at, ring_steps, ring_cleanups;
static const void *ring_value; /* what the next one receives */
static int ring_exits;         /* at their end they exit to the next one */

static void ring_cleanup(void *arg)
{
    ring_cleanups++;
    CHECK(aco_get_co() == ring[(intptr_t)arg]);
    FAILS(aco_exit_to(ring[0], NULL), -1, EPERM, "aco_exit_to", aco_get_co(), "cleanup");
}

/* By aco_yield_to() and by aco_transfer(), in turn. */
static void go_on(aco_t *next, int i)
{
    ring_value = i % 3 ? &ring[i % RING] : NULL;
    if (ring_value)
        CHECK(aco_transfer(next, &ring[i % RING]) == ring_value);
    else
        CHECK_EQ(aco_yield_to(next), 0);
}

static void *run_ring(void *arg)
{
    int me = (int)(intptr_t)arg;
    unsigned char bytes[FILL];
    fill(bytes, sizeof bytes, (uint64_t)me);
    CHECK_EQ(aco_defer(ring_cleanup, arg), 0);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(ring_at, me);
        CHECK(aco_get_co() == ring[me]);
        ring_steps++;
        ring_at = (me + 1) % RING;
        if (i + 1 == ROUNDS && me + 1 == RING)
            aco_yield_value(ring); /* to who resumed the first one */
        else
            go_on(ring[ring_at], i);
        CHECK(is_filled(bytes, sizeof bytes, (uint64_t)me));
    }
    if (ring_exits && me + 1 < RING) {
        ring_value = &ring_exits;
        aco_exit_to(ring[me + 1], &ring_exits);
        CHECK(!"aco_exit_to() does not return");
    }
    return (void *)(intptr_t)(me + 1);
}

static void go_round(void)
{
    ring_at = ring_steps = ring_cleanups = 0;
    CHECK(aco_send(ring[0], NULL) == ring);
    CHECK_EQ(ring_steps, RING * ROUNDS);
    for (int i = 0; i < RING && !ring_exits; i++) {
        CHECK_EQ(aco_state(ring[i]), ACO_STATE_SUSPENDED);
        ring_value = ring;
        CHECK_EQ((intptr_t)aco_send(ring[i], ring), i + 1);
    }
    ring_value = &ring_exits;
    if (ring_exits)
        CHECK_EQ((intptr_t)aco_send(ring[0], &ring_exits), RING); /* from the last one, to which all others exited */
    for (int i = 0; i < RING; i++)
        CHECK_EQ((intptr_t)aco_result(ring[i]), ring_exits && i + 1 < RING ? 0 : i + 1);
    CHECK_EQ(ring_cleanups, RING);
}

static void *go_round_inside(void *arg)
{
    go_round();
    for (int i = 0; i < RING; i++) /* a stack that was left by aco_exit_to() can be used again */
        CHECK_EQ(aco_restart(ring[i], run_ring, (void *)(intptr_t)i), 0);
    go_round();
    return arg;
}

/* Promise: aco_yield_to(), aco_transfer() and aco_exit_to() go round rings on private and share stacks in any mix, and
 * yields return to the resumer, which is the root context or a coroutine (also one on these stacks). */
static void rings(int exits)
{
    ring_exits = exits;
    for (int i = 1; i < 3 && SHARE_STACKS; i++)
        share[i] = aco_share_stack_new2(0, i == 1);
    for (pattern = 0; pattern < (SHARE_STACKS ? PATTERNS : 1); pattern++)
        for (int fp = 0; fp < (OWN_FP_POSSIBLE ? 4 : 1); fp++)
            for (int nested = 0; nested < 2; nested++) {
                for (int i = 0; i < RING; i++) {
                    aco_options_t options = options_of_depth(i);
                    int own = fp == 0 || (fp == 2 && i % 2) || (fp == 3 && i == 4);
                    options.flags = own && OWN_FP_POSSIBLE ? ACO_OWN_FP : 0;
                    ring[i] = aco_new(run_ring, (void *)(intptr_t)i, &options);
                }
                if (nested) {
                    aco_options_t options = options_of_depth(0);
                    aco_t *co = aco_new(go_round_inside, NULL, &options);
                    aco_resume(co);
                    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
                    aco_destroy(co);
                } else {
                    go_round();
                }
                for (int i = 0; i < RING; i++)
                    aco_destroy(ring[i]);
            }
    for (int i = 1; i < 3 && SHARE_STACKS; i++)
        aco_share_stack_destroy(share[i]);
}

typedef struct refused_transfers {
    aco_t *done, *destroyed, *main_object;
} refused_transfers_t;

static void *try_transfers(void *arg)
{
    const refused_transfers_t *to = arg;
    FAILS(aco_yield_to(NULL), -1, EINVAL, "aco_yield_to", NULL, "NULL");
    FAILS(aco_yield_to(to->done), -1, ESRCH, "aco_yield_to", to->done, "ended");
    FAILS(aco_yield_to(to->destroyed), -1, ESRCH, "aco_yield_to", to->destroyed, "destroyed");
    FAILS(aco_yield_to(to->main_object), -1, EINVAL, "aco_yield_to", to->main_object, "main coroutine");
    FAILS(aco_transfer(to->done, NULL), ACO_ERROR, ESRCH, "aco_transfer", to->done, "ended");
    FAILS(aco_exit_to(to->done, NULL), -1, ESRCH, "aco_exit_to", to->done, "ended");
    FAILS(aco_exit_to(aco_get_co(), NULL), -1, EINVAL, "aco_exit_to", aco_get_co(), "running");
    CHECK(aco_transfer(aco_get_co(), arg) == arg);
    aco_yield_to(aco_get_co()); /* goes on, whatever it returns */
    CHECK(aco_get_co() == subject);
    return arg;
}

/* Promise: what cannot be resumed cannot be transferred to, and the caller goes on. */
static void refused_transfers(const aco_options_t *options)
{
    refused_transfers_t to = {aco_new(same, NULL, options), aco_new(same, NULL, options),
                              aco_create(NULL, NULL, 0, NULL, NULL)};
    aco_send(to.done, NULL);
    subject = aco_new(try_transfers, &to, options);
    aco_destroy(to.destroyed); /* last, so that its memory is not in use again */
    CHECK(aco_send(subject, NULL) == &to);
    aco_destroy(subject);
    aco_destroy(to.done);
    aco_destroy(to.main_object);
}

/* ACO_OWN_EXCEPTIONS is for C++; in C it must do no harm. */
static void own_exceptions(void)
{
    aco_options_t options = {.flags = ACO_OWN_EXCEPTIONS};
    aco_t *co = aco_new(doubles, (void *)7, &options);
    values_go_round(co);
    aco_destroy(co);
    for (int i = 0; i < RING; i++)
        ring[i] = aco_new(run_ring, (void *)(intptr_t)i, &options);
    go_round();
    for (int i = 0; i < RING; i++)
        aco_destroy(ring[i]);
}

int main(void)
{
    without_values();
    first_value_is_ignored();
    for (int i = 0; i < 1 + SHARE_STACKS; i++) {
        aco_options_t options = {0};
        if (i)
            options.stack = aco_share_stack_new(0);
        refused_transfers(&options);
        if (i)
            aco_share_stack_destroy(options.stack);
    }
#if SHARE_STACKS
    for (int i = 0; i < 4; i++)
        both_kinds(i % 2, i / 2);
#endif
    nesting();
    rings(0);
    rings(1);
    own_exceptions();
    return check_result("coroutine_switch");
}
