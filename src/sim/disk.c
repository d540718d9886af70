/* A simulated disk: what the seed and the options make of it. */
#include "sim/disk.h"
#include "sim/world.h"

static const aco_sim_range_t usual_time = {20 * ACO_MICROSECOND, 2 * ACO_MILLISECOND};

void aco__sim_disk_set(aco__sim_disk_t *disk, const aco_sim_disk_t *options)
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
    disk->drawn_sector = aco__sim_disk_draw(sim, 2) ? ACO__SIM_LARGE_SECTOR : ACO__SIM_SMALL_SECTOR;
    aco__sim_tree_begin(&disk->tree);
    aco__sim_disk_set(disk, &sim->disk_options);
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
