/* Calls that name a file by its path. The working directory is the root. */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE /* O_TMPFILE, O_PATH */
#include "sim/call_lists.h"
#include "sim/fifo.h"
#include "sim/held.h"
#include "sim/open_file.h"
#include "sim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PERMISSIONS = 07777, UMASK = 022 };

/* What is not in the tree: a call for it is refused. */
static int is_elsewhere(const char *path)
{
    static const char *const places[] = {"/proc", "/sys", "/dev"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t n = strlen(places[i]);
        if (strncmp(path, places[i], n) == 0 && (path[n] == '/' || !path[n]))
            return 1;
    }
    return 0;
}

/* The place of a name that may be too long. 0, or -1 and errno. */
static int find_folder(aco_sim_t *sim, const char *path, aco__sim_place_t *place, const char *call)
{
    if (is_elsewhere(path))
        return aco__sim_fail_with(aco__sim_refuse(sim, call));
    return aco__sim_tree_find(&aco__sim_disk_here(sim)->tree, path, place);
}

static int find(aco_sim_t *sim, const char *path, aco__sim_place_t *place, const char *call)
{
    if (find_folder(sim, path, place, call) != 0)
        return -1;
    return place->is_too_long ? aco__sim_fail_with(ENAMETOOLONG) : 0;
}

/* The name stands for `inode`; NULL: for nothing. But not with an error. 0, or -1 and errno. */
static int give_name(aco_sim_t *sim, int error, const aco__sim_place_t *place, aco__sim_inode_t *inode)
{
    return error ? aco__sim_fail_with(error)
                 : aco__sim_tree_move(&aco__sim_disk_here(sim)->tree, NULL, place, inode, aco__sim_node_time(sim));
}

/* ---- open() ---- */

/* A file that is there. 0, or an errno. */
static int check_existing(const aco__sim_place_t *place, int flags)
{
    int is_folder = place->inode->is_folder;
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return EEXIST;
    if ((flags & O_CREAT) && is_folder)
        return EISDIR;
    if (!is_folder && (place->has_slash || flags & O_DIRECTORY))
        return ENOTDIR;
    return is_folder && ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC) ? EISDIR : 0;
}

/* A new file without a name, held. NULL and errno. */
static aco__sim_inode_t *new_file(aco_sim_t *sim, aco__sim_disk_t *disk, unsigned mode)
{
    return aco__sim_inode_new(&disk->tree, S_IFREG | (mode & PERMISSIONS & ~(unsigned)UMASK), aco__sim_node_time(sim));
}

/* The file to open, held. NULL and errno. */
static aco__sim_inode_t *create(aco_sim_t *sim, aco__sim_disk_t *disk, const aco__sim_place_t *place, int flags,
                                unsigned mode)
{
    aco__sim_inode_t *inode;
    if (!(flags & O_CREAT) || !place->folder)
        return aco__sim_null_with(ENOENT);
    inode = new_file(sim, disk, mode);
    if (!inode || give_name(sim, 0, place, inode) == 0)
        return inode;
    aco__sim_inode_drop(&disk->tree, inode);
    return NULL;
}

static aco__sim_inode_t *unnamed(aco_sim_t *sim, aco__sim_disk_t *disk, const aco__sim_place_t *place, unsigned mode)
{
    errno = !place->inode ? ENOENT : !place->inode->is_folder ? ENOTDIR : 0;
    return errno ? NULL : new_file(sim, disk, mode);
}

static aco__sim_inode_t *existing(aco_sim_t *sim, aco__sim_disk_t *disk, const aco__sim_place_t *place, int flags)
{
    int is_cut = flags & O_TRUNC && S_ISREG(place->inode->mode);
    errno = check_existing(place, flags);
    if (errno || (is_cut && aco__sim_content_resize(&place->inode->content, &disk->tree.room, 0) != 0))
        return NULL;
    if (is_cut)
        place->inode->modified = place->inode->changed = aco__sim_node_time(sim);
    aco__sim_inode_hold(place->inode);
    return place->inode;
}

/* A new open file. NULL and errno. */
static aco__sim_file_t *open_path(aco_sim_t *sim, const char *path, int flags, unsigned mode)
{
    const int only_here = O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC | O_DIRECTORY | O_NOCTTY | O_NOFOLLOW | O_PATH;
    int is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    aco__sim_disk_t *disk = aco__sim_disk_here(sim);
    aco__sim_inode_t *inode;
    aco__sim_place_t place;
    aco__sim_file_t *file;
    if (flags & O_PATH && !(flags & O_DIRECTORY)) /* of a folder it is one for reading: nobody checks permissions */
        return aco__sim_null_with(aco__sim_refuse(sim, "open"));
    if ((flags & O_CREAT && flags & O_DIRECTORY) || (flags & O_ACCMODE) == O_ACCMODE ||
        (is_unnamed && (flags & O_ACCMODE) == O_RDONLY))
        return aco__sim_null_with(EINVAL);
    if (find_folder(sim, path, &place, "open") != 0)
        return NULL;
    if ((flags & O_CREAT && place.folder && place.has_slash) || place.is_too_long)
        return aco__sim_null_with(flags & O_CREAT && place.has_slash ? EISDIR : ENAMETOOLONG);
    inode = is_unnamed    ? unnamed(sim, disk, &place, mode)
            : place.inode ? existing(sim, disk, &place, flags)
                          : create(sim, disk, &place, flags, mode);
    file = inode ? aco__sim_file_of_inode(sim, disk, inode, flags & ~only_here) : NULL;
    if (inode)
        aco__sim_inode_drop(&disk->tree, inode);
    return file;
}

