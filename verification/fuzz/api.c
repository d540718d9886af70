/* Sequences of API calls against a model of what include/aco.h promises. The input's bytes are operations. Whoever runs
 * takes the next one: the root context, a coroutine, a deferred call, the cleanup of a frame, the destructor of a key.
 * Before each call the model says whether it fails, and why; after it, who runs and what came back. The first
 * difference is printed, and the process aborts. No call is made that the contracts forbid. */
#define _GNU_SOURCE
#include "aco.h"
#include "aco/pool.h"
#define FUZZ_NAME "api"
#include "fuzz.h"

#include <fenv.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    COROUTINES = 16,
    MAIN = COROUTINES, /* the root context, in `actors` */
    KEYS = 4,
    DEFERRED = 12,
    DEPTH = 6, /* interpreters inside each other on one stack */
    DEEPEST = 12,
    STACK = UNDER_ASAN ? 256 << 10 : 128 << 10
};

/* ---- The model ---- */

typedef enum state { EMPTY = -1, READY = ACO_STATE_READY, RUNNING = ACO_STATE_RUNNING, RESUMING = ACO_STATE_RESUMING,
                     SUSPENDED = ACO_STATE_SUSPENDED, DONE = ACO_STATE_DONE } state_t;

/* What a deferred call gets. */
typedef struct deferred {
    int owner;
    unsigned frame; /* the serial number of the interpreter that deferred it */
    int is_live;    /* that one has not returned */
    int acts;       /* it takes operations from the input */
} deferred_t;

/* What the model knows of a live interpreter. */
typedef struct frame {
    unsigned serial;
    void *heap;
} frame_t;

typedef struct actor {
    aco_t *co;
    state_t state;
    int resumer, stack; /* stack: of `stacks`, or -1: private */
    int is_native, own_fp, own_exceptions;
    int rounding;       /* of its floating-point environment, if it has one of its own */
    int is_ending;      /* its cleanup runs */
    int is_cancelled;   /* because of aco_cancel() */
    unsigned newest;    /* the newest frame then: it and older ones are unwound */
    int restrained;     /* deferred calls that it makes by aco_defer_pop(), which must not yield */
    int again;          /* it was restarted: what it then finds is as new */
    int depth;
    void *arg, *received, *result, *slot;
    char name[ACO_NAME_SIZE];
    void *values[KEYS];
    int variable, destructed[KEYS]; /* destructed: calls of the key's destructor at this end */
    int destructing, deferred_late; /* calls of destructors; something was deferred after the first */
    deferred_t *deferred[DEFERRED];
    unsigned deferred_n;
    frame_t frames[DEPTH + 1];
    unsigned frames_n;
} actor_t;

static actor_t actors[COROUTINES + 1];
static int running;     /* who runs */
static void *came_back; /* what the one that yielded or ended handed to its resumer */
static struct {
    aco_local_key_t key;
    int is_live, has_destructor;
} keys[KEYS];
static aco_share_stack_t *stacks[2];
static aco_t *main_co;
static unsigned serial; /* of frames and of values, so that all are different */

ACO_LOCAL(int, variable);

/* ---- Messages ---- */

static int fuzz_actor(void)
{
    return running;
}

__attribute__((format(printf, 1, 2))) OUTLINE void trace(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%*s%2d%s: ", 2 * actors[running].depth, "", running, actors[running].is_ending ? " ending" : "");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

/* ---- Floating-point environments: the rounding direction stands for the whole ---- */

static const int directions[4] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};

/* The actor that owns the environment in force while `a` runs: a coroutine without one uses its resumer's. */
static actor_t *environment_of(actor_t *a)
{
    while (!a->own_fp)
        a = &actors[a->resumer];
    return a;
}

static int rounding_now(void)
{
    int direction = fegetround();
#ifdef __SSE__
    EXPECT((int)(__builtin_ia32_stmxcsr() >> 13 & 3) == (direction >> 10 & 3));
#endif
    return direction;
}

/* ---- Control arrives ---- */

static void expect_running(int me)
{
    actor_t *a = &actors[me];
    EXPECT(running == me);
    EXPECT(a->state == RUNNING);
    EXPECT(aco_is_in_main_co() == (me == MAIN));
    EXPECT(aco_get_co() == (me == MAIN ? main_co : a->co));
    EXPECT(rounding_now() == environment_of(a)->rounding);
    if (me != MAIN) {
        EXPECT(aco_get_arg() == a->arg && a->co->arg == a->arg);
        EXPECT(aco_state(a->co) == ACO_STATE_RUNNING && !a->co->is_end);
    }
}

