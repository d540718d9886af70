/* The search for a shorter run that fails for the same reason.
 *
 * A run is its lists of choices, and 0 is the simplest choice. Each attempt changes the lists and runs them. If the run
 * fails for the same reason, in no more turns than the recorded one, they are the best from then on. Tried are: 0 for
 * many choices at once, then for fewer (delta debugging); lists without some choices; smaller numbers. A scenario often
 * draws a number, and then makes so many choices: so 0 for a number without the choices behind it is tried, too. */
#include "sim/shrink.h"
#include "sim/world.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What makes a run shorter comes first. */
static const aco__sim_source_t in_turn[] = {ACO__SIM_SCENARIO, ACO__SIM_FAULTS,  ACO__SIM_RARE, ACO__SIM_THREADS,
                                            ACO__SIM_ORDER,    ACO__SIM_NETWORK, ACO__SIM_DISK, ACO__SIM_TURNS};
_Static_assert(sizeof in_turn / sizeof *in_turn == ACO__SIM_SOURCES, "each source has its turn");

/* ---- Lists ---- */

static void strip_zeros(aco__sim_choices_t *choices)
{
    while (choices->n && !choices->values[choices->n - 1])
        choices->n--;
}

static size_t count_nonzero(const aco__sim_choices_t *choices)
{
    size_t count = 0;
    for (size_t i = 0; i < choices->n; i++)
        count += choices->values[i] != 0;
    return count;
}

size_t aco__sim_count_choices(const aco__sim_decisions_t *decisions)
{
    size_t count = 0;
    for (int i = 0; i < ACO__SIM_SOURCES; i++)
        count += count_nonzero(&decisions->of[i]);
    return count;
}

static void copy_choices(aco__sim_choices_t *to, const aco__sim_choices_t *from)
{
    ACO__ASSERT(from->n <= to->room);
    to->n = from->n;
    if (from->n)
        memcpy(to->values, from->values, from->n * sizeof *from->values);
}

static void copy_decisions(aco__sim_decisions_t *to, const aco__sim_decisions_t *from)
{
    for (int i = 0; i < ACO__SIM_SOURCES; i++)
        copy_choices(&to->of[i], &from->of[i]);
}

static void free_decisions(aco__sim_decisions_t *decisions)
{
    for (int i = 0; i < ACO__SIM_SOURCES; i++)
        free(decisions->of[i].values);
    memset(decisions, 0, sizeof *decisions);
}

/* Empty lists with room for what was recorded. */
static int make_lists(aco__sim_decisions_t *decisions, const aco__sim_decisions_t *recorded)
{
    decisions->replays = 1;
    for (int i = 0; i < ACO__SIM_SOURCES; i++) {
        aco__sim_choices_t *choices = &decisions->of[i];
        choices->room = recorded->of[i].n;
        choices->values = malloc(choices->room ? choices->room * sizeof *choices->values : 1);
        if (!choices->values)
            return -1;
    }
    return 0;
}

/* ---- Attempts ---- */

int aco__sim_same_reason(const char *a, const char *b)
{
    for (;;) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0123456789abcdefx");
            b += strspn(b, "0123456789abcdefx");
        }
        if (*a != *b)
            return 0;
        if (!*a)
            return 1;
        a++;
        b++;
    }
}

/* What the run asked for beyond the lists, or did not ask for, is not in them. */
static void keep_tried(aco__sim_search_t *search)
{
    for (int i = 0; i < ACO__SIM_SOURCES; i++) {
        aco__sim_choices_t *choices = &search->tried.of[i];
        size_t used = search->shared->decisions.of[i].used;
        choices->n = used < choices->n ? used : choices->n;
        strip_zeros(choices);
    }
    copy_decisions(&search->best, &search->tried);
}

/* 1: the run with the lists in search->tried fails as the first one did, and is the best now. */
static int attempt(aco__sim_search_t *search)
{
    const aco__sim_outcome_t *outcome = &search->shared->outcome;
    if (search->attempts >= search->most)
        return 0;
    search->attempts++;
    search->shared->decisions = search->tried;
    if (aco__sim_attempt(search->sim, search->run, search->shared, 0) != 0) {
        search->most = search->attempts; /* there are no more children */
        return 0;
    }
    if (!outcome->has_failed || outcome->turns > search->first.turns ||
        !aco__sim_same_reason(outcome->reason, search->first.reason))
        return 0;
    keep_tried(search);
    return 1;
}

/* ---- What is tried ---- */

/* 0 for `count` choices that are not, from the one at `first` on. Returns where it stopped. */
static size_t zero_some(aco__sim_choices_t *choices, size_t first, size_t count)
{
    while (first < choices->n && count > 0) {
        count -= choices->values[first] != 0;
        choices->values[first++] = 0;
    }
    return first;
}

static int try_zeros(aco__sim_search_t *search, aco__sim_source_t source)
{
    int has_changed = 0;
    for (size_t size = count_nonzero(&search->best.of[source]); size > 0; size /= 2)
        for (size_t at = 0, next; at < search->best.of[source].n && search->attempts < search->most; at = next) {
            copy_decisions(&search->tried, &search->best);
            next = zero_some(&search->tried.of[source], at, size);
            if (memcmp(search->tried.of[source].values, search->best.of[source].values,
                       search->best.of[source].n * sizeof(uint64_t)) != 0)
                has_changed |= attempt(search);
        }
    return has_changed;
}