/* Of a named pipe. Returns the descriptor, or -1 and errno: nobody has it any more. */
static int await_other_end(aco_sim_t *sim, aco__sim_file_t *file, int fd)
{
    aco__sim_held_t held;
    int has_met;
    aco__sim_hold(sim, &held, NULL, NULL);
    held.fd = fd;
    has_met = aco__sim_fifo_meet(sim, file) == 0;
    if (has_met || errno == EBADF)
        held.fd = -1;
    aco__sim_let_go(sim, &held);
    return has_met ? fd : -1;
}

/* Without a free descriptor nothing is made or cut. */
int aco__sim_open(aco_sim_t *sim, const char *path, int flags, unsigned mode)
{
    int fd = aco__sim_number((flags & O_CLOEXEC) ? FD_CLOEXEC : 0), error;
    aco__sim_file_t *file = fd < 0 ? NULL : open_path(sim, path, flags, mode);
    if (file && aco__sim_file_open_as(sim, file, fd, "open") < 0)
        return -1;
    if (file)
        return await_other_end(sim, file, fd);
    error = errno;
    if (fd >= 0)
        aco__sim_real.close(fd);
    return aco__sim_fail_with(error);
}

/* ---- Names ---- */

int aco__sim_stat(aco_sim_t *sim, const char *path, struct stat *status)
{
    aco__sim_place_t place;
    if (find(sim, path, &place, "stat") != 0)
        return -1;
    if (!place.inode || (place.has_slash && !place.inode->is_folder))
        return aco__sim_fail_with(place.inode ? ENOTDIR : ENOENT);
    aco__sim_inode_status(place.inode, status);
    return 0;
}

/* Why one place cannot get the name of the other; 0: it can. */
static int check_move(const aco__sim_place_t *from, const aco__sim_place_t *to)
{
    int is_folder = from->inode && from->inode->is_folder;
    if (!from->folder || !to->folder)
        return EBUSY;
    if (from->is_too_long || !from->inode)
        return from->is_too_long ? ENAMETOOLONG : ENOENT;
    if (to->is_too_long)
        return ENAMETOOLONG;
    if (!is_folder && (from->has_slash || to->has_slash))
        return ENOTDIR;
    if (aco__sim_inode_is_in(to->folder, from->inode))
        return EINVAL;
    if (!to->inode)
        return 0;
    if (to->inode->is_folder && aco__sim_inode_is_in(from->folder, to->inode))
        return ENOTEMPTY;
    if (is_folder != to->inode->is_folder)
        return is_folder ? ENOTDIR : EISDIR;
    return is_folder && to->inode != from->inode && !aco__sim_inode_is_empty(to->inode) ? ENOTEMPTY : 0;
}

int aco__sim_rename(aco_sim_t *sim, const char *from, const char *to)
{
    aco__sim_place_t old, new;
    int error;
    if (find_folder(sim, from, &old, "rename") != 0 || find_folder(sim, to, &new, "rename") != 0)
        return -1;
    error = check_move(&old, &new);
    if (error || old.inode == new.inode)
        return error ? aco__sim_fail_with(error) : 0;
    return aco__sim_tree_move(&aco__sim_disk_here(sim)->tree, &old, &new, old.inode, aco__sim_node_time(sim));
}

static int check_link(const aco__sim_place_t *from, const aco__sim_place_t *to)
{
    if (to->inode)
        return EEXIST;
    return to->has_slash || !to->folder ? ENOENT : from->inode->is_folder ? EPERM : 0;
}

int aco__sim_link(aco_sim_t *sim, const char *from, const char *to)
{
    aco__sim_place_t old, new;
    if (find(sim, from, &old, "link") != 0)
        return -1;
    if (!old.inode || (old.has_slash && !old.inode->is_folder))
        return aco__sim_fail_with(old.inode ? ENOTDIR : ENOENT);
    if (find(sim, to, &new, "link") != 0)
        return -1;
    return give_name(sim, check_link(&old, &new), &new, old.inode);
}

int aco__sim_unlink(aco_sim_t *sim, const char *path)
{
    aco__sim_place_t place;
    if (find(sim, path, &place, "unlink") != 0)
        return -1;
    if (!place.inode)
        return aco__sim_fail_with(ENOENT);
    if (place.inode->is_folder || place.has_slash)
        return aco__sim_fail_with(place.inode->is_folder ? EISDIR : ENOTDIR);
    return give_name(sim, 0, &place, NULL);
}

