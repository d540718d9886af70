/* thread_frames.c: how a thread leaves its function. */
#ifndef ACO_THREAD_FRAMES_H
#define ACO_THREAD_FRAMES_H

#include "sim/baton.h"

/* On the thread: calls its function. It also comes back when the thread leaves its frames. */
ACO__HIDDEN void aco__sim_call_function(aco__sim_thread_t *thread);
/* Whether the calling thread is in no coroutine, or in one that could wait. */
ACO__HIDDEN int aco__sim_may_leave_frames(void);
/* On the thread, which is to leave: goes to the end of aco__sim_call_function(), at most once. In a task it goes by way
 * of aco_run(), which calls this again between turns. */
ACO__HIDDEN void aco__sim_leave_frames(aco__sim_thread_t *thread);

#endif
