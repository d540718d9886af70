/* more_sync.c: what sync.c's waits need of reader-writer locks. */
#ifndef ACO_MORE_SYNC_H
#define ACO_MORE_SYNC_H

#include "scheduler/wait.h"

/* The task of a wait with ACO__LEFT_FREE runs: takes the lock, or waits on. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN ACO__COLD int aco__rwlock_again(aco__wait_t *wait);

#endif
