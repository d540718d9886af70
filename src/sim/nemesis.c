/* The nemesis: a task of the run's own that begins faults, and ends each after a while. Each run draws its own mix:
 * which kinds there are, how often they come and how long they last. Many runs with few kinds each find more than runs
 * that are all alike ("Swarm Testing", Groce and others, 2012). */
#include "sim/draw.h"
#include "sim/routes.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST_FAULTS = 8, PPM = 10000 /* of a drifting clock */, MOST_LOSS = 50 /* percent */ };
static const int64_t SHORTEST = 10 * ACO_MILLISECOND, LONGEST_JUMP = 3600 * ACO_SECOND;

typedef struct fault {
    const struct kind *kind;    /* NULL: none */
    aco_sim_node_t *node, *other; /* other: NULL: all */
    int64_t until;              /* on the clock of the run */
    aco_sim_disk_t disk;        /* how the node's disk was before */
} fault_t;

/* A kind of fault. */
typedef struct kind {
    unsigned bit;
    int (*begin)(aco_sim_t *sim, fault_t *fault); /* its nodes are chosen. -1: it cannot be now */
    void (*end)(aco_sim_t *sim, fault_t *fault);
} kind_t;

typedef struct aco__sim_nemesis {
    struct aco__sim_nemesis *next; /* one before it */
    aco_sim_t *sim;
    unsigned kinds;             /* of this run */
    int64_t gap, length;        /* at most so long between faults, and of a fault */
    int64_t until;              /* no fault begins then */
    int is_over;
    fault_t faults[MOST_FAULTS];
} nemesis_t;

static uint64_t draw(aco_sim_t *sim, uint64_t limit)
{
    return aco__sim_decide(sim, ACO__SIM_FAULTS, aco__draw_below(&sim->nodes.draws, limit), limit);
}

static int64_t draw_time(aco_sim_t *sim, int64_t most)
{
    return 1 + (int64_t)draw(sim, (uint64_t)most);
}

/* The simplest one is the longest. */
static int64_t draw_gap(const nemesis_t *nemesis)
{
    return nemesis->gap - (int64_t)draw(nemesis->sim, (uint64_t)nemesis->gap);
}

/* ---- Kinds ---- */

/* Whether one more node may stop, and this one goes on: of three or more nodes the majority does. */
static int may_stop(const aco_sim_t *sim, const aco_sim_node_t *stopping)
{
    size_t all = 0, stopped = 0;
    ACO__SIM_EACH_NODE(sim, node)
    {
        all++;
        stopped += !aco_sim_node_is_up(node) || node->is_suspended;
    }
    return stopped < (all > 2 ? (all - 1) / 2 : 1) && aco_sim_node_is_up(stopping) && !stopping->is_suspended;
}

static int begin_crash(aco_sim_t *sim, fault_t *fault)
{
    return may_stop(sim, fault->node) ? aco_sim_crash(fault->node, ACO_SIM_CRASH_ANY) : -1;
}

static void end_crash(aco_sim_t *sim, fault_t *fault)
{
    (void)sim;
    if (!aco_sim_node_is_up(fault->node))
        (void)aco_sim_restart(fault->node);
}

static int begin_suspension(aco_sim_t *sim, fault_t *fault)
{
    return may_stop(sim, fault->node) ? aco_sim_suspend(fault->node) : -1;
}

static void end_suspension(aco_sim_t *sim, fault_t *fault)
{
    (void)sim;
    (void)aco_sim_resume(fault->node);
}

static void end_rules(aco_sim_t *sim, fault_t *fault)
{
    aco__sim_rules_remove(sim, fault);
}

static int begin_one_way(aco_sim_t *sim, fault_t *fault)
{
    const aco_sim_node_t *to = draw(sim, 2) ? fault->other : NULL;
    int is_from = draw(sim, 2) != 0;
    return aco__sim_rule_add(sim, is_from ? fault->node : to, is_from ? to : fault->node, NULL, 1, fault);
}

static int begin_partition(aco_sim_t *sim, fault_t *fault)
{
    const aco_sim_node_t *to = draw(sim, 2) ? fault->other : NULL;
    if (aco__sim_rule_add(sim, fault->node, to, NULL, 1, fault) != 0 ||
        aco__sim_rule_add(sim, to, fault->node, NULL, 1, fault) != 0) {
        end_rules(sim, fault);
        return -1;
    }
    return 0;
}

