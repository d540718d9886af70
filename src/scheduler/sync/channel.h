/* channel.c: what reports and valid.c ask. */
#ifndef ACO_CHANNEL_H
#define ACO_CHANNEL_H

#include "scheduler/task.h"

/* Writes into text[sz] what a wait for several channels waits for. */
ACO__HIDDEN void aco__describe_select(const aco__wait_t *wait, char *text, size_t sz);

#ifdef ACO__INVARIANTS
/* For valid.c: aborts if the channel's counts do not fit its queues. The queue of those that wait to send, or to
 * receive. */
ACO__HIDDEN const aco__queue_t *aco__channel_check(const aco_channel_t *channel, int sends);
ACO__HIDDEN void aco__select_check(const aco__wait_t *wait);
#endif

#endif
