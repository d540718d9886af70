/* open_file.c: open files and directories of a simulated disk, and the calls for their descriptors. */
#ifndef ACO_OPEN_FILE_H
#define ACO_OPEN_FILE_H

#include "sim/disk.h"
#include "sim/opened.h"

/* A new open file. NULL and errno. */
ACO__HIDDEN aco__sim_file_t *aco__sim_file_of_inode(aco_sim_t *sim, aco__sim_disk_t *disk, aco__sim_inode_t *inode,
                                                    int flags);
/* Where the next read or write of a file or directory begins. */
ACO__HIDDEN int64_t *aco__sim_file_position(aco__sim_file_t *file);
/* What is behind the position of a regular file; less than 0: the position is behind the end. */
ACO__HIDDEN int64_t aco__sim_file_rest(aco__sim_file_t *file);
/* Reads from a file or directory, flags as of preadv2(): at `offset`, or at its position (-1). -1 and errno. */
ACO__HIDDEN ssize_t aco__sim_file_read(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int64_t offset,
                                       int flags);
/* The open directory of a descriptor; NULL and errno: EBADF, ENOTDIR, EIO. */
ACO__HIDDEN aco__sim_inode_t *aco__sim_folder_of(aco_sim_t *sim, int fd, const char *call);

#endif
