/* span.c: spans of tasks. */
#ifndef ACO_SPAN_H
#define ACO_SPAN_H

#include "debug/traceparent.h"

enum { ACO__SPAN_NAME = 96, ACO__SPAN_MESSAGE = 128, ACO__SPAN_ATTRIBUTES = 32 };

typedef struct aco__attribute {
    struct aco__attribute *next;
    char name[64];
    int64_t number;
    int is_text;
    char text[]; /* if it is one */
} aco__attribute_t;

struct aco_span_s {
    aco__trace_context_t context;
    unsigned char parent[ACO__SPAN_ID];
    unsigned char has_parent, kind, has_failed;
    unsigned char is_outside; /* it stands for another task's: it is not sent */
    int attributes_n;
    aco_span_t *outer; /* around it, in its task; then the next in the queue */
    char *state;       /* the tracestate; NULL: none */
    int64_t began, ended; /* of the clock of the day, ns */
    aco__attribute_t *attributes;
    char name[ACO__SPAN_NAME], message[ACO__SPAN_MESSAGE];
};

/* From now on spans are made, of this many of a million traces. 0, or -1 and errno: EAGAIN. */
ACO__HIDDEN int aco__spans_begin(int per_million);
ACO__HIDDEN void aco__spans_end(void);
/* The same in a child of fork(), where another thread of its parent may have held the lock. */
ACO__HIDDEN void aco__spans_leave_to_parent(void);

/* The innermost of the caller; NULL: none. */
ACO__HIDDEN aco_span_t *aco__span_own(void);
/* Whether the caller is inside of it, which may be freed already. */
ACO__HIDDEN int aco__span_is_open(const aco_span_t *span);
/* Begins one inside of this one, which may be another program's: `parent` NULL: the first of a trace. */
ACO__HIDDEN aco_span_t *aco__span_begin(const char *name, aco_span_kind_t kind, const aco__trace_context_t *parent,
                                        const char *state);
/* The same, but of no task: who has it last calls aco__span_finish(), which frees it or hands it to the exporter. */
ACO__HIDDEN aco_span_t *aco__span_begin_apart(const char *name, aco_span_kind_t kind,
                                              const aco__trace_context_t *parent, const char *state);
ACO__HIDDEN void aco__span_finish(aco_span_t *span);
/* Numbers of a trace that nobody samples: for the exporter's own requests. */
ACO__HIDDEN void aco__span_unsampled(aco__trace_context_t *context);

#endif
