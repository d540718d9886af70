/* Random schedules of create, resume, exit, destroy and reset against a model of what the API promises: which
 * coroutine's frames each stack holds, what is saved and restored when, who has ended. Each coroutine recurses at
 * random through frames of random sizes that hold known bytes, and checks them after every switch.
 *
 * model [seed [operations [coroutines]]]; ACORN_SEED replaces the seed, too. The seed is printed. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "random.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

enum { PRIVATE_STACKS = 48, SHARED_STACKS = 6, STACKS = PRIVATE_STACKS + SHARED_STACKS, DEEPEST = 20 };

/* ---- The coroutines ---- */

typedef struct task {
    uint64_t seed;
    unsigned yields;  /* that it makes before it ends */
    unsigned reached; /* steps it has made */
    unsigned wrong;   /* bytes or values found changed */
} task_t;

/* On the coroutine's own stack, reached by pointers into it from deeper frames. */
typedef struct walk {
    task_t *task;
    random_t random;
    unsigned left;
    unsigned live_frames;
    aco_t *self;
} walk_t;

static void check_self(walk_t *walk)
{
    walk->task->wrong += aco_get_co() != walk->self;
    walk->task->wrong += aco_get_arg() != walk->task;
    walk->task->wrong += walk->self->share_stack->owner != walk->self;
}

static void step(walk_t *walk)
{
    if (walk->left == 0)
        return;
    walk->left--;
    walk->task->reached++;
    aco_yield();
    check_self(walk);
}

static unsigned frame_size(random_t *r)
{
    unsigned kind = below(r, 100);
    return kind < 60 ? 1 + below(r, 64) : kind < 97 ? 1 + below(r, 700) : 1 + below(r, 6000);
}

/* `a` to `d` and the double live in registers or in the frame, as the compiler likes; they must survive as well. */
static __attribute__((noinline)) uint64_t descend(walk_t *walk, unsigned depth, uint64_t a, double x)
{
    random_t pattern = {walk->task->seed ^ depth}, again;
    unsigned size = frame_size(&walk->random), actions = 1 + below(&walk->random, 6);
    volatile unsigned char *bytes = __builtin_alloca(size);
    uint64_t b = a * 3 + depth, c = b ^ walk->task->seed, d = c + size, sum = 0;
    again = pattern;
    walk->live_frames++;
    for (unsigned i = 0; i < size; i++)
        bytes[i] = (unsigned char)draw(&pattern);
    for (unsigned i = 0; i < actions && walk->left; i++) { /* else the tree of calls would never end */
        if (depth < DEEPEST && below(&walk->random, 2))
            sum += descend(walk, depth + 1, d + i, x + 0.5);
        else
            step(walk);
        walk->task->wrong += d != ((a * 3 + depth) ^ walk->task->seed) + size || c != d - size;
    }
    for (unsigned i = 0; i < size; i++)
        walk->task->wrong += bytes[i] != (unsigned char)draw(&again);
    walk->task->wrong += x != (double)(depth)*0.5;
    walk->live_frames--;
    return sum + a + b;
}

static void run(void)
{
    task_t *task = aco_get_arg();
    walk_t walk = {task, {task->seed}, task->yields, 0, aco_get_co()};
    check_self(&walk);
    while (walk.left) {
        descend(&walk, 0, draw(&walk.random), 0.0);
        task->wrong += walk.live_frames != 0;
    }
    task->reached++;
    aco_exit();
}

/* ---- The model ---- */

typedef enum { NONE, READY, IN_PLACE, SAVED, ENDED } state_t;

typedef struct slot {
    aco_t *co;
    state_t state;
    unsigned stack;
    unsigned resumes;
    size_t saves, restores, max;
    task_t task;
} slot_t;

static aco_t *main_co;
static aco_share_stack_t *stacks[STACKS];
static slot_t *owners[STACKS];
static int private_taken[PRIVATE_STACKS];
static slot_t *slots;
static unsigned slots_size, alive, most_alive;
static uint64_t ended_count, saved_count;

static void check_slot(const slot_t *slot)
{
    const aco_t *co = slot->co;
    CHECK_EQ(co->is_end, slot->state == ENDED);
    CHECK_EQ(co->save_stack.ct_save, slot->saves);
    CHECK_EQ(co->save_stack.ct_restore, slot->restores);
    CHECK_EQ(co->save_stack.valid_sz != 0, slot->state == SAVED);
    CHECK(co->save_stack.valid_sz <= co->save_stack.sz);
    CHECK(co->save_stack.max_cpsz >= co->save_stack.valid_sz);
    CHECK(co->save_stack.max_cpsz >= slot->max);
    CHECK_EQ(slot->task.wrong, 0);
    CHECK_EQ(slot->task.reached, slot->resumes);
    CHECK(stacks[slot->stack]->owner == (owners[slot->stack] ? owners[slot->stack]->co : NULL));
    CHECK(co->main_co == main_co && co->fp == run && co->arg == &slot->task && co->share_stack == stacks[slot->stack]);
}

static void new_task(slot_t *slot, random_t *r)
{
    slot->task = (task_t){draw(r), below(r, 20) ? below(r, 60) : below(r, 600), 0, 0};
    slot->resumes = 0;
    slot->state = READY;
}