static void forget_frames(actor_t *a)
{
    while (a->frames_n)
        free(a->frames[--a->frames_n].heap);
    a->depth = 0;
}

/* Keys' destructors were called at most four times each, in unknown order. A value stays only if it was set again each
 * time. */
static void expect_values_destroyed(actor_t *a)
{
    int left = 0;
    for (int i = 0; i < KEYS; i++) {
        left += keys[i].is_live && keys[i].has_destructor && a->values[i];
        a->destructed[i] = 0;
    }
    EXPECT(!left || a->destructing >= 4 || a->deferred_late);
    a->destructing = a->deferred_late = 0;
}

static void hand_back(actor_t *a, state_t state, void *value)
{
    a->state = state;
    came_back = value;
    running = a->resumer;
    actors[running].state = RUNNING;
}

/* A resumer has control again: the other one has yielded, which the model saw, or it has ended. */
static void settle(int me)
{
    actor_t *a = &actors[running];
    if (running != me) {
        EXPECT(a->is_ending && a->resumer == me);
        EXPECT(a->deferred_n == 0);
        EXPECT(!a->is_cancelled || a->frames_n == 0);
        forget_frames(a); /* of aco_exit() */
        expect_values_destroyed(a);
        a->is_ending = a->is_cancelled = a->restrained = 0;
        hand_back(a, DONE, a->result);
        EXPECT(aco_state(a->co) == ACO_STATE_DONE && a->co->is_end == 1);
        EXPECT(aco_result(a->co) == a->result);
    }
    expect_running(me);
}

static void hand_over(int me, int k, void *value)
{
    actors[me].state = RESUMING;
    actors[k].state = RUNNING;
    actors[k].resumer = me;
    actors[k].received = value;
    running = k;
}

/* The errno with which a resume of `k` by `me` fails. */
static int resume_error(int me, int k)
{
    switch (actors[k].state) {
    case EMPTY:
        return EINVAL;
    case DONE:
        return ESRCH;
    case RUNNING:
    case RESUMING:
        return EBUSY;
    default:
        return k == me ? EBUSY : 0;
    }
}

static void *new_value(unsigned byte)
{
    return byte & 1 ? NULL : (void *)(uintptr_t)(++serial << 4);
}

/* ---- Frames and cleanup ---- */

static void interpret(int me);

static int may_yield(const actor_t *a)
{
    return a->co && !a->is_ending && !a->restrained;
}

/* A frame that is unwound: those further in are freed, except interpreters that run in its cleanup. */
static void expect_innermost(const actor_t *a, unsigned number)
{
    for (unsigned i = a->frames_n; i-- > 0;)
        if (a->frames[i].serial == number)
            return;
        else
            EXPECT(a->frames[i].serial > a->newest);
}

static void deferred_call(void *arg)
{
    deferred_t *d = arg;
    actor_t *a = &actors[d->owner];
    int me = d->owner, acts = d->acts;
    TRACE("deferred call of frame %u", d->frame);
    expect_running(me);
    EXPECT(a->deferred_n > 0 && a->deferred[a->deferred_n - 1] == d);
    a->deferred_n--;
    if (a->is_cancelled && d->is_live && !a->restrained) /* not by aco_defer_pop() */
        expect_innermost(a, d->frame);
    free(d);
    if (acts && a->depth < DEPTH)
        interpret(me);
}

static void destructor_call(int i, void *value)
{
    int me = running;
    actor_t *a = &actors[me];
    TRACE("destructor of key %d", i);
    expect_running(me);
    EXPECT(a->is_ending && (a->deferred_n == 0 || a->deferred_late));
    a->destructing++;
    EXPECT(keys[i].is_live && keys[i].has_destructor && value && value == a->values[i]);
    a->values[i] = NULL;
    EXPECT(++a->destructed[i] <= 4);
    EXPECT(aco_get_local(keys[i].key) == NULL);
    if ((uintptr_t)value & 8 && a->depth < DEPTH)
        interpret(me);
}

static void destructor_0(void *value) { destructor_call(0, value); }
static void destructor_1(void *value) { destructor_call(1, value); }
static void destructor_2(void *value) { destructor_call(2, value); }
static void destructor_3(void *value) { destructor_call(3, value); }
static void (*const destructors[KEYS])(void *) = {destructor_0, destructor_1, destructor_2, destructor_3};

/* On an interpreter's own stack. */
typedef struct stay {
    int me, depth, acts;
    unsigned number;
} stay_t;

