/* fifo.c: pipes. */
#ifndef ACO_FIFO_H
#define ACO_FIFO_H

#include "sim/disk.h"
#include "sim/opened.h"

typedef struct aco__sim_fifo aco__sim_fifo_t;

/* The pipe of which it is an end; NULL: of none. */
ACO__HIDDEN aco__sim_fifo_t *aco__sim_pipe_of(const aco__sim_file_t *file);
/* How many bytes can be written to it. */
ACO__HIDDEN size_t aco__sim_fifo_room(const aco__sim_fifo_t *pipe);
/* How many can be read from it. */
ACO__HIDDEN size_t aco__sim_fifo_size(const aco__sim_fifo_t *pipe);
/* Whether it is one of a named pipe. */
ACO__HIDDEN int aco__sim_is_named_pipe(const aco__sim_file_t *file);
/* A new open file of a named pipe. NULL and errno: ENXIO, EINVAL, ENOMEM. */
ACO__HIDDEN aco__sim_file_t *aco__sim_fifo_of_inode(aco_sim_t *sim, aco__sim_disk_t *disk, aco__sim_inode_t *inode,
                                                    int flags);
/* open() for the file waits until somebody has the other end, if it is that of a named pipe. As aco__sim_block(). */
ACO__HIDDEN int aco__sim_fifo_meet(aco_sim_t *sim, aco__sim_file_t *file);

#endif
