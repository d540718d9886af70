/* Two promises of include/aco/scheduler.h, over all orders:
 *   - a task that has ended is a coroutine that is done until it is joined, detached, destroyed or restarted; only an
 *     ended task is taken for one. A random walk makes tasks and plain coroutines on the blocks that the others leave,
 *     and does with each of them, in any order, everything that a program may; a model says what each call returns.
 *   - an element that is NULL: sent, it fails in each call and changes nothing, unless elements have no bytes;
 *     received, it is dropped.
 *
 * scheduler_ends [seed [operations]] */
#include "fails.h"
#include "random.h"
#include "tasks.h"

#include <inttypes.h>

static random_t draws;

static int pick(int limit)
{
    return (int)below(&draws, (unsigned)limit);
}

/* ---- All ends ---- */

enum { SLOTS = 8 };

typedef enum what { NOTHING, READY, SUSPENDED, DONE, TASK, ENDED_TASK } what_t;

static struct slot {
    aco_t *co;
    what_t what;
    int is_detached, is_joined, deferred;
    void *result;
} slots[SLOTS];

static struct slot *any(void)
{
    return &slots[pick(SLOTS)];
}

static void *ends_somehow(struct slot *s)
{
    int exits = pick(3) == 0;
    s->result = exits ? NULL : s;
    if (s->what == TASK)
        s->what = s->is_detached || s->is_joined ? NOTHING : ENDED_TASK;
    else
        s->what = DONE;
    if (exits)
        aco_exit();
    return s;
}

static void count(void *deferred)
{
    ++*(int *)deferred;
}

static void *coroutine(void *arg)
{
    struct slot *s = arg;
    s->deferred = 0;
    if (pick(4) == 0)
        CHECK_EQ(aco_defer(count, &s->deferred), 0);
    while (pick(3)) {
        s->what = SUSPENDED;
        aco_yield_value(s);
    }
    return ends_somehow(s);
}

static void *task(void *arg)
{
    struct slot *s = arg;
    if (pick(4) == 0)
        CHECK_EQ(aco_defer(count, &s->deferred), 0);
    while (pick(3))
        CHECK_EQ(aco_task_yield(), 0);
    return ends_somehow(s);
}

static const aco_options_t *options(aco_options_t *o, int for_task)
{
    static const aco_options_t none;
    *o = none;
    if (pick(2))
        return NULL;
    o->name = pick(2) ? "one" : NULL;
    o->stack_size = pick(4) ? 0 : (size_t)256 << 10 << pick(2);
    o->flags = (pick(4) ? 0 : ACO_NO_GUARD) | (pick(4) ? 0 : ACO_OWN_EXCEPTIONS) |
               (OWN_FP_POSSIBLE && pick(4) == 0 ? ACO_OWN_FP : 0) | (for_task && pick(4) == 0 ? ACO_DETACHED : 0);
    return o;
}

static void make(struct slot *s)
{
    aco_options_t o;
    int makes_task = pick(2);
    const aco_options_t *how = options(&o, makes_task);
    memset(s, 0, sizeof *s);
    s->what = makes_task ? TASK : READY;
    s->is_detached = how && (how->flags & ACO_DETACHED) != 0;
    s->co = makes_task ? aco_spawn(task, s, how) : aco_new(coroutine, s, how);
    CHECK(s->co != NULL);
}

#define RESULT(what, error)                                                                                            \
    do {                                                                                                               \
        int check_error = (error), check_result;                                                                       \
        errno = 0;                                                                                                     \
        check_result = (what);                                                                                         \
        CHECK_EQ(check_result, check_error ? -1 : 0);                                                                  \
        CHECK_EQ(check_error ? errno : 0, check_error);                                                                \
    } while (0)

static void join(struct slot *s, int in_task)
{
    void *result = &draws;
    switch (s->what) {
    case NOTHING:
        return;
    case ENDED_TASK:
        RESULT(aco_join(s->co, &result), 0);
        CHECK(result == s->result);
        s->what = NOTHING;
        return;
    case TASK:
        if (s->is_detached || s->is_joined || !in_task) {
            RESULT(aco_join(s->co, &result), s->is_detached ? EINVAL : s->is_joined ? EBUSY : EPERM);
            return;
        }
        s->is_joined = 1;
        RESULT(aco_join(s->co, &result), 0);
        CHECK(result == s || result == NULL);
        return; /* the slot may have another task by now */
    default:
        RESULT(aco_join(s->co, &result), EINVAL);
        CHECK(result == &draws);
    }
}