static stay_t enter(int me)
{
    actor_t *a = &actors[me];
    unsigned byte = next();
    stay_t stay = {me, a->depth++, byte % 4 == 3, ++serial};
    frame_t frame = {stay.number, byte & 4 ? malloc(1 + byte) : NULL};
    EXPECT(a->frames_n <= DEPTH);
    a->frames[a->frames_n++] = frame;
    return stay;
}

/* The interpreter returns, or its frame is unwound. */
static void leave(stay_t *stay)
{
    actor_t *a = &actors[stay->me];
    TRACE("frame %u ends", stay->number);
    EXPECT(running == stay->me);
    EXPECT(a->frames_n > 0 && a->frames[a->frames_n - 1].serial == stay->number);
    if (a->is_cancelled && stay->number <= a->newest)
        for (unsigned i = 0; i < a->deferred_n; i++)
            EXPECT(a->deferred[i]->frame != stay->number);
    for (unsigned i = 0; i < a->deferred_n; i++)
        a->deferred[i]->is_live &= a->deferred[i]->frame != stay->number;
    free(a->frames[--a->frames_n].heap);
    a->depth = stay->depth;
    if (stay->acts && !is_over())
        interpret(stay->me);
}

/* ---- Entry functions ---- */

/* Restarted: what the library kept, where it may. */
static void adopt(actor_t *a)
{
    for (int i = 0; i < KEYS; i++) {
        void *value = keys[i].is_live ? aco_get_local(keys[i].key) : NULL;
        EXPECT(!value);
        a->values[i] = value;
    }
    EXPECT(*variable() == 0);
    a->variable = *variable();
    a->again = 0;
}

static int begin(void *arg)
{
    int me = running;
    TRACE("begins");
    EXPECT(me != MAIN && arg == actors[me].arg);
    expect_running(me);
    if (actors[me].again)
        adopt(&actors[me]);
    interpret(me);
    expect_running(me);
    EXPECT(actors[me].frames_n == 0);
    return me;
}

static void *entry(void *arg)
{
    actor_t *a = &actors[begin(arg)];
    a->result = new_value(next());
    a->is_ending = 1;
    TRACE("returns %p", a->result);
    return a->result;
}

static void entry_libaco(void)
{
    actor_t *a = &actors[begin(aco_get_arg())];
    a->result = NULL;
    a->is_ending = 1;
    aco_exit();
}

/* ---- Operations: making and destroying ---- */

static void *new_arg(void)
{
    return new_value(0);
}

static int choose(void)
{
    return (int)(next() % COROUTINES);
}

static aco_share_stack_t *share_stack(int i)
{
    if (!stacks[i])
        stacks[i] = aco_share_stack_new2(STACK + 4096 * (size_t)i, i == 0);
    return stacks[i];
}

static void made(int k, aco_t *co, int stack, unsigned flags, void *arg, int is_native)
{
    actor_t *a = &actors[k];
    memset(a, 0, sizeof *a);
    a->co = co;
    a->state = READY;
    a->stack = stack;
    a->arg = arg;
    a->is_native = is_native;
    a->own_fp = !is_native || (flags & ACO_OWN_FP);
    a->own_exceptions = (flags & ACO_OWN_EXCEPTIONS) != 0;
    a->rounding = FE_TONEAREST;
    EXPECT(aco_state(co) == ACO_STATE_READY && !co->is_end && co->arg == arg);
}

/* Within bounds, and more than there is; a 32-bit process may have its bound. */
#if SIZE_MAX > UINT32_MAX
#define TOO_MUCH (SIZE_MAX / 4)
#define TOO_MUCH_ERROR ENOMEM
#else
#define TOO_MUCH SIZE_MAX
#define TOO_MUCH_ERROR EINVAL
#endif

static const struct {
    unsigned flags;
    size_t size; /* of the stack, or of the save area on a share stack */
    int error;
} wishes[16] = {
    {0, 0, 0}, {ACO_OWN_FP, 0, 0}, {ACO_SHARED_FP, 0, 0}, {ACO_OWN_EXCEPTIONS, 0, 0},
    {ACO_OWN_FP | ACO_OWN_EXCEPTIONS, STACK, 0}, {ACO_OWN_FP, STACK, 0}, {0, STACK + 1, 0},
    {ACO_OWN_FP, STACK + 12345, 0}, {0, 256 << 10, 0}, {ACO_OWN_FP | ACO_SHARED_FP, 0, EINVAL}, {256, 0, EINVAL},
    {0, SIZE_MAX / 4 + 1, EINVAL}, {0, TOO_MUCH, TOO_MUCH_ERROR}, {ACO_OWN_EXCEPTIONS, 300 << 10, 0},
    {ACO_SHARED_FP, 0, 0}, {0, 0, 0},
};

