/* Random schedules of coroutines from aco_new(): every call that switches, against a model of who has control and of
 * what each must find. Arguments: seed (ACORN_SEED in the environment), operations. */
#define _GNU_SOURCE
#include "coroutines.h"

#include <fenv.h>
#include <inttypes.h>

static random_t scheduler = {1}; /* the random schedules' */

/* ---- Random schedules ---- */

/* The model. Who has control is a chain: the root context, the coroutine that it resumed, the one that this one
 * resumed, and so on. A yield removes the last one, a transfer replaces it. Whoever gets control looks whether the
 * model says so, whether the value is the one passed, whether the rounding is its own, and whether its frames are
 * whole. */
enum { ACTORS = 30, FLOW = -1, DEEPEST_FRAME = 8 };
enum { TO_NEAREST, UP, DOWN, TO_ZERO };

typedef enum { ABSENT, READY, SUSPENDED, RUNNING, RESUMING, DONE } phase_t;
typedef enum { IN_YIELD_VALUE, IN_SEND, IN_OTHER } place_t;

/* On the coroutine's stack; the next ones are further out. */
typedef struct frame {
    struct frame *outward;
    unsigned size;
    uint64_t seed;
    unsigned char *bytes;
    struct actor *actor;
} frame_t;

typedef struct actor {
    aco_t *co;
    phase_t phase;
    place_t place;
    frame_t *frames;
    int own_fp, rounding, resumer;
    int deferred, to_be_called; /* deferred calls open; those that must still come while it ends */
    void *result;
} actor_t;

static actor_t actors[ACTORS + 1];
static aco_share_stack_t *model_stacks[3];
static int in_control = FLOW;      /* who must have it */
static void *passed;               /* what it must find */
static unsigned long operations_left, counts[12];
enum {
    DID_RESUME,
    DID_YIELD,
    DID_TRANSFER,
    DID_CANCEL,
    DID_END,
    DID_RESTART,
    DID_DESTROY,
    DID_REFUSED,
    DID_NEST,
    DID_CLEANUP
};
static int flow_rounding;

