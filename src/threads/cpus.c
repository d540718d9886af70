/* The processors that the process may use: its affinity, and the quota of its cgroup; which of them are near. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64 /* readdir() fails on 32-bit systems if an inode or an offset is larger */
#include "system/system.h"
#include "threads/cpus.h"
#include "threads/set.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 4096 };

/* The first line of a file. 0: it cannot be read. */
static int read_first_line(const char *path, char *line, int sz)
{
    FILE *file = aco__system.fopen(path, "re");
    int is_read = file && fgets(line, sz, file);
    if (file)
        fclose(file);
    return is_read;
}

/* ---- The quota ---- */

static int read_line(const char *root, const char *folder, const char *name, char *line, int sz)
{
    char path[2 * PATH];
    return snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/%s", root, folder, name) < (int)sizeof path &&
           read_first_line(path, line, sz);
}

/* `quota` of `period`, both in microseconds, rounded up. 0: no limit. */
static int processors_of(long long quota, long long period)
{
    long long n = quota > 0 && period > 0 ? (quota - 1) / period + 1 : 0;
    return n < INT_MAX ? (int)n : INT_MAX;
}

/* Version 2: "max 100000", or the quota and the period. */
static int quota_of_folder(const char *root, const char *folder)
{
    char line[128], *end;
    long long quota;
    if (!read_line(root, folder, "cpu.max", line, sizeof line))
        return 0;
    quota = strtoll(line, &end, 10);
    return end == line ? 0 : processors_of(quota, strtoll(end, NULL, 10));
}

static int quota_of_old_folder(const char *root, const char *folder)
{
    char quota[64], period[64];
    if (!read_line(root, folder, "cpu.cfs_quota_us", quota, sizeof quota) ||
        !read_line(root, folder, "cpu.cfs_period_us", period, sizeof period))
        return 0;
    return processors_of(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* The least quota of the folder and of all above it, up to the first `top` bytes. In a container the path may be that
 * of the host, and then only the topmost folder is there. */
static int least_quota(const char *root, char *folder, size_t top, int (*quota)(const char *root, const char *folder))
{
    int least = 0;
    for (;;) {
        int n = quota(root, folder);
        char *slash = strrchr(folder + top, '/');
        if (n && (!least || n < least))
            least = n;
        if (!slash)
            return least;
        *slash = 0;
    }
}

/* Whether a list "a,b,c" has the word. */
static int has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || !at[length]))
            return 1;
    }
    return 0;
}

/* A line of /proc/self/cgroup: "number:controllers:path". */
static int quota_of_line(const char *root, char *line)
{
    char folder[PATH];
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    size_t top;
    if (!path)
        return 0;
    *path++ = 0;
    path[strcspn(path, "\n")] = 0;
    controllers++;
    if (!*controllers) {
        snprintf(folder, sizeof folder, "%s", path);
        return least_quota(root, folder, 0, quota_of_folder);
    }
    if (!has_word(controllers, "cpu"))
        return 0;
    snprintf(folder, sizeof folder, "/cpu%s", path); /* a directory, or a link to "cpu,cpuacct" */
    top = strlen("/cpu");
    return least_quota(root, folder, top, quota_of_old_folder);
}

int aco__threads_quota(const char *root)
{
    char line[PATH];
    FILE *file;
    int least = 0, n;
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    file = aco__system.fopen(line, "re");
    while (file && fgets(line, sizeof line, file)) {
        n = quota_of_line(root, line);
        if (n && (!least || n < least))
            least = n;
    }
    if (file)
        fclose(file);
    return least;
}

/* ---- Places ---- */

static void path_of_processor(const char *root, int processor, char *path)
{
    snprintf(path, PATH, "%s/sys/devices/system/cpu/cpu%d", root, processor);
}

/* The processor's folder has an entry "node3". */
static int node_of(const char *root, int processor)
{
    char path[PATH];
    const struct dirent *entry;
    int node = -1;
    DIR *folder;
    path_of_processor(root, processor, path);
    folder = aco__system.opendir(path);
    while (folder && node < 0 && (entry = aco__system.readdir(folder)) != NULL)
        if (strncmp(entry->d_name, "node", 4) == 0 && entry->d_name[4] >= '0' && entry->d_name[4] <= '9')
            node = (int)strtol(entry->d_name + 4, NULL, 10);
    if (folder)
        aco__system.closedir(folder);
    return node;
}

/* A number in a file of one of the processor's caches; of a list like "4-7" the first. -1: there is none. */
static int number_of_cache(const char *root, int processor, int cache, const char *name)
{
    char path[PATH + 64], line[64];
    size_t length;
    path_of_processor(root, processor, path);
    length = strlen(path);
    snprintf(path + length, sizeof path - length, "/cache/index%d/%s", cache, name);
    return read_first_line(path, line, sizeof line) ? (int)strtol(line, NULL, 10) : -1;
}

aco__place_t aco__threads_place(const char *root, int processor)
{
    enum { CACHES = 16 };
    aco__place_t place = {-1, -1};
    int highest = 0;
    if (processor < 0)
        return place;
    place.node = node_of(root, processor);
    for (int i = 0; i < CACHES; i++) {
        int level = number_of_cache(root, processor, i, "level");
        if (level > highest) {
            highest = level;
            place.cache = number_of_cache(root, processor, i, "shared_cpu_list");
        }
    }
    return place;
}

/* ---- Processors ---- */

#ifdef __linux__

int aco__threads_processors(aco__processors_t *allowed)
{
    int count = 0;
    memset(allowed, 0, sizeof *allowed);
    if (aco__system.sched_getaffinity(0, sizeof allowed->bits, allowed->bits) != 0)
        return (int)aco__system.sysconf(_SC_NPROCESSORS_ONLN);
    for (size_t i = 0; i < sizeof allowed->bits / sizeof *allowed->bits; i++)
        count += __builtin_popcountl(allowed->bits[i]);
    return count;
}

int aco__threads_pin(const aco__processors_t *allowed, int n)
{
    enum { BITS = CHAR_BIT * sizeof(unsigned long) };
    aco__processors_t one;
    memset(&one, 0, sizeof one);
    for (size_t i = 0; i < sizeof allowed->bits * CHAR_BIT; i++)
        if (allowed->bits[i / BITS] >> i % BITS & 1 && n-- == 0) {
            one.bits[i / BITS] = 1UL << i % BITS;
            return aco__system.sched_setaffinity(0, sizeof one.bits, one.bits) == 0 ? (int)i : -1;
        }
    return -1;
}

void aco__threads_unpin(const aco__processors_t *allowed)
{
    (void)aco__system.sched_setaffinity(0, sizeof allowed->bits, allowed->bits);
}

#else

int aco__threads_processors(aco__processors_t *allowed)
{
    memset(allowed, 0, sizeof *allowed);
    return (int)aco__system.sysconf(_SC_NPROCESSORS_ONLN);
}

int aco__threads_pin(const aco__processors_t *allowed, int n)
{
    (void)allowed;
    (void)n;
    return -1;
}

void aco__threads_unpin(const aco__processors_t *allowed)
{
    (void)allowed;
}

#endif

int aco__threads_usable(const char *root)
{
    aco__processors_t allowed;
    int error = errno, n = aco__threads_processors(&allowed), quota = aco__threads_quota(root);
    if (quota && quota < n)
        n = quota;
    errno = error;
    return n < 1 ? 1 : n < THREADS_MOST ? n : THREADS_MOST;
}

int aco_threads_usable(void)
{
    return aco__threads_usable("");
}
