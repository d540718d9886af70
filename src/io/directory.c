/* Directories: a thread of the pool opens one and reads some hundred entries at a time into the record. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "io/file_internal.h"
#include "io/offload_internal.h"
#include "system/system.h"

#include "aco/detail/poller.h"
#include "aco/file.h"

#include <dirent.h>
#include <string.h>

enum { BATCH = 32 * 1024, LARGEST_ENTRY = 4096 + 9 }; /* an entry: inode (8 bytes), type (1), name, 0 */

struct aco_dir_s {
    DIR *dir;
    int error;          /* errno of opening or reading; 0: none */
    char is_read;       /* a task waits for the next entries */
    char is_at_end;
    size_t used, next;  /* of the batch: filled; given out */
    char *path;         /* behind the record */
    size_t sz;
    char batch[BATCH];
};

/* ---- On a thread of the pool ---- */

static void *open_dir(void *arg)
{
    aco_dir_t *dir = arg;
    dir->dir = aco__system.opendir(dir->path);
    dir->error = dir->dir ? 0 : errno;
    return arg;
}

static void release_dir(void *arg, void *result)
{
    aco_dir_t *dir = arg;
    (void)result;
    if (dir->dir)
        aco__system.closedir(dir->dir);
    aco__service_free(dir, dir->sz);
}

static void pack(aco_dir_t *dir, const struct dirent *entry)
{
    uint64_t inode = entry->d_ino;
    size_t n = strlen(entry->d_name) + 1;
    char *to = dir->batch + dir->used;
    memcpy(to, &inode, 8);
    to[8] = (char)entry->d_type;
    memcpy(to + 9, entry->d_name, n);
    dir->used += 9 + n;
}

static int is_wanted(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
           strlen(entry->d_name) < LARGEST_ENTRY - 9;
}

static void *fill_batch(void *arg)
{
    aco_dir_t *dir = arg;
    const struct dirent *entry = NULL;
    dir->used = dir->next = 0;
    errno = 0;
    while (BATCH - dir->used >= LARGEST_ENTRY && (entry = aco__system.readdir(dir->dir)) != NULL)
        if (is_wanted(entry))
            pack(dir, entry);
    if (!entry) {
        dir->is_at_end = 1;
        dir->error = errno;
    }
    return arg;
}

/* ---- Calls ---- */

aco_dir_t *aco_dir_open_at(const char *path, const char *location)
{
    static const char call[] = "aco_dir_open";
    size_t n = path ? strlen(path) + 1 : 0, sz = sizeof(aco_dir_t) + n;
    aco_dir_t *dir = NULL;
    int error;
    if (!path)
        (void)aco__service_fail(EINVAL, call, "the path is NULL");
    else
        dir = aco__service_allocate(&sz, call);
    if (!dir)
        return NULL;
    memset(dir, 0, offsetof(aco_dir_t, batch));
    dir->path = (char *)(dir + 1);
    memcpy(dir->path, path, n);
    dir->sz = sz;
    if (aco__io_offload_file(call, open_dir, dir, release_dir, location) != 0)
        return NULL;
    if (!dir->error)
        return dir;
    errno = dir->error;
    (void)aco__io_fail_path(call, dir->path);
    error = errno;
    release_dir(dir, NULL);
    errno = error;
    return NULL;
}

int aco_dir_read_at(aco_dir_t *dir, aco_dir_entry_t *entry, const char *location)
{
    static const char call[] = "aco_dir_read";
    const char *from;
    int failed;
    if (!dir || !entry || dir->is_read)
        return aco__service_fail(dir && entry ? EBUSY : EINVAL, call,
                                 dir && entry ? "another task reads the directory" : "a pointer is NULL");
    if (dir->next == dir->used && !dir->is_at_end) {
        dir->is_read = 1;
        failed = aco__io_offload_file(call, fill_batch, dir, NULL, location);
        dir->is_read = 0;
        if (failed)
            return -1;
    }
    if (dir->next == dir->used) {
        errno = dir->error;
        return dir->error ? aco__io_fail_path(call, dir->path) : 0;
    }
    from = dir->batch + dir->next;
    memcpy(&entry->inode, from, 8);
    entry->type = (unsigned char)from[8];
    entry->name = from + 9;
    dir->next += 9 + strlen(entry->name) + 1;
    return 1;
}

int aco_dir_close(aco_dir_t *dir)
{
    static const char call[] = "aco_dir_close";
    if (!dir || dir->is_read)
        return aco__service_fail(dir ? EBUSY : EINVAL, call,
                                 dir ? "a task reads the directory" : "the pointer is NULL");
    release_dir(dir, NULL);
    return 0;
}
