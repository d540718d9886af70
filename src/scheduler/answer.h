/* answer.c: waits that another thread ends. */
#ifndef ACO_ANSWER_H
#define ACO_ANSWER_H

#include "scheduler/wait.h"

/* The wait, which is in its queue, lasts until another thread has answered: by a post that wakes the queue. `ask`,
 * unless NULL, is called when it has begun. */
ACO__SWITCHES
ACO__HIDDEN void aco__wait_for_answer(aco__thread_t *self, aco__wait_t *wait, void (*ask)(void *arg), void *arg);

#endif
