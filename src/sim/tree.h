/* tree.c: the files and directories of a simulated disk, the names that they have, and which names a crash may take
 * back. */
#ifndef ACO_TREE_H
#define ACO_TREE_H

#include "sim/content.h"
#include "sim/links.h"

struct stat;

typedef struct aco__sim_inode {
    aco__links_t all;           /* of the tree */
    uint64_t number;
    unsigned mode;              /* S_IFREG, S_IFDIR or S_IFIFO, and permissions, which nobody looks at */
    int is_folder;
    unsigned names, users;      /* entries that name it; what holds it besides: open files, entries to be taken back */
    int64_t accessed, modified, changed; /* nanoseconds since ACO__SIM_DATE */
    aco__sim_content_t content; /* of a file */
    struct aco__sim_fifo *pipe; /* of a named pipe that is open; else NULL */
    aco__links_t entries;       /* of a directory: aco__sim_entry_t */
    struct aco__sim_inode *parent; /* of a directory; NULL: it was removed */
} aco__sim_inode_t;

typedef struct aco__sim_entry {
    aco__links_t links;
    aco__sim_inode_t *inode;
    char name[];
} aco__sim_entry_t;

/* A name in a directory stands for another file now. Each is held. */
typedef struct aco__sim_naming {
    aco__sim_inode_t *folder, *old, *new; /* old, new: NULL: none */
    char *name;
} aco__sim_naming_t;

/* A call that has changed names, not durable yet. A crash takes back all of it or nothing. */
typedef struct aco__sim_step {
    aco__sim_naming_t namings[2];
    unsigned n;
    int is_lost;                /* an fsync() of the directory has failed */
    int is_marked;              /* to become durable, or to be taken back: while that is found out */
} aco__sim_step_t;

typedef struct aco__sim_tree {
    aco__sim_inode_t root;
    aco__links_t inodes;        /* the others */
    uint64_t numbers;
    aco__sim_room_t room;
    aco__sim_step_t *steps;     /* the oldest one is first */
    size_t steps_n, steps_room;
} aco__sim_tree_t;

/* Where a path leads. */
typedef struct aco__sim_place {
    aco__sim_inode_t *folder;   /* of the last name; NULL: the path is "/", or ends with "." or ".." */
    aco__sim_inode_t *inode;    /* NULL: there is none with that name */
    char name[256];
    int has_slash;              /* behind the name */
    int is_too_long;            /* the last name: there is no such file, and there cannot be */
} aco__sim_place_t;

ACO__HIDDEN void aco__sim_tree_begin(aco__sim_tree_t *tree);
ACO__HIDDEN void aco__sim_tree_end(aco__sim_tree_t *tree);
/* 0; the last name need not exist. Or -1 and errno. */
ACO__HIDDEN int aco__sim_tree_find(aco__sim_tree_t *tree, const char *path, aco__sim_place_t *place);
/* A new file or directory without a name, which the caller holds. NULL and errno. */
ACO__HIDDEN aco__sim_inode_t *aco__sim_inode_new(aco__sim_tree_t *tree, unsigned mode, int64_t now);
ACO__HIDDEN void aco__sim_inode_hold(aco__sim_inode_t *inode);
ACO__HIDDEN void aco__sim_inode_drop(aco__sim_tree_t *tree, aco__sim_inode_t *inode);
/* What stat() tells. */
ACO__HIDDEN void aco__sim_inode_status(const aco__sim_inode_t *inode, struct stat *status);
/* It was read: changes the time of access where a disk mounted with relatime, as they usually are, does. */
ACO__HIDDEN void aco__sim_inode_accessed(aco__sim_inode_t *inode, int64_t now);
ACO__HIDDEN int aco__sim_inode_is_empty(const aco__sim_inode_t *folder);
/* Whether the folder is `inode`, or in it at any depth. */
ACO__HIDDEN int aco__sim_inode_is_in(const aco__sim_inode_t *folder, const aco__sim_inode_t *inode);
/* The name of `to` stands for `inode` from now on; NULL: for nothing. With `from`, where it is, it loses that name in
 * the same step. 0, or -1 and errno. */
ACO__HIDDEN int aco__sim_tree_move(aco__sim_tree_t *tree, const aco__sim_place_t *from, const aco__sim_place_t *to,
                                   aco__sim_inode_t *inode, int64_t now);
/* The names in a directory are durable; or, with `fails`, they never will be. */
ACO__HIDDEN void aco__sim_tree_sync(aco__sim_tree_t *tree, const aco__sim_inode_t *folder, int fails);
/* The machine crashes: the seed decides what survives of names and bytes that are not durable. */
ACO__HIDDEN void aco__sim_tree_crash(aco_sim_t *sim, aco__sim_tree_t *tree, size_t sector);

#endif
