/* What the scenario says of the disks of its nodes. */
#include "base/reserved.h"
#include "sim/draw.h"
#include "sim/routes.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>

static int check_disk(const aco_sim_disk_t *disk, const char *call)
{
    if (!aco__sim_is_latency(&disk->latency))
        return aco__service_fail(EINVAL, call, "the latency is out of range");
    if (!aco__sim_is_chance(disk->read_errors) || !aco__sim_is_chance(disk->write_errors) ||
        !aco__sim_is_chance(disk->sync_errors) || !aco__sim_is_chance(disk->short_transfers))
        return aco__service_fail(EINVAL, call, "a chance is not from 0 to 1");
    if (disk->sector && disk->sector != ACO__SIM_SMALL_SECTOR && disk->sector != ACO__SIM_LARGE_SECTOR)
        return aco__service_fail(EINVAL, call, "the sector has neither 512 nor 4096 bytes");
    if (ACO__RESERVED_IS_SET(disk))
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
            aco__sim_disk_set(&each->disk, disk);
    if (!named[0])
        sim->disk_options = *disk; // NOLINT(clang-analyzer-core.NullDereference): there is a run, as named[0] is set
    return 0;
}

int aco_sim_disk_crash(aco_sim_t *sim)
{
    if (aco__sim_check_run(sim, "aco_sim_disk_crash") != 0)
        return -1;
    aco__sim_disk_crash(sim, aco__sim_disk_here(sim));
    return 0;
}