static int begin_slowness(aco_sim_t *sim, fault_t *fault)
{
    aco_sim_link_t link = aco__sim_wire(fault->node, fault->other)->link;
    link.latency.max += draw_time(sim, SHORTEST << draw(sim, 8));
    return aco__sim_rule_add(sim, fault->node, fault->other, &link, 0, fault);
}

static int begin_loss(aco_sim_t *sim, fault_t *fault)
{
    aco_sim_link_t link = aco__sim_wire(fault->node, fault->other)->link;
    link.loss = (double)(1 + draw(sim, MOST_LOSS)) / 100;
    return aco__sim_rule_add(sim, fault->node, fault->other, &link, 0, fault);
}

static int begin_clock(aco_sim_t *sim, fault_t *fault)
{
    int64_t offset = draw_time(sim, LONGEST_JUMP >> draw(sim, 24));
    int drift = (int)draw(sim, 2 * PPM + 1) - PPM;
    return aco_sim_clock(fault->node, draw(sim, 2) ? offset : -offset, draw(sim, 2) ? drift : 0);
}

static void end_clock(aco_sim_t *sim, fault_t *fault)
{
    (void)sim;
    (void)aco_sim_clock(fault->node, 0, 0);
}

/* Up to one call in 16 fails or moves only a part. */
static double draw_chance(aco_sim_t *sim)
{
    return (double)draw(sim, 64) / 1024;
}

/* The node's disk, to which something happens; NULL: something does already. */
static aco_sim_disk_t *disk_for(fault_t *fault)
{
    if (fault->node->disk.has_fault)
        return NULL;
    fault->disk = fault->node->disk.options;
    fault->node->disk.has_fault = 1;
    aco__sim_node_note(fault->node, ACO__SIM_DISK_SET);
    return &fault->node->disk.options;
}

static int begin_bad_disk(aco_sim_t *sim, fault_t *fault)
{
    aco_sim_disk_t *disk = disk_for(fault);
    if (!disk)
        return -1;
    disk->read_errors = draw_chance(sim);
    disk->write_errors = draw_chance(sim);
    disk->sync_errors = draw_chance(sim);
    disk->short_transfers = draw_chance(sim);
    return 0;
}

static int begin_slow_disk(aco_sim_t *sim, fault_t *fault)
{
    aco_sim_disk_t *disk = disk_for(fault);
    if (disk)
        disk->latency.max += draw_time(sim, SHORTEST << draw(sim, 8));
    return disk ? 0 : -1;
}

static void end_disk(aco_sim_t *sim, fault_t *fault)
{
    (void)sim;
    if (!fault->node->disk.has_fault) /* aco_sim_disk() has set it meanwhile */
        return;
    fault->node->disk.options = fault->disk;
    fault->node->disk.has_fault = 0;
    aco__sim_node_note(fault->node, ACO__SIM_DISK_SET);
}

static const kind_t kinds[] = {
    {ACO_SIM_FAULT_CRASH, begin_crash, end_crash},         {ACO_SIM_FAULT_SUSPEND, begin_suspension, end_suspension},
    {ACO_SIM_FAULT_PARTITION, begin_partition, end_rules}, {ACO_SIM_FAULT_ONE_WAY, begin_one_way, end_rules},
    {ACO_SIM_FAULT_SLOW, begin_slowness, end_rules},       {ACO_SIM_FAULT_LOSS, begin_loss, end_rules},
    {ACO_SIM_FAULT_CLOCK, begin_clock, end_clock},
    {ACO_SIM_FAULT_DISK, begin_bad_disk, end_disk},
    {ACO_SIM_FAULT_SLOW_DISK, begin_slow_disk, end_disk},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- Faults ---- */

/* A node other than `but`; the scenario's, if `may_be_scenario`. NULL: there is none. */
static aco_sim_node_t *draw_node(aco_sim_t *sim, const aco_sim_node_t *but, int may_be_scenario)
{
    aco_sim_node_t *first = may_be_scenario ? &sim->nodes.scenario : sim->nodes.scenario.next, *drawn = NULL;
    uint64_t n = 0;
    for (aco_sim_node_t *node = first; node; node = node->next)
        if (node != but && draw(sim, ++n) == 0)
            drawn = node;
    return drawn;
}

static void begin_fault(nemesis_t *nemesis, fault_t *fault)
{
    aco_sim_t *sim = nemesis->sim;
    const kind_t *kind = NULL;
    uint64_t n = 0;
    for (int i = 0; i < KINDS; i++)
        if (nemesis->kinds & kinds[i].bit && draw(sim, ++n) == 0)
            kind = &kinds[i];
    fault->node = draw_node(sim, NULL, 0);
    if (!kind || !fault->node)
        return;
    fault->other = draw_node(sim, fault->node, 1);
    fault->until = sim->now + draw_time(sim, nemesis->length);
    if (kind->begin(sim, fault) == 0)
        fault->kind = kind;
}

static void end_fault(aco_sim_t *sim, fault_t *fault)
{
    fault->kind->end(sim, fault);
    fault->kind = NULL;
}

/* Ends those that are due, and returns when the next one is. INT64_MAX: none is left. */
static int64_t end_due(nemesis_t *nemesis)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < MOST_FAULTS; i++) {
        fault_t *fault = &nemesis->faults[i];
        if (fault->kind && fault->until <= nemesis->sim->now)
            end_fault(nemesis->sim, fault);
        if (fault->kind && fault->until < next)
            next = fault->until;
    }
    return next;
}