/* Of 48 bytes: a name that fits, and one that is cut. */
static const char long_name[] = "a coroutine whose name is longer than it may be.";

static const char *choose_name(unsigned byte)
{
    return byte & 1 ? NULL : long_name + byte % 48;
}

static void keep_name(actor_t *a, const char *name)
{
    memset(a->name, 0, sizeof a->name);
    for (int i = 0; name && name[i] && i < ACO_NAME_SIZE - 1; i++)
        a->name[i] = name[i];
}

OUTLINE void op_new(int me)
{
    int k = choose(), stack, error;
    unsigned wish = next(), extras = next();
    aco_options_t o = {0};
    aco_t *co;
    if (actors[k].state != EMPTY)
        return;
    error = wishes[wish % 16].error;
    stack = FUZZ_COPYING && wish & 16 ? (int)(wish >> 5) % 2 : -1;
    o.flags = wishes[wish % 16].flags | (wish & 64 ? (unsigned)ACO_NO_GUARD : 0);
    o.name = choose_name(extras);
    if (stack < 0) {
        o.stack_size = wishes[wish % 16].size;
    } else {
        o.stack = share_stack(stack);
        o.save_size = wishes[wish % 16].size;
        error = o.flags & ACO_NO_GUARD ? EINVAL : error;
    }
    if (extras == 255)
        o.aco__reserved[1] = &o, error = EINVAL;
    if (extras == 253)
        o.aco__reserved0 = 1, error = EINVAL;
    actors[k].arg = new_arg();
    co = aco_new(extras == 251 ? NULL : entry, actors[k].arg, wish == 0 && extras == 1 ? NULL : &o);
    TRACE("new %d, flags %u, stack %d, size %zu: %p", k, o.flags, stack, wishes[wish % 16].size, (void *)co);
    expect(__LINE__, "aco_new", co == NULL, extras == 251 ? EINVAL : error);
    if (!co)
        return;
    made(k, co, stack, o.flags, actors[k].arg, 1);
    keep_name(&actors[k], o.name);
    expect_running(me);
}

OUTLINE void op_create(int me)
{
    int k = choose(), stack = next() % 2;
    size_t save = next();
    if (!FUZZ_COPYING || actors[k].state != EMPTY)
        return;
    if (!main_co) {
        main_co = aco_create(NULL, NULL, 0, NULL, NULL);
        EXPECT(aco_is_main_co(main_co));
    }
    actors[k].arg = new_arg();
    TRACE("create %d on stack %d", k, stack);
    made(k, aco_create(main_co, share_stack(stack), save * 32, entry_libaco, actors[k].arg), stack, 0, actors[k].arg,
         0);
    expect_running(me);
}

static void vanish(int k)
{
    actor_t *a = &actors[k];
    forget_frames(a);
    while (a->deferred_n)
        free(a->deferred[--a->deferred_n]);
    memset(a, 0, sizeof *a);
    a->state = EMPTY;
}

static int may_destroy(int k)
{
    return actors[k].state == READY || actors[k].state == SUSPENDED || actors[k].state == DONE;
}

OUTLINE void op_destroy(int me)
{
    int k = choose();
    if (!may_destroy(k))
        return;
    TRACE("destroy %d", k);
    aco_destroy(actors[k].co);
    vanish(k);
    expect_running(me);
}

static void renew(actor_t *a, void *arg)
{
    a->state = READY;
    a->arg = arg;
    a->result = NULL;
    a->rounding = FE_TONEAREST;
    a->again = 1;
    EXPECT(aco_state(a->co) == ACO_STATE_READY && !a->co->is_end && a->co->arg == arg);
    EXPECT(!aco_slot(a->co));
    a->slot = aco_slot(a->co);
}

OUTLINE void op_restart(int me)
{
    int k = choose();
    actor_t *a = &actors[k];
    void *arg = new_arg();
    int error = a->state == EMPTY || !a->is_native ? EINVAL : a->state != READY && a->state != DONE ? EBUSY : 0;
    TRACE("restart %d", k);
    EXPECT_INT(aco_restart, (a->co, entry, arg), error);
    if (!error)
        renew(a, arg);
    expect_running(me);
}

