/* dump_signal.c: a signal that has a thread's tasks dumped. */
#ifndef ACO_DUMP_SIGNAL_H
#define ACO_DUMP_SIGNAL_H

#include "scheduler/record.h"

/* From now on the signal has the scheduler dump its tasks. 0, or -1 and errno. */
ACO__HIDDEN int aco__dump_signal_start(aco__tasks_t *s, int signal, int fd, const char *call);
ACO__HIDDEN void aco__dump_signal_stop(aco__tasks_t *s);

#endif
