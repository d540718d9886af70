/* Open files of a run, and their descriptors. */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE /* F_DUPFD_CLOEXEC, O_PATH */
#include "sim/opened.h"
#include "sim/grow.h"
#include "sim/interest.h"
#include "sim/world.h"

#include <fcntl.h>
#include <sys/stat.h>

/* ---- Files ---- */

void *aco__sim_file_new(aco_sim_t *sim, const aco__sim_type_t *type, size_t size, int flags)
{
    aco__sim_file_t *file = calloc(1, size);
    if (!file)
        return aco__sim_null_with(ENOMEM);
    file->type = type;
    file->number = ++sim->opened.numbers;
    file->node = sim->nodes.here;
    file->flags = flags;
    aco__links_append(&sim->opened.files, &file->all);
    aco__links_empty(&file->watches);
    return file;
}

static void free_file(aco__sim_file_t *file)
{
    aco__sim_unwatch_file(file);
    if (file->type->free)
        file->type->free(file);
    aco__links_remove(&file->all);
    free(file);
}

void aco__sim_file_hold(aco__sim_file_t *file)
{
    file->users++;
}

void aco__sim_file_drop(aco__sim_file_t *file)
{
    ACO__ASSERT(file->users > 0);
    if (--file->users == 0 && !file->descriptors)
        free_file(file);
}

void aco__sim_file_close(aco_sim_t *sim, aco__sim_file_t *file)
{
    ACO__ASSERT(!file->descriptors);
    aco__sim_unwatch_file(file);
    file->users++;
    if (file->type->close)
        file->type->close(sim, file);
    aco__sim_file_drop(file);
}

/* ---- Descriptors ---- */

static aco__sim_descriptor_t *descriptor_of(const aco_sim_t *sim, int fd)
{
    aco__sim_descriptor_t *d = fd >= 0 && (size_t)fd < sim->opened.room ? &sim->opened.descriptors[fd] : NULL;
    return d && d->file ? d : NULL;
}

static void forget(aco_sim_t *sim, aco__sim_descriptor_t *d)
{
    aco__sim_file_t *file = d->file;
    d->file = NULL;
    if (--file->descriptors == 0)
        aco__sim_file_close(sim, file);
}

/* The number stands for the file from now on. */
static int give(aco_sim_t *sim, aco__sim_file_t *file, int fd, const char *call)
{
    const aco_t *co = aco__running();
    aco__sim_descriptor_t *d = aco__sim_grown(sim->opened.descriptors, &sim->opened.room, (size_t)fd + 1, sizeof *d);
    if (!d) {
        aco__sim_real.close(fd);
        return aco__sim_fail_with(ENOMEM);
    }
    sim->opened.descriptors = d;
    d += fd;
    if (d->file) /* the program has closed it by libc */
        forget(sim, d);
    d->file = file;
    d->made_by = call;
    d->task[0] = 0;
    if (co)
        strncat(d->task, aco_name(co), sizeof d->task - 1);
    file->descriptors++;
    return fd;
}

int aco__sim_number(int fd_flags)
{
    return aco__sim_real.open("/", O_PATH | ((fd_flags & FD_CLOEXEC) ? O_CLOEXEC : 0), 0);
}

int aco__sim_file_open(aco_sim_t *sim, aco__sim_file_t *file, int fd_flags, const char *call)
{
    return aco__sim_file_open_as(sim, file, aco__sim_number(fd_flags), call);
}

int aco__sim_file_open_as(aco_sim_t *sim, aco__sim_file_t *file, int fd, const char *call)
{
    int error;
    if (fd >= 0 && give(sim, file, fd, call) == fd)
        return fd;
    error = errno;
    if (!file->descriptors)
        aco__sim_file_close(sim, file);
    return aco__sim_fail_with(error);
}

aco__sim_file_t *aco__sim_file_of(aco_sim_t *sim, int fd, const char *call)
{
    aco__sim_descriptor_t *d = descriptor_of(sim, fd);
    if (d)
        return d->file;
    return aco__sim_null_with(fd >= 0 && aco__sim_real.fcntl(fd, F_GETFD) >= 0 ? aco__sim_refuse(sim, call) : EBADF);
}

int aco__sim_close(aco_sim_t *sim, int fd)
{
    if (!aco__sim_file_of(sim, fd, "close"))
        return -1;
    if (S_ISSOCK(descriptor_of(sim, fd)->file->type->mode))
        aco__sim_note(sim, ACO__NOTED_CLOSES, descriptor_of(sim, fd)->file->number, 0, NULL);
    forget(sim, descriptor_of(sim, fd));
    return aco__sim_real.close(fd);
}