OUTLINE void op_reset(int me)
{
    int k = choose();
    actor_t *a = &actors[k];
    void *arg = new_arg();
    if (a->is_native || (a->state != READY && a->state != DONE))
        return;
    TRACE("reset %d", k);
    aco_reset(a->co, entry_libaco, arg);
    renew(a, arg);
    expect_running(me);
}

/* ---- Operations: switching ---- */

OUTLINE void op_send(int me)
{
    int k = choose(), error = resume_error(me, k);
    void *value = new_value(next()), *got;
    if (ACO_DEBUG && actors[k].state == READY)
        value = NULL; /* else there is a warning, each time */
    TRACE("send %d %p, errno %d", k, value, error);
    if (error) {
        EXPECT_POINTER(aco_send, (actors[k].co, value), error);
        expect_running(me);
        return;
    }
    hand_over(me, k, value);
    got = aco_send(actors[k].co, value);
    settle(me);
    TRACE("send %d gave %p", k, got);
    EXPECT(got == came_back);
}

OUTLINE void op_resume(int me)
{
    int k = choose();
    if (resume_error(me, k))
        return;
    TRACE("resume %d", k);
    hand_over(me, k, NULL);
    aco_resume(actors[k].co);
    settle(me);
    TRACE("resume %d came back", k);
}

OUTLINE void op_yield_value(int me)
{
    actor_t *a = &actors[me];
    void *value = new_value(next()), *got;
    if (me == MAIN) {
        EXPECT_POINTER(aco_yield_value, (value), EPERM);
        return;
    }
    if (!may_yield(a))
        return;
    TRACE("yield_value %p", value);
    hand_back(a, SUSPENDED, value);
    got = aco_yield_value(value);
    expect_running(me);
    TRACE("was sent %p", got);
    EXPECT(got == a->received);
}

OUTLINE void op_yield(int me)
{
    actor_t *a = &actors[me];
    if (!may_yield(a))
        return;
    TRACE("yield");
    hand_back(a, SUSPENDED, NULL);
    if (next() % 2)
        aco_yield();
    else
        aco_yield1(aco_co());
    expect_running(me);
}

static int transfer_error(int me, int k)
{
    actor_t *a = &actors[me];
    if (me == MAIN || a->is_ending)
        return EPERM;
    if (k == me)
        return 0;
    if (resume_error(me, k))
        return resume_error(me, k);
    return actors[k].own_exceptions && !a->own_exceptions ? EPERM : 0;
}

OUTLINE void op_yield_to(int me)
{
    actor_t *a = &actors[me];
    int k = choose(), error = transfer_error(me, k);
    if (a->restrained && !a->is_ending)
        return;
    TRACE("yield_to %d, errno %d", k, error);
    if (!error && k != me) {
        int resumer = a->resumer;
        hand_back(a, SUSPENDED, NULL);
        hand_over(resumer, k, NULL);
    }
    EXPECT_INT(aco_yield_to, (actors[k].co), error);
    expect_running(me);
}

static int cancel_error(int me, int k)
{
    return actors[k].state == DONE ? 0 : resume_error(me, k);
}

static void cancel(int me, int k)
{
    actor_t *a = &actors[k];
    int error = cancel_error(me, k);
    TRACE("cancel %d, errno %d", k, error);
    if (a->state == SUSPENDED) {
        a->is_ending = a->is_cancelled = 1;
        a->newest = serial;
        a->result = NULL;
        hand_over(me, k, NULL);
    } else if (a->state == READY) {
        a->state = DONE;
        a->result = NULL;
    }
    EXPECT_INT(aco_cancel, (a->co), error);
    settle(me);
    TRACE("cancel %d came back", k);
    EXPECT(error || (aco_state(a->co) == ACO_STATE_DONE && a->co->is_end && aco_result(a->co) == a->result));
}

OUTLINE void op_cancel(int me)
{
    cancel(me, choose());
}

OUTLINE void op_exit(int me)
{
    actor_t *a = &actors[me];
    if (!may_yield(a))
        return;
    TRACE("exit");
    a->result = NULL;
    a->is_ending = 1;
    if (next() % 2)
        aco_exit();
    else
        aco_exit1(aco_get_co());
}

/* Frames with known bytes between two interpreters. */
OUTLINE void deep(int me, unsigned more, unsigned seed)
{
    volatile unsigned char bytes[96];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(seed * 131 + i * 7 + more);
    if (more)
        deep(me, more - 1, seed + 1);
    else
        interpret(me);
    for (unsigned i = 0; i < sizeof bytes; i++)
        EXPECT(bytes[i] == (unsigned char)(seed * 131 + i * 7 + more));
}

