/* A replicated log, as Raft describes it: three nodes agree on one order of commands, and each carries them out. It
 * survives that any one node is down, that all of them crash in turn, and that messages are lost, doubled or late.
 *
 * The commands are writes and reads of one number. A client sends a request_t to any node by UDP, and again to another
 * one if no answer comes; a node that does not lead refuses. A repeated request is carried out once. */
#ifndef LOG_H
#define LOG_H

#include <stdint.h>
#include <sys/socket.h>

enum { NODES = 3, CLIENTS = 3, MOST_ENTRIES = 1000 };
#define LOG_PORT "7000"

/* Ten faults, of which one is switched on by its number; 0: the log is correct. */
typedef enum fault {
    NO_FAULT,
    VOTE_IS_FORGOTTEN,      /* a node that starts again has forgotten for whom it has voted */
    ANY_LOG_WINS,           /* a vote for a candidate that lacks entries of the voter */
    SYNC_IS_LATE,           /* an entry is acknowledged before it is on the disk */
    OLD_TERM_IS_COMMITTED,  /* an entry of an earlier term counts as committed when a majority has it */
    READ_IS_LOCAL,          /* a leader answers reads from its memory; it may not lead any more */
    REPEAT_IS_DONE_AGAIN,   /* a repeated command is carried out again */
    END_IS_NOT_COMPARED,    /* a node appends behind an entry that is not the leader's */
    OLD_VOTE_COUNTS,        /* a vote of an earlier term counts */
    LATE_APPEND_SHORTENS,   /* a late message takes entries away that came after it */
    FAILED_SYNC_IS_REPEATED /* until it succeeds: what the first fsync() was to write is lost in a crash */
} fault_t;
extern fault_t fault;

typedef struct command {
    int32_t client, number; /* a client numbers its commands from 1 */
    int32_t is_write;
    int32_t value;
} command_t;

typedef struct entry {
    int64_t term;
    command_t command;
} entry_t;

/* Between nodes, and between clients and nodes. All processors have the same byte order here. */
typedef struct message {
    enum { ASK_FOR_VOTE, VOTE, APPEND, APPENDED, REQUEST, ANSWER } kind;
    int32_t from;       /* the node's number */
    int32_t is_good;    /* VOTE, APPENDED, ANSWER: yes */
    int32_t has_entry;  /* APPEND */
    int64_t term;       /* of the sender */
    int64_t index; /* ASK_FOR_VOTE: its last entry; APPEND: the entry before; APPENDED: what both have up to there;
                           ANSWER: where the command stands in the log */
    int64_t index_term; /* ASK_FOR_VOTE, APPEND: that entry's term */
    int64_t committed; /* APPEND */
    entry_t entry; /* APPEND, REQUEST, ANSWER: with the answer to a read as its value */
} message_t;

/* One machine. All but the first two are lost when it crashes. */
typedef struct node {
    int number;
    const char *const *addresses; /* of all nodes */

    int socket, journal;
    int is_broken; /* its disk has failed: it says nothing more, and starts again */
    int is_unsynced;
    int64_t wakes_at;

    int64_t term; /* on the disk */
    int32_t vote; /* on the disk; -1: nobody's */
    int64_t last; /* on the disk, entries 1 to last */
    entry_t entries[MOST_ENTRIES + 1];

    enum { FOLLOWS, IS_CANDIDATE, LEADS } role;
    int voters; /* bits */
    int64_t next[NODES], matches[NODES];

    int64_t committed, applied;
    int32_t value;
    struct session { /* what a client's last command has led to, and where to answer */
        command_t command;
        int64_t index;
        struct sockaddr_storage address;
        socklen_t length;
    } sessions[CLIENTS];
} node_t;

/* The node's life, as a task. */
void *log_node(void *node);

/* ---- journal.c: what a node has on its disk ---- */

/* Reads what is there, and makes the journal anew, so that all of it is durable. On error the node is broken. */
void journal_open(node_t *node);
void journal_close(node_t *node);
/* Notes term and vote, and the entry at `index`, behind which there is none any more. Durable after journal_sync(). */
void journal_note_term(node_t *node);
void journal_note_entry(node_t *node, int64_t index);
void journal_sync(node_t *node);

/* ---- What the program gives: main.c ---- */

int64_t random_below(int64_t limit);
/* The node has carried out the command at `index`; was_repeated: it had before, and nothing was done. */
void observe_applied(const node_t *node, int64_t index, const command_t *command, int was_repeated);
void observe_leader(const node_t *node);
/* The node, which leads, has taken a command. */
void observe_taken(const node_t *node);

#endif