/* A new directory or named pipe gets this name, but not with an error. 0, or -1 and errno. */
static int make(aco_sim_t *sim, int error, const aco__sim_place_t *place, unsigned mode)
{
    aco__sim_tree_t *tree = &aco__sim_disk_here(sim)->tree;
    aco__sim_inode_t *inode;
    int done;
    if (error)
        return aco__sim_fail_with(error);
    inode = aco__sim_inode_new(tree, mode & ~(unsigned)UMASK, aco__sim_node_time(sim));
    if (!inode)
        return -1;
    done = give_name(sim, 0, place, inode);
    aco__sim_inode_drop(tree, inode);
    return done;
}

int aco__sim_mkfifo(aco_sim_t *sim, const char *path, mode_t mode)
{
    aco__sim_place_t place;
    if (find(sim, path, &place, "mkfifo") != 0)
        return -1;
    return make(sim, place.inode ? EEXIST : place.has_slash ? ENOENT : 0, &place, S_IFIFO | (mode & PERMISSIONS));
}

/* ---- Directories ---- */

int aco__sim_mkdir(aco_sim_t *sim, const char *path, mode_t mode)
{
    aco__sim_place_t place;
    if (find(sim, path, &place, "mkdir") != 0)
        return -1;
    return make(sim, place.inode || !place.folder ? EEXIST : 0, &place, S_IFDIR | (mode & 01777));
}

/* Why the directory cannot be removed; 0: it can. */
static int check_removal(const aco__sim_place_t *place)
{
    if (!place->folder)
        return strcmp(place->name, "..") == 0 ? ENOTEMPTY : strcmp(place->name, ".") == 0 ? EINVAL : EBUSY;
    return !place->inode                            ? ENOENT
           : !place->inode->is_folder               ? ENOTDIR
           : !aco__sim_inode_is_empty(place->inode) ? ENOTEMPTY
                                                    : 0;
}

int aco__sim_rmdir(aco_sim_t *sim, const char *path)
{
    aco__sim_place_t place;
    return find(sim, path, &place, "rmdir") == 0 ? give_name(sim, check_removal(&place), &place, NULL) : -1;
}

/* ---- Listings ---- */

/* What an opendir() returns: the names as they were then, in an order that the seed decides. */
typedef struct listing {
    int fd;
    size_t n, next;
    struct dirent *entries;
} listing_t;

static void fill_entry(struct dirent *to, const aco__sim_inode_t *inode, const char *name)
{
    to->d_ino = inode->number;
    to->d_type = (unsigned char)IFTODT(inode->mode);
    to->d_reclen = sizeof *to;
    strncpy(to->d_name, name, sizeof to->d_name - 1);
}

static void shuffle(aco_sim_t *sim, listing_t *listing)
{
    for (size_t n = listing->n; n > 1; n--) {
        size_t other = (size_t)aco__sim_disk_draw(sim, n);
        struct dirent last = listing->entries[n - 1];
        listing->entries[n - 1] = listing->entries[other];
        listing->entries[other] = last;
    }
}

/* NULL: there is no memory. */
static listing_t *list_folder(aco_sim_t *sim, const aco__sim_inode_t *inode)
{
    listing_t *listing = calloc(1, sizeof *listing);
    size_t n = 2;
    for (aco__links_t *links = inode->entries.next; links != &inode->entries; links = links->next)
        n++;
    if (!listing || !(listing->entries = calloc(n, sizeof *listing->entries))) {
        free(listing);
        return NULL;
    }
    fill_entry(&listing->entries[listing->n++], inode, ".");
    fill_entry(&listing->entries[listing->n++], inode->parent ? inode->parent : inode, "..");
    ACO__EACH_LINKED(aco__sim_entry_t, entry, &inode->entries, links)
    fill_entry(&listing->entries[listing->n++], entry->inode, entry->name);
    shuffle(sim, listing);
    return listing;
}

DIR *aco__sim_opendir(aco_sim_t *sim, const char *path)
{
    int fd = aco__sim_open(sim, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    const aco__sim_inode_t *inode = fd < 0 ? NULL : aco__sim_folder_of(sim, fd, "opendir");
    listing_t *listing;
    if (!inode)
        return NULL;
    listing = list_folder(sim, inode);
    if (!listing) {
        aco__sim_close(sim, fd);
        return aco__sim_null_with(ENOMEM);
    }
    listing->fd = fd;
    return (DIR *)(void *)listing;
}

struct dirent *aco__sim_readdir(aco_sim_t *sim, DIR *folder)
{
    listing_t *listing = (listing_t *)(void *)folder;
    int error = errno;
    aco__sim_inode_t *inode = aco__sim_folder_of(sim, listing->fd, "readdir");
    if (!inode)
        return NULL;
    aco__sim_inode_accessed(inode, aco__sim_node_time(sim));
    errno = error;
    return listing->next < listing->n ? &listing->entries[listing->next++] : NULL;
}

int aco__sim_closedir(aco_sim_t *sim, DIR *folder)
{
    listing_t *listing = (listing_t *)(void *)folder;
    int closed = aco__sim_close(sim, listing->fd);
    free(listing->entries);
    free(listing);
    return closed;
}