static fault_t *free_fault(nemesis_t *nemesis)
{
    for (int i = 0; i < MOST_FAULTS; i++)
        if (!nemesis->faults[i].kind)
            return &nemesis->faults[i];
    return NULL;
}

ACO__SWITCHES static void *run_nemesis(void *arg)
{
    nemesis_t *nemesis = arg;
    aco_sim_t *sim = nemesis->sim;
    int64_t begins = sim->now + draw_gap(nemesis), next;
    while (!nemesis->is_over && ((next = end_due(nemesis)) != INT64_MAX || begins < nemesis->until)) {
        if (begins <= sim->now && begins < nemesis->until) {
            fault_t *fault = free_fault(nemesis);
            if (fault)
                begin_fault(nemesis, fault);
            begins = sim->now + draw_gap(nemesis);
            continue;
        }
        if (begins < nemesis->until && begins < next)
            next = begins;
        (void)aco_sleep(next - sim->now);
    }
    return NULL;
}

/* ---- The call ---- */

/* All of its faults end. */
static void stop(nemesis_t *nemesis)
{
    if (!nemesis || nemesis->is_over)
        return;
    nemesis->is_over = 1;
    for (int i = 0; i < MOST_FAULTS; i++)
        if (nemesis->faults[i].kind)
            end_fault(nemesis->sim, &nemesis->faults[i]);
}

/* Half of the kinds, one at least. */
static unsigned draw_kinds(aco_sim_t *sim, unsigned wanted)
{
    unsigned drawn = wanted & (unsigned)draw(sim, (uint64_t)ACO_SIM_FAULT_ALL + 1);
    for (uint64_t n = 0, i = 0; !(wanted & drawn) && i < KINDS; i++)
        if (wanted & kinds[i].bit && draw(sim, ++n) == 0)
            drawn = kinds[i].bit;
    return drawn;
}

static nemesis_t *new_nemesis(aco_sim_t *sim, unsigned wanted)
{
    nemesis_t *nemesis = calloc(1, sizeof *nemesis);
    if (!nemesis)
        return NULL;
    nemesis->sim = sim;
    nemesis->kinds = draw_kinds(sim, wanted);
    nemesis->gap = SHORTEST << (8 - draw(sim, 9));
    nemesis->length = SHORTEST * 1000 >> draw(sim, 11);
    nemesis->until = sim->now + (ACO_SECOND << draw(sim, 6));
    nemesis->next = sim->nemesis;
    return sim->nemesis = nemesis;
}

int aco_sim_nemesis(aco_sim_t *sim, unsigned faults)
{
    static const char call[] = "aco_sim_nemesis";
    nemesis_t *nemesis;
    if (aco__sim_check_first(sim, call) != 0)
        return -1;
    if (faults & ~(unsigned)ACO_SIM_FAULT_ALL)
        return aco__service_fail(EINVAL, call, "a kind of fault is unknown");
    stop(sim->nemesis);
    if (!faults)
        return 0;
    nemesis = new_nemesis(sim, faults);
    if (!nemesis || aco__sim_spawn(sim, &sim->nodes.own, "nemesis", run_nemesis, nemesis) != 0)
        return aco__service_fail(ENOMEM, call, "no memory");
    return 0;
}

void aco__sim_nemesis_end(aco_sim_t *sim)
{
    while (sim->nemesis) {
        nemesis_t *nemesis = sim->nemesis;
        sim->nemesis = nemesis->next;
        free(nemesis);
    }
}
