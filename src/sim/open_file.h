/* open_file.c: open files and directories of a simulated disk, and the calls for their descriptors. */
#ifndef ACO_OPEN_FILE_H
#define ACO_OPEN_FILE_H

#include "sim/disk.h"
#include "sim/opened.h"

struct stat;

/* A new open file. NULL and errno. */
ACO__HIDDEN aco__sim_file_t *aco__sim_file_of_inode(aco_sim_t *sim, aco__sim_disk_t *disk, aco__sim_inode_t *inode,
                                                    int flags);
/* What stat() tells. */
ACO__HIDDEN void aco__sim_inode_status(const aco__sim_inode_t *inode, struct stat *status);
/* It was read: changes the time of access where a disk mounted with relatime, as they usually are, does. */
ACO__HIDDEN void aco__sim_inode_accessed(const aco_sim_t *sim, aco__sim_inode_t *inode);
/* The open directory of a descriptor; NULL and errno: EBADF, ENOTDIR, EIO. */
ACO__HIDDEN aco__sim_inode_t *aco__sim_folder_of(aco_sim_t *sim, int fd, const char *call);

ACO__HIDDEN ssize_t aco__sim_pread(aco_sim_t *sim, int fd, void *p, size_t n, int64_t offset);
ACO__HIDDEN ssize_t aco__sim_pwrite(aco_sim_t *sim, int fd, const void *p, size_t n, int64_t offset);
ACO__HIDDEN ssize_t aco__sim_preadv2(aco_sim_t *sim, int fd, const struct iovec *parts, int n, int64_t offset,
                                     int flags);
ACO__HIDDEN int64_t aco__sim_lseek(aco_sim_t *sim, int fd, int64_t offset, int from);
ACO__HIDDEN int aco__sim_fsync(aco_sim_t *sim, int fd);
ACO__HIDDEN int aco__sim_ftruncate(aco_sim_t *sim, int fd, int64_t size);
ACO__HIDDEN ssize_t aco__sim_sendfile(aco_sim_t *sim, int to, int from, int64_t *offset, size_t n);

#endif
