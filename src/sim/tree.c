/* Files and directories. Each call that changes names is a step in a list, until it is durable. A crash takes steps
 * back, from the list's end. */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE /* S_IFDIR, strdup() */
#include "sim/tree.h"
#include "sim/grow.h"
#include "sim/world.h"

#include <limits.h>
#include <sys/stat.h>

enum { STATUS_BLOCK = 512, MOST_STEPS = 1 << 10 };

/* ---- Inodes ---- */

static void fill_inode(aco__sim_tree_t *tree, aco__sim_inode_t *inode, unsigned mode, int64_t now)
{
    inode->number = ++tree->numbers;
    inode->mode = mode;
    inode->is_folder = S_ISDIR(mode);
    inode->users = 1;
    inode->accessed = inode->modified = inode->changed = now;
    aco__links_empty(&inode->entries);
}

aco__sim_inode_t *aco__sim_inode_new(aco__sim_tree_t *tree, unsigned mode, int64_t now)
{
    aco__sim_inode_t *inode = calloc(1, sizeof *inode);
    if (!inode)
        return aco__sim_null_with(ENOMEM);
    fill_inode(tree, inode, mode, now);
    aco__links_append(&tree->inodes, &inode->all);
    return inode;
}

void aco__sim_inode_hold(aco__sim_inode_t *inode)
{
    inode->users++;
}

static void free_inode(aco__sim_tree_t *tree, aco__sim_inode_t *inode)
{
    aco__sim_content_free(&inode->content, &tree->room);
    aco__links_remove(&inode->all);
    free(inode);
}

static void free_if_unused(aco__sim_tree_t *tree, aco__sim_inode_t *inode)
{
    if (!inode->users && !inode->names && !aco__links_first(&inode->entries))
        free_inode(tree, inode);
}

void aco__sim_inode_drop(aco__sim_tree_t *tree, aco__sim_inode_t *inode)
{
    ACO__ASSERT(inode->users > 0);
    inode->users--;
    free_if_unused(tree, inode);
}

static struct timespec date_of(int64_t ns)
{
    return (struct timespec){(time_t)((ACO__SIM_DATE + ns) / ACO_SECOND), (long)((ACO__SIM_DATE + ns) % ACO_SECOND)};
}

static unsigned count_folders(const aco__sim_inode_t *inode)
{
    unsigned n = 0;
    ACO__EACH_LINKED(aco__sim_entry_t, entry, &inode->entries, links)
    n += (unsigned)entry->inode->is_folder;
    return n;
}

void aco__sim_inode_status(const aco__sim_inode_t *inode, struct stat *status)
{
    int is_folder = inode->is_folder;
    memset(status, 0, sizeof *status);
    status->st_dev = 1;
    status->st_ino = inode->number;
    status->st_mode = inode->mode;
    status->st_nlink = is_folder ? (inode->parent ? 2 + count_folders(inode) : 0) : inode->names;
    status->st_size = is_folder ? ACO__SIM_PAGE : inode->content.size;
    status->st_blocks = (blkcnt_t)inode->content.pages_used * (ACO__SIM_PAGE / STATUS_BLOCK);
    status->st_blksize = ACO__SIM_PAGE;
    status->st_atim = date_of(inode->accessed);
    status->st_mtim = date_of(inode->modified);
    status->st_ctim = date_of(inode->changed);
}

void aco__sim_inode_accessed(aco__sim_inode_t *inode, int64_t now)
{
    const int64_t day = 24 * 3600 * ACO_SECOND;
    if (inode->accessed <= inode->modified || inode->accessed <= inode->changed || now - inode->accessed >= day)
        inode->accessed = now;
}

int aco__sim_inode_is_empty(const aco__sim_inode_t *folder)
{
    return !aco__links_first(&folder->entries);
}

int aco__sim_inode_is_in(const aco__sim_inode_t *folder, const aco__sim_inode_t *inode)
{
    while (folder != inode && folder->parent && folder->parent != folder)
        folder = folder->parent;
    return folder == inode;
}

/* ---- Entries ---- */

static aco__sim_entry_t *entry_named(const aco__sim_inode_t *folder, const char *name)
{
    ACO__EACH_LINKED(aco__sim_entry_t, entry, &folder->entries, links)
    if (strcmp(entry->name, name) == 0)
        return entry;
    return NULL;
}