static void detach(struct slot *s)
{
    if (s->what == TASK) {
        RESULT(aco_detach(s->co), s->is_detached ? EINVAL : s->is_joined ? EBUSY : 0);
        s->is_detached |= !s->is_joined;
    } else {
        RESULT(aco_detach(s->co), s->what == ENDED_TASK ? 0 : EINVAL);
        if (s->what == ENDED_TASK)
            s->what = NOTHING;
    }
}

static void destroy(struct slot *s)
{
    if (s->what == TASK)
        return;
    if (s->what == SUSPENDED)
        CHECK_EQ(aco_cancel(s->co), 0);
    aco_destroy(s->co);
    s->what = NOTHING;
}

static void restart(struct slot *s)
{
    int error = s->what == TASK ? EPERM : s->what == SUSPENDED ? EBUSY : 0;
    RESULT(aco_restart(s->co, coroutine, s), error);
    if (!error)
        s->what = READY;
}

static void resume(struct slot *s)
{
    int error = s->what == TASK ? EPERM : s->what == DONE || s->what == ENDED_TASK ? ESRCH : 0;
    void *got;
    errno = 0;
    got = aco_send(s->co, NULL);
    CHECK(got == (error ? ACO_ERROR : s->what == DONE ? s->result : s));
    CHECK_EQ(error ? errno : 0, error);
}

static void cancel(struct slot *s)
{
    RESULT(aco_cancel(s->co), s->what == TASK ? EPERM : 0);
    if (s->what == READY || s->what == SUSPENDED) {
        s->what = DONE;
        s->result = NULL;
    }
}

static void look_at(const struct slot *s)
{
    int is_done = s->what == DONE || s->what == ENDED_TASK;
    if (s->what == NOTHING)
        return;
    CHECK_EQ(aco_state(s->co) == ACO_STATE_DONE, is_done);
    CHECK(aco_result(s->co) == (is_done ? s->result : ACO_ERROR));
}

static void operate(int in_task)
{
    struct slot *s = any();
    look_at(s);
    if (s->what == NOTHING) {
        make(s);
        return;
    }
    switch (pick(9)) {
    case 0: case 1: join(s, in_task); break;
    case 2: detach(s); break;
    case 3: RESULT(aco_unpark(s->co), s->what == TASK ? 0 : s->what == ENDED_TASK ? ESRCH : EINVAL); break;
    case 4: destroy(s); break;
    case 5: restart(s); break;
    case 6: resume(s); break;
    case 7: cancel(s); break;
    default: if (in_task) CHECK_EQ(aco_task_yield(), 0);
    }
}

static void *actor(void *operations)
{
    for (int i = 0; i < *(int *)operations; i++)
        operate(1);
    return NULL;
}

static void all_ends(long operations)
{
    int each = 20;
    for (; operations > 0 && !check_failures; operations -= 3 * each) {
        if (pick(2))
            aco_spawn(actor, &each, &(aco_options_t){.flags = ACO_DETACHED});
        if (pick(2))
            aco_spawn(actor, &each, &(aco_options_t){.flags = ACO_DETACHED, .name = "actor"});
        for (int i = 0; i < each; i++)
            operate(0);
        if (pick(2))
            CHECK_EQ(aco_run(), 0);
    }
    CHECK_EQ(aco_run(), 0);
    for (struct slot *s = slots; s < slots + SLOTS; s++)
        if (s->what != NOTHING)
            destroy(s);
}

/* ---- NULL elements ---- */

enum { BYTES = 40, SENDERS = 4, RECEIVERS = 3 };
static aco_channel_t *channel;
static size_t size;

/* Each way to send and to receive. */
static int send_by(int way, void *element)
{
    aco_select_case_t cases[2] = {{NULL, NULL, ACO_SELECT_RECEIVE, 0, {0}},
                                  {channel, element, ACO_SELECT_SEND, 0, {0}}};
    switch (way) {
    case 0: return aco_channel_send(channel, element);
    case 1: return aco_channel_try_send(channel, element);
    case 2: return aco_select(cases, 2) >= 0 ? 0 : -1;
    default: return aco_try_select(cases, 2) >= 0 ? 0 : -1;
    }
}