static int fenv_of[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
static double third_of[4];

static __attribute__((noinline)) double a_third(void)
{
    volatile double one = -1.0, three = 3.0, third = one / three; /* stored: x87 registers hold more */
    return third;
}

/* Whose environment `who` works in: its own, or that of its resumer. */
static int *rounding_of(int who)
{
    while (who != FLOW && !actors[who].own_fp)
        who = actors[who].resumer;
    return who == FLOW ? &flow_rounding : &actors[who].rounding;
}

static void check_rounding(int who)
{
    int mode = *rounding_of(who);
    if (fegetround() != fenv_of[mode] || (mode < TO_ZERO && a_third() != third_of[mode]))
        CHECK(!"another's rounding");
}

/* What follows would mean nothing. */
static __attribute__((noreturn)) void lost(const char *what)
{
    fprintf(stderr, "coroutine_model: %s\n", what);
    abort();
}

/* `who` has got control. */
static void arrive(int who, place_t place, void *value)
{
    if (in_control != who || aco_is_in_main_co() != (who == FLOW))
        lost("control went elsewhere");
    check_rounding(who);
    if (value != (place == IN_OTHER ? NULL : passed))
        CHECK(!"another value came");
    if (who == FLOW)
        return;
    if (aco_get_co() != actors[who].co || aco_state(actors[who].co) != ACO_STATE_RUNNING)
        CHECK(!"not the running coroutine");
    for (frame_t *f = actors[who].frames; f; f = f->outward)
        if (!is_filled(f->bytes, f->size, f->seed))
            lost("a frame was changed");
}

static void *some_value(void)
{
    return (void *)(uintptr_t)(draw(&scheduler) >> 8 | 1);
}

static int pick(phase_t a, phase_t b)
{
    int at = (int)below(&scheduler, ACTORS);
    for (int i = 0; i < ACTORS; i++, at = (at + 1) % ACTORS)
        if (actors[at].phase == a || actors[at].phase == b)
            return at;
    return FLOW;
}

static void set_phase(int who, phase_t phase)
{
    if (who != FLOW)
        actors[who].phase = phase;
}

static void *act_out(void *arg);

static void make(int who)
{
    actor_t *actor = &actors[who];
    unsigned stack = below(&scheduler, SHARE_STACKS ? 5 : 1), fp = below(&scheduler, 3);
    aco_options_t options = {.stack = stack > 1 ? model_stacks[stack - 2] : NULL};
    if (options.stack && below(&scheduler, 2))
        options.save_size = 1 + below(&scheduler, 5000);
    if (!options.stack && below(&scheduler, 4) == 0)
        options.stack_size = 100000;
    actor->own_fp = OWN_FP_POSSIBLE && fp;
    options.flags = actor->own_fp ? ACO_OWN_FP : 0;
    actor->co = aco_new(act_out, actor,
                        below(&scheduler, 3) || options.stack || options.stack_size || options.flags ? &options : NULL);
    actor->phase = READY;
    actor->rounding = TO_NEAREST;
}

/* Resumes or cancels `to` from `who`. */
static void *run_nested(int who, int to, void *value, int cancel)
{
    actor_t *actor = &actors[to];
    void *got = NULL;
    phase_t before = who == FLOW ? RUNNING : actors[who].phase;
    counts[DID_NEST] += who != FLOW;
    if (cancel && actor->phase == READY) {
        CHECK_EQ(aco_cancel(actor->co), 0);
        actor->phase = DONE;
        actor->result = NULL;
        return NULL;
    }
    set_phase(who, RESUMING);
    actor->resumer = who;
    actor->phase = RUNNING;
    in_control = to;
    passed = actor->place == IN_YIELD_VALUE ? value : NULL;
    if (cancel) {
        actor->to_be_called = actor->deferred;
        if (aco_cancel(actor->co) != 0)
            lost(aco_error_message());
        CHECK_EQ(actor->to_be_called, 0);
        CHECK_EQ(aco_state(actor->co), ACO_STATE_DONE);
        CHECK(aco_result(actor->co) == NULL);
        actor->phase = DONE;
        actor->deferred = 0;
        actor->frames = NULL;
        actor->result = NULL;
        in_control = who;
    } else if (value) {
        got = aco_send(actor->co, value);
        CHECK(got == passed);
    } else {
        aco_resume(actor->co);
    }
    set_phase(who, before);
    arrive(who, cancel || !value ? IN_OTHER : IN_SEND, got);
    return got;
}

/* What a deferred call does: counts, and sometimes resumes another. */
static void deferred_call(void *arg)
{
    actor_t *actor = arg;
    int who = (int)(actor - actors), other;
    if (in_control != who || aco_get_co() != actor->co)
        CHECK(!"a deferred call without control");
    check_rounding(who);
    if (--actor->deferred, --actor->to_be_called < 0)
        CHECK(!"a deferred call too many");
    counts[DID_CLEANUP]++;
    if (below(&scheduler, 4) == 0 && (other = pick(SUSPENDED, SUSPENDED)) != FLOW)
        run_nested(who, other, some_value(), (int)below(&scheduler, 3) == 0);
}

/* The inner frames have been unwound, and their compiler-made cleanup has used the stack. */
static void deferred_in_frame(void *arg)
{
    frame_t *frame = arg;
    frame->actor->frames = frame;
    deferred_call(frame->actor);
}

static void give_back_control(int who, phase_t phase)
{
    actor_t *actor = &actors[who];
    actor->phase = phase;
    in_control = actor->resumer;
}

static void some_refusal(int who)
{
    int at = (int)below(&scheduler, ACTORS);
    aco_t *co = actors[at].co;
    counts[DID_REFUSED]++;
    errno = 0;
    switch (actors[at].phase) {
    case DONE:
        CHECK(aco_send(co, NULL) == ACO_ERROR);
        CHECK_EQ(errno, ESRCH);
        break;
    case RUNNING:
    case RESUMING:
        CHECK(aco_send(co, NULL) == ACO_ERROR);
        CHECK_EQ(errno, EBUSY);
        CHECK_EQ(aco_cancel(co), -1);
        CHECK_EQ(errno, EBUSY);
        CHECK(aco_result(co) == ACO_ERROR);
        if (at != who) {
            CHECK_EQ(aco_yield_to(co), -1);
            CHECK_EQ(errno, who == FLOW ? EPERM : EBUSY);
        }
        break;
    default:
        break;
    }
}

/* One operation of whoever has control; `depth` is the coroutine's. */
static void operate(int who)
{
    unsigned what = below(&scheduler, 100);
    actor_t *actor = who == FLOW ? NULL : &actors[who];
    void *value = below(&scheduler, 3) ? some_value() : NULL;
    int to;
    if (what < 10) {
        int *rounding = rounding_of(who);
        *rounding = (int)below(&scheduler, 4);
        fesetround(fenv_of[*rounding]);
        return;
    }
    if (what < 14) {
        some_refusal(who);
        return;
    }
    if (what < 18 && (to = pick(DONE, READY)) != FLOW) { /* begins anew */
        if (actors[to].phase == DONE)
            CHECK(aco_result(actors[to].co) == actors[to].result);
        counts[DID_RESTART]++;
        CHECK_EQ(aco_restart(actors[to].co, act_out, &actors[to]), 0);
        actors[to].phase = READY;
        actors[to].rounding = TO_NEAREST;
        return;
    }
    if (what < 21 && (to = pick(DONE, READY)) != FLOW) {
        counts[DID_DESTROY]++;
        aco_destroy(actors[to].co);
        actors[to].phase = ABSENT;
    }
    if (what < 24 && (to = pick(ABSENT, ABSENT)) != FLOW)
        make(to);
    if (what < 29 && (to = pick(SUSPENDED, SUSPENDED)) != FLOW) {
        counts[DID_CANCEL]++;
        run_nested(who, to, NULL, 1);
        return;
    }
    if ((what < 60 || who == FLOW) && (to = pick(SUSPENDED, READY)) != FLOW) {
        counts[DID_RESUME]++;
        if (actors[to].phase == READY) {
            actors[to].place = IN_OTHER;
            if (ACO_DEBUG)
                value = NULL; /* it would be said each time */
        }
        run_nested(who, to, value, 0);
        return;
    }
    if (who == FLOW)
        return;
    if (what < 82 && (to = pick(SUSPENDED, READY)) != FLOW) {
        int refused;
        counts[DID_TRANSFER]++;
        actors[to].resumer = actor->resumer;
        actors[to].phase = RUNNING;
        actor->phase = SUSPENDED;
        actor->place = IN_OTHER;
        in_control = to;
        passed = NULL;
        refused = aco_yield_to(actors[to].co);
        if (refused)
            lost(aco_error_message());
        arrive(who, IN_OTHER, NULL);
        return;
    }
    counts[DID_YIELD]++;
    give_back_control(who, SUSPENDED);
    passed = value;
    if (value) {
        actor->place = IN_YIELD_VALUE;
        arrive(who, IN_YIELD_VALUE, aco_yield_value(value));
    } else {
        actor->place = IN_OTHER;
        aco_yield();
        arrive(who, IN_OTHER, NULL);
    }
}

static __attribute__((noinline)) void go_deeper(int who, int depth)
{
    actor_t *actor = &actors[who];
    unsigned kind = below(&scheduler, 20), size = 1 + below(&scheduler, kind < 12 ? 64 : kind < 19 ? 700 : 5000);
    unsigned char *bytes = __builtin_alloca(size);
    frame_t frame = {actor->frames, size, draw(&scheduler), bytes, actor};
    int defers = below(&scheduler, 3) == 0;
    fill(bytes, size, frame.seed);
    actor->frames = &frame;
    if (defers) {
        CHECK_EQ(aco_defer(deferred_in_frame, &frame), 0);
        actor->deferred++;
    }
    for (unsigned steps = 1 + below(&scheduler, 8); steps && operations_left; steps--) {
        operations_left--;
        if (depth < DEEPEST_FRAME && below(&scheduler, 4) == 0)
            go_deeper(who, depth + 1);
        else
            operate(who);
    }
    if (!is_filled(bytes, size, frame.seed))
        lost("a frame was changed");
    if (defers) {
        actor->to_be_called = 1;
        CHECK_EQ(aco_defer_pop(1), 0);
        CHECK_EQ(actor->to_be_called, 0);
    }
    actor->frames = frame.outward;
}

static void defer_at_the_end(actor_t *actor, void *result)
{
    int defers = (int)below(&scheduler, 3);
    for (int i = 0; i < defers; i++)
        aco_defer(deferred_call, actor);
    actor->deferred = actor->to_be_called = defers;
    counts[DID_END]++;
    actor->result = result;
}

static void set_passed_at_the_end(void *arg)
{
    actor_t *actor = arg;
    CHECK_EQ(actor->to_be_called, 0);
    give_back_control((int)(actor - actors), DONE);
    passed = actor->result;
}

static void *act_out(void *arg)
{
    actor_t *actor = arg;
    int who = (int)(actor - actors);
    actor->frames = NULL;
    actor->deferred = 0;
    arrive(who, IN_OTHER, NULL);
    while (operations_left && below(&scheduler, 6))
        go_deeper(who, 0);
    CHECK_EQ(aco_defer(set_passed_at_the_end, actor), 0); /* the last to be called */
    defer_at_the_end(actor, below(&scheduler, 2) ? some_value() : NULL);
    if (!actor->result && below(&scheduler, 2))
        aco_exit();
    return actor->result;
}

static void random_schedule(uint64_t seed, unsigned long operations)
{
    for (int i = 0; i < 4; i++) {
        fesetround(fenv_of[i]);
        third_of[i] = a_third();
    }
    fesetround(FE_TONEAREST);
    aco_thread_init(NULL); /* new coroutines begin with these control words */
    CHECK(third_of[UP] != third_of[DOWN]);
    scheduler.state = seed;
    operations_left = operations;
    for (int i = 0; i < 3 && SHARE_STACKS; i++)
        model_stacks[i] = aco_share_stack_new2(512 << 10, i != 2);
    while (operations_left && check_failures < 20) {
        operations_left--;
        operate(FLOW);
    }
    for (int i = 0; i < ACTORS; i++) {
        if (actors[i].phase == SUSPENDED)
            run_nested(FLOW, i, NULL, 1);
        if (actors[i].phase != ABSENT)
            aco_destroy(actors[i].co);
        actors[i].phase = ABSENT;
    }
    for (int i = 0; i < 3 && SHARE_STACKS; i++)
        aco_share_stack_destroy(model_stacks[i]);
    for (int i = 0; i < DID_CLEANUP + 1; i++)
        CHECK(counts[i] > 0);
    CHECK_EQ(living(), 0);
    fesetround(FE_TONEAREST);
}

int main(int argc, char **argv)
{
    const char *from_environment = getenv("ACORN_SEED");
    uint64_t seed = from_environment ? strtoull(from_environment, NULL, 0) : argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    unsigned long operations = argc > 2 ? strtoul(argv[2], NULL, 0) : 200000;
    fprintf(stderr, "coroutine_model: seed %" PRIu64 ", %lu operations\n", seed, operations);
    random_schedule(seed, operations);
    return check_result("coroutine_model");
}
