/* Opening files that must be below a folder. Linux's openat2() finds the way as one step, whatever others do to the
 * folders meanwhile. Where it is missing, no symbolic link is followed, and the folders are looked at one after the
 * other. */
#define _GNU_SOURCE /* O_PATH, O_TMPFILE */
#define _FILE_OFFSET_BITS 64
#include "io/file_beneath.h"
#include "system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#ifdef O_PATH
enum { LOOK = O_PATH | O_DIRECTORY | O_CLOEXEC }; /* needs no permission to read the folder */
#else
enum { LOOK = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
#endif

/* Whether the path itself leads out, or could, without any link. */
static int leads_up(const char *path)
{
    int is_up = *path == '/';
    for (const char *at = path; at && !is_up; at = strchr(at, '/')) {
        at += *at == '/';
        is_up = strncmp(at, "..", 2) == 0 && (at[2] == 0 || at[2] == '/');
    }
    return is_up;
}

/* Follows no link. */
static int open_step_by_step(const file_call_t *c)
{
    if (leads_up(c->other)) {
        errno = EXDEV;
        return -1;
    }
    for (char *at = strchr(c->other, '/'); at; at = strchr(at + 1, '/')) {
        int folder;
        *at = 0;
        folder = aco__system.open(c->path, LOOK | O_NOFOLLOW, 0);
        *at = '/';
        if (folder < 0)
            return -1;
        (void)aco__system.close(folder);
    }
    return aco__system.open(c->path, c->flags | O_CLOEXEC | O_NOFOLLOW, (mode_t)c->mode);
}

#ifdef __linux__
enum { NO_MAGIC_LINKS = 2, NO_LINKS = 4, BENEATH = 8 }; /* linux/openat2.h */

/* A folder that is moved while it is on the way has the kernel ask to try again. */
static int open_in(int folder, const file_call_t *c)
{
    enum { TIMES = 16 };
    const int makes = (c->flags & O_CREAT) || (c->flags & O_TMPFILE) == O_TMPFILE;
    struct aco__open_how how = {0, 0, BENEATH | NO_MAGIC_LINKS};
    int fd, times = 0;
    how.flags = (unsigned)(c->flags | O_CLOEXEC | O_LARGEFILE);
    how.mode = makes ? c->mode & 07777 : 0;
    if (c->links == ACO_FILE_NO_LINKS)
        how.resolve |= NO_LINKS;
    do
        fd = aco__system.openat2(folder, c->other, &how, sizeof how);
    while (fd < 0 && errno == EAGAIN && ++times < TIMES);
    return fd;
}

/* Whether openat2() has failed because the system lacks it. EPERM comes from a filter of system calls that lacks
 * it too, or it is the file's: then the folder itself can be opened. */
static int lacks_openat2(int folder, int error)
{
    struct aco__open_how how = {O_PATH | O_CLOEXEC, 0, BENEATH | NO_MAGIC_LINKS};
    int fd;
    if (error != EPERM)
        return error == ENOSYS;
    fd = aco__system.openat2(folder, ".", &how, sizeof how);
    if (fd >= 0)
        (void)aco__system.close(fd);
    return fd < 0;
}

int aco__file_open_beneath(const file_call_t *c)
{
    int folder, fd, error, is_missing;
    c->other[-1] = 0;
    folder = aco__system.open(c->path, LOOK, 0);
    if (folder < 0)
        return -1;
    c->other[-1] = '/';
    fd = open_in(folder, c);
    error = errno;
    is_missing = fd < 0 && lacks_openat2(folder, error);
    (void)aco__system.close(folder);
    errno = error;
    return is_missing ? open_step_by_step(c) : fd;
}
#else
int aco__file_open_beneath(const file_call_t *c)
{
    c->other[-1] = '/';
    return open_step_by_step(c);
}
#endif
