/* Numbers from /proc. */
#ifndef PROC_H
#define PROC_H

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

/* How many mappings a process may have. */
static inline size_t mapping_limit(void)
{
    return proc_number("/proc/sys/vm/max_map_count");
}

#endif
