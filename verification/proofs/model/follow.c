/* Follows a walk of the machine in machine.py on the real library: standard input is what conform.py wrote. Each line
 * is a call and what must hold after it; whoever runs on its thread makes the call. Whoever runs next compares: that it
 * is the one to go on, its own frames' bytes and rounding mode, the state bytes, the thread's record, the stacks'
 * owners. */
#define _GNU_SOURCE
#include "tools/tools.h"

#include "../../../tests/check.h"
#include "../../../tests/random.h"

#include <fenv.h>
#include <pthread.h>

enum { MOST_COROUTINES = 32, MOST_STACKS = 8, MOST_THREADS = 4, LARGEST = 1500 };
enum { MAIN = -1, TRAP = -2, UNKNOWN = -3 };
enum { NEW, RESUME, YIELD, YIELD_TO, END, CLEAN_UP, CANCEL, RESTART, DESTROY }; /* conform.py: CALLS */
enum { NO_STATE = ACO_STATE_DONE + 1, ELSEWHERE };

typedef struct line {
    int thread, call, co, stack, rounding, accepted;        /* the call */
    int running, resuming, trampoline, mode;                /* the thread's record after it */
    struct { int status, state; } cos[MOST_COROUTINES];
    struct { int owner, has_thread, started; } stacks[MOST_STACKS];
} line_t;

static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
static line_t *lines;
static int lines_n, threads_n, shared_n, private_n, cos_n;
static int at;             /* the next line */
static int acting = -1;    /* the thread whose call it is, until it asks for the next */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static aco_t *cos[MOST_COROUTINES];
static aco_share_stack_t *stacks[MOST_STACKS];
static int ids[MOST_COROUTINES];
static __thread int thread_number;

/* A coroutine comes from thread to thread: nothing may keep the address. */
__attribute__((noinline)) static int this_thread(void)
{
    __asm__ volatile("");
    return thread_number;
}

static int index_of(const aco_t *co)
{
    const aco__scratch_t *scratch = aco__self()->scratch;
    if (!co)
        return MAIN;
    if (scratch && co == &scratch->trap)
        return TRAP;
    for (int i = 0; i < cos_n; i++)
        if (cos[i] == co)
            return i;
    return UNKNOWN;
}

/* The resumer's frames are saved, and the trampoline stands in the record for it. */
static int is_trampoline(const aco__thread_t *self)
{
    const aco__scratch_t *scratch = self->scratch;
    return scratch && self->resumer.pc == scratch->restore_trampoline.pc &&
           self->resumer.sp == scratch->restore_trampoline.sp;
}

/* The line that was executed last has led to `me`. */
static void arrived(int me)
{
    const line_t *line = &lines[at - 1];
    const aco__thread_t *self = aco__self();
    int failures = check_failures;
    CHECK_EQ(me, line->running);
    CHECK_EQ(index_of(self->running), line->running);
    CHECK_EQ(index_of(self->resuming), line->resuming);
    CHECK_EQ(self->running && is_trampoline(self), line->trampoline);
    CHECK_EQ(fegetround(), modes[line->mode]);
    for (int i = 0; i < cos_n; i++) {
        if (line->cos[i].state == NO_STATE)
            continue;
        CHECK_EQ(aco__status(cos[i]), line->cos[i].status);
        if (line->cos[i].state != ELSEWHERE)
            CHECK_EQ(aco_state(cos[i]), line->cos[i].state);
        if (!aco__has(cos[i], ACO__PRIVATE))
            CHECK_EQ(cos[i]->save_stack.valid_sz != 0,
                     line->cos[i].status == ACO__SAVED || line->cos[i].status == ACO__RESUMING_SAVED);
    }
    for (int i = 0; i < shared_n; i++) {
        CHECK_EQ(stacks[i]->owner == NULL, line->stacks[i].owner == MAIN);
        if (line->stacks[i].owner >= 0 && line->cos[line->stacks[i].owner].state != NO_STATE)
            CHECK_EQ(index_of(stacks[i]->owner), line->stacks[i].owner);
        CHECK_EQ(stacks[i]->aco__thread != NULL, line->stacks[i].has_thread);
        CHECK_EQ(stacks[i]->aco__use.started, line->stacks[i].started);
    }
    if (check_failures > failures) {
        fprintf(stderr, "after line %d: call %d of coroutine %d on thread %d\n", at, line->call, line->co,
                line->thread);
        exit(check_result("follow"));
    }
}

static void *body(void *me);

static void make(const line_t *line)
{
    aco_options_t options = {0};
    int accepted;
    options.flags = line->co % 2 == 0 ? ACO_OWN_FP : 0;
    if (line->stack < shared_n)
        options.stack = stacks[line->stack];
    cos[line->co] = aco_new(body, &ids[line->co], &options);
    accepted = cos[line->co] != NULL;
    CHECK_EQ(accepted, line->accepted);
}

