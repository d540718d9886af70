/* own_thread.c: threads of this library. */
#ifndef ACO_OWN_THREAD_H
#define ACO_OWN_THREAD_H

#include "debug/page.h"

#include <pthread.h>

/* Starts a thread that gets no signals, as those are for the program's threads. 0, or an error number. */
ACO__HIDDEN int aco__own_thread(pthread_t *thread, void *(*runs)(void *));

#endif
