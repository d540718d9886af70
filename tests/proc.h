/* Numbers from /proc. */
#ifndef PROC_H
#define PROC_H

#include <dirent.h>
#include <stdio.h>

/* The first one in the file; 0: there is none. */
static inline size_t proc_number(const char *path)
{
    FILE *file = fopen(path, "r");
    size_t n = 0;
    if (file && fscanf(file, "%zu", &n) != 1)
        n = 0;
    if (file)
        fclose(file);
    return n;
}

/* How many threads the process has; 1 if there is no /proc. */
static inline int thread_count(void)
{
    int n = -2; /* "." and ".." */
    DIR *directory = opendir("/proc/self/task");
    if (!directory)
        return 1;
    while (readdir(directory))
        n++;
    closedir(directory);
    return n;
}

/* How many mappings a process may have. */
static inline size_t mapping_limit(void)
{
    return proc_number("/proc/sys/vm/max_map_count");
}

#endif
