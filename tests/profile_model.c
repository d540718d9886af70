/* Random schedules of coroutines of every kind, each measured, against a model of the profile by entry function
 * (src/tools/profile.c; aco_stack_usage() in include/aco/pool.h). Argument: seed (ACORN_SEED in the environment). */
#define _GNU_SOURCE
#include "stack_depth.h"
#include "random.h"
#include "fails.h"

static size_t page;

/* ---- Measuring by entry function: a model ---- */

typedef struct model {
    const void *entry;
    int is_private;
    size_t made, alive, most_alive, stack_size, ended, deepest, depths, areas, switches, most_live, least_lives,
        most_lives;
} model_t;

enum { SLOTS = 24, ENTRIES = 3, STACKS = 3 };
/* How far below the stack pointer a transfer is measured, at most. */
#if (defined(__x86_64__) || defined(__i386__)) && !defined(_WIN32) && !defined(ACO_CONFIG_UCONTEXT)
enum { TRANSFER = 64 };
#else /* its functions keep more registers */
enum { TRANSFER = 768 };
#endif

typedef struct slot {
    aco_t *co;
    model_t *model; /* while it is counted */
    random_t random;
    unsigned left;
    unsigned wrong;
} slot_t;

static slot_t slots[SLOTS];
static model_t models[ENTRIES][2];
static aco_share_stack_t *stacks[STACKS];
static slot_t *leaver,
    *transferred; /* the last that yielded or ended; the last that transferred and was not yet looked at */
static unsigned nested;

static void begins(slot_t *slot, model_t *model)
{
    slot->model = model;
    model->made++;
    model->alive++;
    model->most_alive = most(model->most_alive, model->alive);
    model->stack_size = most(model->stack_size, slot->co->share_stack->sz - slot->co->share_stack->aco__colour);
}

static void was_left(slot_t *slot, size_t tolerance)
{
    model_t *model = slot->model;
    size_t live = live_bytes(slot->co);
    model->switches++;
    model->least_lives += live;
    model->most_lives += live + tolerance;
    if (model->most_live < live)
        model->most_live = live;
}

static void ended(slot_t *slot)
{
    model_t *model = slot->model;
    model->alive--;
    model->ended++;
    if (model->is_private) {
        size_t depth = (size_t)aco_stack_high_water(slot->co);
        model->deepest = most(model->deepest, depth);
        model->depths += depth;
    } else {
        model->areas += slot->co->save_stack.sz;
    }
    slot->model = NULL;
}

/* Whoever goes on after a switch. */
static void arrived(void)
{
    if (transferred)
        was_left(transferred, TRANSFER);
    transferred = NULL;
}

static void came_back(void)
{
    arrived();
    if (!leaver)
        return;
    if (leaver->co->is_end)
        ended(leaver);
    else
        was_left(leaver, 0);
    leaver = NULL;
}

static int may_run(const slot_t *slot)
{
    return slot->co && (aco_state(slot->co) == ACO_STATE_READY || aco_state(slot->co) == ACO_STATE_SUSPENDED);
}

static slot_t *any_that_may_run(random_t *r)
{
    for (int tries = 0; tries < 8; tries++) {
        slot_t *slot = &slots[below(r, SLOTS)];
        if (may_run(slot))
            return slot;
    }
    return NULL;
}

static __attribute__((noinline)) unsigned act(slot_t *slot, unsigned depth)
{
    unsigned size = 1 + below(&slot->random, 700), actions = 1 + below(&slot->random, 4), wrong = 0;
    volatile unsigned char *bytes = __builtin_alloca(size);
    fill(bytes, size, size);
    for (unsigned a = 0; a < actions && slot->left; a++) {
        unsigned what = below(&slot->random, 12);
        slot_t *other = what < 6 ? any_that_may_run(&slot->random) : NULL;
        if (what >= 9 && depth < 10) {
            wrong += act(slot, depth + 1);
            continue;
        }
        slot->left--;
        if (other && what < 3) {
            transferred = slot;
            if (aco_yield_to(other->co) != 0)
                slot->wrong++;
            arrived();
        } else if (other && what < 5 && nested < 4) {
            nested++;
            aco_resume(other->co);
            nested--;
            came_back();
        } else {
            leaver = slot;
            aco_yield();
            arrived();
        }
    }
    wrong += changed(bytes, size, size);
    return wrong;
}

static void *act_all(slot_t *slot)
{
    arrived();
    while (slot->left)
        slot->wrong += act(slot, 0);
    leaver = slot;
    return slot;
}

static void *entry_a(void *slot)
{
    return act_all(slot);
}

static void *entry_b(void *slot)
{
    void *result = act_all(slot);
    if (result != slot)
        abort();
    return result;
}

static void entry_c(void)
{
    act_all(aco_get_arg());
    aco_exit();
}

static size_t mean(size_t sum, size_t n)
{
    return n ? (sum + n / 2) / n : 0;
}