/* The inode may be freed. */
static void remove_entry(aco__sim_tree_t *tree, aco__sim_inode_t *folder, aco__sim_entry_t *entry)
{
    aco__sim_inode_t *inode = entry->inode;
    aco__links_remove(&entry->links);
    free(entry);
    inode->names--;
    if (inode->is_folder && inode->parent == folder)
        inode->parent = NULL;
    free_if_unused(tree, inode);
}

static aco__sim_entry_t *new_entry(const char *name, aco__sim_inode_t *inode)
{
    size_t n = strlen(name) + 1;
    aco__sim_entry_t *entry = calloc(1, sizeof *entry + n);
    if (!entry)
        return aco__sim_null_with(ENOMEM);
    memcpy(entry->name, name, n);
    entry->inode = inode;
    return entry;
}

static void add_entry(aco__sim_inode_t *folder, aco__sim_entry_t *entry)
{
    entry->inode->names++;
    if (entry->inode->is_folder)
        entry->inode->parent = folder;
    aco__links_append(&folder->entries, &entry->links);
}

/* ---- Paths ---- */

/* Copies the next name of the path. Its length; -1: it is too long, and is not copied. */
static int next_name(const char **path, char name[NAME_MAX + 1])
{
    size_t n;
    *path += strspn(*path, "/");
    n = strcspn(*path, "/");
    *path += n;
    name[0] = 0; /* no file has this name */
    if (n > NAME_MAX)
        return -1;
    memcpy(name, *path - n, n);
    name[n] = 0;
    return (int)n;
}

/* The place of the name in the folder `at`. */
static void enter(aco__sim_place_t *place, aco__sim_inode_t *at)
{
    const aco__sim_entry_t *entry;
    place->folder = NULL;
    if (strcmp(place->name, ".") == 0) {
        place->inode = at;
    } else if (strcmp(place->name, "..") == 0) {
        place->inode = at->parent; /* NULL: it was removed */
    } else {
        entry = entry_named(at, place->name);
        place->folder = at;
        place->inode = entry ? entry->inode : NULL;
    }
}

static int check_length(const char *path)
{
    size_t n = strnlen(path, PATH_MAX);
    errno = n ? ENAMETOOLONG : ENOENT;
    return n && n < PATH_MAX ? 0 : -1;
}

int aco__sim_tree_find(aco__sim_tree_t *tree, const char *path, aco__sim_place_t *place)
{
    int n = 0, is_last = 0;
    memset(place, 0, sizeof *place);
    if (check_length(path) != 0)
        return -1;
    place->inode = &tree->root;
    while (!is_last && (n = next_name(&path, place->name)) != 0) {
        is_last = !path[strspn(path, "/")];
        errno = !place->inode ? ENOENT : !place->inode->is_folder ? ENOTDIR : n < 0 && !is_last ? ENAMETOOLONG : 0;
        if (errno)
            return -1;
        enter(place, place->inode);
        place->has_slash = *path == '/';
    }
    place->is_too_long = n < 0;
    return 0;
}

/* ---- Steps ---- */

static void free_step(aco__sim_tree_t *tree, aco__sim_step_t *step)
{
    for (unsigned i = 0; i < step->n; i++) {
        aco__sim_naming_t *naming = &step->namings[i];
        free(naming->name);
        if (naming->old)
            aco__sim_inode_drop(tree, naming->old);
        if (naming->new)
            aco__sim_inode_drop(tree, naming->new);
        aco__sim_inode_drop(tree, naming->folder);
    }
}

/* Removes steps that are durable: all, or those that are marked. */
static void drop_steps(aco__sim_tree_t *tree, int all)
{
    size_t left = 0;
    for (size_t i = 0; i < tree->steps_n; i++) {
        if (all || tree->steps[i].is_marked)
            free_step(tree, &tree->steps[i]);
        else
            tree->steps[left++] = tree->steps[i];
    }
    tree->steps_n = left;
}

static int make_steps_room(aco__sim_tree_t *tree)
{
    aco__sim_step_t *larger;
    if (tree->steps_n == MOST_STEPS) { /* the kernel has written the oldest one */
        free_step(tree, &tree->steps[0]);
        memmove(tree->steps, tree->steps + 1, --tree->steps_n * sizeof *tree->steps);
    }
    larger = aco__sim_grown(tree->steps, &tree->steps_room, tree->steps_n + 1, sizeof *larger);
    if (!larger)
        return -1;
    tree->steps = larger;
    return 0;
}

