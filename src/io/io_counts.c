/* What all threads have counted, for metrics: each thread counts in its own record, without atomics; who asks reads
 * them all. */
#include "io/io_counts.h"
#include "io/job_threads.h"
#include "system/system.h"

#include "aco/detail/counted.h"

#include <pthread.h>

enum {
    IO_CALLS,
    IO_WAITS,
    IO_POLLS,
    IO_EVENTS,
    IO_REGISTRATIONS,
    IO_BYTES_READ,
    IO_BYTES_WRITTEN,
    IO_JOBS,
    IO_LOOK_UPS
};

static pthread_mutex_t counts_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static aco__io_t *first_io;
static aco_io_stats_t of_ended; /* threads */

static void lock_counts(void)
{
    aco__system.pthread_mutex_lock(&counts_lock);
}

static void unlock_counts(void)
{
    aco__system.pthread_mutex_unlock(&counts_lock);
}

static uint64_t number_of(const aco_io_stats_t *stats, int which)
{
    switch (which) {
    case IO_CALLS:
        return stats->calls;
    case IO_WAITS:
        return stats->waits;
    case IO_POLLS:
        return stats->polls;
    case IO_EVENTS:
        return stats->events;
    case IO_REGISTRATIONS:
        return stats->registrations;
    case IO_BYTES_READ:
        return stats->bytes_read;
    default:
        return stats->bytes_written;
    }
}

/* Values that the thread writes without atomics: those that it had. */
ACO__NO_SANITIZE static void read_stats(aco_io_stats_t *to, const volatile aco_io_stats_t *of)
{
    to->calls = of->calls;
    to->waits = of->waits;
    to->polls = of->polls;
    to->events = of->events;
    to->registrations = of->registrations;
    to->bytes_read = of->bytes_read;
    to->bytes_written = of->bytes_written;
}

static uint64_t read_io(int which)
{
    uint64_t sum;
    if (which >= IO_JOBS)
        return aco__io_pool_done(which == IO_LOOK_UPS);
    lock_counts();
    sum = number_of(&of_ended, which);
    for (const aco__io_t *io = first_io; io; io = io->next) {
        aco_io_stats_t stats;
        read_stats(&stats, &io->stats);
        sum += number_of(&stats, which);
    }
    unlock_counts();
    return sum;
}

void aco__io_counts_join(aco__io_t *io)
{
    lock_counts();
    io->next = first_io;
    io->place = &first_io;
    if (io->next)
        io->next->place = &io->next;
    first_io = io;
    unlock_counts();
}

void aco__io_counts_leave(aco__io_t *io)
{
    aco_io_stats_t *sum = &of_ended;
    lock_counts();
    ACO__ASSERT(*io->place == io);
    *io->place = io->next;
    if (io->next)
        io->next->place = io->place;
    sum->calls += io->stats.calls;
    sum->waits += io->stats.waits;
    sum->polls += io->stats.polls;
    sum->events += io->stats.events;
    sum->registrations += io->stats.registrations;
    sum->bytes_read += io->stats.bytes_read;
    sum->bytes_written += io->stats.bytes_written;
    unlock_counts();
}

ACO__AT_LOAD static void register_io_counts(void)
{
    static const aco__counted_t counted[] = {
        {"acorn_io_calls", "", "", "Calls for descriptors.", IO_CALLS, 0},
        {"acorn_io_waits", "", "", "Waits of tasks for descriptors; other calls were done at once.", IO_WAITS, 0},
        {"acorn_io_polls", "", "", "How often threads have asked the system for events.", IO_POLLS, 0},
        {"acorn_io_events", "", "", "Events of descriptors.", IO_EVENTS, 0},
        {"acorn_io_registrations", "", "", "Changes of what the system watches.", IO_REGISTRATIONS, 0},
        {"acorn_io_read_bytes", "", "bytes", "Bytes read from descriptors.", IO_BYTES_READ, 0},
        {"acorn_io_written_bytes", "", "bytes", "Bytes written to descriptors.", IO_BYTES_WRITTEN, 0},
        {"acorn_offload_jobs", "kind=\"work\"", "", "Functions that the pool for blocking work has run.", IO_JOBS, 0},
        {"acorn_offload_jobs", "kind=\"look_up\"", "", "", IO_LOOK_UPS, 0},
    };
    static aco__counted_set_t set = {counted, sizeof counted / sizeof *counted, read_io, NULL};
    aco__counted_add(&set);
    /* In the child the records of other threads stay: nobody frees them there, and what they counted was counted. */
    (void)pthread_atfork(lock_counts, unlock_counts, unlock_counts);
}