OUTLINE void op_recurse(int me)
{
    unsigned byte = next();
    if (actors[me].depth < DEPTH)
        deep(me, byte % DEEPEST, byte);
}

/* ---- Operations: deferred calls ---- */

/* In the interpreter's own frame, or in one that returns at once. */
INLINE void defer_here(int me, unsigned frame, int acts)
{
    actor_t *a = &actors[me];
    deferred_t *d;
    if (a->deferred_n == DEFERRED)
        return;
    if (me == MAIN) {
        EXPECT_INT(aco_defer, (deferred_call, NULL), EPERM);
        return;
    }
    d = malloc(sizeof *d);
    EXPECT(d);
    d->owner = me;
    d->frame = frame;
    d->is_live = frame != 0;
    d->acts = acts;
    TRACE("defer in frame %u", frame);
    a->deferred[a->deferred_n++] = d;
    a->deferred_late |= a->destructing;
    EXPECT_INT(aco_defer, (deferred_call, d), 0);
}

OUTLINE void defer_in_a_callee(int me, int acts)
{
    defer_here(me, 0, acts);
}

OUTLINE void op_defer_pop(int me)
{
    actor_t *a = &actors[me];
    int call = next() % 2, error = me == MAIN ? EPERM : a->deferred_n == 0 ? ENOENT : 0;
    TRACE("defer_pop, errno %d", error);
    if (!error && !call)
        free(a->deferred[--a->deferred_n]);
    a->restrained += call;
    EXPECT_INT(aco_defer_pop, (call), error);
    a->restrained -= call;
    expect_running(me);
}

/* ---- Operations: names, slots, locals ---- */

OUTLINE void op_set_name(int me)
{
    actor_t *a = &actors[choose()];
    const char *name = choose_name(next());
    EXPECT_INT(aco_set_name, (a->co, name), !a->co || !name ? EINVAL : 0);
    if (a->co && name)
        keep_name(a, name);
    expect_running(me);
}

OUTLINE void op_slot(int me)
{
    int k = (int)next() % (COROUTINES + 1);
    void *value = new_value(next());
    aco_t *co = actors[k].co;
    if (k == MAIN || actors[k].state == EMPTY) {
        k = k == MAIN && main_co ? MAIN : me;
        co = k == MAIN ? main_co : NULL;
    }
    EXPECT(aco_slot(co) == actors[k].slot);
    EXPECT_INT(aco_set_slot, (co, value), 0);
    actors[k].slot = value;
    EXPECT(aco_slot(co) == value);
}

/* Makes a key, or deletes it: then no coroutine has a value for it any more. */
OUTLINE void op_key(int me)
{
    unsigned byte = next();
    int i = byte % KEYS;
    if (!keys[i].is_live) {
        keys[i].has_destructor = (byte >> 2) % 4 != 0;
        EXPECT_INT(aco_local_key_create, (&keys[i].key, keys[i].has_destructor ? destructors[i] : NULL), 0);
        keys[i].is_live = 1;
        for (int k = 0; k < COROUTINES; k++)
            actors[k].destructed[i] = 0;
    } else if (byte >= 160) {
        EXPECT_INT(aco_local_key_delete, (keys[i].key), 0);
        EXPECT_INT(aco_local_key_delete, (keys[i].key), EINVAL);
        keys[i].is_live = 0;
        for (int k = 0; k <= MAIN; k++)
            actors[k].values[i] = NULL;
    }
    expect_running(me);
}

OUTLINE void op_local(int me)
{
    unsigned byte = next();
    int i = byte % KEYS;
    void *value = new_value(byte >> 2);
    if (byte & 128 && value)
        value = (void *)((uintptr_t)value | 8);
    if (actors[me].destructing && !keys[i].has_destructor && !aco_get_local(keys[i].key))
        actors[me].values[i] = NULL; /* the walk over the values has passed it */
    EXPECT(aco_get_local(keys[i].key) == actors[me].values[i]);
    if (byte & 64)
        return;
    TRACE("set_local %d %p", i, value);
    EXPECT_INT(aco_set_local, (keys[i].key, value), keys[i].is_live ? 0 : EINVAL);
    if (keys[i].is_live)
        actors[me].values[i] = value;
    EXPECT(aco_get_local(keys[i].key) == actors[me].values[i]);
}

OUTLINE void op_variable(int me)
{
    EXPECT(*variable() == actors[me].variable);
    *variable() = actors[me].variable = (int)++serial;
}