static int add_naming(aco__sim_step_t *step, const aco__sim_place_t *place, aco__sim_inode_t *new)
{
    aco__sim_naming_t *naming = &step->namings[step->n];
    naming->name = strdup(place->name);
    if (!naming->name)
        return aco__sim_fail_with(ENOMEM);
    naming->folder = place->folder;
    naming->old = place->inode;
    naming->new = new;
    aco__sim_inode_hold(naming->folder);
    if (naming->old)
        aco__sim_inode_hold(naming->old);
    if (naming->new)
        aco__sim_inode_hold(naming->new);
    step->n++;
    return 0;
}

/* The name stands for `inode`, or for nothing. `entry`: for the inode. */
static void rename_entry(aco__sim_tree_t *tree, const aco__sim_naming_t *naming, aco__sim_entry_t *entry)
{
    aco__sim_entry_t *before = entry_named(naming->folder, naming->name);
    if (before)
        remove_entry(tree, naming->folder, before);
    if (entry)
        add_entry(naming->folder, entry);
}

/* Does what the step says. 0, or -1 and errno: nothing is done. */
static int take_step(aco__sim_tree_t *tree, aco__sim_step_t *step, int64_t now)
{
    aco__sim_entry_t *entries[2] = {0};
    for (unsigned i = 0; i < step->n; i++) {
        aco__sim_naming_t *naming = &step->namings[i];
        entries[i] = naming->new ? new_entry(naming->name, naming->new) : NULL;
        if (naming->new && !entries[i]) {
            free(entries[0]);
            return -1;
        }
    }
    for (unsigned i = 0; i < step->n; i++) {
        aco__sim_naming_t *naming = &step->namings[i];
        rename_entry(tree, naming, entries[i]);
        naming->folder->modified = naming->folder->changed = now;
        if (naming->old)
            naming->old->changed = now;
        if (naming->new)
            naming->new->changed = now;
    }
    tree->steps[tree->steps_n++] = *step;
    return 0;
}

int aco__sim_tree_move(aco__sim_tree_t *tree, const aco__sim_place_t *from, const aco__sim_place_t *to,
                       aco__sim_inode_t *inode, int64_t now)
{
    aco__sim_step_t step = {0};
    ACO__ASSERT(to->folder && (!from || (from->folder && from->inode == inode)));
    if (make_steps_room(tree) != 0)
        return -1;
    if ((!from || add_naming(&step, from, NULL) == 0) && add_naming(&step, to, inode) == 0 &&
        take_step(tree, &step, now) == 0)
        return 0;
    free_step(tree, &step);
    return -1;
}

/* ---- What is durable ---- */

static int is_of_folder(const aco__sim_step_t *step, const aco__sim_inode_t *folder)
{
    return step->namings[0].folder == folder || (step->n > 1 && step->namings[1].folder == folder);
}

static int moves_folder(const aco__sim_step_t *step)
{
    return step->n > 1 && step->namings[1].new->is_folder;
}

/* Whether the later step can only be durable with the earlier one: it is about one of its names, or moves a directory,
 * which might otherwise come to stand in itself. */
static int depends(const aco__sim_step_t *later, const aco__sim_step_t *earlier)
{
    if (moves_folder(later))
        return 1;
    for (unsigned i = 0; i < later->n; i++)
        for (unsigned j = 0; j < earlier->n; j++)
            if (later->namings[i].folder == earlier->namings[j].folder &&
                strcmp(later->namings[i].name, earlier->namings[j].name) == 0)
                return 1;
    return 0;
}

/* Marks the steps that an fsync() of the folder makes durable: those in it, and those that they depend on. */
static void mark_durable(aco__sim_tree_t *tree, const aco__sim_inode_t *folder)
{
    for (size_t i = tree->steps_n; i > 0; i--) {
        aco__sim_step_t *step = &tree->steps[i - 1];
        step->is_marked = is_of_folder(step, folder) && !step->is_lost;
        for (size_t later = i; later < tree->steps_n && !step->is_marked; later++)
            step->is_marked = tree->steps[later].is_marked && depends(&tree->steps[later], step);
    }
}

