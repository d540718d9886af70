/* late.c: what keeps threads from their other tasks. */
#ifndef ACO_LATE_H
#define ACO_LATE_H

#include "debug/page.h"

/* /debug/pprof/late: runs that are longer than a limit, where they were when it had passed; and tasks whose sleeps and
 * time limits ended late. */
ACO__SWITCHES ACO__HIDDEN void aco__late_page(aco_http_request_t *request, void *unused);

#endif