static void remove_some(aco__sim_choices_t *choices, size_t at, size_t n)
{
    n = n < choices->n - at ? n : choices->n - at;
    memmove(&choices->values[at], &choices->values[at + n], (choices->n - at - n) * sizeof *choices->values);
    choices->n -= n;
}

/* Lists without `size` choices, from the end on. */
static int try_without(aco__sim_search_t *search, aco__sim_source_t source)
{
    enum { PARTS = 64 }; /* of a list: it may have many zeros */
    const aco__sim_choices_t *best = &search->best.of[source];
    size_t least = 1 + best->n / PARTS;
    int has_changed = 0;
    for (size_t size = best->n / 2; size >= least; size /= 2)
        for (size_t end = best->n; end >= size && search->attempts < search->most; end -= size) {
            if (end > best->n)
                continue;
            copy_decisions(&search->tried, &search->best);
            remove_some(&search->tried.of[source], end - size, size);
            has_changed |= attempt(search);
        }
    return has_changed;
}

/* A number of things, and the choices for them: 0, without these. */
static int try_without_things(aco__sim_search_t *search, aco__sim_source_t source)
{
    const aco__sim_choices_t *best = &search->best.of[source];
    int has_changed = 0;
    for (size_t at = 0; at < best->n && search->attempts < search->most; at++) {
        uint64_t n = best->values[at];
        if (!n || n >= best->n - at)
            continue;
        copy_decisions(&search->tried, &search->best);
        search->tried.of[source].values[at] = 0;
        remove_some(&search->tried.of[source], at + 1, (size_t)n);
        has_changed |= attempt(search);
    }
    return has_changed;
}

/* Numbers that are less by a half, by a quarter, and so on. */
static int try_less(aco__sim_search_t *search, aco__sim_source_t source)
{
    const aco__sim_choices_t *best = &search->best.of[source];
    int has_changed = 0;
    for (size_t at = 0; at < best->n; at++) {
        uint64_t step = best->values[at] / 2;
        while (step > 0 && search->attempts < search->most) {
            copy_decisions(&search->tried, &search->best);
            search->tried.of[source].values[at] -= step;
            if (!attempt(search))
                step /= 2;
            else
                has_changed = 1;
            if (at >= best->n || step >= best->values[at])
                step = at < best->n ? best->values[at] / 2 : 0;
        }
    }
    return has_changed;
}

static int try_all(aco__sim_search_t *search)
{
    int has_changed = 0;
    for (int i = 0; i < ACO__SIM_SOURCES; i++)
        has_changed |= try_zeros(search, in_turn[i]);
    for (int i = 0; i < ACO__SIM_SOURCES; i++) {
        has_changed |= try_without_things(search, in_turn[i]);
        has_changed |= try_without(search, in_turn[i]);
    }
    for (int i = 0; i < ACO__SIM_SOURCES; i++)
        has_changed |= try_less(search, in_turn[i]);
    return has_changed;
}

/* ---- The search ---- */

int aco__sim_search_begin(aco__sim_search_t *search, aco_sim_t *sim, aco__sim_runner_t run)
{
    aco__sim_decisions_t *recorded;
    memset(search, 0, sizeof *search);
    search->sim = sim;
    search->run = run;
    search->shared = aco__sim_shared_new();
    if (!search->shared)
        return -1;
    recorded = &search->shared->decisions;
    for (int i = 0; i < ACO__SIM_SOURCES; i++) {
        recorded->of[i].values = search->shared->choices[i];
        recorded->of[i].room = ACO__SIM_MOST_CHOICES;
    }
    if (aco__sim_attempt(sim, run, search->shared, 0) != 0)
        return -1;
    search->first = search->shared->outcome;
    return 0;
}

static int is_too_long(const aco__sim_decisions_t *recorded)
{
    for (int i = 0; i < ACO__SIM_SOURCES; i++)
        if (recorded->of[i].used > recorded->of[i].room)
            return 1;
    return 0;
}

/* An attempt may not take longer than the recorded run; but it may come to its reason. */
static uint64_t most_turns(const aco__sim_search_t *search)
{
    uint64_t most = search->sim->options.max_turns, turns = search->first.turns;
    return turns && turns < most ? turns + 1 : most;
}

int aco__sim_search(aco__sim_search_t *search, uint64_t most)
{
    const aco__sim_decisions_t *recorded = &search->shared->decisions;
    uint64_t max_turns = search->sim->options.max_turns;
    if (is_too_long(recorded)) {
        aco__sim_say(search->sim, "it is not shortened: it makes more than %d decisions of a kind",
                     ACO__SIM_MOST_CHOICES);
        return -1;
    }
    if (make_lists(&search->best, recorded) != 0 || make_lists(&search->tried, recorded) != 0) {
        aco__sim_say(search->sim, "it is not shortened: there is no memory");
        return -1;
    }
    copy_decisions(&search->best, recorded);
    for (int i = 0; i < ACO__SIM_SOURCES; i++)
        strip_zeros(&search->best.of[i]);
    search->recorded = aco__sim_count_choices(&search->best);
    search->most = most;
    search->sim->options.max_turns = most_turns(search);
    for (int has_changed = 1; has_changed && search->attempts < search->most;)
        has_changed = try_all(search);
    search->sim->options.max_turns = max_turns;
    return 0;
}

void aco__sim_search_end(aco__sim_search_t *search)
{
    aco__sim_shared_free(search->shared);
    free_decisions(&search->best);
    free_decisions(&search->tried);
    memset(search, 0, sizeof *search);
}
