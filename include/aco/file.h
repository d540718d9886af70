/* Files and directories: only the task waits for the disk. In the library acorn_io, beside acorn.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   int fd = aco_file_open("data", O_RDONLY, 0);
 *   ssize_t n = aco_file_pread(fd, block, sizeof block, 0);
 *   aco_io_close(fd);
 *
 * The calls do what the system calls with these names do. They go by io_uring where the kernel allows it, else by
 * threads of the pool (aco/offload.h); docs/io.md says how to choose. A read of bytes already in memory is done at
 * once. No call fails with EINTR. Memory on a share stack is copied, at most 256 KiB for each call, so it cannot be
 * aligned as O_DIRECT needs it. Each plain form is a macro for the form with `_at`. A caller that cannot wait gets
 * EPERM, except from a read that need not wait.
 *
 * Scopes. Reads, writes and aco_dir_read() use the caller's memory. So if a scope ends, they return only when nobody
 * uses that memory any more. io_uring stops what it can (a read from a FIFO), and the call fails. The pool cannot stop
 * what a thread has begun, so the call waits for its result. A call that has got a result returns it. All other calls
 * fail as soon as the scope ends. What they were to do may still happen (a rename), but leaves nothing open.
 *
 * Closing. Close a descriptor only when all calls of other tasks for it are done. With io_uring aco_io_close() may come
 * earlier: these calls still use the old file. On the pool, or after close(), they could use the file that gets the
 * number next.
 *
 * Threads. Any thread may use a file. One task at a time reads a directory, on any thread.
 *
 * Errors are the system's, and those of aco_offload(): EPERM (the caller cannot wait), ETIMEDOUT, ECANCELED, EAGAIN,
 * ENOMEM, EMFILE, ENFILE. Also EINVAL: a path or a structure is NULL, an offset is negative, or the variable ACO_FILES
 * is wrong. The message names the call and the path or descriptor. */
#ifndef ACO_FILE_H
#define ACO_FILE_H

#include "scope.h"

#include <sys/types.h>

ACO__BEGIN_C

/* Opens a file. `flags` and `mode` are those of open(). For a FIFO the call waits until its other end is open. Returns
 * the descriptor, close-on-exec; on error -1 with errno. Any system call may use it; close it by aco_io_close()
 * (aco/io.h) or close(). */
ACO_API int aco_file_open_at(const char *path, int flags, unsigned mode, const char *location);
#define aco_file_open(path, flags, mode) aco_file_open_at(path, flags, mode, ACO_PLACE)

enum { /* symbolic links on the way */
    ACO_FILE_NO_LINKS,    /* none is followed: ELOOP, or ENOTDIR if it stands for a folder on an old system */
    ACO_FILE_LINKS_INSIDE /* those that stay below the folder are followed: relative ones that do not lead out of it */
};

/* Opens the file `path` below the folder, for paths that strangers choose: never another one, by "..", by an absolute
 * path or by a symbolic link, also if somebody changes folders or links meanwhile. The way to the folder itself may
 * have links. Other file systems may be mounted below it. Before Linux 5.6, under filters of system calls that do not
 * know openat2(), and on other systems, no link is followed, and the folders are looked at one after the other: that is
 * no protection from who changes them meanwhile. Goes by the pool. Returns the descriptor, as aco_file_open(); on error
 * -1 with errno, also EXDEV (the path or a link leads out), ELOOP, EINVAL (`links`; flags that open() would ignore). */
ACO_API int aco_file_open_beneath_at(const char *folder, const char *path, int flags, unsigned mode, int links,
                                     const char *location);
#define aco_file_open_beneath(folder, path, flags, mode, links) \
    aco_file_open_beneath_at(folder, path, flags, mode, links, ACO_PLACE)

/* Read and write at most `n` bytes: at the file's own position, which they move, or at `offset`, which is at least 0.
 * Return the number of bytes, perhaps fewer, 0 at the end of the file; on error -1 with errno. A read that has got a
 * part returns that, also if its scope ends. */
ACO_API ssize_t aco_file_read_at(int fd, void *p, size_t n, const char *location);
ACO_API ssize_t aco_file_write_at(int fd, const void *p, size_t n, const char *location);
ACO_API ssize_t aco_file_pread_at(int fd, void *p, size_t n, int64_t offset, const char *location);
ACO_API ssize_t aco_file_pwrite_at(int fd, const void *p, size_t n, int64_t offset, const char *location);
#define aco_file_read(fd, p, n) aco_file_read_at(fd, p, n, ACO_PLACE)
#define aco_file_write(fd, p, n) aco_file_write_at(fd, p, n, ACO_PLACE)
#define aco_file_pread(fd, p, n, offset) aco_file_pread_at(fd, p, n, offset, ACO_PLACE)
#define aco_file_pwrite(fd, p, n, offset) aco_file_pwrite_at(fd, p, n, offset, ACO_PLACE)