OUTLINE void op_round(int me)
{
    int direction = directions[next() % 4];
    fesetround(direction);
    environment_of(&actors[me])->rounding = direction;
    expect_running(me);
}

/* ---- Operations: asking ---- */

/* What must hold of any coroutine at any time. */
static void look_at(const actor_t *a)
{
    void *lo = NULL, *hi = NULL;
    EXPECT(aco_state(a->co) == (aco_state_t)a->state);
    EXPECT(a->co->is_end == (a->state == DONE));
    EXPECT(strcmp(aco_name(a->co), a->name) == 0);
    EXPECT(aco_slot(a->co) == a->slot);
    EXPECT(!aco_is_main_co(a->co));
    if (a->state == DONE)
        EXPECT(aco_result(a->co) == a->result);
    else
        EXPECT_POINTER(aco_result, (a->co), EBUSY);
    EXPECT_INT(aco_stack_bounds, (a->co, &lo, &hi), 0);
    EXPECT((char *)hi - (char *)lo >= STACK || a->stack < 0);
    if (a->state == RUNNING)
        EXPECT((char *)lo < (char *)__builtin_frame_address(0) && (char *)__builtin_frame_address(0) < (char *)hi);
    if (a->stack >= 0) {
        EXPECT(a->co->share_stack == stacks[a->stack]);
        EXPECT(a->co->main_co == (a->is_native ? NULL : main_co));
        EXPECT(a->state != RUNNING || stacks[a->stack]->owner == a->co);
        EXPECT_INT(aco_stack_high_water, (a->co), EINVAL);
        EXPECT_INT(aco_stack_trim, (a->co), EINVAL);
    } else {
        ptrdiff_t deep = aco_stack_high_water(a->co);
        EXPECT(deep > 0 && deep <= (char *)hi - (char *)lo);
        EXPECT_INT(aco_stack_trim, (a->co), a->state == RUNNING || a->state == RESUMING ? EBUSY : 0);
        EXPECT(a->state == RUNNING || aco_stack_high_water(a->co) <= deep); /* who runs may go deeper any time */
    }
}

OUTLINE void op_look(int me)
{
    for (int k = 0; k < COROUTINES; k++)
        if (actors[k].state != EMPTY)
            look_at(&actors[k]);
    for (int i = 0; i < 2; i++)
        if (stacks[i] && stacks[i]->owner) {
            int found = 0;
            for (int k = 0; k < COROUTINES; k++)
                found += actors[k].co == stacks[i]->owner && actors[k].stack == i && actors[k].state != READY &&
                         actors[k].state != DONE;
            EXPECT(found == 1);
        }
    if (main_co)
        EXPECT(aco_state(main_co) == (me == MAIN ? ACO_STATE_RUNNING : ACO_STATE_RESUMING));
}

typedef struct census {
    unsigned seen, calls, stop;
} census_t;

static int count(aco_t *co, void *arg)
{
    census_t *census = arg;
    for (int k = 0; k < COROUTINES; k++)
        if (actors[k].co == co)
            census->seen |= 1u << k;
    census->calls++;
    return census->stop && census->calls == census->stop ? (int)census->stop : 0;
}

OUTLINE void op_each(void)
{
    census_t census = {0, 0, next() % 8};
    unsigned live = 0, n = 0;
    int got = aco_each(count, &census);
    for (int k = 0; k < COROUTINES; k++)
        if (actors[k].state != EMPTY)
            live |= 1u << k, n++;
    EXPECT((census.seen & ~live) == 0);
    if (census.stop && census.stop <= n) {
        EXPECT(got == (int)census.stop && census.calls == census.stop);
    } else {
        EXPECT(got == 0 && census.calls == n && census.seen == live);
    }
}

