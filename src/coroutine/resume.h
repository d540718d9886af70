/* resume.c: functions that run on the scratch stack. */
#ifndef ACO_COROUTINE_RESUME_H
#define ACO_COROUTINE_RESUME_H

#include "tools/tools.h"

ACO__HIDDEN aco__arrival_t aco__on_scratch, aco__restore_trampoline, aco__trapped;

#endif