/* Waits until the file's bytes are on the disk, as fsync() does. Returns 0; on error -1 with errno. */
ACO_API int aco_file_sync_at(int fd, const char *location);
#define aco_file_sync(fd) aco_file_sync_at(fd, ACO_PLACE)

typedef struct aco_file_status_s { /* what struct stat has, but the same on all systems */
    uint64_t device, inode, links, size, blocks; /* blocks: of 512 bytes */
    uint32_t mode, user, group, block_size;
    int64_t accessed_ns, modified_ns, changed_ns; /* since 1970; INT64_MIN or INT64_MAX if the time does not fit */
} aco_file_status_t;

/* Fill in *status, for a path or a descriptor, as stat() and fstat() do. On error it stays as it was. Return 0; on
 * error -1 with errno. */
ACO_API int aco_file_stat_at(const char *path, aco_file_status_t *status, const char *location);
ACO_API int aco_file_fstat_at(int fd, aco_file_status_t *status, const char *location);
#define aco_file_stat(path, status) aco_file_stat_at(path, status, ACO_PLACE)
#define aco_file_fstat(fd, status) aco_file_fstat_at(fd, status, ACO_PLACE)

/* Renames a file, as rename() does. Returns 0; on error -1 with errno. */
ACO_API int aco_file_rename_at(const char *from, const char *to, const char *location);
#define aco_file_rename(from, to) aco_file_rename_at(from, to, ACO_PLACE)

/* Gives the file another name, as link() does, and takes one away, as unlink() does. Set the file's size, as
 * ftruncate() does. These, aco_dir_make() and aco_dir_remove() always go by the pool. Return 0; on error -1 with
 * errno. */
ACO_API int aco_file_link_at(const char *from, const char *to, const char *location);
ACO_API int aco_file_unlink_at(const char *path, const char *location);
ACO_API int aco_file_truncate_at(int fd, int64_t size, const char *location);
#define aco_file_link(from, to) aco_file_link_at(from, to, ACO_PLACE)
#define aco_file_unlink(path) aco_file_unlink_at(path, ACO_PLACE)
#define aco_file_truncate(fd, size) aco_file_truncate_at(fd, size, ACO_PLACE)

/* ---- Directories ------------------------------------------------------------------------------------------------- */

typedef struct aco_dir_s aco_dir_t;

typedef struct aco_dir_entry_s {
    const char *name;   /* valid until the next call for the directory */
    uint64_t inode;
    unsigned char type; /* DT_… of <dirent.h>; 0: the file system does not tell */
} aco_dir_entry_t;

/* Opens a directory. The caller owns it, and closes it by aco_dir_close(). Returns it; on error NULL with errno. */
ACO_API aco_dir_t *aco_dir_open_at(const char *path, const char *location);
#define aco_dir_open(path) aco_dir_open_at(path, ACO_PLACE)
/* Reads the next entry, other than "." and "..". It gets some hundreds of entries at a time from the system. Returns 1,
 * or 0 if there is no entry left; on error -1 with errno, also EBUSY (another task reads the directory). After an error
 * of the system it fails again; after the others the next call goes on. */
ACO_API int aco_dir_read_at(aco_dir_t *dir, aco_dir_entry_t *entry, const char *location);
#define aco_dir_read(dir, entry) aco_dir_read_at(dir, entry, ACO_PLACE)
/* Closes a directory and frees it. Does not wait. Returns 0; on error -1 with errno EBUSY (a task reads it), EINVAL
 * (NULL). */
ACO_API int aco_dir_close(aco_dir_t *dir);

/* Make and remove a directory, as mkdir() and rmdir() do. Return 0; on error -1 with errno. */
ACO_API int aco_dir_make_at(const char *path, unsigned mode, const char *location);
ACO_API int aco_dir_remove_at(const char *path, const char *location);
#define aco_dir_make(path, mode) aco_dir_make_at(path, mode, ACO_PLACE)
#define aco_dir_remove(path) aco_dir_remove_at(path, ACO_PLACE)

ACO__END_C

#endif