static int receive_by(int way, void *element)
{
    aco_select_case_t one = {channel, element, ACO_SELECT_RECEIVE, 0, {0}};
    switch (way) {
    case 0: return aco_channel_receive(channel, element);
    case 1: return aco_select(&one, 1) >= 0 ? 0 : -1;
    default: return aco_select_until(&one, 1, aco_after(1000000000)) >= 0 ? 0 : -1;
    }
}

typedef struct receiver {
    int way, takes, got;
    char bytes[BYTES];
} receiver_t;

static void *receive_one(void *arg)
{
    receiver_t *r = arg;
    r->got = 0;
    CHECK_EQ(receive_by(r->way, r->takes ? r->bytes : NULL), 0);
    r->got = 1;
    return NULL;
}

/* A NULL is sent, then a true element, to a receiver that waits or that comes later. */
static void send_null(int way, receiver_t *r, int waits, size_t capacity)
{
    char bytes[BYTES];
    int try_waits = !waits && !capacity && (way == 1 || way == 3); /* nobody is there: EAGAIN */
    aco_t *receiver;
    memset(bytes, 'x', sizeof bytes);
    memset(r->bytes, 'o', sizeof r->bytes);
    channel = aco_channel_new(capacity, size);
    receiver = waits ? aco_spawn(receive_one, r, NULL) : NULL;
    aco_task_yield();
    errno = 0;
    if (size) {
        CHECK_EQ(send_by(way, NULL), -1);
        CHECK_EQ(errno, EINVAL);
        CHECK(strstr(aco_error_message(), "is NULL") != NULL);
        aco_task_yield();
        CHECK_EQ(waits && r->got, 0);
    }
    if (!receiver)
        receiver = aco_spawn(receive_one, r, NULL);
    CHECK_EQ(send_by(try_waits ? 0 : way, size ? bytes : NULL), 0);
    CHECK_EQ(aco_join(receiver, NULL), 0);
    CHECK_EQ(r->got, 1);
    for (size_t i = 0; i < sizeof r->bytes; i++)
        CHECK_EQ(r->bytes[i], r->takes && i < size ? 'x' : 'o');
    CHECK_EQ(aco_channel_try_receive(channel, NULL), -1); /* nothing is left */
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(aco_channel_destroy(channel), 0);
}

static void *null_elements(void *unused)
{
    static const size_t sizes[] = {0, 4, sizeof(void *), BYTES};
    receiver_t r;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes * SENDERS * RECEIVERS * 8; i++) {
        size = sizes[i % 4];
        r.way = (int)(i / 4 / SENDERS % RECEIVERS);
        r.takes = (int)(i / 4 / SENDERS / RECEIVERS % 2);
        send_null((int)(i / 4 % SENDERS), &r, (int)(i / 4 / SENDERS / RECEIVERS / 2 % 2),
                  i / 4 / SENDERS / RECEIVERS / 4);
    }
    return unused;
}

/* One case is ready, another one is wrong: nothing is done. */
static void *bad_case_beside_a_ready_one(void *unused)
{
    char sent = 'a', received = 0;
    aco_channel_t *other = aco_channel_new(1, 1);
    aco_select_case_t cases[2] = {{other, &received, ACO_SELECT_RECEIVE, 0, {0}},
                                  {NULL, NULL, ACO_SELECT_SEND, 0, {0}}};
    channel = aco_channel_new(1, 1);
    cases[1].channel = channel;
    CHECK_EQ(aco_channel_send(other, &sent), 0);
    FAILS(aco_select(cases, 2), -1, EINVAL, "aco_select", NULL, "of case 1 is NULL");
    CHECK_EQ(received, 0);
    CHECK_EQ(aco_channel_try_receive(other, &received), 0);
    CHECK_EQ(received, 'a');
    CHECK_EQ(aco_channel_destroy(other), 0);
    CHECK_EQ(aco_channel_destroy(channel), 0);
    return unused;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    long operations = argc > 2 ? atol(argv[2]) : 100000;
    printf("seed %" PRIu64 ", %ld operations\n", seed, operations);
    draws.state = seed;
    spawn_detached(null_elements, NULL);
    run();
    spawn_detached(bad_case_beside_a_ready_one, NULL);
    run();
    all_ends(operations);
    return check_result("scheduler_ends");
}
