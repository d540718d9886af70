/* fifo.c: pipes. */
#ifndef ACO_FIFO_H
#define ACO_FIFO_H

#include "sim/opened.h"

/* Whether it is an end of a pipe, and how many bytes can be written to it. */
ACO__HIDDEN int aco__sim_is_fifo(const aco__sim_file_t *file);
ACO__HIDDEN size_t aco__sim_fifo_room(const aco__sim_file_t *file);

#endif
