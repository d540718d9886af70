/* Calls of OpenSSL. The layer of TLS, in the library acorn_tls, is above acorn_io. It calls what acorn and acorn_io
 * export, and OpenSSL, which it never leaves by a switch: the queue of OpenSSL's errors is the thread's. */
#ifndef ACO_TLS_WORK_H
#define ACO_TLS_WORK_H

#include "base/invariants.h"
#include "system/system.h"

/* OpenSSL works from here to aco__tls_end_work() on what tasks share: a connection that two use, one for each
 * direction, the errors of the thread, a configuration. None of them runs in the middle. So what OpenSSL locks blocks
 * the thread, in hooked tasks too. */
static inline void aco__tls_begin_work(void)
{
    aco__hooks_hold();
    ACO__NO_SWITCH_BEGIN();
}

static inline void aco__tls_end_work(void)
{
    ACO__NO_SWITCH_END();
    aco__hooks_release();
}

#endif