static void check_model(const model_t *m)
{
    looked_for_t found = usage_of(m->entry, m->is_private);
    const aco_stack_usage_t *u = &found.usage;
    const size_t block = offsetof(aco_t, main_co);
    CHECK_EQ(found.found, m->made != 0);
    if (!found.found)
        return;
    CHECK_EQ(u->made, m->made);
    CHECK_EQ(u->most_alive, m->most_alive);
    CHECK_EQ(u->stack_size, m->stack_size);
    CHECK_EQ(u->deepest, m->deepest);
    CHECK_EQ(u->mean_depth, m->is_private ? mean(m->depths, m->ended) : 0);
    CHECK_EQ(u->switches, m->switches);
    CHECK(u->most_live >= m->most_live && u->most_live <= m->most_live + TRANSFER);
    CHECK(u->mean_live >= mean(m->least_lives, m->switches) && u->mean_live <= mean(m->most_lives, m->switches));
    if (m->is_private) {
        CHECK_EQ((u->bytes - block) % page, 0);
        CHECK(u->bytes >= block + most(u->mean_depth, u->most_live));
        CHECK_EQ(u->other_bytes, sizeof(aco_t) + u->most_live);
    } else {
        CHECK_EQ(u->bytes, sizeof(aco_t) + (m->ended ? mean(m->areas, m->ended) : u->most_live));
        CHECK_EQ((u->other_bytes - block) % page, 0);
        CHECK(u->other_bytes > u->most_live);
    }
    CHECK_EQ(u->advice, advice_for(u));
}

static const aco_function_t functions[2] = {entry_a, entry_b};

static void make(slot_t *slot, random_t *r, aco_t *main_co)
{
    unsigned which = below(r, COPYING ? 5 : 2), entry = which < 4 ? which % 2 : 2;
    aco_options_t options = {0};
    slot->left = below(r, 30);
    slot->wrong = 0;
    slot->random.state = draw(r);
    if (entry == 2) {
        slot->co = aco_create(main_co, stacks[below(r, STACKS)], below(r, 5) * 60, entry_c, slot);
    } else {
        if (which >= 2)
            options.stack = stacks[below(r, STACKS)];
        else if (below(r, 2))
            options.stack_size = (size_t)4096 << (SANITIZED ? 6 : 4 + below(r, 4));
        if (below(r, 4) == 0)
            options.name = "with a name";
        if (which < 2 && below(r, 4) == 0)
            options.flags = ACO_NO_GUARD;
        slot->co = aco_new(functions[entry], slot, &options);
    }
    begins(slot, &models[entry][which < 2]);
}

static void make_again(slot_t *slot, random_t *r)
{
    int is_private = slot->co->share_stack->aco__private;
    slot->left = below(r, 30);
    if (slot->co->main_co && !is_private) {
        aco_reset(slot->co, entry_c, slot);
        begins(slot, &models[2][0]);
    } else {
        unsigned entry = below(r, 2);
        CHECK_EQ(aco_restart(slot->co, functions[entry], slot), 0);
        begins(slot, &models[entry][is_private]);
    }
}

static void counts_by_model(uint64_t seed)
{
    enum { OPERATIONS = SANITIZED ? 800 : 6000 };
    random_t random = {seed};
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    void (*c)(void) = entry_c;
    CHECK_EQ(aco_stack_measure(1), 0);
    for (int i = 0; i < 2; i++)
        for (int entry = 0; entry < ENTRIES; entry++)
            models[entry][i] =
                (model_t){.entry = entry < 2 ? address(functions[entry]) : *(const void **)(void *)&c, .is_private = i};
    for (int i = 0; i < STACKS; i++)
        stacks[i] = COPYING ? aco_share_stack_new2(i ? 64 << 10 : 1 << 20, i != 1) : NULL;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        slot_t *slot = &slots[below(&random, SLOTS)];
        unsigned what = below(&random, 100);
        if (!slot->co) {
            make(slot, &random, main_co);
        } else if (slot->co->is_end) {
            CHECK_EQ(slot->wrong, 0);
            if (what < 50) {
                make_again(slot, &random);
            } else {
                aco_destroy(slot->co);
                slot->co = NULL;
            }
        } else if (what < 3 && slot->model) {
            ended(slot);
            aco_destroy(slot->co);
            slot->co = NULL;
        } else if (what < 6 && aco_state(slot->co) == ACO_STATE_SUSPENDED) {
            CHECK_EQ(aco_cancel(slot->co), 0);
            ended(slot);
        } else {
            aco_resume(slot->co);
            came_back();
        }
        if (i % (OPERATIONS / 50) == 0)
            for (int entry = 0; entry < ENTRIES; entry++)
                check_model(&models[entry][0]), check_model(&models[entry][1]);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].co) {
            if (slots[i].model)
                ended(&slots[i]);
            aco_destroy(slots[i].co);
            slots[i].co = NULL;
        }
    for (int entry = 0; entry < ENTRIES; entry++)
        check_model(&models[entry][0]), check_model(&models[entry][1]);
    CHECK(models[0][1].made > 10 && models[1][1].made > 10 && models[0][1].switches > 100);
    CHECK(!COPYING || (models[0][0].made > 10 && models[2][0].made > 10 && models[2][0].switches > 100));
    for (int i = 0; COPYING && i < STACKS; i++)
        aco_share_stack_destroy(stacks[i]);
    aco_destroy(main_co);
    CHECK_EQ(aco_stack_measure(0), 0);
}

int main(int argc, char **argv)
{
    const char *env = getenv("ACORN_SEED");
    uint64_t seed = env ? strtoull(env, NULL, 0) : argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    printf("profile_model: seed %llu\n", (unsigned long long)seed);
    page = (size_t)sysconf(_SC_PAGESIZE);
    aco_thread_init(NULL);
    counts_by_model(seed);
    return check_result("profile_model");
}
