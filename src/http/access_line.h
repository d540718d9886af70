/* The lines of access logs: access_line.c. */
#ifndef ACO_HTTP_ACCESS_LINE_H
#define ACO_HTTP_ACCESS_LINE_H

#include "os/platform.h"

#include "aco/access_log.h"

#include <time.h>

enum { ACCESS_TEXT = 1024, ACCESS_LINE = 32 << 10 }; /* bytes of a text that are logged; bytes of a line, at most */

/* What the lines of all files have in common. */
typedef struct aco__access {
    const aco_http_request_t *request;
    char client[ACO_IO_ADDRESS_SIZE]; /* its address without the port, or "-" */
    struct tm time;
    int milliseconds;
    int64_t duration;
} aco__access_t;

/* Looks at the clocks and the peer. */
ACO__HIDDEN void aco__access_of(aco__access_t *access, const aco_http_request_t *request);
/* Writes the line at `at`, where ACCESS_LINE bytes are free. Behind it. */
ACO__HIDDEN char *aco__access_put(char *at, const aco__access_t *access, int format);

#endif
