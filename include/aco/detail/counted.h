/* Between the libraries and acorn_debug: what a library counts, for the page of metrics. Not for programs. */
#ifndef ACO_DETAIL_COUNTED_H
#define ACO_DETAIL_COUNTED_H

#include "for_libraries.h"

ACO__BEGIN_C

/* A number. Those of one name follow each other, and differ in their labels. */
typedef struct aco__counted {
    const char *name;   /* as OpenMetrics has it, without "_total": "acorn_tls_handshakes" */
    const char *labels; /* as between the braces; "": none */
    const char *unit;   /* "bytes", with which the name ends then; "": none */
    const char *help;
    int which;          /* for read() */
    int is_gauge;       /* 0: a counter */
} aco__counted_t;

/* The numbers of a library; they last. */
typedef struct aco__counted_set {
    const aco__counted_t *counted;
    size_t n;
    uint64_t (*read)(int which); /* any thread; it must not wait */
    struct aco__counted_set *next; /* the registry's */
} aco__counted_set_t;

/* Registers a library's numbers, once, when it is loaded. */
ACO_API void aco__counted_add(aco__counted_set_t *set);
/* The first one. NULL: there is none. */
ACO_API const aco__counted_set_t *aco__counted_sets(void);

ACO__END_C

#endif
