/* What names.c has for dialing. */
#ifndef ACO_IO_NAMES_INTERNAL_H
#define ACO_IO_NAMES_INTERNAL_H

#include "base/invariants.h"
#include "io/address.h"

enum { IO_MOST_TARGETS = 16 };
typedef struct aco__io_targets {
    size_t n, sz;           /* sz: of this record, as allocated */
    aco__io_address_t at[]; /* in the order in which to try them */
} aco__io_targets_t;
/* All addresses that a call of aco_io_dial() means; waits for a name to be looked up. The caller frees the record. NULL
 * after a failure. */
ACO__SWITCHES
ACO__HIDDEN aco__io_targets_t *aco__io_targets(const char *call, const char *network, const char *host,
                                               const char *port, const char *location);

#endif
