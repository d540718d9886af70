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

/* Numbers with labels that become more while the program runs: a row for each. */
enum { ACO__COUNTED_BOUNDS = 16 };
typedef enum aco__counted_kind { ACO__COUNTED_COUNTER, ACO__COUNTED_GAUGE, ACO__COUNTED_TIMES } aco__counted_kind_t;
typedef struct aco__counted_row {
    char labels[320]; /* as above */
    uint64_t value;   /* of times: their sum, ns */
    uint64_t times[ACO__COUNTED_BOUNDS + 1]; /* how many were up to each of aco__counted_bounds[] but not the one
                                              * before, and beyond the last */
} aco__counted_row_t;
typedef struct aco__counted_rows {
    const char *name, *unit, *help; /* as above */
    aco__counted_kind_t kind;
    int which; /* for read() */
    /* Stores the i-th row. 1; 0: it is empty; -1: there are not so many. Any thread; it must not wait. */
    int (*read)(int which, size_t i, aco__counted_row_t *row);
    struct aco__counted_rows *next; /* the registry's */
} aco__counted_rows_t;
ACO_API extern const int64_t aco__counted_bounds[ACO__COUNTED_BOUNDS]; /* 0.1 ms to 10 s, in ns */

/* The same for rows. */
ACO_API void aco__counted_rows_add(aco__counted_rows_t *rows);
ACO_API const aco__counted_rows_t *aco__counted_all_rows(void);

/* Where `value` counts in a histogram: the index of the first of `n` growing bounds that it does not exceed, or n. */
ACO__FORCE_INLINE size_t aco__counted_place(const int64_t *bounds, size_t n, int64_t value)
{
    size_t place = 0;
    while (place < n && value > bounds[place])
        place++;
    return place;
}

/* The calling thread's own of `parts` parts. Threads beyond share them, so additions are atomic. */
ACO__FORCE_INLINE unsigned aco__counted_part(unsigned parts)
{
    static unsigned threads;
    static __thread unsigned own; /* its number and 1; 0: none yet */
    if (!own)
        own = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    return (own - 1) % parts;
}

ACO__END_C

#endif