static int duplicate(aco_sim_t *sim, aco__sim_file_t *file, int fd, int operation, intptr_t least)
{
    int copy = aco__sim_real.fcntl(fd, operation, least);
    return copy < 0 ? -1 : give(sim, file, copy, "fcntl");
}

int aco__sim_fcntl(aco_sim_t *sim, int fd, int operation, void *last)
{
    const int settable = O_NONBLOCK | O_APPEND | O_ASYNC;
    aco__sim_file_t *file = aco__sim_file_of(sim, fd, "fcntl");
    if (!file)
        return -1;
    switch (operation) {
    case F_GETFL:
        return file->flags;
    case F_SETFL:
        file->flags = (file->flags & ~settable) | ((int)(intptr_t)last & settable);
        return 0;
    case F_GETFD:
    case F_SETFD:
        return aco__sim_real.fcntl(fd, operation, last);
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        return duplicate(sim, file, fd, operation, (intptr_t)last);
    default:
        return aco__sim_fail_with(aco__sim_refuse(sim, "fcntl"));
    }
}

int aco__sim_fstat(aco_sim_t *sim, int fd, struct stat *status)
{
    aco__sim_file_t *file = aco__sim_file_of(sim, fd, "fstat");
    if (!file)
        return -1;
    memset(status, 0, sizeof *status);
    status->st_mode = file->type->mode;
    status->st_ino = file->number;
    status->st_nlink = 1;
    if (file->type->status)
        file->type->status(file, status);
    return 0;
}

/* ---- The run ---- */

void aco__sim_opened_begin(aco_sim_t *sim)
{
    aco__links_empty(&sim->opened.files);
    sim->opened.numbers = 0;
}

/* If not, the program has closed the number by libc, and it may be another file's now. */
static int is_still_ours(int fd)
{
    int flags = aco__sim_real.fcntl(fd, F_GETFL);
    return flags >= 0 && flags & O_PATH;
}

void aco__sim_opened_judge(aco_sim_t *sim)
{
    const aco__sim_descriptor_t *first = NULL;
    unsigned n = 0;
    for (size_t fd = 0; fd < sim->opened.room; fd++) {
        const aco__sim_descriptor_t *d = descriptor_of(sim, (int)fd);
        if (!d || !is_still_ours((int)fd))
            continue;
        first = first ? first : d;
        n++;
    }
    if (first)
        aco__sim_fail(sim, "descriptors that were not closed: %u; the first is %d, made by %s() %s%s%s", n,
                      (int)(first - sim->opened.descriptors), first->made_by,
                      *first->task ? "in coroutine \"" : "in a coroutine without a name", first->task,
                      *first->task ? "\"" : "");
}

/* Its descriptors close. */
static void close_all(aco_sim_t *sim, const aco__sim_file_t *file)
{
    unsigned n = file->descriptors;
    for (size_t fd = 0; n && fd < sim->opened.room; fd++)
        if (sim->opened.descriptors[fd].file == file) {
            n--;
            (void)aco__sim_close(sim, (int)fd);
        }
}

void aco__sim_opened_crash(aco_sim_t *sim, const aco_sim_node_t *node)
{
    aco__links_t *files = &sim->opened.files, *next;
    for (aco__links_t *links = files->next; links != files; links = next) {
        aco__sim_file_t *file = ACO__LINKED(links, aco__sim_file_t, all);
        next = links->next;
        if (file->node != node || !file->descriptors)
            continue;
        if (!(file->type->mode & S_IFMT) && !node->has_threads) /* the poller's are all nodes' of the first thread */
            continue;
        if (S_ISSOCK(file->type->mode))
            aco__sim_socket_of(file)->linger = (struct linger){1, 0};
        aco__sim_file_hold(file);
        close_all(sim, file);
        next = links->next;
        aco__sim_file_drop(file);
    }
}

void aco__sim_opened_end(aco_sim_t *sim)
{
    aco__links_t *links;
    for (size_t fd = 0; fd < sim->opened.room; fd++)
        if (descriptor_of(sim, (int)fd) && is_still_ours((int)fd))
            aco__sim_real.close((int)fd);
    while ((links = aco__links_first(&sim->opened.files)) != NULL)
        free_file(ACO__LINKED(links, aco__sim_file_t, all));
    free(sim->opened.descriptors);
    memset(&sim->opened, 0, sizeof sim->opened);
}
