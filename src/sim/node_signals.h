/* node_signals.c: signals in a run. */
#ifndef ACO_NODE_SIGNALS_H
#define ACO_NODE_SIGNALS_H

#include "sim/world.h"

#include <signal.h>

/* Whether the signal tells of a fault of the real process, such as SIGSEGV. */
ACO__HIDDEN int aco__sim_is_fault(int signal);

/* As the system's calls with these names. */
ACO__HIDDEN int aco__sim_pthread_sigmask(aco_sim_t *sim, int how, const sigset_t *signals, sigset_t *before);
ACO__HIDDEN int aco__sim_pthread_kill(aco_sim_t *sim, pthread_t thread, int signal);
ACO__HIDDEN int aco__sim_kill(aco_sim_t *sim, pid_t process, int signal);
ACO__HIDDEN int aco__sim_raise(aco_sim_t *sim, int signal);
ACO__HIDDEN int aco__sim_sigpending(aco_sim_t *sim, sigset_t *signals);
ACO__HIDDEN int aco__sim_sigwaitinfo(aco_sim_t *sim, const sigset_t *signals, void *info);
/* `until`: nanoseconds since the run's begin. */
ACO__HIDDEN int aco__sim_sigwait_until(aco_sim_t *sim, const sigset_t *signals, void *info, int64_t until);

#endif
