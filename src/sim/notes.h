/* notes.c: what a run does, told to people: its last events, its trace. Notes count for no hash and change no run. */
#ifndef ACO_NOTES_H
#define ACO_NOTES_H

#include "base/invariants.h"

#include "aco/sim.h"

/* The comments say what `number`, `value` and `text` are; else they are 0, 0 and NULL. */
typedef enum aco__sim_noted {
    ACO__NOTED_TURN,      /* a task's turn begins. For traces only */
    ACO__NOTED_DEADLINE,  /* likewise, and the deadline of its wait has come */
    ACO__NOTED_YIELDS,    /* the turn ends, and the task can run. number: how often, one after the other */
    ACO__NOTED_WAITS,     /* the turn ends. text: more on it; number: the socket, or 0; value: until when, or
                             INT64_MAX */
    ACO__NOTED_ENDS,      /* the task ends */
    ACO__NOTED_LISTENS,   /* number: the socket, here and below; text: an address */
    ACO__NOTED_CONNECTS,  /* text: to which address */
    ACO__NOTED_CONNECTED, /* the answer has come */
    ACO__NOTED_ACCEPTS,   /* text: from which address */
    ACO__NOTED_SENDS,     /* value: bytes; text: to which address */
    ACO__NOTED_RECEIVES,  /* value: bytes, 0 for the end; text: from which address */
    ACO__NOTED_CLOSES,
    ACO__NOTED_SHUTS,     /* shutdown() */
    ACO__NOTED_CALL,      /* text: a call that has failed; value: its errno */
    ACO__NOTED_LEAVES,    /* something leaves for the socket. For traces only */
    ACO__NOTED_ARRIVES,   /* something arrives there. For traces only */
    ACO__NOTED_BYTES,     /* value: so many arrive */
    ACO__NOTED_END,       /* the end of a stream arrives */
    ACO__NOTED_RESET,     /* a reset arrives */
    ACO__NOTED_REFUSED,   /* the connection is refused, or its time is over. value: the error */
    ACO__NOTED_DROPPED,   /* a datagram is lost. text: why */
    ACO__NOTED_FAULT,     /* text: what is done to the system: a crash, a partition, a jump of a clock */
    ACO__NOTED_OPERATION, /* text: a line of a history (aco/sim.h) */
    ACO__NOTED_FAILS      /* the run fails. text: why */
} aco__sim_noted_t;

enum { ACO__SIM_NOTE_TEXT = 64, ACO__SIM_MOST_EVENTS = 100000 };

typedef struct aco__sim_note {
    int64_t at;             /* nanoseconds since the run's begin */
    aco__sim_noted_t kind;
    uint64_t task;          /* the number of the task that has its turn; 0: none */
    uint64_t number;
    uint64_t message;       /* what leaves or arrives, by number; 0: nothing */
    int64_t value;
    const char *what;       /* ACO__NOTED_WAITS: it lasts */
    char name[ACO_NAME_SIZE]; /* of the task */
    char text[ACO__SIM_NOTE_TEXT]; /* it may be cut */
} aco__sim_note_t;

/* When the wait of a task ends, for the tasks that have waited last. */
typedef struct aco__sim_deadline {
    uint64_t task;          /* 0: none */
    int64_t until;
} aco__sim_deadline_t;

enum { ACO__SIM_DEADLINES = 64 };

typedef struct aco__sim_notes {
    aco__sim_note_t *ring;  /* the last notes; NULL: they are not kept */
    struct aco__sim_trace *trace; /* notes_trace.c; NULL: none is written */
    size_t room;
    uint64_t count;         /* of those in the ring and before */
    int is_wanted;          /* the ring or the trace, and the run has not failed */
    const aco_t *turn;      /* the task that has or had the last turn; NULL: it has ended, or none had */
    uint64_t turn_number;   /* its number; 0 when the turn is over */
    aco__sim_deadline_t deadlines[ACO__SIM_DEADLINES]; /* by the task's number; another one may need the place */
    int is_arriving;        /* something arrives now: what happens is no act of the task that has its turn */
    uint64_t arrived;       /* its number, until a note tells of it; 0: nothing arrives, or that was told */
} aco__sim_notes_t;

/* Keeps the last `events` notes. -1 without memory. */
ACO__HIDDEN int aco__sim_notes_new(aco__sim_notes_t *notes, int events);
ACO__HIDDEN void aco__sim_notes_free(aco__sim_notes_t *notes);
ACO__HIDDEN void aco__sim_notes_begin(aco_sim_t *sim); /* a run begins */

/* Something happens, in the turn of a task or between turns. `text`, which is copied, may be NULL. */
ACO__HIDDEN void aco__sim_note(aco_sim_t *sim, aco__sim_noted_t kind, uint64_t number, int64_t value, const char *text);
/* The same for a message with this number, which leaves for file `number`. */
ACO__HIDDEN void aco__sim_note_leaves(aco_sim_t *sim, uint64_t number, uint64_t message);
/* It begins to arrive, and has arrived at file `number`: if nothing was noted meanwhile, that is. */
ACO__HIDDEN void aco__sim_note_arrives(aco_sim_t *sim, uint64_t message);
ACO__HIDDEN void aco__sim_note_arrived(aco_sim_t *sim, uint64_t number);
/* A task has its turn from now on. */
ACO__HIDDEN void aco__sim_note_turn(aco_sim_t *sim, const aco_t *task, uint64_t number);
/* The turn is over, if there is one: the task waits or yields; or it has ended. */
ACO__HIDDEN void aco__sim_note_stop(aco_sim_t *sim);
ACO__HIDDEN void aco__sim_note_end(aco_sim_t *sim);

#endif