void aco__sim_tree_sync(aco__sim_tree_t *tree, const aco__sim_inode_t *folder, int fails)
{
    for (size_t i = 0; fails && i < tree->steps_n; i++)
        tree->steps[i].is_lost |= is_of_folder(&tree->steps[i], folder);
    if (fails)
        return;
    mark_durable(tree, folder);
    drop_steps(tree, 0);
}

/* Marks the steps that a crash takes back. */
static void mark_lost(aco_sim_t *sim, aco__sim_tree_t *tree)
{
    int keeps_all = aco__sim_disk_draw(sim, 4) == 0;
    uint64_t one_in = 1 + aco__sim_disk_draw(sim, 4); /* 1: all of them */
    for (size_t i = 0; i < tree->steps_n; i++) {
        aco__sim_step_t *step = &tree->steps[i];
        step->is_marked = step->is_lost || (!keeps_all && aco__sim_disk_draw(sim, one_in) == one_in - 1);
        for (size_t earlier = 0; earlier < i && !step->is_marked; earlier++)
            step->is_marked = tree->steps[earlier].is_marked && depends(step, &tree->steps[earlier]);
    }
}

static void take_back(aco__sim_tree_t *tree, const aco__sim_step_t *step)
{
    for (unsigned i = step->n; i > 0; i--) {
        const aco__sim_naming_t *naming = &step->namings[i - 1];
        aco__sim_entry_t *entry = naming->old ? new_entry(naming->name, naming->old) : NULL;
        rename_entry(tree, naming, entry);
    }
}

/* A directory in which something still is, although its own name is lost. */
static aco__sim_inode_t *lost_folder(const aco__sim_tree_t *tree)
{
    ACO__EACH_LINKED(aco__sim_inode_t, inode, &tree->inodes, all)
    if (!inode->names && !aco__sim_inode_is_empty(inode))
        return inode;
    return NULL;
}

static void empty_lost_folders(aco__sim_tree_t *tree)
{
    aco__sim_inode_t *folder;
    while ((folder = lost_folder(tree)) != NULL) {
        aco__links_t *links;
        aco__sim_inode_hold(folder);
        while ((links = aco__links_first(&folder->entries)) != NULL)
            remove_entry(tree, folder, ACO__LINKED(links, aco__sim_entry_t, links));
        aco__sim_inode_drop(tree, folder);
    }
}

void aco__sim_tree_crash(aco_sim_t *sim, aco__sim_tree_t *tree, size_t sector)
{
    mark_lost(sim, tree);
    for (size_t i = tree->steps_n; i > 0; i--)
        if (tree->steps[i - 1].is_marked)
            take_back(tree, &tree->steps[i - 1]);
    drop_steps(tree, 1);
    empty_lost_folders(tree);
    ACO__EACH_LINKED(aco__sim_inode_t, inode, &tree->inodes, all)
    aco__sim_content_crash(sim, &inode->content, &tree->room, sector);
}

/* ---- The tree ---- */

void aco__sim_tree_begin(aco__sim_tree_t *tree)
{
    memset(tree, 0, sizeof *tree);
    aco__links_empty(&tree->inodes);
    fill_inode(tree, &tree->root, S_IFDIR | 0755, 0);
    tree->root.parent = &tree->root;
}

static void free_entries(aco__sim_inode_t *folder)
{
    aco__links_t *links;
    while ((links = aco__links_first(&folder->entries)) != NULL) {
        aco__links_remove(links);
        free(ACO__LINKED(links, aco__sim_entry_t, links));
    }
}

/* No file of it is open. */
void aco__sim_tree_end(aco__sim_tree_t *tree)
{
    aco__links_t *links;
    for (size_t i = 0; i < tree->steps_n; i++)
        for (unsigned j = 0; j < tree->steps[i].n; j++)
            free(tree->steps[i].namings[j].name);
    free_entries(&tree->root);
    while ((links = aco__links_first(&tree->inodes)) != NULL) {
        aco__sim_inode_t *inode = ACO__LINKED(links, aco__sim_inode_t, all);
        free_entries(inode);
        free_inode(tree, inode);
    }
    free(tree->steps);
    memset(tree, 0, sizeof *tree);
}
