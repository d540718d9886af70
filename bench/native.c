/* Acorn's native API: each function beside a plain round trip (resume and yield) of the same kind of coroutine. */
#include "native.h"

#include <aco.h>

typedef void *(*body_t)(void *);

static aco_t *made_by_new(body_t fn, void *arg)
{
    aco_t *co = aco_new(fn, arg, NULL);
    native_must(co != NULL, aco_error_message());
    return co;
}

/* ---- The yardstick: resume and yield, one coroutine or several in turn ---- */

typedef struct several {
    size_t number;
    aco_t *co[64];
} several_t;

BENCH_INLINE void *yielding(void *arg)
{
    for (;;)
        aco_yield();
    return arg;
}
NATIVE_BODY(yielding)
static const body_t yielding_all[] = NATIVE_ALL(yielding);

static void *resume_make(unsigned placement, size_t number)
{
    several_t *s = (several_t *)bench_alloc(sizeof *s);
    native_must(number <= sizeof s->co / sizeof *s->co, "too many coroutines");
    for (s->number = 0; s->number < number; s->number++) {
        s->co[s->number] = made_by_new(yielding_all[placement], NULL);
        aco_resume(s->co[s->number]);
    }
    return s;
}

BENCH_INLINE void resume_one(void *made, size_t rounds)
{
    aco_t *co = ((several_t *)made)->co[0];
    for (; rounds; rounds--)
        aco_resume(co);
}
NATIVE_RUN(resume_one)

BENCH_INLINE void resume_several(void *made, size_t rounds)
{
    const several_t *s = (const several_t *)made;
    for (; rounds; rounds--)
        for (size_t i = 0; i < s->number; i++)
            aco_resume(s->co[i]);
}
NATIVE_RUN(resume_several)

/* ---- A value each way ---- */

BENCH_INLINE void *summing(void *arg)
{
    uintptr_t sum = 0;
    for (;;)
        sum += (uintptr_t)aco_yield_value((void *)sum);
    return arg;
}
NATIVE_BODY(summing)

static void *send_make(unsigned placement, size_t number)
{
    static const body_t all[] = NATIVE_ALL(summing);
    aco_t *co = made_by_new(all[placement], NULL);
    aco_send(co, NULL);
    native_must(number == 1 && aco_send(co, (void *)3) == (void *)3 && aco_send(co, (void *)4) == (void *)7,
                "other values came back");
    return co;
}

BENCH_INLINE void send_run(void *made, size_t rounds)
{
    uintptr_t sum = 0;
    for (aco_t *co = (aco_t *)made; rounds; rounds--)
        sum += (uintptr_t)aco_send(co, (void *)rounds);
    bench_sink(sum);
}
NATIVE_RUN(send_run)

/* ---- Resume from inside a coroutine ---- */

static size_t wanted; /* rounds that the measured coroutine makes */

BENCH_INLINE void *resuming(void *arg)
{
    for (aco_t *inner = (aco_t *)arg;; aco_yield())
        for (size_t n = wanted; n; n--)
            aco_resume(inner);
    return NULL;
}
NATIVE_BODY(resuming)

static void *nested_make(unsigned placement, size_t number)
{
    static const body_t all[] = NATIVE_ALL(resuming);
    aco_t *inner = made_by_new(yielding_all[placement], NULL);
    native_must(number == 1, "one coroutine inside");
    return made_by_new(all[placement], inner);
}

/* Used here and for a ring: the first coroutine counts the rounds and yields when they are done. */
BENCH_INLINE void counting_run(void *made, size_t rounds)
{
    aco_t *co = (aco_t *)made;
    wanted = rounds;
    aco_resume(co);
    native_must(aco_state(co) == ACO_STATE_SUSPENDED, "the coroutine ended");
}
NATIVE_RUN(counting_run)

/* ---- A ring of coroutines that transfer ---- */

typedef struct link {
    aco_t *next;
} link_t;

BENCH_INLINE void *passing(void *arg)
{
    for (aco_t *next = ((link_t *)arg)->next;;)
        aco_yield_to(next);
    return NULL;
}
NATIVE_BODY(passing)

BENCH_INLINE void *counting(void *arg)
{
    for (aco_t *next = ((link_t *)arg)->next;; aco_yield())
        for (size_t n = wanted; n; n--)
            aco_yield_to(next);
    return NULL;
}
NATIVE_BODY(counting)

static void *transfer_make(unsigned placement, size_t number)
{
    static const body_t first[] = NATIVE_ALL(counting), other[] = NATIVE_ALL(passing);
    aco_t *co = NULL, *next = NULL;
    link_t *last = NULL;
    for (size_t i = 0; i < number; i++, next = co) {
        link_t *link = (link_t *)bench_alloc(sizeof *link);
        link->next = next;
        last = last ? last : link;
        co = made_by_new((i + 1 < number ? other : first)[placement], link);
    }
    last->next = co;
    counting_run(co, 1); /* each coroutine reads its successor */
    return co;
}

/* ---- A whole life: new, send, return, destroy ---- */

BENCH_INLINE void *returning(void *arg)
{
    return arg;
}
NATIVE_BODY(returning)
static const body_t returning_all[] = NATIVE_ALL(returning);

static void *call_make(unsigned placement, size_t number)
{
    native_must(number == 1, "one at a time");
    aco_destroy(made_by_new(returning_all[placement], NULL));
    return (void *)&returning_all[placement];
}

BENCH_INLINE void call_run(void *made, size_t rounds)
{
    body_t body = *(const body_t *)made;
    uintptr_t sum = 0;
    for (size_t n = 0; n < rounds; n++) {
        aco_t *co = aco_new(body, (void *)n, NULL);
        sum += (uintptr_t)aco_send(co, NULL);
        aco_destroy(co);
    }
    native_must(sum == rounds * (rounds - 1) / 2, "other results came back");
}
NATIVE_RUN(call_run)

/* The same coroutine is restarted in every round. */
BENCH_INLINE void restart_run(void *made, size_t rounds)
{
    body_t body = *(const body_t *)made;
    uintptr_t sum = 0;
    aco_t *co = aco_new(body, NULL, NULL);
    for (size_t n = 0; n < rounds; n++) {
        aco_restart(co, body, (void *)n);
        sum += (uintptr_t)aco_send(co, NULL);
    }
    aco_destroy(co);
    native_must(sum == rounds * (rounds - 1) / 2, "other results came back");
}
NATIVE_RUN(restart_run)

static const native_case_t cases[] = {
    {"resume", resume_make, NATIVE_ALL(resume_one)},
    {"resume_several", resume_make, NATIVE_ALL(resume_several)},
    {"send", send_make, NATIVE_ALL(send_run)},
    {"nested", nested_make, NATIVE_ALL(counting_run)},
    {"transfer", transfer_make, NATIVE_ALL(counting_run)},
    {"call", call_make, NATIVE_ALL(call_run)},
    {"restart", call_make, NATIVE_ALL(restart_run)},
    {NULL, NULL, {NULL, NULL, NULL, NULL}},
};

int main(int argc, char **argv)
{
    return native_main(argc, argv, cases);
}