static void create(slot_t *slot, random_t *r)
{
    unsigned at = below(r, PRIVATE_STACKS);
    if (below(r, 8) || private_taken[at])
        at = PRIVATE_STACKS + below(r, SHARED_STACKS);
    else
        private_taken[at] = 1;
    new_task(slot, r);
    slot->stack = at;
    slot->saves = slot->restores = slot->max = 0;
    slot->co = aco_create(main_co, stacks[at], below(r, 3) ? 0 : below(r, 3000), run, &slot->task);
    most_alive = ++alive > most_alive ? alive : most_alive;
}

static void resume(slot_t *slot)
{
    slot_t **owner = &owners[slot->stack];
    if (slot->state != IN_PLACE) {
        if (*owner) {
            (*owner)->state = SAVED;
            (*owner)->saves++;
            saved_count++;
        }
        slot->restores += slot->state == SAVED;
        slot->state = IN_PLACE;
    }
    slot_t *evicted = *owner != slot ? *owner : NULL;
    *owner = slot;
    aco_resume(slot->co);
    CHECK(aco_get_co() == main_co);
    if (++slot->resumes > slot->task.yields) {
        slot->state = ENDED;
        *owner = NULL;
        ended_count++;
    }
    if (evicted) {
        if (evicted->max < evicted->co->save_stack.valid_sz)
            evicted->max = evicted->co->save_stack.valid_sz;
        check_slot(evicted);
    }
    check_slot(slot);
}

static void destroy(slot_t *slot)
{
    check_slot(slot);
    if (owners[slot->stack] == slot)
        owners[slot->stack] = NULL;
    aco_destroy(slot->co);
    CHECK(stacks[slot->stack]->owner == (owners[slot->stack] ? owners[slot->stack]->co : NULL));
    if (slot->stack < PRIVATE_STACKS)
        private_taken[slot->stack] = 0;
    slot->state = NONE;
    alive--;
}

static void reset(slot_t *slot, random_t *r)
{
    aco_save_stack_t before = slot->co->save_stack;
    new_task(slot, r);
    aco_reset(slot->co, run, &slot->task);
    CHECK(slot->co->save_stack.ptr == before.ptr && slot->co->save_stack.sz == before.sz);
    CHECK(slot->co->save_stack.max_cpsz == before.max_cpsz);
    check_slot(slot);
}

/* `scale` is the percentage of slots that shall be alive: it moves between few and nearly all. */
static void operation(random_t *r, unsigned scale)
{
    slot_t *slot = &slots[below(r, slots_size)];
    unsigned what = below(r, 100);
    switch (slot->state) {
    case NONE:
        if (alive * 100 < slots_size * scale)
            create(slot, r);
        break;
    case ENDED:
        if (what < 50)
            reset(slot, r);
        else
            destroy(slot);
        break;
    case READY:
        if (what < 3)
            reset(slot, r);
        else if (what < 6)
            destroy(slot);
        else
            resume(slot);
        break;
    default:
        if (what < 2 || alive * 100 > slots_size * (scale + 5))
            destroy(slot);
        else
            resume(slot);
    }
}

static uint64_t run_schedule(uint64_t seed, unsigned long operations)
{
    random_t r = {seed};
    uint64_t done = 0;
    for (unsigned i = 0; i < STACKS; i++) {
        size_t sz = (i < PRIVATE_STACKS ? 256 : 512) << 10; /* DEEPEST frames of the largest size fit */
        stacks[i] = aco_share_stack_new2(sz, i % 3 != 0);
    }
    for (unsigned long i = 0; i < operations && check_failures < 20; i++, done++) {
        unsigned phase = (unsigned)(i * 10 / operations);
        operation(&r, phase % 3 == 0 ? 95 : phase % 3 == 1 ? 5 : 50);
    }
    for (unsigned i = 0; i < slots_size; i++)
        if (slots[i].state != NONE)
            destroy(&slots[i]);
    for (unsigned i = 0; i < STACKS; i++)
        aco_share_stack_destroy(stacks[i]);
    return done;
}

int main(int argc, char **argv)
{
    const char *from_environment = getenv("ACORN_SEED");
    uint64_t seed = from_environment ? strtoull(from_environment, NULL, 0)
                    : argc > 1       ? strtoull(argv[1], NULL, 0)
                                     : 1,
             done;
    unsigned long operations = argc > 2 ? strtoul(argv[2], NULL, 0) : 300000;
    slots_size = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 0) : 3000;
    fprintf(stderr, "model: seed %" PRIu64 ", %lu operations, %u slots\n", seed, operations, slots_size);
    slots = calloc(slots_size, sizeof *slots);
    CHECK(slots != NULL);
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    done = run_schedule(seed, operations);
    aco_destroy(main_co);
    printf("%" PRIu64 " operations, at most %u alive, %" PRIu64 " ended, %" PRIu64 " times saved\n", done, most_alive,
           ended_count, saved_count);
    CHECK(most_alive > slots_size / 2); /* the schedule did what it is for */
    CHECK(ended_count > operations / 1000 && saved_count > operations / 20);
    free(slots);
    return check_result("model");
}