/* Calls that fail whoever runs. */
OUTLINE void op_fails(int me)
{
    void *lo, *hi;
    aco_local_key_t bad = {ACO_LOCAL_KEYS, 1};
    EXPECT_POINTER(aco_send, (NULL, NULL), EINVAL);
    EXPECT_POINTER(aco_result, (NULL), EINVAL);
    EXPECT_INT(aco_cancel, (NULL), EINVAL);
    EXPECT_INT(aco_restart, (NULL, entry, NULL), EINVAL);
    EXPECT_INT(aco_stack_bounds, (NULL, &lo, &hi), EINVAL);
    EXPECT_INT(aco_local_key_delete, (bad), EINVAL);
    EXPECT_INT(aco_set_local, (bad, &bad), EINVAL);
    EXPECT(aco_get_local(bad) == NULL);
    EXPECT_INT(aco_yield_to, (NULL), me == MAIN || actors[me].is_ending ? EPERM : EINVAL);
    EXPECT_INT(aco_defer, (NULL, NULL), me == MAIN ? EPERM : EINVAL);
    if (actors[me].co && actors[me].is_native)
        EXPECT_INT(aco_restart, (actors[me].co, NULL, NULL), EINVAL);
    if (main_co) {
        EXPECT_POINTER(aco_send, (main_co, NULL), EINVAL);
        EXPECT_INT(aco_cancel, (main_co), EINVAL);
        EXPECT_INT(aco_restart, (main_co, entry, NULL), EINVAL);
        EXPECT_INT(aco_stack_bounds, (main_co, &lo, &hi), EINVAL);
        EXPECT_INT(aco_set_name, (main_co, ""), EINVAL);
        if (me != MAIN && !actors[me].is_ending)
            EXPECT_INT(aco_yield_to, (main_co), EINVAL);
    }
    expect_running(me);
}

/* ---- The interpreter ---- */

/* One operation. 0: the interpreter returns. */
INLINE int operate(int me, unsigned op, unsigned frame)
{
    switch (op % 32) {
    case 0: case 1: op_new(me); break;
    case 2: op_create(me); break;
    case 3: case 4: case 5: op_send(me); break;
    case 6: op_resume(me); break;
    case 7: case 8: op_yield_value(me); break;
    case 9: op_yield(me); break;
    case 10: case 11: op_yield_to(me); break;
    case 12: case 13: op_cancel(me); break;
    case 14: op_destroy(me); break;
    case 15: op_restart(me); break;
    case 16: op_reset(me); break;
    case 17: op_exit(me); break;
    case 18: case 19: defer_here(me, frame, (op >> 5) & 1); break;
    case 20: defer_in_a_callee(me, (op >> 5) & 1); break;
    case 21: op_defer_pop(me); break;
    case 22: case 23: op_recurse(me); break;
    case 24: op_set_name(me); break;
    case 25: op_slot(me); break;
    case 26: op_key(me); break;
    case 27: op_local(me); break;
    case 28: op_variable(me); break;
    case 29: op_round(me); break;
    case 30:
        if (op >> 5 & 1)
            op_each();
        else if (op >> 6 & 1)
            op_fails(me);
        else
            op_look(me);
        break;
    default: return 0;
    }
    return 1;
}

/* The deferred calls belong to the frames of this function. */
OUTLINE void interpret(int me)
{
    __attribute__((cleanup(leave))) stay_t stay = enter(me);
    unsigned before = stay.number;
    while (!is_over() && operate(me, next(), stay.number)) {
    }
    EXPECT(stay.number == before && stay.me == me);
}

/* ---- One input ---- */

static void start(void)
{
    static int is_first = 1;
    if (is_first) {
        is_first = 0;
        aco_thread_init(NULL);
    }
    for (int k = 0; k <= MAIN; k++)
        actors[k].state = EMPTY;
    running = MAIN;
    actors[MAIN].state = RUNNING;
    actors[MAIN].own_fp = 1;
    actors[MAIN].rounding = FE_TONEAREST;
    serial = 0;
}

static int visited(aco_t *co, void *arg)
{
    (void)co, (void)arg;
    return 1;
}

/* Everything is given back; then there is no coroutine left. */
static void finish(int cancels)
{
    for (int k = 0; k < COROUTINES; k++) {
        if (actors[k].state == EMPTY)
            continue;
        if (cancels)
            cancel(MAIN, k);
        aco_destroy(actors[k].co);
        vanish(k);
    }
    EXPECT(aco_each(visited, NULL) == 0);
    for (int i = 0; i < KEYS; i++) {
        if (keys[i].is_live)
            EXPECT_INT(aco_local_key_delete, (keys[i].key), 0);
        keys[i].is_live = 0;
        actors[MAIN].values[i] = NULL;
    }
    for (int i = 0; i < 2; i++) {
        if (stacks[i])
            aco_share_stack_destroy(stacks[i]);
        stacks[i] = NULL;
    }
    if (main_co)
        aco_destroy(main_co);
    main_co = NULL;
    EXPECT(aco_get_co() == NULL);
    fesetround(FE_TONEAREST);
    aco_set_slot(NULL, NULL);
    actors[MAIN].slot = NULL;
}

static void fuzz_input(void)
{
    int cancels;
    start();
    cancels = next() & 1;
    while (!is_over())
        interpret(MAIN);
    finish(cancels);
}
