/* span_http.c: spans of requests. */
#ifndef ACO_SPAN_HTTP_H
#define ACO_SPAN_HTTP_H

#include "debug/span.h"

/* From now on requests of servers and calls of clients are spans, while spans are made. */
ACO__HIDDEN void aco__spans_of_http(void);

#endif
