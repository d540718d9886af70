/* A simulated disk: what the seed and the options make of it. */
#include "sim/disk.h"
#include "sim/routes.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>

static const aco_sim_range_t usual_time = {20 * ACO_MICROSECOND, 2 * ACO_MILLISECOND};

enum { SMALL_SECTOR = 512, LARGE_SECTOR = 4096 };

static void set_options(aco__sim_disk_t *disk, const aco_sim_disk_t *options)
{
    disk->options = *options;
    disk->has_fault = 0;
    if (!disk->options.latency.max)
        disk->options.latency = usual_time;
    disk->sector = options->sector ? (size_t)options->sector : disk->drawn_sector;
    disk->tree.room.capacity = options->capacity ? (options->capacity - 1) / ACO__SIM_PAGE + 1 : 0;
}

void aco__sim_disk_begin(aco_sim_t *sim, aco__sim_disk_t *disk)
{
    disk->crashes = 0;
    disk->drawn_sector = aco__sim_disk_draw(sim, 2) ? LARGE_SECTOR : SMALL_SECTOR;
    aco__sim_tree_begin(&disk->tree);
    set_options(disk, &sim->disk_options);
}

void aco__sim_disk_end(aco__sim_disk_t *disk)
{
    aco__sim_tree_end(&disk->tree);
}

aco__sim_disk_t *aco__sim_disk_here(aco_sim_t *sim)
{
    return &sim->nodes.here->disk;
}

void aco__sim_disk_crash(aco_sim_t *sim, aco__sim_disk_t *disk)
{
    disk->crashes++;
    aco__sim_tree_crash(sim, &disk->tree, disk->sector);
}

int64_t aco__sim_disk_time(aco_sim_t *sim, const aco__sim_disk_t *disk)
{
    const aco_sim_range_t *latency = &disk->options.latency;
    return latency->min + (int64_t)aco__sim_disk_draw(sim, (uint64_t)(latency->max - latency->min) + 1);
}

/* Numbers that are not below the chance stand for no, and so does 0: a simpler run has fewer faults. */
int aco__sim_disk_maybe(aco_sim_t *sim, double chance)
{
    const uint64_t all = (uint64_t)1 << 53; /* what a double holds */
    return chance > 0 && (double)(all - 1 - aco__sim_disk_draw(sim, all)) < chance * (double)all;
}

size_t aco__sim_disk_part(aco_sim_t *sim, const aco__sim_disk_t *disk, size_t n)
{
    return n > 1 && aco__sim_disk_maybe(sim, disk->options.short_transfers) ? 1 + (size_t)aco__sim_disk_draw(sim, n - 1)
                                                                            : n;
}

/* ---- Calls of the scenario ---- */

static int is_chance(double chance)
{
    return chance >= 0 && chance <= 1;
}

static int check_disk(const aco_sim_disk_t *disk, const char *call)
{
    if (disk->latency.min < 0 || disk->latency.max < disk->latency.min || disk->latency.max > 3600 * ACO_SECOND)
        return aco__service_fail(EINVAL, call, "the latency is out of range");
    if (!is_chance(disk->read_errors) || !is_chance(disk->write_errors) || !is_chance(disk->sync_errors) ||
        !is_chance(disk->short_transfers))
        return aco__service_fail(EINVAL, call, "a chance is not from 0 to 1");
    if (disk->sector && disk->sector != SMALL_SECTOR && disk->sector != LARGE_SECTOR)
        return aco__service_fail(EINVAL, call, "the sector has neither 512 nor 4096 bytes");
    for (size_t i = 0; i < sizeof disk->aco__reserved / sizeof *disk->aco__reserved; i++)
        if (disk->aco__reserved[i])
            return aco__service_fail(EINVAL, call, "a reserved field is not 0");
    return 0;
}

int aco_sim_disk(aco_sim_t *sim, const char *node, const aco_sim_disk_t *disk)
{
    static const char call[] = "aco_sim_disk";
    static const aco_sim_disk_t defaults = {0};
    const aco_sim_node_t *named[2];
    disk = disk ? disk : &defaults;
    if (aco__sim_ends_named(sim, node, node, named, call) != 0 || check_disk(disk, call) != 0)
        return -1;
    for (aco_sim_node_t *each = &sim->nodes.scenario; each; each = each->next)
        if (!named[0] || each == named[0])
            set_options(&each->disk, disk);
    if (!named[0])
        sim->disk_options = *disk;
    return 0;
}

int aco_sim_disk_crash(aco_sim_t *sim)
{
    if (!sim || sim != aco_sim_current())
        return aco__service_fail(EINVAL, "aco_sim_disk_crash", "it is not the run of the calling thread");
    aco__sim_disk_crash(sim, aco__sim_disk_here(sim));
    return 0;
}