/* Makes the call of a line; returns whether it was accepted, when it returns. */
static int call(const line_t *line)
{
    aco_t *co = line->co >= 0 ? cos[line->co] : NULL;
    switch (line->call) {
    case RESUME:
        return aco_send(co, NULL) != ACO_ERROR;
    case YIELD:
        return aco_yield_value(NULL) != ACO_ERROR;
    case YIELD_TO:
        return aco_yield_to(co) == 0;
    case CANCEL:
        return aco_cancel(co) == 0;
    case RESTART:
        return aco_restart(co, body, &ids[line->co]) == 0;
    case DESTROY:
        cos[line->co] = NULL; /* another one may be made in its memory */
        aco_destroy(co);
        return 1;
    case END:
        aco_defer_pop(0);
        aco_exit();
    case CLEAN_UP:
        aco_exit(); /* the deferred call is clean_up() */
    default:
        make(line);
        return 1;
    }
}

/* In a frame of random size, with other bytes every time. */
static __attribute__((noinline)) void step(int me)
{
    const line_t *line = &lines[at];
    random_t pattern = {(uint64_t)at}, again = pattern;
    size_t size = 1 + (size_t)mix((uint64_t)at) % (at % 8 ? 200 : LARGEST);
    volatile unsigned char *bytes = __builtin_alloca(size);
    int accepted, wrong = 0;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)draw(&pattern);
    if (line->rounding >= 0)
        fesetround(modes[line->rounding]);
    at++;
    accepted = call(line);
    CHECK_EQ(accepted, line->accepted);
    for (size_t i = 0; i < size; i++)
        wrong += bytes[i] != (unsigned char)draw(&again);
    CHECK_EQ(wrong, 0);
    arrived(me);
}

/* Waits for a line of this thread. */
static int next_call(void)
{
    int next;
    pthread_mutex_lock(&mutex);
    if (acting == this_thread())
        acting = -1;
    pthread_cond_broadcast(&moved);
    while (acting >= 0 || (at < lines_n && lines[at].thread != this_thread()))
        pthread_cond_wait(&moved, &mutex);
    acting = this_thread();
    if (at == lines_n)
        exit(check_result("follow"));
    next = lines[at].call;
    pthread_mutex_unlock(&mutex);
    return next;
}

/* The deferred call of every coroutine: it ends where the walk says so. */
static void clean_up(void *me)
{
    arrived(*(int *)me);
    while (next_call() != END)
        step(*(int *)me);
    fesetround(modes[lines[at].rounding]);
    at++;
}

__attribute__((noreturn)) static void *body(void *me)
{
    aco_defer(clean_up, me);
    arrived(*(int *)me);
    for (;;) {
        next_call();
        step(*(int *)me);
    }
}

__attribute__((noreturn)) static void *run_thread(void *number)
{
    thread_number = *(int *)number;
    aco_thread_init(NULL);
    for (;;) {
        next_call();
        step(MAIN);
    }
}

static int number(void)
{
    int n;
    if (scanf("%d", &n) != 1) {
        fprintf(stderr, "follow: the walk ends too early\n");
        exit(2);
    }
    return n;
}

static void read_line(line_t *line)
{
    *line = (line_t){.thread = number(), .call = -1};
    line->call = number(), line->co = number(), line->stack = number(), line->rounding = number();
    line->accepted = number();
    line->running = number(), line->resuming = number(), line->trampoline = number(), line->mode = number();
    for (int i = 0; i < cos_n; i++)
        line->cos[i].status = number(), line->cos[i].state = number();
    for (int i = 0; i < shared_n; i++)
        line->stacks[i].owner = number(), line->stacks[i].has_thread = number(), line->stacks[i].started = number();
}

int main(void)
{
    static int numbers[MOST_THREADS];
    pthread_t thread;
    lines_n = number(), threads_n = number(), shared_n = number(), private_n = number(), cos_n = number();
    if (cos_n > MOST_COROUTINES || shared_n > MOST_STACKS || threads_n > MOST_THREADS)
        return 2;
    lines = calloc((size_t)lines_n, sizeof *lines);
    for (int i = 0; i < lines_n; i++)
        read_line(&lines[i]);
    for (int i = 0; i < shared_n; i++)
        stacks[i] = aco_share_stack_new(256 << 10);
    for (int i = 0; i < cos_n; i++)
        ids[i] = i;
    for (int i = 0; i < threads_n; i++)
        numbers[i] = i;
    for (int i = 1; i < threads_n; i++)
        if (pthread_create(&thread, NULL, run_thread, &numbers[i]) != 0)
            return 2;
    run_thread(&numbers[0]);
}
