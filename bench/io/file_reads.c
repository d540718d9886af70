/* Random reads of a file by tasks, for bench-io: file_reads FILE TASKS SECONDS. Past the cache (O_DIRECT) where the
 * file system allows it. ACO_FILES says by which way. It prints the reads per second, and the processor time of each in
 * microseconds, that of the pool's and the kernel's threads included. */
#define _GNU_SOURCE
#include <aco/file.h>
#include <aco/group.h>
#include <aco/io.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { BLOCK = 4096 };

typedef struct bench {
    const char *path;
    int fd, tasks;
    unsigned long blocks, reads;
    int64_t seconds, end;
} bench_t;

static bench_t bench;

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, aco_error_message());
    exit(1);
}

static void *reads(void *number)
{
    uint64_t random = (uintptr_t)number * 0x9E3779B97F4A7C15u;
    void *block = aligned_alloc(BLOCK, BLOCK);
    while (aco_now() < bench.end) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (aco_file_pread(bench.fd, block, BLOCK, (int64_t)((random >> 33) % bench.blocks * BLOCK)) != BLOCK)
            fail("read");
        bench.reads++;
    }
    free(block);
    return NULL;
}

static double cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void *run_bench(void *unused)
{
    aco_file_status_t status;
    aco_group_t group;
    int64_t began;
    double cpu;
    bench.fd = aco_file_open(bench.path, O_RDONLY | O_DIRECT, 0);
    if (bench.fd < 0)
        bench.fd = aco_file_open(bench.path, O_RDONLY, 0);
    if (bench.fd < 0 || aco_file_fstat(bench.fd, &status) != 0)
        fail("open");
    bench.blocks = (unsigned long)(status.size / BLOCK);
    if (!bench.blocks)
        fail("the file is too small");
    cpu = cpu_us();
    began = aco_now();
    bench.end = began + bench.seconds * ACO_SECOND;
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (intptr_t i = 1; i <= bench.tasks; i++)
        if (!aco_group_spawn(&group, reads, (void *)i, NULL))
            fail("spawn");
    aco_group_end(&group);
    cpu = cpu_us() - cpu;
    printf("%.0f %.3f\n", (double)bench.reads / ((double)(aco_now() - began) / 1e9), cpu / (double)bench.reads);
    aco_io_close(bench.fd);
    return unused;
}

int main(int argc, char **argv)
{
    aco_t *task;
    if (argc < 4)
        return 2;
    bench.path = argv[1];
    bench.tasks = atoi(argv[2]);
    bench.seconds = atoi(argv[3]);
    task = aco_spawn(run_bench, NULL, NULL);
    if (!task || aco_run() != 0)
        fail("run");
    return 0;
}
